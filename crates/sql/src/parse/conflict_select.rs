//! `ON CONFLICT … DO SELECT [FOR UPDATE …]` of PostgreSQL 19, which sqlparser does not read: it becomes DO UPDATE with one
//! assignment, of the clause's lock to a name that is quoted as no text can quote one.

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::plan::LockStrength;

/// The quote of that name.
const MARK: char = '\u{e003}';

/// The locks that the clause can ask for, by their words.
const LOCKS: [(&[Keyword], LockStrength); 4] = [
    (&[Keyword::FOR, Keyword::UPDATE], LockStrength::Update),
    (
        &[Keyword::FOR, Keyword::NO, Keyword::KEY, Keyword::UPDATE],
        LockStrength::NoKeyUpdate,
    ),
    (&[Keyword::FOR, Keyword::SHARE], LockStrength::Share),
    (
        &[Keyword::FOR, Keyword::KEY, Keyword::SHARE],
        LockStrength::KeyShare,
    ),
];

/// The lock of DO SELECT, inside `None` without one; `None` if the clause is DO UPDATE.
pub(crate) fn conflict_select(update: &ast::DoUpdate) -> Option<Option<LockStrength>> {
    let [only] = update.assignments.as_slice() else {
        return None;
    };
    let ast::AssignmentTarget::ColumnName(name) = &only.target else {
        return None;
    };
    let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
        return None;
    };
    if ident.quote_style != Some(MARK) {
        return None;
    }
    let found = LOCKS
        .iter()
        .find(|(_, strength)| strength.clause() == ident.value);
    Some(found.map(|(_, strength)| *strength))
}

/// Mends the clauses in a list of tokens.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: &TokenWithSpan, wanted: Keyword| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.keyword == wanted,
        _ => false,
    };
    if !tokens.iter().any(|token| is(token, Keyword::CONFLICT)) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        let here = at;
        at += 1;
        if !is(&tokens[here], Keyword::DO) {
            continue;
        }
        let meant: Vec<usize> = (here + 1..tokens.len())
            .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
            .take(5)
            .collect();
        let Some(select) = meant
            .first()
            .filter(|select| is(&tokens[**select], Keyword::SELECT))
        else {
            continue;
        };
        let lock = LOCKS.iter().find(|(words, _)| {
            let found = words.iter().enumerate();
            found
                .map(|(number, word)| (meant.get(number + 1), *word))
                .all(|(place, word)| place.is_some_and(|place| is(&tokens[*place], word)))
        });
        let clause = lock.map_or("", |(_, strength)| strength.clause());
        let words = lock.map_or(0, |(words, _)| words.len());
        for place in &meant[1..=words] {
            tokens[*place].token = Token::Whitespace(Whitespace::Space);
        }
        let (select, span) = (*select, tokens[*select].span);
        tokens[select].token = Token::make_keyword("UPDATE");
        let assignment = [
            Token::make_keyword("SET"),
            Token::make_word(clause, Some(MARK)),
            Token::Eq,
            Token::Number("0".to_owned(), false),
        ];
        let assignment = assignment.map(|token| TokenWithSpan { token, span });
        tokens.splice(select + 1..select + 1, assignment);
        at = select + 5;
    }
}
