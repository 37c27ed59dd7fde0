//! Directories other than a former primary's are rewound: a promoted standby's to the server that it was promoted from, one of
//! two that were promoted, and a standby's that received more than the one that was promoted. And directories and servers
//! that a rewind is not made of (`support/parted.rs` has the story).
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/rewind.toml` lists them.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/parted.rs"]
mod parted;
#[path = "support/recording_disk/mod.rs"]
mod recording_disk;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_storage::disk::{Disk, OpenMode, SyncPurpose};
use clearway_storage::rewind::{
    Parting, Rewind, RewindDirectory, RewindSource, SourceEnd, SourceRelation, SourceStart,
};
use clearway_storage::timeline::History;
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{Lsn, PAGE_SIZE, RelId, Result, StorageError};
use clearway_txn::Xid;
use crash::crash;
use parted::{DIRECTORY, End, LocalSource, Parted, Sides, go_on, open, parted, variable};
use recording_disk::{Keep, Random, RecordingDisk};

const SEED: u64 = 7;

fn seed() -> u64 {
    variable("SEED", SEED)
}

/// Rewinds, lets the server go on, and compares.
fn rewinds(sides: Sides, ends: &[End]) {
    for (seed, &end) in (seed()..).zip(ends) {
        let mut parted = parted(seed, sides, end);
        let summary = parted.rewind(&parted.directory);
        let summary = summary.unwrap_or_else(|| panic!("{sides:?}, {end:?}: nothing to do"));
        assert!(
            summary.pages * 3 < summary.pages_total,
            "{sides:?}, {end:?}: {summary:?}"
        );
        parted.commit_doubtful();
        let mut random = parted.random.clone();
        go_on(&parted.server, &mut random, parted.relations, None);
        parted.server.checkpoint().unwrap();
        parted.check(&parted.directory);
        parted.close();
    }
}

const ENDS: [End; 4] = [End::Killed, End::KilledLater, End::Stopped, End::Recovered];

#[test]
fn a_promoted_standby_is_rewound_to_its_former_primary() {
    rewinds(Sides::Promoted, &ENDS);
}

/// Its directory may have a hint that a transaction was rolled back which commits on the server later.
#[test]
fn a_transaction_that_still_runs_at_the_server_commits_behind_the_rewind() {
    rewinds(Sides::PromotedAndOneRuns, &ENDS);
}

#[test]
fn one_of_two_promoted_standbys_is_rewound_to_the_other() {
    rewinds(Sides::BothPromoted, &ENDS);
    rewinds(Sides::PromotedLater, &ENDS);
}

#[test]
fn a_standby_that_received_more_is_rewound() {
    rewinds(Sides::StandbyAhead, &[End::Killed, End::Stopped]);
}

fn opened(parted: &Parted, disk: &RecordingDisk) -> Box<Rewind> {
    match parted.opened(disk) {
        RewindDirectory::Opened(directory) => directory,
        RewindDirectory::Completed => panic!("no rewind was begun"),
    }
}

fn file_of(rel: RelId) -> PathBuf {
    Path::new(DIRECTORY).join("base").join(rel.0.to_string())
}

fn write(disk: &RecordingDisk, path: &Path, bytes: &[u8], offset: u64) {
    let file = disk.open(path, OpenMode::Existing).unwrap();
    file.write_at(bytes, offset).unwrap();
}

/// Overwrites log in the one segment that all log of these stories is in.
fn write_log(disk: &RecordingDisk, bytes: &[u8], position: Lsn) {
    let log = Path::new(DIRECTORY).join("pg_wal");
    let mut names: Vec<String> = disk.files(&log).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name.len() == 24);
    names.sort();
    write(disk, &log.join(&names[0]), bytes, position.0 % SEGMENT_SIZE);
}

/// A power cut may leave the statuses of a page of the commit log and take its checksum. No record repairs the page, so it is
/// fetched, although its statuses are the server's.
#[test]
fn a_torn_page_of_the_commit_log_is_fetched() {
    let parted = parted(seed(), Sides::FormerPrimary, End::Stopped);
    let mut source = LocalSource::new(&parted.server);
    source.begin(parted.fork).unwrap();
    let mut page = source.pages(RelId::COMMIT_LOG, &[0]).unwrap().unwrap();
    drop(source);
    assert_eq!(page.len(), PAGE_SIZE);
    // The checksum.
    page[8] ^= 1;
    write(&parted.directory, &file_of(RelId::COMMIT_LOG), &page, 0);
    parted.rewind(&parted.directory).unwrap();
    parted.check(&parted.directory);
    parted.close();
}

/// A process that was killed leaves log that was written and not synced. It is durable before the first page is fetched, for
/// the next attempt reads from it which pages were changed here.
#[test]
fn the_log_of_a_killed_server_is_durable_before_a_page_is_fetched() {
    let parted = parted(seed(), Sides::FormerPrimary, End::Killed);
    let disk = parted.directory.freeze().after_kill();
    let storage = open(&disk).unwrap();
    disk.ignore([SyncPurpose::LogFlush]);
    let mut random = parted.random.clone();
    go_on(&storage, &mut random, parted.relations, None);
    crash(storage);
    let power_cut = |disk: &RecordingDisk| disk.freeze().image(&mut Random(SEED), |_| Keep::Nothing);
    let shorter = opened(&parted, &power_cut(&disk)).log().end();
    let end = opened(&parted, &disk).log().end();
    assert!(shorter < end, "there was log that was not durable");
    assert_eq!(opened(&parted, &power_cut(&disk)).log().end(), end);
    parted.close();
}

/// If the log is shorter all the same, it does not tell which pages were fetched: the two do not seem to part, and the
/// directory is no database.
#[test]
fn an_interrupted_rewind_without_its_log_is_refused() {
    let parted = parted(seed(), Sides::FormerPrimary, End::Killed);
    let disk = parted.directory.freeze().after_kill();
    disk.cut_before([20], None);
    parted.rewind(&disk).unwrap();
    let interrupted = disk.take_frozen().into_values().next().unwrap().after_kill();
    let history = parted.server.history();
    let flushed = parted.server.durable_log_end();
    let directory = opened(&parted, &interrupted);
    assert!(directory.was_interrupted());
    assert_eq!(
        directory.parting(&history, flushed).unwrap(),
        Parting::At(parted.fork)
    );
    let own_end = directory.log().end();
    drop(directory);
    let gone = vec![0; (own_end.0 - parted.fork.0) as usize];
    write_log(&interrupted, &gone, parted.fork);
    let directory = opened(&parted, &interrupted);
    assert_eq!(directory.log().end(), parted.fork);
    let error = directory.parting(&history, flushed).unwrap_err();
    assert!(matches!(error, StorageError::NotRewindable { .. }), "{error}");
    assert!(error.to_string().contains("the log here ends at"), "{error}");
    parted.close();
}

/// Of a standby's log that was synced only in part, later records may say that all of it was durable: on the primary.
#[test]
fn the_log_of_a_killed_standby_may_have_a_hole() {
    let parted = parted(seed(), Sides::StandbyAhead, End::Killed);
    let disk = parted.directory.freeze().after_kill();
    let end = opened(&parted, &disk).log().end();
    // The fork is the end of a record.
    assert!(parted.fork < end);
    write_log(&disk, &[0; 16], parted.fork);
    assert_eq!(opened(&parted, &disk).log().end(), parted.fork);
    // Of a primary's, the same proves damage.
    let parted_primary = self::parted(seed(), Sides::FormerPrimary, End::Killed);
    let disk = parted_primary.directory.freeze().after_kill();
    write_log(&disk, &[0; 16], parted_primary.fork);
    let refused = Rewind::open_on(Arc::new(disk), Path::new(DIRECTORY), true).unwrap_err();
    assert!(matches!(refused, StorageError::CorruptFile { .. }), "{refused}");
    parted_primary.close();
    parted.close();
}

/// A server whose log ends before the position where the histories part has not the log that both are said to have.
#[test]
fn a_server_that_ends_before_the_fork_is_refused() {
    let parted = parted(seed(), Sides::Promoted, End::Stopped);
    let directory = opened(&parted, &parted.directory);
    let at = |flushed| directory.parting(&History::first(), flushed);
    assert_eq!(at(parted.fork).unwrap(), Parting::At(parted.fork));
    let error = at(Lsn(parted.fork.0 - 1)).unwrap_err();
    assert!(matches!(error, StorageError::NotRewindable { .. }), "{error}");
    drop(directory);
    parted.close();
}

/// Wrong answers of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Its checkpoint is before the fork.
    EarlyCheckpoint,
    /// Its checkpoint ends before it begins.
    ShortCheckpoint,
    /// A page is missing.
    Pages,
    /// The end is 0.
    End,
    /// The end and the control file are of another checkpoint.
    Control,
}

struct Liar(LocalSource, Lie);

impl RewindSource for Liar {
    type Error = StorageError;

    fn begin(&mut self, log_from: Lsn) -> Result<SourceStart> {
        let start = self.0.begin(log_from)?;
        Ok(match self.1 {
            Lie::EarlyCheckpoint => SourceStart {
                redo: Lsn(log_from.0 - 8),
                ..start
            },
            Lie::ShortCheckpoint => SourceStart {
                checkpoint_end: Lsn(start.redo.0 - 8),
                ..start
            },
            _ => start,
        })
    }

    fn relations(&mut self) -> Result<Vec<SourceRelation>> {
        self.0.relations()
    }

    fn pages(&mut self, rel: RelId, blocks: &[u32]) -> Result<Option<Vec<u8>>> {
        let mut pages = self.0.pages(rel, blocks)?;
        if let Some(pages) = pages.as_mut().filter(|_| self.1 == Lie::Pages) {
            pages.truncate(pages.len() - PAGE_SIZE);
        }
        Ok(pages)
    }

    fn status_sums(&mut self, first: u32, count: u32) -> Result<Vec<u32>> {
        self.0.status_sums(first, count)
    }

    fn log(&mut self, position: Lsn, bytes: &mut [u8]) -> Result<()> {
        self.0.log(position, bytes)
    }

    fn finish(&mut self) -> Result<SourceEnd> {
        let end = self.0.finish()?;
        Ok(match self.1 {
            Lie::End => SourceEnd {
                position: Lsn(0),
                ..end
            },
            Lie::Control => SourceEnd {
                position: Lsn(end.position.0 + 8),
                ..end
            },
            _ => end,
        })
    }
}

/// A wrong answer ends the attempt with an error that does not speak of a new base backup, and another attempt succeeds.
#[test]
fn wrong_answers_end_the_attempt() {
    let parted = parted(seed(), Sides::FormerPrimary, End::Stopped);
    let history = parted.server.history();
    let lies = [
        (Lie::EarlyCheckpoint, "its checkpoint is from"),
        (Lie::ShortCheckpoint, "its checkpoint is from"),
        (Lie::Pages, "bytes came for"),
        (Lie::End, "the copy ends at 0/0"),
        (Lie::Control, "its control file is not of the database"),
    ];
    for (lie, problem) in lies {
        let directory = opened(&parted, &parted.directory);
        let mut source = Liar(LocalSource::new(&parted.server), lie);
        let plan = directory.plan(&mut source, &history, parted.fork);
        let outcome = plan.and_then(|plan| directory.run(&mut source, &plan, |_| ()));
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, StorageError::RewindSource { .. }),
            "{lie:?}: {error}"
        );
        assert!(error.to_string().contains(problem), "{lie:?}: {error}");
    }
    parted.rewind(&parted.directory).unwrap();
    parted.check(&parted.directory);
    parted.close();
}

/// No rewind fetches or takes back the changes of the program's own records: they are no pages.
#[test]
fn records_of_the_programs_own_are_a_reason_not_to_rewind() {
    let parted = parted(seed(), Sides::FormerPrimary, End::Stopped);
    let history = parted.server.history();
    let plan = || {
        let directory = opened(&parted, &parted.directory);
        directory.plan(&mut LocalSource::new(&parted.server), &history, parted.fork)
    };
    plan().unwrap();
    let wal = &parted.server.wal;
    wal.flush(wal.insert_any(RecordKind::own(3), Xid::INVALID, b"heron"));
    let error = plan().unwrap_err();
    assert!(matches!(error, StorageError::NotRewindable { .. }), "{error}");
    assert!(error.to_string().contains("Own(3)"), "{error}");
    parted.close();
}
