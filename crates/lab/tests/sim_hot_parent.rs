//! Rows that many transactions share, in each way: `row_locks`, and PostgreSQL's sets in files.

use std::alloc::System;

use clearway_lab::simulate::{
    Experiment, HotParentFigures, MultixactForm, Point, Seeds, SimulateOptions, run_experiment,
};
use clearway_sim::{LineAllocator, MachineModel};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

const WAYS: [&str; 4] = ["exclusive", "shared", "multixact, one latch", "multixact, banks"];

/// The built-in experiment for a short time, a point for each way.
fn points(clients: usize, seed: u64, settings: &[&str]) -> [Point; 4] {
    let mut experiment = Experiment::load("hot-parent").unwrap();
    let short = ["warm_up_ms=2", "measure_ms=4", "work_us=20", "device_factor=0.3"];
    for setting in short.iter().chain(settings) {
        experiment.set(setting).unwrap();
    }
    experiment.clients = vec![clients];
    let machine = MachineModel::load(&experiment.machine).unwrap();
    let result = run_experiment(&SimulateOptions {
        experiment,
        machine,
        seeds: Seeds::one(seed),
        trace: None,
        shard: None,
        sweep: false,
        progress: false,
        threads: 0,
    });
    let points = <[Point; 4]>::try_from(result.unwrap().points).unwrap();
    for (point, way) in points.iter().zip(WAYS) {
        assert_eq!(point.variant, way);
        assert!(point.transactions > 20, "{way}: {}", point.transactions);
    }
    points
}

fn figures(point: &Point) -> &HotParentFigures {
    point.hot_parent.as_ref().unwrap()
}

fn sleeps(point: &Point, event: &str) -> u64 {
    let waits = point.report.waits.iter().filter(|wait| wait.event == event);
    waits.map(|wait| wait.count).sum()
}

/// The same in each way: FOR UPDATE has the row alone beside those that share it, which `Granted` asserts at each lock of
/// transactions whose commit has not begun, and each set that is made has all that share the row. Every transaction ends, and no row is locked then.
#[test]
fn sharers_and_exclusive_lockers_keep_each_other_out_in_each_way() {
    for seed in 1..=2 {
        for settings in [
            ["alone_percent=20", "parents=1"],
            ["alone_percent=50", "parents=3"],
            ["alone_percent=5", "parents=200"],
        ] {
            for point in points(24, seed, &settings) {
                let found = figures(&point);
                assert!(found.alone > 0, "{}: {found:?}", point.variant);
                assert!(found.alone < point.transactions, "{}: {found:?}", point.variant);
                assert!(sleeps(&point, "Lock:transactionid") > 0, "{}", point.variant);
            }
        }
    }
}

/// Those that share a row wait for no transaction, and have it together.
#[test]
fn only_where_rows_are_not_shared_a_sharer_waits_for_another() {
    let [exclusive, sharing @ ..] = points(24, 1, &[]);
    assert!(
        figures(&exclusive).sharers < 1.1,
        "the one before may not have returned from its commit"
    );
    assert!(sleeps(&exclusive, "Lock:transactionid") > 0);
    for point in sharing {
        assert!(figures(&point).sharers > 2.0, "{}", point.variant);
        for event in ["Lock:transactionid", "Lock:tuple"] {
            assert_eq!(sleeps(&point, event), 0, "{}: {event}", point.variant);
        }
        assert!(point.tps > 1.5 * exclusive.tps, "{}", point.variant);
    }
}

/// With more sharers the sets are longer, and each is made under the page's latch: the row costs more than in memory.
#[test]
fn sets_cost_more_with_more_sharers() {
    let few = points(8, 1, &[]);
    let many = points(144, 1, &[]);
    let ratio = |points: &[Point; 4]| points[2].tps / points[1].tps;
    assert!(
        ratio(&many) < 0.8 * ratio(&few),
        "{} {}",
        ratio(&few),
        ratio(&many)
    );
    for form in 2..4 {
        assert!(figures(&many[form]).lock_share > 2.0 * figures(&many[1]).lock_share);
        assert!(sleeps(&many[form], "LWLock:BufferContent") > sleeps(&many[1], "LWLock:BufferContent"));
    }
}

/// Under as many parents as would keep clients apart, all ways are alike.
#[test]
fn nothing_is_shared_under_many_parents() {
    let points = points(24, 1, &["parents=50000", "warm_up_ms=4", "measure_ms=20"]);
    for point in &points {
        assert!(figures(point).sharers < 1.1, "{}", point.variant);
        let ratio = point.tps / points[0].tps;
        assert!((0.85..1.15).contains(&ratio), "{}: {ratio}", point.variant);
    }
}

#[test]
fn sets_belong_to_a_hot_parent() {
    let text = include_str!("../experiments/one-client.toml");
    let sets = text.replacen("[[variants]]\n", "[[variants]]\nmultixact = \"banks\"\n", 1);
    assert_ne!(text, sets);
    let error = Experiment::parse("it", &sets).unwrap_err().to_string();
    assert!(error.contains("multixact"), "{error}");
    assert_eq!(MultixactForm::ALL.len() + 2, WAYS.len());
}
