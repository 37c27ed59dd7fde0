//! Reading dates and timestamps in the forms that PostgreSQL takes.
//!
//! The text is cut into tokens (`tokens`), and each token fills the fields that are still open:
//!
//! ```text
//! January 8, 1999 04:05 PM PST  →  word month │ number day │ number year │ time │ word half of day │ word zone
//! 1999-01-08T04:05:06-08        →  date       │ word "t"   │ time        │ zone
//! 19990108 040506               →  number date│ number time
//! ```
//!
//! The field of a lone number: with nothing known, three digits or more are a year, fewer are the field that comes first
//! in the order that `DateStyle` names (below: MDY); then month and day follow a year, day and year follow a month, and a
//! month's name settles what would be in doubt, but for the two numbers of `99-Jan-08`, of which the order YMD makes the
//! first the year. A month
//! that was a number becomes the day when a name follows (`8 Jan 1999`). Years of two digits are 1970 to 2069.
//!
//! A general parser of dates from a library does not fit: the order of fields, the years before Christ and beyond 9999,
//! Julian days and what is refused are PostgreSQL's.

use std::sync::Arc;

use super::in_force::{self, DateTimeSettings};
use super::style::FieldOrder;
use super::tokens::{Fault, Token, fraction_of, is_weekday, month, run, tokens};
use super::zone::{self, Zone};
use super::{MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_TO_OURS_DAYS, days_from_civil, days_in_month};

/// The meaning of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Infinity,
    MinusInfinity,
    /// A day, the time from its start (a day or a little more at `24:00` and `23:59:60`), and how far east of
    /// Greenwich it was read off the clock
    Civil {
        days: i64,
        micros: i64,
        offset_seconds: Option<i64>,
    },
}

type Result<T, E = Fault> = std::result::Result<T, E>;

/// The Julian day of 2000-01-01.
const OUR_JULIAN_DAY: i64 = 2_451_545;

/// The zone of these settings.
pub(super) fn session_zone(settings: Option<&DateTimeSettings>) -> Zone {
    settings.map_or(Zone::Fixed(0), |settings| settings.zone.zone.clone())
}

/// Reads a text; `now` is what `now` stands for.
pub(super) fn parse(text: &str, now: i64) -> Result<Parsed> {
    let tokens = tokens(text)?;
    let mut fields = Fields::in_force();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let next = tokens.get(at);
        match token {
            // A zone may stand between the time and the year.
            Token::Date(text)
                if fields.has_date()
                    || fields.time.is_some() && fields.month.is_some() && fields.day.is_some() =>
            {
                fields.time_with_zone(text)?;
            }
            Token::Date(text) => fields.date(text)?,
            Token::Time(text) => fields.time(text)?,
            Token::Zone(text) => fields.zone(text)?,
            Token::Number(text) => fields.number_token(text)?,
            Token::Word(word) => match word.as_str() {
                "j" | "jd" | "julian" => {
                    let Some(Token::Number(number)) = next else {
                        return Err(Fault::Syntax);
                    };
                    fields.julian(number)?;
                    at += 1;
                }
                "t" => {
                    let Some(Token::Number(_) | Token::Time(_) | Token::Date(_)) = next else {
                        return Err(Fault::Syntax);
                    };
                    if !fields.has_date() {
                        return Err(Fault::Syntax);
                    }
                }
                word => fields.word(word, now)?,
            },
        }
    }
    fields.finish()
}

/// Reads a time of day: microseconds since midnight, and how far east of Greenwich it was read off the clock, which is
/// one of the session's zone if the text names none.
pub(super) fn parse_time(text: &str, now: i64) -> Result<(i64, i64)> {
    let tokens = tokens(text)?;
    let mut fields = Fields::in_force();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        match token {
            // A date is taken in front of a time, or before a zone at the end.
            Token::Date(text) if at == 0 && next.is_some() => {
                let before_time = matches!(next, Some(Token::Time(_)));
                match before_time || matches!(tokens.last(), Some(Token::Date(_))) {
                    true => fields.date(text)?,
                    false => fields.time_with_zone(text)?,
                }
            }
            Token::Date(text) => fields.time_with_zone(text)?,
            Token::Time(text) => fields.time(text)?,
            Token::Zone(text) => fields.zone(text)?,
            Token::Number(text) => match text.split_once('.') {
                Some((digits, after)) => fields.clock_number(digits, Some(after))?,
                None => fields.clock_number(text, None)?,
            },
            Token::Word(word) => match word.as_str() {
                "j" | "jd" | "julian" => {
                    let Some(Token::Number(number)) = next else {
                        return Err(Fault::Syntax);
                    };
                    fields.julian(number)?;
                    at += 1;
                }
                "t" => {
                    let Some(Token::Number(_) | Token::Time(_) | Token::Date(_)) = next else {
                        return Err(Fault::Syntax);
                    };
                }
                "infinity" | "+infinity" | "-infinity" | "epoch" => return Err(Fault::Syntax),
                word => fields.word(word, now)?,
            },
        }
        at += 1;
    }
    fields.finish_time(now)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Am,
    Pm,
}

/// The fields that are known so far.
#[derive(Debug, Default)]
struct Fields {
    settings: Option<Arc<DateTimeSettings>>,
    order: FieldOrder,
    special: Option<Parsed>,
    year: Option<i64>,
    /// The year was written with two digits or fewer.
    short_year: bool,
    month: Option<i64>,
    named_month: bool,
    day: Option<i64>,
    day_of_year: Option<i64>,
    /// A day that needs no year, month and day: `today`, a Julian day
    whole_day: Option<i64>,
    time: Option<Time>,
    zone: Option<Zone>,
    half: Option<Half>,
    era: Option<Era>,
    weekday: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Ad,
    Bc,
}

#[derive(Debug, Clone, Copy)]
struct Time {
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
}

/// Fills a field that must be empty.
fn put<T>(field: &mut Option<T>, value: T) -> Result<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(Fault::Syntax),
    }
}

fn whole(text: &str) -> Result<i64> {
    let number: i64 = text.parse().map_err(|_| Fault::Field)?;
    if number > i64::from(i32::MAX) {
        Err(Fault::Field)
    } else {
        Ok(number)
    }
}

/// The digits after a point, as microseconds, rounded.
fn fraction(digits: &str) -> Result<i64> {
    Ok((fraction_of(digits)? * 1e6).round_ties_even() as i64)
}

impl Fields {
    /// Nothing is known but the settings in force.
    fn in_force() -> Fields {
        let settings = in_force::settings();
        Fields {
            order: settings
                .as_ref()
                .map_or(FieldOrder::Mdy, |settings| settings.order),
            settings,
            ..Fields::default()
        }
    }

    /// Seconds east of Greenwich on the session's clocks at a moment.
    fn east_at(&self, moment: i64) -> i64 {
        self.settings
            .as_ref()
            .map_or(0, |settings| settings.zone.zone.offset_at(moment))
    }

    fn has_date(&self) -> bool {
        let civil = self.year.is_some() && self.month.is_some() && self.day.is_some();
        civil || (self.year.is_some() && self.day_of_year.is_some()) || self.whole_day.is_some()
    }

    fn has_any_date(&self) -> bool {
        self.year.is_some() || self.month.is_some() || self.day.is_some() || self.whole_day.is_some()
    }

    /// Fields with separators between them.
    fn date(&mut self, text: &str) -> Result<()> {
        if self.time.is_some() || self.weekday || self.half.is_some() || self.era.is_some() {
            return Err(Fault::Syntax);
        }
        let parts: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|part| !part.is_empty())
            .collect();
        // `08Jan` is two fields.
        let mut fields = Vec::new();
        for part in parts {
            let mut rest = part;
            while let Some(first) = rest.chars().next() {
                let length = run(rest, |c| c.is_ascii_digit() == first.is_ascii_digit());
                fields.push(&rest[..length]);
                rest = &rest[length..];
            }
        }
        for name in fields
            .iter()
            .filter(|field| !field.starts_with(|c: char| c.is_ascii_digit()))
        {
            let name = name.to_ascii_lowercase();
            match month(&name) {
                Some(number) => {
                    put(&mut self.month, number)?;
                    self.named_month = true;
                }
                None => return Err(Fault::Syntax),
            }
        }
        for number in fields
            .iter()
            .filter(|field| field.starts_with(|c: char| c.is_ascii_digit()))
        {
            self.number(number)?;
        }
        if self.has_date() {
            Ok(())
        } else {
            Err(Fault::Syntax)
        }
    }

    /// A number that is alone.
    fn number_token(&mut self, text: &str) -> Result<()> {
        match text.split_once('.') {
            Some(_) if !self.has_any_date() => self.date(text),
            Some((before, after)) if before.len() > 2 => self.long_number(before, Some(after)),
            Some(_) => Err(Fault::Syntax),
            None if text.len() >= 6 && (!self.has_any_date() || self.time.is_none()) => {
                self.long_number(text, None)
            }
            None => self.number(text),
        }
    }

    /// Six digits or more: the whole date, else the whole time; four may be hours and minutes.
    fn long_number(&mut self, digits: &str, seconds_fraction: Option<&str>) -> Result<()> {
        if seconds_fraction.is_none() && !self.has_date() && digits.len() >= 6 {
            let (year, rest) = digits.split_at(digits.len() - 4);
            put(&mut self.day, whole(&rest[2..])?)?;
            put(&mut self.month, whole(&rest[..2])?)?;
            put(&mut self.year, whole(year)?)?;
            self.short_year = year.len() == 2;
            return Ok(());
        }
        self.clock_number(digits, seconds_fraction)
    }

    /// Hours, minutes and seconds without colons.
    fn clock_number(&mut self, digits: &str, seconds_fraction: Option<&str>) -> Result<()> {
        let part = |at: usize| whole(&digits[at..at + 2]);
        let (hour, minute, second) = match digits.len() {
            6 => (part(0)?, part(2)?, part(4)?),
            4 => (part(0)?, part(2)?, 0),
            _ => return Err(Fault::Syntax),
        };
        let micros = seconds_fraction.map_or(Ok(0), fraction)?;
        put(
            &mut self.time,
            Time {
                hour,
                minute,
                second,
                micros,
            },
        )
    }

    /// The next open field of the date.
    fn number(&mut self, digits: &str) -> Result<()> {
        let number = whole(digits)?;
        let long = digits.len() >= 3;
        match (self.year.is_some(), self.month.is_some(), self.day.is_some()) {
            (true, false, false) if digits.len() == 3 && (1..=366).contains(&number) => {
                put(&mut self.day_of_year, number)
            }
            (false, false, false) if long || self.order == FieldOrder::Ymd => self.set_year(digits, number),
            (false, false, false) if self.order == FieldOrder::Dmy => put(&mut self.day, number),
            (false, false, false) => put(&mut self.month, number),
            (true, false, false) | (false, false, true) => put(&mut self.month, number),
            (false, true, false) if self.named_month && (long || self.order == FieldOrder::Ymd) => {
                self.set_year(digits, number)
            }
            (false, true, false) => put(&mut self.day, number),
            (true, true, false) if self.named_month && long && self.short_year => {
                self.day = self.year.take();
                self.set_year(digits, number)
            }
            (true, true, false) => put(&mut self.day, number),
            (false, true, true) => self.set_year(digits, number),
            (true, true, true) => self.long_number(digits, None),
            (true, false, true) => Err(Fault::Syntax),
        }
    }

    fn set_year(&mut self, digits: &str, number: i64) -> Result<()> {
        self.short_year = digits.len() <= 2;
        put(&mut self.year, number)
    }

    fn julian(&mut self, text: &str) -> Result<()> {
        let (digits, day_fraction) = text.split_once('.').unwrap_or((text, ""));
        if self.has_any_date() {
            return Err(Fault::Syntax);
        }
        self.whole_day = Some(whole(digits)? - OUR_JULIAN_DAY);
        if !day_fraction.is_empty() {
            let part: f64 = format!("0.{day_fraction}").parse().map_err(|_| Fault::Syntax)?;
            let micros = (part * MICROS_PER_DAY as f64).round_ties_even() as i64;
            let second = micros / MICROS_PER_SECOND;
            let time = Time {
                hour: second / 3600,
                minute: second / 60 % 60,
                second: second % 60,
                micros: micros % MICROS_PER_SECOND,
            };
            put(&mut self.time, time)?;
        }
        Ok(())
    }

    fn time(&mut self, text: &str) -> Result<()> {
        let (clock, after) = text.split_once('.').unwrap_or((text, ""));
        let parts = clock
            .split(':')
            .map(whole_or_syntax)
            .collect::<Result<Vec<_>>>()?;
        let micros = fraction(after)?;
        let (hour, minute, second) = match *parts.as_slice() {
            // With a fraction, two fields are minutes and seconds.
            [minute, second] if text.contains('.') => (0, minute, second),
            [hour, minute] => (hour, minute, 0),
            [hour, minute, second] => (hour, minute, second),
            _ => return Err(Fault::Syntax),
        };
        put(
            &mut self.time,
            Time {
                hour,
                minute,
                second,
                micros,
            },
        )?;
        self.check_time()
    }

    fn check_time(&self) -> Result<()> {
        let Some(Time {
            hour,
            minute,
            second,
            micros,
        }) = self.time
        else {
            return Ok(());
        };
        // 24:00:00 and 23:59:60 are the next midnight, and nothing is beyond it.
        let in_day = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros;
        if minute > 59 || second > 60 || in_day > MICROS_PER_DAY {
            return Err(Fault::Field);
        }
        Ok(())
    }

    fn zone(&mut self, text: &str) -> Result<()> {
        let read = zone::offset(text).ok_or(Fault::Syntax)?;
        let offset = read.map_err(|()| Fault::Zone)?;
        put(&mut self.zone, Zone::Fixed(offset))
    }

    /// After a date: a time with an offset behind it, all digits (`040506-08`), a place (`Europe/Berlin`), or a zone as POSIX
    /// writes it (`UTC+3`), where plus is west of Greenwich.
    fn time_with_zone(&mut self, text: &str) -> Result<()> {
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            if let Some(place) = Zone::place(text) {
                return put(&mut self.zone, place);
            }
            let letters = run(text, |c| c.is_ascii_alphabetic());
            let rest = &text[letters..];
            let signed = if rest.starts_with(['+', '-']) {
                rest.to_owned()
            } else {
                format!("+{rest}")
            };
            return match zone::offset(&signed) {
                Some(Ok(offset)) if letters >= 3 => put(&mut self.zone, Zone::Fixed(-offset)),
                _ => Err(Fault::UnknownZone(text.to_owned())),
            };
        }
        let at = text.find('-').ok_or(Fault::Syntax)?;
        self.zone(&text[at..])?;
        let (digits, after) = match text[..at].split_once('.') {
            Some((digits, after)) => (digits, Some(after)),
            None => (&text[..at], None),
        };
        self.long_number(digits, after)
    }

    fn word(&mut self, word: &str, now: i64) -> Result<()> {
        if let Some(number) = month(word) {
            let movable =
                !self.named_month && self.day.is_none() && self.month.is_some_and(|m| (1..=31).contains(&m));
            if movable {
                self.day = self.month.take();
            }
            self.named_month = true;
            return put(&mut self.month, number);
        }
        let east = self.east_at(now);
        let local = now.saturating_add(east * MICROS_PER_SECOND);
        let today = local.div_euclid(MICROS_PER_DAY);
        match word {
            "infinity" | "+infinity" => put(&mut self.special, Parsed::Infinity),
            "-infinity" => put(&mut self.special, Parsed::MinusInfinity),
            "epoch" => put(&mut self.special, moment(-UNIX_TO_OURS_DAYS, 0, 0)),
            "now" => put(
                &mut self.special,
                moment(today, local.rem_euclid(MICROS_PER_DAY), east),
            ),
            "today" => self.day_from_now(today),
            "tomorrow" => self.day_from_now(today + 1),
            "yesterday" => self.day_from_now(today - 1),
            "am" => put(&mut self.half, Half::Am),
            "pm" => put(&mut self.half, Half::Pm),
            "ad" => put(&mut self.era, Era::Ad),
            "bc" => put(&mut self.era, Era::Bc),
            "at" | "on" => Ok(()),
            "allballs" => {
                put(
                    &mut self.time,
                    Time {
                        hour: 0,
                        minute: 0,
                        second: 0,
                        micros: 0,
                    },
                )?;
                put(&mut self.zone, Zone::Fixed(0))
            }
            "dst" => match &mut self.zone {
                Some(Zone::Fixed(offset)) => {
                    *offset += 3600;
                    Ok(())
                }
                // A place knows by itself.
                Some(Zone::Place { .. }) | None => Err(Fault::Syntax),
            },
            _ if is_weekday(word) => {
                if std::mem::replace(&mut self.weekday, true) {
                    Err(Fault::Syntax)
                } else {
                    Ok(())
                }
            }
            _ => match Zone::abbreviation(word).or_else(|| Zone::place(word)) {
                Some(zone) => put(&mut self.zone, zone),
                None => Err(Fault::Syntax),
            },
        }
    }

    fn day_from_now(&mut self, day: i64) -> Result<()> {
        if self.has_any_date() {
            return Err(Fault::Syntax);
        }
        put(&mut self.whole_day, day)
    }

    fn finish(mut self) -> Result<Parsed> {
        if let Some(special) = self.special.take() {
            let alone = !self.has_any_date() && self.time.is_none();
            return if alone { Ok(special) } else { Err(Fault::Syntax) };
        }
        self.check_date()?;
        if !self.has_date() {
            return Err(Fault::Syntax);
        }
        let day = match self.whole_day {
            Some(day) => day,
            None => self.civil_day()?,
        };
        let micros = self.clock()?.unwrap_or(0);
        Ok(Parsed::Civil {
            days: day,
            micros,
            offset_seconds: self.zone.map(|zone| zone.offset(day, micros)),
        })
    }

    /// Microseconds since midnight; `None` if there is no time.
    fn clock(&mut self) -> Result<Option<i64>> {
        let Some(mut time) = self.time else {
            return Ok(None);
        };
        match self.half {
            Some(_) if time.hour > 12 => return Err(Fault::Field),
            Some(Half::Am) if time.hour == 12 => time.hour = 0,
            Some(Half::Pm) if time.hour != 12 => time.hour += 12,
            _ => {}
        }
        self.time = Some(time);
        self.check_time()?;
        let seconds = time.hour * 3600 + time.minute * 60 + time.second;
        Ok(Some(seconds * MICROS_PER_SECOND + time.micros))
    }

    /// The time of day, and how far east of Greenwich it was read off the clock. A place whose clocks are changed needs
    /// the date beside it; the session's zone takes today.
    fn finish_time(mut self, now: i64) -> Result<(i64, i64)> {
        match self.special.take() {
            Some(Parsed::Civil {
                micros,
                offset_seconds,
                ..
            }) if self.time.is_none() => return Ok((micros, offset_seconds.unwrap_or(0))),
            Some(_) => return Err(Fault::Syntax),
            None => {}
        }
        self.check_date()?;
        let micros = self.clock()?.ok_or(Fault::Syntax)?;
        let local = now.saturating_add(self.east_at(now) * MICROS_PER_SECOND);
        let today = local.div_euclid(MICROS_PER_DAY);
        let day = match self.whole_day {
            Some(day) => Some(day),
            None if self.has_date() => Some(self.civil_day()?),
            None => None,
        };
        let offset = match (&self.zone, day) {
            (None, day) => session_zone(self.settings.as_deref()).offset(day.unwrap_or(today), micros),
            (Some(zone), Some(day)) => zone.offset(day, micros),
            (Some(zone), None) => zone.offset_without_date(today, micros).ok_or(Fault::Syntax)?,
        };
        Ok((micros, offset))
    }

    /// The fields that are there are in range, also when one is missing.
    fn check_date(&self) -> Result<()> {
        let month_fits = self.month.is_none_or(|month| (1..=12).contains(&month));
        if month_fits && self.day.is_none_or(|day| (1..=31).contains(&day)) {
            Ok(())
        } else {
            Err(Fault::MonthOrDay)
        }
    }

    fn civil_day(&self) -> Result<i64> {
        let year = match (self.year.unwrap_or(0), self.era) {
            (..1, Some(Era::Bc)) => return Err(Fault::Field),
            (year, Some(Era::Bc)) => 1 - year,
            (year @ ..70, _) if self.short_year => year + 2000,
            (year @ ..100, _) if self.short_year => year + 1900,
            (..1, _) => return Err(Fault::Field),
            (year, _) => year,
        };
        if let Some(day_of_year) = self.day_of_year {
            return Ok(days_from_civil(year, 1, 1) + day_of_year - 1);
        }
        let (month, day) = (self.month.unwrap_or(0), self.day.unwrap_or(0));
        if day > i64::from(days_in_month(year, month as u32)) {
            return Err(Fault::Field);
        }
        Ok(days_from_civil(year, month as u32, day as u32))
    }
}

fn moment(days: i64, micros: i64, east: i64) -> Parsed {
    Parsed::Civil {
        days,
        micros,
        offset_seconds: Some(east),
    }
}

fn whole_or_syntax(text: &str) -> Result<i64> {
    if text.is_empty() {
        Err(Fault::Syntax)
    } else {
        whole(text)
    }
}
