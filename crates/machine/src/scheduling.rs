//! The CPUs on which a thread may run, and the kernel's policy when a thread wakes while another runs on the
//! CPU it would take.
//!
//! Linux's default lets the woken thread preempt the running one if it has slept for long. In a server whose
//! sessions sleep between statements that is nearly always the case: each message from a client interrupts
//! the client, or another session, in the middle of its work, instead of waiting the few microseconds until
//! that thread sleeps by itself.

use std::io;

use crate::Native;
use crate::thread_attributes::{attributes_of, set_attributes};

/// The calling thread, for the kernel.
pub(crate) const THIS_THREAD: libc::pid_t = 0;

/// As many CPUs as a set of the C library has bits.
const CPUS_IN_A_SET: usize = libc::CPU_SETSIZE as usize;

/// A thread of this process, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(libc::pid_t);

impl ThreadId {
    pub(crate) fn number(self) -> libc::pid_t {
        self.0
    }
}

/// A thread's use of the CPUs since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTurns {
    /// Times that the thread was given a CPU.
    pub turns: u64,
    /// Time that it could have run and no CPU was given to it, nanoseconds.
    pub waited_ns: u64,
}

/// The kernel's policy for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchedulingPolicy {
    /// Linux's default, SCHED_OTHER: a woken thread may preempt.
    Normal,
    /// SCHED_BATCH: a woken thread waits until the running one sleeps or has used up its slice, some
    /// milliseconds at most.
    #[default]
    Batch,
}

impl Native {
    /// Sets the policy of the calling thread; threads that it starts inherit it.
    pub fn set_scheduling(policy: SchedulingPolicy) -> io::Result<()> {
        set_policy(THIS_THREAD, policy)
    }

    /// Sets the policy of another thread, which must not have ended: its number may be another's by then.
    pub fn set_scheduling_of(thread: ThreadId, policy: SchedulingPolicy) -> io::Result<()> {
        set_policy(thread.0, policy)
    }

    /// The nice value of a thread of this process: from -20, with which it gets most of the CPUs beside others, to 19.
    pub fn nice_of(thread: ThreadId) -> io::Result<i32> {
        Ok(attributes_of(thread.0)?.sched_nice)
    }

    /// Sets the nice value of another thread, which must not have ended.
    ///
    /// # Errors
    /// `PermissionDenied` if it would be lower than now, and the process has neither `CAP_SYS_NICE` nor a limit
    /// (`RLIMIT_NICE`) that allows it.
    pub fn set_nice_of(thread: ThreadId, nice: i32) -> io::Result<()> {
        let mut attributes = attributes_of(thread.0)?;
        attributes.sched_nice = nice;
        set_attributes(thread.0, &attributes)
    }

    /// The calling thread.
    pub fn this_thread() -> ThreadId {
        // SAFETY: the call has no arguments and can not fail.
        ThreadId(unsafe { libc::gettid() })
    }

    /// The use of the CPUs by a thread of this process.
    ///
    /// # Errors
    /// `NotFound` if the thread has ended, or if the kernel keeps no such figures (without `CONFIG_SCHED_INFO`).
    pub fn cpu_turns_of(thread: ThreadId) -> io::Result<CpuTurns> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{}/schedstat", thread.0))?;
        parse_cpu_turns(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("schedstat reads {text:?}")))
    }

    /// The CPUs that the calling thread may run on, in order.
    pub fn cpus_allowed() -> io::Result<Vec<usize>> {
        Self::cpus_allowed_to(THIS_THREAD)
    }

    /// The CPUs that `thread` may run on, in order.
    pub(crate) fn cpus_allowed_to(thread: libc::pid_t) -> io::Result<Vec<usize>> {
        // SAFETY: plain old data, for which zeros are valid: the empty set.
        let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: the call writes at most the size given to it, into a set that outlives it.
        if unsafe { libc::sched_getaffinity(thread, size_of_val(&set), &raw mut set) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((0..CPUS_IN_A_SET)
            // SAFETY: the number is below that of the set's bits.
            .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
            .collect())
    }

    /// Keeps the calling thread on one CPU: for measurements between two particular CPUs.
    pub fn stay_on(cpu: usize) -> io::Result<()> {
        if cpu >= CPUS_IN_A_SET {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: plain old data, for which zeros are valid: the empty set.
        let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: the number is below that of the set's bits.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // SAFETY: the call reads the set, which outlives it.
        match unsafe { libc::sched_setaffinity(THIS_THREAD, size_of_val(&set), &raw const set) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_policy(thread: libc::pid_t, policy: SchedulingPolicy) -> io::Result<()> {
    let number = match policy {
        SchedulingPolicy::Normal => libc::SCHED_OTHER,
        SchedulingPolicy::Batch => libc::SCHED_BATCH,
    };
    // SAFETY: plain old data, for which zeros are valid; both policies want priority 0.
    let parameters: libc::sched_param = unsafe { core::mem::zeroed() };
    // SAFETY: the call reads the parameters, which outlive it; a number that names no thread is an error.
    match unsafe { libc::sched_setscheduler(thread, number, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The line of the kernel: nanoseconds on a CPU, nanoseconds of waiting for one, turns.
fn parse_cpu_turns(text: &str) -> Option<CpuTurns> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let (Some(Ok(_cpu_ns)), Some(Ok(waited_ns)), Some(Ok(turns))): (Option<Result<u64, _>>, _, _) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return None;
    };
    Some(CpuTurns { turns, waited_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read() {
        assert_eq!(
            parse_cpu_turns("687570 12 3\n"),
            Some(CpuTurns {
                turns: 3,
                waited_ns: 12
            })
        );
        for wrong in ["", "1 2", "1 x 3", "-1 2 3"] {
            assert_eq!(parse_cpu_turns(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_thread_that_sleeps_has_a_turn_more_and_its_policy_is_set_from_outside() {
        let (say, said) = std::sync::mpsc::channel();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            say.send(Native::this_thread()).unwrap();
            gone.recv().unwrap();
            // SAFETY: 0 names the calling thread.
            unsafe { libc::sched_getscheduler(0) }
        });
        let id = said.recv().unwrap();
        let before = Native::cpu_turns_of(id).unwrap();
        Native::set_scheduling_of(id, SchedulingPolicy::Batch).unwrap();
        go.send(()).unwrap();
        assert_eq!(thread.join().unwrap(), libc::SCHED_BATCH);
        assert!(before.turns > 0);
        assert!(Native::cpu_turns_of(Native::this_thread()).unwrap().turns > 0);
    }

    #[test]
    fn a_thread_can_be_made_nicer() {
        std::thread::spawn(|| {
            let thread = Native::this_thread();
            let nice = Native::nice_of(thread).unwrap().min(18) + 1;
            Native::set_scheduling(SchedulingPolicy::Batch).unwrap();
            Native::set_nice_of(thread, nice).unwrap();
            assert_eq!(Native::nice_of(thread).unwrap(), nice);
            // SAFETY: 0 names the calling thread.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_BATCH);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_stays_where_it_was_put() {
        let allowed = Native::cpus_allowed().unwrap();
        for cpu in allowed {
            std::thread::spawn(move || {
                Native::stay_on(cpu).unwrap();
                assert_eq!(Native::cpus_allowed().unwrap(), [cpu]);
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn threads_inherit_the_policy() {
        std::thread::spawn(|| {
            for (policy, number) in [
                (SchedulingPolicy::Batch, libc::SCHED_BATCH),
                (SchedulingPolicy::Normal, libc::SCHED_OTHER),
            ] {
                Native::set_scheduling(policy).unwrap();
                // SAFETY: 0 names the calling thread.
                let inherited = std::thread::spawn(|| unsafe { libc::sched_getscheduler(0) });
                assert_eq!(inherited.join().unwrap(), number);
            }
        })
        .join()
        .unwrap();
    }
}
