//! The layout of numbers, latencies and rows in the text of a table.

/// A whole number with its thousands set apart.
pub fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A latency with a unit that suits it.
pub fn latency(microseconds: f64) -> String {
    match microseconds {
        us if us < 10.0 => format!("{us:.1} µs"),
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us if us < 10_000.0 => format!("{:.2} ms", us / 1e3),
        us if us < 1_000_000.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

/// Rows as lines, head first, with `right` columns set to the right, and a blank line where the first column changes.
pub(crate) fn lines<R: AsRef<[String]>>(rows: &[R], right: &[bool]) -> String {
    let mut widths = vec![0usize; right.len()];
    for row in rows {
        for (width, entry) in widths.iter_mut().zip(row.as_ref()) {
            *width = (*width).max(entry.chars().count());
        }
    }
    let mut text = String::new();
    let mut previous = "";
    for (number, row) in rows.iter().enumerate() {
        let row = row.as_ref();
        if number > 1 && row[0] != previous {
            text.push('\n');
        }
        previous = &row[0];
        let mut line = String::new();
        for (column, entry) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - entry.chars().count());
            if column > 0 {
                line.push_str("  ");
            }
            if right[column] {
                line.push_str(&padding);
                line.push_str(entry);
            } else {
                line.push_str(entry);
                line.push_str(&padding);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if number == 0 {
            let width = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
            text.push_str(&"─".repeat(width));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(0.0), "0");
        assert_eq!(latency(1.25), "1.2 µs");
        assert_eq!(latency(250.0), "250 µs");
        assert_eq!(latency(2_500.0), "2.50 ms");
        assert_eq!(latency(250_000.0), "250 ms");
        assert_eq!(latency(2_500_000.0), "2.5 s");
    }
}
