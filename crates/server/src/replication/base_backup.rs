//! BASE_BACKUP: a copy of the files as one tar archive, in the form that version 15's clients read.
//!
//! ```text
//!   result: where the log begins that the copy needs
//!   result: the tablespaces, of which there is one
//!   CopyOut: n name | d bytes of the archive … | p progress | m | d bytes of the manifest | CopyDone
//!   result: up to where the log is needed
//! ```
//!
//! The archive's order is the protocol of `clearway_storage::backup`: relations first, then the log if the client wants
//! it there, then the control file. The size of a file is settled when it is opened: what is written behind that later
//! is in the log.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BufMut;
use clearway_engine::{EngineError, SqlState, Value};
use clearway_storage::backup::{
    Backup, BackupEnd, CONTROL_NAME, LOG_DIRECTORY, RELATIONS_DIRECTORY, RelationCopy,
};
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::{Lsn, StorageError};
use jiff::Timestamp;

use super::command::BackupOptions;
use super::manifest::Manifest;
use super::message::copy_data;
use super::{not_written, selected, storage_error};
use crate::channel::Channel;
use crate::codec;

/// Bytes of an archive in a message.
const CHUNK: usize = 64 << 10;
/// Time between two messages about progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Sends the backup; `stopping` tells whether the server stops.
pub(super) fn send(
    channel: &mut Channel,
    backup: &Backup,
    options: &BackupOptions,
    patience: Duration,
    stopping: impl Fn() -> bool,
) -> Result<(), EngineError> {
    selected(channel, &position(backup.start(), backup.timeline()));
    let size = if options.progress {
        Value::Int8(size_kilobytes(backup).map_err(storage_error)?)
    } else {
        Value::Null
    };
    let tablespace = [
        ("spcoid", Value::Null),
        ("spclocation", Value::Null),
        ("size", size),
    ];
    selected(channel, &tablespace);
    codec::copy_out_response(&mut channel.out.bytes, 0, false);
    let now = Timestamp::now();
    let mut sender = Sender {
        channel,
        patience,
        stopping: &stopping,
        rate: options.kilobytes_per_second.map(|rate| u64::from(rate) << 10),
        shows_progress: options.progress,
        began: Instant::now(),
        reported: Instant::now(),
        sent: 0,
    };
    copy_data(&mut sender.channel.out.bytes, |out| {
        // The archive's name, and an empty one for the tablespace.
        out.put_slice(b"nbase.tar\0\0");
    });
    let mut manifest = Manifest::new(now, !options.without_checksums);
    let end = send_archive(&mut sender, backup, options, &mut manifest).map_err(sender_error)?;
    if options.manifest {
        let text = manifest.finish(&backup.log_ranges(end.position));
        copy_data(&mut sender.channel.out.bytes, |out| out.put_u8(b'm'));
        sender.pieces(text.as_bytes()).map_err(sender_error)?;
    }
    codec::copy_done(&mut channel.out.bytes);
    selected(channel, &position(end.position, end.timeline));
    Ok(())
}

fn position(position: Lsn, timeline: u32) -> [(&'static str, Value); 2] {
    [
        ("recptr", Value::text(position.to_string())),
        ("tli", Value::Int8(i64::from(timeline))),
    ]
}

fn size_kilobytes(backup: &Backup) -> Result<i64, StorageError> {
    let mut bytes = 0;
    for rel in backup.relations()? {
        bytes += backup.open_relation(rel)?.map_or(0, |copy| copy.length);
    }
    Ok((bytes >> 10).cast_signed())
}

/// The error behind that of an archive's writer or reader.
fn sender_error(error: io::Error) -> EngineError {
    match error.downcast::<EngineError>() {
        Ok(error) => error,
        Err(error) => not_written(error),
    }
}

fn storage_failed(error: StorageError) -> io::Error {
    io::Error::other(storage_error(error))
}

/// Sends the archive; where the backup ends.
fn send_archive(
    sender: &mut Sender<'_>,
    backup: &Backup,
    options: &BackupOptions,
    manifest: &mut Manifest,
) -> io::Result<BackupEnd> {
    let mut archive = tar::Builder::new(sender);
    for directory in [
        RELATIONS_DIRECTORY.to_owned(),
        LOG_DIRECTORY.to_owned(),
        format!("{LOG_DIRECTORY}/archive_status"),
        // pg_basebackup syncs what is in it, and complains if it is not there.
        "pg_tblspc".to_owned(),
    ] {
        let mut header = header(&format!("{directory}/"), 0o700, 0)?;
        header.set_entry_type(tar::EntryType::Directory);
        header.set_cksum();
        archive.append(&header, io::empty())?;
    }
    for rel in backup.relations().map_err(storage_failed)? {
        let Some(copy) = backup.open_relation(rel).map_err(storage_failed)? else {
            continue;
        };
        let path = format!("{RELATIONS_DIRECTORY}/{}", rel.0);
        let mut reader = RelationReader {
            copy: &copy,
            offset: 0,
            crc: 0,
        };
        archive.append(&header(&path, 0o600, copy.length)?, &mut reader)?;
        manifest.add(&path, copy.length, reader.crc);
    }
    let end = backup.finish().map_err(storage_failed)?;
    if options.with_log {
        for (name, start) in backup.segments(end.position) {
            let path = format!("{LOG_DIRECTORY}/{name}");
            let log = LogFileReader {
                backup,
                at: start,
                stop: Lsn(start.0 + SEGMENT_SIZE),
                end: end.position,
            };
            archive.append(&header(&path, 0o600, SEGMENT_SIZE)?, log)?;
        }
    }
    // Also without the log: the copy cannot be opened without them. As the log, they are not in the manifest.
    for (name, text) in backup.history_files().map_err(storage_failed)? {
        let path = format!("{LOG_DIRECTORY}/{name}");
        archive.append(&header(&path, 0o600, text.len() as u64)?, text.as_bytes())?;
    }
    let control = &end.control;
    archive.append(&header(CONTROL_NAME, 0o600, control.len() as u64)?, &control[..])?;
    manifest.add(CONTROL_NAME, control.len() as u64, crc32c::crc32c(control));
    archive.finish()?;
    archive.into_inner()?.flush_pieces()?;
    Ok(end)
}

fn header(path: &str, mode: u32, size: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_ustar();
    header.set_path(path)?;
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    header.set_mtime(since_1970.as_secs());
    header.set_cksum();
    Ok(header)
}

struct RelationReader<'a> {
    copy: &'a RelationCopy,
    offset: u64,
    crc: u32,
}

impl Read for RelationReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = (self.copy.length - self.offset).min(bytes.len() as u64) as usize;
        let bytes = &mut bytes[..count];
        self.copy.read_at(bytes, self.offset).map_err(storage_failed)?;
        self.offset += count as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(count)
    }
}

/// A segment, whole: zeros behind `end`.
struct LogFileReader<'a> {
    backup: &'a Backup,
    at: Lsn,
    stop: Lsn,
    end: Lsn,
}

impl Read for LogFileReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = (self.stop.0 - self.at.0).min(bytes.len() as u64) as usize;
        self.backup
            .read_log(self.at, self.end, &mut bytes[..count])
            .map_err(storage_failed)?;
        self.at = Lsn(self.at.0 + count as u64);
        Ok(count)
    }
}

/// The way of an archive's bytes to the client.
struct Sender<'a> {
    channel: &'a mut Channel,
    patience: Duration,
    stopping: &'a dyn Fn() -> bool,
    /// Bytes a second at most.
    rate: Option<u64>,
    shows_progress: bool,
    began: Instant,
    reported: Instant,
    sent: u64,
}

impl Sender<'_> {
    fn pieces(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(CHUNK) {
            copy_data(&mut self.channel.out.bytes, |out| {
                out.put_u8(b'd');
                out.put_slice(piece);
            });
            self.sent += piece.len() as u64;
            if self.shows_progress && self.reported.elapsed() >= PROGRESS_EVERY {
                self.reported = Instant::now();
                let sent = self.sent;
                copy_data(&mut self.channel.out.bytes, |out| {
                    out.put_u8(b'p');
                    out.put_u64(sent);
                });
            }
            if self.channel.out.is_full() {
                self.flush_pieces()?;
            }
        }
        Ok(())
    }

    fn flush_pieces(&mut self) -> io::Result<()> {
        if (self.stopping)() {
            return Err(io::Error::other(EngineError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            )));
        }
        self.channel
            .out
            .flush_within(&self.channel.socket, self.patience)?;
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(self.sent as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(self.began.elapsed()));
        }
        Ok(())
    }
}

impl Write for Sender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pieces(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
