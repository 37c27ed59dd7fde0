//! Wall-clock time as SQL sees it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds from the Unix epoch to PostgreSQL's, 2000-01-01 UTC.
const POSTGRES_EPOCH_SECONDS: i64 = 946_684_800;

/// Microseconds since 2000-01-01 UTC.
pub(crate) fn now_us() -> i64 {
    let since_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_unix.as_micros() as i64 - POSTGRES_EPOCH_SECONDS * 1_000_000
}
