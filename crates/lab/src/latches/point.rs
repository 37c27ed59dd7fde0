//! One measurement: some threads and a latch for a short time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clearway_machine::{Native, Padded};
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::native::{NoLatch, Pair, PairUnderLatch};
use super::section::Section;
use super::timing::{ModeTimes, slowest_to_fastest, waits};

/// A point to measure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) threads: usize,
    pub(super) section: Section,
    /// 0 to 1.
    pub(super) read_share: f64,
    pub(super) duration: Duration,
    pub(super) seed: u64,
    /// The CPUs that the threads stay on in turn; none: wherever the system puts them.
    pub(super) cpus: Option<[usize; 2]>,
}

/// The result of a point.
#[derive(Debug)]
pub(super) struct Measured {
    operations: u64,
    elapsed: Duration,
    /// Waits of the timed acquisitions, in nanoseconds.
    pub(super) read: Histogram<u64>,
    pub(super) write: Histogram<u64>,
    /// The slowest thread's acquisitions as a share of the fastest's.
    pub(super) slowest_to_fastest: f64,
    /// Of all threads.
    cpu_time: Duration,
}

impl Measured {
    /// Operations a second.
    pub(super) fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds()
    }

    /// CPUs that the threads kept busy.
    pub(super) fn cpus(&self) -> f64 {
        self.cpu_time.as_secs_f64() / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A reader saw a writer's work half done, or a writer's work is missing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Torn {
    #[error("a reader saw {0} and {1} where both must be equal")]
    Seen(u64, u64),
    #[error("{wrote} writes were made, but the data shows {shown}")]
    Lost { wrote: u64, shown: u64 },
}

/// The counts of one thread.
struct Tally {
    /// The thread's start, by its own clock: with few CPUs, threads have been at work for a while before the one that
    /// started them runs again.
    started: Instant,
    ended: Instant,
    cpu_time: Duration,
    read: ModeTimes,
    write: ModeTimes,
    torn: Option<Torn>,
}

impl Tally {
    fn operations(&self) -> u64 {
        self.read.acquisitions + self.write.acquisitions
    }
}

/// Runs the point on `latch`, which is new.
pub(super) fn measure<L: PairUnderLatch>(point: &Point, latch: &L) -> Result<Measured, Torn> {
    // On lines of its own: it is read in every turn, and must not lie beside the latch by chance.
    let stop = Padded(AtomicBool::new(false));
    let start = Barrier::new(point.threads + 1);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..point.threads)
            .map(|number| {
                let (stop, start) = (&*stop, &start);
                scope.spawn(move || {
                    if let Some(cpus) = point.cpus {
                        // If this is refused, the thread runs where the kernel puts it; a caller that asks
                        // for CPUs checks them itself.
                        let _ = Native::stay_on(cpus[number % 2]);
                    }
                    start.wait();
                    run(point, latch, point.seed.wrapping_add(number as u64), stop)
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(point.duration);
        stop.store(true, Ordering::Relaxed);
        // Threads that are still inside or waiting finish their acquisition: it counts, and so does its time.
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let started = tallies.iter().map(|tally| tally.started).min();
    let ended = tallies.iter().map(|tally| tally.ended).max();
    let elapsed = started
        .zip(ended)
        .map_or(Duration::ZERO, |(started, ended)| ended - started);
    let mut all = Measured {
        operations: 0,
        elapsed,
        read: waits(),
        write: waits(),
        slowest_to_fastest: slowest_to_fastest(tallies.iter().map(Tally::operations)),
        cpu_time: tallies.iter().map(|tally| tally.cpu_time).sum(),
    };
    let mut writes = 0;
    for tally in tallies {
        if let Some(torn) = tally.torn {
            return Err(torn);
        }
        all.operations += tally.operations();
        writes += tally.write.acquisitions;
        // Equal bounds: nothing can be out of range.
        let _ = all.read.add(tally.read.waits());
        let _ = all.write.add(tally.write.waits());
    }
    let shown = latch.read(|pair| pair.0[0]);
    if L::EXCLUDES && shown != writes {
        return Err(Torn::Lost { wrote: writes, shown });
    }
    Ok(all)
}

/// Runs the point without a latch: the loop by itself.
pub(super) fn measure_without_latch(point: &Point) -> Result<Measured, Torn> {
    measure(point, &NoLatch)
}

/// The choice between reads and writes.
struct Draws {
    random: SmallRng,
    /// A draw of 32 bits below this is a read; 2^32 makes all of them reads.
    reads_below: u64,
}

impl Draws {
    /// Not inlined: in one loop with the latch, its registers would make some latches slower by what had to
    /// be put on the stack.
    #[inline(never)]
    fn next_reads(&mut self) -> bool {
        u64::from(self.random.next_u32()) < self.reads_below
    }
}

fn run(point: &Point, latch: &impl PairUnderLatch, seed: u64, stop: &AtomicBool) -> Tally {
    let mut draws = Draws {
        random: SmallRng::seed_from_u64(seed),
        reads_below: (point.read_share * 4_294_967_296.0) as u64,
    };
    let used = Native::usage_of_this_thread();
    let now = Instant::now();
    let mut tally = Tally {
        started: now,
        ended: now,
        cpu_time: Duration::ZERO,
        read: ModeTimes::new(point.read_share),
        write: ModeTimes::new(1.0 - point.read_share),
        torn: None,
    };
    while !stop.load(Ordering::Relaxed) {
        if draws.next_reads() {
            if tally.read.next_is_timed() {
                timed_read(point.section, latch, &mut tally);
            } else {
                let seen = latch.read(|pair| look(pair, point.section));
                judge(seen, &mut tally);
            }
        } else if tally.write.next_is_timed() {
            timed_write(point.section, latch, &mut tally);
        } else {
            latch.write(|pair| change(pair, point.section));
        }
    }
    tally.ended = Instant::now();
    tally.cpu_time = (Native::usage_of_this_thread() - used).cpu_time;
    tally
}

/// Apart from the untimed, which is what is measured: the clock's registers must not be in its loop.
#[cold]
#[inline(never)]
fn timed_read(section: Section, latch: &impl PairUnderLatch, tally: &mut Tally) {
    let asked = Instant::now();
    let (waited, seen) = latch.read(|pair| (asked.elapsed(), look(pair, section)));
    judge(seen, tally);
    tally.read.note(waited);
}

#[cold]
#[inline(never)]
fn timed_write(section: Section, latch: &impl PairUnderLatch, tally: &mut Tally) {
    let asked = Instant::now();
    let waited = latch.write(|pair| {
        let waited = asked.elapsed();
        change(pair, section);
        waited
    });
    tally.write.note(waited);
}

/// A reader's section: both words, and the time between.
#[inline]
fn look(pair: &Pair, section: Section) -> (u64, u64) {
    let first = seen(pair, 0);
    section.work();
    (first, seen(pair, 1))
}

/// A writer's section.
#[inline]
fn change(pair: &mut Pair, section: Section) {
    pair.0[0] = seen(pair, 0) + 1;
    section.work();
    pair.0[1] = seen(pair, 1) + 1;
}

/// Judged outside of the latch: an optimistic reader may see a torn pair, and then has to read again.
#[inline]
fn judge((first, second): (u64, u64), tally: &mut Tally) {
    if first != second {
        tally.torn = Some(Torn::Seen(first, second));
    }
}

/// Reads a word for real, each time.
#[inline]
fn seen(pair: &Pair, word: usize) -> u64 {
    std::hint::black_box(&pair.0)[word]
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: Point = Point {
        threads: 2,
        section: Section::NONE,
        read_share: 0.5,
        duration: Duration::from_millis(5),
        seed: 1,
        cpus: None,
    };

    /// Each works on a copy of its own.
    struct Forgetful;

    impl PairUnderLatch for Forgetful {
        fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
            look(&Pair::default())
        }
        fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
            change(&mut Pair::default())
        }
    }

    /// Shows readers a write half done.
    struct Torn;

    impl PairUnderLatch for Torn {
        fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
            look(&Pair([2, 1]))
        }
        fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
            change(&mut Pair::default())
        }
    }

    #[test]
    fn a_latch_that_does_not_exclude_is_found_out() {
        let lost = measure(&POINT, &Forgetful).unwrap_err();
        assert!(lost.to_string().contains("but the data shows 0"), "{lost}");
        let torn = measure(&POINT, &Torn).unwrap_err();
        assert!(torn.to_string().contains("saw 2 and 1"), "{torn}");
    }

    #[test]
    fn each_mode_has_its_waits_and_all_threads_their_share() {
        let measured = measure_without_latch(&POINT).unwrap();
        assert!(measured.operations > 0 && measured.rate() > 0.0);
        let (reads, writes) = (measured.read.len(), measured.write.len());
        assert!(reads > 0 && writes > 0, "{reads} and {writes}");
        assert!(
            (reads + writes) * 16 < measured.operations + 100,
            "{reads} and {writes} of {} were timed",
            measured.operations
        );
        assert!((0.0..=1.0).contains(&measured.slowest_to_fastest));
        assert!(measured.cpus() >= 0.0 && measured.cpus() < 3.0);
    }
}
