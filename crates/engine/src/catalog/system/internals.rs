//! `clearway_latches` and `clearway_memory`.

use super::Sources;
use super::rows::Rows;
use crate::activity::SessionActivity;
use crate::memory;
use clearway_sql::value::Value;

/// `clearway_latches`: a latch class and mode.
pub(super) fn latches(_: &Sources<'_>, rows: &mut Rows) {
    rows.extend(latch_rows().into_iter());
}

/// `clearway_memory`: the process, then the sessions.
pub(super) fn memory(sources: &Sources<'_>, rows: &mut Rows) {
    rows.extend(memory_rows((sources.activity)()).into_iter());
}

/// The process's numbers, then one for each session.
fn memory_rows(sessions: Vec<SessionActivity>) -> Vec<Vec<Value>> {
    let number = |bytes: u64| Value::Int8(bytes.cast_signed());
    let of_process = memory::of_process()
        .into_iter()
        .map(|(name, bytes)| vec![Value::Null, Value::text(name), bytes.map_or(Value::Null, number)]);
    let of_sessions = sessions.into_iter().map(|session| {
        vec![
            Value::Int4(session.process_id as i32),
            Value::text("session"),
            number(session.memory_bytes),
        ]
    });
    of_process.chain(of_sessions).collect()
}

fn latch_rows() -> Vec<Vec<Value>> {
    let number = |count: Option<u64>| count.map_or(Value::Null, |count| Value::Int8(count as i64));
    let mut rows = Vec::new();
    for class in clearway_latch::statistics() {
        for (mode, counts) in [
            ("shared", &class.shared),
            ("exclusive", &class.exclusive),
            ("update", &class.update),
            ("until-free", &class.until_free),
        ] {
            // Few classes have latches with an update mode.
            if mode == "update" && counts.acquisitions.unwrap_or(0) == 0 && counts.conflicts == 0 {
                continue;
            }
            rows.push(vec![
                Value::text(class.name),
                Value::text(mode),
                number(counts.acquisitions),
                number(Some(counts.conflicts)),
                number(Some(counts.spins)),
                number(Some(counts.sleeps)),
                number(counts.wait_ns_at(0.5)),
                number(counts.wait_ns_at(0.99)),
            ]);
        }
    }
    rows
}
