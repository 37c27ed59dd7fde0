//! The way in which a pool's pages are read at the moment: by its variant, or pinned while a statement counts what it uses.

use std::sync::atomic::{AtomicU32, Ordering};

use super::PageReadVariant;

/// The way of reading; see the [module](self).
#[derive(Debug)]
pub(in crate::buffer) struct ReadMode {
    /// Reasons to pin: the variant, and each statement that counts.
    pinned: AtomicU32,
}

impl ReadMode {
    pub(in crate::buffer) fn new(variant: PageReadVariant) -> ReadMode {
        ReadMode {
            pinned: AtomicU32::new(u32::from(variant == PageReadVariant::Pinned)),
        }
    }

    /// The variant of a read that begins now.
    #[inline]
    pub(in crate::buffer) fn variant(&self) -> PageReadVariant {
        // Relaxed: a read is right under either variant, whatever the others do.
        if self.pinned.load(Ordering::Relaxed) == 0 {
            PageReadVariant::Optimistic
        } else {
            PageReadVariant::Pinned
        }
    }

    /// Has all pages pinned until the guard is dropped.
    pub(in crate::buffer) fn pin_all(&self) -> CountedPages<'_> {
        self.pinned.fetch_add(1, Ordering::Relaxed);
        CountedPages(self)
    }
}

/// While it lives, each page that is used is counted.
#[derive(Debug)]
pub struct CountedPages<'p>(&'p ReadMode);

impl Drop for CountedPages<'_> {
    fn drop(&mut self) {
        self.0.pinned.fetch_sub(1, Ordering::Relaxed);
    }
}
