//! Parts that the suites of the transaction layer share.

#![allow(dead_code, reason = "each suite uses its part")]

pub mod dependency_circle;
pub mod known_xids;
pub mod row_locking;
pub mod serial_history;

use clearway_machine::Machine;
use clearway_txn::{ProcArray, ProcArrayOptions, ProcId, Snapshot, Xid};

/// The first xid handed out.
pub const FIRST: Xid = Xid(100);

pub const ALICE: ProcId = ProcId(0);
pub const BOB: ProcId = ProcId(1);
pub const CAROL: ProcId = ProcId(2);
pub const DAVE: ProcId = ProcId(3);

/// An array with `sessions` attached, numbered from 0.
pub fn array<M: Machine>(options: impl Into<ProcArrayOptions>, sessions: u32) -> ProcArray<M> {
    let array = ProcArray::new(sessions, options, FIRST);
    for number in 0..sessions {
        assert_eq!(array.attach(), Ok(ProcId(number)));
    }
    array
}

/// A snapshot for `proc`.
pub fn snapshot<M: Machine>(array: &ProcArray<M>, proc: ProcId) -> Snapshot {
    let mut snapshot = Snapshot::default();
    array.snapshot(proc, &mut snapshot);
    snapshot
}

/// Explores the schedules of `case` within a bound of preemptions.
#[cfg(feature = "loom")]
pub fn explore(preemptions: usize, case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        // The machine's globals exist before any thread can race for them.
        clearway_machine::Loom::workers();
        case();
    });
}

/// Explores `case` under each variant of the array's switches; a failure shows the options printed last.
#[cfg(feature = "loom")]
pub fn explore_each_array(
    preemptions: usize,
    case: impl Fn(ProcArrayOptions) + Clone + Send + Sync + 'static,
) {
    for options in ProcArrayOptions::each_variant() {
        eprintln!("under {options:?}");
        let case = case.clone();
        explore(preemptions, move || case(options));
    }
}

/// A small generator, so that every run with one seed asks for the same.
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
