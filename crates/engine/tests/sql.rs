//! What statements do, one by one, errors with their SQLSTATEs included.

mod common;

use clearway_engine::{Collected, Completion, DataType, Session, SqlState, Value};
use common::{Fixture, error, query, run};

fn shop() -> Fixture {
    Fixture::new(
        "create table items (id int primary key, name varchar(20) not null, price numeric(8,2), stock smallint default 0);
         insert into items values (1, 'apple', 0.50, 100), (2, 'bread', 2.25, 10), (3, 'cheese', 7.80, null);
         create table log (at int, what text)",
    )
}

/// Texts that sqlparser reads otherwise than PostgreSQL; the answers are PostgreSQL's.
#[test]
fn texts_mean_what_they_mean_in_postgresql() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "select -2 ^ 2, 2 ^ -3 ^ 2, - -2 ^ 2"),
        "4|0.015625|4"
    );
    assert_eq!(query(&mut s, "select @ -5 + 3, |/ 7 + 9, @ -5 || 'x'"), "2|4|5x");
    assert_eq!(
        query(&mut s, "select 1 isnull, null isnull or false, 1 isnull = false"),
        "f|t|t"
    );
    assert_eq!(query(&mut s, "select 'a'\n'b' -- and\n 'c'"), "abc");
    assert_eq!(
        query(&mut s, "select concat(true, null, 'ab'::char(4), 'x', false)"),
        "tab  xf"
    );
    assert_eq!(
        query(
            &mut s,
            "select coalesce(null, 1, 1 / 0), coalesce(id, 1 / (id - id)) from items where id = 1"
        ),
        "1|1"
    );
    for mistake in [
        "select 'a' 'b'",
        "select 1 as 'b'",
        "select 1 'b'",
        "select id from items 'i'",
    ] {
        assert_eq!(run(&mut s, mistake), "ERROR 42601", "{mistake}");
    }
}

#[test]
fn where_order_limit_and_arithmetic() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "select name from items where price > 1 order by price desc"
        ),
        "cheese, bread"
    );
    assert_eq!(
        query(&mut s, "select id from items where id in (3, 1, 9) order by id"),
        "1, 3"
    );
    assert_eq!(
        query(
            &mut s,
            "select id from items where id between 2 and 3 order by 1 desc"
        ),
        "3, 2"
    );
    assert_eq!(query(&mut s, "select id from items where stock is null"), "3");
    assert_eq!(
        query(
            &mut s,
            "select id from items where not (id = 1 or name = 'bread')"
        ),
        "3"
    );
    assert_eq!(
        query(
            &mut s,
            "select id, price * 2 from items order by id limit 1 offset 1"
        ),
        "2|4.50"
    );
    assert_eq!(
        query(&mut s, "select id from items where name like '%e%' order by id"),
        "1, 2, 3"
    );
    assert_eq!(
        query(&mut s, "select distinct stock is null from items order by 1"),
        "f, t"
    );
    assert_eq!(
        query(&mut s, "select id from items order by stock nulls first, id"),
        "3, 2, 1"
    );
    assert_eq!(query(&mut s, "select 2 + 3 * 4, 7 / 2, -7 % 3"), "14|3|-1");
    assert_eq!(run(&mut s, "select 1 / 0"), "ERROR 22012");
    assert_eq!(run(&mut s, "select id from items limit -1"), "ERROR 2201W");
}

#[test]
fn aggregates_and_groups() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "select count(*), count(stock), sum(stock), min(name), max(price) from items"
        ),
        "3|2|110|apple|7.80"
    );
    assert_eq!(
        query(&mut s, "select count(*), sum(stock) from items where id > 99"),
        "0|"
    );
    query(
        &mut s,
        "insert into log select i, case when i % 2 = 0 then 'even' else 'odd' end from generate_series(1, 9) i",
    );
    assert_eq!(
        query(
            &mut s,
            "select what, count(*), avg(at) from log group by what order by what"
        ),
        "even|4|5.0000000000000000, odd|5|5.0000000000000000"
    );
    assert_eq!(
        query(&mut s, "select what from log group by what having count(*) > 4"),
        "odd"
    );
    assert_eq!(query(&mut s, "select count(distinct what) from log"), "2");
    assert_eq!(run(&mut s, "select at, count(*) from log"), "ERROR 42803");
    // The ends of an index are looked up, not searched for.
    assert_eq!(query(&mut s, "select min(id), max(id) from items"), "1|3");
    assert_eq!(query(&mut s, "select max(id) from items where id < 3"), "2");
}

#[test]
fn values_of_double_precision() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "select sum(g::double precision / 4), avg(g::double precision) from generate_series(1, 3) g"
        ),
        "1.5|2"
    );
    assert_eq!(
        query(
            &mut s,
            "select sqrt(2.25::double precision), power(1.5::double precision, 2)"
        ),
        "1.5|2.25"
    );
}

#[test]
fn insert_update_delete_with_returning() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "insert into items (id, name) values (4, 'dates') returning id, stock, price"
        ),
        "4|0|"
    );
    assert_eq!(
        query(
            &mut s,
            "update items set price = 1.999, stock = stock + 1 where id = 4 returning price, stock"
        ),
        "2.00|1"
    );
    assert_eq!(
        query(&mut s, "delete from items where id = 4 returning name"),
        "dates"
    );
    assert_eq!(query(&mut s, "delete from items where id = 4 returning name"), "");
    assert_eq!(
        query(&mut s, "update items set stock = 1 where stock is null"),
        "UPDATE 1"
    );
    assert_eq!(query(&mut s, "update items set id = id + 10"), "UPDATE 3");
    assert_eq!(
        query(&mut s, "select id, name from items where id >= 2 order by id"),
        "11|apple, 12|bread, 13|cheese"
    );
    // Checked row by row, as in PostgreSQL: the first row meets the second, which has yet to move.
    assert_eq!(run(&mut s, "update items set id = id + 1"), "ERROR 23505");
    assert_eq!(query(&mut s, "select name from items where id = 1"), "");
}

#[test]
fn constraints_speak_as_postgresql_does() {
    let fixture = shop();
    let mut s = fixture.session();
    let duplicate = error(&mut s, "insert into items values (2, 'brie')");
    assert_eq!(duplicate.sqlstate().as_str(), "23505");
    assert_eq!(
        duplicate.message(),
        "duplicate key value violates unique constraint \"items_pkey\""
    );
    assert_eq!(duplicate.detail(), Some("Key (id)=(2) already exists."));
    let missing = error(&mut s, "insert into items (id) values (9)");
    assert_eq!(missing.sqlstate().as_str(), "23502");
    assert_eq!(
        missing.message(),
        "null value in column \"name\" of relation \"items\" violates not-null constraint"
    );
    assert_eq!(missing.detail(), Some("Failing row contains (9, null, null, 0)."));
    assert_eq!(
        run(&mut s, "update items set name = null where id = 1"),
        "ERROR 23502"
    );
    assert_eq!(run(&mut s, "update items set id = 1 where id = 2"), "ERROR 23505");
    assert_eq!(
        run(
            &mut s,
            "insert into items values (5, 'a name of more than twenty characters')"
        ),
        "ERROR 22001"
    );
    assert_eq!(
        run(&mut s, "insert into items values (5, 'x', 1234567.00)"),
        "ERROR 22003"
    );
    assert_eq!(
        run(&mut s, "insert into items values (99999999999, 'x')"),
        "ERROR 22003"
    );
    assert_eq!(run(&mut s, "insert into items values ('x', 'x')"), "ERROR 22P02");
    // A failed statement leaves nothing behind, not even its first rows.
    assert_eq!(
        run(&mut s, "insert into items values (6, 'fig'), (1, 'apple')"),
        "ERROR 23505"
    );
    assert_eq!(query(&mut s, "select count(*) from items where id = 6"), "0");
}

#[test]
fn names_that_do_not_exist() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(run(&mut s, "select * from nothing"), "ERROR 42P01");
    assert_eq!(run(&mut s, "select colour from items"), "ERROR 42703");
    assert_eq!(run(&mut s, "select nosuch(1)"), "ERROR 42883");
    assert_eq!(run(&mut s, "selec 1"), "ERROR 42601");
    assert_eq!(run(&mut s, "set no_such_setting = 1"), "ERROR 42704");
    assert_eq!(run(&mut s, "create table items (id int)"), "ERROR 42P07");
    assert_eq!(run(&mut s, "drop table nothing"), "ERROR 42P01");
    assert_eq!(
        run(&mut s, "select * from items a join log b on true"),
        "ERROR 0A000"
    );
    assert_eq!(run(&mut s, "savepoint a"), "ERROR 0A000");
}

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

#[test]
fn prepared_statements_follow_changed_definitions() {
    let fixture = shop();
    let mut s = fixture.session();
    let mut out = Collected::default();
    let find = s.prepare("select name from items where id = $1", &[]).unwrap();
    assert_eq!(find.param_types(), [DataType::Int4]);
    assert_eq!(find.columns().unwrap()[0].name, "name");
    s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap();
    s.sync().unwrap();
    assert_eq!(out.rows, [[Value::text("bread")]]);
    let mut other = fixture.session();
    query(&mut other, "create index by_name on items (name)");
    query(&mut other, "truncate items");
    out = Collected::default();
    s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap();
    s.sync().unwrap();
    assert!(out.rows.is_empty());
    query(&mut other, "drop table items");
    let error = s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "42P01");
    query(&mut other, "create table items (id int, name int)");
    let error = s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "0A000");
}

#[test]
fn a_statement_planned_anew_keeps_the_types_of_its_parameters() {
    let fixture = Fixture::new("create table t (id int primary key, x int); insert into t values (1, 5)");
    let mut s = fixture.session();
    let mut out = Collected::default();
    let find = s
        .prepare("select id from t where x = $1 and $2 = x", &[None, None])
        .unwrap();
    assert_eq!(find.param_types(), [DataType::Int4, DataType::Int4]);
    // Another table of that name, where the parameters would be inferred as numeric.
    query(
        &mut fixture.session(),
        "drop table t; create table t (id int primary key, x numeric(10, 2)); insert into t values (1, 5), (2, 6)",
    );
    let five = [Value::Int4(5), Value::Int4(5)];
    s.execute(&find, &five, 0, &mut out).unwrap();
    s.sync().unwrap();
    assert_eq!(out.rows, [[Value::Int4(1)]]);
    assert_eq!(find.param_types(), [DataType::Int4, DataType::Int4]);
    // And where integers cannot be compared with the new column, that is an error.
    query(
        &mut fixture.session(),
        "drop table t; create table t (id int primary key, x text); insert into t values (1, '5')",
    );
    let refused = s.execute(&find, &five, 0, &mut out).unwrap_err();
    assert_eq!(refused.sqlstate().as_str(), "42883");
}

#[test]
fn the_first_use_of_a_parameter_gives_it_its_type() {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    let mut holds = |sql: &str, types: &[DataType], value: Value| {
        let mut out = Collected::default();
        let prepared = s.prepare(sql, &[]).unwrap();
        assert_eq!(prepared.param_types(), types, "{sql}");
        s.execute(&prepared, &[value], 0, &mut out).unwrap();
        s.sync().unwrap();
        out.rows[0][0].clone()
    };
    let int = [DataType::Int4];
    assert_eq!(
        holds("select $1 between 5 and 9.5", &int, Value::Int4(9)),
        Value::Bool(true)
    );
    assert_eq!(
        holds("select $1 not between 5 and 9.5", &int, Value::Int4(10)),
        Value::Bool(true)
    );
    assert_eq!(
        holds("select $1 between 5 and 9.5", &int, Value::Int4(10)),
        Value::Bool(false)
    );
    assert_eq!(
        holds(
            "select case $1 when 5 then 'a' when 9.5 then 'b' else 'c' end",
            &int,
            Value::Int4(5)
        ),
        Value::text("a")
    );
    assert_eq!(
        holds("select $1 = 5 or $1 = 9.5", &int, Value::Int4(5)),
        Value::Bool(true)
    );
    // Two uses that want different types, neither of which knew of the other.
    for sql in ["select concat($1, $1 + 1)", "select repeat($1, $1 + 1)"] {
        let refused = s.prepare(sql, &[]).unwrap_err();
        assert_eq!(refused.sqlstate().as_str(), "42P08", "{sql}");
        assert_eq!(
            refused.message(),
            "inconsistent types deduced for parameter $1",
            "{sql}"
        );
    }
}

#[test]
fn a_portal_gives_its_rows_in_portions() {
    let fixture = shop();
    let mut s = fixture.session();
    let all = s.prepare("select id from items order by id", &[]).unwrap();
    let mut out = Collected::default();
    let Completion::Suspended(portal) = s.execute(&all, &[], 2, &mut out).unwrap() else {
        panic!("not suspended")
    };
    assert_eq!(out.rows.len(), 2);
    assert!(matches!(
        s.resume(portal, 2, &mut out).unwrap(),
        Completion::Complete
    ));
    assert_eq!(out.rows.len(), 3);
    assert_eq!(out.tags, ["SELECT 1"]);
    s.sync().unwrap();
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
fn sql_level_prepare_and_execute() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "prepare find (int) as select name from items where id = $1"
        ),
        "PREPARE"
    );
    assert_eq!(query(&mut s, "execute find(1 + 1)"), "bread");
    assert_eq!(run(&mut s, "execute find"), "ERROR 42601");
    assert_eq!(query(&mut s, "deallocate find"), "DEALLOCATE");
    assert_eq!(run(&mut s, "execute find(1)"), "ERROR 26000");
}

#[test]
fn copy_in_and_out() {
    let fixture = shop();
    let mut s = fixture.session();
    let mut out = Collected {
        copy_input: b"7\tgrapes\t3.10\t5\n8\thalva\t\\N\t1\n".to_vec(),
        ..Collected::default()
    };
    s.execute_simple("copy items from stdin", &mut out).unwrap();
    assert_eq!(out.tags, ["COPY 2"]);
    let mut out = Collected {
        copy_input: b"9,\"iced, tea\"\n".to_vec(),
        ..Collected::default()
    };
    s.execute_simple("copy items (id, name) from stdin with (format csv)", &mut out)
        .unwrap();
    assert_eq!(
        query(&mut s, "select name, stock from items where id = 9"),
        "iced, tea|0"
    );
    let mut out = Collected::default();
    s.execute_simple(
        "copy (select id, price, name from items where id > 6 order by id) to stdout",
        &mut out,
    )
    .unwrap();
    assert_eq!(
        String::from_utf8(out.copied).unwrap(),
        "7\t3.10\tgrapes\n8\t\\N\thalva\n9\t\\N\ticed, tea\n"
    );
    for (bad, state) in [
        (&b"10\n"[..], "22P04"),
        (b"10\tx\t1\t1\t1\n", "22P04"),
        (b"ten\tx\t1\t1\n", "22P02"),
        (b"10\tx\t1\t1\n1\tapple\t1\t1\n", "23505"),
    ] {
        let mut out = Collected {
            copy_input: bad.to_vec(),
            ..Collected::default()
        };
        let error = s.execute_simple("copy items from stdin", &mut out).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), state, "{error}");
    }
    assert_eq!(query(&mut s, "select count(*) from items"), "6");
}

#[test]
fn copy_takes_no_marks_that_cannot_be_told_apart() {
    let fixture = shop();
    let mut s = fixture.session();
    for (options, code) in [
        ("delimiter 'a'", "22023"),
        ("delimiter '\\'", "22023"),
        ("format csv, delimiter '\"'", "22023"),
        ("null 'a\tb'", "0A000"),
        ("null E'a\\n'", "22023"),
        ("format csv, null '\"'", "0A000"),
        ("quote '\"'", "0A000"),
    ] {
        let error = format!("ERROR {code}");
        assert_eq!(
            run(&mut s, &format!("copy items to stdout ({options})")),
            error,
            "{options}"
        );
    }
}

#[test]
fn a_large_copy_goes_in_batches() {
    let fixture = Fixture::new("create table big (id int primary key, filler char(84))");
    let mut s = fixture.session();
    let copy_input = (0..20_000)
        .map(|i| format!("{i}\t\n"))
        .collect::<String>()
        .into_bytes();
    let mut out = Collected {
        copy_input,
        ..Collected::default()
    };
    s.execute_simple("copy big from stdin with (freeze on)", &mut out)
        .unwrap();
    assert_eq!(
        query(&mut s, "select count(*), min(id), max(id) from big"),
        "20000|0|19999"
    );
    assert_eq!(query(&mut s, "select id from big where id = 12345"), "12345");
}

#[test]
fn settings_are_shown_and_undone() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(query(&mut s, "show server_version_num"), "150000");
    query(&mut s, "set application_name = 'till'");
    assert_eq!(query(&mut s, "show application_name"), "till");
    query(&mut s, "begin; set local synchronous_commit = off");
    assert_eq!(query(&mut s, "show synchronous_commit"), "off");
    query(&mut s, "commit");
    assert_eq!(query(&mut s, "show synchronous_commit"), "on");
    query(&mut s, "begin isolation level repeatable read");
    assert_eq!(query(&mut s, "show transaction_isolation"), "repeatable read");
    query(&mut s, "rollback");
    assert_eq!(run(&mut s, "set client_encoding = 'LATIN1'"), "ERROR 0A000");
}

#[test]
fn activity_shows_sessions_and_what_they_wait_for() {
    let fixture = shop();
    fixture.play(
        "alice: set application_name = 'till 1' => SET
         alice: begin => BEGIN
         alice: update items set stock = 1 where id = 1 => UPDATE 1
         bob:   update items set stock = 2 where id = 1 => waits
         carol: select state, wait_event_type, wait_event from pg_stat_activity where query like 'update%set stock = 2%' => active|Lock|transactionid
         carol: select application_name, state from pg_stat_activity where state = 'idle in transaction' => till 1|idle in transaction
         carol: select count(*) from pg_stat_activity where backend_xid is not null => 2
         alice: rollback => ROLLBACK
         bob    => UPDATE 1",
    );
}

/// Each class of latches tells how often it was acquired.
#[test]
fn latches_count_what_they_are_asked_for() {
    let fixture = shop();
    fixture.play(
        "alice: select count(*) from clearway_latches where name = 'ProcArray' and mode = 'shared' and acquisitions > 0 => 1
         alice: select count(*) from clearway_latches where name = 'ProcArray' and mode = 'until-free' and acquisitions is null => 1
         alice: select count(*) from clearway_latches where conflicts = 0 and wait_p99_ns is not null => 0",
    );
}

#[test]
fn utility_statements() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(query(&mut s, "vacuum"), "VACUUM");
    assert_eq!(query(&mut s, "vacuum analyze items"), "VACUUM");
    assert_eq!(query(&mut s, "analyze"), "ANALYZE");
    assert_eq!(query(&mut s, "checkpoint"), "CHECKPOINT");
    assert_eq!(run(&mut s, "begin; vacuum"), "ERROR 25001");
    query(&mut s, "rollback");
    assert!(query(&mut s, "explain select * from items where id = 1").contains("items_pkey"));
    assert_eq!(query(&mut s, "drop table if exists nothing, log"), "DROP TABLE");
    assert_eq!(
        query(&mut s, "create table if not exists items (id int)"),
        "CREATE TABLE"
    );
}

#[test]
fn names_are_looked_for_along_the_search_path() {
    let fixture = Fixture::new("create table t (a int); insert into t values (7)");
    let mut session = fixture.session();
    let ok = |session: &mut Session, sql: &str| run(session, sql);
    // A schema that does not exist is no error, as in PostgreSQL; a name is not found there.
    assert_eq!(ok(&mut session, "set search_path to nowhere"), "SET");
    assert_eq!(
        error(&mut session, "select * from t").sqlstate(),
        SqlState::UNDEFINED_TABLE
    );
    assert_eq!(query(&mut session, "select a from public.t"), "7");
    assert_eq!(query(&mut session, "select count(*) from pg_tables"), "1");
    assert_eq!(query(&mut session, "select current_schema() is null"), "t");
    let refused = error(&mut session, "create table u (a int)");
    assert_eq!(refused.sqlstate(), SqlState::INVALID_SCHEMA_NAME);
    assert_eq!(refused.message(), "no schema has been selected to create in");
    assert_eq!(ok(&mut session, "create table public.u (a int)"), "CREATE TABLE");
    assert_eq!(ok(&mut session, "set search_path to nowhere, public"), "SET");
    assert_eq!(query(&mut session, "select a from t"), "7");
    assert_eq!(query(&mut session, "select current_schema()"), "public");
    // A prepared statement is planned anew.
    ok(&mut session, "prepare p as select a from t");
    ok(&mut session, "set search_path to ''");
    assert_eq!(
        error(&mut session, "execute p").sqlstate(),
        SqlState::UNDEFINED_TABLE
    );
    ok(&mut session, "reset search_path");
    assert_eq!(query(&mut session, "execute p"), "7");
}

#[test]
fn set_config_sets_for_the_session_or_the_transaction() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let show = |session: &mut Session| query(session, "show statement_timeout");
    // What pg_dump says first.
    assert_eq!(
        query(
            &mut session,
            "select pg_catalog.set_config('search_path', '', false)"
        ),
        ""
    );
    assert_eq!(query(&mut session, "show search_path"), "");
    assert_eq!(
        query(
            &mut session,
            "select set_config('statement_timeout', '5000', false)"
        ),
        "5s"
    );
    assert_eq!(show(&mut session), "5s");
    run(&mut session, "begin");
    assert_eq!(
        query(&mut session, "select set_config('statement_timeout', '7s', true)"),
        "7s"
    );
    assert_eq!(show(&mut session), "7s");
    run(&mut session, "commit");
    assert_eq!(show(&mut session), "5s");
    run(&mut session, "begin");
    query(
        &mut session,
        "select set_config('statement_timeout', '9s', false)",
    );
    run(&mut session, "rollback");
    assert_eq!(show(&mut session), "5s");
    // For a transaction that is the statement alone, it ends with it.
    assert_eq!(
        query(&mut session, "select set_config('statement_timeout', '8s', true)"),
        "8s"
    );
    assert_eq!(show(&mut session), "5s");
    let wrong = error(
        &mut session,
        "select set_config('statement_timeout', '-3', false)",
    );
    assert_eq!(wrong.sqlstate(), SqlState::INVALID_PARAMETER_VALUE);
    let unknown = error(&mut session, "select set_config('no_such_thing', '1', false)");
    assert_eq!(unknown.sqlstate(), SqlState::UNDEFINED_OBJECT);
    // An error takes back what the same statement set.
    error(
        &mut session,
        "select set_config('statement_timeout', '1s', false), 1 / 0",
    );
    assert_eq!(show(&mut session), "5s");
    assert_eq!(
        query(
            &mut session,
            "select set_config('statement_timeout', null, false)"
        ),
        "0"
    );
}

#[test]
fn set_constraints_knows_its_constraints() {
    let fixture = Fixture::new("create table t (a int primary key)");
    let mut session = fixture.session();
    assert_eq!(
        run(&mut session, "set constraints all deferred"),
        "SET CONSTRAINTS"
    );
    let unknown = error(&mut session, "set constraints nonsense immediate");
    assert_eq!(unknown.sqlstate(), SqlState::UNDEFINED_OBJECT);
    assert_eq!(unknown.message(), "constraint \"nonsense\" does not exist");
    let fixed = error(&mut session, "set constraints t_pkey deferred");
    assert_eq!(fixed.sqlstate(), SqlState::WRONG_OBJECT_TYPE);
    assert_eq!(
        error(&mut session, "set constraints nonsense").sqlstate(),
        SqlState::SYNTAX_ERROR
    );
}

#[test]
fn notices_below_the_wanted_level_are_not_sent() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let notices = |session: &mut Session, sql: &str| {
        let mut out = Collected::default();
        session.execute_simple(sql, &mut out).unwrap();
        out.notices.len()
    };
    assert_eq!(notices(&mut session, "drop table if exists t"), 1);
    run(&mut session, "set client_min_messages = warning");
    assert_eq!(notices(&mut session, "drop table if exists t"), 0);
    assert_eq!(notices(&mut session, "commit"), 1);
    run(&mut session, "set client_min_messages = error");
    assert_eq!(notices(&mut session, "commit"), 0);
}

/// Each entry is compared with those before it, so their number is bounded, as in PostgreSQL. More than 32,767
/// aggregates were once counted in 16 bits.
#[test]
fn lists_have_a_limit() {
    let fixture = Fixture::new("create table t (x int); insert into t values (1)");
    let mut s = fixture.session();
    let list = |of: &str, count: usize| {
        let entries: Vec<String> = (0..count)
            .map(|number| of.replace('#', &number.to_string()))
            .collect();
        entries.join(", ")
    };
    let sum = |count: usize| list("sum(x + #)", count).replace(", sum", " + sum");
    let statements = |count: usize| {
        [
            format!("select {} from t", list("#", count)),
            format!("select x from t order by {}", list("x + #", count - 1)),
            format!("select 1 from t group by {}", list("x + #", count)),
            format!("select {} from t", sum(count)),
            format!("select x from t group by x having {} > 0", sum(count)),
            format!("delete from t where x < 0 returning {}", list("#", count)),
        ]
    };
    for sql in statements(1_664) {
        assert!(!run(&mut s, &sql).starts_with("ERROR"), "{}", &sql[..60]);
    }
    for sql in statements(1_665).into_iter().chain(statements(40_000)) {
        let error = error(&mut s, &sql);
        assert_eq!(
            error.sqlstate(),
            SqlState::TOO_MANY_COLUMNS,
            "{}: {error:?}",
            &sql[..60]
        );
    }
    // The same one again is none more.
    assert_eq!(
        query(&mut s, &format!("select x from t group by {}", list("x", 5_000))),
        "1"
    );
    assert_eq!(
        query(&mut s, &format!("select x from t order by {}", list("x", 5_000))),
        "1"
    );
    assert_eq!(
        query(
            &mut s,
            &format!("select {} from t", list("sum(x)", 5_000).replace(',', " +"))
        ),
        "5000"
    );
}

/// A long INSERT is parsed in pieces; what it stores and where its mistakes are does not show that.
#[test]
fn long_inserts_are_as_short_ones() {
    const ROWS: usize = 20_000;
    let fixture = Fixture::new("create table t (a int default 7, b text)");
    let mut s = fixture.session();
    let rows = |between: &str| {
        let row = |row| format!("({row}, 'é{row}, (')");
        (0..ROWS).map(row).collect::<Vec<_>>().join(between)
    };
    for between in [", ", ",\n", " /* ) */ ,"] {
        let sql = format!("insert into t (a, b) values {}", rows(between));
        assert_eq!(run(&mut s, &sql), format!("INSERT 0 {ROWS}"));
        let counted = "select count(*), count(distinct a), min(b), max(a) from t where b = 'é' || a || ', ('";
        assert_eq!(
            query(&mut s, counted),
            format!("{ROWS}|{ROWS}|é0, (|{}", ROWS - 1)
        );
        run(&mut s, "truncate t");
    }
    let defaults = format!(
        "insert into t values (1, 'x'){} returning a",
        ", (default, null)".repeat(ROWS)
    );
    let returned = query(&mut s, &defaults);
    assert!(returned.starts_with("1, 7, 7, ") && returned.ends_with(", 7"));
    let between = ",\n";
    let good = format!("insert into t values {}", rows(between));
    // A mistake in a late row, behind all rows on a line of its own and on the last row's, and one that binding finds.
    for (tail, sqlstate, marked) in [
        (",\n (1, 'x', +)", "42601", ")"),
        ("\nreturning missing", "42703", "missing"),
        (" returning missing", "42703", "missing"),
        (" retruning a", "42601", "retruning"),
        (", (1, missing)", "42703", "missing"),
        (", (1, 'x', 3)", "42601", "1, 'x', 3"),
    ] {
        let sql = format!("{good}{tail}");
        let error = error(&mut s, &sql);
        assert_eq!(error.sqlstate().as_str(), sqlstate, "{tail}: {error:?}");
        let place = sql
            .char_indices()
            .nth(error.position().unwrap() as usize - 1)
            .unwrap()
            .0;
        assert!(sql[place..].starts_with(marked), "{tail}: at {:?}", &sql[place..]);
    }
    // What comes before it is not done when the last statement is a mistake.
    let several = format!("create table u (a int); {good}, (1, +)");
    assert_eq!(run(&mut s, &several), "ERROR 42601");
    assert_eq!(run(&mut s, "select * from u"), "ERROR 42P01");
}

#[test]
fn a_copied_query_ends_at_its_own_bracket() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    assert_eq!(
        run(&mut session, "copy (select (1 + (2)) * 3) to stdout"),
        "COPY 1"
    );
}
