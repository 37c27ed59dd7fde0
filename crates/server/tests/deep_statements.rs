//! Statements that nest deeply or chain operators by the hundred thousand, against a server with sessions' ordinary
//! stacks.
//!
//! One client with such a statement used to end the server: `where x = 1 or x = 2 or …` of 720 terms was enough. Every
//! construct of the grammar that recurses is here, in one of two lists: chains work, nesting beyond the limit is 54001.
//! A session's thread that overflows ends the process, and so this test.

mod support;

use support::{Raw, TestServer, bind, execute, parse, sync};

/// Operators in a chain.
const TERMS: usize = 100_000;

/// Nested levels; more than the limit.
const NESTED: usize = 5_000;

fn outcome(client: &mut Raw, sql: &str) -> String {
    let replies = client.query(sql);
    if let Some(error) = replies.iter().find(|reply| reply.kind == b'E') {
        return error.sqlstate();
    }
    let row = replies.iter().find(|reply| reply.kind == b'D');
    match row {
        Some(row) => row.values()[0].clone().unwrap_or_else(|| "null".to_owned()),
        None => replies
            .last()
            .map_or_else(String::new, |reply| reply.tag().to_owned()),
    }
}

fn chain(head: &str, link: &str, count: usize) -> String {
    format!("{head}{}", link.repeat(count))
}

/// A server with a table of one row: x = 1, s = 'a', b = true.
fn server() -> (TestServer, Raw) {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (x bigint, s text, b boolean); insert into t values (1, 'a', true)");
    (server, client)
}

#[test]
fn chains_of_a_hundred_thousand_operators_work() {
    let (server, mut client) = server();
    let ors: String = (0..TERMS).map(|term| format!(" or x = {}", term + 2)).collect();
    let cases: Vec<(String, &str)> = vec![
        (format!("select x from t where x = 0{ors}"), "null"),
        (
            chain("select count(*) from t where x = 1", " and x < 5", TERMS),
            "1",
        ),
        (chain("select 1", "+1", TERMS), "100001"),
        (chain("select x", "+1", TERMS) + " from t", "100001"),
        (chain("select x", "-x", TERMS) + " from t", "-99999"),
        (chain("select x", "*1", TERMS) + " from t", "1"),
        (chain("select x", "/1", TERMS) + " from t", "1"),
        (chain("select x", "%2", TERMS) + " from t", "1"),
        (chain("select x", "^1", TERMS) + " from t", "1"),
        (chain("select x", "::int", TERMS) + " from t", "1"),
        (chain("select x", "::int::bigint", TERMS / 2) + " from t", "1"),
        (chain("select s", "||''", TERMS) + " from t", "a"),
        (chain("select b", " is null", TERMS) + " from t", "f"),
        (chain("select b", " is not true", TERMS) + " from t", "t"),
        (
            chain("select b", " is distinct from true", TERMS) + " from t",
            "t",
        ),
        (chain("select b", " in (true)", TERMS) + " from t", "t"),
        (chain("select x = 1", " = true", TERMS) + " from t", "t"),
        (
            chain("select b", " between false and true", TERMS) + " from t",
            "t",
        ),
        (
            chain("select count(*) from t where s like 'a'", " or s like 'b'", TERMS),
            "1",
        ),
        (
            chain("select count(*) from t where b", " and (x = 1 or x = 2)", TERMS),
            "1",
        ),
        (
            chain("select case when b then 1", " when b then 2", TERMS) + " end from t",
            "1",
        ),
        (
            chain("select count(*) from t where x in (1", ",1", TERMS) + ")",
            "1",
        ),
        (
            chain("create table d (x int default 1", "+1", 1_900) + ")",
            "CREATE TABLE",
        ),
        (
            chain("create table e (x float default random()", "+1", 1_900) + ")",
            "CREATE TABLE",
        ),
        ("insert into e select 1 from t; select x from d".to_owned(), ""),
        (
            "insert into e (x) values (default); select x > 1900 from e order by x desc".to_owned(),
            "t",
        ),
        (
            chain("insert into t (x) values (1", "+1", TERMS) + ")",
            "INSERT 0 1",
        ),
        (
            chain("update t set x = x", "+1", TERMS) + " where x = 1",
            "UPDATE 1",
        ),
        (
            chain("delete from t where x = -1", " or x = -2", TERMS),
            "DELETE 0",
        ),
        (chain("prepare p as select x", "+1", TERMS) + " from t", "PREPARE"),
        ("execute p".to_owned(), "200001"),
        ("prepare q(bigint) as select $1".to_owned(), "PREPARE"),
        (chain("execute q (1", "+1", TERMS) + ")", "100001"),
    ];
    let mut failed = Vec::new();
    for (sql, wanted) in &cases {
        let shown = &sql[..sql.len().min(60)];
        let found = outcome(&mut client, sql);
        let wanted = if *wanted == "null" { "SELECT 0" } else { wanted };
        if !wanted.is_empty() && found != wanted {
            failed.push(format!("{shown}: {found}, not {wanted}"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    drop(client);
    assert_eq!(server.client().value("select 1"), "1");
}

#[test]
fn other_chains_are_done_or_refused_by_a_code_that_says_why() {
    let (server, mut client) = server();
    let mut failed = Vec::new();
    for (sql, wanted) in [
        (chain("select 1", " union select 1", TERMS), "54001"),
        (chain("select 1, 1", " union all select 1, 1", TERMS), "54001"),
        (chain("select 1", " except select 1", TERMS), "54001"),
        (
            chain("select * from (select 1", " union select 1", TERMS) + ") q",
            "54001",
        ),
        (
            chain("create view v as select 1", " union select 1", TERMS),
            "54001",
        ),
        (chain("select x", "[1]", TERMS) + " from t", "42804"),
        (chain("select 1::int", "[]", TERMS), "42846"),
        (chain("select cast(1 as int", "[]", TERMS) + ")", "42846"),
        (chain("create table a (x int", "[]", TERMS) + ")", "CREATE TABLE"),
        (
            chain("select x", " at time zone 'UTC'", TERMS) + " from t",
            "42883",
        ),
        (chain("select x", "->1", TERMS) + " from t", "42883"),
        (chain("select x", "&1", TERMS) + " from t", "1"),
        (chain("select * from t", " join t on true", TERMS), "54001"),
        (chain("select * from t", ", t", TERMS), "54001"),
        (
            chain("select s", " similar to 'a'", TERMS / 2) + " from t",
            "42883",
        ),
        (
            chain("select x = any('{1}')", " = any('{1}')", TERMS / 2) + " from t",
            "t",
        ),
    ] {
        let found = outcome(&mut client, &sql);
        if found != wanted {
            failed.push(format!("{}: {found}", &sql[..sql.len().min(60)]));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(server.client().value("select 1"), "1");
}

#[test]
fn nesting_beyond_the_limit_is_54001() {
    let (server, mut client) = server();
    let around = |head: &str, open: &str, inner: &str, close: &str, tail: &str| {
        format!(
            "{head}{}{inner}{}{tail}",
            open.repeat(NESTED),
            close.repeat(NESTED)
        )
    };
    let mut failed = Vec::new();
    for sql in [
        around("select ", "(", "1", ")", ""),
        around("select ", "not ", "true", "", ""),
        around("select ", "- ", "1", "", ""),
        around("select ", "+ ", "1", "", ""),
        around("select ", "abs(", "1", ")", ""),
        around("select ", "coalesce(1, ", "1", ")", ""),
        around("select ", "cast(", "1", " as int)", ""),
        around("select ", "case when ", "true", " then 1 end", ""),
        around("select ", "case 1 when 1 then ", "1", " end", ""),
        around("select ", "case ", "1", " when 1 then 1 end", ""),
        // `case` may be a column as well, so the parser takes its limit for a reason to read it as one.
        around("select case when ", "(", "true", ")", " then 1 end"),
        around("select x + case x when ", "(", "1", ")", " then 1 end from t"),
        around("select 1 in (", "1 in (", "1", ")", ")"),
        around("select ", "1 + (", "1", ")", ""),
        around("select ", "true and (", "true", ")", ""),
        around("select ", "array[", "1", "]", ""),
        around("select array", "[", "1", "]", ""),
        around("select ", "interval ", "'1 day'", "", ""),
        around("select ", "row(", "1", ")", ""),
        around("select ", "exists (select ", "1", ")", ""),
        around("select ", "(select ", "1", ")", ""),
        around("", "(", "select 1", ")", ""),
        around("", "select * from (", "select 1", ") q", ""),
        around("select * from ", "(", "t", ")", ""),
        around("select * from ", "(t join ", "t", " on true)", ""),
        around("", "with q as (", "select 1", ") select 1", ""),
        around("insert into t (x) values (", "(", "1", ")", ")"),
        around("create table c (x int default ", "(", "1", ")", ")"),
        around("create table c (x int check (", "(", "true", ")", "))"),
        around("select extract(year from ", "(", "now()", ")", ")"),
        around("select substring(", "(", "'a'", ")", " from 1)"),
        around("select trim(", "(", "'a'", ")", ")"),
        around("select 1 order by ", "(", "1", ")", ""),
        around("select 1 limit ", "(", "1", ")", ""),
        around("execute p (", "(", "1", ")", ")"),
        around("explain select ", "(", "1", ")", ""),
        around("copy (", "(", "select 1", ")", ") to stdout"),
        chain("select 1", "+1", 600_000),
        chain("select 1", " union select 1", 400_000),
        chain("select 1 from a", " join b", 100_000),
        chain("select 1 from a", " left join b", 300),
    ] {
        let found = outcome(&mut client, &sql);
        if found != "54001" {
            failed.push(format!("{}: {found}", &sql[..sql.len().min(60)]));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    let error = client.query(&around("select ", "(", "1", ")", ""));
    let error = error.iter().find(|reply| reply.kind == b'E').unwrap();
    assert_eq!(error.field(b'M').unwrap(), "stack depth limit exceeded");
    assert!(error.field(b'H').is_some());
    assert_eq!(server.client().value("select 1"), "1");
}

/// A statement that nests and chains at once is as deep as both together: 90 levels of 60 operators.
#[test]
fn nested_chains_are_evaluated_copied_and_dropped() {
    let (server, mut client) = server();
    let (levels, terms) = (90, 60);
    let nested = format!(
        "select {}x{}::bigint from t",
        "(".repeat(levels),
        format!("{})", "+1".repeat(terms)).repeat(levels)
    );
    let wanted = (1 + levels * terms).to_string();
    assert_eq!(outcome(&mut client, &nested), wanted);
    // Twice more, so that the plan is kept, found, and dropped with the session.
    assert_eq!(outcome(&mut client, &nested), wanted);
    assert_eq!(outcome(&mut client, &format!("prepare n as {nested}")), "PREPARE");
    assert_eq!(outcome(&mut client, "execute n"), wanted);
    // A new definition has the plan made anew.
    client.rows("create table other (x int)");
    assert_eq!(outcome(&mut client, "execute n"), wanted);
    client.send(&[parse("", &nested), bind("", "", &[]), execute("", 0), sync()].concat());
    let row = client.until_ready().into_iter().find(|reply| reply.kind == b'D');
    assert_eq!(row.unwrap().values()[0].as_deref(), Some(wanted.as_str()));
    // Operands that are used twice: copies would double at each level.
    let cases = format!(
        "select {}x{} from t",
        "case ".repeat(90),
        " when 1 then 1 when 2 then 2 end".repeat(90)
    );
    assert_eq!(outcome(&mut client, &cases), "1");
    drop(client);
    assert_eq!(server.client().value("select 1"), "1");
}

/// EXPLAIN, PREPARE and COPY hold a query and not one another, as in PostgreSQL.
#[test]
fn statements_that_hold_statements_do_not_nest() {
    let (server, mut client) = server();
    assert_eq!(outcome(&mut client, "prepare p as execute p"), "42601");
    assert_eq!(outcome(&mut client, "execute p"), "26000");
    assert_eq!(outcome(&mut client, &chain("", "explain ", NESTED)), "42601");
    let explained = chain("", "explain ", NESTED) + "select 1";
    assert_eq!(outcome(&mut client, &explained), "42601");
    let copies = format!(
        "{}select 1{}",
        "copy (".repeat(NESTED),
        ") to stdout".repeat(NESTED)
    );
    assert_eq!(outcome(&mut client, &copies), "42601");
    let prepares = chain("", "prepare a as ", NESTED) + "select 1";
    assert_eq!(outcome(&mut client, &prepares), "42601");
    assert_eq!(server.client().value("select 1"), "1");
}
