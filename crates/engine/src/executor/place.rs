//! The place of a table's row as a value of a row that operators work on.

use clearway_sql::value::Value;
use clearway_storage::heap::Tid;

/// The bits of a place that are its slot.
const SLOT_BITS: u32 = 16;

/// A place as a value.
pub(crate) fn place_value(tid: Tid) -> Value {
    Value::Int8((i64::from(tid.block) << SLOT_BITS) | i64::from(tid.slot))
}

/// The place of a value that [`place_value`] made.
pub(crate) fn place_of(value: &Value) -> Option<Tid> {
    let place = value.as_i64()?;
    Some(Tid {
        block: u32::try_from(place >> SLOT_BITS).ok()?,
        slot: (place & ((1 << SLOT_BITS) - 1)) as u16,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        for tid in [
            Tid { block: 0, slot: 0 },
            Tid {
                block: u32::MAX,
                slot: u16::MAX,
            },
            Tid {
                block: 7,
                slot: 65_000,
            },
        ] {
            assert_eq!(place_of(&place_value(tid)), Some(tid));
        }
        assert_eq!(place_of(&Value::Null), None);
    }
}
