//! Costs of an add, a remove and a snapshot of the known xids. `crates/txn/benches/known-xids` counts their
//! instructions; it runs `known_xids count VARIANT RUNNING RANGE` under callgrind and looks at the three functions named
//! `measured_…`. `known_xids time VARIANT RUNNING RANGE` prints the median of a snapshot's time.
//!
//! One old transaction runs, then RANGE have come and gone, and the other RUNNING - 1 are the newest. Each of 1,280
//! cycles, ten times the ends between two compactions of `array` under `2022`, adds one and ends it. Snapshots are taken when those before have left their hints.

use std::hint::black_box;
use std::time::Instant;

use clearway_machine::Switch;
use clearway_txn::{
    KnownXids, KnownXidsCompactionVariant, KnownXidsOptions, KnownXidsVariant, ReplayedXids,
    RunningTransactions, RunningXids, Xid,
};

const CYCLES: u64 = 1_280;
const SNAPSHOTS: usize = 4;
const FIRST: u64 = 1_000;

#[inline(never)]
fn measured_add(replay: &mut ReplayedXids<'_>, xid: Xid) {
    replay.add(xid, xid).expect("there is room");
}

#[inline(never)]
fn measured_remove(replay: &mut ReplayedXids<'_>, xid: Xid) {
    replay.remove(xid);
}

#[inline(never)]
fn measured_snapshot(known: &KnownXids, into: &mut RunningXids) {
    known.snapshot(into).expect("all is known");
}

/// `array-2010`, `bitmap`.
fn options(name: &str, range: u64) -> Option<KnownXidsOptions> {
    let (variant, compaction) = name.split_once('-').unwrap_or((name, "2022"));
    Some(KnownXidsOptions {
        variant: KnownXidsVariant::named(variant)?,
        compaction: KnownXidsCompactionVariant::named(compaction)?,
        // Enough that the rule of 2010 compacts after the range only.
        sessions: (range + 2 * CYCLES) as u32,
        capacity: (range + 20_000) as u32,
        ..KnownXidsOptions::for_sessions(1)
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &arguments[..] {
        [what, name, running, range] if what == "count" || what == "time" => {
            let (running, range): (u64, u64) = (running.parse().unwrap_or(0), range.parse().unwrap_or(0));
            options(name, range)
                .filter(|_| (1..=10_000).contains(&running) && (1..=20_000_000).contains(&range))
                .map(|options| (what == "time", options, running, range))
        }
        _ => None,
    };
    let Some((times, options, running, range)) = parsed else {
        eprintln!("usage: known_xids count|time VARIANT[-COMPACTION] RUNNING RANGE");
        std::process::exit(2);
    };
    let known = KnownXids::new(options);
    let mut replay = known.replay().expect("it was not given away");
    let nothing_ran = RunningTransactions {
        next: Xid(FIRST),
        oldest_running: Xid(FIRST),
        newest_ended: Xid(FIRST - 1),
        running: &[],
        overflowed: false,
        prepared: &[],
    };
    replay.apply(&nothing_ran).expect("the record is sound");
    let ended_before = FIRST + range.saturating_sub(running).max(1);
    replay
        .add(Xid(FIRST), Xid(ended_before - 1))
        .expect("there is room");
    replay.remove_preceding(Xid(ended_before), &[Xid(FIRST)]);
    for xid in ended_before..ended_before + running - 1 {
        replay.add(Xid(xid), Xid(xid)).expect("there is room");
    }
    let mut snapshot = RunningXids::default();
    for _ in 0..CYCLES {
        let xid = replay.next();
        measured_add(&mut replay, xid);
        measured_remove(&mut replay, xid);
    }
    // The first one walks over gaps.
    known.snapshot(&mut snapshot).expect("all is known");
    if times {
        let mut times: Vec<_> = (0..31)
            .map(|_| {
                let began = Instant::now();
                measured_snapshot(black_box(&known), &mut snapshot);
                began.elapsed()
            })
            .collect();
        times.sort();
        println!(
            "{:?} a snapshot of {}, range {}",
            times[15],
            snapshot.xids().len(),
            replay.range()
        );
        return;
    }
    for _ in 0..SNAPSHOTS {
        measured_snapshot(black_box(&known), &mut snapshot);
    }
    println!("{CYCLES} {SNAPSHOTS} {}", replay.range());
}
