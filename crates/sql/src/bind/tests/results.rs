//! The columns of results: names, aggregates, RETURNING.

use super::*;

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
        names(
            "select 'NaN'::float8::numeric, id::int::text, abs(1)::int, case when true then 1 end::int, true::text,
             case when true then 1 else k end from sbtest1"
        ),
        ["numeric", "id", "abs", "int4", "text", "k"]
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
            call.take(group, &row, &context).unwrap();
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
