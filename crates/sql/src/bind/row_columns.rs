//! Row values in the syntax tree.

use sqlparser::ast;

/// The columns of a row value: `(a, b)`, `row(a, b)`.
pub(super) fn columns_of(tree: &ast::Expr) -> Option<Vec<&ast::Expr>> {
    match tree {
        ast::Expr::Nested(inner) => columns_of(inner),
        ast::Expr::Tuple(columns) => Some(columns.iter().collect()),
        ast::Expr::Function(call) if is_row(&call.name) => {
            let ast::FunctionArguments::List(list) = &call.args else {
                return None;
            };
            list.args
                .iter()
                .map(|argument| match argument {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) => Some(tree),
                    _ => None,
                })
                .collect()
        }
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

fn is_row(name: &ast::ObjectName) -> bool {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(ident)] => {
            ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("row")
        }
        _ => false,
    }
}
