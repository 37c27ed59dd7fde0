//! A disk in memory that records what was written and what was made durable, and shows what a power cut leaves of it.
//!
//! Every file and directory is kept twice: as the programs see it, and as it is on the platter. Between the
//! two stands the list of changes that no sync has covered yet. A cut freezes all of it before some
//! operation; from one frozen state any number of images are made. An image holds what was durable, and of
//! the rest a random part:
//! - of a file's unsynced writes any subset, each in any subset of its sectors of 512 bytes;
//! - of a directory's unsynced changes of names the first few.
//!
//! The disk checks the log rule at each write of a page: the log's bytes before the page's LSN are durable. An unsynced
//! write that repeats some of them, as one in whole blocks does, breaks no rule.
//! It can ignore the syncs of a purpose, which is what a program without that sync would get.

#![allow(dead_code)]

mod content;
mod files;
mod frozen;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use clearway_storage::disk::SyncPurpose;
use clearway_storage::page;
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::segment_name::parse_segment_name;

use frozen::Entry;
pub use frozen::Frozen;

/// Numbers from a seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// The unsynced changes of a file or a directory that an image keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    All,
    Nothing,
    /// A random part.
    Part,
}

type BeforeCut = Arc<dyn Fn(u64) + Send + Sync>;

#[derive(Default)]
struct State {
    disk: Frozen,
    locked: BTreeSet<PathBuf>,
    ignored: BTreeSet<SyncPurpose>,
    syncs: BTreeMap<SyncPurpose, u64>,
    operations: u64,
    /// Before which operations the state is frozen, and what is called before that.
    cuts: BTreeSet<u64>,
    /// Freeze before a sync for this purpose, after this many others for it.
    cut_before_sync: Option<(SyncPurpose, u64)>,
    before_cut: Option<BeforeCut>,
    frozen: BTreeMap<u64, Frozen>,
    violations: Vec<String>,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Default)]
pub struct RecordingDisk(Arc<Mutex<State>>);

impl std::fmt::Debug for RecordingDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordingDisk")
    }
}

impl State {
    /// Counts an operation, and freezes the state if the power is cut before it.
    fn operation(&mut self) {
        self.operations += 1;
        if self.cuts.remove(&self.operations) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let number = self.operations;
        if let Some(before_cut) = self.before_cut.clone() {
            before_cut(number);
        }
        self.frozen.insert(number, self.disk.clone());
    }

    fn sync(&mut self, purpose: SyncPurpose) -> bool {
        self.operation();
        match &mut self.cut_before_sync {
            Some((wanted, 0)) if *wanted == purpose => {
                self.cut_before_sync = None;
                self.cut();
            }
            Some((wanted, others)) if *wanted == purpose => *others -= 1,
            _ => {}
        }
        *self.syncs.entry(purpose).or_default() += 1;
        !self.ignored.contains(&purpose)
    }

    /// The log rule.
    fn check_page(&mut self, path: &Path, offset: u64, bytes: &[u8]) {
        let in_base = path.parent().is_some_and(|parent| parent.ends_with("base"));
        let lsn = page::lsn(bytes).0;
        if !in_base || lsn == 0 {
            return;
        }
        let log = path.parent().and_then(Path::parent).unwrap().join("pg_wal");
        let Ok(names) = self.disk.directory(&log).map(|log| log.now.clone()) else {
            return;
        };
        for (name, entry) in names {
            let (Some((_, number)), Entry::File(inode)) = (name.to_str().and_then(parse_segment_name), entry)
            else {
                continue;
            };
            let end = lsn.saturating_sub(number * SEGMENT_SIZE);
            if !self.disk.inodes[inode].is_durable_before(end) {
                self.violations.push(format!(
                    "the page at {offset} of {} was written with LSN {lsn} before log segment {number} was durable up to it",
                    path.display()
                ));
            }
        }
    }
}

impl RecordingDisk {
    /// An empty disk on which the directory `path` is, durably.
    pub fn with_directory(path: &Path) -> Self {
        let disk = Self::default();
        {
            let mut state = disk.state();
            for ancestor in path.ancestors() {
                let directory = state.disk.directories.entry(ancestor.to_owned()).or_default();
                debug_assert!(directory.unsynced.is_empty());
            }
            for ancestor in path.ancestors() {
                if let (Some(parent), Some(name)) = (ancestor.parent(), ancestor.file_name()) {
                    let parent = state.disk.directories.get_mut(parent).unwrap();
                    parent.now.insert(name.to_owned(), Entry::Directory);
                    parent.durable.insert(name.to_owned(), Entry::Directory);
                }
            }
        }
        disk
    }

    fn of(disk: Frozen) -> Self {
        Self(Arc::new(Mutex::new(State {
            disk,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Syncs for these purposes do nothing from now on.
    pub fn ignore(&self, purposes: impl IntoIterator<Item = SyncPurpose>) {
        self.state().ignored.extend(purposes);
    }

    /// The power is cut before each of these operations, counted from now; `before` is called just before.
    pub fn cut_before(&self, operations: impl IntoIterator<Item = u64>, before: Option<BeforeCut>) {
        let mut state = self.state();
        let now = state.operations;
        state.cuts = operations.into_iter().map(|after| now + 1 + after).collect();
        state.before_cut = before;
    }

    /// The power is cut before a sync for `purpose`, after `others` others for it.
    pub fn cut_before_sync(&self, purpose: SyncPurpose, others: u64) {
        self.state().cut_before_sync = Some((purpose, others));
    }

    /// The states at the cuts so far, by the number of the operation; they are forgotten here.
    pub fn take_frozen(&self) -> BTreeMap<u64, Frozen> {
        std::mem::take(&mut self.state().frozen)
    }

    /// The state now.
    pub fn freeze(&self) -> Frozen {
        self.state().disk.clone()
    }

    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Number of syncs for each purpose.
    pub fn syncs(&self) -> BTreeMap<SyncPurpose, u64> {
        self.state().syncs.clone()
    }

    /// Violations of the log rule.
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    /// The names and lengths of a directory's files.
    pub fn files(&self, path: &Path) -> Vec<(String, u64)> {
        let mut state = self.state();
        let names = state
            .disk
            .directory(path)
            .map(|directory| directory.now.clone())
            .unwrap_or_default();
        names
            .into_iter()
            .filter_map(|(name, entry)| match entry {
                Entry::File(inode) => Some((
                    name.to_string_lossy().into_owned(),
                    state.disk.inodes[inode].now.length,
                )),
                Entry::Directory => None,
            })
            .collect()
    }
}
