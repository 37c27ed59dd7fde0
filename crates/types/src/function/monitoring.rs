//! Facts of single objects that monitoring asks for: counts of a table, the age of a transaction, properties of an index.

use super::catalog::{oid_of, text_of};
use super::row::Implementation::{Pure, Session};
use super::row::{FunctionRow, row};
use crate::catalog_facts::{IndexOrder, TableStatistic};
use crate::context::{CountsToReset, SessionFacts};
use crate::error::Result;
use crate::value::DataType::{Bool, Int4, Int8, Oid, Text, TimestampTz, Void, Xid};
use crate::value::Value;

/// A count of a table.
macro_rules! count {
    ($oid:literal, $name:literal, $what:ident) => {
        row(
            $oid,
            $name,
            &[Oid],
            Int8,
            Session(|x, s| statistic(x, s, TableStatistic::$what, Value::Int8)),
        )
        .stable()
    };
}

/// The time of a table's last run.
macro_rules! last {
    ($oid:literal, $name:literal, $what:ident) => {
        row(
            $oid,
            $name,
            &[Oid],
            TimestampTz,
            Session(|x, s| statistic(x, s, TableStatistic::$what, Value::TimestampTz)),
        )
        .stable()
    };
}

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    last!(2781, "pg_stat_get_last_vacuum_time", LastVacuum),
    last!(2782, "pg_stat_get_last_autovacuum_time", LastAutovacuum),
    last!(2783, "pg_stat_get_last_analyze_time", LastAnalyze),
    last!(2784, "pg_stat_get_last_autoanalyze_time", LastAutoanalyze),
    count!(3054, "pg_stat_get_vacuum_count", Vacuums),
    count!(3055, "pg_stat_get_autovacuum_count", Autovacuums),
    count!(3056, "pg_stat_get_analyze_count", Analyzes),
    count!(3057, "pg_stat_get_autoanalyze_count", Autoanalyzes),
    count!(2878, "pg_stat_get_live_tuples", LiveRows),
    count!(2879, "pg_stat_get_dead_tuples", DeadRows),
    count!(3177, "pg_stat_get_mod_since_analyze", ChangedRows),
    count!(1931, "pg_stat_get_tuples_inserted", Inserted),
    count!(1932, "pg_stat_get_tuples_updated", Updated),
    count!(1933, "pg_stat_get_tuples_deleted", Deleted),
    count!(1928, "pg_stat_get_numscans", Scans),
    row(2274, "pg_stat_reset", &[], Void, Session(reset_database)).volatile(),
    row(3775, "pg_stat_reset_shared", &[Text], Void, Session(reset_server)).volatile(),
    row(
        3776,
        "pg_stat_reset_single_table_counters",
        &[Oid],
        Void,
        Session(reset_relation),
    )
    .volatile(),
    // Of PostgreSQL's extension: one function with defaults.
    row(
        0,
        "pg_stat_statements_reset",
        &[],
        Void,
        Session(reset_statements),
    )
    .volatile(),
    row(
        0,
        "pg_stat_statements_reset",
        &[Oid, Oid, Int8],
        Void,
        Session(reset_statements),
    )
    .volatile(),
    row(1181, "age", &[Xid], Int4, Session(age)).stable(),
    // No row is locked by a number that stands for several transactions.
    row(3939, "mxid_age", &[Xid], Int4, Pure(|x| age_before(1, x))).stable(),
    row(
        638,
        "pg_index_column_has_property",
        &[Oid, Int4, Text],
        Bool,
        Session(column_has_property),
    )
    .stable(),
    row(
        637,
        "pg_index_has_property",
        &[Oid, Text],
        Bool,
        Session(index_has_property),
    )
    .stable(),
    row(
        636,
        "pg_indexam_has_property",
        &[Oid, Text],
        Bool,
        Pure(access_method_has_property),
    )
    .stable(),
];

/// A statistic of a table; NULL for one that is not kept, and of what is no table.
fn statistic(
    arguments: &[Value],
    session: &dyn SessionFacts,
    what: TableStatistic,
    value: fn(i64) -> Value,
) -> Result<Value> {
    let found = session.catalog()?.table_statistic(oid_of(&arguments[0])?, what);
    Ok(found.map_or(Value::Null, value))
}

fn reset_database(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    session.reset_counts(CountsToReset::Database)?;
    Ok(Value::text(""))
}

fn reset_server(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    session.reset_counts(CountsToReset::Server(text_of(&arguments[0])?))?;
    Ok(Value::text(""))
}

fn reset_relation(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    session.reset_counts(CountsToReset::Relation(oid_of(&arguments[0])?))?;
    Ok(Value::text(""))
}

/// Forgets the counts of statements.
fn reset_statements(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let number = |at: usize| arguments.get(at).map_or(Ok(0), oid_of);
    let statement = arguments.get(2).and_then(Value::as_i64).unwrap_or(0);
    session.reset_statements(number(0)?, number(1)?, statement)?;
    Ok(Value::text(""))
}

/// The number of transactions since one, which is shown by the low half of its number.
fn age(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    age_before(session.catalog()?.next_transaction() as u32, arguments)
}

fn age_before(next: u32, arguments: &[Value]) -> Result<Value> {
    /// The numbers below it are no transaction's, and older than all.
    const FIRST_NORMAL: u32 = 3;
    let number = oid_of(&arguments[0])?;
    Ok(Value::Int4(match number {
        1 if next == 1 => 0,
        ..FIRST_NORMAL => i32::MAX,
        number => next.wrapping_sub(number).cast_signed(),
    }))
}

/// A property of an index's column. Each index is a B+tree, whose entries come in order both ways and with their NULLs; none
/// answers a query alone.
fn column_has_property(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some(order) = session.catalog()?.index_order(oid_of(&arguments[0])?) else {
        return Ok(Value::Null);
    };
    let number = arguments[1]
        .as_i64()
        .and_then(|number| usize::try_from(number - 1).ok());
    let Some(column) = number.and_then(|number| order.get(number)) else {
        return Ok(Value::Null);
    };
    let of_key = |wanted: fn(&IndexOrder) -> bool| column.as_ref().is_some_and(wanted);
    let has = match text_of(&arguments[2])?.to_ascii_lowercase().as_str() {
        "asc" => of_key(|order| !order.descending),
        "desc" => of_key(|order| order.descending),
        "nulls_first" => of_key(|order| order.nulls_first),
        "nulls_last" => of_key(|order| !order.nulls_first),
        "orderable" | "search_array" | "search_nulls" => of_key(|_| true),
        "distance_orderable" | "returnable" => false,
        _ => return Ok(Value::Null),
    };
    Ok(Value::Bool(has))
}

fn index_has_property(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    if session.catalog()?.index_order(oid_of(&arguments[0])?).is_none() {
        return Ok(Value::Null);
    }
    let property = text_of(&arguments[1])?.to_ascii_lowercase();
    Ok(match property.as_str() {
        "clusterable" | "index_scan" | "bitmap_scan" | "backward_scan" => Value::Bool(true),
        _ => Value::Null,
    })
}

fn access_method_has_property(arguments: &[Value]) -> Result<Value> {
    /// B+trees
    const BTREE: u32 = 403;
    let property = text_of(&arguments[1])?.to_ascii_lowercase();
    let known = [
        "can_order",
        "can_unique",
        "can_multi_col",
        "can_exclude",
        "can_include",
    ];
    Ok(
        match oid_of(&arguments[0])? == BTREE && known.contains(&property.as_str()) {
            // No EXCLUDE constraint is there.
            true => Value::Bool(property != "can_exclude"),
            false => Value::Null,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_transactions_come_around_in_what_is_shown() {
        let age = |next, number| age_before(next, &[Value::Oid(number)]).unwrap();
        assert_eq!(age(1_000, 900), Value::Int4(100));
        assert_eq!(age(10, u32::MAX), Value::Int4(11));
        assert_eq!(age(10, 2), Value::Int4(i32::MAX));
        assert_eq!(age(1, 1), Value::Int4(0));
    }
}
