//! The queue by itself, one step after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clearway_latch::LwLockOptions;

use super::*;

#[derive(Debug, Default)]
struct Counted(AtomicUsize);

impl Wake for Counted {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn told(channel: &str, payload: &str) -> Vec<Notification> {
    vec![Notification {
        channel: channel.into(),
        payload: payload.into(),
    }]
}

fn queue(bytes_max: usize) -> NotificationQueue {
    NotificationQueue::new(LwLockOptions::default(), bytes_max)
}

/// A listener of `a`.
fn carol(queue: &NotificationQueue) -> (Arc<Listener>, Arc<Counted>) {
    let wake = Arc::new(Counted::default());
    let listener = queue.listener(Arc::clone(&wake) as Arc<dyn Wake>);
    queue.listen(&listener, &"a".into());
    (listener, wake)
}

fn positions(queue: &NotificationQueue, listener: &Listener) -> Vec<u64> {
    let fetched = queue.fetch(listener, usize::MAX);
    fetched.iter().map(|batch| batch.position).collect()
}

#[test]
fn the_later_record_waits_for_the_earlier_one() {
    let queue = queue(1 << 20);
    let (listener, wake) = carol(&queue);
    let alice = queue.announce(1, told("a", "1"), || 900).unwrap();
    let bob = queue.announce(2, told("a", "2"), || 1_000).unwrap();
    bob.post(1_100);
    assert_eq!(positions(&queue, &listener), []);
    assert!(!listener.has_news());
    alice.post(1_000);
    assert_eq!(positions(&queue, &listener), [1_000, 1_100]);
    assert_eq!(wake.0.load(Ordering::Relaxed), 1, "one post, one wake-up");
    assert!(listener.has_news());
    queue.forget(&listener, 1);
    assert!(listener.has_news(), "N5: Bob's is there");
    queue.forget(&listener, 1);
    assert!(!listener.has_news());
    assert_eq!(queue.usage(), 0.0);
}

#[test]
fn a_rollback_keeps_nothing_back() {
    let queue = queue(1 << 20);
    let (listener, _) = carol(&queue);
    let alice = queue.announce(1, told("a", "1"), || 900).unwrap();
    let later = queue.announce(3, told("a", "3"), || 1_100).unwrap();
    queue.announce(2, told("a", "2"), || 1_000).unwrap().post(1_100);
    drop(alice);
    assert_eq!(
        positions(&queue, &listener),
        [1_100],
        "N4: the later floor is no reason"
    );
    drop(later);
    assert!(queue.usage() > 0.0);
    queue.remove(&listener);
    assert_eq!(queue.usage(), 0.0, "N6: what a listener has left");
}

#[test]
fn a_listener_hears_what_is_posted_after_it_came() {
    let queue = queue(1 << 20);
    let alice = queue.announce(1, told("a", "1"), || 900).unwrap();
    queue.announce(2, told("a", "2"), || 1_000).unwrap().post(1_100);
    // The batch is kept for Alice's sake, and its transaction is seen.
    let (listener, _) = carol(&queue);
    alice.post(1_000);
    assert_eq!(positions(&queue, &listener), [1_000]);
    queue.announce(1, told("b", "3"), || 1_100).unwrap().post(1_200);
    assert_eq!(positions(&queue, &listener), [1_000], "another channel");
    queue.unlisten(&listener, "a");
    queue.announce(1, told("a", "4"), || 1_200).unwrap().post(1_300);
    assert_eq!(positions(&queue, &listener), [1_000]);
}

#[test]
fn a_full_queue_refuses_until_a_listener_has_fetched() {
    let queue = queue(1_000);
    let (carol, _) = carol(&queue);
    let dave = queue.listener(Arc::new(Counted::default()));
    queue.listen(&dave, &"a".into());
    let large = || told("a", &"x".repeat(600));
    queue.announce(1, large(), || 0).unwrap().post(100);
    assert!(queue.announce(1, large(), || 100).is_err());
    assert!(
        queue.usage() > 0.6 && queue.usage() < 1.0,
        "counted once for two listeners"
    );
    queue.forget(&carol, 1);
    assert!(queue.announce(1, large(), || 100).is_err());
    queue.forget(&dave, 1);
    let announced = queue.announce(1, large(), || 100).unwrap();
    assert!(
        queue.announce(2, large(), || 100).is_err(),
        "N6: what is announced counts"
    );
    drop(announced);
    assert_eq!(queue.usage(), 0.0);
}
