//! Functions about the session and the time.

use super::VERSION;
use super::row::Implementation::{Pure, Session};
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{
    Bool, Date, Float8, Int4, Name, Text, Time, TimeTz, Timestamp, TimestampTz, Void,
};
use crate::value::datetime::{MICROS_PER_DAY, NamedZone};
use crate::value::{Value, datetime};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(89, "version", &[], Text, Pure(|_| Ok(Value::from(VERSION)))).stable(),
    row(1299, "now", &[], TimestampTz, Session(transaction_start)).stable(),
    row(
        2647,
        "transaction_timestamp",
        &[],
        TimestampTz,
        Session(transaction_start),
    )
    .stable(),
    row(
        0,
        "current_timestamp",
        &[],
        TimestampTz,
        Session(transaction_start),
    )
    .stable(),
    row(
        0,
        "current_timestamp",
        &[Int4],
        TimestampTz,
        Session(transaction_start),
    )
    .stable(),
    row(0, "localtimestamp", &[Int4], Timestamp, Session(local_timestamp)).stable(),
    row(
        2648,
        "statement_timestamp",
        &[],
        TimestampTz,
        Session(statement_start),
    )
    .stable(),
    row(
        2649,
        "clock_timestamp",
        &[],
        TimestampTz,
        Pure(|_| Ok(Value::TimestampTz(datetime::clock()))),
    )
    .volatile(),
    row(0, "current_date", &[], Date, Session(current_date)).stable(),
    row(0, "localtimestamp", &[], Timestamp, Session(local_timestamp)).stable(),
    row(0, "current_time", &[], TimeTz, Session(current_time)).stable(),
    row(0, "current_time", &[Int4], TimeTz, Session(current_time)).stable(),
    row(0, "localtime", &[], Time, Session(local_time)).stable(),
    row(0, "localtime", &[Int4], Time, Session(local_time)).stable(),
    row(861, "current_database", &[], Name, Session(database)).stable(),
    row(0, "current_catalog", &[], Name, Session(database)).stable(),
    row(1402, "current_schema", &[], Name, Session(current_schema)).stable(),
    row(745, "current_user", &[], Name, Session(user)).stable(),
    row(746, "session_user", &[], Name, Session(session_user)).stable(),
    row(0, "current_role", &[], Name, Session(user)).stable(),
    row(0, "user", &[], Name, Session(user)).stable(),
    row(
        2026,
        "pg_backend_pid",
        &[],
        Int4,
        Session(|_, session| Ok(Value::Int4(session.backend_pid()))),
    )
    .stable(),
    row(2077, "current_setting", &[Text], Text, Session(current_setting)).stable(),
    row(
        3294,
        "current_setting",
        &[Text, Bool],
        Text,
        Session(current_setting),
    )
    .stable(),
    row(2078, "set_config", &[Text, Text, Bool], Text, Session(set_config))
        .volatile()
        .called_on_null(),
    row(
        1598,
        "random",
        &[],
        Float8,
        Session(|_, session| Ok(Value::Float8(session.random()))),
    )
    .volatile(),
    row(2626, "pg_sleep", &[Float8], Void, Session(sleep)).volatile(),
];

/// Digits of a second that a timestamp is rounded to, if they are given. As in PostgreSQL there are 6 at most.
fn precision(arguments: &[Value]) -> i32 {
    match arguments {
        [Value::Int4(digits)] => (*digits).clamp(0, 6),
        _ => 6,
    }
}

fn transaction_start(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let at = datetime::round_timestamp(session.transaction_timestamp(), precision(arguments));
    Ok(Value::TimestampTz(at))
}

fn statement_start(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::TimestampTz(session.statement_timestamp()))
}

/// The time that the session's clocks showed when the transaction began.
fn local_now(session: &dyn SessionFacts) -> i64 {
    NamedZone::of_session().local(session.transaction_timestamp())
}

fn current_date(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::Date(local_now(session).div_euclid(MICROS_PER_DAY) as i32))
}

fn local_timestamp(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let at = datetime::round_timestamp(local_now(session), precision(arguments));
    Ok(Value::Timestamp(at))
}

/// The time of day at the transaction's start.
fn time_of_day(arguments: &[Value], session: &dyn SessionFacts) -> i64 {
    let time = local_now(session).rem_euclid(MICROS_PER_DAY);
    datetime::round_time(time, precision(arguments))
}

fn current_time(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let east = NamedZone::of_session().offset_at(session.transaction_timestamp());
    Ok(Value::TimeTz(time_of_day(arguments, session), -east as i32))
}

fn local_time(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::Time(time_of_day(arguments, session)))
}

fn database(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::from(session.database()))
}

fn user(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::from(session.user()))
}

fn session_user(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::from(session.session_user()))
}

/// The first schema of the search path that there is.
fn current_schema(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let mut schemas = session.catalog()?.schemas_on_path(false).into_iter();
    Ok(schemas.next().map_or(Value::Null, Value::text))
}

fn current_setting(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some(name) = arguments[0].as_str() else {
        return Ok(Value::Null);
    };
    match session.setting(&name.to_lowercase()) {
        Some(value) => Ok(Value::from(&*value)),
        None if arguments.get(1).and_then(Value::as_bool) == Some(true) => Ok(Value::Null),
        None => Err(EngineError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
    }
}

fn set_config(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some(name) = arguments[0].as_str() else {
        return Err(EngineError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "SET requires parameter name",
        ));
    };
    let local = arguments[2].as_bool() == Some(true);
    let set = session.set_setting(name, arguments[1].as_str(), local)?;
    Ok(Value::from(&*set))
}

fn sleep(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    const LONGEST_SECONDS: f64 = 1e9;
    if let Value::Float8(seconds) = arguments[0]
        && seconds > 0.0
    {
        session.sleep(std::time::Duration::from_secs_f64(seconds.min(LONGEST_SECONDS)))?;
    }
    Ok(Value::from(""))
}
