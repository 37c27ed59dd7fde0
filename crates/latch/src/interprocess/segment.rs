//! A segment as its users see it: making it, attaching to it, placing latches.

use core::ptr::NonNull;

use clearway_machine::{ProcessId, SegmentError, SegmentMemory};

use super::class::ClassNumber;
use super::lwlock::SegmentLwLock;
use super::mutex::SegmentMutex;
use super::placed::Placed;
use super::rwlock::SegmentRwLock;
use super::worker::SegmentWorker;
use crate::lwlock::options::LwLockFairnessVariant;
use crate::order;

/// The number of the layout of the latches. Raised with each change of their words or their protocol.
const LAYOUT: u32 = 2 << 1 | cfg!(feature = "count-acquisitions") as u32;

/// Memory that processes share, with latches in it. See the module for an example.
#[derive(Debug)]
pub struct Segment {
    pub(super) memory: SegmentMemory,
}

impl Segment {
    /// The size of a segment for so many workers, the threads of all processes together, and for `bytes` of latches and data.
    pub fn size_for(workers: u32, bytes: usize) -> usize {
        (SegmentMemory::size_of_slots(workers) + bytes).next_multiple_of(4096)
    }

    /// Makes a segment in `size` bytes at `memory`, and attaches the process to it.
    ///
    /// # Errors
    /// [`Misaligned`](SegmentError::Misaligned) unless the memory begins at a multiple of 128 bytes,
    /// [`TooSmall`](SegmentError::TooSmall), [`AlreadyAttached`](SegmentError::AlreadyAttached).
    ///
    /// # Safety
    /// The memory may be read and written, no process uses it yet, and it stays mapped here until the value is dropped. It is
    /// written through this library alone, but for what [`reserve`](Self::reserve) returns. After the drop nothing is used
    /// that came from [`Interprocess`](super::Interprocess).
    pub unsafe fn create(memory: NonNull<u8>, size: usize, workers: u32) -> Result<Self, SegmentError> {
        // SAFETY: the caller's.
        let memory = unsafe { SegmentMemory::create(memory, size, workers, LAYOUT)? };
        Ok(Self { memory })
    }

    /// Attaches the process to a segment that another process has made in this memory, which may be mapped at another address
    /// here. A child of `fork` is attached already if its parent was.
    ///
    /// # Errors
    /// [`NotASegment`](SegmentError::NotASegment), also while it is being made; [`OtherLayout`](SegmentError::OtherLayout) and
    /// [`OtherSize`](SegmentError::OtherSize) with both values; [`Broken`](SegmentError::Broken); and those of
    /// [`create`](Self::create).
    ///
    /// # Safety
    /// As of [`create`](Self::create), but that other processes use it through this library. A file is as long as the mapping:
    /// the kernel ends a process by `SIGBUS` that reads beyond its end.
    pub unsafe fn attach(memory: NonNull<u8>, size: usize) -> Result<Self, SegmentError> {
        // SAFETY: the caller's.
        let memory = unsafe { SegmentMemory::attach(memory, size, LAYOUT)? };
        Ok(Self { memory })
    }

    /// Makes the calling thread a worker, until the result is dropped.
    ///
    /// # Errors
    /// [`NoSlot`](SegmentError::NoSlot) if all are taken, also by the dead that are not settled yet;
    /// [`AlreadyRegistered`](SegmentError::AlreadyRegistered); [`OtherNamespace`](SegmentError::OtherNamespace);
    /// [`Broken`](SegmentError::Broken).
    pub fn register(&self) -> Result<SegmentWorker<'_>, SegmentError> {
        let registration = self.memory.register()?;
        order::none_held_within(self.memory.addresses());
        Ok(SegmentWorker::new(registration))
    }

    /// Makes an LwLock, and returns its offset, which means the same in every process.
    ///
    /// # Errors
    /// [`NoRoom`](SegmentError::NoRoom).
    pub fn place_lwlock(
        &self,
        class: ClassNumber,
        fairness: LwLockFairnessVariant,
    ) -> Result<u64, SegmentError> {
        self.place(SegmentLwLock::idle(class, fairness))
    }

    /// Makes a mutex, and returns its offset.
    ///
    /// # Errors
    /// [`NoRoom`](SegmentError::NoRoom).
    pub fn place_mutex(&self, class: ClassNumber) -> Result<u64, SegmentError> {
        self.place(SegmentMutex::idle(class))
    }

    /// Makes a latch with shared, update and exclusive modes, and returns its offset.
    ///
    /// # Errors
    /// [`NoRoom`](SegmentError::NoRoom).
    pub fn place_rwlock(&self, class: ClassNumber) -> Result<u64, SegmentError> {
        self.place(SegmentRwLock::idle(class))
    }

    fn place<L: Placed>(&self, latch: L) -> Result<u64, SegmentError> {
        let offset = self.reserve(size_of::<L>(), align_of::<L>())?;
        let place = self.address_of(offset, size_of::<L>());
        let place = place.ok_or(SegmentError::NotThere)?;
        // SAFETY: bytes of that size and alignment that no other has.
        unsafe { place.cast().write(latch) };
        Ok(offset)
    }

    /// The LwLock at `offset`.
    ///
    /// # Errors
    /// [`NotThere`](SegmentError::NotThere) if none was made there.
    pub fn lwlock(&self, offset: u64) -> Result<&SegmentLwLock, SegmentError> {
        self.latch(offset)
    }

    /// The mutex at `offset`.
    ///
    /// # Errors
    /// [`NotThere`](SegmentError::NotThere) if none was made there.
    pub fn mutex(&self, offset: u64) -> Result<&SegmentMutex, SegmentError> {
        self.latch(offset)
    }

    /// The latch with shared, update and exclusive modes at `offset`.
    ///
    /// # Errors
    /// [`NotThere`](SegmentError::NotThere) if none was made there.
    pub fn rwlock(&self, offset: u64) -> Result<&SegmentRwLock, SegmentError> {
        self.latch(offset)
    }

    fn latch<L: Placed>(&self, offset: u64) -> Result<&L, SegmentError> {
        let place = self.address_of(offset, size_of::<L>());
        let place = place.ok_or(SegmentError::NotThere)?.cast::<L>();
        if !place.is_aligned() {
            return Err(SegmentError::NotThere);
        }
        // SAFETY: in the segment, and aligned; the kind is looked at before anything else, and is a word of any value.
        let latch: &L = unsafe { place.as_ref() };
        if latch.is_made() {
            Ok(latch)
        } else {
            Err(SegmentError::NotThere)
        }
    }

    /// Takes `size` bytes at a multiple of `alignment`, a power of two up to 128, for data of the program's own. Returns their
    /// offset. They are never given back.
    ///
    /// # Errors
    /// [`NoRoom`](SegmentError::NoRoom).
    pub fn reserve(&self, size: usize, alignment: usize) -> Result<u64, SegmentError> {
        self.memory.reserve(size, alignment)
    }

    /// The address, in this process, of `size` bytes at `offset`. `None` if they were not taken by
    /// [`reserve`](Self::reserve), or for a latch.
    pub fn address_of(&self, offset: u64, size: usize) -> Option<NonNull<u8>> {
        self.memory.address_of(offset, size)
    }

    /// True once a worker was found dead that held a latch or was changing one. Acquire.
    pub fn is_broken(&self) -> bool {
        self.memory.is_broken()
    }

    /// The processes that have workers and live, the caller's among them if it has one. After a break: those to be ended, by
    /// [`ProcessId::kill`], which ends no stranger that has got the number since.
    pub fn processes(&self) -> Vec<ProcessId> {
        self.memory.processes()
    }
}
