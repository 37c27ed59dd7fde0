//! The memory of the process, the machine and the control group, as the kernel tells them.

use std::path::{Path, PathBuf};

/// Bytes of the process that are in memory.
pub(super) fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// The unit of `statm`, on the machines that this runs on.
const PAGE_BYTES: u64 = 4096;

/// Memory of the machine, or the limit of the process's control groups, if that is less.
pub(super) fn available_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = limit_files(&groups)
        .into_iter()
        .filter_map(|file| bytes_in(&file));
    of_groups.chain(machine_bytes()).min()
}

/// The machine's memory, where the operating system tells.
pub(crate) fn machine_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// The files with the limits of the groups that a process is in, and of those around them: `groups` is its
/// `/proc/self/cgroup`. A container sees its own group as the root.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(
            group
                .ancestors()
                .map(|group| Path::new(root).join(group).join(file)),
        );
    }
    files
}

/// The number in a file; `None` if there is none ("max").
fn bytes_in(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_and_the_machine_have_some() {
        assert!(resident_bytes().unwrap() > 1 << 20);
        assert!(available_bytes().unwrap() > 1 << 20);
    }

    #[test]
    fn the_groups_around_a_group_limit_it_too() {
        let files = |groups| {
            let files = limit_files(groups);
            files
                .iter()
                .map(|file| file.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            files("0::/system.slice/db.service\n"),
            [
                "/sys/fs/cgroup/system.slice/db.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            files("5:cpu,cpuacct:/a\n4:memory:/\n"),
            ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
    }
}
