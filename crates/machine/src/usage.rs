//! CPU use that the kernel has charged to the program or to one of its threads: context switches and time on a CPU.

use core::ops::Sub;
use core::time::Duration;

use crate::Native;

/// The charges of the kernel since the program, or the thread, began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Times that a thread gave its CPU away, since it went to sleep.
    pub voluntary_switches: u64,
    /// Times that the kernel took the CPU from a thread that could have gone on.
    pub involuntary_switches: u64,
    /// Time on a CPU, in the program and in the kernel for it.
    pub cpu_time: Duration,
}

impl Native {
    /// The usage of all threads of the program, those that have ended included.
    pub fn usage_of_process() -> Usage {
        usage(libc::RUSAGE_SELF)
    }

    /// The usage of the calling thread.
    pub fn usage_of_this_thread() -> Usage {
        usage(libc::RUSAGE_THREAD)
    }
}

fn usage(of: libc::c_int) -> Usage {
    // SAFETY: plain old data, for which zeros are valid.
    let mut used: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: the call writes one `rusage` into the place given, which outlives it. With a pointer that is valid, and
    // one of the two constants above, it cannot fail.
    unsafe { libc::getrusage(of, &raw mut used) };
    let time =
        |at: libc::timeval| Duration::from_secs(at.tv_sec as u64) + Duration::from_micros(at.tv_usec as u64);
    Usage {
        voluntary_switches: used.ru_nvcsw as u64,
        involuntary_switches: used.ru_nivcsw as u64,
        cpu_time: time(used.ru_utime) + time(used.ru_stime),
    }
}

impl Sub for Usage {
    type Output = Usage;

    /// The usage between two looks; zero where `earlier` is the later one.
    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            cpu_time: self.cpu_time.saturating_sub(earlier.cpu_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_voluntary_switches_of_the_thread_and_of_the_program() {
        let before = (Native::usage_of_this_thread(), Native::usage_of_process());
        for _ in 0..5 {
            std::thread::sleep(Duration::from_micros(200));
        }
        let thread = Native::usage_of_this_thread() - before.0;
        let process = Native::usage_of_process() - before.1;
        assert!(thread.voluntary_switches >= 5, "{thread:?}");
        assert!(
            process.voluntary_switches >= thread.voluntary_switches,
            "{process:?}"
        );
    }

    #[test]
    fn work_is_time_on_a_cpu() {
        let before = Native::usage_of_this_thread();
        let mut sum = 0u64;
        while (Native::usage_of_this_thread() - before).cpu_time.is_zero() {
            sum = core::hint::black_box(sum.wrapping_add(1));
        }
        assert!(Native::usage_of_process().cpu_time >= Native::usage_of_this_thread().cpu_time);
    }
}
