//! The configuration is read again while the server runs.
//!
//! Some keys change at run time ([`CHANGEABLE`](crate::config::CHANGEABLE)); the others are what they were when the engine was opened, and the
//! engine remembers which of them differ by now: they wait for a restart (`pg_settings.pending_restart`). A configuration
//! that cannot be read or does not pass its checks changes nothing.
//!
//! A session takes new values of settings that it has not set itself when its next call begins: it compares a count
//! with the one that it has seen.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::clock;
use crate::config::Config;
use crate::config::values::{FOR_SUPERUSERS, differing, values_of};
use crate::engine::Engine;
use crate::in_force::InForce;
use clearway_sql::error::EngineError;

/// The result of [`Engine::reload`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// The keys that have a new value.
    pub changed: Vec<String>,
    /// The keys whose new value is taken at the next start.
    pub pending_restart: Vec<String>,
}

/// Reads the configuration again and takes it; whether that was possible.
pub type ReloadHook = Arc<dyn Fn() -> bool + Send + Sync>;

/// A hook that the program sets once the engine is open.
#[derive(Default)]
pub(crate) struct Reload(std::sync::OnceLock<ReloadHook>);

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reload").field(&self.0.get().is_some()).finish()
    }
}

impl Engine {
    /// Takes what can change at run time from `config`. An error: it does not pass its checks, and nothing has changed.
    pub fn reload(&self, config: &Config) -> Result<Reloaded, EngineError> {
        config.check()?;
        let names = config.standby_names()?;
        let mut in_force = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
        let mut taken = in_force.config.clone();
        taken.autovacuum_analyze_scale_factor = config.autovacuum_analyze_scale_factor;
        taken.autovacuum_analyze_threshold = config.autovacuum_analyze_threshold;
        taken.autovacuum_vacuum_scale_factor = config.autovacuum_vacuum_scale_factor;
        taken.autovacuum_vacuum_threshold = config.autovacuum_vacuum_threshold;
        taken.synchronous_commit = config.synchronous_commit;
        taken
            .synchronous_standby_names
            .clone_from(&config.synchronous_standby_names);
        taken.work_mem = config.work_mem;
        taken.log_destination = config.log_destination;
        taken.log_line_prefix.clone_from(&config.log_line_prefix);
        taken.log_min_messages = config.log_min_messages;
        taken.log_connections = config.log_connections;
        taken.log_disconnections = config.log_disconnections;
        taken.log_checkpoints = config.log_checkpoints;
        taken.log_statement = config.log_statement;
        taken.log_min_duration_statement = config.log_min_duration_statement;
        taken.log_temp_files = config.log_temp_files;
        taken.log_lock_waits = config.log_lock_waits;
        taken.pg_stat_statements.track = config.pg_stat_statements.track;
        taken.settings.clone_from(&config.settings);
        taken.datestyle.clone_from(&config.datestyle);
        taken.timezone.clone_from(&config.timezone);
        taken.origins.clone_from(&config.origins);
        let reloaded = Reloaded {
            changed: differing(&in_force.config, &taken),
            pending_restart: differing(&taken, config),
        };
        if in_force.config.synchronous_standby_names != taken.synchronous_standby_names {
            self.storage.sync_replication.set_names(names);
        }
        *in_force = Arc::new(InForce {
            config: taken,
            pending_restart: reloaded.pending_restart.clone(),
            read_at_us: clock::now_us(),
        });
        // Release: pairs with the Acquire in `reloads`; a session that sees the count finds the configuration.
        self.reloads.fetch_add(1, Ordering::Release);
        Ok(reloaded)
    }

    /// The configuration in force.
    pub(crate) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if the server's log tells of connections that begin.
    pub fn logs_connections(&self) -> bool {
        self.in_force().config.log_connections
    }

    /// The value in force of a key of the configuration; `None` for one that the role may not see.
    pub(crate) fn configured(&self, name: &str, role: u32) -> Option<String> {
        if FOR_SUPERUSERS.contains(&name) && !self.catalog.state().sees_all_settings(role) {
            return None;
        }
        let values = values_of(&self.in_force().config);
        let found = values.into_iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value)
    }

    /// Number of times that the configuration was read again.
    #[inline]
    pub(crate) fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Acquire)
    }

    /// Sets the hook that reads the configuration again when a session calls `pg_reload_conf()`.
    pub fn set_reload(&self, hook: ReloadHook) {
        let _ = self.reload.0.set(hook);
    }

    /// True if a program has set what reads the configuration again.
    pub(crate) fn reads_configuration_again(&self) -> bool {
        self.reload.0.get().is_some()
    }

    /// Has the configuration read again; whether that was possible.
    pub(crate) fn request_reload(&self) -> bool {
        self.reload.0.get().is_some_and(|hook| hook())
    }
}
