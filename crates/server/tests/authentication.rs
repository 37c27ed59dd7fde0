//! Who may enter: `pg_hba.conf` and SCRAM-SHA-256, with an unmodified client and byte by byte.

mod support;

use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use clearway_server::check_rules;
use support::{Raw, Reply, TestServer, message, startup};
use tokio_postgres::NoTls;

const PASSWORD: &str = "pêncil 'n ink";

/// A server with the roles `ann` (with a password), `late` (whose password has expired) and `bare` (without one).
fn server(rules: &str) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let engine = Engine::open(&data, Config::default()).unwrap();
    let mut admin = engine
        .session(clearway_engine::SessionInfo {
            user: "postgres".to_owned(),
            ..Default::default()
        })
        .unwrap();
    let quoted = PASSWORD.replace('\'', "''");
    for sql in [
        format!("create role ann login password '{quoted}'"),
        format!("create role late login password '{quoted}' valid until '2001-01-01'"),
        "create role bare login; create role crew role ann".to_owned(),
    ] {
        let mut out = clearway_engine::Collected::default();
        admin.execute_simple(&sql, &mut out).unwrap();
    }
    drop(admin);
    std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
    TestServer::over(engine, directory, 20)
}

/// The outcome of a login by tokio-postgres: the user that the session has, or the SQLSTATE and the message.
fn log_in(server: &TestServer, user: &str, password: &str) -> Result<String, (String, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(server.address.port());
    config.user(user).password(password).dbname("postgres");
    runtime.block_on(async {
        match config.connect(NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                let row = client.query_one("select current_user::text", &[]).await.unwrap();
                Ok(row.get(0))
            }
            Err(error) => {
                let error = error.as_db_error().expect("an answer of the server");
                Err((error.code().code().to_owned(), error.message().to_owned()))
            }
        }
    })
}

#[test]
fn a_password_lets_in_and_every_failure_says_the_same() {
    let server = server("host all all 127.0.0.1/32 scram-sha-256");
    assert_eq!(log_in(&server, "ann", PASSWORD), Ok("ann".to_owned()));
    for (user, password) in [
        ("ann", "pencil"),
        ("late", PASSWORD),
        ("bare", PASSWORD),
        ("eve", PASSWORD),
        ("postgres", ""),
    ] {
        let (state, message) = log_in(&server, user, password).unwrap_err();
        assert_eq!(state, "28P01", "{user}: {message}");
        assert_eq!(
            message,
            format!("password authentication failed for user \"{user}\"")
        );
    }
}

#[test]
fn rules_say_who_may_enter_and_a_change_holds_from_the_next_connection_on() {
    let server = server(
        "host all eve all reject\nhost all +crew samehost trust\nhost postgres late all scram-sha-256",
    );
    assert_eq!(log_in(&server, "ann", ""), Ok("ann".to_owned()));
    let (state, message) = log_in(&server, "eve", "").unwrap_err();
    assert_eq!(
        (
            state.as_str(),
            message.contains("rejects connection for host \"127.0.0.1\", user \"eve\"")
        ),
        ("28000", true)
    );
    let (state, message) = log_in(&server, "bare", "").unwrap_err();
    assert_eq!(
        (state.as_str(), message.as_str()),
        (
            "28000",
            "no pg_hba.conf entry for host \"127.0.0.1\", user \"bare\", database \"postgres\", no encryption"
        )
    );
    let rules = server.directory.path().join("data/pg_hba.conf");
    std::fs::write(&rules, "host all all all trusted").unwrap();
    let (state, message) = log_in(&server, "ann", "").unwrap_err();
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("28000", "could not load pg_hba.conf")
    );
    std::fs::write(&rules, "host all all all trust").unwrap();
    assert_eq!(log_in(&server, "bare", ""), Ok("bare".to_owned()));
    let (state, message) = log_in(&server, "eve", "").unwrap_err();
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("28000", "role \"eve\" does not exist")
    );
}

/// The answer to the first SCRAM message of this user.
fn server_first(server: &TestServer, user: &str) -> String {
    let mut raw = asked_for_a_password(server, user);
    raw.send(&message(b'p', &initial(b"n,,n=,r=clientnonce")));
    let reply = raw.read().unwrap();
    assert_eq!((reply.kind, &reply.body[..4]), (b'R', &[0, 0, 0, 11][..]));
    String::from_utf8(reply.body[4..].to_vec()).unwrap()
}

fn initial(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    [&b"SCRAM-SHA-256\0"[..], &length, data].concat()
}

fn asked_for_a_password(server: &TestServer, user: &str) -> Raw {
    let mut raw = server.connect();
    raw.send(&startup(&[("user", user), ("database", "postgres")]));
    let reply = raw.read().unwrap();
    assert_eq!(
        (reply.kind, &reply.body[..]),
        (b'R', &b"\0\0\0\x0aSCRAM-SHA-256\0\0"[..])
    );
    raw
}

/// A guesser cannot tell a user that there is from one that there is not: not by the salt either, which stays.
#[test]
fn an_unknown_user_is_asked_as_a_known_one() {
    let server = server("host all all all scram-sha-256");
    let salt = |user: &str| {
        let first = server_first(&server, user);
        let parts: Vec<&str> = first.split(',').collect();
        assert!(
            parts[0].starts_with("r=clientnonce") && parts[0].len() > 30,
            "{first}"
        );
        assert_eq!(parts[2..], ["i=4096"]);
        assert_eq!(parts[1].len(), "s=".len() + 24, "16 bytes: {first}");
        parts[1].to_owned()
    };
    for user in ["ann", "bare", "eve"] {
        assert_eq!(salt(user), salt(user), "{user}");
    }
    assert_ne!(salt("eve"), salt("bare"));
}

/// A message that is no answer to the question ends the connection, and takes no memory.
#[test]
fn a_broken_exchange_is_a_broken_protocol() {
    let server = server("host all all all scram-sha-256");
    let first = initial(b"n,,n=,r=clientnonce");
    let with_binding = initial(b"p=tls-server-end-point,,n=,r=clientnonce");
    let long = [b'p', 0x7f, 0xff, 0xff, 0xff];
    let query = [b'Q', 0x00, 0xff, 0xff, 0xff];
    for (name, bytes) in [
        ("a query", query.to_vec()),
        ("a long answer", long.to_vec()),
        ("another mechanism", message(b'p', b"SCRAM-SHA-1\0\0\0\0\x02n,")),
        ("no form", message(b'p', b"\xff")),
        ("a binding", message(b'p', &with_binding)),
        (
            "a nonce of its own",
            [message(b'p', &first), message(b'p', b"c=biws,r=other,p=AAAA")].concat(),
        ),
        (
            "no proof",
            [message(b'p', &first), message(b'p', b"c=biws,r=clientnonce")].concat(),
        ),
    ] {
        let mut raw = asked_for_a_password(&server, "ann");
        raw.send(&bytes);
        let replies = raw.until_closed();
        let last: &Reply = replies.last().unwrap_or_else(|| panic!("{name}: no answer"));
        assert_eq!((last.kind, last.sqlstate().as_str()), (b'E', "08P01"), "{name}");
    }
    assert_eq!(log_in(&server, "ann", PASSWORD), Ok("ann".to_owned()));
}

/// Guesses of one address are answered later and later; a login that knows its password is not.
#[test]
fn guesses_are_slowed_down() {
    let server = server("host all all all scram-sha-256");
    let begin = Instant::now();
    for _ in 0..4 {
        assert!(log_in(&server, "ann", "guess").is_err());
    }
    assert!(begin.elapsed() >= Duration::from_millis(50 + 100 + 200 + 400));
    assert_eq!(log_in(&server, "ann", PASSWORD), Ok("ann".to_owned()));
}

/// `pg_hba_file_rules`: each line as it is now, with the faults of those that are not understood; for superusers alone.
#[test]
fn the_rules_are_shown_line_by_line() {
    let server = server("local all,replication all trust\nhost all all samehost trust");
    let mut admin = server.connect();
    admin.start(&[("user", "postgres")]);
    let rules = server.directory.path().join("data/pg_hba.conf");
    let file = "# who may enter\n\
                hostssl shop,\"all\" +crew,ann 192.0.2.0/24 scram-sha-256 clientcert=verify-ca\n\
                host all all all \\\n  trusted\n\
                local sameuser all peer\n\
                hostssl all all 2001:db8::/33 cert\n\
                hostnossl all all 0.0.0.0/0 reject\n\
                host all \"all";
    std::fs::write(rules, file).unwrap();
    let shown: Vec<String> = admin
        .rows("select * from pg_hba_file_rules")
        .into_iter()
        .map(|row| {
            let values = row
                .into_iter()
                .map(|value| value.unwrap_or_else(|| "-".to_owned()));
            values.collect::<Vec<_>>().join(" | ")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "2 | hostssl | {shop,all} | {+crew,ann} | 192.0.2.0 | 255.255.255.0 | scram-sha-256 | {clientcert=verify-ca} | -",
            "3 | - | - | - | - | - | - | - | invalid authentication method \"trusted\"",
            "5 | local | {sameuser} | {all} | - | - | peer | - | -",
            "6 | hostssl | {all} | {all} | 2001:db8:: | ffff:ffff:8000:: | cert | {clientcert=verify-full} | -",
            "7 | hostnossl | {all} | {all} | 0.0.0.0 | 0.0.0.0 | reject | - | -",
            "8 | - | - | - | - | - | - | - | a quoted word without its end",
        ]
    );
    admin.query("set role ann");
    assert_eq!(
        admin.query("select * from pg_hba_file_rules")[0].sqlstate(),
        "42501"
    );
}

#[test]
fn rules_can_be_kept_elsewhere_and_have_to_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let (data, rules) = (directory.path().join("data"), directory.path().join("rules"));
    let engine = Engine::open(&data, Config::default()).unwrap();
    std::fs::write(&rules, "host all ann 127.0.0.1/32 trust\n").unwrap();
    let named = rules.clone();
    let server = TestServer::with_options(engine, directory, |options| options.hba_file = named);
    assert_eq!(log_in(&server, "ann", "").as_deref(), Ok("ann"));
    let (sqlstate, message) = log_in(&server, "bob", "").unwrap_err();
    assert_eq!(sqlstate, "28000");
    assert!(message.starts_with("no pg_hba.conf entry"), "{message}");
    check_rules(&data, &rules, None).unwrap();
    std::fs::remove_file(&rules).unwrap();
    let refused = ("28000".to_owned(), "could not load pg_hba.conf".to_owned());
    assert_eq!(log_in(&server, "ann", ""), Err(refused));
    assert!(check_rules(&data, &rules, None).is_err());
    check_rules(&data, std::path::Path::new("pg_hba.conf"), None).unwrap();
}
