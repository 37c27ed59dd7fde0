//! COPY data that is made as the engine reads it, so that no table is in memory as text.

use clearway_engine::{Column, CopyFormat, EngineError, Output, Session, Value};

/// Lines handed over at a time.
const CHUNK_LINES: i64 = 1_000;

/// Fills `table` with the lines of 1 to `last`, which `line` appends to the text that it is given; `progress` gets the
/// number that the engine has asked for.
pub(super) fn copy(
    session: &mut Session,
    table: &str,
    last: i64,
    line: &mut dyn FnMut(i64, &mut Vec<u8>),
    progress: &mut dyn FnMut(u64),
) -> Result<(), EngineError> {
    let mut source = CopyLines {
        next: 1,
        last,
        line,
        progress,
    };
    session.execute_simple(&format!("copy {table} from stdin"), &mut source)
}

struct CopyLines<'a> {
    next: i64,
    last: i64,
    line: &'a mut dyn FnMut(i64, &mut Vec<u8>),
    progress: &'a mut dyn FnMut(u64),
}

impl Output for CopyLines<'_> {
    fn row_description(&mut self, _columns: &[Column]) -> Result<(), EngineError> {
        Ok(())
    }
    fn row(&mut self, _values: &[Value]) -> Result<(), EngineError> {
        Ok(())
    }
    fn complete(&mut self, _tag: &str) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_in_start(&mut self, _columns: usize, _format: CopyFormat) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool, EngineError> {
        let end = (self.next + CHUNK_LINES).min(self.last + 1);
        for number in self.next..end {
            (self.line)(number, buffer);
        }
        self.next = end;
        (self.progress)((end - 1).max(0) as u64);
        Ok(!buffer.is_empty())
    }
}
