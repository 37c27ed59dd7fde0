//! The parts of a definition are there after a restart, whether a crash or a clean end came before it.

mod common;

use clearway_engine::Engine;
use common::{Fixture, config, query, run};

fn reopen(fixture: Fixture) -> Fixture {
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    let engine = Engine::open(directory.path(), config()).unwrap();
    Fixture { engine, directory }
}

/// Checks a table of such columns with values that do not fit as they are.
fn check_modifiers(fixture: &Fixture) {
    let mut session = fixture.session();
    query(&mut session, "delete from measures");
    query(
        &mut session,
        "insert into measures (amount, code) values (12.345, 'abc')",
    );
    assert_eq!(
        query(&mut session, "select amount, code from measures"),
        "12.35|abc"
    );
    assert_eq!(
        run(&mut session, "insert into measures (amount) values (123456)"),
        "ERROR 22003"
    );
    assert_eq!(
        run(&mut session, "insert into measures (code) values ('abcd')"),
        "ERROR 22001"
    );
    // A column without a length takes what comes.
    query(
        &mut session,
        "update measures set plain = 123456.789, text = 'abcdef'",
    );
    assert_eq!(
        query(&mut session, "select plain, text from measures"),
        "123456.789|abcdef"
    );
}

#[test]
fn lengths_and_precisions_are_remembered() {
    let fixture = Fixture::new(
        "create table measures (amount numeric(6,2), code varchar(3), plain numeric, text varchar)",
    );
    check_modifiers(&fixture);
    let fixture = reopen(fixture);
    check_modifiers(&fixture);
}

#[test]
fn statistics_are_remembered() {
    let stats =
        "select attname, n_distinct, most_common_vals, histogram_bounds from pg_stats order by attname";
    let fixture = Fixture::new(
        "create table t (id int, kind text);
         insert into t select n, case when n % 2 = 0 then 'even' else 'odd, \"really\"' end from generate_series(1, 6000) n;
         analyze t (id); analyze t",
    );
    let before = query(&mut fixture.session(), stats);
    assert!(before.contains("even") && before.contains("5940"), "{before}");
    let files = |fixture: &Fixture| fixture.engine.storage().list_rels().unwrap();
    let named = files(&fixture);
    let fixture = reopen(fixture);
    assert_eq!(query(&mut fixture.session(), stats), before);
    assert_eq!(
        query(
            &mut fixture.session(),
            "select reltuples from pg_class where relname = 't'"
        ),
        "6000"
    );
    // One ANALYZE leaves no file of the one before, nor does one that is rolled back, nor a table that is dropped.
    assert_eq!(files(&fixture), named);
    query(
        &mut fixture.session(),
        "begin; delete from t; analyze t; rollback",
    );
    assert_eq!(query(&mut fixture.session(), stats), before);
    assert_eq!(files(&fixture), named);
    query(&mut fixture.session(), "drop table t");
    // Those of its rows, its long values and its statistics.
    assert_eq!(files(&fixture).len(), named.len() - 3);
}

#[test]
fn storage_parameters_are_taken_by_name() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let mut create = |with: &str| {
        run(
            &mut session,
            &format!("create table t{} (i int) with ({with})", with.len()),
        )
    };
    assert_eq!(create("fillfactor = 50"), "CREATE TABLE");
    assert_eq!(create("autovacuum_enabled = false"), "CREATE TABLE");
    assert_eq!(create("user_catalog_table = 50"), "ERROR 22023");
    assert_eq!(create("fillfactor = 5"), "ERROR 22023");
    run(
        &mut session,
        "create unlogged table u (a text collate \"C\") with (fillfactor = 70, parallel_workers = 2)",
    );
    drop(session);
    let fixture = reopen(fixture);
    let kept = "select relpersistence, reloptions, attcollation from pg_class join pg_attribute on attrelid = pg_class.oid
                where relname = 'u' and attnum > 0";
    assert_eq!(
        query(&mut fixture.session(), kept),
        "u|{fillfactor=70,parallel_workers=2}|950"
    );
}

#[test]
fn schemas_and_their_tables_are_remembered() {
    let fixture = Fixture::new(
        "create schema s; create table s.t (id serial, v text); insert into s.t (v) values ('one');
         create schema before; alter schema before rename to after; create table after.t (v text);
         create schema gone; drop schema gone; create table t (v text);
         create table early (id serial primary key, v text); alter table early set schema s;
         alter table s.early set unlogged; insert into s.early (v) values ('moved')",
    );
    let check = |fixture: &Fixture| {
        let mut session = fixture.session();
        let names = "select nspname, relname from pg_class join pg_namespace n on n.oid = relnamespace
                     where relkind = 'r' and nspname !~ '^pg_|^information' order by 1, 2";
        assert_eq!(query(&mut session, names), "after|t, public|t, s|early, s|t");
        let moved =
            "select c.relname, relpersistence from pg_class c join pg_namespace n on n.oid = relnamespace
                     where nspname = 's' and c.relname ~ '^early' order by 1";
        assert_eq!(
            query(&mut session, moved),
            "early|u, early_id_seq|u, early_pkey|u"
        );
        assert_eq!(query(&mut session, "select id, v from s.early"), "1|moved");
        assert_eq!(run(&mut session, "select * from early"), "ERROR 42P01");
        assert_eq!(query(&mut session, "select v from s.t where id = 1"), "one");
        assert_eq!(run(&mut session, "create table gone.t (a int)"), "ERROR 3F000");
        assert_eq!(run(&mut session, "create table before.t (a int)"), "ERROR 3F000");
    };
    check(&fixture);
    let fixture = reopen(fixture);
    check(&fixture);
    let mut session = fixture.session();
    assert_eq!(run(&mut session, "drop schema public cascade"), "DROP SCHEMA");
    drop(session);
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(run(&mut session, "create table t (v text)"), "ERROR 3F000");
    assert_eq!(run(&mut session, "create schema public"), "CREATE SCHEMA");
    assert_eq!(run(&mut session, "create table t (v text)"), "CREATE TABLE");
}

#[test]
fn foreign_keys_are_remembered() {
    let fixture = Fixture::new(
        "create table parents (a int, b text, primary key (a, b));
         create table children (gone int, x int, y text default 'd', self int unique references children (self),
             constraint named foreign key (x, y) references parents (a, b) match full
             on delete set null (y) on update cascade deferrable initially deferred);
         alter table children drop column gone;
         insert into parents values (1, 'a');
         insert into children values (1, 'a', 7)",
    );
    let shown = "select conname, pg_get_constraintdef(oid), convalidated from pg_constraint \
                 where contype = 'f' order by conname";
    let expected = "children_self_fkey|FOREIGN KEY (self) REFERENCES children(self)|true, \
         named|FOREIGN KEY (x, y) REFERENCES parents(a, b) MATCH FULL ON UPDATE CASCADE ON DELETE SET NULL (y) \
         DEFERRABLE INITIALLY DEFERRED|true";
    let expected = expected.replace("|true", "|t");
    let mut session = fixture.session();
    assert_eq!(query(&mut session, shown).replace("|true", "|t"), expected);
    drop(session);
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(query(&mut session, shown).replace("|true", "|t"), expected);
    assert_eq!(
        run(&mut session, "insert into children values (2, 'b', null)"),
        "ERROR 23503"
    );
    assert_eq!(run(&mut session, "drop table parents"), "ERROR 2BP01");
    query(&mut session, "update parents set a = 5");
    assert_eq!(query(&mut session, "select x, y, self from children"), "5|a|7");
    query(&mut session, "drop table children; drop table parents");
}

#[test]
fn generated_columns_are_remembered() {
    let fixture = Fixture::new(
        "create table t (a int, b int, c int generated always as (a * 10 + b) stored unique);
         alter table t drop column a cascade; alter table t add column a int default 3;
         alter table t add column d text generated always as (b || '-' || a) stored; create index on t (d);
         alter table t rename b to \"B b\"; insert into t values (1); insert into t values (2, 5)",
    );
    let check = |fixture: &Fixture, more: &str| {
        let mut session = fixture.session();
        assert_eq!(
            query(
                &mut session,
                &format!("update t set a = a + 1 where d like '%-{more}' returning d")
            ),
            format!("1-{}", more.parse::<i32>().unwrap() + 1)
        );
        assert_eq!(run(&mut session, "insert into t (d) values ('x')"), "ERROR 428C9");
        assert_eq!(
            query(
                &mut session,
                "select pg_get_expr(adbin, adrelid) from pg_attrdef where adnum = 5"
            ),
            "((\"B b\" || '-'::text) || a)"
        );
    };
    check(&fixture, "3");
    let fixture = reopen(fixture);
    check(&fixture, "4");
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
    query(&mut fixture.session(), "alter table t alter d drop expression");
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(
        query(
            &mut session,
            "update t set a = 9 where a = 5 and d like '1%' returning d"
        ),
        "1-5"
    );
}

/// A composite type names the rows of a table that was made before it, and a later table has it. An attribute that was added
/// is NULL in the row from before.
#[test]
fn composite_types_are_remembered() {
    let fixture = Fixture::new(
        "create table inner_rows (a int, b text); create type pair as (r inner_rows, n numeric(5,1));
         create table t (p pair, ps pair[]);
         insert into t values (row(row(1, 'x')::inner_rows, 2.25), array[row(null, 1)::pair]);
         alter type pair add attribute late int; alter table inner_rows add column c int;
         insert into t values (row(row(2, 'y', 3), 4, 5), null); alter type pair rename attribute n to number",
    );
    let check = |fixture: &Fixture| {
        let mut session = fixture.session();
        assert_eq!(
            query(
                &mut session,
                "select ((p).r).b, (p).number, (p).late, ((p).r).c from t order by 1"
            ),
            "x|2.3||, y|4.0|5|3"
        );
        assert_eq!(run(&mut session, "drop table inner_rows"), "ERROR 2BP01");
        assert_eq!(
            run(&mut session, "alter table inner_rows drop column b"),
            "ERROR 0A000"
        );
        assert_eq!(
            run(&mut session, "alter type pair drop attribute late"),
            "ERROR 0A000"
        );
    };
    check(&fixture);
    let fixture = reopen(fixture);
    check(&fixture);
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

/// Expressions of definitions are kept as texts, also those that have a grammar of their own.
#[test]
fn calls_with_a_grammar_of_their_own_are_remembered() {
    let fixture = Fixture::new(
        "create domain year_of as date check (extract(year from value) > 2000);
         create table calls (
             at timestamp,
             name text check (position('x' in name) > 0 and trim(both ' ' from name) = name),
             year int default (extract(year from timestamp '2024-05-06')),
             place int default position('b' in 'abc'),
             cut text default (substring('abcdef' from 2 for 3) || trim(leading 'x' from 'xxy') || overlay('abc' placing 'Z' from 2)),
             month int generated always as (extract(month from at)) stored);
         create index calls_year on calls ((extract(year from at))) where extract(day from at) > 3;
         create view seen as select extract(hour from at) as hour, position('x' in name) as place from calls",
    );
    let check = |fixture: &Fixture| {
        let mut session = fixture.session();
        query(&mut session, "delete from calls");
        query(
            &mut session,
            "insert into calls (at, name) values ('2021-07-08 09:10', 'ax')",
        );
        assert_eq!(
            query(&mut session, "select year, place, cut, month from calls"),
            "2024|2|bcdyaZc|7"
        );
        assert_eq!(query(&mut session, "select hour, place from seen"), "9|2");
        for refused in [
            "insert into calls (name) values ('a')",
            "select date '1999-01-01'::year_of",
        ] {
            assert_eq!(run(&mut session, refused), "ERROR 23514", "{refused}");
        }
        let shown = "select column_default from information_schema.columns where column_name = 'year' and table_name = 'calls'";
        assert_eq!(
            query(&mut session, shown),
            "EXTRACT(year FROM '2024-05-06 00:00:00'::timestamp without time zone)"
        );
    };
    check(&fixture);
    check(&reopen(fixture));
}

/// Indexes whose texts name types: of a schema that is not searched at the start, and with another name by then.
#[test]
fn types_that_indexes_name_are_kept_by_number() {
    let fixture = Fixture::new(
        "create schema s; create type s.mood as enum ('sad', 'ok');
         create table s.people (name text, m s.mood);
         set search_path = s;
         create unique index by_mood on people (name) where m = 'ok';
         create index by_case on people ((case m when 'ok' then 1 else 0 end));
         insert into people values ('Alice', 'ok'), ('Bob', 'sad')",
    );
    let shown = "select pg_get_indexdef('s.by_mood'::regclass), pg_get_expr(indpred, indrelid) \
                 from pg_index where indexrelid = 's.by_mood'::regclass";
    let uses = |session: &mut clearway_engine::Session| {
        query(
            session,
            "set enable_seqscan = off; select name from s.people where m = 'ok' and name > ''",
        )
    };
    let mut session = fixture.session();
    assert_eq!(
        query(&mut session, shown),
        "CREATE UNIQUE INDEX by_mood ON s.people USING btree (name) WHERE (m = 'ok'::s.mood)|(m = 'ok'::s.mood)"
    );
    assert_eq!(uses(&mut session), "Alice");
    drop(session);
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(uses(&mut session), "Alice");
    query(
        &mut session,
        "alter type s.mood rename to feeling; alter schema s rename to r",
    );
    drop(session);
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(
        query(&mut session, &shown.replace("s.by_mood", "r.by_mood")),
        "CREATE UNIQUE INDEX by_mood ON r.people USING btree (name) WHERE (m = 'ok'::r.feeling)|(m = 'ok'::r.feeling)"
    );
    assert_eq!(
        run(&mut session, "insert into r.people values ('Alice', 'ok')"),
        "ERROR 23505"
    );
}

/// A type that an expression names, of which no column has a value.
#[test]
fn a_type_that_an_expression_names_is_not_dropped() {
    let fixture = Fixture::new(
        "create type mood as enum ('sad', 'ok'); create table part (a int);
         create table checked (a text check (a::mood <> 'sad'));
         create table given (a text default ('ok'::mood)::text);
         create table found (a text); create index on found (a) where 'ok'::mood > 'sad'::mood;
         create domain word as text check (value::mood <> 'sad');
         create table whole (a int default ((1)::text::int), check ((row(a)::part).a > 0))",
    );
    let mut session = fixture.session();
    let refused = |session: &mut clearway_engine::Session| {
        for sql in ["drop type mood", "drop table part"] {
            assert_eq!(run(session, sql), "ERROR 2BP01", "{sql}");
        }
    };
    refused(&mut session);
    drop(session);
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    for gone in ["table checked", "table given", "table found", "domain word"] {
        refused(&mut session);
        query(&mut session, &format!("drop {gone}"));
    }
    assert_eq!(run(&mut session, "drop type mood"), "DROP TYPE");
    assert_eq!(run(&mut session, "drop table part, whole"), "DROP TABLE");
    query(
        &mut session,
        "create type mood as enum ('sad', 'ok'); create table has (m mood default 'ok' check (m <> 'sad'), n int);
         create table checked (a text check (a::mood <> 'sad'));
         create table given (a text default ('ok'::mood)::text);
         create table found (a text); create index on found (a) where 'ok'::mood > 'sad'::mood;
         create domain word as text check (value::mood <> 'sad'); create table worded (a word)",
    );
    assert_eq!(run(&mut session, "drop type mood cascade"), "DROP TYPE");
    drop(session);
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(query(&mut session, "select count(n) from has"), "0");
    for table in ["checked", "found", "worded"] {
        query(&mut session, &format!("insert into {table} values ('no mood')"));
    }
    query(&mut session, "insert into given default values");
    assert_eq!(query(&mut session, "select a is null from given"), "t");
}

/// Expressions over rows of tables, which are known only when all definitions have been read: also of the table itself.
#[test]
fn expressions_over_rows_are_remembered() {
    let fixture = Fixture::new(
        "create table part (a int); create domain positive as part check ((value).a > 0);
         create table whole (a int default (row(7)::part).a, p part, d positive, check ((p).a > 0));
         create index on whole (((p).a)); create view both as select a, p from whole;
         create table over (b both, check ((b).a < 100));
         alter table whole add check ((row(a, p, d)::whole).a > 0)",
    );
    let holds = |fixture: &Fixture| {
        let mut session = fixture.session();
        query(
            &mut session,
            "insert into whole (p, d) values (row(1), row(2)); insert into over select v from both v",
        );
        for sql in [
            "insert into whole (p) values (row(0))",
            "insert into whole (d) values (row(0))",
            "insert into whole values (0)",
            "insert into over values (row(100, null))",
        ] {
            assert_eq!(run(&mut session, sql), "ERROR 23514", "{sql}");
        }
        assert_eq!(query(&mut session, "select a, p from whole limit 1"), "7|(1)");
    };
    holds(&fixture);
    let fixture = reopen(fixture);
    holds(&fixture);
}

/// Each domain over rows lets the next one be read: none of the rounds may miss what the one before has found.
#[test]
fn domains_over_rows_of_tables_with_domains_are_remembered() {
    let fixture = Fixture::new(
        "create table part1 (a int); create domain d1 as part1 check ((value).a > 0);
         create table part2 (d d1, x int); create domain d2 as part2 check ((value).x > 0);
         create table whole (d d2)",
    );
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    query(&mut session, "insert into whole values (row(row(1), 2))");
    for (sql, error) in [
        ("insert into whole values (row(row(0), 2))", "ERROR 23514"),
        ("insert into whole values (row(row(1), 0))", "ERROR 23514"),
    ] {
        assert_eq!(run(&mut session, sql), error, "{sql}");
    }
}

/// `ROW(…)` has as many values as its type had attributes when the text was written. Each of these would keep the engine from
/// opening, or give another value than was written.
#[test]
fn a_type_does_not_change_under_an_expression_that_is_bound_to_it() {
    let fixture = Fixture::new(
        "create table part (a int, c int); create type ty as (a int);
         create table plain (p part, t ty)",
    );
    let mut session = fixture.session();
    // Values alone are read with what they have.
    query(
        &mut session,
        "insert into plain values (row(1, 2), row(1)); alter table part add d int; alter type ty add attribute d int;
         alter table plain drop p; alter table part drop d; alter table plain drop t; alter type ty drop attribute d",
    );
    for (table, changes) in [
        (
            "a int default (row(7, 8)::part).a",
            ["table part drop column c", "table part add d int"],
        ),
        (
            "a int, check ((row(a, a)::part).a > 0)",
            ["table part add d int", "table part alter c type text"],
        ),
        (
            "p part default row(1, 2)",
            ["table part add d int", "table part drop column c"],
        ),
        (
            "a int, check ((row(a)::ty).a > 0)",
            [
                "type ty add attribute d int",
                "type ty alter attribute a type text",
            ],
        ),
        (
            "t ty default row(1)",
            ["type ty add attribute d int", "type ty drop attribute a"],
        ),
        (
            "a int, check ((row(a)::whole).a > 0)",
            ["table whole add d int", "table whole alter a type text"],
        ),
    ] {
        assert_eq!(run(&mut session, "create table whole (a int)"), "CREATE TABLE");
        query(&mut session, "drop table whole");
        if table.contains("::whole") {
            query(
                &mut session,
                "create table whole (a int); alter table whole add check ((row(a)::whole).a > 0)",
            );
        } else {
            query(&mut session, &format!("create table whole ({table})"));
        }
        for change in changes {
            assert_eq!(
                run(&mut session, &format!("alter {change}")),
                "ERROR 0A000",
                "{table}: {change}"
            );
        }
        query(&mut session, "drop table whole");
    }
    query(&mut session, "create domain d as ty default row(1)");
    assert_eq!(
        run(&mut session, "alter type ty add attribute d int"),
        "ERROR 0A000"
    );
    drop(session);
    reopen(fixture);
}

/// The rows' type of a temporary table is gone with the session.
#[test]
fn no_definition_that_lasts_has_a_temporary_type() {
    let fixture = Fixture::new("create table part (a int)");
    let mut session = fixture.session();
    query(&mut session, "create temp table part2 (a int)");
    for sql in [
        "create table whole (a int check ((row(1)::part2).a > 0))",
        "create table whole (a int default (row(1)::part2).a)",
        "create table whole (p part2)",
        "create type whole as (p part2)",
        "create domain whole as int check (value > (row(1)::part2).a)",
        "alter table part add p part2",
        "create index on part (((row(a)::part2).a))",
    ] {
        assert_eq!(run(&mut session, sql), "ERROR 0A000", "{sql}");
    }
    query(
        &mut session,
        "create temp table over (p part2, a int check ((row(1)::part2).a > 0)); create table part2_too (part2 int check (part2 > 0))",
    );
    drop(session);
    reopen(fixture);
}

#[test]
fn typed_tables_are_remembered() {
    let fixture = Fixture::new(
        "create type person as (id int, name text);
         create table persons of person (id with options primary key);
         create table others (id int, name text); alter table others of person;
         alter type person add attribute age int cascade; insert into persons values (1, 'a', 30)",
    );
    let typed = "select relname, reloftype::regtype from pg_class where reloftype <> 0 order by 1";
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(query(&mut session, typed), "others|person, persons|person");
    assert_eq!(
        run(&mut session, "alter table others drop column age"),
        "ERROR 42809"
    );
    query(
        &mut session,
        "alter type person drop attribute name cascade; alter table others not of",
    );
    assert_eq!(query(&mut session, "select * from persons"), "1|30");
    drop(session);
    let fixture = reopen(fixture);
    let mut session = fixture.session();
    assert_eq!(query(&mut session, typed), "persons|person");
    assert_eq!(run(&mut session, "drop type person"), "ERROR 2BP01");
    query(&mut session, "drop type person cascade");
    assert_eq!(query(&mut session, "select * from others"), "");
    assert_eq!(run(&mut session, "select * from persons"), "ERROR 42P01");
}
