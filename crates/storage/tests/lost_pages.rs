//! Pages that the disk lost, or has put in another's place: each is an error that names file and offset, and
//! never a smaller relation. What a crash may leave at the end of a file is not an error.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/copied_log.rs"]
mod copied_log;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/set_on_drop.rs"]
mod set_on_drop;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::segment_name::{FIRST_TIMELINE, segment_name};
use clearway_storage::{PAGE_SIZE, PageId, PageKind, RelId, Storage, StorageError, StorageOptions};
use clearway_txn::Xid;
use copied_log::copy_log;
use crash::crash;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use set_on_drop::SetOnDrop;

/// The offset of the number that the tests keep on each page.
const NUMBER: usize = 4096;
const PAGE: u64 = PAGE_SIZE as u64;

fn options() -> StorageOptions {
    chosen::small_database(16)
}

fn open(dir: &Path) -> Arc<Storage> {
    Storage::open(dir, options()).unwrap().0
}

fn path(dir: &Path, rel: RelId) -> PathBuf {
    dir.join("base").join(rel.0.to_string())
}

/// Adds a page that holds `number`.
fn append(storage: &Storage, rel: RelId, number: u64) -> u32 {
    let page = storage.extend(rel).unwrap().page_id();
    put(storage, page, number);
    page.block
}

fn put(storage: &Storage, page: PageId, number: u64) {
    let pinned = storage.pin(page).unwrap();
    let mut change = storage.begin_change(Xid::INVALID).unwrap();
    let mut guard = pinned.exclusive();
    if clearway_storage::page::is_new(&*guard.copy()) {
        change.init_page(&mut guard, PageKind(77), 8);
    }
    change.write(&mut guard, NUMBER, &number.to_le_bytes());
    change.finish().unwrap();
}

/// The number on a page; `None` if the page was added and not changed.
fn get(storage: &Storage, rel: RelId, block: u32) -> Result<Option<u64>, StorageError> {
    let pinned = storage.pin(PageId { rel, block })?;
    let page = pinned.shared();
    let number = u64::from_le_bytes(page.bytes()[NUMBER..NUMBER + 8].try_into().unwrap());
    Ok((!clearway_storage::page::is_new(page.bytes())).then_some(number))
}

fn flush(storage: &Storage) {
    storage.wal.flush(storage.wal.reserved());
}

/// Two relations of eight pages, closed in order; page n of the first holds 100 + n, of the second 200 + n.
fn two_relations() -> (tempfile::TempDir, RelId, RelId) {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path());
    let rels = [100, 200].map(|base| {
        let rel = storage.create_rel().unwrap();
        for number in 0..8 {
            append(&storage, rel, base + number);
        }
        rel
    });
    storage.shutdown().unwrap();
    (dir, rels[0], rels[1])
}

fn read_page(file: &Path, block: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE_SIZE];
    File::open(file)
        .unwrap()
        .read_exact_at(&mut page, block * PAGE)
        .unwrap();
    page
}

fn write_page(file: &Path, block: u64, page: &[u8]) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(page, block * PAGE).unwrap();
}

/// Asserts that exactly the pages `lost` of `rel` are errors, that each names file and offset, and that the
/// error of the first says `problem`.
#[track_caller]
fn assert_lost(dir: &Path, rel: RelId, lost: &[u32], problem: &str) {
    let storage = open(dir);
    assert_eq!(storage.block_count(rel).unwrap(), 8, "the length is known");
    for block in 0..8 {
        let found = get(&storage, rel, block);
        if !lost.contains(&block) {
            assert_eq!(found.unwrap(), Some(100 + u64::from(block)));
            continue;
        }
        let error = found.unwrap_err();
        assert_eq!(error.sqlstate(), "XX001");
        let StorageError::CorruptPage {
            file,
            block: named,
            offset,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(
            (file, *named, *offset),
            (&path(dir, rel), block, u64::from(block) * PAGE)
        );
        if Some(&block) == lost.first() {
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
    crash(storage);
}

#[test]
fn a_zeroed_page_is_an_error() {
    let (dir, rel, _) = two_relations();
    write_page(&path(dir.path(), rel), 3, &[0; PAGE_SIZE]);
    assert_lost(dir.path(), rel, &[3], "zeros");
}

#[test]
fn a_file_that_lost_its_end_is_an_error() {
    let (dir, rel, _) = two_relations();
    let file = OpenOptions::new()
        .write(true)
        .open(path(dir.path(), rel))
        .unwrap();
    file.set_len(5 * PAGE + 100).unwrap();
    assert_lost(dir.path(), rel, &[5, 6, 7], "the file ends before it");
    // Growing past the gap does not make pages of it.
    let storage = open(dir.path());
    assert_eq!(append(&storage, rel, 108), 8);
    storage.shutdown().unwrap();
    drop(storage);
    let storage = open(dir.path());
    assert!(get(&storage, rel, 5).is_err() && get(&storage, rel, 7).is_err());
    assert_eq!(get(&storage, rel, 8).unwrap(), Some(108));
}

#[test]
fn a_missing_file_is_an_error() {
    let (dir, rel, other) = two_relations();
    fs::remove_file(path(dir.path(), rel)).unwrap();
    for _ in 0..2 {
        let storage = open(dir.path());
        for error in [
            get(&storage, rel, 0).unwrap_err(),
            storage.block_count(rel).unwrap_err(),
        ] {
            assert!(
                matches!(&error, StorageError::MissingFile { file, blocks: 8, .. } if *file == path(dir.path(), rel)),
                "{error}"
            );
            assert_eq!(error.sqlstate(), "XX001");
        }
        assert_eq!(get(&storage, other, 7).unwrap(), Some(207));
        crash(storage);
    }
}

/// Also when the log speaks of the relation: replay does not make the file again with a part of its pages.
#[test]
fn a_file_lost_before_a_replay_is_an_error() {
    let (dir, rel, _) = two_relations();
    let storage = open(dir.path());
    put(&storage, PageId { rel, block: 2 }, 7);
    append(&storage, rel, 108);
    flush(&storage);
    crash(storage);
    fs::remove_file(path(dir.path(), rel)).unwrap();
    let storage = open(dir.path());
    let error = get(&storage, rel, 2).unwrap_err();
    assert!(matches!(error, StorageError::MissingFile { .. }), "{error}");
}

#[test]
fn the_files_of_the_system_are_not_made_again() {
    for rel in [RelId::COMMIT_LOG, RelId::CATALOG] {
        let (dir, ..) = two_relations();
        let file = path(dir.path(), rel);
        fs::remove_file(&file).unwrap();
        for _ in 0..2 {
            let error = Storage::open(dir.path(), options()).unwrap_err();
            assert!(
                matches!(&error, StorageError::CorruptFile { file: missing, .. } if *missing == file),
                "{error}"
            );
            assert!(!file.exists());
        }
    }
}

#[test]
fn a_page_copied_over_another_is_an_error() {
    let (dir, rel, _) = two_relations();
    let file = path(dir.path(), rel);
    write_page(&file, 6, &read_page(&file, 2));
    let problem = format!("the page is that of block 2 of relation {}", rel.0);
    assert_lost(dir.path(), rel, &[6], &problem);
}

#[test]
fn a_page_of_another_relation_is_an_error() {
    let (dir, rel, other) = two_relations();
    let foreign = read_page(&path(dir.path(), other), 4);
    write_page(&path(dir.path(), rel), 4, &foreign);
    let problem = format!("the page is that of block 4 of relation {}", other.0);
    assert_lost(dir.path(), rel, &[4], &problem);
}

#[test]
fn swapped_pages_are_errors() {
    let (dir, rel, _) = two_relations();
    let file = path(dir.path(), rel);
    let (first, second) = (read_page(&file, 1), read_page(&file, 7));
    write_page(&file, 1, &second);
    write_page(&file, 7, &first);
    let problem = format!("the page is that of block 7 of relation {}", rel.0);
    assert_lost(dir.path(), rel, &[1, 7], &problem);
}

/// A page below the length is in the log as a whole before it changes, so what the disk lost comes back with
/// the replay.
#[test]
fn a_lost_page_that_the_log_has_is_healed() {
    let (dir, rel, _) = two_relations();
    let storage = open(dir.path());
    put(&storage, PageId { rel, block: 3 }, 5);
    flush(&storage);
    crash(storage);
    write_page(&path(dir.path(), rel), 3, &[0; PAGE_SIZE]);
    let storage = open(dir.path());
    assert_eq!(get(&storage, rel, 3).unwrap(), Some(5));
}

/// Pages that were added and not changed: after a crash the relation is as long as the log says, and those
/// that lie between are readable and new.
#[test]
fn pages_added_before_a_crash_are_new_or_not_there() {
    let (dir, rel, _) = two_relations();
    let storage = open(dir.path());
    for block in 8..12 {
        assert_eq!(storage.extend(rel).unwrap().page_id(), PageId { rel, block });
    }
    flush(&storage);
    crash(storage);
    let storage = open(dir.path());
    assert_eq!(
        storage.block_count(rel).unwrap(),
        8,
        "nothing speaks of the pages"
    );
    for _ in 8..12 {
        storage.extend(rel).unwrap();
    }
    put(&storage, PageId { rel, block: 10 }, 110);
    flush(&storage);
    crash(storage);
    let expected = |block: u32| match block {
        8 | 9 => None,
        block => Some(100 + u64::from(block)),
    };
    for round in 0..3 {
        let storage = open(dir.path());
        assert_eq!(storage.block_count(rel).unwrap(), 11, "round {round}");
        for block in 0..11 {
            assert_eq!(
                get(&storage, rel, block).unwrap(),
                expected(block),
                "block {block}"
            );
        }
        crash(storage);
    }
}

/// The space past the pages in use is allocated already and is used next, whatever a crash left there.
#[test]
fn pages_allocated_ahead_are_used_after_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path());
    let rel = storage.create_rel().unwrap();
    for number in 0..400 {
        append(&storage, rel, number);
    }
    flush(&storage);
    crash(storage);
    let size = || fs::metadata(path(dir.path(), rel)).unwrap().len() / PAGE;
    for number in 400..416 {
        let storage = open(dir.path());
        assert_eq!(append(&storage, rel, number), number as u32);
        if number % 2 == 0 {
            flush(&storage);
            crash(storage);
        } else {
            storage.shutdown().unwrap();
        }
        assert!(size() <= 416 + 416 / 8, "{} pages for {}", size(), number + 1);
    }
    let storage = open(dir.path());
    assert_eq!(storage.block_count(rel).unwrap(), 416);
}

#[test]
fn a_relation_dropped_after_the_checkpoint_is_passed_over() {
    let (dir, rel, other) = two_relations();
    let storage = open(dir.path());
    put(&storage, PageId { rel, block: 2 }, 7);
    let late = storage.create_rel().unwrap();
    append(&storage, late, 1);
    put(&storage, PageId { rel: other, block: 2 }, 8);
    flush(&storage);
    storage.drop_rel(rel).unwrap();
    storage.drop_rel(late).unwrap();
    crash(storage);
    let storage = open(dir.path());
    assert!(!storage.list_rels().unwrap().contains(&rel));
    assert_eq!(get(&storage, other, 2).unwrap(), Some(8));
}

/// A checkpoint that forgot the lengths would make every relation look empty.
#[test]
fn a_start_without_lengths_is_refused() {
    let (dir, ..) = two_relations();
    let mut log = fs::read(dir.path().join("pg_wal").join(segment_name(FIRST_TIMELINE, 1))).unwrap();
    // The last record but one: the lengths of four relations. Its kind is 16 bytes behind its start.
    let at = (0..log.len() - 24)
        .step_by(8)
        .rfind(|&at| {
            log[at + 8..at + 12] == ((SEGMENT_SIZE + at as u64) as u32 / 8).to_le_bytes()
                && log[at + 16..at + 18] == [7, 0]
        })
        .unwrap();
    log[at + 40] ^= 1;
    fs::write(
        dir.path().join("pg_wal").join(segment_name(FIRST_TIMELINE, 1)),
        log,
    )
    .unwrap();
    let error = Storage::open(dir.path(), options()).unwrap_err();
    assert!(matches!(error, StorageError::CorruptFile { .. }), "{error}");
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // A future segment of the log may be renamed while it is copied.
        let _ = fs::copy(entry.path(), to.join(entry.file_name()));
    }
}

/// Sessions add pages while checkpoints go on. In what a crash would leave at any moment, every page below
/// the length can be read. Half of the pages are not changed, so that the log cannot make up for them, and
/// the pool holds all, so that only checkpoints write them.
///
/// Caught mutations: `BufferPool::extend` that leaves the page clean; a checkpoint that reads the lengths
/// after it has written the pages.
#[test]
fn every_page_below_a_length_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let roomy = StorageOptions {
        buffer_bytes: 64 << 20,
        ..options()
    };
    let storage = Storage::open(dir.path(), roomy).unwrap().0;
    let rels: Vec<RelId> = (0..2).map(|_| storage.create_rel().unwrap()).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for rel in &rels {
            scope.spawn(|| {
                for number in (0..4_000).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    if number % 2 == 0 {
                        storage.extend(*rel).unwrap();
                    } else {
                        append(&storage, *rel, number);
                    }
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
            });
        }
        let _stop = SetOnDrop(&stop);
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(60));
            storage.checkpoint().unwrap();
            let copy = tempfile::tempdir().unwrap();
            fs::copy(dir.path().join("control"), copy.path().join("control")).unwrap();
            copy_files(&dir.path().join("base"), &copy.path().join("base"));
            copy_log(&dir.path().join("pg_wal"), &copy.path().join("pg_wal"));
            let copied = open(copy.path());
            for rel in &rels {
                for block in 0..copied.block_count(*rel).unwrap() {
                    get(&copied, *rel, block).unwrap();
                }
            }
        }
    });
}

/// The lengths that a checkpoint has logged do not count if the process dies before the control file is
/// written.
///
/// Caught mutation: `scan_log` that takes the lengths in the whole log.
#[test]
fn the_lengths_of_an_unfinished_checkpoint_do_not_count() {
    let (dir, rel, _) = two_relations();
    let storage = open(dir.path());
    let control = fs::read(dir.path().join("control")).unwrap();
    for _ in 0..3 {
        storage.extend(rel).unwrap();
    }
    storage.checkpoint().unwrap();
    crash(storage);
    fs::write(dir.path().join("control"), control).unwrap();
    let file = OpenOptions::new()
        .write(true)
        .open(path(dir.path(), rel))
        .unwrap();
    file.set_len(8 * PAGE).unwrap();
    assert_lost(dir.path(), rel, &[], "");
}

#[derive(Debug, Clone)]
enum Step {
    Create,
    Drop(usize),
    Extend(usize),
    Append(usize),
    Put(usize, usize),
    Checkpoint,
    /// Ends without a shutdown; what lies past the pages of the last checkpoint becomes zeros (0), is cut off
    /// (1), becomes garbage (2), or stays.
    Crash(u8),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Create),
        1 => any::<usize>().prop_map(Step::Drop),
        3 => any::<usize>().prop_map(Step::Extend),
        12 => any::<usize>().prop_map(Step::Append),
        12 => any::<(usize, usize)>().prop_map(|(rel, block)| Step::Put(rel, block)),
        3 => Just(Step::Checkpoint),
        3 => (0_u8..4).prop_map(Step::Crash),
        1 => Just(Step::Close),
    ]
}

/// The expected content of the relations' pages, and the number of pages of each at the last checkpoint.
#[derive(Debug, Default)]
struct Model {
    rels: BTreeMap<RelId, Vec<Option<u64>>>,
    checkpointed: BTreeMap<RelId, usize>,
    next: u64,
}

impl Model {
    fn pick(&self, number: usize) -> Option<RelId> {
        self.rels.keys().nth(number % self.rels.len().max(1)).copied()
    }

    fn checkpointed(&mut self) {
        self.checkpointed = self.rels.iter().map(|(rel, pages)| (*rel, pages.len())).collect();
    }

    /// Pages that were added at the end and not changed since the last checkpoint are gone.
    fn crashed(&mut self) {
        for (rel, pages) in &mut self.rels {
            let kept = self.checkpointed.get(rel).copied().unwrap_or(0);
            while pages.len() > kept && pages.last() == Some(&None) {
                pages.pop();
            }
        }
    }

    fn compare(&self, storage: &Storage) {
        for (rel, pages) in &self.rels {
            assert_eq!(
                storage.block_count(*rel).unwrap() as usize,
                pages.len(),
                "{rel:?}"
            );
            for (block, number) in pages.iter().enumerate() {
                assert_eq!(
                    get(storage, *rel, block as u32).unwrap(),
                    *number,
                    "{rel:?}, page {block}"
                );
            }
        }
    }
}

/// Writes the traces that a crash of the machine may leave past the pages that the last checkpoint made durable.
fn spoil(dir: &Path, model: &Model, how: u8) {
    for rel in model.rels.keys() {
        let file = OpenOptions::new().write(true).open(path(dir, *rel)).unwrap();
        let length = file.metadata().unwrap().len();
        let durable = model.checkpointed.get(rel).copied().unwrap_or(0) as u64 * PAGE;
        match how {
            0 => file
                .write_all_at(&vec![0; (length - durable) as usize], durable)
                .unwrap(),
            1 => file.set_len(durable).unwrap(),
            2 => file
                .write_all_at(&vec![0xA5; (length - durable) as usize], durable)
                .unwrap(),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    /// Relations come, grow, change and go between crashes; each page that the log or a checkpoint speaks of is there.
    #[test]
    fn pages_agree_with_a_model_after_crashes(steps in proptest::collection::vec(step(), 20..60)) {
        let dir = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        let mut storage = open(dir.path());
        for step in steps {
            model.next += 1;
            let number = model.next;
            match step {
                Step::Create => {
                    model.rels.insert(storage.create_rel().unwrap(), Vec::new());
                }
                Step::Drop(rel) => if let Some(rel) = model.pick(rel) {
                    flush(&storage);
                    storage.drop_rel(rel).unwrap();
                    model.rels.remove(&rel);
                },
                Step::Extend(rel) => if let Some(rel) = model.pick(rel) {
                    storage.extend(rel).unwrap();
                    model.rels.get_mut(&rel).unwrap().push(None);
                },
                Step::Append(rel) => if let Some(rel) = model.pick(rel) {
                    append(&storage, rel, number);
                    model.rels.get_mut(&rel).unwrap().push(Some(number));
                },
                Step::Put(rel, block) => if let Some(rel) = model.pick(rel) {
                    let pages = model.rels.get_mut(&rel).unwrap();
                    if !pages.is_empty() {
                        let block = block % pages.len();
                        put(&storage, PageId { rel, block: block as u32 }, number);
                        pages[block] = Some(number);
                    }
                },
                Step::Checkpoint => {
                    storage.checkpoint().unwrap();
                    model.checkpointed();
                }
                Step::Crash(how) => {
                    flush(&storage);
                    crash(storage);
                    spoil(dir.path(), &model, how);
                    model.crashed();
                    storage = open(dir.path());
                    model.compare(&storage);
                    model.checkpointed();
                }
                Step::Close => {
                    storage.shutdown().unwrap();
                    drop(storage);
                    storage = open(dir.path());
                    model.compare(&storage);
                    model.checkpointed();
                }
            }
        }
        model.compare(&storage);
    }
}
