//! A whole latch bench in about a second.

use std::time::Duration;

use clearway_lab::latches::table;
use clearway_lab::{LabError, LatchBenchOptions, run_latch_bench};

fn options() -> LatchBenchOptions {
    LatchBenchOptions {
        threads: vec![1, 3],
        sections: vec![Duration::ZERO, Duration::from_nanos(200)],
        read_shares: vec![0.0, 93.5, 100.0],
        latches: Vec::new(),
        spin: clearway_latch::SpinPolicy::Adaptive,
        duration: Duration::from_millis(4),
        rounds: 2,
        seed: 7,
        command: "clearway bench latches (test)".to_owned(),
        progress: false,
    }
}

#[test]
fn every_latch_is_measured_at_every_point() {
    let result = run_latch_bench(&options()).unwrap();
    let (mutexes, latches): (Vec<_>, Vec<_>) = LatchBenchOptions::list()
        .into_iter()
        .map(|(name, _)| name)
        .partition(|name| name.contains("srw") || name.contains("mutex"));
    assert_eq!(mutexes.len(), 5);
    // Mutexes without readers only.
    assert_eq!(result.cells.len(), 2 * 2 * (3 * latches.len() + mutexes.len()));
    for cell in &result.cells {
        assert!(cell.operations > 0.0 && cell.bytes > 0, "{cell:?}");
        assert_eq!(cell.operations_rounds.len(), 2);
        assert_eq!(cell.read.is_some(), cell.read_share > 0.0, "{cell:?}");
        assert_eq!(cell.write.is_some(), cell.read_share < 100.0, "{cell:?}");
        let reference = cell.latch.starts_with("parking_lot");
        assert!(
            cell.ratio.is_some() && (!reference || cell.ratio == Some(1.0)),
            "{cell:?}"
        );
    }
    for cell in &result.cells {
        assert!((0.0..=1.0).contains(&cell.slowest_to_fastest), "{cell:?}");
        for wait in [&cell.read, &cell.write].into_iter().flatten() {
            let tail = [wait.p50_ns, wait.p99_ns, wait.p999_ns, wait.max_ns];
            assert!(tail.is_sorted() && wait.samples > 0, "{cell:?}");
        }
    }
    let text = table::text(&result, false);
    assert!(
        text.contains("99.9th percentile of a writer's wait") && !text.contains("write p99.9"),
        "too many rows: {text}"
    );
    assert!(table::text(&result, true).contains("write p99.9"));
    assert!(
        text.contains("lwlock-single-cas") && text.contains("93.5 %") && text.contains("200 ns"),
        "{text}"
    );

    let directory = tempfile::tempdir().unwrap();
    result.write(directory.path()).unwrap();
    let json = std::fs::read_to_string(directory.path().join("latches.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), result.cells.len());
    let page = std::fs::read_to_string(directory.path().join("latches.html")).unwrap();
    assert_eq!(
        page.matches("<svg").count(),
        4 + 2 * 4,
        "a figure per section and number of threads, and per section, share of reads and mode"
    );
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http://") && !outside.contains("https://") && !outside.contains("<script"));
}

#[test]
fn wrong_names_and_numbers_are_refused() {
    let refused = |change: &dyn Fn(&mut LatchBenchOptions)| {
        let mut options = options();
        change(&mut options);
        run_latch_bench(&options).unwrap_err()
    };
    let unknown = refused(&|options| options.latches = vec!["fastest".to_owned()]);
    assert!(
        matches!(unknown, LabError::UnknownName { .. }) && unknown.to_string().contains("parking_lot"),
        "{unknown}"
    );
    for change in [
        (|options: &mut LatchBenchOptions| options.threads.clear()) as fn(&mut LatchBenchOptions),
        |options| options.threads = vec![0],
        |options| options.read_shares = vec![101.0],
        |options| options.sections = vec![Duration::from_secs(1)],
        |options| options.rounds = 0,
        |options| options.duration = Duration::ZERO,
        |options| {
            options.latches = vec!["srw-single-wake".to_owned()];
            options.read_shares = vec![50.0];
        },
    ] {
        let error = refused(&change);
        assert!(matches!(error, LabError::BadNumber { .. }), "{error}");
    }
}
