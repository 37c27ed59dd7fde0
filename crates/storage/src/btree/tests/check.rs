//! The check finds each broken rule of a tree, and nothing in a tree that keeps all rules.

use std::sync::Arc;

use clearway_txn::{Snapshot, Xid};

use super::{context, key, open, tid, tree};
use crate::btree::BTree;
use crate::btree::check::TreeShape;
use crate::btree::descend::META_ROOT;
use crate::btree::node::{self, Entry, Node};
use crate::buffer::PageLatchVariant;
use crate::error::StorageError;
use crate::error::findings::Findings;
use crate::page::{PAGE_HEADER, PageId, RelId};
use crate::storage::Storage;

/// A node taken apart.
#[derive(Debug, Clone)]
struct Parts {
    level: u16,
    right: Option<u32>,
    high: Option<Entry>,
    entries: Vec<Entry>,
}

fn parts(storage: &Storage, rel: RelId, block: u32) -> Parts {
    let page = storage.pin(PageId { rel, block }).unwrap().into_shared();
    let node = Node(page.bytes());
    Parts {
        level: node.level(),
        right: node.right(),
        high: node.high().map(|high| Entry {
            key: high.key.into(),
            tid: high.tid,
            child: 0,
        }),
        entries: node.entries(),
    }
}

fn put(storage: &Storage, rel: RelId, block: u32, parts: &Parts) {
    let mut page = storage.pin(PageId { rel, block }).unwrap().into_exclusive();
    let mut change = storage.begin_change(Xid::INVALID).unwrap();
    node::fill(
        &mut change,
        &mut page,
        parts.level,
        parts.right,
        parts.high.as_ref(),
        &parts.entries,
    );
    change.finish().unwrap();
}

fn write(storage: &Storage, rel: RelId, block: u32, offset: usize, bytes: &[u8]) {
    let mut page = storage.pin(PageId { rel, block }).unwrap().into_exclusive();
    let mut change = storage.begin_change(Xid::INVALID).unwrap();
    change.write(&mut page, offset, bytes);
    change.finish().unwrap();
}

fn check(storage: &Storage, rel: RelId) -> (TreeShape, Findings) {
    let mut findings = storage.findings(rel);
    let blocks = storage.block_count(rel).unwrap();
    let shape = BTree::new(rel.0)
        .check_structure::<StorageError>(storage, blocks, &mut findings, &mut |_| Ok(()))
        .unwrap();
    (shape, findings)
}

/// A tree of three levels: its root, an inner page in the middle, and a leaf in the middle of that one's.
struct Places {
    root: u32,
    inner: u32,
    leaf: u32,
}

fn three_levels(storage: &Arc<Storage>) -> (RelId, Places) {
    let rel = storage.create_rel().unwrap();
    BTree::create(storage, rel).unwrap();
    let keys: Vec<_> = (0..16_000).map(key).collect();
    let entries = keys.iter().zip(0..).map(|(key, number)| (&key[..], tid(number)));
    BTree::bulk_load(storage, rel, entries).unwrap();
    let root = BTree::new(rel.0).root(storage).unwrap();
    let inner = parts(storage, rel, root).entries[1].child;
    let leaf = parts(storage, rel, inner).entries[3].child;
    assert_eq!(parts(storage, rel, root).level, 2, "the test wants three levels");
    (rel, Places { root, inner, leaf })
}

type Damage = fn(&Storage, RelId, &Places);

/// For each damage: its name, what it does to the tree, and the finding of the check.
const DAMAGES: [(&str, Damage, &str); 14] = [
    (
        "two entries of a leaf in the wrong order",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.entries.swap(4, 5);
            put(storage, rel, at.leaf, &leaf);
        },
        "entry 5 is not above the one before it",
    ),
    (
        "an entry of a leaf twice",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.entries[5] = leaf.entries[4].clone();
            put(storage, rel, at.leaf, &leaf);
        },
        "entry 5 is not above the one before it",
    ),
    (
        "an entry below the page's lower bound",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.entries[0].key = key(1).into();
            put(storage, rel, at.leaf, &leaf);
        },
        "entry 0 is below the page's lower bound",
    ),
    (
        "an entry above the page's high key",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.entries.last_mut().unwrap().key = key(15_999).into();
            put(storage, rel, at.leaf, &leaf);
        },
        "is not below the page's high key",
    ),
    (
        "a page on another level",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.level = 1;
            put(storage, rel, at.leaf, &leaf);
        },
        "the page says that it is on level 1, but it is on level 0",
    ),
    (
        "a right link that leaves pages out",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.right = parts(storage, rel, leaf.right.unwrap()).right;
            put(storage, rel, at.leaf, &leaf);
        },
        "has another key than the page's lower bound",
    ),
    (
        "a right link that leads back",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.right = Some(at.leaf);
            put(storage, rel, at.leaf, &leaf);
        },
        "two links of the tree lead to this page",
    ),
    (
        "a level that ends early",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            (leaf.right, leaf.high) = (None, None);
            put(storage, rel, at.leaf, &leaf);
        },
        "which is not in its place in the level below",
    ),
    (
        "a right link past the end of the file",
        |storage, rel, at| {
            let mut leaf = parts(storage, rel, at.leaf);
            leaf.right = Some(1_000_000);
            put(storage, rel, at.leaf, &leaf);
        },
        "which the file does not have",
    ),
    (
        "an entry of an inner page that leads elsewhere",
        |storage, rel, at| {
            let mut inner = parts(storage, rel, at.inner);
            inner.entries[5].child = inner.entries[8].child;
            put(storage, rel, at.inner, &inner);
        },
        "which is not in its place in the level below",
    ),
    (
        "a separator that is not the page's lower bound",
        |storage, rel, at| {
            let mut root = parts(storage, rel, at.root);
            root.entries[1].key = key(1).into();
            put(storage, rel, at.root, &root);
        },
        "has another key than the page's lower bound",
    ),
    (
        "a first entry of an inner page with a key",
        |storage, rel, at| {
            let mut inner = parts(storage, rel, at.inner);
            inner.entries[0].key = key(1).into();
            put(storage, rel, at.inner, &inner);
        },
        "the first entry of an inner page has a key",
    ),
    (
        "an entry where no entry can be",
        |storage, rel, at| write(storage, rel, at.leaf, PAGE_HEADER + 6, &[0, 0]),
        "slot 3 leads to offset 0, where no entry can be",
    ),
    (
        "a root that is not the top",
        |storage, rel, at| write(storage, rel, 0, META_ROOT, &at.inner.to_le_bytes()),
        "no link of the tree leads to this page",
    ),
];

#[test]
fn each_broken_rule_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), PageLatchVariant::default());
    for (what, damage, problem) in DAMAGES {
        let (rel, places) = three_levels(&storage);
        let (shape, findings) = check(&storage, rel);
        assert_eq!(findings.list(), [], "{what}");
        assert_eq!((shape.levels, shape.unnamed, shape.new), (3, 0, 0), "{what}");
        damage(&storage, rel, &places);
        let (_, findings) = check(&storage, rel);
        let said = findings
            .list()
            .iter()
            .any(|finding| finding.problem.contains(problem));
        assert!(said, "{what}: {:?}", findings.list());
    }
    storage.stop_threads();
}

#[test]
fn an_inner_page_without_entries_is_one_finding() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), PageLatchVariant::default());
    let (rel, places) = three_levels(&storage);
    let mut inner = parts(&storage, rel, places.inner);
    inner.entries.clear();
    put(&storage, rel, places.inner, &inner);
    let (_, findings) = check(&storage, rel);
    let problems: Vec<_> = findings
        .list()
        .iter()
        .map(|finding| &finding.problem[..])
        .collect();
    assert_eq!(problems, ["an inner page without entries"]);
    storage.stop_threads();
}

/// The check accepts what an interrupted split leaves, and a page that was added and never used.
#[test]
fn what_errors_leave_behind_is_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), PageLatchVariant::default());
    let (tree, rel) = tree(&storage);
    let snapshot = Snapshot::default();
    let ctx = context(&storage, &snapshot);
    for number in 0..2_000 {
        tree.insert(&ctx, &key(number * 2), tid(number * 2), None)
            .unwrap();
    }
    storage.extend(rel).unwrap();
    let root = parts(&storage, rel, tree.root(&storage).unwrap());
    let block = root.entries[2].child;
    let middle = parts(&storage, rel, block).entries[9].clone();
    let entry = Entry {
        tid: tid(1_000_000),
        ..middle
    };
    let page = tree.update(&storage, block).unwrap();
    tree.split(&storage, page, entry).unwrap();
    let (shape, findings) = check(&storage, rel);
    assert_eq!(findings.list(), []);
    assert_eq!((shape.unnamed, shape.new), (1, 1));
    storage.stop_threads();
}
