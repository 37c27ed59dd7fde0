//! Statements that drivers and mappers send when they connect, word for word, and the drivers' use of the answers.
//!
//! Each of them used to fail at its first connection over one of these.

mod support;

use support::{Raw, TestServer, bind, describe, execute, parse, sync};

fn error_of(client: &mut Raw, sql: &str) -> (String, String, Option<String>) {
    let replies = client.query(sql);
    let error = replies.iter().find(|reply| reply.kind == b'E').expect(sql);
    (error.sqlstate(), error.field(b'M').unwrap(), error.field(b'P'))
}

#[test]
fn asyncpg() {
    let server = TestServer::start();
    let mut client = server.connect();
    let greeting = client.start(&[("user", "alice"), ("client_encoding", "'utf-8'")]);
    assert_eq!(greeting.last().unwrap().kind, b'Z');
    assert_eq!(client.value("show client_encoding"), "UTF8");
    // The type json by its number, so that a codec can be set for it.
    let by_number = "SELECT t.oid, t.typelem AS elemtype, t.typtype AS kind FROM pg_catalog.pg_type AS t WHERE t.oid = $1";
    client.send(&[parse("", by_number), describe(b'S', ""), sync()].concat());
    assert_eq!(support::kinds(&client.until_ready()), "1tTZ");
    client.send(
        &[
            parse("", by_number),
            bind("", "", &[Some("114")]),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    let replies = client.until_ready();
    let row = replies.iter().find(|reply| reply.kind == b'D').unwrap().values();
    assert_eq!(row[0].as_deref(), Some("114"));
    assert_eq!(row[2].as_deref(), Some("b"));
    // A type that is not there.
    let by_name = "SELECT\n    t.oid,\n    t.typelem     AS elemtype,\n    t.typtype     AS kind\nFROM\n    \
                   pg_catalog.pg_type AS t\n    INNER JOIN pg_catalog.pg_namespace ns ON (ns.oid = t.typnamespace)\n\
                   WHERE\n    t.typname = $1 AND ns.nspname = $2\n";
    client.send(
        &[
            parse("", by_name),
            bind("", "", &[Some("hstore"), Some("public")]),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(support::kinds(&client.until_ready()), "12CZ");
}

/// The statements that asyncpg sends when a connection goes back to its pool.
#[test]
fn asyncpg_pools() {
    let server = TestServer::start();
    let mut client = server.client();
    let replies = client.query("SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;");
    assert_eq!(support::kinds(&replies), "TDCCCC");
    assert_eq!(error_of(&mut client, "close c").0, "34000");
}

#[test]
fn pg_dump_and_other_tools_of_postgresql() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(
        client.value("SELECT pg_catalog.set_config('search_path', '', false);"),
        ""
    );
    assert_eq!(client.value("SELECT pg_catalog.pg_is_in_recovery()"), "f");
    for sql in [
        "SET statement_timeout = 0",
        "SET lock_timeout = 0",
        "SET idle_in_transaction_session_timeout = 0",
        "SET client_encoding = 'UTF8'",
        "SET standard_conforming_strings = on",
        "SET check_function_bodies = false",
        "SET xmloption = content",
        "SET client_min_messages = warning",
        "SET row_security = off",
        "SET default_tablespace = ''",
        "SET default_table_access_method = heap",
    ] {
        client.rows(sql);
    }
    // The client gets the value of a reported setting that a function has changed.
    let replies = client.query("select set_config('application_name', 'tool', false)");
    assert!(
        replies
            .iter()
            .any(|reply| reply.kind == b'S' && reply.body.starts_with(b"application_name\0tool"))
    );
}

#[test]
fn sequelize_and_typeorm() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE");
    assert_eq!(client.value("show timezone"), "<+00>-00");
    client.rows("SET TIME ZONE INTERVAL '+02:30' HOUR TO MINUTE");
    assert_eq!(client.value("show timezone"), "<+02:30>-02:30");
    // Sequelize: the numbers of all types, and of the ranges over them. There are no ranges.
    let types = "WITH ranges AS (  SELECT pg_range.rngtypid, pg_type.typname AS rngtypname,         pg_type.typarray AS rngtyparray, \
                 pg_range.rngsubtype    FROM pg_range LEFT OUTER JOIN pg_type ON pg_type.oid = pg_range.rngtypid)\
                 SELECT pg_type.typname, pg_type.typtype, pg_type.oid, pg_type.typarray,       ranges.rngtypname, \
                 ranges.rngtypid, ranges.rngtyparray  FROM pg_type LEFT OUTER JOIN ranges ON pg_type.oid = ranges.rngsubtype \
                 WHERE (pg_type.typtype IN('b', 'e'));";
    let rows = client.rows(types);
    let found = rows
        .iter()
        .find(|row| row[0].as_deref() == Some("int4"))
        .expect("int4");
    assert_eq!(found[1..3], ["b", "23"].map(|text| Some(text.to_owned())));
    assert_eq!(found[4..], [None, None, None]);
    assert_eq!(client.value("SELECT * FROM current_schema()"), "public");
    let row = client.query("SELECT * FROM current_schema()");
    assert!(String::from_utf8_lossy(&row[0].body).contains("current_schema"));
    assert_eq!(
        client.value("SELECT version() AS version"),
        client.value("select v from version() as v")
    );
    assert_eq!(
        client
            .rows("select c from current_schema() as s(c) where c = 'private'")
            .len(),
        0
    );
    // A function in FROM is called once a row: its value is the same wherever the column is used.
    assert_eq!(client.value("select r = r from random() r"), "t");
}

/// Drivers for Java send the zone of their host when they connect; a session that asks for one later means it.
#[test]
fn zones_at_connect_and_later() {
    let server = TestServer::start();
    let mut client = server.connect();
    let greeting = client.start(&[("user", "alice"), ("TimeZone", "Europe/Berlin")]);
    assert!(
        greeting
            .iter()
            .any(|reply| reply.kind == b'S' && reply.body == b"TimeZone\0Europe/Berlin\0")
    );
    for (zone, shown) in [
        ("UTC", "UTC"),
        ("'gmt'", "GMT"),
        ("'Etc/UTC'", "Etc/UTC"),
        ("0", "<+00>-00"),
        ("'+00:00'", "+00:00"),
        ("'europe/london'", "Europe/London"),
        ("'CET'", "CET"),
        ("-2.5", "<-02:30>+02:30"),
        ("'<abc>-7'", "<ABC>-7"),
        ("local", "Europe/Berlin"),
        ("default", "Europe/Berlin"),
    ] {
        client.rows(&format!("set time zone {zone}"));
        assert_eq!(client.value("show time zone"), shown, "{zone}");
    }
    for sql in [
        "set time zone 'Europe/Nowhere'",
        "set timezone = 'default'",
        "set time zone 168",
    ] {
        let (sqlstate, message, _) = error_of(&mut client, sql);
        assert_eq!(sqlstate, "22023", "{sql}: {message}");
        assert!(
            message.starts_with("invalid value for parameter \"TimeZone\""),
            "{message}"
        );
    }
    assert_eq!(error_of(&mut client, "set max_connections = 10").0, "55P02");
}

#[test]
fn sqlalchemy() {
    let server = TestServer::start();
    let mut client = server.client();
    assert!(
        client
            .value("select pg_catalog.version()")
            .starts_with("PostgreSQL ")
    );
    assert_eq!(client.value("select current_schema()"), "public");
    assert_eq!(client.value("show transaction isolation level"), "read committed");
    assert_eq!(client.value("show standard_conforming_strings"), "on");
    let two = "\nSELECT t.oid, typarray\nFROM pg_type t JOIN pg_namespace ns\n    ON typnamespace = ns.oid\nWHERE typname = 'hstore';\n";
    assert!(client.rows(two).is_empty());
    let three = "SELECT\n    typname AS name, oid, typarray AS array_oid,\n    oid::regtype::text AS regtype, typdelim AS delimiter\n\
                 FROM pg_type t\nWHERE t.oid = to_regtype($1)\nORDER BY t.oid\n";
    client.send(
        &[
            parse("", three),
            bind("", "", &[Some("hstore")]),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(support::kinds(&client.until_ready()), "12TCZ");
}

#[test]
fn postgres_js() {
    let server = TestServer::start();
    let mut client = server.client();
    let arrays = "\n      select b.oid, b.typarray\n      from pg_catalog.pg_type a\n      left join pg_catalog.pg_type b on b.oid = a.typelem\n      \
                  where a.typcategory = 'A'\n      group by b.oid, b.typarray\n      order by b.oid\n    ";
    client.send(
        &[
            parse("", arrays),
            describe(b'S', ""),
            bind("", "", &[]),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    // A row for each type that there are arrays of.
    let kinds = support::kinds(&client.until_ready());
    assert!(kinds.starts_with("1tT2DD") && kinds.ends_with("DCZ"), "{kinds}");
}

/// An unsupported feature is an error 0A000, with a place and a name.
#[test]
fn what_is_not_supported_is_named_and_placed() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    for (sql, message) in [
        ("cluster t", "CLUSTER is not supported"),
        ("  cluster t", "CLUSTER is not supported"),
    ] {
        let (sqlstate, found, position) = error_of(&mut client, sql);
        assert_eq!((sqlstate.as_str(), found.as_str()), ("0A000", message), "{sql}");
        assert!(position.is_some(), "{sql} has no position");
    }
}
