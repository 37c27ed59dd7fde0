//! Statements and their answers, by subject: the tables in `answers/`, whose answers are PostgreSQL 15's
//! (`scripts/e2e/run Answers` asks it for each).
//!
//! ```text
//! select 7 / 2, null              => 3|NULL
//! select 1 / 0                    => ERROR 22012
//! types: select 1 + 1.5           => numeric
//! names: select 1 as a, lower('')  => a|lower
//! copy t from stdin < 1\ta\n      => COPY 1
//! copy t to stdout                => 1\ta\n
//! ```
//!
//! Rows are joined by `, `, their values by `|`. A value that this would hide is in quotes. A table begins with an empty
//! database and one session; lines that begin with `#` are remarks.

mod common;

use clearway_engine::{Collected, Session, Value};
use common::{Fixture, show_value};

/// A value as the tables show it.
fn shown(value: &Value) -> String {
    if value.is_null() {
        return "NULL".to_owned();
    }
    let text = show_value(value);
    if text.is_empty() || text.trim() != text || text.contains(['|', ',', '\'', '\n', '\r', '\t', '\\']) {
        format!("'{}'", escaped(&text))
    } else {
        text
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('\n', r"\n")
        .replace('\r', r"\r")
        .replace('\t', r"\t")
}

fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut meant = String::new();
    while let Some(character) = characters.next() {
        meant.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                _ => '\\',
            },
            other => other,
        });
    }
    meant
}

/// The answer to a line's statement.
fn answer(session: &mut Session, line: &str) -> String {
    let (what, line) = match line.split_once(": ") {
        Some((what @ ("types" | "names"), line)) => (what, line),
        _ => ("rows", line),
    };
    let (sql, input) = match line.split_once(" from stdin") {
        Some(_) => line.rsplit_once(" <").unwrap_or((line, "")),
        None => (line, ""),
    };
    let mut out = Collected {
        copy_input: unescaped(input.strip_prefix(' ').unwrap_or(input)).into_bytes(),
        ..Collected::default()
    };
    if let Err(error) = session.execute_simple(sql, &mut out) {
        return format!("ERROR {}", error.sqlstate().as_str());
    }
    let row = |row: &Vec<Value>| row.iter().map(shown).collect::<Vec<_>>().join("|");
    if what != "rows" {
        let names = out.columns.iter().map(|column| match what {
            "types" => column.data_type.to_string(),
            _ => column.name.clone(),
        });
        names.collect::<Vec<_>>().join("|")
    } else if !out.copied.is_empty() {
        escaped(&String::from_utf8(out.copied).unwrap())
    } else if out.columns.is_empty() {
        out.tags.pop().unwrap_or_default()
    } else {
        out.rows.iter().map(row).collect::<Vec<_>>().join(", ")
    }
}

/// Runs a table; all lines whose answers differ are shown together.
#[track_caller]
fn check(table: &str) {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let mut differing = String::new();
    for line in table.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (line, expected) = line.rsplit_once("=>").expect(line);
        let found = answer(&mut session, line.trim());
        if found != expected.trim() {
            differing += &format!("{line}\n  expected {}\n  found    {found}\n", expected.trim());
        }
    }
    assert!(differing.is_empty(), "\n{differing}");
}

macro_rules! subjects {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(include_str!(concat!("answers/", stringify!($name), ".txt")));
        })*

        #[test]
        fn every_file_is_a_subject() {
            let subjects = [$(concat!(stringify!($name), ".txt")),*];
            let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/answers")).unwrap();
            let mut files: Vec<String> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            files.sort();
            assert_eq!(files, subjects);
        }
    };
}

subjects! {
    aggregate_calls
    aggregates
    alter_table
    analyze
    any_operators
    arithmetic
    array_assignments
    bytes
    casts
    check_constraints
    comments
    composites
    conditions
    copy
    create_table_as
    cursors
    dates
    deferrable_keys
    distinct_on
    domains
    enums
    expressions
    foreign_keys
    functions
    functions_with_rows
    generated_columns
    grouping_sets
    indexes
    intervals
    join_names
    joins
    json
    json_tables
    keys
    long_values
    math_double
    math_exact
    math_numeric
    merge
    nested_queries
    on_conflict
    outer_aggregates
    predicates
    prepared
    privileges
    records
    registered
    renamed_columns
    row_functions
    row_locks
    row_queries
    rows
    rows_from
    savepoints
    schemas
    search_cycle
    select
    sequences
    series
    settings
    spill
    string_escapes
    system_columns
    table_actions
    table_notes
    tables
    temporary
    times
    timestamps
    to_char
    to_number
    tool_catalogs
    transactions
    type_changes
    typed_tables
    updatable_views
    uuids
    variadic
    view_text
    views
    windows
    with
    with_changes
}
