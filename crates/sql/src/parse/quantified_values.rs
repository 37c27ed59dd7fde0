//! `x = ANY (VALUES (1), (2))`: behind ANY, SOME and ALL sqlparser expects a query that begins with SELECT or WITH, or an
//! expression. In brackets of its own VALUES is such an expression. So is any query in `x LIKE ALL (SELECT …)`, which
//! sqlparser reads as a call of a function.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Puts VALUES behind ANY, SOME and ALL in brackets, and each query behind LIKE ALL.
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
        let before = tokens[..here].iter().rev();
        let before = before.filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let is_pattern = keyword(&tokens[here]) == Some(Keyword::ALL)
            && before
                .map(keyword)
                .next()
                .is_some_and(|word| matches!(word, Some(Keyword::LIKE | Keyword::ILIKE)));
        let begins_query = match keyword(&tokens[values]) {
            Some(Keyword::VALUES) => true,
            Some(Keyword::SELECT | Keyword::WITH) => is_pattern,
            _ => false,
        };
        if tokens[open].token != Token::LParen || !begins_query {
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
