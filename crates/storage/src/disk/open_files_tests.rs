//! Stories of few places and many files, and a stress of all users at once.

use std::collections::HashMap;
use std::thread;

use super::*;
use crate::disk::{Faults, FaultyDisk, NativeDisk, Operation};

/// Counts what is open, and keeps which files have writes that were not synced.
#[derive(Debug, Default)]
struct Watching {
    unsynced: Mutex<HashMap<PathBuf, bool>>,
    opened_unsynced: AtomicBool,
    opens: std::sync::atomic::AtomicUsize,
    without_descriptors: AtomicBool,
}

impl Faults for Watching {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        let mut unsynced = self.unsynced.lock().unwrap();
        match operation {
            Operation::Open => {
                if self.without_descriptors.load(Ordering::Relaxed) {
                    return Err(Errno::MFILE.into());
                }
                self.opens.fetch_add(1, Ordering::Relaxed);
                // It was closed before, so all its writes had to be synced (F2).
                if unsynced.get(path) == Some(&true) {
                    self.opened_unsynced.store(true, Ordering::Relaxed);
                }
            }
            Operation::Write => {
                unsynced.insert(path.to_owned(), true);
            }
            Operation::Sync(_) => {
                unsynced.insert(path.to_owned(), false);
            }
            _ => {}
        }
        Ok(())
    }
}

fn watched(max: usize, fsync: bool) -> (tempfile::TempDir, Arc<Watching>, Arc<OpenFiles>) {
    let directory = tempfile::tempdir().unwrap();
    let watching = Arc::<Watching>::default();
    let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::<Watching>::clone(&watching));
    let files = OpenFiles::new(Arc::new(disk), max, fsync);
    (directory, watching, files)
}

fn make(directory: &tempfile::TempDir, files: &Arc<OpenFiles>, count: usize) -> Vec<VirtualFile> {
    (0..count)
        .map(|number| {
            let path = directory.path().join(number.to_string());
            files.create(path, false).unwrap()
        })
        .collect()
}

fn is_open(file: &VirtualFile) -> bool {
    file.shared.descriptor.read().unwrap().is_some()
}

fn number_in(file: &VirtualFile) -> u64 {
    let mut bytes = [0; 8];
    file.with(|file| file.read_exact_at(&mut bytes, 0)).unwrap();
    u64::from_le_bytes(bytes)
}

/// Twenty files in four places: each keeps its content, and is durable before its place is another's.
#[test]
fn files_beyond_the_limit_are_closed_synced_and_opened_again() {
    let (directory, watching, files) = watched(4, true);
    let made = make(&directory, &files, 20);
    for round in 0..3 {
        for (number, file) in made.iter().enumerate() {
            let content = number as u64 + round;
            file.change(|file| file.write_at(&content.to_le_bytes(), 0))
                .unwrap();
            assert!(files.count() <= 4);
        }
        for (number, file) in made.iter().enumerate() {
            assert_eq!(number_in(file), number as u64 + round);
        }
    }
    assert!(!watching.opened_unsynced.load(Ordering::Relaxed));
    for file in &made {
        file.sync().unwrap();
    }
    assert!(
        watching
            .unsynced
            .lock()
            .unwrap()
            .values()
            .all(|unsynced| !unsynced)
    );
    drop(made);
    assert_eq!(files.count(), 0);
    assert!(files.places().open.is_empty());
}

/// Files that are only read make room first, so that no sync is made.
#[test]
fn a_file_with_nothing_to_sync_is_closed_first() {
    let (directory, watching, files) = watched(4, true);
    let made = make(&directory, &files, 10);
    let written = &made[0];
    written.change(|file| file.write_at(&[1], 0)).unwrap();
    for file in &made[1..] {
        file.with(|file| file.length()).unwrap();
    }
    assert!(is_open(written));
    assert!(watching.unsynced.lock().unwrap()[written.path()]);
}

/// A file that is used again and again keeps its descriptor while others come and go.
#[test]
fn a_file_in_steady_use_stays_open() {
    let (directory, watching, files) = watched(4, true);
    let made = make(&directory, &files, 40);
    let steady = &made[0];
    steady.with(|file| file.length()).unwrap();
    let before = watching.opens.load(Ordering::Relaxed);
    for file in &made[1..] {
        file.with(|file| file.length()).unwrap();
        steady.with(|file| file.length()).unwrap();
    }
    // A clock with one bit may take it once in a while.
    let reopened = watching.opens.load(Ordering::Relaxed) - before - 39;
    assert!(reopened <= 10, "{reopened}");
}

/// Others have used up what the process may open: one file makes room, and one that needs a sync does not.
#[test]
fn a_process_without_descriptors_gives_one_of_its_files() {
    let (directory, watching, files) = watched(100, true);
    let made = make(&directory, &files, 3);
    for file in &made {
        file.change(|file| file.write_at(&[1], 0)).unwrap();
    }
    watching.without_descriptors.store(true, Ordering::Relaxed);
    let path = directory.path().join("new");
    let error = files.create(path.clone(), false).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
    assert!(made.iter().all(is_open), "none could be closed without a sync");
    made[1].sync().unwrap();
    files.create(path.clone(), false).unwrap_err();
    assert!(!is_open(&made[1]) && is_open(&made[0]) && is_open(&made[2]));
    watching.without_descriptors.store(false, Ordering::Relaxed);
    files.create(path, false).unwrap();
    assert_eq!(
        files.count(),
        2,
        "the new file is closed again, and one made room"
    );
}

/// Without `fsync` nothing is synced to close it, and a file whose durability is asked for all the same still is.
#[test]
fn a_mark_outlives_the_descriptor_where_closing_does_not_sync() {
    let (directory, watching, files) = watched(4, false);
    let made = make(&directory, &files, 10);
    for file in &made {
        file.change(|file| file.write_at(&[1], 0)).unwrap();
    }
    assert!(
        watching
            .unsynced
            .lock()
            .unwrap()
            .values()
            .all(|unsynced| *unsynced)
    );
    assert!(!is_open(&made[0]));
    made[0].sync().unwrap();
    assert!(!watching.unsynced.lock().unwrap()[made[0].path()]);
}

/// Workers write, read, sync and drop files at once, with fewer places than workers: a write that was not synced never
/// loses its descriptor, no content is another's, and all places come back.
#[test]
fn many_workers_on_few_places() {
    const WORKERS: u64 = 6;
    const ROUNDS: u64 = 400;
    let (directory, watching, files) = watched(OPEN_FILES_MIN, true);
    let made = Arc::new(make(&directory, &files, 12));
    for (number, file) in made.iter().enumerate() {
        let content = (number as u64) << 32;
        file.change(|file| file.write_at(&content.to_le_bytes(), 0))
            .unwrap();
    }
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (made, files) = (Arc::clone(&made), Arc::clone(&files));
            let own = directory.path().join(format!("of-{worker}"));
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    let at = ((round * 7 + worker * 5) % made.len() as u64) as usize;
                    let content = (at as u64) << 32 | round;
                    match round % 4 {
                        0 => made[at]
                            .change(|file| file.write_at(&content.to_le_bytes(), 0))
                            .unwrap(),
                        1 => assert_eq!(number_in(&made[at]) >> 32, at as u64),
                        2 => made[at].sync().unwrap(),
                        _ => {
                            let file = files.create(own.clone(), false).unwrap();
                            assert_eq!(file.with(|file| file.length()).unwrap(), 0);
                        }
                    }
                    assert!(files.count() <= OPEN_FILES_MIN, "F1");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert!(!watching.opened_unsynced.load(Ordering::Relaxed), "F2");
    drop(made);
    assert_eq!(files.count(), 0);
}
