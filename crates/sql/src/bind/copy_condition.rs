//! COPY FROM … WHERE: a condition over a row of one table, before its generated columns are made.

use std::sync::Arc;

use crate::bind::scope::{Names, Scope};
use crate::bind::{Binder, Place};
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::utility::CopyCondition;
use crate::stack::with_stack_for;

/// The place of the condition, as errors name it.
pub(super) const CLAUSE: &str = "COPY FROM WHERE conditions";

impl Binder<'_> {
    /// The condition on the rows that COPY stores in a table. The columns that it reads need the privilege of SELECT.
    pub(super) fn copy_condition(
        &mut self,
        condition: &CopyCondition,
        table: &Arc<TableDef>,
    ) -> Result<Expr> {
        let place = Place::of(&condition.text, condition.offset);
        let mut binder = Binder::new(place, &[], self.catalog, &[], self.check);
        let bound = with_stack_for(condition.tree.levels(), || {
            let position = binder.position_of(&condition.tree);
            let names = Names::of_table(table, None, 0);
            let typed = binder
                .expression(&condition.tree, &mut Scope::of(names, CLAUSE))
                .map_err(
                    |error| match error.sqlstate() == SqlState::FEATURE_NOT_SUPPORTED {
                        true => error.or_position(position),
                        false => error,
                    },
                )?;
            binder.condition(typed, "WHERE", position)
        })?;
        if !binder.params.is_empty() {
            return Err(EngineError::new(
                SqlState::UNDEFINED_PARAMETER,
                "there is no parameter $1",
            ));
        }
        let mut read = Vec::new();
        bound.walk(&mut |part| {
            if let Expr::Column(column) = part {
                read.push(*column);
            }
        });
        let generated = |column: &&u16| table.columns[usize::from(**column)].generated().is_some();
        if let Some(column) = read.iter().find(generated) {
            let name = &table.columns[usize::from(*column)].name;
            return Err(EngineError::new(
                SqlState::from_code("42P10"),
                "generated columns are not supported in COPY FROM WHERE conditions",
            )
            .with_detail(format!("Column \"{name}\" is a generated column.")));
        }
        let mut selected: Vec<u16> = read
            .iter()
            .map(|column| table.attribute_number(*column))
            .collect();
        if !selected.is_empty() {
            let access = self.access(table);
            access.is_read = true;
            access.selected.append(&mut selected);
        }
        let simple = binder.failure.simplified(bound);
        self.failure.take_over(binder.failure.into_error());
        Ok(simple)
    }
}
