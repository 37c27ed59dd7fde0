//! The type that values of several types are brought to.

use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

/// The one type values of these types are brought to (CASE, COALESCE, IN); `None` if there is none.
pub fn common_type(types: &[DataType]) -> Option<DataType> {
    // A domain stays one only among its own: beside a literal too it is the type below.
    let is_domain = |of: &DataType| matches!(of, DataType::Domain(_));
    if types.iter().any(is_domain) && types.windows(2).any(|pair| pair[0] != pair[1]) {
        let types: Vec<DataType> = types.iter().map(|of| of.base()).collect();
        return common_type(&types);
    }
    let mut common = DataType::Unknown;
    for next in types.iter().copied() {
        common = match (common, next) {
            (DataType::Unknown, other) | (other, DataType::Unknown) => other,
            (l, r) if l == r => l,
            (l, r) if l.category() != r.category() => return None,
            (l, r) if can_cast(l, r, CastContext::Implicit) && !can_cast(r, l, CastContext::Implicit) => r,
            // Also if each becomes the other: the first stays.
            (l, r) if can_cast(r, l, CastContext::Implicit) => l,
            _ => return None,
        };
    }
    Some(if common == DataType::Unknown {
        DataType::Text
    } else {
        common
    })
}
