//! The binary form of `inet` and `cidr`, and their bytes in a row.
//!
//! | bytes | in the binary form | in a row |
//! |---|---|---|
//! | 1 | family: 2 for IPv4, 3 for IPv6 | – |
//! | 1 | bits of the prefix | the same |
//! | 1 | 1 for `cidr` | – |
//! | 1 | bytes of the address | – |
//! | 4 or 16 | address | the same |

use super::Inet;
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType;

/// The families' numbers in the binary form.
const IPV4: u8 = 2;
const IPV6: u8 = 3;

/// Appends the binary form.
pub fn encode_inet(value: Inet, is_cidr: bool, out: &mut Vec<u8>) {
    let family = if value.width() == 32 { IPV4 } else { IPV6 };
    out.extend_from_slice(&[family, value.bits(), u8::from(is_cidr), value.width() / 8]);
    value.push_address(out);
}

/// Reads the binary form of a value of either type.
pub fn decode_inet(bytes: &[u8], data_type: DataType) -> Result<Inet> {
    let refused = |message: String| EngineError::new(SqlState::INVALID_BINARY_REPRESENTATION, message);
    let wrong = |part: &str| refused(format!("invalid {part} in external \"{data_type}\" value"));
    let &[family, bits, _, length, ref address @ ..] = bytes else {
        return Err(refused("insufficient data left in message".to_owned()));
    };
    let width = match family {
        IPV4 => 32,
        IPV6 => 128,
        _ => return Err(wrong("address family")),
    };
    if bits > width {
        return Err(wrong("bits"));
    }
    if length != width / 8 {
        return Err(wrong("length"));
    }
    if address.len() < usize::from(length) {
        return Err(refused("insufficient data left in message".to_owned()));
    }
    let value = Inet::from_address(address, bits)
        .ok_or_else(|| refused("incorrect binary data format".to_owned()))?;
    match data_type == DataType::Cidr && !value.is_network() {
        true => Err(refused("invalid external \"cidr\" value".to_owned())
            .with_detail("Value has bits set to right of mask.")),
        false => Ok(value),
    }
}

/// Appends the bytes in a row.
pub fn write_inet(value: Inet, out: &mut Vec<u8>) {
    out.push(value.bits());
    value.push_address(out);
}

/// The value of these bytes of a row; `None` if they are damaged.
pub fn read_inet(content: &[u8]) -> Option<Inet> {
    let (bits, address) = content.split_first()?;
    Inet::from_address(address, *bits)
}

#[cfg(test)]
mod tests {
    use super::super::text::parse_inet;
    use super::*;

    #[test]
    fn binary_forms_are_checked() {
        let mut bytes = Vec::new();
        encode_inet(parse_inet("10.1.2.3/8").unwrap(), false, &mut bytes);
        assert_eq!(bytes, [2, 8, 0, 4, 10, 1, 2, 3]);
        assert_eq!(
            decode_inet(&bytes, DataType::Inet).unwrap(),
            parse_inet("10.1.2.3/8").unwrap()
        );
        let error = |bytes: &[u8], data_type| decode_inet(bytes, data_type).unwrap_err();
        assert_eq!(
            error(&bytes, DataType::Cidr).message(),
            "invalid external \"cidr\" value"
        );
        for (at, byte, part) in [(0, 4, "address family"), (1, 33, "bits"), (3, 16, "length")] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            let message = format!("invalid {part} in external \"inet\" value");
            assert_eq!(error(&changed, DataType::Inet).message(), message);
        }
        for length in 0..bytes.len() {
            assert!(decode_inet(&bytes[..length], DataType::Inet).is_err(), "{length}");
        }
        bytes.push(0);
        assert!(decode_inet(&bytes, DataType::Inet).is_err());
    }
}
