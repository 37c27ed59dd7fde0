//! The columns of typed tables: sqlparser wants a type behind each, which PostgreSQL does not allow. One is put there.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The quote of the type that is put behind a column, which no text can have.
const MARK: char = '\u{1a}';

/// Puts types behind the columns in the first list of a statement, and takes WITH OPTIONS away.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let mut mended = Vec::with_capacity(tokens.len());
    let mut depth = 0;
    // A column or a constraint begins next; WITH OPTIONS may come next.
    let (mut begins, mut may_have_options, mut is_over) = (false, false, false);
    let mut rest = std::mem::take(tokens).into_iter();
    while let Some(mut token) = rest.next() {
        if is_over || matches!(token.token, Token::Whitespace(_)) {
            mended.push(token);
            continue;
        }
        let is_column = std::mem::take(&mut begins) && begins_column(&token.token);
        let may_have_options = std::mem::replace(&mut may_have_options, is_column);
        match &token.token {
            Token::LParen => {
                depth += 1;
                begins = depth == 1;
            }
            Token::RParen => {
                depth -= 1;
                is_over = depth == 0;
            }
            Token::Comma => begins = depth == 1,
            Token::Word(word) if may_have_options && word.keyword == Keyword::WITH => {
                let options = rest
                    .by_ref()
                    .find(|next| !matches!(next.token, Token::Whitespace(_)));
                if let Some(options) = options.filter(|next| !is_word(&next.token, Keyword::OPTIONS)) {
                    mended.extend([token, options]);
                    continue;
                }
                token.token = Token::Whitespace(Whitespace::Space);
            }
            _ => {}
        }
        let span = token.span;
        mended.push(token);
        if is_column {
            mended.push(TokenWithSpan {
                token: Token::make_word("of", Some(MARK)),
                span,
            });
        }
    }
    *tokens = mended;
}

/// True for a token that a column begins with, and not a constraint.
fn begins_column(token: &Token) -> bool {
    let Token::Word(word) = token else { return false };
    let is_of_constraint = matches!(
        word.keyword,
        Keyword::CONSTRAINT
            | Keyword::PRIMARY
            | Keyword::UNIQUE
            | Keyword::CHECK
            | Keyword::FOREIGN
            | Keyword::EXCLUDE
    );
    word.quote_style.is_some() || !is_of_constraint
}

fn is_word(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}
