//! `pg_stat_activity`: a session or a thread of the server's own, with what it waits for; `pg_stat_ssl`.

use super::Sources;
use super::rows::{NULL, Rows, boolean, int4};
use super::server::{DATABASE_OID, USER_OID};
use crate::activity::{BackgroundActivity, SessionActivity};
use crate::catalog::role::READ_ALL_STATISTICS;
use clearway_sql::value::{Inet, Value};

/// `pg_stat_activity`
pub(super) fn activity(sources: &Sources<'_>, rows: &mut Rows) {
    let background = (sources.background)().into_iter().map(background_row);
    let sessions = (sources.activity)().into_iter();
    let sessions = sessions.map(|session| activity_row(sources, session));
    rows.extend(background.chain(sessions));
}

/// `pg_stat_ssl`: the encryption of each connection; the name in a client's certificate is not kept.
pub(super) fn ssl(sources: &Sources<'_>, rows: &mut Rows) {
    for session in (sources.activity)() {
        let encryption = session.encryption.as_ref();
        rows.push([
            ("pid", int4(session.process_id.cast_signed())),
            ("ssl", boolean(encryption.is_some())),
            ("version", encryption.map_or(NULL, |of| Value::text(of.version))),
            (
                "cipher",
                encryption.map_or(NULL, |of| Value::text(of.cipher.as_str())),
            ),
            ("bits", encryption.map_or(NULL, |of| int4(of.bits))),
            ("client_dn", NULL),
            ("client_serial", NULL),
            ("issuer_dn", NULL),
        ]);
    }
}

/// A session. Of those of other roles a role sees that they are there, unless it may read all statistics.
pub(super) fn activity_row(sources: &Sources<'_>, session: SessionActivity) -> Vec<Value> {
    let catalog = sources.catalog;
    let role = catalog
        .role_number(&session.user, &session.user)
        .unwrap_or(USER_OID);
    let reader = sources.identity.current;
    let is_shown = [role, READ_ALL_STATISTICS]
        .into_iter()
        .any(|role| catalog.has_privileges_of(reader, role));
    let mut row = whole_row(session, role);
    if !is_shown {
        for column in row.iter_mut().skip(7) {
            *column = Value::Null;
        }
        row[20] = Value::text("<insufficient privilege>");
    }
    row
}

fn whole_row(session: SessionActivity, role: u32) -> Vec<Value> {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
    let time = |time: Option<i64>| time.map_or(Value::Null, Value::TimestampTz);
    let (address, port) = match session.client_address {
        Some(client) => (
            Value::Inet(Inet::host(client.ip().to_canonical())),
            Value::Int4(i32::from(client.port())),
        ),
        None => (Value::Null, Value::Null),
    };
    vec![
        Value::Oid(DATABASE_OID),
        Value::text(session.database.as_str()),
        Value::Int4(session.process_id as i32),
        Value::Null,
        Value::Oid(role),
        Value::text(session.user.as_str()),
        Value::text(session.application_name.as_str()),
        address,
        Value::Null,
        port,
        Value::TimestampTz(session.backend_start),
        time(session.transaction_start),
        time(session.query_start),
        Value::TimestampTz(session.state_change),
        text(session.wait_event_type),
        text(session.wait_event),
        Value::text(session.state.name()),
        session
            .transaction_id
            .map_or(Value::Null, |xid| Value::Int8(xid as i64)),
        session.xmin.map_or(Value::Null, |xmin| Value::Int8(xmin as i64)),
        session.query_id.map_or(Value::Null, Value::Int8),
        Value::text(session.query.as_str()),
        Value::text(session.backend_type.name()),
    ]
}

/// As PostgreSQL shows its auxiliary processes: no database, no role, no state.
fn background_row(thread: BackgroundActivity) -> Vec<Value> {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
    let mut row = vec![Value::Null; 22];
    row[2] = Value::Int4(thread.process_id as i32);
    row[10] = Value::TimestampTz(thread.backend_start);
    row[14] = text(thread.wait_event_type);
    row[15] = text(thread.wait_event);
    row[20] = Value::text("");
    row[21] = Value::text(thread.kind.name());
    row
}
