//! Figures of an interval: the differences of two looks, and the sessions as they are at its end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::sample::{Latch, Sample, Session, Standby};
use super::waiters;

/// The figures of an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    /// The server's version, and its clock in seconds since 1970.
    pub(super) version: String,
    pub(super) now: f64,
    pub(super) is_standby: bool,
    pub(super) up: f64,
    /// The interval, seconds.
    pub(super) seconds: f64,
    /// A second.
    pub(super) commits: f64,
    pub(super) rollbacks: f64,
    pub(super) log_bytes: f64,
    pub(super) pages_read: f64,
    /// Of the pages that sessions asked for, the part that was in the buffer pool; `None` if they asked for none.
    pub(super) pages_found: Option<f64>,
    pub(super) temporary_bytes: f64,
    /// In the interval.
    pub(super) deadlocks: f64,
    pub(super) checkpoints: f64,
    pub(super) checkpoint_pages: f64,
    /// Active sessions by what they wait for, the mean over the interval; the largest first.
    pub(super) waits: Vec<(String, f64)>,
    pub(super) sessions: Vec<Session>,
    pub(super) standbys: Vec<Standby>,
    /// Latches that somebody waited for in the interval; the most sleeps first.
    pub(super) latches: Vec<Latch>,
}

/// Counts of active sessions by what they wait for, at several moments.
#[derive(Debug, Default)]
pub(super) struct WaitCounts {
    /// Transactions of our own session beside those of the looks.
    pub(super) own_transactions: usize,
    moments: usize,
    sessions: BTreeMap<String, f64>,
}

impl WaitCounts {
    /// Adds a moment.
    pub(super) fn add(&mut self, waits: Vec<(String, f64)>) {
        self.moments += 1;
        for (class, sessions) in waits {
            *self.sessions.entry(class).or_default() += sessions;
        }
    }

    fn means(&self) -> Vec<(String, f64)> {
        let moments = self.moments.max(1) as f64;
        let mut means: Vec<_> = self
            .sessions
            .iter()
            .map(|(class, sum)| (class.clone(), sum / moments))
            .collect();
        means.sort_by(|a, b| b.1.total_cmp(&a.1));
        means
    }
}

impl Figures {
    /// The figures between two looks. A counter that is less than it was has begun anew: the server was started, or its
    /// statistics were reset. The transactions of the looks themselves are not counted: the first of the two, and one a
    /// moment; nor other ones of the same session.
    pub(super) fn between(before: &Sample, after: &Sample, waits: &WaitCounts) -> Figures {
        let seconds = (after.now - before.now).max(1e-3);
        let rate = |before: f64, after: f64| added(before, after) / seconds;
        let own = (waits.moments + 1 + waits.own_transactions) as f64;
        let commits = (added(before.commits, after.commits) - own).max(0.0);
        let (found, read) = (added(before.found, after.found), added(before.read, after.read));
        Figures {
            version: after.version.clone(),
            now: after.now,
            is_standby: after.is_standby,
            up: after.up,
            seconds,
            commits: commits / seconds,
            rollbacks: rate(before.rollbacks, after.rollbacks),
            log_bytes: rate(before.log, after.log),
            pages_read: read / seconds,
            pages_found: (found + read > 0.0).then(|| found / (found + read)),
            temporary_bytes: rate(before.temporary, after.temporary),
            deadlocks: added(before.deadlocks, after.deadlocks),
            checkpoints: added(before.checkpoints, after.checkpoints),
            checkpoint_pages: added(before.written, after.written),
            waits: waits.means(),
            sessions: in_order(&after.sessions),
            standbys: after.standbys.clone(),
            latches: latches_between(&before.latches, &after.latches),
        }
    }

    /// False of those that stand for the ones of a server that has not answered yet.
    pub(super) fn are_there(&self) -> bool {
        self.seconds > 0.0
    }

    /// As an object of JSON. Rates are a second, times are seconds, sizes are bytes.
    pub(super) fn json(&self) -> Value {
        let sessions = self.sessions.iter().map(|session| {
            json!({
                "pid": session.pid, "user": session.user, "database": session.database,
                "application": session.application, "client": session.client, "state": session.state,
                "wait_class": session.wait_class, "wait_event": session.wait_event,
                "statement_seconds": session.statement_seconds,
                "transaction_seconds": session.transaction_seconds,
                "blocked_by": session.blockers, "statement": session.statement,
            })
        });
        let standbys = self.standbys.iter().map(|standby| {
            json!({
                "name": standby.name, "state": standby.state, "sync_state": standby.sync_state,
                "behind_bytes": standby.behind, "replay_lag": standby.lag,
            })
        });
        let latches = self.latches.iter().map(|latch| {
            json!({
                "name": latch.name, "mode": latch.mode, "conflicts": latch.conflicts, "sleeps": latch.sleeps,
                "wait_p99_seconds": latch.wait_p99_ns.map(|ns| ns / 1e9),
            })
        });
        let waits = self
            .waits
            .iter()
            .map(|(class, mean)| (class.clone(), json!(mean)));
        json!({
            "time": self.now, "version": self.version, "standby": self.is_standby, "up_seconds": self.up,
            "interval_seconds": self.seconds,
            "commits": self.commits, "rollbacks": self.rollbacks, "log_bytes": self.log_bytes,
            "pages_read": self.pages_read, "pages_found": self.pages_found,
            "temporary_bytes": self.temporary_bytes, "deadlocks": self.deadlocks,
            "checkpoints": self.checkpoints, "checkpoint_pages": self.checkpoint_pages,
            "active_sessions": waits.collect::<serde_json::Map<_, _>>(),
            "sessions": sessions.collect::<Vec<_>>(),
            "standbys": standbys.collect::<Vec<_>>(),
            "latches": latches.collect::<Vec<_>>(),
        })
    }
}

/// Those that others wait for come first, then active ones, then those that keep a transaction open; the longest first.
pub(super) fn in_order(sessions: &[Session]) -> Vec<Session> {
    let rank = |session: &Session| match session {
        _ if session.waiters > 0 && session.blockers.is_empty() => 0,
        _ if session.is_active() => 1,
        _ if session.is_idle_in_transaction() => 2,
        _ => 3,
    };
    let mut ordered = sessions.to_vec();
    waiters::count(&mut ordered);
    ordered.sort_by(|a, b| {
        rank(a)
            .cmp(&rank(b))
            .then(b.statement_seconds.total_cmp(&a.statement_seconds))
    });
    ordered
}

/// The increase of a counter; one that is less than it was has begun anew.
fn added(before: f64, after: f64) -> f64 {
    if after >= before { after - before } else { after }
}

fn latches_between(before: &[Latch], after: &[Latch]) -> Vec<Latch> {
    let earlier = |latch: &Latch| {
        let same = before
            .iter()
            .find(|known| known.name == latch.name && known.mode == latch.mode);
        same.map_or((0.0, 0.0), |known| (known.conflicts, known.sleeps))
    };
    let mut latches: Vec<_> = after
        .iter()
        .map(|latch| {
            let (conflicts, sleeps) = earlier(latch);
            Latch {
                conflicts: added(conflicts, latch.conflicts),
                sleeps: added(sleeps, latch.sleeps),
                ..latch.clone()
            }
        })
        .filter(|latch| latch.conflicts > 0.0)
        .collect();
    latches.sort_by(|a, b| {
        b.sleeps
            .total_cmp(&a.sleeps)
            .then(b.conflicts.total_cmp(&a.conflicts))
    });
    latches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pid: i64, state: &str, seconds: f64, blockers: &[i64]) -> Session {
        Session {
            pid,
            state: state.to_owned(),
            statement_seconds: seconds,
            blockers: blockers.to_vec(),
            ..Session::default()
        }
    }

    #[test]
    fn rates_are_differences_over_the_servers_time() {
        let before = Sample {
            now: 100.0,
            commits: 1_000.0,
            found: 90.0,
            read: 10.0,
            deadlocks: 2.0,
            ..Sample::default()
        };
        let after = Sample {
            now: 102.0,
            commits: 1_501.0,
            found: 90.0 + 300.0,
            read: 10.0 + 100.0,
            deadlocks: 3.0,
            ..Sample::default()
        };
        let figures = Figures::between(&before, &after, &WaitCounts::default());
        assert_eq!((figures.commits, figures.deadlocks), (250.0, 1.0));
        assert_eq!((figures.pages_read, figures.pages_found), (50.0, Some(0.75)));
        // A server that was started meanwhile counts from 0.
        let figures = Figures::between(
            &after,
            &Sample {
                now: 104.0,
                commits: 9.0,
                ..before
            },
            &WaitCounts::default(),
        );
        assert_eq!(figures.commits, 4.0);
    }

    #[test]
    fn waits_are_means_over_moments() {
        let mut waits = WaitCounts::default();
        waits.add(vec![("CPU".to_owned(), 1.0)]);
        waits.add(vec![("CPU".to_owned(), 2.0), ("IO".to_owned(), 5.0)]);
        waits.add(Vec::new());
        waits.add(vec![("IO".to_owned(), 3.0)]);
        let figures = Figures::between(&Sample::default(), &Sample::default(), &waits);
        assert_eq!(figures.waits, [("IO".to_owned(), 2.0), ("CPU".to_owned(), 0.75)]);
    }

    #[test]
    fn who_keeps_others_comes_first() {
        let sessions = vec![
            session(1, "idle", 900.0, &[]),
            session(2, "active", 5.0, &[4]),
            session(3, "active", 9.0, &[2]),
            session(4, "idle in transaction", 60.0, &[]),
            session(5, "idle in transaction", 70.0, &[]),
        ];
        let after = Sample {
            sessions,
            ..Sample::default()
        };
        let figures = Figures::between(&Sample::default(), &after, &WaitCounts::default());
        let order: Vec<_> = figures.sessions.iter().map(|session| session.pid).collect();
        assert_eq!(order, [4, 3, 2, 5, 1]);
        let waiters: Vec<_> = figures.sessions.iter().map(|session| session.waiters).collect();
        assert_eq!(waiters, [2, 0, 1, 0, 0]);
    }

    #[test]
    fn latches_without_a_wait_are_left_out() {
        let latch = |name: &str, conflicts, sleeps| Latch {
            name: name.to_owned(),
            mode: "exclusive".to_owned(),
            conflicts,
            sleeps,
            wait_p99_ns: None,
        };
        let latches = latches_between(
            &[latch("a", 5.0, 1.0), latch("b", 7.0, 0.0)],
            &[latch("a", 5.0, 1.0), latch("b", 9.0, 0.0), latch("c", 3.0, 2.0)],
        );
        assert_eq!(latches, [latch("c", 3.0, 2.0), latch("b", 2.0, 0.0)]);
        // The counters have begun anew.
        let latches = latches_between(&[latch("a", 50.0, 10.0)], &[latch("a", 3.0, 2.0)]);
        assert_eq!(latches, [latch("a", 3.0, 2.0)]);
    }
}
