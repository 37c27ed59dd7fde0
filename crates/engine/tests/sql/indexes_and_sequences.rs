//! Indexes and serial columns, over rollbacks and restarts.

use crate::common::{Fixture, error, query, run};

#[test]
fn indexes_are_built_used_and_kept() {
    let fixture = Fixture::new("create table words (id int, word text, n int)");
    let mut s = fixture.session();
    query(
        &mut s,
        "insert into words select i, 'w' || (i % 100), i / 10 from generate_series(1, 5000) i",
    );
    query(
        &mut s,
        "create index by_word on words (word, n desc)"
            .replace(" desc", "")
            .as_str(),
    );
    query(&mut s, "alter table words add primary key (id)");
    assert_eq!(
        query(&mut s, "select count(*) from words where word = 'w7'"),
        "50"
    );
    assert_eq!(
        query(
            &mut s,
            "select id from words where word = 'w7' and n < 25 order by n"
        ),
        "7, 107, 207"
    );
    query(
        &mut s,
        "update words set word = 'other' where id <= 107 and word = 'w7'",
    );
    assert_eq!(
        query(&mut s, "select id from words where word = 'other' order by id"),
        "7, 107"
    );
    assert_eq!(
        query(&mut s, "select count(*) from words where word = 'w7'"),
        "48"
    );
    assert_eq!(
        run(&mut s, "create unique index twice on words (word)"),
        "ERROR 23505"
    );
    assert_eq!(
        run(&mut s, "alter table words add primary key (n)"),
        "ERROR 42P16"
    );
    query(&mut s, "insert into words values (9000, null, null)");
    assert_eq!(query(&mut s, "select id from words where word is null"), "9000");
    query(&mut s, "drop index by_word");
    assert_eq!(
        query(&mut s, "select count(*) from words where word = 'other'"),
        "2"
    );
    let report = fixture.engine.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(
        (report.tables, report.rows, report.index_entries),
        (1, 5001, 5001)
    );
}

#[test]
fn serial_columns_count_on_after_a_rollback_and_a_restart() {
    let fixture = Fixture::new("create table t (id serial primary key, x int)");
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "insert into t (x) values (1), (2) returning id"),
        "1, 2"
    );
    query(&mut s, "begin");
    assert_eq!(query(&mut s, "insert into t (x) values (3) returning id"), "3");
    query(&mut s, "rollback");
    assert_eq!(query(&mut s, "insert into t (x) values (4) returning id"), "4");
    query(&mut s, "truncate t restart identity");
    assert_eq!(query(&mut s, "insert into t (x) values (5) returning id"), "1");
}

/// Numbers belong to no transaction: neither a rollback nor a session beside gives one out twice. Definitions roll back, and
/// a session that would count waits until their fate is known.
#[test]
fn sequences_beside_other_sessions() {
    Fixture::new("create sequence s cache 3; create table t (id int default nextval('s'), x int)").play(
        "alice: begin => BEGIN
         alice: insert into t values (default, 1) returning id => 1
         bob: select nextval('s') => 4
         alice: rollback => ROLLBACK
         alice: select nextval('s') => 2
         carol: select nextval('s') => 7
         alice: begin => BEGIN
         alice: alter sequence s increment by 10 cache 1 => ALTER SEQUENCE
         alice: select nextval('s') => 19
         bob: select nextval('s') => waits
         alice: rollback => ROLLBACK
         bob => 5
         alice: select nextval('s') => 20
         alice: begin => BEGIN
         alice: alter sequence s restart => ALTER SEQUENCE
         alice: select nextval('s') => 1
         bob: select nextval('s') => waits
         alice: rollback => ROLLBACK
         bob => 6
         bob: select nextval('s') => 23
         alice: begin => BEGIN
         alice: drop sequence s cascade => DROP SEQUENCE
         alice: insert into t values (default, 2) returning id is null => t
         alice: rollback => ROLLBACK
         bob: insert into t values (default, 3) returning id => 24",
    );
}

#[test]
fn sequences_are_there_after_a_restart() {
    let fixture = Fixture::new(
        "create sequence s as smallint increment -2 maxvalue 20 start 10 cycle; create table t (id serial, n int default nextval('s'));
         create table i (id int generated always as identity (start 5), x int); alter sequence t_id_seq rename to renamed;
         insert into t default values; insert into i (x) values (1)",
    );
    let fixture = fixture.restarted();
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "insert into t default values returning id > 1, n < 10"),
        "t|t"
    );
    assert_eq!(
        query(&mut s, "insert into i (x) values (1) returning id > 5"),
        "t"
    );
    assert_eq!(
        query(
            &mut s,
            "select pg_get_serial_sequence('t', 'id'), pg_get_serial_sequence('i', 'id')"
        ),
        "public.renamed|public.i_id_seq"
    );
    let options = "select seqtypid::regtype, seqincrement, seqmax, seqmin, seqcycle from pg_sequence where seqrelid = 's'::regclass";
    assert_eq!(query(&mut s, options), "smallint|-2|20|-32768|t");
    assert_eq!(run(&mut s, "drop sequence renamed"), "ERROR 2BP01");
    query(&mut s, "drop table t; drop table i; drop sequence s");
    let rels = fixture.engine.storage().list_rels().unwrap().len();
    assert_eq!(rels, 2);
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn nulls_may_count_as_the_same() {
    let fixture = Fixture::new(
        "create table t (a int, b int, constraint k unique nulls not distinct (a, b));
         create table u (a int); insert into u values (null), (null)",
    );
    let mut s = fixture.session();
    for (statement, answer) in [
        (
            "insert into t values (1, null), (null, 1), (null, null)",
            "INSERT 0 3",
        ),
        ("insert into t values (1, null)", "ERROR 23505"),
        ("insert into t values (null, null)", "ERROR 23505"),
        ("insert into t values (2, null), (2, null)", "ERROR 23505"),
        (
            "insert into t values (1, null) on conflict do nothing",
            "INSERT 0 0",
        ),
        (
            "insert into t values (1, null) on conflict (a, b) do update set b = 7",
            "INSERT 0 1",
        ),
        ("update t set a = null where b = 7", "UPDATE 1"),
        ("update t set b = null where b = 7", "ERROR 23505"),
        ("create unique index on u (a) nulls not distinct", "ERROR 23505"),
        (
            "delete from u; create unique index i on u (a) nulls not distinct",
            "DELETE 2; CREATE INDEX",
        ),
        (
            "alter table u add constraint l unique nulls not distinct (a)",
            "ALTER TABLE",
        ),
        ("insert into u values (null), (null)", "ERROR 23505"),
        ("create table w (like t including all)", "CREATE TABLE"),
        ("insert into w values (1, null), (1, null)", "ERROR 23505"),
    ] {
        assert_eq!(run(&mut s, statement), answer, "{statement}");
    }
    assert_eq!(
        error(&mut s, "insert into t values (null, null)").detail(),
        Some("Key (a, b)=(null, null) already exists.")
    );
    let shown = "select pg_get_indexdef(indexrelid), indnullsnotdistinct from pg_index where indexrelid = 'i'::regclass";
    let expected = "CREATE UNIQUE INDEX i ON public.u USING btree (a) NULLS NOT DISTINCT|t";
    assert_eq!(query(&mut s, shown), expected);
    drop(s);
    let fixture = fixture.restarted();
    let mut s = fixture.session();
    assert_eq!(query(&mut s, shown), expected);
    assert_eq!(
        query(
            &mut s,
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'k'"
        ),
        "UNIQUE NULLS NOT DISTINCT (a, b)"
    );
    assert_eq!(run(&mut s, "insert into t values (null, null)"), "ERROR 23505");
}
