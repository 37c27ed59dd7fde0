//! The errors of foreign keys (23503), in PostgreSQL's words. A key is in them if the role may read its columns (`is_seen`).

use super::Joined;
use crate::executor::shown_values::describe;
use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, SqlState};
use clearway_sql::value::Value;

/// A row names none.
#[cold]
pub(super) fn no_parent(joined: &Joined, values: &[Value], is_seen: bool) -> EngineError {
    let child = &joined.reference.child.def;
    let key = described(child, &joined.reference.key.places(child), values, is_seen);
    let parent = &joined.parent.name;
    stored(joined).with_detail(format!("{key} is not present in table \"{parent}\"."))
}

/// Some columns of a key with MATCH FULL are NULL, and others are not.
#[cold]
pub(super) fn mixed_nulls(joined: &Joined) -> EngineError {
    stored(joined).with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
}

fn stored(joined: &Joined) -> EngineError {
    let (table, constraint) = (&joined.reference.child.def, &joined.reference.key.name);
    EngineError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{constraint}\"",
            table.name
        ),
    )
    .with_table(&table.schema.name, &table.name)
    .with_constraint(constraint)
}

/// A row that is gone, or has another key, is named by one.
#[cold]
pub(super) fn still_referenced(joined: &Joined, values: &[Value], is_seen: bool) -> EngineError {
    let (table, constraint) = (&joined.reference.child.def, &joined.reference.key.name);
    let parent = &joined.parent;
    let key = described(
        parent,
        &joined.reference.key.parent_places(parent),
        values,
        is_seen,
    );
    EngineError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{constraint}\" on table \"{}\"",
            parent.name, table.name
        ),
    )
    .with_detail(format!(
        "{key} is still referenced from table \"{}\".",
        table.name
    ))
    .with_table(&table.schema.name, &table.name)
    .with_constraint(constraint)
}

/// `Key (a, b)=(1, 2)`, or `Key` alone.
fn described(table: &TableDef, places: &[u16], values: &[Value], is_seen: bool) -> String {
    if !is_seen {
        return "Key".to_owned();
    }
    let names = places.iter();
    let names: Vec<&str> = names
        .map(|place| table.columns[usize::from(*place)].name.as_str())
        .collect();
    let values: Vec<String> = values.iter().map(describe).collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}
