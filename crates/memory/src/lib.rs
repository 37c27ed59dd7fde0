//! The program's allocator: it counts, and it has something left when the operating system has nothing.
//!
//! Rust ends the process when an allocation fails, and an allocator must not unwind. So a failure has to be answered
//! somewhere else: in the statement that holds much, at a place where it can end with an error. Until it gets there,
//! every allocation has to succeed.
//!
//! # Example
//! Three sessions under `ulimit -v`; A holds 900 MB, B 2 MB, C is new.
//!
//! ```text
//!   B  allocates a row ──▶ the system refuses ──▶ the reserve has it; "attention" is raised
//!   A  looks (each row) ──▶ attention: I hold the most ──▶ 53200, 900 MB are given back
//!   C  asks to begin ──▶ 53200 while memory is short
//!   B  looks ──▶ the system has memory again: attention is lowered
//! ```
//!
//! # Parts
//! | part | job |
//! | --- | --- |
//! | [`Accounting`] | the global allocator around another one: counts by thread, falls back on the reserve |
//! | `count` | a thread's balance, and the sum over all threads |
//! | `reserve` | memory of the program's own for what the system refuses |
//! | [`Ledger`] | promises: large requests are weighed together before they are made |
//!
//! # Steps of an allocation
//! 1. The allocator underneath is asked. The thread's balance grows by the size: an addition and a comparison.
//! 2. A thread whose balance has moved by 64 KiB since it last told adds that to the sum. A sum that has passed the mark
//!    that the engine has set raises *attention*: the engine is to look again how much the process has.
//! 3. If the allocator underneath has nothing, the reserve is asked, and attention is raised.
//! 4. If the reserve has nothing either, the thread waits: others have been asked to end, and give back. After 2 s the
//!    allocation has failed, and the process ends as without this crate.
//!
//! # Rules
//! - R1: a block of the reserve goes back to the reserve, any other to the allocator underneath. The address tells.
//! - R2: nothing here allocates, and nothing here needs a destructor of a thread: either would call the allocator again.
//! - R3: a balance counts the sizes that were asked for. A block freed by another thread counts against that thread, so a
//!   balance alone may be negative; the sum is right.
//! - R4: [`Accounting::promise`] never falls back on the reserve and never waits: it asks what the system has.
//!
//! # The size of the reserve
//! It has to last from the first refusal until the statement that holds much has looked: a row, or a piece of a message,
//! of each running session. What is larger than 1 MiB is asked for beforehand ([`Ledger`]), so a session takes less than
//! that between two looks, mostly some KiB. [`RESERVE_BYTES`] lets 64 sessions take a whole MiB at once. It is zeroed
//! memory of the program's image: address space, and not a page of memory until it is used.
//!
//! # Costs
//! Some 14 instructions for an allocation and its end together. A point SELECT allocates about once, a simple-update some 11
//! times: 0.1 and 0.15 % of their instructions. No shared line is touched until a balance has moved by 64 KiB.
//!
//! # What this does not do
//! Stacks, mapped pages and what C libraries allocate are not counted; the engine adds what is resident. A thread that
//! ends without [`Accounting::settle`] keeps back what it had not told yet, less than 64 KiB, so the sum may drift over
//! many threads. The engine uses it to decide when to look, never as the truth.

mod allocator;
mod count;
mod ledger;
mod reserve;

pub use allocator::{Accounting, Supply};
pub use ledger::Ledger;
pub use reserve::RESERVE_BYTES;
