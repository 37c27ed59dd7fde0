//! Statements that have been parsed, and the plans kept with them.
//!
//! A plan holds for one version of the catalog. [`Prepared::plan`] compares versions (one load) and binds anew when
//! definitions have changed. Two things stay as they were at the first binding, since the client knows them:
//!
//! - the parameters' types. Values that a Bind has decoded already have these types, and an expression that expects
//!   another type would read them wrongly. The types that were inferred first are declared types from then on.
//! - the result's columns: a client that expects two columns must not get three (0A000). In a simple query they are
//!   described when the statement runs, and may be others by then.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::catalog::access::{CREATE, Privileges, USAGE};
use crate::catalog::{CatalogState, TableUse};
use crate::convert::lock_mode;
use crate::identity::Identity;
use crate::interrupt::Interrupts;
use crate::planning_memory::{PlanningMemory, Reservation};
use crate::session::command_tag::{CountedTags, counted_tags};
use crate::session::named_output::has_names;
use crate::settings::PlanningSettings;
use crate::statement_statistics::CountedStatement;
use crate::{definition, executor};
use clearway_sql::catalog::TableKind;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{
    Column, ControlStatement, CopyDirection, DefinitionStatement, InsertSource, Plan, RowsStatement,
    Statement,
};
use clearway_sql::settings::PlannerSettings;
use clearway_sql::statistics::TableStatistics;
use clearway_sql::value::DataType;
use clearway_sql::value::datetime::in_force::{self as date_times, DateTimeSettings};
use clearway_sql::{self as sql, CatalogView, PG_TEMP, ParsedStatement, SchemaRef, TableDef, bind_checked};

/// Memory of a prepared statement beside its text and its description: itself, its entry in a map, the name there.
const PREPARED_BYTES: usize = 512;

/// A plan and what it depends on.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    pub(crate) plan: Plan,
    pub(crate) version: u64,
    /// The settings that it was made under.
    planning: Arc<PlanningSettings>,
    /// The role that it was made for.
    role: u32,
    pub(crate) uses: Vec<TableUse>,
    /// True once the role was seen to have the privileges that it needs.
    pub(super) is_allowed: AtomicBool,
    /// True if a column of its rows has a type that shows names.
    pub(super) has_names: bool,
    pub(super) traits: Traits,
    /// Its part of the memory for long statements, for as long as it lives.
    _memory: Option<Reservation>,
}

/// The facts of a statement that each run asks for: found once, since they hang on its kind in several steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traits {
    /// The answer may hold more than the number of rows that it has changed.
    pub(super) answers_with_rows: bool,
    /// Its name, if it cannot run in a transaction that other statements belong to.
    pub(super) outside_only: Option<&'static str>,
    /// The tag.
    pub(super) tag: &'static str,
    /// The tag when no rows were counted.
    pub(super) tag_without_rows: &'static str,
    /// The tag ends with the number of rows.
    pub(super) tells_rows: bool,
    /// The tags with small numbers, if they are usual.
    pub(super) counted_tags: Option<&'static CountedTags>,
}

impl Traits {
    fn of(plan: &Plan) -> Traits {
        let tag = plan.statement.tag();
        let (mut tag_without_rows, mut tells_rows) = (tag, true);
        match &plan.statement {
            Statement::Definition(DefinitionStatement::CreateTableAs(_)) => {
                tag_without_rows = "CREATE TABLE AS"
            }
            Statement::Rows(RowsStatement::Explain(_) | RowsStatement::Measured(_)) => tells_rows = false,
            _ => {}
        }
        Traits {
            answers_with_rows: answers_with_rows(plan),
            outside_only: plan.statement.outside_transactions_only(),
            tag,
            tag_without_rows,
            tells_rows,
            counted_tags: counted_tags(tag),
        }
    }
}

/// True if the answer to a statement may hold more than the number of rows that it has changed.
fn answers_with_rows(plan: &Plan) -> bool {
    if plan.columns.is_some() || !plan.subqueries.is_empty() {
        return true;
    }
    match &plan.statement {
        Statement::Control(ControlStatement::Declare(_) | ControlStatement::Fetch(_)) => true,
        Statement::Control(_) => false,
        Statement::Definition(_) => true,
        Statement::Rows(RowsStatement::Insert(insert)) => {
            insert.conflict.is_some() || matches!(insert.source, InsertSource::Select { .. })
        }
        Statement::Rows(RowsStatement::Update(update)) => update.joined.is_some(),
        Statement::Rows(RowsStatement::Delete(delete)) => delete.joined.is_some(),
        Statement::Rows(RowsStatement::Copy(copy)) => matches!(copy.direction, CopyDirection::ToStdout),
        Statement::Rows(_) => true,
    }
}

/// The catalog as a session's `search_path` shows it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) state: &'a CatalogState,
    pub(crate) viewer: Viewer<'a>,
}

/// The facts of a session that names in its statements depend on.
#[derive(Clone, Copy)]
pub(crate) struct Viewer<'a> {
    pub(crate) planning: &'a Arc<PlanningSettings>,
    pub(crate) identity: &'a Identity,
    /// The session's number.
    pub(crate) session: u32,
}

impl View<'_> {
    /// The first that `find` has in a schema: in this one, or in those of the path.
    fn find<T>(&self, schema: Option<&str>, find: impl Fn(SchemaRef) -> Option<T>) -> Option<T> {
        match schema {
            Some(schema) => find(self.state.schema_named(schema)?),
            None => self
                .state
                .searched(&self.viewer.planning.path, &self.viewer.identity.user)
                .filter(|schema| self.may(schema, USAGE).is_ok())
                .find_map(find),
        }
    }
}

impl View<'_> {
    /// 42501 unless the role has a privilege on a schema.
    fn may(&self, schema: &SchemaRef, privilege: Privileges) -> Result<()> {
        let identity = self.viewer.identity;
        match identity.is_superuser {
            true => Ok(()),
            false => self.state.require_on_schema(identity.current, schema, privilege),
        }
    }
}

impl CatalogView for View<'_> {
    fn require_usage(&self, schema: &str) -> Result<()> {
        match self.state.schema_named(schema) {
            Some(schema) => self.may(&schema, USAGE),
            None => Ok(()),
        }
    }

    fn require_create(&self, schema: &SchemaRef) -> Result<()> {
        self.may(schema, CREATE)
    }

    fn lookup_table(&self, schema: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        self.find(schema, |schema| self.state.table_in(&schema, name))
    }

    fn table_numbered(&self, oid: u32) -> Option<Arc<TableDef>> {
        self.state.table_numbered(oid)
    }

    fn referencing(&self, oid: u32) -> Vec<Arc<TableDef>> {
        let children = self.state.children(oid).iter();
        let children = children.filter_map(|child| self.state.table(*child));
        children.map(|entry| Arc::clone(&entry.def)).collect()
    }

    fn tables_of_type(&self, of: u32) -> Vec<Arc<TableDef>> {
        let tables = self.state.tables();
        let typed = tables.iter().filter(|entry| entry.def.of_type == Some(of));
        typed.map(|entry| Arc::clone(&entry.def)).collect()
    }

    fn lookup_index(&self, schema: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        let found = self.find(schema, |schema| self.state.owner_of_index(schema.oid, name));
        found.map(|entry| Arc::clone(&entry.def))
    }

    fn is_searched_before(&self, schema: &SchemaRef, other: Option<&SchemaRef>) -> bool {
        let first = self.find(None, |searched| {
            let is_one = searched.oid == schema.oid || other.is_some_and(|other| searched.oid == other.oid);
            is_one.then_some(searched)
        });
        first.is_some_and(|first| first.oid == schema.oid)
    }

    fn schema(&self, name: &str) -> Option<SchemaRef> {
        self.state.schema_named(name)
    }

    fn creation_schema(&self) -> Option<SchemaRef> {
        let mut names = self.viewer.planning.path.names(&self.viewer.identity.user);
        names.find_map(|name| match name {
            // It is there as soon as something is created in it.
            PG_TEMP => self.temporary_schema(),
            name => {
                let schema = self.state.schema_named(name)?;
                self.may(&schema, USAGE).is_ok().then_some(schema)
            }
        })
    }

    fn temporary_schema(&self) -> Option<SchemaRef> {
        Some(SchemaRef::temporary(self.viewer.session))
    }

    fn estimated_rows(&self, table: &TableDef) -> Option<u64> {
        let entry = self.state.table(table.oid)?;
        let live = u64::try_from(entry.runtime.live_rows.load(Ordering::Relaxed)).ok();
        // Of a table that was not looked at since the start the last ANALYZE tells, if there was one.
        let analyzed = entry.statistics.as_ref().map(|kept| kept.of_table.rows as u64);
        [live, analyzed].into_iter().flatten().find(|rows| *rows > 0)
    }

    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        let kept = self.state.table(table.oid)?.statistics.as_ref()?;
        Some(Arc::clone(&kept.of_table))
    }

    fn planner_settings(&self) -> PlannerSettings {
        self.viewer.planning.planner
    }
}

impl CachedPlan {
    fn new(plan: Plan, view: View<'_>, memory: Option<Reservation>) -> CachedPlan {
        let state = view.state;
        let locks = match &plan.statement {
            Statement::Control(ControlStatement::Lock { tables, mode, .. }) => {
                let heaps = tables.iter().filter(|table| table.kind != TableKind::Virtual);
                heaps.map(|table| (table.oid, lock_mode(*mode))).collect()
            }
            Statement::Control(ControlStatement::Declare(declare)) => match &declare.query.statement {
                Statement::Rows(statement) => executor::locks(&declare.query, statement),
                _ => Vec::new(),
            },
            Statement::Control(_) => Vec::new(),
            Statement::Definition(statement) => {
                let mut locks = definition::locks(statement);
                locks.extend(executor::read_locks(&plan));
                locks
            }
            Statement::Rows(statement) => executor::locks(&plan, statement),
        };
        let uses = locks
            .into_iter()
            .map(|(oid, mode)| {
                let entry = state.table(oid).map(|entry| &**entry);
                TableUse::new(oid, mode, entry)
            })
            .collect();
        CachedPlan {
            has_names: has_names(plan.columns.as_deref()),
            traits: Traits::of(&plan),
            plan,
            version: state.version(),
            planning: Arc::clone(view.viewer.planning),
            role: view.viewer.identity.current,
            uses,
            is_allowed: AtomicBool::new(false),
            _memory: memory,
        }
    }

    /// The same with another plan of the same statement.
    pub(super) fn with_plan(&self, plan: Plan) -> CachedPlan {
        CachedPlan {
            traits: self.traits,
            plan,
            version: self.version,
            planning: Arc::clone(&self.planning),
            role: self.role,
            uses: self.uses.clone(),
            is_allowed: AtomicBool::new(self.is_allowed.load(Ordering::Relaxed)),
            has_names: self.has_names,
            _memory: None,
        }
    }

    /// The plan of a cursor's query, of the DECLARE that has it.
    pub(super) fn of_cursor(declare: &CachedPlan, query: &Plan) -> CachedPlan {
        CachedPlan {
            traits: Traits::of(query),
            plan: query.clone(),
            version: declare.version,
            planning: Arc::clone(&declare.planning),
            role: declare.role,
            uses: declare.uses.clone(),
            // DECLARE has been checked.
            is_allowed: AtomicBool::new(true),
            has_names: has_names(query.columns.as_deref()),
            _memory: None,
        }
    }
}

/// A statement that has been parsed and bound, to be executed many times.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) text: Arc<str>,
    param_types: Box<[DataType]>,
    columns: Option<Box<[Column]>>,
    /// True if a transaction that has failed takes it: COMMIT, ROLLBACK, ROLLBACK TO and an empty text.
    pub(crate) fits_failed_transaction: bool,
    /// The cursor that it fetches from, whose columns its rows have.
    fetched_cursor: Option<Box<str>>,
    executed_statement: Option<Box<str>>,
    /// True until a client knows its columns: they are told when it runs.
    columns_may_change: bool,
    /// The settings that the literals of its text are read by, whenever it is planned.
    date_times: Option<Arc<DateTimeSettings>>,
    /// Absent when other statements were used more recently: then it is planned from its text.
    plan: Mutex<Option<Arc<CachedPlan>>>,
    /// Its last use, by its session's count.
    used: AtomicU64,
    /// Its number among all statements, once it is known.
    number: OnceLock<i64>,
    /// The entry in which its calls were counted last.
    pub(super) entry: Mutex<Option<Arc<CountedStatement>>>,
    /// Its part of its session's memory for statements, for as long as it lives.
    charge: OnceLock<Charge>,
}

impl Prepared {
    pub(crate) fn new(
        text: Arc<str>,
        parsed: Option<ParsedStatement>,
        given_types: &[Option<DataType>],
        view: View<'_>,
        interrupts: &Interrupts,
        mut memory: Option<Reservation>,
    ) -> Result<Prepared> {
        let plan = plan_for(parsed.as_ref(), given_types, view, interrupts)?;
        drop(parsed);
        memory.iter_mut().for_each(|memory| memory.planned(&text));
        let fetched_cursor = plan.fetched_cursor().map(Box::from);
        let executed_statement = plan.executed_statement().map(Box::from);
        let statement = &plan.statement;
        Ok(Prepared {
            text,
            param_types: plan.param_types.as_slice().into(),
            columns: plan.columns.as_deref().map(Box::from),
            fits_failed_transaction: statement.fits_failed_transaction(),
            fetched_cursor,
            executed_statement,
            columns_may_change: false,
            date_times: view.viewer.planning.date_times.clone(),
            plan: Mutex::new(Some(Arc::new(CachedPlan::new(plan, view, memory)))),
            used: AtomicU64::new(0),
            number: OnceLock::new(),
            entry: Mutex::default(),
            charge: OnceLock::new(),
        })
    }

    /// Its bytes without its plan, the maps that it is in included.
    pub(super) fn bytes(&self) -> usize {
        let names = self.columns.iter().flatten().map(|column| column.name.len());
        PREPARED_BYTES
            + self.text.len()
            + size_of_val(&*self.param_types)
            + self.columns.as_deref().map_or(0, size_of_val)
            + names.sum::<usize>()
    }

    /// The same statement in a simple query, whose columns are described when it runs.
    pub(super) fn in_simple_query(mut self) -> Prepared {
        self.columns_may_change = true;
        self
    }

    /// The types of `$1`, `$2`, …
    pub fn param_types(&self) -> &[DataType] {
        &self.param_types
    }

    /// The columns of its rows; `None` when it returns none.
    pub fn columns(&self) -> Option<&[Column]> {
        self.columns.as_deref()
    }

    /// The word for it in the server's log.
    pub(super) fn in_which_protocol(&self) -> &'static str {
        match self.columns_may_change {
            true => "statement",
            false => "execute",
        }
    }

    /// The cursor that it fetches from.
    pub(super) fn fetched_cursor(&self) -> Option<&str> {
        self.fetched_cursor.as_deref()
    }

    /// The statement that it executes.
    pub(super) fn executed_statement(&self) -> Option<&str> {
        self.executed_statement.as_deref()
    }

    /// Its number among all statements, by its text without constants.
    #[inline]
    pub(super) fn number(&self) -> i64 {
        *self.number.get_or_init(|| sql::normalised(&self.text).number)
    }

    /// Its text without constants.
    pub(super) fn normalised_text(&self) -> String {
        sql::normalised(&self.text).text
    }

    /// The statement's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The plan for this version of the catalog, as a session sees it; and whether the statement had no
    /// plan before.
    pub(crate) fn plan(
        &self,
        version: u64,
        viewer: Viewer<'_>,
        state: impl FnOnce() -> Arc<CatalogState>,
        interrupts: &Interrupts,
        memory: &Arc<PlanningMemory>,
    ) -> Result<(Arc<CachedPlan>, bool)> {
        let mut cached = self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(plan) = &*cached
            && plan.version == version
            && plan.role == viewer.identity.current
            && (Arc::ptr_eq(&plan.planning, viewer.planning) || plan.planning == *viewer.planning)
        {
            return Ok((Arc::clone(plan), false));
        }
        let state = state();
        let view = View {
            state: &state,
            viewer,
        };
        let mut memory = memory.reserve(&self.text)?;
        // The tree is not kept: it takes several times what the plan does.
        let parsed = sql::parse(&self.text)?.pop();
        let types: Vec<Option<DataType>> = self.param_types.iter().copied().map(Some).collect();
        let plan = {
            let _as_written = date_times::under(self.date_times.clone());
            plan_for(parsed.as_ref(), &types, view, interrupts)?
        };
        debug_assert_eq!(*plan.param_types, *self.param_types, "declared types stay");
        let same_types = |a: Option<&[Column]>, b: Option<&[Column]>| match (a, b) {
            (Some(a), Some(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| {
                        (&a.name, a.data_type, a.type_modifier) == (&b.name, b.data_type, b.type_modifier)
                    })
            }
            (None, None) => true,
            _ => false,
        };
        if !self.columns_may_change && !same_types(plan.columns.as_deref(), self.columns.as_deref()) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            ));
        }
        let is_first = cached.is_none();
        drop(parsed);
        memory.iter_mut().for_each(|memory| memory.planned(&self.text));
        let plan = cached.insert(Arc::new(CachedPlan::new(plan, view, memory)));
        Ok((Arc::clone(plan), is_first))
    }

    /// Counts the statement from now on until it is dropped.
    pub(super) fn charge(&self, charge: Charge) {
        let _ = self.charge.set(charge);
    }

    #[cfg(test)]
    pub(super) fn is_charged(&self) -> bool {
        self.charge.get().is_some()
    }

    #[inline]
    pub(super) fn set_used(&self, clock: u64) {
        self.used.store(clock, Ordering::Relaxed);
    }

    pub(super) fn last_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn has_plan(&self) -> bool {
        self.plan
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .is_some()
    }

    pub(super) fn forget_plan(&self) {
        *self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    }
}

/// A statement's share of its session's total.
#[derive(Debug)]
pub(super) struct Charge {
    pub(super) total: Arc<AtomicUsize>,
    pub(super) bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn plan_for(
    parsed: Option<&ParsedStatement>,
    types: &[Option<DataType>],
    view: View<'_>,
    interrupts: &Interrupts,
) -> Result<Plan> {
    match parsed {
        Some(parsed) => bind_checked(parsed, &view, types, &|| interrupts.check()),
        None => Ok(Plan {
            statement: ControlStatement::Empty.into(),
            param_types: Vec::new(),
            columns: None,
            subqueries: Vec::new(),
            changes: Vec::new(),
            reads: Vec::new(),
            failure: None,
            accesses: Vec::new(),
        }),
    }
}
