//! Functions by name and by the types of their arguments.
//!
//! A name may have several functions. The choice among them is PostgreSQL's:
//!
//! 1. One whose argument types are the given ones.
//! 2. Otherwise those that the arguments can be converted to implicitly; a literal without a type converts to all.
//!    If there is one, it is it.
//! 3. Of several, those with the most arguments that need no conversion.
//! 4. Of these, those with the most arguments that need none or become their category's preferred type.
//! 5. Where a literal without a type stands, all that are left must agree on a category, or one of them takes a
//!    string; those of the category stay, and of these the ones of its preferred type, if there are any.
//! 6. If the arguments with a type have all the same, the literals are taken to be of it too.
//!
//! If several are left after the last step, the call is ambiguous. For operators, step 6 comes before step 2 when one
//! side is a literal without a type.

use std::borrow::Cow;

use crate::function::row::FunctionRow;
use crate::function::signature::Signature;
use crate::function::{Function, array, choice, enumeration, json, objects, table};
use crate::value::cast::{CastContext, can_cast};
use crate::value::{Category, DataType};

/// The reason why no function was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    /// There is none for these arguments.
    Missing,
    /// There are several, and none is the best.
    Ambiguous,
}

/// A function of several with one name.
pub trait Overload: 'static {
    /// The types of its arguments.
    fn arguments(&self) -> &'static [DataType];

    /// True if any number of values of any type may follow, one at least.
    fn is_variadic(&self) -> bool;
}

impl Overload for FunctionRow {
    fn arguments(&self) -> &'static [DataType] {
        self.arguments
    }

    fn is_variadic(&self) -> bool {
        self.variadic
    }
}

/// Finds the function of a name for arguments, if it is one of its own.
type Finder = fn(&str, &[DataType]) -> Option<Signature>;

/// The functions whose types are no fixed list: each looks at name and arguments, and gives `None` if it is not its
/// own.
static POLYMORPHIC: &[Finder] = &[
    choice::resolve,
    array::resolve,
    enumeration::resolve,
    objects::resolve,
    json::make::resolve,
];

/// The function of this name for arguments of these types.
pub fn resolve(name: &str, arguments: &[DataType]) -> Result<Signature, Unresolved> {
    let arguments = &match name {
        // These tell, or give, the domain itself.
        "pg_typeof" | "coalesce" | "greatest" | "least" => Cow::Borrowed(arguments),
        _ => of_bases(arguments),
    }[..];
    if let Some(found) = POLYMORPHIC.iter().find_map(|find| find(name, arguments)) {
        return Ok(found);
    }
    let best = best_of(table::named(name), arguments)?;
    Ok(signature(best, arguments))
}

/// The function that an operator means between operands of these types, or before its only one.
pub fn resolve_operator(symbol: &str, operands: &[DataType]) -> Result<Signature, Unresolved> {
    let operands = &of_bases(operands)[..];
    let candidates = table::operators(symbol);
    // A literal is taken to be what the other side is, if there is such an operator.
    let alike = match *operands {
        [DataType::Unknown, other] | [other, DataType::Unknown] => candidates
            .iter()
            .find(|row| row.arguments == [other, other])
            .copied(),
        _ => None,
    };
    let best = match alike {
        Some(row) => row,
        None => best_of(candidates, operands)?,
    };
    Ok(signature(best, operands))
}

/// These types, with what domains are over in the place of domains: no function is about a domain.
fn of_bases(types: &[DataType]) -> Cow<'_, [DataType]> {
    match types.iter().any(|of| matches!(of, DataType::Domain(_))) {
        true => types.iter().map(|of| of.base()).collect(),
        false => Cow::Borrowed(types),
    }
}

/// The signature of a row that was chosen for these arguments.
fn signature(row: &'static FunctionRow, arguments: &[DataType]) -> Signature {
    let values = arguments[row.arguments.len()..]
        .iter()
        .map(|data_type| match data_type {
            of if json::make::takes_names(row.name) => json::make::shown_as(*of),
            DataType::Unknown => DataType::Text,
            // The session makes their text.
            other if other.needs_session() => DataType::Text,
            other => *other,
        });
    Signature {
        function: Function::of_row(row),
        arguments: row.arguments.iter().copied().chain(values).collect(),
        result: row.result,
    }
}

/// True if the row takes that many arguments.
fn takes(row: &impl Overload, count: usize) -> bool {
    match row.is_variadic() {
        true => count > row.arguments().len(),
        false => count == row.arguments().len(),
    }
}

/// The best of these functions for arguments of these types.
pub fn best_of<R: Overload>(
    candidates: &[&'static R],
    arguments: &[DataType],
) -> Result<&'static R, Unresolved> {
    // A row without variable arguments is preferred, as the only one that can match exactly.
    let mut left: Vec<&'static R> = candidates
        .iter()
        .copied()
        .filter(|row| takes(*row, arguments.len()))
        .collect();
    if let Some(exact) = left
        .iter()
        .find(|row| !row.is_variadic() && row.arguments() == arguments)
    {
        return Ok(exact);
    }
    let fits = |row: &&'static R| {
        let mut pairs = arguments.iter().zip(row.arguments());
        pairs.all(|(from, to)| can_cast(*from, *to, CastContext::Implicit))
    };
    left.retain(fits);
    let matches = |given: DataType, wanted: DataType| given == wanted;
    keep_most(&mut left, arguments, matches);
    let close = |given: DataType, wanted: DataType| {
        given == wanted || (wanted.category() == given.category() && is_preferred(wanted))
    };
    keep_most(&mut left, arguments, close);
    for (number, argument) in arguments.iter().enumerate() {
        if left.len() > 1 && *argument == DataType::Unknown {
            settle_literal(&mut left, number)?;
        }
    }
    if left.len() > 1 {
        left = as_the_others(&left, arguments)
            .filter(|left| left.len() == 1)
            .ok_or(Unresolved::Ambiguous)?;
    }
    match *left {
        [] => Err(Unresolved::Missing),
        [only] => Ok(only),
        _ => Err(Unresolved::Ambiguous),
    }
}

/// Keeps the rows with the most arguments with a type of which `counts` holds (steps 3 and 4).
fn keep_most<R: Overload>(
    left: &mut Vec<&'static R>,
    arguments: &[DataType],
    counts: impl Fn(DataType, DataType) -> bool,
) {
    if left.len() < 2 {
        return;
    }
    let score = |row: &R| {
        let pairs = arguments.iter().zip(row.arguments());
        pairs
            .filter(|(given, wanted)| **given != DataType::Unknown && counts(**given, **wanted))
            .count()
    };
    let best = left.iter().map(|row| score(row)).max().unwrap_or(0);
    left.retain(|row| score(row) == best);
}

/// Keeps the rows whose type for a literal is of the category that it is taken to be of (step 5).
fn settle_literal<R: Overload>(left: &mut Vec<&'static R>, number: usize) -> Result<(), Unresolved> {
    let wanted = |row: &R| row.arguments().get(number).copied().unwrap_or(DataType::Text);
    let first = wanted(left[0]).category();
    let category = match () {
        () if left.iter().any(|row| wanted(row).category() == Category::String) => Category::String,
        () if left.iter().all(|row| wanted(row).category() == first) => first,
        () => return Ok(()),
    };
    left.retain(|row| wanted(row).category() == category);
    if left.iter().any(|row| is_preferred(wanted(row))) {
        left.retain(|row| is_preferred(wanted(row)));
    }
    Ok(())
}

/// The rows that remain if literals have the one type that all other arguments have (step 6).
fn as_the_others<R: Overload>(left: &[&'static R], arguments: &[DataType]) -> Option<Vec<&'static R>> {
    let mut known = arguments
        .iter()
        .copied()
        .filter(|kind| *kind != DataType::Unknown);
    let one = known.next()?;
    if !known.all(|kind| kind == one) {
        return None;
    }
    let takes_it = |row: &&&'static R| {
        let mut wanted = row.arguments().iter();
        wanted.all(|wanted| can_cast(one, *wanted, CastContext::Implicit))
    };
    Some(left.iter().filter(takes_it).copied().collect())
}

/// True if a type is what values of its category become where there is a choice.
fn is_preferred(data_type: DataType) -> bool {
    data_type.is_preferred()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXPLAIN shows a call by the function's name: read again, it is the same function.
    #[test]
    fn a_name_leads_back_to_its_function() {
        for row in table::rows() {
            if row.variadic {
                continue;
            }
            let found = resolve(row.name, row.arguments).unwrap_or_else(|_| panic!("{row:?}"));
            assert_eq!(found.function, Function::of_row(row), "{row:?}");
            assert_eq!(found.result, row.result);
        }
    }

    #[test]
    fn no_two_rows_have_one_name_and_the_same_arguments() {
        let mut seen = std::collections::HashSet::new();
        for row in table::rows() {
            assert!(
                seen.insert((row.name, row.arguments, row.variadic)),
                "{row:?} is there twice"
            );
        }
    }

    fn chosen(name: &str, arguments: &[DataType]) -> Result<Vec<DataType>, Unresolved> {
        resolve(name, arguments).map(|found| found.arguments)
    }

    #[test]
    fn the_best_of_several_functions_is_taken() {
        use DataType::*;
        assert_eq!(chosen("abs", &[Int2]), Ok(vec![Int2]));
        assert_eq!(chosen("abs", &[Unknown]), Ok(vec![Float8]));
        assert_eq!(chosen("mod", &[Int2, Int8]), Ok(vec![Int8, Int8]));
        assert_eq!(chosen("mod", &[Int4, Unknown]), Ok(vec![Int4, Int4]));
        assert_eq!(chosen("mod", &[Float8, Int4]), Err(Unresolved::Missing));
        assert_eq!(chosen("sqrt", &[Int4]), Ok(vec![Float8]));
        assert_eq!(chosen("sqrt", &[Numeric]), Ok(vec![Numeric]));
        assert_eq!(chosen("round", &[Int4, Int4]), Ok(vec![Numeric, Int4]));
        assert_eq!(chosen("to_char", &[Int2, Unknown]), Ok(vec![Float8, Text]));
        assert_eq!(chosen("lower", &[Name]), Ok(vec![Text]));
        assert_eq!(chosen("lower", &[Int4]), Err(Unresolved::Missing));
        assert_eq!(chosen("power", &[Numeric, Int4]), Ok(vec![Numeric, Numeric]));
        assert_eq!(chosen("power", &[Numeric, Float4]), Ok(vec![Float8, Float8]));
        assert_eq!(chosen("concat", &[Bool, Unknown]), Ok(vec![Bool, Text]));
        assert_eq!(chosen("nothing", &[]), Err(Unresolved::Missing));
    }
}
