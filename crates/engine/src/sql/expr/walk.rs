//! The parts of an expression.

use crate::error::Result;
use crate::sql::expr::Expr;

impl Expr {
    /// Calls `visit` for this expression and all inside it.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Expr::Constant(_)
            | Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::NextSerial { .. }
            | Expr::Previous => {}
            Expr::Steps(steps) => steps.each(|steps| steps.iter().for_each(|step| step.walk(visit))),
            Expr::Cast { input, .. }
            | Expr::Negate(input)
            | Expr::Not(input)
            | Expr::IsNull { input, .. }
            | Expr::IsTruth { input, .. } => input.walk(visit),
            Expr::Compare { left, right, .. }
            | Expr::Distinct { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::Concat(left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(|part| part.walk(visit)),
            Expr::InList { input, list, .. } => {
                input.walk(visit);
                list.iter().for_each(|part| part.walk(visit));
            }
            Expr::Like { input, pattern, .. } => {
                input.walk(visit);
                pattern.walk(visit);
            }
            Expr::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    condition.walk(visit);
                    result.walk(visit);
                }
                otherwise.walk(visit);
            }
            Expr::Call { arguments, .. } => arguments.iter().for_each(|part| part.walk(visit)),
        }
    }

    /// The same expression with each direct child replaced.
    pub(crate) fn map_children(self, map: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Expr> {
        let mut boxed = |child: Box<Expr>| map(*child).map(Box::new);
        Ok(match self {
            Expr::Constant(_)
            | Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::NextSerial { .. }
            | Expr::Previous => self,
            Expr::Steps(steps) => Expr::Steps(steps.map(map)?),
            Expr::Cast {
                input,
                from,
                to,
                typmod,
                context,
            } => Expr::Cast {
                input: boxed(input)?,
                from,
                to,
                typmod,
                context,
            },
            Expr::Negate(input) => Expr::Negate(boxed(input)?),
            Expr::Not(input) => Expr::Not(boxed(input)?),
            Expr::IsNull { input, negated } => Expr::IsNull {
                input: boxed(input)?,
                negated,
            },
            Expr::IsTruth {
                input,
                truth,
                negated,
            } => Expr::IsTruth {
                input: boxed(input)?,
                truth,
                negated,
            },
            Expr::Compare {
                op,
                left,
                right,
                data_type,
            } => Expr::Compare {
                op,
                left: boxed(left)?,
                right: boxed(right)?,
                data_type,
            },
            Expr::Distinct {
                left,
                right,
                data_type,
                negated,
            } => Expr::Distinct {
                left: boxed(left)?,
                right: boxed(right)?,
                data_type,
                negated,
            },
            Expr::Arithmetic { op, left, right } => Expr::Arithmetic {
                op,
                left: boxed(left)?,
                right: boxed(right)?,
            },
            Expr::Concat(left, right) => Expr::Concat(boxed(left)?, boxed(right)?),
            Expr::And(parts) => Expr::And(parts.into_iter().map(map).collect::<Result<_>>()?),
            Expr::Or(parts) => Expr::Or(parts.into_iter().map(map).collect::<Result<_>>()?),
            Expr::InList {
                input,
                list,
                data_type,
                negated,
            } => Expr::InList {
                input: boxed(input)?,
                list: list.into_iter().map(map).collect::<Result<_>>()?,
                data_type,
                negated,
            },
            Expr::Like {
                input,
                pattern,
                escape,
                ignore_case,
                negated,
            } => Expr::Like {
                input: boxed(input)?,
                pattern: boxed(pattern)?,
                escape,
                ignore_case,
                negated,
            },
            Expr::Case { branches, otherwise } => Expr::Case {
                otherwise: boxed(otherwise)?,
                branches: branches
                    .into_iter()
                    .map(|(condition, result)| Ok((map(condition)?, map(result)?)))
                    .collect::<Result<_>>()?,
            },
            Expr::Call { function, arguments } => Expr::Call {
                function,
                arguments: arguments.into_iter().map(map).collect::<Result<_>>()?,
            },
        })
    }

    /// The input columns it reads, each once per use.
    pub fn columns(&self, visit: &mut dyn FnMut(u16)) {
        self.walk(&mut |expr| {
            if let Expr::Column(position) = expr {
                visit(*position);
            }
        });
    }

    /// True if its value is the same for every row of one execution: no column, and nothing that changes from call to
    /// call.
    pub fn is_stable(&self) -> bool {
        let mut stable = true;
        self.walk(&mut |expr| match expr {
            Expr::Column(_) | Expr::NextSerial { .. } => stable = false,
            Expr::Call { function, .. } if function.is_volatile() => stable = false,
            _ => {}
        });
        stable
    }

    /// True if it may be evaluated once more without a trace, and gives the same value for the same row.
    pub fn is_repeatable(&self) -> bool {
        let mut repeatable = true;
        self.walk(&mut |expr| match expr {
            Expr::NextSerial { .. } => repeatable = false,
            Expr::Call { function, .. } if function.is_volatile() => repeatable = false,
            _ => {}
        });
        repeatable
    }

    /// True if its value is known now: literals only.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |expr| match expr {
            Expr::Column(_) | Expr::Parameter(_) | Expr::NextSerial { .. } | Expr::Previous => {
                constant = false
            }
            Expr::Call { function, .. } if !function.is_immutable() => constant = false,
            // Text to time may depend on the day ('now', 'today').
            Expr::Cast { from, to, .. }
                if from.is_string() && to.category() == crate::value::Category::DateTime =>
            {
                constant = false
            }
            _ => {}
        });
        constant
    }
}
