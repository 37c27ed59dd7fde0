//! The views of the SQL standard: schemas, tables, constraints, sequences.

use super::columns::has_default;
use super::definition_text::{check_definition, default_expression};
use super::relations::view_text;
use super::rows::{NULL, Rows, int4, text};
use super::shape::Schema;
use super::types::numbers_of;
use super::{SYSTEM_TABLES, Sources, sequences};
use clearway_sql::function::{expression_shown, quote_identifier};
use clearway_sql::value::Value;
use clearway_sql::value::user_type::UserType;
use clearway_sql::{CheckDef, CheckTime, ColumnDef, ForeignKeyDef, IndexDef, TableDef};

/// A truth value as the standard writes it.
pub(super) fn yes_or_no(value: bool) -> Value {
    text(if value { "YES" } else { "NO" })
}

/// Calls `work` for each table, of users first: itself, true for a view.
pub(super) fn each_table(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, bool)) {
    for entry in sources.catalog.tables() {
        work(&entry.def, false);
    }
    for entry in sources.catalog.views() {
        work(&entry.def, true);
    }
    for table in SYSTEM_TABLES.iter() {
        work(&table.definition, table.shape.is_view);
    }
}

/// `information_schema_catalog_name`
pub(super) fn catalog_name(sources: &Sources<'_>, rows: &mut Rows) {
    rows.push([("catalog_name", text(sources.database))]);
}

/// `schemata`
pub(super) fn schemata(sources: &Sources<'_>, rows: &mut Rows) {
    for schema in sources.catalog.schemas() {
        rows.push([
            ("catalog_name", text(sources.database)),
            ("schema_name", text(&schema.name)),
            (
                "schema_owner",
                text(&sources.role_name(sources.schema_owner(schema.oid))),
            ),
            ("default_character_set_catalog", NULL),
            ("default_character_set_schema", NULL),
            ("default_character_set_name", NULL),
            ("sql_path", NULL),
        ]);
    }
}

/// `tables`
pub(super) fn tables(sources: &Sources<'_>, rows: &mut Rows) {
    each_table(sources, |table, is_view| {
        let of = table.of_type.and_then(|of| sources.catalog.type_entry(of));
        let of_type = |part: &dyn Fn(&UserType) -> Value| of.map_or(NULL, |of| part(&of.def));
        rows.push([
            ("table_catalog", text(sources.database)),
            ("table_schema", text(&table.schema.name)),
            ("table_name", text(&table.name)),
            (
                "table_type",
                text(match table.schema.is_temporary() {
                    true => "LOCAL TEMPORARY",
                    false if is_view => "VIEW",
                    false => "BASE TABLE",
                }),
            ),
            ("self_referencing_column_name", NULL),
            ("reference_generation", NULL),
            ("user_defined_type_catalog", of_type(&|_| text(sources.database))),
            ("user_defined_type_schema", of_type(&|of| text(&of.schema))),
            ("user_defined_type_name", of_type(&|of| text(&of.name))),
            ("is_insertable_into", yes_or_no(sources.is_changeable(table))),
            ("is_typed", yes_or_no(of.is_some())),
            (
                "commit_action",
                if table.schema.is_temporary() {
                    text("PRESERVE")
                } else {
                    NULL
                },
            ),
        ]);
    });
}

/// `views`; no statement defines those of the system.
pub(super) fn views(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.views() {
        let check = entry.def.view.as_ref().and_then(|view| view.check);
        let check = check.map_or("NONE".to_owned(), |check| check.word().to_uppercase());
        let changeable = sources.is_changeable(&entry.def);
        rows.push([
            ("table_catalog", text(sources.database)),
            ("table_schema", text(&entry.def.schema.name)),
            ("table_name", text(&entry.def.name)),
            ("view_definition", view_text(sources, &entry.def)),
            ("check_option", text(&check)),
            ("is_updatable", yes_or_no(changeable)),
            ("is_insertable_into", yes_or_no(changeable)),
            ("is_trigger_updatable", text("NO")),
            ("is_trigger_deletable", text("NO")),
            ("is_trigger_insertable_into", text("NO")),
        ]);
    }
    for table in SYSTEM_TABLES.iter().filter(|table| table.shape.is_view) {
        rows.push([
            ("table_catalog", text(sources.database)),
            ("table_schema", text(table.shape.schema.name())),
            ("table_name", text(table.shape.name)),
            ("view_definition", NULL),
            ("check_option", text("NONE")),
            ("is_updatable", text("NO")),
            ("is_insertable_into", text("NO")),
            ("is_trigger_updatable", text("NO")),
            ("is_trigger_deletable", text("NO")),
            ("is_trigger_insertable_into", text("NO")),
        ]);
    }
}

/// Calls `work` for each constraint that an index enforces.
fn each_key(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, &IndexDef)) {
    for entry in sources.catalog.tables() {
        for index in entry.def.indexes.iter().filter(|index| index.constraint) {
            work(&entry.def, index);
        }
    }
}

/// Calls `work` for each CHECK constraint.
fn each_check(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, &CheckDef)) {
    for entry in sources.catalog.tables() {
        for check in &entry.def.checks {
            work(&entry.def, check);
        }
    }
}

/// Calls `work` for each foreign key: its table, the referenced one, itself.
fn each_reference(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, &TableDef, &ForeignKeyDef)) {
    for entry in sources.catalog.tables() {
        for key in &entry.def.foreign_keys {
            if let Some(parent) = sources.catalog.table(key.parent) {
                work(&entry.def, &parent.def, key);
            }
        }
    }
}

/// Calls `work` for each column that may not be NULL: table, column, and the name that its constraint has here.
fn each_not_null(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, &ColumnDef, &str)) {
    each_table(sources, |table, is_view| {
        for (number, column) in table.columns.iter().enumerate() {
            if column.not_null && !is_view {
                let name = format!("{}_{}_{}_not_null", table.schema.oid, table.oid, number + 1);
                work(table, column, &name);
            }
        }
    });
}

/// `table_constraints`
pub(super) fn table_constraints(sources: &Sources<'_>, rows: &mut Rows) {
    let mut push = |name: &str, table: &TableDef, kind: &str, nulls_distinct: Value, time: CheckTime| {
        rows.push([
            ("constraint_catalog", text(sources.database)),
            ("constraint_schema", text(&table.schema.name)),
            ("constraint_name", text(name)),
            ("table_catalog", text(sources.database)),
            ("table_schema", text(&table.schema.name)),
            ("table_name", text(&table.name)),
            ("constraint_type", text(kind)),
            ("is_deferrable", yes_or_no(time.deferrable)),
            ("initially_deferred", yes_or_no(time.initially_deferred)),
            ("enforced", text("YES")),
            ("nulls_distinct", nulls_distinct),
        ]);
    };
    let at_once = CheckTime::default();
    each_key(sources, |table, index| match index.primary {
        true => push(&index.name, table, "PRIMARY KEY", NULL, index.check_time),
        false => {
            let distinct = yes_or_no(!index.nulls_not_distinct);
            push(&index.name, table, "UNIQUE", distinct, index.check_time);
        }
    });
    each_check(sources, |table, check| {
        push(&check.name, table, "CHECK", NULL, at_once)
    });
    each_reference(sources, |table, _, key| {
        push(&key.name, table, "FOREIGN KEY", NULL, key.check_time);
    });
    each_not_null(sources, |table, _, name| {
        push(name, table, "CHECK", NULL, at_once)
    });
}

/// `check_constraints`: the columns that may not be NULL too.
pub(super) fn check_constraints(sources: &Sources<'_>, rows: &mut Rows) {
    each_check(sources, |table, check| {
        let definition = check_definition(table, check, false);
        rows.push([
            ("constraint_catalog", text(sources.database)),
            ("constraint_schema", text(&table.schema.name)),
            ("constraint_name", text(&check.name)),
            ("check_clause", text(definition.trim_start_matches("CHECK "))),
        ]);
    });
    each_not_null(sources, |table, column, name| {
        let clause = format!("{} IS NOT NULL", quote_identifier(&column.name));
        rows.push([
            ("constraint_catalog", text(sources.database)),
            ("constraint_schema", text(&table.schema.name)),
            ("constraint_name", text(name)),
            ("check_clause", text(&clause)),
        ]);
    });
}

/// `key_column_usage`
pub(super) fn key_columns(sources: &Sources<'_>, rows: &mut Rows) {
    let mut push = |table: &TableDef, name: &str, columns: &[u16], in_unique: &dyn Fn(usize) -> Value| {
        for (place, column) in columns.iter().enumerate() {
            rows.push([
                ("constraint_catalog", text(sources.database)),
                ("constraint_schema", text(&table.schema.name)),
                ("constraint_name", text(name)),
                ("table_catalog", text(sources.database)),
                ("table_schema", text(&table.schema.name)),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.columns[usize::from(*column)].name)),
                ("ordinal_position", int4(place as i32 + 1)),
                ("position_in_unique_constraint", in_unique(place)),
            ]);
        }
    };
    each_key(sources, |table, index| {
        let columns: Vec<u16> = index.key_columns().collect();
        push(table, &index.name, &columns, &|_| NULL);
    });
    each_reference(sources, |table, parent, key| {
        let referenced = key.parent_places(parent);
        let index = parent.indexes.iter().find(|index| index.oid == key.index);
        let in_unique = |place: usize| {
            let mut columns = index.into_iter().flat_map(|index| index.key_columns());
            let found = columns.position(|column| column == referenced[place]);
            found.map_or(NULL, |found| int4(found as i32 + 1))
        };
        push(table, &key.name, &key.places(table), &in_unique);
    });
}

/// `referential_constraints`
pub(super) fn references(sources: &Sources<'_>, rows: &mut Rows) {
    each_reference(sources, |table, parent, key| {
        let index = parent.indexes.iter().find(|index| index.oid == key.index);
        let unique = index.filter(|index| index.constraint);
        let of_unique = |value: &str| unique.map_or(NULL, |_| text(value));
        rows.push([
            ("constraint_catalog", text(sources.database)),
            ("constraint_schema", text(&table.schema.name)),
            ("constraint_name", text(&key.name)),
            ("unique_constraint_catalog", of_unique(sources.database)),
            ("unique_constraint_schema", of_unique(&parent.schema.name)),
            (
                "unique_constraint_name",
                unique.map_or(NULL, |unique| text(&unique.name)),
            ),
            ("match_option", text(if key.is_full { "FULL" } else { "NONE" })),
            ("update_rule", text(key.on_update.words())),
            ("delete_rule", text(key.on_delete.words())),
        ]);
    });
}

/// `constraint_column_usage`
pub(super) fn constraint_columns(sources: &Sources<'_>, rows: &mut Rows) {
    let mut push = |table: &TableDef, (schema, name): (&str, &str), columns: &[u16]| {
        for column in columns {
            rows.push([
                ("table_catalog", text(sources.database)),
                ("table_schema", text(&table.schema.name)),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.columns[usize::from(*column)].name)),
                ("constraint_catalog", text(sources.database)),
                ("constraint_schema", text(schema)),
                ("constraint_name", text(name)),
            ]);
        }
    };
    each_key(sources, |table, index| {
        let columns: Vec<u16> = index.key_columns().collect();
        push(table, (&table.schema.name, &index.name), &columns);
    });
    each_check(sources, |table, check| {
        push(table, (&table.schema.name, &check.name), &check.columns());
    });
    // The columns that are referenced.
    each_reference(sources, |table, parent, key| {
        push(
            parent,
            (&table.schema.name, &key.name),
            &key.parent_places(parent),
        );
    });
}

/// `constraint_table_usage`
pub(super) fn constraint_tables(sources: &Sources<'_>, rows: &mut Rows) {
    let mut push = |table: &TableDef, schema: &str, name: &str| {
        rows.push([
            ("table_catalog", text(sources.database)),
            ("table_schema", text(&table.schema.name)),
            ("table_name", text(&table.name)),
            ("constraint_catalog", text(sources.database)),
            ("constraint_schema", text(schema)),
            ("constraint_name", text(name)),
        ]);
    };
    each_key(sources, |table, index| {
        push(table, &table.schema.name, &index.name)
    });
    each_reference(sources, |table, parent, key| {
        push(parent, &table.schema.name, &key.name)
    });
}

/// `sequences`
pub(super) fn sequences_view(sources: &Sources<'_>, rows: &mut Rows) {
    sequences::each(sources, |table, sequence| {
        // The standard's view leaves those of identity columns out.
        if sequence.owner.is_some_and(|owner| owner.identity) {
            return;
        }
        let numbers = &sequence.numbers;
        let (precision, radix, scale) = numbers_of(numbers.data_type, -1);
        rows.push([
            ("sequence_catalog", text(sources.database)),
            ("sequence_schema", text(&table.schema.name)),
            ("sequence_name", text(&table.name)),
            ("data_type", text(&numbers.data_type.name())),
            ("numeric_precision", precision),
            ("numeric_precision_radix", radix),
            ("numeric_scale", scale),
            ("start_value", text(&numbers.start.to_string())),
            ("minimum_value", text(&numbers.min.to_string())),
            ("maximum_value", text(&numbers.max.to_string())),
            ("increment", text(&numbers.increment.to_string())),
            ("cycle_option", text(if numbers.cycle { "YES" } else { "NO" })),
        ]);
    });
}

/// `enabled_roles`
pub(super) fn enabled_roles(sources: &Sources<'_>, rows: &mut Rows) {
    let current = sources.identity.current;
    for oid in sources.role_numbers() {
        if sources.catalog.is_member(current, oid) {
            rows.push([("role_name", text(&sources.role_name(oid)))]);
        }
    }
}

/// `character_sets`
pub(super) fn character_sets(sources: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("character_set_catalog", NULL),
        ("character_set_schema", NULL),
        ("character_set_name", text("UTF8")),
        ("character_repertoire", text("UCS")),
        ("form_of_use", text("UTF8")),
        ("default_collate_catalog", text(sources.database)),
        ("default_collate_schema", text(Schema::PgCatalog.name())),
        ("default_collate_name", text("C")),
    ]);
}

/// The default of a column of a user's table, as names are shown on this search path.
pub(super) fn default_of(sources: &Sources<'_>, table: &TableDef, number: usize) -> Option<String> {
    let entry = sources.catalog.table(table.oid)?;
    if !has_default(&entry.def.columns[number]) {
        return None;
    }
    let expression = default_expression(sources.catalog, &entry.def, number)?;
    let catalog = sources.catalog;
    let is_visible = |schema: &str, name: &str| {
        let mut searched = catalog.searched(&sources.settings.search_path, &sources.identity.user);
        let first = searched.find(|schema| catalog.table_in(schema, name).is_some());
        first.is_some_and(|first| *first.name == *schema)
    };
    Some(expression_shown(&expression, &is_visible))
}
