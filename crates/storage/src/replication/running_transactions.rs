//! The record of running transactions: what a standby's snapshots begin from.
//!
//! A standby learns of a transaction when it first meets a record of it, and of its end by the record of that. It begins
//! at a redo position, so of a transaction that was running there it may meet no record for a long time. A `Running`
//! record lists these.
//!
//! ```text
//! 0      8                16             24      28      32
//! | next | oldest running | newest ended | flags | count | the running xids, ascending, 8 bytes each
//! ```
//! Numbers are little-endian. `next` is the xid after the newest one that has ended; of xids from there on, which may run
//! or not have been handed out yet, the record says nothing. Bit 0 of the flags: the list is not complete.
//!
//! # When it is logged
//! | by | when | for |
//! | --- | --- | --- |
//! | every checkpoint | between the move of the redo position and its other records | a standby that begins at that redo position |
//! | the log writer | every 15 seconds, if anything was logged meanwhile | a standby that waits for a complete record; transactions whose end was never logged |
//!
//! # An example: the record is older than its place in the log
//! The list is made under the ProcArray latch, and inserted after it was released. Carol is the checkpointer.
//!
//! | time | Alice, 100 | Bob | Carol | the log |
//! | --- | --- | --- | --- | --- |
//! | 1 | logs a change | | | change of 100 |
//! | 2 | | | lists: next 100, nothing runs below it | |
//! | 3 | | 101 logs a change and its commit | | change of 101, commit of 101 |
//! | 4 | | leaves the array | | |
//! | 5 | | | inserts the record | next 100 |
//! | 6 | logs its commit | | | commit of 100 |
//!
//! At time 5 the standby has replayed the commit of 101. If it took the record as it is, it would add 101, which has
//! ended, when it meets the next xid, and nothing would ever remove it. It must not take 100 for ended either.
//!
//! # Rules
//! - R1: a transaction that is neither listed nor at or above `next` has left the array before the list was made. The
//!   record of its end was inserted before that (the order of a commit, steps 3 and 8), so it lies before this record.
//! - R2: one that is listed may have ended since, with the record of its end before this one or even before the redo
//!   position. The standby's commit log says so: of the records that it has replayed, and, by R1 of `checkpoint`, of the
//!   commits before the redo position.
//! - R3: xids from `next` on may have logged something before this record, and may have ended. The standby knows the
//!   newest that can have: the control file's `next_xid` is read after the redo position has moved, so it is above every
//!   xid with a record before it; the others it has met. It asks its commit log of each.
//! - R4: what the standby finds ended by R3 counts as an end: a snapshot's xmax is above it. Otherwise a transaction below
//!   `next` that has read what 101 wrote, and commits next, would be seen without 101.
//!
//! [`begin_set`] applies R2 to R4. To a set that is complete the record is applied as it is: by R1 nothing older than its
//! oldest xid runs.
//!
//! # What stays inexact
//! A rollback whose record lies before the redo position may be missing in the commit log's page on disk, since a
//! checkpoint waits for commits only; and a rollback on a full disk logs nothing. Such a transaction counts as running on
//! the standby until the next record whose oldest xid is above it. It is seen by no snapshot in either state.
//!
//! Costs: a shared hold of ProcArray as for a snapshot; 64 bytes of log, and 8 more for each running transaction.
//!
//! Origin: PostgreSQL's xl_running_xacts. There the list and the insertion are under one latch, which each end of a
//! transaction waits for.

use clearway_txn::{KnownXidsError, RunningTransactions, Xid};

use crate::page::{get_u32, get_u64};
use crate::wal::record::{HEADER, RECORD_MAX};

/// Bytes before the list.
const FIXED: usize = 32;
/// The list is not complete.
const OVERFLOWED: u32 = 1;
/// The most xids that one record has room for.
const XIDS_MAX: usize = (RECORD_MAX - HEADER - FIXED) / 8;

/// The fault in the payload of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunningRecordError {
    /// It is too short or too long.
    #[error("a record of running transactions has {found} bytes of payload, where {wanted} are needed")]
    Length {
        /// Bytes that there are.
        found: usize,
        /// Bytes that the record says there must be; more is not known of one that is cut in its fixed part.
        wanted: usize,
    },
    /// It is of a later version.
    #[error("a record of running transactions has the flags {0:#x}, of which this version knows only 0x1")]
    Flags(u32),
    /// It cannot be true.
    #[error(transparent)]
    Contradiction(#[from] KnownXidsError),
}

/// A record read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningRecord {
    /// It says nothing of xids from here on.
    pub next: Xid,
    /// The oldest that runs, or `next`.
    pub oldest_running: Xid,
    /// The newest that has ended.
    pub newest_ended: Xid,
    /// True if some that run are missing in `running`.
    pub overflowed: bool,
    /// Those that run, in ascending order.
    pub running: Vec<Xid>,
}

impl RunningRecord {
    /// The record in the form that the known xids take.
    pub fn as_running(&self) -> RunningTransactions<'_> {
        RunningTransactions {
            next: self.next,
            oldest_running: self.oldest_running,
            newest_ended: self.newest_ended,
            running: &self.running,
            overflowed: self.overflowed,
            prepared: &[],
        }
    }
}

/// The payload of the record that says `running`.
pub fn encode(running: &RunningTransactions<'_>) -> Vec<u8> {
    // No server has more sessions than a record has room for; a program that embeds storage might.
    let listed = &running.running[..running.running.len().min(XIDS_MAX)];
    let overflowed = running.overflowed || listed.len() < running.running.len();
    let flags = if overflowed { OVERFLOWED } else { 0 };
    let mut payload = Vec::with_capacity(FIXED + 8 * listed.len());
    for xid in [running.next, running.oldest_running, running.newest_ended] {
        payload.extend_from_slice(&xid.0.to_le_bytes());
    }
    payload.extend_from_slice(&flags.to_le_bytes());
    payload.extend_from_slice(&(listed.len() as u32).to_le_bytes());
    payload.extend(listed.iter().flat_map(|xid| xid.0.to_le_bytes()));
    payload
}

/// Reads a payload.
pub fn decode(payload: &[u8]) -> Result<RunningRecord, RunningRecordError> {
    let length = |wanted| RunningRecordError::Length {
        found: payload.len(),
        wanted,
    };
    let Some((fixed, list)) = payload.split_at_checked(FIXED) else {
        return Err(length(FIXED));
    };
    let (flags, count) = (get_u32(fixed, 24), get_u32(fixed, 28) as usize);
    if flags & !OVERFLOWED != 0 {
        return Err(RunningRecordError::Flags(flags));
    }
    let wanted = count.saturating_mul(8);
    if list.len() != wanted {
        return Err(length(wanted.saturating_add(FIXED)));
    }
    let record = RunningRecord {
        next: Xid(get_u64(fixed, 0)),
        oldest_running: Xid(get_u64(fixed, 8)),
        newest_ended: Xid(get_u64(fixed, 16)),
        overflowed: flags & OVERFLOWED != 0,
        running: list.chunks_exact(8).map(|xid| Xid(get_u64(xid, 0))).collect(),
    };
    record.as_running().check()?;
    Ok(record)
}

/// The transactions that run at the place of `record` in the log, for a standby that begins with it: the record brought
/// up to date (R2 to R4).
///
/// `highest_seen` is the newest xid that can have ended: the one before the control file's `next_xid`, or a newer one
/// that a record replayed since belongs to. `ended` asks the standby's commit log, in which the end of every record
/// before this one has been entered, whether an xid has committed or rolled back.
pub fn begin_set<E>(
    record: &RunningRecord,
    highest_seen: Xid,
    mut ended: impl FnMut(Xid) -> Result<bool, E>,
) -> Result<RunningRecord, E> {
    let mut running = Vec::with_capacity(record.running.len());
    for &xid in &record.running {
        if !ended(xid)? {
            running.push(xid);
        }
    }
    let mut newest_ended = record.newest_ended;
    for xid in (record.next.0..=highest_seen.0).map(Xid) {
        if ended(xid)? {
            newest_ended = newest_ended.max(xid);
        } else {
            running.push(xid);
        }
    }
    let next = record.next.max(highest_seen.next());
    Ok(RunningRecord {
        next,
        oldest_running: running.first().copied().unwrap_or(next),
        newest_ended,
        overflowed: record.overflowed,
        running,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(running: &[u64], next: u64) -> RunningRecord {
        RunningRecord {
            next: Xid(next),
            oldest_running: Xid(running.first().copied().unwrap_or(next)),
            newest_ended: Xid(next - 1),
            overflowed: false,
            running: running.iter().copied().map(Xid).collect(),
        }
    }

    #[test]
    fn records_survive_encoding() {
        for running in [&[][..], &[100], &[100, 101, 7000]] {
            for overflowed in [false, true] {
                let record = RunningRecord {
                    overflowed,
                    ..record(running, 9000)
                };
                assert_eq!(decode(&encode(&record.as_running())), Ok(record));
            }
        }
    }

    #[test]
    fn a_list_that_is_too_long_is_marked_as_incomplete() {
        let xids: Vec<u64> = (100..100 + XIDS_MAX as u64 + 1).collect();
        let payload = encode(&record(&xids, 1 << 30).as_running());
        assert!(crate::wal::record::size(payload.len()) <= RECORD_MAX);
        let decoded = decode(&payload).unwrap();
        assert!(decoded.overflowed && decoded.running.len() == XIDS_MAX);
        assert!(
            !decode(&encode(&record(&xids[1..], 1 << 30).as_running()))
                .unwrap()
                .overflowed
        );
    }

    #[test]
    fn bad_payloads_are_errors() {
        let payload = encode(&record(&[100, 101], 110).as_running());
        for length in 0..payload.len() {
            let cut = decode(&payload[..length]);
            assert!(
                matches!(cut, Err(RunningRecordError::Length { .. })),
                "{length}: {cut:?}"
            );
        }
        let longer = [&payload[..], &[0]].concat();
        assert!(matches!(
            decode(&longer),
            Err(RunningRecordError::Length {
                found: 49,
                wanted: 48
            })
        ));
        let with = |at: usize, bytes: &[u8]| {
            let mut payload = payload.clone();
            payload[at..at + bytes.len()].copy_from_slice(bytes);
            decode(&payload).unwrap_err()
        };
        assert_eq!(with(24, &[2]), RunningRecordError::Flags(2));
        assert!(matches!(with(28, &[0xFF; 4]), RunningRecordError::Length { .. }));
        for (at, value) in [
            (0, 50_u64),
            (0, u64::MAX),
            (8, 101),
            (8, 0),
            (16, 110),
            (32, 101),
            (40, 110),
        ] {
            let error = with(at, &value.to_le_bytes());
            assert!(
                matches!(error, RunningRecordError::Contradiction(_)),
                "{at}, {value}: {error}"
            );
        }
    }

    /// The example of the module, and R4.
    #[test]
    fn the_set_is_that_of_the_records_place() {
        let begin = |record: &RunningRecord, seen, ended: &[u64]| {
            begin_set(record, Xid(seen), |xid| Ok::<_, ()>(ended.contains(&xid.0))).unwrap()
        };
        let begun = begin(&record(&[], 100), 101, &[101]);
        assert_eq!(begun.running, [Xid(100)]);
        assert_eq!((begun.newest_ended, begun.next), (Xid(101), Xid(102)));
        let begun = begin(&record(&[90, 95], 100), 97, &[90]);
        assert_eq!(begun.running, [Xid(95)]);
        assert_eq!((begun.oldest_running, begun.next), (Xid(95), Xid(100)));
        assert_eq!(
            begin_set(&record(&[90], 100), Xid(0), |_| Err("unreadable")),
            Err("unreadable")
        );
    }
}
