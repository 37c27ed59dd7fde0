//! One thread acquires and releases, by criterion: nanoseconds a pair, with an empty section.
//!
//!     cargo bench -p clearway-peers --bench uncontended
//!     cargo bench -p clearway-peers --bench uncontended -- exclusive/
//!
//! The lock lies in memory that the compiler knows nothing of. Without cargo's `--bench` each is called once.

mod locks;

use std::hint::black_box;
use std::time::Duration;

use clearway_peers::measure::Lock;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use locks::*;

fn read<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str) {
    let lock = L::idle();
    group.bench_function(name, |bencher| {
        bencher.iter(|| black_box(&lock).read(|pair| black_box(pair.0[0])));
    });
}

fn write<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str) {
    let lock = L::idle();
    group.bench_function(name, |bencher| {
        bencher.iter(|| black_box(&lock).write(|pair| pair.0[0] += 1));
    });
}

fn exclusive(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("exclusive");
    macro_rules! add {
        ($name:literal, $lock:ty, $has_readers:literal, $is_ours:literal) => {
            write::<$lock>(&mut group, $name);
        };
    }
    for_each_lock!(add);
    group.finish();
}

fn shared(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("shared");
    macro_rules! add {
        ($name:literal, $lock:ty, false, $is_ours:literal) => {};
        ($name:literal, $lock:ty, true, $is_ours:literal) => {
            read::<$lock>(&mut group, $name);
        };
    }
    for_each_lock!(add);
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .without_plots();
    targets = exclusive, shared
}
criterion_main!(benches);
