//! Queries inside expressions.
//!
//! A query that depends on the row around it gets what it needs as *arguments*: expressions over that row, which are
//! `Expr::Outer(n)` inside the query. So no expression ever reads a row other than that of its own query, and whatever
//! rewrites the expressions around a query (grouping, another order of joins) rewrites the arguments with them.
//!
//! The query itself lies in the statement's list ([`Plan::subqueries`](crate::plan::Plan)); the expression has its
//! number. It runs when the expression is evaluated, and not before: what CASE or AND leave out does not run.

use crate::context::{EvalContext, Membership};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::operator_test::Outcome;
use crate::expr::{CompareOp, Expr, OperatorTest};
use crate::value::array::{check_accumulated, nested};
use crate::value::key::encode_value;
use crate::value::{ArrayValue, DataType, Value, compare_checked};

/// A query inside an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// Its number in the statement's list.
    pub number: usize,
    /// The values of `Expr::Outer(n)` inside it, over the row around it. Without any the query gives the same rows for
    /// every row around it.
    pub arguments: Vec<Expr>,
    /// The use that is made of its rows.
    pub form: SubqueryForm,
}

/// The use that is made of a query's rows.
#[derive(Debug, Clone, PartialEq)]
pub enum SubqueryForm {
    /// The value of its only row; NULL without a row, 21000 for more than one.
    Scalar,
    /// True if it has a row.
    Exists,
    /// The array of its rows' values, of this type: `ARRAY(SELECT …)`.
    Array(DataType),
    /// The array of the arrays that its rows have.
    Arrays(DataType),
    /// `operand op ANY (query)` or `operand op ALL (query)`.
    Quantified(Quantified),
    /// `operand op ANY (query)` or ALL of an operator that is no comparison.
    Tested {
        /// The operator and the quantifier.
        test: Box<OperatorTest>,
        /// The left side.
        operand: Box<Expr>,
    },
    /// `operand op (query)`, of rows: the comparison with its only row; NULL without a row, 21000 for more than one.
    Row(Quantified),
}

/// A comparison with all rows of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantified {
    /// The operator.
    pub op: CompareOp,
    /// ALL; ANY if not.
    pub all: bool,
    /// The left side, a value a column.
    pub operand: Vec<Expr>,
    /// The right side over a row of the query, brought to the types of comparison.
    pub columns: Vec<Expr>,
    /// The types of comparison.
    pub types: Vec<DataType>,
}

impl Subquery {
    pub(super) fn eval(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        let arguments = values(&self.arguments, row, context)?;
        match &self.form {
            SubqueryForm::Scalar => {
                let row = self.only_row(&arguments, context)?;
                Ok(row.and_then(|row| row.into_iter().next()).unwrap_or(Value::Null))
            }
            SubqueryForm::Row(quantified) => {
                let operand = values(&quantified.operand, row, context)?;
                let truth = match self.only_row(&arguments, context)? {
                    Some(found) => quantified.holds(&operand, &found, context)?,
                    None => None,
                };
                Ok(truth.map_or(Value::Null, Value::Bool))
            }
            SubqueryForm::Exists => {
                let mut found = false;
                context.subqueries()?.rows(self.number, &arguments, &mut |_| {
                    found = true;
                    Ok(false)
                })?;
                Ok(Value::Bool(found))
            }
            SubqueryForm::Array(data_type) => {
                let mut elements = Vec::new();
                context
                    .subqueries()?
                    .rows(self.number, &arguments, &mut |found| {
                        elements.push(found[0].clone());
                        Ok(true)
                    })?;
                ArrayValue::of(*data_type, elements).map(Value::from)
            }
            SubqueryForm::Arrays(data_type) => {
                let mut parts: Vec<Value> = Vec::new();
                context
                    .subqueries()?
                    .rows(self.number, &arguments, &mut |found| {
                        check_accumulated(parts.first(), &found[0])?;
                        parts.push(found[0].clone());
                        Ok(true)
                    })?;
                nested(*data_type, &parts)
            }
            SubqueryForm::Quantified(quantified) => {
                let operand = values(&quantified.operand, row, context)?;
                let truth = if self.arguments.is_empty() && quantified.is_membership() {
                    self.is_member(quantified, &operand, context)?
                } else {
                    self.compared(quantified, &arguments, &operand, context)?
                };
                Ok(truth.map_or(Value::Null, Value::Bool))
            }
            SubqueryForm::Tested { test, operand } => {
                let mut outcome = Outcome::new(test, &operand.eval(row, context)?);
                context
                    .subqueries()?
                    .rows(self.number, &arguments, &mut |found| {
                        outcome.goes_on(&found[0], context)
                    })?;
                Ok(outcome.truth().map_or(Value::Null, Value::Bool))
            }
        }
    }

    /// The values of its only row, over the row around it; NULLs, `width` of them, without one.
    pub fn row_values(&self, width: usize, row: &[Value], context: &EvalContext<'_>) -> Result<Vec<Value>> {
        let arguments = values(&self.arguments, row, context)?;
        let found = self.only_row(&arguments, context)?;
        Ok(found.unwrap_or_else(|| vec![Value::Null; width]))
    }

    fn only_row(&self, arguments: &[Value], context: &EvalContext<'_>) -> Result<Option<Vec<Value>>> {
        let mut only = None;
        context.subqueries()?.rows(self.number, arguments, &mut |found| {
            if only.is_some() {
                return Err(EngineError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "more than one row returned by a subquery used as an expression",
                ));
            }
            only = Some(found.to_vec());
            Ok(true)
        })?;
        Ok(only)
    }

    /// `operand = ANY (query)` by a set of the query's values, which is made once.
    fn is_member(
        &self,
        quantified: &Quantified,
        operand: &[Value],
        context: &EvalContext<'_>,
    ) -> Result<Option<bool>> {
        let mut key_of_row = |found: &[Value]| -> Result<Option<Vec<u8>>> {
            let columns = quantified
                .columns
                .iter()
                .map(|column| column.eval(found, context));
            Ok(equality_key_of(
                &columns.collect::<Result<Vec<_>>>()?,
                &quantified.types,
            ))
        };
        let key = equality_key_of(operand, &quantified.types);
        let membership =
            context
                .subqueries()?
                .find(self.number, key.as_deref().unwrap_or_default(), &mut key_of_row)?;
        let has_several = quantified.types.len() > 1;
        match membership {
            Membership::Empty => Ok(Some(false)),
            Membership::Found if key.is_some() => Ok(Some(true)),
            Membership::Missing if key.is_some() => Ok(Some(false)),
            // A row with a NULL is unequal if another of its columns is.
            _ if has_several => self.compared(quantified, &[], operand, context),
            _ => Ok(None),
        }
    }

    fn compared(
        &self,
        quantified: &Quantified,
        arguments: &[Value],
        operand: &[Value],
        context: &EvalContext<'_>,
    ) -> Result<Option<bool>> {
        let mut outcome = Some(quantified.all);
        context.subqueries()?.rows(self.number, arguments, &mut |found| {
            match quantified.holds(operand, found, context)? {
                Some(truth) if truth != quantified.all => {
                    outcome = Some(truth);
                    return Ok(false);
                }
                Some(_) => {}
                None => outcome = None,
            }
            Ok(true)
        })?;
        Ok(outcome)
    }
}

impl Quantified {
    /// True if a set of the query's values answers it.
    fn is_membership(&self) -> bool {
        self.op == CompareOp::Equal && !self.all
    }

    /// The comparison with one row. Several columns are equal if all are, and unequal if one is; for another operator
    /// the first pair that is not equal decides.
    fn holds(&self, operand: &[Value], found: &[Value], context: &EvalContext<'_>) -> Result<Option<bool>> {
        let by_equality = matches!(self.op, CompareOp::Equal | CompareOp::NotEqual);
        let mut unknown = false;
        for ((left, right), data_type) in operand.iter().zip(&self.columns).zip(&self.types) {
            let right = right.eval(found, context)?;
            if left.is_null() || right.is_null() {
                if by_equality {
                    unknown = true;
                    continue;
                }
                return Ok(None);
            }
            let ordering = compare_checked(left, &right, *data_type)?;
            let truth = self.op.holds(ordering);
            if !by_equality {
                if ordering.is_ne() {
                    return Ok(Some(truth));
                }
                continue;
            }
            if self.types.len() == 1 || truth == (self.op == CompareOp::NotEqual) {
                return Ok(Some(truth));
            }
        }
        Ok((!unknown).then_some(self.op.holds(std::cmp::Ordering::Equal)))
    }
}

/// Bytes that are the same for values that are equal as this type; `None` for NULL. Integers of all widths have the
/// same bytes, since they are compared as they are.
pub fn equality_key(value: &Value, data_type: DataType) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    append_equality_key(value, data_type, &mut key).then_some(key)
}

/// The keys of several values one behind the other; `None` if one of them is NULL.
fn equality_key_of(values: &[Value], types: &[DataType]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let mut pairs = values.iter().zip(types);
    pairs
        .all(|(value, data_type)| append_equality_key(value, *data_type, &mut key))
        .then_some(key)
}

/// Appends what [`equality_key`] gives; `false`, and nothing appended, for NULL.
pub fn append_equality_key(value: &Value, data_type: DataType, key: &mut Vec<u8>) -> bool {
    match value.as_i64() {
        _ if value.is_null() => return false,
        Some(whole) => encode_value(&Value::Int8(whole), DataType::Int8, key),
        None => encode_value(value, data_type, key),
    }
    true
}

fn values(exprs: &[Expr], row: &[Value], context: &EvalContext<'_>) -> Result<Vec<Value>> {
    exprs.iter().map(|expr| expr.eval(row, context)).collect()
}
