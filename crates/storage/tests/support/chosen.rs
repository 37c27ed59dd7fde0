//! The environment's choices for the tests.

use clearway_latch::LwLockOptions;
use clearway_machine::{Clients, Native, Switch, TimeSliceVariant};
use clearway_storage::{StandbyOptions, StorageOptions};

/// The default options with the variants that the environment variable `CLEARWAY_MECHANISMS` names, such as
/// `page_latch=hybrid,lwlock=queued`. `time_slice` is no option of storage: the calling thread, and those that it starts,
/// get the slice. Those of a standby are [`standby`]'s.
pub fn options() -> StorageOptions {
    let mut options = StorageOptions::default();
    let mut lwlock = LwLockOptions::default();
    let mut time_slice = TimeSliceVariant::System;
    let mut of_standbys = StandbyOptions::default();
    for (name, variant) in &assignments() {
        let known = choose_for_standby(&mut of_standbys, name, variant)
            || choose(&mut lwlock.algorithm, name, variant)
            || choose(&mut lwlock.shared_path, name, variant)
            || choose(&mut lwlock.fairness, name, variant)
            || choose(&mut options.pool.page_latch, name, variant)
            || choose(&mut options.pool.page_read, name, variant)
            || choose(&mut options.pool.map, name, variant)
            || choose(&mut options.pool.clock, name, variant)
            || choose(&mut options.page_room, name, variant)
            || choose(&mut options.proc_array.latch, name, variant)
            || choose(&mut options.proc_array.snapshot, name, variant)
            || choose(&mut options.proc_array.clear, name, variant)
            || choose(&mut options.commit_log.variant, name, variant)
            || choose(&mut options.log.reserve, name, variant)
            || choose(&mut options.log.insert, name, variant)
            || choose(&mut options.log.flush, name, variant)
            || choose(&mut options.log.wake, name, variant)
            || choose(&mut options.log.sync, name, variant)
            || choose(&mut options.commits.lock_release, name, variant)
            || choose(&mut options.commits.order, name, variant)
            || choose(&mut options.locks.relation_locks, name, variant)
            || choose(&mut options.locks.row_locks, name, variant)
            || choose(&mut time_slice, name, variant);
        assert!(known, "CLEARWAY_MECHANISMS: storage has no switch {name}");
    }
    options.set_lwlock(lwlock);
    Native::set_time_slice(time_slice, Clients::InProcess).expect("a time slice");
    options
}

/// Options as [`options`] for a small database that does not wait for the disk: 128 frames.
#[allow(dead_code, reason = "some suites have databases of another kind")]
pub fn small_database(sessions_max: u32) -> StorageOptions {
    StorageOptions {
        buffer_bytes: 1 << 20,
        fsync: false,
        sessions_max,
        ..options()
    }
}

/// The default options of a standby with the variants that the environment variable names.
#[allow(dead_code, reason = "only some suites have a standby")]
pub fn standby() -> StandbyOptions {
    let mut options = StandbyOptions::default();
    for (name, variant) in &assignments() {
        choose_for_standby(&mut options, name, variant);
    }
    options
}

fn assignments() -> Vec<(String, String)> {
    let mechanisms = std::env::var("CLEARWAY_MECHANISMS").unwrap_or_default();
    let assignments = mechanisms.split(',').filter(|assignment| !assignment.is_empty());
    assignments
        .map(|assignment| {
            let (name, variant) = assignment.trim().split_once('=').expect("name=variant");
            (name.to_owned(), variant.to_owned())
        })
        .collect()
}

fn choose_for_standby(options: &mut StandbyOptions, name: &str, variant: &str) -> bool {
    choose(&mut options.known_xids, name, variant)
        || choose(&mut options.known_xids_compaction, name, variant)
        || choose(&mut options.replay, name, variant)
}

/// Sets the switch if it is the one of that name.
fn choose<S: Switch>(switch: &mut S, name: &str, variant: &str) -> bool {
    if S::NAME != name {
        return false;
    }
    let chosen = S::named(variant);
    *switch = chosen.unwrap_or_else(|| panic!("CLEARWAY_MECHANISMS: {name} has no variant {variant}"));
    true
}
