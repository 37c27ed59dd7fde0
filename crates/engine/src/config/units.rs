//! Sizes and times of the configuration, with their units.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A size in bytes, written with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

const BYTE_UNITS: [(&str, u64); 5] = [
    ("TB", 1 << 40),
    ("GB", 1 << 30),
    ("MB", 1 << 20),
    ("kB", 1 << 10),
    ("B", 1),
];

impl ByteSize {
    /// The size of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }

    /// The size of `count` MiB.
    pub const fn mib(count: u64) -> ByteSize {
        ByteSize(count << 20)
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = BYTE_UNITS
            .into_iter()
            .find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor))
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let (number, factor) = split_unit(text, &BYTE_UNITS, "MB", true)?;
        number
            .checked_mul(factor)
            .map(ByteSize)
            .ok_or_else(|| format!("\"{text}\" is too large"))
    }
}

/// A length of time, written with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

const TIME_UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

impl Span {
    /// The span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(Duration::from_micros(micros))
    }

    /// The span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(Duration::from_millis(millis))
    }

    /// The span of `seconds` seconds.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(Duration::from_secs(seconds))
    }

    /// As a duration.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros() as u64;
        let (unit, factor) = TIME_UNITS
            .into_iter()
            .find(|(_, factor)| micros != 0 && micros.is_multiple_of(*factor))
            .unwrap_or(("us", 1));
        write!(f, "{}{unit}", micros / factor)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let (number, factor) = split_unit(text, &TIME_UNITS, "s", false)?;
        number
            .checked_mul(factor)
            .map(Span::from_micros)
            .ok_or_else(|| format!("\"{text}\" is too long"))
    }
}

/// The limit of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayLimit {
    /// So long.
    After(Span),
    /// For ever; written "never".
    Never,
}

impl DelayLimit {
    /// The limit; `None` if there is none.
    pub const fn duration(self) -> Option<Duration> {
        match self {
            DelayLimit::After(span) => Some(span.duration()),
            DelayLimit::Never => None,
        }
    }
}

impl fmt::Display for DelayLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DelayLimit::After(span) => span.fmt(f),
            DelayLimit::Never => f.write_str("never"),
        }
    }
}

impl FromStr for DelayLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<DelayLimit, String> {
        match text.trim() {
            // PostgreSQL's way to say it.
            "never" | "-1" => Ok(DelayLimit::Never),
            span => span
                .parse()
                .map(DelayLimit::After)
                .map_err(|error| format!("{error}; or \"never\"")),
        }
    }
}

/// The least size of something that is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeLimit {
    /// So large, or larger.
    From(ByteSize),
    /// None; written "never".
    Never,
}

impl SizeLimit {
    /// The least size in bytes; `None` if there is none.
    pub const fn bytes(self) -> Option<u64> {
        match self {
            SizeLimit::From(size) => Some(size.bytes()),
            SizeLimit::Never => None,
        }
    }
}

impl fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeLimit::From(size) => size.fmt(f),
            SizeLimit::Never => f.write_str("never"),
        }
    }
}

impl FromStr for SizeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeLimit, String> {
        match text.trim() {
            // PostgreSQL's way to say it.
            "never" | "-1" => Ok(SizeLimit::Never),
            size => size
                .parse()
                .map(SizeLimit::From)
                .map_err(|error| format!("{error}; or \"never\"")),
        }
    }
}

/// A number and its unit's factor; `usual` is the unit to suggest.
fn split_unit(
    text: &str,
    units: &[(&str, u64)],
    usual: &str,
    ignore_case: bool,
) -> Result<(u64, u64), String> {
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim();
    let known = || {
        units
            .iter()
            .rev()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let number = number
        .parse::<u64>()
        .map_err(|_| format!("\"{text}\" is not a number with a unit ({})", known()))?;
    if unit.is_empty() {
        // Nothing is the same in every unit.
        if number == 0 {
            return Ok((0, 1));
        }
        return Err(format!(
            "{number} has no unit: write \"{number}{usual}\", for example (units are {})",
            known()
        ));
    }
    let found = units.iter().find(|(name, _)| {
        if ignore_case {
            name.eq_ignore_ascii_case(unit)
        } else {
            *name == unit
        }
    });
    match found {
        Some((_, factor)) => Ok((number, *factor)),
        None => Err(format!(
            "\"{unit}\" in \"{text}\" is no unit; there are {}",
            known()
        )),
    }
}

/// In TOML: a string with a unit, or a bare number.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Text(String),
}

macro_rules! serde_by_text {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let text = match NumberOrText::deserialize(deserializer)? {
                    NumberOrText::Number(number) => number.to_string(),
                    NumberOrText::Text(text) => text,
                };
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

serde_by_text!(ByteSize);
serde_by_text!(Span);
serde_by_text!(DelayLimit);
serde_by_text!(SizeLimit);
