//! CREATE INDEX, REINDEX and DROP INDEX CONCURRENTLY: indexes that come and go while others write.
//!
//! # An example
//! Alice makes an index on `k`. Bob writes.
//!
//! | time | Alice | Bob |
//! | --- | --- | --- |
//! | 1 | | begins to write, by a definition without the index |
//! | 2 | defines it, stage *building*; commits | |
//! | 3 | waits for Bob | an UPDATE of `k` is HOT: the chain has two keys |
//! | 4 | | commits. His next UPDATE of `k` knows of the index: not HOT |
//! | 5 | builds the tree under a snapshot; stage *written*; commits | inserts row 7 |
//! | 6 | waits for Bob, who may not enter his rows | commits; enters what he writes from here on |
//! | 7 | takes another snapshot, and enters the rows of it that the tree lacks: 7 | |
//! | 8 | waits for snapshots from before | |
//! | 9 | the index is one that statements read | |
//!
//! # Steps
//! | | CREATE INDEX | REINDEX, each index | DROP INDEX |
//! | --- | --- | --- | --- |
//! | 1 | define: *building* | the same, under another name | |
//! | 2 | wait for writers | the same | |
//! | 3 | build: *written* | the same | |
//! | 4 | wait for writers | the same | |
//! | 5 | complete | the same | |
//! | 6 | wait for older snapshots | the same | |
//! | 7 | finish: it is read | exchange the trees of both | |
//! | 8 | | the other one, *written* still: as DROP INDEX | withdraw: *written* |
//! | 9 | | wait for all that use the table | the same |
//! | 10 | | *dead* | *dead* |
//! | 11 | | wait for all that use the table | the same |
//! | 12 | | gone | gone |
//!
//! Each step is a transaction. A wait is for the transactions that hold the table's lock (4 and 9: whose mode excludes Share,
//! and any) at its beginning, and keeps no other from it; nothing is locked meanwhile, so none can wait for this session.
//!
//! # Rules
//! - I1: a statement locks its table before it looks at the definition, and a definition is published before those are looked
//!   for that hold the lock (`txn::lock_table::holders`). So a statement that goes by an earlier definition is waited for.
//! - I2: from step 2 on no new HOT chain has two keys: every UPDATE counts the index among those whose keys it may change,
//!   whatever its stage ([`clearway_sql::IndexStage`]). A chain that has two is older than the snapshot of step 3, which sees
//!   one version of it. All snapshots that see another are gone at step 7.
//! - I3: each row version that a snapshot of step 5 sees has an entry after it. Its writer either entered it (it began after
//!   step 3 was published, by I1), or ended before step 5, which finds it missing.
//! - I4: each row version that was written after that snapshot was entered by its writer, again by I1.
//! - I5: so a snapshot that sees the transaction of step 5, which got its number after its snapshot, finds its rows by the
//!   index. The definition of step 7 names that transaction, and a snapshot that does not see it is turned away (rule 4 of
//!   [`crate::catalog`]). The wait of step 6 is there so that none is, except on a standby.
//! - I6: a tree is removed when no transaction that could read or write it is left: plans of before step 8 read it and those
//!   of before step 10 write it.
//! - I7: between two steps the tree is one that vacuum can go through: step 3 builds another one beside the empty tree of step
//!   1 and names it at its commit. The catalog is locked while it builds, as in CREATE INDEX, so that the file has a name on
//!   standbys when the next change of definitions is replayed; other definitions wait that long, and rows do not.
//!
//! # Failures
//! An error, a cancel request or a crash leaves the index in the stage that it has. No statement reads it; DROP INDEX takes it
//! away, REINDEX makes it whole. Uniqueness is demanded of new rows from step 3 on, also by an index that failed later.
//!
//! # What the simpler version gets wrong
//! To build under one snapshot and publish loses the rows of writers that began before: they enter nothing, and the snapshot
//! does not see them. To wait by queueing for the lock in Share makes every later writer wait for the longest earlier one.
//!
//! Origin: PostgreSQL's three phases. New are the separate list of unfinished indexes, and that a snapshot too old is turned
//! away instead of being relied on to be gone.

mod waits;

use std::sync::Arc;

use clearway_txn::LockMode;

use crate::activity::Command;
use crate::activity::progress::index as shown;
use crate::catalog::{CATALOG_REL, TableUse};
use crate::definition::concurrent_index::{self, Done, Step};
use crate::definition::reindex::was_reindexed;
use crate::executor::InnerPlans;
use crate::executor::subquery::SubqueryResults;
use crate::output::{Notice, Output};
use crate::session::Session;
use crate::session::prepared::CachedPlan;
use crate::transaction::Phase;
use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{
    CreateIndex, DefinitionStatement, IsolationLevel, Reindex, ReindexTarget, Statement,
};

/// The lock of the table in a step: one statement of this kind at a time, no vacuum, no other change of its definition.
const MODE: LockMode = LockMode::ShareUpdateExclusive;

/// True for a statement that is several transactions.
pub(super) fn is_in_steps(statement: &DefinitionStatement) -> bool {
    match statement {
        DefinitionStatement::CreateIndex(create) => {
            create.concurrently && !create.table.schema.is_temporary()
        }
        DefinitionStatement::DropIndex {
            indexes,
            concurrently: true,
            ..
        } => indexes
            .iter()
            .all(|(_, table)| table.as_ref().is_some_and(|table| !table.schema.is_temporary())),
        DefinitionStatement::Reindex(reindex) => match &reindex.target {
            ReindexTarget::Index { table, .. } | ReindexTarget::Table(table) => {
                reindex.concurrently && !table.schema.is_temporary()
            }
            _ => true,
        },
        _ => false,
    }
}

impl Session {
    /// Runs a statement of several transactions. The first one has begun, with the statement's locks.
    pub(super) fn run_in_steps(
        &mut self,
        cached: &CachedPlan,
        statement: &DefinitionStatement,
        out: &mut dyn Output,
    ) -> Result<()> {
        self.txn
            .take_snapshot_for(&cached.uses, &self.interrupts, self.settings.lock_timeout)?;
        let inner = InnerPlans::default();
        self.with_execution(
            &[],
            inner,
            &mut SubqueryResults::default(),
            |execution, engine| crate::definition::check_permission(execution, &engine.catalog, statement),
        )?;
        let slot = Arc::clone(&self.slot);
        let progress = &slot.progress;
        match statement {
            DefinitionStatement::CreateIndex(create) => {
                let _running = progress.begin(Command::CreateIndexConcurrently, create.table.oid);
                self.create_in_steps(create, out)
            }
            DefinitionStatement::DropIndex { indexes, .. } => {
                let (name, table) = &indexes[0];
                match table {
                    Some(table) => self.drop_in_steps(table, name, out),
                    None => Ok(()),
                }
            }
            DefinitionStatement::Reindex(reindex) if reindex.concurrently => {
                let _running = progress.begin(Command::ReindexConcurrently, 0);
                self.reindex_in_steps(reindex, out)
            }
            DefinitionStatement::Reindex(reindex) => self.reindex_in_steps(reindex, out),
            other => Err(EngineError::internal(format!("{} has no steps", other.tag()))),
        }
    }

    fn create_in_steps(&mut self, create: &CreateIndex, out: &mut dyn Output) -> Result<()> {
        let table = create.table.oid;
        let Done::Defined(index) = self.step(table, Step::Define(create), out)? else {
            return Ok(());
        };
        if let Some(completed) = self.build_in_steps(table, index, out)? {
            self.step(table, Step::Finish(index, completed), out)?;
        }
        Ok(())
    }

    /// Steps 2 to 6; `None` if another statement has made the index whole.
    fn build_in_steps(
        &mut self,
        table: u32,
        index: u32,
        out: &mut dyn Output,
    ) -> Result<Option<clearway_txn::Xid>> {
        // A command of several indexes goes on to this one.
        drop(self.slot.progress.index_of(table, index));
        self.wait_for_holders(table, LockMode::Share, shown::WAITS_BEFORE_BUILD)?;
        if self.step(table, Step::Build(index), out)? == Done::Nothing {
            return Ok(None);
        }
        self.wait_for_holders(table, LockMode::Share, shown::WAITS_BEFORE_VALIDATION)?;
        let Done::Completed(xid) = self.step(table, Step::Complete(index), out)? else {
            return Ok(None);
        };
        self.wait_for_older_snapshots(xid)?;
        Ok(Some(xid))
    }

    fn drop_in_steps(&mut self, table: &Arc<TableDef>, name: &str, out: &mut dyn Output) -> Result<()> {
        let inner = InnerPlans::default();
        let index = self.with_execution(
            &[],
            inner,
            &mut SubqueryResults::default(),
            |execution, engine| concurrent_index::require_droppable(execution, &engine.catalog, table, name),
        )?;
        self.withdraw_in_steps(table.oid, index, out)
    }

    /// Steps 8 to 12, from where the index is.
    fn withdraw_in_steps(&mut self, table: u32, index: u32, out: &mut dyn Output) -> Result<()> {
        let mut phase = shown::WAITS_BEFORE_DEAD;
        while self.step(table, Step::Withdraw(index), out)? != Done::Nothing {
            self.wait_for_holders(table, LockMode::AccessExclusive, phase)?;
            phase = shown::WAITS_BEFORE_DROP;
        }
        Ok(())
    }

    fn reindex_in_steps(&mut self, reindex: &Reindex, out: &mut dyn Output) -> Result<()> {
        let tables: Vec<Arc<TableDef>> = match &reindex.target {
            ReindexTarget::Index { table, index } => {
                return self.reindex_beside(table.oid, *index, reindex.verbose, out);
            }
            ReindexTarget::Table(table) => vec![Arc::clone(table)],
            ReindexTarget::Schema(schema) => {
                let all = self.txn.catalog_state().tables().into_iter();
                let inside = all.filter(|entry| entry.def.schema.oid == schema.oid);
                inside.map(|entry| Arc::clone(&entry.def)).collect()
            }
            ReindexTarget::Database(name) | ReindexTarget::System(name)
                if *name != self.engine.config.database =>
            {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "can only reindex the currently open database",
                ));
            }
            ReindexTarget::Database(_) => {
                let all = self.txn.catalog_state().tables().into_iter();
                let shared = all.filter(|entry| !entry.def.schema.is_temporary());
                shared.map(|entry| Arc::clone(&entry.def)).collect()
            }
            ReindexTarget::System(_) => Vec::new(),
        };
        let is_one = matches!(reindex.target, ReindexTarget::Table(_));
        for table in tables {
            match reindex.concurrently {
                true => self.reindex_table_beside(&table, is_one, reindex.verbose, out)?,
                false => self.reindex_one_table(&table, reindex.verbose, out)?,
            }
        }
        Ok(())
    }

    fn reindex_table_beside(
        &mut self,
        table: &TableDef,
        is_one: bool,
        verbose: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        let Some(entry) = self.txn.catalog_state().table(table.oid).cloned() else {
            return Ok(());
        };
        for unfinished in &entry.def.unfinished {
            let (schema, name) = (&entry.def.schema.name, &unfinished.index.name);
            let text = format!("cannot reindex invalid index \"{schema}.{name}\" concurrently, skipping");
            self.tell("WARNING", SqlState::FEATURE_NOT_SUPPORTED, text, out)?;
        }
        if entry.def.indexes.is_empty() && is_one {
            let text = format!(
                "table \"{}\" has no indexes that can be reindexed concurrently",
                table.name
            );
            self.tell("NOTICE", SqlState::SUCCESS, text, out)?;
        }
        for index in &entry.def.indexes {
            self.reindex_beside(table.oid, index.oid, verbose, out)?;
        }
        Ok(())
    }

    /// One index, beside others that write.
    fn reindex_beside(&mut self, table: u32, index: u32, verbose: bool, out: &mut dyn Output) -> Result<()> {
        let Done::Defined(new) = self.step(table, Step::DefineAnew(index), out)? else {
            return Ok(());
        };
        if let Some(completed) = self.build_in_steps(table, new, out)? {
            self.step(table, Step::Exchange(index, new, completed), out)?;
            self.wait_for_holders(table, LockMode::AccessExclusive, shown::WAITS_BEFORE_DEAD)?;
        }
        self.withdraw_in_steps(table, new, out)?;
        if verbose && let Some(name) = self.index_name(table, index) {
            self.notice(&was_reindexed(&name), out)?;
        }
        Ok(())
    }

    fn index_name(&self, table: u32, index: u32) -> Option<String> {
        let state = self.txn.catalog_state();
        let mut indexes = state.table(table)?.def.all_indexes();
        indexes
            .find(|other| other.oid == index)
            .map(|index| index.name.clone())
    }

    /// The indexes of one table of several, in a transaction of its own.
    fn reindex_one_table(
        &mut self,
        table: &Arc<TableDef>,
        verbose: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        let statement = DefinitionStatement::Reindex(Box::new(Reindex {
            target: ReindexTarget::Table(Arc::clone(table)),
            verbose,
            concurrently: false,
        }));
        self.begin_step()?;
        self.lock_to_define(&crate::definition::locks(&statement))?;
        let Some(entry) = self.txn.catalog_state().table(table.oid).cloned() else {
            // It was dropped meanwhile. The locks go before the next table is waited for.
            return self.end_step(out);
        };
        if entry.def.has_indexes() {
            let table = TableUse::new(table.oid, LockMode::AccessExclusive, Some(&entry));
            self.txn
                .take_snapshot_for(&[table], &self.interrupts, self.settings.lock_timeout)?;
            let inner = InnerPlans::default();
            let outcome = self.with_execution(
                &[],
                inner,
                &mut SubqueryResults::default(),
                |execution, engine| crate::definition::run(execution, &engine.catalog, &statement),
            )?;
            for notice in &outcome.notices {
                self.notice(notice, out)?;
            }
        }
        self.end_step(out)
    }

    /// Runs a step in the transaction that is open, or in one of its own, and commits it.
    fn step(&mut self, table: u32, step: Step<'_>, out: &mut dyn Output) -> Result<Done> {
        self.begin_step()?;
        match step {
            Step::Complete(_) => self.lock(table, MODE)?,
            _ => self.lock_to_define(&[(CATALOG_REL, LockMode::ShareRowExclusive), (table, MODE)])?,
        }
        let entry = self.txn.catalog_state().table(table).cloned();
        let table_use = TableUse::new(table, MODE, entry.as_deref());
        self.txn
            .take_snapshot_for(&[table_use], &self.interrupts, self.settings.lock_timeout)?;
        let inner = InnerPlans::default();
        let (done, outcome) = self.with_execution(
            &[],
            inner,
            &mut SubqueryResults::default(),
            |execution, engine| concurrent_index::run_step(execution, &engine.catalog, table, step),
        )?;
        for notice in &outcome.notices {
            self.notice(notice, out)?;
        }
        self.end_step(out)?;
        Ok(done)
    }

    fn begin_step(&mut self) -> Result<()> {
        self.interrupts.check()?;
        if self.txn.phase == Phase::None {
            self.begin(Phase::Implicit);
            // A default that forbids to write has refused the statement.
            self.txn.read_only = false;
            // Each step looks at what there is when it begins.
            self.txn.isolation = IsolationLevel::ReadCommitted;
        }
        Ok(())
    }

    fn end_step(&mut self, out: &mut dyn Output) -> Result<()> {
        self.txn.end_statement();
        self.commit(out)
    }

    fn tell(
        &mut self,
        severity: &'static str,
        sqlstate: SqlState,
        message: String,
        out: &mut dyn Output,
    ) -> Result<()> {
        let notice = Notice::new(severity, sqlstate, message);
        self.notice(&notice, out)
    }
}

/// The statement, if it is one of several transactions.
pub(super) fn in_steps(statement: &Statement) -> Option<&DefinitionStatement> {
    match statement {
        Statement::Definition(statement) if is_in_steps(statement) => Some(statement),
        _ => None,
    }
}
