//! `clearway advise`: the rule on made-up cells, and whole runs on a small machine with little simulated time.

use std::alloc::System;

use clearway_engine::{Config, Mechanisms};
use clearway_lab::advise::{
    Advice, AdviseOptions, Cell, Finding, GivenUp, Judged, Outcome, SwitchAdvice, Turn, Turns, advice_text,
    allowed, cells_text, closest, configuration, is_stable, run_advise,
};
use clearway_lab::simulate::simulated_switches;
use clearway_sim::{LineAllocator, MachineModel};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

/// A cell of these ratios, one of each seed.
fn cell(clients: usize, ratios: &[f64]) -> Cell {
    let preset = vec![1_000.0; ratios.len()];
    let variant: Vec<f64> = ratios.iter().map(|ratio| 1_000.0 * ratio).collect();
    Cell::of("mixed", clients, &preset, &variant).unwrap()
}

fn judged(variant: &str, cells: &[(usize, f64)]) -> Judged {
    Judged {
        variant: variant.to_owned(),
        cells: cells
            .iter()
            .map(|(clients, ratio)| cell(*clients, &[*ratio; 3]))
            .collect(),
    }
}

/// Two cells of other seeds differ by less than the seeds of each: the median is taken of equal seeds' ratios.
///
/// Mutation: divide the medians instead → 1.0. Mutation: take no spread → 0.
#[test]
fn a_cell_compares_equal_seeds() {
    let it = Cell::of("mixed", 8, &[100.0, 200.0, 400.0], &[110.0, 220.0, 400.0]).unwrap();
    assert!((it.ratio - 1.1).abs() < 1e-9, "{it:?}");
    assert!((it.spread - 0.1).abs() < 1e-9, "{it:?}");
    let of_two = Cell::of("mixed", 8, &[100.0, 100.0], &[110.0, 120.0]).unwrap();
    assert!((of_two.ratio - 1.15).abs() < 1e-9, "{of_two:?}");
    assert_eq!(Cell::of("mixed", 8, &[100.0, 0.0], &[1.0, 1.0]), None);
    assert_eq!(Cell::of("mixed", 8, &[], &[]), None);
}

/// R1. Mutations: ask for no 2 %; ask for no more than the spread → a cell wins that must not.
#[test]
fn a_win_is_more_than_two_percent_and_more_than_the_spread() {
    assert!(cell(8, &[1.03, 1.03, 1.03]).wins());
    assert!(cell(8, &[1.05, 1.06, 1.07]).wins());
    assert!(!cell(8, &[1.019, 1.019, 1.019]).wins(), "below 2 %");
    assert!(!cell(8, &[1.01, 1.05, 1.08]).wins(), "5 % with a spread of 7 %");
    assert!(!cell(8, &[0.9, 0.9, 0.9]).wins());
}

/// R2. Mutations: allow 2 % with one client as well; allow any loss elsewhere → a variant is advised that must not be.
#[test]
fn a_variant_that_loses_too_much_anywhere_is_not_advised() {
    for (cells, finding) in [
        (&[(1, 1.0), (16, 1.05)][..], Finding::Advised),
        (&[(1, 0.992), (16, 1.05), (32, 0.982)], Finding::Advised),
        (&[(1, 0.985), (16, 1.05), (32, 1.0)], Finding::LosesAlone),
        (&[(1, 0.985), (16, 1.05), (32, 0.9)], Finding::LosesAlone),
        (&[(1, 1.0), (16, 1.05), (32, 0.975)], Finding::LosesElsewhere),
        (&[(1, 1.0), (16, 1.01), (32, 0.5)], Finding::NoWin),
        (&[(16, 1.05)], Finding::Advised),
    ] {
        assert_eq!(judged("it", cells).finding(), finding, "{cells:?}");
    }
}

/// R4. Mutation: sort the allowed ones by ascending mean → the lesser one comes first.
#[test]
fn the_allowed_variant_with_the_highest_mean_comes_first() {
    let variants = [
        judged("loses", &[(1, 0.9), (16, 3.0)]),
        judged("good", &[(1, 1.0), (16, 1.05)]),
        judged("better", &[(1, 1.0), (16, 1.10)]),
        judged("as-good", &[(1, 1.0), (16, 1.05)]),
        judged("nothing", &[(1, 1.0), (16, 1.0)]),
    ];
    assert_eq!(allowed(&variants), [2, 1, 3]);
    assert_eq!(
        closest(&variants),
        Some(0),
        "of those that win somewhere, allowed or not"
    );
    assert_eq!(closest(&variants[4..]), Some(0));
    assert_eq!(closest(&[]), None);
    let best = variants[2].best().map(|cell| cell.clients);
    let worst = variants[0].worst().map(|cell| cell.clients);
    assert_eq!((best, worst), (Some(16), Some(1)));
}

/// R3. Mutation: every advice is stable.
#[test]
fn an_advice_that_many_changes_turn_is_an_accident() {
    assert!(is_stable(0, 18));
    assert!(is_stable(5, 20));
    assert!(!is_stable(6, 20));
    assert!(!is_stable(18, 18));
    assert!(is_stable(0, 0));
}

fn options(machine: &str, switches: &[&str], workloads: &[&str]) -> AdviseOptions {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    AdviseOptions {
        machine: MachineModel::load(machine).unwrap(),
        switches: names(switches),
        workloads: names(workloads),
        clients: vec![1, 4],
        seeds: 2,
        quick: false,
        settings: names(&["warm_up_ms=2", "measure_ms=4"]),
        progress: false,
        threads: 0,
    }
}

fn written(advice: &Advice) -> String {
    configuration(advice, "clearway advise\nit").unwrap()
}

/// Parallel replay is twice as fast on a machine with CPUs to spare, whatever its costs: of all switches the surest to
/// be advised, and none of the others is close to it.
///
/// Mutations: the advised variant is left out of the mechanisms → the file has the preset's; the number of workers is
/// that of the worst cell; a comment's text may hold ends of lines → the file is no TOML.
#[test]
fn what_wins_is_advised_in_a_file_that_the_server_accepts() {
    let mut options = options("laptop", &["replay", "buffer_clock"], &[]);
    options.machine.description = "a machine of\nlock_release = nothing".to_owned();
    // With less, one worker's gathering ahead is not over what it costs.
    options.settings = vec!["warm_up_ms=10".to_owned(), "measure_ms=30".to_owned()];
    let advice = run_advise(&options).unwrap();
    let mechanisms = advice.mechanisms().unwrap();
    assert_eq!(
        mechanisms.replay,
        clearway_storage::standby::ReplayVariant::Parallel
    );
    let text = written(&advice);
    let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    assert_eq!(config.mechanisms, mechanisms);
    let replay = advice
        .switches
        .iter()
        .find(|it| it.switch.name == "replay")
        .unwrap();
    let best = replay.advised().unwrap().best().unwrap();
    assert!(best.ratio > 1.2 && best.clients > 1, "{best:?}");
    assert_eq!(config.replay_workers as usize, best.clients);
    let table = advice_text(&advice);
    for part in [
        "replay = parallel, in place of serial",
        "turned by",
        "What to believe",
        "To check on the machine itself: scripts/standby-replay",
        "Not simulated, as in the preset: page_room = replace, log_sync = fdatasync, relation_locks = fast-path, time_slice = in-process",
        "Not asked, as in the preset: lwlock = single-cas",
    ] {
        assert!(table.contains(part), "{part} is missing in:\n{table}");
    }
    assert!(
        text.contains("# not simulated: as in the preset\ntime_slice"),
        "{text}"
    );
    let Outcome::Judged {
        variants, advised, ..
    } = &advice
        .switches
        .iter()
        .find(|it| it.switch.name == "buffer_clock")
        .unwrap()
        .outcome
    else {
        panic!("buffer_clock was asked for");
    };
    assert_eq!((variants.len(), *advised), (2, None));
    assert_eq!(cells_text(&advice).matches("buffer_clock").count(), 4);
}

/// A preset that loses nothing anywhere stays, and the file is the preset.
///
/// Mutation: the first variant is advised whatever the rule says.
#[test]
fn what_wins_nowhere_leaves_the_preset() {
    let advice = run_advise(&options("laptop", &["buffer_clock"], &[])).unwrap();
    let config = Config::from_toml(&written(&advice)).unwrap();
    assert_eq!(config.mechanisms, Mechanisms::CLEARWAY);
    assert_eq!(config, Config::default());
    assert!(advice_text(&advice).contains("The preset clearway stays as it is."));
}

/// Mutation: hand a point's result to the task in the place of its job, though jobs are sorted by their length →
/// cells are exchanged, and replay is no faster with more workers.
#[test]
fn the_same_bytes_whatever_computes_them() {
    let run = |threads| {
        let workloads = ["point-select", "standby-replay"];
        let mut options = options("laptop", &["page_read", "replay"], &workloads);
        options.threads = threads;
        run_advise(&options).unwrap()
    };
    let texts = |advice: &Advice| (advice_text(advice), cells_text(advice), written(advice));
    let first = run(1);
    assert_eq!(texts(&first), texts(&run(3)));
    let cells = |name: &str| {
        let it = first.switches.iter().find(|it| it.switch.name == name).unwrap();
        it.shown().unwrap().cells.clone()
    };
    for cell in cells("page_read") {
        assert!((0.9..1.1).contains(&cell.ratio), "{cell:?}");
    }
    let replay = cells("replay");
    let with_four = replay.iter().find(|cell| cell.clients == 4).unwrap();
    assert!(with_four.ratio > 1.5, "{with_four:?}");
}

/// A switch that the preset's variant of another does not obey is not run.
///
/// Mutation: run it all the same.
#[test]
fn a_switch_that_nothing_obeys_beside_the_preset_stays() {
    let advice = run_advise(&options("laptop", &["known_xids_compaction"], &[])).unwrap();
    let it = advice
        .switches
        .iter()
        .find(|it| it.switch.name == "known_xids_compaction")
        .unwrap();
    assert!(
        matches!(it.outcome, Outcome::NotObeyed { beside: "known_xids" }),
        "{it:?}"
    );
    assert_eq!(advice.simulations, 0);
}

#[test]
fn mistakes_are_answered_with_what_there_is() {
    let wrong = |change: &dyn Fn(&mut AdviseOptions), hints: &[&str]| {
        let mut options = options("laptop", &[], &[]);
        change(&mut options);
        let error = run_advise(&options).unwrap_err().to_string();
        for hint in hints {
            assert!(error.contains(hint), "{error} says nothing of {hint}");
        }
    };
    let machine = MachineModel::load("lap").unwrap_err().to_string();
    assert!(
        machine.contains("laptop") && machine.contains("this"),
        "{machine}"
    );
    wrong(
        &|it| it.switches = vec!["lwlok".to_owned()],
        &["lwlok", "did you mean lwlock?"],
    );
    wrong(
        &|it| it.switches = vec!["carburettor".to_owned()],
        &["carburettor", "lwlock", "log_flush"],
    );
    wrong(
        &|it| it.switches = vec!["time_slice".to_owned()],
        &simulated_switches(),
    );
    wrong(
        &|it| it.workloads = vec!["selects".to_owned()],
        &["point-select", "standby-replay"],
    );
    let apart = |it: &mut AdviseOptions| {
        it.switches = vec!["replay".to_owned()];
        it.workloads = vec!["mixed".to_owned()];
    };
    wrong(&apart, &["replay has no part", "standby-replay"]);
    wrong(&|it| it.seeds = 1, &["--seeds", "2 to 100"]);
    wrong(&|it| it.clients = vec![0], &["clients", "1 to 4096"]);
    wrong(
        &|it| it.settings = vec!["lwlock=queued".to_owned()],
        &["--switch lwlock"],
    );
    wrong(&|it| it.settings = vec!["works_us=1".to_owned()], &["work_us"]);
    let nothing = |it: &mut AdviseOptions| {
        it.switches = vec!["page_read".to_owned()];
        it.settings = vec![
            "work_us=1e9".to_owned(),
            "measure_ms=1".to_owned(),
            "warm_up_ms=0".to_owned(),
        ];
    };
    wrong(&nothing, &["point-select", "ended no transaction", "measure_ms"]);
}

/// A change that turns both deciding cells is one change.
///
/// Mutation: count what is found, not the changes → 3.
#[test]
fn a_change_counts_once() {
    let turn = |number: &'static str, factor, clients| Turn {
        number: number.into(),
        factor,
        cell: cell(clients, &[1.0]),
    };
    let turns = Turns {
        tried: 20,
        found: vec![
            turn("os.wake", 0.5, 1),
            turn("os.wake", 1.5, 1),
            turn("os.wake", 0.5, 8),
        ],
    };
    assert_eq!(turns.turned(), 2);
}

/// R5. Mutation: give up the one with the highest mean.
#[test]
fn of_variants_that_lose_together_the_weakest_is_given_up() {
    let outcome = |mean| Outcome::Judged {
        variants: vec![judged("it", &[(1, 1.0), (16, mean)])],
        advised: Some(0),
        shown: Some(0),
        given_up: None,
        turns: Turns::default(),
    };
    let advised = |name: &str, mean| SwitchAdvice {
        switch: Mechanisms::switch(name).unwrap(),
        preset: "other",
        outcome: outcome(mean),
    };
    let mut advice = Advice {
        machine: MachineModel::load("laptop").unwrap(),
        seeds: 2,
        quick: false,
        switches: vec![
            advised("lwlock", 1.2),
            advised("snapshot", 1.05),
            advised("replay", 1.3),
        ],
        together: None,
        simulations: 0,
    };
    let left = |advice: &Advice| -> Vec<&str> {
        let left = advice.switches.iter().filter(|it| it.advised().is_some());
        left.map(|it| it.switch.name).collect()
    };
    advice.give_up_weakest();
    assert_eq!(left(&advice), ["lwlock", "replay"]);
    advice.give_up_weakest();
    assert_eq!(left(&advice), ["replay"]);
}

/// An advice that was given up says why, and is not in the file.
///
/// Mutation: `advised` looks at what is shown.
#[test]
fn what_was_given_up_is_shown_and_not_written() {
    let mut advice = run_advise(&options("laptop", &["replay"], &[])).unwrap();
    let it = advice
        .switches
        .iter_mut()
        .find(|it| it.switch.name == "replay")
        .unwrap();
    if let Outcome::Judged {
        advised, given_up, ..
    } = &mut it.outcome
    {
        *advised = None;
        *given_up = Some(GivenUp::Together);
    }
    let config = Config::from_toml(&written(&advice)).unwrap();
    assert_eq!(config, Config::default());
    let text = advice_text(&advice);
    assert!(text.contains("loses together with others"), "{text}");
}
