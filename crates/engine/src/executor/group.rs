//! GROUP BY and DISTINCT within a bound of memory.
//!
//! Groups come out in the order in which their first rows came in, however little memory there is, and so do the rows of
//! DISTINCT.
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
//! With grouping sets each row goes into a group of each set. The number of the set is the beginning of a group's key, so
//! that all sets share the table, the bound and the sorter; an empty set has its group from the start.
//!
//! A key's bytes tell equal values from others and have no order: of a long value they are its digest. A key that is late
//! (`long_values`) is restored as long as that takes, and its group keeps the place of the value.
//!
//! A call that takes its rows in an order (DISTINCT, ORDER BY, WITHIN GROUP) is given none until the end. What it takes
//! goes to one sorter for all groups and calls, by group, call and the order's keys. There equals stand side by side, and
//! a call that is DISTINCT takes the first of them. A set keeps the keys that such calls have seen while the bound allows
//! it, so that many equals do not all go to the sorter.

use std::collections::{HashMap, HashSet};

use crate::executor::key_hash::KeyHash;
use crate::executor::long_values::restored;
use crate::executor::{Execution, evaluate_row};
use crate::interrupt::Interrupts;
use crate::memory;
use crate::spill::record::{read_row, read_u64, write_row, write_sort_key};
use crate::spill::{Sorted, Sorter, SpillOptions};
use clearway_sql::aggregate::{Accumulator, AggregateCall};
use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::AggregatePlan;
use clearway_sql::value::key::encode_identity;
use clearway_sql::value::{DataType, Value, encode_identities};
use clearway_storage::Storage;

/// Memory of a hash table's entry beside its content: its share of the table, which is up to half empty, and the
/// allocator's addition to its key.
const ENTRY_BYTES: usize = 64;

/// Memory that the states of groups in the table may take beyond the bound. A group takes its rows wherever it is, and
/// a state may grow with each: the least of short texts becomes that of long ones.
const STATE_BYTES_MAX: usize = 1 << 30;

/// The most bytes of the list of a row's keys that are kept for the next row.
const IDENTITIES_KEPT: usize = 1 << 20;

/// Counts a state that had `before` bytes on the heap; 53200 if all of them have too many.
fn count_state(bytes: &mut usize, options: &SpillOptions, before: usize, state: &Accumulator) -> Result<()> {
    *bytes = (*bytes + state.heap_bytes()).saturating_sub(before);
    check_state(*bytes, options)
}

/// 53200 if states of aggregates have so many bytes that they are too many.
pub(crate) fn check_state(bytes: usize, options: &SpillOptions) -> Result<()> {
    if bytes > options.bytes_max.saturating_add(STATE_BYTES_MAX) {
        return Err(too_much_state());
    }
    Ok(())
}

#[cold]
fn too_much_state() -> EngineError {
    EngineError::new(SqlState::OUT_OF_MEMORY, "out of memory").with_detail(format!(
        "The values that aggregate functions keep for their groups take more than {} MB.",
        STATE_BYTES_MAX >> 20
    ))
}

/// The keys that a set has seen, as bytes.
type Seen = HashSet<Box<[u8]>, KeyHash>;

#[derive(Debug)]
struct Group {
    /// The number of its grouping set; 0 if there is one only.
    set: usize,
    keys: Box<[Value]>,
    accumulators: Box<[Accumulator]>,
    /// Rows that wait in the sorter, a number a call; empty if no call takes its rows in an order.
    waiting: Box<[i64]>,
}

/// The context of grouping: it evaluates expressions, restores long values, and ends early.
#[derive(Clone, Copy)]
pub(crate) struct By<'b> {
    pub(crate) context: &'b EvalContext<'b>,
    pub(crate) storage: &'b Storage,
    pub(crate) interrupts: &'b Interrupts,
}

impl<'b> By<'b> {
    pub(crate) fn of(
        context: &'b EvalContext<'b>,
        storage: &'b Storage,
        interrupts: &'b Interrupts,
    ) -> By<'b> {
        By {
            context,
            storage,
            interrupts,
        }
    }
}

/// Takes rows into groups.
#[derive(Debug)]
pub(crate) struct Grouping {
    options: SpillOptions,
    groups: Vec<Group>,
    by_key: HashMap<Box<[u8]>, usize, KeyHash>,
    /// About what groups, keys and sets take.
    bytes: usize,
    /// Rows of keys that the table does not have.
    overflow: Option<Sorter>,
    /// Arguments of calls that take them in an order.
    arguments: Option<Box<Arguments>>,
    /// Counts what overflows.
    place: u64,
    /// Those of the row that is being taken.
    keys: Vec<Value>,
    /// With grouping sets, the bytes of each of these keys, one behind the other, and where each ends: a long value is restored
    /// once for all sets.
    identities: Vec<u8>,
    ends: Vec<usize>,
    key: Vec<u8>,
    payload: Vec<u8>,
}

impl Grouping {
    /// No groups but those that are there even without rows: without GROUP BY, and of empty sets.
    pub(crate) fn new(plan: &AggregatePlan, options: &SpillOptions) -> Grouping {
        let mut grouping = Grouping::empty(options);
        if plan.keys.is_empty() && plan.sets.is_empty() {
            grouping.add_group(plan, 0, Box::default());
        }
        for (set, _) in plan.sets.iter().enumerate().filter(|(_, keys)| keys.is_empty()) {
            let key = set_bytes(set);
            grouping.bytes += group_bytes(plan, &[], key.len());
            grouping.by_key.insert(key.into(), grouping.groups.len());
            grouping.add_group(plan, set, vec![Value::Null; plan.keys.len()].into());
        }
        grouping
    }

    fn empty(options: &SpillOptions) -> Grouping {
        Grouping {
            options: options.clone(),
            groups: Vec::new(),
            by_key: HashMap::default(),
            bytes: 0,
            overflow: None,
            arguments: None,
            place: 0,
            keys: Vec::new(),
            identities: Vec::new(),
            ends: Vec::new(),
            key: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// True if there is memory for one group more: a table that is full doubles. Without it the rows overflow as they do
    /// at the bound.
    fn may_grow(&self) -> bool {
        let (length, entry) = (self.groups.len(), size_of::<Group>() + ENTRY_BYTES);
        length < self.groups.capacity() || memory::require(2 * length * entry).is_ok()
    }

    fn add_group(&mut self, plan: &AggregatePlan, set: usize, keys: Box<[Value]>) {
        self.groups.push(Group {
            set,
            keys,
            accumulators: plan.calls.iter().map(AggregateCall::start).collect(),
            waiting: vec![0; counters(plan)].into(),
        });
    }

    /// Takes a row of the input.
    pub(crate) fn take(&mut self, by: By<'_>, plan: &AggregatePlan, row: &[Value]) -> Result<()> {
        if plan.keys.is_empty() && plan.sets.is_empty() {
            return self.take_into(by, plan, 0, row);
        }
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        evaluate_row(&plan.keys, row, by.context, &mut keys)?;
        if plan.sets.is_empty() {
            self.key.clear();
            for (number, value) in keys.iter().enumerate() {
                push_key(by, plan, number, value, &mut self.key)?;
            }
            self.take_by_key(by, plan, 0, &mut keys, row)?;
            self.keys = keys;
            return Ok(());
        }
        self.identities.clear();
        self.ends.clear();
        for (number, value) in keys.iter().enumerate() {
            push_key(by, plan, number, value, &mut self.identities)?;
            self.ends.push(self.identities.len());
        }
        for (number, set) in plan.sets.iter().enumerate() {
            by.interrupts.check()?;
            let mut of_set = vec![Value::Null; keys.len()];
            self.key.clear();
            self.key.extend_from_slice(&set_bytes(number));
            for key in set.iter().map(|key| usize::from(*key)) {
                let start = key.checked_sub(1).map_or(0, |before| self.ends[before]);
                self.key
                    .extend_from_slice(&self.identities[start..self.ends[key]]);
                of_set[key] = keys[key].clone();
            }
            self.take_by_key(by, plan, number, &mut of_set, row)?;
        }
        // Those of a row with long values are not kept for the rest of the query.
        if self.identities.capacity() > IDENTITIES_KEPT {
            self.identities = Vec::new();
        }
        self.keys = keys;
        Ok(())
    }

    /// Takes a row into the group of the key that has been made of these keys of a set. A new group takes the keys.
    fn take_by_key(
        &mut self,
        by: By<'_>,
        plan: &AggregatePlan,
        set: usize,
        keys: &mut Vec<Value>,
        row: &[Value],
    ) -> Result<()> {
        if let Some(group) = self.by_key.get(&self.key[..]) {
            return self.take_into(by, plan, *group, row);
        }
        let added = group_bytes(plan, keys, self.key.len());
        let fits = self.groups.is_empty() || self.bytes + added <= self.options.bytes_max && self.may_grow();
        if self.overflow.is_none() && fits {
            self.bytes += added;
            self.by_key.insert(self.key.as_slice().into(), self.groups.len());
            self.add_group(plan, set, keys.drain(..).collect());
            return self.take_into(by, plan, self.groups.len() - 1, row);
        }
        self.payload.clear();
        self.payload.extend_from_slice(&self.place.to_be_bytes());
        self.payload.extend_from_slice(&(set as u64).to_be_bytes());
        self.place += 1;
        write_row(keys, &mut self.payload);
        write_row(row, &mut self.payload);
        self.overflow
            .get_or_insert_with(|| Sorter::new(&self.options))
            .push(&self.key, &self.payload, by.interrupts)
    }

    fn take_into(&mut self, by: By<'_>, plan: &AggregatePlan, number: usize, row: &[Value]) -> Result<()> {
        let Group {
            accumulators,
            waiting,
            ..
        } = &mut self.groups[number];
        for (at, (call, accumulator)) in plan.calls.iter().zip(&mut accumulators[..]).enumerate() {
            if call.is_ordered() {
                let arguments = self
                    .arguments
                    .get_or_insert_with(|| Arguments::new(&self.options));
                if arguments.take(by, call, (number, at), row, &mut self.bytes)? {
                    waiting[at] += 1;
                }
                continue;
            }
            let before = accumulator.heap_bytes();
            call.take(accumulator, row, by.context)?;
            count_state(&mut self.bytes, &self.options, before, accumulator)?;
        }
        Ok(())
    }

    /// Gives the rows that wait to their calls, in order.
    fn take_arguments(&mut self, by: By<'_>, plan: &AggregatePlan) -> Result<()> {
        // Direct arguments are looked at also where no row is.
        for (at, call) in plan
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| !call.direct.is_empty())
        {
            for group in self.groups.iter_mut().filter(|group| group.waiting[at] == 0) {
                group.accumulators[at] = start_in_order(by, call, &group.keys, 0)?;
            }
        }
        let Some(arguments) = self.arguments.take() else {
            return Ok(());
        };
        let mut sorted = arguments.sorter.finish(by.interrupts)?;
        let (mut last, mut values) = (Vec::new(), Vec::new());
        while let Some((key, mut payload)) = sorted.next()? {
            by.interrupts.check()?;
            let mut place = key;
            let (group, at) = (read_u64(&mut place)? as usize, read_u64(&mut place)? as usize);
            let (call, group) = (&plan.calls[at], &mut self.groups[group]);
            let state = &mut group.accumulators[at];
            if last.get(..PLACE_BYTES) != Some(&key[..PLACE_BYTES]) {
                *state = start_in_order(by, call, &group.keys, group.waiting[at])?;
            } else if call.distinct && last == key {
                continue;
            }
            last.clear();
            last.extend_from_slice(key);
            read_row(&mut payload, &mut values)?;
            let before = state.heap_bytes();
            call.take_values(state, &values)?;
            count_state(&mut self.bytes, &self.options, before, state)?;
        }
        Ok(())
    }

    /// No more rows come: the groups.
    pub(crate) fn finish(mut self, by: By<'_>, plan: &AggregatePlan) -> Result<GroupRows> {
        self.take_arguments(by, plan)?;
        self.by_key = HashMap::default();
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

/// The state of a call with this number of rows, in the group with these keys.
fn start_in_order(by: By<'_>, call: &AggregateCall, keys: &[Value], rows: i64) -> Result<Accumulator> {
    let direct = call.direct.iter().map(|expr| expr.eval(keys, by.context));
    call.start_in_order(rows, direct.collect::<Result<_>>()?)
}

/// Arguments of calls that take them in an order, on their way to the sorter.
#[derive(Debug)]
struct Arguments {
    sorter: Sorter,
    /// Keys of DISTINCT calls that have gone there.
    seen: Seen,
    inputs: Vec<Value>,
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// The beginning of a key: the numbers of the group and of the call.
const PLACE_BYTES: usize = 16;

impl Arguments {
    fn new(options: &SpillOptions) -> Box<Arguments> {
        Box::new(Arguments {
            sorter: Sorter::new(options),
            seen: Seen::default(),
            inputs: Vec::new(),
            key: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// Takes what a call takes of a row; `false` if that is nothing. `bytes`: what the grouping keeps.
    fn take(
        &mut self,
        by: By<'_>,
        call: &AggregateCall,
        (group, at): (usize, usize),
        row: &[Value],
        bytes: &mut usize,
    ) -> Result<bool> {
        if !call.inputs_of(row, by.context, &mut self.inputs)? {
            return Ok(false);
        }
        self.key.clear();
        self.key.extend_from_slice(&(group as u64).to_be_bytes());
        self.key.extend_from_slice(&(at as u64).to_be_bytes());
        write_sort_key(&self.inputs, &call.order, &mut self.key);
        if call.distinct {
            if self.seen.contains(&self.key[..]) {
                return Ok(false);
            }
            let added = self.key.len() + size_of::<Box<[u8]>>() + ENTRY_BYTES;
            if *bytes + added <= self.sorter.bytes_max() && memory::require(2 * added).is_ok() {
                *bytes += added;
                self.seen.insert(self.key.as_slice().into());
            }
        }
        self.payload.clear();
        write_row(&self.inputs[..call.argument_types.len()], &mut self.payload);
        self.sorter.push(&self.key, &self.payload, by.interrupts)?;
        Ok(true)
    }
}

/// Appends the bytes that tell the values of a key from each other. One that is late is restored as long as that takes.
#[inline]
fn push_key(by: By<'_>, plan: &AggregatePlan, number: usize, value: &Value, key: &mut Vec<u8>) -> Result<()> {
    let data_type = plan.key_types[number];
    if !matches!(value, Value::Stored(_)) {
        encode_identity(value, data_type, key);
        return Ok(());
    }
    let late = plan.late_keys.iter().find(|late| usize::from(late.at) == number);
    let late = late.ok_or_else(|| EngineError::internal("a key that is not late is the place of a value"))?;
    encode_identity(&restored(by.storage, by.interrupts, late, value)?, data_type, key);
    Ok(())
}

/// The beginning of the key of a group of this grouping set.
fn set_bytes(set: usize) -> [u8; 2] {
    (set as u16).to_be_bytes()
}

/// About what a new group takes.
fn group_bytes(plan: &AggregatePlan, keys: &[Value], key_length: usize) -> usize {
    let texts: usize = keys.iter().filter_map(Value::as_str).map(str::len).sum();
    ENTRY_BYTES
        + key_length
        + texts
        + size_of::<Group>()
        + size_of_val(keys)
        + plan.calls.len() * size_of::<Accumulator>()
        + counters(plan) * size_of::<i64>()
}

/// The number of counters of rows that wait, in a group.
fn counters(plan: &AggregatePlan) -> usize {
    match plan.calls.iter().any(AggregateCall::is_ordered) {
        true => plan.calls.len(),
        false => 0,
    }
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
        let set = read_u64(&mut payload)? as usize;
        read_row(&mut payload, &mut keys)?;
        read_row(&mut payload, &mut row)?;
        if current.as_ref().is_none_or(|(last, ..)| last != key) {
            current.take().map(&mut close).transpose()?;
            let mut grouping = Grouping::empty(options);
            grouping.add_group(plan, set, keys.drain(..).collect());
            current = Some((key.to_vec(), place, grouping));
        }
        if let Some((_, _, grouping)) = &mut current {
            grouping.take_into(by, plan, 0, &row)?;
        }
    }
    current.take().map(&mut close).transpose()?;
    by_place.finish(by.interrupts)
}

/// The rows that grouping gives: the keys, the aggregates' results, the values of GROUPING.
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
            self.row.clear();
            self.row.extend(group.keys);
            for (call, accumulator) in plan.calls.iter().zip(group.accumulators) {
                self.row.push(call.finish(accumulator)?);
            }
            let groupings = plan.groupings.iter();
            self.row
                .extend(groupings.map(|keys| Value::Int4(plan.grouping(keys, group.set))));
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

    /// The current row, with the places of long values in the keys that are late.
    pub(crate) fn row(&self) -> &[Value] {
        &self.row
    }

    /// The same, to restore them, or to take values out: the next row does not need them.
    pub(crate) fn row_mut(&mut self) -> &mut [Value] {
        &mut self.row
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
            seen: Seen::default(),
            bytes: 0,
            overflow: None,
            place: 0,
            payload: Vec::new(),
        }
    }

    /// True if the row is new, and comes out now. One that is not may still come, from [`rest`](Self::rest).
    pub(crate) fn take(&mut self, execution: &Execution<'_>, row: &[Value]) -> Result<bool> {
        let key = encode_identities(row, &self.types);
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

    /// The rows since the last call that may be new, by key, and their places in the order of arrival; `None` as long
    /// as the bound has not been reached. Keys that are new by then are not noted here.
    pub(super) fn undecided(&mut self) -> Option<Sorter> {
        let fresh = || Sorter::new(&self.options);
        self.overflow
            .as_mut()
            .map(|sorter| std::mem::replace(sorter, fresh()))
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
