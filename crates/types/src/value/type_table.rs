//! The table of types: all that is to say of a type, once.
//!
//! A row gives a type's variant of [`DataType`], its number and that of its array type in PostgreSQL, its name in
//! `pg_type`, its name in SQL, its category and whether it is preferred there, its length (−1: varying, −2: ends with a
//! zero byte), its alignment and its kind. Numbers, names, type names in statements, `format_type` and row descriptions
//! all come from here.
//!
//! A new scalar type takes a row here, a variant of [`Value`](crate::value::Value) if its bits are new, its text and
//! binary forms (`text`, `binary`), its key (`key`) and its bytes in a row (`row`).

/// A type category of PostgreSQL: it decides which conversions happen without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Arrays and vectors
    Array,
    /// Truth values
    Boolean,
    /// Composite types
    Composite,
    /// Dates and times
    DateTime,
    /// Enumerations
    Enum,
    /// Types that only the catalog uses
    Internal,
    /// Numbers
    Numeric,
    /// Types that no column has
    Pseudo,
    /// Strings
    String,
    /// Lengths of time
    Timespan,
    /// Addresses of hosts and networks
    Network,
    /// All that is in no other category
    User,
    /// Not settled
    Unknown,
}

impl Category {
    /// Its letter in `pg_type.typcategory`.
    pub const fn letter(self) -> char {
        match self {
            Category::Array => 'A',
            Category::Boolean => 'B',
            Category::Composite => 'C',
            Category::DateTime => 'D',
            Category::Enum => 'E',
            Category::Internal => 'Z',
            Category::Network => 'I',
            Category::Numeric => 'N',
            Category::Pseudo => 'P',
            Category::String => 'S',
            Category::Timespan => 'T',
            Category::User => 'U',
            Category::Unknown => 'X',
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct TypeInfo {
    /// The type.
    pub data_type: DataType,
    /// PostgreSQL's number of it.
    pub oid: u32,
    /// The number of its array type; 0 if it has none.
    pub array_oid: u32,
    /// Its name in `pg_type`.
    pub internal_name: &'static str,
    /// The name of its array type in `pg_type`.
    pub array_internal_name: &'static str,
    /// The name that SQL and error messages have for it.
    pub name: &'static str,
    /// The name that SQL and error messages have for its array type.
    pub array_name: &'static str,
    /// Its category.
    pub category: Category,
    /// True if it is the preferred type of its category.
    pub preferred: bool,
    /// Bytes of a value in PostgreSQL; −1 for a varying length, −2 for a text that ends with a zero byte.
    pub length: i16,
    /// Its alignment in PostgreSQL: `c`, `s`, `i` or `d`.
    pub alignment: char,
    /// `b` for a base type, `p` for a pseudo-type.
    pub kind: char,
}

/// The number of a type that users have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeOid(u32);

impl TypeOid {
    /// One past the greatest number that a type may have; the number of an array type is above.
    pub const END: u32 = 1 << 30;

    /// The type of this number; `None` if it is too great for one that users have made.
    pub const fn new(oid: u32) -> Option<TypeOid> {
        match oid < TypeOid::END {
            true => Some(TypeOid(oid)),
            false => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The type of an array's elements: the place of a scalar type in the table, or the number of a type that users have
/// made, with its kind in the two bits above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ElementType(u32);

/// The kinds of element types, in the bits above a number.
const ENUM: u32 = 1 << 30;
const DOMAIN: u32 = 2 << 30;
const COMPOSITE: u32 = 3 << 30;

impl ElementType {
    /// This type as that of elements; `None` if there are no arrays of it.
    pub const fn of(data_type: DataType) -> Option<ElementType> {
        match data_type {
            DataType::Enum(oid) => return Some(ElementType(ENUM | oid.0)),
            DataType::Domain(oid) => return Some(ElementType(DOMAIN | oid.0)),
            DataType::Composite(oid) => return Some(ElementType(COMPOSITE | oid.0)),
            _ => {}
        }
        match data_type.place() {
            Some(place) if SCALARS[place as usize].array_oid != 0 => Some(ElementType(place as u32)),
            _ => None,
        }
    }

    /// The elements' type.
    #[inline]
    pub const fn data_type(self) -> DataType {
        let oid = TypeOid(self.0 & (TypeOid::END - 1));
        match self.0 & COMPOSITE {
            ENUM => DataType::Enum(oid),
            DOMAIN => DataType::Domain(oid),
            COMPOSITE => DataType::Composite(oid),
            _ => SCALARS[self.0 as usize].data_type,
        }
    }
}

macro_rules! types {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $oid:literal, $array:literal, $internal:literal, $name:literal,
            $category:ident, $preferred:literal, $length:literal, $alignment:literal, $kind:literal;
    )*) => {
        /// A SQL type: eight bytes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DataType {
            $($(#[$doc])* $variant,)*
            /// An array, of any number of dimensions, of these elements
            Array(ElementType),
            /// An enumeration of this number ([`user_type`](crate::value::user_type))
            Enum(TypeOid),
            /// A domain
            Domain(TypeOid),
            /// A composite type, or that of a table's rows
            Composite(TypeOid),
        }

        /// The places of the types in the table.
        #[repr(u8)]
        enum Place {
            $($variant,)*
        }

        /// All types of the system but arrays, in the order of [`DataType`].
        pub static SCALARS: [TypeInfo; DataType::ALL.len()] = [$(TypeInfo {
            data_type: DataType::$variant,
            oid: $oid,
            array_oid: $array,
            internal_name: $internal,
            array_internal_name: concat!("_", $internal),
            name: $name,
            array_name: concat!($name, "[]"),
            category: Category::$category,
            preferred: $preferred,
            length: $length,
            alignment: $alignment,
            kind: $kind,
        },)*];

        impl DataType {
            /// Every type of the system but arrays: those that a column may have, and the internal ones.
            pub const ALL: [DataType; [$($oid,)*].len()] = [$(DataType::$variant,)*];

            /// The place in the table; `None` for an array and for a type that users have made.
            pub(super) const fn place(self) -> Option<u8> {
                match self {
                    $(DataType::$variant => Some(Place::$variant as u8),)*
                    DataType::Array(_)
                    | DataType::Enum(_)
                    | DataType::Domain(_)
                    | DataType::Composite(_) => None,
                }
            }
        }
    };
}

types! {
    /// `boolean`
    Bool = 16, 1000, "bool", "boolean", Boolean, true, 1, 'c', 'b';
    /// `smallint`
    Int2 = 21, 1005, "int2", "smallint", Numeric, false, 2, 's', 'b';
    /// `integer`
    Int4 = 23, 1007, "int4", "integer", Numeric, false, 4, 'i', 'b';
    /// `bigint`
    Int8 = 20, 1016, "int8", "bigint", Numeric, false, 8, 'd', 'b';
    /// `real`
    Float4 = 700, 1021, "float4", "real", Numeric, false, 4, 'i', 'b';
    /// `double precision`
    Float8 = 701, 1022, "float8", "double precision", Numeric, true, 8, 'd', 'b';
    /// `text`
    Text = 25, 1009, "text", "text", String, true, -1, 'i', 'b';
    /// `character varying`
    Varchar = 1043, 1015, "varchar", "character varying", String, false, -1, 'i', 'b';
    /// `character(n)`, padded with blanks that comparison ignores
    Char = 1042, 1014, "bpchar", "character", String, false, -1, 'i', 'b';
    /// `date`
    Date = 1082, 1182, "date", "date", DateTime, false, 4, 'i', 'b';
    /// `timestamp without time zone`
    Timestamp = 1114, 1115, "timestamp", "timestamp without time zone", DateTime, false, 8, 'd', 'b';
    /// `timestamp with time zone`
    TimestampTz = 1184, 1185, "timestamptz", "timestamp with time zone", DateTime, true, 8, 'd', 'b';
    /// `time without time zone`
    Time = 1083, 1183, "time", "time without time zone", DateTime, false, 8, 'd', 'b';
    /// `time with time zone`
    TimeTz = 1266, 1270, "timetz", "time with time zone", DateTime, false, 12, 'd', 'b';
    /// `interval`
    Interval = 1186, 1187, "interval", "interval", Timespan, true, 16, 'd', 'b';
    /// `uuid`
    Uuid = 2950, 2951, "uuid", "uuid", User, false, 16, 'c', 'b';
    /// `macaddr`
    MacAddr = 829, 1040, "macaddr", "macaddr", User, false, 6, 'i', 'b';
    /// `macaddr8`
    MacAddr8 = 774, 775, "macaddr8", "macaddr8", User, false, 8, 'i', 'b';
    /// PostgreSQL's one-byte `"char"`, which some drivers (sysbench's) name as a parameter's type
    CharByte = 18, 1002, "char", "\"char\"", Internal, false, 1, 'c', 'b';
    /// `jsonpath`: paths into JSON, as texts
    JsonPath = 4072, 4073, "jsonpath", "jsonpath", User, false, -1, 'i', 'b';
    /// `pg_node_tree`: expressions in the catalog, here as their text
    PgNodeTree = 194, 0, "pg_node_tree", "pg_node_tree", Internal, false, -1, 'i', 'b';
    /// `aclitem`: privileges in the catalog
    AclItem = 1033, 1034, "aclitem", "aclitem", User, false, 12, 'i', 'b';
    /// `name`: catalog identifiers
    Name = 19, 1003, "name", "name", String, false, 64, 'c', 'b';
    /// `oid`: catalog numbers
    Oid = 26, 1028, "oid", "oid", Numeric, true, 4, 'i', 'b';
    /// A literal or parameter whose type is not settled yet
    Unknown = 705, 0, "unknown", "unknown", Unknown, false, -2, 'c', 'p';
    /// `xid`: numbers of transactions
    Xid = 28, 1011, "xid", "xid", User, false, 4, 'i', 'b';
    /// `cid`: numbers of commands in a transaction
    Cid = 29, 1012, "cid", "cid", User, false, 4, 'i', 'b';
    /// `tid`: places of rows
    Tid = 27, 1010, "tid", "tid", User, false, 6, 's', 'b';
    /// `pg_lsn`: positions in the log
    PgLsn = 3220, 3221, "pg_lsn", "pg_lsn", User, false, 8, 'd', 'b';
    /// `regproc`: functions, shown by name
    Regproc = 24, 1008, "regproc", "regproc", Numeric, false, 4, 'i', 'b';
    /// `regprocedure`: functions, shown with the types of their arguments
    Regprocedure = 2202, 2207, "regprocedure", "regprocedure", Numeric, false, 4, 'i', 'b';
    /// `regoper`: operators, shown by name
    Regoper = 2203, 2208, "regoper", "regoper", Numeric, false, 4, 'i', 'b';
    /// `regoperator`: operators, shown with the types of their operands
    Regoperator = 2204, 2209, "regoperator", "regoperator", Numeric, false, 4, 'i', 'b';
    /// `regclass`: tables, indexes and their like, shown by name
    Regclass = 2205, 2210, "regclass", "regclass", Numeric, false, 4, 'i', 'b';
    /// `regtype`: types, shown by name
    Regtype = 2206, 2211, "regtype", "regtype", Numeric, false, 4, 'i', 'b';
    /// `regnamespace`: schemas, shown by name
    Regnamespace = 4089, 4090, "regnamespace", "regnamespace", Numeric, false, 4, 'i', 'b';
    /// `regrole`: roles, shown by name
    Regrole = 4096, 4097, "regrole", "regrole", Numeric, false, 4, 'i', 'b';
    /// `regcollation`: collations, shown by name
    Regcollation = 4191, 4192, "regcollation", "regcollation", Numeric, false, 4, 'i', 'b';
    /// `void`: the result of a function that has none; its text is empty
    Void = 2278, 0, "void", "void", Pseudo, false, 4, 'i', 'p';
    /// `record`: a row of any columns
    Record = 2249, 2287, "record", "record", Pseudo, false, -1, 'd', 'p';
    /// `anyarray`: an array of any elements, in the catalog
    AnyArray = 2277, 0, "anyarray", "anyarray", Pseudo, false, -1, 'd', 'p';
    // The types of varying length that are no text come last, so that reading a row finds them by one comparison.
    /// `int2vector`: column numbers of the catalog
    Int2Vector = 22, 1006, "int2vector", "int2vector", Array, false, -1, 'i', 'b';
    /// `oidvector`: catalog numbers
    OidVector = 30, 1013, "oidvector", "oidvector", Array, false, -1, 'i', 'b';
    /// `inet`
    Inet = 869, 1041, "inet", "inet", Network, true, -1, 'i', 'b';
    /// `cidr`
    Cidr = 650, 651, "cidr", "cidr", Network, false, -1, 'i', 'b';
    /// `bytea`
    Bytea = 17, 1001, "bytea", "bytea", User, false, -1, 'i', 'b';
    /// `json`
    Json = 114, 199, "json", "json", User, false, -1, 'i', 'b';
    /// `jsonb`
    Jsonb = 3802, 3807, "jsonb", "jsonb", User, false, -1, 'i', 'b';
    /// `numeric`
    Numeric = 1700, 1231, "numeric", "numeric", Numeric, false, -1, 'i', 'b';
}

const _: () = assert!(size_of::<DataType>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_at_its_place() {
        for (place, info) in SCALARS.iter().enumerate() {
            assert_eq!(info.data_type.place(), Some(place as u8));
            assert_eq!(info.data_type, DataType::ALL[place]);
        }
    }

    #[test]
    fn numbers_and_names_are_unique() {
        let all: Vec<DataType> = DataType::with_arrays().collect();
        for data_type in &all {
            let same =
                |of: fn(DataType) -> u32| all.iter().filter(|other| of(**other) == of(*data_type)).count();
            assert_eq!(same(DataType::oid), 1, "{data_type}");
            assert_eq!(DataType::from_oid(data_type.oid()), Some(*data_type));
            assert_eq!(DataType::named(&data_type.internal_name()), Some(*data_type));
        }
    }
}
