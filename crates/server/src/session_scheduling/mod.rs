//! The kernel's policy for sessions: a session that wakes interrupts the thread that runs on its CPU, or waits for it.
//!
//! # Why both
//! A session's message comes from a client that is about to sleep, on the same machine more often than not. A session
//! that waits for it (SCHED_BATCH) costs a few microseconds and saves an interruption of the client, or of another
//! session, in the middle of its work: with two CPUs and 4 to 64 clients that makes up to 1.4 times the reads. But a
//! thread of another program uses up its slice, some 3 ms, and a session that waits for that at each message and each
//! end of a sync makes half of the transactions of one that interrupts (SCHED_OTHER).
//!
//! | setting | policy |
//! | --- | --- |
//! | `batch` | SCHED_BATCH |
//! | `normal` | SCHED_OTHER |
//! | `adaptive` | SCHED_BATCH, and SCHED_OTHER while the rule in `rule` finds that other programs keep the CPUs from sessions; with a slice of 0.1 ms, which interrupts at once, while fewer sessions run than there are CPUs. SCHED_OTHER also for the few that sleep in the middle of their work, which `sleepers` finds, with a larger share of the CPUs (a lower nice value) where the process may give it |
//!
//! # Adaptive
//! Invariant: each session whose number is in the registry has the policy that was chosen last: SCHED_OTHER if the rule
//! has chosen an interruption or the session is preferred, else SCHED_BATCH. A session that is not preferred has the
//! server's own nice value.
//!
//! 1. A session's thread enters its number in the registry, and takes the policy that is chosen.
//! 2. The registry's watcher samples sessions at each of its looks, and asks the rule.
//! 3. If the choice changes, the watcher notes it and sets the policy of all sessions in the registry. No session is
//!    preferred then.
//! 4. While sessions wait, the watcher notes which are preferred and how much, and sets the policy and the nice value of
//!    those for which that changes. A process that may not lower a nice value (no `CAP_SYS_NICE`, no `RLIMIT_NICE`) leaves
//!    it at that.
//!
//! Steps 1, 3 and 4 are each done in one go under the registry's mutex. A session leaves the registry before its thread
//! ends, so in steps 3 and 4 no number is another thread's.

mod rule;
mod sleepers;

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use clearway_machine::{Native, SchedulingPolicy, ThreadId, TimeSliceVariant};
use tracing::{debug, info, warn};

use rule::{Choice, Rule, Sample};
use sleepers::{Preferred, Sleepers};

/// Sessions whose use of the CPUs is read at a look, at most: each reads a file of the kernel.
const SAMPLED_MAX: usize = 32;

/// The server's least use of the CPUs between two looks. Sessions that do nothing are not looked at.
const USED_MIN: Duration = Duration::from_micros(200);

/// The lowest nice value that the kernel knows.
const NICE_MIN: i32 = -20;

/// The scheduling of sessions by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scheduling {
    /// The behaviour of a session that wakes while another thread runs on its CPU.
    pub sessions: SessionScheduling,
    /// The switch `time_slice`.
    pub time_slice: TimeSliceVariant,
}

/// The setting `session_scheduling`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionScheduling {
    /// `Batch`, and `Normal` while other programs keep the CPUs from sessions, and for the few that sleep in the middle of
    /// their work.
    #[default]
    Adaptive,
    /// A session that wakes may interrupt the thread that runs.
    Normal,
    /// A session that wakes waits until the thread that runs sleeps or has used up its slice.
    Batch,
}

impl SessionScheduling {
    /// The policy that sessions begin with.
    pub(crate) fn first_policy(self) -> SchedulingPolicy {
        match self {
            SessionScheduling::Normal => SchedulingPolicy::Normal,
            SessionScheduling::Adaptive | SessionScheduling::Batch => SchedulingPolicy::Batch,
        }
    }
}

/// The policy of sessions as it is chosen now. Under the registry's mutex.
#[derive(Debug)]
pub(crate) struct ChosenPolicy {
    choice: Choice,
    /// The sessions that interrupt while the others wait.
    preferred: Preferred,
    /// The nice value of sessions that are not preferred.
    nice: i32,
    /// The lowest nice value that the process may give, as far as it has been told.
    lowest: i32,
    /// The configuration gives sessions a slice, which they keep.
    has_slice: bool,
}

/// A session in the registry that has a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionThread {
    /// Its number in the registry.
    pub(crate) number: u64,
    pub(crate) thread: ThreadId,
    /// Its waits for a message of the client since it began.
    pub(crate) messages: u64,
}

impl Default for ChosenPolicy {
    fn default() -> Self {
        Self::of(Scheduling::default())
    }
}

impl ChosenPolicy {
    /// The policy that this configuration begins with.
    pub(crate) fn of(scheduling: Scheduling) -> Self {
        Self {
            choice: Choice::Wait,
            preferred: Preferred::default(),
            nice: Native::nice_of(Native::this_thread()).unwrap_or(0),
            lowest: NICE_MIN,
            has_slice: scheduling.time_slice == TimeSliceVariant::Short,
        }
    }

    /// The calling thread is a session that has entered its number in the registry.
    pub(crate) fn take(&self) {
        if self.choice != Choice::Wait
            && let Err(error) = self.set(Native::this_thread())
        {
            debug!("a session keeps its scheduling: {error}");
        }
    }

    fn choose(&mut self, choice: Choice, sessions: &[SessionThread]) {
        self.choice = choice;
        let before = std::mem::take(&mut self.preferred);
        let mut failed = None;
        for session in sessions {
            if before.nice != 0 && before.sessions.contains(&session.number) {
                failed = Native::set_nice_of(session.thread, self.nice).err().or(failed);
            }
            failed = self.set(session.thread).err().or(failed);
        }
        if let Some(error) = failed {
            warn!("sessions keep their scheduling: {error}");
        }
    }

    /// Those sessions interrupt from now on, and all others wait as the choice has it.
    fn prefer(&mut self, preferred: Preferred, sessions: &[SessionThread]) {
        self.prefer_by(preferred, sessions, &Native::set_nice_of);
    }

    /// As [`prefer`](Self::prefer), with the call that sets a nice value.
    fn prefer_by(
        &mut self,
        preferred: Preferred,
        sessions: &[SessionThread],
        set_nice: &dyn Fn(ThreadId, i32) -> io::Result<()>,
    ) {
        let all_interrupt = self.choice != Choice::Wait;
        // None is preferred then, so that none is set to wait.
        if all_interrupt {
            return;
        }
        let before = std::mem::replace(&mut self.preferred, preferred);
        for session in sessions {
            let was = before.sessions.contains(&session.number);
            let is = self.preferred.sessions.contains(&session.number);
            let policy = match is {
                true => SchedulingPolicy::Normal,
                false => SchedulingPolicy::Batch,
            };
            if was != is
                && let Err(error) = Native::set_scheduling_of(session.thread, policy)
            {
                warn!("a session keeps its scheduling: {error}");
            }
            let nice_before = if was { before.nice } else { 0 };
            let nice = if is { self.preferred.nice } else { 0 };
            if nice != nice_before {
                self.set_nice(session.thread, nice, set_nice);
            }
        }
    }

    /// Gives a session the nice value that is `nice` more than the others have, or the lowest that the process may give.
    fn set_nice(&mut self, session: ThreadId, nice: i32, set_nice: &dyn Fn(ThreadId, i32) -> io::Result<()>) {
        let lowest = self.lowest;
        loop {
            let wanted = (self.nice + nice).max(self.lowest);
            match set_nice(session, wanted) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && wanted < self.nice => {
                    self.lowest = wanted + 1;
                }
                Err(error) => {
                    warn!("a session keeps its share of the CPUs: {error}");
                    break;
                }
                Ok(()) => break,
            }
        }
        if self.lowest > lowest {
            info!(
                "sessions that commit beside many that read get a nice value of {} at the least, of {} that they would be \
                 given: the server may not lower it further (CAP_SYS_NICE, or LimitNICE=-10 in its unit)",
                self.lowest,
                self.nice + nice
            );
        }
    }

    fn set(&self, session: ThreadId) -> io::Result<()> {
        let policy = match self.choice {
            Choice::Wait => SchedulingPolicy::Batch,
            Choice::Interrupt | Choice::InterruptAtOnce => SchedulingPolicy::Normal,
        };
        Native::set_scheduling_of(session, policy)?;
        match self.has_slice {
            true => Ok(()),
            false => Native::set_short_slice_of(session, self.choice == Choice::InterruptAtOnce),
        }
    }
}

/// The watcher's part: looks at sessions and changes their policy.
#[derive(Debug)]
pub(crate) struct Adaptation {
    rule: Rule,
    sleepers: Sleepers,
    began: Instant,
    /// The server's use of the CPUs at the last look.
    cpu_time: Duration,
    next_sampled: usize,
}

impl Adaptation {
    /// The adaptation that this configuration asks for, if it does.
    pub(crate) fn of(scheduling: Scheduling) -> Option<Self> {
        if scheduling.sessions != SessionScheduling::Adaptive {
            return None;
        }
        // Takes limits of containers into account.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Some(Self {
            rule: Rule::new(cpus),
            sleepers: Sleepers::default(),
            began: Instant::now(),
            cpu_time: Duration::ZERO,
            next_sampled: 0,
        })
    }

    /// A look at these sessions, all that are in the registry.
    pub(crate) fn look(&mut self, sessions: &[SessionThread], policy: &mut ChosenPolicy) {
        let cpu_time = Native::usage_of_process().cpu_time;
        if sessions.is_empty() || cpu_time.saturating_sub(self.cpu_time) < USED_MIN {
            return;
        }
        self.cpu_time = cpu_time;
        let count = sessions.len().min(SAMPLED_MAX);
        let samples = (0..count).filter_map(|at| {
            let session = sessions[(self.next_sampled + at) % sessions.len()];
            Some(Sample {
                number: session.number,
                turns: Native::cpu_turns_of(session.thread).ok()?,
                messages: session.messages,
            })
        });
        let samples: Vec<_> = samples.collect();
        let now = self.began.elapsed();
        if let Some(choice) = self.rule.look(now, cpu_time, sessions.len(), &samples) {
            debug!("sessions {choice:?}: {}", self.rule);
            policy.choose(choice, sessions);
            self.sleepers = Sleepers::default();
        }
        if policy.choice == Choice::Wait {
            let there: HashSet<u64> = sessions.iter().map(|session| session.number).collect();
            let preferred = self
                .sleepers
                .look(now, &samples, |number| there.contains(&number));
            if preferred != policy.preferred {
                debug!("preferred: {preferred:?}; {}", self.sleepers);
            }
            policy.prefer(preferred, sessions);
        }
        // Each is sampled twice: what it did between two looks is what counts.
        if self.rule.has_compared() {
            self.next_sampled = (self.next_sampled + count) % sessions.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const BATCH: u32 = 3;
    const NORMAL: u32 = 0;

    /// The policy of a thread of this process, by the kernel's number: the 41st field of its line.
    fn policy_of_this_thread() -> u32 {
        let line = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_name = line.rsplit_once(") ").unwrap().1;
        after_name.split(' ').nth(41 - 3).unwrap().parse().unwrap()
    }

    /// A session that waits under SCHED_BATCH while `choose` is done to it; its policy and slice afterwards.
    fn after(policy: &mut ChosenPolicy, choices: &[Choice]) -> (u32, Option<u64>) {
        let (say, said) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let session = thread::spawn(move || {
            Native::set_scheduling(SchedulingPolicy::Batch).unwrap();
            say.send(Native::this_thread()).unwrap();
            gone.recv().unwrap();
            (policy_of_this_thread(), Native::time_slice_ns().unwrap())
        });
        let id = said.recv().unwrap();
        for choice in choices {
            policy.choose(*choice, &[numbered(1, id)]);
        }
        go.send(()).unwrap();
        session.join().unwrap()
    }

    #[test]
    fn sessions_get_the_policy_that_is_chosen() {
        let mut policy = ChosenPolicy::default();
        let (batch, kernels) = after(&mut policy, &[]);
        assert_eq!(batch, BATCH);
        assert_eq!(after(&mut policy, &[Choice::Interrupt]), (NORMAL, kernels));
        assert_eq!(
            after(&mut policy, &[Choice::InterruptAtOnce]),
            (NORMAL, kernels.map(|_| 100_000))
        );
        assert_eq!(
            after(&mut policy, &[Choice::InterruptAtOnce, Choice::Wait]),
            (BATCH, kernels)
        );
    }

    fn numbered(number: u64, thread: ThreadId) -> SessionThread {
        SessionThread {
            number,
            thread,
            messages: 0,
        }
    }

    /// The policy of a session that waits under SCHED_BATCH after `choose` has been done to a policy with it.
    fn after_each(choose: impl Fn(&mut ChosenPolicy, SessionThread) + Sync) -> u32 {
        let mut policy = ChosenPolicy::default();
        let session = || {
            Native::set_scheduling(SchedulingPolicy::Batch).unwrap();
            choose(&mut policy, numbered(1, Native::this_thread()));
            policy_of_this_thread()
        };
        thread::scope(|scope| scope.spawn(session).join().unwrap())
    }

    /// Mutation that it should catch: a choice leaves sessions preferred.
    #[test]
    fn a_preferred_session_interrupts_until_it_is_preferred_no_more() {
        let prefer = |policy: &mut ChosenPolicy, session| policy.prefer(preferred(1, 0), &[session]);
        let prefer_another = |policy: &mut ChosenPolicy, session| policy.prefer(preferred(2, 0), &[session]);
        assert_eq!(after_each(prefer), NORMAL);
        assert_eq!(after_each(prefer_another), BATCH);
        let ends = |policy: &mut ChosenPolicy, session| {
            prefer(policy, session);
            prefer_another(policy, session);
        };
        assert_eq!(after_each(ends), BATCH);
        let again = |policy: &mut ChosenPolicy, session: SessionThread| {
            prefer(policy, session);
            policy.choose(Choice::Wait, &[session]);
            assert_eq!(policy_of_this_thread(), BATCH);
            prefer(policy, session);
        };
        assert_eq!(after_each(again), NORMAL);
        let while_all_interrupt = |policy: &mut ChosenPolicy, session: SessionThread| {
            policy.choose(Choice::Interrupt, &[session]);
            prefer(policy, session);
            prefer_another(policy, session);
        };
        assert_eq!(after_each(while_all_interrupt), NORMAL);
    }

    fn preferred(session: u64, nice: i32) -> Preferred {
        Preferred {
            sessions: HashSet::from([session]),
            nice,
        }
    }

    /// Sets nice values as far down as `lowest`, and notes those that were set.
    fn allowed_to(lowest: i32, set: &RefCell<Vec<i32>>) -> impl Fn(ThreadId, i32) -> io::Result<()> {
        move |_, nice| match nice < lowest {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => {
                set.borrow_mut().push(nice);
                Ok(())
            }
        }
    }

    /// Mutation that it should catch: a session keeps its share when it is preferred no more.
    #[test]
    fn a_preferred_session_has_as_large_a_share_as_the_process_may_give() {
        let (id, other) = (
            numbered(1, Native::this_thread()),
            numbered(2, Native::this_thread()),
        );
        for (lowest, expected) in [(-20, [-5, -10, 0, -10, 0]), (-7, [-5, -7, 0, -7, 0]), (0, [0; 5])] {
            let set = RefCell::new(Vec::new());
            let may = allowed_to(lowest, &set);
            let mut policy = ChosenPolicy {
                nice: 0,
                ..ChosenPolicy::default()
            };
            for (session, nice) in [(1, -5), (1, -10), (1, 0), (1, -10), (2, 0)] {
                policy.prefer_by(preferred(session, nice), &[id], &may);
            }
            assert_eq!(*set.borrow(), expected, "{lowest}");
            // What the process has learned counts for the next session too.
            set.borrow_mut().clear();
            policy.prefer_by(preferred(2, -10), &[other], &may);
            assert_eq!(*set.borrow(), [(-10).max(lowest)]);
        }
    }

    /// Mutation that it should catch: a session keeps its share when all interrupt.
    #[test]
    fn a_choice_takes_the_larger_share_back() {
        after_each(|policy, session| {
            let own = Native::nice_of(session.thread).unwrap();
            policy.nice = own;
            policy.prefer(preferred(1, -5), &[session]);
            policy.choose(Choice::Interrupt, &[session]);
            assert_eq!(Native::nice_of(session.thread).unwrap(), own);
            // A process that may not lower a value can raise one.
            policy.choose(Choice::Wait, &[session]);
            policy.nice = own + 1;
            policy.prefer_by(preferred(1, -1), &[session], &|_, _| Ok(()));
            policy.choose(Choice::Interrupt, &[session]);
            assert_eq!(Native::nice_of(session.thread).unwrap(), own + 1);
        });
    }

    /// Mutation that it should catch (`crates/server/mutations/session_scheduling.toml`): a new session keeps its policy.
    #[test]
    fn a_session_that_comes_takes_the_policy_that_was_chosen_before() {
        let mut policy = ChosenPolicy::default();
        policy.choose(Choice::Interrupt, &[]);
        let comes = || {
            Native::set_scheduling(SchedulingPolicy::Batch).unwrap();
            policy.take();
            policy_of_this_thread()
        };
        assert_eq!(thread::scope(|scope| scope.spawn(comes).join().unwrap()), NORMAL);
    }

    /// Mutation that it should catch: the slice of the configuration is changed.
    #[test]
    fn a_slice_of_the_configuration_stays() {
        let mut policy = ChosenPolicy::of(Scheduling {
            sessions: SessionScheduling::Adaptive,
            time_slice: TimeSliceVariant::Short,
        });
        let (_, kernels) = after(&mut policy, &[]);
        // It was not shortened here, so a change would show.
        assert_eq!(after(&mut policy, &[Choice::InterruptAtOnce]), (NORMAL, kernels));
    }
}
