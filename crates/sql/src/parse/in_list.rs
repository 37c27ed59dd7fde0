//! `x IN ((SELECT …), y)`: a list that begins with a query in brackets.
//!
//! sqlparser takes what begins with two brackets and a query for one query. It is a list if, behind the inner bracket's
//! end, there stands neither the outer one's nor a word that continues a query. One pass over the tokens marks the word
//! IN of each such list; where the parser comes to a marked word, it reads a list.

use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The quote of the word IN before such a list, which no text can have.
const MARK: char = '`';

/// Marks the word IN before each list that begins with a query in brackets.
pub(super) fn mark(tokens: &mut [TokenWithSpan]) {
    let significant: Vec<usize> = (0..tokens.len())
        .filter(|number| !matches!(tokens[*number].token, Token::Whitespace(_)))
        .collect();
    let keyword = |at: usize| match significant.get(at).map(|number| &tokens[*number].token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is = |at: usize, token: &Token| {
        significant
            .get(at)
            .is_some_and(|number| tokens[*number].token == *token)
    };
    // Of each open bracket: the word IN, if the bracket is the first one inside that word's list.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut marked = Vec::new();
    for at in 0..significant.len() {
        if is(at, &Token::LParen) {
            let is_first = at >= 2 && is(at - 1, &Token::LParen) && keyword(at - 2) == Keyword::IN;
            open.push((is_first && begins_query(&keyword, &is, at)).then(|| at - 2));
        } else if is(at, &Token::RParen)
            && let Some(Some(word)) = open.pop()
            && at + 1 < significant.len()
            && !is(at + 1, &Token::RParen)
            && !continues_query(keyword(at + 1))
        {
            marked.push(significant[word]);
        }
    }
    for number in marked {
        if let Token::Word(word) = &mut tokens[number].token {
            word.quote_style = Some(MARK);
        }
    }
}

/// True if a query begins at an open bracket or, behind it, at further ones.
pub(super) fn begins_query(
    keyword: &impl Fn(usize) -> Keyword,
    is: &impl Fn(usize, &Token) -> bool,
    bracket: usize,
) -> bool {
    // A query in more brackets than this is read as sqlparser reads it.
    const MOST_BRACKETS: usize = 8;
    let first = (bracket..bracket + MOST_BRACKETS).find(|at| !is(*at, &Token::LParen));
    first.is_some_and(|at| matches!(keyword(at), Keyword::SELECT | Keyword::WITH | Keyword::VALUES))
}

/// True for a word that goes on with a query behind a bracket.
pub(super) fn continues_query(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
            | Keyword::FOR
    )
}

/// The expression that goes on behind `left` with a list marked so, if the next token begins one.
pub(super) fn parse(parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
    let is_marked =
        |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.quote_style == Some(MARK));
    let negated = matches!(&parser.peek_token_ref().token, Token::Word(word) if word.keyword == Keyword::NOT && word.quote_style.is_none());
    if !is_marked(parser.peek_nth_token_ref(usize::from(negated))) {
        return None;
    }
    // NOT, IN and the bracket.
    for _ in 0..usize::from(negated) + 2 {
        parser.advance_token();
    }
    let list = parser.parse_comma_separated(Parser::parse_expr);
    Some(list.and_then(|list| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::InList {
            expr: Box::new(left.clone()),
            list,
            negated,
        })
    }))
}
