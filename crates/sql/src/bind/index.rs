//! CREATE INDEX: the parts of its key, and its predicate.
//!
//! Expressions and predicates are kept and bound anew as the condition of a CHECK constraint is ([`super::check`]). They
//! are immutable: an entry that was made of a row is found by what the row gives later.

use sqlparser::ast;

use crate::bind::check::{bind_index_key, bind_index_predicate};
use crate::bind::generated::is_immutable;
use crate::bind::index_key::{INDEX_COLUMNS_MAX, no_default_class};
use crate::bind::json::has_no_equality;
use crate::bind::scope::{Names, Scope};
use crate::bind::select::column_name;
use crate::bind::{Binder, Typed, normal, plain_name, refuse};
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::foreign_key::CheckTime;
use crate::index::{IndexDef, IndexedValue, KeptExpr, KeyOptions};
use crate::operator_class::{NamedClass, class_named};
use crate::parse::parse_expression;
use crate::plan::{CreateIndex, DefinitionStatement, IndexSpec, NewIndexKey, NewIndexedValue};
use crate::planner::Failure;
use crate::value::DataType;

/// The places of the expressions, as errors name them.
const KEY_CLAUSE: &str = "index expressions";
const PREDICATE_CLAUSE: &str = "index predicates";

impl Binder<'_> {
    pub(super) fn create_index(&mut self, create: &ast::CreateIndex) -> Result<DefinitionStatement> {
        refuse(
            !create.with.is_empty() && !only_fillfactor(&create.with),
            "this storage parameter of an index",
        )?;
        refuse(
            !create.index_options.is_empty() || !create.alter_options.is_empty(),
            "this option of CREATE INDEX",
        )?;
        let asks_for_hash = match &create.using {
            None | Some(ast::IndexType::BTree) => false,
            Some(ast::IndexType::Hash) => true,
            Some(other) => return Err(EngineError::not_supported(format!("USING {other}"))),
        };
        if asks_for_hash {
            require_fit_for_hash(create)?;
        }
        let table = self.table(&create.table_name)?;
        let of_relation = match (&table.view, &table.sequence) {
            (Some(_), _) => Some("views"),
            (None, Some(_)) => Some("sequences"),
            (None, None) => None,
        };
        if let Some(kinds) = of_relation {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot create index on relation \"{}\"", table.name),
            )
            .with_detail(format!("This operation is not supported for {kinds}.")));
        }
        let table = self.heap_table(&create.table_name)?;
        let predicate = match &create.predicate {
            None => None,
            Some(tree) => {
                self.index_predicate(tree, &table)?;
                Some(tree.to_string())
            }
        };
        let mut names = KeyNames::default();
        let mut keys = Vec::with_capacity(create.columns.len());
        for key in &create.columns {
            keys.push(self.new_index_key(key, &table, &mut names)?);
        }
        let mut included = Vec::with_capacity(create.include.len());
        for ident in &create.include {
            included.push(self.key_column(ident, &table)?);
            names.add(normal(ident));
        }
        if keys.len() + included.len() > INDEX_COLUMNS_MAX {
            return Err(EngineError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("cannot use more than {INDEX_COLUMNS_MAX} columns in an index"),
            ));
        }
        let name = match &create.name {
            Some(name) => plain_name(name)?,
            None => {
                let wanted = format!("{}_{}_idx", table.name, names.0.join("_"));
                self.free_name(&table.schema, &wanted)
            }
        };
        Ok(DefinitionStatement::CreateIndex(Box::new(CreateIndex {
            table,
            index: IndexSpec {
                name,
                unique: create.unique,
                check_time: CheckTime::default(),
                nulls_not_distinct: create.nulls_distinct == Some(false),
                primary: false,
                constraint: false,
                keys,
                included,
                predicate,
            },
            if_not_exists: create.if_not_exists,
            concurrently: create.concurrently,
            asks_for_hash,
        })))
    }

    /// A part of the key of CREATE INDEX.
    fn new_index_key(
        &mut self,
        key: &ast::IndexColumn,
        table: &TableDef,
        names: &mut KeyNames,
    ) -> Result<NewIndexKey> {
        let mut tree = &key.column.expr;
        let mut collation = None;
        // In parentheses it is the key's as well.
        let mut bare = tree;
        while let ast::Expr::Nested(inside) = bare {
            bare = inside;
        }
        if let ast::Expr::Collate {
            expr,
            collation: name,
        } = bare
        {
            tree = bare;
            // So that a collation that there is not, or that the type does not have, is an error.
            let scope = &mut Scope::of(Names::of_table(table, None, 0), KEY_CLAUSE);
            self.expression(tree, scope)?;
            collation = name
                .0
                .last()
                .map(|part| part.to_string().trim_matches('"').to_owned());
            tree = expr;
        }
        let (value, data_type) = match tree {
            ast::Expr::Identifier(ident) => {
                let column = self.key_column(ident, table)?;
                names.add(normal(ident));
                let data_type = table.columns[usize::from(column)].data_type;
                (NewIndexedValue::Column(column), data_type)
            }
            tree => {
                let typed = self.index_key(tree, table)?;
                names.add(expression_name(tree));
                (NewIndexedValue::Expression(tree.to_string()), typed.data_type)
            }
        };
        if data_type == DataType::Record {
            return Err(EngineError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{}\" has pseudo-type record", expression_name(tree)),
            ));
        }
        if has_no_equality(data_type) {
            return Err(no_default_class(data_type));
        }
        let descending = matches!(key.column.options.sort, Some(ast::OrderBySort::Desc));
        let class = match &key.operator_class {
            None => None,
            Some(name) => self.operator_class(name, data_type)?,
        };
        Ok(NewIndexKey {
            value,
            options: KeyOptions {
                descending,
                nulls_first: key.column.options.nulls_first.unwrap_or(descending),
                class,
                collation: collation.filter(|name| name != "default"),
            },
        })
    }

    /// The class of this name, unless it is the type's default.
    fn operator_class(&self, name: &ast::ObjectName, data_type: DataType) -> Result<Option<String>> {
        let (_, name, span) = super::split_name(name)?;
        match class_named(&name, data_type) {
            NamedClass::Default => Ok(None),
            NamedClass::Other => Ok(Some(name)),
            NamedClass::OfOtherType => Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("operator class \"{name}\" does not accept data type {data_type}"),
            )),
            NamedClass::Unknown => Err(EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("operator class \"{name}\" does not exist for access method \"btree\""),
            )
            .or_position(self.position(span))),
        }
    }

    /// The column that an index names.
    fn key_column(&self, ident: &ast::Ident, table: &TableDef) -> Result<u16> {
        let name = normal(ident);
        table.column_number(&name).ok_or_else(|| {
            EngineError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" does not exist"),
            )
            .or_position(self.position(ident.span))
        })
    }

    /// An expression that is a part of an index's key.
    pub(super) fn index_key(&mut self, tree: &ast::Expr, table: &TableDef) -> Result<Typed> {
        let names = Names::of_table(table, None, 0);
        let typed = self.expression(tree, &mut Scope::of(names, KEY_CLAUSE))?;
        let typed = match typed.data_type {
            DataType::Unknown => Typed::new(self.coerce(typed, DataType::Text, None)?, DataType::Text),
            _ => typed,
        };
        self.check_indexed(&typed.expr, "index expression", tree)?;
        Ok(typed)
    }

    /// The predicate of an index.
    pub(super) fn index_predicate(&mut self, tree: &ast::Expr, table: &TableDef) -> Result<Expr> {
        let position = self.position_of(tree);
        let names = Names::of_table(table, None, 0);
        let typed = self.expression(tree, &mut Scope::of(names, PREDICATE_CLAUSE))?;
        let expr = self.condition(typed, "WHERE", position)?;
        self.check_indexed(&expr, "index predicate", tree)?;
        Ok(expr)
    }

    fn check_indexed(&self, expr: &Expr, place: &str, tree: &ast::Expr) -> Result<()> {
        let error = match () {
            () if expr.has_subquery() => EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot use subquery in {place}"),
            ),
            () if !is_immutable(expr) => EngineError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                format!("functions in {place} must be marked IMMUTABLE"),
            ),
            () if !self.params.is_empty() => {
                EngineError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1")
            }
            () => return Ok(()),
        };
        Err(error.or_position(self.position_of(tree)))
    }
}

/// Gives a text the expression that it is bound to.
fn keep(kept: &mut KeptExpr, expr: Expr) {
    kept.simplified = Failure::default().simplified(expr.clone());
    kept.expr = expr;
}

/// Binds the expressions of an index anew over a row of its table, and gives its key the types that they have there.
pub fn bind_index(index: &mut IndexDef, table: &TableDef) -> Result<()> {
    index.types.clear();
    for key in &mut index.keys {
        index.types.push(match &mut key.value {
            IndexedValue::Column(column) => match table.columns.get(usize::from(*column)) {
                Some(column) => column.data_type,
                None => {
                    let name = &index.name;
                    return Err(EngineError::internal(format!(
                        "index \"{name}\" has a column {column}"
                    )));
                }
            },
            IndexedValue::Expression(kept) => {
                let (expr, data_type) = bind_index_key(&kept.sql, table)?;
                keep(kept, expr);
                data_type
            }
        });
    }
    if let Some(predicate) = &mut index.predicate {
        keep(predicate, bind_index_predicate(&predicate.sql, table)?);
    }
    Ok(())
}

/// The names of an index's columns, as the catalog shows them: those of INCLUDE behind the key's.
pub fn index_column_names(index: &IndexDef, table: &TableDef) -> Vec<String> {
    let named = |column: u16| table.columns[usize::from(column)].name.clone();
    let mut names = KeyNames::default();
    for key in &index.keys {
        names.add(match &key.value {
            IndexedValue::Column(column) => named(*column),
            IndexedValue::Expression(kept) => match parse_expression(&kept.sql, 0) {
                Ok(tree) => expression_name(&tree),
                Err(_) => "expr".to_owned(),
            },
        });
    }
    index.included.iter().for_each(|column| names.add(named(*column)));
    names.0
}

/// PostgreSQL's name of an index's column that is an expression.
fn expression_name(tree: &ast::Expr) -> String {
    match column_name(tree) {
        name if name == "?column?" => "expr".to_owned(),
        name => name,
    }
}

/// The names of an index's columns, no two of them alike.
#[derive(Default)]
struct KeyNames(Vec<String>);

impl KeyNames {
    fn add(&mut self, wanted: String) {
        let numbered = (1..).map(|number| format!("{wanted}{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(numbered);
        let free = names.find(|name| !self.0.contains(name));
        self.0.push(free.unwrap_or(wanted));
    }
}

/// 0A000 for what a hash index cannot do: what is said with USING hash means the same here as in PostgreSQL, or fails.
fn require_fit_for_hash(create: &ast::CreateIndex) -> Result<()> {
    let refused = |what: &str| {
        EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("access method \"hash\" does not support {what}"),
        )
    };
    let options = || create.columns.iter().map(|key| &key.column.options);
    match () {
        () if create.unique => Err(refused("unique indexes")),
        () if !create.include.is_empty() => Err(refused("included columns")),
        () if create.columns.len() > 1 => Err(refused("multicolumn indexes")),
        () if options().any(|key| key.sort.is_some()) => Err(refused("ASC/DESC options")),
        () if options().any(|key| key.nulls_first.is_some()) => Err(refused("NULLS FIRST/LAST options")),
        () => Ok(()),
    }
}

/// True if all options are the fill factor, which an index has no use for.
fn only_fillfactor(options: &[ast::Expr]) -> bool {
    options.iter().all(|option| {
        matches!(option, ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Eq, .. }
        if matches!(&**left, ast::Expr::Identifier(ident) if normal(ident) == "fillfactor"))
    })
}
