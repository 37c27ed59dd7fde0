//! The checker of the order in which latches are taken. It exists in debug builds only, and so do its tests.
#![cfg(debug_assertions)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use clearway_latch::{LatchClass, LatchMode, LwLock, LwLockVariant, SrwCondvar, SrwMutex, Unclassed};
use clearway_machine::{Native, WaitEvent};

static PARENT: LatchClass = LatchClass::new("Parent", WaitEvent::UserLatch, 10);
static CHILD: LatchClass = LatchClass::new("Child", WaitEvent::UserLatch, 20);
static ANYWHERE: LatchClass = LatchClass::new("Anywhere", WaitEvent::UserLatch, 0);

fn latch(class: &'static LatchClass) -> LwLock<Native> {
    LwLock::new(class, LwLockVariant::SingleCas)
}

/// The message that `act` panics with.
fn complaint(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("nothing was reported");
    *panic.downcast::<String>().expect("a message")
}

#[test]
fn a_wrong_order_is_reported_with_both_names_and_places() {
    let (parent, child) = (latch(&PARENT), latch(&CHILD));
    let held_at = line!() + 1;
    let held = child.shared();
    let wanted_at = line!() + 1;
    let message = complaint(|| drop(parent.exclusive()));
    for part in [
        "Parent (rank 10)".to_owned(),
        "Child (rank 20)".to_owned(),
        format!("order.rs:{held_at}:"),
        format!("order.rs:{wanted_at}:"),
    ] {
        assert!(message.contains(&part), "{part:?} is not in {message:?}");
    }
    drop(held);
    // Nothing is left behind: neither the latch nor the checker remembers the attempt.
    let _both = (parent.exclusive(), child.exclusive());
}

#[test]
fn a_thread_that_waits_for_itself_is_told() {
    let parent = latch(&PARENT);
    for first in [LatchMode::Shared, LatchMode::Exclusive] {
        for second in [LatchMode::Shared, LatchMode::Exclusive] {
            parent.acquire(first);
            let message = complaint(|| parent.acquire(second));
            assert!(message.contains("it would wait for itself"), "{message}");
            // SAFETY: acquired above, in that mode.
            unsafe { parent.release(first) };
        }
    }
    let _held = parent.exclusive();
    assert!(complaint(|| drop(parent.acquire_or_wait())).contains("wait for itself"));
}

#[test]
fn what_cannot_wait_is_not_asked_but_remembered() {
    let (parent, child) = (latch(&PARENT), latch(&CHILD));
    let held = child.exclusive();
    assert!(child.try_shared().is_none(), "no wait, so no complaint");
    let _parent = parent.try_exclusive().expect("free");
    drop(held);
    assert!(complaint(|| drop(parent.shared())).contains("wait for itself"));
}

#[test]
fn equal_ranks_and_rank_0_have_no_order() {
    let (one, other, anywhere) = (latch(&CHILD), latch(&CHILD), latch(&ANYWHERE));
    let _one = one.exclusive();
    let _other = other.exclusive();
    let _anywhere = anywhere.exclusive();
    assert!(complaint(|| drop(latch(&PARENT).shared())).contains("Child"));
}

#[test]
fn guards_may_be_dropped_in_any_order() {
    let (parent, child) = (latch(&PARENT), latch(&CHILD));
    let outer = parent.shared();
    let inner = child.shared();
    drop(outer);
    assert!(complaint(|| drop(parent.shared())).contains("Child"));
    drop(inner);
    drop(parent.shared());
}

/// A wait for a condition takes its mutex again: behind a latch that was taken after it, that is the opposite order. One taken
/// before it is none of its business.
#[test]
fn a_condition_is_not_waited_for_with_a_later_latch() {
    let (parent, child) = (latch(&PARENT), latch(&CHILD));
    let (mutex, more) = (SrwMutex::<Unclassed>::new(), SrwCondvar::<Unclassed>::new());
    let _first = parent.exclusive();
    let mut held = mutex.exclusive();
    assert!(more.wait_for(&mut held, Duration::from_millis(1)));
    let later = child.exclusive();
    let message = complaint(|| {
        more.wait_for(&mut held, Duration::from_millis(1));
    });
    for part in [
        "user is given up for a condition",
        "Child, which was taken behind it",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    drop(later);
    // The mutex is held all the same, and no waiter is counted.
    assert!(mutex.is_held() && more.waiters() == 0);
    assert!(more.wait_for(&mut held, Duration::from_millis(1)));
}
