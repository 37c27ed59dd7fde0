//! `libclearway_pthread.so`: the pthread locks of an unmodified program over the latches of `clearway-latch`.
//!
//! ```sh
//! LD_PRELOAD=libclearway_pthread.so CLEARWAY_LATCH=ssux CLEARWAY_REPORT=waits.txt program
//! ```
//!
//! | object of the program | becomes | unless |
//! | --- | --- | --- |
//! | `pthread_mutex_t` | the latch that `CLEARWAY_LATCH` names, with an owner where its type asks for one | process-shared, robust, or with a priority protocol |
//! | `pthread_rwlock_t` | an `SsuxLock` | process-shared |
//! | `pthread_spinlock_t` | an `SrwMutex` that is polled | |
//! | `pthread_cond_t` | an `SrwCondvar` | process-shared |
//!
//! The exceptions are handed on to libc, whole. `docs/embedding/preload.md` is the page for users.
//!
//! # Rules
//! - L1. An object is libc's or ours from its initialisation to its destruction, by a mark that libc itself puts into it
//!   and that a static initialiser has: the kind of a mutex, the flag "process-shared" of the others. So libc initialises all
//!   objects but spinlocks; it leaves zeros where the latch is, and zeros are an idle latch. An object that is zeroed, copied
//!   while idle, or initialised again is therefore idle, whatever was at its address before: nothing is kept by address.
//! - L2. The latch, the owner and its count lie in the object's own bytes. There is no other memory but static tables, and 12 KiB
//!   for the latches' counters of waits, which the first wait of the process has the system map. So nothing here calls an
//!   allocator, and a program's own `malloc` may use these locks. Nor is there thread-local data, nor anything to give back when
//!   a thread ends.
//! - L3. Once a release has let the next holder in, the object is not accessed any more: the next holder may free it. So
//!   mutexes and exclusives are released by `release_to_be_freed`, and a variable is destroyed when no waiter is counted.
//! - L4. The owner of a recursive or checked mutex, and of an exclusively held rwlock, is written by the holder alone, between
//!   its acquisition and its release. So a thread that reads its own number there, even Relaxed, is the holder.
//! - L5. What a lock call does for itself leaves `errno` as it was.
//! - L6. Nothing is held over a `fork`: the child has the objects' bytes, and the calling thread owns in it what it owned
//!   (`pthread_self` stays the same). A latch for which threads of the parent waited counts them still; that costs system calls
//!   at releases in the child. A mark that a woken waiter is awake may be copied, too; a waiter of the child clears it before it
//!   sleeps. A condition variable for which threads of the parent waited counts them still, and its destruction in the child
//!   waits for them without an end, as in glibc.
//! - L7. No function is a cancellation point but the waits for a condition, and they unwind only in `cancellation::test`, with
//!   the mutex. So system calls are made by number (`platform`): libc's functions of their names are cancellation points.
//!
//! # Modules
//! | file | holds |
//! | --- | --- |
//! | `exported` | the functions that the program calls, and where they count |
//! | `mutex`, `rwlock`, `spin`, `condition` | an object each: its bytes and its error codes |
//! | `cancellation` | `pthread_cancel` of a thread that waits for a condition; rules K1 to K4 |
//! | `latch` | the latches that may stand under a mutex |
//! | `layout` | where libc keeps its marks |
//! | `setting` | the environment variables |
//! | `deadline` | points in time of a clock |
//! | `platform` | sleeping, waking and writing |
//! | `libc_functions` | libc's own functions of the same names |
//! | `call_site` | the address that a call returns to |
//! | `report` | counting, and the table |

#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
// The contracts of the exported functions are POSIX's.
#![allow(clippy::missing_safety_doc)]

mod call_site;
mod cancellation;
mod condition;
mod deadline;
mod exported;
mod latch;
mod layout;
mod libc_functions;
mod mutex;
mod platform;
mod report;
mod rwlock;
mod setting;
mod spin;
mod tell;
