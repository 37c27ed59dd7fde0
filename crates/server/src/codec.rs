//! Messages as they leave: the only module that names `pgwire`.
//!
//! Messages that are sent once a session or after an error go through pgwire's types. Messages of every statement (row
//! descriptions, rows, tags, acknowledgements) are written straight into the buffer, since pgwire wants each name and
//! row in an allocation of its own; the tests compare those bytes with pgwire's.

use std::convert::Infallible;

use bytes::{BufMut, BytesMut};
use clearway_engine::output::Notice;
use clearway_engine::value::sent::{LONG_BYTES, SentForm, each_row_piece, is_long};
use clearway_engine::value::{encode_binary, encode_text};
use clearway_engine::{Column, EngineError, ReceivedNotification, TransactionStatus, Value};
use pgwire::messages::Message;
use pgwire::messages::copy::{CopyInResponse, CopyOutResponse};
use pgwire::messages::data::ParameterDescription;
use pgwire::messages::response::{ErrorResponse, NoticeResponse, NotificationResponse};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};

/// The byte that declines TLS and GSSAPI encryption.
pub(crate) const DECLINE: u8 = b'N';

/// The answer to a client that may speak TLS.
pub(crate) const ACCEPT_TLS: u8 = b'S';

/// The format of each column of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ResultFormats {
    /// All as text.
    #[default]
    Text,
    /// All in binary.
    Binary,
    /// One by one: whether in binary.
    Each(Vec<bool>),
}

impl ResultFormats {
    #[inline]
    pub(crate) fn is_binary(&self, column: usize) -> bool {
        match self {
            ResultFormats::Text => false,
            ResultFormats::Binary => true,
            ResultFormats::Each(columns) => columns.get(column).copied().unwrap_or(false),
        }
    }
}

fn put(out: &mut BytesMut, message: &impl Message) {
    let start = out.len();
    if message.encode(out).is_err() {
        // Longer than the message may be: leave it out rather than send half of it.
        debug_assert!(false, "a message outgrew its limit");
        out.truncate(start);
    }
}

pub(crate) fn authentication_ok(out: &mut BytesMut) {
    put(out, &Authentication::Ok);
}

/// The ways in which the client may prove who it is.
pub(crate) fn authentication_sasl(out: &mut BytesMut, mechanisms: &[&str]) {
    let names = mechanisms.iter().map(|name| (*name).to_owned());
    put(out, &Authentication::SASL(names.collect()));
}

pub(crate) fn authentication_sasl_continue(out: &mut BytesMut, data: String) {
    put(out, &Authentication::SASLContinue(data.into()));
}

pub(crate) fn authentication_sasl_final(out: &mut BytesMut, data: String) {
    put(out, &Authentication::SASLFinal(data.into()));
}

pub(crate) fn parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    put(out, &ParameterStatus::new(name.to_owned(), value.to_owned()));
}

pub(crate) fn notification(out: &mut BytesMut, notification: &ReceivedNotification) {
    let process_id = notification.process_id.cast_signed();
    let texts = [&notification.channel, &notification.payload].map(|text| text.as_ref().to_owned());
    let [channel, payload] = texts;
    put(out, &NotificationResponse::new(process_id, channel, payload));
}

pub(crate) fn backend_key_data(out: &mut BytesMut, process_id: u32, secret: u32) {
    put(
        out,
        &BackendKeyData::new(process_id.cast_signed(), SecretKey::I32(secret.cast_signed())),
    );
}

pub(crate) fn negotiate_protocol_version(out: &mut BytesMut, minor: u16, unknown_options: Vec<String>) {
    // PostgreSQL 15's form: the minor version alone.
    put(
        out,
        &NegotiateProtocolVersion::new(i32::from(minor), unknown_options),
    );
}

/// An ErrorResponse; `severity` is `ERROR` or `FATAL`.
pub(crate) fn error(out: &mut BytesMut, severity: &str, error: &EngineError) {
    let mut fields = head(severity, error.sqlstate().as_str(), error.message());
    fields.extend(error.detail().map(|detail| (b'D', clean(detail))));
    fields.extend(error.hint().map(|hint| (b'H', clean(hint))));
    fields.extend(error.context().map(|context| (b'W', clean(context))));
    fields.extend(error.position().map(|position| (b'P', position.to_string())));
    if let Some(object) = error.object() {
        let named = [
            (b's', &object.schema),
            (b't', &object.table),
            (b'c', &object.column),
            (b'd', &object.data_type),
            (b'n', &object.constraint),
        ];
        fields.extend(
            named
                .into_iter()
                .filter_map(|(code, name)| Some((code, clean(name.as_deref()?)))),
        );
    }
    put(out, &ErrorResponse::new(fields));
}

pub(crate) fn notice(out: &mut BytesMut, notice: &Notice) {
    let mut fields = head(notice.severity, notice.sqlstate.as_str(), &notice.message);
    fields.extend(notice.detail.as_deref().map(|detail| (b'D', clean(detail))));
    fields.extend(notice.hint.as_deref().map(|hint| (b'H', clean(hint))));
    fields.extend(notice.position.map(|position| (b'P', position.to_string())));
    put(out, &NoticeResponse::new(fields));
}

fn head(severity: &str, sqlstate: &str, message: &str) -> Vec<(u8, String)> {
    vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', sqlstate.to_owned()),
        (b'M', clean(message)),
    ]
}

/// Strings end at their zero byte, so none may be inside.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

pub(crate) fn copy_in_response(out: &mut BytesMut, columns: usize, binary: bool) {
    let formats = vec![i16::from(binary); columns];
    put(
        out,
        &CopyInResponse::new(i8::from(binary), columns as i16, formats),
    );
}

pub(crate) fn copy_out_response(out: &mut BytesMut, columns: usize, binary: bool) {
    let formats = vec![i16::from(binary); columns];
    put(
        out,
        &CopyOutResponse::new(i8::from(binary), columns as i16, formats),
    );
}

pub(crate) fn parameter_description(out: &mut BytesMut, types: impl Iterator<Item = u32>) {
    put(out, &ParameterDescription::new(types.collect()));
}

/// A message without a body.
#[inline]
fn empty(out: &mut BytesMut, kind: u8) {
    out.put_slice(&[kind, 0, 0, 0, 4]);
}

pub(crate) fn parse_complete(out: &mut BytesMut) {
    empty(out, b'1');
}

pub(crate) fn bind_complete(out: &mut BytesMut) {
    empty(out, b'2');
}

pub(crate) fn close_complete(out: &mut BytesMut) {
    empty(out, b'3');
}

pub(crate) fn no_data(out: &mut BytesMut) {
    empty(out, b'n');
}

pub(crate) fn portal_suspended(out: &mut BytesMut) {
    empty(out, b's');
}

pub(crate) fn empty_query_response(out: &mut BytesMut) {
    empty(out, b'I');
}

pub(crate) fn copy_done(out: &mut BytesMut) {
    empty(out, b'c');
}

#[inline]
pub(crate) fn ready_for_query(out: &mut BytesMut, status: TransactionStatus) {
    let status = match status {
        TransactionStatus::Idle => b'I',
        TransactionStatus::InTransaction => b'T',
        TransactionStatus::Failed => b'E',
    };
    out.put_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// Writes a message whose length is known only after its body.
#[inline]
fn framed(out: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_slice(&[kind, 0, 0, 0, 0]);
    body(out);
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

#[inline]
pub(crate) fn command_complete(out: &mut BytesMut, tag: &str) {
    framed(out, b'C', |out| {
        out.put_slice(tag.as_bytes());
        out.put_u8(0);
    });
}

pub(crate) fn copy_data(out: &mut BytesMut, data: &[u8]) {
    framed(out, b'd', |out| out.put_slice(data));
}

pub(crate) fn row_description(out: &mut BytesMut, columns: &[Column], formats: &ResultFormats) {
    framed(out, b'T', |out| {
        out.put_u16(columns.len() as u16);
        for (number, column) in columns.iter().enumerate() {
            out.put_slice(column.name.as_bytes());
            out.put_u8(0);
            out.put_u32(column.table_oid);
            out.put_i16(column.attribute);
            out.put_u32(column.data_type.oid());
            out.put_i16(column.data_type.wire_size());
            out.put_i32(column.type_modifier);
            out.put_i16(i16::from(formats.is_binary(number)));
        }
    });
}

/// Room for values that are first written into a `String` or `Vec` of their own.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    text: String,
    binary: Vec<u8>,
}

/// A value that is sent in pieces, for which [`data_row`] has given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongColumn {
    /// Its column.
    number: usize,
    /// True if the scratch has its form.
    is_made: bool,
}

/// One row, of values that are short. Otherwise nothing of it is written, and the answer is its first long value.
#[inline]
pub(crate) fn data_row(
    out: &mut BytesMut,
    values: &[Value],
    formats: &ResultFormats,
    scratch: &mut Scratch,
) -> Result<(), LongColumn> {
    let start = out.len();
    out.put_slice(&[b'D', 0, 0, 0, 0]);
    out.put_u16(values.len() as u16);
    for (number, value) in values.iter().enumerate() {
        match value {
            Value::Null => out.put_i32(-1),
            // The same bytes in both forms.
            Value::Text(text) if text.len() < LONG_BYTES => put_counted(out, text.as_bytes()),
            Value::Text(_) | Value::Json(_) | Value::Bytes(_) | Value::Jsonb(_) if is_long(value) => {
                return take_back(out, start, number, false);
            }
            _ if formats.is_binary(number) => match value {
                Value::Int4(number) => {
                    out.put_u32(4);
                    out.put_i32(*number);
                }
                Value::Int8(number) => {
                    out.put_u32(8);
                    out.put_i64(*number);
                }
                other => {
                    scratch.binary.clear();
                    encode_binary(other, &mut scratch.binary);
                    if scratch.binary.len() >= LONG_BYTES {
                        return take_back(out, start, number, true);
                    }
                    put_counted(out, &scratch.binary);
                }
            },
            _ => {
                scratch.text.clear();
                encode_text(value, &mut scratch.text);
                if scratch.text.len() >= LONG_BYTES {
                    return take_back(out, start, number, true);
                }
                put_counted(out, scratch.text.as_bytes());
            }
        }
    }
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

#[cold]
fn take_back(out: &mut BytesMut, start: usize, number: usize, is_made: bool) -> Result<(), LongColumn> {
    out.truncate(start);
    Err(LongColumn { number, is_made })
}

/// The forms of a row for which [`data_row`] has given up at a column.
pub(crate) fn long_row<'v>(
    values: &'v [Value],
    formats: &ResultFormats,
    scratch: &mut Scratch,
    long: LongColumn,
) -> Vec<Option<SentForm<'v>>> {
    let columns = values.iter().enumerate();
    let forms = columns.map(|(number, value)| match (value, formats.is_binary(number)) {
        (Value::Null, _) => None,
        // It is not made twice, and the session does not keep it.
        (_, true) if long.is_made && number == long.number => {
            Some(SentForm::made(std::mem::take(&mut scratch.binary)))
        }
        (_, false) if long.is_made && number == long.number => {
            Some(SentForm::made(std::mem::take(&mut scratch.text).into_bytes()))
        }
        (value, is_binary) => Some(SentForm::of(value, is_binary)),
    });
    forms.collect()
}

/// One row of values of any length, which gathers: for rows that are known to be short, or are few.
pub(crate) fn gathered_row(
    out: &mut BytesMut,
    values: &[Value],
    formats: &ResultFormats,
    scratch: &mut Scratch,
) {
    if let Err(long) = data_row(out, values, formats, scratch) {
        let forms = long_row(values, formats, scratch, long);
        framed(out, b'D', |out| {
            let Ok(()) = each_row_piece(&forms, &mut |piece| {
                out.put_slice(piece);
                Ok::<(), Infallible>(())
            });
        });
    }
}

#[inline]
fn put_counted(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.put_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_engine::DataType;
    use pgwire::messages::data::{DataRow, FieldDescription, RowDescription};
    use pgwire::messages::{extendedquery, response};

    fn ours(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    fn theirs(message: impl Message) -> Vec<u8> {
        ours(|out| message.encode(out).unwrap())
    }

    #[test]
    fn bytes_written_directly_are_pgwires() {
        assert_eq!(ours(parse_complete), theirs(extendedquery::ParseComplete::new()));
        assert_eq!(ours(bind_complete), theirs(extendedquery::BindComplete::new()));
        assert_eq!(ours(close_complete), theirs(extendedquery::CloseComplete::new()));
        assert_eq!(
            ours(portal_suspended),
            theirs(extendedquery::PortalSuspended::new())
        );
        assert_eq!(ours(no_data), theirs(pgwire::messages::data::NoData::new()));
        assert_eq!(
            ours(empty_query_response),
            theirs(response::EmptyQueryResponse::new())
        );
        assert_eq!(ours(copy_done), theirs(pgwire::messages::copy::CopyDone::new()));
        for (status, their_status) in [
            (TransactionStatus::Idle, response::TransactionStatus::Idle),
            (
                TransactionStatus::InTransaction,
                response::TransactionStatus::Transaction,
            ),
            (TransactionStatus::Failed, response::TransactionStatus::Error),
        ] {
            assert_eq!(
                ours(|out| ready_for_query(out, status)),
                theirs(response::ReadyForQuery::new(their_status))
            );
        }
        assert_eq!(
            ours(|out| command_complete(out, "UPDATE 1")),
            theirs(response::CommandComplete::new("UPDATE 1".to_owned()))
        );
        assert_eq!(
            ours(|out| copy_data(out, b"1\ta\n")),
            theirs(pgwire::messages::copy::CopyData::new(bytes::Bytes::from_static(
                b"1\ta\n"
            )))
        );
    }

    #[test]
    fn rows_and_their_description_are_pgwires() {
        let column = Column {
            name: "abalance".to_owned(),
            data_type: DataType::Int4,
            type_modifier: -1,
            table_oid: 16_400,
            attribute: 3,
        };
        let mut field = FieldDescription::default();
        field.name = "abalance".to_owned();
        field.table_id = 16_400;
        field.column_id = 3;
        field.type_id = 23;
        field.type_size = 4;
        field.type_modifier = -1;
        field.format_code = 1;
        assert_eq!(
            ours(|out| row_description(out, &[column], &ResultFormats::Binary)),
            theirs(RowDescription::new(vec![field]))
        );

        let values = [Value::Int4(-7), Value::Null, Value::text("ä"), Value::Bool(true)];
        let mut expected = BytesMut::new();
        expected.put_slice(&[
            0, 0, 0, 2, b'-', b'7', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 0xc3, 0xa4,
        ]);
        expected.put_slice(&[0, 0, 0, 1, b't']);
        let mut scratch = Scratch::default();
        assert_eq!(
            ours(|out| gathered_row(out, &values, &ResultFormats::Text, &mut scratch)),
            theirs(DataRow::new(expected, 4))
        );
        let mut expected = BytesMut::new();
        expected.put_slice(&[0, 0, 0, 4, 0xff, 0xff, 0xff, 0xf9, 0xff, 0xff, 0xff, 0xff]);
        expected.put_slice(&[0, 0, 0, 2, 0xc3, 0xa4, 0, 0, 0, 1, 1]);
        assert_eq!(
            ours(|out| gathered_row(out, &values, &ResultFormats::Binary, &mut scratch)),
            theirs(DataRow::new(expected, 4))
        );
    }

    /// Long values of each kind, the first of them at any place.
    #[test]
    fn long_rows_are_pgwires() {
        use clearway_engine::value::ArrayValue;
        use clearway_engine::value::array::Dimension;
        let long = "ä".repeat(LONG_BYTES);
        let texts = vec![Value::text(long.clone()), Value::text("b")];
        let array = ArrayValue::new(
            DataType::array_of(DataType::Text),
            vec![Dimension { lower: 1, length: 2 }],
            texts,
        )
        .unwrap();
        let bytes = Value::Bytes(long.as_bytes().into());
        let mut values = vec![
            Value::Int4(-7),
            array.into(),
            Value::Null,
            Value::text(long),
            bytes,
        ];
        let mut scratch = Scratch::default();
        for _ in 0..values.len() {
            values.rotate_left(1);
            for formats in [ResultFormats::Text, ResultFormats::Binary] {
                let mut expected = BytesMut::new();
                for value in &values {
                    let mut form = Vec::new();
                    match (value, &formats) {
                        (Value::Null, _) => {}
                        (value, ResultFormats::Binary) => encode_binary(value, &mut form),
                        (value, _) => {
                            let mut text = String::new();
                            encode_text(value, &mut text);
                            form = text.into_bytes();
                        }
                    }
                    match value {
                        Value::Null => expected.put_i32(-1),
                        _ => put_counted(&mut expected, &form),
                    }
                }
                let row = ours(|out| gathered_row(out, &values, &formats, &mut scratch));
                assert!(row == theirs(DataRow::new(expected, 5)), "{formats:?}");
            }
        }
        assert!(scratch.text.capacity() + scratch.binary.capacity() < 4 * LONG_BYTES);
    }
}
