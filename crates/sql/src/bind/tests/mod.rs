//! Statements of real clients, bound against the tables they made.

mod access;
mod clients;
mod expressions;
mod functions;
mod random_texts;
mod refusals;
mod results;

use std::sync::{Arc, LazyLock};

use super::*;
use crate::catalog::{ColumnDef, ColumnDefault};
use crate::error::SqlState;
use crate::explain::explain;
use crate::expr::CompareOp;
use crate::index::{IndexDef, IndexKey};
use crate::parse;
use crate::plan::{
    DefinitionStatement, InsertSource, NewIndexedValue, RowsStatement, SelectPlan, Source, TableAction,
};
use crate::value::Value;
use crate::value::text::to_text;

struct Tables(Vec<Arc<TableDef>>);

impl CatalogView for Tables {
    fn lookup_table(&self, schema: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        if !matches!(schema, None | Some("public" | "pg_catalog")) {
            return None;
        }
        self.0.iter().find(|table| table.name == name).cloned()
    }

    fn lookup_index(&self, _schema: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        self.0
            .iter()
            .find(|table| table.indexes.iter().any(|index| index.name == name))
            .cloned()
    }
}

fn tables() -> &'static Tables {
    static TABLES: LazyLock<Tables> = LazyLock::new(make_tables);
    &TABLES
}

/// Tables made by binding their own CREATE TABLE and CREATE INDEX statements.
fn make_tables() -> Tables {
    let mut tables = Tables(Vec::new());
    for sql in [
        "create table pgbench_accounts(aid int not null, bid int, abalance int, filler char(84)) with (fillfactor=100)",
        "alter table pgbench_accounts add primary key (aid)",
        "create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100)",
        "create table pgbench_history(tid int,bid int,aid int,delta int,mtime timestamp,filler char(22))",
        "CREATE TABLE sbtest1(\n  id SERIAL,\n  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n)  ",
        "CREATE INDEX k_1 ON sbtest1(k)",
        "create table kinds(b boolean, s smallint, l bigint, f double precision, n numeric(10,2), t text, v varchar(10), d date, ts timestamp, tz timestamptz default now(), primary key (s, l))",
    ] {
        let plan =
            bind(&parse(sql).unwrap()[0], &tables, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let key_of = |key: &crate::plan::NewIndexKey| match key.value {
            NewIndexedValue::Column(column) => IndexKey::column(column),
            NewIndexedValue::Expression(_) => panic!("an expression"),
        };
        let index_of = |table: &TableDef, spec: &crate::plan::IndexSpec| {
            Arc::new(IndexDef {
                oid: 500,
                name: spec.name.clone(),
                rel: 50,
                unique: spec.unique,
                check_time: spec.check_time,
                nulls_not_distinct: spec.nulls_not_distinct,
                primary: spec.primary,
                constraint: spec.constraint,
                keys: spec.keys.iter().map(key_of).collect(),
                types: spec
                    .keys
                    .iter()
                    .map(|key| match key.value {
                        NewIndexedValue::Column(column) => table.columns[usize::from(column)].data_type,
                        NewIndexedValue::Expression(_) => panic!("an expression"),
                    })
                    .collect(),
                included: Vec::new(),
                predicate: None,
                marks: crate::IndexMarks::default(),
            })
        };
        match plan.statement {
            Statement::Definition(DefinitionStatement::CreateTable(create)) => {
                let oid = 100 + tables.0.len() as u32;
                let mut table = TableDef::new(oid, create.name, TableKind::Heap { rel: oid }, create.columns);
                // The sequences that they ask for are made where the table is.
                for column in &mut table.columns {
                    if let Some(ColumnDefault::NewSequence(_)) = column.default {
                        column.default = Some(ColumnDefault::Identity(oid + 1_000));
                    }
                }
                for spec in &create.indexes {
                    let index = index_of(&table, spec);
                    table.indexes.push(index);
                }
                tables.0.push(Arc::new(table));
            }
            Statement::Definition(DefinitionStatement::CreateIndex(create)) => {
                let at = tables
                    .0
                    .iter()
                    .position(|table| table.oid == create.table.oid)
                    .unwrap();
                let mut table = (*tables.0[at]).clone();
                let index = index_of(&table, &create.index);
                table.indexes.push(index);
                tables.0[at] = Arc::new(table);
            }
            Statement::Definition(DefinitionStatement::AlterTable(alter)) => {
                let altered = alter.table.as_ref().unwrap();
                let at = tables
                    .0
                    .iter()
                    .position(|table| table.oid == altered.oid)
                    .unwrap();
                let mut table = (*tables.0[at]).clone();
                for action in &alter.actions {
                    let TableAction::AddKey(key) = action else {
                        panic!("{action:?}")
                    };
                    let columns = key.columns.iter();
                    let columns = columns.map(|name| table.column_number(name).unwrap());
                    let name = format!("{}_pkey", table.name);
                    let spec = crate::plan::IndexSpec::of_constraint(name, columns, key.primary);
                    let index = index_of(&table, &spec);
                    table.indexes.push(index);
                }
                tables.0[at] = Arc::new(table);
            }
            other => panic!("{other:?}"),
        }
    }
    let activity = TableDef::new(
        900,
        "pg_stat_activity",
        TableKind::Virtual,
        vec![
            ColumnDef::new("pid", DataType::Int4),
            ColumnDef::new("state", DataType::Text),
            ColumnDef::new("wait_event_type", DataType::Text),
            ColumnDef::new("wait_event", DataType::Text),
        ],
    );
    tables.0.push(Arc::new(activity));
    tables
}

fn plan_with(sql: &str, declared: &[Option<DataType>]) -> Result<Plan> {
    let parsed = parse(sql)?;
    assert_eq!(parsed.len(), 1, "{sql}");
    bind(&parsed[0], tables(), declared)
}

fn plan(sql: &str) -> Plan {
    plan_with(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

fn explained(sql: &str) -> String {
    explain(&plan(sql).statement).unwrap().join("\n")
}

fn code(sql: &str) -> SqlState {
    match plan_with(sql, &[]) {
        Err(error) => error.sqlstate(),
        Ok(plan) => panic!("{sql}: {plan:?}"),
    }
}

fn select(plan: Plan) -> SelectPlan {
    match plan.statement {
        Statement::Rows(RowsStatement::Select(select)) => Arc::unwrap_or_clone(select),
        other => panic!("{other:?}"),
    }
}

/// The one row of a SELECT without FROM, as text.
fn row(sql: &str) -> Result<Vec<Option<String>>> {
    let select = select(plan_with(sql, &[])?);
    let context = EvalContext::new(&[], &NoSession);
    select
        .projection
        .iter()
        .map(|expr| Ok(to_text(&expr.eval(&[], &context)?)))
        .collect()
}

fn one(sql: &str) -> String {
    row(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))[0]
        .clone()
        .unwrap_or_else(|| "NULL".to_owned())
}
