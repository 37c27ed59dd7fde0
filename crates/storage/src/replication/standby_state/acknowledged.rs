//! The position up to which log was received and acknowledged, kept on disk.
//!
//! If a standby has reported log as durable, the primary may have acknowledged commits in it to its clients. A start
//! finds the end of the log where no whole record follows, and cannot tell by the log alone whether it ends there or is
//! damaged there. This file tells: the log goes on to the position in it at least.
//!
//! 1. The log up to P is durable, and whole records.
//! 2. P is written here.
//! 3. Others see that the log up to P is there ([`Progress`](super::progress)), from when on it may be acknowledged.
//!
//! 2 and 3 are one step for who compares the two ([`Acknowledged::beside`]): between them a standby that receives would look
//! like one that has lost log.
//!
//! A process that is killed loses no write, so what it leaves is exact. After a power cut the file may say less, since it is
//! synced once a second only: a sync for each acknowledgement would double what a synchronous commit waits for. It never says
//! more than there was, since 1 is before 2.
//!
//! The file has two copies, which are written in turn: a torn one leaves the other.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::lock;
use crate::disk::{self, Disk, DiskFile, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::page::{Lsn, get_u32, get_u64};

/// The file's name in the data directory.
pub(crate) const NAME: &str = "acknowledged";
const MAGIC: u64 = u64::from_le_bytes(*b"CLEARACK");
/// Magic, generation, position, CRC-32C of these.
const COPY_SIZE: usize = 28;
/// Offsets of the copies.
const COPIES: [u64; 2] = [0, 4096];
/// Time between two syncs of the file.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The file of one data directory.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    fsync: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    generation: u64,
    position: Lsn,
    synced: Instant,
}

impl Acknowledged {
    /// Opens the file in `dir`, made if it is not there. `begins`: the directory becomes a standby's now, and what the file
    /// says is of an earlier life. The caller syncs the directory.
    pub(crate) fn open(disk: &dyn Disk, dir: &Path, fsync: bool, begins: bool) -> Result<Self> {
        let path = dir.join(NAME);
        let fail = |action, error| StorageError::io(action, &path, error);
        let mode = if begins {
            OpenMode::Truncate
        } else {
            OpenMode::Create
        };
        let file = disk.open(&path, mode).map_err(|error| fail("open", error))?;
        let (mut generation, mut position) = (0, Lsn(0));
        for offset in COPIES {
            let mut copy = [0; COPY_SIZE];
            let read = file
                .read_at(&mut copy, offset)
                .map_err(|error| fail("read", error))?;
            if let Some(found) = decode(&copy[..read]).filter(|found| found.0 > generation) {
                (generation, position) = found;
            }
        }
        let state = State {
            generation,
            position,
            synced: Instant::now(),
        };
        Ok(Self {
            file,
            path,
            fsync,
            state: Mutex::new(state),
        })
    }

    /// Log up to here was acknowledged; 0: none.
    pub(crate) fn position(&self) -> Lsn {
        lock(&self.state).position
    }

    /// The position beside another that `other` gives, of which none is ahead of the other because a receiver is between
    /// steps 2 and 3.
    pub(crate) fn beside<T>(&self, other: impl FnOnce() -> T) -> (Lsn, T) {
        let state = lock(&self.state);
        (state.position, other())
    }

    /// Step 2, and by `tell` step 3.
    pub(crate) fn advance(&self, position: Lsn, tell: impl FnOnce()) -> Result<()> {
        let mut state = lock(&self.state);
        if position > state.position {
            self.write(&mut state, position)?;
            if self.fsync && state.synced.elapsed() >= SYNC_EVERY {
                self.sync(&mut state);
            }
        }
        tell();
        Ok(())
    }

    /// The server that is followed has left our log at `fork`: what was acknowledged behind that is no log of the database
    /// any more.
    pub(crate) fn ends_at(&self, fork: Lsn) -> Result<()> {
        let mut state = lock(&self.state);
        if fork >= state.position {
            return Ok(());
        }
        self.write(&mut state, fork)?;
        if self.fsync {
            self.sync(&mut state);
        }
        Ok(())
    }

    fn write(&self, state: &mut State, position: Lsn) -> Result<()> {
        let generation = state.generation + 1;
        self.file
            .write_at(&encode(generation, position), COPIES[(generation % 2) as usize])
            .map_err(|error| StorageError::io("write", &self.path, error))?;
        (state.generation, state.position) = (generation, position);
        Ok(())
    }

    fn sync(&self, state: &mut State) {
        if let Err(error) = self.file.sync_data(SyncPurpose::LogFlush) {
            disk::sync_failed(&self.path, &error);
        }
        state.synced = Instant::now();
    }
}

fn encode(generation: u64, position: Lsn) -> [u8; COPY_SIZE] {
    let mut copy = [0; COPY_SIZE];
    for (word, place) in [MAGIC, generation, position.0]
        .iter()
        .zip(copy.chunks_exact_mut(8))
    {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let sum = crc32c::crc32c(&copy[..COPY_SIZE - 4]);
    copy[COPY_SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
    copy
}

/// Generation and position.
fn decode(copy: &[u8]) -> Option<(u64, Lsn)> {
    let is_whole = copy.len() == COPY_SIZE
        && get_u64(copy, 0) == MAGIC
        && get_u32(copy, COPY_SIZE - 4) == crc32c::crc32c(&copy[..COPY_SIZE - 4]);
    is_whole.then(|| (get_u64(copy, 8), Lsn(get_u64(copy, 16))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::NativeDisk;

    fn open(dir: &Path, begins: bool) -> Acknowledged {
        Acknowledged::open(&NativeDisk, dir, true, begins).unwrap()
    }

    /// The last position counts, also if it is less because the server has left the log; a torn copy leaves the one before;
    /// a directory that becomes a standby's begins anew.
    #[test]
    fn the_last_position_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let file = open(dir.path(), false);
        assert_eq!(file.position(), Lsn(0));
        file.advance(Lsn(800), || {}).unwrap();
        file.advance(Lsn(900), || {}).unwrap();
        file.advance(Lsn(100), || {}).unwrap();
        assert_eq!(
            (file.position(), open(dir.path(), false).position()),
            (Lsn(900), Lsn(900))
        );
        file.ends_at(Lsn(850)).unwrap();
        let last = COPIES[(lock(&file.state).generation % 2) as usize];
        assert_eq!(open(dir.path(), false).position(), Lsn(850));
        file.file.write_at(&[0xFF], last + 20).unwrap();
        assert_eq!(open(dir.path(), false).position(), Lsn(900));
        assert_eq!(open(dir.path(), true).position(), Lsn(0));
        assert_eq!(open(dir.path(), false).position(), Lsn(0));
    }
}
