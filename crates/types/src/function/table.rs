//! All functions, by name.
//!
//! A file of functions has a static `ROWS`, which is added to [`TABLES`] by one line.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::row::FunctionRow;
use super::{
    acl, advisory_lock, backend, bits, bytes, catalog, connection, datetime, description, encoding,
    float_states, json, mac, math, monitoring, network, notification, number, objects, privilege, quote,
    recovery, regex, sequence, session, text, transaction, trigonometry, uuid,
};

/// The rows of each file of functions.
static TABLES: &[&[FunctionRow]] = &[
    acl::ROWS,
    advisory_lock::ROWS,
    backend::ROWS,
    bits::ROWS,
    bytes::ROWS,
    catalog::ROWS,
    connection::ROWS,
    datetime::ROWS,
    datetime::interval::ROWS,
    datetime::operators::ROWS,
    datetime::overlaps::TIMES,
    datetime::overlaps::TIMES_WITH_ZONE,
    datetime::overlaps::TIMESTAMPS,
    datetime::overlaps::TIMESTAMPS_WITH_ZONE,
    datetime::time::ROWS,
    description::ROWS,
    encoding::ROWS,
    float_states::ROWS,
    mac::ROWS,
    math::ROWS,
    monitoring::ROWS,
    network::ROWS,
    notification::ROWS,
    number::ROWS,
    objects::ROWS,
    privilege::ROWS,
    quote::ROWS,
    recovery::ROWS,
    regex::ROWS,
    sequence::ROWS,
    session::ROWS,
    text::basic::ROWS,
    text::format::ROWS,
    text::part::ROWS,
    text::unicode::ROWS,
    transaction::ROWS,
    trigonometry::ROWS,
    uuid::ROWS,
];

/// All functions that have a row: what `pg_proc` lists.
pub fn rows() -> impl Iterator<Item = &'static FunctionRow> {
    let tables = TABLES.iter().chain(&json::TABLES);
    tables.flat_map(|rows| rows.iter())
}

/// The functions of this name.
pub(super) fn named(name: &str) -> &'static [&'static FunctionRow] {
    static BY_NAME: LazyLock<HashMap<&str, Vec<&FunctionRow>>> = LazyLock::new(|| {
        let mut by_name: HashMap<&str, Vec<&FunctionRow>> = HashMap::new();
        for row in rows() {
            by_name.entry(row.name).or_default().push(row);
        }
        by_name
    });
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}

/// The functions that are written as this operator.
pub(super) fn operators(symbol: &str) -> &'static [&'static FunctionRow] {
    static BY_SYMBOL: LazyLock<HashMap<&str, Vec<&FunctionRow>>> = LazyLock::new(|| {
        let mut by_symbol: HashMap<&str, Vec<&FunctionRow>> = HashMap::new();
        for row in rows() {
            if let Some(symbol) = row.operator {
                by_symbol.entry(symbol).or_default().push(row);
            }
        }
        by_symbol
    });
    BY_SYMBOL.get(symbol).map_or(&[], Vec::as_slice)
}

/// The names of the arguments of a function of this name, if it may be called by them.
pub fn parameters_of(name: &str) -> Option<&'static [&'static str]> {
    let found = named(name).iter().find(|row| !row.parameters.is_empty());
    found.map(|row| row.parameters)
}
