//! A reader of the log, entered in [`LogRetention`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use clearway_txn::Xid;

use super::{Entered, FollowerProgress, LogRetention, Slot, State};
use crate::error::Result;
use crate::page::Lsn;
use crate::replication::sync_replication::{LogSender, StandbyId, StandbyProgress};

/// A reader of the log that holds what it has not been sent. Dropped, it holds nothing.
#[derive(Debug)]
pub struct Follower {
    pub(super) retention: Arc<LogRetention>,
    pub(super) number: u64,
    pub(super) standby: Option<AsStandby>,
}

/// The state of a follower that is a standby.
#[derive(Debug)]
pub(super) struct AsStandby {
    id: StandbyId,
    sender: Arc<LogSender>,
    /// Its last report.
    reported: Mutex<StandbyProgress>,
}

impl Follower {
    pub(super) fn with<R>(
        &self,
        act: impl FnOnce(&mut Entered, &mut BTreeMap<String, Slot>, &mut bool) -> R,
    ) -> R {
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
            entered.lag_samples.said(
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
