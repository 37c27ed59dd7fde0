//! The statements inside CREATE SCHEMA.
//!
//! Each is planned when those before it have run, with the new schema in front of the session's path, so that a name
//! without a schema is one of the new schema. An error in one of them undoes the schema too, as it does in any statement.

use std::sync::Arc;

use crate::definition::NewSchema;
use crate::output::{Notice, NoticesOnly, Output};
use crate::session::Session;
use crate::session::prepared::{Prepared, View};
use crate::session::run::Request;
use clearway_sql::error::{EngineError, Result};

impl Session {
    /// Runs the statements of CREATE SCHEMA, whose schema is there.
    pub(super) fn run_schema_elements(
        &mut self,
        schema: &NewSchema,
        elements: &[String],
        out: &mut dyn Output,
    ) -> Result<()> {
        if !schema.is_own {
            // They would have to run as the other role.
            return Err(EngineError::not_supported(
                "CREATE SCHEMA of another role with other statements in it",
            ));
        }
        let path = Arc::new(self.settings.search_path.behind(&schema.name));
        let before = self.settings.search(path);
        // The statement around these has a tag of its own.
        let mut out = NoticesOnly(|notice: &Notice| out.notice(notice));
        let ran = elements
            .iter()
            .try_for_each(|element| self.run_schema_element(element, &mut out));
        self.settings.search(before);
        ran.map_err(EngineError::without_position)
    }

    fn run_schema_element(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        let parsed = clearway_sql::parse(text)?.pop();
        let state = self.txn.catalog_state();
        let view = View {
            state: &state,
            viewer: self.viewer(),
        };
        let prepared = Prepared::new(text.into(), parsed, &[], view, &self.interrupts, None)?;
        let request = Request {
            describe: false,
            max_rows: 0,
        };
        self.run_inner(&Arc::new(prepared), &[], request, out, false)
            .map(|_| ())
    }
}
