//! A session that listens: its channels, its inbox, and how it is woken.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

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
    /// 1: something is in the inbox (N5). Changes under the latch alone.
    has_news: M::U32,
    wake: Arc<dyn Wake>,
}

impl<M: Machine> Listener<M> {
    /// The caller holds the latch, and has put a batch into the inbox.
    pub(super) fn raise(&self) {
        self.has_news.store(1, Relaxed);
    }

    /// The caller has released the latch.
    pub(super) fn wake(&self) {
        self.wake.wake();
    }

    /// True if there is something to fetch: all that was there when the listener was last woken shows.
    #[inline]
    pub fn has_news(&self) -> bool {
        // Relaxed: the latch that `fetch` takes orders what is in the inbox. The flag is not older than the wake-up, since
        // whatever carries that from the thread of another session to this one orders both.
        self.has_news.load(Relaxed) != 0
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

    /// The listener has dealt with the first `count` batches of its inbox. It [has news](Listener::has_news) if more are
    /// there.
    pub fn forget(&self, listener: &Listener<M>, count: usize) {
        let mut state = self.state.exclusive();
        let Some(inbox) = state.inboxes.get_mut(&listener.number) else {
            return;
        };
        let count = count.min(inbox.batches.len());
        let forgotten: Vec<_> = inbox.batches.drain(..count).collect();
        if inbox.batches.is_empty() {
            // N5.
            listener.has_news.store(0, Relaxed);
        }
        for batch in forgotten {
            state.release(batch.position);
        }
    }
}
