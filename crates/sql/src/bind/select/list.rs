//! The select list: its expressions, their names, and their description for the client.

use sqlparser::ast;

use crate::bind::record::forget_shapes;
use crate::bind::scope::{Names, Qualifier, Scope, ScopeColumn, Versions};
use crate::bind::{Binder, Typed, identifier, normal, plain_name, refuse, split_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::is_all_fields;
use crate::plan::{Column, Returning};
use crate::type_name::internal_type_name;

/// The most entries of a select list together with what GROUP BY or ORDER BY adds to it, and the most aggregates, as in
/// PostgreSQL. Each new one is compared with those before it, so their number is bounded.
pub(in crate::bind) const ENTRIES_MAX: usize = 1_664;

/// A column of the select list.
pub(super) struct Output {
    pub(super) typed: Typed,
    pub(super) name: String,
    /// The table and the number of the column that it is, if it is one.
    pub(super) origin: (u32, i16),
}

impl Binder<'_> {
    /// The columns of a select list. `settle`: as in [`query`](Self::query).
    pub(super) fn select_list(
        &mut self,
        items: &[ast::SelectItem],
        scope: &mut Scope,
        settle: bool,
    ) -> Result<Vec<Output>> {
        let mut outputs = Vec::with_capacity(items.len());
        for item in items {
            check_entries(outputs.len())?;
            let (tree, alias) = match item {
                ast::SelectItem::UnnamedExpr(tree) => (tree, None),
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(identifier(alias)?)),
                ast::SelectItem::Wildcard(options) => {
                    refuse(*options != plain_wildcard(options), "a wildcard with options")?;
                    if scope.names.relations.is_empty() {
                        return Err(EngineError::new(
                            SqlState::SYNTAX_ERROR,
                            "SELECT * with no tables specified is not valid",
                        ));
                    }
                    scope
                        .names
                        .visible
                        .iter()
                        .for_each(|column| self.note_column(column));
                    self.note_star(item, &scope.names.visible, &scope.names, 0);
                    outputs.extend(scope.names.visible.iter().map(Output::of_column));
                    continue;
                }
                ast::SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    refuse(*options != plain_wildcard(options), "a wildcard with options")?;
                    let (schema, table, span) = split_name(name)?;
                    let relation = Qualifier {
                        schema: schema.as_deref(),
                        relation: &table,
                    };
                    let Some(columns) = self.all_of(relation, &scope.names) else {
                        let error = self.missing_entry(&table, &scope.names);
                        return Err(error.or_position(self.position(span)));
                    };
                    columns.iter().for_each(|column| self.note_column(column));
                    self.note_star(item, &columns, &scope.names, 0);
                    outputs.extend(columns.iter().map(Output::of_column));
                    continue;
                }
                other => return Err(EngineError::not_supported(format!("the select item {other}"))),
            };
            if let ast::Expr::CompoundFieldAccess { root, access_chain } = tree
                && alias.is_none()
                && let Some((ast::AccessExpr::Dot(ast::Expr::Identifier(last)), inner)) =
                    access_chain.split_last()
                && is_all_fields(last)
            {
                let fields = self.all_fields(root, inner, scope)?;
                outputs.extend(fields.into_iter().map(|(name, typed)| Output {
                    origin: origin_of(&typed.expr, scope),
                    typed,
                    name,
                }));
                continue;
            }
            let mut typed = self.expression(tree, scope)?;
            if settle {
                typed = self.settle(typed)?;
            }
            let origin = origin_of(&typed.expr, scope);
            outputs.push(Output {
                typed,
                name: alias.unwrap_or_else(|| column_name(tree)),
                origin,
            });
        }
        check_entries(outputs.len())?;
        Ok(outputs)
    }

    /// RETURNING over a changed row.
    pub(in crate::bind) fn returning(
        &mut self,
        items: Option<&Vec<ast::SelectItem>>,
        names: Names,
    ) -> Result<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        let versions = names
            .relations
            .first()
            .map_or(Versions::None, |changed| changed.versions);
        let mut scope = Scope::of(names, "RETURNING");
        let outputs = self.select_list(items, &mut scope, true)?;
        let mut columns: Vec<Column> = outputs.iter().map(Output::describe).collect();
        forget_shapes(&mut columns);
        let projection: Vec<Expr> = outputs.into_iter().map(|output| output.typed.expr).collect();
        let reads = |column| projection.iter().any(|expr| expr.reads(column));
        let tells_place = match versions {
            Versions::Stored(place) => reads(place) || reads(place + 1),
            Versions::Told(place) => reads(place),
            Versions::None | Versions::Untold => false,
        };
        Ok(Some(Returning {
            projection,
            columns,
            tells_place,
        }))
    }
}

impl Output {
    pub(super) fn of_column(column: &ScopeColumn) -> Output {
        Output {
            typed: column.typed.clone(),
            name: column.name.clone(),
            origin: column.origin,
        }
    }

    /// The description of the column for the client.
    pub(super) fn describe(&self) -> Column {
        let (table_oid, attribute) = self.origin;
        Column {
            name: self.name.clone(),
            data_type: self.typed.data_type,
            type_modifier: self.typed.typmod,
            table_oid,
            attribute,
        }
    }
}

/// The table's column that an expression is, if it is one.
fn origin_of(expr: &Expr, scope: &Scope) -> (u32, i16) {
    match expr {
        Expr::Column(_) => {
            let mut columns = scope
                .names
                .relations
                .iter()
                .flat_map(|relation| &relation.columns);
            let found = columns.find(|column| column.typed.expr == *expr);
            found.map_or((0, 0), |column| column.origin)
        }
        _ => (0, 0),
    }
}

/// 54011 for a list of more than [`ENTRIES_MAX`] entries.
pub(in crate::bind) fn check_entries(count: usize) -> Result<()> {
    if count <= ENTRIES_MAX {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::TOO_MANY_COLUMNS,
        format!("target lists can have at most {ENTRIES_MAX} entries"),
    ))
}

fn plain_wildcard(options: &ast::WildcardAdditionalOptions) -> ast::WildcardAdditionalOptions {
    ast::WildcardAdditionalOptions {
        wildcard_token: options.wildcard_token.clone(),
        ..Default::default()
    }
}

/// PostgreSQL's name of an unnamed output column.
pub(in crate::bind) fn column_name(tree: &ast::Expr) -> String {
    let (ColumnName::OfPart(name) | ColumnName::OfForm(name)) = name_of(tree) else {
        return "?column?".to_owned();
    };
    name
}

/// The name of a query's only column.
fn name_of_query(body: &ast::SetExpr) -> ColumnName {
    use ColumnName::{Nothing, OfForm, OfPart};
    match body {
        ast::SetExpr::Select(select) => match select.projection.as_slice() {
            [ast::SelectItem::UnnamedExpr(tree)] => match name_of(tree) {
                Nothing => Nothing,
                OfPart(name) | OfForm(name) => OfPart(name),
            },
            [ast::SelectItem::ExprWithAlias { alias, .. }] => OfPart(normal(alias)),
            _ => Nothing,
        },
        ast::SetExpr::Values(_) => OfPart("column1".to_owned()),
        _ => Nothing,
    }
}

/// The name that an expression suggests for its column.
enum ColumnName {
    /// A column or a function: a cast around it keeps the name.
    OfPart(String),
    /// A type, or a form of expression: a cast around it has another name.
    OfForm(String),
    Nothing,
}

fn name_of(tree: &ast::Expr) -> ColumnName {
    use ColumnName::{Nothing, OfForm, OfPart};
    match tree {
        ast::Expr::Identifier(ident) => OfPart(normal(ident)),
        ast::Expr::CompoundIdentifier(parts) => parts.last().map_or(Nothing, |last| OfPart(normal(last))),
        ast::Expr::Nested(inner) | ast::Expr::Collate { expr: inner, .. } => name_of(inner),
        ast::Expr::AtTimeZone { .. } => OfPart("timezone".to_owned()),
        ast::Expr::BinaryOp {
            op: ast::BinaryOperator::Overlaps,
            ..
        } => OfPart("overlaps".to_owned()),
        ast::Expr::Cast { expr, data_type, .. } => match name_of(expr) {
            OfPart(name) => OfPart(name),
            _ => OfForm(internal_type_name(data_type)),
        },
        ast::Expr::Function(call) => plain_name(&call.name).map_or(Nothing, OfPart),
        ast::Expr::Case { else_result, .. } => match else_result.as_deref().map(name_of) {
            Some(OfPart(name)) => OfPart(name),
            _ => OfForm("case".to_owned()),
        },
        ast::Expr::Array(_) => OfPart("array".to_owned()),
        ast::Expr::Tuple(_) => OfPart("row".to_owned()),
        ast::Expr::QualifiedWildcard(name, _) => match name.0.last() {
            Some(ast::ObjectNamePart::Identifier(ident)) => OfPart(normal(ident)),
            _ => Nothing,
        },
        ast::Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(normal(name)),
                _ => None,
            });
            field.map_or_else(|| name_of(root), OfPart)
        }
        // Of a query's only column.
        ast::Expr::Subquery(query) => name_of_query(&query.body),
        ast::Expr::Exists { .. } => OfPart("exists".to_owned()),
        ast::Expr::Ceil { .. } => OfPart("ceil".to_owned()),
        ast::Expr::Floor { .. } => OfPart("floor".to_owned()),
        ast::Expr::Interval(_) => OfForm("interval".to_owned()),
        ast::Expr::TypedString(typed) => OfForm(internal_type_name(&typed.data_type)),
        _ => Nothing,
    }
}

/// `ORDER BY 2`: the output it means, counted from 0.
pub(super) fn output_number(
    tree: &ast::Expr,
    count: usize,
    clause: &str,
    position: Option<u32>,
) -> Result<Option<usize>> {
    let digits = match tree {
        ast::Expr::Value(constant) => match &constant.value {
            ast::Value::Number(digits, _) if digits.parse::<i32>().is_ok() => digits,
            ast::Value::Number(..) | ast::Value::SingleQuotedString(_) | ast::Value::Null => {
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("non-integer constant in {clause}"),
                )
                .or_position(position));
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    match digits.parse::<usize>() {
        Ok(number) if (1..=count).contains(&number) => Ok(Some(number - 1)),
        _ => Err(EngineError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("{clause} position {digits} is not in select list"),
        )
        .or_position(position)),
    }
}
