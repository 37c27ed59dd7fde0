//! The simple protocol: a text of any number of statements, run as one implicit transaction.

use std::sync::Arc;

use crate::output::Output;
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::session::run::Request;
use crate::session::text_cache::LookedUpIn;
use clearway_sql as sql;
use clearway_sql::error::{EngineError, Result};

impl Session {
    /// Runs all statements in `sql`, as one implicit transaction unless they say otherwise.
    pub fn execute_simple(&mut self, sql: &str, out: &mut dyn Output) -> Result<(), EngineError> {
        self.begin_call();
        // Those that a reload has changed: before a text is read by them.
        self.tell_settings(out)?;
        let ran = self.run_simple(sql, out);
        self.client_places = None;
        self.end_call();
        ran
    }

    fn run_simple(&mut self, sql: &str, out: &mut dyn Output) -> Result<()> {
        let request = Request {
            describe: true,
            max_rows: 0,
        };
        self.among_others = false;
        let version = self.txn.catalog_version();
        // Kept texts are written out: where backslashes escape, one that looks like this one may mean something else.
        let keeps_texts = !self.settings.strings.plain_escapes;
        if keeps_texts && let Some(prepared) = self.texts.get(sql, version, &self.settings.planning) {
            return self.run_last(&prepared, request, out);
        }
        let whole: Arc<str> = sql.into();
        self.begin_statement(&whole);
        let whole = match self.written_out(&whole, out) {
            Ok(whole) => whole,
            Err(error) => return Err(self.fail(error)),
        };
        // Held to the end: the syntax trees of all statements, and the plan of the one that runs.
        let _memory = match self.engine.planning_memory.reserve(&whole) {
            Ok(memory) => memory,
            Err(error) => return Err(self.fail(error)),
        };
        let statements = match sql::parse(&whole) {
            Ok(statements) => statements,
            Err(error) => return Err(self.fail(error)),
        };
        let count = statements.len();
        if count == 0 {
            self.begun = false;
            self.went_idle();
            return out.empty();
        }
        self.among_others = count > 1;
        for (number, parsed) in statements.into_iter().enumerate() {
            let text = if count == 1 {
                Arc::clone(&whole)
            } else {
                Arc::clone(&parsed.text)
            };
            if number > 0 {
                self.begin_statement(&text);
            }
            // Before binding: what is kept may be for older definitions than it was bound with, and never for newer ones.
            let looked_up_in = LookedUpIn {
                version: self.txn.catalog_version(),
                planning: Arc::clone(&self.settings.planning),
            };
            let prepared = Arc::new(self.bind(text, Some(parsed), &[], None)?.in_simple_query());
            if number + 1 < count {
                self.run(&prepared, &[], request, out, false)?;
            } else {
                self.run_last(&prepared, request, out)?;
            }
            if count == 1 && keeps_texts {
                self.texts.offer(&prepared, looked_up_in);
            }
        }
        Ok(())
    }

    /// Runs the last statement of a simple query: its implicit transaction is committed before it is complete.
    pub(super) fn run_last(
        &mut self,
        prepared: &Arc<Prepared>,
        request: Request,
        out: &mut dyn Output,
    ) -> Result<()> {
        self.run(prepared, &[], request, out, true)?;
        self.went_idle();
        Ok(())
    }

    /// Forgets the plans of the simple protocol.
    pub(crate) fn forget_texts(&mut self) {
        self.texts.clear();
    }
}
