//! The file `slots` of a data directory: the replication slots that outlive the server.
//!
//! ```text
//! 0        8       16                                               …
//! | magic  | count | slot: name (64), position (8), flags (8) | … | CRC-32C |
//! ```
//!
//! The file is written beside its name, made durable, and then renamed, so there is always a whole one. A directory
//! without the file has no slots. Flags: 1, the slot has a position; 2, it is lost.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{SLOT_NAME_BYTES_MAX, SLOTS_MAX, Slot};
use crate::disk::{self, Disk, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::page::{Lsn, get_u32, get_u64};

/// The file.
pub(crate) const SLOTS: &str = "slots";
const MAGIC: u64 = u64::from_le_bytes(*b"CLWSLOTS");
const HEADER: usize = 16;
const NAME: usize = SLOT_NAME_BYTES_MAX + 1;
const ENTRY: usize = NAME + 16;
const HAS_POSITION: u64 = 1;
const LOST: u64 = 2;

#[derive(Debug)]
pub(super) struct SlotFile {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    fsync: bool,
}

impl SlotFile {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: &Path, fsync: bool) -> SlotFile {
        SlotFile {
            disk,
            dir: dir.to_owned(),
            fsync,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(SLOTS)
    }

    pub(super) fn read(&self) -> Result<Vec<Slot>> {
        let path = self.path();
        let fail = |error| StorageError::io("read", &path, error);
        let file = match self.disk.open(&path, OpenMode::Existing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(fail)?,
        };
        let longest = HEADER + SLOTS_MAX * ENTRY + 4;
        let mut bytes = vec![0; (file.length().map_err(fail)?).min(longest as u64 + 1) as usize];
        file.read_exact_at(&mut bytes, 0).map_err(fail)?;
        decode(&bytes).ok_or_else(|| StorageError::CorruptFile {
            file: path.clone(),
            offset: 0,
            problem: "its checksum is wrong; remove it to start without replication slots (standbys that used them \
                may then need a new base backup)"
                .to_owned(),
        })
    }

    /// Makes the file hold `slots`, durably.
    pub(super) fn write<'a>(&self, slots: impl Iterator<Item = &'a Slot>) -> Result<()> {
        let (path, unfinished) = (self.path(), self.dir.join("slots.new"));
        let written = (|| {
            let file = self.disk.open(&unfinished, OpenMode::Truncate)?;
            file.write_at(&encode(slots), 0)?;
            if self.fsync {
                file.sync_all(SyncPurpose::Slots)?;
            }
            self.disk.rename(&unfinished, &path)?;
            if self.fsync {
                self.disk.open_directory(&self.dir)?.sync(SyncPurpose::Slots)?;
            }
            Ok(())
        })();
        written.map_err(|error: io::Error| {
            if matches!(error.kind(), io::ErrorKind::StorageFull) {
                StorageError::io("write", &path, error)
            } else {
                // The file may be renamed and not durable: another attempt could acknowledge what is lost.
                disk::sync_failed(&path, &error)
            }
        })
    }
}

fn encode<'a>(slots: impl Iterator<Item = &'a Slot>) -> Vec<u8> {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend([0; 8]);
    let mut count: u64 = 0;
    for slot in slots {
        let mut name = [0; NAME];
        name[..slot.name.len()].copy_from_slice(slot.name.as_bytes());
        let flags = if slot.restart.is_some() { HAS_POSITION } else { 0 } | if slot.lost { LOST } else { 0 };
        bytes.extend(name);
        bytes.extend(slot.restart.unwrap_or(Lsn(0)).0.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        count += 1;
    }
    bytes[8..HEADER].copy_from_slice(&count.to_le_bytes());
    let sum = crc32c::crc32c(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Vec<Slot>> {
    let (content, _) = bytes.split_last_chunk::<4>()?;
    if content.len() < HEADER
        || get_u64(content, 0) != MAGIC
        || get_u32(bytes, content.len()) != crc32c::crc32c(content)
        || get_u64(content, 8) as usize != (content.len() - HEADER) / ENTRY
    {
        return None;
    }
    let slot = |entry: &[u8]| {
        let name = entry[..NAME].split(|byte| *byte == 0).next().unwrap_or_default();
        let flags = get_u64(entry, NAME + 8);
        Some(Slot {
            name: str::from_utf8(name).ok()?.to_owned(),
            restart: (flags & HAS_POSITION != 0).then(|| Lsn(get_u64(entry, NAME))),
            lost: flags & LOST != 0,
            temporary_of: None,
            active_process_id: None,
        })
    };
    content[HEADER..].chunks_exact(ENTRY).map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_or_cut_file_is_no_list_of_slots() {
        let slot = Slot {
            name: "n".repeat(SLOT_NAME_BYTES_MAX),
            restart: Some(Lsn(77)),
            lost: true,
            temporary_of: None,
            active_process_id: None,
        };
        let bytes = encode([slot.clone()].iter());
        assert_eq!(decode(&bytes), Some(vec![slot]));
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(decode(&damaged), None, "damaged at {at}");
        }
        assert_eq!(decode(&encode([].iter())), Some(Vec::new()));
    }
}
