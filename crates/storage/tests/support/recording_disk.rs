//! A disk in memory that records what was written and what was made durable, and shows what a power cut leaves of it.
//!
//! Every file and directory is kept twice: as the programs see it, and as it is on the platter. Between the
//! two stands the list of changes that no sync has covered yet. A cut freezes all of it before some
//! operation; from one frozen state any number of images are made. An image holds what was durable, and of
//! the rest a random part:
//! - of a file's unsynced writes any subset, each in any subset of its sectors of 512 bytes;
//! - of a directory's unsynced changes of names the first few.
//!
//! The disk checks the log rule at each write of a page: no unsynced write of the log may lie before the page's LSN.
//! It can be told to ignore the syncs of a purpose, which is what a program without that sync would get.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use clearway_storage::disk::{Disk, DiskDirectory, DiskFile, LockHeld, OpenMode, SyncPurpose};
use clearway_storage::page;
use clearway_storage::wal::SEGMENT_SIZE;

const BLOCK: usize = 4096;
const SECTOR: u64 = 512;
static ZEROS: [u8; BLOCK] = [0; BLOCK];

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

/// A file's bytes; blocks of zeros take no memory.
#[derive(Debug, Clone, Default)]
struct Content {
    length: u64,
    blocks: BTreeMap<u64, Arc<[u8; BLOCK]>>,
}

impl Content {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.length = self.length.max(offset + bytes.len() as u64);
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (number, within) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let take = (bytes.len() - done).min(BLOCK - within);
            let part = &bytes[done..done + take];
            if take == BLOCK && part == &ZEROS[..] {
                self.blocks.remove(&number);
            } else {
                let block = self.blocks.entry(number).or_insert_with(|| Arc::new(ZEROS));
                Arc::make_mut(block)[within..within + take].copy_from_slice(part);
            }
            done += take;
        }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let count = self.length.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let mut done = 0;
        while done < count {
            let at = offset + done as u64;
            let (number, within) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let take = (count - done).min(BLOCK - within);
            match self.blocks.get(&number) {
                Some(block) => bytes[done..done + take].copy_from_slice(&block[within..within + take]),
                None => bytes[done..done + take].fill(0),
            }
            done += take;
        }
        count
    }

    fn set_length(&mut self, length: u64) {
        if length < self.length {
            let keep = length.div_ceil(BLOCK as u64);
            self.blocks.split_off(&keep);
            if let Some(block) = self.blocks.get_mut(&(length / BLOCK as u64)) {
                Arc::make_mut(block)[(length % BLOCK as u64) as usize..].fill(0);
            }
        }
        self.length = length;
    }
}

/// A change of a file that no sync has covered yet.
#[derive(Debug, Clone)]
enum Change {
    Write(u64, Arc<[u8]>),
    Zeros(u64, u64),
    Length(u64),
    Allocate(u64),
}

impl Change {
    fn apply(&self, content: &mut Content) {
        match self {
            Change::Write(offset, bytes) => content.write(*offset, bytes),
            Change::Zeros(offset, length) => {
                let mut at = *offset;
                while at < offset + length {
                    let take = (offset + length - at).min(BLOCK as u64 - at % BLOCK as u64);
                    content.write(at, &ZEROS[..take as usize]);
                    at += take;
                }
            }
            Change::Length(length) => content.set_length(*length),
            Change::Allocate(end) => content.length = content.length.max(*end),
        }
    }

    /// Applies the sectors that `survives` chooses.
    fn apply_torn(&self, content: &mut Content, mut survives: impl FnMut() -> bool) {
        let (offset, length) = match self {
            Change::Write(offset, bytes) => (*offset, bytes.len() as u64),
            Change::Zeros(offset, length) => (*offset, *length),
            _ => return self.apply(content),
        };
        let mut at = offset;
        while at < offset + length {
            let take = (offset + length - at).min(SECTOR - at % SECTOR);
            if survives() {
                match self {
                    Change::Write(_, bytes) => {
                        let from = (at - offset) as usize;
                        content.write(at, &bytes[from..from + take as usize]);
                    }
                    _ => content.write(at, &ZEROS[..take as usize]),
                }
            }
            at += take;
        }
    }

    fn touches_before(&self, end: u64) -> bool {
        match self {
            Change::Write(offset, _) | Change::Zeros(offset, _) => *offset < end,
            Change::Length(_) | Change::Allocate(_) => false,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Inode {
    now: Content,
    durable: Content,
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    File(usize),
    Directory,
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(OsString, Entry),
    Unlink(OsString),
    Rename(OsString, OsString),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<OsString, Entry>) {
        match self {
            NameChange::Link(name, entry) => {
                names.insert(name.clone(), *entry);
            }
            NameChange::Unlink(name) => {
                names.remove(name);
            }
            NameChange::Rename(from, to) => {
                if let Some(entry) = names.remove(from) {
                    names.insert(to.clone(), entry);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Directory {
    now: BTreeMap<OsString, Entry>,
    durable: BTreeMap<OsString, Entry>,
    unsynced: Vec<NameChange>,
}

impl Directory {
    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }
}

/// Everything on the disk at one instant, durable or not.
#[derive(Debug, Clone, Default)]
pub struct Frozen {
    inodes: Vec<Arc<Inode>>,
    directories: BTreeMap<PathBuf, Directory>,
}

/// What an image keeps of the unsynced changes of a file or a directory.
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
    /// Freeze before a sync for this, after so many others for it.
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

fn not_found(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("{} is not there", path.display()),
    )
}

fn split(path: &Path) -> io::Result<(PathBuf, OsString)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent.to_owned(), name.to_owned())),
        _ => Err(not_found(path)),
    }
}

impl Frozen {
    fn directory(&mut self, path: &Path) -> io::Result<&mut Directory> {
        self.directories.get_mut(path).ok_or_else(|| not_found(path))
    }

    fn entry(&mut self, path: &Path) -> io::Result<Option<Entry>> {
        let (parent, name) = split(path)?;
        Ok(self.directory(&parent)?.now.get(&name).copied())
    }

    fn change_file(&mut self, inode: usize, change: Change) {
        let inode = Arc::make_mut(&mut self.inodes[inode]);
        change.apply(&mut inode.now);
        inode.unsynced.push(change);
    }

    /// What a power cut leaves: a disk on which everything is durable. `keep` is asked for each file and directory.
    pub fn image(&self, random: &mut Random, mut keep: impl FnMut(&Path) -> Keep) -> RecordingDisk {
        let mut image = Frozen::default();
        self.keep_directory(Path::new("/"), random, &mut keep, &mut image);
        RecordingDisk::of(image)
    }

    /// An image that keeps a random part; often all of one kind of file and nothing of another.
    pub fn random_image(&self, random: &mut Random) -> RecordingDisk {
        let mode = random.below(8);
        self.image(random, |path| {
            let log = path.components().any(|part| part.as_os_str() == "wal");
            match mode {
                0 => Keep::All,
                1 => Keep::Nothing,
                2 if log => Keep::All,
                3 if !log => Keep::All,
                2 | 3 => Keep::Nothing,
                _ => Keep::Part,
            }
        })
    }

    /// What a kill leaves: all of it, what is not durable included.
    pub fn after_kill(&self) -> RecordingDisk {
        RecordingDisk::of(self.clone())
    }

    fn keep_directory(
        &self,
        path: &Path,
        random: &mut Random,
        keep: &mut impl FnMut(&Path) -> Keep,
        image: &mut Frozen,
    ) {
        let directory = self.directories.get(path).cloned().unwrap_or_default();
        let count = directory.unsynced.len() as u64;
        let kept = match keep(path) {
            Keep::All => count,
            Keep::Nothing => 0,
            Keep::Part => match random.below(4) {
                0 => 0,
                1 => count,
                _ => random.below(count + 1),
            },
        };
        let mut names = directory.durable;
        for change in &directory.unsynced[..kept as usize] {
            change.apply(&mut names);
        }
        for (name, entry) in &mut names {
            let path = path.join(name);
            match entry {
                Entry::Directory => self.keep_directory(&path, random, keep, image),
                Entry::File(inode) => {
                    let kept = &self.inodes[*inode];
                    let content = match keep(&path) {
                        Keep::All => kept.now.clone(),
                        Keep::Nothing => kept.durable.clone(),
                        Keep::Part => kept.keep_part(path.ends_with("control"), random),
                    };
                    *inode = image.inodes.len();
                    image.inodes.push(Arc::new(Inode {
                        now: content.clone(),
                        durable: content,
                        unsynced: Vec::new(),
                    }));
                }
            }
        }
        let directory = Directory {
            now: names.clone(),
            durable: names,
            unsynced: Vec::new(),
        };
        image.directories.insert(path.to_owned(), directory);
    }
}

impl Inode {
    /// The durable content with a random part of the changes. `torn_anywhere`: a write may also end at any byte.
    fn keep_part(&self, torn_anywhere: bool, random: &mut Random) -> Content {
        let mut content = self.durable.clone();
        // By file, so that often one is far ahead of another; in tenths.
        let survival = match random.below(4) {
            0 => 0,
            1 => 10,
            _ => 1 + random.below(9),
        };
        for change in &self.unsynced {
            if random.below(10) >= survival {
                continue;
            }
            match (random.below(4), change) {
                (0 | 1, Change::Write(offset, bytes)) if torn_anywhere => {
                    content.write(*offset, &bytes[..random.below(bytes.len() as u64) as usize]);
                }
                (0, _) => change.apply_torn(&mut content, || random.one_in(2)),
                (1, _) => {
                    let mut left = random.below(16);
                    change.apply_torn(&mut content, || {
                        left = left.saturating_sub(1);
                        left > 0
                    });
                }
                _ => change.apply(&mut content),
            }
        }
        content
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
        let log = path.parent().and_then(Path::parent).unwrap().join("wal");
        let Ok(names) = self.disk.directory(&log).map(|log| log.now.clone()) else {
            return;
        };
        for (name, entry) in names {
            let (Some(number), Entry::File(inode)) = (
                name.to_str().and_then(|name| u64::from_str_radix(name, 16).ok()),
                entry,
            ) else {
                continue;
            };
            let end = lsn.saturating_sub(number * SEGMENT_SIZE);
            if self.disk.inodes[inode]
                .unsynced
                .iter()
                .any(|change| change.touches_before(end))
            {
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

    /// The power is cut before each of these operations, counted from now; `before` is told just before.
    pub fn cut_before(&self, operations: impl IntoIterator<Item = u64>, before: Option<BeforeCut>) {
        let mut state = self.state();
        let now = state.operations;
        state.cuts = operations.into_iter().map(|after| now + 1 + after).collect();
        state.before_cut = before;
    }

    /// The power is cut before a sync for `purpose`, after so many others for it.
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

    /// How often each purpose has been synced for.
    pub fn syncs(&self) -> BTreeMap<SyncPurpose, u64> {
        self.state().syncs.clone()
    }

    /// Where the log rule was broken.
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

#[derive(Debug)]
struct RecordedFile {
    disk: RecordingDisk,
    path: PathBuf,
    inode: usize,
}

#[derive(Debug)]
struct RecordedDirectory {
    disk: RecordingDisk,
    path: PathBuf,
}

struct Locked {
    disk: RecordingDisk,
    path: PathBuf,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}

impl Disk for RecordingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.operation();
        let inode = match state.disk.entry(path)? {
            Some(Entry::Directory) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Entry::File(inode)) => {
                if mode == OpenMode::Truncate {
                    state.disk.change_file(inode, Change::Length(0));
                }
                inode
            }
            None if mode == OpenMode::Existing => return Err(not_found(path)),
            None => {
                let inode = state.disk.inodes.len();
                state.disk.inodes.push(Arc::default());
                let (parent, name) = split(path)?;
                let link = NameChange::Link(name, Entry::File(inode));
                state.disk.directory(&parent)?.change(link);
                inode
            }
        };
        Ok(Arc::new(RecordedFile {
            disk: self.clone(),
            path: path.to_owned(),
            inode,
        }))
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>> {
        self.state().disk.directory(path)?;
        Ok(Arc::new(RecordedDirectory {
            disk: self.clone(),
            path: path.to_owned(),
        }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation();
        if path.parent().is_none() || state.disk.entry(path)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (parent, name) = split(path)?;
        let link = NameChange::Link(name, Entry::Directory);
        state.disk.directory(&parent)?.change(link);
        state
            .disk
            .directories
            .insert(path.to_owned(), Directory::default());
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.state().disk.directory(path)?.now.keys().cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation();
        state.disk.entry(from)?.ok_or_else(|| not_found(from))?;
        let ((parent, from), (other, to)) = (split(from)?, split(to)?);
        assert_eq!(parent, other, "files are renamed within their directory");
        state
            .disk
            .directory(&parent)?
            .change(NameChange::Rename(from, to));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation();
        state.disk.entry(path)?.ok_or_else(|| not_found(path))?;
        let (parent, name) = split(path)?;
        state.disk.directory(&parent)?.change(NameChange::Unlink(name));
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>> {
        let locked = self.state().locked.insert(path.to_owned());
        Ok(locked.then(|| {
            Box::new(Locked {
                disk: self.clone(),
                path: path.to_owned(),
            }) as LockHeld
        }))
    }
}

impl DiskFile for RecordedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.disk.state().disk.inodes[self.inode].now.read(offset, bytes))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation();
        if bytes.len() == clearway_storage::PAGE_SIZE {
            state.check_page(&self.path, offset, bytes);
        }
        let zeros = bytes.chunks(BLOCK).all(|part| part == &ZEROS[..part.len()]);
        let change = if zeros {
            Change::Zeros(offset, bytes.len() as u64)
        } else {
            Change::Write(offset, bytes.into())
        };
        state.disk.change_file(self.inode, change);
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation();
        state
            .disk
            .change_file(self.inode, Change::Allocate(offset + length));
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation();
        state.disk.change_file(self.inode, Change::Length(length));
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().disk.inodes[self.inode].now.length)
    }

    fn sync_data(&self, purpose: SyncPurpose) -> io::Result<()> {
        self.sync_all(purpose)
    }

    fn sync_all(&self, purpose: SyncPurpose) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.sync(purpose) {
            let inode = Arc::make_mut(&mut state.disk.inodes[self.inode]);
            for change in std::mem::take(&mut inode.unsynced) {
                change.apply(&mut inode.durable);
            }
        }
        Ok(())
    }
}

impl DiskDirectory for RecordedDirectory {
    fn sync(&self, purpose: SyncPurpose) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.sync(purpose) {
            let directory = state.disk.directory(&self.path)?;
            directory.durable = directory.now.clone();
            directory.unsynced.clear();
        }
        Ok(())
    }
}
