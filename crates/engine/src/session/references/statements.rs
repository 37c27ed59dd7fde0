//! The statements by which foreign keys are checked, and their actions done: SQL, planned and kept as a client's are.
//!
//! | statement | parameters |
//! | --- | --- |
//! | [`Purpose::FindParent`], [`Purpose::FindKeptParent`] | the referencing columns; the referenced ones |
//! | [`Purpose::FindChild`], [`Purpose::DeleteChildren`], [`Purpose::OnDelete`] | the referenced columns |
//! | [`Purpose::OnUpdate`] | the referenced columns as they were; with CASCADE those that there are now too |
//!
//! Both finds lock the row that they find as FOR KEY SHARE does: it keeps its key until the transaction's end.

use std::collections::HashMap;
use std::sync::Arc;

use crate::session::prepared::Prepared;
use clearway_sql::foreign_key::{KeyTypes, key_types};
use clearway_sql::function::quote_identifier;
use clearway_sql::value::{DataType, format_type};
use clearway_sql::{ForeignKeyDef, ReferentialAction, TableDef};

/// The most statements that are kept.
const STATEMENTS_MAX: usize = 1_000;

/// The purpose of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// Finds the row that a referencing row names.
    FindParent,
    /// Finds a row that has a key which another one has had.
    FindKeptParent,
    /// Finds a row that names a row.
    FindChild,
    /// ON DELETE CASCADE
    DeleteChildren,
    /// ON DELETE SET NULL, SET DEFAULT
    OnDelete,
    /// ON UPDATE CASCADE, SET NULL, SET DEFAULT
    OnUpdate,
    /// Finds a row that names none, among all.
    FindOrphan,
}

/// The statements that a session has planned for foreign keys, by their keys' numbers.
#[derive(Debug, Default)]
pub(crate) struct ReferenceStatements {
    known: HashMap<(u32, Purpose), Known>,
}

#[derive(Debug)]
struct Known {
    /// The version of the catalog that the text was made with.
    version: u64,
    prepared: Arc<Prepared>,
}

impl ReferenceStatements {
    /// The statement, if it is known in this version of the catalog.
    pub(super) fn get(&self, key: u32, purpose: Purpose, version: u64) -> Option<Arc<Prepared>> {
        let known = self.known.get(&(key, purpose))?;
        (known.version == version).then(|| Arc::clone(&known.prepared))
    }

    /// The statement of this text, if it is known; it holds in this version from now on.
    pub(super) fn renew(
        &mut self,
        key: u32,
        purpose: Purpose,
        version: u64,
        statement: &StatementText,
    ) -> Option<Arc<Prepared>> {
        let known = self.known.get_mut(&(key, purpose))?;
        let is_same = *known.prepared.text == *statement.sql
            && known.prepared.param_types() == statement.parameters.as_slice();
        if !is_same {
            return None;
        }
        known.version = version;
        Some(Arc::clone(&known.prepared))
    }

    /// Keeps a statement.
    pub(super) fn put(&mut self, key: u32, purpose: Purpose, version: u64, prepared: &Arc<Prepared>) {
        if self.known.len() >= STATEMENTS_MAX {
            self.known.clear();
        }
        let prepared = Arc::clone(prepared);
        self.known.insert((key, purpose), Known { version, prepared });
    }
}

/// A statement's text and the types of its parameters.
#[derive(Debug)]
pub(super) struct StatementText {
    pub(super) sql: String,
    pub(super) parameters: Vec<DataType>,
}

/// A column of a key, on both sides.
struct Pair {
    own: String,
    parent: String,
    own_type: DataType,
    parent_type: DataType,
}

impl Pair {
    /// A value of the referencing column's type as it is compared with the other.
    fn as_parent(&self, value: &str) -> String {
        match key_types(self.own_type, self.parent_type) {
            KeyTypes::Converted => format!("{value}::{}", format_type(self.parent_type, -1)),
            KeyTypes::Comparable | KeyTypes::Incompatible => value.to_owned(),
        }
    }
}

/// The statement of a foreign key for a purpose.
pub(super) fn statement_text(
    key: &ForeignKeyDef,
    table: &TableDef,
    parent: &TableDef,
    purpose: Purpose,
) -> StatementText {
    let places = key.places(table).into_iter().zip(key.parent_places(parent));
    let pairs: Vec<Pair> = places
        .map(|(own, referenced)| {
            let own = &table.columns[usize::from(own)];
            let referenced = &parent.columns[usize::from(referenced)];
            Pair {
                own: quote_identifier(&own.name),
                parent: quote_identifier(&referenced.name),
                own_type: own.data_type,
                parent_type: referenced.data_type,
            }
        })
        .collect();
    let (child_name, parent_name) = (qualified(table), qualified(parent));
    let all = |condition: &dyn Fn(usize, &Pair) -> String| {
        let conditions = pairs.iter().enumerate();
        let conditions = conditions.map(|(at, pair)| condition(at + 1, pair));
        conditions.collect::<Vec<_>>().join(" AND ")
    };
    let names_key =
        all(&|number, pair| format!("{} = ${number}", pair.as_parent(&format!("x.{}", pair.own))));
    let is_kept = all(&|number, pair| format!("x.{} = ${number}", pair.parent));
    let parent_types = || pairs.iter().map(|pair| pair.parent_type).collect::<Vec<_>>();
    let set = |action: ReferentialAction, chosen: &dyn Fn(u16) -> bool| {
        let numbered = pairs.iter().zip(&key.columns).enumerate();
        let chosen = numbered.filter(|(_, (_, number))| chosen(**number));
        let assigned = chosen.map(|(at, (pair, _))| match action {
            ReferentialAction::SetNull => format!("{} = NULL", pair.own),
            ReferentialAction::SetDefault => format!("{} = DEFAULT", pair.own),
            _ => format!("{} = ${}", pair.own, pairs.len() + at + 1),
        });
        assigned.collect::<Vec<_>>().join(", ")
    };
    let (sql, parameters) = match purpose {
        Purpose::FindParent => {
            let matches =
                all(&|number, pair| format!("x.{} = {}", pair.parent, pair.as_parent(&format!("${number}"))));
            let sql = format!("SELECT 1 FROM {parent_name} x WHERE {matches} FOR KEY SHARE OF x");
            (sql, pairs.iter().map(|pair| pair.own_type).collect())
        }
        Purpose::FindKeptParent => (
            format!("SELECT 1 FROM {parent_name} x WHERE {is_kept} FOR KEY SHARE OF x"),
            parent_types(),
        ),
        Purpose::FindChild => (
            format!("SELECT 1 FROM {child_name} x WHERE {names_key} LIMIT 1 FOR KEY SHARE OF x"),
            parent_types(),
        ),
        Purpose::DeleteChildren => (
            format!("DELETE FROM {child_name} x WHERE {names_key}"),
            parent_types(),
        ),
        Purpose::OnDelete => {
            let chosen = |number| key.on_delete_columns.is_empty() || key.on_delete_columns.contains(&number);
            let assigned = set(key.on_delete, &chosen);
            let sql = format!("UPDATE {child_name} x SET {assigned} WHERE {names_key}");
            (sql, parent_types())
        }
        Purpose::OnUpdate => {
            let assigned = set(key.on_update, &|_| true);
            let mut types = parent_types();
            if key.on_update == ReferentialAction::Cascade {
                types.extend(parent_types());
            }
            let sql = format!("UPDATE {child_name} x SET {assigned} WHERE {names_key}");
            (sql, types)
        }
        Purpose::FindOrphan => (orphans(key, &pairs, &child_name, &parent_name), Vec::new()),
    };
    StatementText { sql, parameters }
}

/// The query for a row that names none: one anti join.
fn orphans(key: &ForeignKeyDef, pairs: &[Pair], child: &str, parent: &str) -> String {
    let list = |join: &str, each: &dyn Fn(&Pair) -> String| {
        let parts = pairs.iter().map(each);
        parts.collect::<Vec<_>>().join(join)
    };
    let columns = list(", ", &|pair| format!("x.{}", pair.own));
    let matches = list(" AND ", &|pair| {
        format!(
            "p.{} = {}",
            pair.parent,
            pair.as_parent(&format!("x.{}", pair.own))
        )
    });
    let between = if key.is_full { " OR " } else { " AND " };
    let names_one = list(between, &|pair| format!("x.{} IS NOT NULL", pair.own));
    format!(
        "SELECT {columns} FROM {child} x WHERE NOT EXISTS (SELECT FROM {parent} p WHERE {matches}) AND ({names_one}) LIMIT 1"
    )
}

fn qualified(table: &TableDef) -> String {
    format!(
        "{}.{}",
        quote_identifier(&table.schema.name),
        quote_identifier(&table.name)
    )
}
