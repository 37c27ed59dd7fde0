//! `synchronous_commit`: what a commit waits for before it is acknowledged.
//!
//! | value | also | the commit is acknowledged when it is | with synchronous standbys, also |
//! | --- | --- | --- | --- |
//! | `off` | false, no, 0 | in the log | |
//! | `local` | | on this server's disk | |
//! | `remote_write` | | the same | written by them |
//! | `on` | true, yes, 1 | the same | on their disks |
//! | `remote_apply` | | the same | seen by their readers |
//!
//! Without synchronous standbys the last four are one.

use clearway_storage::sync_replication::ReplicationLevel;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The parts that a commit waits for; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SynchronousCommit {
    /// Nothing.
    Off,
    /// This server's disk.
    Local,
    /// That and the standbys' operating systems.
    RemoteWrite,
    /// That and the standbys' disks.
    #[default]
    On,
    /// That and the standbys' readers.
    RemoteApply,
}

impl SynchronousCommit {
    /// The meaning of one of its spellings.
    pub fn parse(text: &str) -> Option<SynchronousCommit> {
        Some(match text.to_ascii_lowercase().as_str() {
            "off" | "false" | "no" | "0" => SynchronousCommit::Off,
            "local" => SynchronousCommit::Local,
            "remote_write" => SynchronousCommit::RemoteWrite,
            "on" | "true" | "yes" | "1" => SynchronousCommit::On,
            "remote_apply" => SynchronousCommit::RemoteApply,
            _ => return None,
        })
    }

    /// As SHOW gives it.
    pub fn name(self) -> &'static str {
        match self {
            SynchronousCommit::Off => "off",
            SynchronousCommit::Local => "local",
            SynchronousCommit::RemoteWrite => "remote_write",
            SynchronousCommit::On => "on",
            SynchronousCommit::RemoteApply => "remote_apply",
        }
    }

    /// True if it waits for this server's disk.
    #[inline]
    pub fn is_synchronous(self) -> bool {
        self != SynchronousCommit::Off
    }

    /// The level that it waits for on synchronous standbys.
    #[inline]
    pub fn replication_level(self) -> Option<ReplicationLevel> {
        match self {
            SynchronousCommit::Off | SynchronousCommit::Local => None,
            SynchronousCommit::RemoteWrite => Some(ReplicationLevel::Written),
            SynchronousCommit::On => Some(ReplicationLevel::Flushed),
            SynchronousCommit::RemoteApply => Some(ReplicationLevel::Applied),
        }
    }
}

impl From<bool> for SynchronousCommit {
    fn from(waits: bool) -> SynchronousCommit {
        if waits {
            SynchronousCommit::On
        } else {
            SynchronousCommit::Off
        }
    }
}

impl Serialize for SynchronousCommit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// In TOML: a boolean or one of the words.
#[derive(Deserialize)]
#[serde(untagged)]
enum BooleanOrText {
    Boolean(bool),
    Text(String),
}

impl<'de> Deserialize<'de> for SynchronousCommit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SynchronousCommit, D::Error> {
        match BooleanOrText::deserialize(deserializer)? {
            BooleanOrText::Boolean(waits) => Ok(waits.into()),
            BooleanOrText::Text(text) => SynchronousCommit::parse(&text).ok_or_else(|| {
                D::Error::custom(format!(
                    "synchronous_commit is on, remote_apply, remote_write, local or off, not \"{text}\""
                ))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn the_configuration_takes_booleans_and_words() {
        for (value, expected) in [
            ("true", "on"),
            ("false", "off"),
            ("\"on\"", "on"),
            ("\"0\"", "off"),
            ("\"Remote_Apply\"", "remote_apply"),
            ("\"local\"", "local"),
        ] {
            let config = Config::from_toml(&format!("synchronous_commit = {value}")).unwrap();
            assert_eq!(config.synchronous_commit.name(), expected, "{value}");
        }
        let error = Config::from_toml("synchronous_commit = \"sometimes\"").unwrap_err();
        assert!(error.message().contains("not \"sometimes\""), "{error}");
    }

    #[test]
    fn standbys_that_cannot_be_read_are_refused_with_their_place() {
        let config = Config::from_toml("synchronous_standby_names = \"ANY 2 (a, b)\"").unwrap();
        assert_eq!(config.synchronous_standby_names, "ANY 2 (a, b)");
        let error = Config::from_toml("synchronous_standby_names = \"ANY (a)\"").unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "F0000");
        assert!(error.message().contains("at character 5"), "{error}");
    }
}
