//! Dropping relations, and what depends on them.
//!
//! A foreign key depends on the table that it names rows of, on the columns and on the index. A view depends on the
//! tables and views that its query reads, and on constraints that let a column stand beside GROUP BY; a table or a view
//! on its schema; and on a type what has values of it, and what an expression names it in: a default, a generated
//! column, a CHECK constraint, an index, a domain. What something depends on is not dropped without it: either both are
//! named, or CASCADE is said. A temporary view is known to its session alone: what it reads may go, and reading the
//! view is an error from then on.
//!
//! [`Dependents`] collects what goes, as PostgreSQL does: from each object that is named, first what depends on it (the
//! newest first, each with what depends on it in turn), then the object itself. In this order they are dropped; read from
//! the end, it is the order in which errors and notices list them.
//!
//! D1. All of it happens under the catalog lock, so no view is made over something that is being dropped.
//! D2. A view is locked before it is dropped: a statement that reads it has ended, or is planned again and finds it gone.
//! D3. No expression in a definition that is left names a type that is gone.

use std::sync::Arc;

use clearway_storage::RelId;
use clearway_txn::LockMode;

use crate::catalog::comment::addresses_of;
use crate::catalog::owned_sequences::owner_of;
use crate::catalog::{CatalogState, TableEntry};
use crate::definition::written_names::{require_none_named, types_that_go};
use crate::definition::{DefinitionChange, check, composite, foreign_key, generated, notice, user_type};
use crate::output::Notice;
use clearway_sql::catalog_facts::CatalogFacts;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::quote_identifier;
use clearway_sql::value::user_type::{ROW_TYPE_OFFSET, UserType};
use clearway_sql::{CheckDef, IndexDef, ObjectAddress, TableDef, TableKind};

/// The most objects that an error or a notice lists.
const LISTED_MAX: usize = 100;

/// The kind of relation that a statement drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    Table,
    View,
    Sequence,
}

impl Dropped {
    fn name(self) -> &'static str {
        match self {
            Dropped::Table => "table",
            Dropped::View => "view",
            Dropped::Sequence => "sequence",
        }
    }
}

/// An object that goes.
struct Target {
    address: ObjectAddress,
    /// The object that it depends on, by which it was found; absent for one that the statement names.
    depends_on: Option<ObjectAddress>,
    /// True if it belongs to that object, with which it goes unasked.
    is_part: bool,
}

/// The objects that go with those that a statement names.
struct Dependents<'s> {
    state: &'s CatalogState,
    facts: Option<&'s dyn CatalogFacts>,
    targets: Vec<Target>,
    /// Objects whose dependents are being looked for.
    open: Vec<ObjectAddress>,
}

impl Dependents<'_> {
    /// Adds an object and what depends on it; `is_part`: it goes with what it depends on.
    fn add(&mut self, address: ObjectAddress, depends_on: Option<ObjectAddress>, is_part: bool) {
        if self.open.contains(&address) {
            return;
        }
        let known = self.targets.iter_mut().find(|target| target.address == address);
        if let Some(known) = known {
            if depends_on.is_none() {
                known.depends_on = None;
            }
            known.is_part |= is_part;
            return;
        }
        self.open.push(address);
        let mut found: Vec<ObjectAddress> = match address.catalog {
            ObjectAddress::PG_NAMESPACE => {
                let inside = self.state.tables_in(address.object).into_iter();
                let types = self.state.types_in(address.object).into_iter();
                inside
                    .map(|entry| ObjectAddress::relation(entry.def.oid))
                    .chain(types.map(|found| ObjectAddress::new(ObjectAddress::PG_TYPE, found.oid.get())))
                    .collect()
            }
            ObjectAddress::PG_ATTRDEF => Vec::new(),
            ObjectAddress::PG_TYPE => {
                let mut depending = user_type::depending_on(self.state, address.object);
                // An array type is about as old as the type of its elements.
                depending.sort_unstable_by_key(|(depending, on)| {
                    let found_by = match on.object == address.object {
                        true => depending.object,
                        false => 0,
                    };
                    (std::cmp::Reverse(found_by), depending.column)
                });
                for (depending, on) in depending {
                    clearway_sql::checkpoint(|| self.add(depending, Some(on), false));
                }
                Vec::new()
            }
            _ => {
                let views = self.state.views().into_iter();
                let depending = views.filter(|view| depends(&view.def, address));
                let mut depending: Vec<_> = depending
                    .map(|view| ObjectAddress::relation(view.def.oid))
                    .collect();
                depending.extend(foreign_key::depending_on(self.state, address));
                if address.column == 0 {
                    self.add_users_of_rows(address);
                }
                depending
            }
        };
        found.sort_unstable_by_key(|address| std::cmp::Reverse(address.object));
        for depending in found {
            clearway_sql::checkpoint(|| self.add(depending, Some(address), false));
        }
        if address.catalog == ObjectAddress::PG_CLASS {
            self.add_sequences(address);
            self.add_generated(address);
        }
        self.open.pop();
        self.targets.push(Target {
            address,
            depends_on,
            is_part,
        });
    }

    /// Adds what has the type of a table's rows.
    fn add_users_of_rows(&mut self, table: ObjectAddress) {
        for (depending, on) in user_type::depending_on(self.state, table.object + ROW_TYPE_OFFSET) {
            // A column of the table itself goes with it.
            if depending.object != table.object {
                clearway_sql::checkpoint(|| self.add(depending, Some(on), false));
            }
        }
    }

    /// Adds the sequences that belong to a table or a column, and the defaults that name a sequence.
    fn add_sequences(&mut self, address: ObjectAddress) {
        let attribute = u16::try_from(address.column).ok().filter(|number| *number > 0);
        for owned in self.state.owned_sequences(address.object, attribute) {
            let sequence = ObjectAddress::relation(owned.def.oid);
            clearway_sql::checkpoint(|| self.add(sequence, Some(address), true));
        }
        for (table, place) in self.state.defaults_of(address.object) {
            let column = ObjectAddress {
                column: i32::from(table.def.attribute_number(place)),
                ..ObjectAddress::relation(table.def.oid)
            };
            let goes =
                |gone: &ObjectAddress| *gone == column || *gone == ObjectAddress::relation(table.def.oid);
            if self.open.iter().any(goes) || self.targets.iter().any(|target| goes(&target.address)) {
                continue;
            }
            let default = ObjectAddress {
                catalog: ObjectAddress::PG_ATTRDEF,
                ..column
            };
            self.add(default, Some(address), false);
        }
    }

    /// Adds the generated columns that read a column.
    fn add_generated(&mut self, address: ObjectAddress) {
        let Some(entry) = self.state.table(address.object) else {
            return;
        };
        let number = u16::try_from(address.column).unwrap_or(0);
        let Some(column) = entry.def.column_of_attribute(number) else {
            return;
        };
        for place in generated::readers(&entry.def, column) {
            let reader = ObjectAddress {
                column: i32::from(entry.def.attribute_number(place)),
                ..address
            };
            self.add(reader, Some(address), false);
        }
    }

    /// Makes defaults, CHECK constraints and indexes parts of their tables, columns and domains, where these go.
    fn settle_parts(&mut self) {
        let gone: Vec<ObjectAddress> = self.targets.iter().map(|target| target.address).collect();
        for at in 0..self.targets.len() {
            let wholes = self.wholes_of(self.targets[at].address);
            self.targets[at].is_part |= wholes.iter().any(|whole| gone.contains(whole));
        }
    }

    /// The objects with which a default, a CHECK constraint or an index goes unasked: its table and the columns that it reads,
    /// or its domain. None for other objects.
    fn wholes_of(&self, part: ObjectAddress) -> Vec<ObjectAddress> {
        if part.catalog == ObjectAddress::PG_ATTRDEF {
            let column = ObjectAddress {
                catalog: ObjectAddress::PG_CLASS,
                ..part
            };
            return vec![column, ObjectAddress::relation(part.object)];
        }
        if let Some((domain, _)) = self.domain_check(part) {
            return vec![ObjectAddress::new(ObjectAddress::PG_TYPE, domain.oid.get())];
        }
        let Some(owner) = self.state.owner(part.object) else {
            return Vec::new();
        };
        let columns = match (check_of(&owner.def, part), index_of(&owner.def, part)) {
            (Some(check), _) => check.columns(),
            (None, Some(index)) => (0..owner.def.columns.len() as u16)
                .filter(|column| index.names(*column))
                .collect(),
            (None, None) => return Vec::new(),
        };
        let table = ObjectAddress::relation(owner.def.oid);
        let columns = columns.into_iter().map(|place| ObjectAddress {
            column: i32::from(owner.def.attribute_number(place)),
            ..table
        });
        std::iter::once(table).chain(columns).collect()
    }

    /// The constraint of a domain at this address, and its domain.
    fn domain_check(&self, address: ObjectAddress) -> Option<(Arc<UserType>, String)> {
        if address.catalog != ObjectAddress::PG_CONSTRAINT {
            return None;
        }
        self.state.user_types().into_iter().find_map(|of| {
            let mut checks = of.domain()?.checks.iter();
            let name = checks.find(|check| check.oid == address.object)?.name.clone();
            Some((of, name))
        })
    }

    /// 2BP01 for the sequence of an identity column, which goes with the column alone.
    fn require_free(&self, root: ObjectAddress, roots: &[ObjectAddress]) -> Result<()> {
        let entry = self
            .state
            .table(root.object)
            .filter(|_| root.catalog == ObjectAddress::PG_CLASS);
        let owner = entry
            .and_then(|entry| owner_of(entry))
            .filter(|owner| owner.identity);
        let Some(owner) = owner else { return Ok(()) };
        if roots.contains(&ObjectAddress::relation(owner.table)) {
            return Ok(());
        }
        let column = self.described(ObjectAddress {
            column: i32::from(owner.attribute),
            ..ObjectAddress::relation(owner.table)
        });
        Err(EngineError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "cannot drop {} because {column} requires it",
                self.described(root)
            ),
        )
        .with_hint(format!("You can drop {column} instead.")))
    }

    /// True for a foreign key whose table goes too, and for an attribute whose type does: it is a part of that.
    fn goes_with_its_table(&self, address: ObjectAddress) -> bool {
        if composite::described(self.state, address).is_some() {
            let of_type = ObjectAddress::new(ObjectAddress::PG_TYPE, address.object);
            return self.targets.iter().any(|target| target.address == of_type);
        }
        if address.catalog != ObjectAddress::PG_CONSTRAINT {
            return false;
        }
        let Some(reference) = self.state.foreign_key(address.object) else {
            return false;
        };
        let table = ObjectAddress::relation(reference.child.def.oid);
        self.targets.iter().any(|target| target.address == table)
    }

    /// An object as errors name it.
    fn described(&self, address: ObjectAddress) -> String {
        let relation = |oid: u32| {
            let entry = self.state.table(oid);
            let kind = entry.map_or("table", |entry| match entry.def.kind {
                TableKind::View => "view",
                TableKind::Virtual => "sequence",
                TableKind::Heap { .. } => "table",
            });
            let name = entry.map_or_else(|| oid.to_string(), |entry| self.name_of(&entry.def));
            format!("{kind} {name}")
        };
        if address.catalog == ObjectAddress::PG_NAMESPACE {
            let schema = self.state.schema_of_number(address.object);
            let name = schema.map_or_else(String::new, |schema| quote_identifier(&schema.name));
            return format!("schema {name}");
        }
        if address.catalog == ObjectAddress::PG_TYPE {
            return user_type::described(address.object);
        }
        if address.catalog != ObjectAddress::PG_CONSTRAINT {
            if let Some(index) = self.index_name(address.object) {
                return format!("index {index}");
            }
            if let Some(attribute) = composite::described(self.state, address) {
                return attribute;
            }
            let table = relation(address.object);
            let of_default = match address.catalog {
                ObjectAddress::PG_ATTRDEF => "default value for ",
                _ => "",
            };
            return match self.column_name(address) {
                Some(name) => format!("{of_default}column {} of {table}", quote_identifier(&name)),
                None => table,
            };
        }
        if let Some(reference) = self.state.foreign_key(address.object) {
            return format!(
                "constraint {} on {}",
                quote_identifier(&reference.key.name),
                relation(reference.child.def.oid)
            );
        }
        if let Some((_, name)) = self.domain_check(address) {
            return format!("constraint {}", quote_identifier(&name));
        }
        let owner = self.state.owner(address.object);
        let name = owner.and_then(|entry| {
            let check = check_of(&entry.def, address).map(|check| &check.name);
            let mut indexes = entry.def.all_indexes();
            check.or_else(|| Some(&indexes.find(|index| index.oid == address.object)?.name))
        });
        match (owner, name) {
            (Some(owner), Some(name)) => format!(
                "constraint {} on {}",
                quote_identifier(name),
                relation(owner.def.oid)
            ),
            _ => format!("constraint {}", address.object),
        }
    }

    /// The name of the index of this number, if it is one.
    fn index_name(&self, oid: u32) -> Option<String> {
        let owner = self.state.owner(oid)?;
        let index = owner.def.all_indexes().find(|index| index.oid == oid)?;
        Some(quote_identifier(&index.name))
    }

    /// The name of the column that an address is of, if it is of one.
    fn column_name(&self, address: ObjectAddress) -> Option<String> {
        let number = u16::try_from(address.column).ok().filter(|number| *number > 0)?;
        let table = &self.state.table(address.object)?.def;
        let column = table.column_of_attribute(number)?;
        Some(table.columns[usize::from(column)].name.clone())
    }

    /// A relation's name, with its schema where it is not found without.
    fn name_of(&self, table: &TableDef) -> String {
        let name = quote_identifier(&table.name);
        match self.facts {
            Some(facts) if !facts.is_visible(table.oid, &table.name) => {
                format!("{}.{name}", quote_identifier(&table.schema.name))
            }
            _ => name,
        }
    }

    /// The objects that are not named, a line each.
    fn listed(&self, line: impl Fn(&Self, &Target, ObjectAddress) -> String) -> Vec<String> {
        let targets = self.targets.iter().rev().filter(|target| !target.is_part);
        let found = targets.filter_map(|target| Some((target, target.depends_on?)));
        let found = found.filter(|(target, _)| !self.goes_with_its_table(target.address));
        found.map(|(target, on)| line(self, target, on)).collect()
    }
}

/// The CHECK constraint of a table at this address.
fn check_of(table: &TableDef, address: ObjectAddress) -> Option<&CheckDef> {
    let mut checks = table.checks.iter().map(|check| &**check);
    checks.find(|check| check::address(check) == address)
}

/// The index of a table at this address.
fn index_of(table: &TableDef, address: ObjectAddress) -> Option<&IndexDef> {
    let mut indexes = table.all_indexes().map(|index| &**index);
    indexes.find(|index| ObjectAddress::relation(index.oid) == address)
}

/// True if a view depends on an object.
fn depends(view: &TableDef, on: ObjectAddress) -> bool {
    let Some(view) = &view.view else { return false };
    match on.catalog {
        ObjectAddress::PG_CONSTRAINT => view.constraints.iter().any(|used| used.index == on.object),
        _ => view
            .uses
            .iter()
            .any(|used| used.table == on.object && (on.column == 0 || i32::from(used.column) == on.column)),
    }
}

/// The lines of a list, as many as are shown.
fn lines(mut listed: Vec<String>) -> String {
    let more = listed.len().saturating_sub(LISTED_MAX);
    listed.truncate(LISTED_MAX);
    if more > 0 {
        listed.push(match more {
            1 => "and 1 other object".to_owned(),
            more => format!("and {more} other objects"),
        });
    }
    listed.join("\n")
}

impl DefinitionChange<'_, '_, '_> {
    /// DROP TABLE, DROP VIEW
    pub(super) fn drop_relations(
        &mut self,
        kind: Dropped,
        relations: &[(String, Option<std::sync::Arc<TableDef>>)],
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let mut roots = Vec::with_capacity(relations.len());
        for (name, def) in relations {
            match def {
                Some(def) => {
                    self.require_no_waiting(def, "DROP TABLE")?;
                    roots.push(ObjectAddress::relation(def.oid));
                }
                None if if_exists => {
                    let text = format!("{} \"{name}\" does not exist, skipping", kind.name());
                    self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                }
                None => {
                    return Err(EngineError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("{} \"{name}\" does not exist", kind.name()),
                    ));
                }
            }
        }
        if roots.is_empty() {
            return Ok(());
        }
        self.drop_with(&roots, cascade)
    }

    /// Drops the relations among these objects, and what depends on any of them; 2BP01 if there is something that is not
    /// named and must not go.
    pub(super) fn drop_with(&mut self, roots: &[ObjectAddress], cascade: bool) -> Result<()> {
        self.drop_with_parts(roots, &[], cascade)
    }

    /// The same; `parts`: what belongs to the objects.
    pub(super) fn drop_with_parts(
        &mut self,
        roots: &[ObjectAddress],
        parts: &[ObjectAddress],
        cascade: bool,
    ) -> Result<()> {
        let mut dropped = self.dropped_with(roots, parts, cascade)?;
        let state = self.execution.txn.catalog_state();
        let types = types_that_go(&state, &dropped);
        // An attribute's number is its place among those that are left: the last ones go first.
        let is_attribute = |address: &mut ObjectAddress| composite::described(&state, *address).is_some();
        let mut attributes: Vec<_> = dropped.extract_if(.., is_attribute).collect();
        // Those of a type that goes too go with it.
        let of_type = |address: &ObjectAddress| ObjectAddress::new(ObjectAddress::PG_TYPE, address.object);
        attributes.retain(|address| !dropped.contains(&of_type(address)));
        attributes.sort_unstable_by_key(|address| std::cmp::Reverse(address.column));
        for address in attributes {
            self.drop_attribute(address)?;
        }
        for address in dropped {
            match address.catalog {
                ObjectAddress::PG_CONSTRAINT if state.foreign_key(address.object).is_some() => {
                    self.drop_foreign_key(address.object)?;
                }
                ObjectAddress::PG_CONSTRAINT => self.drop_check_at(address)?,
                ObjectAddress::PG_ATTRDEF => self.drop_default(address)?,
                ObjectAddress::PG_TYPE => self.drop_type(address.object)?,
                _ if address.column != 0 => self.drop_generated(address)?,
                _ if state.table(address.object).is_none() => self.drop_index_at(address)?,
                _ => self.drop_relation(address.object)?,
            }
        }
        // D3: of what is left by now.
        require_none_named(&self.execution.txn.catalog_state(), &types)
    }

    /// The relations and foreign keys to be dropped with these objects, in order.
    fn dropped_with(
        &mut self,
        roots: &[ObjectAddress],
        parts: &[ObjectAddress],
        cascade: bool,
    ) -> Result<Vec<ObjectAddress>> {
        let state = self.execution.txn.catalog_state();
        let mut found = Dependents {
            state: &state,
            facts: self.execution.eval.session.catalog().ok(),
            targets: Vec::new(),
            open: Vec::new(),
        };
        for root in roots.iter().chain(parts) {
            found.require_free(*root, roots)?;
            found.add(*root, None, false);
        }
        found.settle_parts();
        let depending = found.listed(|found, target, on| {
            format!(
                "{} depends on {}",
                found.described(target.address),
                found.described(on)
            )
        });
        if !depending.is_empty() && !cascade {
            let what = match roots {
                [root] => format!(
                    "cannot drop {} because other objects depend on it",
                    found.described(*root)
                ),
                _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
            };
            return Err(EngineError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, what)
                .with_detail(lines(depending))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let cascades =
            found.listed(|found, target, _| format!("drop cascades to {}", found.described(target.address)));
        match cascades.as_slice() {
            [] => {}
            [only] => self.outcome.notices.push(notice(SqlState::SUCCESS, only.clone())),
            all => {
                let message = format!("drop cascades to {} other objects", all.len());
                self.outcome.notices.push(Notice {
                    detail: Some(lines(cascades)),
                    ..notice(SqlState::SUCCESS, message)
                });
            }
        }
        // What is named, and parts, are dropped by what names them and with what they are parts of.
        let is_apart = |wanted: &ObjectAddress| {
            let mut targets = found.targets.iter();
            targets.any(|target| !target.is_part && target.depends_on.is_some() && target.address == *wanted)
        };
        let is_dropped = |address: &ObjectAddress| match address.catalog {
            ObjectAddress::PG_CLASS if address.column != 0 => !roots.contains(address),
            ObjectAddress::PG_CLASS => state.table(address.object).is_some() || is_apart(address),
            ObjectAddress::PG_CONSTRAINT => state.foreign_key(address.object).is_some() || is_apart(address),
            ObjectAddress::PG_ATTRDEF => is_apart(address),
            ObjectAddress::PG_TYPE => state.type_entry(address.object).is_some(),
            _ => false,
        };
        let addresses = found.targets.iter().map(|target| target.address);
        Ok(addresses.filter(is_dropped).collect())
    }

    /// Drops a column: a generated one, which reads one that goes, or one whose type goes.
    fn drop_generated(&mut self, address: ObjectAddress) -> Result<()> {
        let entry = self.locked_entry(address.object)?;
        let number = u16::try_from(address.column).unwrap_or(0);
        let column = entry
            .as_ref()
            .and_then(|entry| entry.def.column_of_attribute(number));
        match (entry, column) {
            (Some(entry), Some(column)) => {
                let name = entry.def.columns[usize::from(column)].name.clone();
                self.drop_column(&entry, &name, false, true)
            }
            _ => Ok(()),
        }
    }

    /// Takes the default of a column away, whose sequence goes, or a type that it names.
    fn drop_default(&mut self, default: ObjectAddress) -> Result<()> {
        let Some(entry) = self.locked_entry(default.object)? else {
            return Ok(());
        };
        let number = u16::try_from(default.column).unwrap_or(0);
        let Some(column) = entry.def.column_of_attribute(number) else {
            return Ok(());
        };
        let mut table = (*entry.def).clone();
        table.columns[usize::from(column)].default = None;
        self.redefine(&entry, table)
    }

    /// Drops a CHECK constraint of a table or of a domain, which names a type that goes.
    fn drop_check_at(&mut self, address: ObjectAddress) -> Result<()> {
        let state = self.execution.txn.catalog_state();
        let Some(owner) = state.owner(address.object) else {
            return self.drop_domain_check(address);
        };
        let Some(entry) = self.locked_entry(owner.def.oid)? else {
            return Ok(());
        };
        match check_of(&entry.def, address).map(|check| check.name.clone()) {
            Some(name) => self.drop_check(&entry, &name).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Drops an index, which names a type that goes.
    fn drop_index_at(&mut self, address: ObjectAddress) -> Result<()> {
        let state = self.execution.txn.catalog_state();
        let Some(owner) = state.owner(address.object) else {
            return Ok(());
        };
        match self.locked_entry(owner.def.oid)? {
            Some(entry) => self.remove_index(&entry, address.object),
            None => Ok(()),
        }
    }

    /// A table of now, locked for a change of its definition.
    fn locked_entry(&mut self, table: u32) -> Result<Option<Arc<TableEntry>>> {
        let (interrupts, timeout) = (self.execution.interrupts, self.execution.lock_timeout);
        self.execution
            .txn
            .lock_relation(table, LockMode::AccessExclusive, interrupts, timeout)?;
        Ok(self.execution.txn.catalog_state().table(table).cloned())
    }

    /// Drops a table or a view that nothing depends on any more.
    pub(super) fn drop_relation(&mut self, oid: u32) -> Result<()> {
        let (interrupts, timeout) = (self.execution.interrupts, self.execution.lock_timeout);
        // D2; what the statement names is locked already.
        self.execution
            .txn
            .lock_relation(oid, LockMode::AccessExclusive, interrupts, timeout)?;
        let mut state = self.state()?;
        let entry = state
            .table(oid)
            .cloned()
            .ok_or_else(|| EngineError::internal(format!("relation {oid} is gone under the catalog lock")))?;
        if !entry.def.schema.is_temporary() {
            self.delete_row(&entry)?;
            self.remove_comments(&mut state, &addresses_of(&entry))?;
        }
        self.drop_files(&entry);
        self.execution.txn.mark_table_emptied(&entry.def)?;
        state.remove(oid);
        self.keep(state, &entry.def.schema);
        Ok(())
    }

    fn drop_files(&mut self, entry: &TableEntry) {
        for rel in entry.relations() {
            self.execution.txn.note_dropped(RelId(rel));
        }
    }
}
