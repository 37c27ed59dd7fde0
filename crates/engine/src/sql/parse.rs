//! From a message to syntax trees.
//!
//! The whole message is parsed before any of it runs, as in PostgreSQL: a syntax error in the third statement means the
//! first is not executed. SELECT, INSERT, UPDATE, DELETE, CREATE and ALTER go to sqlparser; everything else to
//! `utility`, ours. Errors carry their position in the message, counted in characters from 1.

use std::sync::Arc;

use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span};

use crate::error::{EngineError, Result, SqlState};
use crate::sql::lex::first_token;
use crate::sql::split::split;
use crate::sql::utility::{self, Utility};

/// How deep expressions may nest.
const RECURSION_LIMIT: usize = 100;

/// One statement of a message.
#[derive(Debug, Clone)]
pub struct ParsedStatement {
    /// Its text.
    pub text: Arc<str>,
    /// How many characters of the message come before it.
    pub(crate) offset: u32,
    pub(crate) tree: Tree,
}

/// A syntax tree.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    /// sqlparser's.
    Sql(Box<ast::Statement>),
    /// Ours.
    Utility(Box<Utility>),
}

/// Parses a message of any number of statements; blank ones vanish.
pub fn parse(sql: &str) -> Result<Vec<ParsedStatement>> {
    let mut characters = 0;
    let mut counted = 0;
    split(sql)
        .into_iter()
        .map(|range| {
            characters += sql[counted..range.start].chars().count();
            counted = range.start;
            parse_one(&sql[range], characters as u32)
        })
        .collect()
}

/// Parses the text of one statement that `offset` characters come before.
pub(crate) fn parse_one(text: &str, offset: u32) -> Result<ParsedStatement> {
    let tree = match utility::parse(text, offset)? {
        Some(utility) => Tree::Utility(Box::new(utility)),
        None => Tree::Sql(Box::new(parse_sql(text, offset)?)),
    };
    Ok(ParsedStatement {
        text: text.into(),
        offset,
        tree,
    })
}

fn parse_sql(text: &str, offset: u32) -> Result<ast::Statement> {
    let fault = |error| refused_construct(text).unwrap_or_else(|| syntax_error(error, text, offset));
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(RECURSION_LIMIT)
        .try_with_sql(text)
        .map_err(fault)?;
    let statement = parser.parse_statement().map_err(fault)?;
    let next = parser.peek_token();
    match next.token {
        sqlparser::tokenizer::Token::EOF => Ok(statement),
        _ => Err(refused_construct(text).unwrap_or_else(|| near(text, offset, Some(next.span.start), None))),
    }
}

/// SQL that PostgreSQL takes and sqlparser does not: it is not a syntax error but something we do not do.
fn refused_construct(text: &str) -> Option<EngineError> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let constructs = ["for no key update", "for key share"];
    constructs.into_iter().find_map(|construct| {
        let wanted: Vec<&str> = construct.split(' ').collect();
        let found = words
            .windows(wanted.len())
            .any(|window| window.iter().zip(&wanted).all(|(a, b)| a == b));
        found.then(|| EngineError::not_supported(construct.to_uppercase()))
    })
}

/// Parses a text that is one expression (a column's default in the catalog, an EXECUTE argument).
pub(crate) fn parse_expression(text: &str, offset: u32) -> Result<ast::Expr> {
    let fault = |error| syntax_error(error, text, offset);
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(RECURSION_LIMIT)
        .try_with_sql(text)
        .map_err(fault)?;
    let expression = parser.parse_expr().map_err(fault)?;
    let next = parser.peek_token();
    match next.token {
        sqlparser::tokenizer::Token::EOF => Ok(expression),
        _ => Err(near(text, offset, Some(next.span.start), None)),
    }
}

impl ParsedStatement {
    /// The position in the message of a place in the syntax tree.
    pub(crate) fn position(&self, span: Span) -> Option<u32> {
        let characters = character_of(&self.text, span.start)?;
        Some(self.offset + characters + 1)
    }

    /// The text an EXPLAIN or PREPARE wraps, if this is one.
    pub(crate) fn utility(&self) -> Option<&Utility> {
        match &self.tree {
            Tree::Utility(utility) => Some(utility),
            Tree::Sql(_) => None,
        }
    }

    /// Whether it is accepted in a transaction that has failed: COMMIT and ROLLBACK only.
    pub fn ends_transaction(&self) -> bool {
        matches!(
            self.utility(),
            Some(Utility::Commit { .. } | Utility::Rollback { .. })
        )
    }
}

/// How many characters come before a line and column (both from 1).
fn character_of(text: &str, location: Location) -> Option<u32> {
    if location.line == 0 {
        return None;
    }
    let mut characters = 0u64;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number as u64 + 1 == location.line {
            return Some((characters + location.column - 1) as u32);
        }
        characters += line.chars().count() as u64;
    }
    Some(characters as u32)
}

/// sqlparser's errors as PostgreSQL words them: `syntax error at or near "x"`, with what was expected as the detail.
fn syntax_error(error: ParserError, text: &str, offset: u32) -> EngineError {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "the statement is nested too deeply",
            );
        }
    };
    let (what, location) = match message.rsplit_once(" at Line: ") {
        Some((what, place)) => {
            let mut numbers = place
                .split(", Column: ")
                .map(|part| part.trim().parse::<u64>().ok());
            let location = match (numbers.next().flatten(), numbers.next().flatten()) {
                (Some(line), Some(column)) => Some(Location { line, column }),
                _ => None,
            };
            (what.to_owned(), location)
        }
        None => (message, None),
    };
    near(text, offset, location, Some(what))
}

fn near(text: &str, offset: u32, location: Option<Location>, detail: Option<String>) -> EngineError {
    let characters = location.and_then(|location| character_of(text, location));
    let rest: String = match characters {
        Some(characters) => text.chars().skip(characters as usize).collect(),
        None => String::new(),
    };
    let error = match first_token(&rest) {
        Some(token) => EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("syntax error at or near \"{token}\""),
        )
        .with_position(offset + characters.unwrap_or(0) + 1),
        None => EngineError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input")
            .with_position(offset + text.trim_end().chars().count() as u32 + 1),
    };
    match detail {
        Some(detail) => error.with_detail(detail),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_their_position_in_the_message() {
        let error = parse("select 1; select * fro m t").unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::SYNTAX_ERROR);
        assert!(
            error.position().is_some_and(|position| position > 10),
            "{error:?}"
        );
        let error = parse("select 'é', +").unwrap_err();
        assert_eq!(error.message(), "syntax error at end of input");
        let error = parse("selec 1").unwrap_err();
        assert_eq!(error.message(), "syntax error at or near \"selec\"");
        assert_eq!(error.position(), Some(1));
        let error = parse("select 1 frm t").unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::SYNTAX_ERROR);
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        let sql = format!("select {}1{}", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(
            parse(&sql).unwrap_err().sqlstate(),
            SqlState::PROGRAM_LIMIT_EXCEEDED
        );
    }
}
