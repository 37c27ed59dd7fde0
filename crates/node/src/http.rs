//! Answers to single requests over HTTP/1.1, for programs that look at a server now and then.
//!
//! `GET`, `HEAD` and `OPTIONS` are answered, and the connection is closed. Requests are read one at a time, with limits for
//! their time and length. A client has a second to send its request and one to read the answer, however many parts either comes
//! in: a slow one costs the next one two seconds at most.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use tracing::warn;

use crate::error::{NodeError, Result};

/// The time that a client has for its request, and again for the answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest request.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// The status of an answer.
pub const OK: &str = "200 OK";
/// The status of an answer about a path that is none.
pub const NOT_FOUND: &str = "404 Not Found";

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Its status: a number and words.
    pub status: &'static str,
    /// The media type of its body.
    pub content_type: &'static str,
    /// Its body.
    pub body: String,
}

/// Answers requests at `address` by their paths, on a thread of its own, for as long as the process runs.
pub fn serve(
    address: &str,
    thread_name: &str,
    answer: impl Fn(&str) -> Response + Send + 'static,
) -> Result<SocketAddr> {
    let refuse = |source: io::Error| NodeError::Listen {
        address: address.to_owned(),
        source,
    };
    let listener = TcpListener::bind(address).map_err(refuse)?;
    let bound = listener.local_addr().map_err(refuse)?;
    thread::Builder::new()
        .name(thread_name.to_owned())
        .spawn(move || {
            for client in listener.incoming() {
                match client {
                    Ok(client) => {
                        // A client that has gone is none of ours.
                        let _ = talk(client, &answer);
                    }
                    Err(error) => {
                        warn!("cannot accept a request over HTTP: {error}");
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        })
        .map_err(refuse)?;
    Ok(bound)
}

/// The time until `deadline`; an error when it has passed.
fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    // A timeout of zero would be none at all.
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

fn talk(mut client: TcpStream, answer: &impl Fn(&str) -> Response) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let response = loop {
        if bytes.len() >= REQUEST_BYTES_MAX {
            return Ok(());
        }
        client.set_read_timeout(Some(left_until(deadline)?))?;
        let mut part = [0; 1024];
        match client.read(&mut part)? {
            0 => return Ok(()),
            count => bytes.extend_from_slice(&part[..count]),
        }
        if let Some(response) = response(&bytes, answer) {
            break response;
        }
    };
    write_until(&mut client, response.as_bytes(), Instant::now() + PATIENCE)
}

/// Writes everything before `deadline`. The socket's timeout is one write's, and a client that takes a little at a time has many.
fn write_until(client: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        client.set_write_timeout(Some(left_until(deadline)?))?;
        match client.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The response to a request; `None` while it is not whole.
fn response(bytes: &[u8], answer: &impl Fn(&str) -> Response) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let empty = |status| Response {
        status,
        content_type: "text/plain",
        body: String::new(),
    };
    let response = match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Err(_) => empty("400 Bad Request"),
        Ok(httparse::Status::Complete(_)) => match (request.method, request.path) {
            (Some("GET" | "HEAD" | "OPTIONS"), Some(path)) => answer(path),
            _ => empty("405 Method Not Allowed"),
        },
    };
    // Of the other methods HEAD alone tells of the body that a GET would have.
    let (body, length) = match request.method {
        Some("GET") => (&*response.body, response.body.len()),
        Some("HEAD") => ("", response.body.len()),
        _ => ("", 0),
    };
    Some(format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        response.status, response.content_type, length
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(path: &str) -> Response {
        Response {
            status: if path == "/" { OK } else { NOT_FOUND },
            content_type: "text/plain",
            body: format!("this is {path}"),
        }
    }

    #[test]
    fn requests_come_in_parts_and_may_be_anything() {
        let whole = b"OPTIONS / HTTP/1.0\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(response(&whole[..end], &greeting), None);
        }
        let options = response(whole, &greeting).unwrap();
        assert!(
            options.starts_with("HTTP/1.1 200 ") && options.ends_with("\r\n\r\n"),
            "{options}"
        );
        assert!(options.contains("Content-Length: 0\r\n"), "{options}");
        let head = response(b"HEAD / HTTP/1.1\r\n\r\n", &greeting).unwrap();
        assert!(
            head.contains("Content-Length: 9\r\n") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
        let get = response(b"GET /there HTTP/1.1\r\nHost: a\r\n\r\n", &greeting).unwrap();
        assert!(
            get.starts_with("HTTP/1.1 404 ") && get.ends_with("\r\n\r\nthis is /there"),
            "{get}"
        );
        for (request, status) in [
            (&b"PUT / HTTP/1.1\r\n\r\n"[..], "HTTP/1.1 405 "),
            (b"\x16\x03\x01\x00\r\n\r\n", "HTTP/1.1 400 "),
        ] {
            assert!(response(request, &greeting).unwrap().starts_with(status));
        }
    }

    #[test]
    fn a_client_that_says_nothing_holds_up_none_for_long() {
        let address = serve("127.0.0.1:0", "greeting", greeting).unwrap();
        let _silent = TcpStream::connect(address).unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    /// A client that takes its answer in small parts gets none after its time, and the next client is answered.
    #[test]
    fn a_client_that_reads_slowly_holds_up_none_for_long() {
        let long = |path: &str| Response {
            status: OK,
            content_type: "text/plain",
            body: "x".repeat(if path == "/long" { 64 << 20 } else { 1 }),
        };
        let address = serve("127.0.0.1:0", "long", long).unwrap();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET /long HTTP/1.0\r\n\r\n").unwrap();
        let read_slowly = thread::spawn(move || {
            let (mut taken, mut part) = (0, [0; 64 << 10]);
            // An error is the end too: the connection was given up.
            while let Ok(count @ 1..) = slow.read(&mut part) {
                taken += count;
                // Three megabytes a second at most: time enough for each write, and 20 s for all of them.
                thread::sleep(Duration::from_millis(20));
            }
            taken
        });
        // The slow one is served first: it was accepted first.
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("\r\n\r\nx"), "{answer}");
        let taken = read_slowly.join().unwrap();
        assert!(taken < 64 << 20, "it got everything, {taken} bytes");
    }
}
