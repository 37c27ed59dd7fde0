//! Calls of functions. Those of aggregates: `aggregate`.

use std::borrow::Cow;

use sqlparser::ast;

use crate::aggregate;
use crate::bind::row_columns::argument_tree;
use crate::bind::scope::Scope;
use crate::bind::set::{self, SETS_IN_WINDOW_CALL};
use crate::bind::window_calls::is_window_function;
use crate::bind::{Binder, Typed, fold, plain_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::{self, Signature, Unresolved};
use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

/// The parts of a call.
#[derive(Clone)]
pub(super) struct CallParts<'t> {
    pub(super) name: &'t str,
    pub(super) arguments: Vec<&'t ast::Expr>,
    /// `*` in the place of arguments
    pub(super) star: bool,
    pub(super) distinct: bool,
    /// ORDER BY inside the call
    pub(super) order: &'t [ast::OrderByExpr],
    /// WITHIN GROUP
    pub(super) within: &'t [ast::OrderByExpr],
    pub(super) filter: Option<&'t ast::Expr>,
}

impl<'t> CallParts<'t> {
    /// `rows`: the arguments `t.*`.
    fn of(
        call: &'t ast::Function,
        list: Option<&'t ast::FunctionArgumentList>,
        rows: &'t [ast::Expr],
        name: &'t str,
    ) -> Result<CallParts<'t>> {
        let mut rows = rows.iter();
        let mut parts = CallParts {
            name,
            arguments: Vec::new(),
            star: false,
            distinct: false,
            order: &[],
            within: &call.within_group,
            filter: call.filter.as_deref(),
        };
        let Some(list) = list else {
            return Ok(parts);
        };
        parts.distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(keys) => parts.order = keys,
                _ => {
                    return Err(EngineError::not_supported(format!(
                        "a clause in the arguments of {name}"
                    )));
                }
            }
        }
        for argument in &list.args {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) => parts.arguments.push(tree),
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(_)) => {
                    parts.arguments.extend(rows.next());
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) => parts.star = true,
                _ => return Err(EngineError::not_supported(format!("the argument {argument}"))),
            }
        }
        Ok(parts)
    }

    /// 42809 for what only the call of an aggregate may have.
    fn refuse_aggregate(&self) -> Result<()> {
        let present = match self {
            CallParts { star: true, .. } => format!("{}(*)", self.name),
            CallParts { distinct: true, .. } => "DISTINCT".to_owned(),
            _ if !self.within.is_empty() => "WITHIN GROUP".to_owned(),
            _ if !self.order.is_empty() => "ORDER BY".to_owned(),
            CallParts { filter: Some(_), .. } => "FILTER".to_owned(),
            _ => return Ok(()),
        };
        Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "{present} specified, but {} is not an aggregate function",
                self.name
            ),
        ))
    }
}

impl Binder<'_> {
    pub(super) fn call(
        &mut self,
        call: &ast::Function,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        if call.null_treatment.is_some()
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
        let rows = list.map_or_else(Vec::new, whole_rows);
        let parts = CallParts::of(call, list, &rows, &name).map_err(|error| error.or_position(position))?;
        if let Some(over) = &call.over {
            return self.without_sets(SETS_IN_WINDOW_CALL, scope, |binder, scope| {
                binder.over(&parts, over, scope, position)
            });
        }
        if is_window_function(&name) && parts.within.is_empty() {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("window function {name} requires an OVER clause"),
            )
            .or_position(position));
        }
        if aggregate::is_name(&name) {
            return self.aggregate(&parts, scope, position);
        }
        parts
            .refuse_aggregate()
            .map_err(|error| error.or_position(position))?;
        let arguments = parts.arguments;
        if name == "grouping" {
            return self.grouping_call(&arguments, scope, position);
        }
        if set::is_set_function(&name) {
            return self.set_call(&name, &arguments, scope, position);
        }
        if name == "coalesce" {
            let message = "set-returning functions are not allowed in COALESCE";
            return self.without_sets(message, scope, |binder, scope| {
                binder.scalar(&name, &arguments, scope, position)
            });
        }
        self.scalar(&name, &arguments, scope, position)
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

/// The arguments `t.*` of a call.
fn whole_rows(list: &ast::FunctionArgumentList) -> Vec<ast::Expr> {
    let trees = list.args.iter().filter_map(|argument| match argument {
        ast::FunctionArg::Unnamed(argument @ ast::FunctionArgExpr::QualifiedWildcard(_)) => {
            argument_tree(argument)
        }
        _ => None,
    });
    trees.map(Cow::into_owned).collect()
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
pub(super) fn no_function(name: &str, types: &[DataType], reason: Unresolved) -> EngineError {
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
