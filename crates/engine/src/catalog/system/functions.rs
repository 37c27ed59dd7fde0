//! `pg_proc`: the functions that there are, under PostgreSQL's numbers.
//!
//! A function of PostgreSQL has a row if a call of its name with values of exactly its argument types is a call of a
//! function here, with the same type of result. The functions by which types are read and written are there with their
//! types.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::Sources;
use super::rows::{NULL, Rows, array, boolean, int2, oid, text};
use super::server::{INTERNAL_LANGUAGE_OID, USER_OID};
use super::shape::Schema;
use super::triggers;
use super::types;
use clearway_sql::aggregate;
use clearway_sql::catalog_facts::FunctionTypes;
use clearway_sql::function;
use clearway_sql::value::cast::cast_context;
use clearway_sql::value::{DataType, Value};

/// oid, proname, prokind, provolatile, proisstrict, proretset, proparallel, provariadic, pronargdefaults, prorettype,
/// proargtypes
const LINES: &str = include_str!("data/functions.txt");

/// A function as PostgreSQL's catalog has it.
#[derive(Debug)]
struct FunctionRow {
    oid: u32,
    name: &'static str,
    kind: &'static str,
    volatility: &'static str,
    is_strict: bool,
    returns_set: bool,
    parallel: &'static str,
    variadic: u32,
    defaults: i16,
    result: u32,
    arguments: Vec<u32>,
}

impl FunctionRow {
    fn read(line: &'static str) -> Option<FunctionRow> {
        let mut words = line.split(' ');
        Some(FunctionRow {
            oid: words.next()?.parse().ok()?,
            name: words.next()?,
            kind: words.next()?,
            volatility: words.next()?,
            is_strict: words.next()? == "t",
            returns_set: words.next()? == "t",
            parallel: words.next()?,
            variadic: words.next()?.parse().ok()?,
            defaults: words.next()?.parse().ok()?,
            result: words.next()?.parse().ok()?,
            arguments: match words.next()? {
                "-" => Vec::new(),
                list => list.split(',').map(str::parse).collect::<Result<_, _>>().ok()?,
            },
        })
    }

    /// True if there is this function here.
    fn exists(&self) -> bool {
        if self.kind == "a" {
            return aggregate::rows().any(|row| row.oid == self.oid);
        }
        let types: Option<Vec<DataType>> = self
            .arguments
            .iter()
            .map(|oid| DataType::from_oid(*oid))
            .collect();
        let (Some(types), Some(result)) = (types, DataType::from_oid(self.result)) else {
            return false;
        };
        match (self.kind, self.returns_set) {
            ("f", false) => {
                let is_function = function::resolve(self.name, &types)
                    .is_ok_and(|found| found.arguments == types && found.result == result);
                // A cast can be written as a call of the type's name.
                let is_cast =
                    |from| DataType::named(self.name) == Some(result) && cast_context(from, result).is_some();
                is_function || matches!(types[..], [from] if is_cast(from))
            }
            ("f", true) => {
                let known = |data_type: &DataType| {
                    matches!(
                        data_type,
                        DataType::Int4
                            | DataType::Int8
                            | DataType::Numeric
                            | DataType::Timestamp
                            | DataType::TimestampTz
                            | DataType::Interval
                    )
                };
                self.name == "pg_listening_channels"
                    || self.name == "generate_series" && types.iter().all(known)
            }
            _ => false,
        }
    }
}

/// The functions that there are, in the order of their numbers.
static FUNCTIONS: LazyLock<Vec<FunctionRow>> = LazyLock::new(|| {
    let of_types: HashSet<u32> = types::input_and_output_functions().collect();
    LINES
        .lines()
        .filter_map(FunctionRow::read)
        .filter(|row| of_types.contains(&row.oid) || triggers::has_function(row.oid) || row.exists())
        .collect()
});

/// The functions that there are, in the order of their numbers.
fn shown() -> &'static [FunctionRow] {
    &FUNCTIONS
}

/// The number of a function, if it exists; else 0.
pub(super) fn existing(oid: u32) -> u32 {
    match FUNCTIONS.binary_search_by_key(&oid, |row| row.oid) {
        Ok(_) => oid,
        Err(_) => 0,
    }
}

/// The number of the function of this name; `None` if several have it.
pub(crate) fn only_one_named(name: &str) -> Option<u32> {
    let mut rows = FUNCTIONS.iter().filter(|row| row.name == name);
    let found = rows.next()?;
    rows.next().is_none().then_some(found.oid)
}

/// True if several functions have this name.
pub(crate) fn several_named(name: &str) -> bool {
    FUNCTIONS.iter().filter(|row| row.name == name).nth(1).is_some()
}

/// The name of a function, with its schema if the name alone does not lead to it.
pub(crate) fn name_of(oid: u32) -> Option<String> {
    let place = FUNCTIONS.binary_search_by_key(&oid, |row| row.oid).ok()?;
    let name = function::quote_identifier(FUNCTIONS[place].name);
    Some(match only_one_named(FUNCTIONS[place].name) {
        Some(_) => name,
        None => format!("pg_catalog.{name}"),
    })
}

/// The number of the function with this name and these types of arguments: `lower(text)`.
pub(crate) fn with_arguments(signature: &str) -> Option<u32> {
    let (name, arguments) = signature.split_once('(')?;
    let arguments = arguments.trim().strip_suffix(')')?.trim();
    let name = name.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name).trim_matches('"');
    let wanted: Vec<u32> = match arguments {
        "" => Vec::new(),
        some => some
            .split(',')
            .map(|argument| types::named(argument.trim()))
            .collect::<Option<_>>()?,
    };
    let found = FUNCTIONS
        .iter()
        .find(|row| row.name == name && row.arguments == wanted)?;
    Some(found.oid)
}

/// A function's name with the types of its arguments.
pub(crate) fn name_with_arguments(oid: u32) -> Option<String> {
    let place = FUNCTIONS.binary_search_by_key(&oid, |row| row.oid).ok()?;
    let row = &FUNCTIONS[place];
    let types: Vec<_> = row.arguments.iter().map(|oid| types::sql_name_of(*oid)).collect();
    Some(format!(
        "{}({})",
        function::quote_identifier(row.name),
        types.join(",")
    ))
}

/// The types of a function's arguments and result; true if it returns a set.
pub(crate) fn types_of(oid: u32) -> Option<FunctionTypes> {
    let place = FUNCTIONS.binary_search_by_key(&oid, |row| row.oid).ok()?;
    let row = &FUNCTIONS[place];
    let named = |oid: &u32| (*oid, types::name_of(*oid));
    let arguments = row.arguments.iter().map(named).collect();
    Some((arguments, named(&row.result), row.returns_set))
}

/// `pg_proc`
pub(super) fn functions(_: &Sources<'_>, rows: &mut Rows) {
    for row in shown() {
        rows.push([
            ("oid", oid(row.oid)),
            ("proname", text(row.name)),
            ("pronamespace", oid(Schema::PgCatalog.oid())),
            ("proowner", oid(USER_OID)),
            ("prolang", oid(INTERNAL_LANGUAGE_OID)),
            ("procost", Value::Float4(1.0)),
            (
                "prorows",
                Value::Float4(if row.returns_set { 1000.0 } else { 0.0 }),
            ),
            ("provariadic", oid(row.variadic)),
            ("prosupport", oid(0)),
            ("prokind", text(row.kind)),
            ("prosecdef", boolean(false)),
            ("proleakproof", boolean(false)),
            ("proisstrict", boolean(row.is_strict)),
            ("proretset", boolean(row.returns_set)),
            ("provolatile", text(row.volatility)),
            ("proparallel", text(row.parallel)),
            ("pronargs", int2(row.arguments.len() as i16)),
            ("pronargdefaults", int2(row.defaults)),
            ("prorettype", oid(row.result)),
            (
                "proargtypes",
                array(DataType::OidVector, row.arguments.iter().copied().map(oid)),
            ),
            ("proallargtypes", NULL),
            ("proargmodes", NULL),
            ("proargnames", NULL),
            ("proargdefaults", NULL),
            ("protrftypes", NULL),
            ("prosrc", text(row.name)),
            ("probin", NULL),
            ("prosqlbody", NULL),
            ("proconfig", NULL),
            ("proacl", NULL),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_sorted() {
        let all: Vec<FunctionRow> = LINES.lines().filter_map(FunctionRow::read).collect();
        assert_eq!(all.len(), LINES.lines().count());
        assert!(all.is_sorted_by_key(|row| row.oid));
    }

    /// A function's number is that of the function of this name in PostgreSQL.
    #[test]
    fn numbers_are_those_of_postgresql() {
        let all: Vec<FunctionRow> = LINES.lines().filter_map(FunctionRow::read).collect();
        for row in function::rows().filter(|row| row.oid != 0) {
            if let Ok(place) = all.binary_search_by_key(&row.oid, |known| known.oid) {
                assert_eq!(all[place].name, row.name, "{}", row.oid);
            }
        }
    }

    #[test]
    fn functions_that_there_are_have_rows() {
        let has = |oid, name| shown().iter().any(|row| row.oid == oid && row.name == name);
        for (oid, name) in [
            (1_317, "length"),
            (870, "lower"),
            (89, "version"),
            (2_108, "sum"),
            (1_299, "now"),
        ] {
            assert!(has(oid, name), "{name}");
        }
        assert!(!shown().iter().any(|row| row.name == "pg_read_file"));
    }
}
