//! Power cuts: what was acknowledged is there after any of them.
//!
//! Sessions change pages in one atomic change or several, add pages, make and drop relations and commit, some
//! of them without waiting for the disk, while checkpoints run and a pool of 64 frames evicts. The disk
//! (`recording_disk`) freezes its state before operations chosen at random; images of each state, with a
//! random part of what was not synced, are opened and compared with the ledger. Each state is also continued
//! as after a kill, with the power cut again inside recovery. The disk checks the log rule at every write of
//! a page.
//!
//! `SEED=7 IMAGES=2000 cargo test --release -p clearway-storage --test power_cuts` is the long form.
//!
//! # Each sync is needed
//! `each_sync_is_needed` runs a story for each purpose of a sync, once as shipped and once on a disk that ignores the
//! syncs for that purpose, and wants an image that fails in the second case only.
//!
//! | sync | image that needs it |
//! | --- | --- |
//! | `LogFlush` | after a commit, unsynced log dropped: the commit is missing |
//! | `LogSegment` | after a segment got its name: it is shorter than 16 MiB, so a later log write may find the disk full |
//! | `LogSegmentName` | after a commit into a new segment: the segment is missing |
//! | `RecycledNames` | after a commit into a recycled segment: the log ends before it |
//! | `LogNamesFound` | the same, with a kill between renaming and syncing |
//! | `LogFound` | power cut during replay after a kill, unsynced log dropped: pages are newer than the log |
//! | `DataFile` | after a checkpoint, unsynced pages dropped |
//! | `DataFileNames` | after a checkpoint, unsynced names dropped: a relation is missing |
//! | `ControlFile` | after a checkpoint that recycles: the old control file, without its log |
//! | `ControlFileFound` | kill before the control file's sync, then a power cut that tears the next copy: only an older copy is left, without its log |
//! | `DataDirectory` | after a kill between making `base` and syncing its name, a commit and a checkpoint: no `base` |
//! | `Slots` | after a slot is made: it is missing |
//! | `TimelineHistory` | after a new timeline has begun: its history file is empty, and the log's segments are not known |
//! | `CopiedFile` | after a copy of another server was received: a file of it is empty |
//! | `CopiedNames` | the same: a file of it is missing |
//! | `ParentDirectory` | after the first commit: no data directory |
//!
//! `LogCleared` is a second defence: without it the old record stays behind the new log's end, and does not continue it,
//! since its link is that of the record which was lost (`wal/link.rs`).
//!
//! `LogSegment` is not needed for what is in the log (the flush syncs the whole file), but for the promise
//! that writing to the log never needs space.
//!
//! # Mutations tried
//! `nothing_acknowledged_is_lost` fails: `PagesOnDisk::write` or the commit log's write without the flush of the log
//! before it (B3's assertion, and its own of the commit log), a checkpoint without `DataFiles::sync_all`.
//! `each_sync_is_needed` fails as shipped when `ensure_directory` does not sync the name of the directory in which it
//! makes one. `statuses_that_a_killed_process_wrote_are_synced` fails under `atomic` if the commit log's file counts as
//! synced when it is opened. Each record claiming that the log is durable up to itself: `log_reader.rs` fails, and
//! `an_old_record_behind_the_end_does_not_come_back` here.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/power_cut_ledger.rs"]
mod ledger;
#[path = "support/log_filler.rs"]
mod log_filler;
#[path = "support/recording_disk/mod.rs"]
mod recording_disk;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clearway_machine::Switch;
use clearway_storage::disk::{Disk, OpenMode, SyncPurpose};
use clearway_storage::received_copy::ReceivedCopy;
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::segment_name::{FIRST_TIMELINE, segment_name};
use clearway_storage::{PAGE_SIZE, RelId, StandbyOptions, Storage, StorageOptions};
use clearway_txn::{CommitLogOptions, CommitLogVariant, Status, Xid};
use crash::crash;
use ledger::{Ledger, Session, Worker, promised_before, verify};
use log_filler::quiet_end;
use recording_disk::{Frozen, Keep, Random, RecordingDisk};

const DIRECTORY: &str = "/disk/made/data";

fn disk() -> RecordingDisk {
    RecordingDisk::with_directory(Path::new("/disk"))
}

/// With so few frames that pages are evicted all the time.
fn open(disk: &RecordingDisk) -> Result<Arc<Storage>, String> {
    open_with(disk, 64)
}

fn open_with(disk: &RecordingDisk, frames: usize) -> Result<Arc<Storage>, String> {
    open_as(disk, frames, chosen::options().commit_log.variant)
}

fn open_as(
    disk: &RecordingDisk,
    frames: usize,
    commit_log: CommitLogVariant,
) -> Result<Arc<Storage>, String> {
    let chosen = chosen::options();
    let options = StorageOptions {
        // So few that files are closed and opened again all the time.
        open_files_max: 4,
        buffer_bytes: frames * PAGE_SIZE,
        sessions_max: 32,
        checkpoint_timeout: Duration::from_secs(3600),
        commit_log: CommitLogOptions {
            variant: commit_log,
            ..chosen.commit_log
        },
        ..chosen
    };
    Storage::open_on(Arc::new(disk.clone()), Path::new(DIRECTORY), options)
        .map(|(storage, _)| storage)
        .map_err(|error| error.to_string())
}

/// Opens an image and compares it with the promises of the ledger.
fn check(image: &RecordingDisk, sessions: &[Session]) -> Result<(), String> {
    for (name, length) in image.files(&Path::new(DIRECTORY).join("pg_wal")) {
        let is_segment = !name.ends_with(".new") && !name.ends_with(".history");
        if is_segment && length != SEGMENT_SIZE {
            return Err(format!("log segment {name} has {length} bytes"));
        }
    }
    let storage = open(image)?;
    let verified = verify(&storage, sessions);
    crash(storage);
    verified?;
    match image.violations().pop() {
        Some(violation) => Err(violation),
        None => Ok(()),
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect(name))
}

type Snapshots = Arc<Mutex<BTreeMap<u64, Vec<Session>>>>;

/// Arms cuts before random operations; what the ledger says at each is kept.
fn arm(disk: &RecordingDisk, ledger: &Ledger, count: u64, below: u64, random: &mut Random) -> Snapshots {
    let snapshots = Snapshots::default();
    let (kept, ledger) = (Arc::clone(&snapshots), ledger.clone());
    let operations: Vec<_> = (0..count).map(|_| random.below(below)).collect();
    let before = move |number| {
        kept.lock().unwrap().insert(number, ledger.snapshot());
    };
    disk.cut_before(operations, Some(Arc::new(before)));
    snapshots
}

/// Sessions at work on a new disk; the states at the cuts and at the end, each with what had been promised.
fn run(random: &mut Random) -> Vec<(Frozen, Vec<Session>)> {
    const SESSIONS: usize = 3;
    let disk = disk();
    let ledger = Ledger::new(SESSIONS);
    let storage = open(&disk).unwrap();
    let snapshots = arm(&disk, &ledger, 4, 700, random);
    let stop = AtomicBool::new(false);
    let large = random.one_in(3);
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let (storage, ledger, mut random) = (&storage, &ledger, Random(random.next()));
                scope.spawn(move || {
                    let mut worker = Worker::new(storage, ledger, session);
                    for _ in 0..4 {
                        worker.work(&mut random, 40);
                        if large {
                            fill(storage, SEGMENT_SIZE / 2);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                storage.checkpoint().unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        for session in sessions {
            session.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    crash(storage);
    assert_eq!(disk.violations(), Vec::<String>::new());
    let mut states: Vec<_> = disk
        .take_frozen()
        .into_iter()
        .map(|(number, frozen)| (frozen, snapshots.lock().unwrap()[&number].clone()))
        .collect();
    states.push((disk.freeze(), ledger.snapshot()));
    states
}

#[test]
fn nothing_acknowledged_is_lost() {
    let (seed, images) = (variable("SEED", 20), variable("IMAGES", 100));
    println!("SEED={seed} IMAGES={images}");
    let mut random = Random(seed);
    let mut done = 0;
    while done < images {
        for (frozen, promised) in run(&mut random) {
            let mut check = |frozen: &Frozen, what: &str| {
                done += 1;
                if let Err(problem) = check(&frozen.random_image(&mut random), &promised) {
                    panic!("SEED={seed}, image {done}, {what}: {problem}");
                }
            };
            for _ in 0..4 {
                check(&frozen, "a cut during work");
            }
            for inner in replayed(&frozen, &promised) {
                check(&inner, "a cut during replay");
            }
        }
    }
}

/// The disk at three instants during recovery after a kill.
fn replayed(frozen: &Frozen, promised: &[Session]) -> Vec<Frozen> {
    let disk = frozen.after_kill();
    let mut random = Random(promised.iter().map(Session::begun).sum());
    let operations: Vec<_> = (0..3).map(|_| random.below(150)).collect();
    disk.cut_before(operations, None);
    if let Err(problem) = check(&disk, promised) {
        panic!("after a kill: {problem}");
    }
    disk.take_frozen().into_values().collect()
}

/// Logs this many meaningless bytes, and waits for the disk.
fn fill(storage: &Storage, bytes: u64) {
    const PAYLOAD: u64 = 1 << 19;
    for _ in 0..bytes.div_ceil(PAYLOAD) {
        storage.wal.make_room().unwrap();
        let end = storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &[0; PAYLOAD as usize]);
        storage.wal.flush(end);
    }
}

/// Logs meaningless bytes until the log is in segment `number`.
fn fill_to_segment(storage: &Storage, number: u64) {
    while storage.wal.reserved().0 / SEGMENT_SIZE < number {
        fill(storage, 1);
    }
}

/// A checkpoint at the beginning of this segment makes future ones of those before it. The log has two
/// segments ahead of it then, so the first recycled one is at most the third, and there are enough for the
/// one below with two ahead of it: before the log is in that one no new segment is made, which would sync the
/// names too.
const PAST: u64 = 9;
/// A recycled segment.
const RECYCLED: u64 = 13;

/// One session makes a relation and commits.
fn commit(storage: &Storage, ledger: &Ledger) -> RelId {
    let mut worker = Worker::new(storage, ledger, 0);
    let rel = worker.create_rel();
    let page = worker.add_page(rel);
    worker.add(vec![page]);
    worker.commit(true);
    rel
}

fn image(disk: &RecordingDisk, keep: impl FnMut(&Path) -> Keep) -> RecordingDisk {
    disk.freeze().image(&mut Random(1), keep)
}

fn nothing(_: &Path) -> Keep {
    Keep::Nothing
}

fn in_log(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "pg_wal")
}

/// The disk as a kill leaves it that comes just before the next sync for `purpose`, which `action` leads to.
fn killed_before(disk: &RecordingDisk, purpose: SyncPurpose, action: impl FnOnce()) -> RecordingDisk {
    disk.cut_before_sync(purpose, 0);
    action();
    let frozen = disk.take_frozen();
    frozen
        .into_values()
        .next()
        .expect("the sync is reached")
        .after_kill()
}

/// The story of a purpose, on a disk that ignores syncs for it or not: whether some image fails, and how.
fn story(purpose: SyncPurpose, ignored: bool) -> Result<(), String> {
    let disk = disk();
    let ledger = Ledger::new(1);
    let ignore = |disk: &RecordingDisk| {
        if ignored {
            disk.ignore([purpose]);
        }
    };
    match purpose {
        SyncPurpose::LogFound => return cut_during_replay(&disk, &ledger, ignore),
        SyncPurpose::ControlFileFound => return torn_after_a_kill(&disk, &ledger, ignore),
        SyncPurpose::DataDirectory => return killed_while_made(ignore),
        SyncPurpose::LogNamesFound => return killed_while_recycling(&disk, &ledger, ignore),
        SyncPurpose::Slots => return slot_is_there(&disk, ignore),
        SyncPurpose::StatusJournal => return torn_status_page(&disk, ignore),
        SyncPurpose::TimelineHistory => return timeline_is_there(&disk, &ledger, ignore),
        SyncPurpose::CopiedFile | SyncPurpose::CopiedNames => return copy_is_there(&disk, ignore),
        _ => {}
    }
    if purpose == SyncPurpose::ControlFile {
        // The first control file is durable, the later ones are not.
        crash(open(&disk)?);
    }
    ignore(&disk);
    let storage = open(&disk)?;
    commit(&storage, &ledger);
    match purpose {
        SyncPurpose::DataFile | SyncPurpose::DataFileNames => storage.checkpoint().unwrap(),
        SyncPurpose::DataFileClosed => {
            for _ in 0..12 {
                let rel = storage.create_rel().unwrap();
                storage.extend(rel).unwrap();
            }
            // It writes the new pages after those of the ledger, whose file has to make room.
            storage.checkpoint().unwrap();
        }
        SyncPurpose::ControlFile => {
            fill_to_segment(&storage, 2);
            storage.checkpoint().unwrap();
        }
        SyncPurpose::RecycledNames => {
            fill_to_segment(&storage, PAST);
            storage.checkpoint().unwrap();
            fill_to_segment(&storage, RECYCLED);
            commit(&storage, &ledger);
        }
        _ => {}
    }
    let result = check(&image(&disk, nothing), &ledger.snapshot());
    crash(storage);
    result
}

/// The power goes while a standby writes a page of the commit log. Its log has no image of the page behind the redo
/// position.
fn torn_status_page(disk: &RecordingDisk, ignore: impl Fn(&RecordingDisk)) -> Result<(), String> {
    let follow = |disk: &RecordingDisk| {
        let options = StorageOptions {
            buffer_bytes: 64 * PAGE_SIZE,
            sessions_max: 32,
            ..chosen::options()
        };
        let standby = StandbyOptions::default();
        Storage::open_standby_on(Arc::new(disk.clone()), Path::new(DIRECTORY), options, standby)
            .map(|(storage, _)| storage)
            .map_err(|error| error.to_string())
    };
    let storage = open(disk)?;
    let proc = storage.proc_array.attach().unwrap();
    // The page has a sector with its checksum, and the status of the commit below is in another one.
    for _ in 0..5_000 {
        let xid = storage.assign_xid(proc).unwrap();
        storage.abort(proc, xid).unwrap();
    }
    let old = storage.assign_xid(proc).unwrap();
    storage.commit(proc, old, true).unwrap();
    storage.checkpoint().unwrap();
    storage.checkpoint().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    storage.commit(proc, xid, true).unwrap();
    crash(storage);
    ignore(disk);
    let standby = follow(disk)?;
    // The first one belongs to the page that was written before.
    disk.cut_before_sync(SyncPurpose::DataFile, 1);
    standby.checkpoint().unwrap();
    crash(standby);
    let frozen = disk
        .take_frozen()
        .into_values()
        .next()
        .expect("the sync is reached");
    for seed in 0..30 {
        let torn = frozen.image(&mut Random(seed), |path| match path.ends_with("base/0") {
            true => Keep::Part,
            false => Keep::Nothing,
        });
        let standby = follow(&torn)?;
        // One from before the redo position, of which the log says nothing any more, and one from behind it.
        let found: Result<Vec<_>, _> = [old, xid].iter().map(|&xid| standby.status(xid)).collect();
        crash(standby);
        let found = found.map_err(|error| error.to_string())?;
        if found != [Status::Committed; 2] {
            return Err(format!("the commits are {found:?}"));
        }
    }
    Ok(())
}

/// A slot that was reported as made.
fn slot_is_there(disk: &RecordingDisk, ignore: impl Fn(&RecordingDisk)) -> Result<(), String> {
    ignore(disk);
    let storage = open(disk)?;
    storage
        .retention
        .create_slot("archive", None, Some(storage.wal.redo()))
        .map_err(|error| error.to_string())?;
    let cut = image(disk, nothing);
    crash(storage);
    let storage = open(&cut)?;
    let found = storage.retention.slot("archive");
    crash(storage);
    found.map(drop).ok_or_else(|| "the slot is missing".into())
}

/// A new timeline that has begun.
fn timeline_is_there(
    disk: &RecordingDisk,
    ledger: &Ledger,
    ignore: impl Fn(&RecordingDisk),
) -> Result<(), String> {
    ignore(disk);
    let storage = open(disk)?;
    commit(&storage, ledger);
    let fork = quiet_end(&storage);
    storage
        .begin_timeline(fork, "promoted")
        .map_err(|error| error.to_string())?;
    let result = check(&image(disk, nothing), &ledger.snapshot());
    crash(storage);
    result
}

/// A standby is promoted, and the power goes before any operation of that, or of the commit and the checkpoint behind it.
/// What was acknowledged is there, on one timeline or the other, and the directory can be promoted again.
#[test]
fn a_timeline_begins_as_a_whole_or_not_at_all() {
    let tell = |cuts: std::ops::Range<u64>| {
        let disk = disk();
        let ledger = Ledger::new(2);
        let storage = open(&disk).unwrap();
        commit(&storage, &ledger);
        fill_to_segment(&storage, 2);
        commit(&storage, &ledger);
        let fork = quiet_end(&storage);
        let snapshots = Snapshots::default();
        let (kept, promises) = (Arc::clone(&snapshots), ledger.clone());
        let before = move |number| {
            kept.lock().unwrap().insert(number, promises.snapshot());
        };
        disk.cut_before(cuts, Some(Arc::new(before)));
        let begun = disk.operations();
        assert_eq!(storage.begin_timeline(fork, "promoted").unwrap(), 2);
        let ended = disk.operations();
        let mut worker = Worker::new(&storage, &ledger, 1);
        let rel = worker.create_rel();
        let page = worker.add_page(rel);
        worker.add(vec![page]);
        worker.commit(true);
        storage.checkpoint().unwrap();
        let all = disk.operations() - begun;
        drop(worker);
        crash(storage);
        assert_eq!(disk.violations(), Vec::<String>::new());
        (disk.take_frozen(), snapshots, ended - begun, all)
    };
    let (_, _, begins, all) = tell(0..0);
    assert!(begins > 8 && all > begins, "{begins} {all}");
    let (frozen, snapshots, _, _) = tell(0..all);
    assert_eq!(frozen.len() as u64, all);
    let mut random = Random(variable("SEED", 20));
    let mut timelines = std::collections::BTreeSet::new();
    for (number, frozen) in frozen {
        let promised = snapshots.lock().unwrap()[&number].clone();
        let images = [
            frozen.image(&mut random, nothing),
            frozen.after_kill(),
            frozen.random_image(&mut random),
        ];
        for image in images {
            check(&image, &promised).unwrap_or_else(|problem| panic!("cut before {number}: {problem}"));
            let storage = open(&image).unwrap();
            timelines.insert(storage.timeline());
            let again = storage.begin_timeline(quiet_end(&storage), "again").unwrap();
            let ledger = Ledger::new(1);
            commit(&storage, &ledger);
            crash(storage);
            let storage = open(&image).unwrap();
            assert_eq!(storage.timeline(), again);
            let verified = verify(&storage, &promised).and_then(|()| verify(&storage, &ledger.snapshot()));
            crash(storage);
            verified.unwrap_or_else(|problem| panic!("cut before {number}, promoted again: {problem}"));
        }
    }
    assert_eq!(timelines.into_iter().collect::<Vec<_>>(), [1, 2]);
}

/// A copy of the database that was received as a whole.
fn copy_is_there(disk: &RecordingDisk, ignore: impl Fn(&RecordingDisk)) -> Result<(), String> {
    fn content(disk: &RecordingDisk, path: &Path) -> Result<Vec<u8>, String> {
        let file = disk
            .open(path, OpenMode::Existing)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        Ok(bytes)
    }
    let storage = open(disk)?;
    let number = storage.system_identifier();
    crash(storage);
    let (original, target) = (Path::new(DIRECTORY), Path::new("/disk/copy"));
    ignore(disk);
    let mut copy = ReceivedCopy::begin_on(Arc::new(disk.clone()), target, true).unwrap();
    let mut names = Vec::new();
    for directory in ["base", "pg_wal"] {
        copy.create_directory(Path::new(directory)).unwrap();
        let files = disk.files(&original.join(directory));
        names.extend(files.into_iter().map(|(name, _)| format!("{directory}/{name}")));
    }
    names.push("control".to_owned());
    for name in &names {
        let mut file = copy.create_file(Path::new(name)).unwrap();
        file.write(&content(disk, &original.join(name))?).unwrap();
        file.finish().unwrap();
    }
    copy.finish(number).unwrap();
    let cut = image(disk, nothing);
    for name in &names {
        let found = content(&cut, &target.join(name))?;
        // The control file says that it is a standby's.
        if name != "control" && found != content(disk, &original.join(name))? {
            return Err(format!("{name} is not what was received"));
        }
    }
    Ok(())
}

/// A kill between the write and the sync of the log, which holds changes of more pages than the next pool has
/// frames; then the power goes when recovery has replayed them and has evicted some.
fn cut_during_replay(
    disk: &RecordingDisk,
    ledger: &Ledger,
    ignore: impl Fn(&RecordingDisk),
) -> Result<(), String> {
    let storage = open_with(disk, 512)?;
    let rel = commit(&storage, ledger);
    let mut worker = Worker::new(&storage, ledger, 0);
    let mut pages: Vec<_> = (0..200).map(|_| worker.add_page(rel)).collect();
    worker.add(vec![pages.pop().unwrap()]);
    worker.commit(true);
    storage.checkpoint().unwrap();
    let acknowledged = ledger.snapshot();
    // One record a page, each with the page as a whole: all of it is in the log's ring until the commit.
    let killed = killed_before(disk, SyncPurpose::LogFlush, || {
        for page in pages.drain(..) {
            worker.add(vec![page]);
        }
        worker.commit(true);
    });
    drop(worker);
    crash(storage);
    ignore(&killed);
    killed.cut_before_sync(SyncPurpose::LogCleared, 0);
    crash(open(&killed)?);
    let frozen = killed.take_frozen().into_values().next().unwrap();
    let keep = |path: &Path| if in_log(path) { Keep::Nothing } else { Keep::All };
    let promised = promised_before(ledger.snapshot(), &acknowledged);
    check(&frozen.image(&mut Random(1), keep), &promised)?;
    killed.violations().pop().map_or(Ok(()), Err)
}

/// A kill while the data directory is made, before each of the syncs of a new directory's name.
fn killed_while_made(ignore: impl Fn(&RecordingDisk)) -> Result<(), String> {
    let mut names = 0;
    loop {
        let disk = disk();
        disk.cut_before_sync(SyncPurpose::ParentDirectory, names);
        crash(open(&disk)?);
        let Some(frozen) = disk.take_frozen().into_values().next() else {
            assert!(names >= 4, "the directory, those in it, and those above it");
            return Ok(());
        };
        let killed = frozen.after_kill();
        ignore(&killed);
        let storage = open(&killed)?;
        let ledger = Ledger::new(1);
        commit(&storage, &ledger);
        storage.checkpoint().unwrap();
        let result = check(&image(&killed, nothing), &ledger.snapshot());
        crash(storage);
        result?;
        names += 1;
    }
}

/// A kill after segments were renamed and before that was synced; then the log goes on into them.
fn killed_while_recycling(
    disk: &RecordingDisk,
    ledger: &Ledger,
    ignore: impl Fn(&RecordingDisk),
) -> Result<(), String> {
    let storage = open(disk)?;
    commit(&storage, ledger);
    fill_to_segment(&storage, PAST);
    let killed = killed_before(disk, SyncPurpose::RecycledNames, || storage.checkpoint().unwrap());
    crash(storage);
    ignore(&killed);
    let storage = open(&killed)?;
    fill_to_segment(&storage, RECYCLED);
    commit(&storage, ledger);
    let result = check(&image(&killed, nothing), &ledger.snapshot());
    crash(storage);
    result
}

/// A kill before the control file's sync; then the next copy is torn.
fn torn_after_a_kill(
    disk: &RecordingDisk,
    ledger: &Ledger,
    ignore: impl Fn(&RecordingDisk),
) -> Result<(), String> {
    let storage = open(disk)?;
    commit(&storage, ledger);
    fill_to_segment(&storage, 2);
    storage.checkpoint().unwrap();
    let killed = killed_before(disk, SyncPurpose::ControlFile, || storage.checkpoint().unwrap());
    crash(storage);
    ignore(&killed);
    killed.cut_before_sync(SyncPurpose::ControlFile, 0);
    crash(open(&killed)?);
    let frozen = killed.take_frozen().into_values().next().unwrap();
    let mut random = Random(1);
    (0..40).try_for_each(|_| {
        let keep = |path: &Path| {
            if path.ends_with("control") {
                Keep::Part
            } else {
                Keep::All
            }
        };
        check(&frozen.image(&mut random, keep), &ledger.snapshot())
    })
}

/// A write of the log that covers the end of a segment and the beginning of the next reaches the disk in its
/// second part. Recovery ends the log before it, and the new log ends where the old record in the second part
/// begins.
fn old_record_behind_the_end(ignored: bool) -> Result<(), String> {
    // What recovery itself logs, so that the new log ends at the segment's.
    let logged_by_opening = {
        let disk = disk();
        crash(open(&disk)?);
        let killed = disk.freeze().after_kill();
        let end = newest_record(&killed);
        let storage = open(&killed)?;
        let logged = storage.wal.reserved().0 - end;
        crash(storage);
        logged
    };
    let disk = disk();
    let storage = open(&disk)?;
    fill(&storage, SEGMENT_SIZE - (2 << 20));
    let payload = |bytes: u64| vec![0; bytes as usize - 32];
    let end = 2 * SEGMENT_SIZE - logged_by_opening;
    while storage.wal.reserved().0 + (1 << 19) < end {
        fill(&storage, 1);
    }
    let log = |bytes: u64| {
        storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &payload(bytes))
    };
    storage.wal.flush(log(end - storage.wal.reserved().0));
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    disk.ignore([SyncPurpose::LogFlush]);
    log(logged_by_opening);
    storage.commit(proc, xid, true).unwrap();
    crash(storage);
    let second = |path: &Path| {
        if path.ends_with(segment_name(FIRST_TIMELINE, 2)) {
            Keep::All
        } else {
            Keep::Nothing
        }
    };
    let torn = image(&disk, second);
    if ignored {
        torn.ignore([SyncPurpose::LogCleared]);
    }
    let storage = open(&torn)?;
    assert_eq!(
        storage.wal.reserved(),
        clearway_storage::Lsn(2 * SEGMENT_SIZE),
        "the story's arithmetic"
    );
    assert_ne!(storage.status(xid).unwrap(), Status::Committed);
    crash(storage);
    let storage = open(&image(&torn, nothing))?;
    let status = storage.status(xid).unwrap();
    crash(storage);
    match status {
        Status::Committed => Err("a transaction that recovery had taken back is committed".into()),
        _ => Ok(()),
    }
}

/// The end of the log of a crashed disk.
fn newest_record(disk: &RecordingDisk) -> u64 {
    let copy = disk.freeze().after_kill();
    let options = StorageOptions {
        sessions_max: 32,
        ..StorageOptions::default()
    };
    let (storage, report) = Storage::open_on(Arc::new(copy), Path::new(DIRECTORY), options).unwrap();
    crash(storage);
    report.end.0
}

#[test]
fn each_sync_is_needed() {
    let needed = |purpose: &SyncPurpose| *purpose != SyncPurpose::LogCleared;
    for purpose in SyncPurpose::ALL.into_iter().filter(needed) {
        if let Err(problem) = story(purpose, false) {
            panic!("{purpose:?}, as shipped: {problem}");
        }
        match story(purpose, true) {
            Ok(()) => panic!("{purpose:?} is not needed, or its story does not show why"),
            Err(problem) => println!("without {purpose:?}: {problem}"),
        }
    }
}

/// The old record has the link of one that was lost, so it does not matter if what is behind the end was cleared.
#[test]
fn an_old_record_behind_the_end_does_not_come_back() {
    for is_cleared in [true, false] {
        old_record_behind_the_end(!is_cleared)
            .unwrap_or_else(|problem| panic!("cleared: {is_cleared}: {problem}"));
    }
}

/// A kill between the write and the sync of the commit log's pages. The next process replays the commits and finds
/// each status in its page already, so `atomic`, which writes no page that has not changed, writes none. Its checkpoint
/// moves the redo position past the commits, and the power goes.
#[test]
fn statuses_that_a_killed_process_wrote_are_synced() {
    for &variant in CommitLogVariant::ALL {
        let disk = disk();
        let ledger = Ledger::new(1);
        let storage = open_as(&disk, 64, variant).unwrap();
        commit(&storage, &ledger);
        // The page is in its file from here on.
        storage.checkpoint().unwrap();
        commit(&storage, &ledger);
        let killed = killed_before(&disk, SyncPurpose::DataFile, || storage.checkpoint().unwrap());
        crash(storage);
        let storage = open_as(&killed, 64, variant).unwrap();
        storage.checkpoint().unwrap();
        let result = check(&image(&killed, nothing), &ledger.snapshot());
        crash(storage);
        result.unwrap_or_else(|problem| panic!("commit_log={}: {problem}", variant.name()));
    }
}
