//! Compiled expressions and their evaluation.
//!
//! An [`Expr`] is a tree in which names have become positions, literals have become values of the right type, and
//! every conversion is spelled out, so that evaluation never looks at a type it could have known before. Three-valued
//! logic is kept where SQL has it: a comparison with NULL is NULL, AND and OR look at both sides before they give up.

use std::cmp::Ordering;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::function::{Function, check_length};
use crate::sql::stack::checkpoint;
use crate::value::arithmetic::{self, ArithmeticOp};
use crate::value::cast::{CastContext, cast};
use crate::value::{Category, DataType, Value, compare_checked, text};

/// What evaluation can ask of the session it runs in.
pub trait SessionFacts {
    /// Start of the transaction, as a timestamptz value (`now()`).
    fn transaction_timestamp(&self) -> i64;
    /// Start of the statement, as a timestamptz value.
    fn statement_timestamp(&self) -> i64;
    /// The session's number.
    fn backend_pid(&self) -> i32;
    /// The database's name.
    fn database(&self) -> &str;
    /// The user's name.
    fn user(&self) -> &str;
    /// A setting's value as SHOW gives it.
    fn setting(&self, name: &str) -> Option<String>;
    /// The next number of a serial column's sequence.
    fn next_serial(&self, table_oid: u32, column: u16) -> Result<i64>;
    /// A random number in 0 ≤ x < 1.
    fn random(&self) -> f64;
    /// Sleeps; an error if the statement is ended meanwhile.
    fn sleep(&self, duration: std::time::Duration) -> Result<()>;
    /// Changes a setting as SET does; its new value as SHOW gives it.
    fn set_setting(&self, name: &str, value: Option<&str>, local: bool) -> Result<String>;
}

/// Facts for places without a session (tests, folding constants): the questions that need one are errors.
pub struct NoSession;

impl SessionFacts for NoSession {
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn backend_pid(&self) -> i32 {
        0
    }
    fn database(&self) -> &str {
        ""
    }
    fn user(&self) -> &str {
        ""
    }
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    fn next_serial(&self, _table_oid: u32, _column: u16) -> Result<i64> {
        Err(EngineError::internal(
            "a sequence was asked for a number outside a session",
        ))
    }
    fn random(&self) -> f64 {
        0.0
    }
    fn sleep(&self, _duration: std::time::Duration) -> Result<()> {
        Err(EngineError::internal("sleep outside a session"))
    }
    fn set_setting(&self, _name: &str, _value: Option<&str>, _local: bool) -> Result<String> {
        Err(EngineError::internal("a setting is changed outside a session"))
    }
}

/// What an evaluation needs beside the row.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// `$1`, `$2`, …
    pub params: &'a [Value],
    /// The session.
    pub session: &'a dyn SessionFacts,
    /// The value of the step before, while the steps of an expression are evaluated.
    previous: Option<&'a Value>,
}

impl<'a> EvalContext<'a> {
    /// A context.
    pub fn new(params: &'a [Value], session: &'a dyn SessionFacts) -> EvalContext<'a> {
        EvalContext {
            params,
            session,
            previous: None,
        }
    }
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl CompareOp {
    /// Whether an ordering satisfies it.
    #[inline]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Equal => ordering.is_eq(),
            CompareOp::NotEqual => ordering.is_ne(),
            CompareOp::Less => ordering.is_lt(),
            CompareOp::LessOrEqual => ordering.is_le(),
            CompareOp::Greater => ordering.is_gt(),
            CompareOp::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// The operator with its sides exchanged: `a < b` is `b > a`.
    pub fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Less => CompareOp::Greater,
            CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
            CompareOp::Greater => CompareOp::Less,
            CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
            same => same,
        }
    }

    /// As written in SQL.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Equal => "=",
            CompareOp::NotEqual => "<>",
            CompareOp::Less => "<",
            CompareOp::LessOrEqual => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterOrEqual => ">=",
        }
    }
}

/// A compiled expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A literal.
    Constant(Value),
    /// The value at this position of the input row.
    Column(u16),
    /// `$n`, counted from 0.
    Parameter(u16),
    /// A conversion.
    Cast {
        /// What is converted.
        input: Box<Expr>,
        /// From this type
        from: DataType,
        /// to this one,
        to: DataType,
        /// with this modifier,
        typmod: i32,
        /// under these rules.
        context: CastContext,
    },
    /// A comparison of two values of one type.
    Compare {
        /// The operator.
        op: CompareOp,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
        /// The type both sides have.
        data_type: DataType,
    },
    /// IS \[NOT\] DISTINCT FROM over two values of one type.
    Distinct {
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
        /// The type both sides have.
        data_type: DataType,
        /// IS NOT DISTINCT FROM
        negated: bool,
    },
    /// `+ - * / %`
    Arithmetic {
        /// The operator.
        op: ArithmeticOp,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
    },
    /// Unary minus.
    Negate(Box<Expr>),
    /// `||` over text.
    Concat(Box<Expr>, Box<Expr>),
    /// All of these.
    And(Vec<Expr>),
    /// Any of these.
    Or(Vec<Expr>),
    /// NOT
    Not(Box<Expr>),
    /// IS \[NOT\] NULL
    IsNull {
        /// What is looked at.
        input: Box<Expr>,
        /// IS NOT NULL
        negated: bool,
    },
    /// IS \[NOT\] TRUE | FALSE | UNKNOWN
    IsTruth {
        /// What is looked at.
        input: Box<Expr>,
        /// TRUE, FALSE, or `None` for UNKNOWN.
        truth: Option<bool>,
        /// IS NOT …
        negated: bool,
    },
    /// \[NOT\] IN over values of one type
    InList {
        /// What is looked for.
        input: Box<Expr>,
        /// Among these.
        list: Vec<Expr>,
        /// The type all have.
        data_type: DataType,
        /// NOT IN
        negated: bool,
    },
    /// \[NOT\] LIKE | ILIKE
    Like {
        /// The text.
        input: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape character; `None` = none.
        escape: Option<char>,
        /// ILIKE
        ignore_case: bool,
        /// NOT …
        negated: bool,
    },
    /// CASE WHEN … THEN … ELSE … END
    Case {
        /// Conditions and results.
        branches: Vec<(Expr, Expr)>,
        /// ELSE
        otherwise: Box<Expr>,
    },
    /// A function of values.
    Call {
        /// Which.
        function: Function,
        /// Its arguments.
        arguments: Vec<Expr>,
    },
    /// The next number of a serial column.
    NextSerial {
        /// The table.
        table_oid: u32,
        /// The column.
        column: u16,
    },
    /// The value of the step before, in a step of [`Expr::Steps`].
    Previous,
    /// Expressions one after the other, each of which may look at the value of the one before; the last gives
    /// the value.
    Steps(Steps),
}

/// The steps of [`Expr::Steps`]. A long chain of operators is kept in this form, and so is what would else be copied.
///
/// All that recurses over an expression goes on in a new stack segment here if this one is nearly used up: evaluating,
/// walking, comparing, copying and dropping.
#[derive(Debug)]
pub struct Steps(Vec<Expr>);

impl Steps {
    pub(crate) fn new(steps: Vec<Expr>) -> Steps {
        debug_assert!(!steps.is_empty());
        Steps(steps)
    }

    /// Runs `work` over the steps, with room to recurse.
    pub(crate) fn each<R>(&self, work: impl FnOnce(&[Expr]) -> R) -> R {
        checkpoint(|| work(&self.0))
    }

    fn eval(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        let [first, rest @ ..] = self.0.as_slice() else {
            return Err(EngineError::internal("an expression has no steps"));
        };
        let mut value = first.eval(row, context)?;
        for step in rest {
            let context = EvalContext {
                previous: Some(&value),
                ..*context
            };
            value = step.eval(row, &context)?;
        }
        Ok(value)
    }

    fn map(mut self, map: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Steps> {
        let steps = std::mem::take(&mut self.0);
        checkpoint(|| steps.into_iter().map(map).collect::<Result<Vec<_>>>()).map(Steps)
    }
}

impl Clone for Steps {
    fn clone(&self) -> Steps {
        self.each(|steps| Steps(steps.to_vec()))
    }
}

impl PartialEq for Steps {
    fn eq(&self, other: &Steps) -> bool {
        self.each(|steps| *steps == *other.0)
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let steps = std::mem::take(&mut self.0);
        if !steps.is_empty() {
            checkpoint(|| drop(steps));
        }
    }
}

impl Expr {
    /// A literal.
    pub fn constant(value: impl Into<Value>) -> Expr {
        Expr::Constant(value.into())
    }

    /// The expression's value for an input row.
    pub fn eval(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        match self {
            Expr::Constant(value) => Ok(value.clone()),
            Expr::Column(position) => Ok(row[usize::from(*position)].clone()),
            Expr::Parameter(number) => Ok(parameter(*number, context)?.clone()),
            Expr::Cast {
                input,
                from,
                to,
                typmod,
                context: rules,
            } => {
                let value = input.eval(row, context)?;
                let now = match value {
                    Value::Text(_) if to.category() == Category::DateTime => {
                        context.session.transaction_timestamp()
                    }
                    _ => 0,
                };
                cast(value, *from, *to, *typmod, *rules, now)
            }
            Expr::Arithmetic { op, left, right } => {
                // The usual shape, column ± parameter, without cloning.
                with(left, row, context, |l| {
                    with(right, row, context, |r| arithmetic::apply(*op, l, r))
                })
            }
            Expr::Negate(input) => with(input, row, context, arithmetic::negate),
            Expr::Concat(left, right) => with(left, row, context, |l| {
                with(right, row, context, |r| match (l, r) {
                    (Value::Text(l), Value::Text(r)) => {
                        check_length(l.len() + r.len())?;
                        Ok(Value::Text([&**l, &**r].concat().into()))
                    }
                    (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
                    _ => Err(not_text("||", l, r)),
                })
            }),
            Expr::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    if condition.truth(row, context)? == Some(true) {
                        return result.eval(row, context);
                    }
                }
                otherwise.eval(row, context)
            }
            Expr::Call { function, arguments } => {
                let arguments = arguments
                    .iter()
                    .map(|a| a.eval(row, context))
                    .collect::<Result<Vec<_>>>()?;
                function.call(&arguments, context)
            }
            Expr::NextSerial { table_oid, column } => {
                context.session.next_serial(*table_oid, *column).map(Value::Int8)
            }
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
            } => with(left, row, context, |l| {
                with(right, row, context, |r| {
                    if l.is_null() || r.is_null() {
                        return Ok(None);
                    }
                    Ok(Some(op.holds(compare_checked(l, r, *data_type)?)))
                })
            }),
            Expr::Distinct {
                left,
                right,
                data_type,
                negated,
            } => with(left, row, context, |l| {
                with(right, row, context, |r| {
                    let distinct = match (l.is_null(), r.is_null()) {
                        (true, true) => false,
                        (false, false) => compare_checked(l, r, *data_type)?.is_ne(),
                        _ => true,
                    };
                    Ok(Some(distinct != *negated))
                })
            }),
            Expr::And(all) => {
                let mut unknown = false;
                for part in all {
                    match part.truth(row, context)? {
                        Some(false) => return Ok(Some(false)),
                        Some(true) => {}
                        None => unknown = true,
                    }
                }
                Ok((!unknown).then_some(true))
            }
            Expr::Or(any) => {
                let mut unknown = false;
                for part in any {
                    match part.truth(row, context)? {
                        Some(true) => return Ok(Some(true)),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                Ok((!unknown).then_some(false))
            }
            Expr::Not(input) => Ok(input.truth(row, context)?.map(|truth| !truth)),
            Expr::IsNull { input, negated } => {
                with(input, row, context, |value| Ok(Some(value.is_null() != *negated)))
            }
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
            } => with(input, row, context, |needle| {
                if needle.is_null() {
                    return Ok(None);
                }
                let mut unknown = false;
                for candidate in list {
                    let found = with(candidate, row, context, |candidate| {
                        if candidate.is_null() {
                            return Ok(None);
                        }
                        Ok(Some(compare_checked(needle, candidate, *data_type)?.is_eq()))
                    })?;
                    match found {
                        Some(true) => return Ok(Some(!*negated)),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                Ok((!unknown).then_some(*negated))
            }),
            Expr::Like {
                input,
                pattern,
                escape,
                ignore_case,
                negated,
            } => with(input, row, context, |input| {
                with(pattern, row, context, |pattern| match (input, pattern) {
                    (Value::Text(input), Value::Text(pattern)) => {
                        let matches = if *ignore_case {
                            text::like(&input.to_lowercase(), &pattern.to_lowercase(), *escape)?
                        } else {
                            text::like(input, pattern, *escape)?
                        };
                        Ok(Some(matches != *negated))
                    }
                    (Value::Null, _) | (_, Value::Null) => Ok(None),
                    _ => Err(not_text("LIKE", input, pattern)),
                })
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

    /// Whether a row passes as WHERE clause: true, not NULL.
    #[inline]
    pub fn passes(&self, row: &[Value], context: &EvalContext<'_>) -> Result<bool> {
        Ok(self.truth(row, context)? == Some(true))
    }

    /// Calls `visit` for this expression and all inside it.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Expr::Constant(_)
            | Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::NextSerial { .. }
            | Expr::Previous => {}
            Expr::Steps(steps) => steps.each(|steps| steps.iter().for_each(|step| step.walk(visit))),
            Expr::Cast { input, .. }
            | Expr::Negate(input)
            | Expr::Not(input)
            | Expr::IsNull { input, .. }
            | Expr::IsTruth { input, .. } => input.walk(visit),
            Expr::Compare { left, right, .. }
            | Expr::Distinct { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::Concat(left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(|part| part.walk(visit)),
            Expr::InList { input, list, .. } => {
                input.walk(visit);
                list.iter().for_each(|part| part.walk(visit));
            }
            Expr::Like { input, pattern, .. } => {
                input.walk(visit);
                pattern.walk(visit);
            }
            Expr::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    condition.walk(visit);
                    result.walk(visit);
                }
                otherwise.walk(visit);
            }
            Expr::Call { arguments, .. } => arguments.iter().for_each(|part| part.walk(visit)),
        }
    }

    /// The same expression with each direct child replaced.
    pub(crate) fn map_children(self, map: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Expr> {
        let mut boxed = |child: Box<Expr>| map(*child).map(Box::new);
        Ok(match self {
            Expr::Constant(_)
            | Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::NextSerial { .. }
            | Expr::Previous => self,
            Expr::Steps(steps) => Expr::Steps(steps.map(map)?),
            Expr::Cast {
                input,
                from,
                to,
                typmod,
                context,
            } => Expr::Cast {
                input: boxed(input)?,
                from,
                to,
                typmod,
                context,
            },
            Expr::Negate(input) => Expr::Negate(boxed(input)?),
            Expr::Not(input) => Expr::Not(boxed(input)?),
            Expr::IsNull { input, negated } => Expr::IsNull {
                input: boxed(input)?,
                negated,
            },
            Expr::IsTruth {
                input,
                truth,
                negated,
            } => Expr::IsTruth {
                input: boxed(input)?,
                truth,
                negated,
            },
            Expr::Compare {
                op,
                left,
                right,
                data_type,
            } => Expr::Compare {
                op,
                left: boxed(left)?,
                right: boxed(right)?,
                data_type,
            },
            Expr::Distinct {
                left,
                right,
                data_type,
                negated,
            } => Expr::Distinct {
                left: boxed(left)?,
                right: boxed(right)?,
                data_type,
                negated,
            },
            Expr::Arithmetic { op, left, right } => Expr::Arithmetic {
                op,
                left: boxed(left)?,
                right: boxed(right)?,
            },
            Expr::Concat(left, right) => Expr::Concat(boxed(left)?, boxed(right)?),
            Expr::And(parts) => Expr::And(parts.into_iter().map(map).collect::<Result<_>>()?),
            Expr::Or(parts) => Expr::Or(parts.into_iter().map(map).collect::<Result<_>>()?),
            Expr::InList {
                input,
                list,
                data_type,
                negated,
            } => Expr::InList {
                input: boxed(input)?,
                list: list.into_iter().map(map).collect::<Result<_>>()?,
                data_type,
                negated,
            },
            Expr::Like {
                input,
                pattern,
                escape,
                ignore_case,
                negated,
            } => Expr::Like {
                input: boxed(input)?,
                pattern: boxed(pattern)?,
                escape,
                ignore_case,
                negated,
            },
            Expr::Case { branches, otherwise } => Expr::Case {
                otherwise: boxed(otherwise)?,
                branches: branches
                    .into_iter()
                    .map(|(condition, result)| Ok((map(condition)?, map(result)?)))
                    .collect::<Result<_>>()?,
            },
            Expr::Call { function, arguments } => Expr::Call {
                function,
                arguments: arguments.into_iter().map(map).collect::<Result<_>>()?,
            },
        })
    }

    /// The input columns it reads, each once per use.
    pub fn columns(&self, visit: &mut dyn FnMut(u16)) {
        self.walk(&mut |expr| {
            if let Expr::Column(position) = expr {
                visit(*position);
            }
        });
    }

    /// Whether its value is the same for every row of one execution: no column, and nothing that changes from call to
    /// call.
    pub fn is_stable(&self) -> bool {
        let mut stable = true;
        self.walk(&mut |expr| match expr {
            Expr::Column(_) | Expr::NextSerial { .. } => stable = false,
            Expr::Call { function, .. } if function.is_volatile() => stable = false,
            _ => {}
        });
        stable
    }

    /// Whether its value is known now: literals only.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |expr| match expr {
            Expr::Column(_) | Expr::Parameter(_) | Expr::NextSerial { .. } | Expr::Previous => {
                constant = false
            }
            Expr::Call { function, .. } if !function.is_immutable() => constant = false,
            // Text to time may depend on the day ('now', 'today').
            Expr::Cast { from, to, .. }
                if from.is_string() && to.category() == crate::value::Category::DateTime =>
            {
                constant = false
            }
            _ => {}
        });
        constant
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int8(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int4(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
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

/// Hands the expression's value to `use_value` by reference: what is already lying there is not cloned.
#[inline]
fn with<T>(
    expr: &Expr,
    row: &[Value],
    context: &EvalContext<'_>,
    use_value: impl FnOnce(&Value) -> Result<T>,
) -> Result<T> {
    match expr {
        Expr::Constant(value) => use_value(value),
        Expr::Column(position) => use_value(&row[usize::from(*position)]),
        Expr::Parameter(number) => use_value(parameter(*number, context)?),
        Expr::Previous => use_value(previous(context)?),
        _ => use_value(&expr.eval(row, context)?),
    }
}
