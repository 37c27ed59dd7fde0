//! The value of an expression for a row.

use std::sync::Arc;

use crate::context::EvalContext;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr, domain, row_test};
use crate::function::{Implementation, check_length};
use crate::registered::cast_with_names;
use crate::stack::checkpoint;
use crate::value::array::elements_of;
use crate::value::cast::{CastContext, cast};
use crate::value::{DataType, RecordValue, Value, arithmetic, compare_checked, text};

/// Bytes of text to work on between two looks if the statement is to stop.
const BYTES_PER_LOOK: usize = 64 << 10;

/// Looks whether the statement is to stop, if a step works on long texts: the executor looks once in many rows, and a
/// row may have thousands of such steps.
#[inline]
pub(super) fn look_around(context: &EvalContext<'_>, bytes: usize) -> Result<()> {
    if bytes < BYTES_PER_LOOK {
        return Ok(());
    }
    context.session.check_interrupts()
}

impl Expr {
    /// The expression's value for an input row.
    ///
    /// A column is read in the caller: most of what a statement projects is one.
    #[inline]
    pub fn eval(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        match self {
            Expr::Column(position) => Ok(row[usize::from(*position)].clone()),
            Expr::Parameter(number) => Ok(parameter(*number, context)?.clone()),
            other => other.eval_any(row, context),
        }
    }

    fn eval_any(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        match self {
            Expr::Constant(value) => Ok(value.clone()),
            Expr::Column(position) => Ok(row[usize::from(*position)].clone()),
            Expr::Parameter(number) => Ok(parameter(*number, context)?.clone()),
            Expr::Outer(number) => Ok(context.outer(*number)?.clone()),
            Expr::Subquery(subquery) => checkpoint(|| subquery.eval(row, context)),
            Expr::Aggregate(_) | Expr::Window(_) => {
                Err(EngineError::internal("an aggregate was not put in its place"))
            }
            Expr::Cast {
                input,
                from,
                to,
                typmod,
                context: rules,
            } => {
                let value = input.eval(row, context)?;
                if let DataType::Domain(_) | DataType::Array(_) | DataType::Composite(_) = to {
                    let value = converted(value, from.base(), to.base(), *typmod, *rules, context)?;
                    domain::check(&value, *to, context)?;
                    return Ok(value);
                }
                converted(value, *from, *to, *typmod, *rules, context)
            }
            Expr::Arithmetic { op, left, right } => {
                // The usual shape, column ± parameter, without cloning.
                with_both(left, right, row, context, |l, r| arithmetic::apply(*op, l, r))
            }
            Expr::Negate(input) => with(input, row, context, |value, _| arithmetic::negate(value)),
            Expr::Concat(left, right) => with_both(left, right, row, context, |l, r| match (l, r) {
                (Value::Text(l), Value::Text(r)) => {
                    check_length(l.len() + r.len())?;
                    look_around(context, l.len() + r.len())?;
                    Ok(Value::Text([&**l, &**r].concat().into()))
                }
                (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
                _ => Err(not_text("||", l, r)),
            }),
            Expr::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    if condition.truth(row, context)? == Some(true) {
                        return result.eval(row, context);
                    }
                }
                otherwise.eval(row, context)
            }
            // What follows the first value that is not NULL is not evaluated: it may be an error.
            Expr::Call { function, arguments } if function.is_coalesce() => {
                for argument in arguments {
                    let value = argument.eval(row, context)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            Expr::Call { function, arguments } => {
                if let Implementation::OfTwo(call) = function.row().implementation
                    && let [first, second] = &arguments[..]
                {
                    return with_both(first, second, row, context, |first, second| {
                        if function.row().strict && (first.is_null() || second.is_null()) {
                            return Ok(Value::Null);
                        }
                        let value = call(first, second)?;
                        look_around(
                            context,
                            first.heap_bytes() + second.heap_bytes() + value.heap_bytes(),
                        )?;
                        Ok(value)
                    });
                }
                let mut around = *context;
                let mut bytes = 0;
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let value = argument.eval(row, &around)?;
                    bytes += value.heap_bytes();
                    around = around.keeping(value.heap_bytes())?;
                    values.push(value);
                    if function.row().variadic {
                        check_length(bytes)?;
                    }
                }
                let value = function.call(&values, context)?;
                look_around(context, bytes + value.heap_bytes())?;
                Ok(value)
            }
            Expr::Row {
                fields,
                types,
                of,
                names,
            } => {
                record(fields, types, *of, row, context).map(|record| record.with_names(names.clone()).into())
            }
            Expr::Field {
                input,
                number,
                data_type,
            } => with(input, row, context, |value, _| field(value, *number, *data_type)),
            Expr::NextSerial { sequence } => context.session.next_serial(*sequence).map(Value::Int8),
            Expr::Previous => previous(context).cloned(),
            Expr::Steps(steps) => checkpoint(|| steps.eval(row, context)),
            _ => Ok(self.truth(row, context)?.map_or(Value::Null, Value::Bool)),
        }
    }

    /// The truth value of a boolean expression: what WHERE asks. `None` is NULL.
    pub fn truth(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Option<bool>> {
        match self {
            Expr::Compare {
                op,
                left,
                right,
                data_type,
            } => with_both(left, right, row, context, |l, r| {
                if l.is_null() || r.is_null() {
                    return Ok(None);
                }
                Ok(Some(op.holds(compare_checked(l, r, *data_type)?)))
            }),
            Expr::Distinct {
                left,
                right,
                data_type,
                negated,
            } => with_both(left, right, row, context, |l, r| {
                let distinct = match (l.is_null(), r.is_null()) {
                    (true, true) => false,
                    (false, false) => compare_checked(l, r, *data_type)?.is_ne(),
                    _ => true,
                };
                Ok(Some(distinct != *negated))
            }),
            Expr::And(all) => settled(all, false, row, context),
            Expr::Or(any) => settled(any, true, row, context),
            Expr::Not(input) => Ok(input.truth(row, context)?.map(|truth| !truth)),
            Expr::IsNull { input, negated } => with(input, row, context, |value, _| {
                let (is_null, is_not_null) = value.nulls();
                Ok(Some(if *negated { is_not_null } else { is_null }))
            }),
            Expr::IsTruth {
                input,
                truth,
                negated,
            } => Ok(Some((input.truth(row, context)? == *truth) != *negated)),
            Expr::InList {
                input,
                list,
                data_type,
                negated,
            } => with(input, row, context, |needle, around| {
                let found = is_among(needle, list, *data_type, row, around)?;
                Ok(found.map(|found| found != *negated))
            }),
            Expr::Quantified {
                op,
                all,
                input,
                array,
                data_type,
            } => with_both(input, array, row, context, |needle, array| {
                holds_for_elements(*op, *all, needle, array, *data_type, context)
            }),
            Expr::TestElements { test, input, array } => {
                with_both(input, array, row, context, |left, array| {
                    test.of_elements(left, array, context)
                })
            }
            Expr::RowTest {
                input,
                op,
                rows,
                types,
                negated,
            } => {
                let found = row_test::holds(input, *op, rows, types, row, context)?;
                Ok(found.map(|found| found != *negated))
            }
            Expr::Like {
                input,
                pattern,
                escape,
                ignore_case,
                negated,
            } => with_both(input, pattern, row, context, |input, pattern| {
                let matches = is_like(input, pattern, *escape, *ignore_case, context)?;
                Ok(matches.map(|matches| matches != *negated))
            }),
            _ => match self.eval(row, context)? {
                Value::Bool(truth) => Ok(Some(truth)),
                Value::Null => Ok(None),
                other => Err(EngineError::internal(format!(
                    "{other:?} is used as a truth value"
                ))),
            },
        }
    }

    /// True if a row passes as WHERE clause: true, not NULL.
    #[inline]
    pub fn passes(&self, row: &[Value], context: &EvalContext<'_>) -> Result<bool> {
        Ok(self.truth(row, context)? == Some(true))
    }
}

/// A value converted to another type.
fn converted(
    value: Value,
    from: DataType,
    to: DataType,
    typmod: i32,
    rules: CastContext,
    context: &EvalContext<'_>,
) -> Result<Value> {
    if from.needs_session() || to.needs_session() {
        return cast_with_names(value, from, to, typmod, rules, context.session);
    }
    let now = match value {
        Value::Text(_) | Value::Time(_) if to.holds_time() => context.session.transaction_timestamp(),
        _ => 0,
    };
    cast(value, from, to, typmod, rules, now)
}

/// A record of the values of these expressions, as a value of a composite type or of `record`.
fn record(
    fields: &[Expr],
    types: &Arc<[DataType]>,
    of: DataType,
    row: &[Value],
    context: &EvalContext<'_>,
) -> Result<RecordValue> {
    let mut around = *context;
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        let value = field.eval(row, &around)?;
        around = around.keeping(value.heap_bytes())?;
        values.push(value);
    }
    let record = RecordValue::new(values, Arc::clone(types))?;
    Ok(record.as_type(of))
}

/// A field of a record, which must be of this type.
fn field(value: &Value, number: u16, data_type: DataType) -> Result<Value> {
    let record = match value {
        Value::Null => return Ok(Value::Null),
        Value::Record(record) => record,
        other => {
            return Err(EngineError::internal(format!(
                "a field of {other:?} is asked for"
            )));
        }
    };
    match record.typed_fields().nth(usize::from(number)) {
        Some((value, found)) if found == data_type => Ok(value.clone()),
        // Two records that one column may have can be of different types.
        Some((_, found)) => Err(EngineError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("attribute {} has wrong type", number + 1),
        )
        .with_detail(format!("Table has type {found}, but query expects {data_type}."))),
        None => Err(EngineError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "attribute number {} exceeds number of columns {}",
                number + 1,
                record.fields().len()
            ),
        )),
    }
}

/// The truth value of AND (`settling` is false) or OR (true): a part of that value settles it, and ends it; otherwise a
/// NULL leaves it unknown.
fn settled(parts: &[Expr], settling: bool, row: &[Value], context: &EvalContext<'_>) -> Result<Option<bool>> {
    let mut unknown = false;
    for part in parts {
        match part.truth(row, context)? {
            Some(truth) if truth == settling => return Ok(Some(settling)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok((!unknown).then_some(!settling))
}

/// True if one of the list equals `needle`; NULL if none does and one is NULL, or if `needle` is.
fn is_among(
    needle: &Value,
    list: &[Expr],
    data_type: DataType,
    row: &[Value],
    context: &EvalContext<'_>,
) -> Result<Option<bool>> {
    if needle.is_null() {
        return Ok(None);
    }
    let mut unknown = false;
    for candidate in list {
        let found = with(candidate, row, context, |candidate, _| {
            if candidate.is_null() {
                return Ok(None);
            }
            Ok(Some(compare_checked(needle, candidate, data_type)?.is_eq()))
        })?;
        match found {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok((!unknown).then_some(false))
}

/// True if the comparison holds for one (or all) of an array's elements; NULL if that hangs on a NULL.
fn holds_for_elements(
    op: CompareOp,
    all: bool,
    needle: &Value,
    array: &Value,
    data_type: DataType,
    context: &EvalContext<'_>,
) -> Result<Option<bool>> {
    let elements = match array {
        Value::Null => return Ok(None),
        array => elements_of(array)?,
    };
    look_around(context, size_of_val(elements))?;
    let mut unknown = false;
    for element in elements {
        if needle.is_null() || element.is_null() {
            unknown = true;
        } else if op.holds(compare_checked(needle, element, data_type)?) != all {
            return Ok(Some(!all));
        }
    }
    Ok((!unknown).then_some(all))
}

/// True if the text is as the pattern of LIKE or ILIKE says.
fn is_like(
    input: &Value,
    pattern: &Value,
    escape: Option<char>,
    ignore_case: bool,
    context: &EvalContext<'_>,
) -> Result<Option<bool>> {
    match (input, pattern) {
        (Value::Text(input), Value::Text(pattern)) => {
            look_around(context, input.len() + pattern.len())?;
            let go_on = || context.session.check_interrupts();
            if ignore_case {
                text::like(&input.to_lowercase(), &pattern.to_lowercase(), escape, go_on).map(Some)
            } else {
                text::like(input, pattern, escape, go_on).map(Some)
            }
        }
        (Value::Null, _) | (_, Value::Null) => Ok(None),
        _ => Err(not_text("LIKE", input, pattern)),
    }
}

/// A string operator over what is no string: an error, because NULL would be a wrong answer.
#[cold]
fn not_text(operator: &str, left: &Value, right: &Value) -> EngineError {
    EngineError::internal(format!(
        "{operator} is given a value of type {} and one of type {}",
        left.natural_type(),
        right.natural_type()
    ))
}

#[inline]
fn parameter<'a>(number: u16, context: &EvalContext<'a>) -> Result<&'a Value> {
    context.params.get(usize::from(number)).ok_or_else(|| {
        EngineError::new(
            SqlState::UNDEFINED_PARAMETER,
            format!("there is no parameter ${}", number + 1),
        )
    })
}

#[inline]
fn previous<'c>(context: &'c EvalContext<'_>) -> Result<&'c Value> {
    context
        .previous
        .ok_or_else(|| EngineError::internal("an expression looks at a step that there is not"))
}

/// Hands the expression's value to `use_value` by reference: what is already lying there is not cloned. With it comes
/// the context for what is evaluated while the value is kept.
#[inline]
fn with<'a, T>(
    expr: &Expr,
    row: &[Value],
    context: &EvalContext<'a>,
    use_value: impl FnOnce(&Value, &EvalContext<'a>) -> Result<T>,
) -> Result<T> {
    match expr {
        Expr::Constant(value) => use_value(value, context),
        Expr::Column(position) => use_value(&row[usize::from(*position)], context),
        Expr::Parameter(number) => use_value(parameter(*number, context)?, context),
        Expr::Outer(number) => use_value(context.outer(*number)?, context),
        Expr::Previous => use_value(previous(context)?, context),
        _ => {
            let value = expr.eval(row, context)?;
            use_value(&value, &context.keeping(value.heap_bytes())?)
        }
    }
}

/// As [`with`], for two values that are there at the same time.
#[inline]
fn with_both<T>(
    left: &Expr,
    right: &Expr,
    row: &[Value],
    context: &EvalContext<'_>,
    use_values: impl FnOnce(&Value, &Value) -> Result<T>,
) -> Result<T> {
    with(left, row, context, |left, around| {
        with(right, row, around, |right, _| use_values(left, right))
    })
}
