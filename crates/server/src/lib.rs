//! The server: PostgreSQL's wire protocol 3.0 over loopback TCP and Unix-domain sockets, a thread a session.
//!
//! ```no_run
//! use clearway_engine::{Config, Engine};
//! use clearway_server::{Server, ServerOptions, StopSignal};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::open("data", Config::default())?;
//! let server = Server::bind(engine, ServerOptions::default())?;
//! let stop = StopSignal::new()?; // give a clone to the handler of SIGTERM
//! server.run(&stop)?; // returns after a clean shutdown with a checkpoint
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a message
//!
//! ```text
//!  client ──▶ Socket ──▶ FrameReader ──▶ wire::frontend ──▶ Connection ──▶ Session (engine)
//!                one read for all          borrows from         portals,        │ rows, tags
//!                that has arrived          the read buffer      statements      ▼
//!  client ◀── Socket ◀── WriteBuffer ◀── codec (pgwire, or bytes for what is hot) ◀── Responder: Output
//!                one write per Sync, or when the buffer is full
//! ```
//!
//! | module | job |
//! | --- | --- |
//! | `options` | what a server is started with |
//! | `listener` | addresses, the loopback rule, socket files and their lock files |
//! | `server` | accepting, the watcher, shutting down |
//! | `registry` | the connected clients; finding those that have vanished |
//! | `session_scheduling` | whether a session that wakes interrupts the thread that runs |
//! | `channel` | both directions of a connection |
//! | `answer_deadline` | the time after which a primary of a cluster answers no more |
//! | `authentication`, `attempts` | who may connect: `pg_hba.conf`, passwords; failed logins by address |
//! | `tls`, `encryption` | certificates and encrypted streams; the answer to a client that wants one |
//! | `connection` | start-up and the message loop of one client |
//! | `extended` | statements and portals of the extended protocol |
//! | [`replication`] | sending the log and copies of the files, and receiving them |
//! | `responder` | the engine's output as protocol messages, COPY included |
//! | [`wire`] | frames and messages as they arrive: no I/O, no state, fuzzed |
//! | `codec` | messages as they leave; the only module that names `pgwire` |
//! | [`stub`] | a server with the same loop that answers constants: the ceiling of any measurement through a socket |
//!
//! # Rules
//!
//! 1. A byte from the client never makes the server panic, allocate more than twice what has arrived, or wait with a
//!    latch held.
//! 2. A malformed frame ends that connection with FATAL 08P01; a malformed body inside a sound frame is an ERROR and,
//!    in the extended protocol, everything up to the next Sync is skipped.
//! 3. A connection that ends, however it ends, drops its session, which rolls back and frees its locks.
//! 4. A thread at work neither reads nor polls its socket. The watcher does, for those that have been at work since its
//!    last look. A client that vanishes while its statement waits for a lock is found within half a second; the
//!    statement is then cancelled.
//! 5. Without TLS nothing but loopback is listened on; with it, a client from afar has to encrypt, and to prove who it is.
//! 6. Names and texts borrow from the read buffer; what must outlive the next read (a query's text, since COPY reads)
//!    is copied first.
//! 7. One read takes all that has arrived; one write per ReadyForQuery or Flush, or when 16 KiB have gathered.
//! 8. Only `codec` names `pgwire`. What arrives is decoded by `wire`, because pgwire's decoders panic on short bodies
//!    and hide bad UTF-8; the tests hold both to the same format.
//!
//! # Not here
//!
//! GSSAPI (a request for it is declined), logical replication, function calls, the binary COPY formats.

#![forbid(unsafe_code)]

mod answer_deadline;
mod attempts;
mod authentication;
mod channel;
mod codec;
mod connection;
mod encryption;
mod error;
mod extended;
mod listener;
mod long_message;
mod options;
mod read_buffer;
mod reader;
mod registry;
pub mod replication;
mod responder;
mod server;
mod session_scheduling;
mod shared;
mod socket;
mod stop;
pub mod stub;
mod tls;
mod wake;
pub mod wire;
mod writer;

pub use answer_deadline::AnswerDeadline;
pub use authentication::check_rules;
pub use error::{Result, ServerError};
pub use options::ServerOptions;
pub use server::Server;
pub use session_scheduling::{Scheduling, SessionScheduling};
pub use stop::StopSignal;
pub use tls::{TlsError, TlsOptions};
