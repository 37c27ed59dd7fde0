//! The report: one HTML file with everything in it.

mod html;
mod plot;

pub use html::html;
pub(crate) use html::{curve_legend, escaped, legend, page, provenance_rows};
pub(crate) use plot::{Curve, Curves, curves};
