//! The least and the greatest, and what bits and truth values have in common.

use super::AggregateCall;
use super::row::{AggregateRow, other_state, row};
use super::state::{Accumulator, State};
use crate::error::Result;
use crate::value::DataType::{
    Bool, Char, Date, Float4, Float8, Inet, Int2, Int4, Int8, Interval, Numeric, Oid, PgLsn, Text, Tid, Time,
    TimeTz, Timestamp, TimestampTz, Unknown,
};
use crate::value::{DataType, Value};

/// Rows of `max` and `min`: type, number of `max`, number of `min`.
macro_rules! extremes {
    ($($data_type:ident $max:literal $min:literal;)*) => {
        &[
            row(2050, "max", &[], Unknown, greatest, value).over_any(of_ordered),
            row(2051, "min", &[], Unknown, least, value).over_any(of_ordered),
            $(
                row($max, "max", &[$data_type], $data_type, greatest, value),
                row($min, "min", &[$data_type], $data_type, least, value),
            )*
            row(2236, "bit_and", &[Int2], Int2, |_| State::BitAnd(-1), value),
            row(2238, "bit_and", &[Int4], Int4, |_| State::BitAnd(-1), value),
            row(2240, "bit_and", &[Int8], Int8, |_| State::BitAnd(-1), value),
            row(2237, "bit_or", &[Int2], Int2, |_| State::BitOr(0), value),
            row(2239, "bit_or", &[Int4], Int4, |_| State::BitOr(0), value),
            row(2241, "bit_or", &[Int8], Int8, |_| State::BitOr(0), value),
            row(6164, "bit_xor", &[Int2], Int2, |_| State::BitXor(0), value),
            row(6165, "bit_xor", &[Int4], Int4, |_| State::BitXor(0), value),
            row(6166, "bit_xor", &[Int8], Int8, |_| State::BitXor(0), value),
            row(2517, "bool_and", &[Bool], Bool, |_| State::All(true), value),
            row(2518, "bool_or", &[Bool], Bool, |_| State::Any(false), value),
            row(2519, "every", &[Bool], Bool, |_| State::All(true), value),
        ]
    };
}

/// The aggregates.
pub(super) static ROWS: &[AggregateRow] = extremes! {
    Int8 2115 2131;
    Int4 2116 2132;
    Int2 2117 2133;
    Oid 2118 2134;
    Float4 2119 2135;
    Float8 2120 2136;
    Date 2122 2138;
    Timestamp 2126 2142;
    TimestampTz 2127 2143;
    Time 2123 2139;
    TimeTz 2124 2140;
    Interval 2128 2144;
    Text 2129 2145;
    Numeric 2130 2146;
    Char 2244 2245;
    Tid 2797 2798;
    PgLsn 4189 4190;
    Inet 3564 3565;
};

fn of_ordered(arguments: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [kind @ (DataType::Array(_) | DataType::Enum(_))] => Some((vec![kind], kind)),
        _ => None,
    }
}

fn greatest(_: &AggregateCall) -> State {
    State::Greatest(Value::Null)
}

fn least(_: &AggregateCall) -> State {
    State::Least(Value::Null)
}

fn value(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    Ok(match state.state {
        State::Least(best) | State::Greatest(best) => best,
        State::All(truth) | State::Any(truth) => Value::Bool(truth),
        State::BitAnd(bits) | State::BitOr(bits) | State::BitXor(bits) => match call.result_type {
            Int2 => Value::Int2(bits as i16),
            Int4 => Value::Int4(bits as i32),
            _ => Value::Int8(bits),
        },
        _ => return Err(other_state(call)),
    })
}
