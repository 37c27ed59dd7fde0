//! Lines and rows of COPY data with long values.
//!
//! A line is one message, whose length the receiver is told first. So each long field is gone through twice, once to count
//! what its escapes add, and no line is made as a whole: it would be a second copy of its values ([`sent`]).

use std::borrow::Cow;
use std::convert::Infallible;

use clearway_sql::SessionFacts;
use clearway_sql::error::Result;
use clearway_sql::plan::{Column, CopyFormat, CopyOptions};
use clearway_sql::registered;
use clearway_sql::value::sent::{self, SentForm, each_row_piece, row_length};
use clearway_sql::value::{Value, encode_text};

use crate::copy::writer::{csv_escape, each_escaped, has_special, text_escape, write_field};
use crate::output::{Output, TakePiece};

/// True if some value of a row is long.
#[inline]
pub(super) fn has_long(row: &[Value]) -> bool {
    row.iter().any(sent::is_long)
}

/// Part of a line.
enum Part<'v> {
    /// Delimiters and fields that are short.
    Made(Vec<u8>),
    /// A long field.
    Long { form: SentForm<'v>, escape: Escape },
}

/// The form of a long field.
#[derive(Clone, Copy)]
enum Escape {
    /// Of the text format.
    Text,
    /// CSV, in quotes.
    Quoted,
    /// CSV as it is.
    None,
}

impl Part<'_> {
    fn each_piece<E>(
        &self,
        options: &CopyOptions,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (form, escape) = match self {
            Part::Made(bytes) => return take(bytes),
            Part::Long { form, escape } => (form, escape),
        };
        match escape {
            Escape::None => form.each_piece(take),
            Escape::Text => {
                form.each_piece(&mut |piece| each_escaped(piece, |byte| text_escape(byte, options), take))
            }
            Escape::Quoted => {
                take(&[options.quote])?;
                form.each_piece(&mut |piece| each_escaped(piece, |byte| csv_escape(byte, options), take))?;
                take(&[options.quote])
            }
        }
    }
}

/// Sends a row as a line of text or CSV.
#[cold]
pub(super) fn send_line(
    row: &[Value],
    columns: &[Column],
    options: &CopyOptions,
    session: &dyn SessionFacts,
    out: &mut dyn Output,
) -> Result<()> {
    let shown = row.iter().zip(columns);
    let shown: Vec<Cow<'_, Value>> = shown
        .map(|(value, column)| registered::with_names(value, column.data_type, session))
        .collect();
    let mut parts = Vec::new();
    let mut made = Vec::new();
    for (number, value) in shown.iter().enumerate() {
        let (is_first, is_quoted) = (number == 0, options.forced.quote.get(number) == Some(&true));
        if !sent::is_long(value) {
            let mut text = String::new();
            let field = (!value.is_null()).then(|| {
                encode_text(value, &mut text);
                text.as_str()
            });
            write_field(&mut made, field, options, (is_first, is_quoted));
            continue;
        }
        if !is_first {
            made.push(options.delimiter);
        }
        parts.push(Part::Made(std::mem::take(&mut made)));
        let form = SentForm::of(value, false);
        let escape = match options.format {
            CopyFormat::Text | CopyFormat::Binary => Escape::Text,
            CopyFormat::Csv if is_quoted || needs_quotes(&form, options) => Escape::Quoted,
            CopyFormat::Csv => Escape::None,
        };
        parts.push(Part::Long { form, escape });
    }
    made.push(b'\n');
    parts.push(Part::Made(made));
    let mut length = 0;
    for part in &parts {
        let Ok(()) = part.each_piece(options, &mut |piece| {
            length += piece.len();
            Ok::<(), Infallible>(())
        });
    }
    out.copy_out_long(length, &mut |take: &mut TakePiece<'_>| {
        parts.iter().try_for_each(|part| part.each_piece(options, take))
    })
}

/// True if CSV has a long field in quotes that need not be: it would be read as something else.
fn needs_quotes(form: &SentForm<'_>, options: &CopyOptions) -> bool {
    let looked = form.each_piece(&mut |piece| match has_special(piece, options) {
        true => Err(()),
        false => Ok(()),
    });
    looked.is_err() || is_null_text(form, options)
}

fn is_null_text(form: &SentForm<'_>, options: &CopyOptions) -> bool {
    let mut rest = options.null.as_bytes();
    let compared = form.each_piece(&mut |piece| {
        rest = rest.strip_prefix(piece).ok_or(())?;
        Ok::<(), ()>(())
    });
    compared.is_ok() && rest.is_empty()
}

/// Sends a row of the binary format behind `before`.
#[cold]
pub(super) fn send_binary_row(before: &[u8], row: &[Value], out: &mut dyn Output) -> Result<()> {
    let forms = row.iter();
    let forms: Vec<Option<SentForm<'_>>> = forms
        .map(|value| (!value.is_null()).then(|| SentForm::of(value, true)))
        .collect();
    out.copy_out_long(before.len() + row_length(&forms), &mut |take: &mut TakePiece<
        '_,
    >| {
        take(before)?;
        each_row_piece(&forms, take)
    })
}
