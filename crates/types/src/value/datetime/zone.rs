//! Time zones in the text of a timestamp: numeric offsets, names of places, and the abbreviations that PostgreSQL knows by
//! default.
//!
//! An abbreviation has one offset (`PST`), or means what it meant at a place then: `MSK` is three hours before Greenwich, and
//! was four from 2011 to 2014. The offset of a place depends on the date and time that it stands beside, so it is found when
//! all of the text is read ([`Zone::offset`]):
//!
//! 1. Where the clock was put forward, a time that it left out is counted by the offset before; where it was put back, a time
//!    that it showed twice by the offset after.
//! 2. An abbreviation of a place has the offset of the last transition at or before that moment that brought it, or else of
//!    the next one that does. If none does, as with those that the time zone database has given up (`NOVT`), it means the
//!    place.
//!
//! The rules of places are the time zone database's, which the program brings along (`jiff`), so that an answer does not
//! depend on the machine.
//!
//! Origin: PostgreSQL's `DetermineTimeZoneOffset`, `DetermineTimeZoneAbbrevOffset` and its set `Default` of abbreviations.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::abbreviation::{FIXED, OF_PLACES};
use super::{MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_TO_OURS_DAYS};

const SECONDS_PER_DAY: i64 = MICROS_PER_DAY / MICROS_PER_SECOND;
/// Seconds in 400 years, after which the calendar and all rules repeat.
const CYCLE: i64 = 146_097 * SECONDS_PER_DAY;
/// 2038-01-01: no abbreviation is brought for the first time later.
const NEW_UNTIL: i64 = 2_145_916_800;

/// The clock that a time was read off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Zone {
    /// A clock that many seconds east of Greenwich.
    Fixed(i64),
    /// The clocks of a place, perhaps under one of the names of its offsets.
    Place {
        zone: TimeZone,
        abbreviation: Option<String>,
    },
}

/// A zone of the time zone database at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneAtMoment {
    /// Its name.
    pub name: String,
    /// The abbreviation of its time then.
    pub abbreviation: String,
    /// Seconds east of Greenwich.
    pub offset_seconds: i32,
    /// True if its clocks were put forward.
    pub is_dst: bool,
}

/// All zones of the time zone database, as they are at a moment: seconds since 1970.
pub fn named_zones(unix_seconds: i64) -> Vec<ZoneAtMoment> {
    let Ok(moment) = Timestamp::from_second(unix_seconds) else {
        return Vec::new();
    };
    let zones = jiff::tz::db().available().filter_map(|name| {
        let zone = jiff::tz::db().get(name.as_str()).ok()?;
        let now = zone.to_offset_info(moment);
        Some(ZoneAtMoment {
            name: name.as_str().to_owned(),
            abbreviation: now.abbreviation().to_owned(),
            offset_seconds: now.offset().seconds(),
            is_dst: now.dst().is_dst(),
        })
    });
    zones.collect()
}

/// All abbreviations, as they are meant at a moment: seconds since 1970. In upper case, and by name.
pub fn named_abbreviations(unix_seconds: i64) -> Vec<ZoneAtMoment> {
    let entry = |name: &str, offset_seconds: i64, is_dst| ZoneAtMoment {
        name: name.to_uppercase(),
        abbreviation: name.to_uppercase(),
        offset_seconds: offset_seconds as i32,
        is_dst,
    };
    let fixed = FIXED
        .iter()
        .map(|known| entry(known.name, known.quarter_hours * 900, known.is_dst));
    let of_places = OF_PLACES.iter().filter_map(|(name, place)| {
        let zone = jiff::tz::db().get(place).ok()?;
        let at = Timestamp::from_second(unix_seconds).ok()?;
        let now = zone.to_offset_info(at);
        let (seconds, is_dst) = meaning_and_dst(&zone, name, unix_seconds)
            .unwrap_or((i64::from(now.offset().seconds()), now.dst().is_dst()));
        Some(entry(name, seconds, is_dst))
    });
    let mut all: Vec<ZoneAtMoment> = fixed.chain(of_places).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

impl Zone {
    /// A place of the time zone database, in letters of either case.
    pub(super) fn place(name: &str) -> Option<Zone> {
        let zone = jiff::tz::db().get(name).ok()?;
        Some(Zone::Place {
            zone,
            abbreviation: None,
        })
    }

    /// An abbreviation, in lower case.
    pub(super) fn abbreviation(name: &str) -> Option<Zone> {
        if let Some(quarter_hours) = fixed(name) {
            return Some(Zone::Fixed(quarter_hours * 900));
        }
        let zone = jiff::tz::db().get(place_of(name)?).ok()?;
        Some(Zone::Place {
            zone,
            abbreviation: Some(name.to_owned()),
        })
    }

    /// Seconds east of Greenwich on a clock that shows this day, counted from 2000-01-01, and this time.
    pub(super) fn offset(&self, days: i64, micros: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => *seconds,
            Zone::Place { zone, abbreviation } => {
                let shown =
                    (days + UNIX_TO_OURS_DAYS) * SECONDS_PER_DAY + micros.div_euclid(MICROS_PER_SECOND);
                let shown = within_range(shown);
                let of_place = offset_at(zone, shown);
                let meant = |name: &String| meaning(zone, name, shown - of_place);
                abbreviation.as_ref().and_then(meant).unwrap_or(of_place)
            }
        }
    }
}

impl Zone {
    /// Seconds east of Greenwich on a clock that shows this time, where no date is given: an abbreviation means what it
    /// means today. `None` for a place whose clocks are changed.
    pub(super) fn offset_without_date(&self, today: i64, micros: i64) -> Option<i64> {
        match self {
            Zone::Fixed(seconds) => Some(*seconds),
            Zone::Place {
                abbreviation: Some(_),
                ..
            } => Some(self.offset(today, micros)),
            Zone::Place { zone, .. } if zone.preceding(Timestamp::MAX).next().is_some() => None,
            Zone::Place { zone, .. } => Some(i64::from(zone.to_offset(Timestamp::UNIX_EPOCH).seconds())),
        }
    }

    /// The zone that a text names: an abbreviation, a place, or hours west of Greenwich as POSIX writes them (`UTC+3`).
    pub(super) fn named(text: &str) -> Option<Zone> {
        Zone::abbreviation(&text.to_lowercase())
            .or_else(|| Zone::place(text))
            .or_else(|| posix(text).map(|west| Zone::Fixed(-west)))
    }

    /// Seconds east of Greenwich at a moment, counted in microseconds from 2000-01-01 UTC.
    pub(super) fn offset_at(&self, micros: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => *seconds,
            Zone::Place { zone, abbreviation } => {
                let seconds = micros.div_euclid(MICROS_PER_SECOND) + UNIX_TO_OURS_DAYS * SECONDS_PER_DAY;
                let seconds = within_range(seconds);
                let of_place = Timestamp::from_second(seconds)
                    .map_or(0, |moment| i64::from(zone.to_offset(moment).seconds()));
                let meant = |name: &String| meaning(zone, name, seconds);
                abbreviation.as_ref().and_then(meant).unwrap_or(of_place)
            }
        }
    }
}

impl Zone {
    /// Seconds east of Greenwich of a place at a moment, and the abbreviation of its time then.
    pub(super) fn info_at(&self, micros: i64) -> (i64, String) {
        let seconds = micros.div_euclid(MICROS_PER_SECOND) + UNIX_TO_OURS_DAYS * SECONDS_PER_DAY;
        match (self, Timestamp::from_second(within_range(seconds))) {
            (Zone::Place { zone, .. }, Ok(moment)) => {
                let info = zone.to_offset_info(moment);
                (i64::from(info.offset().seconds()), info.abbreviation().to_owned())
            }
            _ => (self.offset_at(micros), String::new()),
        }
    }
}

/// Seconds west of Greenwich of `ABC+h:mm:ss`, where the name and the sign may be missing.
pub(super) fn posix(text: &str) -> Option<i64> {
    let behind = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => text.trim_start_matches(|first: char| first.is_ascii_alphabetic()),
    };
    let (sign, digits) = match behind.as_bytes().first()? {
        b'-' => (-1, &behind[1..]),
        b'+' => (1, &behind[1..]),
        _ => (1, behind),
    };
    let parts: Vec<&str> = digits.split(':').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(is_number) {
        return None;
    }
    let number = |at: usize| parts.get(at).map_or(Some(0), |part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (number(0)?, number(1)?, number(2)?);
    let in_range = hours <= 167 && minutes < 60 && seconds < 60;
    in_range.then_some(sign * (hours * 3_600 + minutes * 60 + seconds))
}

/// The same moment of another cycle, whose year `jiff` has, with a cycle to spare on both sides.
fn within_range(seconds: i64) -> i64 {
    let (first, last) = (
        Timestamp::MIN.as_second() + CYCLE,
        Timestamp::MAX.as_second() - CYCLE,
    );
    match seconds {
        seconds if seconds > last => last - CYCLE + (seconds - last).rem_euclid(CYCLE),
        seconds if seconds < first => first + (seconds - first).rem_euclid(CYCLE),
        seconds => seconds,
    }
}

/// The offset of a place whose clock shows `shown`, as seconds since 1970 on that clock (step 1).
fn offset_at(zone: &TimeZone, shown: i64) -> i64 {
    let Ok(shown) = Timestamp::from_second(shown) else {
        return 0;
    };
    let offset = match zone
        .to_ambiguous_timestamp(Offset::UTC.to_datetime(shown))
        .offset()
    {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    i64::from(offset.seconds())
}

/// The offset that an abbreviation means at a place and a moment, in seconds since 1970 (step 2).
fn meaning(zone: &TimeZone, abbreviation: &str, at: i64) -> Option<i64> {
    meaning_and_dst(zone, abbreviation, at).map(|(offset, _)| offset)
}

/// As [`meaning`], and true if it is the time of clocks that were put forward.
fn meaning_and_dst(zone: &TimeZone, abbreviation: &str, at: i64) -> Option<(i64, bool)> {
    let at = Timestamp::from_second(at).ok()?;
    let just_after = Timestamp::from_second(at.as_second() + 1).ok()?;
    let brings = |name: &str| name.eq_ignore_ascii_case(abbreviation);
    let before = zone
        .preceding(just_after)
        .find(|transition| brings(transition.abbreviation()))
        .map(|transition| (transition.offset(), transition.dst().is_dst()));
    let after = || {
        zone.following(at)
            .take_while(|transition| transition.timestamp().as_second() < NEW_UNTIL)
            .find(|transition| brings(transition.abbreviation()))
            .map(|transition| (transition.offset(), transition.dst().is_dst()))
    };
    let found = before.or_else(after);
    found.map(|(offset, is_dst)| (i64::from(offset.seconds()), is_dst))
}

/// Quarters of an hour east of Greenwich of an abbreviation that has one offset.
fn fixed(name: &str) -> Option<i64> {
    let at = FIXED.binary_search_by(|known| known.name.cmp(name)).ok()?;
    Some(FIXED[at].quarter_hours)
}

/// The place whose offsets an abbreviation names.
fn place_of(name: &str) -> Option<&'static str> {
    let at = OF_PLACES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(OF_PLACES[at].1)
}

/// Seconds east of Greenwich of `+hh`, `-hhmm`, `+hh:mm`, `+hh:mm:ss`; `Err` when it is read but too far from zero.
pub(super) fn offset(text: &str) -> Option<Result<i64, ()>> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let digits = digits.trim_start();
    let parts: Vec<&str> = digits.split(':').collect();
    if parts.len() > 3
        || parts
            .iter()
            .any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()))
    {
        return None;
    }
    let numbers: Vec<i64> = parts.iter().map_while(|part| part.parse().ok()).collect();
    let (hours, minutes, seconds) = match *numbers.as_slice() {
        [packed] if parts[0].len() > 2 && parts.len() == 1 => (packed / 100, packed % 100, 0),
        [hours] => (hours, 0, 0),
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Some(Err(())),
    };
    if hours > 15 || minutes > 59 || seconds > 59 || numbers.len() != parts.len() {
        return Some(Err(()));
    }
    Some(Ok(sign * (hours * 3600 + minutes * 60 + seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::datetime::days_from_civil;

    /// Seconds east of Greenwich, as hours.
    fn hours(zone: &str, date: (i64, u32, u32), hour: i64) -> f64 {
        let zone = Zone::abbreviation(zone).or_else(|| Zone::place(zone)).unwrap();
        let micros = hour * 3_600 * MICROS_PER_SECOND;
        zone.offset(days_from_civil(date.0, date.1, date.2), micros) as f64 / 3_600.0
    }

    #[test]
    fn every_abbreviation_of_a_place_has_its_place() {
        assert!(FIXED.is_sorted_by_key(|known| known.name));
        assert!(OF_PLACES.is_sorted_by_key(|(name, _)| *name));
        for (name, _) in OF_PLACES {
            assert!(Zone::abbreviation(name).is_some(), "{name}");
        }
        // 2026-11-29
        let all = named_abbreviations(1_796_000_000);
        let of = |name: &str| all.iter().find(|zone| zone.name == name).unwrap();
        assert_eq!(all.len(), FIXED.len() + OF_PLACES.len());
        assert_eq!((of("PDT").offset_seconds, of("PDT").is_dst), (-25_200, true));
        assert_eq!((of("MSK").offset_seconds, of("MSK").is_dst), (10_800, false));
    }

    #[test]
    fn an_abbreviation_means_what_it_meant_then() {
        assert_eq!(hours("msk", (2010, 1, 1), 12), 3.0);
        assert_eq!(hours("msk", (2012, 1, 1), 12), 4.0);
        assert_eq!(hours("msk", (2016, 1, 1), 12), 3.0);
        // The database has given it up: the place's own offset, six hours until 2016.
        assert_eq!(hours("novt", (2015, 1, 1), 12), 6.0);
        assert_eq!(hours("novt", (2017, 1, 1), 12), 7.0);
        assert_eq!(hours("est", (2020, 7, 1), 12), -5.0);
    }

    #[test]
    fn times_that_a_clock_left_out_or_showed_twice() {
        let berlin = "europe/berlin";
        assert_eq!(hours(berlin, (2023, 3, 26), 1), 1.0);
        assert_eq!(hours(berlin, (2023, 3, 26), 2), 1.0, "left out: as before");
        assert_eq!(hours(berlin, (2023, 3, 26), 3), 2.0);
        assert_eq!(hours(berlin, (2023, 10, 29), 2), 1.0, "shown twice: as after");
    }

    #[test]
    fn years_far_away_repeat_those_of_today() {
        for year in [9_998, 20_023, 294_000] {
            assert_eq!(hours("America/New_York", (year, 7, 1), 12), -4.0, "{year}");
            assert_eq!(hours("America/New_York", (year, 1, 1), 12), -5.0, "{year}");
        }
        assert!(hours("America/New_York", (-4_712, 7, 1), 12) < -4.9);
        assert!(Zone::place("Nowhere/Land").is_none());
    }
}
