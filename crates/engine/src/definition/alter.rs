//! ALTER TABLE.
//!
//! Each action makes a new definition of the newest one, so that it sees what those before it have done. Rows stay as
//! they are where they can (`value::row` of the SQL crate): a dropped column keeps its place in them, and an added one is
//! behind them, with its default of now as the value of older rows. They are written anew when a type changes the stored
//! values, and when an added column's default is another one in each row.

use std::sync::Arc;

use clearway_storage::RelId;

use crate::catalog::TableEntry;
use crate::catalog::comment::addresses_of_index;
use crate::convert::storage_error;
use crate::definition::check::{already_there, has_constraint};
use crate::definition::composite::{require_no_row_inside, require_rows_not_held};
use crate::definition::rewrite::each_row;
use crate::definition::written_names::require_row_type_unwritten;
use crate::definition::{
    DefinitionChange, ReadableBy, already_exists, check, default, generated, kept_index, notice,
};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::expr::{Expr, domain};
use clearway_sql::plan::{
    AlterTablePlan, CreateIndex, IndexSpec, NewCheck, NewForeignKey, NewKey, TableAction, TypeChange,
};
use clearway_sql::sequence::{NewSequence, SequenceNumbers, SequenceOptions};
use clearway_sql::value::{DataType, Value};
use clearway_sql::{
    Attribute, CheckDef, ColumnDef, ColumnDefault, IndexDef, ObjectAddress, TableDef, require_no_system_name,
};

/// The most attributes a table may have, dropped ones included.
const ATTRIBUTES_MAX: usize = 1_600;

/// The most bytes of a default that the definition keeps for the rows of before; with a longer one they are written anew.
const MISSING_BYTES_MAX: usize = 1_000;

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTablePlan) -> Result<()> {
        let Some(table) = &alter.table else {
            let text = format!("relation \"{}\" does not exist, skipping", alter.name);
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        };
        let before = Arc::clone(&self.execution.entry(table)?.def);
        self.require_no_waiting(table, alter.tag)?;
        for action in &alter.actions {
            let entry = self.execution.entry(table)?;
            self.table_action(&before, &entry, action)?;
        }
        Ok(())
    }

    /// Does an action; `before`: the table before the statement.
    fn table_action(&mut self, before: &TableDef, entry: &TableEntry, action: &TableAction) -> Result<()> {
        match action {
            TableAction::DropColumn { .. } | TableAction::SetTypes(_) => {
                require_rows_not_held(&self.state()?, &entry.def, false)?;
            }
            TableAction::AddColumn { column, .. } => {
                require_rows_not_held(&self.state()?, &entry.def, is_null_by_default(column))?;
            }
            _ => {}
        }
        match action {
            TableAction::DropColumn {
                name,
                if_exists,
                cascade,
            } => self.drop_column(entry, name, *if_exists, *cascade),
            TableAction::DropConstraint {
                name,
                if_exists,
                cascade,
            } => self.drop_constraint(&entry.def, name, *if_exists, *cascade),
            TableAction::SetTypes(changes) => self.set_types(before, entry, changes),
            TableAction::AddColumn {
                column,
                if_not_exists,
                keys,
                checks,
                foreign_keys,
            } => self.add_column(entry, column, *if_not_exists, (keys, checks, foreign_keys)),
            TableAction::SetDefault { name, default } => self.set_default(entry, name, default.as_ref()),
            TableAction::AddIdentity {
                name,
                always,
                sequence,
            } => self.add_identity(entry, name, *always, sequence),
            TableAction::SetIdentity {
                name,
                always,
                options,
            } => self.set_identity(entry, name, *always, options),
            TableAction::DropExpression { name, if_exists } => {
                let column = column_named(&entry.def, name)?;
                self.drop_expression(entry, column, *if_exists)
            }
            TableAction::DropIdentity { name, if_exists } => self.drop_identity(entry, name, *if_exists),
            TableAction::SetNotNull { name, not_null } => self.set_not_null(entry, name, *not_null),
            TableAction::SetStorage { name, storage } => self.set_storage(entry, name, *storage),
            TableAction::SetCompression { name, compression } => {
                self.set_compression(entry, name, *compression)
            }
            TableAction::AddKey(key) => self.add_key(&entry.def, key),
            TableAction::AddKeyUsingIndex(key) => self.add_key_using_index(entry, key),
            TableAction::AddCheck(check) => self.add_check(entry, check),
            TableAction::AddForeignKey(key) => self.add_foreign_key(entry, key),
            TableAction::ValidateConstraint(name) => self.validate_constraint(entry, name),
            TableAction::Rename(name) => self.rename_table(entry, name),
            TableAction::RenameColumn { from, to } => self.rename_column(entry, from, to),
            TableAction::RenameConstraint { from, to } => {
                match self.rename_check(entry, from, to)? || self.rename_foreign_key(entry, from, to)? {
                    true => Ok(()),
                    false => self.rename_index(entry, from, to, true),
                }
            }
            TableAction::RenameIndex { from, to } => self.rename_index(entry, from, to, false),
            TableAction::Owner(owner) => self.relation_owner(entry, owner),
            TableAction::SetSchema(schema) => self.move_table(entry, schema),
            TableAction::SetLogged(logged) => self.set_logged(entry, *logged),
            TableAction::OfType(of) => self.set_type_of_table(entry, *of),
            TableAction::SetCheckTime { name, time } => self.set_check_time(entry, name, *time),
            TableAction::Mark(mark) => self.mark(entry, mark),
            TableAction::SetParameters(changes) => self.set_parameters(&entry.def, changes),
        }
    }

    /// Replaces a definition by one under which rows are read as they are.
    pub(super) fn redefine(&mut self, entry: &TableEntry, table: TableDef) -> Result<()> {
        let mut state = self.state()?;
        let schema = table.schema.clone();
        self.replace(&mut state, entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &schema);
        Ok(())
    }

    pub(super) fn drop_column(
        &mut self,
        entry: &TableEntry,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let Some(place) = entry.def.column_number(name) else {
            let error = no_column(&entry.def, name);
            if !if_exists {
                return Err(error);
            }
            let text = format!("{}, skipping", error.message());
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        };
        let address = ObjectAddress {
            column: i32::from(entry.def.attribute_number(place)),
            ..ObjectAddress::relation(entry.def.oid)
        };
        let has_column = |index: &Arc<IndexDef>| index.names(place);
        let gone = entry.def.all_indexes().filter(|index| has_column(index));
        let parts: Vec<ObjectAddress> = gone
            .map(|index| match index.constraint {
                true => ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, index.oid),
                false => ObjectAddress::relation(index.oid),
            })
            .collect();
        self.drop_with_parts(&[address], &parts, cascade)?;
        // Generated columns that read it may have gone, and others have moved.
        let entry = &*self.execution.entry(&entry.def)?;
        let place = column_named(&entry.def, name)?;
        let has_column = |index: &Arc<IndexDef>| index.names(place);
        let gone: Vec<_> = entry
            .def
            .all_indexes()
            .filter(|index| has_column(index))
            .cloned()
            .collect();
        let mut state = self.state()?;
        let mut table = (*entry.def).clone();
        table.columns.remove(usize::from(place));
        table.set_attributes(without_column(&entry.def, place));
        table.indexes.retain(|index| !has_column(index));
        table.unfinished.retain(|other| !has_column(&other.index));
        table.map_indexes(|index| Ok::<_, EngineError>(kept_index::moved(index, place)))?;
        table.checks.retain(|check| !check.columns().contains(&place));
        let number = entry.def.attribute_number(place);
        table.foreign_keys.retain(|key| !key.columns.contains(&number));
        check::rebind(&mut table)?;
        let mut addresses = vec![address];
        let unread = entry
            .def
            .checks
            .iter()
            .filter(|check| check.columns().contains(&place));
        addresses.extend(unread.map(|check| check::address(check)));
        let keys = entry.def.foreign_keys.iter();
        let gone_keys = keys.filter(|key| key.columns.contains(&number));
        addresses.extend(gone_keys.map(|key| ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, key.oid)));
        for index in &gone {
            self.execution.txn.note_dropped(RelId(index.rel));
            self.execution.txn.coarsen_marks(entry.def.oid, &[index.oid]);
            addresses.extend(addresses_of_index(index.oid));
        }
        if !entry.def.schema.is_temporary() {
            self.remove_comments(&mut state, &addresses)?;
        }
        let before = self.without_statistics(entry);
        self.replace(&mut state, &before, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &entry.def.schema);
        Ok(())
    }

    fn add_column(
        &mut self,
        entry: &TableEntry,
        column: &ColumnDef,
        if_not_exists: bool,
        (keys, checks, foreign_keys): (&[NewKey], &[NewCheck], &[NewForeignKey]),
    ) -> Result<()> {
        let name = &column.name;
        require_no_system_name(name)?;
        if entry.def.column_number(name).is_some() {
            let text = format!(
                "column \"{name}\" of relation \"{}\" already exists",
                entry.def.name
            );
            if !if_not_exists {
                return Err(EngineError::new(SqlState::DUPLICATE_COLUMN, text));
            }
            let text = format!("{text}, skipping");
            self.outcome
                .notices
                .push(notice(SqlState::DUPLICATE_COLUMN, text));
            return Ok(());
        }
        if entry.def.attribute_count() >= ATTRIBUTES_MAX {
            return Err(EngineError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("tables can have at most {ATTRIBUTES_MAX} columns"),
            ));
        }
        let pages = self.execution.storage.block_count(RelId(entry.rel()));
        let is_empty = pages.map_err(storage_error)? == 0;
        let of_domain = match (&column.default, column.data_type) {
            (None, DataType::Domain(_)) => Some(domain::default_of(column.data_type)),
            _ => None,
        };
        let default = match &column.default {
            Some(ColumnDefault::Expression { expr, .. }) => Some(expr),
            _ => of_domain.as_ref(),
        };
        let value = match default {
            None if column.default.is_none() => Some(Value::Null),
            Some(expr) if expr.is_repeatable() => {
                let value = match expr.eval(&[], &self.execution.eval) {
                    // Only a row is refused what a domain does not allow.
                    Err(error) if of_domain.is_some() => {
                        each_row(self.execution, &entry.def, |_, _| Err(error.clone()))?;
                        Value::Null
                    }
                    evaluated => evaluated?,
                };
                // A long one has no place in the definition.
                (value.heap_bytes() <= MISSING_BYTES_MAX).then_some(value)
            }
            _ => None,
        };
        require_no_row_inside(&self.state()?, &entry.def, column.data_type)?;
        let mut table = with_column(&entry.def, column, value.as_ref().filter(|_| !is_empty), is_empty);
        let mut state = self.state()?;
        let last = table.columns.len() as u16 - 1;
        generated::print(&mut table)?;
        table.columns.iter_mut().try_for_each(default::keep)?;
        self.make_sequence(&mut state, &mut table, last)?;
        let made = state.owned_sequences(table.oid, Some(table.attribute_number(last)));
        self.keep(state, &table.schema);
        if value.is_none() && !is_empty {
            self.rewrite_with_default(entry, table, made.first(), (column.data_type, default))?;
        } else {
            if value.is_none() {
                // As if there were rows to be written anew.
                self.replace_long_rel(&mut table)?;
            }
            if column.not_null && value == Some(Value::Null) && !is_empty {
                self.require_no_nulls(&table, last)?;
            }
            self.redefine(entry, table)?;
        }
        for key in keys {
            let entry = self.execution.entry(&entry.def)?;
            self.add_key(&entry.def, key)?;
        }
        for check in checks {
            let entry = self.execution.entry(&entry.def)?;
            self.add_check(&entry, check)?;
        }
        for key in foreign_keys {
            let entry = self.execution.entry(&entry.def)?;
            self.add_foreign_key(&entry, key)?;
        }
        Ok(())
    }

    /// Writes the rows anew, with a default of a new column that is another one in each.
    fn rewrite_with_default(
        &mut self,
        entry: &TableEntry,
        table: TableDef,
        made: Option<&Arc<TableEntry>>,
        (data_type, default): (DataType, Option<&Expr>),
    ) -> Result<()> {
        let storage = Arc::clone(self.execution.storage);
        let seen = self.execution.txn.seen_commits();
        let generated = table.columns.last().and_then(ColumnDef::generated).cloned();
        self.rewrite(entry, &entry.def, table, &mut |mut row, context| {
            let made =
                made.and_then(|made| Some((made.sequence.as_ref()?, made.def.sequence.as_ref()?, made)));
            if let Some(expr) = &generated {
                let value = expr.eval(&row, context)?;
                row.push(value);
                return Ok(row);
            }
            row.push(match (default, made) {
                (Some(expr), _) => expr.eval(&[], context)?,
                (_, Some((state, sequence, made))) => {
                    // One at a time: no session would use others. R3 of `sequence`.
                    let numbers = SequenceNumbers {
                        cache: 1,
                        ..sequence.numbers
                    };
                    let next = state.next(&storage, &numbers, &made.def.name)?;
                    integer(next.noted_in(&seen, storage.secured()).first, data_type)
                }
                _ => Value::Null,
            });
            Ok(row)
        })
    }

    /// Changes types, of all columns whose types the statement changes at once: each new value is made of a row as it was
    /// before the statement, by whose definition `before` the rows are read.
    fn set_types(&mut self, before: &TableDef, entry: &TableEntry, changes: &[TypeChange]) -> Result<()> {
        let mut table = (*entry.def).clone();
        let mut attributes = table.attributes();
        let mut columns = Vec::with_capacity(changes.len());
        for change in changes {
            let column = column_named(&entry.def, &change.name)?;
            if columns.contains(&column) {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot alter type of column \"{}\" twice", change.name),
                ));
            }
            columns.push(column);
            self.require_unread(entry, column)?;
            generated::require_unread(&entry.def, column)?;
            let changed = &mut table.columns[usize::from(column)];
            changed.data_type = change.data_type;
            changed.chosen_storage = None;
            changed.typmod = change.typmod;
            changed.default = change.default.clone();
            let mut attribute = attributes.iter_mut();
            if let Some(attribute) = attribute.find(|attribute| attribute.column == Some(column)) {
                attribute.data_type = change.data_type;
            }
        }
        table.set_attributes(attributes);
        check::rebind(&mut table)?;
        self.require_comparable(entry, &table, &columns)?;
        let reads = |check: &CheckDef| {
            let mut read = check.columns().into_iter();
            check.validated && read.any(|column| columns.contains(&column))
        };
        if changes.iter().all(|change| change.value.is_none()) {
            self.require_checked(&table, reads)?;
            let before = self.without_statistics(entry);
            return self.redefine(&before, table);
        }
        for column in &columns {
            self.retype_identity(&table, *column)?;
        }
        let sources = sources(before, &table, changes, &columns)?;
        self.rewrite(entry, before, table, &mut |row, context| {
            let made = sources.iter().map(|source| match source {
                Source::Kept(place) => Ok(row[*place].clone()),
                Source::Made(value) => value.eval(&row, context),
            });
            made.collect()
        })?;
        let entry = self.execution.entry(&entry.def)?;
        self.require_checked(&entry.def, reads)
    }

    /// 0A000 for a column whose type or name a view depends on.
    fn require_unread(&self, entry: &TableEntry, column: u16) -> Result<()> {
        let number = entry.def.attribute_number(column);
        let state = self.execution.txn.catalog_state();
        let reads = |view: &Arc<TableEntry>| {
            let uses = view.def.view.iter().flat_map(|view| &view.uses);
            uses.into_iter()
                .any(|used| used.table == entry.def.oid && used.column == number)
        };
        match state.views().iter().any(reads) {
            true => Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a view or rule",
            )),
            false => Ok(()),
        }
    }

    fn set_default(&mut self, entry: &TableEntry, name: &str, default: Option<&ColumnDefault>) -> Result<()> {
        let place = usize::from(column_named(&entry.def, name)?);
        generated::require_plain(&entry.def, place as u16, default.is_none())?;
        let mut table = (*entry.def).clone();
        let column = &mut table.columns[place];
        if column.is_identity {
            let error = EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "column \"{name}\" of relation \"{}\" is an identity column",
                    entry.def.name
                ),
            );
            return Err(match default {
                None => error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
                Some(_) => error,
            });
        }
        column.default = default.cloned();
        default::keep(column)?;
        self.redefine(entry, table)
    }

    fn add_identity(
        &mut self,
        entry: &TableEntry,
        name: &str,
        always: bool,
        sequence: &NewSequence,
    ) -> Result<()> {
        let place = usize::from(column_named(&entry.def, name)?);
        let mut table = (*entry.def).clone();
        let column = &mut table.columns[place];
        let problem = match (&column.default, column.is_identity, column.not_null) {
            (_, true, _) => Some("is already an identity column"),
            (Some(_), _, _) => Some("already has a default value"),
            (None, _, false) if column.data_type.is_integer() => {
                Some("must be declared NOT NULL before identity can be added")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            let what = format!("column \"{name}\" of relation \"{}\" {problem}", entry.def.name);
            return Err(EngineError::new(SqlState::from_code("55000"), what));
        }
        if !column.data_type.is_integer() {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "identity column type must be smallint, integer, or bigint",
            ));
        }
        let mut sequence = sequence.clone();
        sequence.options.data_type = Some(column.data_type);
        column.default = Some(ColumnDefault::NewSequence(Box::new(sequence)));
        column.is_identity = true;
        column.always_generated = always;
        let mut state = self.state()?;
        self.make_sequence(&mut state, &mut table, place as u16)?;
        self.keep(state, &entry.def.schema);
        self.redefine(entry, table)
    }

    /// The sequence of an identity column; 55000 if it is none.
    fn identity_of(&self, entry: &TableEntry, name: &str) -> Result<(usize, u32)> {
        let place = usize::from(column_named(&entry.def, name)?);
        match entry.def.columns[place].default {
            Some(ColumnDefault::Identity(sequence)) => Ok((place, sequence)),
            _ => Err(EngineError::new(
                SqlState::from_code("55000"),
                format!(
                    "column \"{name}\" of relation \"{}\" is not an identity column",
                    entry.def.name
                ),
            )),
        }
    }

    fn set_identity(
        &mut self,
        entry: &TableEntry,
        name: &str,
        always: Option<bool>,
        options: &SequenceOptions,
    ) -> Result<()> {
        let (place, sequence) = self.identity_of(entry, name)?;
        if !options.is_empty() {
            let found = self.execution.txn.catalog_state().table(sequence).cloned();
            let found = found.ok_or_else(|| EngineError::internal("an identity column has no sequence"))?;
            self.set_options(&found, options, None)?;
        }
        let Some(always) = always else { return Ok(()) };
        let mut table = (*entry.def).clone();
        table.columns[place].always_generated = always;
        self.redefine(entry, table)
    }

    fn drop_identity(&mut self, entry: &TableEntry, name: &str, if_exists: bool) -> Result<()> {
        let (place, sequence) = match self.identity_of(entry, name) {
            Err(error) if if_exists && error.sqlstate() == SqlState::from_code("55000") => {
                let text = format!("{}, skipping", error.message());
                self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                return Ok(());
            }
            found => found?,
        };
        let mut table = (*entry.def).clone();
        let column = &mut table.columns[place];
        (column.default, column.is_identity, column.always_generated) = (None, false, false);
        self.redefine(entry, table)?;
        self.drop_relation(sequence)
    }

    fn set_not_null(&mut self, entry: &TableEntry, name: &str, not_null: bool) -> Result<()> {
        let column = column_named(&entry.def, name)?;
        let mut table = (*entry.def).clone();
        let is_key = table.primary_key().is_some_and(|index| index.reads(column));
        if !not_null && is_key {
            return Err(EngineError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{name}\" is in a primary key"),
            ));
        }
        let identifies = |index: &&Arc<IndexDef>| index.marks.replica_identity && index.reads(column);
        if !not_null && table.all_indexes().any(|index| identifies(&index)) {
            return Err(EngineError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{name}\" is in index used as replica identity"),
            ));
        }
        if !not_null && table.columns[usize::from(column)].is_identity {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "column \"{name}\" of relation \"{}\" is an identity column",
                    table.name
                ),
            ));
        }
        if not_null && !table.columns[usize::from(column)].not_null {
            self.require_no_nulls(&entry.def, column)?;
        }
        table.columns[usize::from(column)].not_null = not_null;
        self.redefine(entry, table)
    }

    fn add_key(&mut self, table: &Arc<TableDef>, key: &NewKey) -> Result<()> {
        let mut columns = Vec::with_capacity(key.columns.len());
        for name in &key.columns {
            let number = table.column_number(name).ok_or_else(|| match key.primary {
                // It would be made NOT NULL first.
                true => no_column(table, name),
                false => EngineError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" named in key does not exist"),
                ),
            })?;
            if columns.contains(&number) {
                let kind = if key.primary { "primary key" } else { "unique" };
                return Err(EngineError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" appears twice in {kind} constraint"),
                ));
            }
            columns.push(number);
        }
        let name = match &key.name {
            Some(name) => {
                let is_relation = self.state()?.is_taken(table.schema.oid, name);
                if !is_relation && has_constraint(table, name) {
                    return Err(already_there(table, name));
                }
                name.clone()
            }
            None => self.free_key_name(table, key),
        };
        let create = CreateIndex {
            table: Arc::clone(table),
            index: IndexSpec::of_constraint(name, columns, key.primary)
                .with_nulls_not_distinct(key.nulls_not_distinct)
                .checked_at(key.check_time),
            if_not_exists: false,
            concurrently: false,
            asks_for_hash: false,
        };
        self.create_index(&create)
    }

    /// The name that PostgreSQL gives to a key: that of table and columns, with a number behind it if it is taken.
    fn free_key_name(&self, table: &TableDef, key: &NewKey) -> String {
        let wanted = match key.primary {
            true => format!("{}_pkey", table.name),
            false => format!("{}_{}_key", table.name, key.columns.join("_")),
        };
        let state = self.execution.txn.catalog_state();
        let numbered = (1..).map(|number| format!("{wanted}{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(numbered);
        let free = names.find(|name| !state.is_taken(table.schema.oid, name));
        free.unwrap_or(wanted)
    }

    fn rename_table(&mut self, entry: &TableEntry, name: &str) -> Result<()> {
        let state = self.state()?;
        if state.is_taken(entry.def.schema.oid, name) {
            return Err(already_exists(name));
        }
        require_row_type_unwritten(&state, &entry.def, "renaming")?;
        let mut table = (*entry.def).clone();
        table.name = name.to_owned();
        self.redefine(entry, table)
    }

    fn rename_column(&mut self, entry: &TableEntry, from: &str, to: &str) -> Result<()> {
        let Some(column) = entry.def.column_number(from) else {
            return Err(EngineError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{from}\" does not exist"),
            ));
        };
        require_no_system_name(to)?;
        if entry.def.column_number(to).is_some() {
            return Err(EngineError::new(
                SqlState::DUPLICATE_COLUMN,
                format!(
                    "column \"{to}\" of relation \"{}\" already exists",
                    entry.def.name
                ),
            ));
        }
        let mut table = (*entry.def).clone();
        check::rename_in_checks(&mut table, from, to)?;
        self.rename_read_column(entry, column, to, table)
    }

    fn rename_index(&mut self, entry: &TableEntry, from: &str, to: &str, is_constraint: bool) -> Result<()> {
        let found = |index: &Arc<IndexDef>| index.name == from && (index.constraint || !is_constraint);
        let Some(renamed) = entry.def.all_indexes().find(|index| found(index)) else {
            return Err(EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "constraint \"{from}\" for table \"{}\" does not exist",
                    entry.def.name
                ),
            ));
        };
        if self.state()?.is_taken(entry.def.schema.oid, to) {
            return Err(already_exists(to));
        }
        let mut table = (*entry.def).clone();
        table.map_indexes(|index| {
            Ok::<_, EngineError>(match index.oid == renamed.oid {
                false => Arc::clone(index),
                true => Arc::new(IndexDef {
                    name: to.to_owned(),
                    ..(**index).clone()
                }),
            })
        })?;
        self.redefine(entry, table)
    }
}

/// A definition with one more column. Rows that are there have `missing` in it.
fn with_column(before: &TableDef, column: &ColumnDef, missing: Option<&Value>, is_empty: bool) -> TableDef {
    let mut table = before.clone();
    let mut attributes = table.attributes();
    let last = attributes.iter().filter_map(|attribute| attribute.segment).max();
    let segment = match (last, is_empty) {
        (last, true) => last.unwrap_or(0),
        (last, false) => last.map_or(1, |last| last + 1),
    };
    attributes.push(Attribute {
        column: Some(table.columns.len() as u16),
        data_type: column.data_type,
        segment: Some(segment),
        missing: missing.filter(|value| !value.is_null()).cloned(),
    });
    table.columns.push(column.clone());
    table.set_attributes(attributes);
    table
}

/// The value of a column of a row written anew.
enum Source<'a> {
    /// That at this place of the old row.
    Kept(usize),
    /// One made of the old row.
    Made(&'a Expr),
}

/// The values of the columns of `table`, of a row read by `before`.
fn sources<'a>(
    before: &TableDef,
    table: &TableDef,
    changes: &'a [TypeChange],
    columns: &[u16],
) -> Result<Vec<Source<'a>>> {
    let source = |column: u16| {
        let change = columns.iter().position(|changed| *changed == column);
        if let Some(value) = change.and_then(|change| changes[change].value.as_deref()) {
            return Ok(Source::Made(value));
        }
        let place = before.column_of_attribute(table.attribute_number(column));
        let place = place.ok_or_else(|| EngineError::internal("a column came before types changed"))?;
        Ok(Source::Kept(usize::from(place)))
    };
    (0..table.columns.len() as u16).map(source).collect()
}

/// The attributes without the column at this place, which leaves its own behind.
fn without_column(before: &TableDef, place: u16) -> Vec<Attribute> {
    let attributes = before.attributes().into_iter();
    let without = attributes.map(|attribute| match attribute.column {
        Some(column) if column == place => Attribute {
            column: None,
            missing: None,
            ..attribute
        },
        Some(column) if column > place => Attribute {
            column: Some(column - 1),
            ..attribute
        },
        _ => attribute,
    });
    without.collect()
}

/// A number that fits, as a value of an integer type.
fn integer(number: i64, data_type: DataType) -> Value {
    match data_type {
        DataType::Int2 => Value::Int2(number as i16),
        DataType::Int4 => Value::Int4(number as i32),
        _ => Value::Int8(number),
    }
}

/// True if rows from before a column was added have NULL in it.
fn is_null_by_default(column: &ColumnDef) -> bool {
    match &column.default {
        None => true,
        Some(ColumnDefault::Expression { expr, .. }) => matches!(expr, Expr::Constant(Value::Null)),
        Some(_) => false,
    }
}

pub(super) fn column_named(table: &TableDef, name: &str) -> Result<u16> {
    table.column_number(name).ok_or_else(|| no_column(table, name))
}

fn no_column(table: &TableDef, name: &str) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
    )
}
