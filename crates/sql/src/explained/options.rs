//! The options of EXPLAIN.

use super::Measured;
use crate::error::{EngineError, Result, SqlState};

/// The form of EXPLAIN's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExplainFormat {
    /// Lines, each a row.
    #[default]
    Text,
    /// JSON, in one row.
    Json,
    /// YAML, in one row.
    Yaml,
    /// XML, in one row.
    Xml,
}

/// The options of EXPLAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExplainOptions {
    /// Run the statement and measure it.
    pub analyze: bool,
    /// Show more.
    pub verbose: bool,
    /// Show costs; true if not given.
    pub costs: Option<bool>,
    /// Show the pages that were read.
    pub buffers: bool,
    /// Show settings that choose among plans, if they have another value than their default.
    pub settings: bool,
    /// Show what was written to the log.
    pub wal: bool,
    /// Read the clock in each operator; with ANALYZE true if not given.
    pub timing: Option<bool>,
    /// Show the times of planning and execution; with ANALYZE true if not given.
    pub summary: Option<bool>,
    /// The form.
    pub format: ExplainFormat,
}

impl ExplainOptions {
    /// The error of options that do not go together.
    pub(crate) fn check(&self) -> Result<()> {
        let asked = [("WAL", self.wal), ("TIMING", self.timing == Some(true))];
        match asked.into_iter().find(|(_, is_asked)| *is_asked && !self.analyze) {
            Some((name, _)) => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("EXPLAIN option {name} requires ANALYZE"),
            )),
            None => Ok(()),
        }
    }

    /// True if costs are shown.
    pub(crate) fn shows_costs(&self) -> bool {
        self.costs.unwrap_or(true)
    }

    /// True if the clock is read in each operator.
    pub(crate) fn reads_clock(&self) -> bool {
        self.analyze && self.timing.unwrap_or(true)
    }

    /// The subject of the measurement beside rows.
    pub fn measured(&self) -> Measured {
        Measured {
            timing: self.reads_clock(),
            buffers: self.analyze && self.buffers,
            wal: self.analyze && self.wal,
        }
    }

    /// True if the pages that the statement uses are counted.
    pub fn counts_pages(&self) -> bool {
        self.measured().buffers
    }

    /// True if the times of planning and execution are shown.
    pub(crate) fn shows_summary(&self) -> bool {
        self.summary.unwrap_or(self.analyze)
    }

    /// As they are written in front of a statement.
    pub fn written(&self) -> String {
        let on = |name: &str, value: Option<bool>| {
            value.map(|on| format!("{name} {}", if on { "on" } else { "off" }))
        };
        let parts = [
            on("analyze", Some(self.analyze)),
            on("verbose", Some(self.verbose)),
            on("costs", self.costs),
            on("buffers", Some(self.buffers)),
            on("settings", Some(self.settings)),
            on("wal", Some(self.wal)),
            on("timing", self.timing),
            on("summary", self.summary),
            Some(match self.format {
                ExplainFormat::Text => "format text".to_owned(),
                ExplainFormat::Json => "format json".to_owned(),
                ExplainFormat::Yaml => "format yaml".to_owned(),
                ExplainFormat::Xml => "format xml".to_owned(),
            }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("explain ({}) ", parts.join(", "))
    }
}
