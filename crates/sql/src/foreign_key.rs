//! Foreign keys: the rows of one table name rows of another, by a key that a unique index of that one has.
//!
//! Columns are kept by their attributes' numbers, which never change: neither table has to
//! be redefined when the other one loses a column.

use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

/// The fate of the referencing rows when a row that they name goes, or gets another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferentialAction {
    /// The statement is refused if there are any, when the constraint is checked.
    NoAction,
    /// As NO ACTION, but the check is never deferred, and another row with the key does not help.
    Restrict,
    /// They go too, or get the new key.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

impl ReferentialAction {
    const ALL: [(ReferentialAction, char, &'static str); 5] = [
        (ReferentialAction::NoAction, 'a', "NO ACTION"),
        (ReferentialAction::Restrict, 'r', "RESTRICT"),
        (ReferentialAction::Cascade, 'c', "CASCADE"),
        (ReferentialAction::SetNull, 'n', "SET NULL"),
        (ReferentialAction::SetDefault, 'd', "SET DEFAULT"),
    ];

    /// Its letter in `pg_constraint`.
    pub fn letter(self) -> char {
        Self::ALL[self as usize].1
    }

    /// Its words.
    pub fn words(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// The action of this letter.
    pub fn of_letter(letter: char) -> Option<ReferentialAction> {
        let found = Self::ALL.iter().find(|(_, known, _)| *known == letter);
        found.map(|(action, ..)| *action)
    }

    /// True if its check waits for the end of the transaction where the constraint is deferred.
    pub fn is_deferrable(self) -> bool {
        self == ReferentialAction::NoAction
    }
}

/// The time at which a constraint is checked: a foreign key, or the key of a unique index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckTime {
    /// DEFERRABLE: SET CONSTRAINTS may change it.
    pub deferrable: bool,
    /// INITIALLY DEFERRED: at the end of the transaction, unless SET CONSTRAINTS says otherwise.
    pub initially_deferred: bool,
}

/// A foreign key of a table.
#[derive(Debug, Clone)]
pub struct ForeignKeyDef {
    /// Its own number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The attributes of the table, in order.
    pub columns: Vec<u16>,
    /// The number of the referenced table.
    pub parent: u32,
    /// The attributes of the referenced table, in the same order.
    pub parent_columns: Vec<u16>,
    /// The number of the unique index over them.
    pub index: u32,
    /// MATCH FULL: all columns are NULL, or none is.
    pub is_full: bool,
    /// ON DELETE
    pub on_delete: ReferentialAction,
    /// The attributes that ON DELETE SET NULL or SET DEFAULT changes, if not all.
    pub on_delete_columns: Vec<u16>,
    /// ON UPDATE
    pub on_update: ReferentialAction,
    /// DEFERRABLE, INITIALLY DEFERRED
    pub check_time: CheckTime,
    /// False after NOT VALID: rows from before it may name no row.
    pub validated: bool,
}

/// The types whose values are compared with one another as they are.
fn family(data_type: DataType) -> Option<u8> {
    match data_type {
        DataType::Int2 | DataType::Int4 | DataType::Int8 => Some(0),
        DataType::Float4 | DataType::Float8 => Some(1),
        DataType::Text | DataType::Varchar | DataType::Name => Some(2),
        DataType::Date | DataType::Timestamp | DataType::TimestampTz => Some(3),
        _ => None,
    }
}

/// The relation between the types of a referencing column and of the one that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTypes {
    /// There is an operator for the two.
    Comparable,
    /// The referencing value is brought to the other type.
    Converted,
    /// They cannot be compared.
    Incompatible,
}

/// The relation between the type of a referencing column and that of the one that it names.
pub fn key_types(from: DataType, parent: DataType) -> KeyTypes {
    if from == parent || family(from).is_some() && family(from) == family(parent) {
        KeyTypes::Comparable
    } else if can_cast(from, parent, CastContext::Implicit) {
        KeyTypes::Converted
    } else {
        KeyTypes::Incompatible
    }
}
