//! `pg_am`, `pg_opclass`, `pg_opfamily`, `pg_amop`: heaps and B+trees, and the types that a B+tree sorts.

use std::collections::{BTreeMap, BTreeSet};

use super::Sources;
use super::operators;
use super::rows::{Rows, boolean, int2, oid, text};
use super::server::USER_OID;
use super::shape::Schema;
use super::types;
use clearway_sql::value::DataType;

/// The access method of tables.
pub(super) const HEAP_OID: u32 = 2;
/// The access method of indexes.
pub(super) const BTREE_OID: u32 = 403;

/// oid, opcname, opcfamily, opfname, opcintype, opcdefault, opckeytype
const LINES: &str = include_str!("data/operator_classes.txt");

/// oid, amopfamily, amoplefttype, amoprighttype, amopstrategy, amopopr; of B+trees
const FAMILY_OPERATOR_LINES: &str = include_str!("data/family_operators.txt");

/// An operator class of B+trees.
struct OperatorClass {
    oid: u32,
    name: &'static str,
    family: u32,
    family_name: &'static str,
    input: u32,
    is_default: bool,
    key: u32,
}

impl OperatorClass {
    fn read(line: &'static str) -> Option<OperatorClass> {
        let mut words = line.split(' ');
        Some(OperatorClass {
            oid: words.next()?.parse().ok()?,
            name: words.next()?,
            family: words.next()?.parse().ok()?,
            family_name: words.next()?,
            input: words.next()?.parse().ok()?,
            is_default: words.next()? == "t",
            key: words.next()?.parse().ok()?,
        })
    }
}

/// Operator classes of types that there are.
fn shown() -> impl Iterator<Item = OperatorClass> {
    LINES
        .lines()
        .filter_map(OperatorClass::read)
        .filter(|class| types::exists(class.input))
}

/// The class that an index on a column of this type uses.
pub(super) fn class_of(data_type: DataType) -> Option<u32> {
    let input = match data_type.base() {
        DataType::Varchar => DataType::Text.oid(),
        DataType::Cidr => DataType::Inet.oid(),
        DataType::Enum(_) => ANY_ENUM,
        DataType::Composite(_) => DataType::Record.oid(),
        DataType::Array(_) => DataType::AnyArray.oid(),
        other => other.oid(),
    };
    let mut classes = LINES.lines().filter_map(OperatorClass::read);
    let found = classes.find(|class| class.input == input && class.is_default);
    found.map(|class| class.oid)
}

/// The number of `anyenum`, which no value has.
const ANY_ENUM: u32 = 3_500;

/// The class of this name.
pub(super) fn class_named(name: &str) -> Option<u32> {
    let mut classes = LINES.lines().filter_map(OperatorClass::read);
    classes.find(|class| class.name == name).map(|class| class.oid)
}

/// `pg_am`
pub(super) fn access_methods(_: &Sources<'_>, rows: &mut Rows) {
    for (number, name, kind) in [(HEAP_OID, "heap", "t"), (BTREE_OID, "btree", "i")] {
        rows.push([
            ("oid", oid(number)),
            ("amname", text(name)),
            ("amhandler", oid(0)),
            ("amtype", text(kind)),
        ]);
    }
}

/// `pg_opclass`
pub(super) fn operator_classes(_: &Sources<'_>, rows: &mut Rows) {
    for class in shown() {
        rows.push([
            ("oid", oid(class.oid)),
            ("opcmethod", oid(BTREE_OID)),
            ("opcname", text(class.name)),
            ("opcnamespace", oid(Schema::PgCatalog.oid())),
            ("opcowner", oid(USER_OID)),
            ("opcfamily", oid(class.family)),
            ("opcintype", oid(class.input)),
            ("opcdefault", boolean(class.is_default)),
            ("opckeytype", oid(class.key)),
        ]);
    }
}

/// `pg_opfamily`
pub(super) fn operator_families(_: &Sources<'_>, rows: &mut Rows) {
    let families: BTreeMap<u32, &str> = shown().map(|class| (class.family, class.family_name)).collect();
    for (number, name) in families {
        rows.push([
            ("oid", oid(number)),
            ("opfmethod", oid(BTREE_OID)),
            ("opfname", text(name)),
            ("opfnamespace", oid(Schema::PgCatalog.oid())),
            ("opfowner", oid(USER_OID)),
        ]);
    }
}

/// `pg_amop`: the operators of the families that there are, as far as they exist.
pub(super) fn family_operators(_: &Sources<'_>, rows: &mut Rows) {
    let families: BTreeSet<u32> = shown().map(|class| class.family).collect();
    for line in FAMILY_OPERATOR_LINES.lines() {
        let numbers: Vec<u32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let &[number, family, left, right, strategy, operator] = numbers.as_slice() else {
            continue;
        };
        if !families.contains(&family) || operators::existing(operator) == 0 {
            continue;
        }
        rows.push([
            ("oid", oid(number)),
            ("amopfamily", oid(family)),
            ("amoplefttype", oid(left)),
            ("amoprighttype", oid(right)),
            ("amopstrategy", int2(strategy as i16)),
            ("amoppurpose", text("s")),
            ("amopopr", oid(operator)),
            ("amopmethod", oid(BTREE_OID)),
            ("amopsortfamily", oid(0)),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        assert_eq!(
            LINES.lines().filter_map(OperatorClass::read).count(),
            LINES.lines().count()
        );
        let six = |line: &str| line.split(' ').filter(|word| word.parse::<u32>().is_ok()).count() == 6;
        assert!(FAMILY_OPERATOR_LINES.lines().all(six));
        assert_eq!(class_of(DataType::Int4), Some(1_978));
        assert_eq!(class_of(DataType::Varchar), Some(3_126));
    }
}
