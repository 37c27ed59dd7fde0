//! Plans of the simple protocol, kept by text.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::session::prepared::Prepared;

/// The most texts of the simple protocol that keep their plans.
const CACHED_TEXTS_MAX: usize = 64;

/// Number of remembered hashes of texts that came once.
const SEEN_TEXTS: usize = 256;

/// A text longer than this is not kept.
const CACHED_TEXT_BYTES_MAX: usize = 4_096;

/// Recent texts of the simple protocol. A text is kept when it comes a second time: most texts with literals in them
/// never do. When the cache is full, the half that was used least recently goes.
#[derive(Debug, Default)]
pub(crate) struct TextCache {
    entries: HashMap<Arc<str>, (Arc<Prepared>, u64)>,
    clock: u64,
    /// Hashes of texts seen once, by a few of their bits.
    seen: Vec<u64>,
}

impl TextCache {
    /// The statement of this text.
    pub(crate) fn get(&mut self, text: &str) -> Option<Arc<Prepared>> {
        let (prepared, used) = self.entries.get_mut(text)?;
        self.clock += 1;
        *used = self.clock;
        Some(Arc::clone(prepared))
    }

    /// Offers a statement that was not found.
    pub(crate) fn offer(&mut self, prepared: &Arc<Prepared>) {
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
            let mut used: Vec<u64> = self.entries.values().map(|(_, used)| *used).collect();
            used.sort_unstable();
            let median = used[used.len() / 2];
            self.entries.retain(|_, (_, used)| *used > median);
        }
        self.clock += 1;
        self.entries
            .insert(Arc::clone(&prepared.text), (Arc::clone(prepared), self.clock));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
