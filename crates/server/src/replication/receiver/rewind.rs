//! Rewinding a directory to a server: the questions that come before, and the server's pages and log
//! (`clearway_storage::rewind` has the algorithm, `replication::rewind` the other end).
//!
//! 1. Open the directory, and find its log's end.
//! 2. Ask which database the server has, and for its history; find where the two part.
//! 3. Compare the log before that ([`agree`]), or all of it if the two do not part: where a number and an identity are the
//!    same, the log may not be.
//! 4. Plan, and fetch, over one connection. It keeps the server's log until it ends; a slot keeps it longer.
//!
//! - R1: the CRC-32C of each answer is that of what the server has sent. Lengths are checked where they are used.

use std::path::{Path, PathBuf};

use clearway_storage::directory_log::DirectoryLog;
use clearway_storage::rewind::{
    Parting, Rewind, RewindDirectory, RewindProgress, RewindSource, RewindSummary, SourceEnd, SourceRelation,
    SourceStart,
};
use clearway_storage::timeline::{FIRST_TIMELINE, History};
use clearway_storage::{Lsn, RelId, StorageError};
use clearway_txn::Xid;

use super::agree;
use super::client::Client;
use super::error::{ReceiverError, Result};
use super::identify::{create_slot, identify, timeline_history};
use crate::wire::backend::Message;

/// A longer answer is none: a list of 8 million relations.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A rewind that is wanted.
#[derive(Debug, Clone)]
pub struct RewindRequest {
    /// The directory.
    pub dir: PathBuf,
    /// Files are synced.
    pub fsync: bool,
    /// Only tell what would be fetched.
    pub dry_run: bool,
    /// A slot to make at the server, so that it keeps the log for the standby.
    pub slot: Option<String>,
}

/// The outcome of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewindOutcome {
    /// The server's log goes on from the directory's: it can follow as it is.
    GoesOn,
    /// An earlier rewind had fetched everything, and is complete now.
    Completed,
    /// It is a standby's directory now; of a dry run, it would be.
    Rewound(RewindSummary),
}

/// An event of a rewind, for those who watch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewindEvent {
    /// The two part here.
    Parts(Lsn),
    /// The slot was made, and not found.
    SlotMade,
    /// Pages or log have arrived.
    Progress(RewindProgress),
}

/// Rewinds a directory to the server of `connect`, which is called only if a server is needed.
pub fn rewind(
    connect: impl FnOnce() -> Result<Client>,
    request: &RewindRequest,
    mut event: impl FnMut(RewindEvent),
) -> Result<RewindOutcome> {
    let opened = Rewind::open(&request.dir, request.fsync, request.dry_run)?;
    let RewindDirectory::Opened(directory) = opened else {
        return Ok(RewindOutcome::Completed);
    };
    let client = &mut connect()?;
    let server = history_of(client, directory.log())?;
    let parting = directory.parting(&server.history, server.flushed)?;
    let common = match parting {
        Parting::GoesOn => directory.log().end(),
        Parting::At(fork) => {
            event(RewindEvent::Parts(fork));
            fork
        }
    };
    agree::compare(client, &|start, end| directory.log().digest(start, end), common)?;
    let Parting::At(fork) = parting else {
        return Ok(RewindOutcome::GoesOn);
    };
    if let Some(slot) = request.slot.as_ref().filter(|_| !request.dry_run)
        && create_slot(client, slot)?
    {
        event(RewindEvent::SlotMade);
    }
    let mut source = ServerSource { client };
    let plan = directory.plan(&mut source, &server.history, fork);
    let plan = plan.map_err(|error| log_removed(error, &request.dir, fork))?;
    let summary = match request.dry_run {
        true => directory.look(&mut source, &plan)?,
        false => directory.run(&mut source, &plan, |progress| {
            event(RewindEvent::Progress(progress))
        })?,
    };
    Ok(RewindOutcome::Rewound(summary))
}

struct ServerHistory {
    history: History,
    flushed: Lsn,
}

/// The server's history, if its database is that of the directory.
fn history_of(client: &mut Client, own: &DirectoryLog) -> Result<ServerHistory> {
    let system = identify(client)?;
    if system.identifier != own.system_identifier() {
        return Err(ReceiverError::OtherSystem {
            address: client.address().to_owned(),
            ours: own.system_identifier(),
            theirs: system.identifier,
        });
    }
    let history = match system.timeline {
        FIRST_TIMELINE => History::first(),
        timeline => {
            let text = timeline_history(client, timeline)?;
            History::parse(&String::from_utf8_lossy(&text), timeline)
                .map_err(|problem| client.broken(format!("the history of timeline {timeline}: {problem}")))?
        }
    };
    Ok(ServerHistory {
        history,
        flushed: system.flushed,
    })
}

/// The server's error, with the way out if its log since the fork is gone.
fn log_removed(error: ReceiverError, dir: &Path, fork: Lsn) -> ReceiverError {
    match error {
        ReceiverError::Server { address, report } if report.sqlstate == "58P01" => {
            StorageError::NotRewindable {
                dir: dir.to_owned(),
                problem: format!(
                    "the server at {address} no longer has its log from {fork} on, where the two part, and what it has \
                     changed since is to be read from it ({report})"
                ),
            }
            .into()
        }
        error => error,
    }
}

/// The server at the other end of a connection.
struct ServerSource<'a> {
    client: &'a mut Client,
}

impl ServerSource<'_> {
    /// The bytes that answer a command (R1).
    fn ask(&mut self, command: &str) -> Result<Vec<u8>> {
        // Only the first has a checkpoint to wait for.
        let patiently = command.starts_with("REWIND BEGIN");
        self.client.begin_stream_within(command, false, patiently)?;
        let mut bytes = Vec::new();
        loop {
            let frame = self.client.receive()?;
            match self.client.decode(&frame)? {
                Message::CopyData(piece) if bytes.len() + piece.len() <= ANSWER_BYTES_MAX => {
                    bytes.extend_from_slice(piece);
                }
                Message::CopyData(_) => {
                    let problem = format!("an answer of more than {ANSWER_BYTES_MAX} bytes");
                    return Err(self.client.broken(problem));
                }
                Message::CopyDone => break,
                Message::Error(report) => return Err(self.client.refused(report)),
                other => return Err(self.client.unexpected(&other, "in an answer to REWIND")),
            }
        }
        let results = self.client.rest_of_command()?;
        let told: Option<u32> = results
            .first()
            .and_then(|result| result.text("crc")?.parse().ok());
        match told {
            Some(crc) if crc == crc32c::crc32c(&bytes) => Ok(bytes),
            Some(_) => Err(self.client.broken("an answer to REWIND was changed on its way")),
            None => Err(self.client.broken("an answer to REWIND without its checksum")),
        }
    }

    fn words<const N: usize>(&self, bytes: &[u8]) -> Result<[u64; N]> {
        let mut words = [0; N];
        if bytes.len() != N * 8 {
            return Err(self.client.broken("an answer to REWIND of another length"));
        }
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = chunk.try_into().map_or(0, u64::from_le_bytes);
        }
        Ok(words)
    }

    /// Numbers of four bytes.
    fn numbers(&self, bytes: &[u8]) -> Result<Vec<u32>> {
        if !bytes.len().is_multiple_of(4) {
            return Err(self.client.broken("an answer to REWIND of another length"));
        }
        let number = |chunk: &[u8]| chunk.try_into().map_or(0, u32::from_le_bytes);
        Ok(bytes.chunks_exact(4).map(number).collect())
    }
}

/// Takes a piece with its length before it off the front.
fn piece<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (piece, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = behind;
    Some(piece)
}

/// The answer to REWIND END.
fn end_of(bytes: &[u8]) -> Option<SourceEnd> {
    let (position, mut rest) = bytes.split_first_chunk()?;
    let _control_name = piece(&mut rest)?;
    let control = piece(&mut rest)?.to_vec();
    let mut history_files = Vec::new();
    while !rest.is_empty() {
        let name = std::str::from_utf8(piece(&mut rest)?).ok()?.to_owned();
        let text = std::str::from_utf8(piece(&mut rest)?).ok()?.to_owned();
        history_files.push((name, text));
    }
    Some(SourceEnd {
        control,
        position: Lsn(u64::from_le_bytes(*position)),
        history_files,
    })
}

impl RewindSource for ServerSource<'_> {
    type Error = ReceiverError;

    fn begin(&mut self, log_from: Lsn) -> Result<SourceStart> {
        let bytes = self.ask(&format!("REWIND BEGIN {log_from}"))?;
        let [redo, checkpoint_end, next_xid] = self.words(&bytes)?;
        Ok(SourceStart {
            redo: Lsn(redo),
            checkpoint_end: Lsn(checkpoint_end),
            next_xid: Xid(next_xid),
        })
    }

    fn relations(&mut self) -> Result<Vec<SourceRelation>> {
        let bytes = self.ask("REWIND RELATIONS")?;
        let numbers = self.numbers(&bytes)?;
        let (pairs, rest) = numbers.as_chunks();
        if !rest.is_empty() {
            return Err(self.client.broken("an answer to REWIND of another length"));
        }
        let relation = |&[rel, blocks]: &[u32; 2]| SourceRelation {
            rel: RelId(rel),
            blocks,
        };
        Ok(pairs.iter().map(relation).collect())
    }

    fn pages(&mut self, rel: RelId, blocks: &[u32]) -> Result<Option<Vec<u8>>> {
        let mut command = format!("REWIND PAGES {}", rel.0);
        for block in blocks {
            command.push_str(&format!(" {block}"));
        }
        let bytes = self.ask(&command)?;
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    fn status_sums(&mut self, first: u32, count: u32) -> Result<Vec<u32>> {
        let bytes = self.ask(&format!("REWIND STATUS {first} {count}"))?;
        self.numbers(&bytes)
    }

    fn log(&mut self, position: Lsn, bytes: &mut [u8]) -> Result<()> {
        let log = self.ask(&format!("REWIND LOG {position} {}", bytes.len()))?;
        if log.len() != bytes.len() {
            return Err(self.client.broken("an answer to REWIND of another length"));
        }
        bytes.copy_from_slice(&log);
        Ok(())
    }

    fn finish(&mut self) -> Result<SourceEnd> {
        let bytes = self.ask("REWIND END")?;
        end_of(&bytes).ok_or_else(|| self.client.broken("its answer to REWIND END lacks something"))
    }
}
