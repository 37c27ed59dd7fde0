//! The names that an expression can see, and how a name leads out of a query.
//!
//! # Frames
//! A query inside another has a *frame*: the scope around it, and the arguments it is given. A name that its own FROM
//! does not have is looked up in the frames around, from the inside out. What is found there becomes an argument of
//! each frame on the way back in:
//!
//! ```text
//! select (select (select t.a) from u) from t      in the innermost query  Outer(0) = argument 0 of its frame: Outer(0)
//!                                                 in the middle one       Outer(0) = argument 0 of its frame: Column(0)
//! ```
//!
//! A query in FROM without LATERAL has a frame too, whose scope is empty: the relations beside it are not seen.

use std::sync::Arc;

use crate::aggregate::AggregateCall;
use crate::bind::window_calls::Windows;
use crate::bind::{Binder, Presence, Typed};
use crate::catalog::{FIRST_OID, TableDef};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::system_column;
use crate::plan::{JoinKind, SetCall};
use crate::search_path::PG_TEMP;
use crate::value::user_type::{ROW_TYPE_OFFSET, of_oid};
use crate::value::{DataType, Value};

/// A column that expressions can name.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    pub(super) name: String,
    /// Its value over the block's row.
    pub(super) typed: Typed,
    /// The table and the column's number in it, from 1, if it comes from a table unchanged; zeros if not.
    pub(super) origin: (u32, i16),
}

/// A relation that a qualified name can name.
#[derive(Debug, Clone)]
pub(super) struct ScopeRelation {
    pub(super) alias: String,
    /// The schema, of a table without an alias.
    pub(super) schema: Option<Arc<str>>,
    pub(super) columns: Vec<ScopeColumn>,
    /// The table, if it is one.
    pub(super) table_oid: u32,
    /// The composite type of its rows, if it is a table or a view.
    pub(super) row_type: Option<DataType>,
    /// True if an outer join may put NULLs in place of its rows.
    pub(super) nullable: bool,
    /// A column that is NULL only where an outer join has no row of this relation, if one is known.
    pub(super) present: Option<Expr>,
    /// Its last columns, if `*` does not mean them.
    pub(super) hidden: Hidden,
    /// Its system columns.
    pub(super) versions: Versions,
    pub(super) since: Since,
}

/// Changes of a relation since the stored query that reads it.
#[derive(Debug, Clone, Default)]
pub(super) struct Since {
    /// Columns that were added: a whole row has them, and no name in the query means one.
    pub(super) added: Vec<ScopeColumn>,
    /// Columns that the query calls by a name of before: the place, and the name of now.
    pub(super) renamed: Vec<(usize, String)>,
}

/// The system columns of a relation, which are those of the versions of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Versions {
    /// It has none.
    #[default]
    None,
    /// It has some, and no column of the block's row tells the places of versions: see [`Presence`].
    Untold,
    /// This column tells the places.
    Told(u16),
    /// Of the row that an INSERT has stored: this column tells its place, and the next the transaction that has locked it,
    /// for ON CONFLICT DO UPDATE locks what it updates.
    Stored(u16),
}

/// The last columns of a recursive query's working table, which SEARCH and CYCLE have added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Hidden {
    /// The number of the working table; 0 for any other relation.
    pub(super) working: usize,
    /// Number of the columns.
    pub(super) count: usize,
}

impl ScopeRelation {
    /// The columns that `*` means.
    pub(super) fn shown_columns(&self) -> &[ScopeColumn] {
        &self.columns[..self.columns.len() - self.hidden.count]
    }

    /// Its columns, and those that were added since the query was stored.
    pub(super) fn all_columns(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.columns.iter().chain(&self.since.added)
    }

    /// The name of now of the column at this place.
    pub(super) fn name_now(&self, place: usize) -> &str {
        let mut renamed = self.since.renamed.iter();
        match renamed.find(|(at, _)| *at == place) {
            Some((_, name)) => name,
            None => &self.columns[place].name,
        }
    }

    /// The others.
    pub(super) fn hidden_columns(&self) -> &[ScopeColumn] {
        &self.columns[self.columns.len() - self.hidden.count..]
    }

    /// A column that a condition compares.
    fn compared_column(&self, on: &[Expr]) -> Option<Expr> {
        let own = |expr: &Expr| self.columns.iter().any(|column| column.typed.expr == *expr);
        on.iter().find_map(|condition| match condition {
            Expr::Compare { left, right, .. } => [left, right]
                .into_iter()
                .find(|side| own(side))
                .map(|side| (**side).clone()),
            _ => None,
        })
    }

    /// The value for each of its rows, and NULL where an outer join has none.
    pub(super) fn where_present(&self, value: Expr, what: &str) -> Result<Expr> {
        match &self.present {
            _ if !self.nullable => Ok(value),
            Some(present) => Ok(Expr::Case {
                branches: vec![(
                    Expr::IsNull {
                        input: Box::new(present.clone()),
                        negated: true,
                    },
                    value,
                )],
                otherwise: Box::new(Expr::Constant(Value::Null)),
            }),
            None => Err(EngineError::not_supported(format!(
                "{what} of \"{}\", whose rows an outer join may lack,",
                self.alias
            ))),
        }
    }

    /// A system column; `None` if it has none of that name.
    fn system_column(&self, name: &str) -> Result<Option<Found>> {
        if name == "tableoid" && self.table_oid != 0 {
            return self.table_number().map(Found::Column).map(Some);
        }
        let Some(function) = system_column(name) else {
            return Ok(None);
        };
        let place = match self.versions {
            Versions::None => return Ok(None),
            Versions::Untold => return Ok(Some(Found::Untold)),
            Versions::Told(place) | Versions::Stored(place) => Expr::Column(place),
        };
        let data_type = function.row().result;
        let expr = match (self.versions, data_type) {
            (Versions::Stored(place), _) if name == "xmax" => Expr::Column(place + 1),
            (_, DataType::Tid) => Expr::Call {
                function,
                arguments: vec![place],
            },
            _ => Expr::Call {
                function,
                arguments: vec![place, Expr::Constant(Value::Oid(self.table_oid))],
            },
        };
        Ok(Some(Found::Column(ScopeColumn {
            name: name.to_owned(),
            typed: Typed::new(expr, data_type),
            origin: (0, 0),
        })))
    }

    /// The system column `tableoid`: the number of the row's table.
    fn table_number(&self) -> Result<ScopeColumn> {
        let number = Expr::Constant(Value::Oid(self.table_oid));
        let expr = self.where_present(number, "tableoid")?;
        Ok(ScopeColumn {
            name: "tableoid".to_owned(),
            typed: Typed::new(expr, DataType::Oid),
            origin: (0, 0),
        })
    }
}

/// The names of a FROM, or of a part of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) relations: Vec<ScopeRelation>,
    /// The columns that a name without qualifier can mean, in the order of `*`.
    pub(super) visible: Vec<ScopeColumn>,
}

impl Names {
    pub(super) fn of_relation(relation: ScopeRelation) -> Names {
        Names {
            visible: relation.shown_columns().to_vec(),
            relations: vec![relation],
        }
    }

    /// The names of a table; `base`: its first column in the block's row.
    pub(super) fn of_table(table: &TableDef, alias: Option<String>, base: u16) -> Names {
        let heap = matches!(table.kind, crate::catalog::TableKind::Heap { .. });
        let columns = table
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| ScopeColumn {
                name: column.name.clone(),
                typed: Typed {
                    expr: Expr::Column(base + number as u16),
                    data_type: column.data_type,
                    typmod: column.typmod,
                },
                origin: if heap {
                    (table.oid, table.attribute_number(number as u16).cast_signed())
                } else {
                    (0, 0)
                },
            });
        Names::of_relation(ScopeRelation {
            schema: alias.is_none().then(|| Arc::clone(&table.schema.name)),
            alias: alias.unwrap_or_else(|| table.name.clone()),
            columns: columns.collect(),
            table_oid: table.oid,
            row_type: row_type(table),
            nullable: false,
            present: table
                .columns
                .iter()
                .position(|column| column.not_null)
                .map(|number| Expr::Column(base + number as u16)),
            hidden: Hidden::default(),
            versions: Versions::None,
            since: Since::default(),
        })
    }

    /// Both: of two entries of FROM.
    pub(super) fn and(mut self, other: Names) -> Names {
        self.relations.extend(other.relations);
        self.visible.extend(other.visible);
        self
    }

    /// Marks the relations whose rows a join of this kind may lack; the first `of_left` are those of its left side.
    /// A column of `on` that such a relation is compared by is NULL only where it has no row: a comparison with NULL
    /// finds none.
    pub(super) fn mark_nullable(&mut self, kind: JoinKind, of_left: usize, on: &[Expr]) {
        let (left, right) = self.relations.split_at_mut(of_left);
        let (left_lacks, right_lacks) = match kind {
            JoinKind::Left => (false, true),
            JoinKind::Right => (true, false),
            JoinKind::Full => (true, true),
            JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => (false, false),
        };
        let both = left_lacks && right_lacks;
        for (relations, lacks) in [(left, left_lacks), (right, right_lacks)] {
            for relation in relations.iter_mut().filter(|_| lacks) {
                if !relation.nullable && !both && relation.present.is_none() {
                    relation.present = relation.compared_column(on);
                }
                relation.nullable = true;
            }
        }
    }

    /// True if a query that is stored calls a column by this name, which it had before.
    pub(super) fn has_old_name(&self, name: &str) -> bool {
        self.relations.iter().any(|relation| {
            let mut renamed = relation.since.renamed.iter();
            renamed.any(|(place, _)| relation.columns[*place].name == name)
        })
    }

    /// True if a column without qualifier has this name.
    pub(super) fn has_column(&self, name: &str) -> bool {
        self.visible.iter().any(|column| column.name == name)
    }
}

/// A relation that a FROM names, whether it is in sight or not.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) alias: String,
    /// The name of the table, if it is one.
    pub(super) table: Option<String>,
}

/// The names that an expression can see.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) names: Names,
    /// The clause, for errors.
    pub(super) clause: &'static str,
    pub(super) aggregates: Aggregates,
    pub(super) windows: Windows,
    /// The calls of functions that give rows, where there may be any: in a select list. They become a leaf of FROM,
    /// whose first column this is.
    pub(super) sets: Option<(u16, Vec<SetCall>)>,
    /// The error for such a call inside an expression that may have none.
    pub(super) sets_refused: Option<&'static str>,
}

/// The treatment of an aggregate call.
#[derive(Debug, Default)]
pub(super) enum Aggregates {
    /// Refuse it.
    #[default]
    Refused,
    /// Collect it; its number stands for it until grouping puts it in its place.
    Collected(Vec<AggregateCall>),
}

impl Scope {
    pub(super) fn empty(clause: &'static str) -> Scope {
        Scope::of(Names::default(), clause)
    }

    /// True if an aggregate was collected.
    pub(super) fn has_aggregates(&self) -> bool {
        matches!(&self.aggregates, Aggregates::Collected(calls) if !calls.is_empty())
    }

    /// The clause, if it may have no query inside it: there is no statement that would run it.
    pub(super) fn without_queries(&self) -> Option<&'static str> {
        Some(self.clause).filter(|clause| matches!(*clause, "DEFAULT expressions" | "EXECUTE parameters"))
    }

    pub(super) fn of(names: Names, clause: &'static str) -> Scope {
        Scope {
            names,
            clause,
            aggregates: Aggregates::Refused,
            windows: Windows::Refused,
            sets: None,
            sets_refused: None,
        }
    }
}

/// A query inside another, while it is bound.
#[derive(Debug)]
pub(super) struct Frame {
    /// The names around it.
    scope: Names,
    /// Its arguments, over the row around it.
    arguments: Vec<Expr>,
    /// The aggregates of the query around it.
    pub(super) aggregates: Aggregates,
    /// The clause that it stands in.
    pub(super) clause: &'static str,
}

impl Frame {
    /// Number of its arguments.
    pub(super) fn argument_count(&self) -> usize {
        self.arguments.len()
    }

    /// Leaves these arguments only, the first.
    pub(super) fn forget_arguments(&mut self, kept: usize) {
        self.arguments.truncate(kept);
    }

    /// An expression of the query inside, which reads its arguments only, over the row around it.
    pub(super) fn over_its_row(&self, expr: Expr) -> Result<Expr> {
        match expr {
            Expr::Outer(number) => self
                .arguments
                .get(usize::from(number))
                .cloned()
                .ok_or_else(|| EngineError::internal("an argument of a query was lost")),
            other => other.map_children(&mut |child| self.over_its_row(child)),
        }
    }

    /// The argument of this value; a new one if there is none.
    pub(super) fn argument(&mut self, value: Expr) -> Expr {
        let at = self.arguments.iter().position(|known| *known == value);
        let at = at.unwrap_or_else(|| {
            self.arguments.push(value);
            self.arguments.len() - 1
        });
        Expr::Outer(at as u16)
    }
}

/// The relation in front of a column, as it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Qualifier<'q> {
    pub(super) schema: Option<&'q str>,
    pub(super) relation: &'q str,
}

impl Qualifier<'_> {
    fn names(&self, relation: &ScopeRelation) -> bool {
        let in_schema = |schema: &str| match relation.schema.as_deref() {
            Some(known) => known == schema || schema == PG_TEMP && known.starts_with("pg_temp_"),
            None => false,
        };
        relation.alias == self.relation && self.schema.is_none_or(in_schema)
    }
}

/// The type of a relation's rows; a sequence has none, and those of the catalogs are records: clients that ask for all types
/// would ask for hundreds of theirs.
pub(super) fn row_type(table: &TableDef) -> Option<DataType> {
    match table.sequence {
        None if table.oid >= FIRST_OID => of_oid(table.oid + ROW_TYPE_OFFSET),
        _ => None,
    }
}

/// The outcome of looking for a name among some.
enum Found {
    Column(ScopeColumn),
    /// A system column of versions whose places are not told.
    Untold,
    /// There is a relation of the qualifier's name, and it has no such column.
    NoColumn,
    Nothing,
}

impl Binder<'_> {
    /// Binds a query in FROM: `names` are those it may see around it. With the result come the arguments that it needs.
    pub(super) fn inside<T>(
        &mut self,
        names: Names,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Expr>)> {
        let mut scope = Scope::of(names, "FROM clause of their own query level");
        self.inside_expression(&mut scope, bind)
    }

    /// Binds a query inside an expression of this scope. With the result come the arguments that it needs.
    pub(super) fn inside_expression<T>(
        &mut self,
        scope: &mut Scope,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Expr>)> {
        self.frames.push(Frame {
            scope: scope.names.clone(),
            arguments: Vec::new(),
            aggregates: std::mem::take(&mut scope.aggregates),
            clause: scope.clause,
        });
        let bound = bind(self);
        let frame = self.frames.pop();
        let frame = frame.ok_or_else(|| EngineError::internal("a query's frame was lost"))?;
        scope.aggregates = frame.aggregates;
        Ok((bound?, frame.arguments))
    }

    /// Notes that a place of a version is missing: the statement is bound again, with all of them. Then a relation that
    /// still has none has no such column.
    fn miss_place(&mut self, name: &str, position: Option<u32>) -> Result<bool> {
        if self.presence.get() == Presence::Told {
            return Ok(true);
        }
        self.presence.set(Presence::Missed);
        let message = format!("column \"{name}\" does not exist");
        Err(EngineError::new(SqlState::UNDEFINED_COLUMN, message).or_position(position))
    }

    /// The column of this name, in the scope or around it; `None` if there is none and a function may be meant.
    pub(super) fn resolve(
        &mut self,
        qualifier: Option<Qualifier<'_>>,
        name: &str,
        names: &Names,
        position: Option<u32>,
    ) -> Result<Option<ScopeColumn>> {
        let mut no_column = false;
        match find(qualifier, name, names).map_err(|error| error.or_position(position))? {
            Found::Column(column) => {
                self.note_column(&column);
                self.note_found(&column, names, 0);
                return Ok(Some(column));
            }
            Found::NoColumn => no_column = true,
            Found::Untold => no_column = self.miss_place(name, position)?,
            Found::Nothing => {}
        }
        for level in (0..self.frames.len()).rev() {
            if no_column {
                break;
            }
            match find(qualifier, name, &self.frames[level].scope)
                .map_err(|error| error.or_position(position))?
            {
                Found::Column(mut column) => {
                    self.note_column(&column);
                    if self.view.is_some() {
                        let names = self.frames[level].scope.clone();
                        self.note_found(&column, &names, self.frames.len() - level);
                    }
                    for frame in &mut self.frames[level..] {
                        column.typed.expr = frame.argument(column.typed.expr);
                    }
                    return Ok(Some(column));
                }
                Found::NoColumn => no_column = true,
                Found::Untold => no_column = self.miss_place(name, position)?,
                Found::Nothing => {}
            }
        }
        match qualifier {
            Some(qualifier) if !no_column => Err(self
                .missing_entry(qualifier.relation, names)
                .or_position(position)),
            _ => Ok(None),
        }
    }

    /// 42P01 for a qualifier that nothing in sight has.
    pub(super) fn missing_entry(&self, name: &str, names: &Names) -> EngineError {
        let named = |entry: &&Entry| entry.alias == name || entry.table.as_deref() == Some(name);
        let Some(entry) = self.entries.iter().rev().find(named) else {
            return EngineError::new(
                SqlState::UNDEFINED_TABLE,
                format!("missing FROM-clause entry for table \"{name}\""),
            );
        };
        let in_sight = |names: &Names| names.relations.iter().any(|known| known.alias == entry.alias);
        let is_seen = in_sight(names) || self.frames.iter().any(|frame| in_sight(&frame.scope));
        let hint = match entry.alias != name && is_seen {
            true => format!(
                "Perhaps you meant to reference the table alias \"{}\".",
                entry.alias
            ),
            false => format!(
                "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
                entry.alias
            ),
        };
        EngineError::new(
            SqlState::UNDEFINED_TABLE,
            format!("invalid reference to FROM-clause entry for table \"{name}\""),
        )
        .with_hint(hint)
    }

    /// Binds a query; the relations that its FROM names are forgotten with it.
    pub(super) fn with_entries<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.entries.len();
        let bound = bind(self);
        self.entries.truncate(before);
        bound
    }
}

impl Binder<'_> {
    /// Notes a column that a view's query reads.
    #[inline]
    pub(super) fn note_column(&mut self, column: &ScopeColumn) {
        self.note_selected(column.origin);
        if let Some(view) = &mut self.view {
            view.note_column(column.origin);
        }
    }

    /// The relation that a name in front of a column means, with the number of frames out from this query: none if it
    /// is its own.
    pub(super) fn relation_of(
        &self,
        qualifier: Qualifier<'_>,
        names: &Names,
    ) -> Option<(ScopeRelation, usize)> {
        let of = |names: &Names| {
            names
                .relations
                .iter()
                .find(|known| qualifier.names(known))
                .cloned()
        };
        if let Some(found) = of(names) {
            return Some((found, 0));
        }
        let mut levels = (0..self.frames.len()).rev();
        levels.find_map(|level| Some((of(&self.frames[level].scope)?, self.frames.len() - level)))
    }

    /// A value of a query so many frames out, as an argument of this one.
    pub(super) fn value_from_around(&mut self, value: Expr, out: usize) -> Expr {
        let level = self.frames.len() - out;
        self.frames[level..]
            .iter_mut()
            .fold(value, |value, frame| frame.argument(value))
    }

    /// The columns of `relation.*`, of this query or of one around it.
    pub(super) fn all_of(&mut self, relation: Qualifier<'_>, names: &Names) -> Option<Vec<ScopeColumn>> {
        let of = |names: &Names| -> Option<Vec<ScopeColumn>> {
            let found = names.relations.iter().find(|known| relation.names(known));
            found.map(|found| found.shown_columns().to_vec())
        };
        if let Some(columns) = of(names) {
            return Some(columns);
        }
        for level in (0..self.frames.len()).rev() {
            if let Some(mut columns) = of(&self.frames[level].scope) {
                for column in &mut columns {
                    for frame in &mut self.frames[level..] {
                        let value = std::mem::replace(&mut column.typed.expr, Expr::Constant(Value::Null));
                        column.typed.expr = frame.argument(value);
                    }
                }
                return Some(columns);
            }
        }
        None
    }
}

fn find(qualifier: Option<Qualifier<'_>>, name: &str, names: &Names) -> Result<Found> {
    let Some(qualifier) = qualifier else {
        if let Some(column) = only(name, names.visible.iter())? {
            return Ok(Found::Column(column));
        }
        let mut found = Found::Nothing;
        for relation in &names.relations {
            if let Some(column) = relation.system_column(name)? {
                if !matches!(found, Found::Nothing) {
                    return Err(ambiguous(name));
                }
                found = column;
            }
        }
        return Ok(found);
    };
    let mut relations = names
        .relations
        .iter()
        .filter(|relation| qualifier.names(relation));
    let Some(relation) = relations.next() else {
        return Ok(Found::Nothing);
    };
    if relations.next().is_some() {
        return Err(EngineError::new(
            SqlState::from_code("42P09"),
            format!("table reference \"{}\" is ambiguous", qualifier.relation),
        ));
    }
    if let Some(column) = only(name, relation.columns.iter())? {
        return Ok(Found::Column(column));
    }
    Ok(relation.system_column(name)?.unwrap_or(Found::NoColumn))
}

/// The column of this name; 42702 if there are two.
fn only<'n>(name: &str, columns: impl Iterator<Item = &'n ScopeColumn>) -> Result<Option<ScopeColumn>> {
    let mut found = columns.filter(|column| column.name == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(ambiguous(name));
    }
    Ok(first.cloned())
}

fn ambiguous(name: &str) -> EngineError {
    EngineError::new(
        SqlState::AMBIGUOUS_COLUMN,
        format!("column reference \"{name}\" is ambiguous"),
    )
}
