//! Statements about types that users define.

use std::sync::Arc;

use crate::catalog::SchemaRef;
use crate::plan::Owner;
use crate::value::user_type::{LabelPlace, UserType};

/// A statement about types.
#[derive(Debug, Clone)]
pub enum TypeStatement {
    /// CREATE TYPE … AS ENUM
    CreateEnum {
        /// The schema that it goes to.
        schema: SchemaRef,
        /// Its name.
        name: String,
        /// Its labels, in their order.
        labels: Vec<String>,
    },
    /// ALTER TYPE
    Alter {
        /// The type.
        of: Arc<UserType>,
        /// The change.
        change: TypeChange,
    },
    /// DROP TYPE
    Drop {
        /// The types; a name that does not exist has no definition.
        types: Vec<(String, Option<Arc<UserType>>)>,
        /// True if a missing type is no error (a notice tells).
        if_exists: bool,
        /// True if what depends on them goes as well.
        cascade: bool,
    },
}

/// The change that ALTER TYPE makes.
#[derive(Debug, Clone)]
pub enum TypeChange {
    /// ADD VALUE
    AddLabel {
        /// The new label.
        label: String,
        /// Its place.
        place: LabelPlace,
        /// True if an existing label is no error (a notice tells).
        if_not_exists: bool,
    },
    /// RENAME VALUE
    RenameLabel {
        /// The label.
        from: String,
        /// Its text from now on.
        to: String,
    },
    /// RENAME TO
    Rename(String),
    /// SET SCHEMA
    SetSchema(SchemaRef),
    /// OWNER TO
    Owner(Owner),
}

impl TypeStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TypeStatement::CreateEnum { .. } => "CREATE TYPE",
            TypeStatement::Alter { .. } => "ALTER TYPE",
            TypeStatement::Drop { .. } => "DROP TYPE",
        }
    }
}
