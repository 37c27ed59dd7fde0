//! Digests of pieces of the log: by them a follower and its server find out whether they have the same one.
//!
//! Numbers and identities of timelines say what a directory's log is meant to be. They do not tell two copies of one
//! directory apart that were both written to, on the same timeline. So the last part of the log is compared too: SHA-256
//! over the same positions on both sides. It covers every byte there, so that a commit in it, which has a time in
//! microseconds, makes two logs differ that were otherwise written alike.
//!
//! A log is compared as far back as [`COMPARED_BYTES`] and both sides have it. Where that begins in the middle of other
//! log, the difference is found all the same: each record carries a digest of all log before it ([`LogLink`]).

use std::fmt::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::wal::LogDevice;
#[cfg(doc)]
use crate::wal::link::LogLink;

/// So much of the end of a log is compared: a segment's size.
pub const COMPARED_BYTES: u64 = 16 << 20;
/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// A digest of the log between two positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDigest {
    /// It covers the log from here: where that was asked for, or where the log that is there begins.
    pub start: Lsn,
    /// Up to here: where that was asked for, or where the log ends.
    pub end: Lsn,
    /// SHA-256, as hexadecimal digits.
    pub digits: String,
}

/// The digest of the log on `device`, which has it from `start` to `end`; `check` is asked after each read whether what
/// was read was still there.
pub(crate) fn digest(
    device: &dyn LogDevice,
    wal_dir: &Path,
    start: Lsn,
    end: Lsn,
    check: impl Fn() -> Result<()>,
) -> Result<LogDigest> {
    let mut sum = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut at = start;
    while at < end {
        let wanted = (end.0 - at.0).min(PIECE as u64) as usize;
        let read = device.read(at.0, &mut piece[..wanted]);
        check()?;
        let count = read.map_err(|error| StorageError::io("read", wal_dir, error))?;
        if count == 0 {
            let missing = std::io::Error::other(format!("there is no log at {at}"));
            return Err(StorageError::io("read", wal_dir, missing));
        }
        sum.update(&piece[..count]);
        at = Lsn(at.0 + count as u64);
    }
    let mut digits = String::new();
    for byte in sum.finalize() {
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(LogDigest {
        start,
        end: end.max(start),
        digits,
    })
}
