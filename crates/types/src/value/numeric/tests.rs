//! Numerics against whole numbers of any size, and against what PostgreSQL 15 answers.
//!
//! The end-to-end test `test_numeric` compares thousands of expressions with a PostgreSQL that runs beside the engine;
//! the tables here are the cases whose story is worth telling.

use dashu_int::{IBig, UBig};
use proptest::prelude::*;

use super::*;

fn n(text: &str) -> Numeric {
    text.parse().unwrap()
}

fn shown(result: Result<Numeric>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(error) => format!("{:?}", error.sqlstate()),
    }
}

#[test]
fn a_product_keeps_every_digit() {
    assert_eq!(shown(n("1e-20").multiply(&n("1e-20"))), n("1e-40").to_string());
    assert_eq!(n("1e-40").to_string(), format!("0.{}1", "0".repeat(39)));
    let wide = n("12345678901234567890123456789.5");
    assert_eq!(
        shown(wide.multiply(&wide)),
        "152415787532388367504953515637707666776253619888873647310.25"
    );
    assert_eq!(
        shown(wide.add(&n("0.00000000000000000001"))),
        "12345678901234567890123456789.50000000000000000001"
    );
}

#[test]
fn the_range_is_postgresqls() {
    let most = n("1e131071");
    assert_eq!(most.to_string().len(), 131_072);
    assert_eq!(shown(most.multiply(&n("10"))), "22003");
    assert_eq!(shown(Numeric::parse("1e131072")), "22003");
    assert_eq!(shown(Numeric::parse("1e-16384")), "22003");
    // i32::MIN has no absolute value of its type.
    assert_eq!(shown(Numeric::parse("1e-2147483648")), "22003");
    assert_eq!(shown(Numeric::parse("1e2147483647")), "22003");
    let least = n("1e-16383");
    assert_eq!(least.scale(), Some(16_383));
    // A product's digits beyond the last place are rounded away; the range before the point is not left.
    assert_eq!(
        shown(least.multiply(&n("0.4"))),
        format!("0.{}", "0".repeat(16_383))
    );
    assert_eq!(shown(least.multiply(&n("0.5"))), least.to_string());
    assert_eq!(shown(Numeric::parse("0e200000")), "0");
    assert!(most.compare(&least).is_gt());
    assert!(n("-1e131071").compare(&least).is_lt());
}

#[test]
fn a_quotient_has_sixteen_significant_digits() {
    for (l, r, expected) in [
        ("1", "3", "0.33333333333333333333"),
        ("10", "4", "2.5000000000000000"),
        ("2", "3", "0.66666666666666666667"),
        ("100000", "3", "33333.333333333333"),
        ("1.5", "0.5", "3.0000000000000000"),
        ("0", "7", "0.00000000000000000000"),
        ("7", "7", "1.00000000000000000000"),
        ("-1", "3", "-0.33333333333333333333"),
        ("1e-20", "3", "0.0000000000000000000033333333333333333333"),
    ] {
        assert_eq!(shown(n(l).divide(&n(r))), expected, "{l} / {r}");
    }
    assert_eq!(shown(n("1").divide(&n("0.00"))), "22012");
    assert_eq!(shown(n("7.5").remainder(&n("-2"))), "1.5");
    assert_eq!(shown(n("-7.5").divide_whole(&n("2"))), "-3");
}

#[test]
fn what_is_no_number_follows_its_rules() {
    let (nan, infinity, minus) = (Numeric::NAN, Numeric::INFINITY, Numeric::NEGATIVE_INFINITY);
    for (result, expected) in [
        (infinity.add(&minus), "NaN"),
        (infinity.add(&n("1")), "Infinity"),
        (infinity.multiply(&n("0")), "NaN"),
        (infinity.multiply(&n("-2")), "-Infinity"),
        (n("5").divide(&minus), "0"),
        (n("5.50").remainder(&infinity), "5.50"),
        (infinity.divide(&n("0")), "22012"),
        (nan.divide(&n("0")), "NaN"),
        (nan.power(&n("0")), "1"),
        (minus.power(&n("3")), "-Infinity"),
        (minus.sqrt(), "2201F"),
        (minus.exp(), "0"),
        (minus.ln(), "2201E"),
        (
            infinity.fit(crate::value::datatype::numeric_typmod(5, 2)),
            "22003",
        ),
        (nan.fit(crate::value::datatype::numeric_typmod(5, 2)), "NaN"),
    ] {
        assert_eq!(shown(result), expected);
    }
    assert!(
        nan.compare(&nan).is_eq() && nan.compare(&infinity).is_gt() && minus.compare(&n("-1e100")).is_lt()
    );
    for text in ["nan", " Infinity ", "-inf", "+INFINITY"] {
        assert!(!n(text).is_finite(), "{text}");
    }
}

#[test]
fn a_modifier_rounds_away_from_zero_and_says_what_it_holds() {
    let fit =
        |text: &str, precision, scale| n(text).fit(crate::value::datatype::numeric_typmod(precision, scale));
    for (text, precision, scale, expected) in [
        ("1.005", 5, 2, "1.01"),
        ("-1.005", 5, 2, "-1.01"),
        ("999.995", 5, 2, "22003"),
        ("12345", 3, -2, "12300"),
        ("0.00012345", 3, 6, "0.000123"),
        ("0.0012345", 3, 6, "22003"),
        ("0", 3, 6, "0.000000"),
    ] {
        assert_eq!(
            shown(fit(text, precision, scale)),
            expected,
            "{text}::numeric({precision},{scale})"
        );
    }
    let detail = |text, precision, scale| {
        fit(text, precision, scale)
            .unwrap_err()
            .detail()
            .unwrap()
            .to_owned()
    };
    let bound = "A field with precision 5, scale 2 must round to an absolute value less than 10^3.";
    assert_eq!(detail("1000", 5, 2), bound);
    let bound = "A field with precision 2, scale 2 must round to an absolute value less than 1.";
    assert_eq!(detail("1", 2, 2), bound);
}

#[test]
fn functions_give_postgresqls_digits() {
    for (result, expected) in [
        (n("2").sqrt(), "1.414213562373095"),
        (n("0").sqrt(), "0.000000000000000"),
        (n("1").exp(), "2.7182818284590452"),
        (n("2").ln(), "0.6931471805599453"),
        (n("10").log(&n("1000")), "3.0000000000000000"),
        (n("2").power(&n("10")), "1024.0000000000000000"),
        (n("2").power(&n("0.5")), "1.4142135623730950"),
        (n("0").power(&n("-1")), "2201F"),
        (n("-1").power(&n("0.5")), "2201F"),
        (n("6000").exp(), "22003"),
        // Sixteen thousand digits, and a result of none: this took minutes when the digits were worked with.
        (
            n("1").subtract(&n("1e-16000")).and_then(|x| x.ln()?.trim_scale()),
            "0",
        ),
        (
            n("1")
                .subtract(&n("1e-16000"))
                .and_then(|x| x.power(&n("0.5"))?.trim_scale()),
            "1",
        ),
        (n("12.5").gcd(&n("5")), "2.5"),
        (n("12").lcm(&n("18")), "36"),
        (n("2.4").ceil(), "3"),
        (n("-2.4").ceil(), "-2"),
        (n("-2.4").floor(), "-3"),
        (n("1250").round(-2), "1300"),
        (n("-1249.9").truncate(-2), "-1200"),
        (n("1.2300").trim_scale(), "1.23"),
        (n("100.00").trim_scale(), "100"),
        (Numeric::factorial(25), "15511210043330985984000000"),
    ] {
        assert_eq!(shown(result), expected);
    }
    assert_eq!(n("5.35").width_bucket(&n("0.024"), &n("10.06"), 5).unwrap(), 3);
    assert_eq!(n("5").width_bucket(&n("10"), &n("0"), 2).unwrap(), 2);
}

#[test]
fn a_variance_may_be_in_range_when_the_squares_are_not() {
    let mut sums = PowerSums::default();
    for last in 1..=5i64 {
        sums.take(&n("9e131071").add(&Numeric::from(last)).unwrap());
    }
    assert_eq!(shown(sums.variance(5, 4, false)), "2.5000000000000000");
    assert_eq!(shown(sums.variance(5, 5, true)), "1.4142135623730950");
    let mut sums = PowerSums::default();
    for text in ["0", "3e-500", "-3e-500", "4e-500", "-4e-500"] {
        sums.take(&n(text));
    }
    assert_eq!(
        shown(
            sums.variance(5, 4, false)
                .and_then(|v| v.multiply(&n("1e1000"))?.trim_scale())
        ),
        "13"
    );
}

#[test]
fn damaged_bytes_are_no_numeric() {
    for bytes in [&[][..], &[1], &[0x02, 0x40], &[0x00, 0x40, 1]] {
        assert_eq!(Numeric::from_stored(bytes), None, "{bytes:?}");
    }
}

/// Numbers of one to sixty digits, many of them short.
fn numeric() -> impl Strategy<Value = (IBig, u16)> {
    let digits = prop_oneof!["[0-9]{1,6}", "[0-9]{17,21}", "[0-9]{36,60}"];
    (any::<bool>(), digits, prop_oneof![0u16..4, 0..30u16]).prop_map(|(negative, digits, scale)| {
        let magnitude = IBig::from(UBig::from_str_radix(&digits, 10).unwrap());
        (if negative { -magnitude } else { magnitude }, scale)
    })
}

fn make((mantissa, scale): &(IBig, u16)) -> Numeric {
    Numeric::checked(mantissa.clone(), u32::from(*scale)).unwrap()
}

fn ten(power: u16) -> IBig {
    IBig::from(10u8).pow(usize::from(power))
}

/// The mantissa of a result that must have this scale.
fn mantissa_at(value: &Numeric, scale: u16) -> IBig {
    assert_eq!(value.scale(), Some(scale));
    match value.operand() {
        Operand::Finite(decimal) => decimal.mantissa,
        _ => unreachable!("a finite result"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arithmetic_is_that_of_whole_numbers(l in numeric(), r in numeric()) {
        let (x, y) = (make(&l), make(&r));
        let scale = l.1.max(r.1);
        let (wide_l, wide_r) = (&l.0 * ten(scale - l.1), &r.0 * ten(scale - r.1));
        prop_assert_eq!(mantissa_at(&x.add(&y).unwrap(), scale), &wide_l + &wide_r);
        prop_assert_eq!(mantissa_at(&x.subtract(&y).unwrap(), scale), &wide_l - &wide_r);
        prop_assert_eq!(mantissa_at(&x.multiply(&y).unwrap(), l.1 + r.1), &l.0 * &r.0);
        prop_assert_eq!(x.compare(&y), wide_l.cmp(&wide_r));
        if wide_r != IBig::ZERO {
            prop_assert_eq!(mantissa_at(&x.remainder(&y).unwrap(), scale), &wide_l % &wide_r);
            let quotient = x.divide(&y).unwrap();
            // |l − q × r| ≤ |r| / 2 units of the quotient's last place.
            let unit = ten(quotient.scale().unwrap());
            let error = &wide_l * &unit - mantissa_at(&quotient, quotient.scale().unwrap()) * &wide_r;
            let (error, bound) = (magnitude(&error) * 2u8, magnitude(&wide_r));
            prop_assert!(error <= bound, "{x:?} / {y:?} = {quotient:?}");
        }
    }

    #[test]
    fn rounding_is_that_of_whole_numbers(l in numeric(), places in -8i32..32) {
        let rounded = make(&l).round(places).unwrap();
        let scale = places.max(0) as u16;
        // Everything in units of 10^-40.
        let exact = &l.0 * ten(40 - l.1);
        let kept = mantissa_at(&rounded, scale) * ten(40 - scale);
        let unit = IBig::from(10u8).pow((40 - places) as usize);
        prop_assert_eq!(&kept % &unit, IBig::ZERO);
        let (error, kept) = (magnitude(&(&exact - &kept)) * 2u8, magnitude(&kept));
        prop_assert!(error < magnitude(&unit) || (error == magnitude(&unit) && kept > magnitude(&exact)));
    }

    #[test]
    fn roots_square_back(l in numeric()) {
        let root = make(&l).abs().sqrt().unwrap();
        let scale = root.scale().unwrap();
        let unit = Numeric::new(5, scale + 1);
        let (low, high) = (root.subtract(&unit).unwrap(), root.add(&unit).unwrap());
        prop_assert!(high.multiply(&high).unwrap().compare(&make(&l).abs()).is_ge());
        prop_assert!(low.signum() < 0 || low.multiply(&low).unwrap().compare(&make(&l).abs()).is_le());
    }

    #[test]
    fn stored_bytes_and_groups_come_back(l in numeric()) {
        let value = make(&l);
        let mut bytes = Vec::new();
        value.to_stored(&mut bytes);
        prop_assert_eq!(Numeric::from_stored(&bytes), Some(value.clone()));
        let back = Numeric::from_groups(value.signum() < 0, &value.groups(), l.1).unwrap();
        prop_assert_eq!(back, value);
    }
}
