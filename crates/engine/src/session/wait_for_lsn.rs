//! WAIT FOR LSN: reads on a standby that see what their client has written on the primary.
//!
//! The client takes `pg_current_wal_insert_lsn()` behind its commit, and waits for it on the standby before it reads. The
//! statement takes no snapshot and no lock, and is refused where the session keeps a snapshot: replay might have to wait for
//! that one to go, while it waits for replay. A session in a transaction may hold a lock that replay waits for: then it is
//! 40P01 as soon as that is seen (`engine/standby/replay_deadlock.rs`).
//!
//! | mode | waits on | until |
//! | --- | --- | --- |
//! | `standby_replay` | a standby | queries see the log before the position |
//! | `standby_write`, `standby_flush` | a standby | the log before it is durable; no log is acknowledged or told before it is |
//! | `primary_flush` | a primary | the log before it is durable |
//!
//! The answers, and the errors that take their place without NO_THROW:
//!
//! | answer | because | error |
//! | --- | --- | --- |
//! | `success` | the position is reached, if only before a promotion | |
//! | `timeout` | it was not, within the time | 57014 |
//! | `not in recovery` | the server is no standby, or was promoted meanwhile | 55000 |
//!
//! That the log of a position was replayed says nothing of the history it belongs to: after a failover the same position may
//! be another record's.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::engine::LooksInTurn;
use crate::output::Output;
use crate::session::Session;
use crate::settings::parse_milliseconds;
use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{Column, WaitForLsn, WaitMode};
use clearway_sql::value::Value;
use clearway_sql::value::lsn::format_lsn;
use clearway_storage::Lsn;

/// The time after which a wait looks for a cancel request, which does not wake it.
const LOOK: Duration = Duration::from_millis(20);

/// The end of a wait.
enum Ending {
    Success,
    Timeout,
    NotInRecovery,
}

impl Session {
    /// Runs WAIT FOR LSN; its one row is the answer.
    pub(super) fn wait_for_lsn(
        &mut self,
        wait: &WaitForLsn,
        columns: Option<&[Column]>,
        out: &mut dyn Output,
    ) -> Result<()> {
        let timeout = timeout_of(wait)?;
        if self.txn.keeps_snapshot() {
            return Err(refused("WAIT FOR must be called without an active or registered snapshot").with_detail(
                "WAIT FOR cannot be executed from a function or procedure, nor within a transaction with an isolation \
                 level higher than READ COMMITTED.",
            ));
        }
        if wait.mode == WaitMode::PrimaryFlush && self.engine.is_standby() {
            return Err(refused("recovery is in progress").with_hint(
                "Waiting for the primary_flush LSN can only be executed on a primary. Use standby_flush mode on a standby.",
            ));
        }
        let was_standby = self.engine.is_standby();
        let status = match self.wait_until_reached(wait, timeout)? {
            Ending::Success => "success",
            Ending::Timeout if wait.no_throw => "timeout",
            Ending::NotInRecovery if wait.no_throw => "not in recovery",
            Ending::Timeout => return Err(self.timed_out(wait)),
            Ending::NotInRecovery => return Err(self.not_in_recovery(wait, was_standby)),
        };
        if let Some(columns) = columns {
            out.row_description(columns)?;
        }
        out.row(&[Value::text(status)])
    }

    fn wait_until_reached(&self, wait: &WaitForLsn, timeout: Option<Duration>) -> Result<Ending> {
        let begun = Instant::now();
        // At the position of the look.
        let mut in_the_way = LooksInTurn::default();
        loop {
            // Before the position: a promotion after this look leaves what was replayed before it.
            let ended = wait.mode != WaitMode::PrimaryFlush && !self.engine.is_standby();
            let position = self.position_of(wait.mode);
            if position.0 >= wait.target {
                return Ok(Ending::Success);
            }
            if ended {
                return Ok(Ending::NotInRecovery);
            }
            let is_in_the_way =
                wait.mode == WaitMode::StandbyReplay && self.engine.replay_waits_for(self.txn.proc);
            if in_the_way.note(is_in_the_way.then_some(position)) {
                return Err(self.in_replays_way(wait));
            }
            let left = match timeout {
                Some(timeout) => timeout.saturating_sub(begun.elapsed()),
                None => LOOK,
            };
            if left.is_zero() {
                return Ok(Ending::Timeout);
            }
            self.interrupts.check()?;
            self.wait_a_little(wait, left.min(LOOK))?;
        }
    }

    /// Sleeps until the position may be reached, for `time` at most.
    fn wait_a_little(&self, wait: &WaitForLsn, time: Duration) -> Result<()> {
        let target = Lsn(wait.target);
        let Some(standby) = self
            .engine
            .storage
            .standby()
            .filter(|_| wait.mode != WaitMode::PrimaryFlush)
        else {
            // The log of the position may not be written yet, by any transaction.
            let _wait = WaitScope::<Native>::enter(WaitEvent::WaitForWalFlush);
            std::thread::sleep(time);
            return Ok(());
        };
        let reached = match wait.mode {
            WaitMode::StandbyReplay => {
                standby.wait_until(|now| now.replayed >= target, WaitEvent::WaitForWalReplay, time)
            }
            _ => standby.wait_until(|now| now.received >= target, WaitEvent::WaitForWalFlush, time),
        };
        match standby.failure() {
            Some(failure) if !reached => Err(refused(format!(
                "replay has ended for good before target LSN {} was {}",
                shown(wait.target),
                wait.mode.done()
            ))
            .with_detail(failure)),
            _ => Ok(()),
        }
    }

    /// Up to where the log is, as the mode counts it.
    fn position_of(&self, mode: WaitMode) -> Lsn {
        let storage = &self.engine.storage;
        match (mode, storage.standby()) {
            (WaitMode::PrimaryFlush, _) => storage.wal.flushed(),
            (WaitMode::StandbyReplay, Some(standby)) => standby.replayed(),
            (_, Some(standby)) => standby.received(),
            (_, None) => Lsn(0),
        }
    }

    fn in_replays_way(&self, wait: &WaitForLsn) -> EngineError {
        let target = shown(wait.target);
        let pid = self.slot.process_id;
        EngineError::new(SqlState::from_code("40P01"), "deadlock detected").with_detail(format!(
            "Process {pid} waits for the log up to {target} to be replayed; replay waits for a lock of process {pid}, or \
             of one that waits for it."
        ))
    }

    fn timed_out(&self, wait: &WaitForLsn) -> EngineError {
        EngineError::new(
            SqlState::QUERY_CANCELED,
            format!(
                "timed out while waiting for target LSN {} to be {}; current {} LSN {}",
                shown(wait.target),
                wait.mode.done(),
                wait.mode.name(),
                shown(self.position_of(wait.mode).0)
            ),
        )
    }

    fn not_in_recovery(&self, wait: &WaitForLsn, was_standby: bool) -> EngineError {
        let error = refused("recovery is not in progress");
        let mode = wait.mode;
        if was_standby {
            return error.with_detail(format!(
                "Recovery ended before target LSN {} was {}; last {} LSN {}.",
                shown(wait.target),
                mode.done(),
                mode.name(),
                shown(self.position_of(mode).0)
            ));
        }
        error.with_hint(format!(
            "Waiting for the {} LSN can only be executed during recovery.",
            mode.name()
        ))
    }
}

/// The time limit, if there is one.
fn timeout_of(wait: &WaitForLsn) -> Result<Option<Duration>> {
    let Some(text) = &wait.timeout else {
        return Ok(None);
    };
    let invalid = |message: String| EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    match parse_milliseconds(text) {
        None => Err(invalid(format!("invalid timeout value: \"{text}\""))),
        Some(negative) if negative < 0 => Err(invalid("timeout cannot be negative".to_owned())),
        Some(0) => Ok(None),
        Some(milliseconds) => Ok(Some(Duration::from_millis(milliseconds.unsigned_abs()))),
    }
}

fn shown(position: u64) -> String {
    let mut text = String::new();
    format_lsn(position, &mut text);
    text
}

fn refused(message: impl Into<Cow<'static, str>>) -> EngineError {
    EngineError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}
