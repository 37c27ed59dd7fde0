//! The parts of queries around what is being bound, as far as recursion depends on them: a recursive query may not refer
//! to itself in some ([`super::with`]).

use crate::bind::Binder;
use crate::error::Result;

/// The part of a query that something lies in, as far as recursion depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bind) enum Around {
    /// A query of an expression.
    Subquery,
    /// The side of an outer join that may be NULL.
    OuterJoin,
    /// A side of INTERSECT ALL.
    Intersect,
    /// The right side of EXCEPT, both of EXCEPT ALL.
    Except,
    /// The term of the recursive query with this working table that must not refer to it. Others may be referred to
    /// there.
    NonRecursiveTerm(usize),
    /// The WITH of a recursive query, likewise.
    OwnWith(usize),
}

impl Binder<'_> {
    /// Binds what stands in a part of a query.
    pub(in crate::bind) fn within<T>(
        &mut self,
        around: Around,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.with.around.push(around);
        let bound = bind(self);
        self.with.around.pop();
        bound
    }

    /// As [`within`](Self::within), if it is such a part.
    pub(in crate::bind) fn maybe_within<T>(
        &mut self,
        around: Option<Around>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        match around {
            Some(around) => self.within(around, bind),
            None => bind(self),
        }
    }
}
