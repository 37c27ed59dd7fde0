//! A standby at moments that cannot be met from outside.
//!
//! Mutations that these tests have caught are listed in `crates/storage/mutations/standby.toml` and `cascading.toml`.

#![expect(
    clippy::disallowed_methods,
    reason = "a test asks what a snapshot sees, and tells no client"
)]

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clearway_machine::WaitEvent;
use clearway_txn::{ProcId, Snapshot, Xid};

use super::{ChangedDefinitions, Conflict, LogReceiver, ReplayObserver, StandbyOptions, TakeBack};
use crate::error::Result;
use crate::page::Lsn;
use crate::replication::standby_state::lock;
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

/// A record without meaning, as it is in the log at `position`, but for its link.
fn nothing(position: Lsn, payload: usize) -> Vec<u8> {
    sevens(RecordKind::NOTHING, position, payload)
}

/// A record with as many sevens for its payload.
fn sevens(kind: RecordKind, position: Lsn, payload: usize) -> Vec<u8> {
    let payload = vec![7; payload];
    let crc = crc32c::crc32c(&payload);
    let mut bytes = record::header(kind, Xid::INVALID, position.0, position.0, payload.len(), crc).to_vec();
    bytes.extend(&payload);
    bytes.resize(record::size(payload.len()), 0);
    bytes
}

fn receive(receiver: &mut LogReceiver, bytes: &[u8]) -> Lsn {
    receiver.write(receiver.position(), bytes).unwrap();
    receiver.sync().unwrap()
}

/// The beginning of a record is taken back, and as many bytes are received of the new timeline, which are a whole record and
/// the beginning of another: replay comes to the whole one, although as much was received before. First the change of the
/// timeline fails: then what was received counts again.
#[test]
fn replay_goes_on_where_log_was_taken_back() {
    const PART: usize = 5_000;
    let directory = tempfile::tempdir().unwrap();
    let storage = standby(&directory);
    let standby = storage.standby().unwrap();
    let mut receiver = storage.receive_log().unwrap();
    let fork = receiver.position();
    let link = standby.progress.link().expect("the directory's log was read");
    let mut begun = nothing(fork, 2 * PART);
    record::enter_links(&mut begun, link);
    let end = receive(&mut receiver, &begun[..PART]);

    for fails in [true, false] {
        let taken = loop {
            match standby.take_back(fork) {
                TakeBack::Taken(taken) => break taken,
                // The thread that replays may look meanwhile.
                TakeBack::NotYet => thread::yield_now(),
                TakeBack::Refused => panic!("nothing was whole"),
            }
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
    let mut sent = [whole, nothing(next, 2 * PART)].concat();
    record::enter_links(&mut sent, link);
    assert_eq!(receive(&mut receiver, &sent[..PART]), end, "as far as before");
    assert!(
        standby.wait_replayed(next, PATIENCE),
        "replay is at {}, {next} was received",
        standby.replayed()
    );
    assert_eq!(standby.replayed(), next);
    drop(receiver);
    storage.stop_threads();
}

/// Whole records were received, and the thread that replays has been woken and is not there yet. What it has done says
/// nothing of them: none is taken back, and log behind the last one is no reason to refuse.
#[test]
fn a_whole_record_that_is_not_replayed_is_not_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let storage = standby(&directory);
    let standby = storage.standby().unwrap();
    let mut receiver = storage.receive_log().unwrap();
    let start = receiver.position();
    // Before it replays, the thread says that replay was up to date, and waits for this.
    let kept_away = lock(&standby.lags_since);
    let mut whole = nothing(start, 100);
    record::enter_links(
        &mut whole,
        standby.progress.link().expect("the directory's log was read"),
    );
    let fork = receive(&mut receiver, &whole);
    let at_start = standby.take_back(start);
    assert!(!matches!(at_start, TakeBack::Taken(_)), "a whole record is lost");
    assert!(
        !matches!(standby.take_back(fork), TakeBack::Refused),
        "nothing whole is behind the last whole record"
    );
    drop(kept_away);
    drop(receiver);
    storage.stop_threads();
}

/// Replay fails at a whole record, a relation whose number has too many bytes. It comes no further, and neither that record
/// nor the one behind it may be taken back.
#[test]
fn a_whole_record_that_replay_has_failed_at_is_not_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let storage = standby(&directory);
    let standby = storage.standby().unwrap();
    let mut receiver = storage.receive_log().unwrap();
    let start = receiver.position();
    let malformed = sevens(RecordKind::CREATE_REL, start, 100);
    let behind = nothing(Lsn(start.0 + malformed.len() as u64), 100);
    let mut sent = [malformed, behind].concat();
    record::enter_links(
        &mut sent,
        standby.progress.link().expect("the directory's log was read"),
    );
    receive(&mut receiver, &sent);
    let has_failed = || standby.progress.has_failed();
    standby
        .progress
        .wait(PATIENCE, WaitEvent::RecoveryApply, has_failed);
    assert!(has_failed(), "replay went on to {}", standby.replayed());
    assert_eq!(standby.replayed(), start);
    assert!(matches!(standby.take_back(start), TakeBack::Refused));
    drop(receiver);
    storage.stop_threads();
}
