//! Facts of the columns that expressions read: the table's size and the column's statistics.

use std::sync::Arc;

use crate::catalog::{CatalogView, TableDef, TableKind};
use crate::expr::Expr;
use crate::plan::Node;
use crate::query::{Relation, Rows};
use crate::statistics::{ColumnStatistics, TableStatistics, average_width};
use crate::value::DataType;

/// Rows of a table that nothing is known of.
const UNKNOWN_ROWS: f64 = 1_000.0;

/// Bytes of a page.
const PAGE: f64 = 8_192.0;

/// Bytes of a row beside its values: header, line pointer.
const ROW_HEADER: f64 = 28.0;

/// Distinct values of a column that nothing is known of, if the table has as many rows.
const UNKNOWN_DISTINCT: f64 = 200.0;

/// A table's size and statistics.
#[derive(Debug, Clone)]
pub(crate) struct TableFacts {
    table: Arc<TableDef>,
    /// Rows.
    pub(crate) rows: f64,
    /// Pages of its heap.
    pub(crate) pages: f64,
    statistics: Option<Arc<TableStatistics>>,
}

impl TableFacts {
    /// Those of a table.
    pub(crate) fn of(catalog: &dyn CatalogView, table: &Arc<TableDef>) -> TableFacts {
        let statistics = match table.kind {
            TableKind::Heap { .. } => catalog.statistics(table),
            TableKind::Virtual | TableKind::View => None,
        };
        let counted = catalog.estimated_rows(table).map(|rows| rows as f64);
        let analyzed = statistics.as_ref().map(|statistics| statistics.rows);
        let mut facts = TableFacts {
            table: Arc::clone(table),
            rows: counted.or(analyzed).unwrap_or(UNKNOWN_ROWS).max(1.0),
            pages: 1.0,
            statistics,
        };
        facts.pages = match &facts.statistics {
            Some(found) if found.rows > 0.0 && found.pages > 0 => {
                (f64::from(found.pages) * facts.rows / found.rows).ceil()
            }
            _ => facts.pages_of(facts.rows, 0..table.columns.len() as u16),
        };
        facts
    }

    /// True if the table was analyzed.
    pub(crate) fn is_analyzed(&self) -> bool {
        self.statistics.is_some()
    }

    /// Pages for rows of these columns.
    pub(crate) fn pages_of(&self, rows: f64, columns: impl Iterator<Item = u16>) -> f64 {
        let width: f64 = columns.map(|column| self.width(column)).sum();
        (rows * (width + ROW_HEADER) / PAGE).ceil().max(1.0)
    }

    /// Average bytes of a column's values.
    pub(crate) fn width(&self, column: u16) -> f64 {
        match self.column(column) {
            Some(found) if found.width > 0 => f64::from(found.width),
            _ => {
                let column = self.table.columns.get(usize::from(column));
                column.map_or(8.0, |column| {
                    average_width(column.data_type, column.typmod) as f64
                })
            }
        }
    }

    fn column(&self, number: u16) -> Option<&ColumnStatistics> {
        self.statistics.as_ref()?.column(number)
    }
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    pub(crate) table: Arc<TableFacts>,
    column: u16,
}

impl Fact {
    /// The statistics, if there are any.
    pub(crate) fn statistics(&self) -> Option<&ColumnStatistics> {
        self.table.column(self.column)
    }

    /// True if no two rows have the same value, but for those under a deferrable key until it is checked: an estimate.
    pub(crate) fn is_unique(&self) -> bool {
        let indexes = self.table.table.indexes.iter();
        indexes
            .filter(|index| index.unique)
            .any(|index| index.keys.len() == 1 && index.begins_with(&[self.column]))
    }

    /// The column's type.
    pub(crate) fn data_type(&self) -> Option<DataType> {
        let columns = &self.table.table.columns;
        columns
            .get(usize::from(self.column))
            .map(|column| column.data_type)
    }

    /// Part of the rows that have NULL.
    pub(crate) fn null_fraction(&self) -> f64 {
        self.statistics()
            .map_or(0.0, |found| f64::from(found.null_fraction))
    }

    /// The number of distinct values in the table.
    pub(crate) fn distinct(&self) -> f64 {
        let rows = self.table.rows;
        if self.is_unique() {
            return (rows * (1.0 - self.null_fraction())).max(1.0);
        }
        let found = self.statistics().and_then(|found| found.distinct_in(rows));
        let guess = match self.data_type() {
            Some(DataType::Bool) => 2.0,
            _ => UNKNOWN_DISTINCT,
        };
        found.unwrap_or(guess).min(rows).max(1.0)
    }

    /// True if the number of distinct values is a guess.
    pub(crate) fn is_guessed(&self) -> bool {
        !self.is_unique() && self.statistics().is_none()
    }
}

/// The facts of a row's columns and of the arguments beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    columns: Vec<Option<Fact>>,
    outer: Vec<Option<Fact>>,
}

impl Facts {
    /// Those of a table's row; `arguments` are over a row of which `around` is known.
    pub(crate) fn of_table(table: TableFacts, arguments: &[Expr], around: &Facts) -> Facts {
        let count = table.table.columns.len() as u16;
        let table = Arc::new(table);
        let columns = (0..count).map(|column| {
            Some(Fact {
                table: Arc::clone(&table),
                column,
            })
        });
        Facts {
            columns: columns.collect(),
            outer: arguments
                .iter()
                .map(|argument| around.operand(argument).cloned())
                .collect(),
        }
    }

    /// Those of the row of a FROM that is planned.
    pub(crate) fn of_node(catalog: &dyn CatalogView, node: &Node, width: usize) -> Facts {
        let mut facts = Facts::unknown(width);
        facts.add_node(catalog, node);
        facts
    }

    /// Those of the row of a FROM.
    pub(crate) fn of_relation(catalog: &dyn CatalogView, relation: &Relation) -> Facts {
        let mut facts = Facts::default();
        facts.add_relation(catalog, relation);
        facts
    }

    fn unknown(width: usize) -> Facts {
        Facts {
            columns: vec![None; width],
            outer: Vec::new(),
        }
    }

    fn add_relation(&mut self, catalog: &dyn CatalogView, relation: &Relation) {
        match relation {
            Relation::OneRow => {}
            Relation::Leaf(leaf) => {
                if let Rows::Table(table) = &leaf.rows {
                    self.add_table(catalog, table, leaf.base);
                }
            }
            Relation::Join(join) => {
                self.add_relation(catalog, &join.left);
                self.add_relation(catalog, &join.right);
            }
        }
    }

    fn add_node(&mut self, catalog: &dyn CatalogView, node: &Node) {
        if let Node::Table { scan, base, .. } = node {
            self.add_table(catalog, &scan.table, *base);
        }
        node.each_input(&mut |input| self.add_node(catalog, input));
    }

    fn add_table(&mut self, catalog: &dyn CatalogView, table: &Arc<TableDef>, base: u16) {
        let count = table.columns.len();
        let end = usize::from(base) + count;
        if self.columns.len() < end {
            self.columns.resize(end, None);
        }
        let facts = Arc::new(TableFacts::of(catalog, table));
        for column in 0..count {
            self.columns[usize::from(base) + column] = Some(Fact {
                table: Arc::clone(&facts),
                column: column as u16,
            });
        }
    }

    /// The column that an expression is, as far as its values and their order go.
    pub(crate) fn operand(&self, expr: &Expr) -> Option<&Fact> {
        match expr {
            Expr::Column(column) => self.columns.get(usize::from(*column))?.as_ref(),
            Expr::Outer(number) => self.outer.get(usize::from(*number))?.as_ref(),
            Expr::Cast { input, from, to, .. }
                if (from.is_whole() && to.is_whole()) || (from.is_string() && to.is_string()) =>
            {
                self.operand(input)
            }
            _ => None,
        }
    }

    /// Average bytes of an expression's values.
    pub(crate) fn width(&self, expr: &Expr) -> f64 {
        match self.operand(expr) {
            Some(fact) => fact.table.width(fact.column),
            None => match expr {
                Expr::Constant(value) if !value.is_null() => {
                    crate::statistics::stored_width(value, value.natural_type()) as f64
                }
                _ => 8.0,
            },
        }
    }
}
