//! What an [`SsuxLock`](crate::SsuxLock) keeps, behind one interface: [`OneWord`], or two words in one of three ways.

use clearway_machine::Machine;

use super::holder::{CasLoop, FetchAddBts, SingleWake};
use super::in_one_word::InOneWord;
use super::in_two_words::InTwoWords;
use crate::waiting::Waiting;

/// How an [`SsuxLock`](crate::SsuxLock) keeps its state, chosen by type: [`OneWord`], or as InnoDB does in two words, of which the
/// writers' is changed by [`CasLoop`], [`FetchAddBts`] or [`SingleWake`].
pub trait SsuxProtocol: core::fmt::Debug + Copy + Send + Sync + 'static {
    /// The state on a machine.
    type State<M: Machine>: SsuxState<M>;
}

/// Readers, owner and all who wait in 64 bits that change in one step.
#[derive(Debug, Clone, Copy)]
pub struct OneWord;

impl SsuxProtocol for OneWord {
    type State<M: Machine> = InOneWord<SingleWake, M>;
}
impl SsuxProtocol for CasLoop {
    type State<M: Machine> = InTwoWords<Self, M>;
}
impl SsuxProtocol for FetchAddBts {
    type State<M: Machine> = InTwoWords<Self, M>;
}
impl SsuxProtocol for SingleWake {
    type State<M: Machine> = InTwoWords<Self, M>;
}

/// Who has become the owner in exclusive mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owned {
    /// Nobody reads.
    Alone,
    /// Readers are inside and must be waited for; no more come in.
    BesideReaders,
}

/// The state's transitions, as far as they need no class and no clock. The modes, and who may call what, are the lock's.
pub trait SsuxState<M: Machine>: core::fmt::Debug + Send + Sync + 'static {
    /// Idle.
    fn new() -> Self;

    /// How many hold the lock in shared mode: a look, as the next two.
    fn shared_holders(&self) -> u32;
    /// Whether anybody owns the lock, in update or exclusive mode or on the way to the latter.
    fn is_owned(&self) -> bool;
    /// Whether the lock is held in exclusive mode.
    fn is_held_exclusively(&self) -> bool;

    /// One attempt at becoming a reader. Acquire: what the last writer wrote is visible.
    fn try_enter(&self) -> bool;
    /// Becomes a reader unless an exclusive holds or wants the lock. Acquire.
    fn enter(&self) -> bool;
    /// Whether readers are let in: a look.
    fn is_open(&self) -> bool;
    /// A reader goes, and wakes the owner if that waits for it. Release: pairs with the Acquire of the owner.
    fn exit(&self);
    /// Puts a waiting reader on record.
    fn record_reader(&self);
    /// A reader on record, that has slept before or not, sleeps if readers are shut out; whether it did.
    fn sleep_while_exclusive(&self, waiting: &mut Waiting, slept: bool) -> bool;
    /// Takes a reader off the record, and passes on the wake that it may have consumed if it has slept.
    fn forget_reader(&self, slept: bool);

    /// Owns the lock in update mode, if it is idle but for readers and that can be seen at once.
    fn take_update_idle(&self) -> bool;
    /// Owns the lock in update mode if nobody does.
    fn try_take_update(&self) -> bool;
    /// Owns the lock in update mode, waiting as long as it takes.
    fn take_update(&self, waiting: &mut Waiting);
    /// Gives up what was taken in update mode. Release.
    fn release_update(&self);

    /// Owns the lock in exclusive mode if nobody owns or awaits it and that can be seen at once.
    fn take_exclusive_idle(&self) -> Option<Owned>;
    /// Holds the lock in exclusive mode if nobody owns it and nobody reads.
    fn try_take_exclusive(&self) -> bool;
    /// Owns the lock in exclusive mode, waiting as long as it takes for other owners, and for readers not at all.
    fn take_exclusive(&self, waiting: &mut Waiting) -> Owned;
    /// How many readers the owner in exclusive mode has to wait for. Acquire: pairs with the Release in `exit` of each of them.
    fn readers_left(&self) -> u32;
    /// The owner sleeps while readers are inside. May return at any time.
    fn sleep_beside(&self, waiting: &mut Waiting);
    /// Gives up what was held in exclusive mode. Release.
    fn release_exclusive(&self);

    /// The owner goes on from update to exclusive mode.
    fn update_to_exclusive(&self) -> Owned;
    /// As `update_to_exclusive`, if nobody reads.
    fn try_update_to_exclusive(&self) -> bool;
    /// The owner becomes a reader.
    fn update_to_shared(&self);
    /// Lets readers in.
    fn exclusive_to_update(&self);
    /// The owner becomes a reader.
    fn exclusive_to_shared(&self);
    /// A reader becomes the owner in update mode, if nobody is.
    fn try_shared_to_update(&self) -> bool;
}

/// A state that a `const` can make.
pub trait ConstState {
    /// Idle.
    const IDLE: Self;
}
