//! Clients that have not logged in: their time, their room, and the places that they do not take.

mod support;

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use support::{PATIENCE, Raw, TestServer, startup, wait_for};

/// Connections that may be there beside the sessions.
const EXTRA: usize = 64;

/// A connection from another address of this machine.
fn from(address: Ipv4Addr, server: &TestServer) -> Raw {
    let made = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&made, &SocketAddrV4::new(address, 0)).unwrap();
    connect(&made, &server.address).unwrap();
    let stream = TcpStream::from(made);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Raw { stream }
}

/// Waits until the server has closed a connection; false if it does not.
fn has_ended(raw: &mut Raw) -> bool {
    match raw.stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

fn is_open(raw: &mut Raw) -> bool {
    raw.stream.set_nonblocking(true).unwrap();
    let open =
        matches!(raw.stream.read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
    raw.stream.set_nonblocking(false).unwrap();
    open
}

/// A connection that the server has taken: it has answered the question for TLS, and waits for what the client says next.
fn taken(mut raw: Raw) -> Raw {
    raw.send(&[0, 0, 0, 8, 4, 210, 22, 47]);
    let mut answer = [0];
    raw.stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"N");
    raw
}

/// As many silent connections as there is room for several times over, as fast as they can be made. Those from the address
/// that has most of them make room, oldest first; sessions, and a client from another address that is older than all of them,
/// stay. None is refused.
#[test]
fn the_oldest_silent_connection_makes_room() {
    let server = TestServer::with_connections(10);
    let mut sessions: Vec<Raw> = (0..5).map(|_| server.client()).collect();
    let mut slow = from(Ipv4Addr::new(127, 0, 0, 2), &server);
    let mut silent: Vec<Raw> = (0..4 * EXTRA).map(|_| server.connect()).collect();
    let mut newest = taken(server.connect());
    let mut late = server.client();
    let places = 10 + EXTRA - sessions.len() - 1;
    let gone = silent.len() + 2 - places;
    let (gone, here) = silent.split_at_mut(gone);
    assert!(gone.iter_mut().all(has_ended));
    assert!(here.iter_mut().all(is_open));
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 10 + 2 * EXTRA + 50, "{threads} threads");
    for session in sessions.iter_mut().chain([&mut late]) {
        assert_eq!(session.value("select 1"), "1");
    }
    slow.start(&[("user", "alice")]);
    assert_eq!(slow.value("select 2"), "2");
    assert!(is_open(&mut newest), "the newest makes no room");
}

/// Two addresses in turn, as many each: the older of their oldest makes room.
#[test]
fn of_addresses_with_as_many_the_oldest_makes_room() {
    let server = TestServer::with_connections(10);
    let address = |last| Ipv4Addr::new(127, 0, 0, last);
    let mut silent: Vec<Raw> = (0..10 + EXTRA)
        .map(|number| taken(from(address(2 + number as u8 % 2), &server)))
        .collect();
    let mut late = Vec::new();
    for oldest in silent.iter_mut().take(6) {
        assert!(is_open(oldest));
        late.push(taken(from(address(4), &server)));
        assert!(has_ended(oldest));
    }
    assert!(is_open(&mut silent[6]));
}

/// A client that has said who it is, and not proven it, has no session's place.
#[test]
fn a_login_takes_a_place_when_it_has_succeeded() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let engine = Engine::open(&data, Config::default()).unwrap();
    let mut admin = engine.session(clearway_engine::SessionInfo::default()).unwrap();
    let mut out = clearway_engine::Collected::default();
    admin
        .execute_simple(
            "create role ann login password 'x'; create role bob login",
            &mut out,
        )
        .unwrap();
    drop(admin);
    std::fs::write(
        data.join("pg_hba.conf"),
        "host all ann all scram-sha-256\nhost all all all trust",
    )
    .unwrap();
    let server = TestServer::over(engine, directory, 1);
    let mut halves: Vec<Raw> = (0..20).map(|_| server.connect()).collect();
    for half in &mut halves {
        half.send(&startup(&[("user", "ann")]));
        // AuthenticationSASL: the server waits for the proof.
        assert_eq!(half.read().unwrap().kind, b'R');
    }
    let mut bob = server.connect();
    bob.start(&[("user", "bob")]);
    assert_eq!(bob.value("select current_user"), "bob");
    let mut second = server.connect();
    second.send(&startup(&[("user", "bob")]));
    let told = second.until_closed();
    assert_eq!(told[0].sqlstate(), "53300", "{told:?}");
}

#[test]
fn the_last_places_are_for_superusers() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path().join("data"), Config::default()).unwrap();
    let mut admin = engine
        .session(clearway_engine::SessionInfo {
            user: "root".to_owned(),
            ..Default::default()
        })
        .unwrap();
    let mut out = clearway_engine::Collected::default();
    admin.execute_simple("create role bob login", &mut out).unwrap();
    drop(admin);
    let server = TestServer::with_options(engine, directory, |options| {
        options.max_connections = 4;
        options.superuser_reserved_connections = 2;
    });
    let log_in = |user: &str| {
        let mut raw = server.connect();
        raw.send(&startup(&[("user", user)]));
        match raw.read().unwrap() {
            reply if reply.kind == b'E' => Err((reply.sqlstate(), reply.field(b'M').unwrap())),
            _ => {
                raw.until_ready();
                Ok(raw)
            }
        }
    };
    let bobs: Vec<Raw> = (0..2).map(|_| log_in("bob").ok().unwrap()).collect();
    let (state, message) = log_in("bob").err().unwrap();
    assert_eq!(state, "53300");
    assert!(message.contains("reserved"), "{message}");
    let roots: Vec<Raw> = (0..2).map(|_| log_in("root").ok().unwrap()).collect();
    let (_, message) = log_in("root").err().unwrap();
    assert_eq!(message, "sorry, too many clients already");
    drop((bobs, roots));
    wait_for("a place", || log_in("bob").is_ok());
}

#[test]
fn a_client_that_does_not_log_in_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path().join("data"), Config::default()).unwrap();
    let timeout = Duration::from_millis(300);
    let server = TestServer::with_options(engine, directory, |options| {
        options.authentication_timeout = timeout;
    });
    // A busy machine may take longer than that to log it in.
    let mut session = None;
    wait_for("a login in time", || {
        let mut raw = server.connect();
        raw.send(&startup(&[("user", "alice")]));
        let last = std::iter::from_fn(|| raw.read()).find(|reply| matches!(reply.kind, b'Z' | b'E'));
        session = last.is_some_and(|reply| reply.kind == b'Z').then_some(raw);
        session.is_some()
    });
    let mut session = session.unwrap();
    let began = Instant::now();
    let mut silent = server.connect();
    let mut slow = server.connect();
    slow.send(&startup(&[("user", "alice")])[..7]);
    assert!(has_ended(&mut silent) && has_ended(&mut slow));
    assert!(began.elapsed() >= timeout);
    assert_eq!(session.value("select 1"), "1");
}
