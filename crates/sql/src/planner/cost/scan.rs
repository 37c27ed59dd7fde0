//! Reading a table, from end to end or by an index.
//!
//! # Pages
//! From end to end: all of them, in sequence. By an index: its own pages in the range, at random, and the pages of the heap
//! that the rows found lie on. How many these are depends on the correlation of the index's order with the table's: between
//! the rows' part of the table, in sequence (correlation 1), and one page for each row at random (correlation 0), where a
//! page that has been read is found again as long as the cache holds it (Mackert and Lohman 1989). The square of the
//! correlation says how far towards the first. An index scan that runs many times, for the rows of another table, finds
//! pages of earlier runs: the pages of all runs are counted together, and shared out.

use super::{Cost, Costs, at_least_one};
use crate::access::AccessPath;
use crate::catalog::TableDef;
use crate::expr::{CompareOp, Expr};
use crate::plan::TableScan;
use crate::planner::facts::{Facts, TableFacts};
use crate::settings::NOT_WANTED;
use crate::value::DataType;

/// Entries of an index's page that are filled.
const FILLED: f64 = 0.7;

/// Bytes of an index entry beside its key.
const ENTRY: f64 = 16.0;

/// Bytes of a key's part that is an expression.
const EXPRESSION: f64 = 16.0;

/// Operators that going down one level of a tree counts as.
const LEVEL: f64 = 50.0;

/// The facts that a table's access path is chosen by.
pub(crate) struct ScanChoice<'s, 'c> {
    pub(crate) costs: Costs<'c>,
    pub(crate) table: &'s TableFacts,
    pub(crate) facts: &'s Facts,
    /// The number of times that the scan will run.
    pub(crate) runs: f64,
}

impl ScanChoice<'_, '_> {
    /// The cost of a path with the conditions that it leaves.
    pub(crate) fn cost(&self, table: &TableDef, access: &AccessPath, rest: &[Expr]) -> f64 {
        let found = self
            .costs
            .access(self.table, table, access, self.facts, self.runs);
        let conditions: f64 = rest
            .iter()
            .map(|condition| self.costs.of_condition(condition))
            .sum();
        found.total + found.rows * conditions
    }
}

impl Costs<'_> {
    /// A scan that runs so many times, over a row of which `around` is known.
    pub(crate) fn scan(&self, scan: &TableScan, arguments: &[Expr], around: &Facts, runs: f64) -> Cost {
        let table = TableFacts::of(self.catalog, &scan.table);
        let facts = Facts::of_table(table.clone(), arguments, around);
        let width = scan.needed.iter().map(|column| table.width(column)).sum();
        let found = Cost {
            width,
            ..self.access(&table, &scan.table, &scan.access, &facts, runs)
        };
        let Some(filter) = &scan.filter else { return found };
        // The bounds of the path and the conditions behind it belong together: a range has two ends.
        let mut conditions = conditions_of(&scan.table, &scan.access);
        conditions.push(filter.clone());
        let flat: Vec<Expr> = conditions
            .into_iter()
            .flat_map(crate::planner::conditions::conjuncts)
            .collect();
        Cost {
            total: found.total + found.rows * self.of_condition(filter),
            rows: self.rows_of(&table, &scan.access, facts.selectivity_of_all(&flat)),
            ..found
        }
    }

    fn rows_of(&self, table: &TableFacts, access: &AccessPath, part: f64) -> f64 {
        let rows = table.rows * part;
        match access {
            AccessPath::UniquePoint { .. } | AccessPath::CurrentOf(_) => rows.min(1.0),
            _ => rows,
        }
    }

    /// The rows that a path finds, before the conditions behind it.
    fn access(
        &self,
        table: &TableFacts,
        definition: &TableDef,
        access: &AccessPath,
        facts: &Facts,
        runs: f64,
    ) -> Cost {
        let settings = &self.settings;
        let Some(index) = access.index() else {
            let wanted = if settings.sequential_scans {
                0.0
            } else {
                NOT_WANTED
            };
            return Cost {
                startup: wanted,
                total: wanted + table.pages * settings.sequential_page + table.rows * settings.row,
                rows: table.rows,
                width: 0.0,
            };
        };
        let conditions = conditions_of(definition, access);
        let part = facts.selectivity_of_all(&conditions);
        let rows = self.rows_of(table, access, part);
        let descents = match access {
            AccessPath::Points { values, .. } => values.len() as f64,
            _ => 1.0,
        };
        let index = &definition.indexes[index];
        let width = |at: usize| index.column(at).map_or(EXPRESSION, |column| table.width(column));
        let key: f64 = (0..index.keys.len()).map(width).sum();
        let entered = match &index.predicate {
            None => 1.0,
            Some(predicate) => facts.selectivity_of_all(std::slice::from_ref(&predicate.expr)),
        };
        let index_pages = (table.rows * entered * (key + ENTRY) / (8_192.0 * FILLED))
            .ceil()
            .max(1.0);
        let read = (index_pages * (part / entered.max(f64::MIN_POSITIVE)).min(1.0))
            .ceil()
            .max(1.0);
        let entries = at_least_one(rows);
        let height = if index_pages > 1.0 {
            index_pages.log(300.0).ceil()
        } else {
            0.0
        };
        let down = (table.rows.max(2.0).log2().ceil() + (height + 1.0) * LEVEL) * settings.operator;
        let own_pages = if runs > 1.0 {
            self.pages_at_random(read * runs, index_pages, table.pages + index_pages) / runs
        } else {
            read
        };
        let own = own_pages * settings.random_page
            + descents * down
            + entries * (settings.index_entry + conditions.len() as f64 * settings.operator);
        let heap = self.heap_pages(table, index.column(0), facts, entries, part, index_pages, runs);
        let wanted = if settings.index_scans { 0.0 } else { NOT_WANTED };
        let startup = wanted + down;
        Cost {
            startup,
            total: wanted + own + heap + entries * settings.row,
            rows,
            width: 0.0,
        }
    }

    /// The cost of the heap's pages of an index scan.
    #[expect(clippy::too_many_arguments, reason = "all are numbers of one formula")]
    fn heap_pages(
        &self,
        table: &TableFacts,
        column: Option<u16>,
        facts: &Facts,
        entries: f64,
        part: f64,
        index_pages: f64,
        runs: f64,
    ) -> f64 {
        let settings = &self.settings;
        let all = table.pages + index_pages;
        let at_random = self.pages_at_random(entries * runs, table.pages, all) / runs;
        let most = at_random * settings.random_page;
        let together = (part * table.pages).ceil().max(1.0);
        let least = if runs > 1.0 {
            self.pages_at_random(together * runs, table.pages, all) / runs * settings.random_page
        } else {
            settings.random_page + (together - 1.0) * settings.sequential_page
        };
        let fact = column.and_then(|column| facts.operand(&Expr::Column(column)));
        let correlation = fact
            .and_then(|fact| fact.statistics())
            .and_then(|found| found.correlation);
        let correlation = f64::from(correlation.unwrap_or(0.0));
        most + correlation * correlation * (least.min(most) - most)
    }

    /// Pages that are read when rows are fetched at random from so many pages, with a cache that these share with `all`.
    fn pages_at_random(&self, rows: f64, pages: f64, all: f64) -> f64 {
        let cache = (self.settings.cached_pages * pages / all.max(1.0))
            .ceil()
            .max(1.0);
        let read = 2.0 * pages * rows / (2.0 * pages + rows);
        if pages <= cache {
            return read.min(pages).ceil();
        }
        // So many rows fill the cache; behind them each finds its page with the probability that it is there.
        let filling = 2.0 * pages * cache / (2.0 * pages - cache);
        match rows <= filling {
            true => read.ceil(),
            false => (cache + (rows - filling) * (pages - cache) / pages).ceil(),
        }
    }
}

/// The conditions that a path guarantees, over the table's row.
pub(crate) fn conditions_of(table: &TableDef, access: &AccessPath) -> Vec<Expr> {
    let Some(number) = access.index() else {
        return Vec::new();
    };
    let index = &table.indexes[number];
    let compare = |at: usize, op: CompareOp, value: &Expr| Expr::Compare {
        op,
        left: Box::new(index.key_expr(at)),
        right: Box::new(value.clone()),
        data_type: index.types[at],
    };
    match access {
        AccessPath::Sequential | AccessPath::CurrentOf(_) => Vec::new(),
        AccessPath::UniquePoint { key, .. } => {
            let key = key.iter().enumerate();
            key.map(|(at, value)| compare(at, CompareOp::Equal, value))
                .collect()
        }
        AccessPath::Points { values, .. } => vec![one_of(index.key_expr(0), index.types[0], values)],
        AccessPath::Range {
            prefix,
            lower,
            upper,
            skip_nulls,
            ..
        } => {
            let fixed = prefix.iter().enumerate();
            let mut all: Vec<Expr> = fixed
                .map(|(at, value)| compare(at, CompareOp::Equal, value))
                .collect();
            let next = prefix.len();
            if let Some(bound) = lower {
                let op = if bound.inclusive {
                    CompareOp::GreaterOrEqual
                } else {
                    CompareOp::Greater
                };
                all.push(compare(next, op, &bound.expr));
            }
            if let Some(bound) = upper {
                let op = if bound.inclusive {
                    CompareOp::LessOrEqual
                } else {
                    CompareOp::Less
                };
                all.push(compare(next, op, &bound.expr));
            }
            if *skip_nulls {
                all.push(Expr::IsNull {
                    input: Box::new(index.key_expr(next)),
                    negated: true,
                });
            }
            all
        }
    }
}

fn one_of(input: Expr, data_type: DataType, values: &[Expr]) -> Expr {
    let input = Box::new(input);
    match values {
        [Expr::Constant(array)] if array.natural_type().is_array() => Expr::Quantified {
            op: CompareOp::Equal,
            all: false,
            input,
            array: Box::new(Expr::Constant(array.clone())),
            data_type,
        },
        _ => Expr::InList {
            input,
            list: values.to_vec(),
            data_type,
            negated: false,
        },
    }
}
