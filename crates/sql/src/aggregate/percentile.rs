//! Values at places of an order: `percentile_cont`, `percentile_disc` and `mode`.
//!
//! The number of rows is known before the first comes, so that the places are: only the values there are kept.

use super::AggregateCall;
use super::row::{AggregateRow, Kind, StartInOrder, other_state, row};
use super::state::{Accumulator, Percentiles, Place, State, float};
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Float8, Unknown};
use crate::value::{ArrayValue, DataType, Value};

const FLOATS: DataType = DataType::array_of(Float8);

const fn percentile(
    oid: u32,
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    start: StartInOrder,
) -> AggregateRow {
    row(oid, name, arguments, result, |_| State::Count, finish).of_kind(Kind::OrderedSet, start)
}

/// The aggregates.
pub(super) static ROWS: &[AggregateRow] = &[
    percentile(3974, "percentile_cont", &[Float8, Float8], Float8, between_rows),
    percentile(3980, "percentile_cont", &[FLOATS, Float8], FLOATS, between_rows),
    percentile(3972, "percentile_disc", &[], Unknown, at_rows).over_any(one_of_any),
    percentile(3978, "percentile_disc", &[], Unknown, at_rows).over_any(several_of_any),
    row(3984, "mode", &[], Unknown, |_| State::Count, most_frequent)
        .over_any(any)
        .of_kind(Kind::OrderedSet, |_, _, _| Ok(State::Mode(Box::default()))),
];

fn any(arguments: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [value] => Some((vec![value], value)),
        _ => None,
    }
}

fn one_of_any(arguments: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [DataType::Array(_), _] => None,
        [_, value] => Some((vec![Float8, value], value)),
        _ => None,
    }
}

fn several_of_any(arguments: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [DataType::Array(_), value] => Some((vec![FLOATS, value], value.array_type()?)),
        _ => None,
    }
}

/// Makes the state of a call with so many rows: `place` finds the first row of a fraction, and how far beyond it the fraction lies.
fn start(rows: i64, mut direct: Vec<Value>, place: impl Fn(f64) -> (i64, f64)) -> Result<State> {
    let fractions = direct.pop().unwrap_or(Value::Null);
    let place_of = |fraction: &Value| -> Result<Option<Place>> {
        let Some(fraction) = float(fraction) else {
            return Ok(None);
        };
        if !(0.0..=1.0).contains(&fraction) {
            return Err(EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("percentile value {} is not between 0 and 1", shown(fraction)),
            ));
        }
        let (first, beyond) = place(fraction);
        Ok(Some(Place {
            first,
            beyond,
            low: Value::Null,
            high: Value::Null,
        }))
    };
    let (places, fractions) = match fractions {
        // PostgreSQL looks at several fractions only if there are rows.
        Value::Array(_) if rows == 0 => (Vec::new(), None),
        Value::Array(array) => {
            let places = array.elements().iter().map(place_of);
            (places.collect::<Result<Vec<_>>>()?, Some(array))
        }
        one => (vec![place_of(&one)?], None),
    };
    let mut by_row: Vec<usize> = (0..places.len()).filter(|at| places[*at].is_some()).collect();
    by_row.sort_by_key(|at| places[*at].as_ref().map(|place| place.first));
    Ok(State::Percentiles(Box::new(Percentiles {
        places,
        by_row,
        done: 0,
        fractions,
    })))
}

/// `percentile_disc`: the first row at or beyond the fraction.
fn at_rows(_: &AggregateCall, rows: i64, direct: Vec<Value>) -> Result<State> {
    start(rows, direct, |fraction| {
        (((fraction * rows as f64).ceil() as i64).max(1), 0.0)
    })
}

/// `percentile_cont`: between two rows.
fn between_rows(_: &AggregateCall, rows: i64, direct: Vec<Value>) -> Result<State> {
    start(rows, direct, |fraction| {
        let place = fraction * (rows - 1) as f64;
        (place.floor() as i64 + 1, place - place.floor())
    })
}

fn finish(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    let State::Percentiles(percentiles) = state.state else {
        return Err(other_state(call));
    };
    let values = percentiles.places.into_iter().map(|place| match place {
        None => Value::Null,
        Some(place) => match (float(&place.low), float(&place.high)) {
            (Some(low), Some(high)) if place.beyond > 0.0 => Value::Float8(low + place.beyond * (high - low)),
            _ => place.low,
        },
    });
    let Some(fractions) = percentiles.fractions else {
        return Ok(values.last().unwrap_or(Value::Null));
    };
    if fractions.dimensions().is_empty() {
        return Ok(ArrayValue::empty(call.result_type).into());
    }
    ArrayValue::new(
        call.result_type,
        fractions.dimensions().to_vec(),
        values.collect(),
    )
    .map(Value::from)
}

/// A number as C's `%g` shows it.
fn shown(number: f64) -> String {
    if !number.is_finite() {
        return crate::value::text::to_text(&Value::Float8(number)).unwrap_or_default();
    }
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(digits), exponent.abs());
    }
    trimmed(&format!("{number:.*}", (5 - exponent) as usize))
}

fn most_frequent(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    match state.state {
        State::Mode(mode) => Ok(mode.best),
        _ => Err(other_state(call)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_shown_with_six_digits() {
        for (number, shown) in [
            (-1.5, "-1.5"),
            (2.0, "2"),
            (1.000001, "1"),
            (123456789.0, "1.23457e+08"),
            (-0.00001, "-1e-05"),
            (-0.0001, "-0.0001"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(super::shown(number), shown);
        }
    }
}
