//! The check that a tree keeps the rules of the module.
//!
//! Level by level from the root, the pages are followed by their right links, and beside them the entries of the level
//! above:
//! 1. Each page is a node of the right level, with slots and entries in their areas.
//! 2. Its entries ascend, are at or above its lower bound (the high key of its left neighbour) and below its
//!    high key. It has a high key if and only if it has a right neighbour.
//! 3. The level above names the pages in the same order, each with its lower bound. A page may be missing
//!    there: a split that is not completed (R2). An entry there that leads elsewhere is an error.
//! 4. No page is met twice. A page that is never met is new.
//!
//! Memory: two pages, and a bit for each page of the tree. No other worker changes the tree meanwhile.

use std::cmp::Ordering;

use crate::btree::node::{self, Bound, Node};
use crate::btree::{BTree, TreeStorage};
use crate::error::StorageError;
use crate::error::findings::{Findings, Progress};
use crate::heap::Tid;
use crate::page::{self, PAGE_SIZE, PageKind};

/// Result of the check of a tree.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    /// Levels, the leaves included.
    pub levels: u32,
    /// Pages of the tree.
    pub pages: u32,
    /// Pages that the level above does not name: the right halves of interrupted splits.
    pub unnamed: u32,
    /// Pages that were added and never used.
    pub new: u32,
}

/// A key and a tid that are on no page; none: below everything.
type OwnedBound = Option<(Vec<u8>, Tid)>;

fn own(bound: Bound<'_>) -> (Vec<u8>, Tid) {
    (bound.key.to_vec(), bound.tid)
}

fn compare(bound: Bound<'_>, with: &OwnedBound) -> Ordering {
    match with {
        None => Ordering::Greater,
        Some((key, tid)) => bound.cmp(&Bound { key, tid: *tid }),
    }
}

type Outcome<T, E> = Result<T, E>;

struct Checker<'c, 'p, S, E> {
    tree: BTree,
    storage: &'c S,
    findings: &'c mut Findings,
    progress: Progress<'p, E>,
    /// By page number: whether the check has met the page.
    met: Vec<bool>,
    /// Pages of the file when the check began.
    blocks: u32,
    shape: TreeShape,
}

impl BTree {
    /// Checks the tree, whose file of `blocks` pages has been checked.
    pub fn check_structure<E: From<StorageError>>(
        &self,
        storage: &impl TreeStorage,
        blocks: u32,
        findings: &mut Findings,
        progress: Progress<'_, E>,
    ) -> Outcome<TreeShape, E> {
        let mut checker = Checker {
            tree: *self,
            storage,
            findings,
            progress,
            met: vec![false; blocks as usize],
            blocks,
            shape: TreeShape::default(),
        };
        let root = match self.root(storage) {
            Ok(root) => root,
            Err(error @ (StorageError::Inconsistent { .. } | StorageError::NoSuchPage { .. })) => {
                checker.findings.page(0, error.to_string());
                return Ok(checker.shape);
            }
            Err(error) => return Err(error.into()),
        };
        checker.met[0] = true;
        checker.levels(root)?;
        if checker.findings.is_empty() {
            checker.unmet()?;
        }
        Ok(checker.shape)
    }
}

impl<S: TreeStorage, E: From<StorageError>> Checker<'_, '_, S, E> {
    /// A copy of page `block`, which is a node; `None` if it is not.
    fn node(&mut self, block: u32) -> Outcome<Option<Box<[u8; PAGE_SIZE]>>, E> {
        let page = match self.storage.pin(self.tree.page(block)) {
            Ok(page) => page.into_shared(),
            Err(StorageError::NoSuchPage { .. }) => {
                self.findings
                    .page(block, "a link leads to this page, which the file does not have");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let bytes = page.copy();
        match node::layout_problem(&bytes) {
            None => Ok(Some(bytes)),
            Some(problem) => {
                self.findings.page(block, problem);
                Ok(None)
            }
        }
    }

    /// Follows each level, from the root's to the leaves.
    fn levels(&mut self, root: u32) -> Outcome<(), E> {
        let Some(bytes) = self.node(root)? else {
            return Ok(());
        };
        let mut level = Node(&bytes).level();
        let (mut first, mut above) = (root, None);
        loop {
            self.shape.levels += 1;
            if !self.level(first, level, above)? || level == 0 {
                return Ok(());
            }
            let Some(bytes) = self.node(first)? else {
                return Ok(());
            };
            above = Some(first);
            first = Node(&bytes).child(0);
            level -= 1;
        }
    }

    /// Follows one level from its leftmost page on, beside the level above from its leftmost page on. Returns
    /// whether it has reached the end.
    fn level(&mut self, first: u32, level: u16, above: Option<u32>) -> Outcome<bool, E> {
        let mut named = Named::new(above);
        let (mut block, mut low) = (first, OwnedBound::None);
        loop {
            let Some(bytes) = self.node(block)? else {
                return Ok(false);
            };
            (self.progress)(1)?;
            // A tree may grow while it is looked at.
            if block as usize >= self.met.len() {
                self.met.resize(block as usize + 1, false);
            }
            if std::mem::replace(&mut self.met[block as usize], true) {
                self.findings
                    .page(block, "two links of the tree lead to this page");
                return Ok(false);
            }
            self.shape.pages += 1;
            let node = Node(&bytes);
            if node.level() != level {
                self.findings.page(
                    block,
                    format!(
                        "the page says that it is on level {}, but it is on level {level}",
                        node.level()
                    ),
                );
                return Ok(false);
            }
            self.order(block, node, &low);
            if above.is_some() && !self.is_named(&mut named, block, &low)? {
                self.shape.unnamed += 1;
            }
            match (node.right(), node.high()) {
                (Some(right), Some(high)) => (block, low) = (right, Some(own(high))),
                (None, None) => break,
                _ => {
                    self.findings.page(
                        block,
                        "the page has a right neighbour without a high key, or a high key without one",
                    );
                    return Ok(false);
                }
            }
        }
        while let Some((_, child)) = self.peek(&mut named)? {
            self.elsewhere(&named, child);
            named.taken = true;
        }
        Ok(true)
    }

    /// Step 2.
    fn order(&mut self, block: u32, node: Node<'_>, low: &OwnedBound) {
        let is_inner = node.level() > 0;
        if is_inner && node.len() == 0 {
            self.findings.page(block, "an inner page without entries");
        }
        // The first entry of an inner page stands for everything from the lower bound on.
        let first = usize::from(is_inner);
        if is_inner && node.len() > 0 && !node.bound(0).key.is_empty() {
            self.findings
                .page(block, "the first entry of an inner page has a key");
        }
        for index in first..node.len() {
            let bound = node.bound(index);
            let problem = if index > first && node.bound(index - 1) >= bound {
                "is not above the one before it"
            } else if compare(bound, low) == Ordering::Less {
                "is below the page's lower bound"
            } else if node.high().is_some_and(|high| bound >= high) {
                "is not below the page's high key"
            } else {
                continue;
            };
            self.findings.page(block, format!("entry {index} {problem}"));
        }
    }

    /// Step 3: whether the level above names `block`, whose lower bound is `low`.
    fn is_named(&mut self, named: &mut Named, block: u32, low: &OwnedBound) -> Outcome<bool, E> {
        loop {
            let Some((bound, child)) = self.peek(named)? else {
                return Ok(false);
            };
            if child == block {
                if bound != *low {
                    let above = named.block;
                    self.findings.page(
                        block,
                        format!(
                            "page {above}, which leads here, has another key than the page's lower bound"
                        ),
                    );
                }
                named.taken = true;
                return Ok(true);
            }
            // None is below everything.
            if bound > *low {
                return Ok(false);
            }
            self.elsewhere(named, child);
            named.taken = true;
        }
    }

    fn elsewhere(&mut self, named: &Named, child: u32) {
        self.findings.page(
            named.block,
            format!("an entry leads to page {child}, which is not in its place in the level below"),
        );
    }

    /// The next entry of the level above that was not taken yet: the lower bound it gives, and the page.
    fn peek(&mut self, named: &mut Named) -> Outcome<Option<(OwnedBound, u32)>, E> {
        if std::mem::take(&mut named.taken) {
            named.index += 1;
        }
        loop {
            let Some(bytes) = &named.bytes else {
                let Some(block) = named.next.take() else {
                    return Ok(None);
                };
                let Some(bytes) = self.node(block)? else {
                    return Ok(None);
                };
                named.block = block;
                named.index = 0;
                named.bytes = Some(bytes);
                continue;
            };
            let node = Node(bytes);
            if named.index < node.len() {
                let bound = match named.index {
                    0 => named.low.clone(),
                    index => Some(own(node.bound(index))),
                };
                return Ok(Some((bound, node.child(named.index))));
            }
            named.next = node.right();
            named.low = node.high().map(own);
            named.bytes = None;
        }
    }

    /// Step 4.
    fn unmet(&mut self) -> Outcome<(), E> {
        for block in 0..self.blocks {
            if self.met[block as usize] {
                continue;
            }
            let page = self.storage.pin(self.tree.page(block))?.into_shared();
            match page::kind(page.header()) {
                PageKind::NEW => self.shape.new += 1,
                _ => self
                    .findings
                    .page(block, "no link of the tree leads to this page"),
            }
        }
        Ok(())
    }
}

/// The entries of a level, from its leftmost page on.
struct Named {
    /// The page whose entries come next, if they are not those of `bytes`.
    next: Option<u32>,
    bytes: Option<Box<[u8; PAGE_SIZE]>>,
    /// The page in `bytes`.
    block: u32,
    /// Its lower bound.
    low: OwnedBound,
    index: usize,
    /// The entry at `index` is done with.
    taken: bool,
}

impl Named {
    fn new(first: Option<u32>) -> Self {
        Named {
            next: first,
            bytes: None,
            block: 0,
            low: None,
            index: 0,
            taken: false,
        }
    }
}
