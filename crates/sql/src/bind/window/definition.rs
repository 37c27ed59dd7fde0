//! Definitions of windows: PARTITION BY, ORDER BY and the frame, and windows that are built on others.
//!
//! A window that names another takes its partition, and its order if it has none itself. It cannot have a partition of
//! its own, nor a second order, and what has a frame can only be used as it is (`OVER w`, not `OVER (w)`).

use sqlparser::ast::{self, WindowFrameBound, WindowFrameUnits};

use super::windowing_error;
use crate::bind::scope::{Aggregates, Scope};
use crate::bind::select::{check_entries, direction};
use crate::bind::window_calls::{Window, WindowCalls, WindowKey, Windows};
use crate::bind::{Binder, normal};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::exclusion;
use crate::plan::{FrameBound, FrameExclusion, FrameUnit, WindowFrame};
use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};
use crate::value::range_offset::offset_types;

fn no_window(name: &str, position: Option<u32>) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("window \"{name}\" does not exist"),
    )
    .or_position(position)
}

fn named(windows: &[Window], name: &str) -> Option<usize> {
    windows
        .iter()
        .position(|window| window.name.as_deref() == Some(name))
}

impl Binder<'_> {
    /// The windows of the clause WINDOW; from here on calls over windows are collected.
    pub(in crate::bind) fn named_windows(
        &mut self,
        definitions: &[ast::NamedWindowDefinition],
        scope: &mut Scope,
    ) -> Result<()> {
        let mut calls = Box::<WindowCalls>::default();
        let clause = std::mem::replace(&mut scope.clause, "window definitions");
        for ast::NamedWindowDefinition(name, definition) in definitions {
            let position = self.position(name.span);
            let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(
                    EngineError::new(SqlState::SYNTAX_ERROR, "a window is defined in parentheses")
                        .or_position(position),
                );
            };
            let name = normal(name);
            if named(&calls.windows, &name).is_some() {
                return Err(windowing_error(
                    format!("window \"{name}\" is already defined"),
                    position,
                ));
            }
            let mut window = self.window(spec, &calls.windows, true, scope, position)?;
            window.name = Some(name);
            calls.windows.push(window);
            check_entries(calls.windows.len())?;
        }
        scope.clause = clause;
        scope.windows = Windows::Collected(calls);
        Ok(())
    }

    /// The number of the window of an OVER among those that are known; a new one becomes one of them.
    pub(super) fn window_of(
        &mut self,
        over: &ast::WindowType,
        windows: &mut Vec<Window>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<usize> {
        let spec = match over {
            ast::WindowType::NamedWindow(name) => {
                let found = named(windows, &normal(name));
                return found.ok_or_else(|| no_window(&normal(name), self.position(name.span)));
            }
            ast::WindowType::WindowSpec(spec) => spec,
        };
        let window = self.window(spec, windows, false, scope, position)?;
        if let Some(known) = windows.iter().position(|known| known.same(&window)) {
            return Ok(known);
        }
        windows.push(window);
        Ok(windows.len() - 1)
    }

    fn window(
        &mut self,
        spec: &ast::WindowSpec,
        windows: &[Window],
        has_name: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Window> {
        let written = spec.window_name.as_ref().map(normal).unwrap_or_default();
        let (base_name, exclusion) = exclusion(&written);
        let position = match &spec.window_name {
            Some(name) if base_name.is_some() => self.position(name.span),
            _ => position,
        };
        let base = match base_name {
            Some(name) => {
                let found = named(windows, name).ok_or_else(|| no_window(name, position))?;
                Some((name, &windows[found]))
            }
            None => None,
        };
        let mut order = Vec::with_capacity(spec.order_by.len());
        for key in &spec.order_by {
            let (descending, nulls_first) = direction(&key.options)?;
            let typed = self.expression(&key.expr, scope)?;
            order.push(WindowKey {
                typed: self.settle(typed)?,
                descending,
                nulls_first,
            });
            check_entries(order.len())?;
        }
        let mut partition = Vec::with_capacity(spec.partition_by.len());
        for tree in &spec.partition_by {
            let typed = self.expression(tree, scope)?;
            let typed = self.settle(typed)?;
            // Equal keys have one order.
            let ordered = order.iter().find(|key| key.typed.expr == typed.expr);
            partition.push(ordered.cloned().unwrap_or(WindowKey {
                typed,
                descending: false,
                nulls_first: false,
            }));
            check_entries(partition.len())?;
        }
        if let Some((name, base)) = base {
            let overridden = |what: &str| {
                let message = format!("cannot override {what} clause of window \"{name}\"");
                Err(windowing_error(message, position))
            };
            if !partition.is_empty() {
                return overridden("PARTITION BY");
            }
            if !order.is_empty() && !base.order.is_empty() {
                return overridden("ORDER BY");
            }
            if base.has_frame {
                let message = format!("cannot copy window \"{name}\" because it has a frame clause");
                let error = windowing_error(message, position);
                let plain = !has_name && order.is_empty() && spec.window_frame.is_none();
                return Err(match plain {
                    true => error.with_hint("Omit the parentheses in this OVER clause."),
                    false => error,
                });
            }
            partition.clone_from(&base.partition);
            if order.is_empty() {
                order.clone_from(&base.order);
            }
        }
        Ok(Window {
            name: None,
            frame: self.frame(spec.window_frame.as_ref(), exclusion, &order, scope, position)?,
            has_frame: spec.window_frame.is_some(),
            partition,
            order,
        })
    }

    fn frame(
        &mut self,
        frame: Option<&ast::WindowFrame>,
        exclusion: FrameExclusion,
        order: &[WindowKey],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<WindowFrame> {
        let order_type = order.first().map_or(DataType::Unknown, |key| key.typed.data_type);
        let Some(frame) = frame else {
            return Ok(WindowFrame {
                unit: FrameUnit::Range(order_type),
                start: FrameBound::Unbounded,
                end: FrameBound::CurrentRow,
                exclusion,
            });
        };
        check_bounds(frame, position)?;
        let unit = match frame.units {
            WindowFrameUnits::Rows => FrameUnit::Rows,
            WindowFrameUnits::Groups => FrameUnit::Groups,
            WindowFrameUnits::Range => FrameUnit::Range(order_type),
        };
        let offset = |bound: &WindowFrameBound| {
            matches!(
                bound,
                WindowFrameBound::Preceding(Some(_)) | WindowFrameBound::Following(Some(_))
            )
        };
        let has_offset = offset(&frame.start_bound) || frame.end_bound.as_ref().is_some_and(offset);
        match unit {
            FrameUnit::Range(_) if has_offset && order.len() != 1 => Err(windowing_error(
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                position,
            )),
            FrameUnit::Groups if order.is_empty() => Err(windowing_error(
                "GROUPS mode requires an ORDER BY clause",
                position,
            )),
            _ => Ok(()),
        }?;
        let start = self.bound(&frame.start_bound, unit, scope)?;
        let end = match &frame.end_bound {
            Some(bound) => self.bound(bound, unit, scope)?,
            None => FrameBound::CurrentRow,
        };
        Ok(WindowFrame {
            unit,
            start,
            end,
            exclusion,
        })
    }

    fn bound(&mut self, bound: &WindowFrameBound, unit: FrameUnit, scope: &mut Scope) -> Result<FrameBound> {
        Ok(match bound {
            WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => FrameBound::Unbounded,
            WindowFrameBound::Preceding(Some(tree)) => FrameBound::Preceding(self.offset(tree, unit, scope)?),
            WindowFrameBound::Following(Some(tree)) => FrameBound::Following(self.offset(tree, unit, scope)?),
        })
    }

    /// The offset of a bound.
    fn offset(&mut self, tree: &ast::Expr, unit: FrameUnit, scope: &mut Scope) -> Result<Expr> {
        let position = self.position_of(tree);
        let (word, clause) = match unit {
            FrameUnit::Rows => ("ROWS", "window ROWS"),
            FrameUnit::Groups => ("GROUPS", "window GROUPS"),
            FrameUnit::Range(_) => ("RANGE", "window RANGE"),
        };
        let aggregates = std::mem::replace(&mut scope.aggregates, Aggregates::Refused);
        let around = std::mem::replace(&mut scope.clause, clause);
        let typed = self.expression(tree, scope)?;
        scope.clause = around;
        scope.aggregates = aggregates;
        let mut reads = false;
        typed.expr.columns(&mut |_| reads = true);
        if reads {
            return Err(EngineError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("argument of {word} must not contain variables"),
            )
            .or_position(position));
        }
        let FrameUnit::Range(column) = unit else {
            let given = typed.data_type;
            if !can_cast(given, DataType::Int8, CastContext::Assignment) && given != DataType::Unknown {
                return Err(EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("argument of {word} must be type bigint, not type {given}"),
                )
                .or_position(position));
            }
            return self.assign(typed, DataType::Int8, -1, word, position);
        };
        let to = range_offset_type(column, typed.data_type).map_err(|error| error.or_position(position))?;
        self.coerce(typed, to, position)
    }
}

/// The type of an offset of RANGE over a column of this type.
pub(crate) fn range_offset_type(column: DataType, given: DataType) -> Result<DataType> {
    const MODE: &str = "RANGE with offset PRECEDING/FOLLOWING";
    let refused = |message: String| EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    let types = offset_types(column);
    if types.is_empty() {
        // Both are in order as text.
        let column = if column == DataType::Varchar {
            DataType::Text
        } else {
            column
        };
        return Err(refused(format!(
            "{MODE} is not supported for column type {column}"
        )));
    }
    let exact = if given == DataType::Unknown { column } else { given };
    if types.contains(&exact) {
        return Ok(exact);
    }
    let fits = |to: &&DataType| can_cast(given, **to, CastContext::Implicit);
    let fitting: Vec<&DataType> = types.iter().filter(fits).collect();
    match fitting.as_slice() {
        [one] => Ok(**one),
        [] => Err(refused(format!(
            "{MODE} is not supported for column type {column} and offset type {given}"
        ))
        .with_hint("Cast the offset value to an appropriate type.")),
        _ => Err(refused(format!(
            "{MODE} has multiple interpretations for column type {column} and offset type {given}"
        ))
        .with_hint("Cast the offset value to the exact intended type.")),
    }
}

/// Refuses a frame that ends before it starts, whatever its offsets are.
fn check_bounds(frame: &ast::WindowFrame, position: Option<u32>) -> Result<()> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    let message = match (&frame.start_bound, &frame.end_bound) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (Following(Some(_)), None) => "frame starting from following row cannot end with current row",
        (_, Some(Preceding(None))) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Some(Preceding(Some(_)))) => {
            "frame starting from current row cannot have preceding rows"
        }
        (Following(Some(_)), Some(Preceding(Some(_)) | CurrentRow)) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    Err(windowing_error(message, position))
}
