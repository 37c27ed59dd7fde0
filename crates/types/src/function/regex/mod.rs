//! Regular expressions: the operators `~ ~* !~ !~*`, SIMILAR TO, and the functions.
//!
//! | module | job |
//! | --- | --- |
//! | `matching` | where a match and its parentheses begin and end, by PostgreSQL's rules |
//! | `similar` | patterns of SIMILAR TO |
//! | `replace`, `arrays` | `regexp_replace`; `regexp_match`, `regexp_matches`, `regexp_split_to_array`, `regexp_split_to_table` |
//!
//! Expressions are read and compiled by [`crate::regular_expression`], which also says what differs from PostgreSQL.

mod arrays;
mod matching;
mod replace;
mod similar;

use super::row::Implementation::{Pure, Session};
use super::row::{FunctionRow, row};
use super::{int, made_of, text_of};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::regular_expression::{Options, Span, compiled};
use crate::value::DataType::{Bool, Int4, Text};
use crate::value::Value;
use matching::Spans;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        1254,
        "textregexeq",
        &[Text, Text],
        Bool,
        Pure(|x| is_match(x, "", false)),
    )
    .operator("~"),
    row(
        1238,
        "texticregexeq",
        &[Text, Text],
        Bool,
        Pure(|x| is_match(x, "i", false)),
    )
    .operator("~*"),
    row(
        1256,
        "textregexne",
        &[Text, Text],
        Bool,
        Pure(|x| is_match(x, "", true)),
    )
    .operator("!~"),
    row(
        1239,
        "texticregexne",
        &[Text, Text],
        Bool,
        Pure(|x| is_match(x, "i", true)),
    )
    .operator("!~*"),
    row(6263, "regexp_like", &[Text, Text], Bool, Pure(regexp_like)),
    row(6264, "regexp_like", &[Text, Text, Text], Bool, Pure(regexp_like)),
    row(2073, "substring", &[Text, Text], Text, Session(first_part)),
    row(
        2074,
        "substring",
        &[Text, Text, Text],
        Text,
        Session(similar_part),
    ),
    row(6254, "regexp_count", &[Text, Text], Int4, Session(count)),
    row(6255, "regexp_count", &[Text, Text, Int4], Int4, Session(count)),
    row(
        6256,
        "regexp_count",
        &[Text, Text, Int4, Text],
        Int4,
        Session(count),
    ),
    row(6257, "regexp_instr", &[Text, Text], Int4, Session(instr)),
    row(6258, "regexp_instr", &[Text, Text, Int4], Int4, Session(instr)),
    row(
        6259,
        "regexp_instr",
        &[Text, Text, Int4, Int4],
        Int4,
        Session(instr),
    ),
    row(
        6260,
        "regexp_instr",
        &[Text, Text, Int4, Int4, Int4],
        Int4,
        Session(instr),
    ),
    row(
        6261,
        "regexp_instr",
        &[Text, Text, Int4, Int4, Int4, Text],
        Int4,
        Session(instr),
    ),
    row(
        6262,
        "regexp_instr",
        &[Text, Text, Int4, Int4, Int4, Text, Int4],
        Int4,
        Session(instr),
    ),
    row(6265, "regexp_substr", &[Text, Text], Text, Session(substr)),
    row(6266, "regexp_substr", &[Text, Text, Int4], Text, Session(substr)),
    row(
        6267,
        "regexp_substr",
        &[Text, Text, Int4, Int4],
        Text,
        Session(substr),
    ),
    row(
        6268,
        "regexp_substr",
        &[Text, Text, Int4, Int4, Text],
        Text,
        Session(substr),
    ),
    row(
        6269,
        "regexp_substr",
        &[Text, Text, Int4, Int4, Text, Int4],
        Text,
        Session(substr),
    ),
    row(
        2284,
        "regexp_replace",
        &[Text, Text, Text],
        Text,
        Session(replace::regexp_replace),
    ),
    row(
        2285,
        "regexp_replace",
        &[Text, Text, Text, Text],
        Text,
        Session(replace::regexp_replace),
    ),
    row(
        6253,
        "regexp_replace",
        &[Text, Text, Text, Int4],
        Text,
        Session(replace::regexp_replace),
    ),
    row(
        6252,
        "regexp_replace",
        &[Text, Text, Text, Int4, Int4],
        Text,
        Session(replace::regexp_replace),
    ),
    row(
        6251,
        "regexp_replace",
        &[Text, Text, Text, Int4, Int4, Text],
        Text,
        Session(replace::regexp_replace),
    ),
    row(1987, "similar_to_escape", &[Text], Text, Pure(similar::to_escape)),
    row(
        1986,
        "similar_to_escape",
        &[Text, Text],
        Text,
        Pure(similar::to_escape),
    ),
    row(
        3396,
        "regexp_match",
        &[Text, Text],
        arrays::TEXTS,
        Session(arrays::regexp_match),
    ),
    row(
        3397,
        "regexp_match",
        &[Text, Text, Text],
        arrays::TEXTS,
        Session(arrays::regexp_match),
    ),
    // The rows of these functions are the elements of what they make here.
    row(
        2763,
        "regexp_matches",
        &[Text, Text],
        arrays::TEXTS,
        Session(arrays::regexp_matches),
    ),
    row(
        2764,
        "regexp_matches",
        &[Text, Text, Text],
        arrays::TEXTS,
        Session(arrays::regexp_matches),
    ),
    row(
        2765,
        "regexp_split_to_table",
        &[Text, Text],
        arrays::TEXTS,
        Session(arrays::split_to_table),
    ),
    row(
        2766,
        "regexp_split_to_table",
        &[Text, Text, Text],
        arrays::TEXTS,
        Session(arrays::split_to_table),
    ),
    row(
        2767,
        "regexp_split_to_array",
        &[Text, Text],
        arrays::TEXTS,
        Session(arrays::split),
    ),
    row(
        2768,
        "regexp_split_to_array",
        &[Text, Text, Text],
        arrays::TEXTS,
        Session(arrays::split),
    ),
];

fn is_match(arguments: &[Value], letters: &str, negated: bool) -> Result<Value> {
    let options = Options::default().with(letters)?;
    let expression = compiled(text_of(&arguments[1])?, options)?;
    Ok(Value::Bool(
        expression.is_match(text_of(&arguments[0])?) != negated,
    ))
}

/// The options of a call that knows no `g`.
fn options(function: &str, letters: Option<&Value>) -> Result<Options> {
    let letters = letters.map_or(Ok(""), text_of)?;
    let options = Options::default().with(letters)?;
    if options.global {
        return Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{function}() does not support the \"global\" option"),
        ));
    }
    Ok(options)
}

fn regexp_like(arguments: &[Value]) -> Result<Value> {
    let options = options("regexp_like", arguments.get(2))?;
    let expression = compiled(text_of(&arguments[1])?, options)?;
    Ok(Value::Bool(expression.is_match(text_of(&arguments[0])?)))
}

/// `substring(text from expression)`: what the first parentheses match, or all if there are none.
fn first_part(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let expression = compiled(text_of(&arguments[1])?, Options::default())?;
    let group = expression.groups().min(1);
    let found = expression.find(text, 0, true, session)?;
    let span = found.and_then(|spans| spans[group]);
    Ok(span.map_or(Value::Null, |(start, end)| Value::from(&text[start..end])))
}

/// `substring(text similar pattern escape character)`.
fn similar_part(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let expression = similar::to_escape(&arguments[1..])?;
    first_part(&[arguments[0].clone(), expression], session)
}

/// An argument that counts from 1.
fn positive(arguments: &[Value], at: usize, name: &str) -> Result<usize> {
    let Some(value) = arguments.get(at) else {
        return Ok(1);
    };
    match int(value)? {
        number @ 1.. => Ok(number as usize),
        number => Err(wrong_parameter(name, number)),
    }
}

#[cold]
fn wrong_parameter(name: &str, number: i32) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": {number}"),
    )
}

/// The byte of a character that is counted from 1; `None` if the text is too short for it.
fn byte_of(text: &str, character: usize) -> Option<usize> {
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(character - 1)
}

/// The place behind a match, from which the next is looked for: an empty match is passed over.
fn behind(text: &str, (start, end): Span) -> Option<usize> {
    if end > start {
        return Some(end);
    }
    text[end..].chars().next().map(|next| end + next.len_utf8())
}

fn count(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = text_of(&arguments[0])?;
    let start = positive(arguments, 2, "start")?;
    let options = options("regexp_count", arguments.get(3))?;
    let expression = compiled(text_of(&arguments[1])?, options)?;
    let mut from = byte_of(text, start);
    let mut count = 0;
    while let Some(at) = from {
        let Some(spans) = expression.find(text, at, false, session)? else {
            break;
        };
        count += 1;
        from = spans[0].and_then(|span| behind(text, span));
    }
    Ok(Value::Int4(count))
}

/// The match of a number that a call asks for, counted from the character where it starts.
fn nth_match(
    arguments: &[Value],
    letters: Option<&Value>,
    function: &str,
    session: &dyn SessionFacts,
) -> Result<Option<Spans>> {
    let text = text_of(&arguments[0])?;
    let start = positive(arguments, 2, "start")?;
    let number = positive(arguments, 3, "n")?;
    let options = options(function, letters)?;
    let expression = compiled(text_of(&arguments[1])?, options)?;
    let mut from = byte_of(text, start);
    let mut passed = 0;
    while let Some(at) = from {
        let Some(spans) = expression.find(text, at, true, session)? else {
            break;
        };
        passed += 1;
        if passed == number {
            return Ok(Some(spans));
        }
        from = spans[0].and_then(|span| behind(text, span));
    }
    Ok(None)
}

/// The number of the parentheses that a call asks for; 0 is the whole.
fn group(arguments: &[Value], at: usize) -> Result<usize> {
    match arguments.get(at).map(int).transpose()? {
        None => Ok(0),
        Some(number @ 0..) => Ok(number as usize),
        Some(number) => Err(wrong_parameter("subexpr", number)),
    }
}

fn substr(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let group = group(arguments, 5)?;
    let found = nth_match(arguments, arguments.get(4), "regexp_substr", session)?;
    let span = found.and_then(|spans| spans.get(group).copied().flatten());
    Ok(span.map_or(Value::Null, |(start, end)| Value::from(&text[start..end])))
}

fn instr(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let text = text_of(&arguments[0])?;
    let at_end = match arguments.get(4).map(int).transpose()? {
        None | Some(0) => false,
        Some(1) => true,
        Some(number) => return Err(wrong_parameter("endoption", number)),
    };
    let group = group(arguments, 6)?;
    let found = nth_match(arguments, arguments.get(5), "regexp_instr", session)?;
    let span = found.and_then(|spans| spans.get(group).copied().flatten());
    Ok(Value::Int4(span.map_or(0, |(start, end)| {
        let byte = if at_end { end } else { start };
        text[..byte].chars().count() as i32 + 1
    })))
}
