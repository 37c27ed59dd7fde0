//! `inet` and `cidr`: an address of a host or a network, with the length of its network's prefix.
//!
//! Both are an [`Inet`]; one of `cidr` has no bit set behind its prefix. An address is used as a number with as many bits
//! as its family has (32 or 128), so that each operation is one of both families.
//!
//! # Order
//!
//! IPv4 comes before IPv6. In a family the addresses come first by the bits of the shorter of both prefixes, then by the
//! length of the prefix, then by all bits. That is the order of (network, length, address), where a network is the address
//! without the bits behind its prefix: if two prefixes agree as far as the shorter one goes, then the longer network is
//! greater or the same, and its length decides as it should.
//!
//! | module | job |
//! |---|---|
//! | `text` | the text forms |
//! | `binary` | the binary form, and the bytes in a row |
//! | `mac` | the text forms of `macaddr` and `macaddr8` |

pub mod binary;
pub mod mac;
pub mod text;

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inet {
    address: IpAddr,
    bits: u8,
}

impl Inet {
    /// An address with a prefix of so many bits; `None` if the address has fewer.
    pub fn new(address: IpAddr, bits: u8) -> Option<Inet> {
        let made = Inet { address, bits };
        (bits <= made.width()).then_some(made)
    }

    /// The address alone: its prefix is all of it.
    pub fn host(address: IpAddr) -> Inet {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Inet { address, bits }
    }

    /// The address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The bits of the prefix.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// The bits of an address of its family.
    pub fn width(self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The address as a number.
    pub fn number(self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    /// The same with the lowest bits of this number as its address.
    pub fn with_number(self, number: u128) -> Inet {
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
        };
        Inet { address, ..self }
    }

    /// The same with a prefix of so many bits; `None` if the address has fewer.
    pub fn with_bits(self, bits: u8) -> Option<Inet> {
        Inet::new(self.address, bits)
    }

    /// The greatest number of an address of its family.
    pub fn number_max(self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }

    /// The bits behind a prefix of so many.
    pub fn host_mask(self, bits: u8) -> u128 {
        self.number_max().checked_shr(u32::from(bits)).unwrap_or(0)
    }

    /// The same without the bits behind its prefix: a value of `cidr`.
    pub fn network(self) -> Inet {
        self.with_number(self.number() & !self.host_mask(self.bits))
    }

    /// True if no bit behind its prefix is set.
    pub fn is_network(self) -> bool {
        self.number() & self.host_mask(self.bits) == 0
    }

    /// True if both are of one family.
    pub fn same_family(self, other: Inet) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
    }

    /// True if both are of one family and agree in this many bits.
    pub fn agrees(self, other: Inet, bits: u8) -> bool {
        self.same_family(other) && (self.number() ^ other.number()) & !self.host_mask(bits) == 0
    }

    /// The bits from the front in which the two agree, of addresses of one family.
    pub fn common_bits(self, other: Inet) -> u8 {
        let differ = self.number() ^ other.number();
        (differ.leading_zeros() - (128 - u32::from(self.width()))) as u8
    }

    /// The order of two.
    pub fn compare(self, other: Inet) -> Ordering {
        let key = |of: Inet| (of.width(), of.network().number(), of.bits, of.number());
        key(self).cmp(&key(other))
    }

    /// Appends bytes that order as values do; no value's are the beginning of another's.
    pub fn push_key(self, key: &mut Vec<u8>) {
        key.push(self.width());
        self.network().push_address(key);
        key.push(self.bits);
        self.push_address(key);
    }

    /// Appends the bytes of the address, the first one of its text in front.
    fn push_address(self, out: &mut Vec<u8>) {
        match self.address {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        }
    }

    /// The address of these bytes: 4 or 16.
    fn from_address(bytes: &[u8], bits: u8) -> Option<Inet> {
        let address = match bytes.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
            16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
            _ => return None,
        };
        Inet::new(address, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::text::parse_inet;
    use super::*;

    #[test]
    fn networks_come_before_what_is_in_them() {
        let ordered = [
            "0.0.0.0/0",
            "1.2.3.4/0",
            "10.0.0.0/8",
            "10.1.2.3/8",
            "10.0.0.0/9",
            "10.0.0.0",
            "10.1.0.0/16",
            "11.0.0.0/8",
            "::/0",
            "::/128",
            "::1/127",
            "::1",
        ];
        let values = ordered.map(|text| parse_inet(text).unwrap());
        for pair in values
            .windows(2)
            .filter(|pair| pair[0].address != pair[1].address)
        {
            let keys = [pair[0], pair[1]].map(|value| {
                let mut key = Vec::new();
                value.push_key(&mut key);
                key
            });
            assert_eq!(pair[0].compare(pair[1]), keys[0].cmp(&keys[1]), "{pair:?}");
        }
        for pair in values[..9].windows(2) {
            assert_eq!(pair[0].compare(pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn bits_in_common_are_counted_in_both_families() {
        let common = |left, right| parse_inet(left).unwrap().common_bits(parse_inet(right).unwrap());
        assert_eq!(common("10.0.0.0", "10.0.0.0"), 32);
        assert_eq!(common("10.0.0.0", "10.0.0.1"), 31);
        assert_eq!(common("0.0.0.0", "128.0.0.0"), 0);
        assert_eq!(common("::", "::"), 128);
        assert_eq!(common("8000::", "::"), 0);
    }
}
