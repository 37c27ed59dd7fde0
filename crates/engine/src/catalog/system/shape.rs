//! The shape of a system table: its numbers, its name, its columns.
//!
//! A shape is written as PostgreSQL 15 has it, all columns in order, each as `name type` with the type's name in
//! `pg_type` and a `!` behind what is never NULL. A column whose type is among [`LEFT_OUT`] is not part of the table:
//! a column of another type would mislead the programs that read it.

use clearway_sql::value::DataType;
use clearway_sql::{ColumnDef, SchemaRef, TableDef, TableKind};

/// The types that columns of system tables have in PostgreSQL and that there are not yet.
const LEFT_OUT: &[&str] = &["pg_dependencies", "pg_mcv_list", "pg_ndistinct"];

/// A schema that every database has, of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// The tables of the system, and the views over them that are PostgreSQL's own.
    PgCatalog,
    /// The views of the SQL standard.
    Information,
    /// The tables of long values, which no statement names.
    LongValues,
}

impl Schema {
    /// All.
    pub(crate) const SYSTEM: [Schema; 3] = [Schema::PgCatalog, Schema::Information, Schema::LongValues];

    /// Its number.
    pub(crate) const fn oid(self) -> u32 {
        match self {
            Schema::PgCatalog => 11,
            Schema::Information => 13_207,
            Schema::LongValues => 99,
        }
    }

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Schema::PgCatalog => "pg_catalog",
            Schema::Information => "information_schema",
            Schema::LongValues => "pg_toast",
        }
    }

    /// Itself as tables have it.
    pub(crate) fn reference(self) -> SchemaRef {
        SchemaRef::new(self.oid(), self.name())
    }
}

/// The shape of a system table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Its number.
    pub(crate) oid: u32,
    /// Its name.
    pub(crate) name: &'static str,
    /// Its schema.
    pub(crate) schema: Schema,
    /// True if it is a view in PostgreSQL.
    pub(crate) is_view: bool,
    columns: &'static str,
}

impl Shape {
    /// A table of `pg_catalog`.
    pub(super) const fn catalog(oid: u32, name: &'static str, columns: &'static str) -> Shape {
        Shape {
            oid,
            name,
            schema: Schema::PgCatalog,
            is_view: false,
            columns,
        }
    }

    /// A view of `pg_catalog`.
    pub(super) const fn view(oid: u32, name: &'static str, columns: &'static str) -> Shape {
        Shape {
            is_view: true,
            ..Shape::catalog(oid, name, columns)
        }
    }

    /// A view of `information_schema`.
    pub(super) const fn information(oid: u32, name: &'static str, columns: &'static str) -> Shape {
        Shape {
            schema: Schema::Information,
            ..Shape::view(oid, name, columns)
        }
    }

    /// Its columns in PostgreSQL; `None` in the place of a type stands for one that is left out.
    fn columns(&self) -> impl Iterator<Item = (&'static str, Option<DataType>, bool)> {
        self.columns.split(", ").map(|column| {
            let (name, data_type) = column.split_once(' ').unwrap_or((column, ""));
            let (data_type, not_null) = match data_type.strip_suffix('!') {
                Some(data_type) => (data_type, true),
                None => (data_type, false),
            };
            (name, type_named(data_type), not_null)
        })
    }

    /// The names of its columns in PostgreSQL, and true for those that it has here.
    pub(super) fn names(&self) -> Vec<(&'static str, bool)> {
        self.columns()
            .map(|(name, data_type, _)| (name, data_type.is_some()))
            .collect()
    }

    /// Its definition as statements see it.
    pub(super) fn table(&self) -> TableDef {
        let columns = self.columns().filter_map(|(name, data_type, not_null)| {
            let mut column = ColumnDef::new(name, data_type?);
            column.not_null = not_null;
            Some(column)
        });
        let mut table = TableDef::new(self.oid, self.name, TableKind::Virtual, columns.collect());
        table.schema = self.schema.reference();
        table
    }
}

/// The type of this name in `pg_type`; `None` for one that is left out.
fn type_named(name: &str) -> Option<DataType> {
    if LEFT_OUT.contains(&name) {
        return None;
    }
    let found = DataType::named(name);
    debug_assert!(found.is_some(), "type {name} of a system table's column");
    found
}
