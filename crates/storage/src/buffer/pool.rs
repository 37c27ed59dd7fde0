//! Pinning, reading in, evicting, writing out.

mod all_pinned;

use std::sync::atomic::Ordering;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, Native, Switch};

use self::all_pinned::PinWait;
use super::clock::{BufferClockVariant, Clock};
use super::frame::{Frame, FrameOptions};
use super::map::{BufferMap, BufferMapVariant, Insertion, PARTITIONS, PinnedFrame};
use super::page_counts::PageCounts;
use super::page_latch::PageLatchVariant;
use super::page_memory::PageMemory;
use super::page_read::{PageReadVariant, Pages};
use super::page_view::PageView;
use super::pin::{CHANGED, DIRTY, REDIRTIED, VALID};
use super::ring::FrameRing;
use super::{PageDevice, PagesOnDisk, PinnedPage, RacyPage};
use crate::error::Result;
use crate::page::{self, PAGE_SIZE, PageId, PageKind, RelId};

/// Fewer frames than this cannot hold a tree's path and a split for a handful of sessions.
const MIN_FRAMES: usize = 64;

/// The variants that a pool is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferPoolOptions {
    /// The switch `buffer_map`.
    pub map: BufferMapVariant,
    /// Latches of `buffer_map = partitioned`, rounded up to a power of two; 128 by default. Other maps have their own.
    pub map_partitions: u32,
    /// The switch `buffer_clock`.
    pub clock: BufferClockVariant,
    /// The switch `page_latch`.
    pub page_latch: PageLatchVariant,
    /// The switch `page_read`.
    pub page_read: PageReadVariant,
    /// The options of its LwLocks.
    pub lwlock: LwLockOptions,
}

impl Default for BufferPoolOptions {
    fn default() -> Self {
        Self {
            map: BufferMapVariant::default(),
            map_partitions: PARTITIONS,
            clock: BufferClockVariant::default(),
            page_latch: PageLatchVariant::default(),
            page_read: PageReadVariant::default(),
            lwlock: LwLockOptions::default(),
        }
    }
}

impl BufferPoolOptions {
    /// One for each variant of the map: test suites of the layers above the pool run over them.
    pub fn each_map() -> impl Iterator<Item = Self> {
        BufferMapVariant::ALL.iter().map(|&map| Self {
            map,
            ..Self::default()
        })
    }

    /// One for each pair of variants of the map and of `page_read`.
    pub fn each_map_and_page_read() -> impl Iterator<Item = Self> {
        Self::each_map().flat_map(|options| {
            PageReadVariant::ALL
                .iter()
                .map(move |&page_read| Self { page_read, ..options })
        })
    }

    /// One for each variant of the clock that is not the default.
    pub fn each_other_clock() -> impl Iterator<Item = Self> {
        let each = BufferClockVariant::ALL.iter().map(|&clock| Self {
            clock,
            ..Self::default()
        });
        each.filter(|options| *options != Self::default())
    }
}

/// The pages in memory, above a device.
pub struct BufferPool<M: Machine = Native, D: PageDevice = PagesOnDisk> {
    frames: Box<[Frame<M>]>,
    map: BufferMap<M>,
    clock: Clock<M>,
    options: BufferPoolOptions,
    device: D,
    memory: PageMemory,
    pin_wait: PinWait,
}

impl<M: Machine, D: PageDevice> std::fmt::Debug for BufferPool<M, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BufferPool")
            .field("frames", &self.frames.len())
            .finish_non_exhaustive()
    }
}

impl<M: Machine, D: PageDevice> Pages<M> for BufferPool<M, D> {
    #[inline]
    fn find(&self, page: PageId) -> Option<&Frame<M>> {
        self.map.find(page, &self.frames)
    }

    #[inline]
    fn pin(&self, page: PageId) -> Result<PinnedPage<'_, M>> {
        self.pin(page)
    }
}

impl<M: Machine, D: PageDevice> BufferPool<M, D> {
    /// A pool of about `bytes` bytes, in huge pages if there are any.
    pub fn new(bytes: usize, options: BufferPoolOptions, device: D) -> Self {
        let pool = Self::with_frames((bytes / PAGE_SIZE).max(MIN_FRAMES), options, device);
        pool.memory.advise_huge_pages();
        pool
    }

    /// As [`new`](Self::new) with the number of frames chosen, for checkers, which need few, and for simulations, which
    /// do not touch most of the pages' bytes. Memory is not asked for in huge pages.
    pub fn with_frames(count: usize, options: BufferPoolOptions, device: D) -> Self {
        let memory = PageMemory::new(count);
        let frame_options = FrameOptions {
            page_latch: options.page_latch,
            lwlock: options.lwlock,
            counts_changes: options.page_read == PageReadVariant::Optimistic,
        };
        Self {
            frames: (0..count)
                .map(|number| Frame::new(frame_options, memory.page(number)))
                .collect(),
            map: BufferMap::new(options.map, count, options.map_partitions, options.lwlock),
            clock: Clock::new(options.clock, count, options.lwlock),
            options,
            device,
            memory,
            pin_wait: PinWait::default(),
        }
    }

    /// Number of frames.
    pub(super) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The frames' headers, without the bytes of the pages, for reports that name memory. Under `buffer_clock = hand`
    /// the frames of a new pool are used in this order.
    pub fn frames(&self) -> &[impl Sized + use<M, D>] {
        &self.frames
    }

    /// Pins `page`, reading it if it is not in memory. A page past the end of its relation is an error.
    #[inline]
    pub fn pin(&self, page: PageId) -> Result<PinnedPage<'_, M>> {
        match self.map.lookup_and_pin(page, &self.frames) {
            Some((frame, state)) if state & VALID != 0 => {
                PageCounts::add_hit();
                Ok(PinnedPage::from_pin(frame))
            }
            found => self.pin_slow(page, found, true, None),
        }
    }

    /// A ring of frames for a scan of `pages` pages, if that would sweep the pool.
    pub fn scan_ring(&self, pages: u32) -> Option<FrameRing> {
        FrameRing::for_scan(pages, self.frames.len())
    }

    /// A ring of frames for a bulk write.
    pub fn write_ring(&self) -> FrameRing {
        FrameRing::for_writing(self.frames.len())
    }

    /// As [`pin`](Self::pin), for a scan or a bulk write: if the page is not in memory, it gets a frame of the ring.
    pub fn pin_in(&self, page: PageId, ring: &mut FrameRing) -> Result<PinnedPage<'_, M>> {
        match self.map.lookup_and_pin(page, &self.frames) {
            Some((frame, state)) if state & VALID != 0 => {
                PageCounts::add_hit();
                // F3.
                frame.state.forget_use();
                Ok(PinnedPage::from_pin(frame))
            }
            found => self.pin_slow(page, found, true, Some(ring)),
        }
    }

    /// Result of `read` on `page`, which is read from its file if it is not in memory; see the contract at the top of
    /// the module `page_read`. `None` if that is what `read` returned on the page as it was at one instant.
    #[inline]
    pub fn read<R>(&self, page: PageId, read: impl FnMut(RacyPage<'_>) -> Option<R>) -> Result<Option<R>> {
        self.options.page_read.read(self, page, read)
    }

    /// True if [`read`](Self::read) does without page latches. If not, a caller that reads many values of a page is
    /// better off with a guard.
    #[inline]
    pub fn reads_optimistically(&self) -> bool {
        self.reads_unpinned() || self.options.page_latch == PageLatchVariant::Hybrid
    }

    /// True if [`read`](Self::read) writes nothing to the frame of a page in memory.
    #[inline]
    pub fn reads_unpinned(&self) -> bool {
        self.options.page_read == PageReadVariant::Optimistic
    }

    /// Pins a page that is about to be replaced as a whole (replay): what its file holds is not read.
    pub(crate) fn pin_replaced(&self, page: PageId) -> Result<PinnedPage<'_, M>> {
        self.pin_slow(page, None, false, None)
    }

    /// Adds an empty page to `rel` and pins it. The page can be found, and is dirty, before the relation's
    /// length counts it (`lengths`, step 1).
    pub fn extend(&self, rel: RelId) -> Result<PinnedPage<'_, M>> {
        self.extend_in(rel, None)
    }

    /// As [`extend`](Self::extend); the page gets a frame of the ring, if there is one.
    pub fn extend_in(&self, rel: RelId, ring: Option<&mut FrameRing>) -> Result<PinnedPage<'_, M>> {
        let (number, frame) = self.claim_frame(ring)?;
        let io = frame.io().exclusive();
        let added = self.device.extend(rel, &mut |page| {
            // SAFETY: the I/O latch is held and the page is not valid, so no other worker looks at the bytes.
            page::init(unsafe { &mut *frame.bytes_to_write() }, PageKind::NEW, 0);
            frame.set_tag(Some(page));
            frame.show_page(CHANGED);
            let inserted = self.map.insert_or_pin(page, number, &self.frames);
            assert!(
                matches!(inserted, Insertion::Inserted),
                "M1: a page past the end is in a frame"
            );
        });
        drop(io);
        match added {
            Ok(()) => {
                PageCounts::add_dirtied();
                PageCounts::add_written();
                Ok(PinnedPage::from_pin(frame))
            }
            Err(error) => {
                self.give_back(number, frame);
                Err(error)
            }
        }
    }

    /// Gives back a frame that this worker owns, and that has no page.
    fn give_back(&self, number: u32, frame: &Frame<M>) {
        // Before a worker can find it listed (step 3 of the clock).
        frame.state.unpin();
        self.clock.freed(number);
    }

    /// Pins a page that is in no frame as far as the map knows, or in one that is not valid. If it is in none, it gets
    /// one, and is read unless the caller is going to replace it.
    #[cold]
    fn pin_slow<'a>(
        &'a self,
        page: PageId,
        mut found: Option<PinnedFrame<'a, M>>,
        read: bool,
        mut ring: Option<&mut FrameRing>,
    ) -> Result<PinnedPage<'a, M>> {
        loop {
            let mut was_read = false;
            let (frame, state) = match found {
                Some(found) => found,
                None => self.read_in(page, read, ring.as_deref_mut(), &mut was_read)?,
            };
            if state & VALID == 0 {
                // Another worker is reading the page.
                drop(frame.io().shared());
            }
            let pinned = PinnedPage::from_pin(frame);
            // P3.
            if state & VALID != 0 || frame.state.has(VALID) && frame.page() == page {
                if !was_read {
                    PageCounts::add_hit();
                }
                return Ok(pinned);
            }
            // The read failed, and trying again gives this caller its own error. Or the frame's owner has not taken the
            // page out of the map yet.
            drop(pinned);
            M::yield_now();
            found = self.map.lookup_and_pin(page, &self.frames);
        }
    }

    /// Reads a page into a frame, unless another worker has entered it in the map meanwhile: then its frame is pinned,
    /// and valid or not. `was_read` becomes true unless
    /// there was one.
    fn read_in(
        &self,
        page: PageId,
        read: bool,
        ring: Option<&mut FrameRing>,
        was_read: &mut bool,
    ) -> Result<PinnedFrame<'_, M>> {
        self.device.check_exists(page)?;
        let (number, frame) = self.claim_frame(ring)?;
        // B5: taken before the page can be found.
        let io = frame.io().exclusive();
        frame.set_tag(Some(page));
        if let Insertion::Found(found) = self.map.insert_or_pin(page, number, &self.frames) {
            frame.set_tag(None);
            drop(io);
            self.give_back(number, frame);
            return Ok(found);
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
            // Workers that have found the page wait for the I/O latch, and find no VALID (P3).
            let removed = self.map.remove_if(page, number, &self.frames, |_| true);
            debug_assert!(removed, "a page is in the map while it is read");
            frame.set_tag(None);
            drop(io);
            self.give_back(number, frame);
            return Err(error);
        }
        *was_read = true;
        if read {
            PageCounts::add_read();
        }
        frame.show_page(0);
        drop(io);
        Ok((frame, VALID))
    }

    /// Finds a frame to use, and makes this worker its owner: clean, not valid, and not in the map.
    fn claim_frame(&self, ring: Option<&mut FrameRing>) -> Result<(u32, &Frame<M>)> {
        let Some(ring) = ring else {
            return self.claim_by_clock();
        };
        let claimed = match self.claim_in(ring)? {
            Some(claimed) => claimed,
            None => self.claim_by_clock()?,
        };
        ring.put(claimed.0);
        Ok(claimed)
    }

    /// As [`claim_frame`](Self::claim_frame), of the ring's oldest frame, if that can be used.
    fn claim_in(&self, ring: &FrameRing) -> Result<Option<(u32, &Frame<M>)>> {
        let Some(number) = ring.oldest() else {
            return Ok(None);
        };
        let frame = &self.frames[number as usize];
        // Step 1, and F1.
        if self.clock.has_free(self.frames.len()) || !frame.state.try_claim_unused() {
            return Ok(None);
        }
        // F2.
        if frame.state.has(DIRTY) && !ring.writes() {
            frame.state.unpin();
            return Ok(None);
        }
        Ok(self.take_claimed(number, frame)?.then_some((number, frame)))
    }

    /// As [`claim_frame`](Self::claim_frame), of a frame that the clock chooses.
    fn claim_by_clock(&self) -> Result<(u32, &Frame<M>)> {
        match self.claim_in_one_sweep()? {
            Some(claimed) => Ok(claimed),
            None => self.claim_when_unpinned(),
        }
    }

    /// As [`claim_frame`](Self::claim_frame); `None` if one sweep finds no frame.
    pub(super) fn claim_in_one_sweep(&self) -> Result<Option<(u32, &Frame<M>)>> {
        for (number, frame) in self.clock.sweep(&self.frames) {
            if self.take_claimed(number, frame)? {
                return Ok(Some((number, frame)));
            }
        }
        Ok(None)
    }

    /// Writes a frame that this worker has claimed, if it is dirty, and takes it. Otherwise, that is if a latch of its
    /// page is held or if another worker wants the page again, the claim is given back.
    fn take_claimed(&self, number: u32, frame: &Frame<M>) -> Result<bool> {
        // C3.
        let clean = if frame.state.has(DIRTY) {
            self.try_write_out(frame)
        } else {
            Ok(true)
        };
        let taken = clean.map(|clean| clean && self.take(number, frame));
        if !matches!(taken, Ok(true)) {
            frame.state.unpin();
        }
        taken
    }

    /// Takes a frame that this worker has claimed, and its page out of the map; `false` if another worker wants the
    /// page again.
    fn take(&self, number: u32, frame: &Frame<M>) -> bool {
        let taken = match frame.tagged_page() {
            Some(page) => self.map.remove_if(page, number, &self.frames, Frame::try_take),
            None => frame.try_take(),
        };
        if taken {
            frame.set_tag(None);
        }
        taken
    }

    /// Writes a pinned page if it is dirty.
    fn write_out(&self, frame: &Frame<M>) -> Result<()> {
        loop {
            frame.content.acquire_shared();
            // The I/O latch for all of it, so that two writers write one after the other, and the older copy first.
            if let Some(_io) = frame.io().try_exclusive() {
                return self.write_latched(frame);
            }
            // Another worker writes the page. Release the content latch meanwhile, so that a worker that
            // wants to change the page does not wait for the disk.
            // SAFETY: it was acquired above, and nothing was read under it.
            unsafe { frame.content.release_shared() };
            drop(frame.io().shared());
        }
    }

    /// As [`write_out`](Self::write_out), unless that needs to wait for a latch: `false`.
    fn try_write_out(&self, frame: &Frame<M>) -> Result<bool> {
        let Some(_io) = frame.io().try_exclusive() else {
            return Ok(false);
        };
        if !frame.content.try_acquire_shared() {
            return Ok(false);
        }
        self.write_latched(frame).map(|()| true)
    }

    /// Copies the page, releases its shared latch, and writes the copy.
    fn write_latched(&self, frame: &Frame<M>) -> Result<()> {
        let copy = frame.state.has(DIRTY).then(|| {
            // Everything up to here is in the copy.
            frame.state.clear(REDIRTIED);
            // SAFETY: the shared latch is held, so nothing but hints changes (H1). Any mix of old and new ones is right.
            let copy = unsafe { PageView::new(frame.page_bytes_to_read()) }.copy();
            frame.note_hints_read();
            // Acquire: pairs with the Release of a hint bit. A hint that is in the copy was set after its commit had been
            // noted, and the worker that has set it may hold the latch still, which then orders nothing.
            M::fence(Ordering::Acquire);
            copy
        });
        // SAFETY: the caller has acquired it, and the page is not read any more.
        unsafe { frame.content.release_shared() };
        let Some(mut copy) = copy else {
            return Ok(());
        };
        let page = frame.page();
        // B3. After the copy: a commit that comes later has no hint in it.
        let upto = page::lsn(&copy[..]).max(self.device.newest_early_commit());
        self.device.flush_log(upto);
        self.device.write(page, &mut copy)?;
        PageCounts::add_written();
        frame.state.written();
        Ok(())
    }

    /// Number of pages of a relation that are in memory, as far as a look without pins can tell.
    pub fn resident_pages(&self, rel: RelId) -> usize {
        let is_of = |frame: &&Frame<M>| frame.tagged_page().is_some_and(|page| page.rel == rel);
        self.frames.iter().filter(is_of).count()
    }

    /// True if a page is in memory at this moment. It need not be read in to find out, and does not count as used.
    pub fn holds(&self, page: PageId) -> bool {
        self.frames.iter().any(|frame| frame.tagged_page() == Some(page))
    }

    /// Pins `page` if it is still in frame `number`.
    fn pin_in_frame(&self, number: u32, page: PageId) -> Option<PinnedPage<'_, M>> {
        let (frame, state): PinnedFrame<'_, M> = self.map.lookup_and_pin(page, &self.frames)?;
        let pinned = PinnedPage::from_pin(frame);
        (state & VALID != 0 && std::ptr::eq(frame, &self.frames[number as usize])).then_some(pinned)
    }

    /// Writes every page that is dirty now, in the order of files and pages; returns how many.
    pub fn write_all(&self) -> Result<u64> {
        let mut dirty: Vec<(PageId, u32)> = Vec::new();
        for (number, frame) in self.frames.iter().enumerate() {
            if frame.state.has(DIRTY)
                && let Some(page) = frame.tagged_page()
            {
                dirty.push((page, number as u32));
            }
        }
        dirty.sort_unstable();
        let mut written = 0;
        for (page, number) in dirty {
            // If the page is no longer there, the worker that took the frame has written it.
            if let Some(_pin) = self.pin_in_frame(number, page) {
                self.write_out(&self.frames[number as usize])?;
                written += 1;
            }
        }
        Ok(written)
    }

    /// Forgets the pages of a relation that is no longer in use.
    pub fn discard(&self, rel: RelId) {
        for (number, frame) in self.frames.iter().enumerate() {
            while let Some(page) = frame.tagged_page().filter(|page| page.rel == rel) {
                // A pinned frame is pinned by a worker that writes the page: the relation is no longer used
                // in any other way. A lookup of another page may have it for a moment.
                if !frame.state.try_pin_alone() {
                    M::yield_now();
                    continue;
                }
                // M5.
                let seized = self
                    .map
                    .remove_if(page, number as u32, &self.frames, Frame::try_seize);
                if seized {
                    frame.set_tag(None);
                    self.give_back(number as u32, frame);
                } else {
                    frame.state.unpin();
                    M::yield_now();
                }
            }
        }
    }
}
