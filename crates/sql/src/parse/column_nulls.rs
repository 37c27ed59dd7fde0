//! `UNIQUE NULLS NOT DISTINCT` behind a column, which sqlparser reads of a table's constraints alone: the words about NULLs
//! become another option of the column, which PostgreSQL does not have.

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// The text of the option that stands for the words, which no statement can have: its text ends at the first NUL.
const NOT_DISTINCT: &str = "\0nulls not distinct";

/// True if the unique key that a column is by itself has NULLS NOT DISTINCT.
pub(crate) fn has_nulls_not_distinct(column: &ast::ColumnDef) -> bool {
    column
        .options
        .iter()
        .any(|option| is_nulls_not_distinct(&option.option))
}

/// True for the option that stands for NULLS NOT DISTINCT.
pub(crate) fn is_nulls_not_distinct(option: &ast::ColumnOption) -> bool {
    matches!(option, ast::ColumnOption::Comment(text) if text == NOT_DISTINCT)
}

/// Mends the words in a list of tokens: behind UNIQUE, and not in front of a list of columns.
pub(super) fn mend(tokens: &mut [TokenWithSpan]) {
    let is = |token: &TokenWithSpan, keyword| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.keyword == keyword,
        _ => false,
    };
    // Most statements have none, and may be long.
    if !tokens.iter().any(|token| is(token, Keyword::UNIQUE)) {
        return;
    }
    let meant: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    for (place, unique) in meant.iter().enumerate() {
        if !is(&tokens[*unique], Keyword::UNIQUE) {
            continue;
        }
        let words = &meant[place + 1..];
        let [nulls, rest @ ..] = words else { continue };
        if !is(&tokens[*nulls], Keyword::NULLS) {
            continue;
        }
        let (not, rest) = match rest {
            [not, rest @ ..] if is(&tokens[*not], Keyword::NOT) => (Some(*not), rest),
            rest => (None, rest),
        };
        let [distinct, rest @ ..] = rest else { continue };
        let is_list = rest
            .first()
            .is_some_and(|next| tokens[*next].token == Token::LParen);
        if !is(&tokens[*distinct], Keyword::DISTINCT) || is_list {
            continue;
        }
        let blank = Token::Whitespace(Whitespace::Space);
        tokens[*nulls].token = blank.clone();
        tokens[*distinct].token = blank;
        if let Some(not) = not {
            tokens[*nulls].token = Token::Word(Word {
                value: "COMMENT".to_owned(),
                quote_style: None,
                keyword: Keyword::COMMENT,
            });
            tokens[not].token = Token::SingleQuotedString(NOT_DISTINCT.to_owned());
        }
    }
}
