//! `ON CONFLICT (lower(a), b) WHERE c > 0`, which sqlparser does not read: it takes names only.
//!
//! The parentheses then hold one name instead, quoted as no text can quote one: the text of the list, then of the condition.
//! A list of names without a condition stays as it is.

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::assigned_parts::Places;

/// The quote of such a name, and what stands between the two texts.
const MARK: char = '\u{6}';

/// The texts of the list and of the condition of a target that is more than names.
pub(crate) fn conflict_target(columns: &[ast::Ident]) -> Option<(&str, Option<&str>)> {
    let [only] = columns else { return None };
    if only.quote_style != Some(MARK) {
        return None;
    }
    Some(match only.value.split_once(MARK) {
        Some((list, condition)) => (list, Some(condition)),
        None => (&only.value, None),
    })
}

/// Mends the targets in a list of tokens.
pub(super) fn mend(tokens: &mut [TokenWithSpan], text: &str) {
    let is = |token: &Token, wanted| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == wanted);
    if !tokens.iter().any(|token| is(&token.token, Keyword::CONFLICT)) {
        return;
    }
    let meant = |tokens: &[TokenWithSpan], from: usize| {
        (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
    };
    let places = Places::of(text);
    for at in 0..tokens.len() {
        let behind_on = meant(tokens, at + 1).filter(|next| is(&tokens[*next].token, Keyword::CONFLICT));
        let Some(conflict) = behind_on.filter(|_| is(&tokens[at].token, Keyword::ON)) else {
            continue;
        };
        let is_open = |at: &usize| tokens[*at].token == Token::LParen;
        let Some(open) = meant(tokens, conflict + 1).filter(is_open) else {
            continue;
        };
        let Some(close) = closing(tokens, open) else {
            continue;
        };
        let condition = meant(tokens, close + 1).filter(|next| is(&tokens[*next].token, Keyword::WHERE));
        let end = condition.and_then(|from| ending(tokens, from));
        let names_alone = tokens[open + 1..close]
            .iter()
            .all(|token| matches!(token.token, Token::Whitespace(_) | Token::Word(_) | Token::Comma));
        let is_empty = close == open + 1;
        if is_empty || names_alone && condition.is_none() || condition.is_some() != end.is_some() {
            continue;
        }
        let Some(list) = places.between(tokens[open].span.end, tokens[close].span.start) else {
            continue;
        };
        let mut written = list.to_owned();
        if let (Some(from), Some(end)) = (condition, end) {
            let Some(condition) = places.between(tokens[from].span.end, tokens[end].span.start) else {
                continue;
            };
            written.push(MARK);
            written.push_str(condition);
        }
        tokens[open + 1].token = Token::make_word(&written, Some(MARK));
        for token in &mut tokens[open + 2..close] {
            token.token = Token::Whitespace(Whitespace::Space);
        }
        for token in &mut tokens[close + 1..end.unwrap_or(close + 1)] {
            token.token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// The parenthesis that closes one.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (open..tokens.len()).find(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// The word DO behind a condition.
fn ending(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (from..tokens.len()).find(|at| match &tokens[*at].token {
        Token::LParen => {
            depth += 1;
            false
        }
        Token::RParen => {
            depth = depth.saturating_sub(1);
            false
        }
        Token::Word(word) => depth == 0 && word.quote_style.is_none() && word.keyword == Keyword::DO,
        _ => false,
    })
}
