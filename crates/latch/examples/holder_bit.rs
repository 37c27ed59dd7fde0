//! One mutex of each kind, acquired once: so that benches/holder-bit finds their machine code in a binary.

use std::hint::black_box;

use clearway_latch::{CasLoop, FetchAddBts, HolderProtocol, SingleWake, SrwMutex, Unclassed};
use clearway_machine::Native;

fn acquire_once<P: HolderProtocol>() {
    drop(black_box(&SrwMutex::<Unclassed, Native, P>::new()).exclusive());
}

fn main() {
    acquire_once::<CasLoop>();
    acquire_once::<FetchAddBts>();
    acquire_once::<SingleWake>();
}
