//! Sums of doubles, and of their deviations from the means so far: what variances and correlations are made of.

use crate::error::{EngineError, Result, SqlState};

/// The sum of doubles, and the sum of their squared deviations from the mean.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deviations {
    /// The sum of the values.
    pub sum: f64,
    /// The sum of the squared deviations.
    pub squares: f64,
}

impl Deviations {
    /// Takes the `rows`-th value; 22003 when finite values make a sum infinite.
    pub fn take(&mut self, rows: f64, value: f64) -> Result<()> {
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

/// The sums of two columns; `xx`, `yy` and `xy` of deviations from the means.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pairs {
    /// The sum of the first column.
    pub x: f64,
    /// Of its squared deviations.
    pub xx: f64,
    /// The sum of the second column.
    pub y: f64,
    /// Of its squared deviations.
    pub yy: f64,
    /// Of the products of both columns' deviations.
    pub xy: f64,
}

impl Pairs {
    /// Takes the `rows`-th pair; 22003 when finite values make a sum infinite.
    pub fn take(&mut self, rows: f64, x: f64, y: f64) -> Result<()> {
        let before = *self;
        self.x += x;
        self.y += y;
        if rows <= 1.0 {
            let not_a_number = |value: f64| if value.is_finite() { 0.0 } else { f64::NAN };
            self.xx = not_a_number(x);
            self.yy = not_a_number(y);
            self.xy = self.xx + self.yy;
            return Ok(());
        }
        let (of_x, of_y) = (x * rows - self.x, y * rows - self.y);
        let scale = 1.0 / (rows * (rows - 1.0));
        self.xx += of_x * of_x * scale;
        self.yy += of_y * of_y * scale;
        self.xy += of_x * of_y * scale;
        let x_was_finite = !before.x.is_infinite() && !x.is_infinite();
        let y_was_finite = !before.y.is_infinite() && !y.is_infinite();
        let x_overflows = (self.x.is_infinite() || self.xx.is_infinite()) && x_was_finite;
        let y_overflows = (self.y.is_infinite() || self.yy.is_infinite()) && y_was_finite;
        if x_overflows || y_overflows || self.xy.is_infinite() && x_was_finite && y_was_finite {
            return Err(overflow());
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }
}

/// 22003 for finite values that make a sum infinite.
#[cold]
pub fn overflow() -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}
