//! COPY in both directions.

use clearway_engine::Collected;

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
        ("(format 'binary')", "0A000"),
        ("(format csv, header match)", "0A000"),
    ] {
        assert_eq!(
            run(&mut s, &format!("copy items to stdout {options}")),
            format!("ERROR {code}"),
            "{options}"
        );
    }
}
