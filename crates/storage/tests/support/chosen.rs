//! What the environment chooses for the tests.

use clearway_storage::PageLatchKind;

/// The page latch to test, as the environment variable `CLEARWAY_MECHANISMS` says (`page_latch=hybrid`); else the default.
pub fn page_latch() -> PageLatchKind {
    let mechanisms = std::env::var("CLEARWAY_MECHANISMS").unwrap_or_default();
    let chosen = mechanisms
        .split(',')
        .find_map(|assignment| assignment.trim().strip_prefix("page_latch="));
    match chosen {
        None => PageLatchKind::default(),
        Some("lwlock") => PageLatchKind::LwLock,
        Some("hybrid") => PageLatchKind::Hybrid,
        Some("ssux") => PageLatchKind::Ssux,
        Some(other) => panic!("CLEARWAY_MECHANISMS: there is no page latch {other}"),
    }
}
