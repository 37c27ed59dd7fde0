//! The roles of a session: the one that it logged in as, and the one whose privileges count now.
//!
//! | role | changed by | shown as |
//! | --- | --- | --- |
//! | authenticated | – | – |
//! | session | SET SESSION AUTHORIZATION | `session_user` |
//! | current | SET ROLE | `current_user` |
//!
//! Both changes are settings (`session_authorization`, `role`), so a rollback undoes them as it undoes any SET. The name in
//! the setting was looked up when it was set: a role that is renamed meanwhile stays the session's. The identity follows
//! from the settings and the catalog, and is made anew when either has moved (two numbers are compared).

use crate::catalog::CatalogState;
use crate::output::Output;
use crate::session::Session;
use crate::transaction::Phase;
use clearway_sql::error::{EngineError, Result, SqlState};

/// The setting that SET ROLE changes, and its value without a role.
const ROLE: &str = "role";
const NO_ROLE: &str = "none";
/// The setting that SET SESSION AUTHORIZATION changes.
const SESSION: &str = "session_authorization";

impl Session {
    /// Brings the identity up to date.
    #[inline]
    pub(super) fn refresh_identity(&mut self) {
        let now = (self.txn.catalog_version(), self.settings.identities);
        if self.identity.made_of != now {
            self.remake_identity(now);
        }
    }

    #[cold]
    fn remake_identity(&mut self, now: (u64, u64)) {
        let state = self.txn.catalog_state();
        let identity = &mut self.identity;
        let number = |name: &str| {
            let named = identity.named.iter().find(|(known, _)| known == name);
            named
                .map(|(_, oid)| *oid)
                .or_else(|| state.role_number(name, &self.info.user))
        };
        let set = |setting: &str| self.settings.changed_value(setting).and_then(number);
        let session = set(SESSION).unwrap_or(identity.authenticated);
        let role = self.settings.value(ROLE).filter(|role| *role != NO_ROLE);
        let current = role.and_then(number).unwrap_or(session);
        let name = |oid: u32| state.role_name(oid, &self.info.user).unwrap_or_default().into();
        (identity.session, identity.session_user) = (session, name(session));
        (identity.current, identity.user) = (current, name(current));
        identity.is_superuser = state.roles().is_superuser(current);
        identity.made_of = now;
        let shown = if identity.is_superuser { "on" } else { "off" };
        if self.settings.value("is_superuser") != Some(shown) {
            // A word that the setting takes.
            let _ = self.settings.set_default("is_superuser", shown);
            self.untold_settings.push("is_superuser");
        }
    }

    /// SET of `role` or `session_authorization`; false for another setting.
    pub(super) fn set_identity(
        &mut self,
        setting: &str,
        value: Option<&str>,
        local: bool,
        out: &mut dyn Output,
    ) -> Result<bool> {
        if setting != ROLE && setting != SESSION {
            return Ok(false);
        }
        self.refresh_identity();
        let state = self.txn.catalog_state();
        let value = value.filter(|value| setting != ROLE || *value != NO_ROLE);
        if let Some(name) = value {
            let oid = self.role_to_be(&state, setting, name)?;
            self.identity.named.retain(|(known, _)| known != name);
            self.identity.named.push((name.to_owned(), oid));
        }
        let in_transaction = self.txn.phase == Phase::Block;
        if setting == SESSION {
            // A new session's role has not set another one.
            self.settings.set(ROLE, None, local, in_transaction)?;
        }
        let value = match (setting, value) {
            (ROLE, None) => Some(NO_ROLE),
            (_, value) => value,
        };
        let is_reported = self.settings.set(setting, value, local, in_transaction)?;
        self.refresh_identity();
        if is_reported {
            self.report(setting, out)?;
        }
        for name in std::mem::take(&mut self.untold_settings) {
            self.report(name, out)?;
        }
        Ok(true)
    }

    /// The number of the role that the session is to be; 22023 if there is none, 42501 if it may not.
    fn role_to_be(&self, state: &CatalogState, setting: &str, name: &str) -> Result<u32> {
        let identity = &self.identity;
        let oid = state.role_number(name, &self.info.user).ok_or_else(|| {
            EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("role \"{name}\" does not exist"),
            )
        })?;
        let denied = |what: String| Err(EngineError::new(SqlState::from_code("42501"), what));
        match setting {
            ROLE if !state.is_member(identity.session, oid) => {
                denied(format!("permission denied to set role \"{name}\""))
            }
            SESSION
                if oid != identity.authenticated && !state.roles().is_superuser(identity.authenticated) =>
            {
                denied("permission denied to set session authorization".to_owned())
            }
            _ => Ok(oid),
        }
    }
}
