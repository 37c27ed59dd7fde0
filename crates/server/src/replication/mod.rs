//! Streaming replication, in PostgreSQL's protocol: the primary's side, which `pg_receivewal` and `pg_basebackup` speak
//! to, and the standby's, which is in [`receiver`].
//!
//! A client that says `replication=true` in its start-up message has a session like any other, with a place among
//! `max_connections` and a row of `pg_stat_activity`, but sends replication commands where others send SQL.
//!
//! | module | job |
//! | --- | --- |
//! | [`command`] | the commands' grammar |
//! | [`message`] | what goes through a stream |
//! | `stream` | sending the log |
//! | `base_backup`, `manifest` | sending a copy of the files |
//! | [`rewind`] | sending pages and log to a directory that is rewound |
//! | [`receiver`] | the other end of both |
//!
//! # Rules
//! 1. Only durable log leaves ([`Storage::read_log`]): a follower never has what a crash of this server takes back.
//! 2. What a follower still needs is not removed (`clearway_storage::retention`).
//! 3. A byte from the follower never makes the server panic, and a follower that does not read or answer is given up
//!    after `wal_sender_timeout`.
//! 4. A backup keeps its log until its connection ends, since the client fetches it through another one.

mod base_backup;
pub mod command;
pub mod following;
mod manifest;
pub mod message;
pub mod receiver;
pub mod rewind;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use clearway_engine::{Column, DataType, EngineError, Session, SqlState, TransactionStatus, Value};
use clearway_storage::backup::Backup;
use clearway_storage::log_digest::COMPARED_BYTES;
use clearway_storage::timeline::{History, history_file_name};
use clearway_storage::{Lsn, Storage, StorageError};
use tracing::{debug, info};

use crate::channel::Channel;
use crate::codec::{self, ResultFormats, Scratch};
use crate::reader::ReadError;
use crate::shared::{Shared, end, wire_error};
use crate::wire::frontend::{self, Message};
use command::Command;
use rewind::RewindCommand;
use stream::{Ended, Stream, WakeUp};

/// A field of a result of one row: its column's name and its value.
type Field = (&'static str, Value);

/// A client that copies the log or the files.
pub(crate) struct Replication {
    session: Session,
    storage: Arc<Storage>,
    process_id: u32,
    timeout: Duration,
    /// The last backup (rule 4).
    backup: Option<Backup>,
    /// After an error in the extended protocol, which this connection does not speak: nothing counts until Sync.
    skipping: bool,
}

/// True if the value of the start-up parameter `replication` asks for such a connection.
pub(crate) fn is_wanted(value: &str) -> Result<bool, EngineError> {
    match value {
        "off" | "false" | "no" | "0" => Ok(false),
        "on" | "true" | "yes" | "1" => Ok(true),
        "database" => Err(EngineError::not_supported("logical replication")),
        other => Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"replication\": \"{other}\""),
        )),
    }
}

fn storage_error(error: StorageError) -> EngineError {
    EngineError::new(SqlState::from_code(error.sqlstate()), error.to_string())
}

fn timed_out() -> EngineError {
    EngineError::new(
        SqlState::from_code("57P01"),
        "terminating walsender process due to replication timeout",
    )
}

impl Replication {
    pub(crate) fn new(session: Session, storage: Arc<Storage>, timeout: Duration) -> Replication {
        let (process_id, _) = session.cancel_key();
        session.is_wal_sender();
        Replication {
            session,
            storage,
            process_id,
            timeout,
            backup: None,
            skipping: false,
        }
    }

    pub(crate) fn run(mut self, shared: &Shared, channel: &mut Channel) {
        loop {
            let frame = match channel.reader.next(&channel.socket, &channel.presence) {
                Ok(frame) => frame,
                Err(error) => return end(channel, shared, &error),
            };
            if self.skipping && !matches!(frame.kind, b'S' | b'X') {
                continue;
            }
            let command = match frontend::decode(frame.kind, channel.reader.body(&frame)) {
                Ok(Message::Query(text)) => {
                    self.session.command_begins(text);
                    command::parse(text)
                }
                Ok(Message::Terminate) => return,
                // The rest of a stream that has ended.
                Ok(Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_)) => continue,
                Ok(Message::Sync) => {
                    self.skipping = false;
                    ready(channel);
                    continue;
                }
                Ok(_) => {
                    self.skipping = true;
                    Err(EngineError::new(
                        SqlState::PROTOCOL_VIOLATION,
                        "extended query protocol not supported in a replication connection",
                    ))
                }
                Err(error) => return channel.fatal(&wire_error(&error)),
            };
            let done = command.and_then(|command| self.execute(shared, channel, command));
            match done {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.session.log_error(&error);
                    codec::error(&mut channel.out.bytes, "ERROR", &error);
                }
            }
            self.session.command_ended();
            if self.skipping {
                channel.flush();
            } else {
                ready(channel);
            }
            if channel.out.is_broken() {
                return;
            }
        }
    }

    /// Executes a command; whether the connection goes on.
    fn execute(
        &mut self,
        shared: &Shared,
        channel: &mut Channel,
        command: Command,
    ) -> Result<bool, EngineError> {
        debug!(?command, "replication command");
        let tag = match command {
            Command::IdentifySystem => {
                result(channel, &self.identity());
                "IDENTIFY_SYSTEM"
            }
            Command::Show(name) => {
                let value = self.session.setting(&name).ok_or_else(|| {
                    EngineError::new(
                        SqlState::from_code("42704"),
                        format!("unrecognized configuration parameter \"{name}\""),
                    )
                })?;
                result(channel, &[(name.as_str(), Value::text(value))]);
                "SHOW"
            }
            Command::TimelineHistory(timeline) => {
                result(channel, &self.history_file(timeline)?);
                "TIMELINE_HISTORY"
            }
            Command::LogDigest(start, end) => {
                result(channel, &self.digest(start, end)?);
                "LOG_DIGEST"
            }
            Command::CreateSlot {
                name,
                temporary,
                reserve_log,
            } => {
                result(channel, &self.create_slot(name, temporary, reserve_log)?);
                "CREATE_REPLICATION_SLOT"
            }
            Command::DropSlot(name) => {
                self.storage.retention.drop_slot(&name).map_err(storage_error)?;
                "DROP_REPLICATION_SLOT"
            }
            Command::ReadSlot(name) => {
                result(channel, &self.slot(&name));
                "READ_REPLICATION_SLOT"
            }
            Command::Start {
                slot,
                position,
                timeline,
            } => return self.stream(shared, channel, slot.as_deref(), Lsn(position), timeline),
            Command::BaseBackup(options) => {
                // Its log is kept from before the next one begins.
                let backup = Backup::begin(&self.storage, self.process_id).map_err(storage_error)?;
                base_backup::send(channel, &backup, &options, self.timeout, || {
                    shared.registry.is_stopping()
                })?;
                info!(label = options.label, "base backup sent");
                self.backup = Some(backup);
                "BASE_BACKUP"
            }
            Command::Rewind(command) => {
                self.rewind(channel, &command)?;
                "REWIND"
            }
        };
        codec::command_complete(&mut channel.out.bytes, tag);
        Ok(true)
    }

    /// Answers a command of a rewind.
    fn rewind(&mut self, channel: &mut Channel, command: &RewindCommand) -> Result<(), EngineError> {
        if let RewindCommand::Begin(log_from) = command {
            let backup = Backup::begin_for_rewind(&self.storage, self.process_id, Lsn(*log_from));
            self.backup = Some(backup.map_err(storage_error)?);
            info!(log_from = %Lsn(*log_from), "a rewind begins");
        }
        let durable = self.storage.durable_log_end();
        let bytes = rewind::answer(self.backup.as_ref(), durable, command)?;
        rewind::send(channel, &bytes, self.timeout)
    }

    /// The row of IDENTIFY_SYSTEM.
    fn identity(&self) -> [Field; 4] {
        [
            (
                "systemid",
                Value::text(self.storage.system_identifier().to_string()),
            ),
            ("timeline", Value::Int4(self.storage.timeline().cast_signed())),
            ("xlogpos", Value::text(self.storage.durable_log_end().to_string())),
            ("dbname", Value::Null),
        ]
    }

    /// The row of TIMELINE_HISTORY.
    fn history_file(&self, timeline: u32) -> Result<[Field; 2], EngineError> {
        let name = history_file_name(timeline);
        let text = self.storage.history_file(timeline).map_err(storage_error)?;
        let text = text.ok_or_else(|| {
            EngineError::new(
                SqlState::from_code("58P01"),
                format!("could not open file \"pg_wal/{name}\": No such file or directory"),
            )
        })?;
        Ok([("filename", Value::text(name)), ("content", Value::text(text))])
    }

    /// The row of LOG_DIGEST, of no more log than a follower has a use for.
    fn digest(&self, start: u64, end: u64) -> Result<[Field; 3], EngineError> {
        let start = start.max(end.saturating_sub(COMPARED_BYTES));
        let digest = self.storage.log_digest(Lsn(start), Lsn(end));
        let digest = digest.map_err(storage_error)?;
        Ok([
            ("start", Value::text(digest.start.to_string())),
            ("end", Value::text(digest.end.to_string())),
            ("digest", Value::text(digest.digits)),
        ])
    }

    /// Makes a slot; the row of CREATE_REPLICATION_SLOT.
    fn create_slot(
        &self,
        name: String,
        temporary: bool,
        reserve_log: bool,
    ) -> Result<[Field; 4], EngineError> {
        let temporary_of = temporary.then_some(self.process_id);
        let reserve_from = reserve_log.then(|| self.storage.wal.redo());
        self.storage
            .retention
            .create_slot(&name, temporary_of, reserve_from)
            .map_err(storage_error)?;
        Ok([
            ("slot_name", Value::text(name)),
            ("consistent_point", Value::text("0/0")),
            ("snapshot_name", Value::Null),
            ("output_plugin", Value::Null),
        ])
    }

    /// The row of READ_REPLICATION_SLOT; all NULL for a slot that does not exist.
    fn slot(&self, name: &str) -> [Field; 3] {
        let slot = self.storage.retention.slot(name);
        let restart = slot.as_ref().and_then(|slot| slot.restart);
        let position = restart.map(|at| Value::text(at.to_string()));
        let timeline = restart.map(|at| Value::Int8(i64::from(self.storage.history().timeline_of(at))));
        [
            ("slot_type", slot.map_or(Value::Null, |_| Value::text("physical"))),
            ("restart_lsn", position.unwrap_or(Value::Null)),
            ("restart_tli", timeline.unwrap_or(Value::Null)),
        ]
    }

    fn stream(
        &mut self,
        shared: &Shared,
        channel: &mut Channel,
        slot: Option<&str>,
        position: Lsn,
        timeline: Option<u32>,
    ) -> Result<bool, EngineError> {
        let history = self.storage.history();
        let timeline = timeline.unwrap_or(history.current());
        if timeline != history.current() {
            let end = history
                .end_of(timeline)
                .ok_or_else(|| stream::not_in_history(timeline))?;
            if position > end {
                return Err(stream::behind_fork(position, timeline, end));
            }
            if position == end {
                next_timeline(channel, &history, timeline)?;
                codec::command_complete(&mut channel.out.bytes, "START_STREAMING");
                codec::command_complete(&mut channel.out.bytes, "START_REPLICATION");
                return Ok(true);
            }
        }
        let durable = self.storage.durable_log_end();
        if position > durable {
            return Err(stream::ahead(position, durable));
        }
        let mut follower = self
            .storage
            .retention
            .follow(self.process_id, position, slot)
            .map_err(storage_error)?;
        let presence = Arc::clone(&channel.presence);
        let Some(ends_by_itself) = shared.registry.ends_by_itself(&presence) else {
            end(channel, shared, &ReadError::Closed);
            return Ok(false);
        };
        let wake_up = WakeUp::new().map_err(not_written)?;
        let waker = wake_up.clone();
        let name = self.session.setting("application_name").unwrap_or_default();
        follower.stand_by(&name, move || waker.wake());
        // CopyBothResponse: binary, no columns.
        channel.out.bytes.extend_from_slice(b"W\0\0\0\x07\0\0\0");
        channel.socket.set_receive_timeout(Some(self.timeout));
        let stream = Stream {
            storage: &self.storage,
            registry: &shared.registry,
            proc: self.session.proc(),
            follower,
            timeline,
            wake_up,
            timeout: self.timeout,
        };
        let ended = stream.run(channel);
        drop(ends_by_itself);
        channel.socket.set_receive_timeout(None);
        match ended {
            Ended::Failed(error) => return Err(error),
            Ended::Broken(error) => {
                end(channel, shared, &error);
                return Ok(false);
            }
            Ended::Silent(error) => {
                // It may not read either, so nothing is written.
                info!(process_id = self.process_id, "{error}");
                return Ok(false);
            }
            Ended::Done | Ended::Stopped => {}
        }
        let history = self.storage.history();
        if history.current() != timeline {
            next_timeline(channel, &history, timeline)?;
        }
        // Both, as from PostgreSQL: its standby waits for the second.
        codec::command_complete(&mut channel.out.bytes, "START_STREAMING");
        codec::command_complete(&mut channel.out.bytes, "START_REPLICATION");
        if matches!(ended, Ended::Stopped) {
            let _ = channel.out.flush_within(&channel.socket, self.timeout);
            return Ok(false);
        }
        Ok(true)
    }
}

impl Drop for Replication {
    fn drop(&mut self) {
        self.storage.retention.session_ended(self.process_id);
    }
}

fn ready(channel: &mut Channel) {
    codec::ready_for_query(&mut channel.out.bytes, TransactionStatus::Idle);
    channel.flush();
}

/// Says which timeline follows `timeline`, which has ended, and where it begins.
fn next_timeline(channel: &mut Channel, history: &History, timeline: u32) -> Result<(), EngineError> {
    let (Some(next), Some(begins)) = (history.next_after(timeline), history.end_of(timeline)) else {
        return Err(stream::not_in_history(timeline));
    };
    let row = [
        ("next_tli", Value::Int8(i64::from(next))),
        ("next_tli_startpos", Value::text(begins.to_string())),
    ];
    result(channel, &row);
    Ok(())
}

/// A result of one row, with the columns' types those of its values (text for NULL).
fn result(channel: &mut Channel, row: &[(&str, Value)]) {
    let data_type = |value: &Value| match value {
        Value::Int4(_) => DataType::Int4,
        Value::Int8(_) => DataType::Int8,
        _ => DataType::Text,
    };
    let columns: Vec<Column> = row
        .iter()
        .map(|(name, value)| Column {
            name: (*name).to_owned(),
            data_type: data_type(value),
            type_modifier: -1,
            table_oid: 0,
            attribute: 0,
        })
        .collect();
    let values: Vec<Value> = row.iter().map(|(_, value)| value.clone()).collect();
    let out = &mut channel.out.bytes;
    codec::row_description(out, &columns, &ResultFormats::Text);
    codec::gathered_row(out, &values, &ResultFormats::Text, &mut Scratch::default());
}

/// As [`result`], with the tag of a SELECT behind it.
fn selected(channel: &mut Channel, row: &[(&str, Value)]) {
    result(channel, row);
    codec::command_complete(&mut channel.out.bytes, "SELECT");
}

/// A write that did not succeed, as an error that ends the connection.
fn not_written(error: std::io::Error) -> EngineError {
    debug!("a replication connection ended: {error}");
    EngineError::new(SqlState::from_code("08006"), "connection to client lost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_connections_are_for_replication() {
        for (value, wanted) in [("true", true), ("1", true), ("off", false), ("no", false)] {
            assert_eq!(is_wanted(value).unwrap(), wanted);
        }
        assert_eq!(is_wanted("database").unwrap_err().sqlstate().as_str(), "0A000");
        assert_eq!(is_wanted("perhaps").unwrap_err().sqlstate().as_str(), "22023");
    }
}
