//! The steps of a commit's caller before the commit is seen: step 7.

/// Step 7: what the caller of a commit does between its record and its being seen.
///
/// Nothing of it may fail. The record is in the log, so a panic ends the process.
pub trait BeforeVisible {
    /// True if the two others do anything. If not, another session may make the commit visible as soon as it may be seen.
    fn is_needed(&self) -> bool;

    /// Waits for what the commit needs to be seen, beside the disk. Later commits may wait for that.
    fn secure(&mut self);

    /// Makes the transaction's definitions those of all sessions. All commits before it are seen by then, and none behind
    /// it.
    fn publish(&mut self);
}

/// Nothing is done.
impl BeforeVisible for () {
    #[inline]
    fn is_needed(&self) -> bool {
        false
    }

    fn secure(&mut self) {}

    fn publish(&mut self) {}
}

/// Publishes by calling a function.
#[derive(Debug)]
pub struct Publish<F>(Option<F>);

impl<F: FnOnce()> Publish<F> {
    /// By calling `publish`.
    pub fn new(publish: F) -> Self {
        Self(Some(publish))
    }
}

impl<F: FnOnce()> BeforeVisible for Publish<F> {
    fn is_needed(&self) -> bool {
        self.0.is_some()
    }

    fn secure(&mut self) {}

    fn publish(&mut self) {
        if let Some(publish) = self.0.take() {
            publish();
        }
    }
}
