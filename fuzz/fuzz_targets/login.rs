//! Whatever a client may send before it has logged in.
#![no_main]

use std::sync::OnceLock;

use clearway_fuzz::login::Door;

/// Never dropped, so its directory stays in `$TMPDIR`.
static DOOR: OnceLock<Door> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| DOOR.get_or_init(Door::new).knock(data));
