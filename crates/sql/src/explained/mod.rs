//! A plan as EXPLAIN shows it: operators with their costs and counters, as text, JSON, YAML and XML.
//!
//! It knows no plans: [`crate::explain`] makes it of one.
//!
//! | module | job |
//! | --- | --- |
//! | `options` | the options of EXPLAIN |
//! | `tree` | the operators, and the lines of text |
//! | `document` | the forms for programs |
//! | `counter` | what an operator that is measured has done |

mod counter;
mod document;
mod options;
pub(crate) mod tree;

pub use counter::{Counter, Measured, PageCounters, StageCounters};
pub use options::{ExplainFormat, ExplainOptions};
pub use tree::PlanTree;

/// The cost and the rows of an operator, for each time that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Until the first row.
    pub startup: f64,
    /// Until the last row.
    pub total: f64,
    /// Rows.
    pub rows: f64,
    /// Average bytes of a row.
    pub width: f64,
}

impl Cost {
    /// The part after the first row.
    pub(crate) fn run(self) -> f64 {
        self.total - self.startup
    }

    /// The bytes of all rows.
    pub(crate) fn bytes(self) -> f64 {
        self.rows * (self.width + 24.0)
    }
}
