//! The number of questions to the commit log about rows without hint bits, as they are when a page comes back from disk
//! clean.
//!
//! A suite of its own, since a latch's acquisitions are counted for the whole process.

mod common;

use clearway_engine::{Config, Engine, SessionInfo};
use common::{config, query};

const ROWS: u64 = 20_000;

/// Acquisitions of the commit log's latch so far.
fn questions() -> u64 {
    clearway_latch::statistics()
        .iter()
        .filter(|class| class.name == "CommitLog")
        .flat_map(|class| [&class.shared, &class.exclusive])
        .filter_map(|mode| mode.acquisitions)
        .sum()
}

/// One transaction has written all rows: a scan that finds them without hints asks about it once. Mutation that it
/// catches: a snapshot that does not remember the last commit.
#[test]
fn rows_of_one_transaction_ask_once() {
    let config = || {
        let mut config = Config {
            autovacuum: false,
            ..config()
        };
        config.mechanisms.set("commit_log=latch").unwrap();
        config
    };
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), config()).unwrap();
    let mut session = engine.session(SessionInfo::default()).unwrap();
    query(&mut session, "create table t (id int)");
    query(
        &mut session,
        &format!("insert into t select i from generate_series(1, {ROWS}) i"),
    );
    drop(session);
    engine.shutdown().unwrap();
    drop(engine);

    let engine = Engine::open(directory.path(), config()).unwrap();
    let mut session = engine.session(SessionInfo::default()).unwrap();
    let before = questions();
    assert_eq!(query(&mut session, "select count(*) from t"), ROWS.to_string());
    let asked = questions() - before;
    assert!((1..100).contains(&asked), "{asked} questions for {ROWS} rows");
}
