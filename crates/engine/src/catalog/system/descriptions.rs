//! `pg_description` and `pg_shdescription`: comments.

use super::Sources;
use super::rows::{Rows, int4, oid, text};

/// `pg_description`
pub(super) fn descriptions(sources: &Sources<'_>, rows: &mut Rows) {
    for comment in sources.catalog.comments() {
        if !comment.on.is_shared() {
            rows.push([
                ("objoid", oid(comment.on.object)),
                ("classoid", oid(comment.on.catalog)),
                ("objsubid", int4(comment.on.column)),
                ("description", text(&comment.text)),
            ]);
        }
    }
}

/// `pg_shdescription`
pub(super) fn shared_descriptions(sources: &Sources<'_>, rows: &mut Rows) {
    for comment in sources.catalog.comments() {
        if comment.on.is_shared() {
            rows.push([
                ("objoid", oid(comment.on.object)),
                ("classoid", oid(comment.on.catalog)),
                ("description", text(&comment.text)),
            ]);
        }
    }
}
