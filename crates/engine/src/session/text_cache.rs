//! Plans of the simple protocol, kept by text.
//!
//! A text is a statement of its own each time that it comes: it may have other columns when its tables have changed, or
//! when the search path leads to others, and its dates other values under another DateStyle. So what is kept holds for the
//! definitions and the settings that it was made with, and is forgotten when it is asked for under others. (A prepared statement is planned anew then, and may not change its
//! columns.)

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::session::prepared::Prepared;
use crate::settings::PlanningSettings;

/// The most texts of the simple protocol that keep their plans.
const CACHED_TEXTS_MAX: usize = 64;

/// Number of remembered hashes of texts that came once.
const SEEN_TEXTS: usize = 256;

/// A text longer than this is not kept.
const CACHED_TEXT_BYTES_MAX: usize = 4_096;

/// The definitions, by their version, and the settings that the names and literals in a text were understood by.
#[derive(Debug, Clone)]
pub(crate) struct LookedUpIn {
    pub(crate) version: u64,
    pub(crate) planning: Arc<PlanningSettings>,
}

#[derive(Debug)]
struct Entry {
    prepared: Arc<Prepared>,
    looked_up_in: LookedUpIn,
    used: u64,
}

/// Recent texts of the simple protocol. A text is kept when it comes a second time: most texts with literals in them
/// never do. When the cache is full, the half that was used least recently goes.
#[derive(Debug, Default)]
pub(crate) struct TextCache {
    entries: HashMap<Arc<str>, Entry>,
    clock: u64,
    /// Hashes of texts seen once, by a few of their bits.
    seen: Vec<u64>,
}

impl TextCache {
    /// The statement of this text, if it was kept and holds for these definitions and settings.
    pub(crate) fn get(
        &mut self,
        text: &str,
        version: u64,
        planning: &Arc<PlanningSettings>,
    ) -> Option<Arc<Prepared>> {
        let entry = self.entries.get_mut(text)?;
        let made_in = &entry.looked_up_in;
        if made_in.version != version || !Arc::ptr_eq(&made_in.planning, planning) {
            self.entries.remove(text);
            return None;
        }
        self.clock += 1;
        entry.used = self.clock;
        Some(Arc::clone(&entry.prepared))
    }

    /// Offers a statement that was not found.
    pub(crate) fn offer(&mut self, prepared: &Arc<Prepared>, looked_up_in: LookedUpIn) {
        if prepared.text.len() > CACHED_TEXT_BYTES_MAX {
            return;
        }
        self.seen.resize(SEEN_TEXTS, 0);
        let mut hasher = DefaultHasher::new();
        prepared.text.hash(&mut hasher);
        let hash = hasher.finish();
        let place = &mut self.seen[hash as usize % SEEN_TEXTS];
        if std::mem::replace(place, hash) != hash {
            return;
        }
        if self.entries.len() >= CACHED_TEXTS_MAX {
            let mut used: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
            used.sort_unstable();
            let median = used[used.len() / 2];
            self.entries.retain(|_, entry| entry.used > median);
        }
        self.clock += 1;
        let entry = Entry {
            prepared: Arc::clone(prepared),
            looked_up_in,
            used: self.clock,
        };
        self.entries.insert(Arc::clone(&prepared.text), entry);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
