//! The answers that load balancers go by, over HTTP.
//!
//! | path | 200 | 503 |
//! | --- | --- | --- |
//! | `/primary`, `/` | it is the primary, and may answer | otherwise |
//! | `/replica`, `/replica?lag=BYTES` | it is a standby that receives log, and lacks no more than that | otherwise |
//! | `/read-only` | it answers reads: either of them | otherwise |
//! | `/health` | its server runs | otherwise |
//!
//! `lag` takes the units kB, MB, GB and TB. The body is JSON. `GET`, `HEAD` and `OPTIONS` are answered. Requests are read one
//! at a time, with limits for their time and length: a client that is slow costs the next one `PATIENCE`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tracing::warn;

use crate::cluster_state::Role;
use crate::error::{NodeError, Result};

/// The time that a client has for its request.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest request.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// The state of a node that the checks tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The role of its server.
    pub role: Role,
    /// True for a primary that may answer.
    pub answers: bool,
    /// True while it receives log.
    pub streams: bool,
    /// The log that it lacks of the primary's, in bytes, as far as it is known.
    pub lag: Option<u64>,
    /// The timeline of its log.
    pub timeline: u32,
    /// The end of its log.
    pub position: u64,
}

/// Answers checks at `address` on a thread of its own, for as long as the process runs.
pub fn serve(address: &str, state: impl Fn() -> Checked + Send + 'static) -> Result<SocketAddr> {
    let refuse = |source: io::Error| NodeError::Listen {
        address: address.to_owned(),
        source,
    };
    let listener = TcpListener::bind(address).map_err(refuse)?;
    let bound = listener.local_addr().map_err(refuse)?;
    thread::Builder::new()
        .name("clearway checks".to_owned())
        .spawn(move || {
            for client in listener.incoming() {
                match client {
                    Ok(client) => {
                        // A client that has gone is none of ours.
                        let _ = answer(client, &state);
                    }
                    Err(error) => {
                        warn!("checks: {error}");
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        })
        .map_err(refuse)?;
    Ok(bound)
}

fn answer(mut client: TcpStream, state: &impl Fn() -> Checked) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    let response = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() >= REQUEST_BYTES_MAX {
            return Ok(());
        }
        client.set_read_timeout(Some(left))?;
        let mut part = [0; 1024];
        match client.read(&mut part)? {
            0 => return Ok(()),
            count => bytes.extend_from_slice(&part[..count]),
        }
        if let Some(response) = response(&bytes, state) {
            break response;
        }
    };
    client.write_all(response.as_bytes())
}

/// The response to a request; `None` while it is not whole.
fn response(bytes: &[u8], state: &impl Fn() -> Checked) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let (status, body) = match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Err(_) => ("400 Bad Request", String::new()),
        Ok(httparse::Status::Complete(_)) => {
            let state = state();
            match (request.method, request.path) {
                (Some("GET" | "HEAD" | "OPTIONS"), Some(path)) => (
                    match holds(path, &state) {
                        Some(true) => "200 OK",
                        Some(false) => "503 Service Unavailable",
                        None => "404 Not Found",
                    },
                    described(&state),
                ),
                _ => ("405 Method Not Allowed", String::new()),
            }
        }
    };
    let length = body.len();
    let body = match request.method {
        Some("GET") => body,
        _ => String::new(),
    };
    Some(format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn described(state: &Checked) -> String {
    json!({
        "role": state.role, "timeline": state.timeline, "position": state.position, "streams": state.streams,
        "lag_bytes": state.lag,
    })
    .to_string()
}

/// True if the check holds; `None` for a path that is none.
fn holds(path: &str, state: &Checked) -> Option<bool> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let is_primary = state.role == Role::Primary && state.answers;
    let limit = query.split('&').find_map(|word| word.strip_prefix("lag="));
    let is_near = match limit {
        None => true,
        Some(text) => bytes_of(text)
            .zip(state.lag)
            .is_some_and(|(limit, lag)| lag <= limit),
    };
    let is_replica = state.role == Role::Standby && state.streams && is_near;
    match path {
        "/" | "/primary" | "/leader" | "/read-write" => Some(is_primary),
        "/replica" => Some(is_replica),
        "/read-only" => Some(is_primary || is_replica),
        "/health" => Some(matches!(state.role, Role::Primary | Role::Standby)),
        _ => None,
    }
}

/// `1024`, `16MB`.
fn bytes_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" | "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standby(lag: Option<u64>) -> Checked {
        Checked {
            role: Role::Standby,
            answers: true,
            streams: true,
            lag,
            timeline: 2,
            position: 77,
        }
    }

    #[test]
    fn checks_tell_primaries_from_standbys() {
        let mut state = standby(Some(2048));
        assert_eq!(holds("/primary", &state), Some(false));
        assert_eq!(holds("/replica", &state), Some(true));
        assert_eq!(holds("/replica?lag=2kB", &state), Some(true));
        assert_eq!(holds("/replica?lag=2047", &state), Some(false));
        assert_eq!(holds("/replica?lag=much", &state), Some(false));
        assert_eq!(holds("/replica?lag=99999999999TB", &state), Some(false));
        assert_eq!(holds("/replica?lag=1GB", &standby(None)), Some(false));
        assert_eq!(holds("/nothing", &state), None);
        state.streams = false;
        assert_eq!(holds("/replica", &state), Some(false));
        assert_eq!(holds("/health", &state), Some(true));
        state.role = Role::Primary;
        assert_eq!(holds("/primary", &state), Some(true));
        // Its lease has ended.
        state.answers = false;
        assert_eq!(holds("/primary", &state), Some(false));
        assert_eq!(holds("/read-only", &state), Some(false));
    }

    #[test]
    fn requests_come_in_parts_and_may_be_anything() {
        let state = || standby(Some(0));
        let whole = b"OPTIONS /replica HTTP/1.0\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(response(&whole[..end], &state), None);
        }
        assert!(response(whole, &state).unwrap().starts_with("HTTP/1.1 200 "));
        assert!(response(whole, &state).unwrap().ends_with("\r\n\r\n"));
        let get = response(b"GET /primary HTTP/1.1\r\nHost: a\r\n\r\n", &state).unwrap();
        assert!(
            get.starts_with("HTTP/1.1 503 ") && get.contains("\"role\":\"standby\""),
            "{get}"
        );
        assert!(
            response(b"PUT / HTTP/1.1\r\n\r\n", &state)
                .unwrap()
                .starts_with("HTTP/1.1 405 ")
        );
        assert!(
            response(b"\x16\x03\x01\x00\r\n\r\n", &state)
                .unwrap()
                .starts_with("HTTP/1.1 400 ")
        );
    }

    #[test]
    fn a_client_that_says_nothing_holds_up_none_for_long() {
        let address = serve("127.0.0.1:0", || standby(Some(0))).unwrap();
        let _silent = TcpStream::connect(address).unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}
