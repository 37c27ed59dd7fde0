//! `pg_operator` and `pg_cast`: the operators and casts that there are, under PostgreSQL's numbers.

use std::sync::LazyLock;

use super::Sources;
use super::functions;
use super::rows::{Rows, boolean, oid, text};
use super::server::USER_OID;
use super::shape::Schema;
use super::types;
use clearway_sql::function::resolve_operator;
use clearway_sql::value::DataType;
use clearway_sql::value::arithmetic::ArithmeticOp;
use clearway_sql::value::cast::{CastContext, cast_context};

/// oid, oprname, oprkind, oprcanmerge, oprcanhash, oprleft, oprright, oprresult, oprcom, oprnegate, oprcode, oprrest,
/// oprjoin
const OPERATOR_LINES: &str = include_str!("data/operators.txt");

/// oid, castsource, casttarget, castfunc, castcontext, castmethod
const CAST_LINES: &str = include_str!("data/casts.txt");

/// An operator as PostgreSQL's catalog has it.
#[derive(Debug)]
struct OperatorRow {
    oid: u32,
    name: &'static str,
    kind: &'static str,
    can_merge: bool,
    can_hash: bool,
    left: u32,
    right: u32,
    result: u32,
    commutator: u32,
    negator: u32,
    functions: [u32; 3],
}

impl OperatorRow {
    fn read(line: &'static str) -> Option<OperatorRow> {
        let mut words = line.split(' ');
        let oid = words.next()?.parse().ok()?;
        let name = words.next()?;
        let kind = words.next()?;
        let can_merge = words.next()? == "t";
        let can_hash = words.next()? == "t";
        let mut number = || words.next()?.parse::<u32>().ok();
        Some(OperatorRow {
            oid,
            name,
            kind,
            can_merge,
            can_hash,
            left: number()?,
            right: number()?,
            result: number()?,
            commutator: number()?,
            negator: number()?,
            functions: [number()?, number()?, number()?],
        })
    }

    /// True if it is a function here, of exactly these operands.
    fn is_function(&self, symbol: &str, operands: &[DataType]) -> bool {
        resolve_operator(symbol, operands)
            .is_ok_and(|found| found.arguments == operands && found.result.oid() == self.result)
    }

    /// True if there is this operator here.
    fn exists(&self) -> bool {
        use DataType::{Float4, Float8, Int2, Int4, Int8, Numeric, Text};
        let Some(right) = DataType::from_oid(self.right) else {
            return false;
        };
        let left = DataType::from_oid(self.left);
        match (self.name, left) {
            ("+" | "-", None) if matches!(right, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric) => true,
            (symbol, None) if self.is_function(symbol, &[right]) => true,
            (_, None) => false,
            (symbol, Some(left)) if self.is_function(symbol, &[left, right]) => true,
            ("=" | "<>" | "<" | "<=" | ">" | ">=", Some(left)) => {
                left == right || left.is_integer() && right.is_integer()
            }
            ("||", Some(left)) => (left, right) == (Text, Text),
            ("~~" | "!~~" | "~~*" | "!~~*", Some(left)) => (left, right) == (Text, Text),
            (symbol, Some(left)) => [
                ArithmeticOp::Add,
                ArithmeticOp::Subtract,
                ArithmeticOp::Multiply,
                ArithmeticOp::Divide,
                ArithmeticOp::Remainder,
            ]
            .into_iter()
            .filter(|op| op.symbol() == symbol)
            .any(|op| {
                op.resolve(left, right)
                    .is_some_and(|(_, _, result)| result.oid() == self.result)
            }),
        }
    }
}

/// The operators that there are, in the order of their numbers.
static OPERATORS: LazyLock<Vec<OperatorRow>> = LazyLock::new(|| {
    let rows = OPERATOR_LINES.lines().filter_map(OperatorRow::read);
    rows.filter(OperatorRow::exists).collect()
});

/// The number of an operator, if it exists; else 0.
pub(super) fn existing(oid: u32) -> u32 {
    match OPERATORS.binary_search_by_key(&oid, |row| row.oid) {
        Ok(_) => oid,
        Err(_) => 0,
    }
}

/// The symbol, which may have the schema in front of it.
fn symbol(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix("pg_catalog.").unwrap_or(name)
}

/// The number of the operator with this symbol; `None` if several have it.
pub(crate) fn only_one_named(name: &str) -> Option<u32> {
    let name = symbol(name);
    let mut rows = OPERATORS.iter().filter(|row| row.name == name);
    let found = rows.next()?;
    rows.next().is_none().then_some(found.oid)
}

/// True if several operators have this symbol.
pub(crate) fn several_named(name: &str) -> bool {
    let name = symbol(name);
    OPERATORS.iter().filter(|row| row.name == name).nth(1).is_some()
}

fn numbered(oid: u32) -> Option<&'static OperatorRow> {
    let place = OPERATORS.binary_search_by_key(&oid, |row| row.oid).ok()?;
    Some(&OPERATORS[place])
}

/// The symbol of an operator, with its schema if the symbol alone does not lead to it.
pub(crate) fn name_of(oid: u32) -> Option<String> {
    let name = numbered(oid)?.name;
    Some(match only_one_named(name) {
        Some(_) => name.to_owned(),
        None => format!("pg_catalog.{name}"),
    })
}

/// The side of an operator that has no operand.
const NO_OPERAND: &str = "NONE";

/// The number of the operator with this symbol and operands of these types: `+(integer,integer)`, `-(NONE,integer)`.
pub(crate) fn with_operands(signature: &str) -> Option<u32> {
    let (name, operands) = signature.split_once('(')?;
    let (left, right) = operands.trim().strip_suffix(')')?.split_once(',')?;
    let operand = |name: &str| match name.trim() {
        none if none.eq_ignore_ascii_case(NO_OPERAND) => Some(0),
        name => types::named(name),
    };
    let (name, left, right) = (symbol(name), operand(left)?, operand(right)?);
    let mut rows = OPERATORS.iter();
    let found = rows.find(|row| row.name == name && (row.left, row.right) == (left, right));
    found.map(|row| row.oid)
}

/// An operator's symbol with the types of its operands.
pub(crate) fn name_with_operands(oid: u32) -> Option<String> {
    let row = numbered(oid)?;
    let left = match row.left {
        0 => NO_OPERAND.into(),
        left => types::sql_name_of(left),
    };
    Some(format!("{}({left},{})", row.name, types::sql_name_of(row.right)))
}

/// The number of the operator by which values of two types are equal; 0 if there is none for exactly these.
pub(super) fn equality(left: DataType, right: DataType) -> u32 {
    // There is none of its own.
    let operand = |side: DataType| match side {
        DataType::Varchar => DataType::Text.oid(),
        DataType::Cidr => DataType::Inet.oid(),
        other => other.oid(),
    };
    let (left, right) = (operand(left), operand(right));
    let mut operators = OPERATORS.iter();
    let found = operators.find(|row| row.name == "=" && (row.left, row.right) == (left, right));
    found.map_or(0, |row| row.oid)
}

/// `pg_operator`
pub(super) fn operators(_: &Sources<'_>, rows: &mut Rows) {
    for row in OPERATORS.iter() {
        rows.push([
            ("oid", oid(row.oid)),
            ("oprname", text(row.name)),
            ("oprnamespace", oid(Schema::PgCatalog.oid())),
            ("oprowner", oid(USER_OID)),
            ("oprkind", text(row.kind)),
            ("oprcanmerge", boolean(row.can_merge)),
            ("oprcanhash", boolean(row.can_hash)),
            ("oprleft", oid(row.left)),
            ("oprright", oid(row.right)),
            ("oprresult", oid(row.result)),
            ("oprcom", oid(existing(row.commutator))),
            ("oprnegate", oid(existing(row.negator))),
            ("oprcode", oid(functions::existing(row.functions[0]))),
            ("oprrest", oid(functions::existing(row.functions[1]))),
            ("oprjoin", oid(functions::existing(row.functions[2]))),
        ]);
    }
}

/// `pg_cast`: the casts between types that there are.
pub(super) fn casts(_: &Sources<'_>, rows: &mut Rows) {
    for line in CAST_LINES.lines() {
        let mut words = line.split(' ');
        let mut number = || words.next()?.parse::<u32>().ok();
        let (Some(row), Some(source), Some(target), Some(function)) =
            (number(), number(), number(), number())
        else {
            continue;
        };
        let (Some(from), Some(to)) = (DataType::from_oid(source), DataType::from_oid(target)) else {
            continue;
        };
        let context = match cast_context(from, to) {
            Some(CastContext::Implicit) => "i",
            Some(CastContext::Assignment) => "a",
            Some(CastContext::Explicit) => "e",
            None => continue,
        };
        let by_function = functions::existing(function);
        let method = match words.nth(1) {
            Some("f") if by_function == 0 => "i",
            Some(method) => method,
            None => "i",
        };
        rows.push([
            ("oid", oid(row)),
            ("castsource", oid(source)),
            ("casttarget", oid(target)),
            ("castfunc", oid(by_function)),
            ("castcontext", text(context)),
            ("castmethod", text(method)),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_sorted() {
        let all: Vec<OperatorRow> = OPERATOR_LINES.lines().filter_map(OperatorRow::read).collect();
        assert_eq!(all.len(), OPERATOR_LINES.lines().count());
        assert!(all.is_sorted_by_key(|row| row.oid));
    }

    #[test]
    fn operators_that_there_are_have_rows() {
        let has = |number| existing(number) == number;
        // int4 = int4, text = text, numeric + numeric, text || text; not point <-> point.
        assert!(has(96) && has(98) && has(1_758) && has(654));
        assert!(!has(517));
    }
}
