//! Rows about as long as a page, and values that are stored apart: what random changes leave is what a model says, by a scan
//! and by each index, before and after vacuum, and in a database that is opened again.

use std::collections::BTreeMap;

use crate::common::{Fixture, query, run};

/// The most bytes of a row.
const ROW_MAX: usize = 8_124;

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// A length: that of a row which fills its page, short, or of a value that is stored apart.
    fn length(&mut self) -> usize {
        match self.below(4) {
            0 => self.below(40),
            // In front of the text: the bitmap, two numbers, and two lengths of two bytes and of one.
            1 => ROW_MAX - 12 - self.below(4),
            2 => 2_000 + self.below(6_000),
            _ => 8_200 + self.below(30_000),
        }
    }
}

/// A row without its `id`: `k`, and how often `v` and `w` repeat a digit.
type Row = (usize, usize, usize);

fn shown(model: &BTreeMap<usize, Row>, keep: impl Fn(&Row) -> bool) -> String {
    let rows = model.iter().filter(|(_, row)| keep(row));
    let rows = rows.map(|(id, (k, v, w))| format!("{id}|{k}|{v}|{w}"));
    rows.collect::<Vec<_>>().join(", ")
}

/// A value is the last digit of its row's `id`, so many times: its length comes back if it is that.
const COLUMNS: &str = "id, k, case when v = repeat((id % 10)::text, length(v)) then length(v) end, \
                       case when w = repeat((id % 10)::text, length(w)) then length(w) end";

#[track_caller]
fn assert_is(fixture: &Fixture, model: &BTreeMap<usize, Row>) {
    let mut s = fixture.session();
    let all = format!("select {COLUMNS} from wide order by id");
    assert_eq!(query(&mut s, &all), shown(model, |_| true));
    query(&mut s, "set enable_seqscan = off");
    for k in 0..8 {
        let sql = format!("select {COLUMNS} from wide where k = {k} order by id");
        assert_eq!(query(&mut s, &sql), shown(model, |row| row.0 == k), "k = {k}");
        let sql = format!("select {COLUMNS} from wide where length(v) % 8 = {k} order by id");
        assert_eq!(
            query(&mut s, &sql),
            shown(model, |row| row.1 % 8 == k),
            "length {k}"
        );
    }
    for (id, row) in model {
        let sql = format!("select {COLUMNS} from wide where id = {id}");
        assert_eq!(query(&mut s, &sql), format!("{id}|{}|{}|{}", row.0, row.1, row.2));
    }
    let report = fixture.engine.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// One change of one row, in the table and in the model.
fn change(random: &mut Random, model: &mut BTreeMap<usize, Row>, s: &mut clearway_engine::Session) {
    let id = random.below(24);
    let (k, v) = (random.below(8), random.length());
    let text = |length: usize| format!("repeat('{}', {length})", id % 10);
    let Some(row) = model.get_mut(&id) else {
        let w = random.below(3);
        let sql = format!("insert into wide values ({id}, {k}, {}, {})", text(v), text(w));
        assert_eq!(run(s, &sql), "INSERT 0 1", "{sql}");
        model.insert(id, (k, v, w));
        return;
    };
    let sql = match random.below(6) {
        0 => {
            model.remove(&id);
            format!("delete from wide where id = {id}")
        }
        1 => {
            row.0 = k;
            format!("update wide set k = {k} where id = {id}")
        }
        // Of a column that no index reads: in its page if there is room.
        2 => {
            row.2 = random.below(3);
            format!("update wide set w = {} where id = {id}", text(row.2))
        }
        3 => {
            (row.0, row.1) = (k, v);
            format!("update wide set k = {k}, v = {} where id = {id}", text(v))
        }
        _ => {
            row.1 = v;
            format!("update wide set v = {} where id = {id}", text(v))
        }
    };
    assert!(run(s, &sql).ends_with(" 1"), "{sql}");
}

#[test]
fn rows_as_long_as_a_page_move_and_are_found() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(0x5EED_2026);
    println!("SEED={seed}");
    let mut random = Random(seed | 1);
    let mut fixture = Fixture::new(
        "create table wide (id int primary key, k int, v text, w text) with (toast_tuple_target = 8124);
         alter table wide alter v set storage external;
         create index wide_k on wide (k);
         create index wide_length on wide ((length(v) % 8))",
    );
    let mut model = BTreeMap::new();
    for turn in 0..8 {
        let mut s = fixture.session();
        for _ in 0..40 {
            match random.below(6) {
                // Taken back, as a whole or in part.
                0 => {
                    query(&mut s, "begin");
                    change(&mut random, &mut model.clone(), &mut s);
                    query(&mut s, "rollback");
                }
                1 => {
                    query(&mut s, "begin");
                    change(&mut random, &mut model, &mut s);
                    query(&mut s, "savepoint s");
                    change(&mut random, &mut model.clone(), &mut s);
                    query(&mut s, "rollback to s");
                    change(&mut random, &mut model, &mut s);
                    query(&mut s, "commit");
                }
                _ => change(&mut random, &mut model, &mut s),
            }
        }
        drop(s);
        assert_is(&fixture, &model);
        query(&mut fixture.session(), "vacuum wide");
        assert_is(&fixture, &model);
        if turn % 4 == 3 {
            fixture = fixture.restarted();
            assert_is(&fixture, &model);
        }
    }
    // 24 rows, some of them of a page: what was there before is used again.
    let pages = query(&mut fixture.session(), "select pg_relation_size('wide') / 8192");
    assert!(pages.parse::<usize>().unwrap() < 80, "{pages} pages");
}

/// A row has 8,124 bytes at most, also after an UPDATE, and one that has more leaves all as it was.
#[test]
fn the_longest_row_has_8124_bytes() {
    let fixture = Fixture::new(
        "create table one (id int primary key, v text);
         alter table one alter v set storage plain;
         create index on one (left(v, 4))",
    );
    let mut s = fixture.session();
    // In front of the text: the bitmap, the number, and the text's length in two bytes.
    let longest = ROW_MAX - 7;
    let insert = |id: usize, length: usize| format!("insert into one values ({id}, repeat('x', {length}))");
    assert_eq!(run(&mut s, &insert(1, longest)), "INSERT 0 1");
    assert_eq!(run(&mut s, &insert(2, longest + 1)), "ERROR 54000");
    assert_eq!(run(&mut s, "update one set v = v || 'x'"), "ERROR 54000");
    assert_eq!(
        run(&mut s, "update one set v = 'yyyy' || left(v, -4)"),
        "UPDATE 1"
    );
    assert_eq!(run(&mut s, "update one set id = id + 1"), "UPDATE 1");
    query(&mut s, "vacuum one");
    query(&mut s, "set enable_seqscan = off");
    for sql in [
        "select id, length(v) from one where id = 2",
        "select id, length(v) from one where left(v, 4) = 'yyyy'",
    ] {
        assert_eq!(query(&mut s, sql), format!("2|{longest}"));
    }
    assert_eq!(
        query(&mut s, "select count(*) from one where left(v, 4) = 'xxxx'"),
        "0"
    );
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}
