//! Row values in the syntax tree.

use std::borrow::Cow;

use sqlparser::ast;
use sqlparser::ast::helpers::attached_token::AttachedToken;

/// A column of a row value; `t.*` stands for several.
pub(crate) type RowColumn<'t> = Cow<'t, ast::Expr>;

/// The columns of a row value: `(a, b)`, `row(a, b)`.
pub(crate) fn columns_of(tree: &ast::Expr) -> Option<Vec<RowColumn<'_>>> {
    match tree {
        ast::Expr::Nested(inner) => columns_of(inner),
        ast::Expr::Tuple(columns) => Some(columns.iter().map(Cow::Borrowed).collect()),
        ast::Expr::Function(call) if is_row(&call.name) => {
            let ast::FunctionArguments::List(list) = &call.args else {
                return None;
            };
            list.args
                .iter()
                .map(|argument| match argument {
                    ast::FunctionArg::Unnamed(argument) => argument_tree(argument),
                    _ => None,
                })
                .collect()
        }
        _ => None,
    }
}

/// The expression that an argument of a call is; `t.*` is one too.
pub(super) fn argument_tree(argument: &ast::FunctionArgExpr) -> Option<RowColumn<'_>> {
    match argument {
        ast::FunctionArgExpr::Expr(tree) => Some(Cow::Borrowed(tree)),
        ast::FunctionArgExpr::QualifiedWildcard(name) => Some(Cow::Owned(ast::Expr::QualifiedWildcard(
            name.clone(),
            AttachedToken::empty(),
        ))),
        _ => None,
    }
}

/// The query that an expression is.
pub(super) fn query_of(tree: &ast::Expr) -> Option<&ast::Query> {
    match tree {
        ast::Expr::Nested(inner) => query_of(inner),
        ast::Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

/// True for `row`.
pub(super) fn is_row(name: &ast::ObjectName) -> bool {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(ident)] => {
            ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("row")
        }
        _ => false,
    }
}
