//! The answers that load balancers go by, over HTTP.
//!
//! | path | 200 | 503 |
//! | --- | --- | --- |
//! | `/primary`, `/` | it is the primary, and may answer | otherwise |
//! | `/replica`, `/replica?lag=BYTES` | it is a standby that receives log, and lacks no more than that | otherwise |
//! | `/read-only` | it answers reads: either of them | otherwise |
//! | `/health` | its server runs | otherwise |
//!
//! `lag` takes the units kB, MB, GB and TB. The body is JSON. [`http`] reads the requests.

use std::net::SocketAddr;

use serde_json::json;

use crate::cluster_state::Role;
use crate::error::Result;
use crate::http::{self, NOT_FOUND, OK, Response};

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
    http::serve(address, "clearway checks", move |path| answer(path, &state()))
}

fn answer(path: &str, state: &Checked) -> Response {
    Response {
        status: match holds(path, state) {
            Some(true) => OK,
            Some(false) => "503 Service Unavailable",
            None => NOT_FOUND,
        },
        content_type: "application/json",
        body: described(state),
    }
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
    fn an_answer_tells_its_role() {
        let refused = answer("/primary", &standby(Some(0)));
        assert!(refused.status.starts_with("503 ") && refused.body.contains("\"role\":\"standby\""));
        assert_eq!(answer("/replica", &standby(Some(0))).status, OK);
        assert_eq!(answer("/nothing", &standby(Some(0))).status, NOT_FOUND);
    }
}
