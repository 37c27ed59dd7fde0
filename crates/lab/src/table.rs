//! The table a bench prints.

use std::fmt::Write as _;

use crate::host_use;
use crate::kinds_table;
use crate::layout::{grouped, latency, lines};
use crate::result::{BenchResult, Cell};
use crate::sampler::RUNNING;

/// Waits shown per row.
const WAITS_SHOWN: usize = 3;

/// Waits below this share are not worth a word.
const SHARE_MIN: f64 = 0.01;

/// The waits that took most of the clients' time, with their shares.
pub fn top_waits(cell: &Cell) -> String {
    let top: Vec<String> = cell
        .waits
        .iter()
        .filter(|wait| wait.event != RUNNING && wait.share >= SHARE_MIN)
        .take(WAITS_SHOWN)
        .map(|wait| format!("{} {:.0}%", wait.event, wait.share * 100.0))
        .collect();
    if top.is_empty() {
        "–".to_owned()
    } else {
        top.join(", ")
    }
}

/// The head of the ratio column: `B/A` with the names in it, where there are two.
pub fn ratio_head(result: &BenchResult) -> String {
    match result.variants.as_slice() {
        [base, other] if base.name.len() + other.name.len() < 24 => format!("{}/{}", other.name, base.name),
        _ => "to the first".to_owned(),
    }
}

/// The ratio of a cell; `≈ 1` if the rounds do not say on which side of 1 it is, and no number if it lies within a wide spread.
fn ratio(cell: &Cell) -> String {
    match cell.ratio {
        None => String::new(),
        Some(_) if cell.is_unsteady() => UNSTEADY.to_owned(),
        Some(_) if cell.is_level() => LEVEL.to_owned(),
        Some(ratio) => format!("{ratio:.2}×"),
    }
}

/// A ratio within its own spread.
const LEVEL: &str = "≈ 1";

/// In the place of a ratio that lies within a spread of half of it and more.
const UNSTEADY: &str = "unsteady";

/// The legends of such ratios; for below a table that has them.
fn level_legend(result: &BenchResult) -> impl Iterator<Item = String> {
    let any = |has: fn(&Cell) -> bool| result.cells.iter().any(has);
    let level = any(|cell| cell.is_level() && !cell.is_unsteady()).then(|| {
        format!("{LEVEL}: the rounds' ratios, or the middle half of five and more, lie on both sides of 1.")
    });
    let unsteady = any(Cell::is_unsteady).then(|| {
        format!(
            "{UNSTEADY}: the rounds' ratios are so far apart that their median says nothing; measure longer, or on a quiet host."
        )
    });
    level.into_iter().chain(unsteady)
}

/// The conditions under which a result was measured that its numbers depend on: the programs that ran beside, and a busy
/// host.
pub fn conditions(result: &BenchResult) -> Vec<String> {
    let beside = &result.parameters.beside;
    let asked_for = (!beside.is_none()).then(|| format!("Measured beside {beside}."));
    let others = match beside.is_none() {
        true => "other programs used",
        false => "programs beside these used",
    };
    let busy = host_use::warning(result.provenance.others_share, others);
    let busy = busy.map(|warning| warning.replacen("the host", "The host", 1) + ".");
    asked_for.into_iter().chain(busy).collect()
}

/// The lines below the table: the meaning of its columns, and the [conditions].
pub fn footer(result: &BenchResult) -> Vec<String> {
    let costs = result.varied.is_some().then(|| COSTS_LEGEND.to_owned());
    let legends = costs.into_iter().chain(level_legend(result));
    legends.chain(conditions(result)).collect()
}

/// A column of the table.
struct Column {
    head: String,
    /// True if its entries are aligned to the right.
    right: bool,
    entry: fn(&Cell) -> String,
}

impl Column {
    fn left(head: &str, entry: fn(&Cell) -> String) -> Column {
        Column {
            head: head.to_owned(),
            right: false,
            entry,
        }
    }

    fn right(head: &str, entry: fn(&Cell) -> String) -> Column {
        Column {
            right: true,
            ..Column::left(head, entry)
        }
    }
}

/// The columns. Where the variants of one switch are compared, the costs of a commit are among them.
fn columns(result: &BenchResult) -> Vec<Column> {
    let mut columns = vec![
        Column::left("workload", |cell| cell.workload.clone()),
        Column::right("clients", |cell| cell.clients.to_string()),
        Column::left(
            result.varied.as_ref().map_or("preset", |switch| &*switch.name),
            |cell| cell.variant.clone(),
        ),
        Column::right("TPS", |cell| grouped(cell.tps)),
        Column::right("±", |cell| format!("{:.1}%", cell.tps_spread * 100.0)),
        Column::right("p50", |cell| latency(cell.p50_us)),
        Column::right("p99", |cell| latency(cell.p99_us)),
        Column::right(&ratio_head(result), ratio),
    ];
    if result.varied.is_some() {
        columns.extend([
            Column::right("syncs", |cell| format!("{:.3}", cell.per_commit.syncs)),
            Column::right("wake-ups", |cell| format!("{:.2}", cell.per_commit.wake_ups)),
            Column::right("switches", |cell| {
                format!(
                    "{:.2}+{:.2}",
                    cell.per_commit.voluntary_switches, cell.per_commit.involuntary_switches
                )
            }),
            Column::right("CPU", |cell| latency(cell.per_commit.cpu_us)),
        ]);
    }
    columns.push(Column::left("top waits", top_waits));
    columns
}

/// The legend of the columns of costs; for below a table that has them.
pub const COSTS_LEGEND: &str = "Per commit: syncs of the log, sleeping workers that were woken, context switches \
    (voluntary + involuntary), time on a CPU.";

/// The rows of the table, head first.
pub fn rows(result: &BenchResult) -> Vec<Vec<String>> {
    let columns = columns(result);
    let head = columns.iter().map(|column| column.head.clone()).collect();
    let body = result
        .cells
        .iter()
        .map(|cell| columns.iter().map(|column| (column.entry)(cell)).collect());
    std::iter::once(head).chain(body).collect()
}

/// For each column, true if its entries are aligned to the right.
pub(crate) fn right(result: &BenchResult) -> Vec<bool> {
    columns(result).iter().map(|column| column.right).collect()
}

/// The table as text, with its [footer], and that of [kinds](kinds_table) below it.
pub fn text(result: &BenchResult) -> String {
    let mut text = lines(&rows(result), &right(result));
    for (number, line) in footer(result).iter().enumerate() {
        let _ = writeln!(text, "{}{line}", if number == 0 { "\n" } else { "" });
    }
    text.push_str(&kinds_table::text(result));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::example;

    #[test]
    fn what_a_commit_costs_stands_beside_the_variants_of_a_switch() {
        let without = text(&example());
        assert!(
            without.contains("preset") && !without.contains("syncs"),
            "{without}"
        );
        let with = text(&BenchResult {
            varied: Some(crate::result::VariedSwitch {
                name: "log_flush".into(),
                about: "How the log reaches the disk.".into(),
            }),
            ..example()
        });
        let head = with.lines().next().unwrap_or_default();
        assert!(head.contains("log_flush") && !head.contains("preset"), "{with}");
        assert!(with.contains("0.250      1.50  2.00+0.12  40 µs"), "{with}");
        assert!(with.contains(COSTS_LEGEND), "{with}");
    }

    #[test]
    fn a_ratio_within_its_spread_is_none() {
        let mut result = example();
        assert!(footer(&result).is_empty());
        let cell = &mut result.cells[1];
        (cell.ratio, cell.ratio_bounds) = (Some(1.03), Some([0.98, 1.05]));
        let text = text(&result);
        let row = text.lines().nth(3).unwrap_or_default();
        assert!(
            row.contains("clearway") && row.contains("   ≈ 1  ") && !row.contains('×'),
            "{text}"
        );
        assert!(text.contains("\n\n≈ 1: the rounds' ratios"), "{text}");
        // A result from before bounds were kept.
        result.cells[1].ratio_bounds = None;
        assert!(super::text(&result).contains("1.03×"));
    }

    #[test]
    fn the_conditions_are_below_the_table() {
        let mut result = example();
        result.provenance.others_share = Some(0.05);
        assert!(conditions(&result).is_empty());
        result.provenance.others_share = Some(0.12);
        assert!(conditions(&result)[0].starts_with("The host is busy: other programs used 12 %"));
        result.parameters.beside.busy_loops = 4;
        result.provenance.others_share = Some(0.368);
        let text = text(&result);
        let busy = "The host is busy: programs beside these used 37 % of the CPUs; ratios may not hold.";
        assert!(
            text.ends_with(&format!("\n\nMeasured beside 4 busy loops.\n{busy}\n")),
            "{text}"
        );
    }

    #[test]
    fn the_table_lines_up_and_names_the_waits() {
        let text = text(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("clearway/classic"), "{text}");
        assert!(lines[2].starts_with("select-only"), "{text}");
        assert!(text.contains("IO:WALSync 35%, LWLock:WALWrite 25%"), "{text}");
        assert!(text.contains("1.10×") && !text.contains("running"), "{text}");
        let place = |line: &str| line.chars().position(|c| c == '×').unwrap_or(0);
        assert_eq!(place(lines[3]), place(lines[5]), "{text}");
        // A blank line between workloads.
        assert_eq!(lines.iter().filter(|line| line.is_empty()).count(), 1, "{text}");
    }
}
