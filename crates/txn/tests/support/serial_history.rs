//! A store of keys with versions, under serializable snapshot isolation as shipped, and a check of its history for cycles.
//!
//! Each key has a list of values, as in a list-append test: a transaction that writes a key appends its own number to what it
//! has read. So what was read tells the order of the writers, and the dependencies between transactions follow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use clearway_machine::Native;

use super::dependency_circle::Done;
use clearway_txn::{
    MarkedRow, ProcId, SerialTransaction, Serializable, SerializableOptions, SerializationFailure, Xid,
};

/// The table and the index of the store.
const TABLE: u32 = 1;
const INDEX: u32 = 2;

/// A version of a key's list.
#[derive(Debug, Clone)]
struct Version {
    writer: u64,
    /// The time at which its commit is seen; `None`: not yet.
    seen_at: Option<u64>,
    list: Vec<u64>,
}

#[derive(Debug, Default)]
struct Data {
    clock: u64,
    /// Key and slot of each version.
    keys: BTreeMap<u64, Vec<Version>>,
    ended: BTreeSet<u64>,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    data: Mutex<Data>,
    pub serializable: Serializable<Native>,
}

/// A transaction on it.
pub struct Running {
    own: Option<SerialTransaction<Native>>,
    number: u64,
    snapshot: u64,
    reads: BTreeMap<u64, Vec<u64>>,
    writes: BTreeSet<u64>,
}

/// The reason why a transaction ended without a commit.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another has changed the key.
    Concurrent,
    /// By serializable snapshot isolation.
    Serialization(SerializationFailure),
}

impl Store {
    /// Without keys.
    pub fn new(options: SerializableOptions) -> Store {
        Store {
            data: Mutex::default(),
            serializable: Serializable::new(options),
        }
    }

    /// Begins the transaction of this number, which no other has had.
    pub fn begin(&self, proc: ProcId, number: u64, is_read_only: bool) -> Running {
        let own = self.serializable.begin(proc, is_read_only);
        let snapshot = self.data.lock().unwrap().clock;
        self.serializable.snapshot_taken(&own);
        Running {
            own: Some(own),
            number,
            snapshot,
            reads: BTreeMap::new(),
            writes: BTreeSet::new(),
        }
    }

    fn sees(&self, snapshot: u64) -> impl Fn(Xid) -> bool {
        move |xid| {
            let data = self.data.lock().unwrap();
            let mut versions = data.keys.values().flatten();
            versions
                .any(|version| version.writer == xid.0 && version.seen_at.is_some_and(|at| at <= snapshot))
        }
    }

    /// The list of a key, and the slot of its version; found by its key in the index.
    pub fn read(&self, running: &mut Running, key: u64) -> Result<Vec<u64>, Refused> {
        let sees = self.sees(running.snapshot);
        let found = {
            let data = self.data.lock().unwrap();
            let versions = data.keys.get(&key).into_iter().flatten().enumerate();
            let visible = versions.filter(|(_, version)| {
                version.writer == running.number || version.seen_at.is_some_and(|at| at <= running.snapshot)
            });
            visible.last().map(|(slot, version)| (slot, version.list.clone()))
        };
        if let Some(own) = &mut running.own {
            let marked = self.serializable.read_key(own, INDEX, &key.to_be_bytes(), &sees);
            let marked = marked.and_then(|()| match &found {
                None => Ok(()),
                Some((slot, _)) => self.serializable.read_row(own, place(key, *slot), &sees),
            });
            marked.map_err(Refused::Serialization)?;
        }
        let list = found.map_or(Vec::new(), |(_, list)| list);
        running.reads.entry(key).or_insert_with(|| list.clone());
        Ok(list)
    }

    /// All keys below `end`, by a range of the index.
    pub fn read_range(&self, running: &mut Running, end: u64) -> Result<(), Refused> {
        let sees = self.sees(running.snapshot);
        if let Some(own) = &mut running.own {
            let ends = (&0_u64.to_be_bytes()[..], Some(&end.to_be_bytes()[..]));
            let marked = self.serializable.read_keys(own, INDEX, ends, &sees);
            marked.map_err(Refused::Serialization)?;
        }
        (0..end).try_for_each(|key| self.read(running, key).map(drop))
    }

    /// Appends the transaction's number to the list of a key.
    pub fn append(&self, running: &mut Running, key: u64) -> Result<(), Refused> {
        let mut list = self.read(running, key)?;
        if running.writes.contains(&key) {
            return Ok(());
        }
        list.push(running.number);
        let slot = {
            let mut data = self.data.lock().unwrap();
            let versions = data.keys.entry(key).or_default();
            // First updater wins, and the second does not wait.
            let is_newer = |version: &Version| version.seen_at.is_none_or(|at| at > running.snapshot);
            if versions.iter().any(is_newer) {
                return Err(Refused::Concurrent);
            }
            versions.push(Version {
                writer: running.number,
                seen_at: None,
                list,
            });
            versions.len().checked_sub(2)
        };
        running.writes.insert(key);
        let (xid, sees) = (Xid(running.number), self.sees(running.snapshot));
        let Some(own) = &mut running.own else {
            return Ok(());
        };
        let marked = match slot {
            Some(slot) => self.serializable.write_row(own, xid, place(key, slot), &sees),
            None => {
                let added = self.serializable.add_rows(own, xid, TABLE, &sees);
                added.and_then(|()| {
                    self.serializable
                        .write_key(own, xid, INDEX, &key.to_be_bytes(), &sees)
                })
            }
        };
        marked.map_err(Refused::Serialization)
    }

    /// Commits, or rolls back and says why.
    pub fn commit(&self, mut running: Running) -> Result<Done, Refused> {
        let own = running.own.take().expect("it runs");
        let xid = if running.writes.is_empty() {
            Xid::INVALID
        } else {
            Xid(running.number)
        };
        if let Err(failure) = self.serializable.prepare(&own, xid) {
            running.own = Some(own);
            self.roll_back(running);
            return Err(Refused::Serialization(failure));
        }
        {
            let mut data = self.data.lock().unwrap();
            data.clock += 1;
            let now = data.clock;
            for version in data.keys.values_mut().flatten() {
                if version.writer == running.number {
                    version.seen_at = Some(now);
                }
            }
            data.ended.insert(running.number);
        }
        self.serializable.finish(own);
        Ok(Done {
            number: running.number,
            reads: running.reads,
            writes: running.writes,
        })
    }

    /// Rolls back.
    pub fn roll_back(&self, mut running: Running) {
        {
            let mut data = self.data.lock().unwrap();
            for versions in data.keys.values_mut() {
                versions.retain(|version| version.writer != running.number);
            }
        }
        if let Some(own) = running.own.take() {
            self.serializable.remove(own);
        }
    }

    /// The last list of each key.
    pub fn lists(&self) -> BTreeMap<u64, Vec<u64>> {
        let data = self.data.lock().unwrap();
        let last = |(key, versions): (&u64, &Vec<Version>)| Some((*key, versions.last()?.list.clone()));
        data.keys.iter().filter_map(last).collect()
    }
}

fn place(key: u64, slot: usize) -> MarkedRow {
    MarkedRow {
        relation: TABLE,
        block: key as u32,
        slot: slot as u16,
    }
}
