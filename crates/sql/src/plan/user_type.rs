//! Statements about types that users define.

use std::sync::Arc;

use crate::catalog::SchemaRef;
use crate::plan::{AlterTablePlan, Owner};
use crate::value::DataType;
use crate::value::user_type::{Field, LabelPlace, UserType};

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
    /// CREATE TYPE … AS
    CreateComposite {
        /// The schema that it goes to.
        schema: SchemaRef,
        /// Its name.
        name: String,
        /// Its fields, in their order.
        fields: Vec<Field>,
    },
    /// CREATE DOMAIN
    CreateDomain {
        /// The schema that it goes to.
        schema: SchemaRef,
        /// Its name.
        name: String,
        /// The type that it is over.
        base: DataType,
        /// That type's modifier.
        typmod: i32,
        /// NOT NULL
        not_null: bool,
        /// DEFAULT
        default: Option<String>,
        /// Names and conditions of its constraints.
        checks: Vec<(Option<String>, String)>,
    },
    /// ALTER DOMAIN
    AlterDomain {
        /// The domain.
        of: Arc<UserType>,
        /// The change.
        change: DomainChange,
    },
    /// ALTER TYPE, and what ALTER DOMAIN changes as it does
    Alter {
        /// The type.
        of: Arc<UserType>,
        /// The change.
        change: TypeChange,
        /// The changes of typed tables that follow from it.
        of_tables: Vec<AlterTablePlan>,
        /// True for ALTER DOMAIN.
        domain: bool,
    },
    /// DROP TYPE
    Drop {
        /// The types; a name that does not exist has no definition.
        types: Vec<(String, Option<Arc<UserType>>)>,
        /// True if a missing type is no error (a notice tells).
        if_exists: bool,
        /// True if what depends on them goes as well.
        cascade: bool,
        /// True for DROP DOMAIN.
        domains: bool,
    },
}

/// The change that ALTER DOMAIN makes.
#[derive(Debug, Clone)]
pub enum DomainChange {
    /// SET DEFAULT, DROP DEFAULT
    SetDefault(Option<String>),
    /// SET NOT NULL, DROP NOT NULL
    SetNotNull(bool),
    /// ADD CHECK
    AddCheck {
        /// Its name.
        name: Option<String>,
        /// Its condition.
        condition: String,
        /// False for NOT VALID.
        validated: bool,
    },
    /// DROP CONSTRAINT
    DropConstraint {
        /// Its name.
        name: String,
        /// True if a missing one is no error (a notice tells).
        if_exists: bool,
    },
    /// RENAME CONSTRAINT
    RenameConstraint {
        /// Its name.
        from: String,
        /// Its name from now on.
        to: String,
    },
    /// VALIDATE CONSTRAINT
    Validate(String),
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
    /// RENAME ATTRIBUTE
    RenameAttribute {
        /// The attribute.
        from: String,
        /// Its name from now on.
        to: String,
    },
    /// ADD, DROP and ALTER ATTRIBUTE, by their turns
    Attributes(Vec<AttributeChange>),
    /// SET SCHEMA
    SetSchema(SchemaRef),
    /// OWNER TO
    Owner(Owner),
}

/// A change of a composite type's attributes.
#[derive(Debug, Clone)]
pub enum AttributeChange {
    /// ADD ATTRIBUTE
    Add(Field),
    /// DROP ATTRIBUTE
    Drop {
        /// Its name.
        name: String,
        /// True if a missing one is no error (a notice tells).
        if_exists: bool,
    },
    /// ALTER ATTRIBUTE … TYPE: the attribute as it is from now on
    SetType(Field),
}

impl AttributeChange {
    /// Its turn among the actions of its statement, as that of ALTER TABLE's action on a column.
    pub(crate) fn turn(&self) -> u8 {
        match self {
            AttributeChange::Drop { .. } => 0,
            AttributeChange::SetType(_) => 1,
            AttributeChange::Add(_) => 2,
        }
    }
}

impl TypeStatement {
    /// The changes of typed tables that it stands for beside its own.
    pub fn of_tables(&self) -> &[AlterTablePlan] {
        match self {
            TypeStatement::Alter { of_tables, .. } => of_tables,
            _ => &[],
        }
    }

    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TypeStatement::CreateEnum { .. } | TypeStatement::CreateComposite { .. } => "CREATE TYPE",
            TypeStatement::CreateDomain { .. } => "CREATE DOMAIN",
            TypeStatement::AlterDomain { .. } | TypeStatement::Alter { domain: true, .. } => "ALTER DOMAIN",
            TypeStatement::Alter { .. } => "ALTER TYPE",
            TypeStatement::Drop { domains: true, .. } => "DROP DOMAIN",
            TypeStatement::Drop { .. } => "DROP TYPE",
        }
    }
}
