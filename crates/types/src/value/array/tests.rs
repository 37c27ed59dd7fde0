use super::*;
use crate::value::cast::{CastContext, cast};
use crate::value::text::to_text;
use crate::value::{compare, decode_binary, decode_text, encode_binary};

const INTS: DataType = DataType::array_of(DataType::Int4);
const TEXTS: DataType = DataType::array_of(DataType::Text);

fn again(text: &str, data_type: DataType) -> String {
    to_text(&decode_text(text, data_type, 0).unwrap()).unwrap()
}

#[test]
fn texts_are_read_and_written() {
    for (text, written) in [
        ("{}", "{}"),
        (" { } ", "{}"),
        ("{1,2,NULL}", "{1,2,NULL}"),
        ("{ 1 , 2 }", "{1,2}"),
        ("{{1,2},{3,4}}", "{{1,2},{3,4}}"),
        ("{{1,2} , {3,4} }", "{{1,2},{3,4}}"),
        ("[0:1]={1,2}", "[0:1]={1,2}"),
        ("[2]={1,2}", "{1,2}"),
        ("[-1:0][2:3] = {{1,2},{3,4}}", "[-1:0][2:3]={{1,2},{3,4}}"),
        ("{{{1},{2}}}", "{{{1},{2}}}"),
    ] {
        assert_eq!(again(text, INTS), written, "{text}");
    }
    for (text, written) in [
        (
            r#"{a b, "c,d" ,"e\"f","",null,"null"}"#,
            r#"{"a b","c,d","e\"f","",NULL,"null"}"#,
        ),
        (r"{a\ ,\{\},x\\y}", r#"{"a ","{}","x\\y"}"#),
        ("{ä, \u{a0}}", "{ä,\u{a0}}"),
    ] {
        assert_eq!(again(text, TEXTS), written, "{text}");
    }
    assert_eq!(again("1 2  3", DataType::Int2Vector), "1 2 3");
    assert_eq!(again("", DataType::OidVector), "");
}

#[test]
fn malformed_texts_say_where() {
    for (text, detail) in [
        ("", "Array value must start with \"{\" or dimension information."),
        (
            "1,2",
            "Array value must start with \"{\" or dimension information.",
        ),
        ("{1,2", "Unexpected end of input."),
        ("{1,,2}", "Unexpected \",\" character."),
        ("{1,}", "Unexpected \"}\" character."),
        ("{1}2", "Junk after closing right brace."),
        ("{1,{2}}", "Unexpected \"{\" character."),
        ("{{1},2}", "Unexpected array element."),
        ("{\"1\"2}", "Unexpected array element."),
        (
            "{{1},{2,3}}",
            "Multidimensional arrays must have sub-arrays with matching dimensions.",
        ),
        (
            "{{{1}},{2}}",
            "Multidimensional arrays must have sub-arrays with matching dimensions.",
        ),
        ("[1]{1}", "Missing \"=\" after array dimensions."),
        ("[1={1}", "Missing \"]\" after array dimensions."),
        (
            "[]={1}",
            "\"[\" must introduce explicitly-specified array dimensions.",
        ),
        ("[1:]={1}", "Missing array dimension value."),
        ("[2]=1", "Array contents must start with \"{\"."),
        (
            "[2]={1}",
            "Specified array dimensions do not match array contents.",
        ),
    ] {
        let error = decode_text(text, INTS, 0).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::INVALID_TEXT_REPRESENTATION, "{text}");
        assert_eq!(error.message(), format!("malformed array literal: \"{text}\""));
        assert_eq!(error.detail(), Some(detail), "{text}");
    }
    for (text, state) in [
        ("[2:1]={}", SqlState::ARRAY_SUBSCRIPT_ERROR),
        ("{{{{{{{1}}}}}}}", SqlState::PROGRAM_LIMIT_EXCEEDED),
        ("[2147483647]={1}", SqlState::INVALID_TEXT_REPRESENTATION),
        ("[2147483647:2147483647]={1}", SqlState::PROGRAM_LIMIT_EXCEEDED),
        ("{x}", SqlState::INVALID_TEXT_REPRESENTATION),
    ] {
        assert_eq!(
            decode_text(text, INTS, 0).unwrap_err().sqlstate(),
            state,
            "{text}"
        );
    }
}

#[test]
fn the_binary_form_is_postgresqls() {
    // select array_send('{1,NULL}'::int[])
    let mut bytes = Vec::new();
    encode_binary(&decode_text("{1,NULL}", INTS, 0).unwrap(), &mut bytes);
    let expected: [i32; 8] = [1, 1, 23, 2, 1, 4, 1, -1];
    assert_eq!(bytes, expected.map(i32::to_be_bytes).concat());
    assert_eq!(
        decode_binary(&bytes, DataType::array_of(DataType::Int8))
            .unwrap_err()
            .sqlstate(),
        SqlState::DATATYPE_MISMATCH
    );
    // As many elements as the message has bytes for, and not more.
    let huge: [i32; 5] = [1, 0, 23, 100_000_000, 1];
    assert!(decode_binary(&huge.map(i32::to_be_bytes).concat(), INTS).is_err());
}

#[test]
fn arrays_order_by_elements_then_by_shape() {
    let ordered = [
        "{}",
        "{1}",
        "[2:2]={1}",
        "{{1}}",
        "{1,1}",
        "{1,2}",
        "{1,2,3}",
        "{{1,2,3}}",
        "{1,NULL}",
        "{2}",
    ];
    let values: Vec<Value> = ordered
        .iter()
        .map(|text| decode_text(text, INTS, 0).unwrap())
        .collect();
    for (at, left) in values.iter().enumerate() {
        for (other, right) in values.iter().enumerate() {
            assert_eq!(compare(left, right, INTS), at.cmp(&other), "{left:?} {right:?}");
        }
    }
}

#[test]
fn elements_are_converted() {
    let convert = |text: &str, from, to, typmod, context| {
        let value = cast(decode_text(text, from, 0).unwrap(), from, to, typmod, context, 0)?;
        Ok::<_, EngineError>(to_text(&value).unwrap())
    };
    let explicit = CastContext::Explicit;
    let varchars = DataType::array_of(DataType::Varchar);
    assert_eq!(
        convert("{1,NULL}", INTS, DataType::Text, -1, explicit).unwrap(),
        "{1,NULL}"
    );
    assert_eq!(
        convert("{1,2}", DataType::Text, INTS, -1, explicit).unwrap(),
        "{1,2}"
    );
    assert_eq!(
        convert(
            "[0:0]={1}",
            INTS,
            DataType::array_of(DataType::Numeric),
            -1,
            explicit
        )
        .unwrap(),
        "[0:0]={1}"
    );
    assert_eq!(
        convert("{abc,d}", TEXTS, varchars, 6, explicit).unwrap(),
        "{ab,d}"
    );
    assert_eq!(
        convert("{abc,d}", TEXTS, varchars, 6, CastContext::Assignment)
            .unwrap_err()
            .sqlstate(),
        SqlState::STRING_DATA_RIGHT_TRUNCATION
    );
    assert_eq!(
        convert("{t}", DataType::array_of(DataType::Bool), TEXTS, -1, explicit).unwrap(),
        "{true}"
    );
    assert_eq!(
        convert("1 2", DataType::Int2Vector, INTS, -1, explicit).unwrap(),
        "[0:1]={1,2}"
    );
}

#[test]
fn parts_of_arrays() {
    let Value::Array(array) = decode_text("[0:1][1:3]={{1,2,3},{4,5,6}}", INTS, 0).unwrap() else {
        panic!()
    };
    assert_eq!(array.element(&[1, 2]), Some(&Value::Int4(5)));
    assert_eq!(array.element(&[2, 1]), None);
    assert_eq!(array.element(&[1]), None);
    let slice = |bounds: &[(Option<i32>, Option<i32>)]| {
        let bounds: Vec<Bounds> = bounds
            .iter()
            .map(|(lower, upper)| Bounds {
                lower: *lower,
                upper: *upper,
            })
            .collect();
        to_text(&array.slice(&bounds).unwrap().into()).unwrap()
    };
    assert_eq!(slice(&[(Some(0), Some(0))]), "{{1,2,3}}");
    assert_eq!(slice(&[(None, None), (Some(2), Some(9))]), "{{2,3},{5,6}}");
    assert_eq!(slice(&[(Some(5), None)]), "{}");
    assert_eq!(slice(&[(None, None); 3]), "{}");
    let value = Value::Array(array);
    assert_eq!(subscripts_of(&value, 1).unwrap(), 0..=1);
    assert_eq!(subscripts_of(&value, 3).unwrap().count(), 0);
    assert_eq!(elements_of(&value).unwrap().len(), 6);
    assert_eq!(elements_of(&Value::Null).unwrap(), []);
}
