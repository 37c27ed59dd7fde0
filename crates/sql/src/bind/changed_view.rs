//! Views whose rows can be changed: INSERT, UPDATE and DELETE through them.
//!
//! ```text
//! create view cheap as select id, price * 2 as twice, name from items where price < 5
//!
//! update cheap set name = 'x' where twice > 4      is      update items set name = 'x' where price * 2 > 4 and price < 5
//! ```
//!
//! A view passes changes on if it selects from one table, or from one view that passes them on, row by row: without
//! grouping, DISTINCT, set operations, WITH, LIMIT or functions that give rows. Its columns become expressions over the
//! table's row, and its condition is one more of the statement. A column that is a column of the table can be given a
//! value; any other can be read only.
//!
//! WITH CHECK OPTION is looked at on the row as it is stored, the innermost view first. With CASCADED the conditions of
//! the views below count as if they had it too.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::scope::{Hidden, Names, ScopeColumn, ScopeRelation, Since, Versions, row_type};
use crate::bind::view::{BoundView, query_in};
use crate::bind::view_changes::reason;
use crate::bind::{Binder, Typed};
use crate::catalog::{CatalogView, ColumnDefault, TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::Overriding;
use crate::plan::RowCheck;
use crate::stack::checkpoint;
use crate::view::CheckOption;

/// The number of a view's column that is none of its table.
pub(super) const NO_COLUMN: u16 = u16::MAX;

/// The table that a statement changes, perhaps through a view.
pub(super) struct ChangedRelation {
    pub(super) table: Arc<TableDef>,
    pub(super) alias: Option<String>,
    pub(super) view: Option<Box<ChangedView>>,
    /// OVERRIDING of an INSERT.
    pub(super) overriding: Option<Overriding>,
}

/// A view, as a statement that changes rows through it sees it.
pub(super) struct ChangedView {
    view: Arc<TableDef>,
    columns: Vec<ViewColumn>,
    /// The conditions of the view and of the views below it, over the table's row.
    pub(super) conditions: Vec<Expr>,
    pub(super) checks: Vec<RowCheck>,
    /// Defaults of the view's columns and of the views below it, by columns of the table.
    defaults: Vec<(u16, Expr)>,
}

/// A column of such a view.
struct ViewColumn {
    name: String,
    /// Its value over the table's row.
    typed: Typed,
    /// The table's column, if it is one.
    base: Option<u16>,
}

/// The change that a statement makes to the rows of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
}

impl Change {
    /// The verb, with what follows it before the view; and the same as hints have it.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Change::Insert => ("insert into", "inserting into", "INSERT"),
            Change::Update => ("update", "updating", "UPDATE"),
            Change::Delete => ("delete from", "deleting from", "DELETE"),
        }
    }
}

impl ChangedRelation {
    /// True if a value that is given to a column does not count, since OVERRIDING USER VALUE says so of identities.
    pub(super) fn is_overridden(&self, column: u16) -> bool {
        self.overriding == Some(Overriding::User)
            && self
                .table
                .columns
                .get(usize::from(column))
                .is_some_and(|column| column.is_identity)
    }

    /// The name of the relation that the statement names.
    pub(super) fn name(&self) -> &str {
        self.view
            .as_ref()
            .map_or(&self.table.name, |view| &view.view.name)
    }

    /// The names that expressions see; the table's row is the first of the block's row.
    pub(super) fn names(&self) -> Names {
        let Some(view) = &self.view else {
            return Names::of_table(&self.table, self.alias.clone(), 0);
        };
        let columns = view
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| ScopeColumn {
                name: column.name.clone(),
                typed: column.typed.clone(),
                origin: (view.view.oid, number as i16 + 1),
            });
        Names::of_relation(ScopeRelation {
            alias: self.alias.clone().unwrap_or_else(|| view.view.name.clone()),
            schema: self.alias.is_none().then(|| Arc::clone(&view.view.schema.name)),
            nullable: false,
            present: None,
            hidden: Hidden::default(),
            versions: Versions::None,
            columns: columns.collect(),
            table_oid: 0,
            row_type: row_type(&view.view),
            since: Since::default(),
        })
    }

    /// The view that the statement names, if it is one.
    pub(super) fn view(&self) -> Option<&Arc<TableDef>> {
        self.view.as_ref().map(|view| &view.view)
    }

    /// The conditions that the view adds.
    pub(super) fn conditions(&self) -> Vec<Expr> {
        self.view
            .as_ref()
            .map_or_else(Vec::new, |view| view.conditions.clone())
    }

    /// The conditions on a row as it is stored.
    pub(super) fn checks(&self) -> Option<Box<[RowCheck]>> {
        let checks = &self.view.as_ref()?.checks;
        (!checks.is_empty()).then(|| checks.as_slice().into())
    }

    /// The table's column that a column of the relation is; 0A000 for one that is none.
    pub(super) fn column(&self, name: &str, change: Change) -> Option<Result<u16>> {
        let Some(view) = &self.view else {
            return self.table.column_number(name).map(Ok);
        };
        let found = view.columns.iter().find(|column| column.name == name)?;
        Some(found.base.ok_or_else(|| view.refused_column(name, change)))
    }

    /// The defaults of a view's columns, by columns of the table.
    pub(super) fn own_defaults(&self) -> &[(u16, Expr)] {
        self.view.as_ref().map_or(&[], |view| &view.defaults)
    }

    /// The table's columns in the order of the relation's; `None` in the place of one that cannot be given a value.
    pub(super) fn columns(&self) -> Vec<Option<u16>> {
        match &self.view {
            None => (0..self.table.columns.len() as u16).map(Some).collect(),
            Some(view) => view.columns.iter().map(|column| column.base).collect(),
        }
    }

    /// An error if the column in this place cannot be given a value.
    pub(super) fn require_column(&self, column: u16, place: usize) -> Result<()> {
        if column != NO_COLUMN {
            return Ok(());
        }
        Err(match &self.view {
            Some(view) if place < view.columns.len() => {
                view.refused_column(&view.columns[place].name, Change::Insert)
            }
            _ => EngineError::internal("a column of a table cannot be given a value"),
        })
    }
}

impl ChangedView {
    fn refused_column(&self, name: &str, change: Change) -> EngineError {
        let (verb, _, _) = change.words();
        let verb = if change == Change::Insert { verb } else { "update" };
        EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot {verb} column \"{name}\" of view \"{}\"", self.view.name),
        )
        .with_detail("View columns that are not columns of their base relation are not updatable.")
    }
}

/// An expression over a view's row as one over the row of the table below.
fn over_base(expr: Expr, columns: &[ViewColumn]) -> Result<Expr> {
    checkpoint(|| match expr {
        Expr::Column(number) => match columns.get(usize::from(number)) {
            Some(column) => Ok(column.typed.expr.clone()),
            None => Err(EngineError::internal("a view's condition reads no column of it")),
        },
        other => other.map_children(&mut |child| over_base(child, columns)),
    })
}

impl Binder<'_> {
    /// The relation that a statement changes: a table, or a view that passes changes on.
    pub(super) fn changed_relation(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<String>,
        change: Change,
    ) -> Result<ChangedRelation> {
        let table = self.table(name)?;
        let TableKind::View = table.kind else {
            if table.sequence.is_some() {
                return Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot change sequence \"{}\"", table.name),
                ));
            }
            super::require_heap(&table)?;
            self.note_change(&table, change);
            return Ok(ChangedRelation {
                table,
                alias,
                view: None,
                overriding: None,
            });
        };
        let (base, view) = self.changed_view(&table, change, false)?;
        Ok(ChangedRelation {
            table: base,
            alias,
            view: Some(Box::new(view)),
            overriding: None,
        })
    }

    /// A view over its table. `cascaded`: a view above has WITH CASCADED CHECK OPTION.
    fn changed_view(
        &mut self,
        view: &Arc<TableDef>,
        change: Change,
        cascaded: bool,
    ) -> Result<(Arc<TableDef>, ChangedView)> {
        self.deeper(1, |binder| binder.changed_view_here(view, change, cascaded))
    }

    fn changed_view_here(
        &mut self,
        view: &Arc<TableDef>,
        change: Change,
        cascaded: bool,
    ) -> Result<(Arc<TableDef>, ChangedView)> {
        self.read(view);
        self.note_change(view, change);
        let BoundView {
            statement,
            block,
            binding,
        } = self.bound_view(view)?;
        let query = query_in(super::view::query_of(&statement)?)?;
        let mut why = reason(query, &block);
        let base = match binding.tables.first() {
            Some(named) if why.is_none() => self.catalog.table_numbered(named.table),
            _ => None,
        };
        let base = match base {
            Some(base) if base.kind != TableKind::Virtual => Some(base),
            _ => {
                why = why.or(Some(
                    "Views that do not select from a single table or view are not automatically updatable.",
                ));
                None
            }
        };
        let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
        if why.is_none()
            && change != Change::Delete
            && !block.projection[..block.visible].iter().any(is_column)
        {
            why = Some("Views that have no updatable columns are not automatically updatable.");
        }
        let (Some(base), None) = (base, why) else {
            return Err(not_changeable(view, change, why.unwrap_or_default()));
        };
        let check = view.view.as_ref().and_then(|view| view.check);
        let checked = check.is_some() || cascaded;
        let cascaded = check == Some(CheckOption::Cascaded) || cascaded;
        let own = |number: usize| block.projection[number].clone();
        let columns = view
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| ViewColumn {
                name: column.name.clone(),
                typed: Typed {
                    expr: own(number),
                    data_type: column.data_type,
                    typmod: column.typmod,
                },
                base: match own(number) {
                    Expr::Column(base) => Some(base),
                    _ => None,
                },
            });
        let mut columns: Vec<ViewColumn> = columns.collect();
        let mut conditions = block.conditions;
        let around = self.as_view;
        if let Some(definition) = &view.view {
            self.as_view = self.in_view(view.oid, definition);
        }
        self.note_change(&base, change);
        self.access(&base).whole = true;
        let below = self.changed_below(&base, change, cascaded, &mut columns, &mut conditions);
        self.as_view = around;
        let (table, below) = below?;
        let (mut all, mut checks, mut defaults) = below.map_or_else(Default::default, |below| {
            (below.conditions, below.checks, below.defaults)
        });
        for (column, def) in columns.iter().zip(&view.columns) {
            if let (Some(base), Some(ColumnDefault::Expression { expr, .. })) = (column.base, &def.default) {
                defaults.retain(|(of, _)| *of != base);
                defaults.push((base, expr.clone()));
            }
        }
        if checked && !conditions.is_empty() {
            checks.push(RowCheck {
                view: view.name.clone(),
                conditions: conditions.clone(),
            });
        }
        all.extend(conditions);
        Ok((
            table,
            ChangedView {
                view: Arc::clone(view),
                columns,
                conditions: all,
                checks,
                defaults,
            },
        ))
    }

    /// The table below a view, and the view between them if there is one; columns and conditions are over the table then.
    fn changed_below(
        &mut self,
        base: &Arc<TableDef>,
        change: Change,
        cascaded: bool,
        columns: &mut [ViewColumn],
        conditions: &mut Vec<Expr>,
    ) -> Result<(Arc<TableDef>, Option<ChangedView>)> {
        if base.kind != TableKind::View {
            return Ok((Arc::clone(base), None));
        }
        let (table, below) = self.changed_view(base, change, cascaded)?;
        for column in columns {
            let base = column
                .base
                .and_then(|number| below.columns.get(usize::from(number)));
            column.base = base.and_then(|base| base.base);
            let expr = std::mem::replace(&mut column.typed.expr, Expr::Column(0));
            column.typed.expr = over_base(expr, &below.columns)?;
        }
        let over = std::mem::take(conditions).into_iter();
        *conditions = over
            .map(|expr| over_base(expr, &below.columns))
            .collect::<Result<_>>()?;
        Ok((table, Some(below)))
    }
}

/// 55000 for a view that passes no changes on.
fn not_changeable(view: &TableDef, change: Change, why: &str) -> EngineError {
    let (verb, doing, word) = change.words();
    EngineError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot {verb} view \"{}\"", view.name),
    )
    .with_detail(why)
    .with_hint(format!(
        "To enable {doing} the view, provide an INSTEAD OF {word} trigger or an unconditional ON {word} DO INSTEAD rule."
    ))
}

/// True for each column of a relation that can be given a value; `None` if no rows of it can be changed.
pub fn changeable_columns(table: &TableDef, catalog: &dyn CatalogView) -> Option<Vec<bool>> {
    match table.kind {
        TableKind::Virtual => None,
        TableKind::Heap { .. } => Some(vec![true; table.columns.len()]),
        TableKind::View => {
            let view = catalog.table_numbered(table.oid)?;
            let check = || Ok(());
            let mut binder = Binder::new(super::Place::of("", 0), &[], catalog, &[], &check);
            let (_, changed) = binder.changed_view(&view, Change::Update, false).ok()?;
            Some(
                changed
                    .columns
                    .iter()
                    .map(|column| column.base.is_some())
                    .collect(),
            )
        }
    }
}
