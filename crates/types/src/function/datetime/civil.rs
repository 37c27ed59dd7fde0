//! A moment taken apart, and put together again.

use crate::error::{EngineError, Result, SqlState};
use crate::value::datetime::{self, MICROS_PER_DAY, civil_from_days, days_from_civil};

/// Days from Julian day 0 to 2000-01-01.
const JULIAN_OF_2000: i64 = 2_451_545;

/// The fields of a timestamp. Year 0 is 1 BC.
#[derive(Debug, Clone, Copy)]
pub(super) struct Civil {
    pub year: i64,
    pub month: u32,
    pub day: u32,
    /// Days since 2000-01-01
    pub days: i64,
    /// Microseconds since midnight
    pub in_day: i64,
}

impl Civil {
    pub(super) fn of(micros: i64) -> Civil {
        let days = micros.div_euclid(MICROS_PER_DAY);
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            days,
            in_day: micros.rem_euclid(MICROS_PER_DAY),
        }
    }

    pub(super) fn hour(&self) -> i64 {
        self.in_day / 3_600_000_000
    }

    pub(super) fn minute(&self) -> i64 {
        self.in_day / 60_000_000 % 60
    }

    pub(super) fn second(&self) -> i64 {
        self.in_day / 1_000_000 % 60
    }

    /// Microseconds of the second.
    pub(super) fn fraction(&self) -> i64 {
        self.in_day % 1_000_000
    }

    pub(super) fn day_of_year(&self) -> i64 {
        self.days - days_from_civil(self.year, 1, 1) + 1
    }

    /// 0 is Sunday.
    pub(super) fn day_of_week(&self) -> i64 {
        // 2000-01-01 was a Saturday.
        (self.days + 6).rem_euclid(7)
    }

    /// 1 is Monday, 7 is Sunday.
    pub(super) fn iso_day_of_week(&self) -> i64 {
        match self.day_of_week() {
            0 => 7,
            day => day,
        }
    }

    /// The year and the week of ISO 8601.
    pub(super) fn iso_week(&self) -> (i64, i64) {
        // The year that the week's Thursday is in.
        let thursday = self.days - self.iso_day_of_week() + 4;
        let (year, _, _) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }

    /// Days since the ISO year began, from 1.
    pub(super) fn iso_day_of_year(&self) -> i64 {
        let (_, week) = self.iso_week();
        (week - 1) * 7 + self.iso_day_of_week()
    }

    pub(super) fn julian_day(&self) -> i64 {
        self.days + JULIAN_OF_2000
    }

    pub(super) fn quarter(&self) -> i64 {
        i64::from(self.month - 1) / 3 + 1
    }

    /// The century of the year: that of 2000 is 20, and there is no century 0.
    pub(super) fn century(&self) -> i64 {
        match self.year {
            1.. => (self.year + 99) / 100,
            _ => -((100 - self.year) / 100),
        }
    }

    pub(super) fn millennium(&self) -> i64 {
        match self.year {
            1.. => (self.year + 999) / 1_000,
            _ => -((1_000 - self.year) / 1_000),
        }
    }

    pub(super) fn decade(&self) -> i64 {
        match self.year {
            0.. => self.year / 10,
            _ => -((9 - self.year) / 10),
        }
    }
}

/// The timestamp of a day and the time in it; 22008 if there is none.
pub(super) fn timestamp(days: i64, in_day: i64) -> Result<i64> {
    days.checked_mul(MICROS_PER_DAY)
        .and_then(|start| start.checked_add(in_day))
        .filter(|micros| datetime::is_valid_timestamp(*micros))
        .ok_or_else(out_of_range)
}

/// A timestamp that was computed; 22008 if it is none.
pub(super) fn valid(micros: i64) -> Result<i64> {
    match datetime::is_valid_timestamp(micros) {
        true => Ok(micros),
        false => Err(out_of_range()),
    }
}

#[cold]
pub(super) fn out_of_range() -> EngineError {
    EngineError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}
