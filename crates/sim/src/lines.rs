//! The cache lines that the simulated program touches, and which core has each.
//!
//! | state | `owner` | `sharers` |
//! | --- | --- | --- |
//! | in memory only | none | empty |
//! | shared | none | the cores that have it |
//! | modified | the core that has it | empty |
//! | at home | [`HOME`](crate::costs::HOME): the home's cache, after a far atomic | empty |
//!
//! A line is found by its address but *numbered* when it is first touched, and nothing depends on an address:
//! not an order, not a cost, not what is printed. A line whose memory has been freed is forgotten, so that it
//! does not matter either whether the allocator hands the same memory out again.

use std::collections::VecDeque;

use crate::costs::{Cores, Costs};

/// Bytes a line.
pub(crate) const LINE: usize = 64;
pub(crate) const NO_CORE: u16 = u16::MAX;
pub(crate) const NO_CPU: u16 = u16::MAX;

/// Events of the lines of one name.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineCounters {
    pub(crate) accesses: u64,
    pub(crate) misses: u64,
    /// Waiting for the transfer itself.
    pub(crate) transfer_ps: u64,
    /// Waiting for earlier requests to the same line.
    pub(crate) queue_ps: u64,
    /// Polled while unchanged.
    pub(crate) spin_ps: u64,
}

/// The workers that have used a line, and the number of its changes, since the last call of [`begin_line_account`].
///
/// [`begin_line_account`]: crate::begin_line_account
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineUse {
    /// The number of the account; in another one all else counts as none.
    account: u32,
    /// The first worker.
    worker: u32,
    is_shared: bool,
    changes: u64,
}

impl LineUse {
    /// Notes an access.
    #[inline(always)]
    pub(crate) fn note(&mut self, account: u32, worker: u32, changes: bool) {
        if self.account != account {
            *self = Self {
                account,
                worker,
                ..Self::default()
            };
        }
        self.is_shared |= self.worker != worker;
        self.changes += u64::from(changes);
    }

    /// Changes of a line that several workers have used.
    pub(crate) fn shared_changes(&self, account: u32) -> u64 {
        if self.account == account && self.is_shared {
            self.changes
        } else {
            0
        }
    }
}

/// The instant at which a transfer takes the line from the core that has it then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Departure {
    pub(crate) at: u64,
    /// The hardware thread that it is taken to.
    pub(crate) to: u16,
    /// A load leaves a copy.
    pub(crate) leaves_copy: bool,
}

/// One line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) sharers: Cores,
    /// The end of the last transfer.
    pub(crate) busy_until: u64,
    pub(crate) owner: u16,
    /// The core that fetches or has fetched it from memory.
    pub(crate) fetcher: u16,
    /// The core that will have it modified when the last transfer has ended, or the home, or none.
    pub(crate) heir: u16,
    /// The core that last began to load it from its owner: until that load arrives it is not among the
    /// sharers.
    pub(crate) reader: u16,
    /// The departures of the transfers in flight, in order. Those in the past are dropped on the way.
    pub(crate) departures: VecDeque<Departure>,
    /// Read-modify-writes left to the owner once another core has requested the line.
    pub(crate) owner_rmws: u64,
    /// The hardware thread that wrote last.
    pub(crate) writer: u16,
    /// The other hardware thread of its core has looked since.
    pub(crate) both_threads: bool,
    /// The socket whose memory holds the line: that of the first toucher.
    pub(crate) home: u16,
    /// First of the CPUs that poll this line; a list through `Cpu::next_watcher`.
    pub(crate) watchers: u16,
    /// Grows with each write.
    pub(crate) version: u32,
    pub(crate) name: u32,
    pub(crate) counters: LineCounters,
    pub(crate) used: LineUse,
}

impl Line {
    /// True if `cpu`, on the owner's core, begins to use the line at `start` and loses it before `done`. A
    /// read needs only a copy.
    #[inline(always)]
    pub(crate) fn leaves_before(&mut self, cpu: usize, start: u64, done: u64, only_reads: bool) -> bool {
        !self.departures.is_empty() && self.next_leaves_before(cpu, start, done, only_reads)
    }

    #[inline(never)]
    fn next_leaves_before(&mut self, cpu: usize, start: u64, done: u64, only_reads: bool) -> bool {
        while self.departures.front().is_some_and(|next| next.at < start) {
            self.departures.pop_front();
        }
        let mut soon = self.departures.iter().take_while(|next| next.at < done);
        soon.any(|next| usize::from(next.to) != cpu && !(only_reads && next.leaves_copy))
    }

    /// True if `cpu`, on the owner's core, has it too: the other hardware thread has not written since.
    #[inline(always)]
    pub(crate) fn is_with(&self, cpu: usize, costs: &Costs) -> bool {
        self.both_threads || costs.sibling_of[cpu] != Some(self.writer)
    }

    /// True if `cpu`, on the owner's core, has it alone: the other hardware thread has not even looked.
    #[inline(always)]
    pub(crate) fn is_only_with(&self, cpu: usize, costs: &Costs) -> bool {
        !self.both_threads && costs.sibling_of[cpu] != Some(self.writer)
    }
}

/// Open addressing by line address.
#[derive(Debug)]
struct Index {
    /// Line address + 1 (0 = never used) and line number.
    entries: Box<[(usize, u32)]>,
    used: usize,
}

/// A forgotten entry: its key matches nothing.
const FORGOTTEN: usize = usize::MAX;

impl Index {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: vec![(0, 0); capacity].into(),
            used: 0,
        }
    }

    #[inline(always)]
    fn start(&self, line: usize) -> usize {
        line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn find(&self, line: usize) -> Option<usize> {
        let mask = self.entries.len() - 1;
        let mut at = self.start(line);
        loop {
            let (key, _) = self.entries[at];
            if key == line + 1 {
                return Some(at);
            }
            if key == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    fn insert(&mut self, line: usize, number: u32) {
        if (self.used + 1) * 2 > self.entries.len() {
            let mut larger = Self::with_capacity(self.entries.len() * 2);
            for (key, number) in &self.entries {
                if *key != 0 && *key != FORGOTTEN {
                    larger.place(*key - 1, *number);
                }
            }
            *self = larger;
        }
        self.place(line, number);
    }

    fn place(&mut self, line: usize, number: u32) {
        let mask = self.entries.len() - 1;
        let mut at = self.start(line);
        while self.entries[at].0 != 0 {
            at = (at + 1) & mask;
        }
        self.entries[at] = (line + 1, number);
        self.used += 1;
    }
}

/// All lines of a simulation.
#[derive(Debug)]
pub(crate) struct Lines {
    index: Index,
    pub(crate) lines: Vec<Line>,
    names: Vec<String>,
    /// Named ranges: first line, one past the last line, name.
    ranges: Vec<(usize, usize, u32)>,
}

/// The name of memory without a name.
const UNNAMED: u32 = 0;

impl Lines {
    pub(crate) fn new() -> Self {
        Self {
            index: Index::with_capacity(1 << 12),
            lines: Vec::new(),
            names: vec!["other memory".into()],
            ranges: Vec::new(),
        }
    }

    /// The number of the line at `address`; `socket` is its home if this is the first touch.
    #[inline(always)]
    pub(crate) fn find(&mut self, address: usize, socket: u16) -> usize {
        match self.index.find(address / LINE) {
            Some(at) => self.index.entries[at].1 as usize,
            None => self.first_touch(address / LINE, socket),
        }
    }

    #[cold]
    fn first_touch(&mut self, line: usize, home: u16) -> usize {
        let number = self.lines.len();
        let name = self.range_name(line);
        self.lines.push(Line {
            sharers: Cores::default(),
            busy_until: 0,
            owner: NO_CORE,
            heir: NO_CORE,
            reader: NO_CORE,
            departures: VecDeque::new(),
            owner_rmws: 0,
            fetcher: NO_CORE,
            writer: NO_CPU,
            both_threads: false,
            home,
            watchers: NO_CPU,
            version: 0,
            name,
            counters: LineCounters::default(),
            used: LineUse::default(),
        });
        self.index.insert(line, number as u32);
        number
    }

    /// The latest range wins, so that a field can be named within its structure.
    fn range_name(&self, line: usize) -> u32 {
        self.ranges
            .iter()
            .rev()
            .find(|(first, end, _)| (*first..*end).contains(&line))
            .map_or(UNNAMED, |(_, _, name)| *name)
    }

    /// Names the lines of a range of memory.
    pub(crate) fn name(&mut self, address: usize, bytes: usize, name: &str) {
        let (first, end) = (address / LINE, (address + bytes.max(1)).div_ceil(LINE));
        let number = self.name_number(name);
        self.ranges.retain(|(f, e, _)| (*f, *e) != (first, end));
        self.ranges.push((first, end, number));
        for line in first..end {
            if let Some(at) = self.index.find(line) {
                self.lines[self.index.entries[at].1 as usize].name = number;
            }
        }
    }

    /// Names one line unless it has a name: a latch does so when it is contended.
    pub(crate) fn label(&mut self, address: usize, name: &str) {
        if let Some(at) = self.index.find(address / LINE) {
            let line = self.index.entries[at].1 as usize;
            if self.lines[line].name == UNNAMED {
                self.lines[line].name = self.name_number(name);
            }
        }
    }

    fn name_number(&mut self, name: &str) -> u32 {
        match self.names.iter().position(|known| known == name) {
            Some(number) => number as u32,
            None => {
                self.names.push(name.to_owned());
                self.names.len() as u32 - 1
            }
        }
    }

    /// The memory has been freed.
    pub(crate) fn forget(&mut self, address: usize, bytes: usize) {
        for line in address / LINE..(address + bytes).div_ceil(LINE) {
            if let Some(at) = self.index.find(line) {
                self.index.entries[at].0 = FORGOTTEN;
            }
        }
    }

    /// Waiting for the lines of this name, and polling them, ps.
    pub(crate) fn waits_of(&self, name: &str) -> u64 {
        let Some(number) = self.names.iter().position(|known| known == name) else {
            return 0;
        };
        let named = self.lines.iter().filter(|line| line.name == number as u32);
        named
            .map(|line| line.counters.transfer_ps + line.counters.queue_ps + line.counters.spin_ps)
            .sum()
    }

    /// The name of a line.
    pub(crate) fn name_of(&self, line: &Line) -> &str {
        &self.names[line.name as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_by_first_touch() {
        let mut lines = Lines::new();
        assert_eq!(lines.find(64 * 1000, 0), 0);
        assert_eq!(lines.find(64 * 10 + 3, 1), 1);
        assert_eq!(lines.find(64 * 1000 + 63, 1), 0);
        assert_eq!(lines.lines[0].home, 0, "the first toucher's");
        for line in 0..10_000 {
            assert_eq!(lines.find((1 << 30) + line * LINE, 0), 2 + line);
        }
        for line in 0..10_000 {
            assert_eq!(lines.find((1 << 30) + line * LINE, 0), 2 + line);
        }
    }

    #[test]
    fn freed_memory_comes_back_as_new_lines() {
        let mut lines = Lines::new();
        let first = lines.find(6400, 0);
        lines.forget(6400, 1);
        assert_ne!(lines.find(6400, 0), first);
    }

    #[test]
    fn names_reach_lines_before_and_after_their_first_touch() {
        let mut lines = Lines::new();
        let early = lines.find(0x1000, 0);
        lines.name(0x1000, 256, "table");
        lines.name(0x1040, 4, "latch");
        let (late, latch) = (lines.find(0x1080, 0), lines.find(0x1040, 0));
        assert_eq!(lines.name_of(&lines.lines[early]), "table");
        assert_eq!(lines.name_of(&lines.lines[late]), "table");
        assert_eq!(lines.name_of(&lines.lines[latch]), "latch");
    }
}
