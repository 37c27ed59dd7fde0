//! Columns for the calls over windows: they lie behind those of the row below, in the order of the windows.

use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{SelectPlan, WindowPlan, WindowStage};

/// Puts the windows into a plan whose FROM has a row of `width` columns, and the columns of their calls into its
/// projection.
pub(super) fn place(plan: &mut SelectPlan, windows: Vec<WindowPlan>, width: usize) -> Result<()> {
    if windows.is_empty() {
        return Ok(());
    }
    let base = match &plan.aggregate {
        Some(aggregate) => aggregate.width(),
        None => width,
    };
    plan.windows = Some(Box::new(WindowStage {
        base,
        windows,
        late: Vec::new(),
    }));
    let projection = std::mem::take(&mut plan.projection);
    let placed = projection.into_iter().map(|expr| placed(expr, base));
    plan.projection = placed.collect::<Result<_>>()?;
    Ok(())
}

fn placed(expr: Expr, base: usize) -> Result<Expr> {
    match expr {
        Expr::Window(number) => Ok(Expr::Column(base as u16 + number)),
        other => other.map_children(&mut |child| placed(child, base)),
    }
}
