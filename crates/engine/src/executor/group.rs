//! GROUP BY and DISTINCT within a bound of memory.
//!
//! Groups come out in the order in which their first rows came in, however little memory there is. So do the rows of
//! DISTINCT, and DISTINCT arguments reach their aggregate in that order, which sums of doubles depend on.
//!
//! # Example
//!
//! A bound of two groups; the rows have the keys `b a b c a d c`:
//!
//! ```text
//!   in memory: b, a            take their rows as long as the input lasts
//!   overflow:  c₀ d₁ c₂        rows of keys that came when the table was full, with their places
//!       ▼ sort by key          c₀ c₂ │ d₁         one group at a time
//!       ▼ sort by first place  c, d
//!   out: b a c d
//! ```
//!
//! # Steps
//!
//! 1. A row whose key is in the table goes into its group. A new key enters the table while the bound allows it.
//! 2. From the first new key that does not fit, the table takes no more keys: rows of other keys go to a sorter, by
//!    key. Had the table taken a later, shorter key, that group would come out before an earlier one.
//! 3. At the end the groups of the table are complete: no row of theirs went to the sorter. They come out first.
//! 4. The sorter gives the other rows by key, in the order of arrival within a key. Each group is made by itself, and
//!    its result goes to a second sorter by the place of its first row.
//!
//! DISTINCT arguments go the same way: each group has a set of those that it has seen. When the bound is reached, new
//! ones go to one sorter for all groups and calls, from which each comes once, in the order of arrival, at the end.

use std::collections::{HashMap, HashSet};

use crate::executor::{Execution, evaluate_row};
use crate::interrupt::Interrupts;
use crate::memory;
use crate::spill::record::{read_row, read_u64, read_value, write_row, write_value};
use crate::spill::{Sorted, Sorter, SpillOptions};
use clearway_sql::aggregate::Accumulator;
use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::AggregatePlan;
use clearway_sql::value::key::encode_value;
use clearway_sql::value::{DataType, Value, encode_key};

/// Memory of a hash table's entry beside its content: its share of the table, which is up to half empty, and the
/// allocator's addition to its key.
const ENTRY_BYTES: usize = 64;

/// Memory that the states of groups in the table may take beyond the bound. A group takes its rows wherever it is, and
/// a state may grow with each: the least of short texts becomes that of long ones.
const STATE_BYTES_MAX: usize = 1 << 30;

#[cold]
fn too_much_state() -> EngineError {
    EngineError::new(SqlState::OUT_OF_MEMORY, "out of memory").with_detail(format!(
        "The values that aggregate functions keep for their groups take more than {} MB.",
        STATE_BYTES_MAX >> 20
    ))
}

/// The keys that a set has seen, as bytes.
type Seen = HashSet<Box<[u8]>>;

#[derive(Debug)]
struct Group {
    keys: Vec<Value>,
    accumulators: Vec<Accumulator>,
    /// One set a call; empty for those without DISTINCT.
    seen: Vec<Seen>,
}

/// The context of grouping: it evaluates expressions, and ends early.
#[derive(Clone, Copy)]
pub(crate) struct By<'b> {
    pub(crate) context: &'b EvalContext<'b>,
    pub(crate) interrupts: &'b Interrupts,
}

/// Takes rows into groups.
#[derive(Debug)]
pub(crate) struct Grouping {
    options: SpillOptions,
    groups: Vec<Group>,
    by_key: HashMap<Box<[u8]>, usize>,
    /// About what groups, keys and sets take.
    bytes: usize,
    /// Rows of keys that the table does not have.
    overflow: Option<Sorter>,
    /// DISTINCT arguments that no set has.
    late_arguments: Option<Sorter>,
    /// Counts what overflows.
    place: u64,
    key: Vec<u8>,
    payload: Vec<u8>,
}

impl Grouping {
    /// No groups; without GROUP BY the one that is there even without rows.
    pub(crate) fn new(plan: &AggregatePlan, options: &SpillOptions) -> Grouping {
        let mut grouping = Grouping {
            options: options.clone(),
            groups: Vec::new(),
            by_key: HashMap::new(),
            bytes: 0,
            overflow: None,
            late_arguments: None,
            place: 0,
            key: Vec::new(),
            payload: Vec::new(),
        };
        if plan.keys.is_empty() {
            grouping.add_group(plan, Vec::new());
        }
        grouping
    }

    /// True if there is memory for one group more: a table that is full doubles. Without it the rows overflow as they do
    /// at the bound.
    fn may_grow(&self) -> bool {
        let (length, entry) = (self.groups.len(), size_of::<Group>() + ENTRY_BYTES);
        length < self.groups.capacity() || memory::require(2 * length * entry).is_ok()
    }

    fn add_group(&mut self, plan: &AggregatePlan, keys: Vec<Value>) {
        let distinct = plan.calls.iter().any(|call| call.distinct);
        self.groups.push(Group {
            keys,
            accumulators: plan.calls.iter().map(|call| call.start()).collect(),
            seen: if distinct {
                plan.calls.iter().map(|_| Seen::new()).collect()
            } else {
                Vec::new()
            },
        });
    }

    /// Takes a row of the input.
    pub(crate) fn take(&mut self, by: By<'_>, plan: &AggregatePlan, row: &[Value]) -> Result<()> {
        if plan.keys.is_empty() {
            return self.take_into(by, plan, 0, row);
        }
        let mut keys = Vec::with_capacity(plan.keys.len());
        evaluate_row(&plan.keys, row, by.context, &mut keys)?;
        self.key.clear();
        for (value, data_type) in keys.iter().zip(&plan.key_types) {
            encode_value(value, *data_type, &mut self.key);
        }
        if let Some(group) = self.by_key.get(&self.key[..]) {
            return self.take_into(by, plan, *group, row);
        }
        let added = group_bytes(plan, &keys, self.key.len());
        let fits = self.groups.is_empty() || self.bytes + added <= self.options.bytes_max && self.may_grow();
        if self.overflow.is_none() && fits {
            self.bytes += added;
            self.by_key.insert(self.key.as_slice().into(), self.groups.len());
            self.add_group(plan, keys);
            return self.take_into(by, plan, self.groups.len() - 1, row);
        }
        self.payload.clear();
        self.payload.extend_from_slice(&self.place.to_be_bytes());
        self.place += 1;
        write_row(&keys, &mut self.payload);
        write_row(row, &mut self.payload);
        self.overflow
            .get_or_insert_with(|| Sorter::new(&self.options))
            .push(&self.key, &self.payload, by.interrupts)
    }

    fn take_into(&mut self, by: By<'_>, plan: &AggregatePlan, number: usize, row: &[Value]) -> Result<()> {
        let Grouping {
            options,
            groups,
            bytes,
            late_arguments,
            place,
            payload,
            key,
            ..
        } = self;
        let Group {
            accumulators, seen, ..
        } = &mut groups[number];
        for (at, (call, accumulator)) in plan.calls.iter().zip(accumulators).enumerate() {
            let before = accumulator.heap_bytes();
            call.take(accumulator, row, by.context, |value| {
                key.clear();
                encode_value(value, call.argument_type, key);
                if seen[at].contains(&key[..]) {
                    return Ok(false);
                }
                let added = key.len() + size_of::<Box<[u8]>>() + ENTRY_BYTES;
                if late_arguments.is_none() && *bytes + added <= options.bytes_max {
                    *bytes += added;
                    return Ok(seen[at].insert(key.as_slice().into()));
                }
                key.splice(0..0, argument_place(number, at));
                payload.clear();
                payload.extend_from_slice(&place.to_be_bytes());
                *place += 1;
                write_value(value, payload);
                late_arguments.get_or_insert_with(|| Sorter::new(options)).push(
                    key,
                    payload,
                    by.interrupts,
                )?;
                Ok(false)
            })?;
            *bytes = (*bytes + accumulator.heap_bytes()).saturating_sub(before);
            if *bytes > options.bytes_max.saturating_add(STATE_BYTES_MAX) {
                return Err(too_much_state());
            }
        }
        Ok(())
    }

    /// Takes the DISTINCT arguments that overflowed into their groups: each once, in the order of arrival.
    fn take_late_arguments(&mut self, by: By<'_>, plan: &AggregatePlan) -> Result<()> {
        let Some(sorter) = self.late_arguments.take() else {
            return Ok(());
        };
        for group in &mut self.groups {
            group.seen = Vec::new();
        }
        let mut by_value = sorter.finish(by.interrupts)?;
        let mut by_place = Sorter::new(&self.options);
        let (mut last, mut key) = (Vec::new(), Vec::new());
        while let Some((next, payload)) = by_value.next()? {
            if next == last {
                continue;
            }
            last.clear();
            last.extend_from_slice(next);
            let (place, value) = payload.split_at(size_of::<u64>());
            key.clear();
            key.extend_from_slice(&next[..ARGUMENT_PLACE_BYTES]);
            key.extend_from_slice(place);
            by_place.push(&key, value, by.interrupts)?;
        }
        let mut by_place = by_place.finish(by.interrupts)?;
        while let Some((mut key, mut value)) = by_place.next()? {
            let (group, call) = (read_u64(&mut key)? as usize, read_u64(&mut key)? as usize);
            let value = read_value(&mut value)?;
            plan.calls[call].take_value(&mut self.groups[group].accumulators[call], &value)?;
        }
        Ok(())
    }

    /// No more rows come: the groups.
    pub(crate) fn finish(mut self, by: By<'_>, plan: &AggregatePlan) -> Result<GroupRows> {
        self.take_late_arguments(by, plan)?;
        self.by_key = HashMap::new();
        let late = match self.overflow.take() {
            Some(sorter) => Some(late_groups(by, plan, sorter, &self.options)?),
            None => None,
        };
        Ok(GroupRows {
            groups: self.groups.into_iter(),
            late,
            row: Vec::new(),
        })
    }
}

const ARGUMENT_PLACE_BYTES: usize = 16;

/// The beginning of the key of a DISTINCT argument: whose it is.
fn argument_place(group: usize, call: usize) -> [u8; ARGUMENT_PLACE_BYTES] {
    let mut bytes = [0; ARGUMENT_PLACE_BYTES];
    bytes[..8].copy_from_slice(&(group as u64).to_be_bytes());
    bytes[8..].copy_from_slice(&(call as u64).to_be_bytes());
    bytes
}

/// About what a new group takes.
fn group_bytes(plan: &AggregatePlan, keys: &[Value], key_length: usize) -> usize {
    let texts: usize = keys.iter().filter_map(Value::as_str).map(str::len).sum();
    let distinct = plan.calls.iter().any(|call| call.distinct);
    let seen = if distinct { size_of::<Seen>() } else { 0 };
    ENTRY_BYTES
        + key_length
        + texts
        + size_of::<Group>()
        + size_of_val(keys)
        + plan.calls.len() * (size_of::<Accumulator>() + seen)
}

/// Step 4.
fn late_groups(by: By<'_>, plan: &AggregatePlan, sorter: Sorter, options: &SpillOptions) -> Result<Sorted> {
    let mut by_key = sorter.finish(by.interrupts)?;
    let mut by_place = Sorter::new(options);
    let mut current: Option<(Vec<u8>, u64, Grouping)> = None;
    let (mut keys, mut row, mut result) = (Vec::new(), Vec::new(), Vec::new());
    let mut close = |(_, place, grouping): (Vec<u8>, u64, Grouping)| -> Result<()> {
        let mut rows = grouping.finish(by, plan)?;
        while rows.next(plan)? {
            result.clear();
            write_row(rows.row(), &mut result);
            by_place.push(&place.to_be_bytes(), &result, by.interrupts)?;
        }
        Ok(())
    };
    while let Some((key, mut payload)) = by_key.next()? {
        by.interrupts.check()?;
        let place = read_u64(&mut payload)?;
        read_row(&mut payload, &mut keys)?;
        read_row(&mut payload, &mut row)?;
        if current.as_ref().is_none_or(|(last, ..)| last != key) {
            current.take().map(&mut close).transpose()?;
            let mut grouping = Grouping::new(plan, options);
            grouping.add_group(plan, std::mem::take(&mut keys));
            current = Some((key.to_vec(), place, grouping));
        }
        if let Some((_, _, grouping)) = &mut current {
            grouping.take_into(by, plan, 0, &row)?;
        }
    }
    current.take().map(&mut close).transpose()?;
    by_place.finish(by.interrupts)
}

/// The rows that grouping gives: the keys, then the aggregates' results.
#[derive(Debug)]
pub(crate) struct GroupRows {
    groups: std::vec::IntoIter<Group>,
    late: Option<Sorted>,
    row: Vec<Value>,
}

impl GroupRows {
    /// Goes to the next row, if there is one.
    pub(crate) fn next(&mut self, plan: &AggregatePlan) -> Result<bool> {
        if let Some(group) = self.groups.next() {
            self.row = group.keys;
            for (call, accumulator) in plan.calls.iter().zip(group.accumulators) {
                self.row.push(call.finish(accumulator)?);
            }
            return Ok(true);
        }
        let Some(late) = &mut self.late else {
            return Ok(false);
        };
        match late.next()? {
            Some((_, mut payload)) => read_row(&mut payload, &mut self.row).map(|()| true),
            None => Ok(false),
        }
    }

    /// The current row.
    pub(crate) fn row(&self) -> &[Value] {
        &self.row
    }
}

/// Takes rows, and tells those that came before from new ones.
#[derive(Debug)]
pub(crate) struct Distinct {
    options: SpillOptions,
    types: Vec<DataType>,
    seen: Seen,
    bytes: usize,
    overflow: Option<Sorter>,
    place: u64,
    payload: Vec<u8>,
}

impl Distinct {
    /// DISTINCT over the first columns of a row, which have these types.
    pub(crate) fn new(types: Vec<DataType>, options: &SpillOptions) -> Distinct {
        Distinct {
            options: options.clone(),
            types,
            seen: Seen::new(),
            bytes: 0,
            overflow: None,
            place: 0,
            payload: Vec::new(),
        }
    }

    /// True if the row is new, and comes out now. One that is not may still come, from [`rest`](Self::rest).
    pub(crate) fn take(&mut self, execution: &Execution<'_>, row: &[Value]) -> Result<bool> {
        let key = encode_key(row, &self.types);
        if self.seen.contains(&key[..]) {
            return Ok(false);
        }
        let added = key.len() + size_of::<Box<[u8]>>() + ENTRY_BYTES;
        let fits = self.seen.is_empty() || self.bytes + added <= self.options.bytes_max;
        if self.overflow.is_none() && fits {
            self.bytes += added;
            return Ok(self.seen.insert(key.into_boxed_slice()));
        }
        self.payload.clear();
        self.payload.extend_from_slice(&self.place.to_be_bytes());
        self.place += 1;
        write_row(row, &mut self.payload);
        self.overflow
            .get_or_insert_with(|| Sorter::new(&self.options))
            .push(&key, &self.payload, execution.interrupts)?;
        Ok(false)
    }

    /// No more rows come: the new ones that did not come out, in the order of arrival.
    pub(crate) fn rest(self, execution: &Execution<'_>) -> Result<Option<Sorted>> {
        let Some(sorter) = self.overflow else {
            return Ok(None);
        };
        drop(self.seen);
        let mut by_key = sorter.finish(execution.interrupts)?;
        let mut by_place = Sorter::new(&self.options);
        let mut last = Vec::new();
        while let Some((key, payload)) = by_key.next()? {
            if key == last {
                continue;
            }
            last.clear();
            last.extend_from_slice(key);
            let (place, row) = payload.split_at(size_of::<u64>());
            by_place.push(place, row, execution.interrupts)?;
        }
        by_place.finish(execution.interrupts).map(Some)
    }
}
