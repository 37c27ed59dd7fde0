//! The windows of a SELECT and the calls over them, as they are collected; `stage` makes plans of them.

mod stage;

use crate::bind::Typed;
use crate::plan::{WindowCall, WindowFrame};

/// Names of the window functions.
const FUNCTIONS: &[&str] = &[
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

/// True if this is the name of a window function.
pub(super) fn is_window_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

/// The treatment of a call over a window.
#[derive(Debug, Default)]
pub(super) enum Windows {
    /// Refuse it.
    #[default]
    Refused,
    /// Refuse it: it is inside another one.
    Nested,
    /// Collect it.
    Collected(Box<WindowCalls>),
}

/// The windows and calls of a SELECT.
#[derive(Debug, Default)]
pub(super) struct WindowCalls {
    pub(super) windows: Vec<Window>,
    /// The calls, with the numbers of their windows.
    pub(super) calls: Vec<(usize, WindowCall)>,
}

impl WindowCalls {
    /// True if there are no calls.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

/// A key of a window.
#[derive(Debug, Clone)]
pub(super) struct WindowKey {
    pub(super) typed: Typed,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

impl WindowKey {
    fn same(&self, other: &WindowKey) -> bool {
        self.typed.expr == other.typed.expr
            && self.descending == other.descending
            && self.nulls_first == other.nulls_first
    }
}

/// A window.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) name: Option<String>,
    pub(super) partition: Vec<WindowKey>,
    pub(super) order: Vec<WindowKey>,
    pub(super) frame: WindowFrame,
    /// True if its text has a frame.
    pub(super) has_frame: bool,
}

impl Window {
    pub(super) fn same(&self, other: &Window) -> bool {
        let same = |left: &[WindowKey], right: &[WindowKey]| {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.same(right))
        };
        self.frame == other.frame
            && same(&self.partition, &other.partition)
            && same(&self.order, &other.order)
    }
}
