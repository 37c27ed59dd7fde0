use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use clearway_machine::Watchdog;

use super::*;

/// Written pages, with the log position each was written at.
#[derive(Default)]
struct Memory(Mutex<HashMap<u32, (Vec<u8>, u64)>>);

impl StatusDevice for Arc<Memory> {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        let found = self
            .0
            .lock()
            .unwrap()
            .get(&number)
            .map(|(bytes, _)| page.copy_from_slice(bytes));
        Ok(found.is_some())
    }
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
        self.0.lock().unwrap().insert(number, (page.to_vec(), lsn));
        Ok(())
    }
}

/// One bank, which holds all pages, and a number of banks that is rounded up.
fn with_fewer_banks() -> impl Iterator<Item = CommitLogOptions> {
    [CommitLogVariant::Banks, CommitLogVariant::Group]
        .into_iter()
        .flat_map(|variant| {
            [1, 3].map(|banks| CommitLogOptions {
                variant,
                banks,
                ..CommitLogOptions::default()
            })
        })
}

#[test]
fn statuses_survive_eviction_and_flush() {
    let _watchdog = Watchdog::over_test();
    for options in CommitLogOptions::each_variant().chain(with_fewer_banks()) {
        eprintln!("under {options:?}");
        let memory = Arc::new(Memory::default());
        let log = CommitLog::<Native, _>::new(Arc::clone(&memory), options);
        // The second xid evicts the first one's page from their common slot.
        let near = Xid(7);
        let far = Xid(7 + XIDS_PER_PAGE * CACHED_PAGES as u64);
        log.set(near, Status::Committed, 500).unwrap();
        log.set(near.next(), Status::Aborted, 400).unwrap();
        log.set(far, Status::Aborted, 600).unwrap();
        assert_eq!(
            memory.0.lock().unwrap()[&0].1,
            500,
            "R1: the newest position of the page"
        );
        assert_eq!(log.get(near).unwrap(), Status::Committed);
        assert_eq!(log.get(far).unwrap(), Status::Aborted);
        log.flush_all().unwrap();
        let again = CommitLog::<Native, _>::new(memory, options);
        assert_eq!(again.get(near).unwrap(), Status::Committed);
        assert_eq!(again.get(near.next()).unwrap(), Status::Aborted);
        assert_eq!(again.get(far).unwrap(), Status::Aborted);
        assert_eq!(again.get(Xid(9)).unwrap(), Status::InProgress);
        assert_eq!(again.get(Xid::BOOTSTRAP).unwrap(), Status::Committed);
    }
}

/// The place of a status is part of the format; and no two statuses have the same place.
#[test]
fn each_status_has_two_bits_of_its_own() {
    let _watchdog = Watchdog::over_test();
    for options in CommitLogOptions::each_variant() {
        eprintln!("under {options:?}");
        let memory = Arc::new(Memory::default());
        let log = CommitLog::<Native, _>::new(Arc::clone(&memory), options);
        let xids = || (3..3_000).chain(XIDS_PER_PAGE - 50..XIDS_PER_PAGE + 50);
        let status = |xid: u64| Status::from_bits((xid % 3) as u8);
        for xid in xids().filter(|xid| status(*xid) != Status::InProgress) {
            log.set(Xid(xid), status(xid), 0).unwrap();
        }
        for xid in xids() {
            assert_eq!(log.get(Xid(xid)).unwrap(), status(xid), "{xid}");
            let committed = crate::final_state(&log, Xid(xid)).unwrap() == crate::TransactionState::Committed;
            assert_eq!(committed, status(xid) == Status::Committed, "{xid}");
        }
        assert_eq!(log.get(Xid::INVALID).unwrap(), Status::Aborted);
        log.flush_all().unwrap();
        let written = memory.0.lock().unwrap();
        let byte = |page: u32, byte: usize| written[&page].0[COMMIT_LOG_PAGE_HEADER + byte];
        assert_eq!(
            byte(0, 1),
            0b01_00_10_01,
            "4, 5, 6, 7: committed, aborted, running, committed"
        );
        assert_eq!(byte(0, 2), 0b10_01_00_10, "8 to 11");
        let first = XIDS_PER_PAGE;
        let wanted = (0..4).map(|at| ((first + at) % 3) as u8 * (1 << (2 * at))).sum();
        assert_eq!(byte(1, 0), wanted, "the second page");
        assert!(
            written[&0].0[..COMMIT_LOG_PAGE_HEADER]
                .iter()
                .all(|byte| *byte == 0)
        );
    }
}

#[test]
fn an_image_adds_to_what_is_known() {
    let _watchdog = Watchdog::over_test();
    for options in CommitLogOptions::each_variant() {
        eprintln!("under {options:?}");
        let memory = Arc::new(Memory::default());
        let log = CommitLog::<Native, _>::new(Arc::clone(&memory), options);
        log.set(Xid(4), Status::Committed, 0).unwrap();
        log.set(Xid(5), Status::Aborted, 0).unwrap();
        // Of an earlier and a later moment.
        log.merge_page(0, &[0, 0b00_00_00_01]).unwrap();
        log.merge_page(0, &[0, 0b01_00_10_01]).unwrap();
        for (xid, status) in [
            (4, Status::Committed),
            (5, Status::Aborted),
            (6, Status::InProgress),
            (7, Status::Committed),
        ] {
            assert_eq!(log.get(Xid(xid)).unwrap(), status, "{xid}");
        }
        log.flush_all().unwrap();
        assert_eq!(
            memory.0.lock().unwrap()[&0].0[COMMIT_LOG_PAGE_HEADER + 1],
            0b01_00_10_01
        );
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "R4")]
fn an_aborted_transaction_does_not_commit() {
    let _watchdog = Watchdog::over_test();
    let log = CommitLog::<Native, _>::new(Arc::new(Memory::default()), CommitLogOptions::default());
    log.set(Xid(7), Status::Aborted, 0).unwrap();
    let _ = log.set(Xid(7), Status::Committed, 0);
}

/// A device whose writes can be made to fail, and which says what is set while a page is being written.
struct Hooked<F: Fn(u32) -> io::Result<()> + Send + Sync>(Arc<Memory>, F);

impl<F: Fn(u32) -> io::Result<()> + Send + Sync> StatusDevice for Hooked<F> {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        self.0.read_page(number, page)
    }
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
        (self.1)(number)?;
        self.0.write_page(number, page, lsn)
    }
}

#[test]
fn a_status_set_during_a_write_stays_dirty() {
    let _watchdog = Watchdog::over_test();
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    for options in CommitLogOptions::each_variant() {
        eprintln!("under {options:?}");
        type Log = CommitLog<Native, Box<dyn StatusDevice>>;
        let memory = Arc::new(Memory::default());
        let itself = Arc::new(OnceLock::<Arc<Log>>::new());
        let writes = Arc::new(AtomicU32::new(0));
        let (inner, counted) = (Arc::clone(&itself), Arc::clone(&writes));
        let hook = move |_| {
            // Bob commits while Alice's page is on its way: he finds it cached and is not held up.
            if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                inner.get().unwrap().set(Xid(8), Status::Committed, 200)?;
            }
            Ok(())
        };
        let device: Box<dyn StatusDevice> = Box::new(Hooked(Arc::clone(&memory), hook));
        let log = Arc::new(Log::new(device, options));
        assert!(itself.set(Arc::clone(&log)).is_ok());
        log.set(Xid(7), Status::Committed, 100).unwrap();
        log.flush_all().unwrap();
        assert_eq!(memory.0.lock().unwrap()[&0].1, 100);
        log.flush_all().unwrap();
        assert_eq!(
            memory.0.lock().unwrap()[&0].1,
            200,
            "R3: written again, with Bob's position"
        );
        log.flush_all().unwrap();
        assert_eq!(writes.load(Ordering::Relaxed), 2, "clean now");
        let device: Box<dyn StatusDevice> = Box::new(Arc::clone(&memory));
        let again = Log::new(device, options);
        assert_eq!(
            again.get(Xid(8)).unwrap(),
            Status::Committed,
            "through the box as well"
        );
    }
}

#[test]
fn a_failed_write_loses_nothing() {
    let _watchdog = Watchdog::over_test();
    use std::sync::atomic::{AtomicBool, Ordering};
    for options in CommitLogOptions::each_variant() {
        eprintln!("under {options:?}");
        let memory = Arc::new(Memory::default());
        let broken = Arc::new(AtomicBool::new(true));
        let switch = Arc::clone(&broken);
        let hook = move |_| match switch.load(Ordering::Relaxed) {
            true => Err(io::Error::from(io::ErrorKind::StorageFull)),
            false => Ok(()),
        };
        let log = CommitLog::<Native, _>::new(Hooked(Arc::clone(&memory), hook), options);
        let far = Xid(7 + XIDS_PER_PAGE * CACHED_PAGES as u64);
        log.set(Xid(7), Status::Committed, 100).unwrap();
        assert!(
            log.flush_all().is_err() && log.get(far).is_err(),
            "the victim cannot be written"
        );
        assert_eq!(log.get(Xid(7)).unwrap(), Status::Committed);
        broken.store(false, Ordering::Relaxed);
        assert_eq!(log.get(far).unwrap(), Status::InProgress);
        assert_eq!(log.get(Xid(7)).unwrap(), Status::Committed);
        assert_eq!(memory.0.lock().unwrap()[&0].1, 100);
    }
}
