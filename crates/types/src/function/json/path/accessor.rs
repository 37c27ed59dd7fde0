//! Accessors: members, elements, and both on all levels.

use super::evaluation::{Evaluation, Found, Scope};
use super::fault::{Fault, Outcome, Problem};
use super::item::{Item, push};
use crate::value::json::{JsonbRef, NodeId, Subscript};

/// The levels that a walk into a document hands on.
#[derive(Clone, Copy)]
struct Walk {
    first: u32,
    last: u32,
    /// True if what does not fit the structure is passed over behind the walk.
    passes_over: bool,
    /// True if the next step takes an array for its elements.
    unwraps: bool,
}

impl<'e> Evaluation<'e> {
    pub(super) fn member<'v>(
        &self,
        id: NodeId,
        name: &str,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        let problem = match item.object() {
            Some(object) => match object.get(name) {
                Some(value) => return self.behind(id, Item::Part(value), scope, found),
                None => Problem::NoKey,
            },
            None => Problem::NotAnObject,
        };
        self.passed_over(id, problem, scope)
    }

    /// An item that does not fit the structure.
    fn passed_over(&self, id: NodeId, problem: Problem, scope: &Scope<'_>) -> Outcome {
        match scope.passes_over {
            true => Ok(false),
            false => Err(self.fault(id, problem)),
        }
    }

    pub(super) fn any_member<'v>(
        &self,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        match item.object() {
            Some(object) => self.each_below(self.path.next(id), object, self.below(), scope, found),
            None => self.passed_over(id, Problem::NotAnObject, scope),
        }
    }

    pub(super) fn any_element<'v>(
        &self,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        match item.array() {
            Some(array) => self.each_below(self.path.next(id), array, self.below(), scope, found),
            None if self.is_lax() => self.behind(id, item.clone(), scope, found),
            None => self.passed_over(id, Problem::NotAnArray, scope),
        }
    }

    /// The walk to the next level alone.
    fn below(&self) -> Walk {
        Walk {
            first: 1,
            last: 1,
            passes_over: false,
            unwraps: self.is_lax(),
        }
    }

    /// Applies a node to each element of an array, which are not unwrapped once more (E2).
    pub(super) fn each_element<'v>(
        &self,
        id: NodeId,
        array: JsonbRef<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        let walk = Walk {
            unwraps: false,
            ..self.below()
        };
        self.each_below(Some(id), array, walk, scope, found)
    }

    pub(super) fn any_level<'v>(
        &self,
        id: NodeId,
        (first, last): (u32, u32),
        item: &Item<'v>,
        scope: &Scope<'v>,
        mut found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        let mut here = Ok(false);
        if first == 0 {
            let forgiving = Scope {
                passes_over: true,
                ..scope.clone()
            };
            here = self.behind(id, item.clone(), &forgiving, found.as_deref_mut());
            match &here {
                Ok(true) if found.is_none() => return here,
                // Where no error is told, the levels below decide, if there are any.
                Err(fault) if scope.tells || !fault.is_silent() => return here,
                _ => {}
            }
        }
        let Some(container) = item.container() else {
            return here;
        };
        let walk = Walk {
            first,
            last,
            passes_over: true,
            unwraps: self.is_lax(),
        };
        self.each_below(self.path.next(id), container, walk, scope, found)
    }

    /// Hands the items of an array or object to a node, or puts them into the list if there is none.
    fn each_below<'v>(
        &self,
        node: Option<NodeId>,
        container: JsonbRef<'v>,
        walk: Walk,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        match walk.passes_over && !scope.passes_over {
            true => {
                let scope = Scope {
                    passes_over: true,
                    ..scope.clone()
                };
                self.each_at(1, node, container, walk, &scope, found)
            }
            false => self.each_at(1, node, container, walk, scope, found),
        }
    }

    fn each_at<'v>(
        &self,
        level: u32,
        node: Option<NodeId>,
        container: JsonbRef<'v>,
        walk: Walk,
        scope: &Scope<'v>,
        mut found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        if level > walk.last {
            return Ok(false);
        }
        let mut any = false;
        for part in container.elements() {
            let is_wanted = match (walk.first, walk.last) {
                (u32::MAX, u32::MAX) => part.is_scalar(),
                (first, _) => level >= first,
            };
            if is_wanted {
                any = match (node, found.as_deref_mut()) {
                    (Some(node), found) => {
                        self.step_unwrapping(node, &Item::Part(part), scope, found, walk.unwraps)?
                    }
                    (None, Some(found)) => {
                        push(found, Item::Part(part))?;
                        true
                    }
                    (None, None) => true,
                };
                if any && found.is_none() {
                    return Ok(true);
                }
            }
            if level < walk.last && !part.is_scalar() {
                let deeper = || self.each_at(level + 1, node, part, walk, scope, found.as_deref_mut());
                any = self.inside(deeper)?;
                if any && found.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    pub(super) fn elements<'v>(
        &self,
        id: NodeId,
        subscripts: &[Subscript],
        item: &Item<'v>,
        scope: &Scope<'v>,
        mut found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        let array = item.array();
        if array.is_none() && !self.is_lax() {
            return self.passed_over(id, Problem::NotAnArray, scope);
        }
        let count = array.map_or(1, JsonbRef::count);
        let inside = Scope {
            elements: Some(count),
            ..scope.clone()
        };
        let mut any = false;
        for subscript in subscripts {
            let from = self.index(id, subscript.from, item, &inside)?;
            let to = match subscript.to {
                Some(to) => self.index(id, to, item, &inside)?,
                None => from,
            };
            if !scope.passes_over && (from < 0 || from > to || i64::from(to) >= count as i64) {
                return Err(self.fault(id, Problem::OutOfBounds));
            }
            any = false;
            let end = (i64::from(to) + 1).clamp(0, count as i64) as usize;
            let places = from.max(0) as usize..end;
            let itself = places.clone().filter(|_| array.is_none()).map(|_| item.clone());
            let parts = array.map(|array| array.elements_at(places).map(Item::Part));
            for element in parts.into_iter().flatten().chain(itself) {
                // `last` stays this array's for what is behind its subscript.
                any = self.behind(id, element, &inside, found.as_deref_mut())?;
                if any && found.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    /// The number of a subscript, its fraction cut off.
    fn index<'v>(
        &self,
        accessor: NodeId,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
    ) -> Result<i32, Fault>
    where
        'e: 'v,
    {
        let mut found = Vec::new();
        self.step(id, item, scope, Some(&mut found))?;
        let number = match found.as_slice() {
            [only] => only.number(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.fault(accessor, Problem::NoSingleSubscript))?;
        let whole = number.truncate(0)?.to_i128();
        whole
            .and_then(|whole| i32::try_from(whole).ok())
            .ok_or_else(|| self.fault(accessor, Problem::OutOfIntegerRange))
    }
}
