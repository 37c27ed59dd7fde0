//! The standby's side: a receiver against our own server, through a link that breaks, and against peers that are none.
//!
//! # Mutations seen to fail
//! `crates/server/mutations/receiver.toml` lists them.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use clearway_server::StopSignal;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::run::{Receiver, ReceiverEvent, ReceiverOptions, ReceiverParts};
use clearway_server::replication::receiver::status::{ReceiverPhase, ReceiverState};
use clearway_server::replication::receiver::stream::StreamOptions;
use clearway_server::replication::receiver::{
    LogSink, NotFollowed, OwnLog, ReceiverError, ReplayView, TimelineKeeper, base_backup, identify,
};
use clearway_storage::directory_state::directory_state;
use clearway_storage::log_digest::LogDigest;
use clearway_storage::timeline::History;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{Lsn, Storage, StorageError, StorageOptions};
use sha2::{Digest, Sha256};
use support::seeded::Random;
use support::{TestServer, message, wait_for};

const SEGMENT: u64 = 16 << 20;
const TIMEOUT: Duration = Duration::from_secs(20);

/// The log that a sink has received, and how much of it is durable.
#[derive(Default)]
struct Received {
    log: Vec<u8>,
    durable: usize,
    syncs: u64,
}

/// A standby that keeps the log in memory, and whose replay the test sets.
struct Memory {
    begins: u64,
    received: Mutex<Received>,
    replayed: AtomicU64,
    system_identifier: AtomicU64,
    timeline: AtomicU32,
    refuses: AtomicBool,
    /// The sink has no room.
    is_full: AtomicBool,
    /// Writes to come for which the sink finds log of another past.
    unlinked: AtomicU32,
    /// Number of calls that said that a part of a record may have been given up.
    resumes: AtomicU32,
    histories: Mutex<Vec<(u32, Vec<u8>)>>,
    events: Mutex<Vec<String>>,
}

impl Memory {
    fn of(server: &TestServer, begins: u64) -> Arc<Memory> {
        Arc::new(Memory {
            begins,
            received: Mutex::default(),
            replayed: AtomicU64::new(0),
            system_identifier: AtomicU64::new(server.engine.storage().system_identifier()),
            timeline: AtomicU32::new(1),
            refuses: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            unlinked: AtomicU32::new(0),
            resumes: AtomicU32::new(0),
            histories: Mutex::default(),
            events: Mutex::default(),
        })
    }

    fn durable(&self) -> u64 {
        self.begins + self.received.lock().unwrap().durable as u64
    }

    fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    fn receiver(
        self: &Arc<Memory>,
        address: SocketAddr,
        change: impl FnOnce(&mut ReceiverOptions),
    ) -> Receiver {
        let mut options = ReceiverOptions {
            conninfo: format!(
                "host={} port={} application_name=memory sslmode=disable",
                address.ip(),
                address.port()
            )
            .parse()
            .unwrap(),
            timeout: TIMEOUT,
            stream: StreamOptions {
                slot: None,
                status_interval: Duration::from_secs(10),
                feedback: false,
            },
            create_slot: false,
        };
        change(&mut options);
        let events = Arc::clone(self);
        let observer = move |event: &ReceiverEvent| events.events.lock().unwrap().push(event.to_string());
        let parts = ReceiverParts {
            sink: Box::new(Sink(Arc::clone(self))),
            replay: Arc::clone(self) as Arc<dyn ReplayView>,
            timelines: Arc::clone(self) as Arc<dyn TimelineKeeper>,
            keeps_log: None,
            observer: Box::new(observer),
        };
        Receiver::spawn(options, parts).unwrap()
    }
}

struct Sink(Arc<Memory>);

impl LogSink for Sink {
    fn position(&self) -> Lsn {
        Lsn(self.0.begins + self.0.received.lock().unwrap().log.len() as u64)
    }

    fn write(&mut self, position: Lsn, bytes: &[u8]) -> clearway_storage::Result<()> {
        assert_eq!(position, self.position());
        if self.0.is_full.load(Ordering::Relaxed) {
            let (action, file) = ("write", "pg_wal".into());
            return Err(StorageError::DiskFull { action, file });
        }
        let left = self.0.unlinked.load(Ordering::Relaxed);
        if left > 0 {
            self.0.unlinked.store(left - 1, Ordering::Relaxed);
            return Err(StorageError::UnlinkedRecord { position });
        }
        self.0.received.lock().unwrap().log.extend(bytes);
        Ok(())
    }

    fn sync(&mut self) -> clearway_storage::Result<Lsn> {
        let mut received = self.0.received.lock().unwrap();
        received.durable = received.log.len();
        received.syncs += 1;
        Ok(Lsn(self.0.begins + received.durable as u64))
    }

    fn resume(&mut self) {
        self.0.resumes.fetch_add(1, Ordering::Relaxed);
    }
}

impl ReplayView for Memory {
    fn replayed(&self) -> Lsn {
        Lsn(self.replayed.load(Ordering::Relaxed))
    }

    fn oldest_xid_seen(&self) -> u64 {
        0
    }
}

impl OwnLog for Memory {
    fn system_identifier(&self) -> u64 {
        self.system_identifier.load(Ordering::Relaxed)
    }

    fn timeline(&self) -> u32 {
        self.timeline.load(Ordering::Relaxed)
    }

    fn common_end(&self, timeline: u32, history: Option<&[u8]>, log_end: Lsn) -> Result<Lsn, NotFollowed> {
        let history = history.and_then(|text| History::parse(str::from_utf8(text).ok()?, timeline).ok());
        let fork = history.and_then(|history| history.end_of(self.timeline()));
        Ok(fork.map_or(log_end, |fork| fork.min(log_end)))
    }

    fn digest(&self, start: Lsn, end: Lsn) -> clearway_storage::Result<LogDigest> {
        let received = self.received.lock().unwrap();
        let start = start.0.max(self.begins);
        let piece = (start - self.begins) as usize..end.0.saturating_sub(self.begins) as usize;
        let sum = Sha256::digest(received.log.get(piece).unwrap_or_default());
        Ok(LogDigest {
            start: Lsn(start),
            end,
            digits: sum.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }
}

impl TimelineKeeper for Memory {
    fn follow(&self, timeline: u32, history: &[u8], _log_end: Lsn) -> Result<(), NotFollowed> {
        self.histories.lock().unwrap().push((timeline, history.to_vec()));
        if self.refuses.load(Ordering::Relaxed) {
            return Err(NotFollowed::Never("it left this one's at 0/1000000".to_owned()));
        }
        self.timeline.store(timeline, Ordering::Relaxed);
        Ok(())
    }
}

/// The log in the segments on the server's disk between two positions.
fn on_disk(data: &Path, from: u64, upto: u64) -> Vec<u8> {
    let mut log = Vec::new();
    for number in from / SEGMENT..=(upto - 1) / SEGMENT {
        let name = format!("00000001{:08X}{:08X}", number >> 8, number & 0xFF);
        log.extend(std::fs::read(data.join("pg_wal").join(name)).unwrap());
    }
    let begin = (from % SEGMENT) as usize;
    log[begin..begin + (upto - from) as usize].to_vec()
}

fn assert_same_log(server: &TestServer, memory: &Memory) {
    let upto = memory.durable();
    let expected = on_disk(&server.directory.path().join("data"), memory.begins, upto);
    let received = memory.received.lock().unwrap();
    let ours = &received.log[..received.durable];
    let different = || (0..ours.len()).filter(|&at| ours[at] != expected[at]);
    assert!(
        ours == expected,
        "another log, up to {upto}: {} bytes differ, from {:?} to {:?}",
        different().count(),
        different().next().map(|at| memory.begins + at as u64),
        different().next_back().map(|at| memory.begins + at as u64)
    );
}

fn flushed(server: &TestServer) -> u64 {
    server.engine.storage().wal.flushed().0
}

/// Sessions that insert until the body has ended.
fn with_writers(server: &TestServer, body: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    server
        .client()
        .rows("create table notes (id int primary key, what text)");
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (stop, mut client) = (&stop, server.client());
            scope.spawn(move || {
                let text = "x".repeat(500);
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let id = number * 3 + writer;
                    client.rows(&format!("insert into notes values ({id}, '{text}')"));
                }
            });
        }
        let stop_them = StopOnDrop(&stop);
        body();
        drop(stop_them);
    });
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_log_arrives_byte_for_byte_under_writes() {
    let server = TestServer::start();
    let memory = Memory::of(&server, SEGMENT);
    let mut receiver = memory.receiver(server.address, |options| options.stream.feedback = true);
    with_writers(&server, || {
        wait_for("some log", || memory.durable() > SEGMENT + (1 << 20));
        let mut client = server.client();
        let shown = "select application_name, state, flush_lsn from pg_stat_replication";
        let row = client.rows(shown).remove(0);
        assert_eq!(
            (row[0].as_deref(), row[1].is_some()),
            (Some("memory"), true),
            "{row:?}"
        );
    });
    wait_for("the rest", || memory.durable() >= flushed(&server));
    let state = receiver.status().get();
    assert_eq!(
        (state.phase, state.receive_start),
        (ReceiverPhase::Streaming, Lsn(SEGMENT))
    );
    assert!(
        state.last_send_time.is_some() && state.latest_end.0 >= memory.durable(),
        "{state:?}"
    );
    let began = Instant::now();
    receiver.stop();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(receiver.status().get().phase, ReceiverPhase::Stopped);
    assert_same_log(&server, &memory);
    assert_eq!(memory.events().len(), 1, "{:?}", memory.events());
}

/// The server learns of replay's progress when it is made, and not with the next report: commits may wait for it.
#[test]
fn replay_is_reported_when_it_moves() {
    let directory = tempfile::tempdir().unwrap();
    // Only what was asked for is logged.
    let config = Config::from_toml("autovacuum = false").unwrap();
    let engine = Engine::open(directory.path().join("data"), config).unwrap();
    let server = TestServer::over(engine, directory, 100);
    let mut client = server.client();
    client.rows("create table notes (id int primary key)");
    let memory = Memory::of(&server, SEGMENT);
    let _receiver = memory.receiver(server.address, |options| {
        options.stream.status_interval = Duration::from_secs(600);
    });
    wait_for("all log", || memory.durable() >= flushed(&server));
    let mut reported = |column: &str| {
        let rows = client.rows(&format!("select {column} from pg_stat_replication"));
        rows.first().and_then(|row| row[0].clone())
    };
    let end = Lsn(memory.durable()).to_string();
    wait_for("the report", || reported("flush_lsn").as_ref() == Some(&end));
    for before_end in [100, 0] {
        std::thread::sleep(Duration::from_millis(100));
        let replayed = Lsn(memory.durable() - before_end);
        memory.replayed.store(replayed.0, Ordering::Relaxed);
        let began = Instant::now();
        let shown = replayed.to_string();
        while reported("replay_lsn").as_ref() != Some(&shown) {
            assert!(
                began.elapsed() < Duration::from_secs(5),
                "{shown} is not reported"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A link between two addresses. On each connection it passes `passes` bytes to the client, and then cuts it, in the
/// middle of a message; without end if negative.
struct Link {
    address: SocketAddr,
    passes: Arc<AtomicI64>,
    connections: Arc<AtomicU64>,
}

impl Link {
    fn to(target: SocketAddr) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link {
            address: listener.local_addr().unwrap(),
            passes: Arc::new(AtomicI64::new(-1)),
            connections: Arc::default(),
        };
        let (passes, connections) = (Arc::clone(&link.passes), Arc::clone(&link.connections));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::Relaxed);
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass(from, to, None));
                let passes = Arc::clone(&passes);
                std::thread::spawn(move || pass(server, client, Some(&passes)));
            }
        });
        link
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, limit: Option<&AtomicI64>) {
    let (mut bytes, mut passed) = ([0; 4096], 0);
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let most = limit.map_or(-1, |limit| limit.load(Ordering::Relaxed));
        let passing = match most {
            ..0 => count,
            most => count.min(usize::try_from(most - passed).unwrap_or(0)),
        };
        passed += passing as i64;
        // A link that is cut passes nothing more, also if the limit is raised now: bytes would be missing in between.
        if to.write_all(&bytes[..passing]).is_err() || passing < count {
            break;
        }
    }
    for stream in [&from, &to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Cuts in the start-up, in commands and in the middle of log: what was received is synced, the next connection begins
/// behind it, and nothing is there twice or missing.
#[test]
fn a_link_that_is_cut_loses_nothing() {
    let server = TestServer::start();
    let memory = Memory::of(&server, SEGMENT);
    let link = Link::to(server.address);
    link.passes.store(100, Ordering::Relaxed);
    let mut receiver = memory.receiver(link.address, |_| {});
    with_writers(&server, || {
        for passes in [1_500, 222_222, 60_000, 300_001, 1 << 20] {
            let (connections, durable) = (link.connections.load(Ordering::Relaxed), memory.durable());
            link.passes.store(passes, Ordering::Relaxed);
            wait_for("the link to be cut again", || {
                link.connections.load(Ordering::Relaxed) > connections + 1
            });
            // A message is 128 KiB at most, and counts when it is whole.
            if passes >= 200_000 {
                wait_for("progress", || memory.durable() > durable);
            }
        }
        link.passes.store(-1, Ordering::Relaxed);
        let durable = memory.durable();
        wait_for("progress on a sound link", || {
            memory.durable() > durable + (1 << 20)
        });
    });
    wait_for("the rest", || memory.durable() >= flushed(&server));
    receiver.stop();
    assert_same_log(&server, &memory);
    assert!(memory.received.lock().unwrap().syncs > 0);
}

/// The standby has no room for log. Each attempt begins a stream that brings none: that is told once, and so is why.
#[test]
fn a_stream_that_brings_nothing_is_told_once() {
    let server = TestServer::start();
    let memory = Memory::of(&server, SEGMENT);
    memory.is_full.store(true, Ordering::Relaxed);
    let link = Link::to(server.address);
    link.passes.store(-1, Ordering::Relaxed);
    let mut receiver = memory.receiver(link.address, |_| {});
    wait_for("some attempts", || link.connections.load(Ordering::Relaxed) >= 5);
    let told = |what: &str| {
        memory
            .events()
            .iter()
            .filter(|event| event.contains(what))
            .count()
    };
    assert_eq!(told("no space left"), 1, "{:?}", memory.events());
    // Before the error, and after it.
    assert_eq!(told("receiving log from"), 2, "{:?}", memory.events());
    memory.is_full.store(false, Ordering::Relaxed);
    wait_for("the log", || memory.durable() >= flushed(&server));
    receiver.stop();
}

/// A server that is away is not told about at each attempt.
#[test]
fn an_error_is_told_once() {
    let server = TestServer::start();
    let memory = Memory::of(&server, SEGMENT);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut receiver = memory.receiver(nobody, |_| {});
    let status = Arc::clone(receiver.status());
    wait_for("an attempt", || status.get().phase == ReceiverPhase::Waiting);
    std::thread::sleep(Duration::from_millis(1_000));
    receiver.stop();
    let events = memory.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].contains("could not connect") && status.get().error.is_some(),
        "{events:?}"
    );
}

#[test]
fn a_slot_moves_with_what_is_durable_here() {
    let server = TestServer::start();
    let stop = StopSignal::new().unwrap();
    let conninfo = format!("host={} port={}", server.address.ip(), server.address.port());
    let mut client = Client::connect(&conninfo.parse().unwrap(), TIMEOUT, &stop).unwrap();
    assert!(identify::create_slot(&mut client, "standby").unwrap());
    assert!(
        !identify::create_slot(&mut client, "standby").unwrap(),
        "it is there"
    );
    drop(client);
    let memory = Memory::of(&server, SEGMENT);
    let mut receiver = memory.receiver(server.address, |options| {
        options.stream.slot = Some("standby".to_owned());
    });
    with_writers(&server, || {
        wait_for("some log", || memory.durable() > SEGMENT + (1 << 20));
    });
    wait_for("the slot to move", || {
        let slot = server.engine.storage().retention.slot("standby").unwrap();
        slot.restart.is_some_and(|restart| restart.0 >= flushed(&server)) && slot.active_process_id.is_some()
    });
    receiver.stop();
    wait_for("the slot to be free", || {
        let slot = server.engine.storage().retention.slot("standby").unwrap();
        slot.active_process_id.is_none()
    });
}

/// Errors that stay end the receiver, and its status says what to do.
#[test]
fn what_cannot_be_followed_is_refused() {
    let server = TestServer::start();
    server.client().rows("create table notes (id int primary key)");
    let refused = |memory: &Arc<Memory>| -> ReceiverState {
        let receiver = memory.receiver(server.address, |_| {});
        let status = Arc::clone(receiver.status());
        wait_for("the refusal", || status.get().phase == ReceiverPhase::Refused);
        status.get()
    };
    let other = Memory::of(&server, SEGMENT);
    other.system_identifier.store(7, Ordering::Relaxed);
    let error = refused(&other).error.unwrap();
    assert!(
        error.contains("another one") && error.contains("new base backup"),
        "{error}"
    );
    // Log that was removed: nothing before the first segment was ever there.
    let error = refused(&Memory::of(&server, 0x10)).error.unwrap();
    assert!(
        error.contains("no longer has the log from 0/10 on") && error.contains("--create-slot"),
        "{error}"
    );
    // A primary that was left behind may come back as a standby of the new one: that goes on.
    let later = Memory::of(&server, SEGMENT);
    later.timeline.store(2, Ordering::Relaxed);
    let receiver = later.receiver(server.address, |_| {});
    let status = Arc::clone(receiver.status());
    wait_for("the error", || status.get().error.is_some());
    let error = status.get().error.unwrap();
    assert!(
        error.contains("timeline 1") && error.contains("timeline 2"),
        "{error}"
    );
}

/// Log of another past is asked for once more, since the link itself may have been changed on its way. Then the standby has
/// diverged.
#[test]
fn log_of_another_past_is_refused_the_second_time() {
    let server = TestServer::start();
    server.client().rows("create table notes (id int primary key)");
    let memory = Memory::of(&server, SEGMENT);
    memory.unlinked.store(1, Ordering::Relaxed);
    let mut receiver = memory.receiver(server.address, |_| {});
    wait_for("the log", || memory.durable() >= flushed(&server));
    receiver.stop();
    let position = Lsn(memory.durable());
    memory.unlinked.store(2, Ordering::Relaxed);
    let receiver = memory.receiver(server.address, |_| {});
    server.client().rows("insert into notes values (1)");
    let status = Arc::clone(receiver.status());
    wait_for("the end", || status.get().phase == ReceiverPhase::Diverged);
    let error = status.get().error.unwrap();
    assert!(
        error.contains(&format!("from {position} on")) && error.contains("written to separately"),
        "{error}"
    );
    assert_eq!(memory.unlinked.load(Ordering::Relaxed), 0);
    assert_eq!(memory.durable(), position.0, "nothing of it is acknowledged");
}

/// A standby is away for so long that its server has removed what it needs next, and all that the two could compare.
#[test]
fn a_standby_that_was_away_for_too_long_is_told_so() {
    let server = TestServer::start();
    server.client().rows("create table notes (id int primary key)");
    let memory = Memory::of(&server, SEGMENT);
    let mut receiver = memory.receiver(server.address, |_| {});
    wait_for("the log", || memory.durable() >= flushed(&server));
    receiver.stop();
    let storage = server.engine.storage();
    let from = storage.wal.reserved().0;
    while storage.wal.reserved().0 < from + 2 * SEGMENT {
        storage.make_log_room().unwrap();
        let end = storage
            .wal
            .insert_any(RecordKind::NOTHING, clearway_txn::Xid::INVALID, &[0; 1 << 19]);
        storage.wal.flush(end);
    }
    server.client().rows("checkpoint");
    let receiver = memory.receiver(server.address, |_| {});
    let status = Arc::clone(receiver.status());
    wait_for("the refusal", || status.get().phase == ReceiverPhase::Refused);
    let error = status.get().error.unwrap();
    let position = Lsn(memory.durable());
    assert!(
        error.contains(&format!("no longer has the log from {position} on"))
            && error.contains("new base backup"),
        "{error}"
    );
}

/// The standby's directory opens as a database, with the rows that were there when the copy began and sound pages, though
/// sessions wrote meanwhile.
#[test]
fn a_base_backup_becomes_a_directory() {
    let server = TestServer::start();
    let stop = StopSignal::new().unwrap();
    let conninfo = format!(
        "host={} port={}",
        server.directory.path().display(),
        server.address.port()
    );
    let copy = server.directory.path().join("standby");
    with_writers(&server, || {
        wait_for("rows", || {
            server
                .client()
                .value("select count(*) from notes")
                .parse::<u64>()
                .unwrap()
                > 50
        });
        let mut client = Client::connect(&conninfo.parse().unwrap(), TIMEOUT, &stop).unwrap();
        let mut seen = Vec::new();
        base_backup::fetch(&mut client, &copy, true, |progress| seen.push(progress)).unwrap();
        let last = seen.last().unwrap();
        assert!(
            last.total > 0 && last.done >= last.total && seen.len() > 2,
            "{last:?}"
        );
    });
    let state = directory_state(&copy).unwrap();
    assert!(state.standby && !copy.join("backup.unfinished").exists());
    let error = Storage::open(&copy, StorageOptions::default()).unwrap_err();
    assert!(error.to_string().contains("clearway promote"), "{error}");
    let engine = Engine::open_read_only(&copy, Config::default()).unwrap();
    let report = engine.check_with(&mut |_| {}).unwrap();
    assert!(
        report.problems.is_empty() && report.rows > 50,
        "{:?}",
        report.problems
    );
}

/// The link is cut at many places of the copy: no database each time, and the next attempt begins anew.
#[test]
fn a_base_backup_that_is_cut_is_no_database() {
    let server = TestServer::start();
    server.client().rows("create table notes (id int primary key)");
    let link = Link::to(server.address);
    let stop = StopSignal::new().unwrap();
    let conninfo = format!("host={} port={}", link.address.ip(), link.address.port());
    let copy = server.directory.path().join("standby");
    let fetch = || {
        let mut client = Client::connect(&conninfo.parse().unwrap(), TIMEOUT, &stop)?;
        base_backup::fetch(&mut client, &copy, false, |_| {})
    };
    let mut random = Random::begin(5);
    for attempt in 0..12 {
        let most = if attempt < 4 { 60_000 } else { 16 << 20 };
        link.passes
            .store(1_000 + random.below(most) as i64, Ordering::Relaxed);
        let error = fetch().unwrap_err();
        assert!(
            matches!(error, ReceiverError::Closed { .. } | ReceiverError::Lost { .. }),
            "{error:?}"
        );
        assert!(!copy.join("control").exists());
        if copy.exists() {
            let error = Storage::open(&copy, StorageOptions::default()).unwrap_err();
            assert!(error.to_string().contains("was not finished"), "{error}");
        }
    }
    link.passes.store(-1, Ordering::Relaxed);
    fetch().unwrap();
    assert!(directory_state(&copy).unwrap().standby);
    let error = fetch().unwrap_err();
    assert!(error.to_string().contains("there is a database in it"), "{error}");
}

/// Answers each connection with these bytes once it has asked something, and closes it, or holds it open.
fn peer(answers: Vec<Vec<u8>>, holds: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut asked = [0; 4096];
            for answer in &answers {
                let _ = client.read(&mut asked);
                let _ = client.write_all(answer);
            }
            if holds {
                while matches!(client.read(&mut asked), Ok(1..)) {}
            }
        }
    });
    address
}

fn greeting(version: &str) -> Vec<u8> {
    [
        message(b'R', &[0; 4]),
        message(b'S', format!("server_version\0{version}\0").as_bytes()),
        message(b'Z', b"I"),
    ]
    .concat()
}

fn connect(address: SocketAddr) -> Result<Client, ReceiverError> {
    let stop = StopSignal::new().unwrap();
    let conninfo = format!("host={} port={} sslmode=disable", address.ip(), address.port());
    Client::connect(&conninfo.parse().unwrap(), Duration::from_millis(300), &stop)
}

#[test]
fn peers_that_are_no_server_of_ours_are_told_apart() {
    let error = connect(peer(vec![greeting("15.5 (Debian 15.5-0+deb12u1)")], false)).unwrap_err();
    assert!(
        matches!(error, ReceiverError::NotClearway { .. }) && error.is_final(),
        "{error}"
    );
    let error = connect(peer(vec![message(b'R', &[0, 0, 0, 10])], false)).unwrap_err();
    assert!(
        error.to_string().contains("there is no password for it"),
        "{error}"
    );
    let refusal = message(b'E', b"SFATAL\0C57P03\0Mstarting up\0\0");
    let error = connect(peer(vec![refusal], false)).unwrap_err();
    assert!(
        error.to_string().contains("starting up (57P03)") && !error.is_final(),
        "{error}"
    );
    for nonsense in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"d\xFF\xFF\xFF\xFF",
        b"\0\0\0\0\0",
    ] {
        let error = connect(peer(vec![nonsense.to_vec()], true)).unwrap_err();
        assert!(matches!(error, ReceiverError::Protocol { .. }), "{error:?}");
    }
    // It says nothing, or half of something.
    for half in [&b""[..], b"R", b"R\0\0\0\x08\0"] {
        let began = Instant::now();
        let error = connect(peer(vec![half.to_vec()], true)).unwrap_err();
        assert!(matches!(error, ReceiverError::Silent { .. }), "{error:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

/// The answer to IDENTIFY_SYSTEM of a server that is on the first timeline.
fn identity(system: u64) -> Vec<u8> {
    let columns = [
        ("systemid", &*system.to_string()),
        ("timeline", "1"),
        ("xlogpos", "0/2000000"),
    ];
    [result(&columns), message(b'Z', b"I")].concat()
}

/// A result of one row.
fn result(columns: &[(&str, &str)]) -> Vec<u8> {
    let mut description = (columns.len() as u16).to_be_bytes().to_vec();
    let mut row = description.clone();
    for (name, value) in columns {
        description.extend(name.as_bytes());
        description.extend([0; 19]);
        row.extend((value.len() as u32).to_be_bytes());
        row.extend(value.as_bytes());
    }
    [
        message(b'T', &description),
        message(b'D', &row),
        message(b'C', b"X\0"),
    ]
    .concat()
}

/// A piece of log, `length` bytes at this place of the first segment.
fn piece(at: u64, length: usize) -> Vec<u8> {
    let mut piece = vec![b'w'];
    piece.extend((SEGMENT + at).to_be_bytes());
    piece.extend([0; 16]);
    piece.extend(vec![7; length]);
    message(b'd', &piece)
}

/// Log that does not begin where the last piece ended is not written anywhere.
#[test]
fn a_hole_in_the_stream_is_an_error() {
    let server = TestServer::start();
    for wrong in [0, 99, 101, SEGMENT] {
        let memory = Memory::of(&server, SEGMENT);
        let stream = [message(b'W', b"\0\0\0"), piece(0, 100), piece(wrong, 50)].concat();
        let identity = identity(server.engine.storage().system_identifier());
        let address = peer(vec![greeting("15.0 (Clearway)"), identity, stream], true);
        let receiver = memory.receiver(address, |_| {});
        let status = Arc::clone(receiver.status());
        wait_for("the error", || status.get().error.is_some());
        let error = status.get().error.unwrap();
        assert!(error.contains("where 0/1000064 is next"), "{error}");
        drop(receiver);
        assert_eq!(memory.durable(), SEGMENT + 100);
    }
}

/// A stream of a server with one byte changed, a piece left out, or cut: an error or log, and never a panic. The sink
/// asserts that log only ever arrives where the last one ended.
#[test]
fn damaged_answers_are_errors() {
    let server = TestServer::start();
    let mut stream = message(b'W', b"\0\0\0");
    stream.extend([piece(0, 100), piece(100, 50)].concat());
    stream.extend(message(b'd', &[&b"k"[..], &[0; 17]].concat()));
    stream.extend([message(b'c', b""), message(b'C', b"X\0"), message(b'Z', b"I")].concat());
    let identity = identity(server.engine.storage().system_identifier());
    let whole = [greeting("15.0 (Clearway)"), identity, stream];
    let mut random = Random::begin(11);
    let mut phases = std::collections::BTreeMap::<&str, u32>::new();
    for attempt in 0..120 {
        let mut answers = whole.clone();
        let part = random.below(3) as usize;
        let place = random.below(answers[part].len() as u64) as usize;
        match attempt % 3 {
            _ if attempt == 0 => {}
            0 => answers[part].truncate(place),
            1 => answers[part][place] = random.next() as u8,
            _ => {
                let end = (place + 1 + random.below(40) as usize).min(answers[part].len());
                answers[part].drain(place..end);
            }
        }
        let memory = Memory::of(&server, SEGMENT);
        let mut receiver = memory.receiver(peer(answers.to_vec(), false), |options| {
            options.timeout = Duration::from_millis(200);
        });
        let status = Arc::clone(receiver.status());
        wait_for("an outcome", || {
            matches!(
                status.get().phase,
                ReceiverPhase::Waiting | ReceiverPhase::Refused
            )
        });
        receiver.stop();
        if attempt == 0 {
            assert!(memory.durable() >= SEGMENT + 150, "{:?}", status.get());
        }
        let received = memory.received.lock().unwrap();
        // R3 of the stream: however it ended, what was written is durable.
        assert!(received.log.len() < 10_000 && received.durable == received.log.len());
        drop(received);
        *phases.entry(status.get().phase.name()).or_default() += 1;
    }
    // `Stopped`: the stop signal came while it waited.
    assert!(phases.contains_key("stopped"), "{phases:?}");
}

/// Timelines with a server that is on the second one.
#[test]
fn a_newer_timeline_is_asked_about() {
    let server = TestServer::start();
    let system = server.engine.storage().system_identifier();
    let number = system.to_string();
    let ready = message(b'Z', b"I");
    let identity = [
        result(&[("systemid", &number), ("timeline", "2"), ("xlogpos", "0/2000000")]),
        ready.clone(),
    ]
    .concat();
    let history = [
        result(&[
            ("filename", "00000002.history"),
            ("content", "1\t0/1800000\tpromoted\n"),
        ]),
        ready.clone(),
    ]
    .concat();
    let answers = vec![greeting("15.0 (Clearway)"), identity, history];
    let memory = Memory::of(&server, SEGMENT);
    memory.refuses.store(true, Ordering::Relaxed);
    let receiver = memory.receiver(peer(answers.clone(), false), |_| {});
    let status = Arc::clone(receiver.status());
    wait_for("the refusal", || status.get().phase == ReceiverPhase::Diverged);
    let error = status.get().error.unwrap();
    assert!(error.contains("it left this one's at 0/1000000"), "{error}");
    let asked = (2, b"1\t0/1800000\tpromoted\n".to_vec());
    assert_eq!(*memory.histories.lock().unwrap(), [asked]);
    // Accepted: the next stream is of the second timeline, from where the log ends.
    let memory = Memory::of(&server, SEGMENT);
    let mut answers = answers;
    answers.push(message(b'W', b"\0\0\0"));
    let receiver = memory.receiver(peer(answers, true), |_| {});
    wait_for("the stream", || {
        receiver.status().get().phase == ReceiverPhase::Streaming
    });
    assert_eq!(receiver.status().get().timeline, 2);
    assert_eq!(memory.resumes.load(Ordering::Relaxed), 1);
}

/// The server's stop ends the stream in order, and the receiver has all of its log.
#[test]
fn a_server_that_stops_has_sent_everything() {
    let mut server = TestServer::start();
    let memory = Memory::of(&server, SEGMENT);
    let mut receiver = memory.receiver(server.address, |_| {});
    server.client().rows("create table notes (id int primary key)");
    let status = Arc::clone(receiver.status());
    wait_for("the stream", || status.get().phase == ReceiverPhase::Streaming);
    server.stop();
    wait_for("the stop to be told", || {
        memory
            .events()
            .iter()
            .any(|event| event.contains("has shut down"))
    });
    receiver.stop();
    assert_eq!(memory.durable(), flushed(&server));
    assert_same_log(&server, &memory);
}
