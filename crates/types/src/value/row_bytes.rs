//! A bound for texts that are in memory together.
//!
//! A text may have 1 GB, and a row as many of them as its statement names. So code that gathers the values of a row
//! counts their texts, and stops before the next one is made. What an expression keeps is counted by its
//! [`EvalContext`](crate::context::EvalContext).

use crate::error::{EngineError, Result, SqlState};
use crate::memory;
use crate::value::Value;

/// The most bytes that the texts of one row may have.
const BYTES_MAX: usize = 1 << 30;

/// Counts the texts of a row.
#[derive(Debug, Default)]
pub struct TextsTogether {
    bytes: usize,
}

impl TextsTogether {
    /// One more value; 54000 when the texts are too long together.
    #[inline]
    pub fn add(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Text(text) => self.add_bytes(text.len()),
            Value::Bytes(_) | Value::Json(_) | Value::Jsonb(_) => self.add_bytes(value.heap_bytes()),
            Value::Array(array) => self.add_bytes(array.heap_bytes()),
            _ => Ok(()),
        }
    }

    fn add_bytes(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes < memory::WEIGHED_MIN {
            return Ok(());
        }
        if self.bytes <= BYTES_MAX {
            // They are copied together, into a row on a page or into what an operator keeps.
            return memory::require(self.bytes);
        }
        Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "row too large: its texts may have 1 GB together",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_a_limit_together() {
        let mut texts = TextsTogether::default();
        texts.add(&Value::Int4(1)).unwrap();
        texts.add(&Value::text("a")).unwrap();
        texts.add_bytes(BYTES_MAX - 1).unwrap();
        let error = texts.add(&Value::text("b")).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
