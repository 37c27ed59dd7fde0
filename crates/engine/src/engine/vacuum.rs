//! Clearing away dead row versions, by request and in the background, and the worker that does so and analyzes.
//!
//! An update leaves a dead version behind, and a page that fills up is pruned on the spot, so a table that is only
//! updated in place needs no vacuum at all. What pruning cannot do is free a version that an index entry points at:
//! that takes a pass over the indexes, which is what vacuum is.
//!
//! The background worker looks at every table's count of dead rows now and then, and vacuums those with more than
//! `autovacuum_vacuum_threshold` plus `autovacuum_vacuum_scale_factor` of the live ones. It holds the table lock that
//! excludes other vacuums and changes of definition, but no reader and no writer. A table whose lock is not to be had soon
//! is left for the next time.
//!
//! After that it analyzes every table of which more than `autovacuum_analyze_threshold` rows plus
//! `autovacuum_analyze_scale_factor` of those that it had at its last ANALYZE have changed. Each ANALYZE is a statement of
//! a session of its own ([`analyze_in_background`](Engine::analyze_in_background)).
//!
//! A vacuum runs under a session slot of its own. The slot and its locks go back however the vacuum ends, a
//! panic included: a lock left behind would keep DDL and all later vacuums away from the table until the next
//! start. The background worker reports the panic and goes on with the next table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_storage::RelId;
use clearway_storage::background::BackgroundKind;
use clearway_storage::vacuum::{self, VacuumPhase, VacuumProgress, VacuumWatch};
use clearway_txn::{LockMode, LockTag, ProcId};

use crate::activity::progress::vacuum as shown;
use crate::activity::{ActivitySlot, Command, Running, SessionInfo, ToldPlace};
use crate::catalog::{CATALOG_REL, CatalogState, TableEntry};
use crate::config::Config;
use crate::convert::storage_error;
use crate::engine::{CircleLooks, Engine};
use crate::interrupt::Interrupts;
use crate::lock_wait::{LockWaiter, WaitCircle};
use clearway_sql::error::{EngineError, Result, SqlState};

#[cfg(test)]
mod tests;

/// Changes of definitions that leave enough dead catalog rows to look after.
const DEFINITIONS_PER_VACUUM: u64 = 200;

/// The time that the background worker waits for a lock: the session that holds it goes first, and so do other tables.
pub(crate) const BACKGROUND_LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// True unless the table's storage parameters say that the server does not vacuum and analyze it by itself.
fn is_looked_after(entry: &TableEntry) -> bool {
    entry.def.parameters.is_on("autovacuum_enabled")
}

impl Engine {
    /// Vacuums every table now.
    /// 55000 on a standby, where it is replayed.
    pub fn vacuum(&self) -> Result<()> {
        if self.is_standby() {
            return Err(EngineError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "a standby cannot vacuum: recovery is in progress",
            ));
        }
        let interrupts = self.background_interrupts();
        self.vacuum_tables(&self.catalog.state(), &[], &self.waits_without_end(&interrupts))
    }

    fn background_interrupts(&self) -> Interrupts {
        let slot = ActivitySlot::new(0, 0, &SessionInfo::default());
        Interrupts::new(Arc::new(slot), Arc::clone(&self.stopping))
    }

    /// Those of the background worker, which forget what has ended its work the last time.
    fn interrupts_of_worker(&self) -> Interrupts {
        self.vacuum_slot.forget_request();
        Interrupts::new(Arc::clone(&self.vacuum_slot), Arc::clone(&self.stopping))
    }

    /// Vacuums these tables of those that a session sees; none = all.
    pub(crate) fn vacuum_tables(
        &self,
        state: &CatalogState,
        oids: &[u32],
        waits: &LockWaits<'_>,
    ) -> Result<()> {
        for entry in state.tables() {
            if oids.is_empty() || oids.contains(&entry.def.oid) {
                self.with_table(&entry, waits, |entry| self.vacuum_table(entry, waits.interrupts))?;
                entry.runtime.vacuums.note(false);
            }
        }
        if oids.is_empty() {
            self.vacuum_catalog(waits)?;
        }
        Ok(())
    }

    fn vacuum_catalog(&self, waits: &LockWaits<'_>) -> Result<()> {
        let interrupts = waits.interrupts;
        let slot = VacuumSlot::attach(self, interrupts)?;
        slot.lock(CATALOG_REL, waits)?;
        let horizon = self.storage.proc_array.horizon();
        let cancel = || interrupts.pending();
        vacuum::vacuum(&self.storage, RelId(CATALOG_REL), &[], horizon, &cancel).map_err(storage_error)?;
        interrupts.check()
    }

    /// Runs `work` on a table under the vacuum lock, unless it has been dropped meanwhile.
    fn with_table(
        &self,
        entry: &TableEntry,
        waits: &LockWaits<'_>,
        work: impl FnOnce(&TableEntry) -> Result<()>,
    ) -> Result<()> {
        let slot = VacuumSlot::attach(self, waits.interrupts)?;
        slot.lock(entry.def.oid, waits)?;
        match self.catalog.state().table(entry.def.oid) {
            Some(current) => work(current),
            // The session that vacuums it does nothing else with it meanwhile.
            None if entry.def.schema.is_temporary() => work(entry),
            None => Ok(()),
        }
    }

    fn vacuum_table(&self, entry: &TableEntry, interrupts: &Interrupts) -> Result<()> {
        let indexes: Vec<RelId> = entry.def.all_indexes().map(|index| RelId(index.rel)).collect();
        let horizon = self.storage.proc_array.horizon();
        let before = entry.runtime.dead_rows.load(Ordering::Relaxed);
        let watch = Watch::begin(interrupts, entry.def.oid);
        let done = vacuum::vacuum(&self.storage, RelId(entry.rel()), &indexes, horizon, &watch)
            .map_err(storage_error)?;
        drop(watch);
        interrupts.check()?;
        tracing::debug!(table = entry.def.name, ?done, "vacuumed");
        entry
            .runtime
            .live_rows
            .store(done.live_rows as i64, Ordering::Relaxed);
        self.vacuum_long_values(entry, interrupts)?;
        // Those that died while we were at it are for the next time.
        let since = entry
            .runtime
            .dead_rows
            .load(Ordering::Relaxed)
            .saturating_sub(before);
        entry.runtime.dead_rows.store(since, Ordering::Relaxed);
        Ok(())
    }

    /// Vacuums the pieces of a table's long values. Nothing but rows leads to them, and those that are left have theirs.
    fn vacuum_long_values(&self, entry: &TableEntry, interrupts: &Interrupts) -> Result<()> {
        let Some(rel) = entry.def.long_rel else {
            return Ok(());
        };
        let before = entry.runtime.dead_pieces.load(Ordering::Relaxed);
        let horizon = self.storage.proc_array.horizon();
        let watch = Watch::begin(interrupts, entry.def.long_oid().unwrap_or(0));
        let done = vacuum::vacuum(&self.storage, RelId(rel), &[], horizon, &watch).map_err(storage_error)?;
        drop(watch);
        interrupts.check()?;
        let runtime = &entry.runtime;
        runtime.live_pieces.store(done.live_rows, Ordering::Relaxed);
        let _ = runtime
            .dead_pieces
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |dead| {
                Some(dead.saturating_sub(before))
            });
        Ok(())
    }

    /// One look at all tables by the background worker.
    fn maintain_where_needed(self: &Arc<Self>, catalog_version: &mut u64) {
        let interrupts = self.interrupts_of_worker();
        let version = self.catalog.version();
        if version - *catalog_version > DEFINITIONS_PER_VACUUM {
            *catalog_version = version;
            let waits = self.waits_in_background(&interrupts);
            self.in_background("the catalog", || self.vacuum_catalog(&waits));
        }
        self.vacuum_each_table(&interrupts, |entry| {
            self.vacuum_table(entry, &interrupts)?;
            entry.runtime.vacuums.note(true);
            Ok(())
        });
        for entry in self.catalog.state().tables() {
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            if self.needs_analyze(&entry) {
                self.in_background(&entry.def.name, || self.analyze_in_background(&entry.def));
            }
        }
    }

    /// Runs `work` on every table that has enough dead rows. What happens to one table does not keep it from the next.
    fn vacuum_each_table(&self, interrupts: &Interrupts, work: impl Fn(&TableEntry) -> Result<()>) {
        let waits = self.waits_in_background(interrupts);
        for entry in self.catalog.state().tables() {
            if self.needs_vacuum(&entry) {
                self.in_background(&entry.def.name, || self.with_table(&entry, &waits, &work));
            }
        }
    }

    fn needs_vacuum(&self, entry: &TableEntry) -> bool {
        let dead = entry.runtime.dead_rows.load(Ordering::Relaxed);
        let live = entry.runtime.live_rows.load(Ordering::Relaxed).max(0) as f64;
        let config = &self.in_force().config;
        let most = config.autovacuum_vacuum_threshold as f64 + config.autovacuum_vacuum_scale_factor * live;
        let dead_pieces = entry.runtime.dead_pieces.load(Ordering::Relaxed) as f64;
        let live_pieces = entry.runtime.live_pieces.load(Ordering::Relaxed) as f64;
        let most_pieces =
            config.autovacuum_vacuum_threshold as f64 + config.autovacuum_vacuum_scale_factor * live_pieces;
        (dead as f64 > most || dead_pieces > most_pieces) && is_looked_after(entry)
    }

    fn needs_analyze(&self, entry: &TableEntry) -> bool {
        let changed = entry.runtime.changed_rows.load(Ordering::Relaxed);
        let rows = entry.statistics.as_ref().map_or(0.0, |kept| kept.of_table.rows);
        let config = &self.in_force().config;
        let most = config.autovacuum_analyze_threshold as f64 + config.autovacuum_analyze_scale_factor * rows;
        changed as f64 > most && is_looked_after(entry)
    }

    /// Runs one piece of background work to its end, or to its error or panic, which is logged.
    fn in_background(&self, table: &str, work: impl FnOnce() -> Result<()>) {
        // What a panic leaves half done is what a crash would: pages and their log records change together, and latches
        // and slots are given back by guards.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.sqlstate() == SqlState::LOCK_NOT_AVAILABLE => {
                tracing::debug!(%error, table, "left for the next time");
            }
            Ok(Err(error)) => {
                if !self.stopping.load(Ordering::Relaxed) {
                    tracing::warn!(%error, table, "background maintenance failed");
                }
            }
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("a panic without a text");
                tracing::error!(
                    panic = text,
                    table,
                    "background maintenance panicked; going on with the next table"
                );
            }
        }
    }
}

/// Shows how far the vacuum of a table has come, and ends it when its session is to stop.
struct Watch<'i> {
    interrupts: &'i Interrupts,
    progress: Running<'i>,
}

impl<'i> Watch<'i> {
    fn begin(interrupts: &'i Interrupts, table: u32) -> Watch<'i> {
        let progress = interrupts.progress().begin(Command::Vacuum, table);
        Watch { interrupts, progress }
    }
}

impl VacuumWatch for Watch<'_> {
    fn is_cancelled(&self) -> bool {
        self.interrupts.pending()
    }

    fn reached(&self, at: VacuumProgress) {
        let phase = match at.phase {
            VacuumPhase::Indexes => shown::CLEARS_INDEXES,
            VacuumPhase::Lines => shown::FREES_LINES,
            _ => shown::SCANS,
        };
        for (count, number) in [
            (shown::PHASE, phase),
            (shown::PAGES, u64::from(at.pages)),
            (shown::SCANNED, u64::from(at.scanned)),
            (shown::VACUUMED, u64::from(at.vacuumed)),
            (shown::ROUNDS, u64::from(at.index_rounds)),
            (shown::DEAD, at.dead as u64),
            (shown::DEAD_MAX, at.dead_max as u64),
        ] {
            self.progress.set(count, number);
        }
    }
}

/// The way in which a vacuum waits for the lock of a table.
pub(crate) struct LockWaits<'i> {
    pub(crate) interrupts: &'i Interrupts,
    /// The session that has asked for it, whose settings the others are.
    pub(crate) session: Option<ProcId>,
    /// `lock_timeout`
    pub(crate) lock_timeout: Option<Duration>,
    /// `deadlock_timeout`
    pub(crate) deadlock_timeout: Duration,
    /// Tell the log of a wait of this length.
    pub(crate) log_after: Option<Duration>,
}

impl Engine {
    /// Waits that end with the server's stop alone.
    fn waits_without_end<'i>(&self, interrupts: &'i Interrupts) -> LockWaits<'i> {
        LockWaits {
            interrupts,
            session: None,
            lock_timeout: None,
            deadlock_timeout: self.config.deadlock_timeout.duration(),
            log_after: None,
        }
    }

    /// Waits of the background worker.
    fn waits_in_background<'i>(&self, interrupts: &'i Interrupts) -> LockWaits<'i> {
        LockWaits {
            lock_timeout: Some(BACKGROUND_LOCK_TIMEOUT),
            ..self.waits_without_end(interrupts)
        }
    }
}

/// The session slot that a vacuum runs under. Its end, also by a panic, gives back the slot and all its locks.
struct VacuumSlot<'e> {
    engine: &'e Engine,
    proc: ProcId,
    _told: ToldPlace<'e>,
}

impl<'e> VacuumSlot<'e> {
    fn attach(engine: &'e Engine, interrupts: &'e Interrupts) -> Result<VacuumSlot<'e>> {
        let proc = engine.attach()?;
        let _told = interrupts.tell_vacuum(proc);
        Ok(VacuumSlot { engine, proc, _told })
    }

    fn lock(&self, oid: u32, waits: &LockWaits<'_>) -> Result<()> {
        let locks = &self.engine.storage.locks;
        // The session that had the slot before has left its own.
        locks.set_deadlock_timeout(self.proc, waits.deadlock_timeout);
        let circle = waits.session.map(|session| {
            // The session queues for nothing itself.
            CircleLooks::new(self.engine, session, waits.deadlock_timeout)
        });
        let waiter = LockWaiter {
            manager: locks,
            sessions: &self.engine.sessions,
            proc: self.proc,
            log_after: waits.log_after,
            circle: circle.as_ref().map(|circle| circle as &dyn WaitCircle),
        };
        let mode = LockMode::ShareUpdateExclusive;
        waiter.acquire(LockTag::Relation(oid), mode, waits.interrupts, waits.lock_timeout)
    }
}

impl Drop for VacuumSlot<'_> {
    fn drop(&mut self) {
        self.engine.storage.locks.release_all(self.proc);
        self.engine.storage.proc_array.detach(self.proc);
    }
}

/// The background thread.
#[derive(Debug)]
pub(crate) struct VacuumWorker {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: JoinHandle<()>,
}

impl VacuumWorker {
    /// Starts it. It keeps no engine alive.
    pub(crate) fn start(engine: Weak<Engine>, config: &Config) -> std::io::Result<VacuumWorker> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let nap = config.autovacuum_naptime.duration();
        let signal = Arc::clone(&stop);
        let background = engine
            .upgrade()
            .map(|engine| Arc::clone(&engine.storage.background));
        let thread = std::thread::Builder::new()
            .name("vacuum".to_owned())
            .spawn(move || {
                let _entered = background.map(|background| background.enter(BackgroundKind::Vacuum));
                let mut catalog_version = 0;
                while !Self::nap(&signal, nap) {
                    let Some(engine) = engine.upgrade() else { return };
                    engine.maintain_where_needed(&mut catalog_version);
                }
            })?;
        Ok(VacuumWorker { stop, thread })
    }

    /// Sleeps; whether it is time to stop.
    fn nap(signal: &(Mutex<bool>, Condvar), nap: Duration) -> bool {
        let _waiting = WaitScope::<Native>::enter(WaitEvent::VacuumMain);
        let (stopped, changed) = signal;
        let guard = stopped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let waited = changed.wait_timeout_while(guard, nap, |stopped| !*stopped);
        *waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }

    /// Stops it and waits until it has.
    pub(crate) fn stop(self) {
        let (stopped, changed) = &*self.stop;
        *stopped.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        changed.notify_all();
        // The thread itself may hold the last reference to the engine, whose drop calls this.
        if self.thread.thread().id() != std::thread::current().id() {
            let _ = self.thread.join();
        }
    }
}
