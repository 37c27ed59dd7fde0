//! The bytes of a `jsonb`.
//!
//! A value is a byte for its kind and the bytes that follow from it. It knows neither its place nor its length: what
//! holds it does.
//!
//! ```text
//! null, false, true   │ kind │
//! number              │ kind │ the number as in a row │
//! string              │ kind │ UTF-8 │
//! array               │ kind, width │ count │ end of each element │ elements │
//! object              │ kind, width │ count │ end of each key, end of each value │ keys │ values │
//! ```
//!
//! Counts and ends have the *width* that suffices, 1, 2 or 4 bytes, little-endian; ends count from the first key or
//! element. Keys are UTF-8, each once, shorter ones first and then in the order of their bytes. So the n-th element is
//! found by two loads, and a key by a binary search, without reading the rest.
//!
//! # Damage
//! Bytes of a row, and those that are stored apart from it, come from pages whose checksums were right, so only their head is
//! looked at ([`Jsonb::of_row`]): to read one key of a document costs that key alone. All readers bear bytes of any form: a
//! part that is none is left out, a number that is none reads as 0, a text as empty. `clearway check` looks at every part
//! ([`Jsonb::is_whole`]).
//!
//! Two rules bound what the readers of such bytes take:
//!
//! - J1: of parts that are read one after the other each begins where the last one ended, whatever the ends before it say
//!   ([`Parts`]). So no byte is in two of them, and to read a value with all its parts takes no more steps than it has bytes.
//!   If each part began at the end before it, ends that fall would give the same bytes to several parts, and to several of
//!   those on each level: the steps would double with each.
//! - J2: an array or object that has [`DEPTH_MAX`] of them around it is left out. So a reader that calls itself for each
//!   level has an end.

use std::ops::Range;

use super::{DEPTH_MAX, Json};
use crate::error::{EngineError, Result, SqlState};
use crate::memory;
use crate::value::{DataType, Numeric, Value};

/// The kind of a JSON value, in the order that values of two kinds have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `null`
    Null,
    /// A string
    String,
    /// A number
    Number,
    /// `false`
    False,
    /// `true`
    True,
    /// An array
    Array,
    /// An object
    Object,
}

impl Kind {
    /// The name that `jsonb_typeof` has for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::String => "string",
            Kind::Number => "number",
            Kind::False | Kind::True => "boolean",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

const KINDS: [Kind; 7] = [
    Kind::Null,
    Kind::String,
    Kind::Number,
    Kind::False,
    Kind::True,
    Kind::Array,
    Kind::Object,
];

/// A value of type `jsonb`.
#[derive(Debug, Clone, PartialEq)]
pub struct Jsonb(Box<[u8]>);

/// A JSON value inside a `jsonb`.
#[derive(Debug, Clone, Copy)]
pub struct JsonbRef<'b> {
    bytes: &'b [u8],
    /// The arrays and objects around it, of those that it was read through.
    depth: u32,
}

impl Jsonb {
    /// The value of a tree; 54000 if it has more bytes than a value may have.
    pub fn of(tree: &Json) -> Result<Jsonb> {
        let mut bytes = Vec::new();
        let mut digits = 0;
        push(tree, &mut bytes, &mut digits)?;
        Ok(Jsonb(bytes.into()))
    }

    /// The value of bytes that come from a file; `None` if they are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Jsonb> {
        is_whole(bytes, 0).then(|| Jsonb(bytes.into()))
    }

    /// The value of bytes of a row; `None` if their head is damaged.
    #[inline]
    pub(crate) fn of_row(bytes: &[u8]) -> Option<Jsonb> {
        has_whole_head(bytes).then(|| Jsonb(bytes.into()))
    }

    /// The same of bytes that become the value's.
    pub(crate) fn of_restored(bytes: Vec<u8>) -> Option<Jsonb> {
        has_whole_head(&bytes).then(|| Jsonb(bytes.into()))
    }

    /// True if all its parts are values, and fill it.
    pub fn is_whole(&self) -> bool {
        is_whole(&self.0, 0)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Itself, read in place.
    pub fn as_ref(&self) -> JsonbRef<'_> {
        JsonbRef {
            bytes: &self.0,
            depth: 0,
        }
    }
}

/// The most bytes of a value.
const BYTES_MAX: usize = 256 << 20;

/// 54000 for a value that would be too long, and 53200 if there is no memory for it.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    match bytes {
        0..=BYTES_MAX => memory::require(2 * bytes),
        _ => Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "requested length too large: a jsonb may have 256 MB",
        )),
    }
}

/// About the bytes of a long number's text, which may be many more than those that it is kept in: `1e100000`.
pub(super) fn text_bytes(number: &Numeric) -> usize {
    // A byte is less than three decimal digits.
    match number.heap_bytes() {
        0 => 0,
        bytes => 3 * bytes,
    }
}

/// Appends a value, and counts the digits of long numbers: the text of a value is bounded as its bytes are.
fn push(tree: &Json, out: &mut Vec<u8>, digits: &mut usize) -> Result<()> {
    match tree {
        Json::Null => out.push(Kind::Null as u8),
        Json::Bool(false) => out.push(Kind::False as u8),
        Json::Bool(true) => out.push(Kind::True as u8),
        Json::Number(number) => {
            out.push(Kind::Number as u8);
            number.to_stored(out);
            *digits += text_bytes(number);
            check_length(*digits)?;
        }
        Json::String(text) => {
            out.push(Kind::String as u8);
            out.extend_from_slice(text.as_bytes());
        }
        Json::Array(elements) => crate::stack::checkpoint(|| {
            let (mut ends, mut data) = (Vec::with_capacity(elements.len()), Vec::new());
            for element in elements {
                push(element, &mut data, digits)?;
                ends.push(data.len() as u32);
            }
            push_container(Kind::Array, elements.len(), &ends, &data, out)
        })?,
        Json::Object(members) => crate::stack::checkpoint(|| {
            let members = in_order(members);
            let (mut ends, mut data) = (Vec::with_capacity(2 * members.len()), Vec::new());
            for (key, _) in &members {
                data.extend_from_slice(key.as_bytes());
                ends.push(data.len() as u32);
            }
            for (_, value) in &members {
                push(value, &mut data, digits)?;
                ends.push(data.len() as u32);
            }
            push_container(Kind::Object, members.len(), &ends, &data, out)
        })?,
    }
    check_length(out.len())
}

/// The members in the order of their keys, of each key the last.
fn in_order(members: &[(Box<str>, Json)]) -> Vec<&(Box<str>, Json)> {
    let mut ordered: Vec<&(Box<str>, Json)> = members.iter().collect();
    // Stable: of equal keys the last one stays last.
    ordered.sort_by(|(left, _), (right, _)| key_order(left, right));
    ordered.reverse();
    ordered.dedup_by(|(left, _), (right, _)| left == right);
    ordered.reverse();
    ordered
}

fn key_order(left: &str, right: &str) -> std::cmp::Ordering {
    (left.len(), left.as_bytes()).cmp(&(right.len(), right.as_bytes()))
}

fn push_container(kind: Kind, count: usize, ends: &[u32], data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    check_length(data.len() + 4 * ends.len())?;
    let code = match data.len().max(count) {
        0..0x100 => 0,
        0x100..0x1_0000 => 1,
        _ => 2,
    };
    let width = 1 << code;
    out.push(kind as u8 | code << 4);
    let mut push_number = |number: u32| out.extend_from_slice(&number.to_le_bytes()[..width]);
    push_number(count as u32);
    ends.iter().for_each(|end| push_number(*end));
    out.extend_from_slice(data);
    Ok(())
}

/// An array or an object taken apart.
#[derive(Clone, Copy)]
struct Container<'b> {
    width: usize,
    count: usize,
    ends: &'b [u8],
    data: &'b [u8],
}

impl<'b> Container<'b> {
    /// `None` for a value that is neither, and for a damaged one.
    fn of(bytes: &'b [u8]) -> Option<Container<'b>> {
        let (first, rest) = bytes.split_first()?;
        let ends_per_entry = match kind_of(*first)? {
            Kind::Array => 1,
            Kind::Object => 2,
            _ => return None,
        };
        let width = 1 << (first >> 4).min(2);
        let (count, rest) = rest.split_at_checked(width)?;
        let count = number(count);
        let (ends, data) = rest.split_at_checked(count.checked_mul(ends_per_entry * width)?)?;
        Some(Container {
            width,
            count,
            ends,
            data,
        })
    }

    fn end(&self, at: usize) -> Option<usize> {
        let start = at * self.width;
        self.ends.get(start..start + self.width).map(number)
    }

    /// The n-th of the parts, keys before values.
    fn part(&self, at: usize) -> Option<&'b [u8]> {
        let start = match at {
            0 => 0,
            at => self.end(at - 1)?,
        };
        self.data.get(start..self.end(at)?)
    }

    fn key(&self, at: usize) -> Option<&'b str> {
        std::str::from_utf8(self.part(at)?).ok()
    }

    /// The end of the keys of an object.
    fn keys_end(&self) -> usize {
        let last = self.count.checked_sub(1).and_then(|last| self.end(last));
        last.unwrap_or(0)
    }

    /// The parts of these numbers, in order; none begins before `start`.
    fn parts(self, numbers: Range<usize>, start: usize) -> Parts<'b> {
        Parts {
            container: self,
            numbers,
            start,
        }
    }
}

/// Parts of a container, one after the other (J1); `None` for one that is damaged.
struct Parts<'b> {
    container: Container<'b>,
    numbers: Range<usize>,
    /// The beginning of the next one.
    start: usize,
}

impl<'b> Iterator for Parts<'b> {
    type Item = Option<&'b [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Option<&'b [u8]>> {
        let end = self.container.end(self.numbers.next()?);
        let part = end.and_then(|end| self.container.data.get(self.start..end));
        self.start += part.map_or(0, <[u8]>::len);
        Some(part)
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn kind_of(byte: u8) -> Option<Kind> {
    KINDS.get(usize::from(byte & 15)).copied()
}

/// True if the bytes are a scalar, or an array or object whose parts end where it does.
#[inline]
fn has_whole_head(bytes: &[u8]) -> bool {
    match bytes.first().and_then(|first| kind_of(*first)) {
        Some(Kind::Array | Kind::Object) => Container::of(bytes).is_some_and(|container| {
            let parts = container.ends.len() / container.width;
            let end = parts.checked_sub(1).and_then(|last| container.end(last));
            end.unwrap_or(0) == container.data.len()
        }),
        _ => is_whole(bytes, 0),
    }
}

/// True if the bytes are a value, with all its parts.
#[inline]
fn is_whole(bytes: &[u8], depth: u32) -> bool {
    let Some((first, rest)) = bytes.split_first() else {
        return false;
    };
    match kind_of(*first) {
        Some(Kind::Null | Kind::False | Kind::True) => rest.is_empty(),
        Some(Kind::Number) => Numeric::is_stored(rest),
        Some(Kind::String) => is_text(rest),
        Some(kind @ (Kind::Array | Kind::Object)) => is_whole_container(bytes, kind, depth),
        None => false,
    }
}

fn is_whole_container(bytes: &[u8], kind: Kind, depth: u32) -> bool {
    if depth >= DEPTH_MAX {
        return false;
    }
    crate::stack::checkpoint(|| {
        let Some(container) = Container::of(bytes) else {
            return false;
        };
        let keys = match kind {
            Kind::Object => container.count,
            _ => 0,
        };
        match container.width {
            1 => are_whole(&container, keys, depth, |[end]: &[u8; 1]| usize::from(*end)),
            2 => are_whole(&container, keys, depth, |end| {
                usize::from(u16::from_le_bytes(*end))
            }),
            _ => are_whole(&container, keys, depth, |end| u32::from_le_bytes(*end) as usize),
        }
    })
}

/// True if the parts of an array or object, the first `keys` of them keys, fill its data and are values. One pass over the
/// ends, of one width. The keys are looked at as one text, which no key may end in the midst of a character of.
fn are_whole<const WIDTH: usize>(
    container: &Container<'_>,
    keys: usize,
    depth: u32,
    end_of: impl Fn(&[u8; WIDTH]) -> usize,
) -> bool {
    let Some((of_keys, of_values)) = container.ends.as_chunks::<WIDTH>().0.split_at_checked(keys) else {
        return false;
    };
    let mut start = 0;
    if let Some(last) = of_keys.last() {
        let text = container.data.get(..end_of(last));
        let Some(text) = text.and_then(|text| std::str::from_utf8(text).ok()) else {
            return false;
        };
        let are_keys = of_keys.iter().all(|end| {
            let before = std::mem::replace(&mut start, end_of(end));
            before <= start && text.is_char_boundary(start)
        });
        if !are_keys {
            return false;
        }
    }
    let are_values = of_values.iter().all(|end| {
        let end = end_of(end);
        let part = container.data.get(start..end);
        start = end;
        part.is_some_and(|part| is_whole(part, depth + 1))
    });
    are_values && start == container.data.len()
}

/// True if bytes are UTF-8. Most texts are short and ASCII: eight bytes at a time tell that.
#[inline]
fn is_text(bytes: &[u8]) -> bool {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    let high = words
        .iter()
        .fold(0, |high, word| high | u64::from_ne_bytes(*word));
    let last = rest.iter().fold(0, |high, byte| high | byte);
    (high & HIGH_BITS | u64::from(last & 0x80)) == 0 || std::str::from_utf8(bytes).is_ok()
}

impl<'b> JsonbRef<'b> {
    /// `null`.
    pub fn null() -> JsonbRef<'b> {
        JsonbRef {
            bytes: &[Kind::Null as u8],
            depth: 0,
        }
    }

    /// The value of a part of it (J2).
    #[inline]
    fn inside(self, part: &'b [u8]) -> Option<JsonbRef<'b>> {
        let value = JsonbRef {
            bytes: part,
            depth: self.depth + 1,
        };
        (!part.is_empty() && (value.depth < DEPTH_MAX || value.is_scalar())).then_some(value)
    }

    /// Its kind.
    pub fn kind(self) -> Kind {
        self.bytes
            .first()
            .and_then(|first| kind_of(*first))
            .unwrap_or(Kind::Null)
    }

    /// True for anything but arrays and objects.
    pub fn is_scalar(self) -> bool {
        self.kind() < Kind::Array
    }

    /// The string; `None` if it is none.
    pub fn text(self) -> Option<&'b str> {
        match self.kind() {
            Kind::String => std::str::from_utf8(&self.bytes[1..]).ok(),
            _ => None,
        }
    }

    /// The number; `None` if it is none.
    pub fn number(self) -> Option<Numeric> {
        match self.kind() {
            Kind::Number => Numeric::from_stored(&self.bytes[1..]),
            _ => None,
        }
    }

    /// The truth value; `None` if it is none.
    pub fn truth(self) -> Option<bool> {
        match self.kind() {
            Kind::False => Some(false),
            Kind::True => Some(true),
            _ => None,
        }
    }

    /// The number of elements or members; 0 for anything else.
    pub fn count(self) -> usize {
        Container::of(self.bytes).map_or(0, |container| container.count)
    }

    /// The n-th element of an array, or value of an object, from 0.
    pub fn at(self, place: usize) -> Option<JsonbRef<'b>> {
        let container = Container::of(self.bytes).filter(|container| place < container.count)?;
        let before = match self.kind() {
            Kind::Object => container.count,
            _ => 0,
        };
        self.inside(container.part(before + place)?)
    }

    /// The n-th key of an object, from 0.
    pub fn key(self, place: usize) -> Option<&'b str> {
        let is_object = self.kind() == Kind::Object;
        let container = Container::of(self.bytes).filter(|container| is_object && place < container.count)?;
        container.key(place)
    }

    /// The value of a key of an object.
    pub fn get(self, key: &str) -> Option<JsonbRef<'b>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let container = Container::of(self.bytes)?;
        let (mut low, mut high) = (0, container.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = container.key(middle)?;
            match key_order(found, key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => {
                    return self.inside(container.part(container.count + middle)?);
                }
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// A truth value, or a number, as a value of SQL; 22023 if it is none, where type `to` is wanted.
    pub(crate) fn scalar(self, to: DataType) -> Result<Value> {
        let found = match to {
            DataType::Bool => self.truth().map(Value::Bool),
            _ => self.number().map(Value::Numeric),
        };
        found.ok_or_else(|| {
            EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("cannot cast jsonb {} to type {to}", self.kind().name()),
            )
        })
    }

    /// The elements of an array, or the values of an object, in order.
    pub fn elements(self) -> impl Iterator<Item = JsonbRef<'b>> {
        self.elements_at(0..usize::MAX)
    }

    /// Those of them at some places, from 0.
    pub(crate) fn elements_at(self, places: Range<usize>) -> impl Iterator<Item = JsonbRef<'b>> {
        let parts = Container::of(self.bytes).map(|container| {
            let (before, values) = match self.kind() {
                Kind::Object => (container.count, container.keys_end()),
                _ => (0, 0),
            };
            let first = before + places.start.min(container.count);
            let start = match first {
                0 => 0,
                first => container.end(first - 1).unwrap_or(values),
            };
            container.parts(first..before + places.end.min(container.count), start.max(values))
        });
        let parts = parts.into_iter().flatten().flatten();
        parts.filter_map(move |part| self.inside(part))
    }

    /// The members of an object, in order.
    pub fn members(self) -> impl Iterator<Item = (&'b str, JsonbRef<'b>)> {
        let object = Container::of(self.bytes).filter(|_| self.kind() == Kind::Object);
        let pairs = object.map(|mut container| {
            let (count, values) = (container.count, container.keys_end());
            let of_values = container.parts(count..2 * count, values);
            // No key goes on into the values.
            container.data = container.data.get(..values).unwrap_or_default();
            container.parts(0..count, 0).zip(of_values)
        });
        let pairs = pairs.into_iter().flatten();
        pairs.filter_map(move |(key, value)| Some((std::str::from_utf8(key?).ok()?, self.inside(value?)?)))
    }

    /// The number of its bytes.
    pub(crate) fn byte_count(self) -> usize {
        self.bytes.len()
    }

    /// The place of its first byte in a value that it is a part of; `None` if it is no part of that.
    pub(crate) fn place_in(self, outer: JsonbRef<'_>) -> Option<usize> {
        let place = self
            .bytes
            .as_ptr()
            .addr()
            .checked_sub(outer.bytes.as_ptr().addr())?;
        (place < outer.bytes.len()).then_some(place)
    }

    /// It as a value of its own.
    pub fn to_owned(self) -> Jsonb {
        Jsonb(self.bytes.into())
    }

    /// Its tree.
    pub fn tree(self) -> Json {
        match self.kind() {
            Kind::Null => Json::Null,
            Kind::False => Json::Bool(false),
            Kind::True => Json::Bool(true),
            Kind::Number => Json::Number(self.number().unwrap_or(Numeric::ZERO)),
            Kind::String => Json::String(self.text().unwrap_or_default().into()),
            Kind::Array => {
                crate::stack::checkpoint(|| Json::Array(self.elements().map(JsonbRef::tree).collect()))
            }
            Kind::Object => crate::stack::checkpoint(|| {
                let members = self.members().map(|(key, value)| (key.into(), value.tree()));
                Json::Object(members.collect())
            }),
        }
    }
}
