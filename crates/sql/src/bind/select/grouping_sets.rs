//! GROUPING SETS, ROLLUP and CUBE as a list of sets of keys.
//!
//! Each entry of GROUP BY is a list of sets; those of the clause are their product:
//!
//! ```text
//!   a                        (a)
//!   (a, b)                   (a b)
//!   ROLLUP (a, b)            (a b) (a) ()
//!   CUBE (a, b)              (a b) (a) (b) ()
//!   GROUPING SETS (x, y)     the sets of x, then those of y
//!   a, ROLLUP (b, c)         (a b c) (a b) (a)
//! ```
//!
//! The keys of all sets together are the keys of the groups. In the row of a group those that are not of its set are
//! NULL, and the number of the set tells what GROUPING gives.

use sqlparser::ast;

use super::list::Output;
use crate::bind::scope::Scope;
use crate::bind::{Binder, Typed, normal, refuse};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::function::{Function, FunctionRow, Implementation, Volatility};
use crate::parse::DISTINCT_MARK;
use crate::value::DataType;

/// The most sets of a GROUP BY, as in PostgreSQL.
const SETS_MAX: usize = 4_096;

/// The most elements of a CUBE, as in PostgreSQL.
const CUBE_MAX: usize = 12;

/// The most arguments of GROUPING, each a bit of an integer.
const GROUPING_MAX: usize = 31;

/// A set: the numbers of its keys, each once.
pub(super) type Set = Vec<u16>;

/// The keys of GROUP BY, and the sets of them.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// All keys, each once.
    pub(super) keys: Vec<Typed>,
    /// The sets; none means one of all keys.
    pub(super) sets: Vec<Set>,
    /// The entry of the select list by whose name or number a key was given.
    pub(super) outputs: Vec<Option<usize>>,
    /// True if one key was given by two entries.
    pub(super) has_two_names: bool,
    /// True if there is a GROUP BY, if only `()`.
    pub(super) is_there: bool,
}

/// The function that stands for `GROUPING(…)` until the groups are known.
static GROUPING: FunctionRow = FunctionRow {
    oid: 0,
    name: "grouping",
    arguments: &[],
    variadic: true,
    spread: false,
    result: DataType::Int4,
    // So that nothing computes it before.
    volatility: Volatility::Volatile,
    strict: false,
    parameters: &[],
    operator: None,
    implementation: Implementation::Pure(|_| Err(EngineError::internal("GROUPING was not put in its place"))),
};

/// The arguments of a GROUPING, if the expression is one.
pub(super) fn grouping_arguments(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Call { function, arguments } if *function == Function::of_row(&GROUPING) => Some(arguments),
        _ => None,
    }
}

/// An entry of GROUPING SETS, or of the clause.
pub(crate) enum Entry<'t> {
    /// The expressions of one set.
    Set(&'t [ast::Expr]),
    /// The elements of ROLLUP.
    Rollup(Vec<&'t [ast::Expr]>),
    /// The elements of CUBE.
    Cube(Vec<&'t [ast::Expr]>),
    /// The entries of GROUPING SETS.
    Sets(&'t [Vec<ast::Expr>]),
}

/// The expressions of `(a, b)` or `a`.
fn of_tuple(tree: &ast::Expr) -> &[ast::Expr] {
    match tree {
        ast::Expr::Tuple(trees) => trees,
        tree => std::slice::from_ref(tree),
    }
}

/// The arguments of `rollup(…)` or `cube(…)` inside GROUPING SETS, which the parser takes for a call.
fn of_call(call: &ast::Function) -> Option<Vec<&[ast::Expr]>> {
    let ast::FunctionArguments::List(list) = &call.args else {
        return None;
    };
    let of_argument = |argument| match argument {
        &ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ref tree)) => Some(of_tuple(tree)),
        _ => None,
    };
    list.args.iter().map(of_argument).collect()
}

impl<'t> Entry<'t> {
    /// An entry of the clause.
    pub(crate) fn of(tree: &'t ast::Expr) -> Entry<'t> {
        let slices = |lists: &'t [Vec<ast::Expr>]| lists.iter().map(Vec::as_slice).collect();
        match tree {
            ast::Expr::Rollup(lists) => Entry::Rollup(slices(lists)),
            ast::Expr::Cube(lists) => Entry::Cube(slices(lists)),
            ast::Expr::GroupingSets(lists) => Entry::Sets(lists),
            ast::Expr::Function(call) => match (unquoted(&call.name).as_deref(), of_call(call)) {
                (Some("rollup"), Some(lists)) => Entry::Rollup(lists),
                (Some("cube"), Some(lists)) => Entry::Cube(lists),
                _ => Entry::Set(std::slice::from_ref(tree)),
            },
            tree => Entry::Set(of_tuple(tree)),
        }
    }

    /// True if it is keys, and one at least.
    pub(crate) fn has_keys(&self) -> bool {
        matches!(self, Entry::Set([_, ..]))
    }

    /// True if it may be more sets than one.
    pub(crate) fn is_sets(&self) -> bool {
        !matches!(self, Entry::Set(_))
    }

    /// An entry of GROUPING SETS.
    pub(crate) fn of_list(list: &'t [ast::Expr]) -> Entry<'t> {
        match list {
            [one] => Entry::of(one),
            several => Entry::Set(several),
        }
    }
}

/// The entries of a clause, and true if the clause is GROUP BY DISTINCT: a mark of ours (`parse::dialect`).
pub(crate) fn without_distinct(trees: &[ast::Expr]) -> (bool, &[ast::Expr]) {
    match trees {
        [ast::Expr::Identifier(mark), rest @ ..] if mark.quote_style == Some(DISTINCT_MARK) => (true, rest),
        trees => (false, trees),
    }
}

fn unquoted(name: &ast::ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(ident)] if ident.quote_style.is_none() => Some(normal(ident)),
        _ => None,
    }
}

fn too_many_sets() -> EngineError {
    EngineError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        format!("too many grouping sets present (maximum {SETS_MAX})"),
    )
}

/// A set with the keys of another added.
fn joined(left: &[u16], right: &[u16]) -> Set {
    let mut all = left.to_vec();
    all.extend(right.iter().filter(|key| !left.contains(key)));
    all
}

impl Binder<'_> {
    /// The keys and sets of a GROUP BY.
    pub(super) fn group_by(
        &mut self,
        group_by: &ast::GroupByExpr,
        scope: &mut Scope,
        outputs: &[Output],
    ) -> Result<Groups> {
        let trees = match group_by {
            ast::GroupByExpr::Expressions(trees, modifiers) if modifiers.is_empty() => trees.as_slice(),
            _ => return Err(EngineError::not_supported("GROUP BY … WITH")),
        };
        let (distinct, trees) = without_distinct(trees);
        let mut groups = Groups {
            is_there: !trees.is_empty(),
            ..Groups::default()
        };
        let mut sets: Vec<Set> = vec![Vec::new()];
        for tree in trees {
            let factor = self.sets_of(&Entry::of(tree), scope, outputs, &mut groups)?;
            if sets.len() * factor.len() > SETS_MAX {
                return Err(too_many_sets());
            }
            let product = sets
                .iter()
                .flat_map(|left| factor.iter().map(move |right| joined(left, right)));
            sets = product.collect();
            self.tick()?;
        }
        if distinct {
            let sorted = |set: &Set| {
                let mut keys = set.clone();
                keys.sort_unstable();
                keys
            };
            let mut seen = std::collections::HashSet::new();
            sets.retain(|set| seen.insert(sorted(set)));
        }
        if sets.len() > 1 {
            // A set may have one of the two and leave the other out, which here are one key.
            refuse(
                groups.has_two_names,
                "one expression by two names among grouping sets",
            )?;
            groups.sets = sets;
        }
        Ok(groups)
    }

    /// The sets of an entry; its keys are added to the others.
    fn sets_of(
        &mut self,
        entry: &Entry<'_>,
        scope: &mut Scope,
        outputs: &[Output],
        groups: &mut Groups,
    ) -> Result<Vec<Set>> {
        let mut of_list = |binder: &mut Self, trees: &[ast::Expr]| -> Result<Set> {
            let mut set = Vec::with_capacity(trees.len());
            for tree in trees {
                let key = binder.group_key(tree, scope, outputs, groups)?;
                if !set.contains(&key) {
                    set.push(key);
                }
            }
            Ok(set)
        };
        match entry {
            Entry::Set(trees) => Ok(vec![of_list(self, trees)?]),
            Entry::Rollup(lists) => {
                let mut sets = vec![Vec::new()];
                for list in lists {
                    let set = of_list(self, list)?;
                    let last = sets.last().map_or(&[][..], Vec::as_slice);
                    sets.push(joined(last, &set));
                }
                sets.reverse();
                Ok(sets)
            }
            Entry::Cube(lists) if lists.len() > CUBE_MAX => Err(EngineError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("CUBE is limited to {CUBE_MAX} elements"),
            )),
            Entry::Cube(lists) => {
                let mut sets = vec![Vec::new()];
                for list in lists.iter().rev() {
                    let set = of_list(self, list)?;
                    let with: Vec<Set> = sets.iter().map(|without| joined(&set, without)).collect();
                    sets = [with, sets].concat();
                }
                Ok(sets)
            }
            Entry::Sets(lists) => {
                let mut sets = Vec::new();
                for list in *lists {
                    let entry = Entry::of_list(list);
                    let more = self.deeper(1, |binder| binder.sets_of(&entry, scope, outputs, groups))?;
                    sets.extend(more);
                    if sets.len() > SETS_MAX {
                        return Err(too_many_sets());
                    }
                }
                Ok(sets)
            }
        }
    }

    /// `GROUPING(…)`: where groups are, its arguments are looked for among their keys.
    pub(in crate::bind) fn grouping_call(
        &mut self,
        arguments: &[&ast::Expr],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        use crate::bind::scope::Aggregates;
        if let Aggregates::Refused = scope.aggregates {
            return Err(EngineError::new(
                SqlState::GROUPING_ERROR,
                format!("grouping operations are not allowed in {}", scope.clause),
            )
            .or_position(position));
        }
        if arguments.is_empty() {
            return Err(
                EngineError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \")\"")
                    .or_position(position),
            );
        }
        if arguments.len() > GROUPING_MAX {
            return Err(EngineError::new(
                SqlState::from_code("54023"),
                format!("GROUPING must have fewer than {} arguments", GROUPING_MAX + 1),
            )
            .or_position(position));
        }
        let aggregates = std::mem::replace(&mut scope.aggregates, Aggregates::Refused);
        let clause = std::mem::replace(&mut scope.clause, "GROUPING");
        let bound = arguments.iter().map(|tree| self.expression(tree, scope));
        let bound = bound.collect::<Result<Vec<Typed>>>()?;
        scope.aggregates = aggregates;
        scope.clause = clause;
        Ok(Typed::new(
            Expr::Call {
                function: Function::of_row(&GROUPING),
                arguments: bound.into_iter().map(|typed| typed.expr).collect(),
            },
            DataType::Int4,
        ))
    }
}
