//! Calls of functions and aggregates.

use sqlparser::ast;

use crate::aggregate::{AggregateCall, AggregateFunction};
use crate::aggregate_list::ListOrder;
use crate::bind::scope::{Aggregates, Scope};
use crate::bind::select::ENTRIES_MAX;
use crate::bind::set;
use crate::bind::{Binder, Typed, fold, plain_name, refuse};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::{self, Signature, Unresolved};
use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

impl Binder<'_> {
    pub(super) fn call(
        &mut self,
        call: &ast::Function,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        if call.over.is_some() {
            return Err(EngineError::not_supported("a window function").or_position(position));
        }
        if !call.within_group.is_empty()
            || call.null_treatment.is_some()
            || call.parameters != ast::FunctionArguments::None
            || call.uses_odbc_syntax
        {
            return Err(EngineError::not_supported(format!("the call {call}")).or_position(position));
        }
        let name = plain_name(&call.name).map_err(|error| error.or_position(position))?;
        let list = match &call.args {
            ast::FunctionArguments::None => None,
            ast::FunctionArguments::Subquery(query) if name == "array" => {
                return self.array_subquery(query, scope, position);
            }
            ast::FunctionArguments::Subquery(_) => {
                return Err(EngineError::not_supported("a subquery").or_position(position));
            }
            ast::FunctionArguments::List(list) => Some(list),
        };
        let mut order: &[ast::OrderByExpr] = &[];
        for clause in list.map_or(&[][..], |list| &list.clauses) {
            match clause {
                ast::FunctionArgumentClause::OrderBy(keys) => order = keys,
                _ => {
                    return Err(
                        EngineError::not_supported(format!("a clause in the arguments of {name}"))
                            .or_position(position),
                    );
                }
            }
        }
        let distinct =
            list.is_some_and(|list| list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct));
        let mut arguments = Vec::new();
        let mut star = false;
        for argument in list.map_or(&[][..], |list| &list.args) {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) => arguments.push(tree),
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) => star = true,
                _ => {
                    return Err(
                        EngineError::not_supported(format!("the argument {argument}")).or_position(position)
                    );
                }
            }
        }
        if let Some(function) = AggregateFunction::by_name(&name) {
            return self.aggregate(
                function,
                &arguments,
                star,
                distinct,
                order,
                call.filter.as_deref(),
                scope,
                position,
            );
        }
        if star || distinct || call.filter.is_some() || !order.is_empty() {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{name} is not an aggregate function"),
            )
            .or_position(position));
        }
        if set::is_set_function(&name) {
            return self.set_call(&name, &arguments, scope, position);
        }
        self.scalar(&name, &arguments, scope, position)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one call, taken apart once"
    )]
    pub(super) fn aggregate(
        &mut self,
        function: AggregateFunction,
        arguments: &[&ast::Expr],
        star: bool,
        distinct: bool,
        order: &[ast::OrderByExpr],
        filter: Option<&ast::Expr>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        // While the argument is bound, aggregates inside it are refused.
        let Aggregates::Collected(mut calls) = std::mem::replace(&mut scope.aggregates, Aggregates::Refused)
        else {
            return Err(EngineError::new(
                SqlState::GROUPING_ERROR,
                format!("aggregate functions are not allowed in {}", scope.clause),
            )
            .or_position(position));
        };
        let clause = std::mem::replace(&mut scope.clause, "the argument of an aggregate");
        let filter = match filter {
            Some(tree) => {
                let typed = self.expression(tree, scope)?;
                Some(self.condition(typed, "FILTER", position)?)
            }
            None => None,
        };
        let mut call = match (arguments, star) {
            ([], true) if function == AggregateFunction::Count && !distinct => AggregateCall {
                function: AggregateFunction::CountRows,
                argument: None,
                argument_type: DataType::Unknown,
                beside: Vec::new(),
                order: Vec::new(),
                delimiter: None,
                distinct,
                filter,
                result_type: DataType::Int8,
            },
            ([tree, rest @ ..], false)
                if rest.is_empty() != (function == AggregateFunction::StringAgg) && rest.len() < 2 =>
            {
                let (argument, found) = self.aggregate_argument(function, tree, scope, position)?;
                let mut call = AggregateCall {
                    function,
                    argument: Some(argument.expr),
                    argument_type: argument.data_type,
                    beside: Vec::new(),
                    order: Vec::new(),
                    delimiter: None,
                    distinct,
                    filter,
                    result_type: found,
                };
                self.bind_rest(&mut call, rest, order, scope, position)?;
                call
            }
            _ => {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_FUNCTION,
                    format!(
                        "function {} with {} arguments does not exist",
                        function.name(),
                        arguments.len()
                    ),
                )
                .or_position(position));
            }
        };
        if matches!(function, AggregateFunction::Min | AggregateFunction::Max) {
            // The least or greatest is the same with and without its equals.
            call.distinct = false;
        }
        scope.clause = clause;
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

    /// The argument of an aggregate, as it takes it, and the type of its result.
    fn aggregate_argument(
        &mut self,
        function: AggregateFunction,
        tree: &ast::Expr,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<(Typed, DataType)> {
        let argument = self.expression(tree, scope)?;
        refuse_outer(&argument.expr).map_err(|error| error.or_position(position))?;
        let argument = match function {
            AggregateFunction::BoolAnd | AggregateFunction::BoolOr
                if argument.data_type == DataType::Unknown =>
            {
                Typed::new(self.coerce(argument, DataType::Bool, position)?, DataType::Bool)
            }
            AggregateFunction::StringAgg => self.text_of_aggregate(argument, position)?,
            _ => self.settle(argument)?,
        };
        let result = function.result_type(argument.data_type).ok_or_else(|| {
            EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!(
                    "function {}({}) does not exist",
                    function.name(),
                    argument.data_type
                ),
            )
            .or_position(position)
        })?;
        Ok((argument, result))
    }

    /// Text for `string_agg`; 42883 for what does not become one by itself.
    fn text_of_aggregate(&mut self, input: Typed, position: Option<u32>) -> Result<Typed> {
        if !can_cast(input.data_type, DataType::Text, CastContext::Implicit) {
            return Err(EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function string_agg({}, unknown) does not exist", input.data_type),
            )
            .with_hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )
            .or_position(position));
        }
        Ok(Typed::new(
            self.coerce(input, DataType::Text, position)?,
            DataType::Text,
        ))
    }

    /// The delimiter and the order of an aggregate's call.
    fn bind_rest(
        &mut self,
        call: &mut AggregateCall,
        delimiter: &[&ast::Expr],
        order: &[ast::OrderByExpr],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<()> {
        for tree in delimiter {
            let typed = self.expression(tree, scope)?;
            match self.text_of_aggregate(typed, position)?.expr {
                Expr::Constant(value) => call.delimiter = Some(value),
                _ if call.distinct => {
                    return Err(
                        EngineError::not_supported("DISTINCT with a delimiter that is no constant")
                            .or_position(position),
                    );
                }
                computed => call.beside.push(computed),
            }
        }
        for key in order {
            let typed = self.expression(&key.expr, scope)?;
            let typed = self.settle(typed)?;
            if call.distinct && Some(&typed.expr) != call.argument.as_ref() {
                return Err(EngineError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                )
                .or_position(self.position_of(&key.expr)));
            }
            // Where each value counts alike, their order is nothing.
            if !call.function.keeps_values() {
                continue;
            }
            let descending = match key.options.sort {
                None | Some(ast::OrderBySort::Asc) => false,
                Some(ast::OrderBySort::Desc) => true,
                Some(_) => return Err(EngineError::not_supported("ORDER BY … USING").or_position(position)),
            };
            call.order.push(ListOrder {
                data_type: typed.data_type,
                descending,
                nulls_first: key.options.nulls_first.unwrap_or(descending),
            });
            // The values of DISTINCT are their own keys.
            if !call.distinct {
                call.beside.push(typed.expr);
            }
        }
        Ok(())
    }

    pub(super) fn scalar(
        &mut self,
        name: &str,
        arguments: &[&ast::Expr],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let arguments = arguments
            .iter()
            .map(|tree| self.expression(tree, scope))
            .collect::<Result<Vec<_>>>()?;
        self.scalar_of(name, arguments, position)
    }

    /// A call of a scalar function whose arguments are bound.
    pub(super) fn scalar_of(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: Option<u32>,
    ) -> Result<Typed> {
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type).collect();
        match function::resolve(name, &types) {
            Ok(signature) => self.apply(&signature, arguments, position),
            Err(reason) => match (conversion(name), arguments.as_slice()) {
                // As in PostgreSQL, a type's name converts what no function of the name takes.
                (Some(to), [argument]) if can_cast(argument.data_type, to, CastContext::Explicit) => {
                    let argument = arguments.into_iter().next().expect("there is one");
                    self.cast_explicitly(argument, to, -1, position)
                }
                _ => Err(no_function(name, &types, reason).or_position(position)),
            },
        }
    }

    /// A call of a function that was found for these arguments.
    pub(super) fn apply(
        &mut self,
        signature: &Signature,
        arguments: Vec<Typed>,
        position: Option<u32>,
    ) -> Result<Typed> {
        let mut converted = Vec::with_capacity(arguments.len());
        for (argument, wanted) in arguments.into_iter().zip(&signature.arguments) {
            converted.push(self.coerce(argument, *wanted, position)?);
        }
        let expr = fold(Expr::Call {
            function: signature.function,
            arguments: converted,
        });
        Ok(Typed::new(expr, signature.result))
    }
}

/// The type that a call by its name converts to.
fn conversion(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Bool,
        "int2" => DataType::Int2,
        "int4" => DataType::Int4,
        "int8" => DataType::Int8,
        "float4" => DataType::Float4,
        "float8" => DataType::Float8,
        "numeric" => DataType::Numeric,
        "text" => DataType::Text,
        "varchar" => DataType::Varchar,
        "bpchar" => DataType::Char,
        "name" => DataType::Name,
        "oid" => DataType::Oid,
        "date" => DataType::Date,
        "timestamp" => DataType::Timestamp,
        "timestamptz" => DataType::TimestampTz,
        _ => return None,
    })
}

/// The error for a call that means no function, or several.
fn no_function(name: &str, types: &[DataType], reason: Unresolved) -> EngineError {
    if matches!(name, "current_time" | "localtime") {
        return EngineError::not_supported(format!("{name} (it takes the type time)"));
    }
    if matches!(name, "coalesce" | "greatest" | "least") && !types.is_empty() {
        return EngineError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("the types in {} cannot be matched", name.to_uppercase()),
        );
    }
    let shown: Vec<&str> = types.iter().map(|data_type| data_type.name()).collect();
    let call = format!("{name}({})", shown.join(", "));
    match reason {
        Unresolved::Missing => EngineError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {call} does not exist"),
        )
        .with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        ),
        Unresolved::Ambiguous => EngineError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("function {call} is not unique"),
        )
        .with_hint("Several functions fit equally well. You might need to add explicit type casts."),
    }
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
