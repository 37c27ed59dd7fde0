//! The commit log's writes to its device, seen by the commit log of a later start.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use clearway_machine::Native;
use clearway_txn::{COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, Status, StatusDevice, Xid};

type PageBytes = [u8; COMMIT_LOG_PAGE_SIZE];

/// Pages that outlive the commit log.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<HashMap<u32, PageBytes>>>);

impl StatusDevice for Disk {
    fn read_page(&self, number: u32, bytes: &mut PageBytes) -> io::Result<bool> {
        let pages = self.0.lock().unwrap();
        let found = pages.get(&number);
        if let Some(page) = found {
            *bytes = *page;
        }
        Ok(found.is_some())
    }

    fn write_page(&self, number: u32, bytes: &PageBytes, _: u64) -> io::Result<()> {
        self.0.lock().unwrap().insert(number, *bytes);
        Ok(())
    }
}

/// Recovery merges the image of a page that the log holds. The checkpoint after it must write that page, since the next
/// recovery begins behind the image: otherwise the commits in it are forgotten by the second crash.
#[test]
fn an_image_merged_in_recovery_is_written_at_the_next_checkpoint() {
    for options in CommitLogOptions::each_variant() {
        let disk = Disk::default();
        let log = CommitLog::<Native, _>::new(disk.clone(), options);
        // Xids 8 and 9 are the first two of the third byte: committed, aborted.
        log.merge_page(0, &[0, 0, 0b10_01]).unwrap();
        log.flush_all().unwrap();
        drop(log);
        let log = CommitLog::<Native, _>::new(disk, options);
        assert_eq!(log.get(Xid(8)).unwrap(), Status::Committed, "{options:?}");
        assert_eq!(log.get(Xid(9)).unwrap(), Status::Aborted, "{options:?}");
        assert_eq!(log.get(Xid(10)).unwrap(), Status::InProgress, "{options:?}");
    }
}
