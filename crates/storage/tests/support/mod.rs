//! A log device in memory, for tests of the log and of commits.

use std::io;
use std::sync::{Arc, Mutex};

use clearway_storage::wal::{LogDevice, SYNC_LANES};

/// The bytes that were written, and the part of them that was synced.
#[derive(Debug, Default)]
pub struct Contents {
    pub bytes: Vec<u8>,
    pub synced: u64,
    pub syncs: u64,
    /// Lanes with a sync in progress.
    pub syncing: [bool; SYNC_LANES],
    /// The act of a sync before it counts: it lets other threads run, where a checker could not know that the sync
    /// takes time.
    pub before_sync: Option<fn()>,
}

/// Clones share their contents.
#[derive(Debug, Clone, Default)]
pub struct MemoryDevice(pub Arc<Mutex<Contents>>);

impl LogDevice for MemoryDevice {
    fn make_room(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let mut contents = self.0.lock().unwrap();
        let end = position as usize + bytes.len();
        if contents.bytes.len() < end {
            contents.bytes.resize(end, 0);
        }
        contents.bytes[position as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self, from: u64, to: u64) -> io::Result<()> {
        self.sync_in_lane(0, from, to)
    }

    fn sync_in_lane(&self, lane: usize, from: u64, to: u64) -> io::Result<()> {
        let before_sync = {
            let mut contents = self.0.lock().unwrap();
            assert!(!contents.syncing[lane], "two workers sync at once");
            contents.syncing[lane] = true;
            assert!(
                to <= contents.bytes.len() as u64,
                "a sync makes durable what was written when it began"
            );
            contents.before_sync
        };
        if let Some(pause) = before_sync {
            pause();
        }
        let mut contents = self.0.lock().unwrap();
        assert!(
            from <= contents.synced,
            "bytes {} to {from} are never synced",
            contents.synced
        );
        contents.synced = contents.synced.max(to);
        contents.syncs += 1;
        contents.syncing[lane] = false;
        Ok(())
    }

    fn read(&self, position: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let contents = self.0.lock().unwrap();
        let start = (position as usize).min(contents.bytes.len());
        let count = bytes.len().min(contents.bytes.len() - start);
        bytes[..count].copy_from_slice(&contents.bytes[start..start + count]);
        Ok(count)
    }

    fn forget_before(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }
}
