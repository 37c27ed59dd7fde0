//! Sequelize's query for the numbers of all types when it connects.
//!
//! It joins them with the ranges over them, of which there are none: a query of one table has the same answer. It is
//! recognised by its text, blanks apart.

/// Parts of the query for the numbers of all types and of the ranges over them, and the query without ranges.
const SEQUELIZE_PARTS: &[&str] = &[
    "with ranges as ( select pg_range.rngtypid,",
    "from pg_type left outer join ranges on pg_type.oid = ranges.rngsubtype where (pg_type.typtype in('b', 'e'))",
];
const SEQUELIZE_TYPES: &str = "select typname, typtype, oid, typarray, null::text as rngtypname, \
    null::int as rngtypid, null::int as rngtyparray from pg_catalog.pg_type where typtype in ('b', 'e')";

/// A text longer than this is another one.
const TEXT_BYTES_MAX: usize = 2_048;

/// The query in its place, if this is it.
pub(crate) fn recognise(sql: &str) -> Option<&'static str> {
    if sql.len() > TEXT_BYTES_MAX || !sql.contains("typ") || !sql.contains("pg_type") {
        return None;
    }
    let words: Vec<&str> = sql.split_whitespace().collect();
    let text = words.join(" ").to_lowercase();
    SEQUELIZE_PARTS
        .iter()
        .all(|part| text.contains(part))
        .then_some(SEQUELIZE_TYPES)
}
