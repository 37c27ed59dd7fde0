//! The numbers that a session has got from sequences: what `currval` and `lastval` tell, and numbers that it has taken
//! ahead (CACHE) and not used.

use clearway_storage::{Lsn, Unsecured};

use crate::catalog::sequence::Taken;

/// A sequence that the session has used.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// The sequence's number.
    sequence: u32,
    /// The number that `currval` tells, if the session has got one.
    last: Option<i64>,
    /// The last number that it has taken.
    taken: i64,
    /// Distance of numbers that it has taken.
    increment: i64,
    /// The relation that they are of: a sequence that begins anew has another one.
    rel: u32,
    /// The position behind the record that reserves them.
    reserved_at: Lsn,
}

/// The last number of each sequence that the session has used.
#[derive(Debug, Default)]
pub(crate) struct SerialValues {
    /// The one used last in front.
    values: Vec<Known>,
}

impl SerialValues {
    /// The next of the numbers that the session has taken ahead, if there is one.
    pub(super) fn next_taken(&mut self, sequence: u32, rel: u32, increment: i64) -> Option<Unsecured<i64>> {
        let place = self.values.iter().position(|known| known.sequence == sequence)?;
        let known = self.values[place];
        if known.rel != rel || known.increment != increment || known.last? == known.taken {
            return None;
        }
        let next = known.last? + increment;
        self.values[place].last = Some(next);
        self.values[..=place].rotate_right(1);
        Some(Unsecured::new(next, known.reserved_at))
    }

    /// The session has got the first of these numbers, and has taken the others.
    pub(super) fn note(&mut self, sequence: u32, rel: u32, increment: i64, taken: Taken) {
        let known = Known {
            sequence,
            last: Some(taken.first),
            taken: taken.last,
            increment,
            rel,
            reserved_at: taken.reserved_at,
        };
        match self.values.iter().position(|known| known.sequence == sequence) {
            Some(place) => {
                self.values[..=place].rotate_right(1);
                self.values[0] = known;
            }
            None => self.values.insert(0, known),
        }
    }

    /// A sequence was set: numbers that the session has taken ahead are none any more. If the number counts as given out, it
    /// is the last one that the session has got; the order of use stays.
    pub(super) fn set(&mut self, sequence: u32, rel: u32, value: Option<i64>) {
        match self.values.iter_mut().find(|known| known.sequence == sequence) {
            Some(known) => {
                known.last = value.or(known.last);
                known.taken = known.last.unwrap_or(0);
            }
            None => self.values.extend(value.map(|value| Known {
                sequence,
                last: Some(value),
                taken: value,
                increment: 0,
                rel,
                reserved_at: Lsn(0),
            })),
        }
    }

    /// The last number of a sequence.
    pub(super) fn last_of(&self, sequence: u32) -> Option<i64> {
        let mut values = self.values.iter();
        values.find(|known| known.sequence == sequence)?.last
    }

    /// The sequence used last.
    pub(super) fn used_last(&self) -> Option<u32> {
        self.values.first().map(|known| known.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_storage::SeenCommits;

    const fn taken(first: i64, last: i64) -> Taken {
        Taken {
            first,
            last,
            reserved_at: Lsn(7),
        }
    }

    const fn one(value: i64) -> Taken {
        taken(value, value)
    }

    fn next(values: &mut SerialValues, rel: u32, increment: i64) -> Option<i64> {
        let next = values.next_taken(1, rel, increment)?;
        Some(next.noted_in(&SeenCommits::default(), Lsn(7)))
    }

    #[test]
    fn the_sequence_used_last_is_told() {
        let mut values = SerialValues::default();
        assert_eq!(values.used_last(), None);
        values.note(1, 1, 1, one(10));
        values.note(2, 2, 1, one(20));
        values.note(1, 1, 1, one(11));
        assert_eq!((values.used_last(), values.last_of(1)), (Some(1), Some(11)));
        assert_eq!(values.last_of(2), Some(20));
        values.set(2, 2, Some(30));
        assert_eq!((values.used_last(), values.last_of(2)), (Some(1), Some(30)));
    }

    #[test]
    fn numbers_taken_ahead_come_before_others() {
        let mut values = SerialValues::default();
        values.note(1, 1, 5, taken(10, 20));
        assert_eq!(next(&mut values, 1, 5), Some(15));
        assert_eq!(next(&mut values, 2, 5), None);
        assert_eq!(next(&mut values, 1, 1), None);
        assert_eq!(next(&mut values, 1, 5), Some(20));
        assert_eq!(next(&mut values, 1, 5), None);
        values.note(1, 1, 5, taken(25, 35));
        values.set(1, 1, None);
        assert_eq!((values.last_of(1), next(&mut values, 1, 5)), (Some(25), None));
    }
}
