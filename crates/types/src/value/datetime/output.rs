//! The text of dates and times, in the styles of the setting `DateStyle`.
//!
//! | style | date | timestamp with time zone |
//! | --- | --- | --- |
//! | ISO | `1997-12-17` | `1997-12-17 07:37:16-08` |
//! | SQL | `12/17/1997`, `17/12/1997` by the order `DMY` | `12/17/1997 07:37:16 PST` |
//! | German | `17.12.1997` | `17.12.1997 07:37:16 PST` |
//! | Postgres | `12-17-1997`, `17-12-1997` | `Wed Dec 17 07:37:16 1997 PST`, `Wed 17 Dec …` |
//!
//! JSON has a form of its own, `1997-12-17T07:37:16-08:00`, in the session's zone and under every style. Times of day have
//! one form.

use std::fmt::Write as _;

use super::in_force::{DateTimeSettings, with_shown};
use super::offset::push_offset;
use super::style::{DateStyle, FieldOrder};
use super::{MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Appends a date in the style in force.
pub fn format_date(days: i32, out: &mut String) {
    match days {
        i32::MAX => return out.push_str("infinity"),
        i32::MIN => return out.push_str("-infinity"),
        _ => {}
    }
    let styled = with_shown(|settings| push_styled_date(i64::from(days), settings, out));
    let before_christ = styled.unwrap_or_else(|| push_civil(i64::from(days), out));
    if before_christ {
        out.push_str(" BC");
    }
}

/// Appends a timestamp without a time zone in the style in force.
pub fn format_timestamp(micros: i64, out: &mut String) {
    if push_infinity(micros, out) {
        return;
    }
    if with_shown(|settings| push_styled(micros, None, settings, out)).is_none() {
        push_iso(micros, ' ', None, out);
    }
}

/// Appends a timestamp with time zone in the style and the zone in force.
pub fn format_timestamptz(micros: i64, out: &mut String) {
    if push_infinity(micros, out) {
        return;
    }
    let shown = with_shown(|settings| {
        let (east, letters) = settings.zone.at(micros);
        let local = micros.saturating_add(east * MICROS_PER_SECOND);
        push_styled(local, Some((east, &letters)), settings, out);
    });
    if shown.is_none() {
        push_iso(micros, ' ', Some((0, false)), out);
    }
}

/// Appends a date as JSON has it.
pub fn format_json_date(days: i32, out: &mut String) {
    match days {
        i32::MAX => return out.push_str("infinity"),
        i32::MIN => return out.push_str("-infinity"),
        _ => {}
    }
    if push_civil(i64::from(days), out) {
        out.push_str(" BC");
    }
}

/// Appends a timestamp as JSON has it.
pub fn format_json_timestamp(micros: i64, out: &mut String) {
    if !push_infinity(micros, out) {
        push_iso(micros, 'T', None, out);
    }
}

/// Appends a timestamp with time zone as JSON has it: in the zone in force.
pub fn format_json_timestamptz(micros: i64, out: &mut String) {
    if push_infinity(micros, out) {
        return;
    }
    let east = with_shown(|settings| settings.zone.zone.offset_at(micros)).unwrap_or(0);
    let local = micros.saturating_add(east * MICROS_PER_SECOND);
    push_iso(local, 'T', Some((east, true)), out);
}

/// Appends a timestamp with time zone as JSON has it: in a zone that many seconds east of Greenwich.
pub(crate) fn format_json_timestamp_at(micros: i64, east: i64, out: &mut String) {
    let local = micros.saturating_add(east * MICROS_PER_SECOND);
    push_iso(local, 'T', Some((east, true)), out);
}

/// Appends a time of day and its zone as JSON has them; the zone is so many seconds west of Greenwich.
pub(crate) fn format_json_time_with_zone(micros: i64, zone: i32, out: &mut String) {
    push_clock(micros, out);
    push_offset(-i64::from(zone), true, out);
}

/// Appends a time of day.
pub fn format_time(micros: i64, out: &mut String) {
    push_clock(micros, out);
}

/// Appends a time of day and its zone, so many seconds west of Greenwich.
pub fn format_time_with_zone(micros: i64, zone: i32, out: &mut String) {
    push_clock(micros, out);
    push_offset(-i64::from(zone), false, out);
}

fn push_infinity(micros: i64, out: &mut String) -> bool {
    match micros {
        i64::MAX => out.push_str("infinity"),
        i64::MIN => out.push_str("-infinity"),
        _ => return false,
    }
    true
}

/// Appends a timestamp in ISO style. `offset`: how far east of Greenwich, and true if minutes are always shown.
fn push_iso(local: i64, between: char, offset: Option<(i64, bool)>, out: &mut String) {
    let before_christ = push_civil(local.div_euclid(MICROS_PER_DAY), out);
    out.push(between);
    push_clock(local.rem_euclid(MICROS_PER_DAY), out);
    if let Some((east, minutes)) = offset {
        push_offset(east, minutes, out);
    }
    if before_christ {
        out.push_str(" BC");
    }
}

/// Appends a timestamp in the style of these settings, with its offset and the zone's abbreviation if it has them.
fn push_styled(local: i64, zone: Option<(i64, &str)>, settings: &DateTimeSettings, out: &mut String) {
    let (days, in_day) = (local.div_euclid(MICROS_PER_DAY), local.rem_euclid(MICROS_PER_DAY));
    let before_christ = match settings.style {
        DateStyle::Iso => return push_iso(local, ' ', zone.map(|(east, _)| (east, false)), out),
        DateStyle::Sql | DateStyle::German => {
            let before_christ = push_styled_date(days, settings, out);
            out.push(' ');
            push_clock(in_day, out);
            before_christ
        }
        DateStyle::Postgres => {
            let (year, month, day) = civil_from_days(days);
            let month = MONTHS[month as usize - 1];
            // 2000-01-01 was a Saturday.
            let weekday = WEEKDAYS[(days + 6).rem_euclid(7) as usize];
            let _ = match settings.order {
                FieldOrder::Dmy => write!(out, "{weekday} {day:02} {month} "),
                FieldOrder::Mdy | FieldOrder::Ymd => write!(out, "{weekday} {month} {day:02} "),
            };
            push_clock(in_day, out);
            let _ = write!(out, " {:04}", if year <= 0 { 1 - year } else { year });
            year <= 0
        }
    };
    match zone {
        Some((east, "")) => {
            out.push_str(if settings.style == DateStyle::Postgres {
                " "
            } else {
                ""
            });
            push_offset(east, false, out);
        }
        Some((_, letters)) => {
            out.push(' ');
            out.push_str(letters);
        }
        None => {}
    }
    if before_christ {
        out.push_str(" BC");
    }
}

/// Appends a date in the style of these settings; true if it is one before Christ.
fn push_styled_date(days: i64, settings: &DateTimeSettings, out: &mut String) -> bool {
    let separator = match settings.style {
        DateStyle::Iso => return push_civil(days, out),
        DateStyle::Sql => '/',
        DateStyle::German => '.',
        DateStyle::Postgres => '-',
    };
    let (year, month, day) = civil_from_days(days);
    let day_first = settings.style == DateStyle::German || settings.order == FieldOrder::Dmy;
    let (first, second) = if day_first { (day, month) } else { (month, day) };
    let shown = if year <= 0 { 1 - year } else { year };
    let _ = write!(out, "{first:02}{separator}{second:02}{separator}{shown:04}");
    year <= 0
}

fn push_civil(days: i64, out: &mut String) -> bool {
    let (year, month, day) = civil_from_days(days);
    let shown = if year <= 0 { 1 - year } else { year };
    let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
    year <= 0
}

fn push_clock(micros: i64, out: &mut String) {
    let seconds = micros / MICROS_PER_SECOND;
    let _ = write!(
        out,
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    let fraction = micros % MICROS_PER_SECOND;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::super::in_force::under;
    use super::*;

    /// 1997-12-17 15:37:16.5 UTC
    const MOMENT: i64 = -64_311_763_500_000;

    fn shown(style: &str, zone: &str) -> [String; 4] {
        let _settings = under(DateTimeSettings::of_shown(style, zone).unwrap());
        let mut texts: [String; 4] = Default::default();
        format_date(MOMENT.div_euclid(MICROS_PER_DAY) as i32, &mut texts[0]);
        format_timestamp(MOMENT, &mut texts[1]);
        format_timestamptz(MOMENT, &mut texts[2]);
        format_json_timestamptz(MOMENT, &mut texts[3]);
        texts
    }

    #[test]
    fn every_style_has_its_form() {
        let json = "1997-12-17T07:37:16.5-08:00";
        let la = "America/Los_Angeles";
        for (style, date, timestamp, with_zone) in [
            (
                "ISO, DMY",
                "1997-12-17",
                "1997-12-17 15:37:16.5",
                "1997-12-17 07:37:16.5-08",
            ),
            (
                "SQL, MDY",
                "12/17/1997",
                "12/17/1997 15:37:16.5",
                "12/17/1997 07:37:16.5 PST",
            ),
            (
                "SQL, DMY",
                "17/12/1997",
                "17/12/1997 15:37:16.5",
                "17/12/1997 07:37:16.5 PST",
            ),
            (
                "German, MDY",
                "17.12.1997",
                "17.12.1997 15:37:16.5",
                "17.12.1997 07:37:16.5 PST",
            ),
            (
                "Postgres, MDY",
                "12-17-1997",
                "Wed Dec 17 15:37:16.5 1997",
                "Wed Dec 17 07:37:16.5 1997 PST",
            ),
            (
                "Postgres, DMY",
                "17-12-1997",
                "Wed 17 Dec 15:37:16.5 1997",
                "Wed 17 Dec 07:37:16.5 1997 PST",
            ),
        ] {
            assert_eq!(shown(style, la), [date, timestamp, with_zone, json], "{style}");
        }
        assert_eq!(
            shown("ISO, MDY", "<-03:30>+3:30")[2],
            "1997-12-17 12:07:16.5-03:30"
        );
        assert_eq!(
            shown("SQL, MDY", "<-03:30>+3:30")[2],
            "12/17/1997 12:07:16.5 -03:30"
        );
        assert_eq!(shown("ISO, MDY", "UTC")[3], "1997-12-17T15:37:16.5+00:00");
    }
}
