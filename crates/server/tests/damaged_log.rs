//! A synchronous standby whose link changes bytes, and one that cannot replay: what it acknowledges, what every view says, what
//! the primary's slot keeps, and what a promotion says.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clearway_engine::{Config, Engine};
use clearway_server::StopSignal;
use clearway_server::replication::following::{Following, Promotions};
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::run::ReceiverOptions;
use clearway_server::replication::receiver::stream::StreamOptions;
use clearway_server::replication::receiver::{base_backup, identify};
use clearway_storage::Lsn;
use clearway_storage::wal::record::RecordKind;
use support::{Raw, TestServer, query, wait_for};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A link to the primary that changes a byte in each of the next `flips` messages with log.
struct Link {
    address: SocketAddr,
    flips: Arc<AtomicU32>,
    /// It changes the length of the first record, to a larger one.
    lengthens: Arc<AtomicBool>,
}

impl Link {
    fn to(target: SocketAddr) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let flips = Arc::<AtomicU32>::default();
        let lengthens = Arc::<AtomicBool>::default();
        let of_link = (Arc::clone(&flips), Arc::clone(&lengthens));
        std::thread::spawn(move || {
            let places = Arc::<AtomicU64>::default();
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass(from, to, |_| {}));
                let ((flips, lengthens), places) = (of_link.clone(), Arc::clone(&places));
                std::thread::spawn(move || {
                    pass(server, client, |bytes| flip(bytes, &flips, &lengthens, &places));
                });
            }
        });
        Link {
            address,
            flips,
            lengthens,
        }
    }
}

/// Behind the headers of the message and of the log in it, elsewhere each time.
fn flip(bytes: &mut [u8], flips: &AtomicU32, lengthens: &AtomicBool, places: &AtomicU64) {
    const HEADERS: usize = 5 + 25;
    let is_log = bytes.first() == Some(&b'd') && bytes.get(5) == Some(&b'w') && bytes.len() > HEADERS;
    let one_less = |left: u32| left.checked_sub(1);
    if is_log
        && flips
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    {
        if lengthens.load(Ordering::Relaxed) {
            bytes[HEADERS + 2] ^= 4;
            return;
        }
        let place = places.fetch_add(7, Ordering::Relaxed) as usize;
        let at = HEADERS + place % (bytes.len() - HEADERS).min(33);
        bytes[at] ^= 1 << (place % 8);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8])) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        change(&mut bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for stream in [&from, &to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// A primary with a table, its synchronous standby `s` behind a link, with a slot, and what follows.
struct Pair {
    primary: TestServer,
    link: Link,
    standby: TestServer,
    following: Following,
    events: Arc<Mutex<Vec<String>>>,
}

impl Pair {
    fn new() -> Pair {
        let text = "autovacuum = false\nsynchronous_standby_names = 'FIRST 1 (s)'";
        let primary = TestServer::over_config(Config::from_toml(text).unwrap());
        local(&primary).rows("create table notes (id int primary key, what text)");
        let link = Link::to(primary.address);
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let conninfo = format!("host=127.0.0.1 port={} application_name=s", link.address.port());
        let keeps_log = copy(&conninfo, &data);
        let engine = Engine::open_standby(&data, Config::from_toml("autovacuum = false").unwrap()).unwrap();
        let options = ReceiverOptions {
            conninfo: conninfo.parse().unwrap(),
            timeout: TIMEOUT,
            stream: StreamOptions {
                slot: Some("s".to_owned()),
                status_interval: Duration::from_millis(50),
                feedback: false,
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
        Pair {
            primary,
            link,
            standby: TestServer::over(engine, directory, 100),
            following,
            events,
        }
    }

    /// True if the standby has reported something like this.
    fn was_told(&self, what: &str) -> bool {
        self.events
            .lock()
            .unwrap()
            .iter()
            .any(|event| event.contains(what))
    }

    fn stop(mut self) {
        self.following.stop();
        self.standby.stop();
        self.primary.stop();
    }
}

/// A session whose commits wait for no standby.
fn local(server: &TestServer) -> Raw {
    let mut client = server.connect();
    client.start(&[("user", "alice"), ("synchronous_commit", "local")]);
    client
}

fn copy(conninfo: &str, data: &Path) -> Client {
    let stop = StopSignal::new().unwrap();
    let mut client = Client::connect(&conninfo.parse().unwrap(), TIMEOUT, &stop).unwrap();
    identify::create_slot(&mut client, "s").unwrap();
    base_backup::fetch(&mut client, data, false, |_| {}).unwrap();
    client
}

/// Waits until the standby shows its receiver and its replay so.
fn shows_threads(pair: &Pair, wanted: &str) {
    let mut reader = pair.standby.client();
    let threads = "select backend_type, wait_event_type, wait_event from pg_stat_activity \
                   where backend_type in ('startup', 'walreceiver') order by 1";
    wait_for(wanted, || {
        let shown = reader.rows(threads);
        let columns = |row: &Vec<Option<String>>| row.iter().flatten().cloned().collect::<Vec<_>>().join("|");
        let shown: Vec<String> = shown.iter().map(columns).collect();
        shown.join(", ") == wanted
    });
}

/// The primary ends. The standby shows that its replay waits, and that no server sends log.
#[test]
fn a_standby_without_a_primary_says_so() {
    let mut pair = Pair::new();
    pair.primary
        .client()
        .rows("insert into notes values (1, 'replayed')");
    shows_threads(
        &pair,
        "startup|Activity|RecoveryWalStream, walreceiver|Activity|WalReceiverMain",
    );
    pair.primary.stop();
    shows_threads(&pair, "startup|Timeout|RecoveryRetrieveRetryInterval");
    pair.following.stop();
    pair.standby.stop();
}

/// The link changes a byte again and again. No commit is answered before the standby has its record as it was logged; each
/// one is in the end, and the standby shows it. A place that fails several times is reported as often.
#[test]
fn a_link_that_changes_bytes_heals() {
    let pair = Pair::new();
    let mut client = pair.primary.client();
    client.rows("insert into notes values (0, 'first')");
    for id in 1..=8 {
        pair.link.flips.store(1, Ordering::Relaxed);
        client.rows(&format!("insert into notes values ({id}, 'more')"));
        wait_for("the byte to be changed", || {
            pair.link.flips.load(Ordering::Relaxed) == 0 || {
                local(&pair.primary).rows("update notes set what = 'less' where id = 0");
                false
            }
        });
    }
    assert!(pair.was_told("sends no whole log record at"), "{:?}", pair.events);
    pair.link.flips.store(4, Ordering::Relaxed);
    client.rows("insert into notes values (9, 'last')");
    let shown = || pair.standby.client().value("select count(*) from notes") == "10";
    wait_for("all rows on the standby", shown);
    let mut standby = pair.standby.client();
    assert_eq!(
        standby.value("select status from pg_stat_wal_receiver"),
        "streaming"
    );
    assert_eq!(pair.standby.engine.storage().standby().unwrap().failure(), None);
    pair.stop();
}

/// The link makes a record longer than it is, and nothing follows: the standby does not wait for the rest for ever, and has
/// not acknowledged the beginning.
#[test]
fn a_longer_record_is_asked_for_again() {
    let pair = Pair::new();
    let mut client = pair.primary.client();
    client.rows("insert into notes values (1, 'first')");
    pair.link.lengthens.store(true, Ordering::Relaxed);
    pair.link.flips.store(1, Ordering::Relaxed);
    client.rows("insert into notes values (2, 'second')");
    assert!(
        pair.was_told("has sent the beginning of a log record"),
        "it was answered before the record was sent again: {:?}",
        pair.events
    );
    let shown = || pair.standby.client().value("select count(*) from notes") == "2";
    wait_for("both rows on the standby", shown);
    pair.stop();
}

/// A record that is whole, and cannot be replayed. The standby acknowledges nothing from then on and says so everywhere; the
/// primary's commits wait, and its slot keeps the log that replay has not done. No promotion, by no way.
#[test]
fn a_standby_that_cannot_replay_acknowledges_nothing() {
    let mut pair = Pair::new();
    let mut client = pair.primary.client();
    client.rows("insert into notes values (1, 'replayed')");
    shows_threads(
        &pair,
        "startup|Activity|RecoveryWalStream, walreceiver|Activity|WalReceiverMain",
    );
    let storage = Arc::clone(pair.primary.engine.storage());
    let standby = Arc::clone(pair.standby.engine.storage().standby().unwrap());
    let bad = storage.wal.reserved();
    storage
        .wal
        .insert_any(RecordKind::CLEANUP, clearway_txn::Xid::INVALID, &[1, 2, 3]);
    storage.wal.flush(storage.wal.reserved());
    wait_for("the failure", || standby.failure().is_some());
    let replayed = standby.replayed();
    assert_eq!(replayed, bad);

    let mut reader = pair.standby.client();
    wait_for("the receiver to end", || {
        reader.value("select status from pg_stat_wal_receiver") == "replay failed"
    });
    assert!(pair.was_told("replay has failed, so no more log is received or acknowledged"));
    shows_threads(&pair, "startup|Activity|RecoveryFailed");
    assert_eq!(reader.value("select count(*) from notes"), "1", "it reads");
    let mut other = local(&pair.primary);
    wait_for("the primary to be without a standby", || {
        other.value("select count(*) from pg_stat_replication") == "0"
    });
    client.send(&query("insert into notes values (2, 'not replayed')"));
    wait_for("the commit to wait for a standby", || {
        let activity = pair.primary.engine.activity();
        activity
            .iter()
            .any(|session| session.wait_event == Some("SyncRep"))
    });
    for _ in 0..3 {
        other.rows("insert into notes select g, 'local' from generate_series(10, 20) g; delete from notes where id >= 10");
        other.query("checkpoint");
    }
    let kept: Lsn = other
        .value("select restart_lsn from pg_replication_slots where slot_name = 's'")
        .parse()
        .unwrap();
    assert!(kept <= replayed, "{kept} is behind {replayed}");

    let refusal = reader.query("select pg_promote()");
    let refusal = refusal.iter().find(|reply| reply.kind == b'E').unwrap();
    assert_eq!(refusal.sqlstate(), "55000", "{refusal:?}");
    let refused = pair.standby.engine.promote("a test").unwrap_err();
    assert!(refused.to_string().contains("replay has failed"), "{refused}");
    std::fs::write(pair.standby.engine.storage().dir().join("promote.signal"), "").unwrap();
    wait_for("the command's refusal", || {
        pair.was_told("not promoted: replay has failed")
    });
    assert_eq!(reader.value("select pg_is_in_recovery()"), "t");
    pair.following.stop();
    pair.standby.stop();
    // The commit that waits is not answered: its session ends with the server.
    drop(client);
}
