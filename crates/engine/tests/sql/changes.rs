//! INSERT, UPDATE and DELETE, and the constraints that they meet.

use crate::common::{Fixture, error, query, run};
use crate::shop;

#[test]
fn insert_update_delete_with_returning() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "insert into items (id, name) values (4, 'dates') returning id, stock, price"
        ),
        "4|0|"
    );
    assert_eq!(
        query(
            &mut s,
            "update items set price = 1.999, stock = stock + 1 where id = 4 returning price, stock"
        ),
        "2.00|1"
    );
    assert_eq!(
        query(&mut s, "delete from items where id = 4 returning name"),
        "dates"
    );
    assert_eq!(query(&mut s, "delete from items where id = 4 returning name"), "");
    assert_eq!(
        query(&mut s, "update items set stock = 1 where stock is null"),
        "UPDATE 1"
    );
    assert_eq!(query(&mut s, "update items set id = id + 10"), "UPDATE 3");
    assert_eq!(
        query(&mut s, "select id, name from items where id >= 2 order by id"),
        "11|apple, 12|bread, 13|cheese"
    );
    // Checked row by row, as in PostgreSQL: the first row meets the second, which has yet to move.
    assert_eq!(run(&mut s, "update items set id = id + 1"), "ERROR 23505");
    assert_eq!(query(&mut s, "select name from items where id = 1"), "");
}

#[test]
fn constraints_speak_as_postgresql_does() {
    let fixture = shop();
    let mut s = fixture.session();
    let duplicate = error(&mut s, "insert into items values (2, 'brie')");
    assert_eq!(duplicate.sqlstate().as_str(), "23505");
    assert_eq!(
        duplicate.message(),
        "duplicate key value violates unique constraint \"items_pkey\""
    );
    assert_eq!(duplicate.detail(), Some("Key (id)=(2) already exists."));
    let object = duplicate.object().expect("a constraint");
    assert_eq!(object.schema.as_deref(), Some("public"));
    assert_eq!(object.table.as_deref(), Some("items"));
    assert_eq!(object.constraint.as_deref(), Some("items_pkey"));
    assert_eq!(object.column, None);
    let missing = error(&mut s, "insert into items (id) values (9)");
    assert_eq!(missing.sqlstate().as_str(), "23502");
    let object = missing.object().expect("a column");
    assert_eq!(object.table.as_deref(), Some("items"));
    assert_eq!(object.column.as_deref(), Some("name"));
    assert_eq!(object.constraint, None);
    assert_eq!(
        missing.message(),
        "null value in column \"name\" of relation \"items\" violates not-null constraint"
    );
    assert_eq!(missing.detail(), Some("Failing row contains (9, null, null, 0)."));
    assert_eq!(
        run(&mut s, "update items set name = null where id = 1"),
        "ERROR 23502"
    );
    assert_eq!(run(&mut s, "update items set id = 1 where id = 2"), "ERROR 23505");
    assert_eq!(
        run(
            &mut s,
            "insert into items values (5, 'a name of more than twenty characters')"
        ),
        "ERROR 22001"
    );
    assert_eq!(
        run(&mut s, "insert into items values (5, 'x', 1234567.00)"),
        "ERROR 22003"
    );
    assert_eq!(
        run(&mut s, "insert into items values (99999999999, 'x')"),
        "ERROR 22003"
    );
    assert_eq!(run(&mut s, "insert into items values ('x', 'x')"), "ERROR 22P02");
    // A failed statement leaves nothing behind, not even its first rows.
    assert_eq!(
        run(&mut s, "insert into items values (6, 'fig'), (1, 'apple')"),
        "ERROR 23505"
    );
    assert_eq!(query(&mut s, "select count(*) from items where id = 6"), "0");
}

/// A long INSERT is parsed in pieces; what it stores and where its mistakes are does not show that.
#[test]
fn long_inserts_are_as_short_ones() {
    const ROWS: usize = 20_000;
    let fixture = Fixture::new("create table t (a int default 7, b text)");
    let mut s = fixture.session();
    let rows = |between: &str| {
        let row = |row| format!("({row}, 'é{row}, (')");
        (0..ROWS).map(row).collect::<Vec<_>>().join(between)
    };
    for between in [", ", ",\n", " /* ) */ ,"] {
        let sql = format!("insert into t (a, b) values {}", rows(between));
        assert_eq!(run(&mut s, &sql), format!("INSERT 0 {ROWS}"));
        let counted = "select count(*), count(distinct a), min(b), max(a) from t where b = 'é' || a || ', ('";
        assert_eq!(
            query(&mut s, counted),
            format!("{ROWS}|{ROWS}|é0, (|{}", ROWS - 1)
        );
        run(&mut s, "truncate t");
    }
    let defaults = format!(
        "insert into t values (1, 'x'){} returning a",
        ", (default, null)".repeat(ROWS)
    );
    let returned = query(&mut s, &defaults);
    assert!(returned.starts_with("1, 7, 7, ") && returned.ends_with(", 7"));
    let between = ",\n";
    let good = format!("insert into t values {}", rows(between));
    // A mistake in a late row, behind all rows on a line of its own and on the last row's, and one that binding finds.
    for (tail, sqlstate, marked) in [
        (",\n (1, 'x', +)", "42601", ")"),
        ("\nreturning missing", "42703", "missing"),
        (" returning missing", "42703", "missing"),
        (" retruning a", "42601", "retruning"),
        (", (1, missing)", "42703", "missing"),
        (", (1, 'x', 3)", "42601", "1, 'x', 3"),
    ] {
        let sql = format!("{good}{tail}");
        let error = error(&mut s, &sql);
        assert_eq!(error.sqlstate().as_str(), sqlstate, "{tail}: {error:?}");
        let place = sql
            .char_indices()
            .nth(error.position().unwrap() as usize - 1)
            .unwrap()
            .0;
        assert!(sql[place..].starts_with(marked), "{tail}: at {:?}", &sql[place..]);
    }
    // What comes before it is not done when the last statement is a mistake.
    let several = format!("create table u (a int); {good}, (1, +)");
    assert_eq!(run(&mut s, &several), "ERROR 42601");
    assert_eq!(run(&mut s, "select * from u"), "ERROR 42P01");
}
