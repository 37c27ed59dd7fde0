//! Names and texts in quotes: `quote_ident`, `quote_literal`, `quote_nullable`.

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::error::{EngineError, Result};
use crate::value::DataType::Text;
use crate::value::Value;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        1282,
        "quote_ident",
        &[Text],
        Text,
        Pure(|x| of_text(x, quote_identifier)),
    ),
    row(
        1283,
        "quote_literal",
        &[Text],
        Text,
        Pure(|x| of_text(x, quote_literal)),
    ),
    row(1289, "quote_nullable", &[Text], Text, Pure(nullable)).called_on_null(),
];

fn of_text(arguments: &[Value], quote: fn(&str) -> String) -> Result<Value> {
    match arguments[0].as_str() {
        Some(text) => Ok(Value::text(quote(text))),
        None => Err(EngineError::internal("a text to be quoted is none")),
    }
}

fn nullable(arguments: &[Value]) -> Result<Value> {
    match arguments[0].is_null() {
        true => Ok(Value::from("NULL")),
        false => of_text(arguments, quote_literal),
    }
}

/// The words that are no names without quotes, sorted.
const KEYWORDS: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// A name as a statement writes it: in quotes if it would be read otherwise without.
pub fn quote_identifier(name: &str) -> String {
    let mut characters = name.chars();
    let is_plain = characters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && characters.all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_');
    if is_plain && KEYWORDS.binary_search(&name).is_err() {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a statement writes it.
pub(crate) fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        return format!("E'{}'", quoted.replace('\\', "\\\\"));
    }
    format!("'{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert!(KEYWORDS.is_sorted());
        for (name, written) in [
            ("id", "id"),
            ("_a1", "_a1"),
            ("Id", "\"Id\""),
            ("1a", "\"1a\""),
            ("", "\"\""),
            ("a$b", "\"a$b\""),
            ("order", "\"order\""),
            ("name", "name"),
            ("a\"b", "\"a\"\"b\""),
            ("é", "\"é\""),
        ] {
            assert_eq!(quote_identifier(name), written);
        }
    }

    #[test]
    fn texts_are_quoted_as_in_postgresql() {
        for (text, written) in [
            ("a", "'a'"),
            ("it's", "'it''s'"),
            ("a\\b", "E'a\\\\b'"),
            ("", "''"),
        ] {
            assert_eq!(quote_literal(text), written);
        }
    }
}
