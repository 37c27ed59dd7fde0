//! Functions of `bytea`.
//!
//! Bits are numbered from the lowest one of the first byte.

use sha2::Digest as _;

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use super::{check_length, int, text_of};
use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::DataType::{Bytea, Int4, Int8, Name, Text};
use crate::value::Value;
use crate::value::bytes::push_hex;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(2010, "length", &[Bytea], Int4, Pure(length)),
    row(720, "octet_length", &[Bytea], Int4, Pure(length)),
    row(1810, "bit_length", &[Bytea], Int4, Pure(bit_length)),
    row(6163, "bit_count", &[Bytea], Int8, Pure(bit_count)),
    row(721, "get_byte", &[Bytea, Int4], Int4, Pure(get_byte)),
    row(722, "set_byte", &[Bytea, Int4, Int4], Bytea, Pure(set_byte)),
    row(723, "get_bit", &[Bytea, Int8], Int4, Pure(get_bit)),
    row(724, "set_bit", &[Bytea, Int8, Int4], Bytea, Pure(set_bit)),
    row(2012, "substring", &[Bytea, Int4, Int4], Bytea, Pure(substring)),
    row(2013, "substring", &[Bytea, Int4], Bytea, Pure(substring)),
    row(2085, "substr", &[Bytea, Int4, Int4], Bytea, Pure(substring)),
    row(2086, "substr", &[Bytea, Int4], Bytea, Pure(substring)),
    row(749, "overlay", &[Bytea, Bytea, Int4, Int4], Bytea, Pure(overlay)),
    row(752, "overlay", &[Bytea, Bytea, Int4], Bytea, Pure(overlay)),
    row(2014, "position", &[Bytea, Bytea], Int4, Pure(position)),
    row(
        2015,
        "btrim",
        &[Bytea, Bytea],
        Bytea,
        Pure(|x| trim(x, true, true)),
    ),
    row(
        6195,
        "ltrim",
        &[Bytea, Bytea],
        Bytea,
        Pure(|x| trim(x, true, false)),
    ),
    row(
        6196,
        "rtrim",
        &[Bytea, Bytea],
        Bytea,
        Pure(|x| trim(x, false, true)),
    ),
    row(2011, "byteacat", &[Bytea, Bytea], Bytea, Pure(concatenated)).operator("||"),
    row(2321, "md5", &[Bytea], Text, Pure(md5)),
    row(3419, "sha224", &[Bytea], Bytea, Pure(digest::<sha2::Sha224>)),
    row(3420, "sha256", &[Bytea], Bytea, Pure(digest::<sha2::Sha256>)),
    row(3421, "sha384", &[Bytea], Bytea, Pure(digest::<sha2::Sha384>)),
    row(3422, "sha512", &[Bytea], Bytea, Pure(digest::<sha2::Sha512>)),
    row(1714, "convert_from", &[Bytea, Name], Text, Pure(convert_from)).stable(),
    row(1717, "convert_to", &[Text, Name], Bytea, Pure(convert_to)).stable(),
    row(1813, "convert", &[Bytea, Name, Name], Bytea, Pure(convert)).stable(),
    row(1713, "length", &[Bytea, Name], Int4, Pure(characters)).stable(),
];

pub(super) fn bytes(value: &Value) -> Result<&[u8]> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(EngineError::internal(format!("{other:?} is used as bytes"))),
    }
}

/// Bytes that are made of others, of about that length.
fn made(length: usize) -> Result<Vec<u8>> {
    check_length(length)?;
    Ok(Vec::with_capacity(length))
}

fn length(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Int4(bytes(&arguments[0])?.len() as i32))
}

fn bit_length(arguments: &[Value]) -> Result<Value> {
    let bits = bytes(&arguments[0])?.len() * 8;
    i32::try_from(bits)
        .map(Value::Int4)
        .map_err(|_| super::out_of_range("integer"))
}

fn bit_count(arguments: &[Value]) -> Result<Value> {
    let ones = bytes(&arguments[0])?
        .iter()
        .map(|byte| i64::from(byte.count_ones()));
    Ok(Value::Int8(ones.sum()))
}

/// The place of a number; 2202E if there is none.
fn place(number: i64, length: usize) -> Result<usize> {
    usize::try_from(number)
        .ok()
        .filter(|number| *number < length)
        .ok_or_else(|| {
            EngineError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                format!("index {number} out of valid range, 0..{}", length as i64 - 1),
            )
        })
}

fn get_byte(arguments: &[Value]) -> Result<Value> {
    let bytes = bytes(&arguments[0])?;
    let at = place(i64::from(int(&arguments[1])?), bytes.len())?;
    Ok(Value::Int4(i32::from(bytes[at])))
}

fn set_byte(arguments: &[Value]) -> Result<Value> {
    let mut changed: Box<[u8]> = bytes(&arguments[0])?.into();
    let at = place(i64::from(int(&arguments[1])?), changed.len())?;
    changed[at] = int(&arguments[2])? as u8;
    Ok(Value::Bytes(changed))
}

fn bit_place(value: &Value, length: usize) -> Result<(usize, u32)> {
    let number = value.as_i64().unwrap_or(-1);
    let at = place(number, length * 8)?;
    Ok((at / 8, (at % 8) as u32))
}

fn get_bit(arguments: &[Value]) -> Result<Value> {
    let bytes = bytes(&arguments[0])?;
    let (at, bit) = bit_place(&arguments[1], bytes.len())?;
    Ok(Value::Int4(i32::from(bytes[at] >> bit & 1)))
}

fn set_bit(arguments: &[Value]) -> Result<Value> {
    let mut changed: Box<[u8]> = bytes(&arguments[0])?.into();
    let (at, bit) = bit_place(&arguments[1], changed.len())?;
    changed[at] = match int(&arguments[2])? {
        0 => changed[at] & !(1 << bit),
        1 => changed[at] | 1 << bit,
        _ => {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "new bit must be 0 or 1",
            ));
        }
    };
    Ok(Value::Bytes(changed))
}

/// The part that begins with a number, counted from 1, and has a length, or goes to the end.
fn part(bytes: &[u8], start: i64, length: Option<i64>) -> Result<&[u8]> {
    let end = match length {
        Some(..0) => {
            return Err(EngineError::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(length) => start + length,
        None => i64::MAX,
    };
    let within = |number: i64| (number - 1).clamp(0, bytes.len() as i64) as usize;
    let (start, end) = (within(start.max(1)), within(end.max(1)));
    Ok(&bytes[start.min(end)..end])
}

fn substring(arguments: &[Value]) -> Result<Value> {
    let length = arguments.get(2).map(int).transpose()?.map(i64::from);
    let part = part(bytes(&arguments[0])?, i64::from(int(&arguments[1])?), length)?;
    Ok(Value::Bytes(part.into()))
}

fn overlay(arguments: &[Value]) -> Result<Value> {
    let (around, put) = (bytes(&arguments[0])?, bytes(&arguments[1])?);
    let start = i64::from(int(&arguments[2])?);
    let length = match arguments.get(3) {
        Some(length) => i64::from(int(length)?),
        None => put.len() as i64,
    };
    if start <= 0 {
        return Err(EngineError::new(
            SqlState::SUBSTRING_ERROR,
            "negative substring length not allowed",
        ));
    }
    let mut result = made(around.len() + put.len())?;
    result.extend_from_slice(part(around, 1, Some(start - 1))?);
    result.extend_from_slice(put);
    result.extend_from_slice(part(around, start + length, None)?);
    Ok(Value::Bytes(result.into()))
}

fn position(arguments: &[Value]) -> Result<Value> {
    let (all, wanted) = (bytes(&arguments[0])?, bytes(&arguments[1])?);
    if wanted.is_empty() {
        return Ok(Value::Int4(1));
    }
    let found = memmem(all, wanted);
    Ok(Value::Int4(found.map_or(0, |at| at as i32 + 1)))
}

/// The first place where `wanted` stands: linear in both lengths, by the failure function of Knuth, Morris and Pratt.
fn memmem(all: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut back = vec![0; wanted.len()];
    let mut matched = 0;
    for at in 1..wanted.len() {
        while matched > 0 && wanted[at] != wanted[matched] {
            matched = back[matched - 1];
        }
        matched += usize::from(wanted[at] == wanted[matched]);
        back[at] = matched;
    }
    matched = 0;
    for (at, byte) in all.iter().enumerate() {
        while matched > 0 && *byte != wanted[matched] {
            matched = back[matched - 1];
        }
        matched += usize::from(*byte == wanted[matched]);
        if matched == wanted.len() {
            return Some(at + 1 - matched);
        }
    }
    None
}

fn trim(arguments: &[Value], left: bool, right: bool) -> Result<Value> {
    let (mut rest, cut) = (bytes(&arguments[0])?, bytes(&arguments[1])?);
    let mut is_cut = [false; 256];
    cut.iter().for_each(|byte| is_cut[usize::from(*byte)] = true);
    while let ([first, behind @ ..], true) = (rest, left) {
        if !is_cut[usize::from(*first)] {
            break;
        }
        rest = behind;
    }
    while let ([before @ .., last], true) = (rest, right) {
        if !is_cut[usize::from(*last)] {
            break;
        }
        rest = before;
    }
    Ok(Value::Bytes(rest.into()))
}

fn concatenated(arguments: &[Value]) -> Result<Value> {
    let (first, second) = (bytes(&arguments[0])?, bytes(&arguments[1])?);
    let mut result = made(first.len() + second.len())?;
    result.extend_from_slice(first);
    result.extend_from_slice(second);
    Ok(Value::Bytes(result.into()))
}

fn md5(arguments: &[Value]) -> Result<Value> {
    let mut text = String::new();
    push_hex(&md5::Md5::digest(bytes(&arguments[0])?), &mut text);
    Ok(Value::text(text))
}

fn digest<D: sha2::Digest>(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Bytes(D::digest(bytes(&arguments[0])?).as_slice().into()))
}

/// The encodings of texts that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
    /// Bytes without a meaning.
    Ascii,
}

impl Encoding {
    /// The encoding of a name, of which letters and digits count.
    fn named(name: &str, what: &str) -> Result<Encoding> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.to_ascii_lowercase().as_str() {
            "utf8" | "unicode" => Ok(Encoding::Utf8),
            "latin1" | "iso88591" => Ok(Encoding::Latin1),
            "sqlascii" => Ok(Encoding::Ascii),
            known if KNOWN_ELSEWHERE.contains(&known) || known.starts_with("win") => {
                Err(EngineError::not_supported(format!("the encoding {name}")))
            }
            _ => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid {what} encoding name \"{}\"", shown(name)),
            )),
        }
    }

    /// The text of bytes; 22021 if they are none.
    fn text(self, bytes: &[u8]) -> Result<String> {
        check_length(bytes.len())?;
        match self {
            Encoding::Latin1 => {
                let text: String = bytes.iter().copied().map(char::from).collect();
                crate::value::text::check_text(&text)?;
                Ok(text)
            }
            Encoding::Utf8 | Encoding::Ascii => {
                let text =
                    std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
                crate::value::text::check_text(text)?;
                Ok(text.to_owned())
            }
        }
    }

    /// The bytes of a text; 22P05 for a character that the encoding has not.
    fn bytes(self, text: &str) -> Result<Vec<u8>> {
        if self != Encoding::Latin1 {
            return Ok(text.as_bytes().to_vec());
        }
        let byte = |character: char| {
            u8::try_from(u32::from(character)).map_err(|_| {
                let mut utf8 = [0; 4];
                let shown = hex_list(character.encode_utf8(&mut utf8).as_bytes());
                EngineError::new(
                    SqlState::from_code("22P05"),
                    format!(
                        "character with byte sequence {shown} in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
                    ),
                )
            })
        };
        text.chars().map(byte).collect()
    }
}

/// Encodings of PostgreSQL that are not there.
const KNOWN_ELSEWHERE: &[&str] = &[
    "eucjp",
    "euccn",
    "euckr",
    "euctw",
    "eucjis2004",
    "koi8r",
    "koi8u",
    "koi8",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin7",
    "latin8",
    "latin9",
    "latin10",
    "sjis",
    "big5",
    "gbk",
    "uhc",
    "gb18030",
    "johab",
    "shiftjis2004",
    "mulearnal",
    "iso88595",
    "iso88596",
    "iso88597",
    "iso88598",
];

fn hex_list(bytes: &[u8]) -> String {
    let each: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    each.join(" ")
}

/// The error of bytes that are no text in UTF-8 from `at` on.
#[cold]
pub fn not_utf8(bytes: &[u8], at: usize) -> EngineError {
    // As many bytes as the first one promises.
    let length = match bytes[at] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let end = (at + length).min(bytes.len());
    EngineError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!(
            "invalid byte sequence for encoding \"UTF8\": {}",
            hex_list(&bytes[at..end])
        ),
    )
}

fn convert_from(arguments: &[Value]) -> Result<Value> {
    let encoding = Encoding::named(text_of(&arguments[1])?, "source")?;
    Ok(Value::text(encoding.text(bytes(&arguments[0])?)?))
}

fn convert_to(arguments: &[Value]) -> Result<Value> {
    let encoding = Encoding::named(text_of(&arguments[1])?, "destination")?;
    let text = text_of(&arguments[0])?;
    check_length(text.len())?;
    Ok(Value::Bytes(encoding.bytes(text)?.into()))
}

fn convert(arguments: &[Value]) -> Result<Value> {
    let from = Encoding::named(text_of(&arguments[1])?, "source")?;
    let to = Encoding::named(text_of(&arguments[2])?, "destination")?;
    let text = from.text(bytes(&arguments[0])?)?;
    Ok(Value::Bytes(to.bytes(&text)?.into()))
}

fn characters(arguments: &[Value]) -> Result<Value> {
    let encoding = Encoding::named(text_of(&arguments[1])?, "source")?;
    let text = encoding.text(bytes(&arguments[0])?)?;
    Ok(Value::Int4(text.chars().count() as i32))
}
