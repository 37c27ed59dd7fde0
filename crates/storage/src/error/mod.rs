//! Errors of pages, files and the log.

pub(crate) mod findings;

use std::io;
use std::path::{Path, PathBuf};

use crate::page::Lsn;

/// An error of the storage layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The operating system refused.
    #[error("could not {action} {}: {source}", file.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// On which file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The disk is full; nothing was changed.
    #[error("no space left on device: could not {action} {}; free some space and try again", file.display())]
    DiskFull {
        /// The attempted operation.
        action: &'static str,
        /// On which file.
        file: PathBuf,
    },
    /// The process may not make the file as long as that (`ulimit -f`); nothing was changed.
    #[error("file too large: could not {action} {}; raise the limit of a file's size (ulimit -f)", file.display())]
    FileTooLarge {
        /// The step that was tried.
        action: &'static str,
        /// On which file.
        file: PathBuf,
    },
    /// A page is not what was last written there: its checksum does not fit its content and place, or there is nothing.
    #[error("page {block} of {} is corrupt at offset {offset}: {problem}", file.display())]
    CorruptPage {
        /// The data file.
        file: PathBuf,
        /// The page's number in the file.
        block: u32,
        /// The page's byte offset in the file.
        offset: u64,
        /// The fault.
        problem: String,
    },
    /// A relation's file is gone.
    #[error("{} is missing: it held the {blocks} pages of relation {rel}; restore it from a backup", file.display())]
    MissingFile {
        /// The data file.
        file: PathBuf,
        /// The relation's number.
        rel: u32,
        /// Number of pages of the relation.
        blocks: u32,
    },
    /// A relation that does not exist was asked for.
    #[error("there is no relation {rel}")]
    NoSuchRelation {
        /// The relation's number.
        rel: u32,
    },
    /// A file is not what it should be.
    #[error("{} is corrupt at offset {offset}: {problem}", file.display())]
    CorruptFile {
        /// The file.
        file: PathBuf,
        /// The offset in it, in bytes.
        offset: u64,
        /// The fault.
        problem: String,
    },
    /// A page beyond the end of its relation was asked for.
    #[error("relation {rel} has no page {block}")]
    NoSuchPage {
        /// The relation's number.
        rel: u32,
        /// The page's number.
        block: u32,
    },
    /// Log that was received holds no record where one should begin.
    #[error(
        "the log that is received holds no whole record at {position}: it was changed on its way, or where it was read"
    )]
    DamagedRecord {
        /// The position of the fault.
        position: Lsn,
    },
    /// The log has a record that nothing here can replay.
    #[error(
        "the log record at {position} is of kind {kind}, which this program cannot replay; open the directory with the \
         program that has logged it"
    )]
    UnknownRecord {
        /// The kind.
        kind: String,
        /// The position of the record.
        position: Lsn,
    },
    /// The program that embeds this crate could not replay a record of its own.
    #[error("could not replay the {kind} record at {position}: {problem}")]
    OwnRedo {
        /// The kind.
        kind: String,
        /// The position of the record.
        position: Lsn,
        /// The program's reason.
        problem: String,
    },
    /// The program that embeds this crate could not make its part of a checkpoint.
    #[error("could not make durable what the program's log records before {redo} tell: {problem}")]
    OwnCheckpoint {
        /// The redo position of the checkpoint.
        redo: Lsn,
        /// The program's reason.
        problem: String,
    },
    /// A record of the program's own cannot be logged.
    #[error("cannot log a record of kind {kind}: {problem}")]
    NotLogged {
        /// The kind.
        kind: String,
        /// The reason.
        problem: &'static str,
    },
    /// Log that was received is whole, and is not the continuation of this directory's.
    #[error(
        "the log that is received at {position} does not continue the log that is here: its record links to other records          before it"
    )]
    UnlinkedRecord {
        /// The position of the record.
        position: Lsn,
    },
    /// Log that a standby had acknowledged cannot be read there any more.
    #[error(
        "{}: log up to {acknowledged} was received and acknowledged, and it can be read up to {whole} only; the rest would be \
         lost by a promotion. Let it follow a server that has this log, which sends it again. If none is left and the loss is \
         to be accepted, stop this server, remove the file \"{}\", and start it again",
        dir.display(), file.display()
    )]
    AcknowledgedLogLost {
        /// The data directory.
        dir: PathBuf,
        /// The file in which the standby notes what it has acknowledged.
        file: PathBuf,
        /// The end of the readable log.
        whole: Lsn,
        /// The acknowledged position.
        acknowledged: Lsn,
    },
    /// A standby cannot do what was asked, or cannot go on.
    #[error("{problem}")]
    Standby {
        /// The fault.
        problem: String,
    },
    /// There is no database, and none may be made there.
    #[error("there is no database in {}: {problem}", dir.display())]
    NoDatabase {
        /// The directory.
        dir: PathBuf,
        /// The content of the directory.
        problem: String,
    },
    /// Another user owns the directory.
    #[error(
        "data directory \"{}\" has wrong ownership; the server must be started by the user that owns the data directory",
        dir.display()
    )]
    ForeignDirectory {
        /// The directory.
        dir: PathBuf,
    },
    /// More users may enter the directory than its owner and the readers of its group.
    #[error(
        "data directory \"{}\" has invalid permissions {mode:04o}; they should be u=rwx (chmod 0700) or u=rwx,g=rx (chmod \
         0750)",
        dir.display()
    )]
    OpenDirectory {
        /// The directory.
        dir: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The directory was written by another version.
    #[error(
        "{} was written by format version {found}, but this program reads version {supported}; open it with the program \
         that wrote it",
        file.display()
    )]
    OtherVersion {
        /// The control file.
        file: PathBuf,
        /// The version it names.
        found: u64,
        /// The version of this program.
        supported: u64,
    },
    /// A replication slot cannot have this name.
    #[error("replication slot name \"{name}\" {problem}")]
    SlotName {
        /// The name.
        name: String,
        /// The fault in it.
        problem: &'static str,
    },
    /// There is a replication slot of this name already.
    #[error("replication slot \"{name}\" already exists")]
    SlotExists {
        /// The name.
        name: String,
    },
    /// There is no replication slot of this name.
    #[error("replication slot \"{name}\" does not exist")]
    NoSuchSlot {
        /// The name.
        name: String,
    },
    /// Another session uses the replication slot.
    #[error("replication slot \"{name}\" is active for PID {process_id}")]
    SlotActive {
        /// The name.
        name: String,
        /// The session.
        process_id: u32,
    },
    /// There are as many replication slots as there can be.
    #[error("all replication slots are in use: there are {limit}; drop one that is not needed")]
    TooManySlots {
        /// The limit.
        limit: usize,
    },
    /// The log that the replication slot needs is gone.
    #[error(
        "cannot read from replication slot \"{name}\": it held more log than max_slot_wal_keep_size and is lost; drop it \
         and take a new base backup, or go on without the slot from an archive"
    )]
    SlotLost {
        /// The name.
        name: String,
    },
    /// The log that is asked for is gone.
    #[error("requested WAL segment {segment} has already been removed")]
    LogRemoved {
        /// The first segment that is asked for.
        segment: String,
    },
    /// The file that says which log belongs to the directory's timeline is gone.
    #[error(
        "{} is missing: the log is on timeline {timeline}, and only this file says which segments belong to it; copy it \
         from where the other files came from, or from an archive of the log",
        file.display()
    )]
    NoHistoryFile {
        /// The history file.
        file: PathBuf,
        /// Its timeline.
        timeline: u32,
    },
    /// A history file is none.
    #[error("{} is no timeline history: line {line}: {problem}", file.display())]
    MalformedHistory {
        /// The history file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault in it.
        problem: String,
    },
    /// The directory's log goes on behind the position at which the server's timeline begins.
    #[error(
        "the log in {} goes on to {own_end} on timeline {own_timeline}, but timeline {timeline} of the server left that \
         timeline at {fork}: what was committed here between the two positions, the server does not have, so this \
         directory cannot follow it; take a new base backup into an empty directory (and keep this one if you need \
         those commits)",
        dir.display()
    )]
    Diverged {
        /// The data directory.
        dir: PathBuf,
        /// The timeline of its log.
        own_timeline: u32,
        /// The end of its log.
        own_end: Lsn,
        /// The server's timeline.
        timeline: u32,
        /// The position at which that timeline, or one that it comes from, left the directory's.
        fork: Lsn,
    },
    /// As `Diverged`, unless what lies behind the fork is only the beginning of a record, which replay has yet to find out.
    #[error(
        "the log in {} was received up to {own_end} on timeline {own_timeline}, which timeline {timeline} of the server left \
         at {fork}; replay has not come that far, so it is not known yet whether there is more behind that than a part of \
         a record",
        dir.display()
    )]
    NotReplayedYet {
        /// The data directory.
        dir: PathBuf,
        /// The timeline of its log.
        own_timeline: u32,
        /// The end of its log.
        own_end: Lsn,
        /// The server's timeline.
        timeline: u32,
        /// The position at which that timeline, or one that it comes from, left the directory's.
        fork: Lsn,
    },
    /// The server's timeline does not come from the directory's.
    #[error(
        "the log in {} is on timeline {own_timeline}, up to {own_end}, and timeline {timeline} of the server does not come \
         from that one: their histories part at {parting}, where another server was promoted; take a new base backup into \
         an empty directory (and keep this one if you need what was committed here behind {parting})",
        dir.display()
    )]
    OtherHistory {
        /// The data directory.
        dir: PathBuf,
        /// The timeline of its log.
        own_timeline: u32,
        /// The end of its log.
        own_end: Lsn,
        /// The server's timeline.
        timeline: u32,
        /// Up to here both have the same log, by their histories.
        parting: Lsn,
    },
    /// The directory cannot be made a standby of the server again.
    #[error(
        "{} cannot be rewound: {problem}; take a new base backup: \"clearway standby\" with the name of an empty directory \
         (and keep this one if you need what was committed here alone)",
        dir.display()
    )]
    NotRewindable {
        /// The data directory.
        dir: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The server that a directory is rewound to has given an answer that cannot be right.
    #[error(
        "the server that the directory is to be rewound to has given a wrong answer: {problem}; the same command may be run \
         again"
    )]
    RewindSource {
        /// The fault.
        problem: String,
    },
    /// The files of a copy are newer than the point to which it is to be recovered.
    #[error(
        "cannot recover to {point}, which is at position {end}: the files of this copy hold changes up to {needed}; begin \
         with an older backup, or choose a later point"
    )]
    PointTooEarly {
        /// The point.
        point: String,
        /// Its position.
        end: Lsn,
        /// Recovery has to go on to here at least.
        needed: Lsn,
    },
    /// The log ends before the point to which it is to be recovered.
    #[error(
        "cannot recover to {point}: the log ends at {log_end} before it ({seen}); add the log that is missing to the \
         archive, or recover to the log's end"
    )]
    PointNotReached {
        /// The point.
        point: String,
        /// The end of the log.
        log_end: Lsn,
        /// The log's distance from the point, in words.
        seen: String,
    },
    /// An archive lacks a segment before its last.
    #[error(
        "{} lacks log segment {missing}, but has {next}: the log cannot be replayed beyond the end of what is before it; \
         find that segment, or recover to a point before it",
        archive.display()
    )]
    ArchiveGap {
        /// The archive.
        archive: PathBuf,
        /// The segment that is not there.
        missing: String,
        /// A later one that is.
        next: String,
    },
    /// A segment of an archive does not hold the log of the directory.
    #[error(
        "{} is not the log of this directory: it differs at offset {offset} (position {position}), where both have log; it \
         is an archive of another database, or of a server that has gone on elsewhere",
        file.display()
    )]
    ForeignArchive {
        /// The segment.
        file: PathBuf,
        /// The offset in it, in bytes.
        offset: u64,
        /// The position of that byte.
        position: Lsn,
    },
    /// A segment of an archive is compressed.
    #[error("{} is compressed; unpack the segments of the archive first", file.display())]
    CompressedSegment {
        /// The segment.
        file: PathBuf,
    },
    /// Another process has the directory open.
    #[error("another server is using {} (it holds the directory's lock); stop it first", dir.display())]
    DirectoryInUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// The directory is a standby's, which no server opens for writing.
    #[error(
        "{0} is a standby's: its log is a copy of another server's; go on with \"clearway standby --data {0} --from …\", \
         or, while that runs, make it take writes with \"clearway promote --data {0}\"",
        dir.display()
    )]
    IsStandby {
        /// The data directory.
        dir: PathBuf,
    },
    /// The directory has the file by which `pg_basebackup -R` asks for a standby.
    #[error(
        "{0} has the file standby.signal, so it is to be a standby: start it with \"clearway standby --data {0}\", which \
         follows primary_conninfo of its postgresql.auto.conf; to make a server of its own of it, which its primary then \
         has nothing to do with, remove standby.signal first",
        dir.display()
    )]
    WantsStandby {
        /// The data directory.
        dir: PathBuf,
    },
    /// The files of a copy are not those that the server has sent.
    #[error(
        "{} is a copy of another server's files, and is not what that server has sent: {problem}; make another copy \
         (nothing in this one was changed)",
        dir.display()
    )]
    DamagedCopy {
        /// The directory of the copy.
        dir: PathBuf,
        /// The fault.
        problem: String,
    },
    /// The files that another server sends are no copy.
    #[error("could not receive a copy into {}: {problem}", dir.display())]
    InvalidCopy {
        /// The directory of the copy.
        dir: PathBuf,
        /// The fault.
        problem: String,
    },
    /// Every buffer was pinned, and stayed so for the longest wait.
    #[error("all {frames} buffers are pinned; raise shared_buffers")]
    NoFreeBuffer {
        /// Number of buffers.
        frames: usize,
    },
    /// The statement was to stop while it waited for a buffer, or for room on a page.
    #[error("stopped while waiting for a buffer to be unpinned, or for room on a page")]
    StopAsked,
    /// A row or an index key does not fit on a page.
    #[error("{what} of {size} bytes is larger than the maximum of {max} bytes")]
    TooLarge {
        /// "row" or "index key".
        what: &'static str,
        /// Its size.
        size: usize,
        /// The most bytes that fit.
        max: usize,
    },
    /// A structure on a page contradicts itself.
    #[error("relation {rel}, page {block}: {problem}")]
    Inconsistent {
        /// The relation's number.
        rel: u32,
        /// The page's number.
        block: u32,
        /// The fault.
        problem: String,
    },
}

/// A result of the storage layer.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

impl StorageError {
    /// An error of the operating system, with a want of room told apart.
    pub(crate) fn io(action: &'static str, file: &Path, source: io::Error) -> Self {
        let file = file.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StorageError::DiskFull { action, file }
            }
            io::ErrorKind::FileTooLarge => StorageError::FileTooLarge { action, file },
            _ => StorageError::Io { action, file, source },
        }
    }

    /// True if there was no room for what was to be written, and someone can make some while the server runs.
    pub fn wants_room(&self) -> bool {
        matches!(
            self,
            StorageError::DiskFull { .. } | StorageError::FileTooLarge { .. }
        )
    }

    /// The SQLSTATE a client gets.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            StorageError::Io { .. } => "58030",
            StorageError::DiskFull { .. } => "53100",
            StorageError::FileTooLarge { .. } => "53400",
            StorageError::CorruptPage { .. }
            | StorageError::CorruptFile { .. }
            | StorageError::DamagedRecord { .. }
            | StorageError::UnlinkedRecord { .. }
            | StorageError::AcknowledgedLogLost { .. }
            | StorageError::MissingFile { .. } => "XX001",
            StorageError::Inconsistent { .. } => "XX002",
            StorageError::NoSuchPage { .. } | StorageError::NoSuchRelation { .. } => "XX000",
            StorageError::DirectoryInUse { .. } => "55006",
            StorageError::NoDatabase { .. } => "58P01",
            StorageError::ForeignDirectory { .. } | StorageError::OpenDirectory { .. } => "55000",
            StorageError::OtherVersion { .. }
            | StorageError::SlotLost { .. }
            | StorageError::IsStandby { .. }
            | StorageError::WantsStandby { .. }
            | StorageError::UnknownRecord { .. }
            | StorageError::NotLogged { .. }
            | StorageError::Standby { .. } => "55000",
            StorageError::OwnRedo { .. } | StorageError::OwnCheckpoint { .. } => "58000",
            StorageError::InvalidCopy { .. } | StorageError::RewindSource { .. } => "08P01",
            StorageError::DamagedCopy { .. } => "XX001",
            StorageError::SlotName { name, .. } if name.len() > 63 => "42622",
            StorageError::SlotName { .. } => "42602",
            StorageError::SlotExists { .. } => "42710",
            StorageError::NoSuchSlot { .. } => "42704",
            StorageError::SlotActive { .. } => "55006",
            StorageError::TooManySlots { .. } => "53400",
            StorageError::LogRemoved { .. } => "58P01",
            StorageError::PointTooEarly { .. }
            | StorageError::PointNotReached { .. }
            | StorageError::ForeignArchive { .. }
            | StorageError::CompressedSegment { .. } => "55000",
            StorageError::ArchiveGap { .. } => "58P01",
            StorageError::NoHistoryFile { .. } => "58P01",
            StorageError::MalformedHistory { .. } => "XX001",
            StorageError::Diverged { .. }
            | StorageError::NotReplayedYet { .. }
            | StorageError::NotRewindable { .. }
            | StorageError::OtherHistory { .. } => "55000",
            StorageError::NoFreeBuffer { .. } => "53200",
            StorageError::StopAsked => "57014",
            StorageError::TooLarge { .. } => "54000",
        }
    }
}
