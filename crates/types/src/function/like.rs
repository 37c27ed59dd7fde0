//! LIKE over the patterns of an array: `x LIKE ANY (array)`, `x NOT ILIKE ALL (array)`.

use super::Function;
use super::row::{FunctionRow, Implementation, row};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result};
use crate::value::array::elements_of;
use crate::value::text::like;
use crate::value::{DataType, Value};

static LIKE_ELEMENTS: FunctionRow = row(
    0,
    "like_elements",
    &[],
    DataType::Bool,
    Implementation::Session(like_elements),
)
.called_on_null();

/// The function behind it: text, array of patterns, then whether all of them count, NOT, and ILIKE. No call can name it.
pub fn like_elements_function() -> Function {
    Function::of_row(&LIKE_ELEMENTS)
}

/// True for ANY if it is true for one pattern, for ALL unless it is false for one. A NULL leaves open what no other
/// pattern decides.
fn like_elements(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let [input, patterns, all, negated, ignore_case] = arguments else {
        return Err(EngineError::internal("LIKE ANY is given other arguments"));
    };
    if patterns.is_null() {
        return Ok(Value::Null);
    }
    let [all, negated, ignore_case] =
        [all, negated, ignore_case].map(|option| option.as_bool() == Some(true));
    let folded = |text: &str| match ignore_case {
        true => text.to_lowercase(),
        false => text.to_owned(),
    };
    let input = input.as_str().map(folded);
    let mut result = Value::Bool(all);
    for pattern in elements_of(patterns)? {
        session.check_interrupts()?;
        let (Some(input), Some(pattern)) = (&input, pattern.as_str()) else {
            result = Value::Null;
            continue;
        };
        let go_on = || session.check_interrupts();
        let matches = like(input, &folded(pattern), Some('\\'), go_on)? != negated;
        if matches != all {
            return Ok(Value::Bool(matches));
        }
    }
    Ok(result)
}
