//! COPY: its source and its options, in the parenthesised form and the older one without.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::{Copy, CopyCondition, CopySource, ForceClause, Reader};
use crate::parse::{parse_expression, parse_one};
use crate::plan::{CopyFormat, CopyOptions, ForcedColumns};

impl Reader<'_> {
    pub(super) fn copy(&mut self) -> Result<Copy> {
        // The oldest form: COPY BINARY t FROM …
        let mut before = None;
        let named = self.tokens.get(self.at + 1).map(|token| &token.kind);
        if self.peek_word() == "binary"
            && matches!(named, Some(Kind::Word(word)) if !matches!(word.as_str(), "from" | "to"))
        {
            self.at += 1;
            before = Some(CopyFormat::Binary);
        }
        let source = if self.eat_symbol('(') {
            self.expect_query()?;
            let start = self
                .tokens
                .get(self.at)
                .map_or(self.text.len(), |token| token.start);
            let mut depth = 1;
            loop {
                let token = self
                    .tokens
                    .get(self.at)
                    .cloned()
                    .ok_or_else(|| self.syntax_error())?;
                self.at += 1;
                match token.kind {
                    Kind::Symbol('(') => depth += 1,
                    Kind::Symbol(')') => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    let query = parse_one(&self.text[start..token.start], self.position_of(start) - 1)?;
                    break CopySource::Query(Box::new(query));
                }
            }
        } else {
            let table = self.name()?;
            let columns = match self.eat_symbol('(') {
                true => {
                    let names = self.names()?;
                    self.expect_symbol(')')?;
                    Some(names)
                }
                false => None,
            };
            CopySource::Table { table, columns }
        };
        let from = self.eat("from");
        if !from {
            self.expect("to")?;
        }
        // Either word means the client, in both directions.
        let served = self.eat("stdin") || self.eat("stdout");
        if !served {
            return Err(EngineError::not_supported(if from {
                "COPY from a file or program on the server"
            } else {
                "COPY to a file or program on the server"
            }));
        }
        let (options, forced) = self.copy_options(before)?;
        check_forced(&forced, options.format, from)?;
        let is_table = matches!(source, CopySource::Table { .. });
        let condition = match is_table && self.peek_word() == "where" {
            true => Some(self.copy_condition(from)?),
            false => None,
        };
        Ok(Copy {
            from,
            source,
            options,
            forced,
            condition,
        })
    }

    /// WHERE with its condition, which ends the statement.
    fn copy_condition(&mut self, from: bool) -> Result<CopyCondition> {
        if !from {
            let start = self
                .tokens
                .get(self.at)
                .map(|token| self.position_of(token.start));
            return Err(
                EngineError::new(SqlState::SYNTAX_ERROR, "WHERE clause not allowed with COPY TO")
                    .or_position(start),
            );
        }
        self.expect("where")?;
        if self.at == self.tokens.len() {
            return Err(self.syntax_error());
        }
        let (text, offset) = self.rest();
        let tree = parse_expression(&text, offset)?;
        Ok(CopyCondition { text, offset, tree })
    }

    /// The options; `before`: a format that stands in front of them.
    fn copy_options(&mut self, before: Option<CopyFormat>) -> Result<(CopyOptions, [ForceClause; 3])> {
        let mut forced = [const { ForceClause::Absent }; 3];
        let mut format = before.unwrap_or(CopyFormat::Text);
        let (mut delimiter, mut null, mut quote, mut escape) = (None, None, None, None);
        let (mut header, mut matches, mut freeze) = (false, false, false);
        // The oldest form of the delimiter is in front of WITH.
        if self.eat("using") {
            self.expect("delimiters")?;
            delimiter = Some(self.copy_byte("delimiter")?);
        }
        let _ = self.eat("with");
        let listed = self.eat_symbol('(');
        let mut seen: Vec<String> = Vec::new();
        while self.at < self.tokens.len() && !(listed && self.eat_symbol(')')) {
            if !listed && self.peek_word() == "where" {
                break;
            }
            let at = self.at;
            let (option, _) = self.identifier()?;
            if seen.contains(&option) {
                return Err(
                    EngineError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
                        .or_position(self.tokens.get(at).map(|token| self.position_of(token.start))),
                );
            }
            seen.push(option.clone());
            match option.as_str() {
                "format" if listed => {
                    let name = self.copy_word()?;
                    format = self.copy_format(&name)?;
                }
                "csv" | "binary" if !listed => format = self.copy_format(&option)?,
                "freeze" => freeze = self.copy_switch("freeze", listed)?,
                "header" => {
                    let value = match self.peek() {
                        Some(Kind::Word(word) | Kind::Text(word)) => word.to_lowercase(),
                        _ => String::new(),
                    };
                    matches = listed && value == "match";
                    if matches {
                        self.at += 1;
                    }
                    header = matches || self.copy_switch("header", listed)?;
                }
                "delimiter" | "delimiters" => delimiter = Some(self.copy_byte("delimiter")?),
                "null" => {
                    let _ = self.eat("as");
                    null = Some(self.copy_text()?);
                }
                "quote" => quote = Some(self.copy_byte("quote")?),
                "escape" => escape = Some(self.copy_byte("escape")?),
                "encoding" => {
                    let name = self.copy_text()?;
                    if !matches!(name.to_lowercase().as_str(), "utf8" | "utf-8" | "unicode") {
                        return Err(EngineError::not_supported(format!("COPY … ENCODING '{name}'")));
                    }
                }
                "force_quote" if listed => forced[0] = self.forced_columns(listed, true)?,
                "force_not_null" if listed => forced[1] = self.forced_columns(listed, false)?,
                "force_null" if listed => forced[2] = self.forced_columns(listed, false)?,
                "force" if !listed => {
                    // Several clauses begin with this word.
                    seen.pop();
                    let which = match (self.eat("quote"), self.eat("not")) {
                        (true, _) => 0,
                        (false, not) => {
                            self.expect("null")?;
                            if not { 1 } else { 2 }
                        }
                    };
                    forced[which] = self.forced_columns(listed, which == 0)?;
                }
                _ if listed => {
                    return Err(EngineError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("option \"{option}\" not recognized"),
                    )
                    .or_position(self.tokens.get(at).map(|token| self.position_of(token.start))));
                }
                _ => {
                    self.at -= 1;
                    return Err(self.syntax_error());
                }
            }
            if listed && self.peek() != Some(&Kind::Symbol(')')) {
                self.expect_symbol(',')?;
            }
        }
        let csv = format == CopyFormat::Csv;
        if format == CopyFormat::Binary {
            let refused =
                |code, option| EngineError::new(code, format!("cannot specify {option} in BINARY mode"));
            if delimiter.is_some() {
                return Err(refused(SqlState::SYNTAX_ERROR, "DELIMITER"));
            }
            if null.is_some() {
                return Err(refused(SqlState::SYNTAX_ERROR, "NULL"));
            }
            if header {
                return Err(refused(SqlState::FEATURE_NOT_SUPPORTED, "HEADER"));
            }
        }
        if !csv && (quote.is_some() || escape.is_some()) {
            let option = if quote.is_some() { "quote" } else { "escape" };
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("COPY {option} available only in CSV mode"),
            ));
        }
        let quote = quote.unwrap_or(b'"');
        let options = CopyOptions {
            format,
            delimiter: delimiter.unwrap_or(if csv { b',' } else { b'\t' }),
            null: null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_owned() }),
            header,
            matches,
            quote,
            escape: escape.unwrap_or(quote),
            freeze,
            forced: ForcedColumns::default(),
        };
        check_marks(&options)?;
        Ok((options, forced))
    }

    /// The columns of a clause of FORCE; `or_all`: or `*`.
    fn forced_columns(&mut self, listed: bool, or_all: bool) -> Result<ForceClause> {
        if or_all && self.eat_symbol('*') {
            return Ok(ForceClause::All);
        }
        if listed {
            self.expect_symbol('(')?;
        }
        let names = self.names()?;
        if listed {
            self.expect_symbol(')')?;
        }
        Ok(ForceClause::Columns(
            names.into_iter().map(|name| name.name).collect(),
        ))
    }

    fn copy_format(&self, name: &str) -> Result<CopyFormat> {
        match name {
            "text" => Ok(CopyFormat::Text),
            "csv" => Ok(CopyFormat::Csv),
            "binary" => Ok(CopyFormat::Binary),
            other => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("COPY format \"{other}\" not recognized"),
            )),
        }
    }

    /// A word, which may be in quotes of either kind.
    fn copy_word(&mut self) -> Result<String> {
        match self.peek() {
            Some(Kind::Text(_)) => self.copy_text(),
            _ => self.identifier().map(|(name, _)| name),
        }
    }

    /// The value of an option that is on or off; on, if there is none.
    fn copy_switch(&mut self, option: &str, listed: bool) -> Result<bool> {
        let value = match self.peek() {
            Some(Kind::Word(word) | Kind::Text(word) | Kind::Number(word)) if listed => word.to_lowercase(),
            _ => return Ok(true),
        };
        self.at += 1;
        match value.as_str() {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => {
                let also = if option == "header" { " or \"match\"" } else { "" };
                Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("{option} requires a Boolean value{also}"),
                ))
            }
        }
    }

    fn copy_text(&mut self) -> Result<String> {
        let Some(Kind::Text(text)) = self.peek().cloned() else {
            return Err(self.syntax_error());
        };
        self.at += 1;
        Ok(text)
    }

    fn copy_byte(&mut self, what: &str) -> Result<u8> {
        let _ = self.eat("as");
        let text = self.copy_text()?;
        match text.as_bytes() {
            [byte] if !matches!(byte, b'\n' | b'\r') => Ok(*byte),
            _ => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("COPY {what} must be a single one-byte character"),
            )),
        }
    }
}

/// The clauses of FORCE, as errors name them.
pub(crate) const FORCES: [&str; 3] = ["force quote", "force not null", "force null"];

/// 0A000 for a clause of FORCE in another format than CSV, or in the other direction.
fn check_forced(forced: &[ForceClause; 3], format: CopyFormat, from: bool) -> Result<()> {
    for (which, name) in FORCES.iter().enumerate() {
        if forced[which] == ForceClause::Absent {
            continue;
        }
        let only_from = which > 0;
        let message = match (format, only_from == from) {
            (CopyFormat::Csv, true) => continue,
            (CopyFormat::Csv, false) => {
                let direction = if only_from { "FROM" } else { "TO" };
                format!("COPY {name} only available using COPY {direction}")
            }
            _ => format!("COPY {name} available only in CSV mode"),
        };
        return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(())
}

/// The characters that tell a row's parts from each other must differ: what COPY writes must be read as it was.
fn check_marks(options: &CopyOptions) -> Result<()> {
    let CopyOptions {
        delimiter,
        null,
        quote,
        ..
    } = options;
    let csv = options.format == CopyFormat::Csv;
    let (code, message) = if null.contains(['\n', '\r']) {
        (
            SqlState::INVALID_PARAMETER_VALUE,
            "COPY null representation cannot use newline or carriage return".to_owned(),
        )
    } else if !csv
        && (b"\\.".contains(delimiter) || delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit())
    {
        let delimiter = char::from(*delimiter);
        (
            SqlState::INVALID_PARAMETER_VALUE,
            format!("COPY delimiter cannot be \"{delimiter}\""),
        )
    } else if csv && delimiter == quote {
        (
            SqlState::INVALID_PARAMETER_VALUE,
            "COPY delimiter and quote must be different".to_owned(),
        )
    } else if null.as_bytes().contains(delimiter) {
        (
            SqlState::FEATURE_NOT_SUPPORTED,
            "COPY delimiter must not appear in the NULL specification".to_owned(),
        )
    } else if csv && null.as_bytes().contains(quote) {
        (
            SqlState::FEATURE_NOT_SUPPORTED,
            "CSV quote character must not appear in the NULL specification".to_owned(),
        )
    } else {
        return Ok(());
    };
    Err(EngineError::new(code, message))
}
