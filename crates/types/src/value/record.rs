//! Records: rows of values as one value.
//!
//! ```text
//!   row(1, 'a b', null)      fields 1 'a b' NULL      types integer, unknown, unknown      text (1,"a b",)
//! ```
//!
//! A record knows the types of its fields, because the type `record` says nothing of them. Fields may be NULL, and a
//! record of which all are is still a value.
//!
//! The order of two records is that of their first fields that differ, NULL above all. Only fields of the same types
//! have one: `dissimilar` tells what keeps two records apart.
//!
//! As in `array`, the forms of a field come as functions from the modules that know those of all values.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::user_type::{UserType, in_force};
use crate::value::{DataType, TypeOid, Value, is_space};

/// The names of a record's fields.
pub type FieldNames = Arc<[Box<str>]>;

/// A record.
#[derive(Debug, Clone)]
pub struct RecordValue {
    fields: Vec<Value>,
    types: Arc<[DataType]>,
    /// Its composite type, or `record`.
    of: DataType,
    /// The names of the fields, for JSON; of a composite type the type has them.
    names: Option<FieldNames>,
}

impl PartialEq for RecordValue {
    fn eq(&self, other: &RecordValue) -> bool {
        (&self.fields, &self.types, self.of) == (&other.fields, &other.types, other.of)
    }
}

impl RecordValue {
    /// A record of these fields; an internal error if there are not as many types.
    pub fn new(fields: Vec<Value>, types: Arc<[DataType]>) -> Result<RecordValue> {
        if fields.len() != types.len() {
            return Err(EngineError::internal("a record has other fields than types"));
        }
        Ok(RecordValue {
            fields,
            types,
            of: DataType::Record,
            names: None,
        })
    }

    /// The same with names of its fields.
    pub fn with_names(self, names: Option<FieldNames>) -> RecordValue {
        RecordValue { names, ..self }
    }

    /// The names of its fields, if it has some that its type has not.
    pub fn names(&self) -> Option<&FieldNames> {
        self.names.as_ref()
    }

    /// The same as a value of this type: a composite type of such fields, or `record`.
    pub fn as_type(self, of: DataType) -> RecordValue {
        RecordValue { of, ..self }
    }

    /// Its composite type, or `record`.
    pub fn data_type(&self) -> DataType {
        self.of
    }

    /// Its fields.
    pub fn into_fields(self) -> Vec<Value> {
        self.fields
    }

    /// Its fields.
    pub fn fields(&self) -> &[Value] {
        &self.fields
    }

    /// The types of its fields.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The fields with their types.
    pub fn typed_fields(&self) -> impl Iterator<Item = (&Value, DataType)> {
        self.fields.iter().zip(self.types.iter().copied())
    }

    /// The same record with each field replaced, of the types that `types` gives for the old ones.
    pub(crate) fn map(
        &self,
        map: impl Fn(&Value, DataType) -> Value,
        types: impl Fn(DataType) -> DataType,
    ) -> RecordValue {
        RecordValue {
            fields: self.typed_fields().map(|(value, of)| map(value, of)).collect(),
            types: self.types.iter().map(|of| types(*of)).collect(),
            of: DataType::Record,
            names: self.names.clone(),
        }
    }

    /// The bytes it has on the heap, its own structure included.
    pub(crate) fn heap_bytes(&self) -> usize {
        let of_fields: usize = self.fields.iter().map(Value::heap_bytes).sum();
        size_of::<RecordValue>() + size_of_val(&*self.fields) + size_of_val(&*self.types) + of_fields
    }

    /// The order of two records; `None` if they are dissimilar where it would be decided.
    pub(super) fn order(
        &self,
        other: &RecordValue,
        order: fn(&Value, &Value, DataType) -> Option<Ordering>,
    ) -> Option<Ordering> {
        for ((left, of_left), (right, of_right)) in self.typed_fields().zip(other.typed_fields()) {
            if of_left != of_right && of_left.base() != of_right.base() {
                return None;
            }
            let ordering = match (left.is_null(), right.is_null()) {
                (false, false) => order(left, right, of_left)?,
                (left, right) => left.cmp(&right),
            };
            if ordering.is_ne() {
                return Some(ordering);
            }
        }
        (self.fields.len() == other.fields.len()).then_some(Ordering::Equal)
    }

    /// Appends its bytes in an index key: each field as a column of its own, which begins with `01` or `02`, then `00`.
    pub(super) fn encode_key(&self, encode_value: fn(&Value, DataType, &mut Vec<u8>), key: &mut Vec<u8>) {
        self.typed_fields()
            .for_each(|(field, data_type)| encode_value(field, data_type, key));
        key.push(0);
    }

    /// Appends its text form.
    pub(super) fn encode_text(&self, encode_text: fn(&Value, &mut String), out: &mut String) {
        let mut text = String::new();
        out.push('(');
        for (at, field) in self.fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            if field.is_null() {
                continue;
            }
            text.clear();
            encode_text(field, &mut text);
            push_field(&text, out);
        }
        out.push(')');
    }

    /// Appends its binary form, all numbers in 4 bytes, big-endian: the number of fields; then of each its type, its
    /// bytes or −1 for NULL, and these bytes.
    pub(super) fn encode_binary(&self, encode_binary: fn(&Value, &mut Vec<u8>), out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.fields.len() as u32).to_be_bytes());
        for (field, data_type) in self.typed_fields() {
            out.extend_from_slice(&data_type.oid().to_be_bytes());
            let start = out.len();
            out.extend_from_slice(&(-1i32).to_be_bytes());
            if !field.is_null() {
                encode_binary(field, out);
                let length = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Reads its binary form.
    pub(super) fn decode_binary(
        mut bytes: &[u8],
        decode_binary: fn(&[u8], DataType) -> Result<Value>,
    ) -> Result<RecordValue> {
        let damaged = || {
            EngineError::new(
                SqlState::INVALID_BINARY_REPRESENTATION,
                "improper binary format in a record",
            )
        };
        let number = |bytes: &mut &[u8]| -> Result<i32> {
            let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
            *bytes = rest;
            Ok(i32::from_be_bytes(*number))
        };
        let count = usize::try_from(number(&mut bytes)?).map_err(|_| damaged())?;
        // Each field has two numbers.
        if bytes.len() / 8 < count {
            return Err(damaged());
        }
        let (mut fields, mut types) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let data_type = DataType::from_oid(number(&mut bytes)? as u32).ok_or_else(damaged)?;
            types.push(data_type);
            let length = number(&mut bytes)?;
            if length == -1 {
                fields.push(Value::Null);
                continue;
            }
            let length = usize::try_from(length).map_err(|_| damaged())?;
            let (content, rest) = bytes.split_at_checked(length).ok_or_else(damaged)?;
            bytes = rest;
            fields.push(crate::stack::checkpoint(|| decode_binary(content, data_type))?);
        }
        if !bytes.is_empty() {
            return Err(damaged());
        }
        RecordValue::new(fields, types.into())
    }
}

impl RecordValue {
    /// Appends its bytes in a row, as a value of a composite type: the number of its fields in two bytes, a bitmap of the
    /// fields that are NULL, then the others.
    pub(super) fn to_stored(&self, write: fn(&Value, DataType, &mut Vec<u8>), out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.fields.len() as u16).to_le_bytes());
        let bitmap = out.len();
        out.resize(bitmap + self.fields.len().div_ceil(8), 0);
        for (at, (field, data_type)) in self.typed_fields().enumerate() {
            match field.is_null() {
                true => out[bitmap + at / 8] |= 1 << (at % 8),
                false => write(field, data_type, out),
            }
        }
    }

    /// The value of a composite type with these bytes in a row (U4 of `user_type`): fields that the type has been given since
    /// are NULL. `None` if they are damaged.
    pub(super) fn from_stored(bytes: &[u8], oid: TypeOid, read: ReadField) -> Option<RecordValue> {
        let found = in_force::get(oid)?;
        let composite = found.composite()?;
        let (count, bytes) = bytes.split_first_chunk::<2>()?;
        let count = usize::from(u16::from_le_bytes(*count));
        if count > composite.fields.len() {
            return None;
        }
        let (bitmap, mut rest) = bytes.split_at_checked(count.div_ceil(8))?;
        let mut fields = Vec::with_capacity(composite.fields.len());
        for (at, field) in composite.fields.iter().take(count).enumerate() {
            fields.push(match bitmap[at / 8] >> (at % 8) & 1 {
                1 => Value::Null,
                _ => read(&mut rest, field.data_type)?,
            });
        }
        if !rest.is_empty() {
            return None;
        }
        fields.resize(composite.fields.len(), Value::Null);
        Some(RecordValue {
            fields,
            types: composite.types().collect(),
            of: DataType::Composite(oid),
            names: None,
        })
    }

    /// Reads the binary form of a value of a composite type.
    pub(super) fn decode_binary_of(
        bytes: &[u8],
        oid: TypeOid,
        decode_binary: fn(&[u8], DataType) -> Result<Value>,
    ) -> Result<RecordValue> {
        let record = RecordValue::decode_binary(bytes, decode_binary)?;
        let found = in_force::get(oid);
        let composite = found.as_deref().and_then(UserType::composite);
        let composite = composite.ok_or_else(|| EngineError::internal("a type is not composite"))?;
        if composite.fields.len() != record.fields.len() {
            return Err(mismatch(format!(
                "wrong number of columns: {}, expected {}",
                record.fields.len(),
                composite.fields.len()
            )));
        }
        let pairs = record.types.iter().zip(&composite.fields);
        for (at, (given, field)) in pairs.enumerate() {
            if *given != field.data_type {
                return Err(mismatch(format!(
                    "binary data has type {} ({given}) instead of expected {} ({}) in record column {}",
                    given.oid(),
                    field.data_type.oid(),
                    field.data_type,
                    at + 1
                )));
            }
        }
        Ok(record.as_type(DataType::Composite(oid)))
    }
}

/// Takes a field of a type off the front of bytes.
type ReadField = fn(&mut &[u8], DataType) -> Option<Value>;

fn mismatch(message: String) -> EngineError {
    EngineError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// Reads the text form of a value of a composite type, each field by `read` from its text, its type and modifier.
pub(crate) fn decode_record_text(
    text: &str,
    oid: TypeOid,
    read: &mut dyn FnMut(&str, DataType, i32) -> Result<Value>,
) -> Result<RecordValue> {
    let found = in_force::get(oid);
    let composite = found.as_deref().and_then(UserType::composite);
    let composite = composite.ok_or_else(|| EngineError::internal("a type is not composite"))?;
    let malformed = |detail: &'static str| {
        EngineError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed record literal: \"{}\"", shown(text)),
        )
        .with_detail(detail)
    };
    let mut rest = text.trim_start_matches(is_space);
    rest = rest
        .strip_prefix('(')
        .ok_or_else(|| malformed("Missing left parenthesis."))?;
    let mut fields = Vec::with_capacity(composite.fields.len());
    for (at, field) in composite.fields.iter().enumerate() {
        if at > 0 {
            rest = rest
                .strip_prefix(',')
                .ok_or_else(|| malformed("Too few columns."))?;
        }
        let part = take_field(&mut rest).ok_or_else(|| malformed("Unexpected end of input."))?;
        fields.push(match part {
            None => Value::Null,
            Some(part) => crate::stack::checkpoint(|| read(&part, field.data_type, field.typmod))?,
        });
    }
    rest = match rest.strip_prefix(')') {
        Some(rest) => rest,
        // A type without fields has nothing between the parentheses.
        None => return Err(malformed("Too many columns.")),
    };
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(malformed("Junk after right parenthesis."));
    }
    Ok(RecordValue {
        fields,
        types: composite.types().collect(),
        of: DataType::Composite(oid),
        names: None,
    })
}

/// Takes a field's text off the front, up to the comma or parenthesis behind it: `Some(None)` for one that is NULL, `None`
/// where the text ends before.
fn take_field(rest: &mut &str) -> Option<Option<String>> {
    if rest.starts_with([',', ')']) {
        return Some(None);
    }
    let (mut field, mut quoted) = (String::new(), false);
    let mut characters = rest.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            ',' | ')' if !quoted => {
                *rest = &rest[at..];
                return Some(Some(field));
            }
            '\\' => field.push(characters.next()?.1),
            '"' if quoted && characters.next_if(|(_, next)| *next == '"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            other => field.push(other),
        }
    }
    None
}

impl From<RecordValue> for Value {
    fn from(record: RecordValue) -> Value {
        Value::Record(Box::new(record))
    }
}

/// Appends a field's text, in quotes where it would be read as something else.
fn push_field(text: &str, out: &mut String) {
    let special = |character: char| matches!(character, '"' | '\\' | '(' | ')' | ',') || is_space(character);
    if !text.is_empty() && !text.contains(special) {
        return out.push_str(text);
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push(character);
        }
        out.push(character);
    }
    out.push('"');
}

/// The error for two records that have no order: of other types, or of other numbers of fields.
#[cold]
pub(super) fn dissimilar(left: &RecordValue, right: &RecordValue) -> EngineError {
    let mut pairs = left.types.iter().zip(right.types.iter()).enumerate();
    let message = match pairs.find(|(_, (left, right))| left != right) {
        Some((at, (left, right))) => format!(
            "cannot compare dissimilar column types {left} and {right} at record column {}",
            at + 1
        ),
        None => "cannot compare record types with different numbers of columns".to_owned(),
    };
    EngineError::new(SqlState::DATATYPE_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{compare_checked, decode_binary, encode_binary, encode_key, text::to_text};

    fn record(fields: Vec<Value>) -> Value {
        let types = fields.iter().map(|field| match field {
            Value::Null => DataType::Int4,
            other => other.natural_type(),
        });
        let types = types.collect();
        RecordValue::new(fields, types).unwrap().into()
    }

    fn records() -> Vec<Value> {
        let inner = record(vec![Value::Int4(1), Value::from("(\"")]);
        vec![
            record(vec![]),
            record(vec![Value::Int4(1), Value::from("a b")]),
            record(vec![Value::Int4(1), Value::from("")]),
            record(vec![Value::Null, Value::from("a")]),
            record(vec![Value::Int4(2), Value::from("a,b")]),
            record(vec![inner, Value::Bool(true)]),
        ]
    }

    #[test]
    fn texts_are_postgresqls() {
        let texts: Vec<String> = records().iter().filter_map(to_text).collect();
        let expected = [
            "()",
            r#"(1,"a b")"#,
            r#"(1,"")"#,
            "(,a)",
            r#"(2,"a,b")"#,
            r#"("(1,""("""""")",t)"#,
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn binary_forms_come_back() {
        for value in records() {
            let mut bytes = Vec::new();
            encode_binary(&value, &mut bytes);
            assert_eq!(decode_binary(&bytes, DataType::Record).unwrap(), value);
            for cut in 0..bytes.len() {
                assert!(decode_binary(&bytes[..cut], DataType::Record).is_err());
            }
        }
    }

    #[test]
    fn fields_order_one_after_the_other() {
        let of = |first: i32, second: Value| record(vec![Value::Int4(first), second]);
        let ordered = [of(1, Value::Int4(5)), of(1, Value::Null), of(2, Value::Int4(0))];
        for (at, left) in ordered.iter().enumerate() {
            for (other, right) in ordered.iter().enumerate() {
                let order = compare_checked(left, right, DataType::Record).unwrap();
                assert_eq!(order, at.cmp(&other));
                let keys =
                    [left, right].map(|value| encode_key(std::slice::from_ref(value), &[DataType::Record]));
                assert_eq!(keys[0].cmp(&keys[1]), at.cmp(&other));
            }
        }
    }

    #[test]
    fn dissimilar_records_are_an_error() {
        let one = record(vec![Value::Int4(1)]);
        for other in [
            record(vec![Value::from("1")]),
            record(vec![Value::Int4(1), Value::Int4(2)]),
        ] {
            let error = compare_checked(&one, &other, DataType::Record).unwrap_err();
            assert_eq!(error.sqlstate(), SqlState::DATATYPE_MISMATCH);
        }
    }
}
