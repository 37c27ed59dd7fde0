//! EXPLAIN: the forms of its answer, and what it counts.

use clearway_engine::Session;
use serde_json::Value as Json;

use crate::common::{Fixture, config, query, run};

fn fixture() -> Fixture {
    Fixture::new(
        "create table small (id int primary key, kind int, note text);
         create table \"Big Table\" (id int primary key, small int, v int);
         insert into small select g, g % 3, 'note ' || g from generate_series(1, 30) g;
         insert into \"Big Table\" select g, g % 30 + 1, g from generate_series(1, 3000) g;
         analyze",
    )
}

fn json(answer: &str) -> Json {
    let parsed: Json = serde_json::from_str(answer).expect(answer);
    parsed[0].clone()
}

/// The error of a statement, or that it has none.
fn outcome(session: &mut Session, sql: &str) -> String {
    match run(session, sql) {
        error if error.starts_with("ERROR") => error,
        _ => "done".to_owned(),
    }
}

/// The lines of an answer without numbers that depend on time.
fn counted(answer: &str) -> Vec<String> {
    let lines = answer.split(", ").map(str::to_owned);
    lines.filter(|line| !line.contains("Time: ")).collect()
}

#[test]
fn json_has_the_members_that_tools_read() {
    let fixture = fixture();
    let mut s = fixture.session();
    let sql = "select b.v from \"Big Table\" b left join small s on b.small = s.id where b.v > 10";
    let plan = json(&query(&mut s, &format!("explain (format json) {sql}")));
    let top = &plan["Plan"];
    assert_eq!(top["Node Type"], "Hash Join");
    assert_eq!(top["Join Type"], "Left");
    assert_eq!(top["Hash Cond"], "(b.small = s.id)");
    assert!(top["Total Cost"].as_f64().unwrap() > top["Startup Cost"].as_f64().unwrap());
    assert!(top["Plan Rows"].as_u64().unwrap() > 2_900);
    let inputs = top["Plans"].as_array().unwrap();
    assert_eq!(inputs[0]["Node Type"], "Seq Scan");
    assert_eq!(inputs[0]["Relation Name"], "Big Table");
    assert_eq!(inputs[0]["Alias"], "b");
    assert_eq!(inputs[0]["Parent Relationship"], "Outer");
    assert_eq!(inputs[1]["Node Type"], "Hash");
    assert_eq!(inputs[1]["Parent Relationship"], "Inner");
    assert!(plan.get("Execution Time").is_none());
    let plan = json(&query(&mut s, &format!("explain (analyze, format json) {sql}")));
    assert_eq!(plan["Plan"]["Actual Rows"], 2_990);
    assert_eq!(plan["Plan"]["Plans"][0]["Rows Removed by Filter"], 10);
    assert!(plan["Execution Time"].as_f64().unwrap() >= plan["Plan"]["Actual Total Time"].as_f64().unwrap());
    assert!(plan["Planning Time"].as_f64().is_some());
}

#[test]
fn analyze_counts_rows_and_loops() {
    let fixture = fixture();
    let mut s = fixture.session();
    let options = "analyze, costs off, timing off, summary off";
    query(&mut s, "set enable_hashjoin = off");
    let mut shown = |sql: &str| counted(&query(&mut s, &format!("explain ({options}) {sql}")));
    assert_eq!(
        shown("select * from small where kind = 1"),
        [
            "Seq Scan on small (actual rows=10 loops=1)",
            "  Filter: (kind = 1)",
            "  Rows Removed by Filter: 20",
        ]
    );
    assert_eq!(
        shown("select distinct kind from small order by kind limit 2"),
        [
            "Limit (actual rows=2 loops=1)",
            "  ->  Sort (actual rows=2 loops=1)",
            "        Sort Key: kind",
            "        ->  HashAggregate (actual rows=3 loops=1)",
            "              Group Key: kind",
            "              ->  Seq Scan on small (actual rows=30 loops=1)",
        ]
    );
    assert_eq!(
        shown("select min(v) from \"Big Table\" where small < 3"),
        [
            "Aggregate (actual rows=1 loops=1)",
            "  ->  Seq Scan on \"Big Table\" (actual rows=200 loops=1)",
            "        Filter: (small < 3)",
            "        Rows Removed by Filter: 2800",
        ]
    );
}

#[test]
fn a_statement_that_is_measured_does_its_work() {
    let fixture = fixture();
    let mut s = fixture.session();
    let options = "analyze, costs off, timing off, summary off";
    let explain = |sql: &str| format!("explain ({options}) {sql}");
    assert_eq!(
        counted(&query(
            &mut s,
            &explain("update small set kind = 7 where kind = 1")
        )),
        [
            "Update on small (actual rows=0 loops=1)",
            "  ->  Seq Scan on small (actual rows=10 loops=1)",
            "        Filter: (kind = 1)",
            "        Rows Removed by Filter: 20",
        ]
    );
    assert_eq!(query(&mut s, "select count(*) from small where kind = 7"), "10");
    query(
        &mut s,
        &explain("insert into small select g, 9, 'x' from generate_series(100, 104) g"),
    );
    query(
        &mut s,
        &explain("delete from small using \"Big Table\" b where b.id = small.id and small.id < 3"),
    );
    assert_eq!(query(&mut s, "select count(*) from small"), "33");
    assert_eq!(outcome(&mut s, "explain analyze select 1"), "done");
    query(&mut s, "begin read only");
    assert_eq!(run(&mut s, "explain analyze delete from small"), "ERROR 25006");
    query(&mut s, "rollback");
}

#[test]
fn yaml_and_xml_tell_the_same_as_json() {
    let fixture = fixture();
    let mut s = fixture.session();
    let sql = "select kind, count(*) from small where note <> 'a<b>&' group by kind order by kind";
    let answer = |s: &mut Session, format: &str| {
        query(
            s,
            &format!("explain (costs off, analyze, timing off, summary off, format {format}) {sql}"),
        )
    };
    let yaml = answer(&mut s, "yaml");
    assert!(
        yaml.starts_with("- Plan: \n    Node Type: \"Sort\"\n    Parallel Aware: false\n"),
        "{yaml}"
    );
    assert!(
        yaml.contains("\n    Sort Key: \n      - \"kind\"\n    Plans: \n      - Node Type: \"Aggregate\"\n"),
        "{yaml}"
    );
    assert!(
        yaml.contains("\n            Filter: \"(note <> 'a<b>&'::text)\""),
        "{yaml}"
    );
    assert!(yaml.ends_with("\n  Triggers: "), "{yaml}");
    let xml = answer(&mut s, "xml");
    assert!(xml.starts_with("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    <Plan>\n      <Node-Type>Sort</Node-Type>\n"), "{xml}");
    assert!(
        xml.contains("<Filter>(note &lt;&gt; 'a&lt;b&gt;&amp;'::text)</Filter>"),
        "{xml}"
    );
    assert!(xml.contains("<Actual-Rows>30</Actual-Rows>"), "{xml}");
    assert!(
        xml.ends_with("\n    <Triggers>\n    </Triggers>\n  </Query>\n</explain>"),
        "{xml}"
    );
}

#[test]
fn settings_are_shown_that_are_no_defaults() {
    let fixture = fixture();
    let mut s = fixture.session();
    let lines = |s: &mut Session| query(s, "explain (settings, costs off) select 1");
    assert!(!lines(&mut s).contains("Settings"));
    query(&mut s, "set work_mem = '8MB'");
    query(&mut s, "set enable_hashjoin = off");
    query(&mut s, "set application_name = 'x'");
    let shown = "Settings: enable_hashjoin = 'off', work_mem = '8MB'";
    assert!(lines(&mut s).ends_with(shown), "{}", lines(&mut s));
    let plan = json(&query(&mut s, "explain (settings, format json) select 1"));
    assert_eq!(
        plan["Settings"],
        serde_json::json!({"enable_hashjoin": "off", "work_mem": "8MB"})
    );
    query(&mut s, "reset work_mem; reset enable_hashjoin");
    let plan = json(&query(&mut s, "explain (settings, format json) select 1"));
    assert!(plan.get("Settings").is_none());
}

#[test]
fn options_are_checked() {
    let fixture = fixture();
    let mut s = fixture.session();
    for (options, expected) in [
        ("timing", "ERROR 22023"),
        ("format text, costs 0", "done"),
        ("analyze true, timing false", "done"),
        ("format 'json'", "done"),
        ("format JSON", "done"),
        ("format 'JSON'", "ERROR 22023"),
        ("format", "ERROR 42601"),
        ("format yaml", "done"),
        ("format xml, settings", "done"),
        ("format other", "ERROR 22023"),
        ("buffers", "done"),
        ("wal", "ERROR 22023"),
        ("settings", "done"),
        ("analyze maybe", "ERROR 42601"),
        ("speed", "ERROR 42601"),
    ] {
        assert_eq!(
            outcome(&mut s, &format!("explain ({options}) select 1")),
            expected,
            "{options}"
        );
    }
}

/// The sums of a count of pages in the lines of an answer, by line.
fn pages(answer: &str, name: &str) -> Vec<u64> {
    let lines = answer.split(", ").filter(|line| line.contains("Buffers: "));
    let count = |line: &str| {
        let found = line
            .split([' ', ','])
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.map_or(0, |count| count.parse().unwrap())
    };
    lines.map(count).collect()
}

#[test]
fn buffers_are_counted_for_each_operator() {
    let fixture = Fixture::with_config(
        "create table t (id int primary key, v text);
         insert into t select g, repeat('x', 400) from generate_series(1, 4000) g; analyze t",
        clearway_engine::Config {
            shared_buffers: "1MB".parse().unwrap(),
            autovacuum: false,
            ..config()
        },
    );
    let mut s = fixture.session();
    let size: u64 = query(&mut s, "select pg_relation_size('t') / 8192")
        .parse()
        .unwrap();
    let explain = |sql: &str| format!("explain (analyze, buffers, costs off, timing off, summary off) {sql}");
    let shown = query(&mut s, &explain("select count(v) from t"));
    let (hit, read) = (pages(&shown, "hit"), pages(&shown, "read"));
    assert_eq!(hit.len(), 2, "{shown}");
    for at in 0..2 {
        assert_eq!(hit[at] + read[at], size, "{shown}");
        assert!(read[at] > 0, "the table is larger than the pool: {shown}");
    }

    let point = explain("select v from t where id = 77");
    query(&mut s, &point);
    let shown = query(&mut s, &point);
    assert_eq!(pages(&shown, "read"), [0], "{shown}");
    assert_eq!(pages(&shown, "hit"), [3], "root, leaf and row: {shown}");
    let shown = query(
        &mut s,
        &explain("select count(*) from generate_series(5, 14) g join t on t.id = g"),
    );
    assert!(shown.contains("loops=10"), "{shown}");
    assert!(
        pages(&shown, "hit").iter().all(|hit| (20..=30).contains(hit)),
        "{shown}"
    );

    query(&mut s, "checkpoint");
    let change = explain("update t set v = 'y' where id = 77");
    let shown = query(&mut s, &change);
    assert!(
        pages(&shown, "dirtied").iter().all(|dirtied| *dirtied >= 1),
        "{shown}"
    );
    let shown = query(&mut s, &change);
    assert_eq!(pages(&shown, "dirtied"), [0, 0], "{shown}");

    query(&mut s, "set work_mem = '64kB'");
    let shown = query(
        &mut s,
        &explain("select v from t order by v, id desc offset 3999"),
    );
    let blocks = shown.split("temp ").nth(1).unwrap_or_default();
    assert!(blocks.starts_with("read="), "{shown}");
    assert!(blocks.contains(" written="), "{shown}");
    let shown = query(&mut s, "explain (analyze, costs off) select count(v) from t");
    assert!(!shown.contains("Buffers"), "{shown}");
}

#[test]
fn the_log_is_counted_for_the_statement() {
    let fixture = fixture();
    let mut s = fixture.session();
    query(
        &mut s,
        "create table logged (id int primary key, v int); insert into logged values (1, 1)",
    );
    query(&mut s, "checkpoint");
    let update = |options: &str| format!("explain ({options}, costs off) update logged set v = v + 1");
    let text = |s: &mut _| query(s, &update("analyze, wal, timing off, summary off"));
    let first = text(&mut s);
    let line = |answer: &str| {
        let found = answer
            .split(", ")
            .filter(|line| line.contains("WAL: "))
            .map(str::trim);
        found.map(str::to_owned).collect::<Vec<_>>()
    };
    // One record, and in it the page as a whole, since none was logged since the checkpoint.
    assert_eq!(line(&first).len(), 1, "{first}");
    assert!(
        line(&first)[0].starts_with("WAL: records=1 fpi=1 bytes="),
        "{first}"
    );
    let second = text(&mut s);
    assert!(line(&second)[0].starts_with("WAL: records=1 bytes="), "{second}");
    let shown = json(&query(&mut s, &update("analyze, wal, format json")));
    assert_eq!(
        (&shown["Plan"]["WAL Records"], &shown["Plan"]["WAL FPI"]),
        (&1.into(), &0.into())
    );
    assert!(shown["Plan"]["WAL Bytes"].as_u64().unwrap() > 0, "{shown}");
    assert_eq!(shown["Plan"]["Plans"][0].get("WAL Records"), None, "{shown}");
    // A statement that only reads has no line.
    let read = query(&mut s, "explain (analyze, wal) select * from logged");
    assert!(!read.contains("WAL"), "{read}");
    let plain = json(&query(&mut s, &update("analyze, format json")));
    assert_eq!(plain["Plan"].get("WAL Records"), None, "{plain}");
}

#[test]
fn json_has_the_buffers_of_each_operator_and_of_planning() {
    let fixture = fixture();
    let mut s = fixture.session();
    query(
        &mut s,
        "prepare p(int) as select * from \"Big Table\" where id = $1",
    );
    let shown = json(&query(
        &mut s,
        "explain (analyze, buffers, verbose, format json) execute p(1)",
    ));
    assert_eq!(
        shown["Plan"]["Shared Hit Blocks"], 3,
        "root, leaf and row: {shown}"
    );
    for name in ["Shared Read Blocks", "Local Hit Blocks", "Temp Written Blocks"] {
        assert_eq!(shown["Plan"][name], 0, "{shown}");
    }
    assert_eq!(shown["Planning"]["Shared Hit Blocks"], 0, "{shown}");
    let shown = json(&query(&mut s, "explain (verbose, format json) execute p(1)"));
    for (member, expected) in [
        ("Relation Name", "Big Table"),
        ("Schema", "public"),
        ("Alias", "Big Table"),
        ("Node Type", "Index Scan"),
    ] {
        assert_eq!(shown["Plan"][member], expected, "{shown}");
    }
    assert_eq!(shown["Plan"].get("Shared Hit Blocks"), None, "{shown}");
}
