//! The buffer pool: pages in memory, found by a mapping table, evicted by a clock sweep.
//!
//! # Rules
//! 1. A page is looked at only while pinned, and only under its content latch: shared or update to read,
//!    exclusive to change. The one exception is an optimistic reader (`racy`): it uses what it read only if
//!    no other worker has written meanwhile.
//! 2. A pin keeps the frame's tag from changing; the content latch says nothing about the tag.
//! 3. Two content latches are taken in the order that the access method defines (heap: ascending page number;
//!    B+tree: down and to the right).
//! 4. A page is written only after the log is durable up to its LSN, and up to the newest asynchronous
//!    commit, so that hint bits may be set freely.
//! 5. A hint never makes a page dirty. Hints are therefore lost with a clean page, which is harmless, and a
//!    page is never written for a hint alone, which could tear it without an image in the log.
//! 6. Reading a page in, and writing one out, happen under the frame's I/O latch; a worker that finds a page
//!    not yet valid waits for that latch.
//! 7. A page is dirty from before its change is logged until a copy made after the change has reached its
//!    file. So if a worker sees the page clean after the redo position has moved past the record, the file
//!    has the change.
//! 8. A pin is added only under the shared latch of the mapping partition. The exception is a frame without
//!    pins: the clock hand, and a worker that drops a relation, may pin it without that latch in shared mode.
//!    So under the partition's exclusive latch the number of pins of a pinned frame cannot grow.
//! 9. A worker that needs a frame does not wait for the latches of the page in it: their holder may be
//!    waiting for a page that this worker has latched. Only the checkpointer, which holds no page, waits.

mod frame;
mod mapping;
mod page_device;
pub(crate) mod page_guard;
mod page_latch;
mod pool;
mod racy;

pub use mapping::{BufferMapVariant, BufferMapping};
pub use page_device::{PageDevice, PagesOnDisk};
pub use page_guard::{PageExclusive, PageShared, PageUpdate, PinnedPage};
pub use page_latch::PageLatchVariant;
pub use pool::BufferPool;
pub(crate) use racy::RacyPage;
