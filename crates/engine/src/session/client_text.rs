//! Texts as clients write them.
//!
//! The meaning of a string in a client's text hangs on the session's settings of that moment. Before anything else is done
//! with a text it is written out ([`clearway_sql::escapes`]), so that all texts inside the engine mean the same whatever is
//! set. The positions of errors are those in the client's own text. `pg_stat_activity` shows that text until a prepared
//! statement or the second statement of a message begins; the log and `pg_prepared_statements` show the text written out.

use std::sync::Arc;

use crate::memory;
use crate::output::{Notice, Output};
use crate::session::Session;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::escapes::{EscapeWarning, written_out};

/// The memory of a byte of text while it is written out: copies of it, and warnings that a client has not read. The most
/// are of a text of strings of one escape, each of which takes five bytes and warns in 280.
const BYTES_PER_BYTE: usize = 80;

impl Session {
    /// A client's text as the engine reads it. Up to the end of the call, errors are placed in the client's text.
    pub(super) fn written_out(&mut self, text: &Arc<str>, out: &mut dyn Output) -> Result<Arc<str>> {
        let rules = self.settings.strings;
        if !rules.plain_escapes && !text.contains('\\') {
            return Ok(Arc::clone(text));
        }
        memory::require(BYTES_PER_BYTE * text.len())?;
        let mut warnings = Vec::new();
        let done = written_out(text, rules, &mut warnings);
        if self.settings.escape_string_warning {
            warnings
                .into_iter()
                .try_for_each(|warning| self.notice(&notice_of(warning), out))?;
        }
        Ok(match done? {
            Some(done) => {
                self.client_places = Some(done.places);
                done.text.into()
            }
            None => Arc::clone(text),
        })
    }

    /// An error with its position in the client's text; once for each text.
    pub(super) fn in_client_text(&mut self, error: EngineError) -> EngineError {
        let Some(position) = error.position() else {
            return error;
        };
        match self.client_places.take() {
            Some(places) => error.with_position(places.original(position)),
            None => error,
        }
    }
}

fn notice_of(warning: EscapeWarning) -> Notice {
    Notice {
        hint: Some(warning.hint.to_owned()),
        position: Some(warning.position),
        ..Notice::warning(SqlState::from_code("22P06"), warning.message)
    }
}
