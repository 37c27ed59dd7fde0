//! Conditions that hold together: one as its parts, and parts as one.

use crate::expr::Expr;

/// The parts of a condition that must all hold.
pub(crate) fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        one => vec![one],
    }
}

/// All of these as one condition.
pub(crate) fn all(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    }
}
