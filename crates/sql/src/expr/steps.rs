//! Expressions one after the other: the flat form of a long chain of operators.

use clearway_machine::invariant;

use crate::context::EvalContext;
use crate::error::{EngineError, Result};
use crate::expr::Expr;
use crate::stack::checkpoint;
use crate::value::Value;

/// The steps of [`Expr::Steps`]. A long chain of operators is kept in this form, and so is what would else be copied.
///
/// All that recurses over an expression goes on in a new stack segment here if this one is nearly used up: evaluating,
/// walking, comparing, copying and dropping.
#[derive(Debug)]
pub struct Steps(Vec<Expr>);

impl Steps {
    pub(crate) fn new(steps: Vec<Expr>) -> Steps {
        invariant!(2 of bind::chain, !steps.is_empty(), "a chain has no steps");
        Steps(steps)
    }

    /// Runs `work` over the steps, with room to recurse.
    pub(crate) fn each<R>(&self, work: impl FnOnce(&[Expr]) -> R) -> R {
        checkpoint(|| work(&self.0))
    }

    pub(super) fn eval(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        let [first, rest @ ..] = self.0.as_slice() else {
            return Err(EngineError::internal("an expression has no steps"));
        };
        let mut value = first.eval(row, context)?;
        for step in rest {
            let context = EvalContext {
                previous: Some(&value),
                ..context.keeping(value.heap_bytes())?
            };
            value = step.eval(row, &context)?;
        }
        Ok(value)
    }

    pub(super) fn map(mut self, map: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Steps> {
        let steps = std::mem::take(&mut self.0);
        checkpoint(|| steps.into_iter().map(map).collect::<Result<Vec<_>>>()).map(Steps)
    }
}

impl Clone for Steps {
    fn clone(&self) -> Steps {
        self.each(|steps| Steps(steps.to_vec()))
    }
}

impl PartialEq for Steps {
    fn eq(&self, other: &Steps) -> bool {
        self.each(|steps| *steps == *other.0)
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let steps = std::mem::take(&mut self.0);
        if !steps.is_empty() {
            checkpoint(|| drop(steps));
        }
    }
}
