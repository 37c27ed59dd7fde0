//! Duplicates over the rounds of a recursive query, within a bound of memory.
//!
//! A row of a round is new if no round before gave it. As long as the keys of all rows fit into memory it is known at
//! once. From then on [`Distinct`] puts the rows aside whose keys are not in memory, and the end of the round decides:
//!
//! ```text
//!   in memory:  a b              from the first rounds; takes no more keys
//!   file:       c e              keys that later rounds gave, in order
//!   put aside:  c₀ d₁ d₂ f₃      rows of this round, sorted by key
//!       ▼ merged with the file   d₁ f₃ are new; the file becomes c d e f
//!       ▼ sorted by place        d₁ f₃ come out
//! ```
//!
//! # Costs
//! Beyond the bound a round with rows that may be new reads and writes the file once. So many small rounds over many
//! rows are slow; a larger `work_mem` avoids the file.

use std::ops::ControlFlow;

use clearway_sql::error::Result;
use clearway_sql::value::{DataType, Value};

use crate::executor::Execution;
use crate::executor::group::Distinct;
use crate::spill::temporary::{Reader, Record, Temporary};
use crate::spill::{Sorted, Sorter, SpillOptions};

/// Keys between two looks at the interrupts.
const KEYS_PER_CHECK: u64 = 4_096;

/// The rows that a recursive query has given.
#[derive(Debug)]
pub(crate) struct Rounds {
    options: SpillOptions,
    distinct: Distinct,
    /// The keys that are not in memory, in order.
    file: Option<Temporary>,
}

impl Rounds {
    /// No rows yet; of columns of these types.
    pub(crate) fn new(types: Vec<DataType>, options: &SpillOptions) -> Rounds {
        Rounds {
            options: options.clone(),
            distinct: Distinct::new(types, options),
            file: None,
        }
    }

    /// True if the row is new, and comes out now. One that is not may still come, from [`end`](Self::end).
    pub(crate) fn take(&mut self, execution: &Execution<'_>, row: &[Value]) -> Result<bool> {
        self.distinct.take(execution, row)
    }

    /// The round has ended: its new rows that did not come out, in the order of arrival, behind a place each.
    pub(crate) fn end(&mut self, execution: &Execution<'_>) -> Result<Option<Sorted>> {
        let Some(sorter) = self.distinct.undecided() else {
            return Ok(None);
        };
        let mut by_key = sorter.finish(execution.interrupts)?;
        let mut merged = Merged {
            known: Known::new(self.file.as_ref())?,
            into: Temporary::create(&self.options)?,
            written: 0,
        };
        let mut by_place = Sorter::new(&self.options);
        let mut last: Option<Vec<u8>> = None;
        while let Some((key, payload)) = by_key.next()? {
            if last.as_deref() == Some(key) {
                continue;
            }
            let is_new = merged.add(execution, key)?;
            last.get_or_insert_default().clear();
            last.get_or_insert_default().extend_from_slice(key);
            if is_new {
                let (place, row) = payload.split_at(size_of::<u64>());
                by_place.push(place, row, execution.interrupts)?;
            }
        }
        if last.is_none() {
            return Ok(None);
        }
        while merged.known.copy(&mut merged.into, None)?.is_continue() {
            merged.check(execution)?;
        }
        merged.into.finish()?;
        self.file = Some(merged.into);
        by_place.finish(execution.interrupts).map(Some)
    }
}

/// The keys of the file, and those of a round among them.
struct Merged<'f> {
    known: Known<'f>,
    into: Temporary,
    written: u64,
}

impl Merged<'_> {
    /// Adds a key, larger than all before; `false` if it was in the file.
    fn add(&mut self, execution: &Execution<'_>, key: &[u8]) -> Result<bool> {
        self.check(execution)?;
        while self.known.copy(&mut self.into, Some(key))?.is_continue() {
            self.check(execution)?;
        }
        let is_new = self.known.key() != Some(key);
        if is_new {
            self.into.write(key, &[])?;
        }
        Ok(is_new)
    }

    fn check(&mut self, execution: &Execution<'_>) -> Result<()> {
        self.written += 1;
        match self.written.is_multiple_of(KEYS_PER_CHECK) {
            true => execution.check_interrupts(),
            false => Ok(()),
        }
    }
}

/// The keys of the file that have not been copied.
struct Known<'f> {
    file: Option<&'f Temporary>,
    reader: Reader,
    next: Record,
    ended: bool,
}

impl<'f> Known<'f> {
    fn new(file: Option<&'f Temporary>) -> Result<Known<'f>> {
        let mut known = Known {
            file,
            reader: Reader::new(0..file.map_or(0, Temporary::flushed)),
            next: Record::default(),
            ended: false,
        };
        known.step()?;
        Ok(known)
    }

    fn key(&self) -> Option<&[u8]> {
        (!self.ended).then_some(&self.next.key[..])
    }

    fn step(&mut self) -> Result<()> {
        self.ended = match self.file {
            Some(file) => !self.reader.next(file, &mut self.next)?,
            None => true,
        };
        Ok(())
    }

    /// Copies the next key, if there is one, and one below `below`.
    fn copy(&mut self, into: &mut Temporary, below: Option<&[u8]>) -> Result<ControlFlow<()>> {
        match self.key() {
            Some(key) if below.is_none_or(|below| key < below) => into.write(key, &[])?,
            _ => return Ok(ControlFlow::Break(())),
        }
        self.step()?;
        Ok(ControlFlow::Continue(()))
    }
}
