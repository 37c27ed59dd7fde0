//! Begin and end of transactions, and what they may do.

use clearway_engine::{Collected, Value};

use crate::common::{error, query, run};
use crate::shop;

#[test]
fn a_failed_transaction_takes_only_its_end() {
    let fixture = shop();
    let mut s = fixture.session();
    query(&mut s, "begin");
    query(&mut s, "insert into log values (1, 'lost')");
    assert_eq!(run(&mut s, "select 1 / 0"), "ERROR 22012");
    assert_eq!(run(&mut s, "select 1"), "ERROR 25P02");
    assert_eq!(run(&mut s, "commit"), "ROLLBACK");
    assert_eq!(query(&mut s, "select count(*) from log"), "0");
}

#[test]
fn several_statements_in_one_message_are_one_transaction() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        run(
            &mut s,
            "insert into log values (1, 'a'); insert into log values (2, 'b'); select 1 / 0"
        ),
        "ERROR 22012"
    );
    assert_eq!(query(&mut s, "select count(*) from log"), "0");
    assert_eq!(
        run(
            &mut s,
            "insert into log values (1, 'a'); begin; insert into log values (2, 'b'); commit; select 1 / 0"
        ),
        "ERROR 22012"
    );
    assert_eq!(query(&mut s, "select count(*) from log"), "2");
    assert_eq!(run(&mut s, ""), "");
}

#[test]
fn implicit_transactions_of_the_extended_protocol_end_at_sync() {
    let fixture = shop();
    let (mut s, mut other) = (fixture.session(), fixture.session());
    let mut out = Collected::default();
    let insert = s.prepare("insert into log values ($1, $2)", &[]).unwrap();
    s.execute(&insert, &[Value::Int4(1), Value::text("a")], 0, &mut out)
        .unwrap();
    assert_eq!(query(&mut other, "select count(*) from log"), "0");
    s.sync().unwrap();
    assert_eq!(query(&mut other, "select count(*) from log"), "1");
    s.execute(&insert, &[Value::Int4(2), Value::text("b")], 0, &mut out)
        .unwrap();
    assert!(s.execute(&insert, &[Value::Int4(2)], 0, &mut out).is_err());
    s.sync().unwrap();
    assert_eq!(query(&mut other, "select count(*) from log"), "1");
}

#[test]
fn read_only_transactions_do_not_write() {
    let fixture = shop();
    let mut s = fixture.session();
    query(&mut s, "begin read only");
    assert_eq!(query(&mut s, "select count(*) from items"), "3");
    assert_eq!(run(&mut s, "delete from items"), "ERROR 25006");
    query(&mut s, "rollback");
    query(&mut s, "set default_transaction_read_only = on");
    assert_eq!(run(&mut s, "create table t (a int)"), "ERROR 25006");
}

#[test]
fn lock_table_keeps_others_out_until_the_end() {
    let fixture = shop();
    let (mut s, mut other) = (fixture.session(), fixture.session());
    assert_eq!(run(&mut s, "lock table log"), "ERROR 25P01");
    query(&mut s, "begin");
    assert_eq!(run(&mut s, "lock table log in share mode"), "LOCK TABLE");
    query(&mut other, "begin");
    assert_eq!(
        run(&mut other, "lock log in access share mode nowait"),
        "LOCK TABLE"
    );
    assert_eq!(run(&mut other, "select count(*) from log"), "0");
    let refused = error(&mut other, "lock log in row exclusive mode nowait");
    assert_eq!(refused.sqlstate().as_str(), "55P03");
    assert_eq!(refused.message(), "could not obtain lock on relation \"log\"");
    query(&mut other, "rollback");
    query(&mut other, "set lock_timeout = '10ms'");
    assert_eq!(run(&mut other, "insert into log values (1, 'a')"), "ERROR 55P03");
    query(&mut s, "commit");
    assert_eq!(run(&mut other, "insert into log values (1, 'a')"), "INSERT 0 1");
    // A lock of several statements in one message lasts as long as their transaction.
    assert_eq!(run(&mut s, "lock pg_class, log; select count(*) from log"), "1");
    assert_eq!(run(&mut s, "begin; lock nothing_of_this_name"), "ERROR 42P01");
    assert_eq!(run(&mut s, "rollback"), "ROLLBACK");
}
