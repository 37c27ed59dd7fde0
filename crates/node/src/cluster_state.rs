//! The state of a cluster in etcd, below `/clearway/CLUSTER/`. Each value is JSON.
//!
//! | key | holds | written by |
//! | --- | --- | --- |
//! | `leader` | [`Leader`]: who leads, renewed at each interval | the leader, or the node that takes over |
//! | `synchronous` | [`Synchronous`]: the nodes that may be promoted, while commits wait for standbys | the leader |
//! | `database` | the identifier of the database | the first leader |
//! | `members/NAME` | [`Member`]: the state of each node, written at each interval | that node |
//! | `switchover` | [`Switchover`]: what an operator asks for | an operator; removed by the leader |
//! | `pause` | anything: no node takes over | an operator |
//!
//! A key's *revision* is the number of the last transaction that changed it (`mod_revision`); 0 stands for a key that is not
//! there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The key of [`Leader`], below the cluster's prefix.
pub const LEADER: &str = "leader";
/// The key of [`Synchronous`].
pub const SYNCHRONOUS: &str = "synchronous";
/// The key of the database's identifier.
pub const DATABASE: &str = "database";
/// The prefix of the members' keys.
pub const MEMBERS: &str = "members/";
/// The key of [`Switchover`].
pub const SWITCHOVER: &str = "switchover";
/// The key that holds takeovers back.
pub const PAUSE: &str = "pause";

/// The prefix of a cluster's keys.
pub fn prefix(cluster: &str) -> String {
    format!("/clearway/{cluster}/")
}

/// The office of the primary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The node that holds it.
    pub name: String,
    /// A number that each process of a node draws for itself.
    pub instance: u64,
    /// Grows by one with each takeover.
    pub term: u64,
    /// Grows by one with each renewal.
    pub renewals: u64,
    /// The time for which a renewal holds, in milliseconds.
    pub ttl_ms: u64,
    /// The holder has given it up, and answers nothing any more.
    #[serde(default)]
    pub released: bool,
    /// The node that it was given up for.
    #[serde(default)]
    pub successor: Option<String>,
}

/// The nodes that have every commit that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synchronous {
    /// The primary that commits were acknowledged by last.
    pub leader: String,
    /// True if commits wait for standbys: then only the nodes named here may be promoted.
    pub required: bool,
    /// The standbys that each acknowledged commit is on.
    pub standbys: Vec<String>,
}

impl Synchronous {
    /// True if the node `name` may be promoted.
    pub fn admits(&self, name: &str) -> bool {
        !self.required || self.leader == name || self.standbys.iter().any(|standby| standby == name)
    }
}

/// The state of a node's data directory and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// There is no database yet.
    Absent,
    /// A copy is being made, or the server is starting.
    Starting,
    /// A database that was a primary, and is not open.
    Former,
    /// A standby, which answers reads.
    Standby,
    /// The primary.
    Primary,
    /// It has failed, and the node's log says why.
    Failed,
    /// A word of a newer program, which is no role here.
    #[serde(other)]
    Unknown,
}

impl Role {
    /// The word for a table.
    pub fn name(self) -> &'static str {
        match self {
            Role::Absent => "absent",
            Role::Starting => "starting",
            Role::Former => "former primary",
            Role::Standby => "standby",
            Role::Primary => "primary",
            Role::Failed => "failed",
            Role::Unknown => "unknown",
        }
    }
}

/// A node, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The connection string by which other nodes follow it.
    pub conninfo: String,
    /// The address of its checks, if it answers any.
    pub checks: Option<String>,
    /// Its state.
    pub role: Role,
    /// The timeline of its log.
    pub timeline: u32,
    /// The end of the log that it would have after a promotion.
    pub position: u64,
    /// The node that it follows.
    pub follows: Option<String>,
    /// True while it receives log.
    pub streams: bool,
    /// Grows by one with each write.
    pub beats: u64,
    /// The time of the write in seconds since 1970 by the node's clock, for display.
    pub written_at: u64,
}

impl Member {
    /// A member whose value is not understood.
    fn unknown() -> Member {
        Member {
            conninfo: String::new(),
            checks: None,
            role: Role::Unknown,
            timeline: 0,
            position: 0,
            follows: None,
            streams: false,
            beats: 0,
            written_at: 0,
        }
    }
}

/// An operator's wish that another node leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switchover {
    /// The node that is to lead.
    pub to: String,
}

/// A value with its key's revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<T> {
    /// The value.
    pub value: T,
    /// The revision of its last change.
    pub revision: i64,
}

/// All keys of a cluster at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The office.
    pub leader: Option<Entry<Leader>>,
    /// The nodes that may be promoted.
    pub synchronous: Option<Entry<Synchronous>>,
    /// The identifier of the database.
    pub database: Option<u64>,
    /// The nodes by name.
    pub members: BTreeMap<String, Entry<Member>>,
    /// The wish of an operator.
    pub switchover: Option<Entry<Switchover>>,
    /// No node takes over.
    pub paused: bool,
}

impl View {
    /// The revision of the office.
    pub fn leader_revision(&self) -> i64 {
        self.leader.as_ref().map_or(0, |entry| entry.revision)
    }

    /// The revision of [`SYNCHRONOUS`].
    pub fn synchronous_revision(&self) -> i64 {
        self.synchronous.as_ref().map_or(0, |entry| entry.revision)
    }

    /// True if the node `name` may be promoted.
    pub fn admits(&self, name: &str) -> bool {
        self.synchronous
            .as_ref()
            .is_none_or(|entry| entry.value.admits(name))
    }

    /// The keys below `prefix`: name without the prefix, value, revision. A value that is not understood is an error: a
    /// newer program may have written it, and what it means is not to be guessed. That of a member costs only this member
    /// its part in the cluster: it may have a database, and is followed, waited for and promoted by none.
    pub fn parse<'a>(
        keys: impl IntoIterator<Item = (&'a str, &'a [u8], i64)>,
    ) -> Result<View, serde_json::Error> {
        let mut view = View::default();
        for (key, value, revision) in keys {
            match key {
                LEADER => view.leader = Some(entry(value, revision)?),
                SYNCHRONOUS => view.synchronous = Some(entry(value, revision)?),
                SWITCHOVER => view.switchover = Some(entry(value, revision)?),
                DATABASE => view.database = Some(serde_json::from_slice(value)?),
                PAUSE => view.paused = true,
                _ => {
                    if let Some(name) = key.strip_prefix(MEMBERS) {
                        let member = entry(value, revision).unwrap_or_else(|_| Entry {
                            value: Member::unknown(),
                            revision,
                        });
                        view.members.insert(name.to_owned(), member);
                    }
                }
            }
        }
        Ok(view)
    }
}

fn entry<T: for<'de> Deserialize<'de>>(value: &[u8], revision: i64) -> Result<Entry<T>, serde_json::Error> {
    Ok(Entry {
        value: serde_json::from_slice(value)?,
        revision,
    })
}

/// A condition of a transaction: the key has this revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The key, below the prefix.
    pub key: &'static str,
    /// Its revision; 0: it is not there.
    pub revision: i64,
}

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It gets this value.
    Put(String, String),
    /// It is removed.
    Delete(String),
}

impl Change {
    /// Gives `key` the value as JSON.
    pub fn put(key: impl Into<String>, value: &impl Serialize) -> Change {
        let text = serde_json::to_string(value).expect("values of numbers, texts and lists have a JSON text");
        Change::Put(key.into(), text)
    }
}

/// A transaction: where all conditions hold the changes are made, and in any case the member's key is written and all keys
/// are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The conditions of the changes.
    pub conditions: Vec<Condition>,
    /// The changes.
    pub changes: Vec<Change>,
    /// The node's own key and value, written in any case.
    pub member: Option<(String, Member)>,
}

/// The outcome of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// True if all conditions held, and the changes were made.
    pub succeeded: bool,
    /// All keys behind it.
    pub view: View,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_not_understood_costs_only_this_member() {
        let known = r#"{"conninfo":"host=a","checks":null,"role":"standby","timeline":2,"position":4096,
            "follows":"b","streams":true,"beats":7,"written_at":100}"#;
        let newer = known.replace("standby", "witness");
        let keys = [
            ("members/a", known.as_bytes(), 3),
            ("members/b", newer.as_bytes(), 4),
            ("members/c", b"[]".as_slice(), 5),
        ];
        let view = View::parse(keys).unwrap();
        let roles: Vec<Role> = view.members.values().map(|entry| entry.value.role).collect();
        assert_eq!(roles, [Role::Standby, Role::Unknown, Role::Unknown]);
        assert_eq!(view.members["b"].value.conninfo, "host=a");
        assert_eq!(view.members["c"].revision, 5);
        for key in [LEADER, SYNCHRONOUS, DATABASE, SWITCHOVER] {
            assert!(View::parse([(key, b"[]".as_slice(), 6)]).is_err(), "{key}");
        }
    }
}
