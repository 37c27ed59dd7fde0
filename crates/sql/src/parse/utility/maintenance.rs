//! VACUUM, ANALYZE and REINDEX.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::AsRead;
use crate::parse::utility::Name;
use crate::parse::utility::reader::Reader;
use crate::plan::{ControlStatement, MaintainedTable, ReindexAsRead, ReindexKind};

impl Reader<'_> {
    pub(super) fn vacuum(&mut self) -> Result<ControlStatement<AsRead>> {
        let full = || EngineError::not_supported("VACUUM FULL");
        let (mut analyze, mut verbose) = (false, false);
        if self.eat_symbol('(') {
            loop {
                let (option, position) = self.identifier()?;
                let on = self.switch();
                match option.as_str() {
                    "analyze" | "analyse" => analyze = on,
                    "verbose" => verbose = on,
                    "full" if on => return Err(full().with_position(position)),
                    "full"
                    | "freeze"
                    | "disable_page_skipping"
                    | "skip_locked"
                    | "index_cleanup"
                    | "process_toast"
                    | "truncate"
                    | "parallel" => {}
                    _ => return Err(unrecognized("VACUUM", &option, position)),
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
            verbose = self.eat("verbose");
            analyze = self.eat("analyze") || self.eat("analyse");
        }
        let tables = self.optional_tables()?;
        if !analyze && tables.iter().any(|table| table.columns.is_some()) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "ANALYZE option must be specified when a column list is provided",
            ));
        }
        Ok(ControlStatement::Vacuum {
            tables,
            analyze,
            verbose,
        })
    }

    /// The value of an option that is on or off.
    fn switch(&mut self) -> bool {
        let on = match self.peek() {
            Some(Kind::Word(word)) => matches!(word.as_str(), "true" | "on" | "auto"),
            Some(Kind::Number(number)) => number != "0",
            _ => return true,
        };
        self.at += 1;
        on
    }

    fn optional_tables(&mut self) -> Result<Vec<MaintainedTable<AsRead>>> {
        if self.at == self.tokens.len() {
            return Ok(Vec::new());
        }
        let mut tables = Vec::new();
        loop {
            let table = self.name()?;
            let mut columns = None;
            if self.eat_symbol('(') {
                let names: &mut Vec<String> = columns.insert(Vec::new());
                loop {
                    names.push(self.identifier()?.0);
                    if !self.eat_symbol(',') {
                        break;
                    }
                }
                self.expect_symbol(')')?;
            }
            tables.push(MaintainedTable { table, columns });
            if !self.eat_symbol(',') {
                return Ok(tables);
            }
        }
    }

    pub(super) fn reindex(&mut self) -> Result<ReindexAsRead<Name>> {
        let (mut concurrently, mut verbose) = (false, false);
        if self.eat_symbol('(') {
            loop {
                let (option, position) = self.identifier()?;
                match option.as_str() {
                    "verbose" => verbose = self.switch(),
                    "concurrently" => concurrently = self.switch(),
                    "tablespace" => {
                        return Err(
                            EngineError::not_supported("REINDEX (TABLESPACE …)").with_position(position)
                        );
                    }
                    _ => return Err(unrecognized("REINDEX", &option, position)),
                }
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        }
        let kinds = [
            ("index", ReindexKind::Index),
            ("table", ReindexKind::Table),
            ("schema", ReindexKind::Schema),
            ("database", ReindexKind::Database),
            ("system", ReindexKind::System),
        ];
        let found = kinds.into_iter().find(|(word, _)| self.eat(word));
        let (_, kind) = found.ok_or_else(|| self.syntax_error())?;
        concurrently |= self.eat("concurrently");
        Ok(ReindexAsRead {
            kind,
            name: self.name()?,
            verbose,
            concurrently,
        })
    }

    pub(super) fn analyze(&mut self) -> Result<ControlStatement<AsRead>> {
        let mut verbose = false;
        if self.eat_symbol('(') {
            loop {
                let (option, position) = self.identifier()?;
                let on = self.switch();
                match option.as_str() {
                    "verbose" => verbose = on,
                    // A lock is waited for all the same.
                    "skip_locked" => {}
                    _ => return Err(unrecognized("ANALYZE", &option, position)),
                }
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        } else {
            verbose = self.eat("verbose");
        }
        Ok(ControlStatement::Analyze {
            tables: self.optional_tables()?,
            verbose,
        })
    }
}

fn unrecognized(statement: &str, option: &str, position: u32) -> EngineError {
    EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!("unrecognized {statement} option \"{option}\""),
    )
    .with_position(position)
}
