//! Functions about the server: its log, a standby, its configuration. Positions in the log are of type `pg_lsn`.

use std::time::Duration;

use self::RecoveryFunction::{
    Current, Difference, IsInRecovery, IsReplayPaused, Last, LastReplayedCommit, LogFile, PauseReplay,
    Promote, ReloadConfiguration, ReplayPauseState, ResumeReplay, SwitchLogFile,
};
use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::LogPosition::{self, Flushed, Inserted, Received, Replayed};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Bool, Int4, Numeric, PgLsn, Text, TimestampTz, Void};
use crate::value::{Numeric as Decimal, Value};

/// A function about the log or a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecoveryFunction {
    /// `pg_is_in_recovery()`
    IsInRecovery,
    /// `pg_current_wal_lsn()`, `pg_current_wal_flush_lsn()`, `pg_current_wal_insert_lsn()`
    Current(LogPosition),
    /// `pg_last_wal_receive_lsn()`, `pg_last_wal_replay_lsn()`
    Last(LogPosition),
    /// `pg_last_xact_replay_timestamp()`
    LastReplayedCommit,
    /// `pg_wal_lsn_diff(a, b)`
    Difference,
    /// `pg_promote([wait [, wait_seconds]])`
    Promote,
    /// `pg_reload_conf()`
    ReloadConfiguration,
    /// `pg_wal_replay_pause()`
    PauseReplay,
    /// `pg_wal_replay_resume()`
    ResumeReplay,
    /// `pg_is_wal_replay_paused()`: as soon as it is asked for
    IsReplayPaused,
    /// `pg_get_wal_replay_pause_state()`
    ReplayPauseState,
    /// `pg_switch_wal()`
    SwitchLogFile,
    /// `pg_walfile_name(position)`
    LogFile,
}

/// The time that `pg_promote()` waits, unless it says otherwise.
const PROMOTION_SECONDS: i32 = 60;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        3810,
        "pg_is_in_recovery",
        &[],
        Bool,
        Session(|x, s| IsInRecovery.call(x, s)),
    )
    .volatile(),
    // What is written is durable: there is no moment at which a session could see one without the other.
    row(
        2849,
        "pg_current_wal_lsn",
        &[],
        PgLsn,
        Session(|x, s| Current(Flushed).call(x, s)),
    )
    .volatile(),
    row(
        3330,
        "pg_current_wal_flush_lsn",
        &[],
        PgLsn,
        Session(|x, s| Current(Flushed).call(x, s)),
    )
    .volatile(),
    row(
        2852,
        "pg_current_wal_insert_lsn",
        &[],
        PgLsn,
        Session(|x, s| Current(Inserted).call(x, s)),
    )
    .volatile(),
    row(
        3820,
        "pg_last_wal_receive_lsn",
        &[],
        PgLsn,
        Session(|x, s| Last(Received).call(x, s)),
    )
    .volatile(),
    row(
        3821,
        "pg_last_wal_replay_lsn",
        &[],
        PgLsn,
        Session(|x, s| Last(Replayed).call(x, s)),
    )
    .volatile(),
    row(
        3830,
        "pg_last_xact_replay_timestamp",
        &[],
        TimestampTz,
        Session(|x, s| LastReplayedCommit.call(x, s)),
    )
    .volatile(),
    row(
        3165,
        "pg_wal_lsn_diff",
        &[PgLsn, PgLsn],
        Numeric,
        Session(|x, s| Difference.call(x, s)),
    ),
    // One function with defaults.
    row(3436, "pg_promote", &[], Bool, Session(|x, s| Promote.call(x, s))).volatile(),
    row(
        3436,
        "pg_promote",
        &[Bool],
        Bool,
        Session(|x, s| Promote.call(x, s)),
    )
    .volatile(),
    row(
        3436,
        "pg_promote",
        &[Bool, Int4],
        Bool,
        Session(|x, s| Promote.call(x, s)),
    )
    .volatile(),
    row(
        2621,
        "pg_reload_conf",
        &[],
        Bool,
        Session(|x, s| ReloadConfiguration.call(x, s)),
    )
    .volatile(),
    row(
        3071,
        "pg_wal_replay_pause",
        &[],
        Void,
        Session(|x, s| PauseReplay.call(x, s)),
    )
    .volatile(),
    row(
        3072,
        "pg_wal_replay_resume",
        &[],
        Void,
        Session(|x, s| ResumeReplay.call(x, s)),
    )
    .volatile(),
    row(
        3073,
        "pg_is_wal_replay_paused",
        &[],
        Bool,
        Session(|x, s| IsReplayPaused.call(x, s)),
    )
    .volatile(),
    row(
        1137,
        "pg_get_wal_replay_pause_state",
        &[],
        Text,
        Session(|x, s| ReplayPauseState.call(x, s)),
    )
    .volatile(),
    row(
        2848,
        "pg_switch_wal",
        &[],
        PgLsn,
        Session(|x, s| SwitchLogFile.call(x, s)),
    )
    .volatile(),
    row(
        2851,
        "pg_walfile_name",
        &[PgLsn],
        Text,
        Session(|x, s| LogFile.call(x, s)),
    )
    .volatile(),
];

/// The position that an argument is.
fn position(argument: &Value) -> u64 {
    match argument {
        Value::Lsn(position) => *position,
        _ => unreachable!("an argument has its parameter's type, and is not NULL"),
    }
}

impl RecoveryFunction {
    fn call(self, arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
        Ok(match self {
            RecoveryFunction::IsInRecovery => Value::Bool(session.is_in_recovery()),
            RecoveryFunction::Current(_) | RecoveryFunction::SwitchLogFile | RecoveryFunction::LogFile
                if session.is_in_recovery() =>
            {
                return Err(in_recovery());
            }
            RecoveryFunction::PauseReplay | RecoveryFunction::ResumeReplay => {
                session.pause_replay(self == RecoveryFunction::PauseReplay)?;
                // The value of functions that return nothing.
                Value::text("")
            }
            RecoveryFunction::IsReplayPaused => Value::Bool(session.replay_pause()? != "not paused"),
            RecoveryFunction::ReplayPauseState => Value::text(session.replay_pause()?),
            RecoveryFunction::SwitchLogFile => Value::Lsn(session.switch_log_file()?),
            RecoveryFunction::LogFile => Value::text(session.log_file(position(&arguments[0]))?),
            RecoveryFunction::Current(which) | RecoveryFunction::Last(which) => {
                session.log_position(which).map_or(Value::Null, Value::Lsn)
            }
            RecoveryFunction::LastReplayedCommit => session
                .last_replayed_commit()
                .map_or(Value::Null, Value::TimestampTz),
            RecoveryFunction::ReloadConfiguration => Value::Bool(session.reload_configuration()?),
            RecoveryFunction::Difference => {
                let of = |at: usize| i128::from(position(&arguments[at]));
                Value::Numeric(Decimal::from(of(0) - of(1)))
            }
            RecoveryFunction::Promote => {
                let waits = arguments.first().and_then(Value::as_bool).unwrap_or(true);
                let seconds = arguments.get(1).and_then(Value::as_i64);
                let seconds = seconds.unwrap_or(i64::from(PROMOTION_SECONDS));
                if seconds <= 0 {
                    return Err(EngineError::new(
                        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                        "\"wait_seconds\" must not be negative or zero",
                    ));
                }
                let patience = waits.then(|| Duration::from_secs(seconds.unsigned_abs()));
                Value::Bool(session.promote(patience)?)
            }
        })
    }
}

/// 55000.
#[cold]
fn in_recovery() -> EngineError {
    EngineError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "recovery is in progress",
    )
    .with_hint("WAL control functions cannot be executed during recovery.")
}
