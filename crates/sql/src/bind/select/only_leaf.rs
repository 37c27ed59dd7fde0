//! A query over one source of rows.

use crate::expr::Expr;
use crate::plan::Column;
use crate::query::{Block, Leaf, Relation, Rows};

/// A block that gives the rows of one leaf.
pub(in crate::bind) fn only_leaf(columns: Vec<Column>, rows: Rows) -> Block {
    let width = columns.len();
    Block {
        from: Relation::Leaf(Leaf {
            base: 0,
            width: width as u16,
            place: None,
            lock: None,
            name: "*VALUES*".to_owned(),
            rows,
        }),
        width,
        projection: (0..width as u16).map(Expr::Column).collect(),
        visible: width,
        columns,
        ..Block::one_row()
    }
}
