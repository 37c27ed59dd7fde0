//! The settings that choose among plans.

use std::sync::Arc;

use super::values::parse_pages;
use clearway_sql::SearchPath;
use clearway_sql::settings::PlannerSettings;
use clearway_sql::value::datetime::in_force::DateTimeSettings;

/// The settings that a plan, or what it keeps in memory, depends on.
pub(super) const NAMES: [&str; 15] = [
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "cpu_tuple_cost",
    "effective_cache_size",
    "enable_hashjoin",
    "enable_indexscan",
    "enable_material",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_seqscan",
    "enable_sort",
    "random_page_cost",
    "search_path",
    "seq_page_cost",
    "work_mem",
];

/// Takes over the value of a setting, if it is one of them.
pub(super) fn apply(planner: &mut PlannerSettings, name: &str, value: &str) {
    let cost = match name {
        "seq_page_cost" => &mut planner.sequential_page,
        "random_page_cost" => &mut planner.random_page,
        "cpu_tuple_cost" => &mut planner.row,
        "cpu_index_tuple_cost" => &mut planner.index_entry,
        "cpu_operator_cost" => &mut planner.operator,
        "effective_cache_size" => {
            planner.cached_pages = parse_pages(value).unwrap_or(1) as f64;
            return;
        }
        _ => return apply_switch(planner, name, value == "on"),
    };
    if let Ok(number) = value.parse() {
        *cost = number;
    }
}

fn apply_switch(planner: &mut PlannerSettings, name: &str, on: bool) {
    let switch = match name {
        "enable_hashjoin" => &mut planner.hash_joins,
        "enable_material" => &mut planner.keeps_rows,
        "enable_mergejoin" => &mut planner.merge_joins,
        "enable_nestloop" => &mut planner.loop_joins,
        "enable_seqscan" => &mut planner.sequential_scans,
        "enable_indexscan" => &mut planner.index_scans,
        "enable_sort" => &mut planner.sorts,
        _ => return,
    };
    *switch = on;
}

/// The settings that a plan depends on, and those that literals of dates and times are read by when it is bound.
#[derive(Debug, PartialEq)]
pub(crate) struct PlanningSettings {
    /// The path along which names are looked up.
    pub(crate) path: Arc<SearchPath>,
    /// Costs and switches.
    pub(crate) planner: PlannerSettings,
    /// `DateStyle` and `TimeZone`; `None` for the defaults.
    pub(crate) date_times: Option<Arc<DateTimeSettings>>,
}

impl Default for PlanningSettings {
    fn default() -> PlanningSettings {
        PlanningSettings {
            path: Arc::new(SearchPath::parse("\"$user\", public")),
            planner: PlannerSettings::default(),
            date_times: None,
        }
    }
}
