//! Expressions: from syntax to compiled form.

use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

use crate::error::{EngineError, Result, SqlState};
use crate::sql::aggregate::{AggregateCall, AggregateFunction};
use crate::sql::bind::chain::{after, unsupported};
use crate::sql::bind::select::ENTRIES_MAX;
use crate::sql::bind::types::comparison_type;
use crate::sql::bind::{
    AGGREGATE_BASE, Aggregates, Binder, Scope, Typed, common_type, fold, normal, plain_name,
};
use crate::sql::expr::{CompareOp, Expr};
use crate::sql::function;
use crate::value::arithmetic::ArithmeticOp;
use crate::value::{Category, DataType, Numeric, Value};

impl Binder<'_> {
    /// Binds an expression that is no operator with something on its left; `operator` does those.
    pub(super) fn operand(&mut self, tree: &ast::Expr, scope: &mut Scope) -> Result<Typed> {
        let at = |binder: &Self| binder.position_of(tree);
        match tree {
            ast::Expr::Nested(inner) => self.expression(inner, scope),
            ast::Expr::Identifier(ident) => self.column(None, ident, scope),
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, column] => self.column(Some(table), column, scope),
                [_, table, column] => self.column(Some(table), column, scope),
                _ => Err(EngineError::not_supported(format!("the name {tree}")).or_position(at(self))),
            },
            ast::Expr::Value(value) => self.literal(value),
            ast::Expr::TypedString(typed) => {
                let (data_type, typmod) = self.data_type(&typed.data_type)?;
                let literal = self.literal(&typed.value)?;
                self.cast_explicitly(literal, data_type, typmod, at(self))
            }
            ast::Expr::UnaryOp { op, expr } => self.unary(*op, expr, scope, at(self)),
            ast::Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(
                operand.as_deref(),
                conditions,
                else_result.as_deref(),
                scope,
                at(self),
            ),
            ast::Expr::Function(call) => self.call(call, scope, at(self)),
            ast::Expr::Ceil {
                expr,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.scalar("ceil", &[expr], scope, at(self)),
            ast::Expr::Floor {
                expr,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.scalar("floor", &[expr], scope, at(self)),
            other => Err(unsupported(other).or_position(at(self))),
        }
    }

    /// Binds an operator whose left side has been bound.
    pub(super) fn operator(
        &mut self,
        tree: &ast::Expr,
        left: Typed,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        match tree {
            ast::Expr::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr: _,
                data_type,
                format: None,
            } => self.cast(left, data_type, position),
            ast::Expr::BinaryOp { op, right, .. } => self.binary(left, op, right, scope, position),
            ast::Expr::IsNull(_) => self.is_null(left, false),
            ast::Expr::IsNotNull(_) => self.is_null(left, true),
            ast::Expr::IsTrue(_) => self.is_truth(left, Some(true), false, position),
            ast::Expr::IsNotTrue(_) => self.is_truth(left, Some(true), true, position),
            ast::Expr::IsFalse(_) => self.is_truth(left, Some(false), false, position),
            ast::Expr::IsNotFalse(_) => self.is_truth(left, Some(false), true, position),
            ast::Expr::IsUnknown(_) => self.is_truth(left, None, false, position),
            ast::Expr::IsNotUnknown(_) => self.is_truth(left, None, true, position),
            ast::Expr::IsDistinctFrom(_, right) => self.distinct(left, right, false, scope, position),
            ast::Expr::IsNotDistinctFrom(_, right) => self.distinct(left, right, true, scope, position),
            ast::Expr::InList { list, negated, .. } => self.in_list(left, list, *negated, scope, position),
            ast::Expr::Between {
                negated, low, high, ..
            } => self.between(left, low, high, *negated, scope, position),
            ast::Expr::Like {
                negated,
                any: false,
                pattern,
                escape_char,
                ..
            } => self.like(
                left,
                pattern,
                escape_char.as_deref(),
                *negated,
                false,
                scope,
                position,
            ),
            ast::Expr::ILike {
                negated,
                any: false,
                pattern,
                escape_char,
                ..
            } => self.like(
                left,
                pattern,
                escape_char.as_deref(),
                *negated,
                true,
                scope,
                position,
            ),
            other => Err(unsupported(other).or_position(position)),
        }
    }

    fn cast(&mut self, input: Typed, data_type: &ast::DataType, position: Option<u32>) -> Result<Typed> {
        let (data_type, typmod) = self.data_type(data_type).map_err(|e| e.or_position(position))?;
        self.cast_explicitly(input, data_type, typmod, position)
    }

    fn between(
        &mut self,
        input: Typed,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let low = self.expression(low, scope)?;
        let high = self.expression(high, scope)?;
        let (input, step) = self.used_often(input);
        let lower = self.compare(input.clone(), CompareOp::GreaterOrEqual, low, position)?;
        let input = self.used_again(input);
        let upper = self.compare(input, CompareOp::LessOrEqual, high, position)?;
        let both = Expr::And(vec![lower, upper]);
        Ok(boolean(after(
            step,
            if negated { Expr::Not(Box::new(both)) } else { both },
        )))
    }

    fn column(&mut self, table: Option<&ast::Ident>, ident: &ast::Ident, scope: &Scope) -> Result<Typed> {
        if let Some(table) = table {
            let name = normal(table);
            if scope.alias.as_deref() != Some(&name) {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("missing FROM-clause entry for table \"{name}\""),
                )
                .or_position(self.position(table.span)));
            }
        }
        let name = normal(ident);
        match scope.columns.iter().position(|column| column.name == name) {
            Some(number) => Ok(scope.columns[number].typed(number)),
            None => {
                // Some functions are written like columns.
                if table.is_none()
                    && ident.quote_style.is_none()
                    && matches!(
                        name.as_str(),
                        "current_timestamp"
                            | "current_date"
                            | "localtimestamp"
                            | "current_user"
                            | "session_user"
                            | "user"
                            | "current_role"
                            | "current_catalog"
                            | "current_schema"
                    )
                {
                    return self.scalar(&name, &[], &mut Scope::empty(""), None);
                }
                let shown = match table {
                    Some(table) => format!("column {}.{name} does not exist", normal(table)),
                    None => format!("column \"{name}\" does not exist"),
                };
                Err(EngineError::new(SqlState::UNDEFINED_COLUMN, shown)
                    .or_position(self.position(table.unwrap_or(ident).span)))
            }
        }
    }

    fn literal(&mut self, literal: &ast::ValueWithSpan) -> Result<Typed> {
        let text = |text: &str| -> Result<Typed> {
            crate::value::text::check_text(text)?;
            Ok(Typed::new(Expr::Constant(Value::from(text)), DataType::Unknown))
        };
        match &literal.value {
            ast::Value::Number(digits, false) => {
                let (value, data_type) =
                    number(digits).map_err(|e| e.or_position(self.position(literal.span)))?;
                Ok(Typed::new(Expr::Constant(value), data_type))
            }
            ast::Value::SingleQuotedString(content) | ast::Value::EscapedStringLiteral(content) => {
                text(content)
            }
            ast::Value::DollarQuotedString(content) => text(&content.value),
            ast::Value::Boolean(truth) => Ok(boolean(Expr::Constant(Value::Bool(*truth)))),
            ast::Value::Null => Ok(Typed::new(Expr::Constant(Value::Null), DataType::Unknown)),
            ast::Value::Placeholder(name) => self.parameter(name, literal.span),
            other => Err(EngineError::not_supported(format!("the literal {other}"))
                .or_position(self.position(literal.span))),
        }
    }

    fn binary(
        &mut self,
        l: Typed,
        op: &BinaryOperator,
        right: &ast::Expr,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let r = self.expression(right, scope)?;
        if *op == BinaryOperator::PGExp {
            return self.scalar_of("power", vec![l, r], position);
        }
        if let Some(op) = comparison(op) {
            return Ok(boolean(self.compare(l, op, r, position)?));
        }
        let arithmetic = match op {
            BinaryOperator::Plus => ArithmeticOp::Add,
            BinaryOperator::Minus => ArithmeticOp::Subtract,
            BinaryOperator::Multiply => ArithmeticOp::Multiply,
            BinaryOperator::Divide => ArithmeticOp::Divide,
            BinaryOperator::Modulo => ArithmeticOp::Remainder,
            BinaryOperator::StringConcat => return self.concat(l, r, position),
            other => {
                return Err(EngineError::not_supported(format!("the operator {other}")).or_position(position));
            }
        };
        let Some((left_type, right_type, result)) = arithmetic.resolve(l.data_type, r.data_type) else {
            if [l.data_type, r.data_type]
                .iter()
                .any(|side| side.category() == Category::DateTime)
            {
                return Err(EngineError::not_supported(format!(
                    "{} {} {} (it takes the type interval)",
                    l.data_type,
                    arithmetic.symbol(),
                    r.data_type
                ))
                .or_position(position));
            }
            return Err(self.no_operator(l.data_type, arithmetic.symbol(), r.data_type, position));
        };
        let l = Box::new(self.coerce(l, left_type, position)?);
        let r = Box::new(self.coerce(r, right_type, position)?);
        Ok(Typed::new(
            fold(Expr::Arithmetic {
                op: arithmetic,
                left: l,
                right: r,
            }),
            result,
        ))
    }

    fn concat(&mut self, l: Typed, r: Typed, position: Option<u32>) -> Result<Typed> {
        let stringy = |typed: &Typed| typed.data_type.is_string() || typed.data_type == DataType::Unknown;
        if !stringy(&l) && !stringy(&r) {
            return Err(self.no_operator(l.data_type, "||", r.data_type, position));
        }
        let l = self.cast_explicitly(l, DataType::Text, -1, position)?.expr;
        let r = self.cast_explicitly(r, DataType::Text, -1, position)?.expr;
        Ok(Typed::new(
            fold(Expr::Concat(Box::new(l), Box::new(r))),
            DataType::Text,
        ))
    }

    /// A comparison, both sides brought to one type. Integers of different widths are compared as they are.
    pub(super) fn compare(
        &mut self,
        left: Typed,
        op: CompareOp,
        right: Typed,
        position: Option<u32>,
    ) -> Result<Expr> {
        let (left, right, data_type) = self.both_sides(left, op.symbol(), right, position)?;
        Ok(Expr::Compare {
            op,
            left: Box::new(left),
            right: Box::new(right),
            data_type,
        })
    }

    fn both_sides(
        &mut self,
        left: Typed,
        symbol: &str,
        right: Typed,
        position: Option<u32>,
    ) -> Result<(Expr, Expr, DataType)> {
        let common = comparison_type(left.data_type, right.data_type)
            .ok_or_else(|| self.no_operator(left.data_type, symbol, right.data_type, position))?;
        Ok((
            self.side(left, common, position)?,
            self.side(right, common, position)?,
            common,
        ))
    }

    fn side(&mut self, side: Typed, common: DataType, position: Option<u32>) -> Result<Expr> {
        let whole = |data_type: DataType| data_type.is_integer() || data_type == DataType::Oid;
        if whole(side.data_type) && whole(common) {
            return Ok(side.expr);
        }
        self.coerce(side, common, position)
    }

    fn distinct(
        &mut self,
        left: Typed,
        right: &ast::Expr,
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let right = self.expression(right, scope)?;
        let (left, right, data_type) = self.both_sides(left, "IS DISTINCT FROM", right, position)?;
        Ok(boolean(Expr::Distinct {
            left: Box::new(left),
            right: Box::new(right),
            data_type,
            negated,
        }))
    }

    fn unary(
        &mut self,
        op: UnaryOperator,
        input: &ast::Expr,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        // -9223372036854775808 is one number, not the negation of one that does not fit.
        if op == UnaryOperator::Minus
            && let ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::Number(digits, false),
                ..
            }) = input
        {
            let (value, data_type) = number(&format!("-{digits}")).map_err(|e| e.or_position(position))?;
            return Ok(Typed::new(Expr::Constant(value), data_type));
        }
        match op {
            UnaryOperator::PGSquareRoot => return self.scalar("dsqrt", &[input], scope, position),
            UnaryOperator::PGAbs => return self.scalar("abs", &[input], scope, position),
            _ => {}
        }
        let operand = self.expression(input, scope)?;
        match op {
            UnaryOperator::Not => {
                let condition = self.condition(operand, "NOT", position)?;
                Ok(boolean(Expr::Not(Box::new(condition))))
            }
            UnaryOperator::Minus | UnaryOperator::Plus => {
                let data_type = match operand.data_type {
                    DataType::Unknown => DataType::Float8,
                    other => other,
                };
                if ArithmeticOp::Add.resolve(data_type, data_type) != Some((data_type, data_type, data_type))
                {
                    return Err(EngineError::new(
                        SqlState::UNDEFINED_FUNCTION,
                        format!("operator does not exist: {op} {data_type}"),
                    )
                    .or_position(position));
                }
                let expr = self.coerce(operand, data_type, position)?;
                Ok(Typed::new(
                    if op == UnaryOperator::Minus {
                        fold(Expr::Negate(Box::new(expr)))
                    } else {
                        expr
                    },
                    data_type,
                ))
            }
            other => Err(EngineError::not_supported(format!("the operator {other}")).or_position(position)),
        }
    }

    fn is_null(&mut self, input: Typed, negated: bool) -> Result<Typed> {
        let input = self.settle(input)?;
        Ok(boolean(Expr::IsNull {
            input: Box::new(input.expr),
            negated,
        }))
    }

    fn is_truth(
        &mut self,
        input: Typed,
        truth: Option<bool>,
        negated: bool,
        position: Option<u32>,
    ) -> Result<Typed> {
        let input = self.condition(input, "IS TRUE, IS FALSE or IS UNKNOWN", position)?;
        Ok(boolean(Expr::IsTruth {
            input: Box::new(input),
            truth,
            negated,
        }))
    }

    fn in_list(
        &mut self,
        input: Typed,
        list: &[ast::Expr],
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let list = list
            .iter()
            .map(|tree| self.expression(tree, scope))
            .collect::<Result<Vec<_>>>()?;
        let mut data_type = input.data_type;
        for candidate in &list {
            data_type = comparison_type(data_type, candidate.data_type)
                .ok_or_else(|| self.no_operator(input.data_type, "=", candidate.data_type, position))?;
        }
        let input = self.side(input, data_type, position)?;
        let list = list
            .into_iter()
            .map(|candidate| self.side(candidate, data_type, position))
            .collect::<Result<Vec<_>>>()?;
        Ok(boolean(Expr::InList {
            input: Box::new(input),
            list,
            data_type,
            negated,
        }))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one operator, taken apart once"
    )]
    fn like(
        &mut self,
        input: Typed,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
        ignore_case: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let escape = match escape {
            None => Some('\\'),
            Some(ast::Expr::Value(value)) => match value.value.clone().into_string() {
                Some(text) if text.chars().count() <= 1 => text.chars().next(),
                _ => {
                    return Err(
                        EngineError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                            .with_hint("Escape string must be empty or one character.")
                            .or_position(position),
                    );
                }
            },
            Some(_) => return Err(EngineError::not_supported("a computed ESCAPE").or_position(position)),
        };
        let symbol = if ignore_case { "~~*" } else { "~~" };
        let pattern = self.expression(pattern, scope)?;
        for side in [&input, &pattern] {
            if !side.data_type.is_string() && side.data_type != DataType::Unknown {
                return Err(self.no_operator(input.data_type, symbol, pattern.data_type, position));
            }
        }
        // A char keeps its blanks here: LIKE looks at them.
        let input = match input.data_type {
            DataType::Char => input.expr,
            _ => self.coerce(input, DataType::Text, position)?,
        };
        let pattern = self.coerce(pattern, DataType::Text, position)?;
        Ok(boolean(Expr::Like {
            input: Box::new(input),
            pattern: Box::new(pattern),
            escape,
            ignore_case,
            negated,
        }))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let operand = operand.map(|tree| self.expression(tree, scope)).transpose()?;
        let (operand, step) = match operand.map(|operand| self.used_often(operand)) {
            Some((operand, step)) => (Some(operand), step),
            None => (None, None),
        };
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for branch in conditions {
            let test = self.expression(&branch.condition, scope)?;
            let at = self.position_of(&branch.condition);
            tests.push(match &operand {
                Some(operand) => {
                    let operand = self.used_again(operand.clone());
                    self.compare(operand, CompareOp::Equal, test, at)?
                }
                None => self.condition(test, "CASE/WHEN", at)?,
            });
            results.push(self.expression(&branch.result, scope)?);
        }
        results.push(match otherwise {
            Some(tree) => self.expression(tree, scope)?,
            None => Typed::new(Expr::Constant(Value::Null), DataType::Unknown),
        });
        let types: Vec<DataType> = results.iter().map(|result| result.data_type).collect();
        let data_type = common_type(&types).ok_or_else(|| {
            EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "CASE types {} and {} cannot be matched",
                    types[0],
                    types[types.len() - 1]
                ),
            )
            .or_position(position)
        })?;
        let mut results = results
            .into_iter()
            .map(|result| self.coerce(result, data_type, position))
            .collect::<Result<Vec<_>>>()?;
        let otherwise = Box::new(results.pop().expect("the ELSE was pushed"));
        let branches = tests.into_iter().zip(results).collect();
        Ok(Typed::new(
            after(step, Expr::Case { branches, otherwise }),
            data_type,
        ))
    }

    fn call(&mut self, call: &ast::Function, scope: &mut Scope, position: Option<u32>) -> Result<Typed> {
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
            ast::FunctionArguments::Subquery(_) => {
                return Err(EngineError::not_supported("a subquery").or_position(position));
            }
            ast::FunctionArguments::List(list) => Some(list),
        };
        if list.is_some_and(|list| !list.clauses.is_empty()) {
            return Err(
                EngineError::not_supported(format!("a clause in the arguments of {name}"))
                    .or_position(position),
            );
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
                call.filter.as_deref(),
                scope,
                position,
            );
        }
        if star || distinct || call.filter.is_some() {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{name} is not an aggregate function"),
            )
            .or_position(position));
        }
        if name == "generate_series" {
            return Err(EngineError::not_supported("generate_series outside FROM").or_position(position));
        }
        self.scalar(&name, &arguments, scope, position)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one call, taken apart once"
    )]
    fn aggregate(
        &mut self,
        function: AggregateFunction,
        arguments: &[&ast::Expr],
        star: bool,
        distinct: bool,
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
                distinct,
                filter,
                result_type: DataType::Int8,
            },
            ([tree], false) => {
                let argument = self.expression(tree, scope)?;
                let argument = self.settle(argument)?;
                let found = function.result_type(argument.data_type).ok_or_else(|| {
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
                AggregateCall {
                    function,
                    argument: Some(argument.expr),
                    argument_type: argument.data_type,
                    distinct,
                    filter,
                    result_type: found,
                }
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
        Ok(Typed::new(Expr::Column(AGGREGATE_BASE + at as u16), result))
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
    fn scalar_of(&mut self, name: &str, arguments: Vec<Typed>, position: Option<u32>) -> Result<Typed> {
        let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type).collect();
        let unknown = || {
            if matches!(name, "coalesce" | "greatest" | "least") && !types.is_empty() {
                return EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("the types in {} cannot be matched", name.to_uppercase()),
                )
                .or_position(position);
            }
            let shown: Vec<&str> = types.iter().map(|data_type| data_type.name()).collect();
            EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}({}) does not exist", shown.join(", ")),
            )
            .with_hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )
            .or_position(position)
        };
        let signature = function::resolve(name, &types).ok_or_else(unknown)?;
        let anything = matches!(signature.function, function::Function::Concat);
        let mut converted = Vec::with_capacity(arguments.len());
        for (argument, wanted) in arguments.into_iter().zip(&signature.arguments) {
            let from = argument.data_type;
            let fits = crate::value::cast::can_cast(from, *wanted, crate::value::cast::CastContext::Implicit);
            if !fits && !anything {
                return Err(unknown());
            }
            converted.push(self.cast_explicitly(argument, *wanted, -1, position)?.expr);
        }
        let expr = fold(Expr::Call {
            function: signature.function,
            arguments: converted,
        });
        Ok(Typed::new(expr, signature.result))
    }
}

pub(super) fn boolean(expr: Expr) -> Typed {
    Typed::new(fold(expr), DataType::Bool)
}

fn comparison(op: &BinaryOperator) -> Option<CompareOp> {
    Some(match op {
        BinaryOperator::Eq => CompareOp::Equal,
        BinaryOperator::NotEq => CompareOp::NotEqual,
        BinaryOperator::Lt => CompareOp::Less,
        BinaryOperator::LtEq => CompareOp::LessOrEqual,
        BinaryOperator::Gt => CompareOp::Greater,
        BinaryOperator::GtEq => CompareOp::GreaterOrEqual,
        _ => return None,
    })
}

/// A number literal: the smallest of integer, bigint, numeric that holds it.
fn number(digits: &str) -> Result<(Value, DataType)> {
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(match i32::try_from(value) {
            Ok(value) => (Value::Int4(value), DataType::Int4),
            Err(_) => (Value::Int8(value), DataType::Int8),
        });
    }
    Ok((Value::Numeric(Numeric::parse(digits)?), DataType::Numeric))
}
