//! The report: one HTML file with everything in it, and the files of a bench.

mod html;
mod picture;
mod plot;

use std::path::Path;

use crate::error::Result;
use crate::result::{BenchResult, json, write_files};

pub use html::html;
pub(crate) use html::{curve_legend, escaped, legend, page, provenance_rows};
pub(crate) use plot::{Curve, Curves, curves};

impl BenchResult {
    /// Writes `result.json`, `report.html` and `picture.svg` into `directory`, which is created if need be.
    pub fn write(&self, directory: &Path) -> Result<()> {
        write_files(
            directory,
            &[
                ("result.json", json(self)),
                ("report.html", html(self)?),
                ("picture.svg", picture::picture(self)?),
            ],
        )
    }
}
