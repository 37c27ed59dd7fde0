//! A log that grows, and commits in it.

#![allow(dead_code)]

use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{Lsn, Storage};
use clearway_txn::{Status, Xid};

/// Logs meaningless bytes up to about `position`, and makes them durable.
pub fn fill_to(storage: &Storage, position: u64) {
    const PAYLOAD: u64 = 1 << 18;
    while storage.wal.reserved().0 + PAYLOAD < position {
        storage.make_log_room().unwrap();
        let nothing = [0; PAYLOAD as usize];
        let end = storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &nothing);
        storage.wal.flush(end);
    }
}

/// A position in the middle of segment `number`.
pub fn middle_of(number: u64) -> u64 {
    number * SEGMENT_SIZE + SEGMENT_SIZE / 2
}

/// A transaction that commits durably.
pub fn commit(storage: &Storage) -> Xid {
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    storage.commit(proc, xid, true).unwrap();
    storage.proc_array.detach(proc);
    xid
}

pub fn is_committed(storage: &Storage, xid: Xid) -> bool {
    storage.status(xid).unwrap() == Status::Committed
}

/// Everything logged is durable, and the background threads log nothing more: where the log ends.
pub fn quiet_end(storage: &Storage) -> Lsn {
    storage.stop_threads();
    let end = storage.wal.reserved();
    storage.wal.flush(end);
    end
}
