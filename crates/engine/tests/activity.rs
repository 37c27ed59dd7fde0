//! What other sessions see of a session.

mod common;

use clearway_engine::Session;
use common::{Fixture, query};

#[test]
fn a_long_query_is_shown_from_its_beginning() {
    let fixture = Fixture::new("");
    let mut alice = fixture.session();
    let shown = |of: &Session| {
        let activity = fixture.engine.activity();
        let process_id = of.cancel_key().0;
        let found = activity.iter().find(|session| session.process_id == process_id);
        found.unwrap().query.to_string()
    };
    let long = format!("select '{}'", "ä".repeat(2_000));
    query(&mut alice, &long);
    let beginning = shown(&alice);
    assert!(
        long.starts_with(&beginning) && (1_000..=1_024).contains(&beginning.len()),
        "{}",
        beginning.len()
    );
    query(&mut alice, "select 1");
    assert_eq!(shown(&alice), "select 1");
}
