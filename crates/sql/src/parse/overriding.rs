//! `INSERT … OVERRIDING SYSTEM VALUE`, which sqlparser does not read: the words become another clause behind INSERT, which
//! PostgreSQL does not have and nothing else is read as.

use sqlparser::ast::{Expr, SqliteOnConflict};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// The rule of an INSERT for identity columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overriding {
    /// Values that it gives count.
    System,
    /// Values that it gives do not count.
    User,
}

/// The rule of an INSERT with this clause.
pub(crate) fn overriding(clause: Option<SqliteOnConflict>) -> Option<Overriding> {
    match clause? {
        SqliteOnConflict::Ignore => Some(Overriding::System),
        _ => Some(Overriding::User),
    }
}

/// The quote of the word that stands in the WHERE of an INSERT of MERGE for a clause.
pub(crate) const OVERRIDING_MARK: char = '\u{e002}';

/// The rule of an INSERT of MERGE, by the tree of its WHERE; `None` if that is none of ours.
pub(crate) fn overriding_in_merge(tree: &Expr) -> Option<Overriding> {
    match tree {
        Expr::Identifier(word) if word.quote_style == Some(OVERRIDING_MARK) => match word.value.as_str() {
            "user" => Some(Overriding::User),
            _ => Some(Overriding::System),
        },
        _ => None,
    }
}

/// Puts the clause of an INSERT of MERGE behind its values: `WHERE` and a word of ours. The words of the clause end at
/// `from`.
fn mend_in_merge(tokens: &mut Vec<TokenWithSpan>, from: usize, user: bool) {
    let mut depth = 0usize;
    let behind = tokens[from..].iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                return depth == 0;
            }
            _ => {}
        }
        false
    });
    let Some(end) = behind.map(|at| from + at) else {
        return;
    };
    let span = tokens[end].span;
    let value = if user { "user" } else { "system" };
    let words = [
        (value, Some(OVERRIDING_MARK), Keyword::NoKeyword),
        ("WHERE", None, Keyword::WHERE),
    ];
    for (value, quote_style, keyword) in words {
        let word = Token::Word(Word {
            value: value.to_owned(),
            quote_style,
            keyword,
        });
        tokens.insert(end + 1, TokenWithSpan { token: word, span });
    }
}

/// Mends the clauses in a list of tokens. A clause that is written as sqlparser reads it is none.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let is_insert =
        |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::INSERT);
    if !tokens.iter().any(is_insert) {
        return;
    }
    let in_merge = tokens
        .iter()
        .any(|token| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::MERGE));
    let mut insert = None;
    let mut meant: [Option<usize>; 3] = [None; 3];
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if matches!(tokens[at].token, Token::Whitespace(_)) {
            continue;
        }
        meant.rotate_left(1);
        meant[2] = Some(at);
        if meant[1].is_some_and(|before| is_insert(&tokens[before])) {
            let is_into = matches!(&tokens[at].token, Token::Word(word) if word.keyword == Keyword::INTO);
            insert = meant[1].filter(|_| is_into);
            if let Token::Word(word) = &mut tokens[at].token
                && matches!(word.keyword, Keyword::OR | Keyword::REPLACE)
            {
                word.keyword = Keyword::NoKeyword;
            }
        }
        let [Some(first), Some(second), Some(third)] = meant else {
            continue;
        };
        let user = match word(&tokens[second]).as_str() {
            "system" => false,
            "user" => true,
            _ => continue,
        };
        if word(&tokens[first]) == "overriding" && word(&tokens[third]) == "value" {
            let insert = insert.take();
            if insert.is_some() || in_merge {
                found.push((insert, [first, second, third], user));
            }
        }
    }
    for (insert, words, user) in found.into_iter().rev() {
        for at in words {
            tokens[at].token = Token::Whitespace(Whitespace::Space);
        }
        let Some(insert) = insert else {
            mend_in_merge(tokens, words[2], user);
            continue;
        };
        let span = tokens[insert].span;
        let clause = if user {
            ("ABORT", Keyword::ABORT)
        } else {
            ("IGNORE", Keyword::IGNORE)
        };
        for (value, keyword) in [clause, ("OR", Keyword::OR)] {
            let word = Token::Word(Word {
                value: value.to_owned(),
                quote_style: None,
                keyword,
            });
            tokens.insert(insert + 1, TokenWithSpan { token: word, span });
        }
    }
}
