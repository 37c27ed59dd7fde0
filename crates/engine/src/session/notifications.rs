//! LISTEN, UNLISTEN and NOTIFY: what a transaction keeps of them until its commit, and what the client is told.
//!
//! The queue between sessions, with its order and its bound, is `clearway_txn`'s (`notifications`, rules N1 to N6).
//!
//! # A commit
//! 1. Channels that the transaction listens on are entered at the queue. A batch that comes from now on is in the inbox; if
//!    the commit fails they are taken out again.
//! 2. The notifications are announced; 54000 if the queue is full. A transaction without an id gets one: its commit record
//!    gives it a place in the order.
//! 3. The transaction commits, and posts as soon as it has left the array (`Transaction::commit`).
//! 4. The session's set of channels changes, in the order of the statements.
//!
//! Batches that come between 1 and 4 are filtered by that set when they are fetched.
//!
//! # What the client is told, and when
//! At the end of an answer outside of a transaction block, and while the session waits for its client: its caller asks
//! [`Session::listens`], fetches, sends, and says that it has. A notification depends on its transaction's commit as a row
//! does: it is owed like an answer (S1 of `clearway_storage::commit::answers`), so no client hears of a commit that may
//! be lost.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::ControlStatement;
use clearway_storage::Lsn;
use clearway_txn::{Announcement, Listener, Wake};

use crate::engine::Engine;
use crate::session::Session;
use crate::transaction::{ChannelChange, Phase};

/// Makes the [`Wake`] of a session, when it first listens.
type MakeWake = Box<dyn Fn() -> Result<Arc<dyn Wake>> + Send>;

/// A notification for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedNotification {
    /// The number of the session that has sent it.
    pub process_id: u32,
    /// Its channel.
    pub channel: Arc<str>,
    /// The text that it brings.
    pub payload: Arc<str>,
}

/// The channels of a session.
#[derive(Default)]
pub(crate) struct Channels {
    /// There once it has listened.
    listener: Option<Arc<Listener>>,
    in_force: BTreeSet<Arc<str>>,
    make_wake: Option<MakeWake>,
    /// Batches that the caller has fetched and not yet sent.
    fetched: usize,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels")
            .field("in_force", &self.in_force)
            .finish_non_exhaustive()
    }
}

impl Channels {
    /// The channels that the session listens on, in the order of their names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.in_force.iter().map(|channel| channel.to_string()).collect()
    }
}

/// For a program that asks for notifications when it likes.
#[derive(Debug)]
struct NoWake;

impl Wake for NoWake {
    fn wake(&self) {}
}

impl Session {
    /// LISTEN, UNLISTEN or NOTIFY.
    pub(super) fn run_about_notifications(&mut self, statement: &ControlStatement) -> Result<()> {
        match statement {
            ControlStatement::Listen(_) => self.check_not_in_recovery("LISTEN")?,
            ControlStatement::Notify { .. } => self.check_not_in_recovery("NOTIFY")?,
            _ => {}
        }
        if self.txn.phase == Phase::None {
            self.begin(Phase::Implicit);
        }
        let pending = self.pending.get_mut();
        match statement {
            ControlStatement::Listen(channel) => {
                pending
                    .changes
                    .push(ChannelChange::Listen(channel.as_str().into()));
            }
            ControlStatement::Unlisten(Some(channel)) => {
                pending
                    .changes
                    .push(ChannelChange::Unlisten(channel.as_str().into()));
            }
            ControlStatement::Unlisten(None) => pending.changes.push(ChannelChange::UnlistenAll),
            ControlStatement::Notify { channel, payload } => pending.notify(channel, payload)?,
            _ => return Err(EngineError::internal("a statement that is about no notification")),
        }
        Ok(())
    }

    /// True if the transaction's commit concerns notifications.
    #[inline]
    pub(super) fn has_pending_notifications(&mut self) -> bool {
        !self.pending.get_mut().is_empty()
    }

    /// Step 1 of a commit, and the id.
    pub(super) fn prepare_notifications(&mut self) -> Result<()> {
        self.enter_channels()?;
        if !self.pending.get_mut().notifications.is_empty() {
            self.txn.assign_xid_to_notify()?;
        }
        Ok(())
    }

    fn enter_channels(&mut self) -> Result<()> {
        for change in &self.pending.get_mut().changes {
            let ChannelChange::Listen(channel) = change else {
                continue;
            };
            let channels = &mut self.channels;
            let listener = match &channels.listener {
                Some(listener) => listener,
                None => {
                    let wake = match &channels.make_wake {
                        Some(make) => make()?,
                        None => Arc::new(NoWake),
                    };
                    channels.listener.insert(self.engine.notifications.listener(wake))
                }
            };
            if !channels.in_force.contains(channel) {
                self.engine.notifications.listen(listener, channel);
            }
        }
        Ok(())
    }

    /// Step 2 of a commit.
    pub(super) fn announce_notifications<'q>(
        &mut self,
        engine: &'q Engine,
    ) -> Result<Option<Announcement<'q>>> {
        let notifications = std::mem::take(&mut self.pending.get_mut().notifications);
        if notifications.is_empty() {
            return Ok(None);
        }
        let log_end = || engine.storage.wal.reserved().0;
        let sender = self.slot.process_id;
        match engine.notifications.announce(sender, notifications, log_end) {
            Ok(announced) => Ok(Some(announced)),
            Err(full) => Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                full.to_string(),
            )),
        }
    }

    /// Step 4 of a commit, or the end of a transaction that was rolled back.
    pub(super) fn end_pending_notifications(&mut self, committed: bool) {
        let pending = std::mem::take(self.pending.get_mut());
        let Some(listener) = self.channels.listener.clone() else {
            return;
        };
        let queue = &self.engine.notifications;
        let in_force = &mut self.channels.in_force;
        let mut dropped = Vec::new();
        for change in pending.changes {
            match change {
                ChannelChange::Listen(channel) if committed => {
                    dropped.retain(|gone| *gone != channel);
                    in_force.insert(channel);
                }
                ChannelChange::Listen(channel) if !in_force.contains(&channel) => dropped.push(channel),
                ChannelChange::Unlisten(channel) if committed => {
                    in_force.remove(&channel);
                    dropped.push(channel);
                }
                ChannelChange::UnlistenAll if committed => {
                    dropped.extend(std::mem::take(in_force));
                }
                _ => {}
            }
        }
        for channel in dropped {
            queue.unlisten(&listener, &channel);
        }
        self.stop_listening_if_idle();
    }

    /// A session without channels is as it was before it listened.
    fn stop_listening_if_idle(&mut self) {
        if self.channels.in_force.is_empty()
            && let Some(listener) = self.channels.listener.take()
        {
            self.engine.notifications.remove(&listener);
            self.channels.fetched = 0;
        }
    }

    /// Ends all listening at once: DISCARD ALL, and the end of the session.
    pub(super) fn unlisten_all(&mut self) {
        self.channels.in_force.clear();
        self.stop_listening_if_idle();
    }

    /// Has the session make this when it first listens, and call it when there is something to be told while it waits for
    /// its client.
    pub fn wake_by(&mut self, make: impl Fn() -> Result<Arc<dyn Wake>, EngineError> + Send + 'static) {
        self.channels.make_wake = Some(Box::new(make));
    }

    /// True if it listens on a channel.
    #[inline]
    pub fn listens(&self) -> bool {
        self.channels.listener.is_some()
    }

    /// Notifications that the client is to be told of now, of about `bytes_max` bytes; none inside a transaction block. They
    /// come again until [`notifications_are_sent`](Self::notifications_are_sent). They are part of the answer: a caller that
    /// has an [`AnswerGate`](super::AnswerGate) passes it before it shows them.
    pub fn notifications(&mut self, bytes_max: usize) -> Result<Vec<ReceivedNotification>, EngineError> {
        while let Some(listener) = &self.channels.listener
            && self.txn.phase == Phase::None
            && listener.has_news()
        {
            let listener = Arc::clone(listener);
            let told = self.fetch_notifications(&listener, bytes_max)?;
            if !told.is_empty() {
                return Ok(told);
            }
            // What was fetched is of channels that it listens on no more; what it waits for may be behind.
            self.notifications_are_sent();
        }
        Ok(Vec::new())
    }

    /// Notifications at the front of the inbox; none if all that was fetched is of channels that are not in force.
    fn fetch_notifications(
        &mut self,
        listener: &Listener,
        bytes_max: usize,
    ) -> Result<Vec<ReceivedNotification>> {
        let batches = self.engine.notifications.fetch(listener, bytes_max);
        self.channels.fetched = batches.len();
        let mut told = Vec::new();
        for batch in batches {
            let mut concerns = false;
            for notification in &batch.notifications {
                if self.channels.in_force.contains(&notification.channel) {
                    concerns = true;
                    told.push(ReceivedNotification {
                        process_id: batch.sender,
                        channel: Arc::clone(&notification.channel),
                        payload: Arc::clone(&notification.payload),
                    });
                }
            }
            if concerns {
                self.txn.owe_commit(Lsn(batch.position), &self.settings);
            }
        }
        self.wait_before_answer()?;
        Ok(told)
    }

    /// The notifications that the last call of [`notifications`](Self::notifications) gave have been sent.
    pub fn notifications_are_sent(&mut self) {
        let count = std::mem::take(&mut self.channels.fetched);
        if let Some(listener) = &self.channels.listener {
            self.engine.notifications.forget(listener, count);
        }
    }
}
