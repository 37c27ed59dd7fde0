//! Functions about the session's connection: the addresses of its sides. They are NULL over a Unix-domain socket.

use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::catalog_facts::ConnectionSide::{self, Client, Server};
use crate::context::SessionFacts;
use crate::error::Result;
use crate::value::DataType::{Inet as Address, Int4};
use crate::value::{Inet, Value};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        2196,
        "inet_client_addr",
        &[],
        Address,
        Session(|_, session| address(session, Client)),
    )
    .stable(),
    row(
        2197,
        "inet_client_port",
        &[],
        Int4,
        Session(|_, session| port(session, Client)),
    )
    .stable(),
    row(
        2198,
        "inet_server_addr",
        &[],
        Address,
        Session(|_, session| address(session, Server)),
    )
    .stable(),
    row(
        2199,
        "inet_server_port",
        &[],
        Int4,
        Session(|_, session| port(session, Server)),
    )
    .stable(),
];

fn address(session: &dyn SessionFacts, side: ConnectionSide) -> Result<Value> {
    let found = session.catalog()?.connection_address(side);
    Ok(found.map_or(Value::Null, |address| {
        Value::Inet(Inet::host(address.ip().to_canonical()))
    }))
}

fn port(session: &dyn SessionFacts, side: ConnectionSide) -> Result<Value> {
    let found = session.catalog()?.connection_address(side);
    Ok(found.map_or(Value::Null, |address| Value::Int4(i32::from(address.port()))))
}
