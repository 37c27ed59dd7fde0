//! Relations in the text of a column's default, by number.
//!
//! A default that names a relation, as `nextval('orders_id_seq')` does, means this relation from then on, whatever its
//! name becomes. So the catalog keeps the text with the relation's number in the place of its name, which `regclass` reads
//! as well: `nextval('16385'::regclass)`. The numbers are also what the default depends on. What shows the text puts
//! the names of the moment in.
//!
//! A name is one that is known when the default is made: a literal that is cast to `regclass`, or the first argument of a
//! function of sequences. `nextval('orders_id_seq'::text)` is looked up each time, as in PostgreSQL.

use crate::error::Result;
use crate::literals::literals;

/// The functions whose first argument is a relation.
const FUNCTIONS: [&str; 4] = ["nextval", "currval", "setval", "pg_sequence_last_value"];

/// True for a function whose first argument is a relation: in PostgreSQL its type is `regclass`.
pub fn takes_relation(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

/// The cast behind a relation's number.
const CAST: &str = "::regclass";

/// The text with another literal in the place of each name of a relation; `change` gives it, or leaves the name as it is.
fn changed(sql: &str, mut change: impl FnMut(&str) -> Result<Option<String>>) -> Result<String> {
    let mut shown = String::with_capacity(sql.len());
    let mut from = 0;
    for literal in literals(sql) {
        let is_cast = literal
            .cast_to
            .as_ref()
            .is_some_and(|(name, _)| name == "regclass");
        let is_argument = literal.is_whole_argument
            && literal
                .function
                .as_deref()
                .is_some_and(|name| FUNCTIONS.contains(&name));
        if !is_cast && !is_argument {
            continue;
        }
        let Some(name) = change(&literal.value)? else {
            continue;
        };
        shown.push_str(&sql[from..literal.bytes.start]);
        shown.push_str(&format!("'{}'{CAST}", name.replace('\'', "''")));
        from = match &literal.cast_to {
            Some((_, end)) => *end,
            None => literal.bytes.end,
        };
    }
    shown.push_str(&sql[from..]);
    Ok(shown)
}

/// The text with numbers in the place of names; `number` tells that of a name.
pub fn with_numbers(sql: &str, number: impl Fn(&str) -> Result<u32>) -> Result<String> {
    changed(sql, |name| {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let oid = || number(name).map(|oid| Some(oid.to_string()));
        if is_number { Ok(None) } else { oid() }
    })
}

/// The text with names in the place of numbers; a relation without a name keeps its number.
pub fn with_names(sql: &str, name: impl Fn(u32) -> Option<String>) -> String {
    if !sql.contains(CAST) {
        return sql.to_owned();
    }
    changed(sql, |number| Ok(number.parse().ok().and_then(&name))).unwrap_or_else(|_| sql.to_owned())
}

/// The text with other names; a name for which there is no other stays.
pub(crate) fn with_other_names(sql: &str, other: impl Fn(&str) -> Option<String>) -> String {
    if !sql.contains(CAST) {
        return sql.to_owned();
    }
    changed(sql, |name| Ok(other(name))).unwrap_or_else(|_| sql.to_owned())
}

/// The numbers of the relations in a text.
pub fn relations_in(sql: &str) -> Vec<u32> {
    let mut found = Vec::new();
    if sql.contains(CAST) {
        let note = |number: &str| {
            found.extend(number.parse::<u32>());
            Ok(None)
        };
        // It gives no error, so neither does the walk.
        let _ = changed(sql, note);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_and_names_again() {
        let number = |name: &str| Ok(if name == "public.s" { 7 } else { 9 });
        for (text, kept, numbers) in [
            ("nextval('s')", "nextval('9'::regclass)", vec![9]),
            (
                "nextval('public.s'::REGCLASS) + 1",
                "nextval('7'::regclass) + 1",
                vec![7],
            ),
            ("nextval('s'::text)", "nextval('s'::text)", vec![]),
            ("'nextval(''s'')'", "'nextval(''s'')'", vec![]),
            (
                "setval('s', 3) - lower('s')",
                "setval('9'::regclass, 3) - lower('s')",
                vec![9],
            ),
        ] {
            let found = with_numbers(text, number).unwrap();
            assert_eq!(found, kept);
            assert_eq!(relations_in(&found), numbers);
            assert_eq!(with_numbers(&found, number).unwrap(), kept);
        }
        let shown = with_names("nextval('7'::regclass)", |_| Some("it's".to_owned()));
        assert_eq!(shown, "nextval('it''s'::regclass)");
    }
}
