//! Utility statements: their names looked up, their arguments bound.

use std::sync::Arc;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::bind::path::need;
use crate::sql::bind::write::table_default;
use crate::sql::bind::{Binder, Bound, Scope, bind_checked, require_heap};
use crate::sql::catalog::{TableDef, TableKind};
use crate::sql::expr::Expr;
use crate::sql::parse::utility::{Copy, CopySource, Name, Utility};
use crate::sql::plan::{
    Column, ControlStatement, CopyDirection, CopyPlan, DefinitionStatement, RowsStatement, SelectPlan,
    Source, Statement, TableScan,
};
use crate::sql::stack::with_stack_for;
use crate::sql::{access::AccessPath, explain};
use crate::value::{ColumnSet, DataType};

impl Binder<'_> {
    pub(super) fn utility(&mut self, utility: &Utility) -> Result<Bound> {
        let statement = match utility {
            Utility::Explain(inner) => {
                let plan = bind_checked(inner, self.catalog, &self.params, self.check)?;
                self.params = plan.param_types.iter().copied().map(Some).collect();
                let lines = explain::explain(&plan.statement)?;
                let columns = vec![Column::computed("QUERY PLAN", DataType::Text)];
                return Ok((RowsStatement::Explain(lines).into(), Some(columns)));
            }
            Utility::Copy(copy) => RowsStatement::Copy(Box::new(self.copy(copy)?)).into(),
            Utility::Show(name) => {
                let columns = vec![Column::computed(name.clone(), DataType::Text)];
                return Ok((ControlStatement::Show(name.clone()).into(), Some(columns)));
            }
            Utility::ShowAll => {
                let columns =
                    ["name", "setting", "description"].map(|name| Column::computed(name, DataType::Text));
                return Ok((ControlStatement::ShowAll.into(), Some(columns.to_vec())));
            }
            Utility::Begin(modes) => ControlStatement::Begin(*modes).into(),
            Utility::Commit { chain } => ControlStatement::Commit { chain: *chain }.into(),
            Utility::Rollback { chain } => ControlStatement::Rollback { chain: *chain }.into(),
            Utility::SetTransaction { modes, session } => ControlStatement::SetTransaction {
                modes: *modes,
                session: *session,
            }
            .into(),
            Utility::Set { name, value, local } => ControlStatement::Set {
                name: name.clone(),
                value: value.clone(),
                local: *local,
            }
            .into(),
            Utility::Reset(name) => ControlStatement::Reset(name.clone()).into(),
            Utility::Checkpoint => ControlStatement::Checkpoint.into(),
            Utility::Vacuum { tables, analyze } => ControlStatement::Vacuum {
                tables: self.heaps(tables)?,
                analyze: *analyze,
            }
            .into(),
            Utility::Analyze { tables } => ControlStatement::Analyze {
                tables: self.heaps(tables)?,
            }
            .into(),
            Utility::Prepare { name, types, sql } => {
                let types = types
                    .iter()
                    .map(|text| Ok(Some(self.type_named(text)?).filter(|known| *known != DataType::Unknown)))
                    .collect::<Result<_>>()?;
                ControlStatement::Prepare {
                    name: name.clone(),
                    types,
                    sql: sql.clone(),
                }
                .into()
            }
            Utility::Execute { name, arguments } => {
                let mut bound = Vec::new();
                if let Some(row) = arguments {
                    with_stack_for(row.levels(), || {
                        row.iter().try_for_each(|tree| {
                            let typed = self.expression(tree, &mut Scope::empty("EXECUTE parameters"))?;
                            bound.push((typed.expr, typed.data_type));
                            Ok::<_, EngineError>(())
                        })
                    })?;
                }
                ControlStatement::Execute {
                    name: name.clone(),
                    arguments: bound,
                }
                .into()
            }
            Utility::Deallocate(name) => ControlStatement::Deallocate(name.clone()).into(),
            Utility::DiscardAll => ControlStatement::DiscardAll.into(),
            Utility::SetConstraints(names) => {
                if let Some(name) = names.first() {
                    return Err(self.not_deferrable(&name.name));
                }
                ControlStatement::NoOperation("SET CONSTRAINTS").into()
            }
            Utility::NoOperation(tag) => ControlStatement::NoOperation(tag).into(),
            Utility::Truncate {
                tables,
                restart_identity,
            } => DefinitionStatement::Truncate {
                tables: self.heaps(tables)?,
                restart_identity: *restart_identity,
            }
            .into(),
            Utility::DropTable { tables, if_exists } => self.drop_table(tables, *if_exists)?.into(),
            Utility::DropIndex {
                indexes,
                if_exists,
                concurrently,
            } => self.drop_index(indexes, *if_exists, *concurrently)?.into(),
            Utility::SetFillfactor { table, fillfactor } => DefinitionStatement::SetFillfactor {
                table: self.heap(table)?,
                fillfactor: *fillfactor,
            }
            .into(),
        };
        Ok((statement, None))
    }

    fn drop_table(&self, tables: &[Name], if_exists: bool) -> Result<DefinitionStatement> {
        let mut found = Vec::with_capacity(tables.len());
        for name in tables {
            let table = self.catalog.lookup_table(name.schema.as_deref(), &name.name);
            match &table {
                Some(table) => require_heap(table)?,
                None if !if_exists => {
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
        })
    }

    fn drop_index(
        &self,
        indexes: &[Name],
        if_exists: bool,
        concurrently: bool,
    ) -> Result<DefinitionStatement> {
        let mut found = Vec::with_capacity(indexes.len());
        for name in indexes {
            let table = self.catalog.lookup_index(&name.name);
            if table.is_none() && !if_exists {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("index \"{}\" does not exist", name.name),
                ));
            }
            found.push((name.name.clone(), table));
        }
        Ok(DefinitionStatement::DropIndex {
            indexes: found,
            if_exists,
            concurrently,
        })
    }

    /// The error of SET CONSTRAINTS with a name. Every constraint has an index, and none can be deferred.
    fn not_deferrable(&self, name: &str) -> EngineError {
        match self.catalog.lookup_index(name) {
            Some(_) => EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("constraint \"{name}\" is not deferrable"),
            ),
            None => EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("constraint \"{name}\" does not exist"),
            ),
        }
    }

    fn any_table(&self, name: &Name) -> Result<Arc<TableDef>> {
        self.table_named(name.schema.as_deref(), &name.name, Some(name.position))
    }

    fn heap(&self, name: &Name) -> Result<Arc<TableDef>> {
        let table = self.any_table(name)?;
        require_heap(&table)?;
        Ok(table)
    }

    fn heaps(&self, names: &[Name]) -> Result<Vec<Arc<TableDef>>> {
        names.iter().map(|name| self.heap(name)).collect()
    }

    fn copy(&mut self, copy: &Copy) -> Result<CopyPlan> {
        let direction = if copy.from {
            CopyDirection::FromStdin
        } else {
            CopyDirection::ToStdout
        };
        let (table, names) = match &copy.source {
            CopySource::Table { table, columns } => (
                if copy.from {
                    self.heap(table)?
                } else {
                    self.any_table(table)?
                },
                columns,
            ),
            CopySource::Query(query) => {
                if copy.from {
                    return Err(EngineError::new(
                        SqlState::SYNTAX_ERROR,
                        "COPY FROM needs a table",
                    ));
                }
                let plan = bind_checked(query, self.catalog, &[], self.check)?;
                let Statement::Rows(RowsStatement::Select(select)) = plan.statement else {
                    return Err(EngineError::not_supported("COPY of anything but a SELECT"));
                };
                return Ok(CopyPlan {
                    direction,
                    table: None,
                    columns: (0..select.visible as u16).collect(),
                    defaults: Vec::new(),
                    query: Some(select),
                    options: copy.options.clone(),
                });
            }
        };
        let columns: Vec<u16> = match names {
            None => (0..table.columns.len() as u16).collect(),
            Some(names) => names
                .iter()
                .map(|name| {
                    table.column_number(&name.name).ok_or_else(|| {
                        EngineError::new(
                            SqlState::UNDEFINED_COLUMN,
                            format!(
                                "column \"{}\" of relation \"{}\" does not exist",
                                name.name, table.name
                            ),
                        )
                        .with_position(name.position)
                    })
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
        let defaults = (0..table.columns.len() as u16)
            .map(|column| (!columns.contains(&column)).then(|| table_default(&table, column)))
            .collect();
        let query = (!copy.from).then(|| Arc::new(whole_table(table.clone(), &columns)));
        Ok(CopyPlan {
            direction,
            table: Some(table),
            columns,
            defaults,
            query,
            options: copy.options.clone(),
        })
    }
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
                attribute: *column as i16 + 1,
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
        }),
        aggregate: None,
        visible: projection.len(),
        projection,
        distinct: false,
        sort: Vec::new(),
        limit: None,
        offset: None,
        stop_after: None,
        lock: None,
        columns: described,
    }
}
