//! The provenance of a result.

use std::fs;

use serde::Serialize;

use crate::result::{Machine, Provenance};

/// The commit this binary was built from.
pub(crate) const COMMIT: &str = env!("CLEARWAY_COMMIT");

impl Provenance {
    /// Of a run that starts now, with these options.
    pub(crate) fn now(command: String, seed: u64, rounds: usize, config: &impl Serialize) -> Provenance {
        let config = serde_json::to_string(config).unwrap_or_default();
        Provenance {
            commit: COMMIT.to_owned(),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
            .to_owned(),
            config_hash: format!("{:016x}", fnv1a(config.as_bytes())),
            date: jiff::Timestamp::now()
                .round(jiff::Unit::Second)
                .map_or_else(|_| String::new(), |t| t.to_string()),
            command,
            seed,
            samples_per_cell: rounds,
            machine: Machine::this(),
            others_share: None,
        }
    }
}

impl Machine {
    /// The machine at hand.
    pub(crate) fn this() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |text: &str, name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_once(':'))
                .map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
        };
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kib: u64 = field(&meminfo, "MemTotal")
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        Machine {
            cpu_model: field(&cpuinfo, "model name"),
            cpu_family: field(&cpuinfo, "cpu family"),
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get()),
            memory_gib: (memory_kib as f64 / (1 << 20) as f64 * 10.0).round() / 10.0,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| "unknown".to_owned(), |release| release.trim().to_owned()),
        }
    }
}

/// FNV-1a, 64 bits: a name for a configuration, not a defence.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provenance_says_where_from() {
        let one = Provenance::now("clearway bench".to_owned(), 7, 3, &("a", 1));
        assert!(
            !one.commit.is_empty() && one.date.ends_with('Z') && one.machine.cpus > 0,
            "{one:?}"
        );
        assert_eq!(
            one.config_hash,
            Provenance::now(String::new(), 8, 1, &("a", 1)).config_hash
        );
        assert_ne!(
            one.config_hash,
            Provenance::now(String::new(), 7, 3, &("a", 2)).config_hash
        );
    }
}
