//! The memory of a segment: its form, and a process's part in it.
//!
//! ```text
//! offset 0   header     magic, layout, sizes, first free byte, whether it is broken, who recovers
//!            claims     one for each worker: owner, and what the worker does (`claim`)
//!            slots      one for each worker: semaphore and links of the latch's lists
//!            the rest   latches and data, taken from the front and never given back
//! ```
//!
//! No word of it is an address: latches are named by offsets, workers by numbers.

use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32, compiler_fence};

use super::claim::{Claim, HELD_MAX, HeldLatch, SegmentMode};
use super::error::SegmentError;
use super::process::{ProcessId, namespaces_of_caller};
use super::{CURRENT, Current, Interprocess, forget_worker_in_children};
use crate::core_words::{CoreU32, CoreU64};
use crate::{AtomicWord, Padded, WorkerId, WorkerSlot, Workers};

/// "clearway" as bytes of a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"clearway");

/// The version of the layout. Raised with each change of header, claim or slot that does not change a size.
const LAYOUT: u64 = 3;

/// The least alignment of a segment, and of what lies in it between the parts.
const ALIGNMENT: usize = 128;

/// The most workers: below `WorkerId::NONE`, and few enough for sizes of 32 bits.
const WORKERS_MAX: u32 = 1 << 20;

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Header {
    /// Written last.
    magic: CoreU64,
    layout: CoreU64,
    size: CoreU64,
    workers: CoreU32,
    /// 1 once a worker has died that held a latch or was about to change one. It stays so.
    broken: CoreU32,
    /// Offset of the first byte that is not taken.
    free: CoreU64,
    /// Those in which the identities of processes are meant.
    pub(super) namespaces: [CoreU64; 2],
    /// 0, or the process that settles deaths.
    pub(super) recoverer: CoreU64,
}

/// The number that says how a segment is laid out: sizes of this crate, and `of_latches`, that of the crate whose latches are
/// in it.
fn layout_of(of_latches: u32) -> u64 {
    let sizes =
        size_of::<Claim>() * 31 + size_of::<WorkerSlot<Interprocess>>() * 7 + size_of::<Header>() + HELD_MAX;
    u64::from(of_latches) << 32 | (sizes as u64) << 8 | LAYOUT
}

/// Offsets of the parts.
struct Parts {
    claims: usize,
    slots: usize,
    rest: usize,
}

impl Parts {
    fn of(workers: u32) -> Self {
        let workers = workers as usize;
        let claims = size_of::<Header>();
        let slots = claims + workers * size_of::<Claim>();
        Self {
            claims,
            slots,
            rest: slots + workers * size_of::<Padded<WorkerSlot<Interprocess>>>(),
        }
    }
}

/// A process's view of a segment. At most one in a process.
pub(super) struct Attachment {
    base: NonNull<u8>,
    size: usize,
    /// Offset of the part for latches and data.
    first: usize,
    pub(super) header: &'static Header,
    pub(super) claims: &'static [Claim],
    pub(super) workers: Workers<Interprocess>,
    /// Tells it from the process's earlier ones, and from that of the process which this one is a fork of. 0 before it is
    /// published.
    generation: AtomicU32,
}

// SAFETY: the pointer is to memory whose words are atomics, as what the other fields refer to.
unsafe impl Send for Attachment {}
// SAFETY: as above.
unsafe impl Sync for Attachment {}

/// The process's attachment, or null.
static ATTACHED: AtomicPtr<Attachment> = AtomicPtr::new(ptr::null_mut());

/// The attachment of the process.
pub(super) fn attached() -> Option<&'static Attachment> {
    // SAFETY: null, or from `Box::into_raw` in `publish`. It is freed by the `SegmentMemory` alone, whose maker has promised that
    // nothing that it got from `Interprocess` is used later.
    unsafe { ATTACHED.load(Acquire).as_ref() }
}

/// Makes the attachment of a child of `fork` another than its parent's: a copy of a parent's worker is none of the child's, not
/// even after the child has got the slot that its parent has left. Called by the child's one thread.
pub(super) fn renew_in_child() {
    if let Some(attachment) = attached() {
        attachment.generation.store(super::next_generation(), Relaxed);
    }
}

/// The claim of the calling thread in the process's segment.
pub(super) fn current_claim() -> Option<&'static Claim> {
    let attachment = attached()?;
    let current = CURRENT.get();
    if current.generation != attachment.generation.load(Relaxed) {
        return None;
    }
    attachment.claims.get(current.number as usize)
}

/// The number of the calling thread in the process's segment.
pub(super) fn current_worker() -> Option<WorkerId> {
    let current = CURRENT.get();
    (current.number != WorkerId::NONE && current.generation == attached()?.generation.load(Relaxed))
        .then_some(WorkerId(current.number))
}

/// Memory that processes share, with the worker slots of all their threads. Dropping it ends the process's part.
#[derive(Debug)]
pub struct SegmentMemory {
    attachment: NonNull<Attachment>,
}

// SAFETY: the attachment is both.
unsafe impl Send for SegmentMemory {}
// SAFETY: as above.
unsafe impl Sync for SegmentMemory {}

impl core::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Attachment")
            .field("size", &self.size)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl SegmentMemory {
    /// The bytes that header and worker slots take.
    pub fn size_of_slots(workers: u32) -> usize {
        Parts::of(workers.clamp(1, WORKERS_MAX)).rest
    }

    /// Makes a segment in `size` bytes at `memory`, with slots for `workers` threads of all processes together (from 1 to
    /// 1,048,576), and attaches the process to it. `of_latches` is a number that changes with the layout of what the caller
    /// puts there.
    ///
    /// # Errors
    /// [`Misaligned`](SegmentError::Misaligned), [`TooSmall`](SegmentError::TooSmall),
    /// [`AlreadyAttached`](SegmentError::AlreadyAttached).
    ///
    /// # Safety
    /// The memory may be read and written, no process uses it, and it stays mapped here until the value is dropped; from then on
    /// nothing is used that came from it or from [`Interprocess`]. What is in it is written by this library alone, or to
    /// places that [`reserve`](Self::reserve) has returned.
    pub unsafe fn create(
        memory: NonNull<u8>,
        size: usize,
        workers: u32,
        of_latches: u32,
    ) -> Result<Self, SegmentError> {
        let workers = workers.clamp(1, WORKERS_MAX);
        let parts = Parts::of(workers);
        check_memory(memory, size, parts.rest)?;
        if !ATTACHED.load(Relaxed).is_null() {
            return Err(SegmentError::AlreadyAttached);
        }
        let base = memory.as_ptr();
        // SAFETY: `check_memory` has seen that all parts fit and are aligned, and the caller that no other process uses them.
        unsafe {
            // What was here before is no segment any more: a maker that is killed from here on leaves none. A compiler fence is
            // enough for that (`claim`).
            (*base.cast::<Header>()).magic.store(0, Relaxed);
            compiler_fence(SeqCst);
            for number in 0..workers as usize {
                base.add(parts.claims)
                    .cast::<Claim>()
                    .add(number)
                    .write(Claim::new());
                let slots = base.add(parts.slots).cast::<Padded<WorkerSlot<Interprocess>>>();
                slots.add(number).write(Padded(WorkerSlot::new_const()));
            }
            let header = &*base.cast::<Header>();
            header.layout.store(layout_of(of_latches), Relaxed);
            header.size.store(size as u64, Relaxed);
            header.workers.store(workers, Relaxed);
            header.broken.store(0, Relaxed);
            header.free.store(parts.rest as u64, Relaxed);
            header.recoverer.store(0, Relaxed);
            for (word, number) in header.namespaces.iter().zip(namespaces_of_caller()) {
                word.store(number, Relaxed);
            }
            // Release: pairs with the Acquire in `attach`; a process that sees the magic sees the rest.
            header.magic.store(MAGIC, Release);
        }
        // SAFETY: the caller's.
        unsafe { Self::attach(memory, size, of_latches) }
    }

    /// Attaches the process to the segment that another one has made in this memory, which may be mapped here at another
    /// address.
    ///
    /// # Errors
    /// [`Misaligned`](SegmentError::Misaligned), [`TooSmall`](SegmentError::TooSmall),
    /// [`NotASegment`](SegmentError::NotASegment), [`OtherLayout`](SegmentError::OtherLayout),
    /// [`OtherSize`](SegmentError::OtherSize), [`Broken`](SegmentError::Broken),
    /// [`AlreadyAttached`](SegmentError::AlreadyAttached).
    ///
    /// # Safety
    /// As of [`create`](Self::create), but that other processes use it in the same way.
    pub unsafe fn attach(memory: NonNull<u8>, size: usize, of_latches: u32) -> Result<Self, SegmentError> {
        check_memory(memory, size, size_of::<Header>())?;
        // SAFETY: as large, aligned, and mapped as long as the attachment lives.
        let header: &'static Header = unsafe { memory.cast().as_ref() };
        // Acquire: pairs with the Release in `create`.
        if header.magic.load(Acquire) != MAGIC {
            return Err(SegmentError::NotASegment);
        }
        let (found, expected) = (header.layout.load(Relaxed), layout_of(of_latches));
        if found != expected {
            return Err(SegmentError::OtherLayout { found, expected });
        }
        let made = header.size.load(Relaxed);
        if made != size as u64 {
            let given = size as u64;
            return Err(SegmentError::OtherSize { made, given });
        }
        let workers = header.workers.load(Relaxed);
        if workers == 0 || workers > WORKERS_MAX {
            return Err(SegmentError::NotASegment);
        }
        let parts = Parts::of(workers);
        check_memory(memory, size, parts.rest)?;
        if header.broken.load(Relaxed) != 0 {
            return Err(SegmentError::Broken);
        }
        let base = memory.as_ptr();
        // SAFETY: in the memory, by the check, and made by `create`, which has written the magic after them.
        let (claims, slots) = unsafe {
            (
                core::slice::from_raw_parts(base.add(parts.claims).cast::<Claim>(), workers as usize),
                core::slice::from_raw_parts(base.add(parts.slots).cast(), workers as usize),
            )
        };
        Self::publish(Attachment {
            base: memory,
            size,
            first: parts.rest,
            header,
            claims,
            workers: Workers::of_slots(slots),
            generation: AtomicU32::new(0),
        })
    }

    fn publish(attachment: Attachment) -> Result<Self, SegmentError> {
        attachment.generation.store(super::next_generation(), Relaxed);
        forget_worker_in_children();
        let attachment = Box::into_raw(Box::new(attachment));
        // Release: pairs with the Acquire in `attached`.
        if ATTACHED
            .compare_exchange(ptr::null_mut(), attachment, Release, Relaxed)
            .is_err()
        {
            // SAFETY: from `into_raw` above, and seen by no other.
            drop(unsafe { Box::from_raw(attachment) });
            return Err(SegmentError::AlreadyAttached);
        }
        // SAFETY: a box is not null.
        let attachment = unsafe { NonNull::new_unchecked(attachment) };
        Ok(Self { attachment })
    }

    pub(super) fn view(&self) -> &Attachment {
        // SAFETY: freed when this value is dropped.
        unsafe { self.attachment.as_ref() }
    }

    /// Takes `size` bytes, at a multiple of `alignment` (at most 128), for latches or data. Returns their offset. They are not
    /// given back as long as the segment lives, and hold what was in the memory when the segment was made.
    ///
    /// # Errors
    /// [`NoRoom`](SegmentError::NoRoom).
    pub fn reserve(&self, size: usize, alignment: usize) -> Result<u64, SegmentError> {
        let view = self.view();
        debug_assert!(alignment.is_power_of_two() && alignment <= ALIGNMENT);
        let end = view.size as u64;
        let mut free = view.header.free.load(Relaxed);
        loop {
            let start = free.next_multiple_of(alignment as u64);
            let next = start.checked_add(size as u64).filter(|next| *next <= end);
            let Some(next) = next else {
                let left = end.saturating_sub(start);
                return Err(SegmentError::NoRoom {
                    wanted: size as u64,
                    left,
                });
            };
            match view
                .header
                .free
                .compare_exchange_weak(free, next, Relaxed, Relaxed)
            {
                Ok(_) => return Ok(start),
                Err(found) => free = found,
            }
        }
    }

    /// The address, in this process, of `size` bytes at `offset` that were taken by [`reserve`](Self::reserve). `None` if they
    /// were not.
    pub fn address_of(&self, offset: u64, size: usize) -> Option<NonNull<u8>> {
        let view = self.view();
        let end = offset.checked_add(size as u64)?;
        if offset < view.first as u64 || end > view.header.free.load(Relaxed).min(view.size as u64) {
            return None;
        }
        // SAFETY: within the memory.
        Some(unsafe { view.base.add(offset as usize) })
    }

    /// The offset of what is at `address` in this process. `None` if that is not in the part for latches and data.
    #[inline]
    pub fn offset_of(&self, address: *const ()) -> Option<u64> {
        let view = self.view();
        let offset = address.addr().wrapping_sub(view.base.as_ptr().addr());
        (offset >= view.first && offset < view.size).then_some(offset as u64)
    }

    /// The addresses of the segment in this process.
    pub fn addresses(&self) -> core::ops::Range<usize> {
        let view = self.view();
        let start = view.base.as_ptr().addr();
        start..start + view.size
    }

    /// True once the death of a worker has been found that held a latch or was about to change one.
    #[inline(always)]
    pub fn is_broken(&self) -> bool {
        // Acquire: pairs with the Release in `break_for_all`.
        self.view().header.broken.load(Acquire) != 0
    }

    /// The processes of all workers that live, each once, the caller's among them.
    pub fn processes(&self) -> Vec<ProcessId> {
        let mut all = Vec::new();
        for owner in self.view().claims.iter().filter_map(Claim::owner) {
            if !all.contains(&owner) {
                all.push(owner);
            }
        }
        // The number of one that has ended may be a stranger's by now.
        all.retain(|process| process.is_alive());
        all
    }

    /// Makes the calling thread a worker of the segment.
    ///
    /// # Errors
    /// [`AlreadyRegistered`](SegmentError::AlreadyRegistered), [`Broken`](SegmentError::Broken),
    /// [`NoSlot`](SegmentError::NoSlot), [`OtherNamespace`](SegmentError::OtherNamespace).
    pub fn register(&self) -> Result<Registration<'_>, SegmentError> {
        let view = self.view();
        if current_worker().is_some() {
            return Err(SegmentError::AlreadyRegistered);
        }
        if self.is_broken() {
            return Err(SegmentError::Broken);
        }
        self.check_namespaces()?;
        let process = ProcessId::current();
        let free = view.claims.iter().position(|claim| claim.take(process));
        let Some(number) = free else {
            let workers = view.claims.len() as u32;
            return Err(SegmentError::NoSlot { workers });
        };
        let current = Current {
            generation: view.generation.load(Relaxed),
            number: number as u32,
        };
        CURRENT.set(current);
        view.workers
            .slot(WorkerId(current.number))
            .claimed
            .store(1, Relaxed);
        Ok(Registration {
            memory: self,
            claim: &view.claims[number],
            current,
            not_send: PhantomData,
        })
    }

    /// An error if the caller means others by the identities of processes in the segment than its maker.
    pub(super) fn check_namespaces(&self) -> Result<(), SegmentError> {
        let header = self.view().header;
        let of_maker = header.namespaces.each_ref().map(|word| word.load(Relaxed));
        let differ = |(one, other): (u64, u64)| one != other && one != 0 && other != 0;
        if of_maker.into_iter().zip(namespaces_of_caller()).any(differ) {
            return Err(SegmentError::OtherNamespace);
        }
        Ok(())
    }

    pub(super) fn break_for_all(&self) {
        // Release: pairs with the Acquire in `is_broken`.
        self.view().header.broken.store(1, Release);
    }
}

impl Drop for SegmentMemory {
    fn drop(&mut self) {
        ATTACHED.store(ptr::null_mut(), Release);
        // SAFETY: from `into_raw` in `publish`; registrations and recoveries borrow this value, and the maker has promised that
        // nothing else is used later.
        drop(unsafe { Box::from_raw(self.attachment.as_ptr()) });
    }
}

fn check_memory(memory: NonNull<u8>, size: usize, needed: usize) -> Result<(), SegmentError> {
    if !memory.as_ptr().addr().is_multiple_of(ALIGNMENT) {
        return Err(SegmentError::Misaligned);
    }
    if size < needed {
        let (needed, given) = (needed as u64, size as u64);
        return Err(SegmentError::TooSmall { needed, given });
    }
    Ok(())
}

/// The calling thread as a worker of a segment. Dropping it gives the slot back.
#[derive(Debug)]
pub struct Registration<'a> {
    memory: &'a SegmentMemory,
    claim: &'a Claim,
    current: Current,
    not_send: PhantomData<*const ()>,
}

impl Registration<'_> {
    /// The memory it is a worker of.
    pub fn memory(&self) -> &SegmentMemory {
        self.memory
    }

    /// The worker's number.
    pub fn worker(&self) -> WorkerId {
        WorkerId(self.current.number)
    }

    /// True unless the caller is a child of `fork`, which has a copy of its parent's value.
    #[inline(always)]
    pub fn is_current(&self) -> bool {
        CURRENT.get() == self.current
    }

    /// Notes that the worker is about to use the latch, in the mode in which it wants it, holds it or will hold it, until
    /// [`leave`](Self::leave).
    #[inline(always)]
    pub fn enter(&self, latch: HeldLatch) {
        self.claim.enter(latch);
    }

    /// The use has ended.
    #[inline(always)]
    pub fn leave(&self) {
        self.claim.leave();
    }

    /// True if the worker can hold one more latch.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.claim.has_room()
    }

    /// True if the worker holds the latch so.
    pub fn holds(&self, latch: HeldLatch) -> bool {
        self.claim.holds(latch)
    }

    /// Number of latches held.
    pub fn held_count(&self) -> usize {
        self.claim.held().count()
    }

    /// Notes that the worker holds the latch, which it is still using.
    ///
    /// # Panics
    /// Without [room](Self::has_room).
    #[inline(always)]
    pub fn add_held(&self, latch: HeldLatch) {
        self.claim.add_held(latch);
    }

    /// Notes that the worker, which is using the latch, holds it in `mode` from now on. `false` if it did not hold it as
    /// `before`.
    #[inline(always)]
    pub fn change_held(&self, before: HeldLatch, mode: SegmentMode) -> bool {
        self.claim.change_held(before, mode)
    }

    /// Notes that the worker, which is using the latch, is about to release it. `false` if it does not hold it so.
    #[inline(always)]
    pub fn remove_held(&self, latch: HeldLatch) -> bool {
        self.claim.remove_held(latch)
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        // In a child of `fork` the slot is the parent's.
        if !self.is_current() {
            return;
        }
        if self.held_count() != 0 {
            // The slot stays taken: its notes say what is held. The process's end makes a death of it.
            return;
        }
        CURRENT.set(Current::NONE);
        give_back(self.memory.view(), self.worker());
    }
}

/// Gives the slot of `worker`, which waits for nothing, to the next.
pub(super) fn give_back(view: &Attachment, worker: WorkerId) {
    let slot = view.workers.slot(worker);
    slot.clear();
    slot.waiting.store(0, Relaxed);
    slot.claimed.store(0, Relaxed);
    view.claims[worker.0 as usize].give_back();
}
