//! Prints the sets of variants under which `scripts/test` repeats the suites, a line each, in the form of
//! `CLEARWAY_MECHANISMS`.

use clearway_engine::Mechanisms;

fn main() {
    for set in Mechanisms::covering_sets() {
        let assignments: Vec<String> = set
            .iter()
            .map(|(name, variant)| format!("{name}={variant}"))
            .collect();
        println!("{}", assignments.join(","));
    }
}
