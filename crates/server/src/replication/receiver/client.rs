//! A connection to another server: commands of the replication protocol and their results, and streams; or the statements of a
//! session.
//!
//! ```text
//!   SSLRequest ─▶                over TCP, unless sslmode=disable
//!                  ◀─ 'S', and the handshake
//!   StartupMessage ─▶            user, replication=true, application_name
//!                  ◀─ Authentication 0, ParameterStatus …, ReadyForQuery
//!   Query ─▶                     IDENTIFY_SYSTEM
//!                  ◀─ RowDescription, DataRow, CommandComplete, ReadyForQuery
//!   Query ─▶                     START_REPLICATION …, BASE_BACKUP …
//!                  ◀─ CopyBoth or CopyOut, CopyData …, CopyDone, CommandComplete, ReadyForQuery
//! ```
//!
//! # Rules
//! 1. The socket never blocks. Every wait is a `poll` that the stop signal ends at once, and that ends after
//!    `wal_receiver_timeout` without a byte.
//! 2. What the peer sends is bounded: each message by its kind (`wire::backend`), the rows of a result by
//!    [`RESULT_BYTES_MAX`].
//! 3. Only a server that says that it is Clearway is spoken to about replication: the log of another one is in another
//!    format, which nothing in the protocol would tell.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, BytesMut};
use clearway_storage::StorageError;
use rustix::event::PollFlags;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tracing::debug;

use super::connect::{self, wait};
use super::conninfo::ConnInfo;
use super::error::{ReceiverError, Result};
use super::password::Login;
use crate::read_buffer::ReadBuffer;
use crate::socket::Socket;
use crate::stop::StopSignal;
use crate::tls::client::{BindingMode, SslMode};
use crate::tls::end_point_hash;
use crate::wire::WireError;
use crate::wire::backend::{self, Message};
use crate::wire::frame::{Frame, HEADER_BYTES, Split};
use crate::wire::startup;

/// The most bytes in the rows of one command's results; the longest is a timeline's history.
pub const RESULT_BYTES_MAX: usize = 4 << 20;
/// The most bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Our servers' name for themselves behind PostgreSQL's version.
const PRODUCT: &str = "(Clearway)";

/// The result of a query: the columns' names, and the rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResultSet {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows; `None` is NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl ResultSet {
    /// A value of the first row, as text; `None` if there is none.
    pub fn text(&self, column: &str) -> Option<&str> {
        let number = self.columns.iter().position(|name| name == column)?;
        let value = self.rows.first()?.get(number)?.as_deref()?;
        std::str::from_utf8(value).ok()
    }
}

/// The database of a replication connection in start-up messages and password files.
const REPLICATION: &str = "replication";

/// A connection.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    address: String,
    buffer: ReadBuffer,
    /// Length of the message at the buffer's front, in bytes.
    expected: usize,
    out: BytesMut,
    stop: StopSignal,
    /// Rule 1.
    timeout: Duration,
    version: String,
}

impl Client {
    /// Connects for replication, and makes sure that it is a server of ours.
    pub fn connect(info: &ConnInfo, timeout: Duration, stop: &StopSignal) -> Result<Client> {
        let client = Client::open(info, None, timeout, stop)?;
        if !client.version.ends_with(PRODUCT) {
            return Err(ReceiverError::NotClearway {
                address: client.address,
                version: client.version,
            });
        }
        Ok(client)
    }

    /// Connects for a session in the database of `info`, or in that with the user's name, as libpq does.
    pub fn connect_session(info: &ConnInfo, timeout: Duration, stop: &StopSignal) -> Result<Client> {
        let database = info.database.as_ref().unwrap_or(&info.user);
        Client::open(info, Some(database), timeout, stop)
    }

    fn open(info: &ConnInfo, session: Option<&str>, timeout: Duration, stop: &StopSignal) -> Result<Client> {
        let patience = info.connect_timeout.unwrap_or(timeout);
        let (socket, address) = connect::open(info, patience, stop)?;
        let mut client = Client {
            socket,
            address,
            buffer: ReadBuffer::new(READ_BYTES),
            expected: HEADER_BYTES,
            out: BytesMut::new(),
            stop: stop.clone(),
            timeout: patience,
            version: String::new(),
        };
        if client.socket.peer().is_some() {
            client.encrypt(info)?;
        }
        client.start_up(info, session)?;
        client.timeout = timeout;
        Ok(client)
    }

    /// Asks for TLS and shakes hands, as `sslmode` says.
    fn encrypt(&mut self, info: &ConnInfo) -> Result<()> {
        if info.tls.mode == SslMode::Disable {
            return Ok(());
        }
        self.out.extend_from_slice(&startup::TLS_REQUEST);
        self.flush()?;
        let deadline = Instant::now() + self.timeout;
        // One byte and no more: what else has arrived would come from a machine in the middle, in clear.
        let mut answer = [0; 1];
        loop {
            match self.socket.receive_now(&mut answer) {
                Ok(Some(0)) => {
                    return Err(ReceiverError::Closed {
                        address: self.address.clone(),
                    });
                }
                Ok(Some(_)) => break,
                Ok(None) if self.wait_readable(deadline)? => {}
                Ok(None) => return Err(self.silent()),
                Err(error) => return Err(self.lost(error)),
            }
        }
        match answer[0] {
            b'S' => {}
            b'N' if info.tls.mode < SslMode::Require => return Ok(()),
            b'N' => return Err(self.tls("the server does not speak TLS, and sslmode asks for it")),
            // Its words are not read: a machine in the middle could have written them.
            b'E' => {
                return Err(
                    self.tls("the server has refused it before it was encrypted, as one that is full does")
                );
            }
            _ => return Err(self.broken("the request for TLS was not answered")),
        }
        let config = info.tls.config().map_err(|error| self.tls(error))?;
        let name = match info.host_text.parse::<IpAddr>() {
            Ok(address) => ServerName::from(address),
            Err(_) => ServerName::try_from(info.host_text.clone()).map_err(|error| self.tls(error))?,
        };
        let connection = ClientConnection::new(Arc::new(config), name).map_err(|error| self.tls(error))?;
        let stop = &self.stop;
        let may_wait = |socket: &_| match wait(Some(socket), PollFlags::IN, deadline, stop)? {
            true => Ok(()),
            false => Err(std::io::ErrorKind::TimedOut.into()),
        };
        let shaken = self.socket.shake_hands(connection, Vec::new(), may_wait);
        shaken.map_err(|error| match self.stop.is_stopped() {
            true => ReceiverError::Stopped,
            false => self.tls(error),
        })
    }

    /// An error of TLS.
    fn tls(&self, problem: impl ToString) -> ReceiverError {
        ReceiverError::Tls {
            address: self.address.clone(),
            problem: problem.to_string(),
        }
    }

    /// The hash of the server's certificate, if it has one to bind a login to.
    fn end_point(&self) -> Option<Vec<u8>> {
        let certificate = self.socket.tls()?.with(|connection| {
            let certificates = connection.peer_certificates()?;
            Some(certificates.first()?.to_vec())
        })?;
        end_point_hash(&certificate)
    }

    fn start_up(&mut self, info: &ConnInfo, session: Option<&str>) -> Result<()> {
        // PostgreSQL's standbys name a database, too.
        let database = session.unwrap_or(REPLICATION);
        let parameters = [
            ("user", info.user.as_str()),
            ("database", database),
            ("application_name", &info.application_name),
        ];
        let replication = session.is_none().then_some(("replication", "true"));
        let mut body = BytesMut::new();
        body.put_u32(3 << 16);
        for (name, value) in parameters.into_iter().chain(replication) {
            put_string(&mut body, name);
            put_string(&mut body, value);
        }
        body.put_u8(0);
        self.out.put_u32(body.len() as u32 + 4);
        self.out.extend_from_slice(&body);
        self.flush()?;
        let mut login: Option<Login> = None;
        loop {
            let frame = self.receive()?;
            match self.decode(&frame)? {
                Message::Authentication(0) if login.as_ref().is_some_and(|login| !login.is_proved()) => {
                    return Err(self.broken("the server has not proved that it knows the password"));
                }
                Message::Authentication(0)
                    if info.tls.binding == BindingMode::Require
                        && login.as_ref().is_none_or(|login| !login.is_bound()) =>
                {
                    return Err(self.tls("the login was not bound to the server's certificate, and channel_binding asks for it"));
                }
                Message::Authentication(0) => {}
                Message::Sasl { step, data } => {
                    let answer = self.answer(info, database, &mut login, step, data)?;
                    self.put_password(&answer);
                    self.flush()?;
                }
                Message::Authentication(method) => {
                    let address = self.address.clone();
                    return Err(ReceiverError::Authentication { address, method });
                }
                Message::Error(report) => return Err(self.refused(report)),
                Message::ReadyForQuery => return Ok(()),
                other => return Err(self.unexpected(&other, "while the connection is made")),
            }
        }
    }

    /// The answer to a step of a login by password; nothing for the last.
    fn answer(
        &self,
        info: &ConnInfo,
        database: &str,
        login: &mut Option<Login>,
        step: u32,
        data: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let failed = |error: std::io::Error| self.broken(format!("the login by password: {error}"));
        match (step, login.as_mut()) {
            (10, None) => {
                let end_point = match info.tls.binding {
                    BindingMode::Disable => None,
                    _ => self.end_point(),
                };
                let begun = info
                    .password(database)?
                    .and_then(|password| Login::begin(&password, data, end_point));
                let begun = begun.ok_or_else(|| ReceiverError::Authentication {
                    address: self.address.clone(),
                    method: step,
                })?;
                Ok(Some(login.insert(begun).first()))
            }
            (11, Some(login)) => login.last(data).map(Some).map_err(failed),
            (12, Some(login)) => login.finish(data).map(|()| None).map_err(failed),
            _ => Err(self.broken("a step of a login that was not begun")),
        }
    }

    fn put_password(&mut self, body: &Option<Vec<u8>>) {
        if let Some(body) = body {
            self.out.put_u8(b'p');
            self.out.put_u32(body.len() as u32 + 4);
            self.out.extend_from_slice(body);
        }
    }

    /// The server, as it is called in messages.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// An error of the protocol.
    pub(super) fn broken(&self, problem: impl Into<String>) -> ReceiverError {
        ReceiverError::Protocol {
            address: self.address.clone(),
            problem: problem.into(),
        }
    }

    /// The sink has not taken log that this server has sent.
    pub(super) fn not_written(&self, error: StorageError) -> ReceiverError {
        match error {
            StorageError::DamagedRecord { position } => ReceiverError::Damaged {
                address: self.address.clone(),
                position,
                attempt: 1,
            },
            StorageError::UnlinkedRecord { position } => ReceiverError::Unlinked {
                address: self.address.clone(),
                position,
            },
            error => error.into(),
        }
    }

    pub(super) fn unexpected(&self, message: &Message<'_>, when: &str) -> ReceiverError {
        // Not what is in it: that may be long.
        let text = format!("{message:?}");
        let name = text.split([' ', '(', '{']).next().unwrap_or_default();
        self.broken(format!("a message {name} {when}"))
    }

    pub(super) fn refused(&self, report: backend::Report) -> ReceiverError {
        ReceiverError::Server {
            address: self.address.clone(),
            report: Box::new(report),
        }
    }

    fn wire(&self, error: &WireError) -> ReceiverError {
        ReceiverError::wire(&self.address, error)
    }

    fn lost(&self, source: std::io::Error) -> ReceiverError {
        if self.stop.is_stopped() {
            return ReceiverError::Stopped;
        }
        ReceiverError::Lost {
            address: self.address.clone(),
            source,
        }
    }

    fn silent(&self) -> ReceiverError {
        ReceiverError::Silent {
            address: self.address.clone(),
            patience: self.timeout,
        }
    }

    /// The message in a frame.
    pub(super) fn decode(&self, frame: &Frame) -> Result<Message<'_>> {
        backend::decode(frame.kind, self.buffer.body(frame)).map_err(|error| self.wire(&error))
    }

    /// The next message that has arrived, if there is one. Those that may come at any time are acted on and skipped.
    pub(super) fn next_buffered(&mut self) -> Result<Option<Frame>> {
        loop {
            let split = backend::split(self.buffer.filled()).map_err(|error| self.wire(&error))?;
            let frame = match split {
                Split::NeedMore(total) => {
                    self.expected = total;
                    return Ok(None);
                }
                Split::Frame(frame) => self.buffer.consume_frame(frame),
            };
            if !matches!(frame.kind, b'S' | b'N' | b'A' | b'K' | b'v') {
                return Ok(Some(frame));
            }
            let mut version = None;
            match self.decode(&frame)? {
                Message::ParameterStatus {
                    name: "server_version",
                    value,
                } => version = Some(value.to_owned()),
                Message::Notice(report) => debug!(server = self.address, "{report}"),
                _ => {}
            }
            if let Some(version) = version {
                self.version = version;
            }
        }
    }

    /// Reads what there is, without waiting: whether there was anything.
    pub(super) fn fill_now(&mut self) -> Result<bool> {
        if self.stop.is_stopped() {
            return Err(ReceiverError::Stopped);
        }
        let room = self.buffer.room(self.expected);
        match self.socket.receive_now(room) {
            Ok(None) => Ok(false),
            Ok(Some(0)) => Err(ReceiverError::Closed {
                address: self.address.clone(),
            }),
            Ok(Some(count)) => {
                self.buffer.arrived(count);
                Ok(true)
            }
            Err(error) => Err(self.lost(error)),
        }
    }

    /// Waits until something has arrived, which is whether it has, or until `deadline`. Only for a caller that has read all
    /// there was ([`fill_now`](Self::fill_now)): what is decrypted and not read shows in no poll.
    pub(super) fn wait_readable(&self, deadline: Instant) -> Result<bool> {
        wait(Some(&self.socket), PollFlags::IN, deadline, &self.stop).map_err(|error| self.lost(error))
    }

    /// The next message; rule 1.
    pub(super) fn receive(&mut self) -> Result<Frame> {
        self.receive_within(Some(self.timeout))
    }

    /// The next message, however long it takes: the command may have much to do before it answers.
    pub(super) fn receive_patiently(&mut self) -> Result<Frame> {
        self.receive_within(None)
    }

    fn receive_within(&mut self, patience: Option<Duration>) -> Result<Frame> {
        loop {
            if let Some(frame) = self.next_buffered()? {
                return Ok(frame);
            }
            while !self.fill_now()? {
                let far = Duration::from_secs(3_600);
                let arrived = self.wait_readable(Instant::now() + patience.unwrap_or(far))?;
                if !arrived && patience.is_some() {
                    return Err(self.silent());
                }
            }
        }
    }

    /// Messages to send with the next [`flush`](Self::flush).
    pub(super) fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Writes out what has gathered.
    pub(super) fn flush(&mut self) -> Result<()> {
        while !self.out.is_empty() {
            match self.socket.send_now(&self.out) {
                Ok(0) => {
                    let deadline = Instant::now() + self.timeout;
                    let writable = wait(Some(&self.socket), PollFlags::OUT, deadline, &self.stop);
                    if !writable.map_err(|error| self.lost(error))? {
                        return Err(self.silent());
                    }
                }
                Ok(count) => self.out.advance(count),
                Err(error) => return Err(self.lost(error)),
            }
        }
        Ok(())
    }

    fn send_query(&mut self, text: &str) -> Result<()> {
        self.out.put_u8(b'Q');
        self.out.put_u32(text.len() as u32 + 5);
        put_string(&mut self.out, text);
        self.flush()
    }

    /// Executes a command that has no stream.
    pub fn query(&mut self, text: &str) -> Result<Vec<ResultSet>> {
        self.query_within(text, false)
    }

    /// As [`query`](Self::query), however long it takes: the command may have much to do before it answers.
    pub fn query_patiently(&mut self, text: &str) -> Result<Vec<ResultSet>> {
        self.query_within(text, true)
    }

    fn query_within(&mut self, text: &str, patiently: bool) -> Result<Vec<ResultSet>> {
        self.send_query(text)?;
        let (results, end) = self.results(patiently)?;
        match end {
            End::Ready => Ok(results),
            End::Copy(frame) => Err(self.unexpected(&self.decode(&frame)?, "as the answer to a query")),
        }
    }

    /// Executes a command that begins a stream; the results before it.
    pub(super) fn begin_stream(&mut self, text: &str, both_ways: bool) -> Result<Vec<ResultSet>> {
        // A backup begins with a checkpoint.
        self.begin_stream_within(text, both_ways, !both_ways)
    }

    /// As [`begin_stream`](Self::begin_stream); `patiently`: however long it takes.
    pub(super) fn begin_stream_within(
        &mut self,
        text: &str,
        both_ways: bool,
        patiently: bool,
    ) -> Result<Vec<ResultSet>> {
        self.send_query(text)?;
        let (results, end) = self.results(patiently)?;
        match end {
            End::Copy(frame) => match (self.decode(&frame)?, both_ways) {
                (Message::CopyBoth, true) | (Message::CopyOut, false) => Ok(results),
                (other, _) => Err(self.unexpected(&other, "where a stream should begin")),
            },
            End::Ready => Err(self.broken("the command has ended without a stream")),
        }
    }

    /// The results up to the end of a command, of what is left of it.
    pub(super) fn rest_of_command(&mut self) -> Result<Vec<ResultSet>> {
        let (results, end) = self.results(false)?;
        match end {
            End::Ready => Ok(results),
            End::Copy(frame) => Err(self.unexpected(&self.decode(&frame)?, "behind the end of a stream")),
        }
    }

    /// Reads results until the command has ended or a stream begins. An error of the server is one of this call, once the
    /// server takes commands again or has closed the connection.
    fn results(&mut self, patiently: bool) -> Result<(Vec<ResultSet>, End)> {
        let mut results: Vec<ResultSet> = Vec::new();
        let mut failed = None;
        let mut bytes = 0;
        loop {
            let received = match patiently {
                true => self.receive_patiently(),
                false => self.receive(),
            };
            let frame = match (received, failed) {
                (Ok(frame), report) => {
                    failed = report;
                    frame
                }
                (Err(_), Some(report)) => return Err(self.refused(report)),
                (Err(error), None) => return Err(error),
            };
            bytes += frame.body.len();
            if bytes > RESULT_BYTES_MAX {
                return Err(self.broken(format!("a result of more than {RESULT_BYTES_MAX} bytes")));
            }
            match self.decode(&frame)? {
                Message::RowDescription(names) => results.push(ResultSet {
                    columns: names.into_iter().map(str::to_owned).collect(),
                    rows: Vec::new(),
                }),
                Message::DataRow(values) => {
                    let row = values
                        .into_iter()
                        .map(|value| value.map(<[u8]>::to_vec))
                        .collect();
                    match results.last_mut() {
                        Some(result) => result.rows.push(row),
                        None => return Err(self.broken("a row without the names of its columns")),
                    }
                }
                Message::CommandComplete(_) | Message::Ignored => {}
                Message::Error(report) => {
                    let report = failed.unwrap_or(report);
                    if report.severity == "FATAL" {
                        return Err(self.refused(report));
                    }
                    failed = Some(report);
                }
                Message::ReadyForQuery => {
                    return match failed {
                        Some(report) => Err(self.refused(report)),
                        None => Ok((results, End::Ready)),
                    };
                }
                Message::CopyOut | Message::CopyBoth => return Ok((results, End::Copy(frame))),
                other => return Err(self.unexpected(&other, "among the results of a command")),
            }
        }
    }

    /// The bytes of a piece of a stream, from the `from`th on.
    pub(super) fn body(&self, frame: &Frame) -> &[u8] {
        self.buffer.body(frame)
    }
}

/// The end of a command's results.
enum End {
    Ready,
    /// A stream begins, with this message.
    Copy(Frame),
}

/// A string with its zero byte. None can be inside: connection strings with one are refused, and commands have none.
fn put_string(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

/// A name in a command.
pub(super) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\"").replace('\0', ""))
}

/// A text in a command.
pub(super) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''").replace('\0', ""))
}
