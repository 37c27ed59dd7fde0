//! The identity of a timeline, which tells timelines of the same number apart.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::SystemTime;

/// A random number that a timeline is given when it begins: 16 hexadecimal digits in history files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimelineIdentity(u64);

impl TimelineIdentity {
    /// One that no other timeline has, but for a chance of 2^-64.
    pub(super) fn random() -> TimelineIdentity {
        // The keys of the hash come from the operating system's source of random bytes, once for each thread. The time
        // tells those of one thread apart, and the process those of machines that were copied while they ran.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        TimelineIdentity(RandomState::new().hash_one((now, std::process::id())))
    }
}

impl fmt::Display for TimelineIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for TimelineIdentity {
    type Err = ();

    fn from_str(text: &str) -> Result<TimelineIdentity, ()> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).map_err(|_| ())?;
        if digits {
            Ok(TimelineIdentity(number))
        } else {
            Err(())
        }
    }
}
