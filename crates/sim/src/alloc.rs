//! An allocator under which cache lines follow from the program alone.
//!
//! The atomics that share a line must not depend on the host: neither on its allocator's size classes nor on what was
//! allocated before. So while a thread is inside a simulation each allocation starts on a line of its own; and memory
//! that is freed and handed out again is new lines to the simulation. Outside of simulations nothing changes but one
//! load and one branch for each allocation.
//!
//! Without it a simulation still runs, and is still the same at each run of the same binary on the same host;
//! but small objects then share lines as the host's allocator happens to place them. The `clearway` binary
//! and the tests install it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};
use std::mem::ManuallyDrop;

use crate::lines::LINE;

/// Wraps the program's allocator.
#[derive(Debug, Default)]
pub struct LineAllocator<A>(pub A);

struct State {
    /// True if this thread is inside a simulation.
    inside: Cell<bool>,
    /// Number of ranges in `freed`.
    freed_count: Cell<usize>,
    /// Ranges freed since the simulation last looked.
    freed: ManuallyDrop<UnsafeCell<Vec<(usize, usize)>>>,
}

thread_local! {
    // No destructor: the vector is emptied, not dropped, when a simulation ends.
    static STATE: State = const {
        State {
            inside: Cell::new(false),
            freed_count: Cell::new(0),
            freed: ManuallyDrop::new(UnsafeCell::new(Vec::new())),
        }
    };
}

/// Switches line placement on or off for this thread; returns how it was.
pub(crate) fn set_inside(inside: bool) -> bool {
    STATE.with(|state| state.inside.replace(inside))
}

/// True if there is anything for [`drain_freed`].
#[inline(always)]
pub(crate) fn has_freed() -> bool {
    STATE.with(|state| state.freed_count.get() != 0)
}

/// Calls `forget` for each range freed since the last call.
#[cold]
pub(crate) fn drain_freed(mut forget: impl FnMut(usize, usize)) {
    STATE.with(|state| {
        let inside = state.inside.replace(false);
        // SAFETY: the vector belongs to this thread, and the only other user, `note_freed`, does not run in
        // here, since `inside` is false.
        let freed = unsafe { &mut *state.freed.get() };
        for (address, bytes) in freed.drain(..) {
            forget(address, bytes);
        }
        state.freed_count.set(0);
        state.inside.set(inside);
    });
}

fn note_freed(address: usize, bytes: usize) {
    STATE.with(|state| {
        // Growing the vector allocates and frees: not to be noted.
        state.inside.set(false);
        // SAFETY: as in `drain_freed`.
        let freed = unsafe { &mut *state.freed.get() };
        freed.push((address, bytes));
        state.freed_count.set(freed.len());
        state.inside.set(true);
    });
}

fn is_inside() -> bool {
    STATE.try_with(|state| state.inside.get()).unwrap_or(false)
}

fn on_lines(layout: Layout) -> Layout {
    let align = layout.align().max(LINE);
    // A line more: two allocations are never neighbours, so a run over neighbouring lines stays within one.
    Layout::from_size_align(layout.size() + LINE, align)
        .map(|layout| layout.pad_to_align())
        .unwrap_or(layout)
}

// SAFETY: each call is passed on with a layout that is at least as strict. `A` is one of the allocators that
// find a block's size from its address (malloc, mimalloc): blocks made inside a simulation and freed outside,
// or the other way round, reach it with a layout that differs from the one they were made with.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LineAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let layout = if is_inside() { on_lines(layout) } else { layout };
        // SAFETY: the caller's promises hold for the stricter layout too.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let layout = if is_inside() { on_lines(layout) } else { layout };
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_inside() {
            note_freed(pointer.addr(), layout.size());
        }
        // SAFETY: the block came from `A`, which finds its size by itself.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_inside() {
            // SAFETY: as in `dealloc`.
            return unsafe { self.0.realloc(pointer, layout, size) };
        }
        // By hand, so that the new block starts on a line and the old one is forgotten.
        // SAFETY: `layout.align()` is valid and the caller promises that `size` is, for it.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: `size` is not 0, as the caller promises; the blocks do not overlap; both are at least as
        // long as what is copied.
        unsafe {
            let new = self.alloc(new_layout);
            if !new.is_null() {
                new.copy_from_nonoverlapping(pointer, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            new
        }
    }
}
