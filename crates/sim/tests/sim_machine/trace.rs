//! A trace can be read, and what it shows fits together.
//!
//! Seen to fail: flows that end where the sleep ends instead of where the woken worker runs again; the CPU of the woken
//! worker taken for that of its waker, which leaves most flows out.

use std::collections::BTreeMap;
use std::rc::Rc;

use clearway_latch::{LwLock, LwLockVariant};
use clearway_machine::{Machine, Padded, Work};
use clearway_sim::{Simulated, Simulation, random_below, span};
use serde_json::Value;

use crate::{CLASS, machine};

const WINDOW_US: f64 = 300.0;

/// Workers that want one latch, more of them than there are CPUs.
fn events() -> Vec<Value> {
    let model = machine("laptop");
    let mut simulation = Simulation::new(&model, 40, 3);
    simulation.trace(50_000, 350_000);
    let latch = simulation.enter(|| Rc::new(Padded(LwLock::<Simulated>::new(&CLASS, LwLockVariant::Queued))));
    for _ in 0..40 {
        let latch = Rc::clone(&latch);
        simulation.spawn(move || {
            for _ in 0..40 {
                let _span = span("a turn");
                let guard = latch.exclusive();
                Simulated::charge(Work::Nanos(1_000));
                drop(guard);
                Simulated::charge(Work::Nanos(random_below(20_000)));
            }
        });
    }
    simulation.run().unwrap();
    let mut trace = Vec::new();
    simulation.take_trace().unwrap().write(&mut trace).unwrap();
    let trace: Value = serde_json::from_slice(&trace).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

#[derive(Debug, Clone)]
struct Slice {
    start: f64,
    end: f64,
    name: String,
}

/// Slices by process and track, in the order of time.
fn tracks(events: &[Value]) -> BTreeMap<(u64, u64), Vec<Slice>> {
    let mut tracks = BTreeMap::<_, Vec<Slice>>::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let start = event["ts"].as_f64().unwrap();
        let place = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        tracks.entry(place).or_default().push(Slice {
            start,
            end: start + event["dur"].as_f64().unwrap(),
            name: event["name"].as_str().unwrap().to_owned(),
        });
    }
    for slices in tracks.values_mut() {
        slices.sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    tracks
}

/// Times are decimal fractions of microseconds; the last digit is a picosecond.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-5
}

#[test]
fn a_cpu_runs_one_worker_at_a_time_and_all_of_its_time_is_shown() {
    let cpus = machine("laptop").cpus() as u64;
    let tracks = tracks(&events());
    for cpu in 0..cpus {
        for pair in tracks[&(0, cpu)].windows(2) {
            assert!(pair[0].end <= pair[1].start + 1e-5, "CPU {cpu}: {pair:?}");
        }
        let mut end = 50.0;
        for slice in &tracks[&(1, cpu)] {
            assert!(near(slice.start, end), "CPU {cpu} from {end}: {slice:?}");
            end = slice.end;
        }
        assert!(near(end, 50.0 + WINDOW_US), "CPU {cpu} until {end}");
    }
    // A worker is on one CPU at a time.
    let mut of_worker = BTreeMap::<String, Vec<Slice>>::new();
    for ((_, _), slices) in tracks.range((0, 0)..(1, 0)) {
        for slice in slices {
            of_worker
                .entry(slice.name.clone())
                .or_default()
                .push(slice.clone());
        }
    }
    for slices in of_worker.values_mut() {
        slices.sort_by(|a, b| a.start.total_cmp(&b.start));
        for pair in slices.windows(2) {
            assert!(pair[0].end <= pair[1].start + 1e-5, "{pair:?}");
        }
    }
}

#[test]
fn waits_name_their_latch_and_flows_lead_from_the_waker_to_the_woken() {
    let events = events();
    let tracks = tracks(&events);
    let waits: Vec<&Value> = events
        .iter()
        .filter(|event| event["pid"] == 3 && event["ph"] == "X")
        .collect();
    let of_the_latch: Vec<_> = waits
        .iter()
        .filter(|wait| wait["name"] == "LWLock:User")
        .collect();
    assert!(!of_the_latch.is_empty());
    assert!(
        of_the_latch.iter().all(|wait| wait["args"]["latch"] == "Test"),
        "{of_the_latch:?}"
    );

    let at = |event: &Value| (event["tid"].as_u64().unwrap(), event["ts"].as_f64().unwrap());
    let of_phase = |phase: &str| -> BTreeMap<u64, (u64, f64)> {
        let events = events.iter().filter(|event| event["ph"] == phase);
        events
            .map(|event| (event["id"].as_u64().unwrap(), at(event)))
            .collect()
    };
    let (begins, ends) = (of_phase("s"), of_phase("f"));
    assert_eq!(begins.keys().collect::<Vec<_>>(), ends.keys().collect::<Vec<_>>());
    for (flow, (cpu, time)) in &begins {
        let waker = tracks[&(0, *cpu)]
            .iter()
            .find(|slice| slice.start - 1e-5 <= *time && *time <= slice.end + 1e-5)
            .unwrap_or_else(|| panic!("flow {flow} begins in no slice"));
        let (to, then) = ends[flow];
        assert!(*time <= then + 1e-5, "flow {flow} goes back in time");
        let woken = tracks[&(0, to)]
            .iter()
            .find(|slice| near(slice.start, then))
            .unwrap_or_else(|| panic!("flow {flow} ends at no slice's start"));
        // The sleep that ends there is the woken worker's, and names the waker.
        let number = |slice: &Slice| {
            slice
                .name
                .strip_prefix("worker ")
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        let is_it = |wait: &&Value| {
            wait["tid"] == number(woken)
                && wait["args"]["woken by worker"] == number(waker)
                && near(
                    wait["ts"].as_f64().unwrap() + wait["dur"].as_f64().unwrap(),
                    *time,
                )
        };
        assert!(
            waits.iter().any(is_it),
            "flow {flow}: no sleep of {} ended by {}",
            woken.name,
            waker.name
        );
    }
    // Few are left out, at the ends of the window.
    let woken = waits
        .iter()
        .filter(|wait| wait["args"]["woken by worker"].is_u64())
        .count();
    assert!(
        begins.len() > 20 && begins.len() + 5 >= woken,
        "{} flows of {woken}",
        begins.len()
    );
}
