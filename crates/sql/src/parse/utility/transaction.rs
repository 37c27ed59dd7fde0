//! The options of BEGIN, COMMIT, ROLLBACK and SET TRANSACTION, and the names of savepoints.

use crate::error::Result;
use crate::parse::utility::reader::Reader;
use crate::plan::{IsolationLevel, TransactionModes};

impl Reader<'_> {
    pub(super) fn chain(&mut self) -> Result<bool> {
        let _ = self.eat("transaction") || self.eat("work");
        if self.eat("and no chain") {
            return Ok(false);
        }
        Ok(self.eat("and chain"))
    }

    /// The name of a savepoint, after RELEASE or TO.
    pub(super) fn savepoint(&mut self) -> Result<String> {
        // Alone the word is a name.
        if self.begins("savepoint") && self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        Ok(self.identifier()?.0)
    }

    /// The name of the savepoint to go back to, after ROLLBACK; `None` if TO does not follow.
    pub(super) fn rollback_to(&mut self) -> Result<Option<String>> {
        let before = self.at;
        let _ = self.eat("transaction") || self.eat("work");
        if self.eat("to") {
            return self.savepoint().map(Some);
        }
        self.at = before;
        Ok(None)
    }

    pub(super) fn transaction_modes(&mut self, start_keyword: bool) -> Result<TransactionModes> {
        let mut modes = TransactionModes {
            start_keyword,
            ..TransactionModes::default()
        };
        loop {
            if self.eat("isolation level") {
                modes.isolation = Some(if self.eat("read committed") {
                    IsolationLevel::ReadCommitted
                } else if self.eat("read uncommitted") {
                    IsolationLevel::ReadUncommitted
                } else if self.eat("repeatable read") {
                    IsolationLevel::RepeatableRead
                } else if self.eat("serializable") {
                    IsolationLevel::Serializable
                } else {
                    return Err(self.syntax_error());
                });
            } else if self.eat("read only") {
                modes.read_only = Some(true);
            } else if self.eat("read write") {
                modes.read_only = Some(false);
            } else if self.eat("not deferrable") {
                modes.deferrable = Some(false);
            } else if self.eat("deferrable") {
                modes.deferrable = Some(true);
            } else {
                return Ok(modes);
            }
            let _ = self.eat_symbol(',');
        }
    }
}
