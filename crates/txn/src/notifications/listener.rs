//! A session that listens: its channels, its inbox, and how it is woken.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Native};

use super::{Hearer, Inbox, NotificationBatch, NotificationQueue};

/// A way to make a session look at its inbox, wherever it waits.
pub trait Wake: Send + Sync + fmt::Debug {
    /// Called by the thread of another session, which holds no latch; must not wait.
    fn wake(&self);
}

/// A session that listens. It hears nothing before it has a channel.
#[derive(Debug)]
pub struct Listener<M: Machine = Native> {
    number: u64,
    /// 1: something is in the inbox (N5).
    has_news: M::U32,
    wake: Arc<dyn Wake>,
}

impl<M: Machine> Listener<M> {
    /// N5: after the batch is in the inbox.
    pub(super) fn raise(&self) {
        // Release: pairs with the Acquire in `take_news`.
        self.has_news.store(1, Release);
        self.wake.wake();
    }

    /// True if there may be something to fetch. Lowers the flag: the caller fetches all there is.
    #[inline]
    pub fn take_news(&self) -> bool {
        // Relaxed first: a listener without news shares its line with no session.
        self.has_news.load(Relaxed) != 0 && {
            // Acquire: pairs with the Release in `raise`. An RMW, so that a flag raised meanwhile is not lost.
            self.has_news.swap(0, Acquire) != 0
        }
    }

    /// The caller has left something in the inbox.
    pub fn leave_news(&self) {
        self.has_news.store(1, Relaxed);
    }
}

impl<M: Machine> NotificationQueue<M> {
    /// A listener without channels, woken by `wake`. It has an inbox until it is [removed](Self::remove).
    pub fn listener(&self, wake: Arc<dyn Wake>) -> Arc<Listener<M>> {
        let mut state = self.state.exclusive();
        let listener = Arc::new(Listener {
            number: state.take_number(),
            has_news: M::U32::new(0),
            wake,
        });
        let inbox = Inbox {
            listener: Arc::clone(&listener),
            batches: VecDeque::new(),
        };
        state.inboxes.insert(listener.number, inbox);
        listener
    }

    /// The listener hears of `channel` from now on (N3).
    pub fn listen(&self, listener: &Listener<M>, channel: &Arc<str>) {
        let mut state = self.state.exclusive();
        let since = state.take_number();
        let hearers = state.channels.entry(Arc::clone(channel)).or_default();
        if hearers.iter().all(|hearer| hearer.listener != listener.number) {
            hearers.push(Hearer {
                listener: listener.number,
                since,
            });
        }
    }

    /// The listener hears of `channel` no more. What is in its inbox stays there.
    pub fn unlisten(&self, listener: &Listener<M>, channel: &str) {
        let mut state = self.state.exclusive();
        if let Some(hearers) = state.channels.get_mut(channel) {
            hearers.retain(|hearer| hearer.listener != listener.number);
            if hearers.is_empty() {
                state.channels.remove(channel);
            }
        }
    }

    /// The listener is gone.
    pub fn remove(&self, listener: &Listener<M>) {
        let mut state = self.state.exclusive();
        state.channels.retain(|_, hearers| {
            hearers.retain(|hearer| hearer.listener != listener.number);
            !hearers.is_empty()
        });
        let inbox = state.inboxes.remove(&listener.number);
        for batch in inbox.into_iter().flat_map(|inbox| inbox.batches) {
            state.release(batch.position);
        }
    }

    /// The batches at the front of the inbox, at least one if there is one, and no more when they have `bytes`. They stay
    /// there until they are [forgotten](Self::forget).
    pub fn fetch(&self, listener: &Listener<M>, bytes: usize) -> Vec<Arc<NotificationBatch>> {
        let state = self.state.shared();
        let inbox = state.inboxes.get(&listener.number);
        let mut fetched = Vec::new();
        let mut sum = 0;
        for batch in inbox.into_iter().flat_map(|inbox| &inbox.batches) {
            if sum >= bytes {
                break;
            }
            sum += state.held.get(&batch.position).map_or(0, |(bytes, _)| *bytes);
            fetched.push(Arc::clone(batch));
        }
        fetched
    }

    /// The listener has dealt with the first `count` batches of its inbox. True if more are there.
    pub fn forget(&self, listener: &Listener<M>, count: usize) -> bool {
        let mut state = self.state.exclusive();
        let Some(inbox) = state.inboxes.get_mut(&listener.number) else {
            return false;
        };
        let count = count.min(inbox.batches.len());
        let forgotten: Vec<_> = inbox.batches.drain(..count).collect();
        let more = !inbox.batches.is_empty();
        for batch in forgotten {
            state.release(batch.position);
        }
        more
    }
}
