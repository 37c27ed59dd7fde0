//! Lines of COPY data in text format without escapes, split where they lie.
//!
//! Nearly every line has no backslash but those of NULLs, and then its fields are what stands between its delimiters:
//! nothing has to be copied field by field. One look at each byte finds the delimiters and whatever makes a line another
//! one. That is split by the general way, which also has the errors.

use clearway_sql::plan::{CopyFormat, CopyOptions};

/// A field's place in the text of its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) null: bool,
}

/// The splitter of such lines.
#[derive(Debug)]
pub(super) struct PlainLines<'a> {
    null: &'a [u8],
    /// True for a byte that is not simply part of a field: the delimiter, a backslash, a carriage return, and zero.
    special: [bool; 256],
    delimiter: u8,
    /// True if no line is plain: in another format, or if the delimiter may be part of a character.
    never: bool,
}

impl<'a> PlainLines<'a> {
    pub(super) fn new(options: &'a CopyOptions) -> PlainLines<'a> {
        let mut special = [false; 256];
        for byte in [options.delimiter, b'\\', b'\r', 0] {
            special[usize::from(byte)] = true;
        }
        PlainLines {
            null: options.null.as_bytes(),
            special,
            delimiter: options.delimiter,
            never: options.format != CopyFormat::Text || !options.delimiter.is_ascii(),
        }
    }

    /// Appends the fields of a plain line; `false` if it is another one.
    pub(super) fn split(&self, line: &[u8], fields: &mut Vec<Field>) -> bool {
        if self.never {
            return false;
        }
        let mut start = 0;
        loop {
            let rest = &line[start..];
            let mut length = self.plain_bytes(rest);
            // NULL may be spelled with a backslash.
            if rest.get(length).is_some_and(|byte| *byte == b'\\') {
                if length > 0 || !rest.starts_with(self.null) {
                    return false;
                }
                length = self.null.len();
            }
            let ends_line = match rest.get(length) {
                None => true,
                Some(byte) if *byte == self.delimiter => false,
                Some(_) => return false,
            };
            fields.push(Field {
                start: start as u32,
                end: (start + length) as u32,
                null: &rest[..length] == self.null,
            });
            if ends_line {
                return true;
            }
            start += length + 1;
        }
    }

    /// Number of bytes in front of the first that is special.
    #[inline]
    fn plain_bytes(&self, bytes: &[u8]) -> usize {
        let found = bytes.iter().position(|byte| self.special[usize::from(*byte)]);
        found.unwrap_or(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(null: &str) -> CopyOptions {
        CopyOptions {
            format: CopyFormat::Text,
            delimiter: b'|',
            null: null.to_owned(),
            header: false,
            matches: false,
            quote: b'"',
            escape: b'"',
            freeze: false,
            forced: Default::default(),
        }
    }

    /// The fields of a line, NULL as `~`; nothing if it is not plain.
    fn fields_of<'l>(null: &str, line: &'l str) -> Option<Vec<&'l str>> {
        let options = options(null);
        let mut fields = Vec::new();
        let plain = PlainLines::new(&options).split(line.as_bytes(), &mut fields);
        plain.then(|| {
            fields
                .iter()
                .map(|field| match field.null {
                    true => "~",
                    false => &line[field.start as usize..field.end as usize],
                })
                .collect()
        })
    }

    #[test]
    fn plain_lines_are_split_where_they_lie() {
        let plain = [
            ("", vec![""]),
            ("a", vec!["a"]),
            ("a|b", vec!["a", "b"]),
            ("|", vec!["", ""]),
            ("a|\\N|c", vec!["a", "~", "c"]),
            ("\\N", vec!["~"]),
            ("\\N|\\N", vec!["~", "~"]),
            ("å|∑", vec!["å", "∑"]),
        ];
        for (line, expected) in plain {
            assert_eq!(fields_of("\\N", line), Some(expected), "{line:?}");
        }
        assert_eq!(fields_of("", "a||b|"), Some(vec!["a", "~", "b", "~"]));
        assert_eq!(fields_of("none", "none|nones|a"), Some(vec!["~", "nones", "a"]));
    }

    #[test]
    fn other_lines_are_left_to_the_general_way() {
        for line in [
            "a\\tb", "\\N\\N", "x\\N", "\\Nx", "a\\", "a|\\", "a\rb", "a|b\0", "\\", "\\M",
        ] {
            assert_eq!(fields_of("\\N", line), None, "{line:?}");
        }
        assert_eq!(fields_of("", "\\"), None);
        assert_eq!(fields_of("none", "\\N"), None);
    }
}
