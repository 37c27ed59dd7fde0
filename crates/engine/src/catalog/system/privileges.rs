//! The privilege views of `information_schema`: who may do what with tables, columns, sequences, domains, collations.
//!
//! A row is a privilege of one item of a list, or of the list that stands for none. A role sees the rows whose grantor or
//! grantee it is, or has the privileges of, and those of all; the views that begin with `role_` leave the last out.

use super::information_schema::{each_table, yes_or_no};
use super::rows::{NULL, Rows, text};
use super::server::{USER_OID, collation_names};
use super::{Schema, Sources};
use crate::catalog::access::{
    self, Access, Acl, AclItem, Kind, OF_COLUMNS, OF_TABLES, PUBLIC, Privileges, USAGE,
};
use clearway_sql::TableDef;
use clearway_sql::value::Value;

/// A privilege that a role has from another.
struct Granted {
    grantor: String,
    grantee: String,
    name: String,
    is_grantable: bool,
}

/// The rows that a view shows: those of all included, or of the role's own only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    OfRole,
}

/// The privileges among `wanted` that a list gives and the role sees.
fn granted(
    sources: &Sources<'_>,
    (acl, owner): (&Acl, u32),
    wanted: Privileges,
    shown: Shown,
) -> Vec<Granted> {
    let state = sources.catalog;
    let role = sources.identity.current;
    let has = |of: u32| of != PUBLIC && state.has_privileges_of(role, of);
    let mut found = Vec::new();
    for AclItem(grantee, grantor, privileges, options) in acl {
        let is_seen = has(*grantor) || has(*grantee) || *grantee == PUBLIC && shown == Shown::All;
        if !is_seen {
            continue;
        }
        for (bit, name) in access::names_of(privileges & wanted) {
            let is_owner = *grantee != PUBLIC && state.has_privileges_of(*grantee, owner);
            found.push(Granted {
                grantor: sources.role_name(*grantor),
                grantee: match *grantee {
                    PUBLIC => "PUBLIC".to_owned(),
                    grantee => sources.role_name(grantee),
                },
                name,
                is_grantable: options & bit != 0 || is_owner,
            });
        }
    }
    found
}

/// The list of an object of this kind, written out.
fn list_of(access: &Access, kind: Kind) -> Acl {
    access
        .acl
        .clone()
        .unwrap_or_else(|| access::default_acl(kind, access.owner))
}

/// Calls `work` for each table and view, with its owner and lists.
fn each_access(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, &Access)) {
    let of_system = Access::of(USER_OID);
    each_table(sources, |table, _| match sources.catalog.table(table.oid) {
        Some(entry) => work(table, &entry.access),
        None => work(table, &of_system),
    });
}

fn push_tables(sources: &Sources<'_>, rows: &mut Rows, shown: Shown) {
    each_access(sources, |table, access| {
        let acl = list_of(access, Kind::Table);
        for one in granted(sources, (&acl, access.owner), OF_TABLES, shown) {
            rows.push([
                ("grantor", text(&one.grantor)),
                ("grantee", text(&one.grantee)),
                ("table_catalog", text(sources.database)),
                ("table_schema", text(&table.schema.name)),
                ("table_name", text(&table.name)),
                ("privilege_type", text(&one.name)),
                ("is_grantable", yes_or_no(one.is_grantable)),
                ("with_hierarchy", yes_or_no(one.name == "SELECT")),
            ]);
        }
    });
}

/// `table_privileges`
pub(super) fn of_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_tables(sources, rows, Shown::All);
}

/// `role_table_grants`
pub(super) fn of_tables_of_roles(sources: &Sources<'_>, rows: &mut Rows) {
    push_tables(sources, rows, Shown::OfRole);
}

fn push_columns(sources: &Sources<'_>, rows: &mut Rows, shown: Shown) {
    each_access(sources, |table, access| {
        let of_table = list_of(access, Kind::Table);
        for (place, column) in table.columns.iter().enumerate() {
            let number = table.attribute_number(place as u16);
            let own = access.columns.get(&number).cloned().unwrap_or_default();
            let mut found = granted(sources, (&of_table, access.owner), OF_COLUMNS, shown);
            for one in granted(sources, (&own, access.owner), OF_COLUMNS, shown) {
                // What the table's list says already is one row.
                let is_known = |known: &Granted| {
                    (&known.grantor, &known.grantee, &known.name, known.is_grantable)
                        == (&one.grantor, &one.grantee, &one.name, one.is_grantable)
                };
                if !found.iter().any(is_known) {
                    found.push(one);
                }
            }
            for one in found {
                rows.push([
                    ("grantor", text(&one.grantor)),
                    ("grantee", text(&one.grantee)),
                    ("table_catalog", text(sources.database)),
                    ("table_schema", text(&table.schema.name)),
                    ("table_name", text(&table.name)),
                    ("column_name", text(&column.name)),
                    ("privilege_type", text(&one.name)),
                    ("is_grantable", yes_or_no(one.is_grantable)),
                ]);
            }
        }
    });
}

/// `column_privileges`
pub(super) fn of_columns(sources: &Sources<'_>, rows: &mut Rows) {
    push_columns(sources, rows, Shown::All);
}

/// `role_column_grants`
pub(super) fn of_columns_of_roles(sources: &Sources<'_>, rows: &mut Rows) {
    push_columns(sources, rows, Shown::OfRole);
}

/// An object whose use is a privilege: its schema, its name, what it is called.
type Used<'a> = (Value, &'a str, &'static str);

fn push_usage(
    sources: &Sources<'_>,
    rows: &mut Rows,
    (schema, name, kind): Used<'_>,
    list: (&Acl, u32),
    shown: Shown,
) {
    for one in granted(sources, list, USAGE, shown) {
        rows.push([
            ("grantor", text(&one.grantor)),
            ("grantee", text(&one.grantee)),
            ("object_catalog", text(sources.database)),
            ("object_schema", schema.clone()),
            ("object_name", text(name)),
            ("object_type", text(kind)),
            ("privilege_type", text(&one.name)),
            ("is_grantable", yes_or_no(one.is_grantable)),
        ]);
    }
}

fn push_used(sources: &Sources<'_>, rows: &mut Rows, shown: Shown) {
    if shown == Shown::All {
        // A collation has no list: all may use it.
        let of_all = vec![AclItem(PUBLIC, USER_OID, USAGE, 0)];
        for name in collation_names() {
            let schema = text(Schema::PgCatalog.name());
            push_usage(
                sources,
                rows,
                (schema, name, "COLLATION"),
                (&of_all, USER_OID),
                shown,
            );
        }
    }
    for found in sources.catalog.user_types() {
        if found.domain().is_some() {
            let owner = found.owner;
            let acl = vec![AclItem(PUBLIC, owner, USAGE, 0), AclItem(owner, owner, USAGE, 0)];
            let schema = sources.catalog.schema_of_number(found.schema_oid);
            let schema = schema.map_or(NULL, |schema| text(&schema.name));
            let name = found.data_type().internal_name();
            push_usage(sources, rows, (schema, &name, "DOMAIN"), (&acl, owner), shown);
        }
    }
    for entry in sources.catalog.sequences() {
        let acl = list_of(&entry.access, Kind::Sequence);
        let schema = text(&entry.def.schema.name);
        let used = (schema, entry.def.name.as_str(), "SEQUENCE");
        push_usage(sources, rows, used, (&acl, entry.access.owner), shown);
    }
}

/// `usage_privileges`
pub(super) fn of_use(sources: &Sources<'_>, rows: &mut Rows) {
    push_used(sources, rows, Shown::All);
}

/// `role_usage_grants`
pub(super) fn of_use_of_roles(sources: &Sources<'_>, rows: &mut Rows) {
    push_used(sources, rows, Shown::OfRole);
}
