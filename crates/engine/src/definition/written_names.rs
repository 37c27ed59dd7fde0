//! Names in the texts of definitions.
//!
//! Texts of definitions keep the words that they were written with, so a word by which a text may name a label or an
//! attribute of a type cannot change. A text can name one only with a value of the type at hand: out of a column that has
//! such values, or by a cast, whose type it names (by its number in the texts of defaults and conditions, by its name in
//! those of views). A word in any other text is another thing of that name.
//!
//! A relation's name is that of the type of its rows, too. A text's places for relations are kept by number, so the name cannot
//! change only while a text has it in a type's place ([`require_row_type_unwritten`]). So with the name of a schema.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::user_type::{DomainType, ROW_TYPE_OFFSET, UserType, numbered};
use clearway_sql::value::{DataType, TypeOid};
use clearway_sql::{
    ColumnDefault, IndexDef, IndexedValue, ObjectAddress, TableDef, has_word, names_field, names_of_types,
};

use crate::catalog::CatalogState;

/// 0A000 if an expression or a query in a definition may name the type, the label or the attribute by this word.
pub(super) fn require_unwritten(state: &CatalogState, of: &UserType, word: &str, what: &str) -> Result<()> {
    let refused = |in_what: String| {
        EngineError::not_supported(format!("{what} of {}, which {in_what} names", of.data_type()))
    };
    let holders = Holders::of(state, of.data_type());
    for entry in state.tables().iter().chain(&state.views()) {
        let table = &entry.def;
        let mut views = table.view.iter();
        let is_named = expressions_of(table)
            .any(|sql| has_word(sql, word) && holders.are_at_hand(sql, [&**table]))
            || views.any(|view| {
                let relations = view.tables.iter().filter_map(|named| state.table(named.table));
                has_word(&view.sql, word)
                    && holders.are_at_hand(&view.sql, relations.map(|entry| &*entry.def))
            });
        if is_named {
            return Err(refused(format!("the definition of \"{}\"", table.name)));
        }
    }
    for other in state.user_types() {
        let is_base = |domain: &DomainType| holds(state, domain.base, of.data_type());
        let is_base = other.domain().is_some_and(is_base);
        if expressions_of_domain(&other)
            .any(|sql| has_word(sql, word) && (is_base || holders.are_at_hand(sql, [])))
        {
            return Err(refused(format!("domain \"{}\"", other.name)));
        }
    }
    Ok(())
}

/// 0A000 if an expression or a query in a definition may name the type of a relation's rows, or of arrays of them; `what`
/// is done to the relation.
pub(super) fn require_row_type_unwritten(state: &CatalogState, of: &TableDef, what: &str) -> Result<()> {
    let names = [of.name.clone(), state.array_name_in(of.schema.oid, &of.name)];
    match first_definition(state, |sql| {
        names_type(sql, |_, name| names.iter().any(|own| own == name))
    }) {
        None => Ok(()),
        Some(in_what) => Err(EngineError::not_supported(format!(
            "{what} \"{}\", whose row type {in_what} names,",
            of.name
        ))),
    }
}

/// 0A000 if an expression or a query in a definition names a type with this schema.
pub(super) fn require_schema_unwritten(state: &CatalogState, of: &str) -> Result<()> {
    match first_definition(state, |sql| names_type(sql, |schema, _| schema == Some(of))) {
        None => Ok(()),
        Some(in_what) => Err(EngineError::not_supported(format!(
            "renaming schema \"{of}\", of which {in_what} names a type,"
        ))),
    }
}

/// True if a text names such a type, by schema and name. The words inside of literals (`'t'::regclass`) do not count.
fn names_type(sql: &str, is_it: impl Fn(Option<&str>, &str) -> bool) -> bool {
    let names = names_of_types(sql);
    names.iter().any(|(schema, name)| is_it(schema.as_deref(), name))
}

/// The first definition with such a text: of an expression or of a view's query.
fn first_definition(state: &CatalogState, is_named: impl Fn(&String) -> bool) -> Option<String> {
    let views = state.views();
    let mut views = views.iter();
    let view = views.find(|entry| entry.def.view.iter().any(|view| is_named(&view.sql)));
    let in_view = || view.map(|entry| format!("the definition of \"{}\"", entry.def.name));
    first_expression(state, &is_named).or_else(in_view)
}

/// The first definition with such a text of an expression: those are bound at each start.
fn first_expression(state: &CatalogState, is_named: impl Fn(&String) -> bool) -> Option<String> {
    for entry in state.tables().iter().chain(&state.views()) {
        if expressions_of(&entry.def).any(&is_named) {
            return Some(format!("the definition of \"{}\"", entry.def.name));
        }
    }
    let domains = state.user_types();
    let naming = domains
        .iter()
        .find(|other| expressions_of_domain(other).any(&is_named));
    naming.map(|other| format!("domain \"{}\"", other.name))
}

/// The types among these objects, and those of the rows of relations among them, which are about to go.
pub(super) fn types_that_go(state: &CatalogState, dropped: &[ObjectAddress]) -> Vec<Arc<UserType>> {
    let numbers = dropped.iter().filter_map(|address| match address.catalog {
        ObjectAddress::PG_TYPE => Some(address.object),
        ObjectAddress::PG_CLASS if address.column == 0 => Some(address.object + ROW_TYPE_OFFSET),
        _ => None,
    });
    numbers
        .filter_map(|oid| state.user_type(TypeOid::new(oid)?))
        .collect()
}

/// Addresses of all that goes with a type because an expression in it names the type: defaults, generated columns, CHECK
/// constraints, indexes, constraints of domains; and domains whose default names it.
pub(super) fn definitions_naming(state: &CatalogState, of: &UserType) -> Vec<ObjectAddress> {
    let number = quoted_number(of);
    let names = |sql: &String| sql.contains(&number);
    let mut found = Vec::new();
    for entry in state.tables() {
        let table = &entry.def;
        for (place, column) in (0..).zip(&table.columns) {
            let catalog = match &column.default {
                Some(ColumnDefault::Expression { sql, .. }) if names(sql) => ObjectAddress::PG_ATTRDEF,
                Some(ColumnDefault::Generated { sql, .. }) if names(sql) => ObjectAddress::PG_CLASS,
                _ => continue,
            };
            found.push(ObjectAddress {
                column: i32::from(table.attribute_number(place)),
                ..ObjectAddress::new(catalog, table.oid)
            });
        }
        let checks = table.checks.iter().filter(|check| names(&check.sql));
        found.extend(checks.map(|check| ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, check.oid)));
        let indexes = table
            .all_indexes()
            .filter(|index| expressions_of_index(index).any(names));
        found.extend(indexes.map(|index| ObjectAddress::relation(index.oid)));
    }
    for other in state.user_types() {
        let Some(domain) = other.domain() else { continue };
        if domain.default.iter().any(names) {
            found.push(ObjectAddress::new(ObjectAddress::PG_TYPE, other.oid.get()));
        }
        let checks = domain.checks.iter().filter(|check| names(&check.sql));
        found.extend(checks.map(|check| ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, check.oid)));
    }
    found
}

/// XX000 if an expression in a definition that is left names one of these types, which are gone: by its number, without which
/// it could not be bound at the next start.
pub(super) fn require_none_named(state: &CatalogState, gone: &[Arc<UserType>]) -> Result<()> {
    for of in gone {
        let number = quoted_number(of);
        if let Some(in_what) = first_expression(state, |sql| sql.contains(&number)) {
            let message = format!("type {} is dropped, and {in_what} names it", of.name);
            return Err(EngineError::internal(message));
        }
    }
    Ok(())
}

/// A definition that could not be bound any more if a composite type had other attributes: an expression that names the type,
/// or another one with its values inside, or a default for such values. `ROW(1)::t` needs as many values as `t` has attributes.
pub(super) fn definition_bound_to(state: &CatalogState, wanted: DataType) -> Option<String> {
    let numbers = numbers_of_holders(state, wanted);
    let naming = || first_expression(state, |sql| numbers.iter().any(|number| sql.contains(number)));
    let with_default = || {
        state.tables().iter().find_map(|entry| {
            let mut columns = entry.def.columns.iter();
            let found = columns.find(|column| {
                matches!(
                    column.default,
                    Some(ColumnDefault::Expression { .. } | ColumnDefault::Generated { .. })
                ) && holds(state, column.data_type, wanted)
            })?;
            Some(format!("the default of \"{}.{}\"", entry.def.name, found.name))
        })
    };
    let of_domain = || {
        state.user_types().iter().find_map(|of| {
            let domain = of.domain()?;
            let is_bound = domain.default.is_some() && holds(state, domain.base, wanted);
            is_bound.then(|| format!("the default of domain \"{}\"", of.name))
        })
    };
    naming().or_else(with_default).or_else(of_domain)
}

/// 0A000 if a definition that lasts has the type of a temporary relation's rows in it: that is gone with its session.
/// `types`: those of its columns or attributes.
fn require_lasting<'t>(
    state: &CatalogState,
    texts: impl Iterator<Item = &'t String> + Clone,
    types: impl Iterator<Item = DataType> + Clone,
) -> Result<()> {
    for relation in state.temporary_relations() {
        let Some(row_type) = DataType::from_oid(relation.def.oid + ROW_TYPE_OFFSET) else {
            continue;
        };
        let numbers = numbers_of_holders(state, row_type);
        let names = |sql: &String| numbers.iter().any(|number| sql.contains(number));
        if texts.clone().any(names) || types.clone().any(|of| holds(state, of, row_type)) {
            return Err(EngineError::not_supported(format!(
                "the row type of temporary table \"{}\" in a definition that lasts",
                relation.def.name
            )));
        }
    }
    Ok(())
}

/// 0A000 if a permanent table has the type of a temporary relation's rows in it.
pub(super) fn require_lasting_table(state: &CatalogState, table: &TableDef) -> Result<()> {
    let texts: Vec<&String> = expressions_of(table).collect();
    let types = table.columns.iter().map(|column| column.data_type);
    require_lasting(state, texts.into_iter(), types)
}

/// The same of a type.
pub(super) fn require_lasting_type(state: &CatalogState, of: &UserType) -> Result<()> {
    let texts: Vec<&String> = expressions_of_domain(of).collect();
    require_lasting(state, texts.into_iter(), of.parts().into_iter())
}

/// The texts of a table's defaults, generated columns and CHECK constraints, and of its indexes' keys and predicates.
fn expressions_of(table: &TableDef) -> impl Iterator<Item = &String> {
    let defaults = table.columns.iter().filter_map(|column| match &column.default {
        Some(ColumnDefault::Expression { sql, .. } | ColumnDefault::Generated { sql, .. }) => Some(sql),
        _ => None,
    });
    let of_indexes = table.all_indexes().flat_map(|index| expressions_of_index(index));
    let checks = table.checks.iter().map(|check| &check.sql);
    defaults.chain(checks).chain(of_indexes)
}

/// The texts of an index's keys and of its predicate.
fn expressions_of_index(index: &IndexDef) -> impl Iterator<Item = &String> {
    let keys = index.keys.iter().filter_map(|key| match &key.value {
        IndexedValue::Expression(kept) => Some(&kept.sql),
        IndexedValue::Column(_) => None,
    });
    keys.chain(index.predicate.iter().map(|kept| &kept.sql))
}

/// The texts of a domain's default and CHECK constraints; none for another type.
fn expressions_of_domain(of: &UserType) -> impl Iterator<Item = &String> {
    of.domain().into_iter().flat_map(|domain| {
        let checks = domain.checks.iter().map(|check| &check.sql);
        domain.default.iter().chain(checks)
    })
}

/// 0A000 if an expression or a query in a definition may name a column of a table as a field of a row: `(row).column`.
pub(super) fn require_no_field_written(state: &CatalogState, table: &TableDef, column: &str) -> Result<()> {
    match first_definition(state, |sql| names_field(sql, column)) {
        None => Ok(()),
        Some(in_what) => Err(EngineError::not_supported(format!(
            "renaming column \"{column}\" of \"{}\", which {in_what} names as a field,",
            table.name
        ))),
    }
}

/// The words by which the text of an expression names the types whose values have values of one type inside.
fn numbers_of_holders(state: &CatalogState, wanted: DataType) -> Vec<String> {
    let all = state.user_types().into_iter().chain(state.row_types());
    let holding = all.filter(|found| holds(state, found.data_type(), wanted));
    holding.map(|found| quoted_number(&found)).collect()
}

fn quoted_number(of: &UserType) -> String {
    format!("\"{}\"", numbered(of.oid))
}

/// The types whose values have values of one type inside, itself among them.
struct Holders<'s> {
    state: &'s CatalogState,
    wanted: DataType,
    /// The words by which a text may name them.
    words: Vec<String>,
}

impl<'s> Holders<'s> {
    fn of(state: &'s CatalogState, wanted: DataType) -> Holders<'s> {
        let all: Vec<Arc<UserType>> = state.user_types().into_iter().chain(state.row_types()).collect();
        let holding = all.iter().filter(|found| holds(state, found.data_type(), wanted));
        let words = holding.flat_map(|found| {
            let of_arrays = state.array_name_in(found.schema_oid, &found.name);
            [found.name.clone(), of_arrays, numbered(found.oid)]
        });
        Holders {
            state,
            wanted,
            words: words.collect(),
        }
    }

    /// True if a text over these relations may have such a value at hand.
    fn are_at_hand<'t>(&self, sql: &str, relations: impl IntoIterator<Item = &'t TableDef>) -> bool {
        let mut columns = relations.into_iter().flat_map(|table| &table.columns);
        columns.any(|column| holds(self.state, column.data_type, self.wanted))
            || self.words.iter().any(|word| has_word(sql, word))
    }
}

/// True if values of a type have values of another one inside, or are such.
pub(super) fn holds(state: &CatalogState, data_type: DataType, wanted: DataType) -> bool {
    if data_type == wanted {
        return true;
    }
    let inside = match (data_type.element(), data_type.user_oid()) {
        (Some(element), _) => vec![element],
        (None, Some(oid)) => state.user_type(oid).map_or_else(Vec::new, |found| found.parts()),
        (None, None) => return false,
    };
    let mut inside = inside.into_iter();
    inside.any(|part| clearway_sql::checkpoint(|| holds(state, part, wanted)))
}
