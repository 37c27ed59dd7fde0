//! The traces of a vacuum that does not end well.
//!
//! Caught with it: a `VacuumSlot` that gives nothing back during a panic.

use std::cell::RefCell;
use std::sync::Arc;

use crate::{Config, Discard, Engine, SessionInfo};

#[test]
fn a_panic_frees_slot_and_lock_and_the_next_table_gets_its_turn() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        shared_buffers: "16MB".parse().unwrap(),
        fsync: false,
        autovacuum: false,
        ..Config::default()
    };
    let engine = Engine::open(directory.path(), config).unwrap();
    let run = |sql: &str| {
        let mut session = engine.session(SessionInfo::default()).unwrap();
        session.execute_simple(sql, &mut Discard::default())
    };
    for table in ["first", "second"] {
        run(&format!("create table {table} (n int)")).unwrap();
        run(&format!(
            "insert into {table} select n from generate_series(1, 100) as s(n)"
        ))
        .unwrap();
        run(&format!("delete from {table}")).unwrap();
    }
    let free_slot = |engine: &Arc<Engine>| {
        let proc = engine.attach().unwrap();
        engine.storage.proc_array.detach(proc);
        proc
    };
    let before = free_slot(&engine);

    let visited = RefCell::new(Vec::new());
    engine.vacuum_each_table(&engine.background_interrupts(), |entry| {
        visited.borrow_mut().push(entry.def.name.clone());
        assert!(entry.def.name != "first", "a page of this table makes no sense");
        Ok(())
    });
    assert_eq!(*visited.borrow(), ["first", "second"]);
    assert_eq!(free_slot(&engine), before, "slots are taken from the lowest");
    run("set lock_timeout = '2s'; drop table first").expect("no vacuum holds the table's lock");
    engine.vacuum().unwrap();
}
