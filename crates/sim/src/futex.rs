//! The sleepers of each futex, first come first woken.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes an address; only ever looked up, never iterated, so that addresses decide nothing.
#[derive(Debug, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("addresses are hashed as usize");
    }
    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// The sleepers of each futex.
#[derive(Debug, Default)]
pub(crate) struct Futexes(HashMap<usize, VecDeque<u32>, BuildHasherDefault<AddressHasher>>);

impl Futexes {
    pub(crate) fn add(&mut self, address: usize, worker: u32) {
        self.0.entry(address).or_default().push_back(worker);
    }

    pub(crate) fn pop(&mut self, address: usize) -> Option<u32> {
        self.0.get_mut(&address)?.pop_front()
    }

    pub(crate) fn remove(&mut self, address: usize, worker: u32) {
        if let Some(sleepers) = self.0.get_mut(&address) {
            sleepers.retain(|sleeper| *sleeper != worker);
        }
    }
}
