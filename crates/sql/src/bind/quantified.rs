//! ANY, SOME and ALL behind an operator, over a query's rows or an array's elements.
//!
//! | form | becomes |
//! | --- | --- |
//! | `x = ANY (query)`, and with another comparison | [`SubqueryForm::Quantified`](crate::expr::SubqueryForm) |
//! | `x = ANY (array)` | [`Expr::Quantified`], or a list of IN (`array`) |
//! | `x LIKE ANY (…)`, `x <<= ALL (…)` and any other operator that gives a truth value | an [`OperatorTest`]: the operator bound once, over a row of its two sides |

use sqlparser::ast::{self, BinaryOperator};

use crate::bind::operator::{is_arithmetic, symbol_of};
use crate::bind::predicate::comparison;
use crate::bind::row_columns::query_of;
use crate::bind::scope::Scope;
use crate::bind::{Binder, Typed, boolean};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{Expr, OperatorTest, Subquery, SubqueryForm};
use crate::function::resolve_operator;
use crate::value::DataType;

/// The values behind ANY or ALL.
enum Others<'a> {
    /// The rows of a query.
    Query(&'a ast::Query),
    /// The elements of an array.
    Array(&'a ast::Expr),
}

impl<'a> Others<'a> {
    fn of(tree: &'a ast::Expr) -> Others<'a> {
        query_of(tree).map_or(Others::Array(tree), Others::Query)
    }
}

impl Binder<'_> {
    /// `left op ANY (right)`; with `all`, ALL.
    pub(super) fn quantified(
        &mut self,
        left: Typed,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        match (comparison(op), Others::of(right)) {
            (Some(op), Others::Query(query)) => {
                let compared = self.compared_with_query(left, op, query, all, scope, position)?;
                Ok(boolean(compared))
            }
            (Some(op), Others::Array(array)) => {
                self.quantified_over_array(left, op, array, all, scope, position)
            }
            (None, others) => {
                let symbol = symbol_of(op).map_err(|error| error.or_position(position))?;
                self.tested(left, &symbol, others, all, scope, position)
            }
        }
    }

    /// `left LIKE ANY (…)`, and with NOT, ILIKE and ALL.
    pub(super) fn quantified_like(
        &mut self,
        tree: &ast::Expr,
        left: Typed,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let (ast::Expr::Like {
            any,
            negated,
            pattern,
            escape_char,
            ..
        }
        | ast::Expr::ILike {
            any,
            negated,
            pattern,
            escape_char,
            ..
        }) = tree
        else {
            return Err(EngineError::internal("LIKE ANY of something else"));
        };
        if escape_char.is_some() {
            let message = "syntax error at or near \"escape\"";
            return Err(EngineError::new(SqlState::SYNTAX_ERROR, message).or_position(position));
        }
        let symbol = match (negated, matches!(tree, ast::Expr::ILike { .. })) {
            (false, false) => "~~",
            (true, false) => "!~~",
            (false, true) => "~~*",
            (true, true) => "!~~*",
        };
        let others = match all_of(pattern) {
            Some(patterns) if !any => patterns,
            _ => Others::of(pattern),
        };
        self.tested(left, symbol, others, !any, scope, position)
    }

    /// An operator that is no comparison.
    fn tested(
        &mut self,
        left: Typed,
        symbol: &str,
        others: Others<'_>,
        all: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let left = left.of_base();
        let query = match others {
            Others::Query(query) => query,
            Others::Array(array) => return self.tested_over_array(left, symbol, array, all, scope, position),
        };
        let (number, arguments, columns) = self.subquery(query, scope)?;
        let [column] = columns.as_slice() else {
            let count = if columns.is_empty() { "few" } else { "many" };
            let message = format!("subquery has too {count} columns");
            return Err(EngineError::new(SqlState::SYNTAX_ERROR, message).or_position(position));
        };
        let (operand, _, holds) = self.operator_test(left, symbol, column.data_type, position)?;
        if holds.data_type != DataType::Bool {
            let message = format!(
                "row comparison operator must yield type boolean, not type {}",
                holds.data_type
            );
            return Err(EngineError::new(SqlState::DATATYPE_MISMATCH, message).or_position(position));
        }
        let form = SubqueryForm::Tested {
            test: test(symbol, all, holds),
            operand: Box::new(operand),
        };
        Ok(boolean(Expr::Subquery(Box::new(Subquery {
            number,
            arguments,
            form,
        }))))
    }

    fn tested_over_array(
        &mut self,
        left: Typed,
        symbol: &str,
        array: &ast::Expr,
        all: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let wrong =
            |message| Err(EngineError::new(SqlState::WRONG_OBJECT_TYPE, message).or_position(position));
        let array = self.expression(array, scope)?.of_base();
        let element = match (array.data_type.element(), array.data_type) {
            (Some(element), _) => element,
            (None, DataType::Unknown) => DataType::Unknown,
            _ => return wrong("op ANY/ALL (array) requires array on right side"),
        };
        let no_truth = "op ANY/ALL (array) requires operator to yield boolean";
        let (input, element_type, holds) = self.operator_test(left, symbol, element, position)?;
        if holds.data_type != DataType::Bool {
            return wrong(no_truth);
        }
        let array = match element {
            DataType::Unknown => {
                let array_type = element_type.array_type().ok_or_else(|| {
                    let message = format!("could not find array type for data type {element_type}");
                    EngineError::new(SqlState::UNDEFINED_OBJECT, message).or_position(position)
                })?;
                self.coerce(array, array_type, position)?
            }
            _ => array.expr,
        };
        Ok(boolean(Expr::TestElements {
            test: test(symbol, all, holds),
            input: Box::new(input),
            array: Box::new(array),
        }))
    }

    /// The operator over a row of its left side and a value of type `other`: the left side as it wants it, the type
    /// that it wants of the value, and what it gives.
    fn operator_test(
        &mut self,
        left: Typed,
        symbol: &str,
        other: DataType,
        position: Option<u32>,
    ) -> Result<(Expr, DataType, Typed)> {
        let unknown = DataType::Unknown;
        let mut types = [left.data_type, other];
        if types.contains(&unknown) {
            let wanted = match symbol {
                "~~" | "!~~" | "~~*" | "!~~*" => vec![DataType::Text; 2],
                // It is an error in any case, whose kind the operator's result decides.
                symbol if is_arithmetic(symbol) => match types {
                    [DataType::Unknown, DataType::Unknown] => vec![DataType::Text; 2],
                    [DataType::Unknown, known] | [known, _] => vec![known; 2],
                },
                symbol => resolve_operator(symbol, &types).map_or(Vec::new(), |found| found.arguments),
            };
            let [left_wanted, other_wanted] = wanted[..] else {
                return Err(self.no_operator(types[0], symbol, types[1], position));
            };
            let known = |found, wanted| if found == unknown { wanted } else { found };
            types = [known(types[0], left_wanted), known(types[1], other_wanted)];
        }
        let [left_type, other_type] = types;
        let operand = match left.data_type {
            DataType::Unknown => self.coerce(left, left_type, position)?,
            _ => left.expr,
        };
        let side = |number, data_type| Typed::new(Expr::Column(number), data_type);
        let holds = self.operation(side(0, left_type), symbol, side(1, other_type), position)?;
        Ok((operand, other_type, holds))
    }
}

fn test(symbol: &str, all: bool, holds: Typed) -> Box<OperatorTest> {
    Box::new(OperatorTest {
        symbol: symbol.into(),
        all,
        holds: holds.expr,
    })
}

/// The values in `ALL (…)` behind LIKE, which the parser takes for a call.
fn all_of(pattern: &ast::Expr) -> Option<Others<'_>> {
    let ast::Expr::Function(call) = pattern else {
        return None;
    };
    let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else {
        return None;
    };
    if name.quote_style.is_some() || !name.value.eq_ignore_ascii_case("all") {
        return None;
    }
    match &call.args {
        ast::FunctionArguments::Subquery(query) => Some(Others::Query(query)),
        ast::FunctionArguments::List(list) => match list.args.as_slice() {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree))] => Some(Others::of(tree)),
            _ => None,
        },
        ast::FunctionArguments::None => None,
    }
}

/// True if the pattern of LIKE is `ALL (…)`.
pub(super) fn is_all(pattern: &ast::Expr) -> bool {
    all_of(pattern).is_some()
}
