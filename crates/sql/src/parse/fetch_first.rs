//! `FETCH FIRST (expression) ROWS ONLY`, of which sqlparser reads literals only.
//!
//! It means what LIMIT does, so the list of tokens gets `LIMIT (expression)` in its place. A count without brackets, and WITH
//! TIES, are left to sqlparser.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Writes LIMIT for each FETCH with an expression in brackets.
pub(super) fn mend(tokens: &mut [TokenWithSpan]) {
    let is_fetch =
        |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::FETCH);
    if !tokens.iter().any(is_fetch) {
        return;
    }
    let significant: Vec<usize> = (0..tokens.len())
        .filter(|number| !matches!(tokens[*number].token, Token::Whitespace(_)))
        .collect();
    for at in 0..significant.len() {
        if let Some(end) = end_of_count(tokens, &significant[at..]) {
            tokens[significant[at]].token = Token::make_keyword("LIMIT");
            for left_out in [at + 1, at + end + 1, at + end + 2] {
                tokens[significant[left_out]].token = Token::Whitespace(Whitespace::Space);
            }
        }
    }
}

/// The place, among those of tokens that are no blanks, of the bracket that ends the count of a FETCH that begins there.
fn end_of_count(tokens: &[TokenWithSpan], places: &[usize]) -> Option<usize> {
    let token = |at: usize| places.get(at).map(|place| &tokens[*place].token);
    let is = |at: usize, wanted: &[Keyword]| match token(at) {
        Some(Token::Word(word)) => word.quote_style.is_none() && wanted.contains(&word.keyword),
        _ => false,
    };
    if !is(0, &[Keyword::FETCH])
        || !is(1, &[Keyword::FIRST, Keyword::NEXT])
        || token(2) != Some(&Token::LParen)
    {
        return None;
    }
    let mut depth = 0_usize;
    let end = (2..places.len()).find(|at| {
        match token(*at) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    (is(end + 1, &[Keyword::ROW, Keyword::ROWS]) && is(end + 2, &[Keyword::ONLY])).then_some(end)
}
