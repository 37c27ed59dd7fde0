//! Calls over windows: `function(…) FILTER (…) OVER …`.
//!
//! The binder collects the calls of a SELECT with their windows (`window_calls`), as it does with aggregates: the number of
//! a call stands for it (`Expr::Window`) until the planner knows the row of the stage that computes it. What a call and
//! its window read is bound in the query's scope, where aggregates are collected: a window may be over groups.
//!
//! | module | job |
//! | --- | --- |
//! | `definition` | PARTITION BY, ORDER BY, frames; windows by name |

mod definition;

pub(crate) use definition::range_offset_type;

use sqlparser::ast;

use crate::aggregate;
use crate::bind::call::CallParts;
use crate::bind::scope::{Aggregates, Scope};
use crate::bind::select::ENTRIES_MAX;
use crate::bind::window_calls::{WindowCalls, Windows, is_window_function};
use crate::bind::{Binder, Typed};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::plan::WindowCall;
use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

impl Scope {
    /// The calls over windows that were collected; from here on they are refused.
    pub(super) fn take_windows(&mut self) -> Result<WindowCalls> {
        match std::mem::take(&mut self.windows) {
            Windows::Collected(calls) => Ok(*calls),
            _ => Err(EngineError::internal("windows were lost while binding")),
        }
    }
}

fn windowing_error(message: impl Into<String>, position: Option<u32>) -> EngineError {
    EngineError::new(SqlState::WINDOWING_ERROR, message.into()).or_position(position)
}

impl Binder<'_> {
    /// A call over a window.
    pub(super) fn over(
        &mut self,
        parts: &CallParts<'_>,
        over: &ast::WindowType,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let mut windows = match std::mem::take(&mut scope.windows) {
            Windows::Collected(windows) => windows,
            refused => return Err(not_allowed(&refused, scope.clause).or_position(position)),
        };
        check_parts(parts).map_err(|error| error.or_position(position))?;
        scope.windows = Windows::Nested;
        let bound = if is_window_function(parts.name) {
            self.window_function(parts, scope, position)
        } else {
            self.aggregate_over(parts, scope, position)
        };
        let (bound, data_type) = bound.map_err(|error| error.or_position(position))?;
        scope.windows = Windows::Refused;
        let clause = std::mem::replace(&mut scope.clause, "window definitions");
        let refused = scope
            .sets_refused
            .replace("a function that gives rows in a window definition is not supported");
        let window = self.window_of(over, &mut windows.windows, scope, position)?;
        scope.sets_refused = refused;
        scope.clause = clause;
        let entry = (window, bound);
        let at = match windows.calls.iter().position(|known| *known == entry) {
            Some(at) => at,
            None if windows.calls.len() >= ENTRIES_MAX => {
                return Err(EngineError::new(
                    SqlState::TOO_MANY_COLUMNS,
                    format!("a query can have at most {ENTRIES_MAX} different calls over windows"),
                )
                .or_position(position));
            }
            None => {
                windows.calls.push(entry);
                windows.calls.len() - 1
            }
        };
        scope.windows = Windows::Collected(windows);
        Ok(Typed::new(Expr::Window(at as u16), data_type))
    }

    fn aggregate_over(
        &mut self,
        parts: &CallParts<'_>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<(WindowCall, DataType)> {
        let filter = match parts.filter {
            Some(tree) => {
                let aggregates = std::mem::replace(&mut scope.aggregates, Aggregates::Refused);
                let windows = std::mem::replace(&mut scope.windows, Windows::Refused);
                let clause = std::mem::replace(&mut scope.clause, "FILTER");
                let typed = self.expression(tree, scope)?;
                scope.clause = clause;
                scope.windows = windows;
                scope.aggregates = aggregates;
                Some(self.condition(typed, "FILTER", self.position_of(tree))?)
            }
            None => None,
        };
        let unfiltered = CallParts {
            filter: None,
            ..parts.clone()
        };
        let mut call = self.aggregate_call(&unfiltered, scope, position)?;
        call.filter = filter;
        let data_type = call.result_type;
        Ok((WindowCall::Aggregate(call), data_type))
    }

    fn window_function(
        &mut self,
        parts: &CallParts<'_>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<(WindowCall, DataType)> {
        let arguments = parts.arguments.iter();
        let arguments: Vec<Typed> = arguments
            .map(|tree| self.expression(tree, scope))
            .collect::<Result<_>>()?;
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type).collect();
        let wrong = || {
            let shown: Vec<_> = types.iter().map(|data_type| data_type.name()).collect();
            EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {}({}) does not exist", parts.name, shown.join(", ")),
            )
            .with_hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )
        };
        let ranking = match parts.name {
            "row_number" => Some((WindowCall::RowNumber, DataType::Int8)),
            "rank" => Some((WindowCall::Rank, DataType::Int8)),
            "dense_rank" => Some((WindowCall::DenseRank, DataType::Int8)),
            "percent_rank" => Some((WindowCall::PercentRank, DataType::Float8)),
            "cume_dist" => Some((WindowCall::CumeDist, DataType::Float8)),
            _ => None,
        };
        if let Some(found) = ranking {
            return match arguments.is_empty() {
                true => Ok(found),
                false if parts.name == "row_number" => Err(wrong()),
                false => Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!(
                        "WITHIN GROUP is required for ordered-set aggregate {}",
                        parts.name
                    ),
                )),
            };
        }
        let neighbour = matches!(parts.name, "lag" | "lead");
        let wanted = match parts.name {
            "lag" | "lead" => 1..=3,
            "nth_value" => 2..=2,
            _ => 1..=1,
        };
        let number = if parts.name == "ntile" { 0 } else { 1 };
        let fits = |data_type: &DataType| can_cast(*data_type, DataType::Int4, CastContext::Implicit);
        if !wanted.contains(&types.len()) || !types.get(number).is_none_or(fits) {
            return Err(wrong());
        }
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next();
        let int4 = |binder: &mut Self, typed: Option<Typed>| -> Result<Option<Expr>> {
            typed
                .map(|typed| binder.coerce(typed, DataType::Int4, position))
                .transpose()
        };
        if parts.name == "ntile" {
            let buckets = int4(self, next())?.ok_or_else(wrong)?;
            return Ok((WindowCall::Ntile(buckets), DataType::Int4));
        }
        let value = next().ok_or_else(wrong)?;
        let offset = int4(self, next())?;
        let default = next();
        let data_type = match &default {
            Some(default) => common_type(&[value.data_type, default.data_type]).ok_or_else(wrong)?,
            None if value.data_type == DataType::Unknown => {
                return Err(EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    "could not determine polymorphic type because input has type unknown",
                ));
            }
            None => value.data_type,
        };
        let value = self.coerce(value, data_type, position)?;
        let default = default
            .map(|default| self.coerce(default, data_type, position))
            .transpose()?;
        let bound = match (parts.name, offset) {
            (name, offset) if neighbour => WindowCall::Neighbour {
                forward: name == "lead",
                value,
                offset,
                default,
            },
            ("first_value", None) => WindowCall::First(value),
            ("last_value", None) => WindowCall::Last(value),
            (_, Some(number)) => WindowCall::Nth(value, number),
            _ => return Err(wrong()),
        };
        Ok((bound, data_type))
    }
}

/// An error for what no call over a window has.
fn check_parts(parts: &CallParts<'_>) -> Result<()> {
    let is_window = is_window_function(parts.name);
    let (sqlstate, message) = if !is_window && !aggregate::is_name(parts.name) {
        let message = format!(
            "OVER specified, but {} is not a window function nor an aggregate function",
            parts.name
        );
        (SqlState::WRONG_OBJECT_TYPE, message)
    } else if !parts.within.is_empty() {
        let message = format!("OVER is not supported for ordered-set aggregate {}", parts.name);
        (SqlState::FEATURE_NOT_SUPPORTED, message)
    } else if parts.arguments.is_empty() && !parts.star && !is_window {
        let message = format!(
            "{}(*) must be used to call a parameterless aggregate function",
            parts.name
        );
        (SqlState::WRONG_OBJECT_TYPE, message)
    } else {
        let message = if parts.distinct {
            "DISTINCT is not implemented for window functions"
        } else if !parts.order.is_empty() {
            "aggregate ORDER BY is not implemented for window functions"
        } else if parts.filter.is_some() && is_window {
            "FILTER is not implemented for non-aggregate window functions"
        } else {
            return Ok(());
        };
        (SqlState::FEATURE_NOT_SUPPORTED, message.to_owned())
    };
    Err(EngineError::new(sqlstate, message))
}

/// The error for a call where there can be none.
fn not_allowed(windows: &Windows, clause: &str) -> EngineError {
    match windows {
        Windows::Nested => windowing_error("window function calls cannot be nested", None),
        _ if clause == "the argument of an aggregate" => EngineError::new(
            SqlState::GROUPING_ERROR,
            "aggregate function calls cannot contain window function calls",
        ),
        _ => {
            let clause = match clause {
                "window ROWS" | "window RANGE" | "window GROUPS" => "window definitions",
                other => other,
            };
            windowing_error(format!("window functions are not allowed in {clause}"), None)
        }
    }
}
