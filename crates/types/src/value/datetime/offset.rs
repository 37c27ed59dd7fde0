//! The text of a distance from Greenwich.

use std::fmt::Write as _;

/// Appends a distance from Greenwich, its minutes and seconds only if there are some.
pub(super) fn push_offset(east: i64, minutes: bool, out: &mut String) {
    let away = east.abs();
    let sign = if east < 0 { '-' } else { '+' };
    let _ = write!(out, "{sign}{:02}", away / 3600);
    if minutes || away % 3600 != 0 {
        let _ = write!(out, ":{:02}", away / 60 % 60);
    }
    if away % 60 != 0 {
        let _ = write!(out, ":{:02}", away % 60);
    }
}
