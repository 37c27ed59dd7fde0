//! `to_date` and `to_timestamp`: a text read by a template; and `datetime()` of paths, which reads as the standard says.
//!
//! Blanks in front of a field are passed over. A blank or a sign in the template takes one of the text, if there is one;
//! any other character takes one, whatever it is. A field of digits takes as many as it is wide if digits follow it in the
//! template, otherwise as many as there are. What is behind the template, or behind the text, is left alone.
//!
//! As the standard says: no blank is passed over in front of a field, each separator and character of the template stands
//! in the text, and both end together.

use super::civil::{self, Civil};
use super::template::{MONTHS, Part, parts};
use crate::error::{EngineError, Result, SqlState, shown};
use crate::function::{made_of, text_of};
use crate::value::Value;
use crate::value::datetime::{
    MICROS_PER_DAY, MICROS_PER_SECOND, NamedZone, days_from_civil, last_day, round_timestamp,
};

/// `to_date(text, template)`
pub(super) fn to_date(arguments: &[Value]) -> Result<Value> {
    let micros = read(made_of(&arguments[0])?, text_of(&arguments[1])?)?;
    Ok(Value::Date(micros.div_euclid(MICROS_PER_DAY) as i32))
}

/// `to_timestamp(text, template)`
pub(super) fn to_timestamp(arguments: &[Value]) -> Result<Value> {
    let local = read(made_of(&arguments[0])?, text_of(&arguments[1])?)?;
    civil::valid(NamedZone::of_session().moment(local)).map(Value::TimestampTz)
}

/// A text as [`read_standard`] reads it.
pub(in crate::function) struct Reading {
    /// The time on a clock, as a timestamp.
    pub local: i64,
    /// Seconds east of Greenwich, 0 if the template has no zone.
    pub east: i64,
    /// True if the template has fields of a date.
    pub is_dated: bool,
    /// True if it has fields of a time of day.
    pub is_timed: bool,
    /// True if it has fields of a zone.
    pub is_zoned: bool,
}

/// The separators of a template that the standard has.
const SEPARATORS: &str = "-./,':; ";

/// 22007 for a template that the standard does not have.
pub(in crate::function) fn check_standard(template: &str) -> Result<()> {
    let mut separators = parts(template).into_iter().filter_map(|part| match part {
        Part::Text { text, quoted: false } => Some(text),
        _ => None,
    });
    match separators.find(|text| !SEPARATORS.contains(text)) {
        None => Ok(()),
        Some(other) => Err(invalid_format(format!(
            "invalid datetime format separator: \"{other}\""
        ))),
    }
}

/// Reads a text by a template as the standard of SQL/JSON says.
pub(in crate::function) fn read_standard(text: &str, template: &str) -> Result<Reading> {
    let parts = parts(template);
    let mut reader = Reader {
        rest: text,
        skipped: 0,
        has_zones: true,
        fields: Fields::default(),
    };
    let (mut is_dated, mut is_timed, mut is_zoned) = (false, false, false);
    for (number, part) in parts.iter().enumerate() {
        match part {
            Part::Text { text, quoted } => {
                for character in text.chars() {
                    reader.match_exactly(character, *quoted)?;
                }
            }
            Part::Field { name, .. } => {
                match sort_of(name) {
                    Sort::Date => is_dated = true,
                    Sort::Time => is_timed = true,
                    Sort::Zone => is_zoned = true,
                    Sort::None => {}
                }
                if reader.rest.is_empty() {
                    return Err(invalid_format("input string is too short for datetime format"));
                }
                reader.field_of_part(part, parts.get(number + 1))?;
            }
        }
    }
    if !reader.rest.trim_start_matches(is_blank).is_empty() {
        return Err(invalid_format(
            "trailing characters remain in input string after datetime format",
        ));
    }
    let local = finish(&reader.fields, text)?;
    Ok(Reading {
        local,
        east: reader.fields.east(text)?,
        is_dated,
        is_timed,
        is_zoned,
    })
}

/// The sort of value that a field is a part of.
enum Sort {
    Date,
    Time,
    Zone,
    None,
}

fn sort_of(name: &str) -> Sort {
    match name.to_uppercase().as_str() {
        "FX" => Sort::None,
        "OF" | "TZ" | "TZH" | "TZM" => Sort::Zone,
        "A.M." | "AM" | "P.M." | "PM" | "HH24" | "HH12" | "HH" | "MI" | "SS" | "MS" | "US" | "FF1"
        | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" | "SSSSS" | "SSSS" => Sort::Time,
        _ => Sort::Date,
    }
}

/// The values of the fields that were read.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    millisecond: Option<i64>,
    microsecond: Option<i64>,
    /// The digits of a second that FF1 to FF6 leave: the last one decides.
    second_digits: Option<i32>,
    /// The hour is one of twelve.
    half_days: bool,
    afternoon: Option<bool>,
    before_christ: Option<bool>,
    zone_is_west: bool,
    zone_hours: Option<i64>,
    zone_minutes: Option<i64>,
}

impl Fields {
    /// Seconds east of Greenwich.
    fn east(&self, text: &str) -> Result<i64> {
        let (hours, minutes) = (self.zone_hours.unwrap_or(0), self.zone_minutes.unwrap_or(0));
        if !(0..=15).contains(&hours) || !(0..60).contains(&minutes) {
            return Err(EngineError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
                format!("time zone displacement out of range: \"{}\"", shown(text)),
            ));
        }
        let away = hours * 3_600 + minutes * 60;
        Ok(if self.zone_is_west { -away } else { away })
    }
}

fn read(text: &str, template: &str) -> Result<i64> {
    let parts = parts(template);
    let mut reader = Reader {
        rest: text,
        skipped: 0,
        has_zones: false,
        fields: Fields::default(),
    };
    for (number, part) in parts.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        let is_field = matches!(part, Part::Field { .. });
        if is_field || number == 0 {
            reader.skip_blanks();
        }
        match part {
            Part::Text { text, quoted } => {
                for character in text.chars() {
                    reader.pass(character, *quoted);
                }
            }
            Part::Field { .. } => {
                reader.field_of_part(part, parts.get(number + 1))?;
                reader.skipped = 0;
                reader.skip_blanks();
            }
        }
    }
    finish(&reader.fields, text)
}

/// True if no digit can follow a field, by what the template has behind it.
fn ends_digits(next: Option<&Part<'_>>) -> bool {
    match next {
        None => true,
        Some(Part::Text { text, .. }) => !text.starts_with(|first: char| first.is_ascii_digit()),
        Some(Part::Field { name, .. }) => !is_digits(name),
    }
}

/// True if a field is read as digits.
fn is_digits(name: &str) -> bool {
    let upper = name.to_uppercase();
    !matches!(
        upper.as_str(),
        "A.D."
            | "A.M."
            | "AD"
            | "AM"
            | "B.C."
            | "BC"
            | "DAY"
            | "DY"
            | "FX"
            | "MONTH"
            | "MON"
            | "OF"
            | "P.M."
            | "PM"
            | "RM"
            | "TZH"
            | "TZ"
    )
}

struct Reader<'a> {
    rest: &'a str,
    /// Blanks that were passed over beyond those of the template.
    skipped: i32,
    /// True if the fields of a zone are read.
    has_zones: bool,
    fields: Fields,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        while let Some(rest) = self.rest.strip_prefix(is_blank) {
            self.rest = rest;
            self.skipped += 1;
        }
    }

    /// Passes over what a character of the template stands for.
    fn pass(&mut self, character: char, quoted: bool) {
        let mut behind = self.rest.chars();
        let Some(next) = behind.next() else { return };
        let takes = match !quoted && (is_blank(character) || is_separator(character)) {
            true => {
                self.skipped -= 1;
                let takes = is_blank(next) || is_separator(next);
                self.skipped += i32::from(takes);
                takes
            }
            false if self.skipped > 0 => {
                self.skipped -= 1;
                false
            }
            false => true,
        };
        if takes {
            self.rest = behind.as_str();
        }
    }

    /// Passes over a character of the template that must stand here.
    fn match_exactly(&mut self, character: char, quoted: bool) -> Result<()> {
        if self.rest.is_empty() {
            return Err(invalid_format("input string is too short for datetime format"));
        }
        let Some(rest) = self.rest.strip_prefix(character) else {
            let what = if quoted { "character" } else { "separator" };
            return Err(invalid_format(format!("unmatched format {what} \"{character}\"")));
        };
        self.rest = rest;
        Ok(())
    }

    /// Reads a field, and the letters of its ordinal; `next` is what the template has behind it.
    fn field_of_part(&mut self, part: &Part<'_>, next: Option<&Part<'_>>) -> Result<()> {
        let Part::Field {
            name,
            short,
            localized,
            ordinal,
        } = part
        else {
            return Ok(());
        };
        if *localized {
            return Err(EngineError::not_supported(format!(
                "TM{name} in a template that is read"
            )));
        }
        let free = *short || ordinal.is_some() || ends_digits(next);
        self.field(name, free)?;
        if ordinal.is_some() {
            let behind = self.rest.char_indices().nth(2);
            self.rest = &self.rest[behind.map_or(self.rest.len(), |(at, _)| at)..];
        }
        Ok(())
    }

    /// The hours of a zone, and the sign in front of them; a blank is a plus.
    fn zone_hours(&mut self, name: &str, free: bool) -> Result<()> {
        self.fields.zone_is_west = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix(['+', '-', ' ']).unwrap_or(self.rest);
        let (hours, _) = self.number(name, 2, free)?;
        set(&mut self.fields.zone_hours, hours, name)
    }

    fn field(&mut self, name: &str, free: bool) -> Result<()> {
        let upper = name.to_uppercase();
        let width = match upper.as_str() {
            "YYYY" => 4,
            "YYY" | "MS" | "DDD" => 3,
            "US" => 6,
            "Y" => 1,
            "HH24" | "HH12" | "HH" | "MI" | "SS" | "DD" | "MM" | "YY" => 2,
            "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => usize::from(upper.as_bytes()[2] - b'0'),
            "MONTH" | "MON" => {
                let month = self.month(name, upper == "MON")?;
                return set(&mut self.fields.month, month, name);
            }
            "AM" | "PM" => return self.half(name, &["am", "pm"]),
            "A.M." | "P.M." => return self.half(name, &["a.m.", "p.m."]),
            "AD" | "BC" => return self.era(name, &["ad", "bc"]),
            "A.D." | "B.C." => return self.era(name, &["a.d.", "b.c."]),
            "TZH" if self.has_zones => return self.zone_hours(name, free),
            "TZM" if self.has_zones => {
                let (minutes, _) = self.number(name, 2, free)?;
                return set(&mut self.fields.zone_minutes, minutes, name);
            }
            _ => {
                return Err(EngineError::not_supported(format!(
                    "{name} in a template that is read"
                )));
            }
        };
        let (number, length) = self.number(name, width, free)?;
        // The digits of a fraction are those behind the point.
        let scaled = |digits: usize| number.saturating_mul(10i64.pow(digits.saturating_sub(length) as u32));
        match upper.as_str() {
            "YYYY" => set(&mut self.fields.year, number, name),
            "YYY" | "YY" | "Y" => set(&mut self.fields.year, full_year(number, length, width), name),
            "MM" => set(&mut self.fields.month, number, name),
            "DD" => set(&mut self.fields.day, number, name),
            "DDD" => set(&mut self.fields.day_of_year, number, name),
            "HH24" => set(&mut self.fields.hour, number, name),
            "HH" | "HH12" => {
                self.fields.half_days = true;
                set(&mut self.fields.hour, number, name)
            }
            "MI" => set(&mut self.fields.minute, number, name),
            "SS" => set(&mut self.fields.second, number, name),
            "MS" => set(&mut self.fields.millisecond, scaled(3), name),
            "US" => set(&mut self.fields.microsecond, scaled(6), name),
            _ => {
                self.fields.second_digits = Some(width as i32);
                set(&mut self.fields.microsecond, scaled(6), name)
            }
        }
    }

    /// A number, and the characters that it took.
    fn number(&mut self, name: &str, width: usize, free: bool) -> Result<(i64, usize)> {
        let before = self.rest;
        self.rest = self.rest.trim_start_matches(is_blank);
        let limit = match free {
            true => self.rest.len(),
            false => {
                let end = self.rest.char_indices().nth(width).map(|(at, _)| at);
                let have = self.rest.chars().take(width).count();
                if have < width {
                    let detail = format!("Field requires {width} characters, but only {have} remain.");
                    return Err(EngineError::new(
                        SqlState::INVALID_DATETIME_FORMAT,
                        format!("source string too short for \"{name}\" formatting field"),
                    )
                    .with_detail(detail));
                }
                end.unwrap_or(self.rest.len())
            }
        };
        let field = &self.rest[..limit];
        let sign = usize::from(field.starts_with(['+', '-']));
        let digits = field[sign..]
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(field.len() - sign);
        if digits == 0 {
            return Err(invalid_value(field, name).with_detail("Value must be an integer."));
        }
        let used = sign + digits;
        if !free && used < width {
            let detail = format!("Field requires {width} characters, but only {used} could be parsed.");
            return Err(invalid_value(field, name).with_detail(detail));
        }
        let number: i32 = field[..used].parse().map_err(|_| {
            EngineError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{name}\" in source string is out of range"),
            )
        })?;
        self.rest = &self.rest[used..];
        Ok((i64::from(number), before.len() - self.rest.len()))
    }

    fn month(&mut self, name: &str, short: bool) -> Result<i64> {
        let matches = |month: &str| {
            let month = if short { &month[..3] } else { month };
            self.rest
                .get(..month.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(month))
        };
        let Some(at) = MONTHS.iter().position(|month| matches(month)) else {
            return Err(self.no_word(name));
        };
        let length = if short { 3 } else { MONTHS[at].len() };
        self.rest = &self.rest[length..];
        Ok(at as i64 + 1)
    }

    /// True if the second of two words stands here, false if the first.
    fn word(&mut self, name: &str, words: &[&str; 2]) -> Result<bool> {
        let matches = |word: &str| {
            self.rest
                .get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        let Some(at) = words.iter().position(|word| matches(word)) else {
            return Err(self.no_word(name));
        };
        self.rest = &self.rest[words[at].len()..];
        Ok(at == 1)
    }

    fn half(&mut self, name: &str, words: &[&str; 2]) -> Result<()> {
        let second = self.word(name, words)?;
        self.fields.half_days = true;
        set_flag(&mut self.fields.afternoon, second, name)
    }

    fn era(&mut self, name: &str, words: &[&str; 2]) -> Result<()> {
        let second = self.word(name, words)?;
        set_flag(&mut self.fields.before_christ, second, name)
    }

    #[cold]
    fn no_word(&self, name: &str) -> EngineError {
        let word = self.rest.split(is_blank).next().unwrap_or_default();
        invalid_value(word, name)
            .with_detail("The given value did not match any of the allowed values for this field.")
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn is_separator(character: char) -> bool {
    character.is_ascii_graphic() && !character.is_ascii_alphanumeric()
}

fn set(field: &mut Option<i64>, value: i64, name: &str) -> Result<()> {
    match field.replace(value) {
        Some(before) if before != value => Err(conflict(name)),
        _ => Ok(()),
    }
}

fn set_flag(field: &mut Option<bool>, value: bool, name: &str) -> Result<()> {
    match field.replace(value) {
        Some(before) if before != value => Err(conflict(name)),
        _ => Ok(()),
    }
}

#[cold]
fn invalid_format(message: impl Into<std::borrow::Cow<'static, str>>) -> EngineError {
    EngineError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

#[cold]
fn conflict(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        format!("conflicting values for \"{name}\" field in formatting string"),
    )
    .with_detail("This value contradicts a previous setting for the same field type.")
}

#[cold]
fn invalid_value(value: &str, name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        format!("invalid value \"{}\" for \"{name}\"", shown(value)),
    )
}

/// The year that its last digits mean: the one nearest to 2020.
fn full_year(year: i64, length: usize, width: usize) -> i64 {
    match year {
        _ if length > width => year,
        0..=69 => year + 2_000,
        70..=99 => year + 1_900,
        100..=519 => year + 2_000,
        520..=999 => year + 1_000,
        _ => year,
    }
}

fn finish(fields: &Fields, text: &str) -> Result<i64> {
    let overflow = || {
        EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date/time field value out of range: \"{}\"", shown(text)),
        )
    };
    let mut hour = fields.hour.unwrap_or(0);
    if fields.half_days {
        if !(1..=12).contains(&hour) {
            return Err(EngineError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("hour \"{hour}\" is invalid for the 12-hour clock"),
            )
            .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        hour = hour % 12 + if fields.afternoon == Some(true) { 12 } else { 0 };
    }
    // Zero is as good as nothing.
    let given = |field: Option<i64>| field.filter(|value| *value != 0);
    let mut year = given(fields.year).unwrap_or(0);
    if year != 0 {
        if fields.before_christ == Some(true) {
            year = -year;
        }
        if year < 0 {
            year += 1;
        }
    }
    let (mut month, mut day) = (given(fields.month).unwrap_or(1), given(fields.day).unwrap_or(1));
    if let Some(of_year) = given(fields.day_of_year)
        && (month <= 1 || day <= 1)
    {
        if given(fields.year).is_none() {
            return Err(EngineError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                "cannot calculate day of year without year information",
            ));
        }
        let days = days_from_civil(year, 1, 1) + of_year - 1;
        let civil = Civil::of(civil::timestamp(days, 0)?);
        if civil.year != year {
            return Err(overflow());
        }
        if month <= 1 {
            month = i64::from(civil.month);
        }
        if day <= 1 {
            day = i64::from(civil.day);
        }
    }
    let (minute, second) = (fields.minute.unwrap_or(0), fields.second.unwrap_or(0));
    let exists = (1..=12).contains(&month)
        && (1..=i64::from(last_day(year, month as u32))).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    let fraction = fields.millisecond.unwrap_or(0) * 1_000 + fields.microsecond.unwrap_or(0);
    if !exists || fraction >= MICROS_PER_SECOND {
        return Err(overflow());
    }
    let in_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction;
    let days = days_from_civil(year, month as u32, day as u32);
    let micros = civil::timestamp(days, in_day).map_err(|_| overflow())?;
    Ok(round_timestamp(micros, fields.second_digits.unwrap_or(6)))
}
