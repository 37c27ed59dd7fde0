//! A standby at moments that cannot be met from outside.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clearway_storage::standby::Conflict;
use clearway_txn::Xid;
use tracing::field::Field;
use tracing::span;

use crate::catalog::TableEntry;
use crate::{Collected, Config, Engine, EngineError, Session, SessionInfo, Value};

/// A standby that receives nothing, with the table `t`, which has one row.
fn standby(directory: &tempfile::TempDir) -> Arc<Engine> {
    let config = Config {
        shared_buffers: "16MB".parse().unwrap(),
        fsync: false,
        ..Config::default()
    };
    let primary = Engine::open(directory.path(), config.clone()).unwrap();
    let mut session = primary.session(SessionInfo::default()).unwrap();
    rows(&mut session, "create table t (id int); insert into t values (1)").unwrap();
    drop(session);
    primary.shutdown().unwrap();
    drop(primary);
    Engine::open_standby(directory.path(), config).unwrap()
}

fn rows(session: &mut Session, sql: &str) -> Result<Vec<Vec<Value>>, EngineError> {
    let mut out = Collected::default();
    session.execute_simple(sql, &mut out)?;
    Ok(out.rows)
}

/// C1: replay has found the session, which has gone on to another transaction since; it is not in the way of replay.
#[test]
fn a_transaction_that_is_not_in_the_way_any_more_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let engine = standby(&directory);
    let mut session = engine.session(SessionInfo::default()).unwrap();
    rows(
        &mut session,
        "begin isolation level repeatable read; select * from t",
    )
    .unwrap();
    let proc = session.txn.proc;
    let other = engine.catalog.state().tables()[0].def.oid + 1;
    engine.cancel_for_replay(proc, Conflict::Snapshot, None);
    engine.cancel_for_replay(proc, Conflict::Lock, Some(other));
    assert_eq!(rows(&mut session, "select * from t").unwrap(), [[Value::Int4(1)]]);
    assert_eq!(engine.conflict_counts().lock, 0);
    // The table that is waited for.
    engine.cancel_for_replay(proc, Conflict::Lock, Some(other - 1));
    let error = rows(&mut session, "select * from t").unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "40001");
    assert_eq!(engine.conflict_counts().lock, 1);
    assert_eq!(engine.storage.proc_array.xmin_of(proc), None);
}

/// D3: definitions whose maker no snapshot sees yet. A statement waits for replay, and can be asked to end meanwhile.
#[test]
fn a_statement_waits_until_a_definition_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let engine = standby(&directory);
    let mut state = engine.catalog.changed_copy(&engine.catalog.state());
    let entry = Arc::clone(&state.tables()[0]);
    state.put(TableEntry {
        changed_by: Xid(1_000_000),
        ..(*entry).clone()
    });
    engine.catalog.publish(Arc::new(state));
    let mut session = engine.session(SessionInfo::default()).unwrap();
    rows(&mut session, "set statement_timeout = '50ms'").unwrap();
    let error = rows(&mut session, "select * from t").unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "57014");
}

/// An xid is refused even where a transaction is not read only: E1.
#[test]
fn no_xid_is_given_out() {
    let directory = tempfile::tempdir().unwrap();
    let engine = standby(&directory);
    let mut session = engine.session(SessionInfo::default()).unwrap();
    rows(&mut session, "begin").unwrap();
    session.txn.read_only = false;
    let before = engine.storage.wal.reserved();
    for sql in ["insert into t values (2)", "create table u (id int)"] {
        let error = rows(&mut session, sql).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "25006", "{error}");
        rows(&mut session, "rollback; begin").unwrap();
        session.txn.read_only = false;
    }
    assert_eq!(engine.storage.wal.reserved(), before);
}

/// A log of messages that does `work`, once, when the storage says that it was promoted: in step 3 of the promotion, on its
/// thread, with sessions that may write by then.
struct WhenPromoted<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send + 'static> tracing::Subscriber for WhenPromoted<F> {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut is_promoted = false;
        event.record(&mut |field: &Field, value: &dyn Debug| {
            is_promoted |= field.name() == "message" && format!("{value:?}") == "promoted";
        });
        if is_promoted && let Some(work) = self.0.lock().unwrap().take() {
            work();
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Step 2 of the promotion: a session makes a table as soon as it may write, and before the promotion removes the files that
/// no definition names. It has to wait until that is over, or the table has lost its file when it commits.
#[test]
fn a_table_that_is_made_during_the_promotion_keeps_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let engine = standby(&directory);
    let mut session = engine.session(SessionInfo::default()).unwrap();
    let maker = Arc::new(Mutex::new(None));
    let at_work = (Arc::clone(&engine), Arc::clone(&maker));
    let when_promoted = WhenPromoted(Mutex::new(Some(move || {
        let (engine, maker) = at_work;
        assert!(!engine.is_standby());
        let has_made = Arc::new(AtomicBool::new(false));
        let made = Arc::clone(&has_made);
        *maker.lock().unwrap() = Some(thread::spawn(move || {
            let ran = rows(&mut session, "begin; create table made (id int)");
            made.store(true, Ordering::Release);
            ran.map(|_| session)
        }));
        let deadline = Instant::now() + Duration::from_secs(60);
        let waits = || {
            engine
                .activity()
                .iter()
                .any(|one| one.wait_event_type == Some("Lock"))
        };
        while !has_made.load(Ordering::Acquire) && !waits() {
            assert!(Instant::now() < deadline, "it neither ends nor waits");
            thread::sleep(Duration::from_millis(1));
        }
    })));
    tracing::subscriber::with_default(when_promoted, || engine.promote("a test")).unwrap();
    let made = maker.lock().unwrap().take().expect("the promotion was noticed");
    let mut session = made.join().unwrap().unwrap();
    rows(&mut session, "insert into made values (7); commit").unwrap();
    assert_eq!(
        rows(&mut session, "select * from made").unwrap(),
        [[Value::Int4(7)]]
    );
    let config = engine.config.clone();
    drop(session);
    engine.shutdown().unwrap();
    drop(engine);
    // A start looks whether all files are there.
    let engine = Engine::open(directory.path(), config).unwrap();
    let mut session = engine.session(SessionInfo::default()).unwrap();
    assert_eq!(
        rows(&mut session, "select * from made").unwrap(),
        [[Value::Int4(7)]]
    );
}
