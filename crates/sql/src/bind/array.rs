//! Arrays in expressions: ARRAY\[…\], subscripts, ANY and ALL, and the operators over arrays.

use sqlparser::ast;

use crate::bind::types::comparison_type;
use crate::bind::{Binder, Scope, Typed, boolean, fold};
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr};
use crate::function::{Function, array};
use crate::value::DataType;
use crate::value::array::{DIMENSIONS_MAX, too_many_dimensions};
use crate::value::cast::{CastContext, can_cast};

/// A call of a function of arrays.
fn call(function: Function, arguments: Vec<Expr>) -> Expr {
    fold(Expr::Call { function, arguments })
}

impl Binder<'_> {
    /// ARRAY\[…\]; its type is that of its elements, brought to one.
    pub(super) fn array(
        &mut self,
        tree: &ast::Array,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        if !tree.named {
            return Err(
                EngineError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"[\"")
                    .or_position(position),
            );
        }
        self.array_of(&tree.elem, None, scope, position)
    }

    /// ARRAY\[…\] with a cast to an array type behind it, which each of its elements is cast to.
    pub(super) fn array_cast_to(
        &mut self,
        tree: &ast::Array,
        data_type: &ast::DataType,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        match self.data_type_in_query(data_type) {
            Ok((wanted @ DataType::Array(_), _)) if tree.named => {
                self.array_of(&tree.elem, Some(wanted), scope, position)
            }
            _ => self.array(tree, scope, position),
        }
    }

    fn array_of(
        &mut self,
        elements: &[ast::Expr],
        wanted: Option<DataType>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let mut parts = Vec::with_capacity(elements.len());
        for element in elements {
            let at = self.position_of(element);
            parts.push(match element {
                // An inner list may be written without ARRAY.
                ast::Expr::Array(inner) => {
                    self.tick()?;
                    crate::stack::checkpoint(|| self.array_of(&inner.elem, wanted, scope, at))?
                }
                other => self.expression(other, scope)?,
            });
        }
        let types: Vec<DataType> = parts.iter().map(|part| part.data_type).collect();
        let is_nested = types.iter().any(|part| matches!(part, DataType::Array(_)));
        let array_type = match wanted {
            Some(wanted) => wanted,
            None => self.array_type_of(&types, position)?,
        };
        let element_type = match is_nested {
            true => array_type,
            false => array_type.element().unwrap_or(array_type),
        };
        let mut arguments = Vec::with_capacity(parts.len());
        for (part, tree) in parts.into_iter().zip(elements) {
            let at = self.position_of(tree);
            arguments.push(match wanted {
                Some(_) => self.cast_explicitly(part, element_type, -1, at)?.expr,
                None => self.coerce(part, element_type, at)?,
            });
        }
        let function = array::constructor(array_type, is_nested);
        Ok(Typed::new(call(function, arguments), array_type))
    }

    /// The type of an array of elements of these types.
    fn array_type_of(&self, types: &[DataType], position: Option<u32>) -> Result<DataType> {
        if types.is_empty() {
            return Err(EngineError::new(
                SqlState::INDETERMINATE_DATATYPE,
                "cannot determine type of empty array",
            )
            .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
            .or_position(position));
        }
        let unmatched = || {
            let first = types
                .iter()
                .find(|one| **one != DataType::Unknown)
                .unwrap_or(&types[0]);
            let other = types
                .iter()
                .find(|other| common_type(&[*first, **other]).is_none());
            EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "ARRAY types {first} and {} cannot be matched",
                    other.unwrap_or(first)
                ),
            )
            .or_position(position)
        };
        match common_type(types).ok_or_else(unmatched)? {
            array @ DataType::Array(_) => Ok(array),
            element => element.array_type().ok_or_else(|| {
                EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("could not find array type for data type {element}"),
                )
                .or_position(position)
            }),
        }
    }

    /// `typname[0]`: a name is a row of bytes, from zero, of which clients ask for the first.
    fn first_byte_of_name(
        &mut self,
        name: Typed,
        subscripts: &[&ast::Subscript],
        position: Option<u32>,
    ) -> Result<Typed> {
        match subscripts {
            [ast::Subscript::Index { index }] if index.to_string() == "0" => {
                let text = self.cast_explicitly(name, DataType::Text, -1, position)?;
                self.cast_explicitly(text, DataType::CharByte, -1, position)
            }
            _ => Err(EngineError::not_supported("a part of a name other than [0]").or_position(position)),
        }
    }

    /// `a[i]`, `a[i:j]`: a part of an array.
    pub(super) fn part(
        &mut self,
        root: &ast::Expr,
        chain: &[ast::AccessExpr],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        // `t.a[1]` is read as parts of `t`.
        let named = access_names(root, chain);
        let chain = &chain[named.len().saturating_sub(1)..];
        let input = match named.is_empty() {
            true => self.expression(root, scope)?,
            false => self.expression(&ast::Expr::CompoundIdentifier(named), scope)?,
        };
        let mut input = input;
        let mut rest = chain;
        while let Some(access) = rest.first() {
            if let ast::AccessExpr::Dot(name) = access {
                input = self.field(input, name, position)?;
                rest = &rest[1..];
                continue;
            }
            let subscripts: Vec<&ast::Subscript> = rest
                .iter()
                .map_while(|access| match access {
                    ast::AccessExpr::Subscript(subscript) => Some(subscript),
                    ast::AccessExpr::Dot(_) => None,
                })
                .collect();
            rest = &rest[subscripts.len()..];
            input = self.element_or_slice(input.of_base(), &subscripts, scope, position)?;
        }
        Ok(input)
    }

    /// An element of an array, or a slice of it.
    fn element_or_slice(
        &mut self,
        input: Typed,
        subscripts: &[&ast::Subscript],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let Some(element_type) = input.data_type.element() else {
            if input.data_type == DataType::Jsonb {
                return self.part_of_jsonb(input, subscripts, scope, position);
            }
            if input.data_type == DataType::Name {
                return self.first_byte_of_name(input, subscripts, position);
            }
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    input.data_type
                ),
            )
            .or_position(position));
        };
        let (array_type, typmod) = (input.data_type, input.typmod);
        let (subscripts, is_slice) = self.subscripts(subscripts, scope, position)?;
        let arguments: Vec<Expr> = std::iter::once(input.expr).chain(subscripts).collect();
        Ok(match is_slice {
            true => Typed {
                expr: call(array::subscript(true), arguments),
                data_type: match array_type {
                    DataType::Array(_) => array_type,
                    _ => DataType::array_of(element_type),
                },
                typmod,
            },
            false => Typed {
                expr: call(array::subscript(false), arguments),
                data_type: element_type,
                typmod,
            },
        })
    }

    /// Subscripts as arguments; true if they are of a slice, with two of them a dimension.
    fn subscripts(
        &mut self,
        subscripts: &[&ast::Subscript],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<(Vec<Expr>, bool)> {
        if subscripts.len() > DIMENSIONS_MAX {
            return Err(too_many_dimensions(subscripts.len()).or_position(position));
        }
        let is_slice = subscripts
            .iter()
            .any(|part| matches!(part, ast::Subscript::Slice { .. }));
        let mut arguments = Vec::with_capacity(2 * subscripts.len());
        for subscript in subscripts {
            match subscript {
                ast::Subscript::Index { index } if !is_slice => arguments.push(self.subscript(index, scope)?),
                // Beside a slice a single subscript is the last of those from 1.
                ast::Subscript::Index { index } => {
                    arguments.push(Expr::constant(1));
                    arguments.push(self.subscript(index, scope)?);
                }
                ast::Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                } => {
                    for bound in [lower_bound, upper_bound] {
                        arguments.push(match bound {
                            Some(bound) => self.subscript(bound, scope)?,
                            None => Expr::constant(false),
                        });
                    }
                }
                ast::Subscript::Slice { .. } => {
                    return Err(
                        EngineError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \":\"")
                            .or_position(position),
                    );
                }
            }
        }
        Ok((arguments, is_slice))
    }

    /// The subscripts of a part of an array or a `jsonb` that is assigned to.
    pub(super) fn assigned_subscripts(
        &mut self,
        subscripts: &[&ast::Subscript],
        of: DataType,
        scope: &mut Scope,
    ) -> Result<(Vec<Expr>, bool)> {
        match of.base() {
            DataType::Jsonb => {
                let path = self.path_of_subscripts(subscripts, scope, None)?;
                Ok((vec![path.expr], false))
            }
            _ => self.subscripts(subscripts, scope, None),
        }
    }

    fn subscript(&mut self, tree: &ast::Expr, scope: &mut Scope) -> Result<Expr> {
        let position = self.position_of(tree);
        let typed = self.expression(tree, scope)?;
        if !can_cast(typed.data_type, DataType::Int4, CastContext::Assignment) {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                "array subscript must have type integer",
            )
            .or_position(position));
        }
        Ok(self.cast_explicitly(typed, DataType::Int4, -1, position)?.expr)
    }

    /// `left op ANY (array)`, or ALL.
    pub(super) fn quantified_over_array(
        &mut self,
        left: Typed,
        op: CompareOp,
        right: &ast::Expr,
        all: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let right = self.expression(right, scope)?;
        let element = match (right.data_type, right.data_type.element()) {
            (_, Some(element)) => element,
            (DataType::Unknown, None) => DataType::Unknown,
            _ => {
                return Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    "op ANY/ALL (array) requires array on right side",
                )
                .or_position(position));
            }
        };
        let common = comparison_type(left.data_type, element)
            .ok_or_else(|| self.no_operator(left.data_type, op.symbol(), element, position))?;
        // Integers are compared as they are, whatever their width.
        let wanted = match element {
            DataType::Unknown if left.data_type != DataType::Unknown => left.data_type,
            element if element.is_whole() && common.is_whole() => element,
            _ => common,
        };
        let array_type = wanted.array_type().ok_or_else(|| {
            EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("could not find array type for data type {wanted}"),
            )
            .or_position(position)
        })?;
        let input = self.side(left, common, position)?;
        let array = match right.data_type.element() {
            // A vector's elements need no conversion.
            Some(element) if element == wanted => right.expr,
            _ => self.coerce(right, array_type, position)?,
        };
        let data_type = common;
        // A list that is written out is one of IN.
        Ok(boolean(match (op, all, array) {
            (
                CompareOp::Equal | CompareOp::NotEqual,
                all,
                Expr::Call {
                    function,
                    arguments: list,
                },
            ) if array::is_list(function) && all == (op == CompareOp::NotEqual) => Expr::InList {
                input: Box::new(input),
                list,
                data_type,
                negated: all,
            },
            (op, all, array) => Expr::Quantified {
                op,
                all,
                input: Box::new(input),
                array: Box::new(array),
                data_type,
            },
        }))
    }

    /// An operator over arrays; `None` if these are none, or the operator is none of theirs.
    pub(super) fn array_operator(
        &mut self,
        left: &Typed,
        symbol: &str,
        right: &Typed,
        position: Option<u32>,
    ) -> Result<Option<Typed>> {
        let (l, r) = (left.data_type, right.data_type);
        if !l.is_array() && !r.is_array() {
            return Ok(None);
        }
        let name = match symbol {
            "@>" => "arraycontains",
            "<@" => "arraycontained",
            "&&" => "arrayoverlap",
            // What is written in quotes is an array beside one.
            "||" => match (l.is_array(), r.is_array()) {
                (true, false) if r != DataType::Unknown => "array_append",
                (false, true) if l != DataType::Unknown => "array_prepend",
                _ => "array_cat",
            },
            _ => return Ok(None),
        };
        let found = array::resolve(name, &[l, r]).ok_or_else(|| self.no_operator(l, symbol, r, position))?;
        let left = self.coerce(left.clone(), found.arguments[0], position)?;
        let right = self.coerce(right.clone(), found.arguments[1], position)?;
        Ok(Some(Typed::new(
            call(found.function, vec![left, right]),
            found.result,
        )))
    }
}

/// The parts of a qualified name at the front of an access; empty if it does not begin with one.
fn access_names(root: &ast::Expr, chain: &[ast::AccessExpr]) -> Vec<ast::Ident> {
    let ast::Expr::Identifier(first) = root else {
        return Vec::new();
    };
    let rest = chain.iter().map_while(|access| match access {
        ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    });
    let names: Vec<ast::Ident> = std::iter::once(first.clone()).chain(rest).collect();
    if names.len() > 1 { names } else { Vec::new() }
}
