//! The choice of an expression's type, and the conversions that get it there.

use sqlparser::ast;

use crate::bind::json::has_no_equality;
use crate::bind::record::is_row;
use crate::bind::{Binder, Typed, fold};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::expr::domain::may_be_checked;
use crate::plan::{Column, Returning};
use crate::type_name;
use crate::value::cast::{CastContext, apply_typmod, can_cast, field_names};
use crate::value::datetime::{IntervalStyle, depends_on_style, is_relative};
use crate::value::text::{decode_intervals, decode_text};
use crate::value::user_type::base_and_modifier;
use crate::value::{Category, DataType, Value};

/// The type two sides are compared in; `None`: there is no such operator.
pub(super) fn comparison_type(left: DataType, right: DataType) -> Option<DataType> {
    use DataType::*;
    // What shows a name is compared as the number that it is, and a domain as what it is over.
    let [left, right] = [left, right].map(DataType::base);
    let [left, right] = [left, right].map(|side| if side.is_oid() { Oid } else { side });
    let common = match (left, right) {
        // There is one operator for all records, which reads no text.
        (Unknown, other) | (other, Unknown) if is_row(other) => Record,
        (Unknown, other) | (other, Unknown) => other,
        (l, r) if l == r => l,
        (l, r) if is_row(l) && is_row(r) => Record,
        (l, r) if l.is_array() || r.is_array() => return None,
        (Oid, other) | (other, Oid) if other.is_integer() => Int8,
        (l, r) if l.is_integer() && r.is_integer() => Int8,
        (Char, Varchar) | (Varchar, Char) => Char,
        (l, r) if l.is_string() && r.is_string() => Text,
        (Float4, other) | (other, Float4) if other.category() == Category::Numeric => Float8,
        (l, r) if l.category() == r.category() => return common_type(&[l, r]),
        _ => return None,
    };
    if has_no_equality(common) {
        return None;
    }
    Some(match common {
        Varchar | Unknown => Text,
        other => other,
    })
}

impl Binder<'_> {
    /// The type of this name and its modifier.
    pub(super) fn data_type(&self, tree: &ast::DataType) -> Result<(DataType, i32)> {
        type_name::written(tree)
    }

    /// The same inside of a query or an expression: a view notes the row types that its text names.
    pub(super) fn data_type_in_query(&mut self, tree: &ast::DataType) -> Result<(DataType, i32)> {
        let (data_type, typmod) = self.data_type(tree)?;
        if let Some(view) = &mut self.view {
            view.note_type(data_type);
        }
        Ok((data_type, typmod))
    }

    /// The type a text names.
    pub(super) fn type_named(&self, text: &str) -> Result<DataType> {
        Ok(type_name::type_of_text(text)?.0)
    }

    /// Converts for an expression that someone wrote a cast for.
    pub(super) fn cast_explicitly(
        &mut self,
        input: Typed,
        to: DataType,
        typmod: i32,
        position: Option<u32>,
    ) -> Result<Typed> {
        let from = input.data_type;
        if !can_cast(from, to, CastContext::Explicit) {
            return Err(EngineError::new(
                SqlState::CANNOT_COERCE,
                format!("cannot cast type {from} to {to}"),
            )
            .or_position(position));
        }
        // A record that stays one keeps the names of its fields.
        let typmod = match (from, to) {
            (DataType::Record, DataType::Record) => input.typmod,
            _ => typmod,
        };
        let expr = self
            .convert(input, to, typmod, CastContext::Explicit)
            .map_err(|e| e.or_position(position))?;
        Ok(Typed {
            expr,
            data_type: to,
            typmod,
        })
    }

    /// Converts where types meet. The caller has found the target by rules that make it possible.
    pub(super) fn coerce(&mut self, input: Typed, to: DataType, position: Option<u32>) -> Result<Expr> {
        self.convert(input, to, -1, CastContext::Implicit)
            .map_err(|error| error.or_position(position))
    }

    /// Converts for a column the value is stored in; 42804 if it cannot be.
    pub(super) fn assign(
        &mut self,
        input: Typed,
        to: DataType,
        typmod: i32,
        column: &str,
        position: Option<u32>,
    ) -> Result<Expr> {
        if !can_cast(input.data_type, to, CastContext::Assignment) {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{column}\" is of type {to} but expression is of type {}",
                    input.data_type
                ),
            )
            .with_hint("You will need to rewrite or cast the expression.")
            .or_position(position));
        }
        self.convert(input, to, typmod, CastContext::Assignment)
            .map_err(|error| error.or_position(position))
    }

    /// A condition: boolean, or 42804.
    pub(super) fn condition(&mut self, input: Typed, clause: &str, position: Option<u32>) -> Result<Expr> {
        if !matches!(input.data_type.base(), DataType::Bool | DataType::Unknown) {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "argument of {clause} must be type boolean, not type {}",
                    input.data_type
                ),
            )
            .or_position(position));
        }
        self.coerce(input, DataType::Bool, position)
    }

    pub(super) fn convert(
        &mut self,
        mut input: Typed,
        to: DataType,
        typmod: i32,
        context: CastContext,
    ) -> Result<Expr> {
        if input.data_type == to && matches!(to, DataType::Domain(_)) {
            return Ok(input.expr);
        }
        if may_be_checked(to) {
            return self.convert_to_checked(input, to, context);
        }
        input.data_type = input.data_type.base();
        let Typed {
            expr,
            data_type: from,
            typmod: own_typmod,
        } = input;
        match expr {
            // A parameter without a type takes the one that is wanted here.
            Expr::Parameter(number) if from == DataType::Unknown => {
                self.settle_parameter(number, to)?;
                Ok(self.fit(Expr::Parameter(number), to, typmod, context))
            }
            Expr::Constant(Value::Null) => Ok(Expr::Constant(Value::Null)),
            Expr::Constant(Value::Text(text)) if from == DataType::Unknown => {
                // `now` and its like must not be settled before the statement runs.
                // Nor what a name means.
                let interval = to.element().unwrap_or(to) == DataType::Interval;
                let unsettled = to.has_names()
                    || to.holds_time() && parts_of(&text, to).any(is_relative)
                    || interval && parts_of(&text, to).any(depends_on_style);
                if unsettled {
                    return Ok(Expr::Cast {
                        input: Box::new(Expr::Constant(Value::Text(text))),
                        from: DataType::Text,
                        to,
                        typmod,
                        context,
                    });
                }
                let value = match interval {
                    true => decode_intervals(&text, to, typmod, IntervalStyle::default())?,
                    false => decode_text(&text, to, 0)?,
                };
                Ok(
                    match apply_typmod(value.clone(), to, typmod, context == CastContext::Explicit) {
                        Ok(fitted) => Expr::Constant(fitted),
                        // Too long: an error for the row it is stored in, as in PostgreSQL.
                        Err(_) => self.fit(Expr::Constant(value), to, typmod, context),
                    },
                )
            }
            Expr::Row { fields, types, .. } if from == DataType::Record && is_row(to) && to != from => {
                self.row_as(fields, &types, to, context)
            }
            Expr::Row {
                fields, types, names, ..
            } if is_row(from) && to == DataType::Record => Ok(Expr::Row {
                names: names.or_else(|| field_names(from)),
                fields,
                types,
                of: to,
            }),
            expr if from == to && (typmod < 0 || typmod == own_typmod) => Ok(expr),
            expr => Ok(fold(Expr::Cast {
                input: Box::new(expr),
                from,
                to,
                typmod,
                context,
            })),
        }
    }

    /// Converts to a type whose values have something to satisfy: a domain, or one that has domains inside. It is checked
    /// when the expression is evaluated.
    fn convert_to_checked(&mut self, input: Typed, to: DataType, context: CastContext) -> Result<Expr> {
        let (base, typmod) = base_and_modifier(to, -1);
        let parameter = match input.expr {
            Expr::Parameter(number) if input.data_type == DataType::Unknown => Some(number),
            _ => None,
        };
        let unchecked = match parameter {
            Some(number) => {
                self.settle_parameter(number, to)?;
                self.fit(Expr::Parameter(number), base, typmod, context)
            }
            None if may_be_checked(base) && input.data_type != DataType::Unknown => Expr::Cast {
                input: Box::new(input.expr),
                from: input.data_type,
                to: base,
                typmod,
                context,
            },
            None if may_be_checked(base) => match input.expr {
                Expr::Constant(value) => Expr::Cast {
                    input: Box::new(Expr::Constant(value)),
                    from: DataType::Text,
                    to: base,
                    typmod,
                    context,
                },
                other => other,
            },
            None => self.convert(input, base, typmod, context)?,
        };
        Ok(match to {
            DataType::Domain(_) => Expr::Cast {
                input: Box::new(unchecked),
                from: base,
                to,
                typmod: -1,
                context,
            },
            _ => unchecked,
        })
    }

    /// Gives a parameter its type; 42P08 if another use of it has given it a different one meanwhile.
    ///
    /// A client encodes the value as the type that Parse reported, so one parameter has one type.
    fn settle_parameter(&mut self, number: u16, to: DataType) -> Result<()> {
        match self.params[usize::from(number)].replace(to) {
            Some(known) if known != to => Err(EngineError::new(
                SqlState::AMBIGUOUS_PARAMETER,
                format!("inconsistent types deduced for parameter ${}", number + 1),
            )
            .with_detail(format!("{known} versus {to}"))),
            _ => Ok(()),
        }
    }

    /// An expression that is used a second time: a parameter has the type by now that its first use gave it.
    pub(super) fn used_again(&self, input: Typed) -> Typed {
        match input.expr {
            Expr::Parameter(number) if input.data_type == DataType::Unknown => {
                let known = self.params[usize::from(number)].unwrap_or(DataType::Unknown);
                Typed::new(input.expr, known)
            }
            _ => input,
        }
    }

    fn fit(&self, expr: Expr, to: DataType, typmod: i32, context: CastContext) -> Expr {
        match typmod {
            ..0 => expr,
            _ => Expr::Cast {
                input: Box::new(expr),
                from: to,
                to,
                typmod,
                context,
            },
        }
    }

    /// A select list's column: what has no type by now is text.
    pub(super) fn settle(&mut self, input: Typed) -> Result<Typed> {
        if input.data_type != DataType::Unknown {
            return Ok(input);
        }
        Ok(Typed::new(
            self.coerce(input, DataType::Text, None)?,
            DataType::Text,
        ))
    }

    /// 42883 for an operator over these types.
    pub(super) fn no_operator(
        &self,
        left: DataType,
        symbol: &str,
        right: DataType,
        position: Option<u32>,
    ) -> EngineError {
        EngineError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("operator does not exist: {left} {symbol} {right}"),
        )
        .with_hint(
            "No operator matches the given name and argument types. You might need to add explicit type casts.",
        )
        .or_position(position)
    }
}

/// Tells the base types of result columns that have domains, which is what clients are told.
pub(super) fn show_bases(columns: &mut [Column]) {
    for column in columns {
        (column.data_type, column.type_modifier) = base_and_modifier(column.data_type, column.type_modifier);
    }
}

/// The columns of RETURNING, as clients are told them.
pub(super) fn shown_columns(returning: &Returning) -> Vec<Column> {
    let mut columns = returning.columns.clone();
    show_bases(&mut columns);
    columns
}

/// 42703 for a name that no column of a relation has.
#[cold]
pub(super) fn no_column(relation: &str, name: &str) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" of relation \"{relation}\" does not exist"),
    )
}

/// The texts of the elements of an array's literal, roughly: it is cut at all that may stand between them. Any other
/// literal is one text.
fn parts_of(text: &str, data_type: DataType) -> impl Iterator<Item = &str> {
    let is_array = data_type.is_array();
    text.split(move |character| is_array && matches!(character, '{' | '}' | ',' | '"' | '='))
}
