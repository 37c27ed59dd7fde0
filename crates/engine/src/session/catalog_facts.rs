//! Facts of the catalog that an expression can ask of its session.

use std::net::SocketAddr;
use std::sync::Arc;

use clearway_storage::{PAGE_SIZE, RelId};

use crate::catalog::access::denied;
use crate::catalog::access::{self, Kind, Privileges, SELECT, UPDATE, USAGE};
use crate::catalog::sequence::Sequence;
use crate::catalog::system;
use crate::catalog::system::definition_text::{
    check_definition, constraint_definition, domain_check_definition, foreign_key_definition,
    index_definition, index_key_text, pretty_expression,
};
use crate::catalog::system::shape::Schema;
use crate::catalog::{CatalogState, TableEntry};
use crate::session::expression_session::Facts;
use crate::session::prepared::{View, Viewer};
use clearway_sql::catalog_facts::{
    CatalogFacts, ConnectionSide, FunctionTypes, IndexOrder, PrivilegeOn, RelationBytes, RelationName,
    TableStatistic,
};
use clearway_sql::deparse::view_definition;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::quote_identifier;
use clearway_sql::sequence::SequenceDef;
use clearway_sql::value::{CatalogObject, DataType};
use clearway_sql::{IndexDef, ObjectAddress, SchemaRef};

impl Facts<'_> {
    /// The next number of the sequence of this number.
    pub(super) fn next_of(&self, oid: u32) -> Result<i64> {
        self.lock_counted(oid)?;
        let state = self.definitions();
        let (entry, sequence, definition) = self.sequence_in(&state, oid)?;
        let numbers = &definition.numbers;
        let taken = (self.serial_values.borrow_mut()).next_taken(oid, definition.rel, numbers.increment);
        // R3 of `sequence`.
        let storage = &self.engine.storage;
        if let Some(value) = taken {
            return Ok(value.noted_in(self.seen, storage.secured()));
        }
        let taken = sequence
            .next(storage, numbers, &entry.def.name)?
            .noted_in(self.seen, storage.secured());
        self.serial_values
            .borrow_mut()
            .note(oid, definition.rel, numbers.increment, taken);
        Ok(taken.first)
    }

    /// Locks a sequence that the session is to count by; a temporary one is its own.
    fn lock_counted(&self, sequence: u32) -> Result<()> {
        if self.locks.sequences.borrow().has(sequence) || self.is_temporary(sequence) {
            return Ok(());
        }
        self.lock_sequence(sequence)
    }

    /// The sequence of this number; 42809 or 42P01 if there is none.
    fn sequence_in<'s>(
        &self,
        state: &'s CatalogState,
        oid: u32,
    ) -> Result<(&'s TableEntry, &'s Sequence, &'s SequenceDef)> {
        let found = state.table(oid).and_then(|entry| {
            let definition = entry.def.sequence.as_deref()?;
            Some((&**entry, &**entry.sequence.as_ref()?, definition))
        });
        found.ok_or_else(|| match self.relation(oid) {
            Some(relation) => EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a sequence", relation.name),
            ),
            None => EngineError::new(
                SqlState::UNDEFINED_TABLE,
                format!("could not open relation with OID {oid}"),
            ),
        })
    }

    /// 25006 where nothing may be written.
    fn require_writing(&self, function: &str) -> Result<()> {
        let reason = match (self.engine.is_standby(), self.read_only) {
            (true, _) => "during recovery",
            (false, true) => "in a read-only transaction",
            (false, false) => return Ok(()),
        };
        Err(EngineError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {function} {reason}"),
        ))
    }

    /// 42501 unless the role has one of these privileges on a sequence.
    fn require_on_sequence(&self, sequence: u32, one_of: Privileges) -> Result<()> {
        let state = self.definitions();
        let has = state.privileges(self.identity.current, Kind::Sequence, sequence, one_of, false);
        match state.table(sequence) {
            Some(entry) if has == 0 && entry.def.sequence.is_some() => {
                let name = &entry.def.name;
                Err(denied(format!("permission denied for sequence {name}")))
            }
            _ => Ok(()),
        }
    }

    /// True if a relation is one of the session's own.
    fn is_temporary(&self, oid: u32) -> bool {
        let state = self.definitions();
        (state.table(oid)).is_some_and(|entry| entry.def.schema.is_temporary())
    }

    fn bytes_of(&self, rel: u32) -> i64 {
        let blocks = self.engine.storage.block_count(RelId(rel)).unwrap_or(0);
        i64::from(blocks) * PAGE_SIZE as i64
    }
}

/// The index of this number, with its table.
fn index_of(state: &CatalogState, oid: u32) -> Option<(&Arc<TableEntry>, &Arc<IndexDef>)> {
    let entry = state.owner(oid)?;
    let index = entry.def.all_indexes().find(|index| index.oid == oid)?;
    Some((entry, index))
}

impl Facts<'_> {
    fn relation_in(&self, state: &CatalogState, schema: &SchemaRef, name: &str) -> Option<u32> {
        if let Some(table) = state.table_in(schema, name) {
            return Some(table.oid);
        }
        if schema.oid == Schema::LongValues.oid() {
            let owner = name.strip_prefix("pg_toast_")?.parse().ok()?;
            return state.table(owner)?.def.long_oid();
        }
        if let Some(DataType::Composite(oid)) = state.type_in(schema.oid, name) {
            return Some(oid.get());
        }
        let entry = state.owner_of_index(schema.oid, name)?;
        let index = entry.def.all_indexes().find(|index| index.name == name)?;
        Some(index.oid)
    }
}

impl CatalogFacts for Facts<'_> {
    fn relation_oid(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        let state = self.definitions();
        match schema {
            Some(schema) => self.relation_in(&state, &state.schema_named(schema)?, name),
            None => state
                .searched(&self.settings.search_path, &self.identity.user)
                .find_map(|schema| self.relation_in(&state, &schema, name)),
        }
    }

    fn schema_oid(&self, name: &str) -> Option<u32> {
        self.definitions().schema_named(name).map(|schema| schema.oid)
    }

    fn schema_name(&self, oid: u32) -> Option<String> {
        let schema = self.definitions().schema_of_number(oid)?;
        Some(schema.name.to_string())
    }

    fn schemas_on_path(&self, with_implicit: bool) -> Vec<String> {
        let state = self.definitions();
        let (path, user) = (&self.settings.search_path, &self.identity.user);
        let all: Vec<SchemaRef> = match with_implicit {
            true => state.searched(path, user).collect(),
            false => state.on_path(path, user).collect(),
        };
        let mut names: Vec<String> = Vec::with_capacity(all.len());
        for schema in all {
            if !names.iter().any(|known| *known == *schema.name) {
                names.push(schema.name.to_string());
            }
        }
        names
    }

    fn temporary_schema(&self) -> u32 {
        let schema = self.definitions().temporary_schema();
        schema.map_or(0, |schema| schema.oid)
    }

    fn relation(&self, oid: u32) -> Option<RelationName> {
        let state = self.definitions();
        let named = |schema: &SchemaRef, name: &str, kind| {
            Some(RelationName {
                schema: schema.name.to_string(),
                name: name.to_owned(),
                kind,
            })
        };
        if let Some(entry) = state.table(oid) {
            let kind = match (&entry.def.view, &entry.def.sequence) {
                (Some(_), _) => 'v',
                (None, Some(_)) => 'S',
                (None, None) => 'r',
            };
            return named(&entry.def.schema, &entry.def.name, kind);
        }
        if let Some((entry, index)) = index_of(&state, oid) {
            return named(&entry.def.schema, &index.name, 'i');
        }
        if let Some(entry) = state.owner_of_long_values(oid) {
            let schema = Schema::LongValues.reference();
            return named(&schema, &entry.def.long_name(), 't');
        }
        if let Some(entry) = state
            .type_entry(oid)
            .filter(|entry| entry.def.composite().is_some())
        {
            let schema = SchemaRef::new(entry.def.schema_oid, &entry.def.schema);
            return named(&schema, &entry.def.name, 'c');
        }
        let table = system::by_oid(oid)?;
        let kind = if table.shape.is_view { 'v' } else { 'r' };
        named(&table.definition.schema, table.shape.name, kind)
    }

    fn object_oid(&self, kind: CatalogObject, schema: Option<&str>, name: &str) -> Option<u32> {
        if schema.is_some_and(|schema| schema != "pg_catalog") {
            return None;
        }
        match kind {
            CatalogObject::Function => system::functions::only_one_named(name),
            CatalogObject::FunctionWithArguments => system::functions::with_arguments(name),
            CatalogObject::Operator => system::operators::only_one_named(name),
            CatalogObject::OperatorWithArguments => system::operators::with_operands(name),
            CatalogObject::Type => system::types::named(name),
            CatalogObject::Role => self.role_named(name),
            CatalogObject::Collation => system::server::collation_named(name),
            _ => None,
        }
    }

    fn role_named(&self, name: &str) -> Option<u32> {
        self.definitions().role_number(name, &self.info.user)
    }

    fn role_name(&self, oid: u32) -> Option<String> {
        self.definitions()
            .role_name(oid, &self.info.user)
            .map(str::to_owned)
    }

    fn has_privilege(&self, role: u32, on: PrivilegeOn, privilege: &str, option: bool) -> bool {
        let state = self.definitions();
        let Some(bit) = access::privilege_named(privilege) else {
            return match on {
                PrivilegeOn::Role(of) if option => state.is_admin_of(role, of),
                PrivilegeOn::Role(of) => state.is_member(role, of),
                _ => false,
            };
        };
        let has = |kind, oid| state.privileges(role, kind, oid, bit, option) == bit;
        let has_on_column = |oid: u32, wanted: Option<u16>| {
            let roles = state.inherited_roles(role);
            state.table(oid).is_some_and(|entry| {
                let mut lists = entry
                    .lists_of_columns()
                    .filter(|(column, _)| wanted.is_none_or(|wanted| wanted == *column));
                lists.any(|(_, acl)| access::held(acl, &roles, bit, option) != 0)
            })
        };
        let kind_of = |oid: u32| match state.table(oid) {
            Some(entry) if entry.def.sequence.is_some() => Kind::Sequence,
            _ => Kind::Table,
        };
        match on {
            PrivilegeOn::Relation(oid) => has(kind_of(oid), oid),
            PrivilegeOn::AnyColumn(oid) => has(Kind::Table, oid) || has_on_column(oid, None),
            PrivilegeOn::Column(oid, number) => {
                has(Kind::Table, oid) || has_on_column(oid, Some(number.cast_unsigned()))
            }
            PrivilegeOn::Schema(oid) => has(Kind::Schema, oid),
            PrivilegeOn::Database => has(Kind::Database, 0),
            PrivilegeOn::Role(of) if option => state.is_admin_of(role, of),
            PrivilegeOn::Role(of) => state.has_privileges_of(role, of),
        }
    }

    fn names_several(&self, kind: CatalogObject, name: &str) -> bool {
        match kind {
            CatalogObject::Function => system::functions::several_named(name),
            CatalogObject::Operator => system::operators::several_named(name),
            _ => false,
        }
    }

    fn object_name(&self, kind: CatalogObject, oid: u32) -> Option<String> {
        match kind {
            CatalogObject::Function => system::functions::name_of(oid),
            CatalogObject::FunctionWithArguments => system::functions::name_with_arguments(oid),
            CatalogObject::Operator => system::operators::name_of(oid),
            CatalogObject::OperatorWithArguments => system::operators::name_with_operands(oid),
            CatalogObject::Type => system::types::listed_name(oid),
            CatalogObject::Role => self.role_name(oid).map(|name| quote_identifier(&name)),
            CatalogObject::Collation => system::server::collation_name(oid).map(quote_identifier),
            _ => None,
        }
    }

    fn column_number(&self, relation: u32, name: &str) -> Option<i16> {
        let state = self.definitions();
        let table = match state.table(relation) {
            Some(entry) => &entry.def,
            None => &system::by_oid(relation)?.definition,
        };
        let number = table.attribute_number(table.column_number(name)?);
        Some(number.cast_signed())
    }

    fn has_column(&self, relation: u32, number: i16) -> bool {
        let state = self.definitions();
        let table = match (state.table(relation), system::by_oid(relation)) {
            (Some(entry), _) => &entry.def,
            (None, Some(of_system)) => &of_system.definition,
            (None, None) => return false,
        };
        match u16::try_from(number) {
            Ok(number) => table.column_of_attribute(number).is_some(),
            // ctid to tableoid.
            Err(_) => (-6..0).contains(&number),
        }
    }

    fn index_definition(&self, oid: u32, column: i32, with_schema: bool) -> Option<String> {
        let state = self.definitions();
        let (entry, index) = index_of(&state, oid)?;
        if column == 0 {
            let with_schema = with_schema || self.relation_oid(None, &entry.def.name) != Some(entry.def.oid);
            return Some(index_definition(&entry.def, index, with_schema));
        }
        let number = usize::try_from(column - 1).ok()?;
        if let Some(at) = number.checked_sub(index.keys.len()) {
            let included = usize::from(*index.included.get(at)?);
            return Some(quote_identifier(&entry.def.columns[included].name));
        }
        Some(index_key_text(&entry.def, index, number, false))
    }

    fn constraint_definition(&self, oid: u32, pretty: bool) -> Option<String> {
        let state = self.definitions();
        let mut checks = state.owner(oid).into_iter().flat_map(|entry| &entry.def.checks);
        if let Some(check) = checks.find(|check| check.oid == oid) {
            let table = &state.owner(oid)?.def;
            return Some(check_definition(table, check, pretty));
        }
        let domains = state.user_types();
        let mut constraints = domains
            .iter()
            .filter_map(|found| found.domain())
            .flat_map(|of| of.checks.iter().map(move |check| (of, check)));
        if let Some((domain, check)) = constraints.find(|(_, check)| check.oid == oid) {
            return Some(domain_check_definition(domain, check, pretty));
        }
        if let Some(reference) = state.foreign_key(oid) {
            let parent = &state.table(reference.key.parent)?.def;
            let name = quote_identifier(&parent.name);
            let name = match self.relation_oid(None, &parent.name) == Some(parent.oid) {
                true => name,
                false => format!("{}.{name}", quote_identifier(&parent.schema.name)),
            };
            let (table, key) = (&reference.child.def, &reference.key);
            return Some(foreign_key_definition(table, parent, key, &name));
        }
        let (entry, index) = index_of(&state, oid)?;
        index.constraint.then(|| constraint_definition(&entry.def, index))
    }

    fn sequence_of(&self, relation: u32, column: i16) -> Option<String> {
        let state = self.definitions();
        let owned = state.owned_sequences(relation, Some(column.cast_unsigned()));
        owned.first().map(|sequence| sequence.def.name.clone())
    }

    fn view_definition(&self, oid: u32, pretty: bool) -> Result<Option<String>> {
        let state = self.definitions();
        let Some(entry) = state.table(oid).filter(|entry| entry.def.view.is_some()) else {
            return Ok(None);
        };
        let view = View {
            state: &state,
            viewer: Viewer {
                planning: &self.settings.planning,
                identity: self.identity,
                session: self.slot.process_id,
            },
        };
        view_definition(&entry.def, &view, pretty).map(Some)
    }

    fn rule_definition(&self, oid: u32, pretty: bool) -> Result<Option<String>> {
        let state = self.definitions();
        let views = state.views();
        let Some(entry) = views.iter().find(|entry| system::rule_oid(entry.def.oid) == oid) else {
            return Ok(None);
        };
        let query = self.view_definition(entry.def.oid, pretty)?;
        let name = quote_identifier(&entry.def.name);
        let name = match pretty && self.relation_oid(None, &entry.def.name) == Some(entry.def.oid) {
            true => name,
            false => format!("{}.{name}", quote_identifier(&entry.def.schema.name)),
        };
        Ok(query
            .map(|query| format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {query}")))
    }

    fn comment(&self, on: ObjectAddress) -> Option<String> {
        let state = self.definitions();
        state.comment(&on).map(|comment| comment.text.clone())
    }

    fn any_comment(&self, object: u32) -> Option<String> {
        let state = self.definitions();
        let comments = state.comments().into_iter();
        let mut own = comments.filter(|comment| {
            comment.on.object == object && comment.on.column == 0 && !comment.on.is_shared()
        });
        own.next().map(|comment| comment.text.clone())
    }

    fn function_types(&self, oid: u32) -> Option<FunctionTypes> {
        system::functions::types_of(oid)
    }

    fn table_statistic(&self, oid: u32, what: TableStatistic) -> Option<i64> {
        let state = self.definitions();
        state.table(oid)?.runtime.statistic(what)
    }

    fn next_transaction(&self) -> u64 {
        self.engine.storage.next_xid().0
    }

    fn index_order(&self, oid: u32) -> Option<Vec<Option<IndexOrder>>> {
        let state = self.definitions();
        let (_, index) = index_of(&state, oid)?;
        let keys = index.keys.iter().map(|key| {
            Some(IndexOrder {
                descending: key.options.descending,
                nulls_first: key.options.nulls_first,
            })
        });
        Some(keys.chain(index.included.iter().map(|_| None)).collect())
    }

    fn pretty_expression(&self, relation: u32, text: &str) -> Option<String> {
        let state = self.definitions();
        pretty_expression(&state, &state.table(relation)?.def, text)
    }

    fn relation_bytes(&self, oid: u32) -> Option<RelationBytes> {
        let state = self.definitions();
        if let Some(entry) = state.table(oid) {
            return Some(RelationBytes {
                own: match (&entry.def.view, &entry.def.sequence) {
                    (Some(_), _) => 0,
                    (None, Some(sequence)) => self.bytes_of(sequence.rel),
                    (None, None) => self.bytes_of(entry.rel()),
                },
                indexes: entry
                    .def
                    .all_indexes()
                    .map(|index| self.bytes_of(index.rel))
                    .sum(),
                long_values: entry.def.long_rel.map_or(0, |rel| self.bytes_of(rel)),
            });
        }
        let long_rel = state
            .owner_of_long_values(oid)
            .and_then(|entry| entry.def.long_rel);
        let own = match (index_of(&state, oid), long_rel) {
            (Some((_, index)), _) => self.bytes_of(index.rel),
            (None, Some(rel)) => self.bytes_of(rel),
            // Tables of the system have no pages.
            (None, None) => system::by_oid(oid).map(|_| 0)?,
        };
        Some(RelationBytes {
            own,
            indexes: 0,
            long_values: 0,
        })
    }

    fn database_bytes(&self) -> i64 {
        let tables = self.definitions().with_files();
        let relations = tables.iter().flat_map(|entry| entry.relations());
        relations.map(|rel| self.bytes_of(rel)).sum()
    }

    fn next_value(&self, sequence: u32) -> Result<i64> {
        self.require_on_sequence(sequence, USAGE | UPDATE)?;
        if !self.is_temporary(sequence) {
            self.require_writing("nextval()")?;
        }
        self.next_of(sequence)
    }

    fn set_value(&self, sequence: u32, value: i64, is_called: bool) -> Result<i64> {
        self.require_on_sequence(sequence, UPDATE)?;
        if !self.is_temporary(sequence) {
            self.require_writing("setval()")?;
        }
        self.lock_counted(sequence)?;
        let definitions = self.definitions();
        let (entry, state, definition) = self.sequence_in(&definitions, sequence)?;
        let numbers = &definition.numbers;
        if !(numbers.min..=numbers.max).contains(&value) {
            return Err(EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    entry.def.name, numbers.min, numbers.max
                ),
            ));
        }
        let storage = &self.engine.storage;
        state
            .set(storage, value, is_called)?
            .noted_in(self.seen, storage.secured());
        let shown = is_called.then_some(value);
        self.serial_values
            .borrow_mut()
            .set(sequence, definition.rel, shown);
        Ok(value)
    }

    fn current_value(&self, sequence: Option<u32>) -> Result<i64> {
        let undefined = |what: String| {
            EngineError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("{what} is not yet defined in this session"),
            )
        };
        let values = self.serial_values.borrow();
        let state = self.definitions();
        match sequence {
            // A sequence that was dropped tells nothing.
            None => {
                let last = values
                    .used_last()
                    .filter(|sequence| state.table(*sequence).is_some())
                    .ok_or_else(|| undefined("lastval".to_owned()))?;
                self.require_on_sequence(last, USAGE | SELECT)?;
                values
                    .last_of(last)
                    .ok_or_else(|| undefined("lastval".to_owned()))
            }
            Some(sequence) => {
                self.require_on_sequence(sequence, USAGE | SELECT)?;
                let (entry, _, _) = self.sequence_in(&state, sequence)?;
                let found = values.last_of(sequence);
                found.ok_or_else(|| undefined(format!("currval of sequence \"{}\"", entry.def.name)))
            }
        }
    }

    fn sequence_last_value(&self, sequence: u32) -> Result<Option<i64>> {
        let definitions = self.definitions();
        let (_, state, _) = self.sequence_in(&definitions, sequence)?;
        let now = state.now(&self.engine.storage, self.engine.is_standby())?;
        Ok(now.is_called.then_some(now.last))
    }

    fn server_start(&self) -> i64 {
        self.engine.started_at_us
    }

    fn configuration_load(&self) -> i64 {
        self.engine.in_force().read_at_us
    }

    fn connection_address(&self, side: ConnectionSide) -> Option<SocketAddr> {
        match side {
            ConnectionSide::Client => self.info.client_address,
            ConnectionSide::Server => self.info.server_address,
        }
    }
}
