//! A hash join whose table does not fit: both sides sorted by the bytes of their keys, and read side by side.
//!
//! The rows of the right side with one key are a group, which is read again for each left row of that key. A row whose
//! key has a NULL sorts before all others and meets nothing.

use clearway_sql::error::Result;
use clearway_sql::plan::{HashJoin, JoinKind};
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

/// A running join of sorted sides.
#[derive(Debug)]
pub(crate) struct MergeRows {
    right: Side,
    left: Option<Side>,
    group: Group,
    /// The left row that is being compared: where it is in the group, and if a row has fitted.
    current: Option<(KeptReader, bool)>,
    /// The group's rows that nothing has met are coming out: where.
    rest: Option<KeptReader>,
}

/// A sorted side and its row at hand.
#[derive(Debug)]
struct Side {
    sorted: Sorted,
    key: Vec<u8>,
    row: Vec<Value>,
    ended: bool,
}

/// The right rows of one key.
#[derive(Debug)]
struct Group {
    key: Vec<u8>,
    rows: Option<KeptRows>,
    met: Vec<bool>,
}

impl Side {
    fn new(sorted: Sorted) -> Result<Side> {
        let mut side = Side {
            sorted,
            key: Vec::new(),
            row: Vec::new(),
            ended: false,
        };
        side.advance()?;
        Ok(side)
    }

    fn advance(&mut self) -> Result<()> {
        match self.sorted.next()? {
            None => self.ended = true,
            Some((key, mut payload)) => {
                self.key.clear();
                self.key.extend_from_slice(key);
                read_row(&mut payload, &mut self.row)?;
            }
        }
        Ok(())
    }
}

/// Pushes a row under its key.
fn push(execution: &Execution<'_>, sorter: &mut Sorter, key: Option<&[u8]>, values: &[Value]) -> Result<()> {
    let mut marked = vec![key.map_or(WITHOUT_KEY, |_| WITH_KEY)];
    marked.extend_from_slice(key.unwrap_or_default());
    let mut payload = Vec::new();
    write_row(values, &mut payload);
    sorter.push(&marked, &payload, execution.interrupts)
}

impl MergeRows {
    /// Goes on after the table has become too large: with its rows, and those that still come.
    pub(super) fn after(
        execution: &mut Execution<'_>,
        join: &HashJoin,
        before: impl Iterator<Item = Box<[Value]>>,
        right: &mut Rows,
        row: &mut [Value],
    ) -> Result<MergeRows> {
        let mut sorter = Sorter::new(execution.spill);
        let mut key = Vec::new();
        for kept in before {
            put_copies(row, &join.right_columns, &kept);
            let has_key = key_of(execution, right_keys(join), row, &mut key)?;
            push(execution, &mut sorter, has_key.then_some(&key[..]), &kept)?;
        }
        while right.next(execution, &join.right, row)? {
            execution.tick()?;
            let has_key = key_of(execution, right_keys(join), row, &mut key)?;
            let values = copied(row, &join.right_columns);
            push(execution, &mut sorter, has_key.then_some(&key[..]), &values)?;
        }
        Ok(MergeRows {
            right: Side::new(sorter.finish(execution.interrupts)?)?,
            left: None,
            group: Group {
                key: Vec::new(),
                rows: None,
                met: Vec::new(),
            },
            current: None,
            rest: None,
        })
    }

    /// Sorts the left side.
    pub(super) fn read_left(
        &mut self,
        execution: &mut Execution<'_>,
        join: &HashJoin,
        left: &mut Rows,
        row: &mut [Value],
    ) -> Result<()> {
        let mut sorter = Sorter::new(execution.spill);
        let mut key = Vec::new();
        while left.next(execution, &join.left, row)? {
            execution.tick()?;
            let has_key = key_of(execution, left_keys(join), row, &mut key)?;
            let values = copied(row, &join.left_columns);
            push(execution, &mut sorter, has_key.then_some(&key[..]), &values)?;
        }
        self.left = Some(Side::new(sorter.finish(execution.interrupts)?)?);
        Ok(())
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        join: &HashJoin,
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
        join: &HashJoin,
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
    fn next_unmet(&mut self, join: &HashJoin, row: &mut [Value]) -> Result<bool> {
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
        join: &HashJoin,
        row: &mut [Value],
    ) -> Result<bool> {
        let full = join.kind == JoinKind::Full;
        let Some(left) = &mut self.left else {
            return Ok(false);
        };
        let wanted = !left.ended;
        if self.group.rows.is_some() && !(wanted && left.key == self.group.key) {
            // The group is left behind.
            if full {
                self.rest = Some(KeptReader::default());
                return Ok(true);
            }
            self.group.rows = None;
        }
        if self.group.rows.is_none() && !self.right.ended {
            let before = wanted && self.right.key < left.key;
            if before || !wanted && full || wanted && self.right.key == left.key {
                self.take_group(execution, full || !before)?;
                return Ok(true);
            }
        }
        if !wanted {
            return Ok(false);
        }
        put(row, &join.left_columns, &mut left.row);
        let meets = left.key.first() == Some(&WITH_KEY) && self.group.rows.is_some();
        left.advance()?;
        if meets {
            self.current = Some((KeptReader::default(), false));
            return Ok(true);
        }
        self.current = Some((KeptReader::at_end(), false));
        Ok(true)
    }

    /// Takes the right rows of the next key; `kept`: they may come out.
    fn take_group(&mut self, execution: &mut Execution<'_>, kept: bool) -> Result<()> {
        self.group.key.clone_from(&self.right.key);
        self.group.met.clear();
        let mut rows = KeptRows::new(execution.spill);
        while !self.right.ended && self.right.key == self.group.key {
            execution.tick()?;
            if kept {
                rows.push(&self.right.row)?;
                self.group.met.push(false);
            }
            self.right.advance()?;
        }
        rows.finish()?;
        self.group.rows = kept.then_some(rows);
        Ok(())
    }
}
