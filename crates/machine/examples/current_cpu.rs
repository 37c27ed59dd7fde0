//! The cost of learning which CPU a thread runs on: `cargo run --release -p clearway-machine --example current_cpu`.
//!
//! `Native::cpu` reads the number where glibc's restartable sequences area has it, and looks up the core and the node.
//! `getcpu` is the call of the kernel's vDSO that it makes where there is no such area; `GLIBC_TUNABLES=glibc.pthread.rseq=0`
//! shows that path under `Native::cpu` too. `Native::worker` is what latches use otherwise. By turns, medians of 41
//! rounds.

use std::hint::black_box;
use std::time::Instant;

use clearway_machine::{Machine, Native};

const CALLS: u32 = 1_000_000;
const ROUNDS: usize = 41;

/// Each case is a function of its own, so that nothing but the call is in its loop.
macro_rules! cases {
    ($($name:literal => $call:expr;)*) => {
        [$(($name, {
            #[inline(never)]
            fn case() {
                for _ in 0..CALLS {
                    black_box($call);
                }
            }
            case as fn()
        })),*]
    };
}

fn main() {
    let cases = cases! {
        "nothing" => 0;
        "Native::worker" => Native::worker();
        "Native::cpu, the number" => Native::cpu().cpu;
        "Native::cpu, the core" => Native::cpu().core;
        "getcpu" => rustix::thread::sched_getcpu();
    };
    let mut times = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for _ in 0..ROUNDS {
        for (times, (_, case)) in times.iter_mut().zip(&cases) {
            let before = Instant::now();
            case();
            times.push(before.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
        }
    }
    println!("{:?}, now at {:?}", Native::cpu_counts(), Native::cpu());
    for (times, (name, _)) in times.iter_mut().zip(&cases) {
        times.sort_by(f64::total_cmp);
        println!("{name:24} {:6.2} ns", times[ROUNDS / 2]);
    }
}
