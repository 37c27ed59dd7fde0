//! Merge joins: the rows of a hash join, whatever order the sides come in, and the plans that have them.

use clearway_engine::Session;

use crate::common::{Fixture, query};

/// Two tables with equal keys, NULLs among them, and values without a partner on either side.
fn two() -> Fixture {
    Fixture::new(
        "create table l (id int primary key, a int, b int, t text);
         create table r (id bigint primary key, a int, b int, t text);
         insert into l select g, nullif(g % 20, 7), nullif(g % 3, 1), 'x' || g % 15 from generate_series(1, 90) g;
         insert into r select g * 2, nullif(g % 23 + 4, 9), nullif(g % 4, 2), 'x' || g % 17 from generate_series(1, 60) g;
         create index l_ab on l (a, b);
         create index r_ab on r (a, b);
         create index r_t on r (t);
         analyze",
    )
}

/// FROM and WHERE of joins of each kind; %s: the kind of an outer join.
const JOINS: &[&str] = &[
    "l %s join r on l.id = r.id",
    "l %s join r on l.a = r.a",
    "l %s join r on l.a = r.a and l.b = r.b",
    "l %s join r on l.b = r.b and l.a = r.a",
    "l %s join r on l.t = r.t",
    "l %s join r on l.b = r.b and l.t < r.t",
    "l %s join r on l.a = r.a and l.t = r.t",
    "l %s join r on l.a = r.a and l.id < r.id",
    "l %s join r on l.a + 1 = r.a and l.b <> r.b",
    "l %s join (select * from r where b = 3) r on l.a = r.a",
    "(select * from l where false) l %s join r on l.a = r.a",
    "l %s join (select * from r where id > 5000) r on l.a = r.a",
    "l %s join r on l.id = r.id join l m on m.id = l.id",
    // A merge whose left rows have several partners is in order for the next one.
    "r %s join (l m right join l on m.a = l.a) on l.a = r.a and l.b <> r.b",
    "(l m right join l on m.a = l.a) %s join r on l.a = r.a and l.b <> r.b",
];

/// Conditions that become semi and anti joins.
const PARTNERS: &[&str] = &[
    "exists (select 1 from r where r.a = l.a)",
    "exists (select 1 from r where r.a = l.a and r.b = l.b and r.id > l.id)",
    "not exists (select 1 from r where r.a = l.a)",
    "not exists (select 1 from r where r.a = l.a and r.b = l.b)",
    "not exists (select 1 from r where r.t = l.t and r.id < l.id)",
    "l.id in (select id from r)",
];

fn statements() -> Vec<String> {
    let columns = "l.id, l.a, l.b, l.t, r.id, r.a, r.b, r.t";
    let mut all = Vec::new();
    for join in JOINS {
        for kind in ["inner", "left", "right", "full"] {
            let from = join.replace("%s", kind);
            all.push(format!("select {columns} from {from} order by 1, 5, 2, 6"));
        }
    }
    all.extend(
        PARTNERS
            .iter()
            .map(|condition| format!("select * from l where {condition} order by 1")),
    );
    all
}

fn set(session: &mut Session, names: &[&str], value: &str) {
    for name in names {
        query(session, &format!("set {name} = {value}"));
    }
}

#[test]
fn merge_joins_have_the_rows_of_hash_joins() {
    let fixture = two();
    let mut s = fixture.session();
    for sql in statements() {
        set(&mut s, &["enable_mergejoin"], "off");
        let expected = query(&mut s, &sql);
        set(&mut s, &["enable_mergejoin"], "on");
        set(&mut s, &["enable_hashjoin", "enable_nestloop"], "off");
        // Sorted, read by indexes, and within a memory that no side fits in.
        for (name, value) in [
            ("enable_indexscan", "off"),
            ("enable_sort", "off"),
            ("work_mem", "'64kB'"),
        ] {
            set(&mut s, &[name], value);
            // Without an index of the keys a hash table is wanted no less than a sort.
            let plan = query(&mut s, &format!("explain {sql}"));
            assert!(name == "enable_sort" || plan.contains("Merge"), "{name}: {sql}");
            assert_eq!(query(&mut s, &sql), expected, "{name}: {sql}");
            query(&mut s, &format!("reset {name}"));
        }
        set(&mut s, &["enable_hashjoin", "enable_nestloop"], "on");
    }
}

/// The lines of a plan without costs, cut at the ends.
fn plan(session: &mut Session, sql: &str) -> Vec<String> {
    let shown = query(session, &format!("explain (costs off) {sql}"));
    shown.split(", ").map(|line| line.trim().to_owned()).collect()
}

#[test]
fn sides_that_are_in_order_are_not_sorted() {
    let fixture = two();
    let mut s = fixture.session();
    set(
        &mut s,
        &["enable_hashjoin", "enable_nestloop", "enable_seqscan"],
        "off",
    );
    assert_eq!(
        plan(&mut s, "select 1 from l full join r on l.id = r.id"),
        [
            "Merge Full Join",
            "Merge Cond: (l.id = r.id)",
            "->  Index Scan using l_pkey on l",
            "->  Index Scan using r_pkey on r",
        ]
    );
    // The order of the index decides the order of the keys.
    assert_eq!(
        plan(&mut s, "select 1 from l left join r on l.b = r.b and l.a = r.a"),
        [
            "Merge Left Join",
            "Merge Cond: ((l.a = r.a) AND (l.b = r.b))",
            "->  Index Scan using l_ab on l",
            "->  Index Scan using r_ab on r",
        ]
    );
    // A merge has the order of its left side.
    assert_eq!(
        plan(
            &mut s,
            "select 1 from l left join r on l.id = r.id left join r q on q.id = l.id"
        ),
        [
            "Merge Left Join",
            "Merge Cond: (l.id = q.id)",
            "->  Merge Left Join",
            "Merge Cond: (l.id = r.id)",
            "->  Index Scan using l_pkey on l",
            "->  Index Scan using r_pkey on r",
            "->  Index Scan using r_pkey on r q",
        ]
    );
    set(&mut s, &["enable_seqscan"], "on");
    set(&mut s, &["enable_indexscan"], "off");
    assert_eq!(
        plan(&mut s, "select 1 from l left join r on l.t = r.t where l.id > 3"),
        [
            "Merge Left Join",
            "Merge Cond: (l.t = r.t)",
            "->  Sort",
            "Sort Key: l.t",
            "->  Seq Scan on l",
            "Filter: (id > 3)",
            "->  Sort",
            "Sort Key: r.t",
            "->  Seq Scan on r",
        ]
    );
}

#[test]
fn a_merge_of_large_sides_in_order_is_chosen_by_its_cost() {
    let fixture = Fixture::new(
        "create table a (id int primary key, note text);
         create table b (id int primary key, note text);
         insert into a select g, repeat('a', 40) from generate_series(1, 4000) g;
         insert into b select g, repeat('b', 40) from generate_series(1, 4000) g;
         analyze",
    );
    let mut s = fixture.session();
    let sql = "select count(*), max(length(a.note || b.note)) from a join b on a.id = b.id";
    assert!(plan(&mut s, sql).contains(&"->  Hash Join".to_owned()));
    set(&mut s, &["work_mem"], "'64kB'");
    let shown = plan(&mut s, sql);
    assert!(shown.contains(&"->  Merge Join".to_owned()), "{shown:?}");
    assert!(!shown.iter().any(|line| line.contains("Sort")), "{shown:?}");
    assert_eq!(query(&mut s, sql), "4000|80");
    // A hash table of few rows costs less than reading all of an index.
    assert!(
        plan(&mut s, &format!("{sql} where b.id < 40"))
            .iter()
            .all(|line| !line.contains("Merge"))
    );
    let measured = query(
        &mut s,
        &format!("explain (analyze, costs off, timing off, summary off) {sql}"),
    );
    assert!(
        measured.contains("Merge Join (actual rows=4000 loops=1)"),
        "{measured}"
    );
}
