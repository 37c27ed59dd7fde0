//! `regexp_match`, `regexp_split_to_array` and their kin, whose results are arrays of texts.

use super::{behind, options};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result};
use crate::function::{made_of, text_of};
use crate::regular_expression::{Options, compiled};
use crate::value::array::nested;
use crate::value::{ArrayValue, DataType, Value};

/// The type of the results.
pub(super) const TEXTS: DataType = DataType::array_of(DataType::Text);

/// `regexp_match(text, expression [, options])`: what the parentheses match, or all if there are none.
pub(super) fn regexp_match(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let options = options("regexp_match", arguments.get(2))
        .map_err(|error| with_hint(error, "Use the regexp_matches function instead."))?;
    let expression = compiled(text_of(&arguments[1])?, options)?;
    let Some(spans) = expression.find(text, 0, true, session)? else {
        return Ok(Value::Null);
    };
    matched(text, &spans, expression.groups()).map(Value::from)
}

/// The texts of what the parentheses match, or all if there are none.
fn matched(text: &str, spans: &[Option<(usize, usize)>], groups: usize) -> Result<ArrayValue> {
    let wanted = match groups {
        0 => spans,
        _ => &spans[1..],
    };
    let part = |span: &Option<(usize, usize)>| match *span {
        Some((start, end)) => Value::from(&text[start..end]),
        None => Value::Null,
    };
    ArrayValue::of(TEXTS, wanted.iter().map(part).collect())
}

/// `regexp_matches(text, expression [, options])`: an array of what [`regexp_match`] gives, for the first match or, with
/// the option `g`, for all.
pub(super) fn regexp_matches(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let letters = arguments.get(2).map_or(Ok(""), text_of)?;
    let options = Options::default().with(letters)?;
    let all = options.global;
    let expression = compiled(text_of(&arguments[1])?, options)?;
    let mut found = Vec::new();
    let mut from = Some(0);
    while let Some(at) = from {
        let Some(spans) = expression.find(text, at, true, session)? else {
            break;
        };
        found.push(Value::from(matched(text, &spans, expression.groups())?));
        from = spans[0].filter(|_| all).and_then(|span| behind(text, span));
    }
    nested(TEXTS, &found)
}

fn with_hint(error: EngineError, hint: &str) -> EngineError {
    match error.message().contains("\"global\"") {
        true => error.with_hint(hint),
        false => error,
    }
}

/// `regexp_split_to_array(text, expression [, options])`: what stands between the matches.
pub(super) fn split(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    split_by("regexp_split_to_array", arguments, session)
}

/// `regexp_split_to_table(text, expression [, options])`: the same, whose rows are the elements.
pub(super) fn split_to_table(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    split_by("regexp_split_to_table", arguments, session)
}

fn split_by(name: &str, arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let options = options(name, arguments.get(2))?;
    let expression = compiled(text_of(&arguments[1])?, options)?;
    let mut parts = Vec::new();
    let (mut copied, mut last_end) = (0, 0);
    let mut from = Some(0);
    while let Some(at) = from {
        let Some(span) = expression
            .find(text, at, false, session)?
            .and_then(|spans| spans[0])
        else {
            break;
        };
        let (start, end) = span;
        // An empty match at either end, or right behind another match, splits nothing.
        if start < text.len() && end > last_end {
            parts.push(Value::from(&text[copied..start]));
            copied = end;
        }
        last_end = end;
        from = behind(text, span);
    }
    parts.push(Value::from(&text[copied..]));
    ArrayValue::of(TEXTS, parts).map(Value::from)
}
