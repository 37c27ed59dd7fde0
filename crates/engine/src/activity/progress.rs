//! Progress of the command that a session runs, which others may read at any time (`pg_stat_progress_…`).
//!
//! The session alone writes it, without a clock and without a lock: a command, a relation, and counts whose meaning is the
//! command's. What is read need not be of one moment.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counts of a command.
const COUNTS: usize = 10;

/// A command whose progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Command {
    CopyFrom = 1,
    CopyTo = 2,
    Vacuum = 3,
    CreateIndex = 4,
    CreateIndexConcurrently = 5,
    Reindex = 6,
    ReindexConcurrently = 7,
}

impl Command {
    const ALL: [Command; 7] = [
        Command::CopyFrom,
        Command::CopyTo,
        Command::Vacuum,
        Command::CreateIndex,
        Command::CreateIndexConcurrently,
        Command::Reindex,
        Command::ReindexConcurrently,
    ];

    /// The name shown.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Command::CopyFrom => "COPY FROM",
            Command::CopyTo => "COPY TO",
            Command::Vacuum => "VACUUM",
            Command::CreateIndex => "CREATE INDEX",
            Command::CreateIndexConcurrently => "CREATE INDEX CONCURRENTLY",
            Command::Reindex => "REINDEX",
            Command::ReindexConcurrently => "REINDEX CONCURRENTLY",
        }
    }

    /// True if it makes an index.
    pub(crate) const fn makes_an_index(self) -> bool {
        matches!(
            self,
            Command::CreateIndex
                | Command::CreateIndexConcurrently
                | Command::Reindex
                | Command::ReindexConcurrently
        )
    }
}

/// Counts of COPY.
pub(crate) mod copy {
    /// Bytes that came from the client, or went to it.
    pub(crate) const BYTES: usize = 0;
    /// Rows that were taken, or sent.
    pub(crate) const ROWS: usize = 1;
    /// Rows that the condition of WHERE has left out.
    pub(crate) const EXCLUDED: usize = 2;
}

/// Counts of VACUUM.
pub(crate) mod vacuum {
    /// A place in [`PHASES`].
    pub(crate) const PHASE: usize = 0;
    /// Pages of the table when the vacuum began.
    pub(crate) const PAGES: usize = 1;
    /// Pages that it has read or passed over.
    pub(crate) const SCANNED: usize = 2;
    /// Pages whose dead line pointers are free again, or that had none.
    pub(crate) const VACUUMED: usize = 3;
    /// Rounds through the indexes.
    pub(crate) const ROUNDS: usize = 4;
    /// Dead rows that wait for the next round.
    pub(crate) const DEAD: usize = 5;
    /// The number of dead rows that begins a round.
    pub(crate) const DEAD_MAX: usize = 6;

    /// PostgreSQL's names of the phases.
    pub(crate) const PHASES: [&str; 4] = [
        "initializing",
        "scanning heap",
        "vacuuming indexes",
        "vacuuming heap",
    ];
    pub(crate) const SCANS: u64 = 1;
    pub(crate) const CLEARS_INDEXES: u64 = 2;
    pub(crate) const FREES_LINES: u64 = 3;
}

/// Counts of the commands that make an index.
pub(crate) mod index {
    /// A place in [`PHASES`].
    pub(crate) const PHASE: usize = 0;
    /// The index that is made.
    pub(crate) const INDEX: usize = 1;
    /// Transactions that the command waits for in this phase.
    pub(crate) const LOCKERS: usize = 2;
    /// Those of them that have ended.
    pub(crate) const LOCKERS_DONE: usize = 3;
    /// The session of the transaction that the command waits for now; 0: of none.
    pub(crate) const LOCKER: usize = 4;
    /// Pages of the table that this phase reads.
    pub(crate) const PAGES: usize = 5;
    /// Those of them that it has read.
    pub(crate) const PAGES_DONE: usize = 6;
    /// Entries that this phase puts into the tree.
    pub(crate) const ENTRIES: usize = 7;
    /// Those of them that are in the tree.
    pub(crate) const ENTRIES_DONE: usize = 8;

    /// PostgreSQL's names of the phases.
    pub(crate) const PHASES: [&str; 11] = [
        "initializing",
        "waiting for writers before build",
        "building index: scanning table",
        "building index: sorting live tuples",
        "building index: loading tuples in tree",
        "waiting for writers before validation",
        "index validation: scanning index",
        "index validation: scanning table",
        "waiting for old snapshots",
        "waiting for readers before marking dead",
        "waiting for readers before dropping",
    ];
    pub(crate) const WAITS_BEFORE_BUILD: u64 = 1;
    pub(crate) const SCANS_TABLE: u64 = 2;
    pub(crate) const SORTS: u64 = 3;
    pub(crate) const LOADS: u64 = 4;
    pub(crate) const WAITS_BEFORE_VALIDATION: u64 = 5;
    pub(crate) const READS_INDEX: u64 = 6;
    pub(crate) const VALIDATES: u64 = 7;
    pub(crate) const WAITS_FOR_SNAPSHOTS: u64 = 8;
    pub(crate) const WAITS_BEFORE_DEAD: u64 = 9;
    pub(crate) const WAITS_BEFORE_DROP: u64 = 10;
}

/// The progress of the command that a session runs, if it runs one that has any.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// A [`Command`]; 0: none runs.
    command: AtomicU32,
    relation: AtomicU32,
    counts: [AtomicU64; COUNTS],
}

/// A command that runs, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandShown {
    pub(crate) command: Command,
    /// The table; 0 for none.
    pub(crate) relation: u32,
    counts: [u64; COUNTS],
}

impl CommandShown {
    /// One of its counts.
    pub(crate) fn count(&self, at: usize) -> u64 {
        self.counts[at]
    }

    /// The name of the phase that this count is.
    pub(crate) fn phase(&self, at: usize, names: &[&'static str]) -> &'static str {
        let place = usize::try_from(self.counts[at]).ok();
        place
            .and_then(|place| names.get(place).copied())
            .unwrap_or(names[0])
    }
}

/// A command is shown for as long as this lives.
#[must_use]
#[derive(Debug)]
pub(crate) struct Running<'a> {
    progress: &'a Progress,
    /// False for a part of a command that goes on.
    ends: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.ends {
            self.progress.command.store(0, Ordering::Relaxed);
        }
    }
}

impl Running<'_> {
    /// Adds to a count.
    #[inline]
    pub(crate) fn add(&self, at: usize, more: u64) {
        let count = &self.progress.counts[at];
        count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Sets a count.
    #[inline]
    pub(crate) fn set(&self, at: usize, number: u64) {
        self.progress.counts[at].store(number, Ordering::Relaxed);
    }

    /// Sets the phase of making an index. What is counted by phase begins anew.
    pub(crate) fn index_phase(&self, phase: u64) {
        for at in index::LOCKERS..=index::ENTRIES_DONE {
            self.set(at, 0);
        }
        self.set(index::PHASE, phase);
    }
}

impl Progress {
    /// A command begins.
    pub(crate) fn begin(&self, command: Command, relation: u32) -> Running<'_> {
        self.relation.store(relation, Ordering::Relaxed);
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `shown`, so that what is shown is not of the command before.
        self.command.store(command as u32, Ordering::Release);
        Running {
            progress: self,
            ends: true,
        }
    }

    /// The making of an index of a table begins: as a part of the command that runs, if that makes indexes, and else as
    /// CREATE INDEX.
    pub(crate) fn index_of(&self, table: u32, index: u32) -> Running<'_> {
        let running = self.command().filter(|command| command.makes_an_index());
        let running = match running {
            Some(_) => {
                self.relation.store(table, Ordering::Relaxed);
                self.running()
            }
            None => self.begin(Command::CreateIndex, table),
        };
        running.set(index::INDEX, u64::from(index));
        running
    }

    /// The command that runs already, to count for it.
    pub(crate) fn running(&self) -> Running<'_> {
        Running {
            progress: self,
            ends: false,
        }
    }

    fn command(&self) -> Option<Command> {
        let number = self.command.load(Ordering::Acquire);
        Command::ALL.into_iter().find(|command| *command as u32 == number)
    }

    /// The command that runs.
    pub(crate) fn shown(&self) -> Option<CommandShown> {
        let command = self.command()?;
        Some(CommandShown {
            command,
            relation: self.relation.load(Ordering::Relaxed),
            counts: std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_from_its_beginning_to_its_end() {
        let progress = Progress::default();
        assert_eq!(progress.shown(), None);
        let running = progress.begin(Command::CopyFrom, 16_384);
        running.add(copy::BYTES, 10);
        running.add(copy::BYTES, 5);
        running.set(copy::ROWS, 3);
        let shown = progress.shown().unwrap();
        assert_eq!((shown.command, shown.relation), (Command::CopyFrom, 16_384));
        assert_eq!((shown.count(copy::BYTES), shown.count(copy::ROWS)), (15, 3));
        drop(running);
        assert_eq!(progress.shown(), None);
        let _running = progress.begin(Command::CopyTo, 0);
        let shown = progress.shown().unwrap();
        assert_eq!((shown.command, shown.relation), (Command::CopyTo, 0));
        assert_eq!((shown.count(copy::BYTES), shown.count(copy::ROWS)), (0, 0));
    }

    #[test]
    fn an_index_is_a_part_of_the_command_that_makes_several() {
        let progress = Progress::default();
        let reindex = progress.begin(Command::Reindex, 1);
        let first = progress.index_of(2, 3);
        first.index_phase(index::SCANS_TABLE);
        first.set(index::PAGES_DONE, 7);
        first.index_phase(index::LOADS);
        let shown = progress.shown().unwrap();
        assert_eq!((shown.command, shown.relation), (Command::Reindex, 2));
        assert_eq!(
            shown.phase(index::PHASE, &index::PHASES),
            "building index: loading tuples in tree"
        );
        assert_eq!(
            (shown.count(index::INDEX), shown.count(index::PAGES_DONE)),
            (3, 0)
        );
        drop(first);
        assert!(progress.shown().is_some());
        drop(reindex);
        let alone = progress.index_of(2, 3);
        assert_eq!(progress.shown().unwrap().command, Command::CreateIndex);
        drop(alone);
        assert_eq!(progress.shown(), None);
    }
}
