//! Sequences: their options, as a statement gives them and as they are kept.
//!
//! An option that is not given has a default of its own, which follows from the type and the sign of the increment:
//!
//! | option | counting up | counting down |
//! | --- | --- | --- |
//! | MINVALUE | 1 | the type's first number |
//! | MAXVALUE | the type's last number | −1 |
//! | START | MINVALUE | MAXVALUE |
//!
//! A change keeps what it does not name. Only where the type changes, a bound that was the old type's becomes the new
//! one's.

use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType;

/// The columns of a sequence when it is read like a table.
pub const SEQUENCE_COLUMNS: [(&str, DataType); 3] = [
    ("last_value", DataType::Int8),
    ("log_cnt", DataType::Int8),
    ("is_called", DataType::Bool),
];

/// The options of a sequence, in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceNumbers {
    /// The type of its numbers.
    pub data_type: DataType,
    /// The first number.
    pub start: i64,
    /// The distance of two numbers.
    pub increment: i64,
    /// The least number.
    pub min: i64,
    /// The greatest number.
    pub max: i64,
    /// The numbers that a session takes at once.
    pub cache: i64,
    /// True if it begins again behind the last number.
    pub cycle: bool,
}

/// The column that a sequence belongs to: it goes with the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceOwner {
    /// The table's number.
    pub table: u32,
    /// The column's attribute number.
    pub attribute: u16,
    /// True if the column is an identity.
    pub identity: bool,
}

/// A sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceDef {
    /// The storage relation that has its state.
    pub rel: u32,
    /// Its options.
    pub numbers: SequenceNumbers,
    /// The column that it belongs to.
    pub owner: Option<SequenceOwner>,
}

/// Options as a statement gives them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SequenceOptions {
    /// AS
    pub data_type: Option<DataType>,
    /// INCREMENT
    pub increment: Option<i64>,
    /// MINVALUE; the inner absent for NO MINVALUE
    pub min: Option<Option<i64>>,
    /// MAXVALUE; the inner absent for NO MAXVALUE
    pub max: Option<Option<i64>>,
    /// START
    pub start: Option<i64>,
    /// RESTART; the inner absent if it is to be where it began
    pub restart: Option<Option<i64>>,
    /// CACHE
    pub cache: Option<i64>,
    /// CYCLE
    pub cycle: Option<bool>,
}

/// A sequence that is made with a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSequence {
    /// True for an identity column, false for a serial one.
    pub identity: bool,
    /// Its schema and name, if they are given.
    pub name: Option<(Option<String>, String)>,
    /// Its options.
    pub options: SequenceOptions,
}

impl From<SequenceNumbers> for SequenceOptions {
    fn from(numbers: SequenceNumbers) -> SequenceOptions {
        SequenceOptions {
            data_type: Some(numbers.data_type),
            increment: Some(numbers.increment),
            min: Some(Some(numbers.min)),
            max: Some(Some(numbers.max)),
            start: Some(numbers.start),
            restart: None,
            cache: Some(numbers.cache),
            cycle: Some(numbers.cycle),
        }
    }
}

fn invalid(message: String) -> EngineError {
    EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The first and the last number of an integer type.
fn bounds_of(data_type: DataType) -> (i64, i64) {
    match data_type {
        DataType::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

impl SequenceOptions {
    /// True if a change by these options, which makes `after` of `before`, may count in another way: what is reserved is
    /// reserved no more.
    pub fn count_anew(&self, before: &SequenceNumbers, after: &SequenceNumbers) -> bool {
        self.increment.is_some()
            || self.min.is_some()
            || self.max.is_some()
            || self.cache.is_some()
            || self.cycle.is_some()
            || (before.min, before.max) != (after.min, after.max)
    }

    /// Those in force with these options: of a new sequence, or over those of `before`. `identity`: of an identity column.
    pub fn numbers(&self, before: Option<&SequenceNumbers>, identity: bool) -> Result<SequenceNumbers> {
        let data_type = self
            .data_type
            .or(before.map(|before| before.data_type))
            .unwrap_or(DataType::Int8);
        if !data_type.is_integer() {
            let what = if identity { "identity column" } else { "sequence" };
            return Err(invalid(format!(
                "{what} type must be smallint, integer, or bigint"
            )));
        }
        let increment = self
            .increment
            .or(before.map(|before| before.increment))
            .unwrap_or(1);
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".to_owned()));
        }
        let cycle = self.cycle.or(before.map(|before| before.cycle)).unwrap_or(false);
        let (min, max) = self.bounds(before, data_type, increment)?;
        let start = self
            .start
            .or(before.map(|before| before.start))
            .unwrap_or(if increment > 0 { min } else { max });
        require_within("START", start, min, max)?;
        let cache = self.cache.or(before.map(|before| before.cache)).unwrap_or(1);
        if cache <= 0 {
            return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
        }
        Ok(SequenceNumbers {
            data_type,
            start,
            increment,
            min,
            max,
            cache,
            cycle,
        })
    }

    fn bounds(
        &self,
        before: Option<&SequenceNumbers>,
        data_type: DataType,
        increment: i64,
    ) -> Result<(i64, i64)> {
        let (first, last) = bounds_of(data_type);
        let old = before.filter(|_| self.data_type.is_some());
        let was_last = old.is_some_and(|before| before.max == bounds_of(before.data_type).1);
        let was_first = old.is_some_and(|before| before.min == bounds_of(before.data_type).0);
        let max = match (self.max, before) {
            (Some(Some(max)), _) => max,
            (None, Some(before)) if !was_last => before.max,
            _ if increment > 0 || was_last => last,
            _ => -1,
        };
        let min = match (self.min, before) {
            (Some(Some(min)), _) => min,
            (None, Some(before)) if !was_first => before.min,
            _ if increment < 0 || was_first => first,
            _ => 1,
        };
        for (what, value) in [("MAXVALUE", max), ("MINVALUE", min)] {
            if !(first..=last).contains(&value) {
                return Err(invalid(format!(
                    "{what} ({value}) is out of range for sequence data type {data_type}"
                )));
            }
        }
        if min >= max {
            return Err(invalid(format!(
                "MINVALUE ({min}) must be less than MAXVALUE ({max})"
            )));
        }
        Ok((min, max))
    }

    /// True if nothing but the column that it belongs to may change.
    pub fn is_empty(&self) -> bool {
        *self == SequenceOptions::default()
    }
}

/// 22023 for a START or RESTART value out of a sequence's bounds.
pub fn require_within(what: &str, value: i64, min: i64, max: i64) -> Result<()> {
    if value < min {
        return Err(invalid(format!(
            "{what} value ({value}) cannot be less than MINVALUE ({min})"
        )));
    }
    if value > max {
        return Err(invalid(format!(
            "{what} value ({value}) cannot be greater than MAXVALUE ({max})"
        )));
    }
    Ok(())
}
