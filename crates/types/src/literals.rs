//! The string literals of an expression, with what stands around each.

use std::ops::Range;

use crate::lex::{Kind, Token, lex};

/// A string literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    /// Its content.
    pub value: String,
    /// Its place in the text.
    pub bytes: Range<usize>,
    /// The type that it is cast to by `::`, in lower case, and the end of the type's name.
    pub cast_to: Option<(String, usize)>,
    /// The function whose first argument begins with it.
    pub function: Option<String>,
    /// True if an argument ends with it.
    pub is_whole_argument: bool,
}

/// All literals of a text, from front to back.
pub(crate) fn literals(text: &str) -> Vec<Literal> {
    let tokens = lex(text, usize::MAX);
    let kind = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|token: &Token| &token.kind);
    let is = |at: Option<usize>, symbol: char| kind(at) == Some(&Kind::Symbol(symbol));
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Kind::Text(value) = &token.kind else {
            continue;
        };
        let cast_to = match (is(Some(at + 1), ':') && is(Some(at + 2), ':'), tokens.get(at + 3)) {
            (
                true,
                Some(Token {
                    kind: Kind::Word(name),
                    end,
                    ..
                }),
            ) => Some((name.clone(), *end)),
            _ => None,
        };
        let function = match (is(at.checked_sub(1), '('), kind(at.checked_sub(2))) {
            (true, Some(Kind::Word(name))) => Some(name.clone()),
            _ => None,
        };
        found.push(Literal {
            value: value.clone(),
            bytes: token.start..token.end,
            cast_to,
            function,
            is_whole_argument: is(Some(at + 1), ')') || is(Some(at + 1), ','),
        });
    }
    found
}
