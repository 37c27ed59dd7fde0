//! A standby beside a primary in one process: its directory is a base backup, and a test sends it the log.

#![allow(dead_code, reason = "each suite uses its part")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clearway_storage::backup::{self, Backup};
use clearway_storage::retention::Follower;
use clearway_storage::standby::{ChangedDefinitions, Conflict, LogReceiver, ReplayObserver};
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::{Lsn, PageKind, RelId, Result, Storage};
use clearway_txn::{ProcId, Snapshot, Xid};

/// The session that copies and sends.
const PROCESS_ID: u32 = 4_242;

/// The offset of the number that the tests keep on each page.
pub const NUMBER: usize = 4096;

/// A relation of `pages` pages, each with the number 0.
pub fn numbered_pages(storage: &Arc<Storage>, pages: u32) -> RelId {
    let rel = storage.create_rel().unwrap();
    for _ in 0..pages {
        let page = storage.extend(rel).unwrap();
        let mut change = storage.begin_change(Xid::INVALID).unwrap();
        let mut page = page.into_exclusive();
        change.init_page(&mut page, PageKind(77), 8);
        change.write(&mut page, NUMBER, &[0; 8]);
        change.finish().unwrap();
    }
    rel
}

/// Copies the database of `primary` into `dir` as a base backup does, with the log that it needs.
pub fn copy_database(primary: &Arc<Storage>, dir: &Path) {
    let backup = Backup::begin(primary, PROCESS_ID).unwrap();
    let (base, log) = (
        dir.join(backup::RELATIONS_DIRECTORY),
        dir.join(backup::LOG_DIRECTORY),
    );
    fs::create_dir_all(&base).unwrap();
    fs::create_dir_all(&log).unwrap();
    for rel in backup.relations().unwrap() {
        let Some(copy) = backup.open_relation(rel).unwrap() else {
            continue;
        };
        let mut bytes = vec![0; copy.length as usize];
        copy.read_at(&mut bytes, 0).unwrap();
        fs::write(base.join(rel.0.to_string()), bytes).unwrap();
    }
    let end = backup.finish().unwrap();
    for (name, start) in backup.segments(end.position) {
        let file = File::create(log.join(name)).unwrap();
        let mut bytes = vec![0; SEGMENT_SIZE as usize];
        // The log before the backup's start may be gone.
        let from = start.max(backup.start());
        let skipped = (from.0 - start.0) as usize;
        backup
            .read_log(from, end.position, &mut bytes[skipped..])
            .unwrap();
        file.write_all_at(&bytes, 0).unwrap();
    }
    for (name, text) in backup.history_files().unwrap() {
        fs::write(log.join(name), text).unwrap();
    }
    fs::write(dir.join(backup::CONTROL_NAME), end.control).unwrap();
}

/// Sends the primary's log to the standby.
pub struct Sender {
    primary: Arc<Storage>,
    follower: Follower,
    pub receiver: LogReceiver,
}

impl Sender {
    pub fn new(primary: &Arc<Storage>, standby: &Arc<Storage>) -> Self {
        let receiver = standby.receive_log().unwrap();
        Self {
            primary: Arc::clone(primary),
            follower: primary
                .retention
                .follow(PROCESS_ID, receiver.position(), None)
                .unwrap(),
            receiver,
        }
    }

    /// Sends what is durable by now, in pieces of at most `piece` bytes, each synced; up to where that is.
    pub fn send(&mut self, piece: usize) -> Lsn {
        let mut bytes = vec![0; piece];
        loop {
            let read = self.primary.read_log(&self.follower, &mut bytes).unwrap();
            let position = self.receiver.position();
            if read == 0 {
                return position;
            }
            self.receiver.write(position, &bytes[..read]).unwrap();
            let received = self.receiver.sync().unwrap();
            self.follower.advance(received, false);
        }
    }

    /// Sends log up to `end`, which is durable and may be in the middle of a record.
    pub fn send_up_to(&mut self, end: Lsn) {
        let from = self.receiver.position();
        let mut bytes = vec![0; (end.0 - from.0) as usize];
        let read = self.primary.read_log(&self.follower, &mut bytes).unwrap();
        assert_eq!(read, bytes.len(), "it is durable");
        self.receiver.write(from, &bytes).unwrap();
        let received = self.receiver.sync().unwrap();
        self.follower.advance(received, false);
    }

    /// The primary is on another timeline by now, and the standby has followed it there: goes on.
    pub fn resume(&mut self) {
        self.receiver.resume();
        let position = self.receiver.position();
        self.follower = self.primary.retention.follow(PROCESS_ID, position, None).unwrap();
    }

    /// Sends all, and waits until it is replayed.
    pub fn catch_up(&mut self) {
        self.primary.wal.flush(self.primary.wal.reserved());
        let end = self.send(64 << 10);
        let standby = self.receiver.standby();
        assert!(
            standby.wait_replayed(end, Duration::from_secs(30)),
            "replay is at {}, not at {end}: {:?}",
            standby.replayed(),
            standby.failure()
        );
    }
}

/// Remembers what replay has reported to it.
#[derive(Debug, Default)]
pub struct Observer {
    pub defined: Mutex<Vec<(Xid, Snapshot)>>,
    pub cancelled: Mutex<Vec<(ProcId, Conflict)>>,
    /// Called for each session that is in the way.
    pub on_cancel: Option<fn(ProcId)>,
}

impl ReplayObserver for Observer {
    fn publish_definitions(&self, xid: Xid, snapshot: &Snapshot, _: &ChangedDefinitions) -> Result<()> {
        self.defined.lock().unwrap().push((xid, snapshot.clone()));
        Ok(())
    }

    fn definitions_are_seen(&self, _: Xid, _: &ChangedDefinitions) -> Result<()> {
        Ok(())
    }

    fn cancel(&self, proc: ProcId, conflict: Conflict) {
        self.cancelled.lock().unwrap().push((proc, conflict));
    }
}

/// Asserts that both hold the same.
#[track_caller]
pub fn assert_same_contents(one: &Storage, other: &Storage) {
    let (one, other) = (contents(one), contents(other));
    let rels = |of: &[(RelId, Vec<u8>)]| -> Vec<(RelId, usize)> {
        of.iter().map(|(rel, bytes)| (*rel, bytes.len())).collect()
    };
    assert_eq!(rels(&one), rels(&other));
    for ((rel, one), (_, other)) in one.iter().zip(&other) {
        let differs = one.iter().zip(other).position(|(one, other)| one != other);
        assert_eq!(differs, None, "relation {} differs at this byte", rel.0);
    }
}

/// The relations' bytes as the storage has them in memory and in files, without checksums.
fn contents(storage: &Storage) -> Vec<(RelId, Vec<u8>)> {
    let mut rels = storage.list_rels().unwrap();
    rels.retain(|rel| *rel != RelId::COMMIT_LOG);
    let read = |rel: RelId| {
        let blocks = storage.block_count(rel).unwrap();
        let pages = (0..blocks).flat_map(|block| {
            let page = storage.pin(clearway_storage::PageId { rel, block }).unwrap();
            let mut bytes = page.shared().copy().to_vec();
            // The checksum, which is that of the last time that the page was written out.
            bytes[8..12].fill(0);
            bytes
        });
        (rel, pages.collect())
    };
    rels.into_iter().map(read).collect()
}
