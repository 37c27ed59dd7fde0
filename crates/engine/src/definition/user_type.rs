//! CREATE, ALTER and DROP TYPE. What composite types alone have: [`super::composite`].
//!
//! A type is a row of the catalog heap. What a table's rows hold of an enumeration are positions, which no statement
//! here changes, so no table is locked: a statement that runs meanwhile goes on with the labels that it was planned
//! with.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{TypeStatement, UserTypeChange as TypeChange};
use clearway_sql::value::user_type::{EnumType, LabelPlace, UserType, UserTypeKind, label_exists};
use clearway_sql::value::{DataType, TypeOid};
use clearway_sql::{ObjectAddress, SchemaRef};
use clearway_storage::heap::{DeleteOutcome, Heap, Tid, UpdateOutcome};

use crate::catalog::access::denied;
use crate::catalog::stored_type::encode_type;
use crate::catalog::user_types::TypeEntry;
use crate::catalog::{CATALOG_REL, CatalogState};
use crate::convert::storage_error;
use crate::definition::composite::{attribute_address, rename_attribute};
use crate::definition::written_names::{definitions_naming, require_lasting_type, require_unwritten};
use crate::definition::{DefinitionChange, notice, raced};

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn type_statement(&mut self, statement: &TypeStatement) -> Result<()> {
        match statement {
            TypeStatement::CreateEnum { schema, name, labels } => self.create_type(schema, name, |oid| {
                Ok(UserTypeKind::Enum(EnumType::new(oid, labels)?))
            }),
            TypeStatement::CreateComposite { schema, name, fields } => {
                self.create_composite(schema, name, fields)
            }
            TypeStatement::CreateDomain { .. } => self.create_domain(statement),
            TypeStatement::AlterDomain { of, change } => self.alter_domain(of, change),
            TypeStatement::Alter { of, change, .. } => {
                self.alter_type(of, change)?;
                let mut of_tables = statement.of_tables().iter();
                of_tables.try_for_each(|alter| self.alter_table(alter))
            }
            TypeStatement::Drop {
                types,
                if_exists,
                cascade,
                ..
            } => self.drop_types(types, *if_exists, *cascade),
        }
    }

    /// Adds a type of this name.
    pub(super) fn create_type(
        &mut self,
        schema: &SchemaRef,
        name: &str,
        kind: impl FnOnce(TypeOid) -> Result<UserTypeKind>,
    ) -> Result<()> {
        let mut state = self.state()?;
        require_free(&state, schema, name)?;
        if schema.is_temporary() {
            return Err(EngineError::not_supported("a temporary type"));
        }
        let number = self.fresh_number()?;
        let oid =
            TypeOid::new(number).ok_or_else(|| EngineError::internal("no numbers are left for types"))?;
        let def = UserType {
            oid,
            schema_oid: schema.oid,
            schema: Arc::clone(&schema.name),
            name: name.to_owned(),
            owner: self.execution.identity.current,
            kind: kind(oid)?,
        };
        self.put_type_row(&mut state, def, None)?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn alter_type(&mut self, of: &UserType, change: &TypeChange) -> Result<()> {
        let mut state = self.state()?;
        let entry = state
            .type_entry(of.oid.get())
            .cloned()
            .ok_or_else(|| raced(&of.name))?;
        let mut def = (*entry.def).clone();
        match change {
            TypeChange::AddLabel {
                label,
                place,
                if_not_exists,
            } => {
                if !self.add_label(&mut def, label, place, *if_not_exists)? {
                    return Ok(());
                }
            }
            TypeChange::RenameLabel { from, to } => {
                match &mut def.kind {
                    UserTypeKind::Enum(labels) => labels.rename(from, to)?,
                    _ => return Err(raced(&of.name)),
                }
                require_unwritten(&state, of, from, "renaming a label")?;
            }
            TypeChange::Rename(name) => {
                require_unwritten(&state, of, &of.name, "renaming a type")?;
                let schema = SchemaRef::new(def.schema_oid, &def.schema);
                require_free(&state, &schema, name)?;
                def.name.clone_from(name);
            }
            TypeChange::RenameAttribute { from, to } => match &mut def.kind {
                UserTypeKind::Composite(composite) => {
                    rename_attribute(&state, of, &mut composite.fields, from, to)?;
                }
                _ => return Err(raced(&of.name)),
            },
            TypeChange::Attributes(changes) => match &mut def.kind {
                UserTypeKind::Composite(composite) => {
                    self.change_attributes(&state, of, &mut composite.fields, changes)?;
                }
                _ => return Err(raced(&of.name)),
            },
            TypeChange::SetSchema(schema) => {
                if schema.oid == def.schema_oid {
                    return Ok(());
                }
                require_unwritten(&state, of, &of.name, "moving a type")?;
                if state.type_in(schema.oid, &def.name).is_some() {
                    return Err(EngineError::new(
                        SqlState::from_code("42710"),
                        format!(
                            "type \"{}\" already exists in schema \"{}\"",
                            def.name, schema.name
                        ),
                    ));
                }
                (def.schema_oid, def.schema) = (schema.oid, Arc::clone(&schema.name));
            }
            TypeChange::Owner(owner) => {
                let to = self.role_number(&state, owner)?;
                let schema = SchemaRef::new(def.schema_oid, &def.schema);
                self.require_may_give(&state, to, Some(&schema))?;
                def.owner = to;
            }
        }
        self.put_type_row(&mut state, def, Some(entry.tid))?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    /// Adds a label to an enumeration; false if it is there already, and that is no error.
    fn add_label(
        &mut self,
        def: &mut UserType,
        label: &str,
        place: &LabelPlace,
        if_not_exists: bool,
    ) -> Result<bool> {
        let oid = def.oid;
        let UserTypeKind::Enum(labels) = &mut def.kind else {
            return Err(raced(&def.name));
        };
        if labels.named(label).is_some() {
            if !if_not_exists {
                return Err(label_exists(label));
            }
            let text = format!("enum label \"{label}\" already exists, skipping");
            let notice = notice(SqlState::from_code("42710"), text);
            self.outcome.notices.push(notice);
            return Ok(false);
        }
        labels.add(oid, label, place, self.execution.txn.assign_xid()?.0)?;
        Ok(true)
    }

    fn drop_types(
        &mut self,
        types: &[(String, Option<Arc<UserType>>)],
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let mut roots = Vec::with_capacity(types.len());
        for (name, found) in types {
            match found {
                Some(found) => {
                    let address = ObjectAddress::new(ObjectAddress::PG_TYPE, found.oid.get());
                    if !roots.contains(&address) {
                        roots.push(address);
                    }
                }
                None if if_exists => {
                    let text = format!("type \"{name}\" does not exist, skipping");
                    self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                }
                None => return Err(raced(name)),
            }
        }
        if roots.is_empty() {
            return Ok(());
        }
        self.drop_with(&roots, cascade)
    }

    /// 42501 unless the role that acts may run the statement.
    pub(super) fn check_type_permission(
        &self,
        state: &CatalogState,
        statement: &TypeStatement,
    ) -> Result<()> {
        let acts = self.execution.identity.current;
        let owns = |found: &UserType| state.has_privileges_of(acts, found.owner);
        let owns_schema = |found: &UserType| {
            let schema = state.schema_entry(found.schema_oid);
            schema.is_some_and(|schema| state.has_privileges_of(acts, schema.access.owner))
        };
        let refused = match statement {
            // The binder has asked for the schema.
            TypeStatement::CreateEnum { .. }
            | TypeStatement::CreateComposite { .. }
            | TypeStatement::CreateDomain { .. } => None,
            TypeStatement::Alter { of, .. } | TypeStatement::AlterDomain { of, .. } => {
                Some(of).filter(|of| !owns(of))
            }
            TypeStatement::Drop { types, .. } => {
                let mut found = types.iter().filter_map(|(_, found)| found.as_ref());
                found.find(|of| !owns(of) && !owns_schema(of))
            }
        };
        match refused {
            Some(of) => Err(denied(format!("must be owner of type {}", of.data_type()))),
            None => Ok(()),
        }
    }

    /// 42501 unless the role that acts owns a type.
    pub(super) fn require_owner_of_type(&self, state: &CatalogState, of: &UserType) -> Result<()> {
        match state.has_privileges_of(self.execution.identity.current, of.owner) {
            true => Ok(()),
            false => Err(denied(format!("must be owner of type {}", of.data_type()))),
        }
    }

    /// Gives a type to a role.
    pub(super) fn give_type(&mut self, state: &mut CatalogState, oid: u32, to: u32) -> Result<()> {
        let Some(entry) = state.type_entry(oid).cloned() else {
            return Ok(());
        };
        let def = UserType {
            owner: to,
            ..(*entry.def).clone()
        };
        self.put_type_row(state, def, Some(entry.tid))
    }

    /// Drops a type that nothing depends on any more.
    pub(super) fn drop_type(&mut self, oid: u32) -> Result<()> {
        let mut state = self.state()?;
        let Some(entry) = state.type_entry(oid).cloned() else {
            return Ok(());
        };
        let mut addresses = vec![ObjectAddress::new(ObjectAddress::PG_TYPE, oid)];
        let checks = entry.def.domain().into_iter().flat_map(|domain| &domain.checks);
        addresses.extend(checks.map(|check| ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, check.oid)));
        self.remove_comments(&mut state, &addresses)?;
        let context = self.execution.txn.context();
        match Heap::new(CATALOG_REL)
            .delete(&context, entry.tid)
            .map_err(storage_error)?
        {
            DeleteOutcome::Deleted => {}
            _ => return Err(raced(&entry.def.name)),
        }
        state.remove_type(oid);
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    /// Writes the row of a type, in the place of the one at `before`, if there is one.
    pub(super) fn put_type_row(
        &mut self,
        state: &mut CatalogState,
        def: UserType,
        before: Option<Tid>,
    ) -> Result<()> {
        require_lasting_type(state, &def)?;
        let bytes = encode_type(&def)?;
        let context = self.execution.txn.context();
        let heap = Heap::new(CATALOG_REL);
        let tid = match before {
            None => heap.insert(&context, &bytes).map_err(storage_error)?,
            Some(tid) => match heap.update(&context, tid, &bytes, false).map_err(storage_error)? {
                UpdateOutcome::Updated { tid, .. } => tid,
                _ => return Err(raced(&def.name)),
            },
        };
        // A later step of the same statement may change the row again.
        self.execution.txn.next_command();
        state.put_type(TypeEntry {
            def: Arc::new(def),
            tid,
        });
        Ok(())
    }
}

/// 42710 for a name that a type of the schema has.
fn require_free(state: &CatalogState, schema: &SchemaRef, name: &str) -> Result<()> {
    if state.type_in(schema.oid, name).is_none() {
        return Ok(());
    }
    Err(type_exists(name))
}

/// 42710
pub(super) fn type_exists(name: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code("42710"),
        format!("type \"{name}\" already exists"),
    )
}

/// A type as errors about what depends on it name it.
pub(super) fn described(oid: u32) -> String {
    match DataType::from_oid(oid) {
        Some(found) => format!("type {found}"),
        None => format!("type {oid}"),
    }
}

/// The objects that depend on a type, each with the type that it has: the type itself, or an array of it.
pub(super) fn depending_on(state: &CatalogState, oid: u32) -> Vec<(ObjectAddress, ObjectAddress)> {
    let Some(of) = TypeOid::new(oid).and_then(|oid| state.user_type(oid)) else {
        return Vec::new();
    };
    let wanted = of.data_type();
    let is_it = |data_type: DataType| data_type == wanted || data_type.element() == Some(wanted);
    let on = |data_type: DataType| ObjectAddress::new(ObjectAddress::PG_TYPE, data_type.oid());
    let mut found = Vec::new();
    for entry in state.tables() {
        for (place, column) in (0..).zip(&entry.def.columns) {
            if is_it(column.data_type) {
                let address = ObjectAddress {
                    column: i32::from(entry.def.attribute_number(place)),
                    ..ObjectAddress::relation(entry.def.oid)
                };
                found.push((address, on(column.data_type)));
            }
        }
    }
    let typed = state.tables();
    let typed = typed.iter().filter(|entry| entry.def.of_type == Some(oid));
    found.extend(typed.map(|entry| (ObjectAddress::relation(entry.def.oid), on(wanted))));
    for view in state.views() {
        let mut columns = view.def.columns.iter();
        if let Some(column) = columns.find(|column| is_it(column.data_type)) {
            found.push((ObjectAddress::relation(view.def.oid), on(column.data_type)));
        }
    }
    for other in state.user_types() {
        if let Some(composite) = other.composite() {
            for (place, field) in composite.fields.iter().enumerate() {
                if is_it(field.data_type) {
                    found.push((attribute_address(&other, place), on(field.data_type)));
                }
            }
            continue;
        }
        if let Some(part) = other.parts().into_iter().find(|part| is_it(*part)) {
            let address = ObjectAddress::new(ObjectAddress::PG_TYPE, other.oid.get());
            found.push((address, on(part)));
        }
    }
    let naming = definitions_naming(state, &of).into_iter();
    found.extend(naming.map(|address| (address, on(wanted))));
    found
}
