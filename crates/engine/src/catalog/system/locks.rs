//! `pg_locks`: the locks of all sessions.

use clearway_sql::value::Value;
use clearway_txn::{LockTag, MarkedObject};

use super::Sources;
use super::rows::{NULL, Rows, boolean, int2, int4, int8, oid, text};
use super::server::DATABASE_OID;

/// The object of a lock that is listed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LockedObject {
    /// In the lock table.
    Table(LockTag),
    /// The session's transaction, which has it for as long as it runs.
    VirtualTransaction,
    /// Read by a serializable transaction.
    Marked(MarkedObject),
    /// A transaction with an id.
    Transaction(u64),
}

/// A row of `pg_locks`.
#[derive(Debug, Clone)]
pub(crate) struct EngineLock {
    pub(crate) object: LockedObject,
    /// The session's number; `None` for work of the server's own.
    pub(crate) process_id: Option<u32>,
    /// The session's place among the running ones, and the number of its transaction.
    pub(crate) transaction: (u32, u64),
    pub(crate) mode: &'static str,
    pub(crate) granted: bool,
    pub(crate) fast: bool,
    /// Microseconds since 2000.
    pub(crate) wait_start_us: Option<i64>,
}

/// `pg_locks`
pub(super) fn locks(sources: &Sources<'_>, rows: &mut Rows) {
    for lock in (sources.locks)() {
        let (place, number) = lock.transaction;
        let transaction = Value::text(format!("{place}/{number}"));
        let database = oid(DATABASE_OID);
        let mut relation = [NULL, NULL, NULL];
        let mut chosen = [NULL, NULL, NULL];
        let (kind, database, virtual_xid, xid) = match lock.object {
            LockedObject::Table(LockTag::Relation(rel)) => {
                relation[0] = oid(rel);
                ("relation", database, NULL, NULL)
            }
            LockedObject::Table(LockTag::Tuple { rel, block, slot }) => {
                relation = [oid(rel), int4(block.cast_signed()), int2(slot.cast_signed())];
                ("tuple", database, NULL, NULL)
            }
            LockedObject::Table(LockTag::Advisory { high, low, is_pair }) => {
                chosen = [oid(high), oid(low), int2(1 + i16::from(is_pair))];
                ("advisory", database, NULL, NULL)
            }
            LockedObject::Table(LockTag::Own { kind, high, low }) => {
                chosen = [oid(high), oid(low), NULL];
                (kind.name(), database, NULL, NULL)
            }
            LockedObject::Marked(MarkedObject::Relation(rel)) => {
                relation[0] = oid(rel);
                ("relation", database, NULL, NULL)
            }
            LockedObject::Marked(MarkedObject::Page(rel, block)) => {
                relation = [oid(rel), int4(block.cast_signed()), NULL];
                ("page", database, NULL, NULL)
            }
            LockedObject::Marked(MarkedObject::Row(rel, block, slot)) => {
                relation = [oid(rel), int4(block.cast_signed()), int2(slot.cast_signed())];
                ("tuple", database, NULL, NULL)
            }
            // A part of the index that is no page.
            LockedObject::Marked(MarkedObject::Keys(index)) => {
                relation[0] = oid(index);
                ("page", database, NULL, NULL)
            }
            LockedObject::VirtualTransaction => ("virtualxid", NULL, transaction.clone(), NULL),
            LockedObject::Transaction(xid) => ("transactionid", NULL, NULL, int8(xid.cast_signed())),
        };
        let [rel, page, tuple] = relation;
        let [class, object, part] = chosen;
        rows.push([
            ("locktype", text(kind)),
            ("database", database),
            ("relation", rel),
            ("page", page),
            ("tuple", tuple),
            ("virtualxid", virtual_xid),
            ("transactionid", xid),
            ("classid", class),
            ("objid", object),
            ("objsubid", part),
            ("virtualtransaction", transaction),
            ("pid", lock.process_id.map_or(NULL, |pid| int4(pid.cast_signed()))),
            ("mode", text(lock.mode)),
            ("granted", boolean(lock.granted)),
            ("fastpath", boolean(lock.fast)),
            ("waitstart", lock.wait_start_us.map_or(NULL, Value::TimestampTz)),
        ]);
    }
}
