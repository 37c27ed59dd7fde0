//! The laboratory: runs workloads against the engine in process and shows what came out.
//!
//! # What a bench is
//!
//! ```text
//!                        workloads × clients                      variants (A, B, …)
//!  schedule ──▶  round 1: [select-only, 1 client]  A B   [select-only, 2 clients]  A B   …
//!                round 2: the same again                                     (A B A B)
//!                   │
//!  run      ──▶  one *point*: client threads on sessions of A's engine, warm-up, then measure
//!                   │    sampler reads each client's wait event every few milliseconds
//!                   │    costs reads the counters of syncs, wake-ups and context switches at both ends
//!  result   ──▶  one *cell* per workload × clients × variant: medians over the rounds
//!                   │
//!  table, report ──▶ text, result.json, report.html
//! ```
//!
//! # Rules that make the numbers worth something
//!
//! 1. Variants are **interleaved** at the finest grain, so that a machine that grows slower or faster during the run
//!    (heat, neighbours, a growing table) does so for both.
//! 2. A cell shows a **median** and the range it was taken from; ratios are medians of the ratios of neighbouring
//!    points, since these shared their conditions. A ratio whose [bounds](result::Cell::ratio_bounds) hold 1 is shown as
//!    `≈ 1`: the rounds do not say which of the two is faster.
//! 3. Both variants of a point draw the **same random numbers**; the seed is in the result.
//! 4. Warm-up is not measured; only transactions that end inside the measured window count.
//! 5. A run whose **balances do not add up** afterwards, or whose TPC-C tables are not consistent, is an error, whatever
//!    its speed.
//! 6. Every result carries its [provenance](result::Provenance), with what ran beside it: the
//!    [programs](OtherPrograms) that were asked for, and the part of the CPUs that [all others](host_use) used.
//!
//! # What it does not do
//!
//! There is no network (but for that of a [follower](Variant::followed)) and no SQL parsing in the measured loop: statements
//! are prepared once. A server is measured by its clients in [`server_bench`], and beside PostgreSQL by
//! `scripts/compare-postgres`. On a machine with few CPUs the clients share these, and the wait "running"
//! includes the time a client is ready but has no CPU.

#![forbid(unsafe_code)]

pub mod advise;
pub mod bench;
mod costs;
mod error;
mod follower;
pub mod gather;
pub mod host_use;
pub mod kinds_table;
pub mod latches;
mod latencies;
mod layout;
mod other_programs;
mod progress;
mod provenance;
pub mod report;
pub mod result;
mod run;
mod sampler;
pub mod schedule;
mod seed;
pub mod server_bench;
pub mod simulate;
mod stats;
pub mod table;
mod tables;
pub mod tpcc_sessions;
pub mod workload;

pub use bench::{BenchOptions, Variant, run_bench};
pub use costs::CommitCosts;
pub use error::{LabError, Result};
pub use latches::{LatchBenchOptions, run_latch_bench};
pub use other_programs::{OtherProgram, OtherProgramCommand, OtherPrograms};
pub use server_bench::{ServerBenchOptions, ServerBenchResult, ServerCell, run_server_bench};
