//! SEARCH and CYCLE of WITH RECURSIVE.
//!
//! Both add columns to those of the recursive query, and nothing else: a client sorts by the one and stops at the other.
//!
//! | clause | column | in the left term | in the right term, from the row `t` of the round before |
//! | --- | --- | --- | --- |
//! | SEARCH DEPTH FIRST BY k SET s | `s` | `array[row(k)]` | `t.s \|\| row(k)` |
//! | SEARCH BREADTH FIRST BY k SET s | `s` | `row(0, k)` | `row(t.s's first field + 1, k)` |
//! | CYCLE k SET m TO v DEFAULT d USING p | `m` | `d` | `v` if `row(k)` is in `t.p`, else `d` |
//! | | `p` | `array[row(k)]` | `t.p \|\| row(k)` |
//!
//! Nothing is made of a row whose `m` is `v`: the right term does not see it.
//!
//! 1. When the left term is bound, the query's own columns are known, and so are the added ones ([`Added`]). The working
//!    table has both.
//! 2. The right term's SELECT gives what it says, and the added columns of `t` behind it
//!    ([`Binder::carry_added`]); `*` does not mean them.
//! 3. When the UNION is bound, the added columns are computed over the rows of both terms.

use sqlparser::ast;

use crate::bind::scope::{Hidden, Scope, ScopeColumn};
use crate::bind::select::only_leaf;
use crate::bind::{Binder, Typed, fold, identifier, normal};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr};
use crate::function::array;
use crate::parse::{Clauses, Cycle};
use crate::plan::Column;
use crate::query::{Rows, SetOperation};
use crate::value::DataType;
use crate::value::arithmetic::ArithmeticOp;

/// The type of a path.
const PATH: DataType = DataType::array_of(DataType::Record);

/// The columns that are added to a recursive query.
#[derive(Debug, Clone)]
pub(super) struct Added {
    /// The columns, in the order of the result.
    pub(super) columns: Vec<Column>,
    search: Option<Search>,
    cycle: Option<Marks>,
}

#[derive(Debug, Clone)]
struct Search {
    breadth: bool,
    keys: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Marks {
    keys: Vec<usize>,
    value: Expr,
    default: Expr,
    /// True for a row that has no mark, over all columns of the working table.
    goes_on: Expr,
}

/// The right term that is being bound, which carries the added columns of its working table.
#[derive(Debug, Clone, Copy)]
pub(in crate::bind) struct Carrier {
    /// The address of its SELECT.
    select: usize,
    hidden: Hidden,
    /// True once the SELECT has been bound and carries them.
    carries: bool,
}

/// 0A000 for a right term whose FROM has the working table in a query.
pub(super) fn not_at_the_top(name: &str) -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!(
            "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
        ),
    )
}

fn syntax(message: String) -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, message)
}

/// 42601 and 42701 for keys that are no columns, or named twice; their numbers.
fn keys(by: &[ast::Ident], columns: &[Column], clause: &str) -> Result<Vec<usize>> {
    let mut keys = Vec::with_capacity(by.len());
    for ident in by {
        let name = identifier(ident)?;
        let at = columns.iter().position(|column| column.name == name);
        let at = at.ok_or_else(|| {
            syntax(format!(
                "{clause} column \"{name}\" not in WITH query column list"
            ))
        })?;
        if keys.contains(&at) {
            let message = format!("{clause} column \"{name}\" specified more than once");
            return Err(EngineError::new(SqlState::from_code("42701"), message));
        }
        keys.push(at);
    }
    Ok(keys)
}

/// 42601 for a name that a column of the query has.
fn unused(ident: &ast::Ident, columns: &[Column], what: &str) -> Result<String> {
    let name = identifier(ident)?;
    if columns.iter().any(|column| column.name == name) {
        let message = format!("{what} column name \"{name}\" already used in WITH query column list");
        return Err(syntax(message));
    }
    Ok(name)
}

/// 0A000 and 42601, as PostgreSQL has it, for terms that the clauses cannot stand behind.
pub(super) fn check_terms(left: &ast::SetExpr, right: &ast::SetExpr) -> Result<()> {
    let sides = [
        (left, "left", SqlState::FEATURE_NOT_SUPPORTED),
        (right, "right", SqlState::SYNTAX_ERROR),
    ];
    for (term, side, code) in sides {
        let mut term = term;
        while let ast::SetExpr::Query(query) = term
            && crate::bind::is_bare(query)
            && query.with.is_none()
        {
            term = &query.body;
        }
        if matches!(term, ast::SetExpr::SetOperation { .. }) {
            return Err(EngineError::new(
                code,
                format!("with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT"),
            ));
        }
    }
    Ok(())
}

/// The SELECT that a term is.
fn select_of(term: &ast::SetExpr) -> Option<&ast::Select> {
    match term {
        ast::SetExpr::Select(select) => Some(select),
        ast::SetExpr::Query(query) => select_of(&query.body),
        _ => None,
    }
}

impl Binder<'_> {
    /// Step 1. `columns`: those of the query itself.
    pub(super) fn added_columns(&mut self, clauses: &Clauses, columns: &[Column]) -> Result<Added> {
        let mut added = Added {
            columns: Vec::new(),
            search: None,
            cycle: None,
        };
        if let Some(search) = &clauses.search {
            let position = self.position(search.span);
            let by = keys(&search.by, columns, "search").map_err(|error| error.or_position(position))?;
            let name = unused(&search.set, columns, "search sequence")
                .map_err(|error| error.or_position(position))?;
            let data_type = if search.breadth { DataType::Record } else { PATH };
            added.columns.push(Column::computed(name, data_type));
            added.search = Some(Search {
                breadth: search.breadth,
                keys: by,
            });
        }
        if let Some(cycle) = &clauses.cycle {
            let position = self.position(cycle.span);
            self.add_marks(cycle, columns, &mut added)
                .map_err(|error| error.or_position(position))?;
        }
        if let (Some(search), Some(cycle)) = (&clauses.search, &clauses.cycle) {
            let set = normal(&search.set);
            for (other, what) in [(&cycle.mark, "mark"), (&cycle.path, "path")] {
                if set == normal(other) {
                    return Err(syntax(format!(
                        "search sequence column name and cycle {what} column name are the same"
                    ))
                    .or_position(self.position(search.span)));
                }
            }
        }
        Ok(added)
    }

    fn add_marks(&mut self, cycle: &Cycle, columns: &[Column], added: &mut Added) -> Result<()> {
        let by = keys(&cycle.by, columns, "cycle")?;
        let mark = unused(&cycle.mark, columns, "cycle mark")?;
        let (value, default) = match &cycle.values {
            None => (
                Typed::new(Expr::constant(true), DataType::Bool),
                Typed::new(Expr::constant(false), DataType::Bool),
            ),
            Some((value, default)) => (self.mark_value(value)?, self.mark_value(default)?),
        };
        let path = unused(&cycle.path, columns, "cycle path")?;
        if mark == path {
            let message = "cycle mark column name and cycle path column name are the same";
            return Err(syntax(message.to_owned()));
        }
        let data_type = common_type(&[value.data_type, default.data_type]).ok_or_else(|| {
            EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "CYCLE types {} and {} cannot be matched",
                    value.data_type, default.data_type
                ),
            )
        })?;
        let value = self.coerce(value, data_type, None)?;
        let default = self.coerce(default, data_type, None)?;
        let number = columns.len() + added.columns.len();
        let column = Typed::new(Expr::Column(number as u16), data_type);
        let marked = Typed::new(value.clone(), data_type);
        let goes_on = self.compare(column, CompareOp::NotEqual, marked, None)?;
        added.columns.push(Column::computed(mark, data_type));
        added.columns.push(Column::computed(path, PATH));
        added.cycle = Some(Marks {
            keys: by,
            value,
            default,
            goes_on,
        });
        Ok(())
    }

    /// TO or DEFAULT: a constant.
    fn mark_value(&mut self, tree: &ast::Expr) -> Result<Typed> {
        let constant = matches!(
            tree,
            ast::Expr::Value(_) | ast::Expr::TypedString(_) | ast::Expr::Interval(_)
        );
        if !constant {
            return Err(
                syntax("the values of a CYCLE clause must be constants".to_owned())
                    .or_position(self.position_of(tree)),
            );
        }
        self.expression(tree, &mut Scope::empty("CYCLE"))
    }

    /// Binds the right term, which carries the added columns of its working table behind its own; and whether it does.
    pub(super) fn carrying<T>(
        &mut self,
        term: &ast::SetExpr,
        hidden: Hidden,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, bool)> {
        let carrier = select_of(term).map(|select| Carrier {
            select: std::ptr::from_ref(select).addr(),
            hidden,
            carries: false,
        });
        let before = std::mem::replace(&mut self.with.carrier, carrier);
        let bound = bind(self);
        let carrier = std::mem::replace(&mut self.with.carrier, before);
        Ok((bound?, carrier.is_some_and(|carrier| carrier.carries)))
    }

    /// Step 2: the added columns that a SELECT carries.
    pub(in crate::bind) fn carry_added(&mut self, select: &ast::Select, scope: &Scope) -> Vec<ScopeColumn> {
        let Some(carrier) = &mut self.with.carrier else {
            return Vec::new();
        };
        if carrier.select != std::ptr::from_ref(select).addr() {
            return Vec::new();
        }
        let mut relations = scope.names.relations.iter();
        let found = relations.find(|relation| relation.hidden == carrier.hidden);
        carrier.carries = found.is_some();
        found.map_or_else(Vec::new, |relation| relation.hidden_columns().to_vec())
    }

    /// The rows of the working table that the right term sees.
    pub(super) fn working_rows(&self, columns: &[Column], added: Option<&Added>, working: usize) -> Rows {
        let Some(marks) = added.and_then(|added| added.cycle.as_ref()) else {
            return Rows::Working(working);
        };
        let mut block = only_leaf(columns.to_vec(), Rows::Working(working));
        block.conditions.push(marks.goes_on.clone());
        Rows::Query {
            block: Box::new(block),
            arguments: Vec::new(),
        }
    }

    /// Step 3. `results`: the columns of the union, to which the added ones come.
    pub(super) fn add_to_union(
        &mut self,
        added: Added,
        results: &mut Vec<Column>,
        operation: &mut SetOperation,
    ) -> Result<()> {
        let own = results.len();
        if let Some(search) = &added.search {
            let left = keys_of(&search.keys, results, &operation.left_columns);
            let right = keys_of(&search.keys, results, &operation.right_columns);
            let carried = Expr::Column(own as u16);
            let (left, right) = if search.breadth {
                let depth = Expr::Arithmetic {
                    op: ArithmeticOp::Add,
                    left: Box::new(Expr::Field {
                        input: Box::new(carried),
                        number: 0,
                        data_type: DataType::Int8,
                    }),
                    right: Box::new(Expr::constant(1_i64)),
                };
                (
                    self.leveled(Expr::constant(0_i64), left)?,
                    self.leveled(depth, right)?,
                )
            } else {
                let (left, right) = (self.record_of(left)?, self.record_of(right)?);
                (path_of(left), longer_path(carried, right.expr)?)
            };
            operation.left_columns.push(left);
            operation.right_columns.push(right);
        }
        if let Some(marks) = added.cycle {
            let left = keys_of(&marks.keys, results, &operation.left_columns);
            let right = keys_of(&marks.keys, results, &operation.right_columns);
            let (left, right) = (self.record_of(left)?, self.record_of(right)?);
            let carried = Expr::Column((own + added.columns.len() - 1) as u16);
            let seen = Expr::Quantified {
                op: CompareOp::Equal,
                all: false,
                input: Box::new(right.expr.clone()),
                array: Box::new(carried.clone()),
                data_type: DataType::Record,
            };
            operation
                .left_columns
                .extend([marks.default.clone(), path_of(left)]);
            operation.right_columns.extend([
                Expr::Case {
                    branches: vec![(seen, marks.value)],
                    otherwise: Box::new(marks.default),
                },
                longer_path(carried, right.expr)?,
            ]);
        }
        operation
            .types
            .extend(added.columns.iter().map(|column| column.data_type));
        results.extend(added.columns);
        Ok(())
    }

    /// A row's place in breadth-first order.
    fn leveled(&mut self, depth: Expr, keys: Vec<(String, Typed)>) -> Result<Expr> {
        let depth = ("*DEPTH*".to_owned(), Typed::new(depth, DataType::Int8));
        let fields = std::iter::once(depth).chain(keys).collect();
        Ok(self.record_of(fields)?.expr)
    }
}

/// The keys over the output row of a term.
fn keys_of(keys: &[usize], columns: &[Column], values: &[Expr]) -> Vec<(String, Typed)> {
    let key = |at: &usize| {
        let column = &columns[*at];
        let typed = Typed {
            expr: values[*at].clone(),
            data_type: column.data_type,
            typmod: column.type_modifier,
        };
        (column.name.clone(), typed)
    };
    keys.iter().map(key).collect()
}

fn path_of(row: Typed) -> Expr {
    fold(Expr::Call {
        function: array::constructor(PATH, false),
        arguments: vec![row.expr],
    })
}

fn longer_path(path: Expr, row: Expr) -> Result<Expr> {
    let append = array::resolve("array_append", &[PATH, DataType::Record]);
    let append = append.ok_or_else(|| EngineError::internal("there is no array_append of records"))?;
    Ok(Expr::Call {
        function: append.function,
        arguments: vec![path, row],
    })
}
