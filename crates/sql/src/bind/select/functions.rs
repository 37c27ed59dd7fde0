//! Functions in FROM.
//!
//! A function has a column for its value, or several; functions in ROWS FROM stand side by side. A value of a composite type
//! is spread to a column for each field: then the functions are the only leaf of a query of their own, which gives the fields.
//!
//! | text | columns |
//! | --- | --- |
//! | `f(x)` | `f`; the alias's name, if there is one |
//! | `f(x)`, of a composite type | its fields |
//! | `f(x) as t (a int, b text)`, of records | those that are declared |
//! | `rows from (f(x), g(y)) with ordinality` | those of both, and `ordinality` |

use sqlparser::ast;

use super::from::{From, Places};
use super::only_leaf::only_leaf;
use crate::bind::record::composite_of;
use crate::bind::scope::{Names, Scope};
use crate::bind::set::is_set_function;
use crate::bind::{Binder, Typed, normal, plain_name, refuse};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::json::records::ToRecord;
use crate::function::json::{parts, records};
use crate::function::{Function, array, option_columns};
use crate::parse::ROWS_FROM;
use crate::plan::{Column, SetCall, SetFunctions};
use crate::query::Rows;
use crate::value::cast::CastContext;
use crate::value::{DataType, NO_TYPMOD, Value};

/// A function of FROM: its columns, and a call for each.
pub(super) struct Called {
    name: String,
    columns: Vec<Column>,
    calls: Vec<SetCall>,
}

impl Called {
    /// A function whose columns are parts of one argument.
    fn side_by_side(name: &str, argument: &Expr, found: &[(&str, Function, DataType)]) -> Called {
        let columns = found.iter();
        let calls = found.iter().map(|(_, function, _)| {
            SetCall::Unnest(Expr::Call {
                function: *function,
                arguments: vec![argument.clone()],
            })
        });
        Called {
            name: name.to_owned(),
            calls: calls.collect(),
            columns: columns
                .map(|(column, _, data_type)| Column::computed(*column, *data_type))
                .collect(),
        }
    }
}

impl Binder<'_> {
    /// A function in FROM; its arguments may read what stands to its left.
    pub(super) fn function(
        &mut self,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        seen: &Names,
        places: &mut Places,
    ) -> Result<From> {
        let mut scope = Scope::of(seen.clone(), "functions in FROM");
        if is_rows_from(name) {
            let called = args.iter().map(|call| self.one_of_several(call, &mut scope));
            let called = called.collect::<Result<Vec<_>>>()?;
            return self.functions(called, ordinality, alias, places);
        }
        let function = plain_name(name)?;
        let trees: Option<Vec<&ast::Expr>> = args.iter().map(unnamed).collect();
        let Some(trees) = trees else {
            // By names, or VARIADIC.
            let typed = self.expression(&call_of(name, args), &mut scope)?;
            return self.one_value(&function, typed, ordinality, alias, places);
        };
        if let (Some(to_record), [json]) = (records::named(&function), trees.as_slice()) {
            refuse(ordinality, "WITH ORDINALITY of a function with declared columns")?;
            let json = self.expression(json, &mut scope)?;
            return self.declared_record(&function, to_record, json, alias, places);
        }
        if function == "generate_series" && !ordinality {
            let series = self.series(&trees, &mut scope)?;
            let column = Column::computed(known_as(&function, alias), series.data_type);
            return self.leaf(&function, &[column], Rows::Series(series), alias, places);
        }
        if gives_rows(&function) {
            let called = self.called(&function, &trees, &mut scope)?;
            return self.functions(vec![called], ordinality, alias, places);
        }
        let typed = self.scalar(&function, &trees, &mut scope, None)?;
        self.one_value(&function, typed, ordinality, alias, places)
    }

    /// A function of ROWS FROM.
    fn one_of_several(&mut self, call: &ast::FunctionArg, scope: &mut Scope) -> Result<Called> {
        let Some(ast::Expr::Function(call)) = unnamed(call) else {
            return Err(EngineError::not_supported(format!("{call} in ROWS FROM")));
        };
        let name = plain_name(&call.name)?;
        let ast::FunctionArguments::List(list) = &call.args else {
            return Err(EngineError::not_supported(format!("{call} in ROWS FROM")));
        };
        let trees: Option<Vec<&ast::Expr>> = list.args.iter().map(unnamed).collect();
        match trees {
            Some(trees) if gives_rows(&name) => self.called(&name, &trees, scope),
            _ => {
                let typed = self.call(call, scope, None)?;
                one_row_of(&name, typed)
            }
        }
    }

    /// A function that gives rows.
    pub(super) fn called(&mut self, name: &str, trees: &[&ast::Expr], scope: &mut Scope) -> Result<Called> {
        if let ("pg_options_to_table", [options]) = (name, trees) {
            let options = self.expression(options, scope)?;
            let options = self.coerce(options, DataType::array_of(DataType::Text), None)?;
            let found = option_columns().map(|(name, function)| (name, function, DataType::Text));
            return Ok(Called::side_by_side(name, &options, &found));
        }
        if let (Some((of, columns)), [json]) = (parts::columns(name), trees) {
            let json = self.expression(json, scope)?;
            let json = self.coerce(json, of, None)?;
            return Ok(Called::side_by_side(name, &json, &columns));
        }
        let each: Vec<&[&ast::Expr]> = match name {
            "unnest" if trees.len() > 1 => trees.chunks(1).collect(),
            _ => vec![trees],
        };
        let (mut columns, mut calls) = (Vec::new(), Vec::new());
        for trees in each {
            let (call, data_type) = self.set_function(name, trees, scope, None)?;
            let shape = self.shape_of_call(name, &call);
            columns.push(Column {
                type_modifier: shape,
                ..Column::computed(parts::column_name(name).unwrap_or(name).to_owned(), data_type)
            });
            calls.push(call);
        }
        Ok(Called {
            name: name.to_owned(),
            columns,
            calls,
        })
    }

    /// A function that gives one value.
    pub(super) fn one_value(
        &mut self,
        name: &str,
        typed: Typed,
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        places: &mut Places,
    ) -> Result<From> {
        let is_declared = alias.is_some_and(declares_types);
        if ordinality || is_declared || composite_of(typed.data_type).is_some() {
            let called = one_row_of(name, typed)?;
            return self.functions(vec![called], ordinality, alias, places);
        }
        let column = Column {
            type_modifier: typed.typmod,
            ..Column::computed(known_as(name, alias), typed.data_type)
        };
        let rows = Rows::Values(vec![vec![typed.expr]]);
        self.leaf(name, &[column], rows, alias, places)
    }

    /// Functions side by side.
    pub(super) fn functions(
        &mut self,
        called: Vec<Called>,
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        places: &mut Places,
    ) -> Result<From> {
        let name = called
            .first()
            .map_or_else(String::new, |first| first.name.clone());
        let is_one = called.len() == 1;
        let (mut columns, mut calls) = (Vec::new(), Vec::new());
        for one in called {
            columns.extend(one.columns);
            calls.extend(one.calls);
        }
        if let ([column], Some(alias)) = (columns.as_mut_slice(), alias)
            && parts::column_name(&name).is_none()
        {
            // An only column is known by the alias too.
            column.name = normal(&alias.name);
        }
        let spread = self.spread(&columns, alias)?;
        let row_type = columns.first().map(|column| column.data_type);
        let row_type = row_type.filter(|of| is_one && columns.len() == 1 && composite_of(*of).is_some());
        if ordinality {
            columns.push(Column::computed("ordinality", DataType::Int8));
        }
        let Some(mut spread) = spread else {
            let rows = Rows::Functions(SetFunctions { calls, ordinality });
            return self.leaf(&name, &columns, rows, alias, places);
        };
        if ordinality {
            let number = Expr::Column(columns.len() as u16 - 1);
            spread.push((Column::computed("ordinality", DataType::Int8), number));
        }
        let mut arguments = Vec::new();
        let calls = calls
            .into_iter()
            .map(|call| call.map_arguments(&mut |argument| inside(argument, &mut arguments)))
            .collect::<Result<Vec<_>>>()?;
        let mut block = only_leaf(columns, Rows::Functions(SetFunctions { calls, ordinality }));
        (block.columns, block.projection) = spread.into_iter().unzip();
        block.visible = block.columns.len();
        let shown = block.columns.clone();
        let block = Box::new(block);
        let mut from = self.leaf(&name, &shown, Rows::Query { block, arguments }, alias, places)?;
        if !ordinality {
            from.names.relations[0].row_type = row_type;
        }
        Ok(from)
    }

    /// The columns of functions, with the fields of those that are rows in their places; `None` if none is.
    fn spread(
        &mut self,
        columns: &[Column],
        alias: Option<&ast::TableAlias>,
    ) -> Result<Option<Vec<(Column, Expr)>>> {
        let declares = alias.is_some_and(declares_types);
        let refused = |message: &'static str| Err(EngineError::new(SqlState::SYNTAX_ERROR, message));
        let mut spread = Vec::new();
        let mut any = false;
        for (place, column) in (0..).zip(columns) {
            let whole = || Box::new(Expr::Column(place));
            let known = self.shape_numbered(column.type_modifier).cloned();
            let known = known.filter(|_| column.data_type == DataType::Record);
            if column.data_type == DataType::Record && known.is_none() {
                let Some(alias) = alias.filter(|_| declares && columns.len() == 1) else {
                    return refused(
                        "a column definition list is required for functions returning \"record\"",
                    );
                };
                any = true;
                for (number, declaration) in (0..).zip(&alias.columns) {
                    let (data_type, typmod) = self.declared_type(declaration)?;
                    let field = Expr::Field {
                        input: whole(),
                        number,
                        data_type,
                    };
                    let column = Column {
                        type_modifier: typmod,
                        ..Column::computed(normal(&declaration.name), data_type)
                    };
                    spread.push((column, field));
                }
                continue;
            }
            let fields = known.or_else(|| Some(composite_of(column.data_type)?.fields));
            let Some(fields) = fields else {
                if declares {
                    return refused(
                        "a column definition list is only allowed for functions returning \"record\"",
                    );
                }
                spread.push((column.clone(), Expr::Column(place)));
                continue;
            };
            if declares {
                return refused(
                    "a column definition list is redundant for a function returning a named composite type",
                );
            }
            any = true;
            for (number, field) in (0..).zip(fields) {
                let expr = Expr::Field {
                    input: whole(),
                    number,
                    data_type: field.data_type,
                };
                let column = Column {
                    type_modifier: field.typmod,
                    ..Column::computed(field.name, field.data_type)
                };
                spread.push((column, expr));
            }
        }
        Ok(any.then_some(spread))
    }

    /// The type of a column of a column definition list.
    fn declared_type(&mut self, declaration: &ast::TableAliasColumnDef) -> Result<(DataType, i32)> {
        let Some(tree) = &declaration.data_type else {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "a column definition list is required for functions returning \"record\"",
            ));
        };
        // Statements have these types in casts and here alone.
        match tree.to_string().to_ascii_lowercase().as_str() {
            "record" => Ok((DataType::Record, NO_TYPMOD)),
            "record[]" => Ok((DataType::array_of(DataType::Record), NO_TYPMOD)),
            _ => self.data_type_in_query(tree),
        }
    }

    /// A function that gives records whose columns the alias declares: `json_to_record(j) as t(a int, b text)`.
    fn declared_record(
        &mut self,
        name: &str,
        function: ToRecord,
        json: Typed,
        alias: Option<&ast::TableAlias>,
        places: &mut Places,
    ) -> Result<From> {
        let declared = alias.map_or(&[][..], |alias| alias.columns.as_slice());
        if declared.is_empty() || declared.iter().any(|column| column.data_type.is_none()) {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "a column definition list is required for functions returning \"record\"",
            ));
        }
        let json = self.coerce(json, function.of, None)?;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for declaration in declared {
            let Some(tree) = &declaration.data_type else {
                continue;
            };
            let (data_type, typmod) = self.data_type_in_query(tree)?;
            let key = normal(&declaration.name);
            let call = Expr::Call {
                function: records::column_of(data_type, function.is_set),
                arguments: vec![json.clone(), Expr::Constant(Value::text(&*key))],
            };
            let of_call = match data_type.array_type() {
                Some(array) if function.is_set => array,
                _ => data_type,
            };
            values.push(match typmod {
                ..0 => call,
                _ => Expr::Cast {
                    input: Box::new(call),
                    from: of_call,
                    to: of_call,
                    typmod,
                    context: CastContext::Assignment,
                },
            });
            columns.push(Column {
                type_modifier: typmod,
                ..Column::computed(key, data_type)
            });
        }
        let rows = match function.is_set {
            false => Rows::Values(vec![values]),
            true => Rows::Functions(SetFunctions {
                calls: values.into_iter().map(SetCall::Unnest).collect(),
                ordinality: false,
            }),
        };
        self.leaf(name, &columns, rows, alias, places)
    }
}

/// True for ROWS FROM.
fn is_rows_from(name: &ast::ObjectName) -> bool {
    matches!(
        name.0.as_slice(),
        [ast::ObjectNamePart::Identifier(ident)] if ident.quote_style == Some(ROWS_FROM)
    )
}

/// True if a function gives any number of rows.
fn gives_rows(name: &str) -> bool {
    is_set_function(name) || parts::columns(name).is_some() || name == "pg_options_to_table"
}

/// The name of the only column of a function.
fn known_as(function: &str, alias: Option<&ast::TableAlias>) -> String {
    alias.map_or_else(|| function.to_owned(), |alias| normal(&alias.name))
}

/// True if an alias has types of columns.
fn declares_types(alias: &ast::TableAlias) -> bool {
    alias.columns.iter().any(|column| column.data_type.is_some())
}

/// An argument without a name.
fn unnamed(argument: &ast::FunctionArg) -> Option<&ast::Expr> {
    match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) => match tree {
            ast::Expr::Prefixed { .. } => None,
            ast::Expr::BinaryOp {
                op: ast::BinaryOperator::Assignment,
                ..
            } => None,
            tree => Some(tree),
        },
        _ => None,
    }
}

/// A call as it stands in an expression.
fn call_of(name: &ast::ObjectName, args: &[ast::FunctionArg]) -> ast::Expr {
    ast::Expr::Function(ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: args.to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A function that gives one value, as one that gives rows: the only element of an array.
fn one_row_of(name: &str, typed: Typed) -> Result<Called> {
    let array_type = typed
        .data_type
        .array_type()
        .filter(|_| !typed.data_type.is_array());
    let array_type = array_type.ok_or_else(|| {
        EngineError::not_supported(format!(
            "a function that gives {} beside others or with ordinality",
            typed.data_type
        ))
    })?;
    let column = Column {
        type_modifier: typed.typmod,
        ..Column::computed(name, typed.data_type)
    };
    Ok(Called {
        name: name.to_owned(),
        columns: vec![column],
        calls: vec![SetCall::Unnest(Expr::Call {
            function: array::constructor(array_type, false),
            arguments: vec![typed.expr],
        })],
    })
}

/// An expression over a block's row, for a query inside it: what it reads of the row comes as arguments.
fn inside(expr: Expr, arguments: &mut Vec<Expr>) -> Result<Expr> {
    match expr {
        Expr::Column(_) | Expr::Outer(_) => {
            let known = arguments.iter().position(|known| *known == expr);
            let at = known.unwrap_or(arguments.len());
            if known.is_none() {
                arguments.push(expr);
            }
            Ok(Expr::Outer(at as u16))
        }
        other => crate::stack::checkpoint(|| other.map_children(&mut |child| inside(child, arguments))),
    }
}
