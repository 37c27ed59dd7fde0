//! The program as a process, under limits of its own, and a client that says what it answers.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a step; after it the test gives up.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with a data directory `data`, a log, a socket, and perhaps a process.
pub struct Served {
    pub directory: PathBuf,
    child: Option<Child>,
}

/// An answer: rows of texts, or a SQLSTATE with the message.
pub type Answer = Result<Vec<Vec<Option<String>>>, (String, String)>;

impl Served {
    pub fn in_directory(directory: &Path) -> Served {
        Served {
            directory: directory.to_owned(),
            child: None,
        }
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Starts `clearway serve` after the lines of `shell`, with a configuration file.
    pub fn spawn(&mut self, shell: &str, config: &str) {
        let log = File::create(self.directory.join("log")).unwrap();
        self.spawn_into(shell, config, log.into());
    }

    /// As [`spawn`](Self::spawn), with a place for its log.
    pub fn spawn_into(&mut self, shell: &str, config: &str, log: Stdio) {
        let file = self.directory.join("clearway.toml");
        fs::write(&file, config).unwrap();
        let data = self.data();
        let program = env!("CARGO_BIN_EXE_clearway");
        let arguments = ["serve", "--listen", "none", "--config"];
        let child = Command::new("sh")
            .args(["-c", &format!("ulimit -c 0; {shell}\nexec \"$@\""), "sh", program])
            .args(arguments)
            .arg(file)
            .arg("--data")
            .arg(data)
            .arg("--socket-dir")
            .arg(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// Starts the server and returns its first client.
    pub fn start(&mut self, shell: &str, config: &str) -> Client {
        self.spawn(shell, config);
        self.first_client()
    }

    /// The first client of a server that starts.
    pub fn first_client(&mut self) -> Client {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(client) = self.connect() {
                return client;
            }
            let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "the server has ended: {}", self.log());
            assert!(Instant::now() < deadline, "it does not serve: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn connect(&self) -> Result<Client, (String, String)> {
        self.connect_as("alice")
    }

    pub fn connect_as(&self, user: &str) -> Result<Client, (String, String)> {
        let failed = |error: io::Error| (String::new(), error.to_string());
        let stream = UnixStream::connect(self.directory.join(".s.PGSQL.5433")).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client(stream);
        // A server that has no room for the session says so without reading this.
        let body = format!("\0\x03\0\0user\0{user}\0database\0postgres\0\0");
        let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
        packet.extend(body.as_bytes());
        let _ = client.0.write_all(&packet);
        client.answer().map(|_| client)
    }

    /// The log, as far as it was written to a file.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The reader's end of the log, if it was made a pipe.
    pub fn log_pipe(&mut self) -> ChildStderr {
        self.child.as_mut().unwrap().stderr.take().unwrap()
    }

    /// Waits until the log has these words.
    pub fn said(&self, words: &str) {
        self.waits_for(words, || self.log().contains(words));
    }

    /// Waits until the log has such a line, of which `words` say what it is.
    pub fn said_line(&self, words: &str, is_it: impl Fn(&str) -> bool) {
        self.waits_for(words, || self.log().lines().any(&is_it));
    }

    fn waits_for(&self, words: &str, is_there: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there() {
            assert!(Instant::now() < deadline, "no \"{words}\" in: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.id())).unwrap().count()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end of the process.
    pub fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                self.child = None;
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The process ends when the test fails.
impl Drop for Served {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A connection.
pub struct Client(UnixStream);

impl Client {
    pub fn query(&mut self, sql: &str) -> Answer {
        self.send(b'Q', &[sql.as_bytes(), b"\0"])?;
        self.answer()
    }

    /// Sends a message of this kind.
    pub fn send(&mut self, kind: u8, body: &[&[u8]]) -> Result<(), (String, String)> {
        let length: usize = body.iter().map(|part| part.len()).sum();
        let mut message = vec![kind];
        message.extend((length as u32 + 4).to_be_bytes());
        message.extend(body.concat());
        let sent = self.0.write_all(&message);
        sent.map_err(|error| (String::new(), error.to_string()))
    }

    /// Prepares a statement, and runs it with one parameter in text form.
    pub fn run_with(&mut self, sql: &str, parameter: &[u8]) -> Answer {
        self.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"])?;
        let length = (parameter.len() as u32).to_be_bytes();
        self.send(b'B', &[b"\0\0\0\0\0\x01", &length, parameter, b"\0\0"])?;
        self.send(b'E', &[b"\0\0\0\0\0"])?;
        self.send(b'S', &[])?;
        self.answer()
    }

    /// COPY FROM STDIN, the data in these messages.
    pub fn copy(&mut self, sql: &str, data: &[&[u8]]) -> Answer {
        self.send(b'Q', &[sql.as_bytes(), b"\0"])?;
        for piece in data {
            self.send(b'd', &[piece])?;
        }
        self.send(b'c', &[])?;
        self.answer()
    }

    /// The first value of a query with an answer.
    pub fn value(&mut self, sql: &str) -> String {
        match self.query(sql) {
            Ok(rows) => rows[0][0].clone().unwrap_or_default(),
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }

    /// Messages up to the next ReadyForQuery.
    fn answer(&mut self) -> Answer {
        let mut answer = Ok(Vec::new());
        loop {
            let (kind, body) = match self.message() {
                Ok(message) => message,
                Err(error) => return answer.and(Err((String::new(), error.to_string()))),
            };
            match kind {
                b'Z' => return answer,
                b'E' => answer = Err((field(&body, b'C'), field(&body, b'M'))),
                b'D' => {
                    if let Ok(rows) = &mut answer {
                        rows.push(values(&body));
                    }
                }
                _ => {}
            }
        }
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body)?;
        Ok((head[0], body))
    }
}

fn field(error: &[u8], kind: u8) -> String {
    let mut fields = error.split(|byte| *byte == 0);
    let found = fields.find(|field| field.first() == Some(&kind));
    found.map_or(String::new(), |field| {
        String::from_utf8_lossy(&field[1..]).into_owned()
    })
}

fn values(row: &[u8]) -> Vec<Option<String>> {
    let (count, mut rest) = row.split_first_chunk::<2>().unwrap();
    (0..u16::from_be_bytes(*count))
        .map(|_| {
            let (length, behind) = rest.split_first_chunk::<4>().unwrap();
            let length = i32::from_be_bytes(*length);
            let (value, behind) = behind.split_at(length.max(0) as usize);
            rest = behind;
            (length >= 0).then(|| String::from_utf8_lossy(value).into_owned())
        })
        .collect()
}
