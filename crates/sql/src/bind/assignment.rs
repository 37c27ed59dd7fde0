//! Targets of assignments: columns, and parts of columns that are arrays.
//!
//! `SET a[1] = x` sets the column to a call that puts x into the array that it was; a second part of the same column
//! puts its value into the result of the first. In an INSERT the array before is NULL, which is one without elements.

use sqlparser::ast::{self, Spanned};

use crate::bind::changed_view::{Change, ChangedRelation};
use crate::bind::scope::Scope;
use crate::bind::types::no_column;
use crate::bind::{Binder, Typed, refuse, split_name};
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::array_assignment;
use crate::parse::SUBSCRIPTS_MARK;
use crate::value::cast::{CastContext, can_cast};
use crate::value::{DataType, Value};

/// The most parts of one column that a statement assigns to: each is a level of the expression.
pub(super) const PARTS_MAX: usize = 100;

/// The target of an assignment.
#[derive(Debug)]
pub(super) struct Target {
    /// The number of the column.
    pub(super) column: u16,
    /// The subscripts of the part of it; true if they are of a slice.
    pub(super) part: Option<(Vec<Expr>, bool)>,
}

impl Target {
    /// A whole column.
    pub(super) fn of(column: u16) -> Target {
        Target { column, part: None }
    }
}

/// True if a value is an assignment to a part.
pub(super) fn is_part_assignment(value: &Expr) -> bool {
    parts_in(value) > 0
}

/// The number of parts that a value assigns to.
pub(super) fn parts_in(mut value: &Expr) -> usize {
    let mut count = 0;
    while let Expr::Call { function, arguments } = value
        && [false, true]
            .map(|is_slice| array_assignment(function.of(), is_slice))
            .contains(function)
    {
        count += 1;
        value = &arguments[0];
    }
    count
}

/// 0A000 for too many parts of one column.
pub(super) fn check_parts(targets: &[Target]) -> Result<()> {
    let parts = targets.iter().filter(|target| target.part.is_some()).count();
    refuse(parts > PARTS_MAX, "so many assignments to parts of columns")
}

/// The array that the target at this place of an INSERT puts its value into.
pub(super) fn base_of(targets: &[Target], at: usize, columns: &[Expr]) -> Expr {
    let column = targets[at].column;
    match targets[..at].iter().any(|before| before.column == column) {
        true => columns[usize::from(column)].clone(),
        false => Expr::Constant(Value::Null),
    }
}

/// 0A000 for DEFAULT as the value of a part.
pub(super) fn refuse_default(target: &Target) -> Result<()> {
    match target.part {
        None => Ok(()),
        Some(_) => Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot set an array element to DEFAULT",
        )),
    }
}

impl Binder<'_> {
    /// The target of this name; its subscripts see a scope.
    pub(super) fn target(
        &mut self,
        name: &ast::ObjectName,
        relation: &ChangedRelation,
        change: Change,
        scope: &mut Scope,
    ) -> Result<Target> {
        // A mark of ours: see `parse::assigned_parts`.
        let (name, subscripts) = match name.0.as_slice() {
            [front @ .., ast::ObjectNamePart::Identifier(last)]
                if last.quote_style == Some(SUBSCRIPTS_MARK) =>
            {
                (&ast::ObjectName(front.to_vec()), Some(&last.value))
            }
            _ => (name, None),
        };
        let (qualifier, column, span) = split_name(name)?;
        let position = self.position(span);
        refuse(qualifier.is_some(), "a qualified name of a column to be set")?;
        let found = relation
            .column(&column, change)
            .unwrap_or_else(|| Err(no_column(relation.name(), &column).or_position(position)));
        let number = found?;
        self.note_target(relation, &column, number, change);
        let column = number;
        let table = &*relation.table;
        let Some(subscripts) = subscripts else {
            return Ok(Target::of(column));
        };
        let data_type = table.columns[usize::from(column)].data_type;
        match data_type {
            DataType::Array(_) | DataType::Jsonb => {}
            other if other.is_array() => {
                return Err(
                    EngineError::not_supported(format!("an assignment to an element of {other}"))
                        .or_position(self.position(name.span())),
                );
            }
            other => {
                return Err(EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("cannot subscript type {other} because it does not support subscripting"),
                )
                .or_position(position));
            }
        }
        // Places in the text of the subscripts are not those of the statement.
        let bound = self.assigned_subscripts(subscripts, data_type, scope, position);
        let part = bound.map_err(|error| error.without_position().or_position(position))?;
        Ok(Target {
            column,
            part: Some(part),
        })
    }

    /// A value, converted for its target; for a part of a column, the array `base` with it.
    pub(super) fn assigned(
        &mut self,
        typed: Typed,
        target: &Target,
        base: Expr,
        table: &TableDef,
        position: Option<u32>,
    ) -> Result<Expr> {
        let def = &table.columns[usize::from(target.column)];
        let Some((subscripts, is_slice)) = &target.part else {
            return self.assign(typed, def.data_type, def.typmod, &def.name, position);
        };
        let wanted = match (is_slice, def.data_type.element()) {
            (false, Some(element)) => element,
            _ => def.data_type,
        };
        if !can_cast(typed.data_type, wanted, CastContext::Assignment) {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "subscripted assignment to \"{}\" requires type {wanted} but expression is of type {}",
                    def.name, typed.data_type
                ),
            )
            .with_hint("You will need to rewrite or cast the expression.")
            .or_position(position));
        }
        let value = self.assign(typed, wanted, def.typmod, &def.name, position)?;
        Ok(Expr::Call {
            function: array_assignment(def.data_type, *is_slice),
            arguments: [base, value]
                .into_iter()
                .chain(subscripts.iter().cloned())
                .collect(),
        })
    }
}
