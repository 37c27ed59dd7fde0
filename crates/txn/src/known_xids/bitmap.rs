//! Ours: a ring of bits indexed by xid, under two levels of summaries. Readers take no latch and replay never waits for
//! one.
//!
//! # An example
//! 100 and 103 run, and five transactions have ended so far. Bob takes a snapshot while replay ends 100 and then 103.
//!
//! | time | replay | Bob |
//! | --- | --- | --- |
//! | 1 | | the count of ends is 5, and the newest ended xid 104: his xmax is 105 |
//! | 2 | writes "end 5 is of 100" into the journal, clears the bit of 100 | |
//! | 3 | | finds the bit of 103 |
//! | 4 | writes "end 6 is of 103", clears its bit | |
//! | 5 | | the count of ends that may have begun is 7: ends 5 and 6 are of 100 and 103. Running were 100 and 103 |
//!
//! The snapshot is that of time 1. Bob did not find 100, and learns from the journal that it ran at time 1. A version
//! check that fails with every end would have to begin again at time 5, and so on, for as long as replay is busy.
//!
//! # State
//! | what | size | holds |
//! | --- | --- | --- |
//! | words | a bit an xid of the window | which xids run |
//! | lines | a bit a word | which words are not 0 |
//! | top | a bit a line word | which line words are not 0 |
//! | stragglers | a word for each running xid before the window | the xid, and whether it still runs |
//! | journal | the last 1,024 ends, or a 16th of the capacity | the xid, and the newest ended xid |
//! | `ending`, `ended` | counts of ends | see below |
//! | `layout` | a version, odd while the window moves | |
//!
//! The window is as long as the ring: `start` to `start + ring`. It begins at a *chunk*, which is what one line word
//! stands for: 4,096 xids. The ring holds no less than the capacity, so only transactions that are older than that many
//! others become stragglers; the window never waits for them, however long they stay open.
//!
//! # An end, by replay
//! 1. Write the journal's entry `ending`: the xid, and the newest xid ended by now.
//! 2. Store `ending` + 1, pass a Release fence.
//! 3. Clear the bit, and those of the summaries that it was the last of; or mark the straggler.
//! 4. Store `ended` = `ending` by a Release. This is the moment at which the transaction has ended.
//!
//! A tree of subtransactions goes through the steps together, with an entry for each. More than 64 ends at once, as of
//! `remove_preceding` after a crash of the primary, count as a change of the layout.
//!
//! # A snapshot
//! 1. Load `layout`; wait while it is odd.
//! 2. Load v = `ended` by an Acquire. xmax is the one after the newest xid of entry v - 1.
//! 3. Collect the running stragglers and the bits below xmax, from the top down.
//! 4. Pass an Acquire fence, load w = `ending`. Add the xids of the entries v to w - 1.
//! 5. Pass an Acquire fence. Begin again if entries from v - 1 on may have been written over, or `layout` has changed.
//!
//! # Why it is that of step 2
//! - B1: a bit that a reader finds cleared belongs to an end before w. Replay passes a Release fence between the store of
//!   `ending` and the clearing; the reader passes an Acquire fence between finding it and loading `ending`.
//! - B2: a transaction whose end came before v is not found: its bit was cleared before `ended` was stored, and v is
//!   loaded by an Acquire. One that ran at v is found, or by B1 it is in the journal between v and w. So the collected
//!   ones together with the journal's are those that ran at v.
//! - B3: an xid below xmax was added before the end of the newest one, hence before v. So its bit, and those of the
//!   summaries, were set before, and adding needs no version. Bits that are set meanwhile are of xids from xmax on. The
//!   same holds for an xmax that the caller brings (K3).
//! - B4: an entry is written over before `ending` says so. A reader that finds what replay writes for end e finds after its fence
//!   that `ending` is e - 63 at least: the fence of the end before e is between. So it keeps a distance of 64 entries.
//! - B5: replay stores an odd `layout` and passes a Release fence before it moves anything: a reader that finds anything
//!   moved finds, after its last fence, that `layout` has changed.
//!
//! # Why the simpler version is wrong
//! Without the journal's entry, Bob would find 103 and not 100, although both ran at time 1 and he sees nothing that
//! 103 has changed: harmless so far. But had 103 ended first and then 100, between his looks at their bits, he would
//! take 100 for finished and 103 for running: an effect without its cause, if 100 saw what 103 had done.
//!
//! # Progress
//! Replay waits for nothing. A reader begins again only if, during one attempt, replay ended 960 transactions (or a
//! 16th of the capacity), added 4,096 xids, or moved stragglers together. So an attempt of length t fails only if the window
//! moved during it, once in 4,096 adds, or if replay makes more than 960 ends in t: t is 0.1 to 20 µs, and replay takes
//! 100 µs and more for that. A reader that loses its CPU in the middle begins again at most once for each time that it
//! does. A reader that finds `layout` odd waits for replay to move a chunk: some 64 words; if replay loses its CPU
//! there, the reader yields its own.
//!
//! # Costs
//! add: a word for up to 64 xids. remove: six stores, no search, no atomic read-modify-write. snapshot: a look at each
//! word of the top, which is one for 262,144 xids of the window, and three words a running transaction, fewer where
//! they are neighbours. 12 bytes an xid of the capacity for stragglers, 0.13 to 0.26 for bits.
//!
//! # What it does not do
//! A run of xids of which few belong to transactions that are known here costs words, as xids are handed out in
//! sequence and subtransactions have their own: none are skipped.
//!
//! Origin: ours. Sequence locks: Linux; fences of theirs: Boehm, 2012.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Padded};

use super::{KnownSet, KnownXidsOptions, RunningXids};
use crate::Xid;

/// Polls of an odd layout before the reader yields.
const POLLS: u32 = 100;

/// Fields that readers look at first.
#[derive(Debug)]
struct Head<M: Machine> {
    layout: M::U64,
    ending: M::U64,
    ended: M::U64,
    /// The first xid of the window; a multiple of the chunk. It changes with the layout.
    start: M::U64,
    /// Entries among the stragglers. It changes with the layout.
    stragglers: M::U32,
}

/// Fields that replay alone looks at.
#[derive(Debug)]
struct ReplayWords<M: Machine> {
    running: M::U32,
    newest_ended: M::U64,
    /// The xid after the last one added.
    next: M::U64,
    /// Stragglers that have ended.
    ended_stragglers: M::U32,
}

/// An end.
#[derive(Debug)]
struct JournalEntry<M: Machine> {
    /// Whose end; 0: several ones', at a change of the layout.
    xid: M::U64,
    /// The newest xid that has ended, with this end.
    newest_ended: M::U64,
}

/// The bits.
#[derive(Debug)]
pub(crate) struct Set<M: Machine> {
    head: Padded<Head<M>>,
    replay: Padded<ReplayWords<M>>,
    words: Box<[M::U64]>,
    lines: Box<[M::U64]>,
    top: Box<[M::U64]>,
    /// An xid in the upper 63 bits, whether it runs in the lowest.
    stragglers: Box<[M::U64]>,
    journal: Box<[JournalEntry<M>]>,
}

fn words<M: Machine>(count: u64) -> Box<[M::U64]> {
    (0..count).map(|_| M::U64::new(0)).collect()
}

impl<M: Machine> Set<M> {
    /// Bits of a word that are used: a checker's ring is small.
    const BITS: u64 = if M::EXPLORED { 2 } else { 64 };
    /// Xids that a line word stands for.
    const CHUNK: u64 = Self::BITS * Self::BITS;
    /// Ends that go through the journal at once.
    const ENDS_MAX: u64 = if M::EXPLORED { 1 } else { 64 };
    /// Entries of the journal at least.
    const JOURNAL_MIN: u64 = if M::EXPLORED { 4 } else { 1_024 };

    /// Xids in the window; a power of two.
    #[inline]
    fn ring(&self) -> u64 {
        self.words.len() as u64 * Self::BITS
    }

    #[inline]
    fn journal_entry(&self, end: u64) -> &JournalEntry<M> {
        &self.journal[end as usize & (self.journal.len() - 1)]
    }

    /// The word of `xid`, and its bit there.
    #[inline]
    fn place(&self, xid: u64) -> (usize, u64) {
        let position = xid & (self.ring() - 1);
        ((position / Self::BITS) as usize, 1 << (position % Self::BITS))
    }

    /// Sets bits of the word, and what stands for it in the summaries.
    #[inline]
    fn set(&self, word: usize, bits: u64) {
        let before = self.words[word].load(Relaxed);
        self.words[word].store(before | bits, Relaxed);
        if before == 0 {
            self.summarise(word);
        }
    }

    fn summarise(&self, word: usize) {
        let (line, bit) = Self::above(word);
        let before = self.lines[line].load(Relaxed);
        self.lines[line].store(before | bit, Relaxed);
        if before == 0 {
            let (top, bit) = Self::above(line);
            self.top[top].store(self.top[top].load(Relaxed) | bit, Relaxed);
        }
    }

    /// The place of a summary's bit for a word below.
    #[inline]
    fn above(word: usize) -> (usize, u64) {
        let bits = Self::BITS as usize;
        (word / bits, 1 << (word % bits))
    }

    /// Clears a bit, and what stands for its word if that is 0 then.
    #[inline]
    fn clear(&self, xid: u64) {
        let (word, bit) = self.place(xid);
        let after = self.words[word].load(Relaxed) & !bit;
        self.words[word].store(after, Relaxed);
        if after == 0 {
            let (line, bit) = Self::above(word);
            let after = self.lines[line].load(Relaxed) & !bit;
            self.lines[line].store(after, Relaxed);
            if after == 0 {
                let (top, bit) = Self::above(line);
                self.top[top].store(self.top[top].load(Relaxed) & !bit, Relaxed);
            }
        }
    }

    /// Calls `found` with the xids of the line word `line` whose first xid is `base`, until it says no.
    #[inline]
    fn scan_line(&self, line: usize, base: u64, found: &mut impl FnMut(u64) -> bool) -> bool {
        let mut in_line = self.lines[line].load(Relaxed);
        while in_line != 0 {
            let word = u64::from(in_line.trailing_zeros());
            let mut in_word = self.words[line * Self::BITS as usize + word as usize].load(Relaxed);
            while in_word != 0 {
                let bit = u64::from(in_word.trailing_zeros());
                if !found(base + word * Self::BITS + bit) {
                    return false;
                }
                in_word &= in_word - 1;
            }
            in_line &= in_line - 1;
        }
        true
    }

    /// Calls `found` with the xids in the window that begins at `start`, in order, until it says no.
    #[inline]
    fn scan(&self, start: u64, mut found: impl FnMut(u64) -> bool) {
        let chunks = self.lines.len() as u64;
        let first = (start / Self::CHUNK) & (chunks - 1);
        let mut number = 0;
        while number < chunks {
            let line = (first + number) & (chunks - 1);
            let in_top = self.top[(line / Self::BITS) as usize].load(Relaxed) >> (line % Self::BITS);
            if in_top == 0 {
                // On to the next word of the top, or to the ring's beginning.
                number += (Self::BITS - line % Self::BITS).min(chunks - line);
                continue;
            }
            let skipped = u64::from(in_top.trailing_zeros());
            number += skipped;
            let base = start + number * Self::CHUNK;
            if number >= chunks || !self.scan_line((line + skipped) as usize, base, &mut found) {
                return;
            }
            number += 1;
        }
    }

    /// Calls `found` with the running stragglers, in order, until it says no.
    #[inline]
    fn scan_stragglers(&self, mut found: impl FnMut(u64) -> bool) -> bool {
        let count = self.head.stragglers.load(Relaxed) as usize;
        self.stragglers[..count].iter().all(|straggler| {
            let straggler = straggler.load(Relaxed);
            straggler & 1 == 0 || found(straggler >> 1)
        })
    }

    /// The place of `xid` among the stragglers, if it runs there; for replay.
    fn straggler(&self, xid: u64) -> Option<&M::U64> {
        let all = &self.stragglers[..self.head.stragglers.load(Relaxed) as usize];
        let place = all.binary_search_by_key(&xid, |straggler| straggler.load(Relaxed) >> 1);
        place
            .ok()
            .map(|place| &all[place])
            .filter(|straggler| straggler.load(Relaxed) & 1 == 1)
    }

    /// True if `xid` runs; for replay.
    #[inline]
    fn is_running(&self, xid: u64) -> bool {
        let start = self.head.start.load(Relaxed);
        if xid < start {
            return self.straggler(xid).is_some();
        }
        let (word, bit) = self.place(xid);
        xid < self.replay.next.load(Relaxed) && self.words[word].load(Relaxed) & bit != 0
    }

    /// Step 3 of an end.
    #[inline]
    fn take_away(&self, xid: u64) {
        if xid >= self.head.start.load(Relaxed) {
            return self.clear(xid);
        }
        if let Some(straggler) = self.straggler(xid) {
            straggler.store(xid << 1, Relaxed);
            let ended = self.replay.ended_stragglers.load(Relaxed) + 1;
            self.replay.ended_stragglers.store(ended, Relaxed);
        }
    }

    /// Ends `xid`, if it runs.
    #[inline]
    fn end_one(&self, xid: u64) {
        if !self.is_running(xid) {
            return;
        }
        let newest = self.replay.newest_ended.load(Relaxed).max(xid);
        let ending = self.head.ending.load(Relaxed);
        self.write_entry(ending, xid, newest);
        self.announce(ending + 1);
        self.take_away(xid);
        self.ended(ending + 1);
        self.account(1, newest);
    }

    /// Ends, at one moment, what of `xids` runs.
    fn end_all(&self, xids: impl Iterator<Item = u64> + Clone) {
        let began = self.head.ending.load(Relaxed);
        let mut newest = self.replay.newest_ended.load(Relaxed);
        let mut ending = began;
        for xid in xids.clone().filter(|xid| self.is_running(*xid)) {
            newest = newest.max(xid);
            if ending < began + Self::ENDS_MAX {
                self.write_entry(ending, xid, newest);
            }
            ending += 1;
        }
        if ending > began + Self::ENDS_MAX {
            self.end_many(xids, newest);
        } else if ending > began {
            self.announce(ending);
            let count = self.take_all_away(xids);
            self.ended(ending);
            self.account(count, newest);
        }
    }

    /// Step 1.
    #[inline]
    fn write_entry(&self, end: u64, xid: u64, newest_ended: u64) {
        let entry = self.journal_entry(end);
        entry.xid.store(xid, Relaxed);
        entry.newest_ended.store(newest_ended, Relaxed);
    }

    /// Step 2.
    #[inline]
    fn announce(&self, ending: u64) {
        // Release: pairs with the Acquire in `attempt`, for the journal.
        self.head.ending.store(ending, Release);
        // B1, B4.
        M::fence(Release);
    }

    /// Step 3, for all; how many there were.
    fn take_all_away(&self, xids: impl Iterator<Item = u64>) -> u32 {
        let mut count = 0;
        for xid in xids {
            if self.is_running(xid) {
                self.take_away(xid);
                count += 1;
            }
        }
        count
    }

    /// Step 4.
    #[inline]
    fn ended(&self, ended: u64) {
        // Release: pairs with the Acquire in `attempt`; B2.
        self.head.ended.store(ended, Release);
    }

    /// As [`end_all`](Self::end_all), for more than the journal takes.
    #[cold]
    fn end_many(&self, xids: impl Iterator<Item = u64>, newest: u64) {
        let changing = self.change_layout();
        let ending = self.head.ending.load(Relaxed);
        self.write_entry(ending, 0, newest);
        self.announce(ending + 1);
        let count = self.take_all_away(xids);
        self.ended(ending + 1);
        self.layout_is(changing);
        self.account(count, newest);
    }

    /// Updates replay's own counts after ends.
    #[inline]
    fn account(&self, count: u32, newest: u64) {
        let replay = &self.replay;
        replay.newest_ended.store(newest, Relaxed);
        replay
            .running
            .store(replay.running.load(Relaxed) - count, Relaxed);
        let ended = replay.ended_stragglers.load(Relaxed);
        if u64::from(ended) > Self::BITS && ended > self.head.stragglers.load(Relaxed) / 2 {
            let changing = self.change_layout();
            self.gather_stragglers();
            self.layout_is(changing);
        }
    }

    /// Tells readers that the layout changes, and returns what it will be.
    fn change_layout(&self) -> u64 {
        let layout = self.head.layout.load(Relaxed);
        self.head.layout.store(layout + 1, Relaxed);
        // B5.
        M::fence(Release);
        layout + 2
    }

    /// The layout has changed.
    fn layout_is(&self, layout: u64) {
        // Release: pairs with the Acquire in `attempt`.
        self.head.layout.store(layout, Release);
    }

    /// Moves the running stragglers together. The layout is odd.
    fn gather_stragglers(&self) {
        let mut kept = 0;
        for place in 0..self.head.stragglers.load(Relaxed) as usize {
            let straggler = self.stragglers[place].load(Relaxed);
            if straggler & 1 == 1 {
                self.stragglers[kept].store(straggler, Relaxed);
                kept += 1;
            }
        }
        self.head.stragglers.store(kept as u32, Relaxed);
        self.replay.ended_stragglers.store(0, Relaxed);
    }

    /// `xid`, newer than all others there, becomes a straggler. The layout is odd.
    fn straggle(&self, xid: u64) {
        if self.head.stragglers.load(Relaxed) as usize == self.stragglers.len() {
            // There are more places than xids may run.
            self.gather_stragglers();
        }
        let count = self.head.stragglers.load(Relaxed);
        self.stragglers[count as usize].store(xid << 1 | 1, Relaxed);
        self.head.stragglers.store(count + 1, Relaxed);
    }

    /// Moves the window so that it holds `to`.
    #[cold]
    fn move_window(&self, to: u64) {
        let changing = self.change_layout();
        let mut start = self.head.start.load(Relaxed);
        let target = (to + 1 - self.ring()).next_multiple_of(Self::CHUNK);
        // After a round, nothing is left in the ring.
        for _ in 0..self.lines.len() {
            if start == target {
                break;
            }
            let line = (start / Self::CHUNK) as usize & (self.lines.len() - 1);
            self.scan_line(line, start, &mut |xid| {
                self.straggle(xid);
                true
            });
            start += Self::CHUNK;
            self.empty(line);
        }
        self.head.start.store(target, Relaxed);
        self.layout_is(changing);
    }

    /// Clears all bits of a line word. The layout is odd.
    fn empty(&self, line: usize) {
        let bits = Self::BITS as usize;
        if self.lines[line].load(Relaxed) != 0 {
            for word in &self.words[line * bits..(line + 1) * bits] {
                word.store(0, Relaxed);
            }
            self.lines[line].store(0, Relaxed);
            let (top, bit) = Self::above(line);
            self.top[top].store(self.top[top].load(Relaxed) & !bit, Relaxed);
        }
    }

    /// Takes a snapshot, unless replay has come between.
    #[inline]
    fn attempt(&self, xmax: Option<Xid>, into: &mut RunningXids) -> bool {
        let head = &self.head;
        // Acquire: pairs with the Release in `layout_is`.
        let layout = head.layout.load(Acquire);
        if layout % 2 == 1 {
            return false;
        }
        // Acquire: pairs with the Release in `ended`; B2.
        let ended = head.ended.load(Acquire);
        let newest_ended = self.journal_entry(ended - 1).newest_ended.load(Relaxed);
        into.begin(xmax.unwrap_or(Xid(newest_ended + 1)));
        if self.scan_stragglers(|xid| into.push(Xid(xid))) {
            self.scan(head.start.load(Relaxed), |xid| into.push(Xid(xid)));
        }
        // B1.
        M::fence(Acquire);
        // Acquire: pairs with the Release in `announce`, for the journal.
        let ending = head.ending.load(Acquire);
        let collected = into.len();
        for end in ended..ending.min(ended + self.journal.len() as u64) {
            into.push_unsorted(Xid(self.journal_entry(end).xid.load(Relaxed)), collected);
        }
        // B4, B5.
        M::fence(Acquire);
        if head.ending.load(Relaxed) + Self::ENDS_MAX >= ended + self.journal.len() as u64
            || head.layout.load(Relaxed) != layout
        {
            return false;
        }
        into.sort_from(collected);
        true
    }
}

impl<M: Machine> KnownSet<M> for Set<M> {
    fn new(options: &KnownXidsOptions) -> Self {
        let capacity = u64::from(options.capacity);
        // A chunk more, since the window begins at one.
        let ring = (capacity + Self::CHUNK).next_power_of_two();
        let journal = (capacity / 16).next_power_of_two().max(Self::JOURNAL_MIN);
        let journal_entry = |_| JournalEntry {
            xid: M::U64::new(0),
            newest_ended: M::U64::new(0),
        };
        Self {
            head: Padded(Head {
                layout: M::U64::new(0),
                ending: M::U64::new(1),
                ended: M::U64::new(1),
                start: M::U64::new(0),
                stragglers: M::U32::new(0),
            }),
            replay: Padded(ReplayWords {
                running: M::U32::new(0),
                newest_ended: M::U64::new(0),
                next: M::U64::new(0),
                ended_stragglers: M::U32::new(0),
            }),
            words: words::<M>(ring / Self::BITS),
            lines: words::<M>(ring / Self::CHUNK),
            top: words::<M>((ring / Self::CHUNK).div_ceil(Self::BITS)),
            stragglers: words::<M>(capacity + capacity / 2 + 1),
            journal: (0..journal).map(journal_entry).collect(),
        }
    }

    fn running(&self) -> u32 {
        self.replay.running.load(Relaxed)
    }

    fn range(&self) -> u64 {
        let mut oldest = None;
        if self.scan_stragglers(|xid| oldest.replace(xid).is_some()) {
            self.scan(self.head.start.load(Relaxed), |xid| oldest.replace(xid).is_some());
        }
        oldest.map_or(0, |oldest| self.replay.next.load(Relaxed) - oldest)
    }

    #[inline]
    fn add(&self, from: u64, to: u64) {
        if to >= self.head.start.load(Relaxed) + self.ring() {
            self.move_window(to);
        }
        let mut xid = from;
        while xid <= to {
            let (word, bit) = self.place(xid);
            let last = to.min(xid | (Self::BITS - 1));
            let count = last - xid + 1;
            // `count` ones from `bit` on.
            self.set(word, (u64::MAX >> (64 - count)) * bit);
            xid = last + 1;
        }
        self.replay.next.store(xid, Relaxed);
        let running = self.replay.running.load(Relaxed) + (to - from + 1) as u32;
        self.replay.running.store(running, Relaxed);
    }

    #[inline]
    fn remove(&self, xid: Xid, children: &[Xid]) {
        if children.is_empty() {
            self.end_one(xid.0);
        } else {
            self.end_all(children.iter().chain([&xid]).map(|xid| xid.0));
        }
    }

    fn remove_preceding(&self, xid: Xid, prepared: &[Xid]) {
        let mut preceding = Vec::new();
        let mut found = |running: u64| {
            if running < xid.0 && !prepared.contains(&Xid(running)) {
                preceding.push(running);
            }
            running < xid.0
        };
        if self.scan_stragglers(&mut found) {
            self.scan(self.head.start.load(Relaxed), found);
        }
        self.end_all(preceding.into_iter());
    }

    fn begin(&self, oldest: Xid, newest_ended: Xid) {
        let ended = self.head.ended.load(Relaxed);
        let entry = self.journal_entry(ended - 1);
        entry.newest_ended.store(newest_ended.0, Relaxed);
        self.replay.newest_ended.store(newest_ended.0, Relaxed);
        self.gather_stragglers();
        self.head.start.store(oldest.0 - oldest.0 % Self::CHUNK, Relaxed);
    }

    #[inline]
    fn snapshot(&self, xmax: Option<Xid>, into: &mut RunningXids) {
        let mut polls = 0;
        while !self.attempt(xmax, into) {
            polls += 1;
            if polls > POLLS {
                M::yield_now();
            } else {
                M::spin_hint();
            }
        }
    }
}
