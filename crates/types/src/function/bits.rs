//! Operators on the bits of integers.
//!
//! The distance of a shift counts modulo the width of the machine's integer: 32 for `smallint` and `integer`, 64 for
//! `bigint`, as PostgreSQL's do on this kind of machine.

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::error::{EngineError, Result};
use crate::value::DataType::{Int2, Int4, Int8};
use crate::value::Value;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1892, "int2and", &[Int2, Int2], Int2, Pure(and)).operator("&"),
    row(1898, "int4and", &[Int4, Int4], Int4, Pure(and)).operator("&"),
    row(1904, "int8and", &[Int8, Int8], Int8, Pure(and)).operator("&"),
    row(1893, "int2or", &[Int2, Int2], Int2, Pure(or)).operator("|"),
    row(1899, "int4or", &[Int4, Int4], Int4, Pure(or)).operator("|"),
    row(1905, "int8or", &[Int8, Int8], Int8, Pure(or)).operator("|"),
    row(1894, "int2xor", &[Int2, Int2], Int2, Pure(xor)).operator("#"),
    row(1900, "int4xor", &[Int4, Int4], Int4, Pure(xor)).operator("#"),
    row(1906, "int8xor", &[Int8, Int8], Int8, Pure(xor)).operator("#"),
    row(1895, "int2not", &[Int2], Int2, Pure(not)).operator("~"),
    row(1901, "int4not", &[Int4], Int4, Pure(not)).operator("~"),
    row(1907, "int8not", &[Int8], Int8, Pure(not)).operator("~"),
    row(1896, "int2shl", &[Int2, Int4], Int2, Pure(left)).operator("<<"),
    row(1902, "int4shl", &[Int4, Int4], Int4, Pure(left)).operator("<<"),
    row(1908, "int8shl", &[Int8, Int4], Int8, Pure(left)).operator("<<"),
    row(1897, "int2shr", &[Int2, Int4], Int2, Pure(right)).operator(">>"),
    row(1903, "int4shr", &[Int4, Int4], Int4, Pure(right)).operator(">>"),
    row(1909, "int8shr", &[Int8, Int4], Int8, Pure(right)).operator(">>"),
];

/// Applies an operation to two integers of one width.
fn both(arguments: &[Value], operation: fn(i64, i64) -> i64) -> Result<Value> {
    match arguments {
        [Value::Int2(x), Value::Int2(y)] => Ok(Value::Int2(operation(i64::from(*x), i64::from(*y)) as i16)),
        [Value::Int4(x), Value::Int4(y)] => Ok(Value::Int4(operation(i64::from(*x), i64::from(*y)) as i32)),
        [Value::Int8(x), Value::Int8(y)] => Ok(Value::Int8(operation(*x, *y))),
        other => Err(unexpected(other)),
    }
}

fn and(arguments: &[Value]) -> Result<Value> {
    both(arguments, |x, y| x & y)
}

fn or(arguments: &[Value]) -> Result<Value> {
    both(arguments, |x, y| x | y)
}

fn xor(arguments: &[Value]) -> Result<Value> {
    both(arguments, |x, y| x ^ y)
}

fn not(arguments: &[Value]) -> Result<Value> {
    match arguments {
        [Value::Int2(x)] => Ok(Value::Int2(!x)),
        [Value::Int4(x)] => Ok(Value::Int4(!x)),
        [Value::Int8(x)] => Ok(Value::Int8(!x)),
        other => Err(unexpected(other)),
    }
}

fn left(arguments: &[Value]) -> Result<Value> {
    match arguments {
        [Value::Int2(x), Value::Int4(by)] => Ok(Value::Int2(i32::from(*x).wrapping_shl(*by as u32) as i16)),
        [Value::Int4(x), Value::Int4(by)] => Ok(Value::Int4(x.wrapping_shl(*by as u32))),
        [Value::Int8(x), Value::Int4(by)] => Ok(Value::Int8(x.wrapping_shl(*by as u32))),
        other => Err(unexpected(other)),
    }
}

fn right(arguments: &[Value]) -> Result<Value> {
    match arguments {
        [Value::Int2(x), Value::Int4(by)] => Ok(Value::Int2(i32::from(*x).wrapping_shr(*by as u32) as i16)),
        [Value::Int4(x), Value::Int4(by)] => Ok(Value::Int4(x.wrapping_shr(*by as u32))),
        [Value::Int8(x), Value::Int4(by)] => Ok(Value::Int8(x.wrapping_shr(*by as u32))),
        other => Err(unexpected(other)),
    }
}

#[cold]
fn unexpected(arguments: &[Value]) -> EngineError {
    EngineError::internal(format!("a bit operator over {arguments:?}"))
}
