//! A table of entries by number, which grows by whole segments.
//!
//! The first segment is made with the table; most programs never need another. Segment k, from 0, has the numbers from
//! `first << k` up to the next segment's, or up to the limit, so that each doubles the table:
//!
//! ```text
//! first = 4, limit = 20      0 1 2 3 │ 4 5 6 7 │ 8 … 15 │ 16 … 19
//!                            made    │ k = 0   │ k = 1  │ k = 2     each made at the first need of one of its numbers
//! ```
//!
//! # Rules
//! - G1: an entry stays where it is from its making until the table is dropped. So a reference to it lives as long as one
//!   to the table, whatever grows meanwhile.
//! - G2: a segment's pointer changes once, from null, by a CAS. A worker whose CAS fails drops the segment that it has made,
//!   which no other worker has seen, and takes the one that is there.
//! - G3: a worker that finds a segment sees its entries made: the CAS is a Release, each look at the pointer an Acquire.
//! - G4: a lookup waits for no other worker, and neither does one that makes a segment.
//!
//! # Why the simpler version is wrong
//! A vector that is copied into a larger one moves its entries, while sleepers are linked by them and pollers look at
//! them. Behind a latch for readers and writers each lookup would pay for growth that happens ten times in a program.
//!
//! # Costs
//! A number of the first segment: a bounds check. A later one: a call, a division, a binary logarithm, and loads that depend
//! on each other. Workers that need a segment at once each make it, and all but one drop theirs. Not measured.
//!
//! # Origin
//! Segments that double: Dechev, Pirkelbauer and Stroustrup, Lock-Free Dynamically Resizable Arrays, OPODIS 2006.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
#[cfg(feature = "std")]
use core::ptr;
#[cfg(feature = "std")]
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::Machine;
#[cfg(feature = "std")]
use crate::{AtomicPointer, WorkerId};

/// Entries that are there from the start.
#[derive(Debug)]
pub(crate) enum Entries<T: 'static> {
    #[cfg(feature = "std")]
    Owned(Box<[T]>),
    Static(&'static [T]),
}

impl<T> Deref for Entries<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            #[cfg(feature = "std")]
            Entries::Owned(entries) => entries,
            Entries::Static(entries) => entries,
        }
    }
}

/// Entries by number, from 0 up. See the module for its rules.
pub struct GrowingTable<M: Machine, T: 'static> {
    first: Entries<T>,
    /// `None` in a table that does not grow.
    #[cfg(feature = "std")]
    later: Option<Box<Later<M, T>>>,
    machine: PhantomData<fn() -> M>,
}

/// The segments after the first one.
#[cfg(feature = "std")]
struct Later<M: Machine, T: 'static> {
    first: usize,
    limit: usize,
    make: Box<dyn Fn(usize) -> T + Send + Sync>,
    /// By segment: null, or its first entry, in a box of as many as `length` says.
    segments: Box<[M::Ptr<T>]>,
}

#[cfg(feature = "std")]
impl<M: Machine, T: 'static> Later<M, T> {
    /// The segment of `number`, which is not of the first one.
    fn segment_of(&self, number: usize) -> usize {
        (number / self.first).ilog2() as usize
    }

    /// The first number of a segment.
    fn start(&self, segment: usize) -> usize {
        self.first << segment
    }

    fn length(&self, segment: usize) -> usize {
        let start = self.start(segment);
        start.min(self.limit - start)
    }

    /// The entries of a segment; `None` if it is not made yet, or there is none such.
    fn segment(&self, segment: usize) -> Option<&[T]> {
        // Acquire: pairs with the Release in `make_segment` (G3).
        let entries = self.segments.get(segment)?.load(Acquire);
        // SAFETY: a pointer that is not null is to as many entries, made before it was stored, which stay (G1).
        (!entries.is_null()).then(|| unsafe { core::slice::from_raw_parts(entries, self.length(segment)) })
    }

    /// The entries of a segment, made if they are not there. `None` without memory for them.
    #[cold]
    fn make_segment(&self, segment: usize) -> Option<&[T]> {
        if let Some(made) = self.segment(segment) {
            return Some(made);
        }
        let (start, length) = (self.start(segment), self.length(segment));
        let mut made = Vec::new();
        made.try_reserve_exact(length).ok()?;
        made.extend((start..start + length).map(&self.make));
        let made = Box::into_raw(made.into_boxed_slice());
        // Release: pairs with the Acquire in `segment` (G3). Acquire: for what `segment` finds below.
        let found = self.segments[segment].compare_exchange(ptr::null_mut(), made.cast(), AcqRel, Acquire);
        if found.is_err() {
            // SAFETY: from `into_raw` above, and seen by no other worker (G2).
            drop(unsafe { Box::from_raw(made) });
        }
        self.segment(segment)
    }
}

#[cfg(feature = "std")]
impl<M: Machine, T: 'static> Drop for Later<M, T> {
    fn drop(&mut self) {
        for (segment, place) in self.segments.iter().enumerate() {
            let entries = place.load(Relaxed);
            if !entries.is_null() {
                let entries = ptr::slice_from_raw_parts_mut(entries, self.length(segment));
                // SAFETY: from the `into_raw` of a box of as many entries, and dropped here only.
                drop(unsafe { Box::from_raw(entries) });
            }
        }
    }
}

impl<M: Machine, T: 'static> GrowingTable<M, T> {
    /// A table of `entries`, which does not grow.
    pub(crate) const fn of_static(entries: &'static [T]) -> Self {
        Self {
            first: Entries::Static(entries),
            #[cfg(feature = "std")]
            later: None,
            machine: PhantomData,
        }
    }

    /// A table of `length` entries, which does not grow.
    #[cfg(feature = "std")]
    pub fn fixed(length: usize, make: impl Fn(usize) -> T) -> Self {
        Self {
            first: Entries::Owned((0..length).map(make).collect()),
            later: None,
            machine: PhantomData,
        }
    }

    /// A table that has `first` entries at once, and at most `limit`. `make` makes the entry of a number; where workers
    /// need a segment at the same time, more than once.
    ///
    /// # Panics
    /// If `first` is 0.
    #[cfg(feature = "std")]
    pub fn growing(first: usize, limit: usize, make: impl Fn(usize) -> T + Send + Sync + 'static) -> Self
    where
        T: Send + Sync,
    {
        if limit <= first {
            return Self::fixed(limit, make);
        }
        assert!(first > 0, "a table that grows has a first entry");
        let segments = ((limit - 1) / first).ilog2() as usize + 1;
        Self {
            first: Entries::Owned((0..first).map(&make).collect()),
            later: Some(Box::new(Later {
                first,
                limit,
                make: Box::new(make),
                segments: (0..segments).map(|_| M::Ptr::new(ptr::null_mut())).collect(),
            })),
            machine: PhantomData,
        }
    }

    /// A table with an entry for each worker of the machine, which grows as the [`Workers`](crate::Workers) do.
    #[cfg(feature = "std")]
    pub fn by_worker(make: impl Fn(WorkerId) -> T + Send + Sync + 'static) -> Self
    where
        T: Send + Sync,
    {
        let workers = M::workers();
        let make = move |number| make(WorkerId(number as u32));
        Self::growing(workers.capacity_at_first(), workers.capacity(), make)
    }

    /// Entries that are there from the start.
    pub(crate) fn first_length(&self) -> usize {
        self.first.len()
    }

    /// The numbers of entries are below this.
    pub fn limit(&self) -> usize {
        #[cfg(feature = "std")]
        if let Some(later) = &self.later {
            return later.limit;
        }
        self.first.len()
    }

    /// The entry of `number`, if its segment is made.
    #[inline]
    pub fn find(&self, number: usize) -> Option<&T> {
        match self.first.get(number) {
            Some(entry) => Some(entry),
            None => self.find_later(number),
        }
    }

    #[cold]
    fn find_later(&self, number: usize) -> Option<&T> {
        #[cfg(feature = "std")]
        if let Some(later) = &self.later {
            let segment = later.segment_of(number);
            return later.segment(segment)?.get(number - later.start(segment));
        }
        let _ = number;
        None
    }

    /// The entry of `number`, whose segment is made if it is not there.
    ///
    /// # Panics
    /// If `number` is not below [`limit`](Self::limit). Without memory for the segment the process ends, as everywhere
    /// that a box is made.
    #[cfg(feature = "std")]
    #[inline]
    pub fn get(&self, number: usize) -> &T {
        match self.first.get(number) {
            Some(entry) => entry,
            None => self.get_later(number),
        }
    }

    #[cfg(feature = "std")]
    #[cold]
    fn get_later(&self, number: usize) -> &T {
        let limit = self.limit();
        assert!(number < limit, "number {number} in a table of {limit} at most");
        let later = self.later.as_ref().expect("numbers beyond the first segment");
        let segment = later.segment_of(number);
        match later.make_segment(segment) {
            Some(entries) => &entries[number - later.start(segment)],
            None => {
                let entries = later.length(segment);
                let layout = core::alloc::Layout::array::<T>(entries);
                std::alloc::handle_alloc_error(layout.unwrap_or(core::alloc::Layout::new::<T>()))
            }
        }
    }

    /// Makes the segment with this number, from 0, and returns the number of its entries. `None` if there is none such,
    /// or no memory for it.
    #[cfg(feature = "std")]
    pub(crate) fn add_segment(&self, segment: usize) -> Option<usize> {
        let later = self
            .later
            .as_ref()
            .filter(|later| segment < later.segments.len())?;
        later.make_segment(segment).map(<[T]>::len)
    }

    #[cfg(not(feature = "std"))]
    pub(crate) fn add_segment(&self, _segment: usize) -> Option<usize> {
        None
    }

    #[cfg(feature = "std")]
    fn later_segments(&self) -> impl Iterator<Item = (usize, &[T])> {
        self.later.iter().flat_map(|later| {
            (0..later.segments.len())
                .filter_map(|segment| Some((later.start(segment), later.segment(segment)?)))
        })
    }

    #[cfg(not(feature = "std"))]
    fn later_segments(&self) -> impl Iterator<Item = (usize, &[T])> {
        core::iter::empty()
    }

    /// The entries below the number `end` whose segments are made, with their numbers.
    pub fn below(&self, end: usize) -> impl Iterator<Item = (usize, &T)> {
        let segments = core::iter::once((0, &*self.first)).chain(self.later_segments());
        segments
            .flat_map(|(start, entries)| {
                let numbered = entries.iter().enumerate();
                numbered.map(move |(offset, entry)| (start + offset, entry))
            })
            .take_while(move |(number, _)| *number < end)
    }
}

impl<M: Machine, T: 'static> fmt::Debug for GrowingTable<M, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GrowingTable")
            .field("first", &self.first.len())
            .field("limit", &self.limit())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use core::sync::atomic::AtomicUsize;

    use super::*;
    use crate::Native;

    #[test]
    fn each_number_has_one_entry_at_any_first_length_and_limit() {
        for first in 1..=5 {
            for limit in 0..=40 {
                let table = GrowingTable::<Native, usize>::growing(first, limit, |number| number);
                assert_eq!(table.limit(), limit);
                assert_eq!(table.below(usize::MAX).count(), first.min(limit));
                // From the last one, so that segments are made out of order.
                for number in (0..limit).rev() {
                    assert_eq!(*table.get(number), number, "first {first}, limit {limit}");
                    assert!(core::ptr::eq(table.find(number).unwrap(), table.get(number)));
                }
                for end in 0..=limit + 1 {
                    let numbers: Vec<_> = table.below(end).collect();
                    assert!(numbers.iter().all(|(number, entry)| number == *entry));
                    assert_eq!(numbers.len(), end.min(limit));
                }
                assert_eq!(table.find(limit), None);
                assert_eq!(table.find(usize::MAX), None);
            }
        }
    }

    #[test]
    fn a_segment_is_made_at_the_first_need_and_stays() {
        let table = GrowingTable::<Native, String>::growing(2, 100, |number| number.to_string());
        assert_eq!(table.find(5), None);
        let (first, later) = (table.get(1), table.get(5));
        assert_eq!(
            table.below(100).map(|(number, _)| number).collect::<Vec<_>>(),
            [0, 1, 4, 5, 6, 7]
        );
        for number in 0..100 {
            table.get(number);
        }
        assert!(core::ptr::eq(first, table.get(1)) && core::ptr::eq(later, table.get(5)));
        assert_eq!(later, "5");
    }

    #[test]
    fn workers_that_need_segments_at_once_leak_none() {
        static ALIVE: AtomicUsize = AtomicUsize::new(0);
        struct Counted(usize);
        impl Counted {
            fn new(number: usize) -> Self {
                ALIVE.fetch_add(1, Relaxed);
                Self(number)
            }
        }
        impl Drop for Counted {
            fn drop(&mut self) {
                ALIVE.fetch_sub(1, Relaxed);
            }
        }
        for _ in 0..100 {
            let table = GrowingTable::<Native, Counted>::growing(1, 1 << 10, Counted::new);
            let together = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        together.wait();
                        (0..1 << 10).for_each(|number| assert_eq!(table.get(number).0, number));
                    });
                }
            });
            assert_eq!(ALIVE.load(Relaxed), 1 << 10);
            drop(table);
            assert_eq!(ALIVE.load(Relaxed), 0);
        }
    }

    #[test]
    #[should_panic(expected = "number 100 in a table of 100 at most")]
    fn a_number_beyond_the_limit_is_a_mistake_of_the_caller() {
        GrowingTable::<Native, usize>::growing(2, 100, |number| number).get(100);
    }
}
