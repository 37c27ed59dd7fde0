//! A server in this process, and a client that speaks raw bytes.

#![allow(dead_code)]

pub mod encrypted;
pub mod memory;
pub mod seeded;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use clearway_machine::Watchdog;
use clearway_server::{Result, Server, ServerOptions, StopSignal};

/// Time limit for anything in a test.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A running server; stops when dropped.
pub struct TestServer {
    pub address: SocketAddr,
    pub engine: Arc<Engine>,
    stop: StopSignal,
    thread: Option<JoinHandle<Result<()>>>,
    pub directory: tempfile::TempDir,
    _watchdog: Watchdog,
}

impl TestServer {
    pub fn start() -> TestServer {
        TestServer::with_connections(100)
    }

    pub fn with_connections(max_connections: usize) -> TestServer {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::from_toml(&format!("max_connections = {max_connections}")).unwrap();
        // Statements that are too deep are to meet that limit first.
        config.planning_memory = "64GB".parse().unwrap();
        // As in the engine's tests.
        if let Ok(assignments) = std::env::var("CLEARWAY_MECHANISMS") {
            for assignment in assignments.split(',') {
                config.mechanisms.set(assignment).expect("CLEARWAY_MECHANISMS");
            }
        }
        let engine = Engine::open(directory.path().join("data"), config).unwrap();
        TestServer::over(engine, directory, max_connections)
    }

    /// A server with this configuration.
    pub fn over_config(config: Config) -> TestServer {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path().join("data"), config).unwrap();
        TestServer::over(engine, directory, 100)
    }

    /// A server over an engine that is open already.
    pub fn over(engine: Arc<Engine>, directory: tempfile::TempDir, max_connections: usize) -> TestServer {
        TestServer::with_options(engine, directory, |options| {
            options.max_connections = max_connections
        })
    }

    /// The same with other options than a test's usual ones.
    pub fn with_options(
        engine: Arc<Engine>,
        directory: tempfile::TempDir,
        change: impl FnOnce(&mut ServerOptions),
    ) -> TestServer {
        let mut options = ServerOptions {
            listen: Some("127.0.0.1:0".to_owned()),
            socket_dir: Some(directory.path().to_owned()),
            port: 0,
            max_connections: 20,
            ..ServerOptions::default()
        };
        change(&mut options);
        let server = Server::bind(Arc::clone(&engine), options).unwrap();
        let address = server.local_addr().unwrap();
        let stop = StopSignal::new().unwrap();
        let thread = {
            let stop = stop.clone();
            std::thread::spawn(move || server.run(&stop))
        };
        TestServer {
            address,
            engine,
            stop,
            thread: Some(thread),
            directory,
            _watchdog: Watchdog::over_test(),
        }
    }

    /// Asks the server to stop, without waiting.
    pub fn request_stop(&self) {
        self.stop.stop();
    }

    /// Stops the server and waits for it.
    pub fn stop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            if !std::thread::panicking() {
                outcome.unwrap().unwrap();
            }
        }
    }

    /// Cancels what the session of these start-up replies runs.
    pub fn cancel(&self, greeting: &[Reply]) {
        let key = &greeting.iter().find(|reply| reply.kind == b'K').unwrap().body;
        let number = |at: usize| u32::from_be_bytes(key[at..at + 4].try_into().unwrap());
        assert!(self.engine.cancel(number(0), number(4)));
    }

    /// A raw connection, nothing sent yet.
    pub fn connect(&self) -> Raw {
        Raw::connect(self.address)
    }

    /// A client past its start-up.
    pub fn client(&self) -> Raw {
        let mut raw = self.connect();
        raw.start(&[("user", "alice")]);
        raw
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A message from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Reply {
    /// A field of an ErrorResponse or NoticeResponse.
    pub fn field(&self, code: u8) -> Option<String> {
        assert!(matches!(self.kind, b'E' | b'N'), "{self:?}");
        self.body
            .split(|byte| *byte == 0)
            .find(|field| field.first() == Some(&code))
            .map(|field| String::from_utf8(field[1..].to_vec()).unwrap())
    }

    pub fn sqlstate(&self) -> String {
        self.field(b'C').unwrap()
    }

    /// The text of a CommandComplete.
    pub fn tag(&self) -> &str {
        assert_eq!(self.kind, b'C', "{self:?}");
        std::str::from_utf8(&self.body[..self.body.len() - 1]).unwrap()
    }

    /// The values of a DataRow, as text.
    pub fn values(&self) -> Vec<Option<String>> {
        assert_eq!(self.kind, b'D', "{self:?}");
        let mut rest = &self.body[2..];
        let mut values = Vec::new();
        while !rest.is_empty() {
            let (length, after) = rest.split_first_chunk::<4>().unwrap();
            let length = i32::from_be_bytes(*length);
            rest = after;
            values.push((length >= 0).then(|| {
                let (value, after) = rest.split_at(length as usize);
                rest = after;
                String::from_utf8(value.to_vec()).unwrap()
            }));
        }
        values
    }
}

/// A client that speaks raw bytes, over TCP or what lies above it.
pub struct Raw<S = TcpStream> {
    pub stream: S,
}

impl Raw {
    pub fn connect(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw { stream }
    }
}

impl<S: Read + Write> Raw<S> {
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a start-up packet and reads up to ReadyForQuery; the replies.
    pub fn start(&mut self, parameters: &[(&str, &str)]) -> Vec<Reply> {
        self.send(&startup(parameters));
        let replies = self.until_ready();
        assert_eq!(
            replies[0],
            Reply {
                kind: b'R',
                body: vec![0, 0, 0, 0]
            }
        );
        replies
    }

    /// The next message; `None` when the server has closed the connection.
    pub fn read(&mut self) -> Option<Reply> {
        let mut header = [0; 5];
        let mut have = 0;
        while have < header.len() {
            match self.stream.read(&mut header[have..]) {
                Ok(0) if have == 0 => return None,
                Ok(0) => panic!("the connection ended inside a message"),
                Ok(count) => have += count,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("reading from the server: {error}"),
            }
        }
        let length = u32::from_be_bytes(header[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).unwrap();
        Some(Reply {
            kind: header[0],
            body,
        })
    }

    /// All messages up to ReadyForQuery, which is the last.
    pub fn until_ready(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        loop {
            let reply = self
                .read()
                .unwrap_or_else(|| panic!("the connection ended after {replies:?}"));
            let ready = reply.kind == b'Z';
            replies.push(reply);
            if ready {
                return replies;
            }
        }
    }

    /// All messages until the server closes the connection.
    pub fn until_closed(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some(reply) = self.read() {
            replies.push(reply);
        }
        replies
    }

    /// Runs a simple query; what came before ReadyForQuery.
    pub fn query(&mut self, sql: &str) -> Vec<Reply> {
        self.send(&query(sql));
        let mut replies = self.until_ready();
        replies.pop();
        replies
    }

    /// Runs a simple query that must not fail; the rows' values, as text.
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        let replies = self.query(sql);
        if let Some(error) = replies.iter().find(|reply| reply.kind == b'E') {
            panic!("{sql}: {} {}", error.sqlstate(), error.field(b'M').unwrap());
        }
        replies
            .iter()
            .filter(|reply| reply.kind == b'D')
            .map(Reply::values)
            .collect()
    }

    /// Takes the limit from the session's statements. That statement has a limit too, and is repeated when it is late.
    pub fn reset_statement_timeout(&mut self) {
        wait_for("the end of the timeout", || {
            kinds(&self.query("reset statement_timeout")) == "C"
        });
    }

    /// Runs a simple query that must not fail, for its single value.
    pub fn value(&mut self, sql: &str) -> String {
        self.rows(sql)[0][0].clone().expect("a value")
    }
}

/// A start-up packet. The database is `postgres` unless the parameters name another one.
pub fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let named = parameters.iter().any(|(name, _)| *name == "database");
    let default = (!named).then_some(&("database", "postgres"));
    startup_as_given(default.into_iter().chain(parameters))
}

/// A start-up packet with these parameters and no others.
pub fn startup_as_given<'a>(parameters: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> Vec<u8> {
    let mut body = 0x0003_0000u32.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend(name.as_bytes());
        body.push(0);
        body.extend(value.as_bytes());
        body.push(0);
    }
    body.push(0);
    let mut packet = ((body.len() + 4) as u32).to_be_bytes().to_vec();
    packet.extend(body);
    packet
}

/// A message of this kind.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(((body.len() + 4) as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &[sql.as_bytes(), b"\0"].concat())
}

pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(
        b'P',
        &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat(),
    )
}

/// Bind with text parameters and results.
pub fn bind(portal: &str, statement: &str, parameters: &[Option<&str>]) -> Vec<u8> {
    let mut body = [portal.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0"].concat();
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        match parameter {
            None => body.extend((-1i32).to_be_bytes()),
            Some(text) => {
                body.extend((text.len() as u32).to_be_bytes());
                body.extend(text.as_bytes());
            }
        }
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

pub fn describe(target: u8, name: &str) -> Vec<u8> {
    message(b'D', &[&[target], name.as_bytes(), b"\0"].concat())
}

pub fn close(target: u8, name: &str) -> Vec<u8> {
    message(b'C', &[&[target], name.as_bytes(), b"\0"].concat())
}

pub fn execute(portal: &str, max_rows: i32) -> Vec<u8> {
    message(
        b'E',
        &[portal.as_bytes(), b"\0", &max_rows.to_be_bytes()].concat(),
    )
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

pub fn kinds(replies: &[Reply]) -> String {
    replies.iter().map(|reply| char::from(reply.kind)).collect()
}

/// Waits until `condition` holds.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
