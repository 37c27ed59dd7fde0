//! Rows of `pg_depend`.

use super::rows::{Rows, int4, oid, text};

/// The catalogs that `pg_depend` names.
pub(super) const PG_CLASS_OID: u32 = 1_259;
pub(super) const PG_ATTRDEF_OID: u32 = 2_604;
pub(super) const PG_CONSTRAINT_OID: u32 = 2_606;
pub(super) const PG_NAMESPACE_OID: u32 = 2_615;

/// An object: its catalog, its number, the number of a column or 0.
pub(super) type Object = (u32, u32, i32);

pub(super) fn depends(rows: &mut Rows, object: Object, on: Object, kind: &str) {
    rows.push([
        ("classid", oid(object.0)),
        ("objid", oid(object.1)),
        ("objsubid", int4(object.2)),
        ("refclassid", oid(on.0)),
        ("refobjid", oid(on.1)),
        ("refobjsubid", int4(on.2)),
        ("deptype", text(kind)),
    ]);
}
