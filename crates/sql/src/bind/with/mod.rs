//! Common table expressions: WITH, and the names that it puts in sight.
//!
//! # One query, several readers
//! A common table expression is bound once, in the place of its WITH, and gets a number in the statement's list of
//! queries. A relation that names it becomes a leaf [`Rows::Shared`] with that number: the first reader makes its
//! rows, as far as they are wanted, and all others read the same ones.
//!
//! If no reader could tell the difference it is *inlined* instead, and then planned as part of the query that reads it:
//!
//! | | MATERIALIZED | neither | NOT MATERIALIZED |
//! | --- | --- | --- | --- |
//! | recursive, volatile, locks or changes rows | made once | made once | made once |
//! | any other, read once | made once | inlined | inlined |
//! | any other, read several times | made once | made once | a copy for each reader |
//!
//! The number of its readers is known when all that can see it has been bound. So the leaves of those that are read once
//! are replaced then ([`Binder::inline_single_uses`]).
//!
//! # Arguments
//! Its arguments are those of the query that has the WITH. A reader inside another query passes them through the frames
//! between, as a name from outside is passed ([`super::scope`]).
//!
//! | module | job |
//! | --- | --- |
//! | `recursive` | WITH RECURSIVE: what refers to itself, and the rules for it |
//! | `change` | INSERT, UPDATE and DELETE in WITH |
//! | `search_cycle` | SEARCH and CYCLE |
//! | `inline` | those that are read once |

mod change;
mod inline;
mod recursive;
mod search_cycle;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlparser::ast;

use crate::bind::around::Around;
use crate::bind::scope::Hidden;
use crate::bind::size::Size;
use crate::bind::{Binder, identifier, refuse, split_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::{Clauses, with_clauses};
use crate::plan::{Change, Column};
use crate::query::{Block, Rows};

/// Common table expressions, as far as the binder knows them.
#[derive(Debug, Default)]
pub(in crate::bind) struct WithState {
    /// Those in sight, the innermost WITH last.
    in_sight: Vec<Cte>,
    /// The parts of queries around what is being bound, outermost first.
    pub(in crate::bind) around: Vec<Around>,
    /// True until the query has begun whose WITH may change rows.
    pub(in crate::bind) at_top: bool,
    /// The sizes of those that have been bound, by number.
    sizes: BTreeMap<usize, Size>,
    /// Number of clauses so far.
    clauses: usize,
    /// Number of common table expressions whose binding has begun.
    begun: usize,
    /// Number of working tables so far.
    working_tables: usize,
    /// Number of uses of working tables so far, and of what depends on one.
    pub(in crate::bind) working_uses: usize,
    /// The numbers of the queries whose rows depend on a working table.
    dependent: BTreeSet<usize>,
    /// The statements that change rows.
    pub(in crate::bind) changes: Vec<Change>,
    /// The right term of a recursive query with SEARCH or CYCLE, while it is bound.
    carrier: Option<search_cycle::Carrier>,
}

impl WithState {
    /// The size of a common table expression.
    pub(in crate::bind) fn size(&self, number: usize) -> Size {
        self.sizes.get(&number).copied().unwrap_or_default()
    }

    /// For a binder whose query sees none of those in sight: it gives no number that was given before.
    pub(in crate::bind) fn lent(&mut self) -> WithState {
        WithState {
            sizes: std::mem::take(&mut self.sizes),
            working_tables: self.working_tables,
            ..WithState::default()
        }
    }

    /// Takes back what was [`lent`](Self::lent).
    pub(in crate::bind) fn take_back(&mut self, lent: &mut WithState) {
        self.sizes = std::mem::take(&mut lent.sizes);
        self.working_tables = lent.working_tables;
    }
}

/// A common table expression in sight.
#[derive(Debug)]
struct Cte {
    name: String,
    /// The number of its WITH clause.
    clause: usize,
    /// Number of frames around its WITH.
    depth: usize,
    /// Number of parts of queries around its WITH.
    parts: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Of a WITH RECURSIVE, not bound yet: a query before it may refer to it.
    Waiting(Arc<ast::Cte>, Arc<Clauses>),
    /// Being bound.
    Begun(recursive::Begun),
    Bound(Bound),
}

/// A common table expression that has been bound.
#[derive(Debug)]
struct Bound {
    number: usize,
    columns: Vec<Column>,
    /// Number of its arguments.
    arguments: u16,
    inline: Inline,
    uses: usize,
    /// False if it changes rows and gives none.
    gives_rows: bool,
}

/// The readers that get the query itself in the place of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inline {
    Never,
    /// The only one, if there is one only.
    Single,
    /// Each.
    Each,
}

impl Binder<'_> {
    /// Binds something after its WITH, whose common table expressions are in sight meanwhile. `may_change`: they may
    /// change rows.
    pub(in crate::bind) fn after_with<T>(
        &mut self,
        with: Option<&ast::With>,
        may_change: bool,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let in_sight = self.with.in_sight.len();
        if let Some(with) = with {
            self.with_clause(with, may_change)?;
        }
        let bound = bind(self);
        self.leave_out_unread(in_sight);
        self.with.in_sight.truncate(in_sight);
        bound
    }

    /// Leaves out the queries of common table expressions, from a place in sight on, whose rows nothing reads: they do not
    /// run, and an error of theirs is none of the statement's.
    fn leave_out_unread(&mut self, first: usize) {
        for cte in &self.with.in_sight[first..] {
            let State::Bound(bound) = &cte.state else { continue };
            let is_unread = bound.uses == 0 || bound.inline == Inline::Each;
            if let Some(block) = self.subqueries.get_mut(bound.number)
                && is_unread
                && !block.from.is_change()
            {
                *block = Block::one_row();
            }
        }
    }

    fn with_clause(&mut self, with: &ast::With, may_change: bool) -> Result<()> {
        self.with.clauses += 1;
        let (clause, first) = (self.with.clauses, self.with.in_sight.len());
        let mut names = BTreeSet::new();
        for (cte, clauses) in with_clauses(with) {
            refuse(cte.from.is_some(), "this form of WITH")?;
            let name = identifier(&cte.alias.name)?;
            let position = self.position(cte.alias.name.span);
            if !names.insert(name.clone()) {
                return Err(EngineError::new(
                    SqlState::from_code("42712"),
                    format!("WITH query name \"{name}\" specified more than once"),
                )
                .or_position(position));
            }
            if change::changes_rows(&cte.query) && !may_change {
                let message = "WITH clause containing a data-modifying statement must be at the top level";
                return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message).or_position(position));
            }
            if with.recursive {
                let tree = Arc::new(cte.clone());
                self.note_cte(cte, &tree);
                // Each is in sight of all.
                self.with.in_sight.push(Cte {
                    name,
                    clause,
                    depth: self.frames.len(),
                    parts: self.with.around.len(),
                    state: State::Waiting(tree, Arc::new(clauses)),
                });
                continue;
            }
            let bound = self.common_table_bound(cte, None)?;
            if !clauses.is_empty() {
                return Err(not_recursive(position));
            }
            self.with.in_sight.push(Cte {
                name,
                clause,
                depth: self.frames.len(),
                parts: self.with.around.len(),
                state: State::Bound(bound),
            });
        }
        for at in first..self.with.in_sight.len() {
            self.bind_waiting(at)?;
        }
        Ok(())
    }

    /// Binds a common table expression. `at`: its place among those in sight, if it may refer to itself.
    fn common_table_bound(&mut self, cte: &ast::Cte, at: Option<(usize, &Clauses)>) -> Result<Bound> {
        let before = self.with.working_uses;
        if change::changes_rows(&cte.query) {
            return self.changing_bound(cte);
        }
        let recursive = match at {
            Some((at, clauses)) => self.union_bound(cte, at, clauses)?,
            None => None,
        };
        let (mut block, is_recursive) = match recursive {
            Some(bound) => bound,
            None => (self.query(&cte.query, true)?, false),
        };
        if let Some((_, clauses)) = at
            && !clauses.is_empty()
            && !is_recursive
        {
            return Err(not_recursive(self.position(cte.alias.name.span)));
        }
        self.name_columns(cte, &mut block.columns)?;
        let inline = match cte.materialized {
            _ if is_recursive || block.is_volatile(&self.subqueries) || block.from.locks_rows() => {
                Inline::Never
            }
            Some(ast::CteAsMaterialized::Materialized) => Inline::Never,
            Some(ast::CteAsMaterialized::NotMaterialized) => Inline::Each,
            None => Inline::Single,
        };
        let bound = self.numbered(block, inline);
        self.note_dependence(bound.number, before);
        Ok(bound)
    }

    /// Gives a bound query its number.
    fn numbered(&mut self, block: Block, inline: Inline) -> Bound {
        let number = self.subqueries.len();
        self.with.sizes.insert(number, self.size_of(&block));
        let bound = Bound {
            number,
            columns: block.columns.clone(),
            arguments: block.arguments_read(),
            inline,
            uses: 0,
            gives_rows: true,
        };
        self.subqueries.push(block);
        bound
    }

    /// Gives columns the names that stand behind the name of their common table expression.
    fn name_columns(&self, cte: &ast::Cte, columns: &mut [Column]) -> Result<()> {
        let names = &cte.alias.columns;
        if names.len() > columns.len() {
            return Err(EngineError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "WITH query \"{}\" has {} columns available but {} columns specified",
                    identifier(&cte.alias.name)?,
                    columns.len(),
                    names.len()
                ),
            )
            .or_position(self.position(cte.alias.name.span)));
        }
        for (column, renamed) in columns.iter_mut().zip(names) {
            column.name = identifier(&renamed.name)?;
        }
        Ok(())
    }

    /// Notes that the rows of a query depend on a working table, if one was used since there were `before` uses.
    pub(in crate::bind) fn note_dependence(&mut self, number: usize, before: usize) {
        if self.with.working_uses > before {
            self.with.dependent.insert(number);
        }
    }

    /// The common table expression of this name, if there is one: its columns and rows, and those of its
    /// columns that `*` does not mean.
    pub(in crate::bind) fn common_table(
        &mut self,
        name: &ast::ObjectName,
    ) -> Result<Option<(Vec<Column>, Rows, Hidden)>> {
        let (None, name, span) = split_name(name)? else {
            return Ok(None);
        };
        let Some(at) = self.with.in_sight.iter().rposition(|cte| cte.name == name) else {
            return Ok(None);
        };
        let position = self.position(span);
        self.bind_waiting(at)
            .map_err(|error| error.or_position(position))?;
        match self.with.in_sight[at].state {
            State::Bound(_) => self
                .reader_of(at)
                .map(|(columns, rows)| Some((columns, rows, Hidden::default()))),
            _ => self.self_reference(at).map(Some),
        }
        .map_err(|error| error.or_position(position))
    }

    /// A reader of a common table expression: its columns and rows.
    fn reader_of(&mut self, at: usize) -> Result<(Vec<Column>, Rows)> {
        let cte = &mut self.with.in_sight[at];
        let (depth, name) = (cte.depth, cte.name.clone());
        let State::Bound(bound) = &mut cte.state else {
            return Err(EngineError::internal(
                "a common table expression is read before it is bound",
            ));
        };
        if !bound.gives_rows {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("WITH query \"{name}\" does not have a RETURNING clause"),
            ));
        }
        bound.uses += 1;
        let (number, columns) = (bound.number, bound.columns.clone());
        let (inline, count) = (bound.inline, bound.arguments);
        let size = self.with.size(number);
        self.check_depth(size)?;
        if self.with.dependent.contains(&number) {
            self.with.working_uses += 1;
        }
        let mut arguments: Vec<Expr> = (0..count).map(Expr::Outer).collect();
        for argument in &mut arguments {
            for frame in &mut self.frames[depth..] {
                let value = std::mem::replace(argument, Expr::Previous);
                *argument = frame.argument(value);
            }
        }
        if inline != Inline::Each {
            return Ok((columns, Rows::Shared { number, arguments }));
        }
        self.note_copy(size)?;
        let mut block = self.subqueries[number].clone();
        block.columns.clone_from(&columns);
        self.count_uses_of(&block);
        let block = Box::new(block);
        Ok((columns, Rows::Query { block, arguments }))
    }
}

/// 42601 for SEARCH or CYCLE behind a query that does not refer to itself.
fn not_recursive(position: Option<u32>) -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, "WITH query is not recursive").or_position(position)
}
