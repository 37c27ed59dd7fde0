//! A server that lets in by password alone, and clients that do not have it.
//!
//! The first byte of an input picks how far the client gets by the rules before the rest of the input takes over:
//!
//! | stage | by the rules | then the input is |
//! | --- | --- | --- |
//! | 0 | nothing | the first packet and what follows it |
//! | 1 | the request for TLS and its answer | the handshake |
//! | 2 | the first byte of a handshake | the rest of it |
//! | 3 | the request, and the first flight of a handshake | bytes of that flight, changed |
//! | 4 | a handshake | the first packet, encrypted |
//! | 5, 6 | a user with a password, in clear and encrypted | the messages of SASL |
//! | 7, 8 | the same, and SASL's first message | what follows both nonces in the last message |
//!
//! # Rules
//!
//! 1. The server ends each connection whose client has said all it has to say.
//! 2. All that it answers is whole messages, and no session has failed (XX000).
//! 3. No input lets a client in.
//! 4. A client with the password is let in afterwards.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use clearway_engine::{Collected, Config, Engine, SessionInfo};
use clearway_server::wire::backend::{self, Message};
use clearway_server::wire::frame::Split;
use clearway_server::wire::startup::{self, Startup, TLS_REQUEST};
use clearway_server::{Server, ServerOptions, StopSignal, TlsOptions};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const PASSWORD: &str = "open sesame";

/// The number of stages.
const STAGES: u8 = 9;

/// Time limit for an answer; a server that is silent for longer breaks rule 1.
const PATIENCE: Duration = Duration::from_secs(120);

/// Inputs between two looks at rule 4.
const KNOCKS_BETWEEN_LOGINS: u32 = 64;

/// A running server, with a certificate and a user who has a password.
pub struct Door {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    stop: StopSignal,
    thread: Option<JoinHandle<()>>,
    knocks: AtomicU32,
    _directory: tempfile::TempDir,
}

/// A connection, encrypted or not.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// The bytes of a message of this kind.
fn message(kind: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [kind, &length, body].concat()
}

/// The first packet of the user with a password.
fn first_packet() -> Vec<u8> {
    message(b"", b"\0\x03\0\0user\0guarded\0database\0postgres\0\0")
}

/// SASL's first message in its envelope.
fn initial_response(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    message(b"p", &[b"SCRAM-SHA-256\0", &length[..], data].concat())
}

impl Default for Door {
    fn default() -> Door {
        Door::new()
    }
}

impl Door {
    /// Starts the server.
    pub fn new() -> Door {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let engine = Engine::open(&data, Config::default()).expect("an engine");
        let owner = SessionInfo {
            user: "postgres".to_owned(),
            ..SessionInfo::default()
        };
        let role = format!("create role guarded login password '{PASSWORD}'");
        let mut session = engine.session(owner).expect("a session");
        session
            .execute_simple(&role, &mut Collected::default())
            .expect("a role");
        drop(session);
        std::fs::write(data.join("pg_hba.conf"), "host all all all scram-sha-256").expect("rules");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (certificate, key) = (data.join("server.crt"), data.join("server.key"));
        std::fs::write(&certificate, cert.pem()).expect("a file");
        write_private(&key, &signing_key.serialize_pem());
        let options = ServerOptions {
            listen: Some("127.0.0.1:0".to_owned()),
            tls: Some(TlsOptions {
                certificate,
                key,
                authorities: None,
                only_1_3: false,
            }),
            ..ServerOptions::default()
        };
        let server = Server::bind(engine, options).expect("a server");
        let stop = StopSignal::new().expect("a signal");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"postgresql".to_vec()];
        let address = server.local_addr().expect("an address");
        let stopped = stop.clone();
        Door {
            address,
            tls: Arc::new(tls),
            thread: Some(std::thread::spawn(move || {
                server.run(&stopped).expect("an orderly end");
            })),
            stop,
            knocks: AtomicU32::new(0),
            _directory: directory,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_nodelay(true).expect("no delay");
        // The port is free at once: there are fewer of them than inputs a minute.
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("no lingering");
        stream
    }

    /// A connection whose request for TLS was granted.
    fn request_tls(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(&TLS_REQUEST).expect("a request");
        let mut answer = [0];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, *b"S", "TLS was asked for");
        stream
    }

    fn client_of_tls(&self) -> ClientConnection {
        let name = ServerName::try_from("localhost").expect("a name");
        ClientConnection::new(Arc::clone(&self.tls), name).expect("a client of TLS")
    }

    fn encrypted(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let mut stream = StreamOwned::new(self.client_of_tls(), self.request_tls());
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).expect("a handshake");
        }
        stream
    }

    /// Sends an input; what the server answers keeps the rules.
    pub fn knock(&self, data: &[u8]) {
        let Some((stage, data)) = data.split_first() else {
            return;
        };
        match stage % STAGES {
            0 => self.knock_in_clear(data),
            1 => drop(end(self.request_tls(), data)),
            2 => drop(end(self.connect(), &[&[startup::HANDSHAKE], data].concat())),
            3 => self.knock_with_changed_handshake(data),
            4 => judge(&end_encrypted(self.encrypted(), data)),
            5 => judge(&end(self.connect(), &[&first_packet(), data].concat())),
            6 => judge(&end_encrypted(
                self.encrypted(),
                &[&first_packet(), data].concat(),
            )),
            7 => {
                let mut stream = self.connect();
                let last = last_message(&mut stream, data);
                judge(&end(stream, &last));
            }
            _ => {
                let mut stream = self.encrypted();
                let last = last_message(&mut stream, data);
                judge(&end_encrypted(stream, &last));
            }
        }
        let number = self.knocks.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(KNOCKS_BETWEEN_LOGINS) || stage % STAGES > 6 {
            self.log_in();
        }
    }

    fn knock_in_clear(&self, data: &[u8]) {
        let answer = end(self.connect(), data);
        let asks = matches!(
            startup::split(data),
            Ok(startup::Split::Packet(
                Startup::Tls | Startup::Gssapi | Startup::Handshake,
                _
            ))
        );
        // Otherwise a byte that is no message comes first, or what follows is TLS.
        if !asks {
            judge(&answer);
        }
    }

    /// The first flight of a handshake, of which pairs of bytes of the input change a place each.
    fn knock_with_changed_handshake(&self, data: &[u8]) {
        let mut flight = Vec::new();
        self.client_of_tls()
            .write_tls(&mut flight)
            .expect("memory takes it all");
        for change in data.chunks_exact(3) {
            let place = usize::from(u16::from_be_bytes([change[0], change[1]])) % flight.len();
            flight[place] ^= change[2];
        }
        end(self.request_tls(), &flight);
    }

    /// Rule 4. It also takes back the delays of the failed logins before it.
    pub fn log_in(&self) {
        let mut stream = self.encrypted();
        stream.write_all(&first_packet()).expect("a first packet");
        let mut exchange = ScramSha256::new(PASSWORD.as_bytes(), ChannelBinding::unsupported());
        next_message(&mut stream);
        stream
            .write_all(&initial_response(exchange.message()))
            .expect("a first message");
        exchange
            .update(&next_message(&mut stream)[9..])
            .expect("an exchange");
        stream
            .write_all(&message(b"p", exchange.message()))
            .expect("a last message");
        exchange
            .finish(&next_message(&mut stream)[9..])
            .expect("the server has the verifier");
        assert_eq!(next_message(&mut stream), message(b"R", &[0; 4]), "let in");
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the server did not end in order");
        }
    }
}

fn write_private(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
}

/// The server's next message, whole.
fn next_message(stream: &mut impl Stream) -> Vec<u8> {
    let mut message = vec![0; 5];
    stream.read_exact(&mut message).expect("a message's head");
    let length = u32::from_be_bytes([message[1], message[2], message[3], message[4]]) as usize;
    message.resize(length + 1, 0);
    stream.read_exact(&mut message[5..]).expect("a message's body");
    message
}

/// Begins a login; SASL's last message with both nonces, and the input behind them.
fn last_message(stream: &mut impl Stream, data: &[u8]) -> Vec<u8> {
    stream.write_all(&first_packet()).expect("a first packet");
    next_message(stream);
    stream
        .write_all(&initial_response(b"n,,n=,r=mine"))
        .expect("a first message");
    let answer = next_message(stream);
    let text = std::str::from_utf8(&answer[9..]).expect("text");
    let nonces = text
        .strip_prefix("r=mine")
        .and_then(|rest| rest.split_once(','))
        .expect("both nonces")
        .0;
    message(b"p", &[b"c=biws,r=mine", nonces.as_bytes(), data].concat())
}

/// Sends the last bytes, and reads to the end (rule 1). A server that has ended before drops what comes late.
fn end(mut stream: TcpStream, data: &[u8]) -> Vec<u8> {
    let _ = stream.write_all(data);
    let _ = stream.shutdown(Shutdown::Write);
    read_to_end(&mut stream)
}

/// The same over TLS.
fn end_encrypted(mut stream: StreamOwned<ClientConnection, TcpStream>, data: &[u8]) -> Vec<u8> {
    let _ = stream.write_all(data);
    stream.conn.send_close_notify();
    let _ = stream.flush();
    let _ = stream.sock.shutdown(Shutdown::Write);
    read_to_end(&mut stream)
}

fn read_to_end(stream: &mut impl Stream) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the connection has not ended after {PATIENCE:?}: {answer:?}")
        }
        _ => answer,
    }
}

/// Rules 2 and 3.
fn judge(answer: &[u8]) {
    let mut rest = answer;
    while !rest.is_empty() {
        let Ok(Split::Frame(frame)) = backend::split(rest) else {
            panic!("half a message, or none: {answer:?}");
        };
        match backend::decode(frame.kind, &rest[frame.body.clone()]) {
            Ok(Message::Sasl { step: 10 | 11, .. }) => {}
            Ok(Message::Error(report)) => {
                assert_eq!(report.severity, "FATAL", "{report}");
                assert_ne!(report.sqlstate, "XX000", "{report}");
            }
            other => panic!("{other:?} before a login: {answer:?}"),
        }
        rest = &rest[frame.body.end..];
    }
}
