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

use clearway_storage::rewind::{
    Parting, Rewind, RewindDirectory, RewindSource, SourceEnd, SourceRelation, SourceStart,
};
use clearway_storage::timeline::History;
use clearway_storage::{Lsn, PAGE_SIZE, RelId, Result, StorageError};
use parted::{End, LocalSource, Parted, Sides, go_on, parted, variable};
use recording_disk::RecordingDisk;

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
