//! Statements about roles. The names in them are looked up when they run: nothing else of a plan depends on them.

use std::fmt;

/// A role that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The user whose privileges count now (`CURRENT_USER`, `CURRENT_ROLE`).
    Current,
    /// The user of the session (`SESSION_USER`).
    Session,
    /// All roles (`PUBLIC`).
    Public,
    /// The role of this name.
    Named(String),
}

/// A text that is not shown: a password or its verifier.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// The words behind CREATE ROLE or ALTER ROLE; what is not said is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleOptions {
    /// SUPERUSER
    pub superuser: Option<bool>,
    /// CREATEDB
    pub create_databases: Option<bool>,
    /// CREATEROLE
    pub create_roles: Option<bool>,
    /// INHERIT
    pub inherit: Option<bool>,
    /// LOGIN
    pub login: Option<bool>,
    /// REPLICATION
    pub replication: Option<bool>,
    /// BYPASSRLS
    pub bypass_row_security: Option<bool>,
    /// CONNECTION LIMIT
    pub connection_limit: Option<i32>,
    /// PASSWORD; `None` inside is NULL.
    pub password: Option<Option<Secret>>,
    /// VALID UNTIL, as written.
    pub valid_until: Option<String>,
    /// IN ROLE: the roles that it becomes a member of.
    pub in_roles: Option<Vec<Owner>>,
    /// ROLE: those that become its members.
    pub members: Option<Vec<Owner>>,
    /// ADMIN: those that become its members with the admin option.
    pub admins: Option<Vec<Owner>>,
}

/// A statement about roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleStatement {
    /// CREATE ROLE, CREATE USER, CREATE GROUP
    Create {
        /// Its name.
        name: String,
        /// Its options; LOGIN is there for a user.
        options: Box<RoleOptions>,
    },
    /// ALTER ROLE … with options
    Alter {
        /// The role.
        role: Owner,
        /// The changes.
        options: Box<RoleOptions>,
    },
    /// ALTER GROUP … ADD USER, DROP USER
    Members {
        /// The role.
        group: Owner,
        /// The members.
        members: Vec<Owner>,
        /// True for ADD.
        add: bool,
    },
    /// ALTER ROLE … RENAME TO
    Rename {
        /// Its name.
        name: String,
        /// Its name from now on.
        to: String,
    },
    /// ALTER ROLE … SET, ALTER ROLE … RESET
    Set {
        /// The role; absent for ALL.
        role: Option<Owner>,
        /// IN DATABASE
        database: Option<String>,
        /// The setting; absent for RESET ALL.
        name: Option<String>,
        /// Its value; absent for RESET and for SET … TO DEFAULT.
        value: Option<String>,
        /// True for SET … FROM CURRENT.
        from_current: bool,
    },
    /// DROP ROLE
    Drop {
        /// The roles.
        roles: Vec<Owner>,
        /// True if a missing role is no error (a notice tells).
        if_exists: bool,
    },
    /// REASSIGN OWNED
    ReassignOwned {
        /// The owners.
        roles: Vec<Owner>,
        /// The owner of what they own.
        to: Owner,
    },
    /// DROP OWNED
    DropOwned {
        /// The owners.
        roles: Vec<Owner>,
        /// True if what depends on what they own goes as well.
        cascade: bool,
    },
    /// GRANT role TO role, REVOKE role FROM role
    Grant {
        /// The roles that are granted.
        roles: Vec<String>,
        /// Those that become members.
        members: Vec<Owner>,
        /// True for GRANT.
        is_grant: bool,
        /// WITH ADMIN OPTION; in REVOKE that option alone.
        admin_option: bool,
        /// GRANTED BY
        grantor: Option<Owner>,
    },
}

/// The kind of objects of ALTER DEFAULT PRIVILEGES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultsOf {
    /// Tables and views.
    Tables,
    /// Sequences.
    Sequences,
    /// Schemas.
    Schemas,
}

impl RoleStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            RoleStatement::Create { .. } => "CREATE ROLE",
            RoleStatement::Alter { .. }
            | RoleStatement::Members { .. }
            | RoleStatement::Rename { .. }
            | RoleStatement::Set { .. } => "ALTER ROLE",
            RoleStatement::Drop { .. } => "DROP ROLE",
            RoleStatement::ReassignOwned { .. } => "REASSIGN OWNED",
            RoleStatement::DropOwned { .. } => "DROP OWNED",
            RoleStatement::Grant { is_grant: true, .. } => "GRANT ROLE",
            RoleStatement::Grant { is_grant: false, .. } => "REVOKE ROLE",
        }
    }
}
