//! Statistics of tables, indexes, the database and the server. A count that is not kept is NULL.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::rows::{NULL, Rows, int4, int8, oid, text};
use super::server::DATABASE_OID;
use super::{SYSTEM_TABLES, Sources, sequences};
use crate::catalog::{Runs, TableRuntime};
use crate::server_counts::DatabaseCounts;
use clearway_sql::catalog_facts::TableStatistic;
use clearway_sql::value::{Numeric, Value};
use clearway_sql::{TableDef, TableKind};
use clearway_storage::RelId;

impl TableRuntime {
    /// A statistic of the table; `None` for one that is not kept, and for the time of what was never done.
    pub(crate) fn statistic(&self, what: TableStatistic) -> Option<i64> {
        use TableStatistic as S;
        let count = |count: &AtomicU64| Some(count.load(Ordering::Relaxed).cast_signed());
        let last = |runs: &Runs| Some(runs.last_us.load(Ordering::Relaxed)).filter(|at| *at != 0);
        match what {
            S::LastVacuum => last(&self.vacuums.requested),
            S::LastAutovacuum => last(&self.vacuums.automatic),
            S::LastAnalyze => last(&self.analyzes.requested),
            S::LastAutoanalyze => last(&self.analyzes.automatic),
            S::Vacuums => count(&self.vacuums.requested.count),
            S::Autovacuums => count(&self.vacuums.automatic.count),
            S::Analyzes => count(&self.analyzes.requested.count),
            S::Autoanalyzes => count(&self.analyzes.automatic.count),
            S::LiveRows => Some(self.live_rows.load(Ordering::Relaxed).max(0)),
            S::DeadRows => count(&self.dead_rows),
            S::ChangedRows => count(&self.changed_rows),
            S::Inserted => count(&self.inserted),
            S::Updated => count(&self.updated),
            S::Deleted => count(&self.deleted),
            S::Scans => count(&self.scans),
        }
    }
}

/// A count.
fn count(count: u64) -> Value {
    int8(count.cast_signed())
}

/// A time that is counted in microseconds, in milliseconds.
fn milliseconds(us: u64) -> Value {
    Value::Float8(us as f64 / 1_000.0)
}

/// A table whose statistics are shown.
struct Counted {
    oid: u32,
    schema: Arc<str>,
    name: String,
    runtime: Option<Arc<TableRuntime>>,
    definition: Option<Arc<TableDef>>,
    has_indexes: bool,
}

fn user_tables(sources: &Sources<'_>) -> Vec<Counted> {
    let counted = |entry: &Arc<crate::catalog::TableEntry>| Counted {
        oid: entry.def.oid,
        schema: Arc::clone(&entry.def.schema.name),
        name: entry.def.name.clone(),
        runtime: Some(Arc::clone(&entry.runtime)),
        definition: Some(Arc::clone(&entry.def)),
        has_indexes: entry.def.all_indexes().next().is_some(),
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
        definition: None,
        has_indexes: false,
    });
    counted.collect()
}

fn push_tables(tables: Vec<Counted>, rows: &mut Rows) {
    for table in tables {
        let statistic = |what| table.runtime.as_deref().and_then(|of| of.statistic(what));
        let last = |what| statistic(what).map_or(NULL, Value::TimestampTz);
        let count = |what| statistic(what).map_or(NULL, int8);
        let index_scans = match &table.runtime {
            Some(runtime) if table.has_indexes => int8(runtime.index_scans(None).cast_signed()),
            _ => NULL,
        };
        rows.push([
            ("relid", oid(table.oid)),
            ("schemaname", text(&table.schema)),
            ("relname", text(&table.name)),
            ("seq_scan", count(TableStatistic::Scans)),
            ("seq_tup_read", NULL),
            ("idx_scan", index_scans),
            ("idx_tup_fetch", NULL),
            ("n_tup_ins", count(TableStatistic::Inserted)),
            ("n_tup_upd", count(TableStatistic::Updated)),
            ("n_tup_del", count(TableStatistic::Deleted)),
            ("n_tup_hot_upd", NULL),
            ("n_live_tup", count(TableStatistic::LiveRows)),
            ("n_dead_tup", count(TableStatistic::DeadRows)),
            ("n_mod_since_analyze", count(TableStatistic::ChangedRows)),
            ("n_ins_since_vacuum", NULL),
            ("last_vacuum", last(TableStatistic::LastVacuum)),
            ("last_autovacuum", last(TableStatistic::LastAutovacuum)),
            ("last_analyze", last(TableStatistic::LastAnalyze)),
            ("last_autoanalyze", last(TableStatistic::LastAutoanalyze)),
            ("vacuum_count", count(TableStatistic::Vacuums)),
            ("autovacuum_count", count(TableStatistic::Autovacuums)),
            ("analyze_count", count(TableStatistic::Analyzes)),
            ("autoanalyze_count", count(TableStatistic::Autoanalyzes)),
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

/// Pages of relations that were read from their files; NULL for no relation.
fn pages_read(sources: &Sources<'_>, rels: impl Iterator<Item = u32>) -> Value {
    let reads = rels.map(|rel| sources.storage.pages_read(RelId(rel)));
    reads.reduce(|sum, reads| sum + reads).map_or(NULL, count)
}

/// A page that is found in memory is not counted for its relation: that would cost each reader of the page a write.
fn push_pages(sources: &Sources<'_>, tables: Vec<Counted>, rows: &mut Rows) {
    for table in tables {
        let definition = table.definition.as_deref();
        let indexes = definition.into_iter().flat_map(|table| table.all_indexes());
        let heap = definition.and_then(|table| match table.kind {
            TableKind::Heap { rel } => Some(rel),
            TableKind::Virtual | TableKind::View => None,
        });
        let long_values = definition.and_then(|table| table.long_rel);
        rows.push([
            ("relid", oid(table.oid)),
            ("schemaname", text(&table.schema)),
            ("relname", text(&table.name)),
            ("heap_blks_read", pages_read(sources, heap.into_iter())),
            ("heap_blks_hit", NULL),
            (
                "idx_blks_read",
                pages_read(sources, indexes.map(|index| index.rel)),
            ),
            ("idx_blks_hit", NULL),
            ("toast_blks_read", pages_read(sources, long_values.into_iter())),
            ("toast_blks_hit", NULL),
            ("tidx_blks_read", NULL),
            ("tidx_blks_hit", NULL),
        ]);
    }
}

/// `pg_statio_user_tables`
pub(super) fn pages_of_user_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_pages(sources, user_tables(sources), rows);
}

/// `pg_statio_sys_tables`
pub(super) fn pages_of_system_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_pages(sources, system_tables(), rows);
}

/// `pg_statio_all_tables`
pub(super) fn pages_of_all_tables(sources: &Sources<'_>, rows: &mut Rows) {
    push_pages(sources, user_tables(sources), rows);
    push_pages(sources, system_tables(), rows);
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
                ("idx_scan", count(entry.runtime.index_scans(Some(index.oid)))),
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
                ("idx_blks_read", pages_read(sources, std::iter::once(index.rel))),
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
    let sessions = (sources.activity)().len();
    let since = (sources.database_counts)();
    let DatabaseCounts { work, conflicts } = since.counts;
    rows.push([
        ("datid", oid(DATABASE_OID)),
        ("datname", text(sources.database)),
        ("numbackends", int4(sessions as i32)),
        ("xact_commit", count(work.commits)),
        ("xact_rollback", count(work.rollbacks)),
        ("blks_read", count(work.read)),
        ("blks_hit", count(work.hit)),
        ("tup_returned", NULL),
        ("tup_fetched", NULL),
        ("tup_inserted", count(work.inserted)),
        ("tup_updated", count(work.updated)),
        ("tup_deleted", count(work.deleted)),
        (
            "conflicts",
            int8((conflicts.lock + conflicts.snapshot).cast_signed()),
        ),
        ("temp_files", count(work.temporary_files)),
        ("temp_bytes", count(work.temporary_bytes)),
        ("deadlocks", count(work.deadlocks)),
        ("checksum_failures", NULL),
        ("checksum_last_failure", NULL),
        ("blk_read_time", NULL),
        ("blk_write_time", NULL),
        ("session_time", milliseconds(work.session_us)),
        ("active_time", milliseconds(work.active_us)),
        (
            "idle_in_transaction_time",
            milliseconds(work.idle_in_transaction_us),
        ),
        ("sessions", count(work.sessions)),
        ("sessions_abandoned", NULL),
        ("sessions_fatal", NULL),
        ("sessions_killed", count(work.sessions_killed)),
        ("stats_reset", Value::TimestampTz(since.reset_us)),
    ]);
}

/// `pg_stat_bgwriter`
pub(super) fn of_background_writer(sources: &Sources<'_>, rows: &mut Rows) {
    let since = (sources.writer_counts)();
    let counts = since.counts;
    rows.push([
        ("checkpoints_timed", count(counts.timed)),
        ("checkpoints_req", count(counts.requested)),
        ("checkpoint_write_time", milliseconds(counts.write_us)),
        ("checkpoint_sync_time", milliseconds(counts.sync_us)),
        ("buffers_checkpoint", count(counts.pages)),
        // No thread writes pages ahead of the sessions that want their frames.
        ("buffers_clean", int8(0)),
        ("maxwritten_clean", int8(0)),
        ("buffers_backend", count(counts.written)),
        // Checkpoints alone make data files durable.
        ("buffers_backend_fsync", int8(0)),
        ("buffers_alloc", count(counts.read)),
        ("stats_reset", Value::TimestampTz(since.reset_us)),
    ]);
}

/// `pg_stat_wal`: of the log that this server has written itself, which is none on a standby.
pub(super) fn of_log(sources: &Sources<'_>, rows: &mut Rows) {
    let since = (sources.log_counts)();
    let totals = since.counts;
    rows.push([
        ("wal_records", count(totals.records)),
        ("wal_fpi", count(totals.images)),
        (
            "wal_bytes",
            Value::Numeric(Numeric::from(i128::from(totals.bytes))),
        ),
        ("wal_buffers_full", count(totals.full)),
        ("wal_write", count(totals.writes)),
        ("wal_sync", count(totals.syncs)),
        // No write or sync is timed.
        ("wal_write_time", NULL),
        ("wal_sync_time", NULL),
        ("stats_reset", Value::TimestampTz(since.reset_us)),
    ]);
}

/// `pg_stat_archiver`: nothing archives the log.
pub(super) fn of_archiver(sources: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("archived_count", int8(0)),
        ("last_archived_wal", NULL),
        ("last_archived_time", NULL),
        ("failed_count", int8(0)),
        ("last_failed_wal", NULL),
        ("last_failed_time", NULL),
        ("stats_reset", Value::TimestampTz((sources.archiver_reset_us)())),
    ]);
}
