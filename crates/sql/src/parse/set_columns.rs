//! `ON DELETE SET NULL (a, b)` and `ON DELETE SET DEFAULT (a, b)`, which sqlparser does not read: the columns become the
//! last names of the referenced ones, with a quote that no text can have.
//!
//! ```text
//! references p (x) on delete set null (a)
//! references p (x, «a») on delete set null
//! ```

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The quote of a column that ON DELETE sets.
const MARK: char = '`';
/// The quote of a column behind ON UPDATE SET NULL or SET DEFAULT, which takes none.
const MARK_OF_UPDATE: char = '[';

/// True if a column stands behind ON UPDATE SET NULL or SET DEFAULT.
pub(crate) fn is_of_update(column: &ast::Ident) -> bool {
    column.quote_style == Some(MARK_OF_UPDATE)
}

/// The referenced columns, and those that ON DELETE sets.
pub(crate) fn set_columns(columns: &[ast::Ident]) -> (&[ast::Ident], &[ast::Ident]) {
    let is_marked = |column: &ast::Ident| matches!(column.quote_style, Some(MARK | MARK_OF_UPDATE));
    let split = columns.iter().position(is_marked).unwrap_or(columns.len());
    columns.split_at(split)
}

/// Mends the lists of columns in a list of tokens.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let mut references = None;
    let mut at = 0;
    while at < tokens.len() {
        let here = at;
        at += 1;
        match keyword(&tokens[here]) {
            Some(Keyword::REFERENCES) => references = Some(here),
            Some(Keyword::SET) => {
                let (Some(references), Some(mark)) = (references, mark_behind(tokens, here)) else {
                    continue;
                };
                let Some(list) = list_behind(tokens, here) else {
                    continue;
                };
                at = move_list(tokens, references, list, mark);
            }
            _ => {}
        }
    }
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// The first token from a place on that means something.
fn meant(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
}

/// The quote of columns behind SET at this place, if ON DELETE or ON UPDATE stands before it.
fn mark_behind(tokens: &[TokenWithSpan], at: usize) -> Option<char> {
    let mut before = tokens[..at]
        .iter()
        .rev()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mark = match before.next().and_then(keyword)? {
        Keyword::DELETE => MARK,
        Keyword::UPDATE => MARK_OF_UPDATE,
        _ => return None,
    };
    (before.next().and_then(keyword)? == Keyword::ON).then_some(mark)
}

/// The places of the parentheses of the list behind SET NULL or SET DEFAULT, if there is one.
fn list_behind(tokens: &[TokenWithSpan], set: usize) -> Option<(usize, usize)> {
    let what = meant(tokens, set + 1)?;
    if !matches!(keyword(&tokens[what]), Some(Keyword::NULL | Keyword::DEFAULT)) {
        return None;
    }
    let open = meant(tokens, what + 1)?;
    let in_list = |at: &usize| {
        matches!(
            tokens[*at].token,
            Token::Whitespace(_) | Token::Word(_) | Token::Comma
        )
    };
    let close = (open + 1..tokens.len()).find(|at| !in_list(at))?;
    let is_list = tokens[open].token == Token::LParen && tokens[close].token == Token::RParen;
    is_list.then_some((open, close))
}

/// Moves a list behind the referenced columns; the place to go on at.
fn move_list(
    tokens: &mut Vec<TokenWithSpan>,
    references: usize,
    (open, close): (usize, usize),
    mark: char,
) -> usize {
    let mut added = Vec::new();
    for token in &mut tokens[open..=close] {
        let taken = std::mem::replace(&mut token.token, Token::Whitespace(Whitespace::Space));
        if let Token::Word(word) = taken {
            let name = match word.quote_style {
                None => word.value.to_lowercase(),
                Some(_) => word.value,
            };
            for moved in [Token::Comma, Token::make_word(&name, Some(mark))] {
                added.push(TokenWithSpan {
                    token: moved,
                    span: token.span,
                });
            }
        }
    }
    // Behind the table's name: words and points.
    let mut end = references + 1;
    while let Some(next) = meant(tokens, end)
        && match tokens[next].token {
            Token::Period => true,
            Token::Word(_) => matches!(
                tokens[..next].iter().rfind(|token| !matches!(token.token, Token::Whitespace(_))),
                Some(before) if before.token == Token::Period || keyword(before) == Some(Keyword::REFERENCES)
            ),
            _ => false,
        }
    {
        end = next + 1;
    }
    let list = meant(tokens, end).filter(|at| tokens[*at].token == Token::LParen);
    let count = added.len();
    match list.and_then(|list| (list..open).find(|at| tokens[*at].token == Token::RParen)) {
        Some(list_end) => {
            tokens.splice(list_end..list_end, added);
            close + 1 + count
        }
        None => {
            let span = tokens[references].span;
            let sign = |token| TokenWithSpan { token, span };
            let list = std::iter::once(sign(Token::LParen))
                .chain(added.into_iter().skip(1))
                .chain(std::iter::once(sign(Token::RParen)));
            tokens.splice(end..end, list);
            close + 2 + count
        }
    }
}
