//! Functions of strings.

pub(super) mod basic;
pub(super) mod format;
pub(super) mod part;
pub(super) mod spread;
pub(super) mod unicode;
