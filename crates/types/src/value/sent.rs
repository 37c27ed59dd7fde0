//! Long values as clients get them: the bytes of a form, text or binary, one piece after the other.
//!
//! A message has its length in front, so the number of bytes is known before the first of them is made. Then pieces of
//! the value itself go out where the form is its bytes (strings, `json`, `bytea` in binary), and what has to be made is
//! made a piece at a time (`bytea` in hex, `jsonb`). So a value takes no memory beside its own on its way out, however
//! long it is. Of arrays, records and `numeric` the whole form is made; [`SentForm`] takes it where it was made already.
//!
//! Rule: the pieces of a form have [`SentForm::length`] bytes together.

use std::fmt;

use crate::value::binary::JSONB_VERSION;
use crate::value::bytes::push_hex;
use crate::value::json::JsonbRef;
use crate::value::{Value, encode_binary, encode_text};

/// Values of so many bytes are sent in pieces: then what is saved is more than what it costs.
pub const LONG_BYTES: usize = 64 << 10;

/// The most bytes of a piece that is made.
const PIECE_BYTES: usize = 8 << 10;

/// True if a value is sent in pieces.
#[inline]
pub fn is_long(value: &Value) -> bool {
    match value {
        Value::Text(text) | Value::Json(text) => text.len() >= LONG_BYTES,
        Value::Bytes(bytes) => bytes.len() >= LONG_BYTES,
        Value::Jsonb(json) => json.bytes().len() >= LONG_BYTES,
        _ => false,
    }
}

/// The form of a value that is not NULL.
#[derive(Debug)]
pub struct SentForm<'v>(Form<'v>);

#[derive(Debug)]
enum Form<'v> {
    /// The value's own bytes.
    Own(&'v [u8]),
    Hex(&'v [u8]),
    Jsonb {
        value: JsonbRef<'v>,
        is_binary: bool,
        text_bytes: usize,
    },
    Made(Vec<u8>),
}

impl<'v> SentForm<'v> {
    /// The text form of a value, or the binary one.
    pub fn of(value: &'v Value, is_binary: bool) -> SentForm<'v> {
        SentForm(match value {
            Value::Text(text) | Value::Json(text) => Form::Own(text.as_bytes()),
            Value::Bytes(bytes) if is_binary => Form::Own(bytes),
            Value::Bytes(bytes) => Form::Hex(bytes),
            Value::Jsonb(json) => {
                let mut counted = Counted(0);
                let _ = json.as_ref().write_to(&mut counted);
                Form::Jsonb {
                    value: json.as_ref(),
                    is_binary,
                    text_bytes: counted.0,
                }
            }
            other if is_binary => {
                let mut made = Vec::new();
                encode_binary(other, &mut made);
                Form::Made(made)
            }
            other => {
                let mut made = String::new();
                encode_text(other, &mut made);
                Form::Made(made.into_bytes())
            }
        })
    }

    /// A form that was made already.
    pub fn made(bytes: Vec<u8>) -> SentForm<'v> {
        SentForm(Form::Made(bytes))
    }

    /// The number of its bytes.
    pub fn length(&self) -> usize {
        match &self.0 {
            Form::Own(bytes) => bytes.len(),
            Form::Hex(bytes) => HEX_PREFIX.len() + 2 * bytes.len(),
            Form::Jsonb {
                is_binary,
                text_bytes,
                ..
            } => usize::from(*is_binary) + text_bytes,
            Form::Made(bytes) => bytes.len(),
        }
    }

    /// Gives its bytes to `take`, in pieces of any length, up to the first error.
    pub fn each_piece<E>(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match &self.0 {
            Form::Own(bytes) => take(bytes),
            Form::Made(bytes) => take(bytes),
            Form::Hex(bytes) => {
                take(HEX_PREFIX)?;
                let mut digits = String::new();
                for part in bytes.chunks(PIECE_BYTES / 2) {
                    digits.clear();
                    push_hex(part, &mut digits);
                    take(digits.as_bytes())?;
                }
                Ok(())
            }
            Form::Jsonb { value, is_binary, .. } => {
                if *is_binary {
                    take(&[JSONB_VERSION])?;
                }
                let mut pieces = Pieces {
                    piece: String::with_capacity(PIECE_BYTES),
                    take,
                    error: None,
                };
                let written = value.write_to(&mut pieces).and_then(|()| pieces.give());
                match (written, pieces.error) {
                    (Err(_), Some(error)) => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The bytes of a row of such forms, as a message or COPY's binary format has it: their number, and each with its length in
/// front; NULL is `None`.
pub fn row_length(forms: &[Option<SentForm<'_>>]) -> usize {
    let lengths = forms.iter().flatten().map(SentForm::length);
    2 + 4 * forms.len() + lengths.sum::<usize>()
}

/// Gives the bytes of a row to `take`, in pieces of any length, up to the first error.
pub fn each_row_piece<E>(
    forms: &[Option<SentForm<'_>>],
    take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    take(&(forms.len() as u16).to_be_bytes())?;
    for form in forms {
        match form {
            None => take(&(-1i32).to_be_bytes())?,
            Some(form) => {
                take(&(form.length() as u32).to_be_bytes())?;
                form.each_piece(take)?;
            }
        }
    }
    Ok(())
}

/// In front of the digits.
const HEX_PREFIX: &[u8] = b"\\x";

/// Counts the bytes that are written to it.
struct Counted(usize);

impl fmt::Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// Gathers what is written into pieces.
struct Pieces<'t, E> {
    piece: String,
    take: &'t mut dyn FnMut(&[u8]) -> Result<(), E>,
    /// The reason for which `take` has refused a piece.
    error: Option<E>,
}

impl<E> Pieces<'_, E> {
    fn give(&mut self) -> fmt::Result {
        let given = give(self.take, &mut self.error, self.piece.as_bytes());
        self.piece.clear();
        given
    }
}

fn give<E>(
    take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    refused: &mut Option<E>,
    bytes: &[u8],
) -> fmt::Result {
    take(bytes).map_err(|error| {
        *refused = Some(error);
        fmt::Error
    })
}

impl<E> fmt::Write for Pieces<'_, E> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.piece.len() + text.len() > PIECE_BYTES {
            self.give()?;
        }
        if text.len() > PIECE_BYTES {
            return give(self.take, &mut self.error, text.as_bytes());
        }
        self.piece.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Jsonb;
    use crate::value::json::parse;

    fn values() -> Vec<Value> {
        let mut text = "\"\\\n\u{1}äß".repeat(3_000);
        text.push_str(&"x".repeat(3 * PIECE_BYTES));
        let bytes: Vec<u8> = (0..100_000u32).map(|at| (at * 7) as u8).collect();
        let mut quoted = String::new();
        crate::value::json::push_string(&text, &mut quoted);
        let json = format!("{{\"a\": [1, 2.50, null, {quoted}], \"b\": {{}}, \"c\": [[], true]}}");
        let json = Value::Jsonb(Jsonb::of(&parse(&json).unwrap()).unwrap());
        let short = [Value::Int4(7), Value::text(""), Value::Bytes([1, 2].into())];
        let long = [
            Value::text(text.clone()),
            Value::Json(text.into()),
            Value::Bytes(bytes.into()),
            json,
        ];
        short.into_iter().chain(long).collect()
    }

    #[test]
    fn pieces_are_the_whole_form() {
        for value in values() {
            let mut text = String::new();
            encode_text(&value, &mut text);
            let mut binary = Vec::new();
            encode_binary(&value, &mut binary);
            for (is_binary, whole) in [(false, text.into_bytes()), (true, binary)] {
                let form = SentForm::of(&value, is_binary);
                let mut pieces = Vec::new();
                let taken = form.each_piece(&mut |piece| {
                    pieces.extend_from_slice(piece);
                    Ok::<(), ()>(())
                });
                taken.unwrap();
                assert!(
                    pieces == whole,
                    "{}",
                    &String::from_utf8_lossy(&whole)[..20.min(whole.len())]
                );
                assert_eq!(form.length(), whole.len());
            }
        }
    }

    #[test]
    fn the_first_error_ends_a_form() {
        for value in values().iter().filter(|value| is_long(value)) {
            let mut asked = 0;
            let refused = SentForm::of(value, false).each_piece(&mut |_| {
                asked += 1;
                Err("full")
            });
            assert_eq!((refused, asked), (Err("full"), 1));
        }
    }
}
