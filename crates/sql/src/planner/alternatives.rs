//! Conditions on one side of a join that follow from an OR over several sides.
//!
//! If each arm of an OR has something to say about one side alone, one of these must hold for the rows of that side:
//!
//! ```text
//! a.x = 1 and b.y = 2 or a.x = 3 and b.z = 4      a: x = 1 or x = 3      b: y = 2 or z = 4
//! ```
//!
//! The whole condition stays where it was. What follows from it is checked in addition, as early as a row of the side is
//! there, and may find the rows by an index. PostgreSQL has the idea under the name of restriction OR clauses.

use crate::expr::Expr;
use crate::planner::scan::{all, conjuncts};

/// The conditions on one side that follow from these; `of_side` tells that an expression reads that side alone.
pub(super) fn on_one_side(conditions: &[Expr], of_side: &dyn Fn(&Expr) -> bool) -> Vec<Expr> {
    conditions
        .iter()
        .filter_map(|condition| match condition {
            Expr::Or(arms) => arms
                .iter()
                .map(|arm| part_of_arm(arm, of_side))
                .collect::<Option<Vec<_>>>()
                .map(Expr::Or),
            _ => None,
        })
        .collect()
}

/// All that an arm says about the side; `None` if that is nothing.
fn part_of_arm(arm: &Expr, of_side: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let mut parts = conjuncts(arm.clone());
    parts.retain(|part| !part.has_subquery() && part.is_repeatable() && of_side(part));
    all(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::CompareOp;
    use crate::value::{DataType, Value};

    fn equal(column: u16, value: i32) -> Expr {
        Expr::Compare {
            op: CompareOp::Equal,
            left: Box::new(Expr::Column(column)),
            right: Box::new(Expr::Constant(Value::Int4(value))),
            data_type: DataType::Int4,
        }
    }

    fn reads_only(column: u16) -> impl Fn(&Expr) -> bool {
        move |expr| {
            let mut read = Vec::new();
            expr.columns(&mut |found| read.push(found));
            !read.is_empty() && read.iter().all(|found| *found == column)
        }
    }

    #[test]
    fn each_arm_must_speak_of_the_side() {
        let both = Expr::Or(vec![
            Expr::And(vec![equal(0, 1), equal(1, 2)]),
            Expr::And(vec![equal(0, 3), equal(2, 4), equal(0, 5)]),
        ]);
        let conditions = [equal(0, 9), both];
        assert_eq!(
            on_one_side(&conditions, &reads_only(0)),
            [Expr::Or(vec![
                equal(0, 1),
                Expr::And(vec![equal(0, 3), equal(0, 5)])
            ])]
        );
        assert_eq!(on_one_side(&conditions, &reads_only(1)), []);
        assert_eq!(on_one_side(&conditions, &reads_only(7)), []);
    }
}
