//! VACUUM and ANALYZE.

use crate::error::{EngineError, Result, SqlState};
use crate::parse::lex::Kind;
use crate::parse::utility::AsRead;
use crate::parse::utility::reader::{Name, Reader};
use crate::plan::ControlStatement;

impl Reader<'_> {
    pub(super) fn vacuum(&mut self) -> Result<ControlStatement<AsRead>> {
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
        Ok(ControlStatement::Vacuum {
            tables: self.optional_tables()?,
            analyze,
        })
    }

    pub(super) fn optional_tables(&mut self) -> Result<Vec<Name>> {
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

    pub(super) fn analyze(&mut self) -> Result<ControlStatement<AsRead>> {
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
        Ok(ControlStatement::Analyze {
            tables: self.optional_tables()?,
        })
    }
}
