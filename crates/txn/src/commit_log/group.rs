//! A group: of the transactions that end at once, one worker sets the status of all whose turn it is.
//!
//! # Invariant
//! A status is set between the call and the return of its worker, under the latch of its page's bank, by that worker or
//! by the leader of its group. So R1 to R5 hold as with the banks, on which this variant is built.
//!
//! # Steps
//! 1. *Conditional exclusive* of the page's bank: got it, and the page is cached → set the status, return. A worker
//!    that meets no other takes this path alone.
//! 2. The page is not cached → the *plain path*, that of the banks: it reads the page, and may fail.
//! 3. Otherwise write the request and *join the group* ([`Group`], which has the protocol and its orderings), if the
//!    newest member's status lies on the same page; if not, the plain path.
//! 4. *The first leads*: acquires the latch of its bank, takes the list, and for each member: releases the bank and
//!    acquires another if the member's page is there; sets the status if the page is cached; writes into the request
//!    whether it did. Then it releases the bank and wakes.
//! 5. *The others follow*: asleep under the wait event `XactGroupUpdate` until then. A worker whose status was not set,
//!    the leader included, takes the plain path.
//!
//! # Why each step
//! - *The leader looks at each member's page*, though all joined behind one of the same page: the look at the newest
//!   member and the CAS are two steps. In between that member may return and join again, for another page, and the CAS
//!   sees the number that it expects.
//! - *A page that is not cached is its member's own business*: reading it can fail, and the leader does nothing that
//!   can fail between taking the list and waking (R3 of the group).
//! - *A group shares a page*, so that the leader seldom changes latches: the newest 32,672 transactions have one page.
//!
//! # Linearization
//! A status is set at the leader's store, under the bank's latch. The members' order is that of the list.
//!
//! # Orderings
//! A request is published by joining, and its answer by waking (`group`). A reader of the status acquires the bank's
//! latch after the leader has released it, and the leader had acquired what the member did before it joined.
//!
//! # Cost
//! One worker alone: the banks' for a status read or set. n at once: one exclusive acquire instead of n, and n - 1
//! wake-ups, none under the latch and at most two by each worker. 128 bytes for each worker that there can be, 512 KiB
//! natively, beside the banks.
//!
//! Origin: PostgreSQL 11's TransactionGroupUpdateXidStatus (Amit Kapila, 2017), and Dilip Kumar's for banks in 17.
//! There the leader reads pages that are missing. The tree of wake-ups is ours.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::LwLockOptions;
use clearway_machine::{AtomicWord, Machine, WaitEvent};

use super::bank::ExclusiveBank;
use super::banks;
use super::page::{CachedPage, Place};
use super::{Status, StatusDevice, StatusLog};
use crate::Xid;
use crate::group::{Group, Joined};

/// The status that a worker wants set. Relaxed: joining and waking order it.
#[derive(Debug)]
struct Request<M: Machine> {
    xid: M::U64,
    lsn: M::U64,
    status: M::U32,
    /// The leader's answer: 1 if it has set the status.
    done: M::U32,
}

impl<M: Machine> Request<M> {
    fn new() -> Self {
        Self {
            xid: M::U64::new(0),
            lsn: M::U64::new(0),
            status: M::U32::new(0),
            done: M::U32::new(0),
        }
    }

    fn write(&self, xid: Xid, status: Status, lsn: u64) {
        self.xid.store(xid.0, Relaxed);
        self.lsn.store(lsn, Relaxed);
        self.status.store(status as u32, Relaxed);
        self.done.store(0, Relaxed);
    }

    fn place(&self) -> Place {
        Place::of(Xid(self.xid.load(Relaxed)))
    }

    /// Sets the status on its page.
    fn apply(&self, page: &mut CachedPage) {
        let status = Status::from_bits(self.status.load(Relaxed) as u8);
        page.set_status(&self.place(), status, self.lsn.load(Relaxed));
        self.done.store(1, Relaxed);
    }
}

/// The bank whose latch a leader holds.
struct HeldBank<'a, M: Machine> {
    number: usize,
    /// `None` only while one is exchanged for another: no worker holds two.
    latch: Option<ExclusiveBank<'a, M>>,
}

/// The banks, and the group that gathers. A worker's number in it is that of its slot.
#[derive(Debug)]
pub(super) struct Log<M: Machine, D: StatusDevice> {
    banks: banks::Log<M, D>,
    group: Group<M, Request<M>>,
}

impl<M: Machine, D: StatusDevice> Log<M, D> {
    /// Acquires the bank of page `page`.
    fn hold(&self, page: u32) -> HeldBank<'_, M> {
        HeldBank {
            number: self.banks.number_of(page),
            latch: Some(self.banks.bank(page).exclusive()),
        }
    }

    /// Sets the status with others, if there are any and the page is cached. `false`: it is not set.
    #[cold]
    fn set_together<'a>(&'a self, xid: Xid, status: Status, lsn: u64) -> bool {
        let me = M::worker().0;
        let request = self.group.request(me);
        request.write(xid, status, lsn);
        let page = request.place().page;
        match self.group.join(me, |newest| newest.place().page == page) {
            Joined::Refused => return false,
            Joined::Follows => self.group.follow(me),
            Joined::Leads => {
                let step = |held: &mut HeldBank<'a, M>, member| self.set_for(held, member);
                self.group.lead(me, || self.hold(page), step);
            }
        }
        request.done.load(Relaxed) != 0
    }

    /// Sets the status that `member` wants, under `held` or the bank that it is exchanged for.
    fn set_for<'a>(&'a self, held: &mut HeldBank<'a, M>, member: u32) {
        let request = self.group.request(member);
        let page = request.place().page;
        if self.banks.number_of(page) != held.number {
            held.latch = None;
            *held = self.hold(page);
        }
        if let Some(page) = held.latch.as_mut().and_then(|latch| latch.page(page)) {
            request.apply(page);
        }
    }
}

impl<M: Machine, D: StatusDevice> StatusLog<M, D> for Log<M, D> {
    fn new(device: D, banks: usize, lwlock: LwLockOptions) -> Self {
        Self {
            banks: banks::Log::new(device, banks, lwlock),
            group: Group::by_worker(WaitEvent::CommitLogGroup, Request::new),
        }
    }

    fn device(&self) -> &D {
        self.banks.device()
    }

    #[inline]
    fn get(&self, xid: Xid) -> io::Result<Status> {
        self.banks.get(xid)
    }

    fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        let place = Place::of(xid);
        let set = match self.banks.bank(place.page).try_exclusive() {
            Some(mut bank) => match bank.page(place.page) {
                Some(page) => {
                    page.set_status(&place, status, lsn);
                    true
                }
                None => false,
            },
            None => self.set_together(xid, status, lsn),
        };
        if set {
            Ok(())
        } else {
            self.banks.set(xid, status, lsn)
        }
    }

    fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        self.banks.merge_page(number, content)
    }

    fn flush_all(&self) -> io::Result<()> {
        self.banks.flush_all()
    }
}
