//! Sequences in definitions: CREATE, ALTER and DROP SEQUENCE, identities of columns, and defaults that name relations.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::schema::require_logged;
use crate::bind::scope::Scope;
use crate::bind::types::no_column;
use crate::bind::{Binder, bound_default};
use crate::catalog::{ColumnDefault, TableDef, TableKind};
use crate::catalog_facts::no_relation;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::parts_of_name;
use crate::numbered_names::with_numbers;
use crate::numbered_types::types_by_number;
use crate::parse::utility::sequence as written;
use crate::parse::utility::{Name, NamedDefinition};
use crate::plan::{AlterSequencePlan, CreateSequence, DefinitionStatement, SequenceChange, SequenceColumn};
use crate::sequence::SequenceOptions;
use crate::value::DataType;

impl Binder<'_> {
    /// A statement about sequences; `None` for another one.
    pub(super) fn sequence_statement(
        &self,
        statement: &NamedDefinition,
    ) -> Result<Option<DefinitionStatement>> {
        Ok(Some(match statement {
            NamedDefinition::CreateSequence(create) => self.create_sequence(create)?,
            NamedDefinition::AlterSequence(alter) => self.alter_sequence(alter)?,
            NamedDefinition::DropSequence {
                sequences,
                if_exists,
                cascade,
            } => {
                let found = sequences
                    .iter()
                    .map(|name| self.sequence_to_drop(name, *if_exists));
                DefinitionStatement::DropSequence {
                    sequences: found.collect::<Result<_>>()?,
                    if_exists: *if_exists,
                    cascade: *cascade,
                }
            }
            _ => return Ok(None),
        }))
    }

    fn create_sequence(&self, create: &written::CreateSequence) -> Result<DefinitionStatement> {
        let name = &create.name;
        let schema = self.schema_for_table(
            create.temporary,
            name.schema.as_deref(),
            &name.name,
            Some(name.position),
        )?;
        refuse_name(&create.options)?;
        let owner = match &create.options.owned_by {
            Some(owner) => self.owning_column(owner)?,
            None => None,
        };
        create.options.options.numbers(None, false)?;
        require_logged(create.unlogged, &schema)?;
        Ok(DefinitionStatement::CreateSequence(Box::new(CreateSequence {
            schema,
            unlogged: create.unlogged,
            name: name.name.clone(),
            if_not_exists: create.if_not_exists,
            options: create.options.options.clone(),
            owner,
        })))
    }

    fn alter_sequence(&self, alter: &written::AlterSequence) -> Result<DefinitionStatement> {
        let name = &alter.name;
        let found = self.catalog.lookup_table(name.schema.as_deref(), &name.name);
        let sequence = match found {
            None if alter.if_exists => None,
            None => return Err(self.missing(name)),
            Some(found) => Some(sequence_only(found)?),
        };
        let change = match &alter.action {
            written::SequenceAction::Rename(to) => SequenceChange::Rename(to.clone()),
            written::SequenceAction::Owner(role) => SequenceChange::Owner(role.clone()),
            written::SequenceAction::SetSchema(schema) => {
                SequenceChange::SetSchema(self.schema_for(Some(schema), &name.name, None)?)
            }
            written::SequenceAction::SetLogged(logged) => SequenceChange::SetLogged(*logged),
            written::SequenceAction::Options(given) => {
                refuse_name(given)?;
                let owner = given.owned_by.as_ref();
                SequenceChange::Options {
                    options: given.options.clone(),
                    owner: owner.map(|owner| self.owning_column(owner)).transpose()?,
                }
            }
        };
        Ok(DefinitionStatement::AlterSequence(Box::new(AlterSequencePlan {
            name: name.name.clone(),
            sequence,
            change,
            tag: "ALTER SEQUENCE",
        })))
    }

    fn sequence_to_drop(&self, name: &Name, if_exists: bool) -> Result<(String, Option<Arc<TableDef>>)> {
        let found = self.catalog.lookup_table(name.schema.as_deref(), &name.name);
        let sequence = match found {
            None if if_exists => None,
            None => {
                self.require_schema(name.schema.as_deref(), None)?;
                return Err(EngineError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("sequence \"{}\" does not exist", name.name),
                ));
            }
            Some(found) => Some(sequence_only(found)?),
        };
        Ok((name.name.clone(), sequence))
    }

    pub(super) fn missing(&self, name: &Name) -> EngineError {
        match self.require_schema(name.schema.as_deref(), Some(name.position)) {
            Err(error) => error,
            Ok(()) => no_relation(&match &name.schema {
                Some(schema) => format!("{schema}.{}", name.name),
                None => name.name.clone(),
            }),
        }
    }

    /// The column that OWNED BY names; `None` for NONE.
    fn owning_column(&self, owner: &written::OwnedBy) -> Result<Option<SequenceColumn>> {
        let written::OwnedBy::Column { table: name, column } = owner else {
            return Ok(None);
        };
        let table = self.any_table(name).map_err(EngineError::without_position)?;
        if !matches!(table.kind, TableKind::Heap { .. }) {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("sequence cannot be owned by relation \"{}\"", table.name),
            ));
        }
        let number = table.column_number(column);
        let column = number.ok_or_else(|| no_column(&table.name, column))?;
        Ok(Some(SequenceColumn { table, column }))
    }

    /// A DEFAULT expression of a column of this type.
    pub(super) fn default_expression(
        &mut self,
        tree: &ast::Expr,
        data_type: DataType,
        typmod: i32,
        column: &str,
    ) -> Result<ColumnDefault> {
        let position = self.position_of(tree);
        let typed = self.expression(tree, &mut Scope::empty("DEFAULT expressions"))?;
        let expr = self.assign(typed, data_type, typmod, column, position)?;
        self.default_of(&tree.to_string(), expr, data_type, typmod)
    }

    /// The DEFAULT of this text, which means this expression.
    pub(super) fn default_of(
        &self,
        written: &str,
        expr: Expr,
        data_type: DataType,
        typmod: i32,
    ) -> Result<ColumnDefault> {
        let sql = types_by_number(&with_numbers(written, |name| self.relation_number(name))?);
        let expr = match sql == written {
            true => expr,
            false => bound_default(&sql, data_type, typmod)?,
        };
        Ok(ColumnDefault::Expression { sql, expr })
    }

    /// The number of the relation of this name.
    fn relation_number(&self, text: &str) -> Result<u32> {
        let mut parts = parts_of_name(text)?;
        let name = parts.pop().unwrap_or_default();
        let schema = parts.pop();
        if let Some(table) = self.catalog.lookup_table(schema.as_deref(), &name) {
            return Ok(table.oid);
        }
        let owner = self.catalog.lookup_index(schema.as_deref(), &name);
        let mut indexes = owner.iter().flat_map(|table| &table.indexes);
        let found = indexes.find(|index| index.name == name).map(|index| index.oid);
        found.ok_or_else(|| {
            no_relation(&match &schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name,
            })
        })
    }
}

/// 42809 for a relation that is no sequence.
fn sequence_only(found: Arc<TableDef>) -> Result<Arc<TableDef>> {
    match found.sequence {
        Some(_) => Ok(found),
        None => Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a sequence", found.name),
        )),
    }
}

/// 42601 for a name among the options of a sequence that has one.
fn refuse_name(options: &written::WrittenOptions) -> Result<()> {
    match &options.name {
        None => Ok(()),
        Some(_) => Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            "invalid sequence option SEQUENCE NAME",
        )),
    }
}

/// The options of an identity column, as sqlparser reads them.
pub(super) fn options_of(trees: &[ast::SequenceOptions]) -> Result<SequenceOptions> {
    use ast::SequenceOptions as Option_;
    let mut options = SequenceOptions::default();
    for tree in trees {
        let is_new = match tree {
            Option_::IncrementBy(value, _) => options.increment.replace(bigint(value)?).is_none(),
            Option_::MinValue(value) => options
                .min
                .replace(value.as_ref().map(bigint).transpose()?)
                .is_none(),
            Option_::MaxValue(value) => options
                .max
                .replace(value.as_ref().map(bigint).transpose()?)
                .is_none(),
            Option_::StartWith(value, _) => options.start.replace(bigint(value)?).is_none(),
            Option_::Cache(value) => options.cache.replace(bigint(value)?).is_none(),
            // True for NO CYCLE.
            Option_::Cycle(no) => options.cycle.replace(!no).is_none(),
        };
        if !is_new {
            return Err(written::redundant());
        }
    }
    Ok(options)
}

fn bigint(tree: &ast::Expr) -> Result<i64> {
    let text = tree.to_string();
    text.replace(' ', "").parse().map_err(|_| {
        EngineError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type bigint"),
        )
    })
}
