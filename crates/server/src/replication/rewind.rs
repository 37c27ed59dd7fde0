//! REWIND: what a directory that is rewound to this server asks for (`clearway_storage::rewind`).
//!
//! ```text
//!   REWIND BEGIN X/X            keeps the log from there on, and makes a checkpoint
//!   REWIND RELATIONS            numbers and lengths of the relations' files
//!   REWIND PAGES rel n …        pages of a relation
//!   REWIND STATUS n count       CRC-32C of the statuses on pages of the commit log
//!   REWIND LOG X/X length       log, which is durable
//!   REWIND END                  the end of the copy: control file and history files
//! ```
//!
//! Each is answered by a stream of bytes, and by a row that has their CRC-32C. Numbers in the stream are little-endian.
//!
//! ```text
//!   CopyOut: CopyData … CopyDone | result: crc
//!   BEGIN      redo, end of the checkpoint, next xid: 8 bytes each
//!   RELATIONS  number, pages: 4 bytes each, for each relation
//!   PAGES      the pages, zeros where the file has none; nothing if the relation is there no more
//!   STATUS     4 bytes a page
//!   LOG        the log
//!   END        position: 8 bytes; then name and content of each file, each with its length before it in 4 bytes
//! ```
//!
//! - R1: memory is bounded: no answer but those to RELATIONS and END is longer than `ANSWER_BYTES_MAX`.
//! - R2: the log is kept from BEGIN until the connection ends, or another copy begins on it.

use bytes::BufMut;
use clearway_engine::{EngineError, SqlState, Value};
use clearway_storage::backup::{Backup, CONTROL_NAME};
use clearway_storage::rewind::{LOG_BYTES_MAX, PAGES_MAX, status_sum};
use clearway_storage::{Lsn, PAGE_SIZE, RelId};

use super::message::copy_data;
use super::{not_written, selected, storage_error};
use crate::channel::Channel;
use crate::codec;

/// Bytes in a message.
const CHUNK: usize = 64 << 10;
/// The longest answer whose length the client chooses.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const _: () = assert!(PAGES_MAX * PAGE_SIZE <= ANSWER_BYTES_MAX && LOG_BYTES_MAX <= ANSWER_BYTES_MAX);

/// A step of a rewind: the words behind REWIND.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewindCommand {
    /// The log is wanted from here on.
    Begin(u64),
    /// The relations.
    Relations,
    /// Pages of a relation.
    Pages(u32, Vec<u32>),
    /// Checksums of the commit log's pages: the first one and their number.
    Status(u32, u32),
    /// Log: its position and length.
    Log(u64, u32),
    /// The end.
    End,
}

fn out_of_range(what: &str, max: usize) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("REWIND asks for too many {what}: at most {max} at a time"),
    )
}

/// The bytes that answer a command other than BEGIN.
pub(super) fn answer(
    backup: Option<&Backup>,
    durable: Lsn,
    command: &RewindCommand,
) -> Result<Vec<u8>, EngineError> {
    let backup = backup.ok_or_else(|| {
        EngineError::new(
            SqlState::from_code("55000"),
            "REWIND BEGIN comes before the rest of a rewind",
        )
    })?;
    match command {
        RewindCommand::Begin(_) => Ok(start(backup)),
        RewindCommand::Relations => relations(backup),
        RewindCommand::Pages(_, blocks) if blocks.len() > PAGES_MAX => Err(out_of_range("pages", PAGES_MAX)),
        RewindCommand::Pages(rel, blocks) => pages(backup, RelId(*rel), blocks.iter().copied()),
        RewindCommand::Status(_, count) if *count as usize > PAGES_MAX => {
            Err(out_of_range("pages", PAGES_MAX))
        }
        RewindCommand::Status(first, count) => {
            let blocks = *first..first.saturating_add(*count);
            let pages = pages(backup, RelId::COMMIT_LOG, blocks)?;
            let sums = pages.chunks_exact(PAGE_SIZE).map(status_sum);
            Ok(sums.flat_map(u32::to_le_bytes).collect())
        }
        RewindCommand::Log(_, length) if *length as usize > LOG_BYTES_MAX => {
            Err(out_of_range("bytes of log", LOG_BYTES_MAX))
        }
        RewindCommand::Log(position, length) => log(backup, durable, Lsn(*position), *length as usize),
        RewindCommand::End => end(backup),
    }
}

fn start(backup: &Backup) -> Vec<u8> {
    let words = [backup.start().0, backup.checkpoint_end().0, backup.next_xid().0];
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn relations(backup: &Backup) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Vec::new();
    for rel in backup.relations().map_err(storage_error)? {
        let Some(copy) = backup.open_relation(rel).map_err(storage_error)? else {
            continue;
        };
        let pages = u32::try_from(copy.length / PAGE_SIZE as u64).unwrap_or(u32::MAX);
        bytes.put_u32_le(rel.0);
        bytes.put_u32_le(pages);
    }
    Ok(bytes)
}

fn pages(backup: &Backup, rel: RelId, blocks: impl Iterator<Item = u32>) -> Result<Vec<u8>, EngineError> {
    let Some(copy) = backup.open_relation(rel).map_err(storage_error)? else {
        return Ok(Vec::new());
    };
    let mut bytes = Vec::new();
    for block in blocks {
        let start = bytes.len();
        bytes.resize(start + PAGE_SIZE, 0);
        copy.read_at(&mut bytes[start..], u64::from(block) * PAGE_SIZE as u64)
            .map_err(storage_error)?;
    }
    Ok(bytes)
}

fn log(backup: &Backup, durable: Lsn, position: Lsn, length: usize) -> Result<Vec<u8>, EngineError> {
    let end = Lsn(position.0.saturating_add(length as u64));
    if end > durable {
        return Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("the log is durable up to {durable}, not to {end}"),
        ));
    }
    let mut bytes = vec![0; length];
    backup
        .read_log(position, end, &mut bytes)
        .map_err(storage_error)?;
    Ok(bytes)
}

fn end(backup: &Backup) -> Result<Vec<u8>, EngineError> {
    let end = backup.finish().map_err(storage_error)?;
    let mut bytes = end.position.0.to_le_bytes().to_vec();
    let mut put = |text: &[u8]| {
        bytes.put_u32_le(text.len() as u32);
        bytes.put_slice(text);
    };
    put(CONTROL_NAME.as_bytes());
    put(&end.control);
    for (name, text) in backup.history_files().map_err(storage_error)? {
        put(name.as_bytes());
        put(text.as_bytes());
    }
    Ok(bytes)
}

/// Sends an answer.
pub(super) fn send(
    channel: &mut Channel,
    bytes: &[u8],
    patience: std::time::Duration,
) -> Result<(), EngineError> {
    codec::copy_out_response(&mut channel.out.bytes, 0, false);
    for piece in bytes.chunks(CHUNK) {
        copy_data(&mut channel.out.bytes, |out| out.put_slice(piece));
        if channel.out.is_full() {
            let flushed = channel.out.flush_within(&channel.socket, patience);
            flushed.map_err(not_written)?;
        }
    }
    codec::copy_done(&mut channel.out.bytes);
    let crc = Value::Int8(i64::from(crc32c::crc32c(bytes)));
    selected(channel, &[("crc", crc)]);
    Ok(())
}
