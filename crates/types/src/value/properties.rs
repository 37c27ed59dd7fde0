//! Properties of all values: forms round-trip, keys order as values do, rows come back as they went in.

use proptest::prelude::*;

use super::cast::{CastContext, cast};
use super::*;
use crate::value::text::to_text;

fn numeric() -> impl Strategy<Value = Numeric> {
    (any::<i128>(), any::<i32>(), 0u16..=28, prop::bool::ANY).prop_map(|(wide, narrow, scale, small)| {
        Numeric::new(if small { i128::from(narrow) } else { wide }, scale)
    })
}

fn small_numeric() -> impl Strategy<Value = Numeric> {
    (-2_000i128..2_000, 0u16..=4).prop_map(|(mantissa, scale)| Numeric::new(mantissa, scale))
}

/// Numbers of any magnitude in the range, and what is no number.
fn strange_numeric() -> impl Strategy<Value = Numeric> {
    let far = ("-?[1-9][0-9]{0,3}", -16_380i32..131_000).prop_map(|(digits, exponent)| {
        format!("{digits}e{exponent}")
            .parse::<Numeric>()
            .unwrap_or(Numeric::ZERO)
    });
    prop_oneof![
        20 => far,
        1 => Just(Numeric::NAN),
        1 => Just(Numeric::INFINITY),
        1 => Just(Numeric::NEGATIVE_INFINITY),
    ]
}

fn value_of(data_type: DataType) -> BoxedStrategy<Value> {
    match data_type {
        DataType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        DataType::Int2 => any::<i16>().prop_map(Value::Int2).boxed(),
        DataType::Int4 => prop_oneof![any::<i32>(), -3..3i32].prop_map(Value::Int4).boxed(),
        DataType::Int8 => prop_oneof![any::<i64>(), -3..3i64].prop_map(Value::Int8).boxed(),
        data_type if data_type.is_oid() || matches!(data_type, DataType::Xid | DataType::Cid) => {
            any::<u32>().prop_map(Value::Oid).boxed()
        }
        DataType::Time => (0..=86_400_000_000i64).prop_map(Value::Time).boxed(),
        DataType::TimeTz => (0..=86_400_000_000i64, -57_599..57_600i32)
            .prop_map(|(time, zone)| Value::TimeTz(time, zone))
            .boxed(),
        DataType::Interval => prop_oneof![
            (any::<i32>(), any::<i32>(), any::<i64>()),
            (-3..3i32, -91..91i32, -3..3i64)
                .prop_map(|(months, days, days_of_time)| { (months, days, days_of_time * 86_400_000_000) }),
        ]
        .prop_map(|(months, days, micros)| Value::Interval(Interval::new(months, days, micros)))
        .boxed(),
        DataType::JsonPath => prop_oneof![Just("$.\"a\"[*]"), Just("$")]
            .prop_map(Value::from)
            .boxed(),
        DataType::Json => super::json::texts()
            .prop_map(|text| Value::Json(text.into()))
            .boxed(),
        DataType::Jsonb => super::json::values().prop_map(Value::Jsonb).boxed(),
        DataType::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        DataType::Inet => inet().prop_map(Value::Inet).boxed(),
        DataType::Cidr => inet().prop_map(|value| Value::Cidr(value.network())).boxed(),
        DataType::MacAddr => any::<[u8; 6]>().prop_map(Value::MacAddr).boxed(),
        DataType::MacAddr8 => any::<[u8; 8]>().prop_map(Value::MacAddr8).boxed(),
        DataType::Bytea => prop::collection::vec(prop_oneof![any::<u8>(), 0..2u8], 0..8)
            .prop_map(|bytes| Value::Bytes(bytes.into()))
            .boxed(),
        DataType::PgLsn => any::<u64>().prop_map(Value::Lsn).boxed(),
        DataType::Tid => any::<(u32, u16)>()
            .prop_map(|(page, number)| Value::Tid(page, number))
            .boxed(),
        DataType::Float8 => prop_oneof![
            any::<f64>(),
            Just(f64::NAN),
            Just(-0.0),
            Just(f64::INFINITY),
            -2.0..2.0f64
        ]
        .prop_map(Value::Float8)
        .boxed(),
        DataType::Float4 => prop_oneof![
            any::<f32>(),
            any::<u32>().prop_map(f32::from_bits),
            Just(f32::NAN),
            Just(-0.0f32),
            Just(f32::INFINITY),
            -2.0..2.0f32
        ]
        .prop_map(Value::Float4)
        .boxed(),
        DataType::Numeric => prop_oneof![30 => numeric(), 30 => small_numeric(), 1 => strange_numeric()]
            .prop_map(Value::Numeric)
            .boxed(),
        DataType::CharByte => "[a-z]?".prop_map(|text| Value::from(&*text)).boxed(),
        DataType::Char => "[a-c ]{0,3}".prop_map(|text| Value::from(&*text)).boxed(),
        DataType::Name => "[a-z]{0,63}".prop_map(|text| Value::from(&*text)).boxed(),
        DataType::Text | DataType::Varchar | DataType::Unknown => {
            prop_oneof!["[a-c]{0,3}", "[^\\x00]{0,200}"]
                .prop_map(|text| Value::from(&*text))
                .boxed()
        }
        DataType::Date => prop_oneof![-2_451_507..2_145_031_949i32, Just(i32::MAX), Just(i32::MIN)]
            .prop_map(Value::Date)
            .boxed(),
        DataType::Timestamp => micros().prop_map(Value::Timestamp).boxed(),
        DataType::TimestampTz => micros().prop_map(Value::TimestampTz).boxed(),
        DataType::Array(_) | DataType::Int2Vector | DataType::OidVector => array_of(data_type),
        other => unreachable!("no values are made of {other}"),
    }
}

/// Addresses of both families, many of them near to each other.
fn inet() -> impl Strategy<Value = Inet> {
    let number = prop_oneof![
        any::<u128>(),
        0..4u128,
        any::<u16>().prop_map(|word| u128::from(word) << 16)
    ];
    (any::<bool>(), number, any::<u8>()).prop_map(|(is_short, number, bits)| {
        let family: std::net::IpAddr = match is_short {
            true => std::net::Ipv4Addr::UNSPECIFIED.into(),
            false => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let made = Inet::host(family).with_number(number);
        made.with_bits(bits % (made.width() + 1)).unwrap_or(made)
    })
}

fn array_of(data_type: DataType) -> BoxedStrategy<Value> {
    use super::array::Dimension;
    let element = value_of(data_type.element().expect("an array type"));
    if !matches!(data_type, DataType::Array(_)) {
        return prop::collection::vec(element, 0..4)
            .prop_map(move |elements| ArrayValue::of(data_type, elements).unwrap().into())
            .boxed();
    }
    let element = prop_oneof![5 => element, 1 => Just(Value::Null)];
    let dimensions = prop::collection::vec((prop_oneof![4 => Just(1), 1 => -3..3i32], 1..3i32), 0..3);
    (dimensions, prop::collection::vec(element, 8))
        .prop_map(move |(dimensions, mut elements)| {
            let dimensions = dimensions
                .into_iter()
                .map(|(lower, length)| Dimension { lower, length });
            let dimensions: Vec<Dimension> = dimensions.collect();
            elements.truncate(super::array::check_dimensions(&dimensions).unwrap());
            ArrayValue::new(data_type, dimensions, elements).unwrap().into()
        })
        .boxed()
}

fn any_type() -> impl Strategy<Value = DataType> {
    // Values of the last two are the catalog's own, and have no input.
    let no_column = |data_type: &DataType| {
        matches!(
            data_type.element().unwrap_or(*data_type),
            DataType::Void | DataType::Record | DataType::AnyArray | DataType::PgNodeTree | DataType::AclItem
        )
    };
    prop::sample::select(
        DataType::with_arrays()
            .filter(|t| !no_column(t))
            .collect::<Vec<_>>(),
    )
}

fn micros() -> impl Strategy<Value = i64> {
    prop_oneof![
        -211_810_204_800_000_000..9_223_371_331_200_000_000i64,
        Just(i64::MAX),
        Just(i64::MIN),
        -5..5i64
    ]
}

fn typed() -> impl Strategy<Value = (DataType, Value)> {
    any_type().prop_flat_map(|t| value_of(t).prop_map(move |value| (t, value)))
}

fn two_of_a_type() -> impl Strategy<Value = (DataType, Value, Value)> {
    any_type().prop_flat_map(|t| {
        let one = || prop_oneof![9 => value_of(t), 1 => Just(Value::Null)];
        (Just(t), one(), one())
    })
}

fn table() -> impl Strategy<Value = (Vec<DataType>, Vec<Value>)> {
    let column =
        typed().prop_flat_map(|(t, value)| (Just(t), prop_oneof![4 => Just(value), 1 => Just(Value::Null)]));
    prop::collection::vec(column, 1..20).prop_map(|columns| columns.into_iter().unzip())
}

/// The same bits: NaN equals itself, and 1.50 is not 1.5.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Float4(l), Value::Float4(r)) => l.to_bits() == r.to_bits() || (l.is_nan() && r.is_nan()),
        (Value::Float8(l), Value::Float8(r)) => l.to_bits() == r.to_bits() || (l.is_nan() && r.is_nan()),
        (Value::Array(l), Value::Array(r)) => {
            l.data_type() == r.data_type()
                && l.dimensions() == r.dimensions()
                && l.elements().len() == r.elements().len()
                && l.elements().iter().zip(r.elements()).all(|(l, r)| same(l, r))
        }
        _ => left == right,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn text_form_round_trips((data_type, value) in typed()) {
        let text = to_text(&value).unwrap();
        let back = decode_text(&text, data_type, 0).unwrap();
        prop_assert!(same(&value, &back), "{value:?} -> {text} -> {back:?}");
    }

    #[test]
    fn binary_form_round_trips((data_type, value) in typed()) {
        let mut bytes = Vec::new();
        encode_binary(&value, &mut bytes);
        let back = decode_binary(&bytes, data_type).unwrap();
        prop_assert!(same(&value, &back), "{value:?} -> {bytes:?} -> {back:?}");
    }

    #[test]
    fn keys_order_as_values((data_type, left, right) in two_of_a_type()) {
        let by_value = compare(&left, &right, data_type);
        let by_key = encode_key(std::slice::from_ref(&left), &[data_type])
            .cmp(&encode_key(std::slice::from_ref(&right), &[data_type]));
        prop_assert_eq!(by_value, by_key, "{:?} {:?}", left, right);
    }

    #[test]
    fn keys_of_two_columns_order_by_the_first(
        (data_type, left, right) in two_of_a_type(),
        (second_type, second_left, second_right) in two_of_a_type(),
    ) {
        let types = [data_type, second_type];
        let by_value =
            compare(&left, &right, data_type).then(compare(&second_left, &second_right, second_type));
        let by_key = encode_key(&[left, second_left], &types).cmp(&encode_key(&[right, second_right], &types));
        prop_assert_eq!(by_value, by_key);
    }

    #[test]
    fn rows_come_back((types, row) in table(), pick in any::<u64>()) {
        let codec = RowCodec::new(types.iter().copied());
        let mut bytes = Vec::new();
        codec.encode(&row, &mut bytes);
        let all = codec.decode_all(&bytes).unwrap();
        prop_assert!(row.iter().zip(&all).all(|(l, r)| same(l, r)), "{row:?} {all:?}");
        // Any part of the columns, and nothing else.
        let mut needed = ColumnSet::new();
        (0..row.len()).filter(|at| pick >> at & 1 == 1).for_each(|at| needed.insert(at as u16));
        let mut part = vec![Value::Bool(true); row.len()];
        let _ = codec.decode(&bytes, &needed, &mut part).unwrap();
        for (at, value) in part.iter().enumerate() {
            let expected = if needed.contains(at as u16) { &row[at] } else { &Value::Bool(true) };
            prop_assert!(same(value, expected));
        }
    }

    #[test]
    fn updating_is_encoding_anew(((types, old), (_, other)) in (table(), table())) {
        let codec = RowCodec::new(types.iter().copied());
        let mut bytes = Vec::new();
        codec.encode(&old, &mut bytes);
        // Values of the right type for some columns: those that the other table happens to fit.
        let changes: Vec<(u16, Value)> = types.iter().zip(&other).enumerate()
            .filter(|(_, (t, value))| value.is_null() || value.natural_type() == **t)
            .map(|(at, (_, value))| (at as u16, value.clone()))
            .collect();
        let mut expected = old.clone();
        changes.iter().for_each(|(at, value)| expected[usize::from(*at)] = value.clone());
        let mut updated = Vec::new();
        codec.update(&bytes, &changes, &mut updated).unwrap();
        let back = codec.decode_all(&updated).unwrap();
        prop_assert!(expected.iter().zip(&back).all(|(l, r)| same(l, r)), "{expected:?} {back:?}");
    }

    #[test]
    fn damaged_rows_do_not_panic((types, row) in table(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let codec = RowCodec::new(types.iter().copied());
        let mut bytes = Vec::new();
        codec.encode(&row, &mut bytes);
        let place = at.index(bytes.len());
        bytes[place] = byte;
        let _ = codec.decode_all(&bytes);
        bytes.truncate(cut.index(bytes.len() + 1));
        let _ = codec.decode_all(&bytes);
    }

    #[test]
    fn no_text_and_no_bytes_bring_a_type_down(text in "\\PC{0,40}", bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for data_type in DataType::with_arrays() {
            let _ = decode_text(&text, data_type, 0);
            let _ = decode_binary(&bytes, data_type);
        }
    }

    #[test]
    fn numbers_that_look_like_numbers_are_read(text in "[+-]?[0-9]{0,12}(\\.[0-9]{0,12})?([eE][+-]?[0-9]{1,3})?") {
        let float = decode_text(&text, DataType::Float8, 0);
        if let Ok(Value::Numeric(exact)) = decode_text(&text, DataType::Numeric, 0) {
            // What no double holds is refused by both, or read as the same double.
            match (float, exact.to_f64()) {
                (Ok(Value::Float8(near)), Some(exact)) => prop_assert_eq!(near, exact, "{}", text),
                (float, exact) => prop_assert!(float.is_err() && exact.is_none(), "{text}: {float:?} {exact:?}"),
            }
        }
    }

    #[test]
    fn casts_do_not_panic((from, value) in typed(), to in any_type(), typmod in -1..40i32) {
        if let Ok(converted) = cast(value, from, to, typmod, CastContext::Explicit, 0) {
            // What comes out is a value of the wanted type.
            prop_assert!(converted.is_null() || converted.natural_type() == to || matches!(converted, Value::Oid(_)) || to.is_string() || matches!(to, DataType::Unknown | DataType::JsonPath));
        }
    }
}
