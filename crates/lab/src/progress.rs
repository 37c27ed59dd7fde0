//! The bar that shows how far something long is.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// A bar for `length` steps; hidden unless `shown`. Beside indicatif's own keys `counts` may have `{left}`: how long the
/// rest takes.
pub(crate) fn progress_bar(shown: bool, length: u64, counts: &str) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:40}} {counts}  {{msg}}")) {
        bar.set_style(
            style.with_key("left", |state: &ProgressState, text: &mut dyn Write| {
                let left = left(state.pos(), state.len().unwrap_or(0), state.elapsed());
                // What cannot be written is not shown.
                let _ = text.write_str(&left);
            }),
        );
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// The time that the rest takes if each step takes as long as those so far; before the first has ended, nothing is known.
fn left(done: u64, length: u64, elapsed: Duration) -> String {
    if done == 0 || done >= length {
        return String::new();
    }
    let rest = elapsed.as_secs_f64() / done as f64 * (length - done) as f64;
    // At most a century, whatever a clock does.
    let rest = Duration::from_secs_f64(rest.min(3e9));
    format!("about {} left", HumanDuration(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_promises_nothing_before_its_first_step() {
        let after = |done, seconds| left(done, 10, Duration::from_secs(seconds));
        assert_eq!(after(0, 0), "");
        assert_eq!(after(0, 100), "");
        assert_eq!(after(1, 20), "about 3 minutes left");
        assert_eq!(after(9, 90), "about 10 seconds left");
        assert_eq!(after(10, 100), "");
        assert_eq!(left(0, 0, Duration::ZERO), "");
    }
}
