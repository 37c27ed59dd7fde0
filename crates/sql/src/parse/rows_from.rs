//! Functions in FROM as sqlparser does not read them.
//!
//! 1. `ROWS FROM (f(x), g(y))` becomes a call of one function whose arguments are the calls, with a name in quotes that no text
//!    can have.
//! 2. `f(x) AS (a integer)` gets the function's name for the alias.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The quote of that name.
pub(crate) const ROWS_FROM: char = '\u{5}';

/// Mends ROWS FROM in a list of tokens.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let meant = |tokens: &[TokenWithSpan], from: usize| {
        (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
    };
    let is = |token: &Token, wanted| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == wanted);
    for at in 0..tokens.len() {
        if !is(&tokens[at].token, Keyword::ROWS) {
            continue;
        }
        let Some(from) = meant(tokens, at + 1).filter(|from| is(&tokens[*from].token, Keyword::FROM)) else {
            continue;
        };
        if meant(tokens, from + 1).is_none_or(|open| tokens[open].token != Token::LParen) {
            continue;
        }
        tokens[at].token = Token::make_word("rows from", Some(ROWS_FROM));
        tokens[from].token = Token::Whitespace(Whitespace::Space);
    }
    name_lists(tokens);
}

/// Names column definition lists that stand behind a call. What stands behind `AS (` of a common table expression or a view
/// begins with another parenthesis or one of the words that a query or a statement begins with.
fn name_lists(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let here = at;
        at += 1;
        let Token::Word(word) = &tokens[here].token else {
            continue;
        };
        if word.keyword != Keyword::AS || word.quote_style.is_some() {
            continue;
        }
        let meant: Vec<usize> = (here + 1..tokens.len())
            .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
            .take(2)
            .collect();
        let [open, first] = meant.as_slice() else { continue };
        let begins_query = match &tokens[*first].token {
            Token::Word(word) => matches!(
                word.keyword,
                Keyword::SELECT
                    | Keyword::WITH
                    | Keyword::VALUES
                    | Keyword::TABLE
                    | Keyword::INSERT
                    | Keyword::UPDATE
                    | Keyword::DELETE
                    | Keyword::MERGE
            ),
            _ => true,
        };
        if tokens[*open].token != Token::LParen || begins_query {
            continue;
        }
        if let Some(name) = called_before(&tokens[..here]) {
            let span = tokens[here].span;
            tokens.insert(here + 1, TokenWithSpan { token: name, span });
            tokens.insert(
                here + 1,
                TokenWithSpan {
                    token: Token::Whitespace(Whitespace::Space),
                    span,
                },
            );
            at += 2;
        }
    }
}

/// The name of the function whose call ends the tokens.
fn called_before(tokens: &[TokenWithSpan]) -> Option<Token> {
    let is_meant = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let close = (0..tokens.len()).rev().find(is_meant)?;
    if tokens[close].token != Token::RParen {
        return None;
    }
    let mut open = 0_usize;
    for at in (0..=close).rev() {
        match &tokens[at].token {
            Token::RParen => open += 1,
            Token::LParen => open -= 1,
            _ => {}
        }
        if open == 0 {
            let name = (0..at).rev().find(is_meant)?;
            return match &tokens[name].token {
                Token::Word(word) if word.keyword == Keyword::NoKeyword || word.quote_style.is_some() => {
                    Some(tokens[name].token.clone())
                }
                _ => None,
            };
        }
    }
    None
}
