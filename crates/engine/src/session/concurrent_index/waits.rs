//! The waits between two steps: for transactions that hold a table's lock, and for old snapshots. The session queues for no lock
//! meanwhile, but may hold advisory ones, so it looks for circles itself ([`CircleLooks`]). Else each wait ends on a cancel
//! request, a timeout of the statement, `lock_timeout` or the server's stop.

use std::time::{Duration, Instant};

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_txn::{LockMode, LockTag, ProcId, Xid};

use crate::activity::progress::index as shown;
use crate::engine::CircleLooks;
use crate::lock_wait::{WaitCircle, lock_timed_out};
use crate::session::Session;
use clearway_sql::error::Result;

/// The first pause between two looks; each is half as long again as the one before.
const PAUSE_MIN: Duration = Duration::from_micros(500);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_millis(20);

impl Session {
    /// Waits until each transaction has ended that holds a table's lock in a mode that excludes `mode`; `phase` is what the
    /// progress shows meanwhile.
    pub(super) fn wait_for_holders(&self, table: u32, mode: LockMode, phase: u64) -> Result<()> {
        let locks = &self.engine.storage.locks;
        let tag = LockTag::Relation(table);
        let progress = self.slot.progress.running();
        progress.index_phase(phase);
        let holders = locks.holders(self.txn.proc, tag, mode);
        progress.set(shown::LOCKERS, holders.len() as u64);
        for holder in holders {
            self.wait_until(WaitEvent::LockRelation, holder.proc(), || {
                !locks.still_holds(holder, tag, mode)
            })?;
            progress.add(shown::LOCKERS_DONE, 1);
        }
        progress.set(shown::LOCKER, 0);
        Ok(())
    }

    /// The number of the session that has a place in the lock table; 0 for none.
    fn session_at(&self, proc: ProcId) -> u64 {
        let sessions = self.engine.sessions();
        let found = sessions.values().find(|session| session.locks_as(proc));
        found.map_or(0, |session| u64::from(session.slot.process_id))
    }

    /// Waits until each snapshot is gone that may not see a transaction.
    pub(super) fn wait_for_older_snapshots(&self, xid: Xid) -> Result<()> {
        let storage = &self.engine.storage;
        let progress = self.slot.progress.running();
        progress.index_phase(shown::WAITS_FOR_SNAPSHOTS);
        let mut holders = storage.proc_array.holders_of_xmin_up_to(xid);
        holders.retain(|proc| *proc != self.txn.proc);
        progress.set(shown::LOCKERS, holders.len() as u64);
        for proc in holders {
            // Another transaction of the session has a later snapshot, though its xmin may be as old.
            let releases = storage.locks.release_count(proc);
            self.wait_until(WaitEvent::LockTransaction, proc, || {
                storage.locks.release_count(proc) != releases
                    || storage.proc_array.xmin_of(proc).is_none_or(|xmin| xmin > xid)
            })?;
            progress.add(shown::LOCKERS_DONE, 1);
        }
        progress.set(shown::LOCKER, 0);
        Ok(())
    }

    /// Waits for the session `other`, which pg_blocking_pids shows meanwhile.
    fn wait_until(&self, event: WaitEvent, other: ProcId, done: impl Fn() -> bool) -> Result<()> {
        let _told = self.slot.tell_wait_for(other);
        self.slot
            .progress
            .running()
            .set(shown::LOCKER, self.session_at(other));
        let mut pause = PAUSE_MIN;
        let begun = Instant::now();
        let timeout = self.settings.lock_timeout;
        let circle = CircleLooks::new(&self.engine, self.txn.proc, self.settings.deadlock_timeout);
        let _waiting = WaitScope::<Native>::enter(event);
        while !done() {
            self.interrupts.check()?;
            if circle.find() {
                return Err(circle.error());
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(lock_timed_out());
            }
            std::thread::sleep(left.map_or(pause, |left| pause.min(left)));
            pause = (pause * 3 / 2).min(PAUSE_MAX);
        }
        Ok(())
    }
}
