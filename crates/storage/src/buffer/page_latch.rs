//! The latch on a page's content: the switch `page_latch`.
//!
//! All variants have the modes shared, update and exclusive. An update holder is alone among writers but lets
//! readers in, until it upgrades because it has found that it must write. The LwLock has no such mode and
//! takes the page exclusively at once. Only the hybrid latch can tell an optimistic reader whether it has
//! read a consistent page.

use clearway_latch::{ClassOf, HybridLatch, LatchClass, LatchMode, LwLock, LwLockOptions, SsuxLock, Version};
use clearway_machine::{Machine, Native, WaitEvent, switch};

/// Taken before the latches of the array of running transactions and of the commit log: a worker that holds a
/// page asks both about its rows.
static BUFFER_CONTENT: LatchClass = LatchClass::new("BufferContent", WaitEvent::BufferContent, 250);

/// The class of page latches, for those that do not carry a reference to it.
#[derive(Debug)]
pub(crate) struct BufferContent;

impl ClassOf for BufferContent {
    #[inline]
    fn class() -> &'static LatchClass {
        &BUFFER_CONTENT
    }
}

switch! {
    /// The latch on a page's content.
    pub enum PageLatchVariant = "page_latch", best LwLock, planned [] {
        /// An LwLock, whose waiters queue.
        LwLock = "lwlock",
        /// Two futex words with an update mode, whose waiters sleep on the latch itself.
        Ssux = "ssux",
        /// A latch with versions and an update mode: descents of B+trees take no latch on inner pages.
        Hybrid = "hybrid",
    }
    why {
        LwLock: "In the engine on two CPUs it is level with ssux, and two CPUs are too few to choose by."
            in "docs/mechanisms/hybrid.md#numbers-that-matter";
        Hybrid: "In the engine on two CPUs it is 11 % ahead of lwlock in two of four cells and level in the others; \
            transactions with it on many CPUs have not been simulated."
            in "docs/mechanisms/hybrid.md#numbers-that-matter";
    }
}

/// One page's latch.
#[derive(Debug)]
pub(crate) enum PageLatch<M: Machine = Native> {
    LwLock(LwLock<M>),
    Ssux(SsuxLock<BufferContent, M>),
    Hybrid(HybridLatch<BufferContent, M>),
}

impl<M: Machine> PageLatch<M> {
    pub(crate) fn new(kind: PageLatchVariant, lwlock: LwLockOptions) -> Self {
        match kind {
            PageLatchVariant::LwLock => PageLatch::LwLock(LwLock::new(&BUFFER_CONTENT, lwlock)),
            PageLatchVariant::Ssux => PageLatch::Ssux(SsuxLock::idle()),
            PageLatchVariant::Hybrid => PageLatch::Hybrid(HybridLatch::idle()),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_shared(&self) {
        match self {
            PageLatch::LwLock(latch) => latch.acquire(LatchMode::Shared),
            PageLatch::Ssux(latch) => latch.acquire_shared(),
            PageLatch::Hybrid(latch) => latch.acquire_shared(),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire_shared(&self) -> bool {
        match self {
            PageLatch::LwLock(latch) => latch.try_acquire(LatchMode::Shared),
            PageLatch::Ssux(latch) => latch.try_acquire_shared(),
            PageLatch::Hybrid(latch) => latch.try_acquire_shared(),
        }
    }

    /// # Safety
    /// The caller holds the latch in shared mode, and goes by that no longer.
    #[inline]
    pub(crate) unsafe fn release_shared(&self) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                PageLatch::LwLock(latch) => latch.release(LatchMode::Shared),
                PageLatch::Ssux(latch) => latch.release_shared(),
                PageLatch::Hybrid(latch) => latch.release_shared(),
            }
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_update(&self) {
        match self {
            PageLatch::LwLock(latch) => latch.acquire(LatchMode::Exclusive),
            PageLatch::Ssux(latch) => latch.acquire_update(),
            PageLatch::Hybrid(latch) => latch.acquire_update(),
        }
    }

    /// # Safety
    /// The caller holds the latch in update mode, and goes by that no longer.
    #[inline]
    pub(crate) unsafe fn release_update(&self) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                PageLatch::LwLock(latch) => latch.release(LatchMode::Exclusive),
                PageLatch::Ssux(latch) => latch.release_update(),
                PageLatch::Hybrid(latch) => latch.release_update(),
            }
        }
    }

    /// From update to exclusive mode.
    ///
    /// # Safety
    /// The caller holds the latch in update mode.
    #[inline]
    pub(crate) unsafe fn upgrade(&self) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                PageLatch::LwLock(_) => {}
                PageLatch::Ssux(latch) => latch.update_to_exclusive(),
                PageLatch::Hybrid(latch) => latch.upgrade_update(),
            }
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_exclusive(&self) {
        match self {
            PageLatch::LwLock(latch) => latch.acquire(LatchMode::Exclusive),
            PageLatch::Ssux(latch) => latch.acquire_exclusive(),
            PageLatch::Hybrid(latch) => latch.acquire_exclusive(),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire_exclusive(&self) -> bool {
        match self {
            PageLatch::LwLock(latch) => latch.try_acquire(LatchMode::Exclusive),
            PageLatch::Ssux(latch) => latch.try_acquire_exclusive(),
            PageLatch::Hybrid(latch) => latch.try_acquire_exclusive(),
        }
    }

    /// # Safety
    /// The caller holds the latch in exclusive mode, and goes by that no longer.
    #[inline]
    pub(crate) unsafe fn release_exclusive(&self) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                PageLatch::LwLock(latch) => latch.release(LatchMode::Exclusive),
                PageLatch::Ssux(latch) => latch.release_exclusive(),
                PageLatch::Hybrid(latch) => latch.release_exclusive(),
            }
        }
    }

    /// The version to begin an optimistic read with, if the latch has versions and no worker is writing.
    #[inline]
    pub(crate) fn optimistic(&self) -> Option<Version> {
        match self {
            PageLatch::LwLock(_) | PageLatch::Ssux(_) => None,
            PageLatch::Hybrid(latch) => latch.optimistic(),
        }
    }

    /// True if no worker has written since.
    #[inline]
    pub(crate) fn validate(&self, version: Version) -> bool {
        match self {
            PageLatch::LwLock(_) | PageLatch::Ssux(_) => false,
            PageLatch::Hybrid(latch) => latch.validate(version),
        }
    }
}

const _: () = assert!(size_of::<PageLatch>() <= 32);
