//! Values, and the types of parameters.

use super::*;

#[test]
fn parameters_take_the_type_they_meet() {
    for (sql, expected) in [
        ("select $1", vec![DataType::Text]),
        ("select $1::int + $2", vec![DataType::Int4, DataType::Int4]),
        (
            "select * from kinds where n > $1 and t like $2",
            vec![DataType::Numeric, DataType::Text],
        ),
        (
            "select * from kinds where v = $1 and d < $2 and b",
            vec![DataType::Text, DataType::Date],
        ),
        (
            "select t from kinds limit $1 offset $2",
            vec![DataType::Int8, DataType::Int8],
        ),
        (
            "insert into kinds(s, l, tz) values ($2, $1, $3)",
            vec![DataType::Int8, DataType::Int2, DataType::TimestampTz],
        ),
        (
            "select * from sbtest1 where id in ($1, $2)",
            vec![DataType::Int4, DataType::Int4],
        ),
        (
            "select case when $1 then 1 else $2 end",
            vec![DataType::Bool, DataType::Int4],
        ),
        ("select coalesce($1, 5)", vec![DataType::Int4]),
    ] {
        assert_eq!(plan(sql).param_types, expected, "{sql}");
    }
}

#[test]
fn expressions_have_postgresqls_values() {
    for (sql, expected) in [
        ("select 1 + 2 * 3", "7"),
        ("select 7 / 2", "3"),
        ("select -7 / 2", "-3"),
        ("select 7 % -3", "1"),
        ("select 7.0 / 2", "3.5000000000000000"),
        ("select 1e3", "1000"),
        ("select 1.50 + 1", "2.50"),
        ("select 1.5 * 1.5", "2.25"),
        ("select 9223372036854775807", "9223372036854775807"),
        ("select -9223372036854775808", "-9223372036854775808"),
        ("select 9223372036854775808", "9223372036854775808"),
        ("select '12'::int + 1", "13"),
        ("select cast('1.5' as numeric(4,2))", "1.50"),
        ("select 'a' || 'b' || 1", "ab1"),
        ("select 'abc' like 'a%'", "t"),
        ("select 'abc' not like '_b_'", "f"),
        ("select null and false", "f"),
        ("select null or true", "t"),
        ("select null = 1", "NULL"),
        ("select not null::bool", "NULL"),
        ("select 1 in (1, null)", "t"),
        ("select 2 in (1, null)", "NULL"),
        ("select 2 not in (1, 3)", "t"),
        ("select 2 between 1 and 3", "t"),
        ("select null is null", "t"),
        ("select 1 is distinct from null", "t"),
        ("select (1 = 1) is not false", "t"),
        ("select case 2 when 1 then 'a' when 2 then 'b' end", "b"),
        ("select case when false then 1 end", "NULL"),
        ("select date '2024-02-28' + 2", "2024-03-01"),
        ("select date '2024-03-01' - date '2024-02-28'", "2"),
        (
            "select '2024-01-01'::date < '2024-01-01 00:00:01'::timestamp",
            "t",
        ),
        ("select 'x '::char(3) = 'x'", "t"),
        ("select 'abcdef'::varchar(3)", "abc"),
        ("select coalesce(null, null, 3)", "3"),
        ("select nullif(1, 1)", "NULL"),
        ("select greatest(1, 3, 2), 1", "3"),
        ("select abs(-5)", "5"),
        ("select mod(7, 3)", "1"),
        ("select length('äö')", "2"),
        ("select upper('abc')", "ABC"),
        ("select floor(1.7)", "1"),
        ("select round(2.567, 2)", "2.57"),
        ("select 1::float8 / 3", "0.3333333333333333"),
        ("select true::text", "true"),
        ("select 5::bool", "t"),
        ("select 1 where true", "1"),
        ("select E'a\\nb'", "a\nb"),
        ("select $$it's$$", "it's"),
        ("select +3", "3"),
        ("select - - 3", "3"),
        ("select 2.5::int", "3"),
        ("select 2.5::float8::int", "2"),
    ] {
        assert_eq!(one(sql), expected, "{sql}");
    }
}

#[test]
fn evaluation_errors() {
    for (sql, expected) in [
        ("select 1 / 0", SqlState::DIVISION_BY_ZERO),
        ("select 2147483647 + 1", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
        ("select 'x'::int", SqlState::INVALID_TEXT_REPRESENTATION),
        ("select 100000::smallint", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
        (
            "select 12345.6::numeric(4,1)",
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        ),
        ("select '2024-13-01'::date", SqlState::DATETIME_FIELD_OVERFLOW),
        ("select abs(-2147483648)", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
    ] {
        assert_eq!(row(sql).unwrap_err().sqlstate(), expected, "{sql}");
    }
}

#[test]
fn values_of_the_wrong_type_are_an_error_and_not_null() {
    let constant = |value: Value| Box::new(Expr::Constant(value));
    let number = || constant(Value::Int4(1));
    let text = || constant(Value::from("1"));
    let numeric = constant(Value::Numeric("1".parse().unwrap()));
    for expr in [
        Expr::Concat(number(), text()),
        Expr::Like {
            input: number(),
            pattern: text(),
            escape: None,
            ignore_case: false,
            negated: false,
        },
        Expr::Compare {
            op: CompareOp::Equal,
            left: numeric,
            right: number(),
            data_type: DataType::Numeric,
        },
    ] {
        let context = EvalContext::new(&[], &NoSession);
        assert!(expr.eval(&[], &context).is_err(), "{expr:?}");
    }
    let context = EvalContext::new(&[], &NoSession);
    let nothing = Expr::Concat(constant(Value::Null), text());
    assert_eq!(nothing.eval(&[], &context).unwrap(), Value::Null);
}
