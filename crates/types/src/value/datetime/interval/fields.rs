//! The modifier of an interval type: `interval year to month`, `interval(3)`.
//!
//! It is PostgreSQL's: a bit for each field in the upper half, the digits of a second in the lower one. Fields smaller
//! than the last one named are cut off; those larger than the first stay.

use super::{Interval, MICROS_PER_HOUR, MICROS_PER_MINUTE, MONTHS_PER_YEAR};

/// Every field.
pub const FULL_RANGE: i32 = 0x7fff;
/// As many digits of a second as there are.
pub const FULL_PRECISION: i32 = 0xffff;

/// A field that a modifier names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntervalField {
    /// YEAR
    Year,
    /// MONTH
    Month,
    /// DAY
    Day,
    /// HOUR
    Hour,
    /// MINUTE
    Minute,
    /// SECOND
    Second,
}

impl IntervalField {
    const ALL: [IntervalField; 6] = [
        IntervalField::Year,
        IntervalField::Month,
        IntervalField::Day,
        IntervalField::Hour,
        IntervalField::Minute,
        IntervalField::Second,
    ];

    fn bit(self) -> i32 {
        1 << match self {
            IntervalField::Month => 1,
            IntervalField::Year => 2,
            IntervalField::Day => 3,
            IntervalField::Hour => 10,
            IntervalField::Minute => 11,
            IntervalField::Second => 12,
        }
    }

    fn name(self) -> &'static str {
        match self {
            IntervalField::Year => "year",
            IntervalField::Month => "month",
            IntervalField::Day => "day",
            IntervalField::Hour => "hour",
            IntervalField::Minute => "minute",
            IntervalField::Second => "second",
        }
    }
}

/// The modifier of these fields, all between the two included, and of digits of a second.
pub fn interval_typmod(fields: Option<(IntervalField, IntervalField)>, digits: Option<i32>) -> i32 {
    let range = match fields {
        None if digits.is_none() => return -1,
        None => FULL_RANGE,
        Some((first, last)) => IntervalField::ALL
            .into_iter()
            .filter(|field| (first..=last).contains(field))
            .map(IntervalField::bit)
            .sum(),
    };
    range << 16 | digits.unwrap_or(FULL_PRECISION)
}

/// The fields of a modifier, first and last, and its digits of a second.
pub fn fields_of_typmod(typmod: i32) -> (Option<(IntervalField, IntervalField)>, Option<i32>) {
    if typmod < 0 {
        return (None, None);
    }
    let (range, digits) = (typmod >> 16 & FULL_RANGE, typmod & FULL_PRECISION);
    let mut named = IntervalField::ALL
        .into_iter()
        .filter(|field| range & field.bit() != 0);
    let fields = match range {
        FULL_RANGE => None,
        _ => named
            .next()
            .map(|first| (first, named.next_back().unwrap_or(first))),
    };
    (fields, (digits != FULL_PRECISION).then_some(digits))
}

/// The last field of a modifier; `None` if it names none.
pub(super) fn last_field(typmod: i32) -> Option<IntervalField> {
    fields_of_typmod(typmod).0.map(|(_, last)| last)
}

/// True if the modifier is MINUTE TO SECOND.
pub(super) fn is_minute_to_second(typmod: i32) -> bool {
    fields_of_typmod(typmod).0 == Some((IntervalField::Minute, IntervalField::Second))
}

/// The name of the type with a modifier: `interval day to second(3)`.
pub(crate) fn type_with_modifier(typmod: i32) -> String {
    let (fields, digits) = fields_of_typmod(typmod);
    let mut name = "interval".to_owned();
    if let Some((first, last)) = fields {
        name.push(' ');
        name.push_str(first.name());
        if first != last {
            name.push_str(" to ");
            name.push_str(last.name());
        }
    }
    if let Some(digits) = digits {
        name.push_str(&format!("({digits})"));
    }
    name
}

/// The interval as a column with this modifier keeps it.
pub fn fit(interval: Interval, typmod: i32) -> Interval {
    let (fields, digits) = fields_of_typmod(typmod);
    let Interval { months, days, micros } = interval;
    let mut fitted = match fields.map(|(_, last)| last) {
        None | Some(IntervalField::Second) => interval,
        Some(IntervalField::Year) => Interval::new(months / MONTHS_PER_YEAR * MONTHS_PER_YEAR, 0, 0),
        Some(IntervalField::Month) => Interval::new(months, 0, 0),
        Some(IntervalField::Day) => Interval::new(months, days, 0),
        Some(IntervalField::Hour) => Interval::new(months, days, micros - micros % MICROS_PER_HOUR),
        Some(IntervalField::Minute) => Interval::new(months, days, micros - micros % MICROS_PER_MINUTE),
    };
    if let Some(digits @ 0..6) = digits {
        let unit = 10i64.pow((6 - digits) as u32);
        let half = if fitted.micros < 0 { -unit / 2 } else { unit / 2 };
        fitted.micros = fitted.micros.saturating_add(half) / unit * unit;
    }
    fitted
}
