//! A map whose copy shares what neither side has changed.
//!
//! Each statement that changes definitions works on a copy of all of them ([`CatalogState`](super::CatalogState)). A copy of
//! a `HashMap` costs a step for each table there is, so making 20,000 tables would take 200 million steps. Here the entries
//! are spread over [`PARTS`] maps by their keys' hashes, each behind a reference count. To copy is to count once more for
//! each part; the first change of a part copies that part, and later ones change it in place.
//!
//! | | steps, of `n` entries |
//! | --- | --- |
//! | look | as in a `HashMap`, and one more hash |
//! | copy | `PARTS` |
//! | first change of a part | `n / PARTS` |
//! | later change | as in a `HashMap` |
//!
//! A tree of such maps would need fewer steps from some hundred thousand entries on.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::sync::Arc;

/// Maps that the entries are spread over.
const PARTS: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct SharedMap<K, V> {
    parts: Box<[Arc<HashMap<K, V>>]>,
}

/// The same for each copy, so that a key's part is.
fn part_of<Q: Hash + ?Sized>(key: &Q) -> usize {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    hasher.hash_one(key) as usize % PARTS
}

impl<K: Hash + Eq + Clone, V: Clone> SharedMap<K, V> {
    pub(super) fn new() -> SharedMap<K, V> {
        let empty = Arc::<HashMap<K, V>>::default();
        SharedMap {
            parts: vec![empty; PARTS].into(),
        }
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.parts[part_of(key)].get(key)
    }

    pub(super) fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Adds or replaces an entry; the value that was there.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let part = part_of(&key);
        Arc::make_mut(&mut self.parts[part]).insert(key, value)
    }

    /// Takes an entry out; its value.
    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // Without a look first a key that is not there would copy its part.
        self.get(key)?;
        Arc::make_mut(&mut self.parts[part_of(key)]).remove(key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.parts.iter().flat_map(|part| part.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts that two maps do not share.
    fn differ<K, V>(one: &SharedMap<K, V>, other: &SharedMap<K, V>) -> usize {
        let pairs = one.parts.iter().zip(&other.parts);
        pairs.filter(|(one, other)| !Arc::ptr_eq(one, other)).count()
    }

    #[test]
    fn a_copy_has_entries_of_its_own_in_the_parts_that_were_changed() {
        let mut map = SharedMap::new();
        for number in 0..10_000_u32 {
            assert_eq!(map.insert(number.to_string(), number), None);
        }
        let before = map.clone();
        assert_eq!(map.insert("7".to_owned(), 70), Some(7));
        assert_eq!(map.remove("8"), Some(8));
        assert_eq!(map.remove("no number"), None);
        assert_eq!((map.get("7"), before.get("7")), (Some(&70), Some(&7)));
        assert!(!map.contains_key("8") && before.contains_key("8"));
        assert_eq!((map.values().count(), before.values().count()), (9_999, 10_000));
        assert!(
            (1..=2).contains(&differ(&map, &before)),
            "{}",
            differ(&map, &before)
        );
    }

    #[test]
    fn entries_are_spread_over_all_parts() {
        let mut map = SharedMap::new();
        for number in 0..20_000_u32 {
            map.insert(number, ());
        }
        let longest = map.parts.iter().map(|part| part.len()).max();
        assert!(longest < Some(2 * 20_000 / PARTS), "{longest:?}");
        assert!(map.parts.iter().all(|part| !part.is_empty()));
    }
}
