//! Storage: pages, the buffer pool, the write-ahead log, heaps, B+trees, checkpoints and recovery.
//!
//! A room depends on those above it only; `scripts/module-cycles` finds a circle of rooms.
//!
//! | room | holds |
//! | --- | --- |
//! | `error`, `page` | errors and findings of checks; the form of a page, and the types of positions and page numbers |
//! | [`disk`] | [`disk::Disk`]: the file system under everything here |
//! | [`wal`] | the log: insertion, flushing, reading, segments; timelines, which say whose log a position belongs to |
//! | `files` | what is in a data directory besides the log: relations and their lengths, the control file, the commit log's pages |
//! | `replication` | what others need of this server, and what a standby has of another one: the state that commits, sessions and followers look at |
//! | [`commit`] | the end of a transaction: the order of its steps |
//! | `buffer` | pages in memory |
//! | `change` | [`AtomicChange`]: changing pages and logging it |
//! | `storage` | [`Storage`]: everything of one data directory that statements use, from one `Arc` |
//! | `records` | what each kind of log record says, and what it does when it is replayed |
//! | [`heap`], [`btree`] | rows; indexes |
//! | [`standby`] | receiving the log of another server, and replaying it beside sessions |
//! | `open` | opening a data directory: recovery, to the log's end or to a point; checkpoints; a promotion |
//! | [`backup`] | making a copy of the files for others, and a standby's directory of such a copy |
//! | [`rewind`] | making a former primary's directory a standby's again |
//! | `maintenance` | vacuum; the check of what is on disk |
//!
//! README.md says where the rules of access are.
//!
//! # A data directory
//! A transaction changes a page. After a crash the page is what the log says.
//!
//! ```
//! use clearway_storage::{PageKind, Storage, StorageError, StorageOptions};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let dir = directory.path();
//! let (storage, _recovered) = Storage::open(dir, StorageOptions::default())?;
//! let session = storage.proc_array.attach().expect("a place for a session");
//! let numbers = storage.create_rel()?;
//! let xid = storage.assign_xid(session)?;
//! let page = storage.extend(numbers)?;
//! let id = page.page_id();
//! let mut latched = page.into_exclusive();
//! let mut change = storage.begin_change(xid)?;
//! change.init_page(&mut latched, PageKind(77), 8);
//! change.write(&mut latched, 100, &7_u64.to_le_bytes());
//! change.finish()?;
//! drop(latched);
//! storage.commit(session, xid, true)?;
//!
//! storage.stop_threads(); // they hold the directory too
//! drop(storage); // as a crash: no checkpoint
//! let (storage, recovered) = Storage::open(dir, StorageOptions::default())?;
//! assert!(recovered.records > 0);
//! assert_eq!(storage.pin(id)?.shared().bytes()[100], 7);
//! # Ok::<(), StorageError>(())
//! ```
//!
//! # Records of your own
//! A structure of the program's own, here words in memory and in a file, is as durable as pages: what the log has behind the
//! last checkpoint is handed to the program again. The rules are in [`wal::own_records`].
//!
//! ```
//! use std::path::PathBuf;
//! use std::sync::{Arc, Mutex};
//!
//! use clearway_storage::wal::Wal;
//! use clearway_storage::wal::own_records::{OwnError, OwnRecord, OwnRecords};
//! use clearway_storage::wal::record::RecordKind;
//! use clearway_storage::{Lsn, Storage, StorageError, StorageOptions};
//! use clearway_txn::Xid;
//!
//! const WORD_ADDED: RecordKind = RecordKind::own(1);
//!
//! /// The words, and the end of the last one's record.
//! #[derive(Debug)]
//! struct Words(PathBuf, Mutex<(Vec<String>, Lsn)>);
//!
//! impl OwnRecords for Words {
//!     fn redo(&self, record: &OwnRecord<'_>) -> Result<(), OwnError> {
//!         let mut known = self.1.lock().unwrap();
//!         if record.end > known.1 {
//!             known.0.push(String::from_utf8(record.payload.to_vec())?);
//!             known.1 = record.end;
//!         }
//!         Ok(())
//!     }
//!     fn make_durable(&self, _redo: Lsn, log: &Wal) -> Result<(), OwnError> {
//!         let known = self.1.lock().unwrap();
//!         log.flush(known.1);
//!         // A program that is to survive a power cut writes a new file, syncs it, and renames it.
//!         Ok(std::fs::write(&self.0, format!("{}\n{}", known.1.0, known.0.join("\n")))?)
//!     }
//! }
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let (dir, file) = (directory.path().join("database"), directory.path().join("words"));
//! let open = || {
//!     let text = std::fs::read_to_string(&file).unwrap_or_default();
//!     let mut lines = text.lines();
//!     let end = Lsn(lines.next().map_or(0, |end| end.parse().unwrap()));
//!     let words = Arc::new(Words(file.clone(), Mutex::new((lines.map(str::to_owned).collect(), end))));
//!     let own_records = Some(words.clone() as Arc<dyn OwnRecords>);
//!     let opened = Storage::open(&dir, StorageOptions { own_records, ..StorageOptions::default() });
//!     opened.map(|(storage, _)| (storage, words))
//! };
//! let (storage, words) = open()?;
//! let add = |word: &str| {
//!     let mut known = words.1.lock().unwrap();
//!     known.1 = storage.log_own(WORD_ADDED, Xid::INVALID, word.as_bytes())?;
//!     known.0.push(word.to_owned());
//!     Ok::<Lsn, StorageError>(known.1)
//! };
//! add("heron")?;
//! storage.checkpoint()?;
//! storage.wal.flush(add("egret")?);
//!
//! drop(storage); // as a crash: the file has the heron, and the log the egret
//! let (_storage, words) = open()?;
//! assert_eq!(words.1.lock().unwrap().0, ["heron", "egret"]);
//! # Ok::<(), StorageError>(())
//! ```
//!
//! # The log by itself
//! Records of any kind on segment files; what is flushed is read again after a crash.
//!
//! ```
//! use std::sync::Arc;
//!
//! use clearway_machine::Native;
//! use clearway_storage::Lsn;
//! use clearway_storage::disk::NativeDisk;
//! use clearway_storage::wal::reader::LogReader;
//! use clearway_storage::wal::record::RecordKind;
//! use clearway_storage::wal::{LogOptions, SEGMENT_SIZE, SegmentFiles, Wal};
//! use clearway_txn::Xid;
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let dir = directory.path().join("log");
//! let start = Lsn(SEGMENT_SIZE);
//! let segments = SegmentFiles::open(Arc::new(NativeDisk), dir.clone(), true)?;
//! let log = Wal::<Native, _>::new(segments, LogOptions::default(), start, start);
//! log.make_room()?;
//! let end = log.insert_any(RecordKind::own(1), Xid(7), b"Alice has 70");
//! log.flush(end);
//! drop(log);
//!
//! let segments = SegmentFiles::open(Arc::new(NativeDisk), dir, true)?;
//! let mut reader = LogReader::new(&segments, start);
//! let (record, _) = reader.next_record()?.expect("it was flushed");
//! assert_eq!((record.xid, record.payload), (Xid(7), &b"Alice has 70"[..]));
//! assert!(reader.next_record()?.is_none());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # The pool by itself
//! Pages of a device of your own. A page that was changed is written before its frame gets another one, and the log before
//! the page.
//!
//! ```
//! use std::sync::Mutex;
//!
//! use clearway_machine::Native;
//! use clearway_storage::{
//!     BufferPool, BufferPoolOptions, Lsn, PAGE_SIZE, PageDevice, PageId, RelId, Result, StorageError,
//! };
//!
//! /// Pages of one relation.
//! #[derive(Default)]
//! struct Memory(Mutex<Vec<[u8; PAGE_SIZE]>>);
//!
//! impl PageDevice for Memory {
//!     fn check_exists(&self, page: PageId) -> Result<()> {
//!         let is_there = (page.block as usize) < self.0.lock().unwrap().len();
//!         let missing = StorageError::NoSuchPage { rel: page.rel.0, block: page.block };
//!         is_there.then_some(()).ok_or(missing)
//!     }
//!     fn extend(&self, rel: RelId, enter: &mut dyn FnMut(PageId)) -> Result<()> {
//!         let mut pages = self.0.lock().unwrap();
//!         enter(PageId { rel, block: pages.len() as u32 });
//!         pages.push([0; PAGE_SIZE]);
//!         Ok(())
//!     }
//!     fn read(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
//!         *bytes = self.0.lock().unwrap()[page.block as usize];
//!         Ok(())
//!     }
//!     fn write(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
//!         self.0.lock().unwrap()[page.block as usize] = *bytes;
//!         Ok(())
//!     }
//!     fn newest_early_commit(&self) -> Lsn {
//!         Lsn(0)
//!     }
//!     fn flush_log(&self, _upto: Lsn) {}
//! }
//!
//! let pool = BufferPool::<Native, _>::with_frames(16, BufferPoolOptions::default(), Memory::default());
//! for _ in 0..100 {
//!     pool.extend(RelId(16))?;
//! }
//! assert_eq!(pool.resident_pages(RelId(16)), 16);
//! let page = pool.pin(PageId { rel: RelId(16), block: 3 })?;
//! assert_eq!(page.shared().bytes().len(), PAGE_SIZE);
//! # Ok::<(), StorageError>(())
//! ```
//!
//! # Rules for errors
//! - E1: an error of the log's device, or a failed sync of a file or directory, ends the process with a message on
//!   standard error. It is not tried again: after a failed fsync the content of the disk is unknown.
//!   Directories are open from the start, so that no sync fails for want of a descriptor. (At the start a
//!   failed sync is an error: nothing was acknowledged yet.)
//! - E2: a full disk is `DiskFull` (53100), before anything is changed. `begin_change`, `assign_xid`, `create_rel`
//!   and `commit` make sure of room in the log for a segment ahead; a rollback needs none.
//! - E3: a page that is not what was last written in its place is `CorruptPage` with file and offset, for the
//!   caller that asks for it; the rest goes on. Its checksum covers its relation and number, a page of zeros is
//!   never valid, and each relation's length is known from the last checkpoint and the log (`src/files/lengths.rs`);
//!   a relation without its file is `MissingFile`. A page newer than the log's end, or a log that ends before
//!   the control file says so, is an error too.
//! - E4: damage to log that was durable is an error with file and offset, and not the log's end, if a later record
//!   proves the damage (`src/open/recovery/mod.rs` says what can be proven and what cannot). Recovery then
//!   changes nothing.
//! - E5: everything in a data directory goes through `disk::Disk`. Each sync there has a purpose, and an image that
//!   needs it (`tests/power_cuts.rs` lists them).

pub mod backup;
pub mod btree;
mod buffer;
mod change;
pub mod commit;
pub mod disk;
mod error;
mod files;
pub mod heap;
mod maintenance;
mod open;
pub mod page;
mod records;
mod replication;
pub mod rewind;
pub mod standby;
mod storage;
pub mod wal;

pub use backup::received_copy;
pub use buffer::{
    BufferClockVariant, BufferMapVariant, BufferPool, BufferPoolOptions, FrameRing, PageCounts, PageDevice,
    PageExclusive, PageLatchVariant, PageReadVariant, PageShared, PageUpdate, PagesOnDisk, PinnedPage,
    RacyPage,
};
pub use change::{AtomicChange, ChangeLog};
pub use commit::{
    AnswerLevel, BeforeVisible, CommitCounters, CommitOptions, CommitOrderVariant, CommitPath, CommitStates,
    CommitVariants, CommitWait, Commits, Gate, LockReleaseVariant, NotCommitted, Publish, Reader,
    RecentCommits, RowInHand, SeenCommits, SessionSnapshot, Unsecured, wall_clock,
};
pub use error::findings::{Finding, Findings, Progress};
pub use error::{Result, StorageError};
pub use files::{descriptors, directory_state};
pub use maintenance::vacuum;
pub use open::directory_log;
pub use open::recovery::{RecoveryPoint, RecoveryReport, RecoveryTarget};
pub use page::{Lsn, NoPosition, PAGE_HEADER, PAGE_SIZE, PageId, PageKind, RelId};
pub use replication::{cleanup, retention, running_transactions, sync_replication};
pub use standby::{ReplayPause, Standby, StandbyOptions};
pub use storage::background_state::{CHECKPOINTS, CheckpointCounts};
pub use storage::page_room::PageRoomVariant;
pub use storage::{Storage, StorageOptions, background};
pub use wal::{log_digest, timeline};
