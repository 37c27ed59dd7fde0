//! Predicates: true, false, or unknown (`None`).
//!
//! A predicate over two expressions is asked for each pair of their items. It is true if a pair is; unknown if a pair is,
//! in lax mode only if no pair is true; false otherwise. In lax mode the first true pair, in strict mode the first unknown
//! one, ends it.

use std::cmp::Ordering;

use super::evaluation::{Evaluation, Scope};
use super::fault::Fault;
use super::item::{Item, Scalar};
use crate::value::json::{Comparison, Node, NodeId};

/// The truth of a predicate, `None` for unknown; an error that is told in any case.
type Truth = Result<Option<bool>, Fault>;

/// Of the outcome of a part of a predicate: unknown for a fault that is not told (E3).
fn known<T>(outcome: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(fault) if fault.is_silent() => Ok(None),
        Err(fault) => Err(fault),
    }
}

impl<'e> Evaluation<'e> {
    /// True if an item passes a filter.
    pub(super) fn filters<'v>(
        &self,
        predicate: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
    ) -> Result<bool, Fault>
    where
        'e: 'v,
    {
        let inside = Scope {
            current: item.clone(),
            ..scope.clone()
        };
        Ok(self.truth(predicate, item, &inside)? == Some(true))
    }

    /// The truth of a predicate.
    pub(super) fn truth<'v>(&self, id: NodeId, item: &Item<'v>, scope: &Scope<'v>) -> Truth
    where
        'e: 'v,
    {
        self.inside(|| match self.path.node(id) {
            Node::And(left, right) => match self.truth(*left, item, scope)? {
                Some(false) => Ok(Some(false)),
                left => Ok(match self.truth(*right, item, scope)? {
                    Some(true) => left,
                    right => right,
                }),
            },
            Node::Or(left, right) => match self.truth(*left, item, scope)? {
                Some(true) => Ok(Some(true)),
                left => Ok(match self.truth(*right, item, scope)? {
                    Some(false) => left,
                    right => right,
                }),
            },
            Node::Not(inner) => Ok(self.truth(*inner, item, scope)?.map(|truth| !truth)),
            Node::IsUnknown(inner) => Ok(Some(self.truth(*inner, item, scope)?.is_none())),
            Node::Exists(inner) => {
                let scope = quiet(scope);
                known(match self.is_lax() {
                    true => self.step(*inner, item, &scope, None),
                    false => self
                        .operand(*inner, item, &scope, false)
                        .map(|items| !items.is_empty()),
                })
            }
            Node::Compare(comparison, left, right) => {
                let Some((left, right)) = self.operands(*left, *right, true, item, scope)? else {
                    return Ok(None);
                };
                self.of_pairs(&left, &right, |left, right| {
                    self.compare(*comparison, left, right)
                })
            }
            Node::StartsWith(whole, initial) => {
                let Some((whole, initial)) = self.operands(*whole, *initial, false, item, scope)? else {
                    return Ok(None);
                };
                self.of_pairs(&whole, &initial, |whole, initial| {
                    Ok(match (whole.text(), initial.text()) {
                        (Some(whole), Some(initial)) => Some(whole.starts_with(initial)),
                        _ => None,
                    })
                })
            }
            Node::Like(text, like) => {
                let Some(texts) = known(self.operand(*text, item, &quiet(scope), true))? else {
                    return Ok(None);
                };
                // It may have to be compiled, and the texts may be long.
                self.session.check_interrupts()?;
                let expression = like.expression()?;
                self.of_pairs(&texts, &[Item::Null], |text, _| {
                    self.session.check_interrupts()?;
                    Ok(text.text().map(|text| expression.is_match(text)))
                })
            }
            _ => Err(crate::error::EngineError::internal("a filter of a path is no predicate").into()),
        })
    }

    /// The items of two operands, `None` if an error that is not told makes the predicate unknown.
    #[expect(clippy::type_complexity, reason = "two lists")]
    fn operands<'v>(
        &self,
        left: NodeId,
        right: NodeId,
        unwraps_right: bool,
        item: &Item<'v>,
        scope: &Scope<'v>,
    ) -> Result<Option<(Vec<Item<'v>>, Vec<Item<'v>>)>, Fault>
    where
        'e: 'v,
    {
        let scope = quiet(scope);
        let Some(left) = known(self.operand(left, item, &scope, true))? else {
            return Ok(None);
        };
        let right = known(self.operand(right, item, &scope, unwraps_right))?;
        Ok(right.map(|right| (left, right)))
    }

    fn of_pairs(
        &self,
        left: &[Item<'_>],
        right: &[Item<'_>],
        ask: impl Fn(&Item<'_>, &Item<'_>) -> Truth,
    ) -> Truth {
        let (mut is_unknown, mut is_true) = (false, false);
        for left in left {
            for right in right {
                match self.inside(|| ask(left, right))? {
                    None if !self.is_lax() => return Ok(None),
                    None => is_unknown = true,
                    Some(true) if self.is_lax() => return Ok(Some(true)),
                    Some(true) => is_true = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (is_true, is_unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    fn compare(&self, comparison: Comparison, left: &Item<'_>, right: &Item<'_>) -> Truth {
        let order = match (left.scalar(), right.scalar()) {
            (Some(Scalar::Null), Some(Scalar::Null)) => Ordering::Equal,
            // Null is told apart from anything.
            (Some(Scalar::Null), _) | (_, Some(Scalar::Null)) => {
                return Ok(Some(comparison == Comparison::NotEqual));
            }
            (Some(Scalar::Bool(left)), Some(Scalar::Bool(right))) => left.cmp(&right),
            (Some(Scalar::Number(left)), Some(Scalar::Number(right))) => left.compare(&right),
            (Some(Scalar::Text(left)), Some(Scalar::Text(right))) => left.cmp(right),
            (Some(Scalar::Moment(left)), Some(Scalar::Moment(right))) => {
                match left.order(right, self.with_zones, self.session)? {
                    Some(order) => order,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }))
    }
}

/// The same scope, where no error is told.
fn quiet<'v>(scope: &Scope<'v>) -> Scope<'v> {
    Scope {
        tells: false,
        ..scope.clone()
    }
}
