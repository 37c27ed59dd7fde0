//! The object of a lock: one of the engine's, or one of a kind that the embedding program has named.

use std::hash::{Hash, Hasher};

use clearway_machine::{WaitClass, WaitEvent};

/// A kind of objects that the program locks which embeds this crate: it is one of the program's own wait events, so the name
/// of a lock and that of the wait for it are the same, as they are for relations.
///
/// ```
/// use std::sync::Arc;
///
/// use clearway_machine::{Native, WaitEvent};
/// use clearway_txn::{
///     LockKind, LockManager, LockMode, LockOptions, LockTag, ProcArray, ProcArrayOptions, Xid,
/// };
///
/// // A constant, whose event is named at the start …
/// const BUCKET: LockKind = LockKind::of(WaitEvent::User1).expect("an event of the program's own");
/// BUCKET.wait_event().name_as("bucket")?;
/// // … or a kind by its name.
/// let document = LockKind::named("document").expect("one of 32 is free");
///
/// let array = Arc::new(ProcArray::<Native>::new(8, ProcArrayOptions::default(), Xid(100)));
/// let locks = LockManager::with_options(Arc::clone(&array), LockOptions::default());
/// let [alice, bob] = [(); 2].map(|()| array.attach().unwrap());
///
/// let tag = LockTag::own(BUCKET, 7);
/// assert!(locks.try_acquire(alice, tag, LockMode::Exclusive));
/// assert!(!locks.try_acquire(bob, tag, LockMode::Share));
/// assert!(locks.try_acquire(bob, LockTag::own(document, 7), LockMode::Share), "another kind");
/// assert_eq!(locks.listed()[0].tag.to_string(), "bucket 7");
/// locks.release_all(alice);
/// assert!(locks.try_acquire(bob, tag, LockMode::Share));
/// # Ok::<(), clearway_machine::EventNotNamed>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKind(WaitEvent);

impl LockKind {
    /// The kind of the locks that are waited for as `event`; `None` if that is not one of [`WaitEvent::OWN`].
    pub const fn of(event: WaitEvent) -> Option<LockKind> {
        match event.class() {
            WaitClass::Own => Some(LockKind(event)),
            _ => None,
        }
    }

    /// The kind whose event has this name, or else the first event without one, which gets it. `None` if all 32 have
    /// others.
    pub fn named(name: &'static str) -> Option<LockKind> {
        WaitEvent::named(name).map(LockKind)
    }

    /// The event that a session waits for while it queues for a lock of this kind.
    pub const fn wait_event(self) -> WaitEvent {
        self.0
    }

    /// The name that reports show.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

/// The object of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockTag {
    /// A relation, by number.
    Relation(u32),
    /// One row version: the place at the head of the queue for it.
    Tuple {
        /// The relation's number.
        rel: u32,
        /// The page.
        block: u32,
        /// The line pointer.
        slot: u16,
    },
    /// A number, or a pair of numbers, that programs have agreed on.
    Advisory {
        /// The upper half, or the first number.
        high: u32,
        /// The lower half, or the second number.
        low: u32,
        /// True for a pair.
        is_pair: bool,
    },
    /// An object of the embedding program's own ([`own`](Self::own)).
    Own {
        /// Its kind.
        kind: LockKind,
        /// The upper half of its key.
        high: u32,
        /// The lower half of its key.
        low: u32,
    },
}

/// A session's list has one for each lock.
const _: () = assert!(size_of::<LockTag>() == 12);

impl std::fmt::Display for LockTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LockTag::Relation(rel) => write!(f, "relation {rel}"),
            LockTag::Tuple { rel, block, slot } => write!(f, "tuple ({block},{slot}) of relation {rel}"),
            LockTag::Advisory { high, low, is_pair } => {
                write!(f, "advisory lock [{high},{low},{}]", 1 + u8::from(*is_pair))
            }
            LockTag::Own { kind, high, low } => {
                write!(f, "{} {}", kind.name(), u64::from(*high) << 32 | u64::from(*low))
            }
        }
    }
}

impl LockTag {
    /// The object of the program's own that has this key among those of its kind. Two objects whose keys are equal (a digest
    /// of a longer name, for instance) exclude each other like one.
    pub const fn own(kind: LockKind, key: u64) -> LockTag {
        LockTag::Own {
            kind,
            high: (key >> 32) as u32,
            low: key as u32,
        }
    }

    pub(super) fn wait_event(self) -> WaitEvent {
        match self {
            LockTag::Relation(_) => WaitEvent::LockRelation,
            LockTag::Tuple { .. } => WaitEvent::LockTuple,
            LockTag::Advisory { .. } => WaitEvent::LockAdvisory,
            LockTag::Own { kind, .. } => kind.wait_event(),
        }
    }
}

impl Hash for LockTag {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match *self {
            // The highest bits tell the kinds apart; two numbers that collide cost a comparison.
            LockTag::Relation(rel) => state.write_u64(1 << 63 | u64::from(rel)),
            LockTag::Tuple { rel, block, slot } => {
                state.write_u64(u64::from(rel) << 16 | u64::from(slot));
                state.write_u64(u64::from(block));
            }
            LockTag::Advisory { high, low, is_pair } => {
                state.write_u64(1 << 62 | u64::from(is_pair));
                state.write_u64(u64::from(high) << 32 | u64::from(low));
            }
            LockTag::Own { kind, high, low } => {
                state.write_u64(1 << 61 | kind.wait_event() as u64);
                state.write_u64(u64::from(high) << 32 | u64::from(low));
            }
        }
    }
}
