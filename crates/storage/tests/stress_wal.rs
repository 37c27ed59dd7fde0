//! The log under threads of the host: more workers, records and flushes than a checker can take, under every variant of
//! its switches, with a small ring, few insertion latches, a device that takes time, and checkpoints in between.
//!
//! Each record names the redo position that it was built for, so the log itself shows whether one was inserted behind a
//! redo position that its worker did not know.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clearway_machine::Native;
use clearway_storage::Lsn;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogOptions, RedoMoved, Wal};
use clearway_txn::Xid;
use support::MemoryDevice;

const START: u64 = 64;
const WORKERS: u64 = 8;
const RECORDS: u64 = 200;

type Log = Wal<Native, MemoryDevice>;

/// Inserts a record of a length of its own that names the redo position it was built for.
fn insert(log: &Log, worker: u64, number: u64) -> Lsn {
    let mut redo = log.redo();
    loop {
        let mut payload = redo.0.to_le_bytes().to_vec();
        payload.resize(8 + ((worker + number * 7) % 90) as usize, worker as u8);
        match log.insert(RecordKind::CHANGE, Xid(worker * 1_000 + number), &payload, redo) {
            Ok(end) => return end,
            Err(RedoMoved(now)) => redo = now,
        }
    }
}

fn stress(options: LogOptions) {
    let device = MemoryDevice::default();
    {
        let mut contents = device.0.lock().unwrap();
        contents.synced = START;
        contents.before_sync = Some(|| thread::sleep(Duration::from_micros(20)));
    }
    let log: Arc<Log> = Arc::new(Wal::new(device.clone(), options, Lsn(START), Lsn(START)));
    let working = AtomicBool::new(true);
    let redos = thread::scope(|scope| {
        let checkpointer = scope.spawn(|| {
            let mut redos = vec![Lsn(START)];
            while working.load(Ordering::Relaxed) {
                redos.push(log.move_redo());
                thread::sleep(Duration::from_micros(300));
            }
            redos
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (log, device) = (&log, &device);
                scope.spawn(move || {
                    for number in 0..RECORDS {
                        let end = insert(log, worker, number);
                        if (worker + number) % 3 != 0 {
                            log.flush(end);
                            assert!(log.flushed() >= end);
                            assert!(device.0.lock().unwrap().synced >= end.0);
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        working.store(false, Ordering::Relaxed);
        checkpointer.join().unwrap()
    });
    log.flush(log.reserved());
    let mut reader = LogReader::new(&device, Lsn(START));
    let mut seen = vec![Vec::new(); WORKERS as usize];
    loop {
        let start = reader.position();
        let Some((record, _)) = reader.next_record().unwrap() else {
            break;
        };
        if record.kind != RecordKind::CHANGE {
            continue;
        }
        let built_for = Lsn(u64::from_le_bytes(record.payload[..8].try_into().unwrap()));
        let moved = redos.iter().find(|redo| **redo > built_for && **redo <= start);
        assert_eq!(
            moved, None,
            "{options:?}: the record at {start} was built for {built_for}"
        );
        seen[(record.xid.0 / 1_000) as usize].push(record.xid.0 % 1_000);
    }
    assert_eq!(reader.position(), log.reserved(), "{options:?}: no gaps");
    for own in seen {
        assert_eq!(
            own,
            (0..RECORDS).collect::<Vec<_>>(),
            "{options:?}: each worker's in its order"
        );
    }
}

#[test]
fn workers_flush_and_checkpoint_under_every_variant() {
    let options = LogOptions {
        ring_size: 1 << 10,
        insert_latches: 3,
        ..LogOptions::default()
    };
    options.under_all_variants().for_each(stress);
}
