//! CREATE TABLE and CREATE INDEX.

use sqlparser::ast;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;

use crate::bind::foreign_key::{OwnTable, check_time};
use crate::bind::generated;
use crate::bind::index_key::{INDEX_COLUMNS_MAX, no_default_class};
use crate::bind::json::has_no_equality;
use crate::bind::schema::{on_commit, require_logged};
use crate::bind::sequence::options_of;
use crate::bind::table_parameters::parameters;
use crate::bind::{Binder, identifier, normal, plain_name, refuse, split_name};
use crate::catalog::{
    ColumnCompression, ColumnDef, ColumnDefault, SchemaRef, TableDef, require_no_system_name,
};
use crate::error::{EngineError, Result, SqlState};
use crate::foreign_key::CheckTime;
use crate::parse::utility::Name;
use crate::parse::utility::create_table::LikeClause;
use crate::parse::{has_nulls_not_distinct, is_nulls_not_distinct};
use crate::plan::{
    CreateTable, DefinitionStatement, IndexSpec, NewCheck, NewIndexedValue, OnCommit, TablePart, TakenComment,
};
use crate::sequence::{NewSequence, SequenceOptions};
use crate::value::DataType;

/// The most columns a table may have.
pub(super) const TABLE_COLUMNS_MAX: usize = 1_600;

impl Binder<'_> {
    pub(super) fn create_table(
        &mut self,
        create: &ast::CreateTable,
        likes: &[LikeClause],
        of: Option<&Name>,
    ) -> Result<DefinitionStatement> {
        refuse_odd_tables(create)?;
        let (schema, name, span) = split_name(&create.name)?;
        let position = self.position(span);
        let schema = self.schema_for_table(create.temporary, schema.as_deref(), &name, position)?;
        let asked = create.on_commit.as_ref().map(|action| match action {
            ast::OnCommit::PreserveRows => OnCommit::PreserveRows,
            ast::OnCommit::DeleteRows => OnCommit::DeleteRows,
            ast::OnCommit::Drop => OnCommit::Drop,
        });
        let on_commit = on_commit(asked, &schema)?;
        let mut table = NewTable {
            name,
            columns: Vec::with_capacity(create.columns.len()),
            indexes: Vec::new(),
            checks: Vec::new(),
            comments: Vec::new(),
        };
        let of_type = of.map(|name| self.composite_named(name)).transpose()?;
        if let Some(of_type) = &of_type {
            self.typed_columns(of_type, &create.columns, &mut table)?;
        }
        let mut likes = likes.iter().peekable();
        let own_columns = create.columns.iter().filter(|_| of_type.is_none());
        for (number, tree) in own_columns.enumerate() {
            while let Some(like) = likes.next_if(|like| like.after_columns <= number) {
                self.like_table(like, &mut table)?;
            }
            let position = self.position(tree.name.span);
            let (column, constraints) = self
                .column_def(tree, &table.name)
                .map_err(|error| error.or_position(position))?;
            let number = table.columns.len() as u16;
            table
                .add_column(column)
                .map_err(|error| error.or_position(position))?;
            table.add_column_keys(number, tree, constraints)?;
        }
        for like in likes {
            self.like_table(like, &mut table)?;
        }
        if table.columns.len() > TABLE_COLUMNS_MAX {
            return Err(EngineError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("tables can have at most {TABLE_COLUMNS_MAX} columns"),
            ));
        }
        let options: Vec<&ast::ColumnDef> = create.columns.iter().collect();
        self.bind_generated_columns(&table.name, &mut table.columns, &options)?;
        let whole = TableDef::in_the_making(&table.name, &table.columns);
        let checks = self.new_checks(&whole, &options, &create.constraints)?;
        let own = OwnTable::new(&schema, &table.name);
        let foreign_keys = self.new_foreign_keys(Some(&own), &options, &create.constraints)?;
        let is_key = |constraint: &&ast::TableConstraint| {
            !matches!(
                constraint,
                ast::TableConstraint::Check(_) | ast::TableConstraint::ForeignKey(_)
            )
        };
        for constraint in create.constraints.iter().filter(is_key) {
            let key = unique_constraint(constraint)?;
            let (names, numbers) = self.key_columns(key.columns, &table.columns)?;
            let name = key
                .name
                .unwrap_or_else(|| default_name(&table.name, &names, key.primary));
            let index = IndexSpec::of_constraint(name, numbers, key.primary);
            let index = index.with_nulls_not_distinct(key.nulls_not_distinct);
            table.add_index(index.checked_at(key.check_time))?;
        }
        let NewTable {
            name,
            mut columns,
            indexes,
            checks: mut taken,
            mut comments,
        } = table;
        put_behind(&mut taken, checks, &mut comments);
        for index in indexes.iter().filter(|index| index.primary) {
            for key in &index.keys {
                if let NewIndexedValue::Column(number) = key.value {
                    columns[usize::from(number)].not_null = true;
                }
            }
        }
        let parameters = parameters(&create.table_options)?;
        require_logged(create.unlogged, &schema)?;
        Ok(DefinitionStatement::CreateTable(Box::new(CreateTable {
            schema,
            on_commit,
            name,
            if_not_exists: create.if_not_exists,
            of_type: of_type.map(|of| of.oid.get()),
            columns,
            indexes,
            checks: taken,
            foreign_keys,
            parameters,
            unlogged: create.unlogged,
            comments,
        })))
    }

    /// A column, and the keys that it is by itself.
    pub(super) fn column_def(
        &mut self,
        tree: &ast::ColumnDef,
        table: &str,
    ) -> Result<(ColumnDef, Vec<ColumnKey>)> {
        let serial = serial_type(&tree.data_type);
        let (data_type, typmod) = match serial {
            Some(data_type) => (data_type, -1),
            None => self.data_type(&tree.data_type)?,
        };
        self.column_of_type(tree, table, (data_type, typmod), serial.is_some())
    }

    /// The same, whatever type is written.
    pub(super) fn column_of_type(
        &mut self,
        tree: &ast::ColumnDef,
        table: &str,
        (data_type, typmod): (DataType, i32),
        is_serial: bool,
    ) -> Result<(ColumnDef, Vec<ColumnKey>)> {
        let name = identifier(&tree.name)?;
        let mut column = ColumnDef {
            name,
            data_type,
            typmod,
            not_null: false,
            default: None,
            always_generated: false,
            is_identity: false,
            collation: None,
            chosen_storage: None,
            compression: ColumnCompression::Default,
            statistics_target: None,
        };
        if is_serial {
            column.not_null = true;
            column.default = Some(ColumnDefault::NewSequence(Box::new(NewSequence {
                identity: false,
                name: None,
                options: of_type(data_type),
            })));
        }
        let mut keys = Vec::new();
        let (mut identity, mut is_nullable) = (false, false);
        for option in &tree.options {
            let given = option.name.as_ref().map(normal);
            match &option.option {
                ast::ColumnOption::Null if column.not_null => {
                    return Err(both_null_and_not_null(&column.name, table));
                }
                ast::ColumnOption::Null => is_nullable = true,
                ast::ColumnOption::NotNull if is_nullable => {
                    return Err(both_null_and_not_null(&column.name, table));
                }
                ast::ColumnOption::NotNull => column.not_null = true,
                ast::ColumnOption::Default(tree) => {
                    if column.default.is_some() {
                        return Err(second_default(&column, table, identity));
                    }
                    self.require_bare_default(tree)?;
                    column.default = Some(self.default_expression(tree, data_type, typmod, &column.name)?);
                }
                ast::ColumnOption::PrimaryKey(constraint) => {
                    column.not_null = true;
                    keys.push(ColumnKey {
                        primary: true,
                        name: given,
                        check_time: check_time(constraint.characteristics.as_ref())?,
                    });
                }
                ast::ColumnOption::Unique(constraint) => {
                    keys.push(ColumnKey {
                        primary: false,
                        name: given,
                        check_time: check_time(constraint.characteristics.as_ref())?,
                    });
                }
                ast::ColumnOption::Generated {
                    generated_as: generated_as @ (ast::GeneratedAs::Always | ast::GeneratedAs::ByDefault),
                    sequence_options,
                    generation_expr: None,
                    ..
                } => {
                    if column.default.is_some() {
                        return Err(second_identity(&column, table, identity));
                    }
                    if is_nullable {
                        return Err(both_null_and_not_null(&column.name, table));
                    }
                    identity = true;
                    column.not_null = true;
                    let given = options_of(sequence_options.as_deref().unwrap_or_default())?;
                    let options = SequenceOptions {
                        data_type: Some(data_type),
                        ..given
                    };
                    options.numbers(None, true)?;
                    column.default = Some(ColumnDefault::NewSequence(Box::new(NewSequence {
                        identity: true,
                        name: None,
                        options,
                    })));
                    column.always_generated = *generated_as == ast::GeneratedAs::Always;
                    column.is_identity = true;
                }
                // Its expression is bound when all columns are known.
                ast::ColumnOption::Generated {
                    generated_as: ast::GeneratedAs::ExpStored,
                    generation_expr: Some(tree),
                    generated_keyword: true,
                    ..
                } => {
                    if let Some(what) = second_generation(&column, identity) {
                        return Err(twice(what, &column, table));
                    }
                    column.default = Some(generated::unbound(tree));
                }
                // `new_checks` and `new_foreign_keys`, when all columns are known.
                ast::ColumnOption::Check(_) | ast::ColumnOption::ForeignKey(_) => {}
                // It is said of the key.
                option if is_nulls_not_distinct(option) => {}
                ast::ColumnOption::Collation(name) => column.collation = collation(name, &column)?,
                other => return Err(EngineError::not_supported(format!("the column option {other}"))),
            }
        }
        Ok((column, keys))
    }

    /// A name that no table or index has: the wanted one, or with a number behind it.
    pub(super) fn free_name(&self, schema: &SchemaRef, wanted: &str) -> String {
        let schema = Some(&*schema.name);
        let taken = |name: &str| {
            let catalog = self.catalog;
            catalog.lookup_table(schema, name).is_some() || catalog.lookup_index(schema, name).is_some()
        };
        let numbered = (1..).map(|number| format!("{wanted}{number}"));
        std::iter::once(wanted.to_owned())
            .chain(numbered)
            .find(|name| !taken(name))
            .expect("names do not run out")
    }

    fn key_columns(
        &self,
        keys: &[ast::IndexColumn],
        columns: &[ColumnDef],
    ) -> Result<(Vec<String>, Vec<u16>)> {
        let mut names = Vec::with_capacity(keys.len());
        let mut numbers = Vec::with_capacity(keys.len());
        for key in keys {
            let ast::Expr::Identifier(ident) = &key.column.expr else {
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    "a constraint is over columns; CREATE UNIQUE INDEX takes expressions",
                )
                .or_position(self.position_of(&key.column.expr)));
            };
            let name = normal(ident);
            let number = columns
                .iter()
                .position(|column| column.name == name)
                .ok_or_else(|| {
                    EngineError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{name}\" does not exist"),
                    )
                    .or_position(self.position(ident.span))
                })? as u16;
            if numbers.contains(&number) {
                return Err(EngineError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" appears twice in a key"),
                )
                .or_position(self.position(ident.span)));
            }
            let data_type = columns[usize::from(number)].data_type;
            if has_no_equality(data_type) {
                return Err(no_default_class(data_type));
            }
            names.push(name);
            numbers.push(number);
        }
        if numbers.is_empty() || numbers.len() > INDEX_COLUMNS_MAX {
            return Err(EngineError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("an index has 1 to {INDEX_COLUMNS_MAX} columns"),
            ));
        }
        Ok((names, numbers))
    }
}

/// The reason why a column with this default cannot be generated.
/// The error for a column that is declared NULL and NOT NULL.
fn both_null_and_not_null(column: &str, table: &str) -> EngineError {
    EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!("conflicting NULL/NOT NULL declarations for column \"{column}\" of table \"{table}\""),
    )
}

fn second_generation(column: &ColumnDef, identity: bool) -> Option<&'static str> {
    Some(match &column.default {
        None => return None,
        Some(ColumnDefault::Generated { .. }) => "multiple generation clauses specified",
        Some(_) if identity => "both identity and generation expression specified",
        Some(_) => "both default and generation expression specified",
    })
}

/// The error for DEFAULT on a column that has one, or that is an identity.
fn second_default(column: &ColumnDef, table: &str, identity: bool) -> EngineError {
    let what = match &column.default {
        Some(ColumnDefault::Generated { .. }) => "both default and generation expression specified",
        _ if identity => "both default and identity specified",
        _ => "multiple default values specified",
    };
    twice(what, column, table)
}

/// The error for GENERATED AS IDENTITY on a column that has a default, or that is one.
fn second_identity(column: &ColumnDef, table: &str, identity: bool) -> EngineError {
    let what = if column.generated().is_some() {
        "both identity and generation expression specified"
    } else if identity {
        "multiple identity specifications"
    } else {
        "both default and identity specified"
    };
    twice(what, column, table)
}

fn twice(what: &str, column: &ColumnDef, table: &str) -> EngineError {
    EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!("{what} for column \"{}\" of table \"{table}\"", column.name),
    )
}

fn serial_type(tree: &ast::DataType) -> Option<DataType> {
    let ast::DataType::Custom(name, modifiers) = tree else {
        return None;
    };
    if !modifiers.is_empty() {
        return None;
    }
    match plain_name(name).ok()?.as_str() {
        "serial" | "serial4" => Some(DataType::Int4),
        "bigserial" | "serial8" => Some(DataType::Int8),
        "smallserial" | "serial2" => Some(DataType::Int2),
        _ => None,
    }
}

/// The options of a serial column of this type.
fn of_type(data_type: DataType) -> SequenceOptions {
    SequenceOptions {
        data_type: Some(data_type),
        ..SequenceOptions::default()
    }
}

/// PRIMARY KEY or UNIQUE of a column.
pub(super) struct ColumnKey {
    pub(super) primary: bool,
    /// The name that is given.
    pub(super) name: Option<String>,
    pub(super) check_time: CheckTime,
}

/// PRIMARY KEY or UNIQUE of a table.
pub(super) struct KeyConstraint<'t> {
    pub(super) primary: bool,
    pub(super) nulls_not_distinct: bool,
    pub(super) check_time: CheckTime,
    /// The name that is given.
    pub(super) name: Option<String>,
    pub(super) columns: &'t [ast::IndexColumn],
}

pub(super) fn unique_constraint(constraint: &ast::TableConstraint) -> Result<KeyConstraint<'_>> {
    match constraint {
        ast::TableConstraint::PrimaryKey(key) => {
            refuse(
                !key.include.is_empty() || !key.index_options.is_empty(),
                "INCLUDE or an index option",
            )?;
            Ok(KeyConstraint {
                primary: true,
                nulls_not_distinct: false,
                check_time: check_time(key.characteristics.as_ref())?,
                name: key.name.as_ref().map(normal),
                columns: &key.columns,
            })
        }
        ast::TableConstraint::Unique(key) => {
            refuse(
                !key.include.is_empty() || !key.index_options.is_empty(),
                "INCLUDE or an index option",
            )?;
            Ok(KeyConstraint {
                primary: false,
                nulls_not_distinct: matches!(key.nulls_distinct, ast::NullsDistinctOption::NotDistinct),
                check_time: check_time(key.characteristics.as_ref())?,
                name: key.name.as_ref().map(normal),
                columns: &key.columns,
            })
        }
        ast::TableConstraint::Index(_) => Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            "syntax error: an index is no part of CREATE TABLE; use CREATE INDEX",
        )),
        other => Err(EngineError::not_supported(format!("the constraint {other}"))),
    }
}

/// A table in the making.
#[derive(Debug)]
pub(super) struct NewTable {
    pub(super) name: String,
    pub(super) columns: Vec<ColumnDef>,
    pub(super) indexes: Vec<IndexSpec>,
    /// Those of LIKE.
    pub(super) checks: Vec<NewCheck>,
    pub(super) comments: Vec<TakenComment>,
}

impl NewTable {
    /// Adds a column; 42701 if there is one of its name.
    pub(super) fn add_column(&mut self, column: ColumnDef) -> Result<()> {
        require_no_system_name(&column.name)?;
        if self.columns.iter().any(|other| other.name == column.name) {
            return Err(EngineError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", column.name),
            ));
        }
        self.columns.push(column);
        Ok(())
    }

    /// Adds the keys that a column is by itself.
    pub(super) fn add_column_keys(
        &mut self,
        number: u16,
        tree: &ast::ColumnDef,
        keys: Vec<ColumnKey>,
    ) -> Result<()> {
        for key in keys {
            let names = std::slice::from_ref(&self.columns[usize::from(number)].name);
            let name = key
                .name
                .unwrap_or_else(|| default_name(&self.name, names, key.primary));
            let index = IndexSpec::of_constraint(name, [number], key.primary);
            let is_once = !key.primary && has_nulls_not_distinct(tree);
            self.add_index(index.with_nulls_not_distinct(is_once).checked_at(key.check_time))?;
        }
        Ok(())
    }

    /// Adds an index, with a number behind its name if another has it.
    pub(super) fn add_index(&mut self, mut index: IndexSpec) -> Result<()> {
        if index.primary && self.indexes.iter().any(|other| other.primary) {
            return Err(EngineError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!(
                    "multiple primary keys for table \"{}\" are not allowed",
                    self.name
                ),
            ));
        }
        let wanted = index.name.clone();
        let mut number = 0;
        while self.indexes.iter().any(|other| other.name == index.name) {
            number += 1;
            index.name = format!("{wanted}{number}");
        }
        self.indexes.push(index);
        Ok(())
    }
}

/// Puts the constraints that LIKE brings behind the statement's own.
fn put_behind(taken: &mut Vec<NewCheck>, own: Vec<NewCheck>, comments: &mut [TakenComment]) {
    let before = own.len() as u16;
    for comment in comments {
        if let TablePart::Check(place) = &mut comment.to {
            *place += before;
        }
    }
    taken.splice(..0, own);
}

/// 0A000 for forms of CREATE TABLE that there are not.
fn refuse_odd_tables(create: &ast::CreateTable) -> Result<()> {
    if create.query.is_some() {
        // Types or constraints stand before AS.
        return Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            "syntax error at or near \"AS\"",
        ));
    }
    refuse(
        create.partition_by.is_some() || create.partition_of.is_some(),
        "PARTITION BY",
    )?;
    refuse(create.inherits.is_some(), "INHERITS")?;
    refuse(create.like.is_some(), "CREATE TABLE … LIKE without parentheses")?;
    // Whatever else sqlparser knows of must be as if it had not been said.
    let mut plain = CreateTableBuilder::new(create.name.clone()).build();
    plain.columns.clone_from(&create.columns);
    plain.constraints.clone_from(&create.constraints);
    plain.table_options.clone_from(&create.table_options);
    plain.if_not_exists = create.if_not_exists;
    plain.temporary = create.temporary;
    plain.unlogged = create.unlogged;
    // LOCAL and GLOBAL mean nothing.
    plain.global = create.global;
    plain.on_commit.clone_from(&create.on_commit);
    plain.hive_formats.clone_from(&create.hive_formats);
    refuse(plain != *create, "this option of CREATE TABLE")
}

pub(super) fn default_name(table: &str, names: &[String], primary: bool) -> String {
    if primary {
        format!("{table}_pkey")
    } else {
        format!("{table}_{}_key", names.join("_"))
    }
}

/// The collation of a column, by its name; `None` for that of its type.
fn collation(name: &ast::ObjectName, column: &ColumnDef) -> Result<Option<Box<str>>> {
    let base = column.data_type.base();
    if !base.is_text() {
        return Err(EngineError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("collations are not supported by type {}", base.name()),
        ));
    }
    match plain_name(name)?.as_str() {
        "default" => Ok(None),
        known @ ("C" | "POSIX") => Ok(Some(known.into())),
        _ => Err(EngineError::not_supported(format!("COLLATE {name}"))),
    }
}
