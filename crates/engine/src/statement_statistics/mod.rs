//! `pg_stat_statements`: times, pages and log of statements, by their text without constants.
//!
//! # Example
//! Alice runs `select * from t where id = 7`, Bob the same with 8. Both are `select * from t where id = $1`, so one entry
//! counts two calls, if they are the same role. Alice's session adds to its part of the entry and Bob's to another one.
//!
//! # Rules
//! - S1: an entry counts one statement of one role: its key is the role and the statement's number
//!   ([`normalised`](clearway_sql::normalised())).
//! - S2: an entry has [`PARTS`] parts, and a session adds to the one that its place among the sessions says. Sessions that
//!   run the same statement at the same time write the same line only where they share a part.
//! - S3: a reader adds the parts up. Each part is of one moment, the sum need not be.
//! - S4: there are no more entries than `pg_stat_statements.max`. A new one that finds no room takes that of others: the
//!   twentieth part of all that was used longest ago goes.
//! - S5: an entry that goes is marked under the lock of the list. A session that kept it looks the statement up again. What
//!   it adds before it sees the mark goes with the entry.
//!
//! # Costs
//! A statement that is counted costs two readings of the clock, two of the thread's counts, and two mutexes that no other
//! session wants: that of the prepared statement and that of the part. One that is not counted costs a look at a setting.
//! An entry has its text (4 kB at most) and about 200 bytes for each part that was used.
//!
//! # What it does not do
//! Statements in which an error came are not counted, nor is the time in which a statement is parsed and planned for the
//! first time. Nothing is kept over a restart.

mod counts;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use clearway_machine::Padded;
use serde::{Deserialize, Serialize};

use crate::clock;

pub(crate) use counts::{StatementCounts, StatementWork};

/// The parts of an entry (S2).
const PARTS: usize = 16;

/// The part of the entries that goes when there is no room: one of so many.
const REMOVED_PART: usize = 20;

/// The statements that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackedStatements {
    /// None.
    #[default]
    None,
    /// Those that clients send.
    Top,
}

impl TrackedStatements {
    /// The words for them.
    pub(crate) const WORDS: &'static [&'static str] = &["none", "top"];

    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            TrackedStatements::None => "none",
            TrackedStatements::Top => "top",
        }
    }
}

/// The keys `pg_stat_statements.…` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatementTracking {
    /// The most statements that are counted at a time.
    pub max: u32,
    /// The statements that are counted.
    pub track: TrackedStatements,
}

impl Default for StatementTracking {
    fn default() -> StatementTracking {
        StatementTracking {
            max: 5_000,
            track: TrackedStatements::None,
        }
    }
}

/// The role and the statement of an entry (S1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StatementKey {
    /// The role that runs it.
    pub(crate) role: u32,
    /// Its number.
    pub(crate) number: i64,
}

#[derive(Debug, Default)]
struct Part {
    counts: StatementCounts,
    used: Option<Instant>,
}

/// A statement of a role, and what its calls have taken.
#[derive(Debug)]
pub(crate) struct CountedStatement {
    key: StatementKey,
    text: String,
    made: Instant,
    is_removed: AtomicBool,
    parts: [OnceLock<Box<Padded<Mutex<Part>>>>; PARTS],
}

impl CountedStatement {
    fn new(key: StatementKey, text: String) -> CountedStatement {
        CountedStatement {
            key,
            text,
            made: Instant::now(),
            is_removed: AtomicBool::new(false),
            parts: [const { OnceLock::new() }; PARTS],
        }
    }

    /// True if this is the entry of `key`.
    #[inline]
    pub(crate) fn counts(&self, key: StatementKey) -> bool {
        // Relaxed: S5.
        self.key == key && !self.is_removed.load(Ordering::Relaxed)
    }

    /// Adds to the counts of the session at this place, at this time.
    #[inline]
    pub(crate) fn add(&self, place: usize, now: Instant, add: impl FnOnce(&mut StatementCounts)) {
        let part = self.parts[place % PARTS].get_or_init(Box::default);
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        part.used = Some(now);
        add(&mut part.counts);
    }

    fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Part>> {
        let made = self.parts.iter().filter_map(OnceLock::get);
        made.map(|part| part.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn sum(&self) -> StatementCounts {
        let mut sum = StatementCounts::default();
        self.parts().for_each(|part| sum.merge(&part.counts));
        sum
    }

    fn last_used(&self) -> Instant {
        let used = self.parts().filter_map(|part| part.used).max();
        used.unwrap_or(self.made)
    }
}

/// An entry as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct ShownStatement {
    pub(crate) key: StatementKey,
    pub(crate) text: String,
    pub(crate) counts: StatementCounts,
}

#[derive(Debug)]
struct Entries {
    by_key: HashMap<StatementKey, Arc<CountedStatement>>,
    removals: u64,
    reset_us: i64,
}

/// The entries of all statements.
#[derive(Debug)]
pub(crate) struct StatementStatistics {
    max: usize,
    entries: Mutex<Entries>,
}

impl StatementStatistics {
    /// None yet; there may be `max`.
    pub(crate) fn new(max: u32) -> StatementStatistics {
        StatementStatistics {
            max: max as usize,
            entries: Mutex::new(Entries {
                by_key: HashMap::new(),
                removals: 0,
                reset_us: clock::now_us(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of a statement, which is made if there is none; `text` is asked for its text then.
    pub(crate) fn entry(&self, key: StatementKey, text: impl FnOnce() -> String) -> Arc<CountedStatement> {
        let mut entries = self.lock();
        if let Some(found) = entries.by_key.get(&key) {
            return Arc::clone(found);
        }
        if entries.by_key.len() >= self.max {
            entries.make_room();
        }
        let made = Arc::new(CountedStatement::new(key, text()));
        entries.by_key.insert(key, Arc::clone(&made));
        made
    }

    /// All that have been called, in no order.
    pub(crate) fn shown(&self) -> Vec<ShownStatement> {
        let entries: Vec<_> = self.lock().by_key.values().cloned().collect();
        let shown = entries.into_iter().map(|entry| ShownStatement {
            key: entry.key,
            text: entry.text.clone(),
            counts: entry.sum(),
        });
        shown.filter(|shown| shown.counts.calls > 0).collect()
    }

    /// The number of times that entries had to go for others, and the time of the last reset of all.
    pub(crate) fn removals(&self) -> (u64, i64) {
        let entries = self.lock();
        (entries.removals, entries.reset_us)
    }

    /// Removes the entries of a role, of a statement, or of both; of each without one.
    pub(crate) fn reset(&self, role: Option<u32>, number: Option<i64>) {
        let mut entries = self.lock();
        let goes = |key: &StatementKey| {
            role.is_none_or(|role| key.role == role) && number.is_none_or(|number| key.number == number)
        };
        entries.by_key.retain(|key, entry| {
            let goes = goes(key);
            if goes {
                entry.is_removed.store(true, Ordering::Relaxed);
            }
            !goes
        });
        if role.is_none() && number.is_none() {
            entries.removals = 0;
            entries.reset_us = clock::now_us();
        }
    }
}

impl Entries {
    /// S4.
    #[cold]
    fn make_room(&mut self) {
        let mut by_age: Vec<_> = self
            .by_key
            .values()
            .map(|entry| (entry.last_used(), entry.key))
            .collect();
        let count = by_age.len().div_ceil(REMOVED_PART).max(1);
        by_age.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in by_age.into_iter().take(count) {
            if let Some(entry) = self.by_key.remove(&key) {
                entry.is_removed.store(true, Ordering::Relaxed);
            }
        }
        self.removals += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(number: i64) -> StatementKey {
        StatementKey { role: 10, number }
    }

    fn call(statistics: &StatementStatistics, number: i64, place: usize) {
        let entry = statistics.entry(key(number), || format!("s{number}"));
        let work = StatementWork {
            rows: 2,
            ..StatementWork::default()
        };
        entry.add(place, Instant::now(), |counts| {
            counts.add_call(Duration::from_millis(3), &work);
        });
    }

    #[test]
    fn an_entry_has_the_sum_of_its_parts() {
        let statistics = StatementStatistics::new(100);
        for place in 0..3 * PARTS {
            call(&statistics, 1, place);
        }
        call(&statistics, 2, 0);
        // One that was never called is not shown.
        statistics.entry(key(3), || "s3".to_owned());
        let mut shown = statistics.shown();
        shown.sort_by_key(|shown| shown.key.number);
        let calls: Vec<_> = shown
            .iter()
            .map(|shown| (shown.text.as_str(), shown.counts.calls, shown.counts.work.rows))
            .collect();
        assert_eq!(calls, [("s1", 48, 96), ("s2", 1, 2)]);
    }

    /// Mutation that it should catch (`crates/engine/mutations/statement_statistics.toml`): those used last go.
    #[test]
    fn entries_that_were_used_longest_ago_make_room() {
        let statistics = StatementStatistics::new(40);
        for number in 0..40 {
            call(&statistics, number, number as usize);
        }
        assert_eq!(statistics.removals().0, 0);
        let first = statistics.entry(key(0), String::new);
        let gone = statistics.entry(key(1), String::new);
        call(&statistics, 0, 5);
        call(&statistics, 40, 0);
        let mut numbers: Vec<_> = statistics.shown().iter().map(|shown| shown.key.number).collect();
        numbers.sort_unstable();
        let expected: Vec<i64> = [0].into_iter().chain(3..=40).collect();
        assert_eq!(numbers, expected);
        assert_eq!(statistics.removals().0, 1);
        assert!(first.counts(key(0)) && !gone.counts(key(1)));
    }

    /// Mutation that it should catch: an entry that goes is not marked.
    #[test]
    fn a_session_that_kept_an_entry_learns_that_it_is_gone() {
        let statistics = StatementStatistics::new(100);
        let (one, other) = (
            statistics.entry(key(1), String::new),
            statistics.entry(key(2), String::new),
        );
        statistics.reset(Some(10), Some(1));
        assert!(!one.counts(key(1)) && other.counts(key(2)));
        statistics.reset(Some(11), None);
        assert!(other.counts(key(2)));
        statistics.reset(None, None);
        assert!(!other.counts(key(2)));
        call(&statistics, 2, 0);
        assert_eq!(statistics.shown()[0].counts.calls, 1);
    }

    /// Sessions that call the same statements while entries go and come lose nothing but what went with an entry: without
    /// removals no call is lost.
    #[test]
    fn calls_of_many_threads_are_all_counted() {
        const CALLS: u64 = 2_000;
        let statistics = StatementStatistics::new(100);
        std::thread::scope(|scope| {
            for place in 0..4 {
                let statistics = &statistics;
                scope.spawn(move || {
                    for number in 0..CALLS {
                        call(statistics, (number % 7) as i64, place);
                    }
                });
            }
        });
        let sum: u64 = statistics.shown().iter().map(|shown| shown.counts.calls).sum();
        assert_eq!(sum, 4 * CALLS);
    }

    #[test]
    fn the_words_are_those_of_the_enum() {
        let words = [TrackedStatements::None, TrackedStatements::Top].map(TrackedStatements::word);
        assert_eq!(words, TrackedStatements::WORDS);
    }
}
