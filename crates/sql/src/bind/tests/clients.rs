//! Statements of pgbench and sysbench.

use super::*;

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
    // Its key is one of a unique index, and no newer version is looked at: only what is sent is read.
    assert!(scan.filter.is_none() && scan.recheck.is_none());
    assert_eq!(scan.needed.iter().collect::<Vec<_>>(), [2]);
    assert_eq!(select.stop_after, Some(1));
    let mut key = Vec::new();
    let context = EvalContext::new(&[Value::Int4(7)], &NoSession);
    assert!(scan.access.point_key(&scan.table, &context, &mut key).unwrap());
    assert_eq!(
        key,
        crate::value::encode_key(&[Value::Int4(7)], &[DataType::Int4])
    );

    let locking = plan("SELECT abalance FROM pgbench_accounts WHERE aid = $1 FOR UPDATE");
    let Source::Table(scan) = self::select(locking).source else {
        panic!()
    };
    assert!(scan.filter.is_none() && scan.recheck.is_some());
    assert_eq!(scan.needed.iter().collect::<Vec<_>>(), [0, 2]);
    for several in ["aid > $1", "aid IN (1, $1)", "bid = $1"] {
        let read = plan(&format!("SELECT abalance FROM pgbench_accounts WHERE {several}"));
        assert_eq!(self::select(read).stop_after, None, "{several}");
    }

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
        "alter table pgbench_branches add constraint c foreign key (bid) references pgbench_accounts",
    ] {
        plan(sql);
    }
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
    assert!(matches!(&rows[0][0], Expr::Cast { input, .. } if matches!(**input, Expr::NextSerial { .. })));
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
