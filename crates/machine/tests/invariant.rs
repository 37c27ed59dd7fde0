//! A rule that is broken ends the process, and tells which.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use clearway_machine::invariant;

/// Set in the process that breaks a rule.
const BREAKS: &str = "CLEARWAY_TEST_BREAKS_A_RULE";

/// The test runs itself again: there it passes a rule that holds, whose message is never made, and breaks another one.
///
/// Mutation seen to fail here: the condition is not negated.
#[test]
fn a_broken_rule_ends_the_process_with_its_number() {
    if env::var_os(BREAKS).is_some() {
        invariant!(R1, 1 + 1 == 2, "{}", message_of_a_rule_that_holds());
        let (written, end) = (8, 7);
        invariant!(2 of log::sink, written <= end, "{written} is behind {end}");
        return;
    }
    let broken = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "a_broken_rule_ends_the_process_with_its_number",
            "--nocapture",
        ])
        .env(BREAKS, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&broken.stderr);
    assert_eq!(broken.status.signal(), Some(6), "{said}");
    let told = "clearway: rule 2 of log::sink is broken in invariant, line ";
    assert!(said.contains(told) && said.contains(": 8 is behind 7"), "{said}");
}

fn message_of_a_rule_that_holds() -> u32 {
    panic!("the message of a rule that holds is made")
}
