//! Calls of functions and aggregates.

use sqlparser::ast;

use super::arguments::{aggregated, set_arguments, window_arguments};
use super::expression::{query_node, typed_as};
use super::node::{Aggregate, Node, direction};
use super::operand::{Typed, coerced};
use super::{Printer, unprinted};
use crate::aggregate::is_name;
use crate::bind::{by_name, is_set_function, plain_name};
use crate::error::Result;
use crate::function::{self, quote_identifier};
use crate::numbered_names::takes_relation;
use crate::value::DataType;

/// The trees of a call's arguments; `None` for `*`.
fn arguments_of(list: &ast::FunctionArgumentList) -> Result<Option<Vec<&ast::Expr>>> {
    let mut trees = Vec::with_capacity(list.args.len());
    for argument in &list.args {
        match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) => trees.push(tree),
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) => return Ok(None),
            _ => return Err(unprinted()),
        }
    }
    Ok(Some(trees))
}

impl Printer<'_> {
    pub(super) fn call(&mut self, tree: &ast::Expr, call: &ast::Function) -> Result<Typed> {
        let name = plain_name(&call.name)?;
        let list = match &call.args {
            ast::FunctionArguments::None => {
                let word = super::expression::word(&name).ok_or_else(unprinted)?;
                let (data_type, typmod) = self.type_of(tree);
                return Ok(typed_as(word, data_type, typmod));
            }
            ast::FunctionArguments::Subquery(query) if name == "array" => {
                let text = self.inner_query(query)?;
                return Ok(typed_as(
                    query_node(None, "ARRAY", text),
                    self.type_of(tree).0,
                    -1,
                ));
            }
            ast::FunctionArguments::Subquery(_) => return Err(unprinted()),
            ast::FunctionArguments::List(list) => Some(list),
        };
        if is_name(&name) || call.over.is_some() {
            let list = list.ok_or_else(unprinted)?;
            return self.aggregate(tree, &name, call, list);
        }
        if let (Some(parameters), Some(list)) = (function::parameters_of(&name), list) {
            return self.call_by_names(tree, &name, parameters, list);
        }
        let arguments = match list {
            Some(list) => arguments_of(list)?.ok_or_else(unprinted)?,
            None => Vec::new(),
        };
        match (self.written(call).as_str(), arguments.as_slice()) {
            ("extract", [ast::Expr::Value(field), of]) => {
                let ast::Value::SingleQuotedString(field) = &field.value else {
                    return Err(unprinted());
                };
                let of = self.node(of)?.node;
                let texts = vec![format!("EXTRACT({field} FROM "), ")".to_owned()];
                Ok(special(texts, vec![of], true, self.type_of(tree).0))
            }
            ("trim", [of, rest @ ..]) => {
                let words = match name.as_str() {
                    "ltrim" => "LEADING",
                    "rtrim" => "TRAILING",
                    _ => "BOTH",
                };
                let of = coerced(self.node(of)?, DataType::Text)?;
                let (texts, arguments) = match rest {
                    [] => (vec![format!("TRIM({words} FROM "), ")".to_owned()], vec![of]),
                    [cut, ..] => {
                        let cut = coerced(self.node(cut)?, DataType::Text)?;
                        let texts = vec![format!("TRIM({words} "), " FROM ".to_owned(), ")".to_owned()];
                        (texts, vec![cut, of])
                    }
                };
                Ok(special(texts, arguments, true, DataType::Text))
            }
            ("position", [of, part]) => {
                let of = coerced(self.node(of)?, DataType::Text)?;
                let part = coerced(self.node(part)?, DataType::Text)?;
                let texts = ["POSITION((", ") IN (", "))"].map(str::to_owned).to_vec();
                Ok(special(texts, vec![part, of], true, DataType::Int4))
            }
            ("substring" | "overlay", arguments) if self.has_words(call) => {
                self.call_with_words(tree, &name, arguments)
            }
            _ if name == "grouping" => {
                let keys = arguments.iter().map(|argument| Ok(self.node(argument)?.node));
                let arguments = keys.collect::<Result<_>>()?;
                let name = "GROUPING".to_owned();
                Ok(Typed::new(Node::Call { name, arguments }, DataType::Int4))
            }
            _ if is_set_function(&name) => {
                let nodes = self.nodes_of(arguments.iter().copied())?;
                let arguments = set_arguments(&name, nodes)?;
                let name = quote_identifier(&name);
                Ok(Typed::new(Node::Call { name, arguments }, self.type_of(tree).0))
            }
            _ => self.plain_call(tree, &name, &arguments),
        }
    }

    /// The name of a call as the text has it, in lower case.
    fn written(&self, call: &ast::Function) -> String {
        let rest = self.rest_of(call);
        // In quotes in the text that a definition keeps (`parse::special_call`).
        let rest = rest.strip_prefix('"').unwrap_or(rest);
        let end = rest.find(|next: char| !next.is_alphanumeric() && next != '_');
        rest[..end.unwrap_or(rest.len())].to_lowercase()
    }

    /// The text from the name of a call on.
    fn rest_of(&self, call: &ast::Function) -> &str {
        use ast::Spanned as _;
        let lines = crate::parse::Lines::default();
        let at = lines
            .characters_before(self.text, call.name.span().start)
            .unwrap_or(0);
        let byte = self
            .text
            .char_indices()
            .nth(at as usize)
            .map_or(self.text.len(), |(byte, _)| byte);
        &self.text[byte..]
    }

    /// True if words separate the arguments of a call, as far as its text tells.
    fn has_words(&self, call: &ast::Function) -> bool {
        let rest = self.rest_of(call).to_lowercase();
        let inside = rest.split(')').next().unwrap_or_default();
        [" from ", " for ", " placing ", " similar "]
            .iter()
            .any(|word| inside.contains(word))
    }

    pub(super) fn nodes_of<'t>(&mut self, trees: impl Iterator<Item = &'t ast::Expr>) -> Result<Vec<Typed>> {
        trees.map(|tree| self.node(tree)).collect()
    }

    /// `substring(… from … for …)` or `overlay(… placing … from … for …)`.
    fn call_with_words(&mut self, tree: &ast::Expr, name: &str, arguments: &[&ast::Expr]) -> Result<Typed> {
        let nodes = self.nodes_of(arguments.iter().copied())?;
        let types: Vec<DataType> = nodes.iter().map(|typed| typed.data_type).collect();
        let signature = function::resolve(name, &types).map_err(|_| unprinted())?;
        let words: &[&str] = match name {
            "overlay" => &[" PLACING ", " FROM ", " FOR "],
            // Three texts are those of SIMILAR.
            _ if types == [DataType::Text; 3] || types.ends_with(&[DataType::Unknown; 2]) => {
                &[" SIMILAR ", " ESCAPE "]
            }
            _ => &[" FROM ", " FOR "],
        };
        if nodes.len() > words.len() + 1 {
            return Err(unprinted());
        }
        let mut texts = vec![format!("{}(", name.to_uppercase())];
        texts.extend(
            words
                .iter()
                .take(nodes.len().saturating_sub(1))
                .map(|word| (*word).to_owned()),
        );
        texts.push(")".to_owned());
        let nodes = nodes.into_iter().zip(&signature.arguments);
        let arguments = nodes
            .map(|(typed, to)| coerced(typed, *to))
            .collect::<Result<_>>()?;
        Ok(special(texts, arguments, true, self.type_of(tree).0))
    }

    /// A call of a function whose arguments may be given by name: `make_interval(days => 10)`.
    fn call_by_names(
        &mut self,
        tree: &ast::Expr,
        name: &str,
        parameters: &[&str],
        list: &ast::FunctionArgumentList,
    ) -> Result<Typed> {
        use ast::FunctionArgExpr::Expr;
        let mut given = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            given.push(match argument {
                ast::FunctionArg::Unnamed(Expr(tree)) => match by_name(tree) {
                    Some((name, value)) => (Some(crate::bind::normal(name)), value),
                    None => (None, tree),
                },
                ast::FunctionArg::Named {
                    name,
                    arg: Expr(tree),
                    ..
                }
                | ast::FunctionArg::ExprNamed {
                    name: ast::Expr::Identifier(name),
                    arg: Expr(tree),
                    ..
                } => (Some(crate::bind::normal(name)), tree),
                _ => return Err(unprinted()),
            });
        }
        let integers = vec![DataType::Int4; parameters.len()];
        let signature = function::resolve(name, &integers).map_err(|_| unprinted())?;
        let (mut texts, mut arguments) = (vec![format!("{}(", quote_identifier(name))], Vec::new());
        for (at, (word, tree)) in given.into_iter().enumerate() {
            let place = match &word {
                None => at,
                Some(word) => parameters
                    .iter()
                    .position(|known| known == word)
                    .ok_or_else(unprinted)?,
            };
            let to = *signature.arguments.get(place).ok_or_else(unprinted)?;
            arguments.push(coerced(self.node(tree)?, to)?);
            let before = texts.last_mut().ok_or_else(unprinted)?;
            if let Some(word) = word {
                before.push_str(&format!("{} => ", quote_identifier(&word)));
            }
            texts.push(", ".to_owned());
        }
        match arguments.is_empty() {
            true => texts = vec![format!("{}()", quote_identifier(name))],
            false => *texts.last_mut().ok_or_else(unprinted)? = ")".to_owned(),
        }
        Ok(special(texts, arguments, true, self.type_of(tree).0))
    }

    /// A call with commas between its arguments.
    pub(super) fn plain_call(
        &mut self,
        tree: &ast::Expr,
        name: &str,
        arguments: &[&ast::Expr],
    ) -> Result<Typed> {
        let mut nodes = Vec::with_capacity(arguments.len());
        let mut is_variadic = false;
        for argument in arguments {
            let argument = match argument {
                ast::Expr::Prefixed { value, .. } => {
                    is_variadic = true;
                    value
                }
                other => *other,
            };
            nodes.push(self.node(argument)?);
        }
        let types: Vec<DataType> = nodes.iter().map(|typed| typed.data_type).collect();
        let signature = match is_variadic {
            true => function::resolve_variadic(name, &types).ok_or_else(unprinted)?,
            false => function::resolve(name, &types).map_err(|_| unprinted())?,
        };
        let nodes = nodes.into_iter().zip(&signature.arguments);
        let mut arguments = nodes
            .enumerate()
            .map(|(at, (typed, to))| match at == 0 && takes_relation(name) {
                true => coerced(typed, DataType::Regclass),
                false => coerced(typed, *to),
            })
            .collect::<Result<Vec<_>>>()?;
        if is_variadic {
            let array = arguments.pop().into_iter().collect();
            let texts = vec!["VARIADIC ".to_owned(), String::new()];
            arguments.push(special(texts, array, true, DataType::Unknown).node);
        }
        let name = match name {
            "coalesce" | "greatest" | "least" | "nullif" => name.to_uppercase(),
            name => quote_identifier(name),
        };
        let (data_type, typmod) = self.type_of(tree);
        let data_type = match data_type {
            DataType::Unknown => signature.result,
            known => known,
        };
        Ok(typed_as(Node::Call { name, arguments }, data_type, typmod))
    }

    /// A call of an aggregate, or of any function over a window.
    fn aggregate(
        &mut self,
        tree: &ast::Expr,
        name: &str,
        call: &ast::Function,
        list: &ast::FunctionArgumentList,
    ) -> Result<Typed> {
        let direct = match arguments_of(list)? {
            None => None,
            Some(trees) => Some(self.nodes_of(trees.into_iter())?),
        };
        let mut within = Vec::with_capacity(call.within_group.len());
        for key in &call.within_group {
            within.push((self.node(&key.expr)?, direction(&key.options)?));
        }
        let (arguments, within) = match direct {
            None => (None, Vec::new()),
            // `rank()` over a window is no aggregate, though one has its name.
            Some(direct) if is_name(name) && !(direct.is_empty() && within.is_empty()) => {
                let (arguments, within) = aggregated(name, direct, within)?;
                (Some(arguments), within)
            }
            Some(direct) => (Some(window_arguments(name, direct)?), Vec::new()),
        };
        let mut order = Vec::new();
        for clause in &list.clauses {
            let ast::FunctionArgumentClause::OrderBy(keys) = clause else {
                return Err(unprinted());
            };
            for key in keys {
                order.push((self.settled(&key.expr)?, direction(&key.options)?));
            }
        }
        let filter = match &call.filter {
            Some(tree) => Some(coerced(self.node(tree)?, DataType::Bool)?),
            None => None,
        };
        let over = match &call.over {
            Some(over) => Some(self.over(over)?),
            None => None,
        };
        let (data_type, typmod) = self.type_of(tree);
        Ok(typed_as(
            Node::Aggregate(Box::new(Aggregate {
                name: quote_identifier(name),
                distinct: list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct),
                arguments,
                order,
                within,
                filter,
                over,
            })),
            data_type,
            typmod,
        ))
    }
}

fn special(texts: Vec<String>, arguments: Vec<Node>, closed: bool, data_type: DataType) -> Typed {
    Typed::new(
        Node::Special {
            texts,
            arguments,
            closed,
        },
        data_type,
    )
}
