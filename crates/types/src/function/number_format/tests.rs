//! Cases whose answers PostgreSQL 15 gave; `scripts/e2e/test_number_format.py` compares many more.

use super::{to_char, to_number};
use crate::error::SqlState;
use crate::value::{DataType, Value, decode_text};

fn shown(number: &str, template: &str) -> String {
    let number = decode_text(number, DataType::Numeric, 0).unwrap();
    to_char(&number, template).unwrap()
}

#[test]
fn numerics() {
    for (number, template, expected) in [
        ("12", "999", "  12"),
        ("-12", "999", " -12"),
        ("1234", "999", " ###"),
        ("-0.1", "9.9", " -.1"),
        ("0", "9.9", "  .0"),
        ("0.1", "0.0", " 0.1"),
        ("1234.567", "9,999.9", " 1,234.6"),
        ("12", "9,999.9", "    12.0"),
        ("12", "09,999", " 00,012"),
        ("-12", "99PR", "<12>"),
        ("12", "99PR", " 12 "),
        ("-12", "99S", "12-"),
        ("-12", "99MI", "12-"),
        ("12", "PL99", "+ 12"),
        ("12", "SG99", "+12"),
        ("-12", "9SG9", "1-2"),
        ("12", "FM99.99", "12."),
        ("0", "FM99.99", "0."),
        ("0.1", "FM90.90", "0.10"),
        ("1.5", "FM99.9\"x\"9S", "1.5x+"),
        ("12", "99V99", " 1200"),
        ("12", "99th", " 12th"),
        ("1", "9TH", " 1ST"),
        ("12", "RN", "            XII"),
        ("1999", "FMrn", "mcmxcix"),
        ("0", "RN", "###############"),
        ("-1234.567", "9.99EEEE", "-1.23e+03"),
        ("0.99", "9EEEE", " 10e-01"),
        ("0", "9.99EEEE", " 0.00e+00"),
        ("2", "\"a\\\"b\"9", "a\"b 2"),
        ("2", "äö9L", "äö 2 "),
        ("NaN", "9999", "  NaN"),
        ("Infinity", "99.9EEEE", " ##.#####"),
        ("5", "", ""),
    ] {
        assert_eq!(shown(number, template), expected, "{number} by {template}");
    }
}

#[test]
fn floats_show_no_more_digits_than_they_have() {
    assert_eq!(
        to_char(&Value::Float4(1234.5678), "9999.9999").unwrap(),
        " 1234.57"
    );
    assert_eq!(to_char(&Value::Float8(-0.0), "9.9").unwrap(), " -.0");
    assert_eq!(to_char(&Value::Float8(2.5), "9").unwrap(), " 2");
    assert_eq!(to_char(&Value::Float8(f64::NAN), "RN").unwrap(), "#".repeat(15));
}

#[test]
fn integers_that_overflow_are_errors() {
    for number in [Value::Int4(i32::MAX), Value::Int8(i64::MAX)] {
        let error = to_char(&number, "9V9").unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
    }
}

#[test]
fn patterns_that_do_not_go_together() {
    for template in [
        "9.9.9", "S9S", "S9MI", "PR9", "9V9.9", "FM9EEEE", "9EEEE9", "MI9PR", "MI9S",
    ] {
        let error = to_char(&Value::Int4(1), template).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::SYNTAX_ERROR, "{template}");
    }
    let error = to_char(&Value::Int4(1), &"9".repeat(1 << 16)).unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert_eq!(
        to_char(&Value::Int4(1), &"9".repeat(65_535)).unwrap().len(),
        65_536
    );
}

#[test]
fn reading() {
    for (input, template, expected) in [
        ("-34,338,492", "99G999G999", "-34338492"),
        ("<564646.654564>", "999999.999999PR", "-564646.654564"),
        ("0.00001-", "9.999999S", "-0.00001"),
        ("5.01-", "FM9.999999MI", "-5.01"),
        ("5 4 4 4 4 8 . 7 8", "9 9 9 9 9 9 . 9 9", "544448.78"),
        (".-01", "S99.99", "-0.01"),
        ("$1,234.56", "L99,999.99", "1234.56"),
        ("42nd", "99th", "42"),
        ("12", "99V9", "1.2000000000000000"),
        ("1a2", "9999", "12"),
    ] {
        let number = to_number(input, template).unwrap().unwrap();
        assert_eq!(number.to_string(), expected, "{input} by {template}");
    }
    assert_eq!(to_number("1", "").unwrap(), None);
    for (input, template, code) in [
        ("", "9", SqlState::INVALID_TEXT_REPRESENTATION),
        ("1,234.5", "99.9", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
        ("12", "RN", SqlState::FEATURE_NOT_SUPPORTED),
    ] {
        assert_eq!(to_number(input, template).unwrap_err().sqlstate(), code);
    }
}
