//! The place of a row's version in its table, as a value of the rows that operators work on: a bigint.

use super::Value;

/// The bits of a place that are its slot.
const SLOT_BITS: u32 = 16;

/// The value of a place.
pub fn place_value(block: u32, slot: u16) -> Value {
    Value::Int8((i64::from(block) << SLOT_BITS) | i64::from(slot))
}

/// Block and slot of a value that [`place_value`] made.
pub fn place_of(value: &Value) -> Option<(u32, u16)> {
    let place = value.as_i64()?;
    let block = u32::try_from(place >> SLOT_BITS).ok()?;
    Some((block, (place & ((1 << SLOT_BITS) - 1)) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        for (block, slot) in [(0, 0), (u32::MAX, u16::MAX), (7, 65_000)] {
            assert_eq!(place_of(&place_value(block, slot)), Some((block, slot)));
        }
        assert_eq!(place_of(&Value::Null), None);
    }
}
