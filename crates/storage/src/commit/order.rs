//! `commit_order`: the order in which commits are seen, compared with that of their records in the log.
//!
//! Protects: what readers make of several commits. That each of them is seen as a whole, when it is durable, and what
//! clients are told of it, are other mechanisms' business.
//!
//! # An example
//! Alice's record lies in front of Bob's, and Bob comes to the array first. Carol, on the primary, takes a snapshot before
//! Alice has left. Dave reads on a standby whose replay is between the two records.
//!
//! | variant | Carol sees | Dave sees |
//! | --- | --- | --- |
//! | `unordered` | Bob's changes without Alice's | Alice's changes without Bob's |
//! | `log` | neither, or Alice's: Bob waits for Alice | Alice's changes without Bob's |
//!
//! Under `unordered` no order of the two commits explains what both have seen: a *long fork*. A recovery to a point between
//! the two records, a backup, and a replica that is built from the log make it last.
//!
//! # Contract
//! - `log`: O1 to O5 of `commit` hold, whatever the other switches and settings are, on a primary and on a standby.
//! - `unordered`: O1 does not hold. All else does: the steps of a commit, L1 to L7 of `lock_release`, and what a standby
//!   shows, which follows its log in any case (O4).
//!
//! | variant | latches and waits of a commit, beside the array's | wins |
//! | --- | --- | --- |
//! | `unordered` | none | by what `log` costs; it is what databases ship |
//! | `log` | a spin latch for a reservation; a wait for commits in front that are not ready | where anyone compares two servers, or a server with its log |
//!
//! Origin: PostgreSQL inserts the commit record and leaves the array without an order between the two.

use clearway_machine::switch;

switch! {
    /// The order in which commits are seen.
    pub enum CommitOrderVariant = "commit_order", best Log, planned [] {
        /// In whichever order they leave the array: a standby, and each recovery to a point, may show two commits in the other
        /// order.
        Unordered = "unordered",
        /// In the order of their records in the log, on a primary and on each standby.
        Log = "log",
    }
    why {
        Log: "Each snapshot on each server is one position of the log. Without it 240 of 4,330 pairs of counters that a \
            primary and its standby showed fitted no single history (classic, after-flush)."
            in "docs/mechanisms/commit.md#two-histories";
    }
}
