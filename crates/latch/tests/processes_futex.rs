//! Mutexes and latches with shared, update and exclusive modes between processes, with processes: children that are programs of
//! their own, map the segment elsewhere, and are killed.
//!
//! A stopped process is not on the kernel's list of sleepers, so no case here has a process that was woken and dies before it
//! looks. That one is `loom_recovery_futex`'s.

#[path = "support/child.rs"]
#[allow(dead_code, reason = "other tests have other needs of it")]
mod child;
#[path = "support/random.rs"]
mod random;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use child::{PATIENCE, Process, STORIES, View, await_that, end_fork, one_at_a_time, ready_child, sleeper};
use clearway_latch::LwLockFairnessVariant;
use clearway_latch::interprocess::SegmentMode::{self, Exclusive, Shared, Update};
use clearway_latch::interprocess::{SegmentError, SegmentMutex, SegmentRwLock, SegmentWorker};
use random::Random;

/// A latch of the view, and the mode in which it is used; none for the mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Use(Option<SegmentMode>);

const MUTEX: Use = Use(None);
const ALL: [Use; 4] = [MUTEX, Use(Some(Shared)), Use(Some(Update)), Use(Some(Exclusive))];

impl Use {
    fn name(self) -> &'static str {
        match self.0 {
            None => "mutex",
            Some(Shared) => "shared",
            Some(Update) => "update",
            Some(Exclusive) => "exclusive",
        }
    }

    fn of_name(name: &str) -> Self {
        *ALL.iter().find(|one| one.name() == name).unwrap()
    }

    /// The offset of its latch.
    fn offset(self, view: &View) -> u64 {
        self.0.map_or(view.mutex, |_| view.rwlock)
    }

    fn acquire(self, view: &View, worker: &SegmentWorker<'_>) -> Result<(), SegmentError> {
        match self.0 {
            None => worker.acquire_mutex(view.segment.mutex(view.mutex)?),
            Some(mode) => worker.acquire_rwlock(view.segment.rwlock(view.rwlock)?, mode),
        }
    }

    fn try_acquire(self, view: &View, worker: &SegmentWorker<'_>) -> Result<bool, SegmentError> {
        let at_once = Duration::ZERO;
        match self.0 {
            None => worker.try_acquire_mutex_for(view.segment.mutex(view.mutex)?, at_once),
            Some(mode) => worker.try_acquire_rwlock_for(view.segment.rwlock(view.rwlock)?, mode, at_once),
        }
    }

    /// Releases the latch, which the worker has acquired without a guard.
    fn release(self, view: &View, worker: &SegmentWorker<'_>) -> Result<(), SegmentError> {
        // SAFETY: no test here has a guard of a latch that it releases so.
        unsafe {
            match self.0 {
                None => worker.release_mutex(view.segment.mutex(view.mutex)?),
                Some(mode) => worker.release_rwlock(view.segment.rwlock(view.rwlock)?, mode),
            }
        }
    }

    /// The caller holds the latch so.
    fn touch(self, view: &View) {
        if matches!(self.0, None | Some(Exclusive)) {
            view.data().add_one();
        }
        view.data().check();
    }
}

/// The words of both latches.
fn words(view: &View) -> Vec<u32> {
    let ranges = [
        (view.mutex, size_of::<SegmentMutex>()),
        (view.rwlock, size_of::<SegmentRwLock>()),
    ];
    let words = ranges.into_iter().flat_map(|(offset, size)| {
        let place = view.segment.address_of(offset, size).unwrap().cast::<AtomicU32>();
        // SAFETY: words in the segment, which are changed as atomics.
        (0..size / 4).map(move |number| unsafe { place.add(number).as_ref() }.load(Acquire))
    });
    words.collect()
}

/// Not a test of its own: the life of a child, which is `<act> <use>`.
#[test]
fn role_of_a_child() {
    let Ok(role) = std::env::var("CLEARWAY_ROLE") else {
        return;
    };
    let view = View::of_environment();
    let worker = view.segment.register().unwrap();
    let data = view.data();
    let (act, name) = role.split_once(' ').unwrap();
    let wanted = Use::of_name(name);
    data.ready.fetch_add(1, Release);
    match act {
        "once" => {
            wanted.acquire(&view, &worker).unwrap();
            wanted.touch(&view);
            wanted.release(&view, &worker).unwrap();
        }
        "stay" => {
            wanted.acquire(&view, &worker).unwrap();
            data.ready.fetch_add(1, Release);
            std::thread::sleep(PATIENCE);
        }
        "upgrade" => {
            let held = worker.update(view.segment.rwlock(view.rwlock).unwrap()).unwrap();
            data.ready.fetch_add(1, Release);
            drop(held.exclusive());
        }
        "work" => {
            // All at once, or each would be alone.
            await_that("all are ready", || data.ready.load(Acquire) == 3);
            for round in 0..2_000 {
                work(&view, &worker, wanted, round);
            }
        }
        "go_on" => {
            for round in 0.. {
                if data.stop.load(Relaxed) != 0 || view.segment.is_broken() {
                    break;
                }
                let wanted = if wanted == MUTEX {
                    MUTEX
                } else {
                    ALL[1 + round % 3]
                };
                match wanted.acquire(&view, &worker) {
                    Err(SegmentError::Broken) => return,
                    acquired => acquired.unwrap(),
                }
                wanted.touch(&view);
                wanted.release(&view, &worker).unwrap();
                data.progress.fetch_add(1, Relaxed);
            }
        }
        act => panic!("no act {act}"),
    }
}

/// One round: the mutex, or the latch in each mode and through each transition. Each adds one in four of five rounds.
fn work(view: &View, worker: &SegmentWorker<'_>, wanted: Use, round: u32) {
    let data = view.data();
    let add_one = || {
        data.check();
        data.add_one();
        if round % 8 == 1 {
            // Others find the latch held, and sleep.
            std::thread::yield_now();
        }
    };
    if wanted == MUTEX {
        let held = worker.lock(view.segment.mutex(view.mutex).unwrap()).unwrap();
        if !round.is_multiple_of(5) {
            add_one();
        }
        drop(held);
        return;
    }
    let latch = view.segment.rwlock(view.rwlock).unwrap();
    match round % 5 {
        0 => {
            let _held = worker.read(latch).unwrap();
            data.check();
        }
        1 => {
            let held = worker.update(latch).unwrap();
            data.check();
            let held = held.exclusive().unwrap();
            add_one();
            let held = held.update().unwrap();
            data.check();
            drop(held.shared().unwrap());
        }
        2 => {
            let held = worker.write(latch).unwrap();
            add_one();
            let held = held.shared().unwrap();
            data.check();
            if let Ok(held) = held.try_update().unwrap() {
                data.check();
                drop(held);
            }
        }
        _ => {
            let _held = worker.write(latch).unwrap();
            add_one();
        }
    }
}

fn new_view() -> View {
    View::new(LwLockFairnessVariant::Barging)
}

#[test]
fn processes_exclude_each_other_at_different_addresses() {
    let _one = one_at_a_time();
    for name in ["mutex", "exclusive"] {
        let view = new_view();
        let idle = words(&view);
        let mut children: Vec<_> = (0..3).map(|_| view.child(&format!("work {name}"))).collect();
        children.iter_mut().for_each(Process::expect_success);
        assert_eq!(view.data().check(), 3 * 1_600, "{name}");
        assert_eq!(words(&view), idle);
        assert!(view.segment.processes().is_empty());
    }
}

/// The parent holds the latch so; a child that wants it dies asleep, and another one gets it.
fn dead_sleeper(parent: Use, dead: Use, living: Use) {
    for story in STORIES {
        let view = new_view();
        let idle = words(&view);
        let worker = view.segment.register().unwrap();
        parent.acquire(&view, &worker).unwrap();
        let mut killed = sleeper(&view, &format!("once {}", dead.name()));
        let mut lives = sleeper(&view, &format!("once {}", living.name()));
        story.happens(&view, &mut killed, || parent.release(&view, &worker).unwrap());
        lives.expect_success();
        let case = format!("{parent:?} {dead:?} {living:?} {story:?}");
        assert_eq!(words(&view), idle, "{case}: something is left in a word");
        let added = u64::from(matches!(living.0, None | Some(Exclusive)));
        assert_eq!(view.data().check(), added, "{case}");
    }
}

#[test]
fn what_a_process_killed_asleep_on_a_mutex_has_counted_is_taken_back() {
    let _one = one_at_a_time();
    dead_sleeper(MUTEX, MUTEX, MUTEX);
}

#[test]
fn what_a_process_killed_asleep_in_any_mode_has_counted_is_taken_back() {
    let _one = one_at_a_time();
    let [_, shared, update, exclusive] = ALL;
    for (parent, dead, living) in [
        (exclusive, shared, exclusive),
        (exclusive, update, shared),
        (exclusive, exclusive, shared),
        (update, exclusive, update),
    ] {
        dead_sleeper(parent, dead, living);
    }
}

#[test]
fn a_process_killed_while_it_waits_for_readers_owns_the_latch_no_more() {
    let _one = one_at_a_time();
    let [_, shared, _, exclusive] = ALL;
    for living in [shared, exclusive] {
        let view = new_view();
        let idle = words(&view);
        let worker = view.segment.register().unwrap();
        shared.acquire(&view, &worker).unwrap();
        // It is the owner, and excludes the other one.
        let mut killed = sleeper(&view, "once exclusive");
        let mut lives = sleeper(&view, &format!("once {}", living.name()));
        killed.kill();
        assert_eq!(view.recover().asleep, 1);
        if living == shared {
            lives.expect_success();
        }
        shared.release(&view, &worker).unwrap();
        lives.expect_success();
        assert_eq!(words(&view), idle, "{living:?}: something is left in a word");
    }
}

#[test]
fn a_process_killed_holding_in_any_mode_breaks_the_segment() {
    let _one = one_at_a_time();
    for held in ALL {
        let view = new_view();
        let worker = view.segment.register().unwrap();
        let mut killed = view.child(&format!("stay {}", held.name()));
        await_that("the child is inside", || view.data().ready.load(Acquire) == 2);
        killed.kill();
        let report = view.recover();
        let [holder] = &report.holders[..] else {
            panic!("{held:?}: {report:?}");
        };
        assert_eq!((holder.process.pid(), holder.changing), (killed.0.id(), None));
        let noted: Vec<_> = holder.held.iter().map(|held| (held.offset, held.mode)).collect();
        assert_eq!(noted, [(held.offset(&view), held.0.unwrap_or(Exclusive))]);
        for wanted in ALL {
            assert_eq!(wanted.try_acquire(&view, &worker), Err(SegmentError::Broken));
        }
    }
}

#[test]
fn a_process_killed_while_it_upgrades_is_a_holder() {
    let _one = one_at_a_time();
    let view = new_view();
    let worker = view.segment.register().unwrap();
    let latch = view.segment.rwlock(view.rwlock).unwrap();
    let held = worker.read(latch).unwrap();
    let mut killed = view.child("upgrade update");
    await_that("the child is the updater", || {
        view.data().ready.load(Acquire) == 2
    });
    await_that("the child sleeps", || killed.is_in_state('S'));
    killed.kill();
    let report = view.recover();
    assert_eq!(report.holders.len(), 1, "{report:?}");
    assert_eq!(report.holders[0].changing, Some(view.rwlock));
    // A release in a broken segment clears the note alone.
    drop(held);
    assert_eq!(worker.held_count(), 0);
    assert!(latch.is_held());
}

#[test]
fn a_process_killed_at_any_moment_is_settled_or_found() {
    const ROUNDS: u64 = 100;
    let _one = one_at_a_time();
    let mut random = Random(std::env::var("SEED").map_or(7, |seed| seed.parse().unwrap()));
    let (mut settled, mut found) = (0, 0);
    for role in ["go_on mutex", "go_on exclusive"] {
        let mut view = new_view();
        let idle = words(&view);
        let going_on = |view: &View| [ready_child(view, role), ready_child(view, role)];
        let mut lives = going_on(&view);
        for round in 0..ROUNDS / 2 {
            let mut killed = ready_child(&view, role);
            std::thread::sleep(Duration::from_micros(random.below(1_500)));
            killed.kill();
            let report = view.recover_all();
            if report.holders.is_empty() {
                assert_eq!(report.asleep + report.outside, 1, "{round}: {report:?}");
                settled += 1;
                let before = view.data().progress.load(Relaxed);
                await_that("those that live go on", || {
                    view.data().progress.load(Relaxed) > before + 20
                });
                continue;
            }
            found += 1;
            assert_eq!(report.holders.len(), 1);
            assert_eq!(report.holders[0].process.pid(), killed.0.id());
            lives.iter_mut().for_each(Process::kill);
            drop(view);
            view = new_view();
            lives = going_on(&view);
        }
        view.data().stop.store(1, Relaxed);
        lives.iter_mut().for_each(Process::expect_success);
        assert_eq!(words(&view), idle, "{role}: something is left in a word");
    }
    assert!(
        settled > 0 && found > 0,
        "{settled} settled, {found} found inside"
    );
}

#[test]
fn what_a_worker_does_not_hold_it_neither_releases_nor_changes() {
    let _one = one_at_a_time();
    let view = new_view();
    let idle = words(&view);
    let worker = view.segment.register().unwrap();
    let latch = view.segment.rwlock(view.rwlock).unwrap();
    for held in ALL {
        assert_eq!(held.try_acquire(&view, &worker), Ok(true));
        for other in ALL.into_iter().filter(|other| *other != held) {
            assert_eq!(other.release(&view, &worker), Err(SegmentError::NotHeld));
        }
        for (before, after) in [(Shared, Update), (Update, Exclusive), (Exclusive, Shared)] {
            if held.0 != Some(before) {
                // SAFETY: refused.
                let changed = unsafe { worker.change_rwlock(latch, before, after) };
                assert_eq!(changed, Err(SegmentError::NotHeld));
            }
        }
        held.release(&view, &worker).unwrap();
    }
    // SAFETY: held without a guard.
    unsafe {
        worker.acquire_rwlock(latch, Shared).unwrap();
        assert_eq!(worker.change_rwlock(latch, Shared, Exclusive), Ok(false));
        assert_eq!(worker.change_rwlock(latch, Shared, Update), Ok(true));
        assert_eq!(worker.change_rwlock(latch, Update, Exclusive), Ok(true));
        worker.release_rwlock(latch, Exclusive).unwrap();
    }
    assert_eq!(words(&view), idle);
    for offset in [view.latch, view.data] {
        assert_eq!(view.segment.mutex(offset).unwrap_err(), SegmentError::NotThere);
        assert_eq!(view.segment.rwlock(offset).unwrap_err(), SegmentError::NotThere);
    }
}

#[test]
fn an_attempt_for_a_time_ends_and_leaves_nothing() {
    let _one = one_at_a_time();
    let [_, _, _, exclusive] = ALL;
    for held in [MUTEX, exclusive] {
        let view = new_view();
        let worker = view.segment.register().unwrap();
        let _stays = view.child(&format!("stay {}", held.name()));
        await_that("the child is inside", || view.data().ready.load(Acquire) == 2);
        let before = words(&view);
        let brief = Duration::from_millis(5);
        if held == MUTEX {
            let mutex = view.segment.mutex(view.mutex).unwrap();
            assert!(worker.try_lock_for(mutex, brief).unwrap().is_none());
        } else {
            let latch = view.segment.rwlock(view.rwlock).unwrap();
            for mode in [Shared, Update, Exclusive] {
                assert_eq!(worker.try_acquire_rwlock_for(latch, mode, brief), Ok(false));
            }
        }
        assert_eq!(words(&view), before, "{held:?}");
        assert_eq!(worker.held_count(), 0);
    }
}

#[test]
fn the_copies_of_guards_in_a_child_of_a_fork_release_nothing() {
    let _one = one_at_a_time();
    let view = new_view();
    let idle = words(&view);
    let worker = view.segment.register().unwrap();
    let mutex = worker.lock(view.segment.mutex(view.mutex).unwrap()).unwrap();
    let latch = worker.update(view.segment.rwlock(view.rwlock).unwrap()).unwrap();
    let held = words(&view);
    // SAFETY: the child uses this thread's data alone, and ends without running what the harness has set up.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = latch.exclusive().unwrap_err();
        drop(mutex);
        drop(worker);
        end_fork(|| assert_eq!(refused, SegmentError::NotRegistered));
    }
    let mut status = 0;
    // SAFETY: writes the status of the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(words(&view), held);
    drop((mutex, latch));
    assert_eq!(words(&view), idle);
}
