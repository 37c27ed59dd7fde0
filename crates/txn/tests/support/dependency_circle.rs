//! Circles of dependencies among transactions that append their numbers to lists.
//!
//! A transaction that has read a list comes behind its last number, and before the next one that is appended (the next
//! number of the list as it is at the end). The history has a serial order if these have no circle.

use std::collections::{BTreeMap, BTreeSet};

/// A transaction that has committed: what it read of each key, and which keys it wrote.
#[derive(Debug, Clone)]
pub struct Done {
    pub number: u64,
    pub reads: BTreeMap<u64, Vec<u64>>,
    pub writes: BTreeSet<u64>,
}

/// A circle of dependencies among committed transactions, if there is one.
pub fn circle(done: &[Done], lists: &BTreeMap<u64, Vec<u64>>) -> Option<Vec<u64>> {
    let mut behind: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut before = |a: u64, b: u64| {
        if a != b {
            behind.entry(a).or_default().insert(b);
        }
    };
    let empty = Vec::new();
    for transaction in done {
        for (key, read) in &transaction.reads {
            let list = lists.get(key).unwrap_or(&empty);
            assert!(
                list.starts_with(read),
                "key {key}: {read:?} was read, {list:?} is there"
            );
            // Its last writer comes before the reader, and the reader before the next one.
            if let Some(writer) = read.last() {
                before(*writer, transaction.number);
            }
            if let Some(next) = list.get(read.len()) {
                before(transaction.number, *next);
            }
        }
    }
    for list in lists.values() {
        list.windows(2).for_each(|pair| before(pair[0], pair[1]));
    }
    let mut state: BTreeMap<u64, bool> = BTreeMap::new();
    done.iter().find_map(|transaction| {
        let mut path = Vec::new();
        visit(transaction.number, &behind, &mut state, &mut path).then_some(path)
    })
}

/// Depth first; `state`: false while it is on the path.
fn visit(
    number: u64,
    behind: &BTreeMap<u64, BTreeSet<u64>>,
    state: &mut BTreeMap<u64, bool>,
    path: &mut Vec<u64>,
) -> bool {
    match state.get(&number) {
        Some(true) => return false,
        Some(false) => {
            path.push(number);
            return true;
        }
        None => {}
    }
    state.insert(number, false);
    path.push(number);
    for next in behind.get(&number).into_iter().flatten() {
        if visit(*next, behind, state, path) {
            return true;
        }
    }
    path.pop();
    state.insert(number, true);
    false
}
