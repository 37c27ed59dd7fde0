//! Records of a program's own kinds: a structure of its own is as durable as pages, on a primary and on its standby; and a log
//! with records that nothing replays is refused (O1 to O6 of `wal::own_records`).
//!
//! Mutations seen caught: `crates/storage/mutations/own_records.toml`.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/copied_log.rs"]
mod copied_log;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/directory_content.rs"]
mod directory_content;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use clearway_machine::Switch;
use clearway_storage::standby::ReplayVariant;
use clearway_storage::wal::Wal;
use clearway_storage::wal::own_records::{OwnError, OwnRecord, OwnRecords};
use clearway_storage::wal::record::{self, RecordKind};
use clearway_storage::{
    Lsn, PageId, RecoveryPoint, RecoveryTarget, Result, StandbyOptions, Storage, StorageError, StorageOptions,
};
use clearway_txn::Xid;
use copied_log::copy_log;
use crash::crash;
use directory_content::content;
use sha2::{Digest, Sha256};
use standby_copy::{NUMBER, Observer, Sender, copy_database, numbered_pages};

const WORD_ADDED: RecordKind = RecordKind::own(3);

/// Words in a file, one a line behind the position that it is of.
#[derive(Debug)]
struct Words {
    file: PathBuf,
    known: Mutex<Known>,
    /// Looked at by `redo` on a standby: a page that has, before a word is replayed, the number of the words.
    numbered: OnceLock<(Weak<Storage>, PageId)>,
    fails: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    /// The end of the last word's record.
    end: u64,
    words: Vec<String>,
}

impl Words {
    fn open(file: &Path) -> Arc<Words> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut lines = text.lines();
        let end = lines.next().map_or(0, |end| end.parse().unwrap());
        let words = lines.map(str::to_owned).collect();
        Arc::new(Words {
            file: file.to_owned(),
            known: Mutex::new(Known { end, words }),
            numbered: OnceLock::new(),
            fails: AtomicBool::new(false),
        })
    }

    fn add(&self, storage: &Storage, xid: Xid, word: &str) -> Result<Lsn> {
        let mut known = self.known.lock().unwrap();
        let end = storage.log_own(WORD_ADDED, xid, word.as_bytes())?;
        known.words.push(word.to_owned());
        known.end = end.0;
        Ok(end)
    }

    fn all(&self) -> Vec<String> {
        self.known.lock().unwrap().words.clone()
    }

    fn fail_if_asked(&self) -> std::result::Result<(), OwnError> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err("the dog has eaten it".into()),
            false => Ok(()),
        }
    }
}

impl OwnRecords for Words {
    fn redo(&self, record: &OwnRecord<'_>) -> std::result::Result<(), OwnError> {
        self.fail_if_asked()?;
        assert_eq!(record.kind, WORD_ADDED);
        let mut known = self.known.lock().unwrap();
        if record.end.0 > known.end {
            known.words.push(String::from_utf8(record.payload.to_vec())?);
            known.end = record.end.0;
            if let Some((storage, page)) = self.numbered.get() {
                let storage = storage.upgrade().ok_or("the standby is gone")?;
                let pinned = storage.pin(*page)?;
                let number = pinned.shared().bytes()[NUMBER];
                assert_eq!(
                    usize::from(number),
                    known.words.len(),
                    "O5: the page was not replayed"
                );
            }
        }
        Ok(())
    }

    fn make_durable(&self, _redo: Lsn, log: &Wal) -> std::result::Result<(), OwnError> {
        self.fail_if_asked()?;
        let known = self.known.lock().unwrap();
        log.flush(Lsn(known.end));
        Ok(fs::write(
            &self.file,
            format!("{}\n{}", known.end, known.words.join("\n")),
        )?)
    }
}

fn options(words: &Arc<Words>) -> StorageOptions {
    StorageOptions {
        own_records: Some(words.clone()),
        ..chosen::small_database(16)
    }
}

/// A database and its words, of which the file is in a directory beside.
fn open(dir: &Path) -> Result<(Arc<Storage>, Arc<Words>)> {
    let words = Words::open(&dir.join("words"));
    let (storage, _) = Storage::open(&dir.join("database"), options(&words))?;
    Ok((storage, words))
}

#[test]
fn words_survive_crashes() {
    let dir = tempfile::tempdir().unwrap();
    let mut added: Vec<String> = Vec::new();
    for round in 0..6 {
        let (storage, words) = open(dir.path()).unwrap();
        assert_eq!(words.all(), added, "round {round}");
        let alice = storage.proc_array.attach().unwrap();
        for number in 0..5 {
            let word = format!("word {round} {number}");
            let xid = storage.assign_xid(alice).unwrap();
            words.add(&storage, xid, &word).unwrap();
            storage.commit(alice, xid, true).unwrap();
            added.push(word);
            // What its file has is not in the log from the redo position on, and what comes after is there alone.
            if round % 2 == 0 && number == 2 {
                storage.checkpoint().unwrap();
            }
        }
        if round % 3 == 2 {
            storage.shutdown().unwrap();
        }
        crash(storage);
    }
}

/// Workers add words while checkpoints are made: a record before the redo position may be of a word that is still to be
/// entered (O2).
#[test]
fn no_word_is_lost_between_a_checkpoint_and_the_log() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..8 {
        let (storage, words) = open(dir.path()).unwrap();
        let before = words.all().len();
        let together = std::sync::Barrier::new(3);
        thread::scope(|scope| {
            for worker in 0..2 {
                let (storage, words, together) = (&storage, &words, &together);
                scope.spawn(move || {
                    together.wait();
                    let mut end = Lsn(0);
                    for number in 0..60 {
                        let word = format!("{round} {worker} {number}");
                        end = words.add(storage, Xid::INVALID, &word).unwrap();
                    }
                    storage.wal.flush(end);
                });
            }
            together.wait();
            for _ in 0..3 {
                storage.checkpoint().unwrap();
            }
        });
        let added = words.all();
        assert_eq!(added.len(), before + 120);
        crash(storage);
        let (storage, words) = open(dir.path()).unwrap();
        assert_eq!(words.all(), added);
        crash(storage);
    }
}

/// Each page that the log holds stays in memory, and is in no file: the pool is larger than in [`options`].
fn open_with_room(dir: &Path) -> (Arc<Storage>, Arc<Words>) {
    let words = Words::open(&dir.join("words"));
    let options = StorageOptions {
        buffer_bytes: 8 << 20,
        ..options(&words)
    };
    let (storage, _) = Storage::open(&dir.join("database"), options).unwrap();
    (storage, words)
}

/// More pages than a small database has frames, so that its replay would write some of them to the file before it comes
/// to the record behind them.
const PAGES: u32 = 400;

/// Opening `dir` without the program is refused for its record, and no byte of a file changes.
#[track_caller]
fn assert_refused<T>(dir: &Path, open: impl Fn() -> Result<T>) {
    let before = content(dir);
    for attempt in 0..2 {
        let Err(error) = open() else {
            panic!("{}: it was opened", dir.display());
        };
        assert!(matches!(error, StorageError::UnknownRecord { .. }), "{error}");
        assert_eq!(error.sqlstate(), "55000");
        assert!(error.to_string().contains("is of kind Own(3)"), "{error}");
        let after = content(dir);
        let names = before.keys().chain(after.keys());
        let changed: Vec<_> = names
            .filter(|name| before.get(*name) != after.get(*name))
            .collect();
        assert!(changed.is_empty(), "attempt {attempt} has changed {changed:?}");
    }
}

#[test]
fn a_log_that_nothing_replays_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, words) = open_with_room(dir.path());
    numbered_pages(&storage, PAGES);
    let end = words.add(&storage, Xid::INVALID, "heron").unwrap();
    storage.wal.flush(end);
    crash(storage);
    let database = dir.path().join("database");
    assert_refused(&database, || Storage::open(&database, chosen::small_database(16)));
    let refused = |options| Storage::open(&database, options).unwrap_err();
    // The program's error is what the opening says.
    words.fails.store(true, Ordering::Relaxed);
    let error = refused(options(&words));
    assert!(matches!(error, StorageError::OwnRedo { .. }), "{error}");
    assert!(
        error.to_string().contains("Own(3)") && error.to_string().contains("dog"),
        "{error}"
    );
    let (storage, words) = open(dir.path()).unwrap();
    assert_eq!(words.all(), ["heron"]);
    // A kind of a version that is to come is none of the program's.
    let later = RecordKind::from_number(11).unwrap();
    storage
        .wal
        .flush(storage.wal.insert_any(later, Xid::INVALID, b"?"));
    crash(storage);
    let error = refused(options(&words));
    assert!(matches!(error, StorageError::UnknownRecord { .. }), "{error}");
    assert!(error.to_string().contains("is of kind Unknown(11)"), "{error}");
}

/// A list of a copy's files that names none of them, as the copy's first start wants to find it.
fn empty_list() -> String {
    let listed = "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [\n],\n";
    let sum = Sha256::digest(listed.as_bytes());
    let digits: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{listed}\"Manifest-Checksum\": \"{digits}\"}}\n")
}

/// A copy of a program's database that another program opens as a standby, or as one to be recovered, is refused and stays
/// what it was: the file that asks for a standby and the list of its files are there, and its own program opens it.
#[test]
fn a_copy_that_is_refused_has_got_no_role() {
    let dir = tempfile::tempdir().unwrap();
    let (primary, words) = open(dir.path()).unwrap();
    let copy_dir = dir.path().join("copy");
    copy_database(&primary, &copy_dir);
    numbered_pages(&primary, PAGES);
    let end = words.add(&primary, Xid::INVALID, "heron").unwrap();
    primary.wal.flush(end);
    crash(primary);
    // The log behind the backup's end, as an archive would have it.
    copy_log(&dir.path().join("database/pg_wal"), &copy_dir.join("pg_wal"));
    let (signal, list) = (copy_dir.join("standby.signal"), copy_dir.join("backup_manifest"));
    fs::write(&signal, "").unwrap();
    fs::write(&list, empty_list()).unwrap();

    let without = || chosen::small_database(16);
    assert_refused(&copy_dir, || {
        Storage::open_standby(&copy_dir, without(), chosen::standby())
    });
    let target = RecoveryTarget {
        archive: None,
        point: RecoveryPoint::End,
    };
    assert_refused(&copy_dir, || Storage::recover_to(&copy_dir, without(), &target));

    fs::remove_file(&signal).unwrap();
    let copied = Words::open(&dir.path().join("words of the copy"));
    let (copy, _) = Storage::open(&copy_dir, options(&copied)).unwrap();
    assert_eq!(copied.all(), ["heron"]);
    assert!(!list.exists(), "it was opened, and its files have changed");
    crash(copy);
}

/// A checkpoint whose part of the program fails is none: recovery begins where it would have begun before.
#[test]
fn a_checkpoint_without_the_programs_part_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, words) = open(dir.path()).unwrap();
    let end = words.add(&storage, Xid::INVALID, "heron").unwrap();
    storage.wal.flush(end);
    words.fails.store(true, Ordering::Relaxed);
    let error = storage.checkpoint().unwrap_err();
    assert!(matches!(error, StorageError::OwnCheckpoint { .. }), "{error}");
    crash(storage);
    let (storage, words) = open(dir.path()).unwrap();
    assert_eq!(words.all(), ["heron"]);
    crash(storage);
}

#[test]
fn what_could_not_be_replayed_is_not_logged() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, words) = open(dir.path()).unwrap();
    let logged = |kind, payload: &[u8]| storage.log_own(kind, Xid::INVALID, payload).unwrap_err();
    assert!(matches!(
        logged(RecordKind::CHANGE, b""),
        StorageError::NotLogged { .. }
    ));
    let long = vec![0; storage.wal.record_max()];
    assert!(matches!(logged(WORD_ADDED, &long), StorageError::TooLarge { .. }));
    let longest = "a".repeat(storage.wal.record_max() - 32);
    words.add(&storage, Xid::INVALID, &longest).unwrap();
    storage.wal.flush(storage.wal.reserved());
    crash(storage);
    let (storage, words) = open(dir.path()).unwrap();
    assert_eq!(words.all(), [longest]);
    crash(storage);
    let other = dir.path().join("other");
    let (storage, _) = Storage::open(&other, chosen::small_database(16)).unwrap();
    let error = storage.log_own(WORD_ADDED, Xid::INVALID, b"heron").unwrap_err();
    assert!(matches!(error, StorageError::NotLogged { .. }), "{error}");
    crash(storage);
}

/// Before each word a page gets the number of words, by a record that the other workers of a parallel replay apply.
#[test]
fn a_standby_replays_words_after_what_is_before_them() {
    for &replay in ReplayVariant::ALL {
        let dir = tempfile::tempdir().unwrap();
        let (primary, words) = open(dir.path()).unwrap();
        let rel = numbered_pages(&primary, 1);
        let copy_dir = dir.path().join("standby");
        copy_database(&primary, &copy_dir);
        let copied = Words::open(&dir.path().join("words of the standby"));
        let standby = StandbyOptions {
            replay,
            ..chosen::standby()
        };
        let (copy, _) = Storage::open_standby(&copy_dir, options(&copied), standby).unwrap();
        let page = PageId { rel, block: 0 };
        copied.numbered.set((Arc::downgrade(&copy), page)).unwrap();
        copy.start_replay(Arc::new(Observer::default())).unwrap();
        let error = copy.log_own(WORD_ADDED, Xid::INVALID, b"heron").unwrap_err();
        assert!(matches!(error, StorageError::NotLogged { .. }), "{error}");
        let mut sender = Sender::new(&primary, &copy);
        for number in 1..=100_u8 {
            number_page(&primary, page, number);
            words
                .add(&primary, Xid::INVALID, &format!("word {number}"))
                .unwrap();
        }
        sender.catch_up();
        assert_eq!(copied.all(), words.all());
        // A restartpoint has them written.
        primary.checkpoint().unwrap();
        sender.catch_up();
        copy.checkpoint().unwrap();
        assert_eq!(Words::open(&copied.file).all(), words.all());
        crash(copy);
        crash(primary);
    }
}

fn number_page(storage: &Storage, page: PageId, number: u8) {
    let mut change = storage.begin_change(Xid::INVALID).unwrap();
    let mut page = storage.pin(page).unwrap().into_exclusive();
    change.write(&mut page, NUMBER, &[number]);
    change.finish().unwrap();
}

/// A standby without the program replays what is before its record, and says why it stops there.
#[test]
fn a_standby_that_cannot_replay_a_record_stops_before_it() {
    for &replay in ReplayVariant::ALL {
        let dir = tempfile::tempdir().unwrap();
        let (primary, words) = open(dir.path()).unwrap();
        let rel = numbered_pages(&primary, 1);
        let copy_dir = dir.path().join("standby");
        copy_database(&primary, &copy_dir);
        let standby = StandbyOptions {
            replay,
            ..chosen::standby()
        };
        let (copy, _) = Storage::open_standby(&copy_dir, chosen::small_database(16), standby).unwrap();
        copy.start_replay(Arc::new(Observer::default())).unwrap();
        let mut sender = Sender::new(&primary, &copy);
        let page = PageId { rel, block: 0 };
        number_page(&primary, page, 77);
        let end = words.add(&primary, Xid::INVALID, "heron").unwrap();
        primary.wal.flush(end);
        sender.send(64 << 10);
        let state = copy.standby().unwrap();
        while state.failure().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        let failure = state.failure().unwrap().to_string();
        assert!(failure.contains("is of kind Own(3)"), "{failure}");
        assert_eq!(state.replayed().0, end.0 - record::size("heron".len()) as u64);
        assert_eq!(copy.pin(page).unwrap().shared().bytes()[NUMBER], 77);
        crash(copy);
        crash(primary);
    }
}
