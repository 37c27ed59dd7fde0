//! The statements that are not queries, read by ourselves.
//!
//! sqlparser knows many dialects' forms of these and not all of PostgreSQL's; their grammar is small, so a lexer and a
//! page of matching give exactly what PostgreSQL accepts and a 0A000 for the rest. Nothing here looks into a catalog.

mod copy;

use std::cell::Cell;

use sqlparser::ast;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::parse::lex::{Kind, Token, lex};
use crate::sql::parse::unsupported;
use crate::sql::parse::{ParsedStatement, parse_expression, parse_one};
use crate::sql::plan::{CopyOptions, IsolationLevel, TransactionModes};
use crate::sql::stack::Deep;

/// A table's or index's name as written, with its position in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub schema: Option<String>,
    pub name: String,
    pub position: u32,
}

/// A utility statement.
#[derive(Debug, Clone)]
pub(crate) enum Utility {
    Begin(TransactionModes),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    Reset(Option<String>),
    Show(String),
    ShowAll,
    Vacuum {
        tables: Vec<Name>,
        analyze: bool,
    },
    Analyze {
        tables: Vec<Name>,
    },
    Checkpoint,
    Truncate {
        tables: Vec<Name>,
        restart_identity: bool,
    },
    DropTable {
        tables: Vec<Name>,
        if_exists: bool,
    },
    DropIndex {
        indexes: Vec<Name>,
        if_exists: bool,
        concurrently: bool,
    },
    SetFillfactor {
        table: Name,
        fillfactor: u8,
    },
    Explain(Box<ParsedStatement>),
    Prepare {
        name: String,
        types: Vec<String>,
        sql: String,
    },
    Execute {
        name: String,
        arguments: Option<Deep<Vec<ast::Expr>>>,
    },
    Deallocate(Option<String>),
    DiscardAll,
    Copy(Copy),
    /// SET CONSTRAINTS; no names are all.
    SetConstraints(Vec<Name>),
    NoOperation(&'static str),
}

/// COPY as written.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub from: bool,
    pub source: CopySource,
    pub options: CopyOptions,
}

#[derive(Debug, Clone)]
pub(crate) enum CopySource {
    Table { table: Name, columns: Option<Vec<Name>> },
    Query(Box<ParsedStatement>),
}

/// Reads a utility statement; `None` when the text is not one.
pub(crate) fn parse(text: &str, offset: u32) -> Result<Option<Utility>> {
    let head = lex(text, 6);
    let words: Vec<&str> = head
        .iter()
        .map(|token| match &token.kind {
            Kind::Word(word) => word.as_str(),
            _ => "",
        })
        .collect();
    let ours = match words.first().copied().unwrap_or("") {
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "set" | "reset" | "show" | "vacuum"
        | "analyze" | "analyse" | "checkpoint" | "truncate" | "drop" | "explain" | "prepare" | "execute"
        | "deallocate" | "discard" | "copy" | "savepoint" | "release" | "declare" | "fetch" | "move"
        | "close" | "lock" | "listen" | "notify" | "unlisten" | "grant" | "revoke" | "comment"
        | "cluster" | "reindex" | "do" | "call" | "load" | "reassign" | "security" | "refresh" | "import" => {
            true
        }
        // ALTER TABLE t SET (…) alone; the rest of ALTER is sqlparser's.
        "alter" => words.get(1) == Some(&"table") && text.to_ascii_lowercase().contains("fillfactor"),
        _ => false,
    };
    if !ours {
        return Ok(None);
    }
    let tokens = lex(text, usize::MAX);
    let mut reader = Reader {
        text,
        offset,
        tokens,
        at: 0,
        counted: Cell::new((0, 0)),
    };
    let utility = reader
        .statement()
        .and_then(|utility| reader.expect_end().map(|()| utility))
        .map_err(|error| match reader.tokens.get(reader.at.saturating_sub(1)) {
            // What is not supported is the word that has just been read.
            Some(token) => error.or_position(Some(reader.position_of(token.start))),
            None => error,
        })?;
    Ok(Some(utility))
}

struct Reader<'a> {
    text: &'a str,
    offset: u32,
    tokens: Vec<Token>,
    at: usize,
    /// A byte of the text, and how many characters come before it: the place asked for last. Places are asked for from
    /// front to back, so the text is counted once.
    counted: Cell<(usize, u32)>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn peek_word(&self) -> &str {
        match self.peek() {
            Some(Kind::Word(word)) => word,
            _ => "",
        }
    }

    /// Goes past these words, if they come next.
    fn eat(&mut self, words: &str) -> bool {
        let found = self.begins(words);
        if found {
            self.at += words.split(' ').count();
        }
        found
    }

    /// Whether these words come next.
    fn begins(&self, words: &str) -> bool {
        let mut here = self.tokens[self.at..].iter();
        words.split(' ').all(
            |wanted| matches!(here.next().map(|token| &token.kind), Some(Kind::Word(word)) if word == wanted),
        )
    }

    fn eat_symbol(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(&Kind::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, words: &str) -> Result<()> {
        if self.eat(words) {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.eat_symbol(symbol) {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    fn expect_end(&self) -> Result<()> {
        if self.at == self.tokens.len() {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    fn position_of(&self, byte: usize) -> u32 {
        let (mut from, mut characters) = self.counted.get();
        if byte < from {
            (from, characters) = (0, 0);
        }
        characters += self.text[from..byte].chars().count() as u32;
        self.counted.set((byte, characters));
        self.offset + characters + 1
    }

    fn syntax_error(&self) -> EngineError {
        match self.tokens.get(self.at) {
            Some(token) => EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "syntax error at or near \"{}\"",
                    &self.text[token.start..token.end]
                ),
            )
            .with_position(self.position_of(token.start)),
            None => EngineError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input")
                .with_position(self.position_of(self.text.trim_end().len())),
        }
    }

    /// Refuses what is no query (or change of rows) as what PREPARE, EXPLAIN or COPY hold. So these do not nest, and a
    /// prepared statement cannot execute itself.
    fn expect_query(&self) -> Result<()> {
        if matches!(self.peek_word(), "create" | "declare" | "refresh") {
            let statement = self.peek_word().to_uppercase();
            let position = self
                .tokens
                .get(self.at)
                .map(|token| self.position_of(token.start));
            return Err(
                EngineError::not_supported(format!("{statement} within another statement"))
                    .or_position(position),
            );
        }
        let begins = matches!(
            self.peek_word(),
            "select" | "insert" | "update" | "delete" | "merge" | "values" | "with" | "table"
        );
        if begins || self.peek() == Some(&Kind::Symbol('(')) {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    /// The text from the next token to the end, which is taken as read, and how many characters come before it.
    fn rest(&mut self) -> (String, u32) {
        let start = self
            .tokens
            .get(self.at)
            .map_or(self.text.len(), |token| token.start);
        // They are not needed any more, and a long text has many.
        self.tokens = Vec::new();
        self.at = 0;
        (self.text[start..].to_owned(), self.position_of(start) - 1)
    }

    fn identifier(&mut self) -> Result<(String, u32)> {
        let token = self.tokens.get(self.at).ok_or_else(|| self.syntax_error())?;
        let position = self.position_of(token.start);
        let name = match &token.kind {
            Kind::Word(word) => word.clone(),
            Kind::Quoted(name) => name.clone(),
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok((name, position))
    }

    fn name(&mut self) -> Result<Name> {
        let (name, position) = self.identifier()?;
        if !self.eat_symbol('.') {
            return Ok(Name {
                schema: None,
                name,
                position,
            });
        }
        let (inner, _) = self.identifier()?;
        Ok(Name {
            schema: Some(name),
            name: inner,
            position,
        })
    }

    fn names(&mut self) -> Result<Vec<Name>> {
        let mut names = vec![self.name()?];
        while self.eat_symbol(',') {
            names.push(self.name()?);
        }
        Ok(names)
    }

    fn statement(&mut self) -> Result<Utility> {
        let (verb, _) = self.identifier()?;
        match verb.as_str() {
            "begin" => {
                let _ = self.eat("transaction") || self.eat("work");
                Ok(Utility::Begin(self.transaction_modes(false)?))
            }
            "start" => {
                self.expect("transaction")?;
                Ok(Utility::Begin(self.transaction_modes(true)?))
            }
            "commit" | "end" => {
                if self.peek_word() == "prepared" {
                    return Err(EngineError::not_supported("COMMIT PREPARED"));
                }
                Ok(Utility::Commit { chain: self.chain()? })
            }
            "rollback" | "abort" => {
                if self.peek_word() == "prepared" {
                    return Err(EngineError::not_supported("ROLLBACK PREPARED"));
                }
                let chain = self.chain()?;
                if self.peek_word() == "to" {
                    return Err(EngineError::not_supported("ROLLBACK TO SAVEPOINT"));
                }
                Ok(Utility::Rollback { chain })
            }
            "set" => self.set(),
            "reset" => {
                if self.eat("all") {
                    return Ok(Utility::Reset(None));
                }
                Ok(Utility::Reset(Some(self.setting_name()?)))
            }
            "show" => {
                if self.eat("all") {
                    return Ok(Utility::ShowAll);
                }
                Ok(Utility::Show(self.setting_name()?))
            }
            "vacuum" => self.vacuum(),
            "analyze" | "analyse" => {
                if self.eat_symbol('(') {
                    while !self.eat_symbol(')') {
                        if !matches!(
                            self.peek_word(),
                            "verbose" | "skip_locked" | "true" | "false" | "on" | "off"
                        ) && self.peek() != Some(&Kind::Symbol(','))
                        {
                            return Err(self.syntax_error());
                        }
                        self.at += 1;
                    }
                }
                let _ = self.eat("verbose");
                Ok(Utility::Analyze {
                    tables: self.optional_tables()?,
                })
            }
            "checkpoint" => Ok(Utility::Checkpoint),
            "truncate" => {
                let _ = self.eat("table");
                let _ = self.eat("only");
                let tables = self.names()?;
                let restart_identity = self.eat("restart identity");
                let _ = restart_identity || self.eat("continue identity");
                if self.eat("cascade") || self.eat("restrict") {
                    // Nothing refers to a table here, so both mean the same.
                }
                Ok(Utility::Truncate {
                    tables,
                    restart_identity,
                })
            }
            "drop" => self.drop(),
            "alter" => {
                self.expect("table")?;
                let _ = self.eat("only");
                let table = self.name()?;
                if self.eat("reset") {
                    return Err(EngineError::not_supported("ALTER TABLE … RESET"));
                }
                self.expect("set")?;
                let fillfactor = self.fillfactor()?;
                Ok(Utility::SetFillfactor { table, fillfactor })
            }
            "explain" => self.explain(),
            "prepare" => {
                if self.eat("transaction") {
                    return Err(EngineError::not_supported("PREPARE TRANSACTION"));
                }
                let (name, _) = self.identifier()?;
                let mut types = Vec::new();
                if self.eat_symbol('(') {
                    let mut from = self
                        .tokens
                        .get(self.at)
                        .map_or(self.text.len(), |token| token.start);
                    let mut depth = 0;
                    loop {
                        let token = self
                            .tokens
                            .get(self.at)
                            .cloned()
                            .ok_or_else(|| self.syntax_error())?;
                        self.at += 1;
                        match token.kind {
                            Kind::Symbol('(') => depth += 1,
                            Kind::Symbol(')') if depth > 0 => depth -= 1,
                            Kind::Symbol(',' | ')') if depth == 0 => {
                                types.push(self.text[from..token.start].trim().to_owned());
                                from = token.end;
                                if token.kind == Kind::Symbol(')') {
                                    break;
                                }
                            }
                            _ => {}
                        }
                    }
                }
                self.expect("as")?;
                self.expect_query()?;
                let (sql, _) = self.rest();
                Ok(Utility::Prepare { name, types, sql })
            }
            "execute" => {
                let (name, _) = self.identifier()?;
                let mut arguments = None;
                if self.peek() == Some(&Kind::Symbol('(')) {
                    let (text, offset) = self.rest();
                    // A row of expressions is itself an expression: (a), (a, b).
                    let row = parse_expression(&text, offset)?.try_map(|row| match row {
                        ast::Expr::Nested(one) => Ok(vec![*one]),
                        ast::Expr::Tuple(all) => Ok(all),
                        _ => Err(self.syntax_error()),
                    })?;
                    arguments = Some(row);
                }
                Ok(Utility::Execute { name, arguments })
            }
            "deallocate" => {
                let _ = self.eat("prepare");
                if self.eat("all") {
                    return Ok(Utility::Deallocate(None));
                }
                Ok(Utility::Deallocate(Some(self.identifier()?.0)))
            }
            "discard" => {
                if self.eat("all") {
                    return Ok(Utility::DiscardAll);
                }
                let (what, _) = self.identifier()?;
                match what.as_str() {
                    "plans" => Ok(Utility::NoOperation("DISCARD PLANS")),
                    "temp" | "temporary" => Ok(Utility::NoOperation("DISCARD TEMP")),
                    "sequences" => Ok(Utility::NoOperation("DISCARD SEQUENCES")),
                    _ => Err(EngineError::not_supported(format!(
                        "DISCARD {}",
                        what.to_uppercase()
                    ))),
                }
            }
            "copy" => self.copy(),
            "savepoint" | "release" => Err(EngineError::not_supported("SAVEPOINT")),
            // Pools send these two when a connection is given back. There is nothing to close and nothing listened to.
            "close" if self.eat("all") => Ok(Utility::NoOperation("CLOSE CURSOR ALL")),
            "unlisten" => {
                if !self.eat_symbol('*') {
                    self.identifier()?;
                }
                Ok(Utility::NoOperation("UNLISTEN"))
            }
            "declare" | "fetch" | "move" | "close" => {
                Err(EngineError::are_not_supported("cursors (DECLARE, FETCH, CLOSE)"))
            }
            other => Err(EngineError::not_supported(other.to_uppercase())),
        }
    }

    fn chain(&mut self) -> Result<bool> {
        let _ = self.eat("transaction") || self.eat("work");
        if self.eat("and no chain") {
            return Ok(false);
        }
        Ok(self.eat("and chain"))
    }

    fn transaction_modes(&mut self, start_keyword: bool) -> Result<TransactionModes> {
        let mut modes = TransactionModes {
            start_keyword,
            ..TransactionModes::default()
        };
        loop {
            if self.eat("isolation level") {
                modes.isolation = Some(if self.eat("read committed") || self.eat("read uncommitted") {
                    IsolationLevel::ReadCommitted
                } else if self.eat("repeatable read") {
                    IsolationLevel::RepeatableRead
                } else if self.eat("serializable") {
                    return Err(serializable());
                } else {
                    return Err(self.syntax_error());
                });
            } else if self.eat("read only") {
                modes.read_only = Some(true);
            } else if self.eat("read write") {
                modes.read_only = Some(false);
            } else if !(self.eat("not deferrable") || self.eat("deferrable")) {
                return Ok(modes);
            }
            let _ = self.eat_symbol(',');
        }
    }

    fn setting_name(&mut self) -> Result<String> {
        if self.eat("time zone") {
            return Ok("timezone".to_owned());
        }
        if self.eat("transaction isolation level") {
            return Ok("transaction_isolation".to_owned());
        }
        if self.eat("session authorization") {
            return Ok("session_authorization".to_owned());
        }
        if self.eat("xml option") {
            return Ok("xmloption".to_owned());
        }
        let (mut name, _) = self.identifier()?;
        while self.eat_symbol('.') {
            name = format!("{name}.{}", self.identifier()?.0);
        }
        Ok(name.to_lowercase())
    }

    fn set(&mut self) -> Result<Utility> {
        if self.eat("session characteristics as transaction") {
            return Ok(Utility::SetTransaction {
                modes: self.transaction_modes(false)?,
                session: true,
            });
        }
        if self.eat("transaction") {
            if self.peek_word() == "snapshot" {
                return Err(EngineError::not_supported("SET TRANSACTION SNAPSHOT"));
            }
            return Ok(Utility::SetTransaction {
                modes: self.transaction_modes(false)?,
                session: false,
            });
        }
        if self.eat("constraints") {
            let names = if self.eat("all") {
                Vec::new()
            } else {
                self.names()?
            };
            if !(self.eat("deferred") || self.eat("immediate")) {
                return Err(self.syntax_error());
            }
            return Ok(Utility::SetConstraints(names));
        }
        let local = self.eat("local");
        let _ = local || !self.begins("session authorization") && self.eat("session");
        if self.eat("session authorization") || self.eat("role") {
            return Err(EngineError::not_supported("SET ROLE"));
        }
        let name = if self.eat("names") {
            "client_encoding".to_owned()
        } else {
            self.setting_name()?
        };
        let bare_value = matches!(name.as_str(), "timezone" | "client_encoding" | "xmloption");
        if !(self.eat_symbol('=') || self.eat("to") || bare_value) {
            return Err(self.syntax_error());
        }
        if self.eat("default") {
            return Ok(Utility::Set {
                name,
                value: None,
                local,
            });
        }
        if name == "timezone" && self.eat("interval") {
            return self.zone_by_interval(local);
        }
        let is_isolation = matches!(
            name.as_str(),
            "transaction_isolation" | "default_transaction_isolation"
        );
        let mut values = Vec::new();
        loop {
            let negative = self.eat_symbol('-');
            let Some(kind) = self.peek().cloned() else {
                return Err(self.syntax_error());
            };
            self.at += 1;
            values.push(match kind {
                Kind::Word(text) | Kind::Quoted(text) | Kind::Text(text) if !negative => text,
                Kind::Number(text) => format!("{}{text}", if negative { "-" } else { "" }),
                _ => {
                    self.at -= 1;
                    return Err(self.syntax_error());
                }
            });
            if is_isolation
                && values
                    .last()
                    .is_some_and(|value| value.eq_ignore_ascii_case("serializable"))
            {
                return Err(serializable());
            }
            if !self.eat_symbol(',') {
                break;
            }
        }
        Ok(Utility::Set {
            name,
            value: Some(values.join(", ")),
            local,
        })
    }

    /// `SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE`, after its INTERVAL.
    fn zone_by_interval(&mut self, local: bool) -> Result<Utility> {
        let Some(Kind::Text(offset)) = self.peek().cloned() else {
            return Err(self.syntax_error());
        };
        self.at += 1;
        let _ = self.eat("hour to minute") || self.eat("hour");
        Ok(Utility::Set {
            name: "timezone".to_owned(),
            value: Some(offset),
            local,
        })
    }

    fn vacuum(&mut self) -> Result<Utility> {
        let full = || EngineError::not_supported("VACUUM FULL");
        let mut analyze = false;
        if self.eat_symbol('(') {
            loop {
                let (option, position) = self.identifier()?;
                let on = match self.peek() {
                    Some(Kind::Word(word)) => {
                        let on = matches!(word.as_str(), "true" | "on" | "auto");
                        self.at += 1;
                        on
                    }
                    Some(Kind::Number(number)) => {
                        let on = number != "0";
                        self.at += 1;
                        on
                    }
                    _ => true,
                };
                match option.as_str() {
                    "analyze" | "analyse" => analyze = on,
                    "full" if on => return Err(full().with_position(position)),
                    "full"
                    | "verbose"
                    | "freeze"
                    | "disable_page_skipping"
                    | "skip_locked"
                    | "index_cleanup"
                    | "process_toast"
                    | "truncate"
                    | "parallel" => {}
                    _ => {
                        return Err(EngineError::new(
                            SqlState::SYNTAX_ERROR,
                            format!("unrecognized VACUUM option \"{option}\""),
                        ));
                    }
                }
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        } else {
            if self.eat("full") {
                return Err(full());
            }
            let _ = self.eat("freeze");
            let _ = self.eat("verbose");
            analyze = self.eat("analyze") || self.eat("analyse");
        }
        Ok(Utility::Vacuum {
            tables: self.optional_tables()?,
            analyze,
        })
    }

    fn optional_tables(&mut self) -> Result<Vec<Name>> {
        if self.at == self.tokens.len() {
            return Ok(Vec::new());
        }
        let mut tables = Vec::new();
        loop {
            tables.push(self.name()?);
            // A list of columns limits ANALYZE only; we look at all.
            if self.eat_symbol('(') {
                while !self.eat_symbol(')') {
                    let _ = self.identifier()?;
                    let _ = self.eat_symbol(',');
                }
            }
            if !self.eat_symbol(',') {
                return Ok(tables);
            }
        }
    }

    fn drop(&mut self) -> Result<Utility> {
        let (what, _) = self.identifier()?;
        if !matches!(what.as_str(), "table" | "index") {
            return Err(EngineError::not_supported(format!(
                "DROP {}",
                unsupported::object_named_by(&self.tokens[self.at - 1..]).to_uppercase()
            )));
        }
        let concurrently = what == "index" && self.eat("concurrently");
        let if_exists = self.eat("if exists");
        let names = self.names()?;
        let _ = self.eat("cascade") || self.eat("restrict");
        Ok(match what.as_str() {
            "table" => Utility::DropTable {
                tables: names,
                if_exists,
            },
            _ => Utility::DropIndex {
                indexes: names,
                if_exists,
                concurrently,
            },
        })
    }

    fn fillfactor(&mut self) -> Result<u8> {
        self.expect_symbol('(')?;
        self.expect("fillfactor")?;
        self.expect_symbol('=')?;
        let Some(Kind::Number(number)) = self.peek().cloned() else {
            return Err(self.syntax_error());
        };
        self.at += 1;
        self.expect_symbol(')')?;
        check_fillfactor(&number)
    }

    fn explain(&mut self) -> Result<Utility> {
        if self.eat_symbol('(') {
            loop {
                let (option, _) = self.identifier()?;
                let value = match self.peek().cloned() {
                    Some(Kind::Word(word)) => {
                        self.at += 1;
                        word
                    }
                    _ => "true".to_owned(),
                };
                let off = matches!(value.as_str(), "false" | "off");
                match option.as_str() {
                    "analyze" | "analyse" | "buffers" | "wal" | "timing" if !off => {
                        return Err(EngineError::not_supported(format!(
                            "EXPLAIN ({})",
                            option.to_uppercase()
                        )));
                    }
                    "format" if value != "text" => {
                        return Err(EngineError::not_supported(format!(
                            "EXPLAIN (FORMAT {})",
                            value.to_uppercase()
                        )));
                    }
                    _ => {}
                }
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        } else {
            if self.eat("analyze") || self.eat("analyse") {
                return Err(EngineError::not_supported("EXPLAIN ANALYZE"));
            }
            let _ = self.eat("verbose");
        }
        if self.peek_word() != "execute" {
            self.expect_query()?;
        }
        let (text, offset) = self.rest();
        Ok(Utility::Explain(Box::new(parse_one(&text, offset)?)))
    }
}

/// SERIALIZABLE is refused: what we would give instead allows write skew.
pub(crate) fn serializable() -> EngineError {
    EngineError::not_supported("isolation level SERIALIZABLE")
        .with_hint("REPEATABLE READ is snapshot isolation.")
}

/// Checks a fillfactor as written.
pub(crate) fn check_fillfactor(text: &str) -> Result<u8> {
    text.parse::<u8>()
        .ok()
        .filter(|value| (10..=100).contains(value))
        .ok_or_else(|| {
            EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("value {text} out of bounds for option \"fillfactor\""),
            )
            .with_detail("Valid values are between \"10\" and \"100\".")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Utility {
        parse(sql, 0).unwrap().expect("a utility statement")
    }

    #[test]
    fn what_pgbench_sends() {
        assert!(matches!(read("vacuum analyze pgbench_accounts"),
            Utility::Vacuum { tables, analyze: true, .. } if tables[0].name == "pgbench_accounts"));
        assert!(matches!(read("checkpoint"), Utility::Checkpoint));
        for sql in [
            "copy pgbench_accounts from stdin with (freeze on)",
            "copy pgbench_accounts from stdin with freeze",
        ] {
            assert!(
                matches!(read(sql), Utility::Copy(Copy { from: true, options, .. }) if options.freeze),
                "{sql}"
            );
        }
        assert!(matches!(read("copy pgbench_accounts from stdin"),
            Utility::Copy(Copy { from: true, options, .. }) if !options.freeze));
        assert!(
            matches!(read("truncate table a, b,c"), Utility::Truncate { tables, .. } if tables.len() == 3)
        );
        assert!(
            matches!(read("drop table if exists pgbench_accounts, pgbench_branches"),
            Utility::DropTable { tables, if_exists: true } if tables.len() == 2)
        );
        assert!(matches!(
            read("END;".trim_end_matches(';')),
            Utility::Commit { chain: false }
        ));
    }

    #[test]
    fn settings() {
        assert!(matches!(read("SET synchronous_commit TO off"),
            Utility::Set { name, value: Some(value), local: false } if name == "synchronous_commit" && value == "off"));
        assert!(matches!(read("set local a.b = 'x', y"),
            Utility::Set { name, value: Some(value), local: true } if name == "a.b" && value == "x, y"));
        assert!(matches!(read("set time zone 'UTC'"), Utility::Set { name, .. } if name == "timezone"));
        assert!(matches!(
            read("set x = default"),
            Utility::Set { value: None, .. }
        ));
        assert!(
            matches!(read("set transaction isolation level repeatable read, read only"),
            Utility::SetTransaction { modes, session: false }
            if modes.isolation == Some(IsolationLevel::RepeatableRead) && modes.read_only == Some(true))
        );
        assert!(
            matches!(read("show transaction isolation level"), Utility::Show(name) if name == "transaction_isolation")
        );
    }

    #[test]
    fn errors_name_the_place_or_the_construct() {
        let error = |sql: &str| parse(sql, 0).unwrap_err();
        assert_eq!(error("drop table").message(), "syntax error at end of input");
        assert_eq!(error("vacuum t t").position(), Some(10));
        assert_eq!(error("savepoint a").sqlstate(), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(
            error("explain analyze select 1").sqlstate(),
            SqlState::FEATURE_NOT_SUPPORTED
        );
        assert_eq!(
            error("copy t from '/etc/passwd'").sqlstate(),
            SqlState::FEATURE_NOT_SUPPORTED
        );
    }

    #[test]
    fn prepare_and_execute() {
        assert!(matches!(read("prepare p (int, numeric(10, 2)) as select $1"),
            Utility::Prepare { name, types, sql }
            if name == "p" && types == ["int", "numeric(10, 2)"] && sql == "select $1"));
        assert!(
            matches!(read("execute p (1, 'a')"), Utility::Execute { arguments: Some(row), .. } if row.len() == 2)
        );
        assert!(
            matches!(read("execute p (1)"), Utility::Execute { arguments: Some(row), .. } if row.len() == 1)
        );
        assert!(matches!(
            read("execute p"),
            Utility::Execute { arguments: None, .. }
        ));
    }
}
