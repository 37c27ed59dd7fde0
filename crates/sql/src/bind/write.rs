//! INSERT, UPDATE, DELETE.

use std::sync::Arc;

use sqlparser::ast::{self, Spanned};

use crate::bind::assignment::{
    PARTS_MAX, Target, base_of, check_parts, is_part_assignment, parts_in, refuse_default, unchecked,
};
use crate::bind::changed_view::{Change, ChangedRelation, NO_COLUMN};
use crate::bind::cursor::scan_current_of;
use crate::bind::row_columns::{columns_of, query_of};
use crate::bind::scope::{Scope, Versions};
use crate::bind::select::{From, Places};
use crate::bind::{Binder, Place, Typed, identifier, refuse};
use crate::catalog::{CatalogView, ColumnDefault, TableDef};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::domain::default_of;
use crate::expr::{Expr, Subquery};
use crate::parse::parse_rows;
use crate::parse::{Overriding, overriding};
use crate::plan::{ConflictAction, DeletePlan, InsertPlan, InsertSource, JoinedRows, TableScan, UpdatePlan};
use crate::planner::Planner;
use crate::planner::cost::Costs;
use crate::planner::facts::Facts;
use crate::planner::scan::{ScanFacts, conjuncts, need, plan_scan};
use crate::stack::with_stack_for;
use crate::value::{ColumnSet, DataType, Value};

impl Binder<'_> {
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<InsertPlan> {
        refuse(
            insert.ignore
                || insert.overwrite
                || insert.replace_into
                || insert.priority.is_some()
                || insert.partitioned.is_some()
                || !insert.after_columns.is_empty()
                || !insert.assignments.is_empty()
                || insert.insert_alias.is_some()
                || insert.settings.is_some()
                || insert.format_clause.is_some()
                || insert.output.is_some()
                || insert.multi_table_insert_type.is_some(),
            "this form of INSERT",
        )?;
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(EngineError::not_supported("INSERT into a function or query"));
        };
        let alias = insert.table_alias.as_ref().map(|alias| identifier(&alias.alias));
        let mut relation = self.changed_relation(name, alias.transpose()?, Change::Insert)?;
        relation.overriding = overriding(insert.or);
        let table = Arc::clone(&relation.table);
        let targets = self.targets(&insert.columns, &relation)?;
        for (column, _) in relation.own_defaults() {
            refuse_generated(&relation, *column)?;
        }
        let source = match &insert.source {
            None => InsertSource::Rows(vec![defaults_of(&relation)]),
            Some(query) => match &*query.body {
                ast::SetExpr::Values(values) => {
                    refuse(
                        query.with.is_some()
                            || query.order_by.is_some()
                            || query.limit_clause.is_some()
                            || query.fetch.is_some(),
                        "WITH, ORDER BY or LIMIT around VALUES",
                    )?;
                    let explicit = !insert.columns.is_empty();
                    let width = values.rows.iter().map(|row| row.len()).max().unwrap_or(0);
                    self.note_implied_targets(&insert.columns, &relation, width);
                    require_different(&targets, width, explicit, &relation)?;
                    let mut rows = self.insert_rows(values, &relation, &targets, explicit)?;
                    self.more_rows(&relation, &targets, explicit, &mut rows)?;
                    // An error of a constant comes before a sequence has given a number.
                    let counts = |row: &&mut Vec<Expr>| row.iter().any(|value| !value.is_repeatable());
                    for row in rows.iter_mut().filter(counts) {
                        self.failure.each(row);
                    }
                    InsertSource::Rows(rows)
                }
                _ => {
                    refuse(!self.more_rows.is_empty(), "this form of INSERT")?;
                    let block = self.query(query, false)?;
                    let select = Planner::new(self.catalog, &self.subqueries, &self.failure).block(block)?;
                    let explicit = !insert.columns.is_empty();
                    self.check_count(select.visible, &targets, explicit, None)?;
                    self.note_implied_targets(&insert.columns, &relation, select.visible);
                    require_different(&targets, select.visible, explicit, &relation)?;
                    let mut columns = defaults_of(&relation);
                    let outputs = select.columns.iter().enumerate().map(|(position, output)| Typed {
                        expr: Expr::Column(position as u16),
                        data_type: output.data_type,
                        typmod: output.type_modifier,
                    });
                    for (at, (target, typed)) in targets.iter().zip(outputs).enumerate() {
                        relation.require_column(target.column, at)?;
                        if relation.is_overridden(target.column) {
                            continue;
                        }
                        refuse_generated(&relation, target.column)?;
                        let base = base_of(&targets, at, &columns);
                        columns[usize::from(target.column)] =
                            self.assigned(typed, target, base, &table, None)?;
                    }
                    InsertSource::Select {
                        select: Box::new(select),
                        columns,
                    }
                }
            },
        };
        let conflict = match &insert.on {
            None => None,
            Some(on) => Some(Box::new(self.on_conflict(on, &relation)?)),
        };
        let alias = relation.alias.as_deref().unwrap_or(relation.name());
        self.enter(alias, Some(relation.name()));
        let mut names = relation.names();
        if relation.view.is_none() {
            names.relations[0].versions = Versions::Stored(table.columns.len() as u16);
        }
        let returning = self.returning(insert.returning.as_ref(), names)?;
        let selects = conflict
            .as_ref()
            .is_some_and(|conflict| matches!(conflict.action, ConflictAction::Select(_)));
        if selects && returning.is_none() {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "ON CONFLICT DO SELECT requires a RETURNING clause",
            ));
        }
        let generates = table.generated().next().is_some();
        Ok(InsertPlan {
            generates,
            table,
            source,
            conflict,
            returning,
            checks: relation.checks(),
        })
    }

    /// The columns that an INSERT names, or parts of them; all when it names none.
    /// A column of a view that is none of its table has no number, and may stand there as long as it gets no value.
    pub(super) fn targets(
        &mut self,
        names: &[ast::ObjectName],
        relation: &ChangedRelation,
    ) -> Result<Vec<Target>> {
        if names.is_empty() {
            let columns = relation.columns().into_iter();
            return Ok(columns
                .map(|column| Target::of(column.unwrap_or(NO_COLUMN)))
                .collect());
        }
        let mut targets: Vec<Target> = Vec::with_capacity(names.len());
        for name in names {
            let target = self.target(name, relation, Change::Insert, &mut Scope::empty("INSERT"))?;
            let is_same = |other: &Target| {
                other.column == target.column && (other.part.is_none() || target.part.is_none())
            };
            if targets.iter().any(is_same) {
                if relation.view.is_some() && names.iter().filter(|other| *other == name).count() < 2 {
                    return Err(assigned_twice(target.column, &relation.table));
                }
                return Err(EngineError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!(
                        "column \"{}\" specified more than once",
                        relation.table.columns[usize::from(target.column)].name
                    ),
                )
                .or_position(self.position(name.span())));
            }
            targets.push(target);
        }
        check_parts(&targets)?;
        Ok(targets)
    }

    fn insert_rows(
        &mut self,
        values: &ast::Values,
        relation: &ChangedRelation,
        targets: &[Target],
        explicit: bool,
    ) -> Result<Vec<Vec<Expr>>> {
        let is_list = |tree: &ast::Expr| !matches!(tree, ast::Expr::QualifiedWildcard(..));
        let mut lists = values.rows.iter().filter(|row| row.iter().all(is_list));
        if let Some(first) = lists.next()
            && let Some(other) = lists.find(|row| row.len() != first.len())
        {
            let position = other.first().and_then(|tree| self.position_of(tree));
            return Err(
                EngineError::new(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length")
                    .or_position(position),
            );
        }
        let rows = values.rows.iter();
        rows.map(|row| self.insert_row(row, relation, targets, explicit, &mut Scope::empty("VALUES")))
            .collect()
    }

    /// The rows of a long INSERT that are not in its tree: some are parsed and bound, then the next.
    fn more_rows(
        &mut self,
        relation: &ChangedRelation,
        targets: &[Target],
        explicit: bool,
        rows: &mut Vec<Vec<Expr>>,
    ) -> Result<()> {
        let (whole, before) = (self.place.text, self.place.offset);
        for piece in self.more_rows {
            (self.check)()?;
            let text = &whole[piece.bytes.clone()];
            let offset = before + piece.characters_before;
            let values = parse_rows(text, offset)?;
            let place = std::mem::replace(&mut self.place, Place::of(text, offset));
            let bound = with_stack_for(values.levels(), || {
                self.insert_rows(&values, relation, targets, explicit)
            });
            self.place = place;
            rows.extend(bound?);
        }
        Ok(())
    }

    /// A row of VALUES, over what the scope sees: per column of the table an expression.
    pub(super) fn insert_row(
        &mut self,
        row: &[ast::Expr],
        relation: &ChangedRelation,
        targets: &[Target],
        explicit: bool,
        scope: &mut Scope,
    ) -> Result<Vec<Expr>> {
        let position = row.first().and_then(|tree| self.position_of(tree));
        self.check_count(row.len(), targets, explicit, position)?;
        let table = &*relation.table;
        let mut columns = defaults_of(relation);
        for (at, (tree, target)) in row.iter().zip(targets).enumerate() {
            relation.require_column(target.column, at)?;
            if is_default(tree) {
                refuse_default(target)?;
                continue;
            }
            if relation.is_overridden(target.column) {
                self.expression(tree, scope)?;
                continue;
            }
            refuse_generated(relation, target.column)
                .map_err(|error| error.or_position(self.position(tree.span())))?;
            let position = self.position_of(tree);
            let typed = self.expression(tree, scope)?;
            let base = base_of(targets, at, &columns);
            columns[usize::from(target.column)] = self.assigned(typed, target, base, table, position)?;
        }
        Ok(columns)
    }

    fn check_count(
        &self,
        given: usize,
        targets: &[Target],
        explicit: bool,
        position: Option<u32>,
    ) -> Result<()> {
        if given > targets.len() {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "INSERT has more expressions than target columns",
            )
            .or_position(position));
        }
        if given < targets.len() && explicit {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "INSERT has more target columns than expressions",
            )
            .or_position(position));
        }
        Ok(())
    }

    pub(super) fn update(&mut self, update: &ast::Update) -> Result<UpdatePlan> {
        refuse(
            update.or.is_some()
                || update.output.is_some()
                || !update.order_by.is_empty()
                || update.limit.is_some(),
            "this form of UPDATE",
        )?;
        let relation = self.changed_table(&update.table, Change::Update)?;
        let table = Arc::clone(&relation.table);
        let from = match &update.from {
            None => &[][..],
            Some(ast::UpdateTableFromKind::AfterSet(from)) => from,
            Some(ast::UpdateTableFromKind::BeforeSet(_)) => {
                return Err(EngineError::not_supported("FROM before SET"));
            }
        };
        let changed = self.changed_from(&relation, from)?;
        let mut scope = Scope::of(changed.from.names.clone(), "UPDATE");
        let mut set = Assignments::after(changed.width);
        self.assignments(&update.assignments, &relation, &mut scope, &mut set)?;
        let Assignments {
            assigned: assignments,
            row_queries,
            ..
        } = set;
        let cursor = self.cursor_of(update.selection.as_ref(), &relation)?;
        let selection = update.selection.as_ref().filter(|_| cursor.is_none());
        let mut conditions = self.changed_where(selection, &mut scope)?;
        conditions.extend(relation.conditions());
        let returning = self.returning(update.returning.as_ref(), changed.from.names.clone())?;
        let values = assignments.iter().map(|(_, value)| value);
        let returned = returning.iter().flat_map(|returning| &returning.projection);
        let arguments = row_queries.iter().flat_map(|(query, _)| &query.arguments);
        let read: Vec<&Expr> = values.clone().chain(returned).chain(arguments).collect();
        let by_operators = !row_queries.is_empty();
        let mut joined = self.joined_rows(&table, changed, &conditions, &read, by_operators)?;
        if let Some(joined) = &mut joined {
            joined.row_queries.clone_from(&row_queries);
        }
        refuse(
            cursor.is_some() && joined.is_some(),
            "WHERE CURRENT OF beside other tables and queries",
        )?;
        let scan = changed_scan(self.catalog, table, joined.is_some(), conditions, values);
        let scan = scan_current_of(scan, cursor);
        let table = &scan.table;
        let generates = table.generated().next().is_some();
        let changes_indexed_columns = table.may_change_keys(assignments.iter().map(|(column, _)| *column));
        Ok(UpdatePlan {
            scan,
            joined,
            assignments,
            changes_indexed_columns,
            generates,
            returning,
            checks: relation.checks(),
        })
    }

    /// The assignments of SET.
    pub(super) fn assignments(
        &mut self,
        trees: &[ast::Assignment],
        relation: &ChangedRelation,
        scope: &mut Scope,
        set: &mut Assignments,
    ) -> Result<()> {
        for assignment in trees {
            match &assignment.target {
                ast::AssignmentTarget::ColumnName(name) => {
                    self.assignment(name, Assigned::Tree(&assignment.value), relation, scope, set)?;
                }
                ast::AssignmentTarget::Tuple(names) => {
                    self.row_assignment(names, &assignment.value, relation, scope, set)?;
                }
            }
        }
        Ok(())
    }

    /// `SET (a, b) = (x, y)`, `= ROW(x, y)` and `= (SELECT …)`.
    fn row_assignment(
        &mut self,
        names: &[ast::ObjectName],
        value: &ast::Expr,
        relation: &ChangedRelation,
        scope: &mut Scope,
        set: &mut Assignments,
    ) -> Result<()> {
        let position = self.position_of(value);
        let require_count = |count: usize| match names.len() == count {
            true => Ok(()),
            false => Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "number of columns does not match number of values",
            )
            .or_position(position)),
        };
        if let Some(query) = query_of(value) {
            let (query, columns) = self.row_subquery(query, scope)?;
            require_count(columns.len())?;
            let first = set.width;
            set.width += columns.len();
            set.row_queries.push((query, columns.len()));
            for (at, (name, column)) in names.iter().zip(columns).enumerate() {
                let typed = Typed {
                    expr: Expr::Column((first + at) as u16),
                    data_type: column.data_type,
                    typmod: column.type_modifier,
                };
                self.assignment(name, Assigned::Column(typed), relation, scope, set)?;
            }
            return Ok(());
        }
        let Some(values) = columns_of(value) else {
            let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
            return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message).or_position(position));
        };
        let mut assigned = Vec::with_capacity(values.len());
        for value in &values {
            match &**value {
                ast::Expr::QualifiedWildcard(name, _) => {
                    assigned.extend(
                        self.columns_of_relation(name, scope)?
                            .into_iter()
                            .map(Assigned::Column),
                    );
                }
                value => assigned.push(Assigned::Tree(value)),
            }
        }
        require_count(assigned.len())?;
        for (name, value) in names.iter().zip(assigned) {
            self.assignment(name, value, relation, scope, set)?;
        }
        Ok(())
    }

    fn assignment(
        &mut self,
        name: &ast::ObjectName,
        value: Assigned<'_>,
        relation: &ChangedRelation,
        scope: &mut Scope,
        set: &mut Assignments,
    ) -> Result<()> {
        let target = self.target(name, relation, Change::Update, scope)?;
        let table = &*relation.table;
        let column = target.column;
        let before = set.assigned.iter().position(|(other, _)| *other == column);
        let may_repeat = |value: &Expr| target.part.is_some() && is_part_assignment(value);
        if before.is_some_and(|at| !may_repeat(&set.assigned[at].1)) {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "multiple assignments to same column \"{}\"",
                    table.columns[usize::from(column)].name
                ),
            )
            .or_position(self.position(name.span())));
        }
        let def = &table.columns[usize::from(column)];
        let by_default = matches!(value, Assigned::Tree(tree) if is_default(tree));
        if def.generated().is_some() && !by_default {
            let message = format!("column \"{}\" can only be updated to DEFAULT", def.name);
            return Err(of_generated(message, &def.name).or_position(self.position(name.span())));
        }
        if def.always_generated && !by_default {
            return Err(generated_always(
                format!("column \"{}\" can only be updated to DEFAULT", def.name),
                &def.name,
            )
            .or_position(self.position(name.span())));
        }
        if by_default {
            refuse_default(&target)?;
            // Those of the table below a view do not count.
            let own = relation.own_defaults().iter().find(|(of, _)| *of == column);
            let value = match own {
                Some((_, value)) => value.clone(),
                None if relation.view.is_some() && !def.always_generated => Expr::Constant(Value::Null),
                None => table_default(table, column),
            };
            set.assigned.push((column, value));
            return Ok(());
        }
        let (typed, position) = match value {
            Assigned::Tree(tree) => (self.expression(tree, scope)?, self.position_of(tree)),
            Assigned::Column(typed) => (typed, None),
        };
        // Parts of one column are assigned one after the other.
        let base = match before {
            Some(at) => unchecked(set.assigned.swap_remove(at).1),
            // The changed table is the first of the row.
            None => Expr::Column(column),
        };
        let value = self.assigned(typed, &target, base, table, position)?;
        refuse(
            parts_in(&value) > PARTS_MAX,
            "so many assignments to parts of one column",
        )?;
        set.assigned.push((column, value));
        Ok(())
    }

    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<DeletePlan> {
        refuse(
            !delete.tables.is_empty()
                || delete.output.is_some()
                || !delete.order_by.is_empty()
                || delete.limit.is_some(),
            "this form of DELETE",
        )?;
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
        let [from] = from.as_slice() else {
            return Err(EngineError::not_supported("DELETE from several tables"));
        };
        let relation = self.changed_table(from, Change::Delete)?;
        let table = Arc::clone(&relation.table);
        let using = delete.using.as_deref().unwrap_or_default();
        let changed = self.changed_from(&relation, using)?;
        let mut scope = Scope::of(changed.from.names.clone(), "WHERE");
        let cursor = self.cursor_of(delete.selection.as_ref(), &relation)?;
        let selection = delete.selection.as_ref().filter(|_| cursor.is_none());
        let mut conditions = self.changed_where(selection, &mut scope)?;
        conditions.extend(relation.conditions());
        let returning = self.returning(delete.returning.as_ref(), changed.from.names.clone())?;
        let returned = returning.iter().flat_map(|returning| &returning.projection);
        let read: Vec<&Expr> = returned.clone().collect();
        let joined = self.joined_rows(&table, changed, &conditions, &read, false)?;
        refuse(
            cursor.is_some() && joined.is_some(),
            "WHERE CURRENT OF beside other tables and queries",
        )?;
        let scan = changed_scan(self.catalog, table, joined.is_some(), conditions, returned);
        let mut scan = scan_current_of(scan, cursor);
        if scan.table.is_referenced {
            // Foreign keys are told the keys of the rows.
            let keys = scan.table.indexes.iter().filter(|index| index.unique);
            keys.flat_map(|index| index.key_columns())
                .for_each(|column| scan.needed.insert(column));
        }
        Ok(DeletePlan {
            scan,
            joined,
            returning,
        })
    }

    /// The changed table, and what FROM or USING says beside it.
    fn changed_from(&mut self, relation: &ChangedRelation, from: &[ast::TableWithJoins]) -> Result<Changed> {
        let mut places = Places::default();
        let mut changed = self.changed(&relation.table, relation.alias.clone(), &mut places)?;
        if relation.view.is_some() {
            changed.names = relation.names();
        }
        let whole = self.entries_after(Some(changed), from, &mut places)?;
        Ok(Changed {
            from: whole,
            width: places.width,
            alone: from.is_empty(),
        })
    }

    fn changed_where(&mut self, selection: Option<&ast::Expr>, scope: &mut Scope) -> Result<Vec<Expr>> {
        let Some(tree) = selection else {
            return Ok(Vec::new());
        };
        scope.clause = "WHERE";
        let typed = self.expression(tree, scope)?;
        Ok(conjuncts(self.condition(
            typed,
            "WHERE",
            self.position_of(tree),
        )?))
    }

    /// The rows to change as operators, if a scan of the table cannot tell them, or if they are wanted so.
    fn joined_rows(
        &mut self,
        table: &TableDef,
        changed: Changed,
        conditions: &[Expr],
        read: &[&Expr],
        by_operators: bool,
    ) -> Result<Option<Box<JoinedRows>>> {
        let subqueries =
            conditions.iter().any(Expr::has_subquery) || read.iter().any(|expr| expr.has_subquery());
        let reads_place = |expr: &Expr| expr.reads(table.columns.len() as u16);
        let by_operators =
            by_operators || conditions.iter().any(reads_place) || read.iter().copied().any(reads_place);
        if changed.alone && !subqueries && !by_operators {
            return Ok(None);
        }
        let planner = Planner::new(self.catalog, &self.subqueries, &self.failure);
        let conditions = conditions.to_vec();
        let joined = planner.joined(changed.from.relation, changed.width, conditions, table, read)?;
        Ok(Some(Box::new(joined)))
    }

    fn changed_table(&mut self, relation: &ast::TableWithJoins, change: Change) -> Result<ChangedRelation> {
        if let Some(join) = relation.joins.first() {
            return Err(
                EngineError::not_supported("JOIN").or_position(self.position_of_relation(&join.relation))
            );
        }
        match &relation.relation {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let alias = alias.as_ref().map(|alias| identifier(&alias.name));
                self.changed_relation(name, alias.transpose()?, change)
            }
            other => Err(EngineError::not_supported(format!("changing {other}"))),
        }
    }
}

/// 42601 for a column that is given two values.
/// 42601 if two of the columns of a view that get a value, none of which is named, are the same column of its table.
fn require_different(
    targets: &[Target],
    width: usize,
    explicit: bool,
    relation: &ChangedRelation,
) -> Result<()> {
    if explicit || relation.view.is_none() {
        return Ok(());
    }
    let given = &targets[..width.min(targets.len())];
    let twice = given.iter().enumerate().find(|(at, target)| {
        target.column != NO_COLUMN && given[..*at].iter().any(|before| before.column == target.column)
    });
    twice.map_or(Ok(()), |(_, target)| {
        Err(assigned_twice(target.column, &relation.table))
    })
}

fn assigned_twice(column: u16, table: &TableDef) -> EngineError {
    EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!(
            "multiple assignments to same column \"{}\"",
            table.columns[usize::from(column)].name
        ),
    )
}

/// The FROM of a statement that changes a table.
struct Changed {
    from: From,
    width: usize,
    /// True if there is nothing beside the changed table.
    alone: bool,
}

/// The assignments of SET.
pub(super) struct Assignments {
    pub(super) assigned: Vec<(u16, Expr)>,
    /// The queries of `SET (…) = (SELECT …)` with the number of their columns.
    pub(super) row_queries: Vec<(Subquery, usize)>,
    /// Number of columns of the row with those of the queries behind it.
    width: usize,
}

impl Assignments {
    /// None yet; over a row of so many columns.
    pub(super) fn after(width: usize) -> Assignments {
        Assignments {
            assigned: Vec::new(),
            row_queries: Vec::new(),
            width,
        }
    }
}

/// The value that a column gets.
enum Assigned<'t> {
    Tree(&'t ast::Expr),
    Column(Typed),
}

/// The scan of the changed table; all columns for a newer version of a row, where operators find the rows.
pub(super) fn changed_scan<'e>(
    catalog: &dyn CatalogView,
    table: Arc<TableDef>,
    joined: bool,
    conditions: Vec<Expr>,
    read: impl Iterator<Item = &'e Expr>,
) -> TableScan {
    let around = Facts::default();
    let facts = ScanFacts {
        costs: Costs::new(catalog),
        arguments: &[],
        around: &around,
        runs: 1.0,
    };
    if joined {
        let mut scan = plan_scan(&facts, table, Vec::new(), true);
        scan.needed = ColumnSet::all(scan.table.columns.len());
        return scan;
    }
    let mut scan = plan_scan(&facts, table, conditions, true);
    read.for_each(|expr| need(&mut scan.needed, expr));
    scan
}

/// 428C9.
fn generated_always(message: String, column: &str) -> EngineError {
    EngineError::new(SqlState::GENERATED_ALWAYS, message).with_detail(format!(
        "Column \"{column}\" is an identity column defined as GENERATED ALWAYS."
    ))
}

/// 428C9 for a generated column.
fn of_generated(message: String, column: &str) -> EngineError {
    EngineError::new(SqlState::GENERATED_ALWAYS, message)
        .with_detail(format!("Column \"{column}\" is a generated column."))
}

fn is_default(tree: &ast::Expr) -> bool {
    matches!(tree, ast::Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// The value of a column that a statement leaves out.
pub(super) fn table_default(table: &TableDef, column: u16) -> Expr {
    let def = &table.columns[usize::from(column)];
    match &def.default {
        None if matches!(def.data_type, DataType::Domain(_)) => default_of(def.data_type),
        None => Expr::Constant(Value::Null),
        Some(ColumnDefault::Expression { expr, .. }) => expr.clone(),
        // Made of the row when that is there.
        Some(ColumnDefault::Generated { .. }) => Expr::Constant(Value::Null),
        Some(ColumnDefault::NewSequence(_)) => Expr::Constant(Value::Null),
        Some(ColumnDefault::Identity(sequence)) => {
            let next = Expr::NextSerial { sequence: *sequence };
            match def.data_type {
                DataType::Int8 => next,
                other => Expr::Cast {
                    input: Box::new(next),
                    from: DataType::Int8,
                    to: other,
                    typmod: -1,
                    context: crate::value::cast::CastContext::Assignment,
                },
            }
        }
    }
}

pub(super) fn table_defaults(table: &TableDef) -> Vec<Expr> {
    (0..table.columns.len() as u16)
        .map(|column| table_default(table, column))
        .collect()
}

/// The values of the columns that an INSERT leaves out: a view's defaults come first.
fn defaults_of(relation: &ChangedRelation) -> Vec<Expr> {
    let mut values = table_defaults(&relation.table);
    for (column, value) in relation.own_defaults() {
        values[usize::from(*column)] = value.clone();
    }
    values
}

/// 428C9 for a column whose values are always generated.
fn refuse_generated(relation: &ChangedRelation, column: u16) -> Result<()> {
    let def = &relation.table.columns[usize::from(column)];
    if def.generated().is_some() {
        let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", def.name);
        return Err(of_generated(message, &def.name));
    }
    if !def.always_generated || relation.overriding == Some(Overriding::System) {
        return Ok(());
    }
    Err(generated_always(
        format!("cannot insert a non-DEFAULT value into column \"{}\"", def.name),
        &def.name,
    )
    .with_hint("Use OVERRIDING SYSTEM VALUE to override."))
}
