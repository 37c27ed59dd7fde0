//! A harness for locks that stands outside of what it measures: Clearway's latches beside the locks of other libraries,
//! each used as a program uses it.
//!
//! | command | measures |
//! | --- | --- |
//! | `cargo bench -p clearway-peers --bench contended` | 1 to 64 threads: throughput, 99th and 99.9th percentiles of readers and writers, CPU time; `-- --help` |
//! | `cargo bench -p clearway-peers --bench uncontended` | one thread, by criterion: nanoseconds an acquisition and its release |
//!
//! `clearway bench latches` measures too, with the simulator beside it. The two share no code that measures locks, so a mistake
//! of one shows beside the other; and this one needs no database, so it builds in a minute. Only the look at other programs is
//! the laboratory's file.
//!
//! A *point* is a number of threads, a length of the section and a share of reads. A *cell* is a lock at a point.
//!
//! # Rules
//! - P1: the locks of a point are measured one after the other, and that [`schedule`] is repeated for each round, so a
//!   disturbance meets all of them. A figure is the median of the rounds, and a ratio the median of the rounds' ratios.
//! - P2: each thread acquires, touches two words, works for the section's length and releases, without a pause, until the
//!   point's time is over. Throughput counts the time from the first thread's start to the last one's end.
//! - P3: a reader that finds the two words different, or a write that is missing at the end, ends the bench.
//! - P4: a mode that makes more than 1 of 32 acquisitions is timed once in 64 times its share of them, any other always.
//!   The clock's own cost, some 20 to 40 ns, is in each time.
//! - P5: a cell is *lost* to another lock if that one makes more than 1.1 times the acquisitions, or its 99th percentile of
//!   readers or writers is below half of ours ([`losses`]). A loss is *steady* if three quarters of the rounds show it.
//! - P6: the bench ends with the part of the CPUs that other programs used ([`host_use`]).

#[path = "../../lab/src/host_use.rs"]
pub mod host_use;
pub mod losses;
pub mod measure;
pub mod schedule;
pub mod section;
pub mod table;
