//! COPY in both directions.

use std::time::Duration;

use clearway_engine::{Collected, Session};

use crate::common::{Fixture, query, run};
use crate::shop;

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

/// Data that go out in the binary format come in again: each kind of value, NULLs, and types of users.
#[test]
fn binary_data_come_back() {
    let fixture = shop();
    let mut s = fixture.session();
    query(&mut s, "create type c as (r int, t text)");
    query(&mut s, "create type mood as enum ('sad', 'ok')");
    let columns = "a int, b text, c float8, d numeric, e date, f timestamptz, g interval, h jsonb, i json, j bytea, \
                   k uuid, l int[], m bool, n char(5), o c, p c[], q mood, r regclass, s \"char\", t time";
    query(&mut s, &format!("create table source ({columns})"));
    query(&mut s, &format!("create table target ({columns})"));
    query(
        &mut s,
        r#"insert into source values (-1, 'x y', 1.5, -3.25, '2020-01-02', '2020-01-02 03:04:05+00', '1 day',
           '{"a":[1]}', '[1, 2]', '\x0102', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,NULL}', true, 'ab', row(1, 'z'),
           array[row(2, null)::c], 'ok', 'source', 'q', '01:02:03')"#,
    );
    query(&mut s, "insert into source default values");
    let mut out = Collected::default();
    s.execute_simple("copy source to stdout (format binary)", &mut out)
        .unwrap();
    assert!(out.copied.starts_with(b"PGCOPY\n\xff\r\n\0"));
    let mut given = Collected {
        copy_input: out.copied,
        ..Collected::default()
    };
    s.execute_simple("copy target from stdin (format binary)", &mut given)
        .unwrap();
    assert_eq!(given.tags, ["COPY 2"]);
    let rows = |s: &mut Session, table| query(s, &format!("select x::text from {table} x order by a"));
    let of_source = rows(&mut s, "source");
    assert_eq!(of_source, rows(&mut s, "target"));
    assert!(of_source.contains("-1"), "{of_source}");
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
    query(&mut s, "begin; truncate big");
    s.execute_simple("copy big from stdin with (freeze on)", &mut out)
        .unwrap();
    query(&mut s, "commit");
    assert_eq!(
        query(&mut s, "select count(*), min(id), max(id) from big"),
        "20000|0|19999"
    );
    assert_eq!(query(&mut s, "select id from big where id = 12345"), "12345");
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

/// The spellings of options that PostgreSQL 15 takes.
#[test]
fn copy_options_may_be_spelled_in_several_ways() {
    let fixture = shop();
    let mut s = fixture.session();
    for options in [
        "to stdout (format 'csv', header)",
        "to stdin with (format csv, header 'on')",
        "to stdout (format \"csv\", header 1, delimiter ',')",
        "to stdout csv header",
        "to stdout with csv header null as ''",
        "to stdout (header true, format 'csv', freeze off, encoding 'utf8')",
    ] {
        let mut out = Collected::default();
        s.execute_simple(
            &format!("copy (select id, name from items where id = 1) {options}"),
            &mut out,
        )
        .unwrap_or_else(|error| panic!("{options}: {error}"));
        assert_eq!(
            String::from_utf8(out.copied).unwrap(),
            "id,name\n1,apple\n",
            "{options}"
        );
    }
    let mut out = Collected {
        copy_input: b"7|grapes\n".to_vec(),
        ..Collected::default()
    };
    s.execute_simple("copy items (id, name) from stdout using delimiters '|'", &mut out)
        .unwrap();
    assert_eq!(query(&mut s, "select name from items where id = 7"), "grapes");
    for (options, code) in [
        ("(format csv, format csv)", "42601"),
        ("(nonsense 1)", "42601"),
        ("(header 'perhaps')", "42601"),
        ("(format 'xml')", "22023"),
        ("(format binary, header)", "0A000"),
        ("(format binary, null 'x')", "42601"),
        ("(format binary, header match)", "0A000"),
    ] {
        assert_eq!(
            run(&mut s, &format!("copy items to stdout {options}")),
            format!("ERROR {code}"),
            "{options}"
        );
    }
}

/// COPY of these lines into a table; what `common::run` shows of it, and the detail of its error.
fn copy_lines(session: &mut Session, into: &str, lines: &str) -> Result<String, String> {
    let mut out = Collected {
        copy_input: lines.as_bytes().to_vec(),
        ..Collected::default()
    };
    match session.execute_simple(&format!("copy {into} from stdin"), &mut out) {
        Ok(()) => Ok(out.tags.join("; ")),
        Err(error) => Err(format!(
            "{}: {}",
            error.sqlstate().as_str(),
            error.detail().unwrap_or_default()
        )),
    }
}

/// Values of the line before must not show through NULLs and columns that the COPY leaves out, with and without a
/// default.
#[test]
fn each_copied_row_has_its_own_values() {
    let fixture = Fixture::new(
        "create table t (id int primary key, a int, b text, c char(4), d int default 7,
                         e text default 'new', f bigint);
         insert into t values (0, 0, 'zero', 'z', 0);
         create index on t (b)",
    );
    let mut s = fixture.session();
    let lines = "1\t11\tone\tabcd\t1\teins\t1\n2\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n\
                 3\t33\tthree\tx\t3\tdrei\t3\n";
    assert_eq!(copy_lines(&mut s, "t", lines).unwrap(), "COPY 3");
    assert_eq!(
        copy_lines(&mut s, "t (b, id)", "four\t4\n\\N\t5\n").unwrap(),
        "COPY 2"
    );
    assert_eq!(
        query(&mut s, "select id, a, b, c, d, e, f from t order by id"),
        "0|0|zero|z   |0|new|, 1|11|one|abcd|1|eins|1, 2||||||, 3|33|three|x   |3|drei|3, 4||four||7|new|, \
         5||||7|new|"
    );
    assert_eq!(query(&mut s, "select id from t where b = 'four'"), "4");
    assert_eq!(
        query(&mut s, "select id from t where b is null order by id"),
        "2, 5"
    );
}

/// The error names the key of the first row, in the order of lines, that violates any of the unique indexes, whichever
/// index has it and however keys are ordered. Nothing of the COPY is seen then, and the table takes rows as before.
#[test]
fn a_copy_reports_the_first_row_that_violates_uniqueness() {
    let fixture = Fixture::new(
        "create table t (id int primary key, name text unique, n numeric unique);
         insert into t values (50, 'fifty', 50)",
    );
    let mut s = fixture.session();
    for (lines, key) in [
        ("9\ti\t9\n50\tx\t1\n", "Key (id)=(50) already exists."),
        (
            "9\ti\t9\n8\tfifty\t1\n50\tx\t2\n",
            "Key (name)=(fifty) already exists.",
        ),
        ("50\tfifty\t50\n", "Key (id)=(50) already exists."),
        ("9\ti\t50.0\n50\tfifty\t1\n", "Key (n)=(50.0) already exists."),
        ("9\tz\t1\n8\tz\t2\n9\ta\t3\n", "Key (name)=(z) already exists."),
        ("9\tz\t1\n8\ty\t2\n9\tz\t3\n", "Key (id)=(9) already exists."),
        (
            "3\tc\t1\n2\tb\t1.00\n1\ta\t1.0\n",
            "Key (n)=(1.00) already exists.",
        ),
    ] {
        assert_eq!(
            copy_lines(&mut s, "t", lines).unwrap_err(),
            format!("23505: {key}"),
            "{lines}"
        );
        assert_eq!(query(&mut s, "select * from t"), "50|fifty|50", "{lines}");
    }
    // NULLs violate nothing.
    let lines = "9\t\\N\t\\N\n8\t\\N\t\\N\n";
    assert_eq!(copy_lines(&mut s, "t", lines).unwrap(), "COPY 2");
    assert_eq!(query(&mut s, "select id from t order by id"), "8, 9, 50");
}

/// In a batch of thousands too, with keys in any order, and with rows that go to places of rows that are gone.
#[test]
fn a_large_copy_finds_its_two_rows_with_one_key() {
    const ROWS: u32 = 5_000;
    let fixture = Fixture::new("create table t (id int primary key, n int unique, filler text)");
    let mut s = fixture.session();
    let line = |id: u32, n: u32| format!("{id}\t{n}\t{}\n", "x".repeat(id as usize % 90));
    let scattered = |id: u32| id.wrapping_mul(2_654_435_761) % 1_000_003;
    let lines: String = (0..ROWS).map(|id| line(id, scattered(id))).collect();
    for (first, second) in [(0, 1), (100, 4_900), (2_100, 3_999), (4_998, 4_999)] {
        let twice = lines.replace(&line(second, scattered(second)), &line(second, scattered(first)));
        assert_eq!(
            copy_lines(&mut s, "t", &twice).unwrap_err(),
            format!("23505: Key (n)=({}) already exists.", scattered(first))
        );
        assert_eq!(query(&mut s, "select count(*) from t"), "0");
        run(&mut s, "vacuum t");
    }
    assert_eq!(copy_lines(&mut s, "t", &lines).unwrap(), format!("COPY {ROWS}"));
    assert_eq!(
        query(&mut s, "select count(*), count(distinct n), sum(id) from t"),
        format!("{ROWS}|{ROWS}|{}", ROWS * (ROWS - 1) / 2)
    );
    for id in [0, 77, 2_345, ROWS - 1] {
        let sql = format!("select id from t where n = {}", scattered(id));
        assert_eq!(query(&mut s, &sql), id.to_string());
    }
}

/// A COPY waits for another transaction that has one of its keys, and goes on or fails as that ends; rows in front of
/// that one which violate uniqueness are an error at once.
#[test]
fn a_copy_waits_for_a_key_that_another_transaction_has() {
    let fixture =
        Fixture::new("create table t (id int primary key, n int unique); insert into t values (1, 1)");
    let mut bob = fixture.session();
    for (end, expected) in [
        ("rollback", Ok("COPY 3")),
        ("commit", Err("23505: Key (n)=(20) already exists.")),
    ] {
        let mut alice = fixture.session();
        run(&mut alice, "begin; insert into t values (2, 20)");
        assert_eq!(
            copy_lines(&mut bob, "t", "7\t1\n8\t20\n").unwrap_err(),
            "23505: Key (n)=(1) already exists."
        );
        let copied = std::thread::scope(|scope| {
            let copying = scope.spawn(|| copy_lines(&mut bob, "t", "9\t9\n8\t20\n7\t7\n"));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!copying.is_finished());
            run(&mut alice, end);
            copying.join().unwrap()
        });
        assert_eq!(copied, expected.map(str::to_owned).map_err(str::to_owned));
        run(&mut bob, "delete from t where id > 1");
    }
}

/// Sessions that copy into one table at once, with and without keys that another one has too: a key gets in once.
#[test]
fn sessions_copy_into_one_table_at_once() {
    const SESSIONS: u32 = 3;
    const ROWS: u32 = 4_000;
    let fixture =
        Fixture::new("create table t (id int primary key, who int, filler text); create index on t (filler)");
    std::thread::scope(|scope| {
        for who in 0..SESSIONS {
            let mut session = fixture.session();
            scope.spawn(move || {
                let row = |row: u32| format!("{}\t{who}\t{}\n", row * SESSIONS + who, row * 7 % 1_000);
                let lines: String = (0..ROWS).map(row).collect();
                assert_eq!(
                    copy_lines(&mut session, "t", &lines).unwrap(),
                    format!("COPY {ROWS}")
                );
                // All want these keys, each in transactions of its own.
                let shared = SESSIONS * ROWS;
                let lines: String = (shared..shared + 50)
                    .map(|id| format!("{id}\t{who}\ts\n"))
                    .collect();
                if let Err(error) = copy_lines(&mut session, "t", &lines) {
                    assert!(error.starts_with("23505: "), "{error}");
                }
            });
        }
    });
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "select count(*), count(distinct id) from t"),
        format!("{0}|{0}", SESSIONS * ROWS + 50)
    );
    assert_eq!(
        query(&mut s, "select count(distinct who) from t where filler = 's'"),
        "1"
    );
    let found = query(&mut s, "select count(*) from t where filler = '7'");
    assert_eq!(found, (SESSIONS * ROWS / 1_000).to_string());
}

#[test]
fn the_first_line_holds_the_names_of_the_columns() {
    let fixture = Fixture::new("create table t (a int, b text, c int)");
    let mut s = fixture.session();
    let mut copy = |sql: &str, data: &str| {
        let mut out = Collected {
            copy_input: data.as_bytes().to_vec(),
            ..Collected::default()
        };
        match s.execute_simple(sql, &mut out) {
            Ok(()) => out.tags.join(","),
            Err(error) => format!("{} {}", error.sqlstate().as_str(), error.message()),
        }
    };
    let all = "copy t from stdin with (header match)";
    assert_eq!(copy(all, "a\tb\tc\n1\tx\t2\n"), "COPY 1");
    assert_eq!(
        copy(
            "copy t (c, a) from stdin with (format csv, header match)",
            "c,a\n1,2\n"
        ),
        "COPY 1"
    );
    for (data, message) in [
        (
            "a\tb\n1\tx\n",
            "22P04 wrong number of fields in header line: got 2, expected 3",
        ),
        (
            "a\tb\tC\n",
            "22P04 column name mismatch in header line field 3: got \"C\", expected \"c\"",
        ),
        (
            "a\t\\N\tc\n",
            "22P04 column name mismatch in header line field 2: got null value (\"\\N\"), expected \"b\"",
        ),
    ] {
        assert_eq!(copy(all, data), message);
    }
    assert_eq!(
        copy("copy t to stdout with (header match)", ""),
        "0A000 cannot use \"match\" with HEADER in COPY TO"
    );
    assert_eq!(query(&mut s, "select count(*) from t"), "2");
}

/// A long value goes out in pieces: the same bytes as those of a short one with the same characters, as many times.
#[test]
fn long_values_go_out_as_short_ones_do() {
    const TIMES: usize = 9_000;
    let fixture = shop();
    let mut s = fixture.session();
    query(
        &mut s,
        "create table short (n int, a text, b bytea, j json); create table long (n int, a text, b bytea, j json)",
    );
    for (table, times) in [("short", 1), ("long", TIMES)] {
        query(
            &mut s,
            &format!(
                "insert into {table} select 1, repeat(e'a\"b\\\\c\td\ne,f', {times}), \
                 repeat('\\001abcdefg', {times})::bytea, ('[' || repeat('12345678, ', {times}) || '2]')::json; \
                 insert into {table} select 2, repeat('plain', {times}), null, null"
            ),
        );
    }
    let copied = |s: &mut Session, table: &str, options: &str| {
        let mut out = Collected::default();
        s.execute_simple(
            &format!("copy (select * from {table} order by n) to stdout {options}"),
            &mut out,
        )
        .unwrap();
        String::from_utf8_lossy(&out.copied).into_owned()
    };
    // Each pattern as it is written once, and as it is written often.
    for (options, patterns) in [
        (
            "",
            &["a\"b\\\\c\\td\\ne,f", "plain", "12345678, ", "0161626364656667"][..],
        ),
        (
            "(format csv)",
            &["a\"\"b\\c\td\ne,f", "plain", "12345678, ", "0161626364656667"],
        ),
        (
            "(format csv, escape '!')",
            &["a!\"b\\c\td\ne,f", "plain", "12345678, ", "0161626364656667"],
        ),
        (
            "(format csv, force_quote *, delimiter ';')",
            &["a\"\"b\\c\td\ne,f", "plain", "12345678, ", "0161626364656667"],
        ),
    ] {
        let (short, long) = (copied(&mut s, "short", options), copied(&mut s, "long", options));
        let mut expected = short.clone();
        for pattern in patterns {
            assert_eq!(short.matches(pattern).count(), 1, "{pattern:?} in {short:?}");
            expected = expected.replace(pattern, &pattern.repeat(TIMES));
        }
        assert!(long == expected, "{options}: {:?}", &long[..200]);
    }
    // What has gone out comes in again, in each format.
    for options in ["", "(format csv)", "(format binary)"] {
        let mut out = Collected::default();
        s.execute_simple(&format!("copy long to stdout {options}"), &mut out)
            .unwrap();
        query(&mut s, "create table again (like long)");
        let mut data = Collected {
            copy_input: out.copied,
            ..Collected::default()
        };
        s.execute_simple(&format!("copy again from stdin {options}"), &mut data)
            .unwrap();
        let differing = "select count(*) from long l join again g using (n) \
                         where (l.a, l.b, l.j::text) is distinct from (g.a, g.b, g.j::text)";
        assert_eq!(query(&mut s, differing), "0");
        assert_eq!(query(&mut s, "select count(*) from again"), "2");
        query(&mut s, "drop table again");
    }
}
