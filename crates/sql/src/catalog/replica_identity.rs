//! REPLICA IDENTITY: the columns by which a subscriber of logical replication would find a row that has changed.
//!
//! There is no logical replication here, so it is kept for what asks the catalog, and for a dump.

/// The choice of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaIdentity {
    /// The primary key's.
    #[default]
    Default,
    /// None.
    Nothing,
    /// All.
    Full,
    /// Those of an index, which says so itself ([`crate::IndexMarks`]).
    Index,
}

impl ReplicaIdentity {
    const ALL: [ReplicaIdentity; 4] = [
        ReplicaIdentity::Default,
        ReplicaIdentity::Nothing,
        ReplicaIdentity::Full,
        ReplicaIdentity::Index,
    ];

    /// The letter in `pg_class.relreplident`.
    pub fn letter(self) -> char {
        match self {
            ReplicaIdentity::Default => 'd',
            ReplicaIdentity::Nothing => 'n',
            ReplicaIdentity::Full => 'f',
            ReplicaIdentity::Index => 'i',
        }
    }

    /// The choice of a letter.
    pub fn of_letter(letter: char) -> Option<ReplicaIdentity> {
        ReplicaIdentity::ALL
            .into_iter()
            .find(|identity| identity.letter() == letter)
    }
}
