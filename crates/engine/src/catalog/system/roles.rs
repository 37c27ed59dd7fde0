//! Roles, and the views over them.

use super::Sources;
use super::rows::{NULL, Rows, array, boolean, int4, oid, text, texts};
use crate::catalog::role::Role;
use clearway_sql::value::{DataType, Value};

/// The text that views show in place of a password.
const HIDDEN_PASSWORD: &str = "********";

fn all(sources: &Sources<'_>) -> Vec<Role> {
    let numbers = sources.role_numbers().into_iter();
    numbers.filter_map(|oid| sources.role(oid)).collect()
}

fn valid_until(role: &Role) -> Value {
    role.valid_until.map_or(NULL, Value::TimestampTz)
}

fn password(role: &Role) -> Value {
    role.password.as_ref().map_or(NULL, |verifier| text(&verifier.0))
}

fn config(role: &Role) -> Value {
    match role.settings.is_empty() {
        true => NULL,
        false => texts(
            role.settings
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        ),
    }
}

/// `pg_authid`
pub(super) fn roles(sources: &Sources<'_>, rows: &mut Rows) {
    for role in all(sources) {
        rows.push([
            ("oid", oid(role.oid)),
            ("rolname", text(&role.name)),
            ("rolsuper", boolean(role.superuser)),
            ("rolinherit", boolean(role.inherit)),
            ("rolcreaterole", boolean(role.create_roles)),
            ("rolcreatedb", boolean(role.create_databases)),
            ("rolcanlogin", boolean(role.login)),
            ("rolreplication", boolean(role.replication)),
            ("rolbypassrls", boolean(role.bypass_row_security)),
            ("rolconnlimit", int4(role.connection_limit)),
            ("rolpassword", password(&role)),
            ("rolvaliduntil", valid_until(&role)),
        ]);
    }
}

/// `pg_roles`
pub(super) fn roles_view(sources: &Sources<'_>, rows: &mut Rows) {
    for role in all(sources) {
        rows.push([
            ("rolname", text(&role.name)),
            ("rolsuper", boolean(role.superuser)),
            ("rolinherit", boolean(role.inherit)),
            ("rolcreaterole", boolean(role.create_roles)),
            ("rolcreatedb", boolean(role.create_databases)),
            ("rolcanlogin", boolean(role.login)),
            ("rolreplication", boolean(role.replication)),
            ("rolconnlimit", int4(role.connection_limit)),
            ("rolpassword", text(HIDDEN_PASSWORD)),
            ("rolvaliduntil", valid_until(&role)),
            ("rolbypassrls", boolean(role.bypass_row_security)),
            ("rolconfig", config(&role)),
            ("oid", oid(role.oid)),
        ]);
    }
}

/// `pg_user`, `pg_shadow`: the roles that may log in.
fn users_with(sources: &Sources<'_>, rows: &mut Rows, password: impl Fn(&Role) -> Value) {
    for role in all(sources).into_iter().filter(|role| role.login) {
        rows.push([
            ("usename", text(&role.name)),
            ("usesysid", oid(role.oid)),
            ("usecreatedb", boolean(role.create_databases)),
            ("usesuper", boolean(role.superuser)),
            ("userepl", boolean(role.replication)),
            ("usebypassrls", boolean(role.bypass_row_security)),
            ("passwd", password(&role)),
            ("valuntil", valid_until(&role)),
            ("useconfig", config(&role)),
        ]);
    }
}

/// `pg_user`
pub(super) fn users(sources: &Sources<'_>, rows: &mut Rows) {
    users_with(sources, rows, |_| text(HIDDEN_PASSWORD));
}

/// `pg_shadow`
pub(super) fn shadow(sources: &Sources<'_>, rows: &mut Rows) {
    users_with(sources, rows, password);
}

/// `pg_group`: the roles that may not log in, with their members.
pub(super) fn groups(sources: &Sources<'_>, rows: &mut Rows) {
    for role in all(sources).into_iter().filter(|role| !role.login) {
        let members = sources.catalog.roles().memberships();
        let members = members.filter(|membership| membership.pair.0 == role.oid);
        let members = members.map(|membership| oid(membership.pair.1));
        rows.push([
            ("groname", text(&role.name)),
            ("grosysid", oid(role.oid)),
            ("grolist", array(DataType::array_of(DataType::Oid), members)),
        ]);
    }
}

/// `pg_auth_members`
pub(super) fn members(sources: &Sources<'_>, rows: &mut Rows) {
    for membership in sources.catalog.roles().memberships() {
        rows.push([
            ("roleid", oid(membership.pair.0)),
            ("member", oid(membership.pair.1)),
            ("grantor", oid(membership.grantor)),
            ("admin_option", boolean(membership.admin)),
        ]);
    }
}

/// `pg_db_role_setting`
pub(super) fn settings(sources: &Sources<'_>, rows: &mut Rows) {
    for role in all(sources).into_iter().filter(|role| !role.settings.is_empty()) {
        rows.push([
            ("setdatabase", oid(0)),
            ("setrole", oid(role.oid)),
            ("setconfig", config(&role)),
        ]);
    }
}

/// `pg_default_acl`; a list has no number of its own, so its place among them stands for one.
pub(super) fn default_acls(sources: &Sources<'_>, rows: &mut Rows) {
    for (place, (key, acl)) in (1..).zip(sources.catalog.all_default_acls()) {
        rows.push([
            ("oid", oid(place)),
            ("defaclrole", oid(key.role)),
            ("defaclnamespace", oid(key.schema)),
            ("defaclobjtype", text(&key.kind.to_string())),
            ("defaclacl", sources.acl(Some(&acl))),
        ]);
    }
}
