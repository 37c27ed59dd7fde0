//! The part of a commit that is about notifications (`session/notifications.rs`).

use std::collections::HashSet;
use std::sync::Arc;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_txn::Notification;

/// The most bytes of a payload, and one more.
const PAYLOAD_BYTES: usize = 8_000;
/// The most bytes of a channel's name, and one more.
const CHANNEL_BYTES: usize = 64;

/// A change of the channels, at the commit.
#[derive(Debug)]
pub(crate) enum ChannelChange {
    /// LISTEN
    Listen(Arc<str>),
    /// UNLISTEN
    Unlisten(Arc<str>),
    /// UNLISTEN *
    UnlistenAll,
}

/// Actions of the transaction's commit. Functions of a running statement add to them.
#[derive(Debug, Default)]
pub(crate) struct PendingNotifications {
    pub(crate) notifications: Vec<Notification>,
    /// The same, to find that one is there already.
    known: HashSet<Notification>,
    pub(crate) changes: Vec<ChannelChange>,
}

/// Lengths of its lists, at a savepoint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PendingMark {
    notifications: usize,
    changes: usize,
}

impl PendingNotifications {
    /// NOTIFY. One that is there already is not sent twice.
    pub(crate) fn notify(&mut self, channel: &str, payload: &str) -> Result<()> {
        let invalid = |message| Err(EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        if channel.is_empty() {
            return invalid("channel name cannot be empty");
        }
        if channel.len() >= CHANNEL_BYTES {
            return invalid("channel name too long");
        }
        if payload.len() >= PAYLOAD_BYTES {
            return invalid("payload string too long");
        }
        crate::memory::require(2 * (channel.len() + payload.len()))?;
        let notification = Notification {
            channel: channel.into(),
            payload: payload.into(),
        };
        if self.known.insert(notification.clone()) {
            self.notifications.push(notification);
        }
        Ok(())
    }

    pub(crate) fn mark(&self) -> PendingMark {
        PendingMark {
            notifications: self.notifications.len(),
            changes: self.changes.len(),
        }
    }

    /// ROLLBACK TO.
    pub(crate) fn go_back_to(&mut self, mark: PendingMark) {
        for dropped in self.notifications.drain(mark.notifications..) {
            self.known.remove(&dropped);
        }
        self.changes.truncate(mark.changes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.notifications.is_empty() && self.changes.is_empty()
    }
}
