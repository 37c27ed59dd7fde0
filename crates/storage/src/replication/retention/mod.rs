//! The log that must stay on disk beyond what recovery needs: for standbys, archives and backups.
//!
//! | holds log | from | until |
//! | --- | --- | --- |
//! | follower: a connection that reads the log, or a backup under way | what it was sent last | it ends |
//! | slot: a name that stays when the connection is gone | what the follower last said it has on disk | it is dropped |
//! | `wal_keep_size` | that many bytes before the log's end | – |
//!
//! A slot whose log is longer than `max_slot_wal_keep_size` is *lost*: it holds nothing from then on, and a follower that uses
//! it gets an error that says what to do. The same limit ends followers that are too far behind.
//!
//! # Rules
//! - R1: log is removed before a position only after `LogRetention::release` has moved `kept_from` there, under the
//!   mutex. A follower or slot is entered under the same mutex, and refused if it needs log before `kept_from`. So
//!   there are two orders. If the entry comes first, `release` sees it and stops before it. If `release` comes first,
//!   the entry is refused. A reading of the slots that is older than the removal does not exist.
//! - R2: before `kept_from` moves, the slot file on disk says of each slot the position that `release` has used. After
//!   a crash a slot never asks for log that is gone.
//! - R3: a follower that has lost its log learns it before it sends what it read: it asks [`Follower::is_lost`] after
//!   the read, and `release` marks it before the log is removed.
//! - R4: a slot that was reported as made or dropped is so after a power cut: the file is durable before that.
//! - R5: each checkpoint writes what the slots' followers have confirmed since the one before, also if no log goes, and a
//!   slot's first position is written at once. So a slot keeps its position over every stop, and over a crash it is a
//!   checkpoint behind at most. A position that is too old keeps more log; none at all would keep nothing.
//!
//! The mutex is held while the slot file is written. Only followers and checkpoints take it, no session that runs
//! statements.
//!
//! A follower that is a standby ([`Follower::stand_by`]) hands on what it says to
//! [`sync_replication`](crate::replication::sync_replication), without the mutex.

mod follower;
mod lag;
mod slot_file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use clearway_txn::Xid;

use crate::disk::Disk;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::replication::sync_replication::{StandbyId, SyncReplication, SyncState};
use crate::wal::SEGMENT_SIZE;
use crate::wal::segment_name::segment_name_in;
use crate::wal::timeline::SharedHistory;
pub use follower::Follower;
pub use lag::FollowerLags;
use lag::LagSamples;
pub(crate) use slot_file::SLOTS;
use slot_file::SlotFile;

/// Slots at most.
pub const SLOTS_MAX: usize = 64;
/// Bytes of a slot's name at most.
pub const SLOT_NAME_BYTES_MAX: usize = 63;

/// The limits of the log that is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetentionLimits {
    /// Bytes before the log's end that stay in any case.
    pub keep_bytes: u64,
    /// The most bytes that a slot holds; `None`: any number.
    pub slot_bytes_max: Option<u64>,
}

/// A slot as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// The log is kept from here; `None` until its follower has said what it has.
    pub restart: Option<Lsn>,
    /// The log that it needs is gone.
    pub lost: bool,
    /// The session that it ends with.
    pub temporary_of: Option<u32>,
    /// The session that uses it.
    pub active_process_id: Option<u32>,
}

/// A follower as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowerProgress {
    /// The session that sends.
    pub process_id: u32,
    /// True if it has been sent all that was durable when it was last looked at.
    pub caught_up: bool,
    /// A backup, which is sent no log.
    pub is_backup: bool,
    /// Sent up to here.
    pub sent: Lsn,
    /// The positions that the follower reports as written, durable and replayed; zero if it has not said.
    pub written: Lsn,
    /// See `written`.
    pub flushed: Lsn,
    /// See `written`.
    pub replayed: Lsn,
    /// The time of its last report, in microseconds since 2000, by the server's clock.
    pub reply_time: Option<i64>,
    /// The oldest xid that it asks the horizon to be held back for.
    pub xmin: Option<Xid>,
    /// Its lags when it was looked at.
    pub lags: FollowerLags,
    /// The state of the standby for commits,
    pub sync_state: SyncState,
    /// and its place among the standbys that they wait for; 0: none.
    pub sync_priority: u32,
}

#[derive(Debug)]
struct Entered {
    progress: FollowerProgress,
    slot: Option<String>,
    lost: bool,
    lag_samples: LagSamples,
    standby: Option<StandbyId>,
    /// It reads its own log, and is no follower that others see.
    is_own: bool,
}

#[derive(Debug)]
struct State {
    /// The log before is gone, or may go at any time (R1).
    kept_from: Lsn,
    next_number: u64,
    followers: BTreeMap<u64, Entered>,
    slots: BTreeMap<String, Slot>,
    /// The file says something else than `slots`.
    unsaved: bool,
}

/// The holders of the log, and their positions. See the module.
#[derive(Debug)]
pub struct LogRetention {
    file: SlotFile,
    limits: RetentionLimits,
    /// Names the segment that is gone.
    history: Arc<SharedHistory>,
    replication: Arc<SyncReplication>,
    state: Mutex<State>,
}

impl LogRetention {
    /// The slots of the data directory `dir`, whose log is there from `kept_from` on.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        fsync: bool,
        limits: RetentionLimits,
        kept_from: Lsn,
        history: Arc<SharedHistory>,
        replication: Arc<SyncReplication>,
    ) -> Result<LogRetention> {
        let file = SlotFile::new(disk, dir, fsync);
        let mut slots = BTreeMap::new();
        for mut slot in file.read()? {
            slot.lost |= slot.restart.is_some_and(|restart| restart < kept_from);
            slots.insert(slot.name.clone(), slot);
        }
        Ok(LogRetention {
            file,
            limits,
            history,
            replication,
            state: Mutex::new(State {
                kept_from,
                next_number: 0,
                followers: BTreeMap::new(),
                slots,
                unsaved: false,
            }),
        })
    }

    fn log_removed(&self, position: Lsn) -> StorageError {
        StorageError::LogRemoved {
            segment: segment_name_in(&self.history.get(), position.0 / SEGMENT_SIZE),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A checkpoint with the redo position `redo` is complete, and the log is durable up to `flushed`: the position
    /// before which no log is needed any more, for [`LogDevice::forget_before`](crate::wal::LogDevice::forget_before).
    pub(crate) fn release(&self, redo: Lsn, flushed: Lsn) -> Result<Lsn> {
        let mut state = self.lock();
        let limit = self.limits.slot_bytes_max;
        let oldest_allowed = Lsn(limit.map_or(0, |bytes| flushed.0.saturating_sub(bytes)));
        let mut needed = redo.min(Lsn(flushed.0.saturating_sub(self.limits.keep_bytes)));
        let State {
            followers,
            slots,
            unsaved,
            ..
        } = &mut *state;
        for slot in slots.values_mut().filter(|slot| !slot.lost) {
            let Some(restart) = slot.restart else { continue };
            if segment_start(restart) < segment_start(oldest_allowed) && restart < redo {
                tracing::warn!(
                    slot = slot.name,
                    "the slot is lost: it holds more log than max_slot_wal_keep_size"
                );
                slot.lost = true;
                *unsaved = true;
            } else {
                needed = needed.min(restart);
            }
        }
        for follower in followers.values_mut().filter(|follower| !follower.lost) {
            let sent = follower.progress.sent;
            follower.lost = segment_start(sent) < segment_start(oldest_allowed) && sent < redo;
            if !follower.lost {
                needed = needed.min(sent);
            }
        }
        let kept_from = segment_start(needed);
        if kept_from > state.kept_from {
            // R2.
            self.save(&mut state)?;
            state.kept_from = kept_from;
        } else {
            // R5. No log goes, so that no slot is in danger if it fails.
            self.try_to_save(&mut state);
        }
        Ok(state.kept_from)
    }

    /// The log ends at `end` now, which is before what followers may have confirmed: the beginning of a record was given up
    /// (S8 of `standby`). They will ask for what follows `end` again, so their slots keep it.
    pub(crate) fn log_was_taken_back(&self, end: Lsn) {
        let mut state = self.lock();
        let State { slots, unsaved, .. } = &mut *state;
        for slot in slots.values_mut() {
            if slot.restart.is_some_and(|restart| restart > end) {
                slot.restart = Some(end);
                *unsaved |= slot.temporary_of.is_none();
            }
        }
    }

    /// Makes the file say what `state` says.
    fn save(&self, state: &mut State) -> Result<()> {
        if state.unsaved {
            let lasting = state.slots.values().filter(|slot| slot.temporary_of.is_none());
            self.file.write(lasting)?;
            state.unsaved = false;
        }
        Ok(())
    }

    /// As [`save`](Self::save); the next checkpoint tries again if it fails.
    fn try_to_save(&self, state: &mut State) {
        if let Err(error) = self.save(state) {
            tracing::warn!(%error, "the positions of the replication slots could not be written");
        }
    }

    /// Enters a follower that is sent the log from `from` on by the session `process_id`, through `slot` if it uses one.
    pub fn follow(self: &Arc<Self>, process_id: u32, from: Lsn, slot: Option<&str>) -> Result<Follower> {
        self.enter(process_id, from, slot, false)
    }

    /// Enters a backup that needs the log from `from` on.
    pub(crate) fn hold_for_backup(self: &Arc<Self>, process_id: u32, from: Lsn) -> Result<Follower> {
        self.enter(process_id, from, None, true)
    }

    /// Holds the log from `from` on, or from the oldest that there is, for a look at it; it is not listed.
    pub(crate) fn hold_for_reading(self: &Arc<Self>, from: Lsn) -> Result<Follower> {
        loop {
            let from = from.max(self.lock().kept_from);
            match self.enter(0, from, None, false) {
                // More was removed in between.
                Err(StorageError::LogRemoved { .. }) => {}
                entered => {
                    let follower = entered?;
                    follower.with(|entered, _, _| entered.is_own = true);
                    return Ok(follower);
                }
            }
        }
    }

    fn enter(
        self: &Arc<Self>,
        process_id: u32,
        from: Lsn,
        slot: Option<&str>,
        is_backup: bool,
    ) -> Result<Follower> {
        let mut state = self.lock();
        if let Some(name) = slot {
            let slot = find(&mut state.slots, name)?;
            if let Some(process_id) = slot.active_process_id {
                return Err(StorageError::SlotActive {
                    name: name.to_owned(),
                    process_id,
                });
            }
            if slot.lost {
                return Err(StorageError::SlotLost {
                    name: name.to_owned(),
                });
            }
        }
        // R1.
        if from < state.kept_from {
            return Err(self.log_removed(from));
        }
        if let Some(name) = slot {
            find(&mut state.slots, name)?.active_process_id = Some(process_id);
        }
        state.next_number += 1;
        let number = state.next_number;
        let progress = FollowerProgress {
            process_id,
            caught_up: false,
            is_backup,
            sent: from,
            written: Lsn(0),
            flushed: Lsn(0),
            replayed: Lsn(0),
            reply_time: None,
            xmin: None,
            lags: FollowerLags::default(),
            sync_state: SyncState::Async,
            sync_priority: 0,
        };
        state.followers.insert(
            number,
            Entered {
                progress,
                slot: slot.map(str::to_owned),
                lost: false,
                lag_samples: LagSamples::default(),
                standby: None,
                is_own: false,
            },
        );
        Ok(Follower {
            retention: Arc::clone(self),
            number,
            standby: None,
        })
    }

    /// Makes a slot, which ends with the session `temporary_of` if there is one. With `reserve_from`, the log is kept
    /// from there on (or from the oldest that is there) at once.
    pub fn create_slot(
        &self,
        name: &str,
        temporary_of: Option<u32>,
        reserve_from: Option<Lsn>,
    ) -> Result<()> {
        check_name(name)?;
        let mut state = self.lock();
        if state.slots.contains_key(name) {
            return Err(StorageError::SlotExists {
                name: name.to_owned(),
            });
        }
        if state.slots.len() >= SLOTS_MAX {
            return Err(StorageError::TooManySlots { limit: SLOTS_MAX });
        }
        let slot = Slot {
            name: name.to_owned(),
            restart: reserve_from.map(|from| from.max(state.kept_from)),
            lost: false,
            temporary_of,
            active_process_id: None,
        };
        state.slots.insert(name.to_owned(), slot);
        if temporary_of.is_none() {
            state.unsaved = true;
            if let Err(error) = self.save(&mut state) {
                state.slots.remove(name);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes a slot that no session uses.
    pub fn drop_slot(&self, name: &str) -> Result<()> {
        let mut state = self.lock();
        let slot = find(&mut state.slots, name)?;
        if let Some(process_id) = slot.active_process_id {
            return Err(StorageError::SlotActive {
                name: name.to_owned(),
                process_id,
            });
        }
        let slot = state.slots.remove(name);
        state.unsaved = true;
        if let (Err(error), Some(slot)) = (self.save(&mut state), slot) {
            state.slots.insert(name.to_owned(), slot);
            return Err(error);
        }
        Ok(())
    }

    /// The session has ended: so do its temporary slots.
    pub fn session_ended(&self, process_id: u32) {
        self.lock()
            .slots
            .retain(|_, slot| slot.temporary_of != Some(process_id));
    }

    /// The limits of the log that is kept.
    pub fn limits(&self) -> RetentionLimits {
        self.limits
    }

    /// The slot of this name.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.lock().slots.get(name).cloned()
    }

    /// All slots, by name.
    pub fn slots(&self) -> Vec<Slot> {
        self.lock().slots.values().cloned().collect()
    }

    /// All followers, in the order in which they came.
    pub fn followers(&self) -> Vec<FollowerProgress> {
        let state = self.lock();
        let now = Instant::now();
        let listed = state.followers.values().filter(|entered| !entered.is_own);
        let shown = listed.map(|entered| {
            let (sync_state, sync_priority) = match entered.standby {
                Some(id) => self.replication.standing(id),
                None => (SyncState::Async, 0),
            };
            FollowerProgress {
                lags: entered.lag_samples.at(now),
                sync_state,
                sync_priority,
                ..entered.progress
            }
        });
        shown.collect()
    }
}

fn segment_start(position: Lsn) -> Lsn {
    Lsn(position.0 / SEGMENT_SIZE * SEGMENT_SIZE)
}

fn find<'a>(slots: &'a mut BTreeMap<String, Slot>, name: &str) -> Result<&'a mut Slot> {
    slots.get_mut(name).ok_or_else(|| StorageError::NoSuchSlot {
        name: name.to_owned(),
    })
}

fn check_name(name: &str) -> Result<()> {
    let problem = if name.is_empty() {
        "is too short"
    } else if name.len() > SLOT_NAME_BYTES_MAX {
        "is too long"
    } else if name
        .bytes()
        .any(|byte| !(byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'))
    {
        "contains invalid character; only lower case letters, numbers, and the underscore may be used"
    } else {
        return Ok(());
    };
    Err(StorageError::SlotName {
        name: name.to_owned(),
        problem,
    })
}
