//! Functions of dates and timestamps.

mod civil;
mod extract;
pub(super) mod interval;
mod interval_template;
mod make;
mod operands;
pub(super) mod operators;
pub(super) mod overlaps;
mod reading;
mod template;
pub(super) mod time;
mod trunc;
mod unit;

pub(in crate::function) use reading::{Reading, check_standard, read_standard};

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::value::DataType::{Bool, Date, Float8, Int4, Numeric, Text, Timestamp, TimestampTz};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(6199, "extract", &[Text, Date], Numeric, Pure(extract::extract)),
    row(
        6202,
        "extract",
        &[Text, Timestamp],
        Numeric,
        Pure(extract::extract),
    ),
    row(
        6203,
        "extract",
        &[Text, TimestampTz],
        Numeric,
        Pure(extract::extract),
    )
    .stable(),
    row(1384, "date_part", &[Text, Date], Float8, Pure(extract::date_part)),
    row(
        2021,
        "date_part",
        &[Text, Timestamp],
        Float8,
        Pure(extract::date_part),
    ),
    row(
        1171,
        "date_part",
        &[Text, TimestampTz],
        Float8,
        Pure(extract::date_part),
    )
    .stable(),
    row(
        2020,
        "date_trunc",
        &[Text, Timestamp],
        Timestamp,
        Pure(trunc::date_trunc),
    ),
    row(
        1217,
        "date_trunc",
        &[Text, TimestampTz],
        TimestampTz,
        Pure(trunc::date_trunc),
    )
    .stable(),
    row(
        1284,
        "date_trunc",
        &[Text, TimestampTz, Text],
        TimestampTz,
        Pure(trunc::date_trunc),
    )
    .stable(),
    row(
        2069,
        "timezone",
        &[Text, Timestamp],
        TimestampTz,
        Pure(make::timezone),
    ),
    row(
        1159,
        "timezone",
        &[Text, TimestampTz],
        Timestamp,
        Pure(make::timezone),
    ),
    row(
        3846,
        "make_date",
        &[Int4, Int4, Int4],
        Date,
        Pure(make::make_date),
    ),
    row(
        3461,
        "make_timestamp",
        &[Int4, Int4, Int4, Int4, Int4, Float8],
        Timestamp,
        Pure(make::make_timestamp),
    ),
    row(
        3462,
        "make_timestamptz",
        &[Int4, Int4, Int4, Int4, Int4, Float8],
        TimestampTz,
        Pure(make::make_timestamptz),
    )
    .stable(),
    row(
        3463,
        "make_timestamptz",
        &[Int4, Int4, Int4, Int4, Int4, Float8, Text],
        TimestampTz,
        Pure(make::make_timestamptz),
    )
    .stable(),
    row(1373, "isfinite", &[Date], Bool, Pure(make::is_finite)),
    row(2048, "isfinite", &[Timestamp], Bool, Pure(make::is_finite)),
    row(1389, "isfinite", &[TimestampTz], Bool, Pure(make::is_finite)),
    row(
        1158,
        "to_timestamp",
        &[Float8],
        TimestampTz,
        Pure(make::from_seconds),
    ),
    row(2049, "to_char", &[Timestamp, Text], Text, Pure(template::to_char)).stable(),
    row(
        1770,
        "to_char",
        &[TimestampTz, Text],
        Text,
        Pure(template::to_char),
    )
    .stable(),
    row(1780, "to_date", &[Text, Text], Date, Pure(reading::to_date)).stable(),
    row(
        1778,
        "to_timestamp",
        &[Text, Text],
        TimestampTz,
        Pure(reading::to_timestamp),
    )
    .stable(),
];
