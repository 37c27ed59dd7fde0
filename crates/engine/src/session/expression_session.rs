//! Facts that an expression can ask of its session.

use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clearway_storage::heap::{Heap, Tid};
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::segment_name::segment_name_in;
use clearway_storage::{RelId, SeenCommits};

use crate::activity::{ActivitySlot, SessionInfo};
use crate::catalog::CatalogState;
use crate::catalog::access::denied;
use crate::catalog::role::SIGNAL_BACKEND;
use crate::clock;
use crate::convert::storage_error;
use crate::engine::Engine;
use crate::identity::Identity;
use crate::interrupt::Interrupts;
use crate::lock_wait::LockWaiter;
use crate::output::Notice;
use crate::session::advisory_locks::AdvisoryLocks;
use crate::session::cursors::Cursors;
use crate::session::notifications::Channels;
use crate::session::sequence_locks::SequenceLocks;
use crate::session::serial_values::SerialValues;
use crate::settings::Settings;
use crate::transaction::{PendingNotifications, xid_of};
use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_sql::catalog_facts::CatalogFacts;
use clearway_sql::context::{AdvisoryLock, CountsToReset, LogPosition, RowVersion};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::{DATABASE_OID, USER_OID};
use clearway_sql::plan::IsolationLevel;
use clearway_sql::{SessionFacts, TableKind};
use clearway_txn::ProcId;

/// The session behind an evaluation.
pub(crate) struct Facts<'a> {
    pub(super) engine: &'a Engine,
    pub(super) settings: &'a Settings,
    pub(super) slot: &'a ActivitySlot,
    pub(super) info: &'a SessionInfo,
    pub(super) identity: &'a Identity,
    transaction_us: i64,
    overlay: Option<Arc<CatalogState>>,
    random: &'a Cell<u64>,
    pub(super) interrupts: &'a Interrupts,
    pub(super) seen: &'a SeenCommits,
    /// Settings changed by functions of the statement; they are applied at its end.
    changed: &'a RefCell<Vec<ChangedSetting>>,
    pub(super) serial_values: &'a RefCell<SerialValues>,
    cursors: &'a Cursors,
    pending: &'a RefCell<PendingNotifications>,
    channels: &'a Channels,
    pub(super) locks: SessionLocks<'a>,
    isolation: IsolationLevel,
    pub(super) read_only: bool,
}

/// The parts of a session that functions about locks and other sessions need.
pub(crate) struct SessionLocks<'a> {
    pub(super) proc: ProcId,
    pub(super) advisory: &'a RefCell<AdvisoryLocks>,
    pub(super) sequences: &'a RefCell<SequenceLocks>,
    pub(super) warnings: &'a RefCell<Vec<Notice>>,
}

/// A setting that `set_config` changes.
#[derive(Debug)]
pub(crate) struct ChangedSetting {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) local: bool,
}

/// A sleeping statement looks this often whether to stop.
const SLEEP_STEP: Duration = Duration::from_millis(20);

impl<'a> Facts<'a> {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one session, each borrowed by itself"
    )]
    pub(crate) fn new(
        engine: &'a Engine,
        settings: &'a Settings,
        slot: &'a ActivitySlot,
        (info, identity): (&'a SessionInfo, &'a Identity),
        transaction_us: i64,
        overlay: Option<Arc<CatalogState>>,
        random: &'a Cell<u64>,
        interrupts: &'a Interrupts,
        seen: &'a SeenCommits,
        changed: &'a RefCell<Vec<ChangedSetting>>,
        serial_values: &'a RefCell<SerialValues>,
        cursors: &'a Cursors,
        (pending, channels): (&'a RefCell<PendingNotifications>, &'a Channels),
        locks: SessionLocks<'a>,
        (isolation, read_only): (IsolationLevel, bool),
    ) -> Facts<'a> {
        Facts {
            engine,
            settings,
            slot,
            info,
            identity,
            transaction_us,
            overlay,
            random,
            interrupts,
            seen,
            changed,
            serial_values,
            cursors,
            pending,
            channels,
            locks,
            isolation,
            read_only,
        }
    }

    /// 42501 for a function of the administrator's.
    fn require_superuser(&self, function: &str) -> Result<()> {
        match self.identity.is_superuser {
            true => Ok(()),
            false => Err(denied(format!("permission denied for function {function}"))),
        }
    }

    /// Notes a warning for the client.
    fn warn(&self, message: String) {
        let warning = Notice::warning(SqlState::from_code("01000"), message);
        self.locks.warnings.borrow_mut().push(warning);
    }

    /// Ends the statement of a session, or the session; false, and a warning, if there is none. 42501 for a session of a
    /// role that this one is no member of.
    fn signal(&self, pid: i32, terminate: bool) -> Result<bool> {
        let Some(user) = self.engine.user_of(pid.cast_unsigned()) else {
            self.warn(format!("PID {pid} is not a PostgreSQL backend process"));
            return Ok(false);
        };
        let state = self.definitions();
        let role = state.role_number(&user, &user).unwrap_or(USER_OID);
        let current = self.identity.current;
        let is_allowed = [role, SIGNAL_BACKEND]
            .into_iter()
            .any(|role| state.has_privileges_of(current, role));
        let (verb, done, what) = match terminate {
            true => ("terminate", "terminated", "process"),
            false => ("cancel", "canceled", "query"),
        };
        if state.roles().is_superuser(role) && !self.identity.is_superuser {
            return Err(denied(format!("must be a superuser to {verb} superuser {what}")));
        }
        if !is_allowed {
            return Err(denied(format!(
                "must be a member of the role whose {what} is being {done} or member of pg_signal_backend"
            )));
        }
        Ok(self.engine.signal(pid.cast_unsigned(), terminate))
    }

    /// The session as it waits for a lock that a function asks for.
    fn lock_waiter(&self) -> LockWaiter<'_> {
        LockWaiter {
            manager: &self.engine.storage.locks,
            sessions: &self.engine.sessions,
            proc: self.locks.proc,
            circle: None,
            log_after: self
                .settings
                .log_lock_waits
                .then_some(self.settings.deadlock_timeout),
        }
    }

    /// Locks a sequence against changes of its definition, to the transaction's end.
    pub(super) fn lock_sequence(&self, sequence: u32) -> Result<()> {
        let mut locks = self.locks.sequences.borrow_mut();
        locks.lock(
            sequence,
            &self.lock_waiter(),
            self.interrupts,
            self.settings.lock_timeout,
        )
    }

    /// The definitions that the session sees: with those of its own transaction.
    pub(super) fn definitions(&self) -> Arc<CatalogState> {
        match &self.overlay {
            Some(overlay) => Arc::clone(overlay),
            None => self.engine.catalog.state(),
        }
    }
}

impl SessionFacts for Facts<'_> {
    fn transaction_timestamp(&self) -> i64 {
        if self.transaction_us == 0 {
            clock::now_us()
        } else {
            self.transaction_us
        }
    }

    fn statement_timestamp(&self) -> i64 {
        self.slot.statement_start_us()
    }

    fn cursor_place(&self, cursor: &str, table: u32, name: &str) -> Result<Option<(u32, u16)>> {
        let place = self.cursors.place(cursor, (table, name))?;
        Ok(place.map(|tid| (tid.block, tid.slot)))
    }

    fn row_version(&self, table: u32, (block, slot): (u32, u16)) -> Result<Option<RowVersion>> {
        let Some(table) = self.definitions().table_numbered(table) else {
            return Ok(None);
        };
        let TableKind::Heap { rel } = table.kind else {
            return Ok(None);
        };
        let header = Heap::new(rel).header(&self.engine.storage, Tid { block, slot });
        Ok(header.map_err(storage_error)?.map(|header| RowVersion {
            xmin: header.xmin.0,
            xmax: header.xmax.0,
            cmin: header.cmin,
            cmax: header.cmax,
        }))
    }

    fn backend_pid(&self) -> i32 {
        self.slot.process_id as i32
    }

    fn transaction_id(&self) -> Option<u64> {
        self.slot.transaction_id().map(|xid| xid.0)
    }

    /// 0A000 where no transaction has begun: in an argument of EXECUTE.
    fn assigned_transaction_id(&self) -> Result<u64> {
        if self.slot.transaction().is_none() {
            return Err(EngineError::not_supported(
                "txid_current() outside of a transaction",
            ));
        }
        let storage = &self.engine.storage;
        xid_of(storage, self.locks.proc, self.slot).map(|xid| xid.0)
    }

    fn database(&self) -> &str {
        &self.info.database
    }

    fn user(&self) -> &str {
        &self.identity.user
    }

    fn session_user(&self) -> &str {
        &self.identity.session_user
    }

    fn setting(&self, name: &str) -> Option<String> {
        match name {
            "transaction_isolation" => return Some(self.isolation.name().to_owned()),
            "transaction_read_only" => return Some(if self.read_only { "on" } else { "off" }.to_owned()),
            _ => {}
        }
        let changed = self.changed.borrow();
        match changed.iter().rev().find(|changed| changed.name == name) {
            Some(changed) => self.settings.would_show(name, changed.value.as_deref()).ok(),
            None => self
                .settings
                .show(name)
                .ok()
                .or_else(|| self.engine.configured(name, self.identity.current)),
        }
    }

    fn check_interrupts(&self) -> Result<()> {
        self.interrupts.check()
    }

    fn sleep(&self, duration: Duration) -> Result<()> {
        let end = Instant::now() + duration;
        let _waiting = WaitScope::<Native>::enter(WaitEvent::PgSleep);
        loop {
            self.interrupts.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLEEP_STEP));
        }
    }

    fn set_setting(&self, name: &str, value: Option<&str>, local: bool) -> Result<String> {
        let name = name.to_ascii_lowercase();
        let shown = self.settings.would_show(&name, value)?;
        self.changed.borrow_mut().push(ChangedSetting {
            name,
            value: value.map(str::to_owned),
            local,
        });
        Ok(shown)
    }

    fn log_position(&self, which: LogPosition) -> Option<u64> {
        let storage = &self.engine.storage;
        let standby = storage.standby().map(|standby| standby.progress());
        let position = match which {
            LogPosition::Inserted => Some(storage.wal.reserved()),
            LogPosition::Flushed => Some(storage.wal.flushed()),
            LogPosition::Received => standby.map(|progress| progress.received),
            LogPosition::Replayed => standby.map(|progress| progress.replayed),
        };
        position.map(|position| position.0)
    }

    fn is_in_recovery(&self) -> bool {
        self.engine.is_standby()
    }

    fn last_replayed_commit(&self) -> Option<i64> {
        self.engine.storage.standby()?.replayed_commit_time_us()
    }

    fn promote(&self, patience: Option<Duration>) -> Result<bool> {
        self.require_superuser("pg_promote")?;
        self.engine.request_promotion(patience, self.interrupts)
    }

    fn pause_replay(&self, pauses: bool) -> Result<()> {
        let function = if pauses {
            "pg_wal_replay_pause"
        } else {
            "pg_wal_replay_resume"
        };
        self.require_superuser(function)?;
        let standby = self.engine.replaying()?;
        if pauses {
            standby.pause_replay();
        } else {
            standby.resume_replay();
        }
        Ok(())
    }

    fn replay_pause(&self) -> Result<&'static str> {
        Ok(self.engine.replaying()?.replay_pause().name())
    }

    fn switch_log_file(&self) -> Result<u64> {
        self.require_superuser("pg_switch_wal")?;
        let next = self.engine.storage.switch_log_file();
        next.map(|next| next.0).map_err(storage_error)
    }

    fn log_file(&self, position: u64) -> Result<String> {
        let number = position.saturating_sub(1) / SEGMENT_SIZE;
        Ok(segment_name_in(&self.engine.storage.history(), number))
    }

    fn reload_configuration(&self) -> Result<bool> {
        self.require_superuser("pg_reload_conf")?;
        Ok(self.engine.request_reload())
    }

    fn reset_counts(&self, of: CountsToReset<'_>) -> Result<()> {
        match of {
            CountsToReset::Database => {
                self.require_superuser("pg_stat_reset")?;
                self.engine.reset_database_counts();
            }
            CountsToReset::Relation(oid) => {
                self.require_superuser("pg_stat_reset_single_table_counters")?;
                if let Some(table) = self.engine.catalog.state().table(oid) {
                    table.runtime.reset_counts();
                    for rel in table.relations() {
                        self.engine.storage.reset_pages_read(Some(RelId(rel)));
                    }
                }
            }
            CountsToReset::Server(target) => {
                self.require_superuser("pg_stat_reset_shared")?;
                self.engine.reset_shared_counts(target)?;
            }
        }
        Ok(())
    }

    fn reset_statements(&self, role: u32, database: u32, number: i64) -> Result<()> {
        self.require_superuser("pg_stat_statements_reset")?;
        if database == 0 || database == DATABASE_OID {
            let given = (role != 0).then_some(role);
            self.engine
                .statements
                .reset(given, (number != 0).then_some(number));
        }
        Ok(())
    }

    fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        if self.engine.is_standby() {
            return Err(EngineError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                "cannot execute NOTIFY during recovery",
            ));
        }
        self.pending.borrow_mut().notify(channel, payload)
    }

    fn listening_channels(&self) -> Vec<String> {
        self.channels.names()
    }

    fn notification_queue_usage(&self) -> f64 {
        self.engine.notifications.usage()
    }

    fn lock_advisory(&self, lock: AdvisoryLock, for_transaction: bool, wait: bool) -> Result<bool> {
        let waiter = self.lock_waiter();
        let wait = wait.then_some((self.interrupts, self.settings.lock_timeout));
        let mut advisory = self.locks.advisory.borrow_mut();
        advisory.lock(&waiter, lock, for_transaction, wait)
    }

    fn unlock_advisory(&self, lock: AdvisoryLock) -> Result<bool> {
        let locks = &self.engine.storage.locks;
        let unlocked = self
            .locks
            .advisory
            .borrow_mut()
            .unlock(locks, self.locks.proc, lock);
        if let Err(mode) = unlocked {
            self.warn(format!("you don't own a lock of type {mode}"));
        }
        Ok(unlocked.is_ok())
    }

    fn unlock_all_advisory(&self) {
        let locks = &self.engine.storage.locks;
        self.locks
            .advisory
            .borrow_mut()
            .unlock_all(locks, self.locks.proc);
    }

    fn blocking_pids(&self, pid: i32) -> Vec<i32> {
        self.engine.blocking_pids(pid.cast_unsigned())
    }

    fn safe_snapshot_blocking_pids(&self, pid: i32) -> Vec<i32> {
        self.engine.safe_snapshot_blocking_pids(pid.cast_unsigned())
    }

    fn cancel_backend(&self, pid: i32) -> Result<bool> {
        self.signal(pid, false)
    }

    fn terminate_backend(&self, pid: i32, patience: Option<Duration>) -> Result<bool> {
        if !self.signal(pid, true)? {
            return Ok(false);
        }
        let Some(patience) = patience else {
            return Ok(true);
        };
        let end = Instant::now() + patience;
        while self.engine.has_session(pid.cast_unsigned()) {
            self.check_interrupts()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let limit = patience.as_millis();
                self.warn(format!(
                    "backend with PID {pid} did not terminate within {limit} milliseconds"
                ));
                return Ok(false);
            }
            std::thread::sleep(left.min(SLEEP_STEP));
        }
        Ok(true)
    }

    fn next_serial(&self, sequence: u32) -> Result<i64> {
        self.next_of(sequence)
    }

    fn catalog(&self) -> Result<&dyn CatalogFacts> {
        Ok(self)
    }

    fn random_bytes(&self) -> Result<[u8; 16]> {
        // The kernel's generator, opened once.
        static SOURCE: OnceLock<Option<File>> = OnceLock::new();
        let mut bytes = [0; 16];
        let source = SOURCE.get_or_init(|| File::open("/dev/urandom").ok()).as_ref();
        match source.map(|mut source| source.read_exact(&mut bytes)) {
            Some(Ok(())) => Ok(bytes),
            _ => Err(EngineError::internal("could not generate random values")),
        }
    }

    fn random(&self) -> f64 {
        // xorshift64*: for tests and sampling, not for secrets.
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}
