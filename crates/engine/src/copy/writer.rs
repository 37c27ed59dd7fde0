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
        (Some(text), CopyFormat::Text | CopyFormat::Binary) => write_text(line, text, options),
        (Some(text), CopyFormat::Csv) => write_csv(line, text, options, quoted),
    }
}

fn write_text(line: &mut Vec<u8>, text: &str, options: &CopyOptions) {
    for byte in text.bytes() {
        let escaped = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            other if other == options.delimiter => other,
            other => {
                line.push(other);
                continue;
            }
        };
        line.extend_from_slice(&[b'\\', escaped]);
    }
}

fn write_csv(line: &mut Vec<u8>, text: &str, options: &CopyOptions, quoted: bool) {
    let special =
        |byte: u8| byte == options.delimiter || byte == options.quote || byte == b'\n' || byte == b'\r';
    if !quoted && text != options.null && text != "\\." && !text.bytes().any(special) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(options.quote);
    for byte in text.bytes() {
        if byte == options.quote || byte == options.escape {
            line.push(options.escape);
        }
        line.push(byte);
    }
    line.push(options.quote);
}
