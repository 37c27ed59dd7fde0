//! The depth to which a statement may nest, and chains of operators, which have no such limit.
//! `server/tests/deep_statements.rs` has each construct of the grammar; here are one of each kind, close to the limit
//! of 100 levels.

mod common;

use common::{Fixture, query, run};

#[test]
fn nesting_has_a_limit_and_what_is_below_it_is_right() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    for (before, leaf, after, value) in [
        ("(", "1", ")", "1"),
        ("not ", "true", "", "t"),
        ("- ", "1", "", "1"),
        ("+ ", "1", "", "1"),
        ("abs(", "1", ")", "1"),
        ("case when true then ", "1", " end", "1"),
        ("case 1 when ", "1", " then 1 end", "1"),
        ("case ", "1", " when 1 then 1 end", "1"),
        ("coalesce(null, ", "1", ")", "1"),
        ("1 in (", "1", ")", ""),
    ] {
        let nested =
            |levels: usize| format!("select {}{leaf}{}", before.repeat(levels), after.repeat(levels));
        // 1 in (1 in (1)) compares a number with a truth value, which there is no operator for.
        if value.is_empty() {
            assert_eq!(run(&mut session, &nested(90)), "ERROR 42883");
        } else {
            assert_eq!(query(&mut session, &nested(90)), value, "{before}");
        }
        for levels in [102, 200] {
            assert_eq!(
                run(&mut session, &nested(levels)),
                "ERROR 54001",
                "{levels} {before}"
            );
        }
    }
    // Neighbours do not nest.
    let aside = format!(
        "select {}",
        vec!["((1)), case when not false then - 1 end"; 150].join(", ")
    );
    assert_eq!(query(&mut session, &aside), vec!["1|-1"; 150].join("|"));
}

#[test]
fn chains_are_evaluated_from_left_to_right_however_long() {
    let fixture = Fixture::new("create table t (a int); insert into t values (7), (8)");
    let mut session = fixture.session();
    for terms in [1, 14, 15, 16, 17, 31, 32, 33, 300] {
        let sum = format!("select a{} from t order by a", " - 1".repeat(terms));
        let expected = |a: usize| (a as i64 - terms as i64).to_string();
        assert_eq!(
            query(&mut session, &sum),
            format!("{}, {}", expected(7), expected(8))
        );
        let mixed = format!("select (a{}) from t where a = 7", " * 2 - a".repeat(terms));
        assert_eq!(
            query(&mut session, &mixed),
            (14 * (2 - terms as i64) - 7).to_string()
        );
        let text = format!("select a{} from t where a = 7", " || 'x'".repeat(terms));
        assert_eq!(query(&mut session, &text), format!("7{}", "x".repeat(terms)));
        let any = format!("select a from t where a = 9{}", " or a = 8".repeat(terms));
        assert_eq!(query(&mut session, &any), "8");
        let all = format!("select a from t where a > 6{}", " and a <> 8".repeat(terms));
        assert_eq!(query(&mut session, &all), "7");
        let cast = format!("select a{} from t where a = 7", "::int8::int4".repeat(terms));
        assert_eq!(query(&mut session, &cast), "7");
        let is = format!(
            "select a from t where a > 7{} order by a",
            " is true".repeat(terms)
        );
        assert_eq!(query(&mut session, &is), "8");
        let negated = format!(
            "select a from t where a > 7{} order by a",
            " is not true".repeat(terms)
        );
        assert_eq!(
            query(&mut session, &negated),
            if terms % 2 == 0 { "8" } else { "7" }
        );
    }
    let mixed = "select a from t where a = 7 and a > 1 or a = 8 and a < 1 or a = 8 and (a > 1 or a < 1) and not (a = 7 or a = 9)";
    assert_eq!(query(&mut session, mixed), "7, 8");
}

/// A chain of queries is as deep as it is long, and so is a chain of joins: what would be too deep is refused, and the
/// session goes on.
#[test]
fn chains_of_queries_and_of_joins_are_done_or_refused() {
    let fixture = Fixture::new("create table t (a int); insert into t values (7), (8)");
    let mut session = fixture.session();
    for (terms, fits) in [
        (2, true),
        (120, true),
        (190, true),
        (210, false),
        (2_000, false),
        (20_000, false),
    ] {
        for (operator, value) in [
            ("union all", terms + 1),
            ("union", 1),
            ("intersect", 1),
            ("except", 0),
        ] {
            let chain = format!("select 1{}", format!(" {operator} select 1").repeat(terms));
            let counted = run(&mut session, &format!("select count(*) from ({chain}) q"));
            let expected = if fits {
                value.to_string()
            } else {
                "ERROR 54001".to_owned()
            };
            assert_eq!(counted, expected, "{terms} {operator}");
        }
        let joins: String = (0..terms)
            .map(|n| format!(" join t t{n} on t{n}.a = t.a"))
            .collect();
        let counted = run(&mut session, &format!("select count(*) from t{joins}"));
        // A FROM has at most 128 relations.
        assert_eq!(
            counted,
            if terms < 128 { "2" } else { "ERROR 54001" },
            "{terms} joins"
        );
        let explained = run(&mut session, &format!("explain select count(*) from t{joins}"));
        assert_eq!(explained.starts_with("ERROR"), terms >= 128, "{terms} joins");
        let queries = " where exists (select 1 from t u where u.a = t.a)".to_owned()
            + &" and exists (select 1 from t u where u.a = t.a)".repeat(terms.min(2_000));
        let counted = run(&mut session, &format!("select count(*) from t{queries}"));
        assert_eq!(counted, "2", "{terms} queries");
    }
}

/// Common table expressions that use one another make a plan deep, and large, without any nesting in the text.
#[test]
fn common_table_expressions_may_not_grow_without_end() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let with = |count: usize, body: &dyn Fn(usize) -> String| {
        let ctes: Vec<String> = (1..count).map(|n| format!("c{n} as ({})", body(n - 1))).collect();
        format!(
            "with c0 as (select 1 as a), {} select count(*) from c{}",
            ctes.join(", "),
            count - 1
        )
    };
    let one = |before: usize| format!("select * from c{before}");
    assert_eq!(run(&mut session, &with(30, &one)), "1");
    assert_eq!(run(&mut session, &with(1_000, &one)), "ERROR 54001");
    let twice = |before: usize| format!("select x.a from c{before} x join c{before} y on x.a = y.a");
    // Each is made once; without that each of its uses is a copy.
    assert_eq!(run(&mut session, &with(30, &twice)), "1");
    let copied = |count: usize| with(count, &twice).replace(" as (", " as not materialized (");
    assert_eq!(run(&mut session, &copied(6)), "1");
    assert_eq!(run(&mut session, &copied(16)), "ERROR 54001");
    assert_eq!(run(&mut session, &copied(150)), "ERROR 54001");
    assert_eq!(run(&mut session, "select 1"), "1");
}

/// A default and the arguments of EXECUTE belong to no statement that would run a query inside them.
#[test]
fn no_query_stands_where_nothing_would_run_it() {
    let fixture =
        Fixture::new("create table t (a int); insert into t values (7); prepare p (int) as select $1");
    let mut session = fixture.session();
    for sql in [
        "create table u (a int default (select 1))",
        "create table u (a int default (case when exists (select 1) then 1 end))",
        "execute p ((select a from t))",
    ] {
        assert_eq!(run(&mut session, sql), "ERROR 0A000", "{sql}");
    }
}
