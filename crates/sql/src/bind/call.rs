//! Calls of functions. Those of aggregates: `aggregate`.

use std::borrow::Cow;

use sqlparser::ast;

use crate::aggregate;
use crate::bind::missing_function::no_function;
use crate::bind::record::is_row;
use crate::bind::row_columns::argument_tree;
use crate::bind::scope::Scope;
use crate::bind::set::{self, SETS_IN_WINDOW_CALL};
use crate::bind::window_calls::is_window_function;
use crate::bind::{Binder, Typed, fold, normal, plain_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::json::populate;
use crate::function::{self, Signature, Unresolved};
use crate::parse::VARIADIC;
use crate::value::cast::{CastContext, can_cast};
use crate::value::{DataType, Value};

/// The parts of a call.
#[derive(Clone)]
pub(super) struct CallParts<'t> {
    pub(super) name: &'t str,
    pub(super) arguments: Vec<&'t ast::Expr>,
    /// True if the last argument is an array in the place of several
    pub(super) variadic: bool,
    /// `*` in the place of arguments
    pub(super) star: bool,
    pub(super) distinct: bool,
    /// ORDER BY inside the call
    pub(super) order: &'t [ast::OrderByExpr],
    /// WITHIN GROUP
    pub(super) within: &'t [ast::OrderByExpr],
    pub(super) filter: Option<&'t ast::Expr>,
    /// Arguments that are given by names, in lower case.
    pub(super) named: Vec<(String, &'t ast::Expr)>,
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
            variadic: false,
            star: false,
            distinct: false,
            order: &[],
            within: &call.within_group,
            filter: call.filter.as_deref(),
            named: Vec::new(),
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
            if parts.variadic {
                // Only the last argument may be one.
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    "syntax error at or near \",\"",
                ));
            }
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Prefixed {
                    prefix,
                    value,
                })) if prefix.value == VARIADIC => {
                    parts.variadic = true;
                    parts.arguments.push(value);
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) => match by_name(tree) {
                    Some((name, value)) => parts.named.push((normal(name), value)),
                    None => parts.arguments.push(tree),
                },
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(_)) => {
                    parts.arguments.extend(rows.next());
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) => parts.star = true,
                ast::FunctionArg::Named {
                    name,
                    arg: ast::FunctionArgExpr::Expr(tree),
                    ..
                } => parts.named.push((normal(name), tree)),
                ast::FunctionArg::ExprNamed {
                    name: ast::Expr::Identifier(name),
                    arg: ast::FunctionArgExpr::Expr(tree),
                    ..
                } => parts.named.push((normal(name), tree)),
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
        if parts.variadic && (call.over.is_some() || aggregate::is_name(&name)) {
            return Err(
                EngineError::not_supported(format!("VARIADIC in a call of {name}")).or_position(position),
            );
        }
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
        if let Err(error) = parts.refuse_aggregate() {
            let missing = self.missing_function(&parts, scope)?;
            return Err(missing.unwrap_or(error).or_position(position));
        }
        if let Some(parameters) = function::parameters_of(&name) {
            return self.call_with_defaults(&parts, parameters, scope, position);
        }
        let arguments = match parts.named.is_empty() {
            true => parts.arguments,
            false => self.in_order(&parts, scope, position)?,
        };
        if parts.variadic {
            return self.variadic(&name, &arguments, scope, position);
        }
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

    /// The error for a call in an aggregate's form if no function has its name and takes its arguments.
    fn missing_function(&mut self, parts: &CallParts<'_>, scope: &mut Scope) -> Result<Option<EngineError>> {
        let within = parts.within.iter().map(|key| &key.expr);
        let trees = parts.arguments.iter().copied().chain(within);
        let types = trees.map(|tree| Ok(self.expression(tree, scope)?.data_type));
        let types = types.collect::<Result<Vec<DataType>>>()?;
        if set::is_set_function(parts.name) || function::parameters_of(parts.name).is_some() {
            return Ok(None);
        }
        let found = function::resolve(parts.name, &types);
        Ok(found.err().map(|reason| no_function(parts.name, &types, reason)))
    }

    /// The arguments of a call that gives some by name, in their order; 42883 if some are missing between others.
    fn in_order<'t>(
        &mut self,
        parts: &CallParts<'t>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Vec<&'t ast::Expr>> {
        let names = function::argument_names(parts.name).unwrap_or_default();
        let mut trees: Vec<Option<&ast::Expr>> = parts.arguments.iter().copied().map(Some).collect();
        trees.resize(names.len().max(trees.len()), None);
        let mut fits = !parts.variadic;
        for (at, (name, tree)) in parts.named.iter().enumerate() {
            if parts.named[..at].iter().any(|(other, _)| other == name) {
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("argument name \"{name}\" used more than once"),
                )
                .or_position(self.position_of(tree)));
            }
            match names.iter().position(|known| known == name) {
                Some(at) if trees[at].is_none() => trees[at] = Some(tree),
                _ => fits = false,
            }
        }
        let given = parts.arguments.len() + parts.named.len();
        let ordered: Option<Vec<&ast::Expr>> = trees.into_iter().take(given).collect();
        match ordered.filter(|_| fits) {
            Some(ordered) => Ok(ordered),
            None => Err(self.no_function_of_names(parts, scope, position)?),
        }
    }

    /// 42883 for a call with names that no function has.
    fn no_function_of_names(
        &mut self,
        parts: &CallParts<'_>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<EngineError> {
        let mut shown = Vec::new();
        for tree in &parts.arguments {
            shown.push(self.expression(tree, scope)?.data_type.to_string());
        }
        for (name, tree) in &parts.named {
            shown.push(format!("{name} => {}", self.expression(tree, scope)?.data_type));
        }
        Ok(EngineError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {}({}) does not exist", parts.name, shown.join(", ")),
        )
        .with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        )
        .or_position(position))
    }

    /// A call of a function whose arguments may be given by name, and may be missing.
    fn call_with_defaults(
        &mut self,
        parts: &CallParts<'_>,
        parameters: &[&str],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let mut trees: Vec<Option<&ast::Expr>> = parts.arguments.iter().copied().map(Some).collect();
        let mut missing = trees.len() > parameters.len();
        trees.resize(parameters.len().max(trees.len()), None);
        for (name, tree) in &parts.named {
            match parameters.iter().position(|parameter| parameter == name) {
                Some(at) if trees[at].is_none() => trees[at] = Some(tree),
                _ => missing = true,
            }
        }
        if missing {
            return Err(self.no_function_of_names(parts, scope, position)?);
        }
        let mut arguments = Vec::with_capacity(trees.len());
        for tree in trees {
            arguments.push(match tree {
                Some(tree) => self.expression(tree, scope)?,
                None => Typed::new(Expr::Constant(Value::Int4(0)), DataType::Int4),
            });
        }
        self.scalar_of(parts.name, arguments, position)
    }

    /// `f(a, VARIADIC array)`
    fn variadic(
        &mut self,
        name: &str,
        arguments: &[&ast::Expr],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let arguments = arguments.iter().map(|tree| self.expression(tree, scope));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type).collect();
        let Some(signature) = function::resolve_variadic(name, &types) else {
            return Err(no_function(name, &types, Unresolved::Missing).or_position(position));
        };
        if !types.last().is_some_and(|last| last.is_array()) {
            return Err(
                EngineError::new(SqlState::DATATYPE_MISMATCH, "VARIADIC argument must be an array")
                    .or_position(position),
            );
        }
        self.apply(&signature, arguments, position)
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
        if let Some(populate) = populate::named(name)
            && let [base, _] = arguments.as_slice()
            && matches!(base.data_type.base(), DataType::Composite(_))
        {
            return self.populated(populate, arguments, position);
        }
        let call = self.json_of_record(name, &arguments);
        if let Some(call) = call.map_err(|error| error.or_position(position))? {
            return Ok(call);
        }
        let arguments = self.json_arguments(name, arguments)?;
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type).collect();
        // As in PostgreSQL, a type's name converts a literal, whatever functions of the name take.
        if let Some(to) = conversion(name).filter(|_| types == [DataType::Unknown]) {
            return self.converted_by_name(arguments, to, position);
        }
        match function::resolve(name, &types) {
            Ok(signature) => self.apply(&signature, arguments, position),
            Err(_) if types.len() == 1 && matches!(name, "quote_literal" | "quote_nullable") => {
                // The text of a value of any type.
                let argument = arguments.into_iter().next().expect("there is one");
                let text = self.cast_explicitly(argument, DataType::Text, -1, position)?;
                self.scalar_of(name, vec![text], position)
            }
            Err(reason) => match (conversion(name), arguments.as_slice()) {
                // As in PostgreSQL, a type's name converts what no function of the name takes.
                // As if the field were asked for.
                (_, [argument]) if self.field_named(argument, name).is_some() => {
                    let number = self.field_named(argument, name).unwrap_or(0);
                    Ok(self.field_at(argument, number))
                }
                // A record has no such form.
                (Some(to), [argument])
                    if !is_row(argument.data_type.base())
                        && can_cast(argument.data_type, to, CastContext::Explicit) =>
                {
                    self.converted_by_name(arguments, to, position)
                }
                _ => Err(no_function(name, &types, reason).or_position(position)),
            },
        }
    }

    /// A call of a type's name with one argument.
    fn converted_by_name(
        &mut self,
        arguments: Vec<Typed>,
        to: DataType,
        position: Option<u32>,
    ) -> Result<Typed> {
        let argument = arguments.into_iter().next().expect("there is one");
        self.cast_explicitly(argument, to, -1, position)
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

/// Name and value of an argument `name := value`, which sqlparser takes for an operator.
pub(crate) fn by_name(tree: &ast::Expr) -> Option<(&ast::Ident, &ast::Expr)> {
    match tree {
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Assignment,
            right,
        } => match &**left {
            ast::Expr::Identifier(name) => Some((name, right)),
            _ => None,
        },
        _ => None,
    }
}

/// The type that a call by its name converts to.
fn conversion(name: &str) -> Option<DataType> {
    DataType::named(name).filter(|data_type| data_type.kind() != 'p')
}
