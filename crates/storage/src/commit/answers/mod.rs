//! Answers to clients, and the commits that they depend on: what is noted, and the wait before an answer leaves.
//!
//! Protects: rules L1 and L6 of [`lock_release`](super::lock_release). A commit may be seen before it is *secured*, that is
//! durable and, while standbys are named, replicated. A session keeps the positions of the commits that it has seen, and its
//! answers leave when the log is secured up to there.
//!
//! | file | holds |
//! | --- | --- |
//! | `reader` | the boundary: how other transactions stand, for a reader; each answer notes what it depends on |
//! | `snapshot` | a session's snapshot, which knows if it may see a commit that is not secured |
//! | `unsecured` | a value that no commit tells of, until it is noted |
//! | `dependencies` | the marks of a session, what it owes at each level, and the gate |
//!
//! # An example
//! Alice has changed a row at `off`, and her commit record ends at 900. Bob, at `on`, sends one query string:
//! `select n from t; set synchronous_commit = off; select 1`.
//!
//! | statement | level | what is owed after it |
//! | --- | --- | --- |
//! | `select n from t` | `on` | `on`: 900, since Alice's row is in the answer |
//! | `set synchronous_commit = off` | `on`: it begins there | the same |
//! | `select 1` | `off` | the same: Bob's client has asked for less from here on, and not for the row before |
//!
//! All three answers are in one buffer. The gate before it waits until the log is durable up to 900. A session that kept
//! one position, and asked its setting when it waits, would send the row at once, and a crash would take it back.
//!
//! # Rules
//! The wait:
//! - S1: before a byte of an answer leaves, the session has *passed its gate* ([`SeenCommits::pass_gate`]): for each level,
//!   everything before what is owed at it is durable, and replicated as the level says, if standbys are named.
//! - S2: an answer with rows, or an error, depends on `rows`; the tag of a statement that changes rows and returns none
//!   depends on `tag` and `unproven`.
//! - S3: an answer is owed at the level that was in force when its statement began. The marks of a transaction go into
//!   what is owed before they are forgotten, as far as its last answer depends on them.
//! - S4: what is owed at a level is never lowered, nor moved to a lesser level, whatever becomes of the setting (SET, SET
//!   LOCAL and its end, RESET, DISCARD, `set_config`). It ends in two ways: the gate is passed, or the answers are given
//!   up (S6).
//! - S5: a session whose *commit* was asked not to wait any longer, and that has warned its client, has an *excused*
//!   position: what lies before it is shown without being replicated, in this answer and in later ones. One cancel is
//!   enough.
//! - S6: a gate that is asked to stop is not passed. The answers are dropped, and so is what is owed for them. The
//!   error in their place says only that the session was asked to stop, so it depends on nothing.
//! - S7: before a transaction that has an id commits at a lesser level than something that is owed, the gate is passed. So
//!   no error of S6 replaces an answer of the transaction that has committed meanwhile.
//!
//! The notes:
//! - S8: the state of another transaction comes to heap, index and executor from [`CommitStates`] alone, which asks for the
//!   [`Reader`] and notes each commit that it tells of. A `Reader` has the notes of the session that it answers for, or was
//!   made by [`Reader::of_no_answer`]. So an access method or an operator has nothing to note, and nothing to forget. What
//!   asks for no `Reader` tells nothing that an answer could show, and says so by its name. Elsewhere the functions of
//!   `clearway-txn` that tell of a commit are refused by clippy (`clippy.toml` of storage and engine).
//! - S9: a snapshot that cannot see a commit that is not secured spares its rows the look-up. That is a property of the
//!   snapshot, and goes with it ([`SessionSnapshot`]): whatever is exchanged for it has its own.
//! - S10: a value that depends on the log and on no commit, as a serial number does on its reservation, leaves its maker as
//!   an [`Unsecured`], which yields it to a session's notes only.
//! - S11: what is proven about a row is proven of the row in hand. [`SeenCommits::begin_row`] makes the [`RowInHand`] that
//!   the proof asks for, and the next row ends it. What no row was begun for stays in the mark for tags.
//!
//! # What a session sees of others
//! | seen | noted |
//! | --- | --- |
//! | a version counts as inserted, or as deleted, by a commit, for a snapshot | by [`CommitStates::at_snapshot`] and [`CommitStates::committed_at_snapshot`]; both when the row is shown and when it is not |
//! | the same as of now, for a writer, a row lock, an error 40001, a unique check; and again after a wait for another's end | by [`CommitStates::now`] and [`CommitStates::committed_now`] |
//! | a version that is not there any more | durable, by L5 |
//! | a rollback | nothing: after a crash it is rolled back as well |
//! | another's lock, or its absence | nothing: it tells that a transaction runs or has ended, and not how ([`CommitStates::of_locker`]) |
//! | definitions, files | durable, by L3 ([`CommitStates::sees_definition`]) |
//! | views of the server's own state (activity, replication, settings, counts of rows), EXPLAIN | nothing: what this server does and reckons with is no row, and no crash brings it back |
//! | numbers of a serial column | the reservation of the number, when it is handed out: it is outside of transactions, and after a crash that takes the reservation the number is handed out again. Under `after-flush` too |
//!
//! A hint bit hides nothing: the xid stays in the version's header.
//!
//! # What an answer depends on
//! Rows, errors and settings depend on everything that the transaction has seen, since a row that it changed itself
//! derives from the version before. The tag of an UPDATE, a DELETE or an INSERT tells a number and that there was no
//! error. It depends on a commit only if the statement might have answered otherwise without it, so
//! [`SeenCommits`] keeps a second mark, for tags. A commit that is seen raises it, except in one case:
//!
//! - The statement changed a version that the index led to, along a HOT chain: versions on one page with the same keys.
//! - After a crash the newest durable version of the chain may be the row, or any later one, and no other: commits are
//!   lost from the end of the log (L2).
//! - The oldest of these versions was inserted by a durable commit, so in each case there is one row.
//! - The executor has evaluated WHERE and SET on each of them, as it has on the one that it changed. Each satisfies
//!   WHERE, and SET succeeds.
//!
//! So the row counts as one in each case, whichever commits are lost, and the tag is the same. Without this step each
//! update of a hot row would wait for its predecessor's sync, with the row locked, as under `after-flush`. All else
//! (a row that was skipped or not found, a scan without an index, a chain that goes on to another page, a version that
//! the transaction made itself) raises the mark. So does a change of indexed columns, since a later unique check
//! compares the new key. A version that the transaction made itself of one that is not durable is met together with that
//! one: on its chain, or, if the row has moved, on the chain that the same key leads to as well.
//!
//! # Why a mark for each level
//! Of two answers in a buffer one may depend on 900 at `remote_write`, the other on 700 at `remote_apply`. The greatest
//! level for the greatest position would wait for 900 to be applied, perhaps for ever, where an archiver is the only
//! standby. Either answer alone would not.

mod dependencies;
mod reader;
mod snapshot;
mod unsecured;

pub use self::dependencies::{AnswerLevel, Gate, RowInHand, SeenCommits};
pub use self::reader::{CommitStates, Reader};
pub use self::snapshot::SessionSnapshot;
pub use self::unsecured::Unsecured;
