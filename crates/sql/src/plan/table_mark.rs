//! The actions of ALTER TABLE and ALTER INDEX that note something in the definition which no row depends on.

use crate::catalog::ReplicaIdentity;

/// Such an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableMark {
    /// CLUSTER ON an index; `None`: SET WITHOUT CLUSTER.
    Cluster(Option<String>),
    /// SET WITHOUT OIDS, which changes nothing: no table has such numbers.
    WithoutOids,
    /// REPLICA IDENTITY
    ReplicaIdentity(ReplicaIdentity),
    /// REPLICA IDENTITY USING INDEX
    ReplicaIdentityIndex(String),
    /// ALTER COLUMN … SET STATISTICS
    Statistics {
        /// The column.
        column: String,
        /// The target; −1 for the setting's.
        target: i64,
    },
    /// ALTER INDEX … ALTER COLUMN … SET STATISTICS
    IndexStatistics {
        /// The index.
        index: String,
        /// The number of its column, from 1.
        column: i64,
        /// The target; −1 for the setting's.
        target: i64,
    },
}
