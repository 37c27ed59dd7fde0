//! Functions of LISTEN and NOTIFY.

use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::Result;
use crate::value::DataType::{Float8, Text, Void};
use crate::value::{ArrayValue, DataType, Value};

/// The functions. `pg_listening_channels` gives rows: those of the array that it makes here.
pub(super) static ROWS: &[FunctionRow] = &[
    row(3036, "pg_notify", &[Text, Text], Void, Session(notify))
        .volatile()
        .called_on_null(),
    row(3035, "pg_listening_channels", &[], CHANNELS, Session(channels)).stable(),
    row(
        3296,
        "pg_notification_queue_usage",
        &[],
        Float8,
        Session(|_, session| Ok(Value::Float8(session.notification_queue_usage()))),
    )
    .volatile(),
];

const CHANNELS: DataType = DataType::array_of(Text);

fn notify(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let [channel, payload] = [0, 1].map(|at| arguments[at].as_str().unwrap_or(""));
    session.notify(channel, payload)?;
    Ok(Value::from(""))
}

fn channels(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let channels = session.listening_channels().into_iter().map(Value::text);
    Ok(ArrayValue::of(CHANNELS, channels.collect())?.into())
}
