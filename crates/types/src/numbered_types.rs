//! Types that users define in the texts of definitions, by number.
//!
//! A default or a condition that casts to such a type means this type from then on, whatever its name becomes and
//! wherever names are looked for. So the catalog keeps the text with the type's number in the place of its name, and what
//! shows the text puts the name of the moment in.
//!
//! ```text
//! written   m <> 'sad'::mood        kept   m <> 'sad'::"@16400"        shown   m <> 'sad'::public.mood
//! ```

use crate::lex::{Kind, Token, lex};
use crate::value::DataType;
use crate::value::user_type::{in_force, numbered};

/// The text with numbers in the place of names of types behind `::`.
pub fn types_by_number(sql: &str) -> String {
    let tokens = lex(sql, usize::MAX);
    let (mut kept, mut from) = (String::with_capacity(sql.len()), 0);
    for at in 2..tokens.len() {
        let is_cast = tokens[at - 2..at]
            .iter()
            .all(|token| token.kind == Kind::Symbol(':'));
        let Some((schema, name, end)) = name_at(&tokens, at).filter(|_| is_cast) else {
            continue;
        };
        let of_system = schema.is_none() && DataType::named(name).is_some();
        let found = in_force::named(schema, name).filter(|_| !of_system);
        let Some(oid) = found.and_then(DataType::user_oid) else {
            continue;
        };
        kept.push_str(&sql[from..tokens[at].start]);
        kept.push_str(&format!("\"{}\"", numbered(oid)));
        from = end;
    }
    kept.push_str(&sql[from..]);
    kept
}

/// The text with names in the place of numbers; a type that there is not keeps its number.
pub fn types_by_name(sql: &str) -> String {
    let (mut shown, mut from) = (String::with_capacity(sql.len()), 0);
    for token in lex(sql, usize::MAX) {
        let Kind::Quoted(name) = &token.kind else { continue };
        let found = name
            .starts_with('@')
            .then(|| in_force::named(None, name))
            .flatten();
        if let Some(found) = found {
            shown.push_str(&sql[from..token.start]);
            shown.push_str(&found.name());
            from = token.end;
        }
    }
    shown.push_str(&sql[from..]);
    shown
}

/// Schema and name at a token, and the byte behind them.
fn name_at(tokens: &[Token], at: usize) -> Option<(Option<&str>, &str, usize)> {
    let word = |at: usize| match &tokens.get(at)?.kind {
        Kind::Word(name) | Kind::Quoted(name) => Some(name.as_str()),
        _ => None,
    };
    let first = word(at)?;
    match (tokens.get(at + 1).map(|token| &token.kind), word(at + 2)) {
        (Some(Kind::Symbol('.')), Some(name)) => Some((Some(first), name, tokens[at + 2].end)),
        _ => Some((None, first, tokens[at].end)),
    }
}
