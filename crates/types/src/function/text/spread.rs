//! The functions of texts that take an array in the place of their last arguments.

use super::basic::{concat, concat_ws, count};
use super::format::format;
use crate::function::array_arguments::{or_null, spread};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::value::DataType::{Int4, Text};

/// The functions.
pub(in crate::function) static ROWS: [&FunctionRow; 5] =
    [&CONCAT, &CONCAT_WS, &FORMAT, &NUM_NULLS, &NUM_NONNULLS];

static CONCAT: FunctionRow = row(3058, "concat", &[], Text, Pure(|x| or_null(x, concat)))
    .stable()
    .called_on_null()
    .spread();
static CONCAT_WS: FunctionRow = row(3059, "concat_ws", &[Text], Text, Pure(|x| or_null(x, concat_ws)))
    .stable()
    .called_on_null()
    .spread();
static FORMAT: FunctionRow = row(3539, "format", &[Text], Text, Pure(|x| spread(x, format)))
    .stable()
    .called_on_null()
    .spread();
static NUM_NULLS: FunctionRow = row(
    438,
    "num_nulls",
    &[],
    Int4,
    Pure(|x| or_null(x, |x| count(x, true))),
)
.called_on_null()
.spread();
static NUM_NONNULLS: FunctionRow = row(
    440,
    "num_nonnulls",
    &[],
    Int4,
    Pure(|x| or_null(x, |x| count(x, false))),
)
.called_on_null()
.spread();
