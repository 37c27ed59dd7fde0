//! `time_slice`: how far a session's thread falls behind the others when it yields its CPU or uses it up.
//!
//! # Why
//! Since 6.6 Linux orders the threads of a CPU by virtual deadlines: a thread's deadline is the CPU time that it has
//! had, plus its *slice*, by default some 3 ms. A yield moves a thread behind its deadline (since 6.18 and 6.12.63), as
//! if it had used up its slice. The transactions of an OLTP database take 10 to 100 µs, so by default the order of a
//! CPU's sessions says next to nothing about which have worked and which have only looked and yielded.
//! With a slice of the length of a few transactions it does.
//!
//! That the order is the cause is a guess from these rules; the counters of a commit are what was measured.
//! Where commits poll and yield (`log_flush = polling`) and there are more sessions than CPUs, a flush then carries more
//! commits, and a commit is polled for less often; `docs/mechanisms/log.md` has the figures.
//!
//! # What it does not do
//! It changes no priority: a thread gets the same share of the CPU, in shorter turns. It needs no privilege. A kernel
//! before 6.12 accepts the request and does nothing about it; see [`Native::time_slice_ns`].
//!
//! Origin: the kernel's request of a slice (`sched_attr::sched_runtime` of a thread of the fair class) is Peter
//! Zijlstra's, Linux 6.12.

use std::io;

use crate::scheduling::THIS_THREAD;
use crate::thread_attributes::{attributes_of, set_attributes};
use crate::{Native, ThreadId, switch};

/// The slice of `short`, nanoseconds: the shortest that the kernel gives.
const SHORT_NS: u64 = 100_000;

/// The slice that asks for the kernel's own.
const KERNELS: u64 = 0;

switch! {
    /// The time for which a session's thread may keep its CPU from others.
    pub enum TimeSliceVariant = "time_slice", best InProcess, planned [], only beside "log_flush" ["polling"] {
        /// The slice that the kernel gives every thread, some milliseconds.
        System = "system",
        /// 0.1 ms, where the kernel lets a thread choose (Linux 6.12 or later).
        Short = "short",
        /// `short` for sessions that a program runs in threads of its own, `system` for those of the server.
        InProcess = "in-process",
    }
    why {
        System: "The baseline, which clients beside the server want: over a socket short made 0.91 of its commits \
            with 4 clients, and 0.87 of its reads with 16."
            in "docs/mechanisms/time-slice.md#numbers-that-matter";
        Short: "In process 1.10 and 1.18 times system's commits with 16 and 64 clients on two CPUs and level with one, \
            but not the preset's, for what it loses over a socket."
            in "docs/mechanisms/time-slice.md#numbers-that-matter";
        InProcess: "What short wins in process, without what it loses over a socket: with 64 clients 1.02 times system in \
            simple-update and 1.16 in tpcb-like, with half of its p99; level elsewhere."
            in "docs/mechanisms/time-slice.md#numbers-that-matter";
    }
}

/// The place of a session's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// In the session's own thread: the program calls the engine.
    InProcess,
    /// In other processes, which want the CPUs, too.
    OverSocket,
}

impl Native {
    /// Gives the calling thread the slice that `variant` names for a session with such `clients`; threads that it starts
    /// inherit it. Policy and priority stay. The system's slice changes nothing.
    ///
    /// # Errors
    /// Under `short` the kernel's, such as `EPERM` where a filter of system calls forbids the request. `in-process` wants
    /// no more than what the kernel allows. The thread goes on with the slice that it had.
    pub fn set_time_slice(variant: TimeSliceVariant, clients: Clients) -> io::Result<()> {
        match (variant, clients) {
            (TimeSliceVariant::System, _) | (TimeSliceVariant::InProcess, Clients::OverSocket) => Ok(()),
            (TimeSliceVariant::InProcess, Clients::InProcess) => {
                // A slice decides about speed alone, and this program did not ask for one by name.
                let _refused = set_slice(THIS_THREAD, SHORT_NS);
                Ok(())
            }
            (TimeSliceVariant::Short, _) => set_slice(THIS_THREAD, SHORT_NS),
        }
    }

    /// Gives another thread the slice of `short`, or the kernel's. The thread must not have ended: its number may be
    /// another's by then. A kernel without slices accepts it and does nothing.
    pub fn set_short_slice_of(thread: ThreadId, is_short: bool) -> io::Result<()> {
        set_slice(thread.number(), if is_short { SHORT_NS } else { KERNELS })
    }

    /// The calling thread's slice, nanoseconds; `None` where the kernel has none that a thread can choose.
    pub fn time_slice_ns() -> io::Result<Option<u64>> {
        let slice_ns = attributes_of(THIS_THREAD)?.sched_runtime;
        Ok((slice_ns != 0).then_some(slice_ns))
    }
}

fn set_slice(thread: libc::pid_t, slice_ns: u64) -> io::Result<()> {
    let mut attributes = attributes_of(thread)?;
    attributes.sched_runtime = slice_ns;
    set_attributes(thread, &attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchedulingPolicy;

    /// The scheduling of a thread that was started by a thread in which `prepare` had run.
    fn inherited(prepare: impl FnOnce() + Send + 'static) -> (u32, i32, Option<u64>) {
        let outer = std::thread::spawn(|| {
            prepare();
            let inner = std::thread::spawn(|| {
                let attributes = attributes_of(THIS_THREAD).unwrap();
                let slice_ns = Native::time_slice_ns().unwrap();
                (attributes.sched_policy, attributes.sched_nice, slice_ns)
            });
            inner.join().unwrap()
        });
        outer.join().unwrap()
    }

    fn set(variant: TimeSliceVariant) {
        Native::set_time_slice(variant, Clients::InProcess).unwrap();
    }

    /// Mutation that it should catch (`crates/machine/mutations/time_slice.toml`): the server's sessions get it, too.
    #[test]
    fn in_process_shortens_the_slices_of_the_program_alone() {
        let slice_ns =
            |variant, clients| inherited(move || Native::set_time_slice(variant, clients).unwrap()).2;
        for (clients, same_as) in [
            (Clients::InProcess, TimeSliceVariant::Short),
            (Clients::OverSocket, TimeSliceVariant::System),
        ] {
            let found = slice_ns(TimeSliceVariant::InProcess, clients);
            assert_eq!(found, slice_ns(same_as, clients), "{clients:?}");
        }
    }

    #[test]
    fn threads_inherit_the_slice_and_keep_policy_and_priority() {
        let (policy, nice, system) = inherited(|| set(TimeSliceVariant::System));
        let short = inherited(|| set(TimeSliceVariant::Short));
        assert_eq!((short.0, short.1), (policy, nice));
        match system {
            Some(system_ns) => {
                assert!(system_ns > SHORT_NS, "the system's slice is {system_ns} ns");
                assert_eq!(short.2, Some(SHORT_NS));
            }
            // A kernel before 6.12 says nothing of slices.
            None => assert_eq!(short.2, None),
        }
    }

    #[test]
    fn a_change_of_policy_keeps_the_slice_and_the_other_way_round() {
        let slice_first = inherited(|| {
            set(TimeSliceVariant::Short);
            Native::set_scheduling(SchedulingPolicy::Batch).unwrap();
        });
        let policy_first = inherited(|| {
            Native::set_scheduling(SchedulingPolicy::Batch).unwrap();
            set(TimeSliceVariant::Short);
        });
        assert_eq!(slice_first, policy_first);
        assert_eq!(slice_first.0, libc::SCHED_BATCH as u32);
    }
}
