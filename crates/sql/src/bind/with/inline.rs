//! Common table expressions that are read once: the query itself takes the place of its rows.

use std::collections::BTreeSet;

use crate::bind::Binder;
use crate::bind::with::{Inline, State};
use crate::query::{Block, Relation, Rows};
use crate::stack::checkpoint;

impl Binder<'_> {
    /// Replaces the readers in a query, and in the queries of its expressions and of its WITH, which have the numbers
    /// from `first` on. The common table expressions of the WITH are the last in sight.
    pub(in crate::bind) fn inline_single_uses(&mut self, first: usize, block: &mut Block) {
        let single = self.with.in_sight.iter().filter_map(|cte| match &cte.state {
            State::Bound(bound) if bound.number >= first => {
                (bound.inline == Inline::Single && bound.uses == 1).then_some(bound.number)
            }
            _ => None,
        });
        let mut single: BTreeSet<usize> = single.collect();
        if single.is_empty() {
            return;
        }
        inline(block, &mut single, &mut self.subqueries);
        for number in first..self.subqueries.len() {
            let mut inner = std::mem::replace(&mut self.subqueries[number], Block::one_row());
            inline(&mut inner, &mut single, &mut self.subqueries);
            self.subqueries[number] = inner;
        }
    }

    /// Counts the readers in one more copy of a query.
    pub(super) fn count_uses_of(&mut self, block: &Block) {
        checkpoint(|| self.count_uses_in(&block.from));
    }

    fn count_uses_in(&mut self, relation: &Relation) {
        match relation {
            Relation::OneRow => {}
            Relation::Join(join) => {
                checkpoint(|| self.count_uses_in(&join.left));
                checkpoint(|| self.count_uses_in(&join.right));
            }
            Relation::Leaf(leaf) => match &leaf.rows {
                Rows::Query { block, .. } => self.count_uses_of(block),
                Rows::Set(set) => {
                    self.count_uses_of(&set.left);
                    self.count_uses_of(&set.right);
                }
                Rows::Shared { number, .. } => {
                    for cte in &mut self.with.in_sight {
                        if let State::Bound(bound) = &mut cte.state
                            && bound.number == *number
                        {
                            bound.uses += 1;
                        }
                    }
                }
                _ => {}
            },
        }
    }
}

fn inline(block: &mut Block, single: &mut BTreeSet<usize>, queries: &mut [Block]) {
    checkpoint(|| inline_in(&mut block.from, single, queries));
}

fn inline_in(relation: &mut Relation, single: &mut BTreeSet<usize>, queries: &mut [Block]) {
    let leaf = match relation {
        Relation::OneRow => return,
        Relation::Join(join) => {
            checkpoint(|| inline_in(&mut join.left, single, queries));
            checkpoint(|| inline_in(&mut join.right, single, queries));
            return;
        }
        Relation::Leaf(leaf) => leaf,
    };
    match &mut leaf.rows {
        Rows::Query { block, .. } => inline(block, single, queries),
        Rows::Set(set) => {
            inline(&mut set.left, single, queries);
            inline(&mut set.right, single, queries);
        }
        Rows::Recursive(union) => {
            inline(&mut union.operation.left, single, queries);
            inline(&mut union.operation.right, single, queries);
        }
        Rows::Shared { number, arguments } if single.remove(number) => {
            let mut block = Box::new(std::mem::replace(&mut queries[*number], Block::one_row()));
            inline(&mut block, single, queries);
            leaf.rows = Rows::Query {
                block,
                arguments: std::mem::take(arguments),
            };
        }
        _ => {}
    }
}
