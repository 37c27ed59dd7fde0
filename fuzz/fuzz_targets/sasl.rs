//! Whatever may stand in a client's messages of SASL.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| clearway_fuzz::sasl(data));
