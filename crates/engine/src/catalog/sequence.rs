//! The numbers of a sequence.
//!
//! A sequence's state is a relation of one page. It is outside of transactions, as in PostgreSQL: a rollback does not
//! give numbers back, and two sessions never wait for each other.
//!
//! ```text
//! page offset 24: number (i64): the one behind which numbers are free
//!             32: fresh (u8): 1 if that number itself is free
//! ```
//!
//! # Rules
//! - R1: *no number that a client was shown, or that is in a committed row, is given out again, also after a crash.*
//!   Numbers are handed out from memory only up to the page's; moving it on logs the change first. A crash skips at most
//!   [`AHEAD`] numbers. `setval`, RESTART and CYCLE are the exceptions: they say which numbers are given out again.
//! - R2: the log keeps its order, so the commit of any row that bears a number is flushed after the reservation that
//!   allowed it.
//! - R3: *a number can be shown without a commit*: by RETURNING or a SELECT in a block, by an error that names the row,
//!   and before a rollback. Nothing flushes the reservation then. So a session gets the position behind the
//!   reservation together with the number, as an [`Unsecured`]: its own, or that of the session that has made the
//!   reservation. It answers with rows when the log is secured up to there. A number that it has taken ahead (CACHE) and
//!   shows later brings the position along once more.
//! - R4: the options are the definition's, which is transactional, and the state is not. So sessions may count by old
//!   options and by new ones for a while. What is reserved is reserved for one increment: a session that counts by another
//!   one reserves anew.
//!
//! # An example
//! 272 numbers are given out, and the log is durable up to the reservation of 99.
//!
//! | time | Alice | Bob | the log |
//! | --- | --- | --- | --- |
//! | 1 | begins; her INSERT takes 298 | | number: 330 |
//! | 2 | | begins; his INSERT … RETURNING takes 299, and waits for the reservation of 330 | durable |
//! | 3 | | is shown 299 | |
//! | 4 | the server is killed: no commit, and both rows are gone | | |
//! | 5 | after the start the next number is 331 | | |
//!
//! Without the wait the next number after the start would be 100, and 299 would come again.
//!
//! # What this does not do
//! A session that does not wait for the disk (`synchronous_commit = off`) is shown numbers that
//! a crash may take, as a crash may take its acknowledged commits. Under `lock_release = after-flush` rows of such a
//! session's commits are shown to others before they are durable, with their numbers.
//!
//! Costs: a comparison a number. An answer waits once, if a number under a reservation that is not durable was handed out.
//! The tag of an INSERT of given rows or of a COPY shows no number and waits for none; that of INSERT … SELECT counts as an
//! answer with rows (`transaction::answer`).

use std::sync::{Mutex, MutexGuard};

use clearway_machine::invariant;
use clearway_sql::sequence::SequenceNumbers;
use clearway_storage::{Lsn, PAGE_SIZE, PageId, PageKind, RelId, Storage, Unsecured, page};
use clearway_txn::Xid;

use crate::convert::storage_error;
use clearway_sql::error::{EngineError, Result, SqlState};

/// Numbers that one log record reserves beside those that are asked for.
const AHEAD: i64 = 32;

/// The place of the number on the page.
const NUMBER: usize = 24;

/// The place of the mark of a number that was not given out.
const FRESH: usize = 32;

const _: () = assert!(FRESH < PAGE_SIZE);

/// The state of a sequence, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequenceState {
    /// The number given out last, or the first one.
    pub(crate) last: i64,
    /// True if `last` was given out.
    pub(crate) is_called: bool,
    /// Numbers that are reserved behind it.
    pub(crate) reserved: i64,
}

/// Numbers that a session takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The position behind the record that reserves them.
    pub(crate) reserved_at: Lsn,
}

/// A sequence's state, in its relation.
#[derive(Debug)]
pub(crate) struct Sequence {
    rel: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// True if the page has been read.
    loaded: bool,
    now: SequenceState,
    /// The increment that numbers are reserved by.
    reserved_by: i64,
    /// The position behind the record of the reservation.
    reserved_at: Lsn,
}

impl Sequence {
    /// The sequence in this relation.
    pub(crate) fn new(rel: u32) -> Sequence {
        Sequence {
            rel,
            state: Mutex::new(State {
                loaded: false,
                now: SequenceState {
                    last: 1,
                    is_called: false,
                    reserved: 0,
                },
                reserved_by: 0,
                reserved_at: Lsn(0),
            }),
        }
    }

    /// Lays out a fresh relation as a sequence whose next number is `first`.
    pub(crate) fn create(storage: &Storage, rel: RelId, first: i64) -> Result<()> {
        let page = storage.extend(rel).map_err(storage_error)?;
        let mut change = storage.begin_change(Xid::INVALID).map_err(storage_error)?;
        let mut exclusive = page.exclusive();
        change.init_page(&mut exclusive, PageKind::SEQUENCE, 0);
        change.write(&mut exclusive, NUMBER, &first.to_le_bytes());
        change.write(&mut exclusive, FRESH, &[1]);
        change.finish().map_err(storage_error)?;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Its state now; `changes_elsewhere`: the page is another server's, whose changes are replayed.
    pub(crate) fn now(&self, storage: &Storage, changes_elsewhere: bool) -> Result<SequenceState> {
        let mut state = self.state();
        state.loaded &= !changes_elsewhere;
        self.load(storage, &mut state)?;
        let now = state.now;
        state.loaded &= !changes_elsewhere;
        Ok(now)
    }

    /// Reads the page, once.
    fn load(&self, storage: &Storage, state: &mut State) -> Result<()> {
        if state.loaded {
            return Ok(());
        }
        let page = storage.pin(self.page()).map_err(storage_error)?;
        let shared = page.shared();
        let bytes = shared.bytes();
        let number: [u8; 8] = bytes[NUMBER..NUMBER + 8].try_into().expect("eight bytes");
        state.now = SequenceState {
            last: i64::from_le_bytes(number),
            is_called: bytes[FRESH] == 0,
            reserved: 0,
        };
        state.reserved_at = page::lsn(bytes);
        state.loaded = true;
        Ok(())
    }

    fn page(&self) -> PageId {
        PageId {
            rel: RelId(self.rel),
            block: 0,
        }
    }

    /// Makes `last` the number given out last, or, unless it `is_called`, the next one. It is logged at once, and stays when
    /// the transaction is rolled back, as in PostgreSQL; the position behind the record comes with it.
    pub(crate) fn set(&self, storage: &Storage, last: i64, is_called: bool) -> Result<Unsecured<()>> {
        let mut state = self.state();
        self.load(storage, &mut state)?;
        self.log(storage, &mut state, last, is_called)?;
        state.now = SequenceState {
            last,
            is_called,
            reserved: 0,
        };
        Ok(Unsecured::new((), state.reserved_at))
    }

    /// Lets the next number reserve others anew, by options that have changed: R1 holds for those given out, which are all
    /// up to the last.
    pub(crate) fn reserve_anew(&self) {
        self.state().now.reserved = 0;
    }

    /// Logs the page's number.
    fn log(&self, storage: &Storage, state: &mut State, number: i64, is_called: bool) -> Result<()> {
        let page = storage.pin(self.page()).map_err(storage_error)?;
        let mut change = storage.begin_change(Xid::INVALID).map_err(storage_error)?;
        let mut exclusive = page.exclusive();
        change.write(&mut exclusive, NUMBER, &number.to_le_bytes());
        change.write(&mut exclusive, FRESH, &[u8::from(!is_called)]);
        state.reserved_at = change.finish().map_err(storage_error)?;
        Ok(())
    }

    /// The next numbers: as many as a session takes at once, or those up to the last one.
    pub(crate) fn next(
        &self,
        storage: &Storage,
        numbers: &SequenceNumbers,
        name: &str,
    ) -> Result<Unsecured<Taken>> {
        let mut state = self.state();
        self.load(storage, &mut state)?;
        let now = state.now;
        let (first, wraps) = match now.is_called {
            false => (now.last, false),
            true => following(now.last, numbers, name)?,
        };
        let more = steps_within(first, numbers, numbers.cache - 1);
        let wanted = more + i64::from(now.is_called);
        let last = first + more * numbers.increment;
        let is_reserved =
            now.is_called && !wraps && now.reserved >= wanted && state.reserved_by == numbers.increment;
        let mut reserved = now.reserved - wanted;
        if !is_reserved {
            reserved = steps_within(last, numbers, AHEAD);
            self.log(storage, &mut state, last + reserved * numbers.increment, true)?;
            state.reserved_by = numbers.increment;
        }
        invariant!(
            R1,
            reserved >= 0,
            "number {last} of sequence {} is given out and is not reserved",
            self.rel
        );
        state.now = SequenceState {
            last,
            is_called: true,
            reserved,
        };
        let taken = Taken {
            first,
            last,
            reserved_at: state.reserved_at,
        };
        Ok(Unsecured::new(taken, state.reserved_at))
    }
}

/// The number that follows `last`, and whether the sequence begins again with it; 2200H behind the last number.
fn following(last: i64, numbers: &SequenceNumbers, name: &str) -> Result<(i64, bool)> {
    let up = numbers.increment > 0;
    let next = last.checked_add(numbers.increment);
    match next.filter(|next| {
        if up {
            *next <= numbers.max
        } else {
            *next >= numbers.min
        }
    }) {
        Some(next) => Ok((next, false)),
        None if numbers.cycle => Ok((if up { numbers.min } else { numbers.max }, true)),
        None => {
            let (bound, value) = if up {
                ("maximum", numbers.max)
            } else {
                ("minimum", numbers.min)
            };
            Err(EngineError::new(
                SqlState::from_code("2200H"),
                format!("nextval: reached {bound} value of sequence \"{name}\" ({value})"),
            ))
        }
    }
}

/// Number of times that the increment can be added within the bounds, `most` at most.
fn steps_within(from: i64, numbers: &SequenceNumbers, most: i64) -> i64 {
    let bound = if numbers.increment > 0 {
        numbers.max
    } else {
        numbers.min
    };
    let steps = (i128::from(bound) - i128::from(from)) / i128::from(numbers.increment);
    steps.clamp(0, i128::from(most.max(0))) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_sql::sequence::SequenceOptions;

    #[test]
    fn steps_end_at_the_bound() {
        let numbers = |increment, max| {
            let options = SequenceOptions {
                increment: Some(increment),
                max: Some(Some(max)),
                min: Some(Some(-10)),
                ..SequenceOptions::default()
            };
            options.numbers(None, false).unwrap()
        };
        assert_eq!(steps_within(1, &numbers(1, 5), 32), 4);
        assert_eq!(steps_within(1, &numbers(3, 5), 32), 1);
        assert_eq!(steps_within(1, &numbers(-4, 5), 32), 2);
        assert_eq!(steps_within(7, &numbers(1, 5), 32), 0);
        assert_eq!(steps_within(1, &numbers(1, i64::MAX), 32), 32);
        let whole = SequenceOptions {
            increment: Some(i64::MAX),
            min: Some(Some(i64::MIN)),
            ..SequenceOptions::default()
        };
        assert_eq!(
            steps_within(i64::MIN, &whole.numbers(None, false).unwrap(), 32),
            2
        );
        assert!(following(5, &numbers(1, 5), "s").is_err());
        assert_eq!(following(-9, &numbers(-1, 5), "s").unwrap(), (-10, false));
    }
}
