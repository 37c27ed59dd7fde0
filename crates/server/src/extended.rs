//! Statements and portals of the extended protocol. Named statements are the session's: SQL knows them too.
//!
//! The unnamed portal, by which nearly everything runs, keeps its parameter and format vectors from one Bind to the
//! next: binding a point statement allocates nothing but what its values need.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;
use clearway_engine::Portal as Suspended;
use clearway_engine::value::{decode_binary, decode_text};
use clearway_engine::{Completion, DataType, EngineError, Output, Prepared, Session, SqlState, Value};

use crate::channel::Channel;
use crate::codec::{self, ResultFormats, Scratch};
use crate::responder::Responder;
use crate::wire::frontend::{Bind, Formats, Parse, Target, text_parameter};

/// PostgreSQL's number of the type `unknown`: as good as no type given.
const UNKNOWN_OID: u32 = 705;

/// PostgreSQL's number of the pseudo-type `void`, which some drivers send for NULL.
const VOID_OID: u32 = 2_278;

/// One client's statements and portals.
#[derive(Debug, Default)]
pub(crate) struct Extended {
    unnamed_statement: Option<Arc<Prepared>>,
    /// The formats of the rows of named portals, which are the session's: SQL knows them as cursors.
    formats: HashMap<String, ResultFormats>,
    unnamed_portal: Portal,
}

/// A statement with its parameters: the unnamed portal.
#[derive(Debug, Default)]
struct Portal {
    /// `None`: there is no such portal (the unnamed one stays as a shell).
    statement: Option<Arc<Prepared>>,
    params: Vec<Value>,
    formats: ResultFormats,
    progress: Progress,
    /// The time at which it was made, by the session's clock of savepoints.
    made: u64,
}

/// The progress of a portal.
#[derive(Debug, Default)]
enum Progress {
    #[default]
    Fresh,
    Suspended(Box<Suspended>),
    Done,
}

/// The portal to run.
#[derive(Debug)]
pub(crate) enum PortalName {
    Unnamed,
    Named(String),
}

impl Extended {
    /// Parse.
    pub(crate) fn parse(
        &mut self,
        session: &mut Session,
        parse: &Parse<'_>,
        out: &mut dyn Output,
    ) -> Result<(), EngineError> {
        if parse.name.is_empty() {
            self.unnamed_statement = None;
        }
        if parse.types().any(|oid| oid >= FIRST_USER_OID) {
            session.see_types();
        }
        let types = parse.types().map(parameter_type).collect::<Result<Vec<_>, _>>()?;
        if parse.name.is_empty() {
            self.unnamed_statement = Some(session.prepare_to(parse.sql, &types, out)?);
            Ok(())
        } else {
            session.prepare_named(parse.name, parse.sql, &types, out)
        }
    }

    fn statement<'a>(&'a self, session: &'a Session, name: &str) -> Result<&'a Arc<Prepared>, EngineError> {
        match &self.unnamed_statement {
            _ if !name.is_empty() => session.named_statement(name),
            Some(statement) => Ok(statement),
            None => Err(EngineError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                "unnamed prepared statement does not exist",
            )),
        }
    }

    /// Bind.
    pub(crate) fn bind(&mut self, session: &mut Session, bind: &Bind<'_>) -> Result<(), EngineError> {
        let statement = Arc::clone(self.statement(session, bind.statement)?);
        if !bind.portal.is_empty() {
            return self.bind_named(session, &statement, bind);
        }
        self.unnamed_portal.statement = None;
        let mut portal = std::mem::take(&mut self.unnamed_portal);
        portal.progress = Progress::Fresh;
        portal.made = session.portal_clock();
        decode_parameters(bind, statement.param_types(), session, &mut portal.params)?;
        let columns = session.result_columns(&statement).map_or(0, <[_]>::len);
        set_formats(&mut portal.formats, bind.result_formats, columns)?;
        portal.statement = Some(statement);
        self.unnamed_portal = portal;
        Ok(())
    }

    fn bind_named(
        &mut self,
        session: &mut Session,
        statement: &Arc<Prepared>,
        bind: &Bind<'_>,
    ) -> Result<(), EngineError> {
        let (mut params, mut formats) = (Vec::new(), ResultFormats::Text);
        decode_parameters(bind, statement.param_types(), session, &mut params)?;
        let columns = session.result_columns(statement).map_or(0, <[_]>::len);
        set_formats(&mut formats, bind.result_formats, columns)?;
        session.bind_portal(bind.portal, statement, params)?;
        self.formats.insert(bind.portal.to_owned(), formats);
        Ok(())
    }

    /// The formats of the rows of a named portal: those of its Bind, or of its DECLARE.
    fn formats_of(&self, session: &Session, name: &str) -> &ResultFormats {
        match self.formats.get(name) {
            Some(formats) if session.has_portal(name).1 => formats,
            _ if session.is_binary_cursor(name) => &ResultFormats::Binary,
            _ => &ResultFormats::Text,
        }
    }

    /// Describe.
    pub(crate) fn describe(
        &self,
        session: &Session,
        target: Target<'_>,
        out: &mut BytesMut,
    ) -> Result<(), EngineError> {
        let (columns, formats) = match target {
            Target::Statement(name) => {
                let statement = self.statement(session, name)?;
                codec::parameter_description(
                    out,
                    statement.param_types().iter().map(|data_type| data_type.oid()),
                );
                (session.result_columns(statement), &ResultFormats::Text)
            }
            Target::Portal("") => {
                let portal = &self.unnamed_portal;
                let statement = portal.statement.as_ref().ok_or_else(|| no_portal(""))?;
                (session.result_columns(statement), &portal.formats)
            }
            Target::Portal(name) if session.has_portal(name).0 => {
                (session.portal_columns(name), self.formats_of(session, name))
            }
            Target::Portal(name) => return Err(no_portal(name)),
        };
        match columns {
            Some(columns) => codec::row_description(out, columns, formats),
            None => codec::no_data(out),
        }
        Ok(())
    }

    /// Finds the portal that Execute names; apart from running it, since the name lies in the read buffer, which a
    /// COPY needs.
    pub(crate) fn find(&self, session: &Session, name: &str) -> Result<PortalName, EngineError> {
        if name.is_empty() && self.unnamed_portal.statement.is_some() {
            Ok(PortalName::Unnamed)
        } else if session.has_portal(name).0 {
            Ok(PortalName::Named(name.to_owned()))
        } else {
            Err(no_portal(name))
        }
    }

    /// Execute.
    pub(crate) fn execute(
        &mut self,
        session: &mut Session,
        name: PortalName,
        max_rows: u32,
        channel: &mut Channel,
        scratch: &mut Scratch,
    ) -> Result<(), EngineError> {
        let portal = match &name {
            PortalName::Unnamed => &mut self.unnamed_portal,
            PortalName::Named(name) => {
                let mut responder = Responder::new(channel, self.formats_of(session, name), scratch);
                if session.execute_portal(name, max_rows, &mut responder)? {
                    codec::portal_suspended(&mut channel.out.bytes);
                }
                return Ok(());
            }
        };
        let statement = portal.statement.as_ref().ok_or_else(|| no_portal(""))?;
        let mut responder = Responder::new(channel, &portal.formats, scratch);
        let completion = match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::Fresh => {
                let ran = session.execute(statement, &portal.params, max_rows, &mut responder);
                // It has run, or keeps its own: what they have on the heap is not kept for a portal that may stay for long.
                portal.params.clear();
                ran?
            }
            Progress::Suspended(rows) => session.resume(rows, max_rows, &mut responder)?,
            Progress::Done if statement.columns().is_some() => {
                codec::command_complete(&mut channel.out.bytes, "SELECT 0");
                return Ok(());
            }
            Progress::Done => {
                return Err(EngineError::new(
                    SqlState::from_code("55000"),
                    "portal \"\" cannot be run",
                ));
            }
        };
        if let Completion::Suspended(rows) = completion {
            portal.progress = Progress::Suspended(rows);
            codec::portal_suspended(&mut channel.out.bytes);
        }
        Ok(())
    }

    /// Close; nothing happens when there is nothing of that name.
    pub(crate) fn close(&mut self, session: &mut Session, target: Target<'_>) {
        match target {
            Target::Statement("") => self.unnamed_statement = None,
            Target::Statement(name) => drop(session.remove_named(name).ok()),
            Target::Portal("") => self.unnamed_portal.statement = None,
            Target::Portal(name) => {
                session.close_portal(name);
                self.formats.remove(name);
            }
        }
    }

    /// The transaction has ended, and its portals with it.
    pub(crate) fn forget_portals(&mut self, session: &mut Session) {
        session.end_portals();
        self.formats.clear();
        self.unnamed_portal.statement = None;
        self.unnamed_portal.params.clear();
        self.unnamed_portal.progress = Progress::Fresh;
    }

    /// A savepoint was gone back to: the unnamed portal is gone, if it was made at this time or later.
    #[cold]
    pub(crate) fn forget_portals_from(&mut self, made: u64) {
        if self.unnamed_portal.made >= made {
            self.unnamed_portal.statement = None;
            self.unnamed_portal.progress = Progress::Fresh;
        }
    }

    /// A simple query ends the unnamed statement and portal.
    pub(crate) fn forget_unnamed(&mut self) {
        self.unnamed_statement = None;
        self.unnamed_portal.statement = None;
    }
}

/// The numbers of types that users have made begin here.
const FIRST_USER_OID: u32 = 16_384;

/// The type a client gives a parameter.
fn parameter_type(oid: u32) -> Result<Option<DataType>, EngineError> {
    match oid {
        0 | UNKNOWN_OID | VOID_OID => Ok(None),
        oid => DataType::from_oid(oid)
            .map(Some)
            .ok_or_else(|| EngineError::not_supported(format!("a parameter of the type with number {oid}"))),
    }
}

/// Reads the parameters of a Bind.
fn decode_parameters(
    bind: &Bind<'_>,
    types: &[DataType],
    session: &mut Session,
    params: &mut Vec<Value>,
) -> Result<(), EngineError> {
    let count = bind.parameter_count();
    if !bind.formats.fits(count) {
        return Err(EngineError::new(
            SqlState::PROTOCOL_VIOLATION,
            format!(
                "bind message has {} parameter formats but {count} parameters",
                bind.formats.len()
            ),
        ));
    }
    if count != types.len() {
        return Err(EngineError::new(
            SqlState::PROTOCOL_VIOLATION,
            format!(
                "bind message supplies {count} parameters, but prepared statement \"{}\" requires {}",
                bind.statement,
                types.len()
            ),
        ));
    }
    params.clear();
    // SET may have run since the thread was told how dates are read.
    let is_text = |number| !bind.formats.is_binary(number);
    if types
        .iter()
        .enumerate()
        .any(|(at, known)| known.may_hold_time() && is_text(at))
    {
        session.see_types();
    }
    // The time that `now` in a text means.
    let now = session.transaction_timestamp();
    for (number, (bytes, data_type)) in bind.parameters().zip(types).enumerate() {
        params.push(match bytes {
            None => Value::Null,
            Some(bytes) if bind.formats.is_binary(number) => decode_binary(bytes, *data_type)?,
            Some(bytes) => {
                let text = text_parameter(bytes).map_err(|error| {
                    EngineError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, error.to_string())
                })?;
                match data_type.needs_session() {
                    true => session.read_name(text, *data_type)?,
                    false => decode_text(text, *data_type, now)?,
                }
            }
        });
    }
    Ok(())
}

fn set_formats(formats: &mut ResultFormats, codes: Formats<'_>, columns: usize) -> Result<(), EngineError> {
    *formats = match codes.len() {
        0 => ResultFormats::Text,
        1 if codes.is_binary(0) => ResultFormats::Binary,
        1 => ResultFormats::Text,
        _ if codes.fits(columns) => ResultFormats::Each(codes.codes().map(|code| code == 1).collect()),
        count => {
            return Err(EngineError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!("bind message has {count} result formats but query has {columns} columns"),
            ));
        }
    };
    Ok(())
}

#[cold]
fn no_portal(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_CURSOR_NAME,
        format!("portal \"{name}\" does not exist"),
    )
}
