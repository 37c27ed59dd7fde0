//! `docs/wait-events.md` lists every wait event.

use clearway_machine::{WaitClass, WaitEvent};

#[test]
fn the_page_lists_every_event() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wait-events.md");
    let page = std::fs::read_to_string(page).unwrap();
    for event in WaitEvent::ALL
        .iter()
        .filter(|event| !matches!(event.class(), WaitClass::None | WaitClass::Own))
    {
        let row = format!("| {} | {} |", event.class().name(), event.name());
        assert!(page.contains(&row), "docs/wait-events.md has no row {row}");
    }
    let last = WaitEvent::OWN.last().unwrap().name();
    let row = format!("| {} | User1 to {last} |", WaitClass::Own.name());
    assert!(page.contains(&row), "docs/wait-events.md has no row {row}");
}
