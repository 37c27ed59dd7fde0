//! From a message to syntax trees.
//!
//! The whole message is parsed before any of it runs, as in PostgreSQL: a syntax error in the third statement means the
//! first is not executed. SELECT, INSERT, UPDATE, DELETE, CREATE and ALTER go to sqlparser; everything else to
//! `utility`, ours. Errors carry their position in the message, counted in characters from 1.

mod assigned_parts;
mod children;
mod column_nulls;
mod conflict_select;
mod conflict_target;
mod current_of;
mod dialect;
mod fetch_first;
mod identity_options;
mod in_list;
mod long_insert;
mod long_value_parameters;
mod merge;
mod number_junk;
pub(crate) mod operator_any;
mod overriding;
mod quantified_values;
mod row_locks;
mod row_wildcards;
mod rows_from;
mod search_cycle;
mod set_columns;
mod set_operand;
mod special_call;
mod split;
mod string_forms;
mod typed_table;
mod unsupported;
mod using_alias;
pub(crate) mod utility;
mod window_frame;

pub(crate) use assigned_parts::SUBSCRIPTS_MARK;
pub(crate) use column_nulls::{has_nulls_not_distinct, is_nulls_not_distinct};
pub(crate) use conflict_select::conflict_select;
pub(crate) use conflict_target::conflict_target;
pub(crate) use current_of::current_of;
pub(crate) use dialect::{DISTINCT_MARK, VARIADIC};
use std::cell::OnceCell;
use std::sync::Arc;

use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::error::{EngineError, Result, SqlState};
use crate::explained::ExplainOptions;
use crate::lex::first_token;
use crate::plan::{ControlStatement, IntoTable};
use crate::stack::{self, Deep, NESTING_MAX, with_stack_for};
use dialect::Grammar;
pub(crate) use long_insert::Piece;
use long_insert::{Cut, cut};
pub(crate) use merge::DEFAULT_VALUES_MARK;
use number_junk::TRAILING_JUNK;
pub(crate) use overriding::{Overriding, overriding, overriding_in_merge};
pub(crate) use row_locks::lock_of;
pub(crate) use row_wildcards::is_all_fields;
pub(crate) use rows_from::ROWS_FROM;
pub(crate) use search_cycle::{Clauses, Cycle, with_clauses};
pub(crate) use set_columns::{is_of_update, set_columns};
use split::split;
pub(crate) use using_alias::using_alias;
use utility::create_table::LikeClause;
use utility::{AsRead, Copy, Name, NamedDefinition};
pub(crate) use window_frame::exclusion;

/// Texts of this length or less are not counted where memory is.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// The most memory of a byte of text while it is parsed and bound: tokens, syntax tree and plan at once. Measured were
/// 620 for `1+1+…`.
const BYTES_PER_BYTE: usize = 800;

/// The memory of a comma beside: an element of a list is as large as the largest of its kind. Measured were 1,350 for
/// each of the two bytes of `1,` in a long ORDER BY.
const BYTES_PER_COMMA: usize = 2_400;

/// The memory of a query beside, by the word it begins with. Measured were 1,730 for each of the nine bytes of `select
/// 1;`.
const BYTES_PER_SELECT: usize = 12_000;

/// The error of a statement that lacks something at its end.
const AT_END: &str = "syntax error at end of input";

/// The memory of a byte in a plan, and while rows are parsed and bound in pieces. Measured were 130 for rows of one
/// digit.
const PLAN_BYTES_PER_BYTE: usize = 160;

/// One statement of a message.
#[derive(Debug, Clone)]
pub struct ParsedStatement {
    /// Its text.
    pub text: Arc<str>,
    /// Number of characters of the message before it.
    pub(crate) offset: u32,
    pub(crate) tree: Tree,
    /// The rows of a long INSERT after the first, which are not in the tree.
    pub(crate) more_rows: Vec<Piece>,
}

/// A syntax tree: sqlparser's, or one that `utility` reads.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    /// SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER.
    Sql(Deep<ast::Statement>),
    /// A statement about the transaction, the session, or maintenance.
    Control(ControlStatement<AsRead>),
    /// TRUNCATE, DROP, and ALTER TABLE … SET (…).
    Definition(NamedDefinition),
    /// EXPLAIN, with the statement that it is about.
    Explain(Box<ParsedStatement>, ExplainOptions),
    /// COPY.
    Copy(Copy),
    /// CREATE TABLE with LIKE clauses or OF, which are not in its tree.
    CreateTable {
        tree: Deep<ast::Statement>,
        likes: Vec<LikeClause>,
        /// The type of a typed table, whose columns in the tree are those with options.
        of: Option<Name>,
    },
    /// CREATE TABLE … AS.
    CreateTableAs {
        into: Box<IntoTable>,
        query: Box<ParsedStatement>,
    },
}

/// Parses a message of any number of statements; blank ones vanish.
pub fn parse(sql: &str) -> Result<Vec<ParsedStatement>> {
    let mut characters = 0;
    let mut counted = 0;
    let ranges = split(sql);
    // A mistake in rows that are parsed when they are bound would come after statements before them have run.
    let alone = ranges.len() == 1;
    ranges
        .into_iter()
        .map(|range| {
            characters += sql[counted..range.start].chars().count();
            counted = range.start;
            let (text, rest) = sql[range.start..].split_at(range.len());
            let parsed = match alone.then(|| cut(text)).flatten() {
                Some(cut) => parse_cut(text, characters as u32, cut),
                None => parse_one(text, characters as u32),
            };
            match rest.starts_with(';') {
                true => parsed.map_err(|error| before_semicolon(error, characters + text.chars().count())),
                false => parsed,
            }
        })
        .collect()
}

/// Parses a long INSERT whose rows have been found: what is around them, and the first of them.
fn parse_cut(text: &str, offset: u32, cut: Cut) -> Result<ParsedStatement> {
    let fault = |error| syntax_error(error, text, offset);
    let tokens_of = |text| dialect::tokens(text).map_err(|error| fault(error.into()));
    let mut tokens = tokens_of(&text[..cut.first_row_end])?;
    let (before, tail) = text.split_at(cut.rows_end);
    let lines = before.matches('\n').count() as u64;
    let columns = before
        .chars()
        .rev()
        .take_while(|character| *character != '\n')
        .count() as u64;
    let moved = |place: Location| Location {
        line: place.line + lines,
        column: place.column + if place.line == 1 { columns } else { 0 },
    };
    tokens.extend(tokens_of(tail)?.into_iter().map(|mut token| {
        token.span.start = moved(token.span.start);
        token.span.end = moved(token.span.end);
        token
    }));
    let tree = parse_tokens(
        tokens,
        fault,
        |parser| parser.parse_statement(),
        |place| near(text, offset, Some(place)),
    )?;
    Ok(ParsedStatement {
        text: text.into(),
        offset,
        tree: Tree::Sql(tree),
        more_rows: cut.pieces,
    })
}

/// The memory that a text may take while it is parsed and bound; 0 for a short one, which is not counted.
pub fn memory_to_plan(text: &str) -> usize {
    if text.len() <= UNCOUNTED_BYTES {
        return 0;
    }
    if matches!(split(text).as_slice(), [range] if cut(&text[range.clone()]).is_some()) {
        return text.len() * PLAN_BYTES_PER_BYTE;
    }
    let bytes = text.as_bytes();
    let commas = bytes.iter().filter(|byte| **byte == b',').count();
    let selects = bytes
        .windows(6)
        .filter(|word| word.eq_ignore_ascii_case(b"select"))
        .count();
    bytes.len() * BYTES_PER_BYTE + commas * BYTES_PER_COMMA + selects * BYTES_PER_SELECT
}

/// The memory that the plan of a text may take; 0 for a short one.
pub fn memory_of_plan(text: &str) -> usize {
    match text.len() {
        ..=UNCOUNTED_BYTES => 0,
        length => length * PLAN_BYTES_PER_BYTE,
    }
}

/// Parses some rows of a long INSERT.
pub(crate) fn parse_rows(text: &str, offset: u32) -> Result<Deep<ast::Values>> {
    parse_whole(
        text,
        |error| syntax_error(error, text, offset),
        |parser| parser.parse_values(false, true),
        |place| near(text, offset, Some(place)),
    )
}

/// Parses the text of one statement that `offset` characters come before.
pub(crate) fn parse_one(text: &str, offset: u32) -> Result<ParsedStatement> {
    let tree = match utility::parse(text, offset)? {
        Some(tree) => tree,
        None => match unsupported::statement(text) {
            Some((error, start)) => {
                return Err(error.with_position(offset + text[..start].chars().count() as u32 + 1));
            }
            None => Tree::Sql(parse_sql(text, offset)?),
        },
    };
    Ok(ParsedStatement {
        text: text.into(),
        offset,
        tree,
        more_rows: Vec::new(),
    })
}

fn parse_sql(text: &str, offset: u32) -> Result<Deep<ast::Statement>> {
    parse_mended(text, offset, |_| ())
}

/// Parses a statement whose tokens are changed first.
fn parse_mended(
    text: &str,
    offset: u32,
    mend: impl FnOnce(&mut Vec<TokenWithSpan>),
) -> Result<Deep<ast::Statement>> {
    let fault = |error| syntax_error(error, text, offset);
    let mut tokens = dialect::tokens(text).map_err(|error| fault(error.into()))?;
    mend(&mut tokens);
    parse_tokens(
        tokens,
        fault,
        |parser| parser.parse_statement(),
        |place| near(text, offset, Some(place)),
    )
}

/// Parses all of a text by one rule of the grammar, on a stack that is large enough for the resulting tree.
fn parse_whole<T>(
    text: &str,
    fault: impl Fn(ParserError) -> EngineError,
    rule: impl Fn(&mut Parser<'_>) -> Result<T, ParserError>,
    left_over: impl FnOnce(Location) -> EngineError,
) -> Result<Deep<T>> {
    let tokens = dialect::tokens(text).map_err(|error| fault(error.into()))?;
    parse_tokens(tokens, fault, rule, left_over)
}

fn parse_tokens<T>(
    tokens: Vec<TokenWithSpan>,
    fault: impl Fn(ParserError) -> EngineError,
    rule: impl Fn(&mut Parser<'_>) -> Result<T, ParserError>,
    left_over: impl FnOnce(Location) -> EngineError,
) -> Result<Deep<T>> {
    let levels = stack::levels(&tokens)?;
    stack::require_for(levels)?;
    with_stack_for(levels, || {
        let parsed = |tokens: Vec<TokenWithSpan>| {
            let mut parser = Parser::new(&Grammar)
                .with_recursion_limit(NESTING_MAX)
                .with_tokens_with_locations(tokens);
            let tree = rule(&mut parser).map_err(&fault)?;
            Ok((tree, parser.peek_token()))
        };
        if let Some(tokens) = showable(&tokens) {
            parsed(tokens)?;
        }
        match parsed(tokens)? {
            (tree, next) if next.token == Token::EOF => Ok(Deep::new(tree, levels)),
            (_, next) => Err(left_over(next.span.start)),
        }
    })
}

/// The tokens with quotation marks for each mark that sqlparser cannot show: its errors show the token that they are at, and
/// it panics for a word with a quotation mark that it does not know. The marks that our own rules of the grammar look for
/// are of those that it knows, and stay; it takes all others for the same. `None`: there is no such mark.
fn showable(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_foreign = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => !matches!(word.quote_style, None | Some('"' | '[' | '`')),
        _ => false,
    };
    if !tokens.iter().any(is_foreign) {
        return None;
    }
    let mut tokens = tokens.to_vec();
    for token in &mut tokens {
        if is_foreign(token)
            && let Token::Word(word) = &mut token.token
        {
            word.quote_style = Some('"');
        }
    }
    Some(tokens)
}

/// Parses a text that is one expression (a column's default in the catalog, an EXECUTE argument).
pub(crate) fn parse_expression(text: &str, offset: u32) -> Result<Deep<ast::Expr>> {
    let fault = |error| syntax_error(error, text, offset);
    parse_whole(
        text,
        fault,
        |parser| parser.parse_expr(),
        |place| near(text, offset, Some(place)),
    )
}

impl ParsedStatement {
    /// CREATE TABLE … AS with the rows of a query, which is a statement of its own.
    pub fn create_table_as(into: IntoTable, query: ParsedStatement) -> ParsedStatement {
        ParsedStatement {
            text: Arc::clone(&query.text),
            offset: query.offset,
            tree: Tree::CreateTableAs {
                into: Box::new(into),
                query: Box::new(query),
            },
            more_rows: Vec::new(),
        }
    }

    /// True if it is accepted in a transaction that has failed: COMMIT, ROLLBACK and ROLLBACK TO only.
    pub fn ends_transaction(&self) -> bool {
        matches!(
            self.tree,
            Tree::Control(
                ControlStatement::Commit { .. }
                    | ControlStatement::Rollback { .. }
                    | ControlStatement::RollbackTo(_)
            )
        )
    }
}

/// The starts of a text's lines, for positions in it.
///
/// Binding asks for the position of every expression, so that an error can carry it. Counting the characters before it
/// each time would make binding quadratic in the length of the text; here they are counted once, and only if the text
/// has a second line.
#[derive(Debug, Default)]
pub(crate) struct Lines(OnceCell<Vec<u32>>);

impl Lines {
    /// Number of characters of `text` before a line and column (both from 1).
    pub(crate) fn characters_before(&self, text: &str, location: Location) -> Option<u32> {
        let column = (location.column as u32).saturating_sub(1);
        match location.line {
            0 => None,
            1 => Some(column),
            line => {
                let starts = self.0.get_or_init(|| line_starts(text));
                let start = starts.get(line as usize - 1).or(starts.last())?;
                Some(start + column)
            }
        }
    }
}

fn line_starts(text: &str) -> Vec<u32> {
    let mut starts = vec![0];
    let mut characters = 0;
    for line in text.split_inclusive('\n') {
        characters += line.chars().count() as u32;
        starts.push(characters);
    }
    starts
}

fn character_of(text: &str, location: Location) -> Option<u32> {
    Lines::default().characters_before(text, location)
}

/// sqlparser's errors as PostgreSQL words them: `syntax error at or near "x"`. PostgreSQL's say no more, and applications
/// compare what they get and show all of it.
fn syntax_error(error: ParserError, text: &str, offset: u32) -> EngineError {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return stack::too_deep();
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
    if what.starts_with(TRAILING_JUNK) {
        let error = EngineError::new(SqlState::SYNTAX_ERROR, what);
        let characters = location.and_then(|location| character_of(text, location));
        return error.or_position(characters.map(|characters| offset + characters + 1));
    }
    near(text, offset, location)
}

fn near(text: &str, offset: u32, location: Option<Location>) -> EngineError {
    let characters = location.and_then(|location| character_of(text, location));
    let stopped = characters.and_then(|characters| text.char_indices().nth(characters as usize));
    let rest = stopped.map_or("", |(byte, _)| &text[byte..]);
    if let Some((byte, _)) = stopped
        && let Some((error, start)) = unsupported::construct(text, byte)
    {
        return error.with_position(offset + text[..start].chars().count() as u32 + 1);
    }
    match first_token(rest) {
        Some(token) => EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("syntax error at or near \"{token}\""),
        )
        .with_position(offset + characters.unwrap_or(0) + 1),
        None => EngineError::new(SqlState::SYNTAX_ERROR, AT_END)
            .with_position(offset + text.trim_end().chars().count() as u32 + 1),
    }
}

/// The error of a statement that a semicolon ends: where the statement lacks something at its end, the semicolon is what
/// stands there instead.
fn before_semicolon(error: EngineError, characters: usize) -> EngineError {
    match error.message() == AT_END {
        true => EngineError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \";\"")
            .with_position(characters as u32 + 1),
        false => error,
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
        let error = parse("select 'é'; select 1 + ; select").unwrap_err();
        assert_eq!(error.message(), "syntax error at or near \";\"");
        assert_eq!((error.position(), error.hint()), (Some(24), None));
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
            SqlState::STATEMENT_TOO_COMPLEX
        );
    }

    /// The marks of the tokens never come into an error, and never end the parser.
    #[test]
    fn errors_at_marked_words_are_told() {
        for sql in [
            "update t set where current of c",
            "update t set a = 1, where current of c",
            "update t set a = f(1 where current of c",
            "delete t, where current of c",
            "alter table t add references key on delete set null (a)",
            "insert into t values (1) on conflict () where id > 3 do nothing",
            "insert into t values (1) on conflict () do nothing",
            "select between symmetric 1",
            "select 1 from rows from (f(1)) rows from",
            "select count(distinct *) filter over (rows)",
        ] {
            let error = parse(sql).expect_err(sql);
            let is_told =
                [SqlState::SYNTAX_ERROR, SqlState::FEATURE_NOT_SUPPORTED].contains(&error.sqlstate());
            assert!(is_told, "{sql}: {}", error.message());
            let shown = error.message().chars().all(|c| !c.is_control() && c != '`');
            assert!(shown, "{sql}: {}", error.message());
        }
    }
}
