//! From conditions, order and aggregates to the way a table is read.

use std::sync::Arc;

use crate::access::{self, AccessPath};
use crate::catalog::{TableDef, TableKind};
use crate::expr::Expr;
use crate::plan::{AggregatePlan, SortKey, TableScan};
use crate::value::ColumnSet;

/// The parts of a condition that must all hold.
pub(crate) fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        one => vec![one],
    }
}

/// All of these as one condition.
pub(crate) fn all(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    }
}

/// Chooses how to find the rows that satisfy all conditions. `locks`: rows are locked or changed, so a newer version of
/// one may have to satisfy them too.
pub(crate) fn plan_scan(table: Arc<TableDef>, conditions: Vec<Expr>, locks: bool) -> TableScan {
    let choice = match table.kind {
        TableKind::Heap { .. } => access::choose(&table, &conditions),
        TableKind::Virtual | TableKind::View => access::Choice {
            access: AccessPath::Sequential,
            guaranteed: Vec::new(),
        },
    };
    let left = conditions
        .iter()
        .enumerate()
        .filter(|(at, _)| !choice.guaranteed.contains(at))
        .map(|(_, condition)| condition.clone())
        .collect();
    let filter = all(left);
    let recheck = if locks { all(conditions) } else { None };
    let mut needed = ColumnSet::new();
    for condition in filter.iter().chain(&recheck) {
        need(&mut needed, condition);
    }
    TableScan {
        table,
        access: choice.access,
        filter,
        recheck,
        needed,
    }
}

/// Adds the columns an expression reads.
pub(crate) fn need(needed: &mut ColumnSet, expr: &Expr) {
    expr.columns(&mut |column| needed.insert(column));
}

/// True if the scan gives this order, or can be made to: an index whose columns, after those that are fixed to one
/// value, are the sort keys. A sequential scan gives way to an index only when a LIMIT means few rows are read.
pub(crate) fn ordered_by_index(
    scan: &mut TableScan,
    projection: &[Expr],
    sort: &[SortKey],
    limited: bool,
) -> bool {
    if sort.is_empty() || matches!(scan.access, AccessPath::UniquePoint { .. }) {
        return true;
    }
    let table = scan.table.clone();
    let mut wanted = Vec::with_capacity(sort.len());
    for key in sort {
        let Expr::Column(column) = projection[key.column] else {
            return false;
        };
        // NULLs lie at the end of an index: last going up, first going down.
        let placed = key.nulls_first == key.descending || table.columns[usize::from(column)].not_null;
        if !placed || key.descending != sort[0].descending {
            return false;
        }
        wanted.push(column);
    }
    let descending = sort[0].descending;
    match &mut scan.access {
        AccessPath::Range {
            index,
            prefix,
            reverse,
            ..
        } => {
            let columns = &table.indexes[*index].columns;
            let fixed = &columns[..prefix.len()];
            wanted.retain(|column| !fixed.contains(column));
            if !columns[prefix.len()..].starts_with(&wanted) {
                return false;
            }
            *reverse = descending;
            true
        }
        AccessPath::Sequential if limited && matches!(table.kind, TableKind::Heap { .. }) => {
            match table
                .indexes
                .iter()
                .position(|index| index.columns.starts_with(&wanted))
            {
                Some(index) => {
                    scan.access = access::ordered(index, descending);
                    true
                }
                None => false,
            }
        }
        _ => false,
    }
}

/// `min(c)` or `max(c)` alone over an index that begins with c: its first or last entry.
pub(crate) fn extreme(table: &TableDef, aggregate: &AggregatePlan) -> Option<AccessPath> {
    let [call] = &*aggregate.calls else {
        return None;
    };
    let (name, [Expr::Column(column)], None) = (call.function.name(), &*call.inputs, &call.filter) else {
        return None;
    };
    if !aggregate.keys.is_empty() || table.kind == TableKind::Virtual {
        return None;
    }
    let reverse = match name {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let index = table
        .indexes
        .iter()
        .position(|index| index.columns[0] == *column)?;
    Some(AccessPath::Range {
        index,
        prefix: Vec::new(),
        lower: None,
        upper: None,
        skip_nulls: true,
        reverse,
    })
}
