//! Windows: OVER and the clause WINDOW.

use sqlparser::ast::{self, WindowFrameBound, WindowFrameUnits};

use super::layout::Layout;
use super::node::{Node, direction, print, sort_key};
use super::operand::coerced;
use super::{Printer, unprinted};
use crate::bind::{normal, range_offset_type};
use crate::error::Result;
use crate::function::quote_identifier;
use crate::parse::exclusion;
use crate::plan::FrameExclusion;
use crate::value::DataType;

impl Printer<'_> {
    /// The text behind OVER.
    pub(super) fn over(&mut self, over: &ast::WindowType) -> Result<String> {
        match over {
            ast::WindowType::NamedWindow(name) => Ok(quote_identifier(&normal(name))),
            ast::WindowType::WindowSpec(spec) => self.window(spec),
        }
    }

    /// The clause WINDOW.
    pub(super) fn windows(&mut self, out: &mut Layout, windows: &[ast::NamedWindowDefinition]) -> Result<()> {
        for (number, ast::NamedWindowDefinition(name, definition)) in windows.iter().enumerate() {
            let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(unprinted());
            };
            match number {
                0 => out.clause(" WINDOW ", 1),
                _ => out.push(", "),
            }
            out.push(&quote_identifier(&normal(name)));
            out.push(" AS ");
            let text = self.window(spec)?;
            out.push(&text);
        }
        Ok(())
    }

    /// A window's definition, in its parentheses.
    fn window(&mut self, spec: &ast::WindowSpec) -> Result<String> {
        let mut out = Layout::at(self.level);
        let written = spec.window_name.as_ref().map(normal).unwrap_or_default();
        let (base, exclusion) = exclusion(&written);
        let mut separator = "";
        if let Some(base) = base {
            out.push(&quote_identifier(base));
            separator = " ";
        }
        for (number, tree) in spec.partition_by.iter().enumerate() {
            out.push(if number == 0 { separator } else { ", " });
            out.push(if number == 0 { "PARTITION BY " } else { "" });
            let key = self.settled(tree)?;
            sort_key(&mut out, &key, self.pretty);
            separator = " ";
        }
        let mut key_type = None;
        for (number, key) in spec.order_by.iter().enumerate() {
            out.push(if number == 0 { separator } else { ", " });
            out.push(if number == 0 { "ORDER BY " } else { "" });
            key_type = Some(self.type_of(&key.expr).0);
            let node = self.settled(&key.expr)?;
            sort_key(&mut out, &node, self.pretty);
            out.push(direction(&key.options)?);
            separator = " ";
        }
        if let Some(frame) = &spec.window_frame {
            out.push(separator);
            self.frame(&mut out, frame, exclusion, key_type)?;
        }
        let text = out.finish();
        self.printed(text.len())?;
        Ok(format!("({text})"))
    }

    fn frame(
        &mut self,
        out: &mut Layout,
        frame: &ast::WindowFrame,
        exclusion: FrameExclusion,
        key: Option<DataType>,
    ) -> Result<()> {
        out.push(match frame.units {
            WindowFrameUnits::Rows => "ROWS ",
            WindowFrameUnits::Range => "RANGE ",
            WindowFrameUnits::Groups => "GROUPS ",
        });
        if frame.end_bound.is_some() {
            out.push("BETWEEN ");
        }
        let counts = frame.units != WindowFrameUnits::Range;
        self.bound(out, &frame.start_bound, counts, key)?;
        if let Some(end) = &frame.end_bound {
            out.push(" AND ");
            self.bound(out, end, counts, key)?;
        }
        out.push(match exclusion {
            FrameExclusion::NoOthers => "",
            FrameExclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            FrameExclusion::Group => " EXCLUDE GROUP",
            FrameExclusion::Ties => " EXCLUDE TIES",
        });
        Ok(())
    }

    /// A bound; where it counts rows or groups, its offset is a bigint, and otherwise what can be added to the `key`.
    fn bound(
        &mut self,
        out: &mut Layout,
        bound: &WindowFrameBound,
        counts: bool,
        key: Option<DataType>,
    ) -> Result<()> {
        let (offset, word) = match bound {
            WindowFrameBound::CurrentRow => {
                out.push("CURRENT ROW");
                return Ok(());
            }
            WindowFrameBound::Preceding(offset) => (offset, " PRECEDING"),
            WindowFrameBound::Following(offset) => (offset, " FOLLOWING"),
        };
        match offset {
            None => out.push("UNBOUNDED"),
            Some(tree) => {
                let typed = self.node(tree)?;
                let to = match typed.data_type {
                    DataType::Unknown if counts => DataType::Int8,
                    DataType::Unknown => range_offset_type(key.ok_or_else(unprinted)?, DataType::Unknown)?,
                    known => known,
                };
                print(out, &coerced(typed, to)?, self.pretty, false);
            }
        }
        out.push(word);
        Ok(())
    }

    /// The expression of a key; a string is text.
    pub(super) fn settled(&mut self, tree: &ast::Expr) -> Result<Node> {
        let typed = self.node(tree)?;
        match typed.data_type {
            DataType::Unknown => coerced(typed, DataType::Text),
            _ => Ok(typed.node),
        }
    }
}
