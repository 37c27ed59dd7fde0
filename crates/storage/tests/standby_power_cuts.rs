//! Power cuts under a standby: what it has acknowledged is there after any of them.
//!
//! A primary's sessions are at work, and what they log is sent to a standby on the recording disk (`recording_disk`). The
//! power is cut before operations of that disk while the standby receives, replays with a pool that evicts, makes
//! restartpoints, gives up a part of a record to follow another timeline, and is promoted. Images of each state are opened
//! as what they are, compared with what the standby had acknowledged (`power_cut_ledger`), and promoted or continued.
//!
//! | story | cuts before |
//! | --- | --- |
//! | `a_standby_keeps_what_it_has_acknowledged` | operations at random of receiving, replay and eviction; each of two restartpoints |
//! | `a_part_of_a_record_is_given_up_as_a_whole_or_not_at_all` | each operation of following another timeline, and those behind it |
//! | `a_promotion_is_there_as_a_whole_or_not_at_all` | each operation of a promotion, of the first commit behind it and of its checkpoint |
//!
//! `SEED=7 IMAGES=600 cargo test --release -p clearway-storage --test standby_power_cuts` is the long form.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/power_cut_ledger.rs"]
#[allow(dead_code, reason = "what sessions do beside checkpoints")]
mod ledger;
#[path = "support/recording_disk/mod.rs"]
mod recording_disk;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clearway_storage::wal::record::RecordKind;
use clearway_storage::{Lsn, PAGE_SIZE, Storage, StorageOptions};
use clearway_txn::Xid;
use crash::crash;
use ledger::{Ledger, Session, Worker, promised_before, verify};
use recording_disk::{Frozen, Keep, Random, RecordingDisk};
use standby_copy::{Observer, Sender};

const DIRECTORY: &str = "/disk/data";

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect(name))
}

/// With so few frames that replay evicts.
fn options() -> StorageOptions {
    StorageOptions {
        buffer_bytes: 32 * PAGE_SIZE,
        sessions_max: 32,
        checkpoint_timeout: Duration::from_secs(3600),
        ..chosen::options()
    }
}

fn open_primary(disk: &RecordingDisk) -> Result<Arc<Storage>, String> {
    Storage::open_on(Arc::new(disk.clone()), Path::new(DIRECTORY), options())
        .map(|(storage, _)| storage)
        .map_err(|error| error.to_string())
}

fn open_standby(disk: &RecordingDisk) -> Result<Arc<Storage>, String> {
    let standby = chosen::standby();
    Storage::open_standby_on(Arc::new(disk.clone()), Path::new(DIRECTORY), options(), standby)
        .map(|(storage, _)| storage)
        .map_err(|error| error.to_string())
}

/// A standby that replays.
fn start_standby(disk: &RecordingDisk) -> Arc<Storage> {
    let storage = open_standby(disk).unwrap();
    storage.start_replay(Arc::new(Observer::default())).unwrap();
    storage
}

/// A primary whose first page of the commit log has statuses in several sectors, of transactions before its redo
/// position, and what its sessions have been promised.
fn primary() -> (RecordingDisk, Arc<Storage>, Ledger) {
    let disk = RecordingDisk::with_directory(Path::new("/disk"));
    let storage = open_primary(&disk).unwrap();
    let ledger = Ledger::new(3);
    let proc = storage.proc_array.attach().unwrap();
    work(&storage, &ledger, 0, 2);
    for _ in 0..5_000 {
        let xid = storage.assign_xid(proc).unwrap();
        storage.abort(proc, xid).unwrap();
    }
    storage.proc_array.detach(proc);
    work(&storage, &ledger, 0, 2);
    storage.checkpoint().unwrap();
    storage.checkpoint().unwrap();
    (disk, storage, ledger)
}

/// A session makes a relation of more pages than half of the pool, and changes some in each of `commits` transactions.
fn work(storage: &Storage, ledger: &Ledger, session: usize, commits: usize) {
    let mut worker = Worker::new(storage, ledger, session);
    let rel = worker.create_rel();
    let pages: Vec<_> = (0..18).map(|_| worker.add_page(rel)).collect();
    for commit in 0..commits {
        for page in pages.iter().skip(commit % 3).step_by(3) {
            worker.add(vec![*page]);
        }
        worker.add(vec![pages[commit % pages.len()], pages[0]]);
        worker.commit(true);
    }
}

/// The acknowledgements of a standby: what had been promised to the sessions of its primary at each.
#[derive(Clone)]
struct Acknowledged {
    ledger: Ledger,
    received: Arc<Mutex<Vec<Session>>>,
    at_cuts: Arc<Mutex<BTreeMap<u64, Vec<Session>>>>,
}

impl Acknowledged {
    fn new(ledger: &Ledger) -> Self {
        Self {
            ledger: ledger.clone(),
            received: Arc::new(Mutex::new(ledger.snapshot())),
            at_cuts: Arc::default(),
        }
    }

    /// All that has been promised by now was received and synced.
    fn all(&self) {
        *self.received.lock().unwrap() = self.ledger.snapshot();
    }

    /// The sessions by now, and the part of their work that was acknowledged.
    fn promised(&self) -> Vec<Session> {
        promised_before(self.ledger.snapshot(), &self.received.lock().unwrap())
    }

    /// The power is cut before these operations of `disk`, counted from now.
    fn cut(&self, disk: &RecordingDisk, operations: impl IntoIterator<Item = u64>) {
        let this = self.clone();
        let before = move |number| {
            this.at_cuts.lock().unwrap().insert(number, this.promised());
        };
        disk.cut_before(operations, Some(Arc::new(before)));
    }

    /// The states at the cuts.
    fn states(&self, disk: &RecordingDisk) -> Vec<(u64, Frozen, Vec<Session>)> {
        let mut at_cuts = self.at_cuts.lock().unwrap();
        let frozen = disk.take_frozen().into_iter();
        frozen
            .map(|(number, frozen)| (number, frozen, at_cuts.remove(&number).unwrap()))
            .collect()
    }
}

/// The images of a state: all that was written, what was synced, a part of the commit log's file, and random ones.
fn images(frozen: &Frozen, random: &mut Random) -> Vec<(&'static str, RecordingDisk)> {
    let torn = |path: &Path| match path.ends_with("base/0") {
        true => Keep::Part,
        false => Keep::Nothing,
    };
    vec![
        ("a kill", frozen.after_kill()),
        (
            "nothing unsynced is left",
            frozen.image(random, |_| Keep::Nothing),
        ),
        ("the commit log is torn", frozen.image(random, torn)),
        ("the commit log is torn", frozen.image(random, torn)),
        ("a part is left", frozen.random_image(random)),
    ]
}

/// Opens an image as a standby, compares it with the promises, and promotes it.
fn check_standby(image: &RecordingDisk, promised: &[Session]) -> Result<(), String> {
    let storage = start_standby_checked(image)?;
    let verified = verify(&storage, promised);
    let promoted = storage.promote("the primary is lost");
    let result = verified.and_then(|()| {
        promoted.map_err(|error| format!("it is not promoted: {error}"))?;
        let ledger = Ledger::new(1);
        work(&storage, &ledger, 0, 1);
        verify(&storage, &ledger.snapshot())?;
        verify(&storage, promised)
    });
    crash(storage);
    result?;
    match image.violations().pop() {
        Some(violation) => Err(violation),
        None => Ok(()),
    }
}

fn start_standby_checked(image: &RecordingDisk) -> Result<Arc<Storage>, String> {
    let storage = open_standby(image)?;
    storage
        .start_replay(Arc::new(Observer::default()))
        .map_err(|error| error.to_string())?;
    Ok(storage)
}

/// Opens an image as a primary, compares it with the promises, and goes on.
fn check_primary(image: &RecordingDisk, promised: &[Session]) -> Result<(), String> {
    let storage = open_primary(image)?;
    let verified = verify(&storage, promised).and_then(|()| {
        let ledger = Ledger::new(1);
        work(&storage, &ledger, 0, 1);
        storage.checkpoint().map_err(|error| error.to_string())?;
        verify(&storage, &ledger.snapshot())
    });
    crash(storage);
    verified?;
    let storage = open_primary(image)?;
    let verified = verify(&storage, promised);
    crash(storage);
    verified?;
    match image.violations().pop() {
        Some(violation) => Err(violation),
        None => Ok(()),
    }
}

#[test]
fn a_standby_keeps_what_it_has_acknowledged() {
    let (seed, wanted) = (variable("SEED", 20), variable("IMAGES", 60));
    println!("SEED={seed} IMAGES={wanted}");
    let mut random = Random(seed);
    let mut done = 0;
    while done < wanted {
        let (primary_disk, primary, ledger) = primary();
        let disk = primary_disk.freeze().after_kill();
        let standby = start_standby(&disk);
        let mut sender = Sender::new(&primary, &standby);
        let acknowledged = Acknowledged::new(&ledger);
        let mut states = Vec::new();
        for round in 0..2 {
            let cuts: Vec<_> = (0..3).map(|_| random.below(60)).collect();
            acknowledged.cut(&disk, cuts);
            work(&primary, &ledger, round, 2);
            primary.checkpoint().unwrap();
            work(&primary, &ledger, round, 1);
            primary.wal.flush(primary.wal.reserved());
            sender.send(1 + random.below(50_000) as usize);
            acknowledged.all();
            sender.catch_up();
            states.extend(acknowledged.states(&disk));
            // Each operation of the restartpoint, and the state behind it.
            acknowledged.cut(&disk, 0..1_000);
            standby.checkpoint().unwrap();
            let mut all = acknowledged.states(&disk);
            assert!(all.len() > 5, "a restartpoint of {} operations", all.len());
            all.push((disk.operations(), disk.freeze(), acknowledged.promised()));
            let step = 1 + all.len() / 8;
            states.extend(all.into_iter().rev().step_by(step));
        }
        drop(sender);
        crash(standby);
        crash(primary);
        assert_eq!(disk.violations(), Vec::<String>::new());
        for (number, frozen, promised) in states {
            for (what, image) in images(&frozen, &mut random) {
                done += 1;
                check_standby(&image, &promised).unwrap_or_else(|problem| {
                    panic!("SEED={seed}, before operation {number}, {what}: {problem}")
                });
            }
        }
    }
}

/// A primary dies while it sends a record. One standby has received none of it and is promoted; another one has received
/// a part, and follows the new primary.
#[test]
fn a_part_of_a_record_is_given_up_as_a_whole_or_not_at_all() {
    let mut random = Random(variable("SEED", 20));
    let (primary_disk, primary, ledger) = primary();
    let (bobs, carols) = (
        primary_disk.freeze().after_kill(),
        primary_disk.freeze().after_kill(),
    );
    let (bob, carol) = (start_standby(&bobs), start_standby(&carols));
    let mut to_bob = Sender::new(&primary, &bob);
    let mut to_carol = Sender::new(&primary, &carol);
    work(&primary, &ledger, 0, 2);
    to_bob.catch_up();
    to_carol.catch_up();
    let acknowledged = Acknowledged::new(&ledger);
    let fork = primary.wal.reserved();
    let end = primary
        .wal
        .insert_any(RecordKind::NOTHING, Xid::INVALID, &[0xEE; 20_000]);
    primary.wal.flush(end);
    to_carol.send_up_to(Lsn(fork.0 + 9_000));
    drop((to_bob, to_carol));
    crash(primary);
    let (timeline, begins) = bob.promote("the primary is lost").unwrap();
    assert_eq!(begins, fork);

    acknowledged.cut(&carols, 0..1_000);
    let history = bob.history_file(timeline).unwrap().unwrap();
    let started = std::time::Instant::now();
    while let Err(error) = carol.follow_timeline(&history, timeline) {
        assert!(started.elapsed() < Duration::from_secs(60), "{error}");
    }
    let followed = carols.operations();
    let mut sender = Sender::new(&bob, &carol);
    assert_eq!(sender.receiver.position(), fork);
    work(&bob, &ledger, 1, 1);
    sender.catch_up();
    acknowledged.all();
    carol.checkpoint().unwrap();
    let states = acknowledged.states(&carols);
    let in_following = states.iter().filter(|(number, ..)| *number <= followed).count();
    assert!(in_following > 5, "following took {in_following} operations");
    drop(sender);
    crash(carol);
    crash(bob);
    assert_eq!(carols.violations(), Vec::<String>::new());
    for (number, frozen, promised) in states {
        if number > followed && !random.one_in(10) {
            continue;
        }
        for (what, image) in images(&frozen, &mut random) {
            check_standby(&image, &promised)
                .unwrap_or_else(|problem| panic!("before operation {number}, {what}: {problem}"));
        }
    }
}

/// The directory is a standby's or a primary's, and what the former primary's standby had acknowledged is there in both
/// cases; so is what the new primary has acknowledged.
#[test]
fn a_promotion_is_there_as_a_whole_or_not_at_all() {
    let mut random = Random(variable("SEED", 20));
    let (primary_disk, primary, ledger) = primary();
    let disk = primary_disk.freeze().after_kill();
    let standby = start_standby(&disk);
    let mut sender = Sender::new(&primary, &standby);
    work(&primary, &ledger, 0, 2);
    sender.catch_up();
    let acknowledged = Acknowledged::new(&ledger);
    drop(sender);
    crash(primary);
    acknowledged.cut(&disk, 0..2_000);
    let begun = disk.operations();
    let (timeline, _) = standby.promote("the primary is lost").unwrap();
    let promoted: Range<u64> = begun..disk.operations();
    work(&standby, &ledger, 1, 1);
    acknowledged.all();
    standby.checkpoint().unwrap();
    let states = acknowledged.states(&disk);
    assert!(states.len() > 20, "{} operations", states.len());
    crash(standby);
    assert_eq!(disk.violations(), Vec::<String>::new());
    let mut primaries = 0;
    for (number, frozen, promised) in states {
        if !promoted.contains(&number) && !random.one_in(8) {
            continue;
        }
        for (what, image) in images(&frozen, &mut random) {
            // The control file says which of the two it is.
            let copy = image.freeze().after_kill();
            let is_primary = match open_standby(&copy) {
                Ok(storage) => {
                    let is_primary = storage.timeline() == timeline;
                    crash(storage);
                    is_primary
                }
                Err(_) => true,
            };
            primaries += usize::from(is_primary);
            let checked = match is_primary {
                true => check_primary(&image, &promised),
                false => check_standby(&image, &promised),
            };
            checked.unwrap_or_else(|problem| panic!("before operation {number}, {what}: {problem}"));
        }
    }
    assert!(primaries > 5, "{primaries} images of a primary");
}
