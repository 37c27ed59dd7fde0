//! The access paths of a scan, and the key ranges an index scan reads.
//!
//! The path is chosen once, when the statement is bound (`choose`); the keys themselves are expressions,
//! evaluated each time it runs ([`AccessPath::key_ranges`]). A key expression keeps the type it was written with: a
//! bigint compared with an integer column is turned into the column's type only at run time, where a value the column
//! cannot hold becomes an empty or an open range rather than an overflow.

use crate::catalog::TableDef;
use crate::implication::predicate_follows;
use crate::index::{IndexDef, IndexedValue};
use std::borrow::Cow;
use std::sync::Arc;

use crate::context::EvalContext;
use crate::error::{EngineError, Result};
use crate::expr::{CompareOp, Expr};
use crate::value::cast::{CastContext, can_cast};
use crate::value::key::{encode_value, successor};
use crate::value::{DataType, Value};

/// The way in which the rows of a table are found.
#[derive(Debug, Clone)]
pub enum AccessPath {
    /// Read all of it.
    Sequential,
    /// Look up one key, at most one row: all columns of a unique index are given.
    UniquePoint {
        /// Position in the table's `indexes`.
        index: usize,
        /// One expression per index column.
        key: Vec<Expr>,
    },
    /// Look up several values of the index's first column (IN, = ANY), each like a range of one value.
    Points {
        /// Position in the table's `indexes`.
        index: usize,
        /// The values; an array, where the column has none, stands for its elements.
        values: Vec<Expr>,
    },
    /// Read a range of an index: some leading columns given, then bounds on the next.
    Range {
        /// Position in the table's `indexes`.
        index: usize,
        /// One expression per leading column.
        prefix: Vec<Expr>,
        /// On the column after the prefix.
        lower: Option<RangeBound>,
        /// On the column after the prefix.
        upper: Option<RangeBound>,
        /// Leave out NULLs of the column after the prefix even without bounds (min, max).
        skip_nulls: bool,
        /// From the end backwards.
        reverse: bool,
    },
    /// The row that a cursor is on (WHERE CURRENT OF).
    CurrentOf(String),
}

/// One end of a range.
#[derive(Debug, Clone)]
pub struct RangeBound {
    /// Its value.
    pub expr: Expr,
    /// True if the value itself belongs to the range.
    pub inclusive: bool,
}

/// A run of index keys: `lower` ≤ key < `upper`, bytes compared as unsigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key.
    pub lower: Vec<u8>,
    /// First key after; `None` = to the end.
    pub upper: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys that begin with `prefix`.
    pub fn with_prefix(prefix: Vec<u8>) -> KeyRange {
        let upper = successor(&prefix);
        KeyRange { lower: prefix, upper }
    }
}

impl AccessPath {
    /// The index used, as a position in the table's `indexes`.
    pub fn index(&self) -> Option<usize> {
        match self {
            AccessPath::Sequential | AccessPath::CurrentOf(_) => None,
            AccessPath::UniquePoint { index, .. }
            | AccessPath::Points { index, .. }
            | AccessPath::Range { index, .. } => Some(*index),
        }
    }

    /// For [`AccessPath::UniquePoint`]: writes the key into `buffer`. `false`: no row can match (a NULL, or a value
    /// that the column's type cannot hold).
    #[inline]
    pub fn point_key(
        &self,
        table: &TableDef,
        context: &EvalContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<bool> {
        let AccessPath::UniquePoint { index, key } = self else {
            return Ok(false);
        };
        buffer.clear();
        let types = &table.indexes[*index].types;
        for (expr, data_type) in key.iter().zip(types) {
            let computed;
            let value = match expr {
                Expr::Parameter(number) => &context.params[usize::from(*number)],
                Expr::Constant(value) => value,
                other => {
                    computed = other.eval(&[], context)?;
                    &computed
                }
            };
            match fit(value, *data_type)? {
                Fit::Fits => encode_value(value, *data_type, buffer),
                Fit::Converted(value) => encode_value(&value, *data_type, buffer),
                Fit::Null | Fit::TooLow | Fit::TooHigh => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The key ranges to read, in index order (the caller goes through them backwards for a reverse scan); empty when
    /// nothing can match. Not for [`AccessPath::Sequential`] and
    /// [`AccessPath::CurrentOf`].
    pub fn key_ranges(&self, table: &TableDef, context: &EvalContext<'_>) -> Result<Vec<KeyRange>> {
        match self {
            AccessPath::Sequential | AccessPath::CurrentOf(_) => Ok(Vec::new()),
            AccessPath::UniquePoint { .. } => {
                let mut key = Vec::new();
                Ok(match self.point_key(table, context, &mut key)? {
                    true => vec![KeyRange::with_prefix(key)],
                    false => Vec::new(),
                })
            }
            AccessPath::Points { index, values } => {
                let data_type = table.indexes[*index].types[0];
                let mut keys = Vec::with_capacity(values.len());
                for expr in values {
                    let value = expr.eval(&[], context)?;
                    let all = match &value {
                        Value::Array(array) if !data_type.is_array() => array.elements(),
                        one => std::slice::from_ref(one),
                    };
                    for value in all {
                        let mut key = Vec::new();
                        if push_value(value, data_type, &mut key)? {
                            keys.push(key);
                        }
                    }
                }
                keys.sort_unstable();
                keys.dedup();
                Ok(keys.into_iter().map(KeyRange::with_prefix).collect())
            }
            AccessPath::Range {
                index,
                prefix,
                lower,
                upper,
                skip_nulls,
                ..
            } => {
                let types = &table.indexes[*index].types;
                let mut start = Vec::new();
                for (expr, data_type) in prefix.iter().zip(types) {
                    if !push_exact(expr, *data_type, context, &mut start)? {
                        return Ok(Vec::new());
                    }
                }
                let whole = KeyRange::with_prefix(start.clone());
                if lower.is_none() && upper.is_none() && !skip_nulls {
                    return Ok(vec![whole]);
                }
                // A bound leaves out NULLs, and they lie behind all values.
                let data_type = types[prefix.len()];
                let mut range = KeyRange {
                    lower: start.clone(),
                    upper: Some(start.clone()),
                };
                encode_value(&Value::Null, data_type, range.upper.as_mut().expect("just set"));
                if let Some(bound) = lower {
                    let value = bound.expr.eval(&[], context)?;
                    match bound_key(&value, data_type, &start)? {
                        BoundKey::Key(key) if bound.inclusive => range.lower = key,
                        BoundKey::Key(key) => match successor(&key) {
                            Some(next) => range.lower = next,
                            None => return Ok(Vec::new()),
                        },
                        BoundKey::BelowAll => {}
                        BoundKey::AboveAll | BoundKey::Null => return Ok(Vec::new()),
                    }
                }
                if let Some(bound) = upper {
                    let value = bound.expr.eval(&[], context)?;
                    match bound_key(&value, data_type, &start)? {
                        BoundKey::Key(key) if bound.inclusive => range.upper = successor(&key),
                        BoundKey::Key(key) => range.upper = Some(key),
                        BoundKey::AboveAll => {}
                        BoundKey::BelowAll | BoundKey::Null => return Ok(Vec::new()),
                    }
                }
                let empty = range.upper.as_ref().is_some_and(|upper| range.lower >= *upper);
                Ok(if empty { Vec::new() } else { vec![range] })
            }
        }
    }
}

/// Appends the key bytes of exactly this value; `false` if the column cannot hold it.
fn push_exact(
    expr: &Expr,
    data_type: DataType,
    context: &EvalContext<'_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    push_value(&expr.eval(&[], context)?, data_type, key)
}

fn push_value(value: &Value, data_type: DataType, key: &mut Vec<u8>) -> Result<bool> {
    match fit(value, data_type)? {
        Fit::Fits => encode_value(value, data_type, key),
        Fit::Converted(value) => encode_value(&value, data_type, key),
        Fit::Null | Fit::TooLow | Fit::TooHigh => return Ok(false),
    }
    Ok(true)
}

enum BoundKey {
    Key(Vec<u8>),
    BelowAll,
    AboveAll,
    Null,
}

fn bound_key(value: &Value, data_type: DataType, prefix: &[u8]) -> Result<BoundKey> {
    let mut key = prefix.to_vec();
    Ok(match fit(value, data_type)? {
        Fit::Fits => {
            encode_value(value, data_type, &mut key);
            BoundKey::Key(key)
        }
        Fit::Converted(value) => {
            encode_value(&value, data_type, &mut key);
            BoundKey::Key(key)
        }
        Fit::Null => BoundKey::Null,
        Fit::TooLow => BoundKey::BelowAll,
        Fit::TooHigh => BoundKey::AboveAll,
    })
}

enum Fit {
    Fits,
    Converted(Value),
    Null,
    TooLow,
    TooHigh,
}

/// True if a value is one of the column's type; integers of another width are converted. A value of any other type has
/// no key in this index, and no rows must be left out because of it: that is an error.
#[inline]
fn fit(value: &Value, data_type: DataType) -> Result<Fit> {
    Ok(match (value, data_type) {
        (Value::Null, _) => Fit::Null,
        (Value::Int2(_), DataType::Int2)
        | (Value::Int4(_), DataType::Int4)
        | (Value::Int8(_), DataType::Int8)
        | (Value::Oid(_), DataType::Xid | DataType::Cid) => Fit::Fits,
        (Value::Oid(_), kind) if kind.is_oid() => Fit::Fits,
        (_, kind) if kind.is_whole() => {
            let Some(wide) = value.as_i64() else {
                return Err(wrong_type(value, data_type));
            };
            let converted = match data_type {
                DataType::Int2 => i16::try_from(wide).map(Value::Int2).ok(),
                DataType::Int4 => i32::try_from(wide).map(Value::Int4).ok(),
                kind if kind.is_oid() => u32::try_from(wide).map(Value::Oid).ok(),
                _ => Some(Value::Int8(wide)),
            };
            match converted {
                Some(value) => Fit::Converted(value),
                None if wide < 0 => Fit::TooLow,
                None => Fit::TooHigh,
            }
        }
        (Value::Text(_), kind) if kind.is_string() => Fit::Fits,
        (value, kind) if value.natural_type() == kind => Fit::Fits,
        _ => return Err(wrong_type(value, data_type)),
    })
}

#[cold]
fn wrong_type(value: &Value, data_type: DataType) -> EngineError {
    EngineError::internal(format!(
        "a value of type {} is sought in an index over {data_type}",
        value.natural_type()
    ))
}

/// One condition of a WHERE clause that an index may serve: `input op value`, the value the same for all rows.
struct Condition<'a> {
    /// Its place among the conditions.
    at: usize,
    /// The column, if the input is one in the order of the comparison.
    column: Option<u16>,
    input: &'a Expr,
    data_type: DataType,
    op: CompareOp,
    value: Cow<'a, Expr>,
    /// True if the condition follows from the comparison, and not only the other way.
    is_guaranteed: bool,
}

impl Condition<'_> {
    /// True if its input is this part of an index's key, in the order of the comparison.
    fn is_of(&self, index: &IndexDef, at: usize) -> bool {
        is_key(index, at, self.column, self.input, self.data_type)
    }
}

/// True if `input`, compared as `data_type`, is this part of an index's key; `column`: the column that it is.
fn is_key(index: &IndexDef, at: usize, column: Option<u16>, input: &Expr, data_type: DataType) -> bool {
    match index.keys.get(at).map(|key| &key.value) {
        None => false,
        Some(IndexedValue::Column(own)) => column == Some(*own),
        Some(IndexedValue::Expression(kept)) => {
            let own = index.types[at];
            kept.simplified == *input
                && (own == data_type
                    || (own.is_string()
                        && data_type.is_string()
                        && own != DataType::Char
                        && data_type != DataType::Char))
        }
    }
}

/// A chosen path.
pub struct Choice {
    /// The path.
    pub access: AccessPath,
    /// The conditions (by place) that the path guarantees, so that they need not be looked at again.
    pub guaranteed: Vec<usize>,
}

/// The cost of a path with the conditions that it leaves; `None` where nothing is known of the table.
pub(crate) type PathCost<'a> = dyn Fn(&AccessPath, &[Expr]) -> Option<f64> + 'a;

/// Chooses the path for the conditions (joined by AND) over a table: a unique key given in full, whatever it costs; else
/// the cheapest. Of a table that nothing is known of: the index with most columns given, then one with a range; else an IN
/// list; else all rows.
pub(crate) fn choose(table: &TableDef, conditions: &[Expr], cost: &PathCost<'_>) -> Choice {
    let usable = usable_conditions(table, conditions);
    let mut choices: Vec<(u32, Choice)> = Vec::new();
    for (number, index) in table.indexes.iter().enumerate() {
        if has_all(index, conditions) {
            choices.extend(consider(number, index, &usable));
        }
    }
    let by_key = |(_, choice): &&(u32, Choice)| matches!(choice.access, AccessPath::UniquePoint { .. });
    let has_key = choices.iter().any(|choice| by_key(&choice));
    if !has_key {
        choices.extend(points(table, conditions).map(|choice| (0, choice)));
    }
    let sequential = Choice {
        access: AccessPath::Sequential,
        guaranteed: Vec::new(),
    };
    let costs = |choice: &Choice| {
        let rest = conditions.iter().enumerate();
        let rest = rest.filter(|(at, _)| !choice.guaranteed.contains(at));
        cost(
            &choice.access,
            &rest.map(|(_, condition)| condition.clone()).collect::<Vec<_>>(),
        )
    };
    match costs(&sequential).filter(|_| !choices.is_empty()) {
        Some(of_all) => {
            let mut best = (of_all, sequential);
            for (_, choice) in choices.into_iter().rev() {
                let own = costs(&choice).unwrap_or(f64::INFINITY);
                if own <= best.0 {
                    best = (own, choice);
                }
            }
            best.1
        }
        None => {
            let mut best: Option<(u32, Choice)> = None;
            for (score, choice) in choices {
                if best.as_ref().is_none_or(|(other, _)| score > *other) {
                    best = Some((score, choice));
                }
            }
            best.map_or(sequential, |(_, choice)| choice)
        }
    }
}

/// True if the conditions give all columns of a unique index.
pub(crate) fn is_by_key(table: &TableDef, conditions: &[Expr]) -> bool {
    let usable = usable_conditions(table, conditions);
    let is_given = |index: &IndexDef, at: usize| {
        usable
            .iter()
            .any(|found| found.op == CompareOp::Equal && found.is_of(index, at))
    };
    let mut indexes = table.indexes.iter().filter(|index| index.is_always_unique());
    indexes.any(|index| has_all(index, conditions) && (0..index.keys.len()).all(|at| is_given(index, at)))
}

/// True if an index has an entry for each row that passes the conditions: each part of its predicate follows from one.
fn has_all(index: &IndexDef, conditions: &[Expr]) -> bool {
    match &index.predicate {
        None => true,
        Some(predicate) => predicate_follows(&predicate.simplified, conditions),
    }
}

fn usable_conditions<'a>(table: &TableDef, conditions: &'a [Expr]) -> Vec<Condition<'a>> {
    let mut usable = Vec::new();
    for (at, expr) in conditions.iter().enumerate() {
        usable.extend(condition(table, at, expr));
        usable.extend(begins_with(table, at, expr).into_iter().flatten());
    }
    usable
}

fn consider(number: usize, index: &IndexDef, usable: &[Condition<'_>]) -> Option<(u32, Choice)> {
    let mut guaranteed = Vec::new();
    let mut prefix = Vec::new();
    for at in 0..index.keys.len() {
        let mut found = usable.iter();
        match found.find(|found| found.op == CompareOp::Equal && found.is_of(index, at)) {
            Some(found) => {
                prefix.push((*found.value).clone());
                guaranteed.push(found.at);
            }
            None => break,
        }
    }
    let given = prefix.len() as u32;
    if index.is_always_unique() && prefix.len() == index.keys.len() {
        let access = AccessPath::UniquePoint {
            index: number,
            key: prefix,
        };
        return Some((1_000 + given, Choice { access, guaranteed }));
    }
    let mut bound = |wanted: [CompareOp; 2]| {
        let mut found = usable.iter();
        let found = found.find(|found| wanted.contains(&found.op) && found.is_of(index, prefix.len()))?;
        guaranteed.extend(found.is_guaranteed.then_some(found.at));
        Some(RangeBound {
            expr: (*found.value).clone(),
            inclusive: found.op == wanted[1],
        })
    };
    let lower = bound([CompareOp::Greater, CompareOp::GreaterOrEqual]);
    let upper = bound([CompareOp::Less, CompareOp::LessOrEqual]);
    let bounds = u32::from(lower.is_some()) + u32::from(upper.is_some());
    if given == 0 && bounds == 0 {
        return None;
    }
    let access = AccessPath::Range {
        index: number,
        prefix,
        lower,
        upper,
        skip_nulls: false,
        reverse: false,
    };
    Some((given * 10 + bounds, Choice { access, guaranteed }))
}

/// `column IN (values)` or `column = ANY (array)` over the first column of an index.
fn points(table: &TableDef, conditions: &[Expr]) -> Option<Choice> {
    for (at, expr) in conditions.iter().enumerate() {
        let (input, list, data_type) = match expr {
            Expr::InList {
                input,
                list,
                data_type,
                negated: false,
            } => (input, list.as_slice(), data_type),
            Expr::Quantified {
                op: CompareOp::Equal,
                all: false,
                input,
                array,
                data_type,
            } if !data_type.is_array() => (input, std::slice::from_ref(&**array), data_type),
            _ => continue,
        };
        if !list.iter().all(|value| value.is_stable()) {
            continue;
        }
        let column = plain_column(table, input, *data_type);
        let mut indexes = table.indexes.iter();
        let leads =
            |index: &Arc<IndexDef>| is_key(index, 0, column, input, *data_type) && has_all(index, conditions);
        if let Some(index) = indexes.position(leads) {
            let values = list.to_vec();
            return Some(Choice {
                access: AccessPath::Points { index, values },
                guaranteed: vec![at],
            });
        }
    }
    None
}

fn condition<'a>(table: &TableDef, at: usize, expr: &'a Expr) -> Option<Condition<'a>> {
    let Expr::Compare {
        op,
        left,
        right,
        data_type,
    } = expr
    else {
        return None;
    };
    if *op == CompareOp::NotEqual {
        return None;
    }
    let compared = |input: &'a Expr, op: CompareOp, value: &'a Expr| Condition {
        at,
        column: plain_column(table, input, *data_type),
        input,
        data_type: *data_type,
        op,
        value: Cow::Borrowed(value),
        is_guaranteed: true,
    };
    match (left.is_stable(), right.is_stable()) {
        (false, true) => Some(compared(left, *op, right)),
        (true, false) => Some(compared(right, op.mirrored(), left)),
        _ => None,
    }
}

/// `input LIKE 'prefix…'`: a range of the strings that begin so, since strings sort by their bytes. The pattern's rest is
/// looked at for each of them.
fn begins_with<'a>(table: &TableDef, at: usize, expr: &'a Expr) -> Option<[Condition<'a>; 2]> {
    let Expr::Like {
        input,
        pattern,
        escape,
        ignore_case: false,
        negated: false,
    } = expr
    else {
        return None;
    };
    let Expr::Constant(Value::Text(pattern)) = &**pattern else {
        return None;
    };
    let prefix = like_prefix(pattern, *escape);
    let behind = behind_prefix(&prefix)?;
    let column = plain_column(table, input, DataType::Text);
    let bound = |op: CompareOp, value: String| Condition {
        at,
        column,
        input,
        data_type: DataType::Text,
        op,
        value: Cow::Owned(Expr::Constant(Value::text(value))),
        is_guaranteed: false,
    };
    Some([
        bound(CompareOp::GreaterOrEqual, prefix.clone()),
        bound(CompareOp::Less, behind),
    ])
}

/// The part of a pattern in front of its first wildcard, each escaped character as itself.
fn like_prefix(pattern: &str, escape: Option<char>) -> String {
    let mut prefix = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => prefix.extend(characters.next()),
            '%' | '_' => break,
            _ => prefix.push(character),
        }
    }
    prefix
}

/// The first string behind all that begin with this one, by bytes; `None` if there is none.
fn behind_prefix(prefix: &str) -> Option<String> {
    let mut behind = prefix.to_owned();
    while let Some(last) = behind.pop() {
        // Characters sort as their numbers do; those between the two ranges of numbers are none.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            behind.push(next);
            return Some(behind);
        }
    }
    None
}

/// The column, if the expression is one whose index order agrees with comparing as `data_type`: the column itself, or
/// a column of whole numbers taken as another such type, or one string type taken as another.
fn plain_column(table: &TableDef, expr: &Expr, data_type: DataType) -> Option<u16> {
    let column = match expr {
        Expr::Column(column) => *column,
        // A conversion that changes no value. One with a modifier cuts or rounds, so its order is not the index's.
        Expr::Cast {
            input,
            from,
            to,
            typmod: ..0,
            ..
        } if can_cast(*from, *to, CastContext::Implicit) && *from != DataType::Char => match &**input {
            Expr::Column(column) => *column,
            _ => return None,
        },
        _ => return None,
    };
    let own = table.columns.get(usize::from(column))?.data_type;
    let agrees = own == data_type
        || (own.is_whole() && data_type.is_whole())
        || (own.is_string() && data_type.is_string() && own != DataType::Char && data_type != DataType::Char);
    agrees.then_some(column)
}

/// The path that reads an index in order, for ORDER BY over its columns without any condition on them.
pub fn ordered(index: usize, reverse: bool) -> AccessPath {
    AccessPath::Range {
        index,
        prefix: Vec::new(),
        lower: None,
        upper: None,
        skip_nulls: false,
        reverse,
    }
}
