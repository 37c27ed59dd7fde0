//! All aggregates, by name, and the one that a call means.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::row::{Aggregate, AggregateRow};
use super::{choice, hypothetical, json, list, number, pairs, percentile, spread};
use crate::function::{Unresolved, best_of};
use crate::value::DataType;

/// The rows of each file of aggregates.
static TABLES: &[&[AggregateRow]] = &[
    choice::ROWS,
    hypothetical::ROWS,
    json::ROWS,
    list::ROWS,
    number::ROWS,
    pairs::ROWS,
    percentile::ROWS,
    spread::ROWS,
];

/// An aggregate that was found for arguments.
#[derive(Debug)]
pub struct Found {
    /// The aggregate.
    pub function: Aggregate,
    /// The types that its arguments are converted to.
    pub arguments: Vec<DataType>,
    /// The type of its result.
    pub result: DataType,
}

/// All aggregates.
pub fn rows() -> impl Iterator<Item = &'static AggregateRow> {
    TABLES.iter().flat_map(|rows| rows.iter())
}

/// The aggregates of this name.
pub(super) fn named(name: &str) -> &'static [&'static AggregateRow] {
    static BY_NAME: LazyLock<HashMap<&str, Vec<&AggregateRow>>> = LazyLock::new(|| {
        let mut by_name: HashMap<&str, Vec<&AggregateRow>> = HashMap::new();
        for row in rows() {
            by_name.entry(row.name).or_default().push(row);
        }
        by_name
    });
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}

/// The aggregate of this name for arguments of these types, direct ones first.
pub fn resolve(name: &str, arguments: &[DataType]) -> Result<Found, Unresolved> {
    // No aggregate is about a domain.
    let arguments: Vec<DataType> = arguments.iter().map(|of| of.base()).collect();
    let arguments = arguments.as_slice();
    // In PostgreSQL some of these names are of aggregates over intervals or strings of bits too.
    let of_other_types = matches!(
        name,
        "sum" | "avg" | "bit_and" | "bit_or" | "bit_xor" | "array_agg"
    );
    if of_other_types && arguments == [DataType::Unknown] {
        return Err(Unresolved::Ambiguous);
    }
    let (any, fixed): (Vec<_>, Vec<_>) = named(name).iter().copied().partition(|row| row.types.is_some());
    match best_of(&fixed, arguments) {
        Ok(row) => {
            return Ok(Found {
                function: Aggregate(row),
                arguments: row.arguments.to_vec(),
                result: row.result,
            });
        }
        Err(Unresolved::Ambiguous) => return Err(Unresolved::Ambiguous),
        Err(Unresolved::Missing) => {}
    }
    let found = any.into_iter().find_map(|row| {
        let (arguments, result) = row.types?(arguments)?;
        Some(Found {
            function: Aggregate(row),
            arguments,
            result,
        })
    });
    found.ok_or(Unresolved::Missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_aggregate() {
        for row in rows().filter(|row| row.types.is_none()) {
            let found = resolve(row.name, row.arguments).unwrap_or_else(|_| panic!("{row:?}"));
            assert_eq!(found.function, Aggregate(row));
            assert_eq!(
                (found.arguments.as_slice(), found.result),
                (row.arguments, row.result)
            );
        }
    }

    #[test]
    fn the_best_of_several_aggregates_is_taken() {
        use DataType::*;
        let types = |name, arguments: &[DataType]| {
            resolve(name, arguments).map(|found| (found.arguments, found.result))
        };
        assert_eq!(types("sum", &[Int2]), Ok((vec![Int2], Int8)));
        assert_eq!(types("sum", &[Unknown]), Err(Unresolved::Ambiguous));
        assert_eq!(types("sum", &[Text]), Err(Unresolved::Missing));
        assert_eq!(types("max", &[Unknown]), Ok((vec![Text], Text)));
        assert_eq!(types("max", &[Varchar]), Ok((vec![Text], Text)));
        let names = DataType::array_of(Name);
        assert_eq!(types("max", &[names]), Ok((vec![names], names)));
        assert_eq!(
            types("corr", &[Int4, Numeric]),
            Ok((vec![Float8, Float8], Float8))
        );
        assert_eq!(types("count", &[Unknown]), Ok((vec![Text], Int8)));
    }
}
