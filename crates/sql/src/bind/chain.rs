//! Chains of operators, bound in a loop.
//!
//! ```text
//!   a + b > 0 or c     is     Or                 bound as    a  → a + b → (a + b) > 0 → … or c
//!                            /  \                            the leaf first, then each operator that has it on its left
//!                           >    c
//!                          / \
//!                         +   0
//!                        / \
//!                       a   b
//! ```
//!
//! A chain may have a hundred thousand operators, and the tree is as deep. So the way down to the leftmost leaf is a
//! loop, and so is the way back up, where each operator takes what has been bound so far as its left side. Two things
//! keep the result flat:
//!
//! 1. Neighbours of one kind, AND or OR, become one expression with all parts.
//! 2. After [`CHAIN_PER_STEP`] operators that did not fold into a constant, what there is becomes a step of
//!    [`Expr::Steps`], and the chain goes on with [`Expr::Previous`].
//!
//! All operators of a chain begin where its leaf begins, so their position is computed once, not by going down again.

use sqlparser::ast::{self, BinaryOperator, Spanned, UnaryOperator};
use sqlparser::tokenizer::Span;

use crate::bind::row_columns::columns_of;
use crate::bind::scope::Scope;
use crate::bind::{Binder, Typed, boolean};
use crate::error::{EngineError, Result};
use crate::expr::{Expr, Steps};
use crate::stack::{CHAIN_PER_STEP, NESTING_PER_CHECKPOINT, checkpoint};

/// The left operand of an expression, if it is an operator with a left side.
fn left_operand(tree: &ast::Expr) -> Option<&ast::Expr> {
    use ast::Expr as E;
    match tree {
        E::BinaryOp { left: operand, .. }
        | E::AnyOp { left: operand, .. }
        | E::AllOp { left: operand, .. }
        | E::IsNull(operand)
        | E::IsNotNull(operand)
        | E::IsTrue(operand)
        | E::IsNotTrue(operand)
        | E::IsFalse(operand)
        | E::IsNotFalse(operand)
        | E::IsUnknown(operand)
        | E::IsNotUnknown(operand)
        | E::IsDistinctFrom(operand, _)
        | E::IsNotDistinctFrom(operand, _)
        | E::IsJson { expr: operand, .. }
        | E::IsNormalized { expr: operand, .. }
        | E::InList { expr: operand, .. }
        | E::InSubquery { expr: operand, .. }
        | E::InUnnest { expr: operand, .. }
        | E::Between { expr: operand, .. }
        | E::Like { expr: operand, .. }
        | E::ILike { expr: operand, .. }
        | E::SimilarTo { expr: operand, .. }
        | E::RLike { expr: operand, .. }
        | E::Cast { expr: operand, .. }
        | E::AtTimeZone {
            timestamp: operand, ..
        }
        | E::Collate { expr: operand, .. }
        | E::JsonAccess { value: operand, .. }
        | E::UnaryOp {
            op: UnaryOperator::PGPostfixFactorial,
            expr: operand,
        } => Some(operand),
        _ => None,
    }
}

/// The start of an expression: that of its leftmost leaf.
fn span_of(tree: &ast::Expr) -> Span {
    let mut leaf = tree;
    loop {
        leaf = match leaf {
            ast::Expr::Nested(inner)
            | ast::Expr::UnaryOp { expr: inner, .. }
            | ast::Expr::CompoundFieldAccess { root: inner, .. } => inner,
            ast::Expr::Function(call) => return call.name.span(),
            ast::Expr::Case { case_token, .. } => return case_token.0.span,
            other => match left_operand(other) {
                Some(left) => left,
                None => return other.span(),
            },
        };
    }
}

/// The right side of an AND or OR.
fn joined<'t>(tree: &'t ast::Expr, wanted: &BinaryOperator) -> Option<&'t ast::Expr> {
    match tree {
        ast::Expr::BinaryOp { op, right, .. } if op == wanted => Some(right),
        _ => None,
    }
}

/// An expression that takes no evaluation worth a step.
pub(super) fn is_leaf(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Constant(_) | Expr::Column(_) | Expr::Parameter(_) | Expr::Previous
    )
}

impl Binder<'_> {
    /// The position in the message of an expression.
    pub(super) fn position_of(&self, tree: &ast::Expr) -> Option<u32> {
        self.position(span_of(tree))
    }

    /// The position of a table's name; a subquery has none.
    pub(super) fn position_of_relation(&self, relation: &ast::TableFactor) -> Option<u32> {
        match relation {
            ast::TableFactor::Table { name, .. } => self.position(name.span()),
            _ => None,
        }
    }

    /// Binds an expression.
    pub(super) fn expression(&mut self, tree: &ast::Expr, scope: &mut Scope) -> Result<Typed> {
        self.tick()?;
        self.nesting += 1;
        let bound = checkpoint(|| self.chain(tree, scope));
        let inside = self.nesting;
        self.nesting -= 1;
        let mut typed = bound?;
        if inside.is_multiple_of(NESTING_PER_CHECKPOINT) && !is_leaf(&typed.expr) {
            typed.expr = Expr::Steps(Steps::new(vec![typed.expr]));
        }
        Ok(typed)
    }

    fn chain(&mut self, tree: &ast::Expr, scope: &mut Scope) -> Result<Typed> {
        let mut operators = Vec::new();
        let mut leaf = tree;
        while let Some(left) = left_operand(leaf) {
            operators.push(leaf);
            leaf = left;
        }
        let position = self.position_of(leaf);
        let mut row = None;
        if let Some(operator) = operators.last()
            && let Some(columns) = columns_of(leaf)
        {
            row = self.row_operator(&columns, operator, scope, position)?;
        }
        let mut typed = match row {
            Some(typed) => {
                operators.pop();
                typed
            }
            None => match (leaf, operators.last()) {
                (ast::Expr::Array(array), Some(ast::Expr::Cast { data_type, .. })) => {
                    self.array_cast_to(array, data_type, scope, self.position_of(leaf))?
                }
                _ => self.operand(leaf, scope)?,
            },
        };
        self.note_type(leaf, &typed);
        if operators.is_empty() {
            return Ok(typed);
        }
        let mut steps = Vec::new();
        let mut in_this_step = 0;
        while let Some(operator) = operators.pop() {
            self.tick()?;
            typed = match operator {
                ast::Expr::BinaryOp {
                    op: op @ (BinaryOperator::And | BinaryOperator::Or),
                    right,
                    ..
                } => {
                    let mut rights = vec![&**right];
                    while let Some(right) = operators.last().and_then(|next| joined(next, op)) {
                        rights.push(right);
                        operators.pop();
                    }
                    self.join(op, typed, position, &rights, scope)?
                }
                _ => self.operator(operator, typed, scope, position)?,
            };
            self.note_type(operator, &typed);
            in_this_step += 1;
            if in_this_step >= CHAIN_PER_STEP && !operators.is_empty() && !is_leaf(&typed.expr) {
                steps.push(std::mem::replace(&mut typed.expr, Expr::Previous));
                in_this_step = 0;
            }
        }
        if !steps.is_empty() {
            steps.push(typed.expr);
            typed.expr = Expr::Steps(Steps::new(steps));
        }
        Ok(typed)
    }

    /// AND or OR over all of a chain's parts.
    fn join(
        &mut self,
        op: &BinaryOperator,
        left: Typed,
        position: Option<u32>,
        rights: &[&ast::Expr],
        scope: &mut Scope,
    ) -> Result<Typed> {
        let and = *op == BinaryOperator::And;
        let word = if and { "AND" } else { "OR" };
        let mut parts = Vec::with_capacity(rights.len() + 1);
        let mut take = |condition: Expr| match condition {
            Expr::And(inner) if and => parts.extend(inner),
            Expr::Or(inner) if !and => parts.extend(inner),
            one => parts.push(one),
        };
        take(self.condition(left, word, position)?);
        for right in rights {
            let typed = self.expression(right, scope)?;
            take(self.condition(typed, word, self.position_of(right))?);
        }
        Ok(boolean(if and { Expr::And(parts) } else { Expr::Or(parts) }))
    }

    /// Something used several times: as it is if that costs nothing, else by way of a step. Gives what to use, and the
    /// step if there is one.
    ///
    /// Copies would double with each level of `x between 1 and 2 between …`.
    pub(super) fn used_often(&mut self, mut input: Typed) -> (Typed, Option<Expr>) {
        let cheap = match &input.expr {
            Expr::Cast { input, .. } => is_leaf(input),
            other => is_leaf(other),
        };
        if cheap {
            return (input, None);
        }
        let step = std::mem::replace(&mut input.expr, Expr::Previous);
        (input, Some(step))
    }
}

/// An expression over [`Expr::Previous`] together with the step it looks at.
pub(super) fn after(step: Option<Expr>, expr: Expr) -> Expr {
    match step {
        Some(step) => Expr::Steps(Steps::new(vec![step, expr])),
        None => expr,
    }
}

/// 0A000 for an operator that is not there, by its name alone: its operands may be long.
pub(super) fn unsupported(tree: &ast::Expr) -> EngineError {
    use ast::Expr as E;
    let name = match tree {
        E::Subquery(_) | E::InSubquery { .. } | E::Exists { .. } => "a subquery",
        E::IsJson { .. } => "IS JSON",
        E::IsNormalized { .. } => "IS NORMALIZED",
        E::InUnnest { .. } => "IN UNNEST",
        E::Like { .. } | E::ILike { .. } => "LIKE ANY",
        E::RLike { .. } => "RLIKE",
        E::JsonAccess { .. } => "access to a part of a json value",
        E::UnaryOp { op, .. } => return EngineError::not_supported(format!("the operator {op}")),
        E::Cast { .. } => "this form of CAST",
        E::GroupingSets(_) => "GROUPING SETS",
        E::Cube(_) => "CUBE",
        E::Rollup(_) => "ROLLUP",
        other => return EngineError::not_supported(format!("the expression {other}")),
    };
    EngineError::not_supported(name)
}
