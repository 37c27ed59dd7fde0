//! The choice of each mechanism's variant.
//!
//! One struct for the engine, the native bench and the simulation, so that a before/after is one flag anywhere:
//! `--set lwlock=queued`, or in `clearway.toml`
//!
//! ```toml
//! [mechanisms]
//! preset = "classic"
//! lwlock = "single-cas"
//! ```
//!
//! The enum of each switch, with its names and texts, is beside the mechanism in the crate that implements it
//! ([`clearway_machine::Switch`]); here is the list of the switches. A variant that is planned but not built is refused
//! with the list of those that are. Presets: `classic` is every baseline, what databases ship; `clearway`, the default,
//! is our best.

mod covering_sets;

use std::fmt;

use clearway_latch::{LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant};
use clearway_machine::{Switch, SwitchDescription, TimeSliceVariant};
use clearway_storage::standby::ReplayVariant;
use clearway_storage::wal::{
    LogFlushVariant, LogInsertVariant, LogOptions, LogReserveVariant, LogSyncVariant, LogWakeVariant,
};
use clearway_storage::{
    BufferClockVariant, BufferMapVariant, BufferPoolOptions, CommitOrderVariant, CommitVariants,
    LockReleaseVariant, PageLatchVariant, PageReadVariant, PageRoomVariant,
};
use clearway_txn::{
    CommitLogOptions, CommitLogVariant, KnownXidsCompactionVariant, KnownXidsVariant, LockOptions,
    ProcArrayLatchVariant, ProcArrayOptions, ProcClearVariant, RelationLocksVariant, RowLocksVariant,
    SnapshotVariant,
};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! mechanisms {
    ($($field:ident: $switch:ty,)*) => {
        /// The variant of each mechanism.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct Mechanisms {
            $(
                #[doc = concat!("The switch `", stringify!($field), "`.")]
                pub $field: $switch,
            )*
        }

        impl Mechanisms {
            /// All switches.
            pub const SWITCHES: &'static [SwitchDescription] = &[$(<$switch as Switch>::DESCRIPTION),*];

            /// The best of ours.
            pub const CLEARWAY: Mechanisms = Mechanisms { $($field: <$switch as Switch>::BEST),* };

            /// Every baseline.
            pub const CLASSIC: Mechanisms = Mechanisms { $($field: <$switch as Switch>::ALL[0]),* };

            /// Every switch with the variant chosen.
            pub fn list(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((<$switch as Switch>::NAME, self.$field.name())),*]
            }

            /// Sets one switch by name.
            pub fn set_variant(&mut self, name: &str, variant: &str) -> Result<(), MechanismError> {
                let switch = Mechanisms::switch(name)?;
                let known = match name {
                    $(stringify!($field) => <$switch>::named(variant).map(|known| self.$field = known),)*
                    _ => None,
                };
                known.ok_or_else(|| MechanismError::variant(switch, variant))
            }
        }
    };
}

mechanisms! {
    lwlock: LwLockVariant,
    lwlock_shared: LwLockSharedVariant,
    lwlock_fairness: LwLockFairnessVariant,
    proc_array_latch: ProcArrayLatchVariant,
    page_latch: PageLatchVariant,
    page_read: PageReadVariant,
    buffer_map: BufferMapVariant,
    buffer_clock: BufferClockVariant,
    page_room: PageRoomVariant,
    snapshot: SnapshotVariant,
    known_xids: KnownXidsVariant,
    known_xids_compaction: KnownXidsCompactionVariant,
    replay: ReplayVariant,
    proc_clear: ProcClearVariant,
    commit_log: CommitLogVariant,
    log_reserve: LogReserveVariant,
    log_insert: LogInsertVariant,
    log_flush: LogFlushVariant,
    log_wake: LogWakeVariant,
    log_sync: LogSyncVariant,
    lock_release: LockReleaseVariant,
    commit_order: CommitOrderVariant,
    relation_locks: RelationLocksVariant,
    row_locks: RowLocksVariant,
    time_slice: TimeSliceVariant,
}

impl Default for Mechanisms {
    fn default() -> Mechanisms {
        Mechanisms::CLEARWAY
    }
}

impl Mechanisms {
    /// The names of the presets.
    pub const PRESETS: &'static [&'static str] = &["classic", "clearway"];

    /// The switch of this name.
    pub fn switch(name: &str) -> Result<&'static SwitchDescription, MechanismError> {
        let mut switches = Mechanisms::SWITCHES.iter();
        switches
            .find(|switch| switch.name == name)
            .ok_or_else(|| MechanismError::name(name))
    }

    /// The preset of this name.
    pub fn preset(name: &str) -> Result<Mechanisms, MechanismError> {
        match name {
            "classic" => Ok(Mechanisms::CLASSIC),
            "clearway" => Ok(Mechanisms::CLEARWAY),
            _ => Err(MechanismError(format!(
                "there is no preset \"{name}\"; available: {}",
                Mechanisms::PRESETS.join(", ")
            ))),
        }
    }

    /// Sets one switch from `name=variant`.
    pub fn set(&mut self, assignment: &str) -> Result<(), MechanismError> {
        let (name, variant) = assignment.split_once('=').ok_or_else(|| {
            MechanismError(format!(
                "\"{assignment}\" is not of the form name=variant, e.g. lwlock=queued"
            ))
        })?;
        self.set_variant(name.trim(), variant.trim())
    }

    /// The options of every LwLock.
    pub fn lwlock_options(&self) -> LwLockOptions {
        LwLockOptions {
            algorithm: self.lwlock,
            shared_path: self.lwlock_shared,
            fairness: self.lwlock_fairness,
        }
    }

    /// The options of the array of running transactions.
    pub fn proc_array_options(&self) -> ProcArrayOptions {
        ProcArrayOptions {
            latch: self.proc_array_latch,
            snapshot: self.snapshot,
            clear: self.proc_clear,
            lwlock: self.lwlock_options(),
        }
    }

    /// The options of the buffer pool.
    pub fn buffer_pool_options(&self) -> BufferPoolOptions {
        BufferPoolOptions {
            map: self.buffer_map,
            clock: self.buffer_clock,
            page_latch: self.page_latch,
            page_read: self.page_read,
            lwlock: self.lwlock_options(),
            ..BufferPoolOptions::default()
        }
    }

    /// The options of the commit log.
    pub fn commit_log_options(&self) -> CommitLogOptions {
        CommitLogOptions {
            variant: self.commit_log,
            lwlock: self.lwlock_options(),
            ..CommitLogOptions::default()
        }
    }

    /// The options of the log.
    pub fn log_options(&self) -> LogOptions {
        LogOptions {
            lwlock: self.lwlock_options(),
            reserve: self.log_reserve,
            insert: self.log_insert,
            flush: self.log_flush,
            wake: self.log_wake,
            sync: self.log_sync,
            ..LogOptions::default()
        }
    }

    /// The options of relation locks, tuple locks and waits for transactions.
    pub fn lock_options(&self) -> LockOptions {
        LockOptions {
            relation_locks: self.relation_locks,
            row_locks: self.row_locks,
            lwlock: self.lwlock_options(),
            ..LockOptions::default()
        }
    }

    /// The variants of a transaction's end.
    pub fn commit_variants(&self) -> CommitVariants {
        CommitVariants {
            lock_release: self.lock_release,
            order: self.commit_order,
        }
    }

    /// The preset these variants are, if they are one.
    pub fn preset_name(&self) -> Option<&'static str> {
        [
            ("clearway", Mechanisms::CLEARWAY),
            ("classic", Mechanisms::CLASSIC),
        ]
        .into_iter()
        .find(|(_, preset)| preset == self)
        .map(|(name, _)| name)
    }
}

/// A switch or variant that does not exist, with those that do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MechanismError(String);

impl MechanismError {
    fn name(name: &str) -> MechanismError {
        let names: Vec<&str> = Mechanisms::SWITCHES.iter().map(|switch| switch.name).collect();
        MechanismError(match crate::nearest::nearest(name, names.iter().copied()) {
            Some(near) => format!("there is no mechanism \"{name}\" (did you mean {near}?)"),
            None => format!(
                "there is no mechanism \"{name}\"; there are: {}",
                names.join(", ")
            ),
        })
    }

    fn variant(switch: &SwitchDescription, variant: &str) -> MechanismError {
        let fault = if switch.planned.contains(&variant) {
            "is not built yet"
        } else {
            "does not exist"
        };
        let available: Vec<&str> = switch.variants.iter().map(|known| known.name).collect();
        MechanismError(format!(
            "{} = {variant} {fault}; available: {}",
            switch.name,
            available.join(", ")
        ))
    }
}

impl fmt::Display for MechanismError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MechanismError {}

impl Serialize for Mechanisms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = self.list();
        let mut map = serializer.serialize_map(Some(list.len()))?;
        for (name, variant) in list {
            map.serialize_entry(name, variant)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Mechanisms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mechanisms, D::Error> {
        struct Switches;

        impl<'de> Visitor<'de> for Switches {
            type Value = Mechanisms;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of mechanisms, such as lwlock = \"queued\"")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Mechanisms, A::Error> {
                // The preset comes first, wherever it is written.
                let mut mechanisms = Mechanisms::default();
                let mut switches: Vec<(String, String)> = Vec::new();
                while let Some((name, variant)) = map.next_entry::<String, String>()? {
                    if name == "preset" {
                        mechanisms = Mechanisms::preset(&variant).map_err(A::Error::custom)?;
                    } else {
                        // Checked here too, so that the error points at this line.
                        Mechanisms::default()
                            .set_variant(&name, &variant)
                            .map_err(A::Error::custom)?;
                        switches.push((name, variant));
                    }
                }
                for (name, variant) in switches {
                    mechanisms
                        .set_variant(&name, &variant)
                        .map_err(A::Error::custom)?;
                }
                Ok(mechanisms)
            }
        }

        deserializer.deserialize_map(Switches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_differ_in_what_is_built() {
        assert_eq!(Mechanisms::CLASSIC.lwlock, LwLockVariant::Queued);
        assert_eq!(Mechanisms::default().lwlock, LwLockVariant::SingleCas);
        assert_eq!(Mechanisms::default().preset_name(), Some("clearway"));
        assert_eq!(Mechanisms::default().list().len(), Mechanisms::SWITCHES.len());
    }

    fn page(path: &str) -> String {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    }

    #[test]
    fn the_page_tells_every_choice_of_the_preset() {
        let page = page("docs/why-databases-jam.md");
        let chosen = Mechanisms::CLASSIC
            .list()
            .into_iter()
            .zip(Mechanisms::CLEARWAY.list());
        let rows: Vec<String> = chosen
            .filter(|(classic, clearway)| classic != clearway)
            .map(|((name, classic), (_, clearway))| format!("| `{name}` | `{classic}` | `{clearway}` |"))
            .collect();
        for row in &rows {
            assert!(page.contains(row), "docs/why-databases-jam.md has no row {row}");
        }
        let table = page.split("## The preset, switch by switch").nth(1).unwrap();
        let told = table.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(
            told,
            rows.len(),
            "a row of docs/why-databases-jam.md is no choice of the preset"
        );
    }

    #[test]
    fn the_map_counts_the_variants_of_each_switch() {
        let map = page("ARCHITECTURE.md");
        let rows = map.split("| switch | where | variants |").nth(1).unwrap().lines();
        let mut counted = Vec::new();
        for row in rows.skip(2).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let names = cells[0].split(", ").map(|name| name.trim_matches('`'));
            let counts = cells[2].split(", ").map(|count| count.parse::<usize>().unwrap());
            counted.extend(names.zip(counts));
        }
        counted.sort_unstable();
        let mut built: Vec<_> = Mechanisms::SWITCHES
            .iter()
            .map(|switch| (switch.name, switch.variants.len()))
            .collect();
        built.sort_unstable();
        assert_eq!(counted, built, "the table of switches in ARCHITECTURE.md");
    }

    #[test]
    fn every_switch_obeys_its_name() {
        for (switch, (name, _)) in Mechanisms::SWITCHES.iter().zip(Mechanisms::default().list()) {
            assert_eq!(switch.name, name);
            for variant in switch.variants {
                let mut mechanisms = Mechanisms::default();
                mechanisms.set_variant(switch.name, variant.name).unwrap();
                assert!(mechanisms.list().contains(&(switch.name, variant.name)));
                assert!(variant.text.ends_with('.'), "{}", variant.text);
            }
        }
    }

    /// A section of a page as its address has it: the heading in lower case, words joined, punctuation left out.
    fn anchor(heading: &str) -> String {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        kept.chars()
            .filter(|character| character.is_alphanumeric() || " -_".contains(*character))
            .map(|character| if character == ' ' { '-' } else { character })
            .collect()
    }

    #[test]
    fn each_choice_has_evidence_in_a_section_that_exists() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for (switch, (name, best)) in Mechanisms::SWITCHES.iter().zip(Mechanisms::CLEARWAY.list()) {
            let of = |variant: &str| switch.why.iter().filter(|why| why.variant == variant).count();
            // Where there is no choice there is nothing to give evidence for.
            assert_eq!(
                of(best),
                usize::from(switch.variants.len() > 1),
                "{name} = {best}"
            );
            for evidence in switch.why {
                assert_eq!(of(evidence.variant), 1, "{name} = {}", evidence.variant);
                assert!(evidence.text.ends_with('.'), "{}", evidence.text);
                let (page, section) = evidence.section.split_once('#').expect(evidence.section);
                let text = std::fs::read_to_string(format!("{root}/{page}")).expect(page);
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                assert!(
                    headings.any(|heading| anchor(heading) == section),
                    "{page} has no section {section}"
                );
            }
        }
    }

    #[test]
    fn errors_list_what_there_is() {
        let mut mechanisms = Mechanisms::default();
        mechanisms.set("lwlock=queued").unwrap();
        assert_eq!(mechanisms.lwlock, LwLockVariant::Queued);
        let error = |assignment: &str| Mechanisms::default().set(assignment).unwrap_err().to_string();
        let planned = SwitchDescription {
            planned: &["futex"],
            ..*Mechanisms::switch("lwlock").unwrap()
        };
        assert_eq!(
            MechanismError::variant(&planned, "futex").to_string(),
            "lwlock = futex is not built yet; available: queued, single-cas, queued-scan, brief-polls, cohort"
        );
        assert_eq!(
            error("lwlock=fast"),
            "lwlock = fast does not exist; available: queued, single-cas, queued-scan, brief-polls, cohort"
        );
        assert!(
            error("lwlok=queued").contains("did you mean lwlock?"),
            "{}",
            error("lwlok=queued")
        );
        assert!(error("lwlock").contains("name=variant"));
    }

    #[test]
    fn a_preset_and_a_switch_in_any_order() {
        let mechanisms: Mechanisms = toml::from_str("lwlock = \"single-cas\"\npreset = \"classic\"").unwrap();
        assert_eq!(mechanisms.lwlock, LwLockVariant::SingleCas);
        let back: Mechanisms = toml::from_str(&toml::to_string(&mechanisms).unwrap()).unwrap();
        assert_eq!(back, mechanisms);
    }
}
