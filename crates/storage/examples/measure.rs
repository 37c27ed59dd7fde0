//! Measures the cost of the hot paths of storage on this machine.
//!
//! `cargo run --release -p clearway-storage --example measure -- [data directory]`
//!
//! Without a directory the data goes to the system's temporary one; put it on the disk that matters, since commits are
//! dominated by its fdatasync.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clearway_storage::btree::BTree;
use clearway_storage::heap::{Tid, TxnContext};
use clearway_storage::{PageId, PageKind, Reader, RelId, Storage, StorageOptions};
use clearway_txn::{ProcId, Snapshot, Xid};

/// Nanoseconds for a call, the least of five rounds.
fn nanoseconds(calls: u32, mut call: impl FnMut(u32)) -> f64 {
    let rounds = (0..5).map(|_| {
        let started = Instant::now();
        (0..calls).for_each(&mut call);
        started.elapsed().as_nanos() as f64 / f64::from(calls)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Failure> {
    let dir = match std::env::args().nth(1) {
        Some(dir) => tempfile::tempdir_in(PathBuf::from(dir))?,
        None => tempfile::tempdir()?,
    };
    let (storage, _) = Storage::open(dir.path(), StorageOptions::default())?;
    let rel = storage.create_rel()?;
    for _ in 0..PAGES {
        let mut change = storage.begin_change(Xid::INVALID)?;
        let mut page = storage.extend(rel)?.into_exclusive();
        change.init_page(&mut page, PageKind(77), 0);
        change.finish()?;
    }
    pin_pages(&storage, rel);
    change_pages(&storage, rel);
    grow_index(&storage)?;
    println!("clients   commits/s   syncs/s   commits a sync");
    for clients in [1, 2, 4, 8, 16, 64] {
        commit_side_by_side(&storage, rel, clients);
    }
    storage.shutdown()?;
    Ok(())
}

type Failure = Box<dyn std::error::Error>;

const PAGES: u32 = 1024;

/// A page, far from that of the number before.
fn page(rel: RelId, number: u32) -> PageId {
    PageId {
        rel,
        block: number.wrapping_mul(2_654_435_761) % PAGES,
    }
}

fn pin_pages(storage: &Storage, rel: RelId) {
    let read = nanoseconds(1_000_000, |number| {
        let pinned = storage.pin(page(rel, number)).expect("a page in memory");
        black_box(pinned.shared().bytes()[4000]);
    });
    println!("pin, shared latch, unpin          {read:8.1} ns");
}

fn change_pages(storage: &Storage, rel: RelId) {
    for bytes in [16, 100, 1000] {
        let content = vec![1; bytes];
        // Few enough to stay in the log's buffer: the device is measured below.
        let changed = nanoseconds(2_000, |number| {
            let mut page = storage
                .pin(page(rel, number))
                .expect("a page in memory")
                .into_exclusive();
            let mut change = storage.begin_change(Xid::INVALID).expect("room in the log");
            change.write(&mut page, 4000, &content);
            change.finish().expect("a working log");
        });
        println!("change of {bytes:4} bytes, logged      {changed:8.1} ns");
    }
}

/// An update of an indexed column as the index sees it: one entry more, at a random place among 100,000.
fn grow_index(storage: &Storage) -> Result<(), Failure> {
    let index = storage.create_rel()?;
    BTree::create(storage, index)?;
    let tree = BTree::new(index.0);
    let snapshot = Snapshot::default();
    let context = TxnContext {
        storage,
        proc: ProcId(0),
        xid: None,
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    let insert = |number: u32| {
        let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
        let tid = Tid {
            block: number,
            slot: 1,
        };
        let done = tree.insert(&context, &key, tid, None);
        black_box(done.expect("room in the index and the log"));
    };
    (0..100_000).for_each(insert);
    let mut inserted = 100_000;
    let updated = nanoseconds(2_000, |_| {
        insert(inserted);
        inserted += 1;
    });
    println!("entry into an index, logged       {updated:8.1} ns");
    Ok(())
}

/// Clients that each change a page and commit, for two seconds.
fn commit_side_by_side(storage: &Storage, rel: RelId, clients: u32) {
    let syncs_before = storage.wal.syncs();
    let started = Instant::now();
    let duration = Duration::from_secs(2);
    let run = |client: u32| {
        let proc = storage.proc_array.attach().expect("a slot");
        let mut commits = 0_u64;
        while started.elapsed() < duration {
            let xid = storage.assign_xid(proc).expect("room in the log");
            let page = storage.pin(page(rel, client)).expect("a page in memory");
            let mut page = page.into_exclusive();
            let mut change = storage.begin_change(xid).expect("room in the log");
            change.write(&mut page, 4000, &[7; 100]);
            change.finish().expect("a working log");
            drop(page);
            storage.commit(proc, xid, true).expect("a working log");
            commits += 1;
        }
        storage.proc_array.detach(proc);
        commits
    };
    let commits: u64 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || run(client)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("no panic"))
            .sum()
    });
    let seconds = started.elapsed().as_secs_f64();
    let syncs = storage.wal.syncs() - syncs_before;
    let (rate, sync_rate) = (commits as f64 / seconds, syncs as f64 / seconds);
    println!(
        "{clients:7} {rate:11.0} {sync_rate:9.0} {:16.1}",
        commits as f64 / syncs.max(1) as f64
    );
}
