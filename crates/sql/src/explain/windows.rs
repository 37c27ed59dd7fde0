//! The windows of a SELECT as text.

use super::{Lines, Names, show_top};
use crate::plan::{SelectPlan, WindowCall};
use crate::planner::Cost;
use crate::sort_key::SortKey;

impl Lines<'_> {
    /// The windows above the rows that `names` are of, the last one first; each with the sort below it.
    pub(super) fn windows(&mut self, select: &SelectPlan, names: &Names, cost: Cost) {
        let Some(stage) = &select.windows else { return };
        for window in stage.windows.iter().rev() {
            self.costed(cost, "WindowAgg");
            self.depth += 1;
            if window.sorts {
                self.costed(cost, "Sort");
                let keys = window
                    .sort
                    .iter()
                    .map(|key| format!("{}{}", show_top(&window.keys[key.column], names), direction(key)));
                self.list("Sort Key", keys.collect());
                self.depth += 1;
            }
        }
    }
}

/// The direction of a key, as far as it is not the usual one.
pub(super) fn direction(key: &SortKey) -> &'static str {
    match (key.descending, key.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}

/// The names of a row with the results of the windows behind it.
pub(super) fn with_windows(select: &SelectPlan, mut names: Names) -> Names {
    if let Some(stage) = &select.windows {
        let below = names.clone();
        names.columns.resize(stage.base, String::new());
        let calls = stage.windows.iter().flat_map(|window| &window.calls);
        names
            .columns
            .extend(calls.map(|call| format!("({} OVER (?))", shown(call, &below))));
    }
    names
}

fn shown(call: &WindowCall, names: &Names) -> String {
    let arguments: Vec<String> = match call {
        WindowCall::Aggregate(call) if call.inputs.is_empty() => vec!["*".to_owned()],
        WindowCall::Aggregate(call) => call.inputs.iter().map(|input| show_top(input, names)).collect(),
        other => {
            let expressions = other.expressions().into_iter();
            expressions.map(|expr| show_top(expr, names)).collect()
        }
    };
    format!("{}({})", call.name(), arguments.join(", "))
}
