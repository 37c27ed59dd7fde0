//! The frames that one big scan, or one bulk write, uses in turn.
//!
//! Protects: nothing. An entry says which frame the scan used a while ago; what makes it safe to use the frame again is
//! its claim, as for the clock.
//!
//! # Why
//! A pool of 8,192 frames holds the accounts that all sessions use. Alice counts the rows of a table of 100,000 pages.
//!
//! | | the clock alone | with a ring of 32 frames |
//! | --- | --- | --- |
//! | the first pages | lower the usage of all frames, and then take those with usage 0 | the same, for 32 frames |
//! | the next pages | take all other frames that are not used again in time | take the 32 frames again and again |
//! | afterwards | the pool holds the end of Alice's table, which no session needs | the pool holds the accounts |
//!
//! # Steps of a worker that needs a frame for its ring
//! 1. While the pool has frames that were never used, the clock gives the frame: no page gives way to it.
//! 2. Otherwise claim the ring's oldest frame, and take it as a frame that the clock has offered: F1 and F2 hold. If
//!    they do not, or if another worker interferes, the clock gives the frame.
//! 3. The frame is in the oldest one's place from now on. The frame that was there belongs to the pool.
//!
//! # Invariants
//! - F1: a ring takes a frame only if it is unpinned and has usage 0: then the clock could take it, too. A page that
//!   another worker has used stays in memory, and its frame leaves the ring.
//! - F2: a scan takes no dirty frame, so no reader writes pages or waits for the log because of its ring. A bulk write
//!   has made its frames dirty itself, and writes their pages out before it takes them (B3).
//! - F3: a pin through a ring does not count as a use. It raises the usage, as each pin does, and lowers it again. So the
//!   usage of a page that only a ring has used is 0. A page whose usage was the highest, 5, has 4 after a scan.
//!
//! Costs: 4 bytes a frame of the ring, in the session's own memory; a second atomic step for each pin through the ring,
//! on the line that the pin has just written.
//!
//! Two scans of one table do not share their frames, and do not begin where the other one is.
//!
//! Origin: the buffer access strategies of PostgreSQL 8.3 (2008).

/// The most frames of a scan's ring: 256 KiB, which stay in the cache of a core.
const SCAN_FRAMES: usize = 32;
/// The most frames of a bulk write's ring: 16 MiB. Each round of the ring waits for the log once or more.
const WRITE_FRAMES: usize = 2_048;
/// Divisor of the pool's frames for the most frames of a ring.
const PART_OF_POOL: usize = 8;
/// Divisor of the pool's frames: a scan has a ring if its table has more pages than that.
const BIG_PART: usize = 4;

/// The frames that one scan, or one bulk write, uses in turn.
#[derive(Debug)]
pub struct FrameRing {
    /// Frames, the oldest at `oldest` once there are `size`.
    frames: Vec<u32>,
    oldest: usize,
    size: usize,
    writes: bool,
}

impl FrameRing {
    /// A ring for a scan of `pages` pages in a pool of `frames` frames, if the table is big.
    pub(super) fn for_scan(pages: u32, frames: usize) -> Option<Self> {
        (pages as usize > frames / BIG_PART).then(|| Self::new(SCAN_FRAMES, frames, false))
    }

    /// A ring for a bulk write in a pool of `frames` frames.
    pub(super) fn for_writing(frames: usize) -> Self {
        Self::new(WRITE_FRAMES, frames, true)
    }

    fn new(most: usize, frames: usize, writes: bool) -> Self {
        Self {
            frames: Vec::new(),
            oldest: 0,
            size: most.min(frames / PART_OF_POOL).max(1),
            writes,
        }
    }

    /// The frame that was used longest ago, once the ring is full.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.frames.len() == self.size).then(|| self.frames[self.oldest])
    }

    /// True if the ring's user changes the pages.
    pub(super) fn writes(&self) -> bool {
        self.writes
    }

    /// Step 3.
    pub(super) fn put(&mut self, number: u32) {
        if self.frames.len() < self.size {
            self.frames.push(number);
            return;
        }
        self.frames[self.oldest] = number;
        self.oldest = (self.oldest + 1) % self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_frame_is_replaced() {
        let mut ring = FrameRing::new(3, 64, false);
        for number in [7, 8] {
            ring.put(number);
            assert_eq!(ring.oldest(), None, "it is not full");
        }
        ring.put(9);
        for (oldest, number) in [(7, 1), (8, 2), (9, 3), (1, 4)] {
            assert_eq!(ring.oldest(), Some(oldest));
            ring.put(number);
        }
    }

    #[test]
    fn only_a_big_table_has_a_ring() {
        assert!(FrameRing::for_scan(1_000, 4_000).is_none());
        let ring = FrameRing::for_scan(1_001, 4_000).unwrap();
        assert_eq!((ring.size, ring.writes()), (SCAN_FRAMES, false));
        // A small pool is not used up by rings.
        assert_eq!(FrameRing::for_scan(1_000, 64).unwrap().size, 8);
        assert_eq!(FrameRing::for_writing(64).size, 8);
        assert_eq!(FrameRing::for_writing(1 << 20).size, WRITE_FRAMES);
    }
}
