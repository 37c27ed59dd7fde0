//! A fault of a relation's file is reported as what it is: it cannot be removed, it cannot be read, it has lost its
//! end.

#[path = "support/chosen.rs"]
mod chosen;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation};
use clearway_storage::{Findings, PAGE_SIZE, PageKind, RelId, Storage, StorageError};
use clearway_txn::Xid;

/// Operations of one kind fail on files of one name.
#[derive(Debug, Default)]
struct Failing(Mutex<Option<(Operation, String)>>);

impl Failing {
    /// A storage on a disk that does not fail yet, and what makes it fail.
    fn open(dir: &Path) -> (Arc<Storage>, Arc<Failing>) {
        let failing = Arc::<Failing>::default();
        let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::<Failing>::clone(&failing));
        let options = chosen::small_database(4);
        (Storage::open_on(Arc::new(disk), dir, options).unwrap().0, failing)
    }

    fn set(&self, failing: Option<(Operation, RelId)>) {
        *self.0.lock().unwrap() = failing.map(|(operation, rel)| (operation, rel.0.to_string()));
    }
}

impl Faults for Failing {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        match &*self.0.lock().unwrap() {
            Some((fails, name)) if *fails == operation && path.file_name().unwrap() == name.as_str() => {
                Err(io::Error::other("the disk is gone"))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn a_file_that_cannot_be_removed_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, failing) = Failing::open(dir.path());
    let rel = storage.create_rel().unwrap();
    failing.set(Some((Operation::Name, rel)));
    let error = storage.drop_rel(rel).unwrap_err();
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    assert!(storage.list_rels().unwrap().contains(&rel));
    failing.set(None);
    for _ in 0..2 {
        storage.drop_rel(rel).unwrap();
        assert!(!storage.list_rels().unwrap().contains(&rel));
    }
    storage.stop_threads();
}

/// The check of a relation's file, which reads past the pool.
fn check_file(storage: &Storage, rel: RelId, blocks: u32) -> Result<Findings, StorageError> {
    let mut findings = storage.findings(rel);
    storage.check_file(rel, blocks, &mut findings, &mut |_| Ok::<_, StorageError>(()))?;
    Ok(findings)
}

/// A disk that fails for a moment has damaged nothing: restoring a backup would be the wrong thing to do.
#[test]
fn a_page_that_cannot_be_read_is_not_one_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, failing) = Failing::open(dir.path());
    let rel = storage.create_rel().unwrap();
    for _ in 0..3 {
        let page = storage.extend(rel).unwrap();
        let mut change = storage.begin_change(Xid::INVALID).unwrap();
        let mut page = page.into_exclusive();
        change.init_page(&mut page, PageKind(77), 8);
        change.finish().unwrap();
    }
    storage.checkpoint().unwrap();
    assert_eq!(check_file(&storage, rel, 3).unwrap().list(), []);
    failing.set(Some((Operation::Read, rel)));
    let error = check_file(&storage, rel, 3).unwrap_err();
    assert!(matches!(error, StorageError::Io { .. }), "{error}");
    failing.set(None);
    let path = dir.path().join("base").join(rel.0.to_string());
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(2 * PAGE_SIZE as u64 + 100).unwrap();
    let findings = check_file(&storage, rel, 3).unwrap();
    let problems: Vec<_> = findings
        .list()
        .iter()
        .map(|found| (found.block, &*found.problem))
        .collect();
    assert_eq!(
        problems,
        [(Some(2), "the file ends before it, but the relation has 3 pages")]
    );
    storage.stop_threads();
}

/// The pages of a dropped relation that are still in memory, changed or not, leave their frames to others and are
/// written nowhere.
#[test]
fn a_dropped_relation_leaves_its_frames() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = Failing::open(dir.path());
    let (dropped, other) = (storage.create_rel().unwrap(), storage.create_rel().unwrap());
    // All frames, 128 of them, and those of the other relation then need all again.
    let fill = |rel: RelId| {
        for _ in 0..150 {
            let pinned = storage.extend(rel).unwrap();
            let mut change = storage.begin_change(Xid::INVALID).unwrap();
            let mut page = pinned.exclusive();
            change.init_page(&mut page, PageKind::SEQUENCE, 0);
            change.finish().unwrap();
        }
    };
    fill(dropped);
    storage.drop_rel(dropped).unwrap();
    fill(other);
    storage.checkpoint().unwrap();
    assert!(!storage.list_rels().unwrap().contains(&dropped));
    storage.stop_threads();
}
