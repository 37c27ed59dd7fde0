//! Variant `cohort` of the switch `lwlock`: as `brief-polls`, and the workers of one NUMA node after the other have their
//! *term* at the latch.
//!
//! A latch that workers of several nodes want travels between the nodes, and with it the data that it protects. Each of
//! these transfers costs several times one within a node. While the workers of one node alone get the latch, all stays in
//! their node's caches.
//!
//! # Protocol
//! Beside the latch there is a word, the term: the node whose turn it is, and how many grants it has had
//! ([`Workers::node_term`](clearway_machine::Workers::node_term)). It concerns workers that want the latch exclusively and
//! that the word has refused; readers and the uncontended path do not know of it.
//! 1. A refused worker polls for the latch, as under `brief-polls`. If it is still refused it would join the list, or poll
//!    for the list's lock. Before that it looks at the term.
//! 2. Its own node's term: it goes on.
//! 3. Another node's term, of less than [`GRANTS`] grants: it sleeps for a time of [`SLEEP`], twice as long at each further
//!    time, and looks at the latch again. After [`SLEEPS`] times it goes on all the same.
//! 4. Another node's term that is over: it begins its own node's term, and goes on.
//! 5. A grant in a wait of the term's node is counted in the term.
//!
//! # Rules
//! - C1: the term is a hint, read and written `Relaxed`, and two latches may share one. No grant, queueing or wake-up
//!   depends on it, so R1 to R10 hold as they are. A wrong term costs sleeps.
//! - C2: those sleeps end by time. No worker needs to wake a worker that waits for a term, and none waits for more than
//!   [`SLEEPS`] of them, which is 26 ms in all.
//! - C3: on a machine with one node there is no term, and the variant is `single-cas` in all that it does.
//!
//! # Why not by the order of the list
//! The obvious way is a release that wakes the first sleeper of its own node. It changes nothing where the latch is wanted
//! most: those that wait are not on the list. They poll, or sleep because the list is locked, and which of them comes next is
//! the caches' choice (`docs/mechanisms/lwlock.md#variants`).
//!
//! # Origin
//! Lock cohorting (Dice, Marathe and Shavit, 2012) passes a lock on within a node for a bounded number of times; CNA (Dice
//! and Kogan, 2019) and ShflLock (Kashyap and others, 2019) reorder a queue of spinning threads to that end. To do it by timed
//! sleeps of the other nodes' workers, beside a latch that newcomers may take, is ours.

use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use clearway_machine::{AtomicWord, Machine, WaitEvent, WaitScope};

use super::options::LwLockVariant;
use super::{LatchMode, LwLock};
use crate::class::ClassHandle;

/// Grants in waits of one term, after which the next node may begin its own. Simulated on four sockets with 288 workers, 512
/// make 0.90 times as many acquisitions, 4,000 make 1.04, and 64 with half the sleeps 0.63.
const GRANTS: u32 = 1_024;

/// Sleeps of a worker in other nodes' terms. With 6 it is 0.86 times, with 16 the same.
const SLEEPS: u32 = 8;

/// The first of them.
const SLEEP: Duration = Duration::from_micros(100);

/// In a term: the node. Numbers from 256 on share one with a lower number.
const NODE: u32 = 0xff;
/// In a term: one grant.
const GRANT_UNIT: u32 = 1 << 8;

const _: () = assert!(GRANTS < u32::MAX / GRANT_UNIT);

/// Under a checker one grant and one sleep, so that few workers reach the ends.
const fn grants<M: Machine>() -> u32 {
    if M::EXPLORED { 1 } else { GRANTS }
}

/// A worker's part in the terms of a latch, in one wait.
#[derive(Debug)]
pub(super) struct Turn<M: Machine> {
    /// `None`: terms do not concern this wait.
    term: Option<&'static M::U32>,
    node: u32,
    /// Sleeps left.
    sleeps: u32,
    /// The next sleep.
    sleep: Duration,
}

impl<M: Machine> Turn<M> {
    /// The part of a worker that wants `latch` in `mode`.
    pub(super) fn of<K: ClassHandle>(latch: &LwLock<M, K>, mode: LatchMode) -> Self {
        let concerned = latch.keeps_to_terms() && mode == LatchMode::Exclusive;
        let address = core::ptr::from_ref(&latch.state).addr();
        Self {
            term: concerned.then(|| M::workers().node_term(address)).flatten(),
            node: if concerned { M::cpu().node & NODE } else { 0 },
            sleeps: if M::EXPLORED { 1 } else { SLEEPS },
            sleep: SLEEP,
        }
    }

    /// True if terms concern this wait.
    pub(super) fn concerns(&self) -> bool {
        self.term.is_some()
    }

    /// Sleeps once if it is another node's term (step 3). `false`: the worker goes on.
    pub(super) fn sleeps_through(&mut self) -> bool {
        let Some(word) = self.term else {
            return false;
        };
        if self.sleeps == 0 {
            return false;
        }
        let term = word.load(Relaxed);
        if term & NODE == self.node {
            return false;
        }
        if term / GRANT_UNIT >= grants::<M>() {
            // If the CAS fails another worker has begun a term, and this one need not care whose.
            let _ = word.compare_exchange(term, self.node, Relaxed, Relaxed);
            return false;
        }
        self.sleeps -= 1;
        {
            let _wait = WaitScope::<M>::enter(WaitEvent::SpinDelay);
            M::sleep(self.sleep);
        }
        self.sleep *= 2;
        true
    }

    /// The latch was granted in this wait (step 5).
    pub(super) fn granted(&self) {
        let Some(word) = self.term else {
            return;
        };
        let term = word.load(Relaxed);
        // A term of its node that is over goes on while no other node asks. The holder of the latch counts, so a count is
        // lost only to a worker of another node that begins its term, which the store then ends.
        if term & NODE == self.node && term / GRANT_UNIT < grants::<M>() {
            word.store(term + GRANT_UNIT, Relaxed);
        }
    }
}

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// True if the latch's workers keep to terms (C3).
    pub(super) fn keeps_to_terms(&self) -> bool {
        self.algorithm == LwLockVariant::Cohort && M::cpu_counts().nodes > 1
    }
}
