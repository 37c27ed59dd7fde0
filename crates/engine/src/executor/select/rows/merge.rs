//! Joins of sides in the order of their keys: merge joins, and hash joins whose table does not fit.
//!
//! # Example
//!
//! ```text
//! left    1  3  3  4           group of 3: the right rows 3a and 3b, kept while the left side has 3
//! right   2  3a 3b 5           out: 3·3a 3·3b 3·3a 3·3b
//! ```
//!
//! # Steps
//! 1. Each side is read in its order, or sorted first, by the bytes of its keys.
//! 2. The rows of the right side with one key are a group, which is read again for each left row of that key.
//! 3. FULL: the rows of a group that no left row has met come out when the group is left behind.
//!
//! # Rules
//! - J1. The keys of a side ascend. A side that breaks this would lose rows, so it is an error.
//! - J2. A row whose key has a NULL meets nothing, wherever it stands.
//! - J3. Both sides write their rows into the block's row. A side's row at hand is taken out of it, so that the other side
//!   may be read, and put back when it is compared.
//! - J4. A join below leaves the columns of its left side in the block's row while it goes through that row's partners. It
//!   has to find there what it left: the last row that it gave is put back before the next is asked for.

use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::{JoinKind, KeyJoin, MergeJoin, Node};
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::select::rows::keys::{key_of, left_keys, put_copies, right_keys};
use crate::executor::select::rows::{Rows, copied, put, set_null};
use crate::spill::record::{read_row, write_row};
use crate::spill::{KeptReader, KeptRows, Sorted, Sorter};

/// The first byte of the key of a row that equals nothing.
const WITHOUT_KEY: u8 = 0;

/// The first byte of any other.
const WITH_KEY: u8 = 1;

/// A running join of sides in the order of their keys.
#[derive(Debug)]
pub(crate) struct MergeRows {
    left: Side,
    right: Side,
    group: Group,
    /// The left row that is being compared: where it is in the group, and if a row has fitted.
    current: Option<(KeptReader, bool)>,
    /// The group's rows that nothing has met are coming out: where.
    rest: Option<KeptReader>,
}

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hand {
    Left,
    Right,
}

impl Hand {
    fn node(self, join: &KeyJoin) -> &Node {
        match self {
            Hand::Left => &join.left,
            Hand::Right => &join.right,
        }
    }

    fn columns(self, join: &KeyJoin) -> &[u16] {
        match self {
            Hand::Left => &join.left_columns,
            Hand::Right => &join.right_columns,
        }
    }

    /// Makes the marked key of the row.
    fn key(
        self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        row: &[Value],
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let has_key = match self {
            Hand::Left => key_of(execution, left_keys(join), row, key)?,
            Hand::Right => key_of(execution, right_keys(join), row, key)?,
        };
        match has_key {
            true => key.insert(0, WITH_KEY),
            false => {
                key.clear();
                key.push(WITHOUT_KEY);
            }
        }
        Ok(())
    }
}

/// A side and its row at hand.
#[derive(Debug)]
pub(super) struct Side {
    hand: Hand,
    input: Input,
    key: Vec<u8>,
    /// The last key that has no NULL (J1).
    last: Vec<u8>,
    row: Vec<Value>,
    ended: bool,
}

/// The rows of a side.
#[derive(Debug)]
enum Input {
    Sorted(Sorted),
    /// In order as they come.
    Ordered {
        rows: Box<Rows>,
        /// The row that it gave last, unless it writes all columns of each row (J4).
        given: Option<Vec<Value>>,
    },
}

/// The right rows of one key.
#[derive(Debug)]
struct Group {
    key: Vec<u8>,
    rows: Option<KeptRows>,
    met: Vec<bool>,
}

impl Side {
    fn new(
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        (hand, input): (Hand, Input),
        row: &mut [Value],
    ) -> Result<Side> {
        let mut side = Side {
            hand,
            input,
            key: Vec::new(),
            last: Vec::new(),
            row: Vec::new(),
            ended: false,
        };
        side.advance(execution, join, row)?;
        Ok(side)
    }

    /// A side that comes in the order of the keys.
    fn ordered(execution: &mut Execution<'_>, join: &KeyJoin, hand: Hand, row: &mut [Value]) -> Result<Side> {
        let rows = Rows::open(execution, hand.node(join), row)?;
        let given = match hand.node(join).writes_each_row() {
            true => None,
            false => Some(copied(row, hand.columns(join))),
        };
        let rows = Box::new(rows);
        Side::new(execution, join, (hand, Input::Ordered { rows, given }), row)
    }

    /// A side that is sorted: rows that were read before, and those that still come.
    pub(super) fn sorted(
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        hand: Hand,
        before: impl Iterator<Item = Box<[Value]>>,
        rows: &mut Rows,
        row: &mut [Value],
    ) -> Result<Side> {
        let mut sorter = Sorter::new(execution.spill);
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        let mut push = |execution: &mut Execution<'_>, row: &[Value], values: &[Value]| {
            hand.key(execution, join, row, &mut key)?;
            payload.clear();
            write_row(values, &mut payload);
            sorter.push(&key, &payload, execution.interrupts)
        };
        for kept in before {
            put_copies(row, hand.columns(join), &kept);
            push(execution, row, &kept)?;
        }
        while rows.next(execution, hand.node(join), row)? {
            execution.tick()?;
            let values = copied(row, hand.columns(join));
            push(execution, row, &values)?;
        }
        let sorted = sorter.finish(execution.interrupts)?;
        Side::new(execution, join, (hand, Input::Sorted(sorted)), row)
    }

    /// Goes to the next row (J3).
    fn advance(&mut self, execution: &mut Execution<'_>, join: &KeyJoin, row: &mut [Value]) -> Result<()> {
        match &mut self.input {
            Input::Sorted(sorted) => match sorted.next()? {
                None => self.ended = true,
                Some((key, mut payload)) => {
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    read_row(&mut payload, &mut self.row)?;
                }
            },
            Input::Ordered { rows, given } => {
                if let Some(given) = given {
                    put_copies(row, self.hand.columns(join), given);
                }
                if !rows.next(execution, self.hand.node(join), row)? {
                    self.ended = true;
                    return Ok(());
                }
                self.hand.key(execution, join, row, &mut self.key)?;
                self.row = copied(row, self.hand.columns(join));
                if let Some(given) = given {
                    given.clone_from(&self.row);
                }
                if self.has_key() {
                    if self.key < self.last {
                        return Err(EngineError::internal("a side of a merge join is out of order"));
                    }
                    self.last.clone_from(&self.key);
                }
            }
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.key.first() == Some(&WITH_KEY)
    }
}

impl MergeRows {
    pub(super) fn open(
        execution: &mut Execution<'_>,
        merge: &MergeJoin,
        row: &mut [Value],
    ) -> Result<MergeRows> {
        let join = &merge.join;
        let mut side = |hand: Hand, sorts: bool| {
            if !sorts {
                return Side::ordered(execution, join, hand, row);
            }
            let mut rows = Rows::open(execution, hand.node(join), row)?;
            Side::sorted(execution, join, hand, std::iter::empty(), &mut rows, row)
        };
        let left = side(Hand::Left, merge.sorts_left)?;
        let right = side(Hand::Right, merge.sorts_right)?;
        Ok(MergeRows::new(left, right))
    }

    pub(super) fn new(left: Side, right: Side) -> MergeRows {
        MergeRows {
            left,
            right,
            group: Group {
                key: Vec::new(),
                rows: None,
                met: Vec::new(),
            },
            current: None,
            rest: None,
        }
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        row: &mut [Value],
    ) -> Result<bool> {
        loop {
            execution.tick()?;
            if let Some(found) = self.next_pair(execution, join, row)? {
                if found {
                    return Ok(true);
                }
                continue;
            }
            if self.next_unmet(join, row)? {
                return Ok(true);
            }
            if !self.take_left(execution, join, row)? {
                return Ok(false);
            }
        }
    }

    /// Goes on with the current left row: `None` without one, `false` when it is done with.
    fn next_pair(
        &mut self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        row: &mut [Value],
    ) -> Result<Option<bool>> {
        let Some((reader, matched)) = &mut self.current else {
            return Ok(None);
        };
        let mut values = Vec::new();
        while let Some(rows) = &self.group.rows
            && rows.next(reader, &mut values)?
        {
            let number = self.group.met.len();
            let at = reader.passed() as usize - 1;
            debug_assert!(at < number);
            put(row, &join.right_columns, &mut values);
            if let Some(condition) = &join.condition
                && !execution.evaluating(|context| condition.passes(row, context))?
            {
                continue;
            }
            *matched = true;
            self.group.met[at] = true;
            match join.kind {
                JoinKind::Anti => break,
                JoinKind::Semi => {
                    self.current = None;
                    return Ok(Some(true));
                }
                _ => return Ok(Some(true)),
            }
        }
        let alone = !*matched && matches!(join.kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti);
        self.current = None;
        if alone {
            set_null(row, &join.right_columns);
        }
        Ok(Some(alone))
    }

    /// The next right row of a group that is left behind, and that no left row has met.
    fn next_unmet(&mut self, join: &KeyJoin, row: &mut [Value]) -> Result<bool> {
        let (Some(reader), Some(rows)) = (&mut self.rest, &self.group.rows) else {
            return Ok(false);
        };
        let mut values = Vec::new();
        while rows.next(reader, &mut values)? {
            if !self.group.met[reader.passed() as usize - 1] {
                set_null(row, &join.left_columns);
                put(row, &join.right_columns, &mut values);
                return Ok(true);
            }
        }
        self.rest = None;
        self.group.rows = None;
        Ok(false)
    }

    /// Takes the next left row, and the right rows up to its key; `false` when there is nothing more to do.
    fn take_left(
        &mut self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        row: &mut [Value],
    ) -> Result<bool> {
        let full = join.kind == JoinKind::Full;
        let wanted = !self.left.ended;
        if wanted && !self.left.has_key() {
            // J2.
            self.give_left(execution, join, row, KeptReader::at_end())?;
            return Ok(true);
        }
        if self.group.rows.is_some() && !(wanted && self.left.key == self.group.key) {
            // The group is left behind.
            if full {
                self.rest = Some(KeptReader::default());
                return Ok(true);
            }
            self.group.rows = None;
        }
        if self.group.rows.is_none() && !self.right.ended {
            let before = !self.right.has_key() || wanted && self.right.key < self.left.key;
            if before || !wanted && full || wanted && self.right.key == self.left.key {
                self.take_group(execution, join, full || !before, row)?;
                return Ok(true);
            }
        }
        let needs_partner = matches!(join.kind, JoinKind::Inner | JoinKind::Semi);
        if !wanted || needs_partner && self.right.ended && self.group.rows.is_none() {
            return Ok(false);
        }
        let reader = match self.group.rows {
            Some(_) => KeptReader::default(),
            None => KeptReader::at_end(),
        };
        self.give_left(execution, join, row, reader)?;
        Ok(true)
    }

    /// Makes the left row at hand the one that is compared, from a place in the group on.
    fn give_left(
        &mut self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        row: &mut [Value],
        reader: KeptReader,
    ) -> Result<()> {
        let mut values = std::mem::take(&mut self.left.row);
        self.left.advance(execution, join, row)?;
        put(row, &join.left_columns, &mut values);
        self.current = Some((reader, false));
        Ok(())
    }

    /// Takes the right rows of the next key; `kept`: they may come out.
    fn take_group(
        &mut self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        kept: bool,
        row: &mut [Value],
    ) -> Result<()> {
        self.group.key.clone_from(&self.right.key);
        self.group.met.clear();
        let mut rows = KeptRows::new(execution.spill);
        while !self.right.ended && self.right.key == self.group.key {
            execution.tick()?;
            if kept {
                rows.push(&self.right.row)?;
                self.group.met.push(false);
            }
            self.right.advance(execution, join, row)?;
        }
        rows.finish()?;
        self.group.rows = kept.then_some(rows);
        Ok(())
    }
}
