//! `lock_release`: when a commit becomes visible and gives its row locks back, compared with when it is durable.
//!
//! Protects: the answers to clients. Rows, locks and snapshots are other mechanisms' business.
//!
//! # An example
//! Alice, Bob and Carol each update the same row. A sync of the log takes 200 µs.
//!
//! | time, µs | `after-flush` | `early` |
//! | --- | --- | --- |
//! | 0 | Alice's commit record is in the log; she waits for the disk and keeps the row | she gives the row up, and then waits |
//! | 5 | | Bob updates the row, sees `UPDATE 1`, logs his commit, gives the row up, waits |
//! | 10 | | so does Carol |
//! | 200 | Alice is acknowledged; Bob updates the row | Alice is acknowledged; the next sync begins |
//! | 400 | Bob is acknowledged; Carol updates the row | Bob and Carol are acknowledged |
//! | 600 | Carol is acknowledged | |
//!
//! # Contract
//! - L1: *no byte that depends on a commit that is not durable leaves for a client* that waits for the disk itself
//!   (`synchronous_commit = on`). What counts is the setting when the statement began that the byte answers. Under `after-flush` such commits are those of sessions that do not wait, and the rule
//!   does not hold for them; under `early` it holds for all.
//! - L2: the log is one sequence. A transaction that has seen another's commit has its own record behind that one's, so
//!   a crash that takes the first takes the second.
//! - L3: a commit that makes definitions or removes files is seen only when it is durable
//!   ([`CommitWait::BeforeSeen`]): definitions and files bear no xid that a reader could look up.
//! - L4: under `early` a commit's position is in [`RecentCommits`] and in the newest position before its transaction
//!   leaves the array of running ones, so a reader that counts it as committed finds it there.
//! - L5: a row version whose deleter is not durable is not removed (`removable` of the heap): a reader must meet it, to
//!   learn that the row's absence depends on that commit.
//!
//! # The steps of `early`
//! The numbers are those of the order of a commit, at the top of `commit`: 1, 2, 3; note the position, as a commit that
//! does not wait for the disk does; enter it under the xid in [`RecentCommits`]; 5, 6, 7, 8, 9; and 4 last, before the
//! client gets its answer.
//!
//! # Why no acknowledged commit is lost
//! A commit is acknowledged after step 4, as ever. A crash between 8 and 4 takes a commit that no client has seen
//! acknowledged. Another transaction may have built on it. By L2 its record is behind, recovery reads the log to the
//! end of the last whole record and no further, so it is taken too, and it was not acknowledged either: its own step 4
//! covers all records before its own.
//!
//! # Why no shown row is lost
//! A session notes the commits that it has seen and that are not secured, and before it answers it waits for them: the rules
//! of [`answers`](super::answers), which is where all of this is done.
//!
//! | variant | the locks of a commit are free | wins |
//! | --- | --- | --- |
//! | `after-flush` | when it is durable | nowhere; it is what databases ship |
//! | `early` | when its record is in the log | where transactions wait for rows whose holders wait for the disk |
//!
//! # Replication
//! With synchronous standbys (`sync_replication`) a commit can also be lost with this server, if no standby has it. Then
//! *secured* stands for durable and replicated, and L1 is
//!
//! - L6: *no byte that depends on a commit that is not secured leaves for a client* whose session asks standbys for its own
//!   commits (`synchronous_commit` is `remote_write`, `on` or `remote_apply`). It waits for the position that its answer
//!   depends on, at the level of its own setting: what it is shown is to be as safe as what it commits.
//!
//! - L7: L6 holds under both variants. Under `after-flush` a commit waits for standbys before it is seen, but that of a
//!   session at `local` or `off` does not wait, and a wait may be ended by a cancel request. So while standbys are named,
//!   each commit enters the recent commits in step 7, before its wait if it has one, and readers look it up as under
//!   `early`. One at `off` is entered by the position noted in step 4. While no standby is named nothing is entered, and
//!   nothing looked up.
//!
//! L6 covers the commits of all sessions, also of those that ask for less: which setting a commit had cannot be seen from
//! its row. Sessions at `local` and `off` do not wait for standbys. So while too few standbys stream, sessions that only read
//! wait as well, if what they read was changed meanwhile; `local` is the way out.
//!
//! The proofs above need no other words. Commits are lost from the end of the log (L2), whether the log ends where this
//! server's disk has it or where a standby has it. So the recent commits, the mark for tags, and L5 go by the secured
//! position (`Commits::secured`): what is replicated on disks, and once a session asks for `remote_apply`, also what is
//! applied. A session of that level is shown nothing that a reader of the standby could look for in vain.
//!
//! | commit | waits for standbys | because |
//! | --- | --- | --- |
//! | `early` | after its flush, when it has been seen and its locks are free | its readers look it up and wait for themselves |
//! | `after-flush` | in step 7, before it is seen | that is the variant's order; its locks are held meanwhile |
//! | L3 | in step 7, in both | definitions bear no xid to look up; its locks are held meanwhile |
//!
//! Commits are seen in the order of the log (O1 of `commit`), so a commit that waits for standbys before it is seen keeps all
//! behind it waiting, also those at `local` and `off`. Under `after-flush` that is each commit that asks for standbys, so
//! while too few stream, all commits wait behind the first one until it is cancelled or no standby is named any more;
//! under `early` a definition does that.
//!
//! A wait in step 7 comes after step 6, so no checkpoint waits for a standby. A definition made at `local` or `off` is
//! seen when it is durable, and not covered by L6: a session that has asked for less while standbys are away is not to
//! hang in a lock that others need. Its rows are covered, since it is entered among the recent commits.
//!
//! The replicated position is not known after a restart: all that recovery has found counts as secured.
//!
//! # What `early` does not do
//! - It asks nothing of sessions that do not wait for the disk: their clients have agreed to be shown what may be lost.
//! - It does not shorten the wait of a session that reads a row of a moment ago: that reader waits for the rest of the
//!   sync under way, and with `after-flush` it would have been shown the version before.
//!
//! Origin: early lock release goes back to DeWitt et al., "Implementation Techniques for Main Memory Database Systems"
//! (1984). The waits of readers and the proof for tags are ours.

mod after_flush;
mod early;

use clearway_machine::switch;

#[cfg(doc)]
use super::RecentCommits;

switch! {
    /// The time at which a commit is seen by others and its locks are free.
    pub enum LockReleaseVariant = "lock_release", best Early, planned [] {
        /// Once it is durable, and all before it in the log are: behind a commit that waits for the disk, one that does
        /// not waits too.
        AfterFlush = "after-flush",
        /// Once its record is in the log, and all before it are seen; no client gets what depends on it before it is
        /// durable.
        Early = "early",
    }
    why {
        Early: "On two CPUs it makes 1.7 and 5.3 times the transactions of after-flush in tpcb-like at scale 10 and 1 \
            with 16 clients, 2.1 times at scale 10 with 64, and 0.98 to 1.02 times with one client, for 1.3 % more \
            instructions there."
            in "docs/mechanisms/commit.md#when-the-locks-are-free-lock_release";
    }
}

/// The part of a commit that waits until it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitWait {
    /// Nothing: a crash may take it back for as long as the log writer has not come by.
    Nothing,
    /// Its acknowledgement; under `after-flush` its being seen, too.
    BeforeAcknowledged,
    /// Its being seen (L3).
    BeforeSeen,
}

impl CommitWait {
    /// For a session's setting `synchronous_commit`.
    pub fn synchronous(synchronous: bool) -> Self {
        if synchronous {
            Self::BeforeAcknowledged
        } else {
            Self::Nothing
        }
    }
}
