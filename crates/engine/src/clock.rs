//! Wall-clock time as SQL sees it, and the time that has passed.

use std::sync::LazyLock;
use std::time::Instant;

pub(crate) use clearway_storage::wall_clock::now_us;

/// The beginning of the second clock: a little before its first reading, which is therefore not 0.
static RUNNING_SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Microseconds since the process first asked, and one: never 0, and never less than before.
pub(crate) fn running_us() -> u64 {
    RUNNING_SINCE.elapsed().as_micros() as u64 + 1
}
