//! Definitions that are refused, and what the catalog tells of some. The answers are PostgreSQL's.

use crate::common::{Fixture, error, query, run};

#[test]
fn names_of_system_columns_are_taken() {
    let fixture = Fixture::new("create table t (a int)");
    let mut s = fixture.session();
    for statement in [
        "create table u (xmin int)",
        "create table u as select 1 as ctid",
        "alter table t add tableoid int",
        "alter table t rename a to cmax",
    ] {
        assert_eq!(run(&mut s, statement), "ERROR 42701", "{statement}");
    }
    assert_eq!(
        error(&mut s, "create table u (xmin int)").message(),
        "column name \"xmin\" conflicts with a system column name"
    );
    // A view has none.
    assert_eq!(
        query(
            &mut s,
            "create view v as select a as xmin from t; select count(*) from v"
        ),
        "0"
    );
}

#[test]
fn constraints_and_declarations_that_contradict_are_refused() {
    let fixture = Fixture::new(
        "create table t (a int, b text, constraint c check (a > 0));
         create unique index by_collation on t (b collate \"POSIX\")",
    );
    let mut s = fixture.session();
    for (statement, state) in [
        ("alter table t add constraint c unique (a)", "42710"),
        ("alter table t add unique using index by_collation", "42809"),
        ("create index on t ((row(a, b)))", "42P16"),
        ("create table u (a int not null null)", "42601"),
        ("create table u (a int null not null)", "42601"),
        (
            "create table u (a int null generated always as identity)",
            "42601",
        ),
    ] {
        assert_eq!(run(&mut s, statement), format!("ERROR {state}"), "{statement}");
    }
}

#[test]
fn copy_freezes_only_what_the_transaction_has_made() {
    let fixture = Fixture::new("create table t (a int)");
    let mut s = fixture.session();
    let copy = "copy t from stdin with (freeze)";
    assert_eq!(run(&mut s, copy), "ERROR 55000");
    query(&mut s, "begin; truncate t; savepoint one");
    assert_eq!(run(&mut s, copy), "ERROR 55000");
    query(&mut s, "rollback to one; release one");
    assert_eq!(run(&mut s, copy), "COPY 0");
    query(&mut s, "rollback");
}

#[test]
fn the_catalog_has_what_checks_foreign_keys() {
    let fixture = Fixture::new(
        "create table p (a int primary key);
         create table c (a int constraint k references p on delete cascade deferrable initially deferred)",
    );
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "select tgrelid::regclass, tgconstrrelid::regclass, tgfoid::regproc, tgtype, tgdeferrable, tginitdeferred
             from pg_trigger t join pg_constraint o on o.oid = tgconstraint where conname = 'k' order by t.oid"
        ),
        "p|c|\"RI_FKey_cascade_del\"|9|f|f, p|c|\"RI_FKey_noaction_upd\"|17|t|t, \
         c|p|\"RI_FKey_check_ins\"|5|t|t, c|p|\"RI_FKey_check_upd\"|17|t|t"
    );
    assert_eq!(
        query(
            &mut s,
            "select attname, atttypid::regtype, attlen, attnotnull from pg_attribute
             where attrelid = 'c'::regclass and attnum < 0 order by attnum desc"
        ),
        "ctid|tid|6|t, xmin|xid|4|t, cmin|cid|4|t, xmax|xid|4|t, cmax|cid|4|t, tableoid|oid|4|t"
    );
    assert_eq!(
        query(
            &mut s,
            "select count(*) from pg_attribute where attrelid = 'p_pkey'::regclass and attnum < 0"
        ),
        "0"
    );
    assert_eq!(
        query(
            &mut s,
            "select aggkind, aggtranstype, agginitval from pg_aggregate where aggfnoid = 2147"
        ),
        "n|20|0"
    );
    assert_eq!(
        query(
            &mut s,
            "select name, utc_offset, is_dst from pg_timezone_names where name in ('UTC', 'Asia/Kolkata') order by 1"
        ),
        "Asia/Kolkata|05:30:00|f, UTC|00:00:00|f"
    );
    assert_eq!(
        query(
            &mut s,
            "select to_regoper('||/'), to_regoperator('+(int4,int4)'), to_regoperator('+(text,int4)'), to_regprocedure('lower(text)'), to_regcollation('nowhere')"
        ),
        "|+(integer,integer)||lower(text)|"
    );
}

#[test]
fn domains_inside_other_values_are_checked() {
    let fixture = Fixture::new(
        "create domain short as varchar(4); create table words (w short[]);
         create type pair as (x int, y int); create domain ordered as pair check ((value).x <= (value).y);
         create table pairs (id int, p ordered[]); insert into pairs values (1, array[row(1, 2)::ordered]);
         create domain given as text not null;
         create domain strange as text default 'foo' check (value <> 'foo');
         create domain dated as text default 'now'; create sequence s; create domain counted as bigint default nextval('s');
         create table plain (a int); create table full_of (a int); insert into full_of values (1)",
    );
    let mut s = fixture.session();
    for (statement, answer) in [
        ("insert into words values (array['too long'])", "ERROR 22001"),
        (
            "insert into words values (array['too long']::short[])",
            "INSERT 0 1",
        ),
        ("update pairs set p[1].x = 3", "ERROR 23514"),
        ("update pairs set p[1].x = 2", "UPDATE 1"),
        ("alter table full_of add b given", "ERROR 23502"),
        ("alter table full_of add b strange", "ERROR 23514"),
        ("alter table full_of add b strange default 'bar'", "ALTER TABLE"),
        ("alter table plain add b given", "ALTER TABLE"),
        ("alter table full_of add c dated", "ALTER TABLE"),
        ("alter table full_of add d counted", "ALTER TABLE"),
    ] {
        assert_eq!(run(&mut s, statement), answer, "{statement}");
    }
    assert_eq!(query(&mut s, "select w from words"), "{\"too \"}");
    assert_eq!(
        query(&mut s, "select p, b, c, d from pairs, full_of"),
        "{\"(2,2)\"}|bar|now|1"
    );
}
