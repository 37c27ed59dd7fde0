//! Comments on objects.

use crate::common::{Fixture, query};

const SETUP: &str = "create table t (a int primary key, b int); create index t_b on t (b);
    comment on table t is 'a table'; comment on column t.b is 'a column'; comment on index t_b is 'an index';
    comment on constraint t_pkey on t is 'a key'; comment on schema public is 'a schema'";

const ALL: &str = "select objsubid, description from pg_description order by description";

#[test]
fn comments_are_there_after_a_restart() {
    let fixture = Fixture::new(SETUP);
    let before = query(&mut fixture.session(), ALL);
    assert_eq!(before, "2|a column, 0|a key, 0|a schema, 0|a table, 0|an index");
    query(&mut fixture.session(), "comment on column t.b is null");
    let fixture = fixture.restarted();
    let mut session = fixture.session();
    assert_eq!(
        query(&mut session, ALL),
        "0|a key, 0|a schema, 0|a table, 0|an index"
    );
    query(&mut session, "comment on table t is 'another'");
    assert_eq!(
        query(&mut session, "select obj_description('t'::regclass)"),
        "another"
    );
    query(&mut session, "drop table t");
    assert_eq!(query(&mut session, ALL), "0|a schema");
}

#[test]
fn what_all_databases_share_has_a_table_of_its_own() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let database = query(&mut session, "select current_database()");
    query(&mut session, &format!("comment on database {database} is 'ours'"));
    assert_eq!(
        query(&mut session, "select description from pg_shdescription"),
        "ours"
    );
    assert_eq!(query(&mut session, ALL), "");
    assert_eq!(
        query(
            &mut session,
            "select shobj_description(oid, 'pg_database'), obj_description(oid, 'pg_database') is null from pg_database"
        ),
        "ours|t"
    );
}

#[test]
fn a_comment_is_bounded_by_a_row_of_the_catalog() {
    let fixture = Fixture::new("create table t (a int)");
    let long = "x".repeat(8_000);
    fixture.play(&format!(
        "alice: comment on table t is '{long}' => ERROR 54000
         alice: comment on table pg_class is 'x' => ERROR 0A000
         alice: comment on database nowhere is 'x' => COMMENT
         alice: comment on column t.b is 'x' => ERROR 42703"
    ));
}
