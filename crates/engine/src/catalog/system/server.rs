//! The things that a server has one or a few of: the database, schemas, tablespaces, languages, collations.

use super::Sources;
use super::rows::{FIRST_MULTIXACT, NULL, Rows, boolean, frozen, int4, oid, text};
use super::shape::Schema;
pub(super) use clearway_sql::function::{DATABASE_OID, USER_OID};
use clearway_sql::value::Value;

/// The number of the language of built-in functions.
pub(super) const INTERNAL_LANGUAGE_OID: u32 = 12;
/// The number of the tablespace that holds the tables.
const TABLESPACE_OID: u32 = 1_663;
/// The number of the collation of strings, and of that of names.
pub(super) const DEFAULT_COLLATION_OID: u32 = 100;
pub(super) const C_COLLATION_OID: u32 = 950;
/// The number of the collation that POSIX calls by its own name.
const POSIX_COLLATION_OID: u32 = 951;
/// The number of the encoding UTF-8.
const UTF8: i32 = 6;

/// `pg_namespace`
pub(super) fn schemas(sources: &Sources<'_>, rows: &mut Rows) {
    for schema in sources.catalog.schemas() {
        rows.push([
            ("oid", oid(schema.oid)),
            ("nspname", text(&schema.name)),
            ("nspowner", oid(sources.schema_owner(schema.oid))),
            ("nspacl", privileges(sources, schema.oid)),
        ]);
    }
}

/// The list of a schema.
fn privileges(sources: &Sources<'_>, schema: u32) -> Value {
    let entry = sources.catalog.schema_entry(schema);
    sources.acl(entry.and_then(|entry| entry.access.acl.as_ref()))
}

/// `pg_database`
pub(super) fn databases(sources: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("oid", oid(DATABASE_OID)),
        ("datname", text(sources.database)),
        ("datdba", oid(sources.catalog.database_owner())),
        ("encoding", int4(UTF8)),
        ("datlocprovider", text("c")),
        ("datistemplate", boolean(false)),
        ("datallowconn", boolean(true)),
        ("datconnlimit", int4(-1)),
        ("datfrozenxid", frozen(sources.storage)),
        ("datminmxid", FIRST_MULTIXACT),
        ("dattablespace", oid(TABLESPACE_OID)),
        ("datcollate", text("C")),
        ("datctype", text("C.UTF-8")),
        ("daticulocale", NULL),
        ("datcollversion", NULL),
        (
            "datacl",
            sources.acl(sources.catalog.database_access().acl.as_ref()),
        ),
    ]);
}

/// `pg_tablespace`
pub(super) fn tablespaces(_: &Sources<'_>, rows: &mut Rows) {
    for (number, name) in [(TABLESPACE_OID, "pg_default"), (TABLESPACE_OID + 1, "pg_global")] {
        rows.push([
            ("oid", oid(number)),
            ("spcname", text(name)),
            ("spcowner", oid(USER_OID)),
            ("spcacl", NULL),
            ("spcoptions", NULL),
        ]);
    }
}

/// `pg_language`
pub(super) fn languages(_: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("oid", oid(INTERNAL_LANGUAGE_OID)),
        ("lanname", text("internal")),
        ("lanowner", oid(USER_OID)),
        ("lanispl", boolean(false)),
        ("lanpltrusted", boolean(false)),
        ("lanplcallfoid", oid(0)),
        ("laninline", oid(0)),
        ("lanvalidator", oid(0)),
        ("lanacl", NULL),
    ]);
}

/// The collations, with their numbers.
const COLLATIONS: [(u32, &str); 3] = [
    (DEFAULT_COLLATION_OID, "default"),
    (C_COLLATION_OID, "C"),
    (POSIX_COLLATION_OID, "POSIX"),
];

/// The names of the collations.
pub(super) fn collation_names() -> impl Iterator<Item = &'static str> {
    COLLATIONS.iter().map(|(_, name)| *name)
}

/// The number of the collation of this name.
pub(crate) fn collation_named(name: &str) -> Option<u32> {
    COLLATIONS
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(oid, _)| *oid)
}

/// The name of the collation of this number.
pub(crate) fn collation_name(oid: u32) -> Option<&'static str> {
    COLLATIONS
        .iter()
        .find(|(known, _)| *known == oid)
        .map(|(_, name)| *name)
}

/// `pg_collation`: strings sort by their bytes.
pub(super) fn collations(_: &Sources<'_>, rows: &mut Rows) {
    for (number, name, provider) in [
        (DEFAULT_COLLATION_OID, "default", "d"),
        (C_COLLATION_OID, "C", "c"),
        (POSIX_COLLATION_OID, "POSIX", "c"),
    ] {
        let locale = if provider == "c" { text(name) } else { NULL };
        rows.push([
            ("oid", oid(number)),
            ("collname", text(name)),
            ("collnamespace", oid(Schema::PgCatalog.oid())),
            ("collowner", oid(USER_OID)),
            ("collprovider", text(provider)),
            ("collisdeterministic", boolean(true)),
            ("collencoding", int4(-1)),
            ("collcollate", locale.clone()),
            ("collctype", locale),
            ("colliculocale", NULL),
            ("collversion", NULL),
        ]);
    }
}
