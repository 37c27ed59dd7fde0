//! Notifications in the order of commit records, under loom: each schedule of two commits and a listener.
//!
//! `cargo test -p clearway-txn --features loom --test loom_notifications --release`
//!
//! Caught mutations: those of `mutations/notifications.toml`.

#![cfg(feature = "loom")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::LwLockOptions;
use clearway_machine::{AtomicWord, Loom, Machine, Semaphore};
use clearway_txn::{Listener, Notification, NotificationQueue, Wake};
use loom::thread;
use support::explore;

type Word = <Loom as Machine>::U64;

/// The log: the place of the next record. And for each record, whether its transaction has left the array.
struct World {
    queue: NotificationQueue<Loom>,
    log: Word,
    left: [Word; 4],
}

#[derive(Debug)]
struct Bell(Semaphore<Loom>);

impl Wake for Bell {
    fn wake(&self) {
        self.0.post();
    }
}

impl World {
    fn new() -> World {
        World {
            queue: NotificationQueue::new(LwLockOptions::default(), 1 << 20),
            log: Word::new(0),
            left: [0; 4].map(Word::new),
        }
    }

    fn commit(&self, sender: u32) {
        let told = vec![Notification {
            channel: "a".into(),
            payload: "".into(),
        }];
        let announced = self
            .queue
            .announce(sender, told, || self.log.load(Relaxed))
            .unwrap();
        let position = self.log.fetch_add(1, Relaxed) + 1;
        self.left[position as usize].store(1, Relaxed);
        announced.post(position);
    }

    /// Fetches what there is; the positions.
    fn fetch(&self, listener: &Listener<Loom>) -> Vec<u64> {
        let batches = self.queue.fetch(listener, usize::MAX);
        self.queue.forget(listener, batches.len());
        let positions: Vec<u64> = batches.iter().map(|batch| batch.position).collect();
        for position in &positions {
            assert_eq!(self.left[*position as usize].load(Relaxed), 1, "N2");
        }
        positions
    }
}

fn listener(world: &World) -> (Arc<Listener<Loom>>, Arc<Bell>) {
    let bell = Arc::new(Bell(Semaphore::new()));
    let listener = world.queue.listener(Arc::clone(&bell) as Arc<dyn Wake>);
    world.queue.listen(&listener, &"a".into());
    (listener, bell)
}

/// N1, N4 and N5: the listener sleeps until it is woken, and hears of both commits in their order.
#[test]
fn loom_two_commits_are_heard_of_in_their_order() {
    explore(2, || {
        let world = Arc::new(World::new());
        let (listener, bell) = listener(&world);
        let committers: Vec<_> = (1..=2)
            .map(|sender| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.commit(sender))
            })
            .collect();
        let mut heard = Vec::new();
        while heard.len() < 2 {
            bell.0.wait();
            if listener.has_news() {
                heard.extend(world.fetch(&listener));
            }
        }
        assert_eq!(heard, [1, 2], "N1");
        for committer in committers {
            committer.join().unwrap();
        }
        assert_eq!(world.queue.usage(), 0.0, "N6");
    });
}

/// N4: a transaction that gives up keeps nothing back.
#[test]
fn loom_a_rollback_gives_away_what_it_has_kept_back() {
    explore(2, || {
        let world = Arc::new(World::new());
        let (listener, bell) = listener(&world);
        let committer = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.commit(1))
        };
        let told = vec![Notification {
            channel: "a".into(),
            payload: "".into(),
        }];
        let announced = world.queue.announce(2, told, || world.log.load(Relaxed)).unwrap();
        drop(announced);
        bell.0.wait();
        assert!(listener.has_news(), "N5");
        assert_eq!(world.fetch(&listener), [1]);
        committer.join().unwrap();
    });
}
