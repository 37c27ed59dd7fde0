//! Statistics of tables, indexes, the database and the server. A count that is not kept is NULL.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::rows::{NULL, Rows, int4, int8, oid, text};
use super::server::DATABASE_OID;
use super::{SYSTEM_TABLES, Sources, sequences};
use crate::catalog::{Runs, TableRuntime};
use clearway_sql::value::Value;

/// A table whose statistics are shown.
struct Counted {
    oid: u32,
    schema: Arc<str>,
    name: String,
    runtime: Option<Arc<TableRuntime>>,
}

fn user_tables(sources: &Sources<'_>) -> Vec<Counted> {
    let counted = |entry: &Arc<crate::catalog::TableEntry>| Counted {
        oid: entry.def.oid,
        schema: Arc::clone(&entry.def.schema.name),
        name: entry.def.name.clone(),
        runtime: Some(Arc::clone(&entry.runtime)),
    };
    sources.catalog.tables().iter().map(counted).collect()
}

fn system_tables() -> Vec<Counted> {
    let tables = SYSTEM_TABLES.iter().filter(|table| !table.shape.is_view);
    let counted = tables.map(|table| Counted {
        oid: table.shape.oid,
        schema: Arc::clone(&table.definition.schema.name),
        name: table.shape.name.to_owned(),
        runtime: None,
    });
    counted.collect()
}

fn push_tables(tables: Vec<Counted>, rows: &mut Rows) {
    for table in tables {
        let runtime = table.runtime.as_deref();
        let rows_of = |count: &AtomicU64| int8(count.load(Ordering::Relaxed).cast_signed());
        let runs = |of: fn(&TableRuntime) -> &Runs| runtime.map(of);
        let last = |of| {
            let last_us = runs(of).map_or(0, |runs| runs.last_us.load(Ordering::Relaxed));
            if last_us == 0 {
                NULL
            } else {
                Value::TimestampTz(last_us)
            }
        };
        let count = |of| runs(of).map_or(NULL, |runs| rows_of(&runs.count));
        rows.push([
            ("relid", oid(table.oid)),
            ("schemaname", text(&table.schema)),
            ("relname", text(&table.name)),
            ("seq_scan", NULL),
            ("seq_tup_read", NULL),
            ("idx_scan", NULL),
            ("idx_tup_fetch", NULL),
            ("n_tup_ins", NULL),
            ("n_tup_upd", NULL),
            ("n_tup_del", NULL),
            ("n_tup_hot_upd", NULL),
            (
                "n_live_tup",
                runtime.map_or(NULL, |of| int8(of.live_rows.load(Ordering::Relaxed).max(0))),
            ),
            ("n_dead_tup", runtime.map_or(NULL, |of| rows_of(&of.dead_rows))),
            (
                "n_mod_since_analyze",
                runtime.map_or(NULL, |of| rows_of(&of.changed_rows)),
            ),
            ("n_ins_since_vacuum", NULL),
            ("last_vacuum", last(|of| &of.vacuums.requested)),
            ("last_autovacuum", last(|of| &of.vacuums.automatic)),
            ("last_analyze", last(|of| &of.analyzes.requested)),
            ("last_autoanalyze", last(|of| &of.analyzes.automatic)),
            ("vacuum_count", count(|of| &of.vacuums.requested)),
            ("autovacuum_count", count(|of| &of.vacuums.automatic)),
            ("analyze_count", count(|of| &of.analyzes.requested)),
            ("autoanalyze_count", count(|of| &of.analyzes.automatic)),
        ]);
    }
}

/// `pg_stat_user_tables`
pub(super) fn of_user_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_tables(user_tables(sources), rows);
}

/// `pg_stat_sys_tables`
pub(super) fn of_system_tables(_: &Sources<'_>, rows: &mut Rows) {
    push_tables(system_tables(), rows);
}

/// `pg_stat_all_tables`
pub(super) fn of_all_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_tables(user_tables(sources), rows);
    push_tables(system_tables(), rows);
}

fn push_pages(tables: Vec<Counted>, rows: &mut Rows) {
    for table in tables {
        rows.push([
            ("relid", oid(table.oid)),
            ("schemaname", text(&table.schema)),
            ("relname", text(&table.name)),
            ("heap_blks_read", NULL),
            ("heap_blks_hit", NULL),
            ("idx_blks_read", NULL),
            ("idx_blks_hit", NULL),
            ("toast_blks_read", NULL),
            ("toast_blks_hit", NULL),
            ("tidx_blks_read", NULL),
            ("tidx_blks_hit", NULL),
        ]);
    }
}

/// `pg_statio_user_tables`
pub(super) fn pages_of_user_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_pages(user_tables(sources), rows);
}

/// `pg_statio_sys_tables`
pub(super) fn pages_of_system_tables(_: &Sources<'_>, rows: &mut Rows) {
    push_pages(system_tables(), rows);
}

/// `pg_statio_all_tables`
pub(super) fn pages_of_all_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_pages(user_tables(sources), rows);
    push_pages(system_tables(), rows);
}

/// `pg_stat_user_indexes`, `pg_stat_all_indexes`: the tables of the system have no indexes.
pub(super) fn of_indexes(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        for index in entry.def.all_indexes() {
            rows.push([
                ("relid", oid(entry.def.oid)),
                ("indexrelid", oid(index.oid)),
                ("schemaname", text(&entry.def.schema.name)),
                ("relname", text(&entry.def.name)),
                ("indexrelname", text(&index.name)),
                ("idx_scan", NULL),
                ("idx_tup_read", NULL),
                ("idx_tup_fetch", NULL),
            ]);
        }
    }
}

/// `pg_statio_user_indexes`, `pg_statio_all_indexes`
pub(super) fn pages_of_indexes(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        for index in entry.def.all_indexes() {
            rows.push([
                ("relid", oid(entry.def.oid)),
                ("indexrelid", oid(index.oid)),
                ("schemaname", text(&entry.def.schema.name)),
                ("relname", text(&entry.def.name)),
                ("indexrelname", text(&index.name)),
                ("idx_blks_read", NULL),
                ("idx_blks_hit", NULL),
            ]);
        }
    }
}

/// `pg_statio_user_sequences`, `pg_statio_all_sequences`
pub(super) fn pages_of_sequences(sources: &Sources<'_>, rows: &mut Rows) {
    sequences::each(sources, |table, _| {
        rows.push([
            ("relid", oid(table.oid)),
            ("schemaname", text(&table.schema.name)),
            ("relname", text(&table.name)),
            ("blks_read", NULL),
            ("blks_hit", NULL),
        ]);
    });
}

/// `pg_stat_database`
pub(super) fn of_database(sources: &Sources<'_>, rows: &mut Rows) {
    let conflicts = (sources.conflicts)();
    let sessions = (sources.activity)().len();
    rows.push([
        ("datid", oid(DATABASE_OID)),
        ("datname", text(sources.database)),
        ("numbackends", int4(sessions as i32)),
        ("xact_commit", NULL),
        ("xact_rollback", NULL),
        ("blks_read", NULL),
        ("blks_hit", NULL),
        ("tup_returned", NULL),
        ("tup_fetched", NULL),
        ("tup_inserted", NULL),
        ("tup_updated", NULL),
        ("tup_deleted", NULL),
        (
            "conflicts",
            int8((conflicts.lock + conflicts.snapshot).cast_signed()),
        ),
        ("temp_files", NULL),
        ("temp_bytes", NULL),
        ("deadlocks", NULL),
        ("checksum_failures", NULL),
        ("checksum_last_failure", NULL),
        ("blk_read_time", NULL),
        ("blk_write_time", NULL),
        ("session_time", NULL),
        ("active_time", NULL),
        ("idle_in_transaction_time", NULL),
        ("sessions", NULL),
        ("sessions_abandoned", NULL),
        ("sessions_fatal", NULL),
        ("sessions_killed", NULL),
        ("stats_reset", NULL),
    ]);
}

/// `pg_stat_bgwriter`
pub(super) fn of_background_writer(_: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("checkpoints_timed", NULL),
        ("checkpoints_req", NULL),
        ("checkpoint_write_time", NULL),
        ("checkpoint_sync_time", NULL),
        ("buffers_checkpoint", NULL),
        ("buffers_clean", NULL),
        ("maxwritten_clean", NULL),
        ("buffers_backend", NULL),
        ("buffers_backend_fsync", NULL),
        ("buffers_alloc", NULL),
        ("stats_reset", NULL),
    ]);
}

/// `pg_stat_archiver`: nothing archives the log.
pub(super) fn of_archiver(_: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("archived_count", int8(0)),
        ("last_archived_wal", NULL),
        ("last_archived_time", NULL),
        ("failed_count", int8(0)),
        ("last_failed_wal", NULL),
        ("last_failed_time", NULL),
        ("stats_reset", NULL),
    ]);
}
