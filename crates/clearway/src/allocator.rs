//! The program's allocator, and what the engine asks of it.

use std::sync::atomic::AtomicBool;

use clearway_engine::memory::ProcessMemory;
use clearway_memory::Accounting;
use clearway_sim::LineAllocator;
use mimalloc::MiMalloc;

/// It counts, and has a reserve; and in simulations it places what it allocates.
#[global_allocator]
static ALLOCATOR: LineAllocator<Accounting<MiMalloc>> = LineAllocator(Accounting::new(MiMalloc));

/// Has the engines of this process ask the allocator.
pub(crate) fn install() {
    ALLOCATOR.0.fit_limits();
    clearway_engine::memory::install(&Counted);
}

/// Address space that any command needs beside what the program has when it begins: for threads.
const COMMAND_BYTES: usize = 32 << 20;

/// True if there is enough for a command to begin.
#[allow(dead_code, reason = "an example of the laboratory includes this file")]
pub(crate) fn has_enough() -> bool {
    ALLOCATOR.0.has_space(COMMAND_BYTES)
}

struct Counted;

impl ProcessMemory for Counted {
    fn thread_bytes(&self) -> i64 {
        ALLOCATOR.0.thread_bytes()
    }
    fn allocated_bytes(&self) -> u64 {
        ALLOCATOR.0.allocated_bytes()
    }
    fn reserve_bytes(&self) -> u64 {
        ALLOCATOR.0.reserve_bytes() as u64
    }
    fn promise(&self, bytes: usize, beside: usize) -> bool {
        ALLOCATOR.0.promise(bytes, beside)
    }
    fn drop_promise(&self) {
        ALLOCATOR.0.drop_promise();
    }
    fn promised_bytes(&self) -> u64 {
        ALLOCATOR.0.promised_bytes()
    }
    fn has(&self, bytes: usize) -> bool {
        ALLOCATOR.0.has(bytes)
    }
    fn has_space(&self, bytes: usize) -> bool {
        ALLOCATOR.0.has_space(bytes)
    }
    fn is_short(&self) -> bool {
        ALLOCATOR.0.is_short()
    }
    fn recovered(&self, mark: u64) {
        ALLOCATOR.0.recovered();
        ALLOCATOR.0.set_mark(mark);
    }
    fn watch(&self, attention: &'static AtomicBool) {
        ALLOCATOR.0.watch(attention);
    }
    fn give_back(&self) {
        ALLOCATOR.0.give_back();
    }
    fn settle(&self) {
        ALLOCATOR.0.settle();
    }
}
