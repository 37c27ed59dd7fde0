//! A former primary's directory is rewound to the server that took over, and is what a base backup of that server would be;
//! also after power cuts and kills at any step (`support/parted.rs` has the story).
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/rewind.toml` lists them.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/log_filler.rs"]
mod log_filler;
#[path = "support/parted.rs"]
mod parted;
#[path = "support/recording_disk/mod.rs"]
mod recording_disk;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::path::Path;
use std::sync::Arc;

use clearway_storage::backup::Backup;
use clearway_storage::disk::{Disk, OpenMode, SyncPurpose};
use clearway_storage::retention::RetentionLimits;
use clearway_storage::rewind::RewindDirectory;
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::{Lsn, Storage, StorageError, StorageOptions};
use crash::crash;
use log_filler::{fill_to, middle_of};
use parted::{DIRECTORY, End, LocalSource, Sides, go_on, open, options, parted, variable};
use recording_disk::{Keep, Random, RecordingDisk};

const ENDS: [End; 4] = [End::Killed, End::KilledLater, End::Stopped, End::Recovered];

#[test]
fn a_rewound_directory_is_what_a_base_backup_is() {
    for (seed, end) in (variable("SEED", 7)..).zip(ENDS) {
        let mut parted = parted(seed, Sides::FormerPrimary, end);
        let before = parted.directory.freeze().after_kill();
        // A dry run tells what is fetched, and changes nothing.
        let RewindDirectory::Opened(directory) = parted.opened(&before) else {
            panic!("{end:?}");
        };
        let history = parted.server.history();
        let mut source = LocalSource::new(&parted.server);
        let plan = directory.plan(&mut source, &history, parted.fork).unwrap();
        let planned = directory.look(&mut source, &plan).unwrap();
        drop((directory, source));
        open(&before).map(crash).unwrap();

        let summary = parted.rewind(&parted.directory).unwrap();
        assert_eq!(summary.pages, planned.pages, "{end:?}");
        assert_eq!(summary.removed, planned.removed);
        assert!(summary.pages * 3 < summary.pages_total, "{end:?}: {summary:?}");
        assert!(summary.removed >= 1, "{summary:?}");
        let mut random = Random(seed);
        let relations = parted.relations;
        go_on(&parted.server, &mut random, relations, None);
        // It logs how many pages there are, those included that were added only.
        parted.server.checkpoint().unwrap();
        parted.check(&parted.directory);
        parted.random = random;
        parted.close();
    }
}

/// The power is cut, or the process killed, before each operation of a rewind, while the server goes on. No server opens
/// what that leaves, until another rewind has ended.
#[test]
fn an_interrupted_rewind_is_started_again() {
    for (seed, end) in (variable("SEED", 7)..).zip([End::KilledLater, End::Stopped, End::Killed]) {
        let mut parted = parted(seed, Sides::FormerPrimary, end);
        let whole = parted.directory.freeze().after_kill();
        whole.cut_before(0..100_000, None);
        parted.rewind(&whole).unwrap();
        let mut frozen: Vec<_> = whole.take_frozen().into_values().collect();
        assert!(frozen.len() > 100, "{} operations", frozen.len());
        frozen.push(whole.freeze());
        let mut random = parted.random.clone();
        let images = variable("IMAGES", 30);
        let (mut untouched, mut refused, mut complete) = (0, 0, 0);
        go_on(&parted.server, &mut random, parted.relations, None);
        parted.server.checkpoint().unwrap();
        for number in 0..images {
            // The last operations are those of the switch.
            let from_end = match number {
                0 => 1,
                number if number % 2 == 0 => 40,
                _ => frozen.len() as u64,
            };
            let state = &frozen[frozen.len() - 1 - random.below(from_end) as usize];
            let image = match random.below(3) {
                _ if number == 0 => state.after_kill(),
                0 => state.after_kill(),
                _ => state.random_image(&mut random),
            };
            match open(&image.freeze().after_kill()) {
                Ok(storage) => {
                    untouched += 1;
                    crash(storage);
                }
                Err(StorageError::NoDatabase { problem, .. }) => {
                    assert!(problem.contains("a rewind of it was not finished"), "{problem}");
                    refused += 1;
                }
                Err(StorageError::IsStandby { .. }) => complete += 1,
                Err(error) => panic!("{error}"),
            }
            parted.rewind(&image);
            parted.check(&image);
        }
        assert!(
            refused > images / 2 && complete > 0,
            "{untouched}, {refused}, {complete}"
        );
        parted.random = random;
        parted.close();
    }
}

/// The power is cut while a relation is fetched that was dropped here behind the last checkpoint. The next attempt finds no
/// file of it with the length of that checkpoint, and no page in it.
#[test]
fn a_relation_that_is_fetched_as_a_whole_is_whole_or_not_there() {
    let parted = parted(variable("SEED", 7), Sides::FormerPrimary, End::Killed);
    let mut random = parted.random.clone();
    let base = Path::new(DIRECTORY).join("base");
    let name = parted.relations.dropped_here.0.to_string();
    let is_there = |disk: &RecordingDisk| {
        disk.files(&base)
            .iter()
            .any(|(found, _)| found.starts_with(&name))
    };
    assert!(!is_there(&parted.directory));
    let interrupted = (0..).map(|file| {
        let disk = parted.directory.freeze().after_kill();
        disk.cut_before_sync(SyncPurpose::CopiedFile, file);
        parted.rewind(&disk).unwrap();
        disk.take_frozen().into_values().next().unwrap()
    });
    let before_its_sync = interrupted
        .into_iter()
        .find(|frozen| is_there(&frozen.after_kill()))
        .unwrap();
    for _ in 0..20 {
        let image = before_its_sync.image(&mut random, |path| match path.parent() {
            Some(parent) if parent == base => Keep::Part,
            _ => Keep::All,
        });
        parted.rewind(&image).unwrap();
        parted.check(&image);
    }
    parted.close();
}

/// Everything that is in the directory beside pages and log: files of an attempt that was interrupted, and files that speak
/// of the role that it had.
#[test]
fn files_of_an_earlier_attempt_and_of_the_former_role_go() {
    let parted = parted(variable("SEED", 7), Sides::FormerPrimary, End::Stopped);
    let directory = Path::new(DIRECTORY);
    let gone = [
        "base/70000.rewound",
        "pg_wal/000000090000000000000001.rewound",
        "promote.signal",
        "promote.failed",
        "promoted.from",
        "standby.signal",
        "standby.diverged",
        "backup_manifest",
        "slots",
    ];
    let disk = &parted.directory;
    let write = |name: &str| {
        let file = disk.open(&directory.join(name), OpenMode::Truncate).unwrap();
        file.write_at(b"text", 0).unwrap();
    };
    gone.into_iter().for_each(write);
    write("clearway.toml");
    parted.rewind(disk).unwrap();
    let names = |directory: &Path| -> Vec<String> {
        disk.files(directory).into_iter().map(|(name, _)| name).collect()
    };
    for name in gone {
        let path = directory.join(name);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!names(path.parent().unwrap()).contains(&name), "{name}");
    }
    assert!(names(directory).contains(&"clearway.toml".to_owned()));
    parted.check(disk);
    parted.close();
}

/// The log tells what the server has changed since the fork, and the checkpoint that a rewind begins with would remove it.
#[test]
fn the_server_keeps_its_log_from_the_fork_on() {
    let disk = RecordingDisk::with_directory(Path::new("/disk"));
    let two_segments = StorageOptions {
        log_retention: RetentionLimits {
            keep_bytes: 2 * SEGMENT_SIZE,
            ..RetentionLimits::default()
        },
        ..options()
    };
    let (storage, _) = Storage::open_on(Arc::new(disk), Path::new(DIRECTORY), two_segments).unwrap();
    let fork = storage.durable_log_end();
    let mut byte = [0];
    fill_to(&storage, middle_of(2));
    storage.checkpoint().unwrap();
    let backup = Backup::begin_for_rewind(&storage, 77, fork).unwrap();
    assert!(backup.start() > Lsn(middle_of(1)));
    fill_to(&storage, middle_of(5));
    storage.checkpoint().unwrap();
    backup.read_log(fork, Lsn(fork.0 + 1), &mut byte).unwrap();
    drop(backup);
    // Another copy needs no log of before its checkpoint.
    let backup = Backup::begin(&storage, 77).unwrap();
    storage.checkpoint().unwrap();
    backup.read_log(fork, Lsn(fork.0 + 1), &mut byte).unwrap_err();
    drop(backup);
    crash(storage);
}

/// Pages of one server and of another are not mixed: a rewind that was interrupted goes on with the same server only.
#[test]
fn an_interrupted_rewind_goes_on_with_the_same_server() {
    let parted = parted(variable("SEED", 7), Sides::FormerPrimary, End::Stopped);
    let disk = parted.directory.freeze().after_kill();
    disk.cut_before([20], None);
    parted.rewind(&disk).unwrap();
    let interrupted = disk.take_frozen().into_values().next().unwrap().after_kill();
    let RewindDirectory::Opened(directory) = parted.opened(&interrupted) else {
        panic!("it was interrupted early");
    };
    assert!(directory.was_interrupted());
    let other = parted
        .server
        .history()
        .forked(3, parted.server.durable_log_end(), "another one");
    let error = directory
        .parting(&other, parted.server.durable_log_end())
        .unwrap_err();
    assert!(
        error.to_string().contains("an earlier rewind has fetched pages"),
        "{error}"
    );
    parted.close();
}

/// The log since the fork is kept on neither side for ever: then the error says what to do.
#[test]
fn log_that_is_gone_is_said() {
    let parted = parted(variable("SEED", 7), Sides::FormerPrimary, End::Stopped);
    let RewindDirectory::Opened(directory) = parted.opened(&parted.directory) else {
        panic!("it was not interrupted");
    };
    let history = parted.server.history();
    let mut source = LocalSource::new(&parted.server);
    let error = directory.plan(&mut source, &history, Lsn(64)).unwrap_err();
    assert!(matches!(error, StorageError::NotRewindable { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("its log begins at") && said.contains("take a new base backup"),
        "{error}"
    );
    drop(directory);
    parted.close();
}
