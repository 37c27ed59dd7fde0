//! Writing received log, byte for byte where the primary has it (S1), and checking it (S10).
//!
//! A connection can change, lose, repeat and reorder bytes, and so can the server's disk. A standby that acknowledges what it
//! cannot replay loses it with its primary. So each record is checked on its way in:
//!
//! 1. The bytes continue a record that has begun, or begin one. A record is whole if its own position, its length, its kind
//!    and its CRC are right (`wal/record.rs`), zeros follow its payload, and the next one begins where it ends. It continues
//!    this log if its link is that of the record before it (`wal/link.rs`); otherwise it is another log's.
//! 2. What is no record is not written. If its beginning has been received already, that is given up: the next byte to come
//!    is the first of that record, so the caller has it sent again. Nothing of it was acknowledged.
//! 3. Bytes are written, synced, and count as received, also those of a record of which there is only the beginning.
//! 4. Only whole records are replayed, counted as [`checked`](LogReceiver::checked), and so acknowledged; how far is written
//!    down before (`acknowledged`).
//!
//! A length that was changed to a larger one makes the record wait for more bytes than there are. The caller gives such a
//! part up when it has waited long enough ([`LogReceiver::give_up_part`]).
//!
//! Cost: a CRC of each byte, and a write of 28 bytes for each sync.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::disk::SyncPurpose;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::replication::standby_state::Standby;
use crate::storage::Storage;
use crate::storage::background::{BackgroundKind, InBackground};
use crate::wal::LogDevice;
use crate::wal::link::LogLink;
use crate::wal::record::{self, Decoded};

/// The right to write a standby's log, for one worker at a time.
#[derive(Debug)]
pub struct LogReceiver {
    storage: Arc<Storage>,
    standby: Arc<Standby>,
    written: Lsn,
    check: RecordCheck,
    /// While a server sends log.
    streams: Option<InBackground>,
}

/// The part of received log that was found to be whole records.
#[derive(Debug)]
struct RecordCheck {
    /// The end of the last whole record.
    whole: Lsn,
    /// The link that the next one has to have; `None`: it is not known yet.
    link: Option<LogLink>,
    /// The bytes behind it: the beginning of a record.
    part: Vec<u8>,
}

/// The reason for which bytes do not continue the log.
enum NoRecord {
    /// They are no record.
    Damaged,
    /// They are a record of another log.
    Unlinked,
}

/// As [`record::decode`], for which the zeros behind the payload do not matter: here they do, for S1.
fn decode_whole(bytes: &[u8], position: u64) -> Decoded<'_> {
    match record::decode(bytes, position) {
        Decoded::Record(record, total)
            if bytes[record::HEADER + record.payload.len()..total]
                .iter()
                .any(|byte| *byte != 0) =>
        {
            Decoded::End
        }
        decoded => decoded,
    }
}

impl RecordCheck {
    /// The record before is whole up to `whole`.
    fn after(whole: Lsn, link: Option<LogLink>) -> Self {
        Self {
            whole,
            link,
            part: Vec::new(),
        }
    }

    /// The next record takes `total` bytes and has these links.
    fn next(&mut self, link: LogLink, next: LogLink, total: usize) -> std::result::Result<(), NoRecord> {
        if self.link.is_some_and(|expected| expected != link) {
            return Err(NoRecord::Unlinked);
        }
        self.link = Some(next);
        self.whole = Lsn(self.whole.0 + total as u64);
        Ok(())
    }

    /// Checks what follows (steps 1 and 4).
    fn add(&mut self, mut bytes: &[u8]) -> std::result::Result<(), NoRecord> {
        while !self.part.is_empty() {
            match decode_whole(&self.part, self.whole.0) {
                Decoded::Record(record, total) => {
                    let (link, next) = (record.link, record.next_link);
                    self.next(link, next, total)?;
                    self.part.clear();
                }
                // No more than the record needs, so nothing is left when it is whole.
                Decoded::NeedMore(needed) => {
                    let (more, rest) = bytes.split_at(bytes.len().min(needed - self.part.len()));
                    if more.is_empty() {
                        return Ok(());
                    }
                    self.part.extend_from_slice(more);
                    bytes = rest;
                }
                Decoded::End => return Err(NoRecord::Damaged),
            }
        }
        while !bytes.is_empty() {
            match decode_whole(bytes, self.whole.0) {
                Decoded::Record(record, total) => {
                    self.next(record.link, record.next_link, total)?;
                    bytes = &bytes[total..];
                }
                Decoded::NeedMore(_) => {
                    self.part.extend_from_slice(bytes);
                    return Ok(());
                }
                Decoded::End => return Err(NoRecord::Damaged),
            }
        }
        Ok(())
    }
}

impl Storage {
    /// The right to receive, which nothing else has: the standby was not promoted, and receives nothing.
    pub fn receive_log(self: &Arc<Self>) -> Result<LogReceiver> {
        let no_standby = || StorageError::Standby {
            problem: "this server is no standby".to_owned(),
        };
        let standby = Arc::clone(self.standby().ok_or_else(no_standby)?);
        standby.refuse_primarys_directory(self.dir())?;
        if standby.receiver_is_taken.swap(true, Ordering::AcqRel) {
            return Err(standby.failed("the standby receives log already, or is being promoted"));
        }
        let mut receiver = LogReceiver {
            storage: Arc::clone(self),
            written: standby.received(),
            check: RecordCheck::after(standby.progress.whole(), standby.progress.link()),
            streams: None,
            standby,
        };
        receiver.read_part()?;
        Ok(receiver)
    }
}

impl LogReceiver {
    /// The position of the next byte.
    pub fn position(&self) -> Lsn {
        self.written
    }

    /// The end of the last whole record that is durable here: up to where log may be acknowledged.
    pub fn checked(&self) -> Lsn {
        self.standby.progress.whole()
    }

    /// Writes `bytes`, which are at `position` in the primary's log. It has to be [`position`](Self::position).
    /// [`StorageError::DamagedRecord`]: something in it is no record, where [`position`](Self::position) is then; what is
    /// before it is written. [`StorageError::UnlinkedRecord`]: the same, of a record that does not continue this log.
    pub fn write(&mut self, position: Lsn, bytes: &[u8]) -> Result<()> {
        if position != self.written {
            return Err(self.standby.failed(format_args!(
                "log was sent from position {position} on, where that from {} on was expected",
                self.written
            )));
        }
        let checked = self.check.add(bytes);
        let good = match checked {
            Ok(()) => bytes,
            Err(_) => &bytes[..self.check.whole.0.saturating_sub(position.0) as usize],
        };
        let end = Lsn(position.0 + good.len() as u64);
        let device = self.storage.wal.device();
        let written = device
            .make_room(end.0)
            .and_then(|()| device.write(position.0, good));
        if let Err(error) = written {
            // The check is ahead of what was written.
            self.give_up_part();
            return Err(StorageError::io(
                "write the log in",
                &self.storage.log_dir(),
                error,
            ));
        }
        self.written = end;
        let position = self.check.whole;
        let Err(fault) = checked else {
            return Ok(());
        };
        self.set_back(position, self.check.link);
        Err(match fault {
            NoRecord::Damaged => StorageError::DamagedRecord { position },
            NoRecord::Unlinked => StorageError::UnlinkedRecord { position },
        })
    }

    /// Makes what was written durable, and lets what is whole be replayed; up to where the log is there now.
    pub fn sync(&mut self) -> Result<Lsn> {
        let from = self.standby.received();
        if from < self.written {
            let device = self.storage.wal.device();
            if let Err(error) = device.sync_range(from.0, self.written.0, SyncPurpose::LogFlush) {
                crate::disk::sync_failed(&self.storage.log_dir(), &error);
            }
        }
        let progress = &self.standby.progress;
        self.standby.acknowledged.advance(self.check.whole, || {
            progress.received_up_to(self.written);
            progress.whole_up_to(self.check.whole, self.check.link);
        })?;
        Ok(self.written)
    }

    /// Goes on at the end of what is durable, which is less than before if following another timeline has taken back a part
    /// of a record.
    pub fn resume(&mut self) {
        self.written = self.standby.received();
        let progress = &self.standby.progress;
        self.check = RecordCheck::after(progress.whole(), progress.link());
        if self.read_part().is_err() {
            // Then it is sent again.
            self.set_back(self.check.whole, self.check.link);
        }
    }

    /// A server has begun to send log to the calling thread, or sends no more: for those who look what the standby does.
    pub fn set_streaming(&mut self, streams: bool) {
        self.standby.progress.set_fed(streams);
        self.streams = streams.then(|| self.storage.background.enter(BackgroundKind::Receiver));
    }

    /// Gives up a record of which only the beginning was received, so that it is received again from its start; whether
    /// there was any.
    pub fn give_up_part(&mut self) -> bool {
        let has_part = self.written > self.standby.progress.whole();
        // What was written and not synced is given up with it: it is sent again too.
        self.set_back(self.standby.progress.whole(), self.standby.progress.link());
        has_part
    }

    /// The next byte goes to `whole`, the end of a record, and begins one that has to have `link`.
    fn set_back(&mut self, whole: Lsn, link: Option<LogLink>) {
        self.written = whole;
        self.check = RecordCheck::after(whole, link);
        if self.standby.received() > whole {
            // Nothing behind it is replayed. A follower that was sent it finds the same out.
            self.standby.progress.received_up_to(whole);
            self.storage.retention.log_was_taken_back(whole);
        }
    }

    /// The bytes of a record that another receiver has begun to receive.
    fn read_part(&mut self) -> Result<()> {
        let mut part = vec![0; (self.written.0.saturating_sub(self.check.whole.0)) as usize];
        let device = self.storage.wal.device();
        let read = device
            .read(self.check.whole.0, &mut part)
            .map_err(|error| StorageError::io("read the log in", &self.storage.log_dir(), error))?;
        if read < part.len() || self.check.add(&part).is_err() {
            self.set_back(self.check.whole, self.check.link);
        }
        Ok(())
    }

    /// The standby that receives.
    pub fn standby(&self) -> &Arc<Standby> {
        &self.standby
    }
}

impl Drop for LogReceiver {
    fn drop(&mut self) {
        self.set_streaming(false);
        self.standby.receiver_is_taken.store(false, Ordering::Release);
    }
}
