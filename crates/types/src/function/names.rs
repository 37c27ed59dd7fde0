//! Names of relations in texts, as `regclass` and its kin read them.

use crate::catalog_facts::{CatalogFacts, no_relation};
use crate::error::{EngineError, Result, SqlState};
use crate::value::Value;

/// The parts of a name with dots: each in lower case, or as it stands in quotes.
pub fn parts_of_name(text: &str) -> Result<Vec<String>> {
    let invalid = || EngineError::new(SqlState::from_code("42602"), "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let part;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut characters = quoted.char_indices();
            let mut end = None;
            while let Some((at, character)) = characters.next() {
                match character {
                    '"' if quoted[at + 1..].starts_with('"') => {
                        name.push('"');
                        characters.next();
                    }
                    '"' => {
                        end = Some(at + 1);
                        break;
                    }
                    other => name.push(other),
                }
            }
            rest = &quoted[end.ok_or_else(invalid)?..];
            part = name;
        } else {
            let end = rest
                .find(|c: char| c == '.' || c.is_whitespace())
                .unwrap_or(rest.len());
            part = rest[..end].to_lowercase();
            rest = &rest[end..];
        }
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// Schema and name of a relation in a text; the database before them must be the one there is.
fn schema_and_name(text: &str) -> Result<(Option<String>, String)> {
    let mut parts = parts_of_name(text)?;
    let name = parts.pop().unwrap_or_default();
    let schema = parts.pop();
    if parts.len() > 1 {
        return Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper relation name (too many dotted names): {text}"),
        ));
    }
    Ok((schema, name))
}

/// The number of the relation that a text names; 42P01 if there is none.
pub(super) fn relation_named(text: &str, catalog: &dyn CatalogFacts) -> Result<u32> {
    let (schema, name) = schema_and_name(text)?;
    catalog.relation_oid(schema.as_deref(), &name).ok_or_else(|| {
        no_relation(&match schema {
            Some(schema) => format!("{schema}.{name}"),
            None => name,
        })
    })
}

/// The number of the relation that an argument is: a number, or a name.
pub(super) fn relation_argument(value: &Value, catalog: &dyn CatalogFacts) -> Result<u32> {
    match value {
        Value::Oid(oid) => Ok(*oid),
        Value::Text(name) => relation_named(name, catalog),
        other => Err(EngineError::internal(format!("a relation's number is {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_quotes() {
        for (text, parts) in [
            ("t", vec!["t"]),
            (" Public . T ", vec!["public", "t"]),
            ("\"A b\".\"c\"\"d\"", vec!["A b", "c\"d"]),
        ] {
            assert_eq!(parts_of_name(text).unwrap(), parts);
        }
        for text in ["", "a b", ".a", "a.", "\"a", "\"\""] {
            assert_eq!(
                parts_of_name(text).unwrap_err().sqlstate().as_str(),
                "42602",
                "{text}"
            );
        }
    }
}
