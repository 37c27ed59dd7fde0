//! Compiled expressions and their evaluation.
//!
//! An [`Expr`] is a tree in which names have become positions, literals have become values of the right type, and
//! every conversion is spelled out, so that evaluation never looks at a type it could have known before. Three-valued
//! logic is kept where SQL has it: a comparison with NULL is NULL, AND and OR look at both sides before they give up.

pub mod domain;
mod eval;
mod operator_test;
mod row_test;
mod steps;
mod subquery;
mod walk;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::function::Function;
use crate::value::arithmetic::ArithmeticOp;
use crate::value::cast::CastContext;
use crate::value::record::FieldNames;
use crate::value::{DataType, Value};

pub use operator_test::OperatorTest;
pub use steps::Steps;
pub use subquery::{Quantified, Subquery, SubqueryForm, append_equality_key, equality_key};

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl CompareOp {
    /// True if an ordering satisfies it.
    #[inline]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Equal => ordering.is_eq(),
            CompareOp::NotEqual => ordering.is_ne(),
            CompareOp::Less => ordering.is_lt(),
            CompareOp::LessOrEqual => ordering.is_le(),
            CompareOp::Greater => ordering.is_gt(),
            CompareOp::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// The operator with its sides exchanged: `a < b` is `b > a`.
    pub fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Less => CompareOp::Greater,
            CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
            CompareOp::Greater => CompareOp::Less,
            CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
            same => same,
        }
    }

    /// As written in SQL.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Equal => "=",
            CompareOp::NotEqual => "<>",
            CompareOp::Less => "<",
            CompareOp::LessOrEqual => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterOrEqual => ">=",
        }
    }
}

/// A compiled expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A literal.
    Constant(Value),
    /// The value at this position of the input row.
    Column(u16),
    /// `$n`, counted from 0.
    Parameter(u16),
    /// The argument of this number of the query that the expression belongs to ([`Subquery`]).
    Outer(u16),
    /// The aggregate of this number; only while a SELECT is bound, until grouping puts it in its place.
    Aggregate(u16),
    /// The call over a window of this number; only until a SELECT is planned, when its column stands for it.
    Window(u16),
    /// A query.
    Subquery(Box<Subquery>),
    /// A conversion.
    Cast {
        /// The value that is converted.
        input: Box<Expr>,
        /// From this type
        from: DataType,
        /// to this one,
        to: DataType,
        /// with this modifier,
        typmod: i32,
        /// under these rules.
        context: CastContext,
    },
    /// A comparison of two values of one type.
    Compare {
        /// The operator.
        op: CompareOp,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
        /// The type both sides have.
        data_type: DataType,
    },
    /// IS \[NOT\] DISTINCT FROM over two values of one type.
    Distinct {
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
        /// The type both sides have.
        data_type: DataType,
        /// IS NOT DISTINCT FROM
        negated: bool,
    },
    /// `+ - * / %`
    Arithmetic {
        /// The operator.
        op: ArithmeticOp,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
    },
    /// Unary minus.
    Negate(Box<Expr>),
    /// `||` over text.
    Concat(Box<Expr>, Box<Expr>),
    /// All of these.
    And(Vec<Expr>),
    /// Any of these.
    Or(Vec<Expr>),
    /// NOT
    Not(Box<Expr>),
    /// IS \[NOT\] NULL; of a record, what it is of all its fields
    IsNull {
        /// The value that is looked at.
        input: Box<Expr>,
        /// IS NOT NULL
        negated: bool,
    },
    /// IS \[NOT\] TRUE | FALSE | UNKNOWN
    IsTruth {
        /// The value that is looked at.
        input: Box<Expr>,
        /// TRUE, FALSE, or `None` for UNKNOWN.
        truth: Option<bool>,
        /// IS NOT …
        negated: bool,
    },
    /// \[NOT\] IN over values of one type
    InList {
        /// The value that is looked for.
        input: Box<Expr>,
        /// Among these.
        list: Vec<Expr>,
        /// The type all have.
        data_type: DataType,
        /// NOT IN
        negated: bool,
    },
    /// `input op ANY (array)` or ALL
    Quantified {
        /// The operator.
        op: CompareOp,
        /// ALL
        all: bool,
        /// The value on the left.
        input: Box<Expr>,
        /// The array whose elements are on the right.
        array: Box<Expr>,
        /// The type in which they are compared.
        data_type: DataType,
    },
    /// The same of an operator that is no comparison
    TestElements {
        /// The operator and the quantifier.
        test: Box<OperatorTest>,
        /// The value on the left.
        input: Box<Expr>,
        /// The array whose elements are on the right.
        array: Box<Expr>,
    },
    /// A row of values compared with others: true if the comparison holds with one of them.
    RowTest {
        /// The columns of the row.
        input: Vec<Expr>,
        /// The comparison.
        op: CompareOp,
        /// The rows it is compared with.
        rows: Vec<Vec<Expr>>,
        /// The types that the columns have.
        types: Vec<DataType>,
        /// NOT IN
        negated: bool,
    },
    /// \[NOT\] LIKE | ILIKE
    Like {
        /// The text.
        input: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape character; `None` = none.
        escape: Option<char>,
        /// ILIKE
        ignore_case: bool,
        /// NOT …
        negated: bool,
    },
    /// A record of these values.
    Row {
        /// The values.
        fields: Vec<Expr>,
        /// Their types.
        types: Arc<[DataType]>,
        /// The composite type of such fields that the value has, or `record`.
        of: DataType,
        /// The names that the fields of a `record` have in JSON.
        names: Option<FieldNames>,
    },
    /// A field of a record; NULL if the record is.
    Field {
        /// The record.
        input: Box<Expr>,
        /// The field's number, counted from 0.
        number: u16,
        /// The field's type.
        data_type: DataType,
    },
    /// CASE WHEN … THEN … ELSE … END
    Case {
        /// Conditions and results.
        branches: Vec<(Expr, Expr)>,
        /// ELSE
        otherwise: Box<Expr>,
    },
    /// A function of values.
    Call {
        /// The function.
        function: Function,
        /// Its arguments.
        arguments: Vec<Expr>,
    },
    /// The next number of an identity column's sequence.
    NextSerial {
        /// The sequence.
        sequence: u32,
    },
    /// The value of the step before, in a step of [`Expr::Steps`].
    Previous,
    /// Expressions one after the other, each of which may look at the value of the one before; the last gives
    /// the value.
    Steps(Steps),
}

impl Expr {
    /// A literal.
    pub fn constant(value: impl Into<Value>) -> Expr {
        Expr::Constant(value.into())
    }
}
