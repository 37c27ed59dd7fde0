//! A primary, a standby that follows it, and one that follows the standby: copies, streams and a promotion, over sockets.
//!
//! # Mutations seen to fail
//! `crates/server/mutations/replication.toml` lists them.

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clearway_engine::{Config, Engine};
use clearway_server::StopSignal;
use clearway_server::replication::following::{Following, Promotions};
use clearway_server::replication::receiver::base_backup;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::run::ReceiverOptions;
use clearway_server::replication::receiver::stream::StreamOptions;
use support::{TestServer, kinds, wait_for};

const TIMEOUT: Duration = Duration::from_secs(20);

fn config() -> Config {
    Config::from_toml("autovacuum = false").unwrap()
}

/// A server on a standby's directory, and what keeps it up to date.
struct StandbyServer {
    server: TestServer,
    following: Following,
    events: Arc<Mutex<Vec<String>>>,
}

/// Copies what listens at `source`, and follows it.
fn standby_of(source: &TestServer) -> StandbyServer {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let conninfo = format!("host=127.0.0.1 port={} application_name=x", source.address.port());
    let keeps_log = copy(&conninfo, &data);
    let engine = Engine::open_standby(&data, config()).unwrap();
    let options = ReceiverOptions {
        conninfo: conninfo.parse().unwrap(),
        timeout: TIMEOUT,
        stream: StreamOptions {
            slot: None,
            status_interval: Duration::from_millis(50),
            feedback: true,
        },
        create_slot: false,
    };
    let events = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&events);
    let following = Following::start(
        Arc::clone(&engine),
        options,
        Some(keeps_log),
        Promotions::Asked,
        move |event| {
            told.lock().unwrap().push(event.to_string());
        },
    )
    .unwrap();
    StandbyServer {
        server: TestServer::over(engine, directory, 100),
        following,
        events,
    }
}

fn copy(conninfo: &str, data: &Path) -> Client {
    let stop = StopSignal::new().unwrap();
    let mut client = Client::connect(&conninfo.parse().unwrap(), TIMEOUT, &stop).unwrap();
    base_backup::fetch(&mut client, data, false, |_| {}).unwrap();
    client
}

impl StandbyServer {
    fn value(&self, sql: &str) -> String {
        self.server.client().value(sql)
    }

    fn wait_for(&self, sql: &str, value: &str) {
        wait_for(
            &format!("{sql} to be {value}: {:?}", self.events.lock().unwrap()),
            || self.value(sql) == value,
        );
    }

    fn stop(mut self) {
        self.following.stop();
        self.server.stop();
    }
}

/// Carol is made of Bob, who follows the primary, and follows him: she has what the primary commits, and after his promotion
/// what he does, on his timeline.
#[test]
fn a_standby_feeds_another_and_takes_it_along_when_it_is_promoted() {
    let primary = TestServer::over_config(config());
    let mut client = primary.client();
    client.rows("create table notes (id int primary key)");
    client.rows("insert into notes select g from generate_series(1, 500) g");
    let bob = standby_of(&primary);
    client.rows("insert into notes values (501)");
    bob.wait_for("select count(*) from notes", "501");
    let carol = standby_of(&bob.server);
    assert_eq!(
        carol.value("select count(*) from notes"),
        "501",
        "it reads at once"
    );
    // A table that is not there is an error, so it comes first: it is replayed when the row is.
    client.rows("create table more (id int)");
    client.rows("insert into notes values (502)");
    carol.wait_for("select count(*) from notes", "502");
    assert_eq!(carol.value("select count(*) from more"), "0");
    assert_eq!(
        bob.value("select state from pg_stat_replication"),
        "streaming",
        "Bob shows who follows him"
    );
    // What Carol's sessions see is asked of the primary, through Bob.
    let mut reader = carol.server.client();
    reader.query("begin isolation level repeatable read");
    reader.rows("select count(*) from notes");
    let seen = carol.server.engine.storage().proc_array.oldest_xmin().unwrap();
    for _ in 0..5 {
        client.rows("update notes set id = id + 1000 where id = 1");
        client.rows("update notes set id = id - 1000 where id = 1001");
    }
    wait_for("the primary to hold back its horizon for Carol", || {
        primary.engine.storage().proc_array.horizon() == seen
    });
    reader.query("commit");
    wait_for("the horizon to go on", || {
        primary.engine.storage().proc_array.horizon() > seen
    });

    assert_eq!(bob.value("select pg_promote()"), "t");
    let mut client = bob.server.client();
    client.rows("insert into notes values (600)");
    carol.wait_for("select count(*) from notes where id = 600", "1");
    assert_eq!(carol.server.engine.storage().timeline(), 2);
    assert_eq!(carol.value("select pg_is_in_recovery()"), "t");
    assert_eq!(carol.value("select received_tli from pg_stat_wal_receiver"), "2");
    let sum = "select sum(id) from notes";
    assert_eq!(carol.value(sum), bob.value(sum));
    let events = carol.events.lock().unwrap().clone();
    assert!(
        events.iter().all(|event| !event.contains("no more log")),
        "{events:?}"
    );
    carol.stop();
    bob.stop();
}

/// A promotion while a copy is under way: the client gets an error, and has no database.
#[test]
fn a_copy_of_a_standby_that_is_promoted_is_refused() {
    let primary = TestServer::over_config(config());
    primary.client().rows("create table notes (id int primary key)");
    let bob = standby_of(&primary);
    let mut raw = bob.server.connect();
    raw.start(&[("user", "alice"), ("replication", "true")]);
    // A rate at which the copy takes long enough.
    raw.send(&support::query("BASE_BACKUP ( LABEL 'x', MAX_RATE 32, WAL )"));
    while raw.read().unwrap().kind != b'd' {}
    assert_eq!(bob.value("select pg_promote()"), "t");
    let replies = raw.until_ready();
    let error = replies.iter().find(|reply| reply.kind == b'E').expect("no error");
    assert_eq!(error.sqlstate(), "55000", "{}", kinds(&replies));
    assert!(
        error
            .field(b'M')
            .unwrap()
            .contains("promoted during the base backup")
    );
    bob.stop();
}
