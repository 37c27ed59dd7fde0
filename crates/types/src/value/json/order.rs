//! The order of `jsonb` values, and their bytes in an index key.
//!
//! Values of two kinds are ordered by kind: null, strings, numbers, false, true, arrays, objects. Of two arrays or objects
//! the one with more entries is above; of as many, the first entry that differs decides, of objects a key before its
//! value. A value that is no array or object counts at the top as an array of itself, and is below the array that has it
//! alone. So, as in PostgreSQL, an empty array at the top is below every value.
//!
//! A key is made such that its bytes order the same:
//!
//! | part | bytes |
//! |---|---|
//! | kind | its place in the order, from `01` |
//! | number, string | as in a column of that type |
//! | array, object | the count in 4 bytes, big-endian, then the entries |
//! | a value at the top that is no array or object | kind array, count 1, `00`, itself; an array has `01` there |

use std::cmp::Ordering;

use super::{JsonbRef, Kind};
use crate::stack;

impl JsonbRef<'_> {
    /// The order of two values.
    pub fn order(self, other: JsonbRef<'_>) -> Ordering {
        let entries = |value: JsonbRef<'_>| match value.is_scalar() {
            true => (Kind::Array, 1, false),
            false => (value.kind(), value.count(), value.kind() == Kind::Array),
        };
        match (self.is_scalar(), other.is_scalar()) {
            (true, true) => scalar_order(self, other),
            (false, false) => inner_order(self, other),
            _ => entries(self).cmp(&entries(other)),
        }
    }

    /// Appends its bytes in a key.
    pub fn encode_key(self, number: fn(&crate::value::Numeric, &mut Vec<u8>), key: &mut Vec<u8>) {
        match self.kind() {
            Kind::Object => encode_inner(self, number, key),
            Kind::Array => {
                push_count(Kind::Array, self.count(), key);
                key.push(1);
                for element in self.elements() {
                    encode_inner(element, number, key);
                }
            }
            _ => {
                push_count(Kind::Array, 1, key);
                key.push(0);
                encode_inner(self, number, key);
            }
        }
    }
}

fn scalar_order(left: JsonbRef<'_>, right: JsonbRef<'_>) -> Ordering {
    left.kind().cmp(&right.kind()).then_with(|| match left.kind() {
        Kind::String => left.text().cmp(&right.text()),
        Kind::Number => match (left.number(), right.number()) {
            (Some(left), Some(right)) => left.compare(&right),
            _ => Ordering::Equal,
        },
        _ => Ordering::Equal,
    })
}

fn inner_order(left: JsonbRef<'_>, right: JsonbRef<'_>) -> Ordering {
    if left.is_scalar() || right.is_scalar() {
        return scalar_order(left, right);
    }
    let heads = (left.kind(), left.count()).cmp(&(right.kind(), right.count()));
    if heads.is_ne() {
        return heads;
    }
    stack::checkpoint(|| {
        if left.kind() == Kind::Array {
            let pairs = left.elements().zip(right.elements());
            return first_difference(pairs.map(|(left, right)| inner_order(left, right)));
        }
        let pairs = left.members().zip(right.members());
        first_difference(pairs.map(|((left_key, left), (right_key, right))| {
            left_key.cmp(right_key).then_with(|| inner_order(left, right))
        }))
    })
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn push_count(kind: Kind, count: usize, key: &mut Vec<u8>) {
    key.push(kind as u8 + 1);
    key.extend_from_slice(&(count as u32).to_be_bytes());
}

fn encode_inner(value: JsonbRef<'_>, number: fn(&crate::value::Numeric, &mut Vec<u8>), key: &mut Vec<u8>) {
    match value.kind() {
        kind @ (Kind::Null | Kind::False | Kind::True) => key.push(kind as u8 + 1),
        Kind::String => {
            key.push(Kind::String as u8 + 1);
            push_text(value.text().unwrap_or_default(), key);
        }
        Kind::Number => {
            key.push(Kind::Number as u8 + 1);
            if let Some(value) = value.number() {
                number(&value, key);
            }
        }
        Kind::Array => stack::checkpoint(|| {
            push_count(Kind::Array, value.count(), key);
            value
                .elements()
                .for_each(|element| encode_inner(element, number, key));
        }),
        Kind::Object => stack::checkpoint(|| {
            push_count(Kind::Object, value.count(), key);
            for (name, value) in value.members() {
                push_text(name, key);
                encode_inner(value, number, key);
            }
        }),
    }
}

fn push_text(text: &str, key: &mut Vec<u8>) {
    key.extend_from_slice(text.as_bytes());
    key.push(0);
}
