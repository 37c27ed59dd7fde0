//! Views: `pg_rewrite`, `pg_rules`, what they depend on, and the standard's `view_table_usage` and `view_column_usage`.

use super::Sources;
use super::dependency::{PG_CLASS_OID, PG_CONSTRAINT_OID, PG_NAMESPACE_OID, depends};
use super::relations::view_text;
use super::rows::{Rows, boolean, oid, text};
use crate::catalog::TableEntry;
use clearway_sql::value::user_type::ROW_TYPE_OFFSET;
use clearway_sql::view::ViewUse;
use clearway_sql::{ObjectAddress, TableDef};

/// The number of `pg_rewrite`.
const PG_REWRITE_OID: u32 = 2_618;

/// The number of a view's rule: one that no relation and no default has, made of the view's number.
pub(crate) fn rule_oid(view: u32) -> u32 {
    super::columns::default_oid(view, usize::MAX)
}

/// `pg_rewrite`: each view has a rule.
pub(super) fn rules(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.views() {
        rows.push([
            ("oid", oid(rule_oid(entry.def.oid))),
            ("rulename", text("_RETURN")),
            ("ev_class", oid(entry.def.oid)),
            ("ev_type", text("1")),
            ("ev_enabled", text("O")),
            ("is_instead", boolean(true)),
            ("ev_qual", text("<>")),
            ("ev_action", view_text(sources, &entry.def)),
        ]);
    }
}

/// The rows of `pg_depend` for views: a view's rule depends on what its query reads.
pub(super) fn dependencies(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.views() {
        let Some(view) = &entry.def.view else { continue };
        let relation = (PG_CLASS_OID, entry.def.oid, 0);
        let rule = (PG_REWRITE_OID, rule_oid(entry.def.oid), 0);
        depends(rows, relation, (PG_NAMESPACE_OID, entry.def.schema.oid, 0), "n");
        depends(rows, rule, relation, "i");
        for used in &view.uses {
            if sources.catalog.table(used.table).is_some() {
                let on = match used.column {
                    ViewUse::ROW_TYPE => (ObjectAddress::PG_TYPE, used.table + ROW_TYPE_OFFSET, 0),
                    column => (PG_CLASS_OID, used.table, i32::from(column)),
                };
                depends(rows, rule, on, "n");
            }
        }
        for used in &view.constraints {
            depends(rows, rule, (PG_CONSTRAINT_OID, used.index, 0), "n");
        }
    }
}

/// Calls `work` for each table that a view reads, and the columns of it, counted from 1, that it reads.
fn each_use(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, &TableEntry, &[u16])) {
    for entry in sources.catalog.views() {
        let Some(view) = &entry.def.view else { continue };
        let is_read = |used: &&ViewUse| used.column != ViewUse::ROW_TYPE;
        let read: Vec<ViewUse> = view.uses.iter().filter(is_read).copied().collect();
        for uses in read.chunk_by(|one, other| one.table == other.table) {
            if let Some(table) = sources.catalog.table(uses[0].table) {
                let columns: Vec<u16> = uses
                    .iter()
                    .map(|used| used.column)
                    .filter(|column| *column > 0)
                    .collect();
                work(&entry.def, table, &columns);
            }
        }
    }
}

/// The name of the column with an attribute's number.
fn name_of_attribute(table: &TableDef, number: u16) -> &str {
    let column = table.column_of_attribute(number);
    column.map_or("", |column| &table.columns[usize::from(column)].name)
}

/// `view_table_usage`
pub(super) fn table_usage(sources: &Sources<'_>, rows: &mut Rows) {
    each_use(sources, |view, table, _| {
        rows.push([
            ("view_catalog", text(sources.database)),
            ("view_schema", text(&view.schema.name)),
            ("view_name", text(&view.name)),
            ("table_catalog", text(sources.database)),
            ("table_schema", text(&table.def.schema.name)),
            ("table_name", text(&table.def.name)),
        ]);
    });
}

/// `view_column_usage`
pub(super) fn column_usage(sources: &Sources<'_>, rows: &mut Rows) {
    each_use(sources, |view, table, columns| {
        for column in columns {
            rows.push([
                ("view_catalog", text(sources.database)),
                ("view_schema", text(&view.schema.name)),
                ("view_name", text(&view.name)),
                ("table_catalog", text(sources.database)),
                ("table_schema", text(&table.def.schema.name)),
                ("table_name", text(&table.def.name)),
                ("column_name", text(name_of_attribute(&table.def, *column))),
            ]);
        }
    });
}
