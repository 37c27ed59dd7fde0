//! VACUUM, ANALYZE and REINDEX.

use crate::error::{EngineError, Result, SqlState};
use crate::parse::utility::AsRead;
use crate::parse::utility::Name;
use crate::parse::utility::options::UtilityOption;
use crate::parse::utility::reader::Reader;
use crate::plan::{ControlStatement, MaintainedTable, ReindexAsRead, ReindexKind};

impl Reader<'_> {
    pub(super) fn vacuum(&mut self) -> Result<ControlStatement<AsRead>> {
        let full = || EngineError::not_supported("VACUUM FULL");
        let (mut analyze, mut verbose) = (false, false);
        let options = self.utility_options()?;
        for option in &options {
            match option.name.as_str() {
                "analyze" | "analyse" => analyze = option.is_on()?,
                "verbose" => verbose = option.is_on()?,
                "full" if option.is_on()? => return Err(full().with_position(option.position)),
                "full" | "index_cleanup" | "parallel" => {}
                "freeze" | "disable_page_skipping" | "skip_locked" | "process_toast" | "truncate" => {
                    let _ = option.is_on()?;
                }
                _ => return Err(unrecognized("VACUUM", option)),
            }
        }
        if options.is_empty() {
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
        for option in self.utility_options()? {
            match option.name.as_str() {
                "verbose" => verbose = option.is_on()?,
                "concurrently" => concurrently = option.is_on()?,
                "tablespace" => {
                    let refused = EngineError::not_supported("REINDEX (TABLESPACE …)");
                    return Err(refused.with_position(option.position));
                }
                _ => return Err(unrecognized("REINDEX", &option)),
            }
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
        let options = self.utility_options()?;
        for option in &options {
            match option.name.as_str() {
                "verbose" => verbose = option.is_on()?,
                // A lock is waited for all the same.
                "skip_locked" => {
                    let _ = option.is_on()?;
                }
                _ => return Err(unrecognized("ANALYZE", option)),
            }
        }
        if options.is_empty() {
            verbose = self.eat("verbose");
        }
        Ok(ControlStatement::Analyze {
            tables: self.optional_tables()?,
            verbose,
        })
    }
}

fn unrecognized(statement: &str, option: &UtilityOption) -> EngineError {
    EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!("unrecognized {statement} option \"{}\"", option.name),
    )
    .with_position(option.position)
}
