//! Pins and page latches as values: a pin keeps the page in its frame, a guard holds its content latch as well.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use clearway_machine::{Machine, Native};

use crate::buffer::frame::Frame;
use crate::buffer::page_counts::PageCounts;
use crate::buffer::page_view::{HintedHeader, HintedPage, ITEM_HEADER, PageView};
use crate::buffer::pin::{CHANGED, CHANGING, DIRTY};
use crate::buffer::racy::RacyPage;
use crate::page::{self, Lsn, PAGE_HEADER, PAGE_SIZE, PageId};

/// Number of attempts to read a page without a latch before it is latched.
const OPTIMISTIC_ATTEMPTS: u32 = 3;

/// A page kept in memory.
pub struct PinnedPage<'a, M: Machine = Native> {
    frame: &'a Frame<M>,
    // The latch guards made from it belong to a thread.
    not_send: PhantomData<*const ()>,
}

/// A page to read.
pub struct PageShared<'a, M: Machine = Native> {
    frame: &'a Frame<M>,
    owns_pin: bool,
    not_send: PhantomData<*const ()>,
}

/// A page to read, and perhaps to change: other workers may read it meanwhile, but none can change it.
pub struct PageUpdate<'a, M: Machine = Native> {
    frame: &'a Frame<M>,
    not_send: PhantomData<*const ()>,
}

/// A page to change.
pub struct PageExclusive<'a, M: Machine = Native> {
    frame: &'a Frame<M>,
    owns_pin: bool,
    not_send: PhantomData<*const ()>,
}

impl<'a, M: Machine> PinnedPage<'a, M> {
    /// Takes over a pin that the caller has.
    pub(crate) fn from_pin(frame: &'a Frame<M>) -> Self {
        Self {
            frame,
            not_send: PhantomData,
        }
    }

    /// The page's id.
    pub fn page_id(&self) -> PageId {
        self.frame.page()
    }

    /// Latches the page to read it.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> PageShared<'_, M> {
        self.frame.content.acquire_shared();
        PageShared {
            frame: self.frame,
            owns_pin: false,
            not_send: PhantomData,
        }
    }

    /// Latches the page to change it.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> PageExclusive<'_, M> {
        self.frame.content.acquire_exclusive();
        PageExclusive {
            frame: self.frame,
            owns_pin: false,
            not_send: PhantomData,
        }
    }

    /// Latches the page to change it, if that needs no waiting.
    pub fn try_exclusive(&self) -> Option<PageExclusive<'_, M>> {
        let latched = self.frame.content.try_acquire_exclusive();
        latched.then(|| PageExclusive {
            frame: self.frame,
            owns_pin: false,
            not_send: PhantomData,
        })
    }

    /// Latches the page to change it, if no other worker has it latched or pinned.
    pub fn try_cleanup(&self) -> Option<PageExclusive<'_, M>> {
        let guard = self.try_exclusive()?;
        self.frame.state.is_pinned_once().then_some(guard)
    }

    /// As [`shared`](Self::shared); the guard keeps the pin.
    #[inline]
    #[track_caller]
    pub fn into_shared(self) -> PageShared<'a, M> {
        let frame = ManuallyDrop::new(self).frame;
        frame.content.acquire_shared();
        PageShared {
            frame,
            owns_pin: true,
            not_send: PhantomData,
        }
    }

    /// As [`exclusive`](Self::exclusive); the guard keeps the pin.
    #[inline]
    #[track_caller]
    pub fn into_exclusive(self) -> PageExclusive<'a, M> {
        let frame = ManuallyDrop::new(self).frame;
        frame.content.acquire_exclusive();
        PageExclusive {
            frame,
            owns_pin: true,
            not_send: PhantomData,
        }
    }

    /// Latches the page to decide whether to change it; the guard keeps the pin.
    #[inline]
    #[track_caller]
    pub fn into_update(self) -> PageUpdate<'a, M> {
        let frame = ManuallyDrop::new(self).frame;
        frame.content.acquire_update();
        PageUpdate {
            frame,
            not_send: PhantomData,
        }
    }

    /// Result of `read` on the page without a latch. `None` if another worker wrote meanwhile in each of a
    /// few attempts, or if the page's latch cannot tell.
    #[inline]
    pub(crate) fn read_optimistically<R>(
        &self,
        mut read: impl FnMut(RacyPage<'_>) -> Option<R>,
    ) -> Option<R> {
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            let version = self.frame.content.optimistic()?;
            // SAFETY: the frame lives as long as the pool, and the page is pinned.
            let result = read(unsafe { RacyPage::new(self.frame.bytes()) });
            if self.frame.content.validate(version) {
                return result;
            }
        }
        None
    }

    /// As [`try_exclusive`](Self::try_exclusive); the guard keeps the pin.
    pub fn try_into_exclusive(self) -> Result<PageExclusive<'a, M>, PinnedPage<'a, M>> {
        if !self.frame.content.try_acquire_exclusive() {
            return Err(self);
        }
        let frame = ManuallyDrop::new(self).frame;
        Ok(PageExclusive {
            frame,
            owns_pin: true,
            not_send: PhantomData,
        })
    }
}

impl<M: Machine> Drop for PinnedPage<'_, M> {
    #[inline]
    fn drop(&mut self) {
        self.frame.state.unpin();
    }
}

macro_rules! read_latched {
    ($references:vis, $($guard:ident),*) => {$(
        impl<M: Machine> $guard<'_, M> {
            /// The page's place.
            pub fn page_id(&self) -> PageId {
                self.frame.page()
            }

            #[inline]
            pub(in crate::buffer) fn view(&self) -> PageView<'_> {
                // SAFETY: the guard holds the latch. Other holders set hints, and change nothing else; the guard's owner
                // changes the page through `&mut` (H1).
                unsafe { PageView::new(self.frame.page_bytes_to_read()) }
            }

            /// The page's header: what the functions of [`page`] are asked about.
            #[inline]
            $references fn header(&self) -> &[u8; PAGE_HEADER] {
                self.view().header()
            }

            /// All bytes of a page whose kind has no hints: of any but a heap's.
            ///
            /// # Panics
            /// The page is one of a heap.
            #[inline]
            #[track_caller]
            $references fn bytes(&self) -> &[u8; PAGE_SIZE] {
                self.view().bytes()
            }

            /// A copy of all bytes, whatever the page's kind.
            pub fn copy(&self) -> Box<[u8; PAGE_SIZE]> {
                self.view().copy()
            }
        }
    )*};
}
read_latched!(pub, PageShared, PageUpdate);
// In this crate alone: an `AtomicChange` stamps its pages when it is finished, which holds no borrow of their guards, so a
// reference from before must not be in use then. Others get copies.
read_latched!(pub(crate), PageExclusive);

macro_rules! set_hints {
    ($($guard:ident),*) => {$(
        impl<M: Machine> $guard<'_, M> {
            /// The page as one with items that have hints.
            #[inline]
            pub(crate) fn hinted(&self) -> HintedPage<'_> {
                self.view().hinted()
            }

            /// Sets hints of an item of this page. Never makes the page dirty: a hint may be lost (B4).
            #[inline]
            pub(crate) fn set_hints(&self, header: &HintedHeader, bits: u16) {
                self.frame.note_hint();
                header.set_hints(bits);
            }

            /// Sets hints of the item that begins at `offset`: for checkers, which have no heap.
            #[doc(hidden)]
            pub fn set_hints_at(&self, offset: usize, bits: u16) {
                let item = self.hinted().item(offset, ITEM_HEADER);
                let (header, _) = item.expect("a heap page, and an item behind its line pointers");
                self.set_hints(header, bits);
            }
        }
    )*};
}
set_hints!(PageShared, PageExclusive);

impl<'a, M: Machine> PageUpdate<'a, M> {
    /// Waits until the present readers have left; the page can then be changed.
    pub fn upgrade(self) -> PageExclusive<'a, M> {
        let frame = ManuallyDrop::new(self).frame;
        // SAFETY: the guard held the latch in update mode, and was consumed.
        unsafe { frame.content.upgrade() };
        PageExclusive {
            frame,
            owns_pin: true,
            not_send: PhantomData,
        }
    }
}

impl<M: Machine> PageExclusive<'_, M> {
    /// The page, to change it: outside of this crate through an [`AtomicChange`](crate::AtomicChange).
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        // SAFETY: the exclusive latch is held, and `&mut self` makes this the only reference.
        unsafe { &mut *self.frame.bytes_to_write() }
    }

    /// Marks the page as different from what is on disk. For recovery; a change marks its pages itself.
    pub(crate) fn mark_dirty(&self) {
        self.frame.state.set(CHANGED);
    }

    /// Changes the page with `write` and logs that with `log`, in the order in which an
    /// [`AtomicChange`](crate::AtomicChange) does: for checkers and simulations, which have no storage.
    #[doc(hidden)]
    pub fn change_and_log(&mut self, write: impl FnOnce(&mut [u8; PAGE_SIZE]), log: impl FnOnce() -> Lsn) {
        write(self.bytes_mut());
        let changing = ChangingFrame::begin(self);
        let lsn = log();
        page::set_lsn(self.bytes_mut(), lsn);
        changing.end();
    }

    pub(crate) fn frame(&self) -> *const () {
        std::ptr::from_ref(self.frame).cast()
    }
}

/// A frame under change; what an [`AtomicChange`](crate::AtomicChange) keeps of a guard it was shown.
pub(crate) struct ChangingFrame<M: Machine = Native>(*const Frame<M>);

impl<M: Machine> ChangingFrame<M> {
    /// Marks the page as changing: from here on its guard must not be dropped before [`end`](Self::end). It
    /// is dirty before the change is in the log, so that a checkpoint whose redo position lies behind the
    /// record finds it (P4).
    pub(crate) fn begin(guard: &PageExclusive<'_, M>) -> Self {
        // A checker has no use for the counts, and pays for each access.
        if !M::EXPLORED && !guard.frame.state.has(DIRTY) {
            PageCounts::add_dirtied();
        }
        guard.frame.state.set(CHANGING | CHANGED);
        Self(guard.frame)
    }

    pub(crate) fn is(&self, guard: &PageExclusive<'_, M>) -> bool {
        std::ptr::eq(self.0.cast(), guard.frame())
    }

    pub(crate) fn page_id(&self) -> PageId {
        // SAFETY: see `bytes_mut`.
        unsafe { &*self.0 }.page()
    }

    /// The page's bytes.
    ///
    /// # Safety
    /// No reference to the page's bytes is alive: the caller of the change holds guards, but uses none during `finish`.
    pub(crate) unsafe fn bytes_mut<'a>(&self) -> &'a mut [u8; PAGE_SIZE] {
        // SAFETY: CHANGING is set, so the guard is alive (its drop would have aborted): pinned and latched exclusively.
        unsafe { &mut *(*self.0).bytes_to_write() }
    }

    /// The change is in the log: the page's guard may go.
    pub(crate) fn end(self) {
        // SAFETY: as in `bytes_mut`.
        unsafe { &*self.0 }.state.clear(CHANGING);
    }
}

impl<M: Machine> Drop for PageShared<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard holds the latch in that mode, and ends here.
        unsafe { self.frame.content.release_shared() };
        if self.owns_pin {
            self.frame.state.unpin();
        }
    }
}

impl<M: Machine> Drop for PageUpdate<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard holds the latch in that mode, and ends here.
        unsafe { self.frame.content.release_update() };
        self.frame.state.unpin();
    }
}

impl<M: Machine> Drop for PageExclusive<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if self.frame.state.has(CHANGING) {
            clearway_machine::fatal(format_args!(
                "the latch of {:?} was let go inside an atomic change; stopping before the change can be seen",
                self.frame.page()
            ));
        }
        self.frame.end_change();
        // SAFETY: the guard holds the latch in that mode, and ends here.
        unsafe { self.frame.content.release_exclusive() };
        if self.owns_pin {
            self.frame.state.unpin();
        }
    }
}

macro_rules! debug_as_page {
    ($($name:ident),*) => {$(
        impl<M: Machine> std::fmt::Debug for $name<'_, M> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.frame.page()).finish()
            }
        }
    )*};
}
debug_as_page!(PinnedPage, PageShared, PageUpdate, PageExclusive);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::page::PAGE_HEADER;
    use crate::storage::{Storage, StorageOptions};
    use crate::{BufferPoolOptions, PageLatchVariant};

    /// Two words of a page that a writer keeps equal. They are far apart, so that to read both takes a while.
    const WORDS: [usize; 2] = [PAGE_HEADER, PAGE_SIZE - 8];

    /// An optimistic reader never returns the page as it was in the middle of a change, and a latch without
    /// versions sends it to the latched form.
    ///
    /// Caught mutation: `read_optimistically` that does not validate (two words that differ).
    #[test]
    fn an_optimistic_reader_sees_whole_changes_only() {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            pool: BufferPoolOptions {
                page_latch: PageLatchVariant::Hybrid,
                ..BufferPoolOptions::default()
            },
            fsync: false,
            ..StorageOptions::default()
        };
        let storage = Storage::open(dir.path(), options).unwrap().0;
        let rel = storage.create_rel().unwrap();
        let page = storage.extend(rel).unwrap().page_id();
        let (ended, whole) = (AtomicBool::new(false), AtomicBool::new(false));
        // As many changes at least, and as many at most for a reader that has had no CPU meanwhile.
        let goes_on =
            |changes: u64| changes < 200_000 || changes < 200_000_000 && !whole.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let pinned = storage.pin(page).unwrap();
                for number in (0..).take_while(|&changes| goes_on(changes)) {
                    let mut guard = pinned.exclusive();
                    for word in WORDS {
                        guard.bytes_mut()[word..word + 8].copy_from_slice(&number.to_be_bytes());
                        std::hint::black_box(&mut guard);
                    }
                }
                ended.store(true, Ordering::Relaxed);
            });
            let pinned = storage.pin(page).unwrap();
            while !ended.load(Ordering::Relaxed) {
                let words = |page: RacyPage<'_>| Some((page.u64_be_at(WORDS[0])?, page.u64_be_at(WORDS[1])?));
                if let Some((first, second)) = pinned.read_optimistically(words) {
                    assert_eq!(first, second, "the page in the middle of a change");
                    whole.store(true, Ordering::Relaxed);
                }
            }
            assert!(whole.load(Ordering::Relaxed), "no optimistic read ever succeeded");
        });
    }
}
