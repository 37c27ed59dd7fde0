//! The rows of a table that satisfy WHERE.
//!
//! A scan is pulled: [`Scan::next`] leaves the next row in [`Scan::row`] and says where its visible version
//! lies. No latch and no pin is held between two calls, so the caller may write to the same table; what the
//! statement itself writes is invisible to it, by command number.
//!
//! Index entries lead to the root of a chain of versions, from which the heap finds the one that the snapshot sees;
//! all versions of a chain have the same indexed values, so the key need not be compared again.

use clearway_storage::RowInHand;
use clearway_storage::btree::{BTree, Direction, TreeCursor};
use clearway_storage::heap::{Heap, HeapScan, LockOutcome, Tid, VersionOutcome};

use crate::convert::storage_error;
use crate::executor::long_values::{restore, restore_all_but, restore_columns};
use crate::executor::{Execution, Queued, heap_rel};
use clearway_sql::TableKind;
use clearway_sql::access::KeyRange;
use clearway_sql::error::Result;
use clearway_sql::expr::Expr;
use clearway_sql::plan::{AccessPath, LockStrength, LockWaitPolicy, RowLock, TableScan};
use clearway_sql::value::{ColumnSet, Decoded, Value};
use clearway_txn::RowLockMode;

/// Index entries that are taken from the tree at a time.
const BATCH: usize = 64;

/// A running scan, with its plan.
pub(crate) struct Scan<'p> {
    plan: &'p TableScan,
    rows: ScanRows,
}

/// A running scan apart from its plan, which each call is given: a suspended portal keeps one.
#[derive(Debug)]
pub(crate) struct ScanRows {
    heap: Heap,
    row: Vec<Value>,
    /// The way to the row, if it was found by an index.
    led_by: Option<LedBy>,
    /// The bytes of the row, when they are kept.
    payload: Vec<u8>,
    keep_payload: bool,
    /// True once a long value of a row was restored.
    has_restored: bool,
    cursor: Cursor,
}

/// The way that index entries led to a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedBy {
    /// The place that they name.
    pub(crate) root: Tid,
    /// Asked for by the row's proof.
    pub(crate) row: RowInHand,
}

#[derive(Debug)]
enum Cursor {
    Done,
    /// Entries of one key, looked up.
    Tids {
        tids: Vec<Tid>,
        at: usize,
    },
    Index(Box<IndexCursor>),
    Heap(HeapScan),
    /// The row that a cursor was on when its query found it.
    Place(Option<Tid>),
    Virtual(std::vec::IntoIter<Vec<Value>>),
    /// One by an index, of a serializable transaction, which marks each version that it reads.
    Marked(Box<Cursor>),
}

#[derive(Debug)]
struct IndexCursor {
    tree: BTree,
    ranges: std::vec::IntoIter<KeyRange>,
    direction: Direction,
    current: Option<TreeCursor>,
    batch: Vec<Tid>,
    at: usize,
}

impl<'p> Scan<'p> {
    /// Starts a scan. The table is locked and the snapshot taken.
    pub(crate) fn open(execution: &mut Execution<'_>, plan: &'p TableScan) -> Result<Scan<'p>> {
        ScanRows::open(execution, plan).map(|rows| Scan { plan, rows })
    }

    /// Keeps the bytes of each row too, for [`Scan::payload`].
    pub(crate) fn keep_payload(&mut self, execution: &mut Execution<'_>) {
        self.rows.keep_payload = true;
        self.rows.payload = std::mem::take(&mut execution.scratch.payload);
    }

    /// The current row: as wide as the table, the needed columns filled in.
    pub(crate) fn row(&self) -> &[Value] {
        &self.rows.row
    }

    /// The way to the current row, if the scan goes by an index.
    pub(crate) fn led_by(&self) -> Option<LedBy> {
        self.rows.led_by
    }

    /// The bytes of the current row.
    pub(crate) fn payload(&self) -> &[u8] {
        debug_assert!(self.rows.keep_payload);
        &self.rows.payload
    }

    /// Gives the buffers back.
    pub(crate) fn close(self, execution: &mut Execution<'_>) {
        self.rows.close(execution);
    }

    /// Goes to the next row that satisfies WHERE; where its visible version lies, or `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self, execution: &mut Execution<'_>) -> Result<Option<Tid>> {
        self.rows.next(execution, self.plan)
    }
}

impl ScanRows {
    /// Starts a scan. The table is locked and the snapshot taken.
    pub(crate) fn open(execution: &mut Execution<'_>, plan: &TableScan) -> Result<ScanRows> {
        if execution.txn.marks_reads() {
            return ScanRows::open_marked(execution, plan);
        }
        let table = &*plan.table;
        let mut row = execution.scratch.rows.pop().unwrap_or_default();
        Value::reset_row(&mut row, table.columns.len());
        let heap = match table.kind {
            TableKind::Heap { rel } => Heap::new(rel),
            TableKind::Virtual | TableKind::View => Heap::new(0),
        };
        let cursor = match (&plan.access, table.kind) {
            (_, TableKind::Virtual) => Cursor::Virtual((execution.virtual_rows)(table).into_iter()),
            (AccessPath::Sequential, _) => {
                execution.txn.count_scan(table.oid);
                Cursor::Heap(heap.scan(&execution.txn.context()).map_err(storage_error)?)
            }
            (AccessPath::UniquePoint { index, .. }, _) => {
                let mut key = std::mem::take(&mut execution.scratch.key);
                let found = plan.access.point_key(table, &execution.eval, &mut key);
                let cursor = match found {
                    Ok(true) => {
                        let mut tids = std::mem::take(&mut execution.scratch.tids);
                        tids.clear();
                        execution
                            .txn
                            .count_index_scan(table.oid, table.indexes[*index].oid);
                        BTree::new(table.indexes[*index].rel)
                            .lookup(execution.storage, &key, &mut tids)
                            .map_err(storage_error)
                            .map(|()| Cursor::Tids { tids, at: 0 })
                    }
                    Ok(false) => Ok(Cursor::Done),
                    Err(error) => Err(error),
                };
                execution.scratch.key = key;
                cursor?
            }
            (AccessPath::CurrentOf(cursor), _) => {
                let place = execution
                    .eval
                    .session
                    .cursor_place(cursor, table.oid, &table.name)?;
                Cursor::Place(place.map(|(block, slot)| Tid { block, slot }))
            }
            (access @ (AccessPath::Points { index, .. } | AccessPath::Range { index, .. }), _) => {
                let mut ranges = access.key_ranges(table, &execution.eval)?;
                execution
                    .txn
                    .count_index_scan(table.oid, table.indexes[*index].oid);
                let reverse = matches!(access, AccessPath::Range { reverse: true, .. });
                if reverse {
                    ranges.reverse();
                }
                let mut batch = std::mem::take(&mut execution.scratch.tids);
                batch.clear();
                Cursor::Index(Box::new(IndexCursor {
                    tree: BTree::new(table.indexes[*index].rel),
                    ranges: ranges.into_iter(),
                    direction: if reverse {
                        Direction::Backward
                    } else {
                        Direction::Forward
                    },
                    current: None,
                    batch,
                    at: 0,
                }))
            }
        };
        Ok(ScanRows {
            heap,
            row,
            led_by: None,
            payload: Vec::new(),
            keep_payload: false,
            has_restored: false,
            cursor,
        })
    }

    /// Starts a scan of a serializable transaction: as any other is started, and then the marks.
    #[cold]
    fn open_marked(execution: &mut Execution<'_>, plan: &TableScan) -> Result<ScanRows> {
        let counted = execution.txn.stop_counting_reads();
        let opened = ScanRows::open(execution, plan);
        execution.txn.count_reads(counted);
        let mut rows = opened?;
        rows.mark(execution, plan)?;
        Ok(rows)
    }

    /// Marks what a serializable transaction is going to read, whether there are rows or not.
    fn mark(&mut self, execution: &mut Execution<'_>, plan: &TableScan) -> Result<()> {
        let table = &*plan.table;
        if table.kind == TableKind::Virtual || table.schema.is_temporary() {
            return Ok(());
        }
        match &plan.access {
            AccessPath::Sequential => return execution.txn.mark_table_read(table.oid),
            AccessPath::UniquePoint { index, .. } => {
                let mut key = Vec::new();
                if plan.access.point_key(table, &execution.eval, &mut key)? {
                    execution.txn.mark_key_read(table.indexes[*index].oid, &key)?;
                }
            }
            AccessPath::Points { index, .. } | AccessPath::Range { index, .. } => {
                for range in plan.access.key_ranges(table, &execution.eval)? {
                    let index = table.indexes[*index].oid;
                    execution
                        .txn
                        .mark_keys_read(index, &range.lower, range.upper.as_deref())?;
                }
            }
            // The query of the cursor has marked the row.
            AccessPath::CurrentOf(_) => return Ok(()),
        }
        let cursor = std::mem::replace(&mut self.cursor, Cursor::Done);
        self.cursor = Cursor::Marked(Box::new(cursor));
        Ok(())
    }

    /// The current row: as wide as the table, the needed columns filled in.
    pub(crate) fn row(&self) -> &[Value] {
        &self.row
    }

    /// The current row, to take values out of: the next one does not need them.
    #[inline]
    pub(crate) fn row_mut(&mut self) -> &mut [Value] {
        &mut self.row
    }

    /// True once a long value of a row was restored, which is rather taken out of its row than copied.
    #[inline]
    pub(crate) fn has_restored(&self) -> bool {
        self.has_restored
    }

    /// Gives the buffers back.
    #[inline]
    pub(crate) fn close(mut self, execution: &mut Execution<'_>) {
        if self.has_restored {
            // Long values are not kept.
            self.row.clear();
        }
        execution.scratch.rows.push(self.row);
        if self.keep_payload {
            execution.scratch.payload = self.payload;
        }
        let cursor = match self.cursor {
            Cursor::Marked(cursor) => *cursor,
            cursor => cursor,
        };
        match cursor {
            Cursor::Tids { tids, .. } => execution.scratch.tids = tids,
            Cursor::Index(cursor) => execution.scratch.tids = cursor.batch,
            _ => {}
        }
    }

    /// Goes to the next row that satisfies WHERE; where its visible version lies, or `None` at the end.
    pub(crate) fn next(&mut self, execution: &mut Execution<'_>, plan: &TableScan) -> Result<Option<Tid>> {
        loop {
            execution.tick()?;
            let Some((found, decoded)) = self.next_visible(execution, plan)? else {
                return Ok(None);
            };
            if decoded == Decoded::Apart {
                match self.restore(execution, plan)? {
                    true => return Ok(Some(found)),
                    false => continue,
                }
            }
            match &plan.filter {
                Some(filter) if !filter.passes(&self.row, &execution.eval)? => {
                    execution.removed = execution.removed.wrapping_add(1);
                }
                _ => return Ok(Some(found)),
            }
        }
    }

    /// Restores the row's long values, those that WHERE does not read only if it is satisfied; `false` if it is not. Those
    /// that are left to a later stage are there as they are stored, also if WHERE reads them.
    #[cold]
    fn restore(&mut self, execution: &mut Execution<'_>, plan: &TableScan) -> Result<bool> {
        self.has_restored = true;
        let Execution {
            storage, interrupts, ..
        } = *execution;
        let table = &*plan.table;
        if let Some(filter) = &plan.filter {
            let mut read = ColumnSet::new();
            filter.walk(&mut |part| {
                if let Expr::Column(column) = part
                    && usize::from(*column) < table.columns.len()
                {
                    read.insert(*column);
                }
            });
            let late: Vec<(u16, Value)> = plan
                .late
                .iter()
                .filter(|column| read.contains(*column))
                .map(|column| (column, self.row[usize::from(column)].clone()))
                .collect();
            restore_columns(storage, interrupts, table, &read, &mut self.row)?;
            if !filter.passes(&self.row, &execution.eval)? {
                execution.removed = execution.removed.wrapping_add(1);
                return Ok(false);
            }
            for (column, stored) in late {
                self.row[usize::from(column)] = stored;
            }
        }
        restore_all_but(storage, interrupts, table, &plan.late, &mut self.row)?;
        Ok(true)
    }

    fn next_visible(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &TableScan,
    ) -> Result<Option<(Tid, Decoded)>> {
        let ScanRows {
            heap,
            row,
            led_by,
            payload,
            keep_payload,
            has_restored: _,
            cursor,
        } = self;
        let codec = &plan.table.codec;
        let mut take = |tid: Tid, bytes: &[u8]| {
            if *keep_payload {
                payload.clear();
                payload.extend_from_slice(bytes);
            }
            codec
                .decode(bytes, &plan.needed, row)
                .map(|decoded| (tid, decoded))
        };
        loop {
            let root = match cursor {
                Cursor::Done => return Ok(None),
                Cursor::Tids { tids, at } => match tids.get(*at) {
                    None => return Ok(None),
                    Some(tid) => {
                        *at += 1;
                        *tid
                    }
                },
                Cursor::Index(cursor) => match cursor.next(execution)? {
                    None => return Ok(None),
                    Some(tid) => tid,
                },
                Cursor::Heap(scan) => {
                    let next = scan.next(&execution.txn.context(), &mut take);
                    // It has looked at a page of rows.
                    execution.txn.end_row();
                    return next.map_err(storage_error)?.transpose();
                }
                Cursor::Place(place) => {
                    let Some(tid) = place.take() else { return Ok(None) };
                    let found = heap.visible_from(&execution.txn.context(), tid, &mut take);
                    execution.txn.end_row();
                    return found.map_err(storage_error)?.transpose();
                }
                Cursor::Marked(cursor) => {
                    let Some(root) = cursor.next_root(execution)? else {
                        return Ok(None);
                    };
                    *led_by = Some(LedBy {
                        root,
                        row: execution.txn.begin_row(),
                    });
                    let found = heap
                        .fetch(&execution.txn.context(), root, &mut take)
                        .map_err(storage_error)?;
                    match found.transpose()? {
                        None => continue,
                        Some((tid, decoded)) => {
                            execution.txn.mark_row_read(plan.table.oid, tid)?;
                            return Ok(Some((tid, decoded)));
                        }
                    }
                }
                Cursor::Virtual(rows) => {
                    let Some(next) = rows.next() else { return Ok(None) };
                    *row = next;
                    return Ok(Some((Tid { block: 0, slot: 0 }, Decoded::Whole)));
                }
            };
            *led_by = Some(LedBy {
                root,
                row: execution.txn.begin_row(),
            });
            let found = heap
                .fetch(&execution.txn.context(), root, &mut take)
                .map_err(storage_error)?;
            if let Some(tid) = found {
                return tid.map(Some);
            }
        }
    }
}

impl Cursor {
    /// The place that the next entry names, of a cursor by an index.
    fn next_root(&mut self, execution: &mut Execution<'_>) -> Result<Option<Tid>> {
        match self {
            Cursor::Tids { tids, at } => {
                let root = tids.get(*at).copied();
                *at += usize::from(root.is_some());
                Ok(root)
            }
            Cursor::Index(cursor) => cursor.next(execution),
            _ => Ok(None),
        }
    }
}

impl IndexCursor {
    fn next(&mut self, execution: &mut Execution<'_>) -> Result<Option<Tid>> {
        loop {
            if let Some(tid) = self.batch.get(self.at) {
                self.at += 1;
                return Ok(Some(*tid));
            }
            self.batch.clear();
            self.at = 0;
            let Some(current) = &mut self.current else {
                let Some(range) = self.ranges.next() else {
                    return Ok(None);
                };
                self.current = Some(
                    self.tree
                        .range(&range.lower, range.upper.as_deref(), self.direction),
                );
                continue;
            };
            execution.check_interrupts()?;
            let more = current
                .next_batch(execution.storage, BATCH, &mut self.batch)
                .map_err(storage_error)?;
            if !more {
                self.current = None;
            }
        }
    }
}

/// The strength of a clause in the heap.
pub(super) fn row_lock_mode(strength: LockStrength) -> RowLockMode {
    match strength {
        LockStrength::KeyShare => RowLockMode::KeyShare,
        LockStrength::Share => RowLockMode::Share,
        LockStrength::NoKeyUpdate => RowLockMode::NoKeyUpdate,
        LockStrength::Update => RowLockMode::Update,
    }
}

/// The strength in which the versions of a row are wanted that is followed, and the treatment of a transaction that has one.
pub(crate) type Wanted = (RowLockMode, LockWaitPolicy);

/// A version that is to be changed.
pub(crate) const TO_CHANGE: Wanted = (RowLockMode::Update, LockWaitPolicy::Block);

/// The outcome of locking a row.
pub(crate) enum Locked {
    /// Locked, and it is the version that was seen.
    AsSeen,
    /// Deleted since, or no longer what WHERE asks for, or to be skipped.
    Gone,
    /// Locked in a newer version, of these columns at this place.
    Newer(Vec<Value>, Tid),
}

/// Locks a row that a scan has found.
pub(crate) fn lock_row(
    execution: &mut Execution<'_>,
    scan: &TableScan,
    tid: Tid,
    lock: RowLock,
) -> Result<Locked> {
    let heap = Heap::new(heap_rel(&scan.table));
    let mode = row_lock_mode(lock.strength);
    execution.txn.assign_xid()?;
    // One that does not wait is in no queue's way.
    let mut at_front = lock.wait != LockWaitPolicy::Block;
    let mut queued = Queued::default();
    let mut target = tid;
    let mut newer = None;
    loop {
        let outcome = heap
            .lock_row(&execution.txn.context(), target, mode, at_front)
            .map_err(storage_error)?;
        match outcome {
            LockOutcome::Locked => {
                queued.release(execution.txn);
                return Ok(newer.map_or(Locked::AsSeen, |(row, tid)| Locked::Newer(row, tid)));
            }
            LockOutcome::SelfModified => {
                queued.release(execution.txn);
                return Ok(Locked::Gone);
            }
            LockOutcome::Wait(other) => {
                if !execution.wait_for_row(&scan.table, target, other, lock.wait, &mut queued)? {
                    return Ok(Locked::Gone);
                }
            }
            LockOutcome::Queue => {
                execution.queue_for_row(&scan.table, target, &mut queued)?;
                at_front = true;
            }
            LockOutcome::Deleted => {
                execution.check_concurrent("delete")?;
                queued.release(execution.txn);
                return Ok(Locked::Gone);
            }
            LockOutcome::Changed { latest } => {
                execution.check_concurrent("update")?;
                let Some(found) = newest(execution, scan, latest, (mode, lock.wait), &mut queued)? else {
                    queued.release(execution.txn);
                    return Ok(Locked::Gone);
                };
                target = found.tid;
                newer = Some((found.row, found.tid));
            }
        }
    }
}

/// The newest version of a row, which passes the whole WHERE clause.
pub(crate) struct Newest {
    /// Its place.
    pub(crate) tid: Tid,
    /// Its needed columns.
    pub(crate) row: Vec<Value>,
    /// Its bytes.
    pub(crate) payload: Vec<u8>,
}

/// The end of a row's chain of versions.
pub(crate) enum Followed {
    /// The newest version.
    Row(Newest),
    /// The row is to be left out.
    Left,
    /// This transaction has changed the newest version.
    SelfModified,
}

/// Follows a row from the version at `from`, which replaced the one that was seen, to its newest one, waiting for each
/// transaction in the way; `None` when the row is to be left out.
///
/// Only the newest version is held against WHERE. A version in between, and one of a transaction that still runs,
/// says nothing about the row: the next one may satisfy WHERE again, or be rolled back.
///
/// The snapshot does not see `from`, so it is older than the transaction that made it. It holds the horizon below
/// every version from there on: none is pruned, and none of their places is used for another row.
pub(crate) fn newest(
    execution: &mut Execution<'_>,
    scan: &TableScan,
    from: Tid,
    wanted: Wanted,
    queued: &mut Queued,
) -> Result<Option<Newest>> {
    Ok(match followed(execution, scan, from, wanted, queued)? {
        Followed::Row(newest) => Some(newest),
        Followed::Left | Followed::SelfModified => None,
    })
}

/// As [`newest`], with the reason why the row is to be left out.
pub(crate) fn followed(
    execution: &mut Execution<'_>,
    scan: &TableScan,
    from: Tid,
    (mode, policy): Wanted,
    queued: &mut Queued,
) -> Result<Followed> {
    let table = &*scan.table;
    let heap = Heap::new(heap_rel(table));
    let mut tid = from;
    loop {
        let outcome = heap.version(&execution.txn.context(), tid, mode, |bytes| bytes.to_vec());
        let payload = match outcome.map_err(storage_error)? {
            VersionOutcome::NoConflict(payload) => payload,
            VersionOutcome::Wait(other) => {
                if !execution.wait_for_row(table, tid, other, policy, queued)? {
                    return Ok(Followed::Left);
                }
                continue;
            }
            VersionOutcome::Changed { latest } => {
                tid = latest;
                continue;
            }
            VersionOutcome::SelfModified => return Ok(Followed::SelfModified),
            VersionOutcome::Deleted => return Ok(Followed::Left),
        };
        let mut row = vec![Value::Null; table.columns.len()];
        if table.codec.decode(&payload, &scan.needed, &mut row)? == Decoded::Apart {
            restore(execution.storage, execution.interrupts, table, &mut row)?;
        }
        return match &scan.recheck {
            Some(recheck) if !recheck.passes(&row, &execution.eval)? => Ok(Followed::Left),
            _ => Ok(Followed::Row(Newest { tid, row, payload })),
        };
    }
}
