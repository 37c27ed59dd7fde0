//! The buffer that commits are appended to, and the file it is written to.
//!
//! This is less than a log: a write takes what is reserved, without waiting until records before it are copied. A real
//! log must wait for those, so the figures are an upper bound of what it can do.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A record in words of 8 bytes: 200 bytes.
const RECORD_WORDS: u64 = 25;

/// The buffer in words: room for 40,000 records, far more than wait at any time.
const BUFFER_WORDS: u64 = 1 << 20;

/// The file, which is overwritten in a circle.
const FILE_BYTES: u64 = 64 << 20;

pub(crate) struct Log {
    file: File,
    buffer: Box<[AtomicU64]>,
    /// The end of what is reserved, in words.
    reserved: AtomicU64,
    /// The end of what is written, in words; its holder writes.
    written: Mutex<u64>,
    syncs: AtomicU64,
}

impl Log {
    pub(crate) fn create(path: &Path) -> io::Result<Log> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let zeros = vec![0; 1 << 20];
        for megabyte in 0..FILE_BYTES >> 20 {
            file.write_all_at(&zeros, megabyte << 20)?;
        }
        file.sync_all()?;
        Ok(Log {
            file,
            buffer: (0..BUFFER_WORDS).map(|_| AtomicU64::new(0)).collect(),
            reserved: AtomicU64::new(0),
            written: Mutex::new(0),
            syncs: AtomicU64::new(0),
        })
    }

    /// Appends a record.
    pub(crate) fn append(&self) {
        let start = self.reserved.fetch_add(RECORD_WORDS, Ordering::Relaxed);
        for word in start..start + RECORD_WORDS {
            self.buffer[(word % BUFFER_WORDS) as usize].store(word, Ordering::Relaxed);
        }
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Writes all that is reserved, and syncs. Several threads may do so at the same time: each writes its part, and a
    /// sync makes durable all that was written when it began.
    pub(crate) fn flush(&self) {
        self.write().expect("the file can be written");
        self.file.sync_data().expect("the file can be synced");
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }

    fn write(&self) -> io::Result<()> {
        let mut written = self
            .written
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let end = self.reserved.load(Ordering::Acquire);
        let mut bytes = Vec::with_capacity((end - *written) as usize * 8);
        for word in *written..end {
            let value = self.buffer[(word % BUFFER_WORDS) as usize].load(Ordering::Relaxed);
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        let at = *written * 8 % FILE_BYTES;
        let (to_the_end, around) = bytes.split_at(bytes.len().min((FILE_BYTES - at) as usize));
        self.file.write_all_at(to_the_end, at)?;
        self.file.write_all_at(around, 0)?;
        *written = end;
        Ok(())
    }
}
