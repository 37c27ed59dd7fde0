//! Timelines: whose log a position belongs to, after a standby has been promoted or a recovery has ended at a point.
//!
//! A standby that is promoted goes on where its replay has ended. The former primary may have logged something else
//! behind that position, and both logs would have the same positions. So each goes by the number of a *timeline*:
//!
//! ```text
//!                      0/5000028         0/9000100
//!   timeline 1  ├──────────┼───────▶         ┊         the former primary's, none of ours
//!   timeline 2             └─────────────────┼───▶     nor is this
//!   timeline 3                               └────▶    ours
//!
//!   the history of timeline 3:   1  0/5000028  promoted
//!                                2  0/9000100  promoted
//! ```
//!
//! A [`History`] says for each position which timeline's log it is in: a byte at 0/5000027 is of timeline 1, and the
//! byte at 0/5000028 of timeline 2. Where a timeline ends, and the next one of the history begins, is a *fork*.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the history, and what it says of a position |
//! | `text` | the form of a history file, which is PostgreSQL's |
//! | `identity` | telling timelines of the same number apart |
//! | `history_file` | reading and writing one in the log's directory |
//!
//! # Rules
//! - R1: the control file names the timeline of a directory. Files of the log that are not of its history are never
//!   read, whatever they are called.
//! - R2: a segment has one name in a history: that of the timeline which its last byte is in. So a segment that holds a
//!   fork has the new timeline's name, and the log before the fork is in it too. The simpler rule, to take the
//!   newest file that is there, would take the former timeline's file where the new one is missing, and read log
//!   behind the fork.
//! - R3: a new timeline begins in three steps: its history file, its segments, the control file. Each is durable before
//!   the next. After a power cut between two of them the directory is on the former timeline, and R1 makes it ignore
//!   what is there of the new one; after the third it is on the new one, of which everything is there.
//! - R4: the number of a new timeline is above all that the directory knows of. After a power cut in the middle of R3
//!   the next attempt gets another number.
//!
//! - R5: a timeline has a random identity, which its history file names. Two standbys of one primary that are both promoted
//!   begin the same number, perhaps at the same position: only the identities tell these timelines apart. Timeline 1 has
//!   none, because the database's own number is one. Histories that an earlier version has written have none either;
//!   they are compared by numbers and positions, and the log itself is compared beside (`log_digest`).
//!
//! Origin: PostgreSQL's timelines, whose file names and history files these are, since its programs read both. What is
//! ours is the form of R2: PostgreSQL looks for a segment under each timeline of the history, newest first.

mod history_file;
mod identity;
mod text;

use std::path::Path;
use std::sync::{Arc, RwLock};

use crate::error::{Result, StorageError};
use crate::page::Lsn;

pub(crate) use history_file::{NEW_SUFFIX, newest_named, read, read_text, write};
pub use history_file::{history_file_name, timeline_of_history_file};
pub use identity::TimelineIdentity;
pub use text::HistoryProblem;

/// The timeline of a new database's log.
pub const FIRST_TIMELINE: u32 = 1;

/// A timeline that the log has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTimeline {
    /// Its number.
    pub timeline: u32,
    /// Its identity among timelines of that number; `None` for the first, and where an earlier version began it.
    pub identity: Option<TimelineIdentity>,
    /// Its log ends here, and that of the next one begins.
    pub end: Lsn,
    /// The reason why it was left, for readers.
    pub reason: String,
}

/// A timeline and those that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// In ascending order, of numbers and of ends; ends may be equal.
    ended: Vec<EndedTimeline>,
    current: u32,
    /// Of the current one.
    identity: Option<TimelineIdentity>,
}

impl History {
    /// That of a database which was never promoted.
    pub fn first() -> History {
        History {
            ended: Vec::new(),
            current: FIRST_TIMELINE,
            identity: None,
        }
    }

    /// Reads the text of the history file of `timeline`.
    pub fn parse(text: &str, timeline: u32) -> std::result::Result<History, HistoryProblem> {
        text::parse(text, timeline)
    }

    /// The content of its history file.
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    /// The timeline that the log is on.
    pub fn current(&self) -> u32 {
        self.current
    }

    /// Its identity among timelines of that number (R5).
    pub fn identity(&self) -> Option<TimelineIdentity> {
        self.identity
    }

    /// The timelines before the current one, the oldest first.
    pub fn ended(&self) -> &[EndedTimeline] {
        &self.ended
    }

    /// The timeline of the byte at `position`.
    pub fn timeline_of(&self, position: Lsn) -> u32 {
        let ended = self.ended.iter().find(|ended| position < ended.end);
        ended.map_or(self.current, |ended| ended.timeline)
    }

    /// The end of `timeline`; `None` for the current one and for those that are not in this history.
    pub fn end_of(&self, timeline: u32) -> Option<Lsn> {
        self.ended
            .iter()
            .find(|ended| ended.timeline == timeline)
            .map(|ended| ended.end)
    }

    /// True if the current timeline comes from `timeline`, which is another one.
    pub fn is_ancestor(&self, timeline: u32) -> bool {
        self.end_of(timeline).is_some()
    }

    /// True if the log of this history goes on from that of `other`, or is the same: as far as `other` tells, both come
    /// from the same timelines, by number and identity.
    pub fn continues(&self, other: &History) -> bool {
        let same = self.ended.iter().zip(&other.ended).all(|(own, others)| {
            (own.timeline, own.identity, own.end) == (others.timeline, others.identity, others.end)
        });
        let longer = self.ended.len() >= other.ended.len();
        let next = self.ended.get(other.ended.len());
        let next = next.map_or((self.current, self.identity), |next| {
            (next.timeline, next.identity)
        });
        same && longer && next == (other.current, other.identity)
    }

    /// True if one of its timelines begins at `fork`.
    pub(crate) fn begins_one_at(&self, fork: Lsn) -> bool {
        self.ended.iter().any(|ended| ended.end == fork)
    }

    /// Up to where both have the same log, as far as the histories tell; `None`: neither says that it ends.
    pub fn common_end(&self, other: &History) -> Option<Lsn> {
        let mut common = Lsn(0);
        for (own, others) in self.lives().zip(other.lives()) {
            if (own.0, own.1) != (others.0, others.1) {
                return Some(common);
            }
            match (own.2, others.2) {
                (None, None) => return None,
                (Some(own), Some(others)) if own == others => common = own,
                (own, others) => return own.into_iter().chain(others).min(),
            }
        }
        None
    }

    /// The position at which the log of this history, that of the directory `dir` up to `log_end`, stops being that of
    /// the server with the history `server`; an error if the server's history does not go on from this one.
    pub(crate) fn end_in(&self, server: &History, dir: &Path, log_end: Lsn) -> Result<Lsn> {
        if !server.continues(self) {
            return Err(StorageError::OtherHistory {
                dir: dir.to_owned(),
                own_timeline: self.current,
                own_end: log_end,
                timeline: server.current,
                parting: server.common_end(self).unwrap_or(log_end),
            });
        }
        Ok(server
            .end_of(self.current)
            .map_or(log_end, |fork| fork.min(log_end)))
    }

    /// Number, identity and end of each timeline, the oldest first.
    fn lives(&self) -> impl Iterator<Item = (u32, Option<TimelineIdentity>, Option<Lsn>)> {
        let ended = self.ended.iter();
        let ended = ended.map(|ended| (ended.timeline, ended.identity, Some(ended.end)));
        ended.chain(std::iter::once((self.current, self.identity, None)))
    }

    /// The timeline that follows `timeline`; `None` for the current one and for those that are not in this history.
    pub fn next_after(&self, timeline: u32) -> Option<u32> {
        let index = self.ended.iter().position(|ended| ended.timeline == timeline)?;
        let next = self.ended.get(index + 1);
        Some(next.map_or(self.current, |next| next.timeline))
    }

    /// The pieces of the log from `start` to `end`, each with its timeline. Pieces without a byte are left out.
    pub fn ranges(&self, start: Lsn, end: Lsn) -> Vec<(u32, Lsn, Lsn)> {
        let mut ranges = Vec::new();
        let mut from = start;
        for ended in &self.ended {
            let upto = ended.end.min(end);
            if from < upto {
                ranges.push((ended.timeline, from, upto));
                from = upto;
            }
        }
        if from < end {
            ranges.push((self.current, from, end));
        }
        ranges
    }

    /// The history of `timeline`, which begins at `fork` on the current one. It gets an identity of its own (R5).
    #[must_use]
    pub fn forked(&self, timeline: u32, fork: Lsn, reason: &str) -> History {
        debug_assert!(timeline > self.current);
        let mut ended = self.ended.clone();
        ended.push(EndedTimeline {
            timeline: self.current,
            identity: self.identity,
            end: fork,
            reason: text::one_line(reason),
        });
        History {
            ended,
            current: timeline,
            identity: Some(TimelineIdentity::random()),
        }
    }
}

/// The history of an open directory. Those who read the log share it, and a promotion replaces it.
#[derive(Debug)]
pub struct SharedHistory(RwLock<Arc<History>>);

impl SharedHistory {
    /// A directory with this history.
    pub fn new(history: History) -> Arc<SharedHistory> {
        Arc::new(SharedHistory(RwLock::new(Arc::new(history))))
    }

    /// The history now.
    pub fn get(&self) -> Arc<History> {
        Arc::clone(&self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    pub(crate) fn set(&self, history: Arc<History>) {
        *self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = history;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The picture above.
    fn third() -> History {
        History::first()
            .forked(2, Lsn(0x500_0028), "promoted")
            .forked(3, Lsn(0x900_0100), "promoted")
    }

    #[test]
    fn a_position_is_of_the_timeline_that_it_was_logged_on() {
        let history = third();
        for (position, timeline) in [
            (0, 1),
            (0x500_0027, 1),
            (0x500_0028, 2),
            (0x900_00FF, 2),
            (0x900_0100, 3),
            (u64::MAX, 3),
        ] {
            assert_eq!(history.timeline_of(Lsn(position)), timeline, "{position:x}");
        }
        assert_eq!(History::first().timeline_of(Lsn(u64::MAX)), 1);
    }

    #[test]
    fn ends_and_successors_are_those_of_this_history() {
        let history = third();
        assert_eq!(history.end_of(1), Some(Lsn(0x500_0028)));
        assert_eq!(history.end_of(2), Some(Lsn(0x900_0100)));
        assert_eq!((history.end_of(3), history.end_of(4)), (None, None));
        assert_eq!((history.next_after(1), history.next_after(2)), (Some(2), Some(3)));
        assert_eq!((history.next_after(3), history.next_after(7)), (None, None));
        assert!(history.is_ancestor(2) && !history.is_ancestor(3));
        assert!(history.continues(&History::first()) && history.continues(&history));
        assert!(!History::first().continues(&history));
        // Timeline 2 was promoted away from before it ended: 5 comes from 1 directly.
        let other = History::first().forked(5, Lsn(8), "x");
        assert_eq!((other.next_after(1), other.is_ancestor(2)), (Some(5), false));
        assert!(!other.continues(&history) && !history.continues(&other));
        let elsewhere = History::first().forked(2, Lsn(8), "x").forked(3, Lsn(16), "x");
        assert!(!elsewhere.continues(&history), "timeline 2 of another server");
    }

    /// Alice and Bob are promoted at once, at the same position: both call their timeline 2.
    #[test]
    fn siblings_of_one_number_are_told_apart() {
        let fork = Lsn(0x500_0028);
        let alice = History::first().forked(2, fork, "promoted");
        let bob = History::first().forked(2, fork, "promoted");
        assert!(!alice.continues(&bob) && !bob.continues(&alice));
        assert_eq!(alice.common_end(&bob), Some(fork));
        assert!(alice.continues(&History::first()) && alice.continues(&alice.clone()));
        // Nor do those that come from them go on from the other's.
        let carol = bob.forked(3, Lsn(0x900_0100), "promoted");
        assert!(carol.continues(&bob) && !carol.continues(&alice));
        assert_eq!(
            (carol.common_end(&alice), carol.common_end(&bob)),
            (Some(fork), Some(Lsn(0x900_0100)))
        );
        let earlier = History::first().forked(2, Lsn(8), "promoted");
        assert_eq!(earlier.common_end(&carol), Some(Lsn(8)));
        assert_eq!(carol.common_end(&carol), None);
    }

    #[test]
    fn a_range_is_cut_at_the_forks() {
        let history = third();
        let (first, second) = (Lsn(0x500_0028), Lsn(0x900_0100));
        assert_eq!(
            history.ranges(Lsn(8), Lsn(0xA00_0000)),
            [
                (1, Lsn(8), first),
                (2, first, second),
                (3, second, Lsn(0xA00_0000))
            ]
        );
        assert_eq!(history.ranges(first, second), [(2, first, second)]);
        assert_eq!(history.ranges(Lsn(8), first), [(1, Lsn(8), first)]);
        assert_eq!(history.ranges(second, second), []);
        // Two promotions without a record between them.
        let twice = History::first().forked(2, first, "").forked(3, first, "");
        assert_eq!(
            twice.ranges(Lsn(8), second),
            [(1, Lsn(8), first), (3, first, second)]
        );
    }
}
