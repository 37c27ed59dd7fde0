//! A row read from a page that is neither pinned nor latched (`page_read = optimistic`).
//!
//! A *settled* chain is one in which hints say how every version's inserter and deleter ended, up to the newest
//! committed version. Such a chain can be read without asking or telling another worker anything, and that is nearly
//! every chain that a SELECT meets.
//!
//! # Steps
//! 1. One look at the page ([`BufferPool::read`]): walk the chain by its hints, copy the header of each version that has
//!    been replaced or deleted, and header and bytes of the newest one. What is not settled ends the look.
//! 2. The pool has validated the look: the copies are of one instant. Visibility is decided on them, as under the latch.
//! 3. Anything else is left to the pinned form, which can ask the commit log and set hints: a chain that is not settled,
//!    a snapshot so old that it sees a version before the newest, a chain of more than [`OLDER_MAX`] such versions.
//!
//! # Why the simpler versions are wrong
//! - *Visibility is decided during the look.* The xids may be halves of two: the commit log would be asked about
//!   transactions that never were, and a commit would be noted that the reader has not seen.
//! - *A look for each version.* Between two of them the page may be pruned and the next slot used again. R2 would take
//!   that for the end of the chain, although the row has a version behind it that the snapshot sees.
//!
//! [`BufferPool::read`]: crate::BufferPool::read

use crate::buffer::page_view::HintedHeader;
use crate::buffer::{RacyCopy, RacyPage};
use crate::error::Result;
use crate::heap::layout::{
    HEAP_ONLY, HOT_UPDATED, LOCK_ONLY, Line, TUPLE_HEADER, Tuple, XMAX, XMAX_ABORTED, XMAX_COMMITTED, XMIN,
    XMIN_COMMITTED, header_of_copy, infomask_in, line_offset, next_slot_in, slots_below,
};
use crate::heap::visibility::{Hints, visible};
use crate::heap::{Heap, Tid, TxnContext};
use crate::page::{LOWER, PageId};

/// Replaced versions before the newest one, of a chain that is read without a latch. Longer ones are due to be pruned.
const OLDER_MAX: usize = 4;

/// A settled chain: the copies that step 1 makes.
struct SettledChain {
    /// Headers of versions that were replaced or deleted, oldest first.
    older: [HintedHeader; OLDER_MAX],
    older_count: usize,
    /// The slot of the newest version, whose copy is in `newest`; `None`: the last of the older ones was deleted, or
    /// there is no chain.
    newest_slot: Option<u16>,
    newest: RacyCopy,
}

/// A page on which no hint is set, since a settled version lacks none.
struct Settled;

impl Hints for Settled {
    fn set_hint(&self, _tuple: &Tuple<'_>, _bits: u16) {}
}

impl SettledChain {
    fn new() -> Self {
        Self {
            older: [const { HintedHeader::of([0; 4]) }; OLDER_MAX],
            older_count: 0,
            newest_slot: None,
            newest: RacyCopy::new(),
        }
    }

    /// Copies the chain of `root`, over what is here. `None`: it is not settled, or makes no sense.
    #[inline]
    fn copy(&mut self, page: RacyPage<'_>, root: u16) -> Option<()> {
        (self.older_count, self.newest_slot) = (0, None);
        let slots = slots_below(page.u16_at(LOWER)?.into());
        let line = |slot: u16| match slot {
            0 => Some(Line::Unused),
            _ if slot > slots => Some(Line::Unused),
            _ => page
                .u32_at(line_offset(slot))
                .map(|word| Line::decode(word.to_le_bytes())),
        };
        let (mut slot, redirected) = match line(root)? {
            Line::Normal { .. } => (root, false),
            Line::Redirect(first) => (first, true),
            Line::Unused | Line::Dead => return Some(()),
        };
        let mut expected = None;
        loop {
            let Line::Normal { offset, length } = line(slot)? else {
                return Some(());
            };
            let xmin = page.u64_at(offset + XMIN)?;
            let xmax = page.u64_at(offset + XMAX)?;
            let hint_word = page.hint_word_of(offset)?;
            let infomask = infomask_in(hint_word);
            // R1, R2: the slot has been used again.
            let reused = match expected {
                None => !redirected && infomask & HEAP_ONLY != 0,
                Some(expected) => expected != xmin,
            };
            if reused {
                return Some(());
            }
            if infomask & XMIN_COMMITTED == 0 {
                return None;
            }
            if xmax == 0 || infomask & (LOCK_ONLY | XMAX_ABORTED) != 0 {
                self.newest_slot = Some(slot);
                return page.copy(offset, length.max(TUPLE_HEADER), &mut self.newest);
            }
            if infomask & XMAX_COMMITTED == 0 {
                return None;
            }
            *self.older.get_mut(self.older_count)? = page.header_of(offset)?;
            self.older_count += 1;
            let next = next_slot_in(hint_word);
            if infomask & HOT_UPDATED == 0 || next == 0 {
                return Some(());
            }
            (slot, expected) = (next, Some(xmax));
        }
    }
}

impl Heap {
    /// As [`fetch`](Self::fetch). `None`: the row has to be fetched from a pinned page.
    #[inline]
    pub(super) fn fetch_unpinned<R>(
        &self,
        ctx: &TxnContext<'_>,
        root: Tid,
        read: &mut impl FnMut(Tid, &[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        let mut chain = SettledChain::new();
        let page = PageId {
            rel: self.rel,
            block: root.block,
        };
        let settled = ctx.storage.read_page(page, |page| chain.copy(page, root.slot))?;
        if settled.is_none() {
            return Ok(None);
        }
        for header in &chain.older[..chain.older_count] {
            if visible(ctx, &Settled, &Tuple::copied(header, &[]))? {
                return Ok(None);
            }
        }
        let Some(slot) = chain.newest_slot else {
            return Ok(Some(None));
        };
        let newest = chain.newest.bytes();
        let header = header_of_copy(newest);
        let tuple = Tuple::copied(&header, &newest[TUPLE_HEADER..]);
        if !visible(ctx, &Settled, &tuple)? {
            return Ok(Some(None));
        }
        let tid = Tid {
            block: root.block,
            slot,
        };
        Ok(Some(Some(read(tid, tuple.row()))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clearway_machine::Switch;
    use clearway_txn::{ProcId, Snapshot};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::PageReadVariant;
    use crate::buffer::{BufferPoolOptions, PageBytes};
    use crate::commit::Reader;
    use crate::heap::UpdateOutcome;
    use crate::heap::layout::INFOMASK;
    use crate::page::PAGE_SIZE;
    use crate::storage::{Storage, StorageOptions};

    fn open(page_read: PageReadVariant) -> (tempfile::TempDir, Arc<Storage>) {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            pool: BufferPoolOptions {
                page_read,
                ..BufferPoolOptions::default()
            },
            fsync: false,
            ..StorageOptions::default()
        };
        let storage = Storage::open(dir.path(), options).unwrap().0;
        (dir, storage)
    }

    /// Calls `work` with what a transaction of `proc` has, with or without an xid, under a new snapshot. It commits
    /// unless `work` says otherwise.
    fn try_in_transaction<R>(
        storage: &Storage,
        proc: ProcId,
        writes: bool,
        work: impl FnOnce(&TxnContext<'_>) -> Option<R>,
    ) -> Option<R> {
        let xid = writes.then(|| storage.assign_xid(proc).unwrap());
        let mut snapshot = Snapshot::default();
        storage.proc_array.snapshot(proc, &mut snapshot);
        let result = work(&TxnContext {
            storage,
            proc,
            xid,
            command: 1,
            reader: Reader::of_no_answer(&snapshot),
            changes: None,
        });
        if let Some(xid) = xid {
            if result.is_some() {
                storage.commit(proc, xid, false).unwrap();
            } else {
                storage.abort(proc, xid).unwrap();
            }
        }
        storage.proc_array.clear_xmin(proc);
        result
    }

    fn in_transaction<R>(
        storage: &Storage,
        proc: ProcId,
        writes: bool,
        work: impl FnOnce(&TxnContext<'_>) -> R,
    ) -> R {
        try_in_transaction(storage, proc, writes, |ctx| Some(work(ctx))).unwrap()
    }

    type Found = Option<Option<(Tid, Vec<u8>)>>;

    fn unpinned(heap: Heap, ctx: &TxnContext<'_>, root: Tid) -> Found {
        let mut read = |tid: Tid, row: &[u8]| (tid, row.to_vec());
        heap.fetch_unpinned(ctx, root, &mut read).unwrap()
    }

    /// An unsettled version is left to the pinned form, which settles it. A replaced version is passed, and one that an
    /// old snapshot sees is left to the pinned form. A root that is somebody else's version by now leads nowhere.
    ///
    /// Mutations for it (`mutations/page_read.toml`): a version whose inserter no hint tells of is taken for a settled one; a heap-only version is
    /// taken for a root.
    #[test]
    fn a_settled_row_is_read_without_a_pin() {
        let (_dir, storage) = open(PageReadVariant::Optimistic);
        let heap = Heap::new(storage.create_rel().unwrap().0);
        let (writer, reader) = [(); 2].map(|()| storage.proc_array.attach().unwrap()).into();
        let root = in_transaction(&storage, writer, true, |ctx| heap.insert(ctx, b"old").unwrap());
        in_transaction(&storage, reader, false, |old| {
            let read = |tid: Tid, row: &[u8]| (tid, row.to_vec());
            let first = Some((root, b"old".to_vec()));
            assert_eq!(unpinned(heap, old, root), None, "not settled");
            assert_eq!(heap.fetch(old, root, read).unwrap(), first);
            assert_eq!(unpinned(heap, old, root), Some(first.clone()));

            let newer = in_transaction(&storage, writer, true, |ctx| {
                match heap.update(ctx, root, b"a newer row", true).unwrap() {
                    UpdateOutcome::Updated { tid, hot: true } => tid,
                    outcome => panic!("{outcome:?}"),
                }
            });
            in_transaction(&storage, writer, false, |ctx| {
                let second = Some((newer, b"a newer row".to_vec()));
                assert_eq!(unpinned(heap, ctx, root), None, "not settled");
                assert_eq!(heap.fetch(ctx, root, read).unwrap(), second);
                assert_eq!(unpinned(heap, ctx, root), Some(second));
                assert_eq!(unpinned(heap, ctx, newer), Some(None), "no index leads there");
            });
            assert_eq!(
                unpinned(heap, old, root),
                None,
                "the old snapshot sees the old version"
            );
            assert_eq!(heap.fetch(old, root, read).unwrap(), first);
        });
    }

    /// A writer replaces a row all the time, and its page is pruned whenever it is full. A reader always finds one
    /// version, whole, and never an older one than before.
    #[test]
    fn a_row_that_moves_about_its_page_is_found_whole() {
        for &page_read in PageReadVariant::ALL {
            let (_dir, storage) = open(page_read);
            let heap = Heap::new(storage.create_rel().unwrap().0);
            let (writer, reader) = [(); 2].map(|()| storage.proc_array.attach().unwrap()).into();
            let row = |number: u64| {
                let length = 400 + number as usize % 5 * 100;
                number.to_le_bytes().repeat(length / 8)
            };
            let root = in_transaction(&storage, writer, true, |ctx| heap.insert(ctx, &row(0)).unwrap());
            let ended = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut tid = root;
                    for number in 1..3_000 {
                        let updated = try_in_transaction(&storage, writer, true, |ctx| {
                            match heap.update(ctx, tid, &row(number), true).unwrap() {
                                UpdateOutcome::Updated { tid, hot: true } => Some(tid),
                                // Versions that the reader may still see fill the page.
                                UpdateOutcome::Updated { .. } => None,
                                outcome => panic!("{outcome:?}"),
                            }
                        });
                        tid = updated.unwrap_or(tid);
                    }
                    ended.store(true, std::sync::atomic::Ordering::Relaxed);
                });
                let mut newest = 0;
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    let found = in_transaction(&storage, reader, false, |ctx| {
                        heap.fetch(ctx, root, |_, bytes| bytes.to_vec()).unwrap()
                    });
                    let found = found.expect("one version is visible");
                    let number = u64::from_le_bytes(*found.first_chunk().unwrap());
                    assert_eq!(found, row(number), "{page_read:?}: parts of several versions");
                    assert!(number >= newest, "{page_read:?}: {number} after {newest}");
                    newest = number;
                }
            });
        }
    }

    /// Whatever the bytes are, looking for a chain in them ends.
    #[test]
    fn nonsense_is_no_chain() {
        let mut random = StdRng::seed_from_u64(7);
        let mut page = Box::new(PageBytes([0; PAGE_SIZE].into()));
        let mut chain = SettledChain::new();
        let (mut found, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let bytes = page.0.get_mut();
            for at in (0..PAGE_SIZE).step_by(8).take(40) {
                bytes[at..at + 8].copy_from_slice(&random.random::<u64>().to_le_bytes());
            }
            // Line pointers and hints that are likely to lead somewhere.
            for slot in 1..20 {
                let offset = random.random_range(0..PAGE_SIZE / 8) * 8;
                let length = random.random_range(0..400);
                bytes[line_offset(slot)..][..4].copy_from_slice(&Line::Normal { offset, length }.encode());
                if offset + TUPLE_HEADER <= PAGE_SIZE && offset > 400 {
                    bytes[offset + INFOMASK] = random.random::<u8>() | XMIN_COMMITTED as u8;
                }
            }
            match chain.copy(RacyPage::own(&mut page), random.random_range(0..30)) {
                Some(()) => found += chain.newest_slot.map_or(0, |_| chain.newest.bytes().len()),
                None => refused += 1,
            }
        }
        assert!(found > 0 && refused > 0, "{found} bytes, {refused} refused");
    }
}
