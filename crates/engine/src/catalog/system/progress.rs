//! Views of the progress of long commands. A row is there while its command runs; the number and the database of a session
//! that the reader may not look into are shown, and the rest is NULL.

use super::Sources;
use super::rows::{NULL, Rows, int4, int8, oid, text};
use super::server::DATABASE_OID;
use crate::activity::progress::{copy, index, vacuum};
use crate::activity::{Command, CommandShown};
use crate::catalog::role::READ_ALL_STATISTICS;
use clearway_sql::function::USER_OID;
use clearway_sql::value::Value;

/// A command that runs, for one reader.
struct Seen {
    process_id: u32,
    command: CommandShown,
    /// True if the reader sees what the session does.
    is_seen: bool,
}

impl Seen {
    fn shown(&self, value: Value) -> Value {
        if self.is_seen { value } else { NULL }
    }

    fn text(&self, value: &str) -> Value {
        self.shown(text(value))
    }

    fn number(&self, number: u64) -> Value {
        self.shown(int8(number.cast_signed()))
    }

    fn count(&self, at: usize) -> Value {
        self.number(self.command.count(at))
    }
}

/// The commands of some kinds that run.
fn running(sources: &Sources<'_>, is_wanted: fn(Command) -> bool) -> Vec<Seen> {
    let commands = (sources.commands)();
    let mut wanted = commands
        .into_iter()
        .filter(|(_, command)| is_wanted(command.command))
        .peekable();
    if wanted.peek().is_none() {
        return Vec::new();
    }
    let sessions = (sources.activity)();
    let seen = wanted.map(|(process_id, command)| {
        let session = sessions.iter().find(|session| session.process_id == process_id);
        // A thread of the server's own is the first superuser's.
        let role = session.and_then(|session| sources.catalog.role_number(&session.user, &session.user));
        let roles = [role.unwrap_or(USER_OID), READ_ALL_STATISTICS];
        let reader = sources.identity.current;
        let sees = |role| sources.catalog.has_privileges_of(reader, role);
        Seen {
            process_id,
            command,
            is_seen: roles.into_iter().any(sees),
        }
    });
    seen.collect()
}

fn database(sources: &Sources<'_>, seen: &Seen) -> [(&'static str, Value); 4] {
    [
        ("pid", int4(seen.process_id.cast_signed())),
        ("datid", oid(DATABASE_OID)),
        ("datname", text(sources.database)),
        ("relid", seen.shown(oid(seen.command.relation))),
    ]
}

/// `pg_stat_progress_copy`: the client is at the other end of each COPY, and the size of what is to come is not known.
pub(super) fn of_copies(sources: &Sources<'_>, rows: &mut Rows) {
    let is_copy = |command| matches!(command, Command::CopyFrom | Command::CopyTo);
    for seen in running(sources, is_copy) {
        let [pid, datid, datname, relid] = database(sources, &seen);
        rows.push([
            pid,
            datid,
            datname,
            relid,
            ("command", seen.text(seen.command.command.name())),
            ("type", seen.text("PIPE")),
            ("bytes_processed", seen.count(copy::BYTES)),
            // PostgreSQL's 0 for a size that is not known.
            ("bytes_total", seen.number(0)),
            ("tuples_processed", seen.count(copy::ROWS)),
            ("tuples_excluded", seen.count(copy::EXCLUDED)),
        ]);
    }
}

/// `pg_stat_progress_vacuum`: the table of a table's long values is vacuumed after it, and has a row of its own.
pub(super) fn of_vacuums(sources: &Sources<'_>, rows: &mut Rows) {
    for seen in running(sources, |command| command == Command::Vacuum) {
        let phase = seen.command.phase(vacuum::PHASE, &vacuum::PHASES);
        let [pid, datid, datname, relid] = database(sources, &seen);
        rows.push([
            pid,
            datid,
            datname,
            relid,
            ("phase", seen.text(phase)),
            ("heap_blks_total", seen.count(vacuum::PAGES)),
            ("heap_blks_scanned", seen.count(vacuum::SCANNED)),
            ("heap_blks_vacuumed", seen.count(vacuum::VACUUMED)),
            ("index_vacuum_count", seen.count(vacuum::ROUNDS)),
            ("max_dead_tuples", seen.count(vacuum::DEAD_MAX)),
            ("num_dead_tuples", seen.count(vacuum::DEAD)),
        ]);
    }
}

/// `pg_stat_progress_create_index`: no table has partitions.
pub(super) fn of_indexes(sources: &Sources<'_>, rows: &mut Rows) {
    for seen in running(sources, Command::makes_an_index) {
        let phase = seen.command.phase(index::PHASE, &index::PHASES);
        let number = u32::try_from(seen.command.count(index::INDEX)).unwrap_or(0);
        let [pid, datid, datname, relid] = database(sources, &seen);
        rows.push([
            pid,
            datid,
            datname,
            relid,
            ("index_relid", seen.shown(oid(number))),
            ("command", seen.text(seen.command.command.name())),
            ("phase", seen.text(phase)),
            ("lockers_total", seen.count(index::LOCKERS)),
            ("lockers_done", seen.count(index::LOCKERS_DONE)),
            ("current_locker_pid", seen.count(index::LOCKER)),
            ("blocks_total", seen.count(index::PAGES)),
            ("blocks_done", seen.count(index::PAGES_DONE)),
            ("tuples_total", seen.count(index::ENTRIES)),
            ("tuples_done", seen.count(index::ENTRIES_DONE)),
            ("partitions_total", seen.number(0)),
            ("partitions_done", seen.number(0)),
        ]);
    }
}
