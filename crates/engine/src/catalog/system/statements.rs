//! `pg_stat_statements` and `pg_stat_statements_info`, under the names of PostgreSQL's extension, which is built in.

use super::Sources;
use super::rows::{NULL, Rows, boolean, int8, oid, text};
use super::server::DATABASE_OID;
use super::shape::Schema;
use crate::catalog::role::READ_ALL_STATISTICS;
use clearway_sql::function::USER_OID;
use clearway_sql::value::{Numeric, Value};

/// The number of the extension, and its name.
const EXTENSION_OID: u32 = 12_910;
const EXTENSION: &str = "pg_stat_statements";

/// The version of PostgreSQL's extension whose columns the view has.
const VERSION: &str = "1.10";

/// PostgreSQL's comment on it.
const COMMENT: &str = "track planning and execution statistics of all SQL statements executed";

/// `pg_stat_statements`. A role sees the numbers of the statements of others, and their texts only if it may read all
/// statistics.
pub(super) fn statements(sources: &Sources<'_>, rows: &mut Rows) {
    let catalog = sources.catalog;
    let reader = sources.identity.current;
    let count = |count: u64| int8(count.cast_signed());
    let float = Value::Float8;
    for shown in sources.statements.shown() {
        let is_seen = [shown.key.role, READ_ALL_STATISTICS]
            .into_iter()
            .any(|role| catalog.has_privileges_of(reader, role));
        let (number, query) = match is_seen {
            true => (int8(shown.key.number), Value::text(shown.text)),
            false => (NULL, text("<insufficient privilege>")),
        };
        let (counts, work) = (&shown.counts, &shown.counts.work);
        rows.push([
            ("userid", oid(shown.key.role)),
            ("dbid", oid(DATABASE_OID)),
            ("toplevel", boolean(true)),
            ("queryid", number),
            ("query", query),
            // The planner's work is not counted apart.
            ("plans", NULL),
            ("total_plan_time", NULL),
            ("min_plan_time", NULL),
            ("max_plan_time", NULL),
            ("mean_plan_time", NULL),
            ("stddev_plan_time", NULL),
            ("calls", count(counts.calls)),
            ("total_exec_time", float(counts.total_ms)),
            ("min_exec_time", float(counts.min_ms)),
            ("max_exec_time", float(counts.max_ms)),
            ("mean_exec_time", float(counts.mean_ms())),
            ("stddev_exec_time", float(counts.deviation_ms())),
            ("rows", count(work.rows)),
            ("shared_blks_hit", count(work.pages.hit)),
            ("shared_blks_read", count(work.pages.read)),
            ("shared_blks_dirtied", count(work.pages.dirtied)),
            ("shared_blks_written", count(work.pages.written)),
            // Pages of temporary tables are in the one pool.
            ("local_blks_hit", int8(0)),
            ("local_blks_read", int8(0)),
            ("local_blks_dirtied", int8(0)),
            ("local_blks_written", int8(0)),
            ("temp_blks_read", count(work.blocks.read)),
            ("temp_blks_written", count(work.blocks.written)),
            // No read or write is timed.
            ("blk_read_time", NULL),
            ("blk_write_time", NULL),
            ("temp_blk_read_time", NULL),
            ("temp_blk_write_time", NULL),
            ("wal_records", count(work.log.records)),
            ("wal_fpi", count(work.log.images)),
            (
                "wal_bytes",
                Value::Numeric(Numeric::from(i128::from(work.log.bytes))),
            ),
            // Nothing is compiled.
            ("jit_functions", int8(0)),
            ("jit_generation_time", float(0.0)),
            ("jit_inlining_count", int8(0)),
            ("jit_inlining_time", float(0.0)),
            ("jit_optimization_count", int8(0)),
            ("jit_optimization_time", float(0.0)),
            ("jit_emission_count", int8(0)),
            ("jit_emission_time", float(0.0)),
        ]);
    }
}

/// `pg_stat_statements_info`
pub(super) fn info(sources: &Sources<'_>, rows: &mut Rows) {
    let (removals, reset_us) = sources.statements.removals();
    rows.push([
        ("dealloc", int8(removals.cast_signed())),
        ("stats_reset", Value::TimestampTz(reset_us)),
    ]);
}

/// `pg_extension`: the one that is always there.
pub(super) fn extensions(_: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("oid", oid(EXTENSION_OID)),
        ("extname", text(EXTENSION)),
        ("extowner", oid(USER_OID)),
        ("extnamespace", oid(Schema::PgCatalog.oid())),
        ("extrelocatable", boolean(false)),
        ("extversion", text(VERSION)),
        ("extconfig", NULL),
        ("extcondition", NULL),
    ]);
}

/// `pg_available_extensions`
pub(super) fn available(_: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("name", text(EXTENSION)),
        ("default_version", text(VERSION)),
        ("installed_version", text(VERSION)),
        ("comment", text(COMMENT)),
    ]);
}

/// `pg_available_extension_versions`
pub(super) fn available_versions(_: &Sources<'_>, rows: &mut Rows) {
    rows.push([
        ("name", text(EXTENSION)),
        ("version", text(VERSION)),
        ("installed", boolean(true)),
        ("superuser", boolean(true)),
        ("trusted", boolean(false)),
        ("relocatable", boolean(false)),
        ("schema", text(Schema::PgCatalog.name())),
        ("requires", NULL),
        ("comment", text(COMMENT)),
    ]);
}
