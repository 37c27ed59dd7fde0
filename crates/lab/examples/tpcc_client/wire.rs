//! A session of a server that speaks PostgreSQL's protocol.
//!
//! Values go both ways in PostgreSQL's binary form, which the engine has functions for. A statement is one round trip:
//! Bind, Execute and Sync, as pgbench's prepared mode does it.

use std::error::Error;
use std::pin::pin;

use bytes::BytesMut;
use clearway_engine::value::{DataType, Value, decode_binary, encode_binary};
use clearway_engine::{EngineError, SqlState};
use clearway_lab::workload::tpcc::{Backend, Statement};
use futures_util::{SinkExt, TryStreamExt};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls, Row};

/// Bytes of COPY data sent at a time.
const COPY_CHUNK_BYTES: usize = 256 << 10;

/// A session.
#[derive(Debug)]
pub struct Wire {
    runtime: tokio::runtime::Runtime,
    client: Client,
    statements: Vec<tokio_postgres::Statement>,
}

impl Wire {
    /// Opens one at the server that the environment names.
    pub fn open() -> Result<Wire, EngineError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| EngineError::new(SqlState::IO_ERROR, error.to_string()))?;
        let variable = |name: &str, otherwise: &str| std::env::var(name).unwrap_or(otherwise.to_owned());
        let port = variable("PGPORT", "5432");
        let mut config = tokio_postgres::Config::new();
        config
            .host(variable("PGHOST", "127.0.0.1"))
            .user(variable("PGUSER", "postgres"))
            .dbname(variable("PGDATABASE", "postgres"))
            .port(port.parse().map_err(|_| {
                EngineError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("PGPORT is {port}, which is no port"),
                )
            })?);
        let (client, connection) = runtime.block_on(config.connect(NoTls)).map_err(engine_error)?;
        // It runs while the thread waits for an answer. An error of the connection also fails the statement that waits.
        runtime.spawn(async move {
            let _ = connection.await;
        });
        Ok(Wire {
            runtime,
            client,
            statements: Vec::new(),
        })
    }
}

impl Backend for Wire {
    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        let prepared = self.runtime.block_on(self.client.prepare(sql));
        self.statements.push(prepared.map_err(engine_error)?);
        Ok(Statement(self.statements.len() - 1))
    }

    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        rows: &mut Vec<Vec<Value>>,
    ) -> Result<(), EngineError> {
        let statement = &self.statements[statement.0];
        let found: Result<(), tokio_postgres::Error> = self.runtime.block_on(async {
            let parameters = parameters.iter().map(Parameter);
            let mut answer = pin!(self.client.query_raw(statement, parameters).await?);
            while let Some(row) = answer.try_next().await? {
                rows.push(values(&row)?);
            }
            Ok(())
        });
        found.map_err(engine_error)
    }

    fn execute(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, EngineError> {
        let rows = self.runtime.block_on(self.client.query(sql, &[]));
        let rows = rows.map_err(engine_error)?;
        rows.iter()
            .map(values)
            .collect::<Result<_, _>>()
            .map_err(engine_error)
    }

    fn copy(
        &mut self,
        table: &str,
        last: i64,
        line: &mut dyn FnMut(i64, &mut Vec<u8>),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let sent: Result<u64, tokio_postgres::Error> = self.runtime.block_on(async {
            let copy = format!("copy {table} from stdin");
            let mut sink = pin!(self.client.copy_in::<_, BytesMut>(&copy).await?);
            let mut chunk = Vec::new();
            for number in 1..=last {
                line(number, &mut chunk);
                if chunk.len() >= COPY_CHUNK_BYTES {
                    sink.send(BytesMut::from(&chunk[..])).await?;
                    chunk.clear();
                    progress(number as u64);
                }
            }
            sink.send(BytesMut::from(&chunk[..])).await?;
            sink.finish().await
        });
        sent.map(|_| ()).map_err(engine_error)
    }
}

/// A server's error with its SQLSTATE; anything else is one of the connection.
fn engine_error(error: tokio_postgres::Error) -> EngineError {
    match error.as_db_error() {
        Some(said) => EngineError::new(SqlState::from_code(said.code().code()), said.message().to_owned()),
        None => {
            let cause = error
                .source()
                .map_or(String::new(), |source| format!(": {source}"));
            EngineError::new(SqlState::IO_ERROR, format!("{error}{cause}"))
        }
    }
}

/// The values of a row.
fn values(row: &Row) -> Result<Vec<Value>, tokio_postgres::Error> {
    let fields = (0..row.len()).map(|column| row.try_get::<_, Field>(column));
    fields.map(|field| field.map(|field| field.0)).collect()
}

#[derive(Debug)]
struct Parameter<'a>(&'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        if self.0.is_null() {
            return Ok(IsNull::Yes);
        }
        let mut bytes = Vec::new();
        encode_binary(self.0, &mut bytes);
        out.extend_from_slice(&bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

struct Field(Value);

impl<'a> FromSql<'a> for Field {
    fn from_sql(of: &Type, bytes: &'a [u8]) -> Result<Field, Box<dyn Error + Sync + Send>> {
        let data_type = match *of {
            Type::INT4 => DataType::Int4,
            Type::INT8 => DataType::Int8,
            Type::NUMERIC => DataType::Numeric,
            Type::VARCHAR => DataType::Varchar,
            Type::BPCHAR => DataType::Char,
            Type::TEXT => DataType::Text,
            Type::TIMESTAMP => DataType::Timestamp,
            ref other => return Err(format!("no column of TPC-C is of type {other}").into()),
        };
        Ok(Field(decode_binary(bytes, data_type)?))
    }

    fn from_sql_null(_: &Type) -> Result<Field, Box<dyn Error + Sync + Send>> {
        Ok(Field(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
