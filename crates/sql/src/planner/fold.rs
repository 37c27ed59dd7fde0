//! Expressions made simpler before they are planned: what is known now is computed now.
//!
//! # Rules
//! - F1. The value is the same for every row, NULL included. What may differ from run to run is not computed.
//! - F2. Parts are looked at from left to right, as in PostgreSQL: behind a FALSE of AND, a TRUE of OR, a value of COALESCE
//!   or a WHEN that holds nothing is looked at any more, and so does not fail.
//! - F3. A part that fails with the constants that it has fails the whole statement, even if no row would have reached it:
//!   `select 1 / 0 from t` over an empty table. The error comes when the statement runs, not when it is prepared.
//!
//! NOT goes down to comparisons, which have an opposite that an index may serve.

use std::cell::RefCell;

use crate::context::{EvalContext, NoSession};
use crate::error::EngineError;
use crate::expr::{CompareOp, Expr};
use crate::planner::conditions::conjuncts;
use crate::query::{Block, Relation, Rows};
use crate::stack::checkpoint;
use crate::value::Value;

/// Bytes of a value that takes its expression's place.
const BYTES_MAX: usize = 1 << 10;

/// The first error of a constant part (F3).
#[derive(Debug, Default)]
pub(crate) struct Failure(RefCell<Option<EngineError>>);

impl Failure {
    /// The error.
    pub(crate) fn into_error(self) -> Option<EngineError> {
        self.0.into_inner()
    }

    /// Takes over that of a statement inside this one.
    pub(crate) fn take_over(&self, error: Option<EngineError>) {
        error.into_iter().for_each(|error| self.add(error));
    }

    fn add(&self, error: EngineError) {
        self.0.borrow_mut().get_or_insert(error);
    }
}

/// True if a condition holds for no row.
pub(super) fn is_never_true(condition: &Expr) -> bool {
    matches!(condition, Expr::Constant(value) if value.as_bool() != Some(true))
}

impl Failure {
    /// A block whose own expressions are simpler.
    pub(super) fn simplified_block(&self, mut block: Block) -> Block {
        self.relation(&mut block.from);
        block.conditions = self.conditions(block.conditions);
        if let Some(aggregate) = &mut block.aggregate {
            if let Some(having) = aggregate.having.take() {
                aggregate.having = Some(self.simplified(having)).filter(|having| !is_true(having));
            }
            for call in &mut aggregate.calls {
                self.each(&mut call.inputs);
                self.option(&mut call.filter);
            }
        }
        self.each(&mut block.projection);
        self.option(&mut block.limit);
        self.option(&mut block.offset);
        block
    }

    fn relation(&self, relation: &mut Relation) {
        match relation {
            Relation::OneRow => {}
            Relation::Join(join) => {
                join.on = self.conditions(std::mem::take(&mut join.on));
                self.relation(&mut join.left);
                self.relation(&mut join.right);
            }
            Relation::Leaf(leaf) => match &mut leaf.rows {
                Rows::Values(rows) => rows.iter_mut().for_each(|row| self.each(row)),
                Rows::Query { arguments, .. } | Rows::Shared { arguments, .. } => self.each(arguments),
                Rows::Series(series) => {
                    self.one(&mut series.start);
                    self.one(&mut series.stop);
                    self.option(&mut series.step);
                }
                _ => {}
            },
        }
    }

    fn one(&self, expr: &mut Expr) {
        // NULL takes its place meanwhile.
        *expr = self.simplified(std::mem::replace(expr, Expr::Constant(Value::Null)));
    }

    /// Simpler expressions in their places; the error of a constant part is noted.
    pub(crate) fn each(&self, exprs: &mut [Expr]) {
        exprs.iter_mut().for_each(|expr| self.one(expr));
    }

    fn option(&self, expr: &mut Option<Expr>) {
        expr.iter_mut().for_each(|expr| self.one(expr));
    }

    /// Conditions that hold together: if one never holds it is the only one.
    pub(super) fn conditions(&self, conditions: Vec<Expr>) -> Vec<Expr> {
        let mut kept = Vec::with_capacity(conditions.len());
        for condition in conditions {
            for part in conjuncts(self.simplified(condition)) {
                if is_never_true(&part) {
                    return vec![Expr::Constant(Value::Bool(false))];
                }
                if !is_true(&part) {
                    kept.push(part);
                }
            }
        }
        kept
    }

    /// The expression as a query's expressions are when its paths are chosen.
    pub(crate) fn simplified(&self, expr: Expr) -> Expr {
        match expr {
            Expr::Constant(_) | Expr::Column(_) | Expr::Parameter(_) | Expr::Outer(_) => expr,
            other => checkpoint(|| self.simplified_here(other)),
        }
    }

    fn simplified_here(&self, expr: Expr) -> Expr {
        match expr {
            Expr::And(parts) => self.connected(parts, false),
            Expr::Or(parts) => self.connected(parts, true),
            Expr::Not(input) => negated(self.simplified(*input)),
            Expr::Case { branches, otherwise } => self.case(branches, *otherwise),
            Expr::Call { function, arguments } if function.is_coalesce() => {
                let mut kept = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let argument = self.simplified(argument);
                    match &argument {
                        Expr::Constant(value) if value.is_null() => continue,
                        Expr::Constant(_) if kept.is_empty() => return argument,
                        _ => {}
                    }
                    let is_last = matches!(argument, Expr::Constant(_));
                    kept.push(argument);
                    if is_last {
                        break;
                    }
                }
                if kept.is_empty() {
                    return Expr::Constant(Value::Null);
                }
                Expr::Call {
                    function,
                    arguments: kept,
                }
            }
            other => self.computed(other),
        }
    }

    /// AND, or OR if `whole` is true: the value that decides it alone.
    fn connected(&self, parts: Vec<Expr>, whole: bool) -> Expr {
        let mut kept = Vec::with_capacity(parts.len());
        let mut has_null = false;
        for part in parts {
            let part = self.simplified(part);
            match &part {
                Expr::Constant(value) => match value.as_bool() {
                    Some(truth) if truth == whole => return part,
                    Some(_) => {}
                    None => has_null = true,
                },
                _ => match part {
                    Expr::And(parts) if !whole => kept.extend(parts),
                    Expr::Or(parts) if whole => kept.extend(parts),
                    part => kept.push(part),
                },
            }
        }
        if has_null {
            kept.push(Expr::Constant(Value::Null));
        }
        match kept.len() {
            0 => Expr::Constant(Value::Bool(!whole)),
            1 => kept.swap_remove(0),
            _ if whole => Expr::Or(kept),
            _ => Expr::And(kept),
        }
    }

    fn case(&self, branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
        let mut kept = Vec::with_capacity(branches.len());
        for (condition, result) in branches {
            let condition = self.simplified(condition);
            if is_never_true(&condition) {
                continue;
            }
            let result = self.simplified(result);
            if is_true(&condition) {
                return with_branches(kept, result);
            }
            kept.push((condition, result));
        }
        with_branches(kept, self.simplified(otherwise))
    }

    /// An expression with simpler parts; its value, if these are constants.
    fn computed(&self, expr: Expr) -> Expr {
        let (mut constant, mut long, mut parts) = (true, false, 0);
        let mapped = expr.map_children(&mut |part| {
            let part = self.simplified(part);
            match &part {
                Expr::Constant(value) => long |= value.heap_bytes() > BYTES_MAX,
                _ => constant = false,
            }
            parts += 1;
            Ok(part)
        });
        let expr = match mapped {
            Ok(expr) => expr,
            Err(error) => {
                self.add(error);
                return Expr::Constant(Value::Null);
            }
        };
        if !constant || long || parts == 0 || !expr.is_constant() {
            return expr;
        }
        match expr.eval(&[], &EvalContext::new(&[], &NoSession)) {
            Ok(value) if value.heap_bytes() <= BYTES_MAX => Expr::Constant(value),
            Ok(_) => expr,
            Err(error) => {
                self.add(error);
                expr
            }
        }
    }
}

fn is_true(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(value) if value.as_bool() == Some(true))
}

fn with_branches(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    if branches.is_empty() {
        return otherwise;
    }
    Expr::Case {
        branches,
        otherwise: Box::new(otherwise),
    }
}

/// NOT of an expression that is simple.
fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::Constant(value) => Expr::Constant(match value.as_bool() {
            Some(truth) => Value::Bool(!truth),
            None => Value::Null,
        }),
        Expr::Not(input) => *input,
        Expr::And(parts) => Expr::Or(parts.into_iter().map(negated).collect()),
        Expr::Or(parts) => Expr::And(parts.into_iter().map(negated).collect()),
        Expr::Compare {
            op,
            left,
            right,
            data_type,
        } => Expr::Compare {
            op: opposite(op),
            left,
            right,
            data_type,
        },
        other => Expr::Not(Box::new(other)),
    }
}

fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal => CompareOp::NotEqual,
        CompareOp::NotEqual => CompareOp::Equal,
        CompareOp::Less => CompareOp::GreaterOrEqual,
        CompareOp::LessOrEqual => CompareOp::Greater,
        CompareOp::Greater => CompareOp::LessOrEqual,
        CompareOp::GreaterOrEqual => CompareOp::Less,
    }
}
