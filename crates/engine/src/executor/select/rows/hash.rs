//! Joins by a hash table: the right side lies in a table by its keys, the left side is read row by row.
//!
//! # Steps
//! 1. The right side is read to its end. A row whose key has a NULL equals nothing: it is kept only where each right
//!    row comes out (FULL). A semi-join or anti-join by the keys alone keeps one row of each key.
//! 2. Each left row is compared with the rows of its key. A pair counts if the rest of ON holds too.
//! 3. At the end a FULL join gives the right rows that no left row has met.
//!
//! A table beyond `work_mem` is given up, and both sides are sorted by their keys instead (`merge`).

use std::collections::HashMap;

use clearway_sql::error::Result;
use clearway_sql::plan::{JoinKind, KeyJoin};
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::key_hash::KeyHash;
use crate::executor::select::rows::keys::{key_of, left_keys, put_copies, right_keys};
use crate::executor::select::rows::merge::{Hand, MergeRows, Side};
use crate::executor::select::rows::{Rows, copied, set_null};
use crate::memory;

/// About what a row takes beside its values.
const ROW_BYTES: usize = 40;

/// About what the first row of a key takes beside that and the key.
const KEY_BYTES: usize = 56;

/// A running hash join.
#[derive(Debug)]
pub(crate) struct HashRows {
    left: Rows,
    phase: Phase,
    key: Vec<u8>,
}

#[derive(Debug)]
enum Phase {
    /// Left rows against the table.
    Probing(Table),
    /// The right rows that have met no left row, from this one on.
    Rest(Table, usize),
    /// Both sides sorted.
    Merging(Box<MergeRows>),
}

/// The right side.
#[derive(Debug, Default)]
struct Table {
    by_key: HashMap<Box<[u8]>, OfKey, KeyHash>,
    rows: Vec<RightRow>,
    bytes: usize,
    /// The left row that is being compared: the right row of its key that comes next, and if one has fitted.
    current: Option<(u32, bool)>,
}

/// No row.
const NONE: u32 = u32::MAX;

/// The rows of a key, each of which names the next.
#[derive(Debug, Clone, Copy)]
struct OfKey {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct RightRow {
    values: Box<[Value]>,
    /// The next row of the same key.
    next: u32,
    met: bool,
}

impl HashRows {
    pub(super) fn open(execution: &mut Execution<'_>, join: &KeyJoin, row: &mut [Value]) -> Result<HashRows> {
        let mut table = Table::default();
        let mut right = Rows::open(execution, &join.right, row)?;
        let mut key = Vec::new();
        let mut overflow = None;
        // Whether a key is there is all that is asked.
        let one_of_each = matches!(join.kind, JoinKind::Semi | JoinKind::Anti) && join.condition.is_none();
        while right.next(execution, &join.right, row)? {
            execution.tick()?;
            let has_key = key_of(execution, right_keys(join), row, &mut key)?;
            if !has_key && join.kind != JoinKind::Full {
                continue;
            }
            if one_of_each && has_key && table.by_key.contains_key(&key[..]) {
                continue;
            }
            let values = copied(row, &join.right_columns);
            if !table.add(has_key.then_some(&key), values, execution.spill.bytes_max) {
                let before = table.into_rows();
                let side = Side::sorted(execution, join, Hand::Right, before, &mut right, row)?;
                overflow = Some(side);
                table = Table::default();
                break;
            }
        }
        drop(right);
        let mut left = Rows::open(execution, &join.left, row)?;
        let phase = match overflow {
            None => Phase::Probing(table),
            Some(right) => {
                let before = std::iter::empty();
                let sorted = Side::sorted(execution, join, Hand::Left, before, &mut left, row)?;
                Phase::Merging(Box::new(MergeRows::new(sorted, right)))
            }
        };
        Ok(HashRows { left, phase, key })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        row: &mut [Value],
    ) -> Result<bool> {
        loop {
            match &mut self.phase {
                Phase::Merging(merge) => return merge.next(execution, join, row),
                Phase::Rest(table, at) => {
                    let rest = table.rows[*at..].iter().position(|right| !right.met);
                    let Some(found) = rest else { return Ok(false) };
                    *at += found + 1;
                    execution.tick()?;
                    set_null(row, &join.left_columns);
                    put_copies(row, &join.right_columns, &table.rows[*at - 1].values);
                    return Ok(true);
                }
                Phase::Probing(table) => {
                    if table.current.is_none() {
                        if !self.left.next(execution, &join.left, row)? {
                            if join.kind != JoinKind::Full {
                                return Ok(false);
                            }
                            self.phase = Phase::Rest(std::mem::take(table), 0);
                            continue;
                        }
                        execution.tick()?;
                        let has_key = key_of(execution, left_keys(join), row, &mut self.key)?;
                        let found = table.by_key.get(&self.key[..]).filter(|_| has_key);
                        table.current = Some((found.map_or(NONE, |of_key| of_key.first), false));
                    }
                    if table.next_pair(execution, join, row)? {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

impl Table {
    /// Adds a row; `false`, and the row is in the table without a key, if the table is too large with it.
    fn add(&mut self, key: Option<&Vec<u8>>, values: Vec<Value>, bytes_max: usize) -> bool {
        let texts: usize = values.iter().map(Value::heap_bytes).sum();
        self.bytes += ROW_BYTES + texts + size_of_val(&*values);
        let number = self.rows.len() as u32;
        self.rows.push(RightRow {
            values: values.into(),
            next: NONE,
            met: false,
        });
        if self.rows.len() > 1 && (self.bytes > bytes_max || number >= NONE - 1 || !self.may_grow()) {
            return false;
        }
        if let Some(key) = key {
            match self.by_key.get_mut(&key[..]) {
                Some(of_key) => {
                    self.rows[of_key.last as usize].next = number;
                    of_key.last = number;
                }
                None => {
                    self.bytes += KEY_BYTES + key.len();
                    let of_key = OfKey {
                        first: number,
                        last: number,
                    };
                    self.by_key.insert(key.as_slice().into(), of_key);
                }
            }
        }
        true
    }

    /// True if there is memory for one row more: a table that is full doubles.
    fn may_grow(&self) -> bool {
        self.rows.len() < self.rows.capacity()
            || memory::require(4 * self.rows.len() * (ROW_BYTES + KEY_BYTES)).is_ok()
    }

    fn into_rows(self) -> impl Iterator<Item = Box<[Value]>> {
        self.rows.into_iter().map(|row| row.values)
    }

    /// Goes on with the current left row; `false` when another is wanted.
    fn next_pair(
        &mut self,
        execution: &mut Execution<'_>,
        join: &KeyJoin,
        row: &mut [Value],
    ) -> Result<bool> {
        let Some((next, matched)) = &mut self.current else {
            return Ok(false);
        };
        while *next != NONE {
            let right = &mut self.rows[*next as usize];
            *next = right.next;
            put_copies(row, &join.right_columns, &right.values);
            if let Some(condition) = &join.condition
                && !execution.evaluating(|context| condition.passes(row, context))?
            {
                continue;
            }
            *matched = true;
            right.met = true;
            match join.kind {
                JoinKind::Anti => break,
                JoinKind::Semi => {
                    self.current = None;
                    return Ok(true);
                }
                _ => return Ok(true),
            }
        }
        let matched = *matched;
        self.current = None;
        if !matched && matches!(join.kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti) {
            set_null(row, &join.right_columns);
            return Ok(true);
        }
        Ok(false)
    }
}
