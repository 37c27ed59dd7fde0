//! The counters, by latch and call site.
//!
//! A table of a fixed size in the library's own zeros, of which the system gives only the pages that are touched: a counter is made
//! inside of a lock call, where nothing may be allocated (L2).
//!
//! # Rules
//! - T1. A row belongs to a latch once its `latch` is changed from 0, and to a call site once its `site` is. Both change once;
//!   a child of a fork begins with none.
//! - T2. A search goes on past a row of its latch whose site is another one, and takes a row of its latch without a site by the
//!   same change as the row's maker. So it waits for no other thread, and no latch and site have two rows.
//! - T3. A search that finds no room in [`PROBES`] rows counts in [`OTHERS`].

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use super::Mode;

/// Rows; a power of two.
pub(super) const ROWS: usize = 1 << 14;

/// Rows that a search looks at.
const PROBES: usize = 128;

/// Bucket `i` of a histogram counts waits of 2^i to 2^(i+1) nanoseconds; the last one also longer waits.
pub(super) const BUCKETS: usize = 40;

/// Acquisitions of one latch by one call site.
pub(super) struct Row {
    latch: AtomicUsize,
    site: AtomicUsize,
    mode: AtomicU8,
    pub(super) acquisitions: AtomicU64,
    pub(super) contended: AtomicU64,
    pub(super) waited_ns: AtomicU64,
    pub(super) wait_ns_max: AtomicU64,
    pub(super) hold_ns_max: AtomicU64,
    waits: [AtomicU32; BUCKETS],
}

static TABLE: [Row; ROWS] = [const { Row::new() }; ROWS];

/// Acquisitions for which the table had no room.
static OTHERS: Row = Row::new();

impl Row {
    const fn new() -> Self {
        Self {
            latch: AtomicUsize::new(0),
            site: AtomicUsize::new(0),
            mode: AtomicU8::new(0),
            acquisitions: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            wait_ns_max: AtomicU64::new(0),
            hold_ns_max: AtomicU64::new(0),
            waits: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }

    fn forget(&self) {
        let Self {
            latch,
            site,
            mode,
            acquisitions,
            contended,
            waited_ns,
            wait_ns_max,
            hold_ns_max,
            waits,
        } = self;
        latch.store(0, Relaxed);
        site.store(0, Relaxed);
        mode.store(0, Relaxed);
        for count in [acquisitions, contended, waited_ns, wait_ns_max, hold_ns_max] {
            count.store(0, Relaxed);
        }
        for count in waits {
            count.store(0, Relaxed);
        }
    }

    /// Address of the latch; 0 for what had no room.
    pub(super) fn latch(&self) -> usize {
        self.latch.load(Relaxed)
    }

    /// Address that the calls return to.
    pub(super) fn site(&self) -> usize {
        self.site.load(Relaxed)
    }

    pub(super) fn mode(&self) -> &'static str {
        match self.mode.load(Relaxed) {
            mode if mode == Mode::Mutex as u8 => "mutex",
            mode if mode == Mode::Read as u8 => "read",
            mode if mode == Mode::Write as u8 => "write",
            mode if mode == Mode::Spin as u8 => "spin",
            _ => "",
        }
    }

    /// T2. True if the row is that of `latch` and `site`.
    fn is_of(&self, latch: usize, site: usize) -> bool {
        let claimed = |word: &AtomicUsize, value| match word.load(Relaxed) {
            // T1.
            0 => match word.compare_exchange(0, value, Relaxed, Relaxed) {
                Ok(_) => true,
                Err(found) => found == value,
            },
            found => found == value,
        };
        claimed(&self.latch, latch) && claimed(&self.site, site)
    }

    /// Counts an acquisition, which has `waited` so many nanoseconds if another thread had the latch.
    pub(super) fn count(&self, waited: Option<u64>) {
        self.acquisitions.fetch_add(1, Relaxed);
        if let Some(waited) = waited {
            self.contended.fetch_add(1, Relaxed);
            self.waited_ns.fetch_add(waited, Relaxed);
            self.wait_ns_max.fetch_max(waited, Relaxed);
            let bucket = (63 - (waited | 1).leading_zeros() as usize).min(BUCKETS - 1);
            self.waits[bucket].fetch_add(1, Relaxed);
        }
    }

    /// The time in nanoseconds that `share` of the waits, a fraction of 100, did not exceed: the end of a bucket, or the
    /// longest wait if that is shorter.
    pub(super) fn wait_ns_at(&self, share: u64) -> u64 {
        let longest = self.wait_ns_max.load(Relaxed);
        let all: u64 = self
            .waits
            .iter()
            .map(|count| u64::from(count.load(Relaxed)))
            .sum();
        let wanted = (all * share).div_ceil(100).max(1);
        let mut counted = 0;
        for (bucket, count) in self.waits.iter().enumerate() {
            counted += u64::from(count.load(Relaxed));
            if counted >= wanted {
                return ((2 << bucket) - 1).min(longest);
            }
        }
        longest
    }
}

/// The row of `latch` and `site`.
pub(super) fn row(latch: usize, site: usize, mode: Mode) -> &'static Row {
    // Fibonacci hashing: the high bits of the product depend on all bits of both.
    let hash =
        ((latch >> 3) as u64 ^ (site as u64).rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let found = (0..PROBES)
        .map(|step| &TABLE[(hash as usize + step) & (ROWS - 1)])
        .find(|row| row.is_of(latch, site));
    match found {
        Some(row) => {
            row.mode.store(mode as u8, Relaxed);
            row
        }
        None => &OTHERS,
    }
}

/// Forgets all rows.
pub(super) fn forget() {
    // A look leaves a page that was never written as it is.
    for row in TABLE.iter().filter(|row| row.latch() != 0) {
        row.forget();
    }
    OTHERS.forget();
}

/// All rows that have counted something.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    let all = TABLE.iter().chain(core::iter::once(&OTHERS));
    all.filter(|row| row.acquisitions.load(Relaxed) > 0)
}
