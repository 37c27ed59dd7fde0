//! The two forms of a control statement: as it is written, and with its names looked up.

use std::fmt::Debug;
use std::sync::Arc;

use crate::catalog::TableDef;
use crate::expr::Expr;
use crate::plan::Plan;
use crate::value::DataType;

/// The form of what a control statement names.
pub trait Stage: Debug + Clone {
    /// A table of VACUUM or ANALYZE.
    type Table: Debug + Clone;
    /// A column of ANALYZE.
    type Column: Debug + Clone;
    /// A type that PREPARE declares.
    type ParameterType: Debug + Clone;
    /// The arguments of EXECUTE.
    type Arguments: Debug + Clone;
    /// The query of DECLARE.
    type Query: Debug + Clone;
}

/// Every name is looked up.
#[derive(Debug, Clone, Copy)]
pub enum Resolved {}

impl Stage for Resolved {
    type Table = Arc<TableDef>;
    type Column = u16;
    /// `None` where it is left open.
    type ParameterType = Option<DataType>;
    /// Of whatever type they have.
    type Arguments = Vec<(Expr, DataType)>;
    type Query = Arc<Plan>;
}
