//! A checker of the order in which latches are taken, in debug builds.
//!
//! Each thread keeps a list of the latches that it holds. Before an acquisition that may wait, the checker
//! asks two questions:
//!
//! - Does the thread hold this very latch already? Then it would wait for itself. (Two shared acquisitions
//!   are no exception: an exclusive that queues between them may close the cycle, depending on the latch's
//!   fairness.)
//! - Does the thread hold a latch of a higher rank? Then two threads that take the two latches in opposite
//!   orders may wait for each other. The checker does not need to see that happen.
//!
//! Before a wait for a condition, which gives one latch up and takes it again, it asks a third: has the thread taken another
//! latch behind that one? It would hold it while it waits for the first again.
//!
//! Each is a panic that names both latches and the places where they were taken. A conditional acquire
//! never waits, so it is not checked, but its latch joins the list. Latches of equal rank, such as pages of
//! one index, and latches of rank 0 have no order that the checker knows.
//!
//! A release build has no checker, nor has a build without std, nor a machine whose workers are not threads,
//! because the list belongs to the thread.
//!
//! Origin: the kernel's lockdep and InnoDB's latch levels; a rank is their simplest form.

use clearway_machine::Machine;

use crate::class::LatchClass;

#[cfg(all(debug_assertions, feature = "std"))]
mod held {
    use core::cell::RefCell;
    use core::panic::Location;

    use crate::class::LatchClass;

    #[derive(Debug, Clone, Copy)]
    struct Held {
        class: &'static LatchClass,
        address: usize,
        place: &'static Location<'static>,
    }

    thread_local! {
        static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    }

    /// The violation, if the thread may not wait for this latch now.
    pub(super) fn violation(
        class: &'static LatchClass,
        address: usize,
        place: &'static Location<'static>,
    ) -> Option<String> {
        // A thread that is ending has no list, and is not checked.
        HELD.try_with(|held| {
            let held = held.borrow();
            if let Some(same) = held.iter().find(|held| held.address == address) {
                return Some(format!(
                    "latch {} is wanted at {place} by the thread that holds it since {}: it would wait for itself",
                    class.name, same.place
                ));
            }
            let higher = held.iter().filter(|held| class.rank != 0 && held.class.rank > class.rank);
            higher.max_by_key(|held| held.class.rank).map(|other| {
                format!(
                    "latch order: {} (rank {}) is wanted at {place} while {} (rank {}) is held since {}; \
                     latches are taken in order of ascending rank",
                    class.name, class.rank, other.class.name, other.class.rank, other.place
                )
            })
        })
        .unwrap_or(None)
    }

    /// The violation, if the thread may not give this latch up and take it again now.
    pub(super) fn violation_of_wait(
        class: &'static LatchClass,
        address: usize,
        place: &'static Location<'static>,
    ) -> Option<String> {
        HELD.try_with(|held| {
            let held = held.borrow();
            let own = held.iter().rposition(|held| held.address == address)?;
            held.get(own + 1).map(|other| {
                format!(
                    "latch order: {} is given up for a condition at {place} while {}, which was taken behind it, is held \
                     since {}; it would be taken again in the opposite order",
                    class.name, other.class.name, other.place
                )
            })
        })
        .unwrap_or(None)
    }

    pub(super) fn classes() -> Vec<&'static str> {
        HELD.try_with(|held| held.borrow().iter().map(|held| held.class.name).collect())
            .unwrap_or_default()
    }

    pub(super) fn add(class: &'static LatchClass, address: usize, place: &'static Location<'static>) {
        let _ = HELD.try_with(|held| {
            held.borrow_mut().push(Held {
                class,
                address,
                place,
            })
        });
    }

    pub(super) fn remove_within(addresses: core::ops::Range<usize>) {
        let _ = HELD.try_with(|held| {
            held.borrow_mut()
                .retain(|held| !addresses.contains(&held.address))
        });
    }

    pub(super) fn remove(address: usize) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            // Not found if another thread acquired it, for latches that allow that.
            if let Some(last) = held.iter().rposition(|held| held.address == address) {
                held.remove(last);
            }
        });
    }
}

/// The names of the classes of the latches that the calling thread holds, in the order in which it took them.
/// For tests: empty in a release build.
#[cfg(feature = "std")]
pub fn held_classes() -> Vec<&'static str> {
    #[cfg(debug_assertions)]
    return held::classes();
    #[cfg(not(debug_assertions))]
    Vec::new()
}

/// The caller is about to acquire a latch and may have to wait for it.
#[inline(always)]
#[track_caller]
pub(crate) fn acquiring<M: Machine>(class: &'static LatchClass, address: *const ()) {
    #[cfg(all(debug_assertions, feature = "std"))]
    if M::THREADS_ARE_WORKERS
        && let Some(violation) = held::violation(class, address.addr(), core::panic::Location::caller())
    {
        panic!("{violation}");
    }
    let _ = (class, address, M::THREADS_ARE_WORKERS);
}

/// The caller, which holds a latch, is about to give it up and take it again.
#[inline(always)]
#[track_caller]
pub(crate) fn waiting_without<M: Machine>(class: &'static LatchClass, address: *const ()) {
    #[cfg(all(debug_assertions, feature = "std"))]
    if M::THREADS_ARE_WORKERS
        && let Some(violation) =
            held::violation_of_wait(class, address.addr(), core::panic::Location::caller())
    {
        panic!("{violation}");
    }
    let _ = (class, address, M::THREADS_ARE_WORKERS);
}

/// The caller has acquired a latch.
#[inline(always)]
#[track_caller]
pub(crate) fn acquired<M: Machine>(class: &'static LatchClass, address: *const ()) {
    #[cfg(all(debug_assertions, feature = "std"))]
    if M::THREADS_ARE_WORKERS {
        held::add(class, address.addr(), core::panic::Location::caller());
    }
    let _ = (class, address, M::THREADS_ARE_WORKERS);
}

/// The caller is about to release a latch.
#[inline(always)]
pub(crate) fn released<M: Machine>(address: *const ()) {
    #[cfg(all(debug_assertions, feature = "std"))]
    if M::THREADS_ARE_WORKERS {
        held::remove(address.addr());
    }
    let _ = (address, M::THREADS_ARE_WORKERS);
}

/// The caller holds no latch at these addresses: a child of `fork` has its parent's list, and not what the parent holds in
/// memory that they share.
#[cfg(feature = "std")]
pub(crate) fn none_held_within(addresses: core::ops::Range<usize>) {
    #[cfg(debug_assertions)]
    held::remove_within(addresses);
    #[cfg(not(debug_assertions))]
    let _ = addresses;
}
