//! Values at known places of an order, and the most frequent one.

use crate::aggregate::AggregateCall;
use crate::value::{ArrayValue, Value, compare};

/// The place of one percentile: the row with `first` as its number, and how much of the way to the next row it is.
#[derive(Debug, Clone)]
pub(in crate::aggregate) struct Place {
    pub(in crate::aggregate) first: i64,
    pub(in crate::aggregate) beyond: f64,
    pub(in crate::aggregate) low: Value,
    pub(in crate::aggregate) high: Value,
}

/// The percentiles that a call wants.
#[derive(Debug, Clone)]
pub(in crate::aggregate) struct Percentiles {
    /// In the order of the fractions; `None` for a fraction that is NULL.
    pub(in crate::aggregate) places: Vec<Option<Place>>,
    /// The places by the number of the first row that they need, and how many of them no row can be for any more.
    pub(in crate::aggregate) by_row: Vec<usize>,
    pub(in crate::aggregate) done: usize,
    /// The array of fractions, whose shape the result has.
    pub(in crate::aggregate) fractions: Option<Box<ArrayValue>>,
}

impl Percentiles {
    /// Takes the `number`-th row of the order.
    pub(in crate::aggregate) fn take(&mut self, number: i64, value: &Value) {
        for at in self.done..self.by_row.len() {
            let Some(place) = &mut self.places[self.by_row[at]] else {
                continue;
            };
            if place.first > number {
                break;
            }
            if place.first == number {
                place.low = value.clone();
            }
            if place.beyond > 0.0 && place.first + 1 == number {
                place.high = value.clone();
            }
            if place.first + i64::from(place.beyond > 0.0) <= number && at == self.done {
                self.done += 1;
            }
        }
    }

    /// The bytes that it has on the heap, without the values and the array of fractions.
    pub(in crate::aggregate) fn heap_bytes(&self) -> usize {
        size_of::<Percentiles>() + self.places.len() * (size_of::<Option<Place>>() + size_of::<usize>())
    }
}

/// The most frequent value of an order; of several, the first.
#[derive(Debug, Clone, Default)]
pub(in crate::aggregate) struct Mode {
    pub(in crate::aggregate) best: Value,
    best_rows: u64,
    last: Value,
    last_rows: u64,
}

impl Mode {
    pub(in crate::aggregate) fn take(&mut self, call: &AggregateCall, value: &Value) {
        if self.last_rows == 0 || compare(&self.last, value, call.argument_types[0]).is_ne() {
            self.last = value.clone();
            self.last_rows = 0;
        }
        self.last_rows += 1;
        if self.last_rows > self.best_rows {
            if self.last_rows == 1 || compare(&self.best, value, call.argument_types[0]).is_ne() {
                self.best = self.last.clone();
            }
            self.best_rows = self.last_rows;
        }
    }
}
