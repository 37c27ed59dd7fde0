//! A file of sets on the simulated machine: in the kernel's page cache, so a transfer takes the CPU.

use std::cell::RefCell;
use std::collections::BTreeMap;

use clearway_machine::{WaitEvent, WaitScope};
use clearway_sim::{Latency, Simulated, charge_drawn};

use crate::simulate::multixact::PageFile;

/// A file of pages.
#[derive(Debug)]
pub(super) struct File {
    pages: RefCell<BTreeMap<u64, Box<[u64]>>>,
    read: Latency,
    write: Latency,
}

impl File {
    /// An empty file, whose transfers take these times.
    pub(super) fn new(read: Latency, write: Latency) -> Self {
        Self {
            pages: RefCell::default(),
            read,
            write,
        }
    }
}

impl PageFile for File {
    fn read(&self, page: u64, words: &mut [u64]) {
        let _wait = WaitScope::<Simulated>::enter(WaitEvent::CommitLogRead);
        charge_drawn(&self.read);
        words.copy_from_slice(&self.pages.borrow()[&page]);
    }

    fn write(&self, page: u64, words: &[u64]) {
        let _wait = WaitScope::<Simulated>::enter(WaitEvent::CommitLogWrite);
        charge_drawn(&self.write);
        self.pages.borrow_mut().insert(page, words.into());
    }
}
