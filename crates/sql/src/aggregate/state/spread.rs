//! The sum of doubles, and of their squared deviations from the mean so far.

use super::overflow;
use crate::error::Result;

/// The sum of doubles, and the sum of their squared deviations from the mean.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::aggregate) struct Deviations {
    pub(in crate::aggregate) sum: f64,
    pub(in crate::aggregate) squares: f64,
}

impl Deviations {
    /// Takes the `rows`-th value; 22003 when finite values make a sum infinite.
    pub(in crate::aggregate) fn take(&mut self, rows: f64, value: f64) -> Result<()> {
        let before = self.sum;
        self.sum += value;
        if rows > 1.0 {
            let deviation = value * rows - self.sum;
            self.squares += deviation * deviation / (rows * (rows - 1.0));
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !before.is_infinite() && !value.is_infinite() {
                    return Err(overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }
}
