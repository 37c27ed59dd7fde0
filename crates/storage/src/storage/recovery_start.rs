//! The position at which recovery begins: the end of a checkpoint, and of a restartpoint.

use std::sync::atomic::Ordering;

use super::Storage;
use crate::error::{Result, StorageError};
use crate::files::control_file::Control;
use crate::page::Lsn;
use crate::wal::LogDevice;

impl Storage {
    /// The redo position that the control file names: a start after a crash now would replay the log from there on. It moves when
    /// a checkpoint or restartpoint is complete, later than that of [`Wal::redo`](crate::wal::Wal::redo).
    pub fn recovery_start(&self) -> Lsn {
        Lsn(self.recovery_start.load(Ordering::Relaxed))
    }

    /// Has recovery begin at the redo position of `control`, and recycles the log before it that nothing else needs. All that
    /// was logged before that position is in the files, and durable there. `received`: the end of the durable log.
    pub(crate) fn begin_recovery_at(&self, control: Control, received: Lsn) -> Result<()> {
        self.control
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .write(control)?;
        // Relaxed: it is shown, and nothing is done by it.
        self.recovery_start.store(control.redo.0, Ordering::Relaxed);
        let needed_from = self.retention.release(control.redo, received)?;
        let recycled = self.wal.device().forget_before(needed_from.0);
        recycled.map_err(|error| StorageError::io("recycle", &self.log_dir(), error))
    }
}
