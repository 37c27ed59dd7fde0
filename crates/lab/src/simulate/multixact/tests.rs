use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use clearway_machine::Native;
use clearway_txn::{ProcArray, ProcArrayOptions};
use parking_lot::Mutex;

use super::slru::{SlruLatches, SlruSizes};
use super::*;

/// A file that notes how often it is read and written.
#[derive(Debug, Default)]
struct File {
    pages: Mutex<BTreeMap<u64, Vec<u64>>>,
    reads: AtomicU64,
    writes: AtomicU64,
}

impl PageFile for File {
    fn read(&self, page: u64, words: &mut [u64]) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        words.copy_from_slice(&self.pages.lock()[&page]);
    }
    fn write(&self, page: u64, words: &[u64]) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.pages.lock().insert(page, words.to_vec());
    }
}

fn sets(form: MultixactForm, sessions: usize) -> Sets<Native, File> {
    Sets::new(form, sessions, LwLockOptions::default(), File::default)
}

fn members(xids: std::ops::Range<u64>) -> Vec<Member> {
    let member = |number: u64| Member {
        xid: Xid(number),
        mode: RowLockMode::ALL[(number % 4) as usize],
    };
    xids.map(member).collect()
}

/// The example at the top of the module.
#[test]
fn a_set_has_the_members_that_it_was_made_of() {
    let sets = sets(MultixactForm::OneLatch, 2);
    let made = [members(3..5), members(4..7), members(6..8)];
    let ids = made
        .each_ref()
        .map(|made| sets.create(&mut TransactionSets::default(), made, |_| ()));
    assert!(ids.is_sorted());
    for (id, made) in ids.iter().zip(&made) {
        assert_eq!(&sets.members(&mut TransactionSets::default(), *id)[..], made);
    }
}

/// Sets over the ends of pages, and far more pages than buffers: each is what it was, whether its pages are in buffers or not.
///
/// Mutations: a new page is not added for the end of the last set on a page; a page leaves its buffer although it was changed.
#[test]
fn sets_outlive_their_buffers() {
    for form in MultixactForm::ALL {
        let sets = sets(form, 1);
        let sizes: Vec<u64> = (0..2 * OFFSETS_PER_PAGE + 9)
            .map(|number| 2 + number % 50)
            .collect();
        let made = |number: usize| members(number as u64..number as u64 + sizes[number]);
        let create = |number| sets.create(&mut TransactionSets::default(), &made(number), |_| ());
        let ids: Vec<SetId> = (0..sizes.len()).map(create).collect();
        let pages = sizes.iter().sum::<u64>() / MEMBERS_PER_PAGE;
        let written = |slru: &Slru<Native, File>| slru.file().writes.load(Ordering::Relaxed);
        assert!(pages > 60 && written(&sets.members) >= pages - 32, "{form:?}");
        for (number, id) in ids.iter().enumerate() {
            let found = sets.members(&mut TransactionSets::default(), *id);
            assert_eq!(found[..], made(number), "{form:?} {id:?}");
        }
        // In order, each page is read once.
        let read = sets.members.file().reads.load(Ordering::Relaxed);
        assert!((pages - 1..=pages + 1).contains(&read), "{read} of {pages}");
    }
}

/// Four threads, each with entries of its own on shared pages, of which two at a time have a buffer: each finds what it wrote.
#[test]
fn pages_are_whole_beside_evictions() {
    const THREADS: u64 = 4;
    const PAGES: u64 = 6;
    static TRANSFER: LatchClass = LatchClass::new("TestTransfer", WaitEvent::UserLatch, 252);
    static BANK: LatchClass = LatchClass::new("TestBank", WaitEvent::UserLatch, 253);
    let sizes = SlruSizes {
        banks: 1,
        buffers_per_bank: 2,
        entries_per_page: THREADS,
    };
    let latches = SlruLatches {
        transfer: &TRANSFER,
        bank: &BANK,
    };
    let slru = Slru::<Native, _>::new(sizes, latches, LwLockOptions::default(), File::default());
    (0..PAGES).for_each(|page| slru.begin_page(page));
    std::thread::scope(|scope| {
        for own in 0..THREADS {
            let slru = &slru;
            scope.spawn(move || {
                let mut written = [0; PAGES as usize];
                for round in 1..=4_000 {
                    let page = (round * (own + 1)) % PAGES;
                    let entry = page * THREADS + own;
                    assert_eq!(slru.read(entry, 1), [written[page as usize]], "round {round}");
                    slru.write(entry, &[round]);
                    written[page as usize] = round;
                }
            });
        }
    });
    assert!(slru.file().writes.load(Ordering::Relaxed) > PAGES);
}

/// A transaction that looks a set up again, or has made it, asks no latch; the next one does.
#[test]
fn a_transaction_knows_its_sets_until_it_ends() {
    let sets = sets(MultixactForm::Banks, 1);
    let mut own = TransactionSets::default();
    sets.announce(ProcId(0), &mut own);
    let id = sets.create(&mut own, &members(5..7), |_| ());
    let known = sets.members(&mut own, id);
    assert!(Rc::ptr_eq(&known, &sets.members(&mut own, id)) && !own.has_looked);
    assert_eq!(sets.oldest_of[0].load(Relaxed), 1);
    sets.end(ProcId(0), &mut own);
    assert!(own.known.is_empty() && sets.oldest_of[0].load(Relaxed) == 0);
    let looked_up = sets.members(&mut own, id);
    assert!(looked_up == known && !Rc::ptr_eq(&looked_up, &known) && own.has_looked);
    for _ in 0..2 * SETS_KEPT {
        sets.create(&mut own, &members(5..7), |_| ());
    }
    assert_eq!(own.known.len(), SETS_KEPT);
}

/// The log has each new page before a set that is on it, and each set with all its members.
#[test]
fn sets_and_new_pages_are_logged() {
    let sets = sets(MultixactForm::OneLatch, 1);
    let logged = std::cell::RefCell::new(Vec::new());
    let log = |bytes| logged.borrow_mut().push(bytes);
    sets.create(&mut TransactionSets::default(), &members(5..8), log);
    assert_eq!(logged.take(), [PAGE_RECORD_BYTES, PAGE_RECORD_BYTES, 36]);
    sets.create(&mut TransactionSets::default(), &members(5..7), log);
    assert_eq!(logged.take(), [28]);
    // From place 5 on: to the end of the first page of members, and one more.
    let many = MEMBERS_PER_PAGE - 4;
    sets.create(&mut TransactionSets::default(), &members(5..5 + many), log);
    assert_eq!(logged.take(), [PAGE_RECORD_BYTES, 12 + 8 * many as usize]);
}

/// Threads share one row by the rules X1 and X2, each as a transaction that ends. Whenever one has the row's word, the set
/// there has each transaction that shares the row, itself once, and no other but such as have ended.
#[test]
fn a_rows_set_has_each_sharer_that_runs() {
    const SESSIONS: usize = 4;
    const TRANSACTIONS: usize = 1_500;
    static PAGE: LatchClass = LatchClass::new("TestPage", WaitEvent::UserLatch, 250);
    for form in MultixactForm::ALL {
        let array = Arc::new(ProcArray::<Native>::new(
            SESSIONS as u32,
            ProcArrayOptions::default(),
            Xid(100),
        ));
        let sets = sets(form, SESSIONS);
        let lwlock = LwLockOptions::default();
        // The row's word, and the transactions that have shared it and not said that they end.
        let word = Latched::<Option<SetId>, Native>::new(&PAGE, lwlock, None);
        let sharers = Mutex::new(BTreeSet::new());
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..SESSIONS {
                scope.spawn(|| {
                    let proc = array.attach().unwrap();
                    for _ in 0..TRANSACTIONS {
                        let mut own = TransactionSets::default();
                        let xid = array.assign_xid(proc);
                        sets.announce(proc, &mut own);
                        {
                            let mut word = word.exclusive();
                            let there = (*word).map(|id| sets.members(&mut own, id));
                            let there = there.as_deref().unwrap_or_default();
                            let known: BTreeSet<Xid> = there.iter().map(|member| member.xid).collect();
                            assert_eq!(known.len(), there.len());
                            assert!(known.is_superset(&sharers.lock()));
                            let mut live: Vec<Member> = there.to_vec();
                            live.retain(|member| array.is_running(member.xid));
                            let mode = RowLockMode::KeyShare;
                            // A second member, so that there is always a set.
                            live.extend([xid, Xid(1)].map(|xid| Member { xid, mode }));
                            *word = Some(sets.create(&mut own, &live, |_| ()));
                            let mut sharers = sharers.lock();
                            sharers.insert(xid);
                            most.fetch_max(sharers.len(), Ordering::Relaxed);
                        }
                        std::thread::yield_now();
                        sharers.lock().remove(&xid);
                        array.end(proc, Some(xid));
                        sets.end(proc, &mut own);
                    }
                    array.detach(proc);
                });
            }
        });
        assert!(most.into_inner() > 1, "they share it");
    }
}
