//! Values into lines of COPY data.

use clearway_sql::plan::{CopyFormat, CopyOptions};

/// Appends one field; `None` is NULL. `quoted`: CSV has it in quotes in any case.
pub(crate) fn write_field(
    line: &mut Vec<u8>,
    field: Option<&str>,
    options: &CopyOptions,
    (first, quoted): (bool, bool),
) {
    if !first {
        line.push(options.delimiter);
    }
    match (field, options.format) {
        (None, _) => line.extend_from_slice(options.null.as_bytes()),
        // Binary fields have a writer of their own.
        (Some(text), CopyFormat::Text | CopyFormat::Binary) => {
            write_escaped(line, text, |byte| text_escape(byte, options));
        }
        (Some(text), CopyFormat::Csv) => write_csv(line, text, options, quoted),
    }
}

fn write_csv(line: &mut Vec<u8>, text: &str, options: &CopyOptions, quoted: bool) {
    if !quoted && text != options.null && text != "\\." && !has_special(text.as_bytes(), options) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(options.quote);
    write_escaped(line, text, |byte| csv_escape(byte, options));
    line.push(options.quote);
}

/// True if CSV has a field with these bytes in quotes.
pub(super) fn has_special(bytes: &[u8], options: &CopyOptions) -> bool {
    let special =
        |byte: &u8| *byte == options.delimiter || *byte == options.quote || *byte == b'\n' || *byte == b'\r';
    bytes.iter().any(special)
}

/// The two bytes that stand for one in the text format, if it does not stand for itself.
#[inline]
pub(super) fn text_escape(byte: u8, options: &CopyOptions) -> Option<[u8; 2]> {
    let escaped = match byte {
        8 => b'b',
        12 => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        11 => b'v',
        b'\\' => b'\\',
        other if other == options.delimiter => other,
        _ => return None,
    };
    Some([b'\\', escaped])
}

/// The same in the quotes of CSV.
#[inline]
pub(super) fn csv_escape(byte: u8, options: &CopyOptions) -> Option<[u8; 2]> {
    (byte == options.quote || byte == options.escape).then_some([options.escape, byte])
}

#[inline]
fn write_escaped(line: &mut Vec<u8>, text: &str, escape: impl Fn(u8) -> Option<[u8; 2]>) {
    for byte in text.bytes() {
        match escape(byte) {
            None => line.push(byte),
            Some(escaped) => line.extend_from_slice(&escaped),
        }
    }
}

/// Gives bytes to `take` with what is escaped escaped, and those between as they lie there.
pub(super) fn each_escaped<E>(
    bytes: &[u8],
    escape: impl Fn(u8) -> Option<[u8; 2]>,
    take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if let Some(escaped) = escape(*byte) {
            if from < at {
                take(&bytes[from..at])?;
            }
            take(&escaped)?;
            from = at + 1;
        }
    }
    match bytes.get(from..) {
        Some(rest) if !rest.is_empty() => take(rest),
        _ => Ok(()),
    }
}
