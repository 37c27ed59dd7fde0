//! GRANT and REVOKE of privileges on objects; the rules are those of [`crate::catalog::access`].

use std::sync::Arc;

use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{DefaultsOf, GrantObjects, GrantPlan, Owner};

use crate::catalog::access::denied;
use crate::catalog::access::{
    self, Access, Acl, AclItem, DefaultAclKey, Kind, OF_COLUMNS, OF_SEQUENCES, OF_TABLES, PUBLIC, Privileges,
    USAGE,
};
use crate::catalog::schema::SchemaEntry;
use crate::catalog::{CatalogState, TableEntry, stored_roles};
use crate::definition::{DefinitionChange, ReadableBy};
use crate::output::Notice;

/// 0LP01
fn invalid(message: String) -> EngineError {
    EngineError::new(SqlState::from_code("0LP01"), message)
}

/// The bit of a privilege; 42601 for a word that is none.
fn privilege(word: &str) -> Result<Privileges> {
    access::privilege_named(word).ok_or_else(|| {
        EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("unrecognized privilege type \"{word}\""),
        )
    })
}

/// The change of a list by a statement.
struct Change<'g> {
    plan: &'g GrantPlan,
    grantees: &'g [u32],
    /// The name of the object, and its kind in messages.
    name: &'g str,
    kind_name: &'g str,
    owner: u32,
}

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn grant(&mut self, plan: &GrantPlan) -> Result<()> {
        let mut state = self.state()?;
        if let Some(grantor) = &plan.grantor
            && self.role_number(&state, grantor)? != self.execution.identity.current
        {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "grantor must be current user",
            ));
        }
        let grantees = plan.grantees.iter().map(|role| match role {
            Owner::Public if plan.is_grant && plan.grant_option => {
                Err(invalid("grant options can only be granted to roles".to_owned()))
            }
            Owner::Public => Ok(PUBLIC),
            role => self.role_number(&state, role),
        });
        let grantees = grantees.collect::<Result<Vec<u32>>>()?;
        match &plan.objects {
            GrantObjects::Tables(tables) => {
                check_words(plan, OF_TABLES | OF_SEQUENCES, "relation")?;
                for table in tables {
                    self.grant_on_relation(&mut state, plan, &grantees, table, false)?;
                }
            }
            GrantObjects::Sequences(sequences) => {
                check_words(plan, OF_SEQUENCES, "sequence")?;
                for sequence in sequences {
                    if sequence.sequence.is_none() {
                        return Err(EngineError::new(
                            SqlState::WRONG_OBJECT_TYPE,
                            format!("\"{}\" is not a sequence", sequence.name),
                        ));
                    }
                    self.grant_on_relation(&mut state, plan, &grantees, sequence, true)?;
                }
            }
            GrantObjects::TablesIn(schemas) => {
                check_words(plan, OF_TABLES, "relation")?;
                self.grant_in_schemas(&mut state, plan, &grantees, schemas, false)?;
            }
            GrantObjects::SequencesIn(schemas) => {
                check_words(plan, OF_SEQUENCES, "sequence")?;
                self.grant_in_schemas(&mut state, plan, &grantees, schemas, true)?;
            }
            GrantObjects::Schemas(names) => {
                check_words(plan, access::OF_SCHEMAS, "schema")?;
                for name in names {
                    self.grant_on_schema(&mut state, plan, &grantees, name)?;
                }
            }
            GrantObjects::Defaults { roles, schemas, of } => {
                self.alter_defaults(&mut state, plan, &grantees, (roles, schemas, *of))?;
            }
            GrantObjects::Databases(names) => {
                check_words(plan, access::OF_DATABASES, "database")?;
                for name in names {
                    self.grant_on_database(&mut state, plan, &grantees, name)?;
                }
            }
        }
        // Temporary tables are a part of the state that the session sees either way.
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn grant_in_schemas(
        &mut self,
        state: &mut CatalogState,
        plan: &GrantPlan,
        grantees: &[u32],
        schemas: &[String],
        sequences: bool,
    ) -> Result<()> {
        for name in schemas {
            let schema = state
                .schema_named(name)
                .ok_or_else(|| super::schema::no_schema(name))?;
            for entry in state.tables_in(schema.oid) {
                if entry.def.sequence.is_some() == sequences {
                    self.grant_on_relation(state, plan, grantees, &entry.def, sequences)?;
                }
            }
        }
        Ok(())
    }

    fn grant_on_relation(
        &mut self,
        state: &mut CatalogState,
        plan: &GrantPlan,
        grantees: &[u32],
        table: &TableDef,
        as_sequence: bool,
    ) -> Result<()> {
        let Some(entry) = state.table(table.oid).cloned() else {
            return Err(EngineError::not_supported("privileges on a table of the system"));
        };
        let is_sequence = entry.def.sequence.is_some();
        let kind = if is_sequence { Kind::Sequence } else { Kind::Table };
        let change = Change {
            plan,
            grantees,
            name: &table.name,
            kind_name: super::owner::kind_of(&entry),
            owner: entry.access.owner,
        };
        let mut wanted = on_the_whole(plan, kind.all())?;
        if !is_sequence && wanted & USAGE != 0 {
            return Err(invalid("invalid privilege type USAGE for table".to_owned()));
        }
        if is_sequence && !as_sequence && wanted & !OF_SEQUENCES != 0 {
            wanted &= OF_SEQUENCES;
            self.warn(
                SqlState::from_code("0LP01"),
                format!(
                    "sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges",
                    table.name
                ),
            );
        }
        let mut access = (*entry.access).clone();
        let all = plan
            .privileges
            .iter()
            .any(|(word, columns)| word == "all" && columns.is_empty());
        if wanted != 0 {
            let acl = access.acl(kind);
            access.acl = Some(self.changed(state, &change, acl, (wanted, all), kind)?);
        }
        self.change_columns(state, &change, &entry, &mut access, wanted)?;
        let mut changed = (*entry).clone();
        changed.access = Arc::new(access);
        self.replace(state, &changed, (*entry.def).clone(), ReadableBy::OlderSnapshots)
    }

    /// Changes the lists of columns. A privilege that is taken from the table is taken from its columns too.
    fn change_columns(
        &mut self,
        state: &CatalogState,
        change: &Change<'_>,
        entry: &TableEntry,
        access: &mut Access,
        of_table: Privileges,
    ) -> Result<()> {
        let mut wanted: Vec<(u16, Privileges)> = Vec::new();
        if !change.plan.is_grant {
            wanted.extend(
                access
                    .columns
                    .keys()
                    .map(|column| (*column, of_table & OF_COLUMNS)),
            );
        }
        for (word, columns) in &change.plan.privileges {
            if columns.is_empty() {
                continue;
            }
            let bits = match word.as_str() {
                "all" => OF_COLUMNS,
                word => privilege(word)?,
            };
            if bits & !OF_COLUMNS != 0 {
                let word = word.to_uppercase();
                return Err(invalid(format!("invalid privilege type {word} for column")));
            }
            for name in columns {
                let column = entry.def.column_number(name).ok_or_else(|| {
                    EngineError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!(
                            "column \"{name}\" of relation \"{}\" does not exist",
                            entry.def.name
                        ),
                    )
                })?;
                let number = entry.def.attribute_number(column);
                match wanted.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, known)) => *known |= bits,
                    None => wanted.push((number, bits)),
                }
            }
        }
        for (column, bits) in wanted.into_iter().filter(|(_, bits)| *bits != 0) {
            let acl = access.columns.remove(&column).unwrap_or_default();
            let changed = self.changed(state, change, acl, (bits, true), Kind::Column)?;
            if !changed.is_empty() {
                access.columns.insert(column, changed);
            }
        }
        Ok(())
    }

    fn grant_on_schema(
        &mut self,
        state: &mut CatalogState,
        plan: &GrantPlan,
        grantees: &[u32],
        name: &str,
    ) -> Result<()> {
        let entry = super::schema::users_schema(state, name)?;
        let change = Change {
            plan,
            grantees,
            name,
            kind_name: "schema",
            owner: entry.access.owner,
        };
        let wanted = on_the_whole(plan, access::OF_SCHEMAS)?;
        let all = plan.privileges.iter().any(|(word, _)| word == "all");
        let acl = self.changed(
            state,
            &change,
            entry.access.acl(Kind::Schema),
            (wanted, all),
            Kind::Schema,
        )?;
        let access = Arc::new(Access {
            acl: Some(acl),
            ..(*entry.access).clone()
        });
        self.put_schema_row(state, SchemaEntry { access, ..entry })
    }

    fn grant_on_database(
        &mut self,
        state: &mut CatalogState,
        plan: &GrantPlan,
        grantees: &[u32],
        name: &str,
    ) -> Result<()> {
        if name != self.execution.eval.session.database() {
            return Err(EngineError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{name}\" does not exist"),
            ));
        }
        let before = state.database_access();
        let change = Change {
            plan,
            grantees,
            name,
            kind_name: "database",
            owner: before.owner,
        };
        let wanted = on_the_whole(plan, access::OF_DATABASES)?;
        let all = plan.privileges.iter().any(|(word, _)| word == "all");
        let acl = self.changed(
            state,
            &change,
            before.acl(Kind::Database),
            (wanted, all),
            Kind::Database,
        )?;
        let access = Access {
            acl: Some(acl),
            ..(*before).clone()
        };
        self.put_database(state, access)
    }

    /// Writes the owner and the list of the database.
    pub(super) fn put_database(&mut self, state: &mut CatalogState, access: Access) -> Result<()> {
        let bytes = stored_roles::encode_database(&access)?;
        let tid = self.write_catalog_row(state.database_row(), &bytes, "the database")?;
        state.put_database(Arc::new(access), Some(tid));
        Ok(())
    }

    /// ALTER DEFAULT PRIVILEGES
    fn alter_defaults(
        &mut self,
        state: &mut CatalogState,
        plan: &GrantPlan,
        grantees: &[u32],
        (roles, schemas, of): (&[Owner], &[String], DefaultsOf),
    ) -> Result<()> {
        let (kind, kind_name) = match of {
            DefaultsOf::Tables => (Kind::Table, "relation"),
            DefaultsOf::Sequences => (Kind::Sequence, "sequence"),
            DefaultsOf::Schemas => (Kind::Schema, "schema"),
        };
        check_words(plan, kind.all(), kind_name)?;
        if of == DefaultsOf::Schemas && !schemas.is_empty() {
            let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
            return Err(EngineError::new(SqlState::from_code("0LP01"), message));
        }
        let mut numbers = Vec::new();
        for name in schemas {
            let schema = state
                .schema_named(name)
                .ok_or_else(|| super::schema::no_schema(name))?;
            numbers.push(schema.oid);
        }
        if numbers.is_empty() {
            numbers.push(0);
        }
        let current = [Owner::Current];
        let roles = if roles.is_empty() { &current[..] } else { roles };
        for role in roles {
            let role = self.role_number(state, role)?;
            if !state.has_privileges_of(self.execution.identity.current, role) {
                return Err(denied("permission denied to change default privileges"));
            }
            for schema in &numbers {
                let key = DefaultAclKey {
                    role,
                    schema: *schema,
                    kind: kind.letter(),
                };
                let usual = if *schema == 0 {
                    access::default_acl(kind, role)
                } else {
                    Acl::new()
                };
                let before = state
                    .default_acl_for(&key)
                    .map_or_else(|| usual.clone(), |(acl, _)| acl.clone());
                let change = Change {
                    plan,
                    grantees,
                    name: "",
                    kind_name,
                    owner: role,
                };
                let wanted = on_the_whole(plan, kind.all())?;
                let mut after = self.changed(state, &change, before, (wanted, true), kind)?;
                after.sort_by_key(|item| (item.0, item.1));
                self.put_default_acl(state, key, Some(after).filter(|after| *after != usual))?;
            }
        }
        Ok(())
    }

    /// Writes a list of ALTER DEFAULT PRIVILEGES, or takes it away.
    pub(super) fn put_default_acl(
        &mut self,
        state: &mut CatalogState,
        key: DefaultAclKey,
        acl: Option<Acl>,
    ) -> Result<()> {
        let before = state.default_acl_for(&key).and_then(|(_, tid)| *tid);
        match (acl, before) {
            (Some(acl), before) => {
                let bytes = stored_roles::encode_defaults(key, &acl)?;
                let tid = self.write_catalog_row(before, &bytes, "default privileges")?;
                state.put_default_acl(key, acl, Some(tid));
            }
            (None, before) => {
                if let Some(tid) = before {
                    self.delete_catalog_row(tid, "default privileges")?;
                }
                state.remove_default_acl(&key);
            }
        }
        Ok(())
    }

    /// The list after GRANT or REVOKE of these privileges; `all`: the statement says ALL.
    fn changed(
        &mut self,
        state: &CatalogState,
        change: &Change<'_>,
        mut acl: Acl,
        (wanted, all): (Privileges, bool),
        kind: Kind,
    ) -> Result<Acl> {
        let (grantor, options) = self.grantor(state, change, &acl, wanted);
        if options == 0 {
            let roles = state.inherited_roles(grantor);
            if access::held(&acl, &roles, kind.all(), false) == 0 {
                let (kind, name) = (change.kind_name, change.name);
                return Err(denied(format!("permission denied for {kind} {name}")));
            }
        }
        let possible = wanted & options;
        if possible != wanted && (!all || possible == 0) {
            let (code, verb) = match change.plan.is_grant {
                true => ("01007", "were granted"),
                false => ("01006", "could be revoked"),
            };
            let few = if possible == 0 { "no" } else { "not all" };
            let text = format!("{few} privileges {verb} for \"{}\"", change.name);
            self.warn(SqlState::from_code(code), text);
        }
        for grantee in change.grantees {
            match change.plan.is_grant {
                true => add(&mut acl, change, AclItem(*grantee, grantor, possible, 0))?,
                false => {
                    let privileges = if change.plan.grant_option { 0 } else { possible };
                    remove(&mut acl, change, AclItem(*grantee, grantor, privileges, possible))?;
                }
            }
        }
        Ok(acl)
    }

    /// The role that grants, and what it may grant (rule 3).
    fn grantor(
        &self,
        state: &CatalogState,
        change: &Change<'_>,
        acl: &[AclItem],
        wanted: Privileges,
    ) -> (u32, Privileges) {
        let current = self.execution.identity.current;
        if state.has_privileges_of(current, change.owner) {
            return (change.owner, wanted);
        }
        let of = |role: u32| {
            let own = acl.iter().filter(|item| item.0 == role);
            own.fold(0, |all, item| all | item.3) & wanted
        };
        let roles = state.inherited_roles(current);
        let best = roles
            .into_iter()
            .max_by_key(|role| (of(*role).count_ones(), *role == current));
        let best = best.unwrap_or(current);
        match of(best) {
            0 => (current, 0),
            options => (best, options),
        }
    }

    fn warn(&mut self, sqlstate: SqlState, message: String) {
        self.outcome.notices.push(Notice::warning(sqlstate, message));
    }
}

/// The privileges that are on a whole object.
fn on_the_whole(plan: &GrantPlan, all: Privileges) -> Result<Privileges> {
    let words = plan.privileges.iter().filter(|(_, columns)| columns.is_empty());
    let mut bits = 0;
    for (word, _) in words {
        bits |= match word.as_str() {
            "all" => all,
            word => privilege(word)?,
        };
    }
    Ok(bits)
}

/// 0LP01 for a privilege that there is not on such an object.
fn check_words(plan: &GrantPlan, all: Privileges, kind: &str) -> Result<()> {
    for (word, columns) in plan.privileges.iter().filter(|(word, _)| word != "all") {
        let bits = privilege(word)?;
        let word = word.to_uppercase();
        if columns.is_empty() && bits & !all != 0 {
            return Err(invalid(format!("invalid privilege type {word} for {kind}")));
        }
        if !columns.is_empty() && bits & !OF_COLUMNS != 0 {
            return Err(invalid(format!("invalid privilege type {word} for column")));
        }
    }
    Ok(())
}

/// Adds an item to a list.
fn add(acl: &mut Acl, change: &Change<'_>, item: AclItem) -> Result<()> {
    let AclItem(grantee, grantor, privileges, _) = item;
    let options = if change.plan.grant_option { privileges } else { 0 };
    if options != 0 && grantor != change.owner && leads_back(acl, grantor, grantee, options, change.owner) {
        return Err(invalid(
            "grant options cannot be granted back to your own grantor".to_owned(),
        ));
    }
    if privileges == 0 {
        return Ok(());
    }
    match acl
        .iter_mut()
        .find(|known| (known.0, known.1) == (grantee, grantor))
    {
        Some(known) => (known.2, known.3) = (known.2 | privileges, known.3 | options),
        None => acl.push(AclItem(grantee, grantor, privileges, options)),
    }
    Ok(())
}

/// True if the grantor has its grant options by way of the grantee alone.
fn leads_back(acl: &[AclItem], grantor: u32, grantee: u32, options: Privileges, owner: u32) -> bool {
    let mut without: Acl = acl.iter().copied().filter(|item| item.0 != grantee).collect();
    // What has no source any more goes, until nothing does.
    loop {
        let has = |role: u32, list: &[AclItem]| match role == owner {
            true => Privileges::MAX,
            false => list
                .iter()
                .filter(|item| item.0 == role)
                .fold(0, |all, item| all | item.3),
        };
        let list = without.clone();
        without.retain(|item| item.1 != grantee && (item.2 & !has(item.1, &list)) == 0);
        if without.len() == list.len() {
            return has(grantor, &without) & options != options;
        }
    }
}

/// Takes privileges, and the options to grant them, from an item; then from those who have them by it (rule 4).
fn remove(acl: &mut Acl, change: &Change<'_>, item: AclItem) -> Result<()> {
    let AclItem(grantee, grantor, privileges, options) = item;
    let Some(place) = acl
        .iter()
        .position(|known| (known.0, known.1) == (grantee, grantor))
    else {
        return Ok(());
    };
    let known = &mut acl[place];
    (known.2, known.3) = (known.2 & !privileges, known.3 & !options);
    if known.2 == 0 {
        acl.remove(place);
    }
    if grantee == change.owner {
        return Ok(());
    }
    let left = acl
        .iter()
        .filter(|known| known.0 == grantee)
        .fold(0, |all, known| all | known.3);
    let lost = options & !left;
    let depending: Vec<AclItem> = acl
        .iter()
        .filter(|known| known.1 == grantee && known.2 & lost != 0)
        .copied()
        .collect();
    for other in depending {
        if !change.plan.cascade {
            return Err(EngineError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                "dependent privileges exist",
            )
            .with_hint("Use CASCADE to revoke them too."));
        }
        remove(acl, change, AclItem(other.0, grantee, lost, lost))?;
    }
    Ok(())
}
