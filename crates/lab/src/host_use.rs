//! CPU time that other programs take while a bench measures: a ratio from a busy host may be the host's. The bench of
//! `clearway-peers` takes this file as a module of its own, for it does not depend on the laboratory.
//!
//! ```text
//!   other programs = user + nice + system + stolen time of the CPUs that this process may use
//!                    − time of this process and of its children that have ended (and been waited for)
//!                    − time of the kernel's threads
//! ```
//!
//! The kernel's threads are left out, since what they do is to a good part the bench's own: the file system's journal,
//! and the ends of writes. Interrupts are left out for the same reason. Where `/proc` shows other processes' times only
//! (a container with a process namespace of its own), kernel threads count as other programs.
//!
//! All times are in the kernel's ticks of a hundredth of a second, so that a share of a fifth of a second is right to a
//! few per cent.

use std::collections::BTreeMap;
use std::time::Duration;

/// The part of the CPUs that other programs may use before a host counts as busy.
pub const BUSY_SHARE: f64 = 0.1;

/// Time of a [first look](share_now).
const FIRST_LOOK: Duration = Duration::from_millis(200);

/// The `PF_KTHREAD` of Linux.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Ticks of the kernel up to one instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostUse {
    cpus: CpuTicks,
    own: u64,
    /// By process number.
    kernel_threads: BTreeMap<u32, u64>,
}

/// Ticks of some CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CpuTicks {
    /// In programs and in the kernel for them, and taken by other virtual machines.
    busy: u64,
    all: u64,
}

impl HostUse {
    /// The ticks up to now; `None` where the kernel does not show them.
    pub fn now() -> Option<HostUse> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let allowed = allowed_cpus(&read("/proc/self/status")?)?;
        Some(HostUse {
            cpus: cpu_ticks(&read("/proc/stat")?, &allowed),
            own: process(&read("/proc/self/stat")?)?.ticks_with_children,
            kernel_threads: kernel_threads(),
        })
    }

    /// The part of the CPUs' time since `earlier` that other programs used, 0 to 1; `None` if no time has passed.
    pub fn share_since(&self, earlier: &HostUse) -> Option<f64> {
        let all = self.cpus.all.saturating_sub(earlier.cpus.all);
        let busy = self.cpus.busy.saturating_sub(earlier.cpus.busy);
        let own = self.own.saturating_sub(earlier.own);
        let of_kernel_threads = self.kernel_threads.iter().map(|(number, ticks)| {
            let before = earlier.kernel_threads.get(number).copied().unwrap_or(0);
            ticks.saturating_sub(before)
        });
        let others = busy.saturating_sub(own + of_kernel_threads.sum::<u64>());
        // Three digits, which are more than ticks give.
        let share = (others as f64 / all as f64).min(1.0);
        (all > 0).then(|| (share * 1e3).round() / 1e3)
    }
}

/// The part of the CPUs that other programs use now, 0 to 1: a look of a fifth of a second. `None` where the kernel does
/// not show it.
pub fn share_now() -> Option<f64> {
    let before = HostUse::now()?;
    std::thread::sleep(FIRST_LOOK);
    HostUse::now()?.share_since(&before)
}

/// The warning of a busy host, if it is busy. `use_of`: `other programs use` or `other programs used`.
pub fn warning(share: Option<f64>, use_of: &str) -> Option<String> {
    let share = share.filter(|share| *share > BUSY_SHARE)?;
    Some(format!(
        "the host is busy: {use_of} {:.0} % of the CPUs; ratios may not hold",
        share * 100.0
    ))
}

/// The numbers in a line such as `Cpus_allowed_list: 0-2,5` of a process's status.
fn allowed_cpus(status: &str) -> Option<Vec<u32>> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

/// The sums of the lines `cpuN user nice system idle iowait irq softirq steal …` of these CPUs.
fn cpu_ticks(stat: &str, cpus: &[u32]) -> CpuTicks {
    let mut sum = CpuTicks::default();
    for line in stat.lines() {
        let mut fields = line.split_ascii_whitespace();
        let number = fields
            .next()
            .and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if !number.is_some_and(|number: u32| cpus.contains(&number)) {
            continue;
        }
        // The fields after these are parts of the first two.
        let ticks: Vec<u64> = fields.take(8).map(|field| field.parse().unwrap_or(0)).collect();
        let busy = |place: &usize| ticks.get(*place).copied().unwrap_or(0);
        sum.busy += [0, 1, 2, 7].iter().map(busy).sum::<u64>();
        sum.all += ticks.iter().sum::<u64>();
    }
    sum
}

/// A process, by its `stat`.
struct Process {
    is_kernel_thread: bool,
    ticks: u64,
    /// Also of its children that were waited for, and of theirs.
    ticks_with_children: u64,
}

/// `stat` is `number (name) state …`, and the name may hold anything.
fn process(stat: &str) -> Option<Process> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // Numbers of proc(5), which begin at 1 with the process's number; the state is the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)? + field(15)?;
    Some(Process {
        is_kernel_thread: field(9)? & KERNEL_THREAD != 0,
        ticks,
        ticks_with_children: ticks + field(16)? + field(17)?,
    })
}

fn kernel_threads() -> BTreeMap<u32, u64> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    let ticks = entries.flatten().filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        // It may have ended meanwhile.
        let process = process(&std::fs::read_to_string(entry.path().join("stat")).ok()?)?;
        process.is_kernel_thread.then_some((number, process.ticks))
    });
    ticks.collect()
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    const STAT: &str = "cpu  1000 0 0 1000 0 0 0 0 0 0\n\
        cpu0 100 10 20 800 30 5 6 7 50 1\ncpu1 200 0 40 700 0 0 0 0 0 0\ncpu2 900 0 0 0 0 0 0 0 0 0\nctxt 5\n";

    #[test]
    fn ticks_are_those_of_the_allowed_cpus() {
        assert_eq!(
            allowed_cpus("Name:\tx\nCpus_allowed_list:\t0-1,4\n"),
            Some(vec![0, 1, 4])
        );
        assert_eq!(allowed_cpus("Name:\tx\n"), None);
        let ticks = cpu_ticks(STAT, &[0, 1]);
        // Of the first 100 + 10 + 20 + 7; guests are part of user time.
        let sum = CpuTicks {
            busy: 137 + 240,
            all: 978 + 940,
        };
        assert_eq!(ticks, sum);
    }

    #[test]
    fn a_process_may_have_any_name() {
        let stat = |flags: u64| format!("10 (a) b ( c) S 1 10 10 0 -1 {flags} 99 0 0 0 30 12 7 1 20 0 1");
        let found = process(&stat(4_194_304)).unwrap();
        assert_eq!((found.ticks, found.ticks_with_children), (42, 50));
        assert!(!found.is_kernel_thread);
        assert!(process(&stat(KERNEL_THREAD | 64)).unwrap().is_kernel_thread);
        assert!(process("10 (a) S 1").is_none() && process("").is_none());
    }

    #[test]
    fn others_are_all_but_this_process_and_the_kernels_threads() {
        let at = |busy, all, own, kernel_threads: &[(u32, u64)]| HostUse {
            cpus: CpuTicks { busy, all },
            own,
            kernel_threads: kernel_threads.iter().copied().collect(),
        };
        let before = at(1_000, 4_000, 100, &[(2, 500), (3, 90)]);
        let share = |own, kernel_threads| at(1_100, 4_400, own, kernel_threads).share_since(&before);
        // 100 of 400 ticks were busy. One of the kernel's threads has ended, and another begun.
        assert_eq!(share(100, &[(2, 500)]), Some(0.25));
        assert_eq!(share(130, &[(2, 510), (7, 30)]), Some(0.075));
        assert_eq!(share(900, &[(2, 500)]), Some(0.0));
        assert_eq!(before.share_since(&before), None);
    }

    #[test]
    fn a_warning_is_due_above_a_tenth() {
        assert_eq!(warning(None, "they use").or(warning(Some(0.1), "they use")), None);
        let text = warning(Some(0.371), "other programs used").unwrap();
        assert!(text.contains("other programs used 37 % of the CPUs"), "{text}");
    }

    #[test]
    fn what_a_child_used_is_the_process_s_own_once_it_was_waited_for() {
        let (before, of_threads) = (HostUse::now().unwrap(), Native::usage_of_process());
        let mut now = before.clone();
        for _ in 0..100 {
            let counts = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
            std::process::Command::new("sh")
                .args(["-c", counts])
                .status()
                .unwrap();
            now = HostUse::now().unwrap();
            if now.own - before.own >= 20 {
                break;
            }
        }
        let own = Duration::from_millis(10) * (now.own - before.own) as u32;
        let of_threads = (Native::usage_of_process() - of_threads).cpu_time;
        assert!(
            own >= Duration::from_millis(200) && own > of_threads,
            "{own:?}, {of_threads:?}"
        );
        assert!(now.cpus.all > before.cpus.all && now.share_since(&before).is_some());
    }
}
