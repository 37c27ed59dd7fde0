//! Going down without latches, where pages or their latches have versions (`page_read = optimistic`, or
//! `page_latch = hybrid`).
//!
//! Every descent reads inner pages, and an inner page is written only when a page below it splits. With a
//! latch, each descent writes the latch word of the root and of every page on its way, and those lines travel
//! between the CPUs. `hybrid` leaves the pin, which is on the same line. `optimistic` leaves nothing: inner pages
//! are only read. The difference is made by `BufferPool::read`; here both are one.
//!
//! Lock coupling by versions would also look at the parent's version again after taking the child's. That is
//! not needed here, for the same reason that latches are not coupled (see the module's rules): a child's
//! number, once it was in a parent, leads to the page or to the left of it for ever (R2, R3). So a step is
//! good if the page it was read from did not change while it was read.
//!
//! A page that makes no sense sends the descent back to the latched form, which knows how to complain.
//!
//! Origin: optimistic lock coupling, Leis, Haubenschild and Neumann, 2019; on B-link trees before that,
//! Lehman and Yao, 1981, who read pages without locks because a page was copied from the disk in one piece.

use std::cmp::Ordering;

use crate::btree::node::{self, Bound, ENTRY, FLAGS, HAS_HIGH, LEVEL, RIGHT};
use crate::btree::{BTree, TreeStorage};
use crate::buffer::RacyPage;
use crate::error::Result;
use crate::heap::Tid;
use crate::page::{KIND, LOWER, PAGE_HEADER, PAGE_SIZE, PageKind};

/// More steps than any descent takes; a longer one goes in circles.
const STEPS_MAX: usize = 1_000;

/// The next step from a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The page has split: to its right neighbour.
    Right(u32),
    /// To the child, from a page of this level.
    Down { child: u32, from: u16 },
    /// This is the page, or lies left of it.
    Arrived,
}

impl BTree {
    /// The number of the page at `level` that covers `bound`, or of one left of it; `took` is called with each page
    /// on the way and the step from there, and ends the descent where it returns a number. `None`: the descent has to
    /// be done under latches, whatever steps were taken.
    #[inline]
    pub(super) fn descend_optimistically<S: TreeStorage>(
        &self,
        storage: &S,
        bound: Bound<'_>,
        level: u16,
        mut took: impl FnMut(u32, Step) -> Option<u32>,
    ) -> Result<Option<u32>> {
        if !storage.reads_optimistically() {
            return Ok(None);
        }
        // A remembered root may be too far down for an inner level.
        let hint = storage.root_hints().get(self.rel).filter(|_| level == 0);
        let mut block = match hint {
            Some(block) => block,
            None => {
                let root = self.root(storage)?;
                storage.root_hints().set(self.rel, root);
                root
            }
        };
        for number in 0..STEPS_MAX {
            let look = |page: RacyPage<'_>| {
                // A root has no right neighbour.
                if number == 0 && hint.is_some() && page.u32_at(RIGHT)? != 0 {
                    return None;
                }
                step(page, bound, level)
            };
            let Some(step) = storage.read_page(self.page(block), look)? else {
                return Ok(None);
            };
            if let Some(found) = took(block, step) {
                return Ok(Some(found));
            }
            match step {
                Step::Right(next) | Step::Down { child: next, .. } => block = next,
                Step::Arrived => return Ok(Some(block)),
            }
        }
        Ok(None)
    }
}

impl BTree {
    /// The number of the leaf that covers `bound`, or of one left of it; the leaf is not looked at, unless it is the
    /// root. `None`: as [`descend_optimistically`](Self::descend_optimistically).
    #[inline]
    pub(super) fn find_leaf_number<S: TreeStorage>(
        &self,
        storage: &S,
        bound: Bound<'_>,
    ) -> Result<Option<u32>> {
        self.descend_optimistically(storage, bound, 0, |_, step| match step {
            Step::Down { child, from: 1 } => Some(child),
            _ => None,
        })
    }

    /// Appends the tids of all entries with exactly the key of `start`, which precedes them all, from leaves that are
    /// neither pinned nor latched. `false`: nothing was appended, and the lookup has to be done under latches.
    ///
    /// Leaves are looked at one after the other, not coupled. A split in between moves entries to a page that this
    /// lookup does not visit, but only entries of the page that it has looked at before: it goes on to the right
    /// neighbour of that time. Entries that come in between belong to versions that no snapshot of before sees.
    #[inline]
    pub(super) fn lookup_unpinned<S: TreeStorage>(
        &self,
        storage: &S,
        start: Bound<'_>,
        out: &mut Vec<Tid>,
    ) -> Result<bool> {
        let Some(mut block) = self.find_leaf_number(storage, start)? else {
            return Ok(false);
        };
        let begin = out.len();
        for _ in 0..STEPS_MAX {
            let before = out.len();
            let looked = storage.read_page(self.page(block), |page| {
                // A look that was not valid may have left something.
                out.truncate(before);
                tids_on_leaf(page, start, out)
            })?;
            match looked {
                Some(LeafLook::All) => return Ok(true),
                Some(LeafLook::More { right }) => block = right,
                None => break,
            }
        }
        out.truncate(begin);
        Ok(false)
    }
}

/// Result of a look at a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeafLook {
    /// No page to the right has entries of the key.
    All,
    /// The right neighbour may have some.
    More { right: u32 },
}

/// Appends the tids of the entries with the key of `start` on a leaf that this worker has not latched. `None` if its
/// content cannot be a leaf.
#[inline]
fn tids_on_leaf(page: RacyPage<'_>, start: Bound<'_>, out: &mut Vec<Tid>) -> Option<LeafLook> {
    if page.u16_at(KIND)? != PageKind::BTREE_NODE.0 || page.u16_at(LEVEL)? != 0 {
        return None;
    }
    let slots = usize::from(page.u16_at(LOWER)?).checked_sub(PAGE_HEADER)? / 2;
    let first = usize::from(page.u16_at(FLAGS)? & HAS_HIGH != 0);
    let len = slots.checked_sub(first)?;
    let head = node::head_of(start.key);
    let index = node::partition(
        0..len,
        head,
        |index| head_at(page, first + index).unwrap_or(0),
        |index| compare(page, first + index, &start, head).is_some_and(Ordering::is_lt),
    );
    for slot in first + index..slots {
        let at = offset(page, slot)?;
        if compare_key(page, at, start.key, head)?.is_ne() {
            return Some(LeafLook::All);
        }
        out.push(tid_at(page, at)?);
    }
    if first == 0 || compare_key(page, offset(page, 0)?, start.key, head)?.is_gt() {
        return Some(LeafLook::All);
    }
    let right = page.u32_at(RIGHT)?;
    (right != 0).then_some(LeafLook::More { right })
}

/// The next step from a page that this worker has not latched. `None` if its content cannot be a page of a
/// tree, which may be because another worker is changing it.
#[inline]
fn step(page: RacyPage<'_>, bound: Bound<'_>, level: u16) -> Option<Step> {
    if page.u16_at(KIND)? != PageKind::BTREE_NODE.0 {
        return None;
    }
    let lower = usize::from(page.u16_at(LOWER)?);
    let slots = lower.checked_sub(PAGE_HEADER)? / 2;
    let first = usize::from(page.u16_at(FLAGS)? & HAS_HIGH != 0);
    let head = node::head_of(bound.key);
    if first == 1 && compare(page, 0, &bound, head)?.is_le() {
        let right = page.u32_at(RIGHT)?;
        return (right != 0).then_some(Step::Right(right));
    }
    let from = page.u16_at(LEVEL)?;
    match from.cmp(&level) {
        // The tree does not reach up to there.
        Ordering::Less => return None,
        Ordering::Equal => return Some(Step::Arrived),
        Ordering::Greater => {}
    }
    let len = slots.checked_sub(first).filter(|&len| len > 0)?;
    // A value that is not on the page may count as any value: a step from such a page is not valid anyway.
    let index = node::partition(
        1..len,
        head,
        |index| head_at(page, first + index).unwrap_or(0),
        |index| compare(page, first + index, &bound, head).is_some_and(Ordering::is_le),
    ) - 1;
    let at = offset(page, first + index)?;
    page.u32_at(at + 8).map(|child| Step::Down { child, from })
}

#[inline]
fn offset(page: RacyPage<'_>, slot: usize) -> Option<usize> {
    page.u16_at(PAGE_HEADER + slot * 2).map(usize::from)
}

#[inline]
fn head_at(page: RacyPage<'_>, slot: usize) -> Option<u64> {
    head_of_entry(page, offset(page, slot)?).map(|(head, _)| head)
}

/// The head of the key of the entry at `at`, and the key's length.
#[inline]
fn head_of_entry(page: RacyPage<'_>, at: usize) -> Option<(u64, u16)> {
    // The farther one first: a length before it is on the page as well.
    let head = page.u64_be_at(at + ENTRY)?;
    let length = page.u16_at(at)?;
    Some((node::cut(head, length), length))
}

/// The entry in `slot` against `bound`, whose key's head is `head`.
#[inline]
fn compare(page: RacyPage<'_>, slot: usize, bound: &Bound<'_>, head: u64) -> Option<Ordering> {
    match head_at(page, slot)?.cmp(&head) {
        Ordering::Equal => compare_whole(page, offset(page, slot)?, bound, head),
        decided => Some(decided),
    }
}

fn compare_whole(page: RacyPage<'_>, at: usize, bound: &Bound<'_>, head: u64) -> Option<Ordering> {
    let by_key = compare_key(page, at, bound.key, head)?;
    Some(by_key.then(tid_at(page, at)?.cmp(&bound.tid)))
}

/// The key of the entry at `at` against `key`, whose head is `head`.
#[inline]
fn compare_key(page: RacyPage<'_>, at: usize, key: &[u8], head: u64) -> Option<Ordering> {
    let (entry_head, length) = head_of_entry(page, at)?;
    match entry_head.cmp(&head) {
        // Keys that are all head differ in length alone: zeros that one of them ends with.
        Ordering::Equal if usize::from(length) <= size_of_val(&head) && key.len() <= size_of_val(&head) => {
            Some(usize::from(length).cmp(&key.len()))
        }
        Ordering::Equal => compare_long_key(page, at, key),
        decided => Some(decided),
    }
}

/// As [`compare_key`], byte by byte.
#[inline(never)]
fn compare_long_key(page: RacyPage<'_>, at: usize, key: &[u8]) -> Option<Ordering> {
    let length = usize::from(page.u16_at(at)?).min(PAGE_SIZE);
    for (index, &wanted) in key.iter().take(length).enumerate() {
        match page.u8_at(at + ENTRY + index)?.cmp(&wanted) {
            Ordering::Equal => {}
            decided => return Some(decided),
        }
    }
    Some(length.cmp(&key.len()))
}

/// The tid of the entry at `at`.
#[inline]
fn tid_at(page: RacyPage<'_>, at: usize) -> Option<Tid> {
    Some(Tid {
        block: page.u32_at(at + 2)?,
        slot: page.u16_at(at + 6)?,
    })
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::buffer::PageBytes;

    /// Whatever the bytes are, a look at them ends, in a descent and on a leaf.
    #[test]
    fn nonsense_is_no_node() {
        let mut random = StdRng::seed_from_u64(7);
        let mut page = Box::new(PageBytes([0; PAGE_SIZE].into()));
        let mut tids = Vec::new();
        let (mut steps, mut looks) = (0, 0);
        for round in 0..20_000 {
            let bytes = page.0.get_mut();
            for at in (PAGE_HEADER..PAGE_SIZE).step_by(8).take(60).chain([RIGHT]) {
                bytes[at..at + 8].copy_from_slice(&random.random::<u64>().to_le_bytes());
            }
            let mut put = |at: usize, number: u16| bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
            put(KIND, PageKind::BTREE_NODE.0);
            put(LEVEL, round % 3);
            put(LOWER, if round % 5 == 0 { random.random() } else { 64 });
            for slot in 0..20 {
                put(
                    PAGE_HEADER + slot * 2,
                    random.random_range(0..PAGE_SIZE as u16 + 9),
                );
            }
            let key = [random.random::<u8>(), 0, 0, random.random::<u8>()];
            let bound = Bound {
                key: &key[..random.random_range(0..=4)],
                tid: Tid::default(),
            };
            let page = RacyPage::own(&mut page);
            steps += usize::from(step(page, bound, round % 2).is_some());
            looks += usize::from(tids_on_leaf(page, bound, &mut tids).is_some());
            tids.clear();
        }
        assert!(steps > 0 && looks > 0, "{steps} steps, {looks} leaves");
    }
}
