//! The destination of a statement's results.
//!
//! The engine pushes: it calls [`Output`] as rows come up, so that a row goes from the page to the socket's buffer
//! without a result set in between. The wire server, the in-process bench and the tests each implement the trait.
//!
//! Calls for one statement come in this order:
//!
//! | statement | calls |
//! | --- | --- |
//! | returns rows, simple protocol | `row_description`, `row`…, `complete` |
//! | returns rows, extended protocol | `row`…, then `complete` or (portal suspended) nothing |
//! | returns none | `complete` |
//! | `COPY … FROM STDIN` | `copy_in_start`, `copy_in_read`… until it says no more, `complete` |
//! | `COPY … TO STDOUT` | `copy_out_start`, `copy_out_data` or `copy_out_long`…, `copy_out_done`, `complete` |
//! | empty text | `empty` |
//!
//! `notice` and `parameter_status` may come in between at any point. An error from an `Output` method ends the
//! statement as any other error does.

use clearway_sql::error::{EngineError, SqlState};
pub use clearway_sql::plan::Column;
use clearway_sql::plan::CopyFormat;
use clearway_sql::value::Value;

use crate::memory;

/// Takes the next piece of a message.
pub type TakePiece<'t> = dyn FnMut(&[u8]) -> Result<(), EngineError> + 't;

/// Gives a message to a function, one piece after the other, up to the first error.
pub type WritePieces<'w> = dyn FnMut(&mut TakePiece<'_>) -> Result<(), EngineError> + 'w;

/// A receiver of results; see the [module](self) for the order of calls.
pub trait Output {
    /// The columns of the rows that follow.
    fn row_description(&mut self, columns: &[Column]) -> Result<(), EngineError>;
    /// One row.
    fn row(&mut self, values: &[Value]) -> Result<(), EngineError>;
    /// True if this column, counted from 0, is wanted as text: then names stand for the numbers of a type that shows them.
    fn is_text(&self, _column: usize) -> bool {
        true
    }
    /// The rows that are described next, up to the end of the statement, are those of a BINARY cursor: a caller that
    /// has chosen no formats gets them in binary.
    fn binary_rows(&mut self) {}
    /// The statement is done; `tag` is PostgreSQL's command tag (`UPDATE 1`).
    fn complete(&mut self, tag: &str) -> Result<(), EngineError>;
    /// The text held no statement at all.
    fn empty(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
    /// A message beside the result.
    fn notice(&mut self, _notice: &Notice) -> Result<(), EngineError> {
        Ok(())
    }
    /// A setting that clients track has a new value.
    fn parameter_status(&mut self, _name: &str, _value: &str) -> Result<(), EngineError> {
        Ok(())
    }
    /// The statement is about to read `columns` columns of COPY data from the client.
    fn copy_in_start(&mut self, _columns: usize, _format: CopyFormat) -> Result<(), EngineError> {
        Err(EngineError::not_supported("COPY FROM STDIN on this connection"))
    }
    /// Appends the next chunk to `buffer`, which arrives empty; `false` when there is no more.
    ///
    /// Chunks may end anywhere in a line or row. A client that gives up (`CopyFail`) is an error, 57014.
    fn copy_in_read(&mut self, _buffer: &mut Vec<u8>) -> Result<bool, EngineError> {
        Ok(false)
    }
    /// The statement is about to send `columns` columns of COPY data.
    fn copy_out_start(&mut self, _columns: usize, _format: CopyFormat) -> Result<(), EngineError> {
        Err(EngineError::not_supported("COPY TO STDOUT on this connection"))
    }
    /// One line of COPY data, its newline included, or one row of binary data.
    fn copy_out_data(&mut self, _line: &[u8]) -> Result<(), EngineError> {
        Ok(())
    }
    /// The same of one with long values: `length` bytes, which `write` gives in pieces.
    fn copy_out_long(&mut self, length: usize, write: &mut WritePieces<'_>) -> Result<(), EngineError> {
        memory::require(length)?;
        let mut line = Vec::with_capacity(length);
        write(&mut |piece| {
            line.extend_from_slice(piece);
            Ok(())
        })?;
        self.copy_out_data(&line)
    }
    /// The COPY data is complete.
    fn copy_out_done(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// A message that is not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE`, `WARNING` or `INFO`.
    pub severity: &'static str,
    /// The SQLSTATE.
    pub sqlstate: SqlState,
    /// The text.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// Advice beside it.
    pub hint: Option<String>,
    /// Character of the statement's text that it is about, from 1.
    pub position: Option<u32>,
}

impl Notice {
    /// True if a client wants it that has set `client_min_messages` to the level at this place.
    pub(crate) fn reaches(&self, least: usize) -> bool {
        crate::settings::level(&self.severity.to_ascii_lowercase()) >= least
    }

    /// A message of a severity, with a SQLSTATE.
    pub fn new(severity: &'static str, sqlstate: SqlState, message: impl Into<String>) -> Notice {
        Notice {
            severity,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
        }
    }

    /// A `NOTICE`, 00000.
    pub fn plain(message: impl Into<String>) -> Notice {
        Notice::new("NOTICE", SqlState::SUCCESS, message)
    }

    /// A `WARNING` with a SQLSTATE.
    pub fn warning(sqlstate: SqlState, message: impl Into<String>) -> Notice {
        Notice::new("WARNING", sqlstate, message)
    }

    /// The same with a detail.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Notice {
        self.detail = Some(detail.into());
        self
    }
}

/// An [`Output`] that keeps everything: for tests and small tools.
#[derive(Debug, Default)]
pub struct Collected {
    /// The columns described last.
    pub columns: Vec<Column>,
    /// All rows.
    pub rows: Vec<Vec<Value>>,
    /// The command tags, one a statement.
    pub tags: Vec<String>,
    /// The notices.
    pub notices: Vec<Notice>,
    /// The settings that a client is told of, with their new values.
    pub parameters: Vec<(String, String)>,
    /// The output of COPY TO STDOUT.
    pub copied: Vec<u8>,
    /// The input of COPY FROM STDIN; taken by the first statement that reads.
    pub copy_input: Vec<u8>,
}

impl Output for Collected {
    fn row_description(&mut self, columns: &[Column]) -> Result<(), EngineError> {
        self.columns = columns.to_vec();
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> Result<(), EngineError> {
        self.rows.push(values.to_vec());
        Ok(())
    }
    fn complete(&mut self, tag: &str) -> Result<(), EngineError> {
        self.tags.push(tag.to_owned());
        Ok(())
    }
    fn notice(&mut self, notice: &Notice) -> Result<(), EngineError> {
        self.notices.push(notice.clone());
        Ok(())
    }
    fn parameter_status(&mut self, name: &str, value: &str) -> Result<(), EngineError> {
        self.parameters.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
    fn copy_in_start(&mut self, _columns: usize, _format: CopyFormat) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool, EngineError> {
        buffer.append(&mut self.copy_input);
        Ok(!buffer.is_empty())
    }
    fn copy_out_start(&mut self, _columns: usize, _format: CopyFormat) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_out_data(&mut self, line: &[u8]) -> Result<(), EngineError> {
        self.copied.extend_from_slice(line);
        Ok(())
    }
}

/// An [`Output`] that drops everything and counts the rows: for benches.
#[derive(Debug, Default)]
pub struct Discard {
    /// Number of rows that came.
    pub rows: u64,
}

impl Output for Discard {
    fn row_description(&mut self, _columns: &[Column]) -> Result<(), EngineError> {
        Ok(())
    }
    #[inline]
    fn row(&mut self, _values: &[Value]) -> Result<(), EngineError> {
        self.rows += 1;
        Ok(())
    }
    #[inline]
    fn complete(&mut self, _tag: &str) -> Result<(), EngineError> {
        Ok(())
    }
}

/// An [`Output`] for notices alone, of a statement whose rows and tag are not shown.
pub struct NoticesOnly<F>(pub F);

impl<F> std::fmt::Debug for NoticesOnly<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("NoticesOnly")
    }
}

impl<F: FnMut(&Notice) -> Result<(), EngineError>> Output for NoticesOnly<F> {
    fn row_description(&mut self, _columns: &[Column]) -> Result<(), EngineError> {
        Ok(())
    }
    fn row(&mut self, _values: &[Value]) -> Result<(), EngineError> {
        Ok(())
    }
    fn complete(&mut self, _tag: &str) -> Result<(), EngineError> {
        Ok(())
    }
    fn notice(&mut self, notice: &Notice) -> Result<(), EngineError> {
        (self.0)(notice)
    }
}
