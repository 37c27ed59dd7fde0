//! The setting `TimeZone`: the zone that a session's clocks show.
//!
//! | text | is |
//! | --- | --- |
//! | `Europe/Berlin`, in letters of either case | a zone of the time zone database |
//! | `-8`, `5.5` | hours east of Greenwich |
//! | `INTERVAL '-08:00'` | a distance from Greenwich |
//! | `<-08>+08`, `EST5EDT`, `CET-1CEST,M3.5.0,M10.5.0` | a zone as POSIX writes it: a name, hours *west* of Greenwich, and perhaps a second name with the rule of its dates |
//!
//! A zone by its distance is shown as POSIX writes it.

use jiff::tz::TimeZone;

use super::offset::push_offset;
use super::zone::{Zone, posix};
use super::{IntervalStyle, MICROS_PER_SECOND, parse_interval};

/// The dates between which clocks are put forward, where a POSIX text names none: those of the United States.
const DEFAULT_RULE: &str = ",M3.2.0,M11.1.0";

/// The longest name of a zone.
const NAME_BYTES_MAX: usize = 255;

/// The zone that a session's clocks show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionZone {
    /// As SHOW shows it.
    name: String,
    pub(super) zone: Zone,
    /// The abbreviation of a zone that has one offset.
    letters: String,
}

/// The reason why a text is no value of `TimeZone`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneFault {
    /// No zone has this name.
    Unknown,
    /// An interval with months.
    Months,
    /// An interval with days.
    Days,
}

impl ZoneFault {
    /// The detail of the error.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            ZoneFault::Unknown => None,
            ZoneFault::Months => Some("Cannot specify months in time zone interval."),
            ZoneFault::Days => Some("Cannot specify days in time zone interval."),
        }
    }
}

impl Default for SessionZone {
    fn default() -> SessionZone {
        SessionZone::fixed("UTC".to_owned(), "UTC".to_owned(), 0)
    }
}

impl SessionZone {
    /// The zone that a value of the setting is.
    pub fn of_setting(text: &str) -> Result<SessionZone, ZoneFault> {
        if text
            .get(..8)
            .is_some_and(|word| word.eq_ignore_ascii_case("interval"))
        {
            return of_interval(text[8..].trim_start());
        }
        if let Ok(hours) = text.trim_start().parse::<f64>() {
            let seconds = hours * 3_600.0;
            return match seconds.is_finite() {
                true => by_distance(seconds as i64),
                false => Err(ZoneFault::Unknown),
            };
        }
        SessionZone::named(text).ok_or(ZoneFault::Unknown)
    }

    /// The zone that a text names: one of the database, or as POSIX writes it.
    pub(super) fn named(text: &str) -> Option<SessionZone> {
        if text.len() > NAME_BYTES_MAX {
            return None;
        }
        if let Ok(zone) = jiff::tz::db().get(text) {
            let name = zone.iana_name().unwrap_or("UTC").to_owned();
            return Some(match zone.to_fixed_offset() {
                Ok(offset) => {
                    let letters = zone
                        .to_offset_info(jiff::Timestamp::UNIX_EPOCH)
                        .abbreviation()
                        .to_owned();
                    SessionZone::fixed(name, letters, i64::from(offset.seconds()))
                }
                Err(_) => SessionZone::place(name, zone),
            });
        }
        let upper = text.to_ascii_uppercase();
        if let Some(west) = posix(&upper) {
            let letters = match upper.strip_prefix('<') {
                Some(quoted) => quoted.split('>').next().unwrap_or_default(),
                None => upper
                    .split(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ','))
                    .next()
                    .unwrap_or_default(),
            };
            let letters = letters.to_owned();
            return Some(SessionZone::fixed(upper, letters, -west));
        }
        let rule = if upper.contains([',', ';']) {
            ""
        } else {
            DEFAULT_RULE
        };
        let zone = TimeZone::posix(&format!("{upper}{rule}")).ok()?;
        Some(SessionZone::place(upper, zone))
    }

    fn fixed(name: String, letters: String, seconds: i64) -> SessionZone {
        SessionZone {
            name,
            zone: Zone::Fixed(seconds),
            letters,
        }
    }

    fn place(name: String, zone: TimeZone) -> SessionZone {
        SessionZone {
            name,
            zone: Zone::Place {
                zone,
                abbreviation: None,
            },
            letters: String::new(),
        }
    }

    /// Its name, as SHOW shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if it is UTC under that name.
    pub(super) fn is_utc(&self) -> bool {
        self.name == "UTC"
    }

    /// Seconds east of Greenwich at a moment, and the abbreviation of the zone's time then.
    pub(super) fn at(&self, moment: i64) -> (i64, String) {
        match &self.zone {
            Zone::Fixed(seconds) => (*seconds, self.letters.clone()),
            Zone::Place { .. } => self.zone.info_at(moment),
        }
    }
}

/// The zone that is `'…'`, the rest of an interval, away from Greenwich.
fn of_interval(text: &str) -> Result<SessionZone, ZoneFault> {
    let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    let quoted = quoted
        .filter(|text| !text.contains('\''))
        .ok_or(ZoneFault::Unknown)?;
    let interval = parse_interval(quoted, -1, IntervalStyle::Postgres).map_err(|_| ZoneFault::Unknown)?;
    match (interval.months, interval.days) {
        (0, 0) => by_distance(interval.micros / MICROS_PER_SECOND),
        (0, _) => Err(ZoneFault::Days),
        _ => Err(ZoneFault::Months),
    }
}

/// The zone whose clocks are always so many seconds before those in Greenwich.
fn by_distance(east: i64) -> Result<SessionZone, ZoneFault> {
    let mut shown = String::new();
    push_offset(east, false, &mut shown);
    let opposite = if east < 0 { '+' } else { '-' };
    let name = format!("<{shown}>{opposite}{}", &shown[1..]);
    SessionZone::named(&name).ok_or(ZoneFault::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Result<String, ZoneFault> {
        SessionZone::of_setting(text).map(|zone| zone.name)
    }

    #[test]
    fn a_zone_has_the_name_of_the_database_or_of_posix() {
        assert_eq!(name("europe/BERLIN").unwrap(), "Europe/Berlin");
        assert_eq!(name("utc").unwrap(), "UTC");
        assert_eq!(name("-8").unwrap(), "<-08>+08");
        assert_eq!(name("5.5").unwrap(), "<+05:30>-05:30");
        assert_eq!(name("0").unwrap(), "<+00>-00");
        assert_eq!(name("INTERVAL '-08:00'").unwrap(), "<-08>+08");
        assert_eq!(name("interval '1:02:03'").unwrap(), "<+01:02:03>-01:02:03");
        assert_eq!(name("abc+3").unwrap(), "ABC+3");
        assert_eq!(name("INTERVAL '1 day'"), Err(ZoneFault::Days));
        assert_eq!(name("INTERVAL '1 month'"), Err(ZoneFault::Months));
        for text in ["foo", "", "Europe/Nowhere", "168", "NaN", "interval '1", "'utc'"] {
            assert_eq!(name(text), Err(ZoneFault::Unknown), "{text}");
        }
    }

    #[test]
    fn posix_without_a_rule_has_that_of_the_united_states() {
        let zone = SessionZone::of_setting("abc5def").unwrap();
        // 2000-01-01 and 2000-07-01
        assert_eq!(zone.at(0), (-18_000, "ABC".to_owned()));
        assert_eq!(zone.at(182 * 86_400_000_000), (-14_400, "DEF".to_owned()));
        let zone = SessionZone::of_setting("<-08>+08").unwrap();
        assert_eq!(zone.at(0), (-28_800, "-08".to_owned()));
    }
}
