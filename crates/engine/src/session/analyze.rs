//! ANALYZE: from a sample of a table's rows to the statistics that its definition names.
//!
//! # Steps, for each table
//! 1. Lock it against vacuums and changes of its definition, and take a snapshot.
//! 2. Choose pages, read the visible rows on them, and keep some ([`clearway_sql::statistics`]): as many as 300 times the
//!    statistics target, in `maintenance_work_mem` bytes. The target is the largest one of a column.
//! 3. Make the statistics of each column; one whose target is 0 keeps those that it has.
//! 4. Lock the catalog, and change the definition.
//!
//! Outside of a transaction block 1 to 3 are a transaction and 4 is another, which first locks the catalog and then the
//! table, as every change of definitions does: a large table is read without keeping others from the catalog, and no two
//! wait for each other in a circle. The second looks if the table still is what was read. Inside a block there is one
//! transaction, so 4 comes with the catalog's lock taken first.
//!
//! The seed of the sample is the table's number: the same table gives the same statistics.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use clearway_storage::RelId;
use clearway_storage::heap::Heap;
use clearway_txn::LockMode;

use crate::activity::{BackendType, SessionInfo};
use crate::catalog::{CATALOG_REL, TableEntry, TableUse};
use crate::convert::storage_error;
use crate::definition;
use crate::engine::{BACKGROUND_LOCK_TIMEOUT, Engine};
use crate::executor::InnerPlans;
use crate::executor::subquery::SubqueryResults;
use crate::output::{Discard, Notice, Output};
use crate::session::Session;
use crate::synchronous_commit::SynchronousCommit;
use crate::transaction::Phase;
use clearway_sql::error::{Result, SqlState};
use clearway_sql::function::quote_identifier;
use clearway_sql::plan::MaintainedTable;
use clearway_sql::statistics::{
    BlockSample, ColumnSample, ROWS_PER_TARGET, RowSample, SampledTable, Seed, TableStatistics,
};
use clearway_sql::value::{ColumnSet, Value};
use clearway_sql::{TableDef, TableKind};

/// The lock of a table that is analyzed: one VACUUM or ANALYZE at a time, no change of its definition.
const MODE: LockMode = LockMode::ShareUpdateExclusive;

/// Errors that end a background ANALYZE without a word.
const LEAVES_FOR_NEXT_TIME: [SqlState; 2] = [SqlState::LOCK_NOT_AVAILABLE, SqlState::UNDEFINED_TABLE];

/// The result of steps 1 to 3.
struct Analyzed {
    entry: Arc<TableEntry>,
    statistics: TableStatistics,
    /// The columns that were looked at; `None` = all.
    columns: Option<Vec<u16>>,
    sampled: usize,
    pages_read: u32,
    /// The rows that had changed since the ANALYZE before, when this one began.
    changed_before: u64,
}

impl Engine {
    /// Analyzes a table by a session of its own, for the background worker. A lock that is not to be had soon leaves the
    /// table for the next time, and so does a table that is another by now.
    pub(crate) fn analyze_in_background(self: &Arc<Self>, table: &TableDef) -> Result<()> {
        let config = &self.in_force().config;
        let timeout = BACKGROUND_LOCK_TIMEOUT.as_millis();
        // What the configuration says of clients' statements is not said of this one.
        let own = [
            ("lock_timeout", timeout.to_string()),
            ("statement_timeout", "0".to_owned()),
            ("default_transaction_isolation", "read committed".to_owned()),
            ("default_transaction_read_only", "off".to_owned()),
            ("pg_stat_statements.track", "none".to_owned()),
        ];
        let mut settings: Vec<_> = own.map(|(name, value)| (name.to_owned(), value)).into();
        if config.synchronous_commit != SynchronousCommit::Off {
            // No standby that is away keeps tables from being analyzed.
            settings.push(("synchronous_commit".to_owned(), "local".to_owned()));
        }
        let info = SessionInfo {
            settings,
            ..SessionInfo::default()
        };
        let mut session = self.session_of_type(BackendType::AutovacuumWorker, info)?;
        session.adopt_thread();
        let [schema, name] = [&*table.schema.name, &table.name].map(quote_identifier);
        let text = format!("ANALYZE {schema}.{name}");
        match session.execute_simple(&text, &mut Discard::default()) {
            Err(error) if LEAVES_FOR_NEXT_TIME.contains(&error.sqlstate()) => {
                tracing::debug!(%error, table = table.name, "not analyzed this time");
                Ok(())
            }
            result => result,
        }
    }
}

impl Session {
    /// Analyzes these tables; none = all.
    pub(super) fn analyze(
        &mut self,
        tables: &[MaintainedTable],
        verbose: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        let named: Vec<(u32, Option<&[u16]>)> = if tables.is_empty() {
            let all = self.txn.catalog_state().tables();
            all.iter().map(|entry| (entry.def.oid, None)).collect()
        } else {
            let named = tables.iter();
            named
                .map(|named| (named.table.oid, named.columns.as_deref()))
                .collect()
        };
        let is_part = self.among_others || self.txn.phase != Phase::None;
        for (oid, columns) in named {
            if self.txn.phase == Phase::None {
                self.begin(Phase::Implicit);
            }
            if is_part {
                self.lock_to_define(&[(CATALOG_REL, LockMode::ShareRowExclusive), (oid, MODE)])?;
            }
            if !is_part {
                // What this transaction adds is counted at its end.
                self.txn.hand_over_counts();
            }
            let Some(analyzed) = self.analyze_table(oid, columns)? else {
                continue;
            };
            if verbose {
                self.tell_of(&analyzed, out)?;
            }
            if !is_part {
                let rows = analyzed.statistics.rows as i64;
                analyzed.entry.runtime.live_rows.store(rows, Ordering::Relaxed);
                self.txn.end_statement();
                self.commit(out)?;
                self.begin(Phase::Implicit);
                self.lock_to_define(&[(CATALOG_REL, LockMode::ShareRowExclusive), (oid, MODE)])?;
            }
            self.keep_statistics(analyzed)?;
            self.txn.end_statement();
            if !is_part {
                self.commit(out)?;
            }
        }
        Ok(())
    }

    pub(super) fn lock(&mut self, oid: u32, mode: LockMode) -> Result<()> {
        let timeout = self.settings.lock_timeout;
        self.txn.lock_relation(oid, mode, &self.interrupts, timeout)?;
        // What is looked up from here on is the newest.
        self.txn.catalog_version();
        Ok(())
    }

    /// Takes the locks of a statement that changes definitions.
    pub(super) fn lock_to_define(&mut self, wanted: &[(u32, LockMode)]) -> Result<()> {
        let timeout = self.settings.lock_timeout;
        self.txn.lock_to_define(wanted, &self.interrupts, timeout)?;
        self.txn.catalog_version();
        Ok(())
    }

    /// Locks a table; its definition, if it is there and can be read.
    fn locked_table(&mut self, oid: u32) -> Result<Option<Arc<TableEntry>>> {
        self.lock(oid, MODE)?;
        let entry = self.txn.catalog_state().table(oid).cloned();
        let Some(entry) = entry.filter(|entry| matches!(entry.def.kind, TableKind::Heap { .. })) else {
            return Ok(None);
        };
        let table = TableUse::new(oid, MODE, Some(&entry));
        self.txn
            .take_snapshot_for(&[table], &self.interrupts, self.settings.lock_timeout)?;
        Ok(Some(entry))
    }

    /// Steps 1 to 3; `None` if the table is gone.
    fn analyze_table(&mut self, oid: u32, columns: Option<&[u16]>) -> Result<Option<Analyzed>> {
        let Some(entry) = self.locked_table(oid)? else {
            return Ok(None);
        };
        let changed_before = entry.runtime.changed_rows.load(Ordering::Relaxed);
        let target = self.settings.value("default_statistics_target");
        let target: usize = target.and_then(|text| text.parse().ok()).unwrap_or(100);
        // The sample is for the column that asks for the most.
        let targets: Vec<usize> = entry
            .def
            .columns
            .iter()
            .map(|column| column.statistics_target.map_or(target, usize::from))
            .collect();
        let is_wanted = |column: u16| columns.is_none_or(|wanted| wanted.contains(&column));
        let wanted = (0..).zip(&targets).filter(|(column, _)| is_wanted(*column));
        let most = wanted.map(|(_, target)| *target).max().unwrap_or(target).max(1);
        let (blocks, pages_read, sample) = self.sample(&entry, most)?;
        let offered = sample.offered() as f64;
        let rows = match pages_read {
            0 => 0.0,
            read => (offered / f64::from(read) * f64::from(blocks) + 0.5).floor(),
        };
        let sample = sample.finish();
        let old = entry.statistics.as_ref().map(|kept| Arc::clone(&kept.of_table));
        let mut statistics = TableStatistics {
            rows,
            pages: blocks,
            columns: old.map_or_else(Vec::new, |old| old.columns.clone()),
        };
        let count = entry.def.columns.len() as u16;
        statistics.columns.resize(usize::from(count), None);
        for column in 0..count {
            let target = targets[usize::from(column)];
            if !sample.is_empty() && target > 0 && is_wanted(column) {
                let table = SampledTable {
                    rows,
                    sampled: sample.len(),
                    target,
                };
                statistics.columns[usize::from(column)] =
                    Some(self.column_of(&entry.def, &sample, column)?.finish(table));
            }
        }
        Ok(Some(Analyzed {
            entry,
            statistics,
            columns: columns.map(<[u16]>::to_vec),
            sampled: sample.len(),
            pages_read,
            changed_before,
        }))
    }

    /// Step 2: the table's pages, those of them that were read, the sample of their rows.
    fn sample(&mut self, entry: &TableEntry, target: usize) -> Result<(u32, u32, RowSample)> {
        let rel = entry.rel();
        let wanted = ROWS_PER_TARGET * target;
        let seed = u64::from(entry.def.oid);
        let blocks = self
            .engine
            .storage
            .block_count(RelId(rel))
            .map_err(storage_error)?;
        let heap = Heap::new(rel);
        let mut sample = RowSample::new(wanted, self.settings.maintenance_work_mem, Seed::new(seed));
        let mut pages_read = 0;
        for block in BlockSample::new(blocks, wanted, Seed::new(!seed)) {
            self.interrupts.check()?;
            let context = self.txn.context();
            let mut scan = heap.scan_page(&context, block).map_err(storage_error)?;
            let mut offer = |_, row: &[u8]| sample.offer(row);
            while scan.next(&context, &mut offer).map_err(storage_error)?.is_some() {}
            self.txn.end_row();
            pages_read += 1;
        }
        Ok((blocks, pages_read, sample))
    }

    /// The values of a column in the sample.
    fn column_of(&self, table: &TableDef, sample: &[Box<[u8]>], column: u16) -> Result<ColumnSample> {
        let mut needed = ColumnSet::new();
        needed.insert(column);
        let mut row = vec![Value::Null; table.columns.len()];
        let place = usize::from(column);
        let mut found = ColumnSample::new(table.columns[place].data_type);
        self.interrupts.check()?;
        for bytes in sample {
            // What is stored apart stays there: it is too wide to be compared.
            let _ = table.codec.decode(bytes, &needed, &mut row)?;
            found.add(std::mem::take(&mut row[place]));
        }
        Ok(found)
    }

    /// Step 4, unless the table is another by now.
    fn keep_statistics(&mut self, mut analyzed: Analyzed) -> Result<()> {
        let before = &analyzed.entry;
        let Some(entry) = self.locked_table(before.def.oid)? else {
            return Ok(());
        };
        let types =
            |table: &TableDef| -> Vec<_> { table.columns.iter().map(|column| column.data_type).collect() };
        if entry.rel() != before.rel() || types(&entry.def) != types(&before.def) {
            return Ok(());
        }
        // Others may have kept those of other columns meanwhile.
        if let (Some(looked_at), Some(now)) = (&analyzed.columns, &entry.statistics) {
            let columns = analyzed.statistics.columns.iter_mut();
            for (place, column) in columns.enumerate() {
                if !looked_at.contains(&(place as u16)) {
                    *column = now.of_table.columns.get(place).cloned().flatten();
                }
            }
        }
        // As in PostgreSQL a read-only transaction may analyze: no row of a user changes.
        let read_only = std::mem::replace(&mut self.txn.read_only, false);
        let kept = self.with_execution(
            &[],
            InnerPlans::default(),
            &mut SubqueryResults::default(),
            |execution, engine| {
                definition::set_statistics(execution, &engine.catalog, &entry, analyzed.statistics)
            },
        );
        self.txn.read_only = read_only;
        kept?;
        let runtime = &entry.runtime;
        if analyzed.columns.is_none() {
            // Those that changed meanwhile are for the next time.
            let _ = runtime
                .changed_rows
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |changed| {
                    Some(changed.saturating_sub(analyzed.changed_before))
                });
        }
        let is_automatic = self.slot.backend_type() == BackendType::AutovacuumWorker;
        runtime.analyzes.note(is_automatic);
        Ok(())
    }

    fn tell_of(&self, analyzed: &Analyzed, out: &mut dyn Output) -> Result<()> {
        let Analyzed {
            entry,
            statistics,
            sampled,
            pages_read,
            ..
        } = analyzed;
        let name = &entry.def.name;
        let (live, dead) = (&entry.runtime.live_rows, &entry.runtime.dead_rows);
        let texts = [
            format!("analyzing \"{}.{name}\"", entry.def.schema.name),
            format!(
                "\"{name}\": scanned {pages_read} of {} pages, containing {} live rows and {} dead rows; {sampled} \
                 rows in sample, {} estimated total rows",
                statistics.pages,
                live.load(Ordering::Relaxed),
                dead.load(Ordering::Relaxed),
                statistics.rows,
            ),
        ];
        for message in texts {
            let notice = Notice::new("INFO", SqlState::SUCCESS, message);
            self.notice(&notice, out)?;
        }
        Ok(())
    }
}
