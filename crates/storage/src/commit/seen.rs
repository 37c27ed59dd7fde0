//! What a session has seen of commits that are not durable, and what its next answer depends on.
//!
//! Protects: rule L1 of [`lock_release`](super::lock_release), which also says why two marks, for rows and for tags,
//! and why they suffice. A mark is the position up to which the log has to be durable.
//!
//! | mark | is raised by |
//! | --- | --- |
//! | `rows` | each commit that is seen |
//! | `unproven` | the same, until it is proven that the tag is the same without it, or goes to `tag` |
//! | `tag` | what no proof has taken out of `unproven` |
//! | `answered` | each answer, by the mark that it depends on |
//!
//! The first three belong to the transaction and end with it. `answered` belongs to the session: what it was given may
//! still be in a buffer.
//!
//! # Rules
//! - S1: before a byte of an answer leaves, everything before [`answer_position`](SeenCommits::answer_position) is
//!   durable, and replicated at the level of the session, if it has one and standbys are named.
//! - S2: an answer with rows, or an error, depends on `rows`; the tag of a statement that changes rows and returns none
//!   depends on `tag` and `unproven`.
//! - S3: the marks of a transaction go into `answered` before they are forgotten, as far as its last answer depends on
//!   them.
//! - S4: a session that was told not to wait any longer, and has warned its client, has an *excused* position: what lies
//!   before it is shown without being replicated, in this answer and in later ones. One cancel is enough.
//!
//! All accesses are Relaxed: one thread at a time works for a session.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use clearway_machine::Machine;

use crate::page::Lsn;
use crate::sync_replication::{ReplicationLevel, ReplicationWait, SyncReplication};
use crate::wal::{LogDevice, Wal};

/// The marks of one session.
#[derive(Debug, Default)]
pub struct SeenCommits {
    rows: AtomicU64,
    tag: AtomicU64,
    unproven: AtomicU64,
    answered: AtomicU64,
    /// Whether the answer in the making may hold rows, an error, or anything else that depends on what was seen.
    answers_with_rows: AtomicBool,
    /// Whether the snapshot in use may see a commit that is not durable.
    may_see: AtomicBool,
    /// Whether the session waits for the disk at all.
    waits: AtomicBool,
    /// The level at which it waits for standbys, and one; 0: it does not.
    level: AtomicU8,
    /// S4.
    excused: AtomicU64,
}

fn raise(mark: &AtomicU64, position: u64) {
    if mark.load(Relaxed) < position {
        mark.store(position, Relaxed);
    }
}

impl SeenCommits {
    /// A snapshot is in use that may, or cannot, see a commit that is not durable.
    #[inline]
    pub fn use_snapshot(&self, may_see: bool) {
        self.may_see.store(may_see, Relaxed);
    }

    /// Whether the commits that the snapshot sees have to be looked up.
    #[inline]
    pub(crate) fn may_see(&self) -> bool {
        self.may_see.load(Relaxed)
    }

    /// A commit was seen that is durable when the log is up to `position`.
    pub fn note(&self, position: Lsn) {
        raise(&self.rows, position.0);
        raise(&self.unproven, position.0);
    }

    /// Whether the session waits before it answers: its setting `synchronous_commit`.
    pub fn set_waits(&self, waits: bool) {
        self.waits.store(waits, Relaxed);
    }

    /// S1: returns when everything that the answers so far depend on is durable, if the session waits for that.
    #[inline]
    pub fn wait_before_answer<M: Machine, D: LogDevice>(&self, log: &Wal<M, D>) {
        if self.waits.load(Relaxed) {
            log.flush(self.answer_position());
        }
    }

    /// At which level the session waits for standbys before it answers, if it does: its setting `synchronous_commit`.
    pub fn set_level(&self, level: Option<ReplicationLevel>) {
        self.level
            .store(level.map_or(0, |level| level as u8 + 1), Relaxed);
    }

    /// S1, the second half: returns when everything that the answers so far depend on is replicated, if the session waits
    /// for that, or when `stop` says so.
    #[inline]
    pub fn wait_replicated<M: Machine>(
        &self,
        replication: &SyncReplication<M>,
        stop: impl Fn() -> bool,
    ) -> ReplicationWait {
        let level = match self.level.load(Relaxed) {
            0 => return ReplicationWait::Replicated,
            1 => ReplicationLevel::Written,
            2 => ReplicationLevel::Flushed,
            _ => ReplicationLevel::Applied,
        };
        let position = replication.target(self.answer_position(), level);
        if position.0 <= self.excused.load(Relaxed) {
            return ReplicationWait::Replicated;
        }
        let wait = replication.wait(position, level, stop);
        if wait == ReplicationWait::Stopped {
            self.excuse(position);
        }
        wait
    }

    /// S4: the client is going to be warned that what lies before `position` may not be replicated.
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

    /// The next row is looked at: what was seen for the one before stays.
    #[inline]
    pub fn next_row(&self) {
        raise(&self.tag, self.unproven.load(Relaxed));
        self.unproven.store(0, Relaxed);
    }

    /// Up to where the log has to be durable for the row in hand, if nothing is proven about it.
    #[inline]
    pub fn unproven(&self) -> Lsn {
        Lsn(self.unproven.load(Relaxed))
    }

    /// The row in hand counts as one row whichever of the commits seen for it are lost.
    pub fn prove_row(&self) {
        self.unproven.store(0, Relaxed);
    }

    /// S1: up to where the log has to be durable before anything of the answers leaves that were given so far.
    #[inline]
    pub fn answer_position(&self) -> Lsn {
        let marks = if self.answers_with_rows.load(Relaxed) {
            self.rows.load(Relaxed)
        } else {
            self.tag.load(Relaxed).max(self.unproven.load(Relaxed))
        };
        Lsn(marks.max(self.answered.load(Relaxed)))
    }

    /// The statement's answer is complete.
    #[inline]
    pub fn end_statement(&self) {
        self.answered.store(self.answer_position().0, Relaxed);
        self.next_row();
    }

    /// The transaction has ended (S3).
    pub fn end_transaction(&self) {
        self.end_statement();
        for mark in [&self.rows, &self.tag, &self.unproven] {
            mark.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_depends_on_what_is_not_proven() {
        let seen = SeenCommits::default();
        seen.begin_statement(false);
        seen.next_row();
        seen.note(Lsn(100));
        seen.next_row();
        seen.note(Lsn(200));
        assert_eq!(seen.answer_position(), Lsn(200), "nothing is proven yet");
        assert_eq!(seen.unproven(), Lsn(200), "for the row in hand");
        seen.prove_row();
        assert_eq!(seen.answer_position(), Lsn(100), "the row that was left out");
        seen.end_statement();
        assert_eq!(seen.answer_position(), Lsn(100));
    }

    #[test]
    fn rows_depend_on_all_that_the_transaction_has_seen() {
        let seen = SeenCommits::default();
        seen.begin_statement(false);
        seen.note(Lsn(200));
        seen.prove_row();
        seen.end_statement();
        assert_eq!(seen.answer_position(), Lsn(0));
        seen.begin_statement(true);
        assert_eq!(seen.answer_position(), Lsn(200), "before the first row");
        seen.end_statement();
        seen.end_transaction();
        assert_eq!(
            seen.answer_position(),
            Lsn(200),
            "the answer may still be in a buffer"
        );
    }

    /// A changed key: the tag of a later statement says whether another row has it.
    #[test]
    fn later_tags_depend_on_what_a_key_was_made_of() {
        let seen = SeenCommits::default();
        seen.begin_statement(false);
        seen.note(Lsn(200));
        seen.note_in_tags();
        seen.prove_row();
        seen.end_statement();
        seen.begin_statement(false);
        assert_eq!(seen.answer_position(), Lsn(200));
    }

    #[test]
    fn a_rollback_forgets_what_was_not_told() {
        let seen = SeenCommits::default();
        seen.begin_statement(false);
        seen.note(Lsn(200));
        seen.prove_row();
        seen.end_statement();
        seen.begin_statement(false);
        seen.end_transaction();
        seen.begin_statement(true);
        assert_eq!(seen.answer_position(), Lsn(0));
    }

    #[test]
    fn an_error_depends_on_rows_that_no_tag_did() {
        let seen = SeenCommits::default();
        seen.begin_statement(false);
        seen.note(Lsn(200));
        seen.prove_row();
        seen.answer_with_rows();
        seen.end_transaction();
        assert_eq!(seen.answer_position(), Lsn(200));
    }
}
