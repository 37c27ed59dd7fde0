//! `x = ANY (VALUES (1), (2))`: behind ANY, SOME and ALL sqlparser expects a query that begins with SELECT or WITH, or an
//! expression. In brackets of its own VALUES is such an expression.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Puts VALUES behind ANY, SOME and ALL in brackets.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let keyword = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    let mut at = 0;
    while at < tokens.len() {
        let here = at;
        at += 1;
        if !matches!(
            keyword(&tokens[here]),
            Some(Keyword::ANY | Keyword::SOME | Keyword::ALL)
        ) {
            continue;
        }
        let mut meant =
            (here + 1..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
        let (Some(open), Some(values)) = (meant.next(), meant.next()) else {
            return;
        };
        if tokens[open].token != Token::LParen || keyword(&tokens[values]) != Some(Keyword::VALUES) {
            continue;
        }
        let mut depth = 0_usize;
        let close = (open..tokens.len()).find(|at| {
            match tokens[*at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        let Some(close) = close else { return };
        tokens.insert(close, tokens[close].clone());
        tokens.insert(open, tokens[open].clone());
        at = open;
    }
}
