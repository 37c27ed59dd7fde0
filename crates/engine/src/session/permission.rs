//! Privileges on what a statement reads and changes, looked at each time it runs.
//!
//! A plan holds for one version of the catalog and one role, so what was allowed stays allowed as long as the plan is
//! used: it is looked at once a plan. What stands in a view's query is its owner's to be allowed.

use std::sync::atomic::Ordering;

use crate::catalog::access::{DELETE, INSERT, Kind, Privileges, SELECT, UPDATE, denied, held};
use crate::catalog::{CatalogState, TableEntry};
use crate::definition;
use crate::definition::owner::kind_of;
use crate::executor::InnerPlans;
use crate::executor::subquery::SubqueryResults;
use crate::output::{Notice, Output};
use crate::session::Session;
use crate::session::prepared::CachedPlan;
use clearway_sql::error::{Result, SqlState};
use clearway_sql::plan::{ControlStatement, MaintainedTable, Statement, TableAccess, TableLockMode};
use clearway_sql::{TableDef, TableKind};

impl Session {
    /// 42501 for what the role may not do.
    #[inline]
    pub(super) fn check_access(&self, cached: &CachedPlan) -> Result<()> {
        if cached.is_allowed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.look_at_access(cached)
    }

    #[cold]
    fn look_at_access(&self, cached: &CachedPlan) -> Result<()> {
        let state = self.txn.catalog_state();
        for access in &cached.plan.accesses {
            let role = match access.view {
                None => self.identity.current,
                Some(view) => state.table(view).map_or(0, |view| view.access.owner),
            };
            check(&state, role, access)?;
        }
        // Relaxed: the plan does not change, and a look too many harms nothing.
        cached.is_allowed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The right to lock tables that the statement names, before it waits for them: its request in a queue keeps other
    /// sessions away, which a role without the right may not do. Asked again when the locks are held.
    pub(super) fn check_before_locks(&mut self, cached: &CachedPlan) -> Result<()> {
        if self.identity.is_superuser {
            return Ok(());
        }
        match &cached.plan.statement {
            Statement::Control(statement @ ControlStatement::Lock { .. }) => self.check_control(statement),
            Statement::Definition(statement) => {
                let mut results = SubqueryResults::default();
                let inner = InnerPlans::of(&cached.plan);
                self.with_execution(&[], inner, &mut results, |execution, engine| {
                    definition::check_permission(execution, &engine.catalog, statement)
                })
            }
            _ => Ok(()),
        }
    }

    /// 42501 for a statement of the session itself that the role may not run.
    #[inline(always)]
    pub(super) fn check_control(&self, statement: &ControlStatement) -> Result<()> {
        match self.identity.is_superuser {
            true => Ok(()),
            false => self.check_control_of_role(statement),
        }
    }

    fn check_control_of_role(&self, statement: &ControlStatement) -> Result<()> {
        let state = self.txn.catalog_state();
        match statement {
            ControlStatement::Lock { tables, mode, .. } => {
                let enough = match mode {
                    TableLockMode::AccessShare => SELECT | UPDATE | DELETE | crate::catalog::access::TRUNCATE,
                    TableLockMode::RowShare | TableLockMode::RowExclusive => {
                        INSERT | UPDATE | DELETE | crate::catalog::access::TRUNCATE
                    }
                    _ => UPDATE | DELETE | crate::catalog::access::TRUNCATE,
                };
                let lacks = |table: &&std::sync::Arc<TableDef>| {
                    let kind = Kind::Table;
                    state.privileges(self.identity.current, kind, table.oid, enough, false) == 0
                };
                match tables.iter().find(lacks) {
                    Some(table) => Err(refused(&state, table)),
                    None => Ok(()),
                }
            }
            ControlStatement::AlterSystem { name, .. } => Err(denied(match name {
                Some(name) => format!("permission denied to set parameter \"{name}\""),
                None => "permission denied to perform ALTER SYSTEM RESET ALL".to_owned(),
            })),
            ControlStatement::Checkpoint => {
                const CHECKPOINT: u32 = 4_544;
                match state.has_privileges_of(self.identity.current, CHECKPOINT) {
                    true => Ok(()),
                    false => Err(denied(
                        "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT",
                    )),
                }
            }
            _ => Ok(()),
        }
    }

    /// Of these tables, or of all if none is named, those that the role may vacuum and analyze; a warning for each other. `None`: it may none.
    pub(super) fn maintainable(
        &mut self,
        tables: &[MaintainedTable],
        verb: &str,
        out: &mut dyn Output,
    ) -> Result<Option<Vec<MaintainedTable>>> {
        if self.identity.is_superuser {
            return Ok(Some(tables.to_vec()));
        }
        self.txn.catalog_version();
        let state = self.txn.catalog_state();
        let all = || {
            let tables = state.tables().into_iter();
            let named = tables.map(|entry| MaintainedTable {
                table: std::sync::Arc::clone(&entry.def),
                columns: None,
            });
            named.collect()
        };
        let wanted: Vec<MaintainedTable> = if tables.is_empty() { all() } else { tables.to_vec() };
        let mut kept = Vec::with_capacity(wanted.len());
        for named in wanted {
            if self.may_maintain(&state, named.table.oid) {
                kept.push(named);
                continue;
            }
            let may = match named.table.kind {
                TableKind::Virtual => "superuser or database owner",
                _ => "table or database owner",
            };
            let text = format!("skipping \"{}\" --- only {may} can {verb} it", named.table.name);
            self.notice(&Notice::warning(SqlState::SUCCESS, text), out)?;
        }
        Ok(Some(kept).filter(|kept| !kept.is_empty()))
    }

    /// True if the role may vacuum and analyze a table.
    fn may_maintain(&self, state: &CatalogState, oid: u32) -> bool {
        let current = self.identity.current;
        let owner = state.table(oid).map_or(0, |entry| entry.access.owner);
        state.has_privileges_of(current, owner) || state.has_privileges_of(current, state.database_owner())
    }
}

fn refused(state: &CatalogState, table: &TableDef) -> clearway_sql::error::EngineError {
    let kind = state.table(table.oid).map_or("table", |entry| kind_of(entry));
    // Views of the system are tables here.
    let kind = if crate::catalog::system::is_view(table.oid) {
        "view"
    } else {
        kind
    };
    denied(format!("permission denied for {kind} {}", table.name))
}

fn check(state: &CatalogState, role: u32, access: &TableAccess) -> Result<()> {
    let table = &access.table;
    let reads = access.is_read || !access.selected.is_empty();
    let wants = [
        (reads, SELECT, Some(&access.selected)),
        (access.inserts, INSERT, Some(&access.inserted)),
        (access.updates, UPDATE, Some(&access.updated)),
        (access.deletes, DELETE, None),
    ];
    for (_, privilege, columns) in wants.into_iter().filter(|(wanted, _, _)| *wanted) {
        let kind = match table.sequence {
            Some(_) => Kind::Sequence,
            None => Kind::Table,
        };
        if state.may(role, kind, table.oid, privilege) {
            continue;
        }
        let columns = columns.filter(|_| !access.whole);
        let is_enough = state
            .table(table.oid)
            .zip(columns)
            .is_some_and(|(entry, columns)| has_on_columns(state, role, entry, privilege, columns));
        if !is_enough {
            return Err(refused(state, table));
        }
    }
    Ok(())
}

/// True if a role has a privilege on each of these columns, or on any if there is none.
fn has_on_columns(
    state: &CatalogState,
    role: u32,
    entry: &TableEntry,
    privilege: Privileges,
    columns: &[u16],
) -> bool {
    let roles = state.inherited_roles(role);
    let has = |column: &u16| {
        let acl = entry.access.columns.get(column);
        acl.is_some_and(|acl| held(acl, &roles, privilege, false) != 0)
    };
    match columns {
        [] => entry
            .lists_of_columns()
            .any(|(_, acl)| held(acl, &roles, privilege, false) != 0),
        columns => columns.iter().all(has),
    }
}
