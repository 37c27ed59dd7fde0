//! The places of objects in the catalogs.

/// The place of an object in the catalogs: the catalog that has it, its number there, and of a column its number from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectAddress {
    /// The catalog's number.
    pub catalog: u32,
    /// The object's number.
    pub object: u32,
    /// The column's number, from 1; 0 for the object itself.
    pub column: i32,
}

impl ObjectAddress {
    /// The number of `pg_type`.
    pub const PG_TYPE: u32 = 1_247;
    /// The number of `pg_class`.
    pub const PG_CLASS: u32 = 1_259;
    /// The number of `pg_authid`.
    pub const PG_AUTHID: u32 = 1_260;
    /// The number of `pg_database`.
    pub const PG_DATABASE: u32 = 1_262;
    /// The number of `pg_attrdef`: a default is known by its table's number and its column's.
    pub const PG_ATTRDEF: u32 = 2_604;
    /// The number of `pg_constraint`.
    pub const PG_CONSTRAINT: u32 = 2_606;
    /// The number of `pg_namespace`.
    pub const PG_NAMESPACE: u32 = 2_615;

    /// An object of this catalog.
    pub const fn new(catalog: u32, object: u32) -> ObjectAddress {
        ObjectAddress {
            catalog,
            object,
            column: 0,
        }
    }

    /// A relation.
    pub const fn relation(oid: u32) -> ObjectAddress {
        ObjectAddress::new(ObjectAddress::PG_CLASS, oid)
    }

    /// True if all databases share it.
    pub const fn is_shared(self) -> bool {
        matches!(
            self.catalog,
            ObjectAddress::PG_AUTHID | ObjectAddress::PG_DATABASE
        )
    }
}
