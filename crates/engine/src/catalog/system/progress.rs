//! Views of the progress of long statements.

use super::Sources;
use super::rows::{NULL, Rows, int4, int8, oid, text};
use super::server::DATABASE_OID;
use crate::activity::SessionActivity;
use crate::catalog::role::READ_ALL_STATISTICS;
use clearway_sql::function::USER_OID;

/// True if the reader sees what a session does.
fn sees(sources: &Sources<'_>, session: &SessionActivity) -> bool {
    let role = sources.catalog.role_number(&session.user, &session.user);
    let roles = [role.unwrap_or(USER_OID), READ_ALL_STATISTICS];
    let reader = sources.identity.current;
    roles
        .into_iter()
        .any(|role| sources.catalog.has_privileges_of(reader, role))
}

/// `pg_stat_progress_copy`: the client is at the other end of each COPY, and the size of what is to come is not known.
pub(super) fn of_copy(sources: &Sources<'_>, rows: &mut Rows) {
    let sessions = (sources.activity)();
    for (process_id, copy) in (sources.copies)() {
        let Some(session) = sessions.iter().find(|session| session.process_id == process_id) else {
            continue;
        };
        let is_seen = sees(sources, session);
        let shown = |value| if is_seen { value } else { NULL };
        let count = |count: u64| shown(int8(count.cast_signed()));
        rows.push([
            ("pid", int4(process_id.cast_signed())),
            ("datid", oid(DATABASE_OID)),
            ("datname", text(sources.database)),
            ("relid", shown(oid(copy.relation))),
            (
                "command",
                shown(text(if copy.is_from { "COPY FROM" } else { "COPY TO" })),
            ),
            ("type", shown(text("PIPE"))),
            ("bytes_processed", count(copy.bytes)),
            // PostgreSQL's 0 for a size that is not known.
            ("bytes_total", count(0)),
            ("tuples_processed", count(copy.rows)),
            // No COPY FROM has a WHERE.
            ("tuples_excluded", count(0)),
        ]);
    }
}
