//! Experiments on the simulated machine: the same bytes each time, whatever computes them.

use std::alloc::System;

use clearway_lab::simulate::{
    EXPERIMENTS, Experiment, SimulateOptions, SimulationResult, html, run_experiment, text,
};
use clearway_sim::{LineAllocator, MachineModel};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

fn small(name: &str, threads: usize) -> SimulationResult {
    let mut experiment = Experiment::load(name).unwrap();
    experiment.clients = if name == "one-client" {
        vec![1]
    } else {
        vec![3, 60]
    };
    for setting in ["warm_up_ms=1", "measure_ms=3", "work_us=50", "device_factor=0.1"] {
        experiment.set(setting).unwrap();
    }
    let machine = MachineModel::load(&experiment.machine).unwrap();
    run_experiment(&SimulateOptions {
        experiment,
        machine,
        seed: 7,
        trace: None,
        sweep: false,
        progress: false,
        threads,
    })
    .unwrap()
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
    assert_eq!(result.points.len(), 6);
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

/// An adaptive latch that is never biased, because there are no readers, is a plain one.
///
/// Mutation: let an exclusive that had to wait load the word again to see whether it is biased, as it once
/// did → 5 to 8 % less on 4 sockets.
#[test]
fn writers_alone_pay_nothing_for_bias() {
    let mut experiment = Experiment::load("latch-mix").unwrap();
    experiment.clients = vec![8, 72];
    for setting in ["warm_up_ms=1", "measure_ms=5", "read_percent=0"] {
        experiment.set(setting).unwrap();
    }
    experiment
        .variants
        .retain(|variant| ["single-cas", "adaptive"].contains(&variant.name.as_str()));
    let machine = MachineModel::load(&experiment.machine).unwrap();
    let result = run_experiment(&SimulateOptions {
        experiment,
        machine,
        seed: 3,
        trace: None,
        sweep: false,
        progress: false,
        threads: 2,
    })
    .unwrap();
    for clients in [8, 72] {
        let tps = |variant: &str| {
            let points = &result.points;
            let point = points
                .iter()
                .find(|point| point.clients == clients && point.variant == variant);
            point.unwrap().tps
        };
        let (plain, adaptive) = (tps("single-cas"), tps("adaptive"));
        assert!(
            adaptive >= 0.98 * plain,
            "{clients} writers: {adaptive} against {plain}"
        );
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
