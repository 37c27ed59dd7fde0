//! tokio-postgres, unmodified: prepared statements in binary form, pipelining, transactions, COPY, cancelling.

mod support;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, pin_mut};
use support::TestServer;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls};

/// Runs a test's body with a server and two clients.
fn with_clients<F: Future<Output = ()>>(body: impl FnOnce(Client, Client) -> F) {
    let server = TestServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(server.address.port())
            .user("alice")
            .dbname("postgres");
        config.application_name("tokio");
        let mut clients = Vec::new();
        for _ in 0..2 {
            let (client, connection) = config.connect(NoTls).await.unwrap();
            tokio::spawn(connection);
            clients.push(client);
        }
        let second = clients.pop().unwrap();
        body(clients.pop().unwrap(), second).await;
    });
}

#[test]
fn values_in_binary_form() {
    with_clients(async |client, _| {
        client
            .batch_execute(
                "create table t (id int primary key, big bigint, small smallint, yes boolean, real double precision,
                                 word text)",
            )
            .await
            .unwrap();
        let insert = client
            .prepare("insert into t values ($1, $2, $3, $4, $5, $6)")
            .await
            .unwrap();
        assert_eq!(insert.params()[..3], [Type::INT4, Type::INT8, Type::INT2]);
        for id in 0..10i32 {
            let word = (id % 2 == 0).then(|| format!("wörd {id}"));
            let count = client
                .execute(
                    &insert,
                    &[
                        &id,
                        &(i64::from(id) << 40),
                        &(id as i16),
                        &(id > 4),
                        &(f64::from(id) / 3.0),
                        &word,
                    ],
                )
                .await
                .unwrap();
            assert_eq!(count, 1);
        }
        let rows = client
            .query("select * from t where id >= $1 order by id", &[&8i32])
            .await
            .unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get::<_, i64>("big"), 8 << 40);
        assert_eq!(rows[0].get::<_, i16>(2), 8);
        assert!(rows[0].get::<_, bool>("yes"));
        assert!((rows[1].get::<_, f64>("real") - 3.0).abs() < 1e-12);
        assert_eq!(
            rows[0].get::<_, Option<String>>("word").as_deref(),
            Some("wörd 8")
        );
        assert_eq!(rows[1].get::<_, Option<&str>>("word"), None);
        let name: String = client
            .query_one("show application_name", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(name, "tokio");
    });
}

#[test]
fn many_requests_in_flight() {
    with_clients(async |client, _| {
        client
            .batch_execute("create table t (id int primary key, n int)")
            .await
            .unwrap();
        client
            .batch_execute("insert into t select i, 7 from generate_series(1, 100) as i")
            .await
            .unwrap();
        let find = client
            .prepare("select n + $2 from t where id = $1")
            .await
            .unwrap();
        let (client, find) = (&client, &find);
        let requests =
            (1..=100i32).map(|id| async move { client.query_one(find, &[&id, &id]).await.unwrap().get(0) });
        let answers: Vec<i32> = futures_util::future::join_all(requests).await;
        assert_eq!(answers, (8..=107).collect::<Vec<i32>>());
    });
}

#[test]
fn transactions_and_portals() {
    with_clients(async |mut client, other| {
        client
            .batch_execute("create table t (id int primary key)")
            .await
            .unwrap();
        let transaction = client.transaction().await.unwrap();
        transaction
            .execute("insert into t select i from generate_series(1, 25) as i", &[])
            .await
            .unwrap();
        let count: i64 = other
            .query_one("select count(*) from t", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(count, 0, "not committed yet");
        let portal = transaction
            .bind("select id from t order by id", &[])
            .await
            .unwrap();
        let mut seen = Vec::new();
        loop {
            let rows = transaction.query_portal(&portal, 10).await.unwrap();
            if rows.is_empty() {
                break;
            }
            seen.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
        }
        assert_eq!(seen, (1..=25).collect::<Vec<i32>>());
        transaction.commit().await.unwrap();
        let count: i64 = other
            .query_one("select count(*) from t", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(count, 25);

        let transaction = client.transaction().await.unwrap();
        transaction.execute("delete from t", &[]).await.unwrap();
        drop(transaction);
        let count: i64 = other
            .query_one("select count(*) from t", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(count, 25, "a dropped transaction is rolled back");
    });
}

#[test]
fn errors_by_their_code() {
    with_clients(async |client, _| {
        client
            .batch_execute("create table t (id int primary key); insert into t values (1)")
            .await
            .unwrap();
        let code = async |sql: &str| {
            client
                .execute(sql, &[])
                .await
                .unwrap_err()
                .code()
                .cloned()
                .unwrap()
        };
        assert_eq!(code("insert into t values (1)").await, SqlState::UNIQUE_VIOLATION);
        // Applications tell violated constraints apart by these fields.
        let error = client.execute("insert into t values (1)", &[]).await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(
            (error.schema(), error.table(), error.column(), error.constraint()),
            (Some("public"), Some("t"), None, Some("t_pkey"))
        );
        let error = client
            .execute("insert into t values (null)", &[])
            .await
            .unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.table(), error.column()), (Some("t"), Some("id")));
        assert_eq!(code("select * from missing").await, SqlState::UNDEFINED_TABLE);
        assert_eq!(code("select missing from t").await, SqlState::UNDEFINED_COLUMN);
        assert_eq!(code("selec 1").await, SqlState::SYNTAX_ERROR);
        assert_eq!(
            client.execute("delete from t", &[]).await.unwrap(),
            1,
            "the connection goes on"
        );
    });
}

#[test]
fn copy_both_ways() {
    with_clients(async |client, _| {
        client
            .batch_execute("create table t (id int, word text)")
            .await
            .unwrap();
        let sink = client.copy_in("copy t from stdin").await.unwrap();
        pin_mut!(sink);
        for part in 0..50 {
            let lines: String = (0..100)
                .map(|line| format!("{}\tword\n", part * 100 + line))
                .collect();
            sink.send(Bytes::from(lines)).await.unwrap();
        }
        assert_eq!(sink.finish().await.unwrap(), 5_000);
        let stream = client.copy_out("copy t to stdout").await.unwrap();
        pin_mut!(stream);
        let mut bytes = Vec::new();
        while let Some(part) = stream.next().await {
            bytes.extend(part.unwrap());
        }
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 5_000);
    });
}

#[test]
fn a_statement_is_cancelled() {
    with_clients(async |client, other| {
        client
            .batch_execute("create table t (id int primary key); insert into t values (1)")
            .await
            .unwrap();
        client.batch_execute("begin; delete from t").await.unwrap();
        let token = other.cancel_token();
        let waiting = tokio::spawn(async move { other.execute("delete from t", &[]).await });
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await.unwrap();
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    });
}
