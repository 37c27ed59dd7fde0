//! Tables with or without those that inherit from them: `ONLY t`, `ONLY (t)`, `t *`.
//!
//! There are none that inherit, so all of these mean the table. sqlparser takes ONLY for the table's name, and the
//! asterisk for an error; both are left out of the list of tokens.
//!
//! A table's name follows FROM of a SELECT or DELETE, JOIN, UPDATE, and a comma in FROM. The FROM of a call
//! (`extract(year from x * y)`) is none: it is in brackets of its own, in which no SELECT precedes it; nor is that of
//! IS DISTINCT FROM.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The part of a query in one level of brackets.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Before a FROM of it
    Before,
    /// In FROM
    From,
    Other,
}

const fn ends_from(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::WINDOW
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
            | Keyword::FOR
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::SET
            | Keyword::RETURNING
    )
}

/// Leaves ONLY and asterisks behind tables' names out.
pub(super) fn leave_out(tokens: &mut [TokenWithSpan]) {
    let significant: Vec<usize> = (0..tokens.len())
        .filter(|number| !matches!(tokens[*number].token, Token::Whitespace(_)))
        .collect();
    let keyword = |tokens: &[TokenWithSpan], at: usize| match significant
        .get(at)
        .map(|number| &tokens[*number].token)
    {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let mut parts = vec![Part::Other];
    for at in 0..significant.len() {
        let before = at
            .checked_sub(1)
            .map_or(Keyword::NoKeyword, |before| keyword(tokens, before));
        let Some(part) = parts.last_mut() else { return };
        let names_table = match (&tokens[significant[at]].token, keyword(tokens, at)) {
            (Token::LParen, _) => {
                parts.push(Part::Other);
                false
            }
            (Token::RParen, _) => {
                parts.pop();
                if parts.is_empty() {
                    return;
                }
                false
            }
            (Token::SemiColon, _) => {
                parts = vec![Part::Other];
                false
            }
            (Token::Comma, _) => *part == Part::From,
            (_, Keyword::SELECT) => {
                *part = Part::Before;
                false
            }
            (_, Keyword::FROM)
                if before == Keyword::DELETE || *part == Part::Before && before != Keyword::DISTINCT =>
            {
                *part = Part::From;
                true
            }
            (_, Keyword::JOIN) => true,
            (_, Keyword::UPDATE) => !matches!(
                before,
                Keyword::FOR | Keyword::ON | Keyword::KEY | Keyword::DO | Keyword::THEN
            ),
            (_, other) => {
                if ends_from(other) {
                    *part = Part::Other;
                }
                false
            }
        };
        if names_table {
            leave_out_behind(tokens, &significant[at + 1..]);
        }
    }
}

/// Leaves out what belongs to the name of a table at the front of these tokens.
fn leave_out_behind(tokens: &mut [TokenWithSpan], rest: &[usize]) {
    let blank = Token::Whitespace(Whitespace::Space);
    let is = |tokens: &[TokenWithSpan], at: usize, token: &Token| {
        rest.get(at).is_some_and(|number| tokens[*number].token == *token)
    };
    let is_word = |tokens: &[TokenWithSpan], at: usize| {
        rest.get(at)
            .is_some_and(|number| matches!(tokens[*number].token, Token::Word(_)))
    };
    let is_only = rest.first().is_some_and(|number| {
        matches!(&tokens[*number].token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("only"))
    });
    let in_brackets = is_only && is(tokens, 1, &Token::LParen);
    let first = usize::from(is_only) + usize::from(in_brackets);
    if !is_word(tokens, first) {
        return;
    }
    let mut end = first + 1;
    while is(tokens, end, &Token::Period) && is_word(tokens, end + 1) {
        end += 2;
    }
    if in_brackets {
        if !is(tokens, end, &Token::RParen) {
            return;
        }
        tokens[rest[1]].token = blank.clone();
        tokens[rest[end]].token = blank.clone();
    }
    if is_only {
        tokens[rest[0]].token = blank;
    } else if is(tokens, end, &Token::Mul) {
        tokens[rest[end]].token = blank;
    }
}
