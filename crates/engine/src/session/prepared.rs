//! Statements that have been parsed, and the plans kept with them.
//!
//! A plan holds for one version of the catalog. [`Prepared::plan`] compares versions (one load) and binds anew when
//! definitions have changed. Two things stay as they were at the first binding, since the client was told of them:
//!
//! - the parameters' types. Values that a Bind has decoded already have these types, and an expression that expects
//!   another type would read them wrongly. The types that were inferred first are declared types from then on.
//! - the result's columns: a client that was told of two columns must not get three (0A000).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::catalog::{CatalogState, TableUse};
use crate::error::{EngineError, Result, SqlState};
use crate::interrupt::Interrupts;
use crate::planning_memory::{PlanningMemory, Reservation};
use crate::sql::plan::{Column, ControlStatement, Plan, Statement};
use crate::sql::{self, CatalogView, ParsedStatement, TableDef, bind_checked};
use crate::value::DataType;
use crate::{definition, executor};

/// How many texts of the simple protocol keep their plans.
const CACHED_TEXTS_MAX: usize = 64;

/// What a prepared statement takes beside its text and its description: itself, its entry in a map, the name there.
const PREPARED_BYTES: usize = 512;

/// What the prepared statements of a session may take without their plans.
const STATEMENT_BYTES_MAX: usize = 64 << 20;

/// The text of the statements that keep their plans.
const PLANNED_TEXT_BYTES_MAX: usize = 1 << 20;

/// How many hashes of texts that came once are remembered.
const SEEN_TEXTS: usize = 256;

/// A text longer than this is not kept.
const CACHED_TEXT_BYTES_MAX: usize = 4_096;

/// A plan and what it depends on.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    pub(crate) plan: Plan,
    pub(crate) version: u64,
    /// Whether `search_path` had the users' schema when it was made.
    public_on_path: bool,
    pub(crate) uses: Vec<TableUse>,
    /// What it takes of the memory for long statements, for as long as it lives.
    _memory: Option<Reservation>,
}

/// The catalog as a session's `search_path` shows it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) state: &'a CatalogState,
    pub(crate) public_on_path: bool,
}

impl CatalogView for View<'_> {
    fn lookup_table(&self, schema: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        let schema = schema.or(if self.public_on_path {
            None
        } else {
            Some("pg_catalog")
        });
        self.state.lookup_table(schema, name)
    }

    fn lookup_index(&self, name: &str) -> Option<Arc<TableDef>> {
        self.state.lookup_index(name)
    }

    fn creates_in_public(&self) -> bool {
        self.public_on_path
    }
}

impl CachedPlan {
    fn new(plan: Plan, view: View<'_>, memory: Option<Reservation>) -> CachedPlan {
        let state = view.state;
        let locks = match &plan.statement {
            Statement::Control(_) => Vec::new(),
            Statement::Definition(statement) => definition::locks(statement),
            Statement::Rows(statement) => executor::locks(statement),
        };
        let uses = locks
            .into_iter()
            .map(|(oid, mode)| {
                let entry = state.table(oid).map(|entry| &**entry);
                TableUse::new(oid, mode, entry)
            })
            .collect();
        CachedPlan {
            plan,
            version: state.version(),
            public_on_path: view.public_on_path,
            uses,
            _memory: memory,
        }
    }
}

/// A statement that has been parsed and bound, to be executed many times.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) text: Arc<str>,
    param_types: Box<[DataType]>,
    columns: Option<Box<[Column]>>,
    /// Whether a transaction that has failed takes it: COMMIT, ROLLBACK and an empty text.
    pub(crate) fits_failed_transaction: bool,
    /// Absent when other statements were used more recently: then it is planned from its text.
    plan: Mutex<Option<Arc<CachedPlan>>>,
    /// When it was used last, by its session's count.
    used: AtomicU64,
    /// What it takes of its session's memory for statements, for as long as it lives.
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
        let statement = &plan.statement;
        Ok(Prepared {
            text,
            param_types: plan.param_types.as_slice().into(),
            columns: plan.columns.as_deref().map(Box::from),
            fits_failed_transaction: statement.fits_failed_transaction(),
            plan: Mutex::new(Some(Arc::new(CachedPlan::new(plan, view, memory)))),
            used: AtomicU64::new(0),
            charge: OnceLock::new(),
        })
    }

    /// What it takes without its plan, the maps that it is in included.
    fn bytes(&self) -> usize {
        let names = self.columns.iter().flatten().map(|column| column.name.len());
        PREPARED_BYTES
            + self.text.len()
            + size_of_val(&*self.param_types)
            + self.columns.as_deref().map_or(0, size_of_val)
            + names.sum::<usize>()
    }

    /// The types of `$1`, `$2`, …
    pub fn param_types(&self) -> &[DataType] {
        &self.param_types
    }

    /// The columns of its rows; `None` when it returns none.
    pub fn columns(&self) -> Option<&[Column]> {
        self.columns.as_deref()
    }

    /// The statement's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The plan for this version of the catalog, seen along a `search_path` with or without the users' schema; and
    /// whether the statement had no plan before.
    pub(crate) fn plan(
        &self,
        version: u64,
        public_on_path: bool,
        state: impl FnOnce() -> Arc<CatalogState>,
        interrupts: &Interrupts,
        memory: &Arc<PlanningMemory>,
    ) -> Result<(Arc<CachedPlan>, bool)> {
        let mut cached = self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(plan) = &*cached
            && plan.version == version
            && plan.public_on_path == public_on_path
        {
            return Ok((Arc::clone(plan), false));
        }
        let state = state();
        let view = View {
            state: &state,
            public_on_path,
        };
        let mut memory = memory.reserve(&self.text)?;
        // The tree is not kept: it takes several times what the plan does.
        let parsed = sql::parse(&self.text)?.pop();
        let types: Vec<Option<DataType>> = self.param_types.iter().copied().map(Some).collect();
        let plan = plan_for(parsed.as_ref(), &types, view, interrupts)?;
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
        if !same_types(plan.columns.as_deref(), self.columns.as_deref()) {
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

    fn has_plan(&self) -> bool {
        self.plan
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .is_some()
    }

    fn forget_plan(&self) {
        *self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    }
}

/// The statements that a session has prepared, as far as memory is concerned.
///
/// A statement takes its text and its description. A plan takes some twenty times its text, so only the statements
/// used most recently keep theirs: `plan_cache_entries` of them, and no more than [`PLANNED_TEXT_BYTES_MAX`] of text
/// together. The others are planned when they run. What all take without their plans is counted and has a limit.
#[derive(Debug)]
pub(crate) struct StatementMemory {
    /// What the living statements take, in bytes.
    total: Arc<AtomicUsize>,
    plans_max: usize,
    /// Those that may have plans.
    with_plans: Vec<Weak<Prepared>>,
    planned_text_bytes: usize,
    clock: u64,
}

/// A statement's share of its session's total.
#[derive(Debug)]
struct Charge {
    total: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl StatementMemory {
    pub(crate) fn new(plans_max: usize) -> StatementMemory {
        StatementMemory {
            total: Arc::default(),
            plans_max: plans_max.max(1),
            with_plans: Vec::new(),
            planned_text_bytes: 0,
            clock: 0,
        }
    }

    /// 53200 when a statement of `bytes` more is too much.
    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        if self.total.load(Ordering::Relaxed) + bytes <= STATEMENT_BYTES_MAX {
            return Ok(());
        }
        Err(EngineError::new(
            SqlState::from_code("53200"),
            format!(
                "the prepared statements of this session would take more than {} MB",
                STATEMENT_BYTES_MAX >> 20
            ),
        )
        .with_hint("DEALLOCATE statements that are not needed any more, or DEALLOCATE ALL."))
    }

    /// Takes a statement that the client has prepared: it counts until it is dropped.
    pub(crate) fn add(&mut self, prepared: &Arc<Prepared>) -> Result<()> {
        let bytes = prepared.bytes();
        self.check(bytes)?;
        self.total.fetch_add(bytes, Ordering::Relaxed);
        let total = Arc::clone(&self.total);
        let _ = prepared.charge.set(Charge { total, bytes });
        self.planned(prepared);
        Ok(())
    }

    /// A statement is about to run.
    #[inline]
    pub(crate) fn used(&mut self, prepared: &Arc<Prepared>) {
        self.clock += 1;
        prepared.used.store(self.clock, Ordering::Relaxed);
    }

    /// A statement has been planned.
    pub(crate) fn planned(&mut self, prepared: &Arc<Prepared>) {
        self.used(prepared);
        self.with_plans.push(Arc::downgrade(prepared));
        self.planned_text_bytes += prepared.text.len();
        if self.with_plans.len() > self.plans_max || self.planned_text_bytes > PLANNED_TEXT_BYTES_MAX {
            self.forget_plans();
        }
    }

    /// Leaves half of the plans, those used last.
    fn forget_plans(&mut self) {
        let mut living: Vec<Arc<Prepared>> = self
            .with_plans
            .drain(..)
            .filter_map(|held| held.upgrade())
            .collect();
        living.retain(|prepared| prepared.has_plan());
        living.sort_unstable_by_key(|prepared| Reverse(prepared.used.load(Ordering::Relaxed)));
        self.planned_text_bytes = 0;
        for prepared in &living {
            let bytes = self.planned_text_bytes + prepared.text.len();
            // The statement in hand keeps its plan whatever it takes: it is about to run.
            let fits = self.with_plans.is_empty()
                || self.with_plans.len() < self.plans_max / 2 && bytes <= PLANNED_TEXT_BYTES_MAX / 2;
            if fits {
                self.planned_text_bytes = bytes;
                self.with_plans.push(Arc::downgrade(prepared));
            } else {
                prepared.forget_plan();
            }
        }
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
        }),
    }
}

/// Recent texts of the simple protocol. A text is kept when it comes a second time: most texts with literals in them
/// never do. When the cache is full, the half that was used least recently goes.
#[derive(Debug, Default)]
pub(crate) struct TextCache {
    entries: HashMap<Arc<str>, (Arc<Prepared>, u64)>,
    clock: u64,
    /// Hashes of texts seen once, by a few of their bits.
    seen: Vec<u64>,
}

impl TextCache {
    /// The statement of this text.
    pub(crate) fn get(&mut self, text: &str) -> Option<Arc<Prepared>> {
        let (prepared, used) = self.entries.get_mut(text)?;
        self.clock += 1;
        *used = self.clock;
        Some(Arc::clone(prepared))
    }

    /// Offers a statement that was not found.
    pub(crate) fn offer(&mut self, prepared: &Arc<Prepared>) {
        if prepared.text.len() > CACHED_TEXT_BYTES_MAX {
            return;
        }
        self.seen.resize(SEEN_TEXTS, 0);
        let mut hasher = DefaultHasher::new();
        prepared.text.hash(&mut hasher);
        let hash = hasher.finish();
        let place = &mut self.seen[hash as usize % SEEN_TEXTS];
        if std::mem::replace(place, hash) != hash {
            return;
        }
        if self.entries.len() >= CACHED_TEXTS_MAX {
            let mut used: Vec<u64> = self.entries.values().map(|(_, used)| *used).collect();
            used.sort_unstable();
            let median = used[used.len() / 2];
            self.entries.retain(|_, (_, used)| *used > median);
        }
        self.clock += 1;
        self.entries
            .insert(Arc::clone(&prepared.text), (Arc::clone(prepared), self.clock));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{ActivitySlot, SessionInfo};
    use crate::catalog::Catalog;

    /// A statement with a text of this length; it does nothing.
    fn prepared(length: usize) -> Arc<Prepared> {
        let slot = Arc::new(ActivitySlot::new(1, 1, &SessionInfo::default()));
        let interrupts = Interrupts::new(slot, Arc::default());
        let text: Arc<str> = " ".repeat(length).into();
        let state = Catalog::new().state();
        let view = View {
            state: &state,
            public_on_path: true,
        };
        Arc::new(Prepared::new(text, None, &[], view, &interrupts, None).unwrap())
    }

    #[test]
    fn statements_have_a_limit_and_give_their_share_back() {
        let mut memory = StatementMemory::new(10);
        let mut held: Vec<Arc<Prepared>> = (0..63)
            .map(|_| {
                let statement = prepared(1 << 20);
                memory.add(&statement).unwrap();
                statement
            })
            .collect();
        let one_more = prepared(1 << 20);
        let error = memory.add(&one_more).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "53200");
        assert!(error.hint().unwrap().contains("DEALLOCATE"), "{error:?}");
        held.pop();
        memory.add(&one_more).unwrap();
        drop((held, one_more));
        assert_eq!(memory.total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn statements_used_last_keep_their_plans() {
        let mut memory = StatementMemory::new(4);
        let held: Vec<Arc<Prepared>> = (0..20).map(|_| prepared(10)).collect();
        for statement in &held {
            memory.add(statement).unwrap();
            memory.used(&held[0]);
            let plans = held
                .iter()
                .filter(|held| held.charge.get().is_some() && held.has_plan());
            assert!(plans.count() <= 4);
            assert!(statement.has_plan(), "the one in hand");
        }
        assert!(held[0].has_plan(), "used before each of the others came");
        // One that lost its plan gets it again, and counts again.
        let state = Catalog::new().state();
        let slot = Arc::new(ActivitySlot::new(1, 1, &SessionInfo::default()));
        let interrupts = Interrupts::new(slot, Arc::default());
        assert!(!held[1].has_plan());
        let (_, is_first) = held[1]
            .plan(
                state.version(),
                true,
                || state,
                &interrupts,
                &PlanningMemory::new(0),
            )
            .unwrap();
        assert!(is_first);
        memory.planned(&held[1]);
        assert!(held[1].has_plan());
    }

    #[test]
    fn long_texts_do_not_keep_their_plans_together() {
        let mut memory = StatementMemory::new(100);
        let held: Vec<Arc<Prepared>> = (0..10).map(|_| prepared(PLANNED_TEXT_BYTES_MAX / 3)).collect();
        for statement in &held {
            memory.add(statement).unwrap();
            assert!(statement.has_plan());
        }
        assert!(held.iter().filter(|statement| statement.has_plan()).count() <= 3);
    }
}
