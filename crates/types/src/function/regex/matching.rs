//! The span of a match, and of the parentheses in it, by PostgreSQL's rules.
//!
//! PostgreSQL does not take the first match that a search with backtracking would find. Among the matches that begin
//! leftmost it takes the longest, or the shortest if the expression as a whole prefers that
//! ([`Node::greedy`](super::syntax::Node::greedy)). The parts of the match follow, each the longest or shortest
//! by its own preference, earlier ones first:
//!
//! ```text
//! (a|ab)(c|bcd)(d*)  in  abcd      the whole: abcd
//!                                  (a|ab): ab, the longest that the rest can follow; then c; then d
//! ```
//!
//! 1. The crate `regex` finds where the leftmost match begins; where it ends does not matter.
//! 2. An automaton that follows all alternatives finds the longest or the shortest match from there.
//! 3. If parentheses are wanted, the tree is walked with a span for each node. In a concatenation, ends of the first part
//!    are tried from the longest (or shortest) on, until the rest matches what is left. Every such test is a run of the
//!    automaton of that part, so no step takes more than time linear in the text.

use crate::context::SessionFacts;
use crate::error::Result;
use crate::regular_expression::{Expression, Node, Span, repeated};

/// A match: the whole, then the parentheses by their number; `None` for those that had no part in it.
pub(super) type Spans = Vec<Option<Span>>;

impl Expression {
    /// The first match that begins at a byte or behind it.
    pub(super) fn find(
        &self,
        text: &str,
        from: usize,
        with_groups: bool,
        session: &dyn SessionFacts,
    ) -> Result<Option<Spans>> {
        session.check_interrupts()?;
        let Some(found) = self.finder.find_at(text, from) else {
            return Ok(None);
        };
        let node = &self.parsed.node;
        let start = found.start();
        let shortest = node.greedy() == Some(false);
        let end = match node {
            Node::Piece(_) => Some(found.end()),
            node => self
                .automaton(&node.written())?
                .end(text, (start, text.len()), shortest),
        };
        let end = end.unwrap_or(found.end());
        let mut spans = vec![None; self.parsed.groups + 1];
        spans[0] = Some((start, end));
        if with_groups && self.parsed.groups > 0 {
            let walk = Walk {
                expression: self,
                text,
                session,
            };
            walk.dissect(node, (start, end), &mut spans)?;
        }
        Ok(Some(spans))
    }
}

/// A walk over the tree of an expression with spans of a text (step 3).
struct Walk<'a> {
    expression: &'a Expression,
    text: &'a str,
    session: &'a dyn SessionFacts,
}

impl Walk<'_> {
    /// Finds the parentheses of a node that matches a span.
    fn dissect(&self, node: &Node, span: Span, spans: &mut Spans) -> Result<()> {
        if !node.captures() {
            return Ok(());
        }
        match node {
            Node::Piece(_) => Ok(()),
            Node::Group(number, inner) => {
                spans[*number] = Some(span);
                self.dissect(inner, span, spans)
            }
            Node::Concat(parts) => self.concatenation(parts, span, spans),
            Node::Alternate(branches) => {
                for branch in branches {
                    if self.fills(&branch.written(), span)? {
                        return self.dissect(branch, span, spans);
                    }
                }
                Ok(())
            }
            Node::Repeat {
                inner, least, most, ..
            } => {
                let last = self.last_repetition(inner, *least, *most, span)?;
                match last {
                    Some(last) => self.dissect(inner, last, spans),
                    None => Ok(()),
                }
            }
        }
    }

    fn fills(&self, written: &str, span: Span) -> Result<bool> {
        self.session.check_interrupts()?;
        Ok(self.expression.automaton(written)?.fills(self.text, span))
    }

    fn concatenation(&self, parts: &[Node], span: Span, spans: &mut Spans) -> Result<()> {
        let (mut start, end) = span;
        for (number, part) in parts.iter().enumerate() {
            let behind = &parts[number + 1..];
            if behind.is_empty() || !parts[number..].iter().any(Node::captures) {
                return self.dissect(part, (start, end), spans);
            }
            let rest: String = behind.iter().map(Node::written).collect();
            let shortest = part.greedy() == Some(false);
            let Some(middle) = self.split(&part.written(), &rest, (start, end), shortest)? else {
                return Ok(());
            };
            self.dissect(part, (start, middle), spans)?;
            start = middle;
        }
        Ok(())
    }

    /// The end of the first part of a span, the longest or the shortest that lets the second match the rest.
    fn split(&self, first: &str, second: &str, (start, end): Span, shortest: bool) -> Result<Option<usize>> {
        let automaton = self.expression.automaton(first)?;
        let mut candidate = automaton.end(self.text, (start, end), shortest);
        while let Some(middle) = candidate {
            let fits = !shortest || automaton.fills(self.text, (start, middle));
            if fits && self.fills(second, (middle, end))? {
                return Ok(Some(middle));
            }
            candidate = match shortest {
                true => self.text[middle..end]
                    .chars()
                    .next()
                    .map(|next| middle + next.len_utf8()),
                false => self.text[start..middle]
                    .chars()
                    .next_back()
                    .and_then(|last| automaton.end(self.text, (start, middle - last.len_utf8()), false)),
            };
        }
        Ok(None)
    }

    /// The span of the last repetition, which is what parentheses in it have matched.
    fn last_repetition(
        &self,
        inner: &Node,
        least: u32,
        most: Option<u32>,
        span: Span,
    ) -> Result<Option<Span>> {
        let (mut start, end) = span;
        if start == end && least == 0 {
            return Ok(None);
        }
        let shortest = inner.greedy() == Some(false);
        let once = inner.written();
        let mut done = 0u32;
        loop {
            done += 1;
            let left = least.saturating_sub(done);
            let more = most.map(|most| most.saturating_sub(done));
            // The rest of the repetitions, which may be none.
            let rest = repeated(inner, left.min(more.unwrap_or(left)), more);
            let Some(middle) = self.split(&once, &rest, (start, end), shortest)? else {
                return Ok(None);
            };
            if middle == end || middle == start {
                return Ok(Some((start, middle)));
            }
            start = middle;
        }
    }
}
