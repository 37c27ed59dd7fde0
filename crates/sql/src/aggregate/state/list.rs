//! Values that are kept one by one, and texts that are put together.

use crate::aggregate::AggregateCall;
use crate::error::Result;
use crate::function::check_length;
use crate::value::array::check_accumulated;
use crate::value::{DataType, Value};

/// The values of one group.
#[derive(Debug, Clone, Default)]
pub(in crate::aggregate) struct List {
    pub(in crate::aggregate) values: Vec<Value>,
    bytes: usize,
}

impl List {
    /// Keeps one more value; 2202E or 22004 for one that does not go into an array of arrays.
    pub(in crate::aggregate) fn push(&mut self, call: &AggregateCall, value: &Value) -> Result<()> {
        if let DataType::Array(_) = call.argument_types[0] {
            check_accumulated(self.values.first(), value)?;
        }
        self.bytes += size_of::<Value>() + value.heap_bytes();
        self.values.push(value.clone());
        Ok(())
    }

    /// The bytes that it has on the heap.
    pub(in crate::aggregate) fn heap_bytes(&self) -> usize {
        self.bytes
    }
}

/// The text of one group, with a delimiter in front of each value but the first.
#[derive(Debug, Clone, Default)]
pub(in crate::aggregate) struct Joined {
    /// NULL until the first value that is not.
    pub(in crate::aggregate) text: Option<String>,
}

impl Joined {
    /// Takes a value; NULL is passed by, with its delimiter.
    pub(in crate::aggregate) fn take(&mut self, value: &Value, delimiter: &Value) -> Result<()> {
        let Some(value) = value.as_str() else {
            return Ok(());
        };
        let Some(text) = &mut self.text else {
            self.text = Some(value.to_owned());
            return Ok(());
        };
        let delimiter = delimiter.as_str().unwrap_or_default();
        check_length(text.len() + delimiter.len() + value.len())?;
        text.push_str(delimiter);
        text.push_str(value);
        Ok(())
    }

    /// The bytes that it has on the heap.
    pub(in crate::aggregate) fn heap_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::capacity)
    }
}

/// The bytes of one group, with a delimiter in front of each value but the first.
#[derive(Debug, Clone, Default)]
pub(in crate::aggregate) struct JoinedBytes {
    /// NULL until the first value that is not.
    pub(in crate::aggregate) bytes: Option<Vec<u8>>,
}

impl JoinedBytes {
    /// Takes a value; NULL is passed by, with its delimiter.
    pub(in crate::aggregate) fn take(&mut self, value: &Value, delimiter: &Value) -> Result<()> {
        let Value::Bytes(value) = value else {
            return Ok(());
        };
        let Some(bytes) = &mut self.bytes else {
            self.bytes = Some(value.to_vec());
            return Ok(());
        };
        check_length(bytes.len() + delimiter.heap_bytes() + value.len())?;
        if let Value::Bytes(delimiter) = delimiter {
            bytes.extend_from_slice(delimiter);
        }
        bytes.extend_from_slice(value);
        Ok(())
    }

    /// The bytes that it has on the heap.
    pub(in crate::aggregate) fn heap_bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, Vec::capacity)
    }
}
