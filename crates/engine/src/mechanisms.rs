//! Which variant of each mechanism runs.
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
//! Every switch that is planned has its name here already, so that configurations stay valid; a variant that is
//! planned but not built is refused with the list of those that are. Presets: `classic` is every baseline, what
//! databases ship; `clearway`, the default, is the best of ours.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One switch: its name, the variants that are built (baseline first), and those that are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: &'static str,
    /// The variants one can choose, the baseline first.
    pub available: &'static [&'static str],
    /// The variants yet to come.
    pub planned: &'static [&'static str],
}

macro_rules! mechanisms {
    ($(
        $(#[$doc:meta])*
        $field:ident : $type:ident = $name:literal {
            $( $(#[$variant_doc:meta])* $variant:ident = $variant_name:literal ),* $(,)?
        } planned [$($planned:literal),*] clearway $best:ident;
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub enum $type { $( $(#[$variant_doc])* $variant ),* }

            impl $type {
                /// The variant's name.
                pub const fn name(self) -> &'static str {
                    match self { $( $type::$variant => $variant_name ),* }
                }
            }
        )*

        /// The variant of each mechanism.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct Mechanisms {
            $( $(#[$doc])* pub $field: $type, )*
        }

        impl Mechanisms {
            /// All switches.
            pub const SWITCHES: &'static [Switch] = &[
                $( Switch { name: $name, available: &[$($variant_name),*], planned: &[$($planned),*] } ),*
            ];

            /// The best of ours.
            pub const CLEARWAY: Mechanisms = Mechanisms { $( $field: $type::$best ),* };

            /// Every baseline.
            pub const CLASSIC: Mechanisms = Mechanisms { $( $field: first(&[$($type::$variant),*]) ),* };

            /// Every switch with the variant chosen.
            pub fn list(&self) -> Vec<(&'static str, &'static str)> {
                vec![$( ($name, self.$field.name()) ),*]
            }

            /// Sets one switch by name.
            pub fn set_variant(&mut self, name: &str, variant: &str) -> Result<(), MechanismError> {
                match name {
                    $(
                        $name => match variant {
                            $( $variant_name => self.$field = $type::$variant, )*
                            _ => return Err(MechanismError::variant(name, variant)),
                        },
                    )*
                    _ => return Err(MechanismError::name(name)),
                }
                Ok(())
            }
        }
    };
}

const fn first<T: Copy>(variants: &[T]) -> T {
    variants[0]
}

mechanisms! {
    /// The latch under everything.
    lwlock: LwLockVariant = "lwlock" {
        /// Queue, attempt again, dequeue.
        Queued = "queued",
        /// One CAS proves the latch held and locks the queue.
        SingleCas = "single-cas",
        /// As queued, but who dequeues looks for itself on the list: PostgreSQL until 2022.
        QueuedScan = "queued-scan",
    } planned [] clearway SingleCas;

    /// How a reader acquires an LwLock.
    lwlock_shared: LwLockSharedVariant = "lwlock_shared" {
        /// Compare and swap, again if another came first.
        Cas = "cas",
        /// One addition, taken back if an exclusive came first.
        FetchAdd = "fetch-add",
    } planned [] clearway Cas;

    /// Whether readers may pass workers that wait for an LwLock.
    lwlock_fairness: LwLockFairnessVariant = "lwlock_fairness" {
        /// Always.
        Barging = "barging",
        /// 64 of them; then newcomers queue.
        AfterNShared = "after-n-shared",
    } planned [] clearway Barging;

    /// The latch over the array of running transactions.
    proc_array_latch: ProcArrayLatchVariant = "proc_array_latch" {
        /// An LwLock.
        Plain = "plain",
        /// One cut into 16, of which a snapshot takes one and an end all.
        ReadBiased = "read-biased",
        /// One that turns read-biased, and back, by what it measures.
        Adaptive = "adaptive",
    } planned [] clearway Plain;

    /// The latch on a page.
    page_latch: PageLatchVariant = "page_latch" {
        /// An LwLock.
        LwLock = "lwlock",
        /// Two futex words, with an update mode.
        Ssux = "ssux",
        /// A latch with versions: descents of B+trees take none on inner pages.
        Hybrid = "hybrid",
    } planned [] clearway LwLock;

    /// The table from page to buffer.
    buffer_map: BufferMapVariant = "buffer_map" {
        /// Partitions, a latch each.
        Partitioned = "partitioned",
    } planned ["concurrent"] clearway Partitioned;

    /// How a snapshot is taken.
    snapshot: SnapshotVariant = "snapshot" {
        /// Scan the running transactions.
        Scan = "scan",
    } planned ["shared-cache", "reuse", "csn"] clearway Scan;

    /// How a transaction leaves the array of running ones.
    proc_clear: ProcClearVariant = "proc_clear" {
        /// Each by itself.
        Single = "single",
    } planned ["group"] clearway Single;

    /// What guards the commit log.
    commit_log: CommitLogVariant = "commit_log" {
        /// One latch.
        Latch = "latch",
    } planned ["group", "banks", "atomic"] clearway Latch;

    /// How the log reaches the disk.
    log_flush: LogFlushVariant = "log_flush" {
        /// Write and sync under one latch; those who come meanwhile share the next.
        Single = "single",
    } planned ["split", "group"] clearway Single;

    /// Where relation locks live.
    relation_locks: RelationLocksVariant = "relation_locks" {
        /// In the shared table.
        Table = "table",
        /// Weak ones on the session's own list, until a strong locker comes.
        FastPath = "fast-path",
    } planned [] clearway FastPath;

    /// How a standby knows the primary's running transactions.
    known_xids: KnownXidsVariant = "known_xids" {
        /// A sorted array with gaps.
        Array = "array",
    } planned ["list", "offsets", "radix", "bitmap"] clearway Array;
}

impl Default for Mechanisms {
    fn default() -> Mechanisms {
        Mechanisms::CLEARWAY
    }
}

impl Mechanisms {
    /// The names of the presets.
    pub const PRESETS: &'static [&'static str] = &["classic", "clearway"];

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
        let near = match crate::config::nearest(name, names.iter().copied()) {
            Some(near) => format!(" (did you mean {near}?)"),
            None => String::new(),
        };
        MechanismError(format!(
            "there is no mechanism \"{name}\"{near}; there are: {}",
            names.join(", ")
        ))
    }

    fn variant(name: &str, variant: &str) -> MechanismError {
        let switch = Mechanisms::SWITCHES.iter().find(|switch| switch.name == name);
        let (available, planned) = switch.map_or((&[][..], &[][..]), |s| (s.available, s.planned));
        let fault = if planned.contains(&variant) {
            "is not built yet"
        } else {
            "does not exist"
        };
        MechanismError(format!(
            "{name} = {variant} {fault}; available: {}",
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

    #[test]
    fn errors_list_what_there_is() {
        let mut mechanisms = Mechanisms::default();
        mechanisms.set("lwlock=queued").unwrap();
        mechanisms.set("relation_locks=table").unwrap();
        assert_eq!(mechanisms, Mechanisms::CLASSIC);
        let error = |assignment: &str| Mechanisms::default().set(assignment).unwrap_err().to_string();
        assert_eq!(
            error("snapshot=csn"),
            "snapshot = csn is not built yet; available: scan"
        );
        assert_eq!(
            error("lwlock=fast"),
            "lwlock = fast does not exist; available: queued, single-cas, queued-scan"
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
