//! A bench against a server, whose balances are looked at afterwards.

use std::sync::Arc;
use std::time::Duration;

use clearway_engine::{Config, Discard, Engine, SessionInfo};
use clearway_lab::workload::Workload;
use clearway_lab::{LabError, ServerBenchOptions, run_server_bench};
use clearway_server::{Server, ServerOptions, StopSignal};

/// A sync of a busy disk may take longer than a round.
fn without_disk() -> Config {
    Config {
        fsync: false,
        ..Config::default()
    }
}

/// Stops the server, also when the test fails: the scope waits for it.
struct Ends<'a>(&'a StopSignal);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs `bench` beside a server, with a connection string for it.
fn beside_server(bench: impl FnOnce(&Arc<Engine>, &str, &StopSignal)) {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path().join("data"), without_disk()).unwrap();
    let options = ServerOptions {
        listen: Some("127.0.0.1:0".to_owned()),
        ..ServerOptions::default()
    };
    let server = Server::bind(Arc::clone(&engine), options).unwrap();
    let port = server.local_addr().unwrap().port();
    let stop = StopSignal::new().unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop));
        let conninfo = format!("host=127.0.0.1 port={port} user=bench dbname=postgres");
        let ends = Ends(&stop);
        bench(&engine, &conninfo, &StopSignal::new().unwrap());
        drop(ends);
        running.join().unwrap().unwrap();
    });
}

fn options(conninfo: &str) -> ServerBenchOptions {
    ServerBenchOptions {
        conninfo: conninfo.parse().unwrap(),
        load: None,
        workloads: Workload::PGBENCH.to_vec(),
        clients: vec![1, 3],
        duration: Duration::from_millis(150),
        rounds: 2,
        seed: 7,
    }
}

#[test]
fn a_server_is_measured_and_its_balances_add_up() {
    beside_server(|engine, conninfo, stop| {
        // Before there are tables.
        let missing = run_server_bench(&options(conninfo), stop).unwrap_err();
        assert!(missing.to_string().contains("pgbench_branches"), "{missing}");
        let loading = ServerBenchOptions {
            load: Some(1),
            ..options(conninfo)
        };
        let result = run_server_bench(&loading, stop).unwrap();
        assert_eq!((result.scale, &result.tls), (1, &None));
        assert!(result.version.contains("Clearway"), "{}", result.version);
        let points: Vec<_> = result
            .cells
            .iter()
            .map(|cell| (cell.workload, cell.clients))
            .collect();
        let wanted = Workload::PGBENCH
            .iter()
            .flat_map(|workload| [1, 3].map(|n| (workload.name(), n)));
        assert_eq!(points, wanted.collect::<Vec<_>>());
        for cell in &result.cells {
            assert!(
                cell.tps > 0.0 && 0.0 < cell.p50_us && cell.p50_us <= cell.p99_us,
                "{cell:?}"
            );
        }
        // What no client has acknowledged.
        let mut session = engine.session(SessionInfo::default()).unwrap();
        let change = "update pgbench_accounts set abalance = abalance + 1 where aid = 1";
        session.execute_simple(change, &mut Discard::default()).unwrap();
        let unbalanced = run_server_bench(&options(conninfo), stop).unwrap_err();
        assert!(matches!(unbalanced, LabError::Unbalanced { .. }), "{unbalanced}");
    });
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let stop = StopSignal::new().unwrap();
    // Nothing is connected to.
    let given = options("host=127.0.0.1 port=1");
    for change in [
        |options: &mut ServerBenchOptions| options.workloads = vec![Workload::Tpcc],
        |options: &mut ServerBenchOptions| options.clients = vec![0],
        |options: &mut ServerBenchOptions| options.rounds = 0,
        |options: &mut ServerBenchOptions| options.duration = Duration::ZERO,
        |options: &mut ServerBenchOptions| options.load = Some(0),
    ] {
        let mut changed = given.clone();
        change(&mut changed);
        let refused = run_server_bench(&changed, &stop).unwrap_err();
        assert!(
            matches!(refused, LabError::UnknownName { .. } | LabError::BadNumber { .. }),
            "{refused}"
        );
    }
    assert!(matches!(
        run_server_bench(&given, &stop),
        Err(LabError::Measured(_))
    ));
}
