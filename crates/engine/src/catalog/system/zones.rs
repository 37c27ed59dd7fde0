//! `pg_timezone_names`, `pg_timezone_abbrevs`: the zones whose names and abbreviations a timestamp's text may have.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Sources;
use super::rows::{Rows, boolean, text};
use clearway_sql::value::datetime::{named_abbreviations, named_zones};
use clearway_sql::value::{Interval, Value};

/// `pg_timezone_names`
pub(super) fn names(_: &Sources<'_>, rows: &mut Rows) {
    for zone in named_zones(unix_seconds()) {
        let offset = Interval::new(0, 0, i64::from(zone.offset_seconds) * 1_000_000);
        rows.push([
            ("name", text(&zone.name)),
            ("abbrev", text(&zone.abbreviation)),
            ("utc_offset", Value::Interval(offset)),
            ("is_dst", boolean(zone.is_dst)),
        ]);
    }
}

/// `pg_timezone_abbrevs`
pub(super) fn abbreviations(_: &Sources<'_>, rows: &mut Rows) {
    for zone in named_abbreviations(unix_seconds()) {
        let offset = Interval::new(0, 0, i64::from(zone.offset_seconds) * 1_000_000);
        rows.push([
            ("abbrev", text(&zone.abbreviation)),
            ("utc_offset", Value::Interval(offset)),
            ("is_dst", boolean(zone.is_dst)),
        ]);
    }
}

fn unix_seconds() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_secs().cast_signed()
}
