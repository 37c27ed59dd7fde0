//! Types that users define: enumerations, domains, composite types, and the types of tables' rows.
//!
//! A [`DataType`] holds such a type's number and kind, and no more, so that it stays small and a plan stays right while
//! the type is renamed. Everything else is asked of the catalog *in force* ([`in_force`]).
//!
//! # Numbers
//!
//! | number | type |
//! | --- | --- |
//! | below 2^29 | what CREATE TYPE and CREATE DOMAIN have made: from the numbers of relations |
//! | its table's + 2^29 | the type of a table's rows, which needs no row of the catalog |
//! | its elements' + 2^30 | an array |
//!
//! # Rules
//!
//! - U1: a number says nothing without a catalog, and the catalog in force is the one that the running statement was
//!   planned with: a session puts it there before it binds, and before it runs.
//! - U2: a value of an enumeration is the type's number and a *position* that its label keeps for ever. Positions order
//!   as labels do, so values are compared, hashed and written into index keys without the catalog. A label that is
//!   added between two others gets a position between theirs; a label that is renamed keeps its own.
//! - U3: a value of a domain is one of its base type. The domain is asked when a value becomes one,
//!   never when it is read.
//! - U4: what a table's rows hold of a composite type are the first fields of the type, most often all: those behind
//!   them were added later and are NULL. So the fields of a type do not change while a column has it, except that new ones
//!   come behind them; and not even that while an index has such values, whose keys have no room for new fields.

mod composite;
mod domain;
mod enumeration;
pub mod in_force;

use std::sync::Arc;

use crate::value::DataType;
use crate::value::type_table::TypeOid;

pub use composite::{CompositeType, Field};
pub use domain::{DomainCheck, DomainType};
pub use enumeration::{EnumLabel, EnumType, LabelPlace, first_label, label_exists};
pub(crate) use enumeration::{position_of, require_committed, write_label};

/// The text in the place of what the catalog in force does not know.
pub(crate) const UNKNOWN: &str = "???";

/// Added to a table's number for that of the type of its rows.
pub const ROW_TYPE_OFFSET: u32 = 1 << 29;

/// A type that users have defined.
#[derive(Debug, Clone)]
pub struct UserType {
    /// Its number.
    pub oid: TypeOid,
    /// The number of its schema.
    pub schema_oid: u32,
    /// The name of its schema.
    pub schema: Arc<str>,
    /// Its name.
    pub name: String,
    /// The number of the role that owns it.
    pub owner: u32,
    /// Its definition.
    pub kind: UserTypeKind,
}

/// The definition of a type.
#[derive(Debug, Clone)]
pub enum UserTypeKind {
    /// CREATE TYPE … AS ENUM
    Enum(EnumType),
    /// CREATE DOMAIN
    Domain(DomainType),
    /// CREATE TYPE … AS, or a table
    Composite(CompositeType),
}

impl UserType {
    /// The type as values and columns have it.
    pub fn data_type(&self) -> DataType {
        match self.kind {
            UserTypeKind::Enum(_) => DataType::Enum(self.oid),
            UserTypeKind::Domain(_) => DataType::Domain(self.oid),
            UserTypeKind::Composite(_) => DataType::Composite(self.oid),
        }
    }

    /// The definition of an enumeration.
    pub fn enumeration(&self) -> Option<&EnumType> {
        match &self.kind {
            UserTypeKind::Enum(definition) => Some(definition),
            _ => None,
        }
    }

    /// The definition of a domain.
    pub fn domain(&self) -> Option<&DomainType> {
        match &self.kind {
            UserTypeKind::Domain(definition) => Some(definition),
            _ => None,
        }
    }

    /// The definition of a composite type.
    pub fn composite(&self) -> Option<&CompositeType> {
        match &self.kind {
            UserTypeKind::Composite(definition) => Some(definition),
            _ => None,
        }
    }

    /// The types that the definition names.
    pub fn parts(&self) -> Vec<DataType> {
        match &self.kind {
            UserTypeKind::Enum(_) => Vec::new(),
            UserTypeKind::Domain(domain) => vec![domain.base],
            UserTypeKind::Composite(composite) => {
                composite.fields.iter().map(|field| field.data_type).collect()
            }
        }
    }
}

/// The name of the array type of a type of this name, where no other type has that name.
pub fn array_name(name: &str) -> String {
    /// The most bytes of a name.
    const NAME_BYTES_MAX: usize = 63;
    let mut shown = format!("_{name}");
    shown.truncate(shown.floor_char_boundary(NAME_BYTES_MAX));
    shown
}

/// The name that a type has in the texts of definitions, whatever its own is.
pub fn numbered(oid: TypeOid) -> String {
    format!("@{}", oid.get())
}

/// The type of this number in the catalog in force. A number that only the rows of a table can have needs no catalog: a
/// definition that names it may be read before the table's own.
pub fn of_oid(oid: u32) -> Option<DataType> {
    let number = TypeOid::new(oid)?;
    if oid >= ROW_TYPE_OFFSET {
        return Some(DataType::Composite(number));
    }
    Some(in_force::get(number)?.data_type())
}

/// The type in the catalog in force that this one is, if users have made it.
pub fn definition_of(data_type: DataType) -> Option<Arc<UserType>> {
    in_force::get(data_type.user_oid()?)
}

/// The name of a type in `pg_type`.
pub(crate) fn name_of(oid: TypeOid) -> String {
    in_force::get(oid).map_or_else(|| UNKNOWN.to_owned(), |found| found.name.clone())
}

/// The name of a type as SQL and errors show it: in quotes and with its schema where that is needed.
pub(crate) fn shown_name(oid: TypeOid) -> String {
    in_force::get(oid).map_or_else(|| UNKNOWN.to_owned(), |found| in_force::shown(&found))
}

/// The type that a domain is over, which is no domain; the domain itself if it is unknown.
pub(crate) fn base_of(oid: TypeOid) -> DataType {
    base_and_modifier(DataType::Domain(oid), -1).0
}

/// The type that a domain is over, which is no domain, and its modifier; of another type itself and `typmod`.
pub fn base_and_modifier(data_type: DataType, typmod: i32) -> (DataType, i32) {
    let (mut found, mut typmod) = (data_type, typmod);
    while let DataType::Domain(_) = found {
        match definition_of(found).as_deref().and_then(UserType::domain) {
            Some(domain) => (found, typmod) = (domain.base, domain.typmod),
            None => break,
        }
    }
    (found, typmod)
}
