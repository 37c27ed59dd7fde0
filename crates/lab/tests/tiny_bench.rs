//! A whole bench in about a second: loads, measures, checks the sums, writes JSON and HTML.

use std::time::Duration;

use clearway_lab::workload::Workload;
use clearway_lab::{BenchOptions, LabError, Variant, run_bench, table};

fn options() -> BenchOptions {
    BenchOptions {
        scale: 1,
        clients: vec![1, 3],
        duration: Duration::from_millis(150),
        rounds: 1,
        workloads: Workload::ALL.to_vec(),
        variants: Variant::choose(&[], &[]).unwrap(),
        data: None,
        synchronous_commit: false,
        seed: 7,
        command: "clearway bench (test)".to_owned(),
        progress: false,
    }
}

#[test]
fn a_tiny_bench_from_tables_to_report() {
    let result = run_bench(&options()).unwrap();

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

    // The sums were checked against what the clients were told; here once more in the result.
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
    let json = std::fs::read_to_string(out.path().join("result.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["provenance"]["seed"], 7);
    assert_eq!(json["variants"][0]["config"]["mechanisms"]["lwlock"], "queued");
    assert_eq!(json["cells"].as_array().unwrap().len(), result.cells.len());
    let page = std::fs::read_to_string(out.path().join("report.html")).unwrap();
    let page = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
    assert_eq!(page.matches("<svg").count(), 6);
}

#[test]
fn a_data_directory_is_used_again_and_its_scale_is_checked() {
    let data = tempfile::tempdir().unwrap();
    let small = BenchOptions {
        clients: vec![2],
        duration: Duration::from_millis(30),
        workloads: vec![Workload::SimpleUpdate],
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
