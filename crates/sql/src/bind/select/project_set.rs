//! Functions of a select list that give rows.
//!
//! While a SELECT is bound each of its calls is a column of the block's row, behind those of FROM: the first is column
//! `base`. When all clauses are bound the calls become leaves of FROM ([`Calls::place`]):
//!
//! 1. Calls stand side by side in one leaf, as many rows as the longest gives. A call inside the arguments of another is
//!    of a lower *level*, and each level is a leaf of its own, behind those of the levels below.
//! 2. Calls are made for the rows that grouping and windows give. A SELECT that has those too becomes two: the inner
//!    one groups, and its output row has all that the outer one reads; the outer one has the calls, DISTINCT and the
//!    order.
//! 3. A call that a key of GROUP BY reads is made below grouping.
//!
//! ```text
//! select k, unnest(array_agg(x)), count(*) + 1 from t group by k
//!
//!   outer   k = Column(0)   unnest(Column(1)) = Column(3)   Column(2)
//!   inner   k, array_agg(x), count(*) + 1   from t group by k
//! ```

use super::grouping_sets::Groups;
use super::with_functions;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::plan::{Column, SetCall};
use crate::query::{Block, Leaf, Relation, Rows};
use crate::value::DataType;

/// Added to the number of a call that is made above grouping, for its column until its place is known: no FROM has as
/// many columns.
const ABOVE: u16 = 1 << 15;

/// The calls of a SELECT.
pub(super) struct Calls {
    /// The column of the first.
    pub(super) base: u16,
    pub(super) calls: Vec<SetCall>,
}

/// The outer SELECT of two.
pub(super) struct Above {
    calls: Vec<SetCall>,
    projection: Vec<Expr>,
}

impl Calls {
    /// Puts all calls in their places as leaves of FROM; gives FROM and the number of its columns.
    pub(super) fn place(self, from: Relation, projection: &mut [Expr]) -> Result<(Relation, usize)> {
        let (from, places) = chained(from, self.base, self.calls)?;
        replace(projection, &mut |expr| moved(expr, self.base, &places))?;
        Ok((from, usize::from(self.base) + places.len()))
    }

    /// Puts the calls that keys read in their places as leaves of FROM. What else the projection reads of the rows of
    /// groups becomes the projection; the calls that are left are made above.
    pub(super) fn place_around(
        self,
        from: Relation,
        groups: &mut Groups,
        projection: &mut Vec<Expr>,
    ) -> Result<(Relation, usize, Above)> {
        let base = self.base;
        if usize::from(base) + self.calls.len() > usize::from(ABOVE) {
            let message = "a FROM clause has too many columns beside functions that give rows";
            return Err(EngineError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        let mut below = vec![false; self.calls.len()];
        for key in &groups.keys {
            note_calls(&key.expr, base, &mut below);
        }
        for (number, call) in self.calls.iter().enumerate().rev() {
            if below[number] {
                call.each_argument(&mut |argument| note_calls(argument, base, &mut below));
            }
        }
        let (mut lower, mut upper, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (call, below) in self.calls.into_iter().zip(&below) {
            let (of, first) = if *below {
                (&mut lower, base)
            } else {
                (&mut upper, ABOVE)
            };
            places.push(first + of.len() as u16);
            of.push(call);
        }
        let numbered = |call: SetCall| call.map_arguments(&mut |argument| moved(argument, base, &places));
        let lower: Vec<SetCall> = lower.into_iter().map(numbered).collect::<Result<_>>()?;
        let (from, below) = chained(from, base, lower)?;
        let place = |expr: Expr| moved(moved(expr, base, &places)?, base, &below);
        for key in &mut groups.keys {
            let before = std::mem::replace(&mut key.expr, Expr::Previous);
            key.expr = place(before)?;
        }
        let mut inner = Vec::new();
        let mut split = |expr: Expr| cut(place(expr)?, &mut inner);
        let upper = upper.into_iter().map(|call| call.map_arguments(&mut split));
        let calls = upper.collect::<Result<Vec<SetCall>>>()?;
        let mut outer = std::mem::take(projection);
        replace(&mut outer, &mut split)?;
        *projection = inner;
        let width = usize::from(base) + below.len();
        let above = Above {
            calls,
            projection: outer,
        };
        Ok((from, width, above))
    }
}

impl Above {
    /// The outer SELECT over the inner one, which has the clauses of both so far.
    pub(super) fn around(self, mut inner: Block) -> Result<Block> {
        let width = inner.projection.len();
        let columns = (0..width).map(|_| Column::computed("?column?", DataType::Unknown));
        let mut outer = Block {
            visible: inner.visible,
            distinct: std::mem::take(&mut inner.distinct),
            distinct_on: std::mem::take(&mut inner.distinct_on),
            sort: std::mem::take(&mut inner.sort),
            limit: inner.limit.take(),
            offset: inner.offset.take(),
            columns: std::mem::replace(&mut inner.columns, columns.collect()),
            projection: self.projection,
            ..Block::one_row()
        };
        inner.visible = width;
        let arguments = (0..inner.arguments_read()).map(Expr::Outer).collect();
        let leaf = Relation::Leaf(Leaf {
            base: 0,
            width: width as u16,
            place: None,
            lock: None,
            name: "grouped".to_owned(),
            rows: Rows::Query {
                block: Box::new(inner),
                arguments,
            },
        });
        let base = width as u16;
        let numbers: Vec<u16> = (0..self.calls.len() as u16).map(|at| base + at).collect();
        let settle = |call: SetCall| call.map_arguments(&mut |argument| moved(argument, ABOVE, &numbers));
        let calls = self.calls.into_iter().map(settle).collect::<Result<Vec<_>>>()?;
        replace(&mut outer.projection, &mut |expr| moved(expr, ABOVE, &numbers))?;
        let calls = Calls { base, calls };
        (outer.from, outer.width) = calls.place(leaf, &mut outer.projection)?;
        Ok(outer)
    }
}

/// FROM with a leaf for each level of calls, and the column of each call.
fn chained(mut from: Relation, base: u16, calls: Vec<SetCall>) -> Result<(Relation, Vec<u16>)> {
    let mut levels: Vec<usize> = Vec::with_capacity(calls.len());
    for call in &calls {
        let mut level = 0;
        call.each_argument(&mut |argument| {
            argument.walk(&mut |part| {
                if let Expr::Column(column) = part
                    && let Some(inside) = column
                        .checked_sub(base)
                        .and_then(|at| levels.get(usize::from(at)))
                {
                    level = level.max(inside + 1);
                }
            });
        });
        levels.push(level);
    }
    let mut places = vec![0; calls.len()];
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|number| levels[*number]);
    for (at, number) in order.iter().enumerate() {
        places[*number] = base + at as u16;
    }
    let mut calls: Vec<Option<SetCall>> = calls.into_iter().map(Some).collect();
    for of_level in order.chunk_by(|one, other| levels[*one] == levels[*other]) {
        let of_level_calls = of_level.iter().filter_map(|number| calls[*number].take());
        let placed =
            of_level_calls.map(|call| call.map_arguments(&mut |argument| moved(argument, base, &places)));
        from = with_functions(from, places[of_level[0]], placed.collect::<Result<_>>()?);
    }
    Ok((from, places))
}

/// Notes the calls whose columns an expression reads.
fn note_calls(expr: &Expr, base: u16, read: &mut [bool]) {
    expr.walk(&mut |part| {
        if let Expr::Column(column) = part
            && let Some(call) = column
                .checked_sub(base)
                .and_then(|at| read.get_mut(usize::from(at)))
        {
            *call = true;
        }
    });
}

/// The expression with the columns from `base` on replaced.
fn moved(expr: Expr, base: u16, places: &[u16]) -> Result<Expr> {
    match expr {
        Expr::Column(column) => {
            let place = column
                .checked_sub(base)
                .and_then(|at| places.get(usize::from(at)));
            Ok(Expr::Column(*place.unwrap_or(&column)))
        }
        other => other.map_children(&mut |child| moved(child, base, places)),
    }
}

fn replace(exprs: &mut [Expr], with: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<()> {
    for expr in exprs {
        let before = std::mem::replace(expr, Expr::Previous);
        *expr = with(before)?;
    }
    Ok(())
}

/// The expression over the output row of the inner SELECT: its parts that read no call above become columns of that row.
fn cut(expr: Expr, inner: &mut Vec<Expr>) -> Result<Expr> {
    let mut above = false;
    expr.walk(&mut |part| above |= matches!(part, Expr::Column(ABOVE..)));
    match expr {
        Expr::Constant(_) | Expr::Parameter(_) | Expr::Outer(_) | Expr::Column(ABOVE..) => Ok(expr),
        Expr::Steps(_) if above => Err(EngineError::not_supported(
            "a function that gives rows in a value that is used several times, beside GROUP BY, aggregates or window \
             functions",
        )),
        expr if !above => {
            inner.push(expr);
            Ok(Expr::Column(inner.len() as u16 - 1))
        }
        expr => expr.map_children(&mut |child| cut(child, inner)),
    }
}
