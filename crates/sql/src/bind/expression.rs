//! Expressions: from syntax to compiled form.

use sqlparser::ast::{self, UnaryOperator};

use crate::bind::chain::{after, unsupported};
use crate::bind::quantified::is_all;
use crate::bind::row_columns::is_row;
use crate::bind::scope::{Qualifier, Scope};
use crate::bind::{Binder, Typed, boolean, fold, normal, plain_name};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr};
use crate::type_name;
use crate::value::arithmetic::ArithmeticOp;
use crate::value::{DataType, Numeric, Value};

/// The word of a name in FROM that is a call of a function without parentheses.
pub(super) fn call_without_parentheses(name: &ast::ObjectName) -> Option<String> {
    let [ast::ObjectNamePart::Identifier(ident)] = &name.0[..] else {
        return None;
    };
    let word = normal(ident);
    (ident.quote_style.is_none() && is_call_without_parentheses(&word)).then_some(word)
}

/// True of the reserved words that are calls of functions without parentheses.
fn is_call_without_parentheses(word: &str) -> bool {
    matches!(
        word,
        "current_timestamp"
            | "current_date"
            | "localtimestamp"
            | "current_time"
            | "localtime"
            | "current_user"
            | "session_user"
            | "user"
            | "current_role"
            | "current_catalog"
            | "current_schema"
    )
}

impl Binder<'_> {
    /// Binds an expression that is no operator with something on its left; `operator` does those.
    pub(super) fn operand(&mut self, tree: &ast::Expr, scope: &mut Scope) -> Result<Typed> {
        let at = |binder: &Self| binder.position_of(tree);
        match tree {
            ast::Expr::Nested(inner) => self.expression(inner, scope),
            ast::Expr::Identifier(ident) => self.column(None, None, ident, scope),
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, column] => self.column(None, Some(table), column, scope),
                [schema, table, column] => self.column(Some(schema), Some(table), column, scope),
                _ => Err(EngineError::not_supported(format!("the name {tree}")).or_position(at(self))),
            },
            ast::Expr::Value(value) => self.literal(value),
            ast::Expr::TypedString(typed) => {
                let (data_type, typmod) = self.data_type_in_query(&typed.data_type)?;
                let literal = self.literal(&typed.value)?;
                self.cast_explicitly(literal, data_type, typmod, at(self))
            }
            ast::Expr::Interval(interval) => {
                let typmod = type_name::literal_modifier(interval).map_err(|e| e.or_position(at(self)))?;
                let ast::Expr::Value(value) = &*interval.value else {
                    return Err(
                        EngineError::not_supported("INTERVAL before anything but a string")
                            .or_position(at(self)),
                    );
                };
                let literal = self.literal(value)?;
                self.cast_explicitly(literal, DataType::Interval, typmod, at(self))
            }
            ast::Expr::UnaryOp { op, expr } => self.unary(*op, expr, scope, at(self)),
            ast::Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                let position = at(self);
                let message = "set-returning functions are not allowed in CASE";
                self.without_sets(message, scope, |binder, scope| {
                    let operand = operand.as_deref();
                    binder.case(operand, conditions, else_result.as_deref(), scope, position)
                })
            }
            ast::Expr::Function(call) if is_row(&call.name) => self.record(tree, scope, at(self)),
            ast::Expr::Tuple(_) => self.record(tree, scope, at(self)),
            ast::Expr::QualifiedWildcard(name, _) => self.whole_row_of(name, scope),
            ast::Expr::Function(call) => self.call(call, scope, at(self)),
            ast::Expr::Array(array) => self.array(array, scope, at(self)),
            ast::Expr::CompoundFieldAccess { root, access_chain } => {
                self.part(root, access_chain, scope, at(self))
            }
            ast::Expr::Subquery(query) => self.scalar_subquery(query, scope, at(self)),
            ast::Expr::Exists { subquery, negated } => self.exists(subquery, *negated, scope),
            ast::Expr::Ceil {
                expr,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.scalar("ceil", &[expr], scope, at(self)),
            ast::Expr::Floor {
                expr,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.scalar("floor", &[expr], scope, at(self)),
            // Only the last argument of a call begins with such a word.
            ast::Expr::Prefixed { prefix, .. } => Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error at or near \"{}\"", prefix.value),
            )
            .or_position(self.position(prefix.span))),
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
            ast::Expr::InSubquery {
                subquery, negated, ..
            } => self.in_subquery(left, subquery, *negated, scope, position),
            ast::Expr::AnyOp {
                compare_op, right, ..
            } => self.quantified(left, compare_op, right, false, scope, position),
            ast::Expr::AllOp {
                compare_op, right, ..
            } => self.quantified(left, compare_op, right, true, scope, position),
            ast::Expr::Between {
                negated, low, high, ..
            } => match &**low {
                // A mark of ours: see `parse::dialect`.
                ast::Expr::Prefixed { prefix, value: low } if prefix.value == "symmetric" => {
                    self.between_symmetric(left, low, high, *negated, scope, position)
                }
                low => self.between(left, low, high, *negated, scope, position),
            },
            ast::Expr::Like { any: true, .. } | ast::Expr::ILike { any: true, .. } => {
                self.quantified_like(tree, left, scope, position)
            }
            ast::Expr::Like { pattern, .. } | ast::Expr::ILike { pattern, .. } if is_all(pattern) => {
                self.quantified_like(tree, left, scope, position)
            }
            ast::Expr::Like {
                negated,
                any: false,
                pattern,
                escape_char,
                ..
            }
            | ast::Expr::ILike {
                negated,
                any: false,
                pattern,
                escape_char,
                ..
            } => {
                let ignore_case = matches!(tree, ast::Expr::ILike { .. });
                let (pattern, escape) = self.pattern(pattern, escape_char.as_deref(), scope, position)?;
                self.like(left, pattern, escape, *negated, ignore_case, position)
            }
            ast::Expr::SimilarTo {
                negated,
                pattern,
                escape_char,
                ..
            } => {
                let mut arguments = vec![self.expression(pattern, scope)?];
                if let Some(escape) = escape_char {
                    arguments.push(self.expression(escape, scope)?);
                }
                let pattern = self.scalar_of("similar_to_escape", arguments, position)?;
                self.operator_of(if *negated { "!~" } else { "~" }, vec![left, pattern], position)
            }
            ast::Expr::AtTimeZone { time_zone, .. } => {
                let zone = self.expression(time_zone, scope)?;
                self.scalar_of("timezone", vec![zone, left], position)
            }
            ast::Expr::Collate { collation, .. } => self.collate(left, collation, position),
            other => Err(unsupported(other).or_position(position)),
        }
    }

    fn cast(&mut self, input: Typed, data_type: &ast::DataType, position: Option<u32>) -> Result<Typed> {
        let (data_type, typmod) = match self.data_type_in_query(data_type) {
            Ok(known) => known,
            // Types that values have, but no columns.
            Err(error) => match data_type.to_string().to_ascii_lowercase().as_str() {
                "record" => (DataType::Record, -1),
                "record[]" => (DataType::array_of(DataType::Record), -1),
                _ => return Err(error.or_position(position)),
            },
        };
        self.cast_explicitly(input, data_type, typmod, position)
    }

    /// COLLATE: all that there is compares bytes.
    fn collate(&mut self, input: Typed, name: &ast::ObjectName, position: Option<u32>) -> Result<Typed> {
        if !input.data_type.is_string() && input.data_type != DataType::Unknown {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("collations are not supported by type {}", input.data_type),
            )
            .or_position(position));
        }
        let name = plain_name(name).map_err(|error| error.or_position(position))?;
        if !matches!(name.as_str(), "C" | "POSIX" | "default" | "ucs_basic") {
            return Err(EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("collation \"{name}\" for encoding \"UTF8\" does not exist"),
            )
            .or_position(position));
        }
        Ok(input)
    }

    fn column(
        &mut self,
        schema: Option<&ast::Ident>,
        table: Option<&ast::Ident>,
        ident: &ast::Ident,
        scope: &Scope,
    ) -> Result<Typed> {
        let name = normal(ident);
        let (schema, relation) = (schema.map(normal), table.map(normal));
        let qualifier = relation.as_deref().map(|relation| Qualifier {
            schema: schema.as_deref(),
            relation,
        });
        let position = self.position(table.unwrap_or(ident).span);
        if let Some(column) = self.resolve(qualifier, &name, &scope.names, position)? {
            self.note_name(ident);
            return Ok(column.typed);
        }
        // Some functions are written like columns.
        if table.is_none() && ident.quote_style.is_none() && is_call_without_parentheses(&name) {
            return self.scalar(&name, &[], &mut Scope::empty(""), None);
        }
        if table.is_none()
            && let Some(typed) = self.whole_row(&name, &scope.names, position)?
        {
            self.note_name(ident);
            return Ok(typed);
        }
        let shown = match table {
            Some(table) => format!("column {}.{name} does not exist", normal(table)),
            None => format!("column \"{name}\" does not exist"),
        };
        Err(EngineError::new(SqlState::UNDEFINED_COLUMN, shown).or_position(position))
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
            ast::Value::UnicodeStringLiteral(content) => text(content),
            ast::Value::NationalStringLiteral(content) => {
                let literal = text(content)?;
                self.cast_explicitly(literal, DataType::Char, -1, None)
            }
            ast::Value::Boolean(truth) => Ok(boolean(Expr::Constant(Value::Bool(*truth)))),
            ast::Value::Null => Ok(Typed::new(Expr::Constant(Value::Null), DataType::Unknown)),
            ast::Value::Placeholder(name) => self.parameter(name, literal.span),
            other => Err(EngineError::not_supported(format!("the literal {other}"))
                .or_position(self.position(literal.span))),
        }
    }

    pub(super) fn concat(&mut self, l: Typed, r: Typed, position: Option<u32>) -> Result<Typed> {
        if [&l, &r].iter().any(|side| side.data_type == DataType::Bytea)
            && [&l, &r]
                .iter()
                .all(|side| matches!(side.data_type, DataType::Bytea | DataType::Unknown))
        {
            return self.operator_of("||", vec![l, r], position);
        }
        let is_jsonb = |side: &Typed| side.data_type == DataType::Jsonb;
        if (is_jsonb(&l) || is_jsonb(&r))
            && [&l, &r]
                .iter()
                .all(|side| is_jsonb(side) || side.data_type == DataType::Unknown)
        {
            return self.operator_of("||", vec![l, r], position);
        }
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
            UnaryOperator::PGCubeRoot => return self.scalar("cbrt", &[input], scope, position),
            UnaryOperator::BitwiseNot => {
                let operand = self.expression(input, scope)?;
                return self.operator_of("~", vec![operand], position);
            }
            _ => {}
        }
        let operand = self.expression(input, scope)?.of_base();
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
                if op == UnaryOperator::Minus && data_type == DataType::Interval {
                    return self.operator_of("-", vec![operand], position);
                }
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
        // The type is chosen as if ELSE came first.
        let mut types: Vec<DataType> = results.iter().map(|result| result.data_type).collect();
        types.rotate_right(1);
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
