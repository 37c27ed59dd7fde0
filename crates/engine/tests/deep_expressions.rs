//! Deep expressions on a small stack.
//!
//! A session's thread has room for most of what the grammar allows, so a statement that works there does not
//! show that an expression takes more stack when it needs some. Here the thread has little more than one
//! segment's reserve (R1 of `sql/stack.rs`), and one that overflows ends the process, and so this test.

mod common;

use common::{Fixture, query};

/// A little more than the reserve that every piece of work between two checkpoints may use.
const STACK_BYTES: usize = 768 << 10;

#[test]
fn nested_chains_are_evaluated_copied_and_dropped_on_a_small_stack() {
    let (levels, terms) = (90, 60);
    let nested = format!(
        "select {}x{} from t",
        "(".repeat(levels),
        format!("{})", "+1".repeat(terms)).repeat(levels)
    );
    let cases = format!(
        "select {}x{} from t",
        "case ".repeat(levels),
        " when 1 then 1 when 2 then 2 end".repeat(levels)
    );
    let fixture = Fixture::new("create table t (x bigint); insert into t values (1)");
    let small = std::thread::Builder::new().stack_size(STACK_BYTES);
    std::thread::scope(|scope| {
        let work = || {
            let mut session = fixture.session();
            let sum = (1 + levels * terms).to_string();
            // Three times, so that the plan is made, kept and found.
            for _ in 0..3 {
                assert_eq!(query(&mut session, &nested), sum);
                assert_eq!(query(&mut session, &cases), "1");
            }
            assert_eq!(query(&mut session, &format!("prepare p as {nested}")), "PREPARE");
            // A new definition has the plan made anew.
            query(&mut session, "create table other (x int)");
            assert_eq!(query(&mut session, "execute p"), sum);
        };
        let joined = small.spawn_scoped(scope, work).unwrap().join();
        joined.unwrap();
    });
}
