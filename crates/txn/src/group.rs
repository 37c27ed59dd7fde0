//! A group: workers that want the same step taken at the same time, of which one takes it for all.
//!
//! It protects a step under a latch that many workers want at once. Each would wait for the latch, be woken, take the
//! step and hand the latch over; in a group one worker acquires the latch once and takes all their steps. What the step
//! is, and which latch it needs, is the business of the module that uses the group.
//!
//! # Rules
//! - R1: a worker that follows returns only after a leader has taken its step, or has said in its request that it did
//!   not.
//! - R2: no worker is woken while the latch is held.
//! - R3: between its call and waking the members the leader does nothing that can fail: others may follow it from when it
//!   has joined. If it unwinds all the same, the process ends: the members would sleep for ever.
//! - R4: a member's links are read before it is released. From then on they belong to the next group that it
//!   joins.
//! - R5: a worker is a member of one group at a time, and of none when its call returns, on every path.
//!
//! # Steps
//! A member is in one of three states: `OUTSIDE`, `MEMBER` (its step is to be taken), `ASLEEP` (so, and it must be
//! woken).
//!
//! 1. *Join*: write the request; state = `MEMBER`; link = the newest member; CAS the caller in as the newest. A worker
//!    that replaced "none" leads, each other follows. If the newest member's request does not go with the caller's, the
//!    caller does not join, and its state is `OUTSIDE` again.
//! 2. *Follow*: CAS the state from `MEMBER` to `ASLEEP`. If that fails, the step has been taken already. Otherwise
//!    sleep until the state is `OUTSIDE`.
//! 3. *Lead*: acquire the latch *first*, then swap "none" in for the newest member. All that joined until then are in
//!    the list; the next worker to join leads the next group, and waits for the latch meanwhile. Take each member's
//!    step. Release the latch.
//! 4. *Wake*: the members form a tree, each but the leaves having [`WAKES_EACH`] children. The leader wakes its
//!    children, each of those wakes its own, and returns. To wake: swap the state to `OUTSIDE`; if it was `ASLEEP`,
//!    wake the sleeper.
//!
//! # Why the simpler version is wrong
//! - The list taken before the latch is acquired: the group stays small, since the leader waits with its list complete,
//!   and each worker that comes meanwhile leads another group.
//! - Members popped one by one: between reading the newest member's link and replacing it, that member may be served,
//!   return and join again with another link. The pop then succeeds and drops the members behind it (ABA). Here a link
//!   is read only in a list that was taken as a whole.
//! - The leader wakes all: waking one sleeper costs 1 to 2 µs, so with 15 followers the leader's own client waits for
//!   15 wake-ups. In the tree each worker pays for at most [`WAKES_EACH`].
//!
//! # Orderings
//! - Join is a Release CAS, taking the list an Acquire swap. Between them the word changes by RMWs only, which continue
//!   each member's release sequence: the leader sees the request of every member, and all that the member did before it
//!   joined.
//! - Waking is a Release swap of the state, and the member's look at it an Acquire: the member sees its step taken, its
//!   children, and their links. A child woken by a member sees what the leader wrote, because the member saw it first.
//! - The sleep's CAS and the waker's swap are RMWs of one word, so one comes first: either the CAS fails, or the waker
//!   finds `ASLEEP`. A sleeper sleeps only while the word holds `ASLEEP`; so a wake-up that arrives late, at a worker
//!   that has joined again, makes it look once more and sleep on. Nothing is taken from the worker's semaphore, so
//!   there is no post of another wait to give back.
//!
//! # Linearization
//! A member's step happens at the leader's, under the latch.
//!
//! # Costs
//! 128 bytes a member, and as many for the list. A worker that follows: one CAS to join, one to sleep, one sleep, and
//! up to [`WAKES_EACH`] wake-ups. The leader: two RMWs beside the latch, and as many wake-ups.
//!
//! # Origin
//! PostgreSQL's ProcArrayGroupClearXid (Amit Kapila, 2015), where the leader wakes all. The combining of requests by
//! one worker is older: Oyama, Taura and Yonezawa, 1999; flat combining, Hendler, Incze, Shavit and Tzafrir, SPAA 2010.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, GrowingTable, Machine, Padded, WaitEvent, WaitScope, fatal};

/// Number of members that each one wakes.
const WAKES_EACH: usize = 2;

/// The end of a list, in place of a member's number.
const NONE: u32 = u32::MAX;

/// In no group, or served.
const OUTSIDE: u32 = 0;
/// In a group, and awake.
const MEMBER: u32 = 1;
/// In a group, and asleep or about to sleep.
const ASLEEP: u32 = 2;

/// One worker's place.
#[derive(Debug)]
struct Member<M: Machine, R> {
    state: M::U32,
    /// The member that joined before this one. The leader ends its group's list before the leader itself.
    next: M::U32,
    /// The first of the members that this one wakes; the others follow it in the list.
    child: M::U32,
    request: R,
}

/// The place where workers meet, with a request of type `R` from each.
#[derive(Debug)]
pub(crate) struct Group<M: Machine, R: 'static = ()> {
    newest: Padded<M::U32>,
    members: GrowingTable<M, Padded<Member<M, R>>>,
    /// The wait event of a follower's sleep.
    event: WaitEvent,
}

/// The outcome of an attempt to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a member that neither leads nor follows strands its group"]
pub(crate) enum Joined {
    /// The caller is first, and calls [`Group::lead`].
    Leads,
    /// The caller calls [`Group::follow`].
    Follows,
    /// The group that gathers is not for this request.
    Refused,
}

impl<M: Machine, R> Member<M, R> {
    fn new(request: R) -> Self {
        Self {
            state: M::U32::new(OUTSIDE),
            next: M::U32::new(NONE),
            child: M::U32::new(NONE),
            request,
        }
    }
}

impl<M: Machine, R: 'static> Group<M, R> {
    /// Places for the members numbered below `capacity`.
    pub(crate) fn new(capacity: u32, event: WaitEvent, request: impl Fn() -> R) -> Self {
        let member = |_| Padded(Member::new(request()));
        Self::of(GrowingTable::fixed(capacity as usize, member), event)
    }

    /// Places for the workers of the machine, which may become more.
    pub(crate) fn by_worker(event: WaitEvent, request: impl Fn() -> R + Send + Sync + 'static) -> Self
    where
        R: Send + Sync,
    {
        let member = move |_| Padded(Member::new(request()));
        Self::of(GrowingTable::by_worker(member), event)
    }

    fn of(members: GrowingTable<M, Padded<Member<M, R>>>, event: WaitEvent) -> Self {
        Self {
            newest: Padded(M::U32::new(NONE)),
            members,
            event,
        }
    }

    fn member(&self, number: u32) -> &Member<M, R> {
        self.members.get(number as usize)
    }

    /// The request of a worker: written by itself before it joins, read and answered by the leader until it is woken.
    pub(crate) fn request(&self, number: u32) -> &R {
        &self.member(number).request
    }

    /// Joins the group that gathers, if `admits` says so of its newest member's request. That look is a hint: the
    /// member may have gone since, and its place may hold a later request.
    pub(crate) fn join(&self, me: u32, admits: impl Fn(&R) -> bool) -> Joined {
        let member = self.member(me);
        assert_eq!(
            member.state.load(Relaxed),
            OUTSIDE,
            "R5: worker {me} joins a group from inside another"
        );
        member.state.store(MEMBER, Relaxed);
        member.child.store(NONE, Relaxed);
        let mut newest = self.newest.load(Relaxed);
        loop {
            if newest != NONE && !admits(self.request(newest)) {
                // R5.
                member.state.store(OUTSIDE, Relaxed);
                return Joined::Refused;
            }
            member.next.store(newest, Relaxed);
            // Release: pairs with the Acquire in `lead`.
            match self.newest.compare_exchange_weak(newest, me, Release, Relaxed) {
                Ok(NONE) => return Joined::Leads,
                Ok(_) => return Joined::Follows,
                Err(found) => newest = found,
            }
        }
    }

    /// Waits until the caller's step has been taken, and wakes the members that are the caller's to wake.
    pub(crate) fn follow(&self, me: u32) {
        let state = &self.member(me).state;
        // Acquire, on both: pairs with the Release in `wake_children`.
        if state.compare_exchange(MEMBER, ASLEEP, Relaxed, Acquire).is_ok() {
            let _wait = WaitScope::<M>::enter(self.event);
            while state.load(Acquire) == ASLEEP {
                M::futex_wait(state, ASLEEP, None);
            }
        }
        self.wake_children(me);
    }

    /// Takes the steps of all that have joined once `acquire` has got the latch, and lets them go once the latch is
    /// dropped. `step` is called under the latch with each member's number, the newest first and `me`, the leader,
    /// last; it cannot fail (R3).
    pub(crate) fn lead<L>(&self, me: u32, acquire: impl FnOnce() -> L, mut step: impl FnMut(&mut L, u32)) {
        // R3: there before the latch is acquired.
        let mut taken = LedGroup {
            group: self,
            newest: NONE,
            leader: me,
        };
        let mut latch = acquire();
        // Acquire: pairs with the Release in `join`, of each member.
        taken.newest = self.newest.swap(NONE, Acquire);
        for member in taken.members() {
            step(&mut latch, member);
        }
        // R2.
        drop(latch);
        taken.wake();
    }

    fn wake_children(&self, parent: u32) {
        let mut child = self.member(parent).child.load(Relaxed);
        for _ in 0..WAKES_EACH {
            if child == NONE {
                return;
            }
            let member = self.member(child);
            // R4.
            child = member.next.load(Relaxed);
            // Release: pairs with the Acquires in `follow`.
            if member.state.swap(OUTSIDE, Release) == ASLEEP {
                M::futex_wake(&member.state, 1);
            }
        }
    }
}

/// A group whose members wait for the leader, which is one of them.
struct LedGroup<'a, M: Machine, R: 'static> {
    group: &'a Group<M, R>,
    /// `NONE` until the list is taken.
    newest: u32,
    leader: u32,
}

impl<M: Machine, R: 'static> LedGroup<'_, M, R> {
    /// All members, the newest first and the leader last.
    fn members(&self) -> impl Iterator<Item = u32> {
        let mut next = self.newest;
        std::iter::from_fn(move || {
            let number = next;
            if number == NONE {
                return None;
            }
            next = self.group.member(number).next.load(Relaxed);
            Some(number)
        })
    }

    /// Lets all members go.
    fn wake(self) {
        let (group, leader) = (self.group, self.leader);
        self.plant();
        std::mem::forget(self);
        group.member(leader).state.store(OUTSIDE, Relaxed);
        group.wake_children(leader);
    }

    /// Makes the list a tree with the leader at its root: the children of number n, counted from the root as 0, are
    /// those from `WAKES_EACH * n + 1` on. A second cursor through the same list finds the parents.
    fn plant(&self) {
        let next_of = |number: u32| self.group.member(number).next.load(Relaxed);
        let mut parent = self.leader;
        let mut next_parent = self.newest;
        let mut follower = self.newest;
        let mut planted = 0;
        while follower != self.leader {
            if planted % WAKES_EACH == 0 {
                if planted > 0 {
                    (parent, next_parent) = (next_parent, next_of(next_parent));
                }
                self.group.member(parent).child.store(follower, Relaxed);
            }
            planted += 1;
            let next = next_of(follower);
            if next == self.leader {
                // The list ends before the leader, which is awake.
                self.group.member(follower).next.store(NONE, Relaxed);
            }
            follower = next;
        }
    }
}

impl<M: Machine, R: 'static> Drop for LedGroup<'_, M, R> {
    fn drop(&mut self) {
        fatal(format_args!(
            "R3: the leader of a group failed before the steps of others were taken; stopping"
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use clearway_machine::{Native, Watchdog};

    use super::*;

    /// A latch whose release takes so long that a member that is woken first returns before it.
    struct SlowRelease<'a>(&'a AtomicBool);

    impl Drop for SlowRelease<'_> {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(50));
            self.0.store(true, Ordering::Release);
        }
    }

    /// A leader with `followers`, each a thread that returns whether the latch was released when it was woken. Returns
    /// the numbers that the leader took steps for.
    fn lead(followers: u32) -> Vec<u32> {
        let group = Group::<Native>::new(followers + 1, WaitEvent::ProcArrayGroup, || ());
        let released = AtomicBool::new(false);
        assert_eq!(group.join(followers, |()| true), Joined::Leads);
        let served = RefCell::new(Vec::new());
        thread::scope(|scope| {
            let joining: Vec<_> = (0..followers)
                .map(|number| {
                    assert_eq!(group.join(number, |()| true), Joined::Follows);
                    let (group, released) = (&group, &released);
                    scope.spawn(move || {
                        group.follow(number);
                        assert!(released.load(Ordering::Acquire), "R2: woken under the latch");
                    })
                })
                .collect();
            group.lead(
                followers,
                || SlowRelease(&released),
                |_, member| served.borrow_mut().push(member),
            );
            joining.into_iter().for_each(|thread| thread.join().unwrap());
        });
        served.into_inner()
    }

    /// Caught mutations: members woken before the latch is released; a follower that wakes none.
    #[test]
    fn each_member_is_served_and_then_woken_by_its_parent() {
        let _watchdog = Watchdog::over_test();
        for followers in 0..12 {
            let served = lead(followers);
            let wanted: Vec<u32> = (0..followers).rev().chain([followers]).collect();
            assert_eq!(served, wanted);
        }
    }

    /// The children of each member, by number.
    fn children(group: &Group<Native>, of: u32) -> Vec<u32> {
        let mut child = group.member(of).child.load(Relaxed);
        let mut all = Vec::new();
        while child != NONE && all.len() < WAKES_EACH {
            all.push(child);
            child = group.member(child).next.load(Relaxed);
        }
        all
    }

    /// Each follower has one parent, and the leader has none: it may be in another group when the last child is woken.
    ///
    /// Caught mutation: a list that ends with the leader.
    #[test]
    fn a_tree_holds_each_follower_once() {
        for followers in 0..20 {
            let group = Group::<Native>::new(followers + 1, WaitEvent::ProcArrayGroup, || ());
            for number in (0..=followers).rev() {
                let _ = group.join(number, |()| true);
            }
            let taken = LedGroup {
                group: &group,
                newest: group.newest.swap(NONE, Acquire),
                leader: followers,
            };
            taken.plant();
            std::mem::forget(taken);
            let mut reached = vec![followers];
            for at in 0..=followers as usize {
                let parent = reached[at];
                reached.extend(children(&group, parent));
            }
            let wanted: Vec<u32> = [followers].into_iter().chain(0..followers).collect();
            assert_eq!(reached, wanted, "breadth first, in the order of the list");
        }
    }

    /// Set for the process in which a leader fails.
    const FAILING: &str = "CLEARWAY_TEST_FAILING_LEADER";

    /// R3: the followers of a leader that fails would sleep for ever, at the latch and in a step.
    ///
    /// Caught mutations: a list that is dropped without ending the process; a leader that fails at the latch.
    #[test]
    fn a_leader_that_fails_ends_the_process() {
        if let Ok(failing) = std::env::var(FAILING) {
            let fails = |at: &str| assert_ne!(failing, at, "what fails");
            let _ = std::panic::catch_unwind(|| {
                let group = Group::<Native>::new(2, WaitEvent::ProcArrayGroup, || ());
                assert_eq!(group.join(0, |()| true), Joined::Leads);
                assert_eq!(group.join(1, |()| true), Joined::Follows);
                group.lead(0, || fails("latch"), |(), _| fails("step"));
            });
            std::process::exit(0);
        }
        for at in ["latch", "step"] {
            let failing = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "group::tests::a_leader_that_fails_ends_the_process"])
                .env(FAILING, at)
                .output()
                .unwrap();
            assert_eq!(failing.status.code(), None, "{at}: it is ended by a signal");
            let said = String::from_utf8_lossy(&failing.stderr);
            assert!(said.contains("R3: the leader of a group failed"), "{at}: {said}");
        }
    }

    #[test]
    fn a_request_that_does_not_go_with_the_newest_stays_outside() {
        let group = Group::<Native, u32>::new(3, WaitEvent::ProcArrayGroup, || 7);
        assert_eq!(
            group.join(0, |_| false),
            Joined::Leads,
            "an empty group admits all"
        );
        assert_eq!(group.join(1, |request| *request == 8), Joined::Refused);
        assert_eq!(
            group.join(1, |request| *request == 7),
            Joined::Follows,
            "R5: outside again"
        );
        group.lead(0, || (), |(), _| ());
        group.follow(1);
    }
}
