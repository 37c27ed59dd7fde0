//! The descriptors of the process, and what they are for.
//!
//! The number of files that a process may have open is limited, sockets included. Those that are left when the
//! connections and the few files that are always open have theirs are for the files of relations, which are closed and
//! opened again when there are more of them than that. So tables never take a connection's descriptor; and if the limit
//! is too low for all connections that the configuration allows, fewer are served.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything but connections and relations: the log ([`wal`](crate::wal) keeps 24), standard streams,
/// listeners, directories, the control file, a journal, slots, and files that are open for a moment.
const OTHERS: usize = 64;

/// Relations' files that are open at a time, at the least and at the most.
const RELATIONS_MIN: usize = 16;
const RELATIONS_MAX: usize = 8_192;

/// The limit if none can be read.
const LIMIT_UNKNOWN: u64 = 1_024;

/// The shares of the process's descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorShares {
    /// Connections that can be served.
    pub connections: usize,
    /// Files of relations that may be open at a time.
    pub relations: usize,
}

/// Raises the process's limit of open files as far as it may go. Returns the limit.
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        tracing::warn!("the limit of open files could not be raised");
    }
    current_limit()
}

/// The process's limit of open files.
pub fn current_limit() -> u64 {
    // Without a limit of its own the process has the system's, which is higher than all that is wanted here.
    let system = RELATIONS_MAX as u64 * 16;
    match getrlimit(Resource::Nofile) {
        Rlimit {
            current: Some(current),
            ..
        } => current,
        Rlimit { maximum: None, .. } => system,
        Rlimit { .. } => LIMIT_UNKNOWN,
    }
}

/// Divides `limit` descriptors between `connections_wanted` connections and the relations.
///
/// A quarter of what the connections leave is kept back for sorts and groupings, which write temporary files, and for
/// standbys and backups, which read log and relations through files of their own.
pub fn share(limit: u64, connections_wanted: usize) -> DescriptorShares {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let connections = limit.saturating_sub(OTHERS + RELATIONS_MIN).max(1);
    let connections = connections.min(connections_wanted);
    let rest = limit.saturating_sub(OTHERS + connections);
    DescriptorShares {
        connections,
        relations: (rest - rest / 4).clamp(RELATIONS_MIN, RELATIONS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_relations_have_their_shares() {
        for limit in [0, 20, 81, 96, 256, 600, 1_024, 1_524, 20_000, u64::MAX] {
            for wanted in [1, 16, 500, 4_000] {
                let shares = share(limit, wanted);
                assert!((1..=wanted).contains(&shares.connections));
                assert!((RELATIONS_MIN..=RELATIONS_MAX).contains(&shares.relations));
                let used = (OTHERS + shares.connections + shares.relations) as u64;
                assert!(limit <= 80 || used <= limit, "{limit}: {shares:?}");
                let next_wanted = share(limit, wanted + 1);
                assert!(next_wanted.relations <= shares.relations);
            }
        }
        assert_eq!(share(1_024, 500).connections, 500);
        assert_eq!(share(96, 500).connections, 16);
    }
}
