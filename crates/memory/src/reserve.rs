//! Memory of the program's own, for what the operating system refuses.
//!
//! A map has a bit for each granule of 256 bytes; a block is a run of them. Blocks are found from the lowest free granule
//! on, so blocks that were given back are used again. One lock guards the map: only who was refused by the system comes
//! here, and each change takes microseconds.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard};

/// The size of the reserve, 64 MiB ([why](crate#the-size-of-the-reserve)).
pub const RESERVE_BYTES: usize = 64 << 20;

const GRANULE: usize = 256;
const GRANULES: usize = RESERVE_BYTES / GRANULE;
const WORDS: usize = GRANULES / 64;

/// The most that a block can be aligned to.
const ALIGN_MAX: usize = 4096;

#[repr(C, align(4096))]
struct Area(UnsafeCell<[u8; RESERVE_BYTES]>);

// SAFETY: nothing here reads or writes the bytes; blocks of it have one owner each, by the map.
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new([0; RESERVE_BYTES]));

static MAP: Mutex<Map<WORDS>> = Mutex::new(Map::new());

fn map() -> MutexGuard<'static, Map<WORDS>> {
    MAP.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A block of the reserve; null if it has none of that size. Its bytes are of any value.
pub(crate) fn take(layout: Layout) -> *mut u8 {
    if layout.align() > ALIGN_MAX || layout.size() > RESERVE_BYTES {
        return std::ptr::null_mut();
    }
    let granules = granules(layout.size());
    let step = layout.align().div_ceil(GRANULE);
    match map().take(granules, step) {
        // SAFETY: the map's granules are those of the area.
        Some(first) => unsafe { AREA.0.get().cast::<u8>().add(first * GRANULE) },
        None => std::ptr::null_mut(),
    }
}

/// True if the block is one of the reserve.
#[inline(always)]
pub(crate) fn has(block: *mut u8) -> bool {
    (block as usize).wrapping_sub(AREA.0.get() as usize) < RESERVE_BYTES
}

/// Gives a block of the reserve back.
pub(crate) fn give(block: *mut u8, size: usize) {
    let first = (block as usize - AREA.0.get() as usize) / GRANULE;
    map().give(first, granules(size));
}

/// Bytes of the reserve that are in use.
pub(crate) fn used() -> usize {
    map().used * GRANULE
}

fn granules(size: usize) -> usize {
    size.div_ceil(GRANULE).max(1)
}

/// The granules that are taken.
struct Map<const N: usize> {
    words: [u64; N],
    /// No granule below is free.
    lowest: usize,
    used: usize,
}

impl<const N: usize> Map<N> {
    const fn new() -> Self {
        Map {
            words: [0; N],
            lowest: 0,
            used: 0,
        }
    }

    /// Takes `count` granules in a row, the first one at a multiple of `step`.
    fn take(&mut self, count: usize, step: usize) -> Option<usize> {
        let mut first = self.lowest.next_multiple_of(step);
        loop {
            if first + count > N * 64 {
                return None;
            }
            match self.first_taken(first, count) {
                None => break,
                Some(taken) => first = self.first_free(taken).next_multiple_of(step),
            }
        }
        for granule in first..first + count {
            self.words[granule / 64] |= 1 << (granule % 64);
        }
        self.used += count;
        if first == self.lowest {
            self.lowest = self.first_free(first + count);
        }
        Some(first)
    }

    /// Gives back granules that were taken.
    fn give(&mut self, first: usize, count: usize) {
        for granule in first..first + count {
            let bit = 1 << (granule % 64);
            // No assertion in an allocator: it must not unwind.
            #[cfg(test)]
            assert!(
                self.words[granule / 64] & bit != 0,
                "a granule is given back twice"
            );
            self.words[granule / 64] &= !bit;
        }
        self.used -= count;
        self.lowest = self.lowest.min(first);
    }

    /// The first taken one of `count` granules.
    fn first_taken(&self, first: usize, count: usize) -> Option<usize> {
        self.first_from(first, |word| word)
            .filter(|taken| *taken < first + count)
    }

    /// The first free granule from `first` on; that behind the last if there is none.
    fn first_free(&self, first: usize) -> usize {
        self.first_from(first, |word| !word).unwrap_or(N * 64)
    }

    /// The first granule from `first` on whose bit is set in what `of` makes of its word.
    fn first_from(&self, first: usize, of: impl Fn(u64) -> u64) -> Option<usize> {
        let mut at = first / 64;
        let mut word = of(*self.words.get(at)?) & (u64::MAX << (first % 64));
        loop {
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            at += 1;
            word = of(*self.words.get(at)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Blocks never overlap, lie where their alignment wants them, and fill the map to its last granule once all
        /// are given back.
        #[test]
        fn blocks_have_one_owner(steps in prop::collection::vec((1usize..200, 0u32..5, any::<prop::sample::Index>(), any::<bool>()), 1..200)) {
            let mut map = Map::<16>::new();
            let mut held: Vec<(usize, usize)> = Vec::new();
            for (count, align, index, gives) in steps {
                if gives && !held.is_empty() {
                    let (first, count) = held.swap_remove(index.index(held.len()));
                    map.give(first, count);
                    continue;
                }
                let step = 1 << align;
                let taken = map.take(count, step);
                let free = |first: usize| held.iter().all(|(other, length)| first + count <= *other || other + length <= first);
                match taken {
                    Some(first) => {
                        prop_assert!(first % step == 0 && first + count <= 16 * 64 && free(first));
                        held.push((first, count));
                    }
                    None => {
                        let mut places = (0..(16 * 64usize).saturating_sub(count - 1)).step_by(step);
                        prop_assert!(!places.any(free), "{count} granules were free");
                    }
                }
                prop_assert_eq!(map.used, held.iter().map(|(_, count)| count).sum::<usize>());
            }
            for (first, count) in held {
                map.give(first, count);
            }
            prop_assert_eq!(map.take(16 * 64, 1), Some(0));
            prop_assert_eq!(map.take(1, 1), None);
        }
    }

    #[test]
    fn what_is_too_large_or_aligned_too_far_is_not_there() {
        let none = |size, align| take(Layout::from_size_align(size, align).unwrap()).is_null();
        assert!(none(RESERVE_BYTES + 1, 1) && none(1, 2 * ALIGN_MAX));
        let block = take(Layout::from_size_align(1000, 4096).unwrap());
        assert!(has(block) && block.addr().is_multiple_of(4096));
        assert!(!has(std::ptr::null_mut()) && !has((&raw const MAP).cast_mut().cast()));
        let before = used();
        give(block, 1000);
        assert!(used() < before);
    }
}
