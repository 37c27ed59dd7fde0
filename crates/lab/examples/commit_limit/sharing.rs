//! Ways to share syncs.
//!
//! Threads that wait for a sync are linked into a list, the *group*. The first of a group leads it: it waits until
//! fewer syncs are in flight than the way allows, closes the group (the next thread to come begins the next one),
//! flushes, and ends the wait of all in the group. The ways differ in how many syncs are in flight, in what the leader
//! waits for, and in how the sleepers are woken.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use clearway_machine::{AtomicWord, CoreU32, Machine, Native, Padded};

use crate::log::Log;

/// The way in which the sleepers of a group are woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// By the leader, a call of the kernel for each.
    Each,
    /// By the leader, one call for the whole group, which sleeps on one word.
    Group,
    /// In a tree: each that is woken wakes the next four.
    Tree,
    /// No sleeper: each polls, and yields its CPU between two looks.
    Poll,
}

/// A way to share syncs.
pub(crate) struct SyncSharing {
    pub(crate) name: &'static str,
    wake: Wake,
    /// Syncs in flight at the most.
    in_flight_max: u32,
    /// True if a leader waits until all threads are in its group.
    waits_for_all: bool,
    /// True if a thread that does nothing else leads all groups, and polls for the next one.
    pub(crate) flusher: bool,
}

const fn way(name: &'static str, wake: Wake, in_flight_max: u32) -> SyncSharing {
    SyncSharing {
        name,
        wake,
        in_flight_max,
        waits_for_all: false,
        flusher: false,
    }
}

/// The ways that are compared.
pub(crate) const WAYS: &[SyncSharing] = &[
    // One leader at a time wakes each of its group.
    way("leader wakes each", Wake::Each, 1),
    // One group works while the other is synced; a word for each group.
    way("two groups", Wake::Group, 1),
    way("tree", Wake::Tree, 1),
    SyncSharing {
        waits_for_all: true,
        ..way("wait for all", Wake::Group, 1)
    },
    SyncSharing {
        flusher: true,
        ..way("flusher thread", Wake::Group, 1)
    },
    way("2 syncs in flight", Wake::Group, 2),
    way("4 syncs in flight", Wake::Group, 4),
    way("poll and yield", Wake::Poll, 1),
    way("poll, 2 in flight", Wake::Poll, 2),
];

/// Words that groups sleep on, by the group's number; far more than are in use at a time.
const GROUP_WORDS: u32 = 1_024;

/// Sleepers that each thread wakes in a tree.
const WIDTH: usize = 4;

/// A thread's place in its group.
struct Place {
    /// The one that joined before, plus one; 0 for none.
    before: AtomicU32,
    /// 1 when the thread's commit is durable.
    durable: CoreU32,
    /// First of those that this thread wakes in a tree, plus one; 0 for none.
    wakes: AtomicU32,
}

/// Threads that share syncs in one way.
pub(crate) struct Sharing<'a> {
    way: &'a SyncSharing,
    /// The number of the open group above, the last to join it plus one below.
    group: Padded<AtomicU64>,
    joined: Padded<AtomicU32>,
    places: Box<[Padded<Place>]>,
    /// Ended groups: the number of the last one with that index.
    ended: Box<[Padded<CoreU32>]>,
    in_flight: Padded<CoreU32>,
    active: AtomicU32,
    flusher_stops: AtomicBool,
}

impl<'a> Sharing<'a> {
    pub(crate) fn new(way: &'a SyncSharing, threads: usize) -> Sharing<'a> {
        let place = || {
            Padded(Place {
                before: AtomicU32::new(0),
                durable: CoreU32::new(0),
                wakes: AtomicU32::new(0),
            })
        };
        Sharing {
            way,
            // Group 1, so that a word of 0 ends none.
            group: Padded(AtomicU64::new(1 << 32)),
            joined: Padded(AtomicU32::new(0)),
            places: (0..threads).map(|_| place()).collect(),
            ended: (0..GROUP_WORDS).map(|_| Padded(CoreU32::new(0))).collect(),
            in_flight: Padded(CoreU32::new(0)),
            active: AtomicU32::new(threads as u32),
            flusher_stops: AtomicBool::new(false),
        }
    }

    /// Returns when a sync that began after this call has ended.
    pub(crate) fn wait_durable(&self, log: &Log, me: u32) {
        let place = &self.places[me as usize];
        place.durable.store(0, Ordering::Relaxed);
        self.joined.fetch_add(1, Ordering::Relaxed);
        let mut group = self.group.load(Ordering::Relaxed);
        loop {
            place.before.store(group as u32, Ordering::Relaxed);
            let joined = group >> 32 << 32 | u64::from(me + 1);
            match self
                .group
                .compare_exchange_weak(group, joined, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(found) => group = found,
            }
        }
        if group as u32 == 0 && !self.way.flusher {
            self.lead(log, me + 1);
        } else {
            self.sleep(me, (group >> 32) as u32);
        }
    }

    /// A thread that commits no more.
    pub(crate) fn leave(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Leads all groups until `flusher_stops` is set.
    pub(crate) fn flush_until_stopped(&self, log: &Log) {
        while !self.flusher_stops.load(Ordering::Relaxed) {
            if self.group.load(Ordering::Relaxed) as u32 == 0 {
                std::thread::yield_now();
            } else {
                self.lead(log, 0);
            }
        }
    }

    pub(crate) fn stop_flusher(&self) {
        self.flusher_stops.store(true, Ordering::Relaxed);
    }

    /// Flushes for the open group; `me`, if not 0, is one of it.
    fn lead(&self, log: &Log, me: u32) {
        self.begin_sync();
        if self.way.waits_for_all {
            while self.joined.load(Ordering::Relaxed) < self.active.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
        let mut group = self.group.load(Ordering::Relaxed);
        while let Err(found) = self.group.compare_exchange_weak(
            group,
            ((group >> 32) + 1) << 32,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            group = found;
        }
        let members = self.members(group as u32, me);
        let count = members.len() + usize::from(me != 0);
        self.joined.fetch_sub(count as u32, Ordering::Relaxed);
        log.flush();
        self.end_sync();
        self.wake((group >> 32) as u32, &members);
    }

    /// The threads of a group from the last on, without `me`.
    fn members(&self, last: u32, me: u32) -> Vec<u32> {
        let mut members = Vec::new();
        let mut member = if last == me { 0 } else { last };
        while member != 0 {
            let before = &self.places[member as usize - 1].before;
            members.push(member - 1);
            member = before.load(Ordering::Relaxed);
            if member == me {
                // The leader was the first to join. Nothing is passed to it, so the links end before it.
                before.store(0, Ordering::Relaxed);
                break;
            }
        }
        members
    }

    /// Waits until one more sync may be in flight.
    fn begin_sync(&self) {
        let mut in_flight = self.in_flight.load(Ordering::Relaxed);
        loop {
            if in_flight == self.way.in_flight_max {
                Native::futex_wait(&self.in_flight, in_flight, None);
                in_flight = self.in_flight.load(Ordering::Relaxed);
                continue;
            }
            match self.in_flight.compare_exchange_weak(
                in_flight,
                in_flight + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(found) => in_flight = found,
            }
        }
    }

    fn end_sync(&self) {
        self.in_flight.fetch_sub(1, Ordering::Release);
        // At most one leader waits for each sync in flight, and this one has just ended.
        Native::futex_wake(&self.in_flight, 1);
    }

    fn wake(&self, group: u32, members: &[u32]) {
        match self.way.wake {
            Wake::Each => members.iter().for_each(|&member| self.wake_one(member)),
            Wake::Tree => {
                for (waker, &member) in members.iter().enumerate() {
                    let first = members.get((waker + 1) * WIDTH).map_or(0, |first| first + 1);
                    self.places[member as usize].wakes.store(first, Ordering::Relaxed);
                }
                // The link to the next is the one to the thread that joined before.
                self.wake_part(members.first().map_or(0, |first| first + 1));
            }
            Wake::Group | Wake::Poll => {
                let word = &self.ended[(group % GROUP_WORDS) as usize];
                word.store(group, Ordering::Release);
                if self.way.wake == Wake::Group && !members.is_empty() {
                    Native::futex_wake(word, u32::MAX);
                }
            }
        }
    }

    fn wake_one(&self, member: u32) {
        let durable = &self.places[member as usize].durable;
        durable.store(1, Ordering::Release);
        Native::futex_wake(durable, 1);
    }

    fn wake_part(&self, first: u32) {
        let mut member = first;
        for _ in 0..WIDTH {
            if member == 0 {
                return;
            }
            let next = self.places[member as usize - 1].before.load(Ordering::Relaxed);
            self.wake_one(member - 1);
            member = next;
        }
    }

    fn sleep(&self, me: u32, group: u32) {
        let place = &self.places[me as usize];
        match self.way.wake {
            Wake::Each | Wake::Tree => {
                while place.durable.load(Ordering::Acquire) == 0 {
                    Native::futex_wait(&place.durable, 0, None);
                }
                if self.way.wake == Wake::Tree {
                    self.wake_part(place.wakes.load(Ordering::Relaxed));
                }
            }
            Wake::Group | Wake::Poll => {
                let word = &self.ended[(group % GROUP_WORDS) as usize];
                loop {
                    let ended = word.load(Ordering::Acquire);
                    if ended >= group {
                        return;
                    }
                    if self.way.wake == Wake::Poll {
                        std::thread::yield_now();
                    } else {
                        Native::futex_wait(word, ended, None);
                    }
                }
            }
        }
    }
}
