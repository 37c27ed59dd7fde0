//! A server's answers about itself, and its timelines' histories.

use clearway_storage::Lsn;

use super::client::{Client, quoted_name};
use super::error::{ReceiverError, Result};

/// The answer to IDENTIFY_SYSTEM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemIdentity {
    /// The system identifier of its database.
    pub identifier: u64,
    /// The timeline that its log is on.
    pub timeline: u32,
    /// The durable end of its log.
    pub flushed: Lsn,
}

/// Asks which database it is.
pub fn identify(client: &mut Client) -> Result<SystemIdentity> {
    let results = client.query("IDENTIFY_SYSTEM")?;
    let read = || {
        let result = results.first()?;
        Some(SystemIdentity {
            identifier: result.text("systemid")?.parse().ok()?,
            timeline: result.text("timeline")?.parse().ok()?,
            flushed: result.text("xlogpos")?.parse().ok()?,
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
