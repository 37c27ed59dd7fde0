//! The CPUs on which a thread may run, and the kernel's policy when a thread wakes while another runs on the
//! CPU it would take.
//!
//! Linux's default lets the woken thread preempt the running one if it has slept for long. In a server whose
//! sessions sleep between statements that is nearly always the case: each message from a client interrupts
//! the client, or another session, in the middle of its work, instead of waiting the few microseconds until
//! that thread sleeps by itself.

use std::io;

use crate::Native;

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
        let number = match policy {
            SchedulingPolicy::Normal => libc::SCHED_OTHER,
            SchedulingPolicy::Batch => libc::SCHED_BATCH,
        };
        // SAFETY: plain old data, for which zeros are valid; both policies want priority 0.
        let parameters: libc::sched_param = unsafe { core::mem::zeroed() };
        // SAFETY: 0 names the calling thread, and the parameters outlive the call.
        match unsafe { libc::sched_setscheduler(0, number, &raw const parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The CPUs that the calling thread may run on, in order.
    pub fn cpus_allowed() -> io::Result<Vec<usize>> {
        Self::cpus_allowed_to(None)
    }

    /// The CPUs that `thread`, or the calling one, may run on, in order.
    pub(crate) fn cpus_allowed_to(thread: Option<rustix::thread::Pid>) -> io::Result<Vec<usize>> {
        let set = rustix::thread::sched_getaffinity(thread)?;
        Ok((0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .collect())
    }

    /// Keeps the calling thread on one CPU: for measurements between two particular CPUs.
    pub fn stay_on(cpu: usize) -> io::Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
