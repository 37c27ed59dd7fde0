//! Portals: statements that have sent some of their rows and go on when asked.
//!
//! A portal keeps what its statement needs to go on: the plan, the parameters, the snapshot and the command
//! number under which it began, and the rows that have not been sent. A SELECT is pulled, so its rows are
//! made when they are asked for. A statement that writes has run to its end before the first row is sent, as
//! in PostgreSQL; its other rows lie in memory and then in a temporary file.
//!
//! # Rules
//!
//! - P1: while a portal is suspended, the session holds back the horizon for its snapshot: READ COMMITTED does not give
//!   its xmin up at the end of the statement (`Transaction::end_statement`). Otherwise vacuum might remove the
//!   versions that the portal has yet to send.
//! - P2: a portal ends with its transaction: it knows that transaction's number, and [`Session::resume`] refuses any
//!   other (34000).
//! - P3: what the transaction writes after the portal began is invisible to it, by its command number.
//!
//! [`Session::resume`]: crate::Session::resume

use std::sync::Arc;

use crate::clock;
use crate::executor::select::Select;
use crate::executor::subquery::SubqueryResults;
use crate::executor::{Execution, InnerPlans};
use crate::output::Output;
use crate::session::named_output::NamedOutput;
use crate::session::prepared::{CachedPlan, Prepared};
use crate::session::{Completion, Session};
use crate::spill::Sorted;
use crate::spill::record::read_row;
use crate::transaction::PortalSnapshot;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::SelectPlan;
use clearway_sql::value::Value;
use clearway_storage::heap::Tid;

/// A statement that has sent some of its rows; gone with its transaction.
#[derive(Debug)]
pub struct Portal {
    pub(crate) text: Arc<str>,
    /// The statement, unless it is a cursor's query.
    pub(crate) prepared: Option<Arc<Prepared>>,
    pub(crate) cached: Arc<CachedPlan>,
    pub(crate) params: Vec<Value>,
    pub(crate) rows: PortalRows,
    pub(crate) snapshot: PortalSnapshot,
    /// The rows that the queries inside the statement's expressions have given.
    pub(crate) results: SubqueryResults,
}

/// The rows that have not been sent.
#[derive(Debug)]
pub(crate) enum PortalRows {
    /// None of them has been asked for.
    Unopened(Arc<SelectPlan>),
    /// Made when they are asked for.
    Select {
        plan: Arc<SelectPlan>,
        select: Box<Select>,
    },
    /// Of a statement that has run to its end.
    Held { rows: Sorted, row: Vec<Value> },
}

impl PortalRows {
    /// Rows that have been collected, in their order.
    pub(crate) fn held(rows: Sorted) -> PortalRows {
        PortalRows::Held {
            rows,
            row: Vec::new(),
        }
    }

    /// Sends at most `max_rows` rows (0: all); how many were sent, and whether the limit was reached.
    pub(crate) fn send(
        &mut self,
        execution: &mut Execution<'_>,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<(u64, bool)> {
        let most = if max_rows == 0 {
            u64::MAX
        } else {
            u64::from(max_rows)
        };
        let mut sent = 0;
        while sent < most {
            if !self.next(execution)? {
                return Ok((sent, false));
            }
            out.row(self.row())?;
            sent += 1;
        }
        Ok((sent, true))
    }

    /// Goes to the next row, if there is one.
    pub(crate) fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            match self {
                PortalRows::Unopened(plan) => {
                    let plan = Arc::clone(plan);
                    let select = Box::new(Select::open(execution, &plan)?);
                    *self = PortalRows::Select { plan, select };
                }
                PortalRows::Select { plan, select } => return select.next(execution, plan),
                PortalRows::Held { rows, row } => {
                    execution.tick()?;
                    let Some((_, mut payload)) = rows.next()? else {
                        return Ok(false);
                    };
                    return read_row(&mut payload, row).map(|()| true);
                }
            }
        }
    }

    /// The current row.
    pub(crate) fn row(&self) -> &[Value] {
        match self {
            PortalRows::Unopened(_) => &[],
            PortalRows::Select { plan, select } => select.row(plan),
            PortalRows::Held { row, .. } => row,
        }
    }

    /// The place of the current row's version in its table, if it comes from one table alone.
    pub(crate) fn place(&self) -> Option<Tid> {
        match self {
            PortalRows::Select { select, .. } => select.place(),
            PortalRows::Unopened(_) | PortalRows::Held { .. } => None,
        }
    }

    /// No more rows are wanted: gives the buffers back.
    pub(crate) fn close(self, execution: &mut Execution<'_>) {
        if let PortalRows::Select { mut select, .. } = self {
            select.close(execution);
        }
    }
}

impl Session {
    /// Goes on with a portal: sends at most `max_rows` rows (0: all). 34000 when its transaction has ended.
    pub fn resume(
        &mut self,
        portal: Box<Portal>,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion, EngineError> {
        self.begin_call();
        let completion = self.resume_portal(portal, max_rows, out);
        self.end_call();
        completion
    }

    fn resume_portal(
        &mut self,
        portal: Box<Portal>,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion> {
        self.slot.begin_statement(&portal.text, clock::now_us());
        self.interrupts.begin(self.settings.statement_timeout);
        self.txn.set_deadlock_timeout(&self.settings);
        if let Some(refusal) = self.refusal(false) {
            self.went_idle();
            return Err(refusal);
        }
        if !self.txn.owns(&portal.snapshot) {
            return Err(self.fail(ended_with_its_transaction()));
        }
        self.txn.begin_answer(true, &self.settings);
        let counted = self
            .settings
            .counts_statements
            .then(|| portal.prepared.clone())
            .flatten();
        let counted = counted.map(|prepared| (self.begin_counts(&prepared), prepared));
        match self.resume_inner(portal, max_rows, out) {
            Ok(completion) => {
                self.end_answer(false)?;
                if let Some((meter, prepared)) = &counted {
                    self.add_to_counts(prepared, meter);
                }
                Ok(completion)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn resume_inner(
        &mut self,
        mut portal: Box<Portal>,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion> {
        self.interrupts.check()?;
        let version = self.txn.catalog_version();
        self.know_types(version);
        self.txn.exchange_snapshot(&mut portal.snapshot);
        let Portal {
            params,
            rows,
            cached,
            results,
            ..
        } = &mut *portal;
        let sent = self.with_execution(params, InnerPlans::of(&cached.plan), results, |execution, _| {
            if cached.has_names {
                let columns = cached.plan.columns.as_deref().unwrap_or_default();
                let mut named = NamedOutput::new(out, execution.eval.session, columns);
                return rows.send(execution, max_rows, &mut named);
            }
            rows.send(execution, max_rows, out)
        });
        // On an error as well: what is left of the portal is dropped with its own snapshot.
        self.txn.exchange_snapshot(&mut portal.snapshot);
        let (sent, more) = sent?;
        if more {
            self.slot.counts.rows_told(sent);
            self.txn.end_statement();
            return Ok(Completion::Suspended(portal));
        }
        let Portal {
            cached,
            rows,
            snapshot,
            ..
        } = *portal;
        self.with_execution(
            &[],
            InnerPlans::default(),
            &mut SubqueryResults::default(),
            |execution, _| {
                rows.close(execution);
                Ok(())
            },
        )?;
        // Before the statement ends: the horizon is not held back for a portal that is done.
        drop(snapshot);
        self.txn.end_statement();
        self.set_tag(&cached, Some(sent));
        out.complete(self.tag.as_str())?;
        Ok(Completion::Complete)
    }
}

/// 34000: P2.
#[cold]
fn ended_with_its_transaction() -> EngineError {
    EngineError::new(
        SqlState::INVALID_CURSOR_NAME,
        "the portal does not exist: it ended with its transaction",
    )
}

#[cfg(test)]
mod tests {
    use crate::{Collected, Completion, Config, Engine, Portal, Session, SessionInfo};

    pub(super) fn holds_back_the_horizon(session: &Session) -> bool {
        let procs = &session.engine.storage.proc_array;
        procs.xmin_of(session.txn.proc).is_some()
    }

    pub(super) fn start(session: &mut Session) -> Box<Portal> {
        let prepared = session
            .prepare("select * from generate_series(1, 10) g", &[])
            .unwrap();
        match session
            .execute(&prepared, &[], 1, &mut Collected::default())
            .unwrap()
        {
            Completion::Suspended(portal) => portal,
            Completion::Complete => panic!("all rows came at once"),
        }
    }

    /// P1, and no longer than needed.
    #[test]
    pub(super) fn the_horizon_is_held_back_while_a_portal_is_suspended() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Config::default()).unwrap();
        let mut session = engine.session(SessionInfo::default()).unwrap();
        let run = |session: &mut Session, sql: &str| {
            session.execute_simple(sql, &mut Collected::default()).unwrap();
        };
        run(&mut session, "begin");
        let portal = start(&mut session);
        assert!(holds_back_the_horizon(&session));
        run(&mut session, "select 1");
        assert!(holds_back_the_horizon(&session), "after another statement, too");
        drop(portal);
        run(&mut session, "select 1");
        assert!(!holds_back_the_horizon(&session), "the portal is closed");
        let portal = start(&mut session);
        session.resume(portal, 0, &mut Collected::default()).unwrap();
        assert!(!holds_back_the_horizon(&session), "the portal is done");
        let _suspended = start(&mut session);
        run(&mut session, "commit");
        assert!(!holds_back_the_horizon(&session), "the transaction is done");
    }
}
