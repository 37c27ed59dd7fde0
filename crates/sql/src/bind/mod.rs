//! From syntax tree to plan: names to positions, literals to values, types settled, access path chosen.
//!
//! Types are settled the way PostgreSQL does it, as far as one table needs it. A quoted literal and an undeclared
//! parameter begin without a type; the first thing they meet gives them one (the other side of an operator, the column
//! they are stored in, the type a function wants). A parameter keeps the type it got first. What stays without a type
//! to the end is text.

mod access;
mod aggregate;
mod alter_table;
mod around;
mod array;
mod assignment;
mod bare;
mod call;
mod chain;
mod changed_view;
mod check;
mod column_default;
mod comment;
mod copy_condition;
mod create_table_as;
mod cursor;
mod definition;
mod domain;
mod expression;
mod fixed_columns;
mod foreign_key;
mod generated;
mod grant;
mod index;
mod index_key;
mod json;
mod merge;
mod missing_function;
mod notes;
mod on_conflict;
mod operator;
mod predicate;
mod quantified;
mod query_columns;
mod record;
mod reindex;
mod row;
mod row_columns;
mod schema;
mod scope;
mod select;
mod sequence;
mod set;
mod size;
mod subquery;
mod table_like;
mod table_parameters;
#[cfg(test)]
mod tests;
mod text_names;
mod typed_table;
mod types;
mod user_type;
mod utility;
mod view;
mod view_changes;
mod window;
mod window_calls;
mod with;
mod write;
mod written_actions;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast;
use sqlparser::tokenizer::Span;

use crate::catalog::{CatalogView, EmptyCatalog, TableDef, TableKind};
use crate::context::{EvalContext, NoSession};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::expr::domain::may_be_checked;
use crate::parse::{Lines, ParsedStatement, Piece, Tree, parse_expression};
use crate::plan::{Plan, RowsStatement, SelectPlan, Statement, TableAccess, TableRead};
use crate::planner::{Failure, Planner};
use crate::query::Block;
use crate::stack::with_stack_for;
use crate::value::DataType;
use crate::value::cast::CastContext;
use crate::value::datetime::in_force as date_times;
use crate::value::user_type::base_and_modifier;
pub(crate) use bare::is_bare;
pub(crate) use call::by_name;
pub use changed_view::changeable_columns;
pub(crate) use check::{Kept, annotated as annotated_expression};
pub use check::{bind_check, bind_generated};
pub use domain::{compile_domain, domain_condition, domain_table};
pub use index::{bind_index, index_column_names};
use merge::refuse_recursion_around_merge;
pub(crate) use notes::{ColumnNote, TreeNotes, WHOLE_ROW};
pub(crate) use row_columns::columns_of;
use scope::{Frame, Scope};
pub(crate) use select::{GroupEntry, without_distinct};
pub(crate) use set::is_set_function;
pub(crate) use view::{annotated, query_of_view};
pub(crate) use window::range_offset_type;

/// The most parameters a statement may have: the protocol counts them in 16 bits.
const PARAMETERS_MAX: usize = 65_535;

/// Expressions that are bound between two looks at whether to stop.
const EXPRESSIONS_PER_CHECK: u32 = 256;

/// Asked now and then by long work; an error ends it.
pub type Check<'a> = &'a dyn Fn() -> Result<()>;

/// Binds a statement. `declared` are the parameter types the client gave, `None` or absent where it left them open.
pub fn bind(
    statement: &ParsedStatement,
    catalog: &dyn CatalogView,
    declared: &[Option<DataType>],
) -> Result<Plan> {
    bind_checked(statement, catalog, declared, &|| Ok(()))
}

/// [`bind`], with something that may end it early.
pub fn bind_checked(
    statement: &ParsedStatement,
    catalog: &dyn CatalogView,
    declared: &[Option<DataType>],
    check: Check<'_>,
) -> Result<Plan> {
    bind_here(statement, catalog, declared, check).map_err(|error| {
        // What is not supported at least names the statement that has it.
        match error.sqlstate() == SqlState::FEATURE_NOT_SUPPORTED {
            true => error.or_position(Some(statement.offset + leading_blanks(&statement.text) + 1)),
            false => error,
        }
    })
}

fn leading_blanks(text: &str) -> u32 {
    text.chars()
        .take_while(|character| character.is_whitespace())
        .count() as u32
}

fn bind_here(
    statement: &ParsedStatement,
    catalog: &dyn CatalogView,
    declared: &[Option<DataType>],
    check: Check<'_>,
) -> Result<Plan> {
    let place = || Place::of(&statement.text, statement.offset);
    let mut binder = Binder::new(place(), &statement.more_rows, catalog, declared, check);
    let bound = bind_with(&mut binder, statement);
    if bound.is_err() && binder.presence.get() == Presence::Missed {
        let mut binder = Binder::new(place(), &statement.more_rows, catalog, declared, check);
        binder.presence.set(Presence::Told);
        return bind_with(&mut binder, statement);
    }
    bound
}

fn bind_with(binder: &mut Binder<'_>, statement: &ParsedStatement) -> Result<Plan> {
    let (bound, columns) = match &statement.tree {
        Tree::Sql(tree) => with_stack_for(tree.levels(), || binder.statement(tree))?,
        Tree::Control(control) => binder.control(control)?,
        Tree::Definition(definition) => binder.named_definition(definition)?,
        Tree::Explain(explained, options) => binder.explain(explained, *options)?,
        Tree::Copy(copy) => (RowsStatement::Copy(Box::new(binder.copy(copy)?)).into(), None),
        Tree::CreateTable { tree, likes, of } => match &**tree {
            ast::Statement::CreateTable(create) => {
                let bound =
                    with_stack_for(tree.levels(), || binder.create_table(create, likes, of.as_ref()))?;
                (bound.into(), None)
            }
            _ => {
                return Err(EngineError::internal(
                    "LIKE or OF in another statement than CREATE TABLE",
                ));
            }
        },
        Tree::CreateTableAs { into, query } => (binder.create_table_as(into, query)?.into(), None),
    };
    let run_changes = matches!(bound, Statement::Rows(_)) || binder.with.changes.is_empty();
    refuse(!run_changes, "a statement of WITH that changes rows, here")?;
    let param_types = binder
        .params
        .iter()
        .map(|known| known.unwrap_or(DataType::Text))
        .collect();
    let planner = Planner::new(binder.catalog, &binder.subqueries, &binder.failure);
    let mut subqueries = planner.subqueries()?;
    subqueries.append(&mut binder.planned);
    Ok(Plan {
        statement: bound,
        param_types,
        columns,
        subqueries,
        changes: std::mem::take(&mut binder.with.changes),
        reads: std::mem::take(&mut binder.reads),
        failure: std::mem::take(&mut binder.failure).into_error(),
        accesses: std::mem::take(&mut binder.accesses),
    })
}

/// Compiles the text of a column's default, as it is kept in the catalog, to an expression of the column's type. There
/// is no statement around it: it names no table, has no parameters, and is not interrupted.
pub fn bind_default(sql: &str, data_type: DataType, typmod: i32) -> Result<Expr> {
    let _as_kept = date_times::under(None);
    bound_default(sql, data_type, typmod)
}

/// As [`bind_default`], of a text that a statement has: its dates are read by the settings in force.
pub(crate) fn bound_default(sql: &str, data_type: DataType, typmod: i32) -> Result<Expr> {
    let tree = parse_expression(sql, 0)?;
    let check = || Ok(());
    let mut binder = Binder::new(Place::of(sql, 0), &[], &EmptyCatalog, &[], &check);
    let typed = with_stack_for(tree.levels(), || {
        binder.expression(&tree, &mut Scope::empty("DEFAULT expressions"))
    })?;
    if !binder.params.is_empty() {
        return Err(EngineError::new(
            SqlState::UNDEFINED_PARAMETER,
            "there is no parameter $1",
        ));
    }
    binder.assign(typed, data_type, typmod, "default", None)
}

/// An expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub expr: Expr,
    pub data_type: DataType,
    pub typmod: i32,
}

impl Typed {
    fn new(expr: Expr, data_type: DataType) -> Typed {
        Typed {
            expr,
            data_type,
            typmod: -1,
        }
    }
}

impl Typed {
    /// The same as a value of the type that its domain is over.
    fn of_base(mut self) -> Typed {
        (self.data_type, self.typmod) = base_and_modifier(self.data_type, self.typmod);
        self
    }
}

/// A condition, computed if it is known now.
fn boolean(expr: Expr) -> Typed {
    Typed::new(fold(expr), DataType::Bool)
}

struct Binder<'a> {
    /// The rows of a long INSERT that are not in its tree.
    more_rows: &'a [Piece],
    catalog: &'a dyn CatalogView,
    params: Vec<Option<DataType>>,
    check: Check<'a>,
    /// Expressions bound since the last check.
    ticks: u32,
    /// Number of expressions that are being bound, one inside the other.
    nesting: u32,
    place: Place<'a>,
    /// The queries around the one that is being bound.
    frames: Vec<Frame>,
    /// The relations that FROM clauses have named so far: of the query that is being bound, behind those of the queries
    /// around it.
    entries: Vec<scope::Entry>,
    /// The queries inside expressions, by their numbers.
    subqueries: Vec<Block>,
    /// Queries that were planned with a statement inside this one.
    planned: Vec<Arc<SelectPlan>>,
    /// The error of an expression's constant part.
    failure: Failure,
    /// The tables that are read.
    reads: Vec<TableRead>,
    /// The uses that it makes of tables.
    accesses: Vec<TableAccess>,
    /// The view whose owner is to be allowed what is being bound.
    as_view: Option<u32>,
    /// The common table expressions.
    with: with::WithState,
    /// Levels of queries, set operations and joins around what is being bound.
    depth: usize,
    /// Columns of the copies of common table expressions and views.
    copied: usize,
    /// The fields of records whose type modifier is their number here.
    records: Vec<record::RecordShape>,
    /// The view whose query is being bound.
    view: Option<Box<view::ViewBinding>>,
    /// The columns by which relations tell that they have a row.
    presence: Rc<Cell<Presence>>,
}

/// Columns by which relations of FROM tell that they have a row: without one, the whole row of a relation that an outer
/// join may have no row of cannot be told from one of NULLs. That of a table is the place of the row's version, of which
/// the system columns are functions. Few statements ask for either, and the columns cost, so a statement that does is
/// bound a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// There are none.
    Untold,
    /// There are none, and one was missed.
    Missed,
    /// Each relation that has nothing else to tell it by has one.
    Told,
}

/// The text that is being bound, for positions: a statement's, or some rows of it.
struct Place<'a> {
    text: &'a str,
    /// Number of characters of the message before it.
    offset: u32,
    lines: Lines,
}

impl Place<'_> {
    fn of(text: &str, offset: u32) -> Place<'_> {
        Place {
            text,
            offset,
            lines: Lines::default(),
        }
    }
}

/// A bound statement, with the columns of its result.
type Bound = (Statement, Option<Vec<crate::plan::Column>>);

impl<'a> Binder<'a> {
    fn new(
        place: Place<'a>,
        more_rows: &'a [Piece],
        catalog: &'a dyn CatalogView,
        declared: &[Option<DataType>],
        check: Check<'a>,
    ) -> Binder<'a> {
        Binder {
            more_rows,
            catalog,
            params: declared.to_vec(),
            check,
            ticks: 0,
            nesting: 0,
            place,
            frames: Vec::new(),
            entries: Vec::new(),
            subqueries: Vec::new(),
            planned: Vec::new(),
            reads: Vec::new(),
            failure: Failure::default(),
            accesses: Vec::new(),
            as_view: None,
            with: with::WithState::default(),
            depth: 0,
            copied: 0,
            records: Vec::new(),
            view: None,
            presence: Rc::new(Cell::new(Presence::Untold)),
        }
    }
}

impl Binder<'_> {
    fn statement(&mut self, tree: &ast::Statement) -> Result<Bound> {
        match tree {
            ast::Statement::Query(query) => {
                if let Some(statement) = self.select_into(query)? {
                    return Ok((statement.into(), None));
                }
                if let ast::SetExpr::Insert(changing)
                | ast::SetExpr::Update(changing)
                | ast::SetExpr::Delete(changing)
                | ast::SetExpr::Merge(changing) = &*query.body
                {
                    refuse_recursion_around_merge(query)?;
                    return self.after_with(query.with.as_ref(), true, |binder| binder.statement(changing));
                }
                self.with.at_top = true;
                let mut block = self.query(query, true)?;
                record::forget_shapes(&mut block.columns);
                types::show_bases(&mut block.columns);
                let select = Planner::new(self.catalog, &self.subqueries, &self.failure).block(block)?;
                let columns = select.columns.clone();
                Ok((RowsStatement::Select(Arc::new(select)).into(), Some(columns)))
            }
            ast::Statement::Insert(insert) => {
                let plan = self.insert(insert)?;
                let columns = plan.returning.as_ref().map(types::shown_columns);
                Ok((RowsStatement::Insert(Box::new(plan)).into(), columns))
            }
            ast::Statement::Update(update) => {
                let plan = self.update(update)?;
                let columns = plan.returning.as_ref().map(types::shown_columns);
                Ok((RowsStatement::Update(Box::new(plan)).into(), columns))
            }
            ast::Statement::Delete(delete) => {
                let plan = self.delete(delete)?;
                let columns = plan.returning.as_ref().map(types::shown_columns);
                Ok((RowsStatement::Delete(Box::new(plan)).into(), columns))
            }
            ast::Statement::Merge(merge) => {
                let plan = self.merge(merge)?;
                Ok((RowsStatement::Merge(Box::new(plan)).into(), None))
            }
            ast::Statement::CreateTable(create) => Ok((self.create_table(create, &[], None)?.into(), None)),
            ast::Statement::CreateIndex(create) => Ok((self.create_index(create)?.into(), None)),
            ast::Statement::AlterTable(alter) => Ok((self.alter_table(alter)?.into(), None)),
            ast::Statement::AlterIndex { name, operation } => {
                Ok((self.alter_index(name, operation)?.into(), None))
            }
            other => Err(EngineError::not_supported(first_words(&other.to_string()))),
        }
    }

    /// The table of this name, or 42P01.
    fn table(&self, name: &ast::ObjectName) -> Result<Arc<TableDef>> {
        let (schema, table, span) = split_name(name)?;
        let quoted = matches!(name.0.as_slice(), [ast::ObjectNamePart::Identifier(ident)] if ident.quote_style.is_some());
        if schema.is_none() && table == "only" && !quoted {
            // A reserved word that the parser takes for the name, and the name for an alias.
            return Err(EngineError::not_supported("ONLY").or_position(self.position(span)));
        }
        self.table_named(schema.as_deref(), &table, self.position(span))
    }

    fn table_named(&self, schema: Option<&str>, name: &str, position: Option<u32>) -> Result<Arc<TableDef>> {
        self.require_usage(schema)?;
        self.catalog.lookup_table(schema, name).ok_or_else(|| {
            let shown = match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name.to_owned(),
            };
            EngineError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{shown}\" does not exist"),
            )
            .or_position(position)
        })
    }

    /// 42501 for a schema that is written and that the role may not use.
    fn require_usage(&self, schema: Option<&str>) -> Result<()> {
        match schema {
            Some(schema) => self.catalog.require_usage(schema),
            None => Ok(()),
        }
    }

    /// Notes that the statement reads a table.
    fn read(&mut self, table: &Arc<TableDef>) {
        self.reads.push(TableRead {
            table: Arc::clone(table),
            locked: None,
        });
    }

    /// The table of this name, which must be one that can be changed.
    fn heap_table(&self, name: &ast::ObjectName) -> Result<Arc<TableDef>> {
        let table = self.table(name)?;
        require_heap(&table)?;
        Ok(table)
    }

    /// The position in the message of a place in the syntax tree.
    fn position(&self, span: Span) -> Option<u32> {
        let characters = self.place.lines.characters_before(self.place.text, span.start)?;
        Some(self.place.offset + characters + 1)
    }

    /// Counts a step; now and then looks whether to stop.
    #[inline]
    fn tick(&mut self) -> Result<()> {
        self.ticks += 1;
        if self.ticks < EXPRESSIONS_PER_CHECK {
            return Ok(());
        }
        self.ticks = 0;
        (self.check)()
    }

    /// `$n` of whatever type it has so far.
    fn parameter(&mut self, text: &str, span: Span) -> Result<Typed> {
        let number = text
            .strip_prefix('$')
            .and_then(|digits| digits.parse::<usize>().ok());
        let number = number
            .filter(|number| (1..=PARAMETERS_MAX).contains(number))
            .ok_or_else(|| {
                EngineError::new(
                    SqlState::UNDEFINED_PARAMETER,
                    format!("there is no parameter {text}"),
                )
                .or_position(self.position(span))
            })?;
        if self.params.len() < number {
            self.params.resize(number, None);
        }
        let known = self.params[number - 1].unwrap_or(DataType::Unknown);
        let parameter = Expr::Parameter(number as u16 - 1);
        let expr = match may_be_checked(known) {
            // It comes as a value of the base type.
            true => Expr::Cast {
                input: Box::new(parameter),
                from: known.base(),
                to: known,
                typmod: -1,
                context: CastContext::Assignment,
            },
            false => parameter,
        };
        Ok(Typed::new(expr, known))
    }
}

/// Refuses a virtual table where rows or definitions would change.
fn require_heap(table: &TableDef) -> Result<()> {
    match table.kind {
        TableKind::Heap { .. } => Ok(()),
        TableKind::Virtual if table.sequence.is_some() => Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a table", table.name),
        )),
        TableKind::Virtual => Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is a system view and cannot be changed", table.name),
        )),
        TableKind::View => Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a table", table.name),
        )),
    }
}

/// Schema, name, and where it is written.
fn split_name(name: &ast::ObjectName) -> Result<(Option<String>, String, Span)> {
    let mut idents = name.0.iter().map(|part| match part {
        ast::ObjectNamePart::Identifier(ident) => Ok(ident),
        ast::ObjectNamePart::Function(_) => Err(EngineError::not_supported("a computed name")),
    });
    match (idents.next(), idents.next(), idents.next()) {
        (Some(name), None, _) => {
            let name = name?;
            Ok((None, identifier(name)?, name.span))
        }
        (Some(schema), Some(name), None) => {
            let schema = schema?;
            Ok((Some(identifier(schema)?), identifier(name?)?, schema.span))
        }
        _ => Err(EngineError::not_supported(format!(
            "the name {name} (a database in front of a schema)"
        ))),
    }
}

/// The name without a schema; `pg_catalog` and `public` are left off.
pub(crate) fn plain_name(name: &ast::ObjectName) -> Result<String> {
    let (schema, name, _) = split_name(name)?;
    match schema.as_deref() {
        None | Some("public" | "pg_catalog") => Ok(name),
        Some("information_schema") => Ok(format!("information_schema.{name}")),
        Some(other) => Err(EngineError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{other}\" does not exist"),
        )),
    }
}

/// An identifier as the catalog spells it; 42601 for a string, which sqlparser takes for one.
fn identifier(ident: &ast::Ident) -> Result<String> {
    match ident.quote_style {
        Some('\'') => Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("syntax error at or near \"{ident}\""),
        )),
        _ => Ok(normal(ident)),
    }
}

/// An identifier as the catalog spells it: in lower case unless it was quoted.
pub(crate) fn normal(ident: &ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The words a statement begins with, to name it in an error.
fn first_words(text: &str) -> String {
    text.split_whitespace()
        .take_while(|word| word.chars().all(|c| c.is_ascii_uppercase()))
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The most bytes of a value that a plan keeps instead of the expression that makes it: `repeat('x', 200000000)` is
/// short, and a session keeps hundreds of plans.
const FOLDED_BYTES_MAX: usize = 1 << 10;

/// Computes what is known now; what would fail is left to fail when it runs, and what would be long to be made then.
fn fold(expr: Expr) -> Expr {
    if !expr.is_constant() {
        return expr;
    }
    // An operand that was not folded is not evaluated once more for each operator around it, and what may take long is
    // left to where it can be cancelled.
    let (mut operators, mut long) = (0, false);
    expr.walk(&mut |part| match part {
        Expr::Constant(value) => long |= value.heap_bytes() > FOLDED_BYTES_MAX,
        _ => operators += 1,
    });
    if operators != 1 || long {
        return expr;
    }
    match expr.eval(&[], &EvalContext::new(&[], &NoSession)) {
        Ok(value) if value.heap_bytes() <= FOLDED_BYTES_MAX => Expr::Constant(value),
        _ => expr,
    }
}

/// 0A000 if a construct is there.
fn refuse(present: bool, construct: &str) -> Result<()> {
    if present {
        Err(EngineError::not_supported(construct))
    } else {
        Ok(())
    }
}
