//! The baseline: a scan of the array of running transactions, under its latch.
//!
//! A snapshot is a list ([`RunningList`]).
//!
//! # Why it is consistent (S1, S2)
//! `xmax` is `latest_completed + 1`. Take any xid x below it that has not ended. Some y > x had ended, so y was handed
//! out. By rule R1 of the array x was stored before that, and y's end comes before our shared acquire (R2). So we find
//! x in the array. No transaction ends while we scan (R2), so for each one we see its whole end or nothing of it.
//!
//! The simpler version scans without the latch. Say Bob read what Alice wrote, and committed after her. The scan passes
//! Alice's entry while she still runs, and Bob's entry after his end. The snapshot then sees Bob's work without
//! Alice's.
//!
//! # Why the horizon does not pass it (S3)
//! The horizon is the least of `xids[]`, the xmins and `latest_completed + 1`, read under ProcArray shared. Nothing
//! ends meanwhile (R2). A snapshot taken before has its xmin in its slot (R3). One that is being taken at the same time
//! may not have it there yet, but the horizon finds the same xids running and the same xmax. A later one finds only
//! greater ones.
//!
//! Costs: a shared acquire and a scan of 8 bytes a session, without allocation once the list has grown.
//!
//! Origin: PostgreSQL's procarray.c; the dense array is that of its version 14.

use std::marker::PhantomData;

use clearway_machine::Machine;

use super::running_list::RunningList;
use super::{ArrayParameters, SnapshotSource};
use crate::ProcId;
use crate::session_array::SessionArray;

pub(crate) type View = RunningList;

/// Nothing is kept from one scan to the next.
#[derive(Debug)]
pub(crate) struct Source<M>(PhantomData<M>);

impl<M: Machine> SnapshotSource<M> for Source<M> {
    type View = View;

    fn new(_: ArrayParameters) -> Self {
        Self(PhantomData)
    }

    #[inline]
    fn take(&self, array: &SessionArray<M>, proc: ProcId, view: &mut View) {
        {
            let shared = array.shared();
            view.scan(&shared);
            // R3.
            shared.hold_back_horizon(proc, view.xmin);
        }
        view.sort();
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;
    use crate::{ProcArray, Xid};

    /// The snapshot that `proc` takes.
    fn scan(array: &ProcArray<Native>, proc: ProcId) -> View {
        let mut view = View::default();
        Source(PhantomData).take(array, proc, &mut view);
        view
    }

    #[test]
    fn the_running_are_listed_in_their_order() {
        let array = ProcArray::new(4, clearway_latch::LwLockVariant::SingleCas, Xid(100));
        let all: Vec<_> = (0..4).map(|_| array.attach().unwrap()).collect();
        let xids = [2, 0, 1, 3].map(|slot: usize| array.assign_xid(all[slot]));
        assert!(
            scan(&array, all[3]).running.is_empty(),
            "what is not below xmax need not be listed"
        );
        array.end(all[3], Some(xids[3]));
        let view = scan(&array, all[3]);
        assert_eq!(view.running, xids[..3]);
        assert_eq!((view.xmin, view.xmax), (xids[0], xids[3].next()));
    }
}
