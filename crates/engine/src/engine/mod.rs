//! The engine as a whole: opening and closing a data directory, the list of open sessions, cancelling, vacuum, and what
//! a standby does above its storage.
//!
//! A session is above the engine, which knows no more of it than its place among the open ones ([`Engine::admit`]).

mod alter_system;
mod definitions;
mod locks;
mod login_rules;
mod orphans;
pub(crate) mod reload;
mod standby;
mod statistics_reset;
mod vacuum;
mod wait_circle;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::{Duration, Instant};

use clearway_storage::background::{BackgroundKind, BackgroundThread};
use clearway_storage::descriptors;
use clearway_storage::disk::Disk;
use clearway_storage::retention::RetentionLimits;
use clearway_storage::wal::LogOptions;
use clearway_storage::{RecoveryReport, Storage, StorageOptions};
use clearway_txn::{LockOptions, NotificationQueue, ProcId, Serializable, SerializableOptions};

use crate::activity::{
    ActivitySlot, BackendType, BackgroundActivity, CommandShown, OpenSession, OpenSessions, SessionActivity,
    SessionGlance, SessionInfo,
};
use crate::catalog::Catalog;
use crate::clock;
use crate::config::Config;
use crate::convert::storage_error;
use crate::in_force::InForce;
use crate::interrupt::{CancelReason, current_is_to_stop, current_time_left};
use crate::memory;
use crate::planning_memory::PlanningMemory;
use crate::session_counts::{CountedWork, SessionCounts};
use crate::spill;
use crate::statement_statistics::StatementStatistics;
use crate::transaction::Transaction;
use clearway_sql::error::{EngineError, Result, SqlState};
use login_rules::LoginRules;
use reload::Reload;
use standby::StandbyEngine;
use statistics_reset::StatisticsReset;
use vacuum::VacuumWorker;
pub(crate) use vacuum::{BACKGROUND_LOCK_TIMEOUT, LockWaits};
pub(crate) use wait_circle::{CircleLooks, LooksInTurn};

/// The time that a shutdown waits for sessions to notice.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// Places in the array of running transactions for what is not a session: vacuum, checks.
const PROCS_RESERVED: u32 = 16;

/// Bytes of notifications that are under way or that listeners have not fetched; then commits that notify fail.
const NOTIFICATION_BYTES_MAX: usize = 64 << 20;

/// An open data directory.
#[derive(Debug)]
pub struct Engine {
    pub(crate) storage: Arc<Storage>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) notifications: NotificationQueue,
    /// Marks of serializable transactions, and the conflicts between them.
    pub(crate) serializable: Arc<Serializable>,
    /// As the engine was opened.
    pub(crate) config: Config,
    in_force: RwLock<Arc<InForce>>,
    /// The time at which it was opened, as a timestamptz value.
    pub(crate) started_at_us: i64,
    /// Times, pages and log of statements.
    pub(crate) statements: StatementStatistics,
    /// The counts when they were last reset.
    statistics_reset: StatisticsReset,
    /// The work of sessions that have closed.
    closed_sessions: SessionCounts,
    /// True if the server in front of it encrypts connections that ask for it.
    encrypts: AtomicBool,
    reloads: AtomicU64,
    login_rules: LoginRules,
    reload: Reload,
    /// Held by the session that writes the file of ALTER SYSTEM.
    altering: Mutex<()>,
    pub(crate) planning_memory: Arc<PlanningMemory>,
    /// The directory of temporary files.
    pub(crate) temporary: Arc<Path>,
    recovery: RecoveryReport,
    pub(crate) sessions: Arc<Mutex<OpenSessions>>,
    next_process_id: AtomicU32,
    secrets: RandomState,
    /// Set once; sessions end with 57P01.
    pub(crate) stopping: Arc<AtomicBool>,
    /// Set once the last checkpoint begins: nothing is logged any more.
    closed: Arc<AtomicBool>,
    vacuum: Mutex<Option<VacuumWorker>>,
    /// The background worker, as a session has it.
    vacuum_slot: Arc<ActivitySlot>,
    standby: StandbyEngine,
}

/// Sessions have numbers up to here; those behind are the background threads'.
const SESSION_NUMBERS: u32 = 0x3fff_ffff;

/// The configuration of storage.
fn storage_options(config: &Config) -> StorageOptions {
    let mechanisms = &config.mechanisms;
    StorageOptions {
        sessions_max: config.max_connections + PROCS_RESERVED,
        buffer_bytes: config.shared_buffers.bytes() as usize,
        pool: mechanisms.buffer_pool_options(),
        page_room: mechanisms.page_room,
        log: LogOptions {
            commit_delay: config.commit_delay.duration(),
            ..mechanisms.log_options()
        },
        proc_array: mechanisms.proc_array_options(),
        commit_log: mechanisms.commit_log_options(),
        locks: LockOptions {
            deadlock_timeout: config.deadlock_timeout.duration(),
            ..mechanisms.lock_options()
        },
        commits: mechanisms.commit_variants(),
        fsync: config.fsync,
        checkpoint_timeout: config.checkpoint_timeout.duration(),
        wal_bytes_max: config.max_wal_size.bytes(),
        wal_writer_delay: config.wal_writer_delay.duration(),
        running_interval: StorageOptions::default().running_interval,
        log_retention: RetentionLimits {
            keep_bytes: config.wal_keep_size.bytes(),
            slot_bytes_max: Some(config.max_slot_wal_keep_size.bytes()).filter(|bytes| *bytes > 0),
        },
        group_access: config.allow_group_access,
        own_records: None,
        open_files_max: match config.max_open_files {
            0 => {
                let connections = config.max_connections as usize;
                descriptors::share(descriptors::current_limit(), connections).relations
            }
            files => files as usize,
        },
    }
}

impl Engine {
    /// Opens `directory`, after recovery if it was not closed cleanly. A new database is made if the
    /// directory is missing or empty; one that holds anything else than a database is refused.
    pub fn open(directory: impl AsRef<Path>, config: Config) -> Result<Arc<Engine>, EngineError> {
        config.check()?;
        memory::prepare(
            config.server_memory.bytes(),
            config.shared_buffers.bytes(),
            config.shared_buffers,
        )?;
        let opened = Storage::open(directory.as_ref(), storage_options(&config)).map_err(storage_error)?;
        closed_on_error(&Arc::clone(&opened.0), || {
            let temporary = spill::prepare_directory(directory.as_ref())?;
            Engine::start_primary(opened, temporary, config)
        })
    }

    /// As [`open`](Self::open), on another disk than the operating system's. Temporary files are the
    /// operating system's.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        directory: impl AsRef<Path>,
        config: Config,
    ) -> Result<Arc<Engine>, EngineError> {
        config.check()?;
        let opened =
            Storage::open_on(disk, directory.as_ref(), storage_options(&config)).map_err(storage_error)?;
        closed_on_error(&Arc::clone(&opened.0), || {
            Engine::start_primary(opened, std::env::temp_dir().into(), config)
        })
    }

    /// Opens the database in `directory` as it is on disk and changes nothing there: recovery, and everything that is
    /// written afterwards, happens in memory and is gone with the engine. A directory without a database is an error.
    pub fn open_read_only(directory: impl AsRef<Path>, config: Config) -> Result<Arc<Engine>, EngineError> {
        config.check()?;
        let opened =
            Storage::open_read_only(directory.as_ref(), storage_options(&config)).map_err(storage_error)?;
        closed_on_error(&Arc::clone(&opened.0), || {
            Engine::start_primary(opened, std::env::temp_dir().into(), config)
        })
    }

    fn start_primary(
        opened: (Arc<Storage>, RecoveryReport),
        temporary: Arc<Path>,
        config: Config,
    ) -> Result<Arc<Engine>, EngineError> {
        opened.0.sync_replication.set_names(config.standby_names()?);
        let engine = Engine::with_storage(opened, temporary, config);
        engine.load_catalog()?;
        engine.remove_orphans()?;
        engine.start_vacuum()?;
        Ok(engine)
    }

    fn with_storage(
        (storage, recovery): (Arc<Storage>, RecoveryReport),
        temporary: Arc<Path>,
        config: Config,
    ) -> Arc<Engine> {
        storage.set_stop_asked(current_is_to_stop, current_time_left);
        let serializable = SerializableOptions::new(
            storage.proc_array.capacity(),
            config.mechanisms.lock_options().lwlock,
        );
        Arc::new(Engine {
            storage,
            serializable: Arc::new(Serializable::new(serializable)),
            catalog: Arc::new(Catalog::new()),
            notifications: NotificationQueue::new(
                config.mechanisms.lock_options().lwlock,
                NOTIFICATION_BYTES_MAX,
            ),
            planning_memory: PlanningMemory::new(config.planning_memory.bytes() as usize),
            temporary,
            recovery,
            sessions: Arc::default(),
            next_process_id: AtomicU32::new(1),
            secrets: RandomState::new(),
            stopping: Arc::default(),
            closed: Arc::default(),
            vacuum: Mutex::default(),
            vacuum_slot: Arc::new(ActivitySlot::new(0, 0, &SessionInfo::default())),
            standby: StandbyEngine::default(),
            in_force: RwLock::new(Arc::new(InForce {
                config: config.clone(),
                pending_restart: Vec::new(),
                read_at_us: clock::now_us(),
            })),
            started_at_us: clock::now_us(),
            statements: StatementStatistics::new(config.pg_stat_statements.max),
            statistics_reset: StatisticsReset::new(),
            closed_sessions: SessionCounts::default(),
            encrypts: AtomicBool::new(false),
            reloads: AtomicU64::new(0),
            login_rules: LoginRules::default(),
            reload: Reload::default(),
            altering: Mutex::default(),
            config,
        })
    }

    /// Starts the background vacuum, if it is wanted.
    fn start_vacuum(self: &Arc<Self>) -> Result<()> {
        if self.config.autovacuum {
            let worker = VacuumWorker::start(Arc::downgrade(self), &self.config)
                .map_err(|error| EngineError::internal(format!("cannot start the vacuum thread: {error}")))?;
            *self
                .vacuum
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(worker);
        }
        Ok(())
    }

    /// The report of the recovery at the opening of the directory.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// The data directory, for those that copy its log and its files.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The server in front of the engine encrypts connections that ask for it, or it does not: the setting `ssl`.
    pub fn connections_may_be_encrypted(&self, encrypts: bool) {
        self.encrypts.store(encrypts, Ordering::Relaxed);
    }

    /// True if a client may have its connection encrypted.
    pub(crate) fn encrypts(&self) -> bool {
        self.encrypts.load(Ordering::Relaxed)
    }

    /// The configuration the engine runs with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Gives a session its place among the open ones; 53300 when clients have opened `max_connections`.
    pub(crate) fn admit(
        &self,
        info: &SessionInfo,
        backend_type: BackendType,
        application_name: &str,
    ) -> Result<(Arc<ActivitySlot>, Transaction)> {
        let mut sessions = self.sessions();
        let is_own = |slot: &ActivitySlot| slot.backend_type() == BackendType::AutovacuumWorker;
        let clients = sessions.values().filter(|session| !is_own(&session.slot));
        if backend_type == BackendType::Client && clients.count() >= self.config.max_connections as usize {
            return Err(EngineError::new(
                SqlState::TOO_MANY_CONNECTIONS,
                "sorry, too many clients already",
            ));
        }
        memory::require_for_session()?;
        let process_id = loop {
            let candidate = self.next_process_id.fetch_add(1, Ordering::Relaxed) & SESSION_NUMBERS;
            if candidate != 0 && !sessions.contains_key(&candidate) {
                break candidate;
            }
        };
        let secret = self.secrets.hash_one((process_id, crate::clock::now_us())) as u32;
        let slot = Arc::new(ActivitySlot::new(process_id, secret, info));
        slot.set_application_name(application_name);
        slot.set_backend_type(backend_type);
        let proc = self.attach()?;
        sessions.insert(
            process_id,
            OpenSession {
                slot: Arc::clone(&slot),
                proc,
            },
        );
        drop(sessions);
        let txn = self.transaction(&slot, proc);
        Ok((slot, txn))
    }

    /// The number of sessions of clients that have logged in under this name.
    pub(crate) fn sessions_of(&self, user: &str) -> usize {
        let sessions = self.sessions();
        sessions
            .values()
            .filter(|session| session.slot.user() == user)
            .count()
    }

    /// Takes a place in the array of running transactions.
    pub(crate) fn attach(&self) -> Result<ProcId> {
        self.storage
            .proc_array
            .attach()
            .map_err(|_| EngineError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already"))
    }

    /// A place for a transaction.
    pub(crate) fn transaction(&self, slot: &Arc<ActivitySlot>, proc: ProcId) -> Transaction {
        Transaction::new(
            Arc::clone(&self.storage),
            Arc::clone(&self.catalog),
            Arc::clone(slot),
            Arc::clone(&self.closed),
            Arc::clone(&self.sessions),
            Arc::clone(&self.serializable),
            proc,
        )
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, OpenSessions> {
        self.sessions
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A session is gone; its transaction has ended.
    pub(crate) fn session_closed(&self, process_id: u32, proc: ProcId) {
        self.storage.proc_array.detach(proc);
        let mut sessions = self.sessions();
        if let Some(session) = sessions.remove(&process_id) {
            session.slot.count_close(clock::now_us());
            self.closed_sessions.take_over(&session.slot.counts);
        }
    }

    /// Asks a session to give up its running statement; whether the key was right.
    pub fn cancel(&self, process_id: u32, secret: u32) -> bool {
        let sessions = self.sessions();
        let Some(session) = sessions
            .get(&process_id)
            .filter(|session| session.slot.secret == secret)
        else {
            return false;
        };
        session.slot.ask_to_stop(CancelReason::Request);
        self.interrupt(session);
        true
    }

    /// Makes a session that waits, for a lock, for the log or for standbys, look whether it is to stop.
    pub(crate) fn interrupt(&self, session: &OpenSession) {
        self.storage.locks.wake(session.proc);
        self.storage.wal.interrupt_waits();
        if let Some(worker) = session.slot.worker() {
            self.storage.sync_replication.interrupt(worker);
        }
    }

    /// The activity of all sessions, by process id.
    pub fn activity(&self) -> Vec<SessionActivity> {
        let mut all: Vec<_> = self
            .sessions()
            .values()
            .map(|session| {
                let xmin = self.storage.proc_array.xmin_of(session.proc);
                SessionActivity {
                    xmin: xmin.map(|xmin| xmin.0),
                    ..session.slot.snapshot()
                }
            })
            .collect();
        all.sort_by_key(|activity| activity.process_id);
        all
    }

    /// The states of all sessions, without their texts.
    pub(crate) fn glances(&self) -> Vec<SessionGlance> {
        let glance = |session: &OpenSession| {
            let xmin = self.storage.proc_array.xmin_of(session.proc);
            session.slot.glance(xmin.map(|xmin| xmin.0))
        };
        self.sessions().values().map(glance).collect()
    }

    /// The activity of the server's own threads, in the order in which they began. Their numbers are none of a session.
    pub fn background_activity(&self) -> Vec<BackgroundActivity> {
        let shown = |thread: BackgroundThread| {
            let event = self.storage.background_wait(&thread);
            BackgroundActivity::of(thread, event, SESSION_NUMBERS + 1)
        };
        self.storage.background.all().into_iter().map(shown).collect()
    }

    /// The commands that run and have a progress, each with the number of its session, or of the background thread.
    pub(crate) fn running_commands(&self) -> Vec<(u32, CommandShown)> {
        let of_session =
            |session: &OpenSession| Some((session.slot.process_id, session.slot.progress.shown()?));
        let mut commands: Vec<_> = self.sessions().values().filter_map(of_session).collect();
        let threads = self.background_activity().into_iter();
        let vacuum = threads.filter(|thread| thread.kind == BackgroundKind::Vacuum);
        commands.extend(
            vacuum.filter_map(|thread| Some((thread.process_id, self.vacuum_slot.progress.shown()?))),
        );
        commands.sort_unstable_by_key(|(process_id, _)| *process_id);
        commands
    }

    /// The work of all sessions since the start, those of the server itself among them.
    pub(crate) fn counted_work(&self) -> CountedWork {
        let sessions = self.sessions();
        let mut sum = self.closed_sessions.now();
        let now_us = clock::now_us();
        for session in sessions.values() {
            sum += session.slot.counts.now();
            if let Some(open_us) = session.slot.open_us(now_us) {
                sum.sessions += 1;
                sum.session_us += open_us;
            }
        }
        sum
    }

    /// Number of open sessions.
    pub fn session_count(&self) -> usize {
        self.sessions().len()
    }

    /// Syncs of the write-ahead log since the engine was opened.
    pub fn log_syncs(&self) -> u64 {
        self.storage.wal.syncs()
    }

    /// Writes out all changed pages and moves recovery's starting point.
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        self.storage.checkpoint().map_err(storage_error)
    }

    /// Refuses new sessions, cancels running statements, waits a little for sessions to end, checkpoints, and closes
    /// the files. Sessions that are still open get errors afterwards.
    pub fn shutdown(&self) -> Result<(), EngineError> {
        if self.stopping.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        for session in self.sessions().values() {
            self.interrupt(session);
        }
        let worker = self
            .vacuum
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take();
        if let Some(worker) = worker {
            worker.stop();
        }
        let patience = Instant::now() + SHUTDOWN_PATIENCE;
        while Instant::now() < patience {
            let active = |session: &OpenSession| session.slot.is_active();
            if !self.sessions().values().any(active) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.closed.store(true, Ordering::Release);
        self.storage.shutdown().map_err(storage_error)
    }
}

/// Runs what `start`s an engine on `storage`. If that fails the directory is closed when this returns, so that it can be
/// opened again: the background threads, which hold the storage now and then, have ended.
fn closed_on_error<T>(storage: &Storage, start: impl FnOnce() -> Result<T>) -> Result<T> {
    start().inspect_err(|_| storage.stop_threads())
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(worker) = self
            .vacuum
            .get_mut()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take()
        {
            worker.stop();
        }
    }
}
