//! Tests of ANY and ALL by an operator that is no comparison: `x LIKE ANY (array)`, `x <<= ALL (query)`.
//!
//! The operator is bound once, as an expression over a row of two values: the left side and the value that is looked at.

use super::Expr;
use super::eval::look_around;
use crate::context::EvalContext;
use crate::error::Result;
use crate::value::Value;
use crate::value::array::elements_of;

/// An operator between one value and each of others, and the quantifier.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorTest {
    /// The operator, as statements write it.
    pub symbol: Box<str>,
    /// ALL; ANY if not.
    pub all: bool,
    /// The operator over a row of the left side and one of the other values.
    pub holds: Expr,
}

/// The outcome over the values so far: for ANY true once it is true of one, for ALL false once it is false of one; a
/// NULL leaves it open unless another value decides.
pub(super) struct Outcome<'a> {
    test: &'a OperatorTest,
    sides: [Value; 2],
    truth: Option<bool>,
}

impl<'a> Outcome<'a> {
    pub(super) fn new(test: &'a OperatorTest, left: &Value) -> Outcome<'a> {
        Outcome {
            test,
            sides: [left.clone(), Value::Null],
            truth: Some(test.all),
        }
    }

    /// Looks at one value more; false if no other can change the outcome.
    pub(super) fn goes_on(&mut self, value: &Value, context: &EvalContext<'_>) -> Result<bool> {
        self.sides[1] = value.clone();
        match self.test.holds.truth(&self.sides, context)? {
            Some(truth) if truth != self.test.all => {
                self.truth = Some(truth);
                return Ok(false);
            }
            Some(_) => {}
            None => self.truth = None,
        }
        Ok(true)
    }

    pub(super) fn truth(self) -> Option<bool> {
        self.truth
    }
}

impl OperatorTest {
    /// The outcome over an array's elements; `None` (NULL) if the array is NULL.
    pub(super) fn of_elements(
        &self,
        left: &Value,
        array: &Value,
        context: &EvalContext<'_>,
    ) -> Result<Option<bool>> {
        if array.is_null() {
            return Ok(None);
        }
        let elements = elements_of(array)?;
        look_around(context, size_of_val(elements))?;
        let mut outcome = Outcome::new(self, left);
        for element in elements {
            context.session.check_interrupts()?;
            if !outcome.goes_on(element, context)? {
                break;
            }
        }
        Ok(outcome.truth())
    }
}
