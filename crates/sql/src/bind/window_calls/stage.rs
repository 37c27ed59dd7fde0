//! The order in which the windows of a SELECT are computed.
//!
//! Each window needs its rows in the order of its partition and its own order. Windows whose keys are the first keys of
//! another window come behind that one and need no sort. Otherwise any order would do; the one here is PostgreSQL's,
//! so that rows without an ORDER BY come out as they do there: keys are numbered in the order in which ORDER BY, GROUP
//! BY, DISTINCT and the windows name them, and the window with the larger number in the first key that differs is first.

use std::cmp::Ordering;

use super::{Window, WindowCalls, WindowKey};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::WindowPlan;
use crate::sort_key::SortKey;

/// A key by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NumberedKey {
    number: usize,
    descending: bool,
    nulls_first: bool,
}

impl NumberedKey {
    fn first_of(&self, other: &NumberedKey) -> Ordering {
        let by = |key: &NumberedKey| (key.number, key.descending, key.nulls_first);
        by(other).cmp(&by(self))
    }
}

impl WindowCalls {
    /// Replaces each expression of calls and windows.
    pub(in crate::bind) fn map(&mut self, map: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<()> {
        let mut replace = |expr: &mut Expr| -> Result<()> {
            let before = std::mem::replace(expr, Expr::Previous);
            *expr = map(before)?;
            Ok(())
        };
        for (_, call) in &mut self.calls {
            call.expressions_mut().into_iter().try_for_each(&mut replace)?;
        }
        for window in &mut self.windows {
            for key in window.partition.iter_mut().chain(&mut window.order) {
                replace(&mut key.typed.expr)?;
            }
        }
        Ok(())
    }

    /// Calls `visit` for each expression of calls and windows, in the order of [`map`](Self::map).
    pub(in crate::bind) fn each(&self, visit: &mut dyn FnMut(&Expr)) {
        for (_, call) in &self.calls {
            call.expressions().into_iter().for_each(&mut *visit);
        }
        for window in &self.windows {
            let keys = window.partition.iter().chain(&window.order);
            keys.for_each(|key| visit(&key.typed.expr));
        }
    }

    /// The windows that have calls, in the order in which they are computed; the calls of the projection get the numbers
    /// that they have in that order. `known`: the keys that are numbered before those of the windows.
    pub(in crate::bind) fn into_plans(
        self,
        known: Vec<Expr>,
        projection: &mut [Expr],
    ) -> Result<Vec<WindowPlan>> {
        let (plans, places) = self.planned(known);
        if !plans.is_empty() {
            for output in projection {
                let before = std::mem::replace(output, Expr::Previous);
                *output = renumbered(before, &places)?;
            }
        }
        Ok(plans)
    }

    /// The windows, and for each call its number among all of them.
    fn planned(self, known: Vec<Expr>) -> (Vec<WindowPlan>, Vec<u16>) {
        let mut numbers = known;
        let keys: Vec<Vec<NumberedKey>> = self
            .windows
            .iter()
            .map(|window| numbered(window, &mut numbers))
            .collect();
        let mut order: Vec<usize> = (0..self.windows.len())
            .filter(|number| self.calls.iter().any(|(window, _)| window == number))
            .collect();
        order.sort_by(|left, right| {
            let (left, right) = (&keys[*left], &keys[*right]);
            let pairs = left.iter().zip(right);
            let first = pairs.map(|(left, right)| left.first_of(right));
            first
                .into_iter()
                .find(|ordering| ordering.is_ne())
                .unwrap_or(right.len().cmp(&left.len()))
        });
        let mut places = vec![0; self.calls.len()];
        let mut place = 0;
        let mut sorted: &[NumberedKey] = &[];
        let mut plans = Vec::with_capacity(order.len());
        for number in order {
            let sorts = !sorted.starts_with(&keys[number]);
            if sorts {
                sorted = &keys[number];
            }
            let mut calls = Vec::new();
            for (at, (window, call)) in self.calls.iter().enumerate() {
                if *window == number {
                    calls.push(call.clone());
                    places[at] = place;
                    place += 1;
                }
            }
            let window = &self.windows[number];
            let all = || window.partition.iter().chain(&window.order);
            plans.push(WindowPlan {
                keys: all().map(|key| key.typed.expr.clone()).collect(),
                sort: all().enumerate().map(sort_key).collect(),
                partition: window.partition.len(),
                sorts,
                frame: window.frame.clone(),
                calls,
            });
        }
        (plans, places)
    }
}

fn renumbered(expr: Expr, places: &[u16]) -> Result<Expr> {
    match expr {
        Expr::Window(number) => Ok(Expr::Window(places[usize::from(number)])),
        other => other.map_children(&mut |child| renumbered(child, places)),
    }
}

fn sort_key((column, key): (usize, &WindowKey)) -> SortKey {
    SortKey {
        column,
        data_type: key.typed.data_type,
        descending: key.descending,
        nulls_first: key.nulls_first,
    }
}

/// The keys of a window, each once. Those of its order get their numbers first.
fn numbered(window: &Window, numbers: &mut Vec<Expr>) -> Vec<NumberedKey> {
    let mut number_of = |key: &WindowKey| {
        let expr = &key.typed.expr;
        let number = numbers.iter().position(|known| known == expr).unwrap_or_else(|| {
            numbers.push(expr.clone());
            numbers.len() - 1
        });
        NumberedKey {
            number,
            descending: key.descending,
            nulls_first: key.nulls_first,
        }
    };
    let order: Vec<NumberedKey> = window.order.iter().map(&mut number_of).collect();
    let mut keys: Vec<NumberedKey> = Vec::new();
    let partition: Vec<NumberedKey> = window.partition.iter().map(&mut number_of).collect();
    for key in partition.into_iter().chain(order) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}
