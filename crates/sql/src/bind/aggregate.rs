//! Calls of aggregates.

use crate::aggregate::{AggregateCall, Found, Kind, resolve, rows};
use crate::bind::call::{CallParts, no_function};
use crate::bind::scope::{Aggregates, Scope};
use crate::bind::select::{ENTRIES_MAX, direction};
use crate::bind::{Binder, Typed, refuse};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::sort_key::SortKey;
use crate::value::DataType;
use crate::value::cast::CastContext;

impl Binder<'_> {
    /// A call of an aggregate: its number among those of the query.
    pub(super) fn aggregate(
        &mut self,
        parts: &CallParts<'_>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        // While its parts are bound, aggregates inside it are refused.
        let Aggregates::Collected(mut calls) = std::mem::replace(&mut scope.aggregates, Aggregates::Refused)
        else {
            let message = match scope.clause {
                ARGUMENT => "aggregate function calls cannot be nested".to_owned(),
                clause => format!("aggregate functions are not allowed in {clause}"),
            };
            return Err(EngineError::new(SqlState::GROUPING_ERROR, message).or_position(position));
        };
        let windows = std::mem::take(&mut scope.windows);
        let call = self
            .aggregate_call(parts, scope, position)
            .map_err(|error| error.or_position(position))?;
        scope.windows = windows;
        let result = call.result_type;
        let at = match calls.iter().position(|other| *other == call) {
            Some(at) => at,
            None => {
                calls.push(call);
                if calls.len() > ENTRIES_MAX {
                    return Err(EngineError::new(
                        SqlState::TOO_MANY_COLUMNS,
                        format!("a query can have at most {ENTRIES_MAX} different aggregates"),
                    )
                    .or_position(position));
                }
                calls.len() - 1
            }
        };
        scope.aggregates = Aggregates::Collected(calls);
        Ok(Typed::new(Expr::Aggregate(at as u16), result))
    }

    /// A call of an aggregate over the rows of a scope. Aggregates are refused there, but over a window.
    pub(super) fn aggregate_call(
        &mut self,
        parts: &CallParts<'_>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<AggregateCall> {
        refuse_form(parts)?;
        let clause = std::mem::replace(&mut scope.clause, "FILTER");
        let sets = scope.sets.take();
        let filter = match parts.filter {
            Some(tree) => {
                let typed = self.expression(tree, scope)?;
                Some(self.condition(typed, "FILTER", self.position_of(tree))?)
            }
            None => None,
        };
        scope.clause = ARGUMENT;
        let trees = parts.arguments.iter().copied();
        let within = parts.within.iter().map(|key| &key.expr);
        let arguments = trees.chain(within).map(|tree| self.expression(tree, scope));
        let arguments = arguments.collect::<Result<Vec<Typed>>>()?;
        let mut call = self.aggregate_of(parts, arguments, filter, position)?;
        self.order_of(&mut call, parts, scope)?;
        scope.clause = clause;
        scope.sets = sets;
        for expr in call.expressions() {
            refuse_outer(expr)?;
        }
        if matches!(parts.name, "min" | "max") {
            // The least or greatest is the same with and without its equals.
            call.distinct = false;
        }
        if !call.distinct && !call.function.row().order_matters && parts.within.is_empty() {
            call.order.clear();
            call.inputs.truncate(call.argument_types.len());
        }
        Ok(call)
    }

    /// The call of the aggregate that these arguments find, without its order.
    fn aggregate_of(
        &mut self,
        parts: &CallParts<'_>,
        arguments: Vec<Typed>,
        filter: Option<Expr>,
        position: Option<u32>,
    ) -> Result<AggregateCall> {
        let direct = arguments.len() - parts.within.len();
        let found = find(parts, &arguments, direct)?;
        let kind = found.function.row().kind;
        match (kind, parts.within.is_empty()) {
            (Kind::Plain, false) => {
                return Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!(
                        "{} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
                        parts.name
                    ),
                ));
            }
            (Kind::OrderedSet | Kind::Hypothetical, true) => return Err(misses_group(parts.name)),
            _ => {}
        }
        let mut exprs = Vec::with_capacity(arguments.len());
        for (typed, wanted) in arguments.into_iter().zip(&found.arguments) {
            exprs.push(match typed.data_type == *wanted {
                true => typed.expr,
                false => self.coerce(typed, *wanted, position)?,
            });
        }
        // Those of a plain aggregate are all over the rows.
        let direct = if let Kind::Plain = kind { 0 } else { direct };
        let inputs = exprs.split_off(direct);
        Ok(AggregateCall {
            function: found.function,
            inputs,
            argument_types: found.arguments[direct..].to_vec(),
            direct: exprs,
            order: Vec::new(),
            distinct: parts.distinct,
            filter,
            result_type: found.result,
        })
    }

    /// Adds the keys of ORDER BY or WITHIN GROUP to a call; then, with DISTINCT, the other arguments.
    fn order_of(&mut self, call: &mut AggregateCall, parts: &CallParts<'_>, scope: &mut Scope) -> Result<()> {
        for (at, key) in parts.within.iter().enumerate() {
            let (descending, nulls_first) = direction(&key.options)?;
            call.order.push(SortKey {
                column: at,
                data_type: call.argument_types[at],
                descending,
                nulls_first,
            });
        }
        for key in parts.order {
            let typed = self.expression(&key.expr, scope)?;
            let typed = self.settle(typed)?;
            let (descending, nulls_first) = direction(&key.options)?;
            let is_it = |input: &Expr| match input {
                // An implicit conversion leaves it the same expression.
                Expr::Cast {
                    input,
                    context: CastContext::Implicit,
                    ..
                } if **input == typed.expr => true,
                input => *input == typed.expr,
            };
            let known = call.inputs.iter().position(is_it);
            if call.distinct && known.is_none_or(|at| at >= call.argument_types.len()) {
                return Err(EngineError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                )
                .or_position(self.position_of(&key.expr)));
            }
            let column = known.unwrap_or(call.inputs.len());
            if known.is_none() {
                call.inputs.push(typed.expr);
            }
            if !call.order.iter().any(|other| other.column == column) {
                let data_type = call.argument_types.get(column).copied();
                call.order.push(SortKey {
                    column,
                    data_type: data_type.unwrap_or(typed.data_type),
                    descending,
                    nulls_first,
                });
            }
        }
        for (column, data_type) in call.argument_types.iter().enumerate().filter(|_| call.distinct) {
            if !call.order.iter().any(|other| other.column == column) {
                call.order.push(SortKey {
                    column,
                    data_type: *data_type,
                    descending: false,
                    nulls_first: false,
                });
            }
        }
        Ok(())
    }
}

/// The clause of what stands inside an aggregate.
const ARGUMENT: &str = "the argument of an aggregate";

/// The aggregate that a call means, whose arguments begin with `direct` direct ones if it has WITHIN GROUP.
fn find(parts: &CallParts<'_>, arguments: &[Typed], direct: usize) -> Result<Found> {
    let mut types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type).collect();
    let hypothetical = rows().any(|row| row.name == parts.name && row.kind == Kind::Hypothetical);
    if hypothetical && !parts.within.is_empty() {
        let keys = arguments.len() - direct;
        if direct != keys {
            let mut error = no_function(parts.name, &types, crate::function::Unresolved::Missing);
            error = error.with_hint(format!(
                "To use the hypothetical-set aggregate {}, the number of hypothetical direct arguments (here {direct}) \
                 must match the number of ordering columns (here {keys}).",
                parts.name
            ));
            return Err(error);
        }
        for at in 0..direct {
            let pair = [types[direct + at], types[at]];
            let Some(common) = common_type(&pair) else {
                return Err(EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("WITHIN GROUP types {} and {} cannot be matched", pair[0], pair[1]),
                ));
            };
            types[at] = common;
            types[direct + at] = common;
        }
    } else if hypothetical {
        return Err(misses_group(parts.name));
    }
    if matches!(parts.name, "mode" | "percentile_disc") && types.last() == Some(&DataType::Unknown) {
        return Err(EngineError::new(
            SqlState::DATATYPE_MISMATCH,
            "could not determine polymorphic type because input has type unknown",
        ));
    }
    resolve(parts.name, &types).map_err(|reason| no_function(parts.name, &types, reason))
}

fn misses_group(name: &str) -> EngineError {
    EngineError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
    )
}

/// An error for a form of call that no aggregate has.
fn refuse_form(parts: &CallParts<'_>) -> Result<()> {
    if !parts.within.is_empty() {
        let present = match parts {
            CallParts { distinct: true, .. } => Some("DISTINCT"),
            _ if !parts.order.is_empty() => Some("multiple ORDER BY clauses"),
            _ => None,
        };
        if let Some(present) = present {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("cannot use {present} with WITHIN GROUP"),
            ));
        }
    }
    if parts.star && parts.distinct {
        return Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("DISTINCT specified, but {}(*) has no arguments", parts.name),
        ));
    }
    if parts.arguments.is_empty() && !parts.star && parts.name == "count" {
        return Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            "count(*) must be used to call a parameterless aggregate function",
        ));
    }
    Ok(())
}

/// 0A000 for an aggregate that reads columns of queries around its own only: it would be an aggregate of the query
/// around.
fn refuse_outer(argument: &Expr) -> Result<()> {
    let (mut outer, mut own) = (false, false);
    argument.walk(&mut |part| match part {
        Expr::Outer(_) => outer = true,
        Expr::Column(_) => own = true,
        _ => {}
    });
    refuse(outer && !own, "an aggregate over columns of a query around it")
}
