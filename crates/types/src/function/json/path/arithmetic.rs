//! Arithmetic on numbers, which are exact decimals.

use super::evaluation::{Evaluation, Found, Scope};
use super::fault::{Fault, Outcome, Problem};
use super::item::Item;
use crate::error::EngineError;
use crate::value::Numeric;
use crate::value::json::{Arithmetic, NodeId};

/// A number that cannot be: not told inside of a predicate.
pub(super) fn of_value(error: EngineError) -> Fault {
    Fault::Value(Box::new(error))
}

impl<'e> Evaluation<'e> {
    /// An operation on two expressions, each of which must give one number.
    pub(super) fn arithmetic<'v>(
        &self,
        id: NodeId,
        operation: Arithmetic,
        (left, right): (NodeId, NodeId),
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        // Numbers may have a hundred thousand digits.
        self.session.check_interrupts()?;
        let left = self.operand(left, item, scope, true)?;
        let right = self.operand(right, item, scope, true)?;
        let left = single(&left).ok_or_else(|| self.fault(id, Problem::LeftNotANumber))?;
        let right = single(&right).ok_or_else(|| self.fault(id, Problem::RightNotANumber))?;
        let result = match operation {
            Arithmetic::Add => left.add(&right),
            Arithmetic::Subtract => left.subtract(&right),
            Arithmetic::Multiply => left.multiply(&right),
            Arithmetic::Divide => left.divide(&right),
            Arithmetic::Remainder => left.remainder(&right),
        };
        self.behind(id, Item::Number(result.map_err(of_value)?), scope, found)
    }

    /// A sign, of each item of an expression.
    pub(super) fn sign<'v>(
        &self,
        id: NodeId,
        negated: bool,
        operand: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        mut found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        let is_asked_alone = found.is_none() && self.path.next(id).is_none();
        let mut any = false;
        for item in self.operand(operand, item, scope, true)? {
            let number = match item.number() {
                Some(_) if is_asked_alone => return Ok(true),
                None if is_asked_alone => continue,
                Some(number) => number,
                None => return Err(self.fault(id, Problem::OperandNotANumber)),
            };
            let number = match negated {
                true => number.negate(),
                false => number,
            };
            if self.behind(id, Item::Number(number), scope, found.as_deref_mut())? {
                if found.is_none() {
                    return Ok(true);
                }
                any = true;
            }
        }
        Ok(any)
    }
}

/// The number of items that are one number.
fn single(items: &[Item<'_>]) -> Option<Numeric> {
    match items {
        [only] => only.number(),
        _ => None,
    }
}
