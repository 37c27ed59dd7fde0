//! The SQL types, their PostgreSQL numbers and names, and type modifiers (`varchar(10)`'s 10).
//!
//! A *typmod* is an `i32` next to the type, encoded as PostgreSQL encodes it, because it goes over the wire in a row
//! description: −1 = none; `char(n)` and `varchar(n)` are n + 4; `numeric(p, s)` is (p << 16 | s) + 4,
//! s being 11 bits with a sign;
//! `timestamp(p)` and `time(p)` are p; that of an interval has its fields too (`datetime::interval`).

use std::borrow::Cow;
use std::fmt;

use crate::value::datetime;
use crate::value::type_table::{ElementType, SCALARS, TypeInfo, TypeOid};
use crate::value::user_type;

pub use crate::value::type_table::{Category, DataType};

/// A kind of object that the catalog has numbers and names of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogObject {
    /// A table, a view, an index or a sequence
    Relation,
    /// A type
    Type,
    /// A function, by its name alone: there is none if several have it
    Function,
    /// A function with the types of its arguments: `lower(text)`
    FunctionWithArguments,
    /// An operator, by its name alone
    Operator,
    /// An operator with the types of its operands: `+(integer,integer)`
    OperatorWithArguments,
    /// A collation
    Collation,
    /// A schema
    Schema,
    /// A role
    Role,
}

/// The numbers of what users make begin here.
const FIRST_USER_OID: u32 = 16_384;

/// The facts that all types of a kind that users make share.
const fn of_kind(kind: char, category: Category, length: i16, alignment: char) -> TypeInfo {
    TypeInfo {
        data_type: DataType::Unknown,
        oid: 0,
        array_oid: 0,
        internal_name: "???",
        array_internal_name: "???",
        name: "???",
        array_name: "???",
        category,
        preferred: false,
        length,
        alignment,
        kind,
    }
}

static ENUM: TypeInfo = of_kind('e', Category::Enum, 4, 'i');
static DOMAIN: TypeInfo = of_kind('d', Category::User, -1, 'i');
static COMPOSITE: TypeInfo = of_kind('c', Category::Composite, -1, 'd');

/// No type modifier.
pub const NO_TYPMOD: i32 = -1;

impl DataType {
    /// The array type of these elements, for a type that has one.
    pub const fn array_of(element: DataType) -> DataType {
        match ElementType::of(element) {
            Some(element) => DataType::Array(element),
            None => panic!("there are no arrays of this type"),
        }
    }

    /// The type of arrays of this type; `None` if there is none.
    pub fn array_type(self) -> Option<DataType> {
        ElementType::of(self).map(DataType::Array)
    }

    /// The type of the elements of an array or a vector; `None` for any other type.
    #[inline]
    pub const fn element(self) -> Option<DataType> {
        match self {
            DataType::Array(element) => Some(element.data_type()),
            DataType::Int2Vector => Some(DataType::Int2),
            DataType::OidVector => Some(DataType::Oid),
            _ => None,
        }
    }

    /// True for arrays and vectors.
    #[inline]
    pub const fn is_array(self) -> bool {
        self.element().is_some()
    }

    /// Its row of the table; that of its elements for an array. What users have made has one for all types of its kind.
    #[inline]
    const fn info(self) -> &'static TypeInfo {
        match self {
            DataType::Array(element) => element.data_type().info(),
            DataType::Enum(_) => &ENUM,
            DataType::Domain(_) => &DOMAIN,
            DataType::Composite(_) => &COMPOSITE,
            scalar => match scalar.place() {
                Some(place) => &SCALARS[place as usize],
                None => unreachable!(),
            },
        }
    }

    /// The number of a type that users have made; `None` for one of the system, and for an array.
    pub const fn user_oid(self) -> Option<TypeOid> {
        match self {
            DataType::Enum(oid) | DataType::Domain(oid) | DataType::Composite(oid) => Some(oid),
            _ => None,
        }
    }

    /// Every type of the system, arrays included.
    pub fn with_arrays() -> impl Iterator<Item = DataType> {
        let arrays = DataType::ALL.into_iter().filter_map(DataType::array_type);
        DataType::ALL.into_iter().chain(arrays)
    }

    /// PostgreSQL's number of the type.
    pub const fn oid(self) -> u32 {
        match self {
            DataType::Array(element) => match element.data_type().user_oid() {
                Some(oid) => oid.get() + TypeOid::END,
                None => element.data_type().info().array_oid,
            },
            other => match other.user_oid() {
                Some(oid) => oid.get(),
                None => other.info().oid,
            },
        }
    }

    /// The type with this number, if there is one.
    pub fn from_oid(oid: u32) -> Option<DataType> {
        if oid < FIRST_USER_OID {
            return DataType::with_arrays().find(|data_type| data_type.oid() == oid);
        }
        match oid.checked_sub(TypeOid::END) {
            Some(element) => user_type::of_oid(element)?.array_type(),
            None => user_type::of_oid(oid),
        }
    }

    /// The type of the system with this name in `pg_type`: `int4`, `_int4`.
    pub fn named(internal_name: &str) -> Option<DataType> {
        DataType::with_arrays().find(|data_type| data_type.internal_name() == internal_name)
    }

    /// The type whose values and operators it has: of a domain the one that it is over, of any other type itself.
    #[inline]
    pub fn base(self) -> DataType {
        match self {
            DataType::Domain(oid) => user_type::base_of(oid),
            other => other,
        }
    }

    /// The size a row description reports: bytes, or −1 for a varying length.
    pub const fn wire_size(self) -> i16 {
        match self {
            DataType::Array(_) => -1,
            scalar => scalar.info().length,
        }
    }

    /// The name error messages and EXPLAIN use.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            DataType::Array(element) => match element.data_type() {
                user if user.user_oid().is_some() => format!("{}[]", user.name()).into(),
                element => element.info().array_name.into(),
            },
            other => match other.user_oid() {
                Some(oid) => user_type::shown_name(oid).into(),
                None => other.info().name.into(),
            },
        }
    }

    /// The name in `pg_type`.
    pub fn internal_name(self) -> Cow<'static, str> {
        match self {
            DataType::Array(element) => match element.data_type().user_oid() {
                Some(oid) => user_type::in_force::array_name(oid)
                    .unwrap_or_else(|| user_type::array_name(&user_type::name_of(oid)))
                    .into(),
                None => element.data_type().info().array_internal_name.into(),
            },
            other => match other.user_oid() {
                Some(oid) => user_type::name_of(oid).into(),
                None => other.info().internal_name.into(),
            },
        }
    }

    /// The type's category.
    pub fn category(self) -> Category {
        match self {
            DataType::Array(element) => match element.data_type() {
                DataType::Record => Category::Pseudo,
                _ => Category::Array,
            },
            DataType::Domain(_) => match self.base() {
                DataType::Domain(_) => Category::User,
                base => base.category(),
            },
            scalar => scalar.info().category,
        }
    }

    /// True if it is the preferred type of its category.
    pub const fn is_preferred(self) -> bool {
        match self {
            DataType::Array(_) => false,
            scalar => scalar.info().preferred,
        }
    }

    /// Its alignment in PostgreSQL (`pg_type.typalign`).
    pub const fn alignment(self) -> char {
        match (self, self.info().alignment) {
            (DataType::Array(_), 'd') => 'd',
            (DataType::Array(_), _) => 'i',
            (_, alignment) => alignment,
        }
    }

    /// `b` for a base type, `p` for a pseudo-type, `e`, `d`, `c` for an enumeration, a domain, a composite type
    /// (`pg_type.typtype`).
    pub const fn kind(self) -> char {
        match self {
            DataType::Array(element) if !matches!(element.data_type(), DataType::Record) => 'b',
            other => other.info().kind,
        }
    }

    /// True if values of the type are dates or times, or arrays of them.
    pub fn holds_time(self) -> bool {
        self.element().unwrap_or(self).category() == Category::DateTime
    }

    /// True if there may be dates or times in its values.
    pub fn may_hold_time(self) -> bool {
        match self {
            DataType::Array(_) | DataType::Domain(_) | DataType::Composite(_) | DataType::Record => true,
            other => other.holds_time(),
        }
    }

    /// True if it is one of the two floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DataType::Float4 | DataType::Float8)
    }

    /// True if it is one of the three integer types.
    pub const fn is_integer(self) -> bool {
        matches!(self, DataType::Int2 | DataType::Int4 | DataType::Int8)
    }

    /// True for `oid`, and for the types that show names for such numbers.
    pub const fn is_oid(self) -> bool {
        matches!(self, DataType::Oid) || self.catalog_object().is_some()
    }

    /// The kind of object that its values are numbers of, and show the names of; `None` for any other type.
    pub const fn catalog_object(self) -> Option<CatalogObject> {
        Some(match self {
            DataType::Regclass => CatalogObject::Relation,
            DataType::Regtype => CatalogObject::Type,
            DataType::Regproc => CatalogObject::Function,
            DataType::Regprocedure => CatalogObject::FunctionWithArguments,
            DataType::Regoper => CatalogObject::Operator,
            DataType::Regoperator => CatalogObject::OperatorWithArguments,
            DataType::Regcollation => CatalogObject::Collation,
            DataType::Regnamespace => CatalogObject::Schema,
            DataType::Regrole => CatalogObject::Role,
            _ => return None,
        })
    }

    /// True if the text of its values, or of their elements, is the names of objects or may have some inside: it needs
    /// the catalog.
    pub fn has_names(self) -> bool {
        match self {
            DataType::Array(element) => element.data_type().has_names(),
            DataType::Record | DataType::Composite(_) => true,
            DataType::Domain(_) => !matches!(self.base(), DataType::Domain(_)) && self.base().has_names(),
            other => other.catalog_object().is_some(),
        }
    }

    /// True if the text of its values, or of their elements, is made as a setting of the session says.
    pub fn has_style(self) -> bool {
        match self {
            DataType::Array(element) => {
                matches!(element.data_type().base(), DataType::Interval | DataType::Bytea)
            }
            other => matches!(other.base(), DataType::Interval | DataType::Bytea),
        }
    }

    /// True if the text of its values needs the session: the catalog for names, or a setting.
    pub fn needs_session(self) -> bool {
        self.has_names() || self.has_style()
    }

    /// True if its values are whole numbers that can be compared with those of another such type as they are.
    pub const fn is_whole(self) -> bool {
        self.is_integer() || self.is_oid()
    }

    /// True if values of the type are texts, or arrays of them.
    pub fn is_text(self) -> bool {
        match self {
            DataType::Array(element) => element.data_type().is_string(),
            other => other.is_string() || matches!(other, DataType::Unknown),
        }
    }

    /// True if it is a string type.
    pub fn is_string(self) -> bool {
        matches!(self.category(), Category::String) || matches!(self, DataType::CharByte)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// The declared length of a `char(n)` or `varchar(n)` in characters.
pub fn length_of_typmod(typmod: i32) -> Option<usize> {
    (typmod >= 4).then(|| (typmod - 4) as usize)
}

/// Precision and scale of a `numeric(p, s)`. The scale may be negative, or larger than the precision.
pub fn numeric_of_typmod(typmod: i32) -> Option<(i32, i32)> {
    (typmod >= 4).then(|| {
        let packed = typmod - 4;
        (packed >> 16 & 0xffff, (packed & 0x7ff ^ 0x400) - 0x400)
    })
}

/// The typmod of `numeric(p, s)`.
pub fn numeric_typmod(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale & 0x7ff) + 4
}

/// The full name with its modifier, as `format_type` shows it: `character varying(10)`, `numeric(10,2)[]`.
pub fn format_type(data_type: DataType, typmod: i32) -> String {
    match data_type {
        DataType::Array(element) => format!("{}[]", format_type(element.data_type(), typmod)),
        // Without a length it is not `character`, which means `character(1)`.
        DataType::Char if typmod < 0 => "bpchar".to_owned(),
        DataType::Char | DataType::Varchar => match length_of_typmod(typmod) {
            Some(length) => format!("{}({length})", data_type.name()),
            None => data_type.name().into_owned(),
        },
        DataType::Numeric => match numeric_of_typmod(typmod) {
            Some((precision, scale)) => format!("numeric({precision},{scale})"),
            None => "numeric".to_owned(),
        },
        DataType::Timestamp if typmod >= 0 => format!("timestamp({typmod}) without time zone"),
        DataType::TimestampTz if typmod >= 0 => format!("timestamp({typmod}) with time zone"),
        DataType::Time if typmod >= 0 => format!("time({typmod}) without time zone"),
        DataType::TimeTz if typmod >= 0 => format!("time({typmod}) with time zone"),
        DataType::Interval if typmod >= 0 => datetime::type_with_modifier(typmod),
        _ => data_type.name().into_owned(),
    }
}
