//! Latches between processes: in memory that processes share, and what the death of one of them means.
//!
//! They protect structures in shared memory of an engine of many processes, as PostgreSQL is one. Each has the words and the steps
//! of a latch for one process, over the machine [`Interprocess`]: futexes of all processes, worker slots in the segment, slot
//! numbers for links, offsets for latches. No instruction of a latch inside one process is different for it.
//!
//! | latch | is | bytes |
//! | --- | --- | --- |
//! | [`SegmentLwLock`] | an [`LwLock`](crate::LwLock) | 24 |
//! | [`SegmentMutex`] | an [`SrwMutex`](crate::SrwMutex) | 12 |
//! | [`SegmentRwLock`] | an [`SsuxLock`](crate::SsuxLock): shared, update, exclusive | 16 |
//!
//! # Example
//! The memory comes from the program: here an anonymous mapping as a `fork` shares it, otherwise a file that each process maps.
//!
//! ```
//! use std::alloc::{Layout, alloc_zeroed, dealloc};
//! use std::ptr::NonNull;
//! use clearway_latch::interprocess::{ClassNumber, Segment};
//! use clearway_latch::{LatchMode, LwLockFairnessVariant};
//!
//! let size = Segment::size_for(16, 4096);
//! let layout = Layout::from_size_align(size, 4096).unwrap();
//! // In a program of many processes: mmap with MAP_SHARED.
//! // SAFETY: the layout has a size that is not 0.
//! let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
//!
//! // SAFETY: the memory has that size and is zeros; it is given back when all that uses the segment has been dropped.
//! let segment = unsafe { Segment::create(memory, size, 16) }.unwrap();
//! let accounts = segment.place_lwlock(ClassNumber(1), LwLockFairnessVariant::Barging).unwrap();
//!
//! // In each process, and each of its threads; `accounts` is a number that another process can be told.
//! let worker = segment.register().unwrap();
//! let latch = segment.lwlock(accounts).unwrap();
//! let held = worker.exclusive(latch).unwrap();
//! assert!(worker.try_acquire(latch, LatchMode::Shared).is_ok_and(|taken| !taken));
//! drop(held);
//!
//! let page = segment.place_rwlock(ClassNumber(2)).unwrap();
//! let held = worker.update(segment.rwlock(page).unwrap()).unwrap();
//! drop(held.exclusive().unwrap());
//! let counter = segment.place_mutex(ClassNumber(3)).unwrap();
//! drop(worker.lock(segment.mutex(counter).unwrap()).unwrap());
//!
//! // After the death of a process, by a thread that takes no latch of the segment: one of its parent, say.
//! let report = segment.recover_dead().unwrap().unwrap();
//! assert_eq!((report.asleep, report.outside), (0, 0));
//! # drop(worker);
//! # drop(segment);
//! # // SAFETY: of that layout, and not used any more.
//! # unsafe { dealloc(memory.as_ptr(), layout) };
//! ```
//!
//! # A death, by what the process was doing
//! | it | its notes say | [`Segment::recover_dead`] |
//! | --- | --- | --- |
//! | used no latch | outside | gives its slots to the next |
//! | slept on a latch and held none | asleep | stands in for it (R12 of `lwlock`, H6 of the futex family): the wake-up that was meant for it goes to the next |
//! | held a latch | held | breaks the segment, and says which latches |
//! | polled for a latch, joined or left a list, released, woke others | changing | breaks the segment: whether it held the latch is not known |
//!
//! `recover_dead` is called by a thread that takes no latch of the segment, lest all that could find a death wait for the dead.
//! Until it is called, a dead holder holds, and a dead sleeper keeps the wake-up that reached it. So a supervisor
//! calls it for each child that has ended by a signal, and a program without one now and then.
//!
//! A broken segment stays broken: it is what PostgreSQL does when a backend dies of a signal. What the dead worker left half
//! changed is known to the engine alone, and its log repairs it in a segment that is made anew. Each acquisition that
//! begins from then on is an error, and a release leaves the latch as it is; workers that sleep or poll go on doing so, hence the supervisor ends the processes ([`Segment::processes`]) by a signal.
//!
//! # Why not repair and go on
//! As with a robust mutex of POSIX, the next taker could be told that the holder has died, and repair what the latch protects. Only
//! an engine whose every structure can be repaired from any half of a change has a use for that; one that has a log replays it
//! into a new segment. And a death inside the latch's own code would still be one that no taker can repair: the notes say that
//! the worker was changing the latch, not how far it had come.
//!
//! # Rules, besides those of the latches and of the machine (P1 to P7)
//! - S1: a worker notes a latch before it uses it, and that it holds it before the use ends; so the death of a holder is found
//!   although the latch's word does not say who holds it.
//! - S2: deaths are settled by one process at a time, which first looks whether any dead worker held or changed a latch. If so,
//!   no list can be trusted, and none is touched.
//! - S3: standing in for a sleeper takes the list's lock by one attempt. If that fails, or a waker is about to post the dead
//!   worker, all deaths are looked at again: the one that has the lock or the post to make may be dead by then. The latches of
//!   the futex family have no list, and the kernel forgets a sleeper that ends: what the dead worker has counted in the word, by
//!   the mode and the half that its notes say (P4), is taken back by one step.
//! - S4: the LwLocks are of the variant `single-cas`: under `queued` a worker may sleep that holds the latch already.
//!
//! # Limits
//! - A latch that keeps an address or parks by one cannot be here: the hybrid latch, the biased latches, and a latch with a
//!   pointer to its class. A class is a number here, which each process gives a meaning ([`ClassNumber::set`]).
//! - A [`SegmentMutex`] has no condition variable, and a [`SegmentRwLock`] no recursion.
//! - A process is attached to one segment at a time; a worker holds at most 200 latches.
//! - Processes are of one PID namespace and one time namespace, which `register` checks as far as /proc tells, and from builds of
//!   one version with the same features.
//! - A process with workers does not `exec`: it keeps its identity, so its workers would live for ever.
//!
//! # Costs
//! 12 to 24 bytes a latch; 1,792 bytes a worker. Beside the latch's own instructions an acquisition and a release write eight words
//! of the worker's own notes, without a fence.

mod class;
mod lwlock;
mod mutex;
mod placed;
mod recovery;
mod rwlock;
mod segment;
#[cfg(test)]
mod testing;
mod worker;

pub use clearway_machine::{HeldLatch, Interprocess, ProcessId, SegmentError, SegmentMode};

pub use self::class::ClassNumber;
pub use self::lwlock::SegmentLwLock;
pub use self::mutex::{SegmentMutex, SegmentMutexGuard};
pub use self::recovery::{DeadHolder, RecoveryReport};
pub use self::rwlock::{SegmentRwExclusive, SegmentRwLock, SegmentRwShared, SegmentRwUpdate};
pub use self::segment::Segment;
pub use self::worker::{SegmentExclusive, SegmentShared, SegmentWorker};
