//! Statements about types that users define: their names looked up.

use std::sync::Arc;

use crate::bind::schema::no_schema;
use crate::bind::{Binder, compile_domain};
use crate::error::{EngineError, Result, SqlState};
use crate::function::quote_identifier;
use crate::parse::utility::{
    AttributeAction, DomainParts, Name, TypeChange as WrittenChange, TypeStatement as Written,
};
use crate::plan::{AttributeChange, TypeStatement, UserTypeChange as TypeChange};
use crate::type_name::type_of_text;
use crate::value::DataType;
use crate::value::user_type::{Field, UserType, UserTypeKind, definition_of, in_force};

impl Binder<'_> {
    pub(super) fn type_statement(&mut self, statement: &Written) -> Result<TypeStatement> {
        Ok(match statement {
            Written::CreateEnum { name, labels } => TypeStatement::CreateEnum {
                schema: self.schema_for(name.schema.as_deref(), &name.name, Some(name.position))?,
                name: name.name.clone(),
                labels: labels.clone(),
            },
            Written::CreateComposite { name, attributes } => TypeStatement::CreateComposite {
                schema: self.schema_for(name.schema.as_deref(), &name.name, Some(name.position))?,
                name: name.name.clone(),
                fields: fields_of(attributes)?,
            },
            Written::CreateDomain { name, base, parts } => self.new_domain(name, base, parts)?,
            Written::AlterDomain { name, change } => TypeStatement::AlterDomain {
                of: self.domain_named(name)?,
                change: change.clone(),
            },
            Written::AlterType { name, change, domain } => {
                let of = match domain {
                    true => self.domain_named(name)?,
                    false => self.changeable_type(name, change)?,
                };
                TypeStatement::Alter {
                    of_tables: self.changed_typed_tables(&of, change)?,
                    of,
                    change: self.type_change(change)?,
                    domain: *domain,
                }
            }
            Written::DropType {
                names,
                if_exists,
                cascade,
                domains,
            } => {
                for name in names.iter().filter(|name| *domains && name.schema.is_none()) {
                    if let Some(found) = DataType::named(&name.name) {
                        return Err(not_a_domain(found));
                    }
                }
                let types = self.dropped_types(names, *if_exists)?;
                for found in types.iter().filter_map(|(_, found)| found.as_ref()) {
                    require_domain(found, *domains)?;
                }
                TypeStatement::Drop {
                    types,
                    if_exists: *if_exists,
                    cascade: *cascade,
                    domains: *domains,
                }
            }
        })
    }

    fn new_domain(&self, name: &Name, base: &str, parts: &DomainParts) -> Result<TypeStatement> {
        let schema = self.schema_for(name.schema.as_deref(), &name.name, Some(name.position))?;
        let (base, typmod) = type_of_text(base)?;
        if base.kind() == 'p' {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("\"{base}\" is not a valid base type for a domain"),
            ));
        }
        // Bound here for their errors.
        let conditions = parts.checks.iter().map(|(_, condition)| condition.as_str());
        compile_domain(base, typmod, parts.default.as_deref(), conditions)?;
        Ok(TypeStatement::CreateDomain {
            schema,
            name: name.name.clone(),
            base,
            typmod,
            not_null: parts.not_null == Some(true),
            default: parts.default.clone(),
            checks: parts.checks.clone(),
        })
    }

    /// The type of this name that a user has made.
    pub(super) fn users_type(&self, name: &Name) -> Result<Arc<UserType>> {
        let schema = name.schema.as_deref();
        if DataType::named(&name.name).is_some_and(|_| schema.is_none_or(|schema| schema == "pg_catalog")) {
            return Err(EngineError::not_supported("a comment on a type of the system"));
        }
        in_force::named(schema, &name.name)
            .and_then(definition_of)
            .ok_or_else(|| no_type(name))
    }

    pub(super) fn domain_named(&self, name: &Name) -> Result<Arc<UserType>> {
        let schema = name.schema.as_deref();
        if let Some(found) = DataType::named(&name.name).filter(|_| schema.is_none()) {
            return Err(not_a_domain(found));
        }
        let found = in_force::named(schema, &name.name).and_then(definition_of);
        let found = found.ok_or_else(|| no_type(name))?;
        require_domain(&found, true)?;
        Ok(found)
    }

    fn type_change(&self, change: &WrittenChange) -> Result<TypeChange> {
        Ok(match change {
            WrittenChange::AddLabel {
                label,
                place,
                if_not_exists,
            } => TypeChange::AddLabel {
                label: label.clone(),
                place: place.clone(),
                if_not_exists: *if_not_exists,
            },
            WrittenChange::RenameLabel { from, to } => TypeChange::RenameLabel {
                from: from.clone(),
                to: to.clone(),
            },
            WrittenChange::Rename(name) => TypeChange::Rename(name.clone()),
            WrittenChange::RenameAttribute { from, to, .. } => TypeChange::RenameAttribute {
                from: from.clone(),
                to: to.clone(),
            },
            WrittenChange::Attributes(actions) => {
                let changes = actions.iter().map(|(action, _)| attribute_change(action));
                let mut changes = changes.collect::<Result<Vec<_>>>()?;
                changes.sort_by_key(AttributeChange::turn);
                TypeChange::Attributes(changes)
            }
            WrittenChange::SetSchema(name) => {
                TypeChange::SetSchema(self.schema_for(Some(&name.name), "", Some(name.position))?)
            }
            WrittenChange::Owner(role) => TypeChange::Owner(role.clone()),
        })
    }

    /// The types that a statement drops.
    fn dropped_types(&self, names: &[Name], if_exists: bool) -> Result<Vec<(String, Option<Arc<UserType>>)>> {
        let mut types = Vec::with_capacity(names.len());
        for name in names {
            let schema = name.schema.as_deref();
            if let Some(schema) = schema.filter(|schema| self.catalog.schema(schema).is_none()) {
                match if_exists {
                    // The schema's notice is told by what drops.
                    true => types.push((shown(name), None)),
                    false => return Err(no_schema(schema)),
                }
                continue;
            }
            let found = match self.type_of_name(name) {
                Some(found) => Some(found?),
                None if if_exists => None,
                None => return Err(no_type(name)),
            };
            if let Some(found) = &found {
                refuse_row_type(found, "cannot drop", "drop")?;
            }
            types.push((shown(name), found));
        }
        Ok(types)
    }

    /// The type that a statement changes.
    fn changeable_type(&self, name: &Name, change: &WrittenChange) -> Result<Arc<UserType>> {
        let found = match self.type_of_name(name) {
            Some(found) => found?,
            None => {
                let schema = name.schema.as_deref();
                if let Some(schema) = schema.filter(|schema| self.catalog.schema(schema).is_none()) {
                    return Err(no_schema(schema));
                }
                return Err(no_type(name));
            }
        };
        let wants_enum = matches!(
            change,
            WrittenChange::AddLabel { .. } | WrittenChange::RenameLabel { .. }
        );
        if wants_enum && found.enumeration().is_none() {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{} is not an enum", found.data_type()),
            ));
        }
        if changes_attributes(change) {
            let relation = &found.name;
            match found.composite() {
                None => return Err(no_relation(relation)),
                Some(composite) if composite.table.is_some() => {
                    return Err(EngineError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("\"{relation}\" is not a composite type"),
                    ));
                }
                Some(_) => return Ok(found),
            }
        }
        refuse_row_type(&found, "is", "alter")?;
        Ok(found)
    }

    /// The type of this name; an error for one that cannot be changed, since it is the system's or an array type.
    fn type_of_name(&self, name: &Name) -> Option<Result<Arc<UserType>>> {
        let schema = name.schema.as_deref();
        let of_system = matches!(schema, None | Some("pg_catalog"));
        if let Some(found) = DataType::named(&name.name).filter(|_| of_system) {
            return Some(Err(EngineError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop type {found} because it is required by the database system"),
            )));
        }
        let found = in_force::named(schema, &name.name)?;
        if let Some(element) = found.element() {
            return Some(Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot alter array type {found}"),
            )
            .with_hint(format!(
                "You can alter type {element}, which will alter the array type as well."
            ))));
        }
        definition_of(found).map(Ok)
    }
}

/// The attributes of a new composite type; 42701 for a name that two have.
fn fields_of(attributes: &[(String, String)]) -> Result<Vec<Field>> {
    let mut fields: Vec<Field> = Vec::with_capacity(attributes.len());
    for (name, data_type) in attributes {
        if fields.iter().any(|known| known.name == *name) {
            return Err(EngineError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        fields.push(field_of(name, data_type)?);
    }
    Ok(fields)
}

pub(super) fn field_of(name: &str, data_type: &str) -> Result<Field> {
    let pseudo = |shown: &str| {
        EngineError::new(
            SqlState::from_code("42P16"),
            format!("column \"{name}\" has pseudo-type {shown}"),
        )
    };
    // Statements have the type in casts alone.
    if data_type.eq_ignore_ascii_case("record") {
        return Err(pseudo("record"));
    }
    let (data_type, typmod) = type_of_text(data_type)?;
    if data_type.kind() == 'p' {
        return Err(pseudo(&data_type.name()));
    }
    Ok(Field {
        name: name.to_owned(),
        data_type,
        typmod,
    })
}

fn attribute_change(action: &AttributeAction) -> Result<AttributeChange> {
    Ok(match action {
        AttributeAction::Add { name, data_type } => AttributeChange::Add(field_of(name, data_type)?),
        AttributeAction::Drop { name, if_exists } => AttributeChange::Drop {
            name: name.clone(),
            if_exists: *if_exists,
        },
        AttributeAction::SetType { name, data_type } => AttributeChange::SetType(field_of(name, data_type)?),
    })
}

fn changes_attributes(change: &WrittenChange) -> bool {
    matches!(
        change,
        WrittenChange::RenameAttribute { .. } | WrittenChange::Attributes(_)
    )
}

fn no_relation(name: &str) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
    )
}

/// 42809 where a domain is wanted, and a type is none.
fn require_domain(found: &UserType, wanted: bool) -> Result<()> {
    match wanted && found.domain().is_none() {
        true => Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("{} is not a domain", found.data_type()),
        )),
        false => Ok(()),
    }
}

fn not_a_domain(found: DataType) -> EngineError {
    EngineError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("\"{}\" is not a domain", found.internal_name()),
    )
}

/// An error for the type of a table's rows, which goes and changes with the table.
fn refuse_row_type(found: &UserType, how: &str, verb: &str) -> Result<()> {
    let UserTypeKind::Composite(composite) = &found.kind else {
        return Ok(());
    };
    if composite.table.is_none() {
        return Ok(());
    }
    let name = found.data_type();
    if verb == "drop" {
        return Err(EngineError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("{how} type {name} because table {name} requires it"),
        )
        .with_hint(format!("You can drop table {name} instead.")));
    }
    Err(EngineError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{name} {how} a table's row type"),
    )
    .with_hint("Use ALTER TABLE instead."))
}

/// A name as errors about its absence show it.
fn shown(name: &Name) -> String {
    match &name.schema {
        Some(schema) => format!("{}.{}", quote_identifier(schema), quote_identifier(&name.name)),
        None => name.name.clone(),
    }
}

pub(super) fn no_type(name: &Name) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("type \"{}\" does not exist", shown(name)),
    )
}
