//! Functions that give rows: in FROM, and in a select list, where they become a leaf of FROM.

use sqlparser::ast;

use crate::bind::missing_function::no_function;
use crate::bind::record::RecordShape;
use crate::bind::scope::Scope;
use crate::bind::{Binder, Typed};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::array::EXPANDED;
use crate::function::json::{parts, populate};
use crate::function::{self, Unresolved};
use crate::plan::{Series, SetCall};
use crate::query::is_volatile;
use crate::value::user_type::Field;
use crate::value::{ArrayValue, DataType, NO_TYPMOD};

/// The most calls in a select list.
const CALLS_MAX: usize = 1_664;

/// The error for a function that gives rows inside a call over a window.
pub(super) const SETS_IN_WINDOW_CALL: &str =
    "window function calls cannot contain set-returning function calls";

/// True if the function of this name gives rows.
pub(crate) fn is_set_function(name: &str) -> bool {
    parts::is_name(name)
        || populate::named(name).is_some_and(|populate| populate.is_set)
        || matches!(
            name,
            EXPANDED
                | "generate_series"
                | "unnest"
                | "generate_subscripts"
                | "string_to_table"
                | "regexp_split_to_table"
                | "regexp_matches"
                | "pg_partition_ancestors"
                | "pg_listening_channels"
        )
}

impl Binder<'_> {
    /// A call in a select list: the column of FROM that it becomes.
    pub(super) fn set_call(
        &mut self,
        name: &str,
        trees: &[&ast::Expr],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        if scope.sets.is_none() {
            let message = match scope.sets_refused {
                Some(message) => message.to_owned(),
                None => format!("set-returning functions are not allowed in {}", scope.clause),
            };
            let mut error = EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            if scope.sets_refused.is_some() {
                error = error.with_hint(
                    "You might be able to move the set-returning function into a LATERAL FROM item.",
                );
            }
            return Err(error.or_position(position));
        }
        let (call, data_type) = self.set_function(name, trees, scope, position)?;
        let typmod = self.shape_of_call(name, &call);
        let mut volatile = false;
        call.each_argument(&mut |argument| volatile |= is_volatile(argument, &self.subqueries));
        let Some((base, calls)) = &mut scope.sets else {
            return Err(EngineError::internal("the functions that give rows were lost"));
        };
        // It may be one that is there already, which has the same rows.
        let known = calls.iter().position(|known| !volatile && *known == call);
        let number = known.unwrap_or(calls.len());
        if number >= CALLS_MAX {
            return Err(EngineError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("a query can have at most {CALLS_MAX} calls of functions that give rows"),
            )
            .or_position(position));
        }
        if known.is_none() {
            calls.push(call);
        }
        Ok(Typed {
            typmod,
            ..Typed::new(Expr::Column(*base + number as u16), data_type)
        })
    }

    /// The number of the shape of a call's records, whose fields have names; -1 for a call that gives no such records.
    pub(super) fn shape_of_call(&mut self, name: &str, call: &SetCall) -> i32 {
        let field = |name: &str, data_type| Field {
            name: name.to_owned(),
            data_type,
            typmod: NO_TYPMOD,
        };
        let shape: RecordShape = match (parts::columns(name), call) {
            (Some((_, columns)), _) => columns
                .into_iter()
                .map(|(name, _, data_type)| field(name, data_type))
                .collect(),
            (None, SetCall::Unnest(Expr::Call { function, .. })) if name == EXPANDED => {
                let element = function.of().element().unwrap_or(DataType::Unknown);
                vec![field("x", element), field("n", DataType::Int4)]
            }
            _ => return NO_TYPMOD,
        };
        self.number_of_shape(shape)
    }

    /// Binds what may have no function inside it that gives rows.
    pub(super) fn without_sets<T>(
        &mut self,
        message: &'static str,
        scope: &mut Scope,
        bind: impl FnOnce(&mut Self, &mut Scope) -> Result<T>,
    ) -> Result<T> {
        let sets = scope.sets.take();
        // Where there may be none anyway, that is what an error says.
        let refused = match &sets {
            Some(_) => scope.sets_refused.replace(message),
            None => scope.sets_refused,
        };
        let bound = bind(self, scope)?;
        scope.sets_refused = refused;
        scope.sets = sets;
        Ok(bound)
    }

    /// A call of a function that gives rows, and the type of its column.
    pub(super) fn set_function(
        &mut self,
        name: &str,
        trees: &[&ast::Expr],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<(SetCall, DataType)> {
        if name == "generate_series" {
            let series = self.series(trees, scope)?;
            let data_type = series.data_type;
            return Ok((SetCall::Series(series), data_type));
        }
        let arguments = trees
            .iter()
            .map(|tree| self.expression(tree, scope))
            .collect::<Result<Vec<_>>>()?;
        if name == EXPANDED {
            let types: Vec<DataType> = arguments.iter().map(|typed| typed.data_type).collect();
            let found = function::resolve(name, &types);
            let found = found.map_err(|reason| no_function(name, &types, reason).or_position(position))?;
            let arguments = arguments.into_iter().zip(&found.arguments);
            let arguments = arguments.map(|(typed, to)| self.coerce(typed, *to, position));
            // Not computed before it runs, so that the call tells the type of the elements.
            let call = Expr::Call {
                function: found.function,
                arguments: arguments.collect::<Result<_>>()?,
            };
            return Ok((SetCall::Unnest(call), DataType::Record));
        }
        if parts::is_name(name) || populate::named(name).is_some() {
            let array = self.scalar_of(name, arguments, position)?;
            let element = array.data_type.element().unwrap_or(DataType::Unknown);
            return Ok((SetCall::Unnest(array.expr), element));
        }
        if name.starts_with("regexp_") || matches!(name, "string_to_table" | "pg_listening_channels") {
            return self.parts_of_text(name, arguments, position);
        }
        let shown: Vec<String> = arguments
            .iter()
            .map(|argument| argument.data_type.to_string())
            .collect();
        let missing = || {
            EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}({}) does not exist", shown.join(", ")),
            )
            .or_position(position)
        };
        let mut arguments = arguments.into_iter();
        let array = arguments.next().ok_or_else(missing)?;
        if name == "pg_partition_ancestors" && arguments.len() == 0 {
            // There are no partitions, and what is none has no rows.
            self.coerce(array, DataType::Regclass, position)?;
            let none = ArrayValue::of(DataType::array_of(DataType::Regclass), Vec::new())?;
            let none = Expr::Constant(none.into());
            return Ok((SetCall::Unnest(none), DataType::Regclass));
        }
        let element = array.data_type.element().ok_or_else(missing)?;
        if name == "unnest" {
            return match arguments.next() {
                None => Ok((SetCall::Unnest(array.expr), element)),
                Some(_) => Err(missing()),
            };
        }
        let dimension = arguments.next().ok_or_else(missing)?;
        let dimension = self.coerce(dimension, DataType::Int4, position)?;
        let reverse = arguments
            .next()
            .map(|typed| self.coerce(typed, DataType::Bool, position));
        Ok((
            SetCall::Subscripts {
                array: array.expr,
                dimension,
                reverse: reverse.transpose()?,
            },
            DataType::Int4,
        ))
    }

    /// The functions whose rows are texts: the elements of an array that a function makes.
    fn parts_of_text(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: Option<u32>,
    ) -> Result<(SetCall, DataType)> {
        let array = self.scalar_of(name, arguments, position)?;
        Ok(match name {
            "regexp_matches" => (SetCall::Parts(array.expr), array.data_type),
            _ => (SetCall::Unnest(array.expr), DataType::Text),
        })
    }

    /// `generate_series`
    pub(super) fn series(&mut self, trees: &[&ast::Expr], scope: &mut Scope) -> Result<Series> {
        let bounds = trees
            .iter()
            .map(|tree| self.expression(tree, scope))
            .collect::<Result<Vec<_>>>()?;
        let types: Vec<DataType> = bounds.iter().map(|bound| bound.data_type).collect();
        let all = |wanted: fn(&DataType) -> bool| types.iter().all(|t| wanted(t) || *t == DataType::Unknown);
        let data_type = if all(|t| matches!(t, DataType::Int2 | DataType::Int4)) {
            DataType::Int4
        } else if all(|t| t.is_integer()) {
            DataType::Int8
        } else if all(|t| t.is_integer() || *t == DataType::Numeric) {
            DataType::Numeric
        } else if let Some(times) = times(&types) {
            times
        } else {
            return Err(no_function("generate_series", &types, Unresolved::Missing));
        };
        let is_time = data_type.holds_time();
        if !(if is_time { 3..=3 } else { 2..=3 }).contains(&bounds.len()) {
            return Err(no_function("generate_series", &types, Unresolved::Missing));
        }
        let mut bounds = bounds
            .into_iter()
            .enumerate()
            .map(|(number, bound)| match number {
                2 if is_time => self.coerce(bound, DataType::Interval, None),
                _ => self.coerce(bound, data_type, None),
            })
            .collect::<Result<Vec<_>>>()?
            .into_iter();
        Ok(Series {
            start: bounds.next().expect("two bounds"),
            stop: bounds.next().expect("two bounds"),
            step: bounds.next(),
            data_type,
            filter: None,
        })
    }
}

/// The type of a series of timestamps between bounds of these types, with a step of the third.
fn times(types: &[DataType]) -> Option<DataType> {
    use DataType::{Date, Interval, Timestamp, TimestampTz, Unknown};
    let [start, stop, Interval | Unknown] = *types else {
        return None;
    };
    let time = |data_type| matches!(data_type, Date | Timestamp | TimestampTz | Unknown);
    if !time(start) || !time(stop) || types.iter().all(|data_type| *data_type == Unknown) {
        return None;
    }
    Some(
        match [start, stop].contains(&Timestamp) && ![start, stop].contains(&TimestampTz) {
            true => Timestamp,
            false => TimestampTz,
        },
    )
}
