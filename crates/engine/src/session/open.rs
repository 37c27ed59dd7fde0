//! A session begins: its settings, its place among the open ones.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::activity::{BackendType, SessionInfo};
use crate::engine::Engine;
use crate::interrupt::Interrupts;
use crate::session::Session;
use crate::settings::Settings;
use crate::spill::SpillOptions;
use clearway_sql::error::{EngineError, Result, SqlState};

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
            info,
        ))
    }

    /// The settings that a session starts with: the configuration's, then those the client asks for.
    pub(super) fn settings_of(&self, info: &SessionInfo) -> Result<Settings> {
        let mut settings = Settings::new();
        let config = &self.in_force().config;
        settings.set_default("synchronous_commit", config.synchronous_commit.name())?;
        settings.set_default("synchronous_standby_names", &config.synchronous_standby_names)?;
        settings.set_default("max_connections", &config.max_connections.to_string())?;
        if let Ok(directory) = std::fs::metadata(self.storage().dir()) {
            settings.set_default(
                "data_directory_mode",
                &format!("{:04o}", directory.mode() & 0o777),
            )?;
        }
        let deadlock_timeout = config.deadlock_timeout.duration().as_millis();
        let deadlock_timeout = deadlock_timeout.clamp(1, i32::MAX as u128);
        settings.set_default("deadlock_timeout", &deadlock_timeout.to_string())?;
        if self.is_standby() {
            settings.set_default("in_hot_standby", "on")?;
        }
        settings.set_default("work_mem", &format!("{}kB", config.work_mem.bytes() >> 10))?;
        if !info.user.is_empty() {
            settings.set_default("session_authorization", &info.user)?;
        }
        for (name, value) in &info.settings {
            settings.set_default(name, value)?;
        }
        Ok(settings)
    }
}
