//! The parts that rows of the catalog heap of all kinds share.

use clearway_sql::SchemaRef;
use clearway_sql::error::{EngineError, Result, SqlState};

/// Catalog rows carry this so that a later format can tell them apart.
pub(super) const FORMAT: u32 = 1;

/// A row must fit a page with room for its successor's header.
pub(super) const BYTES_MAX: usize = 7_900;

pub(super) fn public() -> u32 {
    SchemaRef::PUBLIC_OID
}

pub(super) fn is_public(schema: &u32) -> bool {
    *schema == SchemaRef::PUBLIC_OID
}

/// XX001
pub(super) fn damaged(what: impl std::fmt::Display) -> EngineError {
    EngineError::new(
        SqlState::DATA_CORRUPTED,
        format!("a row of the catalog is damaged: {what}"),
    )
}

pub(super) fn check_format(format: u32) -> Result<()> {
    match format {
        FORMAT => Ok(()),
        other => Err(damaged(format!("format {other} is not {FORMAT}"))),
    }
}

pub(super) fn is_false(value: &bool) -> bool {
    !*value
}
