//! The treatment of a column's long values.

use crate::value::{DataType, Value};

/// The treatment of a column's long values: the words of SET STORAGE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnStorage {
    /// In the row, as they are.
    Plain,
    /// Apart from the row, not compressed.
    External,
    /// Compressed, and apart only if the row does not fit on a page otherwise.
    Main,
    /// Compressed, and apart if that is not enough.
    Extended,
}

/// The method by which a column's values are compressed, as SET COMPRESSION has named it. Whatever it says, values are
/// compressed by LZ4, and a value that is there tells how it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnCompression {
    /// The setting's.
    #[default]
    Default,
    /// `pglz`
    Pglz,
    /// `lz4`
    Lz4,
}

impl ColumnCompression {
    const ALL: [ColumnCompression; 3] = [
        ColumnCompression::Default,
        ColumnCompression::Pglz,
        ColumnCompression::Lz4,
    ];

    /// The word in SQL.
    pub fn word(self) -> &'static str {
        match self {
            ColumnCompression::Default => "default",
            ColumnCompression::Pglz => "pglz",
            ColumnCompression::Lz4 => "lz4",
        }
    }

    /// The letter in `pg_attribute.attcompression`; none of the default.
    pub fn letter(self) -> &'static str {
        match self {
            ColumnCompression::Default => "",
            ColumnCompression::Pglz => "p",
            ColumnCompression::Lz4 => "l",
        }
    }

    /// The method of a word of SQL.
    pub fn of_word(word: &str) -> Option<ColumnCompression> {
        ColumnCompression::ALL
            .into_iter()
            .find(|method| method.word() == word)
    }

    /// True for the method of columns where nothing else is said.
    pub fn is_default(&self) -> bool {
        *self == ColumnCompression::Default
    }
}

impl ColumnStorage {
    const ALL: [ColumnStorage; 4] = [
        ColumnStorage::Plain,
        ColumnStorage::External,
        ColumnStorage::Main,
        ColumnStorage::Extended,
    ];

    /// The storage of a type's columns where nothing else is said.
    pub fn of_type(data_type: DataType) -> ColumnStorage {
        match data_type.base() {
            base if base.has_fixed_width() => ColumnStorage::Plain,
            DataType::Name | DataType::Int2Vector | DataType::OidVector => ColumnStorage::Plain,
            DataType::Numeric => ColumnStorage::Main,
            _ => ColumnStorage::Extended,
        }
    }

    /// True if a column of the type may have it.
    pub fn is_for(self, data_type: DataType) -> bool {
        self == ColumnStorage::Plain || ColumnStorage::of_type(data_type) != ColumnStorage::Plain
    }

    /// The word in SQL, in upper case.
    pub fn word(self) -> &'static str {
        match self {
            ColumnStorage::Plain => "PLAIN",
            ColumnStorage::External => "EXTERNAL",
            ColumnStorage::Main => "MAIN",
            ColumnStorage::Extended => "EXTENDED",
        }
    }

    /// The letter in `pg_attribute.attstorage`.
    pub fn letter(self) -> char {
        match self {
            ColumnStorage::Plain => 'p',
            ColumnStorage::External => 'e',
            ColumnStorage::Main => 'm',
            ColumnStorage::Extended => 'x',
        }
    }

    /// The storage of a letter.
    pub fn of_letter(letter: char) -> Option<ColumnStorage> {
        ColumnStorage::ALL
            .into_iter()
            .find(|storage| storage.letter() == letter)
    }

    /// The storage of a word of SQL, in any case.
    pub fn of_word(word: &str) -> Option<ColumnStorage> {
        ColumnStorage::ALL
            .into_iter()
            .find(|storage| storage.word().eq_ignore_ascii_case(word))
    }

    /// The letter as a value of type `"char"`.
    pub fn letter_value(self) -> Value {
        Value::text(self.letter().to_string())
    }
}
