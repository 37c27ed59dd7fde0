//! Searches over waits that one thread makes up: sessions queue by requests, which do not block. Other orders of queues:
//! `rearrange`.

mod rearrange;

use std::sync::Arc;
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::Native;

use super::*;
use crate::lock_table::LockRequest;
use crate::{ProcArray, RelationLocksVariant};

const ALICE: ProcId = ProcId(0);
const BOB: ProcId = ProcId(1);
const CAROL: ProcId = ProcId(2);
const ACCOUNTS: LockTag = LockTag::Relation(10);
const HISTORY: LockTag = LockTag::Relation(11);

fn manager(sessions: u32, relation_locks: RelationLocksVariant) -> LockManager<Native> {
    let array = Arc::new(ProcArray::new(sessions, LwLockVariant::SingleCas, Xid(100)));
    for _ in 0..sessions {
        array.attach().unwrap();
    }
    LockManager::new(array, LwLockVariant::SingleCas, relation_locks, Duration::MAX)
}

impl LockManager<Native> {
    /// Stores the same as `wait_for_transaction` before it sleeps.
    fn begin_wait(&self, waiter: ProcId, runner: ProcId, xid: Xid) {
        let wait = self.wait_of(waiter);
        wait.waited_for_proc.store(runner.0, Relaxed);
        wait.transaction_waits
            .store(wait.transaction_waits.load(Relaxed) + 1, Relaxed);
        self.waited_for_xids[waiter.0 as usize].store(xid.0, Relaxed);
        self.wait_of(runner).transaction_has_waiter.store(1, Relaxed);
    }

    fn end_wait(&self, waiter: ProcId) {
        self.waited_for_xids[waiter.0 as usize].store(0, Relaxed);
    }
}

/// Bob's first transaction has ended, and Alice, whose wait for it is still noted, has not woken yet. Bob's second
/// waits for Alice.
///
/// Caught mutations (`mutations/transaction_wait.toml`): a wait that counts if the runner runs any transaction, or whatever
/// it runs (a deadlock of Alice and Bob).
#[test]
fn a_wait_for_a_transaction_that_has_ended_is_no_part_of_a_cycle() {
    let locks = manager(2, RelationLocksVariant::Table);
    let array = &locks.proc_array;
    let (a, b1) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    locks.begin_wait(ALICE, BOB, b1);
    locks.end_transaction(BOB, b1);
    let b2 = array.assign_xid(BOB);
    locks.begin_wait(BOB, ALICE, a);
    // Bob would leave a search out: no session waits for his second transaction.
    assert!(!locks.is_deadlocked(BOB));
    assert_eq!(locks.look_for_deadlock(BOB), None);
    locks.begin_wait(ALICE, BOB, b2);
    assert!(locks.look_for_deadlock(BOB).is_some());
}

/// R2, step by step: between the two reads of a path one of its waits ends, in each of the ways that there are.
///
/// Mutations that it is for: no second read; one that does not look at the number, at the xid waited for, or at the runner.
#[test]
fn a_wait_that_went_on_during_the_search_is_no_part_of_a_cycle() {
    type Change = fn(&LockManager<Native>, [Xid; 3]);
    let changes: [(&str, Change); 4] = [
        ("Carol gives up", |locks, _| locks.end_wait(CAROL)),
        ("Carol gives up, and waits for Alice again", |locks, [a, ..]| {
            locks.end_wait(CAROL);
            locks.begin_wait(CAROL, ALICE, a);
        }),
        (
            "Carol waits for Bob instead, under the old number",
            |locks, [_, b, _]| {
                locks.waited_for_xids[CAROL.0 as usize].store(b.0, Relaxed);
            },
        ),
        (
            "Bob's transaction ends, and Alice has not woken yet",
            |locks, [_, b, _]| {
                locks.proc_array.end(BOB, Some(b));
            },
        ),
    ];
    for (story, change) in changes {
        let locks = manager(3, RelationLocksVariant::Table);
        let [a, b, c] = [ALICE, BOB, CAROL].map(|proc| locks.proc_array.assign_xid(proc));
        locks.begin_wait(ALICE, BOB, b);
        locks.begin_wait(BOB, CAROL, c);
        locks.begin_wait(CAROL, ALICE, a);
        let search = Search::of(&locks);
        let path = search.path_back_to(ALICE).unwrap();
        assert_eq!(path.len(), 3);
        assert!(path.iter().all(|link| search.still_waits(link)));
        change(&locks, [a, b, c]);
        let gone_on = path.iter().filter(|link| !search.still_waits(link));
        assert_eq!(gone_on.count(), 1, "{story}");
    }
}

/// A path that has gone on hides another one that is real: Alice queues behind Bob and Carol, and both seem to wait for her.
///
/// Mutation that it is for: a search that ends when a wait of its first path has gone on.
#[test]
fn a_search_goes_on_after_a_wait_that_went_on() {
    for gone in [BOB, CAROL] {
        let locks = manager(3, RelationLocksVariant::Table);
        let a = locks.proc_array.assign_xid(ALICE);
        for holder in [BOB, CAROL] {
            assert!(locks.try_acquire(holder, ACCOUNTS, LockMode::Share));
            locks.begin_wait(holder, ALICE, a);
        }
        let request = locks.request(ALICE, ACCOUNTS, LockMode::Exclusive);
        let mut search = Search::of(&locks);
        search.gone_on.insert(gone);
        let cycle = search.cycle_through(ALICE).unwrap();
        let other = if gone == BOB { CAROL } else { BOB };
        assert_eq!(
            cycle.iter().map(|link| link.blocker).collect::<Vec<_>>(),
            [other, ALICE]
        );
        drop(search);
        drop(request);
    }
}

/// R1. Caught mutations: every session but the victim taken off the queue, or none.
#[test]
fn a_victim_leaves_the_queue_and_no_other_does() {
    let locks = manager(4, RelationLocksVariant::Table);
    let dave = ProcId(3);
    assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Exclusive));
    assert!(locks.try_acquire(BOB, HISTORY, LockMode::Exclusive));
    let requests = [
        locks.request(CAROL, ACCOUNTS, LockMode::Exclusive),
        locks.request(BOB, ACCOUNTS, LockMode::Exclusive),
        locks.request(dave, ACCOUNTS, LockMode::Exclusive),
        locks.request(ALICE, HISTORY, LockMode::Exclusive),
    ];
    assert!(locks.find_deadlock(BOB).is_some());
    let partition = locks.partitions[locks.partition_number(ACCOUNTS)].shared();
    let queue: Vec<_> = partition.entries[&ACCOUNTS]
        .queue
        .iter()
        .map(|waiter| waiter.proc)
        .collect();
    assert_eq!(queue, [CAROL, dave]);
    drop(partition);
    assert!(!locks.is_deadlocked(ALICE), "one victim is enough");
    drop(requests);
}

/// The example at the top of the module, with every session's wait under way.
///
/// Mutation that it is for: a session that counts as waited for if it queues.
#[test]
fn one_session_of_a_queue_looks() {
    let sessions = 50;
    for relation_locks in [RelationLocksVariant::Table, RelationLocksVariant::FastPath] {
        let locks = manager(sessions, relation_locks);
        let row = LockTag::Tuple {
            rel: 10,
            block: 0,
            slot: 1,
        };
        let a = locks.proc_array.assign_xid(ALICE);
        let all = || (1..sessions).map(ProcId);
        for waiter in all() {
            assert!(locks.try_acquire(waiter, ACCOUNTS, LockMode::RowExclusive));
        }
        let requests: Vec<_> = all()
            .map(|waiter| locks.request(waiter, row, LockMode::Exclusive))
            .collect();
        locks.begin_wait(BOB, ALICE, a);
        let looking: Vec<_> = all().filter(|&waiter| locks.is_waited_for(waiter)).collect();
        assert_eq!(looking, [BOB], "{relation_locks:?}");
        assert_eq!(locks.look_for_deadlock(BOB), None);
        drop(requests);
    }
}

/// R4. Each session of a queue holds a table that others want, so that every search reaches all of the queue, from each of
/// its places. The steps are those of one search, counted.
#[test]
fn a_search_reaches_each_session_once() {
    let sessions = 200;
    let locks = manager(sessions, RelationLocksVariant::Table);
    let all = || (0..sessions).map(ProcId);
    let mut requests = Vec::new();
    for proc in all() {
        assert!(locks.try_acquire(proc, LockTag::Relation(100 + proc.0), LockMode::Exclusive));
        requests.push(locks.request(proc, ACCOUNTS, LockMode::Exclusive));
    }
    let search = Search::of(&locks);
    let entry = search.entry(ACCOUNTS).unwrap();
    let mut followed = Followed::nothing_of(entry);
    let mut blockers = Vec::new();
    for proc in all().rev() {
        followed.follow(entry, proc, LockMode::Exclusive, false, &mut blockers);
    }
    // The holder was reached once, and each session of the queue but the last.
    assert_eq!(blockers.len(), sessions as usize - 1);
    drop(search);
    drop(requests);
}

/// A small generator: every run asks for the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(limit)) as u32
    }
}

/// The waits by the definition, each edge on its own, with each queue in the order that is given.
fn edges_in(locks: &LockManager<Native>, queues: &[Vec<ProcId>], waiter: ProcId) -> BTreeSet<ProcId> {
    let mut edges = BTreeSet::new();
    for (rel, queue) in (0..).zip(queues) {
        let tag = LockTag::Relation(rel);
        let partition = locks.partitions[locks.partition_number(tag)].shared();
        let Some(entry) = partition.entries.get(&tag) else {
            continue;
        };
        let mode_of = |proc: ProcId| {
            entry
                .queue
                .iter()
                .find(|other| other.proc == proc)
                .map(|other| other.mode)
        };
        let Some(mode) = mode_of(waiter) else {
            continue;
        };
        let holds = |modes: u8| {
            LockMode::ALL
                .iter()
                .any(|held| modes & held.bit() != 0 && held.conflicts_with(mode))
        };
        edges.extend(
            entry
                .holders
                .iter()
                .filter(|holder| holds(holder.modes))
                .map(|holder| holder.proc),
        );
        let before = queue.iter().take_while(|other| **other != waiter);
        edges.extend(before.filter(|other| mode_of(**other).is_some_and(|other| other.conflicts_with(mode))));
    }
    if let Some(xid) = locks.transaction_waited_for(waiter) {
        edges.extend(locks.proc_array.find_running(xid));
    }
    edges.remove(&waiter);
    edges
}

fn is_in_a_cycle_in(locks: &LockManager<Native>, queues: &[Vec<ProcId>], proc: ProcId) -> bool {
    let mut reached = BTreeSet::new();
    let mut to_follow = vec![proc];
    while let Some(waiter) = to_follow.pop() {
        for blocker in edges_in(locks, queues, waiter) {
            if reached.insert(blocker) {
                to_follow.push(blocker);
            }
        }
    }
    reached.contains(&proc)
}

fn is_in_a_cycle(locks: &LockManager<Native>, proc: ProcId) -> bool {
    is_in_a_cycle_in(locks, &all_queues(locks), proc)
}

/// The sessions of each queue, in their order.
fn all_queues(locks: &LockManager<Native>) -> Vec<Vec<ProcId>> {
    let queues = (0..3).map(|rel| {
        let tag = LockTag::Relation(rel);
        let partition = locks.partitions[locks.partition_number(tag)].shared();
        let queue = partition.entries.get(&tag).map(|entry| &entry.queue);
        queue.into_iter().flatten().map(|waiter| waiter.proc).collect()
    });
    queues.collect()
}

fn without(queue: Vec<ProcId>, proc: ProcId) -> Vec<ProcId> {
    queue.into_iter().filter(|other| *other != proc).collect()
}

/// Each order of these sessions.
fn orders(sessions: &[ProcId]) -> Vec<Vec<ProcId>> {
    let Some((first, others)) = sessions.split_first() else {
        return vec![Vec::new()];
    };
    let others = orders(others).into_iter();
    let with_first = others.flat_map(|order| {
        (0..=order.len()).map(move |place| {
            let mut order = order.clone();
            order.insert(place, *first);
            order
        })
    });
    with_first.collect()
}

/// True if some order of the three queues has no cycle.
fn can_be_dissolved(locks: &LockManager<Native>, sessions: u32) -> bool {
    let [first, second, third] = &*all_queues(locks) else {
        unreachable!("three relations");
    };
    let (seconds, thirds) = (orders(second), orders(third));
    orders(first).into_iter().any(|first| {
        seconds.iter().any(|second| {
            thirds.iter().any(|third| {
                let queues = [first.clone(), second.clone(), third.clone()];
                !(0..sessions).any(|proc| is_in_a_cycle_in(locks, &queues, ProcId(proc)))
            })
        })
    })
}

/// Sessions that lock, wait, give up and end, one step at a time. After each step: a session whose wait has completed a cycle
/// finds it, by the shortened look too (R3); a session that is in none finds none (R2); there is a victim only if each order
/// of the queues has a cycle (R5), of all orders that there are; and no cycle is left when a victim
/// has gone, or the queues have another order.
///
/// Mutations that it is for: those of `mutations/rearranged_queues.toml`; modes of holders counted as followed by the searcher; a queue followed from the place of the first
/// that was reached; a session not looking although others queue for what it holds.
#[test]
fn each_cycle_is_found_by_the_session_that_completes_it() {
    let (mut cycles, mut waits, mut dissolved) = (0, 0, 0);
    for seed in 1..=60_u64 {
        let variant = [RelationLocksVariant::Table, RelationLocksVariant::FastPath][seed as usize % 2];
        let sessions = 2 + seed as u32 % 5;
        let locks = manager(sessions, variant);
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut requests: Vec<Option<LockRequest<'_>>> = (0..sessions).map(|_| None).collect();
        for proc in 0..sessions {
            locks.proc_array.assign_xid(ProcId(proc));
        }
        for _ in 0..400 {
            let proc = ProcId(random.below(sessions));
            let number = proc.0 as usize;
            let waits_for_transaction = locks.transaction_waited_for(proc).is_some();
            if requests[number].is_some() || waits_for_transaction {
                // It gives up, now and then.
                if random.below(6) == 0 {
                    requests[number] = None;
                    locks.end_wait(proc);
                }
            } else {
                match random.below(10) {
                    0 | 1 => end(&locks, proc),
                    2 | 3 => {
                        let runner = ProcId(random.below(sessions));
                        if let Some(xid) = locks.proc_array.xid_of(runner).filter(|_| runner != proc) {
                            locks.begin_wait(proc, runner, xid);
                        }
                    }
                    _ => {
                        let tag = LockTag::Relation(random.below(3));
                        // Modes that the order of a queue is rather in the way of than holders are.
                        let weaker = [0, 0, 3, 7].map(|mode| LockMode::ALL[mode]);
                        let mode = match seed % 3 {
                            0 => weaker[random.below(4) as usize],
                            _ => LockMode::ALL[random.below(8) as usize],
                        };
                        requests[number] = Some(locks.request(proc, tag, mode));
                    }
                }
            }
            for request in &mut requests {
                if request.as_mut().is_some_and(LockRequest::is_granted) {
                    *request = None;
                }
            }
            if requests[number].is_some() || locks.transaction_waited_for(proc).is_some() {
                waits += 1;
            }
            if is_in_a_cycle(&locks, proc) {
                cycles += 1;
                assert!(locks.is_deadlocked(proc), "seed {seed}");
                let before = all_queues(&locks);
                let can_go_on = can_be_dissolved(&locks, sessions);
                if locks.look_for_deadlock(proc).is_some() {
                    assert!(!can_go_on, "R5, seed {seed}");
                    let left: Vec<_> = before.into_iter().map(|queue| without(queue, proc)).collect();
                    assert_eq!(all_queues(&locks), left, "A2, seed {seed}");
                    requests[number] = None;
                    end(&locks, proc);
                } else {
                    dissolved += 1;
                    assert_ne!(all_queues(&locks), before, "R3, seed {seed}");
                }
                for request in &mut requests {
                    if request.as_mut().is_some_and(LockRequest::is_granted) {
                        *request = None;
                    }
                }
            }
            for proc in (0..sessions).map(ProcId) {
                assert!(!is_in_a_cycle(&locks, proc), "a cycle is left, seed {seed}");
                assert!(!locks.is_deadlocked(proc), "R2, seed {seed}");
            }
        }
    }
    let told = format!("{cycles} cycles, {dissolved} of them dissolved, {waits} waits");
    assert!(
        cycles - dissolved > 200 && dissolved > 20 && waits > 2_000,
        "{told}"
    );
}

/// Ends a session's transaction and begins its next, as the session does; those that waited for it go on.
fn end(locks: &LockManager<Native>, proc: ProcId) {
    locks.end_wait(proc);
    let xid = locks.proc_array.xid_of(proc).unwrap();
    locks.end_transaction(proc, xid);
    for waiter in locks.proc_array.slots() {
        if locks.transaction_waited_for(waiter) == Some(xid) {
            locks.end_wait(waiter);
        }
    }
    locks.proc_array.assign_xid(proc);
}
