//! Does a server's log go on from ours? The questions that come before every stream, and before a directory is touched.
//!
//! | question | answered by |
//! | --- | --- |
//! | the same database? | IDENTIFY_SYSTEM: the system identifier |
//! | a timeline that is ours, or comes from ours? | TIMELINE_HISTORY: numbers, identities and ends |
//! | the same log, up to where ours ends? | LOG_DIGEST, of up to 16 MiB before that |
//!
//! - A1: nothing is changed here before all three are answered.
//! - A2: every connection asks all three, also that of a standby which has followed the same address before: another server
//!   may listen there by now.
//! - A3: the same number of a timeline says nothing. Two standbys that are promoted at once begin the same one, and two
//!   copies of one directory are on the same one from the beginning.
//!
//! If the digests differ, the position at which the logs part is searched by halves, for the message.

use std::fmt::Write;

use clearway_storage::Lsn;
use clearway_storage::log_digest::{COMPARED_BYTES, LogDigest};
use clearway_storage::timeline::FIRST_TIMELINE;

use super::client::Client;
use super::error::{ReceiverError, Result};
use super::identify::{SystemIdentity, identify, timeline_history};
use super::{NotFollowed, OwnLog};

/// The answers of a server whose log goes on from ours.
#[derive(Debug)]
pub struct Agreed {
    /// Its database and timeline.
    pub system: SystemIdentity,
    /// The history file of that timeline; `None` for the first.
    pub history: Option<Vec<u8>>,
}

/// Asks the three questions about our log, which ends at `position`.
pub fn check(client: &mut Client, own: &dyn OwnLog, position: Lsn) -> Result<Agreed> {
    let system = identify(client)?;
    let address = client.address().to_owned();
    if system.identifier != own.system_identifier() {
        return Err(ReceiverError::OtherSystem {
            address,
            ours: own.system_identifier(),
            theirs: system.identifier,
        });
    }
    if system.timeline < own.timeline() {
        return Err(ReceiverError::EarlierTimeline {
            address,
            ours: own.timeline(),
            theirs: system.timeline,
        });
    }
    let history = match system.timeline {
        FIRST_TIMELINE => None,
        later => Some(timeline_history(client, later)?),
    };
    let common = own.common_end(system.timeline, history.as_deref(), position);
    let common = common.map_err(|problem| not_followed(&address, problem))?;
    compare(client, &|start, end| own.digest(start, end), common)?;
    Ok(Agreed { system, history })
}

/// The error for a server at `address` that is not followed.
pub(super) fn not_followed(address: &str, problem: NotFollowed) -> ReceiverError {
    let address = address.to_owned();
    match problem {
        NotFollowed::Never(problem) => ReceiverError::Diverged { address, problem },
        NotFollowed::NotYet(problem) => ReceiverError::NotYetFollowed { address, problem },
    }
}

/// Digests of the log here between two positions, as [`OwnLog::digest`].
pub(super) type Digests<'a> = &'a dyn Fn(Lsn, Lsn) -> clearway_storage::Result<LogDigest>;

/// The third question, of the log up to `end`.
pub(super) fn compare(client: &mut Client, own: Digests<'_>, end: Lsn) -> Result<()> {
    let ours = own(Lsn(end.0.saturating_sub(COMPARED_BYTES)), end)?;
    if ours.start >= ours.end {
        return Ok(());
    }
    let theirs = log_digest(client, ours.start, ours.end)?;
    if theirs.start > ours.end {
        return Err(ReceiverError::LogBeginsLater {
            address: client.address().to_owned(),
            position: ours.end,
            begins: theirs.start,
        });
    }
    let Some((ours, theirs)) = of_same_positions(client, own, ours, theirs)? else {
        return Ok(());
    };
    if ours.digits == theirs.digits {
        return Ok(());
    }
    // Up to `same` the logs agree, if they do at the beginning; the byte before `differs` is another one or follows such a one.
    let (start, mut same, mut differs) = (ours.start, ours.start.0, ours.end.0);
    while differs - same > 1 {
        let middle = same + (differs - same) / 2;
        let ours = own(start, Lsn(middle))?;
        let theirs = log_digest(client, start, Lsn(middle))?;
        match of_same_positions(client, own, ours, theirs)? {
            // The oldest log was removed meanwhile.
            Some((ours, _)) if ours.start != start => break,
            Some((ours, theirs)) if ours.digits == theirs.digits => same = middle,
            Some(_) => differs = middle,
            None => break,
        }
    }
    let parting = match Lsn(same) {
        at if at == start => format!("at {at} or before"),
        at => format!("at {at}"),
    };
    let mut problem = format!(
        "the two logs part {parting}: from there on this directory has log, up to {end}, that the server does not have, and \
         the server has other log at the same positions"
    );
    let _ = write!(
        problem,
        " (both wrote to copies of the same files); make a new base backup: \"clearway standby\" with the name of an empty \
         directory (and keep this one if you need what was committed here behind that position)"
    );
    Err(ReceiverError::Diverged {
        address: client.address().to_owned(),
        problem,
    })
}

/// Our digest and the server's of the same positions, which are those of `ours` that the server has; `None` if it has none.
fn of_same_positions(
    client: &Client,
    own: Digests<'_>,
    ours: LogDigest,
    theirs: LogDigest,
) -> Result<Option<(LogDigest, LogDigest)>> {
    if theirs.start >= theirs.end {
        return Ok(None);
    }
    if theirs.start < ours.start || theirs.end > ours.end {
        return Err(client.broken("its answer to LOG_DIGEST is about other positions"));
    }
    if (theirs.start, theirs.end) == (ours.start, ours.end) {
        return Ok(Some((ours, theirs)));
    }
    let ours = own(theirs.start, theirs.end)?;
    let same = (theirs.start, theirs.end) == (ours.start, ours.end);
    // Ours was removed meanwhile: there is less to compare, and the next connection compares it.
    Ok(same.then_some((ours, theirs)))
}

/// Asks for a digest of the server's log.
fn log_digest(client: &mut Client, start: Lsn, end: Lsn) -> Result<LogDigest> {
    let results = client.query(&format!("LOG_DIGEST {start} {end}"))?;
    let read = || {
        let result = results.first()?;
        Some(LogDigest {
            start: result.text("start")?.parse().ok()?,
            end: result.text("end")?.parse().ok()?,
            digits: result.text("digest")?.to_owned(),
        })
    };
    read().ok_or_else(|| client.broken("its answer to LOG_DIGEST lacks something"))
}
