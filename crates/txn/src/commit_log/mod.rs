//! The commit log: how each transaction has ended, two bits a transaction. The switch `commit_log`.
//!
//! # An example
//! Alice's transaction 100 inserts a row and commits. The row carries the xid and nothing else, since the transaction
//! cannot visit all of its rows when it commits.
//!
//! | time | Alice | Bob | the checkpointer |
//! | --- | --- | --- | --- |
//! | 1 | her commit record is on disk | | |
//! | 2 | sets 100 to *committed* here | | is writing the same page of the log: its copy says *in progress* |
//! | 3 | leaves the array | | |
//! | 4 | | meets the row: 100 does not run, and is *committed* here | |
//! | 5 | | | has written the copy: the page counts as changed still, since 100 came after the copy |
//!
//! If the page counted as clean at time 5, a checkpoint would end without Alice's commit on disk, and after a crash
//! recovery, which begins behind her record, would take 100 for aborted.
//!
//! # Pages
//! 8 KiB each, of which the first 24 bytes are the device's; [`XIDS_PER_PAGE`] statuses follow, lowest bits first. A
//! page is cached in the slot `page % CACHED_PAGES`. Consecutive pages have different slots, and most questions are
//! about recent transactions, so choosing a victim by use would pay for nothing: the newest 4 million transactions are
//! cached, and older ones have left hint bits on the rows they touched. Memory: 1 MiB.
//!
//! # Rules, for every variant
//! - R1: a page is written only through [`StatusDevice::write_page`] with the newest log position of the commits on it,
//!   so that no commit is on disk here before its record is on disk there.
//! - R2: a page is read, written or replaced by one worker at a time: two writers of one page cannot overtake each
//!   other, and a page read is the newest one written.
//! - R3: a page is clean only if no status on it was set since the copy was made that was written.
//! - R4: a status never changes once it is set, other than from SubCommitted.
//! - R5: a worker that finds its page cached waits for no reading or writing of pages.
//!
//! A variant is a file with a [`StatusLog`].
//!
//! | variant | a status is read under | and set under | by | memory beside the pages |
//! | --- | --- | --- | --- | --- |
//! | `latch` | one latch, shared | the same, exclusive | its worker | |
//! | `banks` | its bank's latch, shared | the same, exclusive | its worker | a buffer and two latches a bank |
//! | `group` | its bank's latch, shared | the same, exclusive | the first of those at once | 128 bytes a worker |
//! | `atomic` | nothing: one load | nothing: one compare-and-swap | its worker | 2.3 MiB |
//!
//! `latch`, `banks` and `group` keep their pages in `bank`.

mod atomic;
mod bank;
mod banks;
mod group;
mod latch;
mod page;
#[cfg(test)]
mod tests;

use std::io;

use clearway_latch::{LwLockOptions, LwLockVariant};
use clearway_machine::{Machine, Native, Switch, variants};

use crate::Xid;

pub use page::{COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, XIDS_PER_PAGE};

/// The commit log has no place for this xid and later ones: the numbers of its pages have 32 bits.
pub const XID_LIMIT: Xid = Xid(XIDS_PER_PAGE << 32);

/// Pages cached: 4 million transactions.
const CACHED_PAGES: usize = 128;

/// The operations of a variant. It is asked about xids from [`Xid::FIRST_NORMAL`] on.
pub(crate) trait StatusLog<M: Machine, D: StatusDevice> {
    /// A log over `device`, with nothing cached; a variant with banks has `banks` of them, a power of two.
    fn new(device: D, banks: usize, lwlock: LwLockOptions) -> Self;

    /// The device underneath.
    fn device(&self) -> &D;

    /// The status of `xid`.
    fn get(&self, xid: Xid) -> io::Result<Status>;

    /// Sets the status of `xid`; `lsn` is the end of the log record that says so, or 0.
    fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()>;

    /// Adds the statuses in `content`, what follows the header of page `number`. By R4 adding is an OR, in any order.
    fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()>;

    /// Writes every page that has changed by now.
    fn flush_all(&self) -> io::Result<()>;
}

variants! {
    /// The protection of the commit log's pages.
    pub enum CommitLogVariant = "commit_log", best Latch, planned [] {
        /// One latch over everything.
        Latch = "latch": latch::Log<M, D>,
        /// A latch for each of 16 banks, to which the pages are dealt out.
        Banks = "banks": banks::Log<M, D>,
        /// In a group: those that end at once on one page, by the first of them, over the banks.
        Group = "group": group::Log<M, D>,
        /// No latch: a status is read by one load and set by one compare-and-swap in its page.
        Atomic = "atomic": atomic::Log<M, D>,
    }
    why {
        Latch: "On two busy CPUs no variant differs from it by more than the noise, with the sync and without."
            in "docs/mechanisms/commit-log.md#variants";
        Atomic: "With up to 256 clients on two and four sockets it makes 0.99 to 1.01 times the \
            commits of latch, simulated; no reader in the simulation asks for statuses."
            in "docs/commit-path-predictions.md#the-commit-log-commit-log";
    }

    #[derive(Debug)]
    enum Logs[M: Machine, D: StatusDevice], called by dispatch;
}

impl<M: Machine, D: StatusDevice> Logs<M, D> {
    fn new(variant: CommitLogVariant, device: D, banks: usize, lwlock: LwLockOptions) -> Self {
        dispatch!(new variant => StatusLog::new(device, banks, lwlock))
    }
}

/// The variants that a commit log is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitLogOptions {
    /// The switch `commit_log`.
    pub variant: CommitLogVariant,
    /// Banks of `banks` and `group`, rounded up to a power of two, 128 at most; 16 by default. With one bank `group` is that of
    /// PostgreSQL 11 to 16.
    pub banks: u32,
    /// The options of its LwLocks.
    pub lwlock: LwLockOptions,
}

impl Default for CommitLogOptions {
    fn default() -> Self {
        Self {
            variant: CommitLogVariant::default(),
            banks: banks::BANKS as u32,
            lwlock: LwLockOptions::default(),
        }
    }
}

impl CommitLogOptions {
    /// One for each variant: what test suites run over.
    pub fn each_variant() -> impl Iterator<Item = Self> {
        CommitLogVariant::ALL.iter().map(|&variant| Self {
            variant,
            ..Self::default()
        })
    }
}

impl From<LwLockOptions> for CommitLogOptions {
    fn from(lwlock: LwLockOptions) -> Self {
        Self {
            lwlock,
            ..Self::default()
        }
    }
}

impl From<LwLockVariant> for CommitLogOptions {
    fn from(lwlock: LwLockVariant) -> Self {
        LwLockOptions::from(lwlock).into()
    }
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Not ended, or lost in a crash. The caller has made sure beforehand that it is not running.
    InProgress = 0,
    /// Committed.
    Committed = 1,
    /// Rolled back.
    Aborted = 2,
    /// A subtransaction whose parent decides.
    SubCommitted = 3,
}

impl Status {
    fn from_bits(bits: u8) -> Status {
        match bits & 3 {
            0 => Status::InProgress,
            1 => Status::Committed,
            2 => Status::Aborted,
            _ => Status::SubCommitted,
        }
    }
}

/// The device of commit-log pages.
///
/// R2 keeps two accesses of one page apart. Pages with different numbers are read and written at once, under every
/// variant that has several banks or slots, and beside a flush: what they have in common is for the device to guard.
pub trait StatusDevice: Send + Sync {
    /// Reads page `number`; `false` if it has never been written (`page` is then all zero).
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool>;
    /// Writes page `number`, after making the log durable up to position `lsn`.
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()>;
}

impl<D: StatusDevice + ?Sized> StatusDevice for Box<D> {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        (**self).read_page(number, page)
    }
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
        (**self).write_page(number, page, lsn)
    }
}

/// The commit log.
#[derive(Debug)]
pub struct CommitLog<M: Machine = Native, D: StatusDevice = Box<dyn StatusDevice>>(Logs<M, D>);

impl<M: Machine, D: StatusDevice> CommitLog<M, D> {
    /// A commit log over `device`, with nothing cached.
    pub fn new(device: D, options: impl Into<CommitLogOptions>) -> Self {
        let options = options.into();
        let banks = (options.banks as usize)
            .clamp(1, CACHED_PAGES)
            .next_power_of_two();
        Self(Logs::new(options.variant, device, banks, options.lwlock))
    }

    /// The device underneath.
    pub fn device(&self) -> &D {
        dispatch!(&self.0, log => log.device())
    }

    /// The status of `xid`.
    #[inline]
    pub fn get(&self, xid: Xid) -> io::Result<Status> {
        match xid {
            Xid::INVALID => Ok(Status::Aborted),
            Xid::BOOTSTRAP => Ok(Status::Committed),
            _ => dispatch!(&self.0, log => log.get(xid)),
        }
    }

    /// Records how `xid` ended; `lsn` is the end of the log record that says so (0 if there is none).
    pub fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        assert!(xid >= Xid::FIRST_NORMAL, "the status of xid {xid} is fixed");
        dispatch!(&self.0, log => log.set(xid, status, lsn))
    }

    /// Adds the statuses that an image of page `number` holds (recovery).
    pub fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        dispatch!(&self.0, log => log.merge_page(number, content))
    }

    /// Writes every page that has changed by now. Changes made meanwhile may or may not be in.
    pub fn flush_all(&self) -> io::Result<()> {
        dispatch!(&self.0, log => log.flush_all())
    }
}
