//! The rules by which clients log in, as `pg_hba_file_rules` shows them.

/// A rule in the words of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRule {
    /// The kind of connection that it is for.
    pub kind: &'static str,
    /// The databases.
    pub databases: Vec<String>,
    /// The users.
    pub users: Vec<String>,
    /// The address, or a word for several; absent for a Unix-domain socket.
    pub address: Option<String>,
    /// The mask of an address.
    pub mask: Option<String>,
    /// The way in which a client proves who it is.
    pub method: &'static str,
    /// The options.
    pub options: Vec<String>,
}

/// A line of the file: its number from 1, and its rule, or the reason for which it is none.
pub type LoginRuleLine = (u32, Result<LoginRule, String>);
