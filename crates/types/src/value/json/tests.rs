//! Trees, bytes, texts and order agree with one another.

use proptest::prelude::*;

use super::write::{blanks, write_tree};
use super::*;
use crate::error::SqlState;
use crate::value::key::encode_key;
use crate::value::{DataType, Value};

fn jsonb(text: &str) -> Jsonb {
    Jsonb::of(&parse(text).unwrap()).unwrap()
}

fn written(value: &Jsonb) -> String {
    let mut out = String::new();
    value.as_ref().write(&mut out);
    out
}

fn tree() -> impl Strategy<Value = Json> {
    let text = || prop_oneof!["[a-c]{0,2}", "[^\\x00]{0,9}"].prop_map(|text: String| text.into_boxed_str());
    let scalar = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (-30i128..30, 0u16..2).prop_map(|(digits, scale)| Json::Number(Numeric::new(digits, scale))),
        text().prop_map(Json::String),
    ];
    scalar.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::vec((text(), inner), 0..4).prop_map(Json::Object),
        ]
    })
}

/// Any `jsonb`.
pub(crate) fn values() -> impl Strategy<Value = Jsonb> {
    tree().prop_map(|tree| Jsonb::of(&tree).unwrap())
}

/// The text of any `json`.
pub(crate) fn texts() -> impl Strategy<Value = String> {
    values().prop_map(|value| written(&value))
}

proptest! {
    #[test]
    fn bytes_come_back_as_the_tree_that_they_were_made_of(tree in tree()) {
        let value = Jsonb::of(&tree).unwrap();
        let again = Jsonb::of(&value.as_ref().tree()).unwrap();
        prop_assert_eq!(&value, &again);
        prop_assert_eq!(Jsonb::from_bytes(value.bytes()), Some(value.clone()));
        prop_assert_eq!(jsonb(&written(&value)), value);
    }

    #[test]
    fn a_tree_s_own_text_reads_as_the_tree(tree in tree()) {
        let mut text = String::new();
        write_tree(&tree, &mut text);
        check(&text).unwrap();
        prop_assert_eq!(parse(&text).unwrap(), tree);
    }

    #[test]
    fn keys_order_as_values_do(left in tree(), right in tree()) {
        let (left, right) = (Jsonb::of(&left).unwrap(), Jsonb::of(&right).unwrap());
        let key = |value: &Jsonb| encode_key(&[Value::Jsonb(value.clone())], &[DataType::Jsonb]);
        prop_assert_eq!(left.as_ref().order(right.as_ref()), key(&left).cmp(&key(&right)));
        prop_assert_eq!(right.as_ref().order(left.as_ref()), key(&right).cmp(&key(&left)));
    }

    #[test]
    fn damaged_bytes_are_refused_or_read(
        tree in tree(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        other in values(),
    ) {
        let mut bytes = Jsonb::of(&tree).unwrap().bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        read_all(&bytes, &other);
        bytes.truncate(at);
        read_all(&bytes, &other);
    }

    #[test]
    fn bytes_of_any_form_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), other in values()) {
        read_all(&bytes, &other);
    }
}

/// Reads bytes in all ways, if their head is one. A value that is whole comes back.
fn read_all(bytes: &[u8], other: &Jsonb) {
    let Some(value) = Jsonb::of_row(bytes) else {
        assert_eq!(Jsonb::from_bytes(bytes), None);
        return;
    };
    assert_eq!(value.is_whole(), Jsonb::from_bytes(bytes).is_some());
    let read = value.as_ref();
    let text = written(&value);
    let tree = Jsonb::of(&read.tree()).unwrap();
    let _ = (
        read.order(other.as_ref()),
        other.as_ref().order(read),
        read.order(read),
    );
    encode_key(&[Value::Jsonb(value.clone())], &[DataType::Jsonb]);
    let _ = (blanks(read, 0), read.get("a"), read.at(0), read.key(0));
    if value.is_whole() && text.is_empty() {
        panic!("a value has no text");
    }
    // The parts that were read are values, whatever the others were.
    assert!(tree.is_whole());
    assert!(values_in(&read.tree()) <= bytes.len() + 1, "J1");
}

/// The values of a tree, itself included.
fn values_in(tree: &Json) -> usize {
    1 + match tree {
        Json::Array(elements) => elements.iter().map(values_in).sum(),
        Json::Object(members) => members.iter().map(|(_, value)| values_in(value)).sum(),
        _ => 0,
    }
}

/// An array or object whose parts end at these places, of one byte.
fn container(kind: Kind, count: usize, ends: &[usize], data: &[u8]) -> Vec<u8> {
    let ends = ends.iter().map(|end| *end as u8);
    let head = [kind as u8, count as u8].into_iter();
    head.chain(ends).chain(data.iter().copied()).collect()
}

/// J1: ends that fall would put the same bytes into several parts, on each level.
#[test]
fn parts_that_overlap_are_read_once() {
    for levels in [1, 2, 8, 20] {
        let mut array = vec![Kind::True as u8];
        let mut object = array.clone();
        for _ in 0..levels {
            let all = array.len();
            array = container(Kind::Array, 7, &[all, 0, all, 0, all, 0, all], &array);
            let all = object.len();
            object = container(Kind::Object, 3, &[0, all, 0, all, 0, all], &object);
        }
        for bytes in [array, object] {
            let value = Jsonb::of_row(&bytes).unwrap();
            assert!(!value.is_whole());
            let read = value.as_ref();
            assert_eq!(read.elements().count(), 1);
            assert_eq!(read.elements_at(1..7).count(), 0);
            assert_eq!(values_in(&read.tree()), levels + 1);
            read_all(&bytes, &value);
        }
    }
    // No key goes on into the values.
    let keys = container(Kind::Object, 2, &[3, 1, 2, 3], b"a\x03\x04");
    let value = Jsonb::of_row(&keys).unwrap();
    let members: Vec<_> = value
        .as_ref()
        .members()
        .map(|(key, value)| (key, value.truth()))
        .collect();
    assert_eq!(members, [("a", Some(true))]);
    assert_eq!(value.as_ref().elements().count(), 2);
}

/// J2: bytes may nest deeper than a text.
#[test]
fn what_is_too_deep_is_left_out() {
    let mut bytes = vec![Kind::True as u8];
    let mut heads = Vec::new();
    for _ in 0..100_000 {
        let length = (bytes.len() + 9 * heads.len()) as u32;
        heads.push(
            [
                &[Kind::Array as u8 | 2 << 4, 1, 0, 0, 0][..],
                &length.to_le_bytes(),
            ]
            .concat(),
        );
    }
    bytes.splice(0..0, heads.into_iter().rev().flatten());
    assert_eq!(Jsonb::from_bytes(&bytes), None);
    let value = Jsonb::of_row(&bytes).unwrap();
    assert_eq!(values_in(&value.as_ref().tree()), DEPTH_MAX as usize);
    read_all(&bytes, &value);
}

#[test]
fn a_head_whose_parts_do_not_end_where_it_does_is_refused() {
    for text in [
        "[1, \"a\", [2]]",
        "{\"a\": 1, \"b\": {}}",
        "[]",
        "{}",
        "\"ab\"",
        "12.5",
        "true",
    ] {
        let value = jsonb(text);
        assert_eq!(Jsonb::of_row(value.bytes()), Some(value.clone()), "{text}");
        let longer = [value.bytes(), b"\xff"].concat();
        let shorter = &value.bytes()[..value.bytes().len() - 1];
        for bytes in [&longer[..], shorter] {
            // Of a number any bytes are one.
            if !(matches!(value.as_ref().kind(), Kind::Number) || text.starts_with('"') && bytes == shorter) {
                assert_eq!(Jsonb::of_row(bytes), None, "{text}: {bytes:?}");
            }
        }
    }
    // A part of it is looked at by `is_whole` alone.
    let mut bytes = jsonb("[1, \"a\"]").bytes().to_vec();
    *bytes.last_mut().unwrap() = 0xff;
    let damaged = Jsonb::of_row(&bytes).unwrap();
    assert!(!damaged.is_whole());
    assert!(!Value::Jsonb(damaged).is_whole());
}

#[test]
fn a_text_that_is_not_utf_8_and_a_key_that_is_none_are_refused() {
    for length in 1..40 {
        let value = Jsonb::of(&Json::Array(vec![Json::String("a".repeat(length).into())])).unwrap();
        let start = value.bytes().len() - length;
        for at in start..value.bytes().len() {
            let mut bytes = value.bytes().to_vec();
            bytes[at] = 0xff;
            assert_eq!(Jsonb::from_bytes(&bytes), None, "byte {at} of {length}");
        }
    }
    let members = ["\u{e4}", "\u{f6}"].map(|key| (key.into(), Json::Bool(true)));
    let object = Jsonb::of(&Json::Object(members.into())).unwrap();
    // Behind kind and count: the ends of the keys, 2 and 4, and of the values, 5 and 6.
    assert_eq!(object.bytes()[2..6], [2, 4, 5, 6]);
    let with = |place: usize, end: u8| {
        let mut bytes = object.bytes().to_vec();
        bytes[place] = end;
        Jsonb::from_bytes(&bytes)
    };
    assert_eq!(with(2, 2), Some(object.clone()));
    // In the midst of a character, or behind what follows.
    for (place, end) in [
        (2, 1),
        (2, 3),
        (2, 5),
        (3, 1),
        (3, 3),
        (3, 5),
        (3, 7),
        (4, 3),
        (4, 6),
        (5, 5),
        (5, 7),
    ] {
        assert_eq!(with(place, end), None, "an end of {end} at {place}");
    }
}

#[test]
fn every_key_of_an_object_is_found() {
    let members =
        (0..700).map(|number: i64| (format!("{:x}", number * 37).into(), Json::Number(number.into())));
    let object = Jsonb::of(&Json::Object(members.collect())).unwrap();
    for number in 0..700i64 {
        let found = object.as_ref().get(&format!("{:x}", number * 37)).unwrap();
        assert_eq!(found.number(), Some(number.into()));
    }
    assert!(object.as_ref().get("no such key").is_none());
}

#[test]
fn of_equal_keys_the_last_counts() {
    assert_eq!(
        written(&jsonb(r#"{"aa": 1, "b": 2, "aa": 3}"#)),
        r#"{"b": 2, "aa": 3}"#
    );
}

#[test]
fn one_level_is_pieces_of_the_text() {
    let text = r#" { "a" : [1, {"b":2} ] , "a\u0062": "x" } "#;
    let Level::Object(members) = level(text).unwrap() else {
        panic!("an object");
    };
    let wanted: Vec<(Box<str>, &str)> = vec![("a".into(), r#"[1, {"b":2} ]"#), ("ab".into(), "\"x\"")];
    assert_eq!(members, wanted);
    assert_eq!(level(" 1 ").unwrap(), Level::Scalar("1"));
    assert_eq!(level("[]").unwrap(), Level::Array(vec![]));
}

#[test]
fn what_is_not_json_is_told_apart() {
    for (text, detail) in [
        ("", "The input string ended unexpectedly."),
        ("[1,", "The input string ended unexpectedly."),
        ("[1}", "Expected \",\" or \"]\", but found \"}\"."),
        ("{1:2}", "Expected string or \"}\", but found \"1\"."),
        ("{\"a\" 1}", "Expected \":\", but found \"1\"."),
        ("{\"a\":1,}", "Expected string, but found \"}\"."),
        ("1 2", "Expected end of input, but found \"2\"."),
        ("nul", "Token \"nul\" is invalid."),
        ("01", "Token \"01\" is invalid."),
        ("1.", "Token \"1.\" is invalid."),
        ("\"a", "Token \"\"a\" is invalid."),
        ("\"\\x\"", "Escape sequence \"\\x\" is invalid."),
        (
            "\"\\u00g0\"",
            "\"\\u\" must be followed by four hexadecimal digits.",
        ),
        ("\"\t\"", "Character with value 0x09 must be escaped."),
        ("'a'", "Token \"'\" is invalid."),
    ] {
        let error = check(text).unwrap_err();
        assert_eq!(error.detail(), Some(detail), "{text}");
    }
    for text in [
        "\"\\ud83d\"",
        "\"\\ude04\"",
        "\"\\ud83dx\"",
        "\"\\ud83d\\ud83d\"",
        "\"\\u0000\"",
    ] {
        check(text).unwrap();
        assert!(parse(text).is_err(), "{text}");
    }
    assert_eq!(
        parse("\"\\ud83d\\ude04\"").unwrap(),
        Json::String("\u{1f604}".into())
    );
    assert!(check(&"[".repeat(10_000)).is_err());
    let deep = "[".repeat(5_000) + &"]".repeat(5_000);
    assert_eq!(written(&jsonb(&deep)), deep);
}

#[test]
fn short_texts_of_long_values_are_refused() {
    let numbers = format!("[{}1]", "1e131000,".repeat(3_000));
    assert_eq!(
        parse(&numbers)
            .and_then(|tree| Jsonb::of(&tree))
            .unwrap_err()
            .sqlstate(),
        SqlState::PROGRAM_LIMIT_EXCEEDED
    );
    let deep = format!(
        "{}{}{}",
        "[".repeat(5_900),
        "1,".repeat(100_000) + "1",
        "]".repeat(5_900)
    );
    let mut out = String::new();
    let error = write_pretty(jsonb(&deep).as_ref(), &mut out).unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert!(out.is_empty());
    let small = jsonb("[1, {\"a\": []}]");
    write_pretty(small.as_ref(), &mut out).unwrap();
    assert_eq!(out, "[\n    1,\n    {\n        \"a\": [\n        ]\n    }\n]");
    let made = out.bytes().filter(|byte| matches!(byte, b' ' | b'\n')).count();
    // One stands behind the colon.
    assert_eq!(blanks(small.as_ref(), 0), made - 1);
}
