//! The text of values whose form a setting of the session chooses: intervals (`IntervalStyle`) and `bytea`
//! (`bytea_output`), and arrays of them.
//!
//! The text form of values knows nothing of settings and has the default form. So what reads or shows such a value asks
//! the session, in the same places where names are asked for (`registered`). Input depends on the setting for few
//! intervals only ([`depends_on_style`](crate::value::datetime::depends_on_style)); other literals are read when a
//! statement is bound.

use std::borrow::Cow;

use crate::context::SessionFacts;
use crate::error::Result;
use crate::value::bytes::format_escape;
use crate::value::cast::{CastContext, apply_typmod, cast};
use crate::value::compare::trim_blanks;
use crate::value::datetime::{IntervalStyle, format_interval};
use crate::value::text::decode_intervals;
use crate::value::{ArrayValue, DataType, Value};

fn interval_style(session: &dyn SessionFacts) -> IntervalStyle {
    let name = session.setting("intervalstyle");
    name.and_then(|name| IntervalStyle::named(&name))
        .unwrap_or_default()
}

fn is_escape(session: &dyn SessionFacts) -> bool {
    session.setting("bytea_output").as_deref() == Some("escape")
}

/// True if values of this type are shown in another form than the default one.
pub fn is_styled(data_type: DataType, session: &dyn SessionFacts) -> bool {
    match data_type.element().unwrap_or(data_type) {
        DataType::Interval => interval_style(session) != IntervalStyle::default(),
        DataType::Bytea => is_escape(session),
        _ => false,
    }
}

/// Reads the text of a value of a type that has a style.
pub fn read(text: &str, data_type: DataType, typmod: i32, session: &dyn SessionFacts) -> Result<Value> {
    match data_type.element().unwrap_or(data_type) {
        DataType::Interval => decode_intervals(text, data_type, typmod, interval_style(session)),
        _ => crate::value::decode_text(text, data_type, 0),
    }
}

/// The value as a text in the session's style, or an array of such texts; as it is if that is the default.
pub fn shown<'v>(value: &'v Value, data_type: DataType, session: &dyn SessionFacts) -> Cow<'v, Value> {
    if !is_styled(data_type, session) {
        return Cow::Borrowed(value);
    }
    let style = interval_style(session);
    let text = |value: &Value| {
        let mut out = String::new();
        match value {
            Value::Interval(interval) => format_interval(*interval, style, &mut out),
            Value::Bytes(bytes) => format_escape(bytes, &mut out),
            other => return other.clone(),
        }
        Value::text(out)
    };
    match value {
        Value::Array(array) => {
            let texts = array.elements().iter().map(text).collect();
            let strings = DataType::array_of(DataType::Text);
            match ArrayValue::new(strings, array.dimensions().to_vec(), texts) {
                Ok(texts) => Cow::Owned(texts.into()),
                Err(_) => Cow::Borrowed(value),
            }
        }
        value => Cow::Owned(text(value)),
    }
}

/// A cast from or to a type that has a style.
pub(super) fn cast_with_style(
    value: Value,
    from: DataType,
    to: DataType,
    typmod: i32,
    rules: CastContext,
    session: &dyn SessionFacts,
) -> Result<Value> {
    match &value {
        Value::Text(text) if from.is_text() && to.has_style() => {
            let text = if from == DataType::Char {
                trim_blanks(text)
            } else {
                text
            };
            apply_typmod(
                read(text, to, typmod, session)?,
                to,
                typmod,
                rules == CastContext::Explicit,
            )
        }
        value if from.has_style() && to.is_text() => {
            let shown = shown(value, from, session).into_owned();
            let from = match (&shown, value) {
                (Value::Text(_), _) => DataType::Text,
                (Value::Array(texts), _) => texts.data_type(),
                _ => from,
            };
            cast(shown, from, to, typmod, rules, 0)
        }
        _ => cast(value, from, to, typmod, rules, 0),
    }
}
