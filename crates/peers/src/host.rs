//! The CPUs that other programs keep busy while a bench runs. With few CPUs left threads seldom meet at a lock, so the figures
//! of a busy host say little about contention.

use std::time::{Duration, Instant};

use clearway_machine::Native;

/// Milliseconds of a tick of `/proc/stat`: 1/100 s in Linux's interface, whatever the kernel counts in.
const TICK_MS: u64 = 10;

/// A look at what the host's CPUs have done.
#[derive(Debug, Clone, Copy)]
pub struct HostUse {
    at: Instant,
    /// Of all programs since the host began, this one included.
    all: Duration,
    /// Of this program.
    own: Duration,
}

impl HostUse {
    /// The host now; `None` where `/proc/stat` cannot be read.
    pub fn now() -> Option<Self> {
        Some(Self {
            at: Instant::now(),
            all: busy(&std::fs::read_to_string("/proc/stat").ok()?)?,
            own: Native::usage_of_process().cpu_time,
        })
    }

    /// CPUs that other programs kept busy from `self` until `later`.
    pub fn others_until(&self, later: &Self) -> f64 {
        let all = later.all.saturating_sub(self.all);
        let own = later.own.saturating_sub(self.own);
        let elapsed = later.at.saturating_duration_since(self.at);
        all.saturating_sub(own).as_secs_f64() / elapsed.as_secs_f64().max(1e-9)
    }
}

/// The busy time of all CPUs, from the text of `/proc/stat`: user, nice, system, interrupts and the time that a hypervisor
/// took, without idle and waiting for I/O.
fn busy(stat: &str) -> Option<Duration> {
    let columns = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = columns.map_while(|column| column.parse().ok()).collect();
    let [user, nice, system, _idle, _io, interrupts, soft, stolen, ..] = ticks[..] else {
        return None;
    };
    let busy = user + nice + system + interrupts + soft + stolen;
    Some(Duration::from_millis(TICK_MS.saturating_mul(busy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        let stat = "cpu  100 20 30 9999 888 4 5 41 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(busy(stat), Some(Duration::from_secs(2)));
        for bad in ["", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3"] {
            assert_eq!(busy(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_this_program_uses_is_not_of_others() {
        let at = Instant::now();
        let look = |seconds, all, own| HostUse {
            at: at + Duration::from_secs(seconds),
            all: Duration::from_secs(all),
            own: Duration::from_secs(own),
        };
        assert_eq!(look(0, 100, 1).others_until(&look(10, 118, 4)), 1.5);
        assert_eq!(
            look(0, 100, 1).others_until(&look(10, 102, 4)),
            0.0,
            "a tick is coarse"
        );
    }
}
