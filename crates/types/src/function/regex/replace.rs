//! `regexp_replace`.

use super::matching::Spans;
use super::{behind, byte_of, positive, wrong_parameter};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::function::{check_length, int, made_of, text_of};
use crate::regular_expression::{Options, compiled};
use crate::value::Value;

/// `regexp_replace(text, expression, replacement [, options])`, or `(…, start [, n [, options]])`.
pub(super) fn regexp_replace(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let replacement = text_of(&arguments[2])?;
    let with_place = matches!(arguments.get(3), Some(Value::Int4(_)));
    let letters = match with_place {
        true => arguments.get(5),
        false => arguments.get(3),
    };
    let letters = letters.map_or(Ok(""), text_of)?;
    if !with_place && letters.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid regular expression option: \"{letters}\""),
        )
        .with_hint(
            "For regexp_replace() with a start position, cast the fourth argument to integer explicitly.",
        ));
    }
    let options = Options::default().with(letters)?;
    let start = if with_place {
        positive(arguments, 3, "start")?
    } else {
        1
    };
    // Which match is replaced; 0 means all.
    let number = match arguments.get(4).map(int).transpose()? {
        Some(number @ 0..) => number as usize,
        Some(number) => return Err(wrong_parameter("n", number)),
        None => usize::from(!options.global),
    };
    let expression = compiled(text_of(&arguments[1])?, options)?;
    let parts = Parts::of(replacement);
    let mut result = String::new();
    let (mut copied, mut passed) = (0, 0);
    let mut from = byte_of(text, start);
    while let Some(at) = from {
        let Some(spans) = expression.find(text, at, parts.has_groups, session)? else {
            break;
        };
        let Some(span) = spans[0] else { break };
        passed += 1;
        if number == 0 || passed == number {
            result.push_str(&text[copied..span.0]);
            parts.append(&mut result, text, &spans);
            check_length(result.len())?;
            copied = span.1;
        }
        if passed == number {
            break;
        }
        from = behind(text, span);
    }
    result.push_str(&text[copied..]);
    check_length(result.len())?;
    Ok(Value::text(result))
}

/// A replacement, taken apart.
struct Parts<'a> {
    parts: Vec<Part<'a>>,
    has_groups: bool,
}

enum Part<'a> {
    Text(&'a str),
    /// `\1` to `\9`, and `\&` for the whole
    Group(usize),
}

impl Parts<'_> {
    fn of(replacement: &str) -> Parts<'_> {
        let mut parts = Vec::new();
        let mut rest = replacement;
        while let Some(at) = rest.find('\\') {
            parts.push(Part::Text(&rest[..at]));
            let escaped = &rest[at + 1..];
            let first = escaped.chars().next();
            let length = first.map_or(0, char::len_utf8);
            parts.push(match first {
                Some(digit @ '1'..='9') => Part::Group(digit as usize - '0' as usize),
                Some('&') => Part::Group(0),
                Some('\\') => Part::Text("\\"),
                // An escape that means nothing is itself.
                _ => Part::Text(&rest[at..at + 1 + length]),
            });
            rest = &escaped[length..];
        }
        parts.push(Part::Text(rest));
        let has_groups = parts.iter().any(|part| matches!(part, Part::Group(1..)));
        Parts { parts, has_groups }
    }

    fn append(&self, result: &mut String, text: &str, spans: &Spans) {
        for part in &self.parts {
            match part {
                Part::Text(text) => result.push_str(text),
                Part::Group(number) => {
                    if let Some((start, end)) = spans.get(*number).copied().flatten() {
                        result.push_str(&text[start..end]);
                    }
                }
            }
        }
    }
}
