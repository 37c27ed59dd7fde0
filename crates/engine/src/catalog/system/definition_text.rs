//! Definitions as SQL text: of indexes, constraints and defaults.

use crate::catalog::CatalogState;
use clearway_sql::deparse::{
    check_condition, default_value, generation_expression, index_key_listed, index_predicate,
};
use clearway_sql::function::quote_identifier;
use clearway_sql::value::DataType;
use clearway_sql::value::user_type::{DomainCheck, DomainType};
use clearway_sql::{
    CheckDef, CheckTime, ColumnDefault, ForeignKeyDef, IndexDef, IndexedValue, ReferentialAction, TableDef,
    domain_condition, domain_table, types_by_name, with_names,
};

/// A part of an index's key as a definition lists it. `is_definition`: with what is said beside its value.
pub(crate) fn index_key_text(table: &TableDef, index: &IndexDef, at: usize, is_definition: bool) -> String {
    let key = &index.keys[at];
    let mut text = match &key.value {
        IndexedValue::Column(column) => quote_identifier(&table.columns[usize::from(*column)].name),
        IndexedValue::Expression(kept) => index_key_listed(&kept.sql, table, false),
    };
    if !is_definition {
        return text;
    }
    if let Some(collation) = &key.options.collation {
        text.push_str(" COLLATE ");
        text.push_str(&quote_identifier(collation));
    }
    if let Some(class) = &key.options.class {
        text.push(' ');
        text.push_str(class);
    }
    text.push_str(match (key.options.descending, key.options.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    });
    text
}

fn key_list(table: &TableDef, index: &IndexDef, is_definition: bool) -> String {
    let keys = (0..index.keys.len()).map(|at| index_key_text(table, index, at, is_definition));
    keys.collect::<Vec<_>>().join(", ")
}

/// The statement that would make an index.
pub(crate) fn index_definition(table: &TableDef, index: &IndexDef, with_schema: bool) -> String {
    let schema = match with_schema {
        true => format!("{}.", quote_identifier(&table.schema.name)),
        false => String::new(),
    };
    let mut text = format!(
        "CREATE {}INDEX {} ON {schema}{} USING btree ({})",
        if index.unique { "UNIQUE " } else { "" },
        quote_identifier(&index.name),
        quote_identifier(&table.name),
        key_list(table, index, true)
    );
    if !index.included.is_empty() {
        let names = index.included.iter();
        let names = names.map(|column| quote_identifier(&table.columns[usize::from(*column)].name));
        text.push_str(&format!(" INCLUDE ({})", names.collect::<Vec<_>>().join(", ")));
    }
    if index.nulls_not_distinct {
        text.push_str(" NULLS NOT DISTINCT");
    }
    if let Some(predicate) = &index.predicate {
        text.push_str(" WHERE ");
        text.push_str(&types_by_name(&predicate.sql));
    }
    text
}

/// The constraint that an index enforces, as in CREATE TABLE.
pub(crate) fn constraint_definition(table: &TableDef, index: &IndexDef) -> String {
    let kind = match (index.primary, index.nulls_not_distinct) {
        (true, _) => "PRIMARY KEY",
        (false, false) => "UNIQUE",
        (false, true) => "UNIQUE NULLS NOT DISTINCT",
    };
    let mut text = format!("{kind} ({})", key_list(table, index, false));
    add_check_time(index.check_time, &mut text);
    text
}

/// A CHECK constraint as in CREATE TABLE; `pretty`: without the parentheses that precedence makes needless.
pub(crate) fn check_definition(table: &TableDef, check: &CheckDef, pretty: bool) -> String {
    let printed = match pretty {
        true => check_condition(&check.sql, table, true).ok(),
        false => None,
    };
    let condition = printed.unwrap_or_else(|| types_by_name(&check.sql));
    let behind = if check.validated { "" } else { " NOT VALID" };
    format!("CHECK ({condition}){behind}")
}

/// A constraint of a domain as in CREATE DOMAIN.
pub(crate) fn domain_check_definition(domain: &DomainType, check: &DomainCheck, pretty: bool) -> String {
    let behind = if check.validated { "" } else { " NOT VALID" };
    let printed = match pretty {
        true => check_condition(&check.sql, &domain_table(domain.base, domain.typmod), true).ok(),
        false => None,
    };
    let condition = domain_condition(printed.as_ref().unwrap_or(&check.sql));
    let condition = types_by_name(&condition);
    format!("CHECK ({condition}){behind}")
}

/// A foreign key as in CREATE TABLE; `parent_name`: the name of the referenced table, as it is found.
pub(crate) fn foreign_key_definition(
    table: &TableDef,
    parent: &TableDef,
    key: &ForeignKeyDef,
    parent_name: &str,
) -> String {
    let list = |table: &TableDef, places: &[u16]| {
        let names = places.iter();
        let names = names.map(|place| quote_identifier(&table.columns[usize::from(*place)].name));
        names.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!(
        "FOREIGN KEY ({}) REFERENCES {parent_name}({})",
        list(table, &key.places(table)),
        list(parent, &key.parent_places(parent))
    );
    if key.is_full {
        text.push_str(" MATCH FULL");
    }
    if key.on_update != ReferentialAction::NoAction {
        text.push_str(" ON UPDATE ");
        text.push_str(key.on_update.words());
    }
    if key.on_delete != ReferentialAction::NoAction {
        text.push_str(" ON DELETE ");
        text.push_str(key.on_delete.words());
    }
    if !key.on_delete_columns.is_empty() {
        let columns = key.on_delete_columns.iter();
        let places = columns.filter_map(|number| table.column_of_attribute(*number));
        let places: Vec<u16> = places.collect();
        text.push_str(&format!(" ({})", list(table, &places)));
    }
    add_check_time(key.check_time, &mut text);
    if !key.validated {
        text.push_str(" NOT VALID");
    }
    text
}

/// DEFERRABLE and INITIALLY DEFERRED, as far as they are said.
fn add_check_time(time: CheckTime, text: &mut String) {
    for (is_said, words) in [
        (time.deferrable, " DEFERRABLE"),
        (time.initially_deferred, " INITIALLY DEFERRED"),
    ] {
        if is_said {
            text.push_str(words);
        }
    }
}

/// The expression of a column's default, with the full names of relations; `None` if it has none.
pub(crate) fn default_expression(state: &CatalogState, table: &TableDef, column: usize) -> Option<String> {
    default_shown(state, table, column, false)
}

/// A default, generated column or predicate of a table that has this text, without needless parentheses.
pub(crate) fn pretty_expression(state: &CatalogState, table: &TableDef, text: &str) -> Option<String> {
    let mut columns = 0..table.columns.len();
    let column = columns.find(|column| default_expression(state, table, *column).as_deref() == Some(text));
    if let Some(column) = column {
        return default_shown(state, table, column, true);
    }
    let mut predicates = table.all_indexes().filter_map(|index| index.predicate.as_ref());
    let predicate = predicates.find(|predicate| types_by_name(&predicate.sql) == text)?;
    let printed = index_predicate(&predicate.sql, table, None, true).ok()?;
    Some(types_by_name(&printed))
}

fn default_shown(state: &CatalogState, table: &TableDef, place: usize, pretty: bool) -> Option<String> {
    let column = &table.columns[place];
    let sql = match column.default.as_ref()? {
        ColumnDefault::Expression { sql, .. } => sql,
        ColumnDefault::Generated { sql, .. } => {
            let printed = match pretty {
                true => generation_expression(sql, table, place as u16, true).ok(),
                false => None,
            };
            return Some(types_by_name(printed.as_ref().unwrap_or(sql)));
        }
        _ => return None,
    };
    // A form that is not printed is shown as it was written.
    let printed = default_value(sql, table, place as u16, pretty).ok();
    let is_printed = printed.is_some();
    let sql = printed.as_ref().unwrap_or(sql);
    let name = |oid: u32| {
        let relation = state.table_numbered(oid)?;
        let schema = quote_identifier(&relation.schema.name);
        Some(format!("{schema}.{}", quote_identifier(&relation.name)))
    };
    let shown = types_by_name(&with_names(sql, name));
    Some(match is_printed {
        true => shown,
        false => with_type(&shown, column.data_type.base()),
    })
}

/// An expression; a literal in quotes has its type behind it.
pub(super) fn with_type(sql: &str, data_type: DataType) -> String {
    let inner = sql.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let is_literal = inner.is_some_and(|inner| !inner.replace("''", "").contains('\''));
    match data_type {
        _ if !is_literal => sql.to_owned(),
        DataType::Char => format!("{sql}::bpchar"),
        other => format!("{sql}::{other}"),
    }
}
