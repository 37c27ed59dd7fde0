//! A standby at moments that cannot be met from outside.
//!
//! Mutations that these tests have caught are listed in `crates/storage/mutations/standby.toml` and `cascading.toml`.

#![expect(
    clippy::disallowed_methods,
    reason = "a test asks what a snapshot sees, and tells no client"
)]

use std::cell::Cell;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use clearway_txn::{ProcId, Snapshot, Xid};

use super::replay::ReplayState;
use super::{
    ChangedDefinitions, Conflict, LogReceiver, ReplayObserver, Standby, StandbyOptions, TakeBack, lock,
};
use crate::error::Result;
use crate::page::Lsn;
use crate::storage::{Storage, StorageOptions};
use crate::wal::record::{self, RecordKind};

/// Time after which a test has failed, whatever it waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// It defines nothing, and nothing is in replay's way.
struct NoSessions;

impl ReplayObserver for NoSessions {
    fn publish_definitions(&self, _: Xid, _: &Snapshot, _: &ChangedDefinitions) -> Result<()> {
        Ok(())
    }

    fn definitions_are_seen(&self, _: Xid, _: &ChangedDefinitions) -> Result<()> {
        Ok(())
    }

    fn cancel(&self, _: ProcId, _: Conflict) {}
}

/// A standby that has received and replayed what a primary had logged until it was shut down.
fn standby(directory: &tempfile::TempDir) -> Arc<Storage> {
    let options = || StorageOptions {
        buffer_bytes: 1 << 20,
        fsync: false,
        sessions_max: 16,
        ..StorageOptions::default()
    };
    let (primary, _) = Storage::open(directory.path(), options()).unwrap();
    commit(&primary);
    primary.shutdown().unwrap();
    drop(primary);
    let (storage, _) = Storage::open_standby(directory.path(), options(), StandbyOptions::default()).unwrap();
    storage.start_replay(Arc::new(NoSessions)).unwrap();
    storage
}

fn commit(storage: &Storage) -> Xid {
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    storage.commit(proc, xid, false).unwrap();
    storage.proc_array.detach(proc);
    xid
}

/// Bob has found the standby active, and is slow to take his snapshot. The promotion ends meanwhile, a transaction of the
/// new primary deletes something and commits, and a vacuum looks for xmins and finds none of Bob's. His snapshot must see
/// that transaction's end; one of the known xids would not, and look for what vacuum has removed.
#[test]
fn a_snapshot_that_a_promotion_overtakes_is_of_the_new_primary() {
    for holds_a_snapshot in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let storage = standby(&directory);
        let bob = storage.proc_array.attach().unwrap();
        let mut snapshot = Snapshot::default();
        if holds_a_snapshot {
            storage.take_snapshot(bob, &mut snapshot);
        }
        let held = storage.proc_array.xmin_of(bob);
        let found_active = Arc::clone(storage.standby().unwrap());
        assert!(found_active.is_active());

        storage.promote("a test").unwrap();
        let deleter = commit(&storage);
        let horizon = storage.proc_array.horizon();
        assert_eq!(horizon <= deleter, holds_a_snapshot);

        found_active.take_snapshot(&storage.proc_array, bob, &mut snapshot);
        assert!(snapshot.sees(deleter, &storage.commit_log).unwrap());
        let xmin = storage.proc_array.xmin_of(bob).unwrap();
        assert!(
            xmin >= horizon,
            "{xmin:?} is below {horizon:?}, which vacuum has found"
        );
        if holds_a_snapshot {
            assert_eq!(Some(xmin), held, "he reads under the older one too");
        }
        storage.proc_array.detach(bob);
        storage.stop_threads();
    }
}

/// Replay is about to remove versions. Bob takes his snapshot when replay has looked for sessions and has found none that
/// sees them: he must find the deleter announced by then, or neither would know of the other.
#[test]
fn a_deleter_is_announced_before_the_look_for_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let storage = standby(&directory);
    let standby = storage.standby().unwrap();
    let deleter = Xid(storage.proc_array.next_xid().0 + 10);
    let looks = Cell::new(0);
    let look = || {
        assert!(standby.cleaned.newest() >= deleter, "look {}", looks.get());
        looks.set(looks.get() + 1);
        Vec::new()
    };
    standby.clean_up_where(deleter, look).unwrap();
    assert!(looks.get() > 0);
    storage.stop_threads();
}

/// A record without meaning, as it is in the log at `position`.
fn nothing(position: Lsn, payload: usize) -> Vec<u8> {
    let payload = vec![7; payload];
    let crc = crc32c::crc32c(&payload);
    let (kind, xid) = (RecordKind::Nothing, Xid::INVALID);
    let mut bytes = record::header(kind, xid, position.0, position.0, payload.len(), crc).to_vec();
    bytes.extend(&payload);
    bytes.resize(record::size(payload.len()), 0);
    bytes
}

fn receive(receiver: &mut LogReceiver, bytes: &[u8]) -> Lsn {
    receiver.write(receiver.position(), bytes).unwrap();
    receiver.sync().unwrap()
}

/// Lets replay look at what was received, and keeps its thread from coming back to its loop: it says first that replay is up
/// to date, which the guard that is returned does not let it.
fn let_look<'a>(standby: &'a Standby, not_looking: MutexGuard<'a, ReplayState>) -> MutexGuard<'a, Instant> {
    let mut not_looking = not_looking;
    let mut pause = Duration::from_millis(20);
    while pause < PATIENCE {
        // Time to come to where it waits for the mutex. On its way it may say that it was up to date.
        thread::sleep(pause);
        let kept_away = lock(&standby.lags_since);
        drop(not_looking);
        let has_looked = || standby.progress.looked_at() == standby.received();
        let deadline = Instant::now() + 5 * pause;
        while !has_looked() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        not_looking = lock(&standby.replay);
        if has_looked() {
            drop(not_looking);
            // It comes to the guard.
            thread::sleep(pause);
            return kept_away;
        }
        // It was not there yet, and is kept away from it.
        drop(kept_away);
        pause *= 2;
    }
    panic!("replay does not look at what was received");
}

/// The beginning of a record is taken back, and as many bytes are received of the new timeline, before the thread that
/// replays has found that there was less for a moment. It has looked up to that position before, and has to look again.
/// First the change of the timeline fails: then what was received counts again.
#[test]
fn replay_looks_again_where_log_was_taken_back() {
    const PART: usize = 5_000;
    let directory = tempfile::tempdir().unwrap();
    let storage = standby(&directory);
    let standby = storage.standby().unwrap();
    let mut receiver = storage.receive_log().unwrap();
    let fork = receiver.position();

    let not_looking = lock(&standby.replay);
    let end = receive(&mut receiver, &nothing(fork, 2 * PART)[..PART]);
    let kept_away = let_look(standby, not_looking);

    for fails in [true, false] {
        let TakeBack::Taken(taken) = standby.take_back(fork) else {
            panic!("replay has looked at all, and nothing was whole");
        };
        assert_eq!(standby.received(), fork);
        if fails {
            drop(taken);
            assert_eq!(standby.received(), end);
        } else {
            taken.complete();
        }
    }

    receiver.resume();
    assert_eq!(receiver.position(), fork);
    let whole = nothing(fork, 100);
    let next = Lsn(fork.0 + whole.len() as u64);
    let sent = [whole, nothing(next, 2 * PART)].concat();
    assert_eq!(receive(&mut receiver, &sent[..PART]), end, "as far as before");
    drop(kept_away);
    assert!(
        standby.wait_replayed(next, Duration::from_secs(10)),
        "replay is at {}, {next} was received",
        standby.replayed()
    );
    assert_eq!(standby.replayed(), next);
    drop(receiver);
    storage.stop_threads();
}
