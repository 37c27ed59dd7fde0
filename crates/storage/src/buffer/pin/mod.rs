//! Pins: what keeps a page in its frame, and how a frame passes from one page to the next.
//!
//! Protects: the tag of a frame, which says whose bytes it holds. Contract: [`FrameState`], one word for each frame.
//!
//! # Invariants
//! - P1: the tag of a frame that is `VALID` does not change while the frame is pinned. Only the *owner* of a frame
//!   changes the tag: the worker that took it (step 3) or seized it.
//! - P2: a worker becomes the owner in one atomic step of the state, which succeeds only without pins of others and
//!   without an unwritten change, and which clears `VALID`.
//! - P3: if the state that a pin returned has `VALID`, the page stays as long as that pin. If it has not, the holder of
//!   the pin waits for the I/O latch, and looks at `VALID` and at the tag again.
//! - P4: a page is `DIRTY` from before its change is logged until a copy made after the change has reached its file. So
//!   if a worker sees the page clean after the redo position has moved past the record, the file has the change.
//!
//! P3 allows a map without latches: its lookups may pin a frame that another worker owns by now. Such a pin finds
//! no `VALID`, or the tag of another page, and is given back. The owner does not mind it.
//!
//! # Steps
//! 1. *Pin*: a lookup in the map adds 1 to the count, and raises the usage. *Unpin* subtracts 1.
//! 2. *Claim*: the clock hand passes a frame without pins. It lowers the usage; if that is 0, it takes a pin. A frame
//!    without a page that the clock has listed is claimed whatever its usage.
//! 3. *Take*: a worker has claimed the frame, and has written it out if it was dirty. If its pin is still the only one
//!    and the page is still clean, the map forgets the page (`remove_if`), and the worker owns the frame. Otherwise
//!    another worker wants the page again: unpin, and claim another frame.
//! 4. *Reuse*: the owner takes the I/O latch, sets the tag, enters the page in the map, reads it in, and sets `VALID`.
//!
//! *Seize* is claim and take without regard to usage and to unwritten changes: for frames of a relation that was
//! dropped.
//!
//! # Writing out
//! The writer takes the content latch shared and the I/O latch. It clears `REDIRTIED`, copies the page, releases the
//! content latch, and writes the copy. A change in the meantime sets `DIRTY` and `REDIRTIED`. At the end the writer
//! clears `DIRTY` unless it finds `REDIRTIED`: then the copy lacks a change, and the page stays dirty (P4).

mod state;

pub(crate) use state::{CHANGED, CHANGING, DIRTY, FrameState, REDIRTIED, ROUNDS_TO_CLAIM, VALID};
