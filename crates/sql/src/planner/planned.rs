//! Relations that are planned: what the choice of orders and methods of joins knows of them.

use std::rc::Rc;

use crate::expr::Expr;
use crate::plan::{JoinKind, Node};
use crate::planner::cost::Cost;
use crate::planner::equal::Class;
use crate::planner::leaves::LeafSet;
use crate::query::Leaf;
use crate::value::DataType;

/// The expressions by which rows ascend, and their types.
pub(super) type RowOrder = Rc<[(Expr, DataType)]>;

/// A table that is read in the order of an index.
pub(super) struct OrderedScan {
    pub(super) node: Node,
    pub(super) cost: Cost,
    pub(super) order: RowOrder,
}

/// An operator with what is known of its rows.
pub(super) struct Planned {
    pub(super) node: Node,
    /// The leaves whose columns it gives.
    pub(super) set: LeafSet,
    pub(super) cost: Cost,
    /// The order in which its rows come.
    pub(super) order: RowOrder,
    /// Other ways to read it, if it is a table.
    pub(super) scans: Rc<[OrderedScan]>,
}

impl Planned {
    /// An operator whose rows come in no known order.
    pub(super) fn new(node: Node, set: LeafSet, cost: Cost) -> Planned {
        Planned {
            node,
            set,
            cost,
            order: RowOrder::default(),
            scans: Rc::default(),
        }
    }

    pub(super) fn input(&self) -> Input<'_> {
        Input {
            cost: self.cost,
            set: self.set,
            order: &self.order,
            scans: &self.scans,
        }
    }
}

/// A side of a join before it is known how it is reached.
pub(super) struct Side {
    /// By itself.
    pub(super) planned: Planned,
    /// The leaf and its own conditions, if it is a table: an index may find the rows for a row of the other side.
    pub(super) table: Option<(Leaf, Vec<Expr>)>,
    /// Leaves that must stand to its left.
    pub(super) needs: LeafSet,
}

/// Expressions that are equal: of the left side, of the right side, and the type of comparison.
pub(super) type Keys = Vec<(Expr, Expr, DataType)>;

/// A side of a join as far as the choice of a method goes.
#[derive(Clone, Copy)]
pub(super) struct Input<'p> {
    pub(super) cost: Cost,
    pub(super) set: LeafSet,
    /// The order in which its rows come.
    pub(super) order: &'p RowOrder,
    /// Other ways to read it, each in an order, if it is a table.
    pub(super) scans: &'p [OrderedScan],
}

/// The conditions of an inner join of several relations.
#[derive(Clone)]
pub(super) struct Conditions<'c> {
    /// Those that no operator checks yet.
    pub(super) pool: Vec<Expr>,
    pub(super) classes: &'c [Class],
    /// The leaves of all relations.
    pub(super) within: LeafSet,
}

/// The sides of a join and what is to be true of their rows.
#[derive(Clone, Copy)]
pub(super) struct Pair<'p> {
    pub(super) kind: JoinKind,
    pub(super) left: Input<'p>,
    pub(super) right: Input<'p>,
    /// The right side, if it is a table.
    pub(super) table: Option<&'p (Leaf, Vec<Expr>)>,
    /// True if the right side reads columns of the left one.
    pub(super) lateral: bool,
    pub(super) conditions: &'p [Expr],
}
