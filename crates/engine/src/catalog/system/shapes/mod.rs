//! The shapes of the system tables, as PostgreSQL 15 has them.

pub(super) mod catalogs;
pub(super) mod information_schema;
pub(super) mod views;
