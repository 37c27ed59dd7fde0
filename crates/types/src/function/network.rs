//! Functions and operators of `inet` and `cidr`.
//!
//! A value of `cidr` is one of `inet` wherever a function does not take it as it is. Addresses are added to and subtracted
//! from as numbers with the bits of their family; what leaves it is an error.

use super::int;
use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Bool, Cidr, Inet as Address, Int4, Int8, Text};
use crate::value::network::text::{format_host, format_inet, format_short, format_with_bits};
use crate::value::{Inet, Value};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(598, "abbrev", &[Address], Text, Pure(|x| written(x, format_inet))),
    row(599, "abbrev", &[Cidr], Text, Pure(|x| written(x, format_short))),
    row(605, "set_masklen", &[Address, Int4], Address, Pure(set_masklen)),
    row(635, "set_masklen", &[Cidr, Int4], Cidr, Pure(set_masklen_of_cidr)),
    row(683, "network", &[Address], Cidr, Pure(network)),
    row(696, "netmask", &[Address], Address, Pure(netmask)),
    row(697, "masklen", &[Address], Int4, Pure(masklen)),
    row(698, "broadcast", &[Address], Address, Pure(broadcast)),
    row(699, "host", &[Address], Text, Pure(|x| written(x, format_host))),
    row(711, "family", &[Address], Int4, Pure(family)),
    row(
        730,
        "text",
        &[Address],
        Text,
        Pure(|x| written(x, format_with_bits)),
    ),
    row(1362, "hostmask", &[Address], Address, Pure(hostmask)),
    row(1715, "cidr", &[Address], Cidr, Pure(network)),
    row(926, "network_cmp", &[Address, Address], Int4, Pure(order)),
    row(927, "network_sub", &[Address, Address], Bool, Pure(is_within)).operator("<<"),
    row(
        928,
        "network_subeq",
        &[Address, Address],
        Bool,
        Pure(is_within_or_equal),
    )
    .operator("<<="),
    row(929, "network_sup", &[Address, Address], Bool, Pure(contains)).operator(">>"),
    row(
        930,
        "network_supeq",
        &[Address, Address],
        Bool,
        Pure(contains_or_equals),
    )
    .operator(">>="),
    row(3551, "network_overlap", &[Address, Address], Bool, Pure(overlaps)).operator("&&"),
    row(3562, "network_larger", &[Address, Address], Address, Pure(larger)),
    row(
        3563,
        "network_smaller",
        &[Address, Address],
        Address,
        Pure(smaller),
    ),
    row(2627, "inetnot", &[Address], Address, Pure(not)).operator("~"),
    row(2628, "inetand", &[Address, Address], Address, Pure(and)).operator("&"),
    row(2629, "inetor", &[Address, Address], Address, Pure(or)).operator("|"),
    row(2630, "inetpl", &[Address, Int8], Address, Pure(plus)).operator("+"),
    row(2631, "int8pl_inet", &[Int8, Address], Address, Pure(added_to)).operator("+"),
    row(2632, "inetmi_int8", &[Address, Int8], Address, Pure(minus)).operator("-"),
    row(2633, "inetmi", &[Address, Address], Int8, Pure(distance)).operator("-"),
    row(4063, "inet_merge", &[Address, Address], Cidr, Pure(merge)),
    row(
        4071,
        "inet_same_family",
        &[Address, Address],
        Bool,
        Pure(is_same_family),
    ),
];

fn inet(value: &Value) -> Result<Inet> {
    match value {
        Value::Inet(inet) | Value::Cidr(inet) => Ok(*inet),
        other => Err(EngineError::internal(format!("{other:?} is used as an address"))),
    }
}

fn both(arguments: &[Value]) -> Result<(Inet, Inet)> {
    Ok((inet(&arguments[0])?, inet(&arguments[1])?))
}

fn written(arguments: &[Value], form: fn(Inet, &mut String)) -> Result<Value> {
    let mut text = String::new();
    form(inet(&arguments[0])?, &mut text);
    Ok(Value::text(text))
}

fn refused(state: SqlState, message: impl Into<String>) -> EngineError {
    EngineError::new(state, message.into())
}

/// The address of an argument with as many bits of prefix as the next one says; −1 means all.
fn remasked(arguments: &[Value]) -> Result<Inet> {
    let (value, bits) = (inet(&arguments[0])?, int(&arguments[1])?);
    let wanted = match bits {
        -1 => Some(value.width()),
        bits => u8::try_from(bits).ok(),
    };
    wanted.and_then(|bits| value.with_bits(bits)).ok_or_else(|| {
        refused(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid mask length: {bits}"),
        )
    })
}

fn set_masklen(arguments: &[Value]) -> Result<Value> {
    remasked(arguments).map(Value::Inet)
}

fn set_masklen_of_cidr(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Cidr(remasked(arguments)?.network()))
}

fn network(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Cidr(inet(&arguments[0])?.network()))
}

/// An address of the same family, whose prefix is all of it.
fn whole(like: Inet, number: u128) -> Value {
    Value::Inet(Inet::host(like.with_number(number).address()))
}

fn netmask(arguments: &[Value]) -> Result<Value> {
    let value = inet(&arguments[0])?;
    Ok(whole(value, !value.host_mask(value.bits())))
}

fn hostmask(arguments: &[Value]) -> Result<Value> {
    let value = inet(&arguments[0])?;
    Ok(whole(value, value.host_mask(value.bits())))
}

fn broadcast(arguments: &[Value]) -> Result<Value> {
    let value = inet(&arguments[0])?;
    Ok(Value::Inet(
        value.with_number(value.number() | value.host_mask(value.bits())),
    ))
}

fn masklen(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Int4(i32::from(inet(&arguments[0])?.bits())))
}

fn family(arguments: &[Value]) -> Result<Value> {
    let is_short = inet(&arguments[0])?.address().is_ipv4();
    Ok(Value::Int4(if is_short { 4 } else { 6 }))
}

fn order(arguments: &[Value]) -> Result<Value> {
    let (left, right) = both(arguments)?;
    Ok(Value::Int4(left.compare(right) as i32))
}

fn larger(arguments: &[Value]) -> Result<Value> {
    let (left, right) = both(arguments)?;
    Ok(Value::Inet(if left.compare(right).is_gt() {
        left
    } else {
        right
    }))
}

fn smaller(arguments: &[Value]) -> Result<Value> {
    let (left, right) = both(arguments)?;
    Ok(Value::Inet(if left.compare(right).is_lt() {
        left
    } else {
        right
    }))
}

/// True if the network of `inner` is in that of `outer`, or is the same.
fn holds(outer: Inet, inner: Inet) -> bool {
    outer.bits() <= inner.bits() && outer.agrees(inner, outer.bits())
}

fn is_within(arguments: &[Value]) -> Result<Value> {
    let (inner, outer) = both(arguments)?;
    Ok(Value::Bool(holds(outer, inner) && outer.bits() < inner.bits()))
}

fn is_within_or_equal(arguments: &[Value]) -> Result<Value> {
    let (inner, outer) = both(arguments)?;
    Ok(Value::Bool(holds(outer, inner)))
}

fn contains(arguments: &[Value]) -> Result<Value> {
    let (outer, inner) = both(arguments)?;
    Ok(Value::Bool(holds(outer, inner) && outer.bits() < inner.bits()))
}

fn contains_or_equals(arguments: &[Value]) -> Result<Value> {
    let (outer, inner) = both(arguments)?;
    Ok(Value::Bool(holds(outer, inner)))
}

fn overlaps(arguments: &[Value]) -> Result<Value> {
    let (left, right) = both(arguments)?;
    Ok(Value::Bool(holds(left, right) || holds(right, left)))
}

fn is_same_family(arguments: &[Value]) -> Result<Value> {
    let (left, right) = both(arguments)?;
    Ok(Value::Bool(left.same_family(right)))
}

/// The smallest network that holds those of both.
fn merge(arguments: &[Value]) -> Result<Value> {
    let (left, right) = both(arguments)?;
    if !left.same_family(right) {
        return Err(refused(
            SqlState::INVALID_PARAMETER_VALUE,
            "cannot merge addresses from different families",
        ));
    }
    let bits = left.common_bits(right).min(left.bits()).min(right.bits());
    let merged = left.with_bits(bits).unwrap_or(left);
    Ok(Value::Cidr(merged.network()))
}

fn not(arguments: &[Value]) -> Result<Value> {
    let value = inet(&arguments[0])?;
    Ok(Value::Inet(value.with_number(!value.number())))
}

/// An operation on the bits of two addresses; the result's prefix is the longer one of both.
fn bitwise(arguments: &[Value], name: &str, operation: fn(u128, u128) -> u128) -> Result<Value> {
    let (left, right) = both(arguments)?;
    if !left.same_family(right) {
        return Err(refused(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("cannot {name} inet values of different sizes"),
        ));
    }
    let longer = if left.bits() >= right.bits() { left } else { right };
    Ok(Value::Inet(
        longer.with_number(operation(left.number(), right.number())),
    ))
}

fn and(arguments: &[Value]) -> Result<Value> {
    bitwise(arguments, "AND", |left, right| left & right)
}

fn or(arguments: &[Value]) -> Result<Value> {
    bitwise(arguments, "OR", |left, right| left | right)
}

/// The address that is so far behind another one.
fn moved(from: &Value, by: i128) -> Result<Value> {
    let from = inet(from)?;
    let moved = from.number().checked_add_signed(by);
    moved
        .filter(|moved| *moved <= from.number_max())
        .map(|moved| Value::Inet(from.with_number(moved)))
        .ok_or_else(out_of_range)
}

#[cold]
fn out_of_range() -> EngineError {
    refused(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

fn distance_of(value: &Value) -> i128 {
    value.as_i64().map_or(0, i128::from)
}

fn plus(arguments: &[Value]) -> Result<Value> {
    moved(&arguments[0], distance_of(&arguments[1]))
}

fn added_to(arguments: &[Value]) -> Result<Value> {
    moved(&arguments[1], distance_of(&arguments[0]))
}

fn minus(arguments: &[Value]) -> Result<Value> {
    moved(&arguments[0], -distance_of(&arguments[1]))
}

fn distance(arguments: &[Value]) -> Result<Value> {
    let (left, right) = both(arguments)?;
    if !left.same_family(right) {
        return Err(refused(
            SqlState::INVALID_PARAMETER_VALUE,
            "cannot subtract inet values of different sizes",
        ));
    }
    let (left, right) = (left.number(), right.number());
    let size = i128::try_from(left.abs_diff(right)).map_err(|_| out_of_range())?;
    let signed = if left < right { -size } else { size };
    i64::try_from(signed).map(Value::Int8).map_err(|_| out_of_range())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::network::text::parse_inet;

    fn values(texts: [&str; 2]) -> [Value; 2] {
        texts.map(|text| Value::Inet(parse_inet(text).unwrap()))
    }

    #[test]
    fn networks_hold_what_agrees_with_their_prefix() {
        for (left, right, within, within_or_equal, overlap) in [
            ("10.1.2.3", "10.0.0.0/8", true, true, true),
            ("10.0.0.0/8", "10.9.9.9/8", false, true, true),
            ("10.0.0.0/8", "10.0.0.0/16", false, false, true),
            ("11.0.0.0/16", "10.0.0.0/8", false, false, false),
            ("1.2.3.4", "::/0", false, false, false),
            ("1.2.3.4", "0.0.0.0/0", true, true, true),
        ] {
            let (pair, turned) = (values([left, right]), values([right, left]));
            let expected = |truth| Value::Bool(truth);
            assert_eq!(is_within(&pair).unwrap(), expected(within), "{left} << {right}");
            assert_eq!(contains(&turned).unwrap(), expected(within), "{right} >> {left}");
            assert_eq!(is_within_or_equal(&pair).unwrap(), expected(within_or_equal));
            assert_eq!(contains_or_equals(&turned).unwrap(), expected(within_or_equal));
            assert_eq!(overlaps(&pair).unwrap(), expected(overlap), "{left} && {right}");
        }
    }

    #[test]
    fn addresses_do_not_leave_their_family() {
        let far = values(["255.255.255.255", "::"]);
        assert!(moved(&far[0], 1).is_err());
        assert!(moved(&far[1], -1).is_err());
        let [low, high] = values(["::", "::8000:0:0:0"]);
        assert_eq!(
            distance(&[low.clone(), high.clone()]).unwrap(),
            Value::Int8(i64::MIN)
        );
        assert!(distance(&[high, low]).is_err());
        assert!(distance(&values(["ffff::", "::"])).is_err());
    }

    #[test]
    fn the_merged_network_holds_both() {
        for (left, right, merged) in [
            ("192.168.1.5/24", "192.168.2.5/24", "192.168.0.0/22"),
            ("1.2.3.4", "1.2.3.4", "1.2.3.4/32"),
            ("0.0.0.0", "128.0.0.0", "0.0.0.0/0"),
            ("1:2::/64", "1:3::/64", "1:2::/31"),
        ] {
            let Value::Cidr(found) = merge(&values([left, right])).unwrap() else {
                panic!("a merged network is of cidr");
            };
            assert_eq!(found, parse_inet(merged).unwrap(), "{left} {right}");
        }
    }
}
