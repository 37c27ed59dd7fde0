//! The text forms of `inet` and `cidr`.
//!
//! | type | input | output |
//! |---|---|---|
//! | `inet` | an address, perhaps with `/` and the bits of its prefix; of IPv4 fewer bytes if the prefix needs no more | the prefix only if it is not the whole address |
//! | `cidr` | the same; without a prefix the bytes that are there, or the old classes of networks, tell it; IPv4 in hexadecimal digits too | always with the prefix |
//!
//! IPv6 is read by the standard library, where the last 32 bits may be written as up to four decimal bytes. It is written
//! by it as well, but for those addresses that PostgreSQL shows with an IPv4 address at the end.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Inet;
use crate::error::{EngineError, Result, SqlState, shown};

/// Reads an `inet`.
pub fn parse_inet(text: &str) -> Result<Inet> {
    read(text, false).ok_or_else(|| invalid("input syntax for type inet:", text))
}

/// Reads a `cidr`.
pub fn parse_cidr(text: &str) -> Result<Inet> {
    let value = read(text, true).ok_or_else(|| invalid("input syntax for type cidr:", text))?;
    match value.is_network() {
        true => Ok(value),
        false => Err(invalid("cidr value:", text).with_detail("Value has bits set to right of mask.")),
    }
}

#[cold]
fn invalid(what: &str, text: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid {what} \"{}\"", shown(text)),
    )
}

fn read(text: &str, is_cidr: bool) -> Option<Inet> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    if address.contains(':') {
        let bits = match bits {
            Some(bits) if bits.len() > 1 && bits.starts_with('0') => return None,
            Some(bits) => prefix(bits, 128)?,
            None => 128,
        };
        return Inet::new(IpAddr::V6(ipv6(address)?), bits);
    }
    let bits = bits.map(|bits| prefix(bits, 32).ok_or(())).transpose().ok()?;
    let hexadecimal = address
        .strip_prefix("0x")
        .or_else(|| address.strip_prefix("0X"))
        .filter(|digits| is_cidr && !digits.is_empty());
    let bytes = match hexadecimal {
        Some(digits) => pairs(digits)?,
        None => decimals(address, is_cidr)?,
    };
    let bits = match bits {
        Some(bits) if is_cidr || usize::from(bits / 8) <= bytes.len() => bits,
        None if is_cidr => bits_of_class(&bytes),
        None if bytes.len() == 4 => 32,
        _ => return None,
    };
    let mut octets = [0; 4];
    octets[..bytes.len()].copy_from_slice(&bytes);
    Inet::new(IpAddr::from(octets), bits)
}

/// The bits of a prefix, at most `max`.
fn prefix(text: &str, max: u8) -> Option<u8> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|bits| is_number && *bits <= max)
}

/// One to four bytes between points. Only a `cidr` may not end with a point.
fn decimals(text: &str, is_cidr: bool) -> Option<Vec<u8>> {
    let text = match text.strip_suffix('.') {
        Some(text) if !is_cidr => text,
        _ => text,
    };
    let byte = |part: &str| prefix(part, u8::MAX);
    let bytes: Vec<u8> = text.splitn(5, '.').map(byte).collect::<Option<_>>()?;
    (bytes.len() <= 4).then_some(bytes)
}

/// One to four bytes in pairs of hexadecimal digits; the second one of the last pair is 0 if it is missing.
fn pairs(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| Some(digit.to_digit(16)? as u8))
        .collect::<Option<_>>()?;
    let bytes = digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0));
    (digits.len() <= 8).then(|| bytes.collect())
}

/// The bits of a network that is given by these bytes alone: those of its class, or all that are there.
fn bits_of_class(bytes: &[u8]) -> u8 {
    let of_class = match bytes[0] {
        240.. => 32,
        // Addresses of groups: the class has four bits.
        224 if bytes.len() == 1 => return 4,
        224.. => 8,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    of_class.max(bytes.len() as u8 * 8)
}

/// An IPv6 address, whose last 32 bits may be up to four decimal bytes.
fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let (front, last) = text.rsplit_once(':')?;
    if !last.contains('.') {
        return text.parse().ok();
    }
    let starts_with_zero = |part: &str| part.len() > 1 && part.starts_with('0');
    if last.split('.').any(starts_with_zero) {
        return None;
    }
    let mut octets = [0; 4];
    let bytes = decimals(last, true)?;
    octets[..bytes.len()].copy_from_slice(&bytes);
    format!("{front}:{}", Ipv4Addr::from(octets)).parse().ok()
}

/// Appends the text of an `inet`.
pub fn format_inet(value: Inet, out: &mut String) {
    match value.bits() == value.width() {
        true => format_host(value, out),
        false => format_with_bits(value, out),
    }
}

/// Appends the address and the bits of its prefix: the text of a `cidr`.
pub fn format_with_bits(value: Inet, out: &mut String) {
    format_host(value, out);
    let _ = write!(out, "/{}", value.bits());
}

/// Appends the address.
pub fn format_host(value: Inet, out: &mut String) {
    let address = value.address();
    let ends_as_ipv4 = match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => matches!(address.segments(), [0, 0, 0, 0, 0, 0, 1..=u16::MAX, _]),
    };
    let _ = match ends_as_ipv4 {
        true => write!(out, "::{}", Ipv4Addr::from_bits(value.number() as u32)),
        false => write!(out, "{address}"),
    };
}

/// Appends the short text of a `cidr`: without the bytes behind its prefix.
pub fn format_short(value: Inet, out: &mut String) {
    match value.address() {
        IpAddr::V4(address) => {
            let bytes = usize::from(value.bits()).div_ceil(8).max(1);
            let octets = address.octets().map(|octet| octet.to_string());
            out.push_str(&octets[..bytes].join("."));
        }
        IpAddr::V6(address) if value.bits() > 0 => format_short_ipv6(address, value.bits(), out),
        IpAddr::V6(_) => out.push_str("::"),
    }
    let _ = write!(out, "/{}", value.bits());
}

/// The words of the prefix, two at least, of which the longest run of zeros is left out, even if it is a single one. After
/// six zeros, after five and `ffff`, and, as PostgreSQL's, in some cases after seven, what is left is decimal.
fn format_short_ipv6(address: Ipv6Addr, bits: u8, out: &mut String) {
    let words = usize::from(bits).div_ceil(16).max(2);
    let all = address.segments();
    let (start, length) = longest_zeros(&all[..words]);
    let last = address.octets();
    let is_ipv4 = start == 0
        && length != words
        && match length {
            6 => true,
            5 => all[5] == 0xffff,
            7 => last[14] != 0 && last[15] != 1,
            _ => false,
        };
    let zeros = start..start + length;
    let begin = out.len();
    for (at, word) in all[..words].iter().enumerate() {
        if zeros.contains(&at) {
            if at == start {
                out.push(':');
            }
            if at == words - 1 {
                out.push(':');
            }
            continue;
        }
        let _ = match is_ipv4 && at > 5 {
            true => {
                out.push(if at == 6 { ':' } else { '.' });
                match at == 7 && bits <= 120 {
                    true => write!(out, "{}", word >> 8),
                    false => write!(out, "{}.{}", word >> 8, word & 0xff),
                }
            }
            false if out.len() > begin => write!(out, ":{word:x}"),
            false => write!(out, "{word:x}"),
        };
    }
}

/// Start and length of the longest run of zeros, of the first one if several are as long.
fn longest_zeros(words: &[u16]) -> (usize, usize) {
    let mut longest = (0, 0);
    let mut length = 0;
    for (at, word) in words.iter().enumerate() {
        length = if *word == 0 { length + 1 } else { 0 };
        if length > longest.1 {
            longest = (at + 1 - length, length);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(value: Inet, form: fn(Inet, &mut String)) -> String {
        let mut out = String::new();
        form(value, &mut out);
        out
    }

    /// Each as PostgreSQL 15 reads and writes it.
    #[test]
    fn inets_are_read_and_written() {
        for (text, written) in [
            ("1.2.3.4", "1.2.3.4"),
            ("1.2.3.4.", "1.2.3.4"),
            ("1.2.3/24", "1.2.3.0/24"),
            ("1.2.3./24", "1.2.3.0/24"),
            ("1.2.3/31", "1.2.3.0/31"),
            ("10/7", "10.0.0.0/7"),
            ("01.02.03.004", "1.2.3.4"),
            ("1.2.3.4/08", "1.2.3.4/8"),
            ("1.2.3.4/32", "1.2.3.4"),
            ("0/0", "0.0.0.0/0"),
            ("::", "::"),
            ("::1", "::1"),
            ("::1.2.3.4", "::1.2.3.4"),
            ("::0.0.1.2", "::102"),
            ("::0.0.0.2", "::2"),
            ("::1:0", "::0.1.0.0"),
            ("::1:0:1", "::1:0:1"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("::ffff:0:0", "::ffff:0.0.0.0"),
            ("::fffe:1.2.3.4", "::fffe:102:304"),
            ("1::/0", "1::/0"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
            ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
            ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"),
            ("1:2:3:4:5:6:1.2.3/20", "1:2:3:4:5:6:102:300/20"),
            ("ABCD::/128", "abcd::"),
        ] {
            assert_eq!(made(parse_inet(text).unwrap(), format_inet), written, "{text}");
        }
        for text in [
            "",
            "1.2.3",
            "1.2.3.",
            "1.2.3/32",
            "1.2.3.4/",
            "1.2.3.4/33",
            "1.2.3.256",
            " 1.2.3.4",
            "1.2.3.4 ",
            "0x10/8",
            "/8",
            "1.2.3.4.5/32",
            "1..2/8",
            "a",
            "0",
            "./0",
            "1::/08",
            "1::/129",
            "00001::",
            "::/",
            ":1",
            "1:2",
            "1::2::3",
            "1:2:3:4::5:6:7:8",
            "::1.2.3.04",
            "::%eth0",
            "::1/64/3",
            "+1.2.3.4",
            "1.2.3.4/+8",
        ] {
            assert!(parse_inet(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cidrs_are_read_and_written() {
        for (text, written, short) in [
            ("1.2.3.4", "1.2.3.4/32", "1.2.3.4/32"),
            ("10", "10.0.0.0/8", "10/8"),
            ("128", "128.0.0.0/16", "128.0/16"),
            ("192.168", "192.168.0.0/24", "192.168.0/24"),
            ("224", "224.0.0.0/4", "224/4"),
            ("224.1", "224.1.0.0/16", "224.1/16"),
            ("225", "225.0.0.0/8", "225/8"),
            ("240", "240.0.0.0/32", "240.0.0.0/32"),
            ("0x0a0/8", "10.0.0.0/8", "10/8"),
            ("0X0A0B0C0D", "10.11.12.13/32", "10.11.12.13/32"),
            ("10/24", "10.0.0.0/24", "10.0.0/24"),
            ("0/0", "0.0.0.0/0", "0/0"),
            ("::/0", "::/0", "::/0"),
            ("::/128", "::/128", "::/128"),
            ("2001:db8::/32", "2001:db8::/32", "2001:db8/32"),
            ("2001:db8:0:1::/64", "2001:db8:0:1::/64", "2001:db8::1/64"),
            ("1:2:0::/48", "1:2::/48", "1:2::/48"),
            ("1:2:3::/48", "1:2:3::/48", "1:2:3/48"),
            ("ff00::/8", "ff00::/8", "ff00::/8"),
            ("::ffff:1.2.3.0/120", "::ffff:1.2.3.0/120", "::ffff:1.2.3/120"),
            ("::1.2.0.0/112", "::1.2.0.0/112", "::1.2/112"),
            ("::0.0.1.2/127", "::102/127", ":.1.2/127"),
            ("1:2:3:4:5:6:7:0/112", "1:2:3:4:5:6:7:0/112", "1:2:3:4:5:6:7/112"),
        ] {
            let value = parse_cidr(text).unwrap();
            assert_eq!(made(value, format_with_bits), written, "{text}");
            assert_eq!(made(value, format_short), short, "{text}");
        }
        for text in [
            "",
            "1.",
            "1.2.",
            "1.2.3.4.",
            "1/33",
            "0x",
            "0xFFFFFFFFFF",
            "256",
            "0xg",
        ] {
            assert!(parse_cidr(text).is_err(), "{text}");
        }
        for text in ["1.2.3.4/24", "1.2/8", "::1/64"] {
            let error = parse_cidr(text).unwrap_err();
            assert_eq!(error.message(), format!("invalid cidr value: \"{text}\""));
        }
    }
}
