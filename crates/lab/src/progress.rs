//! The bar that shows how far something long is.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for `length` steps; hidden unless `shown`.
pub(crate) fn progress_bar(shown: bool, length: u64, counts: &str) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:40}} {counts}  {{msg}}")) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
