//! `WHERE CURRENT OF name`, which sqlparser does not read: the three words become one, the name with a quote that no text
//! can have.

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The quote of a cursor's name.
const MARK: char = '\u{7}';

/// The cursor, if a condition is CURRENT OF one.
pub(crate) fn current_of(condition: &ast::Expr) -> Option<&str> {
    match condition {
        ast::Expr::Identifier(ident) if ident.quote_style == Some(MARK) => Some(&ident.value),
        _ => None,
    }
}

/// Mends the conditions in a list of tokens.
pub(super) fn mend(tokens: &mut [TokenWithSpan]) {
    for at in 0..tokens.len() {
        if !is_word(&tokens[at], Keyword::WHERE) {
            continue;
        }
        let meant = tokens.iter().enumerate().skip(at + 1);
        let meant = meant.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
        let places: Vec<usize> = meant.take(3).map(|(place, _)| place).collect();
        let [current, of, name] = places[..] else {
            return;
        };
        if !is_word(&tokens[current], Keyword::CURRENT) || !is_word(&tokens[of], Keyword::OF) {
            continue;
        }
        let Token::Word(word) = &tokens[name].token else {
            continue;
        };
        let cursor = match word.quote_style {
            None => word.value.to_lowercase(),
            Some(_) => word.value.clone(),
        };
        tokens[current].token = Token::Whitespace(Whitespace::Space);
        tokens[of].token = Token::Whitespace(Whitespace::Space);
        tokens[name].token = Token::make_word(&cursor, Some(MARK));
    }
}

fn is_word(token: &TokenWithSpan, keyword: Keyword) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}
