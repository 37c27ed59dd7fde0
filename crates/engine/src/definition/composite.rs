//! Composite types: CREATE TYPE … AS, and the changes of their attributes.
//!
//! A table's rows hold the first fields of a composite type, most often all (U4 of `value::user_type`), so all that
//! happens to the fields while a column has the type, be it in an array, a domain or another composite type, is that new
//! ones come behind them. The same holds for the type of a table's rows, whose fields ALTER TABLE changes.

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::quote_identifier;
use clearway_sql::plan::AttributeChange;
use clearway_sql::value::DataType;
use clearway_sql::value::user_type::{CompositeType, Field, ROW_TYPE_OFFSET, UserType, UserTypeKind};
use clearway_sql::{ObjectAddress, SchemaRef, TableDef};

use crate::catalog::CatalogState;
use crate::definition::written_names::{definition_bound_to, holds, require_unwritten};
use crate::definition::{DefinitionChange, notice};

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn create_composite(
        &mut self,
        schema: &SchemaRef,
        name: &str,
        fields: &[Field],
    ) -> Result<()> {
        self.create_type(schema, name, |_| {
            Ok(UserTypeKind::Composite(CompositeType {
                fields: fields.to_vec(),
                table: None,
            }))
        })
    }

    /// Drops an attribute whose type goes; false if the address is not one's.
    pub(super) fn drop_attribute(&mut self, address: ObjectAddress) -> Result<bool> {
        let mut state = self.state()?;
        let Some(entry) = state.type_entry(address.object).cloned() else {
            return Ok(false);
        };
        let mut def = (*entry.def).clone();
        let place = address.column as usize - 1;
        let UserTypeKind::Composite(composite) = &mut def.kind else {
            return Ok(false);
        };
        let Some(field) = composite.fields.get(place) else {
            return Ok(false);
        };
        let change = AttributeChange::Drop {
            name: field.name.clone(),
            if_exists: false,
        };
        self.change_attributes(&state, &entry.def, &mut composite.fields, &[change])?;
        self.put_type_row(&mut state, def, Some(entry.tid))?;
        self.execution.txn.set_catalog_state(state);
        Ok(true)
    }

    /// Changes attributes, one after the other.
    pub(super) fn change_attributes(
        &mut self,
        state: &CatalogState,
        of: &UserType,
        fields: &mut Vec<Field>,
        changes: &[AttributeChange],
    ) -> Result<()> {
        let adds = |change: &AttributeChange| matches!(change, AttributeChange::Add(_));
        let holder = match changes.iter().all(adds) {
            true => key_that_holds(state, of.data_type()),
            false => column_that_holds(state, of.data_type()),
        };
        let holder = holder
            .map(|column| format!("column \"{column}\""))
            .or_else(|| definition_bound_to(state, of.data_type()));
        if let Some(holder) = holder {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot alter type \"{}\" because {holder} uses it", of.name),
            ));
        }
        for change in changes {
            match change {
                AttributeChange::Add(field) => {
                    require_new(of, fields, &field.name)?;
                    require_other(state, of, field)?;
                    fields.push(field.clone());
                }
                AttributeChange::Drop { name, if_exists } => match place_of(of, fields, name) {
                    Ok(place) => {
                        require_unwritten(state, of, name, "dropping an attribute")?;
                        fields.remove(place);
                    }
                    Err(error) if *if_exists => {
                        let text = format!("{}, skipping", error.message());
                        self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                    }
                    Err(error) => return Err(error),
                },
                AttributeChange::SetType(field) => {
                    let place = place_of(of, fields, &field.name)?;
                    require_other(state, of, field)?;
                    require_unwritten(state, of, &field.name, "changing the type of an attribute")?;
                    fields[place] = field.clone();
                }
            }
        }
        Ok(())
    }
}

/// An attribute as an object; its number is its place, from 1.
pub(super) fn attribute_address(of: &UserType, place: usize) -> ObjectAddress {
    ObjectAddress {
        column: place as i32 + 1,
        ..ObjectAddress::relation(of.oid.get())
    }
}

/// An attribute as errors name it; `None` for another object.
pub(super) fn described(state: &CatalogState, address: ObjectAddress) -> Option<String> {
    let entry = state.type_entry(address.object)?;
    let place = usize::try_from(address.column).ok()?.checked_sub(1)?;
    let field = entry.def.composite()?.fields.get(place)?;
    Some(format!(
        "column {} of composite type {}",
        quote_identifier(&field.name),
        entry.def.data_type()
    ))
}

/// Renames an attribute.
pub(super) fn rename_attribute(
    state: &CatalogState,
    of: &UserType,
    fields: &mut [Field],
    from: &str,
    to: &str,
) -> Result<()> {
    let Some(place) = fields.iter().position(|field| field.name == from) else {
        return Err(EngineError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{from}\" does not exist"),
        ));
    };
    require_new(of, fields, to)?;
    require_unwritten(state, of, from, "renaming an attribute")?;
    to.clone_into(&mut fields[place].name);
    Ok(())
}

/// 0A000 for a change of a table's columns while a column has the type of the table's rows. `adds`: a column comes behind
/// the others, NULL in rows from before.
pub(super) fn require_rows_not_held(state: &CatalogState, table: &TableDef, adds: bool) -> Result<()> {
    let Some(row_type) = DataType::from_oid(table.oid + ROW_TYPE_OFFSET) else {
        return Ok(());
    };
    let holder = match adds {
        true => key_that_holds(state, row_type),
        false => column_that_holds(state, row_type),
    };
    let holder = holder
        .map(|column| format!("column \"{column}\""))
        .or_else(|| definition_bound_to(state, row_type));
    match holder {
        None => Ok(()),
        Some(holder) => Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cannot alter table \"{}\" because {holder} uses its row type",
                table.name
            ),
        )),
    }
}

/// 42P16 for a new column that would hold rows of its own table.
pub(super) fn require_no_row_inside(
    state: &CatalogState,
    table: &TableDef,
    data_type: DataType,
) -> Result<()> {
    match DataType::from_oid(table.oid + ROW_TYPE_OFFSET) {
        Some(row_type) if holds(state, data_type, row_type) => Err(inside_itself(row_type)),
        _ => Ok(()),
    }
}

/// A column whose rows hold values of a composite type, with its table.
fn column_that_holds(state: &CatalogState, wanted: DataType) -> Option<String> {
    state.tables().iter().find_map(|entry| {
        let mut columns = entry.def.columns.iter();
        let found = columns.find(|column| holds(state, column.data_type, wanted))?;
        Some(format!("{}.{}", entry.def.name, found.name))
    })
}

/// The same of the keys of indexes.
fn key_that_holds(state: &CatalogState, wanted: DataType) -> Option<String> {
    state.tables().iter().find_map(|entry| {
        let mut indexes = entry.def.all_indexes();
        let has_key = |types: &[DataType]| types.iter().any(|of| holds(state, *of, wanted));
        let index = indexes.find(|index| has_key(&index.types))?;
        Some(format!("{}.{}", entry.def.name, index.name))
    })
}

/// 42P16 for an attribute that would make a type a part of itself.
fn require_other(state: &CatalogState, of: &UserType, field: &Field) -> Result<()> {
    match holds(state, field.data_type, of.data_type()) {
        false => Ok(()),
        true => Err(inside_itself(of.data_type())),
    }
}

fn inside_itself(data_type: DataType) -> EngineError {
    EngineError::new(
        SqlState::from_code("42P16"),
        format!("composite type {data_type} cannot be made a member of itself"),
    )
}

/// 42701 for a name that an attribute has.
fn require_new(of: &UserType, fields: &[Field], name: &str) -> Result<()> {
    match fields.iter().any(|field| field.name == name) {
        false => Ok(()),
        true => Err(EngineError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{name}\" of relation \"{}\" already exists", of.name),
        )),
    }
}

fn place_of(of: &UserType, fields: &[Field], name: &str) -> Result<usize> {
    let found = fields.iter().position(|field| field.name == name);
    found.ok_or_else(|| {
        EngineError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{}\" does not exist", of.name),
        )
    })
}
