//! The tables of the system: `pg_catalog` and `information_schema`, over what exists.
//!
//! A system table has no storage. Its shape is that of PostgreSQL 15 (`shape`, `shapes`), and its rows are made when a
//! statement reads it, from the catalog, the settings, and the state of the server. The system tables are among their own
//! rows. Numbers of built-in objects are PostgreSQL's; a table, an index and a sequence have the numbers that the catalog
//! has for them.
//!
//! | module | tables |
//! | --- | --- |
//! | `relations` | `pg_class`, `pg_tables`, `pg_views`, `pg_indexes` |
//! | `columns` | `pg_attribute`, `pg_attrdef` |
//! | `constraints` | `pg_index`, `pg_constraint`, `pg_depend` |
//! | `cursors` | `pg_cursors` |
//! | `locks` | `pg_locks` |
//! | `login_rules` | `pg_hba_file_rules` |
//! | `prepared_statements` | `pg_prepared_statements` |
//! | `sequences` | `pg_sequence`, `pg_sequences`, and each sequence read like a table |
//! | `triggers` | `pg_trigger` |
//! | `types`, `functions`, `aggregates`, `operators`, `operator_classes` | `pg_type`; `pg_proc`; `pg_aggregate`; `pg_operator`, `pg_cast`; `pg_am`, `pg_opclass`, `pg_opfamily` |
//! | `statements` | `pg_stat_statements`, and the extensions |
//! | `server` | `pg_database`, `pg_namespace`, `pg_tablespace`, languages, collations |
//! | `privileges` | the privilege views of the SQL standard |
//! | `roles` | `pg_authid`, `pg_auth_members` and the views over them |
//! | `progress` | `pg_stat_progress_…` |
//! | `settings`, `file_settings` | `pg_settings`, `pg_file_settings` |
//! | `activity`, `replication`, `statistics`, `internals` | sessions; followers, slots, a standby; counts; latches and memory |
//! | `information_schema`, `information_columns` | the views of the SQL standard |
//! | `definition_text` | definitions as SQL text |
//! | `dependency` | rows of `pg_depend` |
//! | `descriptions` | comments |
//! | `zones` | `pg_timezone_names`, `pg_timezone_abbrevs` |
//! | `views` | `pg_rewrite`, the use of tables by views |
//!
//! A table of [`SHAPES`] beside `none` is about what there is nothing of: it is empty, which is the truth. A table that
//! could only be wrong is not there.

mod activity;
mod aggregates;
mod column_statistics;
mod columns;
mod constraints;
mod cursors;
pub(crate) mod definition_text;
mod dependency;
mod descriptions;
mod file_settings;
pub(crate) mod functions;
mod information_columns;
mod information_schema;
mod internals;
mod locks;
mod login_rules;
mod operator_classes;
pub(crate) mod operators;
mod prepared_statements;
mod privileges;
mod progress;
mod relations;
mod replication;
mod roles;
mod rows;
mod sequences;
pub(crate) mod server;
mod settings;
pub(crate) mod shape;
mod shapes;
mod statements;
mod statistics;
mod triggers;
pub(crate) mod types;
mod views;
mod zones;

pub(crate) use cursors::ListedCursor;
pub(crate) use locks::{EngineLock, LockedObject};
pub(crate) use prepared_statements::ListedStatement;
pub(crate) use views::rule_oid;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use clearway_storage::retention::LogRetention;
use clearway_storage::wal::LogTotals;
use clearway_storage::{Lsn, Storage};

use crate::activity::{BackgroundActivity, CommandShown, SessionActivity};
use crate::catalog::CatalogState;
use crate::catalog::access::{self, Acl};
use crate::catalog::role::Role;
use crate::identity::Identity;
use crate::in_force::InForce;
use crate::login_rule::LoginRuleLine;
use crate::replication_status::{ConflictCounts, WalReceiverStatus};
use crate::server_counts::{DatabaseCounts, Since, WriterCounts};
use crate::settings::Settings;
use crate::statement_statistics::StatementStatistics;
use clearway_sql::function::USER_OID;
use clearway_sql::value::{DataType, Value};
use clearway_sql::{CatalogView, TableDef};
use rows::Rows;
use shape::{Schema, Shape};
use shapes::{catalogs, information_schema as standard, views as system_views};

/// The sources of the rows.
pub(crate) struct Sources<'a> {
    pub(crate) activity: &'a dyn Fn() -> Vec<SessionActivity>,
    pub(crate) background: &'a dyn Fn() -> Vec<BackgroundActivity>,
    pub(crate) retention: &'a LogRetention,
    pub(crate) flushed: &'a dyn Fn() -> Lsn,
    pub(crate) receiver: &'a dyn Fn() -> Option<WalReceiverStatus>,
    pub(crate) login_rules: &'a dyn Fn() -> Vec<LoginRuleLine>,
    pub(crate) conflicts: &'a dyn Fn() -> ConflictCounts,
    pub(crate) catalog: &'a CatalogState,
    /// The catalog along the session's search path.
    pub(crate) names: &'a dyn CatalogView,
    pub(crate) storage: &'a Storage,
    pub(crate) settings: &'a Settings,
    pub(crate) in_force: &'a dyn Fn() -> Arc<InForce>,
    pub(crate) cursors: &'a dyn Fn() -> Vec<ListedCursor>,
    pub(crate) locks: &'a dyn Fn() -> Vec<EngineLock>,
    pub(crate) database_counts: &'a dyn Fn() -> Since<DatabaseCounts>,
    pub(crate) writer_counts: &'a dyn Fn() -> Since<WriterCounts>,
    pub(crate) log_counts: &'a dyn Fn() -> Since<LogTotals>,
    pub(crate) archiver_reset_us: &'a dyn Fn() -> i64,
    pub(crate) statements: &'a StatementStatistics,
    pub(crate) commands: &'a dyn Fn() -> Vec<(u32, CommandShown)>,
    pub(crate) prepared: &'a dyn Fn() -> Vec<ListedStatement>,
    pub(crate) database: &'a str,
    /// The name that the client has logged in with.
    pub(crate) login: &'a str,
    pub(crate) identity: &'a Identity,
}

impl Sources<'_> {
    /// The name of a role.
    pub(crate) fn role_name(&self, oid: u32) -> String {
        let name = self.catalog.role_name(oid, self.login);
        name.map_or_else(|| format!("unknown (OID={oid})"), str::to_owned)
    }

    /// The name of a relation's owner.
    fn owner_name(&self, oid: u32) -> String {
        self.role_name(self.owner_of(oid))
    }

    /// The owner of a relation; of those of the system the first superuser.
    fn owner_of(&self, oid: u32) -> u32 {
        let entry = self.catalog.table(oid).or_else(|| self.catalog.owner(oid));
        match (entry, self.catalog.type_entry(oid)) {
            (Some(entry), _) => entry.access.owner,
            (None, Some(composite)) => composite.def.owner,
            (None, None) => USER_OID,
        }
    }

    /// The owner of a schema.
    fn schema_owner(&self, oid: u32) -> u32 {
        let entry = self.catalog.schema_entry(oid);
        entry.map_or(USER_OID, |entry| entry.access.owner)
    }

    /// A list of privileges; NULL for none.
    fn acl(&self, acl: Option<&Acl>) -> Value {
        let Some(acl) = acl else { return Value::Null };
        let items = acl.iter();
        let items = items.map(|item| Value::text(access::shown(item, |oid| self.role_name(oid))));
        rows::array(DataType::array_of(DataType::AclItem), items)
    }

    /// All roles: the first superuser too, where it has no row.
    fn role_numbers(&self) -> Vec<u32> {
        let roles = self.catalog.roles();
        let unnamed = roles.is_open().then_some(USER_OID);
        unnamed
            .into_iter()
            .chain(roles.all().map(|role| role.oid))
            .collect()
    }

    /// A role; the first superuser too, where it has no row.
    fn role(&self, oid: u32) -> Option<Role> {
        let roles = self.catalog.roles();
        match roles.get(oid) {
            Some(entry) => Some(entry.role.clone()),
            None => (oid == USER_OID && roles.is_open()).then(|| Role::first(self.login)),
        }
    }

    /// True if rows of a relation can be changed: it is a table, or a view that passes changes on.
    pub(crate) fn is_changeable(&self, table: &TableDef) -> bool {
        self.changeable_columns(table).is_some()
    }

    /// True for each column of a relation that can be given a value; `None` if its rows cannot be changed.
    pub(crate) fn changeable_columns(&self, table: &TableDef) -> Option<Vec<bool>> {
        clearway_sql::changeable_columns(table, self.names)
    }
}

/// Makes the rows of a table.
type MakeRows = fn(&Sources<'_>, &mut Rows);

/// There is nothing that the table could tell of.
fn none(_: &Sources<'_>, _: &mut Rows) {}

/// The shapes of the system tables, and where their rows come from.
static SHAPES: &[(&Shape, MakeRows)] = &[
    (&catalogs::PG_AGGREGATE, aggregates::aggregates),
    (&catalogs::PG_AM, operator_classes::access_methods),
    (&catalogs::PG_AMOP, operator_classes::family_operators),
    // No support function of an access method can be called.
    (&catalogs::PG_AMPROC, none),
    (&catalogs::PG_ATTRDEF, columns::defaults),
    (&catalogs::PG_ATTRIBUTE, columns::columns),
    (&catalogs::PG_AUTH_MEMBERS, roles::members),
    (&catalogs::PG_AUTHID, roles::roles),
    (&catalogs::PG_CAST, operators::casts),
    (&catalogs::PG_CLASS, relations::classes),
    (&catalogs::PG_COLLATION, server::collations),
    (&catalogs::PG_CONSTRAINT, constraints::constraints),
    (&catalogs::PG_CONVERSION, none),
    (&catalogs::PG_DATABASE, server::databases),
    (&catalogs::PG_DB_ROLE_SETTING, roles::settings),
    (&catalogs::PG_DEFAULT_ACL, roles::default_acls),
    (&catalogs::PG_DEPEND, constraints::dependencies),
    (&catalogs::PG_DESCRIPTION, descriptions::descriptions),
    (&catalogs::PG_ENUM, types::labels),
    (&catalogs::PG_EVENT_TRIGGER, none),
    (&catalogs::PG_EXTENSION, statements::extensions),
    (&catalogs::PG_FOREIGN_DATA_WRAPPER, none),
    (&catalogs::PG_FOREIGN_SERVER, none),
    (&catalogs::PG_FOREIGN_TABLE, none),
    (&catalogs::PG_INDEX, constraints::indexes),
    (&catalogs::PG_INHERITS, none),
    (&catalogs::PG_INIT_PRIVS, none),
    (&catalogs::PG_LANGUAGE, server::languages),
    (&catalogs::PG_LARGEOBJECT_METADATA, none),
    (&catalogs::PG_NAMESPACE, server::schemas),
    (&catalogs::PG_OPCLASS, operator_classes::operator_classes),
    (&catalogs::PG_OPERATOR, operators::operators),
    (&catalogs::PG_OPFAMILY, operator_classes::operator_families),
    (&catalogs::PG_PARAMETER_ACL, none),
    (&catalogs::PG_PARTITIONED_TABLE, none),
    (&catalogs::PG_POLICY, none),
    (&catalogs::PG_PROC, functions::functions),
    (&catalogs::PG_PUBLICATION, none),
    (&catalogs::PG_PUBLICATION_NAMESPACE, none),
    (&catalogs::PG_PUBLICATION_REL, none),
    (&catalogs::PG_RANGE, none),
    (&catalogs::PG_REPLICATION_ORIGIN, none),
    (&catalogs::PG_REWRITE, views::rules),
    (&catalogs::PG_SECLABEL, none),
    (&catalogs::PG_SEQUENCE, sequences::sequences),
    (&catalogs::PG_SHDEPEND, none),
    (&catalogs::PG_SHDESCRIPTION, descriptions::shared_descriptions),
    (&catalogs::PG_SHSECLABEL, none),
    (&catalogs::PG_STATISTIC_EXT, none),
    (&catalogs::PG_SUBSCRIPTION, none),
    (&catalogs::PG_SUBSCRIPTION_REL, none),
    (&catalogs::PG_TABLESPACE, server::tablespaces),
    (&catalogs::PG_TRANSFORM, none),
    (&catalogs::PG_TRIGGER, triggers::triggers),
    (&catalogs::PG_TS_CONFIG, none),
    (&catalogs::PG_TS_CONFIG_MAP, none),
    (&catalogs::PG_TS_DICT, none),
    (&catalogs::PG_TS_PARSER, none),
    (&catalogs::PG_TS_TEMPLATE, none),
    (&catalogs::PG_TYPE, types::types),
    (&catalogs::PG_USER_MAPPING, none),
    (
        &system_views::PG_AVAILABLE_EXTENSION_VERSIONS,
        statements::available_versions,
    ),
    (&system_views::PG_AVAILABLE_EXTENSIONS, statements::available),
    (&system_views::PG_CURSORS, cursors::cursors),
    (&system_views::PG_FILE_SETTINGS, file_settings::settings),
    (&system_views::PG_GROUP, roles::groups),
    (&system_views::PG_INDEXES, relations::indexes),
    (&system_views::PG_LOCKS, locks::locks),
    (&system_views::PG_HBA_FILE_RULES, login_rules::lines),
    (&system_views::PG_MATVIEWS, none),
    (&system_views::PG_POLICIES, none),
    (
        &system_views::PG_PREPARED_STATEMENTS,
        prepared_statements::prepared_statements,
    ),
    (&system_views::PG_PREPARED_XACTS, none),
    (&system_views::PG_PUBLICATION_TABLES, none),
    (&system_views::PG_REPLICATION_ORIGIN_STATUS, none),
    (&system_views::PG_REPLICATION_SLOTS, replication::slots),
    (&system_views::PG_ROLES, roles::roles_view),
    (&system_views::PG_RULES, none),
    (&system_views::PG_SECLABELS, none),
    (&system_views::PG_SEQUENCES, sequences::sequences_view),
    (&system_views::PG_SETTINGS, settings::settings),
    (&system_views::PG_SHADOW, roles::shadow),
    (&system_views::PG_STAT_ACTIVITY, activity::activity),
    (&system_views::PG_STAT_ALL_INDEXES, statistics::of_indexes),
    (&system_views::PG_STAT_ALL_TABLES, statistics::of_all_tables),
    (&system_views::PG_STAT_ARCHIVER, statistics::of_archiver),
    (&system_views::PG_STAT_BGWRITER, statistics::of_background_writer),
    (&system_views::PG_STAT_DATABASE, statistics::of_database),
    (&system_views::PG_STAT_DATABASE_CONFLICTS, replication::conflicts),
    (&system_views::PG_STAT_PROGRESS_COPY, progress::of_copies),
    (&system_views::PG_STAT_PROGRESS_CREATE_INDEX, progress::of_indexes),
    (&system_views::PG_STAT_PROGRESS_VACUUM, progress::of_vacuums),
    (&system_views::PG_STAT_REPLICATION, replication::followers),
    (&system_views::PG_STAT_REPLICATION_SLOTS, none),
    (&system_views::PG_STAT_SSL, activity::ssl),
    (&system_views::PG_STAT_STATEMENTS, statements::statements),
    (&system_views::PG_STAT_STATEMENTS_INFO, statements::info),
    (&system_views::PG_STAT_SUBSCRIPTION, none),
    (&system_views::PG_STAT_SUBSCRIPTION_STATS, none),
    (&system_views::PG_STAT_SYS_INDEXES, none),
    (&system_views::PG_STAT_SYS_TABLES, statistics::of_system_tables),
    (&system_views::PG_STAT_USER_FUNCTIONS, none),
    (&system_views::PG_STAT_USER_INDEXES, statistics::of_indexes),
    (&system_views::PG_STAT_USER_TABLES, statistics::of_user_tables),
    (&system_views::PG_STAT_WAL, statistics::of_log),
    (&system_views::PG_STAT_WAL_RECEIVER, replication::receiver),
    (&system_views::PG_STATIO_ALL_INDEXES, statistics::pages_of_indexes),
    (
        &system_views::PG_STATIO_ALL_SEQUENCES,
        statistics::pages_of_sequences,
    ),
    (
        &system_views::PG_STATIO_ALL_TABLES,
        statistics::pages_of_all_tables,
    ),
    (&system_views::PG_STATIO_SYS_INDEXES, none),
    (&system_views::PG_STATIO_SYS_SEQUENCES, none),
    (
        &system_views::PG_STATIO_SYS_TABLES,
        statistics::pages_of_system_tables,
    ),
    (
        &system_views::PG_STATIO_USER_INDEXES,
        statistics::pages_of_indexes,
    ),
    (
        &system_views::PG_STATIO_USER_SEQUENCES,
        statistics::pages_of_sequences,
    ),
    (
        &system_views::PG_STATIO_USER_TABLES,
        statistics::pages_of_user_tables,
    ),
    (&system_views::PG_STATS, column_statistics::stats),
    (&system_views::PG_STATS_EXT, none),
    (&system_views::PG_TABLES, relations::tables),
    (&system_views::PG_TIMEZONE_ABBREVS, zones::abbreviations),
    (&system_views::PG_TIMEZONE_NAMES, zones::names),
    (&system_views::PG_USER, roles::users),
    (&system_views::PG_USER_MAPPINGS, none),
    (&system_views::PG_VIEWS, relations::views),
    (&system_views::CLEARWAY_LATCHES, internals::latches),
    (&system_views::CLEARWAY_MEMORY, internals::memory),
    (&standard::APPLICABLE_ROLES, none),
    (&standard::CHARACTER_SETS, information_schema::character_sets),
    (
        &standard::CHECK_CONSTRAINTS,
        information_schema::check_constraints,
    ),
    (&standard::COLUMN_PRIVILEGES, privileges::of_columns),
    (&standard::COLUMNS, information_columns::columns),
    (
        &standard::CONSTRAINT_COLUMN_USAGE,
        information_schema::constraint_columns,
    ),
    (
        &standard::CONSTRAINT_TABLE_USAGE,
        information_schema::constraint_tables,
    ),
    (&standard::DOMAIN_CONSTRAINTS, none),
    (&standard::DOMAINS, none),
    (&standard::ELEMENT_TYPES, none),
    (&standard::ENABLED_ROLES, information_schema::enabled_roles),
    (&standard::FOREIGN_TABLES, none),
    (
        &standard::INFORMATION_SCHEMA_CATALOG_NAME,
        information_schema::catalog_name,
    ),
    (&standard::KEY_COLUMN_USAGE, information_schema::key_columns),
    (&standard::REFERENTIAL_CONSTRAINTS, information_schema::references),
    (&standard::ROLE_COLUMN_GRANTS, privileges::of_columns_of_roles),
    (&standard::ROLE_TABLE_GRANTS, privileges::of_tables_of_roles),
    (&standard::ROLE_USAGE_GRANTS, privileges::of_use_of_roles),
    (&standard::ROUTINES, none),
    (&standard::SCHEMATA, information_schema::schemata),
    (&standard::SEQUENCES, information_schema::sequences_view),
    (
        &standard::TABLE_CONSTRAINTS,
        information_schema::table_constraints,
    ),
    (&standard::TABLE_PRIVILEGES, privileges::of_tables),
    (&standard::TABLES, information_schema::tables),
    (&standard::TRIGGERS, none),
    (&standard::USAGE_PRIVILEGES, privileges::of_use),
    (&standard::USER_DEFINED_TYPES, none),
    (&standard::VIEW_COLUMN_USAGE, views::column_usage),
    (&standard::VIEW_TABLE_USAGE, views::table_usage),
    (&standard::VIEWS, information_schema::views),
];

/// A system table.
pub(crate) struct SystemTable {
    /// Its shape in PostgreSQL.
    pub(crate) shape: &'static Shape,
    /// Its definition as statements see it.
    pub(crate) definition: Arc<TableDef>,
    make_rows: MakeRows,
}

/// The system tables.
pub(crate) static SYSTEM_TABLES: LazyLock<Vec<SystemTable>> = LazyLock::new(|| {
    let table = |(shape, make_rows): &(&'static Shape, MakeRows)| SystemTable {
        shape,
        definition: Arc::new(shape.table()),
        make_rows: *make_rows,
    };
    SHAPES.iter().map(table).collect()
});

/// The places of the system tables by name: no name is in both schemas.
static PLACES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let names = SYSTEM_TABLES.iter().map(|table| table.shape.name);
    names.enumerate().map(|(place, name)| (name, place)).collect()
});

/// The system table of this name in this schema.
pub(crate) fn lookup(schema: Schema, name: &str) -> Option<Arc<TableDef>> {
    let table = &SYSTEM_TABLES[*PLACES.get(name)?];
    (table.shape.schema == schema).then(|| Arc::clone(&table.definition))
}

/// The system table of this number.
pub(crate) fn by_oid(oid: u32) -> Option<&'static SystemTable> {
    SYSTEM_TABLES.iter().find(|table| table.shape.oid == oid)
}

/// True for a view of the system.
pub(crate) fn is_view(oid: u32) -> bool {
    by_oid(oid).is_some_and(|table| table.shape.is_view)
}

/// The rows of a system table, or of a sequence, now.
pub(crate) fn rows(table: &TableDef, sources: &Sources<'_>) -> Vec<Vec<Value>> {
    let system = PLACES
        .get(table.name.as_str())
        .map(|place| &SYSTEM_TABLES[*place]);
    let Some(system) = system.filter(|system| system.shape.oid == table.oid) else {
        return sequences::row_of_sequence(table.oid, sources);
    };
    let mut rows = Rows::of(system.shape);
    (system.make_rows)(sources, &mut rows);
    rows.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_numbers_are_unique() {
        assert_eq!(PLACES.len(), SYSTEM_TABLES.len());
        let numbers: HashSet<u32> = SYSTEM_TABLES.iter().map(|table| table.shape.oid).collect();
        assert_eq!(numbers.len(), SYSTEM_TABLES.len());
    }

    #[test]
    fn a_table_is_in_one_schema() {
        assert!(lookup(Schema::PgCatalog, "pg_class").is_some());
        assert!(lookup(Schema::Information, "pg_class").is_none());
        assert!(lookup(Schema::Information, "columns").is_some());
        assert_eq!(by_oid(1_259).unwrap().shape.name, "pg_class");
    }
}
