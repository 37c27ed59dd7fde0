//! LwLocks between processes, with processes: children that are programs of their own, map the segment elsewhere, and are killed.
//! And what is refused.

#[path = "support/child.rs"]
#[allow(dead_code, reason = "other tests have other needs of it")]
mod child;
#[path = "support/random.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Barrier;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use child::{
    CLASS, PATIENCE, Process, STORIES, View, WORKERS, await_that, end_fork, one_at_a_time, ready_child,
    sleeper,
};
use clearway_latch::interprocess::{RecoveryReport, Segment, SegmentError, SegmentMode, SegmentWorker};
use clearway_latch::{LatchMode, LwLockFairnessVariant};
use clearway_machine::Switch;
use random::Random;

/// Not a test of its own: what a child does.
#[test]
fn role_of_a_child() {
    let Ok(role) = std::env::var("CLEARWAY_ROLE") else {
        return;
    };
    let view = View::of_environment();
    let worker = view.segment.register().unwrap();
    let latch = view.segment.lwlock(view.latch).unwrap();
    let data = view.data();
    data.ready.fetch_add(1, Release);
    match role.as_str() {
        "once" => once(&view, &worker, LatchMode::Exclusive),
        "once_shared" => once(&view, &worker, LatchMode::Shared),
        "work" => {
            // All at once, or each would be alone.
            await_that("all are ready", || data.ready.load(Acquire) == 3);
            for round in 0..2_000 {
                if round % 4 == 0 {
                    let _held = worker.shared(latch).unwrap();
                    data.check();
                } else {
                    let _held = worker.exclusive(latch).unwrap();
                    data.check();
                    data.add_one();
                    if round % 8 == 1 {
                        // Others find the latch held, and sleep.
                        std::thread::yield_now();
                    }
                }
            }
        }
        "go_on" => {
            while data.stop.load(Relaxed) == 0 {
                let held = match worker.exclusive(latch) {
                    Err(SegmentError::Broken) => return,
                    held => held.unwrap(),
                };
                data.check();
                data.add_one();
                drop(held);
                data.progress.fetch_add(1, Relaxed);
            }
        }
        "die_inside" | "die_inside_shared" => {
            let mode = if role == "die_inside" {
                LatchMode::Exclusive
            } else {
                LatchMode::Shared
            };
            worker.acquire(latch, mode).unwrap();
            data.pair[0].fetch_add(1, Relaxed);
            data.ready.fetch_add(1, Release);
            std::thread::sleep(PATIENCE);
        }
        role => panic!("no role {role}"),
    }
}

fn once(view: &View, worker: &SegmentWorker<'_>, mode: LatchMode) {
    let latch = view.segment.lwlock(view.latch).unwrap();
    worker.acquire(latch, mode).unwrap();
    if mode == LatchMode::Exclusive {
        view.data().add_one();
    }
    view.data().check();
    // SAFETY: acquired above.
    unsafe { worker.release(latch, mode) }.unwrap();
}

fn going_on(view: &View) -> [Process; 2] {
    [ready_child(view, "go_on"), ready_child(view, "go_on")]
}

// Mutation: futexes of all processes are private.
#[test]
fn processes_exclude_each_other_at_different_addresses() {
    let _one = one_at_a_time();
    for fairness in LwLockFairnessVariant::ALL {
        let view = View::new(*fairness);
        let mut children: Vec<_> = (0..3).map(|_| view.child("work")).collect();
        children.iter_mut().for_each(Process::expect_success);
        assert_eq!(view.data().check(), 3 * 1_500);
        assert!(view.segment.processes().is_empty());
    }
}

#[test]
fn the_wake_up_of_a_process_killed_asleep_goes_to_the_next() {
    let _one = one_at_a_time();
    for fairness in LwLockFairnessVariant::ALL {
        for story in STORIES {
            for role in ["once", "once_shared"] {
                let view = View::new(*fairness);
                let worker = view.segment.register().unwrap();
                let held = worker
                    .exclusive(view.segment.lwlock(view.latch).unwrap())
                    .unwrap();
                let mut killed = sleeper(&view, role);
                let mut lives = sleeper(&view, "once");
                story.happens(&view, &mut killed, || drop(held));
                lives.expect_success();
                assert_eq!(view.data().check(), 1, "{fairness:?} {story:?} {role}");
                assert!(!view.segment.lwlock(view.latch).unwrap().is_held());
            }
        }
    }
}

#[test]
fn a_process_killed_at_any_moment_is_settled_or_found() {
    const ROUNDS: u64 = 150;
    let _one = one_at_a_time();
    let mut random = Random(std::env::var("SEED").map_or(7, |seed| seed.parse().unwrap()));
    let mut view = View::new(LwLockFairnessVariant::Barging);
    let mut lives = going_on(&view);
    let (mut settled, mut found) = (0, 0);
    for round in 0..ROUNDS {
        let mut killed = ready_child(&view, "go_on");
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
        assert!(view.segment.is_broken());
        lives.iter_mut().for_each(Process::kill);
        drop(view);
        view = View::new(LwLockFairnessVariant::ALL[(round % 4) as usize]);
        lives = going_on(&view);
    }
    view.data().stop.store(1, Relaxed);
    lives.iter_mut().for_each(Process::expect_success);
    assert!(view.segment.processes().is_empty());
    assert!(
        settled > 0 && found > 0,
        "{settled} settled, {found} found inside"
    );
}

#[test]
fn a_process_killed_inside_breaks_the_segment() {
    let _one = one_at_a_time();
    for role in ["die_inside", "die_inside_shared"] {
        let view = View::new(LwLockFairnessVariant::Barging);
        let worker = view.segment.register().unwrap();
        let latch = view.segment.lwlock(view.latch).unwrap();
        let mut killed = view.child(role);
        await_that("the child is inside", || view.data().ready.load(Acquire) == 2);
        assert_eq!(view.recover(), RecoveryReport::default(), "it lives");
        assert_eq!(view.segment.processes().len(), 2, "it lives");
        killed.kill();
        let [living] = view.segment.processes()[..] else {
            panic!("the dead one is none to be ended");
        };
        assert_eq!(living.pid(), std::process::id());
        let report = view.recover();
        let [holder] = &report.holders[..] else {
            panic!("{report:?}");
        };
        assert_eq!(holder.process.pid(), killed.0.id());
        assert_eq!(holder.changing, None);
        let held: Vec<_> = holder.held.iter().map(|held| (held.offset, held.mode)).collect();
        let mode = if role == "die_inside" {
            SegmentMode::Exclusive
        } else {
            SegmentMode::Shared
        };
        assert_eq!(held, [(view.latch, mode)]);
        // Nothing goes on in it.
        assert_eq!(
            worker.try_acquire(latch, LatchMode::Shared),
            Err(SegmentError::Broken)
        );
        assert_eq!(worker.shared(latch).unwrap_err(), SegmentError::Broken);
        assert_eq!(view.segment.recover_dead(), Err(SegmentError::Broken));
        drop(worker);
        assert_eq!(view.segment.register().unwrap_err(), SegmentError::Broken);
        let (address, size) = (view.mapping.address, view.mapping.size);
        let View { segment, mapping, .. } = view;
        drop(segment);
        // SAFETY: mapped until below.
        let attached = unsafe { Segment::attach(address, size) };
        assert_eq!(attached.unwrap_err(), SegmentError::Broken);
        drop(mapping);
    }
}

#[test]
fn a_child_of_a_fork_is_not_its_parents_worker() {
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let worker = view.segment.register().unwrap();
    let latch = view.segment.lwlock(view.latch).unwrap();
    let held = worker.exclusive(latch).unwrap();
    // SAFETY: the child uses this thread's data alone, and ends without running what the harness has set up.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = catch_unwind(AssertUnwindSafe(|| worker.acquire(latch, LatchMode::Shared)));
        // A copy of the guard and of the worker: neither releases anything.
        drop(held);
        drop(worker);
        end_fork(|| {
            assert_eq!(refused.unwrap(), Err(SegmentError::NotRegistered));
            let again = view.segment.register().unwrap();
            assert_eq!(again.try_acquire(latch, LatchMode::Shared), Ok(false));
            view.data().ready.store(1, Release);
            // The parent's latch is none of the child's for the check of the order of latches, either.
            assert!(again.shared(latch).is_ok());
        });
    }
    await_that("the child was refused", || view.data().ready.load(Acquire) == 1);
    assert_eq!(view.segment.processes().len(), 2);
    assert!(latch.is_held());
    assert_eq!(view.recover(), RecoveryReport::default());
    drop(held);
    let mut status = 0;
    // SAFETY: writes the status of the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(!latch.is_held());
}

#[test]
fn a_copy_of_a_worker_that_has_left_is_not_the_next_worker_of_its_slot() {
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let worker = view.segment.register().unwrap();
    let slot = worker.id();
    // SAFETY: the child uses this thread's data alone, and ends without running what the harness has set up.
    let child = unsafe { libc::fork() };
    if child == 0 {
        end_fork(|| {
            await_that("the parent has left", || view.data().stop.load(Acquire) == 1);
            let again = view.segment.register().unwrap();
            let latch = view.segment.lwlock(view.latch).unwrap();
            assert_eq!(again.id(), slot);
            let refused = worker.acquire(latch, LatchMode::Shared);
            assert_eq!(refused, Err(SegmentError::NotRegistered));
            // The copy of the parent's.
            drop(worker);
            assert!(again.shared(latch).is_ok());
            assert_eq!(view.segment.processes().len(), 1);
        });
    }
    drop(worker);
    view.data().stop.store(1, Release);
    let mut status = 0;
    // SAFETY: writes the status of the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn the_worker_after_the_last_and_the_latch_after_the_last_are_refused() {
    const HELD_MAX: usize = 200;
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let worker = view.segment.register().unwrap();
    let latch = view.segment.lwlock(view.latch).unwrap();
    let all_are_in = Barrier::new(WORKERS as usize);
    std::thread::scope(|scope| {
        for _ in 1..WORKERS {
            scope.spawn(|| {
                let worker = view.segment.register();
                all_are_in.wait();
                all_are_in.wait();
                drop(worker.unwrap());
            });
        }
        all_are_in.wait();
        let refused = scope.spawn(|| view.segment.register().map(drop)).join().unwrap();
        all_are_in.wait();
        assert_eq!(refused, Err(SegmentError::NoSlot { workers: WORKERS }));
    });
    let latches: Vec<_> = (0..=HELD_MAX)
        .map(|_| {
            view.segment
                .place_lwlock(CLASS, LwLockFairnessVariant::Barging)
                .unwrap()
        })
        .map(|offset| view.segment.lwlock(offset).unwrap())
        .collect();
    let (last, held) = latches.split_last().unwrap();
    for latch in held {
        worker.acquire(latch, LatchMode::Exclusive).unwrap();
    }
    assert_eq!(
        worker.acquire(last, LatchMode::Exclusive),
        Err(SegmentError::TooManyHeld)
    );
    assert_eq!(
        worker.try_acquire(last, LatchMode::Exclusive),
        Err(SegmentError::TooManyHeld)
    );
    assert!(!last.is_held() && held.iter().all(|latch| latch.is_held()));
    for latch in held {
        // SAFETY: acquired above.
        unsafe { worker.release(latch, LatchMode::Exclusive) }.unwrap();
    }
    assert!(!held.iter().any(|latch| latch.is_held()) && !latch.is_held());
}

#[test]
fn what_is_no_segment_of_this_program_is_refused() {
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let (address, size) = (view.mapping.address, view.mapping.size);
    // SAFETY: for each of these: mapped as long as this test, and refused or dropped at once.
    let attach = |address: NonNull<u8>, size| unsafe { Segment::attach(address, size).map(drop) };
    assert_eq!(attach(address, size), Err(SegmentError::AlreadyAttached));
    let worker = view.segment.register().unwrap();
    assert_eq!(
        view.segment.register().unwrap_err(),
        SegmentError::AlreadyRegistered
    );
    assert_eq!(
        view.segment.lwlock(view.latch + 4).unwrap_err(),
        SegmentError::NotThere
    );
    assert_eq!(
        view.segment.lwlock(view.latch + 2).unwrap_err(),
        SegmentError::NotThere
    );
    assert_eq!(view.segment.lwlock(0).unwrap_err(), SegmentError::NotThere);
    assert_eq!(view.segment.lwlock(u64::MAX).unwrap_err(), SegmentError::NotThere);
    assert!(matches!(
        view.segment.reserve(1 << 30, 8),
        Err(SegmentError::NoRoom { .. })
    ));
    let latch = view.segment.lwlock(view.latch).unwrap();
    // SAFETY: refused.
    let released = unsafe { worker.release(latch, LatchMode::Shared) };
    assert_eq!(released, Err(SegmentError::NotHeld));
    drop(worker);
    let View {
        segment,
        mapping,
        file,
        ..
    } = view;
    drop(segment);
    assert_eq!(attach(address, size), Ok(()));
    let other_size = Err(SegmentError::OtherSize {
        made: size as u64,
        given: size as u64 - 4096,
    });
    assert_eq!(attach(address, size - 4096), other_size);
    // SAFETY: within the mapping.
    let beside = unsafe { address.add(64) };
    assert_eq!(attach(beside, size - 64), Err(SegmentError::Misaligned));
    assert!(matches!(attach(address, 64), Err(SegmentError::TooSmall { .. })));
    // SAFETY: the number of workers, which no process uses now.
    let workers = unsafe { AtomicU32::from_ptr(address.as_ptr().add(24).cast()) };
    for wrong in [0, u32::MAX] {
        let right = workers.swap(wrong, Relaxed);
        assert_eq!(right, WORKERS);
        assert_eq!(attach(address, size), Err(SegmentError::NotASegment));
        workers.store(right, Relaxed);
    }
    // SAFETY: the word of the layout, which no process uses now.
    unsafe { *address.as_ptr().add(8) ^= 1 };
    assert!(matches!(
        attach(address, size),
        Err(SegmentError::OtherLayout { .. })
    ));
    // SAFETY: the magic.
    unsafe { *address.as_ptr() ^= 1 };
    assert_eq!(attach(address, size), Err(SegmentError::NotASegment));
    drop(mapping);
    drop(file);
}
