//! The array of running transactions under loom, with every variant of its switches. What a snapshot finds in it is
//! tested in `loom_snapshot`.
//!
//! `cargo test -p clearway-txn --features loom --test loom_proc_array --release`

mod support;

use std::sync::Arc;

use loom::thread;
use support::{ALICE, CAROL, array, explore_each_array};

/// Carol begins while Alice, whose entry comes before hers, detaches: Carol's entry moves, and her xid is neither lost
/// nor left behind.
///
/// Caught mutation: `detach` without XidGen (the xid is stored where the entry was).
#[test]
fn loom_an_entry_that_moves_keeps_its_xid() {
    explore_each_array(3, |options| {
        let array = Arc::new(array::<clearway_machine::Loom>(options, 3));
        let detaching = {
            let array = Arc::clone(&array);
            thread::spawn(move || array.detach(ALICE))
        };
        let xid = array.assign_xid(CAROL);
        assert_eq!(array.find_running(xid), Some(CAROL));
        detaching.join().unwrap();
        assert_eq!(array.find_running(xid), Some(CAROL));
        array.end(CAROL, Some(xid));
        assert_eq!(array.find_running(xid), None);
    });
}
