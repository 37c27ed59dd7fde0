//! Texts made at random.

use super::*;

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    /// Whatever comes, the front end answers with a plan or an error that has a SQLSTATE.
    #[test]
    fn no_text_brings_the_front_end_down(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..14)) {
        let sql = words.join(" ");
        if let Ok(parsed) = parse(&sql) {
            for statement in &parsed {
                if let Ok(plan) = bind(statement, tables(), &[]) {
                    let _ = explain(&plan.statement);
                }
            }
        }
    }

    /// Bytes of any kind, too.
    #[test]
    fn no_characters_bring_the_parser_down(sql in "\\PC{0,60}") {
        let _ = parse(&sql);
    }
}

const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "sbtest1",
    "kinds",
    "id",
    "k",
    "c",
    "n",
    "t",
    "d",
    "and",
    "or",
    "not",
    "in",
    "(",
    ")",
    ",",
    "=",
    "<",
    "+",
    "-",
    "*",
    "/",
    "||",
    "1",
    "2.5",
    "'x'",
    "null",
    "$1",
    "$2",
    "count(*)",
    "sum(k)",
    "group by",
    "order by",
    "limit",
    "between",
    "is null",
    "like",
    "case when",
    "then",
    "end",
    "insert into",
    "values",
    "update",
    "set",
    "delete from",
    "returning",
    "default",
    "create table",
    "int",
    "primary key",
    "begin",
    "copy",
    "stdin",
    "with",
    "vacuum",
    "explain",
    "distinct",
    ";",
    "::",
    "--",
    "/*",
    "'",
    "\"",
    "$$",
    "as",
    "desc",
    "for update",
];
