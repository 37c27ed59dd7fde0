//! Roles, memberships and the database as the bytes of rows of the catalog heap ([`stored`](super::stored)).

use serde::{Deserialize, Serialize};

use super::access::{Access, Acl, DefaultAclKey};
use super::role::{Membership, Role};

use clearway_sql::error::{EngineError, Result, SqlState};

/// A row must fit a page with room for its successor's header.
const ROLE_BYTES_MAX: usize = 7_900;

/// The beginning of a row that is a role.
const ROLE: &[u8] = b"{\"role\":";

/// The beginning of a row that is a list of ALTER DEFAULT PRIVILEGES.
const DEFAULTS: &[u8] = b"{\"defaults\":";

/// The beginning of the row that is the database.
const DATABASE: &[u8] = b"{\"database\":";

/// The beginning of a row that is a membership.
const MEMBER: &[u8] = b"{\"member\":";

/// A row of one of these kinds.
pub(super) enum RoleRow {
    Database(Access),
    Role(Role),
    Member(Membership),
    Defaults(DefaultAclKey, Acl),
}

/// Decodes a row, if it is one of these.
pub(super) fn decode(bytes: &[u8]) -> serde_json::Result<Option<RoleRow>> {
    if bytes.starts_with(DATABASE) {
        let stored: StoredDatabase = serde_json::from_slice(bytes)?;
        return Ok(Some(RoleRow::Database(stored.database)));
    }
    if bytes.starts_with(ROLE) {
        return serde_json::from_slice(bytes).map(|role| Some(RoleRow::Role(role)));
    }
    if bytes.starts_with(MEMBER) {
        return serde_json::from_slice(bytes).map(|member| Some(RoleRow::Member(member)));
    }
    if bytes.starts_with(DEFAULTS) {
        let stored: StoredDefaults = serde_json::from_slice(bytes)?;
        return Ok(Some(RoleRow::Defaults(stored.defaults, stored.acl)));
    }
    Ok(None)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDefaults {
    defaults: DefaultAclKey,
    acl: Acl,
}

/// Encodes a list of ALTER DEFAULT PRIVILEGES as a catalog row.
pub(crate) fn encode_defaults(key: DefaultAclKey, acl: &Acl) -> Result<Vec<u8>> {
    let stored = StoredDefaults {
        defaults: key,
        acl: acl.clone(),
    };
    let bytes = serde_json::to_vec(&stored)
        .map_err(|error| EngineError::internal(format!("cannot encode default privileges: {error}")))?;
    debug_assert!(bytes.starts_with(DEFAULTS));
    Ok(bytes)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDatabase {
    database: Access,
}

/// Encodes the database as a catalog row.
pub(crate) fn encode_database(access: &Access) -> Result<Vec<u8>> {
    let database = access.clone();
    let bytes = serde_json::to_vec(&StoredDatabase { database })
        .map_err(|error| EngineError::internal(format!("cannot encode the database: {error}")))?;
    debug_assert!(bytes.starts_with(DATABASE));
    Ok(bytes)
}

/// Encodes a role as a catalog row.
pub(crate) fn encode_role(role: &Role) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(role)
        .map_err(|error| EngineError::internal(format!("cannot encode a role: {error}")))?;
    if bytes.len() > ROLE_BYTES_MAX {
        return Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("the settings of role \"{}\" are too long", role.name),
        ));
    }
    debug_assert!(bytes.starts_with(ROLE));
    Ok(bytes)
}

/// Encodes a membership as a catalog row.
pub(crate) fn encode_membership(membership: &Membership) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(membership)
        .map_err(|error| EngineError::internal(format!("cannot encode a membership: {error}")))?;
    debug_assert!(bytes.starts_with(MEMBER));
    Ok(bytes)
}
