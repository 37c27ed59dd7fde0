//! From conditions, order and aggregates to the way a table is read.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::access::{self, AccessPath};
use crate::catalog::{TableDef, TableKind};
use crate::expr::Expr;
use crate::plan::{AggregatePlan, SortKey, TableScan};
pub(crate) use crate::planner::conditions::{all, conjuncts};
use crate::planner::cost::{Costs, ScanChoice};
use crate::planner::facts::{Facts, TableFacts};
use crate::value::ColumnSet;

/// The facts that a scan is planned with.
pub(crate) struct ScanFacts<'f, 'c> {
    pub(crate) costs: Costs<'c>,
    /// The values of `Expr::Outer(n)` in the conditions, over a row of which `around` is known.
    pub(crate) arguments: &'f [Expr],
    pub(crate) around: &'f Facts,
    /// The number of times that the scan will run.
    pub(crate) runs: f64,
}

impl ScanFacts<'_, '_> {
    /// The path for these conditions. One row by its key is found by it; all else goes by cost, where the table was
    /// analyzed or a method is not wanted.
    fn choose(&self, table: &Arc<TableDef>, conditions: &[Expr]) -> access::Choice {
        let settings = &self.costs.settings;
        let facts = OnceCell::new();
        let facts = || {
            facts.get_or_init(|| {
                let of_table = TableFacts::of(self.costs.catalog, table);
                let facts = Facts::of_table(of_table.clone(), self.arguments, self.around);
                (of_table, facts)
            })
        };
        let is_free = settings.index_scans && settings.sequential_scans;
        let by_key = settings.index_scans && access::is_by_key(table, conditions);
        let cost = |path: &AccessPath, rest: &[Expr]| {
            if by_key {
                return None;
            }
            let (of_table, facts) = facts();
            let choice = ScanChoice {
                costs: self.costs,
                table: of_table,
                facts,
                runs: self.runs,
            };
            (of_table.is_analyzed() || !is_free).then(|| choice.cost(table, path, rest))
        };
        access::choose(table, conditions, &cost)
    }
}

/// Chooses how to find the rows that satisfy all conditions. `locks`: rows are locked or changed, so a newer version of
/// one may have to satisfy them too.
pub(crate) fn plan_scan(
    facts: &ScanFacts<'_, '_>,
    table: Arc<TableDef>,
    conditions: Vec<Expr>,
    locks: bool,
) -> TableScan {
    let choice = match table.kind {
        TableKind::Heap { .. } if !conditions.is_empty() => facts.choose(&table, &conditions),
        _ => access::Choice {
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
        late: ColumnSet::new(),
    }
}

/// Adds the columns an expression reads.
pub(crate) fn need(needed: &mut ColumnSet, expr: &Expr) {
    expr.columns(&mut |column| needed.insert(column));
}

/// True if the scan gives this order, or can be made to: an index whose columns, after those that are fixed to one
/// value, are the sort keys. A sequential scan gives way to an index only if `prefers_order`: a
/// LIMIT means that few rows are read, or sorting is not wanted.
pub(crate) fn ordered_by_index(
    scan: &mut TableScan,
    projection: &[Expr],
    sort: &[SortKey],
    prefers_order: bool,
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
            let index = &table.indexes[*index];
            let is_fixed = |column: &u16| (0..prefix.len()).any(|at| index.column(at) == Some(*column));
            wanted.retain(|column| !is_fixed(column));
            if !index.continues_with(prefix.len(), &wanted) {
                return false;
            }
            *reverse = descending;
            true
        }
        AccessPath::Sequential if prefers_order && matches!(table.kind, TableKind::Heap { .. }) => {
            match table.indexes.iter().position(|index| index.begins_with(&wanted)) {
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
        .position(|index| index.begins_with(&[*column]))?;
    Some(AccessPath::Range {
        index,
        prefix: Vec::new(),
        lower: None,
        upper: None,
        skip_nulls: true,
        reverse,
    })
}
