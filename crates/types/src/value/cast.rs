//! Conversion between types: which exist, when they may happen without being asked for, and how.
//!
//! As in PostgreSQL a conversion is *implicit* (an integer meets a bigint), happens on *assignment* (a bigint is stored
//! in an integer column), or must be written out (*explicit*). Every type converts to text on assignment and from text
//! when asked to. An array converts as its elements do. A literal in quotes has no type until it meets one; it then is read in that type's text form.

use crate::error::{EngineError, Result, SqlState};
use crate::value::compare::trim_blanks;
use crate::value::datetime::{self, MICROS_PER_DAY, NamedZone};
pub use crate::value::modifier::apply_typmod;
use crate::value::network::text::format_with_bits;
use crate::value::record::FieldNames;
use crate::value::text::{byte_of, char_byte, decode_text, fit_name, one_byte, parse_float, to_text};
use crate::value::user_type::{UserType, base_and_modifier, definition_of, in_force};
use crate::value::{DataType, Interval, Numeric, RecordValue, TypeOid, Value};

/// The occasion of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Two types meet in an expression.
    Implicit,
    /// A value is stored in a column.
    Assignment,
    /// Someone wrote CAST or `::`.
    Explicit,
}

/// The least context in which `from` becomes `to`; `None` if never.
pub fn cast_context(from: DataType, to: DataType) -> Option<CastContext> {
    use CastContext::*;
    use DataType::*;
    // A domain converts as the type that it is over.
    let (from, to) = (from.base(), to.base());
    if from == to || from == Unknown {
        return Some(Implicit);
    }
    if let (Some(from), DataType::Array(to)) = (from.element(), to) {
        return cast_context(from, to.data_type());
    }
    Some(match (from, to) {
        (from, to) if from.is_oid() || to.is_oid() => return of_oids(from, to),
        (Int2, Int4 | Int8 | Float4 | Float8 | Numeric) => Implicit,
        (Int4, Int8 | Float4 | Float8 | Numeric) => Implicit,
        (Int8, Float4 | Float8 | Numeric) => Implicit,
        (Numeric, Float4 | Float8) | (Float4, Float8) => Implicit,
        (Int4, Int2) | (Int8, Int2 | Int4) => Assignment,
        (Numeric, Int2 | Int4 | Int8) | (Float4 | Float8, Int2 | Int4 | Int8 | Numeric) => Assignment,
        (Float8, Float4) => Assignment,
        (Bool, Int4) | (Int4, Bool) | (CharByte, Int4) | (Int4, CharByte) => Explicit,
        (Text | Varchar | Char, Text | Varchar | Char) => Implicit,
        (Name, Text) | (Text | Varchar | Char, Name) | (CharByte | PgNodeTree, Text) => Implicit,
        (Name | CharByte, Varchar | Char) | (Text | Varchar | Char, CharByte) => Assignment,
        (Date, Timestamp | TimestampTz) | (Timestamp, TimestampTz) => Implicit,
        (Timestamp, Date) | (TimestampTz, Date | Timestamp) => Assignment,
        (Time, TimeTz | Interval) => Implicit,
        (Timestamp, Time) | (TimestampTz, Time | TimeTz) | (TimeTz, Time) | (Interval, Time) => Assignment,
        (Json, Jsonb) | (Jsonb, Json) => Assignment,
        (Cidr, Inet) | (MacAddr, MacAddr8) | (MacAddr8, MacAddr) => Implicit,
        (Inet, Cidr) => Assignment,
        (Record, Composite(_)) => Assignment,
        (Composite(_), Record) => Implicit,
        (Jsonb, Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric) => Explicit,
        (_, Text | Varchar | Char | Name) => Assignment,
        (Text | Varchar | Char | Name, _) => Explicit,
        _ => return None,
    })
}

/// As [`cast_context`], where one of the types is `oid` or one that shows names for such numbers.
fn of_oids(from: DataType, to: DataType) -> Option<CastContext> {
    use DataType::*;
    Some(match (from, to) {
        (Oid, to) if to.is_oid() => CastContext::Implicit,
        (from, Oid) if from.is_oid() => CastContext::Implicit,
        (Regproc, Regprocedure) | (Regprocedure, Regproc) => CastContext::Implicit,
        (Regoper, Regoperator) | (Regoperator, Regoper) => CastContext::Implicit,
        (from, _) if from.is_integer() => CastContext::Implicit,
        (_, Int4 | Int8) if from.is_oid() => CastContext::Assignment,
        (Text | Varchar, Regclass) => CastContext::Implicit,
        (_, Text | Varchar | Char | Name) => CastContext::Assignment,
        (Text | Varchar | Char, _) => CastContext::Explicit,
        _ => return None,
    })
}

/// True if `from` becomes `to` in this context.
pub fn can_cast(from: DataType, to: DataType, context: CastContext) -> bool {
    cast_context(from, to).is_some_and(|least| least <= context)
}

/// True for a conversion whose result depends on the time zone or on DateStyle.
pub fn cast_depends_on_settings(from: DataType, to: DataType) -> bool {
    let kinds = [from, to].map(|kind| kind.element().unwrap_or(kind));
    let is = |kind: DataType| kinds.contains(&kind);
    let has_text = kinds
        .iter()
        .any(|kind| kind.is_string() || *kind == DataType::Unknown);
    let has_zone = is(DataType::TimestampTz) || is(DataType::TimeTz);
    let from_text = kinds[0].is_string() && matches!(kinds[1], DataType::Interval | DataType::Time);
    kinds[0] != kinds[1]
        && (from_text
            || (has_text && (has_zone || is(DataType::Timestamp) || is(DataType::Date)))
            || (is(DataType::TimestampTz) && !has_text)
            || kinds == [DataType::Time, DataType::TimeTz])
}

/// Converts a value; NULL stays NULL. `now` is what a text's `now` and `today` are counted from: when the transaction
/// began.
pub fn cast(
    value: Value,
    from: DataType,
    to: DataType,
    typmod: i32,
    context: CastContext,
    now: i64,
) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let (from, base) = (from.base(), to.base());
    let converted = match from == base {
        true => value,
        false => convert(value, from, base, now)?,
    };
    let typmod = match base {
        // Elements of a domain have its modifier.
        DataType::Array(element) if typmod < 0 => base_and_modifier(element.data_type(), typmod).1,
        _ => typmod,
    };
    apply_typmod(converted, base, typmod, context == CastContext::Explicit)
}

fn convert(value: Value, from: DataType, to: DataType, now: i64) -> Result<Value> {
    use DataType::{
        Bool, Char, CharByte, Date, Float4, Float8, Int2, Int4, Int8, Name, Text, Timestamp, TimestampTz,
        Unknown, Varchar,
    };
    match (value, to) {
        (Value::Record(record), DataType::Composite(oid)) => to_composite(*record, oid, now).map(Value::from),
        (Value::Record(record), DataType::Record) => {
            let names = record
                .names()
                .cloned()
                .or_else(|| field_names(record.data_type()));
            Ok(record.as_type(DataType::Record).with_names(names).into())
        }
        (Value::Array(array), DataType::Array(element)) => {
            let (from, element) = (array.element_type(), element.data_type());
            Ok(array
                .try_map(to, |value| {
                    if from.base() == element.base() {
                        Ok(value)
                    } else {
                        convert(value, from.base(), element.base(), now)
                    }
                })?
                .into())
        }
        (Value::Text(text), CharByte) if from.is_string() => Ok(Value::Text(one_byte(&text).into())),
        (Value::Text(text), Int4) if from == CharByte => {
            Ok(Value::Int4(i32::from(byte_of(&text).cast_signed())))
        }
        (Value::Text(text), Text | Varchar | Name) => {
            let text = if from == Char {
                trim_blanks(&text).into()
            } else {
                text
            };
            Ok(Value::Text(match to {
                Name => fit_name(&text).into(),
                _ => text,
            }))
        }
        (Value::Text(text), Char) => Ok(Value::Text(text)),
        (Value::Text(text), _) => decode_text(if from == Char { trim_blanks(&text) } else { &text }, to, now),
        (Value::Json(text), DataType::Jsonb) => decode_text(&text, to, now),
        (value @ Value::Jsonb(_), DataType::Json) => {
            Ok(Value::Json(to_text(&value).unwrap_or_default().into()))
        }
        (Value::Jsonb(json), Bool) => json.as_ref().scalar(to),
        (Value::Jsonb(json), Int2 | Int4 | Int8 | Float4 | Float8 | DataType::Numeric) => {
            match json.as_ref().scalar(to)? {
                number if to == DataType::Numeric => Ok(number),
                number => convert(number, DataType::Numeric, to, now),
            }
        }
        (Value::Bool(v), Text | Varchar | Char) => Ok(Value::from(if v { "true" } else { "false" })),
        // With its prefix even if that is the whole address.
        (Value::Inet(v), Text | Varchar | Char) => {
            let mut text = String::new();
            format_with_bits(v, &mut text);
            Ok(Value::Text(text.into()))
        }
        (value, Name) => Ok(Value::text(fit_name(&to_text(&value).unwrap_or_default()))),
        (value, Text | Varchar | Char | Unknown) => {
            Ok(Value::Text(to_text(&value).expect("not NULL").into()))
        }
        (Value::Int4(v), CharByte) => match i8::try_from(v) {
            Ok(byte) => Ok(Value::Text(char_byte(byte.cast_unsigned()).into())),
            Err(_) => Err(EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "\"char\" out of range",
            )),
        },
        (Value::Cidr(v), DataType::Inet) => Ok(Value::Inet(v)),
        (Value::Inet(v), DataType::Cidr) => Ok(Value::Cidr(v.network())),
        (Value::MacAddr([a, b, c, d, e, f]), DataType::MacAddr8) => {
            Ok(Value::MacAddr8([a, b, c, 0xff, 0xfe, d, e, f]))
        }
        (Value::MacAddr8(bytes), DataType::MacAddr) => shorten_mac(bytes).map(Value::MacAddr),
        // The same 32 bits.
        (Value::Int4(v), to) if to.is_oid() => Ok(Value::Oid(v.cast_unsigned())),
        (Value::Int2(v), to) if to.is_oid() => Ok(Value::Oid(i32::from(v).cast_unsigned())),
        (Value::Oid(v), Int4) => Ok(Value::Int4(v.cast_signed())),
        (Value::Oid(v), to) if to.is_oid() => Ok(Value::Oid(v)),
        (Value::Bool(v), Int4) => Ok(Value::Int4(i32::from(v))),
        (Value::Int4(v), Bool) => Ok(Value::Bool(v != 0)),
        (Value::Date(v), Timestamp) => date_to_timestamp(v).map(Value::Timestamp),
        (Value::Date(v), TimestampTz) => moment(date_to_timestamp(v)?),
        (Value::Timestamp(v), TimestampTz) => moment(v),
        (Value::TimestampTz(v), Timestamp) => local(v).map(Value::Timestamp),
        (Value::Timestamp(v), Date) => Ok(day_of(v)),
        (Value::TimestampTz(v), Date) => local(v).map(day_of),
        (Value::Timestamp(i64::MAX | i64::MIN), DataType::Time)
        | (Value::TimestampTz(i64::MAX | i64::MIN), DataType::Time | DataType::TimeTz) => Ok(Value::Null),
        (Value::Timestamp(v), DataType::Time) => Ok(Value::Time(v.rem_euclid(MICROS_PER_DAY))),
        (Value::TimestampTz(v), DataType::Time) => Ok(Value::Time(local(v)?.rem_euclid(MICROS_PER_DAY))),
        (Value::TimestampTz(v), DataType::TimeTz) => {
            let east = NamedZone::of_session().offset_at(v);
            Ok(Value::TimeTz(local(v)?.rem_euclid(MICROS_PER_DAY), -east as i32))
        }
        (Value::TimeTz(v, _), DataType::Time) => Ok(Value::Time(v)),
        (Value::Time(v), DataType::TimeTz) => {
            let zone = NamedZone::of_session();
            let today = zone.local(now).div_euclid(MICROS_PER_DAY);
            Ok(Value::TimeTz(v, -zone.offset_of_clock(today, v) as i32))
        }
        (Value::Time(v), DataType::Interval) => Ok(Value::Interval(Interval::new(0, 0, v))),
        (Value::Interval(v), DataType::Time) => Ok(Value::Time(v.micros.rem_euclid(MICROS_PER_DAY))),
        (Value::Float8(v), DataType::Numeric) => Numeric::from_f64(v).map(Value::Numeric),
        (Value::Float4(v), DataType::Numeric) => Numeric::from_f32(v).map(Value::Numeric),
        (Value::Numeric(v), Float8) => v.to_f64().map(Value::Float8).ok_or_else(|| {
            EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("\"{v}\" is out of range for type double precision"),
            )
        }),
        // By way of the text: a double in between would round twice.
        (Value::Numeric(v), Float4) => parse_float(&v.to_string()).map(Value::Float4),
        (Value::Float4(v), Float8) => Ok(Value::Float8(f64::from(v))),
        (Value::Float8(v), Float4) => shorten(v).map(Value::Float4),
        (Value::Float4(v), Int2 | Int4 | Int8) => round_to_whole(f64::from(v), to),
        (Value::Float8(v), Int2 | Int4 | Int8) => round_to_whole(v, to),
        (Value::Numeric(v), Int2 | Int4 | Int8) => {
            if !v.is_finite() {
                let kind = if v.is_nan() { "NaN" } else { "infinity" };
                let message = format!("cannot convert {kind} to {to}");
                return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            let whole = v.to_i128().and_then(|whole| i64::try_from(whole).ok());
            narrow(whole.ok_or_else(|| out_of_range(to))?, to)
        }
        (value, to) => match (value.as_i64(), to) {
            (Some(v), Int2 | Int4 | Int8) => narrow(v, to),
            (Some(v), to) if to.is_oid() => narrow(v, to),
            (Some(v), Float4) => Ok(Value::Float4(v as f32)),
            (Some(v), Float8) => Ok(Value::Float8(v as f64)),
            (Some(v), DataType::Numeric) => Ok(Value::Numeric(Numeric::from(v))),
            _ => Err(EngineError::new(
                SqlState::CANNOT_COERCE,
                format!("cannot cast type {from} to {to}"),
            )),
        },
    }
}

/// The names of a composite type's fields.
pub fn field_names(of: DataType) -> Option<FieldNames> {
    let definition = definition_of(of)?;
    let composite = definition.composite()?;
    Some(
        composite
            .fields
            .iter()
            .map(|field| field.name.as_str().into())
            .collect(),
    )
}

/// A record as a value of a composite type, each field converted as a stored value is.
fn to_composite(record: RecordValue, oid: TypeOid, now: i64) -> Result<RecordValue> {
    let (to, from) = (DataType::Composite(oid), record.data_type());
    let refused = |detail: String| {
        EngineError::new(
            SqlState::CANNOT_COERCE,
            format!("cannot cast type {from} to {to}"),
        )
        .with_detail(detail)
    };
    let found = in_force::get(oid);
    let composite = found.as_deref().and_then(UserType::composite);
    let composite = composite.ok_or_else(|| EngineError::internal("a type is not composite"))?;
    if record.fields().len() != composite.fields.len() {
        let detail = match record.fields().len() < composite.fields.len() {
            true => "Input has too few columns.",
            false => "Input has too many columns.",
        };
        return Err(refused(detail.to_owned()));
    }
    let mut fields = Vec::with_capacity(composite.fields.len());
    for (at, ((value, from), field)) in record.typed_fields().zip(&composite.fields).enumerate() {
        if !can_cast(from, field.data_type, CastContext::Assignment) {
            return Err(refused(format!(
                "Cannot cast type {from} to {} in column {}.",
                field.data_type,
                at + 1
            )));
        }
        let value = value.clone();
        fields.push(cast(
            value,
            from,
            field.data_type,
            field.typmod,
            CastContext::Assignment,
            now,
        )?);
    }
    Ok(RecordValue::new(fields, composite.types().collect())?
        .as_type(to)
        .with_names(None))
}

/// The address of six bytes that became one of eight.
fn shorten_mac(bytes: [u8; 8]) -> Result<[u8; 6]> {
    match bytes {
        [a, b, c, 0xff, 0xfe, d, e, f] => Ok([a, b, c, d, e, f]),
        _ => Err(EngineError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "macaddr8 data out of range to convert to macaddr",
        )
        .with_hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
             xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        )),
    }
}

/// The nearest `real`; 22003 for what would become infinite or zero.
fn shorten(value: f64) -> Result<f32> {
    let short = value as f32;
    let problem = match () {
        _ if short.is_infinite() && value.is_finite() => "overflow",
        _ if short == 0.0 && value != 0.0 => "underflow",
        _ => return Ok(short),
    };
    Err(EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value out of range: {problem}"),
    ))
}

/// The nearest whole number, halves to the even one.
fn round_to_whole(value: f64, to: DataType) -> Result<Value> {
    let rounded = value.round_ties_even();
    // Both ends are exact as floats; i64::MAX itself is not.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded);
    if !fits {
        return Err(out_of_range(to));
    }
    narrow(rounded as i64, to)
}

fn narrow(value: i64, to: DataType) -> Result<Value> {
    let narrowed = match to {
        DataType::Int2 => i16::try_from(value).ok().map(Value::Int2),
        DataType::Int4 => i32::try_from(value).ok().map(Value::Int4),
        to if to.is_oid() => u32::try_from(value).ok().map(Value::Oid),
        _ => Some(Value::Int8(value)),
    };
    narrowed.ok_or_else(|| out_of_range(to))
}

/// The moment at which the session's clocks show a time.
fn moment(local: i64) -> Result<Value> {
    if datetime::reads_by_default() {
        return Ok(Value::TimestampTz(local));
    }
    let moment = NamedZone::of_session().moment(local);
    in_range(moment).map(Value::TimestampTz)
}

/// The time that the session's clocks show at a moment.
#[inline]
fn local(moment: i64) -> Result<i64> {
    if datetime::reads_by_default() {
        return Ok(moment);
    }
    in_range(NamedZone::of_session().local(moment))
}

fn in_range(micros: i64) -> Result<i64> {
    match micros == i64::MAX || micros == i64::MIN || datetime::is_valid_timestamp(micros) {
        true => Ok(micros),
        false => Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "timestamp out of range",
        )),
    }
}

/// The day that a time is in.
fn day_of(local: i64) -> Value {
    Value::Date(match local {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        local => local.div_euclid(MICROS_PER_DAY) as i32,
    })
}

fn date_to_timestamp(days: i32) -> Result<i64> {
    match days {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        days => i64::from(days)
            .checked_mul(MICROS_PER_DAY)
            .filter(|micros| datetime::is_valid_timestamp(*micros))
            .ok_or_else(|| {
                EngineError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    "date out of range for timestamp",
                )
            }),
    }
}

#[cold]
fn out_of_range(to: DataType) -> EngineError {
    let to = if to.is_oid() { "OID".into() } else { to.name() };
    EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{to} out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explicit(value: Value, from: DataType, to: DataType) -> Value {
        cast(value, from, to, -1, CastContext::Explicit, 0).unwrap()
    }

    #[test]
    fn rounding_follows_the_source_type() {
        assert_eq!(
            explicit(Value::Float8(2.5), DataType::Float8, DataType::Int4),
            Value::Int4(2)
        );
        assert_eq!(
            explicit(Value::Float8(3.5), DataType::Float8, DataType::Int4),
            Value::Int4(4)
        );
        let numeric = |text: &str| Value::Numeric(text.parse().unwrap());
        assert_eq!(
            explicit(numeric("2.5"), DataType::Numeric, DataType::Int4),
            Value::Int4(3)
        );
        assert_eq!(
            explicit(numeric("-2.5"), DataType::Numeric, DataType::Int4),
            Value::Int4(-3)
        );
        assert_eq!(
            explicit(Value::Float8(0.1), DataType::Float8, DataType::Numeric),
            numeric("0.1")
        );
        // A real stands for six digits, and becomes the double that it is.
        assert_eq!(
            explicit(Value::Float4(1.234_567_8), DataType::Float4, DataType::Numeric),
            numeric("1.23457")
        );
        assert_eq!(
            explicit(Value::Float4(0.1), DataType::Float4, DataType::Float8),
            Value::Float8(0.100_000_001_490_116_12)
        );
        assert_eq!(
            explicit(Value::Float4(-2.5), DataType::Float4, DataType::Int2),
            Value::Int2(-2)
        );
        // Halfway between two reals but for the last digit: rounded once, it goes up.
        assert_eq!(
            explicit(
                numeric("1.00000005960464477539062500000000001"),
                DataType::Numeric,
                DataType::Float4
            ),
            Value::Float4(1.000_000_1)
        );
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let code = |value, from, to| {
            cast(value, from, to, -1, CastContext::Explicit, 0)
                .unwrap_err()
                .sqlstate()
        };
        assert_eq!(
            code(Value::Int8(1 << 40), DataType::Int8, DataType::Int4),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
        assert_eq!(
            code(Value::Float8(1e300), DataType::Float8, DataType::Int8),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
        for (value, from, to) in [
            (Value::Float4(1e19), DataType::Float4, DataType::Int8),
            (Value::Float8(1e39), DataType::Float8, DataType::Float4),
            (Value::Float8(1e-60), DataType::Float8, DataType::Float4),
            (
                Value::Numeric("1e-60".parse().unwrap()),
                DataType::Numeric,
                DataType::Float4,
            ),
        ] {
            assert_eq!(code(value, from, to), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        }
        assert_eq!(
            code(Value::from("x"), DataType::Text, DataType::Int4),
            SqlState::INVALID_TEXT_REPRESENTATION
        );
    }

    #[test]
    fn a_char_loses_its_padding_when_it_becomes_text() {
        assert_eq!(
            explicit(Value::from("ab  "), DataType::Char, DataType::Text),
            Value::from("ab")
        );
        assert_eq!(
            explicit(Value::Bool(true), DataType::Bool, DataType::Text),
            Value::from("true")
        );
    }

    #[test]
    fn contexts_are_postgresqls() {
        use DataType::*;
        assert!(can_cast(Int4, Int8, CastContext::Implicit));
        assert!(!can_cast(Int8, Int4, CastContext::Implicit));
        assert!(can_cast(Int8, Int4, CastContext::Assignment));
        assert!(!can_cast(Text, Int4, CastContext::Assignment));
        assert!(can_cast(Text, Int4, CastContext::Explicit));
        assert!(can_cast(Numeric, Float4, CastContext::Implicit));
        assert!(can_cast(Float8, Float4, CastContext::Assignment));
        assert!(!can_cast(Float8, Float4, CastContext::Implicit));
        assert!(!can_cast(Bool, Float8, CastContext::Explicit));
        assert!(can_cast(Unknown, Date, CastContext::Implicit));
    }
}
