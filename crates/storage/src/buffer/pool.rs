//! Pinning, reading in, evicting, writing out.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::atomic::Ordering;

use clearway_latch::LwLockOptions;
use clearway_machine::{AtomicWord, Machine, Native};

use crate::buffer::frame::{CHANGED, DIRTY, Frame, NO_PAGE, PIN_MASK, PageBytes, REDIRTIED, VALID};
use crate::buffer::page_latch::PageLatchVariant;
use crate::buffer::{BufferMapping, PageDevice, PagesOnDisk, PinnedPage};
use crate::error::{Result, StorageError};
use crate::page::{self, PAGE_SIZE, PageId, PageKind, RelId};

/// The memory of all frames' pages, in one piece.
struct PageMemory {
    start: *mut PageBytes,
    layout: Layout,
}

// SAFETY: a plain allocation; the frames decide which worker may touch which part.
unsafe impl Sync for PageMemory {}
// SAFETY: as above.
unsafe impl Send for PageMemory {}

impl PageMemory {
    fn new(pages: usize) -> Self {
        let layout = Layout::array::<PageBytes>(pages).expect("a buffer pool smaller than the address space");
        // SAFETY: the layout is not empty: there are at least MIN_FRAMES pages.
        let start = unsafe { alloc_zeroed(layout) }.cast::<PageBytes>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        advise_huge_pages(start.cast(), layout.size());
        Self { start, layout }
    }

    fn page(&self, number: usize) -> *const PageBytes {
        debug_assert!(number * size_of::<PageBytes>() < self.layout.size());
        // SAFETY: the number is below the count that was allocated.
        unsafe { self.start.add(number) }
    }
}

/// Asks for huge pages: the pool is large and read at random, so the fewer translations the better. The allocator does
/// not ask for any, since the memory of sessions is small pieces all over.
fn advise_huge_pages(start: *mut u8, bytes: usize) {
    /// Advice begins where a page of the operating system does.
    const ALIGNMENT: usize = 4_096;
    let skipped = start.align_offset(ALIGNMENT);
    let Some(rest) = bytes.checked_sub(skipped).filter(|rest| *rest >= ALIGNMENT) else {
        return;
    };
    // SAFETY: the range lies in the allocation, and this advice changes no contents.
    let advised = unsafe {
        rustix::mm::madvise(
            start.add(skipped).cast(),
            rest & !(ALIGNMENT - 1),
            rustix::mm::Advice::LinuxHugepage,
        )
    };
    if let Err(error) = advised {
        tracing::debug!(%error, "the buffer pool has no huge pages");
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`; the frames that point into it go with the pool.
        unsafe { dealloc(self.start.cast(), self.layout) };
    }
}

/// Fewer frames than this cannot hold a tree's path and a split for a handful of sessions.
const MIN_FRAMES: usize = 64;

/// The pages in memory, above a device.
pub struct BufferPool<M: Machine = Native, D: PageDevice = PagesOnDisk> {
    frames: Box<[Frame<M>]>,
    mapping: BufferMapping<M>,
    hand: M::U64,
    device: D,
    _memory: PageMemory,
}

impl<M: Machine, D: PageDevice> std::fmt::Debug for BufferPool<M, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BufferPool")
            .field("frames", &self.frames.len())
            .finish_non_exhaustive()
    }
}

impl<M: Machine, D: PageDevice> BufferPool<M, D> {
    /// A pool of about so many bytes.
    pub fn new(bytes: usize, page_latch: PageLatchVariant, lwlock: LwLockOptions, device: D) -> Self {
        Self::with_frames((bytes / PAGE_SIZE).max(MIN_FRAMES), page_latch, lwlock, device)
    }

    /// As [`new`](Self::new) with the number of frames chosen, for checkers that need few.
    pub fn with_frames(count: usize, page_latch: PageLatchVariant, lwlock: LwLockOptions, device: D) -> Self {
        let memory = PageMemory::new(count);
        Self {
            frames: (0..count)
                .map(|number| Frame::new(page_latch, lwlock, memory.page(number)))
                .collect(),
            mapping: BufferMapping::new(lwlock),
            hand: M::U64::new(0),
            device,
            _memory: memory,
        }
    }

    /// Pins `page`, reading it if it is not in memory. A page past the end of its relation is an error.
    #[inline]
    pub fn pin(&self, page: PageId) -> Result<PinnedPage<'_, M>> {
        let partition = self.mapping.partition_of(page);
        let found = {
            let entries = self.mapping.shared(partition);
            entries.get(&page.to_u64()).map(|&number| {
                let frame = &self.frames[number as usize];
                (frame, frame.pin())
            })
        };
        match found {
            Some((frame, state)) if state & VALID != 0 => Ok(PinnedPage::from_pin(frame)),
            Some((frame, _)) => self.wait_valid(frame, page),
            None => self.read_in(page, true),
        }
    }

    /// Pins a page that is about to be replaced as a whole (replay): what its file holds is not read.
    pub(crate) fn pin_replaced(&self, page: PageId) -> Result<PinnedPage<'_, M>> {
        self.read_in(page, false)
    }

    /// Adds an empty page to `rel` and pins it. The page can be found, and is dirty, before the relation's
    /// length counts it (`lengths`, step 1).
    pub fn extend(&self, rel: RelId) -> Result<PinnedPage<'_, M>> {
        let (number, frame) = self.claim_frame()?;
        let io = frame.io.exclusive();
        let added = self.device.extend(rel, &mut |page| {
            // SAFETY: the I/O latch is held and the page is not valid, so no other worker looks at the bytes.
            page::init(unsafe { &mut *frame.bytes_to_write() }, PageKind::NEW, 0);
            frame.tag.store(page.to_u64(), Ordering::Relaxed);
            frame.set(VALID | CHANGED);
            let mut entries = self.mapping.exclusive(self.mapping.partition_of(page));
            let found = entries.insert(page.to_u64(), number);
            debug_assert!(found.is_none(), "a page past the end is in no frame");
        });
        drop(io);
        match added {
            Ok(()) => Ok(PinnedPage::from_pin(frame)),
            Err(error) => {
                frame.unpin();
                Err(error)
            }
        }
    }

    /// Another worker is reading the page.
    #[cold]
    fn wait_valid<'a>(&'a self, frame: &'a Frame<M>, page: PageId) -> Result<PinnedPage<'a, M>> {
        drop(frame.io.shared());
        let pinned = PinnedPage::from_pin(frame);
        if frame.has(VALID) && frame.page() == page {
            return Ok(pinned);
        }
        // The read failed; trying again gives this caller its own error.
        drop(pinned);
        self.pin(page)
    }

    #[cold]
    fn read_in(&self, page: PageId, read: bool) -> Result<PinnedPage<'_, M>> {
        self.device.check_exists(page)?;
        let (number, frame) = self.claim_frame()?;
        // Rule 6: taken before the page can be found.
        let io = frame.io.exclusive();
        {
            let mut entries = self.mapping.exclusive(self.mapping.partition_of(page));
            if let Some(&other) = entries.get(&page.to_u64()) {
                let other = &self.frames[other as usize];
                other.pin();
                drop(entries);
                drop(io);
                frame.unpin();
                return if other.has(VALID) {
                    Ok(PinnedPage::from_pin(other))
                } else {
                    self.wait_valid(other, page)
                };
            }
            frame.tag.store(page.to_u64(), Ordering::Relaxed);
            entries.insert(page.to_u64(), number);
        }
        // SAFETY: the I/O latch is held and the page is not valid, so no other worker looks at the bytes.
        let bytes = unsafe { &mut *frame.bytes_to_write() };
        let result = if read {
            self.device.read(page, bytes)
        } else {
            bytes.fill(0);
            Ok(())
        };
        if let Err(error) = result {
            let mut entries = self.mapping.exclusive(self.mapping.partition_of(page));
            entries.remove(&page.to_u64());
            frame.tag.store(NO_PAGE, Ordering::Relaxed);
            drop(entries);
            drop(io);
            frame.unpin();
            return Err(error);
        }
        frame.set(VALID);
        drop(io);
        Ok(PinnedPage::from_pin(frame))
    }

    /// Finds a frame to use: pinned by this worker alone, clean, not valid, and in no partition.
    fn claim_frame(&self) -> Result<(u32, &Frame<M>)> {
        // Usage is at most 5, so six rounds without a claim mean that each frame is pinned (or was, each time
        // the hand passed it).
        for _ in 0..self.frames.len() * 8 {
            let number = (self.hand.fetch_add(1, Ordering::Relaxed) % self.frames.len() as u64) as usize;
            let frame = &self.frames[number];
            if !frame.try_claim() {
                continue;
            }
            // Rule 9.
            let clean = if frame.has(DIRTY) {
                self.try_write_out(frame)
            } else {
                Ok(true)
            };
            if let Err(error) = clean {
                frame.unpin();
                return Err(error);
            }
            if matches!(clean, Ok(true)) && self.unmap(frame) {
                return Ok((number as u32, frame));
            }
            frame.unpin();
        }
        Err(StorageError::NoFreeBuffer {
            frames: self.frames.len(),
        })
    }

    /// Takes a frame that only this worker has pinned out of the table; `false` if another worker wants it
    /// again.
    fn unmap(&self, frame: &Frame<M>) -> bool {
        let tag = frame.tag.load(Ordering::Relaxed);
        if tag == NO_PAGE {
            return frame.state.load(Ordering::Acquire) & PIN_MASK == 1;
        }
        let page = PageId::from_u64(tag);
        // Under the exclusive latch no worker can add a pin.
        let mut entries = self.mapping.exclusive(self.mapping.partition_of(page));
        let state = frame.state.load(Ordering::Acquire);
        if state & PIN_MASK != 1 || state & DIRTY != 0 {
            return false;
        }
        let removed = entries.remove(&tag);
        debug_assert!(removed.is_some(), "a frame with a tag is in the table");
        frame.tag.store(NO_PAGE, Ordering::Relaxed);
        frame.clear(VALID);
        true
    }

    /// Writes a pinned page if it is dirty.
    fn write_out(&self, frame: &Frame<M>) -> Result<()> {
        loop {
            frame.content.acquire_shared();
            // The I/O latch for all of it, so that two writers write one after the other, and the older copy first.
            if let Some(_io) = frame.io.try_exclusive() {
                return self.write_latched(frame);
            }
            // Another worker writes the page. Release the content latch meanwhile, so that a worker that
            // wants to change the page does not wait for the disk.
            frame.content.release_shared();
            drop(frame.io.shared());
        }
    }

    /// As [`write_out`](Self::write_out), unless that needs to wait for a latch: `false`.
    fn try_write_out(&self, frame: &Frame<M>) -> Result<bool> {
        let Some(_io) = frame.io.try_exclusive() else {
            return Ok(false);
        };
        if !frame.content.try_acquire_shared() {
            return Ok(false);
        }
        self.write_latched(frame).map(|()| true)
    }

    /// Copies the page, lets go of its shared latch, and writes the copy.
    fn write_latched(&self, frame: &Frame<M>) -> Result<()> {
        let copy = frame.has(DIRTY).then(|| {
            // Everything up to here is in the copy.
            frame.clear(REDIRTIED);
            // SAFETY: the shared latch is held: nothing but hints changes, and any mix of old and new hints is right.
            Box::new(unsafe { *frame.bytes_to_read() })
        });
        frame.content.release_shared();
        let Some(mut copy) = copy else {
            return Ok(());
        };
        let page = frame.page();
        // Rule 4.
        let upto = page::lsn(&copy[..]).max(self.device.newest_async_commit());
        self.device.flush_log(upto);
        self.device.write(page, &mut copy)?;
        frame.written();
        Ok(())
    }

    /// Pins frame `number` if it still holds the page with this tag.
    fn pin_frame(&self, number: u32, tag: u64) -> Option<PinnedPage<'_, M>> {
        let entries = self
            .mapping
            .shared(self.mapping.partition_of(PageId::from_u64(tag)));
        (entries.get(&tag) == Some(&number)).then(|| {
            let frame = &self.frames[number as usize];
            frame.pin();
            PinnedPage::from_pin(frame)
        })
    }

    /// Writes every page that is dirty now, in the order of files and pages; returns how many.
    pub fn write_all(&self) -> Result<u64> {
        let mut dirty: Vec<(u64, u32)> = Vec::new();
        for (number, frame) in self.frames.iter().enumerate() {
            if frame.has(DIRTY) {
                dirty.push((frame.tag.load(Ordering::Relaxed), number as u32));
            }
        }
        dirty.sort_unstable();
        let mut written = 0;
        for (tag, number) in dirty {
            // If the page is no longer there, the worker that took the frame has written it.
            if let Some(_pin) = self.pin_frame(number, tag) {
                self.write_out(&self.frames[number as usize])?;
                written += 1;
            }
        }
        Ok(written)
    }

    /// Forgets the pages of a relation that is no longer in use.
    pub fn discard(&self, rel: RelId) {
        for (number, frame) in self.frames.iter().enumerate() {
            loop {
                let tag = frame.tag.load(Ordering::Relaxed);
                let page = PageId::from_u64(tag);
                if tag == NO_PAGE || page.rel != rel {
                    break;
                }
                let mut entries = self.mapping.exclusive(self.mapping.partition_of(page));
                // A pinned frame is pinned by a worker that writes the page: the relation is no longer used
                // in any other way.
                if entries.get(&tag) == Some(&(number as u32)) && frame.try_seize() {
                    entries.remove(&tag);
                    frame.tag.store(NO_PAGE, Ordering::Relaxed);
                    frame.clear(VALID);
                    frame.unpin();
                    break;
                }
                drop(entries);
                M::yield_now();
            }
        }
    }
}
