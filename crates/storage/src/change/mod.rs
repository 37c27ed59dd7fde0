//! Atomic changes: changes of one or several pages, with one log record for each change.
//!
//! A change collects writes to pages that the caller has latched exclusively. Each write happens in memory at
//! once and is noted; `finish` inserts *one* record for all pages, so that recovery applies all of it or
//! nothing. Records describe bytes, not rows or keys, so recovery needs no code of the access methods.
//!
//! ```text
//! payload: for each page:  rel u32 | block u32 | form u8 | (form's data)
//!   form 0, deltas:  count u16, then each: 0, offset u16, length u16, bytes   write
//!                                          1, source u16, target u16, length u16   move
//!   form 1, image:   length of the part before the hole u16, start of the part after it u16, both parts
//!   form 2, fresh:   kind u16, trailer size u16, then as form 0: deltas on an empty page
//! ```
//! An image is also logged where it is shorter than the deltas, so no page takes more than 8 KiB and a few
//! bytes of a record.
//!
//! # Rules
//! - R1: the first change of a page after the redo position logs the whole page, which heals a torn page. The
//!   page's LSN tells whether a change is the first one; the insertion checks that the redo position is still
//!   the one that this was decided for.
//! - R2: between the first write and the end of `finish` nothing can fail, except the log's device, which
//!   ends the process. Every step that can fail (reading pages, extending a relation, `begin_change`) comes before.
//!   `begin_change` has made sure of space for the record; an operation that latches pages first calls
//!   `make_log_room` before, so that no worker waits behind a latch while a segment is made.
//! - R3: a page is changed under its exclusive latch only, which is held from the first write to the end of `finish`:
//!   no worker sees half a change. Dropping the guard, or the change, in between aborts the process.
//! - R4: one record is one change. What must be atomic belongs in one change; what spans several (a tree's split and
//!   the entry in its parent) must be valid in between.
//!
//! Origin: PostgreSQL's generic WAL records, made the only kind.

pub(crate) mod byte_buffers;

use clearway_machine::{Machine, Native};
use clearway_txn::Xid;
use smallvec::SmallVec;

use crate::buffer::PageExclusive;
use crate::buffer::page_guard::ChangingFrame;
use crate::change::byte_buffers::ByteBuffer;
use crate::error::Result;
use crate::page::{self, Lsn, PAGE_SIZE, PageId, PageKind, get_u16, get_u32};
use crate::wal::record::RecordKind;
use crate::wal::{LogCounts, LogDevice, RedoMoved, Wal};

const DELTAS: u8 = 0;
const IMAGE: u8 = 1;
const FRESH: u8 = 2;
const WRITE: u8 = 0;
const MOVE: u8 = 1;

/// The log of changes.
pub trait ChangeLog {
    /// The position after the last record reserved.
    fn reserved(&self) -> Lsn;

    /// Pages last changed before this need a full image with their next change (R1).
    fn redo(&self) -> Lsn;

    /// Inserts a record built for redo position `built_for`; returns the position after it.
    fn insert(
        &self,
        kind: RecordKind,
        xid: Xid,
        payload: &[u8],
        built_for: Lsn,
    ) -> std::result::Result<Lsn, RedoMoved>;

    /// Notes that the last record has so many whole pages, one at least.
    fn logged_images(&self, _images: u64) {}
}

impl<M: Machine, D: LogDevice> ChangeLog for Wal<M, D> {
    #[inline]
    fn reserved(&self) -> Lsn {
        self.reserved()
    }

    #[inline]
    fn redo(&self) -> Lsn {
        self.redo()
    }

    #[inline]
    fn insert(
        &self,
        kind: RecordKind,
        xid: Xid,
        payload: &[u8],
        built_for: Lsn,
    ) -> std::result::Result<Lsn, RedoMoved> {
        self.insert(kind, xid, payload, built_for)
    }

    fn logged_images(&self, images: u64) {
        self.logged_images(images);
    }
}

struct ChangedPage<M: Machine> {
    frame: ChangingFrame<M>,
    fresh: Option<(PageKind, u16)>,
    deltas: ByteBuffer,
    count: u16,
}

/// A change of one or several pages that recovery applies as a whole or not at all.
#[must_use = "a change is in the log only after finish"]
pub struct AtomicChange<'s, M: Machine = Native, L: ChangeLog = Wal> {
    log: &'s L,
    xid: Xid,
    pages: SmallVec<[ChangedPage<M>; 2]>,
}

impl<M: Machine, L: ChangeLog> std::fmt::Debug for AtomicChange<'_, M, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomicChange")
            .field("xid", &self.xid)
            .field("pages", &self.pages.len())
            .finish()
    }
}

impl<'s, M: Machine, L: ChangeLog> AtomicChange<'s, M, L> {
    /// A change that has not begun, for the transaction `xid`. There is room for it in the log (R2).
    pub fn new(log: &'s L, xid: Xid) -> Self {
        Self {
            log,
            xid,
            pages: SmallVec::new(),
        }
    }

    fn entry(&mut self, page: &PageExclusive<'_, M>) -> &mut ChangedPage<M> {
        let found = self.pages.iter().position(|changed| changed.frame.is(page));
        let index = found.unwrap_or_else(|| {
            let frame = ChangingFrame::begin(page);
            self.pages.push(ChangedPage {
                frame,
                fresh: None,
                deltas: ByteBuffer::take(),
                count: 0,
            });
            self.pages.len() - 1
        });
        &mut self.pages[index]
    }

    /// Writes `bytes` at `offset`.
    pub fn write(&mut self, page: &mut PageExclusive<'_, M>, offset: usize, bytes: &[u8]) {
        page.bytes_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
        let entry = self.entry(page);
        entry.deltas.push(WRITE);
        entry.deltas.extend_from_slice(&(offset as u16).to_le_bytes());
        entry
            .deltas
            .extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        entry.deltas.extend_from_slice(bytes);
        entry.count += 1;
    }

    /// Writes a little-endian u16 at `offset`.
    pub fn write_u16(&mut self, page: &mut PageExclusive<'_, M>, offset: usize, value: u16) {
        self.write(page, offset, &value.to_le_bytes());
    }

    /// Moves `length` bytes from `source` to `target`; the two may overlap.
    pub fn move_bytes(
        &mut self,
        page: &mut PageExclusive<'_, M>,
        source: usize,
        target: usize,
        length: usize,
    ) {
        page.bytes_mut().copy_within(source..source + length, target);
        let entry = self.entry(page);
        entry.deltas.push(MOVE);
        for word in [source, target, length] {
            entry.deltas.extend_from_slice(&(word as u16).to_le_bytes());
        }
        entry.count += 1;
    }

    /// Makes the page an empty one of `kind`, with a trailer of `special_size` bytes. Its old content is
    /// discarded.
    pub fn init_page(&mut self, page: &mut PageExclusive<'_, M>, kind: PageKind, special_size: usize) {
        page::init(page.bytes_mut(), kind, special_size);
        let entry = self.entry(page);
        entry.fresh = Some((kind, special_size as u16));
        entry.deltas.clear();
        entry.count = 0;
    }

    /// Logs the change and stamps its pages; they may be unlatched after this. Returns the position after the record.
    pub fn finish(mut self) -> Result<Lsn> {
        if self.pages.is_empty() {
            return Ok(self.log.reserved());
        }
        let mut redo = self.log.redo();
        let mut payload = ByteBuffer::take();
        payload.reserve(self.pages.iter().map(|page| page.deltas.len() + 16).sum());
        let mut images;
        let lsn = loop {
            payload.clear();
            images = 0;
            for changed in &self.pages {
                images += u64::from(changed.encode(redo, &mut payload));
            }
            match self.log.insert(RecordKind::CHANGE, self.xid, &payload, redo) {
                Ok(lsn) => break lsn,
                Err(RedoMoved(now)) => redo = now,
            }
        };
        if images > 0 {
            LogCounts::add_images(images);
            self.log.logged_images(images);
        }
        for changed in self.pages.drain(..) {
            // SAFETY: the guards' owner is inside `finish`. References to the header of a page under the exclusive latch are
            // given out in this crate alone, and none is in use over a `finish` (`PageExclusive`).
            page::set_lsn(unsafe { changed.frame.bytes_mut() }, lsn);
            changed.frame.end();
        }
        Ok(lsn)
    }
}

impl<M: Machine, L: ChangeLog> Drop for AtomicChange<'_, M, L> {
    fn drop(&mut self) {
        if !self.pages.is_empty() {
            clearway_machine::fatal(format_args!(
                "a change of {} pages was dropped half-way; stopping",
                self.pages.len()
            ));
        }
    }
}

impl<M: Machine> ChangedPage<M> {
    /// Adds the page's part to a record; true if it is the whole page.
    fn encode(&self, redo: Lsn, payload: &mut Vec<u8>) -> bool {
        let page = self.frame.page_id();
        payload.extend_from_slice(&page.rel.0.to_le_bytes());
        payload.extend_from_slice(&page.block.to_le_bytes());
        // SAFETY: as in `finish`.
        let bytes = unsafe { self.frame.bytes_mut() };
        let first_change = self.fresh.is_none() && page::lsn(&bytes[..]) <= redo;
        let (lower, upper) = hole(&bytes[..]);
        if first_change || self.deltas.len() > lower + PAGE_SIZE - upper {
            // R1.
            encode_image(&bytes[..], payload);
            return true;
        }
        if let Some((kind, special)) = self.fresh {
            payload.push(FRESH);
            payload.extend_from_slice(&kind.0.to_le_bytes());
            payload.extend_from_slice(&special.to_le_bytes());
        } else {
            payload.push(DELTAS);
        }
        payload.extend_from_slice(&self.count.to_le_bytes());
        payload.extend_from_slice(&self.deltas);
        false
    }
}

/// The free space that an image leaves out: from, to. Only pages of slots and items keep their content out of it.
fn hole(bytes: &[u8]) -> (usize, usize) {
    let (lower, upper) = (page::lower(bytes), page::upper(bytes));
    let slotted = matches!(page::kind(bytes), PageKind::HEAP | PageKind::BTREE_NODE);
    if slotted && (page::PAGE_HEADER..=upper).contains(&lower) && upper <= PAGE_SIZE {
        (lower, upper)
    } else {
        // This layout has no hole.
        (PAGE_SIZE, PAGE_SIZE)
    }
}

fn encode_image(bytes: &[u8], payload: &mut Vec<u8>) {
    let (lower, upper) = hole(bytes);
    payload.push(IMAGE);
    payload.extend_from_slice(&(lower as u16).to_le_bytes());
    payload.extend_from_slice(&(upper as u16).to_le_bytes());
    payload.extend_from_slice(&bytes[..lower]);
    payload.extend_from_slice(&bytes[upper..]);
}

/// One page's part of a change record.
#[derive(Clone, Copy)]
pub(crate) enum PagePart<'a> {
    Deltas(&'a [u8], u16),
    Image {
        before: &'a [u8],
        after: &'a [u8],
    },
    Fresh {
        kind: PageKind,
        special: usize,
        deltas: &'a [u8],
        count: u16,
    },
}

/// Takes `length` bytes off the front; `None` if there are fewer.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (front, back) = rest.split_at_checked(length)?;
    *rest = back;
    Some(front)
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    Some(get_u16(take(rest, 2)?, 0))
}

/// The deltas at the front of `rest`, checked to lie on a page.
fn take_deltas<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], u16)> {
    let count = take_u16(rest)?;
    let start = *rest;
    for _ in 0..count {
        match take(rest, 1)?[0] {
            WRITE => {
                let (offset, length) = (take_u16(rest)?, take_u16(rest)?);
                take(rest, usize::from(length))?;
                (usize::from(offset) + usize::from(length) <= PAGE_SIZE).then_some(())?;
            }
            MOVE => {
                let (source, target, length) = (take_u16(rest)?, take_u16(rest)?, take_u16(rest)?);
                (usize::from(source.max(target)) + usize::from(length) <= PAGE_SIZE).then_some(())?;
            }
            _ => return None,
        }
    }
    Some((&start[..start.len() - rest.len()], count))
}

/// Takes the next page's part off a change record; `None` if the record is malformed.
pub(crate) fn next_part<'a>(rest: &mut &'a [u8]) -> Option<(PageId, PagePart<'a>)> {
    let head = take(rest, 9)?;
    let page = PageId {
        rel: crate::page::RelId(get_u32(head, 0)),
        block: get_u32(head, 4),
    };
    let part = match head[8] {
        DELTAS => {
            let (deltas, count) = take_deltas(rest)?;
            PagePart::Deltas(deltas, count)
        }
        IMAGE => {
            let (lower, upper) = (usize::from(take_u16(rest)?), usize::from(take_u16(rest)?));
            (lower <= upper && upper <= PAGE_SIZE).then_some(())?;
            PagePart::Image {
                before: take(rest, lower)?,
                after: take(rest, PAGE_SIZE - upper)?,
            }
        }
        FRESH => {
            let (kind, special) = (PageKind(take_u16(rest)?), usize::from(take_u16(rest)?));
            (special <= PAGE_SIZE - page::PAGE_HEADER).then_some(())?;
            let (deltas, count) = take_deltas(rest)?;
            PagePart::Fresh {
                kind,
                special,
                deltas,
                count,
            }
        }
        _ => return None,
    };
    Some((page, part))
}

impl PagePart<'_> {
    /// True if this replaces the whole page.
    pub(crate) fn replaces(&self) -> bool {
        !matches!(self, PagePart::Deltas(..))
    }

    /// Applies this part of the change to `bytes`.
    pub(crate) fn apply(&self, bytes: &mut [u8]) {
        match *self {
            PagePart::Deltas(deltas, count) => apply_deltas(deltas, count, bytes),
            PagePart::Image { before, after } => {
                bytes.fill(0);
                bytes[..before.len()].copy_from_slice(before);
                bytes[PAGE_SIZE - after.len()..].copy_from_slice(after);
            }
            PagePart::Fresh {
                kind,
                special,
                deltas,
                count,
            } => {
                page::init(bytes, kind, special);
                apply_deltas(deltas, count, bytes);
            }
        }
    }
}

fn apply_deltas(mut deltas: &[u8], count: u16, bytes: &mut [u8]) {
    for _ in 0..count {
        let word = |at| usize::from(get_u16(deltas, at));
        let (first, second) = (word(1), word(3));
        if deltas[0] == WRITE {
            bytes[first..first + second].copy_from_slice(&deltas[5..5 + second]);
            deltas = &deltas[5 + second..];
        } else {
            bytes.copy_within(first..first + word(5), second);
            deltas = &deltas[7..];
        }
    }
}
