//! The known xids under real threads, with every variant: replay at full speed, three readers.

mod support;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use clearway_machine::Native;
use clearway_txn::{KnownXids, KnownXidsOptions, RunningXids, Xid};
use support::Random;
use support::known_xids::begun;

const FIRST: u64 = 100;
const XIDS: u64 = 3_000_000;
const CAPACITY: u32 = 300;
const RUN: Duration = Duration::from_millis(700);
/// A busy machine takes longer for [`TAKEN_MIN`]; one that has not taken them by then never will.
const RUN_MAX: Duration = Duration::from_secs(60);
/// Fewer snapshots than that have shown nothing.
const TAKEN_MIN: u64 = 100;

/// Number of transactions that ended before each xid did, plus 1; 0 while it has not.
struct Ends(Vec<AtomicU32>);

impl Ends {
    fn of(&self, xid: u64) -> u32 {
        self.0[(xid - FIRST) as usize].load(Relaxed)
    }
}

/// Adds one, two or three at a time, and ends any of those that run, alone or with a neighbour; some stay for long.
fn replay(known: &KnownXids, ends: &Ends, stop: &AtomicBool) {
    let mut replay = known.replay().unwrap();
    let mut random = Random(7);
    let mut running: Vec<u64> = Vec::new();
    let (mut next, mut count) = (FIRST, 0);
    while !stop.load(Relaxed) && next + 3 < FIRST + XIDS {
        let few = random.below(3) + 1;
        if running.len() as u64 + few <= u64::from(CAPACITY) && random.below(200) >= running.len() as u64 {
            replay.add(Xid(next), Xid(next + few - 1)).unwrap();
            running.extend(next..next + few);
            next += few;
        } else {
            count += 1;
            let place = random.below(running.len() as u64) as usize;
            // The oldest eighth stays, most of the time.
            if place < running.len() / 8 && random.below(1_000) > 0 {
                continue;
            }
            let xid = running.remove(place);
            ends.0[(xid - FIRST) as usize].store(count, Relaxed);
            if random.below(4) == 0 && place < running.len() {
                let child = running.remove(place);
                ends.0[(child - FIRST) as usize].store(count, Relaxed);
                replay.remove_tree(Xid(xid), &[Xid(child)]);
            } else if random.below(5_000) == 0 {
                for other in running.drain(..) {
                    ends.0[(other - FIRST) as usize].store(count, Relaxed);
                }
                replay.remove_preceding(Xid(next), &[]);
            } else {
                replay.remove(Xid(xid));
            }
        }
    }
}

/// K1, K2: there was a moment at which all that count as running ran, and all others had ended.
fn read(known: &KnownXids, ends: &Ends, stop: &AtomicBool, taken: &AtomicU64) {
    let mut snapshot = RunningXids::default();
    let mut before = RunningXids::default();
    while !stop.load(Relaxed) {
        known.snapshot(&mut snapshot).unwrap();
        taken.fetch_add(1, Relaxed);
        let xids = snapshot.xids();
        assert!(xids.is_sorted_by(|one, other| one < other), "K6: {snapshot:?}");
        assert!(snapshot.xmax() >= before.xmax(), "xmax went back");
        let recent = snapshot
            .xmin()
            .0
            .max(snapshot.xmax().0.saturating_sub(400))
            .max(FIRST)..snapshot.xmax().0;
        let (mut last_end, mut first_running) = (0, u32::MAX);
        for xid in recent {
            let end = ends.of(xid);
            if snapshot.is_running(Xid(xid)) {
                let end = if end == 0 { u32::MAX } else { end };
                first_running = first_running.min(end);
                assert!(before.is_running(Xid(xid)), "{xid} runs again");
            } else {
                assert!(end > 0, "{xid} has not ended, and is not in {snapshot:?}");
                last_end = last_end.max(end);
            }
        }
        for xid in xids {
            let end = ends.of(xid.0);
            first_running = first_running.min(if end == 0 { u32::MAX } else { end });
            assert!(before.is_running(*xid), "{xid} runs again");
        }
        assert!(
            last_end < first_running,
            "an effect without its cause in {snapshot:?}"
        );
        std::mem::swap(&mut snapshot, &mut before);
    }
}

#[test]
fn snapshots_are_of_one_moment_with_every_variant() {
    for options in KnownXidsOptions::each_variant(20, CAPACITY) {
        eprintln!("under {options:?}");
        let known = begun::<Native>(options, &[], FIRST);
        let ends = Ends((0..XIDS).map(|_| AtomicU32::new(0)).collect());
        let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| replay(&known, &ends, &stop));
            for _ in 0..3 {
                scope.spawn(|| read(&known, &ends, &stop, &taken));
            }
            let began = Instant::now();
            let least = || {
                if taken.load(Relaxed) < TAKEN_MIN {
                    RUN_MAX
                } else {
                    RUN
                }
            };
            while began.elapsed() < least() {
                thread::sleep(Duration::from_millis(10));
            }
            stop.store(true, Relaxed);
        });
        assert!(taken.load(Relaxed) >= TAKEN_MIN);
    }
}
