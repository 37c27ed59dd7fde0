//! The log that must stay on disk beyond what recovery needs: for standbys, archives and backups.
//!
//! | holds log | from | until |
//! | --- | --- | --- |
//! | follower: a connection that reads the log, or a backup under way | what it was sent last | it ends |
//! | slot: a name that stays when the connection is gone | what the follower last said it has on disk | it is dropped |
//! | `wal_keep_size` | that many bytes before the log's end | – |
//!
//! A slot whose log is longer than `max_slot_wal_keep_size` is *lost*: it holds nothing from then on, and whoever uses
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

mod lag;
mod slot_file;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use clearway_txn::Xid;

use crate::disk::Disk;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::replication::sync_replication::{
    LogSender, StandbyId, StandbyProgress, SyncReplication, SyncState,
};
use crate::wal::SEGMENT_SIZE;
use crate::wal::segment_name::segment_name_in;
use crate::wal::timeline::SharedHistory;
pub use lag::FollowerLags;
use lag::LagSamples;
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
    /// Its lags.
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
        let listed = state.followers.values().filter(|entered| !entered.is_own);
        let shown = listed.map(|entered| {
            let (sync_state, sync_priority) = match entered.standby {
                Some(id) => self.replication.standing(id),
                None => (SyncState::Async, 0),
            };
            FollowerProgress {
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

/// A reader of the log that holds what it has not been sent. Dropped, it holds nothing.
#[derive(Debug)]
pub struct Follower {
    retention: Arc<LogRetention>,
    number: u64,
    standby: Option<AsStandby>,
}

/// The state of a follower that is a standby.
#[derive(Debug)]
struct AsStandby {
    id: StandbyId,
    sender: Arc<LogSender>,
    /// Its last report.
    reported: Mutex<StandbyProgress>,
}

impl Follower {
    fn with<R>(&self, act: impl FnOnce(&mut Entered, &mut BTreeMap<String, Slot>, &mut bool) -> R) -> R {
        let mut state = self.retention.lock();
        let State {
            followers,
            slots,
            unsaved,
            ..
        } = &mut *state;
        let entered = followers
            .get_mut(&self.number)
            .expect("entered until it is dropped");
        act(entered, slots, unsaved)
    }

    /// Says that it is a standby, which calls itself `name`: commits may wait for it. `wake` wakes the thread that sends
    /// to it, when that sleeps after [`going_to_sleep`](Self::going_to_sleep).
    pub fn stand_by(&mut self, name: &str, wake: impl Fn() + Send + Sync + 'static) {
        let sender = Arc::new(LogSender::new(wake));
        let id = self.retention.replication.join(name, Arc::clone(&sender));
        self.with(|entered, _, _| entered.standby = Some(id));
        self.standby = Some(AsStandby {
            id,
            sender,
            reported: Mutex::default(),
        });
    }

    /// The thread that sends is going to sleep, unless it finds log after this call.
    pub fn going_to_sleep(&self) {
        if let Some(standby) = &self.standby {
            standby.sender.going_to_sleep();
        }
    }

    /// The thread that sends runs.
    pub fn awake(&self) {
        if let Some(standby) = &self.standby {
            standby.sender.awake();
        }
    }

    /// Reports how far the standby is, if it is one and that is news.
    fn report(&self, progress: FollowerProgress) {
        let Some(standby) = &self.standby else { return };
        let mut reported = standby
            .reported
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = StandbyProgress {
            streams: reported.streams || progress.caught_up,
            written: progress.written,
            flushed: progress.flushed,
            applied: progress.replayed,
        };
        if *reported != now {
            *reported = now;
            self.retention.replication.report(standby.id, now);
        }
    }

    /// The start of the log that it still needs.
    pub fn position(&self) -> Lsn {
        self.with(|entered, _, _| entered.progress.sent)
    }

    /// An error if the log that it still needs may be gone (R3).
    pub fn is_lost(&self) -> Result<()> {
        self.with(|entered, _, _| {
            if entered.lost {
                Err(self.retention.log_removed(entered.progress.sent))
            } else {
                Ok(())
            }
        })
    }

    /// It needs nothing before `upto` any more. `caught_up`: there was nothing behind it.
    pub fn advance(&self, upto: Lsn, caught_up: bool) {
        let progress = self.with(|entered, _, _| {
            debug_assert!(upto >= entered.progress.sent);
            if upto > entered.progress.sent {
                entered.lag_samples.sent(upto, Instant::now());
            }
            entered.progress.sent = upto;
            entered.progress.caught_up = caught_up;
            entered.progress
        });
        self.report(progress);
    }

    /// The horizon is held back for the follower at `xmin`; `None`: not at all.
    pub fn holds_back(&self, xmin: Option<Xid>) {
        self.with(|entered, _, _| entered.progress.xmin = xmin);
    }

    /// The positions that the follower reports as written, durable and replayed; zero where it says nothing. Its slot
    /// keeps the log from what is replayed on, or durable if it replays nothing, and never less than it was sent: what
    /// is durable and cannot be replayed is asked for again.
    pub fn replied(&self, written: Lsn, flushed: Lsn, replayed: Lsn, reply_time: i64) {
        let mut begins = false;
        let progress = self.with(|entered, slots, unsaved| {
            let progress = &mut entered.progress;
            let sent = progress.sent;
            let newer = |old: Lsn, new: Lsn| if new == Lsn(0) { old } else { new.min(sent) };
            progress.written = newer(progress.written, written);
            progress.flushed = newer(progress.flushed, flushed);
            progress.replayed = newer(progress.replayed, replayed);
            progress.reply_time = Some(reply_time);
            progress.lags = entered.lag_samples.said(
                progress.written,
                progress.flushed,
                progress.replayed,
                Instant::now(),
            );
            let progress = *progress;
            let Some(slot) = entered.slot.as_ref().and_then(|name| slots.get_mut(name)) else {
                return progress;
            };
            let flushed = newer(Lsn(0), flushed);
            let has_replay = replayed != Lsn(0);
            let needed = if has_replay {
                flushed.min(replayed)
            } else {
                flushed
            };
            if needed != Lsn(0) && slot.restart.is_none_or(|restart| restart < needed) {
                begins = slot.restart.is_none() && slot.temporary_of.is_none();
                slot.restart = Some(needed);
                *unsaved |= slot.temporary_of.is_none();
            }
            progress
        });
        if begins {
            // R5.
            self.retention.try_to_save(&mut self.retention.lock());
        }
        self.report(progress);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(standby) = &self.standby {
            self.retention.replication.leave(standby.id);
        }
        let mut state = self.retention.lock();
        let entered = state.followers.remove(&self.number);
        if let Some(name) = entered.and_then(|entered| entered.slot)
            && let Some(slot) = state.slots.get_mut(&name)
        {
            slot.active_process_id = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::NativeDisk;
    use crate::wal::timeline::History;

    const AT: fn(u64) -> Lsn = |segment| Lsn(segment * SEGMENT_SIZE);

    fn open(dir: &Path, slot_bytes_max: Option<u64>, kept_from: Lsn) -> Arc<LogRetention> {
        let limits = RetentionLimits {
            keep_bytes: 0,
            slot_bytes_max,
        };
        let history = SharedHistory::new(History::first());
        let opened = LogRetention::open(
            Arc::new(NativeDisk),
            dir,
            true,
            limits,
            kept_from,
            history,
            Arc::default(),
        );
        Arc::new(opened.unwrap())
    }

    #[test]
    fn log_stays_for_followers_and_slots_and_no_longer() {
        let dir = tempfile::tempdir().unwrap();
        let retention = open(dir.path(), None, AT(1));
        let follower = retention.follow(7, Lsn(AT(2).0 + 5), None).unwrap();
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(2));
        retention.create_slot("archive", None, Some(AT(1))).unwrap();
        assert_eq!(
            retention.slot("archive").unwrap().restart,
            Some(AT(2)),
            "what is there"
        );
        follower.advance(AT(5), true);
        assert_eq!(
            retention.release(AT(9), AT(9)).unwrap(),
            AT(2),
            "the slot needs it"
        );
        drop(follower);
        let follower = retention.follow(7, AT(2), Some("archive")).unwrap();
        follower.advance(AT(6), true);
        follower.replied(AT(6), Lsn(AT(3).0 + 8), Lsn(0), 1);
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(3));
        // More than it was sent cannot be durable there.
        follower.replied(AT(9), AT(9), AT(9), 2);
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(6));
        drop(follower);
        retention.drop_slot("archive").unwrap();
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(9));
        assert!(matches!(
            retention.follow(7, AT(8), None),
            Err(StorageError::LogRemoved { .. })
        ));
    }

    #[test]
    fn slots_keep_log_that_will_be_asked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let retention = open(dir.path(), None, AT(1));
        for (name, position) in [("ahead", AT(6)), ("behind", AT(5))] {
            retention.create_slot(name, None, Some(AT(1))).unwrap();
            let follower = retention.follow(7, AT(1), Some(name)).unwrap();
            follower.advance(position, true);
            follower.replied(position, position, position, 1);
        }
        let end = Lsn(AT(6).0 - 8);
        retention.log_was_taken_back(end);
        let restart = |name| retention.slot(name).unwrap().restart;
        assert_eq!((restart("ahead"), restart("behind")), (Some(end), Some(AT(5))));
        retention.drop_slot("behind").unwrap();
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(5));
    }

    /// A standby that has failed to replay what is durable there may need it again; one that replays nothing does not.
    #[test]
    fn a_slot_keeps_what_was_not_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let retention = open(dir.path(), None, AT(1));
        retention.create_slot("standby", None, Some(AT(1))).unwrap();
        let follower = retention.follow(7, AT(1), Some("standby")).unwrap();
        follower.advance(AT(6), true);
        let restart = || retention.slot("standby").unwrap().restart;
        follower.replied(AT(6), AT(5), AT(3), 1);
        assert_eq!(restart(), Some(AT(3)));
        follower.replied(AT(6), AT(6), AT(3), 1);
        assert_eq!(restart(), Some(AT(3)));
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(3));
        follower.replied(AT(6), AT(6), AT(6), 1);
        assert_eq!(restart(), Some(AT(6)));
        retention.create_slot("archive", None, Some(AT(6))).unwrap();
        let follower = retention.follow(8, AT(6), Some("archive")).unwrap();
        follower.advance(AT(8), true);
        follower.replied(AT(8), AT(7), Lsn(0), 1);
        assert_eq!(retention.slot("archive").unwrap().restart, Some(AT(7)));
    }

    /// After a crash a slot asks for nothing that was removed (R2), and temporary ones are gone.
    #[test]
    fn slots_outlive_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let retention = open(dir.path(), None, AT(1));
        retention.create_slot("standby_1", None, Some(AT(1))).unwrap();
        retention.create_slot("unused", None, None).unwrap();
        retention
            .create_slot("for_a_backup", Some(7), Some(AT(1)))
            .unwrap();
        let follower = retention.follow(7, AT(1), Some("standby_1")).unwrap();
        follower.advance(AT(4), true);
        follower.replied(AT(4), AT(4), AT(4), 1);
        retention.session_ended(7);
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(4));
        drop(retention);
        let retention = open(dir.path(), None, AT(4));
        let slots = retention.slots();
        assert_eq!(slots.len(), 2);
        assert_eq!((slots[0].restart, slots[0].lost), (Some(AT(4)), false));
        assert_eq!((slots[1].restart, slots[1].lost), (None, false));
        assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(4));
    }

    /// Alice makes a slot that reserves nothing, and Bob archives through it. The server stops before the log has grown by a
    /// segment: the slot still says where Bob is, and Bob goes on (R5).
    #[test]
    fn a_slot_keeps_its_position_although_no_log_was_removed() {
        let dir = tempfile::tempdir().unwrap();
        let restart = || open(dir.path(), None, AT(1)).slot("bob").unwrap().restart;
        let retention = open(dir.path(), None, AT(1));
        retention.create_slot("bob", None, None).unwrap();
        let bob = retention.follow(7, AT(1), Some("bob")).unwrap();
        let (first, second) = (Lsn(AT(1).0 + 800), Lsn(AT(1).0 + 1600));
        bob.advance(second, true);
        bob.replied(first, first, first, 1);
        assert_eq!(restart(), Some(first), "at once: a crash may follow");
        bob.replied(second, second, second, 2);
        assert_eq!(retention.release(Lsn(AT(1).0 + 64), second).unwrap(), AT(1));
        assert_eq!(restart(), Some(second), "by the checkpoint of an orderly stop");
    }

    #[test]
    fn a_slot_that_holds_too_much_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let retention = open(dir.path(), Some(2 * SEGMENT_SIZE), AT(1));
        retention.create_slot("slow", None, Some(AT(1))).unwrap();
        let follower = retention.follow(7, AT(1), Some("slow")).unwrap();
        assert_eq!(retention.release(AT(3), AT(3)).unwrap(), AT(1));
        assert!(follower.is_lost().is_ok());
        assert_eq!(retention.release(AT(4), AT(4)).unwrap(), AT(4));
        assert!(matches!(follower.is_lost(), Err(StorageError::LogRemoved { .. })));
        drop(follower);
        assert!(matches!(
            retention.follow(7, AT(4), Some("slow")),
            Err(StorageError::SlotLost { .. })
        ));
        drop(retention);
        assert!(open(dir.path(), None, AT(4)).slots()[0].lost);
    }

    #[test]
    fn what_cannot_be_done_with_slots() {
        let dir = tempfile::tempdir().unwrap();
        let retention = open(dir.path(), None, AT(1));
        let code = |result: Result<()>| result.unwrap_err().sqlstate();
        let long = "x".repeat(64);
        for (name, expected) in [
            ("", "42602"),
            ("Upper", "42602"),
            ("a-b", "42602"),
            (&long, "42622"),
        ] {
            assert_eq!(code(retention.create_slot(name, None, None)), expected);
        }
        retention.create_slot("one", None, None).unwrap();
        assert_eq!(code(retention.create_slot("one", None, None)), "42710");
        assert_eq!(code(retention.drop_slot("two")), "42704");
        let follower = retention.follow(7, AT(1), Some("one")).unwrap();
        assert_eq!(code(retention.drop_slot("one")), "55006");
        assert_eq!(code(retention.follow(8, AT(1), Some("one")).map(drop)), "55006");
        drop(follower);
        for number in 1..SLOTS_MAX {
            retention.create_slot(&format!("s{number}"), None, None).unwrap();
        }
        assert_eq!(code(retention.create_slot("more", None, None)), "53400");
        retention.drop_slot("one").unwrap();
    }
}
