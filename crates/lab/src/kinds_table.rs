//! The table of a workload's kinds of transaction: below the main table, where a workload has several.
//!
//! A row for each cell of TPC-C: new-orders committed a minute (NOPM), and p50 / p99 of each kind.

use crate::layout::{grouped, latency, lines};
use crate::result::{BenchResult, Cell, KindCell};
use crate::workload::tpcc::Kind;

/// The legend of the table; for above it.
pub const LEGEND: &str = "NOPM: new-orders committed a minute. By transaction: p50 / p99.";

/// The rows, head first; none if no workload has several kinds.
pub fn rows(result: &BenchResult) -> Vec<Vec<String>> {
    let mut cells = result
        .cells
        .iter()
        .filter(|cell| !cell.kinds.is_empty())
        .peekable();
    let Some(first) = cells.peek() else {
        return Vec::new();
    };
    let variant = result.varied.as_ref().map_or("preset", |switch| &*switch.name);
    let head = ["workload", "clients", variant, "NOPM"].map(str::to_owned);
    let kinds = first.kinds.iter().map(|kind| kind.kind.clone());
    let head = head.into_iter().chain(kinds).collect();
    std::iter::once(head).chain(cells.map(row)).collect()
}

fn row(cell: &Cell) -> Vec<String> {
    let new_orders = cell.kinds.iter().find(|kind| kind.kind == Kind::NewOrder.name());
    let nopm = new_orders.map_or_else(String::new, |kind| grouped(kind.per_minute));
    let of_cell = [
        cell.workload.clone(),
        cell.clients.to_string(),
        cell.variant.clone(),
        nopm,
    ];
    of_cell
        .into_iter()
        .chain(cell.kinds.iter().map(percentiles))
        .collect()
}

fn percentiles(kind: &KindCell) -> String {
    match kind.transactions {
        0 => "–".to_owned(),
        _ => format!("{} / {}", latency(kind.p50_us), latency(kind.p99_us)),
    }
}

/// For each column of rows like these, true if its entries are aligned to the right.
pub(crate) fn right(rows: &[Vec<String>]) -> Vec<bool> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| column != 0 && column != 2).collect()
}

/// The table as text; empty if no workload has several kinds.
pub fn text(result: &BenchResult) -> String {
    let rows = rows(result);
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{LEGEND}\n\n{}", lines(&rows, &right(&rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::example;

    #[test]
    fn only_workloads_of_several_kinds_have_rows() {
        assert_eq!(text(&example()), "");
        let mut result = example();
        let kind = |kind: Kind, transactions| KindCell {
            kind: kind.name().to_owned(),
            per_minute: 12_345.0,
            p50_us: 250.0,
            p99_us: 2_500.0,
            transactions,
        };
        let cell = &mut result.cells[0];
        cell.workload = "tpcc".to_owned();
        cell.kinds = vec![kind(Kind::NewOrder, 9), kind(Kind::Payment, 0)];
        let text = text(&result);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[3].contains("NOPM") && lines[3].contains("new-order"),
            "{text}"
        );
        assert!(
            lines[5].contains("12,345") && lines[5].contains("250 µs / 2.50 ms"),
            "{text}"
        );
        assert!(lines[5].ends_with('–') && lines.len() == 6, "{text}");
    }
}
