//! Calls of aggregates.

use sqlparser::ast;

use crate::aggregate::{AggregateCall, Found, Kind, resolve, rows};
use crate::bind::call::CallParts;
use crate::bind::json::{has_names_inside, require_comparable};
use crate::bind::missing_function::no_function;
use crate::bind::scope::{Aggregates, Frame, Scope};
use crate::bind::select::{ENTRIES_MAX, direction};
use crate::bind::set::SETS_IN_WINDOW_CALL;
use crate::bind::{Binder, Typed};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::json::make::takes_names;
use crate::sort_key::SortKey;
use crate::value::cast::CastContext;
use crate::value::{DataType, Value};

impl Binder<'_> {
    /// A call of an aggregate: its number among those of the query that it belongs to.
    ///
    /// It is bound as one of this query. If it then reads columns of queries around it only, it belongs to the innermost
    /// of those: its expressions are brought there, and its value becomes an argument of the queries between.
    pub(super) fn aggregate(
        &mut self,
        parts: &CallParts<'_>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        // While its parts are bound, aggregates of this query inside it are refused.
        let aggregates = std::mem::take(&mut scope.aggregates);
        let windows = std::mem::take(&mut scope.windows);
        let known: Vec<usize> = self.frames.iter().map(Frame::argument_count).collect();
        let call = self
            .aggregate_call(parts, scope, position)
            .map_err(|error| error.or_position(position))?;
        scope.windows = windows;
        scope.aggregates = aggregates;
        let result = call.result_type;
        let (call, out) = self
            .brought_out(call)
            .map_err(|error| error.or_position(position))?;
        if out == 0 {
            let clause = scope.clause;
            let value = collect(&mut scope.aggregates, clause, call, position)?;
            return Ok(Typed::new(value, result));
        }
        let level = self.frames.len() - out;
        // Its arguments are no longer read between here and there.
        for (frame, known) in self.frames.iter_mut().zip(known).skip(level) {
            frame.forget_arguments(known);
        }
        let frame = &mut self.frames[level];
        let clause = frame.clause;
        let value = collect(&mut frame.aggregates, clause, call, position)?;
        Ok(Typed::new(self.value_from_around(value, out), result))
    }

    /// The call over the row of the query that it belongs to, with the number of frames out from this one.
    fn brought_out(&self, mut call: AggregateCall) -> Result<(AggregateCall, usize)> {
        let mut out = 0;
        while out < self.frames.len() && reads_around_only(&call) {
            if call.direct.iter().any(reads_own) {
                return Err(EngineError::new(
                    SqlState::GROUPING_ERROR,
                    "outer-level aggregate cannot contain a lower-level variable in its direct arguments",
                ));
            }
            let frame = &self.frames[self.frames.len() - 1 - out];
            for expr in call.all_expressions_mut() {
                let inner = std::mem::replace(expr, Expr::Constant(Value::Null));
                *expr = frame.over_its_row(inner)?;
            }
            out += 1;
        }
        Ok((call, out))
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
        let refused = scope.sets_refused;
        if refused != Some(SETS_IN_WINDOW_CALL) {
            scope.sets_refused = Some("aggregate function calls cannot contain set-returning function calls");
        }
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
        scope.sets_refused = refused;
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
                // Values are JSON then; the type tells what they were.
                true if takes_names(parts.name) && has_names_inside(*wanted) => {
                    let named = self.json_arguments(parts.name, vec![typed])?;
                    named
                        .into_iter()
                        .next()
                        .map_or(Expr::Constant(Value::Null), |typed| typed.expr)
                }
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
            require_comparable(*data_type, "equality", None)?;
            if *data_type == DataType::Record && takes_names(parts.name) {
                return Err(EngineError::not_supported("DISTINCT over records as JSON"));
            }
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
        for (argument, key) in parts.arguments.iter().zip(parts.within) {
            require_one_collation(argument, &key.expr)?;
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

/// The collation that an expression is written with.
fn written_collation(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Nested(inner) => written_collation(inner),
        ast::Expr::Collate { collation, .. } => collation
            .0
            .last()
            .and_then(|part| part.as_ident())
            .map(|name| name.value.clone()),
        _ => None,
    }
}

/// 42P21 for a direct argument and a column of WITHIN GROUP that are written with different collations.
fn require_one_collation(argument: &ast::Expr, key: &ast::Expr) -> Result<()> {
    match (written_collation(argument), written_collation(key)) {
        (Some(one), Some(other)) if one != other => Err(EngineError::new(
            SqlState::from_code("42P21"),
            format!("collation mismatch between explicit collations \"{one}\" and \"{other}\""),
        )),
        _ => Ok(()),
    }
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

/// True if an expression reads columns of the query itself.
fn reads_own(expr: &Expr) -> bool {
    let mut own = false;
    expr.walk(&mut |part| own |= matches!(part, Expr::Column(_) | Expr::Aggregate(_)));
    own
}

/// True if a call reads columns of queries around its own, and none of its own. Its direct arguments do not count.
fn reads_around_only(call: &AggregateCall) -> bool {
    let (mut outer, mut own) = (false, false);
    call.expressions().for_each(|expr| {
        expr.walk(&mut |part| match part {
            Expr::Outer(_) => outer = true,
            Expr::Column(_) | Expr::Aggregate(_) => own = true,
            _ => {}
        });
    });
    outer && !own
}

/// Adds a call to the aggregates of a query, and gives what stands for it; 42803 where there may be none.
fn collect(
    aggregates: &mut Aggregates,
    clause: &'static str,
    call: AggregateCall,
    position: Option<u32>,
) -> Result<Expr> {
    let refused = |message: String| EngineError::new(SqlState::GROUPING_ERROR, message).or_position(position);
    let mut nested = false;
    let exprs = call.expressions().chain(&call.direct);
    exprs.for_each(|expr| expr.walk(&mut |part| nested |= matches!(part, Expr::Aggregate(_))));
    let calls = match aggregates {
        _ if nested => return Err(refused("aggregate function calls cannot be nested".to_owned())),
        Aggregates::Collected(calls) => calls,
        Aggregates::Refused if clause == ARGUMENT => {
            return Err(refused("aggregate function calls cannot be nested".to_owned()));
        }
        Aggregates::Refused => {
            return Err(refused(format!(
                "aggregate functions are not allowed in {clause}"
            )));
        }
    };
    if let Some(at) = calls.iter().position(|other| *other == call) {
        return Ok(Expr::Aggregate(at as u16));
    }
    calls.push(call);
    if calls.len() > ENTRIES_MAX {
        return Err(EngineError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("a query can have at most {ENTRIES_MAX} different aggregates"),
        )
        .or_position(position));
    }
    Ok(Expr::Aggregate(calls.len() as u16 - 1))
}
