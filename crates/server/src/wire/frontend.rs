//! The bodies of a client's messages, borrowed from the read buffer.
//!
//! [`decode`] checks a body to its last byte, so the iterators over what it holds cannot fail.

use crate::wire::{Body, WireError, utf8};

/// The target of Describe and Close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// A prepared statement, by name.
    Statement(&'a str),
    /// A portal, by name.
    Portal(&'a str),
}

/// A client's message after start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Statements to run at once.
    Query(&'a str),
    /// A statement to prepare.
    Parse(Parse<'a>),
    /// Parameters for a prepared statement.
    Bind(Bind<'a>),
    /// A question about columns and parameters.
    Describe(Target<'a>),
    /// A portal to run.
    Execute {
        /// The portal's name.
        portal: &'a str,
        /// The most rows to send; 0 for all.
        max_rows: u32,
    },
    /// A statement or portal to forget.
    Close(Target<'a>),
    /// Answers are wanted now.
    Flush,
    /// The end of a batch.
    Sync,
    /// A piece of COPY data.
    CopyData(&'a [u8]),
    /// The end of COPY data.
    CopyDone,
    /// The client gives up a COPY, and why.
    CopyFail(&'a str),
    /// A function call: known, not supported.
    FunctionCall,
    /// A password that the server did not ask for.
    Password,
    /// Farewell.
    Terminate,
}

/// A statement to prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The name to give it; empty for the unnamed one.
    pub name: &'a str,
    /// Its text.
    pub sql: &'a str,
    types: &'a [u8],
}

impl<'a> Parse<'a> {
    /// The types the client gives its first parameters; 0 where it does not say.
    pub fn types(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.types
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// Parameters for a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal to make.
    pub portal: &'a str,
    /// The statement to make it of.
    pub statement: &'a str,
    /// The formats of the parameters.
    pub formats: Formats<'a>,
    count: u16,
    values: &'a [u8],
    /// The formats of the result's columns.
    pub result_formats: Formats<'a>,
}

impl<'a> Bind<'a> {
    /// Number of parameters.
    pub fn parameter_count(&self) -> usize {
        usize::from(self.count)
    }

    /// The parameters' bytes; `None` for NULL.
    pub fn parameters(&self) -> impl Iterator<Item = Option<&'a [u8]>> + 'a {
        let mut body = Body(self.values);
        (0..self.count).map(move |_| parameter(&mut body).expect("checked when it was decoded"))
    }
}

fn parameter<'a>(body: &mut Body<'a>) -> Result<Option<&'a [u8]>, WireError> {
    match body.i32()? {
        -1 => Ok(None),
        length => body
            .bytes(usize::try_from(length).map_err(|_| WireError::Truncated)?)
            .map(Some),
    }
}

/// Text or binary, for each of several values: none given means text for all, one holds for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Formats<'a>(&'a [u8]);

impl<'a> Formats<'a> {
    /// Number of codes that were sent.
    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// True if none was sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if this many codes can describe `values` values.
    pub fn fits(&self, values: usize) -> bool {
        self.len() <= 1 || self.len() == values
    }

    /// True if the value at this place is in binary form.
    #[inline]
    pub fn is_binary(&self, place: usize) -> bool {
        let place = if self.0.len() == 2 { 0 } else { place };
        self.0.get(2 * place + 1) == Some(&1)
    }

    /// The codes, as sent.
    pub fn codes(&self) -> impl Iterator<Item = i16> + 'a {
        self.0
            .as_chunks::<2>()
            .0
            .iter()
            .map(|bytes| i16::from_be_bytes(*bytes))
    }

    fn decode(body: &mut Body<'a>) -> Result<Formats<'a>, WireError> {
        let count = usize::from(body.u16()?);
        let formats = Formats(body.bytes(2 * count)?);
        match formats.codes().find(|code| !matches!(code, 0 | 1)) {
            Some(code) => Err(WireError::InvalidFormat(code)),
            None => Ok(formats),
        }
    }
}

/// Decodes the body of a message of this kind.
pub fn decode(kind: u8, body: &[u8]) -> Result<Message<'_>, WireError> {
    let mut body = Body(body);
    let message = match kind {
        b'Q' => Message::Query(body.string()?),
        b'P' => {
            let name = body.string()?;
            let sql = body.string()?;
            let count = usize::from(body.u16()?);
            Message::Parse(Parse {
                name,
                sql,
                types: body.bytes(4 * count)?,
            })
        }
        b'B' => Message::Bind(bind(&mut body)?),
        b'D' => Message::Describe(target(&mut body)?),
        b'E' => {
            let portal = body.string()?;
            // A negative limit means none, as in PostgreSQL.
            let max_rows = u32::try_from(body.i32()?).unwrap_or(0);
            Message::Execute { portal, max_rows }
        }
        b'C' => Message::Close(target(&mut body)?),
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => return Ok(Message::Terminate),
        b'd' => {
            let data = body.bytes(body.0.len())?;
            Message::CopyData(data)
        }
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(body.string()?),
        // Not looked into: the answer is the same whatever they hold.
        b'F' => return Ok(Message::FunctionCall),
        b'p' => return Ok(Message::Password),
        other => return Err(WireError::UnknownKind(other)),
    };
    body.end()?;
    Ok(message)
}

fn bind<'a>(body: &mut Body<'a>) -> Result<Bind<'a>, WireError> {
    let portal = body.string()?;
    let statement = body.string()?;
    let formats = Formats::decode(body)?;
    let count = body.u16()?;
    let start = body.0;
    for _ in 0..count {
        parameter(body)?;
    }
    let values = &start[..start.len() - body.0.len()];
    let result_formats = Formats::decode(body)?;
    Ok(Bind {
        portal,
        statement,
        formats,
        count,
        values,
        result_formats,
    })
}

fn target<'a>(body: &mut Body<'a>) -> Result<Target<'a>, WireError> {
    let kind = body.byte()?;
    let name = body.string()?;
    match kind {
        b'S' => Ok(Target::Statement(name)),
        b'P' => Ok(Target::Portal(name)),
        other => Err(WireError::InvalidTarget(other)),
    }
}

/// A parameter in text form.
pub fn text_parameter(bytes: &[u8]) -> Result<&str, WireError> {
    utf8(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{Bytes, BytesMut};
    use pgwire::messages::{copy, extendedquery, simplequery};

    /// Encodes with pgwire; the kind and the body.
    fn encoded(message: &impl pgwire::messages::Message) -> (u8, Vec<u8>) {
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes).unwrap();
        let crate::wire::frame::Split::Frame(frame) = crate::wire::frame::split(&bytes).unwrap() else {
            panic!("not a whole frame")
        };
        assert_eq!(frame.body.end, bytes.len());
        (frame.kind, bytes[frame.body].to_vec())
    }

    #[test]
    fn agrees_with_pgwire_on_what_clients_send() {
        let (kind, body) = encoded(&simplequery::Query::new("select 'ä'".to_owned()));
        assert_eq!(decode(kind, &body), Ok(Message::Query("select 'ä'")));

        let parse = extendedquery::Parse::new(Some("p".to_owned()), "select $1".to_owned(), vec![23, 0]);
        let (kind, body) = encoded(&parse);
        let Ok(Message::Parse(parse)) = decode(kind, &body) else {
            panic!()
        };
        assert_eq!((parse.name, parse.sql), ("p", "select $1"));
        assert_eq!(parse.types().collect::<Vec<_>>(), [23, 0]);

        let (kind, body) = encoded(&extendedquery::Bind::new(
            None,
            Some("p".to_owned()),
            vec![1],
            vec![Some(Bytes::from_static(&[0, 0, 0, 7])), None, Some(Bytes::new())],
            vec![0, 1],
        ));
        let Ok(Message::Bind(bind)) = decode(kind, &body) else {
            panic!()
        };
        assert_eq!((bind.portal, bind.statement), ("", "p"));
        assert!(
            bind.formats.is_binary(0) && bind.formats.is_binary(2),
            "one code holds for all"
        );
        assert!(!bind.result_formats.is_binary(0) && bind.result_formats.is_binary(1));
        let values: Vec<_> = bind.parameters().collect();
        assert_eq!(values, [Some(&[0, 0, 0, 7][..]), None, Some(&[][..])]);

        let (kind, body) = encoded(&extendedquery::Execute::new(Some("c".to_owned()), 10));
        assert_eq!(
            decode(kind, &body),
            Ok(Message::Execute {
                portal: "c",
                max_rows: 10
            })
        );
        let (kind, body) = encoded(&extendedquery::Describe::new(b'P', None));
        assert_eq!(decode(kind, &body), Ok(Message::Describe(Target::Portal(""))));
        let (kind, body) = encoded(&extendedquery::Close::new(b'S', Some("p".to_owned())));
        assert_eq!(decode(kind, &body), Ok(Message::Close(Target::Statement("p"))));
        let (kind, body) = encoded(&extendedquery::Sync::new());
        assert_eq!(decode(kind, &body), Ok(Message::Sync));
        let (kind, body) = encoded(&copy::CopyData::new(Bytes::from_static(b"1\t2\n")));
        assert_eq!(decode(kind, &body), Ok(Message::CopyData(b"1\t2\n")));
        let (kind, body) = encoded(&copy::CopyFail::new("enough".to_owned()));
        assert_eq!(decode(kind, &body), Ok(Message::CopyFail("enough")));
    }

    #[test]
    fn every_prefix_of_a_body_is_an_error_and_none_panics() {
        let (kind, body) = encoded(&extendedquery::Bind::new(
            Some("portal".to_owned()),
            Some("statement".to_owned()),
            vec![0, 1],
            vec![Some(Bytes::from_static(b"one")), None],
            vec![1],
        ));
        for end in 0..body.len() {
            assert!(
                decode(kind, &body[..end]).is_err(),
                "{end} of {} bytes",
                body.len()
            );
        }
        let mut longer = body.clone();
        longer.push(0);
        assert_eq!(decode(kind, &longer), Err(WireError::TrailingBytes));
    }

    #[test]
    fn bad_contents_are_told_apart() {
        assert_eq!(
            decode(b'Q', b"select '\xff'\0"),
            Err(WireError::InvalidText { byte: 0xff })
        );
        assert_eq!(decode(b'Q', b"select 1"), Err(WireError::UnterminatedString));
        assert_eq!(decode(b'D', b"Xname\0"), Err(WireError::InvalidTarget(b'X')));
        assert_eq!(
            decode(b'B', b"\0\0\0\x01\0\x02\0\0\0\0"),
            Err(WireError::InvalidFormat(2))
        );
        assert_eq!(
            decode(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
            Err(WireError::Truncated)
        );
        assert_eq!(
            decode(b'E', b"\0\xff\xff\xff\xff"),
            Ok(Message::Execute {
                portal: "",
                max_rows: 0
            })
        );
    }
}
