//! Going on with the log on a new timeline: one's own after a promotion, or the server's that is followed.
//!
//! ```text
//!   begin_timeline: a standby that is promoted, or a recovery that has ended at a point
//!     timeline 1  ├────────┤ fork = the end of what was replayed
//!     timeline 2           ├──▶ new: sessions write here
//!
//!   follow_timeline: a standby whose primary is another one by now
//!     server      ├──────1──────┤ fork ├──2──▶
//!     here        ├────1───┤ end: the next byte is received on timeline 2, although it was logged on timeline 1
//! ```
//!
//! Both take the three steps of R3 of `timeline`: history file, segments, control file. The control file is the moment
//! at which the directory changes its timeline. Its redo position stays: recovery after a crash reads log of the
//! former timeline up to the fork, and then the new one's, as if there were one log.
//!
//! The control file has to be written here and not by the next checkpoint. Pages may be written as soon as there is log
//! of the new timeline, and so before that checkpoint is complete. A start with the former timeline's control file would
//! then find pages that are newer than its log.

use std::sync::{Arc, MutexGuard};

use crate::error::{Result, StorageError};
use crate::files::control_file::{Control, ControlFile, State};
use crate::page::Lsn;
use crate::standby::TakeBack;
use crate::storage::Storage;
use crate::wal::timeline::{self, History, history_file_name};

fn parse_history(text: &str, timeline: u32) -> Result<History> {
    History::parse(text, timeline).map_err(|problem| StorageError::MalformedHistory {
        file: history_file_name(timeline).into(),
        line: problem.line,
        problem: problem.problem,
    })
}

impl Storage {
    /// Begins a timeline of this directory's own at `fork`, which is the end of the log and of what was replayed; its
    /// number. From here on the directory is a database that is written to, whatever it was.
    ///
    /// The caller makes sure that nothing is logged or received meanwhile, and that no thread makes room for the log.
    /// A checkpoint should follow, so that a crash does not replay all of it again.
    pub fn begin_timeline(&self, fork: Lsn, reason: &str) -> Result<u32> {
        let former = self.history();
        let newest = self
            .segments()
            .newest_timeline(former.current())
            .map_err(|error| StorageError::io("list", self.segments().dir(), error))?;
        // R4 of `timeline`.
        let history = former.forked(newest + 1, fork, reason);
        let text = history.to_text();
        let number = history.current();
        self.switch_timeline(history, &text, fork, State::Running)?;
        tracing::info!(timeline = number, %fork, reason, "a new timeline begins");
        Ok(number)
    }

    /// Goes on with the server's `timeline`, of which `history_text` is the history file, in a standby. An error leaves
    /// everything as it was. What was received of a record that the new timeline does not have is given up
    /// ([`LogReceiver::resume`](crate::standby::LogReceiver::resume)).
    ///
    /// The caller makes sure that nothing is received meanwhile.
    pub fn follow_timeline(&self, history_text: &str, timeline: u32) -> Result<()> {
        let log_end = self.durable_log_end();
        let own = self.history();
        let own_timeline = own.current();
        let history = parse_history(history_text, timeline)?;
        own.end_in(&history, self.dir(), log_end)?;
        let dir = || self.dir().to_owned();
        match history.end_of(own_timeline) {
            // The same one: the server's goes on from it.
            None => Ok(()),
            // The former primary may have died while it sent a record, of which the new one received less.
            Some(fork) if log_end > fork => {
                let standby = self.standby().filter(|standby| standby.is_active());
                match standby.map_or(TakeBack::Refused, |standby| standby.take_back(fork)) {
                    TakeBack::Taken(taken) => {
                        let state = self.control_file().content().state;
                        self.switch_timeline(history, history_text, fork, state)?;
                        self.acknowledged_ends_at(fork)?;
                        taken.complete();
                        self.retention.log_was_taken_back(fork);
                        tracing::info!(
                            timeline, %fork, %log_end,
                            "follows the server onto its new timeline; a part of a record is received again"
                        );
                        Ok(())
                    }
                    TakeBack::NotYet => Err(StorageError::NotReplayedYet {
                        dir: dir(),
                        own_timeline,
                        own_end: log_end,
                        timeline,
                        fork,
                    }),
                    TakeBack::Refused => Err(StorageError::Diverged {
                        dir: dir(),
                        own_timeline,
                        own_end: log_end,
                        timeline,
                        fork,
                    }),
                }
            }
            Some(fork) => {
                let state = self.control_file().content().state;
                self.switch_timeline(history, history_text, log_end, state)?;
                self.acknowledged_ends_at(fork)?;
                tracing::info!(timeline, %fork, %log_end, "follows the server onto its new timeline");
                Ok(())
            }
        }
    }

    /// Up to where the log here, which ends at `log_end`, is to be the server's, whose `timeline` has the history file
    /// `history_text` (none for the first timeline). An error if the server's history does not go on from this one.
    /// Nothing is changed.
    pub fn common_log_end(&self, timeline: u32, history_text: Option<&str>, log_end: Lsn) -> Result<Lsn> {
        let history = match history_text {
            Some(text) => parse_history(text, timeline)?,
            None => History::first(),
        };
        self.history().end_in(&history, self.dir(), log_end)
    }

    /// Log that was acknowledged behind a fork is not of the timeline that is followed now. It is gone only if it was
    /// damaged here: whole records behind the fork refuse the timeline.
    fn acknowledged_ends_at(&self, fork: Lsn) -> Result<()> {
        match self.standby() {
            Some(standby) => standby.acknowledged.ends_at(fork),
            None => Ok(()),
        }
    }

    /// R3 of `timeline`.
    fn switch_timeline(&self, history: History, text: &str, log_end: Lsn, state: State) -> Result<()> {
        // A checkpoint under way would write the former timeline into the control file.
        let _no_checkpoint = self.background_state.pause_checkpoints();
        let segments = self.segments();
        let number = history.current();
        timeline::write(segments.disk(), segments.dir(), self.options.fsync, number, text)?;
        let prepared = segments
            .prepare_timeline(Arc::new(history), log_end)
            .map_err(|error| {
                let wal_dir = self.log_dir();
                StorageError::io("make the segments of a new timeline in", &wal_dir, error)
            })?;
        let mut control_file = self.control_file();
        let control = Control {
            timeline: number,
            state,
            ..control_file.content()
        };
        control_file.write(control)?;
        self.wal.adopt(prepared);
        Ok(())
    }

    fn control_file(&self) -> MutexGuard<'_, ControlFile> {
        self.control
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
