//! Accepting connections, watching them, and shutting down.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clearway_engine::Engine;
use clearway_machine::{Clients, Native};
use clearway_storage::descriptors;
use rustix::event::{PollFd, PollFlags, poll};
use tracing::{info, warn};

use crate::answer_deadline::AnswerDeadline;
use crate::authentication::listed_rules;
use crate::connection;
use crate::error::{Result, ServerError};
use crate::listener::Listeners;
use crate::options::ServerOptions;
use crate::registry::Registry;
use crate::session_scheduling::Scheduling;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::stop::StopSignal;
use crate::tls::TlsFiles;

/// A session's stack. Only the pages that are touched cost memory; deep expressions need some hundred KiB in a debug
/// build.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 1 << 20 };

/// Time that sessions have to notice that the server is stopping before their sockets are closed under them.
const STOP_PATIENCE: Duration = Duration::from_secs(3);

/// A server that holds its sockets and waits for [`run`](Server::run).
#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
    engine: OnceLock<Arc<Engine>>,
    options: ServerOptions,
    /// The number of the options, or less if the process may not have so many files.
    max_connections: usize,
    /// Taken when the server runs.
    tls: Mutex<Option<TlsFiles>>,
    encrypts: bool,
}

impl Server {
    /// Takes the sockets for an engine that is open.
    pub fn bind(engine: Arc<Engine>, options: ServerOptions) -> Result<Server> {
        let server = Server::bind_early(options)?;
        server.ready(engine);
        Ok(server)
    }

    /// Takes the sockets before the engine is open. Until [`ready`](Server::ready) is called, clients are told that
    /// the database is starting (57P03); [`run`](Server::run) may be running already.
    pub fn bind_early(options: ServerOptions) -> Result<Server> {
        let limit = descriptors::raise_limit();
        let shares = descriptors::share(limit, options.max_connections);
        if shares.connections < options.max_connections {
            warn!(
                "the limit of open files is {limit}: only {} connections can be served, not {}; raise it (ulimit -n), or \
                 lower max_connections",
                shares.connections, options.max_connections
            );
        }
        let tls = options.tls.clone().map(TlsFiles::open).transpose()?;
        let listeners = Listeners::bind(&options)?;
        Ok(Server {
            listeners,
            engine: OnceLock::new(),
            max_connections: shares.connections,
            options,
            encrypts: tls.is_some(),
            tls: Mutex::new(tls),
        })
    }

    /// An error if the files of TLS are not good, or the addresses are not what a server may listen on: what
    /// [`bind_early`](Self::bind_early) finds, without taking a socket.
    pub fn check(options: &ServerOptions) -> Result<()> {
        options.tls.clone().map(TlsFiles::open).transpose()?;
        Listeners::check(options)
    }

    /// Gives the server its engine: from now on clients are served. A second call changes nothing.
    pub fn ready(&self, engine: Arc<Engine>) {
        engine.connections_may_be_encrypted(self.encrypts);
        let file = engine.storage().dir().join(&self.options.hba_file);
        engine.set_login_rules(Arc::new(move || listed_rules(&file)));
        let _ = self.engine.set(engine);
    }

    /// The TCP address that is listened on.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listeners.tcp_address()
    }

    /// The Unix-domain socket that is listened on.
    pub fn socket_path(&self) -> Option<&Path> {
        self.listeners.socket_path()
    }

    /// Serves clients until `stop` is given; then ends all sessions, has the engine checkpoint and close, and returns.
    /// After the deadline of its answers it leaves the engine as a crash would, but for the sessions' ends.
    pub fn run(&self, stop: &StopSignal) -> Result<()> {
        let tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shared = Arc::new(Shared::new(&self.options, self.max_connections, tls));
        let watcher = Registry::watch(Arc::clone(&shared.registry), self.options.scheduling)
            .map_err(|error| ServerError::io("starting the connection watcher", error))?;
        let outcome = accept_loop(&self.listeners, self.options.scheduling, stop, |socket| {
            connection::spawn(
                Arc::clone(&shared),
                self.engine.get().cloned(),
                socket,
                STACK_BYTES,
            );
        });
        info!("stopping: {} clients are connected", shared.registry.len());
        shared.registry.stop_all();
        // A server that was fenced logs nothing more: a checkpoint would be log that the new primary does not have.
        let is_fenced = self
            .options
            .answer_deadline
            .as_ref()
            .is_some_and(AnswerDeadline::has_passed);
        let closed = match self.engine.get().filter(|_| !is_fenced) {
            Some(engine) => engine.shutdown().map_err(ServerError::from),
            None => Ok(()),
        };
        shared.registry.wait_until_empty(STOP_PATIENCE);
        drop(watcher);
        outcome.and(closed)
    }
}

/// Hands every accepted connection to `serve` until `stop` is given. The calling thread, and those that it
/// starts, are scheduled as `scheduling` says.
pub(crate) fn accept_loop(
    listeners: &Listeners,
    scheduling: Scheduling,
    stop: &StopSignal,
    mut serve: impl FnMut(Socket),
) -> Result<()> {
    if let Err(error) = Native::set_scheduling(scheduling.sessions.first_policy()) {
        warn!("sessions are scheduled as the kernel does by default: {error}");
    }
    if let Err(error) = Native::set_time_slice(scheduling.time_slice, Clients::OverSocket) {
        warn!("sessions have the kernel's time slice: {error}");
    }
    let mut complained: HashMap<i32, Instant> = HashMap::new();
    while !stop.is_stopped() {
        let mut polled = vec![PollFd::from_borrowed_fd(stop.descriptor(), PollFlags::IN)];
        listeners.for_each(|descriptor| polled.push(PollFd::from_borrowed_fd(descriptor, PollFlags::IN)));
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ServerError::io("waiting for connections", error)),
        }
        if stop.is_stopped() {
            break;
        }
        let ready: Vec<bool> = polled[1..]
            .iter()
            .map(|entry| entry.revents().intersects(PollFlags::IN | PollFlags::ERR))
            .collect();
        drop(polled);
        for (number, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            // All that wait now, so that a burst of connections costs one poll.
            loop {
                match listeners.accept(number) {
                    Ok(Some(socket)) => serve(socket),
                    Ok(None) => break,
                    Err(error) => {
                        // Out of descriptors or memory: what is connected goes on; try again shortly, and do not fill
                        // the log with it.
                        let code = error.raw_os_error().unwrap_or(0);
                        let now = Instant::now();
                        if complained
                            .get(&code)
                            .is_none_or(|at| now - *at > Duration::from_secs(10))
                        {
                            complained.insert(code, now);
                            warn!("cannot accept a connection: {error}");
                        }
                        std::thread::sleep(Duration::from_millis(20));
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}
