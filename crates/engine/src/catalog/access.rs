//! Access to objects: their owners, and lists of privileges as PostgreSQL keeps them.
//!
//! # Lists
//!
//! An [`AclItem`] says which privileges a role (or all, number 0) has from which grantor, and which of them it may grant
//! on. An object without a list has the default one of its kind ([`default_acl`]); the first GRANT or REVOKE writes that
//! down and changes it. A table's row of the catalog has its owner, its list, and those of its columns; so has a schema's.
//!
//! # Rules
//!
//! 1. Superusers may do all. An owner may grant and revoke whatever its list says, and a privilege that it has taken
//!    from itself it may give itself again.
//! 2. A role has what its own items, those of all, and those of the roles whose privileges it has say
//!    (`CatalogState::inherited_roles`).
//! 3. A privilege is granted by the owner, or by a role with the grant option. A superuser, and a member of the owner,
//!    grants as the owner.
//! 4. When a grant option goes, what was granted by it goes too (CASCADE), or the statement fails (2BP01).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::USER_OID;
use clearway_sql::function::quote_identifier;
use clearway_sql::{SchemaRef, TableDef};
use clearway_storage::heap::Tid;

use super::CatalogState;
use super::role::{READ_ALL_DATA, WRITE_ALL_DATA};

/// A set of privileges, a bit each, in PostgreSQL's order.
pub(crate) type Privileges = u16;

/// The letters of the privileges, by their bits.
pub(crate) const LETTERS: &[u8; 14] = b"arwdDxtXUCTcsA";

pub(crate) const INSERT: Privileges = 1;
pub(crate) const SELECT: Privileges = 1 << 1;
pub(crate) const UPDATE: Privileges = 1 << 2;
pub(crate) const DELETE: Privileges = 1 << 3;
pub(crate) const TRUNCATE: Privileges = 1 << 4;
pub(crate) const REFERENCES: Privileges = 1 << 5;
pub(crate) const TRIGGER: Privileges = 1 << 6;
pub(crate) const USAGE: Privileges = 1 << 8;
pub(crate) const CREATE: Privileges = 1 << 9;
pub(crate) const TEMPORARY: Privileges = 1 << 10;
pub(crate) const CONNECT: Privileges = 1 << 11;

/// All privileges of a column.
pub(crate) const OF_COLUMNS: Privileges = INSERT | SELECT | UPDATE | REFERENCES;
/// All privileges of a table.
pub(crate) const OF_TABLES: Privileges = OF_COLUMNS | DELETE | TRUNCATE | TRIGGER;
/// All privileges of a sequence.
pub(crate) const OF_SEQUENCES: Privileges = SELECT | UPDATE | USAGE;
/// All privileges of a schema.
pub(crate) const OF_SCHEMAS: Privileges = USAGE | CREATE;
/// All privileges of a database.
pub(crate) const OF_DATABASES: Privileges = CREATE | TEMPORARY | CONNECT;

/// The number that stands for all roles.
pub(crate) const PUBLIC: u32 = 0;

/// The names of the privileges, by their bits.
const NAMES: [&str; 12] = [
    "insert",
    "select",
    "update",
    "delete",
    "truncate",
    "references",
    "trigger",
    "execute",
    "usage",
    "create",
    "temporary",
    "connect",
];

/// The bit of the privilege of this name, in lower case.
pub(crate) fn privilege_named(word: &str) -> Option<Privileges> {
    let word = if word == "temp" { "temporary" } else { word };
    let found = NAMES.iter().position(|name| *name == word);
    found.map(|bit| 1 << bit)
}

/// The privileges of a set, each with its name in capitals.
pub(crate) fn names_of(privileges: Privileges) -> impl Iterator<Item = (Privileges, String)> {
    let all = NAMES.iter().enumerate();
    let all = all.map(|(bit, name)| (1 << bit, name.to_uppercase()));
    all.filter(move |(bit, _)| privileges & bit != 0)
}

/// The privileges of a role from a grantor: grantee, grantor, privileges, and those that it may grant on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AclItem(
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) Privileges,
    pub(crate) Privileges,
);

/// A list.
pub(crate) type Acl = Vec<AclItem>;

/// The owner of an object, and its lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Access {
    pub(crate) owner: u32,
    /// Absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) acl: Option<Acl>,
    /// The lists of columns, by their attributes' numbers; a column without one has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) columns: BTreeMap<u16, Acl>,
}

impl Default for Access {
    fn default() -> Access {
        Access::of(USER_OID)
    }
}

impl Access {
    /// That of an object which this role has made.
    pub(crate) fn of(owner: u32) -> Access {
        Access {
            owner,
            acl: None,
            columns: BTreeMap::new(),
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Access::default()
    }

    /// The same with another owner: what the old one had and gave is the new one's.
    pub(crate) fn given_to(&self, owner: u32) -> Access {
        let moved = |acl: &Acl| changed_owner(acl, self.owner, owner);
        Access {
            owner,
            acl: self.acl.as_ref().map(moved),
            columns: self
                .columns
                .iter()
                .map(|(column, acl)| (*column, moved(acl)))
                .collect(),
        }
    }

    /// The list, of an object of this kind.
    pub(crate) fn acl(&self, kind: Kind) -> Acl {
        self.acl.clone().unwrap_or_else(|| default_acl(kind, self.owner))
    }
}

/// The kinds of objects that have lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Table,
    Column,
    Sequence,
    Schema,
    Database,
}

impl Kind {
    /// Its letter in `pg_default_acl`.
    pub(crate) fn letter(self) -> char {
        match self {
            Kind::Table | Kind::Column => 'r',
            Kind::Sequence => 'S',
            Kind::Schema => 'n',
            Kind::Database => 'd',
        }
    }

    /// All privileges that there are on such an object.
    pub(crate) fn all(self) -> Privileges {
        match self {
            Kind::Table => OF_TABLES,
            Kind::Column => OF_COLUMNS,
            Kind::Sequence => OF_SEQUENCES,
            Kind::Schema => OF_SCHEMAS,
            Kind::Database => OF_DATABASES,
        }
    }
}

/// The list of an object that has none of its own.
pub(crate) fn default_acl(kind: Kind, owner: u32) -> Acl {
    let of_public = match kind {
        Kind::Database => TEMPORARY | CONNECT,
        _ => 0,
    };
    let of_owner = match kind {
        Kind::Column => 0,
        other => other.all(),
    };
    let public = (of_public != 0).then_some(AclItem(PUBLIC, owner, of_public, 0));
    let own = (of_owner != 0).then_some(AclItem(owner, owner, of_owner, 0));
    public.into_iter().chain(own).collect()
}

/// A list in which a new owner stands for the old one; items of one grantee and grantor are one.
fn changed_owner(acl: &Acl, old: u32, new: u32) -> Acl {
    let name = |role: u32| if role == old { new } else { role };
    let mut changed: Acl = Vec::with_capacity(acl.len());
    for AclItem(grantee, grantor, privileges, options) in acl {
        let (grantee, grantor) = (name(*grantee), name(*grantor));
        match changed
            .iter_mut()
            .find(|item| (item.0, item.1) == (grantee, grantor))
        {
            Some(same) => (same.2, same.3) = (same.2 | privileges, same.3 | options),
            None => changed.push(AclItem(grantee, grantor, *privileges, *options)),
        }
    }
    changed
}

/// The letters of an item's privileges; a star behind those that may be granted on.
fn letters(item: &AclItem) -> String {
    let mut text = String::new();
    for (bit, letter) in LETTERS.iter().enumerate() {
        if item.2 & 1 << bit != 0 {
            text.push(char::from(*letter));
        }
        if item.3 & 1 << bit != 0 {
            text.push('*');
        }
    }
    text
}

/// An item as `aclitem` shows it.
pub(crate) fn shown(item: &AclItem, name: impl Fn(u32) -> String) -> String {
    let role = |oid: u32| match oid {
        PUBLIC => String::new(),
        oid => quote_identifier(&name(oid)),
    };
    format!("{}={}/{}", role(item.0), letters(item), role(item.1))
}

/// 42501
pub(crate) fn denied(message: impl Into<String>) -> EngineError {
    EngineError::new(SqlState::from_code("42501"), message.into())
}

/// The privileges that a role has by a list, of those `wanted`; `roles`: those whose privileges it has.
pub(crate) fn held(
    acl: &[AclItem],
    roles: &BTreeSet<u32>,
    wanted: Privileges,
    with_grant_option: bool,
) -> Privileges {
    let own = acl
        .iter()
        .filter(|item| item.0 == PUBLIC || roles.contains(&item.0));
    let bits = own.map(|item| if with_grant_option { item.3 } else { item.2 });
    bits.fold(0, |all, bits| all | bits) & wanted
}

/// The objects of a list of ALTER DEFAULT PRIVILEGES: who makes an object, in which schema (0: in any), of which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DefaultAclKey {
    pub(crate) role: u32,
    pub(crate) schema: u32,
    /// The letter of `pg_default_acl.defaclobjtype`.
    pub(crate) kind: char,
}

/// The lists of ALTER DEFAULT PRIVILEGES, with the places of their rows. One for any schema has all that such an object
/// begins with; one for a schema has what is added there.
pub(crate) type DefaultAcls = BTreeMap<DefaultAclKey, (Acl, Option<Tid>)>;

impl CatalogState {
    /// The list that a new object has, if it is not the usual one of its kind.
    pub(crate) fn acl_of_new(&self, kind: Kind, owner: u32, schema: u32) -> Option<Acl> {
        let of = |schema: u32| {
            let key = DefaultAclKey {
                role: owner,
                schema,
                kind: kind.letter(),
            };
            self.default_acls.get(&key).map(|(acl, _)| acl.clone())
        };
        let usual = default_acl(kind, owner);
        let mut acl = of(0).unwrap_or_else(|| usual.clone());
        for item in of(schema).filter(|_| schema != 0).into_iter().flatten() {
            match acl
                .iter_mut()
                .find(|known| (known.0, known.1) == (item.0, item.1))
            {
                Some(known) => (known.2, known.3) = (known.2 | item.2, known.3 | item.3),
                None => acl.push(item),
            }
        }
        acl.sort_by_key(|item| (item.0, item.1));
        (acl != usual).then_some(acl)
    }

    /// The lists of ALTER DEFAULT PRIVILEGES.
    pub(crate) fn all_default_acls(&self) -> Vec<(DefaultAclKey, Acl)> {
        let lists = self.default_acls.iter();
        lists.map(|(key, (acl, _))| (*key, acl.clone())).collect()
    }

    /// A list of ALTER DEFAULT PRIVILEGES, with the place of its row.
    pub(crate) fn default_acl_for(&self, key: &DefaultAclKey) -> Option<&(Acl, Option<Tid>)> {
        self.default_acls.get(key)
    }

    /// Adds or replaces a list of ALTER DEFAULT PRIVILEGES.
    pub(crate) fn put_default_acl(&mut self, key: DefaultAclKey, acl: Acl, tid: Option<Tid>) {
        Arc::make_mut(&mut self.default_acls).insert(key, (acl, tid));
    }

    /// Takes a list of ALTER DEFAULT PRIVILEGES out.
    pub(crate) fn remove_default_acl(&mut self, key: &DefaultAclKey) {
        Arc::make_mut(&mut self.default_acls).remove(key);
    }

    /// The owner and the list of an object of this kind; `None` if there is none. `PUBLIC` owns nothing.
    pub(crate) fn access(&self, kind: Kind, oid: u32) -> Option<Arc<Access>> {
        match kind {
            Kind::Table | Kind::Column | Kind::Sequence => {
                self.table(oid).map(|entry| Arc::clone(&entry.access))
            }
            Kind::Schema => self.schema_entry(oid).map(|entry| Arc::clone(&entry.access)),
            Kind::Database => Some(self.database_access()),
        }
    }

    /// The owner of the database, and who may do what with it.
    pub(crate) fn database_access(&self) -> Arc<Access> {
        Arc::clone(&self.database.0)
    }

    /// The place of the database's row.
    pub(crate) fn database_row(&self) -> Option<Tid> {
        self.database.1
    }

    /// Replaces the database's access.
    pub(crate) fn put_database(&mut self, access: Arc<Access>, tid: Option<Tid>) {
        self.database = (access, tid);
    }

    /// The privileges that a role has on an object, of those `wanted` (rules 1 and 2).
    pub(crate) fn privileges(
        &self,
        role: u32,
        kind: Kind,
        oid: u32,
        wanted: Privileges,
        with_grant_option: bool,
    ) -> Privileges {
        if self.roles().is_superuser(role) {
            return wanted;
        }
        let Some(access) = self.access(kind, oid) else {
            return self.privileges_on_system(kind, oid, wanted, with_grant_option);
        };
        let roles = match role {
            PUBLIC => BTreeSet::new(),
            role => self.inherited_roles(role),
        };
        if kind == Kind::Schema
            && self
                .schema_entry(oid)
                .is_some_and(|entry| entry.schema.is_temporary())
        {
            // The session's own: others do not see it.
            return wanted;
        }
        let mut has = held(&access.acl(kind), &roles, wanted, with_grant_option);
        if with_grant_option && roles.contains(&access.owner) {
            has = wanted;
        }
        if !with_grant_option {
            has |= by_predefined_role(kind, &roles) & wanted;
        }
        has
    }

    /// The same on what the system has: all may read what is not secret.
    fn privileges_on_system(
        &self,
        kind: Kind,
        oid: u32,
        wanted: Privileges,
        with_grant_option: bool,
    ) -> Privileges {
        match kind {
            _ if with_grant_option => 0,
            Kind::Schema => wanted & USAGE,
            Kind::Table | Kind::Sequence if !SECRET_TABLES.contains(&oid) => wanted & SELECT,
            _ => 0,
        }
    }

    /// 42501 unless a role has these privileges on a schema, or that is its session's own.
    pub(crate) fn require_on_schema(&self, role: u32, schema: &SchemaRef, wanted: Privileges) -> Result<()> {
        match schema.is_temporary() || self.may(role, Kind::Schema, schema.oid, wanted) {
            true => Ok(()),
            false => Err(denied(format!("permission denied for schema {}", schema.name))),
        }
    }

    /// True if a role may read each of these columns of a table.
    pub(crate) fn may_read_columns(&self, role: u32, table: &TableDef, columns: &[u16]) -> bool {
        if self.may(role, Kind::Table, table.oid, SELECT) {
            return true;
        }
        let Some(entry) = self.table(table.oid) else {
            return false;
        };
        let roles = self.inherited_roles(role);
        columns.iter().all(|column| {
            let acl = entry.access.columns.get(&table.attribute_number(*column));
            acl.is_some_and(|acl| held(acl, &roles, SELECT, false) != 0)
        })
    }

    /// True if a role has all of these privileges on an object.
    pub(crate) fn may(&self, role: u32, kind: Kind, oid: u32, wanted: Privileges) -> bool {
        self.privileges(role, kind, oid, wanted, false) == wanted
    }
}

/// `pg_authid` and `pg_shadow`, which have verifiers of passwords, `pg_file_settings` and
/// `pg_hba_file_rules`.
const SECRET_TABLES: [u32; 4] = [1_260, 12_005, 12_110, 12_114];

/// The privileges that predefined roles give on all objects of a kind.
fn by_predefined_role(kind: Kind, roles: &BTreeSet<u32>) -> Privileges {
    let (reads, writes) = (roles.contains(&READ_ALL_DATA), roles.contains(&WRITE_ALL_DATA));
    match kind {
        Kind::Schema if reads || writes => USAGE,
        Kind::Table | Kind::Sequence => {
            (if reads { SELECT } else { 0 }) | (if writes { INSERT | UPDATE | DELETE } else { 0 })
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_shown_as_postgresql_shows_them() {
        let name = |oid: u32| {
            if oid == 10 {
                "postgres".to_owned()
            } else {
                "Al b".to_owned()
            }
        };
        let item = |item| shown(&item, name);
        assert_eq!(item(AclItem(10, 10, OF_TABLES, 0)), "postgres=arwdDxt/postgres");
        assert_eq!(item(AclItem(PUBLIC, 10, SELECT, 0)), "=r/postgres");
        assert_eq!(
            item(AclItem(11, 10, SELECT | INSERT, SELECT)),
            "\"Al b\"=ar*/postgres"
        );
        assert_eq!(default_acl(Kind::Column, 10), []);
        let of_database: Vec<String> = default_acl(Kind::Database, 10).into_iter().map(item).collect();
        assert_eq!(of_database, ["=Tc/postgres", "postgres=CTc/postgres"]);
    }
}
