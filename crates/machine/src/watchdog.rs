//! A time limit for tests that would otherwise wait for ever.

use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Time limit of a test that ends in a few seconds on an idle machine.
const TEST_LIMIT: Duration = Duration::from_secs(600);

/// Ends the process unless it is dropped in time.
///
/// A fault in what is tested (a wake-up that is lost, a loop whose end never comes) leaves its test hanging, and the
/// run of all tests with it, without a word about which one. A thread that hangs cannot be made to panic, so the
/// process ends, after a line that names the test. The limit says nothing about speed: it is far beyond what a slow
/// machine needs.
#[derive(Debug)]
#[must_use = "the watch ends when this is dropped"]
pub struct Watchdog(Arc<(Mutex<bool>, Condvar)>);

impl Watchdog {
    /// Watches over the test that runs on the calling thread: it may take ten minutes.
    pub fn over_test() -> Watchdog {
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        Watchdog::within(TEST_LIMIT, move || {
            crate::stderr_line(format_args!(
                "{name} has not ended within {} s",
                TEST_LIMIT.as_secs()
            ));
            std::process::abort()
        })
    }

    /// Calls `end` after `limit`.
    fn within(limit: Duration, end: impl FnOnce() + Send + 'static) -> Watchdog {
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let watched = Arc::clone(&done);
        std::thread::spawn(move || {
            let (done, changed) = &*watched;
            let guard = done.lock().unwrap_or_else(PoisonError::into_inner);
            let (done, _) = changed
                .wait_timeout_while(guard, limit, |done| !*done)
                .unwrap_or_else(PoisonError::into_inner);
            if !*done {
                end();
            }
        });
        Watchdog(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn it_ends_what_lasts_and_leaves_what_is_done() {
        let (ended, end) = channel();
        let other = ended.clone();
        let lasting = Watchdog::within(Duration::from_millis(1), move || ended.send("lasting").unwrap());
        assert_eq!(end.recv(), Ok("lasting"));
        drop(lasting);
        drop(Watchdog::within(Duration::MAX, move || {
            other.send("done").unwrap()
        }));
        // Its thread is gone, and the sender with it.
        assert!(end.recv().is_err());
    }
}
