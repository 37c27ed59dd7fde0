//! `.*` where it is no wildcard of a select list: the fields of a record, and whole rows that are compared.
//!
//! | text | becomes |
//! | --- | --- |
//! | `(r).*`, `a[1].*` | a field called `*` with a quote of its own ([`ALL_FIELDS`]): sqlparser takes only names in front of `.*` |
//! | `t.* = u.*`, `t.* is null` | `(t.*) = …`: sqlparser takes `t.*` for a whole entry of the list, and stops |

use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The quote of the field that stands for all fields, which no text can have.
const ALL_FIELDS: char = '\0';

/// True for the field that stands for all fields.
pub(crate) fn is_all_fields(ident: &Ident) -> bool {
    ident.quote_style == Some(ALL_FIELDS) && ident.value == "*"
}

/// True for a token that goes on with an expression after `t.*`.
fn goes_on(token: &Token) -> bool {
    match token {
        Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq | Token::DoubleColon => {
            true
        }
        Token::Word(word) => {
            word.quote_style.is_none() && matches!(word.keyword, Keyword::IS | Keyword::IN | Keyword::NOT)
        }
        _ => false,
    }
}

/// Mends the tokens of a text.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let mut wrapped: Vec<(usize, usize)> = Vec::new();
    // The tokens before the one at hand that are no blanks, with the first of the name that they end.
    let (mut last, mut before): (Option<usize>, Option<usize>) = (None, None);
    let mut name = 0;
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::Whitespace(_) => continue,
            Token::Word(_) if last.is_none_or(|last| tokens[last].token != Token::Period) => name = at,
            Token::Mul if last.is_some_and(|last| tokens[last].token == Token::Period) => {
                match before.map(|before| &tokens[before].token) {
                    Some(Token::RParen | Token::RBracket) => {
                        tokens[at].token = Token::Word(Word {
                            value: "*".to_owned(),
                            quote_style: Some(ALL_FIELDS),
                            keyword: Keyword::NoKeyword,
                        });
                    }
                    Some(Token::Word(_)) => {
                        let mut rest = tokens[at + 1..].iter().map(|token| &token.token);
                        let next = rest.find(|token| !matches!(token, Token::Whitespace(_)));
                        if next.is_some_and(goes_on) {
                            wrapped.push((name, at));
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        before = last;
        last = Some(at);
    }
    for (first, last) in wrapped.into_iter().rev() {
        let close = TokenWithSpan::new(Token::RParen, tokens[last].span);
        let open = TokenWithSpan::new(Token::LParen, tokens[first].span);
        tokens.insert(last + 1, close);
        tokens.insert(first, open);
    }
}
