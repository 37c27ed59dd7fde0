//! [`Accounting`], the global allocator.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mimalloc::MiMalloc;

use crate::{count, reserve};

/// An allocator that can be asked to give memory back to the operating system.
pub trait Supply: GlobalAlloc {
    /// Gives back what has been freed, of the calling thread above all.
    fn give_back(&self);
    /// From now on takes address space in small pieces, and gives freed pieces back.
    fn take_little_space(&self);
}

unsafe extern "C" {
    /// Of mimalloc itself; its crate declares it only together with much else.
    safe fn mi_collect(force: bool);
    safe fn mi_option_set(option: c_int, value: c_long);
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// Of the C library, whose own functions allocate a little in each thread.
    safe fn mallopt(option: c_int, value: c_int) -> c_int;
}

/// `M_ARENA_MAX`: the regions that the C library allocates from, each of 64 MiB of address space.
#[cfg(target_env = "gnu")]
const ARENA_MAX: c_int = -8;

/// `mi_option_arena_reserve`: the address space that is taken at a time, in KiB; 0: just what is asked for.
const ARENA_RESERVE: c_int = 23;

impl Supply for MiMalloc {
    fn give_back(&self) {
        mi_collect(true);
    }

    fn take_little_space(&self) {
        mi_option_set(ARENA_RESERVE, 0);
        #[cfg(target_env = "gnu")]
        mallopt(ARENA_MAX, 1);
    }
}

/// The longest that an allocation waits for memory.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks while it waits.
const PAUSE: Duration = Duration::from_millis(1);

/// A block that is longer fails at once: so much will not be given back.
const WAITED_FOR_BYTES_MAX: usize = 2 << 30;

/// A global allocator that counts, and that has a reserve; see the [crate](crate).
#[derive(Debug, Default)]
pub struct Accounting<A> {
    supply: A,
    /// True from a refusal until [`recovered`](Self::recovered).
    short: AtomicBool,
}

impl<A: Supply> Accounting<A> {
    /// Around an allocator.
    pub const fn new(supply: A) -> Self {
        Accounting {
            supply,
            short: AtomicBool::new(false),
        }
    }

    /// The allocator underneath.
    pub const fn supply(&self) -> &A {
        &self.supply
    }

    /// Bytes that the calling thread has allocated and not freed; see R3.
    #[inline]
    pub fn thread_bytes(&self) -> i64 {
        count::of_thread()
    }

    /// Bytes that all threads together have allocated and not freed, up to 64 KiB a thread.
    pub fn allocated_bytes(&self) -> u64 {
        count::sum().max(0) as u64
    }

    /// Bytes of the reserve that are in use.
    pub fn reserve_bytes(&self) -> usize {
        reserve::used()
    }

    /// A program whose address space is limited (`ulimit -v`) shares it with its stacks: what the allocator once had and
    /// does not need any more goes back. To be called once, at the start.
    pub fn fit_limits(&self) {
        use rustix::process::{Resource, getrlimit};
        if getrlimit(Resource::As).current.is_some() {
            self.supply.take_little_space();
        }
    }

    /// Raises `attention` from now on: when memory is refused, and when the sum passes the mark.
    pub fn watch(&self, attention: &'static AtomicBool) {
        count::set_attention(attention);
    }

    /// Attention is raised when [`allocated_bytes`](Self::allocated_bytes) passes this.
    pub fn set_mark(&self, bytes: u64) {
        count::set_mark(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// True from a refusal by the system until [`recovered`](Self::recovered).
    pub fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Memory is there again.
    pub fn recovered(&self) {
        self.short.store(false, Ordering::Relaxed);
    }

    /// Promises bytes to the calling thread, if the system has them and `beside` bytes more. The promise is used up as
    /// the thread's balance grows; what is left of it goes with the next one, or with [`drop_promise`](Self::drop_promise).
    pub fn promise(&self, bytes: usize, beside: usize) -> bool {
        count::promise(bytes as u64, |together| {
            usize::try_from(together).is_ok_and(|together| self.has(together.saturating_add(beside)))
        })
    }

    /// The calling thread takes no more of what it was promised.
    pub fn drop_promise(&self) {
        count::drop_promise();
    }

    /// Bytes that were promised and have not been taken.
    pub fn promised_bytes(&self) -> u64 {
        count::promised()
    }

    /// True if the allocator underneath has so many bytes now, in one piece: they are allocated for a moment.
    pub fn has(&self, bytes: usize) -> bool {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), 16) else {
            return false;
        };
        // SAFETY: the layout has a size; the block goes back as it came.
        unsafe {
            let block = self.supply.alloc(layout);
            if !block.is_null() {
                self.supply.dealloc(block, layout);
            }
            !block.is_null()
        }
    }

    /// True if the system has so much address space beside what the allocator underneath has: for stacks.
    pub fn has_space(&self, bytes: usize) -> bool {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
        // SAFETY: a new mapping where the system chooses, which no other code knows of when it goes.
        unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let mapped = mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE);
            mapped.is_ok_and(|address| munmap(address, bytes).is_ok())
        }
    }

    /// Gives freed memory back to the system.
    pub fn give_back(&self) {
        self.supply.give_back();
    }

    /// Tells what the calling thread has allocated: it is about to end.
    pub fn settle(&self) {
        count::settle();
    }

    /// Steps 3 and 4 of the [crate](crate#steps-of-an-allocation).
    #[cold]
    #[inline(never)]
    fn refused(&self, layout: Layout) -> *mut u8 {
        if layout.size() > WAITED_FOR_BYTES_MAX {
            return std::ptr::null_mut();
        }
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            self.short.store(true, Ordering::Relaxed);
            count::raise_attention();
            let mut block = reserve::take(layout);
            if block.is_null() {
                std::thread::sleep(PAUSE);
                // SAFETY: the caller's layout.
                block = unsafe { self.supply.alloc(layout) };
            }
            if !block.is_null() {
                count::add(layout.size());
                return block;
            }
        }
        std::ptr::null_mut()
    }

    /// A block of another size with the contents of this one, which is freed.
    ///
    /// # Safety
    /// As [`GlobalAlloc::realloc`].
    #[cold]
    #[inline(never)]
    unsafe fn moved(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; the two blocks are different, and both as long as what is copied.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

// SAFETY: blocks come from the allocator underneath or from the reserve, and go back where they came from (R1).
unsafe impl<A: Supply> GlobalAlloc for Accounting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { self.supply.alloc(layout) };
        if block.is_null() {
            return self.refused(layout);
        }
        count::add(layout.size());
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { self.supply.alloc_zeroed(layout) };
        if !block.is_null() {
            count::add(layout.size());
            return block;
        }
        let block = self.refused(layout);
        if !block.is_null() {
            // SAFETY: a block of that size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count::subtract(layout.size());
        if reserve::has(block) {
            return reserve::give(block, layout.size());
        }
        // SAFETY: as the caller promises, and not from the reserve.
        unsafe { self.supply.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !reserve::has(block) {
            // SAFETY: as the caller promises, and not from the reserve.
            let new = unsafe { self.supply.realloc(block, layout, size) };
            if !new.is_null() {
                if size >= layout.size() {
                    count::add(size - layout.size());
                } else {
                    count::subtract(layout.size() - size);
                }
                return new;
            }
        }
        // SAFETY: as the caller promises.
        unsafe { self.moved(block, layout, size) }
    }
}
