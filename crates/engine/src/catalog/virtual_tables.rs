//! Tables whose rows are made up when they are asked for.
//!
//! | name | a row is |
//! | --- | --- |
//! | `pg_stat_activity` | a session or a thread of the server's own, with what it waits for |
//! | `pg_stat_replication` | a connection that is sent the log |
//! | `pg_replication_slots` | a replication slot |
//! | `pg_stat_wal_receiver` | what receives the log of a standby |
//! | `pg_stat_database_conflicts` | what replay has ended on a standby |
//! | `pg_stat_user_tables` | a table's live and dead rows, as vacuum knows them |
//! | `pg_tables`, `pg_indexes` | a table, an index |
//! | `pg_settings` | a setting |
//! | `pg_type` | a type |
//! | `clearway_latches` | a latch class and mode: acquisitions, conflicts, spins, sleeps, waits |
//! | `clearway_memory` | what the process has in all, or one session, in bytes |

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use clearway_storage::Lsn;
use clearway_storage::retention::{FollowerProgress, LogRetention, Slot};

use crate::activity::{BackgroundActivity, SessionActivity};
use crate::catalog::CatalogState;
use crate::config::Config;
use crate::in_force::{self, CHANGEABLE, InForce};
use crate::memory;
use crate::replication_status::{ConflictCounts, WalReceiverStatus};
use crate::settings::Settings;
use clearway_sql::value::{DataType, Value};
use clearway_sql::{ColumnDef, TableDef, TableKind};

/// The sources of the rows.
pub(crate) struct Sources<'a> {
    pub(crate) activity: &'a dyn Fn() -> Vec<SessionActivity>,
    pub(crate) background: &'a dyn Fn() -> Vec<BackgroundActivity>,
    pub(crate) retention: &'a LogRetention,
    pub(crate) flushed: &'a dyn Fn() -> Lsn,
    pub(crate) receiver: &'a dyn Fn() -> Option<WalReceiverStatus>,
    pub(crate) conflicts: &'a dyn Fn() -> ConflictCounts,
    pub(crate) catalog: &'a CatalogState,
    pub(crate) settings: &'a Settings,
    pub(crate) in_force: &'a dyn Fn() -> Arc<InForce>,
    pub(crate) database: &'a str,
}

static TABLES: LazyLock<Vec<Arc<TableDef>>> = LazyLock::new(|| {
    use DataType::{Bool, CharByte, Int4, Int8, Name, Oid, Text, TimestampTz};
    let table = |oid: u32, name: &str, columns: &[(&str, DataType)]| {
        let columns = columns
            .iter()
            .map(|(name, data_type)| ColumnDef::new(*name, *data_type))
            .collect();
        Arc::new(TableDef::new(oid, name, TableKind::Virtual, columns))
    };
    vec![
        table(
            12_001,
            "pg_stat_activity",
            &[
                ("datid", Oid),
                ("datname", Name),
                ("pid", Int4),
                ("leader_pid", Int4),
                ("usesysid", Oid),
                ("usename", Name),
                ("application_name", Text),
                ("client_addr", Text),
                ("client_hostname", Text),
                ("client_port", Int4),
                ("backend_start", TimestampTz),
                ("xact_start", TimestampTz),
                ("query_start", TimestampTz),
                ("state_change", TimestampTz),
                ("wait_event_type", Text),
                ("wait_event", Text),
                ("state", Text),
                ("backend_xid", Int8),
                ("backend_xmin", Int8),
                ("query_id", Int8),
                ("query", Text),
                ("backend_type", Text),
            ],
        ),
        table(
            12_002,
            "pg_stat_user_tables",
            &[
                ("relid", Oid),
                ("schemaname", Name),
                ("relname", Name),
                ("n_live_tup", Int8),
                ("n_dead_tup", Int8),
            ],
        ),
        table(
            12_003,
            "pg_tables",
            &[
                ("schemaname", Name),
                ("tablename", Name),
                ("tableowner", Name),
                ("tablespace", Name),
            ],
        ),
        table(
            12_004,
            "pg_indexes",
            &[
                ("schemaname", Name),
                ("tablename", Name),
                ("indexname", Name),
                ("indexdef", Text),
            ],
        ),
        table(
            12_005,
            "pg_settings",
            &[
                ("name", Text),
                ("setting", Text),
                ("context", Text),
                ("source", Text),
                ("pending_restart", Bool),
            ],
        ),
        table(
            12_006,
            "clearway_latches",
            &[
                ("name", Text),
                ("mode", Text),
                ("acquisitions", Int8),
                ("conflicts", Int8),
                ("spins", Int8),
                ("sleeps", Int8),
                ("wait_p50_ns", Int8),
                ("wait_p99_ns", Int8),
            ],
        ),
        table(
            12_007,
            "pg_type",
            &[
                ("oid", Oid),
                ("typname", Name),
                ("typnamespace", Oid),
                ("typtype", CharByte),
                ("typcategory", CharByte),
                ("typdelim", CharByte),
                ("typrelid", Oid),
                ("typelem", Oid),
                ("typarray", Oid),
                ("typbasetype", Oid),
            ],
        ),
        table(
            12_008,
            "pg_stat_replication",
            &[
                ("pid", Int4),
                ("usesysid", Oid),
                ("usename", Name),
                ("application_name", Text),
                ("client_addr", Text),
                ("client_hostname", Text),
                ("client_port", Int4),
                ("backend_start", TimestampTz),
                ("backend_xmin", Int8),
                ("state", Text),
                ("sent_lsn", Text),
                ("write_lsn", Text),
                ("flush_lsn", Text),
                ("replay_lsn", Text),
                ("write_lag", Text),
                ("flush_lag", Text),
                ("replay_lag", Text),
                ("sync_priority", Int4),
                ("sync_state", Text),
                ("reply_time", TimestampTz),
            ],
        ),
        table(
            12_009,
            "pg_replication_slots",
            &[
                ("slot_name", Name),
                ("plugin", Name),
                ("slot_type", Text),
                ("datoid", Oid),
                ("database", Name),
                ("temporary", Bool),
                ("active", Bool),
                ("active_pid", Int4),
                ("xmin", Int8),
                ("catalog_xmin", Int8),
                ("restart_lsn", Text),
                ("confirmed_flush_lsn", Text),
                ("wal_status", Text),
                ("safe_wal_size", Int8),
                ("two_phase", Bool),
            ],
        ),
        table(
            12_010,
            "pg_stat_wal_receiver",
            &[
                ("pid", Int4),
                ("status", Text),
                ("receive_start_lsn", Text),
                ("receive_start_tli", Int4),
                ("written_lsn", Text),
                ("flushed_lsn", Text),
                ("received_tli", Int4),
                ("last_msg_send_time", TimestampTz),
                ("last_msg_receipt_time", TimestampTz),
                ("latest_end_lsn", Text),
                ("latest_end_time", TimestampTz),
                ("slot_name", Text),
                ("sender_host", Text),
                ("sender_port", Int4),
                ("conninfo", Text),
            ],
        ),
        table(
            12_011,
            "pg_stat_database_conflicts",
            &[
                ("datid", Oid),
                ("datname", Name),
                ("confl_tablespace", Int8),
                ("confl_lock", Int8),
                ("confl_snapshot", Int8),
                ("confl_bufferpin", Int8),
                ("confl_deadlock", Int8),
            ],
        ),
        table(
            12_012,
            "clearway_memory",
            &[("pid", Int4), ("name", Text), ("bytes", Int8)],
        ),
    ]
});

/// The virtual table of this name.
pub(crate) fn lookup(name: &str) -> Option<Arc<TableDef>> {
    TABLES.iter().find(|table| table.name == name).cloned()
}

/// The rows of a virtual table, now.
pub(crate) fn rows(name: &str, sources: &Sources<'_>) -> Vec<Vec<Value>> {
    match name {
        "pg_stat_activity" => {
            let background = (sources.background)().into_iter().map(background_row);
            let sessions = (sources.activity)().into_iter().map(activity_row);
            background.chain(sessions).collect()
        }
        "pg_stat_replication" => replication_rows(sources),
        "pg_replication_slots" => slot_rows(sources),
        "pg_stat_wal_receiver" => (sources.receiver)().into_iter().map(receiver_row).collect(),
        "pg_stat_database_conflicts" => vec![conflict_row((sources.conflicts)(), sources.database)],
        "pg_stat_user_tables" => sources
            .catalog
            .tables()
            .iter()
            .map(|entry| {
                vec![
                    Value::Oid(entry.def.oid),
                    Value::text("public"),
                    Value::text(entry.def.name.as_str()),
                    Value::Int8(entry.runtime.live_rows.load(Ordering::Relaxed).max(0)),
                    Value::Int8(entry.runtime.dead_rows.load(Ordering::Relaxed) as i64),
                ]
            })
            .collect(),
        "pg_tables" => sources
            .catalog
            .tables()
            .iter()
            .map(|entry| {
                let name = Value::text(entry.def.name.as_str());
                vec![Value::text("public"), name, Value::text("clearway"), Value::Null]
            })
            .collect(),
        "pg_indexes" => sources
            .catalog
            .tables()
            .iter()
            .flat_map(|entry| index_rows(&entry.def))
            .collect(),
        "pg_settings" => setting_rows(sources),
        "clearway_latches" => latch_rows(),
        "clearway_memory" => memory_rows((sources.activity)()),
        "pg_type" => type_rows(),
        _ => Vec::new(),
    }
}

/// The settings of SHOW, then the other keys of the configuration.
fn setting_rows(sources: &Sources<'_>) -> Vec<Vec<Value>> {
    let in_force = (sources.in_force)();
    let row = |name: &str, setting: String, context: &str, source: &str| {
        let key = name.to_ascii_lowercase();
        let context = match context {
            "internal" if CHANGEABLE.contains(&key.as_str()) => "sighup",
            context => context,
        };
        vec![
            Value::text(name),
            Value::text(setting),
            Value::text(context),
            Value::text(source),
            Value::Bool(in_force.pending_restart.contains(&key)),
        ]
    };
    let known = sources.settings.all().into_iter().map(|(name, setting)| {
        let key = name.to_ascii_lowercase();
        let context = Settings::context(&key).unwrap_or("internal");
        row(name, setting, context, sources.settings.source(&key))
    });
    let defaults = in_force::values_of(&Config::default());
    let keys = in_force::values_of(&in_force.config)
        .into_iter()
        .filter(|(key, _)| Settings::context(key).is_none())
        .map(|(key, value)| {
            let is_default = defaults
                .iter()
                .any(|(name, default)| (name, default) == (&key, &value));
            let context = match CHANGEABLE.contains(&key.as_str()) {
                true => "sighup",
                false => "postmaster",
            };
            let source = if is_default {
                "default"
            } else {
                "configuration file"
            };
            row(&key, value, context, source)
        });
    known.chain(keys).collect()
}

/// A position as PostgreSQL writes it; NULL for none.
fn position(position: Option<Lsn>) -> Value {
    position
        .filter(|position| position.0 != 0)
        .map_or(Value::Null, |Lsn(at)| {
            Value::text(clearway_sql::shown_position(at))
        })
}

/// A time as PostgreSQL writes an interval: hours, minutes and seconds with six decimals.
fn lag(lag: Option<Duration>) -> Value {
    lag.map_or(Value::Null, |lag| {
        let seconds = lag.as_secs();
        Value::text(format!(
            "{:02}:{:02}:{:02}.{:06}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
            lag.subsec_micros()
        ))
    })
}

fn replication_rows(sources: &Sources<'_>) -> Vec<Vec<Value>> {
    let sessions = (sources.activity)();
    let row = |follower: FollowerProgress| {
        let session = sessions
            .iter()
            .find(|session| session.process_id == follower.process_id)?;
        // The first columns of the two views are the same, but for their order.
        let mut activity = activity_row(session.clone());
        let mut take = |column: usize| std::mem::replace(&mut activity[column], Value::Null);
        let state = match (follower.is_backup, follower.caught_up) {
            (true, _) => "backup",
            (false, true) => "streaming",
            (false, false) => "catchup",
        };
        let sent = Some(follower.sent).filter(|_| !follower.is_backup);
        Some(vec![
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
        ])
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
        Value::Oid(1),
        Value::text(database),
        number(0),
        number(counts.lock),
        number(counts.snapshot),
        number(0),
        number(0),
    ]
}

fn activity_row(session: SessionActivity) -> Vec<Value> {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
    let time = |time: Option<i64>| time.map_or(Value::Null, Value::TimestampTz);
    let (address, port) = match session.client_address.as_deref().and_then(|a| a.rsplit_once(':')) {
        Some((address, port)) => (Some(address), port.parse().ok()),
        None => (session.client_address.as_deref(), None),
    };
    vec![
        Value::Oid(1),
        Value::text(session.database.as_str()),
        Value::Int4(session.process_id as i32),
        Value::Null,
        Value::Oid(10),
        Value::text(session.user.as_str()),
        Value::text(session.application_name.as_str()),
        text(address),
        Value::Null,
        port.map_or(Value::Null, Value::Int4),
        Value::TimestampTz(session.backend_start),
        time(session.transaction_start),
        time(session.query_start),
        Value::TimestampTz(session.state_change),
        text(session.wait_event_type),
        text(session.wait_event),
        Value::text(session.state.name()),
        session
            .transaction_id
            .map_or(Value::Null, |xid| Value::Int8(xid as i64)),
        session.xmin.map_or(Value::Null, |xmin| Value::Int8(xmin as i64)),
        Value::Null,
        Value::text(session.query.as_str()),
        Value::text(session.backend_type.name()),
    ]
}

/// As PostgreSQL shows its auxiliary processes: no database, no role, no state.
fn background_row(thread: BackgroundActivity) -> Vec<Value> {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
    let mut row = vec![Value::Null; 22];
    row[2] = Value::Int4(thread.process_id as i32);
    row[10] = Value::TimestampTz(thread.backend_start);
    row[14] = text(thread.wait_event_type);
    row[15] = text(thread.wait_event);
    row[20] = Value::text("");
    row[21] = Value::text(thread.kind.name());
    row
}

fn index_rows(table: &TableDef) -> Vec<Vec<Value>> {
    let row = |index: &Arc<clearway_sql::IndexDef>| {
        let columns: Vec<&str> = index
            .columns
            .iter()
            .map(|number| table.columns[usize::from(*number)].name.as_str())
            .collect();
        let definition = format!(
            "CREATE {}INDEX {} ON public.{} USING btree ({})",
            if index.unique { "UNIQUE " } else { "" },
            index.name,
            table.name,
            columns.join(", ")
        );
        vec![
            Value::text("public"),
            Value::text(table.name.as_str()),
            Value::text(index.name.as_str()),
            Value::text(definition),
        ]
    };
    table.indexes.iter().map(row).collect()
}

/// PostgreSQL's numbers, names and categories of types: ours, and those that drivers ask for by number in advance.
const TYPES: &[(u32, &str, &str)] = &[
    (16, "bool", "B"),
    (18, "char", "Z"),
    (19, "name", "S"),
    (20, "int8", "N"),
    (21, "int2", "N"),
    (23, "int4", "N"),
    (25, "text", "S"),
    (26, "oid", "N"),
    (114, "json", "U"),
    (700, "float4", "N"),
    (701, "float8", "N"),
    (705, "unknown", "X"),
    (1042, "bpchar", "S"),
    (1043, "varchar", "S"),
    (1082, "date", "D"),
    (1114, "timestamp", "D"),
    (1184, "timestamptz", "D"),
    (1700, "numeric", "N"),
    (3802, "jsonb", "U"),
];

/// The number of the schema `pg_catalog`.
const PG_CATALOG_OID: u32 = 11;

fn type_rows() -> Vec<Vec<Value>> {
    let row = |(oid, name, category): &(u32, &str, &str)| {
        vec![
            Value::Oid(*oid),
            Value::text(*name),
            Value::Oid(PG_CATALOG_OID),
            Value::text("b"),
            Value::text(*category),
            Value::text(","),
            Value::Oid(0),
            Value::Oid(0),
            Value::Oid(0),
            Value::Oid(0),
        ]
    };
    TYPES.iter().map(row).collect()
}

/// The process's numbers, then one for each session.
fn memory_rows(sessions: Vec<SessionActivity>) -> Vec<Vec<Value>> {
    let number = |bytes: u64| Value::Int8(bytes.cast_signed());
    let of_process = memory::of_process()
        .into_iter()
        .map(|(name, bytes)| vec![Value::Null, Value::text(name), bytes.map_or(Value::Null, number)]);
    let of_sessions = sessions.into_iter().map(|session| {
        vec![
            Value::Int4(session.process_id as i32),
            Value::text("session"),
            number(session.memory_bytes),
        ]
    });
    of_process.chain(of_sessions).collect()
}

fn latch_rows() -> Vec<Vec<Value>> {
    let number = |count: Option<u64>| count.map_or(Value::Null, |count| Value::Int8(count as i64));
    let mut rows = Vec::new();
    for class in clearway_latch::statistics() {
        for (mode, counts) in [
            ("shared", &class.shared),
            ("exclusive", &class.exclusive),
            ("update", &class.update),
            ("until-free", &class.until_free),
        ] {
            // Few classes have latches with an update mode.
            if mode == "update" && counts.acquisitions.unwrap_or(0) == 0 && counts.conflicts == 0 {
                continue;
            }
            rows.push(vec![
                Value::text(class.name),
                Value::text(mode),
                number(counts.acquisitions),
                number(Some(counts.conflicts)),
                number(Some(counts.spins)),
                number(Some(counts.sleeps)),
                number(counts.wait_ns_at(0.5)),
                number(counts.wait_ns_at(0.99)),
            ]);
        }
    }
    rows
}
