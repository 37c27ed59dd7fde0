//! The parts of an expression.

use crate::error::Result;
use crate::expr::domain::may_be_checked;
use crate::expr::{Expr, SubqueryForm};
use crate::value::Value;
use crate::value::cast::cast_depends_on_settings;

impl Expr {
    /// Calls `visit` for this expression and all inside it.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Expr::Constant(_)
            | Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::Outer(_)
            | Expr::Aggregate(_)
            | Expr::Window(_)
            | Expr::NextSerial { .. }
            | Expr::Previous => {}
            Expr::Steps(steps) => steps.each(|steps| steps.iter().for_each(|step| step.walk(visit))),
            Expr::Cast { input, .. }
            | Expr::Negate(input)
            | Expr::Not(input)
            | Expr::IsNull { input, .. }
            | Expr::IsTruth { input, .. }
            | Expr::Field { input, .. } => input.walk(visit),
            Expr::Compare { left, right, .. }
            | Expr::Distinct { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::Concat(left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            Expr::And(parts) | Expr::Or(parts) | Expr::Row { fields: parts, .. } => {
                parts.iter().for_each(|part| part.walk(visit));
            }
            Expr::InList { input, list, .. } => {
                input.walk(visit);
                list.iter().for_each(|part| part.walk(visit));
            }
            Expr::RowTest { input, rows, .. } => {
                input.iter().for_each(|part| part.walk(visit));
                rows.iter().flatten().for_each(|part| part.walk(visit));
            }
            Expr::Like {
                input,
                pattern: other,
                ..
            }
            | Expr::Quantified {
                input, array: other, ..
            }
            | Expr::TestElements {
                input, array: other, ..
            } => {
                input.walk(visit);
                other.walk(visit);
            }
            Expr::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    condition.walk(visit);
                    result.walk(visit);
                }
                otherwise.walk(visit);
            }
            Expr::Call { arguments, .. } => arguments.iter().for_each(|part| part.walk(visit)),
            Expr::Subquery(subquery) => {
                subquery.arguments.iter().for_each(|part| part.walk(visit));
                match &subquery.form {
                    SubqueryForm::Quantified(quantified) | SubqueryForm::Row(quantified) => {
                        quantified.operand.iter().for_each(|part| part.walk(visit));
                    }
                    SubqueryForm::Tested { operand, .. } => operand.walk(visit),
                    SubqueryForm::Scalar
                    | SubqueryForm::Exists
                    | SubqueryForm::Array(_)
                    | SubqueryForm::Arrays(_) => {}
                }
            }
        }
    }

    /// The same expression with each direct child replaced.
    pub(crate) fn map_children(mut self, map: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Expr> {
        if let Expr::Steps(steps) = self {
            return steps.map(map).map(Expr::Steps);
        }
        self.each_child(&mut |child| {
            // NULL takes its place meanwhile; after an error the whole expression is given up.
            let before = std::mem::replace(child, Expr::Constant(Value::Null));
            *child = map(before)?;
            Ok(())
        })?;
        Ok(self)
    }

    /// Calls `visit` for each direct child; not for those of a chain.
    fn each_child(&mut self, visit: &mut dyn FnMut(&mut Expr) -> Result<()>) -> Result<()> {
        match self {
            Expr::Constant(_)
            | Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::Outer(_)
            | Expr::Aggregate(_)
            | Expr::Window(_)
            | Expr::NextSerial { .. }
            | Expr::Previous
            | Expr::Steps(_) => Ok(()),
            Expr::Cast { input, .. }
            | Expr::Negate(input)
            | Expr::Not(input)
            | Expr::IsNull { input, .. }
            | Expr::IsTruth { input, .. }
            | Expr::Field { input, .. } => visit(input),
            Expr::Compare { left, right, .. }
            | Expr::Distinct { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::Like {
                input: left,
                pattern: right,
                ..
            }
            | Expr::Quantified {
                input: left,
                array: right,
                ..
            }
            | Expr::TestElements {
                input: left,
                array: right,
                ..
            }
            | Expr::Concat(left, right) => {
                visit(left)?;
                visit(right)
            }
            Expr::And(parts) | Expr::Or(parts) | Expr::Row { fields: parts, .. } => {
                parts.iter_mut().try_for_each(visit)
            }
            Expr::InList { input, list, .. } => {
                visit(input)?;
                list.iter_mut().try_for_each(visit)
            }
            Expr::RowTest { input, rows, .. } => {
                input.iter_mut().try_for_each(&mut *visit)?;
                rows.iter_mut().flatten().try_for_each(visit)
            }
            Expr::Case { branches, otherwise } => {
                visit(otherwise)?;
                branches.iter_mut().try_for_each(|(condition, result)| {
                    visit(condition)?;
                    visit(result)
                })
            }
            Expr::Call { arguments, .. } => arguments.iter_mut().try_for_each(visit),
            Expr::Subquery(subquery) => {
                subquery.arguments.iter_mut().try_for_each(&mut *visit)?;
                match &mut subquery.form {
                    SubqueryForm::Quantified(quantified) | SubqueryForm::Row(quantified) => {
                        quantified.operand.iter_mut().try_for_each(visit)
                    }
                    SubqueryForm::Tested { operand, .. } => visit(operand),
                    SubqueryForm::Scalar
                    | SubqueryForm::Exists
                    | SubqueryForm::Array(_)
                    | SubqueryForm::Arrays(_) => Ok(()),
                }
            }
        }
    }

    /// The input columns it reads, each once per use.
    pub fn columns(&self, visit: &mut dyn FnMut(u16)) {
        self.walk(&mut |expr| {
            if let Expr::Column(position) = expr {
                visit(*position);
            }
        });
    }

    /// True if it reads that input column.
    pub(crate) fn reads(&self, column: u16) -> bool {
        let mut reads = false;
        self.columns(&mut |read| reads |= read == column);
        reads
    }

    /// True if its value is the same for every row of one execution: no column, and nothing that changes from call to
    /// call.
    pub fn is_stable(&self) -> bool {
        let mut stable = true;
        self.walk(&mut |expr| match expr {
            Expr::Column(_) | Expr::NextSerial { .. } | Expr::Subquery(_) => stable = false,
            Expr::Call { function, .. } if function.is_volatile() => stable = false,
            _ => {}
        });
        stable
    }

    /// True if a query is inside it.
    pub fn has_subquery(&self) -> bool {
        let mut found = false;
        self.walk(&mut |expr| found |= matches!(expr, Expr::Subquery(_)));
        found
    }

    /// True if it may be evaluated once more without a trace, and gives the same value for the same row.
    pub fn is_repeatable(&self) -> bool {
        let mut repeatable = true;
        self.walk(&mut |expr| match expr {
            Expr::NextSerial { .. } | Expr::Subquery(_) => repeatable = false,
            Expr::Call { function, .. } if function.is_volatile() => repeatable = false,
            _ => {}
        });
        repeatable
    }

    /// True if its value is known now: literals only.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |expr| match expr {
            Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::Outer(_)
            | Expr::Aggregate(_)
            | Expr::Window(_)
            | Expr::Subquery(_)
            | Expr::NextSerial { .. }
            | Expr::Previous => constant = false,
            Expr::Call { function, .. } if !function.is_immutable() => constant = false,
            // The CHECK of a domain may ask for what the session has.
            Expr::Cast { to, .. } if may_be_checked(*to) => constant = false,
            // Names are those of the time when it runs.
            Expr::Cast { from, to, .. } if from.has_names() || to.has_names() => constant = false,
            // The digits of floats are those that the session asks for.
            Expr::Cast { from, to, .. } if to.is_string() && from.element().unwrap_or(*from).is_float() => {
                constant = false;
            }
            // So is the form of intervals and bytes.
            Expr::Cast { from, to, .. }
                if from.has_style() != to.has_style() && (from.is_text() || to.is_text()) =>
            {
                constant = false;
            }
            // The zone and DateStyle are those of the session that runs it.
            Expr::Cast { from, to, .. } if cast_depends_on_settings(*from, *to) => constant = false,
            // Text to time may depend on the day ('now', 'today').
            Expr::Cast { from, to, .. } if from.is_string() && to.holds_time() => constant = false,
            _ => {}
        });
        constant
    }
}
