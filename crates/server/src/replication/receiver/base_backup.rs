//! Fetching a base backup: a copy of another server's files, as the directory of a standby.
//!
//! ```text
//!   IDENTIFY_SYSTEM      which database is it?
//!   BASE_BACKUP (…)      two results: where the log begins that the copy needs; how large the files are
//!                        CopyOut: n name | d bytes of a tar archive … | p progress … | m | d the list of files | CopyDone
//!                        a result: up to where the log is needed
//! ```
//!
//! The archive is unpacked as it arrives, into [`ReceivedCopy`], whose rules hold whatever the server sends. The control
//! file gets its name only after the server has said that the backup is complete, and the files are those of its list.
//!
//! The server keeps the log that follows the copy until the connection ends, or longer if a slot does. So the connection
//! is returned, and kept open until the standby streams from another one: the log cannot be removed in between.

use std::io::{self, Read};
use std::path::Path;

use clearway_storage::received_copy::ReceivedCopy;

use super::client::{Client, quoted_text};
use super::error::{ReceiverError, Result};
use super::identify::identify;
use crate::wire::backend::Message;
use crate::wire::frame::Frame;

/// The backup's name in the server's log.
const LABEL: &str = "clearway standby";
/// Bytes that are written at a time.
const PIECE: usize = 256 << 10;

/// A list of files that is longer is none.
const MANIFEST_BYTES_MAX: usize = 512 << 20;

/// The progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyProgress {
    /// Bytes that have arrived.
    pub done: u64,
    /// Bytes that the server expects the tables to have; the log comes on top of that.
    pub total: u64,
}

/// Copies the server's files into `dir`, which is missing, empty, or holds a copy that was not finished.
pub fn fetch(
    client: &mut Client,
    dir: &Path,
    fsync: bool,
    mut progress: impl FnMut(CopyProgress),
) -> Result<()> {
    let system = identify(client)?;
    // Before the server begins: the directory may be of another program.
    let mut copy = ReceivedCopy::begin(dir, fsync)?;
    let command = format!(
        "BASE_BACKUP ( LABEL {}, PROGRESS, CHECKPOINT 'fast', WAIT 0, WAL, MANIFEST 'yes', MANIFEST_CHECKSUMS 'CRC32C' )",
        quoted_text(LABEL)
    );
    let results = client.begin_stream(&command, false)?;
    let Some(tablespaces) = results.get(1) else {
        return Err(client.broken("a base backup without its list of tablespaces"));
    };
    if tablespaces.rows.len() != 1 {
        return Err(client.broken("a base backup with tablespaces"));
    }
    let kilobytes: u64 = tablespaces
        .text("size")
        .and_then(|size| size.parse().ok())
        .unwrap_or(0);
    let mut state = CopyProgress {
        done: 0,
        total: kilobytes.saturating_mul(1 << 10),
    };
    progress(state);
    let mut reader = ArchiveReader {
        client: &mut *client,
        frame: None,
        phase: Phase::Begins,
        manifest: Vec::new(),
        progress: &mut |bytes| {
            state.done += bytes;
            progress(state);
        },
    };
    unpack(&mut reader, &mut copy)?;
    // What follows the archive's end: zeros, and the end of the stream.
    let mut rest = [0; 4096];
    while reader.read(&mut rest).map_err(|error| reader.failure(error))? > 0 {}
    let manifest = std::mem::take(&mut reader.manifest);
    client.rest_of_command()?;
    copy.verify(&manifest)?;
    copy.finish(system.identifier)?;
    Ok(())
}

/// Writes the archive's files.
fn unpack(reader: &mut ArchiveReader<'_>, copy: &mut ReceivedCopy) -> Result<()> {
    match unpack_entries(reader, copy) {
        Err(Unpacking::Read(error)) => Err(reader.failure(error)),
        Err(Unpacking::Other(error)) => Err(error),
        Ok(()) => Ok(()),
    }
}

enum Unpacking {
    /// The connection failed, or what it brings is no archive.
    Read(io::Error),
    Other(ReceiverError),
}

impl From<clearway_storage::StorageError> for Unpacking {
    fn from(error: clearway_storage::StorageError) -> Unpacking {
        Unpacking::Other(error.into())
    }
}

fn unpack_entries(reader: &mut ArchiveReader<'_>, copy: &mut ReceivedCopy) -> Result<(), Unpacking> {
    let address = reader.client.address().to_owned();
    let mut archive = tar::Archive::new(reader);
    let mut piece = vec![0; PIECE];
    // Raw: names in entries of their own, which may have any length, are not followed.
    for entry in archive.entries().map_err(Unpacking::Read)?.raw(true) {
        let mut entry = entry.map_err(Unpacking::Read)?;
        let path = entry.path().map_err(Unpacking::Read)?.into_owned();
        match entry.header().entry_type() {
            tar::EntryType::Directory => copy.create_directory(&path)?,
            tar::EntryType::Regular => {
                let mut left = entry.size();
                let mut file = copy.create_file(&path)?;
                while left > 0 {
                    let wanted = left.min(PIECE as u64) as usize;
                    let count = match entry.read(&mut piece[..wanted]) {
                        Ok(0) => return Err(Unpacking::Read(io::ErrorKind::UnexpectedEof.into())),
                        Ok(count) => count,
                        Err(error) => return Err(Unpacking::Read(error)),
                    };
                    file.write(&piece[..count])?;
                    left -= count as u64;
                }
                file.finish()?;
            }
            other => {
                return Err(Unpacking::Other(ReceiverError::Protocol {
                    address,
                    problem: format!(
                        "\"{}\" in its copy is neither a file nor a directory ({other:?})",
                        path.display()
                    ),
                }));
            }
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No archive has been announced.
    Begins,
    Archive,
    /// The list of the files.
    Manifest,
    Ended,
}

/// The archive's bytes out of the stream.
struct ArchiveReader<'a> {
    client: &'a mut Client,
    /// The rest of the last piece.
    frame: Option<Frame>,
    phase: Phase,
    manifest: Vec<u8>,
    /// Gets the bytes of each piece that arrives.
    progress: &'a mut dyn FnMut(u64),
}

impl ArchiveReader<'_> {
    /// The next piece of the archive; `None` at the end of the stream.
    fn next_piece(&mut self) -> Result<Option<Frame>> {
        while self.phase != Phase::Ended {
            let frame = self.client.receive()?;
            let body = match self.client.decode(&frame)? {
                Message::CopyData(body) => body,
                Message::CopyDone => {
                    self.phase = Phase::Ended;
                    break;
                }
                Message::Error(report) => return Err(self.client.refused(report)),
                other => return Err(self.client.unexpected(&other, "in a base backup")),
            };
            match (body.split_first(), self.phase) {
                (Some((b'n', _)), Phase::Begins) => self.phase = Phase::Archive,
                (Some((b'm', _)), Phase::Archive) => self.phase = Phase::Manifest,
                (Some((b'p', number)), _) if number.len() == 8 => {}
                (Some((b'd', data)), Phase::Manifest)
                    if self.manifest.len() + data.len() <= MANIFEST_BYTES_MAX =>
                {
                    self.manifest.extend_from_slice(data);
                }
                (Some((b'd', data)), Phase::Archive) => {
                    let piece = Frame {
                        kind: b'd',
                        body: frame.body.start + 1..frame.body.end,
                    };
                    (self.progress)(data.len() as u64);
                    return Ok(Some(piece));
                }
                (Some((kind, _)), _) => {
                    let problem = format!("a piece of kind \"{}\" in a base backup", kind.escape_ascii());
                    return Err(self.client.broken(problem));
                }
                (None, _) => return Err(self.client.broken("an empty piece in a base backup")),
            }
        }
        Ok(None)
    }

    /// The error behind that of reading the archive.
    fn failure(&self, error: io::Error) -> ReceiverError {
        match error.downcast::<ReceiverError>() {
            Ok(error) => error,
            Err(error) => self.client.broken(format!("its copy is no tar archive: {error}")),
        }
    }
}

impl Read for ArchiveReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let piece = self.client.body(frame);
                let count = piece.len().min(bytes.len());
                bytes[..count].copy_from_slice(&piece[..count]);
                frame.body.start += count;
                if count > 0 || bytes.is_empty() {
                    return Ok(count);
                }
            }
            self.frame = self.next_piece().map_err(io::Error::other)?;
            if self.frame.is_none() {
                return Ok(0);
            }
        }
    }
}
