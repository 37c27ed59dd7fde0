//! Shortening a row that is to be stored: step 2.
//!
//! The values are looked at by their length, the longest first, until the row is short enough:
//!
//! 1. Columns of storage `extended` are compressed. A value that has more than [`ROW_TARGET`] bytes by itself even so goes
//!    apart at once, and so does one of a column of storage `external`, which is never compressed.
//! 2. Columns of both go apart.
//! 3. Columns of storage `main` are compressed.
//! 4. Columns of storage `main` go apart, until the row fits on a page.
//!
//! Columns of storage `plain` stay as they are. These are the steps of PostgreSQL, so its users find the same values apart.

use std::borrow::Cow;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::Value;
use clearway_sql::value::long::{
    CONTENT_MAX, POINTER_BYTES, Pointer, StoredForm, compressed, each_block, is_compressible,
};
use clearway_sql::{ColumnStorage, TableDef};
use clearway_storage::heap::{PieceWriter, Pieces, ROW_MAX};

use crate::convert::storage_error;
use crate::executor::long_values::{ROW_TARGET, heap_of};
use crate::interrupt::Interrupts;
use crate::transaction::Transaction;

/// Longer contents are not compressed in the row: LZ4 makes nothing shorter than a 255th of it.
const COMPRESSED_IN_ROW_MAX: usize = ROW_TARGET * 256;

/// Bytes in front of a stored form's own.
const FORM_HEADER: usize = 5;

/// Pieces that were written for a row.
pub(crate) type Written = Vec<Pieces>;

/// The bytes to which a row is shortened that has more than [`ROW_TARGET`]: other ones by `toast_tuple_target`.
fn target_of(table: &TableDef) -> usize {
    let given = table.parameters.get("toast_tuple_target");
    let given = given.and_then(|text| text.parse().ok());
    given.map_or(ROW_TARGET, |bytes: usize| bytes.min(ROW_MAX))
}

/// Writes the bytes of a row into `payload`, long values compressed or apart.
#[inline]
pub(crate) fn encode(
    txn: &Transaction,
    interrupts: &Interrupts,
    table: &TableDef,
    row: &[Value],
    payload: &mut Vec<u8>,
) -> Result<Written> {
    if table.codec.encode_within(row, ROW_TARGET, payload) {
        return Ok(Vec::new());
    }
    shorten(txn, interrupts, table, row, payload)
}

/// Writes the bytes of the row `old` with some columns replaced, which [`RowCodec`](clearway_sql::value::RowCodec) has
/// found too long.
#[cold]
pub(crate) fn encode_changed(
    txn: &Transaction,
    interrupts: &Interrupts,
    table: &TableDef,
    (old, changes): (&[u8], &mut Vec<(u16, Value)>),
    payload: &mut Vec<u8>,
) -> Result<Written> {
    let row = table.codec.updated(old, changes.drain(..))?;
    shorten(txn, interrupts, table, &row, payload)
}

/// Takes back what was written for a row that is not stored (V2).
pub(crate) fn withdraw(txn: &Transaction, table: &TableDef, written: Written) -> Result<()> {
    let Some(rel) = table.long_rel else { return Ok(()) };
    for pieces in written {
        let withdrawn = heap_of(rel).withdraw_pieces(&txn.context(), &pieces);
        withdrawn.map_err(storage_error)?;
    }
    Ok(())
}

/// A value of varying width on its way into a row.
struct Column<'v> {
    number: u16,
    storage: ColumnStorage,
    form: Form<'v>,
    /// It was tried to compress it, or must not be.
    is_tried: bool,
}

enum Form<'v> {
    Plain(Cow<'v, [u8]>),
    /// A stored form in the row.
    Compressed(Cow<'v, [u8]>),
    /// A stored form that is a pointer.
    Apart(Cow<'v, [u8]>),
}

impl Column<'_> {
    /// Bytes in the row.
    fn bytes(&self) -> usize {
        match &self.form {
            Form::Plain(content) => content.len() + length_bytes(content.len()),
            Form::Compressed(stored) | Form::Apart(stored) => 2 + stored.len() + length_bytes(stored.len()),
        }
    }

    fn goes_apart_first(&self) -> bool {
        matches!(self.storage, ColumnStorage::Extended | ColumnStorage::External)
    }
}

/// Bytes of a length.
fn length_bytes(length: usize) -> usize {
    (usize::BITS - length.leading_zeros()).div_ceil(7).max(1) as usize
}

/// A row that is being shortened.
struct Shortening<'a, 'v> {
    txn: &'a Transaction,
    interrupts: &'a Interrupts,
    table: &'a TableDef,
    fixed_bytes: usize,
    columns: Vec<Column<'v>>,
    written: Written,
}

#[cold]
fn shorten(
    txn: &Transaction,
    interrupts: &Interrupts,
    table: &TableDef,
    row: &[Value],
    payload: &mut Vec<u8>,
) -> Result<Written> {
    let mut shortening = Shortening {
        txn,
        interrupts,
        table,
        fixed_bytes: table.codec.fixed_bytes(),
        columns: columns_of(table, row)?,
        written: Vec::new(),
    };
    shortening.all()?;
    let Shortening { columns, written, .. } = shortening;
    let mut stored: Vec<Option<Value>> = vec![None; row.len()];
    for column in columns {
        if let Form::Compressed(form) | Form::Apart(form) = column.form {
            stored[usize::from(column.number)] = Some(Value::Stored(form.into_owned().into()));
        }
    }
    let short: Vec<Value> = stored
        .into_iter()
        .zip(row)
        .map(|(stored, value)| stored.unwrap_or_else(|| value.clone()))
        .collect();
    table.codec.encode(&short, payload);
    Ok(written)
}

/// The values of varying width in a row.
fn columns_of<'v>(table: &TableDef, row: &'v [Value]) -> Result<Vec<Column<'v>>> {
    let mut columns = Vec::new();
    for number in table.codec.varying_columns() {
        let form = match &row[usize::from(number)] {
            Value::Null => continue,
            Value::Stored(stored) => match StoredForm::parse(stored) {
                Some(StoredForm::Apart(_)) => Form::Apart(Cow::Borrowed(stored)),
                _ => Form::Compressed(Cow::Borrowed(stored)),
            },
            value => Form::Plain(table.codec.content_of(number, value)),
        };
        if matches!(&form, Form::Plain(content) if content.len() > CONTENT_MAX) {
            return Err(too_long(table, number));
        }
        let storage = table.columns[usize::from(number)].storage();
        columns.push(Column {
            number,
            storage,
            is_tried: !matches!(form, Form::Plain(_)),
            form,
        });
    }
    Ok(columns)
}

impl Shortening<'_, '_> {
    fn row_bytes(&self) -> usize {
        self.fixed_bytes + self.columns.iter().map(Column::bytes).sum::<usize>()
    }

    fn all(&mut self) -> Result<()> {
        let target = target_of(self.table);
        while self.row_bytes() > target
            && let Some(at) = self.longest(|column| column.goes_apart_first() && !column.is_tried)
        {
            self.compress(at);
            if self.columns[at].bytes() > target {
                self.store_apart(at)?;
            }
        }
        while self.row_bytes() > target
            && let Some(at) = self.longest(|column| column.goes_apart_first())
            && self.store_apart(at)?
        {}
        let is_main = |column: &Column<'_>| column.storage == ColumnStorage::Main;
        while self.row_bytes() > target
            && let Some(at) = self.longest(|column| is_main(column) && !column.is_tried)
        {
            self.compress(at);
        }
        while self.row_bytes() > ROW_MAX
            && let Some(at) = self.longest(is_main)
            && self.store_apart(at)?
        {}
        match self.row_bytes() {
            bytes if bytes > ROW_MAX => Err(too_big(bytes)),
            _ => Ok(()),
        }
    }

    /// The longest column of these that is in the row and longer than a pointer.
    fn longest(&self, wanted: impl Fn(&Column<'_>) -> bool) -> Option<usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(_, column)| !matches!(column.form, Form::Apart(_)) && wanted(column))
            .map(|(at, column)| (column.bytes(), at))
            .filter(|(bytes, _)| *bytes > POINTER_BYTES + 3)
            .max_by_key(|(bytes, at)| (*bytes, std::cmp::Reverse(*at)))
            .map(|(_, at)| at)
    }

    /// Compresses a value in the row, if its column allows that and it gets shorter.
    fn compress(&mut self, at: usize) {
        let column = &mut self.columns[at];
        column.is_tried = true;
        let Form::Plain(content) = &column.form else {
            return;
        };
        if column.storage == ColumnStorage::External || content.len() > COMPRESSED_IN_ROW_MAX {
            return;
        }
        if let Some(stored) = compressed(content) {
            column.form = Form::Compressed(Cow::Owned(stored.into_vec()));
        }
    }

    /// Stores a value apart; `false` if the table has no place for it.
    fn store_apart(&mut self, at: usize) -> Result<bool> {
        let Some(rel) = self.table.long_rel else {
            return Ok(false);
        };
        let column = &mut self.columns[at];
        let number = self.txn.next_long_value()?;
        let mut pieces = PieceWriter::new(heap_of(rel), self.txn.context(), number);
        let (raw_length, is_compressed) = match &column.form {
            Form::Apart(_) => return Ok(true),
            Form::Compressed(stored) => {
                let Some(StoredForm::Compressed { raw_length, .. }) = StoredForm::parse(stored) else {
                    return Err(EngineError::internal("a compressed value is not of its form"));
                };
                pieces.write(&stored[FORM_HEADER..]).map_err(storage_error)?;
                (raw_length, true)
            }
            Form::Plain(content) => {
                let is_compressed = column.storage != ColumnStorage::External
                    && content.len() > COMPRESSED_IN_ROW_MAX
                    && is_compressible(content);
                write_content(&mut pieces, content, is_compressed, self.interrupts)?;
                (content.len() as u32, is_compressed)
            }
        };
        let pieces = pieces.finish().map_err(storage_error)?;
        let pointer = Pointer {
            raw_length,
            stored_length: pieces.length,
            is_compressed,
            writer: pieces.owner.writer.0,
            number,
            page: pieces.first.block,
            slot: pieces.first.slot,
        };
        let rows = pieces.row_count();
        self.txn.count_pieces(self.table.oid, rows, 0);
        self.written.push(pieces);
        column.form = Form::Apart(Cow::Owned(pointer.encode().into_vec()));
        Ok(true)
    }
}

/// Writes a content, as it is or in blocks.
fn write_content(
    pieces: &mut PieceWriter<'_>,
    content: &[u8],
    is_compressed: bool,
    interrupts: &Interrupts,
) -> Result<()> {
    let mut write = |bytes: &[u8]| {
        interrupts.check()?;
        pieces.write(bytes).map_err(storage_error)
    };
    match is_compressed {
        true => each_block(content, write),
        false => content.chunks(64 << 10).try_for_each(&mut write),
    }
}

/// 54000
#[cold]
fn too_big(bytes: usize) -> EngineError {
    EngineError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("row is too big: size {bytes}, maximum size {ROW_MAX}"),
    )
}

/// 54000
#[cold]
fn too_long(table: &TableDef, column: u16) -> EngineError {
    EngineError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!(
            "value too long for column \"{}\": a value may have 1 GB",
            table.columns[usize::from(column)].name
        ),
    )
}
