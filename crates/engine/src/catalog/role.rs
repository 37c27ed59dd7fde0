//! Roles, and which of them are members of which.
//!
//! # An open directory
//!
//! `clearway init` gives the superuser that each directory begins with (number 10) its name. A directory that was made
//! without it is *open*: no row names that role, and every user is it, under the name that the user gives. The first
//! statement about roles closes it: the superuser has the name of the user who ran it from then on, by a row that is a part
//! of the same transaction, and a user without a role is refused (28000). So a server on loopback needs no set-up, and
//! what has roles has no way around them.
//!
//! # Rules
//!
//! 1. A role and a membership are a row of the catalog heap each. So they are part of a transaction, of what a standby
//!    replays, and of a copy of the files, as tables are.
//! 2. A role that is a member of another, through any number of steps, *is* that other for SET ROLE. It *has* the other's
//!    privileges if each role on the way inherits (`rolinherit`).
//! 3. Memberships make no circle.
//! 4. A superuser is a member of every role, and has all privileges.
//! 5. The predefined roles of PostgreSQL 15 are there without rows. The database's owner is a member of `pg_database_owner`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clearway_sql::function::USER_OID;
use clearway_storage::heap::Tid;
use serde::{Deserialize, Serialize};

use super::CatalogState;

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Role {
    /// Its name. First: the kind of a row is its first key.
    #[serde(rename = "role")]
    pub(crate) name: String,
    pub(crate) oid: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) superuser: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) inherit: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) create_roles: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) create_databases: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) login: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) replication: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) bypass_row_security: bool,
    /// The most sessions that it may have; −1: any number.
    pub(crate) connection_limit: i32,
    /// The SCRAM verifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<Verifier>,
    /// The end of its password, as a timestamptz value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) valid_until: Option<i64>,
    /// The settings that its sessions begin with, in the order in which they were set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) settings: Vec<(String, String)>,
}

/// The text of a SCRAM verifier, which no log shows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Verifier(pub(crate) String);

impl std::fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Verifier")
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A role with the place of its row, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct RoleEntry {
    pub(crate) role: Role,
    pub(crate) tid: Option<Tid>,
}

/// A membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Membership {
    /// The role, and its member. First: the kind of a row is its first key.
    #[serde(rename = "member")]
    pub(crate) pair: (u32, u32),
    pub(crate) grantor: u32,
    /// True if the member may make others members.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) admin: bool,
}

/// A membership with the place of its row, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct MembershipEntry {
    pub(crate) membership: Membership,
    pub(crate) tid: Option<Tid>,
}

/// The role whose member the database's owner is.
pub(crate) const DATABASE_OWNER: u32 = 6_171;

/// The role whose members read settings that are for superusers.
const READ_ALL_SETTINGS: u32 = 3_374;

/// The role whose members see what others do.
pub(crate) const READ_ALL_STATISTICS: u32 = 3_375;

/// The role whose members end statements and sessions of others.
pub(crate) const SIGNAL_BACKEND: u32 = 4_200;

/// The roles whose members read, or write, all tables.
pub(crate) const READ_ALL_DATA: u32 = 6_181;
pub(crate) const WRITE_ALL_DATA: u32 = 6_182;

/// The predefined roles of PostgreSQL 15.
const PREDEFINED: [(u32, &str); 12] = [
    (3_373, "pg_monitor"),
    (READ_ALL_SETTINGS, "pg_read_all_settings"),
    (READ_ALL_STATISTICS, "pg_read_all_stats"),
    (3_377, "pg_stat_scan_tables"),
    (SIGNAL_BACKEND, "pg_signal_backend"),
    (4_544, "pg_checkpoint"),
    (4_569, "pg_read_server_files"),
    (4_570, "pg_write_server_files"),
    (4_571, "pg_execute_server_program"),
    (DATABASE_OWNER, "pg_database_owner"),
    (READ_ALL_DATA, "pg_read_all_data"),
    (WRITE_ALL_DATA, "pg_write_all_data"),
];

/// The roles that `pg_monitor` is a member of.
const MONITORED: [u32; 3] = [READ_ALL_SETTINGS, READ_ALL_STATISTICS, 3_377];

/// All roles.
#[derive(Debug, Clone)]
pub(crate) struct Roles {
    by_oid: BTreeMap<u32, Arc<RoleEntry>>,
    memberships: BTreeMap<(u32, u32), MembershipEntry>,
}

impl Role {
    /// A role without any rights.
    pub(crate) fn new(oid: u32, name: &str) -> Role {
        Role {
            name: name.to_owned(),
            oid,
            superuser: false,
            inherit: true,
            create_roles: false,
            create_databases: false,
            login: false,
            replication: false,
            bypass_row_security: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
            settings: Vec::new(),
        }
    }

    /// The superuser that a directory begins with.
    pub(crate) fn first(name: &str) -> Role {
        Role {
            superuser: true,
            create_roles: true,
            create_databases: true,
            login: true,
            replication: true,
            bypass_row_security: true,
            ..Role::new(USER_OID, name)
        }
    }
}

impl Roles {
    /// The predefined ones.
    pub(crate) fn predefined() -> Roles {
        let role = |(oid, name): (u32, &str)| {
            let role = Role::new(oid, name);
            (oid, Arc::new(RoleEntry { role, tid: None }))
        };
        let member = |role: u32| {
            let membership = Membership {
                pair: (role, 3_373),
                grantor: USER_OID,
                admin: false,
            };
            (
                membership.pair,
                MembershipEntry {
                    membership,
                    tid: None,
                },
            )
        };
        Roles {
            by_oid: PREDEFINED.into_iter().map(role).collect(),
            memberships: MONITORED.into_iter().map(member).collect(),
        }
    }

    /// True if the superuser that the directory began with has no name.
    pub(crate) fn is_open(&self) -> bool {
        !self.by_oid.contains_key(&USER_OID)
    }

    /// The role of this number; there is none of the first superuser in an open directory.
    pub(crate) fn get(&self, oid: u32) -> Option<&Arc<RoleEntry>> {
        self.by_oid.get(&oid)
    }

    /// The role of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<RoleEntry>> {
        self.by_oid.values().find(|entry| entry.role.name == name)
    }

    /// All roles, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Role> {
        self.by_oid.values().map(|entry| &entry.role)
    }

    /// All memberships, by role and member.
    pub(crate) fn memberships(&self) -> impl Iterator<Item = &Membership> {
        self.memberships.values().map(|entry| &entry.membership)
    }

    /// A membership.
    pub(crate) fn membership(&self, role: u32, member: u32) -> Option<&MembershipEntry> {
        self.memberships.get(&(role, member))
    }

    pub(crate) fn is_superuser(&self, oid: u32) -> bool {
        match self.get(oid) {
            Some(entry) => entry.role.superuser,
            None => oid == USER_OID && self.is_open(),
        }
    }

    fn inherits(&self, oid: u32) -> bool {
        self.get(oid).is_none_or(|entry| entry.role.inherit)
    }

    /// The roles that a role is, itself first; with `by_inheritance` those alone whose privileges it has. `owner`: the
    /// database's.
    fn reached_from(&self, oid: u32, owner: u32, by_inheritance: bool) -> BTreeSet<u32> {
        let mut reached = BTreeSet::from([oid]);
        let mut open = vec![oid];
        while let Some(member) = open.pop() {
            if by_inheritance && !self.inherits(member) {
                continue;
            }
            let of_owner = (member == owner).then_some(DATABASE_OWNER);
            let explicit = self
                .memberships()
                .filter(|membership| membership.pair.1 == member);
            for role in explicit.map(|membership| membership.pair.0).chain(of_owner) {
                if reached.insert(role) {
                    open.push(role);
                }
            }
        }
        reached
    }
}

impl CatalogState {
    /// The owner of the database.
    pub(crate) fn database_owner(&self) -> u32 {
        self.database.0.owner
    }

    /// True if a role is a member of another, or is that one (rule 2); superusers are members of all.
    pub(crate) fn is_member(&self, member: u32, role: u32) -> bool {
        member == role || self.roles.is_superuser(member) || self.is_explicit_member(member, role)
    }

    /// The same without regard to superusers.
    pub(crate) fn is_explicit_member(&self, member: u32, role: u32) -> bool {
        let reached = self.roles.reached_from(member, self.database_owner(), false);
        reached.contains(&role)
    }

    /// True if a role has the privileges of another.
    pub(crate) fn has_privileges_of(&self, member: u32, role: u32) -> bool {
        member == role || self.roles.is_superuser(member) || self.inherited_roles(member).contains(&role)
    }

    /// True if a role sees the settings that are for superusers.
    pub(crate) fn sees_all_settings(&self, role: u32) -> bool {
        self.has_privileges_of(role, READ_ALL_SETTINGS)
    }

    /// The roles whose privileges a role has, itself among them.
    pub(crate) fn inherited_roles(&self, member: u32) -> BTreeSet<u32> {
        self.roles.reached_from(member, self.database_owner(), true)
    }

    /// True if a role may make others members of another: it has the admin option, by itself or by a role that it is.
    pub(crate) fn is_admin_of(&self, member: u32, role: u32) -> bool {
        let reached = self.roles.reached_from(member, self.database_owner(), false);
        self.roles.is_superuser(member)
            || reached.iter().any(|own| {
                let membership = self.roles.membership(role, *own);
                membership.is_some_and(|entry| entry.membership.admin)
            })
    }

    /// Adds or replaces a role.
    pub(crate) fn put_role(&mut self, entry: RoleEntry) {
        let roles = Arc::make_mut(&mut self.roles);
        roles.by_oid.insert(entry.role.oid, Arc::new(entry));
    }

    /// Takes a role out.
    pub(crate) fn remove_role(&mut self, oid: u32) {
        Arc::make_mut(&mut self.roles).by_oid.remove(&oid);
    }

    /// Adds or replaces a membership.
    pub(crate) fn put_membership(&mut self, entry: MembershipEntry) {
        let roles = Arc::make_mut(&mut self.roles);
        roles.memberships.insert(entry.membership.pair, entry);
    }

    /// Takes a membership out.
    pub(crate) fn remove_membership(&mut self, pair: (u32, u32)) {
        Arc::make_mut(&mut self.roles).memberships.remove(&pair);
    }

    /// All roles.
    pub(crate) fn roles(&self) -> &Roles {
        &self.roles
    }

    /// The name of a role; of the first superuser of an open directory the one that the user gives.
    pub(crate) fn role_name<'s>(&'s self, oid: u32, user: &'s str) -> Option<&'s str> {
        match self.roles.get(oid) {
            Some(entry) => Some(&entry.role.name),
            None if oid == USER_OID => Some(user),
            None => None,
        }
    }

    /// The number of the role of this name; in an open directory the user is the first superuser.
    pub(crate) fn role_number(&self, name: &str, user: &str) -> Option<u32> {
        match self.roles.named(name) {
            Some(entry) => Some(entry.role.oid),
            None => (self.roles.is_open() && name == user).then_some(USER_OID),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(roles: &[(u32, bool)], members: &[(u32, u32)]) -> CatalogState {
        let mut state = CatalogState::empty();
        for (oid, inherit) in roles {
            let role = Role {
                inherit: *inherit,
                ..Role::new(*oid, &format!("r{oid}"))
            };
            state.put_role(RoleEntry { role, tid: None });
        }
        for pair in members {
            let membership = Membership {
                pair: *pair,
                grantor: USER_OID,
                admin: pair.1 == 103,
            };
            state.put_membership(MembershipEntry {
                membership,
                tid: None,
            });
        }
        state
    }

    #[test]
    fn privileges_stop_at_a_role_that_does_not_inherit_and_membership_does_not() {
        let state = state(
            &[(101, true), (102, false), (103, true)],
            &[(101, 102), (102, 103)],
        );
        assert!(state.is_member(103, 101) && !state.has_privileges_of(103, 101));
        assert!(state.has_privileges_of(103, 102) && !state.is_member(101, 103));
        assert!(state.is_admin_of(103, 102) && !state.is_admin_of(102, 101));
    }

    #[test]
    fn the_first_superuser_has_no_name_until_it_gets_a_row() {
        let mut state = CatalogState::empty();
        assert!(state.roles().is_open() && state.roles().is_superuser(USER_OID));
        assert_eq!(state.role_name(USER_OID, "alice"), Some("alice"));
        assert_eq!(state.role_number("alice", "alice"), Some(USER_OID));
        state.put_role(RoleEntry {
            role: Role::first("postgres"),
            tid: None,
        });
        assert!(!state.roles().is_open() && state.roles().is_superuser(USER_OID));
        assert_eq!(state.role_number("alice", "alice"), None);
        assert_eq!(state.role_name(USER_OID, "alice"), Some("postgres"));
        assert!(state.is_member(USER_OID, DATABASE_OWNER) && state.is_explicit_member(3_373, 3_374));
    }

    #[test]
    fn a_verifier_is_not_shown() {
        let role = Role {
            password: Some(Verifier("SCRAM-SHA-256$4096:secret".to_owned())),
            ..Role::new(1, "r")
        };
        assert!(!format!("{role:?}").contains("secret"));
    }
}
