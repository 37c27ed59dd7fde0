//! Whatever a client may send.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| clearway_fuzz::wire_decoder(data));
