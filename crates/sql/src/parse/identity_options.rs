//! The options of an identity column's sequence, which PostgreSQL takes in any order and sqlparser in one: they are put into
//! that one.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The words that options begin with, in sqlparser's order.
const ORDER: [&str; 6] = ["increment", "minvalue", "maxvalue", "start", "cache", "cycle"];

/// Mends the options in a list of tokens.
pub(super) fn mend(tokens: &mut [TokenWithSpan]) {
    let is =
        |token: &TokenWithSpan, keyword| matches!(&token.token, Token::Word(word) if word.keyword == keyword);
    let mut at = 0;
    while let Some(found) = tokens[at..].iter().position(|token| is(token, Keyword::IDENTITY)) {
        let identity = at + found;
        at = identity + 1;
        let mut behind = (at..tokens.len()).filter(|at| !is_blank(&tokens[*at]));
        let Some(open) = behind.next().filter(|at| tokens[*at].token == Token::LParen) else {
            continue;
        };
        let Some(length) = tokens[open..]
            .iter()
            .position(|token| token.token == Token::RParen)
        else {
            return;
        };
        sort(&mut tokens[open + 1..open + length]);
        at = open + length;
    }
}

/// True for spaces and remarks.
pub(super) fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// Sorts options, each of them a word and what is behind it up to the next one.
fn sort(tokens: &mut [TokenWithSpan]) {
    let place = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => ORDER
            .iter()
            .position(|name| word.value.eq_ignore_ascii_case(name)),
        _ => None,
    };
    let is_no =
        |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::NO);
    let mut options: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let mut behind_no = false;
    for token in tokens.iter().filter(|token| !is_blank(token)) {
        match place(token) {
            Some(place) if behind_no => {
                if let Some(last) = options.last_mut() {
                    last.0 = place;
                    last.1.push(token.clone());
                }
            }
            Some(place) => options.push((place, vec![token.clone()])),
            None if is_no(token) => options.push((0, vec![token.clone()])),
            None => match options.last_mut() {
                Some(last) => last.1.push(token.clone()),
                // Something else than options.
                None => return,
            },
        }
        behind_no = is_no(token);
    }
    options.sort_by_key(|(place, _)| *place);
    let sorted: Vec<TokenWithSpan> = options.into_iter().flat_map(|(_, option)| option).collect();
    let count = sorted.len();
    let blank = tokens.first().map(|token| TokenWithSpan {
        token: Token::Whitespace(Whitespace::Space),
        span: token.span,
    });
    for (to, token) in tokens.iter_mut().zip(sorted) {
        *to = token;
    }
    if let Some(blank) = blank {
        tokens[count..].fill(blank);
    }
}
