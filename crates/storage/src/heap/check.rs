//! The check that a heap page keeps the rules of the module.
//!
//! 1. The page's areas do not overlap: line pointers, free space, tuples; nor do two tuples.
//! 2. A Redirect leads to a heap-only tuple. Every tuple's xids have been handed out.
//! 3. If a version of a HOT chain names a successor and the updater committed, the chain has that successor:
//!    a new version is removed only with, or after, the version it replaced (R4). A chain does not meet
//!    itself or another.
//! 4. A heap-only tuple whose inserter committed, and has not ended it itself, is on a chain. Otherwise neither a scan nor
//!    an index finds it. One that was taken back to a savepoint (`take_back`) is on none.

use clearway_txn::{Status, Xid};

use crate::buffer::PageShared;
use crate::buffer::page_view::HintedPage;
use crate::error::findings::Findings;
use crate::error::{Result, StorageError};
use crate::heap::chain::{chain, chain_start};
use crate::heap::layout::{
    self, HEAP_ONLY, LINE_POINTER, LOCK_ONLY, Line, TUPLE_HEADER, Tuple, line, lines, slot_count,
};
use crate::heap::visibility::next_in_chain;
use crate::heap::{Heap, Tid};
use crate::page::{self, PAGE_HEADER, PAGE_SIZE, PageId, PageKind};
use crate::storage::Storage;

/// Checks a page.
pub(crate) fn check_page(storage: &Storage, page: &PageShared<'_>, findings: &mut Findings) -> Result<()> {
    let block = page.page_id().block;
    match page::kind(page.header()) {
        PageKind::NEW => return Ok(()),
        PageKind::HEAP => {}
        PageKind(kind) => {
            findings.page(block, format!("a page of kind {kind} in a heap"));
            return Ok(());
        }
    }
    let page = page.hinted();
    if let Some(problem) = layout_problem(page) {
        // The tuples cannot be checked, because the line pointers are damaged.
        findings.page(block, problem);
        return Ok(());
    }
    check_tuples(storage, block, page, findings);
    check_chains(storage, block, page, findings)
}

/// Step 1.
fn layout_problem(page: HintedPage<'_>) -> Option<String> {
    let front = page.front();
    let (lower, upper) = (page::lower(front), page::upper(front));
    let sound = (PAGE_HEADER..=upper).contains(&lower)
        && upper <= PAGE_SIZE
        && (lower - PAGE_HEADER).is_multiple_of(LINE_POINTER);
    if !sound {
        return Some(format!("the free space from {lower} to {upper} cannot be"));
    }
    let mut tuples = Vec::new();
    for (slot, line) in lines(front) {
        match line {
            Line::Normal { offset, length } => {
                let end = offset + length;
                if offset < upper || !offset.is_multiple_of(8) || length < TUPLE_HEADER || end > PAGE_SIZE {
                    return Some(format!(
                        "line pointer {slot} leads to the bytes from {offset} to {end}, where no row version can be"
                    ));
                }
                tuples.push((offset, end, slot));
            }
            Line::Redirect(target) => {
                let led_to = match layout::line(front, target) {
                    // `Tuple::at` takes it for granted that a line pointer leads to a place for a tuple.
                    Line::Normal { offset, length } => page.item(offset, length),
                    _ => None,
                };
                if !led_to.is_some_and(|(header, row)| Tuple::copied(header, row).has(HEAP_ONLY)) {
                    return Some(format!(
                        "line pointer {slot} redirects to {target}, where no heap-only version is"
                    ));
                }
            }
            Line::Unused | Line::Dead => {}
        }
    }
    tuples.sort_unstable();
    let overlapping = tuples.windows(2).find(|pair| pair[0].1 > pair[1].0)?;
    Some(format!(
        "the row versions at line pointers {} and {} overlap",
        overlapping[0].2, overlapping[1].2
    ))
}

/// Step 2.
fn check_tuples(storage: &Storage, block: u32, page: HintedPage<'_>, findings: &mut Findings) {
    let given_out = |xid: Xid| xid < storage.proc_array.next_xid();
    for slot in 1..=slot_count(page.front()) {
        let Some(tuple) = Tuple::at(page, slot) else {
            continue;
        };
        for xid in [Xid(tuple.xmin()), Xid(tuple.xmax())] {
            if !given_out(xid) {
                findings.page(
                    block,
                    format!(
                        "the row version at line pointer {slot} names transaction {xid}, which has not begun"
                    ),
                );
            }
        }
        if !Xid(tuple.xmin()).is_valid() {
            findings.page(
                block,
                format!("the row version at line pointer {slot} has no inserter"),
            );
        }
    }
}

/// Steps 3 and 4.
fn check_chains(storage: &Storage, block: u32, page: HintedPage<'_>, findings: &mut Findings) -> Result<()> {
    let count = slot_count(page.front());
    let mut visited = vec![false; usize::from(count) + 1];
    for root in 1..=count {
        let Some(start) = chain_start(page, root) else {
            continue;
        };
        let mut last = None;
        for (slot, tuple) in chain(page, start) {
            let seen = &mut visited[usize::from(slot)];
            if *seen {
                findings.page(
                    block,
                    format!(
                        "the chain from line pointer {root} comes to {slot}, which is on a chain already"
                    ),
                );
                last = None;
                break;
            }
            *seen = true;
            last = Some((slot, tuple));
        }
        let Some((slot, tuple)) = last else { continue };
        let Some(next) = next_in_chain(&tuple) else {
            continue;
        };
        if !tuple.has(LOCK_ONLY) && storage.status(Xid(tuple.xmax()))? == Status::Committed {
            findings.page(
                block,
                format!(
                    "the chain from line pointer {root} ends at {slot}, but transaction {} committed a version at {next}",
                    Xid(tuple.xmax())
                ),
            );
        }
    }
    for slot in 1..=count {
        if let Some(tuple) = Tuple::at(page, slot)
            && tuple.has(HEAP_ONLY)
            && !visited[usize::from(slot)]
            && (tuple.xmax() != tuple.xmin() || tuple.has(LOCK_ONLY))
            && storage.status(Xid(tuple.xmin()))? == Status::Committed
        {
            findings.page(
                block,
                format!("no line pointer leads to the committed version at line pointer {slot}"),
            );
        }
    }
    Ok(())
}

impl Heap {
    /// The reason why an index entry cannot lead to `root`; `None` if it can (R1).
    pub fn entry_problem(&self, storage: &Storage, root: Tid) -> Result<Option<&'static str>> {
        let page = PageId {
            rel: self.rel,
            block: root.block,
        };
        let page = match storage.pin(page) {
            Ok(page) => page.into_shared(),
            Err(StorageError::NoSuchPage { .. }) => return Ok(Some("the table has no such page")),
            Err(error) => return Err(error),
        };
        let page = page.hinted();
        if root.slot == 0 || root.slot > slot_count(page.front()) {
            return Ok(Some("the page has no such line pointer"));
        }
        Ok(match line(page.front(), root.slot) {
            Line::Unused => Some("the line pointer is unused"),
            Line::Normal { .. } if chain_start(page, root.slot).is_none() => {
                Some("a version is there that no index may lead to")
            }
            Line::Normal { .. } | Line::Redirect(_) | Line::Dead => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clearway_txn::Snapshot;
    use tempfile::TempDir;

    use super::*;
    use crate::commit::Reader;
    use crate::heap::layout::{INFOMASK, NEXT, XMIN, line_offset};
    use crate::heap::{TxnContext, UpdateOutcome};
    use crate::maintenance::vacuum::vacuum;
    use crate::page::{LOWER, RelId};
    use crate::storage::StorageOptions;

    fn open() -> (TempDir, Arc<Storage>) {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            fsync: false,
            buffer_bytes: 1 << 20,
            ..StorageOptions::default()
        };
        let storage = Storage::open(dir.path(), options).unwrap().0;
        (dir, storage)
    }

    /// A page with rows at line pointers 1 to 4, of which 2 was updated to 5 and that to 6, each by a
    /// transaction that committed.
    fn page_of_rows(storage: &Storage) -> RelId {
        let rel = storage.create_rel().unwrap();
        let heap = Heap::new(rel.0);
        let proc = storage.proc_array.attach().unwrap();
        let snapshot = Snapshot::default();
        let change = |work: &dyn Fn(&TxnContext<'_>)| {
            let xid = storage.assign_xid(proc).unwrap();
            work(&TxnContext {
                storage,
                proc,
                xid: Some(xid),
                command: 1,
                reader: Reader::of_no_answer(&snapshot),
                changes: None,
            });
            storage.commit(proc, xid, false).unwrap();
        };
        change(&|ctx| {
            let rows: Vec<&[u8]> = vec![b"one", b"two", b"three", b"four"];
            heap.insert_many(ctx, &rows, &mut ctx.storage.write_ring())
                .unwrap();
        });
        for slot in [2, 5] {
            change(&|ctx| {
                let outcome = heap.update(ctx, Tid { block: 0, slot }, b"new", true).unwrap();
                assert!(
                    matches!(outcome, UpdateOutcome::Updated { hot: true, .. }),
                    "{outcome:?}"
                );
            });
        }
        storage.proc_array.detach(proc);
        rel
    }

    fn check(storage: &Storage, rel: RelId) -> Vec<String> {
        let mut findings = storage.findings(rel);
        storage
            .check_heap::<StorageError>(rel, 1, &mut findings, &mut |_| Ok(()))
            .unwrap();
        findings
            .list()
            .iter()
            .map(|finding| finding.problem.clone())
            .collect()
    }

    /// Writes `bytes` at an offset of the page, or of the tuple at a slot of it.
    fn damage(storage: &Storage, rel: RelId, slot: Option<u16>, offset: usize, bytes: &[u8]) {
        let mut page = storage.pin(PageId { rel, block: 0 }).unwrap().into_exclusive();
        let start = slot.map_or(0, |slot| Tuple::at(page.hinted(), slot).unwrap().offset);
        let mut change = storage.begin_change(Xid::INVALID).unwrap();
        change.write(&mut page, start + offset, bytes);
        change.finish().unwrap();
    }

    /// Damages to the page of [`page_of_rows`]: the slot of the tuple if it is of one, the offset there, the bytes, and what
    /// is found.
    fn damages() -> [(Option<u16>, usize, Vec<u8>, &'static str); 17] {
        let normal = |offset, length| Line::Normal { offset, length }.encode();
        let leads_to = |offset, length| {
            let bytes = normal(offset, length).into();
            (None, line_offset(3), bytes, "line pointer 3 leads to the bytes")
        };
        let free_space = |lower: u16, upper: u16| [lower.to_le_bytes(), upper.to_le_bytes()].concat();
        [
            (None, LOWER, vec![0xFF, 0x3F], "the free space from"),
            // Behind the tuples, within a line pointer, within the header; and tuples behind the page's end.
            (None, LOWER, free_space(8_188, 7_952), "the free space from"),
            (None, LOWER, free_space(50, 7_952), "the free space from"),
            (None, LOWER, free_space(20, 7_952), "the free space from"),
            (None, LOWER, free_space(48, 8_200), "the free space from"),
            leads_to(8_188, 35),
            // In the free space, not at a multiple of 8, shorter than a header, and behind the page's end.
            leads_to(4_096, 35),
            leads_to(8_076, 35),
            leads_to(8_072, 31),
            leads_to(8_152, 41),
            (None, line_offset(3), normal(8_112, 35).into(), "overlap"),
            (
                None,
                line_offset(3),
                Line::Redirect(4).encode().into(),
                "line pointer 3 redirects to 4",
            ),
            (
                Some(3),
                XMIN,
                u64::MAX.to_le_bytes().into(),
                "which has not begun",
            ),
            (Some(3), XMIN, vec![0; 8], "has no inserter"),
            // The chain is cut in its middle, and goes round.
            (
                Some(5),
                XMIN,
                3_u64.to_le_bytes().into(),
                "ends at 2, but transaction",
            ),
            (
                Some(5),
                INFOMASK,
                vec![HEAP_ONLY as u8, 0],
                "no line pointer leads to the committed version at line pointer 6",
            ),
            (
                None,
                line_offset(1),
                Line::Redirect(5).encode().into(),
                "which is on a chain already",
            ),
        ]
    }

    #[test]
    fn each_broken_rule_is_found() {
        let (_dir, storage) = open();
        for (slot, offset, bytes, problem) in damages() {
            let rel = page_of_rows(&storage);
            assert_eq!(check(&storage, rel), Vec::<String>::new());
            damage(&storage, rel, slot, offset, &bytes);
            let found = check(&storage, rel);
            assert!(
                found.iter().any(|found| found.contains(problem)),
                "{problem}: {found:?}"
            );
        }
        // A version of the transaction that is the next to begin.
        let rel = page_of_rows(&storage);
        let next = storage.proc_array.next_xid();
        damage(&storage, rel, Some(3), XMIN, &next.0.to_le_bytes());
        let found = check(&storage, rel);
        assert!(
            found.iter().any(|found| found.contains("which has not begun")),
            "{found:?}"
        );
        // A version that is its own successor.
        let rel = page_of_rows(&storage);
        let own = [Xid::FIRST_NORMAL.0.to_le_bytes(); 2].concat();
        damage(&storage, rel, Some(5), XMIN, &own);
        damage(&storage, rel, Some(5), NEXT + 4, &5_u16.to_le_bytes());
        damage(&storage, rel, None, line_offset(1), &Line::Redirect(5).encode());
        let found = check(&storage, rel);
        assert!(
            found.iter().any(|found| found.contains("on a chain already")),
            "{found:?}"
        );
        storage.stop_threads();
    }

    /// An update that was rolled back leaves its mark on the version before. Vacuum takes the new version away, with its
    /// line pointer, which is the page's last one.
    #[test]
    fn a_page_with_an_update_rolled_back_is_sound() {
        let (_dir, storage) = open();
        let rel = page_of_rows(&storage);
        let heap = Heap::new(rel.0);
        let proc = storage.proc_array.attach().unwrap();
        let xid = storage.assign_xid(proc).unwrap();
        let snapshot = Snapshot::default();
        let context = TxnContext {
            storage: &storage,
            proc,
            xid: Some(xid),
            command: 1,
            reader: Reader::of_no_answer(&snapshot),
            changes: None,
        };
        let new = Tid { block: 0, slot: 7 };
        let outcome = heap.update(&context, Tid { block: 0, slot: 1 }, b"new", true);
        assert_eq!(outcome.unwrap(), UpdateOutcome::Updated { tid: new, hot: true });
        storage.abort(proc, xid).unwrap();
        for _ in 0..2 {
            let horizon = storage.proc_array.horizon();
            vacuum(&storage, rel, &[], horizon, &|| false).unwrap();
            assert_eq!(check(&storage, rel), Vec::<String>::new());
            let page = storage.pin(PageId { rel, block: 0 }).unwrap().into_shared();
            assert_eq!(slot_count(page.header()), 6);
            for slot in [0, 7] {
                assert_eq!(line(page.hinted().front(), slot), Line::Unused);
            }
        }
        storage.stop_threads();
    }

    #[test]
    fn entries_lead_to_roots_only() {
        let (_dir, storage) = open();
        let rel = page_of_rows(&storage);
        damage(&storage, rel, None, line_offset(3), &Line::Unused.encode());
        damage(&storage, rel, None, line_offset(4), &Line::Dead.encode());
        let problem = |block, slot| {
            let problem = Heap::new(rel.0).entry_problem(&storage, Tid { block, slot });
            problem.unwrap().unwrap_or("none")
        };
        for (block, slot, expected) in [
            (0, 1, "none"),
            (0, 2, "none"),
            (0, 4, "none"),
            (0, 3, "the line pointer is unused"),
            (0, 5, "a version is there that no index may lead to"),
            (0, 7, "the page has no such line pointer"),
            (0, 0, "the page has no such line pointer"),
            (1, 1, "the table has no such page"),
        ] {
            assert_eq!(problem(block, slot), expected, "({block}, {slot})");
        }
        storage.stop_threads();
    }
}
