//! The views of replication: what is sent to followers, slots, what receives the log of a standby, and what replay has
//! ended there.

use std::time::Duration;

use clearway_storage::Lsn;
use clearway_storage::retention::{FollowerProgress, Slot};

use super::Sources;
use super::activity::activity_row;
use super::rows::Rows;
use super::server::DATABASE_OID;
use crate::catalog::role::READ_ALL_STATISTICS;
use crate::replication_status::{ConflictCounts, WalReceiverStatus};
use clearway_sql::value::{Interval, Value};

/// `pg_stat_replication`: a connection that is sent the log.
pub(super) fn followers(sources: &Sources<'_>, rows: &mut Rows) {
    rows.extend(replication_rows(sources).into_iter());
}

/// `pg_replication_slots`
pub(super) fn slots(sources: &Sources<'_>, rows: &mut Rows) {
    rows.extend(slot_rows(sources).into_iter());
}

/// `pg_stat_wal_receiver`
pub(super) fn receiver(sources: &Sources<'_>, rows: &mut Rows) {
    rows.extend((sources.receiver)().into_iter().map(|receiver| {
        let mut row = receiver_row(receiver);
        hide(sources, &mut row[1..]);
        row
    }));
}

/// `pg_stat_database_conflicts`
pub(super) fn conflicts(sources: &Sources<'_>, rows: &mut Rows) {
    rows.extend(std::iter::once(conflict_row(
        (sources.conflicts)(),
        sources.database,
    )));
}

/// Takes the values of a server's connections from a role that may not read all statistics.
fn hide(sources: &Sources<'_>, values: &mut [Value]) {
    if !sources
        .catalog
        .has_privileges_of(sources.identity.current, READ_ALL_STATISTICS)
    {
        values.fill(Value::Null);
    }
}

/// A position; NULL for none.
fn position(position: Option<Lsn>) -> Value {
    position
        .filter(|position| position.0 != 0)
        .map_or(Value::Null, |Lsn(at)| Value::Lsn(at))
}

/// A time span; NULL for none.
fn lag(lag: Option<Duration>) -> Value {
    lag.map_or(Value::Null, |lag| {
        Value::Interval(Interval {
            months: 0,
            days: 0,
            micros: i64::try_from(lag.as_micros()).unwrap_or(i64::MAX),
        })
    })
}

fn replication_rows(sources: &Sources<'_>) -> Vec<Vec<Value>> {
    let sessions = (sources.activity)();
    let row = |follower: FollowerProgress| {
        let session = sessions
            .iter()
            .find(|session| session.process_id == follower.process_id)?;
        // The first columns of the two views are the same, but for their order.
        let mut activity = activity_row(sources, session.clone());
        let mut take = |column: usize| std::mem::replace(&mut activity[column], Value::Null);
        let state = match (follower.is_backup, follower.caught_up) {
            (true, _) => "backup",
            (false, true) => "streaming",
            (false, false) => "catchup",
        };
        let sent = Some(follower.sent).filter(|_| !follower.is_backup);
        let mut row = vec![
            take(2),
            take(4),
            take(5),
            take(6),
            take(7),
            take(8),
            take(9),
            take(10),
            follower
                .xmin
                .map_or(Value::Null, |xmin| Value::Int8(xmin.0 as i64)),
            Value::text(state),
            position(sent),
            position(Some(follower.written)),
            position(Some(follower.flushed)),
            position(Some(follower.replayed)),
            lag(follower.lags.written),
            lag(follower.lags.flushed),
            lag(follower.lags.replayed),
            Value::Int4(follower.sync_priority as i32),
            Value::text(follower.sync_state.name()),
            follower.reply_time.map_or(Value::Null, Value::TimestampTz),
        ];
        hide(sources, &mut row[8..]);
        Some(row)
    };
    sources
        .retention
        .followers()
        .into_iter()
        .filter_map(row)
        .collect()
}

fn slot_rows(sources: &Sources<'_>) -> Vec<Vec<Value>> {
    let flushed = (sources.flushed)();
    let row = |slot: Slot| {
        let safe = slot.restart.filter(|_| !slot.lost).and_then(|restart| {
            let left = sources.retention.limits().slot_bytes_max?;
            Some(Value::Int8(
                left.cast_signed() - (flushed.0.saturating_sub(restart.0)).cast_signed(),
            ))
        });
        let status = match (slot.lost, slot.restart) {
            (true, _) => Value::text("lost"),
            (false, Some(_)) => Value::text("reserved"),
            (false, None) => Value::Null,
        };
        vec![
            Value::text(slot.name),
            Value::Null,
            Value::text("physical"),
            Value::Null,
            Value::Null,
            Value::Bool(slot.temporary_of.is_some()),
            Value::Bool(slot.active_process_id.is_some()),
            slot.active_process_id
                .map_or(Value::Null, |process_id| Value::Int4(process_id as i32)),
            Value::Null,
            Value::Null,
            position(slot.restart.filter(|_| !slot.lost)),
            Value::Null,
            status,
            safe.unwrap_or(Value::Null),
            Value::Bool(false),
        ]
    };
    sources.retention.slots().into_iter().map(row).collect()
}

fn receiver_row(receiver: WalReceiverStatus) -> Vec<Value> {
    let text = |text: Option<String>| text.map_or(Value::Null, Value::text);
    let time = |time: Option<i64>| time.map_or(Value::Null, Value::TimestampTz);
    vec![
        Value::Int4(receiver.process_id.cast_signed()),
        Value::text(receiver.status),
        position(Some(receiver.receive_start)),
        Value::Int4(receiver.receive_start_timeline.cast_signed()),
        position(Some(receiver.written)),
        position(Some(receiver.flushed)),
        Value::Int4(receiver.received_timeline.cast_signed()),
        time(receiver.last_message_sent),
        time(receiver.last_message_received),
        position(receiver.latest_end),
        time(receiver.latest_end_time),
        text(receiver.slot_name),
        text(receiver.sender_host),
        receiver
            .sender_port
            .map_or(Value::Null, |port| Value::Int4(i32::from(port))),
        Value::text(receiver.conninfo),
    ]
}

fn conflict_row(counts: ConflictCounts, database: &str) -> Vec<Value> {
    let number = |count: u64| Value::Int8(count.cast_signed());
    vec![
        Value::Oid(DATABASE_OID),
        Value::text(database),
        number(0),
        number(counts.lock),
        number(counts.snapshot),
        number(0),
        number(0),
    ]
}
