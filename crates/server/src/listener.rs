//! The sockets a server listens on.
//!
//! # Socket files
//!
//! A Unix-domain socket is a file that stays behind when its server dies, and binding to a name that exists
//! fails. So beside `.s.PGSQL.<port>` lies `.s.PGSQL.<port>.lock`, as PostgreSQL has it, with the process
//! number in its first line; the server holds an exclusive `flock` on it. A server that gets that lock knows
//! that no other Clearway server uses the socket. A PostgreSQL server takes no `flock`, so before a socket
//! file is removed as stale, the server also tries to connect to it.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use tracing::info;

use crate::error::{Result, ServerError};
use crate::options::ServerOptions;
use crate::socket::Socket;

/// The port taken for the socket's name when nothing says otherwise.
const DEFAULT_PORT: u16 = 5433;

/// The longest path of a Unix-domain socket on Linux, without its zero byte.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Connections the kernel may hold until they are accepted.
const BACKLOG: i32 = 1_024;

/// The sockets that a server listens on.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: Vec<TcpListener>,
    unix: Option<UnixSocket>,
}

/// A listening socket file and the lock on its name; both files go when it is dropped.
#[derive(Debug)]
struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl Listeners {
    /// An error if there is nothing to listen on, or a place where no socket can be.
    pub(crate) fn check(options: &ServerOptions) -> Result<()> {
        if let Some(listen) = &options.listen {
            addresses_of(listen, options.tls.is_some())?;
        }
        match &options.socket_dir {
            Some(directory) => match std::fs::metadata(directory).map(|found| found.is_dir()) {
                Ok(true) => Ok(()),
                Ok(false) => Err(io::ErrorKind::NotADirectory.into()),
                Err(error) => Err(error),
            }
            .map_err(|error| ServerError::io(format!("listening in {}", directory.display()), error)),
            None if options.listen.is_none() => Err(ServerError::NothingToListenOn),
            None => Ok(()),
        }
    }

    pub(crate) fn bind(options: &ServerOptions) -> Result<Listeners> {
        let mut tcp = Vec::new();
        if let Some(listen) = &options.listen {
            for address in addresses_of(listen, options.tls.is_some())? {
                tcp.push(listen_tcp(address)?);
            }
        }
        let mut listeners = Listeners { tcp, unix: None };
        if let Some(directory) = &options.socket_dir {
            let port = match (options.port, listeners.tcp_address()) {
                (0, Some(address)) => address.port(),
                (0, None) => DEFAULT_PORT,
                (port, _) => port,
            };
            listeners.unix = Some(UnixSocket::bind(directory, port)?);
        }
        if listeners.tcp.is_empty() && listeners.unix.is_none() {
            return Err(ServerError::NothingToListenOn);
        }
        Ok(listeners)
    }

    pub(crate) fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.first().and_then(|listener| listener.local_addr().ok())
    }

    pub(crate) fn socket_path(&self) -> Option<&Path> {
        self.unix.as_ref().map(|socket| socket.path.as_path())
    }

    /// Shows each listener's descriptor; their order is what [`accept`](Self::accept) counts in.
    pub(crate) fn for_each<'a>(&'a self, mut show: impl FnMut(BorrowedFd<'a>)) {
        for listener in &self.tcp {
            show(listener.as_fd());
        }
        if let Some(socket) = &self.unix {
            show(socket.listener.as_fd());
        }
    }

    /// Accepts one connection, if one waits.
    pub(crate) fn accept(&self, number: usize) -> io::Result<Option<Socket>> {
        let accepted = match self.tcp.get(number) {
            Some(listener) => listener.accept().and_then(|(stream, peer)| {
                stream.set_nonblocking(false)?;
                Ok(Socket::from_tcp(stream, peer))
            }),
            None => {
                let socket = self
                    .unix
                    .as_ref()
                    .expect("only the last number is past the TCP listeners");
                socket.listener.accept().and_then(|(stream, _)| {
                    stream.set_nonblocking(false)?;
                    Ok(Socket::from_unix(stream))
                })
            }
        };
        match accepted {
            Ok(socket) => Ok(Some(socket)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                // The client gave up before we came to it: look for the next.
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => self.accept(number),
                _ => Err(error),
            },
        }
    }
}

/// The addresses that `listen` names, all of them loopback if connections are not encrypted.
fn addresses_of(listen: &str, encrypted: bool) -> Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = listen
        .to_socket_addrs()
        .map_err(|source| ServerError::Address {
            address: listen.to_owned(),
            source,
        })?
        .collect();
    match addresses
        .iter()
        .find(|address| !encrypted && !address.ip().to_canonical().is_loopback())
    {
        Some(address) => Err(ServerError::NotLoopback { address: *address }),
        // One is enough for port 0, where each address would get a port of its own.
        None if addresses.first().is_some_and(|address| address.port() == 0) => Ok(addresses[..1].to_vec()),
        None => Ok(addresses),
    }
}

fn listen_tcp(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .map_err(|error| ServerError::io(format!("listening on {address}"), error))?;
    // std listens with a backlog of 128: too short for thousands of clients that start at once.
    rustix::net::listen(&listener, BACKLOG).map_err(|error| ServerError::io("listening", error))?;
    listener
        .set_nonblocking(true)
        .map_err(|error| ServerError::io("listening", error))?;
    info!("listening on {}", listener.local_addr().unwrap_or(address));
    Ok(listener)
}

impl UnixSocket {
    fn bind(directory: &Path, port: u16) -> Result<UnixSocket> {
        let directory = directory.canonicalize().map_err(|error| {
            ServerError::io(format!("the socket directory {}", directory.display()), error)
        })?;
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let length = path.as_os_str().len();
        if length > SOCKET_PATH_BYTES_MAX {
            return Err(ServerError::SocketPathTooLong {
                path,
                length,
                limit: SOCKET_PATH_BYTES_MAX,
            });
        }
        let lock_path = directory.join(format!(".s.PGSQL.{port}.lock"));
        let lock = take_lock(&lock_path, &path, port)?;
        if UnixStream::connect(&path).is_ok() {
            return Err(ServerError::SocketInUse { path, process: None });
        }
        match std::fs::remove_file(&path) {
            Ok(()) => info!("removed the stale socket {}", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(ServerError::io(format!("removing {}", path.display()), error)),
        }
        let context = |error: io::Error| ServerError::io(format!("listening on {}", path.display()), error);
        let listener = UnixListener::bind(&path).map_err(context)?;
        // As PostgreSQL's default: a user that may enter the directory may connect, whatever the umask is.
        std::fs::set_permissions(&path, Permissions::from_mode(0o777)).map_err(context)?;
        rustix::net::listen(&listener, BACKLOG).map_err(|error| context(error.into()))?;
        listener.set_nonblocking(true).map_err(context)?;
        info!("listening on {}", path.display());
        Ok(UnixSocket {
            listener,
            path,
            lock_path,
            _lock: lock,
        })
    }
}

/// Opens and locks the lock file, and writes this process's number and port into it.
fn take_lock(lock_path: &Path, socket_path: &Path, port: u16) -> Result<File> {
    let context = |error: io::Error| ServerError::io(format!("the lock file {}", lock_path.display()), error);
    let mut file = loop {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(lock_path)
            .map_err(context)?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            let process = text
                .lines()
                .next()
                .and_then(|line| line.trim().parse::<u32>().ok());
            return Err(ServerError::SocketInUse {
                path: socket_path.to_owned(),
                process,
            });
        }
        // The previous owner may have removed the name between our opening and our locking: the lock then guards
        // nothing that others can see.
        let ours = file.metadata().map_err(context)?.ino();
        if std::fs::metadata(lock_path).is_ok_and(|named| named.ino() == ours) {
            break file;
        }
    };
    file.set_len(0).map_err(context)?;
    file.rewind().map_err(context)?;
    write!(file, "{}\n\n\n{port}\n", std::process::id()).map_err(context)?;
    Ok(file)
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // The socket first: while the lock file exists, no other server makes a socket of this name.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix_only(directory: &Path) -> ServerOptions {
        ServerOptions {
            listen: None,
            socket_dir: Some(directory.to_owned()),
            port: 7_001,
            max_connections: 1,
            ..ServerOptions::default()
        }
    }

    #[test]
    fn nothing_but_loopback() {
        for address in [
            "0.0.0.0:5433",
            "[::]:5433",
            "192.0.2.1:5433",
            "[2001:db8::1]:5433",
        ] {
            let options = ServerOptions {
                listen: Some(address.to_owned()),
                ..ServerOptions::default()
            };
            let error = Listeners::bind(&options).unwrap_err();
            assert!(
                matches!(error, ServerError::NotLoopback { .. }),
                "{address}: {error}"
            );
            assert!(error.to_string().contains("without TLS"), "{error}");
            // The lines that it names are understood where they belong.
            let text = error.to_string();
            let [_, _, rule, setting] = text.split('\n').collect::<Vec<_>>()[..] else {
                panic!("three lines are named: {text}");
            };
            let rule = rule.split('\'').nth(1).expect("a rule in quotes");
            crate::authentication::hba::Rules::parse(rule).expect("a rule");
            let setting = setting.split("   ").next().expect("a setting");
            clearway_engine::Config::from_toml(setting).expect("a setting");
        }
        for (address, encrypted) in [
            ("127.0.0.1:1", false),
            ("127.8.8.8:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("0.0.0.0:1", true),
        ] {
            assert!(addresses_of(address, encrypted).is_ok(), "{address}");
        }
        assert!(matches!(
            addresses_of("5433", true),
            Err(ServerError::Address { .. })
        ));
    }

    #[test]
    fn a_socket_has_one_server_and_a_stale_one_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let first = Listeners::bind(&unix_only(directory.path())).unwrap();
        let path = first.socket_path().unwrap().to_owned();
        assert!(UnixStream::connect(&path).is_ok());
        let second = Listeners::bind(&unix_only(directory.path()));
        assert!(
            matches!(second, Err(ServerError::SocketInUse { process: Some(id), .. }) if id == std::process::id()),
            "{second:?}"
        );
        drop(first);
        assert!(!path.exists(), "the file goes with its server");

        // A server that died leaves both files.
        drop(UnixListener::bind(&path).unwrap());
        std::fs::write(directory.path().join(".s.PGSQL.7001.lock"), "4000000\n").unwrap();
        let third = Listeners::bind(&unix_only(directory.path())).unwrap();
        assert!(UnixStream::connect(third.socket_path().unwrap()).is_ok());
    }

    #[test]
    fn a_path_too_long_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(100));
        std::fs::create_dir(&deep).unwrap();
        assert!(matches!(
            Listeners::bind(&unix_only(&deep)),
            Err(ServerError::SocketPathTooLong { .. })
        ));
    }
}
