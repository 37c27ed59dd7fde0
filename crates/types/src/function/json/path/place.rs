//! The places of objects in their documents, which the ids of `keyvalue()` are made of.
//!
//! Such an id is PostgreSQL's: the object's place in the bytes that PostgreSQL would keep the document in. So it is the
//! same for the same document, here and there. The places of a document are found in one walk, the first time that one of
//! them is asked for.
//!
//! | part | bytes there |
//! |---|---|
//! | array, object | 4, and 4 for each element, or key and value; then the keys, then the elements or values |
//! | key, string | its own |
//! | number | 6 or 8, and 2 for each four digits, from a multiple of 4 on |
//! | null, true, false | none |

use std::cell::RefCell;
use std::collections::HashMap;

use crate::error::Result;
use crate::memory;
use crate::stack;
use crate::value::Numeric;
use crate::value::json::{JsonbRef, Kind};

/// The document that an item is in, and its number: 0 for the root, 1 for the variables, more for those made.
#[derive(Clone, Copy)]
pub(super) struct Base<'v> {
    pub json: JsonbRef<'v>,
    pub number: i64,
}

/// The places of arrays and objects, by their places in our own bytes.
type Walked = HashMap<usize, i64>;

/// The places in the documents of an evaluation: those of the root, of the variables, and of the object made last.
#[derive(Default)]
pub(super) struct Places {
    walked: RefCell<[Option<(i64, Walked)>; 3]>,
}

impl Places {
    /// The place of an array or object in its document; 0 if it is in another one.
    pub(super) fn of(&self, part: JsonbRef<'_>, base: Base<'_>) -> Result<i64> {
        let Some(place) = part.place_in(base.json) else {
            return Ok(0);
        };
        let mut walked = self.walked.borrow_mut();
        let slot = &mut walked[base.number.clamp(0, 2) as usize];
        if slot.as_ref().is_none_or(|(number, _)| *number != base.number) {
            // An array without elements has some bytes there, and an entry here.
            memory::require(16 * base.json.byte_count())?;
            let mut places = Walked::new();
            walk(base.json, base.json, 0, &mut places);
            *slot = Some((base.number, places));
        }
        Ok(slot
            .as_ref()
            .and_then(|(_, places)| places.get(&place).copied())
            .unwrap_or(0))
    }
}

/// Notes the places in an array or object that begins at `start`; where it ends.
fn walk(part: JsonbRef<'_>, base: JsonbRef<'_>, start: i64, places: &mut Walked) -> i64 {
    if let Some(place) = part.place_in(base) {
        places.insert(place, start);
    }
    let entries = match part.kind() {
        Kind::Object => 2 * part.count(),
        _ => part.count(),
    };
    let keys: usize = part.members().map(|(key, _)| key.len()).sum();
    let mut end = start + 4 + 4 * entries as i64 + keys as i64;
    for element in part.elements() {
        end = match element.kind() {
            Kind::Null | Kind::False | Kind::True => end,
            Kind::String => end + element.text().map_or(0, str::len) as i64,
            Kind::Number => aligned(end) + element.number().map_or(0, |number| number_bytes(&number)),
            Kind::Array | Kind::Object => stack::checkpoint(|| walk(element, base, aligned(end), places)),
        };
    }
    end
}

fn aligned(place: i64) -> i64 {
    (place + 3) & !3
}

/// The bytes of a number there.
fn number_bytes(number: &Numeric) -> i64 {
    let groups = number.groups();
    let is_short = number.scale().is_none_or(|scale| scale <= 63) && (-64..=63).contains(&groups.weight);
    let head = if is_short { 6 } else { 8 };
    head + 2 * groups.digits.len() as i64
}
