//! COMMENT ON, and the end of the comments on what is dropped.

use clearway_sql::ObjectAddress;
use clearway_storage::heap::{DeleteOutcome, Heap, Tid, UpdateOutcome};

use crate::catalog::comment::CommentEntry;
use crate::catalog::stored::{self, Comment};
use crate::catalog::{CATALOG_REL, CatalogState};
use crate::convert::storage_error;
use crate::definition::{DefinitionChange, raced};
use crate::output::Notice;
use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::DATABASE_OID;
use clearway_sql::plan::{CommentOn, Commented, TablePart, TakenComment};

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn comment(&mut self, comment: &CommentOn) -> Result<()> {
        let Some(on) = self.address(&comment.on)? else {
            return Ok(());
        };
        let mut state = self.state()?;
        match &comment.text {
            Some(text) => self.set_comment(&mut state, on, text)?,
            None => self.remove_comments(&mut state, &[on])?,
        }
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    /// The address of what a comment is about; `None` for another database, which is no error (a warning tells).
    fn address(&mut self, on: &Commented) -> Result<Option<ObjectAddress>> {
        let session = self.execution.eval.session;
        let missing = |state, what: &str, name: &str| {
            Err(EngineError::new(
                state,
                format!("{what} \"{name}\" does not exist"),
            ))
        };
        match on {
            Commented::Object(address) => {
                let state = self.execution.txn.catalog_state();
                let entry = state
                    .table(address.object)
                    .or_else(|| state.owner(address.object));
                // Its row would stay when the session has ended.
                match entry {
                    Some(entry) if entry.def.schema.is_temporary() => {
                        Err(EngineError::not_supported("a comment on a temporary table"))
                    }
                    _ => Ok(Some(*address)),
                }
            }
            Commented::Type(_, address) => Ok(Some(*address)),
            Commented::Schema(name) => match self.execution.txn.catalog_state().schema_named(name) {
                Some(schema) => Ok(Some(ObjectAddress::new(ObjectAddress::PG_NAMESPACE, schema.oid))),
                None => missing(SqlState::INVALID_SCHEMA_NAME, "schema", name),
            },
            Commented::Role(name) => {
                let state = self.execution.txn.catalog_state();
                match state.role_number(name, self.execution.login) {
                    Some(oid) => Ok(Some(ObjectAddress::new(ObjectAddress::PG_AUTHID, oid))),
                    None => missing(SqlState::UNDEFINED_OBJECT, "role", name),
                }
            }
            Commented::Database(name) if name == session.database() => {
                Ok(Some(ObjectAddress::new(ObjectAddress::PG_DATABASE, DATABASE_OID)))
            }
            Commented::Database(name) => {
                self.outcome.notices.push(Notice::warning(
                    SqlState::INVALID_CATALOG_NAME,
                    format!("database \"{name}\" does not exist"),
                ));
                Ok(None)
            }
        }
    }

    fn set_comment(&mut self, state: &mut CatalogState, on: ObjectAddress, text: &str) -> Result<()> {
        let bytes = stored::encode_comment(&Comment {
            on,
            text: text.to_owned(),
        })?;
        let before = state.comment(&on).map(|comment| comment.tid);
        let context = self.execution.txn.context();
        let heap = Heap::new(CATALOG_REL);
        let tid = match before {
            None => heap.insert(&context, &bytes).map_err(storage_error)?,
            Some(tid) => match heap.update(&context, tid, &bytes, false).map_err(storage_error)? {
                UpdateOutcome::Updated { tid, .. } => tid,
                _ => return Err(raced("a comment")),
            },
        };
        // A later step of the same statement may change the row again.
        self.execution.txn.next_command();
        state.put_comment(CommentEntry {
            on,
            text: text.to_owned(),
            tid,
        });
        Ok(())
    }

    /// Gives a new table the comments that it takes over; `checks`: the numbers of its CHECK constraints.
    pub(super) fn take_comments(
        &mut self,
        state: &mut CatalogState,
        table: &TableDef,
        comments: &[TakenComment],
        checks: &[u32],
    ) -> Result<()> {
        for taken in comments {
            let Some(text) = state.comment(&taken.from).map(|comment| comment.text.clone()) else {
                continue;
            };
            if table.schema.is_temporary() {
                return Err(EngineError::not_supported("a comment on a temporary table"));
            }
            let index = |place: u16| table.indexes[usize::from(place)].oid;
            let to = match taken.to {
                TablePart::Column(place) => ObjectAddress {
                    column: i32::from(table.attribute_number(place)),
                    ..ObjectAddress::relation(table.oid)
                },
                TablePart::Index(place) => ObjectAddress::relation(index(place)),
                TablePart::Check(place) => {
                    ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, checks[usize::from(place)])
                }
                TablePart::Constraint(place) => {
                    ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, index(place))
                }
            };
            self.set_comment(state, to, &text)?;
        }
        Ok(())
    }

    /// Removes the comments on these objects, as far as they have any.
    pub(super) fn remove_comments(&mut self, state: &mut CatalogState, on: &[ObjectAddress]) -> Result<()> {
        for address in on {
            let Some(tid) = state.comment(address).map(|comment| comment.tid) else {
                continue;
            };
            self.delete_comment(tid)?;
            state.remove_comment(address);
        }
        Ok(())
    }

    fn delete_comment(&mut self, tid: Tid) -> Result<()> {
        let context = self.execution.txn.context();
        match Heap::new(CATALOG_REL)
            .delete(&context, tid)
            .map_err(storage_error)?
        {
            DeleteOutcome::Deleted => Ok(()),
            _ => Err(raced("a comment")),
        }
    }
}
