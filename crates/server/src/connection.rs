//! One client, from its first packet to its last.
//!
//! ```text
//!   first packet ─▶ TLS asked for, or begun? shake hands, and read again; GSSAPI: decline
//!        │        ─▶ cancel request? act, close without an answer
//!        ▼
//!   pg_hba.conf ─▶ the client proves who it is (AuthenticationSASL…)
//!        ▼
//!   session ─▶ AuthenticationOk, ParameterStatus…, BackendKeyData, ReadyForQuery
//!        ▼
//!   message loop ─▶ Query ─▶ run, ReadyForQuery
//!                ─▶ Parse, Bind, Describe, Execute, Close, Flush   (after an error: skipped up to Sync)
//!                ─▶ Sync ─▶ end the implicit transaction, ReadyForQuery
//!                ─▶ Terminate, end of stream, or a broken frame ─▶ the session is dropped
//! ```

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use clearway_engine::output::{Notice, NoticesOnly};
use clearway_engine::server_log::{host, session_of_thread};
use clearway_engine::{Engine, EngineError, Session, SessionInfo, SqlState, TransactionStatus, memory};
use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_txn::Wake;
use tracing::{debug, info, warn};

use crate::authentication::{Login, Refusal, authenticate};
use crate::channel::Channel;
use crate::codec::{self, ResultFormats, Scratch};
use crate::encryption;
use crate::extended::{Extended, PortalName};
use crate::reader::ReadError;
use crate::registry::{Presence, Registration};
use crate::replication::{self, Replication};
use crate::responder::Responder;
use crate::shared::{Place, Shared, end, shutting_down, too_many, wire_error};
use crate::socket::Socket;
use crate::wake::{Event, Woken};
use crate::wire::frontend::{self, Message};
use crate::wire::startup::{self, Startup};
use crate::writer::WriteBuffer;

/// As many times its length may a message have in memory while it is read.
const MESSAGE_COPIES: usize = 3;

/// Connections beyond the limit that may still send their first message: a cancel request needs no session,
/// and a client that is turned away must learn why.
const EXTRA_CONNECTIONS: usize = 64;

/// Bytes of notifications that are gathered before they are sent.
const TOLD_AT_ONCE_BYTES: usize = 64 << 10;

/// Serves a connection on a thread of its own.
pub(crate) fn spawn(shared: Arc<Shared>, engine: Option<Arc<Engine>>, socket: Socket, stack_bytes: usize) {
    let socket = Arc::new(socket);
    let presence = Arc::new(Presence::new(Arc::clone(&socket)));
    let limit = shared.sessions_max.saturating_add(EXTRA_CONNECTIONS);
    let Some(registration) = shared.registry.enter(Arc::clone(&presence), limit) else {
        let error = if shared.registry.is_stopping() {
            shutting_down()
        } else {
            too_many()
        };
        Channel::new(socket, presence, shared.message_bytes_max).fatal(&error);
        return;
    };
    let refused = Arc::clone(&socket);
    let message_bytes_max = shared.message_bytes_max;
    let builder = std::thread::Builder::new()
        .name("clearway session".to_owned())
        .stack_size(stack_bytes);
    if let Err(error) = memory::require_thread(stack_bytes) {
        drop(registration);
        Channel::new(socket, presence, shared.message_bytes_max).fatal(&error);
        return;
    }
    let spawned = builder.spawn(move || {
        shared.registry.has_thread(&presence);
        let mut channel = Channel::new(socket, presence, message_bytes_max);
        channel.out.deadline.clone_from(&shared.answer_deadline);
        serve_guarded(&shared, engine, &mut channel, registration);
        drop(channel);
        memory::thread_ends();
    });
    if let Err(error) = spawned {
        warn!("cannot start a thread for a connection: {error}");
        let presence = Arc::new(Presence::new(Arc::clone(&refused)));
        Channel::new(refused, presence, message_bytes_max).fatal(&EngineError::new(
            SqlState::OUT_OF_MEMORY,
            format!("could not start a session: {error}"),
        ));
    }
}

/// Serves, and if that panics tells the client before the connection is closed; the unwinding has dropped the session.
fn serve_guarded(
    shared: &Shared,
    engine: Option<Arc<Engine>>,
    channel: &mut Channel,
    registration: Registration,
) {
    let served = std::panic::catch_unwind(AssertUnwindSafe(|| serve(shared, engine, channel, &registration)));
    if served.is_err() {
        // Half a message may be in the buffer. If half of it has left, nothing can be said any more.
        let is_broken = channel.out.is_broken();
        channel.out = WriteBuffer::new();
        channel.out.broken = is_broken;
        channel.out.deadline.clone_from(&shared.answer_deadline);
        channel.fatal(&EngineError::internal(
            "the session failed; its transaction has been rolled back",
        ));
    }
    drop(registration);
}

fn serve(shared: &Shared, engine: Option<Arc<Engine>>, channel: &mut Channel, registration: &Registration) {
    let logs = engine.as_ref().is_some_and(|engine| engine.logs_connections());
    if logs {
        info!("connection received: host={}", host(channel.socket.peer()));
    }
    channel
        .reader
        .set_deadline(Some(Instant::now() + shared.authentication_timeout));
    let (minor, parameters) = loop {
        match channel.reader.startup(&channel.socket, &channel.presence) {
            Ok(asked @ (Startup::Tls | Startup::Handshake | Startup::Gssapi)) => {
                match encryption::agree(shared, channel, &asked) {
                    Ok(()) => {}
                    Err(Refusal::Error(error)) => return channel.fatal(&error),
                    Err(Refusal::Read(error)) => return end(channel, shared, &error),
                }
            }
            Ok(Startup::Cancel { process_id, secret }) => {
                if let Some(engine) = &engine {
                    let known = engine.cancel(process_id, secret);
                    debug!(process_id, known, "cancel request");
                }
                return;
            }
            Ok(Startup::Session { minor, parameters }) => break (minor, parameters),
            Err(error) => return end(channel, shared, &error),
        }
    };
    let Some(engine) = engine else {
        return channel.fatal(&EngineError::new(
            SqlState::CANNOT_CONNECT_NOW,
            "the database system is starting up",
        ));
    };
    let mut replicates = false;
    let opened = open(
        shared,
        &engine,
        channel,
        registration,
        minor,
        parameters,
        &mut replicates,
    );
    if logs && let Ok((session, _)) = &opened {
        log_authorized(session, channel, replicates);
    }
    let _place = match opened {
        Ok((session, place)) if replicates => {
            let timeout = engine.config().wal_sender_timeout.duration();
            Replication::new(session, Arc::clone(engine.storage()), timeout).run(shared, channel);
            place
        }
        Ok((session, place)) => {
            Connection::new(session).run(shared, channel);
            place
        }
        Err(Refusal::Error(error)) => return channel.fatal(&error),
        Err(Refusal::Read(error)) => return end(channel, shared, &error),
    };
}

/// Tells the log of a client that has a session.
fn log_authorized(session: &Session, channel: &Channel, replicates: bool) {
    let Some(logged) = session_of_thread() else { return };
    let mut told = match replicates {
        true => format!("replication connection authorized: user={}", logged.user),
        false => format!(
            "connection authorized: user={} database={}",
            logged.user, logged.database
        ),
    };
    if let Some(name) = session
        .setting("application_name")
        .filter(|name| !name.is_empty())
    {
        told += &format!(" application_name={name}");
    }
    if let Some(encryption) = encryption::described(channel) {
        told += &format!(
            " SSL enabled (protocol={}, cipher={}, bits={})",
            encryption.version, encryption.cipher, encryption.bits
        );
    }
    info!("{told}");
}

/// Opens the session and greets the client.
fn open<'s>(
    shared: &'s Shared,
    engine: &Arc<Engine>,
    channel: &mut Channel,
    registration: &Registration,
    minor: u16,
    parameters: Vec<(String, String)>,
    replicates: &mut bool,
) -> Result<(Session, Place<'s>), Refusal> {
    let mut info = SessionInfo {
        client_address: channel.socket.peer(),
        server_address: channel.socket.own_address(),
        encryption: encryption::described(channel),
        ..Default::default()
    };
    let mut unknown_options = Vec::new();
    let refuse = |sqlstate, message: String| Err(EngineError::new(sqlstate, message).into());
    for (name, value) in parameters {
        match name.as_str() {
            "user" => info.user = value,
            "database" => info.database = value,
            "replication" => *replicates = replication::is_wanted(&value)?,
            "options" => match startup::parse_options(&value) {
                Ok(settings) => info.settings.extend(settings),
                Err(message) => return refuse(SqlState::SYNTAX_ERROR, message),
            },
            _ if name.starts_with("_pq_.") => unknown_options.push(name),
            _ => info.settings.push((name, value)),
        }
    }
    if info.user.is_empty() {
        return refuse(
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "no PostgreSQL user name specified in startup packet".to_owned(),
        );
    }
    if *replicates {
        // It is about the whole data directory: programs name "replication", or nothing.
        info.database.clear();
    } else if info.database.is_empty() {
        info.database = info.user.clone();
    }
    let login = Login {
        user: &info.user,
        database: (!*replicates).then_some(info.database.as_str()),
    };
    authenticate(shared, engine, channel, login)?;
    let place = shared.take_place(engine.is_superuser(&info.user) && !*replicates)?;
    registration.has_logged_in();
    let mut session = engine.session(info)?;
    if *replicates {
        session.require_replication()?;
    }
    session.adopt_thread();
    let event = Arc::clone(&channel.event);
    session.wake_by(move || listening_event(&event));
    let presence = Arc::clone(&channel.presence);
    session.end_connection_by(move || presence.end_connection());
    channel.out.gate = Some(session.answer_gate());
    channel.watch = Some(session.statement_watch());
    let out = &mut channel.out.bytes;
    if minor > startup::MINOR_VERSION || !unknown_options.is_empty() {
        codec::negotiate_protocol_version(out, startup::MINOR_VERSION, unknown_options);
    }
    codec::authentication_ok(out);
    for (name, value) in session.reported_settings() {
        codec::parameter_status(out, name, &value);
    }
    let (process_id, secret) = session.cancel_key();
    codec::backend_key_data(out, process_id, secret);
    codec::ready_for_query(out, TransactionStatus::Idle);
    channel.flush();
    if channel.out.is_broken() {
        // It was fenced, or the client has gone.
        return Err(Refusal::Read(ReadError::Closed));
    }
    channel.reader.set_deadline(None);
    channel.socket.set_receive_timeout(None);
    channel
        .presence
        .has_session(Arc::clone(engine), process_id, secret);
    Ok((session, place))
}

/// A client that has a session.
struct Connection {
    session: Session,
    extended: Extended,
    scratch: Scratch,
    /// The text of the running simple query: the read buffer is needed for COPY data.
    sql: String,
    /// After an error in the extended protocol: nothing counts until Sync.
    skipping: bool,
    /// True if ReadyForQuery was the last that was sent: the client's turn has begun.
    ready: bool,
}

impl Connection {
    fn new(session: Session) -> Connection {
        Connection {
            session,
            extended: Extended::default(),
            scratch: Scratch::default(),
            sql: String::new(),
            skipping: false,
            ready: true,
        }
    }

    fn run(mut self, shared: &Shared, channel: &mut Channel) {
        loop {
            if self.session.listens()
                && self.ready
                && let Err(fatal) = self.tell_while_idle(channel)
            {
                return channel.fatal(&fatal);
            }
            let limit = self.limit_silence(channel);
            let next = channel.reader.next(&channel.socket, &channel.presence);
            if let Some(error) = limit {
                channel.socket.set_receive_timeout(None);
                if matches!(&next, Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock)
                {
                    return channel.fatal(&error);
                }
            }
            let error = match next {
                Ok(frame) => match self.message(channel, &frame) {
                    Ok(true) => match channel.ended.take() {
                        None if channel.out.is_broken() => ReadError::Closed,
                        None => continue,
                        Some(error) => error,
                    },
                    Ok(false) => return,
                    Err(fatal) => return channel.fatal(&fatal),
                },
                Err(ReadError::Refused { kind, error }) => match self.refuse(channel, kind, &error) {
                    Ok(()) => continue,
                    Err(fatal) => return channel.fatal(&fatal),
                },
                Err(error) => error,
            };
            if self.session.is_terminated() {
                return channel.fatal(&shutting_down());
            }
            return end(channel, shared, &error);
        }
    }

    /// Before a read that may wait for the client's next command: limits how long, if the session has a
    /// limit. The error for a client that is silent for longer.
    ///
    /// The limit ends with the read: COPY reads too, and a client may take its time over that.
    fn limit_silence(&self, channel: &Channel) -> Option<EngineError> {
        if !self.ready || channel.reader.has_buffered() {
            return None;
        }
        let (limit, error) = self.session.idle_limit()?;
        channel.socket.set_receive_timeout(Some(limit));
        Some(error)
    }

    /// Handles one message; whether to go on, or the error that ends the connection.
    fn message(
        &mut self,
        channel: &mut Channel,
        frame: &crate::wire::frame::Frame,
    ) -> Result<bool, EngineError> {
        if self.skipping && !matches!(frame.kind, b'S' | b'X') {
            return Ok(true);
        }
        self.ready = false;
        let proceed = self.dispatch(channel, frame)?;
        // A client may send any number of messages before it reads: what they are answered must not gather.
        let bounded = channel.out.flush_if_full(&channel.socket);
        if let Err(error) = bounded
            && !channel.out.is_broken()
        {
            self.report_in_place(channel, &error)?;
        }
        Ok(proceed)
    }

    fn dispatch(
        &mut self,
        channel: &mut Channel,
        frame: &crate::wire::frame::Frame,
    ) -> Result<bool, EngineError> {
        // Of a text one or two copies are made, and of a Bind its values.
        let decoded = memory::require(MESSAGE_COPIES * frame.body.len()).and_then(|()| {
            frontend::decode(frame.kind, channel.reader.body(frame)).map_err(|error| wire_error(&error))
        });
        let message = match decoded {
            Ok(message) => message,
            Err(error) => return self.refuse(channel, frame.kind, &error).map(|()| true),
        };
        match message {
            Message::Query(sql) => {
                self.sql.clear();
                self.sql.push_str(sql);
                self.simple_query(channel)?;
            }
            Message::Parse(parse) => {
                let mut notices = NoticesOnly(|notice: &Notice| {
                    codec::notice(&mut channel.out.bytes, notice);
                    Ok(())
                });
                let outcome = self.extended.parse(&mut self.session, &parse, &mut notices);
                self.answer(channel, outcome, codec::parse_complete)?;
            }
            Message::Bind(bind) => {
                let outcome = self.extended.bind(&mut self.session, &bind);
                self.answer(channel, outcome, codec::bind_complete)?;
            }
            Message::Describe(target) => {
                let outcome = self
                    .extended
                    .describe(&self.session, target, &mut channel.out.bytes);
                self.answer(channel, outcome, |_| {})?;
            }
            Message::Execute { portal, max_rows } => {
                let portal = self.extended.find(&self.session, portal);
                self.execute(channel, portal, max_rows)?;
            }
            Message::Close(target) => {
                self.extended.close(&mut self.session, target);
                codec::close_complete(&mut channel.out.bytes);
            }
            Message::Flush => match channel.flush_answers() {
                Ok(()) => self.session.answers_have_left(),
                Err(error) => self.report_in_place(channel, &error)?,
            },
            Message::Sync => self.sync(channel)?,
            // What is left of a COPY that failed: the client had not heard of it yet.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => {}
            Message::FunctionCall => {
                self.report(
                    channel,
                    &EngineError::not_supported("the function call protocol"),
                    false,
                )?;
                self.ready(channel);
            }
            Message::Password => {
                return Err(EngineError::new(
                    SqlState::PROTOCOL_VIOLATION,
                    "unexpected password message: none was asked for",
                ));
            }
            Message::Terminate => return Ok(false),
        }
        Ok(true)
    }

    /// Answers a message of this kind, which cannot be handled, with an error.
    #[cold]
    fn refuse(&mut self, channel: &mut Channel, kind: u8, error: &EngineError) -> Result<(), EngineError> {
        if self.skipping && !matches!(kind, b'S' | b'X') {
            return Ok(());
        }
        let extended = matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H');
        self.report(channel, error, extended)?;
        if matches!(kind, b'Q' | b'F' | b'S') {
            self.ready(channel);
        }
        Ok(())
    }

    /// Runs the statements of a simple query, which are in `sql`.
    fn simple_query(&mut self, channel: &mut Channel) -> Result<(), EngineError> {
        self.extended.forget_unnamed();
        let formats = ResultFormats::Text;
        let mut responder = Responder::new(channel, &formats, &mut self.scratch);
        if let Err(error) = self.session.execute_simple(&self.sql, &mut responder) {
            self.report(channel, &error, false)?;
        }
        self.forget_gone_portals();
        if self.session.transaction_status() == TransactionStatus::Idle {
            self.extended.forget_portals(&mut self.session);
        }
        if self.sql.capacity() > 64 << 10 {
            self.sql = String::new();
        }
        self.ready(channel);
        Ok(())
    }

    /// Runs a portal, or goes on with it.
    fn execute(
        &mut self,
        channel: &mut Channel,
        portal: Result<PortalName, EngineError>,
        max_rows: u32,
    ) -> Result<(), EngineError> {
        let outcome = portal.and_then(|portal| {
            self.extended
                .execute(&mut self.session, portal, max_rows, channel, &mut self.scratch)
        });
        self.forget_gone_portals();
        outcome.or_else(|error| self.report(channel, &error, true))
    }

    #[inline]
    fn forget_gone_portals(&mut self) {
        if let Some(made) = self.session.take_gone_portals() {
            self.extended.forget_portals_from(made);
        }
    }

    /// Ends a series of messages of the extended protocol.
    fn sync(&mut self, channel: &mut Channel) -> Result<(), EngineError> {
        self.skipping = false;
        let formats = ResultFormats::Text;
        let mut responder = Responder::new(channel, &formats, &mut self.scratch);
        if let Err(error) = self.session.sync_to(&mut responder) {
            self.report(channel, &error, false)?;
        }
        if self.session.transaction_status() == TransactionStatus::Idle {
            self.extended.forget_portals(&mut self.session);
        }
        self.ready(channel);
        Ok(())
    }

    fn answer(
        &mut self,
        channel: &mut Channel,
        outcome: Result<(), EngineError>,
        acknowledge: impl FnOnce(&mut bytes::BytesMut),
    ) -> Result<(), EngineError> {
        match outcome {
            Ok(()) => {
                acknowledge(&mut channel.out.bytes);
                Ok(())
            }
            Err(error) => self.report(channel, &error, true),
        }
    }

    /// Sends an error; gives it back if it ends the connection.
    ///
    /// In the extended protocol it leaves at once. The messages after it are skipped up to Sync, a Flush among them
    /// too, so a client that sent Parse, Describe, Flush and now reads would otherwise wait for ever.
    fn report(
        &mut self,
        channel: &mut Channel,
        error: &EngineError,
        extended: bool,
    ) -> Result<(), EngineError> {
        if error.sqlstate() == SqlState::ADMIN_SHUTDOWN {
            return Err(error.clone());
        }
        // The session has seen to it if the error is its own; a message that cannot be read, or a name or parameter
        // that the protocol looks for in vain, is not.
        self.session.fail_transaction();
        self.session.log_error(error);
        if channel.ended.is_none() {
            codec::error(&mut channel.out.bytes, "ERROR", error);
            if extended && let Err(stopped) = channel.flush_answers() {
                self.report_in_place(channel, &stopped)?;
            }
        }
        self.skipping = extended;
        Ok(())
    }

    /// Sends `error` in the place of answers that were not to leave: those of a pipeline before its Sync.
    #[cold]
    fn report_in_place(&mut self, channel: &mut Channel, error: &EngineError) -> Result<(), EngineError> {
        self.session.give_up_answers();
        self.report(channel, error, true)
    }

    /// Waits for the client, and tells it meanwhile of what it listens for. An error ends the connection.
    #[cold]
    fn tell_while_idle(&mut self, channel: &mut Channel) -> Result<(), EngineError> {
        while !channel.reader.has_buffered() && !channel.out.is_broken() {
            if let Err(error) = self.tell(channel) {
                if error.sqlstate() == SqlState::ADMIN_SHUTDOWN {
                    return Err(error);
                }
                // A request to cancel that came when there was nothing to be canceled: it has had its effect.
                self.session.give_up_answers();
                continue;
            }
            let Some(event) = channel.event.get() else {
                return Ok(());
            };
            let limit = self.session.idle_limit();
            let patience = limit.as_ref().map(|(patience, _)| *patience);
            let _wait = WaitScope::<Native>::enter(WaitEvent::ClientRead);
            channel.presence.waiting();
            let woken = event.wait(&channel.socket, patience);
            channel.presence.working();
            match (woken, limit) {
                (Ok(Woken::Timeout), Some((_, error))) => return Err(error),
                (Ok(Woken::Event | Woken::Timeout), _) => {}
                // The read that follows finds out.
                (Ok(Woken::Client) | Err(_), _) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Sends the notifications that are there. An error: some are not sent, and come again.
    fn tell(&mut self, channel: &mut Channel) -> Result<(), EngineError> {
        loop {
            let told = self.session.notifications(TOLD_AT_ONCE_BYTES)?;
            if told.is_empty() {
                return Ok(());
            }
            for notification in &told {
                codec::notification(&mut channel.out.bytes, notification);
            }
            channel.flush_answers()?;
            self.session.notifications_are_sent();
        }
    }

    /// Drops the answers that have not left, and sends an error in their place.
    #[cold]
    fn give_up(&mut self, channel: &mut Channel, error: &EngineError) {
        self.session.give_up_answers();
        self.session.log_error(error);
        codec::error(&mut channel.out.bytes, "ERROR", error);
    }

    fn ready(&mut self, channel: &mut Channel) {
        self.ready = true;
        if self.session.listens()
            && let Err(error) = self.tell(channel)
        {
            self.give_up(channel, &error);
        }
        codec::ready_for_query(&mut channel.out.bytes, self.session.transaction_status());
        if let Err(error) = channel.flush_answers() {
            self.give_up(channel, &error);
            codec::ready_for_query(&mut channel.out.bytes, self.session.transaction_status());
            channel.flush();
        }
        self.session.answers_have_left();
    }
}

/// The event of a session that begins to listen.
fn listening_event(event: &OnceLock<Arc<Event>>) -> Result<Arc<dyn Wake>, EngineError> {
    let event = match event.get() {
        Some(event) => event,
        None => {
            let made = Event::new().map_err(|error| {
                EngineError::new(
                    SqlState::from_code("53000"),
                    format!("could not make an event to listen with: {error}"),
                )
            })?;
            event.get_or_init(|| Arc::new(made))
        }
    };
    Ok(Arc::clone(event) as Arc<dyn Wake>)
}
