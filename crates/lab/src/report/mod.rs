//! The report: one HTML file with everything in it.

mod html;
mod plot;

pub use html::html;
pub(crate) use html::{escaped, legend, page, provenance_rows};
pub(crate) use plot::{Curve, Curves, curve_colour, curves};
