//! A database for the tests of the command.

use std::path::Path;
use std::sync::Arc;

use clearway_engine::{Config, Discard, Engine, SessionInfo};

/// A new database in `data` with a table `t` of 1,000 rows, open.
pub fn engine_with_a_table(data: &Path) -> Arc<Engine> {
    let engine = Engine::open(data, Config::default()).unwrap();
    let mut session = engine.session(SessionInfo::default()).unwrap();
    let setup = "create table t (a int primary key); insert into t select i from generate_series(1, 1000) i";
    session.execute_simple(setup, &mut Discard::default()).unwrap();
    drop(session);
    engine
}
