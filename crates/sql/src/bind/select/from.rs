//! The binding of FROM: tables, queries, functions, and their joins.
//!
//! Each leaf gets its place in the block's row as it is met, from left to right ([`crate::query`]).

use sqlparser::ast;

use crate::bind::around::Around;
use crate::bind::expression::call_without_parentheses;
use crate::bind::scope::{
    Entry, Hidden, Names, Scope, ScopeColumn, ScopeRelation, Since, Versions, row_type,
};
use crate::bind::select::only_leaf::only_leaf;
use crate::bind::{Binder, Presence, Typed, identifier, normal, split_name};
use crate::catalog::TableKind;
use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::using_alias;
use crate::plan::{Column, JoinKind};
use crate::planner::scan::conjuncts;
use crate::query::{Join, Leaf, Relation, Rows};
use crate::value::DataType;

/// The most columns of a FROM's row.
const WIDTH_MAX: usize = 1 << 15;

/// A bound FROM, or a part of it.
pub(in crate::bind) struct From {
    pub(in crate::bind) relation: Relation,
    pub(in crate::bind) names: Names,
}

/// The state of binding a FROM.
#[derive(Default)]
pub(in crate::bind) struct Places {
    /// Columns that have been given to leaves.
    pub(in crate::bind) width: usize,
}

impl Places {
    fn take(&mut self, columns: usize) -> Result<u16> {
        let base = self.width;
        self.width += columns;
        check_width(self.width)?;
        Ok(base as u16)
    }
}

/// 54011 for a FROM's row that is too wide.
pub(super) fn check_width(width: usize) -> Result<()> {
    if width > WIDTH_MAX {
        return Err(EngineError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("the relations of a FROM clause can have at most {WIDTH_MAX} columns together"),
        ));
    }
    Ok(())
}

/// A join's constraint, bound.
struct Bound {
    on: Vec<Expr>,
    names: Names,
}

impl Binder<'_> {
    /// FROM, and the number of columns of its row.
    pub(in crate::bind) fn from(&mut self, from: &[ast::TableWithJoins]) -> Result<(From, usize)> {
        let mut places = Places::default();
        let whole = self.entries_after(None, from, &mut places)?;
        Ok((whole, places.width))
    }

    /// FROM's entries after what stands before them.
    pub(in crate::bind) fn entries_after(
        &mut self,
        before: Option<From>,
        from: &[ast::TableWithJoins],
        places: &mut Places,
    ) -> Result<From> {
        self.deeper(from.len(), |binder| binder.entries(before, from, places))
    }

    fn entries(
        &mut self,
        before: Option<From>,
        from: &[ast::TableWithJoins],
        places: &mut Places,
    ) -> Result<From> {
        let mut whole = before;
        // A table that is changed stands before FROM, and LATERAL does not see it.
        let mut seen = Names::default();
        for entry in from {
            let next = self.deeper(entry.joins.len(), |binder| binder.joined(entry, &seen, places))?;
            seen = seen.and(next.names.clone());
            whole = Some(match whole {
                None => next,
                Some(before) => self.cross(before, next)?,
            });
        }
        Ok(whole.unwrap_or_else(|| From {
            relation: Relation::OneRow,
            names: Names::default(),
        }))
    }

    fn cross(&self, left: From, right: From) -> Result<From> {
        check_aliases(&left.names, &right.names)?;
        Ok(From {
            relation: Relation::Join(Box::new(Join {
                kind: JoinKind::Inner,
                left: left.relation,
                right: right.relation,
                on: Vec::new(),
            })),
            names: left.names.and(right.names),
        })
    }

    /// An entry of FROM: a relation and what it is joined with. `seen`: the names to its left, for LATERAL.
    fn joined(&mut self, entry: &ast::TableWithJoins, seen: &Names, places: &mut Places) -> Result<From> {
        let kinds = entry.joins.iter().map(|join| Ok(join_of(&join.join_operator)?.0));
        let kinds = kinds.collect::<Result<Vec<_>>>()?;
        // A later RIGHT or FULL JOIN may add rows in which all before it is NULL.
        let keeps_right = |kind: &JoinKind| matches!(kind, JoinKind::Right | JoinKind::Full);
        let nullable = |later: &[JoinKind]| Some(Around::OuterJoin).filter(|_| later.iter().any(keeps_right));
        let mut left = self.maybe_within(nullable(&kinds), |binder| {
            binder.relation(&entry.relation, seen, places)
        })?;
        for (at, join) in entry.joins.iter().enumerate() {
            self.tick()?;
            let (kind, constraint) = join_of(&join.join_operator)?;
            // LATERAL may read the left side of a join that keeps all its rows, or pairs only.
            let beside = match kind {
                JoinKind::Right | JoinKind::Full => seen.clone(),
                _ => seen.clone().and(left.names.clone()),
            };
            let around = match kind {
                JoinKind::Left | JoinKind::Full => Some(Around::OuterJoin),
                _ => nullable(&kinds[at + 1..]),
            };
            let right =
                self.maybe_within(around, |binder| binder.relation(&join.relation, &beside, places))?;
            check_aliases(&left.names, &right.names)?;
            if matches!(constraint, ast::JoinConstraint::Natural) {
                self.note_join(join, &left.names, &right.names);
            }
            let mut bound = self.constraint(kind, constraint, &left.names, &right.names)?;
            bound
                .names
                .mark_nullable(kind, left.names.relations.len(), &bound.on);
            left = From {
                relation: Relation::Join(Box::new(Join {
                    kind,
                    left: left.relation,
                    right: right.relation,
                    on: bound.on,
                })),
                names: bound.names,
            };
        }
        Ok(left)
    }

    fn constraint(
        &mut self,
        kind: JoinKind,
        constraint: &ast::JoinConstraint,
        left: &Names,
        right: &Names,
    ) -> Result<Bound> {
        let shared = match constraint {
            ast::JoinConstraint::None => Vec::new(),
            ast::JoinConstraint::On(tree) => {
                let names = left.clone().and(right.clone());
                let mut scope = Scope::of(names.clone(), "JOIN conditions");
                let typed = self.expression(tree, &mut scope)?;
                let on = conjuncts(self.condition(typed, "JOIN/ON", self.position_of(tree))?);
                return Ok(Bound { on, names });
            }
            ast::JoinConstraint::Using(columns) => {
                let (columns, alias) = using_alias(columns);
                let shared = columns.iter().map(|name| Ok(split_name(name)?.1));
                let shared = shared.collect::<Result<Vec<_>>>()?;
                let mut bound = self.using(kind, &shared, left, right)?;
                if let Some(alias) = alias {
                    self.name_shared(&alias, shared.len(), &mut bound.names)?;
                }
                return Ok(bound);
            }
            ast::JoinConstraint::Natural => {
                let columns = left.visible.iter().map(|column| column.name.clone());
                columns.filter(|name| right.has_column(name)).collect()
            }
        };
        self.using(kind, &shared, left, right)
    }

    /// USING and NATURAL: each shared name is one column, which comes first.
    fn using(&mut self, kind: JoinKind, shared: &[String], left: &Names, right: &Names) -> Result<Bound> {
        let mut on = Vec::with_capacity(shared.len());
        let mut merged = Vec::with_capacity(shared.len());
        for name in shared {
            if self.makes_notes() && (left.has_old_name(name) || right.has_old_name(name)) {
                return Err(EngineError::not_supported(
                    "printing USING of a column that was renamed",
                ));
            }
            let one = shared_column(name, left, "left")?;
            let two = shared_column(name, right, "right")?;
            self.note_column(&one);
            self.note_column(&two);
            let comparison = crate::expr::CompareOp::Equal;
            on.push(self.compare(one.typed.clone(), comparison, two.typed.clone(), None)?);
            let common = common_type(&[one.typed.data_type, two.typed.data_type]);
            if let Some(common) = common.filter(|_| one.typed.data_type != two.typed.data_type) {
                // The value of a side that has the type already; of an inner join, of either.
                let has_type = |column: &ScopeColumn| column.typed.data_type == common;
                match kind {
                    JoinKind::Right | JoinKind::Inner if has_type(&two) => {
                        merged.push(two);
                        continue;
                    }
                    JoinKind::Left | JoinKind::Inner if has_type(&one) => {
                        merged.push(one);
                        continue;
                    }
                    _ => {}
                }
                let of = match kind {
                    JoinKind::Right => Typed::new(self.coerce(two.typed, common, None)?, common),
                    JoinKind::Full => self.scalar_of("coalesce", vec![one.typed, two.typed], None)?,
                    _ => Typed::new(self.coerce(one.typed, common, None)?, common),
                };
                merged.push(ScopeColumn {
                    name: name.clone(),
                    typed: of,
                    origin: (0, 0),
                });
                continue;
            }
            merged.push(match kind {
                JoinKind::Right => two,
                JoinKind::Full => ScopeColumn {
                    name: name.clone(),
                    typed: self.scalar_of("coalesce", vec![one.typed, two.typed], None)?,
                    origin: (0, 0),
                },
                _ => one,
            });
        }
        let others = |names: &Names| -> Vec<ScopeColumn> {
            let columns = names.visible.iter();
            columns
                .filter(|column| !shared.contains(&column.name))
                .cloned()
                .collect()
        };
        let mut names = left.clone().and(right.clone());
        names.visible = merged;
        names.visible.extend(others(left));
        names.visible.extend(others(right));
        Ok(Bound { on, names })
    }

    /// Gives the shared columns of a join, which are the first that are visible, the name behind USING.
    fn name_shared(&self, alias: &ast::Ident, shared: usize, names: &mut Names) -> Result<()> {
        let named = Names {
            visible: Vec::new(),
            relations: vec![ScopeRelation {
                schema: None,
                alias: identifier(alias)?,
                columns: names.visible[..shared].to_vec(),
                table_oid: 0,
                row_type: None,
                nullable: false,
                present: None,
                hidden: Hidden::default(),
                versions: Versions::None,
                since: Since::default(),
            }],
        };
        check_aliases(names, &named)?;
        names.relations.extend(named.relations);
        Ok(())
    }

    fn relation(&mut self, factor: &ast::TableFactor, seen: &Names, places: &mut Places) -> Result<From> {
        match factor {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                with_ordinality,
                sample: None,
                ..
            } if let Some(word) = call_without_parentheses(name) => {
                let value = self.scalar(&word, &[], &mut Scope::empty("functions in FROM"), None)?;
                self.one_value(&word, value, *with_ordinality, alias.as_ref(), places)
            }
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                with_ordinality: false,
                sample: None,
                ..
            } => self.named(name, alias.as_ref(), places),
            ast::TableFactor::Table {
                name,
                alias,
                args: Some(args),
                with_ordinality,
                ..
            } => self.function(name, &args.args, *with_ordinality, alias.as_ref(), seen, places),
            ast::TableFactor::Function {
                name,
                args,
                alias,
                with_ordinality,
                ..
            } => self.function(name, args, *with_ordinality, alias.as_ref(), seen, places),
            ast::TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality,
            } => {
                let trees: Vec<&ast::Expr> = array_exprs.iter().collect();
                let mut scope = Scope::of(seen.clone(), "functions in FROM");
                let called = self.called("unnest", &trees, &mut scope)?;
                self.functions(vec![called], *with_ordinality, alias.as_ref(), places)
            }
            ast::TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample: None,
            } => {
                let names = if *lateral { seen.clone() } else { Names::default() };
                let (block, arguments) = self.inside(names, |binder| binder.query(subquery, true))?;
                let columns = block.columns.clone();
                let rows = Rows::Query {
                    block: Box::new(block),
                    arguments,
                };
                self.leaf("unnamed_subquery", &columns, rows, alias.as_ref(), places)
            }
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                let joins = table_with_joins.joins.len();
                let inner = self.deeper(joins, |binder| binder.joined(table_with_joins, seen, places))?;
                match alias {
                    None => Ok(inner),
                    Some(alias) => {
                        self.enter(&identifier(&alias.name)?, None);
                        renamed(inner, alias)
                    }
                }
            }
            other => Err(EngineError::not_supported(format!("{other} in FROM"))),
        }
    }

    /// A table, or a common table expression of this name.
    fn named(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
        places: &mut Places,
    ) -> Result<From> {
        if let Some((columns, rows, hidden)) = self.common_table(name)? {
            let (_, known_as, _) = split_name(name)?;
            let mut from = self.leaf(&known_as, &columns, rows, alias, places)?;
            if hidden.count > 0 {
                from.names.relations[0].hidden = hidden;
                from.names.visible.truncate(columns.len() - hidden.count);
            }
            return Ok(from);
        }
        let (table, seen) = self.table_in_from(name)?;
        if let Some(view) = &table.view {
            self.read(&table);
            self.note_read(&table);
            let (columns, rows) = self.view_rows(&table, view)?;
            let (_, written, _) = split_name(name)?;
            let mut from = self.leaf(&written, &columns, rows, alias, places)?;
            // Its rows have all columns, and a stored query sees those of its time.
            from.names.relations[0].since.added = from.names.relations[0].columns.split_off(seen);
            from.names.visible.truncate(seen);
            from.names.relations[0].schema =
                alias.is_none().then(|| std::sync::Arc::clone(&table.schema.name));
            from.names.relations[0].row_type = row_type(&table);
            if let Some(entry) = self.entries.last_mut() {
                entry.table = Some(table.name.clone());
            }
            self.note_table(name, &table, &from.names.relations[0].columns);
            self.name_as_in_text(&table, alias, &mut from.names);
            return Ok(from);
        }
        let known_as = alias.map(|alias| identifier(&alias.name)).transpose()?;
        let width = table.columns.len() as u16;
        let is_told = self.presence.get() == Presence::Told;
        let base = places.take(usize::from(width) + usize::from(is_told))?;
        let mut names = Names::of_table(&table, known_as, base);
        let place = is_told.then_some(base + width);
        if let (None, Some(place)) = (&names.relations[0].present, place) {
            names.relations[0].present = Some(Expr::Column(place));
        }
        if matches!(table.kind, TableKind::Heap { .. }) {
            names.relations[0].versions = place.map_or(Versions::Untold, Versions::Told);
        }
        if alias.is_none() && self.view.is_some() {
            // The table may have another name by now.
            names.relations[0].alias = split_name(name)?.1;
        }
        names.relations[0].since.added = names.relations[0].columns.split_off(seen);
        check_column_aliases(alias, seen)?;
        rename(&mut names.relations[0].columns, alias);
        self.note_table(name, &table, &names.relations[0].columns);
        names.visible.clone_from(&names.relations[0].columns);
        self.name_as_in_text(&table, alias, &mut names);
        self.enter(&names.relations[0].alias, Some(&table.name));
        self.read(&table);
        self.note_read(&table);
        Ok(From {
            relation: Relation::Leaf(Leaf {
                base,
                width,
                place,
                lock: None,
                name: names.relations[0].alias.clone(),
                rows: Rows::Table(table),
            }),
            names,
        })
    }

    /// The table that a statement changes: the first leaf, with the place of its rows behind its columns.
    pub(in crate::bind) fn changed(
        &mut self,
        table: &std::sync::Arc<crate::catalog::TableDef>,
        alias: Option<String>,
        places: &mut Places,
    ) -> Result<From> {
        let width = table.columns.len() as u16;
        let base = places.take(usize::from(width) + 1)?;
        let mut names = Names::of_table(table, alias, base);
        names.relations[0].versions = Versions::Told(base + width);
        self.enter(&names.relations[0].alias, Some(&table.name));
        Ok(From {
            relation: Relation::Leaf(Leaf {
                base,
                width,
                place: Some(base + width),
                lock: None,
                name: names.relations[0].alias.clone(),
                rows: Rows::Table(std::sync::Arc::clone(table)),
            }),
            names,
        })
    }

    /// Notes that FROM names a relation.
    pub(in crate::bind) fn enter(&mut self, alias: &str, table: Option<&str>) {
        self.entries.push(Entry {
            alias: alias.to_owned(),
            table: table.map(str::to_owned),
        });
    }

    /// A leaf with these columns.
    pub(super) fn leaf(
        &mut self,
        name: &str,
        columns: &[Column],
        rows: Rows,
        alias: Option<&ast::TableAlias>,
        places: &mut Places,
    ) -> Result<From> {
        let (rows, is_told) = match self.presence.get() {
            Presence::Told => with_presence(columns, rows),
            _ => (rows, false),
        };
        let width = columns.len() + usize::from(is_told);
        let base = places.take(width)?;
        check_column_aliases(alias, columns.len())?;
        let known_as = match alias {
            Some(alias) => identifier(&alias.name)?,
            None => name.to_owned(),
        };
        let mut described: Vec<ScopeColumn> = columns
            .iter()
            .enumerate()
            .map(|(number, column)| ScopeColumn {
                name: column.name.clone(),
                typed: Typed {
                    expr: Expr::Column(base + number as u16),
                    data_type: column.data_type,
                    typmod: column.type_modifier,
                },
                origin: (column.table_oid, column.attribute),
            })
            .collect();
        rename(&mut described, alias);
        self.enter(&known_as, None);
        Ok(From {
            relation: Relation::Leaf(Leaf {
                base,
                width: width as u16,
                place: None,
                lock: None,
                name: known_as.clone(),
                rows,
            }),
            names: Names::of_relation(ScopeRelation {
                schema: None,
                alias: known_as,
                columns: described,
                table_oid: 0,
                row_type: None,
                nullable: false,
                present: is_told.then(|| Expr::Column(base + columns.len() as u16)),
                hidden: Hidden::default(),
                versions: Versions::None,
                since: Since::default(),
            }),
        })
    }
}

/// Rows with one more column, which is true in each; false for rows that read what stands to their left, and have none.
fn with_presence(columns: &[Column], rows: Rows) -> (Rows, bool) {
    let reads_left = |rows: &[Vec<Expr>]| {
        let mut found = false;
        rows.iter().flatten().for_each(|expr| {
            expr.walk(&mut |part| found |= matches!(part, Expr::Column(_)));
        });
        found
    };
    let arguments = match &rows {
        Rows::Query { arguments, .. } | Rows::Shared { arguments, .. } => Some(arguments.clone()),
        Rows::Values(rows) if !reads_left(rows) => None,
        Rows::Working(_) => None,
        _ => return (rows, false),
    };
    let rows = match rows {
        Rows::Query { block, arguments } => Rows::Query {
            block,
            arguments: (0..arguments.len() as u16).map(Expr::Outer).collect(),
        },
        Rows::Shared { number, arguments } => Rows::Shared {
            number,
            arguments: (0..arguments.len() as u16).map(Expr::Outer).collect(),
        },
        other => other,
    };
    let mut block = only_leaf(columns.to_vec(), rows);
    let arguments = arguments.unwrap_or_else(|| (0..block.arguments_read()).map(Expr::Outer).collect());
    block.projection.push(Expr::constant(true));
    block.columns.push(Column::computed("present", DataType::Bool));
    block.visible += 1;
    let block = Box::new(block);
    (Rows::Query { block, arguments }, true)
}

fn join_of(operator: &ast::JoinOperator) -> Result<(JoinKind, &ast::JoinConstraint)> {
    use ast::JoinOperator as O;
    Ok(match operator {
        O::Join(constraint) | O::Inner(constraint) | O::CrossJoin(constraint) => {
            (JoinKind::Inner, constraint)
        }
        O::Left(constraint) | O::LeftOuter(constraint) => (JoinKind::Left, constraint),
        O::Right(constraint) | O::RightOuter(constraint) => (JoinKind::Right, constraint),
        O::FullOuter(constraint) => (JoinKind::Full, constraint),
        _ => return Err(EngineError::not_supported("this kind of JOIN")),
    })
}

/// The only column of this name that a side of USING has.
fn shared_column(name: &str, names: &Names, side: &str) -> Result<ScopeColumn> {
    let mut found = names.visible.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column.clone()),
        (Some(_), Some(_)) => Err(EngineError::new(
            SqlState::AMBIGUOUS_COLUMN,
            format!("common column name \"{name}\" appears more than once in {side} table"),
        )),
        (None, _) => Err(EngineError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
        )),
    }
}

/// 42712 for a name that two relations have.
fn check_aliases(left: &Names, right: &Names) -> Result<()> {
    for relation in &right.relations {
        // Tables of one name in two schemas are two names.
        let is_same = |known: &&ScopeRelation| {
            let both_tables = known.schema.is_some() && relation.schema.is_some();
            known.alias == relation.alias && !(both_tables && known.table_oid != relation.table_oid)
        };
        if left.relations.iter().any(|known| is_same(&known)) {
            return Err(EngineError::new(
                SqlState::from_code("42712"),
                format!("table name \"{}\" specified more than once", relation.alias),
            ));
        }
    }
    Ok(())
}

/// An error for more names of columns than there are columns.
pub(super) fn check_column_aliases(alias: Option<&ast::TableAlias>, columns: usize) -> Result<()> {
    match alias {
        Some(alias) if alias.columns.len() > columns => Err(EngineError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "table \"{}\" has {columns} columns available but {} columns specified",
                normal(&alias.name),
                alias.columns.len()
            ),
        )),
        _ => Ok(()),
    }
}

/// Gives the columns the names of an alias.
fn rename(columns: &mut [ScopeColumn], alias: Option<&ast::TableAlias>) {
    let names = alias.iter().flat_map(|alias| &alias.columns);
    for (column, renamed) in columns.iter_mut().zip(names) {
        column.name = normal(&renamed.name);
    }
}

/// A join in parentheses under a name of its own: the names inside are not seen.
fn renamed(inner: From, alias: &ast::TableAlias) -> Result<From> {
    let mut columns = inner.names.visible;
    check_column_aliases(Some(alias), columns.len())?;
    rename(&mut columns, Some(alias));
    Ok(From {
        relation: inner.relation,
        names: Names::of_relation(ScopeRelation {
            schema: None,
            alias: identifier(&alias.name)?,
            columns,
            table_oid: 0,
            row_type: None,
            nullable: false,
            present: None,
            hidden: Hidden::default(),
            versions: Versions::None,
            since: Since::default(),
        }),
    })
}
