//! From a syntax tree to an expression as PostgreSQL has it.

use std::borrow::Cow;

use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

use super::node::{Access, Node, QueryNode, column, print};
use super::operand::{Typed, coerced, converted, operand_types, operands, operator};
use super::{Layout, Printer, unprinted};
use crate::bind::{columns_of, normal, plain_name};
use crate::common_type::common_type;
use crate::error::Result;
use crate::function::{self, quote_identifier};
use crate::type_name;
use crate::value::DataType;
use crate::value::user_type::{UserType, definition_of};

impl Printer<'_> {
    /// The expression of a tree.
    pub(super) fn node(&mut self, tree: &ast::Expr) -> Result<Typed> {
        crate::stack::checkpoint(|| self.node_here(tree))
    }

    fn node_here(&mut self, tree: &ast::Expr) -> Result<Typed> {
        use ast::Expr as E;
        Ok(match tree {
            E::Nested(inner) => self.node(inner)?,
            E::Identifier(ident) => self.column(ident, tree)?,
            E::CompoundIdentifier(parts) => match parts.last() {
                Some(ident) => self.column(ident, tree)?,
                None => return Err(unprinted()),
            },
            E::Value(value) => literal(&value.value)?,
            E::TypedString(typed) => {
                let (data_type, typmod) = type_name::written(&typed.data_type)?;
                let literal = literal(&typed.value.value)?;
                typed_as(converted(literal, data_type, typmod, false)?, data_type, typmod)
            }
            E::Cast { expr, data_type, .. } => {
                let (data_type, typmod) = type_name::written(data_type)?;
                if let Some(row) = self.row_of_type(expr, data_type)? {
                    return Ok(row);
                }
                if let (E::Array(array), Some(element)) = (bare(expr), data_type.element()) {
                    let node = self.array_of(&array.elem, (element, typmod), data_type, false)?;
                    return Ok(typed_as(node, data_type, typmod));
                }
                let argument = self.node(expr)?;
                typed_as(converted(argument, data_type, typmod, false)?, data_type, typmod)
            }
            E::Interval(interval) => {
                let typmod = type_name::literal_modifier(interval)?;
                let ast::Expr::Value(value) = &*interval.value else {
                    return Err(unprinted());
                };
                let literal = literal(&value.value)?;
                typed_as(
                    converted(literal, DataType::Interval, typmod, false)?,
                    DataType::Interval,
                    typmod,
                )
            }
            E::UnaryOp { op, expr } => self.unary(*op, expr)?,
            E::BinaryOp { left, op, right } => self.binary(left, op, right)?,
            E::AtTimeZone { timestamp, time_zone } => {
                let of = self.node(timestamp)?.node;
                let zone = self.node(time_zone)?;
                let zone = match zone.data_type {
                    DataType::Interval => zone.node,
                    _ => coerced(zone, DataType::Text)?,
                };
                let texts = ["(", " AT TIME ZONE ", ")"].map(str::to_owned).to_vec();
                Typed::new(
                    Node::Special {
                        texts,
                        arguments: vec![of, zone],
                        closed: false,
                    },
                    self.type_of(tree).0,
                )
            }
            E::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(tree, operand.as_deref(), conditions, else_result.as_deref())?,
            E::Array(array) => self.array(tree, &array.elem)?,
            E::CompoundFieldAccess { root, access_chain } => self.part(tree, root, access_chain)?,
            E::Subquery(query) => {
                let text = self.inner_query(query)?;
                let (data_type, typmod) = self.type_of(tree);
                typed_as(query_node(None, "", text), data_type, typmod)
            }
            E::Exists { subquery, negated } => {
                let exists = query_node(None, "EXISTS ", self.inner_query(subquery)?);
                condition(not_if(*negated, exists))
            }
            E::Tuple(_) => self.row(tree)?,
            E::Function(_) if columns_of(tree).is_some() => self.row(tree)?,
            E::Function(call) => self.call(tree, call)?,
            E::Collate { expr, collation } => {
                let collation = plain_name(collation)?;
                let of = coerced(self.node(expr)?, DataType::Text)?;
                let node = Node::Collate(Box::new(of), format!("\"{collation}\""));
                Typed::new(node, DataType::Text)
            }
            E::Ceil { expr, .. } => self.plain_call(tree, "ceil", &[expr])?,
            E::Floor { expr, .. } => self.plain_call(tree, "floor", &[expr])?,
            _ => self.predicate(tree)?,
        })
    }

    /// The expression of a tree that is a condition by its form.
    fn predicate(&mut self, tree: &ast::Expr) -> Result<Typed> {
        use ast::Expr as E;
        Ok(match tree {
            E::IsNull(inner) => self.is(inner, "IS NULL")?,
            E::IsNotNull(inner) => self.is(inner, "IS NOT NULL")?,
            E::IsTrue(inner) => self.is(inner, "IS TRUE")?,
            E::IsNotTrue(inner) => self.is(inner, "IS NOT TRUE")?,
            E::IsFalse(inner) => self.is(inner, "IS FALSE")?,
            E::IsNotFalse(inner) => self.is(inner, "IS NOT FALSE")?,
            E::IsUnknown(inner) => self.is(inner, "IS UNKNOWN")?,
            E::IsNotUnknown(inner) => self.is(inner, "IS NOT UNKNOWN")?,
            E::IsDistinctFrom(left, right) => self.distinct(left, right, false)?,
            E::IsNotDistinctFrom(left, right) => self.distinct(left, right, true)?,
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated)?,
            E::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let test = self.node(expr)?;
                let inside = self.test_of_query(test, "=", " IN ", subquery)?;
                condition(not_if(*negated, inside))
            }
            E::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, false)?,
            E::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, true)?,
            E::Between {
                expr,
                negated,
                low,
                high,
            } => self.between(expr, *negated, low, high)?,
            E::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            }
            | E::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => {
                let symbol = match (matches!(tree, E::ILike { .. }), *negated) {
                    (false, false) => "~~",
                    (false, true) => "!~~",
                    (true, false) => "~~*",
                    (true, true) => "!~~*",
                };
                self.like(expr, pattern, escape_char.as_deref(), symbol)?
            }
            E::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => {
                let left = self.node(expr)?;
                let mut arguments = vec![coerced(self.node(pattern)?, DataType::Text)?];
                if let Some(escape) = escape_char {
                    arguments.push(coerced(self.node(escape)?, DataType::Text)?);
                }
                let pattern = Node::Call {
                    name: "similar_to_escape".to_owned(),
                    arguments,
                };
                let symbol = if *negated { "!~" } else { "~" };
                condition(operator(symbol, left, Typed::new(pattern, DataType::Text))?)
            }
            _ => return Err(unprinted()),
        })
    }

    /// `row(a, b)`
    fn row(&mut self, tree: &ast::Expr) -> Result<Typed> {
        let mut arguments = Vec::new();
        for column in columns_of(tree).ok_or_else(unprinted)? {
            match column {
                Cow::Borrowed(column) => {
                    let field = self.node(column)?;
                    arguments.push(with_row_cast(field.node, field.data_type));
                }
                Cow::Owned(_) => return Err(unprinted()),
            }
        }
        let name = "ROW".to_owned();
        Ok(Typed::new(Node::Call { name, arguments }, DataType::Record))
    }

    /// `row(a, b)::t`, each value cast to its field's type; `None` for another cast.
    fn row_of_type(&mut self, tree: &ast::Expr, data_type: DataType) -> Result<Option<Typed>> {
        let definition = definition_of(data_type);
        let composite = definition.as_deref().and_then(UserType::composite);
        let (Some(columns), Some(composite)) = (columns_of(tree), composite) else {
            return Ok(None);
        };
        let mut arguments = Vec::with_capacity(columns.len());
        for (column, field) in columns.into_iter().zip(&composite.fields) {
            let Cow::Borrowed(column) = column else {
                return Err(unprinted());
            };
            let value = self.node(column)?;
            let value = converted(value, field.data_type, field.typmod, false)?;
            arguments.push(with_row_cast(value, field.data_type));
        }
        let mut texts = vec![", ".to_owned(); arguments.len().saturating_sub(1)];
        texts.insert(0, "ROW(".to_owned());
        texts.push(format!(")::{data_type}"));
        let node = Node::Special {
            texts,
            arguments,
            closed: true,
        };
        Ok(Some(Typed::new(node, data_type)))
    }

    /// The type that the binder found for a tree.
    pub(super) fn type_of(&self, tree: &ast::Expr) -> (DataType, i32) {
        self.notes.type_of(tree).unwrap_or((DataType::Unknown, -1))
    }

    fn column(&mut self, ident: &ast::Ident, tree: &ast::Expr) -> Result<Typed> {
        let (data_type, typmod) = self.type_of(tree);
        let node = match self.notes.column(ident) {
            Some(found) => self.names.column(found),
            None => word(&ident.value.to_lowercase()).ok_or_else(unprinted)?,
        };
        Ok(typed_as(node, data_type, typmod))
    }

    fn unary(&mut self, op: UnaryOperator, inner: &ast::Expr) -> Result<Typed> {
        let operand = self.node(inner)?;
        if op == UnaryOperator::Not {
            return Ok(condition(Node::Not(Box::new(coerced(operand, DataType::Bool)?))));
        }
        let data_type = operand.data_type;
        if let (
            UnaryOperator::Minus,
            Node::Constant {
                text: Some(text),
                typmod,
                ..
            },
        ) = (op, &operand.node)
            && data_type != DataType::Unknown
            && matches!(inner, ast::Expr::Value(_))
        {
            let text = Some(format!("-{text}"));
            return Ok(Typed::new(
                Node::Constant {
                    text,
                    data_type,
                    typmod: *typmod,
                },
                data_type,
            ));
        }
        let symbol = match op {
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::BitwiseNot => "~",
            UnaryOperator::PGAbs => "@",
            UnaryOperator::PGSquareRoot => "|/",
            UnaryOperator::PGCubeRoot => "||/",
            _ => return Err(unprinted()),
        };
        let to = match op {
            UnaryOperator::PGSquareRoot | UnaryOperator::PGCubeRoot => DataType::Float8,
            _ if data_type == DataType::Unknown => DataType::Float8,
            _ => data_type.base(),
        };
        Ok(Typed::new(
            Node::Operator {
                symbol: symbol.to_owned(),
                left: None,
                right: Box::new(coerced(operand, to)?),
            },
            to,
        ))
    }

    fn binary(&mut self, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr) -> Result<Typed> {
        if matches!(op, BinaryOperator::And | BinaryOperator::Or) {
            let and = *op == BinaryOperator::And;
            // A chain is one; what BETWEEN and IN make is not part of it.
            let mut first = left;
            while let ast::Expr::Nested(inner) = first {
                first = inner;
            }
            let is_chain = matches!(first, ast::Expr::BinaryOp { op: inner, .. } if inner == op);
            let left = coerced(self.node(left)?, DataType::Bool)?;
            let right = coerced(self.node(right)?, DataType::Bool)?;
            let mut parts = match left {
                Node::And(parts) if and && is_chain => parts,
                Node::Or(parts) if !and && is_chain => parts,
                one => vec![one],
            };
            parts.push(right);
            return Ok(condition(if and { Node::And(parts) } else { Node::Or(parts) }));
        }
        if *op == BinaryOperator::Overlaps {
            return self.overlaps(left, right);
        }
        let symbol = symbol_of(op);
        if let (ast::Expr::Tuple(left), ast::Expr::Tuple(right)) = (left, right) {
            return self.rows(&symbol, left, right);
        }
        let (left, right) = (self.node(left)?, self.node(right)?);
        let data_type = self.result_of(&symbol, left.data_type, right.data_type);
        Ok(Typed::new(operator(&symbol, left, right)?, data_type))
    }

    /// `(a, b) OVERLAPS (c, d)`.
    fn overlaps(&mut self, left: &ast::Expr, right: &ast::Expr) -> Result<Typed> {
        let (Some(left), Some(right)) = (columns_of(left), columns_of(right)) else {
            return Err(unprinted());
        };
        let mut nodes = Vec::with_capacity(4);
        for column in left.iter().chain(&right) {
            nodes.push(self.node(column)?);
        }
        let types: Vec<DataType> = nodes.iter().map(|typed| typed.data_type).collect();
        let signature = function::resolve("overlaps", &types).map_err(|_| unprinted())?;
        let arguments = nodes.into_iter().zip(&signature.arguments);
        let arguments = arguments.map(|(typed, to)| coerced(typed, *to));
        let texts = ["((", ", ", ") OVERLAPS (", ", ", "))"];
        Ok(condition(Node::Special {
            texts: texts.map(str::to_owned).to_vec(),
            arguments: arguments.collect::<Result<_>>()?,
            closed: true,
        }))
    }

    /// A comparison of rows, field by field.
    fn rows(&mut self, symbol: &str, left: &[ast::Expr], right: &[ast::Expr]) -> Result<Typed> {
        // An order of rows is no chain of conditions.
        if !matches!(symbol, "=" | "<>") || left.len() != right.len() || left.is_empty() {
            return Err(unprinted());
        }
        let mut parts = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (self.node(left)?, self.node(right)?);
            parts.push(operator(symbol, left, right)?);
        }
        Ok(condition(match (parts.len(), symbol) {
            (1, _) => parts.remove(0),
            (_, "=") => Node::And(parts),
            _ => Node::Or(parts),
        }))
    }

    /// A row in a list of rows.
    fn in_rows(&mut self, symbol: &str, left: &[ast::Expr], list: &[ast::Expr]) -> Result<Typed> {
        let mut parts = Vec::with_capacity(list.len());
        for right in list {
            let ast::Expr::Tuple(right) = right else {
                return Err(unprinted());
            };
            parts.push(self.rows(symbol, left, right)?.node);
        }
        Ok(condition(match (parts.len(), symbol) {
            (1, _) => parts.remove(0),
            (_, "=") => Node::Or(parts),
            _ => Node::And(parts),
        }))
    }

    /// The type of an operator's result.
    fn result_of(&self, symbol: &str, left: DataType, right: DataType) -> DataType {
        use crate::value::arithmetic::ArithmeticOp;
        let (left, right) = (left.base(), right.base());
        let arithmetic = match symbol {
            "+" => ArithmeticOp::Add,
            "-" => ArithmeticOp::Subtract,
            "*" => ArithmeticOp::Multiply,
            "/" => ArithmeticOp::Divide,
            "%" => ArithmeticOp::Remainder,
            "||" if left.is_array() => return left,
            "||" if right.is_array() => return right,
            "||" => return DataType::Text,
            "^" => return operand_types(symbol, left, right).0,
            "=" | "<>" | "<" | "<=" | ">" | ">=" => return DataType::Bool,
            other if other.contains('~') => return DataType::Bool,
            other => {
                let found = crate::function::resolve_operator(other, &[left, right]);
                return found.map_or(DataType::Bool, |signature| signature.result);
            }
        };
        arithmetic
            .resolve(left, right)
            .map_or(left, |(_, _, result)| result)
    }

    fn is(&mut self, inner: &ast::Expr, words: &'static str) -> Result<Typed> {
        let operand = self.node(inner)?;
        let to = match (operand.data_type, words) {
            (DataType::Unknown, "IS NULL" | "IS NOT NULL") => DataType::Text,
            (DataType::Unknown, _) => DataType::Bool,
            (known, _) => known,
        };
        Ok(condition(Node::Is(Box::new(coerced(operand, to)?), words)))
    }

    fn distinct(&mut self, left: &ast::Expr, right: &ast::Expr, negated: bool) -> Result<Typed> {
        let (left, right) = (self.node(left)?, self.node(right)?);
        let (left, right) = operands("=", left, right)?;
        let distinct = Node::Distinct(Box::new(left), Box::new(right));
        Ok(condition(not_if(negated, distinct)))
    }

    /// IN over a list: the constants as an array if there are several, and everything else by itself.
    fn in_list(&mut self, left: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Typed> {
        let symbol = if negated { "<>" } else { "=" };
        if let ast::Expr::Tuple(left) = left {
            return self.in_rows(symbol, left, list);
        }
        let left = self.node(left)?;
        let mut nodes = Vec::with_capacity(list.len());
        for tree in list {
            nodes.push(self.node(tree)?);
        }
        let (with_columns, mut constants): (Vec<Typed>, Vec<Typed>) =
            nodes.into_iter().partition(|typed| has_column(&typed.node));
        let mut parts = Vec::new();
        let mut alone = with_columns;
        if constants.len() > 1 {
            let mut types: Vec<DataType> = constants.iter().map(|typed| typed.data_type).collect();
            types.insert(0, left.data_type);
            let element = common_type(&types).ok_or_else(unprinted)?;
            let array_type = element.array_type().ok_or_else(unprinted)?;
            let elements = constants.drain(..).map(|typed| coerced(typed, element));
            let array = Node::Array(elements.collect::<Result<_>>()?, array_type);
            let (to_left, to_element) = operand_types(symbol, left.data_type, element);
            let to = to_element.array_type().ok_or_else(unprinted)?;
            parts.push(Node::OverArray {
                left: Box::new(coerced(left.clone(), to_left)?),
                symbol: symbol.to_owned(),
                all: negated,
                array: Box::new(coerced(Typed::new(array, array_type), to)?),
            });
        } else {
            // In the order of the list.
            constants.append(&mut alone);
            alone = constants;
        }
        self.repeated(&left.node, alone.len())?;
        for typed in alone {
            parts.push(operator(symbol, left.clone(), typed)?);
        }
        Ok(condition(match (parts.len(), negated) {
            (1, _) => parts.remove(0),
            (_, true) => Node::And(parts),
            (_, false) => Node::Or(parts),
        }))
    }

    fn test_of_query(&mut self, test: Typed, symbol: &str, words: &str, query: &ast::Query) -> Result<Node> {
        let result = self.notes.query_type(query).unwrap_or(DataType::Unknown);
        let (to, _) = operand_types(symbol, test.data_type, result);
        let test = coerced(test, to)?;
        let text = self.inner_query(query)?;
        Ok(query_node(Some((test, words.to_owned())), "", text))
    }

    fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Typed> {
        let symbol = symbol_of(op);
        let left = self.node(left)?;
        let mut inner = right;
        while let ast::Expr::Nested(nested) = inner {
            inner = nested;
        }
        if let ast::Expr::Subquery(query) = inner {
            let words = match (all, symbol.as_str()) {
                (false, "=") => " IN ".to_owned(),
                (false, symbol) => format!(" {symbol} ANY "),
                (true, symbol) => format!(" {symbol} ALL "),
            };
            return Ok(condition(self.test_of_query(left, &symbol, &words, query)?));
        }
        let array = self.node(right)?;
        let element = match array.data_type {
            DataType::Unknown => left.data_type,
            array => array.element().ok_or_else(unprinted)?,
        };
        let (to_left, to_element) = operand_types(&symbol, left.data_type, element);
        let to = to_element.array_type().ok_or_else(unprinted)?;
        Ok(condition(Node::OverArray {
            left: Box::new(coerced(left, to_left)?),
            symbol,
            all,
            array: Box::new(coerced(array, to)?),
        }))
    }

    fn between(
        &mut self,
        tree: &ast::Expr,
        negated: bool,
        low: &ast::Expr,
        high: &ast::Expr,
    ) -> Result<Typed> {
        let input = self.node(tree)?;
        let (symmetric, low) = match low {
            // A mark of the parser.
            ast::Expr::Prefixed { value, .. } => (true, &**value),
            low => (false, low),
        };
        let (low, high) = (self.node(low)?, self.node(high)?);
        self.repeated(&input.node, if symmetric { 3 } else { 1 })?;
        self.repeated(&low.node, usize::from(symmetric))?;
        self.repeated(&high.node, usize::from(symmetric))?;
        let within = |low: Typed, high: Typed| -> Result<Node> {
            let (from, to) = if negated { ("<", ">") } else { (">=", "<=") };
            let parts = vec![
                operator(from, input.clone(), low)?,
                operator(to, input.clone(), high)?,
            ];
            Ok(if negated {
                Node::Or(parts)
            } else {
                Node::And(parts)
            })
        };
        if !symmetric {
            return Ok(condition(within(low, high)?));
        }
        let both = vec![within(low.clone(), high.clone())?, within(high, low)?];
        Ok(condition(if negated { Node::And(both) } else { Node::Or(both) }))
    }

    fn like(
        &mut self,
        left: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        symbol: &str,
    ) -> Result<Typed> {
        let (left, mut pattern) = (self.node(left)?, self.node(pattern)?);
        if let Some(escape) = escape {
            let arguments = vec![
                coerced(pattern, DataType::Text)?,
                coerced(self.node(escape)?, DataType::Text)?,
            ];
            pattern = Typed::new(
                Node::Call {
                    name: "like_escape".to_owned(),
                    arguments,
                },
                DataType::Text,
            );
        }
        Ok(condition(operator(symbol, left, pattern)?))
    }

    fn case(
        &mut self,
        tree: &ast::Expr,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Typed> {
        let (data_type, typmod) = self.type_of(tree);
        let operand = operand.map(|tree| self.node(tree)).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        for branch in conditions {
            let test = self.node(&branch.condition)?;
            let test = match &operand {
                None => coerced(test, DataType::Bool)?,
                Some(operand) => {
                    self.repeated(&operand.node, 1)?;
                    operands("=", operand.clone(), test)?.1
                }
            };
            branches.push((test, coerced(self.node(&branch.result)?, data_type)?));
        }
        // As it is: each comparison brings it to the type that it needs.
        let shown = operand.map(|operand| match operand.data_type {
            DataType::Unknown => coerced(operand, DataType::Text),
            _ => Ok(operand.node),
        });
        let otherwise = match otherwise {
            Some(tree) => coerced(self.node(tree)?, data_type)?,
            None => Node::Constant {
                text: None,
                data_type,
                typmod: -1,
            },
        };
        Ok(typed_as(
            Node::Case {
                operand: shown.transpose()?.map(Box::new),
                branches,
                otherwise: Box::new(otherwise),
            },
            data_type,
            typmod,
        ))
    }

    fn array(&mut self, tree: &ast::Expr, elements: &[ast::Expr]) -> Result<Typed> {
        let mut nodes = Vec::with_capacity(elements.len());
        if elements
            .iter()
            .any(|element| matches!(element, ast::Expr::Array(_)))
        {
            let data_type = self.type_of(tree).0;
            let element = data_type.element().ok_or_else(unprinted)?;
            let node = self.array_of(elements, (element, -1), data_type, true)?;
            return Ok(Typed::new(node, data_type));
        }
        for element in elements {
            nodes.push(self.node(element)?);
        }
        let types: Vec<DataType> = nodes.iter().map(|typed| typed.data_type).collect();
        let element = match self.type_of(tree).0.element() {
            Some(element) => element,
            None => match common_type(&types) {
                Some(DataType::Unknown) | None => return Err(unprinted()),
                Some(element) => element,
            },
        };
        let data_type = element.array_type().ok_or_else(unprinted)?;
        let nodes = nodes.into_iter().map(|typed| coerced(typed, element));
        Ok(Typed::new(
            Node::Array(nodes.collect::<Result<_>>()?, data_type),
            data_type,
        ))
    }

    /// An array whose elements, and those of lists among them, become values of a type: by themselves, or as a cast of the
    /// array to `data_type` says.
    fn array_of(
        &mut self,
        elements: &[ast::Expr],
        (element, typmod): (DataType, i32),
        data_type: DataType,
        implicit: bool,
    ) -> Result<Node> {
        let nodes = elements.iter().map(|tree| match tree {
            ast::Expr::Array(inner) => self.array_of(&inner.elem, (element, typmod), data_type, implicit),
            other => converted(self.node(other)?, element, typmod, implicit),
        });
        Ok(Node::Array(nodes.collect::<Result<_>>()?, data_type))
    }

    fn part(&mut self, tree: &ast::Expr, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Typed> {
        let of = self.node(root)?;
        let mut steps = Vec::with_capacity(chain.len());
        for access in chain {
            let index = match access {
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => index,
                ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => {
                    steps.push(Access::Field(normal(name)));
                    continue;
                }
                _ => return Err(unprinted()),
            };
            let subscript = self.node(index)?;
            steps.push(Access::Subscript(match of.data_type {
                DataType::Jsonb if subscript.data_type == DataType::Unknown => {
                    coerced(subscript, DataType::Text)?
                }
                DataType::Jsonb => subscript.node,
                _ => coerced(subscript, DataType::Int4)?,
            }));
        }
        let (data_type, typmod) = self.type_of(tree);
        // A field of a relation's row is its column.
        if let (Node::Column(row), [Access::Field(name)]) = (&of.node, steps.as_slice())
            && let Some(relation) = row.strip_suffix(".*")
        {
            let column = Node::Column(format!("{relation}.{}", quote_identifier(name)));
            return Ok(typed_as(column, data_type, typmod));
        }
        Ok(typed_as(
            Node::Part {
                of: Box::new(of.node),
                steps,
            },
            data_type,
            typmod,
        ))
    }

    /// The text of an expression by itself.
    pub(super) fn shown(&mut self, out: &mut Layout, tree: &ast::Expr, implicit: bool) -> Result<()> {
        let typed = self.node(tree)?;
        let data_type = typed.data_type;
        let node = match data_type {
            DataType::Unknown => coerced(typed, DataType::Text)?,
            _ => typed.node,
        };
        print(out, &node, self.pretty, implicit);
        out.push(&row_cast(&node, data_type));
        Ok(())
    }
}

/// A field of ROW(…), with its cast.
fn with_row_cast(node: Node, data_type: DataType) -> Node {
    let cast = row_cast(&node, data_type);
    match node {
        Node::Column(name) => Node::Column(name + &cast),
        other => other,
    }
}

/// The cast behind a whole row where `t.*` by itself means the columns; nothing behind another expression.
pub(super) fn row_cast(node: &Node, data_type: DataType) -> String {
    match (node, data_type) {
        (Node::Column(name), DataType::Composite(_) | DataType::Record) if name.ends_with(".*") => {
            format!("::{data_type}")
        }
        _ => String::new(),
    }
}

/// A function that is written as a word.
pub(super) fn word(name: &str) -> Option<Node> {
    Some(Node::Word(match name {
        "current_date" => "CURRENT_DATE",
        "current_timestamp" => "CURRENT_TIMESTAMP",
        "localtimestamp" => "LOCALTIMESTAMP",
        "current_time" => "CURRENT_TIME",
        "localtime" => "LOCALTIME",
        "current_user" => "CURRENT_USER",
        "session_user" => "SESSION_USER",
        "user" => "USER",
        "current_role" => "CURRENT_ROLE",
        "current_catalog" => "CURRENT_CATALOG",
        "current_schema" => "CURRENT_SCHEMA",
        _ => return None,
    }))
}

/// A column of a relation, or of a join that merges two.
pub(super) fn named(relation: Option<&str>, name: &str) -> Node {
    column(relation, name)
}

pub(super) fn typed_as(node: Node, data_type: DataType, typmod: i32) -> Typed {
    Typed {
        node,
        data_type,
        typmod,
    }
}

fn condition(node: Node) -> Typed {
    Typed::new(node, DataType::Bool)
}

fn not_if(negated: bool, node: Node) -> Node {
    match negated {
        true => Node::Not(Box::new(node)),
        false => node,
    }
}

/// The expression without parentheses around it.
fn bare(mut tree: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = tree {
        tree = inner;
    }
    tree
}

/// An operator as it is written, without the schema that `operator(…)` names.
fn symbol_of(op: &BinaryOperator) -> String {
    match op {
        BinaryOperator::PGCustomBinaryOperator(parts) => parts.last().cloned().unwrap_or_default(),
        BinaryOperator::NotEq => "<>".to_owned(),
        other => other.to_string(),
    }
}

pub(super) fn query_node(test: Option<(Node, String)>, word: &'static str, text: String) -> Node {
    Node::Query(Box::new(QueryNode { test, word, text }))
}

/// True if an expression reads a column.
fn has_column(node: &Node) -> bool {
    match node {
        Node::Column(_) | Node::Query(_) | Node::Aggregate(_) => true,
        Node::Constant { .. } | Node::Word(_) => false,
        Node::Call { arguments, .. } | Node::Special { arguments, .. } => arguments.iter().any(has_column),
        Node::Cast { argument, .. } => has_column(argument),
        Node::Operator { left, right, .. } => left.as_deref().is_some_and(has_column) || has_column(right),
        Node::Array(nodes, _) | Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(has_column),
        Node::Not(node) | Node::Is(node, _) => has_column(node),
        _ => true,
    }
}

/// A literal; the type of a string is open.
pub(super) fn literal(value: &ast::Value) -> Result<Typed> {
    let constant = |text: Option<String>, data_type: DataType| {
        Typed::new(
            Node::Constant {
                text,
                data_type,
                typmod: -1,
            },
            data_type,
        )
    };
    Ok(match value {
        ast::Value::Number(digits, false) => {
            let data_type = match digits.parse::<i64>() {
                Ok(value) if i32::try_from(value).is_ok() => DataType::Int4,
                Ok(_) => DataType::Int8,
                Err(_) => DataType::Numeric,
            };
            let digits = match digits.strip_prefix('.') {
                Some(rest) => format!("0.{rest}"),
                None => digits.clone(),
            };
            constant(Some(digits), data_type)
        }
        ast::Value::SingleQuotedString(text)
        | ast::Value::EscapedStringLiteral(text)
        | ast::Value::UnicodeStringLiteral(text) => constant(Some(text.clone()), DataType::Unknown),
        ast::Value::DollarQuotedString(text) => constant(Some(text.value.clone()), DataType::Unknown),
        ast::Value::Boolean(truth) => {
            constant(Some(if *truth { "t" } else { "f" }.to_owned()), DataType::Bool)
        }
        ast::Value::Null => constant(None, DataType::Unknown),
        _ => return Err(unprinted()),
    })
}
