//! Conclusions from the conditions of a query to the predicate of an index.
//!
//! A partial index may stand for its table where each row that passes the conditions has an entry: where the predicate is
//! true whenever the conditions, joined by AND, are. What is concluded is always right, and not all that could be:
//!
//! 1. A condition implies itself.
//! 2. `A AND B` follows if both do; `A OR B` if one of them does, or if a condition is an OR each side of which implies it.
//! 3. `x IS NOT NULL` follows from a comparison of x, which is not true of NULL.
//! 4. `x op constant` follows from another comparison of x with a constant that leaves no other value: `x > 5` from
//!    `x > 7`, `x = 6` and `x >= 6`. `x IN (…)` follows from `x = c` for each of its constants.

use std::cmp::Ordering;

use crate::expr::{CompareOp, Expr};
use crate::value::{DataType, Value, compare};

/// True if a predicate is true of all rows of which the conditions are.
pub(crate) fn predicate_follows(predicate: &Expr, conditions: &[Expr]) -> bool {
    match predicate {
        Expr::And(parts) => parts.iter().all(|part| predicate_follows(part, conditions)),
        Expr::Or(parts) => {
            parts.iter().any(|part| predicate_follows(part, conditions))
                || conditions.iter().any(|condition| implies(condition, predicate))
        }
        _ => conditions.iter().any(|condition| implies(condition, predicate)),
    }
}

fn implies(condition: &Expr, predicate: &Expr) -> bool {
    if condition == predicate {
        return true;
    }
    match (condition, predicate) {
        (Expr::Or(parts), _) => parts
            .iter()
            .all(|part| predicate_follows(predicate, std::slice::from_ref(part))),
        (Expr::And(parts), _) => parts.iter().any(|part| implies(part, predicate)),
        (_, Expr::IsNull { input, negated: true }) => is_strict_in(condition, input),
        (_, Expr::Compare { .. }) => match (compared(condition), compared(predicate)) {
            (Some(given), Some(wanted)) => given.implies(&wanted),
            _ => false,
        },
        (
            _,
            Expr::InList {
                input,
                list,
                data_type,
                negated: false,
            },
        ) => compared(condition).is_some_and(|given| {
            let is_it = |value: &Expr| matches!(value, Expr::Constant(value) if given.value == value);
            given.op == CompareOp::Equal
                && given.data_type == *data_type
                && *given.input == **input
                && list.iter().any(is_it)
        }),
        _ => false,
    }
}

/// True if a condition is not true where `input` is NULL.
fn is_strict_in(condition: &Expr, input: &Expr) -> bool {
    match condition {
        Expr::Compare { left, right, .. } => **left == *input || **right == *input,
        Expr::Like { input: own, .. }
        | Expr::InList {
            input: own,
            negated: false,
            ..
        } => **own == *input,
        _ => false,
    }
}

/// `input op constant`
struct Compared<'e> {
    input: &'e Expr,
    op: CompareOp,
    value: &'e Value,
    data_type: DataType,
}

fn compared(expr: &Expr) -> Option<Compared<'_>> {
    let Expr::Compare {
        op,
        left,
        right,
        data_type,
    } = expr
    else {
        return None;
    };
    let (input, op, value) = match (&**left, &**right) {
        (input, Expr::Constant(value)) => (input, *op, value),
        (Expr::Constant(value), input) => (input, op.mirrored(), value),
        _ => return None,
    };
    (!value.is_null()).then_some(Compared {
        input,
        op,
        value,
        data_type: *data_type,
    })
}

impl Compared<'_> {
    fn implies(&self, wanted: &Compared<'_>) -> bool {
        use CompareOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        if self.input != wanted.input
            || self.data_type != wanted.data_type
            || std::mem::discriminant(self.value) != std::mem::discriminant(wanted.value)
        {
            return false;
        }
        let order = compare(self.value, wanted.value, self.data_type);
        match (self.op, wanted.op) {
            (Equal, op) => op.holds(order),
            (Greater, Greater | GreaterOrEqual | NotEqual) | (GreaterOrEqual, GreaterOrEqual) => {
                order != Ordering::Less
            }
            (GreaterOrEqual, Greater | NotEqual) => order == Ordering::Greater,
            (Less, Less | LessOrEqual | NotEqual) | (LessOrEqual, LessOrEqual) => order != Ordering::Greater,
            (LessOrEqual, Less | NotEqual) => order == Ordering::Less,
            (NotEqual, NotEqual) => order == Ordering::Equal,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare_with(op: CompareOp, value: i32) -> Expr {
        Expr::Compare {
            op,
            left: Box::new(Expr::Column(0)),
            right: Box::new(Expr::Constant(Value::Int4(value))),
            data_type: DataType::Int4,
        }
    }

    /// Each conclusion is right: no value passes the condition and not the predicate.
    #[test]
    fn what_follows_is_true_of_all_values_that_pass() {
        use CompareOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let all = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual];
        let mut concluded = 0;
        for (given, wanted) in all.iter().flat_map(|given| all.map(|wanted| (*given, wanted))) {
            for (left, right) in (0..4).flat_map(|left| (0..4).map(move |right| (left, right))) {
                let condition = compare_with(given, left);
                if predicate_follows(&compare_with(wanted, right), &[condition]) {
                    concluded += 1;
                    for value in -2..7_i32 {
                        assert!(
                            !given.holds(value.cmp(&left)) || wanted.holds(value.cmp(&right)),
                            "{value} {given:?} {left} and not {wanted:?} {right}"
                        );
                    }
                }
            }
        }
        assert_eq!(concluded, 156);
    }

    #[test]
    fn parts_of_and_and_or_follow_one_by_one() {
        let (five, six) = (
            compare_with(CompareOp::Equal, 5),
            compare_with(CompareOp::Equal, 6),
        );
        let above = compare_with(CompareOp::Greater, 4);
        let either = Expr::Or(vec![five.clone(), six.clone()]);
        let not_null = Expr::IsNull {
            input: Box::new(Expr::Column(0)),
            negated: true,
        };
        assert!(predicate_follows(&above, std::slice::from_ref(&either)));
        assert!(predicate_follows(&either, std::slice::from_ref(&five)));
        assert!(!predicate_follows(&five, std::slice::from_ref(&either)));
        assert!(predicate_follows(&not_null, std::slice::from_ref(&above)));
        let both = Expr::And(vec![not_null.clone(), above.clone()]);
        assert!(predicate_follows(&both, std::slice::from_ref(&six)));
        assert!(!predicate_follows(&both, &[not_null]));
    }
}
