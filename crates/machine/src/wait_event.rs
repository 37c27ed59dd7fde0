//! Every point where a worker can wait, under its public name.
//!
//! One list, because these names are what a user sees in `pg_stat_activity`, in the bench's report and in the
//! simulator's account; `docs/wait-events.md` explains each. Names follow PostgreSQL's where the thing is the
//! same.

#[cfg(feature = "std")]
use std::sync::OnceLock;

macro_rules! wait_events {
    ([$($own:ident)*] $($(#[$doc:meta])* $variant:ident = ($class:ident, $name:literal)),* $(,)?) => {
        /// The event that a worker waits for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum WaitEvent {
            $($(#[$doc])* $variant,)*
            $(
                /// An event of the program that embeds these crates, which [`name_as`](Self::name_as) gives a name.
                $own,
            )*
        }

        impl WaitEvent {
            /// All events, in the order of their numbers.
            pub const ALL: &'static [WaitEvent] = &[$(WaitEvent::$variant,)* $(WaitEvent::$own,)*];

            /// The events of the program that embeds these crates.
            pub const OWN: &'static [WaitEvent] = &[$(WaitEvent::$own),*];

            /// The class shown as `wait_event_type`; `None` for [`WaitEvent::Running`].
            pub const fn class(self) -> WaitClass {
                match self {
                    $(WaitEvent::$variant => WaitClass::$class,)*
                    $(WaitEvent::$own => WaitClass::Own,)*
                }
            }

            /// The name shown as `wait_event`.
            pub fn name(self) -> &'static str {
                match self {
                    $(WaitEvent::$variant => $name,)*
                    $(WaitEvent::$own => self.own_name().unwrap_or(stringify!($own)),)*
                }
            }
        }
    };
}

/// The class of a wait event (`wait_event_type` in `pg_stat_activity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitClass {
    /// Not waiting.
    None,
    /// A latch of ours (PostgreSQL's LWLock).
    LwLock,
    /// A relation, tuple or transaction lock, held to the end of a transaction.
    Lock,
    /// Waiting until other workers have unpinned a buffer.
    BufferPin,
    /// Reading or writing a file.
    Io,
    /// Waiting for a step of another worker (group leaders and followers, for instance).
    Ipc,
    /// Sleeping for a set time.
    Timeout,
    /// Waiting for the client at the other end of the socket.
    Client,
    /// A background worker with nothing to do.
    Activity,
    /// An event of the program that embeds these crates.
    Own,
}

impl WaitClass {
    /// The name shown as `wait_event_type`.
    pub const fn name(self) -> &'static str {
        match self {
            WaitClass::None => "",
            WaitClass::LwLock => "LWLock",
            WaitClass::Lock => "Lock",
            WaitClass::BufferPin => "BufferPin",
            WaitClass::Io => "IO",
            WaitClass::Ipc => "IPC",
            WaitClass::Timeout => "Timeout",
            WaitClass::Client => "Client",
            WaitClass::Activity => "Activity",
            WaitClass::Own => "Extension",
        }
    }
}

wait_events! {
    [
        User1 User2 User3 User4 User5 User6 User7 User8 User9 User10 User11 User12 User13 User14 User15 User16
        User17 User18 User19 User20 User21 User22 User23 User24 User25 User26 User27 User28 User29 User30 User31 User32
    ]
    /// On the CPU, or ready to be.
    Running = (None, ""),
    /// The latch over one part of the buffer mapping table: a partition, or a bucket with its overflow lines.
    BufferMapping = (LwLock, "BufferMapping"),
    /// The latch over the clock that finds a frame for a page that is not in memory.
    BufferClock = (LwLock, "BufferClock"),
    /// The latch over one page's content.
    BufferContent = (LwLock, "BufferContent"),
    /// The latch over the array of running transactions.
    ProcArray = (LwLock, "ProcArray"),
    /// The latch over what a standby knows of the primary's running transactions.
    KnownXids = (LwLock, "KnownXids"),
    /// The latch that hands out transaction ids.
    XidGen = (LwLock, "XidGen"),
    /// The latch over the commit log.
    CommitLog = (LwLock, "CommitLog"),
    /// One of the log's insertion latches.
    WalInsert = (LwLock, "WALInsert"),
    /// The latch under which the log is written out.
    WalWriteLatch = (LwLock, "WALWrite"),
    /// The latch under which what is written of the log is made durable.
    WalSyncLatch = (LwLock, "WALSync"),
    /// The latch over one partition of the lock table.
    LockManager = (LwLock, "LockManager"),
    /// The latch over the conflicts between serializable transactions.
    SerializableGraph = (LwLock, "SerializableXactHash"),
    /// The latch over one part of the table of what serializable transactions have read and written.
    SerializableMarks = (LwLock, "PredicateLockManager"),
    /// The latch over the queue of notifications.
    NotifyQueue = (LwLock, "NotifyQueue"),
    /// The latch over the catalog cache.
    Catalog = (LwLock, "Catalog"),
    /// The latch over the checkpointer's state.
    CheckpointLatch = (LwLock, "Checkpoint"),
    /// The latch over what standbys have reported and which commits wait for them.
    SyncReplicationLatch = (LwLock, "SyncRep"),
    /// The latch over a relation's free-space map.
    FreeSpace = (LwLock, "FreeSpace"),
    /// The latch over a relation's size while it is extended.
    RelationExtension = (LwLock, "RelationExtension"),
    /// A latch that belongs to an embedding program or a test.
    UserLatch = (LwLock, "User"),
    /// A lock on a whole relation.
    LockRelation = (Lock, "relation"),
    /// The place at the head of the queue for one row.
    LockTuple = (Lock, "tuple"),
    /// The end of another transaction.
    LockTransaction = (Lock, "transactionid"),
    /// A lock on numbers that a program has chosen.
    LockAdvisory = (Lock, "advisory"),
    /// A page that others have pinned.
    BufferPin = (BufferPin, "BufferPin"),
    /// A page to be unpinned: each frame of the buffer pool is pinned or in use.
    BufferAllPinned = (BufferPin, "BufferAllPinned"),
    /// Another worker's read or write of the same page.
    BufferIo = (Ipc, "BufferIO"),
    /// Reading a page from a data file.
    DataFileRead = (Io, "DataFileRead"),
    /// Writing a page to a data file.
    DataFileWrite = (Io, "DataFileWrite"),
    /// Making a data file longer.
    DataFileExtend = (Io, "DataFileExtend"),
    /// Making a data file's writes durable.
    DataFileSync = (Io, "DataFileSync"),
    /// Writing the log.
    WalWrite = (Io, "WALWrite"),
    /// Making the log's writes durable.
    WalSync = (Io, "WALSync"),
    /// Creating or recycling a log segment.
    WalSegmentInit = (Io, "WALInitWrite"),
    /// Reading the log during recovery.
    WalRead = (Io, "WALRead"),
    /// Reading a page of the commit log.
    CommitLogRead = (Io, "SLRURead"),
    /// Writing a page of the commit log.
    CommitLogWrite = (Io, "SLRUWrite"),
    /// Reading or writing the control file.
    ControlFile = (Io, "ControlFile"),
    /// A worker has sent a request to the checkpointer and waits for its end.
    CheckpointDone = (Ipc, "CheckpointDone"),
    /// A follower waits for the leader of its commit-log group.
    CommitLogGroup = (Ipc, "XactGroupUpdate"),
    /// A follower waits for the leader of its end-of-transaction group.
    ProcArrayGroup = (Ipc, "ProcArrayGroupUpdate"),
    /// A commit waits for those to be seen whose records lie before its own in the log.
    CommitOrder = (Ipc, "CommitOrder"),
    /// A worker waits until another one has flushed the log for it, or has left the flushing to it.
    WalFlushGroup = (Ipc, "WALFlushGroup"),
    /// A worker that flushes the log waits for a record that another worker is copying into it.
    WalInsertFinish = (Ipc, "WALInsertFinish"),
    /// A session waits until the synchronous standbys have a commit: its own, or one that its answer tells of.
    SyncReplication = (Ipc, "SyncRep"),
    /// A read-only transaction waits to learn if its snapshot is safe.
    SafeSnapshot = (Ipc, "SafeSnapshot"),
    /// Sleeping inside the adaptive spin delay.
    SpinDelay = (Timeout, "SpinDelay"),
    /// Sleeping before a log flush so that more commits join it.
    CommitDelay = (Timeout, "CommitDelay"),
    /// Sleeping between two steps of a vacuum.
    VacuumDelay = (Timeout, "VacuumDelay"),
    /// Sleeping since a statement asked for it: `pg_sleep`.
    PgSleep = (Timeout, "PgSleep"),
    /// Reading from the client.
    ClientRead = (Client, "ClientRead"),
    /// Writing to the client.
    ClientWrite = (Client, "ClientWrite"),
    /// The checkpointer, waiting for the next checkpoint.
    CheckpointerMain = (Activity, "CheckpointerMain"),
    /// A standby's replay, waiting for log to be received.
    RecoveryWalStream = (Activity, "RecoveryWalStream"),
    /// A standby's replay, waiting for log while no server sends any: it is not there, or its log cannot be followed.
    RecoveryRetry = (Timeout, "RecoveryRetrieveRetryInterval"),
    /// A standby's replay, which a session has paused.
    RecoveryPause = (Ipc, "RecoveryPause"),
    /// A standby's replay, waiting for the time from which on a commit is replayed.
    RecoveryApplyDelay = (Timeout, "RecoveryApplyDelay"),
    /// A standby's replay, waiting for room on the disk.
    RecoveryRoom = (Io, "RecoveryRoom"),
    /// A standby's replay, which has failed and does nothing any more.
    RecoveryFailed = (Activity, "RecoveryFailed"),
    /// For a standby's replay to get somewhere.
    RecoveryApply = (Ipc, "RecoveryApply"),
    /// WAIT FOR LSN, for replay to come to a position.
    WaitForWalReplay = (Ipc, "WaitForWalReplay"),
    /// WAIT FOR LSN, for the log before a position to be durable.
    WaitForWalFlush = (Ipc, "WaitForWalFlush"),
    /// A worker of a standby's replay waits for those that share a change over several pages with it.
    ReplayMeeting = (Ipc, "ReplayMeeting"),
    /// The worker that reads the log for a standby's replay waits for the others' changes.
    ReplayStretch = (Ipc, "ReplayStretch"),
    /// A standby's replay, waiting for sessions that may see row versions about to be removed.
    RecoveryConflictSnapshot = (Ipc, "RecoveryConflictSnapshot"),
    /// A standby's replay, waiting for sessions that read a table whose definition changes.
    RecoveryConflictLock = (Ipc, "RecoveryConflictLock"),
    /// A worker of a standby's replay, waiting for changes to make.
    ReplayWorkerMain = (Activity, "ReplayWorkerMain"),
    /// The background log writer, waiting for asynchronous commits.
    WalWriterMain = (Activity, "WalWriterMain"),
    /// A standby's receiver, waiting for log from its primary.
    WalReceiverMain = (Activity, "WalReceiverMain"),
    /// A session that sends log, waiting for more of it or for its follower.
    WalSenderMain = (Activity, "WalSenderMain"),
    /// The vacuum worker, waiting for work.
    VacuumMain = (Activity, "AutoVacuumMain"),
}

/// The names of [`WaitEvent::OWN`].
#[cfg(feature = "std")]
static OWN_NAMES: [OnceLock<&'static str>; WaitEvent::OWN.len()] =
    [const { OnceLock::new() }; WaitEvent::OWN.len()];

/// An event does not get a name.
#[cfg(feature = "std")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventNotNamed {
    /// It is none of [`WaitEvent::OWN`].
    NotOwn(WaitEvent),
    /// It has this name already.
    Named(&'static str),
}

#[cfg(feature = "std")]
impl core::fmt::Display for EventNotNamed {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            EventNotNamed::NotOwn(event) => {
                write!(
                    formatter,
                    "{event:?} is an event of Clearway's; take one of User1 to User32"
                )
            }
            EventNotNamed::Named(name) => write!(formatter, "the event has the name {name:?} already"),
        }
    }
}

#[cfg(feature = "std")]
impl core::error::Error for EventNotNamed {}

#[cfg(feature = "std")]
impl WaitEvent {
    fn own_slot(self) -> Option<&'static OnceLock<&'static str>> {
        OWN_NAMES.get((self as usize).checked_sub(WaitEvent::OWN[0] as usize)?)
    }

    fn own_name(self) -> Option<&'static str> {
        self.own_slot()?.get().copied()
    }

    /// Gives one of [`OWN`](Self::OWN) the name that reports show, for good. Naming it so again changes nothing.
    ///
    /// ```
    /// use clearway_machine::WaitEvent;
    ///
    /// // The event of a class of latches, a constant.
    /// const INDEX_PAGES: WaitEvent = WaitEvent::User1;
    ///
    /// INDEX_PAGES.name_as("IndexPages")?;
    /// assert_eq!(INDEX_PAGES.name(), "IndexPages");
    /// // Where it need not be one:
    /// let prefetch = WaitEvent::named("Prefetch").expect("one of 32 is free");
    /// assert_eq!((prefetch.class().name(), prefetch.name()), ("Extension", "Prefetch"));
    /// # Ok::<(), clearway_machine::EventNotNamed>(())
    /// ```
    pub fn name_as(self, name: &'static str) -> Result<(), EventNotNamed> {
        let slot = self.own_slot().ok_or(EventNotNamed::NotOwn(self))?;
        let there = *slot.get_or_init(|| name);
        if there == name {
            Ok(())
        } else {
            Err(EventNotNamed::Named(there))
        }
    }

    /// The one of [`OWN`](Self::OWN) that has this name, or else the first without one, which gets it. `None` if all have
    /// others.
    pub fn named(name: &'static str) -> Option<WaitEvent> {
        let has_it = |event: &&WaitEvent| event.own_name() == Some(name);
        let own = WaitEvent::OWN.iter();
        own.clone()
            .find(has_it)
            .or_else(|| own.clone().find(|event| event.name_as(name).is_ok()))
            .copied()
    }
}

#[cfg(not(feature = "std"))]
impl WaitEvent {
    fn own_name(self) -> Option<&'static str> {
        None
    }
}

impl WaitEvent {
    /// The event with this number, for readers of a worker's published word.
    pub fn from_number(number: u32) -> WaitEvent {
        Self::ALL
            .get(number as usize)
            .copied()
            .unwrap_or(WaitEvent::Running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        for (number, event) in WaitEvent::ALL.iter().enumerate() {
            assert_eq!(*event as usize, number);
            assert_eq!(WaitEvent::from_number(number as u32), *event);
        }
        let mut names: Vec<_> = WaitEvent::ALL.iter().map(|e| (e.class(), e.name())).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), WaitEvent::ALL.len());
    }

    #[cfg(feature = "std")]
    #[test]
    fn an_event_of_the_programs_own_keeps_its_name() {
        let first = WaitEvent::named("first").unwrap();
        assert_eq!(WaitEvent::named("first"), Some(first));
        assert_ne!(WaitEvent::named("second"), Some(first));
        assert_eq!(first.name_as("first"), Ok(()));
        assert_eq!(first.name_as("other"), Err(EventNotNamed::Named("first")));
        assert_eq!(WaitEvent::from_number(first as u32).name(), "first");
        let not_own = WaitEvent::WalSync.name_as("mine").unwrap_err();
        assert_eq!(
            not_own.to_string(),
            "WalSync is an event of Clearway's; take one of User1 to User32"
        );
        assert_eq!(WaitEvent::WalSync.name(), "WALSync");
        // More at once than there are: each gets one, or is told.
        let names: Vec<&'static str> = (0..40).map(|number| &*format!("own {number}").leak()).collect();
        let given: Vec<Option<WaitEvent>> = std::thread::scope(|scope| {
            let askers: Vec<_> = names
                .iter()
                .map(|name| scope.spawn(|| WaitEvent::named(name)))
                .collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).collect()
        });
        for (name, event) in names.iter().zip(&given) {
            assert!(event.is_none_or(|event| event.name() == *name));
        }
        assert_eq!(given.iter().flatten().count(), WaitEvent::OWN.len() - 2);
    }
}
