//! `((SELECT 1) UNION SELECT 2)` as a value.
//!
//! sqlparser takes brackets for those of a query where SELECT or WITH stands right behind the first one. Behind two it
//! expects an expression, and stops at UNION. It is a query if the bracket inside begins one and, behind that bracket's
//! end, there stands a word that continues a query. The look ahead reads each token once.

use sqlparser::ast::Expr;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::in_list::{begins_query, continues_query};

/// The query in brackets that begins here, if it is one of these.
pub(super) fn parse(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if !is_here(parser) {
        return None;
    }
    parser.advance_token();
    let query = parser.parse_query();
    Some(query.and_then(|query| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::Subquery(query))
    }))
}

fn is_here(parser: &mut Parser<'_>) -> bool {
    let keyword = |parser: &Parser<'_>, at: usize| keyword_of(&parser.peek_nth_token_ref(at).token);
    let is = |parser: &Parser<'_>, at: usize, token: &Token| parser.peek_nth_token_ref(at).token == *token;
    if !is(parser, 1, &Token::LParen) {
        return false;
    }
    let here: &Parser<'_> = parser;
    if !begins_query(&|at| keyword(here, at), &|at, token| is(here, at, token), 1) {
        return false;
    }
    let mut continues = false;
    // An error sets the parser back to where it was.
    let looked: Result<Option<()>, ParserError> = parser.maybe_parse(|parser| {
        parser.advance_token();
        let mut depth = 0_usize;
        loop {
            match parser.next_token().token {
                Token::LParen => depth += 1,
                Token::RParen if depth <= 1 => break,
                Token::RParen => depth -= 1,
                Token::EOF => return Err(ParserError::ParserError(String::new())),
                _ => {}
            }
        }
        continues = continues_query(keyword(parser, 0));
        Err(ParserError::ParserError(String::new()))
    });
    looked.is_ok() && continues
}

fn keyword_of(token: &Token) -> sqlparser::keywords::Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => sqlparser::keywords::Keyword::NoKeyword,
    }
}
