//! A server that answers constants: the ceiling of every measurement through a socket.
//!
//! It accepts connections, reads frames, decodes messages and writes answers with the very code of the real server,
//! and does nothing in between. What pgbench measures against it is pgbench, the kernel and our wire code; the
//! distance between that and the real server is what the engine costs.
//!
//! | statement | answer |
//! | --- | --- |
//! | begins with `select` | one row with the integer 1 (`count(*)`: the scale 10, which pgbench asks for at start) |
//! | pgbench's question about partitions | one row that says there are none |
//! | anything else | a fitting tag |

use std::collections::HashMap;
use std::sync::Arc;

use clearway_engine::{Column, DataType, EngineError, SqlState, TransactionStatus, Value};

use crate::channel::Channel;
use crate::codec::{self, ResultFormats, Scratch};
use crate::error::Result;
use crate::listener::Listeners;
use crate::options::ServerOptions;
use crate::reader::ReadError;
use crate::registry::{Presence, Registration, Registry};
use crate::server::accept_loop;
use crate::stop::StopSignal;
use crate::wire::frame;
use crate::wire::frontend::{self, Message, Target};
use crate::wire::startup::Startup;

/// The scale in the answer to pgbench.
const SCALE: i64 = 10;

/// Answers constants to any query until `stop` is given.
pub fn run(options: ServerOptions, stop: &StopSignal) -> Result<()> {
    let listeners = Listeners::bind(&options)?;
    let registry = Arc::new(Registry::default());
    let outcome = accept_loop(&listeners, options.scheduling, stop, |socket| {
        let socket = Arc::new(socket);
        let presence = Arc::new(Presence::new(Arc::clone(&socket)));
        let Some(registration) = registry.enter(Arc::clone(&presence), options.max_connections) else {
            return;
        };
        // There is no login: none makes room for another.
        registration.has_logged_in();
        let thread = std::thread::Builder::new()
            .name("clearway stub".to_owned())
            .stack_size(256 << 10);
        let channel = Channel::new(socket, presence, frame::LARGE_MESSAGE_BYTES_MAX);
        if let Err(error) = thread.spawn(move || serve(channel, registration)) {
            tracing::warn!("cannot start a thread for a connection: {error}");
        }
    });
    registry.stop_all();
    registry.wait_until_empty(std::time::Duration::from_secs(2));
    outcome
}

/// The answer to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Row(i64),
    NoPartitions,
    Tag(&'static str),
    Begin,
    End(&'static str),
    Nothing,
}

impl Answer {
    fn to(sql: &str) -> Answer {
        let sql = sql.trim_start();
        let word = sql
            .split(|c: char| !c.is_ascii_alphabetic())
            .next()
            .unwrap_or("")
            .to_ascii_lowercase();
        match word.as_str() {
            "select" if sql.contains("partstrat") => Answer::NoPartitions,
            "select" if sql.contains("count(*)") => Answer::Row(SCALE),
            "select" => Answer::Row(1),
            "update" => Answer::Tag("UPDATE 1"),
            "insert" => Answer::Tag("INSERT 0 1"),
            "delete" => Answer::Tag("DELETE 1"),
            "begin" | "start" => Answer::Begin,
            "end" | "commit" => Answer::End("COMMIT"),
            "rollback" | "abort" => Answer::End("ROLLBACK"),
            "" => Answer::Nothing,
            _ => Answer::Tag("SET"),
        }
    }
}

struct Stub {
    row: Vec<Column>,
    no_partitions: Vec<Column>,
    statements: HashMap<String, (Answer, usize)>,
    portal: Answer,
    formats: ResultFormats,
    status: TransactionStatus,
    scratch: Scratch,
}

fn column(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        data_type: DataType::Int8,
        type_modifier: -1,
        table_oid: 16_384,
        attribute: 3,
    }
}

fn serve(mut channel: Channel, registration: Registration) {
    let mut stub = Stub {
        row: vec![column("abalance")],
        no_partitions: vec![column("n"), column("partstrat"), column("count")],
        statements: HashMap::new(),
        portal: Answer::Nothing,
        formats: ResultFormats::Text,
        status: TransactionStatus::Idle,
        scratch: Scratch::default(),
    };
    if let Err(ReadError::Wire(error)) = stub.run(&mut channel) {
        channel.fatal(&EngineError::new(SqlState::PROTOCOL_VIOLATION, error.to_string()));
    }
    drop(registration);
}

impl Stub {
    fn run(&mut self, channel: &mut Channel) -> Result<(), ReadError> {
        loop {
            match channel.reader.startup(&channel.socket, &channel.presence)? {
                Startup::Handshake => return Err(ReadError::Closed),
                Startup::Tls | Startup::Gssapi => {
                    channel.out.bytes.extend_from_slice(&[codec::DECLINE]);
                    channel.flush();
                }
                Startup::Cancel { .. } => return Ok(()),
                Startup::Session { .. } => break,
            }
        }
        let out = &mut channel.out.bytes;
        codec::authentication_ok(out);
        for (name, value) in [
            ("server_version", "15.0 (Clearway stub)"),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO, MDY"),
            ("integer_datetimes", "on"),
            ("standard_conforming_strings", "on"),
        ] {
            codec::parameter_status(out, name, value);
        }
        codec::backend_key_data(out, 0, 0);
        codec::ready_for_query(out, self.status);
        channel.flush();
        while !channel.out.is_broken() {
            let frame = channel.reader.next(&channel.socket, &channel.presence)?;
            let message =
                frontend::decode(frame.kind, channel.reader.body(&frame)).map_err(ReadError::Wire)?;
            let out = &mut channel.out.bytes;
            match message {
                Message::Query(sql) => {
                    for part in sql.split(';').filter(|part| !part.trim().is_empty()) {
                        let answer = Answer::to(part);
                        self.formats = ResultFormats::Text;
                        if let Some(columns) = self.columns(answer) {
                            codec::row_description(out, columns, &self.formats);
                        }
                        self.answer(answer, out);
                    }
                    codec::ready_for_query(out, self.status);
                    channel.flush();
                }
                Message::Parse(parse) => {
                    let parameters = parse.types().len().max(parse.sql.matches('$').count());
                    self.statements
                        .insert(parse.name.to_owned(), (Answer::to(parse.sql), parameters));
                    codec::parse_complete(out);
                }
                Message::Bind(bind) => {
                    self.portal = self
                        .statements
                        .get(bind.statement)
                        .map_or(Answer::Nothing, |found| found.0);
                    self.formats = match bind.result_formats.is_binary(0) {
                        true => ResultFormats::Binary,
                        false => ResultFormats::Text,
                    };
                    codec::bind_complete(out);
                }
                Message::Describe(target) => {
                    let mut answer = self.portal;
                    if let Target::Statement(name) = target {
                        let (statement, parameters) =
                            self.statements.get(name).copied().unwrap_or((Answer::Nothing, 0));
                        codec::parameter_description(
                            out,
                            std::iter::repeat_n(DataType::Int8.oid(), parameters),
                        );
                        answer = statement;
                    }
                    match self.columns(answer) {
                        Some(columns) => codec::row_description(out, columns, &self.formats),
                        None => codec::no_data(out),
                    }
                }
                Message::Execute { .. } => self.answer(self.portal, out),
                Message::Close(target) => {
                    if let Target::Statement(name) = target {
                        self.statements.remove(name);
                    }
                    codec::close_complete(out);
                }
                Message::Flush => channel.flush(),
                Message::Sync => {
                    codec::ready_for_query(out, self.status);
                    channel.flush();
                }
                Message::Terminate => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn columns(&self, answer: Answer) -> Option<&[Column]> {
        match answer {
            Answer::Row(_) => Some(&self.row),
            Answer::NoPartitions => Some(&self.no_partitions),
            _ => None,
        }
    }

    fn answer(&mut self, answer: Answer, out: &mut bytes::BytesMut) {
        match answer {
            Answer::Row(value) => {
                codec::gathered_row(out, &[Value::Int8(value)], &self.formats, &mut self.scratch);
                codec::command_complete(out, "SELECT 1");
            }
            Answer::NoPartitions => {
                let values = [Value::Int8(1), Value::Null, Value::Int8(0)];
                codec::gathered_row(out, &values, &self.formats, &mut self.scratch);
                codec::command_complete(out, "SELECT 1");
            }
            Answer::Tag(tag) => codec::command_complete(out, tag),
            Answer::Begin => {
                self.status = TransactionStatus::InTransaction;
                codec::command_complete(out, "BEGIN");
            }
            Answer::End(tag) => {
                self.status = TransactionStatus::Idle;
                codec::command_complete(out, tag);
            }
            Answer::Nothing => codec::empty_query_response(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_fit_the_statements_of_pgbench() {
        assert_eq!(
            Answer::to("SELECT abalance FROM pgbench_accounts WHERE aid = $1;"),
            Answer::Row(1)
        );
        assert_eq!(
            Answer::to("select count(*) from pgbench_branches"),
            Answer::Row(SCALE)
        );
        assert_eq!(
            Answer::to("select o.n, p.partstrat, pg_catalog.count(i.inhparent)"),
            Answer::NoPartitions
        );
        assert_eq!(
            Answer::to(" UPDATE pgbench_accounts SET"),
            Answer::Tag("UPDATE 1")
        );
        assert_eq!(Answer::to("BEGIN;"), Answer::Begin);
        assert_eq!(Answer::to("END;"), Answer::End("COMMIT"));
        assert_eq!(Answer::to("vacuum analyze"), Answer::Tag("SET"));
        assert_eq!(Answer::to(""), Answer::Nothing);
    }
}
