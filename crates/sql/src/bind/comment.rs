//! COMMENT ON: the object that it is about.

use std::sync::Arc;

use crate::bind::Binder;
use crate::bind::types::no_column;
use crate::catalog::{TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::object_address::ObjectAddress;
use crate::parse::utility::{Comment, CommentedName, Name, RelationKind};
use crate::plan::{CommentOn, Commented, DefinitionStatement};

/// The first number of what users make.
const FIRST_USER_OID: u32 = 16_384;

impl Binder<'_> {
    pub(super) fn comment(&self, comment: &Comment) -> Result<DefinitionStatement> {
        let on = match &comment.on {
            CommentedName::Relation(RelationKind::Index, name) => {
                Commented::Object(self.index_address(name)?)
            }
            CommentedName::Relation(kind, name) => {
                let table = self.commented_table(name)?;
                require_kind(&table, *kind)?;
                Commented::Object(ObjectAddress::relation(table.oid))
            }
            CommentedName::Column(name, column) => {
                let table = self.commented_table(name)?;
                let number = table.column_number(column);
                let number = number.ok_or_else(|| no_column(&table.name, column))?;
                let mut address = ObjectAddress::relation(table.oid);
                address.column = i32::from(table.attribute_number(number));
                Commented::Object(address)
            }
            CommentedName::Constraint(name, table) => {
                let table = self.commented_table(table)?;
                let mut indexes = table.indexes.iter();
                let found = indexes.find(|index| index.constraint && index.name == *name);
                let check = table.checks.iter().find(|check| check.name == *name);
                let key = table.foreign_keys.iter().find(|key| key.name == *name);
                let oid = found
                    .map(|index| index.oid)
                    .or(check.map(|check| check.oid))
                    .or(key.map(|key| key.oid))
                    .ok_or_else(|| {
                        EngineError::new(
                            SqlState::UNDEFINED_OBJECT,
                            format!(
                                "constraint \"{name}\" for table \"{}\" does not exist",
                                table.name
                            ),
                        )
                    })?;
                Commented::Object(ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, oid))
            }
            CommentedName::DomainConstraint(name, domain) => {
                let of = self.domain_named(domain)?;
                let check = of.domain().and_then(|domain| {
                    let mut checks = domain.checks.iter();
                    checks.find(|check| check.name == *name)
                });
                let check = check.ok_or_else(|| {
                    EngineError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!(
                            "constraint \"{name}\" for domain {} does not exist",
                            of.data_type()
                        ),
                    )
                })?;
                let on = ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, check.oid);
                Commented::Type(of, on)
            }
            CommentedName::Type(name, is_domain) => {
                let of = match is_domain {
                    true => self.domain_named(name)?,
                    false => self.users_type(name)?,
                };
                let on = ObjectAddress::new(ObjectAddress::PG_TYPE, of.oid.get());
                Commented::Type(of, on)
            }
            CommentedName::Schema(name) => Commented::Schema(name.clone()),
            CommentedName::Database(name) => Commented::Database(name.clone()),
            CommentedName::Role(name) => Commented::Role(name.clone()),
            CommentedName::Missing(object) => {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("{object} does not exist"),
                ));
            }
        };
        Ok(DefinitionStatement::Comment(Box::new(CommentOn {
            on,
            text: comment.text.clone(),
        })))
    }

    /// A relation that a comment is about; those of the system have none.
    fn commented_table(&self, name: &Name) -> Result<Arc<TableDef>> {
        let table = self.any_table(name).map_err(EngineError::without_position)?;
        if table.oid < FIRST_USER_OID {
            return Err(EngineError::not_supported(
                "a comment on a relation of the system",
            ));
        }
        Ok(table)
    }

    fn index_address(&self, name: &Name) -> Result<ObjectAddress> {
        let owner = self.catalog.lookup_index(name.schema.as_deref(), &name.name);
        let index = owner.as_ref().and_then(|table| {
            let mut indexes = table.indexes.iter();
            indexes.find(|index| index.name == name.name)
        });
        match index {
            Some(index) => Ok(ObjectAddress::relation(index.oid)),
            None => {
                let table = self.commented_table(name)?;
                require_kind(&table, RelationKind::Index)?;
                Err(EngineError::internal("a table passes for an index"))
            }
        }
    }
}

/// 42809 for a relation of another kind.
pub(super) fn require_kind(table: &TableDef, kind: RelationKind) -> Result<()> {
    let is = match table.kind {
        TableKind::Heap { .. } => RelationKind::Table,
        TableKind::View => RelationKind::View,
        TableKind::Virtual => RelationKind::Sequence,
    };
    if is == kind {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("\"{}\" is not {}", table.name, kind.a_kind()),
    ))
}
