//! Answers to the catalog queries that drivers and mappers send when they connect.
//!
//! One looks for a type by what extensions or users have made, which there is nothing of here: the truth is an answer
//! without rows. The other asks for all types, joined with what there is none of (ranges): a query of one table has the
//! same answer. Each query is recognised by its text, blanks apart.

use crate::plan::{CannedRows, Column, Plan, RowsStatement};
use crate::value::DataType;

/// The answer to a query.
pub(crate) enum Answer {
    /// Without rows.
    Plan(Plan),
    /// By this query.
    Query(&'static str),
}

/// A query that is answered without rows.
struct Question {
    /// Parts that only it contains, with single blanks and in lower case.
    parts: &'static [&'static str],
    parameters: &'static [DataType],
    columns: &'static [(&'static str, DataType)],
}

/// The questions, by the driver that asks.
static QUESTIONS: &[Question] = &[
    // SQLAlchemy with psycopg 3: a type by its name.
    Question {
        parts: &[
            "select typname as name, oid, typarray as array_oid,",
            "from pg_type t where t.oid =",
            "to_regtype(",
        ],
        parameters: &[DataType::Text],
        columns: &[
            ("name", DataType::Name),
            ("oid", DataType::Oid),
            ("array_oid", DataType::Oid),
            ("regtype", DataType::Text),
            ("delimiter", DataType::CharByte),
        ],
    },
];

/// Parts of Sequelize's query for the numbers of all types and of the ranges over them, and the query without ranges.
const SEQUELIZE_PARTS: &[&str] = &[
    "with ranges as ( select pg_range.rngtypid,",
    "from pg_type left outer join ranges on pg_type.oid = ranges.rngsubtype where (pg_type.typtype in('b', 'e'))",
];
const SEQUELIZE_TYPES: &str = "select typname, typtype, oid, typarray, null::text as rngtypname, \
    null::int as rngtypid, null::int as rngtyparray from pg_catalog.pg_type where typtype in ('b', 'e')";

/// A text longer than this is none of them.
const TEXT_BYTES_MAX: usize = 2_048;

/// The answer, if this is one of these queries.
pub(crate) fn recognise(sql: &str) -> Option<Answer> {
    if sql.len() > TEXT_BYTES_MAX || !sql.contains("typ") || !sql.contains("pg_type") {
        return None;
    }
    let words: Vec<&str> = sql.split_whitespace().collect();
    let text = words.join(" ").to_lowercase();
    if SEQUELIZE_PARTS.iter().all(|part| text.contains(part)) {
        return Some(Answer::Query(SEQUELIZE_TYPES));
    }
    let question = QUESTIONS
        .iter()
        .find(|question| question.parts.iter().all(|part| text.contains(part)))?;
    // A parameter may have been written into the text.
    let parameters = if text.contains("$1") {
        question.parameters
    } else {
        &[]
    };
    let columns = question
        .columns
        .iter()
        .map(|(name, data_type)| Column::computed(*name, *data_type));
    Some(Answer::Plan(Plan {
        statement: RowsStatement::Canned(CannedRows { rows: Vec::new() }).into(),
        param_types: parameters.to_vec(),
        columns: Some(columns.collect()),
        subqueries: Vec::new(),
        reads: Vec::new(),
    }))
}
