//! `to_regclass` and its kin, and `pg_typeof`.

use super::catalog::text_of;
use super::registered;
use super::row::Implementation::{Session, Typed};
use super::row::{FunctionRow, row};
use super::{Function, Signature};
use crate::context::SessionFacts;
use crate::error::{Result, SqlState};
use crate::value::DataType::{
    Regclass, Regcollation, Regnamespace, Regoper, Regoperator, Regproc, Regprocedure, Regrole, Regtype, Text,
};
use crate::value::{DataType, Value};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        3495,
        "to_regclass",
        &[Text],
        Regclass,
        Session(|x, s| found(x, Regclass, s)),
    )
    .stable(),
    row(
        3493,
        "to_regtype",
        &[Text],
        Regtype,
        Session(|x, s| found(x, Regtype, s)),
    )
    .stable(),
    row(
        3494,
        "to_regproc",
        &[Text],
        Regproc,
        Session(|x, s| found(x, Regproc, s)),
    )
    .stable(),
    row(
        3492,
        "to_regoper",
        &[Text],
        Regoper,
        Session(|x, s| found(x, Regoper, s)),
    )
    .stable(),
    row(
        3476,
        "to_regoperator",
        &[Text],
        Regoperator,
        Session(|x, s| found(x, Regoperator, s)),
    )
    .stable(),
    row(
        3479,
        "to_regprocedure",
        &[Text],
        Regprocedure,
        Session(|x, s| found(x, Regprocedure, s)),
    )
    .stable(),
    row(
        4195,
        "to_regcollation",
        &[Text],
        Regcollation,
        Session(|x, s| found(x, Regcollation, s)),
    )
    .stable(),
    row(
        4086,
        "to_regnamespace",
        &[Text],
        Regnamespace,
        Session(|x, s| found(x, Regnamespace, s)),
    )
    .stable(),
    row(
        4093,
        "to_regrole",
        &[Text],
        Regrole,
        Session(|x, s| found(x, Regrole, s)),
    )
    .stable(),
];

/// `pg_typeof`, of a value of any type.
static TYPE_OF: FunctionRow = row(
    1619,
    "pg_typeof",
    &[],
    Regtype,
    Typed(|_, of| Ok(Value::Oid(of.oid()))),
)
.stable()
.called_on_null();

/// `pg_typeof` of an argument of this type.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    let [data_type] = *arguments else { return None };
    (name == "pg_typeof").then(|| Signature {
        function: Function::over(&TYPE_OF, data_type),
        arguments: vec![data_type],
        result: Regtype,
    })
}

/// The object that a text names; NULL if there is none.
fn found(arguments: &[Value], data_type: DataType, session: &dyn SessionFacts) -> Result<Value> {
    match registered::read(text_of(&arguments[0])?, data_type, session) {
        Err(error) if is_missing(error.sqlstate()) => Ok(Value::Null),
        other => other,
    }
}

/// True for the errors that there is no such object, or several.
fn is_missing(state: SqlState) -> bool {
    matches!(state.as_str(), "42P01" | "42704" | "42883" | "42725" | "3F000")
}
