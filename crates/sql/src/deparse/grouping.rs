//! GROUP BY: keys, and sets of keys.

use sqlparser::ast;

use super::layout::Layout;
use super::node::{Node, sort_key};
use super::{Printer, unprinted};
use crate::bind::{GroupEntry, without_distinct};
use crate::error::Result;

impl Printer<'_> {
    /// The clause of a SELECT.
    pub(super) fn group_by(&mut self, out: &mut Layout, select: &ast::Select) -> Result<()> {
        let ast::GroupByExpr::Expressions(trees, modifiers) = &select.group_by else {
            return Err(unprinted());
        };
        if !modifiers.is_empty() {
            return Err(unprinted());
        }
        let (distinct, trees) = without_distinct(trees);
        let mut entries: Vec<GroupEntry<'_>> = trees.iter().map(GroupEntry::of).collect();
        // Without sets of keys a `()` beside other entries says nothing.
        let has_sets = !entries.iter().any(GroupEntry::has_keys) || entries.iter().any(GroupEntry::is_sets);
        if !has_sets {
            entries.retain(GroupEntry::has_keys);
        }
        for (number, entry) in entries.iter().enumerate() {
            match number {
                0 => out.clause(" GROUP BY ", 1),
                _ => out.push(", "),
            }
            if number == 0 && distinct {
                out.push("DISTINCT ");
            }
            match entry {
                GroupEntry::Set(keys) if !has_sets => self.keys(out, keys, select)?,
                entry => self.set_of_keys(out, entry, true, select)?,
            }
        }
        Ok(())
    }

    fn set_of_keys(
        &mut self,
        out: &mut Layout,
        entry: &GroupEntry<'_>,
        bare: bool,
        select: &ast::Select,
    ) -> Result<()> {
        let (word, lists) = match entry {
            GroupEntry::Set(keys) => {
                let bare = bare && keys.len() == 1;
                out.push(if bare { "" } else { "(" });
                self.keys(out, keys, select)?;
                out.push(if bare { "" } else { ")" });
                return Ok(());
            }
            GroupEntry::Rollup(lists) => ("ROLLUP(", lists.clone()),
            GroupEntry::Cube(lists) => ("CUBE(", lists.clone()),
            GroupEntry::Sets(lists) => {
                out.push("GROUPING SETS (");
                for (number, list) in lists.iter().enumerate() {
                    out.push(if number == 0 { "" } else { ", " });
                    let inner = GroupEntry::of_list(list);
                    crate::stack::checkpoint(|| self.set_of_keys(out, &inner, false, select))?;
                }
                out.push(")");
                return Ok(());
            }
        };
        out.push(word);
        for (number, keys) in lists.iter().enumerate() {
            out.push(if number == 0 { "" } else { ", " });
            self.set_of_keys(out, &GroupEntry::Set(keys), true, select)?;
        }
        out.push(")");
        Ok(())
    }

    fn keys(&mut self, out: &mut Layout, keys: &[ast::Expr], select: &ast::Select) -> Result<()> {
        for (number, key) in keys.iter().enumerate() {
            out.push(if number == 0 { "" } else { ", " });
            let node = self.group_key(key, select)?;
            sort_key(out, &node, self.pretty);
        }
        Ok(())
    }

    /// A key: a column of FROM before an entry of the select list of the same name.
    fn group_key(&mut self, key: &ast::Expr, select: &ast::Select) -> Result<Node> {
        let is_column = match key {
            ast::Expr::Identifier(ident) => self.notes.column(ident).is_some(),
            _ => false,
        };
        match self.output_of(key, select, !is_column)? {
            Some(node) => Ok(node),
            None => Ok(self.node(key)?.node),
        }
    }
}
