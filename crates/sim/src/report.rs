//! The result of a run.

use clearway_machine::WaitEvent;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::kernel::Kernel;

/// The result of a run. The same at each run of the same seed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Simulated time.
    pub elapsed_ns: u64,
    /// The time of all CPUs by activity, in picoseconds.
    pub account: Account,
    /// The cache lines by name, hottest first.
    pub lines: Vec<NamedLines>,
    /// Sleeps by wait event, longest first.
    pub waits: Vec<NamedWait>,
    /// CPU time of what the program named by [`Machine::begin_cpu_time`](clearway_machine::Machine::begin_cpu_time), longest
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_times: Vec<NamedCpuTime>,
    /// Accesses and other events that were stepped through.
    pub events: u64,
    /// Polls that needed no step.
    pub free_polls: u64,
    /// Number of cache lines that were touched.
    pub lines_touched: u64,
}

/// Events of the lines of one name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedLines {
    /// The name.
    pub name: String,
    /// Number of lines that have it.
    pub lines: u64,
    /// Accesses, without free polls.
    pub accesses: u64,
    /// Accesses that had to fetch the line.
    pub misses: u64,
    /// Waiting for transfers.
    pub transfer_ns: u64,
    /// Waiting for the transfers of others to end first.
    pub queue_ns: u64,
    /// Polling while nothing changed.
    pub spin_ns: u64,
    /// Of the accesses since the account of lines began, by [`begin_line_account`](crate::begin_line_account) or with the
    /// run: those that change a line which several workers have used since then. An access that has to wait for the
    /// store buffer counts twice.
    pub shared_changes: u64,
}

/// CPU time of one name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedCpuTime {
    /// The name.
    pub name: String,
    /// Number of its ends.
    pub count: u64,
    /// Time in all.
    pub total_ns: u64,
}

/// Sleeps under one wait event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedWait {
    /// Class and name; "Running" stands for sleeps that published nothing.
    pub event: String,
    /// Number of sleeps.
    pub count: u64,
    /// Time in all.
    pub total_ns: u64,
}

impl Report {
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let end = kernel.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
        let mut account = Account::default();
        for cpu in &kernel.cpus {
            account.merge(&cpu.account);
            // CPUs that had nothing more to do were idle to the end.
            account.add(crate::Activity::Idle, end - cpu.clock);
        }
        let mut lines: Vec<NamedLines> = Vec::new();
        let mut place = std::collections::HashMap::new();
        for line in &kernel.lines.lines {
            let name = kernel.lines.name_of(line);
            let at = *place.entry(line.name).or_insert_with(|| {
                lines.push(NamedLines {
                    name: name.to_owned(),
                    lines: 0,
                    accesses: 0,
                    misses: 0,
                    transfer_ns: 0,
                    queue_ns: 0,
                    spin_ns: 0,
                    shared_changes: 0,
                });
                lines.len() - 1
            });
            let (sum, counters) = (&mut lines[at], &line.counters);
            sum.lines += 1;
            sum.accesses += counters.accesses;
            sum.misses += counters.misses;
            sum.transfer_ns += counters.transfer_ps;
            sum.queue_ns += counters.queue_ps;
            sum.spin_ns += counters.spin_ps;
            sum.shared_changes += line.used.shared_changes(kernel.line_account);
        }
        for sum in &mut lines {
            // Rounded once, not line by line.
            sum.transfer_ns /= 1_000;
            sum.queue_ns /= 1_000;
            sum.spin_ns /= 1_000;
        }
        lines.sort_by_key(|sum| std::cmp::Reverse(sum.transfer_ns + sum.queue_ns + sum.spin_ns));
        let mut waits: Vec<NamedWait> = kernel
            .waits
            .0
            .iter()
            .enumerate()
            .filter(|(_, wait)| wait.count > 0)
            .map(|(number, wait)| {
                let event = WaitEvent::from_number(number as u32);
                NamedWait {
                    event: match event {
                        WaitEvent::Running => "Running".into(),
                        event => format!("{}:{}", event.class().name(), event.name()),
                    },
                    count: wait.count,
                    total_ns: wait.picoseconds / 1_000,
                }
            })
            .collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.total_ns));
        let mut cpu_times: Vec<NamedCpuTime> = kernel
            .cpu_times
            .0
            .iter()
            .map(|time| NamedCpuTime {
                name: time.name.to_owned(),
                count: time.count,
                total_ns: time.picoseconds / 1_000,
            })
            .collect();
        cpu_times.sort_by_key(|time| std::cmp::Reverse(time.total_ns));
        Self {
            elapsed_ns: end / 1_000,
            account,
            lines,
            waits,
            cpu_times,
            events: kernel.events,
            free_polls: kernel.free_polls,
            lines_touched: kernel.lines.lines.len() as u64,
        }
    }
}
