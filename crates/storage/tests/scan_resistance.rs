//! A big scan, a bulk write and a vacuum leave in memory what other sessions use: they have rings of frames
//! (`buffer/ring.rs`). Each case runs under every variant of `buffer_map` and of `buffer_clock`.
//!
//! Mutations (`mutations/buffer.toml`): a ring whose frames are never used again; a pin through a ring that counts as a
//! use; a ring that takes a frame that was used, or is pinned; a scan that writes what is dirty; a ring that is used
//! while the pool has frames that never had a page.

#[path = "support/pages.rs"]
#[allow(dead_code, reason = "asynchronous commits are for the model checkers")]
mod pages;

use std::sync::Arc;

use clearway_machine::Native;
use clearway_storage::heap::{Heap, TxnContext};
use clearway_storage::vacuum::vacuum;
use clearway_storage::{
    BufferPool, BufferPoolOptions, FrameRing, PageId, Reader, RelId, Storage, StorageOptions,
};
use clearway_txn::Snapshot;
use pages::{MemoryPages, number_on, put_number};

const FRAMES: usize = 64;
/// The frames of a ring, in a pool of that many.
const RING: u32 = 8;
/// Pages that all sessions use.
const HOT: u32 = 30;
/// The first page of a big table, and the page behind its last.
const BIG: std::ops::Range<u32> = 100..400;

struct Pool {
    pool: BufferPool<Native, Arc<MemoryPages<Native>>>,
    device: Arc<MemoryPages<Native>>,
}

impl Pool {
    fn new(options: BufferPoolOptions) -> Self {
        let device = Arc::new(MemoryPages::new(1_000));
        Self {
            pool: BufferPool::with_frames(FRAMES, options, Arc::clone(&device)),
            device,
        }
    }

    /// A pool without free frames, in which the hot pages have been used, four times or more.
    fn with_hot_pages(options: BufferPoolOptions) -> Self {
        let pool = Self::new(options);
        for block in 500..500 + FRAMES as u32 {
            pool.look(block);
        }
        for _ in 0..5 {
            for block in 0..HOT {
                pool.look(block);
            }
        }
        pool
    }

    fn look(&self, block: u32) {
        drop(self.pool.pin(self.device.page(block)).unwrap());
    }

    fn look_in(&self, ring: &mut FrameRing, block: u32) {
        drop(self.pool.pin_in(self.device.page(block), ring).unwrap());
    }

    /// Looks at the pages of the big table as a scan does: several times each.
    fn scan(&self, ring: &mut FrameRing) {
        for block in BIG {
            for _ in 0..7 {
                self.look_in(ring, block);
            }
        }
    }

    /// Those of the pages that are in memory.
    fn resident(&self, blocks: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let resident = |&block: &u32| self.pool.holds(self.device.page(block));
        blocks.into_iter().filter(resident).collect()
    }

    fn change_in(&self, ring: &mut FrameRing, block: u32) {
        let pinned = self.pool.pin_in(self.device.page(block), ring).unwrap();
        let mut page = pinned.exclusive();
        let number = number_on(&page.copy()).0;
        page.change_and_log(|bytes| put_number(bytes, number + 1), || self.device.log());
    }
}

fn for_each_pool(case: fn(BufferPoolOptions)) {
    BufferPoolOptions::each_map()
        .chain(BufferPoolOptions::each_other_clock())
        .for_each(case);
}

#[test]
fn a_big_scan_leaves_the_pages_in_memory_that_others_use() {
    for_each_pool(|options| {
        let pool = Pool::with_hot_pages(options);
        let mut ring = pool.pool.scan_ring(BIG.len() as u32).expect("the table is big");
        pool.scan(&mut ring);
        assert!(pool.resident(0..HOT).into_iter().eq(0..HOT), "{options:?}");
        let scanned = pool.resident(BIG);
        assert!(
            scanned.len() <= RING as usize,
            "{options:?}: {scanned:?} are in memory"
        );
    });
}

/// The scan of the case above without the ring: it shows that the case can fail.
#[test]
fn without_a_ring_the_same_scan_sweeps_the_pool() {
    for_each_pool(|options| {
        let pool = Pool::with_hot_pages(options);
        for block in BIG {
            for _ in 0..7 {
                pool.look(block);
            }
        }
        assert!(pool.resident(0..HOT).is_empty(), "{options:?}");
    });
}

#[test]
fn a_scan_fills_a_new_pool() {
    for_each_pool(|options| {
        let pool = Pool::new(options);
        let mut ring = pool.pool.scan_ring(BIG.len() as u32).unwrap();
        pool.scan(&mut ring);
        assert_eq!(pool.resident(BIG).len(), FRAMES, "{options:?}");
    });
}

/// F1. The ring goes around several times.
#[test]
fn a_page_of_the_scan_that_others_use_stays() {
    for_each_pool(|options| {
        let pool = Pool::with_hot_pages(options);
        let mut ring = pool.pool.scan_ring(BIG.len() as u32).unwrap();
        pool.look_in(&mut ring, BIG.start);
        pool.look_in(&mut ring, BIG.start + 1);
        pool.look(BIG.start);
        let pinned = pool
            .pool
            .pin_in(pool.device.page(BIG.start + 1), &mut ring)
            .unwrap();
        pool.scan(&mut ring);
        assert_eq!(pool.resident(BIG.start..BIG.start + 2).len(), 2, "{options:?}");
        assert_eq!(pinned.page_id(), pool.device.page(BIG.start + 1), "{options:?}");
    });
}

/// F2.
#[test]
fn a_scan_writes_nothing_and_a_bulk_write_writes_its_own() {
    for_each_pool(|options| {
        let pool = Pool::with_hot_pages(options);
        let mut ring = pool.pool.scan_ring(BIG.len() as u32).unwrap();
        pool.change_in(&mut ring, BIG.start);
        for block in BIG.skip(1).take(2 * RING as usize) {
            pool.look_in(&mut ring, block);
        }
        assert_eq!(
            pool.device.on_file(BIG.start).0,
            0,
            "{options:?}: a scan wrote a page"
        );
        assert_eq!(pool.resident([BIG.start]), [BIG.start], "{options:?}");

        let pool = Pool::with_hot_pages(options);
        let mut ring = pool.pool.write_ring();
        for block in BIG {
            pool.change_in(&mut ring, block);
        }
        assert!(pool.resident(0..HOT).into_iter().eq(0..HOT), "{options:?}");
        let resident = pool.resident(BIG);
        assert!(resident.len() <= RING as usize, "{options:?}: {resident:?}");
        for block in BIG.filter(|block| !resident.contains(block)) {
            assert_eq!(pool.device.on_file(block).0, 1, "{options:?}: page {block}");
        }
    });
}

/// A heap of a real database.
struct Table {
    storage: Arc<Storage>,
    heap: Heap,
    rel: RelId,
}

impl Table {
    fn new(storage: &Arc<Storage>) -> Self {
        let rel = storage.create_rel().unwrap();
        Self {
            storage: Arc::clone(storage),
            heap: Heap::new(rel.0),
            rel,
        }
    }

    fn transact<R>(&self, act: impl FnOnce(&TxnContext<'_>) -> R) -> R {
        let storage = &self.storage;
        let proc = storage.proc_array.attach().unwrap();
        let xid = storage.assign_xid(proc).unwrap();
        let mut snapshot = Snapshot::default();
        storage.proc_array.snapshot(proc, &mut snapshot);
        let done = act(&TxnContext {
            storage,
            proc,
            xid: Some(xid),
            command: 1,
            reader: Reader::of_no_answer(&snapshot),
            changes: None,
        });
        storage.commit(proc, xid, true).unwrap();
        storage.proc_array.detach(proc);
        done
    }

    /// Loads rows of half a page each, as COPY does.
    fn load(&self, pages: u32) {
        let row = vec![7; 3_900];
        let rows: Vec<&[u8]> = vec![&row; 20];
        self.transact(|ctx| {
            let mut ring = self.storage.write_ring();
            for _ in 0..pages.div_ceil(10) {
                self.heap.insert_many(ctx, &rows, &mut ring).unwrap();
            }
        });
        assert_eq!(self.storage.block_count(self.rel).unwrap(), pages);
    }

    fn scan(&self) -> usize {
        self.transact(|ctx| {
            let mut scan = self.heap.scan(ctx).unwrap();
            std::iter::from_fn(|| scan.next(ctx, |_, row| row.len()).unwrap()).count()
        })
    }

    /// Looks at each page several times, as statements that find their rows by key do.
    fn use_often(&self) {
        for block in 0..self.storage.block_count(self.rel).unwrap() {
            let page = PageId { rel: self.rel, block };
            for _ in 0..5 {
                drop(self.storage.pin(page).unwrap());
            }
        }
    }

    fn resident(&self) -> usize {
        self.storage.resident_pages(self.rel)
    }
}

/// A database with 128 frames and two tables of 40 and 1,000 pages: the small one is used all the time, and the big one is
/// loaded, scanned, vacuumed, and scanned again.
#[test]
fn a_table_in_use_stays_in_memory_while_a_big_one_is_loaded_scanned_and_vacuumed() {
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        buffer_bytes: 1 << 20,
        fsync: false,
        sessions_max: 4,
        ..StorageOptions::default()
    };
    let (storage, _) = Storage::open(dir.path(), options).unwrap();
    let (small, big, filler) = (Table::new(&storage), Table::new(&storage), Table::new(&storage));
    filler.load(200);
    small.load(40);
    small.use_often();
    big.load(1_000);
    assert_eq!(small.resident(), 40, "after the load");
    small.use_often();
    assert_eq!(big.scan(), 2_000);
    assert_eq!(small.resident(), 40, "after the scan");
    small.use_often();
    let stats = vacuum(&storage, big.rel, &[], storage.proc_array.horizon(), &|| false).unwrap();
    assert_eq!((stats.pages, stats.live_rows), (1_000, 2_000));
    assert_eq!(small.resident(), 40, "after the vacuum");
    small.use_often();
    assert_eq!(big.scan(), 2_000);
    assert_eq!(small.resident(), 40, "after the second scan");
}
