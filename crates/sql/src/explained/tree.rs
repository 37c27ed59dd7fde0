//! A plan as it is shown: operators with their properties, and the lines or the document of the answer.
//!
//! ```text
//! Limit  (cost=0.00..0.35 rows=10 width=4) (actual time=0.010..0.020 rows=10 loops=1)
//!   ->  Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4) (actual time=0.008..0.015 rows=10 loops=1)
//!         Filter: (a > 1)
//! ```

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::document::{self, Member, Part};
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

/// The value of a property.
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
    /// Members of a document that stand for the title.
    pub(crate) facts: Vec<(&'static str, Shown)>,
    /// Properties that all forms have.
    pub(crate) properties: Vec<(String, Shown)>,
    pub(crate) inputs: Vec<ShownNode>,
}

impl Shown {
    fn map_text(&mut self, shown: &dyn Fn(&str) -> String) {
        match self {
            Shown::Text(text) => *text = shown(text),
            Shown::Texts(texts) => texts.iter_mut().for_each(|text| *text = shown(text)),
        }
    }
}

impl ShownNode {
    fn map_texts(&mut self, shown: &dyn Fn(&str) -> String) {
        self.facts.iter_mut().for_each(|(_, value)| value.map_text(shown));
        let properties = self.properties.iter_mut();
        properties.for_each(|(_, value)| value.map_text(shown));
        for input in &mut self.inputs {
            checkpoint(|| input.map_texts(shown));
        }
    }

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
    /// The statement, if it is shown with its plan.
    pub(crate) query_text: Option<String>,
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

    /// Puts another text in the place of each one that comes from the statement: conditions, expressions, names.
    pub fn map_texts(&mut self, shown: &dyn Fn(&str) -> String) {
        self.top.map_texts(shown);
    }

    /// Has the statement shown in front of its plan.
    pub fn set_query_text(&mut self, text: String) {
        self.query_text = Some(text);
    }

    /// True if the answer shows settings.
    pub fn shows_settings(&self) -> bool {
        self.options.settings
    }

    /// The rows of the answer; `execution_ms`: the milliseconds that the statement has run; `settings`: those with another
    /// value than their default.
    pub fn lines(&self, execution_ms: Option<f64>, settings: &[(String, String)]) -> Vec<String> {
        match self.options.format {
            ExplainFormat::Text => {
                let text = self.query_text.as_ref();
                let mut lines: Vec<String> = text
                    .map(|text| format!("Query Text: {text}"))
                    .into_iter()
                    .collect();
                self.text(&self.top, 0, &mut lines);
                if self.options.settings && !settings.is_empty() {
                    let settings = settings.iter();
                    let settings = settings.map(|(name, value)| format!("{name} = '{value}'"));
                    lines.push(format!("Settings: {}", settings.collect::<Vec<_>>().join(", ")));
                }
                // Planning reads no pages: a line about them would have nothing to say.
                if self.options.shows_summary() {
                    lines.push(format!("Planning Time: {:.3} ms", self.planning_ms));
                    let execution = execution_ms;
                    lines.extend(execution.map(|ms| format!("Execution Time: {ms:.3} ms")));
                }
                lines
            }
            format => vec![document::write(format, &self.members(execution_ms, settings))],
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

    /// The members of the document.
    fn members(&self, execution_ms: Option<f64>, settings: &[(String, String)]) -> Vec<Member> {
        let mut members = Vec::new();
        let mut add = |name: &str, part: Part| members.push((name.to_owned(), part));
        if let Some(text) = &self.query_text {
            add("Query Text", Part::Text(text.clone()));
        }
        add("Plan", Part::Group(self.node_members(&self.top)));
        if self.options.settings && !settings.is_empty() {
            let settings = settings.iter();
            let settings = settings.map(|(name, value)| (name.clone(), Part::Text(value.clone())));
            add("Settings", Part::Group(settings.collect()));
        }
        if self.options.buffers {
            // Planning reads no pages.
            let planning = buffer_members(Pages::default());
            let planning = planning.map(|(name, count)| (name.to_owned(), Part::Bare(count.to_string())));
            add("Planning", Part::Group(planning.into()));
        }
        if self.options.shows_summary() {
            add("Planning Time", Part::Bare(format!("{:.3}", self.planning_ms)));
        }
        if let Some(ms) = execution_ms {
            add("Triggers", Part::Groups("Trigger", Vec::new()));
            if self.options.shows_summary() {
                add("Execution Time", Part::Bare(format!("{ms:.3}")));
            }
        }
        members
    }

    fn node_members(&self, node: &ShownNode) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        let mut add = |name: &str, part: Part| members.push((name.to_owned(), part));
        let text = |text: &str| Part::Text(text.to_owned());
        for (name, value) in &node.facts {
            add(name, value.part());
            if *name == "Node Type" {
                if let Some(relationship) = node.relationship {
                    add("Parent Relationship", text(relationship));
                }
                if let Some(name) = &node.of_query {
                    add("Subplan Name", text(name));
                }
                add("Parallel Aware", Part::Bare("false".to_owned()));
                add("Async Capable", Part::Bare("false".to_owned()));
            }
        }
        let mut number = |name: &str, number: String| add(name, Part::Bare(number));
        if let Some(cost) = node.cost.filter(|_| self.options.shows_costs()) {
            number("Startup Cost", format!("{:.2}", cost.startup));
            number("Total Cost", format!("{:.2}", cost.total));
            number("Plan Rows", shown_rows(cost.rows).to_string());
            number("Plan Width", (cost.width.round() as i64).to_string());
        }
        if let Some(counter) = node.counter.as_ref().filter(|_| self.options.analyze) {
            let found = node.measured(counter.get()).unwrap_or_default();
            if self.options.reads_clock() {
                number("Actual Startup Time", format!("{:.3}", found.startup_ms));
                number("Actual Total Time", format!("{:.3}", found.total_ms));
            }
            number("Actual Rows", found.rows.to_string());
            number("Actual Loops", found.loops.to_string());
        }
        for (name, value) in &node.properties {
            add(name, value.part());
        }
        let mut number = |name: &str, number: u64| add(name, Part::Bare(number.to_string()));
        if let Some((name, rows)) = self.removed(node) {
            number(name, rows);
        }
        if self.options.counts_pages() {
            for (name, count) in buffer_members(node.pages()) {
                number(name, count);
            }
        }
        if self.shows_log(node) {
            let [.., records, images, bytes] = node.pages();
            number("WAL Records", records);
            number("WAL FPI", images);
            number("WAL Bytes", bytes);
        }
        if !node.inputs.is_empty() {
            let inputs = node.inputs.iter();
            let inputs = inputs.map(|input| checkpoint(|| self.node_members(input)));
            add("Plans", Part::Groups("Plan", inputs.collect()));
        }
        members
    }
}

impl Shown {
    fn part(&self) -> Part {
        match self {
            Shown::Text(text) => Part::Text(text.clone()),
            Shown::Texts(texts) => Part::Texts(texts.clone()),
        }
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

/// Pages as documents show them. Pages of temporary tables are among the shared ones.
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
