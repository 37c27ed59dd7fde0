//! FOR UPDATE and its relatives, where sqlparser reads less than PostgreSQL: FOR NO KEY UPDATE, FOR KEY SHARE, and several
//! names behind OF.
//!
//! They are mended in the list of tokens, and FOR READ ONLY, which does nothing, is left out: sqlparser reads FOR UPDATE or FOR SHARE, OF, and one name. What it does not know
//! stands in the name, whose first part has a quote that no text can have, and says which lock is meant:
//!
//! ```text
//! for no key update of a, b      is read as      for update of «no key update».a.b
//! for key share                                  for share of «key share»
//! ```

use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::plan::LockStrength;

/// The quote of a lock's mark.
const MARK: char = '\u{2}';

/// The words of the locks behind FOR; the longer ones first.
const LOCKS: &[(&[&str], LockStrength)] = &[
    (&["no", "key", "update"], LockStrength::NoKeyUpdate),
    (&["key", "share"], LockStrength::KeyShare),
    (&["update"], LockStrength::Update),
    (&["share"], LockStrength::Share),
];

/// The strength of a lock, and the names behind OF; none: all relations.
pub(crate) fn lock_of(clause: &ast::LockClause) -> (LockStrength, Vec<ast::ObjectName>) {
    let strength = match clause.lock_type {
        ast::LockType::Update => LockStrength::Update,
        ast::LockType::Share => LockStrength::Share,
    };
    let Some(of) = &clause.of else {
        return (strength, Vec::new());
    };
    match of.0.as_slice() {
        [ast::ObjectNamePart::Identifier(mark), names @ ..] if mark.quote_style == Some(MARK) => {
            let found = LOCKS.iter().find(|(_, known)| known.clause() == mark.value);
            let strength = found.map_or(strength, |(_, known)| *known);
            let names = names.iter().map(|name| ast::ObjectName(vec![name.clone()]));
            (strength, names.collect())
        }
        _ => (strength, vec![of.clone()]),
    }
}

fn is_word(token: &TokenWithSpan, text: &str) -> bool {
    matches!(&token.token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

/// Mends the locks in a list of tokens.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is_word(&tokens[at], "for") {
            mend_one(tokens, at);
        }
        at += 1;
    }
}

fn mend_one(tokens: &mut Vec<TokenWithSpan>, start: usize) {
    let meant = |from: usize| {
        let numbered = tokens.iter().enumerate().skip(from);
        numbered.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
    };
    let words: Vec<usize> = meant(start + 1).take(3).map(|(at, _)| at).collect();
    let reads = |lock: &[&str]| {
        lock.len() <= words.len()
            && lock
                .iter()
                .zip(&words)
                .all(|(word, at)| is_word(&tokens[*at], word))
    };
    if reads(&["read", "only"]) {
        // It locks nothing.
        for at in std::iter::once(start).chain(words.into_iter().take(2)) {
            tokens[at].token = Token::Whitespace(Whitespace::Space);
        }
        return;
    }
    let Some((lock, strength)) = LOCKS.iter().find(|(lock, _)| reads(lock)) else {
        return;
    };
    let last = words[lock.len() - 1];
    let mut behind = meant(last + 1);
    let of = behind.next().filter(|(_, token)| is_word(token, "of"));
    let of = of.map(|(at, _)| at);
    // The commas of a list of names without qualifiers.
    let mut commas = Vec::new();
    if of.is_some() {
        while let (Some((_, name)), Some((comma, next))) = (behind.next(), behind.next()) {
            if !matches!(name.token, Token::Word(_)) || next.token != Token::Comma {
                break;
            }
            commas.push(comma);
        }
    }
    if lock.len() == 1 && commas.is_empty() {
        return;
    }
    let span = tokens[last].span;
    let mark = Token::make_word(strength.clause(), Some(MARK));
    let added = match of {
        None => vec![Token::make_keyword("OF"), mark],
        Some(_) => vec![mark, Token::Period],
    };
    let place = of.unwrap_or(last) + 1;
    for comma in commas {
        tokens[comma].token = Token::Period;
    }
    for word in &words[..lock.len() - 1] {
        tokens[*word].token = Token::Whitespace(Whitespace::Space);
    }
    let blank = std::iter::once(Token::Whitespace(Whitespace::Space));
    let added = blank.chain(added).map(|token| TokenWithSpan { token, span });
    tokens.splice(place..place, added);
}
