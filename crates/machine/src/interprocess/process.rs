//! The identity of a process, and whether it is alive.
//!
//! A number alone does not say it: the kernel gives numbers of dead processes to new ones. The start time beside it does, in
//! the kernel's ticks since the machine has started; two processes of one number and one tick do not occur, since numbers
//! come round after all others.

use core::ffi::c_int;
use std::io;
use std::os::unix::fs::MetadataExt;

/// A process: its number in the low half, the low 32 bits of its start time in the high half. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId(pub(super) u64);

/// The part of `/proc/PID/stat` that matters here.
struct Stat {
    /// True of a process that has ended and whose parent has not asked for it. Not of one whose first thread alone has ended.
    has_ended: bool,
    start: u32,
}

impl ProcessId {
    /// The calling process.
    pub fn current() -> Self {
        let pid = std::process::id();
        // Without /proc the start is unknown, and the number decides.
        let start = stat_of(pid).map_or(0, |stat| stat.start);
        Self(u64::from(start) << 32 | u64::from(pid))
    }

    /// The number of the process, as of `getpid`.
    pub fn pid(self) -> u32 {
        self.0 as u32
    }

    fn start(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// True unless the process has ended. One whose parent has not waited for it yet has ended. `self` and the caller are of
    /// one PID namespace.
    pub fn is_alive(self) -> bool {
        match Descriptor::of(self.pid()) {
            Ok(Some(descriptor)) => {
                // After the descriptor: what has this number now is what the descriptor leads to, or that has ended.
                self.is_of_start_now() && !descriptor.has_ended()
            }
            Ok(None) => false,
            Err(_) => self.is_alive_by_number(),
        }
    }

    /// Ends the process by `SIGKILL`. `false` if it has ended before. No other process that has its number since is ended.
    ///
    /// # Errors
    /// Those of `pidfd_open` and `pidfd_send_signal`: no permission, or a kernel without them (before Linux 5.3).
    pub fn kill(self) -> io::Result<bool> {
        match Descriptor::of(self.pid())? {
            // After the descriptor, as in `is_alive`.
            Some(descriptor) if self.is_of_start_now() && !descriptor.has_ended() => descriptor.kill(),
            _ => Ok(false),
        }
    }

    fn is_of_start_now(self) -> bool {
        stat_of(self.pid()).is_none_or(|stat| {
            let known = stat.start != 0 && self.start() != 0;
            !known || stat.start == self.start()
        })
    }

    /// As `is_alive`, for a kernel that gives no descriptor.
    fn is_alive_by_number(self) -> bool {
        if let Some(stat) = stat_of(self.pid()) {
            return !stat.has_ended && self.is_of_start_now();
        }
        // SAFETY: signal 0 is none.
        let answer = unsafe { libc::kill(self.pid() as libc::pid_t, 0) };
        answer == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
    }
}

/// Numbers of the PID namespace and of the time namespace of the caller, which say what numbers and start times of processes mean.
/// 0: unknown, as without /proc.
pub(super) fn namespaces_of_caller() -> [u64; 2] {
    ["/proc/self/ns/pid", "/proc/self/ns/time"]
        .map(|path| std::fs::metadata(path).map_or(0, |namespace| namespace.ino()))
}

/// Reads `/proc/PID/stat`. `None` if there is none or it cannot be read.
fn stat_of(pid: u32) -> Option<Stat> {
    parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in parentheses may hold anything, so the fields count from the last one.
fn parse(stat: &[u8]) -> Option<Stat> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = core::str::from_utf8(&stat[end_of_name + 1..])
        .ok()?
        .split_whitespace();
    let state = fields.next()?;
    // Fields 20 and 22 of the line; the state is field 3.
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start: u64 = fields.nth(1)?.parse().ok()?;
    Some(Stat {
        has_ended: matches!(state, "Z" | "X" | "x") && threads <= 1,
        start: start as u32,
    })
}

/// A descriptor of a process.
struct Descriptor(c_int);

impl Descriptor {
    /// `None`: no process has this number.
    ///
    /// # Errors
    /// The kernel has no such descriptors, or gives none now.
    fn of(pid: u32) -> io::Result<Option<Self>> {
        // SAFETY: the call takes numbers only.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if descriptor >= 0 {
            return Ok(Some(Self(descriptor as c_int)));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // The last two: a thread of another process has the number by now.
            Some(libc::ESRCH | libc::EINVAL | libc::ENOENT) => Ok(None),
            _ => Err(error),
        }
    }

    /// `false`: the process has ended.
    fn kill(&self) -> io::Result<bool> {
        let no_details = core::ptr::null::<libc::siginfo_t>();
        // SAFETY: the call takes numbers, and a null for details.
        let answer =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0, libc::SIGKILL, no_details, 0) };
        if answer == 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            error => Err(error),
        }
    }

    fn has_ended(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.0,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, which outlives the call.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: opened by `of`, and closed here only.
        unsafe { libc::close(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_lives_until_it_has_ended_waited_for_or_not() {
        assert!(ProcessId::current().is_alive());
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = stat_of(child.id()).unwrap().start;
        let id = ProcessId(u64::from(start) << 32 | u64::from(child.id()));
        assert!(id.is_alive() && id.is_alive_by_number());
        let earlier = ProcessId(u64::from(start.wrapping_sub(1)) << 32 | u64::from(child.id()));
        assert!(
            !earlier.is_alive() && !earlier.is_alive_by_number(),
            "the number alone"
        );
        assert!(!earlier.kill().unwrap() && id.is_alive());
        assert!(id.kill().unwrap());
        // Until it has ended, but its number is not free yet.
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: all zero is a value of these plain numbers.
        let mut ended: libc::siginfo_t = unsafe { core::mem::zeroed() };
        // SAFETY: writes what ended.
        let waited = unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut ended, options) };
        assert_eq!(waited, 0);
        assert!(!id.is_alive() && !id.is_alive_by_number() && !id.kill().unwrap());
        child.wait().unwrap();
        assert!(!id.kill().unwrap());
        assert!(!id.is_alive() && !id.is_alive_by_number());
    }

    #[test]
    fn a_name_may_hold_what_ends_names() {
        let stat = parse(&line('S', 1)).unwrap();
        assert!(!stat.has_ended);
        assert_eq!(stat.start, 3);
        assert!(parse(b"7 (a) Z 1 2").is_none() && parse(b"").is_none());
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_lives_while_others_run() {
        assert!(!parse(&line('Z', 2)).unwrap().has_ended);
        assert!(parse(&line('Z', 1)).unwrap().has_ended);
        assert!(parse(&line('X', 0)).unwrap().has_ended);
    }

    /// A line of the kernel's for a process in that state with so many threads.
    fn line(state: char, threads: u32) -> Vec<u8> {
        format!("7 (a) Z (b) {state} 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 {threads} 21 4294967299 23")
            .into_bytes()
    }
}
