//! Statements that have been parsed, and the plans kept with them.
//!
//! A plan holds for one version of the catalog. [`Prepared::plan`] compares versions (one load) and binds anew when
//! definitions have changed, as long as the result keeps its columns: a client that was told of two columns must not
//! get three.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use clearway_txn::LockMode;

use crate::catalog::CatalogState;
use crate::ddl;
use crate::error::{EngineError, Result};
use crate::executor::scan;
use crate::sql::plan::{Column, CopyDirection, InsertSource, Plan, SelectPlan, Source, Statement};
use crate::sql::{ParsedStatement, TableDef, TableKind, bind};
use crate::value::DataType;

/// How many texts of the simple protocol keep their plans.
const CACHED_TEXTS_MAX: usize = 64;

/// How many hashes of texts that came once are remembered.
const SEEN_TEXTS: usize = 256;

/// A text longer than this is not kept.
const CACHED_TEXT_BYTES_MAX: usize = 4_096;

/// A table that a statement locks before it runs.
#[derive(Debug, Clone)]
pub(crate) struct TableUse {
    pub(crate) oid: u32,
    pub(crate) mode: LockMode,
    /// The version at which its definition changed last.
    pub(crate) changed: u64,
    pub(crate) name: String,
}

/// A plan and what it depends on.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    pub(crate) plan: Plan,
    pub(crate) version: u64,
    pub(crate) uses: Vec<TableUse>,
}

impl CachedPlan {
    fn new(plan: Plan, state: &CatalogState) -> CachedPlan {
        let mut locks = ddl::locks(&plan.statement);
        table_locks(&plan.statement, &mut locks);
        let uses = locks
            .into_iter()
            .map(|(oid, mode)| {
                let entry = state.table(oid);
                TableUse {
                    oid,
                    mode,
                    changed: entry.map_or(0, |entry| entry.changed),
                    name: entry.map_or_else(String::new, |entry| entry.def.name.clone()),
                }
            })
            .collect();
        CachedPlan {
            plan,
            version: state.version(),
            uses,
        }
    }
}

/// The locks of statements that read and write rows.
fn table_locks(statement: &Statement, locks: &mut Vec<(u32, LockMode)>) {
    let mut add = |table: &TableDef, mode: LockMode| {
        if table.kind != TableKind::Virtual {
            locks.push((table.oid, mode));
        }
    };
    let select = |plan: &SelectPlan, add: &mut dyn FnMut(&TableDef, LockMode)| {
        if let Source::Table(scan) = &plan.source {
            add(&scan.table, scan::relation_mode(plan.lock));
        }
    };
    match statement {
        Statement::Select(plan) => select(plan, &mut add),
        Statement::Insert(plan) => {
            if let InsertSource::Select { select: query, .. } = &plan.source {
                select(query, &mut add);
            }
            add(&plan.table, LockMode::RowExclusive);
        }
        Statement::Update(plan) => add(&plan.scan.table, LockMode::RowExclusive),
        Statement::Delete(plan) => add(&plan.scan.table, LockMode::RowExclusive),
        Statement::Copy(plan) => {
            if let Some(query) = &plan.query {
                select(query, &mut add);
            }
            if let (Some(table), CopyDirection::FromStdin) = (&plan.table, plan.direction) {
                add(table, LockMode::RowExclusive);
            }
        }
        _ => {}
    }
}

/// A statement that has been parsed and bound, to be executed many times.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) text: Arc<str>,
    /// `None` is an empty text.
    parsed: Option<ParsedStatement>,
    given_types: Vec<Option<DataType>>,
    param_types: Vec<DataType>,
    columns: Option<Vec<Column>>,
    plan: Mutex<Arc<CachedPlan>>,
}

impl Prepared {
    pub(crate) fn new(
        text: Arc<str>,
        parsed: Option<ParsedStatement>,
        given_types: &[Option<DataType>],
        state: &CatalogState,
    ) -> Result<Prepared> {
        let plan = plan_for(parsed.as_ref(), given_types, state)?;
        Ok(Prepared {
            text,
            parsed,
            given_types: given_types.to_vec(),
            param_types: plan.param_types.clone(),
            columns: plan.columns.clone(),
            plan: Mutex::new(Arc::new(CachedPlan::new(plan, state))),
        })
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

    /// The plan made last, current or not: for questions about the kind of statement.
    pub(crate) fn last_plan(&self) -> Arc<CachedPlan> {
        Arc::clone(&self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The plan for this version of the catalog.
    pub(crate) fn plan(
        &self,
        version: u64,
        state: impl FnOnce() -> Arc<CatalogState>,
    ) -> Result<Arc<CachedPlan>> {
        let mut cached = self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if cached.version == version {
            return Ok(Arc::clone(&cached));
        }
        let state = state();
        let types: Vec<Option<DataType>> = if self.given_types.len() >= self.param_types.len() {
            self.given_types.clone()
        } else {
            self.param_types
                .iter()
                .map(|data_type| Some(*data_type))
                .collect()
        };
        let plan = plan_for(self.parsed.as_ref(), &types, &state)?;
        let same_types = |a: &Option<Vec<Column>>, b: &Option<Vec<Column>>| match (a, b) {
            (Some(a), Some(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, b)| a.data_type == b.data_type && a.name == b.name)
            }
            (None, None) => true,
            _ => false,
        };
        if !same_types(&plan.columns, &self.columns) {
            return Err(EngineError::new(
                crate::SqlState::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            ));
        }
        *cached = Arc::new(CachedPlan::new(plan, &state));
        Ok(Arc::clone(&cached))
    }
}

fn plan_for(
    parsed: Option<&ParsedStatement>,
    types: &[Option<DataType>],
    state: &CatalogState,
) -> Result<Plan> {
    match parsed {
        Some(parsed) => bind(parsed, state, types),
        None => Ok(Plan {
            statement: Statement::Empty,
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
