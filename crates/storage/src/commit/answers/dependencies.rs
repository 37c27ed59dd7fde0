//! The marks of a session: the commits that it has seen and that are not secured, what its answers owe, and its gate. The
//! rules S1 to S11 are at the top of [`answers`](super).
//!
//! A mark is the position up to which the log has to be secured.
//!
//! | mark | is raised by |
//! | --- | --- |
//! | `rows` | each commit that is seen, and the reservation behind each serial number that is handed out |
//! | `unproven` | each commit that is seen for the row in hand, until it is proven that the tag is the same without it, or goes to `tag` |
//! | `tag` | what no proof has taken out of `unproven` |
//! | `owed`, one for each [`AnswerLevel`] | each answer that is given at the level, by the mark that it depends on |
//!
//! The first three belong to the transaction and end with it. What is owed belongs to the session: what it was given may
//! still be in a buffer.
//!
//! Costs: a bit set of the levels at which something is owed; the gate reads one byte if nothing is.
//!
//! All accesses are Relaxed: one thread at a time works for a session.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clearway_machine::Machine;

use crate::page::Lsn;
use crate::replication::sync_replication::{ReplicationLevel, ReplicationWait, SyncReplication};
use crate::wal::{LogDevice, LogWait, Wal};

/// Number of levels at which something can be owed: all but [`AnswerLevel::Nothing`].
const LEVELS: usize = 4;

/// The requirement before an answer leaves, by the session's `synchronous_commit`; each asks for what those before
/// it do, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum AnswerLevel {
    /// Nothing: the client has agreed to be shown what may be lost.
    Nothing = 0,
    /// The commits that it depends on are durable here.
    Durable = 1,
    /// And the standbys have handed it to their operating systems.
    Written = 2,
    /// And they have it on their disks.
    Flushed = 3,
    /// And their readers see it.
    Applied = 4,
}

impl AnswerLevel {
    /// For a session that asks no standby: whether it waits for this server's disk.
    pub const fn local(waits: bool) -> Self {
        if waits { Self::Durable } else { Self::Nothing }
    }

    /// For a session that waits for this server's disk, and for standbys at `level`.
    pub const fn replicated(level: ReplicationLevel) -> Self {
        match level {
            ReplicationLevel::Written => Self::Written,
            ReplicationLevel::Flushed => Self::Flushed,
            ReplicationLevel::Applied => Self::Applied,
        }
    }

    fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Nothing,
            1 => Self::Durable,
            2 => Self::Written,
            3 => Self::Flushed,
            _ => Self::Applied,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The end of a wait at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// All that was owed is secured, and nothing is owed any more.
    Passed,
    /// Asked to stop while it waited for this server's disk.
    StoppedBeforeDurable,
    /// Asked to stop while it waited for standbys.
    StoppedBeforeReplicated,
}

/// A row that a statement has begun to look at. Another row, or the statement's end, takes it out of hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowInHand(NonZeroU32);

const _: () = assert!(size_of::<Option<RowInHand>>() == 4);

/// The marks of one session.
#[derive(Debug, Default)]
pub struct SeenCommits {
    rows: AtomicU64,
    tag: AtomicU64,
    unproven: AtomicU64,
    /// S4, by level; that of `Nothing` has no place.
    owed: [AtomicU64; LEVELS],
    /// The levels at which something is owed, a bit for each.
    owed_at: AtomicU8,
    /// True if the answer in the making may hold rows, an error, or anything else that depends on what was seen.
    answers_with_rows: AtomicBool,
    /// The number of the row in hand, less one; from 2^32 rows on numbers come again.
    row: AtomicU32,
    /// The level of the answer in the making: an [`AnswerLevel`].
    level: AtomicU8,
    /// S5.
    excused: AtomicU64,
}

fn raise(mark: &AtomicU64, position: u64) {
    if mark.load(Relaxed) < position {
        mark.store(position, Relaxed);
    }
}

impl SeenCommits {
    /// A commit was seen that is secured when the log is up to `position`.
    pub(super) fn note(&self, position: Lsn) {
        raise(&self.rows, position.0);
        raise(&self.unproven, position.0);
    }

    /// The transaction was handed a value that is secured when the log is up to `position`. It may be shown by any answer
    /// with rows, and by an error. A tag shows none.
    pub(super) fn note_value(&self, position: Lsn) {
        raise(&self.rows, position.0);
    }

    /// S3: the statement that begins is answered at `level`.
    #[inline]
    pub fn set_level(&self, level: AnswerLevel) {
        self.level.store(level as u8, Relaxed);
    }

    /// The answer in the making is one at `level`, if that is more than it was to be: an error of a statement that has not
    /// come as far as its beginning.
    pub fn raise_level(&self, level: AnswerLevel) {
        if self.level() < level {
            self.set_level(level);
        }
    }

    /// The level of the answer in the making.
    #[inline]
    pub fn level(&self) -> AnswerLevel {
        AnswerLevel::from_number(self.level.load(Relaxed))
    }

    /// The answer in the making depends on `position` at `level`, whatever its rows are made of.
    pub fn owe_at(&self, level: AnswerLevel, position: Lsn) {
        if level != AnswerLevel::Nothing && position.0 != 0 {
            raise(&self.owed[level as usize - 1], position.0);
            self.owed_at
                .store(self.owed_at.load(Relaxed) | level.bit(), Relaxed);
        }
    }

    /// Up to where what is owed at `level` reaches, that of the answer in the making included; zero for nothing.
    pub fn owed_at(&self, level: AnswerLevel) -> Lsn {
        self.owe_answer();
        match level {
            AnswerLevel::Nothing => Lsn(0),
            level => Lsn(self.owed[level as usize - 1].load(Relaxed)),
        }
    }

    /// S7: whether something is owed that a commit at `level` would not wait for.
    #[inline]
    pub fn owes_more_than(&self, level: AnswerLevel) -> bool {
        self.owe_answer();
        self.owed_at.load(Relaxed) >= level.bit() << 1
    }

    /// S3, for what the answer in the making is made of by now: part of it may leave before it is complete.
    #[inline]
    fn owe_answer(&self) {
        let position = self.answer_position();
        if position.0 != 0 {
            self.owe_at(self.level(), position);
        }
    }

    /// As [`pass_gate`](Self::pass_gate), for a session that waits for this server's disk alone and is never asked to stop.
    #[inline]
    pub fn wait_before_answer<M: Machine, D: LogDevice>(&self, log: &Wal<M, D>) {
        if !self.owes_nothing() {
            log.flush(self.durable_position());
        }
    }

    /// True if the gate is open: what the answers so far depend on was durable and replicated when it was seen.
    #[inline]
    pub fn owes_nothing(&self) -> bool {
        self.owe_answer();
        self.owed_at.load(Relaxed) == 0
    }

    /// S1: returns when everything that is owed at any level is durable, and replicated as its level says; or when `stop`
    /// says so, and then the gate is not passed. `time_left`: after this time `stop` is asked again.
    #[inline]
    pub fn pass_gate<M: Machine, D: LogDevice>(
        &self,
        log: &Wal<M, D>,
        replication: &SyncReplication<M>,
        stop: impl Fn() -> bool,
        time_left: impl Fn() -> Option<Duration>,
    ) -> Gate {
        if self.owes_nothing() {
            return Gate::Passed;
        }
        if log.wait_flushed(self.durable_position(), &stop, &time_left) == LogWait::Stopped {
            return Gate::StoppedBeforeDurable;
        }
        self.wait_replicated(replication, stop, time_left)
    }

    /// Up to where the log has to be durable.
    fn durable_position(&self) -> Lsn {
        let owed = self.owed.iter().map(|owed| owed.load(Relaxed));
        Lsn(owed.max().unwrap_or(0))
    }

    /// The part of the gate after that for this server's disk.
    fn wait_replicated<M: Machine>(
        &self,
        replication: &SyncReplication<M>,
        stop: impl Fn() -> bool,
        time_left: impl Fn() -> Option<Duration>,
    ) -> Gate {
        for level in ReplicationLevel::ALL {
            let owed = &self.owed[AnswerLevel::replicated(level) as usize - 1];
            let position = owed.load(Relaxed);
            if position > self.excused.load(Relaxed)
                && replication.wait_within(Lsn(position), level, &stop, &time_left)
                    == ReplicationWait::Stopped
            {
                return Gate::StoppedBeforeReplicated;
            }
        }
        self.owe_nothing();
        Gate::Passed
    }

    fn owe_nothing(&self) {
        for owed in &self.owed {
            owed.store(0, Relaxed);
        }
        self.owed_at.store(0, Relaxed);
    }

    /// S6: the transaction, if there is one, is going to be rolled back, and its client hears of that alone.
    pub fn answer_with_nothing(&self) {
        for mark in [&self.rows, &self.tag, &self.unproven] {
            mark.store(0, Relaxed);
        }
    }

    /// S6: none of the answers that are owed for leaves.
    pub fn give_up_answers(&self) {
        self.answer_with_nothing();
        self.owe_nothing();
    }

    /// S5: the client is going to be warned that what lies before `position` may not be replicated.
    pub fn excuse(&self, position: Lsn) {
        raise(&self.excused, position.0);
    }

    /// A statement begins. `with_rows`: its answer may hold more than the number of the rows it has changed.
    pub fn begin_statement(&self, with_rows: bool) {
        self.answers_with_rows.store(with_rows, Relaxed);
        if with_rows {
            // Which rows it counts, and what it does beside, may follow from any of them.
            raise(&self.tag, self.rows.load(Relaxed));
        }
    }

    /// The answer in the making depends on all that was seen: an error, a setting's new value, a notice.
    pub fn answer_with_rows(&self) {
        self.answers_with_rows.store(true, Relaxed);
    }

    /// All that was seen so far, this transaction's own changes included, is going to decide what later tags say.
    pub fn note_in_tags(&self) {
        raise(&self.tag, self.rows.load(Relaxed));
    }

    /// The statement looks at another row (S11): what was seen for the one before stays in the mark for tags.
    #[inline]
    pub fn begin_row(&self) -> RowInHand {
        self.end_row();
        self.row_in_hand()
    }

    /// The statement looks at no row any more that could be proven.
    #[inline]
    pub fn end_row(&self) {
        raise(&self.tag, self.unproven.load(Relaxed));
        self.unproven.store(0, Relaxed);
        self.row.store(self.row.load(Relaxed).wrapping_add(1), Relaxed);
    }

    #[inline]
    fn row_in_hand(&self) -> RowInHand {
        RowInHand(NonZeroU32::MIN.saturating_add(self.row.load(Relaxed)))
    }

    /// Up to where the log has to be secured for the row in hand, if nothing is proven about it.
    #[inline]
    pub fn unproven(&self) -> Lsn {
        Lsn(self.unproven.load(Relaxed))
    }

    /// `row`, if it is still in hand, counts as one row whichever of the commits seen for it are lost.
    pub fn prove_row(&self, row: RowInHand) {
        if row == self.row_in_hand() {
            self.unproven.store(0, Relaxed);
        }
    }

    /// S2: up to where the answer in the making depends on the log.
    #[inline]
    pub fn answer_position(&self) -> Lsn {
        Lsn(if self.answers_with_rows.load(Relaxed) {
            self.rows.load(Relaxed)
        } else {
            self.tag.load(Relaxed).max(self.unproven.load(Relaxed))
        })
    }

    /// The statement's answer is complete.
    #[inline]
    pub fn end_statement(&self) {
        self.owe_answer();
        self.end_row();
    }

    /// The transaction has ended (S3).
    pub fn end_transaction(&self) {
        self.end_statement();
        self.answer_with_nothing();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::answers::Unsecured;

    /// One of a session that waits for the disk.
    fn durable() -> SeenCommits {
        let seen = SeenCommits::default();
        seen.set_level(AnswerLevel::Durable);
        seen
    }

    fn owed(seen: &SeenCommits) -> Lsn {
        seen.owed_at(AnswerLevel::Durable)
    }

    #[test]
    fn a_tag_depends_on_what_is_not_proven() {
        let seen = durable();
        seen.begin_statement(false);
        seen.begin_row();
        seen.note(Lsn(100));
        let row = seen.begin_row();
        seen.note(Lsn(200));
        assert_eq!(seen.answer_position(), Lsn(200), "nothing is proven yet");
        assert_eq!(seen.unproven(), Lsn(200), "for the row in hand");
        seen.prove_row(row);
        assert_eq!(seen.answer_position(), Lsn(100), "the row that was left out");
        seen.end_statement();
        assert_eq!(owed(&seen), Lsn(100));
    }

    /// S11: a statement that begins a row and proves another one has nothing taken out.
    #[test]
    fn a_row_that_is_not_in_hand_is_not_proven() {
        let seen = durable();
        seen.begin_statement(false);
        let first = seen.begin_row();
        seen.note(Lsn(100));
        seen.end_row();
        seen.note(Lsn(200));
        seen.prove_row(first);
        assert_eq!(seen.answer_position(), Lsn(200));
    }

    #[test]
    fn rows_depend_on_all_that_the_transaction_has_seen() {
        let seen = durable();
        seen.begin_statement(false);
        let row = seen.begin_row();
        seen.note(Lsn(200));
        seen.prove_row(row);
        seen.end_statement();
        assert_eq!(seen.answer_position(), Lsn(0));
        seen.begin_statement(true);
        assert_eq!(seen.answer_position(), Lsn(200), "before the first row");
        seen.end_statement();
        seen.end_transaction();
        assert_eq!(owed(&seen), Lsn(200), "the answer may still be in a buffer");
    }

    /// A changed key: the tag of a later statement says whether another row has it.
    #[test]
    fn later_tags_depend_on_what_a_key_was_made_of() {
        let seen = durable();
        seen.begin_statement(false);
        let row = seen.begin_row();
        seen.note(Lsn(200));
        seen.note_in_tags();
        seen.prove_row(row);
        seen.end_statement();
        seen.begin_statement(false);
        assert_eq!(seen.answer_position(), Lsn(200));
    }

    #[test]
    fn a_rollback_forgets_what_was_not_told() {
        let seen = durable();
        seen.begin_statement(false);
        let row = seen.begin_row();
        seen.note(Lsn(200));
        seen.prove_row(row);
        seen.end_statement();
        seen.begin_statement(false);
        seen.end_transaction();
        seen.begin_statement(true);
        assert_eq!(owed(&seen), Lsn(0));
    }

    #[test]
    fn a_serial_number_is_shown_by_rows_and_not_by_tags() {
        let seen = durable();
        seen.begin_statement(false);
        seen.begin_row();
        let number = Unsecured::new(7, Lsn(200));
        assert_eq!(number.noted_in(&seen, Lsn(100)), 7);
        assert_eq!(Unsecured::new(8, Lsn(90)).noted_in(&seen, Lsn(100)), 8);
        seen.end_row();
        seen.end_statement();
        assert_eq!(owed(&seen), Lsn(0), "a tag");
        seen.begin_statement(true);
        assert_eq!(owed(&seen), Lsn(200), "rows");
    }

    #[test]
    fn an_error_depends_on_rows_that_no_tag_did() {
        let seen = durable();
        seen.begin_statement(false);
        let row = seen.begin_row();
        seen.note(Lsn(200));
        seen.prove_row(row);
        seen.answer_with_rows();
        seen.end_transaction();
        assert_eq!(owed(&seen), Lsn(200));
    }

    /// The example at the top, and what ends what is owed.
    #[test]
    fn a_lesser_level_does_not_take_back_what_is_owed() {
        let seen = SeenCommits::default();
        seen.set_level(AnswerLevel::Flushed);
        seen.begin_statement(true);
        seen.note(Lsn(900));
        seen.end_statement();
        seen.end_transaction();
        seen.set_level(AnswerLevel::Nothing);
        seen.begin_statement(true);
        seen.note(Lsn(950));
        seen.end_transaction();
        assert_eq!(
            seen.owed_at(AnswerLevel::Flushed),
            Lsn(900),
            "and not 950, which was read at off"
        );
        assert!(seen.owes_more_than(AnswerLevel::Durable));
        assert!(!seen.owes_more_than(AnswerLevel::Flushed));
        let replication = SyncReplication::<clearway_machine::Native>::new();
        let passed = seen.wait_replicated(&replication, || false, || None);
        assert_eq!(passed, Gate::Passed, "no standby is named");
        assert_eq!(seen.owed_at(AnswerLevel::Flushed), Lsn(0));
    }

    #[test]
    fn a_gate_that_is_stopped_is_not_passed() {
        let seen = SeenCommits::default();
        seen.set_level(AnswerLevel::Written);
        seen.begin_statement(true);
        seen.note(Lsn(900));
        let replication = SyncReplication::<clearway_machine::Native>::new();
        replication.set_names(crate::replication::sync_replication::StandbyNames::parse("berlin").unwrap());
        assert_eq!(
            seen.owed_at(AnswerLevel::Written),
            Lsn(900),
            "before the statement has ended"
        );
        for _ in 0..2 {
            let stopped = seen.wait_replicated(&replication, || true, || None);
            assert_eq!(stopped, Gate::StoppedBeforeReplicated);
        }
        seen.give_up_answers();
        seen.end_transaction();
        assert_eq!(seen.owed_at(AnswerLevel::Written), Lsn(0));
    }
}
