//! Operators by their symbols, which may be written with a schema: `a OPERATOR(pg_catalog.+) b`.

use sqlparser::ast::{self, BinaryOperator};

use crate::bind::missing_function::text_search_operator;
use crate::bind::row::no_rows_to_overlap;
use crate::bind::scope::Scope;
use crate::bind::{Binder, Typed, boolean, fold, predicate};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr};
use crate::function::{Unresolved, resolve_operator};
use crate::parse::operator_any;
use crate::value::DataType;
use crate::value::arithmetic::ArithmeticOp;

/// The symbol of an operator; its schema must be `pg_catalog` if it has one.
pub(super) fn symbol_of(op: &BinaryOperator) -> Result<String> {
    let BinaryOperator::PGCustomBinaryOperator(parts) = op else {
        return Ok(op.to_string());
    };
    match parts.as_slice() {
        [symbol] => Ok(symbol.clone()),
        [schema, symbol] if schema.eq_ignore_ascii_case("pg_catalog") => Ok(symbol.clone()),
        [schema, _] => Err(EngineError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{schema}\" does not exist"),
        )),
        _ => Err(EngineError::not_supported(format!("the operator {op}"))),
    }
}

fn comparison(symbol: &str) -> Option<CompareOp> {
    let operator = operator_any::comparison(symbol)?;
    predicate::comparison(&operator)
}

fn arithmetic(symbol: &str) -> Option<ArithmeticOp> {
    Some(match symbol {
        "+" => ArithmeticOp::Add,
        "-" => ArithmeticOp::Subtract,
        "*" => ArithmeticOp::Multiply,
        "/" => ArithmeticOp::Divide,
        "%" => ArithmeticOp::Remainder,
        _ => return None,
    })
}

/// True for the symbol of an operator whose result is no truth value, whatever its operands are.
pub(super) fn is_arithmetic(symbol: &str) -> bool {
    arithmetic(symbol).is_some() || matches!(symbol, "^" | "||")
}

impl Binder<'_> {
    /// An operator between two operands.
    pub(super) fn binary(
        &mut self,
        left: Typed,
        op: &BinaryOperator,
        right: &ast::Expr,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        if *op == BinaryOperator::Overlaps {
            return Err(no_rows_to_overlap(position));
        }
        let right = self.expression(right, scope)?;
        let symbol = symbol_of(op).map_err(|error| error.or_position(position))?;
        self.operation(left, &symbol, right, position)
    }

    /// The operator of that symbol between two operands.
    pub(super) fn operation(
        &mut self,
        left: Typed,
        symbol: &str,
        right: Typed,
        position: Option<u32>,
    ) -> Result<Typed> {
        // Operators are those of the type that a domain is over.
        let [left, right] = [left, right].map(Typed::of_base);
        if let Some(op) = comparison(symbol) {
            return Ok(boolean(self.compare(left, op, right, position)?));
        }
        if let Some(typed) = self.array_operator(&left, symbol, &right, position)? {
            return Ok(typed);
        }
        if let Some(op) = arithmetic(symbol) {
            return self.arithmetic(left, op, right, position);
        }
        match symbol {
            "^" => self.scalar_of("power", vec![left, right], position),
            "||" => self.concat(left, right, position),
            "~~" => self.like(left, right, Some('\\'), false, false, position),
            "!~~" => self.like(left, right, Some('\\'), true, false, position),
            "~~*" => self.like(left, right, Some('\\'), false, true, position),
            "!~~*" => self.like(left, right, Some('\\'), true, true, position),
            // As LIKE does, they look at the blanks of a char.
            "~" | "!~" | "~*" | "!~*" if left.data_type == DataType::Char => {
                let padded = Typed {
                    data_type: DataType::Text,
                    ..left
                };
                self.operator_of(symbol, vec![padded, right], position)
            }
            symbol => self.operator_of(symbol, vec![left, right], position),
        }
    }

    /// An operator that is a function.
    pub(super) fn operator_of(
        &mut self,
        symbol: &str,
        operands: Vec<Typed>,
        position: Option<u32>,
    ) -> Result<Typed> {
        let types: Vec<DataType> = operands.iter().map(|operand| operand.data_type).collect();
        let reason = match resolve_operator(symbol, &types) {
            Ok(signature) => return self.apply(&signature, operands, position),
            Err(reason) => reason,
        };
        if let Some(error) = text_search_operator(symbol, &types) {
            return Err(error.or_position(position));
        }
        let shown = match *types.as_slice() {
            [only] => format!("{symbol} {only}"),
            [left, right] => format!("{left} {symbol} {right}"),
            _ => symbol.to_owned(),
        };
        let error = match reason {
            Unresolved::Missing => EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("operator does not exist: {shown}"),
            )
            .with_hint(
                "No operator matches the given name and argument types. You might need to add explicit type casts.",
            ),
            Unresolved::Ambiguous => EngineError::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("operator is not unique: {shown}"),
            )
            .with_hint("Several operators fit equally well. You might need to add explicit type casts."),
        };
        Err(error.or_position(position))
    }

    fn arithmetic(&mut self, l: Typed, op: ArithmeticOp, r: Typed, position: Option<u32>) -> Result<Typed> {
        let Some((left_type, right_type, result)) = op.resolve(l.data_type, r.data_type) else {
            // Operators of dates and times are functions.
            return self.operator_of(op.symbol(), vec![l, r], position);
        };
        let l = Box::new(self.coerce(l, left_type, position)?);
        let r = Box::new(self.coerce(r, right_type, position)?);
        Ok(Typed::new(
            fold(Expr::Arithmetic {
                op,
                left: l,
                right: r,
            }),
            result,
        ))
    }
}
