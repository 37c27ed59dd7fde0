//! The evaluation of a path over a document.
//!
//! [`Evaluation::step`] applies a node to an item and hands what it finds to the accessor behind the node, so items come
//! in the order of the document and a path ends at the first one if that is all that is asked:
//!
//! | asked for | `found` | ends |
//! |---|---|---|
//! | the items | a list | behind the last one |
//! | whether there is one (`exists`, in lax mode) | `None` | at the first one |
//!
//! Rules:
//!
//! - E1: a document is read where it lies; an item is copied when it is handed out.
//! - E2: in lax mode an accessor of members, a filter, a method and an operand take an array for its elements, one level of
//!   it; an accessor of elements takes another value for an array of it. What does not fit is passed over.
//! - E3: a [`Fault::Step`] or [`Fault::Value`] inside a predicate makes it unknown. A [`Fault::Hard`] ends the evaluation.
//! - E4: what was found before a fault stays in the list: a silent call gives it.
//! - E5: each step is counted: interrupts are looked at now and then, and steps inside one another are bounded.

use std::cell::Cell;

use super::fault::{Fault, Outcome, Problem};
use super::item::{Item, push};
use super::place::{Base, Places};
use crate::context::SessionFacts;
use crate::error::{EngineError, SqlState};
use crate::function::check_length;
use crate::stack;
use crate::value::Numeric;
use crate::value::json::{Json, Jsonb, JsonbRef, Node, NodeId, Path};

/// The most steps inside one another.
const LEVELS_MAX: u32 = 20_000;

/// Steps between two looks at interrupts.
const STEPS_PER_LOOK: u32 = 256;

/// The items found, or `None` if only whether there is one is asked.
pub(super) type Found<'f, 'v> = Option<&'f mut Vec<Item<'v>>>;

/// The values that `$name` has.
#[derive(Clone, Copy)]
pub(super) enum Variables<'e> {
    /// Each is null.
    Null,
    /// The members of an object.
    Of(JsonbRef<'e>),
}

/// The evaluation of a path.
pub(super) struct Evaluation<'e> {
    pub(super) path: &'e Path,
    pub(super) root: JsonbRef<'e>,
    pub(super) variables: Variables<'e>,
    /// True if times with and without a zone may be compared.
    pub(super) with_zones: bool,
    pub(super) session: &'e dyn SessionFacts,
    pub(super) places: Places,
    /// The number that the next object made by `keyvalue()` gets.
    pub(super) next_made: Cell<i64>,
    steps: Cell<u32>,
    /// Bytes copied out of documents that methods have made.
    copied: Cell<usize>,
    level: Cell<u32>,
}

/// The surroundings of a step: all that it depends on beside its item.
#[derive(Clone)]
pub(super) struct Scope<'v> {
    /// `@`
    pub current: Item<'v>,
    /// The document of the item.
    pub base: Base<'v>,
    /// The number of elements of the innermost array whose subscript this is in.
    pub elements: Option<usize>,
    /// True if what does not fit the structure is passed over.
    pub passes_over: bool,
    /// True if an error is told; false inside of predicates and in silent calls.
    pub tells: bool,
}

impl<'e> Evaluation<'e> {
    pub(super) fn new(
        path: &'e Path,
        root: JsonbRef<'e>,
        variables: Variables<'e>,
        with_zones: bool,
        session: &'e dyn SessionFacts,
    ) -> Evaluation<'e> {
        Evaluation {
            path,
            root,
            variables,
            with_zones,
            session,
            places: Places::default(),
            next_made: Cell::new(match variables {
                Variables::Null => 1,
                Variables::Of(_) => 2,
            }),
            steps: Cell::new(0),
            copied: Cell::new(0),
            level: Cell::new(0),
        }
    }

    fn scope(&self, tells: bool) -> Scope<'e> {
        Scope {
            current: Item::Part(self.root),
            base: Base {
                json: self.root,
                number: 0,
            },
            elements: None,
            passes_over: self.is_lax(),
            tells,
        }
    }

    /// Finds the items of the path. `tells`: an error is told by the caller.
    pub(super) fn items(&self, tells: bool, found: &mut Vec<Item<'e>>) -> Result<(), Fault> {
        let scope = self.scope(tells);
        self.step(self.path.first(), &Item::Part(self.root), &scope, Some(found))?;
        Ok(())
    }

    /// True if the path finds an item. In strict mode all are looked at, since there may be an error.
    pub(super) fn exists(&self, tells: bool) -> Outcome {
        let mut items = Vec::new();
        match self.is_lax() {
            true => self.step(
                self.path.first(),
                &Item::Part(self.root),
                &self.scope(tells),
                None,
            ),
            false => {
                self.items(tells, &mut items)?;
                Ok(!items.is_empty())
            }
        }
    }

    /// True in lax mode: arrays are unwrapped, and other values wrapped.
    pub(super) fn is_lax(&self) -> bool {
        !self.path.is_strict()
    }

    /// Counts a step inside of others, and takes it (E5).
    pub(super) fn inside<T>(&self, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
        let level = self.level.get();
        if level >= LEVELS_MAX {
            return Err(Fault::Hard(Box::new(too_deep())));
        }
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_PER_LOOK) {
            self.session.check_interrupts()?;
        }
        self.level.set(level + 1);
        let done = stack::checkpoint(work);
        self.level.set(level);
        done
    }

    /// Applies a node, and what is behind it, to an item; true if an item was found.
    pub(super) fn step<'v>(
        &self,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        self.step_unwrapping(id, item, scope, found, self.is_lax())
    }

    /// The same; `unwraps`: an array is taken for its elements where other values are wanted.
    pub(super) fn step_unwrapping<'v>(
        &self,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
        unwraps: bool,
    ) -> Outcome
    where
        'e: 'v,
    {
        self.inside(|| self.apply(id, item, scope, found, unwraps))
    }

    fn apply<'v>(
        &self,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
        unwraps: bool,
    ) -> Outcome
    where
        'e: 'v,
    {
        let path: &'e Path = self.path;
        let node = path.node(id);
        let takes_elements = matches!(
            node,
            Node::Member(_) | Node::AnyMember | Node::Filter(_) | Node::Datetime(_)
        ) || matches!(node, Node::Method(method) if method.takes_elements());
        if unwraps
            && takes_elements
            && let Some(array) = item.array()
        {
            return self.each_element(id, array, scope, found);
        }
        match node {
            Node::Null => self.behind(id, Item::Null, scope, found),
            Node::Bool(truth) => self.behind(id, Item::Bool(*truth), scope, found),
            Node::Number(number) => self.behind(id, Item::Number(number.clone()), scope, found),
            Node::Text(text) => self.behind(id, Item::Text(text), scope, found),
            Node::Variable(name) => self.variable(id, name, scope, found),
            Node::Root => {
                let base = Base {
                    json: self.root,
                    number: 0,
                };
                let scope = Scope {
                    base,
                    ..scope.clone()
                };
                self.behind(id, Item::Part(self.root), &scope, found)
            }
            Node::Current => self.behind(id, scope.current.clone(), scope, found),
            Node::Last => match scope.elements {
                Some(count) => {
                    let last = Numeric::from(count as i64 - 1);
                    self.behind(id, Item::Number(last), scope, found)
                }
                None => Err(EngineError::internal("last stands outside of a subscript").into()),
            },
            Node::Member(name) => self.member(id, name, item, scope, found),
            Node::AnyMember => self.any_member(id, item, scope, found),
            Node::AnyElement => self.any_element(id, item, scope, found),
            Node::Elements(subscripts) => self.elements(id, subscripts, item, scope, found),
            Node::AnyLevel { first, last } => self.any_level(id, (*first, *last), item, scope, found),
            Node::Filter(predicate) => match self.filters(*predicate, item, scope)? {
                true => self.behind(id, item.clone(), scope, found),
                false => Ok(false),
            },
            Node::Method(method) => self.method(id, *method, item, scope, found),
            Node::Datetime(template) => self.datetime(id, template.as_deref(), item, scope, found),
            Node::Arithmetic(operation, left, right) => {
                self.arithmetic(id, *operation, (*left, *right), item, scope, found)
            }
            Node::Sign { negated, operand } => self.sign(id, *negated, *operand, item, scope, found),
            Node::Compare(..)
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_)
            | Node::IsUnknown(_)
            | Node::Exists(_)
            | Node::StartsWith(..)
            | Node::Like(..) => {
                let truth = self.truth(id, item, scope)?;
                self.behind(id, truth.map_or(Item::Null, Item::Bool), scope, found)
            }
        }
    }

    /// Hands an item to the accessor behind a node, or puts it into the list if there is none.
    pub(super) fn behind<'v>(
        &self,
        id: NodeId,
        item: Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        match (self.path.next(id), found) {
            (Some(next), found) => self.step(next, &item, scope, found),
            (None, Some(found)) => {
                push(found, item)?;
                Ok(true)
            }
            (None, None) => Ok(true),
        }
    }

    /// Counts the bytes of a part that is copied out of a document that a method has made: parts may hold one another.
    fn weigh_copy(&self, bytes: usize) -> Result<(), Fault> {
        let copied = self.copied.get().saturating_add(bytes);
        check_length(copied)?;
        self.copied.set(copied);
        Ok(())
    }

    fn variable<'v>(&self, id: NodeId, name: &str, scope: &Scope<'v>, found: Found<'_, 'v>) -> Outcome
    where
        'e: 'v,
    {
        let Variables::Of(variables) = self.variables else {
            return self.behind(id, Item::Null, scope, found);
        };
        let Some(value) = variables.get(name) else {
            return Err(EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("could not find jsonpath variable \"{name}\""),
            )
            .into());
        };
        let base = Base {
            json: variables,
            number: 1,
        };
        let scope = Scope {
            base,
            ..scope.clone()
        };
        self.behind(id, Item::Part(value), &scope, found)
    }

    /// The items of an operand; in lax mode arrays are taken for their elements.
    pub(super) fn operand<'v>(
        &self,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        unwraps: bool,
    ) -> Result<Vec<Item<'v>>, Fault>
    where
        'e: 'v,
    {
        let mut found = Vec::new();
        self.step(id, item, scope, Some(&mut found))?;
        if !unwraps || !self.is_lax() || !found.iter().any(Item::is_array) {
            return Ok(found);
        }
        let mut items = Vec::new();
        for item in found {
            item.unwrapped(&mut items)?;
        }
        Ok(items)
    }

    /// An object that a method has made, handed on as a document of its own.
    pub(super) fn made<'v>(
        &self,
        id: NodeId,
        object: &Json,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        let number = self.next_made.get();
        self.next_made.set(number + 1);
        let object = Jsonb::of(object)?;
        let Some(found) = found else {
            return self.inside_made(id, &object, number, scope, None);
        };
        if self.path.next(id).is_none() {
            push(found, Item::Made(object))?;
            return Ok(true);
        }
        let mut items = Vec::new();
        let done = self.inside_made(id, &object, number, scope, Some(&mut items));
        // E4: also those in front of a fault.
        for item in items {
            if let Item::Part(part) = &item {
                self.weigh_copy(part.byte_count())?;
            }
            push(found, item.detached()?)?;
        }
        done
    }

    fn inside_made<'v, 'o>(
        &self,
        id: NodeId,
        object: &'o Jsonb,
        number: i64,
        scope: &Scope<'v>,
        found: Found<'_, 'o>,
    ) -> Outcome
    where
        'e: 'v,
        'v: 'o,
    {
        let scope: Scope<'o> = Scope {
            base: Base {
                json: object.as_ref(),
                number,
            },
            ..scope.clone()
        };
        self.behind_short(id, Item::Part(object.as_ref()), &scope, found)
    }

    fn behind_short<'o>(&self, id: NodeId, item: Item<'o>, scope: &Scope<'o>, found: Found<'_, 'o>) -> Outcome
    where
        'e: 'o,
    {
        self.behind(id, item, scope, found)
    }

    /// The fault of a step, which names its node.
    pub(super) fn fault(&self, id: NodeId, problem: Problem) -> Fault {
        Fault::Step(problem, id)
    }
}

#[cold]
fn too_deep() -> EngineError {
    EngineError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(format!(
        "The steps of a path may be {LEVELS_MAX} levels inside one another, those into a document counted."
    ))
}
