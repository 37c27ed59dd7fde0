//! The pages of tables that do not grow and are not written out, for a simulated buffer pool.

use clearway_machine::{WaitEvent, WaitScope};
use clearway_sim::{Latency, Simulated, charge_drawn};
use clearway_storage::{Lsn, PAGE_SIZE, PageDevice, PageId, RelId, Result};

/// Pages that all are zeros.
pub(super) struct TablePages {
    /// The time of a read; `None`: none, for pages that are in the pool from the start.
    pub(super) read: Option<Latency>,
}

impl PageDevice for TablePages {
    fn check_exists(&self, _page: PageId) -> Result<()> {
        Ok(())
    }
    fn extend(&self, _rel: RelId, _enter: &mut dyn FnMut(PageId)) -> Result<()> {
        unreachable!("the tables have all their pages");
    }
    /// The bytes stay the zeros that they are, untouched.
    fn read(&self, _page: PageId, _bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        if let Some(latency) = &self.read {
            let _wait = WaitScope::<Simulated>::enter(WaitEvent::DataFileRead);
            charge_drawn(latency);
        }
        Ok(())
    }
    fn write(&self, page: PageId, _bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        unreachable!("page {} is clean, or stays in its frame", page.block);
    }
    fn newest_early_commit(&self) -> Lsn {
        Lsn(0)
    }
    fn flush_log(&self, _upto: Lsn) {}
}
