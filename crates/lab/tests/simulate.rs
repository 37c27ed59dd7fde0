//! Experiments on the simulated machine: the same bytes each time, whatever computes them.

use std::alloc::System;

use clearway_engine::Mechanisms;
use clearway_lab::Result;
use clearway_lab::simulate::{
    EXPERIMENTS, Experiment, JAMS, LatchFamily, OfItsTime, Point, Seeds, SimulateOptions, SimulationResult,
    SpinKind, Variant, html, run_experiment, set_costs, simulated_switches, text,
};
use clearway_machine::Switch;
use clearway_sim::{Activity, LineAllocator, MachineModel};
use clearway_txn::{PROC_ARRAY_LATCH_TIME, ProcArrayLatchVariant};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

fn run(experiment: Experiment, seed: u64, threads: usize) -> Result<SimulationResult> {
    let machine = MachineModel::load(&experiment.machine)?;
    run_experiment(&SimulateOptions {
        experiment,
        machine,
        seeds: Seeds::one(seed),
        trace: None,
        shard: None,
        sweep: false,
        progress: false,
        threads,
    })
}

/// A built-in experiment that takes little time, with more contention than it has as it is.
fn shortened(name: &str) -> Experiment {
    let mut experiment = Experiment::load(name).unwrap();
    let settings = [
        "warm_up_ms=1",
        "measure_ms=3",
        "work_us=50",
        "device_factor=0.1",
        "range_xids=20000",
        // Of a standby's primary: arrays of four times as many entries are made for each point.
        "primary_sessions=1000",
    ];
    for setting in settings {
        experiment.set(setting).unwrap();
    }
    experiment
}

fn small(name: &str, threads: usize) -> SimulationResult {
    let mut experiment = shortened(name);
    experiment.clients = if name == "one-client" {
        vec![1]
    } else {
        vec![3, 60]
    };
    run(experiment, 7, threads).unwrap()
}

/// Mutation: draw the clients' random numbers from the host's clock (or put a `HashMap` with the host's
/// random hasher under the buffer mapping) → the bytes differ.
#[test]
fn the_same_bytes_each_time() {
    for (name, _) in EXPERIMENTS {
        let bytes = |threads| serde_json::to_string(&small(name, threads)).unwrap();
        let first = bytes(1);
        assert_eq!(first, bytes(2), "{name}");
        assert!(first.contains("\"tps\""));
    }
}

#[test]
fn every_client_gets_something_done() {
    let result = small("numa-simple-update", 2);
    assert_eq!(result.points.len(), 8);
    for point in &result.points {
        assert!(point.transactions as usize > point.clients, "{point:?}");
        let all: f64 = point.shares.iter().map(|share| share.share).sum();
        assert!((all - 1.0).abs() < 1e-6, "shares of time come to {all}");
    }
    // Names of the real structures, not of the model's.
    let names: Vec<_> = result.points[5]
        .report
        .lines
        .iter()
        .map(|l| l.name.as_str())
        .collect();
    for expected in ["ProcArray", "WALInsert", "frames", "commit log"] {
        assert!(names.contains(&expected), "{expected} is not among {names:?}");
    }
}

/// A preset, and each of its switches that is simulated in each other variant.
fn preset_and_changes(preset: &str) -> Vec<Variant> {
    let variant = |name: String, mechanisms| Variant {
        name,
        latch: LatchFamily::default(),
        spin: SpinKind::default(),
        work_alone: false,
        multixact: None,
        of_its_time: OfItsTime::default(),
        warm_up_ms: None,
        mechanisms,
    };
    let unchanged = Mechanisms::preset(preset).unwrap();
    let mut variants = vec![variant(preset.to_owned(), unchanged)];
    let simulated = simulated_switches();
    for switch in Mechanisms::SWITCHES
        .iter()
        .filter(|s| simulated.contains(&s.name))
    {
        for choice in switch.variants {
            let mut changed = unchanged;
            changed.set_variant(switch.name, choice.name).unwrap();
            if changed != unchanged {
                variants.push(variant(
                    format!("{preset} with {}={}", switch.name, choice.name),
                    changed,
                ));
            }
        }
    }
    variants
}

/// With as many clients as 4 sockets have hardware threads, and little work between, the workers of every variant
/// contend, poll and sleep. A variant that both presets have runs under their names, every other one under its own too.
///
/// Mutation: let the spin latch's slow path step its delay before it looks at its word → the simulation of
/// `log_reserve=spin-latch` ends with a promise to poll that was broken.
#[test]
fn every_variant_of_every_switch_is_simulated() {
    let mut failures = Vec::new();
    for (name, preset) in [
        ("numa-simple-update", "classic"),
        ("numa-simple-update", "clearway"),
        ("numa-tpcb", "clearway"),
    ] {
        for variant in preset_and_changes(preset) {
            let mut experiment = shortened(name);
            for setting in ["work_us=5", "client_us=1", "measure_ms=2"] {
                experiment.set(setting).unwrap();
            }
            experiment.clients = vec![144];
            let what = format!("{name} of {}", variant.name);
            experiment.variants = vec![variant];
            match run(experiment, 7, 1) {
                Err(error) => failures.push(error.to_string()),
                Ok(result) if result.points[0].transactions == 0 => {
                    failures.push(format!("{what}: no transaction"));
                }
                Ok(_) => {}
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Number of times that workers slept for the event.
fn sleeps(result: &SimulationResult, event: &str) -> u64 {
    let waits = result.points.iter().flat_map(|point| &point.report.waits);
    waits
        .filter(|wait| wait.event == event)
        .map(|wait| wait.count)
        .sum()
}

/// Mutation: let the log writer's pass flush up to 0 → nothing is synced until the log's buffer is full.
#[test]
fn commits_that_do_not_wait_are_flushed_by_the_log_writer() {
    let mut experiment = shortened("numa-simple-update");
    experiment.variants.truncate(1);
    experiment.clients = vec![60];
    // Three turns of the log writer, at a disk so slow that commits that waited for it would show.
    for setting in ["measure_ms=30", "device_factor=20"] {
        experiment.set(setting).unwrap();
    }
    let waited = run(experiment.clone(), 7, 1).unwrap();
    experiment.set("synchronous_commit=off").unwrap();
    let behind = run(experiment, 7, 1).unwrap();
    assert!(behind.points[0].tps > 2.0 * waited.points[0].tps);
    assert_eq!(sleeps(&waited, "Activity:WalWriterMain"), 0);
    let turns = sleeps(&behind, "Activity:WalWriterMain");
    assert!((3..=5).contains(&turns), "{turns} turns of the log writer");
    assert!((2..=turns).contains(&sleeps(&behind, "IO:WALSync")));
}

/// Mutation: let the skeleton's sessions have no marks → no snapshot asks for the newest commit that may be seen early.
#[test]
fn where_commits_are_seen_early_readers_ask_what_is_durable() {
    let accesses = |lock_release: &str| {
        let mut experiment = shortened("numa-tpcb");
        experiment.set(&format!("lock_release={lock_release}")).unwrap();
        experiment.variants.truncate(1);
        experiment.clients = vec![60];
        let result = run(experiment, 7, 1).unwrap();
        let point = &result.points[0];
        let lines = point.report.lines.iter().find(|lines| lines.name == "commits");
        lines.map_or(0, |lines| lines.accesses) as f64 / point.transactions as f64
    };
    // Five snapshots a transaction, of which each asks for the newest early commit.
    let (after_flush, early) = (accesses("after-flush"), accesses("early"));
    assert!(early > after_flush + 5.0, "{after_flush} accesses and {early}");
}

/// Under the preset a SELECT of a cached, settled row changes no cache line that another session uses, and 144 sessions on
/// four sockets lose less than a twentieth to those that they read.
///
/// Mutations that it should catch (`crates/lab/mutations/simulate.toml`): the simulated pages are read pinned.
#[test]
fn a_point_select_changes_no_shared_line() {
    let mut experiment = Experiment::load("point-select").unwrap();
    experiment.clients = vec![144];
    for setting in ["warm_up_ms=5", "measure_ms=1"] {
        experiment.set(setting).unwrap();
    }
    let names = ["work alone", "classic", "clearway", "csn"];
    experiment
        .variants
        .retain(|variant| names.contains(&variant.name.as_str()));
    let result = run(experiment, 7, 2).unwrap();
    let point = |name: &str| result.points.iter().find(|point| point.variant == name).unwrap();
    assert!(point("classic").shared_changes > 10.0, "{}", text(&result));
    for name in ["clearway", "csn"] {
        assert!(point(name).transactions > 1_000);
        assert_eq!(point(name).shared_changes, 0.0, "{}", text(&result));
        let share = point(name).tps / point("work alone").tps;
        assert!(
            share >= 0.95,
            "{name}: {share} of what the work alone reaches\n{}",
            text(&result)
        );
    }
}

/// TPC-C with 60 clients and little work, of one variant.
fn tpcc(variant: &str, settings: &[&str]) -> Point {
    tpcc_with_clients(60, variant, settings)
}

fn tpcc_with_clients(clients: usize, variant: &str, settings: &[&str]) -> Point {
    let mut experiment = shortened("read-biased-tpcc");
    experiment.clients = vec![clients];
    experiment.variants.retain(|known| known.name == variant);
    for setting in ["work_us=20", "client_us=0", "measure_ms=6"]
        .iter()
        .chain(settings)
    {
        experiment.set(setting).unwrap();
    }
    run(experiment, 7, 1).unwrap().points.remove(0)
}

/// Uses of the lines of this name, a transaction; of the whole run, which is a sixth longer than the window.
fn accesses(point: &Point, name: &str) -> f64 {
    let lines = point.report.lines.iter().find(|lines| lines.name == name);
    lines.map_or(0, |lines| lines.accesses) as f64 / point.transactions as f64
}

/// The mix comes out, each statement takes its snapshot, and what waits at the latch is that latch's.
///
/// Mutations that it should catch (`crates/lab/mutations/simulate.toml`): all transactions are new-orders; statements take
/// no snapshot; the latch's lines have no name.
#[test]
fn tpcc_has_its_mix_and_a_snapshot_for_each_statement() {
    let point = tpcc("plain", &[]);
    let figures = point.tpcc.clone().unwrap();
    assert_eq!(figures.kinds.iter().sum::<u64>(), point.transactions);
    assert!(point.transactions > 1_000, "{point:?}");
    for (kind, share) in figures.kinds.iter().zip([0.45, 0.43, 0.04, 0.04, 0.04]) {
        let found = *kind as f64 / point.transactions as f64;
        assert!((found - share).abs() < 0.03, "{:?}", figures.kinds);
    }
    let nopm = 60.0 * point.tps * figures.kinds[0] as f64 / point.transactions as f64;
    assert!((figures.new_orders_per_minute / nopm - 1.0).abs() < 1e-9);
    assert!((5.2..6.2).contains(&figures.snapshots), "{figures:?}");
    // Of a hundred transactions eight only read.
    let shared = figures.snapshots / (figures.snapshots + 0.92);
    assert!((figures.shared_share - shared).abs() < 0.01, "{figures:?}");
    // A snapshot changes the latch's word when it begins and when it is taken.
    let at_the_latch = accesses(&point, "ProcArray latch");
    assert!(at_the_latch > 2.0 * figures.snapshots, "{at_the_latch}");
    assert!(accesses(&tpcc("csn", &[]), "ProcArray latch") < 0.5 * at_the_latch);
    // In the window as in the whole run.
    let lines = &point.report.lines;
    let latch = lines
        .iter()
        .find(|lines| lines.name == "ProcArray latch")
        .unwrap();
    let account = point.report.account;
    let busy_ns = (account.total() - account.picoseconds(Activity::Idle)) as f64 / 1e3;
    let whole = (latch.transfer_ns + latch.queue_ns + latch.spin_ns) as f64 / busy_ns;
    let ratio = figures.latch_share / whole;
    assert!(
        whole > 0.0 && (0.7..1.4).contains(&ratio),
        "{ratio} times {whole}"
    );
}

/// Whatever the latch over ProcArray is, each acquisition and each release of it is accounted for, hits as well as waits.
///
/// Mutations that it should catch (`crates/lab/mutations/simulate.toml`): neither acquisitions nor releases are accounted
/// for; releases are not; what is so far is nothing.
#[test]
fn the_time_in_acquire_and_release_is_that_of_each_variant() {
    let rmw_hit = MachineModel::load("granite-rapids-2s").unwrap().coherence.rmw_hit;
    let latches = ProcArrayLatchVariant::ALL
        .iter()
        .map(|latch| ("plain", latch.name()));
    for (variant, latch) in latches.chain([("fetch-add", "plain"), ("queued", "plain")]) {
        let latch = format!("proc_array_latch={latch}");
        let name = format!("{variant}, {latch}");
        for clients in [1, 60] {
            let point = tpcc_with_clients(clients, variant, &[&latch]);
            let figures = point.tpcc.as_ref().unwrap();
            let times = &point.report.cpu_times[0];
            assert_eq!(times.name, PROC_ARRAY_LATCH_TIME);
            // An acquisition and a release for each snapshot and for most ends; some before and after the window too.
            let calls = times.count as f64 / point.transactions as f64;
            let snapshots = 2.0 * figures.snapshots;
            assert!(
                (snapshots..1.7 * snapshots).contains(&calls),
                "{name}: {calls}, {figures:?}"
            );
            let account = point.report.account;
            let busy_ns = (account.total() - account.picoseconds(Activity::Idle)) as f64 / 1e3;
            let ratio = figures.acquire_release_share / (times.total_ns as f64 / busy_ns);
            assert!((0.6..1.6).contains(&ratio), "{name}: {ratio} of the whole run's");
            assert!(
                figures.acquire_release_share > figures.latch_share,
                "{name}: {figures:?}"
            );
            if clients == 1 {
                // The line stays where it is. An acquisition and a release are an atomic instruction each at least.
                assert!(
                    figures.latch_share < 0.1 * figures.acquire_release_share,
                    "{name}: {figures:?}"
                );
                let call_ns = times.total_ns as f64 / times.count as f64;

                assert!((rmw_hit..12.0 * rmw_hit).contains(&call_ns), "{name}: {call_ns}");
            }
        }
    }
}

/// Mutations that it should catch (`crates/lab/mutations/simulate.toml`): `arrays` and `calls` are not looked at.
#[test]
fn tpcc_has_a_statement_a_line_and_a_request_a_statement_if_asked() {
    let lines = tpcc("plain", &["arrays=0"]).tpcc.unwrap();
    assert!((25.0..31.0).contains(&lines.snapshots), "{lines:?}");
    assert!(lines.shared_share > 0.96, "{lines:?}");
    let requests = |calls: &str| {
        let point = tpcc("plain", &["client_us=5", calls]);
        let clients_us = point.report.account.picoseconds(Activity::Client) as f64 / 1e6;
        clients_us / 5.0 / point.transactions as f64
    };
    // The request itself, and one for each statement.
    let (one, each) = (requests("calls=1"), requests("calls=0"));
    assert!(
        (0.9..1.6).contains(&one) && (6.0..9.0).contains(&each),
        "{one}, {each}"
    );
}

/// With one client a transaction of the experiment takes the CPU for as long as natively, 270 µs.
///
/// Mutation that it should catch (`crates/lab/mutations/simulate.toml`): a delivery takes a tenth of its work.
#[test]
fn tpcc_works_for_as_long_as_natively() {
    let mut experiment = Experiment::load("read-biased-tpcc").unwrap();
    experiment.clients = vec![1];
    for setting in ["client_us=0", "measure_ms=400"] {
        experiment.set(setting).unwrap();
    }
    experiment.variants.truncate(1);
    let machine = MachineModel::load(&experiment.machine).unwrap();
    let point = run(experiment, 7, 1).unwrap().points.remove(0);
    let idle = point
        .shares
        .iter()
        .find(|share| share.activity == Activity::Idle.name());
    let busy_us = (1.0 - idle.unwrap().share) * machine.cpus() as f64 * 1e6 / point.tps;
    assert!((250.0..290.0).contains(&busy_us), "{busy_us}");
}

fn share_of(point: &Point, activity: Activity) -> f64 {
    let share = point
        .shares
        .iter()
        .find(|share| share.activity == activity.name());
    share.map_or(0.0, |share| share.share)
}

/// As many clients as CPUs, and twice as many loops: each CPU has three threads that never sleep, and the clients have a
/// third of the time.
#[test]
fn beside_twice_as_many_loops_as_cpus_clients_have_a_third_of_them() {
    let mut experiment = Experiment::load("latch-mix").unwrap();
    let cpus = MachineModel::load("cloud-16").unwrap().cpus();
    experiment.machine = "cloud-16".to_owned();
    experiment.clients = vec![cpus];
    experiment.variants.truncate(1);
    for setting in [
        "read_percent=100",
        "critical_ns=0",
        "outside_ns=100000",
        "measure_ms=400",
    ] {
        experiment.set(setting).unwrap();
    }
    let alone = run(experiment.clone(), 7, 1).unwrap().points.remove(0);
    assert_eq!(share_of(&alone, Activity::OtherPrograms), 0.0);
    experiment.set(&format!("beside={}", 2 * cpus)).unwrap();
    let beside = run(experiment, 7, 1).unwrap().points.remove(0);
    let others = share_of(&beside, Activity::OtherPrograms);
    assert!((0.64..0.69).contains(&others), "{:?}", beside.shares);
    let ratio = beside.tps / alone.tps;
    assert!((0.31..0.36).contains(&ratio), "{ratio}");
}

/// Commits beside loops: each sync wakes a worker, which may interrupt a loop, or waits until its slice ends.
#[test]
fn commits_beside_loops_depend_on_who_may_interrupt() {
    let mut experiment = Experiment::load("log-flush").unwrap();
    experiment.machine = "cloud-16".to_owned();
    experiment.clients = vec![16];
    experiment.variants.truncate(1);
    experiment.set("beside=32").unwrap();
    let tps = |preemption: &str| {
        let mut machine = MachineModel::load(&experiment.machine).unwrap();
        set_costs(&mut machine, [format!("os.wakeup_preemption={preemption}")]).unwrap();
        let options = SimulateOptions {
            experiment: experiment.clone(),
            machine,
            seeds: Seeds::one(7),
            trace: None,
            shard: None,
            sweep: false,
            progress: false,
            threads: 1,
        };
        let point = run_experiment(&options).unwrap().points.remove(0);
        assert!(share_of(&point, Activity::Idle) < 0.05, "{:?}", point.shares);
        point.tps
    };
    let (may, may_not) = (tps("true"), tps("false"));
    assert!(may > 2.0 * may_not && may_not > 0.0, "{may}, {may_not}");
}

/// A standby with 36 readers, `range` xids after the oldest transaction began.
fn standby(range: u32) -> SimulationResult {
    let mut experiment = Experiment::load("standby-long-transaction").unwrap();
    experiment.clients = vec![36];
    let range = format!("range_xids={range}");
    for setting in ["warm_up_ms=2", "measure_ms=4", &range] {
        experiment.set(setting).unwrap();
    }
    let names = ["array 2010", "array 2022", "bitmap"];
    experiment
        .variants
        .retain(|variant| names.contains(&variant.name.as_str()));
    run(experiment, 7, 2).unwrap()
}

/// While a transaction stays open, each snapshot of `array` walks over all that have ended since, and replay waits behind the
/// readers' latches, unless the array is compacted. `bitmap` has no latch, and its readers go on.
///
/// Mutations that it should catch (`crates/lab/mutations/simulate.toml`): the transaction that stays open ends with the
/// others; readers take no snapshot.
#[test]
fn an_open_transaction_slows_a_standby_with_the_array_down() {
    let (before, open) = (standby(0), standby(1_000_000));
    let point = |result: &SimulationResult, name: &str| {
        let point = result.points.iter().find(|point| point.variant == name).unwrap();
        (point.tps, point.standby.clone().unwrap())
    };
    let ((all, replay), (left, left_replay)) = (point(&before, "array 2010"), point(&open, "array 2010"));
    assert!(left < 0.2 * all, "{left} of {all}");
    assert!(left_replay.ended_per_second < 0.2 * replay.ended_per_second);
    assert!(left_replay.snapshot_share > 0.9, "{left_replay:?}");
    assert!(left_replay.replay_waits_share > 0.5, "{left_replay:?}");
    let ((all, replay), (left, left_replay)) = (point(&before, "bitmap"), point(&open, "bitmap"));
    assert!(left > 0.95 * all, "{left} of {all}");
    assert!(left_replay.ended_per_second > 0.95 * replay.ended_per_second);
    assert!(left_replay.snapshot_share > 0.0, "{left_replay:?}");
    assert_eq!(left_replay.replay_waits_share, 0.0);
    assert_eq!(left_replay.readers_wait_share, 0.0);
    assert!(point(&open, "array 2022").0 > 10.0 * point(&open, "array 2010").0);
    assert!(text(&open).contains("replay waits") && !text(&small("latch-mix", 2)).contains("replay waits"));
}

/// Ranges shorter than what the set-up ends one by one, of none or more transactions than sessions.
#[test]
fn a_standby_is_simulated_whatever_runs_on_the_primary() {
    for (range, running, sessions) in [(1, 1, 1), (3, 40, 1), (49_999, 0, 2), (70_000, 1_000, 10)] {
        let mut experiment = Experiment::load("standby-long-transaction").unwrap();
        experiment.clients = vec![2];
        for setting in [
            "warm_up_ms=0".to_owned(),
            "measure_ms=1".to_owned(),
            format!("range_xids={range}"),
            format!("running_xids={running}"),
            format!("primary_sessions={sessions}"),
        ] {
            experiment.set(&setting).unwrap();
        }
        for point in run(experiment, 7, 2).unwrap().points {
            let ended = point.standby.as_ref().unwrap().ended_per_second;
            assert!(point.transactions > 0 && ended > 0.0, "{point:?}");
        }
    }
}

/// If a flush takes long beside what the clients do between two commits, a leader that begins at once carries half of
/// them, and one that waits for the others all. If it does not, waiting is given up.
///
/// A second with a slow disk is 800 flushes, and three seeds are added up: in a fifth of that one seed made 1.04 to
/// 1.67 times `group`'s commits, depending on when a leader last gave up; three seeds of a second make 1.5 to 1.6.
///
/// Mutation: let no leader wait (`crates/lab/mutations/simulate.toml`) → a slow disk does not commit more.
#[test]
fn gathering_commits_more_on_a_slow_disk_and_no_less_on_a_fast_one() {
    let gain = |device_factor: f64, work_us: f64, milliseconds: u32| {
        let tps = |log_flush: &str, seed: u64| {
            let mut experiment = Experiment::load("log-flush").unwrap();
            experiment.clients = vec![16];
            experiment.also_on.clear();
            for (name, number) in [
                ("device_factor", device_factor),
                ("warm_up_ms", f64::from(milliseconds / 4)),
                ("measure_ms", f64::from(milliseconds)),
                ("work_us", work_us),
            ] {
                experiment.set(&format!("{name}={number}")).unwrap();
            }
            experiment.variants.truncate(1);
            let mechanisms = &mut experiment.variants[0].mechanisms;
            mechanisms.set_variant("lock_release", "after-flush").unwrap();
            mechanisms.set_variant("log_flush", log_flush).unwrap();
            run(experiment, seed, 1).unwrap().points[0].tps
        };
        let all = |log_flush| [7, 8, 9].map(|seed| tps(log_flush, seed)).iter().sum::<f64>();
        all("gathering") / all("group")
    };
    let (slow, fast) = (gain(10.0, 50.0, 1000), gain(1.0, 450.0, 100));
    assert!(slow > 1.3, "{slow} times group's commits on a slow disk");
    assert!(fast > 0.95, "{fast} times group's commits on a fast one");
}

/// Hundreds of sessions that poll for a flush look at its latch, and leave the line to the owner.
///
/// Mutations that it should catch (`crates/lab/mutations/simulate.toml`): each poll is an attempt to take the latch.
#[test]
fn polling_for_a_flush_leaves_the_line_to_its_owner() {
    let mut experiment = Experiment::load("numa-simple-update").unwrap();
    experiment.clients = vec![434];
    // Early enough for all ways of `polling` to be tried.
    for setting in ["warm_up_ms=20", "measure_ms=60"] {
        experiment.set(setting).unwrap();
    }
    experiment.variants.retain(|variant| variant.name == "clearway");
    let result = run(experiment, 7, 2).unwrap();
    let point = &result.points[0];
    let log = point
        .report
        .lines
        .iter()
        .find(|lines| lines.name == "log")
        .unwrap();
    let changes = log.shared_changes as f64 / point.transactions as f64;
    assert!(
        changes < 20.0,
        "{changes} changes of the log's lines a transaction"
    );
}

/// Acquisitions a second of `latch` and of `single-cas` in latch-mix, with each number of clients.
fn latch_mix(latch: &str, read_percent: f64, clients: &[usize]) -> Vec<(f64, f64)> {
    let mut experiment = Experiment::load("latch-mix").unwrap();
    experiment.clients = clients.to_vec();
    let reads = format!("read_percent={read_percent}");
    for setting in ["warm_up_ms=1", "measure_ms=5", &reads] {
        experiment.set(setting).unwrap();
    }
    experiment
        .variants
        .retain(|variant| ["single-cas", latch].contains(&variant.name.as_str()));
    let result = run(experiment, 3, 2).unwrap();
    let tps = |clients: usize, variant: &str| {
        let points = &result.points;
        let point = points
            .iter()
            .find(|point| point.clients == clients && point.variant == variant);
        point.unwrap().tps
    };
    let both = |clients: &usize| (tps(*clients, latch), tps(*clients, "single-cas"));
    clients.iter().map(both).collect()
}

/// A client's loop takes 3 ns by itself, drawn from 1 to 4: clients without any work differ, and two seeds do.
///
/// Mutation, seen to fail here: a loop takes what `outside_ns` says. Then no seed changes anything.
#[test]
fn clients_without_work_have_a_loop_all_the_same() {
    let of = |outside_ns: u32, seed: u64| {
        let mut experiment = Experiment::load("latch-mix").unwrap();
        experiment.clients = vec![4];
        let outside = format!("outside_ns={outside_ns}");
        for setting in [
            "warm_up_ms=1",
            "measure_ms=2",
            "read_percent=100",
            "critical_ns=0",
            &outside,
        ] {
            experiment.set(setting).unwrap();
        }
        experiment.variants.retain(|variant| variant.name == "single-cas");
        run(experiment, seed, 2).unwrap().points[0].transactions
    };
    assert_eq!(of(0, 1), of(3, 1));
    assert_ne!(of(0, 1), of(0, 2));
    assert!(of(4, 1) < of(3, 1));
}

/// An adaptive latch that is never biased, because there are no readers, is a plain one.
///
/// Mutation: let an exclusive that had to wait load the word again to see whether it is biased, as it once
/// did → 5 to 8 % less on 4 sockets.
#[test]
fn writers_alone_pay_nothing_for_bias() {
    for (adaptive, plain) in latch_mix("adaptive", 0.0, &[8, 72]) {
        assert!(adaptive >= 0.98 * plain, "{adaptive} against {plain}");
    }
}

/// The cost of polling for the list's lock, for a latch that all want. Mutation, seen to fail here: a brief delay that
/// polls 100 times instead of 3; it then does 1.2 times what `single-cas` does with 72 clients.
#[test]
fn brief_polls_leave_the_line_to_the_holder_of_the_list() {
    let ratios: Vec<f64> = latch_mix("brief-polls", 0.0, &[8, 72])
        .into_iter()
        .map(|(brief, learned)| brief / learned)
        .collect();
    assert!(
        ratios[0] > 1.2 && ratios[1] > 2.5,
        "{ratios:?} times single-cas with 8 and 72 clients"
    );
}

/// The gain if a latch and its data stay within a socket. Mutation, seen to fail here: no worker sleeps through
/// another node's term; the latch then does what `brief-polls` does.
#[test]
fn terms_keep_a_latch_within_a_socket() {
    let cohort = latch_mix("cohort", 0.0, &[72, 288]);
    let brief = latch_mix("brief-polls", 0.0, &[72, 288]);
    for ((cohort, plain), (brief, _)) in cohort.into_iter().zip(brief) {
        assert!(
            cohort > 1.3 * brief && cohort > 4.0 * plain,
            "{cohort} against {brief} by brief polls and {plain}"
        );
    }
}

/// The lock of a bucket of parked workers, which hundreds want. Mutation, seen to fail here: yield after each 64 looks, and
/// never sleep; the latch then does 1.0 times what `single-cas` does.
#[test]
fn hundreds_of_workers_leave_a_bucket_of_sleepers_to_the_holder_of_its_lock() {
    for (hybrid, plain) in latch_mix("hybrid", 93.5, &[288]) {
        assert!(hybrid > 1.5 * plain, "{hybrid} against {plain}");
    }
}

/// R4 of the read-biased latch. Mutation, seen to fail here: wake after each slot instead of after the last; the
/// latch then does 0.3 times what the plain one does.
#[test]
fn slots_are_given_back_before_sleepers_are_woken() {
    for (biased, plain) in latch_mix("read-biased", 90.0, &[8, 72]) {
        assert!(biased > plain, "{biased} against {plain}");
    }
}

#[test]
fn the_report_holds_all_of_it() {
    let result = small("latch-mix", 2);
    let page = html(&result).unwrap();
    for variant in &result.experiment.variants {
        assert!(page.contains(&variant.name));
        assert!(text(&result).contains(&variant.name));
    }
    assert!(page.contains("<svg") && page.contains("coherence.cross"));
    assert!(!page.contains("http://") || page.contains("http://www.w3.org/2000/svg"));
    assert!(!page.contains("<script") && !page.contains("NaN"));
}

/// A jam of the catalogue for a short time: a point for each of these variants.
fn jam<const N: usize>(name: &str, clients: usize, variants: [&str; N], settings: &[&str]) -> [Point; N] {
    let mut experiment = Experiment::load(name).unwrap();
    for setting in ["warm_up_ms=1", "measure_ms=2"].iter().chain(settings) {
        experiment.set(setting).unwrap();
    }
    experiment
        .variants
        .retain(|variant| variants.contains(&variant.name.as_str()));
    experiment.clients = vec![clients];
    let points = run(experiment, 7, 2).unwrap().points;
    let names: Vec<&str> = points.iter().map(|point| point.variant.as_str()).collect();
    assert_eq!(names, variants);
    points.try_into().unwrap()
}

fn sleeps_of(point: &Point, event: &str) -> u64 {
    let waits = point.report.waits.iter().filter(|wait| wait.event == event);
    waits.map(|wait| wait.count).sum()
}

/// Until 9.4 reads that miss wait for the list of free frames and the hand, whatever the map; with an atomic hand, for the
/// latches of the map, of which there were fewer.
///
/// Mutation: `map_partitions` that the pool does not get (as many waits with 16 partitions as with 128).
#[test]
fn the_buffer_pool_of_its_time_jams_at_its_latches() {
    let variants = ["9.4", "9.4, chash", "9.4, atomic hand", "9.5"];
    let [old, chash, few, many] = jam("jam/buffer-mapping", 96, variants, &["work_us=5", "client_us=0"]);
    for point in [&old, &chash] {
        assert!(point.tps < 0.5 * many.tps, "{}: {}", point.variant, point.tps);
        assert!(sleeps_of(point, "LWLock:BufferClock") > 100, "{}", point.variant);
    }
    assert_eq!(sleeps_of(&many, "LWLock:BufferClock"), 0);
    let [few, many] = [few, many].map(|point| sleeps_of(&point, "LWLock:BufferMapping"));
    assert!(few > 2 * many, "{few} {many}");
}

/// Groups of 11 to 16 are over one latch, at which those that ask about old transactions meet those that end.
///
/// Mutation: `commit_log_banks` that the commit log does not get (as many waits with one bank as with 16).
#[test]
fn the_commit_log_of_its_time_has_one_latch() {
    let mut experiment = Experiment::load("jam/commit-log").unwrap();
    for setting in [
        "warm_up_ms=1",
        "measure_ms=2",
        "work_us=5",
        "client_us=0",
        "status_questions=40",
    ] {
        experiment.set(setting).unwrap();
    }
    experiment.clients = vec![96];
    experiment.variants.retain(|variant| variant.name == "11");
    let mut today = experiment.variants[0].clone();
    today.of_its_time = OfItsTime::default();
    "16 banks".clone_into(&mut today.name);
    experiment.variants.push(today);
    let points = run(experiment, 7, 2).unwrap().points;
    let [one, many] = [0, 1].map(|index| sleeps_of(&points[index], "LWLock:CommitLog"));
    assert!(one > 2 * many, "{one} {many}");
}

#[test]
fn every_jam_is_an_experiment_and_a_row_of_the_page() {
    let page = include_str!("../../../docs/jams.md");
    for jam in &JAMS {
        let experiment = Experiment::load(&jam.full_name()).unwrap();
        assert_eq!(experiment.name, jam.full_name());
        assert!(experiment.variants.len() > 1 && experiment.clients.len() > 1);
        assert_eq!(experiment.clients[0], 1, "{}: the price of the cure", jam.name);
        assert!(page.contains(&format!("`{}`", jam.name)), "{}", jam.name);
    }
    let error = Experiment::load("jam/tea").unwrap_err().to_string();
    assert!(error.contains("latch-queue"), "{error}");
}

/// A size that no mechanism of the variant has would change nothing, and the figure would be of something else.
#[test]
fn a_form_of_its_time_goes_with_its_mechanism() {
    let text = include_str!("../experiments/by-path/buffer-mapping-2014.toml");
    let with = |form: &str| {
        let text = text.replacen("{ map_partitions = 16 }", form, 1);
        Experiment::parse("it", &text)
    };
    assert_eq!(
        with("{ map_partitions = 8 }").unwrap().variants[0]
            .of_its_time
            .map_partitions,
        Some(8)
    );
    for (form, hint) in [
        ("{ map_partitions = 12 }", "power of two"),
        ("{ map_partitions = 0 }", "power of two"),
        ("{ map_partitions = 256 }", "128 at most"),
        ("{ commit_log_banks = 1 }", "commit_log = banks or group"),
        ("{ partitions = 16 }", "unknown field"),
    ] {
        let error = with(form).unwrap_err().to_string();
        assert!(error.contains(hint), "{form}: {error}");
    }
    let mut experiment = Experiment::parse("it", text).unwrap();
    experiment.set("buffer_map=chash").unwrap();
    let sizes = |variant: &Variant| variant.of_its_time != OfItsTime::default();
    assert!(!experiment.variants.iter().any(sizes));
}
