//! What real clients send, bound against the tables they made.

use std::sync::{Arc, LazyLock};

use super::*;
use crate::error::SqlState;
use crate::sql::catalog::{ColumnDef, ColumnDefault, IndexDef};
use crate::sql::explain::explain;
use crate::sql::expr::CompareOp;
use crate::sql::parse;
use crate::sql::plan::{DefinitionStatement, InsertSource, RowsStatement, SelectPlan, Source};
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

    fn lookup_index(&self, name: &str) -> Option<Arc<TableDef>> {
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
        let index_of = |table: &TableDef, spec: &crate::sql::plan::IndexSpec| {
            Arc::new(IndexDef {
                oid: 500,
                name: spec.name.clone(),
                rel: 50,
                unique: spec.unique,
                primary: spec.primary,
                constraint: spec.constraint,
                columns: spec.columns.clone(),
                types: spec
                    .columns
                    .iter()
                    .map(|column| table.columns[usize::from(*column)].data_type)
                    .collect(),
            })
        };
        match plan.statement {
            Statement::Definition(DefinitionStatement::CreateTable(create)) => {
                let oid = 100 + tables.0.len() as u32;
                let mut table = TableDef::new(oid, create.name, TableKind::Heap { rel: oid }, create.columns);
                for spec in &create.indexes {
                    let index = index_of(&table, spec);
                    table.indexes.push(index);
                }
                tables.0.push(Arc::new(table));
            }
            Statement::Definition(
                DefinitionStatement::CreateIndex(create) | DefinitionStatement::AddConstraint(create),
            ) => {
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

#[test]
fn pgbench_transactions() {
    let read = plan("SELECT abalance FROM pgbench_accounts WHERE aid = $1;");
    assert_eq!(read.param_types, [DataType::Int4]);
    let columns = read.columns.clone().unwrap();
    assert_eq!(
        (
            columns[0].name.as_str(),
            columns[0].data_type,
            columns[0].attribute
        ),
        ("abalance", DataType::Int4, 3)
    );
    let select = select(read);
    let Source::Table(scan) = &select.source else {
        panic!()
    };
    assert!(scan.filter.is_none() && scan.recheck.is_some());
    assert_eq!(scan.needed.iter().collect::<Vec<_>>(), [0, 2]);
    let mut key = Vec::new();
    let context = EvalContext::new(&[Value::Int4(7)], &NoSession);
    assert!(scan.access.point_key(&scan.table, &context, &mut key).unwrap());
    assert_eq!(
        key,
        crate::value::encode_key(&[Value::Int4(7)], &[DataType::Int4])
    );

    assert_eq!(
        explained("UPDATE pgbench_accounts SET abalance = abalance + 42 WHERE aid = 17"),
        "Update on pgbench_accounts\n  ->  Index Scan using pgbench_accounts_pkey on pgbench_accounts\n        Index Cond: (aid = 17)"
    );
    let update = plan("UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2");
    assert_eq!(update.param_types, [DataType::Int4, DataType::Int4]);
    assert!(
        matches!(&update.statement, Statement::Rows(RowsStatement::Update(update)) if !update.changes_indexed_columns)
    );
    assert_eq!(
        explained("UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1"),
        "Update on pgbench_branches\n  ->  Seq Scan on pgbench_branches\n        Filter: (bid = 1)"
    );
    let insert = plan(
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
    );
    assert_eq!(insert.param_types, [DataType::Int4; 4]);
    let Statement::Rows(RowsStatement::Insert(insert)) = insert.statement else {
        panic!()
    };
    let InsertSource::Rows(rows) = &insert.source else {
        panic!()
    };
    assert_eq!(rows[0].len(), 6);
    assert!(matches!(
        rows[0][4],
        Expr::Cast {
            from: DataType::TimestampTz,
            to: DataType::Timestamp,
            ..
        }
    ));
    assert_eq!(rows[0][5], Expr::Constant(Value::Null));
}

#[test]
fn pgbench_initialisation() {
    for sql in [
        "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
        "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)",
        "begin",
        "truncate table pgbench_accounts, pgbench_branches, pgbench_history",
        "insert into pgbench_branches(bid,bbalance) values(1,0)",
        "copy pgbench_accounts from stdin with (freeze on)",
        "commit",
        "vacuum analyze pgbench_branches",
        "insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, 50) as bid",
        "insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / 100000 + 1, 0, '' from generate_series(1, 100000 * 50) as aid",
        "select count(*) from pgbench_branches",
        "vacuum pgbench_branches",
        "truncate pgbench_history",
        "vacuum analyze",
        "select 1",
        "SELECT pg_catalog.pg_is_in_recovery()",
        "select version()",
    ] {
        plan(sql);
    }
    assert_eq!(
        code("alter table pgbench_branches add constraint c foreign key (bid) references pgbench_accounts"),
        SqlState::FEATURE_NOT_SUPPORTED
    );
    assert_eq!(
        code("alter table pgbench_accounts add primary key (bid)"),
        SqlState::INVALID_TABLE_DEFINITION
    );
}

#[test]
fn pgbench_partitions() {
    let sql = "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and o.n is not null group by 1, 2 order by 1 asc limit 1";
    assert!(
        matches!(plan(sql).statement, Statement::Rows(RowsStatement::Canned(canned)) if canned.rows.len() == 1)
    );
    let elsewhere = bind(&parse(sql).unwrap()[0], &crate::sql::catalog::EmptyCatalog, &[]).unwrap();
    assert!(
        matches!(elsewhere.statement, Statement::Rows(RowsStatement::Canned(canned)) if canned.rows.is_empty())
    );
}

#[test]
fn sysbench_statements() {
    assert_eq!(
        explained("SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c"),
        "Sort\n  Sort Key: c\n  ->  Index Scan using sbtest1_pkey on sbtest1\n        Index Cond: ((id >= $1) AND (id <= $2))"
    );
    assert_eq!(
        explained("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100"),
        "Aggregate\n  ->  Index Scan using sbtest1_pkey on sbtest1\n        Index Cond: ((id >= 1) AND (id <= 100))"
    );
    assert_eq!(
        explained("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c"),
        "Sort\n  Sort Key: c\n  ->  HashAggregate\n        Group Key: c\n        ->  Index Scan using sbtest1_pkey on sbtest1\n              Index Cond: ((id >= 1) AND (id <= 100))"
    );
    let update = plan("UPDATE sbtest1 SET k=k+1 WHERE id=$1");
    assert!(
        matches!(&update.statement, Statement::Rows(RowsStatement::Update(update)) if update.changes_indexed_columns)
    );
    // sysbench declares "char" for its strings.
    let update = plan_with(
        "UPDATE sbtest1 SET c=$1 WHERE id=$2",
        &[Some(DataType::CharByte), Some(DataType::Int4)],
    )
    .unwrap();
    assert_eq!(update.param_types, [DataType::CharByte, DataType::Int4]);
    plan("DELETE FROM sbtest1 WHERE id=$1");
    plan_with(
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, $3, $4)",
        &[Some(DataType::Int4), Some(DataType::Int4), None, None],
    )
    .unwrap();
    let insert = plan("INSERT INTO sbtest1(k, c, pad) VALUES(1, 'a', 'b'),(2, 'c', 'd')");
    let Statement::Rows(RowsStatement::Insert(insert)) = insert.statement else {
        panic!()
    };
    let InsertSource::Rows(rows) = &insert.source else {
        panic!()
    };
    assert_eq!(rows.len(), 2);
    assert!(
        matches!(&rows[0][0], Expr::Cast { input, .. } if matches!(**input, Expr::NextSerial { column: 0, .. }))
    );
    assert_eq!(
        rows[1][2],
        Expr::Constant(Value::text(format!("c{}", " ".repeat(119))))
    );
    let Some(ColumnDefault::Expression { sql, expr }) = &insert.table.columns[1].default else {
        panic!()
    };
    assert_eq!(*expr, Expr::Constant(Value::Int4(0)));
    assert_eq!(bind_default(sql, DataType::Int4, -1).unwrap(), *expr);
}

#[test]
fn index_choice() {
    for (sql, expected) in [
        (
            "select * from kinds where s = 1 and l = 2",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: ((s = 1) AND (l = 2))",
        ),
        (
            "select * from kinds where l > 2 and s = 1",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: ((s = 1) AND (l > 2))",
        ),
        (
            "select * from kinds where l = 2",
            "Seq Scan on kinds\n  Filter: (l = 2)",
        ),
        (
            "select * from kinds where s = 1 and t = 'x'",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: (s = 1)\n  Filter: (t = 'x'::text)",
        ),
        (
            "select * from sbtest1 where id in (3, 1, 2)",
            "Index Scan using sbtest1_pkey on sbtest1\n  Index Cond: (id IN (3, 1, 2))",
        ),
        (
            "select * from sbtest1 where 5 < id",
            "Index Scan using sbtest1_pkey on sbtest1\n  Index Cond: (id > 5)",
        ),
        (
            "select * from sbtest1 where id = 1.5",
            "Seq Scan on sbtest1\n  Filter: ((id)::numeric = 1.5)",
        ),
        (
            "select * from sbtest1 where id = 1 or k = 2",
            "Seq Scan on sbtest1\n  Filter: ((id = 1) OR (k = 2))",
        ),
        (
            "select * from sbtest1 where id = random()",
            "Seq Scan on sbtest1\n  Filter: ((id)::double precision = random())",
        ),
        (
            "select max(id) from sbtest1",
            "Aggregate\n  ->  Index Scan Backward using sbtest1_pkey on sbtest1\n        Index Cond: (id IS NOT NULL)",
        ),
        (
            "select * from sbtest1 order by id limit 5",
            "Limit\n  ->  Index Scan using sbtest1_pkey on sbtest1",
        ),
        (
            "select * from sbtest1 order by id desc limit 5",
            "Limit\n  ->  Index Scan Backward using sbtest1_pkey on sbtest1",
        ),
        (
            "select id from sbtest1 order by id",
            "Sort\n  Sort Key: id\n  ->  Seq Scan on sbtest1",
        ),
        (
            "select id from sbtest1 where id > 7 order by id desc",
            "Index Scan Backward using sbtest1_pkey on sbtest1\n  Index Cond: (id > 7)",
        ),
        (
            "select l from kinds where s = 1 order by l",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: (s = 1)",
        ),
        (
            "select k, count(*) from sbtest1 group by k order by 2 desc",
            "Sort\n  Sort Key: count(*) DESC\n  ->  HashAggregate\n        Group Key: k\n        ->  Seq Scan on sbtest1",
        ),
        ("select 1", "Result"),
    ] {
        assert_eq!(explained(sql), expected, "{sql}");
    }
}

#[test]
fn a_conversion_that_changes_values_hides_the_index() {
    for sql in [
        "select 1 from sbtest1 where id::smallint = 5",
        "select 1 from sbtest1 where id::text = '5'",
        "select 1 from sbtest1 where -id = 5",
        "select 1 from sbtest1 where id::float8 = 5",
    ] {
        assert!(explained(sql).contains("Seq Scan"), "{sql}: {}", explained(sql));
    }
    assert!(explained("select 1 from sbtest1 where id::bigint = 5").contains("Index Scan"));
}

#[test]
fn key_ranges_survive_values_the_column_cannot_hold() {
    let ranges = |sql: &str, params: &[Value]| {
        let types: Vec<Option<DataType>> = params.iter().map(|value| Some(value.natural_type())).collect();
        let select = select(plan_with(sql, &types).unwrap());
        let Source::Table(scan) = &select.source else {
            panic!()
        };
        assert!(scan.access.index().is_some(), "{sql}");
        scan.access
            .key_ranges(&scan.table, &EvalContext::new(params, &NoSession))
            .unwrap()
    };
    let big = Value::Int8(1 << 40);
    assert!(ranges("select 1 from sbtest1 where id = $1", std::slice::from_ref(&big)).is_empty());
    assert!(ranges("select 1 from sbtest1 where id > $1", std::slice::from_ref(&big)).is_empty());
    assert_eq!(
        ranges("select 1 from sbtest1 where id < $1", std::slice::from_ref(&big)).len(),
        1
    );
    assert_eq!(
        ranges("select 1 from sbtest1 where id >= $1", &[Value::Int8(-(1 << 40))]).len(),
        1
    );
    assert_eq!(
        ranges(
            "select 1 from sbtest1 where id in (1, 1, 2, $1)",
            std::slice::from_ref(&big)
        )
        .len(),
        2
    );
    assert!(ranges("select 1 from sbtest1 where id between 5 and 4", &[]).is_empty());
    assert!(ranges("select 1 from sbtest1 where id = null", &[]).is_empty());
    let range = &ranges("select 1 from sbtest1 where id > 5 and id <= 7", &[])[0];
    let inside = |id: i32| {
        let key = crate::value::encode_key(&[Value::Int4(id)], &[DataType::Int4]);
        key >= range.lower && range.upper.as_ref().is_none_or(|upper| key < *upper)
    };
    assert_eq!(
        (5..=8).map(inside).collect::<Vec<_>>(),
        [false, true, true, false]
    );
}

#[test]
fn parameters_take_the_type_they_meet() {
    for (sql, expected) in [
        ("select $1", vec![DataType::Text]),
        ("select $1::int + $2", vec![DataType::Int4, DataType::Int4]),
        (
            "select * from kinds where n > $1 and t like $2",
            vec![DataType::Numeric, DataType::Text],
        ),
        (
            "select * from kinds where v = $1 and d < $2 and b",
            vec![DataType::Text, DataType::Date],
        ),
        (
            "select t from kinds limit $1 offset $2",
            vec![DataType::Int8, DataType::Int8],
        ),
        (
            "insert into kinds(s, l, tz) values ($2, $1, $3)",
            vec![DataType::Int8, DataType::Int2, DataType::TimestampTz],
        ),
        (
            "select * from sbtest1 where id in ($1, $2)",
            vec![DataType::Int4, DataType::Int4],
        ),
        (
            "select case when $1 then 1 else $2 end",
            vec![DataType::Bool, DataType::Int4],
        ),
        ("select coalesce($1, 5)", vec![DataType::Int4]),
    ] {
        assert_eq!(plan(sql).param_types, expected, "{sql}");
    }
}

#[test]
fn expressions_have_postgresqls_values() {
    for (sql, expected) in [
        ("select 1 + 2 * 3", "7"),
        ("select 7 / 2", "3"),
        ("select -7 / 2", "-3"),
        ("select 7 % -3", "1"),
        ("select 7.0 / 2", "3.5000000000000000"),
        ("select 1e3", "1000"),
        ("select 1.50 + 1", "2.50"),
        ("select 1.5 * 1.5", "2.25"),
        ("select 9223372036854775807", "9223372036854775807"),
        ("select -9223372036854775808", "-9223372036854775808"),
        ("select 9223372036854775808", "9223372036854775808"),
        ("select '12'::int + 1", "13"),
        ("select cast('1.5' as numeric(4,2))", "1.50"),
        ("select 'a' || 'b' || 1", "ab1"),
        ("select 'abc' like 'a%'", "t"),
        ("select 'abc' not like '_b_'", "f"),
        ("select null and false", "f"),
        ("select null or true", "t"),
        ("select null = 1", "NULL"),
        ("select not null::bool", "NULL"),
        ("select 1 in (1, null)", "t"),
        ("select 2 in (1, null)", "NULL"),
        ("select 2 not in (1, 3)", "t"),
        ("select 2 between 1 and 3", "t"),
        ("select null is null", "t"),
        ("select 1 is distinct from null", "t"),
        ("select (1 = 1) is not false", "t"),
        ("select case 2 when 1 then 'a' when 2 then 'b' end", "b"),
        ("select case when false then 1 end", "NULL"),
        ("select date '2024-02-28' + 2", "2024-03-01"),
        ("select date '2024-03-01' - date '2024-02-28'", "2"),
        (
            "select '2024-01-01'::date < '2024-01-01 00:00:01'::timestamp",
            "t",
        ),
        ("select 'x '::char(3) = 'x'", "t"),
        ("select 'abcdef'::varchar(3)", "abc"),
        ("select coalesce(null, null, 3)", "3"),
        ("select nullif(1, 1)", "NULL"),
        ("select greatest(1, 3, 2), 1", "3"),
        ("select abs(-5)", "5"),
        ("select mod(7, 3)", "1"),
        ("select length('äö')", "2"),
        ("select upper('abc')", "ABC"),
        ("select floor(1.7)", "1"),
        ("select round(2.567, 2)", "2.57"),
        ("select 1::float8 / 3", "0.3333333333333333"),
        ("select true::text", "true"),
        ("select 5::bool", "t"),
        ("select 1 where true", "1"),
        ("select E'a\\nb'", "a\nb"),
        ("select $$it's$$", "it's"),
        ("select +3", "3"),
        ("select - - 3", "3"),
        ("select 2.5::int", "3"),
        ("select 2.5::float8::int", "2"),
    ] {
        assert_eq!(one(sql), expected, "{sql}");
    }
}

#[test]
fn evaluation_errors() {
    for (sql, expected) in [
        ("select 1 / 0", SqlState::DIVISION_BY_ZERO),
        ("select 2147483647 + 1", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
        ("select 'x'::int", SqlState::INVALID_TEXT_REPRESENTATION),
        ("select 100000::smallint", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
        (
            "select 12345.6::numeric(4,1)",
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        ),
        ("select '2024-13-01'::date", SqlState::DATETIME_FIELD_OVERFLOW),
        ("select abs(-2147483648)", SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
    ] {
        assert_eq!(row(sql).unwrap_err().sqlstate(), expected, "{sql}");
    }
}

#[test]
fn binding_errors() {
    for (sql, expected) in [
        ("select nope from sbtest1", SqlState::UNDEFINED_COLUMN),
        ("select x.id from sbtest1", SqlState::UNDEFINED_TABLE),
        ("select sbtest1.id from sbtest1 as s", SqlState::UNDEFINED_TABLE),
        ("select * from nope", SqlState::UNDEFINED_TABLE),
        ("select * from other.sbtest1", SqlState::UNDEFINED_TABLE),
        ("select nope(1)", SqlState::UNDEFINED_FUNCTION),
        ("select 1 + 'x'::text", SqlState::UNDEFINED_FUNCTION),
        ("select id = 'x'::text from sbtest1", SqlState::UNDEFINED_FUNCTION),
        ("select true + 1", SqlState::UNDEFINED_FUNCTION),
        ("select id from sbtest1 where id", SqlState::DATATYPE_MISMATCH),
        ("update sbtest1 set k = true", SqlState::DATATYPE_MISMATCH),
        ("update sbtest1 set k = 1, k = 2", SqlState::SYNTAX_ERROR),
        ("update sbtest1 set nope = 1", SqlState::UNDEFINED_COLUMN),
        (
            "insert into sbtest1(k, k) values (1, 2)",
            SqlState::DUPLICATE_COLUMN,
        ),
        ("insert into sbtest1(k) values (1, 2)", SqlState::SYNTAX_ERROR),
        ("insert into sbtest1(k, c) values (1)", SqlState::SYNTAX_ERROR),
        (
            "insert into sbtest1(k) values ('x')",
            SqlState::INVALID_TEXT_REPRESENTATION,
        ),
        ("select k, count(*) from sbtest1", SqlState::GROUPING_ERROR),
        (
            "select k from sbtest1 where count(*) > 1",
            SqlState::GROUPING_ERROR,
        ),
        ("select sum(count(*)) from sbtest1", SqlState::GROUPING_ERROR),
        ("select sum(c) from sbtest1", SqlState::UNDEFINED_FUNCTION),
        (
            "select distinct c from sbtest1 order by k",
            SqlState::INVALID_COLUMN_REFERENCE,
        ),
        ("select 1 order by 2", SqlState::INVALID_COLUMN_REFERENCE),
        ("select null::nope", SqlState::UNDEFINED_OBJECT),
        ("select true::float8", SqlState::CANNOT_COERCE),
        ("create table t(a int, a int)", SqlState::DUPLICATE_COLUMN),
        (
            "create table t(a int primary key, primary key (a))",
            SqlState::INVALID_TABLE_DEFINITION,
        ),
        (
            "create table t(a int, primary key (b))",
            SqlState::UNDEFINED_COLUMN,
        ),
        ("create index on sbtest1(nope)", SqlState::UNDEFINED_COLUMN),
        ("drop table nope", SqlState::UNDEFINED_TABLE),
        ("drop index nope", SqlState::UNDEFINED_OBJECT),
        (
            "insert into pg_stat_activity values (1)",
            SqlState::WRONG_OBJECT_TYPE,
        ),
        (
            "select * from sbtest1 where id = $0",
            SqlState::UNDEFINED_PARAMETER,
        ),
    ] {
        assert_eq!(code(sql), expected, "{sql}");
    }
    let error = plan_with("select id, nope from sbtest1", &[]).unwrap_err();
    assert_eq!(error.position(), Some(12));
    let parsed = parse("select 1; select * from nope").unwrap();
    assert_eq!(bind(&parsed[1], tables(), &[]).unwrap_err().position(), Some(25));
}

/// The work is counted, not timed: without the checks a statement of a million expressions could not be cancelled.
#[test]
fn binding_asks_now_and_then_whether_to_stop() {
    let asked = |sql: &str| {
        let count = std::cell::Cell::new(0u32);
        let check = || {
            count.set(count.get() + 1);
            Ok(())
        };
        let statement = parse(sql).unwrap().remove(0);
        bind_checked(&statement, tables(), &[], &check).unwrap();
        count.get()
    };
    let rows = |count: usize| format!("select 1 where 1 in ({})", vec!["1 + 2"; count].join(","));
    let chain = |count: usize| format!("select 1{}", " + 1".repeat(count));
    for sql in [&rows as &dyn Fn(usize) -> String, &chain] {
        assert_eq!(asked(&sql(10)), 0);
        let (short, long) = (asked(&sql(5_000)), asked(&sql(20_000)));
        assert!(short >= 5_000 / EXPRESSIONS_PER_CHECK, "{short}");
        // Four times the length is four times the work.
        assert!(long.abs_diff(4 * short) <= 4, "{short} and {long}");
    }
    // What is asked for is done.
    let statement = parse(&rows(5_000)).unwrap().remove(0);
    let stop = || Err(EngineError::new(SqlState::QUERY_CANCELED, "canceling statement"));
    let error = bind_checked(&statement, tables(), &[], &stop).unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::QUERY_CANCELED);
}

/// A position is found without counting the characters before it again.
#[test]
fn positions_are_right_in_later_lines() {
    let sql = "select 'é',\n  1,\n  'ü', nonsense";
    let error = plan_with(sql, &[]).unwrap_err();
    let before = sql.split("nonsense").next().unwrap().chars().count() as u32;
    assert_eq!(error.position(), Some(before + 1));
}

#[test]
fn what_is_not_done_is_named() {
    for sql in [
        "select * from sbtest1 a join sbtest1 b on a.id = b.id",
        "select * from sbtest1, kinds",
        "select (select 1)",
        "select 1 where exists (select 1)",
        "select id from sbtest1 where id in (select 1)",
        "with x as (select 1) select * from x",
        "select 1 union select 2",
        "select row_number() over () from sbtest1",
        "select distinct on (k) k from sbtest1",
        "select * from (select 1) as x",
        "values (1)",
        "insert into sbtest1(k) values (1) on conflict do nothing",
        "update sbtest1 set k = 1 from kinds",
        "delete from sbtest1 using kinds",
        "create temporary table t(a int)",
        "create unlogged table t(a int)",
        "create table t(a int references sbtest1)",
        "create table t(a int check (a > 0))",
        "create table t as select 1",
        "create table t(a int) partition by range (a)",
        "create table t(a json)",
        "create table t(a int[])",
        "create table t(a real)",
        "create index on sbtest1((k + 1))",
        "create index on sbtest1(k) where k > 0",
        "create index on sbtest1 using hash (k)",
        "alter table sbtest1 add column x int",
        "alter table sbtest1 drop column k",
        "create view v as select 1",
        "create database d",
        "create sequence s",
        "savepoint a",
        "declare c cursor for select 1",
        "lock table sbtest1",
        "listen x",
        "select * from sbtest1 for no key update",
        "select * from sbtest1 for key share",
        "select distinct k from sbtest1 for update",
        "merge into sbtest1 using kinds on true when matched then delete",
    ] {
        let error = match plan_with(sql, &[]) {
            Err(error) => error,
            Ok(plan) => panic!("{sql}: {plan:?}"),
        };
        assert_eq!(
            error.sqlstate(),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{sql}: {error:?}"
        );
        assert!(
            error.message().len() > " is not supported".len(),
            "{sql}: {error:?}"
        );
    }
}

#[test]
fn names_follow_postgresql() {
    let names = |sql: &str| {
        plan(sql)
            .columns
            .unwrap()
            .into_iter()
            .map(|column| column.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names("select 1, id, count(*), id as x, now(), 'a'::text, sbtest1.k from sbtest1 group by id, k"),
        ["?column?", "id", "count", "x", "now", "text", "k"]
    );
    assert_eq!(
        names("select * from pg_stat_activity where state = 'active'"),
        ["pid", "state", "wait_event_type", "wait_event"]
    );
    assert_eq!(names("select s.* from sbtest1 as s"), ["id", "k", "c", "pad"]);
    assert_eq!(names("explain select 1"), ["QUERY PLAN"]);
    assert_eq!(names("select aid from generate_series(1, 3) as aid"), ["aid"]);
    assert_eq!(names("select * from generate_series(1, 3) as g(i)"), ["i"]);
    assert_eq!(
        names("update sbtest1 set k = 1 where id = 2 returning id, k + 1"),
        ["id", "?column?"]
    );
}

#[test]
fn aggregates() {
    let grouped = select(plan(
        "select k % 2, count(*), sum(id), avg(k), max(c) from sbtest1 where id < 10 group by k % 2 having count(*) > 1 order by 1",
    ));
    let aggregate = grouped.aggregate.unwrap();
    assert_eq!(aggregate.keys.len(), 1);
    assert_eq!(aggregate.calls.len(), 4);
    assert_eq!(grouped.projection[0], Expr::Column(0));
    assert_eq!(grouped.projection[1], Expr::Column(1));
    let types: Vec<DataType> = grouped.columns.iter().map(|column| column.data_type).collect();
    assert_eq!(
        types,
        [
            DataType::Int4,
            DataType::Int8,
            DataType::Int8,
            DataType::Numeric,
            DataType::Char
        ]
    );

    let context = EvalContext::new(&[], &NoSession);
    let mut groups: Vec<_> = aggregate.calls.iter().map(|call| call.start()).collect();
    for (id, k) in [(1, 10), (2, 11), (3, 13)] {
        let row = [Value::Int4(id), Value::Int4(k), Value::from("c"), Value::Null];
        for (call, group) in aggregate.calls.iter().zip(&mut groups) {
            call.take(group, &row, &context, |_| Ok(true)).unwrap();
        }
    }
    let results: Vec<Value> = aggregate
        .calls
        .iter()
        .zip(groups)
        .map(|(call, group)| call.finish(group).unwrap())
        .collect();
    assert_eq!(results[0], Value::Int8(3));
    assert_eq!(results[1], Value::Int8(6));
    assert_eq!(results[2], Value::Numeric("11.3333333333333333".parse().unwrap()));
    assert_eq!(results[3], Value::from("c"));
}

#[test]
fn returning_and_defaults() {
    let insert = plan("insert into kinds(s, l) values (1, 2) returning *");
    assert_eq!(insert.columns.as_ref().map(Vec::len), Some(10));
    let Statement::Rows(RowsStatement::Insert(insert)) = plan("insert into sbtest1 default values").statement
    else {
        panic!()
    };
    let InsertSource::Rows(rows) = &insert.source else {
        panic!()
    };
    assert_eq!(rows[0][1], Expr::Constant(Value::Int4(0)));
    let Statement::Rows(RowsStatement::Insert(insert)) =
        plan("insert into sbtest1 values (default, 5, default, 'x')").statement
    else {
        panic!()
    };
    let InsertSource::Rows(rows) = &insert.source else {
        panic!()
    };
    assert!(matches!(rows[0][0], Expr::Cast { .. }));
    assert_eq!(rows[0][1], Expr::Constant(Value::Int4(5)));
    let Statement::Rows(RowsStatement::Delete(delete)) =
        plan("delete from sbtest1 where id = 1 returning c").statement
    else {
        panic!()
    };
    assert!(delete.scan.needed.contains(2));
    // What does not fit is an error of the row, not of the statement's text.
    let Statement::Rows(RowsStatement::Insert(insert)) =
        plan("insert into kinds(v) values ('01234567890')").statement
    else {
        panic!()
    };
    let InsertSource::Rows(rows) = &insert.source else {
        panic!()
    };
    let error = rows[0][6]
        .eval(&[], &EvalContext::new(&[], &NoSession))
        .unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::STRING_DATA_RIGHT_TRUNCATION);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    /// Whatever comes, the front end answers with a plan or an error that has a SQLSTATE.
    #[test]
    fn no_text_brings_the_front_end_down(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..14)) {
        let sql = words.join(" ");
        if let Ok(parsed) = parse(&sql) {
            for statement in &parsed {
                if let Ok(plan) = bind(statement, tables(), &[]) {
                    let _ = explain(&plan.statement);
                }
            }
        }
    }

    /// Bytes of any kind, too.
    #[test]
    fn no_characters_bring_the_parser_down(sql in "\\PC{0,60}") {
        let _ = parse(&sql);
    }
}

const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "sbtest1",
    "kinds",
    "id",
    "k",
    "c",
    "n",
    "t",
    "d",
    "and",
    "or",
    "not",
    "in",
    "(",
    ")",
    ",",
    "=",
    "<",
    "+",
    "-",
    "*",
    "/",
    "||",
    "1",
    "2.5",
    "'x'",
    "null",
    "$1",
    "$2",
    "count(*)",
    "sum(k)",
    "group by",
    "order by",
    "limit",
    "between",
    "is null",
    "like",
    "case when",
    "then",
    "end",
    "insert into",
    "values",
    "update",
    "set",
    "delete from",
    "returning",
    "default",
    "create table",
    "int",
    "primary key",
    "begin",
    "copy",
    "stdin",
    "with",
    "vacuum",
    "explain",
    "distinct",
    ";",
    "::",
    "--",
    "/*",
    "'",
    "\"",
    "$$",
    "as",
    "desc",
    "for update",
];

#[test]
fn values_of_the_wrong_type_are_an_error_and_not_null() {
    let constant = |value: Value| Box::new(Expr::Constant(value));
    let number = || constant(Value::Int4(1));
    let text = || constant(Value::from("1"));
    let numeric = constant(Value::Numeric("1".parse().unwrap()));
    for expr in [
        Expr::Concat(number(), text()),
        Expr::Like {
            input: number(),
            pattern: text(),
            escape: None,
            ignore_case: false,
            negated: false,
        },
        Expr::Compare {
            op: CompareOp::Equal,
            left: numeric,
            right: number(),
            data_type: DataType::Numeric,
        },
    ] {
        let context = EvalContext::new(&[], &NoSession);
        assert!(expr.eval(&[], &context).is_err(), "{expr:?}");
    }
    let context = EvalContext::new(&[], &NoSession);
    let nothing = Expr::Concat(constant(Value::Null), text());
    assert_eq!(nothing.eval(&[], &context).unwrap(), Value::Null);
}
