//! What a server says about itself, and its timelines' histories.

use clearway_storage::Lsn;

use super::client::{Client, quoted_name};
use super::error::{ReceiverError, Result};

/// The answer to IDENTIFY_SYSTEM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemIdentity {
    /// Which database it is.
    pub identifier: u64,
    /// The timeline that its log is on.
    pub timeline: u32,
    /// How far its log is durable.
    pub flushed: Lsn,
}

/// A position as PostgreSQL writes it.
pub(super) fn position(text: &str) -> Option<Lsn> {
    let half = |digits: &str| {
        let valid = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        valid.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    let (high, low) = text.split_once('/')?;
    Some(Lsn(half(high)? << 32 | half(low)?))
}

/// Asks which database it is.
pub fn identify(client: &mut Client) -> Result<SystemIdentity> {
    let results = client.query("IDENTIFY_SYSTEM")?;
    let read = || {
        let result = results.first()?;
        Some(SystemIdentity {
            identifier: result.text("systemid")?.parse().ok()?,
            timeline: result.text("timeline")?.parse().ok()?,
            flushed: position(result.text("xlogpos")?)?,
        })
    };
    read().ok_or_else(|| client.broken("its answer to IDENTIFY_SYSTEM lacks something"))
}

/// The history file of a timeline.
pub fn timeline_history(client: &mut Client, timeline: u32) -> Result<Vec<u8>> {
    let mut results = client.query(&format!("TIMELINE_HISTORY {timeline}"))?;
    let content = results.first_mut().and_then(|result| {
        let column = result.columns.iter().position(|name| name == "content")?;
        result.rows.first_mut()?.get_mut(column)?.take()
    });
    content.ok_or_else(|| client.broken("its answer to TIMELINE_HISTORY has no content"))
}

/// Makes a slot that keeps log from now on; whether it was not there before.
pub fn create_slot(client: &mut Client, name: &str) -> Result<bool> {
    let command = format!(
        "CREATE_REPLICATION_SLOT {} PHYSICAL ( RESERVE_WAL )",
        quoted_name(name)
    );
    match client.query(&command) {
        Ok(_) => Ok(true),
        Err(ReceiverError::Server { report, .. }) if report.sqlstate == "42710" => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_hexadecimal_halves() {
        assert_eq!(position("1/AB"), Some(Lsn(0x1_0000_00AB)));
        assert_eq!(position("FFFFFFFF/ffffffff"), Some(Lsn(u64::MAX)));
        for text in ["", "/", "1", "1/", "/1", "+1/0", "1/000000000", "1/2/3", "1/G"] {
            assert_eq!(position(text), None, "{text}");
        }
    }
}
