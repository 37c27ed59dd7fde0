//! Indexes: what their entries are made of.
//!
//! An index has one entry for each chain of row versions that are equal in all that the index reads, if its predicate is
//! true of them. The entry's key is the values of its key parts, in order; a part is a column or an expression over the
//! row. What an index reads is therefore the columns of its keys, of their expressions and of its predicate: an UPDATE
//! that changes none of them leaves the entry as it is. Columns of INCLUDE are kept in the definition only: no answer comes
//! from an index alone, so an entry has no use for them.
//!
//! Expressions and predicates are immutable: the same row always has the same entry.

use crate::context::EvalContext;
use crate::error::Result;
use crate::expr::Expr;
use crate::foreign_key::CheckTime;
use crate::value::key::encode_value;
use crate::value::{DataType, Value};

/// An index of a table.
#[derive(Debug, Clone)]
pub struct IndexDef {
    /// Its own number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The storage relation of its B+tree.
    pub rel: u32,
    /// True if two rows may not have the same key.
    pub unique: bool,
    /// NULLS NOT DISTINCT: a key with a NULL in it may count as the same; otherwise it never does.
    pub nulls_not_distinct: bool,
    /// True if it is the primary key.
    pub primary: bool,
    /// True if a constraint (PRIMARY KEY, UNIQUE) made it, and it goes with that constraint only.
    pub constraint: bool,
    /// DEFERRABLE, INITIALLY DEFERRED, of its constraint.
    pub check_time: CheckTime,
    /// The parts of the key, in order.
    pub keys: Vec<IndexKey>,
    /// Their types.
    pub types: Vec<DataType>,
    /// The columns of INCLUDE.
    pub included: Vec<u16>,
    /// The condition of the rows that have an entry; `None`: all have.
    pub predicate: Option<Box<KeptExpr>>,
    /// Notes by ALTER TABLE and ALTER INDEX.
    pub marks: IndexMarks,
}

/// Notes on an index that decide nothing about its entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexMarks {
    /// CLUSTER ON: the order in which its table would be written anew.
    pub clustered: bool,
    /// REPLICA IDENTITY USING INDEX
    pub replica_identity: bool,
    /// Statistics targets of parts of its key that are expressions, by their places.
    pub statistics_targets: Vec<(u16, u16)>,
}

/// A part of an index's key.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexKey {
    /// Its value.
    pub value: IndexedValue,
    /// The rest of its definition.
    pub options: KeyOptions,
}

/// The value of a part of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexedValue {
    /// That of a column.
    Column(u16),
    /// That of an expression over the row.
    Expression(Box<KeptExpr>),
}

/// An expression over a row, beside the text that it is kept as in the catalog: as PostgreSQL prints it, columns by their
/// names.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptExpr {
    /// The text.
    pub sql: String,
    /// The expression.
    pub expr: Expr,
    /// It as the planner simplifies a query's expressions, to be found among those. It may read fewer columns.
    pub simplified: Expr,
}

/// The rest of the definition of a part of a key. It decides how the index is shown, and not what it answers: a tree is read
/// both ways, and strings sort by their bytes in each operator class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyOptions {
    /// DESC
    pub descending: bool,
    /// NULLS FIRST, said or meant by DESC.
    pub nulls_first: bool,
    /// The operator class, if it is not the default one of the type.
    pub class: Option<String>,
    /// The collation, if one is said: each compares bytes.
    pub collation: Option<String>,
}

/// A row's entry in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexEntry {
    /// It has none: the predicate is not true of it.
    Absent,
    /// Its key has a NULL for which it is never a duplicate.
    WithNull,
    /// Its key may be a duplicate.
    Whole,
}

impl IndexKey {
    /// A column, in the default order.
    pub fn column(number: u16) -> IndexKey {
        IndexKey {
            value: IndexedValue::Column(number),
            options: KeyOptions::default(),
        }
    }
}

impl KeptExpr {
    /// An expression that is not bound yet ([`crate::bind_index`]).
    pub fn unbound(sql: String) -> KeptExpr {
        KeptExpr {
            sql,
            expr: Expr::Constant(Value::Null),
            simplified: Expr::Constant(Value::Null),
        }
    }

    /// Calls `each` for the columns that it reads, once for each place.
    fn each_column(&self, each: &mut impl FnMut(u16)) {
        self.expr.walk(&mut |part| {
            if let Expr::Column(column) = part {
                each(*column);
            }
        });
    }
}

impl IndexDef {
    /// The column that a part of the key is; `None` for an expression or behind the last part.
    #[inline]
    pub fn column(&self, at: usize) -> Option<u16> {
        match self.keys.get(at)?.value {
            IndexedValue::Column(column) => Some(column),
            IndexedValue::Expression(_) => None,
        }
    }

    /// The value of a part of the key, as an expression over the row.
    pub fn key_expr(&self, at: usize) -> Expr {
        match &self.keys[at].value {
            IndexedValue::Column(column) => Expr::Column(*column),
            IndexedValue::Expression(kept) => kept.expr.clone(),
        }
    }

    /// True if no statement finds two rows with the same key. A check that is put off lets them stand side by side until
    /// then.
    #[inline]
    pub fn is_always_unique(&self) -> bool {
        self.unique && !self.check_time.deferrable
    }

    /// True if its key is of columns alone, and each row has an entry: what a foreign key may lead to if it is unique.
    #[inline]
    pub fn is_plain(&self) -> bool {
        let is_column = |key: &IndexKey| matches!(key.value, IndexedValue::Column(_));
        self.predicate.is_none() && self.keys.iter().all(is_column)
    }

    /// The columns of the key, if [the index is plain](Self::is_plain).
    pub fn plain_columns(&self) -> Option<Vec<u16>> {
        self.is_plain().then(|| self.key_columns().collect())
    }

    /// The columns that parts of the key are.
    pub fn key_columns(&self) -> impl Iterator<Item = u16> {
        (0..self.keys.len()).filter_map(|at| self.column(at))
    }

    /// Calls `each` for all columns that decide about an entry.
    pub fn each_read_column(&self, mut each: impl FnMut(u16)) {
        for key in &self.keys {
            match &key.value {
                IndexedValue::Column(column) => each(*column),
                IndexedValue::Expression(kept) => kept.each_column(&mut each),
            }
        }
        if let Some(predicate) = &self.predicate {
            predicate.each_column(&mut each);
        }
    }

    /// True if a column decides about an entry.
    pub fn reads(&self, column: u16) -> bool {
        let mut reads = false;
        self.each_read_column(|read| reads |= read == column);
        reads
    }

    /// True if a column is read by an expression or by the predicate.
    pub fn computes_with(&self, column: u16) -> bool {
        let mut computes = false;
        let mut note = |read: u16| computes |= read == column;
        for key in &self.keys {
            if let IndexedValue::Expression(kept) = &key.value {
                kept.each_column(&mut note);
            }
        }
        if let Some(predicate) = &self.predicate {
            predicate.each_column(&mut note);
        }
        computes
    }

    /// True if its definition names a column.
    pub fn names(&self, column: u16) -> bool {
        self.included.contains(&column) || self.reads(column)
    }

    /// True if the first parts of the key are these columns, and each row has an entry.
    pub fn begins_with(&self, columns: &[u16]) -> bool {
        self.predicate.is_none() && self.continues_with(0, columns)
    }

    /// True if the parts of the key from `at` on begin with these columns.
    pub fn continues_with(&self, at: usize, columns: &[u16]) -> bool {
        let mut pairs = columns.iter().enumerate();
        pairs.all(|(number, column)| self.column(at + number) == Some(*column))
    }

    /// Makes the key of a row's entry in `buffer`, replacing what is there: with nothing if it has no entry.
    #[inline]
    pub fn entry(
        &self,
        row: &[Value],
        context: &EvalContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<IndexEntry> {
        buffer.clear();
        if let Some(predicate) = &self.predicate
            && !predicate.expr.passes(row, context)?
        {
            return Ok(IndexEntry::Absent);
        }
        let mut any_null = false;
        for (key, data_type) in self.keys.iter().zip(&self.types) {
            let computed;
            let value = match &key.value {
                IndexedValue::Column(column) => &row[usize::from(*column)],
                IndexedValue::Expression(kept) => {
                    computed = kept.expr.eval(row, context)?;
                    &computed
                }
            };
            any_null |= value.is_null();
            encode_value(value, *data_type, buffer);
        }
        Ok(match any_null && !self.nulls_not_distinct {
            true => IndexEntry::WithNull,
            false => IndexEntry::Whole,
        })
    }
}
