//! The state of an [`SsuxLock`](crate::SsuxLock) behind one contract. Each variant is an [`SsuxProtocol`] in a file of
//! its own.

use clearway_machine::Machine;

use crate::waiting::Waiting;

/// The layout of an [`SsuxLock`](crate::SsuxLock)'s state, chosen by type: [`OneWord`](crate::OneWord), or as InnoDB
/// has it in two words, of which the writers' word is changed by [`CasLoop`](crate::CasLoop),
/// [`FetchAddBts`](crate::FetchAddBts) or [`SingleWake`](crate::SingleWake).
pub trait SsuxProtocol: core::fmt::Debug + Copy + Send + Sync + 'static {
    /// The state on a machine.
    type State<M: Machine>: SsuxState<M>;
}

/// The readers inside when a worker became the owner in exclusive mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// None: the owner holds the lock.
    None,
    /// Some, and the owner must wait for them. No more are admitted.
    Inside,
}

/// The transitions of the state that need no class and no clock. [`SsuxLock`](crate::SsuxLock) says what the
/// modes mean and which holder may call what.
pub trait SsuxState<M: Machine>: core::fmt::Debug + Send + Sync + 'static {
    /// Idle.
    fn new() -> Self;

    /// Number of workers that hold the lock in shared mode. Like the next two, out of date on return.
    fn shared_holders(&self) -> u32;
    /// True if the lock has an owner: in update mode, in exclusive mode, or waiting for readers to leave.
    fn is_owned(&self) -> bool;
    /// True if the lock is held in exclusive mode.
    fn is_held_exclusively(&self) -> bool;

    /// Makes the caller a reader by one attempt. Acquire: what the last writer wrote is visible.
    fn try_enter(&self) -> bool;
    /// Makes the caller a reader unless an exclusive holds or wants the lock. Acquire.
    fn enter(&self) -> bool;
    /// As `enter`, and also beside an exclusive that waits for a reader inside to leave. Acquire.
    fn enter_beside_readers(&self) -> bool;
    /// True if readers are admitted. Out of date on return.
    fn is_open(&self) -> bool;
    /// A reader leaves, and wakes the owner if it waits for that. Release: pairs with the Acquire of the
    /// owner.
    fn exit(&self);
    /// Registers a waiting reader.
    fn register_reader(&self);
    /// Puts a registered reader to sleep if readers are excluded. `slept`: it has slept before. Returns
    /// whether it slept now.
    fn sleep_while_exclusive(&self, waiting: &mut Waiting, slept: bool) -> bool;
    /// Puts a registered reader that may enter beside readers to sleep, if readers are excluded and none is inside. `slept`:
    /// it has slept before. Returns whether it slept now.
    fn sleep_while_empty(&self, waiting: &mut Waiting, slept: bool) -> bool;
    /// The caller is inside, or the owner that waits for readers inside: wakes the readers that may enter beside them.
    fn wake_recursive_readers(&self);
    /// Unregisters a reader, and if it has `slept`, passes on the wake that it may have consumed.
    fn unregister_reader(&self, slept: bool);

    /// Makes the caller the owner in update mode, if one attempt finds the lock idle but for readers.
    fn take_update_idle(&self) -> bool;
    /// Makes the caller the owner in update mode if there is no owner.
    fn try_take_update(&self) -> bool;
    /// Makes the caller the owner in update mode, waiting as long as it takes, or until the wait is over. Returns whether
    /// it did so.
    fn take_update(&self, waiting: &mut Waiting) -> bool;
    /// Gives up what was taken in update mode. Release.
    fn release_update(&self);

    /// Makes the caller the owner in exclusive mode, if one attempt finds no owner and no waiter.
    fn take_exclusive_idle(&self) -> Option<Readers>;
    /// Makes the caller the holder in exclusive mode if there is no owner and no reader.
    fn try_take_exclusive(&self) -> bool;
    /// Makes the caller the owner in exclusive mode. Waits for other owners as long as it takes, or until the wait is
    /// over (`None`), and not for readers.
    fn take_exclusive(&self, waiting: &mut Waiting) -> Option<Readers>;
    /// Number of readers that the owner in exclusive mode must wait for. Acquire: pairs with the Release in each
    /// reader's `exit`.
    fn readers_left(&self) -> u32;
    /// The owner sleeps while readers are inside. May return early.
    fn sleep_until_readers_leave(&self, waiting: &mut Waiting);
    /// Gives up what was held in exclusive mode. Release.
    fn release_exclusive(&self);

    /// The owner upgrades from update to exclusive mode.
    fn update_to_exclusive(&self) -> Readers;
    /// As `update_to_exclusive`, if there is no reader.
    fn try_update_to_exclusive(&self) -> bool;
    /// The owner in exclusive mode, for which readers have not left, goes back to update mode and admits readers.
    fn withdraw_exclusive(&self);
    /// The owner becomes a reader.
    fn update_to_shared(&self);
    /// The owner in exclusive mode admits readers again.
    fn exclusive_to_update(&self);
    /// The owner becomes a reader.
    fn exclusive_to_shared(&self);
    /// A reader becomes the owner in update mode, if there is no owner.
    fn try_shared_to_update(&self) -> bool;
}

/// A state that a `const` can make.
pub trait ConstState {
    /// Idle.
    const IDLE: Self;
}
