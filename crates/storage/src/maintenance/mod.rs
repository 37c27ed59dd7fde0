//! Work on a database beside its statements.

mod check;
pub mod vacuum;
