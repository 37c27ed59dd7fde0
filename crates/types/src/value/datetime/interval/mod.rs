//! Intervals: months, days and microseconds, each with a sign of its own.
//!
//! A month has no fixed number of days and a day no fixed number of hours, so the three do not flow into one another:
//! `1 mon` added to a date is the same day of the next month. Where intervals must have an order, a month counts 30 days
//! and a day 24 hours; so `1 mon` equals `30 days`, and both have one key.
//!
//! | module | job |
//! |---|---|
//! | `input` | the traditional form and that of the SQL standard, read from right to left |
//! | `iso` | the form of ISO 8601, which begins with `P` |
//! | `sum` | the fields that are read, added up |
//! | `output` | the four styles of the setting `IntervalStyle` |
//! | `fields` | the modifier: which fields are kept, and digits of a second |

mod fields;
mod input;
mod iso;
mod output;
mod sum;

use std::cmp::Ordering;

use super::{MICROS_PER_DAY, MICROS_PER_SECOND, NamedZone, civil_from_days, days_from_civil, days_in_month};
use crate::error::{EngineError, Result, SqlState};

pub(crate) use fields::type_with_modifier;
pub use fields::{IntervalField, fit, interval_typmod};
pub use input::{depends_on_style, parse_interval};
pub use output::{IntervalStyle, format_interval};

pub(crate) const MICROS_PER_HOUR: i64 = 3_600 * MICROS_PER_SECOND;
pub(crate) const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MONTHS_PER_YEAR: i32 = 12;
const DAYS_PER_MONTH: i32 = 30;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months; a year is twelve.
    pub months: i32,
    /// Days; a week is seven.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// An interval as people write it: its parts have the sign of what they are parts of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) years: i32,
    pub(crate) months: i32,
    pub(crate) days: i32,
    pub(crate) hours: i64,
    pub(crate) minutes: i64,
    pub(crate) seconds: i64,
    /// Microseconds of the second.
    pub(crate) micros: i64,
}

#[cold]
pub(crate) fn out_of_range() -> EngineError {
    EngineError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

#[cold]
fn timestamp_out_of_range() -> EngineError {
    EngineError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// The double as a whole number of 32 bits, cut towards zero; `None` if it has none.
fn whole(number: f64) -> Option<i32> {
    (-2_147_483_648.0..2_147_483_648.0)
        .contains(&number)
        .then_some(number as i32)
}

/// Rounded to a millionth, which takes away what is left of a division that should have come out even.
fn to_micros(number: f64) -> f64 {
    (number * 1e6).round_ties_even() / 1e6
}

impl Interval {
    /// An interval.
    pub fn new(months: i32, days: i32, micros: i64) -> Interval {
        Interval { months, days, micros }
    }

    /// Its length in microseconds where a month has 30 days: what its order goes by.
    pub fn span(self) -> i128 {
        let days = i128::from(self.months) * i128::from(DAYS_PER_MONTH) + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }

    /// The order of two intervals.
    pub fn compare(self, other: Interval) -> Ordering {
        self.span().cmp(&other.span())
    }

    pub(crate) fn parts(self) -> Parts {
        Parts {
            years: self.months / MONTHS_PER_YEAR,
            months: self.months % MONTHS_PER_YEAR,
            days: self.days,
            hours: self.micros / MICROS_PER_HOUR,
            minutes: self.micros / MICROS_PER_MINUTE % 60,
            seconds: self.micros / MICROS_PER_SECOND % 60,
            micros: self.micros % MICROS_PER_SECOND,
        }
    }

    /// The sum.
    pub fn plus(self, other: Interval) -> Result<Interval> {
        let sum = || {
            Some(Interval {
                months: self.months.checked_add(other.months)?,
                days: self.days.checked_add(other.days)?,
                micros: self.micros.checked_add(other.micros)?,
            })
        };
        sum().ok_or_else(out_of_range)
    }

    /// The difference.
    pub fn subtract(self, other: Interval) -> Result<Interval> {
        let difference = || {
            Some(Interval {
                months: self.months.checked_sub(other.months)?,
                days: self.days.checked_sub(other.days)?,
                micros: self.micros.checked_sub(other.micros)?,
            })
        };
        difference().ok_or_else(out_of_range)
    }

    /// The interval backwards.
    pub fn negate(self) -> Result<Interval> {
        Interval::default().subtract(self)
    }

    /// The interval so many times. A fraction of a month becomes days, and one of a day time.
    pub fn multiply(self, factor: f64) -> Result<Interval> {
        self.scaled(|part| part * factor)
    }

    /// The interval divided by a number.
    pub fn divide(self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(EngineError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        self.scaled(|part| part / divisor)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        let (all_months, all_days) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let result = || {
            let (months, days) = (whole(all_months)?, whole(all_days)?);
            let rest_of_months = to_micros((all_months - f64::from(months)) * f64::from(DAYS_PER_MONTH));
            let day_fraction = all_days - f64::from(days) + rest_of_months - rest_of_months.trunc();
            let mut seconds = to_micros(day_fraction * SECONDS_PER_DAY);
            let mut days = days;
            if seconds.abs() >= SECONDS_PER_DAY {
                let more = (seconds / SECONDS_PER_DAY).trunc();
                days = days.checked_add(whole(more)?)?;
                seconds -= more * SECONDS_PER_DAY;
            }
            let days = days.checked_add(whole(rest_of_months)?)?;
            let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
            let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
            fits.then_some(Interval {
                months,
                days,
                micros: micros as i64,
            })
        };
        result().ok_or_else(out_of_range)
    }

    /// `justify_hours`: each 24 hours are a day.
    pub fn justify_hours(self) -> Result<Interval> {
        let whole_days = (self.micros / MICROS_PER_DAY) as i32;
        let mut result = Interval {
            days: self.days.checked_add(whole_days).ok_or_else(out_of_range)?,
            micros: self.micros % MICROS_PER_DAY,
            ..self
        };
        result.borrow_day();
        Ok(result)
    }

    /// `justify_days`: each 30 days are a month.
    pub fn justify_days(self) -> Result<Interval> {
        let mut result = self.carry_days()?;
        if result.months > 0 && result.days < 0 {
            result.days += DAYS_PER_MONTH;
            result.months -= 1;
        } else if result.months < 0 && result.days > 0 {
            result.days -= DAYS_PER_MONTH;
            result.months += 1;
        }
        Ok(result)
    }

    /// `justify_interval`: both, and one sign for all parts.
    pub fn justify(self) -> Result<Interval> {
        let one_direction = (self.days > 0 && self.micros > 0) || (self.days < 0 && self.micros < 0);
        // Days first where adding the hours to all of them might be too much.
        let mut result = if one_direction { self.carry_days()? } else { self };
        result.days = i32::try_from(i64::from(result.days) + result.micros / MICROS_PER_DAY)
            .map_err(|_| out_of_range())?;
        result.micros %= MICROS_PER_DAY;
        result = result.carry_days()?;
        let rest = (result.days, result.micros);
        if result.months > 0 && (rest.0 < 0 || (rest.0 == 0 && rest.1 < 0)) {
            result.days += DAYS_PER_MONTH;
            result.months -= 1;
        } else if result.months < 0 && (rest.0 > 0 || (rest.0 == 0 && rest.1 > 0)) {
            result.days -= DAYS_PER_MONTH;
            result.months += 1;
        }
        result.borrow_day();
        Ok(result)
    }

    fn carry_days(self) -> Result<Interval> {
        let months = self.days / DAYS_PER_MONTH;
        Ok(Interval {
            months: self.months.checked_add(months).ok_or_else(out_of_range)?,
            days: self.days % DAYS_PER_MONTH,
            ..self
        })
    }

    /// Gives the time the sign of the days.
    fn borrow_day(&mut self) {
        if self.days > 0 && self.micros < 0 {
            self.micros += MICROS_PER_DAY;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= MICROS_PER_DAY;
            self.days += 1;
        }
    }

    /// A timestamp so much later: months first, then days, then time. A day that the month does not have is its last.
    pub fn after(self, timestamp: i64) -> Result<i64> {
        if timestamp == i64::MAX || timestamp == i64::MIN {
            return Ok(timestamp);
        }
        let moved = || {
            let mut micros = timestamp;
            if self.months != 0 {
                let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
                let month = (month as i32).checked_add(self.months)?;
                let year = year + i64::from((month - 1).div_euclid(MONTHS_PER_YEAR));
                let month = (month - 1).rem_euclid(MONTHS_PER_YEAR) as u32 + 1;
                let day = day.min(days_in_month(year, month));
                let days = days_from_civil(year, month, day);
                micros = valid(days.checked_mul(MICROS_PER_DAY)? + micros.rem_euclid(MICROS_PER_DAY))?;
            }
            micros = valid(micros.checked_add(i64::from(self.days).checked_mul(MICROS_PER_DAY)?)?)?;
            valid(micros.checked_add(self.micros)?)
        };
        moved().ok_or_else(timestamp_out_of_range)
    }

    /// A timestamp so much earlier.
    pub fn before(self, timestamp: i64) -> Result<i64> {
        self.reversed().after(timestamp)
    }

    /// The same interval in the other direction.
    pub(crate) fn reversed(self) -> Interval {
        Interval {
            months: self.months.wrapping_neg(),
            days: self.days.wrapping_neg(),
            micros: self.micros.wrapping_neg(),
        }
    }

    /// A moment so much later: months and days are counted on the clocks of a zone, the time is not.
    pub(crate) fn after_in(self, moment: i64, zone: &NamedZone) -> Result<i64> {
        if moment == i64::MAX || moment == i64::MIN {
            return Ok(moment);
        }
        let mut later = moment;
        for part in [Interval::new(self.months, 0, 0), Interval::new(0, self.days, 0)] {
            if part != Interval::default() {
                later = zone.moment(part.after(zone.local(later))?);
                valid(later).ok_or_else(timestamp_out_of_range)?;
            }
        }
        Interval::new(0, 0, self.micros).after(later)
    }

    /// A moment so much later on the clocks of the session.
    pub fn after_in_session(self, moment: i64) -> Result<i64> {
        self.after_in(moment, &NamedZone::of_session())
    }

    /// The time between two timestamps, in days and time.
    pub fn between(later: i64, earlier: i64) -> Result<Interval> {
        let infinite = |micros| micros == i64::MAX || micros == i64::MIN;
        if infinite(later) || infinite(earlier) {
            return Err(EngineError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                "cannot subtract infinite timestamps",
            ));
        }
        let micros = later.checked_sub(earlier).ok_or_else(out_of_range)?;
        Interval::new(0, 0, micros).justify_hours()
    }

    /// `age`: the time between two timestamps in years, months, days and time, as one would count them.
    pub fn age(later: i64, earlier: i64) -> Result<Interval> {
        let infinite = |micros| micros == i64::MAX || micros == i64::MIN;
        if infinite(later) || infinite(earlier) {
            return Err(timestamp_out_of_range());
        }
        let backwards = later < earlier;
        let (late, early) = if backwards {
            (earlier, later)
        } else {
            (later, earlier)
        };
        let taken_apart = |micros: i64| {
            let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
            (
                year,
                i64::from(month),
                i64::from(day),
                micros.rem_euclid(MICROS_PER_DAY),
            )
        };
        let ((y1, m1, d1, t1), (y2, m2, d2, t2)) = (taken_apart(late), taken_apart(early));
        let (mut months, mut days, mut micros) = ((y1 - y2) * 12 + m1 - m2, d1 - d2, t1 - t2);
        if micros < 0 {
            micros += MICROS_PER_DAY;
            days -= 1;
        }
        while days < 0 {
            // The month that the count begins in.
            days += i64::from(days_in_month(y2, m2 as u32));
            months -= 1;
        }
        let sign = if backwards { -1 } else { 1 };
        Ok(Interval {
            months: i32::try_from(sign * months).map_err(|_| out_of_range())?,
            days: (sign * days) as i32,
            micros: sign * micros,
        })
    }
}

fn valid(micros: i64) -> Option<i64> {
    super::is_valid_timestamp(micros).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Interval {
        parse_interval(text, -1, IntervalStyle::Postgres).unwrap()
    }

    fn shown(interval: Interval, style: IntervalStyle) -> String {
        let mut out = String::new();
        format_interval(interval, style, &mut out);
        out
    }

    #[test]
    fn months_have_thirty_days_in_an_order() {
        assert_eq!(read("1 mon").compare(read("30 days")), Ordering::Equal);
        assert_eq!(read("1 year").compare(read("365 days")), Ordering::Less);
        assert_eq!(read("1 day").compare(read("24:00")), Ordering::Equal);
    }

    #[test]
    fn the_last_day_of_a_month_stays_in_it() {
        let day = |year, month, day| days_from_civil(year, month, day) * MICROS_PER_DAY;
        assert_eq!(read("1 mon").after(day(2001, 1, 31)).unwrap(), day(2001, 2, 28));
        assert_eq!(
            read("1 mon 1 day").after(day(2001, 1, 31)).unwrap(),
            day(2001, 3, 1)
        );
        assert_eq!(read("1 year").before(day(2000, 2, 29)).unwrap(), day(1999, 2, 28));
        assert!(read("1 day").after(super::super::TIMESTAMP_END - 1).is_err());
    }

    #[test]
    fn every_style_is_read_back() {
        for text in [
            "1 year 2 mons -3 days +04:05:06.7",
            "-1 mons",
            "00:00:00",
            "-00:00:00.000001",
            "5 days",
        ] {
            let interval = read(text);
            assert_eq!(shown(interval, IntervalStyle::Postgres), text);
            for style in [
                IntervalStyle::Verbose,
                IntervalStyle::SqlStandard,
                IntervalStyle::Iso8601,
            ] {
                let other = shown(interval, style);
                assert_eq!(parse_interval(&other, -1, style).unwrap(), interval, "{other}");
            }
        }
    }
}
