//! The schedules of a case that loom tries.

/// Every schedule of `case` with at most so many preemptions.
pub fn explore(preemptions: usize, case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(case);
}
