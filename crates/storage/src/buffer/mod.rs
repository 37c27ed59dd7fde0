//! The buffer pool: pages in memory.
//!
//! ```text
//!   pin(page) ─▶ map: in which frame? ─ found ─▶ pin on the frame ─▶ content latch ─▶ the bytes
//!                        │ in none
//!                        └▶ clock: which frame? ─▶ write its page out ─▶ take it ─▶ read the page in
//! ```
//!
//! | module | holds | rules |
//! | --- | --- | --- |
//! | [`map`] | switch `buffer_map`: which frame holds a page | M1 to M6 |
//! | [`pin`] | the word of a frame's state: pins, claims, what is unwritten | P1 to P4 |
//! | [`clock`] | switch `buffer_clock`: which page gives way | C1 to C4 |
//! | [`ring`] | which page gives way to a big scan or a bulk write | F1 to F3 |
//! | `page_latch` | switch `page_latch`: the latch on a page's content | |
//! | [`page_read`] | switch `page_read`: with a pin and a latch, or without | V1 to V5 |
//! | `page_version` | the version by which a reader without a pin sees changes | |
//! | `page_guard` | pins and content latches as values | |
//! | `racy` | a page as a reader without a latch sees it | |
//! | `page_counts` | the pages that a thread has used | |
//! | `frame`, `page_memory` | a frame, and the bytes of all pages | |
//! | `pool` | pinning, reading in, evicting, writing out | below |
//! | `page_device` | the files and the log underneath | |
//!
//! All of it is generic over the machine and the device, so that checkers and simulations run this code
//! (`tests/loom_frames.rs`, `tests/shuttle_pool.rs`). `docs/mechanisms/buffer-pool.md` shows it at work.
//!
//! # Rules
//! - B1: a page is looked at only while pinned, and only under its content latch: shared or update to read, exclusive
//!   to change. The one exception is an optimistic reader (`racy`): it uses what it read only if no other worker has
//!   written meanwhile, and, if it has no pin, only if the frame was the page's all the time ([`page_read`]). The
//!   content latch says nothing about the tag, so a guard borrows or owns a pin.
//! - B2: content latches of several pages are taken in the order of the access method. Heap pages: by ascending number.
//!   Tree pages: downwards, then to the right. A unique check looks at heap pages while it holds a leaf; no worker
//!   takes a tree page while it holds a heap page. No content latch is held across a wait for a lock, a transaction, a
//!   client or a commit.
//! - B3: log before data. A page is written only after the log is durable up to its LSN, and up to the newest commit
//!   that was seen before it was durable: a hint on the page may tell of that commit, which a crash may take back.
//! - B4: hints are set under the shared latch, in words that are atomics ([`page_view`]), and are not logged. A hint never makes a page dirty, so it is lost with a
//!   clean page, which is harmless; and a page is never written for a hint alone, which could tear it without an image
//!   in the log.
//! - B5: reading a page in, and writing one out, happen under the frame's I/O latch. A worker that finds a page not yet
//!   valid waits for that latch.

mod clock;
mod frame;
mod map;
mod page_counts;
mod page_device;
pub(crate) mod page_guard;
mod page_latch;
mod page_memory;
mod page_read;
mod page_version;
pub(crate) mod page_view;
mod pin;
mod pool;
mod racy;
mod ring;

pub use clock::BufferClockVariant;
#[cfg(test)]
pub(crate) use frame::PageBytes;
pub use map::BufferMapVariant;
pub use page_counts::PageCounts;
pub use page_device::{PageDevice, PagesOnDisk};
pub use page_guard::{PageExclusive, PageShared, PageUpdate, PinnedPage};
pub use page_latch::PageLatchVariant;
pub use page_read::PageReadVariant;
pub use pool::{BufferPool, BufferPoolOptions};
pub(crate) use racy::RacyCopy;
pub use racy::RacyPage;
pub use ring::FrameRing;
