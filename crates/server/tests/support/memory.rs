//! The memory of this process, which the server under test shares with its test.

use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A measurement. No other test of this binary runs meanwhile: each takes its turn, also those that do not
/// measure, since what they use would be counted.
pub struct Measured {
    _alone: MutexGuard<'static, ()>,
    before: u64,
}

impl Measured {
    /// Waits for its turn. From here on a long block of the C library's allocator is given back when it is freed; by itself the
    /// library comes to keep as much as the longest block so far, and more.
    pub fn alone() -> Measured {
        // SAFETY: it takes no pointer, and changes only where later blocks are.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10) };
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Measured {
            _alone: alone,
            before: 0,
        }
    }

    /// Begins the measurement: the peak is forgotten, and the resident size of now is the base.
    pub fn start(&mut self) {
        // Linux: "5" sets the peak of the resident size to its present value.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        self.before = status("VmRSS");
    }

    /// The most bytes by which the resident size has risen above the base.
    pub fn peak_growth(&self) -> u64 {
        status("VmHWM").saturating_sub(self.before)
    }

    /// The bytes by which the resident size is above the base now.
    pub fn growth(&self) -> u64 {
        status("VmRSS").saturating_sub(self.before)
    }
}

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_else(|| panic!("no {name}"));
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}
