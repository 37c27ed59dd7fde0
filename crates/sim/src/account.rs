//! The account of each CPU's time.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

/// A CPU's activity. Every simulated nanosecond of every CPU is in exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Work that was charged: all that is not modelled access by access.
    Work,
    /// Work charged to a client program on the same machine.
    Client,
    /// Atomic instructions and reads of cached lines: the cost of latch code without contention.
    Latch,
    /// Waiting for a cache line to arrive, beyond the cost of a hit in the core's own cache.
    Stall,
    /// Pauses between polls, and polls of an unchanged line.
    Spin,
    /// System calls: futexes, sleeps, yields. Timer interrupts, where the machine has any.
    Syscall,
    /// Context switches.
    Switch,
    /// Nothing to run, or waking up from having had nothing to run.
    Idle,
    /// Work of programs that have no part in what is measured: see [`other_program_work`](crate::other_program_work).
    OtherPrograms,
}

impl Activity {
    /// All, in the order of [`Account`].
    pub const ALL: [Activity; 9] = [
        Activity::Work,
        Activity::Client,
        Activity::Latch,
        Activity::Stall,
        Activity::Spin,
        Activity::Syscall,
        Activity::Switch,
        Activity::Idle,
        Activity::OtherPrograms,
    ];

    /// The name in tables and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Activity::Work => "work",
            Activity::Client => "client",
            Activity::Latch => "latch code",
            Activity::Stall => "coherence stall",
            Activity::Spin => "spin",
            Activity::Syscall => "futex/syscall",
            Activity::Switch => "context switch",
            Activity::Idle => "idle",
            Activity::OtherPrograms => "other programs",
        }
    }
}

/// Time by [`Activity`], in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account([u64; 9]);

impl Account {
    #[inline(always)]
    pub(crate) fn add(&mut self, activity: Activity, picoseconds: u64) {
        self.0[activity as usize] += picoseconds;
    }

    #[inline]
    pub(crate) fn take_back(&mut self, activity: Activity, picoseconds: u64) {
        self.0[activity as usize] -= picoseconds;
    }

    /// Picoseconds spent on `activity`.
    pub fn picoseconds(&self, activity: Activity) -> u64 {
        self.0[activity as usize]
    }

    /// Picoseconds in all.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// `activity`'s part of all time, 0 to 1.
    pub fn share(&self, activity: Activity) -> f64 {
        self.picoseconds(activity) as f64 / self.total().max(1) as f64
    }

    /// Adds another account's times.
    pub fn merge(&mut self, other: &Account) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// The time added since `before` was copied from this account.
    pub fn since(&self, before: &Account) -> Account {
        Account(std::array::from_fn(|index| {
            self.0[index].saturating_sub(before.0[index])
        }))
    }
}

impl Serialize for Account {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = Activity::ALL
            .iter()
            .map(|activity| (activity.name(), self.picoseconds(*activity)));
        // Most simulations have no other programs.
        serializer
            .collect_map(entries.filter(|(name, time)| *time > 0 || *name != Activity::OtherPrograms.name()))
    }
}

impl<'de> Deserialize<'de> for Account {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut named = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut account = Account::default();
        for (time, activity) in account.0.iter_mut().zip(Activity::ALL) {
            let absent = (activity == Activity::OtherPrograms).then_some(0);
            let found = named.remove(activity.name()).or(absent);
            *time = found.ok_or_else(|| D::Error::custom(format!("no time of {:?}", activity.name())))?;
        }
        match named.keys().next() {
            None => Ok(account),
            Some(name) => Err(D::Error::custom(format!("there is no activity {name:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports from before there were other programs are read, and those without any stay as they were.
    #[test]
    fn an_account_without_other_programs_does_not_name_them() {
        let mut account = Account::default();
        account.add(Activity::Work, 5);
        let text = serde_json::to_string(&account).unwrap();
        assert!(!text.contains("other programs"), "{text}");
        assert_eq!(serde_json::from_str::<Account>(&text).unwrap(), account);
        account.add(Activity::OtherPrograms, 7);
        let text = serde_json::to_string(&account).unwrap();
        assert_eq!(serde_json::from_str::<Account>(&text).unwrap(), account);
        let without_idle = text.replace("\"idle\":0,", "");
        assert!(
            serde_json::from_str::<Account>(&without_idle).is_err(),
            "{without_idle}"
        );
    }
}
