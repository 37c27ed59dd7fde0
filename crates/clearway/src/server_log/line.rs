//! A line of the log: its parts, and the two forms that they have.
//!
//! ```text
//!   2026-11-29 23:07:33.120 UTC [7] alice@postgres ERROR:  division by zero
//!   2026-11-29 23:07:33.120 UTC [7] alice@postgres STATEMENT:  select 1/0
//!
//!   {"timestamp":"2026-11-29 23:07:33.120 UTC","user":"alice","dbname":"postgres","pid":7, … "message":"division by zero"}
//! ```
//!
//! A line break inside of a text is followed by a tab, so that no statement can pretend to be a line of its own. The names in
//! JSON are PostgreSQL's.

use std::borrow::Cow;
use std::fmt::Write as _;

use clearway_engine::config::{LogDestination, LogLevel};
use clearway_engine::server_log::LoggedSession;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Microseconds between 1970-01-01 and 2000-01-01 UTC.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// Bytes of a message, a detail or a hint: they may have what a client has sent in them, which has no end.
const PART_BYTES_MAX: usize = 64 << 10;

/// A part as a line has it.
fn shown(part: &str) -> Cow<'_, str> {
    match part.len() <= PART_BYTES_MAX {
        true => part.into(),
        false => {
            let beginning = &part[..part.floor_char_boundary(PART_BYTES_MAX)];
            format!("{beginning}… ({} bytes)", part.len()).into()
        }
    }
}

/// The content of a line.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) time: Timestamp,
    pub(super) severity: LogLevel,
    pub(super) message: String,
    pub(super) sqlstate: Option<String>,
    pub(super) detail: Option<String>,
    pub(super) hint: Option<String>,
    pub(super) statement: Option<String>,
    /// The session in whose name it is written.
    pub(super) session: Option<LoggedSession>,
}

impl Line {
    pub(super) fn new(severity: LogLevel, message: String) -> Line {
        Line {
            time: Timestamp::now(),
            severity,
            message,
            sqlstate: None,
            detail: None,
            hint: None,
            statement: None,
            session: None,
        }
    }

    /// The line in its form, with a newline at its end.
    pub(super) fn written(&self, destination: LogDestination, prefix: &str) -> String {
        match destination {
            LogDestination::Stderr => self.as_text(prefix),
            LogDestination::Jsonlog => self.as_json(),
        }
    }

    fn as_text(&self, prefix: &str) -> String {
        let prefix = self.prefix(prefix);
        let parts = [
            (self.severity.name(), Some(&self.message)),
            ("DETAIL", self.detail.as_ref()),
            ("HINT", self.hint.as_ref()),
            ("STATEMENT", self.statement.as_ref()),
        ];
        let mut text = String::new();
        for (word, part) in parts {
            if let Some(part) = part {
                let _ = writeln!(text, "{prefix}{word}:  {}", shown(part).replace('\n', "\n\t"));
            }
        }
        text
    }

    /// The prefix with its escapes replaced. `%q` ends it where there is no session.
    fn prefix(&self, pattern: &str) -> String {
        let mut text = String::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                text.push(character);
                continue;
            }
            match characters.next() {
                Some('q') if self.session.is_none() => break,
                Some('q') | None => {}
                Some('%') => text.push('%'),
                Some(escape) => self.escape(escape, &mut text),
            }
        }
        text
    }

    fn escape(&self, escape: char, text: &mut String) {
        let session = self.session.as_ref();
        let or_unknown = |part: Option<&str>| match part {
            None | Some("") => "[unknown]".to_owned(),
            // It is a client's word: it must not end the line.
            Some(part) => part.replace('\n', "\\n"),
        };
        let client = || session.and_then(|session| session.client_address);
        let host = || {
            session.map_or(String::new(), |session| {
                session.client_address.map_or_else(
                    || "[local]".to_owned(),
                    |client| client.ip().to_canonical().to_string(),
                )
            })
        };
        match escape {
            'm' => text.push_str(&milliseconds(self.time)),
            't' => text.push_str(&self.time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()),
            'n' => {
                let ms = self.time.as_millisecond();
                let _ = write!(text, "{}.{:03}", ms.div_euclid(1_000), ms.rem_euclid(1_000));
            }
            'p' => {
                let _ = write!(text, "{}", self.process_id());
            }
            'u' => text.push_str(&or_unknown(session.map(|session| &*session.user))),
            'd' => text.push_str(&or_unknown(session.map(|session| &*session.database))),
            'a' => text.push_str(&or_unknown(session.map(|session| &*session.application_name))),
            'h' => text.push_str(&host()),
            'r' => {
                text.push_str(&host());
                if let Some(client) = client() {
                    let _ = write!(text, "({})", client.port());
                }
            }
            's' => text.push_str(&session.map_or(String::new(), |session| started(session.start_us))),
            'b' => text.push_str(session.map_or("server", |session| session.backend_type)),
            'e' => text.push_str(self.sqlstate.as_deref().unwrap_or("00000")),
            // The configuration has been checked.
            _ => {}
        }
    }

    /// The session's number, or that of the process.
    fn process_id(&self) -> u32 {
        self.session
            .as_ref()
            .map_or_else(std::process::id, |session| session.process_id)
    }

    fn as_json(&self) -> String {
        let mut object = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(name.to_owned(), value);
            }
        };
        let text = |part: &Option<String>| part.as_ref().map(|part| json!(shown(part)));
        put("timestamp", Some(json!(milliseconds(self.time))));
        put("pid", Some(json!(self.process_id())));
        if let Some(session) = &self.session {
            put("user", Some(json!(session.user)));
            put("dbname", Some(json!(session.database)));
            let client = session.client_address;
            put(
                "remote_host",
                Some(json!(client.map_or("[local]".to_owned(), |client| {
                    client.ip().to_canonical().to_string()
                }))),
            );
            put("remote_port", client.map(|client| json!(client.port())));
            put("session_start", Some(json!(started(session.start_us))));
            put("application_name", Some(json!(session.application_name)));
        }
        let backend_type = self
            .session
            .as_ref()
            .map_or("server", |session| session.backend_type);
        put("backend_type", Some(json!(backend_type)));
        put("error_severity", Some(json!(self.severity.name())));
        put("state_code", text(&self.sqlstate));
        put("message", Some(json!(shown(&self.message))));
        put("detail", text(&self.detail));
        put("hint", text(&self.hint));
        put("statement", text(&self.statement));
        format!("{}\n", Value::Object(object))
    }
}

fn milliseconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()
}

/// A session's start, to the second.
fn started(start_us: i64) -> String {
    let time = Timestamp::from_microsecond(start_us.saturating_add(EPOCH_2000_US));
    time.map_or(String::new(), |time| {
        time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
    })
}

#[cfg(test)]
mod tests {
    use clearway_engine::config::PREFIX_ESCAPES;

    use super::*;

    fn line() -> Line {
        Line {
            time: Timestamp::from_millisecond(1_796_000_000_007).unwrap(),
            sqlstate: Some("22012".to_owned()),
            statement: Some("select 1/0\nFATAL:  not this".to_owned()),
            session: Some(LoggedSession {
                process_id: 7,
                user: "alice".to_owned(),
                database: "shop".to_owned(),
                application_name: "a\nb".to_owned(),
                client_address: Some("[::ffff:192.0.2.1]:5000".parse().unwrap()),
                start_us: 849_315_199_000_000,
                backend_type: "client backend",
            }),
            ..Line::new(LogLevel::Error, "division by zero".to_owned())
        }
    }

    #[test]
    fn a_line_names_its_session_and_no_text_of_a_client_begins_one() {
        let text = line().written(LogDestination::Stderr, "%m [%p] %q%u@%d ");
        let prefix = "2026-11-30 00:53:20.007 UTC [7] alice@shop ";
        assert_eq!(
            text,
            format!("{prefix}ERROR:  division by zero\n{prefix}STATEMENT:  select 1/0\n\tFATAL:  not this\n")
        );
        let server = Line {
            session: None,
            statement: None,
            ..line()
        };
        let text = server.written(LogDestination::Stderr, "[%p] %q%u@%d ");
        assert_eq!(
            text,
            format!("[{}] ERROR:  division by zero\n", std::process::id())
        );
    }

    #[test]
    fn a_part_without_end_is_cut() {
        let long = Line {
            message: "ä".repeat(PART_BYTES_MAX),
            ..line()
        };
        for destination in [LogDestination::Stderr, LogDestination::Jsonlog] {
            let text = long.written(destination, "");
            assert!(text.len() < PART_BYTES_MAX + 1_000, "{}", text.len());
            assert!(text.contains(&format!("ä… ({} bytes)", 2 * PART_BYTES_MAX)));
        }
    }

    #[test]
    fn each_escape_stands_for_something() {
        let shown = |pattern: &str| line().prefix(pattern);
        for (pattern, expected) in [
            ("%t", "2026-11-30 00:53:20 UTC"),
            ("%n", "1796000000.007"),
            ("%a", "a\\nb"),
            ("%h", "192.0.2.1"),
            ("%r", "192.0.2.1(5000)"),
            ("%s", "2026-11-30 00:53:19 UTC"),
            ("%b", "client backend"),
            ("%e", "22012"),
            ("50%%", "50%"),
        ] {
            assert_eq!(shown(pattern), expected, "{pattern}");
        }
        for escape in PREFIX_ESCAPES.chars().filter(|escape| *escape != 'q') {
            assert!(!shown(&format!("%{escape}")).is_empty(), "%{escape}");
        }
    }

    #[test]
    fn json_has_postgresqls_names() {
        let text = line().written(LogDestination::Jsonlog, "");
        assert_eq!(text.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&text).unwrap();
        for (name, expected) in [
            ("timestamp", json!("2026-11-30 00:53:20.007 UTC")),
            ("pid", json!(7)),
            ("user", json!("alice")),
            ("dbname", json!("shop")),
            ("remote_host", json!("192.0.2.1")),
            ("remote_port", json!(5000)),
            ("error_severity", json!("ERROR")),
            ("state_code", json!("22012")),
            ("message", json!("division by zero")),
            ("statement", json!("select 1/0\nFATAL:  not this")),
        ] {
            assert_eq!(value[name], expected, "{name}");
        }
        assert!(value.get("detail").is_none());
    }
}
