//! Step 1: the directory and its control file. Step 3: its role.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{OpenAs, Opening, recovery};
use crate::disk::{Disk, LockHeld};
use crate::error::{Result, StorageError};
use crate::files::control_file::{Control, ControlFile, State};
use crate::files::copy_manifest;
use crate::files::data_directory::{self, Content};
use crate::files::directory_state::STANDBY_SIGNAL;
use crate::page::Lsn;

/// A directory that is locked, and may be opened in the role that is wanted.
pub(super) struct EnteredDirectory {
    pub(super) lock: LockHeld,
    pub(super) control_file: ControlFile,
    /// The content of the control file as it was found.
    pub(super) control: Control,
    /// The directory is a copy that was never opened, and its files are those of its list.
    is_checked_copy: bool,
}

/// Enters the directory. What it holds stays as it is, save for what a database that was never used has left.
pub(super) fn enter(opening: &Opening<'_>) -> Result<EnteredDirectory> {
    let (disk, dir, fsync) = (&*opening.disk, opening.dir, opening.options.fsync);
    let (lock, content) = data_directory::enter(disk, dir, opening.open_as.if_missing(), fsync)?;
    let (control_file, control) = open_control(disk, dir, content, fsync)?;
    let mut entered = EnteredDirectory {
        lock,
        control_file,
        control,
        is_checked_copy: false,
    };
    entered.refuse_a_standbys(opening)?;
    entered.is_checked_copy = control.backup_end > Lsn(0) && copy_manifest::check_copy(disk, dir)?;
    Ok(entered)
}

impl EnteredDirectory {
    /// A standby's directory is not opened as a database. To look at it, and to recover a copy of it to a point, is
    /// another matter.
    fn refuse_a_standbys(&self, opening: &Opening<'_>) -> Result<()> {
        let dir = || opening.dir.to_owned();
        if !matches!(opening.open_as, OpenAs::Database) {
            return Ok(());
        }
        if self.control.state == State::Standby {
            return Err(StorageError::IsStandby { dir: dir() });
        }
        if data_directory::has(&*opening.disk, opening.dir, STANDBY_SIGNAL)? {
            return Err(StorageError::WantsStandby { dir: dir() });
        }
        Ok(())
    }

    /// Gives the directory the role in which it is opened. A log that is refused has to be found before: the directory stays
    /// as it is then (O6 of `wal::own_records`), and a copy that was to be a standby is still a database.
    pub(super) fn take_role(&mut self, opening: &Opening<'_>) -> Result<()> {
        if !opening.open_as.changes_it() {
            return Ok(());
        }
        let (disk, dir) = (&*opening.disk, opening.dir);
        if self.is_checked_copy {
            // Replay changes the files, and may be interrupted.
            copy_manifest::set_aside(disk, dir)?;
        }
        if opening.open_as.standby().is_some() {
            self.become_a_standbys()?;
        }
        remove_signal(disk, dir)
    }

    /// Before a file is changed: from here on it is no database of its own any more.
    fn become_a_standbys(&mut self) -> Result<()> {
        if self.control.state == State::Standby {
            return Ok(());
        }
        self.control_file.write(Control {
            state: State::Standby,
            ..self.control
        })
    }
}

/// Removes the file that asks for a standby. The control file has the role by now; the names are synced later (`files`).
fn remove_signal(disk: &dyn Disk, dir: &Path) -> Result<()> {
    if !data_directory::has(disk, dir, STANDBY_SIGNAL)? {
        return Ok(());
    }
    let signal = dir.join(STANDBY_SIGNAL);
    let removed = disk.remove_file(&signal);
    removed.map_err(|error| StorageError::io("remove", &signal, error))
}

/// Opens the control file of the database in `dir`, or makes it if there is none. Returns the file and its
/// content.
fn open_control(
    disk: &dyn Disk,
    dir: &Path,
    content: Content,
    fsync: bool,
) -> Result<(ControlFile, Control)> {
    let path = dir.join(data_directory::CONTROL);
    let (file, control) = match content {
        Content::Database => ControlFile::open(disk, path, fsync)?,
        // `enter` refuses what is unfinished.
        Content::Nothing | Content::UnfinishedCopy | Content::UnfinishedRewind => {
            let control = Control::new(recovery::LOG_START, new_system_identifier());
            (ControlFile::create(disk, path, fsync, control)?, control)
        }
    };
    match control.state {
        State::Initialising => data_directory::remove_unfinished(disk, dir)?,
        State::Running | State::Clean | State::Standby => data_directory::check_parts(disk, dir)?,
    }
    Ok((file, control))
}

/// A number that no other database is likely to have: the nanosecond at which it was made, and the process that made it.
fn new_system_identifier() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let high = since_1970.as_secs() << 32;
    // Programs print it as a number without a sign, and PostgreSQL's own ones stay below 2^63 until 2038.
    (high | u64::from(since_1970.subsec_nanos() ^ std::process::id().rotate_left(16))) & (u64::MAX >> 1)
}
