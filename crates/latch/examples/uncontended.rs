//! The cost of an uncontended acquire and release, beside parking_lot's and std's locks.
//!
//! `cargo run --release -p clearway-latch --example uncontended` times all of them in turn, round after
//! round, and prints medians. `crates/latch/benches/count-instructions` counts instructions: it runs
//! `uncontended count NAME PAIRS` under callgrind twice and takes the difference, so that start-up and loop
//! set-up cancel out. What it prints includes the loop around the pair: 5 instructions, or 3 in the line
//! `nothing`, where the compiler drops one of them. The lines `counted` are ours in a build with the feature
//! `count-acquisitions`, as the engine has it.

use std::hint::black_box;
use std::time::Instant;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, HybridLatch, LatchClass, LwLock, LwLockVariant,
    ReadBiasedLatch, ReadBiasedOptions, SingleWake, SlotChoice, SrwMutex, SsuxLock, SuxLock, Unclassed,
    WriterVariant,
};
use clearway_machine::{Host, WaitEvent};

static CLASS: LatchClass = LatchClass::new("bench", WaitEvent::UserLatch, 0);

struct Locks {
    ours: LwLock,
    parking_lot: parking_lot::RwLock<u64>,
    std: std::sync::RwLock<u64>,
    read_biased: ReadBiasedLatch,
    /// Read-biased latches with other writers, and with other slots for readers.
    announce: ReadBiasedLatch,
    hand_over: ReadBiasedLatch,
    by_cpu: ReadBiasedLatch,
    by_core: ReadBiasedLatch,
    adaptive: AdaptiveLatch,
    /// An adaptive latch that stays biased.
    biased: AdaptiveLatch,
    hybrid: HybridLatch,
    srw_mutex: SrwMutex,
    parking_lot_mutex: parking_lot::Mutex<u64>,
    std_mutex: std::sync::Mutex<u64>,
    ssux: SsuxLock,
    ssux_two_words: SsuxLock<Unclassed, Host, SingleWake>,
    sux: SuxLock,
}

/// Runs `pairs` acquire-and-release pairs.
type Case = fn(&Locks, u64);

/// Each case is a function of its own, so that nothing but the pair is in its loop.
macro_rules! cases {
    ($($name:ident => |$locks:ident| $pair:expr;)*) => {
        $(
            #[inline(never)]
            fn $name(locks: &Locks, pairs: u64) {
                for _ in 0..pairs {
                    let $locks = black_box(locks);
                    let _held = $pair;
                }
            }
        )*
        const CASES: &[(&str, Case)] = &[$((stringify!($name), $name)),*];
    };
}

cases! {
    nothing => |locks| locks;
    ours_exclusive => |locks| locks.ours.exclusive();
    parking_lot_exclusive => |locks| locks.parking_lot.write();
    std_exclusive => |locks| locks.std.write().unwrap();
    ours_shared => |locks| locks.ours.shared();
    parking_lot_shared => |locks| locks.parking_lot.read();
    std_shared => |locks| locks.std.read().unwrap();
    read_biased_exclusive => |locks| locks.read_biased.exclusive();
    read_biased_shared => |locks| locks.read_biased.shared();
    announce_exclusive => |locks| locks.announce.exclusive();
    announce_shared => |locks| locks.announce.shared();
    hand_over_exclusive => |locks| locks.hand_over.exclusive();
    by_cpu_shared => |locks| locks.by_cpu.shared();
    by_core_exclusive => |locks| locks.by_core.exclusive();
    by_core_shared => |locks| locks.by_core.shared();
    adaptive_exclusive => |locks| locks.adaptive.exclusive();
    adaptive_shared => |locks| locks.adaptive.shared();
    biased_exclusive => |locks| locks.biased.exclusive();
    biased_shared => |locks| locks.biased.shared();
    hybrid_exclusive => |locks| locks.hybrid.exclusive();
    hybrid_shared => |locks| locks.hybrid.shared();
    hybrid_optimistic => |locks| locks.hybrid.read(|| black_box(0));
    srw_mutex => |locks| locks.srw_mutex.exclusive();
    parking_lot_mutex => |locks| locks.parking_lot_mutex.lock();
    std_mutex => |locks| locks.std_mutex.lock().unwrap();
    ssux_exclusive => |locks| locks.ssux.exclusive();
    ssux_update => |locks| locks.ssux.update();
    ssux_shared => |locks| locks.ssux.shared();
    ssux_two_words_exclusive => |locks| locks.ssux_two_words.exclusive();
    ssux_two_words_shared => |locks| locks.ssux_two_words.shared();
    sux_exclusive => |locks| locks.sux.exclusive();
    sux_shared => |locks| locks.sux.shared();
}

fn read_biased(slot: SlotChoice, writer: WriterVariant) -> ReadBiasedLatch {
    let options = ReadBiasedOptions {
        slot,
        writer,
        ..LwLockVariant::SingleCas.into()
    };
    ReadBiasedLatch::new(&CLASS, options)
}

const ROUNDS: usize = 41;
const PAIRS: u64 = 1_000_000;

fn main() {
    let locks = Locks {
        ours: LwLock::new(&CLASS, LwLockVariant::SingleCas),
        parking_lot: parking_lot::RwLock::new(0),
        std: std::sync::RwLock::new(0),
        read_biased: ReadBiasedLatch::new(&CLASS, LwLockVariant::SingleCas),
        announce: read_biased(SlotChoice::Worker, WriterVariant::Announce),
        hand_over: read_biased(SlotChoice::Worker, WriterVariant::HandOver),
        by_cpu: read_biased(SlotChoice::Cpu, WriterVariant::OneByOne),
        by_core: read_biased(SlotChoice::Core, WriterVariant::OneByOne),
        adaptive: AdaptiveLatch::new(&CLASS),
        biased: AdaptiveLatch::with_options(
            &CLASS,
            AdaptiveOptions {
                bias: BiasPolicy::Always,
                ..AdaptiveOptions::default()
            },
        ),
        hybrid: HybridLatch::new(),
        srw_mutex: SrwMutex::new(),
        parking_lot_mutex: parking_lot::Mutex::new(0),
        std_mutex: std::sync::Mutex::new(0),
        ssux: SsuxLock::new(),
        ssux_two_words: SsuxLock::new(),
        sux: SuxLock::new(),
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => time(&locks),
        ["count", name, pairs] => {
            let (_, case) = CASES
                .iter()
                .find(|(case, _)| *case == name)
                .expect("no such case");
            case(&locks, pairs.parse().expect("a number of pairs"));
        }
        ["list"] => CASES.iter().for_each(|(name, _)| println!("{name}")),
        _ => eprintln!("usage: uncontended [list | count NAME PAIRS]"),
    }
}

fn time(locks: &Locks) {
    let mut samples = vec![Vec::with_capacity(ROUNDS); CASES.len()];
    for _ in 0..ROUNDS {
        for ((_, case), samples) in CASES.iter().zip(&mut samples) {
            let started = Instant::now();
            case(locks, PAIRS);
            samples.push(started.elapsed().as_nanos() as f64 / PAIRS as f64);
        }
    }
    println!("{:<22} {:>8} {:>8} {:>8}", "ns a pair", "median", "p10", "p90");
    for ((name, _), mut samples) in CASES.iter().zip(samples) {
        samples.sort_by(f64::total_cmp);
        let at = |share: f64| samples[(share * (ROUNDS - 1) as f64) as usize];
        println!("{name:<22} {:>8.2} {:>8.2} {:>8.2}", at(0.5), at(0.1), at(0.9));
    }
}
