//! The standbys that count, and the replicated position of commits: a computation over what they have reported, without
//! memory of its own.
//!
//! A standby counts if it is on the list, streams (it has caught up once), and has said what it has on its disk. A
//! program that only archives says so too, and counts if its `application_name` is listed.
//!
//! | setting | the replicated position, of each level by itself |
//! | --- | --- |
//! | `FIRST n` | the least of the n first standbys that count; those of one place in the order in which they came |
//! | `ANY n` | the n-th greatest of all that count |
//! | either, with fewer than n | none: it stays where it was |
//!
//! # Example
//! `berlin` is at 900, `paris` at 700, `rome` at 800. Under `FIRST 2 (berlin, paris, rome)` the position is 700, under
//! `ANY 2` it is 800. When `paris` is gone, it is 800 under both.

use std::cmp::Reverse;

use super::names::{StandbyChoice, StandbyNames};
use super::{LEVELS, ReplicationLevel};
use crate::page::Lsn;

/// The progress that a standby reports; zero where it has said nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StandbyProgress {
    /// True if it has caught up with the log once.
    pub streams: bool,
    /// It has handed this much to its operating system,
    pub written: Lsn,
    /// has this much on its disk,
    pub flushed: Lsn,
    /// and shows this much to its readers.
    pub applied: Lsn,
}

impl StandbyProgress {
    fn at(&self, level: ReplicationLevel) -> Lsn {
        match level {
            ReplicationLevel::Written => self.written,
            ReplicationLevel::Flushed => self.flushed,
            ReplicationLevel::Applied => self.applied,
        }
    }
}

/// The state of a standby for commits, in the words of `pg_stat_replication`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncState {
    /// Nothing.
    Async,
    /// It becomes synchronous when one that comes before it is gone.
    Potential,
    /// They wait for it.
    Sync,
    /// They wait for it or for another one.
    Quorum,
}

impl SyncState {
    /// The name shown.
    pub fn name(self) -> &'static str {
        match self {
            SyncState::Async => "async",
            SyncState::Potential => "potential",
            SyncState::Sync => "sync",
            SyncState::Quorum => "quorum",
        }
    }
}

/// A connected standby.
#[derive(Debug)]
pub(super) struct Standby {
    pub(super) name: String,
    /// Its place on the list; 0: it is not there.
    pub(super) priority: u32,
    pub(super) progress: StandbyProgress,
}

impl Standby {
    fn counts(&self) -> bool {
        self.priority > 0 && self.progress.streams && self.progress.flushed != Lsn(0)
    }
}

/// The numbers of the standbys that commits wait for, if there are enough.
fn chosen<'a>(
    names: &StandbyNames,
    standbys: impl Iterator<Item = (u64, &'a Standby)>,
) -> Vec<(u64, &'a Standby)> {
    let mut candidates: Vec<_> = standbys.filter(|(_, standby)| standby.counts()).collect();
    if names.choice() == StandbyChoice::First {
        candidates.sort_by_key(|(number, standby)| (standby.priority, *number));
        candidates.truncate(names.count());
    }
    candidates
}

/// The replicated position of the log at each level; `None` if too few standbys count.
pub(super) fn replicated<'a>(
    names: &StandbyNames,
    standbys: impl Iterator<Item = (u64, &'a Standby)>,
) -> Option<[Lsn; LEVELS]> {
    let chosen = chosen(names, standbys);
    if chosen.len() < names.count() {
        return None;
    }
    // Under FIRST no more than `count` are chosen, so the count-th greatest is the least.
    let position = |level| {
        let mut positions: Vec<Lsn> = chosen.iter().map(|(_, s)| s.progress.at(level)).collect();
        let (_, position, _) = positions.select_nth_unstable_by_key(names.count() - 1, |at| Reverse(*at));
        *position
    };
    Some(ReplicationLevel::ALL.map(position))
}

/// The state of standby `number` for commits.
pub(super) fn state_of<'a>(
    names: &StandbyNames,
    standbys: impl Iterator<Item = (u64, &'a Standby)>,
    number: u64,
    priority: u32,
) -> SyncState {
    let is_chosen = || {
        chosen(names, standbys)
            .iter()
            .any(|(chosen, _)| *chosen == number)
    };
    match names.choice() {
        _ if priority == 0 => SyncState::Async,
        _ if !is_chosen() => SyncState::Potential,
        StandbyChoice::First => SyncState::Sync,
        StandbyChoice::Any => SyncState::Quorum,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn standby(names: &StandbyNames, name: &str, streams: bool, at: [u64; 3]) -> Standby {
        Standby {
            name: name.to_owned(),
            priority: names.priority(name),
            progress: StandbyProgress {
                streams,
                written: Lsn(at[0]),
                flushed: Lsn(at[1]),
                applied: Lsn(at[2]),
            },
        }
    }

    fn names(text: &str) -> StandbyNames {
        StandbyNames::parse(text).unwrap().unwrap()
    }

    fn numbered(standbys: &[Standby]) -> impl Iterator<Item = (u64, &Standby)> {
        (0..).zip(standbys)
    }

    fn flushed(text: &str, standbys: &[(&str, u64)]) -> Option<u64> {
        let names = names(text);
        let standbys: Vec<_> = standbys
            .iter()
            .map(|(name, at)| standby(&names, name, true, [*at; 3]))
            .collect();
        replicated(&names, numbered(&standbys)).map(|positions| positions[1].0)
    }

    #[test]
    fn the_example() {
        let all = [("rome", 800), ("paris", 700), ("berlin", 900)];
        assert_eq!(flushed("FIRST 2 (berlin, paris, rome)", &all), Some(700));
        assert_eq!(flushed("ANY 2 (berlin, paris, rome)", &all), Some(800));
        let left = [("rome", 800), ("berlin", 900)];
        assert_eq!(flushed("FIRST 2 (berlin, paris, rome)", &left), Some(800));
        assert_eq!(flushed("ANY 2 (berlin, paris, rome)", &left), Some(800));
        assert_eq!(
            flushed("2 (berlin, paris)", &left),
            None,
            "rome is not on the list"
        );
        assert_eq!(flushed("rome, *", &all), Some(800));
        assert_eq!(flushed("*", &all), Some(800), "the one that came first");
    }

    #[test]
    fn only_what_streams_and_has_said_so_counts() {
        let names = names("ANY 1 (*)");
        let catching_up = standby(&names, "a", false, [9, 9, 9]);
        let silent = standby(&names, "b", true, [9, 0, 0]);
        assert_eq!(replicated(&names, numbered(&[catching_up, silent])), None);
        // An archive never applies anything.
        let archive = standby(&names, "c", true, [9, 8, 0]);
        let expected = Some([Lsn(9), Lsn(8), Lsn(0)]);
        assert_eq!(replicated(&names, numbered(&[archive])), expected);
    }

    #[test]
    fn states_are_those_of_postgresql() {
        let states = |text: &str, streaming: [bool; 3]| {
            let names = names(text);
            let standbys: Vec<_> = ["a", "b", "c"]
                .iter()
                .zip(streaming)
                .map(|(name, streams)| standby(&names, name, streams, [5; 3]))
                .collect();
            [0, 1, 2].map(|number: usize| {
                let priority = standbys[number].priority;
                state_of(&names, numbered(&standbys), number as u64, priority).name()
            })
        };
        assert_eq!(states("b, a", [true; 3]), ["potential", "sync", "async"]);
        assert_eq!(
            states("b, a", [true, false, true]),
            ["sync", "potential", "async"]
        );
        assert_eq!(states("ANY 1 (a, b)", [true; 3]), ["quorum", "quorum", "async"]);
        assert_eq!(states("3 (a, b)", [true; 3]), ["sync", "sync", "async"]);
    }

    proptest! {
        /// Against the definition: the furthest position that enough standbys have.
        #[test]
        fn positions_are_those_of_the_definition(
            any in any::<bool>(),
            count in 1..4_usize,
            listed in prop::sample::subsequence(vec!["a", "b", "c", "d", "*"], 1..5).prop_shuffle(),
            connected in prop::collection::vec(
                (prop::sample::select(vec!["a", "b", "c", "d", "e"]), any::<bool>(), [0..6_u64, 0..6, 0..6]),
                0..6,
            ),
        ) {
            let choice = if any { "ANY" } else { "FIRST" };
            let names = names(&format!("{choice} {count} ({})", listed.join(",")));
            let standbys: Vec<_> = connected
                .iter()
                .map(|(name, streams, at)| standby(&names, name, *streams, *at))
                .collect();
            let counting: Vec<_> = standbys
                .iter()
                .filter(|s| s.priority > 0 && s.progress.streams && s.progress.flushed.0 > 0)
                .collect();
            let has = |standby: &Standby, level, at| standby.progress.at(level).0 >= at;
            // The first `count` of the list: fewer than `count` others come before each of them.
            let is_first = |at: usize| {
                let key = |at: usize| (counting[at].priority, at);
                (0..counting.len()).filter(|other| key(*other) < key(at)).count() < count
            };
            let enough = |level, at| {
                if any {
                    counting.iter().filter(|standby| has(standby, level, at)).count() >= count
                } else {
                    (0..counting.len()).all(|number| !is_first(number) || has(counting[number], level, at))
                }
            };
            let naive = (counting.len() >= count).then(|| {
                ReplicationLevel::ALL.map(|level| Lsn((0..6).rev().find(|at| enough(level, *at)).unwrap()))
            });
            prop_assert_eq!(replicated(&names, numbered(&standbys)), naive);
        }
    }
}
