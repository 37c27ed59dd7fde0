//! CREATE and ALTER SEQUENCE, and the sequences of columns.
//!
//! Options are in the sequence's definition, and change with the transaction. Its state is in its relation, and does not:
//! numbers that were given out stay given out. Only what begins anew (RESTART, TRUNCATE … RESTART IDENTITY) gets a new
//! relation, so that a rollback leaves the numbers where they were.

use std::sync::Arc;

use clearway_storage::RelId;

use crate::catalog::owned_sequences::{owner_of, sequence_name};
use crate::catalog::sequence::Sequence;
use crate::catalog::{CatalogState, FIRST_OID, TableEntry};
use crate::definition::{DefinitionChange, ReadableBy, already_exists, notice};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{AlterSequencePlan, CreateSequence, OnCommit, SequenceChange, SequenceColumn};
use clearway_sql::sequence::{NewSequence, SequenceDef, SequenceOptions, SequenceOwner, require_within};
use clearway_sql::{ColumnDefault, SchemaRef, TableDef, bind_default};

/// A sequence to be made.
struct Made<'m> {
    schema: &'m SchemaRef,
    name: String,
    options: &'m SequenceOptions,
    owner: Option<SequenceOwner>,
    /// It is said to be UNLOGGED, or is a column's of such a table.
    unlogged: bool,
}

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn create_sequence(&mut self, create: &CreateSequence) -> Result<()> {
        if create.schema.is_temporary() {
            self.execution.txn.open_temporary();
        }
        let mut state = self.state()?;
        if !self.may_make(&state, create.schema.oid, &create.name, create.if_not_exists)? {
            return Ok(());
        }
        let owner = create.owner.as_ref().map(|owner| owned_by(owner, &create.schema));
        let made = Made {
            schema: &create.schema,
            name: create.name.clone(),
            options: &create.options,
            owner: owner.transpose()?,
            unlogged: create.unlogged,
        };
        self.add_sequence(&mut state, made)?;
        self.keep(state, &create.schema);
        Ok(())
    }

    /// The number of a new sequence.
    fn add_sequence(&mut self, state: &mut CatalogState, made: Made<'_>) -> Result<u32> {
        let identity = made.owner.is_some_and(|owner| owner.identity);
        let numbers = made.options.numbers(None, identity)?;
        let first = match made.options.restart {
            Some(Some(first)) => first,
            _ => numbers.start,
        };
        require_within("RESTART", first, numbers.min, numbers.max)?;
        let rel = self.create_rel(made.schema)?;
        Sequence::create(self.execution.storage, rel, first)?;
        let sequence = SequenceDef {
            rel: rel.0,
            numbers,
            owner: made.owner,
        };
        let mut table = TableDef::of_sequence(FIRST_OID + rel.0, made.name, sequence);
        table.schema = made.schema.clone();
        table.unlogged = made.unlogged;
        self.lock_new(table.oid)?;
        let added = self.add(state, table, OnCommit::PreserveRows)?;
        Ok(added.oid)
    }

    /// Makes the sequence that a column is to have, if it is to have one: its default names it from then on.
    pub(super) fn make_sequence(
        &mut self,
        state: &mut CatalogState,
        table: &mut TableDef,
        column: u16,
    ) -> Result<()> {
        let place = usize::from(column);
        let Some(ColumnDefault::NewSequence(new)) = table.columns[place].default.clone() else {
            return Ok(());
        };
        let (schema, name) = self.name_for(state, table, &table.columns[place].name, &new)?;
        let made = Made {
            schema: &schema,
            name,
            options: &new.options,
            owner: Some(SequenceOwner {
                table: table.oid,
                attribute: table.attribute_number(column),
                identity: new.identity,
            }),
            unlogged: table.unlogged,
        };
        let oid = self.add_sequence(state, made)?;
        let (data_type, typmod) = (table.columns[place].data_type, table.columns[place].typmod);
        table.columns[place].default = Some(match new.identity {
            true => ColumnDefault::Identity(oid),
            false => {
                let sql = format!("nextval('{oid}'::regclass)");
                let expr = bind_default(&sql, data_type, typmod)?;
                ColumnDefault::Expression { sql, expr }
            }
        });
        Ok(())
    }

    /// The schema and name of a column's new sequence: those given, or a name of table and column, with a number behind it
    /// if it is taken.
    fn name_for(
        &self,
        state: &CatalogState,
        table: &TableDef,
        column: &str,
        new: &NewSequence,
    ) -> Result<(SchemaRef, String)> {
        if let Some((schema, name)) = &new.name {
            let schema = match schema {
                None => Some(table.schema.clone()),
                Some(schema) => state.schema_named(schema),
            };
            let schema = schema
                .filter(|schema| *schema == table.schema)
                .ok_or_else(other_schema)?;
            return match state.is_taken(schema.oid, name) {
                true => Err(already_exists(name)),
                false => Ok((schema, name.clone())),
            };
        }
        let numbered = (1..).map(|number: u32| sequence_name(&table.name, column, &number.to_string()));
        let mut names = std::iter::once(sequence_name(&table.name, column, "")).chain(numbered);
        let free = names.find(|name| *name != table.name && !state.is_taken(table.schema.oid, name));
        Ok((table.schema.clone(), free.unwrap_or_default()))
    }

    pub(super) fn alter_sequence(&mut self, alter: &AlterSequencePlan) -> Result<()> {
        let Some(sequence) = &alter.sequence else {
            let text = format!("relation \"{}\" does not exist, skipping", alter.name);
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        };
        let entry = self.execution.entry(sequence)?;
        match &alter.change {
            SequenceChange::Owner(owner) => match owner_of(&entry) {
                Some(column) => Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot change owner of sequence",
                )
                .with_detail(self.linked(&entry, column))),
                None => self.relation_owner(&entry, owner),
            },
            SequenceChange::Rename(name) => {
                if self.state()?.is_taken(entry.def.schema.oid, name) {
                    return Err(already_exists(name));
                }
                let mut table = (*entry.def).clone();
                table.name.clone_from(name);
                self.redefine(&entry, table)
            }
            SequenceChange::SetSchema(schema) => self.move_sequence(&entry, schema),
            SequenceChange::SetLogged(logged) => self.set_sequence_logged(&entry, *logged),
            SequenceChange::Options { options, owner } => self.set_options(&entry, options, owner.as_ref()),
        }
    }

    pub(super) fn linked(&self, entry: &TableEntry, owner: SequenceOwner) -> String {
        let state = self.execution.txn.catalog_state();
        let table = state.table(owner.table).map(|entry| entry.def.name.clone());
        format!(
            "Sequence \"{}\" is linked to table \"{}\".",
            entry.def.name,
            table.unwrap_or_default()
        )
    }

    /// Changes options of a sequence, and the column that it belongs to.
    pub(super) fn set_options(
        &mut self,
        entry: &TableEntry,
        options: &SequenceOptions,
        owner: Option<&Option<SequenceColumn>>,
    ) -> Result<()> {
        let mut sequence = sequence_in(entry)?.clone();
        if let Some(owner) = owner {
            if let Some(identity) = sequence.owner.filter(|owner| owner.identity) {
                let detail = self.linked(entry, identity);
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot change ownership of identity sequence",
                )
                .with_detail(detail));
            }
            let owner = owner.as_ref().map(|owner| owned_by(owner, &entry.def.schema));
            sequence.owner = owner.transpose()?;
        }
        let identity = sequence.owner.is_some_and(|owner| owner.identity);
        let before = sequence.numbers;
        sequence.numbers = options.numbers(Some(&before), identity)?;
        let numbers = sequence.numbers;
        if let Some(first) = options.restart {
            let first = first.unwrap_or(numbers.start);
            require_within("RESTART", first, numbers.min, numbers.max)?;
            sequence.rel = self.anew(entry, first)?;
        } else if !options.is_empty() {
            let counted = self.catalog.sequence(sequence.rel);
            let now = counted.now(self.execution.storage, false)?;
            require_within("RESTART", now.last, numbers.min, numbers.max)?;
            if options.count_anew(&before, &numbers) {
                counted.reserve_anew();
            }
        }
        let mut table = (*entry.def).clone();
        table.sequence = Some(Arc::new(sequence));
        self.redefine(entry, table)
    }

    /// A fresh relation for a sequence, which begins with `first`.
    fn anew(&mut self, entry: &TableEntry, first: i64) -> Result<u32> {
        let rel = self.create_rel(&entry.def.schema)?;
        Sequence::create(self.execution.storage, rel, first)?;
        self.execution.txn.note_dropped(RelId(sequence_in(entry)?.rel));
        Ok(rel.0)
    }

    /// Lets a sequence begin with its first number again.
    pub(super) fn begin_anew(&mut self, state: &mut CatalogState, entry: &TableEntry) -> Result<()> {
        let mut sequence = sequence_in(entry)?.clone();
        sequence.rel = self.anew(entry, sequence.numbers.start)?;
        let mut table = (*entry.def).clone();
        table.sequence = Some(Arc::new(sequence));
        self.replace(state, entry, table, ReadableBy::NewSnapshots)
    }

    /// Changes the type of the sequence of an identity column together with the column's.
    pub(super) fn retype_identity(&mut self, table: &TableDef, column: u16) -> Result<()> {
        let column = &table.columns[usize::from(column)];
        let Some(ColumnDefault::Identity(sequence)) = column.default else {
            return Ok(());
        };
        let options = SequenceOptions {
            data_type: Some(column.data_type),
            ..SequenceOptions::default()
        };
        let entry = self.execution.txn.catalog_state().table(sequence).cloned();
        match entry {
            Some(entry) => self.set_options(&entry, &options, None),
            None => Err(EngineError::internal("an identity column has no sequence")),
        }
    }
}

fn sequence_in(entry: &TableEntry) -> Result<&SequenceDef> {
    let sequence = entry.def.sequence.as_deref();
    sequence.ok_or_else(|| EngineError::internal(format!("\"{}\" is no sequence", entry.def.name)))
}

/// The owner that OWNED BY names, of a sequence in this schema.
fn owned_by(owner: &SequenceColumn, schema: &SchemaRef) -> Result<SequenceOwner> {
    if owner.table.schema != *schema {
        return Err(other_schema());
    }
    Ok(SequenceOwner {
        table: owner.table.oid,
        attribute: owner.table.attribute_number(owner.column),
        identity: false,
    })
}

fn other_schema() -> EngineError {
    EngineError::new(
        SqlState::from_code("55000"),
        "sequence must be in same schema as table it is linked to",
    )
}
