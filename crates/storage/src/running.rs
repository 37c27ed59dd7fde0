//! The `Running` record (interim: merged with the primary's side).

use clearway_txn::{RunningTransactions, Xid};

use crate::page::{get_u32, get_u64};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningRecord {
    pub(crate) next: Xid,
    pub(crate) oldest_running: Xid,
    pub(crate) newest_ended: Xid,
    pub(crate) overflowed: bool,
    pub(crate) running: Vec<Xid>,
}

#[derive(Debug)]
pub(crate) struct BadRunningRecord;

impl RunningRecord {
    pub(crate) fn as_record(&self) -> RunningTransactions<'_> {
        RunningTransactions {
            next: self.next,
            oldest_running: self.oldest_running,
            newest_ended: self.newest_ended,
            running: &self.running,
            overflowed: self.overflowed,
            prepared: &[],
        }
    }
}

pub(crate) fn decode(payload: &[u8]) -> Result<RunningRecord, BadRunningRecord> {
    if payload.len() < 32 {
        return Err(BadRunningRecord);
    }
    let count = get_u32(payload, 28) as usize;
    if payload.len() != 32 + 8 * count || get_u64(payload, 0) < 2 {
        return Err(BadRunningRecord);
    }
    Ok(RunningRecord {
        next: Xid(get_u64(payload, 0)),
        oldest_running: Xid(get_u64(payload, 8)),
        newest_ended: Xid(get_u64(payload, 16)),
        overflowed: get_u32(payload, 24) & 1 != 0,
        running: (0..count).map(|at| Xid(get_u64(payload, 32 + 8 * at))).collect(),
    })
}

pub(crate) fn begin_set(
    record: &RunningRecord,
    newest: Xid,
    mut ended: impl FnMut(Xid) -> bool,
) -> RunningRecord {
    let next = record.next.max(newest.next());
    let late = (record.next.0..next.0).map(Xid);
    let running: Vec<Xid> = record
        .running
        .iter()
        .copied()
        .chain(late)
        .filter(|xid| !ended(*xid))
        .collect();
    RunningRecord {
        next,
        oldest_running: running.first().copied().unwrap_or(next),
        newest_ended: Xid(next.0 - 1),
        overflowed: record.overflowed,
        running,
    }
}
