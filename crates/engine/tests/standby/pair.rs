//! A primary, a standby, and the link between them.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine, Session, SessionInfo};
use clearway_storage::backup::{self, Backup};
use clearway_storage::{Lsn, Storage};

use crate::common;

/// Time after which a test has failed, whatever it waits for.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The number that the link has among the sessions of the primary.
const LINK_ID: u32 = 900_001;

pub struct Pair {
    pub primary: Arc<Engine>,
    /// `None` while it is closed.
    standby: Option<Arc<Engine>>,
    link: Option<Link>,
    config: Config,
    standby_dir: PathBuf,
    _directory: tempfile::TempDir,
}

/// A configuration for both: no background vacuum, and replay that waits for ever.
pub fn config() -> Config {
    Config {
        autovacuum: false,
        wal_keep_size: "512MB".parse().unwrap(),
        max_standby_streaming_delay: "never".parse().unwrap(),
        ..common::config()
    }
}

impl Pair {
    /// A primary on which `setup` was run, and a standby that follows it.
    pub fn new(setup: &str) -> Pair {
        Pair::with_config(setup, config())
    }

    pub fn with_config(setup: &str, config: Config) -> Pair {
        let directory = tempfile::tempdir().unwrap();
        let primary = Engine::open(directory.path().join("primary"), config.clone()).unwrap();
        common::run(&mut primary.session(SessionInfo::default()).unwrap(), setup);
        let standby_dir = directory.path().join("standby");
        copy(primary.storage(), &standby_dir);
        let mut pair = Pair {
            primary,
            standby: None,
            link: None,
            config,
            standby_dir,
            _directory: directory,
        };
        pair.open_standby();
        pair
    }

    pub fn standby(&self) -> &Arc<Engine> {
        self.standby.as_ref().expect("the standby is open")
    }

    pub fn standby_dir(&self) -> &Path {
        &self.standby_dir
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn open_standby(&mut self) {
        let standby = Engine::open_standby(&self.standby_dir, self.config.clone()).unwrap();
        self.link = Some(Link::new(&self.primary, &standby));
        self.standby = Some(standby);
    }

    /// No more log is moved.
    pub fn cut(&mut self) {
        if let Some(link) = self.link.take() {
            link.stop();
        }
    }

    /// The standby is gone, in order or as if it was killed. Its sessions are closed.
    pub fn close_standby(&mut self, in_order: bool) {
        self.cut();
        let standby = self.standby.take().expect("the standby is open");
        if in_order {
            standby.shutdown().unwrap();
        }
        standby.storage().stop_threads();
        let storage = Arc::downgrade(standby.storage());
        drop(standby);
        assert!(storage.upgrade().is_none(), "something still uses the standby");
    }

    /// A session of the primary.
    pub fn writer(&self) -> Session {
        self.primary.session(SessionInfo::default()).unwrap()
    }

    /// A session of the standby.
    pub fn reader(&self) -> Session {
        self.standby().session(SessionInfo::default()).unwrap()
    }

    /// Runs statements on the primary.
    #[track_caller]
    pub fn write(&self, sql: &str) {
        let ran = common::run(&mut self.writer(), sql);
        assert!(!ran.contains("ERROR"), "{sql}: {ran}");
    }

    /// All that was logged on the primary so far.
    pub fn logged(&self) -> Lsn {
        let wal = &self.primary.storage().wal;
        let end = wal.reserved();
        wal.flush(end);
        end
    }

    /// Waits until the standby has replayed all that was logged on the primary so far.
    #[track_caller]
    pub fn catch_up(&self) {
        let end = self.logged();
        assert!(self.has_replayed(end, PATIENCE), "{:?}", self.standby().storage());
    }

    pub fn has_replayed(&self, end: Lsn, patience: Duration) -> bool {
        let standby = self.standby().storage().standby().unwrap();
        let replayed = standby.wait_replayed(end, patience);
        assert_eq!(standby.failure(), None);
        replayed
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Moves log until it is stopped.
struct Link {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Link {
    fn new(primary: &Arc<Engine>, standby: &Arc<Engine>) -> Link {
        let (primary, standby) = (Arc::clone(primary.storage()), Arc::clone(standby.storage()));
        let mut receiver = standby.receive_log().unwrap();
        drop(standby);
        let follower = primary
            .retention
            .follow(LINK_ID, receiver.position(), None)
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            while !stopped.load(Ordering::Relaxed) {
                let read = primary.read_log(&follower, &mut bytes).unwrap();
                if read == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                let position = receiver.position();
                receiver.write(position, &bytes[..read]).unwrap();
                let end = receiver.sync().unwrap();
                follower.advance(end, false);
            }
        });
        Link { stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Copies a database in use.
fn copy(storage: &Arc<Storage>, target: &Path) {
    let backup = Backup::begin(storage, LINK_ID).unwrap();
    let relations = target.join(backup::RELATIONS_DIRECTORY);
    let log = target.join(backup::LOG_DIRECTORY);
    fs::create_dir_all(&relations).unwrap();
    fs::create_dir_all(&log).unwrap();
    for rel in backup.relations().unwrap() {
        if let Some(copy) = backup.open_relation(rel).unwrap() {
            let mut bytes = vec![0; copy.length as usize];
            copy.read_at(&mut bytes, 0).unwrap();
            fs::write(relations.join(rel.0.to_string()), bytes).unwrap();
        }
    }
    let end = backup.finish().unwrap();
    for (name, start) in backup.segments(end.position) {
        let file = fs::File::create(log.join(name)).unwrap();
        file.set_len(clearway_storage::wal::SEGMENT_SIZE).unwrap();
        let mut bytes = vec![0; clearway_storage::wal::SEGMENT_SIZE as usize];
        backup.read_log(start, end.position, &mut bytes).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
    }
    fs::write(target.join(backup::CONTROL_NAME), end.control).unwrap();
}

/// Waits until `is_so`.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
