//! The roles of a session.

use std::sync::Arc;

use clearway_sql::function::USER_OID;

/// The roles of a session; `session::identity` tells which role is which.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// The role that it logged in as.
    pub(crate) authenticated: u32,
    /// The session's role.
    pub(crate) session: u32,
    pub(crate) session_user: Arc<str>,
    /// The role whose privileges count.
    pub(crate) current: u32,
    pub(crate) user: Arc<str>,
    /// True if the current role is a superuser.
    pub(crate) is_superuser: bool,
    /// The catalog and the settings that it follows from.
    pub(crate) made_of: (u64, u64),
    /// Numbers of the roles that SET has named.
    pub(crate) named: Vec<(String, u32)>,
}

impl Identity {
    /// That of a session that has logged in as this role.
    pub(crate) fn new(authenticated: u32, user: &str) -> Identity {
        Identity {
            authenticated,
            session: authenticated,
            session_user: user.into(),
            current: authenticated,
            user: user.into(),
            is_superuser: authenticated == USER_OID,
            made_of: (0, 0),
            named: Vec::new(),
        }
    }
}
