//! GRANT and REVOKE of privileges on objects.

use std::sync::Arc;

use crate::catalog::TableDef;
use crate::plan::{DefaultsOf, Owner};

/// GRANT or REVOKE.
#[derive(Debug, Clone)]
pub struct GrantPlan<Table = Arc<TableDef>> {
    /// True for GRANT.
    pub is_grant: bool,
    /// The privileges, in lower case, with the columns that they are on; `all` for all of them.
    pub privileges: Vec<(String, Vec<String>)>,
    /// The objects.
    pub objects: GrantObjects<Table>,
    /// The roles.
    pub grantees: Vec<Owner>,
    /// WITH GRANT OPTION; in REVOKE that option alone.
    pub grant_option: bool,
    /// True if what others have granted by it goes as well.
    pub cascade: bool,
    /// GRANTED BY
    pub grantor: Option<Owner>,
}

/// The objects of GRANT.
#[derive(Debug, Clone)]
pub enum GrantObjects<Table = Arc<TableDef>> {
    /// ON TABLE, which may be views and sequences.
    Tables(Vec<Table>),
    /// ON SEQUENCE
    Sequences(Vec<Table>),
    /// ON ALL TABLES IN SCHEMA
    TablesIn(Vec<String>),
    /// ON ALL SEQUENCES IN SCHEMA
    SequencesIn(Vec<String>),
    /// ON SCHEMA
    Schemas(Vec<String>),
    /// ON DATABASE
    Databases(Vec<String>),
    /// ALTER DEFAULT PRIVILEGES
    Defaults {
        /// FOR ROLE; the current one if there is none.
        roles: Vec<Owner>,
        /// IN SCHEMA; everywhere if there is none.
        schemas: Vec<String>,
        /// The objects to be made.
        of: DefaultsOf,
    },
}

impl GrantPlan {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match (&self.objects, self.is_grant) {
            (GrantObjects::Defaults { .. }, _) => "ALTER DEFAULT PRIVILEGES",
            (_, true) => "GRANT",
            (_, false) => "REVOKE",
        }
    }
}
