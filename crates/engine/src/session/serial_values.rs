//! The numbers that a session has got from sequences: what `currval` and `lastval` tell.

/// The last number of each sequence that the session has used.
#[derive(Debug, Default)]
pub(crate) struct SerialValues {
    /// By the sequences' numbers, the one used last in front.
    values: Vec<(u32, i64)>,
}

impl SerialValues {
    /// The session has got a number.
    pub(super) fn note(&mut self, sequence: u32, value: i64) {
        match self.values.iter().position(|(known, _)| *known == sequence) {
            Some(place) => self.values[..=place].rotate_right(1),
            None => self.values.insert(0, (sequence, value)),
        }
        self.values[0].1 = value;
    }

    /// A sequence was set: a number that the session has got from it is this one, and the order of use stays.
    pub(super) fn set(&mut self, sequence: u32, value: i64) {
        match self.values.iter_mut().find(|(known, _)| *known == sequence) {
            Some((_, known)) => *known = value,
            None => self.values.push((sequence, value)),
        }
    }

    /// The last number of a sequence, or of the sequence used last.
    pub(super) fn last(&self, sequence: Option<u32>) -> Option<i64> {
        let found = match sequence {
            None => self.values.first(),
            Some(sequence) => self.values.iter().find(|(known, _)| *known == sequence),
        };
        found.map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_used_last_is_told() {
        let mut values = SerialValues::default();
        assert_eq!(values.last(None), None);
        values.note(1, 10);
        values.note(2, 20);
        values.note(1, 11);
        assert_eq!(values.last(None), Some(11));
        assert_eq!(values.last(Some(2)), Some(20));
        values.set(2, 30);
        assert_eq!((values.last(None), values.last(Some(2))), (Some(11), Some(30)));
    }
}
