//! Locks of all sessions, for those that look, and the end of what another session does.

use std::collections::HashSet;

use clearway_txn::ListedMark;

use super::Engine;
use crate::activity::sessions_by_place;
use crate::catalog::system::{EngineLock, LockedObject};
use crate::clock;
use crate::interrupt::CancelReason;

impl Engine {
    /// All locks that are held or waited for. They need not have been so at one moment.
    pub(crate) fn listed_locks(&self) -> Vec<EngineLock> {
        let locks = &self.storage.locks;
        let listed = locks.listed();
        let now_us = clock::now_us();
        let mut rows = Vec::new();
        let sessions = self.sessions();
        for session in sessions.values() {
            let proc = session.proc;
            let running = session.slot.transaction();
            let number = running.map_or(0, |(number, _)| number);
            let row = |object, mode, granted| EngineLock {
                object,
                process_id: Some(session.slot.process_id),
                transaction: (proc.0 + 1, number),
                mode,
                granted,
                fast: false,
                wait_start_us: None,
            };
            if let Some((_, xid)) = running {
                let own = row(LockedObject::VirtualTransaction, "ExclusiveLock", true);
                rows.push(EngineLock { fast: true, ..own });
                rows.extend(xid.map(|xid| row(LockedObject::Transaction(xid), "ExclusiveLock", true)));
            }
            if let Some((xid, waited)) = locks.waits_for(proc) {
                let waits = row(LockedObject::Transaction(xid.0), "ShareLock", false);
                rows.push(EngineLock {
                    wait_start_us: Some(now_us - waited.as_micros() as i64),
                    ..waits
                });
            }
        }
        let by_place = sessions_by_place(&sessions);
        for lock in listed {
            let session = by_place.get(&lock.proc);
            let running = session.and_then(|session| session.slot.transaction());
            rows.push(EngineLock {
                object: LockedObject::Table(lock.tag),
                process_id: session.map(|session| session.slot.process_id),
                transaction: (lock.proc.0 + 1, running.map_or(0, |(number, _)| number)),
                mode: lock.mode.name(),
                granted: lock.granted,
                fast: lock.fast,
                wait_start_us: lock.waited.map(|waited| now_us - waited.as_micros() as i64),
            });
        }
        let marks: HashSet<ListedMark> = self.serializable.listed().into_iter().collect();
        for mark in marks {
            let session = mark.proc.and_then(|proc| by_place.get(&proc));
            let running = session.filter(|_| mark.runs);
            let number = running.and_then(|session| session.slot.transaction());
            rows.push(EngineLock {
                object: LockedObject::Marked(mark.object),
                process_id: session.map(|session| session.slot.process_id),
                transaction: (
                    mark.proc.map_or(0, |proc| proc.0 + 1),
                    number.map_or(0, |(number, _)| number),
                ),
                mode: "SIReadLock",
                granted: true,
                fast: false,
                wait_start_us: None,
            });
        }
        rows
    }

    /// The numbers of the sessions that a session waits for until it knows if its snapshot is safe.
    pub(crate) fn safe_snapshot_blocking_pids(&self, process_id: u32) -> Vec<i32> {
        let sessions = self.sessions();
        let Some(session) = sessions.get(&process_id) else {
            return Vec::new();
        };
        let blockers = self.serializable.blockers_of_safe_snapshot(session.proc);
        let by_place = sessions_by_place(&sessions);
        let number = |proc| Some(by_place.get(&proc)?.slot.process_id.cast_signed());
        blockers.into_iter().filter_map(number).collect()
    }

    /// The numbers of the sessions that a session waits for in order to get a lock, or to build or drop an index beside
    /// them.
    pub(crate) fn blocking_pids(&self, process_id: u32) -> Vec<i32> {
        let sessions = self.sessions();
        let Some(session) = sessions.get(&process_id) else {
            return Vec::new();
        };
        let blockers = self.waited_for(&sessions, session.proc);
        if blockers.is_empty() {
            return Vec::new();
        }
        let by_place = sessions_by_place(&sessions);
        let number = |proc| {
            let found = by_place.get(&proc);
            // As PostgreSQL shows what is no session.
            found.map_or(0, |session| session.slot.process_id.cast_signed())
        };
        blockers.into_iter().map(number).collect()
    }

    /// The name that the client of a session has logged in with.
    pub(crate) fn user_of(&self, process_id: u32) -> Option<String> {
        let sessions = self.sessions();
        sessions
            .get(&process_id)
            .map(|session| session.slot.user().to_owned())
    }

    /// True if there is a session of this number.
    pub(crate) fn has_session(&self, process_id: u32) -> bool {
        self.sessions().contains_key(&process_id)
    }

    /// Ends what a session does, or the session; false if there is none.
    pub(crate) fn signal(&self, process_id: u32, terminate: bool) -> bool {
        let sessions = self.sessions();
        let Some(session) = sessions.get(&process_id) else {
            return false;
        };
        match terminate {
            true => session.slot.terminate(),
            false => {
                session.slot.ask_to_stop(CancelReason::Request);
            }
        }
        self.interrupt(session);
        true
    }
}
