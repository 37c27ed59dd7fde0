//! The fields of an interval that is read, added up.

use super::super::tokens::Fault;
use super::{Interval, MICROS_PER_DAY};

/// The fields that are read so far.
#[derive(Debug, Default)]
pub(super) struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

/// A field that is out of range.
pub(super) fn too_large<T>(sum: Option<T>) -> Result<T, Fault> {
    sum.ok_or(Fault::Field)
}

impl Sum {
    pub(super) fn add_years(&mut self, number: i64, scale: i64, fraction: f64) -> Result<(), Fault> {
        let years = number
            .checked_mul(scale)
            .and_then(|years| i32::try_from(years).ok());
        self.years = too_large(years.and_then(|years| self.years.checked_add(years)))?;
        let months = (fraction * scale as f64 * 12.0).round_ties_even() as i32;
        self.months = too_large(self.months.checked_add(months))?;
        Ok(())
    }

    pub(super) fn add_months(&mut self, number: i64, fraction: f64) -> Result<(), Fault> {
        let months = i32::try_from(number).ok();
        self.months = too_large(months.and_then(|months| self.months.checked_add(months)))?;
        self.add_part_of_days(fraction, 30)
    }

    pub(super) fn add_weeks(&mut self, number: i64, fraction: f64) -> Result<(), Fault> {
        self.add_whole_days(number.checked_mul(7))?;
        self.add_part_of_days(fraction, 7)
    }

    pub(super) fn add_days(&mut self, number: i64, fraction: f64) -> Result<(), Fault> {
        self.add_whole_days(Some(number))?;
        self.add_part(fraction, MICROS_PER_DAY)
    }

    pub(super) fn add_time(&mut self, number: i64, fraction: f64, unit: i64) -> Result<(), Fault> {
        let whole = number
            .checked_mul(unit)
            .and_then(|micros| self.micros.checked_add(micros));
        self.micros = too_large(whole)?;
        self.add_part(fraction, unit)
    }

    fn add_whole_days(&mut self, number: Option<i64>) -> Result<(), Fault> {
        let days = number.and_then(|days| i32::try_from(days).ok());
        self.days = too_large(days.and_then(|days| self.days.checked_add(days)))?;
        Ok(())
    }

    /// Sets the time.
    pub(super) fn set_time(&mut self, micros: i64) {
        self.micros = micros;
    }

    /// A part of a unit that has so many days.
    fn add_part_of_days(&mut self, fraction: f64, unit: i32) -> Result<(), Fault> {
        let days = fraction * f64::from(unit);
        self.days = too_large(self.days.checked_add(days as i32))?;
        self.add_part(days - f64::from(days as i32), MICROS_PER_DAY)
    }

    /// A part of a unit that has so many microseconds.
    fn add_part(&mut self, fraction: f64, unit: i64) -> Result<(), Fault> {
        let exact = fraction * unit as f64;
        let mut micros = exact as i64;
        let rest = exact - micros as f64;
        if rest.abs() > 0.5 {
            micros += rest.signum() as i64;
        }
        self.micros = too_large(self.micros.checked_add(micros))?;
        Ok(())
    }

    pub(super) fn negate(&mut self) -> Result<(), Fault> {
        self.years = too_large(self.years.checked_neg())?;
        self.months = too_large(self.months.checked_neg())?;
        self.days = too_large(self.days.checked_neg())?;
        self.micros = too_large(self.micros.checked_neg())?;
        Ok(())
    }

    pub(super) fn interval(&self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some(Interval::new(i32::try_from(months).ok()?, self.days, self.micros))
    }
}
