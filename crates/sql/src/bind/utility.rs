//! Utility statements: their names looked up, their arguments bound.

use std::sync::Arc;
use std::time::Instant;

use sqlparser::ast;

use crate::access::AccessPath;
use crate::bind::scope::Scope;
use crate::bind::types::no_column;
use crate::bind::write::table_default;
use crate::bind::{Binder, Bound, bind_checked, refuse, require_heap};
use crate::catalog::{TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::explain::{self, ExplainFormat, ExplainOptions};
use crate::expr::Expr;
use crate::parse::utility::{AsRead, Copy, CopySource, FORCES, ForceClause, Name, NamedDefinition};
use crate::parse::{ParsedStatement, Tree};
use crate::plan::{
    Column, ControlStatement, CopyDirection, CopyOptions, CopyPlan, DefinitionStatement, ExplainedStatement,
    ForcedColumns, MaintainedTable, MeasuredStatement, RowsStatement, SelectPlan, Source, Statement,
    TableScan,
};
use crate::planner::scan::need;
use crate::stack::{Deep, with_stack_for};
use crate::value::{ColumnSet, DataType};

/// A setting's name as SHOW has it: three have capitals.
fn as_shown(name: &str) -> &str {
    match name {
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        "timezone" => "TimeZone",
        other => other,
    }
}

impl Binder<'_> {
    /// A statement about the transaction, the session, or maintenance: [`ControlStatement`] with its names looked up, and
    /// the columns of SHOW.
    pub(super) fn control(&mut self, statement: &ControlStatement<AsRead>) -> Result<Bound> {
        let shown = match statement {
            ControlStatement::Show(name) => Some(vec![Column::computed(as_shown(name), DataType::Text)]),
            ControlStatement::WaitForLsn(_) => Some(vec![Column::computed("status", DataType::Text)]),
            ControlStatement::ShowAll => {
                let columns =
                    ["name", "setting", "description"].map(|name| Column::computed(name, DataType::Text));
                Some(columns.to_vec())
            }
            _ => None,
        };
        Ok((self.looked_up(statement)?.into(), shown))
    }

    /// The same statement with its names looked up.
    fn looked_up(&mut self, statement: &ControlStatement<AsRead>) -> Result<ControlStatement> {
        use ControlStatement::*;
        Ok(match statement {
            Vacuum {
                tables,
                analyze,
                verbose,
            } => match self.maintained(tables)? {
                Some(tables) => Vacuum {
                    tables,
                    analyze: *analyze,
                    verbose: *verbose,
                },
                None => NoOperation("VACUUM"),
            },
            Lock {
                tables,
                mode,
                no_wait,
            } => Lock {
                tables: tables
                    .iter()
                    .map(|name| self.any_table(name))
                    .collect::<Result<_>>()?,
                mode: *mode,
                no_wait: *no_wait,
            },
            Analyze { tables, verbose } => match self.maintained(tables)? {
                Some(tables) => Analyze {
                    tables,
                    verbose: *verbose,
                },
                None => NoOperation("ANALYZE"),
            },
            Prepare {
                name,
                types,
                sql,
                before,
            } => Prepare {
                name: name.clone(),
                types: self.parameter_types(types)?,
                sql: sql.clone(),
                before: *before,
            },
            Execute { name, arguments, .. } => Execute {
                name: name.clone(),
                arguments: self.arguments(arguments.as_ref())?,
                explained: None,
            },
            ExecuteInto {
                name,
                arguments,
                into,
            } => ExecuteInto {
                name: name.clone(),
                arguments: self.arguments(arguments.as_ref())?,
                into: into.clone(),
            },
            SetConstraints { names, deferred } => SetConstraints {
                names: names.clone(),
                deferred: *deferred,
            },
            // These name nothing that is looked up before they run.
            Empty => Empty,
            Begin(modes) => Begin(*modes),
            Commit { chain } => Commit { chain: *chain },
            Rollback { chain } => Rollback { chain: *chain },
            Savepoint(name) => Savepoint(name.clone()),
            Release(name) => Release(name.clone()),
            RollbackTo(name) => RollbackTo(name.clone()),
            SetTransaction { modes, session } => SetTransaction {
                modes: *modes,
                session: *session,
            },
            Set { name, value, local } => Set {
                name: name.clone(),
                value: value.clone(),
                local: *local,
            },
            CreateExtension { name, if_not_exists } => CreateExtension {
                name: name.clone(),
                if_not_exists: *if_not_exists,
            },
            AlterSystem { name, value } => AlterSystem {
                name: name.clone(),
                value: value.clone(),
            },
            Reset(name) => Reset(name.clone()),
            Show(name) => Show(name.clone()),
            ShowAll => ShowAll,
            Checkpoint => Checkpoint,
            Deallocate(name) => Deallocate(name.clone()),
            Declare(declare) => Declare(self.declare(declare)?),
            Fetch(fetch) => Fetch(fetch.clone()),
            Close(name) => Close(name.clone()),
            Listen(channel) => Listen(channel.clone()),
            Unlisten(channel) => Unlisten(channel.clone()),
            Notify { channel, payload } => Notify {
                channel: channel.clone(),
                payload: payload.clone(),
            },
            WaitForLsn(wait) => WaitForLsn(wait.clone()),
            DropDatabase { name, if_exists } => DropDatabase {
                name: name.clone(),
                if_exists: *if_exists,
            },
            DiscardAll => DiscardAll,
            DiscardTemporary => DiscardTemporary,
            DiscardSequences => DiscardSequences,
            NoOperation(tag) => NoOperation(tag),
        })
    }

    /// The types that PREPARE declares; `unknown` leaves one open.
    fn parameter_types(&self, types: &[String]) -> Result<Vec<Option<DataType>>> {
        let types = types.iter().map(|text| self.type_named(text));
        types
            .map(|found| Ok(Some(found?).filter(|known| *known != DataType::Unknown)))
            .collect()
    }

    /// The arguments of EXECUTE.
    fn arguments(&mut self, row: Option<&Deep<Vec<ast::Expr>>>) -> Result<Vec<(Expr, DataType)>> {
        let mut bound = Vec::new();
        if let Some(row) = row {
            with_stack_for(row.levels(), || {
                row.iter().try_for_each(|tree| {
                    let typed = self.expression(tree, &mut Scope::empty("EXECUTE parameters"))?;
                    bound.push((typed.expr, typed.data_type));
                    Ok::<_, EngineError>(())
                })
            })?;
        }
        Ok(bound)
    }

    /// A statement that changes definitions, of those that `parse::utility` reads.
    pub(super) fn named_definition(&mut self, statement: &NamedDefinition) -> Result<Bound> {
        if let Some(statement) = self.schema_statement(statement) {
            return Ok((statement.into(), None));
        }
        if let Some(statement) = self.sequence_statement(statement)? {
            return Ok((statement.into(), None));
        }
        let statement = match statement {
            NamedDefinition::Truncate {
                tables,
                restart_identity,
                cascade,
            } => self.truncate(tables, *restart_identity, *cascade)?,
            NamedDefinition::DropTable {
                tables,
                if_exists,
                cascade,
            } => self.drop_table(tables, *if_exists, *cascade)?,
            NamedDefinition::CreateView(create) => self.create_view(create)?,
            NamedDefinition::AlterView(alter) => self.alter_view(alter)?,
            NamedDefinition::RenameIndex { index, if_exists, to } => {
                self.renamed_index(index.schema.as_deref(), &index.name, to.clone(), *if_exists)?
            }
            NamedDefinition::IndexStatistics {
                index,
                if_exists,
                column,
                target,
            } => self.index_statistics(index, *if_exists, (*column, *target))?,
            NamedDefinition::AlterTable(alter) => self.written_actions(alter)?,
            NamedDefinition::DropView {
                views,
                if_exists,
                cascade,
            } => self.drop_view(views, *if_exists, *cascade)?,
            NamedDefinition::DropIndex {
                indexes,
                if_exists,
                concurrently,
            } => self.drop_index(indexes, *if_exists, *concurrently)?,
            NamedDefinition::Reindex(reindex) => self.reindex(reindex)?,
            NamedDefinition::SetParameters { table, changes } => DefinitionStatement::SetParameters {
                table: self.heap(table)?,
                changes: changes.clone(),
            },
            NamedDefinition::CreateSchema { .. }
            | NamedDefinition::RenameSchema { .. }
            | NamedDefinition::SchemaOwner { .. }
            | NamedDefinition::DropSchema { .. } => {
                return Err(EngineError::internal("a statement about a schema is none"));
            }
            NamedDefinition::CreateSequence(_)
            | NamedDefinition::AlterSequence(_)
            | NamedDefinition::DropSequence { .. } => {
                return Err(EngineError::internal("a statement about a sequence is none"));
            }
            NamedDefinition::Comment(comment) => self.comment(comment)?,
            NamedDefinition::Grant(grant) => self.grant(grant)?,
            NamedDefinition::Role(statement) => DefinitionStatement::Role(Box::new(statement.clone())),
            NamedDefinition::Type(statement) => {
                DefinitionStatement::Type(Box::new(self.type_statement(statement)?))
            }
        };
        Ok((statement.into(), None))
    }

    /// EXPLAIN: the plan of the statement, run or not.
    pub(super) fn explain(&mut self, statement: &ParsedStatement, options: ExplainOptions) -> Result<Bound> {
        let started = Instant::now();
        let data_type = match options.format {
            ExplainFormat::Json => DataType::Json,
            // There is no type of XML documents.
            ExplainFormat::Text | ExplainFormat::Yaml | ExplainFormat::Xml => DataType::Text,
        };
        let columns = vec![Column::computed("QUERY PLAN", data_type)];
        if let Tree::Control(ControlStatement::Execute { name, arguments, .. }) = &statement.tree {
            let execute = ControlStatement::Execute {
                name: name.clone(),
                arguments: self.arguments(arguments.as_ref())?,
                explained: Some(options),
            };
            return Ok((execute.into(), Some(columns)));
        }
        let mut plan = bind_checked(statement, self.catalog, &self.params, self.check)?;
        self.params = plan.param_types.iter().copied().map(Some).collect();
        self.accesses.append(&mut plan.accesses);
        let changes = options.analyze && !plan.changes.is_empty();
        refuse(
            changes,
            "EXPLAIN ANALYZE of a statement that changes rows in WITH",
        )?;
        self.failure.take_over(plan.failure.take());
        let mut counters = None;
        if options.analyze {
            let what = options.measured();
            if let Statement::Rows(statement) = &mut plan.statement {
                *statement = statement.measured(what);
            }
            let queries = plan.subqueries.iter();
            self.planned = queries.map(|query| Arc::new(query.measured(what))).collect();
            counters = Some((Arc::default(), Arc::default()));
        }
        let subqueries = if options.analyze {
            &self.planned
        } else {
            &plan.subqueries
        };
        let shown = counters.clone();
        let mut tree = explain::plan_tree(&plan.statement, subqueries, self.catalog, options, shown)?;
        tree.planning_ms = started.elapsed().as_secs_f64() * 1e3;
        self.reads.extend(plan.reads);
        let statement = match (plan.statement, counters) {
            (Statement::Rows(statement), Some((top, changed))) => {
                RowsStatement::Measured(Box::new(MeasuredStatement {
                    statement,
                    tree,
                    top,
                    changed,
                }))
            }
            (statement, _) => {
                let of_with = plan.changes.iter().map(|change| &*change.statement);
                let own = match &statement {
                    Statement::Rows(statement) => Some(statement),
                    _ => None,
                };
                let changed = of_with.chain(own).filter_map(RowsStatement::changed_table);
                let changed = changed.cloned().collect();
                RowsStatement::Explain(Box::new(ExplainedStatement { tree, changed }))
            }
        };
        Ok((statement.into(), Some(columns)))
    }

    fn drop_table(&self, tables: &[Name], if_exists: bool, cascade: bool) -> Result<DefinitionStatement> {
        let mut found = Vec::with_capacity(tables.len());
        for name in tables {
            let table = self.catalog.lookup_table(name.schema.as_deref(), &name.name);
            match &table {
                Some(table) => require_heap(table).map_err(|error| match table.kind {
                    TableKind::View => error.with_hint("Use DROP VIEW to remove a view."),
                    _ => error,
                })?,
                None if !if_exists => {
                    self.require_schema(name.schema.as_deref(), None)?;
                    return Err(EngineError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("table \"{}\" does not exist", name.name),
                    ));
                }
                None => {}
            }
            found.push((name.name.clone(), table));
        }
        Ok(DefinitionStatement::DropTable {
            tables: found,
            if_exists,
            cascade,
        })
    }

    pub(super) fn any_table(&self, name: &Name) -> Result<Arc<TableDef>> {
        self.require_schema(name.schema.as_deref(), Some(name.position))?;
        self.table_named(name.schema.as_deref(), &name.name, Some(name.position))
    }

    pub(super) fn heap(&self, name: &Name) -> Result<Arc<TableDef>> {
        let table = self.any_table(name)?;
        require_heap(&table)?;
        Ok(table)
    }

    /// The tables and columns of VACUUM and ANALYZE, of which none named is all; `None` if all that are named are the
    /// system's own, whose rows are made when they are asked for.
    fn maintained(&self, tables: &[MaintainedTable<AsRead>]) -> Result<Option<Vec<MaintainedTable>>> {
        let look_up = |named: &MaintainedTable<AsRead>| {
            let table = self.any_table(&named.table)?;
            let Some(names) = &named.columns else {
                return Ok(MaintainedTable { table, columns: None });
            };
            let mut columns = Vec::with_capacity(names.len());
            for name in names {
                let problem = |sqlstate, what: &str| {
                    let text = format!("column \"{name}\" of relation \"{}\" {what}", table.name);
                    Err(EngineError::new(sqlstate, text))
                };
                match table.column_number(name) {
                    None => return problem(SqlState::UNDEFINED_COLUMN, "does not exist"),
                    Some(column) if columns.contains(&column) => {
                        return problem(SqlState::DUPLICATE_COLUMN, "appears more than once");
                    }
                    Some(column) => columns.push(column),
                }
            }
            Ok(MaintainedTable {
                table,
                columns: Some(columns),
            })
        };
        let mut found = tables.iter().map(look_up).collect::<Result<Vec<_>>>()?;
        found.retain(|named: &MaintainedTable| matches!(named.table.kind, TableKind::Heap { .. }));
        Ok(Some(found).filter(|kept| tables.is_empty() || !kept.is_empty()))
    }

    /// The table of COPY.
    fn copied_table(&self, name: &Name, from: bool) -> Result<Arc<TableDef>> {
        let table = self.any_table(name)?;
        match (table.kind, from) {
            (TableKind::View, true) => Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot copy to view \"{}\"", table.name),
            )
            .with_hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.")),
            (TableKind::View, false) => Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot copy from view \"{}\"", table.name),
            )
            .with_hint("Try the COPY (SELECT ...) TO variant.")),
            (_, true) => require_heap(&table).map(|()| table),
            (_, false) => Ok(table),
        }
    }

    pub(super) fn copy(&mut self, copy: &Copy) -> Result<CopyPlan> {
        let direction = if copy.from {
            CopyDirection::FromStdin
        } else {
            CopyDirection::ToStdout
        };
        if copy.options.matches && !copy.from {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use \"match\" with HEADER in COPY TO",
            ));
        }
        let (table, names) = match &copy.source {
            CopySource::Table { table, columns } => (self.copied_table(table, copy.from)?, columns),
            CopySource::Query(query) => {
                if copy.from {
                    return Err(EngineError::new(
                        SqlState::SYNTAX_ERROR,
                        "COPY FROM needs a table",
                    ));
                }
                let plan = bind_checked(query, self.catalog, &[], self.check)?;
                let changes = !plan.changes.is_empty();
                refuse(changes, "COPY with a statement that changes rows in WITH")?;
                self.planned = plan.subqueries;
                self.failure.take_over(plan.failure);
                self.reads.extend(plan.reads);
                self.accesses.extend(plan.accesses);
                if let Statement::Definition(_) = plan.statement {
                    return Err(EngineError::not_supported("COPY (SELECT INTO)"));
                }
                if let Statement::Rows(RowsStatement::Merge(_)) = plan.statement {
                    let message = "MERGE not supported in COPY";
                    return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                let Statement::Rows(RowsStatement::Select(select)) = plan.statement else {
                    return Err(EngineError::not_supported("COPY of anything but a SELECT"));
                };
                let names: Vec<&str> = select.columns[..select.visible]
                    .iter()
                    .map(|column| column.name.as_str())
                    .collect();
                let options = with_forced(copy, &names, &names)?;
                return Ok(CopyPlan {
                    direction,
                    table: None,
                    columns: (0..select.visible as u16).collect(),
                    defaults: Vec::new(),
                    condition: None,
                    query: Some(select),
                    options,
                });
            }
        };
        let columns: Vec<u16> = match names {
            None => (0..table.columns.len() as u16)
                .filter(|column| table.columns[usize::from(*column)].generated().is_none())
                .collect(),
            Some(names) => names
                .iter()
                .map(|name| {
                    let number = table.column_number(&name.name);
                    number.ok_or_else(|| no_column(&table.name, &name.name).with_position(name.position))
                })
                .collect::<Result<_>>()?,
        };
        if let Some((at, _)) = columns
            .iter()
            .enumerate()
            .find(|(at, column)| columns[..*at].contains(column))
        {
            return Err(EngineError::new(
                SqlState::DUPLICATE_COLUMN,
                format!(
                    "column \"{}\" specified more than once",
                    table.columns[usize::from(columns[at])].name
                ),
            ));
        }
        let mut named = columns.iter().map(|column| &table.columns[usize::from(*column)]);
        if let Some(generated) = named.find(|column| column.generated().is_some()) {
            return Err(EngineError::new(
                SqlState::from_code("42P10"),
                format!("column \"{}\" is a generated column", generated.name),
            )
            .with_detail("Generated columns cannot be used in COPY."));
        }
        let defaults = (0..table.columns.len() as u16)
            .map(|column| (!columns.contains(&column)).then(|| table_default(&table, column)))
            .collect();
        let query = (!copy.from).then(|| Arc::new(whole_table(table.clone(), &columns)));
        if query.is_some() {
            self.read(&table);
        }
        let numbers: Vec<u16> = columns
            .iter()
            .map(|column| table.attribute_number(*column))
            .collect();
        let access = self.access(&table);
        match copy.from {
            true => (access.inserts, access.inserted) = (true, numbers),
            false => (access.is_read, access.selected) = (true, numbers),
        }
        let condition = match &copy.condition {
            None => None,
            Some(condition) => Some(self.copy_condition(condition, &table)?),
        };
        let name = |column: u16| table.columns[usize::from(column)].name.as_str();
        let known: Vec<&str> = (0..table.columns.len() as u16).map(name).collect();
        let copied: Vec<&str> = columns.iter().map(|column| name(*column)).collect();
        let options = with_forced(copy, &known, &copied)?;
        Ok(CopyPlan {
            direction,
            table: Some(table),
            columns,
            defaults,
            condition,
            query,
            options,
        })
    }
}

/// COPY's options with the columns of FORCE found among those that are copied. `known`: all columns there are.
fn with_forced(copy: &Copy, known: &[&str], copied: &[&str]) -> Result<CopyOptions> {
    let places = |which: usize| -> Result<Vec<bool>> {
        let names = match &copy.forced[which] {
            ForceClause::Absent => return Ok(Vec::new()),
            ForceClause::All => return Ok(vec![true; copied.len()]),
            ForceClause::Columns(names) => names,
        };
        let mut forced = vec![false; copied.len()];
        for name in names {
            if !known.contains(&name.as_str()) {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" does not exist"),
                ));
            }
            let Some(place) = copied.iter().position(|copied| copied == name) else {
                let clause = FORCES[which].to_uppercase().replace(' ', "_");
                return Err(EngineError::new(
                    SqlState::from_code("42P10"),
                    format!("{clause} column \"{name}\" not referenced by COPY"),
                ));
            };
            forced[place] = true;
        }
        Ok(forced)
    };
    let forced = ForcedColumns {
        quote: places(0)?,
        not_null: places(1)?,
        null: places(2)?,
    };
    Ok(CopyOptions {
        forced,
        ..copy.options.clone()
    })
}

/// `SELECT columns FROM table`.
fn whole_table(table: Arc<TableDef>, columns: &[u16]) -> SelectPlan {
    let projection: Vec<Expr> = columns.iter().map(|column| Expr::Column(*column)).collect();
    let mut needed = ColumnSet::new();
    projection.iter().for_each(|expr| need(&mut needed, expr));
    let described = columns
        .iter()
        .map(|column| {
            let def = &table.columns[usize::from(*column)];
            Column {
                name: def.name.clone(),
                data_type: def.data_type,
                type_modifier: def.typmod,
                table_oid: if table.kind == TableKind::Virtual {
                    0
                } else {
                    table.oid
                },
                attribute: table.attribute_number(*column).cast_signed(),
            }
        })
        .collect();
    SelectPlan {
        source: Source::Table(TableScan {
            table,
            access: AccessPath::Sequential,
            filter: None,
            recheck: None,
            needed,
            late: ColumnSet::new(),
        }),
        aggregate: None,
        windows: None,
        visible: projection.len(),
        projection,
        distinct: false,
        distinct_on: 0,
        sort: Vec::new(),
        limit: None,
        offset: None,
        stop_after: None,
        lock: None,
        locked: None,
        has_subqueries: false,
        late_keys: Vec::new(),
        late: Vec::new(),
        columns: described,
    }
}
