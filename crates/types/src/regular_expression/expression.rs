//! A compiled expression, and the automata of its parts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex_automata::nfa::thompson::pikevm::{Cache, PikeVM};
use regex_automata::nfa::thompson::{self};
use regex_automata::{Anchored, Input, MatchKind};

use super::fault::invalid;
use super::syntax::{Options, Parsed, parse};
use crate::error::Result;
use crate::memory;

/// The most bytes of an automaton.
const AUTOMATON_BYTES_MAX: usize = 32 << 20;
/// An expression whose automaton needs more is a large one.
const AUTOMATON_BYTES_USUAL: usize = 512 << 10;
/// Expressions that a thread keeps; of large ones it keeps the last alone.
const KEPT_MAX: usize = 32;

/// A part of the text, in bytes.
pub(crate) type Span = (usize, usize);

/// A compiled expression.
pub(crate) struct Expression {
    pub(crate) finder: regex::Regex,
    large: bool,
    pub(crate) parsed: Parsed,
    /// The automata of parts, by what they are in the syntax of `regex`.
    automata: RefCell<HashMap<String, Rc<Automaton>>>,
}

/// An automaton that follows all alternatives.
pub(crate) struct Automaton {
    machine: PikeVM,
    cache: RefCell<Cache>,
}

impl Automaton {
    /// The end of the longest match that begins at `start`, at `limit` at most; or of the shortest.
    pub(crate) fn end(&self, text: &str, (start, limit): Span, shortest: bool) -> Option<usize> {
        let input = Input::new(text)
            .span(start..limit)
            .anchored(Anchored::Yes)
            .earliest(shortest);
        self.machine
            .find(&mut self.cache.borrow_mut(), input)
            .map(|found| found.end())
    }

    /// True if a match takes all of a span.
    pub(crate) fn fills(&self, text: &str, span: Span) -> bool {
        self.end(text, span, false) == Some(span.1)
    }
}

thread_local! {
    /// The expressions used last, the latest at the end.
    static KEPT: RefCell<Vec<(Key, Rc<Expression>)>> = const { RefCell::new(Vec::new()) };
}

/// The text of an expression and its options.
type Key = (Box<str>, Options);

/// The compiled expression of a text, which the thread may have from before.
pub(crate) fn compiled(text: &str, options: Options) -> Result<Rc<Expression>> {
    let kept = KEPT.with_borrow_mut(|kept| {
        let at = kept
            .iter()
            .position(|((known, with), _)| **known == *text && *with == options)?;
        let entry = kept.remove(at);
        let expression = Rc::clone(&entry.1);
        kept.push(entry);
        Some(expression)
    });
    if let Some(expression) = kept {
        return Ok(expression);
    }
    let expression = Rc::new(Expression::new(text, options)?);
    KEPT.with_borrow_mut(|kept| {
        if expression.large {
            kept.retain(|(_, other)| !other.large);
        }
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push(((text.into(), options), Rc::clone(&expression)));
    });
    Ok(expression)
}

impl Expression {
    fn new(text: &str, options: Options) -> Result<Expression> {
        let parsed = parse(text, options)?;
        let written = parsed.options.around(&parsed.node.written());
        let build = |bytes| {
            regex::RegexBuilder::new(&written)
                .size_limit(bytes)
                .dfa_size_limit(AUTOMATON_BYTES_USUAL)
                .nest_limit(1_000)
                .build()
        };
        let usual = build(AUTOMATON_BYTES_USUAL);
        let large = usual.is_err();
        if large {
            memory::require(AUTOMATON_BYTES_MAX)?;
        }
        let finder = usual
            .or_else(|_| build(AUTOMATON_BYTES_MAX))
            .map_err(|_| invalid("regular expression is too complex"))?;
        Ok(Expression {
            finder,
            large,
            parsed,
            automata: RefCell::default(),
        })
    }

    /// The number of parentheses that capture.
    pub(crate) fn groups(&self) -> usize {
        self.parsed.groups
    }

    /// True if there is a match anywhere.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.finder.is_match(text)
    }

    /// The automaton of a part, given in the syntax of `regex`.
    pub(crate) fn automaton(&self, written: &str) -> Result<Rc<Automaton>> {
        if let Some(known) = self.automata.borrow().get(written) {
            return Ok(Rc::clone(known));
        }
        let machine = PikeVM::builder()
            .thompson(thompson::Config::new().nfa_size_limit(Some(AUTOMATON_BYTES_MAX)))
            .configure(PikeVM::config().match_kind(MatchKind::All))
            .build(&self.parsed.options.around(written))
            .map_err(|_| invalid("regular expression is too complex"))?;
        let cache = RefCell::new(machine.create_cache());
        let automaton = Rc::new(Automaton { machine, cache });
        self.automata
            .borrow_mut()
            .insert(written.to_owned(), Rc::clone(&automaton));
        Ok(automaton)
    }
}
