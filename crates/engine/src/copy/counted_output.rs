//! The client's end of COPY TO, and what has gone there.

use crate::activity::Running;
use crate::activity::progress::copy;
use crate::output::{Output, WritePieces};
use clearway_sql::error::Result;
use clearway_sql::plan::Column;
use clearway_sql::value::Value;

/// An output that counts what COPY TO sends.
pub(super) struct CountedOutput<'a> {
    out: &'a mut dyn Output,
    shown: Running<'a>,
    rows: u64,
}

impl<'a> CountedOutput<'a> {
    pub(super) fn new(out: &'a mut dyn Output, shown: Running<'a>) -> CountedOutput<'a> {
        CountedOutput { out, shown, rows: 0 }
    }

    /// A row has been sent.
    #[inline]
    pub(super) fn row_sent(&mut self) {
        self.rows += 1;
        self.shown.set(copy::ROWS, self.rows);
    }
}

impl Output for CountedOutput<'_> {
    fn row_description(&mut self, columns: &[Column]) -> Result<()> {
        self.out.row_description(columns)
    }

    fn row(&mut self, values: &[Value]) -> Result<()> {
        self.out.row(values)
    }

    fn complete(&mut self, tag: &str) -> Result<()> {
        self.out.complete(tag)
    }

    fn copy_out_data(&mut self, line: &[u8]) -> Result<()> {
        self.shown.add(copy::BYTES, line.len() as u64);
        self.out.copy_out_data(line)
    }

    fn copy_out_long(&mut self, length: usize, write: &mut WritePieces<'_>) -> Result<()> {
        self.shown.add(copy::BYTES, length as u64);
        self.out.copy_out_long(length, write)
    }

    fn copy_out_done(&mut self) -> Result<()> {
        self.out.copy_out_done()
    }
}
