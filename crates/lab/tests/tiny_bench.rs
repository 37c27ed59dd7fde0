//! A whole bench in about a second: loads, measures, checks the sums, writes JSON and HTML.

mod repeated;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clearway_engine::Mechanisms;
use clearway_lab::gather::gather;
use clearway_lab::result::BenchResult;
use clearway_lab::workload::{Mix, Workload};
use clearway_lab::{BenchOptions, LabError, OtherPrograms, Variant, run_bench, table};

fn options() -> BenchOptions {
    BenchOptions {
        scale: 1,
        population: None,
        clients: vec![1, 3],
        duration: Duration::from_millis(150),
        rounds: 1,
        workloads: Workload::PGBENCH.iter().copied().map(Mix::from).collect(),
        varied: None,
        variants: Variant::choose(&[], &[]).unwrap(),
        buffers: None,
        data: None,
        synchronous_commit: false,
        beside: OtherPrograms::default(),
        other_program: |_| Command::new("false"),
        seed: 7,
        command: "clearway bench (test)".to_owned(),
        progress: false,
    }
}

/// The result of a run in which each cell has committed.
fn measured(options: BenchOptions) -> BenchResult {
    repeated::measured(options, |cell| cell.transactions > 0)
}

#[test]
fn a_tiny_bench_from_tables_to_report() {
    let result = measured(options());

    // Every cell has been measured.
    assert_eq!(result.cells.len(), 3 * 2 * 2);
    for cell in &result.cells {
        assert!(
            cell.tps > 0.0 && cell.p50_us > 0.0 && cell.p99_us >= cell.p50_us,
            "{cell:?}"
        );
        let shares: f64 = cell.waits.iter().map(|wait| wait.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{cell:?}");
        assert_eq!(cell.ratio.is_some(), cell.variant == "clearway");
    }

    // The sums were checked against the acknowledgements; here once more in the result.
    assert_eq!(result.balances.len(), 2);
    for check in &result.balances {
        assert_eq!((check.accounts, check.tellers), (check.history, check.branches));
        assert!(check.acknowledged_writes > 0);
    }

    let text = table::text(&result);
    assert!(
        text.contains("tpcb-like") && text.contains("clearway/classic"),
        "{text}"
    );

    // The files say where they come from and need nothing else.
    let out = tempfile::tempdir().unwrap();
    result.write(out.path()).unwrap();
    // Read and written again, it is the same.
    let again = tempfile::tempdir().unwrap();
    gather(&[out.path().to_owned()])
        .unwrap()
        .write(again.path())
        .unwrap();
    for file in ["result.json", "report.html", "picture.svg"] {
        let read = |directory: &Path| std::fs::read_to_string(directory.join(file)).unwrap();
        assert_eq!(read(again.path()), read(out.path()), "{file}");
    }
    let json = std::fs::read_to_string(out.path().join("result.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["provenance"]["seed"], 7);
    assert_eq!(json["variants"][0]["config"]["mechanisms"]["lwlock"], "queued");
    assert_eq!(json["cells"].as_array().unwrap().len(), result.cells.len());
    let page = std::fs::read_to_string(out.path().join("report.html")).unwrap();
    let page = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
    assert_eq!(page.matches("<svg").count(), 6);
    // The picture has a plot for each workload, inside of one drawing.
    let picture = std::fs::read_to_string(out.path().join("picture.svg")).unwrap();
    assert_eq!(picture.matches("<svg").count(), 1 + 3, "{picture}");
    assert_eq!(picture.matches("</svg>").count(), 1 + 3);
    assert!(picture.contains("<desc>") && picture.contains("tpcb-like, transactions a second"));
}

/// Readers and writers in one database: each part has its own numbers.
#[test]
fn workloads_side_by_side() {
    let options = BenchOptions {
        clients: vec![3],
        workloads: vec![Mix::from_name("tpcb-like+select-only").unwrap()],
        variants: Variant::choose(&["clearway".to_owned()], &[]).unwrap(),
        ..options()
    };
    let result = measured(options.clone());
    let cell = |part: &str| result.cell(&format!("{part} in tpcb-like+select-only"), 3, "clearway");
    let (writes, reads) = (cell("tpcb-like").unwrap(), cell("select-only").unwrap());
    assert_eq!(result.cells.len(), 2);
    assert!(writes.transactions > 0 && reads.transactions > 0, "{result:?}");
    assert!(result.balances[0].acknowledged_writes >= writes.transactions as i64);
    let text = table::text(&result);
    assert!(text.contains("select-only in tpcb-like+select-only"), "{text}");

    let too_few = BenchOptions {
        clients: vec![1, 3],
        ..options
    };
    assert!(matches!(
        run_bench(&too_few),
        Err(LabError::BadNumber {
            what: "--clients",
            ..
        })
    ));
}

/// A database beside itself with a follower, which must have received all of its log.
#[test]
fn with_a_follower() {
    let options = BenchOptions {
        clients: vec![2],
        workloads: vec![Mix::from_name("simple-update").unwrap()],
        variants: Variant::each_followed(Variant::choose(&["clearway".to_owned()], &[]).unwrap()),
        ..options()
    };
    let result = measured(options);
    assert_eq!(result.cells.len(), 2);
    let followed = result.cell("simple-update", 2, "clearway + follower").unwrap();
    assert!(
        followed.transactions > 0 && followed.ratio.is_some(),
        "{followed:?}"
    );
    assert_eq!(result.balances.len(), 2);
}

/// Programs run beside a bench while it measures; one that ends by itself makes it an error.
#[test]
fn beside_other_programs() {
    let options = BenchOptions {
        clients: vec![2],
        rounds: 3,
        duration: Duration::from_millis(30),
        workloads: vec![Workload::SelectOnly.into()],
        beside: OtherPrograms {
            busy_loops: 1,
            syncs_file: true,
        },
        other_program: |_| {
            let mut command = Command::new("sleep");
            command.arg("1000");
            command
        },
        ..options()
    };
    let result = run_bench(&options).unwrap();
    assert_eq!(result.parameters.beside, options.beside);
    let text = table::text(&result);
    let said = "Measured beside 1 busy loop and a program that syncs a file.";
    assert!(text.contains(said), "{text}");
    let cell = result.cell("select-only", 2, "clearway").unwrap();
    let ([low, high], ratio) = (cell.ratio_bounds.unwrap(), cell.ratio.unwrap());
    assert!(low <= ratio && ratio <= high, "{cell:?}");
    let share = result.provenance.others_share;
    assert!(
        share.is_some_and(|share| (0.0..=1.0).contains(&share)),
        "{share:?}"
    );

    let ended = BenchOptions {
        other_program: |_| Command::new("true"),
        ..options
    };
    let error = run_bench(&ended).unwrap_err();
    assert!(matches!(error, LabError::OtherProgram(_)), "{error}");
}

fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            copy_directory(&path, &to.join(name));
        } else {
            std::fs::copy(path, to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_data_directory_is_used_again_and_its_scale_is_checked() {
    let data = tempfile::tempdir().unwrap();
    let small = BenchOptions {
        clients: vec![2],
        duration: Duration::from_millis(30),
        workloads: vec![Workload::SimpleUpdate.into()],
        variants: Variant::choose(&["clearway".to_owned()], &[]).unwrap(),
        data: Some(data.path().to_owned()),
        ..options()
    };
    let first = run_bench(&small).unwrap();
    let second = run_bench(&small).unwrap();
    // The second run began with the first one's balances and added its own.
    assert_ne!(first.balances[0].history, second.balances[0].history);
    let error = run_bench(&BenchOptions { scale: 2, ..small }).unwrap_err();
    assert!(
        matches!(
            error,
            LabError::OtherScale {
                found: 1,
                wanted: 2,
                ..
            }
        ),
        "{error}"
    );
}

/// Every switch that has something to vary, but those of standbys: all its variants are measured on the same terms, and
/// the counts of what commits cost fit together.
#[test]
fn a_tiny_run_over_every_switch() {
    // Loaded once, and copied for each variant: to load takes longer than all the rest.
    let loaded = tempfile::tempdir().unwrap();
    run_bench(&BenchOptions {
        clients: vec![1],
        workloads: vec![Workload::SimpleUpdate.into()],
        variants: Variant::choose(&["clearway".to_owned()], &[]).unwrap(),
        data: Some(loaded.path().to_owned()),
        ..options()
    })
    .unwrap();
    for switch in Mechanisms::SWITCHES
        .iter()
        .filter(|switch| switch.variants.len() > 1)
    {
        let (varied, variants) = match Variant::vary(switch.name, &[], &[]) {
            Err(LabError::StandbysSwitch { .. }) => continue,
            found => found.unwrap(),
        };
        let data = tempfile::tempdir().unwrap();
        for variant in &variants {
            copy_directory(
                &loaded.path().join("clearway"),
                &data.path().join(&variant.directory),
            );
        }
        // Elsewhere the device is left out, since it may be slow.
        let synchronous_commit = switch.name == "log_flush";
        let result = measured(BenchOptions {
            clients: vec![3],
            duration: Duration::from_millis(if synchronous_commit { 500 } else { 100 }),
            workloads: vec![Workload::SimpleUpdate.into()],
            varied: Some(varied),
            variants,
            data: Some(data.path().to_owned()),
            synchronous_commit,
            ..options()
        });

        let names: Vec<&str> = result.cells.iter().map(|cell| cell.variant.as_str()).collect();
        let wanted: Vec<&str> = switch.variants.iter().map(|variant| variant.name).collect();
        assert_eq!(names, wanted, "{}", switch.name);
        for (variant, info) in switch.variants.iter().zip(&result.variants) {
            assert!(
                info.config
                    .mechanisms
                    .list()
                    .contains(&(switch.name, variant.name))
            );
            assert_eq!(info.text.as_deref(), Some(variant.text));
        }
        for cell in &result.cells {
            let costs = &cell.per_commit;
            assert!(cell.tps > 0.0 && costs.cpu_us > 0.0, "{cell:?}");
            // A call finds at most the two others.
            assert!(costs.wake_ups <= 2.0 * costs.wake_up_calls, "{cell:?}");
            // Transactions under way at the ends of the window account for a few syncs more than there are commits.
            let at_the_ends = 10.0 / cell.transactions as f64;
            if synchronous_commit {
                assert!(costs.syncs > 0.0 && costs.syncs <= 1.0 + at_the_ends, "{cell:?}");
                assert!(costs.voluntary_switches > 0.0, "{cell:?}");
            }
        }

        let text = table::text(&result);
        assert!(
            text.contains(switch.name) && text.contains(table::COSTS_LEGEND),
            "{text}"
        );
        let out = tempfile::tempdir().unwrap();
        result.write(out.path()).unwrap();
        let json = std::fs::read_to_string(out.path().join("result.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["varied"]["name"], switch.name);
        assert_eq!(json["variants"][1]["text"], switch.variants[1].text);
        assert!(json["cells"][1]["per_commit"]["syncs"].is_number());
        let page = std::fs::read_to_string(out.path().join("report.html")).unwrap();
        assert!(page.contains(&format!("The switch <code>{}</code>", switch.name)));
        for variant in switch.variants {
            assert!(
                page.contains(&format!("<tr><th>{}</th>", variant.name)),
                "{}",
                variant.name
            );
        }
    }
}

#[test]
fn numbers_that_cannot_work_are_refused() {
    let refused = |options: BenchOptions| run_bench(&options).unwrap_err().to_string();
    assert!(
        refused(BenchOptions {
            scale: 0,
            ..options()
        })
        .contains("--scale is 0, but must be 1 to 20000")
    );
    assert!(
        refused(BenchOptions {
            clients: vec![0],
            ..options()
        })
        .contains("--clients")
    );
    assert!(
        refused(BenchOptions {
            rounds: 0,
            ..options()
        })
        .contains("--rounds")
    );
}
