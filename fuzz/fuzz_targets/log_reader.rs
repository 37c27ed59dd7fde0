//! Whatever may stand in a log after a crash.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| clearway_fuzz::log_reader(data));
