//! CREATE, ALTER and DROP ROLE, and membership.

use clearway_sql::ObjectAddress;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::USER_OID;
use clearway_sql::plan::{Owner, RoleOptions, RoleStatement, Secret};
use clearway_sql::value::datetime::parse_timestamp;
use clearway_storage::heap::{DeleteOutcome, Heap, Tid, UpdateOutcome};

use crate::catalog::access::denied;
use crate::catalog::role::{DATABASE_OWNER, Membership, MembershipEntry, Role, RoleEntry, Verifier};
use crate::catalog::{CATALOG_REL, CatalogState, stored_roles};
use crate::convert::storage_error;
use crate::definition::owner::no_role;
use crate::definition::{DefinitionChange, notice, raced};
use crate::output::Notice;
use crate::password;

impl DefinitionChange<'_, '_, '_> {
    /// A statement about roles; the first of all names the superuser that the directory began with.
    pub(super) fn role_statement(&mut self, statement: &RoleStatement) -> Result<()> {
        let mut state = self.state()?;
        if state.roles().is_open() {
            // A program that embeds the engine gives no name.
            let name = Some(self.execution.login).filter(|name| !name.is_empty());
            let first = Role::first(name.unwrap_or("postgres"));
            self.put_role(&mut state, first)?;
        }
        match statement {
            RoleStatement::Create { name, options } => self.create_role(&mut state, name, options)?,
            RoleStatement::Alter { role, options } => self.alter_role(&mut state, role, options)?,
            RoleStatement::Rename { name, to } => self.rename_role(&mut state, name, to)?,
            RoleStatement::Set {
                role,
                database,
                name,
                value,
                from_current,
            } => {
                self.require_own_database(database.as_deref())?;
                let value = match (name, from_current) {
                    (Some(name), true) => self.execution.eval.session.setting(name),
                    _ => value.clone(),
                };
                self.set_for_role(&mut state, role.as_ref(), name.as_deref(), value)?;
            }
            RoleStatement::ReassignOwned { roles, to } => self.reassign_owned(&mut state, roles, to)?,
            RoleStatement::DropOwned { roles, cascade } => return self.drop_owned(state, roles, *cascade),
            RoleStatement::Drop { roles, if_exists } => self.drop_roles(&mut state, roles, *if_exists)?,
            RoleStatement::Members { group, members, add } => {
                let group = self.role_number(&state, group)?;
                self.require_creates_roles(&state, group, "permission denied")?;
                for member in members {
                    let member = self.role_number(&state, member)?;
                    match add {
                        true => self.add_member(&mut state, group, member, false, None)?,
                        false => self.remove_member(&mut state, group, member, false)?,
                    }
                }
            }
            RoleStatement::Grant {
                roles,
                members,
                is_grant,
                admin_option,
                grantor,
            } => {
                let grantor = grantor
                    .as_ref()
                    .map(|role| self.role_number(&state, role))
                    .transpose()?;
                for name in roles {
                    let role = self.role_number(&state, &Owner::Named(name.clone()))?;
                    for member in members {
                        let member = self.role_number(&state, member)?;
                        match is_grant {
                            true => self.add_member(&mut state, role, member, *admin_option, grantor)?,
                            false => self.remove_member(&mut state, role, member, *admin_option)?,
                        }
                    }
                }
            }
        }
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn acts(&self) -> u32 {
        self.execution.identity.current
    }

    /// True if the role that acts may make roles.
    fn creates_roles(&self, state: &CatalogState) -> bool {
        let entry = state.roles().get(self.acts());
        self.execution.identity.is_superuser || entry.is_some_and(|entry| entry.role.create_roles)
    }

    /// 42501 unless the role that acts may change `role`: superusers are changed by superusers alone.
    fn require_creates_roles(&self, state: &CatalogState, role: u32, message: &str) -> Result<()> {
        if state.roles().is_superuser(role) && !self.execution.identity.is_superuser {
            return Err(denied("must be superuser to alter superusers"));
        }
        match self.creates_roles(state) {
            true => Ok(()),
            false => Err(denied(message)),
        }
    }

    fn create_role(&mut self, state: &mut CatalogState, name: &str, options: &RoleOptions) -> Result<()> {
        if !self.execution.identity.is_superuser {
            let asked = [
                (options.superuser, "must be superuser to create superusers"),
                (
                    options.replication,
                    "must be superuser to create replication users",
                ),
                (
                    options.bypass_row_security,
                    "must be superuser to create bypassrls users",
                ),
            ];
            if let Some((_, message)) = asked.iter().find(|(option, _)| *option == Some(true)) {
                return Err(denied(*message));
            }
            if !self.creates_roles(state) {
                return Err(denied("permission denied to create role"));
            }
        }
        check_role_name(name)?;
        if state.roles().named(name).is_some() {
            return Err(already_exists(name));
        }
        let mut role = Role::new(self.fresh_number()?, name);
        self.apply_options(&mut role, options)?;
        let oid = role.oid;
        self.put_role(state, role)?;
        for group in options.in_roles.iter().flatten() {
            let group = self.role_number(state, group)?;
            self.add_member(state, group, oid, false, None)?;
        }
        let admins = options.admins.iter().flatten().map(|role| (role, true));
        for (member, admin) in options
            .members
            .iter()
            .flatten()
            .map(|role| (role, false))
            .chain(admins)
        {
            let member = self.role_number(state, member)?;
            self.put_member(state, oid, member, admin, None)?;
        }
        Ok(())
    }

    fn alter_role(&mut self, state: &mut CatalogState, role: &Owner, options: &RoleOptions) -> Result<()> {
        let oid = self.role_number(state, role)?;
        let mut role = known(state, oid)?;
        if !self.execution.identity.is_superuser {
            if role.superuser || options.superuser.is_some() {
                return Err(denied(
                    "must be superuser to alter superuser roles or change superuser attribute",
                ));
            }
            if role.replication || options.replication.is_some() {
                return Err(denied(
                    "must be superuser to alter replication roles or change replication attribute",
                ));
            }
            if options.bypass_row_security.is_some() {
                return Err(denied("must be superuser to change bypassrls attribute"));
            }
            let password_alone = RoleOptions {
                password: options.password.clone(),
                ..RoleOptions::default()
            };
            let is_own = options.password.is_some() && *options == password_alone && oid == self.acts();
            if !self.creates_roles(state) && !is_own {
                return Err(denied("permission denied"));
            }
        }
        if oid == USER_OID && options.superuser == Some(false) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "permission denied: bootstrap user must be superuser",
            ));
        }
        if oid < crate::catalog::FIRST_OID && oid != USER_OID {
            check_role_name(&role.name)?;
        }
        self.apply_options(&mut role, options)?;
        self.put_role(state, role)?;
        for member in options.members.iter().flatten() {
            let member = self.role_number(state, member)?;
            self.add_member(state, oid, member, false, None)?;
        }
        Ok(())
    }

    fn apply_options(&mut self, role: &mut Role, options: &RoleOptions) -> Result<()> {
        let flags = [
            (&mut role.superuser, options.superuser),
            (&mut role.inherit, options.inherit),
            (&mut role.create_roles, options.create_roles),
            (&mut role.create_databases, options.create_databases),
            (&mut role.login, options.login),
            (&mut role.replication, options.replication),
            (&mut role.bypass_row_security, options.bypass_row_security),
        ];
        for (flag, option) in flags {
            *flag = option.unwrap_or(*flag);
        }
        if let Some(limit) = options.connection_limit {
            if limit < -1 {
                return Err(EngineError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid connection limit: {limit}"),
                ));
            }
            role.connection_limit = limit;
        }
        if let Some(until) = &options.valid_until {
            let now = self.execution.eval.session.transaction_timestamp();
            role.valid_until = Some(parse_timestamp(until, true, now)?);
        }
        if let Some(password) = &options.password {
            role.password = match password {
                None => None,
                Some(password) => self.verifier(password)?,
            };
        }
        Ok(())
    }

    /// The verifier that is kept of a password.
    fn verifier(&mut self, Secret(password): &Secret) -> Result<Option<Verifier>> {
        let setting = self.execution.eval.session.setting("scram_iterations");
        let iterations = setting.and_then(|text| text.parse().ok());
        let kept = password::to_keep(password, iterations.unwrap_or(password::ITERATIONS))?;
        if kept.is_none() {
            let text = "empty string is not a valid password, clearing password".to_owned();
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
        }
        Ok(kept.map(|verifier| Verifier(verifier.to_string())))
    }

    fn rename_role(&mut self, state: &mut CatalogState, name: &str, to: &str) -> Result<()> {
        let oid = self.role_number(state, &Owner::Named(name.to_owned()))?;
        let mut role = known(state, oid)?;
        let identity = self.execution.identity;
        for (own, what) in [(identity.session, "session"), (identity.current, "current")] {
            if own == oid {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("{what} user cannot be renamed"),
                ));
            }
        }
        check_role_name(name)?;
        check_role_name(to)?;
        if state.roles().named(to).is_some() {
            return Err(already_exists(to));
        }
        if role.superuser && !identity.is_superuser {
            return Err(denied("must be superuser to rename superusers"));
        }
        if !self.creates_roles(state) {
            return Err(denied("permission denied to rename role"));
        }
        to.clone_into(&mut role.name);
        self.put_role(state, role)
    }

    /// 3D000 for another database than the one there is.
    fn require_own_database(&self, database: Option<&str>) -> Result<()> {
        match database {
            Some(name) if name != self.execution.eval.session.database() => Err(EngineError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{name}\" does not exist"),
            )),
            _ => Ok(()),
        }
    }

    fn set_for_role(
        &mut self,
        state: &mut CatalogState,
        role: Option<&Owner>,
        name: Option<&str>,
        value: Option<String>,
    ) -> Result<()> {
        let Some(role) = role else {
            return Err(EngineError::not_supported("ALTER ROLE ALL SET"));
        };
        let oid = self.role_number(state, role)?;
        if oid != self.acts() || state.roles().is_superuser(oid) {
            self.require_creates_roles(state, oid, "permission denied")?;
        }
        let mut role = known(state, oid)?;
        match (name, value) {
            (None, _) => role.settings.clear(),
            (Some(name), value) => {
                let name = name.to_ascii_lowercase();
                if let Some(value) = &value {
                    self.execution.check_setting(&name, value)?;
                }
                match (role.settings.iter_mut().find(|(known, _)| *known == name), value) {
                    (Some(known), Some(value)) => known.1 = value,
                    (None, Some(value)) => role.settings.push((name, value)),
                    (_, None) => role.settings.retain(|(known, _)| *known != name),
                }
            }
        }
        self.put_role(state, role)
    }

    fn drop_roles(&mut self, state: &mut CatalogState, roles: &[Owner], if_exists: bool) -> Result<()> {
        if !self.creates_roles(state) {
            return Err(denied("permission denied to drop role"));
        }
        let mut dropped = Vec::new();
        for role in roles {
            let Owner::Named(name) = role else {
                return Err(EngineError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "cannot use special role specifier in DROP ROLE",
                ));
            };
            let Some(oid) = state.role_number(name, self.execution.login) else {
                if !if_exists {
                    return Err(no_role(name));
                }
                let text = format!("role \"{name}\" does not exist, skipping");
                self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                continue;
            };
            self.require_droppable(state, oid, name)?;
            if !dropped.contains(&oid) {
                dropped.push(oid);
            }
        }
        for oid in dropped {
            self.drop_role(state, oid)?;
        }
        Ok(())
    }

    fn require_droppable(&self, state: &CatalogState, oid: u32, name: &str) -> Result<()> {
        let identity = self.execution.identity;
        let in_use = |what: &str| {
            let message = format!("{what} user cannot be dropped");
            Err(EngineError::new(SqlState::from_code("55006"), message))
        };
        if oid == identity.current {
            return in_use("current");
        }
        if oid == identity.authenticated || oid == identity.session {
            return in_use("session");
        }
        if state.roles().is_superuser(oid) && !identity.is_superuser {
            return Err(denied("must be superuser to drop superusers"));
        }
        if oid < crate::catalog::FIRST_OID {
            return Err(EngineError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop role {name} because it is required by the database system"),
            ));
        }
        Ok(())
    }

    fn drop_role(&mut self, state: &mut CatalogState, oid: u32) -> Result<()> {
        let name = self.name_of_role(state, oid);
        let uses = self.uses_of_role(state, oid);
        if !uses.is_empty() {
            let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
            return Err(EngineError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_detail(uses.join("\n")));
        }
        let memberships: Vec<Membership> = state.roles().memberships().copied().collect();
        for membership in memberships {
            if membership.pair.0 == oid || membership.pair.1 == oid {
                self.delete_member(state, membership.pair)?;
            }
        }
        self.remove_comments(state, &[ObjectAddress::new(ObjectAddress::PG_AUTHID, oid)])?;
        if let Some(tid) = state.roles().get(oid).and_then(|entry| entry.tid) {
            self.delete_catalog_row(tid, &name)?;
        }
        state.remove_role(oid);
        Ok(())
    }

    /// The objects that a role owns or has privileges on, a line each.
    fn uses_of_role(&self, state: &CatalogState, oid: u32) -> Vec<String> {
        let mut uses = Vec::new();
        for (key, acl) in state.all_default_acls() {
            let kind = match key.kind {
                'S' => "sequences",
                'n' => "schemas",
                _ => "relations",
            };
            let maker = self.name_of_role(state, key.role);
            let of = format!("default privileges on new {kind} belonging to role {maker}");
            if key.role == oid {
                uses.push(format!("owner of {of}"));
            } else if acl.iter().any(|item| item.0 == oid) {
                uses.push(format!("privileges for {of}"));
            }
        }
        let mut look = |what: String, access: &crate::catalog::access::Access| {
            if access.owner == oid {
                uses.push(format!("owner of {what}"));
            }
            let lists = access.acl.iter().chain(access.columns.values());
            let is_named = |item: &crate::catalog::access::AclItem| item.0 == oid || item.1 == oid;
            if access.owner != oid && lists.flatten().any(is_named) {
                uses.push(format!("privileges for {what}"));
            }
        };
        let database = self.execution.eval.session.database();
        look(format!("database {database}"), &state.database_access());
        for entry in state.schema_entries() {
            look(format!("schema {}", entry.schema.name), &entry.access);
        }
        for found in state.user_types() {
            let access = crate::catalog::access::Access::of(found.owner);
            look(format!("type {}", found.data_type()), &access);
        }
        for entry in state.all_relations() {
            let kind = crate::definition::owner::kind_of(&entry);
            look(format!("{kind} {}", entry.def.name), &entry.access);
        }
        uses
    }

    fn add_member(
        &mut self,
        state: &mut CatalogState,
        role: u32,
        member: u32,
        admin: bool,
        grantor: Option<u32>,
    ) -> Result<()> {
        self.require_admin(state, role)?;
        if grantor.is_some_and(|grantor| grantor != self.acts()) && !self.execution.identity.is_superuser {
            return Err(denied("must be superuser to set grantor"));
        }
        self.put_member(state, role, member, admin, grantor)
    }

    /// 42501 unless the role that acts may say who is a member of `role`.
    fn require_admin(&self, state: &CatalogState, role: u32) -> Result<()> {
        if state.roles().is_superuser(role) {
            return match self.execution.identity.is_superuser {
                true => Ok(()),
                false => Err(denied("must be superuser to alter superusers")),
            };
        }
        if self.creates_roles(state) || state.is_admin_of(self.acts(), role) {
            return Ok(());
        }
        let name = self.name_of_role(state, role);
        Err(denied(format!("must have admin option on role \"{name}\"")))
    }

    fn put_member(
        &mut self,
        state: &mut CatalogState,
        role: u32,
        member: u32,
        admin: bool,
        grantor: Option<u32>,
    ) -> Result<()> {
        let (role_name, member_name) = (self.name_of_role(state, role), self.name_of_role(state, member));
        let wrong = |message: String| Err(EngineError::new(SqlState::from_code("0LP01"), message));
        if role == DATABASE_OWNER {
            return wrong(format!("role \"{role_name}\" cannot have explicit members"));
        }
        if member == DATABASE_OWNER {
            return wrong(format!("role \"{member_name}\" cannot be a member of any role"));
        }
        if state.is_explicit_member(role, member) {
            return wrong(format!(
                "role \"{role_name}\" is a member of role \"{member_name}\""
            ));
        }
        let before = state.roles().membership(role, member).cloned();
        if before
            .as_ref()
            .is_some_and(|entry| entry.membership.admin || !admin)
        {
            let text = format!("role \"{member_name}\" is already a member of role \"{role_name}\"");
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        }
        let membership = Membership {
            pair: (role, member),
            grantor: grantor.unwrap_or(self.acts()),
            admin,
        };
        self.write_member(state, membership, before.and_then(|entry| entry.tid))
    }

    fn remove_member(
        &mut self,
        state: &mut CatalogState,
        role: u32,
        member: u32,
        admin_option_alone: bool,
    ) -> Result<()> {
        self.require_admin(state, role)?;
        let Some(entry) = state.roles().membership(role, member).cloned() else {
            let (role, member) = (self.name_of_role(state, role), self.name_of_role(state, member));
            self.outcome.notices.push(Notice::warning(
                SqlState::SUCCESS,
                format!("role \"{member}\" is not a member of role \"{role}\""),
            ));
            return Ok(());
        };
        if !admin_option_alone {
            return self.delete_member(state, (role, member));
        }
        let membership = Membership {
            admin: false,
            ..entry.membership
        };
        self.write_member(state, membership, entry.tid)
    }

    fn write_member(
        &mut self,
        state: &mut CatalogState,
        membership: Membership,
        before: Option<Tid>,
    ) -> Result<()> {
        let bytes = stored_roles::encode_membership(&membership)?;
        let tid = Some(self.write_catalog_row(before, &bytes, "a membership")?);
        state.put_membership(MembershipEntry { membership, tid });
        Ok(())
    }

    fn delete_member(&mut self, state: &mut CatalogState, pair: (u32, u32)) -> Result<()> {
        let entry = state.roles().membership(pair.0, pair.1);
        if let Some(tid) = entry.and_then(|entry| entry.tid) {
            self.delete_catalog_row(tid, "a membership")?;
        }
        state.remove_membership(pair);
        Ok(())
    }

    fn put_role(&mut self, state: &mut CatalogState, role: Role) -> Result<()> {
        let before = state.roles().get(role.oid).and_then(|entry| entry.tid);
        let bytes = stored_roles::encode_role(&role)?;
        let tid = Some(self.write_catalog_row(before, &bytes, &role.name)?);
        state.put_role(RoleEntry { role, tid });
        Ok(())
    }

    /// Writes a row of the catalog, in the place of the one that was; its place.
    pub(super) fn write_catalog_row(&mut self, before: Option<Tid>, bytes: &[u8], name: &str) -> Result<Tid> {
        let context = self.execution.txn.context();
        let heap = Heap::new(CATALOG_REL);
        let tid = match before {
            None => heap.insert(&context, bytes).map_err(storage_error)?,
            Some(tid) => match heap.update(&context, tid, bytes, false).map_err(storage_error)? {
                UpdateOutcome::Updated { tid, .. } => tid,
                _ => return Err(raced(name)),
            },
        };
        // A later step of the same statement may change the row again.
        self.execution.txn.next_command();
        Ok(tid)
    }

    pub(super) fn delete_catalog_row(&mut self, tid: Tid, name: &str) -> Result<()> {
        let context = self.execution.txn.context();
        match Heap::new(CATALOG_REL)
            .delete(&context, tid)
            .map_err(storage_error)?
        {
            DeleteOutcome::Deleted => Ok(()),
            _ => Err(raced(name)),
        }
    }
}

fn known(state: &CatalogState, oid: u32) -> Result<Role> {
    let entry = state.roles().get(oid);
    entry
        .map(|entry| entry.role.clone())
        .ok_or_else(|| no_role(&oid.to_string()))
}

fn already_exists(name: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code("42710"),
        format!("role \"{name}\" already exists"),
    )
}

/// 42939 for a name that is kept for the system.
fn check_role_name(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::from_code("42939"),
        format!("role name \"{name}\" is reserved"),
    )
    .with_detail("Role names starting with \"pg_\" are reserved."))
}
