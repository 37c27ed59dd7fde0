//! What a statement regards as finished.

use crate::Xid;

/// The transactions that were running when the snapshot was taken.
///
/// Finished: everything below `xmin`. Not finished: everything from `xmax` on. Between the two: not finished iff listed.
/// A transaction's own xid may be listed; whoever checks visibility looks for its own xid first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The oldest transaction that was running, or `xmax`.
    pub xmin: Xid,
    /// One past the newest transaction that had completed.
    pub xmax: Xid,
    /// The running ones below `xmax`, ascending.
    pub running: Vec<Xid>,
}

/// Below this many entries a straight look beats a binary search.
const LINEAR_MAX: usize = 16;

impl Snapshot {
    /// Whether `xid` counts as still running.
    #[inline]
    pub fn is_running(&self, xid: Xid) -> bool {
        if xid < self.xmin {
            return false;
        }
        if xid >= self.xmax {
            return true;
        }
        if self.running.len() <= LINEAR_MAX {
            self.running.contains(&xid)
        } else {
            self.running.binary_search(&xid).is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_list_decide() {
        let few = Snapshot {
            xmin: Xid(10),
            xmax: Xid(20),
            running: vec![Xid(10), Xid(15)],
        };
        let many = Snapshot {
            xmin: Xid(10),
            xmax: Xid(60),
            running: (10..60).step_by(2).map(Xid).collect(),
        };
        assert!(!few.is_running(Xid(9)) && few.is_running(Xid(10)) && !few.is_running(Xid(11)));
        assert!(few.is_running(Xid(15)) && few.is_running(Xid(20)) && few.is_running(Xid(99)));
        assert!(many.is_running(Xid(58)) && !many.is_running(Xid(57)) && many.is_running(Xid(60)));
    }
}
