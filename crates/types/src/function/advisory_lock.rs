//! Functions of advisory locks: locks on numbers that mean something to a program alone.
//!
//! A lock is named by one number of 64 bits or by two of 32; the two kinds are apart. It belongs to the session until it is
//! given back as often as it was taken, or to the transaction (`xact`) until that ends.

use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::{AdvisoryKey, AdvisoryLock, SessionFacts};
use crate::error::{EngineError, Result};
use crate::value::DataType::{Bool, Int4, Int8, Void};
use crate::value::Value;

const EXCLUSIVE: bool = false;
const SHARED: bool = true;
const SESSION: bool = false;
const TRANSACTION: bool = true;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        2880,
        "pg_advisory_lock",
        &[Int8],
        Void,
        Session(lock::<EXCLUSIVE, SESSION>),
    )
    .volatile(),
    row(
        2881,
        "pg_advisory_lock_shared",
        &[Int8],
        Void,
        Session(lock::<SHARED, SESSION>),
    )
    .volatile(),
    row(
        2882,
        "pg_try_advisory_lock",
        &[Int8],
        Bool,
        Session(try_lock::<EXCLUSIVE, SESSION>),
    )
    .volatile(),
    row(
        2883,
        "pg_try_advisory_lock_shared",
        &[Int8],
        Bool,
        Session(try_lock::<SHARED, SESSION>),
    )
    .volatile(),
    row(
        2884,
        "pg_advisory_unlock",
        &[Int8],
        Bool,
        Session(unlock::<EXCLUSIVE>),
    )
    .volatile(),
    row(
        2885,
        "pg_advisory_unlock_shared",
        &[Int8],
        Bool,
        Session(unlock::<SHARED>),
    )
    .volatile(),
    row(
        2886,
        "pg_advisory_lock",
        &[Int4, Int4],
        Void,
        Session(lock::<EXCLUSIVE, SESSION>),
    )
    .volatile(),
    row(
        2887,
        "pg_advisory_lock_shared",
        &[Int4, Int4],
        Void,
        Session(lock::<SHARED, SESSION>),
    )
    .volatile(),
    row(
        2888,
        "pg_try_advisory_lock",
        &[Int4, Int4],
        Bool,
        Session(try_lock::<EXCLUSIVE, SESSION>),
    )
    .volatile(),
    row(
        2889,
        "pg_try_advisory_lock_shared",
        &[Int4, Int4],
        Bool,
        Session(try_lock::<SHARED, SESSION>),
    )
    .volatile(),
    row(
        2890,
        "pg_advisory_unlock",
        &[Int4, Int4],
        Bool,
        Session(unlock::<EXCLUSIVE>),
    )
    .volatile(),
    row(
        2891,
        "pg_advisory_unlock_shared",
        &[Int4, Int4],
        Bool,
        Session(unlock::<SHARED>),
    )
    .volatile(),
    row(
        3089,
        "pg_advisory_xact_lock",
        &[Int8],
        Void,
        Session(lock::<EXCLUSIVE, TRANSACTION>),
    )
    .volatile(),
    row(
        3090,
        "pg_advisory_xact_lock_shared",
        &[Int8],
        Void,
        Session(lock::<SHARED, TRANSACTION>),
    )
    .volatile(),
    row(
        3091,
        "pg_try_advisory_xact_lock",
        &[Int8],
        Bool,
        Session(try_lock::<EXCLUSIVE, TRANSACTION>),
    )
    .volatile(),
    row(
        3092,
        "pg_try_advisory_xact_lock_shared",
        &[Int8],
        Bool,
        Session(try_lock::<SHARED, TRANSACTION>),
    )
    .volatile(),
    row(
        3093,
        "pg_advisory_xact_lock",
        &[Int4, Int4],
        Void,
        Session(lock::<EXCLUSIVE, TRANSACTION>),
    )
    .volatile(),
    row(
        3094,
        "pg_advisory_xact_lock_shared",
        &[Int4, Int4],
        Void,
        Session(lock::<SHARED, TRANSACTION>),
    )
    .volatile(),
    row(
        3095,
        "pg_try_advisory_xact_lock",
        &[Int4, Int4],
        Bool,
        Session(try_lock::<EXCLUSIVE, TRANSACTION>),
    )
    .volatile(),
    row(
        3096,
        "pg_try_advisory_xact_lock_shared",
        &[Int4, Int4],
        Bool,
        Session(try_lock::<SHARED, TRANSACTION>),
    )
    .volatile(),
    row(2892, "pg_advisory_unlock_all", &[], Void, Session(unlock_all)).volatile(),
];

fn key(arguments: &[Value]) -> Result<AdvisoryKey> {
    match arguments {
        [Value::Int8(number)] => Ok(AdvisoryKey {
            high: (*number as u64 >> 32) as u32,
            low: *number as u32,
            is_pair: false,
        }),
        [Value::Int4(high), Value::Int4(low)] => Ok(AdvisoryKey {
            high: *high as u32,
            low: *low as u32,
            is_pair: true,
        }),
        other => Err(EngineError::internal(format!("{other:?} name no advisory lock"))),
    }
}

fn lock<const SHARED: bool, const TRANSACTION: bool>(
    arguments: &[Value],
    session: &dyn SessionFacts,
) -> Result<Value> {
    let lock = AdvisoryLock {
        key: key(arguments)?,
        shared: SHARED,
    };
    session.lock_advisory(lock, TRANSACTION, true)?;
    Ok(Value::from(""))
}

fn try_lock<const SHARED: bool, const TRANSACTION: bool>(
    arguments: &[Value],
    session: &dyn SessionFacts,
) -> Result<Value> {
    let lock = AdvisoryLock {
        key: key(arguments)?,
        shared: SHARED,
    };
    session.lock_advisory(lock, TRANSACTION, false).map(Value::Bool)
}

fn unlock<const SHARED: bool>(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let lock = AdvisoryLock {
        key: key(arguments)?,
        shared: SHARED,
    };
    session.unlock_advisory(lock).map(Value::Bool)
}

fn unlock_all(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    session.unlock_all_advisory();
    Ok(Value::from(""))
}
