//! The report: one HTML file with everything in it.

mod html;
mod plot;

pub use html::html;
