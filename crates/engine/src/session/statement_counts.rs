//! Counts of the session's statements, for `pg_stat_statements`.
//!
//! A statement's time goes from its begin, with its plan at hand or not, to its tag; in the simple protocol the commit of its
//! implicit transaction is a part of it. An EXECUTE counts for the statement that it executes. Rows that a suspended portal
//! sends later count for the call that began it, and so does the time, but not for its least, its most and its deviation.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use crate::session::Session;
use crate::session::named_statements::NamedStatement;
use crate::session::prepared::Prepared;
use crate::statement_statistics::{CountedStatement, StatementKey, StatementWork};

/// The work of the session before a statement began.
#[derive(Debug)]
pub(super) struct StatementMeter {
    started: Instant,
    before: StatementWork,
}

impl Session {
    fn work_so_far(&self) -> StatementWork {
        StatementWork::of_thread(self.slot.counts.rows())
    }

    /// A statement begins, which is counted.
    #[inline(never)]
    pub(super) fn begin_counts(&self, prepared: &Prepared) -> StatementMeter {
        self.slot.set_statement_number(self.counted(prepared).number());
        StatementMeter {
            before: self.work_so_far(),
            started: Instant::now(),
        }
    }

    /// The statement has ended without an error.
    #[inline(never)]
    pub(super) fn end_counts(&self, prepared: &Prepared, meter: &StatementMeter) {
        let now = Instant::now();
        let work = self.work_so_far().since(&meter.before);
        let place = self.txn.proc.0 as usize;
        self.with_entry(prepared, |entry| {
            entry.add(place, now, |counts| counts.add_call(now - meter.started, &work));
        });
    }

    /// A portal of the statement, whose call is counted, has sent more rows.
    #[inline(never)]
    pub(super) fn add_to_counts(&self, prepared: &Prepared, meter: &StatementMeter) {
        let now = Instant::now();
        let work = self.work_so_far().since(&meter.before);
        let place = self.txn.proc.0 as usize;
        self.with_entry(prepared, |entry| {
            entry.add(place, now, |counts| {
                counts.add_to_call(now - meter.started, &work);
            });
        });
    }

    /// The statement whose call this is: of an EXECUTE that which it executes, whatever its parameters are.
    fn counted<'a>(&'a self, prepared: &'a Prepared) -> &'a Prepared {
        let executed = prepared
            .executed_statement()
            .and_then(|name| self.named.get(name));
        executed.map_or(prepared, NamedStatement::prepared)
    }

    /// Calls `work` with the entry of the statement whose call this is; there is none of an empty text.
    fn with_entry(&self, prepared: &Prepared, work: impl FnOnce(&CountedStatement)) {
        let prepared = self.counted(prepared);
        let key = StatementKey {
            role: self.identity.current,
            number: prepared.number(),
        };
        let mut kept = prepared.entry.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(entry) if entry.counts(key) => work(entry),
            _ => {
                let text = prepared.normalised_text();
                if text.is_empty() {
                    return;
                }
                let entry: &mut Arc<CountedStatement> =
                    kept.insert(self.engine.statements.entry(key, || text));
                work(entry);
            }
        }
    }
}
