//! A plan as it is shown: operators with their properties, and the two forms of the answer.
//!
//! ```text
//! Limit  (cost=0.00..0.35 rows=10 width=4) (actual time=0.010..0.020 rows=10 loops=1)
//!   ->  Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4) (actual time=0.008..0.015 rows=10 loops=1)
//!         Filter: (a > 1)
//! ```

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::{Cost, Counter, ExplainFormat, ExplainOptions, Measured, StageCounters};
use crate::stack::checkpoint;

/// The counter of an operator.
#[derive(Debug, Clone)]
pub(crate) enum CounterOf {
    Node(Arc<Counter>),
    Stage(Arc<StageCounters>, fn(&StageCounters) -> &Counter),
}

impl CounterOf {
    fn get(&self) -> &Counter {
        match self {
            CounterOf::Node(counter) => counter,
            CounterOf::Stage(counters, of) => of(counters),
        }
    }
}

/// A value of JSON.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    Text(String),
    Texts(Vec<String>),
}

/// An operator as it is shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownNode {
    /// As the text names it: `Seq Scan on t`.
    pub(crate) title: String,
    /// Its place below the one above it, in PostgreSQL's words.
    pub(crate) relationship: Option<&'static str>,
    /// The name of the query that it is the top of: `SubPlan 1`.
    pub(crate) of_query: Option<String>,
    pub(crate) cost: Option<Cost>,
    pub(crate) counter: Option<CounterOf>,
    /// Members of JSON that stand for the title.
    pub(crate) facts: Vec<(&'static str, Shown)>,
    /// Properties that both forms have.
    pub(crate) properties: Vec<(String, Shown)>,
    pub(crate) inputs: Vec<ShownNode>,
}

impl ShownNode {
    fn reset(&self) {
        self.counter.iter().for_each(|counter| counter.get().reset());
        self.inputs.iter().for_each(ShownNode::reset);
    }
}

/// A statement's plan as it is shown.
#[derive(Debug, Clone, Default)]
pub struct PlanTree {
    pub(crate) top: ShownNode,
    pub(crate) options: ExplainOptions,
    /// Milliseconds that planning took.
    pub(crate) planning_ms: f64,
}

impl PlanTree {
    /// The subject of its counters beside rows.
    pub fn measured(&self) -> Measured {
        self.options.measured()
    }

    /// Sets all counters to zero, before a run.
    pub fn reset(&self) {
        self.top.reset();
    }

    /// The rows of the answer; `execution_ms`: the milliseconds that the statement has run.
    pub fn lines(&self, execution_ms: Option<f64>) -> Vec<String> {
        match self.options.format {
            ExplainFormat::Text => {
                let mut lines = Vec::new();
                self.text(&self.top, 0, &mut lines);
                // Planning reads no pages: a line about them would have nothing to say.
                if self.options.shows_summary() {
                    lines.push(format!("Planning Time: {:.3} ms", self.planning_ms));
                    let execution = execution_ms;
                    lines.extend(execution.map(|ms| format!("Execution Time: {ms:.3} ms")));
                }
                lines
            }
            ExplainFormat::Json => vec![self.json(execution_ms)],
        }
    }

    fn text(&self, node: &ShownNode, depth: usize, lines: &mut Vec<String>) {
        let mut line = match depth {
            0 => node.title.clone(),
            depth => format!("{}->  {}", " ".repeat(6 * depth - 4), node.title),
        };
        if let Some(cost) = node.cost.filter(|_| self.options.shows_costs()) {
            let rows = shown_rows(cost.rows);
            let _ = write!(
                line,
                "  (cost={:.2}..{:.2} rows={rows} width={})",
                cost.startup,
                cost.total,
                cost.width.round() as i64
            );
        }
        if let Some(counter) = node.counter.as_ref().filter(|_| self.options.analyze) {
            let _ = match node.measured(counter.get()) {
                None => write!(line, " (never executed)"),
                Some(found) if self.options.reads_clock() => write!(
                    line,
                    " (actual time={:.3}..{:.3} rows={} loops={})",
                    found.startup_ms, found.total_ms, found.rows, found.loops
                ),
                Some(found) => write!(line, " (actual rows={} loops={})", found.rows, found.loops),
            };
        }
        lines.push(line);
        let indent = " ".repeat(6 * depth + 2);
        for (name, value) in &node.properties {
            let shown = match value {
                Shown::Text(text) => text.clone(),
                Shown::Texts(texts) => texts.join(", "),
            };
            lines.push(format!("{indent}{name}: {shown}"));
        }
        lines.extend(
            self.removed(node)
                .map(|(name, rows)| format!("{indent}{name}: {rows}")),
        );
        if self.options.counts_pages() {
            let line = buffers_line(node.pages());
            lines.extend(line.map(|line| format!("{indent}Buffers: {line}")));
        }
        if self.shows_log(node) {
            let line = log_line(node.pages());
            lines.extend(line.map(|line| format!("{indent}WAL: {line}")));
        }
        for input in &node.inputs {
            if let Some(name) = &input.of_query {
                lines.push(format!("{indent}{name}"));
            }
            checkpoint(|| self.text(input, depth + 1, lines));
        }
    }

    /// True for the operator at the top, if the log is counted. The rows that the others give are changed while they are asked for
    /// more, so their counts are not their own.
    fn shows_log(&self, node: &ShownNode) -> bool {
        self.options.measured().wal && std::ptr::eq(node, &raw const self.top)
    }

    /// The rows that a node's own condition has taken away, for each of its loops.
    fn removed(&self, node: &ShownNode) -> Option<(&'static str, u64)> {
        let counter = node.counter.as_ref().filter(|_| self.options.analyze)?.get();
        let is_filter = |name: &str| name == "Filter" || name == "Join Filter";
        let (name, _) = node.properties.iter().find(|(name, _)| is_filter(name))?;
        let label = match name.as_str() {
            "Filter" => "Rows Removed by Filter",
            _ => "Rows Removed by Join Filter",
        };
        let below = node.inputs.iter().filter_map(|input| input.counter.as_ref());
        let below: u64 = below.map(|counter| Counter::get(&counter.get().removed)).sum();
        let own = Counter::get(&counter.removed).saturating_sub(below);
        let loops = Counter::get(&counter.loops).max(1);
        (own > 0).then_some((label, (own as f64 / loops as f64).round() as u64))
    }

    fn json(&self, execution_ms: Option<f64>) -> String {
        let mut out = "[\n  {\n    \"Plan\": ".to_owned();
        self.json_node(&self.top, 2, &mut out);
        if self.options.buffers {
            let planning =
                buffer_members(Pages::default()).map(|(name, count)| format!("      \"{name}\": {count}"));
            let _ = write!(out, ",\n    \"Planning\": {{\n{}\n    }}", planning.join(",\n"));
        }
        if self.options.shows_summary() {
            let _ = write!(out, ",\n    \"Planning Time\": {:.3}", self.planning_ms);
        }
        if let Some(ms) = execution_ms {
            out.push_str(",\n    \"Triggers\": [\n    ]");
            if self.options.shows_summary() {
                let _ = write!(out, ",\n    \"Execution Time\": {ms:.3}");
            }
        }
        out.push_str("\n  }\n]");
        out
    }

    fn json_node(&self, node: &ShownNode, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth + 1);
        let mut members: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: String| members.push((name.to_owned(), value));
        for (name, value) in &node.facts {
            add(name, json_value(value, depth + 1));
            if *name == "Node Type" {
                if let Some(relationship) = node.relationship {
                    add("Parent Relationship", quoted(relationship));
                }
                if let Some(name) = &node.of_query {
                    add("Subplan Name", quoted(name));
                }
                add("Parallel Aware", "false".to_owned());
                add("Async Capable", "false".to_owned());
            }
        }
        if let Some(cost) = node.cost.filter(|_| self.options.shows_costs()) {
            add("Startup Cost", format!("{:.2}", cost.startup));
            add("Total Cost", format!("{:.2}", cost.total));
            add("Plan Rows", shown_rows(cost.rows).to_string());
            add("Plan Width", (cost.width.round() as i64).to_string());
        }
        if let Some(counter) = node.counter.as_ref().filter(|_| self.options.analyze) {
            let found = node.measured(counter.get()).unwrap_or_default();
            if self.options.reads_clock() {
                add("Actual Startup Time", format!("{:.3}", found.startup_ms));
                add("Actual Total Time", format!("{:.3}", found.total_ms));
            }
            add("Actual Rows", found.rows.to_string());
            add("Actual Loops", found.loops.to_string());
        }
        for (name, value) in &node.properties {
            add(name, json_value(value, depth + 1));
        }
        if let Some((name, rows)) = self.removed(node) {
            add(name, rows.to_string());
        }
        if self.options.counts_pages() {
            for (name, count) in buffer_members(node.pages()) {
                add(name, count.to_string());
            }
        }
        if self.shows_log(node) {
            let [.., records, images, bytes] = node.pages();
            for (name, count) in [
                ("WAL Records", records),
                ("WAL FPI", images),
                ("WAL Bytes", bytes),
            ] {
                add(name, count.to_string());
            }
        }
        out.push_str("{\n");
        for (at, (name, value)) in members.iter().enumerate() {
            let comma = if at == 0 { "" } else { ",\n" };
            let _ = write!(out, "{comma}{indent}{}: {value}", quoted(name));
        }
        if !node.inputs.is_empty() {
            let _ = write!(out, ",\n{indent}\"Plans\": [");
            for (at, input) in node.inputs.iter().enumerate() {
                out.push_str(if at == 0 { "\n" } else { ",\n" });
                out.push_str(&"  ".repeat(depth + 2));
                checkpoint(|| self.json_node(input, depth + 2, out));
            }
            let _ = write!(out, "\n{indent}]");
        }
        let _ = write!(out, "\n{}}}", "  ".repeat(depth));
    }
}

/// Counts of an operator for each of its loops.
#[derive(Default)]
struct Counts {
    startup_ms: f64,
    total_ms: f64,
    rows: u64,
    loops: u64,
}

impl ShownNode {
    /// Its counts for each loop; `None` if it was never run. Its time includes that of each input, also where a stage of a SELECT
    /// does not read the clock itself.
    fn measured(&self, counter: &Counter) -> Option<Counts> {
        let loops = Counter::get(&counter.loops);
        let at_least = |of: fn(&Counter) -> &AtomicU64| {
            let inputs = self.inputs.iter().filter_map(|input| input.counter.as_ref());
            let inputs = inputs.map(|input| Counter::get(of(input.get()))).max();
            Counter::get(of(counter)).max(inputs.unwrap_or(0))
        };
        let each = |number: u64| number as f64 / loops as f64;
        (loops > 0).then(|| Counts {
            startup_ms: each(Counter::get(&counter.startup_ns)) / 1e6,
            total_ms: each(at_least(|counter| &counter.total_ns)) / 1e6,
            rows: each(Counter::get(&counter.rows)).round() as u64,
            loops,
        })
    }
}

/// Pages found in memory, read, dirtied and written, blocks of temporary files read and written, and records, whole pages and
/// bytes of the log.
type Pages = [u64; 9];

impl ShownNode {
    /// The pages that it and what is below it have used: as for times, those of its inputs are among them.
    fn pages(&self) -> Pages {
        let mut below = Pages::default();
        for input in &self.inputs {
            let pages = checkpoint(|| input.pages());
            below.iter_mut().zip(pages).for_each(|(sum, count)| *sum += count);
        }
        if let Some(counter) = &self.counter {
            let own = counter.get().pages.all().map(Counter::get);
            below
                .iter_mut()
                .zip(own)
                .for_each(|(sum, count)| *sum = count.max(*sum));
        }
        below
    }
}

/// Pages as the text shows them; none if there were none.
fn buffers_line(pages: Pages) -> Option<String> {
    let group = |kind: &str, names: &[&str], counts: &[u64]| {
        let counted = names.iter().zip(counts).filter(|(_, count)| **count > 0);
        let shown: Vec<String> = counted.map(|(name, count)| format!("{name}={count}")).collect();
        (!shown.is_empty()).then(|| format!("{kind} {}", shown.join(" ")))
    };
    let (shared, temporary) = pages[..6].split_at(4);
    let groups = [
        group("shared", &["hit", "read", "dirtied", "written"], shared),
        group("temp", &["read", "written"], temporary),
    ];
    let shown: Vec<String> = groups.into_iter().flatten().collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The log that was written, as the text shows it; none if nothing was.
fn log_line(pages: Pages) -> Option<String> {
    let [.., records, images, bytes] = pages;
    let counted = [("records", records), ("fpi", images), ("bytes", bytes)];
    let shown: Vec<String> = counted
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name}={count}"))
        .collect();
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// Pages as JSON shows them. Pages of temporary tables are among the shared ones.
fn buffer_members(
    [hit, read, dirtied, written, temporary_read, temporary_written, ..]: Pages,
) -> [(&'static str, u64); 10] {
    [
        ("Shared Hit Blocks", hit),
        ("Shared Read Blocks", read),
        ("Shared Dirtied Blocks", dirtied),
        ("Shared Written Blocks", written),
        ("Local Hit Blocks", 0),
        ("Local Read Blocks", 0),
        ("Local Dirtied Blocks", 0),
        ("Local Written Blocks", 0),
        ("Temp Read Blocks", temporary_read),
        ("Temp Written Blocks", temporary_written),
    ]
}

/// A number of rows as it is shown.
fn shown_rows(rows: f64) -> i64 {
    (rows.round() as i64).max(1)
}

fn json_value(value: &Shown, depth: usize) -> String {
    match value {
        Shown::Text(text) => quoted(text),
        Shown::Texts(texts) => {
            let _ = depth;
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
