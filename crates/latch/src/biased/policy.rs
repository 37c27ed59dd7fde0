//! The decision whether an [`AdaptiveLatch`](crate::AdaptiveLatch) is biased: by a trial of both states, at a bounded
//! cost.
//!
//! The gain from bias depends on the share of readers, on how many CPUs they run on, on how the latch inside waits, and
//! on the machine. So it is not computed from counts. It is tried, and the quantity that matters is compared: the time
//! until a number of writers have passed. The mix of readers and writers is that of the workload, so a state in which
//! writers pass faster is one in which readers pass faster, too.
//!
//! | state | the word has | left when |
//! | --- | --- | --- |
//! | plain | | readers have met others: a trial begins, biased |
//! | trial, biased | `BIASED`, `TRIAL` | enough writers have passed: plain, or the trial ends |
//! | trial, plain | `TRIAL` | enough writers have passed: biased, or the trial ends |
//! | biased | `BIASED` | the next trial is due |
//!
//! 1. **Nomination.** A conflict is a reader that has to wait, or one that meets another: its compare-and-swap failed
//!    although no writer was there, since the other one changed the word in between. At one in `SAMPLE` conflicts, at
//!    whatever latch: begin a trial of that latch, unless it is too early; of readers that met at one in `SAMPLE_TRIED` of
//!    these if the latch has been tried before. So a latch is tried in proportion to its share of the conflicts. Of a
//!    latch that rests biased one in `SAMPLE` writers that had to wait looks instead, and one in `SAMPLE_UNWAITED` of the
//!    others, after its release.
//! 2. **Trial.** By turns biased and then plain: let `SETTLE` writers and `SETTLE_NS` pass, so that what the other state
//!    has left behind is over (sleepers, a queue); take the time of `MEASURE` writers or more, for `MEASURE_NS` or
//!    longer. Add up the time a writer of each state, without the longest one of each: a worker that loses its CPU while
//!    it holds the latch makes one window as long as many others.
//! 3. **As long as it takes.** After n = 2, 4 and 8 pairs of windows the trial ends if the sums differ by more than one part
//!    in 2n: what differs by so much does not differ by chance. Else it begins again with windows four times as long, since
//!    a state may show late what it makes, and ends if the sums differ by one part in 8n. If they differ by less than one in
//!    32 after 4 pairs of these, it begins again with windows 16 times as long. With the longest, or if writers decide how
//!    long windows are, it goes on until `WRITERS` have passed or `LONG_NS`. Then the latch leaves the state in which it has
//!    rested if the other one's sum is shorter by a part in `MARGIN`.
//! 4. **Later trials have longer windows**: the next length than the trial before ended with. What short windows took for the
//!    faster state is tried again by longer ones.
//! 5. **Rest.** The next trial comes after `INHIBITION` times what it will *lose*, by what this one has lost: its time, less
//!    what its writers would have taken in the faster state. If its windows are longer, it will lose as many times more. And
//!    it comes after `REST` times the time of this one at least, or after `REST_NS_MAX`.
//! 6. If `MEASURE` writers take `RARE_NS` or longer, writers are so few that their price does not matter, and the
//!    trial ends with bias. In a plain window a reader's nomination finds this out, since no writer may come.
//!
//! **Bound.** Trials lose one part in `INHIBITION` of what the faster state would do, 0.8 %. What a trial costs both states
//! alike (below) is not in it: some 10 % of half a second in eight, without a section and where the states differ little. A
//! workload that changes has the wrong state for one rest at most: 0.2 to 8 s where the states differ little, and up to 128
//! times 100 ms where a trial lost much. Without a writer the latch stays biased for any time, since no writer pays for it.
//!
//! **Why windows of milliseconds.** A worker that finds the list's lock taken sleeps for 0.1 to 1 ms, and with hundreds
//! of workers each comes once in 0.2 ms. A window of 0.1 ms, as this module had before, sees what the other state's
//! sleepers do.
//!
//! **Why 32,768 writers.** They are a random part of all acquisitions: the time of 64 of them, at 99 % reads, varies by
//! 12 % by itself. Until 2026-11-26 a trial whose windows were long because writers were few ended after 4 pairs, of
//! 512 writers each state: 6 % by chance, and a latch that makes 5 % more with bias stayed plain on three machines.
//!
//! **What is counted, and where.** All per worker, on a line that no other worker writes, and as little as can be. Two
//! accesses to that line between a worker's first attempt and the next one, or while it holds the latch, or even after its
//! release cost 2 to 5 % of an empty section, since the next worker gets the word's line so much later. So who waits is not
//! counted but drawn from the time, which a wait reads anyway. While the latch rests, nothing is counted on the word's
//! line: a holder that stores there waits for the line again where readers have fetched it meanwhile. It cost a biased
//! latch 2 to 7 %. In a trial every `COUNTED`th writer counts behind the word, since a sum must be had; with each of them
//! a biased window was 25 % slower in the worst case than the state is.
//!
//! **A trial must not change what it measures, nor leave anything behind.** In a trial the word of an idle plain latch is
//! not zero, so a writer that finds it idle has a compare-and-swap in vain, which it would not have at rest. With an empty
//! section that takes up to a quarter of the state's throughput. So plain windows count how many writers that concerns, and
//! as many of the writers of a biased window have one in vain, too (`Share`), and a pause, since those of a plain one count
//! themselves in between and may lose the line meanwhile. And what a worker learns while it
//! waits for slots must not change how it waits at a plain latch: it learns it apart (`ReaderSlots::drain`).
//!
//! **What this cannot see.** Two states that differ by less than the noise of `WRITERS`, or of as many as come in `LONG_NS`,
//! are told apart by chance, and the choice stays until the next trial. Where the latch does not limit the workload both
//! states take the same time, and the latch stays as it is. And a state whose consequences come later than the longest
//! window lasts, 48 ms with its settling, is judged by its beginning.
//!
//! A latch whose readers never meet, because it has one thread or is hardly used, is never biased at all.
//!
//! The counts on the reader's side are made without atomic RMWs and may lose some; they are samples. `TRIAL` is in the
//! word so that writers of a resting plain latch count nothing: their one compare-and-swap from zero fails during a
//! trial, and the slow way counts.
//!
//! The number of readers per writer does not decide, though it did once: the ratio at which bias pays differs between
//! machines, sections, and ways to wait (`docs/mechanisms/read-biased.md`, "When it turns").
//!
//! Origin: BRAVO (Dice and Kogan, USENIX ATC 2019) inhibits bias for a multiple of the time of the last revocation. It
//! compares nothing. Here a writer leaves the bias as it is, and both states are measured by turns.

use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AdaptiveCounts, AtomicWord, CoreU32, CoreU64, Host, Machine};

/// True if a latch is biased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BiasPolicy {
    /// While it pays, by the latch's own measurement.
    #[default]
    Adaptive,
    /// Never: a plain latch, for comparison.
    Never,
    /// Always, whatever that costs its writers.
    Always,
}

/// The number of times that a latch has turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BiasStatistics {
    /// Times that it was turned biased.
    pub turned_biased: u32,
    /// Times that it was turned plain.
    pub turned_plain: u32,
}

/// Conflicts of a reader at a plain latch, or waits of a writer of one that rests biased, per check whether a trial is
/// due. Waits are drawn, meetings counted per worker. Prime, so that a fixed order of visiting latches does
/// not always nominate the same latch. It was 61: then 288 workers that each seldom wait needed 70 ms to begin.
const SAMPLE: u32 = 13;
/// Divisor of these checks for readers that met another one, once the latch has been tried before. A check reads the
/// clock while its worker holds the latch: with each of them 16 threads on two CPUs made 0.87 of a plain
/// latch without any section.
const SAMPLE_TRIED: u32 = 8;
/// Writers of a latch that rests biased, of those that did not wait, per check whether a trial is due. If others
/// wait, those check: at every 13th the clock and the count took 2 % of 64 clients without any section.
const SAMPLE_UNWAITED: u32 = 127;
/// Writers of a trial, counted per worker, per writer that is counted behind the word.
const COUNTED: u32 = 4;
/// Counted writers between two looks at the clock.
const LOOK: u32 = 4;
/// Counted writers that pass in a trial after each turn, at least, before the time is taken.
const SETTLE: u32 = 8;
/// Time that passes until then, at least: that of the sleeps of waiters.
const SETTLE_NS: u64 = 1_000_000;
/// Counted writers whose time is taken, at least.
const MEASURE: u32 = 32;
/// Time that is taken, at least.
const MEASURE_NS: u64 = 2_000_000;
/// The lengths of windows: binary logarithms of the factor by which they last and settle longer than `MEASURE_NS` and
/// `SETTLE_NS`. The number of pairs that are needed is divided by it.
const LENGTHS_LOG2: [u32; 3] = [0, 2, 4];
/// Pairs of the shortest windows after which a trial goes on with longer ones if the states hardly differ; of these
/// after half as many with the longest.
const PAIRS_OF_LENGTH: u32 = 8;
/// States whose sums differ by less than one part in this many hardly differ, however many windows there were.
const PARTS_MAX: u64 = 32;
/// Least number of times that a trial measures each state.
const PAIRS_MIN: u32 = 2;
/// Number of times that it measures each state, before states that hardly differ end it, if writers decide how long
/// windows are.
const PAIRS_MAX: u32 = 16;
/// Counted writers of a trial until then, at least: as writers are a random part of all acquisitions, the times that
/// this many take in each state differ by 0.7 % by chance.
const WRITERS: u32 = 32_768;
/// A trial of this length ends with fewer.
const LONG_NS: u64 = 1_000_000_000;
/// Denominator of the idle-writer fraction.
const HANDICAP_OF: u32 = 16;
/// By what part of its time the state that the latch rested in must be beaten: less than the 2 % that the latch may be
/// slower than the better of its states.
const MARGIN: u64 = 64;
/// Time to the next trial, as a multiple of the time that it will lose, as far as the last one tells.
const INHIBITION: u64 = 128;
/// The same at least, as a multiple of the time that the last one took, but no more than `REST_NS_MAX`.
const REST: u64 = 16;
/// So long a latch rests after a trial that took long because writers are few, which lost next to nothing.
const REST_NS_MAX: u64 = 8_000_000_000;
/// A trial in which `MEASURE` writers take this time or longer ends: writers are rare.
const RARE_NS: u64 = 20_000_000;

const _: () = assert!(PAIRS_MIN.is_power_of_two() && PAIRS_MAX.is_power_of_two() && PAIRS_MIN <= PAIRS_MAX);

/// The state of the bias in the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) biased: bool,
    pub(crate) trial: bool,
}

impl Turn {
    pub(crate) const PLAIN: Turn = Turn {
        biased: false,
        trial: false,
    };
    pub(crate) const BIASED: Turn = Turn {
        biased: true,
        trial: false,
    };
}

/// A writer's part in a trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// It is counted behind the word.
    pub(crate) counted: bool,
    /// In a biased window it has a compare-and-swap in vain, as a writer of a plain window has that finds the word idle.
    pub(crate) handicapped: bool,
}

/// The consequence of a pair of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The trial ends with this state.
    State {
        biased: bool,
    },
    /// It begins again with longer windows.
    LongerWindows,
    GoOn,
}

/// The windows of one state in a trial.
#[derive(Debug)]
struct Windows<M: Machine> {
    sum_ns: M::U64,
    longest_ns: M::U64,
}

impl Windows<Host> {
    const fn in_static() -> Self {
        Self {
            sum_ns: CoreU64::new_const(0),
            longest_ns: CoreU64::new_const(0),
        }
    }
}

impl<M: Machine> Windows<M> {
    fn new() -> Self {
        Self {
            sum_ns: M::U64::new(0),
            longest_ns: M::U64::new(0),
        }
    }

    fn add(&self, took: u64) {
        self.sum_ns.store(self.sum_ns.load(Relaxed) + took, Relaxed);
        self.longest_ns
            .store(self.longest_ns.load(Relaxed).max(took), Relaxed);
    }

    /// The sum without the longest.
    fn sum_of_others(&self) -> u64 {
        self.sum_ns.load(Relaxed) - self.longest_ns.load(Relaxed)
    }

    fn clear(&self) {
        self.sum_ns.store(0, Relaxed);
        self.longest_ns.store(0, Relaxed);
    }
}

/// The data that the decision is made from, behind the latch's word. All of it is written by exclusive holders only,
/// but for the statistics. In this order, so that what each writer of a trial changes lies on the line of the word,
/// which it has just fetched, and what workers look at between trials lies on another one, which does not change.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Bias<M: Machine> {
    /// Writers in the current window; 0 before its first.
    writers: M::U32,
    /// Those of them that came before the time is taken; 0 as long as the latch settles.
    settled: M::U32,
    /// The start of the current window, or of its settling.
    window_ns: M::U64,
    /// The start of the trial.
    trial_ns: M::U64,
    /// Windows of the trial that are over. The even ones are biased, the odd ones plain.
    windows: M::U32,
    /// Those of the current window's writers that found the word idle.
    idle: M::U32,
    /// Writers in the windows that are over.
    trial_writers: M::U32,
    /// Number of writers, of `HANDICAP_OF`, that found the word idle in the last plain window: all, before there was
    /// one.
    handicapped: M::U32,
    /// No trial before this time.
    inhibited_ns: M::U64,
    policy: BiasPolicy,
    /// The findings of past trials for the next one. Bit 0: the last one ended with bias. The others: the index in
    /// `LENGTHS_LOG2` of the windows' length.
    past: M::U32,
    biased: Windows<M>,
    plain: Windows<M>,
    turned_biased: M::U32,
    turned_plain: M::U32,
}

impl Bias<Host> {
    /// As `new`, in a constant.
    pub(super) const fn in_static(policy: BiasPolicy) -> Self {
        Self {
            writers: CoreU32::new_const(0),
            settled: CoreU32::new_const(0),
            window_ns: CoreU64::new_const(0),
            trial_ns: CoreU64::new_const(0),
            windows: CoreU32::new_const(0),
            idle: CoreU32::new_const(0),
            trial_writers: CoreU32::new_const(0),
            handicapped: CoreU32::new_const(HANDICAP_OF),
            inhibited_ns: CoreU64::new_const(0),
            policy,
            past: CoreU32::new_const(0),
            biased: Windows::in_static(),
            plain: Windows::in_static(),
            turned_biased: CoreU32::new_const(0),
            turned_plain: CoreU32::new_const(0),
        }
    }
}

impl<M: Machine> Bias<M> {
    /// Under a checker the thresholds are so low that the latch turns whenever it may.
    const SAMPLE: u32 = if M::EXPLORED { 1 } else { SAMPLE };
    const SAMPLE_TRIED: u32 = if M::EXPLORED { 1 } else { SAMPLE_TRIED };
    const SAMPLE_UNWAITED: u32 = if M::EXPLORED { 1 } else { SAMPLE_UNWAITED };
    const COUNTED: u32 = if M::EXPLORED { 1 } else { COUNTED };
    const LOOK: u32 = if M::EXPLORED { 1 } else { LOOK };
    const SETTLE: u32 = if M::EXPLORED { 0 } else { SETTLE };
    const SETTLE_NS: u64 = if M::EXPLORED { 0 } else { SETTLE_NS };
    const MEASURE: u32 = if M::EXPLORED { 1 } else { MEASURE };
    const MEASURE_NS: u64 = if M::EXPLORED { 0 } else { MEASURE_NS };
    const PAIRS_MAX: u32 = if M::EXPLORED { PAIRS_MIN } else { PAIRS_MAX };
    const WRITERS: u32 = if M::EXPLORED { 0 } else { WRITERS };
    const INHIBITION: u64 = if M::EXPLORED { 0 } else { INHIBITION };
    const REST: u64 = if M::EXPLORED { 0 } else { REST };

    pub(crate) fn new(policy: BiasPolicy) -> Self {
        Self {
            writers: M::U32::new(0),
            settled: M::U32::new(0),
            window_ns: M::U64::new(0),
            trial_ns: M::U64::new(0),
            windows: M::U32::new(0),
            idle: M::U32::new(0),
            trial_writers: M::U32::new(0),
            handicapped: M::U32::new(HANDICAP_OF),
            inhibited_ns: M::U64::new(0),
            policy,
            past: M::U32::new(0),
            biased: Windows::new(),
            plain: Windows::new(),
            turned_biased: M::U32::new(0),
            turned_plain: M::U32::new(0),
        }
    }

    pub(crate) fn policy(&self) -> BiasPolicy {
        self.policy
    }

    pub(crate) fn statistics(&self) -> BiasStatistics {
        BiasStatistics {
            turned_biased: self.turned_biased.load(Relaxed),
            turned_plain: self.turned_plain.load(Relaxed),
        }
    }

    /// The caller's counts at adaptive latches. A worker without a slot counts nothing: it may hold the latch, so it
    /// must not wait for a slot here.
    fn counts() -> Option<&'static AdaptiveCounts<M>> {
        M::known_worker().map(|worker| &M::workers().slot(worker).adaptive)
    }

    /// True if a reader's wait for a plain latch, in a `trial` or not, that began at `started` shall turn it biased,
    /// and then, unless in a trial already, begin one.
    pub(crate) fn nominated_by_wait(&self, trial: bool, started: u64) -> bool {
        self.is_sample_of_waits(started) && started >= self.nominated_since(trial)
    }

    /// True if a wait, of which `time` is known, shall look whether a trial is due. Drawn from the time, which waits read
    /// anyway: a count would delay the worker's next look at the word.
    fn is_sample_of_waits(&self, time: u64) -> bool {
        // Fibonacci hashing, since a clock may tick in steps of more than a nanosecond.
        let drawn = time.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        self.policy == BiasPolicy::Adaptive && drawn.is_multiple_of(u64::from(Self::SAMPLE))
    }

    /// As [`nominated_by_wait`](Self::nominated_by_wait), of a reader that met another one, and counts the meeting.
    pub(crate) fn nominated_by_meeting(&self, trial: bool, clock: impl FnOnce() -> u64) -> bool {
        let Some(met) = Self::counts().map(|counts| counts.meetings.next()) else {
            return false;
        };
        if !met.is_multiple_of(Self::SAMPLE) || self.policy != BiasPolicy::Adaptive {
            return false;
        }
        if self.inhibited_ns.load(Relaxed) != 0 && !met.is_multiple_of(Self::SAMPLE * Self::SAMPLE_TRIED) {
            return false;
        }
        clock() >= self.nominated_since(trial)
    }

    /// The factor by which windows are longer than in a first trial, as a binary logarithm.
    fn length_log2(&self) -> u32 {
        LENGTHS_LOG2[self.past.load(Relaxed) as usize >> 1]
    }

    /// The most times that a trial measures each state.
    fn pairs_max(&self) -> u32 {
        (Self::PAIRS_MAX >> self.length_log2()).max(PAIRS_MIN)
    }

    /// From when on a reader of a plain latch may turn it biased.
    fn nominated_since(&self, trial: bool) -> u64 {
        if trial {
            let window_ns = (Self::SETTLE_NS + Self::MEASURE_NS) << self.length_log2();
            self.window_ns.load(Relaxed).saturating_add(RARE_NS + window_ns)
        } else {
            self.inhibited_ns.load(Relaxed)
        }
    }

    /// True if a writer of a latch that rests biased, which waited at `time`, should begin a trial.
    pub(crate) fn trial_is_due_after_wait(&self, time: u64) -> bool {
        self.is_sample_of_waits(time) && time >= self.inhibited_ns.load(Relaxed)
    }

    /// Counts a writer that did not wait and has released a latch that rests biased. Returns whether it should begin a trial.
    pub(crate) fn trial_is_due(&self, clock: impl FnOnce() -> u64) -> bool {
        self.policy == BiasPolicy::Adaptive
            && Self::counts().is_some_and(|counts| counts.writes.next().is_multiple_of(Self::SAMPLE_UNWAITED))
            && clock() >= self.inhibited_ns.load(Relaxed)
    }

    /// Counts a writer that is about to acquire a latch in a trial. Returns what of the trial falls to it.
    pub(crate) fn share_of_this_writer(&self) -> Share {
        let Some(number) = Self::counts().map(|counts| counts.writes.next()) else {
            return Share {
                counted: false,
                handicapped: false,
            };
        };
        Share {
            counted: number.is_multiple_of(Self::COUNTED),
            handicapped: number % HANDICAP_OF < self.handicapped.load(Relaxed),
        }
    }

    /// The latch was turned biased.
    pub(crate) fn turned_biased(&self) {
        self.turned_biased.fetch_add(1, Relaxed);
    }

    /// The latch was turned plain.
    pub(crate) fn turned_plain(&self) {
        self.turned_plain.fetch_add(1, Relaxed);
    }

    /// Counts a writer behind the word, which it found as `turn`, and `idle` or not, in a trial. Returns what the word shall
    /// say from now on. Called by the exclusive holder, if it is [`counted`](Share::counted).
    #[inline]
    pub(crate) fn next_turn(&self, turn: Turn, idle: bool, clock: impl FnOnce() -> u64) -> Turn {
        let writers = self.writers.load(Relaxed);
        if idle {
            self.idle.store(self.idle.load(Relaxed) + 1, Relaxed);
        }
        if writers.is_multiple_of(Self::LOOK) {
            return self.try_on(turn, writers, clock());
        }
        self.writers.store(writers + 1, Relaxed);
        turn
    }

    /// A window, with its settling, begins with this writer.
    fn begin_window(&self, now: u64) {
        self.window_ns.store(now, Relaxed);
        self.settled.store(u32::from(Self::SETTLE == 0), Relaxed);
        self.writers.store(1, Relaxed);
        self.idle.store(0, Relaxed);
    }

    /// The first writer of a trial, or one that looks at the clock.
    #[cold]
    #[inline(never)]
    fn try_on(&self, turn: Turn, writers: u32, now: u64) -> Turn {
        if writers == 0 {
            self.trial_ns.store(now, Relaxed);
            self.begin_window(now);
            if !M::EXPLORED {
                return turn;
            }
            // To a checker the first writer of a trial is also the last one of its first window.
        }
        let windows = self.windows.load(Relaxed);
        if turn.biased != windows.is_multiple_of(2) {
            // A reader has turned a plain window's latch: no writer had come for so long.
            return self.end_trial(now, true, 0);
        }
        let took = now.saturating_sub(self.window_ns.load(Relaxed));
        let settled = self.settled.load(Relaxed);
        let length = self.length_log2();
        if settled == 0 && writers >= Self::SETTLE && took >= Self::SETTLE_NS << length {
            self.settled.store(writers, Relaxed);
            self.window_ns.store(now, Relaxed);
        }
        let passed = writers.max(1) + 1 - settled;
        if settled == 0 || passed < Self::MEASURE || took < Self::MEASURE_NS << length {
            self.writers.store(writers + 1, Relaxed);
            return turn;
        }
        if took >= RARE_NS / u64::from(MEASURE) * u64::from(passed) {
            return self.end_trial(now, true, 0);
        }
        // A thousandth of a nanosecond, a writer.
        let each = took * 1_000 / u64::from(passed);
        if turn.biased {
            self.biased.add(each);
        } else {
            self.plain.add(each);
            let idle = self.idle.load(Relaxed).min(writers + 1);
            self.handicapped
                .store((idle * HANDICAP_OF).div_ceil(writers + 1), Relaxed);
        }
        self.windows.store(windows + 1, Relaxed);
        self.trial_writers
            .store(self.trial_writers.load(Relaxed) + writers + 1, Relaxed);
        let by_time = passed > Self::MEASURE + Self::LOOK;
        let trial_took = now.saturating_sub(self.trial_ns.load(Relaxed));
        match self.decide(windows + 1, trial_took, by_time) {
            Verdict::State { biased } => {
                let lost = self.lost_ns(now, windows / 2);
                let measured = Self::MEASURE_NS << length;
                self.lengthen_windows();
                let next = Self::MEASURE_NS << self.length_log2();
                // The next trial may lose as many times as much as its windows are longer. Those that wait for their writers,
                // not for the time, stay as they are.
                let measured = if by_time { measured } else { took };
                let lost = lost.saturating_mul(next.max(measured)) / measured.max(1);
                self.end_trial(now, biased, lost)
            }
            verdict => {
                if verdict == Verdict::LongerWindows {
                    self.lengthen_windows();
                    self.biased.clear();
                    self.plain.clear();
                    self.windows.store(0, Relaxed);
                }
                self.begin_window(now);
                Turn {
                    biased: !turn.biased,
                    trial: true,
                }
            }
        }
    }

    /// Of this trial from now on, or of the next one.
    fn lengthen_windows(&self) {
        let past = self.past.load(Relaxed);
        if past >> 1 < LENGTHS_LOG2.len() as u32 - 1 {
            self.past.store(past + 2, Relaxed);
        }
    }

    /// The verdict after `windows` windows of this length and `took` nanoseconds in all. `by_time`: more writers have
    /// passed in the last window than had to.
    fn decide(&self, windows: u32, took: u64, by_time: bool) -> Verdict {
        let (pairs, longer) = (windows / 2, self.past.load(Relaxed) >> 1);
        if !windows.is_multiple_of(2) || pairs < PAIRS_MIN || !pairs.is_power_of_two() {
            return Verdict::GoOn;
        }
        let (biased, plain) = (self.biased.sum_of_others(), self.plain.sum_of_others());
        let (faster, slower) = (biased.min(plain), biased.max(plain));
        let by_chance = slower / u64::from((2 * pairs) << self.length_log2()).min(PARTS_MAX);
        if slower - faster > by_chance {
            return Verdict::State {
                biased: biased < plain,
            };
        }
        let longest = longer == LENGTHS_LOG2.len() as u32 - 1;
        if by_time && !longest && pairs >= PAIRS_OF_LENGTH >> longer {
            return Verdict::LongerWindows;
        }
        let enough = self.trial_writers.load(Relaxed) >= Self::WRITERS || took >= LONG_NS;
        if pairs < self.pairs_max() || !enough {
            return Verdict::GoOn;
        }
        let rested_biased = self.past.load(Relaxed) & 1 != 0;
        let (rested, other) = if rested_biased {
            (biased, plain)
        } else {
            (plain, biased)
        };
        Verdict::State {
            biased: rested_biased != (other < rested - rested / MARGIN),
        }
    }

    /// The cost of the trial: its time, less what its writers would have taken in the faster state. Each state's sum is
    /// of `windows` windows.
    fn lost_ns(&self, now: u64, windows: u32) -> u64 {
        let faster = self.biased.sum_of_others().min(self.plain.sum_of_others());
        let each = faster / u64::from(windows.max(1));
        let took = now.saturating_sub(self.trial_ns.load(Relaxed));
        took.saturating_sub(each * u64::from(self.trial_writers.load(Relaxed)) / 1_000)
    }

    /// `lost`: what the next trial is expected to lose, ns.
    fn end_trial(&self, now: u64, biased: bool, lost: u64) -> Turn {
        let took = now.saturating_sub(self.trial_ns.load(Relaxed));
        let rest = lost
            .saturating_mul(Self::INHIBITION)
            .max(took.saturating_mul(Self::REST).min(REST_NS_MAX));
        self.inhibited_ns.store(now.saturating_add(rest), Relaxed);
        let past = self.past.load(Relaxed);
        self.past.store(past & !1 | u32::from(biased), Relaxed);
        self.biased.clear();
        self.plain.clear();
        self.windows.store(0, Relaxed);
        self.trial_writers.store(0, Relaxed);
        self.writers.store(0, Relaxed);
        if biased { Turn::BIASED } else { Turn::PLAIN }
    }
}

#[cfg(test)]
mod tests;
