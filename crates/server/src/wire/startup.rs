//! The first packet of a connection: a length that counts itself, a code, and what the code asks for.
//!
//! | code | packet |
//! | --- | --- |
//! | 1234.5678 | cancel request: process number, secret |
//! | 1234.5679 | may we speak TLS? |
//! | 1234.5680 | may we speak GSSAPI encryption? |
//! | 3.n | start-up: names and values, each ended by a zero byte, then one more |
//!
//! A client that knows that the server speaks TLS begins with the handshake instead (`sslnegotiation=direct`).

use crate::wire::{Body, WireError};

/// The longest first packet, as in PostgreSQL.
pub const STARTUP_BYTES_MAX: u32 = 10_000;

/// The request for TLS.
pub const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The first byte of a handshake of TLS: no first packet is so long that its length has it.
pub const HANDSHAKE: u8 = 0x16;

/// The newest minor version of protocol 3 that we speak.
pub const MINOR_VERSION: u16 = 0;

/// A first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Startup {
    /// Asks for TLS.
    Tls,
    /// Begins a handshake of TLS without asking.
    Handshake,
    /// Asks for GSSAPI encryption.
    Gssapi,
    /// Asks to cancel another connection's statement.
    Cancel {
        /// The number from that connection's BackendKeyData.
        process_id: u32,
        /// Its secret.
        secret: u32,
    },
    /// Opens a session.
    Session {
        /// The minor protocol version wanted.
        minor: u16,
        /// Names and values, in the order they came.
        parameters: Vec<(String, String)>,
    },
}

/// The content of a buffer's front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split {
    /// Not yet a whole packet: it will have this many bytes in all, as far as is known.
    NeedMore(usize),
    /// A whole packet of this many bytes.
    Packet(Startup, usize),
}

/// Looks for a first packet at the front of `buffer`.
pub fn split(buffer: &[u8]) -> Result<Split, WireError> {
    if buffer.first() == Some(&HANDSHAKE) {
        return Ok(Split::Packet(Startup::Handshake, 0));
    }
    let Some((length, _)) = buffer.split_first_chunk::<4>() else {
        return Ok(Split::NeedMore(8));
    };
    let length = u32::from_be_bytes(*length);
    if length < 8 {
        return Err(WireError::InvalidLength { kind: 0, length });
    }
    if length > STARTUP_BYTES_MAX {
        return Err(WireError::TooLong {
            kind: 0,
            length,
            limit: STARTUP_BYTES_MAX,
        });
    }
    let end = length as usize;
    match buffer.get(4..end) {
        Some(body) => Ok(Split::Packet(decode(Body(body))?, end)),
        None => Ok(Split::NeedMore(end)),
    }
}

fn decode(mut body: Body<'_>) -> Result<Startup, WireError> {
    let startup = match (body.u16()?, body.u16()?) {
        (1234, 5678) => Startup::Cancel {
            process_id: body.u32()?,
            secret: body.u32()?,
        },
        (1234, 5679) => Startup::Tls,
        (1234, 5680) => Startup::Gssapi,
        (3, minor) => {
            let mut parameters = Vec::new();
            loop {
                let name = body.string()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name.to_owned(), body.string()?.to_owned()));
            }
            Startup::Session { minor, parameters }
        }
        (major, minor) => return Err(WireError::UnsupportedProtocol { major, minor }),
    };
    body.end()?;
    Ok(startup)
}

/// The settings in the start-up parameter `options`: `-c name=value` and `--name=value`, blanks escaped by `\`.
pub fn parse_options(options: &str) -> Result<Vec<(String, String)>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => word.extend(characters.next()),
            blank if blank.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let setting = if word == "-c" {
            words.next().ok_or("option -c lacks its setting")?
        } else if let Some(rest) = word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            rest.to_owned()
        } else {
            return Err(format!(
                "invalid command-line argument for server process: {word}"
            ));
        };
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("-c {setting} requires a value"))?;
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: (u16, u16), rest: &[u8]) -> Vec<u8> {
        let mut bytes = ((8 + rest.len()) as u32).to_be_bytes().to_vec();
        bytes.extend(code.0.to_be_bytes());
        bytes.extend(code.1.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn the_four_packets() {
        assert_eq!(
            split(&packet((1234, 5679), b"")),
            Ok(Split::Packet(Startup::Tls, 8))
        );
        assert_eq!(
            split(&packet((1234, 5680), b"")),
            Ok(Split::Packet(Startup::Gssapi, 8))
        );
        assert_eq!(
            split(&packet((1234, 5678), &[0, 0, 0, 5, 0, 0, 0, 6])),
            Ok(Split::Packet(
                Startup::Cancel {
                    process_id: 5,
                    secret: 6
                },
                16
            ))
        );
        let parameters = vec![
            ("user".to_owned(), "alice".to_owned()),
            ("database".to_owned(), String::new()),
        ];
        assert_eq!(
            split(&packet((3, 2), b"user\0alice\0database\0\0\0")),
            Ok(Split::Packet(Startup::Session { minor: 2, parameters }, 30))
        );
    }

    #[test]
    fn agrees_with_pgwire() {
        use pgwire::messages::Message as _;
        let mut startup = pgwire::messages::startup::Startup::new();
        startup.parameters.insert("user".to_owned(), "bob".to_owned());
        let mut bytes = bytes::BytesMut::new();
        startup.encode(&mut bytes).unwrap();
        let parameters = vec![("user".to_owned(), "bob".to_owned())];
        assert_eq!(
            split(&bytes),
            Ok(Split::Packet(
                Startup::Session { minor: 0, parameters },
                bytes.len()
            ))
        );
    }

    #[test]
    fn what_is_no_first_packet() {
        assert_eq!(
            split(&[0, 0, 0, 7]),
            Err(WireError::InvalidLength { kind: 0, length: 7 })
        );
        assert!(matches!(
            split(b"GET / HTTP/1.1\r\n"),
            Err(WireError::TooLong { .. })
        ));
        assert_eq!(
            split(&packet((2, 0), b"")),
            Err(WireError::UnsupportedProtocol { major: 2, minor: 0 })
        );
        assert_eq!(
            split(&packet((3, 0), b"user\0")),
            Err(WireError::UnterminatedString)
        );
        assert_eq!(split(&packet((3, 0), b"\0x")), Err(WireError::TrailingBytes));
        assert_eq!(split(&packet((1234, 5678), &[1])), Err(WireError::Truncated));
        for end in 0..8 {
            assert!(matches!(
                split(&packet((1234, 5679), b"")[..end]),
                Ok(Split::NeedMore(8))
            ));
        }
    }

    #[test]
    fn options_as_psql_sends_them() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse_options(r"-c synchronous_commit=off --lock-timeout=5s -capplication_name=a\ b"),
            Ok(vec![
                pair("synchronous_commit", "off"),
                pair("lock_timeout", "5s"),
                pair("application_name", "a b")
            ])
        );
        assert_eq!(parse_options("  "), Ok(vec![]));
        assert!(
            parse_options("-x").is_err() && parse_options("-c").is_err() && parse_options("-c a").is_err()
        );
    }
}
