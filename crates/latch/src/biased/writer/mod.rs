//! The writer's side of a [`ReadBiasedLatch`](super::ReadBiasedLatch): how a writer takes all slots, and how it gives
//! them back.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the contract, the switch with its variants, the dispatch |
//! | `one_by_one` | variant `one-by-one`, the baseline: acquire slot after slot |
//! | `announce` | variant `announce`: say so in all slots, then wait once for the readers inside |
//! | `hand_over` | variant `hand-over`: as `announce`, and the slots go from writer to writer |
//! | `give_back` | the release of slots, for all variants |
//!
//! # Contract of a variant
//! - C1: after `acquire`, or a `try_acquire` that returned `true`, each slot in use has `EXCLUSIVE`, and every reader
//!   that was granted one of them has left it. What those readers and earlier writers did is visible.
//! - C2: while a writer may set `EXCLUSIVE` in a slot no other writer does. So two writers never have some of the
//!   slots each.
//! - C3: no worker waits without an end for a slot that a waiting writer holds: either the slots have an order, or a
//!   writer waits for readers only, and a reader that holds a slot waits for none.
//! - C4: `EXCLUSIVE` of a slot is given back by `give_back`, which makes the wake-ups that are owed to the workers
//!   that it refused.
//! - C5: a reader that leaves a slot and finds `EXCLUSIVE` there calls `reader_left`, once for each unit that it gives
//!   back: a writer counts on it. Under a
//!   variant that waits for the count to be zero before it sets `EXCLUSIVE`, no reader finds it.

mod announce;
mod give_back;
mod hand_over;
mod one_by_one;

use clearway_machine::{Host, Machine, Padded};

use self::announce::Announcement;
pub(super) use self::give_back::SLOTS_MAX;
use self::hand_over::HandOver;
use crate::class::LatchClass;
use crate::lwlock::LwLock;
use crate::lwlock::options::{LwLockOptions, LwLockSharedVariant};

/// The way in which a writer of a [`ReadBiasedLatch`](crate::ReadBiasedLatch) takes its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriterVariant {
    /// Acquires one after the other, and waits at each for the readers there: the published form, and the baseline.
    #[default]
    OneByOne,
    /// Announces itself in all slots, so that new readers are refused everywhere, and then waits once for the readers
    /// inside.
    Announce,
    /// As `Announce`; a writer that leaves while another one waits hands the slots over to it, a bounded number of times
    /// in a row.
    HandOver,
}

impl WriterVariant {
    /// Every variant, for tests that run under each.
    pub const ALL: [Self; 3] = [Self::OneByOne, Self::Announce, Self::HandOver];

    /// The variant's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneByOne => "one-by-one",
            Self::Announce => "announce",
            Self::HandOver => "hand-over",
        }
    }

    /// The options of the slots. A writer that counts the readers inside must not count one that will find itself
    /// refused, so readers come in by compare-and-swap.
    pub(super) const fn slot_options(self, options: LwLockOptions) -> LwLockOptions {
        match self {
            Self::OneByOne => options,
            Self::Announce | Self::HandOver => LwLockOptions {
                shared_path: LwLockSharedVariant::Cas,
                ..options
            },
        }
    }
}

/// The slots of a latch that are in use.
pub(super) type Slots<M> = [Padded<LwLock<M>>];

/// State that writers share. On a cache line of its own: readers read none of it unless a writer waits for them.
#[derive(Debug)]
pub(super) struct Writers<M: Machine> {
    variant: WriterVariant,
    announcement: Announcement<M>,
    hand_over: HandOver<M>,
}

impl Writers<Host> {
    /// As `new`, in a constant.
    pub(super) const fn in_static(
        variant: WriterVariant,
        class: &'static LatchClass,
        options: LwLockOptions,
    ) -> Self {
        Self {
            variant,
            announcement: Announcement::in_static(class, options),
            hand_over: HandOver::in_static(),
        }
    }
}

impl<M: Machine> Writers<M> {
    pub(super) fn new(variant: WriterVariant, class: &'static LatchClass, options: LwLockOptions) -> Self {
        Self {
            variant,
            announcement: Announcement::new(class, options),
            hand_over: HandOver::new(),
        }
    }

    /// Takes all slots, waiting as long as it takes (C1).
    pub(super) fn acquire(&self, slots: &Slots<M>) {
        match self.variant {
            WriterVariant::OneByOne => one_by_one::acquire(slots),
            WriterVariant::Announce => self.announcement.acquire(slots),
            WriterVariant::HandOver => self.hand_over.acquire(&self.announcement, slots),
        }
    }

    /// Takes all slots if that needs no waiting (C1); else none.
    pub(super) fn try_acquire(&self, slots: &Slots<M>) -> bool {
        match self.variant {
            WriterVariant::OneByOne => one_by_one::try_acquire(slots),
            WriterVariant::Announce => self.announcement.try_acquire(slots),
            WriterVariant::HandOver => self.hand_over.try_acquire(&self.announcement, slots),
        }
    }

    /// Gives back what `acquire` took.
    pub(super) fn release(&self, slots: &Slots<M>) {
        match self.variant {
            WriterVariant::OneByOne => one_by_one::release(slots),
            WriterVariant::Announce => self.announcement.release(slots),
            WriterVariant::HandOver => self.hand_over.release(&self.announcement, slots),
        }
    }

    /// A reader has left a slot with `EXCLUSIVE` (C5).
    #[cold]
    #[inline(never)]
    pub(super) fn reader_left(&self) {
        self.announcement.reader_left();
    }

    /// True if a writer is at work on the slots at this instant, for assertions.
    pub(super) fn is_held(&self) -> bool {
        self.announcement.is_held()
    }
}
