//! Queries made of queries: UNION, INTERSECT, EXCEPT, VALUES, parentheses.
//!
//! Each becomes the only leaf of a block, so that ORDER BY and LIMIT around it are those of any block.

use std::borrow::Cow;

use sqlparser::ast;

use super::list::Output;
use super::lock::{is_set_operation, refuse_locks_around};
use super::only_leaf::only_leaf;
use crate::bind::around::Around;
use crate::bind::json::require_comparable;
use crate::bind::row_columns::RowColumn;
use crate::bind::scope::{Hidden, Names, Scope, ScopeColumn, ScopeRelation, Since, Versions};
use crate::bind::{Binder, Typed};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::plan::{Column, SetOperator};
use crate::query::{Block, Leaf, Relation, Rows, SetOperation};
use crate::value::DataType;

impl Binder<'_> {
    /// The body of a query, or a side of a set operation.
    pub(in crate::bind) fn set_expression(&mut self, body: &ast::SetExpr, settle: bool) -> Result<Block> {
        match body {
            ast::SetExpr::Select(select) => self.select(select, None, settle),
            ast::SetExpr::Query(query) => self.query(query, settle),
            ast::SetExpr::SetOperation {
                op,
                set_quantifier,
                left,
                right,
            } => self.deeper(1, |binder| {
                binder.set_operation(*op, *set_quantifier, left, right)
            }),
            ast::SetExpr::Values(values) => self.values(values, settle),
            _ => Err(EngineError::not_supported("a data-changing query")),
        }
    }

    fn set_operation(
        &mut self,
        op: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        left: &ast::SetExpr,
        right: &ast::SetExpr,
    ) -> Result<Block> {
        let all = keeps_equal_rows(op, quantifier)?;
        let (around_left, around_right) = match op {
            ast::SetOperator::Intersect if all => (Some(Around::Intersect), Some(Around::Intersect)),
            ast::SetOperator::Except | ast::SetOperator::Minus => {
                (Some(Around::Except).filter(|_| all), Some(Around::Except))
            }
            _ => (None, None),
        };
        let left = self.maybe_within(around_left, |binder| binder.set_expression(left, false))?;
        let right = self.maybe_within(around_right, |binder| binder.set_expression(right, false))?;
        let (columns, operation) = self.set_of(op, all, left, right)?;
        Ok(only_leaf(columns, Rows::Set(Box::new(operation))))
    }

    /// A set operation of two queries: the columns of its result, and how they come from the columns of both.
    pub(in crate::bind) fn set_of(
        &mut self,
        op: ast::SetOperator,
        all: bool,
        mut left: Block,
        mut right: Block,
    ) -> Result<(Vec<Column>, SetOperation)> {
        let operator = match op {
            ast::SetOperator::Union => SetOperator::Union,
            ast::SetOperator::Intersect => SetOperator::Intersect,
            ast::SetOperator::Except | ast::SetOperator::Minus => SetOperator::Except,
        };
        if left.columns.len() != right.columns.len() {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("each {op} query must have the same number of columns"),
            ));
        }
        let mut columns = Vec::with_capacity(left.columns.len());
        let (mut left_columns, mut right_columns) = (Vec::new(), Vec::new());
        for number in 0..left.columns.len() {
            let (one, two) = (&left.columns[number], &right.columns[number]);
            let data_type = common_type(&[one.data_type, two.data_type]).ok_or_else(|| {
                EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "{op} types {} and {} cannot be matched",
                        one.data_type, two.data_type
                    ),
                )
            })?;
            if !(all && operator == SetOperator::Union) {
                require_comparable(data_type, "equality", None)?;
            }
            let same = one.data_type == two.data_type && one.type_modifier == two.type_modifier;
            columns.push(Column {
                type_modifier: if same { one.type_modifier } else { -1 },
                ..Column::computed(one.name.clone(), data_type)
            });
            left_columns.push(self.brought_to(data_type, number, &mut left)?);
            right_columns.push(self.brought_to(data_type, number, &mut right)?);
        }
        let types = columns.iter().map(|column| column.data_type).collect();
        let operation = SetOperation {
            operator,
            all,
            left,
            right,
            left_columns,
            right_columns,
            types,
        };
        Ok((columns, operation))
    }

    /// A column of a block as a type: in its projection as long as it has none, over its output row otherwise.
    fn brought_to(&mut self, data_type: DataType, number: usize, block: &mut Block) -> Result<Expr> {
        let column = &mut block.columns[number];
        if column.data_type == DataType::Unknown {
            let typed = Typed::new(block.projection[number].clone(), DataType::Unknown);
            block.projection[number] = self.coerce(typed, data_type, None)?;
            column.data_type = data_type;
        }
        let typed = Typed {
            expr: Expr::Column(number as u16),
            data_type: column.data_type,
            typmod: column.type_modifier,
        };
        self.coerce(typed, data_type, None)
    }

    /// VALUES as a query.
    fn values(&mut self, values: &ast::Values, settle: bool) -> Result<Block> {
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let mut scope = Scope::empty("VALUES");
            if row
                .iter()
                .any(|tree| matches!(tree, ast::Expr::QualifiedWildcard(..)))
            {
                let columns: Vec<RowColumn<'_>> = row.iter().map(Cow::Borrowed).collect();
                rows.push(self.row_of(&columns, &mut scope)?);
                continue;
            }
            let bound = row.iter().map(|tree| self.expression(tree, &mut scope));
            rows.push(bound.collect::<Result<Vec<Typed>>>()?);
        }
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "VALUES lists must all be the same length",
            ));
        }
        let mut columns = Vec::with_capacity(width);
        let mut converted: Vec<Vec<Expr>> = rows.iter().map(|_| Vec::with_capacity(width)).collect();
        for number in 0..width {
            let types: Vec<DataType> = rows.iter().map(|row| row[number].data_type).collect();
            let open = !settle && types.iter().all(|data_type| *data_type == DataType::Unknown);
            let data_type = if open {
                Some(DataType::Unknown)
            } else {
                common_type(&types)
            };
            let data_type = data_type.ok_or_else(|| {
                EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "VALUES types {} and {} cannot be matched",
                        types[0],
                        types[types.len() - 1]
                    ),
                )
            })?;
            for (row, into) in rows.iter().zip(&mut converted) {
                let typed = row[number].clone();
                into.push(if open {
                    typed.expr
                } else {
                    self.coerce(typed, data_type, None)?
                });
            }
            let mut column = Column::computed(format!("column{}", number + 1), data_type);
            // Records of one shape keep it.
            let shape = rows.first().map_or(-1, |row| row[number].typmod);
            if data_type == DataType::Record && rows.iter().all(|row| row[number].typmod == shape) {
                column.type_modifier = shape;
            }
            columns.push(column);
        }
        Ok(only_leaf(columns, Rows::Values(converted)))
    }

    /// ORDER BY, LIMIT and OFFSET around a query that has its own.
    pub(in crate::bind) fn around(&mut self, block: Block, query: &ast::Query) -> Result<Block> {
        refuse_locks_around(query)?;
        // A set operation and VALUES have no such clauses yet.
        let open = block.sort.is_empty() && block.limit.is_none() && block.offset.is_none();
        let plain = matches!(
            &block.from,
            Relation::Leaf(Leaf {
                rows: Rows::Set(_) | Rows::Values(_),
                ..
            })
        );
        let mut block = if open && plain {
            block
        } else {
            in_parentheses(block)
        };
        let names = Names::of_relation(ScopeRelation {
            schema: None,
            alias: String::new(),
            columns: described(&block.columns),
            table_oid: 0,
            row_type: None,
            nullable: false,
            present: None,
            hidden: Hidden::default(),
            versions: Versions::None,
            since: Since::default(),
        });
        let mut scope = Scope::of(names, "ORDER BY");
        let mut outputs: Vec<Output> = block
            .columns
            .iter()
            .zip(&block.projection)
            .map(|(column, expr)| Output {
                typed: Typed {
                    expr: expr.clone(),
                    data_type: column.data_type,
                    typmod: column.type_modifier,
                },
                name: column.name.clone(),
                origin: (column.table_oid, column.attribute),
            })
            .collect();
        let visible = outputs.len();
        block.sort = self.order_by(query.order_by.as_ref(), &mut scope, &mut outputs, false)?;
        if outputs.len() > visible && is_set_operation(&query.body) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            )
            .with_detail("Only result column names can be used, not expressions or functions.")
            .with_hint(
                "Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
            ));
        }
        block.projection = outputs.into_iter().map(|output| output.typed.expr).collect();
        (block.limit, block.offset) = self.limit(query)?;
        self.lock_rows(&query.locks, &Names::default(), &mut block)?;
        Ok(block)
    }
}

/// True for ALL.
pub(in crate::bind) fn keeps_equal_rows(
    op: ast::SetOperator,
    quantifier: ast::SetQuantifier,
) -> Result<bool> {
    match quantifier {
        ast::SetQuantifier::All => Ok(true),
        ast::SetQuantifier::None | ast::SetQuantifier::Distinct => Ok(false),
        _ => Err(EngineError::not_supported(format!("{op} BY NAME"))),
    }
}

fn described(columns: &[Column]) -> Vec<ScopeColumn> {
    let numbered = columns.iter().enumerate();
    numbered
        .map(|(number, column)| ScopeColumn {
            name: column.name.clone(),
            typed: Typed {
                expr: Expr::Column(number as u16),
                data_type: column.data_type,
                typmod: column.type_modifier,
            },
            origin: (column.table_oid, column.attribute),
        })
        .collect()
}

/// A query as the only leaf of another. It is given the arguments that the other has.
fn in_parentheses(block: Block) -> Block {
    let arguments = (0..block.arguments_read()).map(Expr::Outer).collect();
    let columns = block.columns.clone();
    only_leaf(
        columns,
        Rows::Query {
            block: Box::new(block),
            arguments,
        },
    )
}
