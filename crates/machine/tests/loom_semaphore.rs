//! The semaphore under loom: no post is lost, and what was written before a post is seen after its wait.
//!
//! `cargo test -p clearway-machine --features loom --test loom_semaphore --release`

use std::sync::Arc;

use clearway_machine::{DataCell, Loom, Machine, Semaphore};

type Cell = <Loom as Machine>::Data<u64>;

fn explore(case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(case);
}

/// Caught mutations: `fetch_add(1, Relaxed)` in `post` (a race on the data); no `futex_wake` in `post`
/// (loom's deadlock).
#[test]
fn loom_a_post_carries_what_was_written() {
    explore(|| {
        let shared = Arc::new((Semaphore::<Loom>::new(), Cell::new(0)));
        Loom::workers();
        let poster = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                // SAFETY: the other thread reads after it has consumed the post.
                shared.1.with_mut(|data| unsafe { *data = 7 });
                shared.0.post();
            })
        };
        shared.0.wait();
        // SAFETY: the post orders the write before this read; loom fails the test if not.
        assert_eq!(shared.1.with(|data| unsafe { *data }), 7);
        poster.join().unwrap();
    });
}

/// Caught mutations: a `wait` that consumes nothing; no `futex_wake` in `post`.
#[test]
fn loom_two_posts_end_two_waits() {
    explore(|| {
        let semaphore = Arc::new(Semaphore::<Loom>::new());
        Loom::workers();
        let posters: Vec<_> = (0..2)
            .map(|_| {
                let semaphore = Arc::clone(&semaphore);
                loom::thread::spawn(move || semaphore.post())
            })
            .collect();
        semaphore.wait();
        semaphore.wait();
        assert!(!semaphore.try_wait());
        for poster in posters {
            poster.join().unwrap();
        }
    });
}

/// A wait that is interrupted goes on until there is a post, and consumes that one alone.
#[test]
fn loom_an_interrupted_wait_goes_on() {
    explore(|| {
        let semaphore = Arc::new(Semaphore::<Loom>::new());
        Loom::workers();
        let interrupter = loom::thread::spawn(Loom::interrupt);
        let poster = {
            let semaphore = Arc::clone(&semaphore);
            loom::thread::spawn(move || semaphore.post())
        };
        semaphore.wait();
        assert!(!semaphore.try_wait(), "one post, one wait");
        interrupter.join().unwrap();
        poster.join().unwrap();
        assert!(!semaphore.try_wait());
    });
}

/// A post that comes while a wait times out is consumed by that wait or left for the next, and not lost.
#[test]
fn loom_a_post_at_the_timeout_is_not_lost() {
    explore(|| {
        let semaphore = Arc::new(Semaphore::<Loom>::new());
        Loom::workers();
        let poster = {
            let semaphore = Arc::clone(&semaphore);
            loom::thread::spawn(move || semaphore.post())
        };
        let consumed = semaphore.wait_timeout(std::time::Duration::from_nanos(1_500));
        poster.join().unwrap();
        assert_ne!(consumed, semaphore.try_wait(), "one post, consumed once");
    });
}
