//! The options that a server is started with.

use std::path::PathBuf;
use std::time::Duration;

use crate::answer_deadline::AnswerDeadline;
use crate::session_scheduling::Scheduling;
use crate::tls::TlsOptions;
use crate::wire::frame::LARGE_MESSAGE_BYTES_MAX;

/// The file of rules for logins, if it has no other name.
pub(crate) const HBA_FILE: &str = "pg_hba.conf";

/// The addresses to listen on, and limits for clients.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// `address:port` to listen on; without TLS loopback only; `None` for no TCP at all. Port 0 takes a free one.
    pub listen: Option<String>,
    /// The directory for the Unix-domain socket `.s.PGSQL.<port>`; `None` for none.
    pub socket_dir: Option<PathBuf>,
    /// The number in the socket's name; 0 takes that of `listen`, and without one 5433.
    pub port: u16,
    /// The most clients that may be connected at once.
    pub max_connections: usize,
    /// As many of them can only be superusers.
    pub superuser_reserved_connections: usize,
    /// The time that a client has to log in.
    pub authentication_timeout: Duration,
    /// The scheduling of sessions by the kernel.
    pub scheduling: Scheduling,
    /// The most bytes of a message that carries a text or data. A longer one ends its connection.
    pub message_bytes_max: u32,
    /// The rules for logins, in PostgreSQL's format; a relative path begins at the data directory. Without a file of the
    /// default name what is on this machine is trusted; without one of another name no client comes in.
    pub hba_file: PathBuf,
    /// The files for encrypted connections; `None` for none.
    pub tls: Option<TlsOptions>,
    /// The time after which no answer leaves, for a member of a cluster; `None` for a server by itself.
    pub answer_deadline: Option<AnswerDeadline>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: Some("127.0.0.1:5433".to_owned()),
            socket_dir: None,
            port: 0,
            max_connections: 500,
            superuser_reserved_connections: 3,
            authentication_timeout: Duration::from_secs(60),
            scheduling: Scheduling::default(),
            message_bytes_max: LARGE_MESSAGE_BYTES_MAX,
            hba_file: PathBuf::from(HBA_FILE),
            tls: None,
            answer_deadline: None,
        }
    }
}
