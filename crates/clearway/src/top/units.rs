//! Numbers for a reader: few digits, and a unit.

/// Seconds, in three or four characters and a unit.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 6_000.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

/// Bytes, in three or four characters and a unit.
pub(super) fn bytes(bytes: f64) -> String {
    match bytes {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// With commas between thousands, and one decimal where there are no hundreds.
pub(super) fn number(number: f64) -> String {
    if number < 100.0 && number.fract().abs() > 0.05 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_few_digits_and_a_unit() {
        assert_eq!(
            [0.0, 0.26, 99.0, 1_234.5, 12_345_678.0].map(number),
            ["0", "0.3", "99", "1,234", "12,345,678"]
        );
        assert_eq!(
            [2e-8, 3.5e-5, 0.25, 99.0, 200.0, 9e3, 5e5].map(time),
            [
                "20 ns", "35.0 µs", "250.0 ms", "99.0 s", "3.3 min", "2.5 h", "5.8 d"
            ]
        );
        assert_eq!(
            [12.0, 1_500.0, 2.5e6, 3e9].map(bytes),
            ["12 B", "1.5 kB", "2.5 MB", "3.0 GB"]
        );
    }
}
