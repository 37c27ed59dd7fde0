//! The place of a row that is not there among rows that come in order.

use std::cmp::Ordering;

use crate::aggregate::AggregateCall;
use crate::sort_key::SortKey;
use crate::value::Value;

/// The place of a row.
#[derive(Debug, Clone, Default)]
pub(in crate::aggregate) struct Hypothetical {
    pub(in crate::aggregate) direct: Vec<Value>,
    /// Rows before it.
    pub(in crate::aggregate) before: i64,
    /// Rows that equal it.
    pub(in crate::aggregate) equal: i64,
    /// Different rows before it, and the last of them.
    pub(in crate::aggregate) different: i64,
    pub(in crate::aggregate) last: Vec<Value>,
}

impl Hypothetical {
    pub(in crate::aggregate) fn take(&mut self, call: &AggregateCall, keys: &[Value]) {
        match compare_rows(keys, &self.direct, &call.order) {
            Ordering::Less => {
                self.before += 1;
                if self.last.is_empty() || compare_rows(&self.last, keys, &call.order).is_ne() {
                    self.different += 1;
                    self.last = keys.to_vec();
                }
            }
            Ordering::Equal => self.equal += 1,
            Ordering::Greater => {}
        }
    }
}

fn compare_rows(left: &[Value], right: &[Value], order: &[SortKey]) -> Ordering {
    let pairs = left.iter().zip(right).zip(order);
    pairs
        .map(|((left, right), key)| key.compare(left, right))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}
