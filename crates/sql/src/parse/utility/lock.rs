//! LOCK TABLE.

use crate::error::Result;
use crate::parse::utility::AsRead;
use crate::parse::utility::reader::Reader;
use crate::plan::{ControlStatement, TableLockMode};

impl Reader<'_> {
    /// `LOCK [TABLE] [ONLY] name [*] [, …] [IN mode MODE] [NOWAIT]`, after its first word.
    pub(super) fn lock(&mut self) -> Result<ControlStatement<AsRead>> {
        let _ = self.eat("table");
        let mut tables = Vec::new();
        loop {
            let _ = self.eat("only");
            tables.push(self.name()?);
            // No table has others under it.
            let _ = self.eat_symbol('*');
            if !self.eat_symbol(',') {
                break;
            }
        }
        let mut mode = TableLockMode::AccessExclusive;
        if self.eat("in") {
            let found = TableLockMode::WORDS.iter().find(|(words, _)| self.eat(words));
            mode = found.ok_or_else(|| self.syntax_error())?.1;
            self.expect("mode")?;
        }
        let no_wait = self.eat("nowait");
        Ok(ControlStatement::Lock {
            tables,
            mode,
            no_wait,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Tree;
    use crate::parse::utility::parse;

    fn mode_of(sql: &str) -> (usize, TableLockMode, bool) {
        match parse(sql, 0) {
            Ok(Some(Tree::Control(ControlStatement::Lock {
                tables,
                mode,
                no_wait,
            }))) => (tables.len(), mode, no_wait),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn each_mode_by_its_words() {
        assert_eq!(mode_of("lock t"), (1, TableLockMode::AccessExclusive, false));
        assert_eq!(
            mode_of("lock table only a *, s.b nowait"),
            (2, TableLockMode::AccessExclusive, true)
        );
        for (words, mode) in TableLockMode::WORDS {
            assert_eq!(
                mode_of(&format!("lock table t in {words} mode")),
                (1, mode, false)
            );
        }
        let error = parse("lock table t in share", 0).unwrap_err();
        assert_eq!(error.message(), "syntax error at end of input");
        let error = parse("lock table t in total mode", 0).unwrap_err();
        assert_eq!(error.message(), "syntax error at or near \"total\"");
    }
}
