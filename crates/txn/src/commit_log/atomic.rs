//! Ours: while its page is cached, a status is read by one load and set by one compare-and-swap, without a latch.
//!
//! # Invariant
//! Each word holds the statuses of 16 transactions *and the number of the page that they belong to*. One access reads
//! or changes both. So no worker takes the statuses of another page for its own, or sets one there, whatever has become
//! of the slot: what is asked for is checked in the same word, at the same instant.
//!
//! # Memory
//! A page has one slot, `page % CACHED_PAGES`. Slots live as long as the log, so a word may be looked at always. A slot
//! is made of cache lines:
//!
//! | word of a line | bits 63 to 32 | bits 31 to 0 |
//! | --- | --- | --- |
//! | 0 | the newest log position of the line's commits: 64 bits | |
//! | 1 to 7 | number of the page + 1; 0: no page | 16 statuses, as the page on the device has them |
//!
//! Beside them, under CommitLogIo, one latch a slot: which page the slot holds, and a copy of what the device has of
//! it.
//!
//! # Steps
//! - *Get*: load the word. It bears the page's number → its status. Otherwise fetch the page, and again.
//! - *Set*: load the word; it bears the page's number → (a) raise the line's log position, (b) CAS the status in. If
//!   the CAS fails and the word still bears the number, CAS again; otherwise fetch the page, and again.
//! - *Write back*, under CommitLogIo: copy the words, then read the positions; if the copy differs from the device's,
//!   write it.
//! - *Fetch*, under CommitLogIo: read the page; write the slot's page back; (c) swap 0 into each of its words. If what
//!   the swaps returned differs from what the device has, a status was set meanwhile: store the words again, and once
//!   more from writing back. Otherwise the slot is empty: store the words of the new page.
//!
//! # Linearization
//! A status is set at its CAS and read at its load.
//!
//! # Why nothing is lost
//! - *Set against eviction.* CAS and swap (c) are RMWs of one word, so one comes first. The CAS: the swap returns the
//!   status, and it is written. The swap: the CAS fails, and the setter fetches the page again.
//! - *Set against a flush* (R3). A page is clean if its words equal the device's copy, and nothing else says so: no
//!   flag or count could fall behind. A status set before the flush began is in the words; one set while the page is
//!   written differs from the copy afterwards.
//! - *R1.* The position is raised before the CAS, a Release; a copy reads the words by Acquires, and the positions
//!   afterwards. So a status is never in a copy without its position. Positions are never lowered: what a page was
//!   written with is durable, so that it holds up no later page. A position raised in vain, because the page was gone,
//!   delays a write at most.
//! - *R2.* The slot's CommitLogIo.
//! - *A page that comes back* (ABA). The word may have belonged to another page in between. What it holds with the
//!   right number is the page's own state each time: what was installed was read from the device after everything set
//!   before was written there.
//!
//! # Why not an OR
//! An OR does not look. One that is late, because its slot was given to another page, would set a status there. Checked
//! by a tag of the slot, before and after, it would have to be taken back, and a reader may have seen it. A CAS costs
//! the same as an OR when no other worker changes the word between load and CAS, and only transactions of the same 16
//! do.
//!
//! # Orderings
//! The CAS is a Release and the load an Acquire: a reader of a status sees what came before it was set. All later
//! values of a word carry that on: CAS and swap are RMWs, and a worker that stores a word under CommitLogIo has
//! acquired it before.
//!
//! # Cost
//! Get: a load. Set: two RMWs on one line, and no wait; a line is shared by 112 transactions, so that commits of one
//! moment meet on few lines. 3.3 MiB from the start: 18 KiB for a page's words and 8 KiB for the device's copy, 128
//! times. A flush compares all pages with their copies, whatever has changed.
//!
//! Origin: ours.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{Latched, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, WaitEvent, WaitScope};

use super::bank::COMMIT_LOG_IO;
use super::page::PageBytes;
use super::{
    CACHED_PAGES, COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, Status, StatusDevice, StatusLog,
    XIDS_PER_PAGE,
};
use crate::Xid;

const STATUSES_PER_WORD: u64 = 16;
/// Bytes of a page that a word holds.
const BYTES_PER_WORD: usize = STATUSES_PER_WORD as usize / 4;
const WORDS_PER_PAGE: usize = (COMMIT_LOG_PAGE_SIZE - COMMIT_LOG_PAGE_HEADER) / BYTES_PER_WORD;
const WORDS_PER_LINE: usize = 7;
const _: () = assert!(WORDS_PER_PAGE * BYTES_PER_WORD == COMMIT_LOG_PAGE_SIZE - COMMIT_LOG_PAGE_HEADER);

/// A word of no page.
const EMPTY: u64 = 0;
/// The bits of a word that say which page it is of.
const PAGE: u64 = !0 << 32;

/// The bits of a word of page `number` beside the statuses. The last page of 2^32 has the number of no page: 10^14
/// transactions away.
#[inline]
fn tag(number: u32) -> u64 {
    u64::from(number.wrapping_add(1)) << 32
}

/// The place of a transaction's status.
struct Place {
    page: u32,
    word: usize,
    shift: u32,
}

impl Place {
    #[inline]
    fn of(xid: Xid) -> Place {
        let within = xid.0 % XIDS_PER_PAGE;
        Place {
            page: (xid.0 / XIDS_PER_PAGE) as u32,
            word: (within / STATUSES_PER_WORD) as usize,
            shift: (within % STATUSES_PER_WORD) as u32 * 2,
        }
    }

    #[inline]
    fn status_in(&self, word: u64) -> Status {
        Status::from_bits((word >> self.shift) as u8)
    }

    /// `word` with the status set.
    fn changed(&self, word: u64, status: Status) -> u64 {
        let before = self.status_in(word);
        debug_assert!(
            before == status || matches!(before, Status::InProgress | Status::SubCommitted),
            "R4: a status on page {} goes from {before:?} to {status:?}",
            self.page
        );
        word & !(3 << self.shift) | (status as u64) << self.shift
    }
}

/// A cache line of statuses.
#[derive(Debug)]
#[repr(align(64))]
struct Line<M: Machine> {
    /// The newest log position of commits in this line. Never lowered.
    lsn: M::U64,
    words: [M::U64; WORDS_PER_LINE],
}

const _: () = assert!(size_of::<Line<clearway_machine::Native>>() == 64);

/// The page that a slot holds, as the device has it.
#[derive(Debug)]
struct OnDevice {
    page: Option<u32>,
    bytes: PageBytes,
}

#[derive(Debug)]
struct Slot<M: Machine> {
    lines: Box<[Line<M>]>,
    io: Latched<OnDevice, M>,
}

impl<M: Machine> Slot<M> {
    /// Words that are kept. Few under a checker, which looks at each.
    const WORDS: usize = if M::EXPLORED {
        WORDS_PER_LINE
    } else {
        WORDS_PER_PAGE
    };

    fn new(lwlock: LwLockOptions) -> Self {
        let line = || Line {
            lsn: M::U64::new(0),
            words: std::array::from_fn(|_| M::U64::new(EMPTY)),
        };
        let on_device = OnDevice {
            page: None,
            bytes: Box::new([0; COMMIT_LOG_PAGE_SIZE]),
        };
        Self {
            lines: (0..Self::WORDS.div_ceil(WORDS_PER_LINE))
                .map(|_| line())
                .collect(),
            io: Latched::new(&COMMIT_LOG_IO, lwlock, on_device),
        }
    }

    #[inline]
    fn line_and_word(&self, word: usize) -> (&Line<M>, &M::U64) {
        let line = &self.lines[word / WORDS_PER_LINE];
        (line, &line.words[word % WORDS_PER_LINE])
    }

    /// The words of the page, with the bytes of the page that each holds.
    fn words(&self) -> impl Iterator<Item = (&M::U64, std::ops::Range<usize>)> {
        let words = self.lines.iter().flat_map(|line| &line.words).take(Self::WORDS);
        words.enumerate().map(|(index, word)| {
            let start = COMMIT_LOG_PAGE_HEADER + index * BYTES_PER_WORD;
            (word, start..start + BYTES_PER_WORD)
        })
    }

    /// Stores the words of page `number`. The caller holds CommitLogIo, and the slot is empty.
    fn install(&self, number: u32, bytes: &PageBytes) {
        for (word, range) in self.words() {
            let mut statuses = [0; BYTES_PER_WORD];
            statuses.copy_from_slice(&bytes[range]);
            // Release: pairs with the Acquire in `get`.
            word.store(tag(number) | u64::from(u32::from_le_bytes(statuses)), Release);
        }
    }

    /// Takes each word as `access` has it into `bytes`.
    fn copy(&self, bytes: &mut PageBytes, access: impl Fn(&M::U64) -> u64) {
        for (word, range) in self.words() {
            bytes[range].copy_from_slice(&(access(word) as u32).to_le_bytes());
        }
    }

    /// Empties the slot if all of its page is on the device. The caller holds CommitLogIo.
    fn empty(&self, number: u32, on_device: &OnDevice) -> bool {
        let mut removed = on_device.bytes.clone();
        // Acquire: pairs with the Release in `change`; it is passed on if the word is stored again.
        self.copy(&mut removed, |word| word.swap(EMPTY, Acquire));
        let all = removed == on_device.bytes;
        if !all {
            self.install(number, &removed);
        }
        all
    }

    /// Sets bits by `apply` in a word of page `number`, if the page is here. `lsn` is the end of the log record that
    /// says so.
    #[inline]
    fn change(&self, number: u32, word: usize, lsn: u64, apply: impl Fn(u64) -> u64) -> bool {
        let (line, word) = self.line_and_word(word);
        let mut found = word.load(Relaxed);
        if found & PAGE == tag(number) {
            // R1: before the status.
            raise::<M>(&line.lsn, lsn);
        }
        while found & PAGE == tag(number) {
            // Release: pairs with the Acquires in `get`, `write_back` and `empty`.
            match word.compare_exchange_weak(found, apply(found), Release, Relaxed) {
                Ok(_) => return true,
                Err(changed) => found = changed,
            }
        }
        false
    }
}

/// Makes `word` at least `value`. Relaxed: a copy acquires a status that was set after it.
#[inline]
fn raise<M: Machine>(word: &M::U64, value: u64) {
    let mut found = word.load(Relaxed);
    while found < value {
        match word.compare_exchange_weak(found, value, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(changed) => found = changed,
        }
    }
}

/// The slots.
#[derive(Debug)]
pub(super) struct Log<M: Machine, D: StatusDevice> {
    device: D,
    slots: Box<[Slot<M>]>,
}

impl<M: Machine, D: StatusDevice> Log<M, D> {
    /// Number of slots. Few under a checker, so that two pages meet in one.
    const SLOTS: usize = if M::EXPLORED { 2 } else { CACHED_PAGES };

    #[inline]
    fn slot(&self, page: u32) -> &Slot<M> {
        &self.slots[page as usize % Self::SLOTS]
    }

    /// Changes a word of page `number`, reading the page first if need be.
    #[inline]
    fn change(&self, number: u32, word: usize, lsn: u64, apply: impl Fn(u64) -> u64) -> io::Result<()> {
        let slot = self.slot(number);
        while !slot.change(number, word, lsn, &apply) {
            self.fetch(number)?;
        }
        Ok(())
    }

    /// Makes its slot hold page `number`, at least for a moment.
    #[cold]
    fn fetch(&self, number: u32) -> io::Result<()> {
        let slot = self.slot(number);
        let mut on_device = slot.io.exclusive();
        if on_device.page == Some(number) {
            return Ok(());
        }
        let mut bytes = Box::new([0; COMMIT_LOG_PAGE_SIZE]);
        {
            let _wait = WaitScope::<M>::enter(WaitEvent::CommitLogRead);
            self.device.read_page(number, &mut bytes)?;
        }
        if let Some(victim) = on_device.page {
            loop {
                self.write_back(slot, &mut on_device)?;
                if slot.empty(victim, &on_device) {
                    break;
                }
            }
        }
        slot.install(number, &bytes);
        *on_device = OnDevice {
            page: Some(number),
            bytes,
        };
        Ok(())
    }

    /// Writes the slot's page if it has changed. After an error it differs from the device as before.
    fn write_back(&self, slot: &Slot<M>, on_device: &mut OnDevice) -> io::Result<()> {
        let Some(number) = on_device.page else {
            return Ok(());
        };
        let mut bytes = on_device.bytes.clone();
        // Acquire: pairs with the Release in `change`; the positions are read afterwards (R1).
        slot.copy(&mut bytes, |word| word.load(Acquire));
        if bytes == on_device.bytes {
            return Ok(());
        }
        let lsns = slot.lines.iter().map(|line| line.lsn.load(Relaxed));
        let lsn = lsns.max().unwrap_or(0);
        {
            let _wait = WaitScope::<M>::enter(WaitEvent::CommitLogWrite);
            self.device.write_page(number, &bytes, lsn)?;
        }
        on_device.bytes = bytes;
        Ok(())
    }
}

impl<M: Machine, D: StatusDevice> StatusLog<M, D> for Log<M, D> {
    fn new(device: D, _banks: usize, lwlock: LwLockOptions) -> Self {
        Self {
            device,
            slots: (0..Self::SLOTS).map(|_| Slot::new(lwlock)).collect(),
        }
    }

    fn device(&self) -> &D {
        &self.device
    }

    #[inline]
    fn get(&self, xid: Xid) -> io::Result<Status> {
        let place = Place::of(xid);
        let (_, word) = self.slot(place.page).line_and_word(place.word);
        loop {
            // Acquire: pairs with the Release in `change`.
            let found = word.load(Acquire);
            if found & PAGE == tag(place.page) {
                return Ok(place.status_in(found));
            }
            self.fetch(place.page)?;
        }
    }

    fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        let place = Place::of(xid);
        self.change(place.page, place.word, lsn, |word| place.changed(word, status))
    }

    fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        for (word, chunk) in content.chunks(BYTES_PER_WORD).take(Slot::<M>::WORDS).enumerate() {
            let mut statuses = [0; BYTES_PER_WORD];
            statuses[..chunk.len()].copy_from_slice(chunk);
            let statuses = u64::from(u32::from_le_bytes(statuses));
            if statuses != 0 {
                self.change(number, word, 0, |found| found | statuses)?;
            }
        }
        Ok(())
    }

    fn flush_all(&self) -> io::Result<()> {
        let mut slots = self.slots.iter();
        slots.try_for_each(|slot| self.write_back(slot, &mut slot.io.exclusive()))
    }
}
