//! A session begins: its settings, its place among the open ones.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::activity::{BackendType, SessionInfo};
use crate::catalog::access::{CONNECT, Kind};
use crate::clock;
use crate::engine::Engine;
use crate::identity::Identity;
use crate::interrupt::Interrupts;
use crate::password::{self, ScramVerifier};
use crate::session::Session;
use crate::settings::{DefaultSource, Settings};
use crate::spill::SpillOptions;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::USER_OID;

impl Engine {
    /// Opens a session; 53300 when `max_connections` are open, 57P01 when the engine is shutting down, 3D000
    /// for another database than the configured one.
    pub fn session(self: &Arc<Self>, info: SessionInfo) -> Result<Session, EngineError> {
        self.session_of_type(BackendType::Client, info)
    }

    /// As [`session`](Self::session), of a kind.
    pub(crate) fn session_of_type(
        self: &Arc<Self>,
        backend_type: BackendType,
        mut info: SessionInfo,
    ) -> Result<Session> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(EngineError::new(
                SqlState::CANNOT_CONNECT_NOW,
                "the database system is shutting down",
            ));
        }
        if info.database.is_empty() {
            info.database.clone_from(&self.config.database);
        } else if info.database != self.config.database {
            return Err(EngineError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{}\" does not exist", info.database),
            )
            .with_hint(format!(
                "This server has one database, \"{}\". A client that names none asks for one that is called like its user.",
                self.config.database
            )));
        }
        let role = self.login_role(&info, backend_type)?;
        let user = match info.user.is_empty() {
            true => self
                .catalog
                .state()
                .role_name(role, "")
                .unwrap_or_default()
                .to_owned(),
            false => info.user.clone(),
        };
        let settings = self.settings_of(&info)?;
        let (slot, txn) = self.admit(
            &info,
            backend_type,
            settings.value("application_name").unwrap_or_default(),
        )?;
        let interrupts = Interrupts::new(Arc::clone(&slot), Arc::clone(&self.stopping));
        // A path of the session's own: sorts count its owners, and sessions share no counter.
        let spill = SpillOptions::new(Arc::from(&*self.temporary), settings.work_mem);
        Ok(Session::new(
            Arc::clone(self),
            slot,
            txn,
            interrupts,
            settings,
            spill,
            (info, Identity::new(role, &user)),
        ))
    }

    /// The verifier of a user's password; one that no proof fits if there is no such role, or it has no password, or one
    /// that has expired.
    pub fn verifier_of(&self, user: &str) -> Result<ScramVerifier, EngineError> {
        let state = self.catalog.state();
        let entry = state.roles().named(user);
        let valid = entry.filter(|entry| entry.role.valid_until.is_none_or(|until| until > clock::now_us()));
        let text = valid.and_then(|entry| entry.role.password.as_ref());
        match text.and_then(|verifier| ScramVerifier::parse(&verifier.0)) {
            Some(verifier) => Ok(verifier),
            None => ScramVerifier::that_fits_nothing(user, password::ITERATIONS),
        }
    }

    /// True if a user is a superuser.
    pub fn is_superuser(&self, user: &str) -> bool {
        let state = self.catalog.state();
        let number = state.role_number(user, user);
        number.is_some_and(|number| state.roles().is_superuser(number))
    }

    /// True if a user is a member of the role of this name.
    pub fn is_member(&self, user: &str, role: &str) -> bool {
        let state = self.catalog.state();
        let number = |name: &str| state.role_number(name, user);
        match (number(user), number(role)) {
            (Some(user), Some(role)) => user == role || state.is_explicit_member(user, role),
            _ => false,
        }
    }

    /// The role that a session logs in as: that of the client's name. A program that embeds the engine names none, and is
    /// the first superuser.
    fn login_role(&self, info: &SessionInfo, backend_type: BackendType) -> Result<u32> {
        if info.user.is_empty() || backend_type != BackendType::Client {
            return Ok(USER_OID);
        }
        let refused = |what: String| {
            Err(EngineError::new(
                SqlState::from_code("28000"),
                format!("role \"{}\" {what}", info.user),
            ))
        };
        let state = self.catalog.state();
        let Some(oid) = state.role_number(&info.user, &info.user) else {
            return refused("does not exist".to_owned());
        };
        let Some(entry) = state.roles().get(oid) else {
            return Ok(oid);
        };
        let role = &entry.role;
        if !role.login {
            return refused("is not permitted to log in".to_owned());
        }
        if !role.superuser {
            let limit = usize::try_from(role.connection_limit).unwrap_or(usize::MAX);
            if self.sessions_of(&info.user) >= limit {
                return Err(EngineError::new(
                    SqlState::TOO_MANY_CONNECTIONS,
                    format!("too many connections for role \"{}\"", info.user),
                ));
            }
            if !state.may(oid, Kind::Database, 0, CONNECT) {
                return Err(EngineError::new(
                    SqlState::from_code("42501"),
                    format!("permission denied for database \"{}\"", info.database),
                )
                .with_detail("User does not have CONNECT privilege."));
            }
        }
        Ok(oid)
    }

    /// The settings that a session starts with: the configuration's, then those the client asks for.
    pub(super) fn settings_of(&self, info: &SessionInfo) -> Result<Settings> {
        let mut settings = Settings::new();
        let config = &self.in_force().config;
        for (name, value) in config.values_of_settings() {
            let source = match config.origins.of(name) {
                Some(_) => DefaultSource::File,
                None => DefaultSource::None,
            };
            settings.set_default_from(source, name, &value)?;
        }
        for (name, value) in &config.settings.0 {
            settings.set_default_from(DefaultSource::File, name, &value.0)?;
        }
        /// Of a huge page.
        const HUGE_MEGABYTES: u64 = 2;
        let shared = config.shared_buffers.bytes().div_ceil(1 << 20);
        settings.set_default("shared_memory_size", &format!("{shared}MB"))?;
        let pages = shared.div_ceil(HUGE_MEGABYTES).to_string();
        settings.set_default("shared_memory_size_in_huge_pages", &pages)?;
        let ssl = if self.encrypts() { "on" } else { "off" };
        settings.set_default("ssl", ssl)?;
        if let Ok(directory) = std::fs::metadata(self.storage().dir()) {
            settings.set_default(
                "data_directory_mode",
                &format!("{:04o}", directory.mode() & 0o777),
            )?;
        }
        if self.is_standby() {
            settings.set_default("in_hot_standby", "on")?;
        }
        if !info.user.is_empty() {
            settings.set_default("session_authorization", &info.user)?;
        }
        let state = self.catalog.state();
        let role = state.roles().named(&info.user);
        for (name, value) in role.iter().flat_map(|entry| &entry.role.settings) {
            // It was right when it was set.
            let _ = settings.set_default_from(DefaultSource::Role, name, value);
        }
        let is_superuser = info.user.is_empty() || self.is_superuser(&info.user);
        for (name, value) in &info.settings {
            Settings::check_may_set(name, is_superuser)?;
            settings.set_default_from(DefaultSource::Client, name, value)?;
        }
        Ok(settings)
    }
}
