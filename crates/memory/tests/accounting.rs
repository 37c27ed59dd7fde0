//! The allocator over one that has as much as a test gives it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use clearway_memory::{Accounting, RESERVE_BYTES, Supply};

/// The system's allocator while it has bytes left.
struct Limited {
    left: AtomicUsize,
    given_back: AtomicUsize,
}

impl Limited {
    const fn of(bytes: usize) -> Limited {
        Limited {
            left: AtomicUsize::new(bytes),
            given_back: AtomicUsize::new(0),
        }
    }
}

// SAFETY: the system's, or null.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = self
            .left
            .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(layout.size()));
        match taken {
            // SAFETY: as the caller promises.
            Ok(_) => unsafe { System.alloc(layout) },
            Err(_) => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.left.fetch_add(layout.size(), SeqCst);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

impl Supply for Limited {
    fn give_back(&self) {
        self.given_back.fetch_add(1, SeqCst);
    }

    fn take_little_space(&self) {}
}

fn bytes(count: usize) -> Layout {
    Layout::from_size_align(count, 16).unwrap()
}

/// A test that uses the reserve up has it alone.
static RESERVE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The system has nothing, then something: blocks come from the reserve, move, and go back where they came from.
#[test]
fn what_the_system_refuses_comes_from_the_reserve() {
    static ATTENTION: AtomicBool = AtomicBool::new(false);
    static MEMORY: Accounting<Limited> = Accounting::new(Limited::of(0));
    let _alone = RESERVE.lock().unwrap();
    MEMORY.watch(&ATTENTION);
    let (reserved, balance) = (MEMORY.reserve_bytes(), MEMORY.thread_bytes());
    // SAFETY: each block is used within its size, and freed once with its last layout.
    unsafe {
        let block = MEMORY.alloc(bytes(1000));
        assert!(!block.is_null() && MEMORY.is_short() && ATTENTION.load(SeqCst));
        assert!(MEMORY.reserve_bytes() >= reserved + 1000);
        assert_eq!(MEMORY.thread_bytes(), balance + 1000);
        block.write_bytes(7, 1000);
        // It grows while the system has nothing, and then when it has.
        let block = MEMORY.realloc(block, bytes(1000), 3000);
        assert_eq!(std::slice::from_raw_parts(block, 1000), [7; 1000]);
        block.write_bytes(8, 3000);
        let limited = supply(&MEMORY);
        limited.left.store(100_000, SeqCst);
        let block = MEMORY.realloc(block, bytes(3000), 5000);
        assert_eq!(std::slice::from_raw_parts(block, 3000), [8; 3000]);
        assert_eq!(MEMORY.reserve_bytes(), reserved, "it has moved");
        assert_eq!(limited.left.load(SeqCst), 95_000);
        MEMORY.dealloc(block, bytes(5000));
        assert_eq!(limited.left.load(SeqCst), 100_000);
        assert_eq!(MEMORY.thread_bytes(), balance);
        // Used before, and zeroed all the same.
        limited.left.store(0, SeqCst);
        let block = MEMORY.alloc_zeroed(bytes(4000));
        assert_eq!(std::slice::from_raw_parts(block, 4000), [0; 4000]);
        MEMORY.dealloc(block, bytes(4000));
    }
    assert_eq!(MEMORY.reserve_bytes(), reserved);
    MEMORY.recovered();
    assert!(!MEMORY.is_short());
}

fn supply(memory: &Accounting<Limited>) -> &Limited {
    memory.supply()
}

/// Neither the system nor the reserve has anything: the allocation waits for what others give back.
#[test]
fn an_allocation_waits_until_others_give_back() {
    static MEMORY: Accounting<Limited> = Accounting::new(Limited::of(0));
    let _alone = RESERVE.lock().unwrap();
    let all = bytes(RESERVE_BYTES);
    // SAFETY: blocks are freed once with their layout.
    unsafe {
        let reserve = MEMORY.alloc(all);
        assert!(!reserve.is_null());
        let began = Instant::now();
        let other = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            supply(&MEMORY).left.store(10_000, SeqCst);
        });
        let block = MEMORY.alloc(bytes(10_000));
        assert!(!block.is_null() && began.elapsed() >= Duration::from_millis(90));
        other.join().unwrap();
        MEMORY.dealloc(block, bytes(10_000));
        // What none will give back is refused at once.
        assert!(MEMORY.alloc(bytes(1 << 40)).is_null());
        MEMORY.dealloc(reserve, all);
    }
}

/// A promise is for what is not taken yet, and never touches the reserve.
#[test]
fn a_promise_is_used_up_by_what_the_thread_allocates() {
    static MEMORY: Accounting<Limited> = Accounting::new(Limited::of(10 << 20));
    const MIB: usize = 1 << 20;
    // SAFETY: the block is freed once with its layout.
    unsafe {
        assert!(!MEMORY.promise(8 * MIB, 3 * MIB) && !MEMORY.is_short());
        assert!(MEMORY.promise(8 * MIB, 2 * MIB));
        let others = std::thread::spawn(|| MEMORY.promise(3 * MIB, 0));
        assert!(!others.join().unwrap(), "8 of 10 are promised");
        let block = MEMORY.alloc(bytes(6 * MIB));
        assert_eq!(MEMORY.promised_bytes(), 2 * MIB as u64);
        MEMORY.drop_promise();
        assert_eq!(MEMORY.promised_bytes(), 0);
        assert!(MEMORY.promise(4 * MIB, 0));
        MEMORY.drop_promise();
        MEMORY.dealloc(block, bytes(6 * MIB));
    }
}

/// Attention is raised when more than the mark is allocated, by whichever thread.
#[test]
fn attention_is_raised_at_the_mark() {
    static ATTENTION: AtomicBool = AtomicBool::new(false);
    static MEMORY: Accounting<Limited> = Accounting::new(Limited::of(usize::MAX));
    let _alone = RESERVE.lock().unwrap();
    MEMORY.watch(&ATTENTION);
    MEMORY.set_mark(MEMORY.allocated_bytes() + (64 << 20));
    let grow = |count: usize| {
        let blocks: Vec<_> = (0..count)
            // SAFETY: freed below, once, with its layout.
            .map(|_| unsafe { MEMORY.alloc(bytes(1 << 20)) })
            .collect();
        for block in blocks {
            // SAFETY: as above.
            unsafe { MEMORY.dealloc(block, bytes(1 << 20)) };
        }
    };
    grow(32);
    assert!(!ATTENTION.load(SeqCst));
    std::thread::scope(|scope| scope.spawn(|| grow(80)).join()).unwrap();
    assert!(ATTENTION.load(SeqCst));
    MEMORY.set_mark(u64::MAX);
}
