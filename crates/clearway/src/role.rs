//! The role that `clearway standby` gives a directory, which follows from the directory and not from the command line.
//!
//! | the directory | becomes |
//! | --- | --- |
//! | missing, empty, or with a copy that was not finished | a standby, with a copy of the server |
//! | a standby's | a standby |
//! | a copy by `pg_basebackup` that no server has opened | a standby: nothing was logged in it |
//! | promoted, while it followed the server that is to be followed | a primary, as it is: the same command starts it again after a crash, and the promotion counts |
//! | written to by a server of its own, otherwise | a standby, if the server says that its log goes on from all of it; otherwise an error, and nothing is changed |
//!
//! `--rejoin` and the file `standby.signal` turn the fourth line into the fifth.

use std::path::Path;

use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_storage::directory_state::{PROMOTED_FROM, directory_state};
use clearway_storage::received_copy::copy_is_wanted;

use crate::error::Result;

/// The role of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A standby that has to be copied first.
    New,
    /// A standby.
    Standby,
    /// A primary that was a standby.
    Primary {
        /// The timeline that it is on.
        timeline: u32,
    },
    /// A standby that was no standby before.
    FormerPrimary,
}

/// The role of the directory `data` under a command to follow the server `primary`.
pub(crate) fn of(data: &Path, primary: &ConnInfo, rejoin: bool) -> Result<Role> {
    if copy_is_wanted(data)? {
        return Ok(Role::New);
    }
    let state = directory_state(data)?;
    if state.standby || state.is_new_copy {
        return Ok(Role::Standby);
    }
    let note = std::fs::read_to_string(data.join(PROMOTED_FROM)).unwrap_or_default();
    if !rejoin && !state.wants_standby && note.trim_end() == primary.to_string() {
        return Ok(Role::Primary {
            timeline: state.timeline,
        });
    }
    Ok(Role::FormerPrimary)
}
