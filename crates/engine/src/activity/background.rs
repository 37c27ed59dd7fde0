//! The server's own threads, as `pg_stat_activity` shows them.

use clearway_machine::WaitEvent;
use clearway_storage::background::{BackgroundKind, BackgroundThread};

use super::if_it_waits;

/// A row of `pg_stat_activity` for a thread of the server's own.
#[derive(Debug, Clone, Copy)]
pub struct BackgroundActivity {
    /// A number in place of a process id; no session has it.
    pub process_id: u32,
    /// The thread's task.
    pub kind: BackgroundKind,
    /// Its start, in microseconds since 2000-01-01 UTC.
    pub backend_start: i64,
    /// The class of what it waits for; `None` when on the CPU.
    pub wait_event_type: Option<&'static str>,
    /// The name of what it waits for.
    pub wait_event: Option<&'static str>,
}

impl BackgroundActivity {
    pub(crate) fn of(
        thread: BackgroundThread,
        event: WaitEvent,
        first_process_id: u32,
    ) -> BackgroundActivity {
        let event = if_it_waits(event);
        BackgroundActivity {
            process_id: first_process_id + thread.number,
            kind: thread.kind,
            backend_start: thread.start_us,
            wait_event_type: event.map(|event| event.class().name()),
            wait_event: event.map(|event| event.name()),
        }
    }
}
