//! `to_char` of a number and `to_number`: numbers written and read by a template.
//!
//! ```text
//! to_char(-1234.5, '9G999D99')  →  '-1,234.50'      to_number('-1,234.50', '9G999D99')  →  -1234.50
//! ```
//!
//! | module | job |
//! |---|---|
//! | `parse` | the template as a list of pieces, and what the pieces say together |
//! | `digits` | the number as the digits that the template has places for |
//! | `write` | digits into the places of the template |
//! | `read` | a text by a template |
//!
//! The rules, which are PostgreSQL's:
//! - A *place* is a `9`, a `0`, or the point (`.`, `D`). The digits of the number fill the places from the point
//!   outwards; a number with more digits before the point than there are places shows `#` in all of them.
//! - The sign is before the first digit, unless one of `S`, `MI`, `PL`, `SG`, `PR` gives it another place.
//! - `FM` leaves out what is there for the width only: blanks, zeros at the end.
//! - `EEEE` and `RN` replace the whole number: by its scientific form, by its Roman numeral.
//! - Text that is no pattern is copied; when a number is read, each of its characters skips one of the input.
//!
//! The locale is "C": the point is `.`, the separator of groups `,`, the currency a blank.
//!
//! One difference is meant: `V` multiplies an integer by a power of ten, and where PostgreSQL shows what is left after
//! an overflow of `integer`, here it is an error (22003), as it is for `bigint` in both.

mod digits;
mod parse;
mod read;
mod roman;
#[cfg(test)]
mod tests;
mod write;

use crate::error::Result;
use crate::value::{Numeric, Value};

use parse::Template;

/// The text of a number by a template.
pub(super) fn to_char(number: &Value, template: &str) -> Result<String> {
    let template = Template::parse(template)?;
    if template.scientific {
        return digits::scientific(number, &template);
    }
    if template.roman {
        return Ok(write::roman(&template, digits::roman_value(number)?));
    }
    write::number(&template, &digits::Digits::of(number, &template)?)
}

/// The number that a text has by a template; `None` for an empty template.
pub(super) fn to_number(input: &str, template: &str) -> Result<Option<Numeric>> {
    if template.is_empty() {
        return Ok(None);
    }
    read::number(input, &Template::parse(template)?).map(Some)
}
