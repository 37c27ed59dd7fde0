//! Schemas: what messages say, what the catalogs tell, and what a restart finds.

use crate::common::{Fixture, error, query, run};

#[test]
fn a_schema_that_holds_something_is_dropped_with_cascade_only() {
    let fixture = Fixture::new("create schema s; create table s.a (x int); create table s.b (id serial)");
    let mut session = fixture.session();
    let refused = error(&mut session, "drop schema s");
    assert_eq!(refused.sqlstate().as_str(), "2BP01");
    assert_eq!(
        refused.message(),
        "cannot drop schema s because other objects depend on it"
    );
    assert_eq!(
        refused.detail(),
        Some("table s.a depends on schema s\ntable s.b depends on schema s")
    );
    assert_eq!(
        refused.hint(),
        Some("Use DROP ... CASCADE to drop the dependent objects too.")
    );
    assert_eq!(run(&mut session, "drop schema s cascade"), "DROP SCHEMA");
    assert_eq!(
        query(
            &mut session,
            "select count(*) from pg_class where relname in ('a', 'b', 'b_id_seq')"
        ),
        "0"
    );
}

#[test]
fn the_catalogs_tell_the_schemas_of_tables() {
    let fixture = Fixture::new("create schema s; create table s.t (id serial primary key, v text)");
    let mut session = fixture.session();
    for (sql, answer) in [
        (
            "select nspname from pg_namespace where oid >= 2200 order by 1",
            "information_schema, public, s",
        ),
        (
            "select schema_name from information_schema.schemata where schema_name in ('s', 'public') order by 1",
            "public, s",
        ),
        (
            "select c.relname from pg_class as c join pg_namespace as n on n.oid = c.relnamespace where n.nspname = 's' order by 1",
            "t, t_id_seq, t_pkey",
        ),
        (
            "select table_schema, table_name, is_insertable_into from information_schema.tables where table_schema = 's'",
            "s|t|YES",
        ),
        (
            "select column_default from information_schema.columns where table_schema = 's' and column_name = 'id'",
            "nextval('s.t_id_seq'::regclass)",
        ),
        (
            "select pg_get_expr(adbin, adrelid) from pg_attrdef",
            "nextval('s.t_id_seq'::regclass)",
        ),
        ("select sequence_schema from information_schema.sequences", "s"),
        ("select pg_table_is_visible('s.t'::regclass)", "f"),
        (
            "select relname from pg_statio_user_tables where schemaname = 's'",
            "t",
        ),
    ] {
        assert_eq!(query(&mut session, sql), answer, "{sql}");
    }
    run(&mut session, "set search_path to s");
    assert_eq!(
        query(&mut session, "select pg_table_is_visible('s.t'::regclass)"),
        "t"
    );
    assert_eq!(
        query(&mut session, "select pg_get_expr(adbin, adrelid) from pg_attrdef"),
        "nextval('t_id_seq'::regclass)"
    );
}

#[test]
fn an_error_tells_the_schema_of_its_table() {
    let fixture = Fixture::new("create schema s; create table s.t (id int primary key)");
    let mut session = fixture.session();
    for sql in ["insert into s.t values (null)", "insert into s.t values (1), (1)"] {
        let refused = error(&mut session, sql);
        let object = refused.object().unwrap();
        assert_eq!(object.schema.as_deref(), Some("s"), "{sql}");
    }
}
