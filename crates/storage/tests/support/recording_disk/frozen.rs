//! The disk at one instant, durable or not, and the images that a power cut may leave of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::{Change, Content};
use super::{Keep, Random, RecordingDisk};

#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    pub(super) now: Content,
    pub(super) durable: Content,
    pub(super) unsynced: Vec<Change>,
}

impl Inode {
    /// True if its bytes before `end` are durable. A block that is written again with the same bytes before `end` is.
    pub(super) fn is_durable_before(&self, end: u64) -> bool {
        self.unsynced.iter().filter_map(Change::range).all(|range| {
            let touched = range.start..range.end.min(end);
            self.now.range(touched.clone()) == self.durable.range(touched)
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    File(usize),
    Directory,
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
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
pub(super) struct Directory {
    pub(super) now: BTreeMap<OsString, Entry>,
    pub(super) durable: BTreeMap<OsString, Entry>,
    pub(super) unsynced: Vec<NameChange>,
}

impl Directory {
    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }
}

/// Everything on the disk at one instant, durable or not.
#[derive(Debug, Clone, Default)]
pub struct Frozen {
    pub(super) inodes: Vec<Arc<Inode>>,
    pub(super) directories: BTreeMap<PathBuf, Directory>,
}

pub(super) fn not_found(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("{} is not there", path.display()),
    )
}

pub(super) fn split(path: &Path) -> io::Result<(PathBuf, OsString)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent.to_owned(), name.to_owned())),
        _ => Err(not_found(path)),
    }
}

impl Frozen {
    pub(super) fn directory(&mut self, path: &Path) -> io::Result<&mut Directory> {
        self.directories.get_mut(path).ok_or_else(|| not_found(path))
    }

    pub(super) fn entry(&mut self, path: &Path) -> io::Result<Option<Entry>> {
        let (parent, name) = split(path)?;
        Ok(self.directory(&parent)?.now.get(&name).copied())
    }

    pub(super) fn change_file(&mut self, inode: usize, change: Change) {
        let inode = Arc::make_mut(&mut self.inodes[inode]);
        change.apply(&mut inode.now);
        inode.unsynced.push(change);
    }

    /// The disk after a power cut: everything on it is durable. `keep` is asked for each file and directory.
    pub fn image(&self, random: &mut Random, mut keep: impl FnMut(&Path) -> Keep) -> RecordingDisk {
        let mut image = Frozen::default();
        self.keep_directory(Path::new("/"), random, &mut keep, &mut image);
        RecordingDisk::of(image)
    }

    /// An image that keeps a random part; often all of one kind of file and nothing of another.
    pub fn random_image(&self, random: &mut Random) -> RecordingDisk {
        let mode = random.below(8);
        self.image(random, |path| {
            let log = path.components().any(|part| part.as_os_str() == "pg_wal");
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

    /// The disk after a kill: all of it, what is not durable included.
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
