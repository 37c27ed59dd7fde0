//! One measurement: some threads and one lock for a short time (P2 to P4).

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clearway_machine::{Native, Padded};
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::section::Section;

/// The data behind a lock: a write adds one to both words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pair(pub [u64; 2]);

/// A lock with a [`Pair`] behind it. A mutex reads and writes alike.
pub trait Lock: Sync {
    /// A free one.
    fn idle() -> Self;
    /// Runs `look` while the lock is held in the mode for readers.
    fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R;
    /// Runs `change` while the lock is held exclusively.
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R;
}

/// Threads, section and share of reads.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Number of threads.
    pub threads: usize,
    /// The work while the lock is held.
    pub section: Section,
    /// Share of reads, in percent, at most 100.
    pub reads_percent: u32,
    /// Time of the measurement.
    pub duration: Duration,
    /// Seed of the choice between reads and writes.
    pub seed: u64,
}

/// The figures of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Acquisitions a second, of all threads.
    pub rate: f64,
    /// CPU time of an acquisition, nanoseconds: of all threads, over all acquisitions.
    pub cpu_ns: f64,
    /// Readers' time to acquire, if there were reads.
    pub read: Option<Tail>,
    /// Writers' time to acquire, if there were writes.
    pub write: Option<Tail>,
}

/// The long times to acquire of one mode, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile; with less than 1,000 times the longest.
    pub p999_ns: u64,
}

/// The lock did not exclude.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum NotExcluded {
    /// A reader saw a write half done.
    #[error("a reader saw {0} and {1} where both must be equal")]
    Torn(u64, u64),
    /// A write is missing at the end.
    #[error("{wrote} writes were made, and the data shows {shown}")]
    Lost {
        /// Writes that were made.
        wrote: u64,
        /// Writes that the data shows.
        shown: u64,
    },
}

/// The longest time that a histogram tells from longer ones.
const LONGEST_NS: u64 = 60_000_000_000;

/// Times to acquire in one mode, of one thread or of all.
struct Times {
    acquisitions: u64,
    /// Acquisitions for one that is timed (P4).
    period: u64,
    histogram: Histogram<u64>,
}

impl Times {
    fn of_mode(percent: u32) -> Self {
        Self {
            acquisitions: 0,
            period: (64 * u64::from(percent) / 100).max(1),
            histogram: Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("constant bounds that fit"),
        }
    }

    /// Counts an acquisition; `true`: it is timed.
    #[inline]
    fn next_is_timed(&mut self) -> bool {
        self.acquisitions += 1;
        self.acquisitions.is_multiple_of(self.period)
    }

    fn note(&mut self, time: Duration) {
        self.histogram.saturating_record(time.as_nanos() as u64);
    }

    fn add(&mut self, other: &Self) {
        self.acquisitions += other.acquisitions;
        // Equal bounds: nothing is out of range.
        let _ = self.histogram.add(&other.histogram);
    }

    fn tail(&self) -> Option<Tail> {
        (!self.histogram.is_empty()).then(|| Tail {
            p99_ns: self.histogram.value_at_quantile(0.99),
            p999_ns: self.histogram.value_at_quantile(0.999),
        })
    }
}

/// One thread's part.
struct Part {
    /// By the thread's own clock: with few CPUs it runs before the thread that has started it runs on.
    started: Instant,
    ended: Instant,
    cpu_time: Duration,
    read: Times,
    write: Times,
    torn: Option<NotExcluded>,
}

/// Measures a lock that is made for this measurement.
///
/// # Errors
/// The lock did not exclude.
pub fn measure<L: Lock>(point: &Point) -> Result<Figures, NotExcluded> {
    // On cache lines of their own: the flag is read in every turn.
    let (lock, stop) = (Padded(L::idle()), Padded(AtomicBool::new(false)));
    let start = Barrier::new(point.threads + 1);
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..point.threads)
            .map(|number| {
                let (lock, stop, start) = (&lock.0, &stop.0, &start);
                scope.spawn(move || {
                    start.wait();
                    run(point, lock, point.seed.wrapping_add(number as u64), stop)
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(point.duration);
        stop.store(true, Relaxed);
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let started = parts.iter().map(|part| part.started).min();
    let ended = parts.iter().map(|part| part.ended).max();
    let elapsed = started
        .zip(ended)
        .map_or(Duration::ZERO, |(started, ended)| ended - started);
    let cpu_time: Duration = parts.iter().map(|part| part.cpu_time).sum();
    let (mut read, mut write) = (Times::of_mode(0), Times::of_mode(0));
    for part in parts {
        if let Some(torn) = part.torn {
            return Err(torn);
        }
        read.add(&part.read);
        write.add(&part.write);
    }
    let (wrote, shown) = (write.acquisitions, lock.0.read(|pair| pair.0[0]));
    if wrote != shown {
        return Err(NotExcluded::Lost { wrote, shown });
    }
    let acquisitions = (read.acquisitions + wrote) as f64;
    Ok(Figures {
        rate: acquisitions / elapsed.as_secs_f64().max(1e-9),
        cpu_ns: cpu_time.as_nanos() as f64 / acquisitions.max(1.0),
        read: read.tail(),
        write: write.tail(),
    })
}

fn run<L: Lock>(point: &Point, lock: &L, seed: u64, stop: &AtomicBool) -> Part {
    let mut random = SmallRng::seed_from_u64(seed);
    let used = Native::usage_of_this_thread();
    let now = Instant::now();
    let mut part = Part {
        started: now,
        ended: now,
        cpu_time: Duration::ZERO,
        read: Times::of_mode(point.reads_percent),
        write: Times::of_mode(100 - point.reads_percent),
        torn: None,
    };
    while !stop.load(Relaxed) {
        if next_percent(&mut random) < point.reads_percent {
            if part.read.next_is_timed() {
                timed_read(point.section, lock, &mut part);
            } else {
                judge(lock.read(|pair| look(pair, point.section)), &mut part);
            }
        } else if part.write.next_is_timed() {
            timed_write(point.section, lock, &mut part);
        } else {
            lock.write(|pair| change(pair, point.section));
        }
    }
    part.ended = Instant::now();
    part.cpu_time = (Native::usage_of_this_thread() - used).cpu_time;
    part
}

/// A number from 0 to 99. Not inlined: its registers would be taken from some locks' fast paths and not from others'.
#[inline(never)]
fn next_percent(random: &mut SmallRng) -> u32 {
    ((u64::from(random.next_u32()) * 100) >> 32) as u32
}

/// Apart from the untimed acquisition, whose loop the clock must not disturb; so is `timed_write`.
#[cold]
#[inline(never)]
fn timed_read<L: Lock>(section: Section, lock: &L, part: &mut Part) {
    let asked = Instant::now();
    let (time, seen) = lock.read(|pair| (asked.elapsed(), look(pair, section)));
    judge(seen, part);
    part.read.note(time);
}

#[cold]
#[inline(never)]
fn timed_write<L: Lock>(section: Section, lock: &L, part: &mut Part) {
    let asked = Instant::now();
    let time = lock.write(|pair| {
        let time = asked.elapsed();
        change(pair, section);
        time
    });
    part.write.note(time);
}

#[inline]
fn look(pair: &Pair, section: Section) -> [u64; 2] {
    let first = black_box(pair).0[0];
    section.work();
    [first, black_box(pair).0[1]]
}

#[inline]
fn change(pair: &mut Pair, section: Section) {
    pair.0[0] = black_box(&*pair).0[0] + 1;
    section.work();
    pair.0[1] = black_box(&*pair).0[1] + 1;
}

#[inline]
fn judge([first, second]: [u64; 2], part: &mut Part) {
    if first != second {
        part.torn = Some(NotExcluded::Torn(first, second));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: Point = Point {
        threads: 2,
        section: Section::EMPTY,
        reads_percent: 50,
        duration: Duration::from_millis(5),
        seed: 1,
    };

    /// Each access is to a copy of its own.
    struct Forgetful;

    impl Lock for Forgetful {
        fn idle() -> Self {
            Self
        }
        fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
            look(&Pair::default())
        }
        fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
            change(&mut Pair::default())
        }
    }

    /// Shows readers a write half done.
    struct Half;

    impl Lock for Half {
        fn idle() -> Self {
            Self
        }
        fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
            look(&Pair([2, 1]))
        }
        fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
            change(&mut Pair::default())
        }
    }

    impl Lock for std::sync::RwLock<Pair> {
        fn idle() -> Self {
            Self::default()
        }
        fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
            look(&std::sync::RwLock::read(self).unwrap())
        }
        fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
            change(&mut std::sync::RwLock::write(self).unwrap())
        }
    }

    /// The first result that is one, of measurements of 5 ms, 10 ms and so on to 10 s: on a busy host no thread may run in a
    /// short one.
    fn measured<L: Lock, R>(
        reads_percent: u32,
        result: impl Fn(Result<Figures, NotExcluded>) -> Option<R>,
    ) -> R {
        let attempt = |doublings: u32| {
            let point = Point {
                reads_percent,
                duration: POINT.duration * (1_u32 << doublings),
                ..POINT
            };
            result(measure::<L>(&point))
        };
        (0..12).find_map(attempt).expect("10 s are enough")
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_found_out() {
        let lost = measured::<Forgetful, _>(50, Result::err);
        assert!(
            matches!(lost, NotExcluded::Lost { wrote: 1.., shown: 0 }),
            "{lost}"
        );
        let torn = measured::<Half, _>(100, Result::err);
        assert_eq!(torn, NotExcluded::Torn(2, 1));
    }

    #[test]
    fn each_mode_that_is_there_has_its_times() {
        for (reads_percent, modes) in [(0, [false, true]), (50, [true, true]), (100, [true, false])] {
            measured::<std::sync::RwLock<Pair>, _>(reads_percent, |figures| {
                let figures = figures.unwrap();
                assert!(modes[0] || figures.read.is_none());
                assert!(modes[1] || figures.write.is_none());
                let has_all = [figures.read.is_some(), figures.write.is_some()] == modes;
                (has_all && figures.rate > 0.0 && figures.cpu_ns > 0.0).then_some(())
            });
        }
    }

    #[test]
    fn one_acquisition_in_64_is_timed_by_the_share_of_its_mode() {
        let timed = |percent, acquisitions| {
            let mut times = Times::of_mode(percent);
            (0..acquisitions).filter(|_| times.next_is_timed()).count()
        };
        assert_eq!(timed(100, 6_400), 100);
        assert_eq!(timed(50, 3_200), 100);
        assert_eq!(timed(95, 6_000), 100);
        assert_eq!(timed(5, 300), 100, "one of three");
        assert_eq!(timed(1, 100), 100, "each");
    }

    #[test]
    fn draws_are_percent() {
        let mut random = SmallRng::seed_from_u64(7);
        let draws: Vec<u32> = (0..100_000).map(|_| next_percent(&mut random)).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&0), Some(&99)));
        let below_half = draws.iter().filter(|percent| **percent < 50).count();
        assert!((49_000..51_000).contains(&below_half), "{below_half}");
    }
}
