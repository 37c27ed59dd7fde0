//! Names of types: from syntax to a type and its modifier.

use sqlparser::ast;

use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType;
use crate::value::datatype::numeric_typmod;
use crate::value::datetime::{IntervalField, interval_typmod};
use crate::value::user_type::in_force;

/// The most characters that a `char(n)` or `varchar(n)` may be declared with.
const LENGTH_MAX: i64 = 10_485_760;

/// The type that a text names as SQL does, with its modifier: `int`, `character varying(10)[]`.
pub fn type_of_text(text: &str) -> Result<(DataType, i32)> {
    let syntax = || {
        EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("invalid type name \"{}\"", crate::error::shown(text)),
        )
    };
    let mut parser = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {})
        .try_with_sql(text)
        .map_err(|_| syntax())?;
    let tree = parser.parse_data_type().map_err(|_| syntax())?;
    if parser.peek_token_ref().token != sqlparser::tokenizer::Token::EOF {
        return Err(syntax());
    }
    written(&tree)
}

/// The type and its modifier that a statement names.
pub fn written(tree: &ast::DataType) -> Result<(DataType, i32)> {
    use ast::ArrayElemTypeDef as A;
    if let ast::DataType::Array(A::SquareBracket(element, _) | A::Qualified(element, _)) = tree {
        let (element, typmod) = written(element)?;
        // PostgreSQL takes any number of brackets and sizes, and keeps none of them.
        let array = match element {
            DataType::Array(_) => Some(element),
            element => element.array_type(),
        };
        return Ok((
            array.ok_or_else(|| unknown_type(&format!("{element}[]")))?,
            typmod,
        ));
    }
    let (data_type, modifiers) = spelled(tree)?;
    let typmod = match (data_type, tree) {
        // A char without a length has one.
        (DataType::Char, ast::DataType::Char(None) | ast::DataType::Character(None)) => 5,
        (DataType::Interval, ast::DataType::Interval { fields, precision }) => {
            interval_modifier(fields.as_ref(), *precision)?
        }
        _ => modifier(data_type, &modifiers)?,
    };
    Ok((data_type, typmod))
}

/// The type, and the numbers in parentheses behind its name.
fn spelled(tree: &ast::DataType) -> Result<(DataType, Vec<i64>)> {
    use ast::DataType as T;
    use ast::TimezoneInfo as Z;
    let plain = |data_type| Ok((data_type, Vec::new()));
    match tree {
        T::Boolean | T::Bool => plain(DataType::Bool),
        T::SmallInt(None) | T::Int2(None) => plain(DataType::Int2),
        T::Int(None) | T::Integer(None) | T::Int4(None) => plain(DataType::Int4),
        T::BigInt(None) | T::Int8(None) => plain(DataType::Int8),
        T::Real | T::Float4 => plain(DataType::Float4),
        T::DoublePrecision | T::Float8 | T::Double(ast::ExactNumberInfo::None) => plain(DataType::Float8),
        T::Float(ast::ExactNumberInfo::None) => plain(DataType::Float8),
        T::Float(ast::ExactNumberInfo::Precision(bits)) => plain(float_of_bits(*bits)?),
        T::Numeric(info) | T::Decimal(info) | T::Dec(info) => Ok((DataType::Numeric, numbers(info))),
        T::Varchar(n) | T::CharacterVarying(n) | T::CharVarying(n) => Ok((DataType::Varchar, length(n)?)),
        T::Char(n) | T::Character(n) => Ok((DataType::Char, length(n)?)),
        T::Timestamp(p, Z::None | Z::WithoutTimeZone) => Ok((DataType::Timestamp, precision(*p))),
        T::Timestamp(p, Z::WithTimeZone | Z::Tz) => Ok((DataType::TimestampTz, precision(*p))),
        T::Time(p, Z::None | Z::WithoutTimeZone) => Ok((DataType::Time, precision(*p))),
        T::Time(p, Z::WithTimeZone | Z::Tz) => Ok((DataType::TimeTz, precision(*p))),
        T::Interval { .. } => plain(DataType::Interval),
        T::Custom(name, modifiers) => {
            let data_type = named(name)?;
            let modifiers = modifiers.iter().map(|modifier| modifier.parse());
            let modifiers = modifiers.collect::<Result<_, _>>().map_err(|_| {
                EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    "type modifiers must be simple constants or identifiers",
                )
            })?;
            Ok((data_type, modifiers))
        }
        other => {
            let shown = other.to_string().to_lowercase();
            let data_type = known(&shown)
                // A word that only the parser knows as a type.
                .or_else(|| in_force::named(None, &shown))
                .ok_or_else(|| EngineError::not_supported(format!("type {shown}")))?;
            plain(data_type)
        }
    }
}

/// The type of this name: one of the system, or one that users have made.
fn named(name: &ast::ObjectName) -> Result<DataType> {
    let normal = |ident: &ast::Ident| match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    };
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(normal)).collect();
    let (schema, name) = match parts.as_deref() {
        Some([name]) => (None, name),
        Some([schema, name]) => (Some(schema.as_str()), name),
        _ => return Err(EngineError::not_supported(format!("the type name {name}"))),
    };
    let of_system = matches!(schema, None | Some("pg_catalog"));
    let found = known(name).filter(|_| of_system);
    found
        .or_else(|| in_force::named(schema, name))
        .ok_or_else(|| match schema {
            Some(schema) => EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("type \"{schema}.{name}\" does not exist"),
            ),
            None => unknown_type(name),
        })
}

/// The type of this name in `pg_type`, if a statement may use it.
fn known(name: &str) -> Option<DataType> {
    DataType::named(name).filter(|data_type| data_type.kind() != 'p')
}

fn length(length: &Option<ast::CharacterLength>) -> Result<Vec<i64>> {
    match length {
        None => Ok(Vec::new()),
        Some(ast::CharacterLength::IntegerLength {
            length,
            unit: None | Some(ast::CharLengthUnits::Characters),
        }) => Ok(vec![i64::try_from(*length).unwrap_or(i64::MAX)]),
        Some(other) => Err(EngineError::not_supported(format!("the length {other}"))),
    }
}

fn precision(precision: Option<u64>) -> Vec<i64> {
    precision
        .map(|digits| i64::try_from(digits).unwrap_or(i64::MAX))
        .into_iter()
        .collect()
}

fn numbers(info: &ast::ExactNumberInfo) -> Vec<i64> {
    match info {
        ast::ExactNumberInfo::None => Vec::new(),
        ast::ExactNumberInfo::Precision(precision) => {
            vec![i64::try_from(*precision).unwrap_or(i64::MAX)]
        }
        ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => {
            vec![i64::try_from(*precision).unwrap_or(i64::MAX), *scale]
        }
    }
}

/// The modifier that these numbers mean for a type; −1 without any.
fn modifier(data_type: DataType, numbers: &[i64]) -> Result<i32> {
    let invalid = |message: String| Err(EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    let name = match data_type {
        DataType::Char => "char",
        other => &*other.internal_name(),
    };
    match (data_type, numbers) {
        (_, []) => Ok(-1),
        (DataType::Char | DataType::Varchar, [length]) => match *length {
            1..=LENGTH_MAX => Ok(*length as i32 + 4),
            ..1 => invalid(format!("length for type {name} must be at least 1")),
            _ => invalid(format!("length for type {name} cannot exceed {LENGTH_MAX}")),
        },
        (DataType::Timestamp | DataType::TimestampTz, [digits]) => match *digits {
            0..=6 => Ok(*digits as i32),
            _ => invalid("the precision of a timestamp must be 0 to 6".to_owned()),
        },
        (DataType::Time | DataType::TimeTz, [digits]) => match *digits {
            // More digits than there are become as many as there are.
            0.. => Ok((*digits).min(6) as i32),
            _ => invalid(format!("TIME({digits}) precision must not be negative")),
        },
        (DataType::Numeric, [precision] | [precision, _]) => {
            let scale = numbers.get(1).copied().unwrap_or(0);
            if !(1..=1000).contains(precision) {
                return invalid(format!(
                    "NUMERIC precision {precision} must be between 1 and 1000"
                ));
            }
            if !(-1000..=1000).contains(&scale) {
                return invalid(format!("NUMERIC scale {scale} must be between -1000 and 1000"));
            }
            Ok(numeric_typmod(*precision as i32, scale as i32))
        }
        (DataType::Numeric, _) => invalid("invalid NUMERIC type modifier".to_owned()),
        (DataType::Char | DataType::Varchar | DataType::Timestamp | DataType::TimestampTz, _) => {
            invalid("invalid type modifier".to_owned())
        }
        _ => Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("type modifier is not allowed for type \"{name}\""),
        )),
    }
}

/// The modifier of an interval.
fn interval_modifier(fields: Option<&ast::IntervalFields>, precision: Option<u64>) -> Result<i32> {
    use IntervalField::{Day, Hour, Minute, Month, Second, Year};
    use ast::IntervalFields as F;
    let fields = fields.map(|fields| match fields {
        F::Year => (Year, Year),
        F::Month => (Month, Month),
        F::Day => (Day, Day),
        F::Hour => (Hour, Hour),
        F::Minute => (Minute, Minute),
        F::Second => (Second, Second),
        F::YearToMonth => (Year, Month),
        F::DayToHour => (Day, Hour),
        F::DayToMinute => (Day, Minute),
        F::DayToSecond => (Day, Second),
        F::HourToMinute => (Hour, Minute),
        F::HourToSecond => (Hour, Second),
        F::MinuteToSecond => (Minute, Second),
    });
    interval_typmod_of(fields, precision)
}

fn interval_typmod_of(fields: Option<(IntervalField, IntervalField)>, precision: Option<u64>) -> Result<i32> {
    let digits = precision.map(|digits| digits.min(6) as i32);
    if digits.is_some() && fields.is_some_and(|(_, last)| last != IntervalField::Second) {
        return Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            "syntax error at or near \"(\"",
        ));
    }
    Ok(interval_typmod(fields, digits))
}

/// The modifier that follows an interval's text: `interval '1' day`, `interval '1:2' minute to second(3)`.
pub fn literal_modifier(interval: &ast::Interval) -> Result<i32> {
    let field = |field: &ast::DateTimeField| {
        Some(match field {
            ast::DateTimeField::Year => IntervalField::Year,
            ast::DateTimeField::Month => IntervalField::Month,
            ast::DateTimeField::Day => IntervalField::Day,
            ast::DateTimeField::Hour => IntervalField::Hour,
            ast::DateTimeField::Minute => IntervalField::Minute,
            ast::DateTimeField::Second => IntervalField::Second,
            _ => return None,
        })
    };
    let wrong = || {
        EngineError::new(
            SqlState::SYNTAX_ERROR,
            "syntax error in the fields of an interval",
        )
    };
    let first = interval
        .leading_field
        .as_ref()
        .map(|first| field(first).ok_or_else(wrong))
        .transpose()?;
    let last = interval
        .last_field
        .as_ref()
        .map(|last| field(last).ok_or_else(wrong))
        .transpose()?;
    let fields = match (first, last) {
        (None, _) => None,
        (Some(first), None) => Some((first, first)),
        (Some(first), Some(last)) => {
            // From years to months, or from a larger field to a smaller one of the rest.
            let kind = |field: IntervalField| field <= IntervalField::Month;
            if first >= last || kind(first) != kind(last) {
                return Err(wrong());
            }
            Some((first, last))
        }
    };
    interval_typmod_of(
        fields,
        interval
            .fractional_seconds_precision
            .or(interval.leading_precision),
    )
}

/// The error for a name that no type has: 0A000 if PostgreSQL has one.
fn unknown_type(name: &str) -> EngineError {
    let known_elsewhere = ["money", "xml", "point", "bit"];
    if known_elsewhere.contains(&name) {
        return EngineError::not_supported(format!("type {name}"));
    }
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("type \"{name}\" does not exist"),
    )
}

/// The type that `float(bits)` means.
fn float_of_bits(bits: u64) -> Result<DataType> {
    let message = match bits {
        0 => "precision for type float must be at least 1 bit",
        1..=24 => return Ok(DataType::Float4),
        25..=53 => return Ok(DataType::Float8),
        _ => "precision for type float must be less than 54 bits",
    };
    Err(EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

/// The name of a cast's output column: PostgreSQL's internal name of the type, of the elements' type for an array.
pub fn internal_type_name(tree: &ast::DataType) -> String {
    match written(tree) {
        Ok((data_type, _)) => data_type
            .element()
            .unwrap_or(data_type)
            .internal_name()
            .into_owned(),
        Err(_) => tree.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_types() {
        use DataType::*;
        for (text, data_type, typmod) in [
            ("int", Int4, -1),
            ("pg_catalog.int8", Int8, -1),
            ("char", Char, 5),
            ("\"char\"", CharByte, -1),
            ("bpchar", Char, -1),
            ("varchar(10)[]", DataType::array_of(Varchar), 14),
            ("int[][3]", DataType::array_of(Int4), -1),
            ("integer array", DataType::array_of(Int4), -1),
            ("_text", DataType::array_of(Text), -1),
            ("bpchar(3)", Char, 7),
            ("character varying(10)", Varchar, 14),
            ("numeric(5,2)", Numeric, numeric_typmod(5, 2)),
            ("timestamp(3) with time zone", TimestampTz, 3),
            ("double precision", Float8, -1),
        ] {
            assert_eq!(type_of_text(text).unwrap(), (data_type, typmod), "{text}");
        }
    }

    #[test]
    fn other_names_are_refused() {
        for (text, state) in [
            ("varchar(0)", SqlState::INVALID_PARAMETER_VALUE),
            ("varchar(20000000)", SqlState::INVALID_PARAMETER_VALUE),
            ("numeric(0)", SqlState::INVALID_PARAMETER_VALUE),
            ("oid(3)", SqlState::SYNTAX_ERROR),
            ("int int", SqlState::SYNTAX_ERROR),
            ("no_such", SqlState::UNDEFINED_OBJECT),
            ("unknown", SqlState::UNDEFINED_OBJECT),
            ("bit(3)", SqlState::FEATURE_NOT_SUPPORTED),
        ] {
            assert_eq!(type_of_text(text).unwrap_err().sqlstate(), state, "{text}");
        }
    }
}
