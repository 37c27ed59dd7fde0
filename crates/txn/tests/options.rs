//! Options that suites run over, and their way to the latches: a lost option would measure or test another variant than
//! was named.

use clearway_latch::{LwLockOptions, LwLockVariant};
use clearway_machine::Switch;
use clearway_txn::{CommitLogOptions, CommitLogVariant, ProcArrayOptions};

#[test]
fn the_commit_logs_suites_run_under_every_variant() {
    let run: Vec<_> = CommitLogOptions::each_variant()
        .map(|options| options.variant)
        .collect();
    assert_eq!(run, CommitLogVariant::ALL);
}

#[test]
fn the_default_runs_once() {
    let all: Vec<_> = ProcArrayOptions::each_variant().collect();
    assert_eq!(all[0], ProcArrayOptions::default());
    for (index, options) in all.iter().enumerate() {
        assert!(!all[..index].contains(options), "twice: {options:?}");
    }
}

#[test]
fn the_latches_options_are_taken_over() {
    for lwlock in LwLockOptions::all() {
        assert_eq!(CommitLogOptions::from(lwlock).lwlock, lwlock);
        assert_eq!(ProcArrayOptions::from(lwlock).lwlock, lwlock);
    }
    for variant in LwLockVariant::ALL {
        assert_eq!(
            CommitLogOptions::from(*variant).lwlock,
            LwLockOptions::from(*variant)
        );
        assert_eq!(
            ProcArrayOptions::from(*variant).lwlock,
            LwLockOptions::from(*variant)
        );
    }
}
