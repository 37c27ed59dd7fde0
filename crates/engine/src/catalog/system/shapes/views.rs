//! The views of `pg_catalog`.
//!
//! In those about sessions and replication a transaction's number is a bigint.

use crate::catalog::system::shape::Shape;

/// `pg_available_extension_versions`
pub(crate) const PG_AVAILABLE_EXTENSION_VERSIONS: Shape = Shape::view(
    12_085,
    "pg_available_extension_versions",
    "name name, version text, installed bool, superuser bool, trusted bool, relocatable bool, schema name, \
     requires _name, comment text",
);

/// `pg_available_extensions`
pub(crate) const PG_AVAILABLE_EXTENSIONS: Shape = Shape::view(
    12_081,
    "pg_available_extensions",
    "name name, default_version text, installed_version text, comment text",
);

/// `pg_cursors`
pub(crate) const PG_CURSORS: Shape = Shape::view(
    12_077,
    "pg_cursors",
    "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time timestamptz",
);

/// `pg_file_settings`
pub(crate) const PG_FILE_SETTINGS: Shape = Shape::view(
    12_110,
    "pg_file_settings",
    "sourcefile text, sourceline int4, seqno int4, name text, setting text, applied bool, error text",
);

/// `pg_group`
pub(crate) const PG_GROUP: Shape =
    Shape::view(12_010, "pg_group", "groname name, grosysid oid, grolist _oid");

/// `pg_hba_file_rules`
pub(crate) const PG_HBA_FILE_RULES: Shape = Shape::view(
    12_114,
    "pg_hba_file_rules",
    "line_number int4, type text, database _text, user_name _text, address text, netmask text, auth_method \
     text, options _text, error text",
);

/// `pg_indexes`
pub(crate) const PG_INDEXES: Shape = Shape::view(
    12_043,
    "pg_indexes",
    "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
);

/// `pg_locks`
pub(crate) const PG_LOCKS: Shape = Shape::view(
    12_073,
    "pg_locks",
    "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid int8, classid \
     oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, \
     waitstart timestamptz",
);

/// `pg_matviews`
pub(crate) const PG_MATVIEWS: Shape = Shape::view(
    12_038,
    "pg_matviews",
    "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated \
     bool, definition text",
);

/// `pg_policies`
pub(crate) const PG_POLICIES: Shape = Shape::view(
    12_018,
    "pg_policies",
    "schemaname name, tablename name, policyname name, permissive text, roles _name, cmd text, qual text, \
     with_check text",
);

/// `pg_prepared_statements`
pub(crate) const PG_PREPARED_STATEMENTS: Shape = Shape::view(
    12_095,
    "pg_prepared_statements",
    "name text, statement text, prepare_time timestamptz, parameter_types _regtype, from_sql bool, generic_plans \
     int8, custom_plans int8",
);

/// `pg_prepared_xacts`
pub(crate) const PG_PREPARED_XACTS: Shape = Shape::view(
    12_090,
    "pg_prepared_xacts",
    "transaction xid, gid text, prepared timestamptz, owner name, database name",
);

/// `pg_publication_tables`
pub(crate) const PG_PUBLICATION_TABLES: Shape = Shape::view(
    12_068,
    "pg_publication_tables",
    "pubname name, schemaname name, tablename name, attnames _name, rowfilter text",
);

/// `pg_replication_origin_status`
pub(crate) const PG_REPLICATION_ORIGIN_STATUS: Shape = Shape::view(
    12_332,
    "pg_replication_origin_status",
    "local_id oid, external_id text, remote_lsn pg_lsn, local_lsn pg_lsn",
);

/// `pg_replication_slots`
pub(crate) const PG_REPLICATION_SLOTS: Shape = Shape::view(
    12_257,
    "pg_replication_slots",
    "slot_name name, plugin name, slot_type text, datoid oid, database name, temporary bool, active bool, \
     active_pid int4, xmin int8, catalog_xmin int8, restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status \
     text, safe_wal_size int8, two_phase bool",
);

/// `pg_roles`
pub(crate) const PG_ROLES: Shape = Shape::view(
    12_000,
    "pg_roles",
    "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, \
     rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, \
     rolconfig _text, oid oid",
);

/// `pg_rules`
pub(crate) const PG_RULES: Shape = Shape::view(
    12_023,
    "pg_rules",
    "schemaname name, tablename name, rulename name, definition text",
);

/// `pg_seclabels`
pub(crate) const PG_SECLABELS: Shape = Shape::view(
    12_099,
    "pg_seclabels",
    "objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider text, \
     label text",
);

/// `pg_sequences`
pub(crate) const PG_SEQUENCES: Shape = Shape::view(
    12_048,
    "pg_sequences",
    "schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value int8, min_value \
     int8, max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8",
);

/// `pg_settings`
pub(crate) const PG_SETTINGS: Shape = Shape::view(
    12_104,
    "pg_settings",
    "name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, \
     vartype text, source text, min_val text, max_val text, enumvals _text, boot_val text, reset_val text, \
     sourcefile text, sourceline int4, pending_restart bool",
);

/// `pg_shadow`
pub(crate) const PG_SHADOW: Shape = Shape::view(
    12_005,
    "pg_shadow",
    "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd \
     text, valuntil timestamptz, useconfig _text",
);

/// `pg_stat_activity`
pub(crate) const PG_STAT_ACTIVITY: Shape = Shape::view(
    12_222,
    "pg_stat_activity",
    "datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, \
     client_addr inet, client_hostname text, client_port int4, backend_start timestamptz, xact_start \
     timestamptz, query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, \
     state text, backend_xid int8, backend_xmin int8, query_id int8, query text, backend_type text",
);

/// `pg_stat_all_indexes`
pub(crate) const PG_STAT_ALL_INDEXES: Shape = Shape::view(
    12_183,
    "pg_stat_all_indexes",
    "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read \
     int8, idx_tup_fetch int8",
);

/// `pg_stat_all_tables`
pub(crate) const PG_STAT_ALL_TABLES: Shape = Shape::view(
    12_142,
    "pg_stat_all_tables",
    "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch \
     int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup \
     int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum \
     timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count \
     int8, analyze_count int8, autoanalyze_count int8",
);

/// `pg_stat_archiver`
pub(crate) const PG_STAT_ARCHIVER: Shape = Shape::view(
    12_285,
    "pg_stat_archiver",
    "archived_count int8, last_archived_wal text, last_archived_time timestamptz, failed_count int8, \
     last_failed_wal text, last_failed_time timestamptz, stats_reset timestamptz",
);

/// `pg_stat_bgwriter`
pub(crate) const PG_STAT_BGWRITER: Shape = Shape::view(
    12_289,
    "pg_stat_bgwriter",
    "checkpoints_timed int8, checkpoints_req int8, checkpoint_write_time float8, checkpoint_sync_time float8, \
     buffers_checkpoint int8, buffers_clean int8, maxwritten_clean int8, buffers_backend int8, \
     buffers_backend_fsync int8, buffers_alloc int8, stats_reset timestamptz",
);

/// `pg_stat_database`
pub(crate) const PG_STAT_DATABASE: Shape = Shape::view(
    12_266,
    "pg_stat_database",
    "datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read int8, \
     blks_hit int8, tup_returned int8, tup_fetched int8, tup_inserted int8, tup_updated int8, tup_deleted \
     int8, conflicts int8, temp_files int8, temp_bytes int8, deadlocks int8, checksum_failures int8, \
     checksum_last_failure timestamptz, blk_read_time float8, blk_write_time float8, session_time float8, \
     active_time float8, idle_in_transaction_time float8, sessions int8, sessions_abandoned int8, \
     sessions_fatal int8, sessions_killed int8, stats_reset timestamptz",
);

/// `pg_stat_database_conflicts`
pub(crate) const PG_STAT_DATABASE_CONFLICTS: Shape = Shape::view(
    12_271,
    "pg_stat_database_conflicts",
    "datid oid, datname name, confl_tablespace int8, confl_lock int8, confl_snapshot int8, confl_bufferpin \
     int8, confl_deadlock int8",
);

/// `pg_stat_progress_copy`
pub(crate) const PG_STAT_PROGRESS_COPY: Shape = Shape::view(
    12_322,
    "pg_stat_progress_copy",
    "pid int4, datid oid, datname name, relid oid, command text, type text, bytes_processed int8, bytes_total int8, \
     tuples_processed int8, tuples_excluded int8",
);

/// `pg_stat_progress_create_index`
pub(crate) const PG_STAT_PROGRESS_CREATE_INDEX: Shape = Shape::view(
    12_312,
    "pg_stat_progress_create_index",
    "pid int4, datid oid, datname name, relid oid, index_relid oid, command text, phase text, lockers_total int8, \
     lockers_done int8, current_locker_pid int8, blocks_total int8, blocks_done int8, tuples_total int8, tuples_done \
     int8, partitions_total int8, partitions_done int8",
);

/// `pg_stat_progress_vacuum`
pub(crate) const PG_STAT_PROGRESS_VACUUM: Shape = Shape::view(
    12_302,
    "pg_stat_progress_vacuum",
    "pid int4, datid oid, datname name, relid oid, phase text, heap_blks_total int8, heap_blks_scanned int8, \
     heap_blks_vacuumed int8, index_vacuum_count int8, max_dead_tuples int8, num_dead_tuples int8",
);

/// `pg_stat_replication`
pub(crate) const PG_STAT_REPLICATION: Shape = Shape::view(
    12_227,
    "pg_stat_replication",
    "pid int4, usesysid oid, usename name, application_name text, client_addr inet, client_hostname text, \
     client_port int4, backend_start timestamptz, backend_xmin int8, state text, sent_lsn pg_lsn, write_lsn \
     pg_lsn, flush_lsn pg_lsn, replay_lsn pg_lsn, write_lag interval, flush_lag interval, replay_lag \
     interval, sync_priority int4, sync_state text, reply_time timestamptz",
);

/// `pg_stat_replication_slots`
pub(crate) const PG_STAT_REPLICATION_SLOTS: Shape = Shape::view(
    12_262,
    "pg_stat_replication_slots",
    "slot_name text, spill_txns int8, spill_count int8, spill_bytes int8, stream_txns int8, stream_count \
     int8, stream_bytes int8, total_txns int8, total_bytes int8, stats_reset timestamptz",
);

/// `pg_stat_ssl`
pub(crate) const PG_STAT_SSL: Shape = Shape::view(
    12_249,
    "pg_stat_ssl",
    "pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, client_serial numeric, \
     issuer_dn text",
);

/// `pg_stat_statements`, of PostgreSQL's extension; the number is ours
pub(crate) const PG_STAT_STATEMENTS: Shape = Shape::view(
    12_911,
    "pg_stat_statements",
    "userid oid, dbid oid, toplevel bool, queryid int8, query text, plans int8, total_plan_time float8, \
     min_plan_time float8, max_plan_time float8, mean_plan_time float8, stddev_plan_time float8, calls int8, \
     total_exec_time float8, min_exec_time float8, max_exec_time float8, mean_exec_time float8, \
     stddev_exec_time float8, rows int8, shared_blks_hit int8, shared_blks_read int8, shared_blks_dirtied int8, \
     shared_blks_written int8, local_blks_hit int8, local_blks_read int8, local_blks_dirtied int8, \
     local_blks_written int8, temp_blks_read int8, temp_blks_written int8, blk_read_time float8, \
     blk_write_time float8, temp_blk_read_time float8, temp_blk_write_time float8, wal_records int8, wal_fpi int8, \
     wal_bytes numeric, jit_functions int8, jit_generation_time float8, jit_inlining_count int8, \
     jit_inlining_time float8, jit_optimization_count int8, jit_optimization_time float8, jit_emission_count int8, \
     jit_emission_time float8",
);

/// `pg_stat_statements_info`, likewise
pub(crate) const PG_STAT_STATEMENTS_INFO: Shape = Shape::view(
    12_912,
    "pg_stat_statements_info",
    "dealloc int8, stats_reset timestamptz",
);

/// `pg_stat_subscription`
pub(crate) const PG_STAT_SUBSCRIPTION: Shape = Shape::view(
    12_244,
    "pg_stat_subscription",
    "subid oid, subname name, pid int4, relid oid, received_lsn pg_lsn, last_msg_send_time timestamptz, \
     last_msg_receipt_time timestamptz, latest_end_lsn pg_lsn, latest_end_time timestamptz",
);

/// `pg_stat_subscription_stats`
pub(crate) const PG_STAT_SUBSCRIPTION_STATS: Shape = Shape::view(
    12_336,
    "pg_stat_subscription_stats",
    "subid oid, subname name, apply_error_count int8, sync_error_count int8, stats_reset timestamptz",
);

/// `pg_stat_sys_indexes`
pub(crate) const PG_STAT_SYS_INDEXES: Shape = Shape::view(
    12_188,
    "pg_stat_sys_indexes",
    "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read \
     int8, idx_tup_fetch int8",
);

/// `pg_stat_sys_tables`
pub(crate) const PG_STAT_SYS_TABLES: Shape = Shape::view(
    12_152,
    "pg_stat_sys_tables",
    "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch \
     int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup \
     int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum \
     timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count \
     int8, analyze_count int8, autoanalyze_count int8",
);

/// `pg_stat_user_functions`
pub(crate) const PG_STAT_USER_FUNCTIONS: Shape = Shape::view(
    12_275,
    "pg_stat_user_functions",
    "funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8",
);

/// `pg_stat_user_indexes`
pub(crate) const PG_STAT_USER_INDEXES: Shape = Shape::view(
    12_192,
    "pg_stat_user_indexes",
    "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read \
     int8, idx_tup_fetch int8",
);

/// `pg_stat_user_tables`
pub(crate) const PG_STAT_USER_TABLES: Shape = Shape::view(
    12_161,
    "pg_stat_user_tables",
    "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch \
     int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup \
     int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum \
     timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count \
     int8, analyze_count int8, autoanalyze_count int8",
);

/// `pg_stat_wal`
pub(crate) const PG_STAT_WAL: Shape = Shape::view(
    12_293,
    "pg_stat_wal",
    "wal_records int8, wal_fpi int8, wal_bytes numeric, wal_buffers_full int8, wal_write int8, wal_sync int8, \
     wal_write_time float8, wal_sync_time float8, stats_reset timestamptz",
);

/// `pg_stat_wal_receiver`
pub(crate) const PG_STAT_WAL_RECEIVER: Shape = Shape::view(
    12_236,
    "pg_stat_wal_receiver",
    "pid int4, status text, receive_start_lsn pg_lsn, receive_start_tli int4, written_lsn pg_lsn, flushed_lsn \
     pg_lsn, received_tli int4, last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, \
     latest_end_lsn pg_lsn, latest_end_time timestamptz, slot_name text, sender_host text, sender_port int4, \
     conninfo text",
);

/// `pg_statio_all_indexes`
pub(crate) const PG_STATIO_ALL_INDEXES: Shape = Shape::view(
    12_196,
    "pg_statio_all_indexes",
    "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, \
     idx_blks_hit int8",
);

/// `pg_statio_all_sequences`
pub(crate) const PG_STATIO_ALL_SEQUENCES: Shape = Shape::view(
    12_209,
    "pg_statio_all_sequences",
    "relid oid, schemaname name, relname name, blks_read int8, blks_hit int8",
);

/// `pg_statio_all_tables`
pub(crate) const PG_STATIO_ALL_TABLES: Shape = Shape::view(
    12_170,
    "pg_statio_all_tables",
    "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, \
     idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8",
);

/// `pg_statio_sys_indexes`
pub(crate) const PG_STATIO_SYS_INDEXES: Shape = Shape::view(
    12_201,
    "pg_statio_sys_indexes",
    "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, \
     idx_blks_hit int8",
);

/// `pg_statio_sys_sequences`
pub(crate) const PG_STATIO_SYS_SEQUENCES: Shape = Shape::view(
    12_214,
    "pg_statio_sys_sequences",
    "relid oid, schemaname name, relname name, blks_read int8, blks_hit int8",
);

/// `pg_statio_sys_tables`
pub(crate) const PG_STATIO_SYS_TABLES: Shape = Shape::view(
    12_175,
    "pg_statio_sys_tables",
    "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, \
     idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8",
);

/// `pg_statio_user_indexes`
pub(crate) const PG_STATIO_USER_INDEXES: Shape = Shape::view(
    12_205,
    "pg_statio_user_indexes",
    "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, \
     idx_blks_hit int8",
);

/// `pg_statio_user_sequences`
pub(crate) const PG_STATIO_USER_SEQUENCES: Shape = Shape::view(
    12_218,
    "pg_statio_user_sequences",
    "relid oid, schemaname name, relname name, blks_read int8, blks_hit int8",
);

/// `pg_statio_user_tables`
pub(crate) const PG_STATIO_USER_TABLES: Shape = Shape::view(
    12_179,
    "pg_statio_user_tables",
    "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, \
     idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8",
);

/// `pg_stats`
pub(crate) const PG_STATS: Shape = Shape::view(
    12_053,
    "pg_stats",
    "schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4, \
     n_distinct float4, most_common_vals anyarray, most_common_freqs _float4, histogram_bounds \
     anyarray, correlation float4, most_common_elems anyarray, most_common_elem_freqs _float4, elem_count_histogram \
     _float4",
);

/// `pg_stats_ext`
pub(crate) const PG_STATS_EXT: Shape = Shape::view(
    12_058,
    "pg_stats_ext",
    "schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner \
     name, attnames _name, exprs _text, kinds _char, inherited bool, n_distinct pg_ndistinct, dependencies \
     pg_dependencies, most_common_vals _text, most_common_val_nulls _bool, most_common_freqs _float8, \
     most_common_base_freqs _float8",
);

/// `pg_tables`
pub(crate) const PG_TABLES: Shape = Shape::view(
    12_033,
    "pg_tables",
    "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules bool, \
     hastriggers bool, rowsecurity bool",
);

/// `pg_timezone_abbrevs`
pub(crate) const PG_TIMEZONE_ABBREVS: Shape = Shape::view(
    12_122,
    "pg_timezone_abbrevs",
    "abbrev text, utc_offset interval, is_dst bool",
);

/// `pg_timezone_names`
pub(crate) const PG_TIMEZONE_NAMES: Shape = Shape::view(
    12_126,
    "pg_timezone_names",
    "name text, abbrev text, utc_offset interval, is_dst bool",
);

/// `pg_user`
pub(crate) const PG_USER: Shape = Shape::view(
    12_014,
    "pg_user",
    "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd \
     text, valuntil timestamptz, useconfig _text",
);

/// `pg_user_mappings`
pub(crate) const PG_USER_MAPPINGS: Shape = Shape::view(
    12_327,
    "pg_user_mappings",
    "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions _text",
);

/// `pg_views`
pub(crate) const PG_VIEWS: Shape = Shape::view(
    12_028,
    "pg_views",
    "schemaname name, viewname name, viewowner name, definition text",
);

/// `clearway_latches`: a latch class and mode, with acquisitions, conflicts, spins, sleeps, waits
pub(crate) const CLEARWAY_LATCHES: Shape = Shape::view(
    12_900,
    "clearway_latches",
    "name text!, mode text!, acquisitions int8, conflicts int8!, spins int8!, sleeps int8!, wait_p50_ns int8, \
     wait_p99_ns int8",
);

/// `clearway_memory`: what the process has in all, or one session, in bytes
pub(crate) const CLEARWAY_MEMORY: Shape =
    Shape::view(12_901, "clearway_memory", "pid int4, name text!, bytes int8");
