//! MERGE, where sqlparser reads less than PostgreSQL: `INSERT DEFAULT VALUES`, and a join as the source.
//!
//! Both are mended in the list of tokens. `INSERT DEFAULT VALUES` becomes `INSERT VALUES (default)` with a mark on the
//! word. `USING a JOIN b ON … ON …` becomes `USING (a JOIN b ON …) ON …`: the last ON before the first WHEN, outside all
//! parentheses, is MERGE's own.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The quote of the word DEFAULT of `INSERT DEFAULT VALUES`, which no text can have.
pub(crate) const DEFAULT_VALUES_MARK: char = '\u{1}';

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Mends the tokens of a statement that is MERGE, or has WITH before it.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let first = tokens
        .iter()
        .find(|token| !matches!(token.token, Token::Whitespace(_)));
    let may_be = matches!(first.and_then(keyword), Some(Keyword::MERGE | Keyword::WITH));
    if !may_be {
        return;
    }
    let is_merge = |token: &TokenWithSpan| keyword(token) == Some(Keyword::MERGE);
    let Some(begin) = tokens.iter().position(is_merge) else {
        return;
    };
    enclose_join(tokens, begin);
    mark_default_values(tokens, begin);
}

/// Puts a join behind USING into parentheses.
fn enclose_join(tokens: &mut Vec<TokenWithSpan>, begin: usize) {
    let (mut depth, mut using, mut own_on, mut joins) = (0, None, None, false);
    for (number, token) in tokens.iter().enumerate().skip(begin) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        match keyword(token) {
            Some(Keyword::CASE) => depth += 1,
            Some(Keyword::END) => depth -= 1,
            Some(Keyword::USING) if depth == 0 && using.is_none() => using = Some(number),
            Some(Keyword::JOIN) if depth == 0 && using.is_some() => joins = true,
            Some(Keyword::ON) if depth == 0 && using.is_some() => own_on = Some(number),
            Some(Keyword::WHEN) if depth == 0 && using.is_some() => break,
            _ => {}
        }
    }
    let (true, Some(using), Some(own_on)) = (joins, using, own_on) else {
        return;
    };
    let parenthesis = |token: Token, at: usize| TokenWithSpan {
        token,
        span: tokens[at].span,
    };
    let (open, close) = (
        parenthesis(Token::LParen, using),
        parenthesis(Token::RParen, own_on),
    );
    tokens.insert(own_on, close);
    tokens.insert(using + 1, open);
}

/// `DEFAULT VALUES` behind INSERT.
fn mark_default_values(tokens: &mut Vec<TokenWithSpan>, begin: usize) {
    let meant = |tokens: &[TokenWithSpan], from: usize| {
        (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
    };
    let mut at = begin;
    while at < tokens.len() {
        let here = at;
        at += 1;
        if keyword(&tokens[here]) != Some(Keyword::INSERT) {
            continue;
        }
        let Some(default) = meant(tokens, here + 1) else {
            return;
        };
        let Some(values) = meant(tokens, default + 1) else {
            return;
        };
        let words = (keyword(&tokens[default]), keyword(&tokens[values]));
        if words != (Some(Keyword::DEFAULT), Some(Keyword::VALUES)) {
            continue;
        }
        let span = tokens[default].span;
        tokens[default].token = Token::Whitespace(Whitespace::Space);
        let row = [
            Token::LParen,
            Token::make_word("default", Some(DEFAULT_VALUES_MARK)),
            Token::RParen,
        ];
        let row = row.map(|token| TokenWithSpan { token, span });
        tokens.splice(values + 1..values + 1, row);
    }
}
