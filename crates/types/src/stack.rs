//! The stack that a statement needs.
//!
//! A client decides how deep a statement nests, and a thread's stack has an end. There are two kinds of depth:
//!
//! 1. *Nesting*: `((1))`, `not not x`, `f(f(x))`. The parser recurses for each level and refuses more than its limit.
//! 2. *Chains*: `a + b + c`, `x or y or z`, `x::int::int`, `q union q union q`. The parser builds them in a loop, so no
//!    limit stops it, and the tree is as deep as the chain is long: each operator holds the one on its left in a box.
//!    Comparing, printing and dropping such a tree recurses once for each operator.
//!
//! The obvious remedy, a limit for both, would refuse generated conditions of some thousand terms that work
//! elsewhere. So:
//!
//! - A syntax tree is built, bound and dropped on a stack segment as large as its depth may need ([`Deep`],
//!   [`with_stack_for`]). The segment is mapped for the purpose and unmapped at its end; only touched pages
//!   cost memory.
//! - The depth is estimated from the tokens before parsing ([`levels`]): a tree has no more levels than the
//!   longest run of tokens without a comma, added up over the open brackets. More than `LEVELS_MAX` is
//!   54001.
//! - Binding walks a chain in a loop and makes a flat expression of it (`expr/steps.rs` of `clearway-sql`), so that plans,
//!   which are evaluated, copied and dropped everywhere, are never deep.
//!
//! Invariant R1: between two checkpoints ([`checkpoint`]) of an expression lie at most
//! [`NESTING_PER_CHECKPOINT`] levels of nesting with at most [`CHAIN_PER_STEP`] operators each, and these fit
//! into `RED_ZONE`.

use std::ops::Deref;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{EngineError, Result, SqlState};
use crate::memory;

/// The most levels a syntax tree may have.
pub(crate) const LEVELS_MAX: u32 = 1_000_000;

/// The most levels of nesting that the parser takes.
pub const NESTING_MAX: usize = 100;

/// Levels of a tree up to which it needs no segment of its own.
const LEVELS_ON_ANY_STACK: u32 = 100;

/// Stack of one level of a syntax tree while it is compared, printed or dropped. A level of a chain has at least two
/// tokens, so twice this is there for each.
const BYTES_PER_LEVEL: usize = 2 << 10;

/// Stack below which work goes on in a new segment.
const RED_ZONE: usize = if cfg!(debug_assertions) {
    512 << 10
} else {
    128 << 10
};

/// The size of such a segment.
const SEGMENT: usize = 4 * RED_ZONE;

/// Levels of nesting between two checkpoints of an expression.
pub const NESTING_PER_CHECKPOINT: u32 = 8;

/// Operators of a step: a chain of more is cut into such steps.
pub const CHAIN_PER_STEP: usize = 16;

/// Runs `work` with room for recursion over a tree of `levels` levels.
pub fn with_stack_for<R>(levels: u32, work: impl FnOnce() -> R) -> R {
    if levels <= LEVELS_ON_ANY_STACK {
        return work();
    }
    stacker::grow(levels as usize * BYTES_PER_LEVEL + 2 * RED_ZONE, work)
}

/// 53200 if there is no address space for a tree of so many levels: to parse it, to bind it, to drop it.
pub fn require_for(levels: u32) -> Result<()> {
    if levels <= LEVELS_ON_ANY_STACK {
        return Ok(());
    }
    memory::require_space(2 * (levels as usize * BYTES_PER_LEVEL + 2 * RED_ZONE))
}

/// Runs `work`, in a new segment if this one is nearly used up.
#[inline]
pub fn checkpoint<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, SEGMENT, work)
}

/// 54001, in PostgreSQL's words.
#[cold]
pub fn too_deep() -> EngineError {
    EngineError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(format!(
        "Write the statement with fewer levels of nesting; one chain of operators may have {LEVELS_MAX} tokens."
    ))
}

/// The most levels that the tree of these tokens can have; 54001 if that is too many.
///
/// If the grammar has alternatives, the parser takes its own limit for a reason to try the next one (`case` may be a
/// column as well), and reports what that one missed. So the limit of what nests is looked after here: open brackets,
/// CASE, JOIN without its ON, and operators before their operand.
///
/// A level takes a token at least, and a comma separates neighbours: in `(1, 2 + 3), (4, 5)` the deepest
/// element is `2 + 3` in one bracket. Only set operations chain across commas, so these are counted for the whole text.
pub fn levels(tokens: &[TokenWithSpan]) -> Result<u32> {
    // Tokens of the current element, for each open bracket.
    let mut open: Vec<u32> = vec![0];
    let (mut sum, mut deepest, mut set_operations) = (0u32, 0u32, 0u32);
    let (mut prefixes, mut cases, mut joins) = (0usize, 0usize, 0usize);
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        let word = keyword(&token.token);
        if word == Keyword::NOT || matches!(token.token, Token::Minus | Token::Plus) {
            prefixes += 1;
        } else {
            prefixes = 0;
        }
        match word {
            Keyword::CASE => cases += 1,
            Keyword::END => cases = cases.saturating_sub(1),
            // `a join b join c on … on …`: each JOIN nests in the one before until its ON comes.
            Keyword::JOIN => joins += 1,
            Keyword::ON | Keyword::USING => joins = joins.saturating_sub(1),
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => set_operations += 1,
            _ => {}
        }
        let too_many = |nested: usize| nested > NESTING_MAX;
        if too_many(prefixes) || too_many(cases) || too_many(joins) || too_many(open.len() - 1) {
            return Err(too_deep());
        }
        match &token.token {
            Token::Comma => {
                sum -= std::mem::take(open.last_mut().expect("the outermost is never closed"));
                continue;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if open.len() > 1 {
                    sum -= open.pop().unwrap_or(0);
                }
                continue;
            }
            Token::Word(word) => {
                let set = [
                    Keyword::UNION,
                    Keyword::EXCEPT,
                    Keyword::INTERSECT,
                    Keyword::MINUS,
                ];
                set_operations += u32::from(set.contains(&word.keyword));
            }
            _ => {}
        }
        *open.last_mut().expect("the outermost is never closed") += 1;
        sum += 1;
        deepest = deepest.max(sum);
        if matches!(token.token, Token::LParen | Token::LBracket | Token::LBrace) {
            open.push(0);
        }
    }
    let levels = deepest.saturating_add(set_operations.saturating_mul(2));
    if levels > LEVELS_MAX {
        return Err(too_deep());
    }
    Ok(levels)
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// A syntax tree that may be deep: it is copied and dropped with room for that.
#[derive(Debug)]
pub struct Deep<T> {
    /// Always there until it is dropped or taken.
    tree: Option<Box<T>>,
    levels: u32,
}

impl<T> Deep<T> {
    /// A tree of at most that many levels.
    pub fn new(tree: T, levels: u32) -> Deep<T> {
        let tree = Some(Box::new(tree));
        Deep { tree, levels }
    }

    /// The most levels that it can have.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// A part of it, or the error; what is left over is dropped.
    pub fn try_map<U>(mut self, part: impl FnOnce(T) -> Result<U>) -> Result<Deep<U>> {
        let levels = self.levels;
        let tree = self.tree.take().expect("a tree is taken once");
        with_stack_for(levels, || part(*tree)).map(|part| Deep::new(part, levels))
    }
}

impl<T> Deref for Deep<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.tree
            .as_deref()
            .expect("a tree that was taken is not looked at")
    }
}

impl<T: Clone> Clone for Deep<T> {
    fn clone(&self) -> Deep<T> {
        Deep {
            tree: with_stack_for(self.levels, || self.tree.clone()),
            levels: self.levels,
        }
    }
}

impl<T> Drop for Deep<T> {
    fn drop(&mut self) {
        if let Some(tree) = self.tree.take() {
            with_stack_for(self.levels, || drop(tree));
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn levels_of(sql: &str) -> Result<u32> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
            .tokenize_with_location()
            .unwrap();
        levels(&tokens)
    }

    #[test]
    fn a_list_is_as_deep_as_its_deepest_element() {
        assert_eq!(levels_of("select 1").unwrap(), 2);
        assert_eq!(levels_of("select 1 + 1, 2").unwrap(), 4);
        let rows = format!("insert into t values {}", vec!["(1, 2)"; 10_000].join(", "));
        assert!(levels_of(&rows).unwrap() < 10);
        assert_eq!(levels_of("f(g(x))").unwrap(), 5);
    }

    #[test]
    fn chains_are_as_deep_as_they_are_long() {
        let sum = format!("select 1{}", " + 1".repeat(1_000));
        assert!(levels_of(&sum).unwrap() > 2_000);
        let union = vec!["select 1, 1"; 1_000].join(" union ");
        assert!(levels_of(&union).unwrap() >= 1_000);
        let long = format!("select 1{}", "+1".repeat(LEVELS_MAX as usize));
        assert_eq!(levels_of(&long).unwrap_err().sqlstate().as_str(), "54001");
    }
}
